// SPDX-License-Identifier: Apache-2.0
// Functions without branches or calls, so that the compiler makes vector loops of the formulas that
// use them: of float32, and exp and tanh of float64. Included by files that are compiled for AVX2
// and FMA or more (point_isa in pointwise.h chooses at run time); elsewhere libm's functions stand
// in their place. A lane's bits depend on its own value only: the same in any vector width and any
// position of a loop.
//
// NaN, infinities, signed zeros and denormals are as in libm. Largest errors against float64 in
// ULP, over every 101st float (tests/bench/pointwise.c):
//     exp 1.03   expm1 1.57   log 0.81   log1p 0.85   tanh 2.48   sigmoid 2.00   silu 2.00
//     erf 1.04   sin 1.55   cos 1.55   tan 3.69   sinh 2.72   cosh 3.00   atan 2.22   asin 2.26
//     acos 1.09   pow 1   atan2 3   erfinv 3
// fmod, remainder and the floor of a quotient have the bits of libm.
// gelu is within 3e-8 + 3e-7 |gelu(x)|.
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/kernels/pointwise/vector_math.inc"

#define VM_FMA        __builtin_fmaf
#define VM_LESS(a, b) ((a) < (b) ? (a) : (b))
// Adding and subtracting it rounds to the nearest whole number, which then stands in the low bits
// of the sum.
#define VM_MAGIC 12582912.0F

static inline int32_t vm_bits(float x)
{
        union {
                float f;
                int32_t i;
        } u = { .f = x };
        return u.i;
}

static inline float vm_float(int32_t bits)
{
        union {
                int32_t i;
                float f;
        } u = { .i = bits };
        return u.f;
}

// 2^(field - 127) for 0 < field < 255, of which only the low 9 bits count; 0 for 0.
static inline float vm_with_exponent(int32_t field)
{
        return vm_float((int32_t)((uint32_t)field << 23));
}

// Wraps: what NaN and negative numbers give is replaced later.
static inline int32_t vm_minus(int32_t a, int32_t b)
{
        return (int32_t)((uint32_t)a - (uint32_t)b);
}

static inline float vm_copysign(float x, float sign)
{
        return vm_float((vm_bits(x) & INT32_MAX) | (vm_bits(sign) & INT32_MIN));
}

// ---- exp ----
typedef struct VmReduced {
        float r;      // x - n log(2), at most log(2) / 2
        int32_t bits; // n + bias, modulo 2^22; whatever for NaN
} VmReduced;

static inline VmReduced vm_reduce_log2(float x, int bias)
{
        float magic = VM_MAGIC + (float)bias, shifted = VM_FMA(x, 1.44269504088896341F, magic),
              n = shifted - magic;
        return (VmReduced){ VM_FMA(n, -LN2_1, VM_FMA(n, -LN2_0, x)), vm_bits(shifted) };
}

// exp(r) - 1. Terms are summed in pairs: one dependent step less than term by term.
static inline float vm_expm1_near_zero(float r)
{
        float r2 = r * r, low = VM_FMA(EXP_P1, r, EXP_P0), high = VM_FMA(EXP_P3, r, EXP_P2);
        return VM_FMA(r2, VM_FMA(VM_FMA(EXP_P4, r2, high), r2, low), r);
}

// Comparisons are written so that NaN passes.
static inline float vm_at_most(float x, float most)
{
        return most < x ? most : x;
}

static inline float vm_at_least(float x, float least)
{
        return least > x ? least : x;
}

static inline float vm_exp(float x)
{
        VmReduced reduced = vm_reduce_log2(vm_at_least(x, -104.0F), 2 * 127);
        float p = vm_expm1_near_zero(reduced.r) + 1.0F;
        // 2^n in two factors: the first product is exact, the second rounds once, to infinity or a
        // denormal if need be.
        int32_t half = (int32_t)((uint32_t)reduced.bits >> 1);
        float result = p * vm_with_exponent(half) * vm_with_exponent(vm_minus(reduced.bits, half));
        return x > 89.0F ? INFINITY : result;
}

