// SPDX-License-Identifier: Apache-2.0
// convert_loops.c: one loop per (class, dtype) and direction, made from one table of element types;
// compiled for the plain instruction set and, with CONVERT_WIDE, for AVX2. Contiguous runs have
// loops of their own so that they vectorise. Float to small integers goes
// through int32, to uint8 and uint32 through int64: what PyTorch's casts give on x86.
#include "core/tensor/convert_tables.h"

#include <math.h>
#include "core/base/memory.h"
#include "core/tensor/half.h"
#include "core/tensor/halves.h"

// PyTorch converts these three by code of its own, in which NaN is 0.
static inline int64_t nanless_to_i64(float value)
{
        return isnan(value) ? 0 : float_to_i64(value);
}

// How an element of each dtype is read: as an integer, and as the C number that converts exactly to
// floats.
#define READ_INT_BOOL(x)        ((int64_t)((x) != 0))
#define READ_INT_U8(x)          ((int64_t)(x))
#define READ_INT_I8(x)          ((int64_t)(x))
#define READ_INT_I16(x)         ((int64_t)(x))
#define READ_INT_I32(x)         ((int64_t)(x))
#define READ_INT_I64(x)         (x)
#define READ_INT_U16(x)         ((int64_t)(x))
#define READ_INT_U32(x)         ((int64_t)(x))
#define READ_INT_U64(x)         ((int64_t)(x))
#define READ_INT_F16(x)         float_to_i64(half_to_float(x))
#define READ_INT_BF16(x)        float_to_i64(bfloat_to_float(x))
#define READ_INT_F32(x)         float_to_i64(x)
#define READ_INT_F64(x)         double_to_i64(x)
#define READ_INT_C64(x)         float_to_i64((x).re)
#define READ_INT_C128(x)        double_to_i64((x).re)
#define READ_INT_F8E4M3FN(x)    float_to_i64(READ_REAL_F8E4M3FN(x))
#define READ_INT_F8E5M2(x)      float_to_i64(READ_REAL_F8E5M2(x))
#define READ_INT_F8E4M3FNUZ(x)  nanless_to_i64(READ_REAL_F8E4M3FNUZ(x))
#define READ_INT_F8E5M2FNUZ(x)  nanless_to_i64(READ_REAL_F8E5M2FNUZ(x))
#define READ_INT_F8E8M0FNU(x)   nanless_to_i64(READ_REAL_F8E8M0FNU(x))
#define READ_REAL_BOOL(x)       ((x) != 0)
#define READ_REAL_U8(x)         (x)
#define READ_REAL_I8(x)         (x)
#define READ_REAL_I16(x)        (x)
#define READ_REAL_I32(x)        (x)
#define READ_REAL_I64(x)        (x)
#define READ_REAL_U16(x)        (x)
#define READ_REAL_U32(x)        (x)
#define READ_REAL_U64(x)        (x)
#define READ_REAL_F16(x)        half_to_float(x)
#define READ_REAL_BF16(x)       bfloat_to_float(x)
#define READ_REAL_F32(x)        (x)
#define READ_REAL_F64(x)        (x)
#define READ_REAL_C64(x)        ((x).re)
#define READ_REAL_C128(x)       ((x).re)
#define READ_REAL_F8E4M3FN(x)   float8_to_float(&float8_e4m3fn, x)
#define READ_REAL_F8E5M2(x)     float8_to_float(&float8_e5m2, x)
#define READ_REAL_F8E4M3FNUZ(x) float8_to_float(&float8_e4m3fnuz, x)
#define READ_REAL_F8E5M2FNUZ(x) float8_to_float(&float8_e5m2fnuz, x)
#define READ_REAL_F8E8M0FNU(x)  e8m0_to_float(x)
#define READ_IMAG_C64(x)        ((double)(x).im)
#define READ_IMAG_C128(x)       ((x).im)
#define READ_IMAG_BOOL(x)       0.0
#define READ_IMAG_U8(x)         0.0
#define READ_IMAG_I8(x)         0.0
#define READ_IMAG_I16(x)        0.0
#define READ_IMAG_I32(x)        0.0
#define READ_IMAG_I64(x)        0.0
#define READ_IMAG_U16(x)        0.0
#define READ_IMAG_U32(x)        0.0
#define READ_IMAG_U64(x)        0.0
#define READ_IMAG_F16(x)        0.0
#define READ_IMAG_BF16(x)       0.0
#define READ_IMAG_F32(x)        0.0
#define READ_IMAG_F64(x)        0.0
#define READ_IMAG_F8E4M3FN(x)   0.0
#define READ_IMAG_F8E5M2(x)     0.0
#define READ_IMAG_F8E4M3FNUZ(x) 0.0
#define READ_IMAG_F8E5M2FNUZ(x) 0.0
#define READ_IMAG_F8E8M0FNU(x)  0.0

