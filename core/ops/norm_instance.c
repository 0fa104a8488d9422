// SPDX-License-Identifier: Apache-2.0
// norm_instance.c: instance_norm is group_norm with a channel in each group. With running
// statistics it is batch_norm with every image's channels as channels of one image; they are
// repeated per image and averaged back.
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/lazy.h"

static Status repeated(Emitter *emitter, Value param, Value times, Value *out)
{
        if (param.kind != VALUE_TENSOR)
                return STATUS_OK;
        return EMIT(emitter, "aten::repeat", out, param, times);
}

// *out is counted.
static Status as_dtype(Emitter *emitter, Value tensor, Dtype dtype, Value *out)
{
        if (tensor.kind != VALUE_TENSOR || tensor.tensor->meta.dtype == dtype) {
                *out = value_ref(tensor);
                return STATUS_OK;
        }
        return EMIT(emitter, "aten::to.dtype", out, tensor, value_dtype(dtype));
}

// Running statistics are read in the weight's dtype, without a weight in the input's, and written
// back in their own.
static Dtype dtype_of_stats(const OpCall *call)
{
        const TensorMeta *weight = arg_meta(call, INSTANCE_NORM_WEIGHT);
        return weight != NULL ? weight->dtype : arg_meta(call, SELF)->dtype;
}

// PyTorch looks at the mean only to see whether there is anything to be converted.
static Status check_stats(const OpCall *call)
{
        const TensorMeta *mean = arg_meta(call, INSTANCE_NORM_RUNNING_MEAN),
                         *var = arg_meta(call, INSTANCE_NORM_RUNNING_MEAN + 1);
        Dtype dtype = dtype_of_stats(call);
        if (mean != NULL && var != NULL && mean->dtype == dtype && var->dtype != dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(dtype),
                            dtype_words(var->dtype));
        return STATUS_OK;
}

static Status repeated_stats(Emitter *emitter, const OpCall *call, Value times, Value out_stats[2])
{
        Dtype dtype = dtype_of_stats(call);
        for (int i = 0; i < 2; i++) {
                _cleanup_(value_clear) Value stats = value_none();
                TRY(as_dtype(emitter, arg_value(call, INSTANCE_NORM_RUNNING_MEAN + i), dtype, &stats));
                TRY(repeated(emitter, stats, times, &out_stats[i]));
        }
        return STATUS_OK;
}

// running = the images' mean of what batch_norm made of the repeated statistics.
static Status average_running(Emitter *emitter, Value running, Value updated, int64_t images,
                              int64_t channels)
{
        _cleanup_(value_clear) Value size = value_none(), dims = value_none(), grid = value_none(),
                                     mean = value_none(), written = value_none();
        TRY(value_ints_new(VALUE_LIST, (int64_t[]){ images, channels }, 2, &size));
        TRY(value_ints_new(VALUE_LIST, (int64_t[]){ 0 }, 1, &dims));
        TRY(EMIT(emitter, "aten::reshape", &grid, updated, size));
        TRY(EMIT(emitter, "aten::mean.dim", &mean, grid, dims));
        TRY(as_dtype(emitter, mean, running.tensor->meta.dtype, &written));
        return lazy_write(emitter, running.tensor, written.tensor);
}

static Status instance_apply(Emitter *emitter, const OpCall *call, Value input, Value times, Value *out)
{
        Value param[4] = { value_none(), value_none(), value_none(), value_none() };
        _cleanup_(value_clear) Value results = value_none();
        const TensorMeta *meta = arg_meta(call, SELF);
        bool batch_stats = arg_bool(call, INSTANCE_NORM_USE_INPUT_STATS, true),
             running = arg_tensor(call, INSTANCE_NORM_RUNNING_MEAN) != NULL;
        Status status = STATUS_OK;
        for (int i = 0; i < 2 && status == STATUS_OK; i++)
                status = repeated(emitter, arg_value(call, INSTANCE_NORM_WEIGHT + i), times, &param[i]);
        if (status == STATUS_OK)
                status = repeated_stats(emitter, call, times, &param[2]);
        Value momentum = arg_value(call, INSTANCE_NORM_MOMENTUM), eps = arg_value(call, INSTANCE_NORM_EPS);
        if (status == STATUS_OK && !batch_stats)
                status = EMIT(emitter, "fxserve::batch_norm_eval", out, input, param[0], param[1], param[2],
                              param[3], momentum, eps);
        else if (status == STATUS_OK && !running)
                status = EMIT(emitter, "aten::_native_batch_norm_legit.no_stats", &results, input, param[0],
                              param[1], value_bool(true), momentum, eps);
        else if (status == STATUS_OK)
                status = EMIT(emitter, "aten::_native_batch_norm_legit_functional", &results, input, param[0],
                              param[1], param[2], param[3], value_bool(true), momentum, eps);
        for (int i = 0; i < 4; i++)
                value_clear(&param[i]);
        TRY(status);
        for (int i = 0; i < 2 && batch_stats && running; i++)
                TRY(average_running(emitter, arg_value(call, INSTANCE_NORM_RUNNING_MEAN + i),
                                    results.seq->items[3 + i], meta->size[0], meta->size[1]));
        if (batch_stats)
                *out = value_ref(results.seq->items[0]);
        return STATUS_OK;
}

