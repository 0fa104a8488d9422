// SPDX-License-Identifier: Apache-2.0
// affine.c: torchao.{choose_qparams,quantize,dequantize}_affine: quantisation whose scales belong
// to blocks of a tensor. They are defined by expressions in Python, which these follow call by
// call, so that dtypes promote and numbers round as there. Products of such levels.
#include <math.h>
#include "core/ops/compose.h"
#include "core/ops/quantized.h"
#include <float.h>
#include <string.h>

// The shape that a tensor is viewed as, where each block has dimensions of its own, and the bits of
// those.
typedef struct Blocks {
        int rank, input_rank;
        int64_t size[MAX_RANK], input_size[MAX_RANK], block[MAX_RANK];
        uint32_t reduced;
} Blocks;

static Status blocks_of(Compose *c, Blocks *out)
{
        const TensorMeta *input = compose_meta(c, NAMED(c, "input"));
        int n = compose_int_list(c, "block_size", out->block);
        TRY(c->status);
        if (n != input->rank)
                return fail(STATUS_SHAPE, "Got input dim:%d, block_size of %d dimensions", input->rank, n);
        for (int d = 0; d < n; d++) {
                const int64_t size = input->size[d], block = out->block[d];
                const bool splits = block != size && block > 1;
                out->input_size[out->input_rank++] = size;
                if (splits && size % block != 0)
                        return fail(STATUS_SHAPE,
                                    "Expecting input size at %d dimension: %ld to be divisible by block_size "
                                    "at %d dimension: %ld",
                                    d, (long)size, d, (long)block);
                if (out->rank + splits >= MAX_RANK)
                        return fail(STATUS_SHAPE, "%s: blocks of %d dimensions are not supported", c->name,
                                    n);
                if (splits)
                        out->size[out->rank++] = size / block;
                if (block != 1)
                        out->reduced |= 1u << out->rank;
                out->size[out->rank++] = splits ? block : size;
        }
        return STATUS_OK;
}

static Blocks blocks_named(Compose *c)
{
        Blocks blocks = { 0 };
        compose_check(c, blocks_of(c, &blocks));
        return blocks;
}

static Value in_blocks(Compose *c, const Blocks *blocks, Value x)
{
        return OP(c, "aten::view", x, compose_ints(c, blocks->size, blocks->rank));
}

// A scale or zero point per block.
static Value per_block(Compose *c, const Blocks *blocks, Value x)
{
        int64_t size[MAX_RANK];
        for (int d = 0; d < blocks->rank; d++)
                size[d] = (blocks->reduced >> d & 1) != 0 ? 1 : blocks->size[d];
        return OP(c, "aten::view", x, compose_ints(c, size, blocks->rank));
}

static Value as_before(Compose *c, const Blocks *blocks, Value x)
{
        return OP(c, "aten::reshape", x, compose_ints(c, blocks->input_size, blocks->input_rank));
}

static bool is_small_float(Dtype dtype)
{
        return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16;
}

static double number(Value value)
{
        return value.kind == VALUE_FLOAT  ? value.f
               : value.kind == VALUE_INT  ? (double)value.i
               : value.kind == VALUE_BOOL ? value.b
                                          : (double)NAN;
}

// The ends of the levels: given, or those of the dtype.
static void read_levels(Compose *c, const char *dtype_name, Value *out_low, Value *out_high)
{
        Value dtype = NAMED(c, dtype_name);
        int64_t least, most;
        *out_low = NAMED(c, "quant_min");
        *out_high = NAMED(c, "quant_max");
        if (compose_failed(c))
                return;
        if (!quantized_bounds(dtype.dtype, &least, &most) || dtype.dtype == DTYPE_U16) {
                compose_check(c, fail(STATUS_UNSUPPORTED, "%s: Unsupported dtype: %s", c->name,
                                      dtype_words(dtype.dtype)));
                return;
        }
        *out_low = compose_has(c, "quant_min") ? *out_low : value_int(least);
        *out_high = compose_has(c, "quant_max") ? *out_high : value_int(most);
        if (!(number(*out_low) >= (double)least) || !(number(*out_high) <= (double)most)) // NaN, too
                compose_check(c, fail(STATUS_VALUE, "%s: quant_min or quant_max out of bound for dtype %s",
                                      c->name, dtype_words(dtype.dtype)));
}

