// SPDX-License-Identifier: Apache-2.0
// fold.c. Match: a call whose inputs are all constants. Rewrite: its results become constants,
// computed by the kernels that a run would use, so with the same bits. Results that take FOLD_BYTES
// more than the operands stay a call, to save memory. All together take no more than the graph's
// weights do, or FOLD_TOTAL_BYTES.
#include "core/passes/passes.h"

#include "core/eval/eager.h"

enum { FOLD_BYTES = 4 << 20 };

typedef struct Operands {
        bool constant;
        size_t n_bytes;
} Operands;

static Status look_at(void *context, const Value *leaf)
{
        Operands *operands = context;
        if (leaf->kind != VALUE_TENSOR)
                return STATUS_OK;
        operands->constant &= recorded_is_constant(recorded_of(leaf->tensor));
        operands->n_bytes += leaf->tensor->storage->n_bytes;
        return STATUS_OK;
}

static bool can_fold(const Recording *recording, const RecordedCall *call, const PassContext *context)
{
        if (!call->computes || call->call.inplace || call->call.n_outs == 0 ||
            (call->call.op->flags & (OP_EFFECT | OP_RANDOM)) != 0)
                return false;
        size_t n_bytes = 0;
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                const Recorded *value = call->outs[k];
                if (value == NULL)
                        continue;
                if (value->call != call || recorded_is_constant(value) || recorded_buffer(value)->written)
                        return false;
                n_bytes += recorded_buffer(value)->n_bytes;
        }
        Operands operands = { .constant = true };
        for (uint32_t i = 0; i < call->call.n_args; i++)
                (void)value_walk(call->call.args[i], look_at, &operands);
        return operands.constant && n_bytes <= operands.n_bytes + FOLD_BYTES &&
               passes_may_add(recording, context->folded_bytes, n_bytes);
}

static bool take_result(BufferValues *values, Recorded *value, Value result, PassContext *context)
{
        if (value == NULL)
                return true;
        if (result.kind != VALUE_TENSOR)
                return false;
        context->folded_bytes += result.tensor->storage->n_bytes;
        // views of it are constants as well
        buffer_values_move(values, value->tensor.storage, result.tensor->storage);
        return true;
}

static Status fold(BufferValues *values, RecordedCall *call, Emitter *eager, PassContext *context)
{
        _cleanup_(value_clear) Value result = value_none();
        Status status = emit(eager, call->overload, call->call.args, call->call.given, &result);
        if (status != STATUS_OK)
                return status == STATUS_NO_MEMORY || status == STATUS_DEADLINE || status == STATUS_CANCELLED
                               ? status
                               : STATUS_OK; // the run reports this failure, if it reaches the node
        const Value *items = value_is_sequence(result) ? result.seq->items : &result;
        uint32_t n = value_is_sequence(result) ? result.seq->n : 1;
        if (n != call->call.n_outs)
                return STATUS_OK;
        for (uint32_t k = 0; k < n; k++) {
                if (!take_result(values, call->outs[k], items[k], context))
                        return fail(STATUS_INTERNAL, "%s: folded to something else than a tensor",
                                    call->call.schema->name);
        }
        call->removed = true;
        return STATUS_OK;
}

Status pass_fold_constants(Recording *recording, PassContext *context)
{
        RunContext ctx; // not charged to the request: constants outlive it
        run_context_within(&ctx, context->poll);
        ctx.budget = NULL;
        ctx.pool = NULL;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        _cleanup_(buffer_values_deinit) BufferValues values = { 0 };
        TRY(buffer_values_find(recording, &values));
        TRY(eager_open(recording->graph, &ctx, &eager));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                TRY(run_poll(context->poll));
                if (can_fold(recording, recording->calls[i], context))
                        TRY(fold(&values, recording->calls[i], eager_emitter(eager), context));
        }
        recording_compact(recording);
        return STATUS_OK;
}