#define READ_F32(DTYPE, x)  ((float)(READ_REAL_##DTYPE(x)))
#define READ_F64(DTYPE, x)  ((double)(READ_REAL_##DTYPE(x)))
#define READ_I64(DTYPE, x)  (READ_INT_##DTYPE(x))
#define READ_U8(DTYPE, x)   ((uint8_t)(READ_INT_##DTYPE(x)))
#define READ_I32(DTYPE, x)  ((int32_t)(READ_INT_##DTYPE(x)))
#define READ_MASK(DTYPE, x) ((uint8_t)(READ_REAL_##DTYPE(x) != 0 || READ_IMAG_##DTYPE(x) != 0))
#define READ_C64(DTYPE, x)  ((ComplexF32){ (float)(READ_REAL_##DTYPE(x)), (float)READ_IMAG_##DTYPE(x) })
#define READ_C128(DTYPE, x) ((ComplexF64){ (double)(READ_REAL_##DTYPE(x)), READ_IMAG_##DTYPE(x) })

static inline int64_t keep_i64(int64_t value)
{
        return value;
}
static inline int64_t keep_u64(uint64_t value)
{
        return (int64_t)value;
}
static inline uint64_t i64_as_u64(int64_t value)
{
        return (uint64_t)value;
}
static inline uint64_t keep_unsigned(uint64_t value)
{
        return value;
}
static inline uint64_t float_to_u64(float value)
{
        return double_to_u64((double)value);
}
#define TO_I32(x)                                                                                            \
        _Generic((x), float                                                                                  \
                 : float_to_i32, double                                                                      \
                 : double_to_i32, int64_t                                                                    \
                 : keep_i64, uint64_t                                                                        \
                 : keep_u64)(x)
#define TO_I64(x)                                                                                            \
        _Generic((x), float                                                                                  \
                 : float_to_i64, double                                                                      \
                 : double_to_i64, int64_t                                                                    \
                 : keep_i64, uint64_t                                                                        \
                 : keep_u64)(x)
#define TO_U64(x)                                                                                            \
        _Generic((x), float                                                                                  \
                 : float_to_u64, double                                                                      \
                 : double_to_u64, int64_t                                                                    \
                 : i64_as_u64, uint64_t                                                                      \
                 : keep_unsigned)(x)

#define WRITE_BOOL(x)       ((uint8_t)((x) != 0))
#define WRITE_U8(x)         ((uint8_t)TO_I64(x))
#define WRITE_I8(x)         ((int8_t)TO_I32(x))
#define WRITE_I16(x)        ((int16_t)TO_I32(x))
#define WRITE_I32(x)        ((int32_t)TO_I32(x))
#define WRITE_I64(x)        TO_I64(x)
#define WRITE_U16(x)        ((uint16_t)TO_I32(x))
#define WRITE_U32(x)        ((uint32_t)TO_I64(x))
#define WRITE_U64(x)        TO_U64(x)
#define WRITE_F16(x)        float_to_half((float)(x))
#define WRITE_BF16(x)       float_to_bfloat((float)(x))
#define WRITE_F32(x)        ((float)(x))
#define WRITE_F64(x)        ((double)(x))
#define WRITE_C64(x)        ((ComplexF32){ (float)(x), 0.0f })
#define WRITE_C128(x)       ((ComplexF64){ (double)(x), 0.0 })
#define WRITE_F8E4M3FN(x)   float_to_float8(&float8_e4m3fn, (float)(x))
#define WRITE_F8E5M2(x)     float_to_float8(&float8_e5m2, (float)(x))
#define WRITE_F8E4M3FNUZ(x) float_to_float8(&float8_e4m3fnuz, (float)(x))
#define WRITE_F8E5M2FNUZ(x) float_to_float8(&float8_e5m2fnuz, (float)(x))
#define WRITE_F8E8M0FNU(x)  float_to_e8m0((float)(x))

#define HALF_TABLE(ROW, CLASS, class_type)                                                                   \
        ROW(CLASS, class_type, F16, uint16_t)                                                                \
        ROW(CLASS, class_type, BF16, uint16_t)
