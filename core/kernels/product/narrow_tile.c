// SPDX-License-Identifier: Apache-2.0
// narrow_tile.c: the tiles of narrow products for AVX2 and AVX-512.
#include "core/kernels/product/narrow_tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include "core/kernels/conv/direct_avx512.h"
#define NARROW_NAME          "avx512"
#define NARROW_INTS          __m512i
#define NARROW_ZERO()        _mm512_setzero_si512()
#define NARROW_ADD(a, b)     _mm512_add_epi32((a), (b))
#define NARROW_PAIRS(x, b)   _mm512_madd_epi16(_mm512_set1_epi32(x), (b))
#define NARROW_FLOATS(x)     _mm512_cvtepi32_ps(x)
#define NARROW_WIDEN_8(from) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(from)))
#define NARROW_WIDEN_BF16(from)                                                                              \
        _mm512_castsi512_ps(_mm512_slli_epi32(                                                               \
                _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(from))), 16))
#include "core/kernels/product/narrow_tile.inc"
#undef NARROW_NAME
#undef NARROW_INTS
#undef NARROW_ZERO
#undef NARROW_ADD
#undef NARROW_PAIRS
#undef NARROW_FLOATS
#undef NARROW_WIDEN_8
#undef NARROW_WIDEN_BF16
#include "core/kernels/conv/direct_off.h"

#include "core/kernels/conv/direct_avx2.h"
#define NARROW_NAME          "avx2"
#define NARROW_INTS          __m256i
#define NARROW_ZERO()        _mm256_setzero_si256()
#define NARROW_ADD(a, b)     _mm256_add_epi32((a), (b))
#define NARROW_PAIRS(x, b)   _mm256_madd_epi16(_mm256_set1_epi32(x), (b))
#define NARROW_FLOATS(x)     _mm256_cvtepi32_ps(x)
#define NARROW_WIDEN_8(from) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(from)))
#define NARROW_WIDEN_BF16(from)                                                                              \
        _mm256_castsi256_ps(_mm256_slli_epi32(                                                               \
                _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(from))), 16))
#include "core/kernels/product/narrow_tile.inc"

static const NarrowIsa narrow_vnni = { 16, &narrow_dot_int8, &avx512_bf16_kind };
static const NarrowIsa narrow_bf16 = { 16, &narrow_dot_int8, &narrow_dot_bf16 };

static const KernelVariant narrow_variants[] = {
        { DTYPE_F32, ISA_AVX2, &avx2_narrow },
        { DTYPE_F32, ISA_AVX512, &avx512_narrow },
        { DTYPE_F32, ISA_AVX512_VNNI, &narrow_vnni },
        { DTYPE_F32, ISA_AVX512_BF16, &narrow_bf16 },
};
const KernelFamily narrow_family = { "narrow", ARRAY_LENGTH(narrow_variants), narrow_variants };
#else
const KernelFamily narrow_family = { .name = "narrow" };
#endif

const NarrowIsa *narrow_isa(void)
{
        return kernel_variant(&narrow_family, DTYPE_F32);
}
