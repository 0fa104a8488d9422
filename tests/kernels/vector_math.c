// SPDX-License-Identifier: Apache-2.0
// vector_math.h through the rows that use it, in every instruction set that this machine has:
// errors in ULP against float64 over samples of all floats, special values, equal bits in all sets
// and at all positions; and every row of the tables against its portable form.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/kernels/pointwise/pointwise.h"

enum { BLOCK = 1024 };

static Isa widest(void)
{
        return MIN(isa_machine(), (Isa)POINT_WIDEST);
}

// The loop of a set; x, y, z are the operands.
static void apply(const PointKernel *kernel, Isa isa, const float *const in[3], size_t n, void *out)
{
        PointParams params = { .of = { { .f = 0.5 }, { .f = 1.25 }, { .f = 0.75 }, { .f = 2 } },
                               .bits = 32,
                               .half = DTYPE_NONE };
        atomic_bool zero_divisor = false;
        PointTile tile = { .in = (const void *[]){ in[0], in[1], in[2] },
                           .out = out,
                           .n = n,
                           .params = &params,
                           .zero_divisor = &zero_divisor };
        isa_use(isa);
        PointLoop *loop = point_loop(kernel, POINT_F32);
        cr_assert_not_null(loop);
        loop(&tile);
}

static float of_bits(uint32_t bits)
{
        float x;
        memcpy(&x, &bits, sizeof(x));
        return x;
}

static uint32_t bits_of(float x)
{
        uint32_t bits;
        memcpy(&bits, &x, sizeof(bits));
        return bits;
}

