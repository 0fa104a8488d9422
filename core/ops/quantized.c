// SPDX-License-Identifier: Apache-2.0
// quantized.c: quantized_decomposed.*, the operators between float and integer tensors that
// PyTorch's quantisation puts into exported graphs. They are defined by expressions in Python,
// which these follow call by call, so that dtypes promote and numbers round as there.
#include <float.h>
#include "core/ops/quantized.h"

// ---- checks ----
bool quantized_bounds(Dtype dtype, int64_t *out_low, int64_t *out_high)
{
        static const struct {
                Dtype dtype;
                int64_t low, high;
        } bounds[] = { { DTYPE_U8, 0, UINT8_MAX },
                       { DTYPE_I8, INT8_MIN, INT8_MAX },
                       { DTYPE_U16, 0, UINT16_MAX },
                       { DTYPE_I16, INT16_MIN, INT16_MAX },
                       { DTYPE_I32, INT32_MIN, INT32_MAX } };
        for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++) {
                if (bounds[i].dtype == dtype) {
                        *out_low = bounds[i].low;
                        *out_high = bounds[i].high;
                        return true;
                }
        }
        return false;
}

static Dtype dtype_named(Compose *c, const char *name)
{
        Value value = NAMED(c, name);
        return value.kind == VALUE_DTYPE ? value.dtype : DTYPE_NONE;
}

static Status check_bounds(Compose *c)
{
        int64_t low, high;
        Dtype dtype = dtype_named(c, "dtype");
        if (!quantized_bounds(dtype, &low, &high))
                return fail(STATUS_DTYPE, "%s: Unsupported dtype: %s", c->name, dtype_words(dtype));
        if (NAMED(c, "quant_min").kind == VALUE_INT && compose_int(c, "quant_min") < low)
                return fail(STATUS_VALUE,
                            "quant_min out of bounds for dtype, quant_min_lower_bound: %ld "
                            "quant_min: %ld",
                            (long)low, (long)compose_int(c, "quant_min"));
        if (NAMED(c, "quant_max").kind == VALUE_INT && compose_int(c, "quant_max") > high)
                return fail(STATUS_VALUE,
                            "quant_max out of bounds for dtype, quant_max_upper_bound: %ld "
                            "quant_max: %ld",
                            (long)high, (long)compose_int(c, "quant_max"));
        return STATUS_OK;
}

// float32, float16 and bfloat16 as float32.
static Value float_input(Compose *c)
{
        Value input = compose_wide(c, NAMED(c, "input"));
        if (compose_meta(c, input)->dtype != DTYPE_F32)
                compose_check(c, fail(STATUS_DTYPE,
                                      "Expecting input to have dtype torch.float32, but got dtype: %s",
                                      dtype_words(compose_meta(c, input)->dtype)));
        return input;
}

static void check_stored(Compose *c)
{
        Dtype is = compose_meta(c, NAMED(c, "input"))->dtype, wanted = dtype_named(c, "dtype");
        if (is != wanted)
                compose_check(c, fail(STATUS_DTYPE, "Expecting input to have dtype: %s, but got %s",
                                      dtype_words(wanted), dtype_words(is)));
}

static Dtype out_dtype(Compose *c, const char *name)
{
        return compose_has(c, name) ? dtype_named(c, name) : DTYPE_F32;
}

// ---- one scale and zero point ----
// A tensor of one element as what multiplies and adds like a Python number.
static Value single(Compose *c, const char *name)
{
        Value value = NAMED(c, name);
        if (value.kind != VALUE_TENSOR)
                return value;
        if (meta_numel(compose_meta(c, value)) != 1)
                compose_check(c,
                              fail(STATUS_SHAPE, "Expecting %s tensor to be one element, but received : %ld",
                                   name, (long)meta_numel(compose_meta(c, value))));
        return OP(c, "aten::reshape", value, compose_ints(c, NULL, 0));
}

static Value with_number(Compose *c, const char *by_tensor, const char *by_number, Value x, Value y)
{
        return OP(c, y.kind == VALUE_TENSOR ? by_tensor : by_number, x, y);
}

static Value clamped(Compose *c, Value x)
{
        Value low = NAMED(c, "quant_min"), high = NAMED(c, "quant_max");
        return low.kind == VALUE_TENSOR
                       ? OP(c, "aten::clamp.Tensor", x, single(c, "quant_min"), single(c, "quant_max"))
                       : OP(c, "aten::clamp", x, low, high);
}

