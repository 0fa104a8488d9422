// SPDX-License-Identifier: Apache-2.0
#include "core/engine/compare.h"
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/private.h"
#include "core/eval/eager.h"

enum { COMPARE_WARM_TURNS = 2 };

typedef struct Kept { // a pair of nodes, or a node and its sample
        const char *name;
        const Node *a, *b;
        uint32_t next[2]; // pair + 1 of the same node of `a`, of `b`; 0: none
        const Tensor *sample;
        Value value; // of `a`, while kept
        bool is_kept, is_done;
        int64_t n_bytes;
} Kept;

typedef struct Walking {
        CompareSide *a, *b;
        const CloseRule *rule;
        Kept *pairs;
        CompareRow *rows; // of the same pairs
        uint32_t n;
        uint32_t *of[2]; // by node index of `a` and `b`: its first pair + 1; 0: none
        int64_t n_kept_bytes;
        uint32_t n_kept;
        WalkVisit visit;
        uint32_t n_runs;
} Walking;

// ---- sides ----
// With `fetch` another program. NULL: it cannot be compiled as a whole or in part. A program that
// is ready is used, and one that is made here is kept for the next to ask; not those for a part of
// the nodes, which would push out the programs that serve.
static Status build(Engine *engine, CompareSide *side, const Node *const *fetch, uint32_t n_fetch, bool keeps,
                    Program **out_program)
{
        RunTask *task = side->task;
        PlannedRun plan = task->plan; // its inputs are borrowed
        plan.request = (RunRequest){ .fetch = fetch,
                                     .n_fetch = n_fetch,
                                     .mode = RUN_MODE_COMPILED,
                                     .precision = task->precision,
                                     .bucket = task->bucket,
                                     .version = task->version };
        plan.n_threads = MAX(task->ctx.n_threads, 1);
        plan.tune = NULL;
        plan.choice = NULL;
        plan.program = NULL;
        *out_program = NULL;
        // a graph that is not stored yet has no content to be known by
        Status status =
                engine_compile(task->version == NULL ? NULL : engine, &plan, keeps, &task->ctx, out_program);
        return status == STATUS_DYNAMIC || status == STATUS_UNSUPPORTED ? STATUS_OK : status;
}

Status compare_open(Engine *engine, CompareSide *side)
{
        RunTask *task = side->task;
        TRY(run_task_bind(task));
        if (task->mode != RUN_MODE_COMPILED)
                return STATUS_OK;
        TRY(build(engine, side, NULL, 0, true, &side->program));
        side->is_compiled = side->program != NULL;
        return STATUS_OK;
}

void compare_close(CompareSide *side)
{
        side->program = program_unref(side->program);
}