#define OTHER_TABLE(ROW, CLASS, class_type)                                                                  \
        ROW(CLASS, class_type, BOOL, uint8_t)                                                                \
        ROW(CLASS, class_type, U8, uint8_t)                                                                  \
        ROW(CLASS, class_type, I8, int8_t)                                                                   \
        ROW(CLASS, class_type, I16, int16_t)                                                                 \
        ROW(CLASS, class_type, I32, int32_t)                                                                 \
        ROW(CLASS, class_type, I64, int64_t)                                                                 \
        ROW(CLASS, class_type, U16, uint16_t)                                                                \
        ROW(CLASS, class_type, U32, uint32_t)                                                                \
        ROW(CLASS, class_type, U64, uint64_t)                                                                \
        ROW(CLASS, class_type, F32, float)                                                                   \
        ROW(CLASS, class_type, F64, double)                                                                  \
        ROW(CLASS, class_type, C64, ComplexF32)                                                              \
        ROW(CLASS, class_type, C128, ComplexF64)                                                             \
        ROW(CLASS, class_type, F8E4M3FN, uint8_t)                                                            \
        ROW(CLASS, class_type, F8E5M2, uint8_t)                                                              \
        ROW(CLASS, class_type, F8E4M3FNUZ, uint8_t)                                                          \
        ROW(CLASS, class_type, F8E5M2FNUZ, uint8_t)                                                          \
        ROW(CLASS, class_type, F8E8M0FNU, uint8_t)
#define ELEMENT_TABLE(ROW, CLASS, class_type)                                                                \
        HALF_TABLE(ROW, CLASS, class_type)                                                                   \
        OTHER_TABLE(ROW, CLASS, class_type)

#define DEFINE_LOADER(CLASS, class_type, DTYPE, type)                                                        \
        static void load_##CLASS##_##DTYPE(const void *from, int64_t stride, size_t n, void *tile)           \
        {                                                                                                    \
                class_type *restrict out = tile;                                                             \
                if (stride == (int64_t)sizeof(type)) {                                                       \
                        const type *restrict in = from;                                                      \
                        for (size_t i = 0; i < n; i++)                                                       \
                                out[i] = READ_##CLASS(DTYPE, in[i]);                                         \
                        return;                                                                              \
                }                                                                                            \
                for (size_t i = 0; i < n; i++) {                                                             \
                        const type *in = (const void *)((const char *)from + (int64_t)i * stride);           \
                        out[i] = READ_##CLASS(DTYPE, *in);                                                   \
                }                                                                                            \
        }
ELEMENT_TABLE(DEFINE_LOADER, F32, float)
ELEMENT_TABLE(DEFINE_LOADER, F64, double)
ELEMENT_TABLE(DEFINE_LOADER, U8, uint8_t)
ELEMENT_TABLE(DEFINE_LOADER, I32, int32_t)
ELEMENT_TABLE(DEFINE_LOADER, I64, int64_t)
ELEMENT_TABLE(DEFINE_LOADER, C64, ComplexF32)
ELEMENT_TABLE(DEFINE_LOADER, C128, ComplexF64)
ELEMENT_TABLE(DEFINE_LOADER, MASK, uint8_t)

// As the macros of WRITE take it.
#define WIDE_F32(x) (x)
#define WIDE_F64(x) (x)
#define WIDE_U8(x)  ((int64_t)(x))
#define WIDE_I32(x) ((int64_t)(x))
#define WIDE_I64(x) (x)
#define WIDE_U64(x) (x)
#define DEFINE_STORER(CLASS, class_type, DTYPE, type)                                                        \
        static void store_##CLASS##_##DTYPE(const void *tile, size_t n, void *to, int64_t stride)            \
        {                                                                                                    \
                const class_type *restrict in = tile;                                                        \
                if (stride == (int64_t)sizeof(type)) {                                                       \
                        type *restrict out = to;                                                             \
                        for (size_t i = 0; i < n; i++)                                                       \
                                out[i] = WRITE_##DTYPE(WIDE_##CLASS(in[i]));                                 \
                        return;                                                                              \
                }                                                                                            \
                for (size_t i = 0; i < n; i++) {                                                             \
                        type *out = (void *)((char *)to + (int64_t)i * stride);                              \
                        *out = WRITE_##DTYPE(WIDE_##CLASS(in[i]));                                           \
                }                                                                                            \
        }
