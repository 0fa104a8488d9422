// SPDX-License-Identifier: Apache-2.0
// fake_quantize.c: rounding to levels, as quantised models are trained.
#include <math.h>
#include "core/ops/compose.h"

// Per channel PyTorch goes through int64: what that cannot hold becomes the lowest level, as NaN
// does.
static Value to_levels(Compose *c, Value x, Value scale, Value zero_point, bool channels, Value *out_level)
{
        bool by_tensor = scale.kind == VALUE_TENSOR;
        Value level;
        if (by_tensor) {
                level = OP(c, "aten::mul.Tensor", x, OP(c, "aten::reciprocal", scale));
                // Whole zero points are added to whole numbers, others before rounding.
                bool whole = !dtype_is_float(compose_meta(c, zero_point)->dtype);
                level = whole ? OP(c, "aten::add.Tensor", OP(c, "aten::round", level), zero_point)
                              : OP(c, "aten::round", OP(c, "aten::add.Tensor", level, zero_point));
        } else {
                double inverse = (double)(1.0f / (float)compose_double(c, "scale"));
                level = OP(c, "aten::mul.Scalar", x, value_float(inverse));
                level = OP(c, "aten::add.Scalar", OP(c, "aten::round", level), zero_point);
        }
        // NaN becomes the lowest level.
        level = OP(c, "aten::nan_to_num", level, value_float(-INFINITY), value_float(INFINITY),
                   value_float(-INFINITY));
        if (channels)
                level = OP(c, "aten::where.ScalarSelf", OP(c, "aten::ge.Scalar", level, value_float(0x1p63)),
                           value_float(-INFINITY), level);
        *out_level = level;
        Value kept = OP(c, "aten::clamp", level, NAMED(c, "quant_min"), NAMED(c, "quant_max"));
        if (by_tensor)
                return OP(c, "aten::mul.Tensor", OP(c, "aten::sub.Tensor", kept, zero_point), scale);
        return OP(c, "aten::mul.Scalar", OP(c, "aten::sub.Scalar", kept, zero_point), scale);
}

static Status check_levels(Compose *c, const TensorMeta *self)
{
        int64_t low = compose_int(c, "quant_min"), high = compose_int(c, "quant_max");
        if (!dtype_is_float(self->dtype))
                return fail(STATUS_DTYPE, "fake_quantize: expected a floating point type but got %s",
                            dtype_words(self->dtype));
        if (low > high)
                return fail(STATUS_VALUE, "`quant_min` should be less than or equal to `quant_max`.");
        return STATUS_OK;
}

// (result, mask of the elements that the levels reach) for the *_cachemask forms.
static Status end_levels(Compose *c, Value result, Value level, Value *out)
{
        result = compose_cast(c, result, compose_meta(c, NAMED(c, "self"))->dtype);
        if (c->call->schema->n_returns == 1)
                return compose_end(c, result, out);
        Value mask = OP(c, "aten::logical_and", OP(c, "aten::ge.Scalar", level, NAMED(c, "quant_min")),
                        OP(c, "aten::le.Scalar", level, NAMED(c, "quant_max")));
        return compose_end(c, compose_tuple(c, (Value[]){ result, mask }, 2), out);
}

static Status fake_quantize_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), level = value_none();
        TRY(check_levels(&c, compose_meta(&c, self)));
        Value zero_point = NAMED(&c, "zero_point");
        const char *const names[] = { "scale", "zero_point" };
        for (int i = 0; i < 2; i++) {
                Value one = NAMED(&c, names[i]);
                if (one.kind == VALUE_TENSOR && meta_numel(compose_meta(&c, one)) != 1)
                        return fail(STATUS_SHAPE, "a Tensor with %ld elements cannot be converted to Scalar",
                                    (long)meta_numel(compose_meta(&c, one)));
        }
        const bool is_tensor = zero_point.kind == VALUE_TENSOR;
        if (!is_tensor &&
            (zero_point.i < compose_int(&c, "quant_min") || zero_point.i > compose_int(&c, "quant_max")))
                return fail(STATUS_VALUE, "`zero_point` must be between `quant_min` and `quant_max`.");
        if (is_tensor)
                zero_point = compose_cast(&c, zero_point, DTYPE_I64);
        Value result = to_levels(&c, compose_wide(&c, self), NAMED(&c, "scale"), zero_point, false, &level);
        return end_levels(&c, result, level, out);
}

static Status fake_quantize_channels_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), scale = NAMED(&c, "scale"), zero_point = NAMED(&c, "zero_point"),
              level;
        const TensorMeta *meta = compose_meta(&c, self), *sm = compose_meta(&c, scale),
                         *zm = compose_meta(&c, zero_point);
        TRY(check_levels(&c, meta));
        int axis = compose_dim(&c, "axis", meta->rank);
        if (compose_failed(&c))
                return c.status;
        if (compose_int(&c, "axis") < 0)
                return fail(STATUS_VALUE, "`axis` must be between 0 and number of dimensions of input");
        if (sm->rank != 1 || zm->rank != 1 || meta->rank == 0 || sm->size[0] != meta->size[axis] ||
            zm->size[0] != meta->size[axis])
                return fail(STATUS_SHAPE,
                            "dimensions of scale and zero-point are not consistent with input tensor");
        int64_t size[MAX_RANK];
        for (int d = 0; d < meta->rank; d++)
                size[d] = d == axis ? meta->size[axis] : 1;
        Value shape = compose_ints(&c, size, meta->rank);
        Value zeros = OP(&c, "aten::reshape", zero_point, shape);
        Value result = to_levels(&c, compose_wide(&c, self), OP(&c, "aten::reshape", scale, shape), zeros,
                                 true, &level);
        return end_levels(&c, result, level, out);
}

#define LEVELS "int quant_min, int quant_max) -> "
#define FAKE(schema, function)                                                                               \
        {                                                                                                    \
                "aten::" schema, 0, .expand = function##_expand, .traits = TRAIT_FRESH                       \
        }
const OpDef fake_quantize_ops[] = {
        FAKE("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, " LEVELS "Tensor",
             fake_quantize),
        FAKE("fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor "
             "zero_point, " LEVELS "Tensor",
             fake_quantize),
        FAKE("fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, " LEVELS
             "(Tensor output, Tensor mask)",
             fake_quantize),
        FAKE("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int "
             "axis, " LEVELS "Tensor",
             fake_quantize_channels),
        FAKE("fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, "
             "int axis, " LEVELS "(Tensor output, Tensor mask)",
             fake_quantize_channels),
};
OP_FILE(fake_quantize_ops);