// Whether group_norm takes the parameters, and computes the same: halves are rounded elsewhere.
static bool is_group_norm(const OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF);
        for (int i = 0; i < 2; i++) {
                const TensorMeta *param = arg_meta(call, INSTANCE_NORM_WEIGHT + i);
                if (param != NULL &&
                    (param->dtype != input->dtype || param->rank != 1 || param->size[0] != input->size[1]))
                        return false;
        }
        return arg_bool(call, INSTANCE_NORM_USE_INPUT_STATS, true) && meta_numel(input) > 0 &&
               (input->dtype == DTYPE_F32 || input->dtype == DTYPE_F64) &&
               arg_tensor(call, INSTANCE_NORM_RUNNING_MEAN) == NULL;
}

static Status as_group_norm(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value dense = value_none();
        TRY(EMIT(emitter, "aten::contiguous", &dense, arg_value(call, SELF)));
        return EMIT(emitter, "aten::group_norm", out, dense, value_int(arg_meta(call, SELF)->size[1]),
                    arg_value(call, INSTANCE_NORM_WEIGHT), arg_value(call, INSTANCE_NORM_WEIGHT + 1),
                    arg_value(call, INSTANCE_NORM_EPS), value_bool(true));
}

static Status instance_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *input = arg_meta(call, SELF);
        bool mean = arg_tensor(call, INSTANCE_NORM_RUNNING_MEAN) != NULL,
             var = arg_tensor(call, INSTANCE_NORM_RUNNING_VAR) != NULL;
        if (!arg_bool(call, INSTANCE_NORM_USE_INPUT_STATS, true) && !(mean && var))
                return fail(
                        STATUS_VALUE,
                        "Expected running_mean and running_var to be defined when use_input_stats is false");
        if (mean != var)
                return fail(STATUS_VALUE,
                            "running_mean and running_var must either both be None or neither be None");
        if (input->rank < 2)
                return fail(STATUS_SHAPE, "instance_norm: expected 2D or higher input (got %dD input)",
                            input->rank);
        TRY(check_stats(call));
        if (is_group_norm(call))
                return as_group_norm(emitter, call, out);
        int64_t size[MAX_RANK], channels;
        memcpy(size, input->size, sizeof(size));
        if (!mul_i64(input->size[0], input->size[1], &channels))
                return fail(STATUS_TOO_LARGE, "instance_norm: too many channels");
        size[0] = 1;
        size[1] = channels;
        _cleanup_(value_clear) Value dense = value_none(), flat = value_none(), flat_size = value_none(),
                                     own_size = value_none(), times = value_none(), result = value_none();
        TRY(value_ints_new(VALUE_LIST, size, input->rank, &flat_size));
        TRY(value_ints_new(VALUE_LIST, input->size, input->rank, &own_size));
        TRY(value_ints_new(VALUE_LIST, input->size, 1, &times));
        TRY(EMIT(emitter, "aten::contiguous", &dense, arg_value(call, SELF)));
        TRY(EMIT(emitter, "aten::reshape", &flat, dense, flat_size));
        TRY(instance_apply(emitter, call, flat, times, &result));
        return EMIT(emitter, "aten::reshape", out, result, own_size);
}

const OpDef norm_instance_ops[] = {
        { "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
          "running_var, bool "
          "use_input_stats, float momentum, float eps, "
          "bool cudnn_enabled) -> Tensor",
          DTYPES_FLOATS, .expand = instance_expand, .traits = TRAIT_FRESH | TRAIT_STATISTICS },
};
OP_FILE(norm_instance_ops);