// The distance in units of the last place of `want`.
static double ulps(float got, double want)
{
        float rounded = (float)want;
        if (isnan(want) || isnan(got))
                return isnan(want) == isnan(got) ? 0 : INFINITY;
        if (isinf(rounded) || isinf(got))
                return rounded == got || (fabs(want) > 3.402823e38 && (float)copysign(INFINITY, want) == got)
                               ? 0
                               : INFINITY;
        if (want == 0)
                return got == 0 && signbit(got) == signbit(want) ? 0 : INFINITY;
        int exponent;
        frexp(want, &exponent);
        return fabs(got - want) / ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

typedef struct Function {
        const char *name;
        const PointKernel *kernel;
        double (*exact)(double);
        double most;  // ULP
        bool flushes; // results below 2^-124 may be 0
} Function;

static double sigmoid(double x)
{
        return 1 / (1 + exp(-x));
}
static double silu(double x)
{
        return x / (1 + exp(-x));
}
static double rsqrt(double x)
{
        return 1 / sqrt(x);
}

// By Newton's method on erf, or beyond 1/2 on the logarithm of erfc, which libm has.
static double erfinv(double x)
{
        const double size = fabs(x), y = 1 - size;
        if (!(size < 1) || size < 1e-30)
                return size == 1 ? copysign((double)INFINITY, x) : size < 1 ? x * sqrt(M_PI) / 2 : NAN;
        double z = size < 0.5 ? size * sqrt(M_PI) / 2 : sqrt(-log(y));
        for (int i = 0; i < 12; i++) {
                double density = 2 / sqrt(M_PI) * exp(-z * z);
                double step = size < 0.5 ? (erf(z) - size) / density : log(erfc(z) / y) * erfc(z) / -density;
                z -= step;
                if (fabs(step) < 1e-15 * z)
                        break;
        }
        return copysign(z, x);
}

static const Function functions[] = {
        { "exp", &point_exp, exp, 1.25, false },       { "expm1", &point_expm1, expm1, 2, false },
        { "log", &point_log, log, 1.25, false },       { "log1p", &point_log1p, log1p, 1.25, false },
        { "tanh", &point_tanh, tanh, 2.5, false },     { "sigmoid", &point_sigmoid, sigmoid, 2, true },
        { "silu", &point_silu, silu, 2.5, true },      { "erf", &point_erf, erf, 2, false },
        { "sin", &point_sin, sin, 2, false },          { "cos", &point_cos, cos, 2, false },
        { "tan", &point_tan, tan, 4, false },          { "atan", &point_atan, atan, 2.5, false },
        { "asin", &point_asin, asin, 3, false },       { "acos", &point_acos, acos, 3, false },
        { "sinh", &point_sinh, sinh, 4, false },       { "cosh", &point_cosh, cosh, 4, false },
        { "erfinv", &point_erfinv, erfinv, 4, false }, { "sqrt", &point_sqrt, sqrt, 0.5, false },
        { "rsqrt", &point_rsqrt, rsqrt, 1.5, false },
};

static void check_function(const Function *function, Isa isa)
{
        float x[BLOCK], out[BLOCK];
        uint32_t bits = 0;
        const uint32_t step = 4093; // about a million samples, all exponents, both signs
        for (bool more = true; more;) {
                size_t n = 0;
                for (; n < BLOCK && more; n++) {
                        x[n] = of_bits(bits);
                        more = bits < UINT32_MAX - step;
                        bits += step;
                }
                apply(function->kernel, isa, (const float *[]){ x, x, x }, n, out);
                for (size_t i = 0; i < n; i++) {
                        double want = function->exact((double)x[i]);
                        if (function->flushes && fabs(want) < 0x1p-119 && fabsf(out[i]) < 0x1p-119F)
                                continue;
                        cr_assert_leq(ulps(out[i], want), function->most,
                                      "%s(%a) is %a, expected %a, in set %d", function->name, (double)x[i],
                                      (double)out[i], want, (int)isa);
                }
        }
}

Test(vector_math, errors_are_small_over_all_floats)
{
        for (Isa isa = ISA_AVX2; isa <= widest(); isa++) {
                for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
                        check_function(&functions[i], isa);
        }
}

static double gelu(double x)
{
        return x * erfc(-x * sqrt(0.5)) / 2;
}

Test(vector_math, gelu_is_within_rounding_of_the_exact_one)
{
        for (Isa isa = ISA_AVX2; isa <= widest(); isa++) {
                for (double block = -15; block < 15; block += 0.25) {
                        float x[BLOCK], out[BLOCK];
                        for (int i = 0; i < BLOCK; i++)
                                x[i] = (float)(block + i * 0.25 / (double)BLOCK);
                        apply(&point_gelu, isa, (const float *[]){ x, x, x }, BLOCK, out);
                        for (int i = 0; i < BLOCK; i++) {
                                double want = gelu((double)x[i]), off = fabs((double)out[i] - want);
                                cr_assert_leq(off, 3e-7 * fabs(want) + 3e-8, "gelu(%a) is %a in set %d",
                                              (double)x[i], (double)out[i], (int)isa);
                        }
                }
                const float special[] = { 3e38F, -3e38F, -0.0F, NAN, INFINITY, -INFINITY, -NAN };
                float out[ARRAY_LENGTH(special)];
                apply(&point_gelu, isa, (const float *[]){ special, special, special }, ARRAY_LENGTH(special),
                      out);
                cr_assert(out[0] == 3e38F && out[1] == 0 && out[2] == 0 && signbit(out[2]) && isnan(out[3]) &&
                          isinf(out[4]) && isnan(out[5]) && isnan(out[6]));
        }
}

Test(vector_math, special_values_are_those_of_libm)
{
        const float special[] = { 0,
                                  -0.0F,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  of_bits(0x7fc00001),
                                  of_bits(0xffc01234),
                                  0x1p-149F,
                                  -0x1p-149F,
                                  0x1p-126F,
                                  -0x1p-126F,
                                  -1.0F,
                                  1.0F,
                                  89.0F,
                                  3.4e38F,
                                  -3.4e38F };
        for (Isa isa = ISA_AVX2; isa <= widest(); isa++) {
                for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
                        float got[ARRAY_LENGTH(special)], want[ARRAY_LENGTH(special)];
                        apply(functions[i].kernel, isa, (const float *[]){ special, special, special },
                              ARRAY_LENGTH(special), got);
                        apply(functions[i].kernel, ISA_PORTABLE,
                              (const float *[]){ special, special, special }, ARRAY_LENGTH(special), want);
                        for (size_t k = 0; k < ARRAY_LENGTH(special); k++) {
                                cr_assert_eq(isnan(got[k]), isnan(want[k]), "%s(%g) in set %d",
                                             functions[i].name, (double)special[k], (int)isa);
                                cr_assert(isnan(want[k]) || signbit(got[k]) == signbit(want[k]),
                                          "sign of %s(%g) in set %d", functions[i].name, (double)special[k],
                                          (int)isa);
                                cr_assert_eq(isinf(got[k]), isinf(want[k]), "%s(%g) in set %d",
                                             functions[i].name, (double)special[k], (int)isa);
                        }
                }
        }
}