// exp(x) for x <= 0 where a result below 2^-124 may be anything as small.
static inline float vm_exp_not_positive(float x)
{
        VmReduced reduced = vm_reduce_log2(vm_at_least(x, -86.0F), 127);
        float scale = vm_with_exponent(reduced.bits);
        return VM_FMA(scale, vm_expm1_near_zero(reduced.r), scale);
}

// 1 + exp(x); infinity where its inverse would be a denormal.
static inline float vm_one_plus_exp(float x)
{
        VmReduced reduced = vm_reduce_log2(vm_at_least(x, -86.0F), 127);
        float scale = vm_with_exponent(reduced.bits);
        float sum = VM_FMA(scale, vm_expm1_near_zero(reduced.r), 1.0F) + scale;
        return x > 88.0F ? INFINITY : sum;
}

static inline float vm_expm1(float x)
{
        VmReduced reduced = vm_reduce_log2(vm_at_least(vm_at_most(x, 89.0F), -20.0F), 127);
        float p = vm_expm1_near_zero(reduced.r);
        bool top = (reduced.bits & 255) == 255; // 2^128 is no float
        float scale = vm_with_exponent(top ? 254 : reduced.bits);
        float result = VM_FMA(scale, p, top ? scale : scale - 1.0F);
        result = top ? result + result : result;
        return scale == 1.0F ? vm_copysign(p, x) : result;
}

// m / (m + 2) with m = exp(2 |x|) - 1, which is 1 from 10 on. Near zero m is the polynomial alone.
// Whole numbers are compared, not floats: AMD's CPUs do that beside the multiplications.
static inline float vm_tanh(float x)
{
        int32_t bits = vm_bits(x) & INT32_MAX, ten = vm_bits(10.0F), nan = -(bits > vm_bits(INFINITY));
        float size = vm_float(bits < ten ? bits : ten), twice = size + size;
        // One piece of log(2) suffices: where n is large, the quotient hardly depends on it.
        float magic = VM_MAGIC + 127, shifted = VM_FMA(size, 2.88539008177792682F, magic);
        float r = VM_FMA(shifted - magic, -0.69314718F, twice), scale = vm_with_exponent(vm_bits(shifted));
        float m = VM_FMA(scale, vm_expm1_near_zero(r), scale - 1.0F);
        return vm_float(vm_bits(m / (m + 2.0F)) | (vm_bits(x) & INT32_MIN) | nan);
}

// ---- log ----
// log of m 2^e (1 + c / m) with f = m - 1 and m between sqrt(1/2) and sqrt(2); `f` is
// given so that it may be exact.
static inline float vm_log_parts(float f, float e, float correction)
{
        float p = VM_FMA(LOG_P7, f, LOG_P6), square = f * f;
        p = VM_FMA(p, f, LOG_P5);
        p = VM_FMA(p, f, LOG_P4);
        p = VM_FMA(p, f, LOG_P3);
        p = VM_FMA(p, f, LOG_P2);
        p = VM_FMA(p, f, LOG_P1);
        p = VM_FMA(p, f, LOG_P0);
        float rest = VM_FMA(square * f, p, VM_FMA(e, LN2_1, correction));
        return VM_FMA(e, LN2_0, f + VM_FMA(square, -0.5F, rest));
}

typedef struct VmSplit {
        float m; // between sqrt(1/2) and sqrt(2)
        int32_t e;
} VmSplit;

// x = m 2^e for positive normal x.
static inline VmSplit vm_split(float x)
{
        int32_t bits = vm_bits(x), e = vm_minus(bits, vm_bits(0.70710678F)) >> 23;
        return (VmSplit){ vm_float(vm_minus(bits, (int32_t)((uint32_t)e << 23))), e };
}

static inline float vm_log(float x)
{
        bool small = x < 0x1p-126F;
        VmSplit split = vm_split(small ? x * 0x1p25F : x);
        float result = vm_log_parts(split.m - 1.0F, (float)(split.e - (small ? 25 : 0)), 0.0F);
        result = x == 0.0F ? -INFINITY : x < 0.0F ? NAN : result;
        return x < INFINITY ? result : x; // infinity and NaN
}

