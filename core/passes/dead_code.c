// SPDX-License-Identifier: Apache-2.0
// dead_code.c. Match, in one walk from the end: a call with no effect, which draws no random
// numbers and refuses no values, and whose results and written buffers are not read later; and a
// check of shapes and dtypes, which was made when the call was recorded. Rewrite: drop it. A write
// does not end the life of earlier ones, since it may be partial.
#include "core/passes/passes.h"

#include "core/ops/pointwise.h"

typedef struct Live {
        bool *buffers, *values;
} Live;

static Status mark(void *context, Recorded *value)
{
        Live *live = context;
        if (value == NULL)
                return STATUS_OK;
        live->values[value->index] = true;
        if (!recorded_is_constant(value))
                live->buffers[recorded_buffer(value)->index] = true;
        return STATUS_OK;
}

static bool is_needed(const Live *live, const RecordedCall *call)
{
        if (call->call.n_outs == 0 && !call->computes)
                return false;
        if ((call->call.op->flags & (OP_EFFECT | OP_RANDOM | OP_CHECKS)) != 0 || call->call.n_outs == 0)
                return true;
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                const Recorded *value = call->outs[k];
                if (value == NULL)
                        continue;
                if (live->values[value->index] && value->call == call)
                        return true;
                // Makes or writes bytes that some view of the buffer reads later.
                if (call->computes && !recorded_is_constant(value) &&
                    live->buffers[recorded_buffer(value)->index])
                        return true;
        }
        return pointwise_may_fail(&call->call);
}

static Status mark_args(void *context, const Value *leaf)
{
        return leaf->kind == VALUE_TENSOR ? mark(context, recorded_of(leaf->tensor)) : STATUS_OK;
}

Status pass_remove_dead(Recording *recording, PassContext *context)
{
        (void)context;
        _cleanup_(freep) bool *buffers = new_array(recording->n_buffers, 1);
        _cleanup_(freep) bool *values = new_array(recording->n_values, 1);
        if (buffers == NULL || values == NULL)
                return fail_memory();
        Live live = { .buffers = buffers, .values = values };
        TRY(recording_visit_results(recording, mark, &live));
        for (uint32_t i = recording->n_calls; i-- > 0;) {
                RecordedCall *call = recording->calls[i];
                if (!is_needed(&live, call)) {
                        call->removed = true;
                        continue;
                }
                for (uint32_t k = 0; k < recorded_n_read(call); k++)
                        TRY(value_walk(call->call.args[k], mark_args, &live));
        }
        recording_compact(recording);
        return STATUS_OK;
}