static Status quantize_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value low, high;
        compose_begin(&c, emitter, call);
        read_levels(&c, "output_dtype", &low, &high);
        Value input = NAMED(&c, "input"), points = NAMED(&c, "zero_point");
        if (!is_small_float(compose_meta(&c, input)->dtype))
                compose_check(&c, fail(STATUS_DTYPE, "Unsupported input dtype: %s",
                                       dtype_words(compose_meta(&c, input)->dtype)));
        if (!compose_has(&c, "zero_point") || meta_numel(compose_meta(&c, points)) == 0)
                compose_check(&c, fail(STATUS_VALUE, "quantize_affine: zero_point is None"));
        const Blocks blocks = blocks_named(&c);
        Value x = in_blocks(&c, &blocks, input);
        Value inverse = OP(&c, "aten::reciprocal", per_block(&c, &blocks, NAMED(&c, "scale")));
        x = OP(&c, "aten::round", OP(&c, "aten::mul.Tensor", x, inverse));
        x = OP(&c, "aten::add.Tensor", x, per_block(&c, &blocks, points));
        x = as_before(&c, &blocks, OP(&c, "aten::clamp", x, low, high));
        return compose_end(&c, compose_cast(&c, x, NAMED(&c, "output_dtype").dtype), out);
}

static Status dequantize_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value low, high;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input");
        const Dtype stored = NAMED(&c, "input_dtype").dtype, to = NAMED(&c, "output_dtype").dtype;
        if (compose_meta(&c, input)->dtype != stored)
                compose_check(&c, fail(STATUS_DTYPE, "Expected: %s, got: %s", dtype_words(stored),
                                       dtype_words(compose_meta(&c, input)->dtype)));
        if (!is_small_float(to))
                compose_check(&c, fail(STATUS_DTYPE, "Unsupported output dtype: %s", dtype_words(to)));
        read_levels(&c, "input_dtype", &low, &high);
        const Blocks blocks = blocks_named(&c);
        Value x = compose_cast(&c, in_blocks(&c, &blocks, input), to);
        if (compose_has(&c, "zero_point"))
                x = OP(&c, "aten::sub.Tensor", x,
                       compose_cast(&c, per_block(&c, &blocks, NAMED(&c, "zero_point")), to));
        x = OP(&c, "aten::mul.Tensor", x, per_block(&c, &blocks, NAMED(&c, "scale")));
        return compose_end(&c, compose_cast(&c, as_before(&c, &blocks, x), to), out);
}

// ---- choosing ----
typedef struct Choice {
        Value low, high; // the least and the largest number of each block, with 0 between them
        Value scale, point;
        double least, most; // levels
} Choice;

static void find_range(Compose *c, const Blocks *blocks, Choice *choice)
{
        int64_t dims[MAX_RANK];
        int n = 0;
        for (int d = 0; d < blocks->rank; d++) {
                if ((blocks->reduced >> d & 1) != 0)
                        dims[n++] = d;
        }
        Value input = in_blocks(c, blocks, NAMED(c, "input")), keeps = NAMED(c, "keepdim");
        Value over = compose_ints(c, dims, n);
        Value low = OP(c, "aten::amin", input, over, keeps), high = OP(c, "aten::amax", input, over, keeps);
        choice->low = OP(c, "aten::minimum", low, OP(c, "aten::zeros_like", low));
        choice->high = OP(c, "aten::maximum", high, OP(c, "aten::zeros_like", high));
}

static double default_eps(Dtype dtype)
{
        return dtype == DTYPE_F64 ? DBL_MIN : dtype == DTYPE_F16 ? 0x1p-14 : (double)FLT_MIN;
}

static Value at_least_eps(Compose *c, Value scale)
{
        double eps = compose_has(c, "eps") ? compose_double(c, "eps")
                                           : default_eps(compose_meta(c, NAMED(c, "input"))->dtype);
        return OP(c, "aten::clamp", scale, value_float(eps));
}

static void choose_symmetric(Compose *c, bool clips, Choice *choice)
{
        if (clips) {
                Value most = OP(c, "aten::maximum", OP(c, "aten::neg", choice->low), choice->high);
                choice->scale =
                        OP(c, "aten::div.Scalar", most, value_float((choice->most - choice->least) / 2));
        } else {
                Value below = OP(c, "aten::div.Scalar", choice->low, value_float(choice->least));
                Value above = OP(c, "aten::div.Scalar", choice->high, value_float(choice->most));
                choice->scale =
                        OP(c, "aten::where.self", OP(c, "aten::gt.Tensor", below, above), below, above);
        }
        const double middle = (choice->most + choice->least + 1) / 2;
        choice->point = OP(c, "aten::full_like", choice->scale, value_int((int64_t)middle));
        choice->scale = at_least_eps(c, choice->scale);
}