static inline float vm_log1p(float x)
{
        float u = 1.0F + x;
        VmSplit split = vm_split(u);
        // What the sum lost, in units of m.
        float lost = u >= 2.0F ? 1.0F - (u - x) : x - (u - 1.0F);
        float scale = vm_with_exponent(split.e > 100 ? 0 : 127 - split.e);
        bool whole = split.e == 0;
        float correction = lost * scale;
        float m_inverse = 1.0F / split.m;
        float result = vm_log_parts(whole ? x : split.m - 1.0F, (float)split.e,
                                    whole ? 0.0F : correction * m_inverse);
        result = u == 0.0F ? -INFINITY : u < 0.0F ? NAN : result;
        result = x < INFINITY ? result : x;
        return vm_float(vm_bits(x) & INT32_MAX) < 0x1p-30F ? x : result;
}

// ---- erf ----
static inline float vm_erf(float x)
{
        float t = vm_float(vm_bits(x) & INT32_MAX), s = x * x;
        float p = VM_FMA(ERF_P5, s, ERF_P4);
        p = VM_FMA(p, s, ERF_P3);
        p = VM_FMA(p, s, ERF_P2);
        p = VM_FMA(p, s, ERF_P1);
        p = VM_FMA(p, s, ERF_P0);
        float inner = VM_FMA(p, x, x);
        float u = vm_at_most(t, 4.0F);
        float q = VM_FMA(ERFC_P7, u, ERFC_P6);
        q = VM_FMA(q, u, ERFC_P5);
        q = VM_FMA(q, u, ERFC_P4);
        q = VM_FMA(q, u, ERFC_P3);
        q = VM_FMA(q, u, ERFC_P2);
        q = VM_FMA(q, u, ERFC_P1);
        q = VM_FMA(q, u, ERFC_P0);
        float outer = vm_copysign(1.0F - vm_exp_not_positive(q), x);
        return t > 0.921875F ? outer : t <= 0.921875F ? inner : x;
}

// In w = -log(1 - x^2), as M. Giles does (Approximating the erfinv function, 2010).
static inline float vm_erfinv(float x)
{
        VmSplit split = vm_split((1.0F - x) * (1.0F + x));
        float w = -vm_log_parts(split.m - 1.0F, (float)split.e, 0.0F);
        bool tail = w > 5.0F;
        float t = tail ? sqrtf(w) - 3.0F : w - 2.5F;
        float p = VM_FMA(tail ? ERFINVT_P8 : ERFINV_P8, t, tail ? ERFINVT_P7 : ERFINV_P7);
        p = VM_FMA(p, t, tail ? ERFINVT_P6 : ERFINV_P6);
        p = VM_FMA(p, t, tail ? ERFINVT_P5 : ERFINV_P5);
        p = VM_FMA(p, t, tail ? ERFINVT_P4 : ERFINV_P4);
        p = VM_FMA(p, t, tail ? ERFINVT_P3 : ERFINV_P3);
        p = VM_FMA(p, t, tail ? ERFINVT_P2 : ERFINV_P2);
        p = VM_FMA(p, t, tail ? ERFINVT_P1 : ERFINV_P1);
        p = VM_FMA(p, t, tail ? ERFINVT_P0 : ERFINV_P0);
        float size = vm_float(vm_bits(x) & INT32_MAX), beyond = size == 1.0F ? INFINITY : NAN;
        return size < 1.0F ? x * p : vm_copysign(beyond, x);
}

// The bits of FLT_MAX. From a constant compilers would compute all that follows of it, and choose.
extern const int32_t vm_largest;

