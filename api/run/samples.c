// SPDX-License-Identifier: Apache-2.0
#include "api/run/samples.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/run/outputs.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"

static const char *const kind_names[] = {
        [SAMPLE_INPUTS] = "inputs", [SAMPLE_OUTPUTS] = "outputs", [SAMPLE_NODES] = "nodes"
};

// ---- names ----
// "12.inputs.x" -> 12, SAMPLE_INPUTS, "x"; NULL: another name.
static const char *split_name(const char *name, int64_t *out_at, SampleKind *out_kind)
{
        size_t n_digits = strspn(name, "0123456789");
        if (n_digits == 0 || n_digits > 6 || name[n_digits] != '.')
                return NULL;
        *out_at = strtoll(name, NULL, 10);
        for (size_t kind = 0; kind < ARRAY_LENGTH(kind_names); kind++) {
                const char *at = name + n_digits + 1;
                size_t n = strlen(kind_names[kind]);
                *out_kind = (SampleKind)kind;
                if (strncmp(at, kind_names[kind], n) == 0 && at[n] == '.' && at[n + 1] != '\0')
                        return at + n + 1;
        }
        return NULL;
}

static Status check_names(Samples *samples)
{
        for (uint32_t i = 0; i < samples->file.n_entries; i++) {
                int64_t at;
                SampleKind kind;
                const char *name = samples->file.entries[i].name;
                if (split_name(name, &at, &kind) == NULL)
                        return fail(STATUS_MALFORMED,
                                    "samples are named like \"0.inputs.x\", \"0.outputs.logits\", "
                                    "\"0.nodes.relu\", not \"%.64s\"",
                                    name);
                samples->n = MAX(samples->n, at + 1);
        }
        if (samples->n == 0 || samples->n > samples->file.n_entries)
                return fail(STATUS_MALFORMED, "samples are numbered from 0 on, without gaps");
        return STATUS_OK;
}

Status samples_read(Storage *bytes, Samples *out_samples)
{
        *out_samples = (Samples){ .n = 0 };
        TRY(safetensors_read((ByteSpan){ bytes->data, bytes->n_bytes }, bytes, &out_samples->file));
        Status status = check_names(out_samples);
        if (status != STATUS_OK)
                samples_deinit(out_samples);
        return status;
}

void samples_deinit(Samples *samples)
{
        safetensors_deinit(&samples->file);
}

Status samples_list(const Samples *samples, int64_t at, SampleKind kind, CompareSample **out_list,
                    uint32_t *out_n)
{
        CompareSample *list = new_array(samples->file.n_entries, sizeof(*list));
        uint32_t n = 0;
        if (list == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < samples->file.n_entries; i++) {
                const SafetensorsEntry *entry = &samples->file.entries[i];
                int64_t of;
                SampleKind is;
                const char *name = split_name(entry->name, &of, &is);
                if (name != NULL && of == at && is == kind)
                        list[n++] = (CompareSample){ name, entry->tensor };
        }
        *out_list = list;
        *out_n = n;
        return STATUS_OK;
}

Status samples_give_inputs(const Samples *samples, int64_t at, RunCall *run)
{
        _cleanup_(freep) CompareSample *list = NULL;
        uint32_t n;
        if (at >= samples->n)
                return fail(STATUS_NOT_FOUND,
                            "there are %lld samples, numbered from 0 on: none is number %lld",
                            (long long)samples->n, (long long)at);
        TRY(samples_list(samples, at, SAMPLE_INPUTS, &list, &n));
        for (uint32_t i = 0; i < n; i++)
                TRY(run_take_tensor(run, list[i].name, tensor_ref(list[i].tensor)));
        run->sent = RUN_SENT_INPUTS;
        return STATUS_OK;
}

// ---- verifying ----
typedef struct Verify {
        const Samples *samples;
        int64_t at;
        double tolerance;
        RunCall *run;
        CompareSide side, expected;
        CloseRule rule;
} Verify;

static bool is_within(const Closeness *close, double tolerance)
{
        return close->n_mismatched == 0 || close->max_abs <= tolerance * MAX(1, close->scale);
}

