// SPDX-License-Identifier: Apache-2.0
// The loops behind the rows of pointwise_*.def: included by the files that expand them, nowhere
// else. Formulas see x, y, z (values), a b c d (parameters), T (the class's type), K() (constants
// of that type). Inputs and output may be the same tile, hence ivdep instead of restrict. The
// number of elements is read before a loop: the compiler must assume that masks and integers which
// the loop writes could be it, and would not make vectors.
#pragma once
#include <string.h>
#include <tgmath.h>
#undef I // complex.h's imaginary unit
#include "core/kernels/pointwise/pointwise.h"
#include "core/kernels/target.h"
#include "core/tensor/half.h"

#ifdef POINT_SUFFIX
// Compiled for one of the wider instruction sets: float functions that the compiler can put into
// vector loops.
#include "core/kernels/pointwise/vector_math.h"
#undef exp
#undef expm1
#undef log
#undef log1p
#undef tanh
#undef erf
#undef sinh
#undef cosh
#undef atan
#undef asin
#undef acos
#define sinh(x)         _Generic((x), float : vm_sinh, default : (sinh))(x)
#define cosh(x)         _Generic((x), float : vm_cosh, default : (cosh))(x)
#define atan(x)         _Generic((x), float : vm_atan, default : (atan))(x)
#define asin(x)         _Generic((x), float : vm_asin, default : (asin))(x)
#define acos(x)         _Generic((x), float : vm_acos, default : (acos))(x)
#define exp(x)          _Generic((x), float : vm_exp, default : vm_exp64)(x)
#define expm1(x)        _Generic((x), float : vm_expm1, default : (expm1))(x)
#define log(x)          _Generic((x), float : vm_log, default : vm_log64)(x)
#define log1p(x)        _Generic((x), float : vm_log1p, default : vm_log1p64)(x)
#define tanh(x)         _Generic((x), float : vm_tanh, default : vm_tanh64)(x)
#define erf(x)          _Generic((x), float : vm_erf, default : (erf))(x)
#define ONE_PLUS_EXP(x) _Generic((x), float : vm_one_plus_exp, default : one_plus_exp)(x)
#define GELU(x)         _Generic((x), float : vm_gelu, default : gelu)(x)
static inline double one_plus_exp(double x)
{
        return 1 + vm_exp64(x);
}

static inline double gelu(double x)
{
        return x * (0.5 * (1 + (erf)(x * 0.70710678118654752440)));
}

#define POINT_PASTE(name, suffix)  point_##name##suffix
#define POINT_EXPAND(name, suffix) POINT_PASTE(name, suffix)
#define POINT_NAME(name)           POINT_EXPAND(name, POINT_SUFFIX)
#define POINT_WIDER(name)          extern const PointKernel POINT_NAME(name);
#define POINT_WIDE_OF(name)                                                                                  \
        {                                                                                                    \
                NULL                                                                                         \
        }
#else
#define ONE_PLUS_EXP(x)  (K(1) + exp(x))
#define GELU(x)          ((x) * (K(0.5) * (K(1) + erf((x)*K(0.70710678118654752440)))))
#define POINT_NAME(name) point_##name
#ifdef POINT_WIDE
#define POINT_WIDER(name) extern const PointKernel point_##name##_avx2, point_##name##_avx512;
#define POINT_WIDE_OF(name)                                                                                  \
        {                                                                                                    \
                &point_##name##_avx2, &point_##name##_avx512                                                 \
        }
#else
#define POINT_WIDER(name)
#define POINT_WIDE_OF(name)                                                                                  \
        {                                                                                                    \
                NULL                                                                                         \
        }
#endif
#endif

// Formulas of integers ask whether uint8 elements are below 0, too.
#pragma GCC diagnostic ignored "-Wtype-limits"

enum { F = 1, I = 2, B = 4 };

#define K(value)            ((T)(value))
#define CLAMP(x, low, high) ((x) < (low) ? ((low) > (high) ? (high) : (low)) : (x) > (high) ? (high) : (x))
// Integers wrap: results in 64 bits are cut to the type's own.
#define INEG(x)    ((int64_t)(0 - (uint64_t)(x)))
#define IADD(x, y) ((int64_t)((uint64_t)(x) + (uint64_t)(y)))
#define ISUB(x, y) ((int64_t)((uint64_t)(x) - (uint64_t)(y)))
#define IMUL(x, y) ((int64_t)((uint64_t)(x) * (uint64_t)(y)))

