// SPDX-License-Identifier: Apache-2.0
// record.c: specialising. The walk is eval's own; tensors in it are live ones as in an eager run,
// on storages that stand for buffers without bytes. Views share the storage, in-place twins are
// checked by the same code as eagerly, so that aliasing while recording is the aliasing of the run.
// Whoever asks for a number that no buffer holds yet gets STATUS_DYNAMIC.
//
// A live tensor may change under our hands (`unsqueeze_` changes its meta), a Recorded may not:
// calls point to Recorded values, and a live tensor whose geometry has moved away from its value
// gets a new one, by as_strided.
#include "core/compile/recorder.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/compile/split.h"
#include "core/ops/inplace.h"
#include "core/ops/write.h"

// ---- live tensors and their values ----
Status recorder_live_tensor(const Recorded *value, Tensor **out_tensor)
{
        TRY(tensor_new_view(value->tensor.storage, &value->tensor.meta, value->tensor.offset, out_tensor));
        (*out_tensor)->tag = (Tag *)(uintptr_t)&value->tag;
        return STATUS_OK;
}

static bool same_geometry(const Tensor *a, const Tensor *b)
{
        size_t bytes = a->meta.rank * sizeof(int64_t);
        return a->offset == b->offset && a->meta.dtype == b->meta.dtype && a->meta.rank == b->meta.rank &&
               memcmp(a->meta.size, b->meta.size, bytes) == 0 &&
               memcmp(a->meta.stride, b->meta.stride, bytes) == 0;
}

static void drop_values(const Value *take_values, size_t n)
{
        for (size_t i = 0; i < n; i++)
                value_unref(take_values[i]);
}

static Status add_call(Recorder *recorder, const OpCall *call, Value *take_args, RecordedCall **out_call)
{
        if (recorder->recording->n_calls >= recorder->max_calls) {
                drop_values(take_args, call->n_args);
                return fail(STATUS_DYNAMIC, "the graph unrolls to more than %u calls", recorder->max_calls);
        }
        TRY(recording_add_call(recorder->recording, call, take_args, out_call));
        return recorder->base.node == NULL
                       ? STATUS_OK
                       : recording_add_node(recorder->recording, *out_call, recorder->base.node);
}

// A value of the geometry of `tensor`, made from `from`, which has the same storage.
static Status add_restrided(Recorder *recorder, const Tensor *tensor, Recorded *from, Recorded **out_value)
{
        const Overload *overload = op_for(ROLE_AS_STRIDED);
        OpCall call;
        Value args[4] = { value_ref((Value){ .kind = VALUE_TENSOR, .tensor = &from->tensor }), value_none(),
                          value_none(), value_int(tensor->offset) };
        Status status = value_ints_new(VALUE_LIST, tensor->meta.size, tensor->meta.rank, &args[1]);
        if (status == STATUS_OK)
                status = value_ints_new(VALUE_LIST, tensor->meta.stride, tensor->meta.rank, &args[2]);
        if (status == STATUS_OK)
                status = call_open(&recorder->base, overload, args, 15, &call);
        if (status != STATUS_OK) {
                drop_values(args, ARRAY_LENGTH(args));
                return status;
        }
        RecordedCall *added = NULL;
        status = out_view(&call, 0, 0, &tensor->meta, tensor->offset);
        if (status == STATUS_OK)
                status = add_call(recorder, &call, args, &added);
        else
                drop_values(args, ARRAY_LENGTH(args));
        call_close(&call);
        TRY(status);
        TRY(recording_add_value(recorder->recording, FROM_CALL, tensor->storage, &tensor->meta,
                                tensor->offset, out_value));
        (*out_value)->call = added;
        added->outs[0] = *out_value;
        return STATUS_OK;
}

