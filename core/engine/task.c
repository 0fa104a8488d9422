// SPDX-License-Identifier: Apache-2.0
#include "core/engine/task.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "core/base/hash.h"
#include "core/base/limits.h"
#include "core/kernels/reduce/tensor_stats.h"

void run_task_init(RunTask *task)
{
        memset(task, 0, offsetof(RunTask, generator.state));
        task->deadline_ms = limits.run_deadline_ms;
        budget_init(&task->budget, (size_t)limits.max_run_memory);
        run_context_init(&task->ctx);
        task->ctx.budget = &task->budget;
        task->ctx.generator = &task->generator;
}

void run_task_empty(RunTask *task)
{
        run_result_deinit(&task->result);
        planned_run_deinit(&task->plan);
        run_state_clear(&task->state);
        task->ctx.state = NULL;
        for (uint32_t i = 0; i < task->n_inputs; i++)
                value_clear(&task->inputs[i]);
        task->profile = run_profile_unref(task->profile);
        task->graph = graph_unref(task->graph);
        task->authored = graph_unref(task->authored);
}

Status tensor_new_shell(const Tensor *tensor, Budget *budget, Tensor **out_tensor)
{
        _cleanup_(storage_unrefp) Storage *shell = NULL;
        TRY(storage_shell(tensor->storage, budget, &shell));
        return tensor_new_view(shell, &tensor->meta, tensor->offset, out_tensor);
}

void run_task_deinit(RunTask *task)
{
        run_task_empty(task);
        free(task->inputs);
        free(task->user);
        free(task->fetch);
        free(task->asked);
        free(task->kept);
        free(task->mutated);
        free(task->ctx.halt);
        graph_version_unref(task->version);
}