Test(vector_math, bits_depend_neither_on_the_position_nor_on_the_set)
{
        float x[100], first[100], out[100];
        for (size_t i = 0; i < 100; i++)
                x[i] = of_bits((uint32_t)(i * 2654435761u)) * (i % 3 == 0 ? 1.0F : 0.0F) + (float)i / 9 - 5;
        x[40] = 1e30F; // beyond the vector form of sin and cos
        for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
                if (widest() == ISA_PORTABLE)
                        return;
                apply(functions[i].kernel, ISA_AVX2, (const float *[]){ x, x, x }, 100, first);
                for (Isa isa = ISA_AVX2; isa <= widest(); isa++) {
                        for (size_t begin = 0; begin < 40; begin++) {
                                size_t n = 1 + begin;
                                apply(functions[i].kernel, isa, (const float *[]){ x + begin, x, x }, n, out);
                                for (size_t k = 0; k < n; k++)
                                        cr_assert(bits_of(out[k]) == bits_of(first[begin + k]) ||
                                                          (isnan(out[k]) && isnan(first[begin + k])),
                                                  "%s(%a) at %zu of %zu in set %d", functions[i].name,
                                                  (double)x[begin + k], k, n, (int)isa);
                        }
                }
        }
}

// ---- float64 ----
static const struct {
        const char *name;
        const PointKernel *kernel;
        double (*exact)(double);
        double most; // relative
} doubles[] = {
        { "exp", &point_exp, exp, 3e-16 },          { "tanh", &point_tanh, tanh, 5e-16 },
        { "erfinv", &point_erfinv, erfinv, 2e-15 }, { "log", &point_log, log, 3e-16 },
        { "log1p", &point_log1p, log1p, 3e-16 },    { "sin", &point_sin, sin, 2.3e-16 },
        { "cos", &point_cos, cos, 2.3e-16 },
};

static void apply_double(const PointKernel *kernel, Isa isa, const double *x, size_t n, double *out)
{
        PointParams params = { .bits = 64, .half = DTYPE_NONE };
        PointTile tile = { .in = (const void *[]){ x }, .out = out, .n = n, .params = &params };
        isa_use(isa);
        point_loop(kernel, POINT_F64)(&tile);
}

static double random_double(uint64_t *state, int i)
{
        static const double special[] = { 0,      -0.0,   INFINITY, -INFINITY, NAN,
                                          709.78, 709.79, -745.13,  -745.2,    1,
                                          -1,     5e-324, -2e-310,  -708.5,    19.99,
                                          -20.01, 1e300,  -1e300,   0.85,      0x1.fffffffffffffp-1 };
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        double unit = (double)(*state >> 11) * 0x1p-52 - 1, far = ldexp(unit, (int)(*state & 63) - 43);
        return i < (int)ARRAY_LENGTH(special) ? special[i]
               : i % 3 == 0                   ? unit
               : i % 3 == 1                   ? unit * 750
                                              : far;
}

Test(vector_math, doubles_are_those_of_libm)
{
        uint64_t state = 7;
        double x[BLOCK], first[BLOCK], out[BLOCK];
        for (size_t f = 0; f < ARRAY_LENGTH(doubles); f++) {
                for (int round = 0; round < 100; round++) {
                        for (int i = 0; i < BLOCK; i++)
                                x[i] = random_double(&state, i);
                        for (Isa isa = ISA_PORTABLE; isa <= widest(); isa++) {
                                apply_double(doubles[f].kernel, isa, x, BLOCK, out);
                                if (isa == ISA_AVX2)
                                        memcpy(first, out, sizeof(out));
                                for (int i = 0; i < BLOCK; i++) {
                                        double want = doubles[f].exact(x[i]), off = fabs(out[i] - want);
                                        bool same = isnan(want) ? isnan(out[i])
                                                                : out[i] == want || off < 1e-323 ||
                                                                          off <= doubles[f].most * fabs(want);
                                        same &= isnan(want) || signbit(out[i]) == signbit(want);
                                        same &= isa < ISA_AVX2 || memcmp(&out[i], &first[i], 8) == 0;
                                        cr_assert(same, "%s(%a) is %a, expected %a, in set %d",
                                                  doubles[f].name, x[i], out[i], want, (int)isa);
                                }
                        }
                }
        }
}

