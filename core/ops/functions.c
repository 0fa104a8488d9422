// SPDX-License-Identifier: Apache-2.0
// functions.c: functions of torch and torch.special that are expressions of others: the normal
// distribution, the multivariate gamma function, put, conv_tbc, unravel_index, frexp,
// nonzero_static, embedding_renorm.
#include <float.h>
#include <math.h>
#include <inttypes.h>
#include "core/kernels/dense.h"
#include "core/ops/compose.h"
#include "core/ops/inplace.h"

static Status ndtr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value scaled = OP(&c, "aten::mul.Scalar", NAMED(&c, "self"), value_float(M_SQRT1_2));
        Value above = OP(&c, "aten::add.Scalar", OP(&c, "aten::erf", scaled), value_int(1));
        return compose_end(&c, OP(&c, "aten::mul.Scalar", above, value_float(0.5)), out);
}

static Status logit_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return emit_values(emitter, "aten::logit", call->args, call->n_args, out);
}

// log gamma_p(x): the sum of lgamma(x - j / 2), j < p, and p (p - 1) / 4 log pi.
static Status mvlgamma_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        enum { MAX_P = 1 << 20 };
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const int64_t p = compose_int(&c, "p");
        const Dtype dtype = compose_meta(&c, self)->dtype;
        if (p < 1)
                return fail(STATUS_VALUE, "p has to be greater than or equal to 1");
        if (p > MAX_P)
                return fail(STATUS_TOO_LARGE, "%s: p of at most %d is supported", c.name, MAX_P);
        if (dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "The input tensor may not be a boolean tensor.");
        if (!dtype_is_float(dtype) && !dtype_is_int(dtype))
                return fail(STATUS_DTYPE, "mvlgamma is not implemented for '%s'", dtype_words(dtype));
        Value steps = OP(&c, "aten::arange.start_step", value_float((double)(1 - p) / 2), value_float(0.5),
                         value_float(0.5), value_dtype(dtype_is_float(dtype) ? dtype : DTYPE_F32));
        Value each = OP(&c, "aten::add.Tensor", steps, OP(&c, "aten::unsqueeze", self, value_int(-1)));
        Value sum = OP(&c, "aten::sum.dim_IntList", OP(&c, "aten::lgamma", each), INTS(&c, -1));
        const double constant = (double)p * ((double)p - 1) / 4 * log(M_PI);
        return compose_end(&c, OP(&c, "aten::add.Scalar", sum, value_float(constant)), out);
}

// `x` of the shape of `like` as a vector, in the order of memory of `like`.
static Value in_order_of(Compose *c, Value x, const TensorMeta *like)
{
        int64_t order[MAX_RANK];
        for (int d = 0; d < like->rank; d++) {
                int at = d;
                for (; at > 0 && like->stride[order[at - 1]] < like->stride[d]; at--)
                        order[at] = order[at - 1];
                order[at] = d;
        }
        if (!meta_is_contiguous(like))
                x = OP(c, "aten::permute", x, compose_ints(c, order, like->rank));
        return OP(c, "aten::reshape", x, INTS(c, -1));
}

// Elements by their place in the flat tensor. Of equal places the last one wins, in the order in
// which PyTorch's loops go over source and index.
static Status put_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        if (call->inplace)
                compose_check(&c, inplace_check_apart(call, call->n_args));
        Value self = NAMED(&c, "self"), index = NAMED(&c, "index"), source = NAMED(&c, "source");
        const TensorMeta *meta = compose_meta(&c, self);
        if (compose_meta(&c, index)->dtype != DTYPE_I64)
                return fail(STATUS_DTYPE, "put_(): Expected a long tensor for index, but got %s",
                            dtype_words(compose_meta(&c, index)->dtype));
        if (compose_meta(&c, source)->dtype != meta->dtype)
                return fail(STATUS_DTYPE,
                            "put_(): self and source expected to have the same dtype, but got "
                            "self.dtype = %s and source.dtype = %s",
                            dtype_words(meta->dtype), dtype_words(compose_meta(&c, source)->dtype));
        if (meta_numel(compose_meta(&c, source)) != meta_numel(compose_meta(&c, index)))
                return fail(STATUS_SHAPE,
                            "put_(): Expected source and index to have the same number of elements");
        TensorMeta order = *compose_meta(&c, source);
        index = OP(&c, "aten::reshape", index, compose_ints(&c, order.size, order.rank));
        meta_set_strides_elementwise(
                &order, (const TensorMeta *[]){ compose_meta(&c, source), compose_meta(&c, index) }, 2);
        Value places[] = { in_order_of(&c, index, &order) };
        Value changed =
                OP(&c, "aten::index_put", OP(&c, "aten::reshape", self, INTS(&c, -1)),
                   compose_list(&c, places, 1), in_order_of(&c, source, &order), NAMED(&c, "accumulate"));
        changed = OP(&c, "aten::reshape", changed, compose_ints(&c, meta->size, meta->rank));
        Value copy = OP(&c, "aten::clone", self); // has self's strides
        return compose_end(&c, OP(&c, "aten::copy_", copy, changed), out);
}

