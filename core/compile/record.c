// SPDX-License-Identifier: Apache-2.0
// record.c: specialising. The walk is eval's own, with the recorder as its emitter. When a node
// needs numbers known only in a run, the walk is repeated with more nodes left to the eager tail.
#include "core/compile/recorder.h"

#include "core/compile/split.h"

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
        if (recorder->is_child && leaf->tensor->storage != NULL) {
                TRY(tensor_new_view(leaf->tensor->storage, &leaf->tensor->meta, leaf->tensor->offset,
                                    &tensor));
                *out = value_tensor_take(tensor);
                return STATUS_OK;
        }
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
                if (at < RUNTIME_SCALARS_MAX && (recorder->scalars >> at & 1) != 0)
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
        if (recorder_is_number(context, recorded_buffer(value)))
                return fail(STATUS_DYNAMIC, "a result stands on the bytes of a number");
        recorded_buffer(value)->is_output = true;
        return STATUS_OK;
}

// With an eager tail, the recording's result is the tuple of values that the tail takes from the
// calls. The tail makes the graph's result.
static Status keep_for_tail(Recorder *recorder, Split *split)
{
        ValueSpan values;
        Seq *seq;
        TRY(split_finish(split, recorder->recording, &values));
        TRY(seq_new(values.n, &seq));
        recorder->recording->result = value_seq_take(VALUE_TUPLE, seq);
        for (uint32_t i = 0; i < values.n; i++)
                TRY(value_map(values.items[i], recorder_leaf, recorder, &seq->items[i]));
        return recording_visit_results(recorder->recording, mark_output, recorder->recording);
}

static Status keep_results(Recorder *recorder, Value result, const Value *fetched, uint32_t n_fetched)
{
        Recording *recording = recorder->recording;
        TRY(value_map(result, recorder_leaf, recorder, &recording->result));
        recording->fetched =
                arena_array(&recording->arena, (size_t)n_fetched + recording->n_states, sizeof(Value));
        if (recording->fetched == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n_fetched; i++) {
                TRY(value_map(fetched[i], recorder_leaf, recorder, &recording->fetched[i]));
                recording->n_fetched++;
        }
        for (uint32_t i = 0; i < recording->n_states; i++) {
                const Buffer *buffer = recording->states[i];
                if (buffer->written)
                        recording->fetched[recording->n_fetched++] =
                                value_tensor_take(tensor_ref(&buffer->base->tensor));
        }
        return recording_visit_results(recording, mark_output, recording);
}