// Both sides run several times, and a run may write to its inputs: each sees them through shells of
// its own.
static Status shell_leaf(void *context, const Value *leaf, Value *out)
{
        Tensor *tensor;
        if (leaf->kind != VALUE_TENSOR) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        TRY(tensor_new_shell(leaf->tensor, context, &tensor));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

static void drop_inputs(Value *inputs, uint32_t n)
{
        for (uint32_t i = 0; inputs != NULL && i < n; i++)
                value_unref(inputs[i]);
        free(inputs);
}

static Status take_inputs(const CompareSide *side, Value **out_inputs)
{
        const PlannedRun *plan = &side->task->plan;
        Value *inputs = new_array(plan->n_inputs, sizeof(*inputs));
        Status status = inputs == NULL ? fail_memory() : STATUS_OK;
        for (uint32_t i = 0; status == STATUS_OK && i < plan->n_inputs; i++)
                status = value_map(plan->inputs[i], shell_leaf, side->task->ctx.budget, &inputs[i]);
        if (status != STATUS_OK)
                drop_inputs(inputs, plan->n_inputs);
        else
                *out_inputs = inputs;
        return status;
}

static Status walk_eagerly(CompareSide *side, WalkOptions *options, Value *out_value, Value *out_fetched)
{
        RunTask *task = side->task;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        TRY(eager_open(task->graph, &task->ctx, &eager));
        return walk_graph(eager_emitter(eager), task->graph, options, out_value, out_fetched);
}

static Status run_program(CompareSide *side, Program *program, ProgramRun *run, Value *out_value,
                          Value *out_fetched)
{
        Frame own;
        if (side->frame != NULL)
                return program_run(program, side->frame, run, &side->task->ctx, out_value, out_fetched);
        frame_init(&own);
        Status status = program_run(program, &own, run, &side->task->ctx, out_value, out_fetched);
        frame_deinit(&own);
        return status;
}

// Without a program eagerly, with these options (NULL: none). Each run draws the same numbers.
static Status run_side(CompareSide *side, Program *program, WalkOptions *options, Value *out_value,
                       Value *out_fetched)
{
        WalkOptions own = { .visit = NULL };
        Value *inputs;
        uint32_t n = side->task->plan.n_inputs;
        TRY(take_inputs(side, &inputs));
        generator_rewind(&side->task->generator);
        ProgramRun run = { .inputs = { inputs, n } };
        options = options == NULL ? &own : options;
        options->inputs = run.inputs;
        int64_t began = clock_ns();
        Status status = program != NULL ? run_program(side, program, &run, out_value, out_fetched)
                                        : walk_eagerly(side, options, out_value, out_fetched);
        side->run_ns = clock_ns() - began;
        drop_inputs(inputs, n);
        return status;
}

Status compare_result(CompareSide *side, Value *out_value)
{
        return run_side(side, side->program, NULL, out_value, NULL);
}

// ---- times ----
static int by_time(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
        return (x > y) - (x < y);
}

// times[0] of the first side, times[1] of the second one: n each.
static Status take_times(CompareSide *const sides[2], uint32_t n, int64_t *const times[2])
{
        for (uint32_t i = 0; i < n + COMPARE_WARM_TURNS; i++)
                for (int at = 0; at < 2; at++) {
                        _cleanup_(value_clear) Value value = value_none();
                        TRY(compare_result(sides[at], &value));
                        if (i >= COMPARE_WARM_TURNS)
                                times[at][i - COMPARE_WARM_TURNS] = sides[at]->run_ns;
                }
        return STATUS_OK;
}

Status compare_times(CompareSide *a, CompareSide *b, uint32_t n, int64_t out_ns[2])
{
        CompareSide *const sides[2] = { a, b };
        Frame frames[2];
        _cleanup_(freep) int64_t *times = new_array(2 * (size_t)n, sizeof(*times));
        if (times == NULL)
                return fail_memory();
        for (int at = 0; at < 2; at++) {
                frame_init(&frames[at]);
                sides[at]->frame = &frames[at];
        }
        Status status = take_times(sides, n, (int64_t *const[2]){ times, times + n });
        for (int at = 0; at < 2; at++) {
                sides[at]->frame = NULL;
                frame_deinit(&frames[at]);
                qsort(times + (size_t)at * n, n, sizeof(*times), by_time);
                out_ns[at] = times[(size_t)at * n + n / 2];
        }
        return status;
}

// ---- values ----
static Status copy_leaf(void *context, const Value *leaf, Value *out)
{
        Tensor *copy = NULL;
        if (leaf->kind != VALUE_TENSOR) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        TensorMeta meta = leaf->tensor->meta;
        meta_set_contiguous(&meta);
        TRY(tensor_new(&meta, context, &copy));
        tensor_copy_data(leaf->tensor, copy);
        *out = value_tensor_take(copy);
        return STATUS_OK;
}

static Status add_bytes(void *context, const Value *leaf)
{
        if (leaf->kind == VALUE_TENSOR)
                *(int64_t *)context +=
                        meta_numel(&leaf->tensor->meta) * dtype_info[leaf->tensor->meta.dtype].bytes;
        return STATUS_OK;
}

static int64_t bytes_of(Value value)
{
        int64_t n_bytes = 0;
        (void)value_walk(value, add_bytes, &n_bytes);
        return n_bytes;
}

static Status compare_pair(Walking *it, uint32_t at, Value a, Value b)
{
        CompareRow *row = &it->rows[at];
        _cleanup_(text_deinit) Text message = { 0 };
        TRY(value_close(a, b, it->rule, &it->a->task->ctx, &row->close, &message));
        it->pairs[at].is_done = true;
        if (row->close.close)
                return STATUS_OK;
        row->message = text_take(&message);
        return row->message == NULL ? fail_memory() : STATUS_OK;
}

// ---- value by value ----
static Status keep_pair(Walking *it, Kept *pair, Value value)
{
        int64_t n_bytes = bytes_of(value);
        if (it->n_kept > 0 && it->n_kept_bytes + n_bytes > limits.max_compare_bytes) {
                it->visit.done = true;
                return STATUS_OK;
        }
        TRY(value_map(value, copy_leaf, it->a->task->ctx.budget, &pair->value));
        pair->is_kept = true;
        it->n_kept++;
        it->n_kept_bytes += n_bytes;
        return STATUS_OK;
}

static Status keep(void *context, const Node *node, Value value)
{
        Walking *it = context;
        for (uint32_t at = it->of[0][node->index]; at != 0 && !it->visit.done;
             at = it->pairs[at - 1].next[0]) {
                if (!it->pairs[at - 1].is_done)
                        TRY(keep_pair(it, &it->pairs[at - 1], value));
                it->visit.done |= at == it->n;
        }
        return STATUS_OK;
}

static Status compare_kept(void *context, const Node *node, Value value)
{
        Walking *it = context;
        for (uint32_t at = it->of[1][node->index]; at != 0; at = it->pairs[at - 1].next[1]) {
                Kept *pair = &it->pairs[at - 1];
                if (!pair->is_kept)
                        continue;
                TRY(compare_pair(it, at - 1, pair->value, value));
                value_clear(&pair->value);
                pair->is_kept = false;
                it->visit.done = --it->n_kept == 0;
        }
        return STATUS_OK;
}

static Status compare_sample(void *context, const Node *node, Value value)
{
        Walking *it = context;
        uint32_t at = it->of[0][node->index];
        if (at == 0)
                return STATUS_OK;
        Value sample = { .kind = VALUE_TENSOR, .tensor = (Tensor *)(uintptr_t)it->pairs[at - 1].sample };
        it->visit.done = at == it->n;
        return compare_pair(it, at - 1, value, sample);
}

static Status note_bytes(void *context, const Node *node, Value value)
{
        Walking *it = context;
        for (uint32_t at = it->of[0][node->index]; at != 0; at = it->pairs[at - 1].next[0])
                it->pairs[at - 1].n_bytes = bytes_of(value);
        return STATUS_OK;
}

static Status look_on(Walking *it, CompareSide *side, Status (*see)(void *, const Node *, Value))
{
        Value value = value_none();
        it->visit = (WalkVisit){ .see = see, .context = it };
        it->n_runs++;
        WalkOptions options = { .visit = &it->visit };
        Status status = run_side(side, NULL, &options, &value, NULL);
        value_clear(&value);
        return status;
}

static Status compare_in_step(Walking *it)
{
        for (uint32_t done = 0; done < it->n;) {
                it->n_kept = 0;
                it->n_kept_bytes = 0;
                TRY(look_on(it, it->a, keep));
                uint32_t n = it->n_kept;
                TRY(look_on(it, it->b, compare_kept));
                if (n == 0 || it->n_kept > 0)
                        return fail(STATUS_INTERNAL, "%u of %u values were not compared", it->n_kept, n);
                done += n;
        }
        return STATUS_OK;
}

// ---- in groups, with a compiled side ----
static Status fetch_group(Engine *engine, CompareSide *side, const Node *const *fetch, uint32_t n,
                          bool is_all, Value *out_values)
{
        _cleanup_(program_unrefp) Program *program = NULL;
        Value value = value_none();
        if (side->is_compiled)
                TRY(build(engine, side, fetch, n, is_all, &program));
        WalkOptions options = { .fetch = fetch, .n_fetch = n };
        Status status = run_side(side, program, &options, &value, out_values);
        value_clear(&value);
        return status;
}

static Status compare_fetched(Engine *engine, Walking *it, uint32_t from, uint32_t n)
{
        const Node **fetch = new_array(n, sizeof(*fetch));
        Value *values = new_array((size_t)n * 2, sizeof(*values));
        Status status = fetch == NULL || values == NULL ? fail_memory() : STATUS_OK;
        for (uint32_t i = 0; status == STATUS_OK && i < n; i++)
                fetch[i] = it->pairs[from + i].a;
        if (status == STATUS_OK)
                status = fetch_group(engine, it->a, fetch, n, n == it->n, values);
        for (uint32_t i = 0; status == STATUS_OK && i < n; i++)
                if (it->pairs[from + i].b != NULL)
                        fetch[i] = it->pairs[from + i].b;
        if (status == STATUS_OK && it->b->task != NULL)
                status = fetch_group(engine, it->b, fetch, n, n == it->n, values + n);
        for (uint32_t i = 0; status == STATUS_OK && i < n; i++) {
                Value sample = { .kind = VALUE_TENSOR,
                                 .tensor = (Tensor *)(uintptr_t)it->pairs[from + i].sample };
                status = compare_pair(it, from + i, values[i], it->b->task == NULL ? sample : values[n + i]);
        }
        it->n_runs += it->b->task == NULL ? 1 : 2;
        for (uint32_t i = 0; values != NULL && i < 2 * n; i++)
                value_clear(&values[i]);
        free(values);
        free(fetch);
        return status;
}

static Status compare_in_groups(Engine *engine, Walking *it)
{
        TRY(look_on(it, it->a, note_bytes));
        for (uint32_t from = 0, n; from < it->n; from += n) {
                int64_t n_bytes = it->pairs[from].n_bytes;
                for (n = 1; from + n < it->n; n++) {
                        n_bytes += it->pairs[from + n].n_bytes;
                        if (n_bytes > limits.max_compare_bytes / 2)
                                break;
                }
                TRY(compare_fetched(engine, it, from, n));
        }
        return STATUS_OK;
}

// ---- pairs ----
static Status pair_with_samples(Walking *it, Comparison *out)
{
        const Graph *graph = it->a->task->graph;
        it->pairs = new_array(graph->n_nodes, sizeof(*it->pairs));
        StringMap samples = { 0 };
        Status status = it->pairs == NULL ? fail_memory() : STATUS_OK;
        for (uint32_t i = 0; status == STATUS_OK && i < it->b->n_samples; i++)
                status = string_map_set(&samples, it->b->samples[i].name, it->b->samples[i].tensor, NULL);
        for (uint32_t i = 0; status == STATUS_OK && i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                Tensor *tensor = string_map_get(&samples, node->name);
                if (tensor != NULL && node->op != OP_OUTPUT)
                        it->pairs[it->n++] = (Kept){ .name = node_origin(node), .a = node, .sample = tensor };
        }
        string_map_deinit(&samples);
        (void)out;
        return status;
}

static Status pair_graphs(Walking *it, Comparison *out)
{
        NodePair *pairs = NULL;
        uint32_t n = 0;
        TRY(compare_pairs(it->a->task->graph, it->b->task->graph, &pairs, &n, out));
        it->pairs = new_array(n, sizeof(*it->pairs));
        for (uint32_t i = 0; it->pairs != NULL && i < n; i++)
                it->pairs[it->n++] = (Kept){ .name = pairs[i].name, .a = pairs[i].a, .b = pairs[i].b };
        free(pairs);
        return it->pairs == NULL ? fail_memory() : STATUS_OK;
}

static Status index_pairs(Walking *it, Comparison *out)
{
        it->of[0] = new_array(it->a->task->graph->n_nodes, sizeof(uint32_t));
        it->of[1] = new_array(it->b->task == NULL ? 0 : it->b->task->graph->n_nodes, sizeof(uint32_t));
        out->rows = it->rows = new_array(it->n, sizeof(*it->rows));
        if (it->of[0] == NULL || it->of[1] == NULL || it->rows == NULL)
                return fail_memory();
        out->n_rows = it->n;
        for (uint32_t i = it->n; i-- > 0;) { // backwards: chains are in order
                Kept *pair = &it->pairs[i];
                it->rows[i].a = pair->a;
                it->rows[i].name = pair->name;
                it->rows[i].name_b = pair->b == NULL ? pair->a->name : pair->b->name;
                pair->next[0] = it->of[0][pair->a->index];
                it->of[0][pair->a->index] = i + 1;
                if (pair->b == NULL)
                        continue;
                pair->next[1] = it->of[1][pair->b->index];
                it->of[1][pair->b->index] = i + 1;
        }
        return STATUS_OK;
}

static Status compare_all(Engine *engine, Walking *it)
{
        if (it->n == 0)
                return STATUS_OK;
        if (it->a->is_compiled || it->b->is_compiled)
                return compare_in_groups(engine, it);
        return it->b->task == NULL ? look_on(it, it->a, compare_sample) : compare_in_step(it);
}

Status compare_nodes(Engine *engine, CompareSide *a, CompareSide *b, const CloseRule *rule,
                     Comparison *out_comparison)
{
        Walking it = { .a = a, .b = b, .rule = rule };
        Status status =
                b->task == NULL ? pair_with_samples(&it, out_comparison) : pair_graphs(&it, out_comparison);
        if (status == STATUS_OK)
                status = index_pairs(&it, out_comparison);
        if (status == STATUS_OK)
                status = compare_all(engine, &it);
        for (uint32_t i = 0; it.pairs != NULL && i < it.n; i++)
                value_clear(&it.pairs[i].value);
        free(it.pairs);
        free(it.of[0]);
        free(it.of[1]);
        out_comparison->n_runs = it.n_runs;
        return status;
}

void comparison_deinit(Comparison *comparison)
{
        for (uint32_t i = 0; i < comparison->n_rows; i++)
                free(comparison->rows[i].message);
        free(comparison->rows);
        free(comparison->alone[0]);
        free(comparison->alone[1]);
}