ELEMENT_TABLE(DEFINE_STORER, F32, float)
OTHER_TABLE(DEFINE_STORER, F64, double)
ELEMENT_TABLE(DEFINE_STORER, U8, uint8_t)
ELEMENT_TABLE(DEFINE_STORER, I32, int32_t)
ELEMENT_TABLE(DEFINE_STORER, I64, int64_t)
ELEMENT_TABLE(DEFINE_STORER, U64, uint64_t)

// From complex: complex types keep both parts, bool asks both, everything else drops the imaginary
// part.
#define COMPLEX_TO_BOOL(x)       ((uint8_t)((x).re != 0 || (x).im != 0))
#define COMPLEX_TO_C64(x)        ((ComplexF32){ (float)(x).re, (float)(x).im })
#define COMPLEX_TO_C128(x)       ((ComplexF64){ (double)(x).re, (double)(x).im })
#define COMPLEX_TO_U8(x)         WRITE_U8((x).re)
#define COMPLEX_TO_I8(x)         WRITE_I8((x).re)
#define COMPLEX_TO_I16(x)        WRITE_I16((x).re)
#define COMPLEX_TO_I32(x)        WRITE_I32((x).re)
#define COMPLEX_TO_I64(x)        WRITE_I64((x).re)
#define COMPLEX_TO_U16(x)        WRITE_U16((x).re)
#define COMPLEX_TO_U32(x)        WRITE_U32((x).re)
#define COMPLEX_TO_U64(x)        WRITE_U64((x).re)
#define COMPLEX_TO_F16(x)        WRITE_F16((x).re)
#define COMPLEX_TO_BF16(x)       WRITE_BF16((x).re)
#define COMPLEX_TO_F32(x)        WRITE_F32((x).re)
#define COMPLEX_TO_F64(x)        WRITE_F64((x).re)
#define COMPLEX_TO_F8E4M3FN(x)   WRITE_F8E4M3FN((x).re)
#define COMPLEX_TO_F8E5M2(x)     WRITE_F8E5M2((x).re)
#define COMPLEX_TO_F8E4M3FNUZ(x) WRITE_F8E4M3FNUZ((x).re)
#define COMPLEX_TO_F8E5M2FNUZ(x) WRITE_F8E5M2FNUZ((x).re)
#define COMPLEX_TO_F8E8M0FNU(x)  WRITE_F8E8M0FNU((x).re)
#define DEFINE_COMPLEX_STORER(CLASS, class_type, DTYPE, type)                                                \
        static void store_##CLASS##_##DTYPE(const void *tile, size_t n, void *to, int64_t stride)            \
        {                                                                                                    \
                const class_type *in = tile;                                                                 \
                for (size_t i = 0; i < n; i++) {                                                             \
                        type *out = (void *)((char *)to + (int64_t)i * stride);                              \
                        *out = COMPLEX_TO_##DTYPE(in[i]);                                                    \
                }                                                                                            \
        }
ELEMENT_TABLE(DEFINE_COMPLEX_STORER, C64, ComplexF32)
ELEMENT_TABLE(DEFINE_COMPLEX_STORER, C128, ComplexF64)

#define DEFINE_MASK_STORER(CLASS, class_type, DTYPE, type)                                                   \
        static void store_##CLASS##_##DTYPE(const void *tile, size_t n, void *to, int64_t stride)            \
        {                                                                                                    \
                const class_type *restrict in = tile;                                                        \
                const type zero = WRITE_##DTYPE((int64_t)0), one = WRITE_##DTYPE((int64_t)1);                \
                if (stride == (int64_t)sizeof(type)) {                                                       \
                        type *restrict out = to;                                                             \
                        for (size_t i = 0; i < n; i++)                                                       \
                                out[i] = in[i] != 0 ? one : zero;                                            \
                        return;                                                                              \
                }                                                                                            \
                for (size_t i = 0; i < n; i++) {                                                             \
                        type *out = (void *)((char *)to + (int64_t)i * stride);                              \
                        *out = in[i] != 0 ? one : zero;                                                      \
                }                                                                                            \
        }
ELEMENT_TABLE(DEFINE_MASK_STORER, MASK, uint8_t)