// The taps side by side, times the weight: the product of matrices that PyTorch makes.
static Value taps_product(Compose *c, Value self, Value weight, int64_t pad)
{
        const TensorMeta *w = compose_meta(c, weight);
        const int64_t n_taps = w->size[0], n_in = w->size[1], n_out = w->size[2];
        self = OP(c, "aten::constant_pad_nd", self, INTS(c, 0, 0, 0, 0, pad, pad));
        Value taps = OP(c, "aten::unfold", self, value_int(0), value_int(n_taps), value_int(1));
        const TensorMeta *meta = compose_meta(c, taps);
        const int64_t size[] = { meta->size[0], meta->size[1], n_out };
        taps = OP(c, "aten::reshape", OP(c, "aten::permute", taps, INTS(c, 0, 1, 3, 2)),
                  INTS(c, saturating_product(size[0], size[1]), saturating_product(n_taps, meta->size[2])));
        Value made = OP(c, "aten::mm", taps,
                        OP(c, "aten::reshape", weight, INTS(c, saturating_product(n_taps, n_in), n_out)));
        return OP(c, "aten::reshape", made, compose_ints(c, size, 3));
}

// Time, batch, channels: a convolution over time. Negative padding leaves out rows at both ends.
static Status conv_tbc_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), weight = NAMED(&c, "weight"), bias = NAMED(&c, "bias");
        if (compose_meta(&c, self)->rank != 3 || compose_meta(&c, weight)->rank != 3)
                return fail(STATUS_SHAPE,
                            "Input must have 3 dims: time, batch, in_channel; weight tensor must "
                            "have 3 dims: kernel_width, in_channels, out_channels.");
        if (compose_meta(&c, bias)->rank != 1)
                return fail(STATUS_SHAPE, "Bias must be 1-D");
        const int64_t n = compose_meta(&c, self)->size[0], n_taps = compose_meta(&c, weight)->size[0];
        int64_t pad = compose_int(&c, "pad");
        if (pad < 0) {
                if (pad < -n || n + 2 * pad - n_taps + 1 < 0)
                        return fail(STATUS_VALUE,
                                    "conv_tbc: %" PRId64 " rows are too few for padding of "
                                    "%" PRId64 " and %" PRId64 " taps",
                                    n, pad, n_taps);
                if (n + 2 * pad - n_taps + 1 == 0) {
                        const int64_t size[] = { 0, compose_meta(&c, self)->size[1],
                                                 compose_meta(&c, weight)->size[2] };
                        return compose_end(&c, OP(&c, "aten::new_empty", self, compose_ints(&c, size, 3)),
                                           out);
                }
                self = OP(&c, "aten::narrow", self, value_int(0), value_int(-pad), value_int(n + 2 * pad));
                pad = 0;
        }
        if (dtype_info[compose_meta(&c, self)->dtype].kind == DTYPE_KIND_COMPLEX)
                return compose_end(&c, OP(&c, "aten::add.Tensor", taps_product(&c, self, weight, pad), bias),
                                   out);
        Value made = OP(&c, "aten::conv1d", OP(&c, "aten::permute", self, INTS(&c, 1, 2, 0)),
                        OP(&c, "aten::permute", weight, INTS(&c, 2, 1, 0)), bias, INTS(&c, 1), INTS(&c, pad));
        made = OP(&c, "aten::permute", made, INTS(&c, 2, 0, 1));
        return compose_end(&c, OP(&c, "aten::contiguous", made), out);
}

