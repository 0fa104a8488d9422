// SPDX-License-Identifier: Apache-2.0
// pointwise_unary.c: overloads of one tensor without parameters, and those whose parameters are
// numbers.
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/pointwise.h"

static Status check_lambda(const OpCall *call, const PointBound *bound)
{
        if (!dtype_is_float(bound->common))
                return fail(STATUS_DTYPE, "\"softshrink_check\" not implemented for '%s'",
                            dtype_words(bound->common));
        double lambda, largest = dtype_largest(bound->common);
        TRY(arg_double(call, SOFTSHRINK_LAMBD, &lambda));
        if (!(lambda >= 0 && lambda <= largest))
                return fail(STATUS_VALUE, "lambda must be in range [0, %g] for input dtype %s, but found %g",
                            largest, dtype_words(bound->common), lambda);
        return STATUS_OK;
}

Status point_adjust_clamp(const OpCall *call, PointBound *bound)
{
        (void)call;
        if (!dtype_is_float(bound->common))
                return STATUS_OK;
        for (int k = 0; k < 2; k++) {
                if (isnan(bound->params.of[k].f)) {
                        bound->kernel = &point_fill;
                        bound->params.of[0].f = NAN;
                }
        }
        return STATUS_OK;
}

// Angles of complex numbers are contiguous in PyTorch, those of real ones are laid out as self is.
static const PointOp *select_angle(const OpCall *call)
{
        static const PointOp of_real = { .kernel = &point_angle, .args = "t", .typing = TYPE_FLOAT },
                             of_complex = { .kernel = &point_angle,
                                            .args = "t",
                                            .layout = LAYOUT_CONTIGUOUS };
        return point_is_complex(arg_meta(call, SELF)->dtype) ? &of_complex : &of_real;
}

static Status check_sign(const OpCall *call, const PointBound *bound)
{
        (void)call;
        return point_is_complex(bound->common)
                       ? fail(STATUS_DTYPE, "Unlike NumPy, torch.sign is not intended to support complex "
                                            "numbers. Please use torch.sgn instead.")
                       : STATUS_OK;
}

// For integer tensors the limits are truncated to integers first.
static Status check_hardtanh(const OpCall *call, const PointBound *bound)
{
        for (int i = 1; i <= 2; i++) {
                Value limit = arg_number(call, i);
                if (dtype_is_int(bound->common) && limit.kind == VALUE_FLOAT)
                        limit.f = trunc(limit.f);
                if (bound->common == DTYPE_U8 &&
                    (limit.kind == VALUE_FLOAT ? limit.f < 0 : limit.kind == VALUE_INT && limit.i < 0))
                        return fail(STATUS_DTYPE,
                                    "cannot do hardtanh on an unsigned type with negative limits");
                TRY(number_check_fits(limit, bound->common));
        }
        return STATUS_OK;
}

static Status check_celu(const OpCall *call, const PointBound *bound)
{
        (void)bound;
        double alpha;
        TRY(arg_double(call, CELU_ALPHA, &alpha));
        return alpha == 0 ? fail(STATUS_RUN, "ZeroDivisionError: alpha cannot be 0 for CELU") : STATUS_OK;
}

// celu(x, alpha) = elu(x, alpha, 1, 1 / alpha)
static Status adjust_celu(const OpCall *call, PointBound *bound)
{
        (void)call;
        double alpha = bound->params.of[0].f;
        bound->params.of[1].f = 1;
        bound->params.of[2].f = 1 / alpha;
        return STATUS_OK;
}

static Status adjust_round(const OpCall *call, PointBound *bound)
{
        int64_t decimals;
        TRY(arg_int(call, ROUND_DECIMALS_DECIMALS, &decimals));
        bound->kernel = decimals == 0  ? &point_round
                        : decimals > 0 ? &point_round_up_decimals
                                       : &point_round_down_decimals;
        bound->params.of[0].f = pow(10, fabs((double)decimals));
        return STATUS_OK;
}