// The value that a live tensor stands for now. Tensors nobody told us of are literals, or views an
// expansion made by itself.
static Status value_of(Recorder *recorder, Tensor *tensor, Recorded **out_value)
{
        Recorded *value = recorded_of(tensor);
        if (value != NULL && value->tensor.storage == tensor->storage &&
            same_geometry(&value->tensor, tensor)) {
                *out_value = value;
                return STATUS_OK;
        }
        if (tensor->storage == NULL)
                return fail(STATUS_INTERNAL, "a tensor without storage in a recording");
        if (value == NULL && tensor_is_known(tensor))
                return recording_add_value(recorder->recording, FROM_LITERAL, tensor->storage, &tensor->meta,
                                           tensor->offset, out_value);
        if (value == NULL || value->tensor.storage != tensor->storage)
                value = tensor_is_known(tensor) ? NULL : buffer_of(tensor->storage)->base;
        if (value == NULL)
                return fail(STATUS_INTERNAL, "a tensor of unknown origin in a recording");
        TRY(add_restrided(recorder, tensor, value, &value));
        tensor->tag = &value->tag;
        *out_value = value;
        return STATUS_OK;
}

static Status leaf_value(void *context, const Value *leaf, Value *out)
{
        *out = *leaf;
        if (leaf->kind == VALUE_TENSOR) {
                Recorded *value;
                TRY(value_of(context, leaf->tensor, &value));
                out->tensor = &value->tensor;
        }
        value_ref(*out);
        return STATUS_OK;
}

// ---- calls ----
// Numbers that a tensor holds are baked into the call, so they must be known.
static Status check_number(const OpCall *call, uint32_t i, const Value *value)
{
        if (value->kind == VALUE_DYNAMIC || (value->kind == VALUE_TENSOR && !tensor_is_known(value->tensor)))
                return fail(STATUS_DYNAMIC, "the value of argument '%s' of %s is not known before the run",
                            call->schema->args[i].name, call->schema->name);
        return STATUS_OK;
}

static Status check_numbers(Emitter *emitter, const OpCall *call)
{
        (void)emitter;
        for (uint32_t i = 0; i < call->n_args; i++) {
                const Value *value = &call->args[i];
                ArgType type = call->schema->args[i].type;
                if (type == ARG_TENSOR ||
                    (type == ARG_ANY &&
                     call->op->expand != NULL)) // an expansion looks for itself what it is given
                        continue;
                TRY(check_number(call, i, value));
                for (uint32_t k = 0; value_is_sequence(*value) && k < value->seq->n; k++)
                        TRY(check_number(call, i, &value->seq->items[k]));
        }
        return STATUS_OK;
}

static bool is_number_buffer(const Recording *recording, const Buffer *buffer)
{
        return buffer->kind == BUFFER_INPUT && buffer->input >= recording->n_tensor_inputs;
}

static Status check_written(const Recording *recording, const OpCall *call, const Tensor *self)
{
        Buffer *buffer = self->storage == NULL ? NULL : buffer_of(self->storage);
        if (buffer == NULL)
                return fail(STATUS_DYNAMIC, "%s writes to a constant",
                            call == NULL ? "an assignment" : call->schema->name);
        if (is_number_buffer(recording, buffer))
                return fail(STATUS_DYNAMIC, "%s writes to a number",
                            call == NULL ? "an assignment" : call->schema->name);
        buffer->written = true;
        return STATUS_OK;
}

static Status fresh_buffer(Recorder *recorder, const TensorMeta *meta, Buffer **out_buffer)
{
        int64_t n_elements, n_bytes;
        TRY(meta_span(meta, &n_elements));
        if (!mul_i64(n_elements, dtype_info[meta->dtype].bytes, &n_bytes) || n_bytes > limits.max_run_memory)
                return fail(STATUS_TOO_LARGE, "a tensor of %lld elements is over --max-run-memory",
                            (long long)n_elements);
        return recording_add_buffer(recorder->recording, BUFFER_RUN, (size_t)n_bytes, out_buffer);
}

Status recorder_unknown(Recorder *recorder, const TensorMeta *meta, Tensor **out_tensor)
{
        Buffer *buffer;
        Recorded *value;
        TRY(fresh_buffer(recorder, meta, &buffer));
        TRY(recording_add_value(recorder->recording, FROM_CALL, buffer->storage, meta, 0, &value));
        return recorder_live_tensor(value, out_tensor);
}