static void choose_asymmetric(Compose *c, Value least, Value most, Choice *choice)
{
        Value range = OP(c, "aten::sub.Tensor", choice->high, choice->low);
        choice->scale =
                at_least_eps(c, OP(c, "aten::div.Scalar", range, value_float(choice->most - choice->least)));
        Value steps = OP(c, "aten::round", OP(c, "aten::div.Tensor", choice->low, choice->scale));
        choice->point = OP(c, "aten::clamp", OP(c, "aten::rsub.Scalar", steps, least), least, most);
}

// With keepdim: one number per block, in the tensor's dimensions.
static Value one_per_block(Compose *c, const Blocks *blocks, Value x)
{
        int64_t size[MAX_RANK];
        for (int d = 0; d < blocks->input_rank; d++)
                size[d] = blocks->block[d] == 0 ? 0 : blocks->input_size[d] / blocks->block[d];
        return compose_bool(c, "keepdim")
                       ? OP(c, "aten::reshape", x, compose_ints(c, size, blocks->input_rank))
                       : x;
}

static Status choose_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value least, most;
        compose_begin(&c, emitter, call);
        Choice choice = { .scale = value_none(), .point = value_none() };
        if (!compose_has(&c, "input"))
                compose_check(&c, fail(STATUS_UNSUPPORTED, "choose_qparams_affine: input is None"));
        else if (!compose_has(&c, "eps") && !dtype_is_float(compose_meta(&c, NAMED(&c, "input"))->dtype))
                compose_check(&c,
                              fail(STATUS_DTYPE, "choose_qparams_affine: the input must be a float tensor"));
        read_levels(&c, "target_dtype", &least, &most);
        if (compose_failed(&c))
                return compose_end(&c, value_none(), out);
        choice.least = number(least);
        choice.most = number(most);
        const Blocks blocks = blocks_named(&c);
        const char *type = NAMED(&c, "mapping_type").str->text;
        const bool clips = strcmp(type, "SYMMETRIC") == 0, asymmetric = strcmp(type, "ASYMMETRIC") == 0;
        find_range(&c, &blocks, &choice);
        if (asymmetric)
                choose_asymmetric(&c, least, most, &choice);
        else if (clips || strcmp(type, "SYMMETRIC_NO_CLIPPING_ERR") == 0)
                choose_symmetric(&c, clips, &choice);
        else
                compose_check(&c, fail(STATUS_VALUE, "Unsupported mapping type: %s", type));
        Value scale = one_per_block(&c, &blocks, choice.scale);
        Value point = one_per_block(&c, &blocks, choice.point);
        const Dtype own = compose_meta(&c, NAMED(&c, "input"))->dtype;
        scale = compose_cast(&c, scale,
                             compose_has(&c, "scale_dtype") ? NAMED(&c, "scale_dtype").dtype : own);
        if (compose_has(&c, "zero_point_dtype"))
                point = compose_cast(&c, point, NAMED(&c, "zero_point_dtype").dtype);
        else if (asymmetric)
                point = compose_cast(&c, point, DTYPE_I32);
        return compose_end(&c, compose_tuple(&c, (Value[]){ scale, point }, 2), out);
}

// ---- products of levels ----
static Status int_mm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), b = NAMED(&c, "mat2");
        const TensorMeta *self = compose_meta(&c, a), *mat2 = compose_meta(&c, b);
        if (self->rank != 2 || mat2->rank != 2)
                compose_check(&c, fail(STATUS_SHAPE, "_int_mm: expected matrices"));
        else if ((self->dtype != DTYPE_I8 && self->dtype != DTYPE_U8) || mat2->dtype != DTYPE_I8)
                compose_check(&c, fail(STATUS_DTYPE, "_int_mm: expected int8, but got %s and %s",
                                       dtype_words(self->dtype), dtype_words(mat2->dtype)));
        Value product = OP(&c, "aten::mm", compose_cast(&c, a, DTYPE_I32), compose_cast(&c, b, DTYPE_I32));
        return compose_end(&c, product, out);
}

