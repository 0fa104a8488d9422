// SPDX-License-Identifier: Apache-2.0
// math_rows.c: Python's math module on numbers, and tensors of one element. Integers have 64 bits.
// gamma and lgamma are those of libm, which may differ from Python's in the last digits.
#include "core/targets/operators.h"

#include <math.h>
#include <string.h>

static Status real_of(Emitter *emitter, const OpCall *call, Value value, double *out)
{
        _cleanup_(value_clear) Value number = value_none();
        TRY(value_as_number(emitter, value, &number));
        if (!value_is_number(number) || number.kind == VALUE_COMPLEX)
                return fail(STATUS_VALUE, "%s(): must be a real number, not %s", call->schema->name,
                            value_kind_name(number.kind));
        *out = python_float(number);
        return STATUS_OK;
}

// A number that has no result: a domain error, or one beyond the range of floats.
static Status math_result(const OpCall *call, bool is_nan, bool is_finite, double result, Value *out)
{
        if (isnan(result) && !is_nan)
                return fail(STATUS_VALUE, "math domain error: %s", call->schema->name);
        if (isinf(result) && is_finite)
                return fail(STATUS_VALUE, "math range error: %s", call->schema->name);
        *out = value_float(result);
        return STATUS_OK;
}

// ---- of one real number ----
static double py_lgamma(double a)
{
        int sign;
        return lgamma_r(a, &sign);
}

static double py_degrees(double a)
{
        return a * (180.0 / M_PI);
}

static double py_radians(double a)
{
        return a * (M_PI / 180.0);
}

static double py_ulp(double a)
{
        if (!isfinite(a))
                return fabs(a);
        const double next = nextafter(fabs(a), INFINITY);
        return isinf(next) ? fabs(a) - nextafter(fabs(a), 0) : next - fabs(a);
}

#define MATH(names, name, function)                                                                          \
        static Status name##_expand(Emitter *emitter, const OpCall *call, Value *out)                        \
        {                                                                                                    \
                double a;                                                                                    \
                TRY(real_of(emitter, call, call->args[SELF], &a));                                           \
                return math_result(call, isnan(a), isfinite(a), function(a), out);                           \
        }
#include "core/targets/math.def"
#undef MATH

// ---- of two ----
#define MATH2(name, function)                                                                                \
        static Status name##_expand(Emitter *emitter, const OpCall *call, Value *out)                        \
        {                                                                                                    \
                double a, b;                                                                                 \
                TRY(real_of(emitter, call, call->args[PY_LEFT], &a));                                        \
                TRY(real_of(emitter, call, call->args[PY_RIGHT], &b));                                       \
                return math_result(call, isnan(a) || isnan(b), false, function(a, b), out);                  \
        }
MATH2(atan2, atan2)
MATH2(copysign, copysign)
MATH2(fmod, fmod)
MATH2(remainder, remainder)
MATH2(nextafter, nextafter)
#undef MATH2

static Status ldexp_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a;
        int64_t power;
        TRY(real_of(emitter, call, call->args[PY_LEFT], &a));
        TRY(value_as_int(emitter, call->args[PY_RIGHT], "i", &power));
        const int clamped = (int)(power > 5000 ? 5000 : power < -5000 ? -5000 : power);
        return math_result(call, isnan(a), isfinite(a), ldexp(a, clamped), out);
}

static Status length_of(Emitter *emitter, const OpCall *call, const Seq *items, Value *out)
{
        double length = 0;
        bool is_nan = false, is_inf = false;
        for (uint32_t i = 0; i < items->n; i++) {
                double a;
                TRY(real_of(emitter, call, items->items[i], &a));
                is_nan |= isnan(a);
                is_inf |= isinf(a);
                length = hypot(length, a);
        }
        *out = value_float(is_inf ? INFINITY : is_nan ? NAN : length);
        return STATUS_OK;
}

static Status hypot_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return length_of(emitter, call, call->args[PY_MATH_NUMBERS].seq, out);
}

static Status isfinite_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a;
        TRY(real_of(emitter, call, call->args[SELF], &a));
        *out = value_bool(isfinite(a));
        return STATUS_OK;
}