// The live tensor of output k and, when the call makes it, its value (call and place are filled in
// by the caller).
static Status make_out(Recorder *recorder, const OpCall *call, const OutSpec *spec, Tensor **out_tensor,
                       Recorded **out_value)
{
        Buffer *buffer;
        switch (spec->kind) {
        case OUT_FRESH:
                if (spec->undefined)
                        return STATUS_OK;
                TRY(fresh_buffer(recorder, &spec->meta, &buffer));
                TRY(recording_add_value(recorder->recording, FROM_CALL, buffer->storage, &spec->meta, 0,
                                        out_value));
                return recorder_live_tensor(*out_value, out_tensor);
        case OUT_VIEW:
                TRY(recording_add_value(recorder->recording, FROM_CALL, call->args[spec->arg].tensor->storage,
                                        &spec->meta, spec->offset, out_value));
                return recorder_live_tensor(*out_value, out_tensor);
        case OUT_SAME:
                *out_tensor = tensor_ref(call->args[spec->arg].tensor);
                return value_of(recorder, *out_tensor, out_value);
        case OUT_VALUE:
                return STATUS_OK;
        case OUT_UNSET:
                break;
        }
        return fail(STATUS_INTERNAL, "%s: infer left an output open", call->schema->name);
}

static Status snapshot_args(Recorder *recorder, const OpCall *call, Value *out_args)
{
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (; n < call->n_args && status == STATUS_OK; n++) {
                out_args[n] = value_none();
                status = value_map(call->args[n], leaf_value, recorder, &out_args[n]);
        }
        for (uint32_t i = 0; i < n && status != STATUS_OK; i++)
                value_clear(&out_args[i]);
        return status;
}

static Status record_call(Recorder *recorder, OpCall *call, bool computes, Recorded **values)
{
        Value args[SCHEMA_MAX_ARGS];
        RecordedCall *added;
        TRY(snapshot_args(recorder, call, args));
        TRY(add_call(recorder, call, args, &added));
        added->computes = computes && call->op->run != NULL;
        for (uint32_t k = 0; k < call->n_outs; k++) {
                added->outs[k] = values[k];
                if (values[k] != NULL && values[k]->from == FROM_CALL && values[k]->call == NULL) {
                        values[k]->call = added;
                        values[k]->out = k;
                }
        }
        return STATUS_OK;
}

static Status record_outs(Recorder *recorder, OpCall *call, Tensor **tensors, Recorded **values, Value *out)
{
        bool computes = call->inplace || call->n_outs == 0, views = false;
        if (call->inplace) {
                TRY(check_written(recorder->recording, call, call->args[0].tensor));
                tensors[0] = tensor_ref(call->args[0].tensor);
                TRY(value_of(recorder, tensors[0], &values[0]));
        } else {
                for (uint32_t k = 0; k < call->n_outs; k++) {
                        TRY(make_out(recorder, call, &call->outs[k], &tensors[k], &values[k]));
                        computes |= call->outs[k].kind == OUT_FRESH;
                        views |= call->outs[k].kind == OUT_VIEW;
                }
        }
        if (computes || views)
                TRY(record_call(recorder, call, computes, values));
        return call_outs_take(call, tensors, out);
}

static Status record_op(Emitter *emitter, OpCall *call, Value *out)
{
        Recorder *recorder = recorder_of(emitter);
        TRY(run_poll(recorder->poll));
        if (recorder->recording->n_values >= recorder->max_values)
                return fail(STATUS_DYNAMIC, "the graph makes more than %u values", recorder->max_values);
        size_t n = call->n_outs;
        _cleanup_(freep) void **block = new_array(n, 2 * sizeof(void *));
        if (block == NULL)
                return fail_memory();
        Tensor **tensors = (Tensor **)block;
        Status status = record_outs(recorder, call, tensors, (Recorded **)(block + n), out);
        for (size_t k = 0; k < n; k++)
                tensor_unref(tensors[k]);
        return status;
}

