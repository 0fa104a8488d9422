// SPDX-License-Identifier: Apache-2.0
// Results -> the reply body. Tensors go straight to text; the profile is written last, so that its
// encode time covers everything else.
#include <stdio.h>
#include <string.h>
#include "api/run/outputs.h"
#include "api/formats/profile_text.h"
#include "api/run/run_private.h"
#include "api/formats/tensor_json.h"
#include "core/base/limits.h"

static Status check_bytes(size_t n)
{
        if (n <= (size_t)limits.max_response)
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE,
                    "the reply is larger than %lld bytes (--max-response, FXSERVE_MAX_RESPONSE); ask for "
                    "fewer \"outputs\", or for a "
                    "binary form "
                    "(as=npz)",
                    (long long)limits.max_response);
}

static Status check_size(const Text *out)
{
        TRY(text_status(out));
        return check_bytes(out->n);
}

static Status write_data(RunCall *run, const Tensor *tensor, Text *out)
{
        static const TensorJsonStyle styles[] = { TENSOR_JSON_NESTED, TENSOR_JSON_FLAT, TENSOR_JSON_B64 };
        Status status = tensor_json_write(tensor, styles[run->encoding], &run->budget,
                                          (size_t)limits.max_response, out);
        TRY(check_bytes(out->n)); // in words that name the flag
        return status;
}

static Status write_tensor(RunCall *run, const Tensor *tensor, Text *out)
{
        text_addf(out, ", \"dtype\": \"%s\", \"shape\": [", dtype_info[tensor->meta.dtype].name);
        for (int i = 0; i < tensor->meta.rank; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_int(out, tensor->meta.size[i]);
        }
        text_add(out, run->encoding == RUN_ENCODING_B64 ? "], \"b64\": " : "], \"data\": ");
        return write_data(run, tensor, out);
}

static void write_number(double value, Text *out)
{
        char text[NUMBER_TEXT_MAX];
        size_t n = number_print_f64(value, text);
        bool finite = value - value == 0;
        text_add(out, finite ? "" : "\"");
        text_add_n(out, text, n);
        text_add(out, finite ? "" : "\"");
}

Status run_write_plain(Value value, Text *out)
{
        switch (value.kind) {
        case VALUE_NONE:
                text_add(out, "null");
                return STATUS_OK;
        case VALUE_BOOL:
                text_add(out, value.b ? "true" : "false");
                return STATUS_OK;
        case VALUE_INT:
                text_add_int(out, value.i);
                return STATUS_OK;
        case VALUE_FLOAT:
                write_number(value.f, out);
                return STATUS_OK;
        case VALUE_STR:
        case VALUE_DEVICE:
        case VALUE_LAYOUT:
                text_add_json_n(out, value.str->text, value.str->n);
                return STATUS_OK;
        case VALUE_DTYPE:
                text_add_json(out, dtype_info[value.dtype].torch_name);
                return STATUS_OK;
        default:
                return fail(STATUS_RUN, "an output is a %s, which has no JSON form",
                            value_kind_name(value.kind));
        }
}

// Before any text is made: a lower bound of what the data will take.
static Status check_numel(const OutputList *list)
{
        int64_t total = 0;
        for (uint32_t i = 0; i < list->n; i++)
                if (list->leaves[i].value.kind == VALUE_TENSOR)
                        total += meta_numel(&list->leaves[i].value.tensor->meta);
        if (total > limits.max_response)
                return fail(STATUS_TOO_LARGE,
                            "the outputs hold %lld values; a reply has at most %lld bytes (--max-response, "
                            "FXSERVE_MAX_RESPONSE)",
                            (long long)total, (long long)limits.max_response);
        return STATUS_OK;
}

static Status at_output(Status status, const OutputLeaf *leaf)
{
        return status == STATUS_OK || leaf->node == NULL ? status : walk_annotate(status, leaf->node);
}