static Status quantize_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        compose_check(&c, check_bounds(&c));
        Value input = float_input(&c), scale = single(&c, "scale"), zero_point = single(&c, "zero_point");
        if (!compose_failed(&c) && scale.kind == VALUE_FLOAT && scale.f == 0)
                compose_check(&c, fail(STATUS_VALUE, "%s: float division by zero", c.name));
        if (scale.kind == VALUE_TENSOR)
                OP(&c, "aten::_assert_async.msg", OP(&c, "aten::ne.Scalar", scale, value_int(0)),
                   compose_text(&c, "float division by zero"));
        Value inverse = scale.kind == VALUE_FLOAT
                                ? value_float(1.0 / scale.f)
                                : OP(&c, "aten::reciprocal", compose_cast(&c, scale, DTYPE_F64));
        Value level = OP(&c, "aten::round",
                         with_number(&c, "aten::mul.Tensor", "aten::mul.Scalar", input, inverse));
        level = clamped(&c, with_number(&c, "aten::add.Tensor", "aten::add.Scalar", level, zero_point));
        return compose_end(&c, compose_cast(&c, level, dtype_named(&c, "dtype")), out);
}

static Status dequantize_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        check_stored(&c);
        int64_t low, high;
        if (!compose_failed(&c) && !quantized_bounds(dtype_named(&c, "dtype"), &low, &high))
                return fail(STATUS_DTYPE, "Unsupported dtype in dequantize_per_tensor: %s",
                            dtype_words(dtype_named(&c, "dtype")));
        Value x = compose_cast(&c, NAMED(&c, "input"), out_dtype(&c, "out_dtype"));
        const bool bare = compose_meta(&c, x)->rank == 0; // would be promoted to the dtype of the scale
        if (bare)
                x = OP(&c, "aten::reshape", x, INTS(&c, 1));
        x = with_number(&c, "aten::sub.Tensor", "aten::sub.Scalar", x, single(&c, "zero_point"));
        x = with_number(&c, "aten::mul.Tensor", "aten::mul.Scalar", x, single(&c, "scale"));
        if (bare)
                x = OP(&c, "aten::reshape", x, compose_ints(&c, NULL, 0));
        return compose_end(&c, x, out);
}

// ---- one per channel ----
// As many numbers as scales has, in the shape that stands along `axis`.
static Value along_axis(Compose *c, const char *name)
{
        int64_t size[MAX_RANK];
        int rank = compose_meta(c, NAMED(c, "input"))->rank;
        int axis = compose_dim(c, "axis", rank);
        for (int i = 0; i < rank; i++)
                size[i] = i == axis ? -1 : 1;
        const TensorMeta *meta = compose_meta(c, NAMED(c, name)),
                         *scales = compose_meta(c, NAMED(c, "scales"));
        if (!compose_failed(c) && (scales->rank == 0 || scales->size[0] != meta_numel(scales)))
                compose_check(c, fail(STATUS_SHAPE, "%s: scales must be a vector", c->name));
        if (!compose_failed(c) && meta_numel(meta) != meta_numel(scales))
                compose_check(c, fail(STATUS_SHAPE, "%s: %s must have as many elements as scales, %ld",
                                      c->name, name, (long)meta_numel(scales)));
        return OP(c, "aten::reshape", NAMED(c, name), compose_ints(c, size, rank));
}

static Status quantize_channels_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        compose_check(&c, check_bounds(&c));
        Value inverse = OP(&c, "aten::reciprocal", along_axis(&c, "scales"));
        Value level = OP(&c, "aten::round", OP(&c, "aten::mul.Tensor", float_input(&c), inverse));
        level = clamped(&c, OP(&c, "aten::add.Tensor", level, along_axis(&c, "zero_points")));
        return compose_end(&c, compose_cast(&c, level, dtype_named(&c, "dtype")), out);
}

static Status dequantize_channels_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        compose_check(&c, check_bounds(&c));
        check_stored(&c);
        Value x = NAMED(&c, "input");
        if (compose_has(&c, "zero_points"))
                x = OP(&c, "aten::sub.Tensor", x, along_axis(&c, "zero_points"));
        x = OP(&c, "aten::mul.Tensor", x, along_axis(&c, "scales"));
        return compose_end(&c, compose_cast(&c, x, out_dtype(&c, "out_dtype")), out);
}