// ---- writes ----
static Status record_copy(Recorder *recorder, Tensor *to, Tensor *from)
{
        OpCall call;
        Value args[3] = { { .kind = VALUE_TENSOR, .tensor = to },
                          { .kind = VALUE_TENSOR, .tensor = from },
                          value_bool(false) };
        TRY(call_open(&recorder->base, op_for(ROLE_WRITE), args, 3, &call));
        call.op = &write_op;
        Recorded *self;
        Status status = out_same(&call, 0, 0);
        if (status == STATUS_OK)
                status = value_of(recorder, to, &self);
        if (status == STATUS_OK)
                status = record_call(recorder, &call, true, &self);
        call_close(&call);
        return status;
}

static Status record_write(Emitter *emitter, Tensor *to, const Tensor *from)
{
        Recorder *recorder = recorder_of(emitter);
        int rank;
        int64_t size[MAX_RANK];
        TRY(run_poll(recorder->poll));
        TRY(inplace_check_internal_overlap(&to->meta));
        TRY(shape_broadcast(&to->meta, &from->meta, &rank, size));
        TensorMeta wanted;
        meta_init(&wanted, to->meta.dtype, rank, size);
        TRY(inplace_check_write(to, &wanted));
        Overlap overlap = tensor_overlap(to, from);
        if (overlap == OVERLAP_FULL)
                return STATUS_OK;
        TRY(check_written(recorder->recording, NULL, to));
        Tensor *source = (Tensor *)(uintptr_t)from;
        if (overlap == OVERLAP_NONE)
                return record_copy(recorder, to, source);
        _cleanup_(value_clear) Value copy = value_none();
        Value args[] = { { .kind = VALUE_TENSOR, .tensor = source }, value_none() };
        TRY(emit(emitter, op_for(ROLE_CLONE), args, 1, &copy));
        return record_copy(recorder, to, copy.tensor);
}

// ---- state ----
// The storage that stands for `origin`: tied entries share it.
static Status state_storage(Recorder *recorder, Storage *origin, Storage **out_storage)
{
        Recording *recording = recorder->recording;
        for (uint32_t i = 0; i < recording->n_buffers; i++) {
                if (recording->buffers[i]->origin == origin) {
                        *out_storage = recording->buffers[i]->storage;
                        return STATUS_OK;
                }
        }
        Buffer *buffer;
        TRY(recording_add_buffer(recording, BUFFER_STATE, origin->n_bytes, &buffer));
        buffer->origin = storage_ref(origin);
        *out_storage = buffer->storage;
        return STATUS_OK;
}

static Status record_state(Emitter *emitter, const Graph *graph, const char *path, Value *out)
{
        Recorder *recorder = recorder_of(emitter);
        const State *state = graph_state(graph, path);
        if (state == NULL) {
                const Module *module = graph_module(graph, path);
                if (module == NULL || module->graph == NULL)
                        return fail(STATUS_RUN, "Node referenced nonexistent target %s", path);
                *out = (Value){ .kind = VALUE_GRAPH, .graph = module->graph };
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < recorder->n_views; i++) {
                if (recorder->views[i].entry == state->tensor) {
                        *out = value_tensor_take(tensor_ref(recorder->views[i].seen));
                        return STATUS_OK;
                }
        }
        TRY(array_reserve(&recorder->views, &recorder->views_capacity, recorder->n_views + 1,
                          sizeof(*recorder->views)));
        Storage *storage = state->tensor->storage;
        if (storage == NULL)
                return fail(STATUS_DYNAMIC, "the state %s has no bytes", path);
        if (state->written || recorder->state_unknown)
                TRY(state_storage(recorder, storage, &storage));
        Recorded *value;
        Tensor *seen;
        TRY(recording_add_value(recorder->recording, FROM_STATE, storage, &state->tensor->meta,
                                state->tensor->offset, &value));
        value->path = value->name = state->path;
        TRY(recorder_live_tensor(value, &seen));
        recorder->views[recorder->n_views++] = (StateView){ .entry = state->tensor, .seen = seen };
        *out = value_tensor_take(tensor_ref(seen));
        return STATUS_OK;
}

