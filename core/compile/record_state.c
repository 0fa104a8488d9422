// SPDX-License-Identifier: Apache-2.0
// record_state.c: state and child graphs. State that some node may write is a buffer, all other
// state is constant. Child graphs are walked in place where the walk knows how often, else they are
// calls with programs of their own (child.h).
#include "core/compile/child.h"
#include "core/eval/state.h"

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
        if (!recording->keeps_state)
                return STATUS_OK;
        buffer->number = state_number(recording->graph, origin);
        TRY(array_reserve(&recording->states, &recording->states_capacity, recording->n_states + 1,
                          sizeof(Buffer *)));
        recording->states[recording->n_states++] = buffer;
        return STATUS_OK;
}

Status record_state(Emitter *emitter, const Graph *graph, const char *path, Value *out)
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
        value->path = state->path;
        TRY(recorder_live_tensor(value, &seen));
        recorder->views[recorder->n_views++] = (StateView){ .entry = state->tensor, .seen = seen };
        *out = value_tensor_take(tensor_ref(seen));
        return STATUS_OK;
}

// ---- child graphs ----
Status record_cond(Emitter *emitter, Value predicate, const Graph *if_true, const Graph *if_false,
                   ValueSpan operands, Value *out)
{
        if (predicate.kind == VALUE_BOOL || predicate.kind == VALUE_INT)
                return walk_child(emitter,
                                  (predicate.kind == VALUE_BOOL ? predicate.b : predicate.i != 0) ? if_true
                                                                                                  : if_false,
                                  operands, out);
        if (!recorder_of(emitter)->has_children)
                return fail(STATUS_DYNAMIC, "which branch is taken is not known before the run");
        return child_record_cond(recorder_of(emitter), predicate, if_true, if_false, operands, out);
}

Status record_loop(Emitter *emitter, const Graph *condition, const Graph *body, ValueSpan carried,
                   ValueSpan additional, Value *out)
{
        if (!recorder_of(emitter)->has_children)
                return fail(STATUS_DYNAMIC, "how often a loop runs is not known before the run");
        return child_record_loop(recorder_of(emitter), condition, body, carried, additional, out);
}