// ---- one per token: a row of the last dimension ----
static void check_tokens(Compose *c)
{
        const TensorMeta *input = compose_meta(c, NAMED(c, "input"));
        int64_t tokens = 1;
        for (int i = 0; i + 1 < input->rank; i++)
                tokens *= input->size[i];
        static const char *const names[] = { "scales", "zero_points" };
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                int64_t n = meta_numel(compose_meta(c, NAMED(c, names[i])));
                if (n != tokens)
                        compose_check(c, fail(STATUS_SHAPE, "num_tokens: %ld %s: %ld", (long)tokens, names[i],
                                              (long)n));
        }
}

static Value to_levels(Compose *c, Value x, Value scales, Value zero_points)
{
        Value level = OP(c, "aten::mul.Tensor", x, OP(c, "aten::reciprocal", scales));
        level = OP(c, "aten::round", OP(c, "aten::add.Tensor", level, zero_points));
        return compose_cast(c, clamped(c, level), dtype_named(c, "dtype"));
}

static Status quantize_tokens_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        compose_check(&c, check_bounds(&c));
        check_tokens(&c);
        return compose_end(
                &c, to_levels(&c, NAMED(&c, "input"), NAMED(&c, "scales"), NAMED(&c, "zero_points")), out);
}

static Status dequantize_tokens_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = OP(&c, "aten::sub.Tensor", NAMED(&c, "input"), NAMED(&c, "zero_points"));
        x = OP(&c, "aten::mul.Tensor", x, NAMED(&c, "scales"));
        return compose_end(&c, compose_cast(&c, x, dtype_named(&c, "output_dtype")), out);
}

// ---- one per group of a row ----
// The size of the groups; 1 after a failure.
static int64_t group_size(Compose *c)
{
        const TensorMeta *input = compose_meta(c, NAMED(c, "input")),
                         *scales = compose_meta(c, NAMED(c, "scales"));
        int64_t size = compose_int(c, "group_size");
        Status status = STATUS_OK;
        if (size <= 1)
                status = fail(STATUS_VALUE, "group_size must be > 1");
        else if (input->rank != 2)
                status = fail(STATUS_SHAPE, "input must be 2-dimensional");
        else if (size > input->size[1] && scales->rank > 0 && scales->size[scales->rank - 1] == 1)
                size = input->size[1];
        if (status == STATUS_OK && (size == 0 || input->size[1] % size != 0))
                status = fail(STATUS_SHAPE, "input.shape[-1] must be divisible by group_size");
        compose_check(c, status);
        return status == STATUS_OK ? size : 1;
}

static Value grouped(Compose *c, const char *name, int64_t size)
{
        return OP(c, "aten::reshape", NAMED(c, name), INTS(c, -1, size));
}

static Status quantize_groups_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int64_t size = group_size(&c);
        Value is_number =
                OP(&c, "aten::logical_not", OP(&c, "aten::any", OP(&c, "aten::isnan", NAMED(&c, "input"))));
        OP(&c, "aten::_assert_async.msg", is_number, compose_text(&c, "to_quant must not contain NaNs"));
        Value x = to_levels(&c, grouped(&c, "input", size), grouped(&c, "scales", 1),
                            grouped(&c, "zero_points", 1));
        return compose_end(&c, OP(&c, "aten::reshape_as", x, NAMED(&c, "input")), out);
}

static Status dequantize_groups_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = grouped(&c, "input", group_size(&c));
        if (compose_has(&c, "zero_points"))
                x = OP(&c, "aten::sub.Tensor", x, grouped(&c, "zero_points", 1));
        else if (!compose_failed(&c) && compose_meta(&c, x)->dtype == DTYPE_BOOL)
                compose_check(&c, fail(STATUS_DTYPE, "Subtraction, the `-` operator, with a bool tensor is "
                                                     "not supported"));
        x = OP(&c, "aten::mul.Tensor", x, grouped(&c, "scales", 1));
        x = OP(&c, "aten::reshape_as", x, NAMED(&c, "input"));
        return compose_end(&c, compose_cast(&c, x, dtype_named(&c, "output_dtype")), out);
}

// ---- choosing ----
// The range of the input with 0 inside of it.
static void range_with_zero(Compose *c, Value low, Value high, Value *out_low, Value *out_high)
{
        *out_low = OP(c, "aten::minimum", low, OP(c, "aten::zeros_like", low));
        *out_high = OP(c, "aten::maximum", high, OP(c, "aten::zeros_like", high));
}