static Status adjust_polygamma(const OpCall *call, PointBound *bound)
{
        int64_t n;
        TRY(arg_int(call, POLYGAMMA_N, &n));
        if (n < 0)
                return fail(STATUS_VALUE, "polygamma(n, x) does not support negative n.");
        if (n > INT16_MAX)
                return fail(STATUS_VALUE, "polygamma(n, x): n is %" PRId64 "; the largest is %d", n,
                            INT16_MAX);
        bound->params.of[0].f = (double)n;
        return STATUS_OK;
}

static Status adjust_logit(const OpCall *call, PointBound *bound)
{
        if (arg_is_none(call, LOGIT_EPS))
                return STATUS_OK;
        double eps;
        TRY(arg_double(call, LOGIT_EPS, &eps));
        if (eps < 0)
                return STATUS_OK;
        bound->kernel = &point_logit_eps;
        const double ends[] = { eps, 1 - eps };
        for (int k = 0; k < 2; k++) {
                double element;
                element_from_f64(bound->common, &element, ends[k]);
                bound->params.of[k].f = element_as_f64(bound->common, &element);
        }
        return STATUS_OK;
}

static Status adjust_nan_to_num(const OpCall *call, PointBound *bound)
{
        bool is_complex = point_is_complex(bound->common);
        if (!dtype_is_float(bound->common) && !is_complex)
                return STATUS_OK;
        Dtype part = point_out_dtype(&point_complex_abs, bound->common);
        double largest = dtype_largest(part), values[] = { 0, largest, -largest };
        for (int k = 0; k < 3; k++) {
                if (!arg_is_none(call, k + 1))
                        TRY(arg_double(call, k + 1, &values[k]));
                if (is_complex)
                        bound->params.of[k].c = (ComplexF64){ values[k], 0 };
                else
                        bound->params.of[k].f = values[k];
        }
        return STATUS_OK;
}

#define HARDTANH_WORDS "Bool inputs not supported for hardtanh"
#define NEG_WORDS                                                                                            \
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "      \
        "mask, use the `~` or "                                                                              \
        "`logical_not()` "                                                                                   \
        "operator instead."

