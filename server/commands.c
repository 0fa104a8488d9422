// SPDX-License-Identifier: Apache-2.0
// `fxserve run` goes the same way as POST …/run: its arguments become a run body, so that what
// works here works over HTTP.
#include "server/commands.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "api/formats/npy.h"
#include "api/routes/ops_list.h"
#include "api/formats/profile_text.h"
#include "api/run/codec.h"
#include "api/formats/tensor_json.h"
#include "core/base/json.h"
#include "core/engine/describe.h"
#include "server/command_line.h"
#include "server/preload.h"

// ---- run ----
typedef struct RunArguments {
        const char *model, *weights, *output;
        bool profile;
        Text body;
} RunArguments;

static Status add_npy(const char *path, Text *body)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(file_read(path, &bytes));
        TRY(npy_read((ByteSpan){ bytes->data, bytes->n_bytes }, bytes, NULL, &tensor));
        text_addf(body, "{\"dtype\": \"%s\", \"shape\": [", dtype_info[tensor->meta.dtype].name);
        for (int i = 0; i < tensor->meta.rank; i++)
                text_addf(body, "%s%lld", i == 0 ? "" : ", ", (long long)tensor->meta.size[i]);
        text_add(body, "], \"b64\": ");
        TRY(tensor_json_write(tensor, TENSOR_JSON_B64, NULL, SIZE_MAX, body));
        text_add_char(body, '}');
        return STATUS_OK;
}

// The value alone: in the whole body nothing would say which input is wrong.
static Status check_json(const char *text, size_t n_name, const char *value)
{
        _cleanup_(arena_deinit) Arena arena = { 0 };
        _cleanup_(json_closep) JsonReader *reader = NULL;
        Status status = json_open(value, strlen(value), JSON_MAX_DEPTH, 0, &arena, &reader);
        if (status == STATUS_OK)
                status = json_skip(reader);
        if (status == STATUS_OK)
                status = json_finish(reader);
        if (status != STATUS_OK)
                failure_append(" (--input %.*s)", (int)MIN(n_name, 64), text);
        return status;
}

Status command_add_input(const char *text, bool first, Text *body)
{
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text)
                return fail(STATUS_USAGE, "--input wants NAME=JSON or NAME=@FILE.npy, not \"%s\"", text);
        text_add(body, first ? "" : ", ");
        text_add_json_n(body, text, (size_t)(equals - text));
        text_add(body, ": ");
        if (equals[1] == '@')
                return add_npy(equals + 2, body);
        text_add(body, equals + 1);
        return check_json(text, (size_t)(equals - text), equals + 1);
}

static Status read_arguments(int argc, char **argv, RunArguments *out)
{
        bool first = true;
        text_add(&out->body, "{\"inputs\": {");
        for (int at = 0; at < argc; at++) {
                const char *value;
                if (strcmp(argv[at], "--profile") == 0) {
                        out->profile = true;
                } else if ((value = flag_value("--input", argc, argv, &at)) != NULL) {
                        TRY(command_add_input(value, first, &out->body));
                        first = false;
                } else if ((value = flag_value("-o", argc, argv, &at)) != NULL) {
                        out->output = value;
                } else if ((value = flag_value("--weights", argc, argv, &at)) != NULL) {
                        out->weights = value;
                } else if (argv[at][0] != '-' && out->model == NULL) {
                        out->model = argv[at];
                } else {
                        return fail(STATUS_USAGE, "not understood: %s; fxserve run --help says what is",
                                    argv[at]);
                }
        }
        text_add(&out->body, "}}");
        if (out->model == NULL)
                return fail(STATUS_USAGE, "run wants a model; fxserve run --help says how");
        return text_status(&out->body);
}

static Status write_part(void *file, const uint8_t *data, size_t n)
{
        return fwrite(data, 1, n, file) == n
                       ? STATUS_OK
                       : fail(STATUS_USAGE, "the output could not be written: %s", strerror(errno));
}

static Status write_reply(const char *path, const ApiReply *reply)
{
        if (path == NULL) {
                TRY(api_reply_each(reply, write_part, stdout));
                return fflush(stdout) == 0
                               ? STATUS_OK
                               : fail(STATUS_USAGE, "the output could not be written: %s", strerror(errno));
        }
        FILE *file = fopen(path, "wbe");
        if (file == NULL)
                return fail(STATUS_USAGE, "%s: %s", path, strerror(errno));
        Status status = api_reply_each(reply, write_part, file);
        if (fclose(file) != 0 && status == STATUS_OK)
                status = fail(STATUS_USAGE, "%s: %s", path, strerror(errno));
        return status;
}