static Status isreal_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const Dtype dtype = compose_meta(&c, self)->dtype;
        if (dtype_info[dtype].kind == DTYPE_KIND_COMPLEX)
                return compose_end(&c, OP(&c, "aten::eq.Scalar", OP(&c, "aten::imag", self), value_int(0)),
                                   out);
        return compose_end(
                &c,
                OP(&c, "aten::ones_like", self, value_dtype(DTYPE_BOOL), value_none(), value_none(),
                   value_none(),
                   (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_PRESERVE }),
                out);
}

// How floats of a dtype are laid out in an integer of their size.
typedef struct FloatBits {
        Dtype integer;
        int exponent_at, bias;
        int64_t others, half; // sign and fraction; the exponent of [0.5, 1)
        double least;         // that is normal
} FloatBits;
static const FloatBits bits32 = { DTYPE_I32, 23, 126, -0x7f800001LL, 126LL << 23, FLT_MIN },
                       bits64 = { DTYPE_I64, 52, 1022, -0x7ff0000000000001LL, 1022LL << 52, DBL_MIN };

// Halfs go through float32, which holds all of them as normal numbers. 0, infinities and NaN have
// the exponent 0.
static Status frexp_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        enum { LIFT = 54 }; // makes the least number of float64 normal
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        const Dtype dtype = compose_meta(&c, x)->dtype;
        if (!dtype_is_float(dtype))
                return fail(STATUS_DTYPE, "torch.frexp() only supports floating-point dtypes");
        const FloatBits *bits = dtype == DTYPE_F64 ? &bits64 : &bits32;
        x = compose_wide(&c, x);
        Value tiny = OP(&c, "aten::lt.Scalar", OP(&c, "aten::abs", x), value_float(bits->least));
        Value lifted = OP(&c, "aten::mul.Scalar", x, value_float(ldexp(1, LIFT)));
        Value raw = OP(&c, "aten::view.dtype", OP(&c, "aten::where.self", tiny, lifted, x),
                       value_dtype(bits->integer));
        Value power = OP(&c, "aten::__rshift__.Scalar",
                         OP(&c, "aten::bitwise_and.Scalar", raw, value_int(~bits->others)),
                         value_int(bits->exponent_at));
        power = OP(&c, "aten::sub.Scalar", power, value_int(bits->bias));
        power = OP(&c, "aten::where.self", tiny, OP(&c, "aten::sub.Scalar", power, value_int(LIFT)), power);
        Value part = OP(&c, "aten::bitwise_and.Scalar", raw, value_int(bits->others));
        part = OP(&c, "aten::view.dtype", OP(&c, "aten::bitwise_or.Scalar", part, value_int(bits->half)),
                  value_dtype(bits == &bits64 ? DTYPE_F64 : DTYPE_F32));
        Value usual = OP(&c, "aten::logical_and", OP(&c, "aten::isfinite", x),
                         OP(&c, "aten::ne.Scalar", x, value_int(0)));
        part = compose_cast(&c, OP(&c, "aten::where.self", usual, part, x), dtype);
        power = OP(&c, "aten::where.ScalarOther", usual, power, value_int(0));
        power = compose_cast(&c, power, DTYPE_I32);
        return compose_end(&c, compose_tuple(&c, (Value[]){ part, power }, 2), out);
}

// The positions of the first `size` elements that are not 0, behind them rows of fill_value.
static Status nonzero_static_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), fill = NAMED(&c, "fill_value"), columns[MAX_RANK];
        const TensorMeta *meta = compose_meta(&c, self);
        const int64_t size = compose_int(&c, "size"), numel = meta_numel(meta);
        const Value i64 = value_dtype(DTYPE_I64), first = value_int(0);
        if (size < 0)
                return fail(STATUS_VALUE, "nonzero_static: 'size' must be an non-negative integer");
        if (size == INT64_MAX)
                return fail(STATUS_TOO_LARGE, "nonzero_static: 'size' is too large");
        if (meta->rank == 0 || numel == 0)
                return compose_end(&c, OP(&c, "aten::full", INTS(&c, size, meta->rank), fill, i64), out);
        Value is_set = OP(&c, "aten::ne.Scalar", OP(&c, "aten::reshape", self, INTS(&c, -1)), first);
        Value row = OP(&c, "aten::sub.Scalar", OP(&c, "aten::cumsum", is_set, first), value_int(1));
        row = OP(&c, "aten::where.ScalarOther", is_set, OP(&c, "aten::clamp_max", row, value_int(size)),
                 value_int(size)); // a row that is cut off again
        Value found = OP(&c, "aten::full", INTS(&c, size + 1), value_int(-1), i64);
        found = OP(&c, "aten::scatter.src", found, first, row, OP(&c, "aten::arange", value_int(numel), i64));
        found = OP(&c, "aten::slice.Tensor", found, first, first, value_int(size));
        Value lacking = OP(&c, "aten::lt.Scalar", found, first);
        int64_t inner = numel;
        for (int d = 0; d < meta->rank; d++) {
                inner /= meta->size[d];
                Value at = OP(&c, "aten::floor_divide.Scalar", found, value_int(inner));
                columns[d] = OP(&c, "aten::remainder.Scalar", at, value_int(meta->size[d]));
        }
        Value all = OP(&c, "aten::stack", compose_list(&c, columns, meta->rank), value_int(1));
        lacking = OP(&c, "aten::unsqueeze", lacking, value_int(1));
        return compose_end(&c, OP(&c, "aten::masked_fill.Scalar", all, lacking, fill), out);
}