static Status isclose_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a, b, relative, absolute;
        TRY(real_of(emitter, call, call->args[PY_LEFT], &a));
        TRY(real_of(emitter, call, call->args[PY_RIGHT], &b));
        TRY(real_of(emitter, call, call->args[PY_ISCLOSE_REL_TOL], &relative));
        TRY(real_of(emitter, call, call->args[PY_ISCLOSE_ABS_TOL], &absolute));
        if (relative < 0 || absolute < 0)
                return fail(STATUS_VALUE, "tolerances must be non-negative");
        const double gap = fabs(a - b);
        bool close = a == b;
        if (!close && isfinite(a) && isfinite(b))
                close = gap <= fabs(relative * b) || gap <= fabs(relative * a) || gap <= absolute;
        *out = value_bool(close);
        return STATUS_OK;
}

static Status log_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a, base = 0;
        bool has_base = call->args[PY_LOG_BASE].kind != VALUE_NONE;
        TRY(real_of(emitter, call, call->args[SELF], &a));
        if (has_base)
                TRY(real_of(emitter, call, call->args[PY_LOG_BASE], &base));
        if (has_base && !(base > 0 && base != 1))
                return fail(STATUS_VALUE, "math domain error: log(%.17g, %.17g)", a, base);
        TRY(math_result(call, isnan(a), isfinite(a), log(a), out));
        if (has_base)
                *out = value_float(log(a) / log(base));
        return STATUS_OK;
}

static Status pow_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a, b;
        TRY(real_of(emitter, call, call->args[PY_LEFT], &a));
        TRY(real_of(emitter, call, call->args[PY_RIGHT], &b));
        return python_binary(PY_POW, value_float(a), value_float(b), out);
}

static Status isnan_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a;
        TRY(real_of(emitter, call, call->args[SELF], &a));
        *out = value_bool(isnan(a));
        return STATUS_OK;
}

static Status isinf_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a;
        TRY(real_of(emitter, call, call->args[SELF], &a));
        *out = value_bool(isinf(a));
        return STATUS_OK;
}

// ---- two results ----
static Status pair_of(Value first, Value second, Value *out)
{
        Seq *seq;
        TRY(seq_new(2, &seq));
        seq->items[0] = first;
        seq->items[1] = second;
        *out = value_seq_take(VALUE_TUPLE, seq);
        return STATUS_OK;
}

static Status frexp_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a;
        int power = 0;
        TRY(real_of(emitter, call, call->args[SELF], &a));
        const double mantissa = isfinite(a) ? frexp(a, &power) : a;
        return pair_of(value_float(mantissa), value_int(power), out);
}

static Status modf_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double a, whole;
        TRY(real_of(emitter, call, call->args[SELF], &a));
        const double rest = modf(a, &whole);
        return pair_of(value_float(rest), value_float(whole), out);
}

// ---- integers ----
static Status fail_wide(const OpCall *call)
{
        return fail(STATUS_VALUE, "%s(): the result does not fit 64 bits", call->schema->name);
}

static uint64_t magnitude(int64_t a)
{
        return a < 0 ? -(uint64_t)a : (uint64_t)a;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
        while (b != 0) {
                const uint64_t rest = a % b;
                a = b;
                b = rest;
        }
        return a;
}

static Status gather_ints(Emitter *emitter, const OpCall *call, bool multiple, Value *out)
{
        const Seq *items = call->args[PY_MATH_NUMBERS].seq;
        uint64_t result = multiple ? 1 : 0;
        for (uint32_t i = 0; i < items->n; i++) {
                int64_t a;
                TRY(value_as_int(emitter, items->items[i], call->schema->name, &a));
                const uint64_t divisor = common_divisor(result, magnitude(a));
                if (!multiple)
                        result = divisor;
                else if (divisor == 0)
                        result = 0;
                else if (__builtin_mul_overflow(result / divisor, magnitude(a), &result))
                        return fail_wide(call);
        }
        if (result > INT64_MAX)
                return fail_wide(call);
        *out = value_int((int64_t)result);
        return STATUS_OK;
}

static Status gcd_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return gather_ints(emitter, call, false, out);
}

static Status lcm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return gather_ints(emitter, call, true, out);
}

static Status isqrt_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t n;
        TRY(value_as_int(emitter, call->args[SELF], "n", &n));
        if (n < 0)
                return fail(STATUS_VALUE, "isqrt() argument must be nonnegative");
        int64_t root = (int64_t)sqrt((double)n);
        while (root > 0 && root > n / root)
                root--;
        while (root + 1 <= n / (root + 1))
                root++;
        *out = value_int(root);
        return STATUS_OK;
}