// ---- child graphs ----
static Status record_child(Emitter *emitter, const Graph *graph, ValueSpan inputs, Value *out)
{
        TRY(run_poll(recorder_of(emitter)->poll));
        if (emitter->depth >= limits.max_child_graphs)
                return fail(STATUS_RUN, "child graphs are nested deeper than %d levels",
                            (int)limits.max_child_graphs);
        const Graph *outer = emitter->graph;
        emitter->graph = graph;
        emitter->depth++;
        WalkOptions options = { .inputs = inputs };
        Status status = walk_graph(emitter, graph, &options, out, NULL);
        emitter->depth--;
        emitter->graph = outer;
        return status;
}

static Status record_cond(Emitter *emitter, Value predicate, const Graph *if_true, const Graph *if_false,
                          ValueSpan operands, Value *out)
{
        if (predicate.kind == VALUE_BOOL || predicate.kind == VALUE_INT)
                return record_child(
                        emitter,
                        (predicate.kind == VALUE_BOOL ? predicate.b : predicate.i != 0) ? if_true : if_false,
                        operands, out);
        return fail(STATUS_DYNAMIC, "which branch is taken is not known before the run");
}

static Status record_loop(Emitter *emitter, const Graph *condition, const Graph *body, ValueSpan carried,
                          ValueSpan additional, Value *out)
{
        (void)emitter, (void)condition, (void)body, (void)carried, (void)additional, (void)out;
        return fail(STATUS_DYNAMIC, "how often a loop runs is not known before the run");
}

static const EmitterVtbl recorder_vtbl = {
        .number = record_number,
        .number_read = record_number_read,
        .check = check_numbers,
        .op = record_op,
        .write = record_write,
        .state = record_state,
        .call = record_child,
        .cond = record_cond,
        .loop = record_loop,
};

// ---- inputs and results ----
typedef struct InputLeaves {
        Recorder *recorder;
        const char *name;
} InputLeaves;

