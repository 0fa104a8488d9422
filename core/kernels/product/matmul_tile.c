// SPDX-License-Identifier: Apache-2.0
// matmul_tile.c: the inner loops of matmul_tile.inc, compiled for the plain instruction set, AVX2 +
// FMA and AVX-512, and the choice among them. All of a process uses one choice, so results do not
// depend on the worker.
#include "core/kernels/product/matmul_tile.h"
#include <string.h>
#include "core/base/memory.h"

// Integers wrap: products are made in unsigned arithmetic.
#define TILE_NUMBER(x) _Generic((TILE_T)0, float : (float)(x), double : (x), default : (TILE_T)(int64_t)(x))

// Plain: what every x86-64 (or other) CPU has.
#define TILE_TARGET
#define TILE_FMA(x, b, c)  ((c) + (x) * (b))
#define TILE_FMAV(x, b, c) ((c) + (x) * (b))
#define TILE_ROWS          6
#define TILE_VECTORS       1
#define TILE_BYTES         32

#define TILE(x) f32_plain_##x
#define TILE_T  float
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#define TILE(x) f64_plain_##x
#define TILE_T  double
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#define TILE(x) i32_plain_##x
#define TILE_T  uint32_t
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#define TILE(x) i64_plain_##x
#define TILE_T  uint64_t
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T

#undef TILE_TARGET
#undef TILE_FMA
#undef TILE_FMAV
#undef TILE_ROWS
#undef TILE_VECTORS
#undef TILE_BYTES

#if defined(__x86_64__)
#include <immintrin.h>

#define TILE_TARGET        TARGET_AVX2
#define TILE_ROWS          6
#define TILE_VECTORS       2
#define TILE_BYTES         32
#define TILE(x)            f32_avx2_##x
#define TILE_T             float
#define TILE_FMA(x, b, c)  _mm256_fmadd_ps(_mm256_set1_ps(x), (b), (c))
#define TILE_FMAV(x, b, c) _mm256_fmadd_ps((x), (b), (c))
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#undef TILE_FMA
#undef TILE_FMAV
#define TILE(x)            f64_avx2_##x
#define TILE_T             double
#define TILE_FMA(x, b, c)  _mm256_fmadd_pd(_mm256_set1_pd(x), (b), (c))
#define TILE_FMAV(x, b, c) _mm256_fmadd_pd((x), (b), (c))
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#undef TILE_FMA
#undef TILE_FMAV
#define TILE_FMA(x, b, c)  ((c) + (x) * (b))
#define TILE_FMAV(x, b, c) ((c) + (x) * (b))
#define TILE(x)            i32_avx2_##x
#define TILE_T             uint32_t
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#define TILE(x) i64_avx2_##x
#define TILE_T  uint64_t
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#undef TILE_FMA
#undef TILE_FMAV
#undef TILE_TARGET
#undef TILE_ROWS
#undef TILE_BYTES

#define TILE_TARGET        TARGET_AVX512
#define TILE_ROWS          12
#define TILE_BYTES         64
#define TILE_SIXTEEN       // lanes of a vector
#define TILE(x)            f32_avx512_##x
#define TILE_T             float
#define TILE_FMA(x, b, c)  _mm512_fmadd_ps(_mm512_set1_ps(x), (b), (c))
#define TILE_FMAV(x, b, c) _mm512_fmadd_ps((x), (b), (c))
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#undef TILE_SIXTEEN
#undef TILE_FMA
#undef TILE_FMAV
#define TILE(x)            f64_avx512_##x
#define TILE_T             double
#define TILE_FMA(x, b, c)  _mm512_fmadd_pd(_mm512_set1_pd(x), (b), (c))
#define TILE_FMAV(x, b, c) _mm512_fmadd_pd((x), (b), (c))
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#undef TILE_FMA
#undef TILE_FMAV
#define TILE_FMA(x, b, c)  ((c) + (x) * (b))
#define TILE_FMAV(x, b, c) ((c) + (x) * (b))
#define TILE(x)            i32_avx512_##x
#define TILE_T             uint32_t
#define TILE_SIXTEEN
#include "core/kernels/product/matmul_tile.inc"
#undef TILE_SIXTEEN
#undef TILE
#undef TILE_T
#define TILE(x) i64_avx512_##x
#define TILE_T  uint64_t
#include "core/kernels/product/matmul_tile.inc"
#undef TILE
#undef TILE_T
#undef TILE_FMA
#undef TILE_FMAV
#endif

static const KernelVariant gemm_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &f32_plain_tile }, { DTYPE_F64, ISA_PORTABLE, &f64_plain_tile },
        { DTYPE_I32, ISA_PORTABLE, &i32_plain_tile }, { DTYPE_I64, ISA_PORTABLE, &i64_plain_tile },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &f32_avx2_tile },      { DTYPE_F64, ISA_AVX2, &f64_avx2_tile },
        { DTYPE_I32, ISA_AVX2, &i32_avx2_tile },      { DTYPE_I64, ISA_AVX2, &i64_avx2_tile },
        { DTYPE_F32, ISA_AVX512, &f32_avx512_tile },  { DTYPE_F64, ISA_AVX512, &f64_avx512_tile },
        { DTYPE_I32, ISA_AVX512, &i32_avx512_tile },  { DTYPE_I64, ISA_AVX512, &i64_avx512_tile },
#endif
};
const KernelFamily gemm_family = { "gemm", ARRAY_LENGTH(gemm_variants), gemm_variants };