// x times the cumulative distribution function of the normal distribution, by its tail: max(x, 0) -
// |x| tail, where inf has a tail of 0. NaN for -inf. Limits are compared as whole numbers: from
// comparisons of floats compilers make masks. Polynomials are summed in pairs, in half as many
// dependent steps as one term after the other.
static inline float vm_gelu(float x)
{
        int32_t bits = vm_bits(x), size = VM_LESS(bits, vm_largest) & INT32_MAX;      // of x
        float t = vm_float(VM_LESS(size, vm_bits(10.51F))), t2 = t * t, t4 = t2 * t2; // P is -127 there
        float low = VM_FMA(VM_FMA(TAIL_P3, t, TAIL_P2), t2, VM_FMA(TAIL_P1, t, TAIL_P0));
        float high = VM_FMA(VM_FMA(TAIL_P7, t, TAIL_P6), t2, VM_FMA(TAIL_P5, t, TAIL_P4));
        float p = VM_FMA(VM_FMA(TAIL_P8, t4, high), t4, low);
        float shifted = p + (VM_MAGIC + 127), f = p - (shifted - (VM_MAGIC + 127));
        float f2 = f * f, top = VM_FMA(VM_FMA(EXP2M_P5, f, EXP2M_P4), f2, VM_FMA(EXP2M_P3, f, EXP2M_P2));
        float power = VM_FMA(top, f2, VM_FMA(EXP2M_P1, f, EXP2M_P0));
        float tail = power * vm_with_exponent(vm_bits(shifted));                  // 0 for -127
        int32_t positive = (int32_t)VM_LESS((uint32_t)bits, (uint32_t)INT32_MIN); // -0.0 for x < 0
        return VM_FMA(-vm_float(size), tail, vm_float(positive));
}

// ---- sinh, cosh ----
// exp(|x|) / 2 as a product of two numbers that do not overflow before it does.
static inline float vm_half_exp(float size)
{
        float root = vm_exp(size * 0.5F);
        return 0.5F * root * root;
}

static inline float vm_cosh(float x)
{
        float half = vm_half_exp(vm_float(vm_bits(x) & INT32_MAX));
        return half + 0.25F / half;
}

static inline float vm_sinh(float x)
{
        float size = vm_float(vm_bits(x) & INT32_MAX), m = vm_expm1(size), half = vm_half_exp(size);
        return vm_copysign(size > 20.0F ? half : 0.5F * (m + m / (m + 1.0F)), x);
}

// ---- atan, asin, acos ----
// atan(small / large) for 0 <= small <= large, which is at most pi / 4.
static inline float vm_atan_ratio(float small, float large)
{
        bool upper = small > 0.41421357F * large; // tan(pi / 8)
        float t = (upper ? small - large : small) / (upper ? small + large : large), s = t * t;
        float p = VM_FMA(VM_FMA(VM_FMA(ATAN_P3, s, ATAN_P2), s, ATAN_P1), s, ATAN_P0);
        float angle = VM_FMA(t * s, p, t);
        return upper ? 0.5F * HALF_PI_0 + (angle + 0.5F * HALF_PI_1) : angle;
}

static inline float vm_atan(float x)
{
        float size = vm_float(vm_bits(x) & INT32_MAX);
        bool turned = size > 1.0F;
        float angle = vm_atan_ratio(turned ? 1.0F : size, turned ? size : 1.0F);
        return vm_copysign(turned ? HALF_PI_0 - (angle - HALF_PI_1) : angle, x);
}

// For numbers of moderate size, neither of them zero.
static inline bool vm_atan2_hard(float y, float x)
{
        int32_t a = vm_bits(y) & INT32_MAX, b = vm_bits(x) & INT32_MAX;
        int32_t least = VM_LESS(a, b), most = -VM_LESS(-a, -b);
        int32_t small = vm_bits(0x1p-60F), large = vm_bits(0x1p60F);
        return (least <= small) | (most >= large);
}

static inline float vm_atan2(float y, float x)
{
        float a = vm_float(vm_bits(y) & INT32_MAX), b = vm_float(vm_bits(x) & INT32_MAX);
        bool turned = a > b;
        float angle = vm_atan_ratio(turned ? b : a, turned ? a : b);
        angle = turned ? HALF_PI_0 - (angle - HALF_PI_1) : angle;
        return vm_copysign(x < 0.0F ? 2 * HALF_PI_0 - (angle - 2 * HALF_PI_1) : angle, y);
}

// asin(t) for 0 <= t <= 1/2, where s is t^2.
static inline float vm_asin_small(float t, float s)
{
        float p = VM_FMA(VM_FMA(ASIN_P4, s, ASIN_P3), s, ASIN_P2);
        p = VM_FMA(VM_FMA(p, s, ASIN_P1), s, ASIN_P0);
        return VM_FMA(t * s, p, t);
}

