// SPDX-License-Identifier: Apache-2.0
// functional.c. Match: an in-place twin (`relu_`) that writes the whole buffer of a result, through
// the result itself or one view of it, and nobody reads it in another way afterwards. Rewrite: the
// functional row (`relu`) into a new value, which takes the place of what was written from there
// on. Then the buffer is written once, and later passes may move and merge the calls around it.
#include "core/passes/passes.h"

#include <string.h>
#include "core/ops/arguments.h"

typedef struct Rewritten { // of a buffer
        bool refused;
        uint32_t last_write;     // position + 1 of the call; 0: none yet
        const Recorded *written; // what the calls write: the base, or a view of all of it
        Recorded *now;           // the value that `written` has here; NULL: itself
} Rewritten;

typedef struct Turning {
        Recording *recording;
        Rewritten *states; // by buffer (as many as there were)
        uint32_t n_states;
        uint32_t *made; // by value: position + 1 of the call that made it
} Turning;

static Rewritten *state_of(const Turning *turning, const Recorded *value)
{
        if (recorded_is_constant(value) || recorded_buffer(value)->index >= turning->n_states)
                return NULL;
        return &turning->states[recorded_buffer(value)->index];
}

static const Overload *functional_twin(const RecordedCall *call)
{
        return call->call.n_outs == 1 ? call->overload->twin_of : NULL;
}

// Whether the functional row would infer self's exact meta. Passes trust what the overload infers.
// Rows whose result has its own layout or dtype (masked_fill, comparisons) keep self's meta only
// when in place.
static bool same_without(const RecordedCall *call, const Overload *twin)
{
        OpCall functional;
        const TensorMeta *self = &call->outs[0]->tensor.meta;
        bool same = call_open(NULL, twin, call->call.args, call->call.given, &functional) == STATUS_OK;
        same = same && functional.op->infer(&functional) == STATUS_OK && functional.n_outs == 1 &&
               functional.outs[0].kind == OUT_FRESH && functional.outs[0].meta.dtype == self->dtype &&
               meta_same_places(&functional.outs[0].meta, self);
        call_close(&functional);
        return same;
}

static bool writes_whole(const RecordedCall *call)
{
        const Recorded *self = recorded_of(call->call.args[SELF].tensor);
        const Buffer *buffer = recorded_buffer(self);
        const Recorded *base = buffer->base;
        return buffer->kind == BUFFER_RUN && !buffer->written_later && base->from == FROM_CALL &&
               base->call != NULL && base->call->computes && base->tensor.offset == 0 &&
               self->tensor.offset == 0 && self->tensor.meta.dtype == base->tensor.meta.dtype &&
               meta_numel(&self->tensor.meta) == meta_numel(&base->tensor.meta) &&
               meta_is_non_overlapping_and_dense(&base->tensor.meta) &&
               meta_is_non_overlapping_and_dense(&self->tensor.meta) && call->outs[0] == self &&
               functional_twin(call) != NULL && same_without(call, functional_twin(call));
}

// ---- what can be turned ----
static Status look_at_use(void *context, const Value *leaf)
{
        const Turning *turning = context;
        if (leaf->kind != VALUE_TENSOR)
                return STATUS_OK;
        const Recorded *value = recorded_of(leaf->tensor);
        Rewritten *state = state_of(turning, value);
        if (state != NULL && value != state->written && state->last_write > turning->made[value->index])
                state->refused = true;
        return STATUS_OK;
}

static Status look_at_result(void *context, Recorded *value)
{
        return look_at_use(context, &(Value){ .kind = VALUE_TENSOR, .tensor = &value->tensor });
}

static void look_at_write(const Turning *turning, uint32_t position, const Recorded *out)
{
        Rewritten *state = state_of(turning, out);
        if (!writes_whole(turning->recording->calls[position]) ||
            (state->written != NULL && state->written != out))
                state->refused = true;
        state->written = out;
        state->last_write = position + 1;
}

static void find_refused(const Turning *turning)
{
        const Recording *recording = turning->recording;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                for (uint32_t k = 0; k < call->call.n_args; k++)
                        (void)value_walk(call->call.args[k], look_at_use, (void *)(uintptr_t)turning);
                for (uint32_t k = 0; k < call->call.n_outs; k++) {
                        const Recorded *out = call->outs[k];
                        Rewritten *state = out == NULL ? NULL : state_of(turning, out);
                        if (state == NULL)
                                continue;
                        if (out->call == call)
                                turning->made[out->index] = i + 1;
                        else if (call->computes)
                                look_at_write(turning, i, out);
                }
        }
        (void)recording_visit_results(recording, look_at_result, (void *)(uintptr_t)turning);
}