Test(vector_math, rests_of_doubles_have_the_bits_of_libm)
{
        const PointKernel *const kernels[] = { &point_fmod, &point_remainder, &point_div_floor };
        uint64_t state = 3;
        double x[BLOCK], y[BLOCK], want[BLOCK], out[BLOCK];
        PointParams params = { .bits = 64, .half = DTYPE_NONE };
        for (int round = 0; round < 300; round++) {
                for (int i = 0; i < BLOCK; i++) {
                        x[i] = random_double(&state, (i * 7 + round) % BLOCK);
                        y[i] = random_double(&state, i);
                        if (i % 5 == 0) // a quotient at a whole number
                                x[i] = y[i] * (double)((int)(state >> 50) - 8000);
                }
                for (size_t k = 0; k < ARRAY_LENGTH(kernels); k++) {
                        PointTile tile = { .in = (const void *[]){ x, y }, .n = BLOCK, .params = &params };
                        for (Isa isa = ISA_PORTABLE; isa <= widest(); isa++) {
                                isa_use(isa);
                                tile.out = isa == ISA_PORTABLE ? want : out;
                                point_loop(kernels[k], POINT_F64)(&tile);
                                for (int i = 0; i < BLOCK && isa != ISA_PORTABLE; i++)
                                        cr_assert(memcmp(&out[i], &want[i], 8) == 0 ||
                                                          (isnan(out[i]) && isnan(want[i])),
                                                  "%s(%a, %a) is %a, by libm %a", kernels[k]->label, x[i],
                                                  y[i], out[i], want[i]);
                        }
                }
        }
}

// ---- two operands ----
typedef struct Pairwise {
        const char *name;
        const PointKernel *kernel;
        double (*exact)(double, double);
        double most; // ULP; 0: the bits of the portable form
} Pairwise;
static const Pairwise pairwise[] = {
        {
                "pow",
                &point_pow,
                pow,
                1,
        },
        { "atan2", &point_atan2, atan2, 3 },
        { "fmod", &point_fmod, fmod, 0 },
        { "remainder", &point_remainder, NULL, 0 },
        { "div_floor", &point_div_floor, NULL, 0 },
};

// Of all exponents, of a few, near whole numbers, and special ones.
static float operand(uint64_t *state)
{
        static const float special[] = { 0,         -0.0F,      1,     -1, INFINITY, -INFINITY, NAN,
                                         0x1p-149F, -0x1p-127F, 3e38F, 2,  3,        0.5F };
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t)(*state >> 32), kind = (uint32_t)(*state >> 24) & 15;
        float near = (float)(int32_t)bits / 0x1p24F;
        return kind == 0  ? special[bits % ARRAY_LENGTH(special)]
               : kind < 5 ? of_bits(bits)
               : kind < 9 ? rintf(near)
                          : near;
}

static void check_pairs(const Pairwise *function, Isa isa, uint64_t *state)
{
        float x[BLOCK], y[BLOCK], got[BLOCK], want[BLOCK];
        for (int i = 0; i < BLOCK; i++) {
                x[i] = operand(state);
                y[i] = i % 7 == 3 ? x[i] * (float)(i % 5) : operand(state);
        }
        apply(function->kernel, isa, (const float *[]){ x, y, x }, BLOCK, got);
        apply(function->kernel, ISA_PORTABLE, (const float *[]){ x, y, x }, BLOCK, want);
        for (int i = 0; i < BLOCK; i++) {
                bool same = isnan(want[i]) ? isnan(got[i]) : bits_of(want[i]) == bits_of(got[i]);
                if (!same && function->most > 0)
                        same = ulps(got[i], function->exact((double)x[i], (double)y[i])) <= function->most;
                cr_assert(same, "%s(%a, %a) is %a in set %d, %a by libm", function->name, (double)x[i],
                          (double)y[i], (double)got[i], (int)isa, (double)want[i]);
        }
}

Test(vector_math, functions_of_two_operands_are_those_of_libm)
{
        for (Isa isa = ISA_AVX2; isa <= widest(); isa++) {
                uint64_t state = 1;
                for (size_t i = 0; i < ARRAY_LENGTH(pairwise); i++)
                        for (int round = 0; round < 300; round++)
                                check_pairs(&pairwise[i], isa, &state);
        }
}