// Above 1/2 by asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)).
static inline float vm_asin(float x)
{
        float size = vm_float(vm_bits(x) & INT32_MAX);
        bool upper = size > 0.5F;
        float s = upper ? VM_FMA(size, -0.5F, 0.5F) : size * size;
        float angle = vm_asin_small(upper ? sqrtf(s) : size, s);
        return vm_copysign(upper ? HALF_PI_0 - (angle + angle - HALF_PI_1) : angle, x);
}

static inline float vm_acos(float x)
{
        float size = vm_float(vm_bits(x) & INT32_MAX);
        bool upper = size > 0.5F;
        float s = upper ? VM_FMA(size, -0.5F, 0.5F) : size * size;
        float angle = vm_asin_small(upper ? sqrtf(s) : size, s);
        float turned = x < 0.0F ? 2 * HALF_PI_0 - (angle + angle - 2 * HALF_PI_1) : angle + angle;
        return upper ? turned : HALF_PI_0 - (vm_copysign(angle, x) - HALF_PI_1);
}

// ---- fmod and what stands on it ----
// For finite numbers whose quotient is small: there x - q y is exact for q = trunc(x / y), and what
// the division's rounding made of q is seen in the sign.
static inline bool vm_fmod_hard(float x, float y)
{
        float q = vm_float(vm_bits(x / y) & INT32_MAX);
        return !(q < 4194304.0F) | !(vm_float(vm_bits(y) & INT32_MAX) < INFINITY);
}

static inline float vm_fmod(float x, float y)
{
        float rest = VM_FMA(-truncf(x / y), y, x);
        rest = rest != 0.0F && (rest < 0.0F) != (x < 0.0F) ? rest + vm_copysign(y, x) : rest;
        return vm_copysign(rest, x);
}

#define vm_remainder_hard vm_fmod_hard
static inline float vm_remainder(float x, float y)
{
        float rest = vm_fmod(x, y);
        return rest != 0.0F && (rest < 0.0F) != (y < 0.0F) ? rest + y : rest;
}

#define vm_div_floor_hard vm_fmod_hard
static inline float vm_div_floor(float x, float y)
{
        float rest = vm_fmod(x, y), quotient = (x - rest) / y;
        quotient = rest != 0.0F && (rest < 0.0F) != (y < 0.0F) ? quotient - 1.0F : quotient;
        float whole = floorf(quotient), nearest = quotient - whole > 0.5F ? whole + 1.0F : whole;
        return quotient == 0.0F ? vm_copysign(0.0F, x / y) : nearest;
}

// ---- pow ----
// y log2|x| for normal x.
static inline double vm_power(float x, float y)
{
        VmSplit split = vm_split(vm_float(vm_bits(x) & INT32_MAX));
        double s = ((double)split.m - 1) / ((double)split.m + 1), t = s * s; // log(m) = 2 atanh(s)
        double p =
                1 + t * (1 / 3.0 + t * (1 / 5.0 + t * (1 / 7.0 + t * (1 / 9.0 + t * (1 / 11.0 + t / 13)))));
        return (double)y * ((double)split.e + s * p * 2.885390081777926815);
}

// For normal x and results in the range of normal numbers.
static inline bool vm_pow_hard(float x, float y)
{
        double power = vm_power(x, y);
        float size = vm_float(vm_bits(x) & INT32_MAX);
        return !(size >= 0x1p-126F) | !(size < INFINITY) | !(power < 126) | !(power > -126);
}

static inline float vm_pow(float x, float y)
{
        const double magic = 0x1.8p52;
        double power = vm_power(x, y), n = power + magic - magic, r = (power - n) * 0.693147180559945309;
        double p = 1 + r / 7 * (1 + r / 8);
        p = 1 + r * (1 + r / 2 * (1 + r / 3 * (1 + r / 4 * (1 + r / 5 * (1 + r / 6 * p)))));
        float result = (float)p * vm_with_exponent((int32_t)(n > 126 || n < -126 ? 0 : n) + 127);
        // Of a negative number: NaN if y is not whole; larger floats than 2^24 are even.
        float parity = vm_float(vm_bits(y) & INT32_MAX) < 0x1p24F ? y : 0.0F;
        int32_t odd = (int32_t)((uint32_t)(int32_t)parity << 31);
        float negative = rintf(y) == y ? vm_float(vm_bits(result) ^ odd) : NAN;
        return x < 0.0F ? negative : result;
}