static Status write_outputs(RunCall *run, const OutputList *list, Text *out)
{
        text_add(out, "{\"outputs\": [");
        for (uint32_t i = 0; i < list->n; i++) {
                const OutputLeaf *leaf = &list->leaves[i];
                text_add(out, i == 0 ? "" : ", ");
                output_write_name(leaf, out);
                if (leaf->value.kind == VALUE_TENSOR) {
                        TRY(write_tensor(run, leaf->value.tensor, out));
                } else {
                        text_add(out, ", \"value\": ");
                        TRY(at_output(run_write_plain(leaf->value, out), leaf));
                }
                TRY(check_size(out));
                text_add_char(out, '}');
        }
        text_add_char(out, ']');
        if (!list->plain) {
                text_add(out, ", \"structure\": ");
                text_add_n(out, list->structure.data, list->structure.n);
        }
        text_add(out, ", \"program\": ");
        if (run->profile->program == NULL)
                text_add(out, "null");
        else
                text_add_json(out, run->profile->program->id.hex);
        return STATUS_OK;
}

// The structure with each output's data in its place.
static Status write_bare(RunCall *run, const OutputList *list, Text *out)
{
        size_t at = 0;
        for (uint32_t i = 0; i < list->n; i++) {
                const OutputLeaf *leaf = &list->leaves[i];
                text_add_n(out, list->structure.data + at, leaf->at - at);
                TRY(leaf->value.kind == VALUE_TENSOR ? write_data(run, leaf->value.tensor, out)
                                                     : at_output(run_write_plain(leaf->value, out), leaf));
                TRY(check_size(out));
                at = leaf->end;
        }
        text_add_n(out, list->structure.data + at, list->structure.n - at);
        return text_status(out);
}

static void stamp(RunCall *run, int64_t started_ns, int64_t received_ns)
{
        int64_t now = clock_ns();
        run->profile->encode_ns = now - started_ns;
        run->profile->total_ns = now - received_ns;
        run->profile->wall_ms = clock_wall_ms();
}

// A reply that has no place for them says in headers what ran, and where the profile is.
static void add_headers(const RunCall *run, ApiReply *reply)
{
        if (run->profile->program != NULL)
                api_reply_header(reply, "Fxserve-Program", "%s", run->profile->program->id.hex);
        if (run->profile_in_reply)
                api_reply_header(reply, "Fxserve-Profile", "/v1/profiles/%s", run->profile->id);
}

static Status encode_json(RunCall *run, const OutputList *list, int64_t started_ns, int64_t received_ns,
                          ApiReply *reply)
{
        Text *out = &reply->body;
        reply->content_type = "application/json";
        TRY(run->bare ? write_bare(run, list, out) : write_outputs(run, list, out));
        stamp(run, started_ns, received_ns);
        if (run->bare) {
                add_headers(run, reply);
                text_add_char(out, '\n');
                return check_size(out);
        }
        if (run->profile_in_reply) {
                text_add(out, ", \"profile\": ");
                profile_write_json(run->profile, out);
        }
        text_add(out, "}\n");
        return check_size(out);
}

static Status encode(RunCall *run, const OutputList *list, int64_t started_ns, int64_t received_ns,
                     ApiReply *reply)
{
        TRY(check_numel(list));
        reply->status = 200;
        if (run->as == RUN_AS_JSON)
                return encode_json(run, list, started_ns, received_ns, reply);
        TRY(run_write_binary(run->as, list, &run->budget, reply));
        stamp(run, started_ns, received_ns);
        add_headers(run, reply);
        return check_bytes(api_reply_bytes(reply));
}

Status run_encode(RunCall *run, int64_t received_ns, ApiReply *reply)
{
        int64_t started_ns = clock_ns();
        OutputList list;
        Status status = run->fetch == NULL
                                ? output_list_of(run->graph, &run->result.value, &list)
                                : output_list_of_nodes(run->fetch, run->result.fetched, run->n_fetch, &list);
        if (status == STATUS_OK)
                status = encode(run, &list, started_ns, received_ns, reply);
        output_list_deinit(&list);
        return status;
}
