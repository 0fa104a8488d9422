// SPDX-License-Identifier: Apache-2.0
// pointwise_binary.c: loops of two and three operands, and those on masks. Integer division is
// guarded here: by zero it is recorded and refused after the run, INT64_MIN / -1 wraps.
#include "core/kernels/pointwise/pointwise_loops.h"
#include "core/kernels/pointwise/special.h"

#define NONZERO(y) ((y) == 0 ? (zero_divisor = true, (int64_t)1) : (y))

static inline int64_t int_div(int64_t x, int64_t y)
{
        return y == -1 ? INEG(x) : x / y;
}

static inline int64_t int_mod(int64_t x, int64_t y)
{
        return y == -1 ? 0 : x % y;
}

// In double, for which there are vectors: a quotient of 32 bits is nearer to no other whole number
// than its rounding error.
static inline int32_t short_div(int32_t x, int32_t y)
{
        const double by = y == -1 ? 1 : y;
        return y == -1 ? (int32_t)(0 - (uint32_t)x) : (int32_t)((double)x / by);
}

static inline int32_t short_mod(int32_t x, int32_t y)
{
        return (int32_t)((uint32_t)x - (uint32_t)short_div(x, y) * (uint32_t)y);
}

// By what is no count, the highest one. AVX2 has no arithmetic shift of 64 bits, so that the bits
// of a negative number are turned before and after.
static inline int64_t int_rshift(int64_t x, int64_t y, int top_shift)
{
        const uint64_t by = (uint64_t)y > (uint64_t)top_shift ? (uint64_t)top_shift : (uint64_t)y;
        const int64_t sign = x >> 63;
        return (int64_t)((uint64_t)(x ^ sign) >> by) ^ sign;
}

static inline int32_t short_rshift(int32_t x, int32_t y, int top_shift)
{
        return x >> ((uint32_t)y > (uint32_t)top_shift ? (uint32_t)top_shift : (uint32_t)y);
}

static inline int64_t int_lshift(int64_t x, int64_t y, int bits)
{
        return y < 0 || y >= bits ? 0 : (int64_t)((uint64_t)x << y);
}

static inline int32_t short_lshift(int32_t x, int32_t y, int bits)
{
        return y < 0 || y >= bits ? 0 : (int32_t)((uint32_t)x << y);
}

#define INT_SHIFT(name, x, y, bits) _Generic((x), int64_t : int_##name, default : short_##name)(x, y, bits)

#define NEXTAFTER(x, y) ((T) _Generic((x), float : nextafterf, default : nextafter)(x, y))

// The neighbour of x towards y in a type of `digits` binary digits behind the first one, whose
// least exponent is `least`.
static inline double next_short(double x, double y, double digits, double least)
{
        int exponent;
        if (isnan(x) || isnan(y) || x == y)
                return isnan(x) ? x : y;
        if (x == 0)
                return copysign(exp2(least - digits), y);
        bool grows = (y > x) == (x > 0);
        if (isinf(x))
                return copysign(exp2(1 - least) * (2 - exp2(-digits)), x);
        double fraction = frexp(fabs(x), &exponent), ulp = exp2(fmax(exponent - 1, least) - digits);
        if (!grows && fraction == 0.5 && exponent - 1 > least)
                ulp /= 2;
        return copysign(fabs(x) + (grows ? ulp : -ulp), x);
}

static inline int64_t int_div_floor(int64_t x, int64_t y)
{
        int64_t quotient = int_div(x, y), rest = ISUB(x, IMUL(quotient, y));
        return quotient - ((rest != 0) & ((x ^ y) < 0));
}

static inline int32_t short_div_floor(int32_t x, int32_t y)
{
        int32_t quotient = short_div(x, y), rest = short_mod(x, y);
        return quotient - ((rest != 0) & ((x ^ y) < 0));
}

static inline int64_t int_remainder(int64_t x, int64_t y)
{
        int64_t rest = int_mod(x, y);
        return ((rest != 0) & ((rest < 0) != (y < 0))) != 0 ? rest + y : rest;
}