Status run_task_open(RunTask *task)
{
        const Signature *signature = &task->graph->signature;
        uint32_t n = 0;
        task->inputs = new_array(signature->n_inputs, sizeof(*task->inputs));
        task->user = new_array(signature->n_inputs, sizeof(*task->user));
        if (task->inputs == NULL || task->user == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                if (signature->inputs[i].kind != INPUT_STATE)
                        task->user[n++] = &signature->inputs[i];
        for (uint32_t i = 0; i < n; i++)
                task->inputs[i].kind = VALUE_ABSENT;
        task->n_inputs = n;
        return STATUS_OK;
}

Status run_task_fetch(RunTask *task, const Node *node)
{
        TRY(array_reserve(&task->fetch, &task->fetch_capacity, task->n_fetch + 1, sizeof(*task->fetch)));
        task->fetch[task->n_fetch++] = node;
        return STATUS_OK;
}

// ---- derived graphs ----

// Of the nodes that stand for an authored one, the last: it gives the result.
static const Node *standing_for(const Graph *graph, const char *authored)
{
        for (uint32_t i = graph->n_nodes; i-- > 0;)
                if (strcmp(node_origin(graph->nodes[i]), authored) == 0)
                        return graph->nodes[i];
        return NULL;
}

// The call of a child graph may have been inlined: then the node that gave its result.
static const char *name_in_derived(const Graph *graph, const char *authored)
{
        for (uint32_t i = 0; i < graph->n_inlined; i++)
                if (strcmp(graph->inlined[i].authored, authored) == 0)
                        authored = graph->inlined[i].node; // which may be a call that was inlined later
        return authored;
}

static const Node *node_in_derived(const Graph *graph, const char *asked)
{
        const char *authored = name_in_derived(graph, asked);
        for (uint32_t r = 0; r < graph->n_rules; r++)
                for (uint32_t i = 0; i < graph->rules[r].n_hits; i++)
                        if (strcmp(graph->rules[r].hits[i].node, authored) == 0)
                                return graph->rules[r].hits[i].value;
        const Node *node = graph_node(graph, authored);
        return node != NULL ? node : standing_for(graph, authored);
}

static Status derive_fetch(RunTask *task)
{
        task->asked = new_array(task->n_fetch, sizeof(*task->asked));
        if (task->asked == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < task->n_fetch; i++) {
                const char *name = task->fetch[i]->name;
                task->asked[i] = task->fetch[i];
                task->fetch[i] = node_in_derived(task->graph, name);
                if (task->fetch[i] == NULL)
                        return fail(
                                STATUS_VALUE,
                                "\"outputs\" names \"%.64s\", in whose place the rules put no single node",
                                name);
        }
        return STATUS_OK;
}

static Status watch(RunTask *task, const Node *node)
{
        if (node == NULL)
                return STATUS_OK;
        uint32_t n = task->n_fetch + task->n_watched;
        TRY(array_reserve(&task->fetch, &task->fetch_capacity, n + 1, sizeof(*task->fetch)));
        task->fetch[n] = node;
        task->n_watched++;
        return STATUS_OK;
}

static Status derive_watched(RunTask *task)
{
        const Graph *graph = task->graph;
        for (uint32_t r = 0; r < graph->n_rules; r++) {
                const RuleTrace *rule = &graph->rules[r];
                if (rule->halt_on != 0 && task->ctx.halt == NULL &&
                    (task->ctx.halt = calloc(1, sizeof(*task->ctx.halt))) == NULL)
                        return fail_memory();
                for (uint32_t i = 0; i < rule->n_hits; i++) {
                        TRY(watch(task, rule->hits[i].call));
                        TRY(watch(task, rule->hits[i].stats));
                        TRY(watch(task, rule->hits[i].tensor));
                }
        }
        return STATUS_OK;
}

// The derived graph's own inputs, in order, and behind them the hidden ones.
static Status derive_inputs(RunTask *task, ValueSpan hidden)
{
        Value *sent = task->inputs;
        const Input **user = task->user;
        uint32_t n_sent = task->n_inputs;
        task->inputs = NULL;
        task->user = NULL;
        task->n_inputs = 0;
        Status status = run_task_open(task);
        if (status == STATUS_OK && task->n_inputs != n_sent + hidden.n)
                status = fail(STATUS_INTERNAL,
                              "a derived graph takes %u inputs, its base %u and %u hidden ones",
                              task->n_inputs, n_sent, hidden.n);
        for (uint32_t i = 0; i < n_sent; i++) {
                if (status == STATUS_OK)
                        task->inputs[i] = sent[i];
                else
                        value_clear(&sent[i]);
        }
        for (uint32_t i = 0; status == STATUS_OK && i < hidden.n; i++)
                task->inputs[n_sent + i] = value_ref(hidden.items[i]);
        task->n_hidden = hidden.n;
        free(sent);
        free(user);
        return status;
}

Status run_task_derive(RunTask *task, Graph *take_graph, ValueSpan hidden)
{
        task->authored = task->graph;
        task->graph = take_graph;
        TRY(derive_fetch(task));
        TRY(derive_watched(task));
        return derive_inputs(task, hidden);
}

// ---- kept values ----

static bool computes(const Graph *graph, const Node *node)
{
        const Signature *signature = &graph->signature;
        if (node->op != OP_PLACEHOLDER)
                return node_is_call(node);
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                if (signature->inputs[i].placeholder == node)
                        return signature->inputs[i].kind != INPUT_STATE;
        return true;
}

Status run_task_keep(RunTask *task, uint32_t n_nodes)
{
        const Graph *authored = run_task_authored(task);
        uint32_t n = task->n_fetch + task->n_watched;
        task->kept = new_array(n_nodes, sizeof(*task->kept));
        if (task->kept == NULL)
                return fail_memory();
        TRY(array_reserve(&task->fetch, &task->fetch_capacity, n + n_nodes, sizeof(*task->fetch)));
        for (uint32_t i = 0; i < n_nodes; i++) {
                const Node *node = authored->nodes[i];
                const Node *there = !computes(authored, node) ? NULL
                                    : task->authored == NULL  ? node
                                                              : node_in_derived(task->graph, node->name);
                if (there == NULL)
                        continue;
                task->kept[task->n_kept] = node;
                task->fetch[n + task->n_kept++] = there;
        }
        return STATUS_OK;
}

Status run_task_check_kept(const RunTask *task)
{
        const Value *values = task->result.fetched + task->n_fetch + task->n_watched;
        int64_t total = 0;
        for (uint32_t i = 0; i < task->n_kept; i++) {
                const Tensor *tensor = values[i].kind == VALUE_TENSOR ? values[i].tensor : NULL;
                int64_t n = 0;
                if (tensor != NULL)
                        TRY(meta_span(&tensor->meta, &n));
                total += n * (tensor == NULL ? 0 : dtype_info[tensor->meta.dtype].bytes);
                if (total > limits.max_kept_bytes)
                        return fail(STATUS_TOO_LARGE,
                                    "the run's values are more than %lld bytes; it cannot keep them "
                                    "(--max-kept-bytes, FXSERVE_MAX_KEPT_BYTES)",
                                    (long long)limits.max_kept_bytes);
        }
        return STATUS_OK;
}

// ---- mutations ----
static Status add_mutation(RunTask *task, const char *name, const Node *node)
{
        uint32_t n = task->n_fetch + task->n_watched + task->n_kept + task->n_mutated;
        for (uint32_t i = 0; i < task->n_mutated; i++)
                if (strcmp(task->mutated[i], name) == 0)
                        return STATUS_OK; // an output of the export says it
        if (task->authored != NULL)
                node = node_in_derived(task->graph, node->name);
        if (node == NULL)
                return fail(STATUS_VALUE,
                            "the rules put no single node in the place of what \"%.100s\" holds", name);
        TRY(array_reserve(&task->fetch, &task->fetch_capacity, n + 1, sizeof(*task->fetch)));
        task->fetch[n] = node;
        task->mutated[task->n_mutated++] = name;
        return STATUS_OK;
}

// Tied entries of the state share what one of them is written.
static bool is_written(const Graph *graph, const Input *input)
{
        const Signature *signature = &graph->signature;
        const State *state = input->kind == INPUT_STATE ? graph_state(graph, input->path) : NULL;
        bool written = input->written;
        for (uint32_t i = 0; state != NULL && i < signature->n_inputs && !written; i++) {
                const Input *other = &signature->inputs[i];
                const State *tied =
                        other->written && other->kind == INPUT_STATE ? graph_state(graph, other->path) : NULL;
                written = tied != NULL && tied->tensor->storage == state->tensor->storage;
        }
        return written;
}

// Calls of operators alone: methods and modules do not say what they write.
static bool is_plain_export(const Graph *graph)
{
        bool plain = graph->format == GRAPH_PT2;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                plain = plain && graph->nodes[i]->op != OP_CALL_METHOD &&
                        graph->nodes[i]->op != OP_CALL_MODULE;
        return plain;
}

static Status open_mutations(RunTask *task)
{
        const Signature *signature = &run_task_authored(task)->signature;
        if (task->mutated == NULL)
                task->mutated = new_array(signature->n_inputs + signature->n_outputs, sizeof(*task->mutated));
        return task->mutated == NULL ? fail_memory() : STATUS_OK;
}

Status run_task_keep_state(RunTask *task)
{
        const Signature *signature = &task->graph->signature;
        TRY(open_mutations(task));
        task->keeps_state = true;
        for (uint32_t i = 0; i < signature->n_outputs; i++) {
                const Output *output = &signature->outputs[i];
                if (output->kind == OUTPUT_STATE_MUTATION && output->arg.kind == VALUE_NODE)
                        TRY(add_mutation(task, output->target, output->arg.node));
        }
        return STATUS_OK;
}

Status run_task_mutations(RunTask *task)
{
        const Graph *authored = run_task_authored(task);
        const Signature *signature = &authored->signature;
        if (!is_plain_export(authored))
                return fail(STATUS_UNSUPPORTED,
                            "\"mutations\": this graph is no export, which says what it writes; "
                            "name the nodes in \"outputs\" whose values are wanted");
        TRY(open_mutations(task));
        for (uint32_t i = 0; i < signature->n_outputs; i++) {
                const Output *output = &signature->outputs[i];
                if (output->kind != OUTPUT_USER && output->arg.kind == VALUE_NODE)
                        TRY(add_mutation(task, output->target, output->arg.node));
        }
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                const char *name = input->kind == INPUT_STATE ? input->path : input->placeholder->target;
                if (is_written(authored, input))
                        TRY(add_mutation(task, name, input->placeholder));
        }
        return STATUS_OK;
}