// ---- sin, cos, tan ----
// For |x| up to 65536: beyond it the three pieces of pi / 2 do not suffice.
static inline bool vm_sin_hard(float x)
{
        return vm_float(vm_bits(x) & INT32_MAX) > 65536.0F;
}
#define vm_cos_hard vm_sin_hard
#define vm_tan_hard vm_sin_hard

typedef struct VmAngle {
        float sine, cosine; // of x without `quadrant` times pi / 2
        int32_t quadrant;
} VmAngle;

static inline VmAngle vm_angle(float x)
{
        float shifted = VM_FMA(x, 0.636619772367581343F, VM_MAGIC), n = shifted - VM_MAGIC;
        float r = VM_FMA(n, -HALF_PI_2, VM_FMA(n, -HALF_PI_1, VM_FMA(n, -HALF_PI_0, x))), s = r * r;
        float sine = VM_FMA(r * s, VM_FMA(VM_FMA(SIN_P2, s, SIN_P1), s, SIN_P0), r);
        float cosine = VM_FMA(s * s, VM_FMA(VM_FMA(COS_P2, s, COS_P1), s, COS_P0), VM_FMA(s, -0.5F, 1.0F));
        return (VmAngle){ n == 0.0F ? vm_copysign(sine, x) : sine, cosine, vm_bits(shifted) };
}

// sin(x + quarter pi / 2)
static inline float vm_sin_shifted(float x, int32_t quarter)
{
        VmAngle angle = vm_angle(x);
        int32_t quadrant = angle.quadrant + quarter;
        float chosen = (quadrant & 1) != 0 ? angle.cosine : angle.sine;
        return vm_float(vm_bits(chosen) ^ (int32_t)((uint32_t)(quadrant & 2) << 30));
}

static inline float vm_tan(float x)
{
        VmAngle angle = vm_angle(x);
        bool odd = (angle.quadrant & 1) != 0;
        return (odd ? -angle.cosine : angle.sine) / (odd ? angle.sine : angle.cosine);
}

static inline float vm_sin(float x)
{
        return vm_sin_shifted(x, 0);
}

static inline float vm_cos(float x)
{
        return vm_sin_shifted(x, 1);
}

// ---- float64: exp, tanh ----
static inline int64_t vm_bits64(double x)
{
        union {
                double f;
                int64_t i;
        } u = { .f = x };
        return u.i;
}

static inline double vm_double(int64_t bits)
{
        union {
                int64_t i;
                double f;
        } u = { .i = bits };
        return u.f;
}

static inline double vm_with_exponent64(int64_t field)
{
        return vm_double((int64_t)((uint64_t)field << 52));
}

typedef struct VmReduced64 {
        double r;     // x - n log(2), at most log(2) / 2
        int64_t bits; // n + bias in the low 32 bits; whatever for NaN
} VmReduced64;

// log(2) in two pieces, of which the first has room for a factor of 12 bits.
static inline VmReduced64 vm_reduce_log2_64(double x, int bias)
{
        double magic = 0x1.8p52 + bias, shifted = __builtin_fma(x, 1.44269504088896340736, magic),
               n = shifted - magic, r = __builtin_fma(n, -0x1.62e42fefa3800p-1, x);
        return (VmReduced64){ __builtin_fma(n, -0x1.ef35793c76730p-45, r), vm_bits64(shifted) };
}

// exp(r) - 1 by Taylor's series to r^13.
static inline double vm_expm1_near_zero64(double r)
{
        double p = __builtin_fma(r, 1.0 / 6227020800, 1.0 / 479001600);
        p = __builtin_fma(p, r, 1.0 / 39916800);
        p = __builtin_fma(p, r, 1.0 / 3628800);
        p = __builtin_fma(p, r, 1.0 / 362880);
        p = __builtin_fma(p, r, 1.0 / 40320);
        p = __builtin_fma(p, r, 1.0 / 5040);
        p = __builtin_fma(p, r, 1.0 / 720);
        p = __builtin_fma(p, r, 1.0 / 120);
        p = __builtin_fma(p, r, 1.0 / 24);
        p = __builtin_fma(p, r, 1.0 / 6);
        p = __builtin_fma(p, r, 0.5);
        return __builtin_fma(p, r * r, r);
}

