// SPDX-License-Identifier: Apache-2.0
// Run requests without a server: the first line is the raw target, the second the Content-Type (of
// the Open Inference Protocol: Inference-Header-Content-Length), the rest the body. The graph is
// one of three; the body is decoded, bound, run eagerly, and the reply written.
#include "api/readers/fx_json.h"
#include "api/run/codec.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "tests/fuzz/fuzz.h"

#define OUT "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", "
static const char *const texts[] = {
        "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\"}, "
        "{\"op\": \"call_function\", "
        "\"name\": \"y\", \"target\": \"torch.abs\", \"args\": [\"%x\"]}, " OUT "\"args\": [\"%y\"]}]}",
        "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", \"target\": \"x\", "
        "\"meta\": {\"dtype\": "
        "\"float32\", \"shape\": [\"N\", 2]}}, {\"op\": \"placeholder\", \"name\": \"i\", \"target\": \"i\", "
        "\"meta\": {\"dtype\": "
        "\"int64\", \"shape\": [\"N\"]}}, {\"op\": \"call_function\", \"name\": \"y\", \"target\": "
        "\"torch.cat\", \"args\": [[\"%x\", "
        "\"%x\"]]}, " OUT "\"args\": [{\"a\": \"%y\", \"b\": [\"%i\", 3]}]}]}",
        "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"b\", \"target\": \"b\", "
        "\"meta\": {\"dtype\": \"bool\", "
        "\"shape\": [2]}}, {\"op\": \"placeholder\", \"name\": \"h\", \"target\": \"h\", \"meta\": "
        "{\"dtype\": \"float16\", \"shape\": "
        "[]}, \"args\": [1.5]}, " OUT "\"args\": [[\"%b\", \"%h\"]]}]}",
};
static Graph *graphs[ARRAY_LENGTH(texts)];

static void make_graphs(void)
{
        require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                CheckReport report;
                require(fx_json_read(texts[i], strlen(texts[i]), NULL, &graphs[i]) == STATUS_OK, "%s",
                        failure_current()->message);
                require(graph_resolve(graphs[i], &report) == STATUS_OK && report.n_rows == 0, "%s",
                        failure_current()->message);
                check_report_deinit(&report);
        }
}

// The line's text, and what follows it.
static char *take_line(const uint8_t **data, size_t *n)
{
        const uint8_t *end = *n == 0 ? NULL : memchr(*data, '\n', *n);
        if (end == NULL)
                return NULL;
        char *line = strndup((const char *)*data, (size_t)(end - *data));
        require(line != NULL, "no memory");
        *n -= (size_t)(end + 1 - *data);
        *data = end + 1;
        return line;
}

static Status run(const ApiCall *call, RunCall *run_call, ApiReply *reply)
{
        TRY(run_decode(call, run_call));
        TRY(run_bind(run_call));
        TRY(run_execute(run_call, NULL));
        return run_encode(run_call, reply);
}

static void request(const char *target, const char *type, const uint8_t *body, size_t n)
{
        ApiCall call;
        RunCall run_call;
        ApiReply reply = { .status = 0 };
        char allow[64];
        memset(&call, 0, sizeof(call));
        Status status = route_parse("POST", target, &call, allow);
        bool oip = call.route == &routes[ROUTE_OIP_INFER];
        bool predict = route_has(call.route, AS_TFSERVING) || codec_is_bare(call.route);
        if (status == STATUS_OK &&
            (oip || (predict && route_is(call.route, KIND_RUN)) || call.route == &routes[ROUTE_RUN])) {
                snprintf(oip ? call.header_length : call.content_type, sizeof(call.content_type), "%s", type);
                call.body = fuzz_storage(body, n);
                run_call_init(&run_call);
                run_call.task.graph = graph_ref(graphs[(unsigned char)call.name[0] % ARRAY_LENGTH(graphs)]);
                status = run(&call, &run_call, &reply);
                run_call_deinit(&run_call);
        }
        if (status != STATUS_OK) {
                require_told(status);
                reply_failure(&call, failure_current(), &reply);
                require((reply.status >= 400 && reply.status < 500) || (oip && reply.status == 501), "%d: %s",
                        reply.status, failure_current()->message);
        }
        api_reply_deinit(&reply);
        api_call_deinit(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        if (graphs[0] == NULL)
                make_graphs();
        char *target = take_line(&data, &n), *type = target == NULL ? NULL : take_line(&data, &n);
        if (type != NULL)
                request(target, type, data, n);
        free(target);
        free(type);
        return 0;
}
