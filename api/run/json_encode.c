// SPDX-License-Identifier: Apache-2.0
// JSON replies. Tensors go straight to text; the profile is written last, so that its
// encode time covers everything else.
#include <stdio.h>
#include <string.h>
#include "api/run/observed.h"
#include "api/run/outputs.h"
#include "api/formats/profile_text.h"
#include "api/run/run_private.h"
#include "api/run/top.h"
#include "api/formats/tensor_json.h"
#include "core/base/limits.h"

enum { SHORT_REPLY = 512 }; // bytes; most replies fit, so that their text grows once

static Status check_size(const Text *out)
{
        TRY(text_status(out));
        return run_check_reply(out->n);
}

static Status write_data(RunCall *run, const Tensor *tensor, Text *out)
{
        static const TensorJsonStyle styles[] = { TENSOR_JSON_NESTED, TENSOR_JSON_FLAT, TENSOR_JSON_B64 };
        TRY(run_check_reply(out->n + (size_t)tensor_json_least(&tensor->meta, styles[run->encoding])));
        Status status = tensor_json_write(tensor, styles[run->encoding], &run->task.budget,
                                          (size_t)limits.max_response, out);
        TRY(run_check_reply(out->n)); // in words that name the flag
        return status;
}

Status run_write_data(RunCall *run, const Tensor *tensor, Text *out)
{
        text_add(out, run->encoding == RUN_ENCODING_B64 ? ", \"b64\": " : ", \"data\": ");
        return write_data(run, tensor, out);
}

static Status write_tensor(RunCall *run, const Tensor *tensor, Text *out)
{
        text_add(out, ", \"dtype\": \"");
        text_add(out, dtype_info[tensor->meta.dtype].name);
        text_add(out, "\", \"shape\": [");
        for (int i = 0; i < tensor->meta.rank; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_int(out, tensor->meta.size[i]);
        }
        text_add_char(out, ']');
        if (run->top > 0 && top_applies(tensor)) {
                text_add(out, ", \"top\": ");
                return top_write(run, tensor, out);
        }
        return run_write_data(run, tensor, out);
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
                text_add_f64(out, value.f);
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

static Status at_output(Status status, const OutputLeaf *leaf)
{
        return status == STATUS_OK || leaf->node == NULL ? status : walk_annotate(status, leaf->node);
}

static Status write_leaf(RunCall *run, const OutputLeaf *leaf, Text *out)
{
        output_write_name(leaf, out);
        if (leaf->value.kind == VALUE_TENSOR) {
                TRY(write_tensor(run, leaf->value.tensor, out));
        } else {
                text_add(out, ", \"value\": ");
                TRY(at_output(run_write_plain(leaf->value, out), leaf));
        }
        TRY(check_size(out));
        text_add_char(out, '}');
        return STATUS_OK;
}

static Status write_mutations(RunCall *run, Text *out)
{
        const RunTask *task = &run->task;
        const Value *values = run_task_mutated(task);
        const Node *const *nodes = task->fetch + task->n_fetch + task->n_watched + task->n_kept;
        text_add(out, ", \"mutations\": [");
        for (uint32_t i = 0; i < task->n_mutated; i++) {
                OutputLeaf leaf = { .name = task->mutated[i], .node = nodes[i], .value = values[i] };
                text_add(out, i == 0 ? "" : ", ");
                TRY(write_leaf(run, &leaf, out));
        }
        text_add_char(out, ']');
        return STATUS_OK;
}

static Status write_outputs(RunCall *run, const OutputList *list, Text *out)
{
        text_add(out, "{\"outputs\": [");
        for (uint32_t i = 0; i < list->n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                TRY(write_leaf(run, &list->leaves[i], out));
        }
        text_add_char(out, ']');
        if (!list->plain) {
                text_add(out, ", \"structure\": ");
                text_add_n(out, list->structure.data, list->structure.n);
        }
        if (run->mutations)
                TRY(write_mutations(run, out));
        text_add(out, ", \"program\": ");
        const char *program = run_program_id(run->task.profile->labels);
        if (program == NULL)
                text_add(out, "null");
        else
                text_add_json(out, program);
        if (run->task.generator.started) {
                text_add(out, ", \"seed\": ");
                text_add_int(out, (int64_t)run->task.generator.seed);
        }
        return STATUS_OK;
}

// The structure with each output's data in its place.
static Status write_bare(RunCall *run, const OutputList *list, Text *out)
{
        size_t at = 0;
        for (uint32_t i = 0; i < list->n; i++) {
                const OutputLeaf *leaf = &list->leaves[i];
                text_add_n(out, list->structure.data + at, leaf->at - at);
                const Tensor *tensor = leaf->value.kind == VALUE_TENSOR ? leaf->value.tensor : NULL;
                if (tensor == NULL)
                        TRY(at_output(run_write_plain(leaf->value, out), leaf));
                else if (run->top > 0 && top_applies(tensor))
                        TRY(top_write(run, tensor, out));
                else
                        TRY(write_data(run, tensor, out));
                TRY(check_size(out));
                at = leaf->end;
        }
        text_add_n(out, list->structure.data + at, list->structure.n - at);
        return text_status(out);
}

Status json_encode(RunCall *run, const OutputList *list, ApiReply *reply)
{
        Text *out = &reply->body;
        reply->content_type = "application/json";
        (void)text_reserve(out, SHORT_REPLY);
        TRY(run->bare ? write_bare(run, list, out) : write_outputs(run, list, out));
        run_stamp(run);
        if (run->bare) {
                run_add_headers(run, reply);
                text_add_char(out, '\n');
                return check_size(out);
        }
        bool partial = run->until != NULL || run->recipe.n_given > 0 || run->recipe.leaf.n > 0;
        if (run->task.graph->rules != NULL && (run->task.graph->n_rules > 0 || !partial))
                TRY(observed_write(run, out));
        run_write_kept(run, out);
        if (run->profile_in_reply) {
                text_add(out, ", \"profile\": ");
                profile_write_json(run->task.profile, out);
        }
        text_add(out, "}\n");
        return check_size(out);
}
