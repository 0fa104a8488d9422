// SPDX-License-Identifier: Apache-2.0
// levels_pool.c. Match: max_pool2d of dequantised levels that is quantised at once, to the levels
// that it came from. Rewrite: max_pool2d of the levels.
#include "core/kernels/product/levels.h"
#include "core/ops/arguments.h"
#include "core/passes/levels.h"

// Each level of the dtype becomes itself again. So the scale is positive, and pooling keeps what is
// largest.
static bool comes_back(const Dequantized *from, const Quantized *to)
{
        double scale, zero = 0, inverse, to_zero;
        bool is_signed = from->levels->tensor.meta.dtype == DTYPE_I8;
        if (from->levels->tensor.meta.dtype != to->levels->tensor.meta.dtype ||
            !levels_number(from->scale, &scale) || !levels_number(to->inverse, &inverse) ||
            !levels_number(to->zero, &to_zero) || !(scale > 0) ||
            (from->zero != NULL && !levels_number(from->zero, &zero)))
                return false;
        LevelsSteps steps = { (float)inverse, (float)to_zero, (float)to->least, (float)to->most };
        for (int level = is_signed ? INT8_MIN : 0; level <= (is_signed ? INT8_MAX : UINT8_MAX); level++) {
                float x = ((float)level - (float)zero) * (float)scale;
                uint8_t again;
                levels_quantize(&x, 1, &steps, &again);
                if (again != (uint8_t)level)
                        return false;
        }
        return true;
}

// The call whose whole result is quantised, and nothing else.
static RecordedCall *pool_of(const Uses *uses, const Quantized *quantized)
{
        RecordedCall *pool = quantized->input->from == FROM_CALL ? quantized->input->call : NULL;
        return pool != NULL && !pool->removed && !pool->call.inplace &&
                               op_role(&pool->call) == ROLE_MAX_POOL && pool->outs[0] == quantized->input &&
                               uses_only_reader(uses, quantized->input) == quantized->calls[0] &&
                               call_is_movable(pool)
                       ? pool
                       : NULL;
}

Status levels_pool(Recording *recording, Uses *uses, const Quantized *quantized, bool *out_done)
{
        RecordedCall *pool = pool_of(uses, quantized), *calls[LEVELS_CHAIN + 1], *fused;
        Recorded *image = pool == NULL ? NULL : rewrite_arg(pool, SELF);
        Dequantized from;
        *out_done = false;
        if (image == NULL || !levels_of(image, &from) || from.value != image ||
            recorded_is_constant(from.levels) ||
            !meta_same_places(&from.levels->tensor.meta, &image->tensor.meta) ||
            !comes_back(&from, quantized))
                return STATUS_OK;
        Value args[SCHEMA_MAX_ARGS] = { rewrite_tensor(from.levels) };
        for (uint32_t i = 1; i < pool->call.n_args; i++)
                args[i] = value_ref(pool->call.args[i]);
        calls[0] = pool;
        for (uint32_t i = 0; i < LEVELS_CHAIN; i++)
                calls[i + 1] = quantized->calls[i];
        RecordedCall *last = quantized->calls[LEVELS_CHAIN - 1];
        TRY(recording_insert(recording, last,
                             &(NewCall){ .overload = pool->overload,
                                         .take_args = args,
                                         .given = pool->call.given,
                                         .outs = last->outs,
                                         .n_outs = 1,
                                         .stands_for = calls,
                                         .n_stands_for = LEVELS_CHAIN + 1,
                                         .replaces = true },
                             &fused));
        if (fused == NULL)
                return STATUS_OK;
        for (uint32_t i = 0; i < from.n_calls; i++)
                TRY(recording_add_nodes(recording, fused, from.calls[i]));
        uses_moved(uses, fused);
        *out_done = true;
        return STATUS_OK;
}