#define SAME(name, kernel_)                                                                                  \
        POINT_OP(name "(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_##kernel_, .args = "t")
#define FLOATING(name, kernel_)                                                                              \
        POINT_OP(name "(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_##kernel_, .args = "t",        \
                 .typing = TYPE_FLOAT)
// PyTorch calls the argument x.
#define FLOATING_X(name, kernel_)                                                                            \
        POINT_OP(name "(Tensor x) -> Tensor", 0, .kernel = &point_##kernel_, .args = "t",                    \
                 .typing = TYPE_FLOAT)
#define FUNCTION(name, flags, ...) POINT_OP(name, flags, .args = "t", __VA_ARGS__)

const OpDef pointwise_unary_ops[] = {
        SAME("abs", abs),
        SAME("absolute", abs),
        SAME("ceil", ceil),
        SAME("floor", floor),
        SAME("frac", frac),
        POINT_AS(.role = ROLE_ROUND, "round(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_round,
                 .args = "t"),
        FUNCTION("sign(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_sign, .check = check_sign),
        SAME("sgn", sign),
        SAME("trunc", trunc),
        SAME("fix", trunc),
        SAME("bitwise_not", bitwise_not),
        FUNCTION("neg(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_neg, .bool_words = NEG_WORDS),
        FUNCTION("negative(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_neg,
                 .bool_words = NEG_WORDS),
        FUNCTION("square(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_square, .typing = TYPE_INT),
        POINT_OP("angle(Tensor self) -> Tensor", 0, .select = select_angle),
        FLOATING("acos", acos),
        FLOATING("arccos", acos),
        FLOATING("acosh", acosh),
        FLOATING("arccosh", acosh),
        FLOATING("asin", asin),
        FLOATING("arcsin", asin),
        FLOATING("asinh", asinh),
        FLOATING("arcsinh", asinh),
        FLOATING("atan", atan),
        FLOATING("arctan", atan),
        FLOATING("atanh", atanh),
        FLOATING("arctanh", atanh),
        FLOATING("cos", cos),
        FLOATING("cosh", cosh),
        FLOATING("deg2rad", deg2rad),
        FLOATING("erf", erf),
        FLOATING("erfc", erfc),
        FLOATING("exp", exp),
        FLOATING("exp2", exp2),
        FLOATING("expm1", expm1),
        FLOATING("lgamma", lgamma),
        FLOATING("log", log),
        FLOATING("log10", log10),
        FLOATING("log1p", log1p),
        FLOATING("log2", log2),
        FLOATING("rad2deg", rad2deg),
        FLOATING("reciprocal", reciprocal),
        FLOATING("rsqrt", rsqrt),
        POINT_AS(.activation = "sigmoid", "sigmoid(Tensor self) -> Tensor", OP_INPLACE,
                 .kernel = &point_sigmoid, .args = "t", .typing = TYPE_FLOAT),
        FLOATING("sin", sin),
        FLOATING("sinc", sinc),
        FLOATING("sinh", sinh),
        FLOATING("sqrt", sqrt),
        FLOATING("tan", tan),
        POINT_AS(.activation = "tanh", "tanh(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_tanh,
                 .args = "t", .typing = TYPE_FLOAT),
        FLOATING("special_expit", sigmoid),
        FLOATING("digamma", digamma),
        FLOATING("special_digamma", digamma),
        FLOATING("special_psi", digamma),
        FLOATING("erfinv", erfinv),
        FLOATING("special_erfinv", erfinv),
        FLOATING("i0", i0),
        FLOATING("special_i0", i0),
        FLOATING("special_i0e", i0e),
        FLOATING("special_i1", i1),
        FLOATING("special_i1e", i1e),
        FLOATING("special_entr", entr),
        FLOATING("special_erf", erf),
        FLOATING("special_erfc", erfc),
        FLOATING("special_erfcx", erfcx),
        FLOATING("special_exp2", exp2),
        FLOATING("special_expm1", expm1),
        FLOATING("special_gammaln", lgamma),
        FLOATING("special_log1p", log1p),
        FLOATING("special_log_ndtr", log_ndtr),
        FLOATING("special_ndtri", ndtri),
        FLOATING("special_sinc", sinc),
        FLOATING("special_bessel_j0", bessel_j0),
        FLOATING("special_bessel_j1", bessel_j1),
        FLOATING("special_bessel_y0", bessel_y0),
        FLOATING("special_bessel_y1", bessel_y1),
        FLOATING("special_modified_bessel_i0", i0),
        FLOATING("special_modified_bessel_i1", i1),
        FLOATING("special_modified_bessel_k0", bessel_k0),
        FLOATING("special_modified_bessel_k1", bessel_k1),
        FLOATING_X("special_scaled_modified_bessel_k0", bessel_k0_scaled),
        FLOATING_X("special_scaled_modified_bessel_k1", bessel_k1_scaled),
        FLOATING_X("special_spherical_bessel_j0", spherical_j0),
        POINT_OP("polygamma(int n, Tensor self) -> Tensor", 0, .args = ".t", .kernel = &point_polygamma,
                 .typing = TYPE_FLOAT, .adjust = adjust_polygamma),
        POINT_OP("special_polygamma(int n, Tensor self) -> Tensor", 0, .args = ".t",
                 .kernel = &point_polygamma, .typing = TYPE_FLOAT, .adjust = adjust_polygamma),
        FUNCTION("isnan(Tensor self) -> Tensor", 0, .kernel = &point_isnan),
        FUNCTION("isinf(Tensor self) -> Tensor", 0, .kernel = &point_isinf),
        FUNCTION("isfinite(Tensor self) -> Tensor", 0, .kernel = &point_isfinite),
        FUNCTION("isposinf(Tensor self) -> Tensor", 0, .kernel = &point_isposinf),
        FUNCTION("isneginf(Tensor self) -> Tensor", 0, .kernel = &point_isneginf),
        FUNCTION("signbit(Tensor self) -> Tensor", 0, .kernel = &point_signbit),
        POINT_OP("logical_not(Tensor self) -> Tensor", OP_INPLACE, .args = "m", .kernel = &point_logical_not,
                 .typing = TYPE_MASK),
        POINT_OP("round.decimals(Tensor self, *, int decimals) -> Tensor", OP_INPLACE, .args = "t.",
                 .kernel = &point_round_up_decimals, .adjust = adjust_round),
        POINT_OP("logit(Tensor self, float? eps=None) -> Tensor", OP_INPLACE, .args = "t.",
                 .kernel = &point_logit, .typing = TYPE_FLOAT, .adjust = adjust_logit),
        POINT_OP("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
                 OP_INPLACE, .args = "t...", .kernel = &point_nan_to_num, .adjust = adjust_nan_to_num),
};
OP_FILE(pointwise_unary_ops);

static const PointOp *select_gelu(const OpCall *call)
{
        static const PointOp none = { .kernel = &point_gelu, .args = "t." },
                             tanh_form = { .kernel = &point_gelu_tanh, .args = "t." };
        const char *approximate = arg_text(call, GELU_APPROXIMATE);
        if (approximate == NULL || strcmp(approximate, "none") == 0)
                return &none;
        if (strcmp(approximate, "tanh") == 0)
                return &tanh_form;
        fail(STATUS_VALUE, "approximate argument must be either none or tanh.");
        return NULL;
}

const OpDef pointwise_activation_ops[] = {
        // For an infinite input PyTorch gives NaN or not, depending on the layout.
        POINT_ROW(.activation = "gelu", TRAIT_LAYOUT_NEAR,
                  "gelu(Tensor self, *, str approximate=\"none\") -> Tensor", OP_INPLACE,
                  .select = select_gelu),
        POINT_AS(.activation = "silu", "silu(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_silu,
                 .args = "t"),
        SAME("mish", mish),
        POINT_AS(.activation = "hardswish", "hardswish(Tensor self) -> Tensor", OP_INPLACE,
                 .kernel = &point_hardswish, .args = "t"),
        SAME("hardsigmoid", hardsigmoid),
        FUNCTION("log_sigmoid(Tensor self) -> Tensor", 0, .kernel = &point_log_sigmoid,
                 .layout = LAYOUT_CONTIGUOUS),
        POINT_AS(.activation = "relu", "relu(Tensor self) -> Tensor", OP_INPLACE, .args = "t",
                 .kernel = &point_relu, .bool_words = "Boolean inputs not supported for relu"),
        POINT_AS(.activation = "clamp", "relu6(Tensor self) -> Tensor", OP_INPLACE, .args = "t",
                 .kernel = &point_clamp, .constants = { 0, 6 }, .bool_words = HARDTANH_WORDS),
        FUNCTION("selu(Tensor self) -> Tensor", OP_INPLACE, .kernel = &point_elu,
                 .constants = { 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1 }),
        POINT_AS(.activation = "clamp",
                 "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", OP_INPLACE,
                 .args = "taa", .kernel = &point_clamp, .adjust = point_adjust_clamp,
                 .bool_words = HARDTANH_WORDS, .check = check_hardtanh),
        POINT_OP("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
                 OP_INPLACE, .args = "tppp", .kernel = &point_elu),
        POINT_OP("celu(Tensor self, Scalar alpha=1.0) -> Tensor", OP_INPLACE, .args = "tp",
                 .kernel = &point_elu, .check = check_celu, .adjust = adjust_celu),
        POINT_OP("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", OP_INPLACE, .args = "tp",
                 .kernel = &point_leaky_relu),
        POINT_OP("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", 0, .args = "tpp",
                 .kernel = &point_softplus),
        POINT_OP("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", 0, .args = "tp",
                 .kernel = &point_softshrink, .check = check_lambda),
        POINT_OP("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", 0, .args = "tc",
                 .kernel = &point_hardshrink),
        POINT_OP("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", OP_INPLACE,
                 .args = "tpc", .kernel = &point_threshold),
};
OP_FILE(pointwise_activation_ops);
