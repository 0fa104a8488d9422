// SPDX-License-Identifier: Apache-2.0
// A model server written for a few models and nothing else, as fast as one can be had from parts: h2o
// for HTTP, simdjson to read numbers, std::to_chars to print them, OpenVINO to run. One thread, one
// loop. It knows the models' shapes, checks little, and says 400 to whatever it cannot read.
//
//   native PORT FOLDER NAME     (FOLDER holds NAME.xml, as models.py writes it)
//
// POST /NAME: {"inputs": {"x": [...]}} → {"outputs": [{"shape": [...], "data": [...]}]}
// POST /bytes/NAME: float32 little-endian → the same. GET /ready.
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <netinet/in.h>
#include <string>
#include <unistd.h>
#include <openvino/openvino.hpp>
#include <simdjson.h>
#define H2O_USE_LIBUV 0
extern "C" {
#include <h2o.h>
}

struct Model {
        h2o_handler_t super; // h2o finds the handler's functions here
        ov::InferRequest request;
        ov::Tensor input, output;
        std::string head; // of a reply
        bool bytes;
};

static h2o_globalconf_t config;
static h2o_context_t context;
static h2o_accept_ctx_t accepting;
static ov::Core core;
static simdjson::ondemand::parser parser;
static std::string padded, reply;

static bool read_numbers(simdjson::ondemand::array rows, float *to, float *end, float **out_at)
{
        for (auto item : rows) {
                simdjson::ondemand::value value;
                if (item.get(value))
                        return false;
                simdjson::ondemand::array row;
                double number;
                if (value.type() == simdjson::ondemand::json_type::array) {
                        if (value.get_array().get(row) || !read_numbers(row, to, end, &to))
                                return false;
                } else if (value.get_double().get(number) || to == end) {
                        return false;
                } else {
                        *to++ = (float)number;
                }
        }
        *out_at = to;
        return true;
}

static bool read_json(Model *model, h2o_iovec_t body)
{
        padded.reserve(body.len + simdjson::SIMDJSON_PADDING);
        padded.assign(body.base, body.len);
        simdjson::ondemand::document document;
        simdjson::ondemand::array rows;
        if (parser.iterate(padded.data(), padded.size(), padded.capacity()).get(document) ||
            document["inputs"]["x"].get_array().get(rows))
                return false;
        float *to = model->input.data<float>(), *end = to + model->input.get_size(), *at = nullptr;
        return read_numbers(rows, to, end, &at) && at == end;
}

static bool read_bytes(Model *model, h2o_iovec_t body)
{
        if (body.len != model->input.get_byte_size())
                return false;
        memcpy(model->input.data(), body.base, body.len);
        return true;
}

static void print_numbers(const float *from, size_t n)
{
        char text[32];
        for (size_t i = 0; i < n; i++) {
                auto end = std::to_chars(text, text + sizeof text, from[i]).ptr;
                *end++ = ',';
                reply.append(text, (size_t)(end - text));
        }
        reply.back() = ']';
}

static void print_json(Model *model)
{
        reply = model->head;
        const float *at = model->output.data<float>();
        const ov::Shape &shape = model->output.get_shape();
        if (shape.size() == 1)
                return print_numbers(at, shape[0]), (void)reply.append("}]}");
        for (size_t row = 0; row < shape[0]; row++, at += shape[1]) {
                if (row)
                        reply.back() = ',', reply += '[';
                print_numbers(at, shape[1]);
                reply += ']';
        }
        reply.append("}]}");
}

static int send_reply(h2o_req_t *request, int status, const char *type)
{
        request->res.status = status;
        request->res.reason = status == 200 ? "OK" : "Bad Request";
        h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE, nullptr, type,
                       strlen(type));
        h2o_send_inline(request, reply.data(), reply.size());
        return 0;
}

static int run_model(h2o_handler_t *handler, h2o_req_t *request)
{
        Model *model = (Model *)handler;
        reply = "{\"error\": \"not the input of this model\"}";
        if (!(model->bytes ? read_bytes : read_json)(model, request->entity))
                return send_reply(request, 400, "application/json");
        model->request.infer();
        if (!model->bytes)
                return print_json(model), send_reply(request, 200, "application/json");
        reply.assign((const char *)model->output.data(), model->output.get_byte_size());
        return send_reply(request, 200, "application/octet-stream");
}

static int say_ready(h2o_handler_t *, h2o_req_t *request)
{
        reply = "{}";
        return send_reply(request, 200, "application/json");
}

static void add_model(h2o_hostconf_t *host, const std::string &folder, const char *name, bool bytes)
{
        std::string path = std::string(bytes ? "/bytes/" : "/") + name;
        h2o_pathconf_t *place = h2o_config_register_path(host, path.c_str(), 0);
        Model *model = new ((void *)h2o_create_handler(place, sizeof(Model))) Model{};
        model->super.on_req = run_model;
        ov::AnyMap one = { ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
                           ov::inference_num_threads(1), ov::hint::inference_precision(ov::element::f32) };
        model->request = core.compile_model(folder + "/" + name + ".xml", "CPU", one).create_infer_request();
        model->input = model->request.get_input_tensor();
        model->output = model->request.get_output_tensor();
        model->bytes = bytes;
        model->head = "{\"outputs\": [{\"shape\": [";
        for (size_t size : model->output.get_shape())
                model->head += std::to_string(size) + ",";
        model->head.back() = ']';
        model->head += model->output.get_shape().size() == 2 ? ", \"data\": [[" : ", \"data\": [";
}

static void take_connection(h2o_socket_t *listener, const char *problem)
{
        h2o_socket_t *socket = problem ? nullptr : h2o_evloop_socket_accept(listener);
        if (socket)
                h2o_accept(&accepting, socket);
}

static int listen_on(int port)
{
        int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
        struct sockaddr_in at = {};
        at.sin_family = AF_INET;
        at.sin_port = htons((uint16_t)port);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        return bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 128) ? -1 : fd;
}

int main(int n, char **words)
{
        if (n != 4)
                return fprintf(stderr, "usage: native PORT FOLDER NAME\n"), 2;
        signal(SIGPIPE, SIG_IGN);
        h2o_config_init(&config);
        h2o_hostconf_t *host = h2o_config_register_host(&config, h2o_iovec_init("default", 7), 65535);
        h2o_pathconf_t *ready = h2o_config_register_path(host, "/ready", 0);
        h2o_create_handler(ready, sizeof(h2o_handler_t))->on_req = say_ready;
        add_model(host, words[2], words[3], false);
        add_model(host, words[2], words[3], true);
        h2o_context_init(&context, h2o_evloop_create(), &config);
        accepting.ctx = &context;
        accepting.hosts = config.hosts;
        int fd = listen_on(atoi(words[1]));
        if (fd < 0)
                return perror("listen"), 1;
        h2o_socket_t *listener = h2o_evloop_socket_create(context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
        h2o_socket_read_start(listener, take_connection);
        while (h2o_evloop_run(context.loop, INT32_MAX) == 0 || errno == EINTR) // SIGCONT
                ;
        return 1;
}