static Value at_least_eps(Compose *c, Value scale)
{
        Value eps = OP(c, "aten::full", INTS(c, 1), value_float(compose_double(c, "eps")),
                       value_dtype(DTYPE_F32));
        return OP(c, "aten::maximum", scale, eps);
}

static Status check_choice(Compose *c)
{
        int64_t low = compose_int(c, "quant_min"), high = compose_int(c, "quant_max"), least, most;
        Dtype dtype = dtype_named(c, "dtype"), input = compose_meta(c, NAMED(c, "input"))->dtype;
        if (input != DTYPE_F32 && input != DTYPE_F16 && input != DTYPE_BF16)
                return fail(STATUS_DTYPE,
                            "Expecting input to have dtype torch.float32/16/b16, but got dtype: %s",
                            dtype_words(input));
        if (!quantized_bounds(dtype, &least, &most))
                return fail(STATUS_DTYPE, "%s: Unsupported dtype: %s", c->name, dtype_words(dtype));
        if (low > 0 || high < 0 || low >= high)
                return fail(STATUS_VALUE, "%s: the range of levels must include 0 and be no single level",
                            c->name);
        return STATUS_OK;
}

// Of two numbers around 0; their difference may need 64 bits.
static double levels_between(int64_t least, int64_t most)
{
        return (double)((uint64_t)most - (uint64_t)least);
}

static Status end_choice(Compose *c, Value scale, Value zero_point, Value *out)
{
        const Value pair[] = { compose_cast(c, scale, DTYPE_F64), compose_cast(c, zero_point, DTYPE_I64) };
        return compose_end(c, compose_tuple(c, pair, 2), out);
}

static Status choose_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        compose_check(&c, check_choice(&c));
        Value ends = OP(&c, "aten::aminmax", NAMED(&c, "input")), low, high;
        range_with_zero(&c, compose_item(&c, ends, 0), compose_item(&c, ends, 1), &low, &high);
        int64_t least = compose_int(&c, "quant_min"), most = compose_int(&c, "quant_max");
        Value scale = OP(&c, "aten::div.Scalar", OP(&c, "aten::sub.Tensor", high, low),
                         value_float(levels_between(least, most)));
        scale = at_least_eps(&c, scale);
        Value zero_point = OP(&c, "aten::round", OP(&c, "aten::div.Tensor", low, scale));
        zero_point = OP(&c, "aten::rsub.Scalar", compose_cast(&c, zero_point, DTYPE_I32), value_int(least));
        zero_point = OP(&c, "aten::clamp", zero_point, value_int(least), value_int(most));
        return end_choice(&c, scale, zero_point, out);
}

static Status choose_symmetric_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        compose_check(&c, check_choice(&c));
        Value ends = OP(&c, "aten::aminmax", NAMED(&c, "input")), low, high;
        range_with_zero(&c, compose_item(&c, ends, 0), compose_item(&c, ends, 1), &low, &high);
        double levels = levels_between(compose_int(&c, "quant_min"), compose_int(&c, "quant_max"));
        high = OP(&c, "aten::maximum", OP(&c, "aten::neg", low), high);
        Value scale = at_least_eps(&c, OP(&c, "aten::div.Scalar", high, value_float(levels / 2)));
        Value zero_point =
                OP(&c, "aten::full", INTS(&c, 1), value_int(dtype_named(&c, "dtype") == DTYPE_U8 ? 128 : 0),
                   value_dtype(DTYPE_I64));
        return end_choice(&c, scale, zero_point, out);
}

static Status choose_tokens_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        if (dtype_named(&c, "dtype") != DTYPE_I8)
                compose_check(&c, fail(STATUS_DTYPE, "unsupported dtype in choose_qparams_per_token: %s",
                                       dtype_words(dtype_named(&c, "dtype"))));
        Value scales =
                OP(&c, "aten::amax", OP(&c, "aten::abs", NAMED(&c, "input")), INTS(&c, -1), value_bool(true));
        if (compose_meta(&c, scales)->dtype == DTYPE_F16)
                scales = compose_cast(&c, scales, DTYPE_F32);
        scales = OP(&c, "aten::div.Scalar", OP(&c, "aten::clamp_min", scales, value_float(1e-5)),
                    value_int(127));
        return compose_end(&c, compose_tuple(&c, (Value[]){ scales, OP(&c, "aten::zeros_like", scales) }, 2),
                           out);
}

