// SPDX-License-Identifier: Apache-2.0
// fold_norm.c: the weights of a layer with the batch norm behind it folded in, computed by the same
// operators in the same order as torch.nn.utils.fusion, so that the bits are PyTorch's.
#include "core/targets/fold_norm.h"

#include <string.h>

typedef enum FoldKind { FOLD_NONE, FOLD_CONV, FOLD_LINEAR } FoldKind;

static FoldKind kind_of(const char *layer, const char *norm)
{
        static const struct {
                const char *layer, *norm;
                FoldKind kind;
        } pairs[] = { { "torch.nn.Conv1d", "torch.nn.BatchNorm1d", FOLD_CONV },
                      { "torch.nn.Conv2d", "torch.nn.BatchNorm2d", FOLD_CONV },
                      { "torch.nn.Conv3d", "torch.nn.BatchNorm3d", FOLD_CONV },
                      { "torch.nn.Linear", "torch.nn.BatchNorm1d", FOLD_LINEAR } };
        for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
                if (strcmp(pairs[i].layer, layer) == 0 && strcmp(pairs[i].norm, norm) == 0)
                        return pairs[i].kind;
        }
        return FOLD_NONE;
}

bool module_takes_norm(const char *layer, const char *norm)
{
        return kind_of(layer, norm) != FOLD_NONE;
}

// *io_value, times or plus something; its old value is given back.
static Status apply(Emitter *emitter, const char *op, Value *io_value, Value other)
{
        Value result;
        TRY(EMIT(emitter, op, &result, *io_value, other));
        value_unref(*io_value);
        *io_value = result;
        return STATUS_OK;
}

// 1 / sqrt(var + eps)
static Status reciprocal(Emitter *emitter, const NormFold *fold, Value *out)
{
        _cleanup_(value_clear) Value sum = value_none();
        TRY(EMIT(emitter, "aten::add.Scalar", &sum, fold->var, value_float(fold->eps)));
        return EMIT(emitter, "aten::rsqrt", out, sum);
}

// [-1, 1, 1, ...]: one factor per output channel.
static Status per_channel(Emitter *emitter, int rank, Value *io_scale)
{
        Seq *shape;
        TRY(seq_new((uint32_t)rank, &shape));
        for (int i = 0; i < rank; i++)
                shape->items[i] = value_int(i == 0 ? -1 : 1);
        _cleanup_(value_clear) Value sizes = value_seq_take(VALUE_LIST, shape);
        return apply(emitter, "aten::reshape", io_scale, sizes);
}

// A value of the fold, or what torch takes where it is missing.
static Status given_or(Emitter *emitter, Value given, Value like, const char *op, Value *out)
{
        if (given.kind == VALUE_NONE)
                return EMIT(emitter, op, out, like);
        *out = value_ref(given);
        return STATUS_OK;
}

static Status fold_conv(Emitter *emitter, const NormFold *fold, Value gamma, Value beta, Value *io_weight,
                        Value *io_bias)
{
        _cleanup_(value_clear) Value rsqrt = value_none();
        _cleanup_(value_clear) Value scale = value_none();
        TRY(reciprocal(emitter, fold, &rsqrt));
        TRY(EMIT(emitter, "aten::mul.Tensor", &scale, gamma, rsqrt));
        TRY(per_channel(emitter, fold->weight.tensor->meta.rank, &scale));
        TRY(apply(emitter, "aten::mul.Tensor", io_weight, scale));
        TRY(apply(emitter, "aten::sub.Tensor", io_bias, fold->mean));
        TRY(apply(emitter, "aten::mul.Tensor", io_bias, rsqrt));
        TRY(apply(emitter, "aten::mul.Tensor", io_bias, gamma));
        return apply(emitter, "aten::add.Tensor", io_bias, beta);
}

static Status fold_linear(Emitter *emitter, const NormFold *fold, Value gamma, Value beta, Value *io_weight,
                          Value *io_bias)
{
        _cleanup_(value_clear) Value rsqrt = value_none();
        _cleanup_(value_clear) Value scale = value_none();
        _cleanup_(value_clear) Value column = value_none();
        TRY(reciprocal(emitter, fold, &rsqrt));
        TRY(EMIT(emitter, "aten::mul.Tensor", &scale, gamma, rsqrt));
        TRY(EMIT(emitter, "aten::unsqueeze", &column, scale, value_int(-1)));
        TRY(apply(emitter, "aten::mul.Tensor", io_weight, column));
        TRY(apply(emitter, "aten::sub.Tensor", io_bias, fold->mean));
        TRY(apply(emitter, "aten::mul.Tensor", io_bias, scale));
        return apply(emitter, "aten::add.Tensor", io_bias, beta);
}

Status norm_fold(Emitter *emitter, const NormFold *fold, Value *out_weight, Value *out_bias)
{
        _cleanup_(value_clear) Value weight = value_ref(fold->weight);
        _cleanup_(value_clear) Value bias = value_none();
        _cleanup_(value_clear) Value gamma = value_none();
        _cleanup_(value_clear) Value beta = value_none();
        TRY(given_or(emitter, fold->bias, fold->mean, "aten::zeros_like", &bias));
        TRY(given_or(emitter, fold->gamma, fold->mean, "aten::ones_like", &gamma));
        TRY(given_or(emitter, fold->beta, fold->mean, "aten::zeros_like", &beta));
        TRY(kind_of(fold->layer, fold->norm) == FOLD_CONV
                    ? fold_conv(emitter, fold, gamma, beta, &weight, &bias)
                    : fold_linear(emitter, fold, gamma, beta, &weight, &bias));
        *out_weight = weight;
        *out_bias = bias;
        weight = bias = value_none();
        return STATUS_OK;
}