// ---- turning ----
static Status rename_leaf(void *context, const Value *leaf, Value *out)
{
        *out = *leaf;
        if (leaf->kind == VALUE_TENSOR) {
                const Recorded *value = recorded_of(leaf->tensor);
                const Rewritten *state = state_of(context, value);
                if (state != NULL && state->now != NULL && state->written == value)
                        out->tensor = &state->now->tensor;
        }
        value_ref(*out);
        return STATUS_OK;
}

static Status rename_value(Turning *turning, Value *value)
{
        Value renamed;
        TRY(value_map(*value, rename_leaf, turning, &renamed));
        value_unref(*value);
        *value = renamed;
        return STATUS_OK;
}

// Later views are made on the new bytes and leave the old buffer.
static void move_views(const Turning *turning, const RecordedCall *call)
{
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                Recorded *out = call->outs[k];
                const Rewritten *state = out == NULL || out->call != call ? NULL : state_of(turning, out);
                if (state == NULL || state->now == NULL || recorded_buffer(out)->base == out)
                        continue;
                Storage *storage = storage_ref(state->now->tensor.storage);
                storage_unref(out->tensor.storage);
                out->tensor.storage = storage;
        }
}

static Status turn(Turning *turning, RecordedCall *call)
{
        Value args[SCHEMA_MAX_ARGS];
        Buffer *old = recorded_buffer(call->outs[0]);
        Rewritten *state = state_of(turning, call->outs[0]);
        RecordedCall *turned;
        for (uint32_t i = 0; i < call->call.n_args; i++)
                args[i] = value_ref(call->call.args[i]);
        NewCall new_call = { .overload = functional_twin(call),
                             .take_args = args,
                             .given = call->call.given,
                             .outs = call->outs,
                             .n_outs = 1,
                             .results = RESULTS_ALIKE,
                             .stands_for = &call,
                             .n_stands_for = 1,
                             .replaces = true };
        TRY(recording_insert(turning->recording, call, &new_call, &turned));
        if (turned == NULL)
                return fail(STATUS_INTERNAL, "%s has no functional twin after all", call->overload->name);
        old->written = false;
        recorded_buffer(turned->outs[0])->is_output = old->is_output;
        if (state->now != NULL)
                recorded_buffer(state->now)->is_output = false;
        state->now = turned->outs[0];
        return STATUS_OK;
}

static Status turn_calls(Turning *turning)
{
        Recording *recording = turning->recording;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                const Recorded *self =
                        call->call.inplace && call->computes && call->call.n_outs == 1 ? call->outs[0] : NULL;
                const Rewritten *state = self == NULL ? NULL : state_of(turning, self);
                bool turned = state != NULL && !state->refused && writes_whole(call);
                for (uint32_t k = 0; k < call->call.n_args; k++)
                        TRY(rename_value(turning, (Value *)(uintptr_t)&call->call.args[k]));
                if (turned)
                        TRY(turn(turning, call));
                else
                        move_views(turning, call);
        }
        TRY(rename_value(turning, &recording->result));
        for (uint32_t i = 0; i < recording->n_fetched; i++)
                TRY(rename_value(turning, &recording->fetched[i]));
        for (uint32_t i = 0; i < turning->n_states; i++) {
                if (turning->states[i].now != NULL)
                        recording->buffers[i]->is_output = false;
        }
        return STATUS_OK;
}

Status pass_make_functional(Recording *recording, PassContext *context)
{
        (void)context;
        _cleanup_(freep) Rewritten *states = new_array(recording->n_buffers, sizeof(*states));
        _cleanup_(freep) uint32_t *made = new_array(recording->n_values, sizeof(*made));
        if (states == NULL || made == NULL)
                return fail_memory();
        Turning turning = {
                .recording = recording, .states = states, .n_states = recording->n_buffers, .made = made
        };
        find_refused(&turning);
        TRY(turn_calls(&turning));
        recording_compact(recording);
        return STATUS_OK;
}