// ---- all rows ----
typedef struct Named {
        const char *name;
        const PointKernel *kernel;
} Named;
#define POINT1(name, ...)   { #name, &point_##name },
#define POINT1V(name, ...)  { #name, &point_##name },
#define POINT1VV(name, ...) { #name, &point_##name },
#define POINT2V(name, ...)  { #name, &point_##name },
#define POINT2VV(name, ...) { #name, &point_##name },
#define POINT1M(name, ...)  { #name, &point_##name },
#define POINT2(name, ...)   { #name, &point_##name },
#define POINT2M(name, ...)  { #name, &point_##name },
#define POINT3(name, ...)   { #name, &point_##name },
static const Named all_rows[] = {
#include "core/kernels/pointwise/pointwise_unary.def"
#include "core/kernels/pointwise/pointwise_activation.def"
#include "core/kernels/pointwise/pointwise_binary.def"
};

static void check_row(const Named *row, Isa isa)
{
        enum { N = 700 };
        float x[N], y[N], z[N], got[N], want[N];
        uint8_t got_mask[N], want_mask[N];
        for (size_t i = 0; i < N; i++) {
                x[i] = (float)((i * 7919) % N) / 50 - 7;
                y[i] = i % 5 == 0 ? x[i] : (float)((i * 104729) % N) / 60 - 5;
                z[i] = (float)((i * 1299709) % N) / 70 - 5;
        }
        if (row->kernel->mask_out) {
                apply(row->kernel, isa, (const float *[]){ x, y, z }, N, got_mask);
                apply(row->kernel, ISA_PORTABLE, (const float *[]){ x, y, z }, N, want_mask);
                cr_assert_arr_eq(got_mask, want_mask, N, "%s in set %d", row->name, (int)isa);
                return;
        }
        apply(row->kernel, isa, (const float *[]){ x, y, z }, N, got);
        apply(row->kernel, ISA_PORTABLE, (const float *[]){ x, y, z }, N, want);
        for (size_t i = 0; i < N; i++) {
                bool same = isnan(want[i]) ? isnan(got[i])
                                           : got[i] == want[i] || fabsf(got[i] - want[i]) <=
                                                                          1e-6F * fabsf(want[i]) + 1e-7F;
                cr_assert(same, "%s(%g, %g, %g) is %.9g in set %d, %.9g by libm", row->name, (double)x[i],
                          (double)y[i], (double)z[i], (double)got[i], (int)isa, (double)want[i]);
        }
}

Test(vector_math, every_row_agrees_with_its_portable_form)
{
        for (Isa isa = ISA_AVX2; isa <= widest(); isa++) {
                for (size_t i = 0; i < ARRAY_LENGTH(all_rows); i++) {
                        if (all_rows[i].kernel->loop[POINT_F32] != NULL)
                                check_row(&all_rows[i], isa);
                }
        }
}

// ---- integers ----
enum { PAIRS = 256 };

// The row in a class of integers, of 256 pairs with one x: as elements of that class and of int64.
static void apply_whole(const PointKernel *kernel, PointClass class, const int64_t *const in[3], int bits,
                        int64_t *out)
{
        static const Dtype stored[] = {
                [POINT_U8] = DTYPE_U8, [POINT_I32] = DTYPE_I32, [POINT_I64] = DTYPE_I64
        };
        const TileClass tiles = point_tile_class(class);
        PointParams params = { .of = { { .i = 3 }, { .i = 7 }, { .i = 5 } },
                               .bits = bits,
                               .is_unsigned = bits == 8 };
        _Alignas(64) int64_t of_class[4][PAIRS];
        atomic_bool zero_divisor = false;
        for (int k = 0; k < 3; k++)
                tile_loader(tiles, DTYPE_I64)(in[k], sizeof(int64_t), PAIRS, of_class[k]);
        PointTile tile = { .in = (const void *[]){ of_class[0], of_class[1], of_class[2] },
                           .out = of_class[3],
                           .n = PAIRS,
                           .params = &params,
                           .zero_divisor = &zero_divisor };
        point_loop(kernel, class)(&tile);
        if (kernel->mask_out)
                tile_loader(TILE_I64, DTYPE_U8)(of_class[3], 1, PAIRS, out);
        else
                tile_loader(TILE_I64, stored[class])(of_class[3], dtype_info[stored[class]].bytes, PAIRS,
                                                     out);
}