static Status input_leaf(void *context, const Value *leaf, Value *out)
{
        const InputLeaves *leaves = context;
        Recorder *recorder = leaves->recorder;
        Recording *recording = recorder->recording;
        if (leaf->kind != VALUE_TENSOR) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        int64_t n_elements;
        Buffer *buffer;
        Recorded *value;
        Tensor *tensor;
        TensorMeta meta = leaf->tensor->meta;
        TRY(meta_span(&meta, &n_elements));
        TRY(array_reserve(&recording->inputs, &recording->inputs_capacity, recording->n_inputs + 1,
                          sizeof(Recorded *)));
        TRY(recording_add_buffer(recording, BUFFER_INPUT, (size_t)(n_elements * dtype_info[meta.dtype].bytes),
                                 &buffer));
        TRY(recording_add_value(recording, FROM_INPUT, buffer->storage, &meta, 0, &value));
        value->input = buffer->input = recording->n_inputs;
        value->name = leaves->name;
        recording->inputs[recording->n_inputs++] = value;
        TRY(recorder_live_tensor(value, &tensor));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

static Status record_inputs(Recorder *recorder, const Graph *graph, ValueSpan inputs, Value *out_inputs)
{
        uint32_t at = 0;
        for (uint32_t i = 0; i < graph->n_nodes && at < inputs.n; i++) {
                if (graph->nodes[i]->op != OP_PLACEHOLDER)
                        continue;
                InputLeaves leaves = { .recorder = recorder, .name = graph->nodes[i]->name };
                TRY(value_map(inputs.items[at], input_leaf, &leaves, &out_inputs[at]));
                if (at < OPEN_MAX && (recorder->open >> at & 1) != 0)
                        out_inputs[at].tag = at + 1; // record_number.c
                at++;
        }
        recorder->recording->n_tensor_inputs = recorder->recording->n_inputs;
        return STATUS_OK;
}

static Status mark_output(void *context, Recorded *value)
{
        if (recorded_is_constant(value))
                return STATUS_OK;
        if (is_number_buffer(context, recorded_buffer(value)))
                return fail(STATUS_DYNAMIC, "a result stands on the bytes of a number");
        recorded_buffer(value)->is_output = true;
        return STATUS_OK;
}

// With a dynamic rest the result is what the rest takes from the calls; the rest makes the graph's
// own.
static Status keep_for_rest(Recorder *recorder, Split *split)
{
        ValueSpan values;
        Seq *seq;
        TRY(split_finish(split, recorder->recording, &values));
        TRY(seq_new(values.n, &seq));
        recorder->recording->result = value_seq_take(VALUE_TUPLE, seq);
        for (uint32_t i = 0; i < values.n; i++)
                TRY(value_map(values.items[i], leaf_value, recorder, &seq->items[i]));
        return recording_visit_results(recorder->recording, mark_output, recorder->recording);
}

static Status keep_results(Recorder *recorder, Value result, const Value *fetched, uint32_t n_fetched)
{
        Recording *recording = recorder->recording;
        TRY(value_map(result, leaf_value, recorder, &recording->result));
        recording->fetched = arena_array(&recording->arena, n_fetched, sizeof(Value));
        if (recording->fetched == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n_fetched; i++) {
                TRY(value_map(fetched[i], leaf_value, recorder, &recording->fetched[i]));
                recording->n_fetched++;
        }
        return recording_visit_results(recording, mark_output, recording);
}

// Readers mark the whole state when a graph writes to some of it; what no call writes is constant
// after all.
static void settle_state(Recording *recording)
{
        for (uint32_t i = 0; i < recording->n_values; i++) {
                Tensor *tensor = &recording->values[i]->tensor;
                const Buffer *buffer = buffer_of(tensor->storage);
                if (buffer == NULL || buffer->kind != BUFFER_STATE || buffer->written)
                        continue;
                Storage *origin = storage_ref(buffer->origin);
                storage_unref(tensor->storage);
                tensor->storage = origin;
        }
}

static bool is_ours(Status status)
{
        return status_class(status) != STATUS_CLASS_CALLER || status == STATUS_CANCELLED ||
               status == STATUS_DEADLINE;
}

// State that a call turned in place (`t_`) is not what the rest would find.
static Status check_state_views(const Recorder *recorder, const Split *split)
{
        for (uint32_t i = 0; i < recorder->n_views && !split_is_whole(split); i++) {
                const StateView *view = &recorder->views[i];
                if (!same_geometry(view->entry, view->seen))
                        return fail(
                                STATUS_DYNAMIC,
                                "state changes its geometry in place beside nodes that run on real numbers");
        }
        return STATUS_OK;
}

static Status walk_and_keep(Recorder *recorder, const Graph *graph, const RecordOptions *options,
                            Split *split, Value *inputs, Value *fetched, bool *out_again)
{
        WalkOptions walk = { .inputs = { inputs, options->inputs.n },
                             .fetch = options->fetch,
                             .n_fetch = options->n_fetch,
                             .split = split_walk(split) };
        _cleanup_(value_clear) Value result = value_none();
        Status status = walk_graph(&recorder->base, graph, &walk, &result, fetched);
        recorder->base.node = NULL;
        for (uint32_t i = 0; i < options->n_fetch && status == STATUS_OK && !split_is_whole(split); i++)
                status = split_keep(split, options->fetch[i], fetched[i]);
        if (status == STATUS_OK ||
            (!is_ours(status) &&
             split_gave_up(split))) // half of a node may stand in the way of those after it
                status = split_settle(split, out_again);
        if (status == STATUS_OK && !*out_again)
                status = check_state_views(recorder, split);
        if (status == STATUS_OK && !*out_again)
                status = split_is_whole(split) ? keep_results(recorder, result, fetched, options->n_fetch)
                                               : keep_for_rest(recorder, split);
        for (uint32_t i = 0; i < options->n_fetch; i++)
                value_clear(&fetched[i]);
        TRY(status);
        settle_state(recorder->recording);
        return STATUS_OK;
}

static Status record_walk(Recorder *recorder, const Graph *graph, const RecordOptions *options, Split *split,
                          bool *out_again)
{
        uint32_t n = options->inputs.n;
        _cleanup_(freep) Value *inputs = new_array((size_t)n + options->n_fetch, sizeof(Value));
        if (inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++)
                inputs[i].kind = VALUE_ABSENT;
        Status status = record_inputs(recorder, graph, options->inputs, inputs);
        if (status == STATUS_OK)
                status = walk_and_keep(recorder, graph, options, split, inputs, inputs + n, out_again);
        for (uint32_t i = 0; i < n; i++)
                value_unref(inputs[i]);
        return status;
}

void recorder_init(Recorder *recorder, Recording *recording, const RunContext *poll)
{
        *recorder = (Recorder){ .poll = poll,
                                .recording = recording,
                                .max_calls = (uint32_t)limits.max_nodes,
                                .max_values = UINT32_MAX };
        run_context_within(&recorder->ctx, poll);
        recorder->ctx.budget = NULL;
        recorder->ctx.pool = NULL;
        recorder->base =
                (Emitter){ .vtbl = &recorder_vtbl, .ctx = &recorder->ctx, .graph = recording->graph };
}

void recorder_deinit(Recorder *recorder)
{
        for (uint32_t i = 0; i < recorder->n_views; i++)
                tensor_unref(recorder->views[i].seen);
        free(recorder->views);
        for (uint32_t i = 0; i < OPEN_MAX; i++)
                tensor_unref(recorder->numbers[i]);
}

static Status record_once(const Graph *graph, const RecordOptions *options, const RunContext *poll,
                          uint64_t open, Split *split, bool *out_again, Recording **out_recording)
{
        _cleanup_(recording_freep) Recording *recording = NULL;
        TRY(recording_new(graph, &recording));
        Recorder recorder;
        recorder_init(&recorder, recording, poll);
        recorder.open = open;
        recorder.base.open_numbers = open != 0;
        if (options->max_calls != 0)
                recorder.max_calls = options->max_calls;
        split_start(split, recording);
        Status status = record_walk(&recorder, graph, options, split, out_again);
        split_start(split, NULL); // it may hold tensors of the recording
        recorder_deinit(&recorder);
        TRY(status);
        recording->by_value = ~(open & ~recorder.read);
        *out_recording = take_ptr(recording);
        return STATUS_OK;
}

// Every attempt leaves more nodes to the rest than the one before. Few are needed: those that ask
// for numbers are found in the first, those that come too near to them in the second.
enum { MAX_ATTEMPTS = 12 };

static Status record_split(const Graph *graph, const RecordOptions *options, const RunContext *poll,
                           uint64_t open, bool *out_closed, Recording **out_recording)
{
        _cleanup_(split_freep) Split *split = NULL;
        TRY(split_new(graph, poll, &split));
        for (int i = 0; i < MAX_ATTEMPTS; i++) {
                _cleanup_(recording_freep) Recording *recording = NULL;
                bool again = false;
                Status status = record_once(graph, options, poll, open, split, &again, &recording);
                if (open != 0 && ((status != STATUS_OK && !is_ours(status)) || split_asks_number(split))) {
                        *out_closed = true;
                        return STATUS_OK;
                }
                TRY(status);
                if (again)
                        continue;
                *out_recording = take_ptr(recording);
                return STATUS_OK;
        }
        return fail(STATUS_DYNAMIC, "too much of the graph depends on numbers that only a run knows");
}

Status record_graph(const Graph *graph, const RecordOptions *options, const RunContext *poll,
                    Recording **out_recording)
{
        uint64_t open = open_numbers(graph, options->inputs, options->fetch, options->n_fetch);
        bool closed = false; // somebody asked for an open number after all: then all of them count by value
        TRY(record_split(graph, options, poll, open, &closed, out_recording));
        return closed ? record_split(graph, options, poll, 0, &closed, out_recording) : STATUS_OK;
}