Status run_task_enter(RunTask *task, const Session *session)
{
        uint32_t n = session_n(session);
        task->state.after = new_array(n, sizeof(*task->state.after));
        if (task->state.after == NULL)
                return fail_memory();
        task->state.n = n;
        task->state.now = session_now(session);
        task->ctx.state = &task->state;
        if (!task->generator.seeded)
                generator_copy(&task->generator, session_generator(session));
        return STATUS_OK;
}

// Whether the value's storage can take the place of the entry's.
static bool is_whole(const Tensor *value, const Tensor *entry, size_t n_bytes)
{
        const Storage *storage = value->storage;
        return storage->n_bytes == n_bytes && !storage->readonly && storage->origin == NULL &&
               storage->release == NULL && value->offset == entry->offset &&
               meta_same_places(&value->meta, &entry->meta) &&
               (size_t)meta_numel(&entry->meta) * dtype_info[entry->meta.dtype].bytes == n_bytes;
}

// An output that an export puts into its state: the entry's storage with the new value.
static Status leave_output(RunTask *task, const char *path, const Value *value)
{
        const State *entry = graph_state(task->graph, path);
        RunState *state = &task->state;
        uint32_t number = entry == NULL ? state->n : state_number(task->graph, entry->tensor->storage);
        if (number >= state->n || value->kind != VALUE_TENSOR)
                return fail(STATUS_INTERNAL, "the run leaves no tensor in %.100s", path);
        Storage *from = state->after[number] != NULL ? state->after[number]
                                                     : state_now(state, number, entry->tensor->storage);
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        _cleanup_(tensor_unrefp) Tensor *target = NULL;
        const TensorMeta *meta = &entry->tensor->meta;
        if (value->tensor->meta.dtype != meta->dtype || !meta_same_shape(&value->tensor->meta, meta))
                return fail(STATUS_SHAPE, "the run leaves another shape or dtype in %.100s", path);
        if (is_whole(value->tensor, entry->tensor, from->n_bytes)) {
                storage_unref(state->after[number]);
                state->after[number] = storage_ref(value->tensor->storage);
                return STATUS_OK;
        }
        TRY(storage_new(from->n_bytes, false, &task->budget, &storage));
        if (from->n_bytes > 0)
                memcpy(storage->data, from->data, from->n_bytes);
        TRY(tensor_new_view(storage, meta, entry->tensor->offset, &target));
        tensor_copy_data(value->tensor, target);
        storage_unref(state->after[number]);
        state->after[number] = take_ptr(storage);
        return STATUS_OK;
}

