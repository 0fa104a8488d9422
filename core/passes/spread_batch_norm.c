// SPDX-License-Identifier: Apache-2.0
// spread_batch_norm.c. Match: a batch norm with constant statistics that no product took in, and
// whose only reader is pointwise, where channels lie side by side. Rewrite: addcmul of its input
// with a scale and a shift for each channel, which goes into one pass over memory with that reader.
// Where channels lie apart, or are too many for a tile, batch norm's own kernel is faster.
#include "core/passes/passes.h"

#include <math.h>
#include "core/kernels/numeric_policy.h"
#include "core/kernels/pointwise/tile.h"
#include "core/ops/arguments.h"
#include "core/ops/fused.h"
#include "core/passes/rewrite.h"

static bool is_by_channels(const TensorMeta *meta)
{
        bool side_by_side = meta->rank == 2 ? meta_is_contiguous(meta) : meta_is_channels_last(meta);
        return side_by_side && tile_keeps_rows(meta->size[1]);
}

static bool is_match(const Uses *uses, const RecordedCall *call)
{
        if (call->removed || op_role(&call->call) != ROLE_BATCH_NORM_EVAL ||
            !uses_first_result_only(uses, call) || !is_packed_type(&call->outs[0]->tensor.meta) ||
            !is_by_channels(&call->outs[0]->tensor.meta) || !call_is_movable(call))
                return false;
        const RecordedCall *reader = uses_only_reader(uses, call->outs[0]);
        return reader != NULL && reader->computes && fused_takes(&reader->call);
}

// Argument `arg` of the norm, a number per channel; NULL: it is none that is known.
static const float *channel_numbers(const RecordedCall *norm, int arg)
{
        const Recorded *value = rewrite_arg(norm, arg);
        if (value == NULL || !recorded_is_constant(value) || value->tensor.storage->data == NULL ||
            !is_packed_type(&value->tensor.meta) || !meta_is_contiguous(&value->tensor.meta) ||
            meta_numel(&value->tensor.meta) != norm->outs[0]->tensor.meta.size[1])
                return NULL;
        return tensor_data(&value->tensor);
}

// The kernel of batch norm scales and shifts such samples in one step; of others it takes the mean
// off first.
static bool is_one_step(const RecordedCall *norm)
{
        TensorMeta sample = rewrite_arg(norm, SELF)->tensor.meta;
        sample.size[0] = MIN(sample.size[0], (int64_t)1);
        return meta_is_contiguous(&sample) || meta_is_channels_last(&sample);
}

// Scale and shift of the channels in the kernel's own steps, so that results have its bits. False:
// a parameter is not known, or a number is not finite.
static bool find_scale_and_shift(const RecordedCall *norm, int64_t n, float *scale, float *shift)
{
        const float *params[4];
        double eps;
        if (!is_one_step(norm) || arg_double(&norm->call, (int)norm->call.n_args - 1, &eps) != STATUS_OK)
                return false;
        for (int i = 0; i < 4; i++) {
                params[i] = channel_numbers(norm, FUNCTIONAL_BATCH_NORM_WEIGHT + i);
                if (params[i] == NULL &&
                    (i >= 2 || rewrite_arg(norm, FUNCTIONAL_BATCH_NORM_WEIGHT + i) != NULL))
                        return false;
        }
        bool finite = true;
        for (int64_t c = 0; c < n; c++) {
                const float rstd = (float)(1 / sqrt((double)params[3][c] + eps));
                scale[c] = (float)((double)rstd * (params[0] == NULL ? 1 : (double)params[0][c]));
                shift[c] = (params[1] == NULL ? 0 : params[1][c]) - params[2][c] * scale[c];
                finite &= isfinite(scale[c]) && isfinite(shift[c]);
        }
        return finite;
}

// One number per channel, which is broadcast over the result.
static Status channel_constant(Recording *recording, const TensorMeta *result, Recorded **out_value)
{
        TensorMeta meta;
        int64_t size[MAX_RANK] = { result->size[1], 1, 1, 1, 1, 1, 1, 1 };
        meta_init(&meta, PACKED_DTYPE, result->rank - 1, size);
        return rewrite_constant(recording, &meta, out_value);
}

static Status spread(Recording *recording, RecordedCall *norm, PassContext *context)
{
        const TensorMeta *result = &norm->outs[0]->tensor.meta;
        const size_t n_bytes = 2 * (size_t)result->size[1] * sizeof(float);
        Recorded *scale, *shift;
        RecordedCall *made;
        if (!passes_may_add(recording, context->folded_bytes, n_bytes))
                return STATUS_OK;
        TRY(channel_constant(recording, result, &scale));
        TRY(channel_constant(recording, result, &shift));
        context->folded_bytes += n_bytes;
        if (!find_scale_and_shift(norm, result->size[1], tensor_data(&scale->tensor),
                                  tensor_data(&shift->tensor)))
                return STATUS_OK;
        Value args[] = { rewrite_tensor(shift),
                         rewrite_tensor(rewrite_arg(norm, SELF)),
                         rewrite_tensor(scale),
                         { .kind = VALUE_INT, .i = 1 } };
        NewCall new_call = { .overload = op_for(ROLE_ADDCMUL),
                             .take_args = args,
                             .outs = norm->outs,
                             .n_outs = 1,
                             .stands_for = &norm,
                             .n_stands_for = 1,
                             .replaces = true };
        return recording_insert(recording, norm, &new_call, &made);
}

Status pass_spread_batch_norm(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                TRY(run_poll(context->poll));
                if (is_match(&uses, recording->calls[i]))
                        TRY(spread(recording, recording->calls[i], context));
        }
        recording_compact(recording);
        return STATUS_OK;
}