// By the ending of the file's name; without one of these it is .npy.
static const Codec *codec_of_file(const char *path)
{
        static const struct {
                const char *ending;
                const Codec *codec;
        } rows[] = { { ".npz", &npz_codec },
                     { ".safetensors", &safetensors_codec },
                     { ".json", &json_codec } };
        const char *dot = path == NULL ? ".json" : strrchr(path, '.');
        for (size_t i = 0; dot != NULL && i < ARRAY_LENGTH(rows); i++)
                if (strcmp(dot, rows[i].ending) == 0)
                        return rows[i].codec;
        return &npy_codec;
}

static Status run_model(RunArguments *arguments, RunCall *run, ApiReply *reply)
{
        ApiCall call = { .route = NULL };
        RunTask *task = &run->task;
        task->received_ns = clock_ns();
        TRY(file_decode(arguments->model, arguments->weights, true, &run->task.graph));
        size_t n = arguments->body.n;
        char *body = text_take(&arguments->body);
        if (body == NULL)
                return fail_memory();
        Status status = storage_adopt(body, n, true, NULL, NULL, &call.body);
        if (status != STATUS_OK) {
                free(body);
                return status;
        }
        status = run_decode(&call, run);
        api_call_deinit(&call);
        TRY(status);
        task->ctx.n_threads = 1;
        run->replies = codec_of_file(arguments->output);
        TRY(run_bind(run));
        TRY(run_execute(run, NULL));
        snprintf(task->profile->id, sizeof(task->profile->id), "local");
        status = run_encode(run, reply);
        if (status == STATUS_NOT_ACCEPTABLE)
                failure_append(" (-o FILE.npz, FILE.safetensors and FILE.json hold all)");
        TRY(status);
        return write_reply(arguments->output, reply);
}

int command_run(int argc, char **argv)
{
        RunArguments arguments = { .model = NULL };
        ApiReply reply = { .status = 0 };
        RunCall run;
        run_call_init(&run);
        Status status = read_arguments(argc, argv, &arguments);
        if (status == STATUS_OK)
                status = run_model(&arguments, &run, &reply);
        if (status == STATUS_OK && arguments.profile) {
                Text table = { 0 };
                status = profile_write_table(run.task.profile, &table);
                write_text(&table);
                text_deinit(&table);
        }
        int code = status == STATUS_OK ? 0 : command_report(status);
        api_reply_deinit(&reply);
        run_call_deinit(&run);
        text_deinit(&arguments.body);
        return code;
}

// ---- check, print, ops ----
int command_check(int argc, char **argv)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        const char *weights = NULL, *file = file_and_flag("--weights", argc, argv, &weights);
        if (file == NULL)
                return command_usage("check");
        Status status = file_decode(file, weights, true, &graph);
        if (status != STATUS_OK)
                return command_report(status);
        printf("ok: %u nodes, %zu bytes of weights; everything it needs is there\n", graph->n_nodes,
               graph->weights_bytes);
        return 0;
}

int command_print(int argc, char **argv)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        const char *form_name = "graph", *file = file_and_flag("--form", argc, argv, &form_name);
        int form = 0;
        while (form < GRAPH_FORM_COUNT && strcmp(form_name, graph_form_names[form]) != 0)
                form++;
        if (file == NULL || form == GRAPH_FORM_COUNT)
                return command_usage("print");
        Text text = { 0 };
        Status status = file_decode(file, NULL, false, &graph);
        if (status == STATUS_OK)
                status = graph_print(graph, (GraphForm)form, &text);
        text_add_char(&text, '\n');
        int code = status == STATUS_OK ? write_text(&text) : command_report(status);
        text_deinit(&text);
        return code;
}

int command_ops(int argc, char **argv)
{
        (void)argv;
        if (argc != 0)
                return command_usage("ops");
        Text text = { 0 };
        Status status = ops_list_text(&text);
        int code = status == STATUS_OK ? write_text(&text) : command_report(status);
        text_deinit(&text);
        return code;
}