// Products of float8 in float32: a scale each, or one for each row of `self` and column of `mat2`.
static Status scaled_mm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), b = NAMED(&c, "mat2"),
              scales[] = { NAMED(&c, "scale_a"), NAMED(&c, "scale_b") };
        const TensorMeta *self = compose_meta(&c, a), *mat2 = compose_meta(&c, b);
        if (self->rank != 2 || mat2->rank != 2)
                return fail(STATUS_SHAPE, "_scaled_mm: expected matrices");
        if (!dtype_is_float8(self->dtype) || !dtype_is_float8(mat2->dtype))
                return fail(STATUS_DTYPE, "_scaled_mm: expected float8, but got %s and %s",
                            dtype_words(self->dtype), dtype_words(mat2->dtype));
        if (compose_has(&c, "scale_result"))
                return fail(STATUS_UNSUPPORTED, "_scaled_mm: scale_result is not supported");
        const Dtype to = compose_has(&c, "out_dtype") ? NAMED(&c, "out_dtype").dtype : self->dtype;
        Value product = OP(&c, "aten::mm", compose_cast(&c, a, DTYPE_F32), compose_cast(&c, b, DTYPE_F32));
        for (int i = 0; i < 2; i++) {
                const TensorMeta *meta = compose_meta(&c, scales[i]);
                const int64_t rows = i == 0 ? self->size[0] : 1, columns = i == 0 ? 1 : mat2->size[1];
                bool by_row = meta->rank == 2 && meta->size[0] == rows && meta->size[1] == columns;
                if (meta->dtype != DTYPE_F32 || (meta_numel(meta) != 1 && !by_row))
                        compose_check(&c, fail(STATUS_SHAPE,
                                               "_scaled_mm: expected a float32 scale, or [%ld, %ld] of them",
                                               (long)rows, (long)columns));
                product = OP(&c, "aten::mul.Tensor", product, scales[i]);
        }
        if (compose_has(&c, "bias"))
                product = OP(&c, "aten::add.Tensor", product, compose_cast(&c, NAMED(&c, "bias"), DTYPE_F32));
        return compose_end(&c, compose_cast(&c, product, to), out);
}

// Summed and scaled in float32, rounded once.
static Status int8_weights_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self"), weight = NAMED(&c, "mat2"), scales = NAMED(&c, "scales");
        const Dtype dtype = compose_meta(&c, x)->dtype;
        const TensorMeta *levels = compose_meta(&c, weight), *scale = compose_meta(&c, scales);
        if (!is_small_float(dtype) || levels->dtype != DTYPE_I8)
                compose_check(&c, fail(STATUS_DTYPE,
                                       "_weight_int8pack_mm: expected floats and int8, but got %s "
                                       "and %s",
                                       dtype_words(dtype), dtype_words(levels->dtype)));
        else if (scale->dtype != dtype)
                compose_check(&c, fail(STATUS_DTYPE, "expected scalar type %s but found %s",
                                       dtype_words(dtype), dtype_words(scale->dtype)));
        else if (compose_meta(&c, x)->rank != 2 || levels->rank != 2 || scale->rank != 1 ||
                 scale->size[0] != levels->size[0])
                compose_check(&c,
                              fail(STATUS_SHAPE, "_weight_int8pack_mm: expected matrices, and a scale for "
                                                 "each row of weights"));
        Value product =
                OP(&c, "aten::linear", compose_cast(&c, x, DTYPE_F32), compose_cast(&c, weight, DTYPE_F32));
        product = OP(&c, "aten::mul.Tensor", product, compose_cast(&c, scales, DTYPE_F32));
        return compose_end(&c, compose_cast(&c, product, dtype), out);
}

#define LEVELS "Scalar? quant_min=None, Scalar? quant_max=None"
const OpDef affine_ops[] = {
        { "torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType "
          "target_dtype, " LEVELS ", float? eps=None, ScalarType? scale_dtype=None, ScalarType? "
          "zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
          DTYPES_ALL, .expand = choose_expand, .traits = TRAIT_FRESH },
        { "torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, "
          "ScalarType output_dtype, " LEVELS ") -> Tensor",
          DTYPES_ALL, .expand = quantize_expand, .traits = TRAIT_FRESH },
        { "torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, "
          "ScalarType input_dtype, " LEVELS ", ScalarType output_dtype=float) -> Tensor",
          DTYPES_ALL, .expand = dequantize_expand, .traits = TRAIT_FRESH },
        { "aten::_int_mm(Tensor self, Tensor mat2) -> Tensor", DTYPES_ALL, .expand = int_mm_expand,
          .traits = TRAIT_FRESH },
        { "aten::_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
          "Tensor? "
          "scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
          0, .expand = scaled_mm_expand, .traits = TRAIT_FRESH },
        { "aten::_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", DTYPES_ALL,
          .expand = int8_weights_expand, .traits = TRAIT_FRESH },
};
OP_FILE(affine_ops);