// Halves to and from float32: runs on wide registers where there are any.
#define DEFINE_HALF(CLASS, class_type, DTYPE, type)                                                          \
        static void load_half_##DTYPE(const void *from, int64_t stride, size_t n, void *tile)                \
        {                                                                                                    \
                if (stride != (int64_t)sizeof(type) || !halves_widen(DTYPE_##DTYPE, from, n, tile))          \
                        load_##CLASS##_##DTYPE(from, stride, n, tile);                                       \
        }                                                                                                    \
        static void store_half_##DTYPE(const void *tile, size_t n, void *to, int64_t stride)                 \
        {                                                                                                    \
                if (stride != (int64_t)sizeof(type) || !halves_narrow(DTYPE_##DTYPE, tile, n, to))           \
                        store_##CLASS##_##DTYPE(tile, n, to, stride);                                        \
        }
HALF_TABLE(DEFINE_HALF, F32, float)

// Float64 becomes a half by way of float32.
#define DEFINE_HALF_OF_DOUBLE(CLASS, class_type, DTYPE, type)                                                \
        static void store_double_##DTYPE(const void *tile, size_t n, void *to, int64_t stride)               \
        {                                                                                                    \
                enum { PIECE = 256 };                                                                        \
                float single[PIECE];                                                                         \
                for (size_t at = 0, count; at < n; at += count) {                                            \
                        count = MIN(n - at, PIECE);                                                          \
                        store_F64_F32((const double *)tile + at, count, single, sizeof(float));              \
                        store_half_##DTYPE(single, count, (char *)to + (int64_t)at * stride, stride);        \
                }                                                                                            \
        }
HALF_TABLE(DEFINE_HALF_OF_DOUBLE, F64, double)

#define HALF_LOADER_NAME(CLASS, class_type, DTYPE, type)   [DTYPE_##DTYPE] = load_half_##DTYPE,
#define HALF_STORER_NAME(CLASS, class_type, DTYPE, type)   [DTYPE_##DTYPE] = store_half_##DTYPE,
#define DOUBLE_STORER_NAME(CLASS, class_type, DTYPE, type) [DTYPE_##DTYPE] = store_double_##DTYPE,
#define LOADER_NAME(CLASS, class_type, DTYPE, type)        [DTYPE_##DTYPE] = load_##CLASS##_##DTYPE,
#define STORER_NAME(CLASS, class_type, DTYPE, type)        [DTYPE_##DTYPE] = store_##CLASS##_##DTYPE,
#ifdef CONVERT_WIDE
const TileTables tile_tables_wide = {
#else
const TileTables tile_tables_plain = {
#endif
        .load = {
        [TILE_F32] = { HALF_TABLE(HALF_LOADER_NAME, F32, float) OTHER_TABLE(LOADER_NAME, F32, float) },
        [TILE_F64] = { ELEMENT_TABLE(LOADER_NAME, F64, double) },
        [TILE_U8] = { ELEMENT_TABLE(LOADER_NAME, U8, uint8_t) },
        [TILE_I32] = { ELEMENT_TABLE(LOADER_NAME, I32, int32_t) },
        [TILE_I64] = { ELEMENT_TABLE(LOADER_NAME, I64, int64_t) },
        [TILE_U64] = { ELEMENT_TABLE(LOADER_NAME, I64, int64_t) },
        [TILE_C64] = { ELEMENT_TABLE(LOADER_NAME, C64, ComplexF32) },
        [TILE_C128] = { ELEMENT_TABLE(LOADER_NAME, C128, ComplexF64) },
        [TILE_MASK] = { ELEMENT_TABLE(LOADER_NAME, MASK, uint8_t) },
        },
        .store = {
        [TILE_F32] = { HALF_TABLE(HALF_STORER_NAME, F32, float) OTHER_TABLE(STORER_NAME, F32, float) },
        [TILE_F64] = { HALF_TABLE(DOUBLE_STORER_NAME, F64, double) OTHER_TABLE(STORER_NAME, F64, double) },
        [TILE_U8] = { ELEMENT_TABLE(STORER_NAME, U8, uint8_t) },
        [TILE_I32] = { ELEMENT_TABLE(STORER_NAME, I32, int32_t) },
        [TILE_I64] = { ELEMENT_TABLE(STORER_NAME, I64, int64_t) },
        [TILE_U64] = { ELEMENT_TABLE(STORER_NAME, U64, uint64_t) },
        [TILE_C64] = { ELEMENT_TABLE(STORER_NAME, C64, ComplexF32) },
        [TILE_C128] = { ELEMENT_TABLE(STORER_NAME, C128, ComplexF64) },
        [TILE_MASK] = { ELEMENT_TABLE(STORER_NAME, MASK, uint8_t) },
        },
};