// Readers mark the whole state as written when a graph writes any of it. State that no call writes
// becomes constant here.
static void settle_state(Recording *recording)
{
        for (uint32_t i = 0; i < recording->n_values && !recording->keeps_state; i++) {
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

// The tail would not see state whose geometry a call changed in place (`t_`).
static Status check_state_views(const Recorder *recorder, const Split *split)
{
        for (uint32_t i = 0; i < recorder->n_views && !split_is_whole(split); i++) {
                const StateView *view = &recorder->views[i];
                if (!recorder_same_geometry(view->entry, view->seen))
                        return fail(
                                STATUS_DYNAMIC,
                                "state changes its geometry in place beside nodes that run on real numbers");
        }
        return STATUS_OK;
}

// One attempt to record the graph, with the nodes known so far to belong to the tail.
typedef struct Attempt {
        const Graph *graph;
        const RecordOptions *options;
        const RunContext *poll; // may be NULL
        Split *split;
        uint64_t scalars; // bit i: placeholder i is a runtime scalar
        bool again;       // out: more nodes have to be left to the tail
} Attempt;

static Status keep(const Attempt *attempt, Recorder *recorder, Value result, const Value *fetched)
{
        TRY(check_state_views(recorder, attempt->split));
        return split_is_whole(attempt->split)
                       ? keep_results(recorder, result, fetched, attempt->options->n_fetch)
                       : keep_for_tail(recorder, attempt->split);
}

static Status walk_and_keep(Attempt *attempt, Recorder *recorder, const Value *inputs, Value *fetched)
{
        const RecordOptions *options = attempt->options;
        Split *split = attempt->split;
        WalkOptions walk = { .inputs = { inputs, options->inputs.n },
                             .fetch = options->fetch,
                             .n_fetch = options->n_fetch,
                             .split = split_walk(split) };
        _cleanup_(value_clear) Value result = value_none();
        Status status = walk_graph(&recorder->base, attempt->graph, &walk, &result, fetched);
        recorder->base.node = NULL;
        for (uint32_t i = 0; i < options->n_fetch && status == STATUS_OK && !split_is_whole(split); i++)
                status = split_keep(split, options->fetch[i], fetched[i]);
        // A node that failed half-way may have caused the failure of a later one.
        if (status == STATUS_OK || (!is_ours(status) && split_gave_up(split)))
                status = split_settle(split, &attempt->again);
        if (status == STATUS_OK && !attempt->again)
                status = keep(attempt, recorder, result, fetched);
        for (uint32_t i = 0; i < options->n_fetch; i++)
                value_clear(&fetched[i]);
        TRY(status);
        settle_state(recorder->recording);
        return STATUS_OK;
}

static Status record_walk(Attempt *attempt, Recorder *recorder)
{
        ValueSpan given = attempt->options->inputs;
        _cleanup_(freep) Value *inputs =
                new_array((size_t)given.n + attempt->options->n_fetch, sizeof(Value));
        if (inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < given.n; i++)
                inputs[i].kind = VALUE_ABSENT;
        Status status = record_inputs(recorder, attempt->graph, given, inputs);
        if (status == STATUS_OK)
                status = walk_and_keep(attempt, recorder, inputs, inputs + given.n);
        for (uint32_t i = 0; i < given.n; i++)
                value_unref(inputs[i]);
        return status;
}

static Status record_once(Attempt *attempt, Recording **out_recording)
{
        _cleanup_(recording_freep) Recording *recording = NULL;
        TRY(recording_new(attempt->graph, &recording));
        recording->keeps_state = attempt->options->keeps_state;
        Recorder recorder;
        recorder_init(&recorder, recording, attempt->poll);
        recorder.scalars = attempt->scalars;
        recorder.base.runtime_scalars = attempt->scalars != 0;
        recorder.has_children = true;
        recorder.is_child = attempt->options->is_child;
        recorder.depth = attempt->options->depth;
        recorder.base.autocast = attempt->options->autocast;
        recorder.base.autocast_dtype = attempt->options->autocast_dtype;
        if (attempt->options->max_calls != 0)
                recorder.max_calls = attempt->options->max_calls;
        attempt->again = false;
        split_start(attempt->split, recording);
        Status status = record_walk(attempt, &recorder);
        split_start(attempt->split, NULL); // drops the split's tensors of this recording
        recorder_deinit(&recorder);
        TRY(status);
        recording->by_value = ~(attempt->scalars & ~recorder.scalars_read);
        *out_recording = take_ptr(recording);
        return STATUS_OK;
}

// Every attempt leaves more nodes to the tail. Few attempts are needed: the first finds the nodes
// that ask for numbers, the second the calls that conflict with them.
enum { MAX_ATTEMPTS = 12 };

// *out_closed: some node read a runtime scalar's value, and nothing is recorded.
static Status record_split(Attempt attempt, bool *out_closed, Recording **out_recording)
{
        _cleanup_(split_freep) Split *split = NULL;
        TRY(split_new(attempt.graph, attempt.poll, &split));
        attempt.split = split;
        for (int i = 0; i < MAX_ATTEMPTS; i++) {
                _cleanup_(recording_freep) Recording *recording = NULL;
                Status status = record_once(&attempt, &recording);
                if (attempt.scalars != 0 &&
                    ((status != STATUS_OK && !is_ours(status)) || split_asks_number(split))) {
                        *out_closed = true;
                        return STATUS_OK;
                }
                TRY(status);
                if (attempt.options->is_child && !split_is_whole(split))
                        return fail(STATUS_DYNAMIC, "a child graph depends on numbers that only a run knows");
                if (attempt.again)
                        continue;
                if (attempt.options->keeps_state && !split_is_whole(split))
                        return fail(STATUS_DYNAMIC, "state lives on beside nodes that run on real numbers");
                *out_recording = take_ptr(recording);
                return STATUS_OK;
        }
        return fail(STATUS_DYNAMIC, "too much of the graph depends on numbers that only a run knows");
}

Status record_graph(const Graph *graph, const RecordOptions *options, const RunContext *poll,
                    Recording **out_recording)
{
        Attempt attempt = { .graph = graph, .options = options, .poll = poll };
        bool closed = false;
        if (!options->is_child)
                attempt.scalars = runtime_scalars(graph, options->inputs, options->fetch, options->n_fetch);
        TRY(record_split(attempt, &closed, out_recording));
        if (!closed)
                return STATUS_OK;
        attempt.scalars = 0; // all of them count by value
        return record_split(attempt, &closed, out_recording);
}