static void check_whole(const Named *row, PointClass class, Isa isa, const int64_t *const in[3])
{
        int64_t got[PAIRS], want[PAIRS];
        const int bits = class == POINT_U8 ? 8 : 32;
        isa_use(isa);
        apply_whole(row->kernel, class, in, bits, got);
        isa_use(ISA_PORTABLE);
        apply_whole(row->kernel, POINT_I64, in, bits, want);
        for (int i = 0; i < PAIRS; i++) {
                const int64_t cut = class == POINT_U8 ? (uint8_t)want[i] : (int32_t)want[i];
                cr_assert_eq(got[i], cut, "%s(%ld, %ld, %ld) in %d bits and set %d is %ld, expected %ld",
                             row->name, (long)in[0][i], (long)in[1][i], (long)in[2][i], bits, (int)isa,
                             (long)got[i], (long)cut);
        }
}

Test(vector_math, narrow_integers_are_those_of_64_bits_cut)
{
        static const int64_t edges[] = { 0,  1,  -1,        2,         -2,           7, -7, 31,
                                         32, 33, INT32_MIN, INT32_MAX, INT32_MIN + 1 };
        int64_t x[PAIRS], y[PAIRS], z[PAIRS];
        uint64_t state = 5;
        for (size_t r = 0; r < ARRAY_LENGTH(all_rows); r++) {
                if (all_rows[r].kernel->loop[POINT_U8] == NULL)
                        continue;
                for (Isa isa = ISA_PORTABLE; isa <= widest(); isa++) {
                        for (int first = 0; first < 256; first++) {
                                for (int i = 0; i < PAIRS; i++) {
                                        x[i] = first;
                                        y[i] = i;
                                        z[i] = (first * 31 + i * 7) & 255;
                                }
                                check_whole(&all_rows[r], POINT_U8, isa, (const int64_t *[]){ x, y, z });
                                for (int i = 0; i < PAIRS; i++) {
                                        int64_t *const all[] = { x, y, z };
                                        for (int k = 0; k < 3; k++) {
                                                state = state * 6364136223846793005u + 1442695040888963407u;
                                                const uint64_t drawn = state >> 33;
                                                all[k][i] = drawn % 3 == 0
                                                                    ? edges[drawn / 3 % ARRAY_LENGTH(edges)]
                                                                    : (int32_t)(uint32_t)(state >> 32) >>
                                                                              (drawn % 31);
                                        }
                                }
                                check_whole(&all_rows[r], POINT_I32, isa, (const int64_t *[]){ x, y, z });
                        }
                }
        }
}

static void check_single(const PointKernel *kernel, unsigned which, const char *what)
{
        enum { N = 70 };
        float x[N], y[N], got[N], want[N];
        PointParams params = { .of[0].f = 1.5, .bits = 32, .half = DTYPE_NONE };
        for (size_t i = 0; i < N; i++) {
                x[i] = (float)i / 3 - 9;
                y[i] = 5.0F / 3 - 9;
        }
        const void *repeated[] = { which == 1 ? y : x, which == 1 ? x : y },
                   *single[] = { repeated[0], repeated[1] };
        float element = y[0];
        single[which - 1] = &element;
        PointTile tile = { .in = repeated, .out = want, .n = N, .params = &params };
        point_loop(kernel, POINT_F32)(&tile);
        tile.in = single;
        tile.out = got;
        tile.uniform = (uint8_t)which;
        point_loop(kernel, POINT_F32)(&tile);
        cr_assert_arr_eq(got, want, sizeof(want), "operand %u of %s", which - 1, what);
}

Test(vector_math, one_element_may_stand_for_all)
{
        static const PointKernel *const kernels[] = { &point_sub, &point_pow, &point_fmod };
        for (Isa isa = ISA_PORTABLE; isa <= widest(); isa++) {
                isa_use(isa);
                for (size_t i = 0; i < ARRAY_LENGTH(kernels); i++)
                        for (unsigned which = 1; which <= 2; which++)
                                check_single(kernels[i], which, kernels[i]->label);
        }
}