static bool is_left(const Graph *graph, const char *path)
{
        for (uint32_t i = 0; i < graph->signature.n_outputs; i++) {
                const Output *output = &graph->signature.outputs[i];
                if (output->kind == OUTPUT_STATE_MUTATION && strcmp(output->target, path) == 0)
                        return true;
        }
        return false;
}

Status run_task_commit(RunTask *task, Session *session)
{
        const Value *values = run_task_mutated(task);
        for (uint32_t i = 0; i < task->n_mutated; i++)
                if (is_left(task->graph, task->mutated[i]))
                        TRY(leave_output(task, task->mutated[i], &values[i]));
        TRY(run_poll(&task->ctx));
        return session_commit(session, &task->state, task->generator.started ? &task->generator : NULL);
}

const Value *run_task_mutated(const RunTask *task)
{
        return task->result.fetched + task->n_fetch + task->n_watched + task->n_kept;
}

// ---- binding ----

// Ends a description that was cut with digits of all of it, so that no two are taken for one.
static void end_cut_description(const RunTask *task, char *out, size_t capacity)
{
        Sha256 sha;
        sha256_start(&sha);
        for (uint32_t i = 0; i < task->n_inputs - task->n_hidden; i++) {
                const Value *value = &task->inputs[i];
                const TensorMeta *meta = value->kind == VALUE_TENSOR ? &value->tensor->meta : NULL;
                int32_t kind[3] = { (int32_t)value->kind, meta == NULL ? 0 : (int32_t)meta->dtype,
                                    meta == NULL ? 0 : meta->rank };
                sha256_add(&sha, kind, sizeof(kind));
                if (meta != NULL)
                        sha256_add(&sha, meta->size, (size_t)meta->rank * sizeof(meta->size[0]));
        }
        HashHex hash = sha256_finish(&sha);
        char end[24];
        int n = snprintf(end, sizeof(end), "… #%.12s", hash.hex);
        size_t at = capacity - 1 - (size_t)n;
        while (at > 0 && ((unsigned char)out[at] & 0xc0) == 0x80) // within a character of a name
                at--;
        memcpy(out + at, end, (size_t)n + 1);
}

// For the profile: "x: float32[1, 10], n: int".
static void describe_inputs(const RunTask *task, char *out, size_t capacity)
{
        size_t n = 0;
        for (uint32_t i = 0; i < task->n_inputs - task->n_hidden && n < capacity; i++) {
                const Value *value = &task->inputs[i];
                const char *separator = i == 0 ? "" : ", ", *name = task->user[i]->placeholder->name;
                char shape[128];
                if (value->kind == VALUE_TENSOR)
                        n += (size_t)snprintf(out + n, capacity - n, "%s%s: %s%s", separator, name,
                                              dtype_info[value->tensor->meta.dtype].name,
                                              shape_text(value->tensor->meta.rank, value->tensor->meta.size,
                                                         shape, sizeof(shape)));
                else if (value->kind != VALUE_ABSENT)
                        n += (size_t)snprintf(out + n, capacity - n, "%s%s: %s", separator, name,
                                              value_kind_name(value->kind));
        }
        if (n >= capacity)
                end_cut_description(task, out, capacity);
}

Status run_task_bind(RunTask *task)
{
        RunRequest request = { .inputs = { task->inputs, task->n_inputs },
                               .fetch = task->fetch,
                               .n_fetch = task->n_fetch + task->n_watched + task->n_kept + task->n_mutated,
                               .mode = task->mode,
                               .precision = task->precision,
                               .bucket = task->bucket,
                               .version = task->version,
                               .poll = &task->ctx };
        TRY(run_profile_new(task->graph, task->graph->n_nodes, &task->profile));
        describe_inputs(task, task->profile->signature, sizeof(task->profile->signature));
        task->plan.n_threads = task->ctx.n_threads;
        task->plan.keeps_state = task->keeps_state;
        return engine_bind(task->graph, &request, &task->plan);
}

Status run_task_execute(RunTask *task, Frame *frame)
{
        if (task->ran)
                return STATUS_OK;
        return engine_execute(&task->plan, &task->ctx, frame, task->profile, &task->result);
}