static inline int32_t short_remainder(int32_t x, int32_t y)
{
        int32_t rest = short_mod(x, y);
        return ((rest != 0) & ((rest < 0) != (y < 0))) != 0 ? rest + y : rest;
}

// `y` may be what NONZERO gives.
#define INT_DIVISION(name, x, y) _Generic((x), int64_t : int_##name, default : short_##name)(x, (T)(y))

// Negative exponents: 1 stays, -1 alternates, all else is truncated to 0.
static inline int64_t int_pow(int64_t x, int64_t y)
{
        if (y < 0)
                return x == 1 ? 1 : x == -1 ? ((y & 1) != 0 ? -1 : 1) : 0;
        uint64_t result = 1, base = (uint64_t)x;
        for (; y > 0; y >>= 1) {
                if ((y & 1) != 0)
                        result *= base;
                base *= base;
        }
        return (int64_t)result;
}

// In the width of the dtype: there the absolute value of the lowest number is itself, so a divisor
// can be negative.
static inline int64_t int_gcd(int64_t x, int64_t y, int64_t bits)
{
        int64_t lowest = INT64_MIN >> (64 - bits), a = x < 0 && x != lowest ? -x : x,
                b = y < 0 && y != lowest ? -y : y;
        while (a != 0) {
                int64_t rest = a == -1 ? 0 : b % a; // the lowest number by -1 would trap
                b = a;
                a = rest;
        }
        return b;
}

static inline int64_t int_lcm(int64_t x, int64_t y, int64_t bits)
{
        int64_t divisor = int_gcd(x, y, bits);
        int64_t product = divisor == 0 ? 0 : IMUL(divisor == -1 ? INEG(x) : x / divisor, y);
        if (bits == 32)
                product = (int32_t)product; // as int multiplies; the narrower ones are promoted to it
        return product < 0 ? INEG(product) : product;
}

// Python's floor division of floats: the quotient of what fmod leaves, so that it agrees with
// remainder.
#define DEFINE_FLOAT_DIVISION(suffix, type, fmod_fn, floor_fn, copysign_fn)                                  \
        static inline type div_floor_##suffix(type x, type y)                                                \
        {                                                                                                    \
                if (y == 0)                                                                                  \
                        return x / y;                                                                        \
                type rest = fmod_fn(x, y);                                                                   \
                type quotient = (x - rest) / y;                                                              \
                if (rest != 0 && (y < 0) != (rest < 0))                                                      \
                        quotient -= 1;                                                                       \
                if (quotient == 0)                                                                           \
                        return copysign_fn((type)0, x / y);                                                  \
                type whole = floor_fn(quotient);                                                             \
                return quotient - whole > (type)0.5 ? whole + 1 : whole;                                     \
        }                                                                                                    \
        static inline type remainder_##suffix(type x, type y)                                                \
        {                                                                                                    \
                type rest = fmod_fn(x, y);                                                                   \
                return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;                                 \
        }
DEFINE_FLOAT_DIVISION(f32, float, fmodf, floorf, copysignf)
DEFINE_FLOAT_DIVISION(f64, double, (fmod), (floor), (copysign))

#define DIV_FLOOR(x, y) _Generic((x), float : div_floor_f32, default : div_floor_f64)(x, y)
#define REMAINDER(x, y) _Generic((x), float : remainder_f32, default : remainder_f64)(x, y)
#define LERP(x, y, weight)                                                                                   \
        (fabs(weight) < K(0.5) ? (x) + (weight) * ((y) - (x)) : (y) - ((y) - (x)) * (K(1) - (weight)))
// When both operands are NaN, the sum's NaN depends on their order, which the compiler chooses per
// loop. Here it is always the first operand's.
#define LOGADDEXP(x, y, power, unit)                                                                         \
        ((x) != (x)                    ? (x)                                                                 \
         : (y) != (y)                  ? (y)                                                                 \
         : (x) == (y) && isinf(x) != 0 ? (x)                                                                 \
                                       : ((x) > (y) ? (x) : (y)) + log1p(power(-fabs((x) - (y)))) * (unit))
