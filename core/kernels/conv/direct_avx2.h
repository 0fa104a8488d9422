// SPDX-License-Identifier: Apache-2.0
// The macros of direct_avx512.h for AVX2 with FMA.
#include <immintrin.h>
#include "core/kernels/isa.h"

#define DIRECT(x)            avx2_##x
#define DIRECT_TARGET        TARGET_AVX2
#define DIRECT_SUMS          14 // that fit the registers beside operands
#define DIRECT_LANES         8
#define DIRECT_STEPS         2
#define DIRECT_FMA(x, b, c)  _mm256_fmadd_ps(_mm256_set1_ps(x), (b), (c))
#define DIRECT_FMAV(x, b, c) _mm256_fmadd_ps((x), (b), (c))
#define DIRECT_SPREAD(x, of) _mm256_permute_ps((x), 0x55 * (of)) // element `of` of each four
#define DIRECT_MAX(low, x)   _mm256_max_ps((low), (x))
#define DIRECT_MIN(high, x)  _mm256_min_ps((high), (x))
#define DIRECT_LOAD(from)    _mm256_loadu_ps(from)
#define DIRECT_STORE(to, x)  _mm256_storeu_ps((to), (x))
#define DIRECT_LANES_BELOW(n)                                                                                \
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define DIRECT_LOAD_PART(from, n)   _mm256_maskload_ps((from), DIRECT_LANES_BELOW(n))
#define DIRECT_STORE_PART(to, n, x) _mm256_maskstore_ps((to), DIRECT_LANES_BELOW(n), (x))