// As vm_exp.
static inline double vm_exp64(double x)
{
        VmReduced64 reduced = vm_reduce_log2_64(-746 > x ? -746 : x, 2 * 1023);
        double p = vm_expm1_near_zero64(reduced.r) + 1;
        int64_t sum = reduced.bits & UINT32_MAX, half = (int64_t)((uint64_t)sum >> 1);
        double result = p * vm_with_exponent64(half) * vm_with_exponent64(sum - half);
        return x > 710 ? (double)INFINITY : result;
}

// m / (m + 2) with m = exp(2 |x|) - 1, which is 1 from 20 on.
static inline double vm_tanh64(double x)
{
        double size = vm_double(vm_bits64(x) & INT64_MAX), most = size > 20 ? 20 : size; // NaN stays
        VmReduced64 reduced = vm_reduce_log2_64(most + most, 1023);
        double scale = vm_with_exponent64(reduced.bits);
        double m = __builtin_fma(scale, vm_expm1_near_zero64(reduced.r), scale - 1);
        return vm_double(vm_bits64(m / (m + 2)) | (vm_bits64(x) & INT64_MIN));
}

// ---- float64: log, log1p ----
typedef struct VmSplit64 {
        double m, e; // m between sqrt(1/2) and sqrt(2)
} VmSplit64;

// x = m 2^e for positive normal x.
static inline VmSplit64 vm_split64(double x)
{
        const uint64_t one = 0x3ff0000000000000, root = 0x3fe6a09e667f3bcd; // 1, sqrt(1/2)
        uint64_t bits = (uint64_t)vm_bits64(x), biased = (bits + (one - root)) >> 52;
        return (VmSplit64){ vm_double((int64_t)(bits - (biased << 52) + one)),
                            vm_double((int64_t)(biased | 0x4330000000000000)) - (0x1p52 + 1023) };
}

// log((1 + f) 2^e) + correction: log(1 + f) = 2 atanh(s) = 2 s + s R with s = f / (2 + f), which is
// f - f^2 / 2 + s (f^2 / 2 + R).
static inline double vm_log_parts64(double f, double e, double correction)
{
        double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
        double p = __builtin_fma(z, 2.0 / 23, 2.0 / 21);
        p = __builtin_fma(p, z, 2.0 / 19);
        p = __builtin_fma(p, z, 2.0 / 17);
        p = __builtin_fma(p, z, 2.0 / 15);
        p = __builtin_fma(p, z, 2.0 / 13);
        p = __builtin_fma(p, z, 2.0 / 11);
        p = __builtin_fma(p, z, 2.0 / 9);
        p = __builtin_fma(p, z, 2.0 / 7);
        p = __builtin_fma(p, z, 2.0 / 5);
        p = __builtin_fma(p, z, 2.0 / 3);
        double low = __builtin_fma(s, __builtin_fma(z, p, half),
                                   __builtin_fma(e, 0x1.ef35793c76730p-45, correction));
        return __builtin_fma(e, 0x1.62e42fefa3800p-1, f - (half - low));
}

static inline double vm_log64(double x)
{
        const bool small = x < 0x1p-1022;
        VmSplit64 split = vm_split64(small ? x * 0x1p54 : x);
        double result = vm_log_parts64(split.m - 1, split.e - (small ? 54 : 0), 0);
        result = x == 0 ? -(double)INFINITY : x < 0 ? (double)NAN : result;
        return x < (double)INFINITY ? result : x; // infinity and NaN
}

static inline double vm_log1p64(double x)
{
        const double u = 1 + x;
        VmSplit64 split = vm_split64(u);
        const bool whole = split.e == 0;
        const double lost = u >= 2 ? 1 - (u - x) : x - (u - 1); // by the sum
        double result = vm_log_parts64(whole ? x : split.m - 1, split.e, whole ? 0 : lost / u);
        result = u == 0 ? -(double)INFINITY : u < 0 ? (double)NAN : result;
        result = x < (double)INFINITY ? result : x;
        return vm_double(vm_bits64(x) & INT64_MAX) < 0x1p-54 ? x : result;
}