// What PyTorch computes in f16 and bf16 itself rather than in float.
static inline float round_f32(float x, Dtype half)
{
        return rounded_to_half(x, half);
}
static inline double round_f64(double x, Dtype half)
{
        (void)half;
        return x;
}
#define ROUND(x) _Generic((x), float : round_f32, default : round_f64)(x, half)

#define PARAM_F32(k)  ((float)tile->params->of[k].f)
#define PARAM_F64(k)  (tile->params->of[k].f)
#define PARAM_U8(k)   ((uint8_t)tile->params->of[k].i)
#define PARAM_I32(k)  ((int32_t)tile->params->of[k].i)
#define PARAM_I64(k)  (tile->params->of[k].i)
#define PARAM_BOOL(k) (tile->params->of[k].i)

// Declares what a formula may name; a row uses some of it.
#define POINT_NAMES(CLASS, type)                                                                             \
        typedef type T;                                                                                      \
        const __typeof__(PARAM_##CLASS(0)) a = PARAM_##CLASS(0), b = PARAM_##CLASS(1), c = PARAM_##CLASS(2); \
        const int bits = tile->params->bits, top_shift = bits - !tile->params->is_unsigned;                  \
        const Dtype half = tile->params->half;                                                               \
        bool zero_divisor = false;                                                                           \
        (void)a, (void)b, (void)c, (void)bits, (void)top_shift, (void)half;

#define POINT_END                                                                                            \
        if (zero_divisor)                                                                                    \
                atomic_store_explicit(tile->zero_divisor, true, memory_order_relaxed);

#define POINT_LOOP_1(name, CLASS, type, out_type, formula)                                                   \
        static void name##_##CLASS(const PointTile *tile)                                                    \
        {                                                                                                    \
                POINT_NAMES(CLASS, type)                                                                     \
                const T *xs = tile->in[0];                                                                   \
                out_type *out = tile->out;                                                                   \
                const size_t count = tile->n;                                                                \
                INDEPENDENT_LOOP for (size_t i = 0; i < count; i++)                                          \
                {                                                                                            \
                        const T x = xs[i];                                                                   \
                        (void)x;                                                                             \
                        out[i] = (out_type)(formula);                                                        \
                }                                                                                            \
                POINT_END                                                                                    \
        }
#define POINT_LOOP_2(name, CLASS, type, out_type, formula)                                                   \
        static void name##_##CLASS(const PointTile *tile)                                                    \
        {                                                                                                    \
                POINT_NAMES(CLASS, type)                                                                     \
                const T *xs = tile->in[0], *ys = tile->in[1];                                                \
                out_type *out = tile->out;                                                                   \
                const size_t count = tile->n;                                                                \
                INDEPENDENT_LOOP for (size_t i = 0; i < count; i++)                                          \
                {                                                                                            \
                        const T x = xs[i], y = ys[i];                                                        \
                        (void)x, (void)y;                                                                    \
                        out[i] = (out_type)(formula);                                                        \
                }                                                                                            \
                POINT_END                                                                                    \
        }
// float: one of the operands may be a single element.
#define POINT_UNROLL _Pragma("GCC unroll 4")
#define POINT_LOOP_2_SPLIT(name, CLASS, type, out_type, formula)                                             \
        static void name##_##CLASS(const PointTile *tile)                                                    \
        {                                                                                                    \
                POINT_NAMES(CLASS, type)                                                                     \
                const T *xs = tile->in[0], *ys = tile->in[1];                                                \
                out_type *out = tile->out;                                                                   \
                const size_t count = tile->n;                                                                \
                const T x0 = xs[0], y0 = ys[0];                                                              \
                if (tile->uniform == 2) {                                                                    \
                        INDEPENDENT_LOOP POINT_UNROLL for (size_t i = 0; i < count; i++)                     \
                        {                                                                                    \
                                const T x = xs[i], y = y0;                                                   \
                                (void)x, (void)y;                                                            \
                                out[i] = (out_type)(formula);                                                \
                        }                                                                                    \
                } else if (tile->uniform == 1) {                                                             \
                        INDEPENDENT_LOOP POINT_UNROLL for (size_t i = 0; i < count; i++)                     \
                        {                                                                                    \
                                const T x = x0, y = ys[i];                                                   \
                                (void)x, (void)y;                                                            \
                                out[i] = (out_type)(formula);                                                \
                        }                                                                                    \
                } else {                                                                                     \
                        INDEPENDENT_LOOP POINT_UNROLL for (size_t i = 0; i < count; i++)                     \
                        {                                                                                    \
                                const T x = xs[i], y = ys[i];                                                \
                                (void)x, (void)y;                                                            \
                                out[i] = (out_type)(formula);                                                \
                        }                                                                                    \
                }                                                                                            \
                POINT_END                                                                                    \
        }
#define POINT_LOOP_1_SPLIT POINT_LOOP_1
#define POINT_LOOP_3_SPLIT POINT_LOOP_3
#define POINT_LOOP_3(name, CLASS, type, out_type, formula)                                                   \
        static void name##_##CLASS(const PointTile *tile)                                                    \
        {                                                                                                    \
                POINT_NAMES(CLASS, type)                                                                     \
                const T *xs = tile->in[0], *ys = tile->in[1], *zs = tile->in[2];                             \
                out_type *out = tile->out;                                                                   \
                const size_t count = tile->n;                                                                \
                INDEPENDENT_LOOP for (size_t i = 0; i < count; i++)                                          \
                {                                                                                            \
                        const T x = xs[i], y = ys[i], z = zs[i];                                             \
                        (void)x, (void)y, (void)z;                                                           \
                        out[i] = (out_type)(formula);                                                        \
                }                                                                                            \
                POINT_END                                                                                    \
        }

#define POINT_ROW(name_, label_, operands, is_mask, classes)                                                 \
        POINT_WIDER(name_)                                                                                   \
        const PointKernel POINT_NAME(name_) = {                                                              \
                .label = label_,                                                                             \
                .in = operands,                                                                              \
                .takes_uniform = sizeof(operands) == sizeof("xx"),                                           \
                .mask_out = is_mask,                                                                         \
                .loop = { [POINT_F32] = (classes)&F ? name_##_F32 : NULL,                                    \
                          [POINT_F64] = (classes)&F ? name_##_F64 : NULL,                                    \
                          [POINT_U8] = (classes)&I ? name_##_U8 : NULL,                                      \
                          [POINT_I32] = (classes)&I ? name_##_I32 : NULL,                                    \
                          [POINT_I64] = (classes)&I ? name_##_I64 : NULL,                                    \
                          [POINT_BOOL] = (classes)&B ? name_##_BOOL : NULL },                                \
                .wide = POINT_WIDE_OF(name_),                                                                \
        };

#define POINT_LOOPS(LOOP, name, float_formula, int_formula, bool_formula)                                    \
        LOOP##_SPLIT(name, F32, float, T, float_formula)                                                     \
                POINT_REST(LOOP, name, float_formula, int_formula, bool_formula)
#define POINT_REST(LOOP, name, float_formula, int_formula, bool_formula)                                     \
        LOOP(name, F64, double, T, float_formula)                                                            \
        POINT_WHOLE(LOOP, name, int_formula, bool_formula)
#define POINT_WHOLE(LOOP, name, int_formula, bool_formula)                                                   \
        LOOP(name, U8, uint8_t, T, int_formula)                                                              \
        LOOP(name, I32, int32_t, T, int_formula)                                                             \
        LOOP(name, I64, int64_t, T, int_formula)                                                             \
        LOOP(name, BOOL, uint8_t, T, bool_formula)
#define POINT_MASK_LOOPS(LOOP, name, float_formula, int_formula, bool_formula)                               \
        LOOP##_SPLIT(name, F32, float, uint8_t, float_formula)                                               \
                LOOP(name, F64, double, uint8_t, float_formula)                                              \
                        LOOP(name, U8, uint8_t, uint8_t, int_formula)                                        \
                                LOOP(name, I32, int32_t, uint8_t, int_formula)                               \
                                        LOOP(name, I64, int64_t, uint8_t, int_formula)                       \
                                                LOOP(name, BOOL, uint8_t, uint8_t, bool_formula)

#define POINT1(name, label, classes, float_formula, int_formula, bool_formula)                               \
        POINT_LOOPS(POINT_LOOP_1, name, float_formula, int_formula, bool_formula)                            \
        POINT_ROW(name, label, "x", false, classes)
#ifdef POINT_SUFFIX
#define POINT1V(name, label, classes, float_formula, int_formula, bool_formula)                              \
        POINT_VECTOR_LOOP(name, F32, float, , 1, (x), float_formula)                                         \
        POINT_REST(POINT_LOOP_1, name, float_formula, int_formula, bool_formula)                             \
        POINT_ROW(name, label, "x", false, classes)
#define POINT1VV(name, label, classes, float_formula, int_formula, bool_formula)                             \
        POINT_VECTOR_LOOP(name, F32, float, , 1, (x), float_formula)                                         \
        POINT_VECTOR_LOOP(name, F64, double, 64, 1, (x), float_formula)                                      \
        POINT_WHOLE(POINT_LOOP_1, name, int_formula, bool_formula)                                           \
        POINT_ROW(name, label, "x", false, classes)
#define POINT2V(name, label, classes, float_formula, int_formula, bool_formula)                              \
        POINT_VECTOR_LOOP(name, F32, float, , 2, (x, y), float_formula)                                      \
        POINT_REST(POINT_LOOP_2, name, float_formula, int_formula, bool_formula)                             \
        POINT_ROW(name, label, "xx", false, classes)
#define POINT2VV(name, label, classes, float_formula, int_formula, bool_formula)                             \
        POINT_VECTOR_LOOP(name, F32, float, , 2, (x, y), float_formula)                                      \
        POINT_VECTOR_LOOP(name, F64, double, 64, 2, (x, y), float_formula)                                   \
        POINT_WHOLE(POINT_LOOP_2, name, int_formula, bool_formula)                                           \
        POINT_ROW(name, label, "xx", false, classes)
// The few elements beyond the range of the vector form are computed again by the formula. Results
// may stand where operands do, so a block of these is kept.
#define POINT_VECTOR_LOOP(name, CLASS, type, digits, VALUES, OF, formula)                                    \
        static void name##_##CLASS(const PointTile *tile)                                                    \
        {                                                                                                    \
                POINT_NAMES(CLASS, type)                                                                     \
                T kept[POINT_MAX_INPUTS][POINT_BLOCK];                                                       \
                for (size_t begin = 0; begin < tile->n; begin += POINT_BLOCK) {                              \
                        T *out = (T *)tile->out + begin;                                                     \
                        size_t n = tile->n - begin < POINT_BLOCK ? tile->n - begin : POINT_BLOCK;            \
                        int n_hard = 0;                                                                      \
                        for (int k = 0; k < VALUES; k++)                                                     \
                                keep_block_##CLASS(tile, k, begin, n, kept[k]);                              \
                        INDEPENDENT_LOOP for (size_t i = 0; i < n; i++)                                      \
                        {                                                                                    \
                                const T x = kept[0][i], y = kept[VALUES - 1][i];                             \
                                (void)y;                                                                     \
                                n_hard += vm_##name##digits##_hard OF;                                       \
                                out[i] = vm_##name##digits OF;                                               \
                        }                                                                                    \
                        for (size_t i = 0; n_hard > 0 && i < n; i++) {                                       \
                                const T x = kept[0][i], y = kept[VALUES - 1][i];                             \
                                (void)y;                                                                     \
                                if (vm_##name##digits##_hard OF)                                             \
                                        out[i] = (formula);                                                  \
                        }                                                                                    \
                }                                                                                            \
                POINT_END                                                                                    \
        }
enum { POINT_BLOCK = 256 };
static inline void keep_block_F32(const PointTile *tile, int k, size_t begin, size_t n, float *kept)
{
        const float *from = tile->in[k];
        const bool single = tile->uniform == k + 1;
        for (size_t i = 0; i < n; i++)
                kept[i] = single ? from[0] : from[begin + i];
}
static inline void keep_block_F64(const PointTile *tile, int k, size_t begin, size_t n, double *kept)
{
        memcpy(kept, (const double *)tile->in[k] + begin, n * sizeof(*kept));
}
#else
#define POINT1V  POINT1
#define POINT1VV POINT1
#define POINT2V  POINT2
#define POINT2VV POINT2
#endif
#define POINT1M(name, label, classes, float_formula, int_formula, bool_formula)                              \
        POINT_MASK_LOOPS(POINT_LOOP_1, name, float_formula, int_formula, bool_formula)                       \
        POINT_ROW(name, label, "x", true, classes)
#define POINT2(name, label, classes, float_formula, int_formula, bool_formula)                               \
        POINT_LOOPS(POINT_LOOP_2, name, float_formula, int_formula, bool_formula)                            \
        POINT_ROW(name, label, "xx", false, classes)
#define POINT2M(name, label, classes, float_formula, int_formula, bool_formula)                              \
        POINT_MASK_LOOPS(POINT_LOOP_2, name, float_formula, int_formula, bool_formula)                       \
        POINT_ROW(name, label, "xx", true, classes)
#define POINT3(name, label, classes, float_formula, int_formula, bool_formula)                               \
        POINT_LOOPS(POINT_LOOP_3, name, float_formula, int_formula, bool_formula)                            \
        POINT_ROW(name, label, "xxx", false, classes)