// Rows that the indices name and whose norm is above max_norm get that norm. The factor is a double
// that becomes a number of the dtype of the product.
static Status embedding_renorm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), at = NAMED(&c, "indices"), most = NAMED(&c, "max_norm");
        const TensorMeta *meta = compose_meta(&c, self);
        const Dtype dtype = meta->dtype, index = compose_meta(&c, at)->dtype;
        if (meta->rank != 2)
                return fail(STATUS_SHAPE,
                            "Expected 2-dimensional tensor, but got %d-dimensional tensor for argument #1 "
                            "'self' (while checking arguments for embedding_renorm_)",
                            meta->rank);
        if (index != DTYPE_I64 && index != DTYPE_I32)
                return fail(STATUS_DTYPE,
                            "Expected tensor for argument #2 'indices' to have one of the following scalar "
                            "types: Long, Int; but got %s instead (while checking arguments for "
                            "embedding_renorm_)",
                            dtype_words(index));
        if (!dtype_is_float(dtype))
                return fail(STATUS_DTYPE,
                            "norm(): input dtype should be either floating point or complex. Got %s instead.",
                            dtype_words(dtype));
        at = compose_cast(&c, OP(&c, "aten::reshape", at, INTS(&c, -1)), DTYPE_I64);
        Value named = OP(&c, "aten::zeros", INTS(&c, meta->size[0]), value_dtype(DTYPE_BOOL));
        named = OP(&c, "aten::index_fill.int_Scalar", named, value_int(0), at, value_bool(true));
        Value norms = OP(&c, "aten::linalg_vector_norm", self, NAMED(&c, "norm_type"), INTS(&c, 1),
                         value_bool(true));
        norms = compose_cast(&c, norms, DTYPE_F64);
        Value above = OP(&c, "aten::logical_and", OP(&c, "aten::unsqueeze", named, value_int(1)),
                         OP(&c, "aten::gt.Scalar", norms, most));
        Value factor = OP(&c, "aten::div.Tensor", OP(&c, "aten::full_like", norms, most),
                          OP(&c, "aten::add.Scalar", norms, value_float(1e-7)));
        Value wide = compose_wide(&c, self);
        factor = compose_cast(&c, factor, compose_meta(&c, wide)->dtype);
        Value scaled = compose_cast(&c, OP(&c, "aten::mul.Tensor", wide, factor), dtype);
        return compose_end(&c, OP(&c, "aten::where.self", above, scaled, self), out);
}

#define MADE(schema, name, flags_)                                                                           \
        {                                                                                                    \
                "aten::" schema, 0, flags_, .expand = name##_expand, .traits = TRAIT_FRESH                   \
        }
const OpDef functions_ops[] = {
        MADE("special_ndtr(Tensor self) -> Tensor", ndtr, 0),
        MADE("special_logit(Tensor self, float? eps=None) -> Tensor", logit, 0),
        MADE("mvlgamma(Tensor self, int p) -> Tensor", mvlgamma, OP_INPLACE),
        MADE("special_multigammaln(Tensor self, int p) -> Tensor", mvlgamma, 0),
        MADE("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put,
             OP_INPLACE),
        MADE("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", conv_tbc, 0),
        MADE("isreal(Tensor self) -> Tensor", isreal, 0),
        MADE("embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
             embedding_renorm, OP_INPLACE),
        MADE("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", frexp, 0),
        MADE("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", nonzero_static, 0),
};
OP_FILE(functions_ops);