// As XNNPACK chooses: the zero point by the end of the range that it fits better.
static Status choose_tokens_asymmetric_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), low, high, least = value_int(-128), most = value_int(127);
        range_with_zero(&c, OP(&c, "aten::amin", input, INTS(&c, -1), value_bool(true)),
                        OP(&c, "aten::amax", input, INTS(&c, -1), value_bool(true)), &low, &high);
        Value scale = OP(&c, "aten::div.Scalar", OP(&c, "aten::sub.Tensor", high, low), value_float(255));
        scale = OP(&c, "aten::clamp_min", scale, value_float(FLT_EPSILON));
        low = OP(&c, "aten::div.Tensor", low, scale);
        high = OP(&c, "aten::div.Tensor", high, scale);
        Value error = OP(&c, "aten::add.Tensor", OP(&c, "aten::add.Scalar", low, least),
                         OP(&c, "aten::add.Scalar", high, most));
        Value zero_point =
                OP(&c, "aten::where.self", OP(&c, "aten::gt.Scalar", error, value_int(0)),
                   OP(&c, "aten::rsub.Scalar", low, least), OP(&c, "aten::rsub.Scalar", high, most));
        zero_point = OP(&c, "aten::round", OP(&c, "aten::clamp", zero_point, least, most));
        return end_choice(&c, scale, zero_point, out);
}

// ---- the rest ----
static Status convert_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, OP(&c, "aten::_to_copy", NAMED(&c, "input"), NAMED(&c, "dtype")), out);
}

#define QUANTIZED(text, how)                                                                                 \
        {                                                                                                    \
                "quantized_decomposed::" text, DTYPES_ANY, .expand = how, .traits = TRAIT_FRESH              \
        }
#define LEVELS        "int quant_min, int quant_max, ScalarType dtype"
#define TENSOR_LEVELS "Tensor quant_min, Tensor quant_max, ScalarType dtype"
#define OUT_DTYPE     ", *, ScalarType? out_dtype=None) -> Tensor"
const OpDef quantized_ops[] = {
        QUANTIZED("quantize_per_tensor(Tensor input, float scale, int zero_point, " LEVELS ") -> Tensor",
                  quantize_expand),
        QUANTIZED("quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " LEVELS
                  ") -> Tensor",
                  quantize_expand),
        QUANTIZED("quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, " TENSOR_LEVELS
                  ") -> Tensor",
                  quantize_expand),
        QUANTIZED("dequantize_per_tensor(Tensor input, float scale, int zero_point, " LEVELS OUT_DTYPE,
                  dequantize_expand),
        QUANTIZED("dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " LEVELS
                          OUT_DTYPE,
                  dequantize_expand),
        QUANTIZED(
                "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, " TENSOR_LEVELS
                        OUT_DTYPE,
                dequantize_expand),
        QUANTIZED("quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, " LEVELS
                  ") -> Tensor",
                  quantize_channels_expand),
        QUANTIZED("dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, " LEVELS
                          OUT_DTYPE,
                  dequantize_channels_expand),
        QUANTIZED("quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " LEVELS ") -> Tensor",
                  quantize_tokens_expand),
        QUANTIZED("dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " LEVELS
                  ", ScalarType output_dtype) -> Tensor",
                  dequantize_tokens_expand),
        QUANTIZED("quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, " LEVELS
                  ", int group_size) -> Tensor",
                  quantize_groups_expand),
        QUANTIZED("dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, " LEVELS
                  ", int group_size, ScalarType output_dtype) -> Tensor",
                  dequantize_groups_expand),
        QUANTIZED("choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType "
                  "dtype) -> (Tensor, Tensor)",
                  choose_expand),
        QUANTIZED("choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, "
                  "ScalarType dtype) -> (Tensor, Tensor)",
                  choose_symmetric_expand),
        QUANTIZED("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
                  choose_tokens_expand),
        QUANTIZED("choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
                  choose_tokens_asymmetric_expand),
        QUANTIZED("_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, "
                  "Tensor)",
                  choose_tokens_asymmetric_expand),
        QUANTIZED("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor", convert_expand),
};
OP_FILE(quantized_ops);