#define CLAMP_NAN(x, low, high)                                                                              \
        ((x) != (x) ? (x) : (low) != (low) ? (low) : (high) != (high) ? (high) : CLAMP(x, low, high))

#include "core/kernels/pointwise/pointwise_binary.def"

// ---- masks ----
#define EVERY_CLASS(name)                                                                                    \
        {                                                                                                    \
                [POINT_F32] = name, [POINT_F64] = name, [POINT_U8] = name, [POINT_I32] = name,               \
                [POINT_I64] = name, [POINT_BOOL] = name                                                      \
        }
#define MASK_LOOP(name, formula)                                                                             \
        static void name(const PointTile *tile)                                                              \
        {                                                                                                    \
                const uint8_t *xs = tile->in[0], *ys = tile->in[1];                                          \
                uint8_t *out = tile->out;                                                                    \
                const size_t count = tile->n;                                                                \
                INDEPENDENT_LOOP for (size_t i = 0; i < count; i++)                                          \
                {                                                                                            \
                        const bool x = xs[i] != 0, y = ys[i] != 0;                                           \
                        out[i] = (formula);                                                                  \
                }                                                                                            \
        }                                                                                                    \
        POINT_WIDER(name)                                                                                    \
        const PointKernel POINT_NAME(name) = {                                                               \
                .label = #name,                                                                              \
                .in = "mm",                                                                                  \
                .mask_out = true,                                                                            \
                .loop = EVERY_CLASS(name),                                                                   \
                .wide = POINT_WIDE_OF(name),                                                                 \
        };
MASK_LOOP(logical_and, x &&y)
MASK_LOOP(logical_or, x || y)
MASK_LOOP(logical_xor, x != y)

static void logical_not(const PointTile *tile)
{
        const uint8_t *xs = tile->in[0];
        uint8_t *out = tile->out;
        const size_t count = tile->n;
        INDEPENDENT_LOOP for (size_t i = 0; i < count; i++) out[i] = xs[i] == 0;
}
POINT_WIDER(logical_not)
const PointKernel POINT_NAME(logical_not) = { .label = "logical_not",
                                              .in = "m",
                                              .mask_out = true,
                                              .loop = EVERY_CLASS(logical_not),
                                              .wide = POINT_WIDE_OF(logical_not) };

// chosen = mask ? yes : no, with the mask as operand `at_mask`.
#define CHOOSE_LOOP(name, CLASS, type, at_mask, at_yes, at_no)                                               \
        static void name##_##CLASS(const PointTile *tile)                                                    \
        {                                                                                                    \
                const uint8_t *mask = tile->in[at_mask];                                                     \
                const type *yes = tile->in[at_yes], *no = tile->in[at_no];                                   \
                type *out = tile->out;                                                                       \
                const size_t count = tile->n;                                                                \
                INDEPENDENT_LOOP for (size_t i = 0; i < count; i++) out[i] = mask[i] != 0 ? yes[i] : no[i];  \
        }
#define CHOOSE_LOOPS(name, at_mask, at_yes, at_no)                                                           \
        CHOOSE_LOOP(name, F32, float, at_mask, at_yes, at_no)                                                \
        CHOOSE_LOOP(name, F64, double, at_mask, at_yes, at_no)                                               \
        CHOOSE_LOOP(name, U8, uint8_t, at_mask, at_yes, at_no)                                               \
        CHOOSE_LOOP(name, I32, int32_t, at_mask, at_yes, at_no)                                              \
        CHOOSE_LOOP(name, I64, int64_t, at_mask, at_yes, at_no)                                              \
        CHOOSE_LOOP(name, BOOL, uint8_t, at_mask, at_yes, at_no)
CHOOSE_LOOPS(where, 0, 1, 2)
CHOOSE_LOOPS(masked_fill, 1, 2, 0)
POINT_ROW(where, "where_cpu", "mxx", false, F | I | B)
POINT_ROW(masked_fill, "masked_fill", "xmx", false, F | I | B)