// ---- float64: sin, cos ----
static inline bool vm_sin64_hard(double x)
{
        return vm_double(vm_bits64(x) & INT64_MAX) > 1048576;
}
#define vm_cos64_hard vm_sin64_hard

// sin(x + quarter pi / 2), by Taylor's series around the nearest multiple of pi / 2. That is
// subtracted in three pieces, of which the first two have 33 bits; what r cannot hold is in `rest`.
static inline double vm_sin_shifted64(double x, int64_t quarter)
{
        const double magic = 0x1.8p52, shifted = __builtin_fma(x, 0x1.45f306dc9c883p-1, magic),
                     n = shifted - magic;
        const double most = __builtin_fma(n, -0x1.921fb544p+0, x), less = n * 0x1.0b4611a6p-34,
                     high = most - less;
        const double low = __builtin_fma(n, -0x1.3198a2e037073p-69, (most - high) - less), r = high + low,
                     rest = (high - r) + low, z = r * r, half = 0.5 * z;
        double p = __builtin_fma(z, 1.0 / 355687428096000, -1.0 / 1307674368000);
        p = __builtin_fma(p, z, 1.0 / 6227020800);
        p = __builtin_fma(p, z, -1.0 / 39916800);
        p = __builtin_fma(p, z, 1.0 / 362880);
        p = __builtin_fma(p, z, -1.0 / 5040);
        p = __builtin_fma(p, z, 1.0 / 120);
        p = __builtin_fma(p, z, -1.0 / 6);
        const double sine = r + __builtin_fma(p, z * r, __builtin_fma(rest, -half, rest));
        double q = __builtin_fma(z, 1.0 / 20922789888000, -1.0 / 87178291200);
        q = __builtin_fma(q, z, 1.0 / 479001600);
        q = __builtin_fma(q, z, -1.0 / 3628800);
        q = __builtin_fma(q, z, 1.0 / 40320);
        q = __builtin_fma(q, z, -1.0 / 720);
        q = __builtin_fma(q, z, 1.0 / 24);
        const double near = 1 - half,
                     cosine = near + (((1 - near) - half) + __builtin_fma(z * z, q, -r * rest));
        const int64_t quadrant = vm_bits64(shifted) + quarter;
        const double chosen = (quadrant & 1) != 0 ? cosine : n == 0 ? (copysign)(sine, x) : sine;
        return vm_double(vm_bits64(chosen) ^ (int64_t)((uint64_t)(quadrant & 2) << 62));
}

static inline double vm_sin64(double x)
{
        return vm_sin_shifted64(x, 0);
}

static inline double vm_cos64(double x)
{
        return vm_sin_shifted64(x, 1);
}

// ---- float64: division with a rest, as vm_fmod and its neighbours ----
static inline bool vm_fmod64_hard(double x, double y)
{
        double q = vm_double(vm_bits64(x / y) & INT64_MAX);
        return !(q < 0x1p51) | !(vm_double(vm_bits64(y) & INT64_MAX) < (double)INFINITY);
}

static inline double vm_fmod64(double x, double y)
{
        double rest = __builtin_fma(-(trunc)(x / y), y, x);
        rest = rest != 0 && (rest < 0) != (x < 0) ? rest + (copysign)(y, x) : rest;
        return (copysign)(rest, x);
}

#define vm_remainder64_hard vm_fmod64_hard
static inline double vm_remainder64(double x, double y)
{
        double rest = vm_fmod64(x, y);
        return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

#define vm_div_floor64_hard vm_fmod64_hard
static inline double vm_div_floor64(double x, double y)
{
        double rest = vm_fmod64(x, y), quotient = (x - rest) / y;
        quotient = rest != 0 && (rest < 0) != (y < 0) ? quotient - 1 : quotient;
        double whole = (floor)(quotient), nearest = quotient - whole > 0.5 ? whole + 1 : whole;
        return quotient == 0 ? (copysign)(0, x / y) : nearest;
}