// n (n - 1) ... of k factors, each divided by its place if `choose`: then every step is whole.
static Status falling(const OpCall *call, int64_t n, int64_t k, bool choose, Value *out)
{
        int64_t result = 1;
        if (n < 0 || k < 0)
                return fail(STATUS_VALUE, "%s must be a non-negative integer", n < 0 ? "n" : "k");
        if (k > n) {
                *out = value_int(0);
                return STATUS_OK;
        }
        for (int64_t i = 0; i < k; i++) {
                int64_t factor = n - i, divisor = choose ? i + 1 : 1;
                const int64_t common = (int64_t)common_divisor((uint64_t)factor, (uint64_t)divisor);
                factor /= common;
                result /= divisor / common;
                if (__builtin_mul_overflow(result, factor, &result))
                        return fail_wide(call);
        }
        *out = value_int(result);
        return STATUS_OK;
}

static Status factorial_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t n;
        TRY(value_as_int(emitter, call->args[SELF], "n", &n));
        if (n < 0)
                return fail(STATUS_VALUE, "factorial() not defined for negative values");
        return n > 20 ? fail_wide(call) : falling(call, n, n, false, out);
}

static Status comb_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t n, k;
        TRY(value_as_int(emitter, call->args[PY_LEFT], "n", &n));
        TRY(value_as_int(emitter, call->args[PY_RIGHT], "k", &k));
        return falling(call, n, k > n - k && k <= n ? n - k : k, true, out);
}

static Status perm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t n, k;
        TRY(value_as_int(emitter, call->args[PY_LEFT], "n", &n));
        if (call->args[PY_RIGHT].kind == VALUE_NONE)
                return n > 20 ? fail_wide(call) : falling(call, n, n, false, out);
        TRY(value_as_int(emitter, call->args[PY_RIGHT], "k", &k));
        return falling(call, n, k, false, out);
}

#define NUMBER(function) .expand = function, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING
#define PAIR(name)       "py::" #name "(Any a, Any b) -> Any"
static const PyRow rows[] = {
#define MATH(names, name, function) { names, "py::" #name "(Any a) -> Any", NUMBER(name##_expand) },
#include "core/targets/math.def"
#undef MATH
        { "math.atan2", PAIR(atan2), NUMBER(atan2_expand) },
        { "math.copysign", PAIR(copysign), NUMBER(copysign_expand) },
        { "math.fmod", PAIR(fmod), NUMBER(fmod_expand) },
        { "math.remainder", PAIR(remainder), NUMBER(remainder_expand) },
        { "math.nextafter", PAIR(nextafter), NUMBER(nextafter_expand) },
        { "math.log", "py::log(Any a, Any base=None) -> Any", NUMBER(log_expand) },
        { "math.pow", PAIR(pow), NUMBER(pow_expand) },
        { "math.isnan", "py::isnan(Any a) -> Any", NUMBER(isnan_expand) },
        { "math.isinf", "py::isinf(Any a) -> Any", NUMBER(isinf_expand) },
        { "math.ldexp", PAIR(ldexp), NUMBER(ldexp_expand) },
        { "math.hypot", "py::hypot(*Any[] numbers) -> Any", NUMBER(hypot_expand) },
        { "math.isfinite", "py::isfinite(Any a) -> Any", NUMBER(isfinite_expand) },
        { "math.isclose", "py::isclose(Any a, Any b, *, Any rel_tol=1e-09, Any abs_tol=0.0) -> Any",
          NUMBER(isclose_expand) },
        { "math.frexp", "py::frexp(Any a) -> Any", NUMBER(frexp_expand) },
        { "math.modf", "py::modf(Any a) -> Any", NUMBER(modf_expand) },
        { "math.gcd", "py::gcd(*Any[] numbers) -> Any", NUMBER(gcd_expand) },
        { "math.lcm", "py::lcm(*Any[] numbers) -> Any", NUMBER(lcm_expand) },
        { "math.isqrt", "py::isqrt(Any a) -> Any", NUMBER(isqrt_expand) },
        { "math.factorial", "py::factorial(Any a) -> Any", NUMBER(factorial_expand) },
        { "math.comb", PAIR(comb), NUMBER(comb_expand) },
        { "math.perm", "py::perm(Any a, Any b=None) -> Any", NUMBER(perm_expand) },
};
const PyTable py_math_rows = PY_TABLE(rows);