static Status differs(const Verify *it, const Node *node, const Closeness *close, const char *message)
{
        Status status =
                fail(STATUS_VERIFICATION,
                     "sample %lld, %s: node \"%.64s\" differs from what was recorded; allowed are %g * "
                     "max(1, %g) (?tolerance=)\n\n%s",
                     (long long)it->at, it->side.is_compiled ? "compiled" : "eager",
                     node == NULL ? "output" : node->name, it->tolerance, close->scale, message);
        return failure_at_node(status, node == NULL ? "output" : node->name);
}

static Status verify_nodes(Engine *engine, Verify *it)
{
        Comparison comparison = { .n_rows = 0 };
        Status status = compare_nodes(engine, &it->side, &it->expected, &it->rule, &comparison);
        for (uint32_t i = 0; status == STATUS_OK && i < comparison.n_rows; i++) {
                const CompareRow *row = &comparison.rows[i];
                if (row->message != NULL && !is_within(&row->close, it->tolerance))
                        status = differs(it, row->a, &row->close, row->message);
        }
        comparison_deinit(&comparison);
        return status;
}

static Status verify_output(const Verify *it, const OutputList *outputs, const CompareSample *sample)
{
        _cleanup_(text_deinit) Text message = { 0 };
        Value want = { .kind = VALUE_TENSOR, .tensor = sample->tensor };
        for (uint32_t i = 0; i < outputs->n; i++) {
                const OutputLeaf *leaf = &outputs->leaves[i];
                Closeness close;
                if (strcmp(leaf->name, sample->name) != 0)
                        continue;
                TRY(value_close(leaf->value, want, &it->rule, &it->run->task.ctx, &close, &message));
                return close.close || is_within(&close, it->tolerance)
                               ? STATUS_OK
                               : differs(it, leaf->node, &close, message.data);
        }
        return fail(STATUS_VALUE, "sample %lld has an output \"%.64s\", which the graph does not return",
                    (long long)it->at, sample->name);
}

static Status verify_outputs(Verify *it)
{
        _cleanup_(value_clear) Value result = value_none();
        _cleanup_(freep) CompareSample *list = NULL;
        OutputList outputs;
        uint32_t n;
        TRY(samples_list(it->samples, it->at, SAMPLE_OUTPUTS, &list, &n));
        TRY(compare_result(&it->side, &result));
        Status status = output_list_of(it->run->task.graph, &result, &outputs);
        for (uint32_t i = 0; status == STATUS_OK && i < n; i++)
                status = verify_output(it, &outputs, &list[i]);
        output_list_deinit(&outputs);
        return status;
}

static Status verify_run(const ApiContext *context, Verify *it)
{
        RunTask *task = &it->run->task;
        _cleanup_(freep) CompareSample *nodes = NULL;
        task->ctx.within = context->ctx;
        task->ctx.deadline_ns = context->deadline_ns;
        run_take_seed(it->run, SAMPLES_SEED);
        TRY(run_task_open(task));
        TRY(samples_give_inputs(it->samples, it->at, it->run));
        it->side.task = task;
        TRY(samples_list(it->samples, it->at, SAMPLE_NODES, &nodes, &it->expected.n_samples));
        it->expected.samples = nodes;
        Status status = compare_open(context->engine, &it->side);
        if (status == STATUS_OK && !it->side.is_compiled)
                status = verify_nodes(context->engine, it);
        if (status == STATUS_OK)
                status = verify_outputs(it);
        compare_close(&it->side);
        return status;
}

Status samples_verify(const ApiContext *context, Graph *graph, const Samples *samples, double tolerance)
{
        static const RunMode modes[] = { RUN_MODE_EAGER, RUN_MODE_COMPILED };
        for (int64_t at = 0; at < samples->n; at++)
                for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
                        RunCall run;
                        Verify it = { .samples = samples,
                                      .at = at,
                                      .tolerance = tolerance,
                                      .run = &run,
                                      .rule = { .equal_nan = true } };
                        run_call_init(&run);
                        run.task.graph = graph_ref(graph);
                        run.task.mode = modes[i];
                        Status status = verify_run(context, &it);
                        run_call_deinit(&run);
                        TRY(status);
                }
        return STATUS_OK;
}
