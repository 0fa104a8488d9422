// SPDX-License-Identifier: Apache-2.0
// The macros of direct_tile.inc and depthwise.inc for AVX-512; direct_off.h undefines them.
// DIRECT_MAX(low, x) and DIRECT_MIN(high, x) give x when x is NaN or both are equal.
// DIRECT_STEPS: of a sum, that a dense tile makes before it looks ahead.
// DIRECT_LOAD_PART (other lanes 0) and DIRECT_STORE_PART use the first n lanes only.
#include <immintrin.h>
#include "core/kernels/isa.h"

#define DIRECT(x)                   avx512_##x
#define DIRECT_TARGET               TARGET_AVX512
#define DIRECT_SUMS                 28 // that fit the registers beside operands
#define DIRECT_LANES                16
#define DIRECT_STEPS                1
#define DIRECT_FMA(x, b, c)         _mm512_fmadd_ps(_mm512_set1_ps(x), (b), (c))
#define DIRECT_FMAV(x, b, c)        _mm512_fmadd_ps((x), (b), (c))
#define DIRECT_SPREAD(x, of)        _mm512_permute_ps((x), 0x55 * (of)) // element `of` of each four
#define DIRECT_MAX(low, x)          _mm512_max_ps((low), (x))
#define DIRECT_MIN(high, x)         _mm512_min_ps((high), (x))
#define DIRECT_LOAD(from)           _mm512_loadu_ps(from)
#define DIRECT_STORE(to, x)         _mm512_storeu_ps((to), (x))
#define DIRECT_LOAD_PART(from, n)   _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), (from))
#define DIRECT_STORE_PART(to, n, x) _mm512_mask_storeu_ps((to), (__mmask16)((1u << (n)) - 1), (x))
