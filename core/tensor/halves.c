// SPDX-License-Identifier: Apache-2.0
// halves.c: the loops of half.h for AVX2 and AVX-512. float16 is read and rounded by the
// instructions for it. NaNs keep the bits that half.h gives them, which are not those of the
// instructions.
#include "core/tensor/halves.h"
#include "core/base/isa.h"
#include "core/tensor/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET_HALVES __attribute__((target(ISA_AVX2_FEATURES ",f16c")))

static TARGET_HALVES void widen_f16(const uint16_t *restrict from, size_t n, float *restrict to)
{
        size_t i = 0;
        for (; i + 8 <= n; i += 8) {
                __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i)));
                _mm256_storeu_ps(to + i, x);
                if (_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)) == 0)
                        continue;
                for (size_t k = i; k < i + 8; k++)
                        to[k] = half_to_float(from[k]);
        }
        for (; i < n; i++)
                to[i] = half_to_float(from[i]);
}

static TARGET_HALVES void widen_bf16(const uint16_t *restrict from, size_t n, float *restrict to)
{
        for (size_t i = 0; i < n; i++)
                to[i] = bfloat_to_float(from[i]);
}

static TARGET_HALVES void narrow_f16(const float *restrict from, size_t n, uint16_t *restrict to)
{
        const __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), sign = _mm256_set1_ps(-0.0f);
        size_t i = 0;
        for (; i + 8 <= n; i += 8) {
                __m256 x = _mm256_loadu_ps(from + i);
                __m256 nan = _mm256_or_ps(_mm256_and_ps(x, sign), quiet);
                x = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
                _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
        }
        for (; i < n; i++)
                to[i] = float_to_half(from[i]);
}

static TARGET_HALVES void narrow_bf16(const float *restrict from, size_t n, uint16_t *restrict to)
{
        for (size_t i = 0; i < n; i++)
                to[i] = float_to_bfloat(from[i]);
}

// ---- AVX-512: sixteen at a time, the last ones under a mask ----
#define TARGET_HALVES_512 __attribute__((target(ISA_AVX512_FEATURES ",f16c")))

static TARGET_HALVES_512 inline __m512 widened_f16(__m256i bits)
{
        __m512 x = _mm512_cvtph_ps(bits);
        __mmask16 nans = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        if (__builtin_expect(nans == 0, 1))
                return x;
        __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 13);
        __m512i sign = _mm512_and_epi32(_mm512_slli_epi32(wide, 3), _mm512_set1_epi32(INT32_MIN));
        __m512i nan = _mm512_or_epi32(_mm512_and_epi32(wide, _mm512_set1_epi32(0x007fe000)),
                                      _mm512_or_epi32(sign, _mm512_set1_epi32(0x7f800000)));
        return _mm512_mask_mov_ps(x, nans, _mm512_castsi512_ps(nan));
}

static TARGET_HALVES_512 inline __m512 widened_bf16(__m256i bits)
{
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

static TARGET_HALVES_512 inline __m256i narrowed_f16(__m512 x)
{
        const __m512i quiet = _mm512_set1_epi32(0x7fc00000), sign = _mm512_set1_epi32(INT32_MIN);
        __m512i nan = _mm512_or_epi32(_mm512_and_epi32(_mm512_castps_si512(x), sign), quiet);
        x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_castsi512_ps(nan));
        return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

static TARGET_HALVES_512 inline __m256i narrowed_bf16(__m512 x)
{
        const __m512i quiet = _mm512_set1_epi32(0x7fc0), sign = _mm512_set1_epi32(0x8000);
        __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
        __m512i odd = _mm512_and_epi32(high, _mm512_set1_epi32(1));
        __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
        __m512i nan = _mm512_or_epi32(_mm512_and_epi32(high, sign), quiet);
        __mmask16 nans = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), nans, nan));
}

#define DEFINE_WIDE_LOOPS(half)                                                                              \
        static TARGET_HALVES_512 void widen_##half##_512(const uint16_t *restrict from, size_t n,            \
                                                         float *restrict to)                                 \
        {                                                                                                    \
                size_t i = 0;                                                                                \
                for (; i + 16 <= n; i += 16)                                                                 \
                        _mm512_storeu_ps(to + i, widened_##half(_mm256_loadu_si256(                          \
                                                         (const __m256i *)(const void *)(from + i))));       \
                const __mmask16 some = (__mmask16)((1u << (n - i)) - 1);                                     \
                _mm512_mask_storeu_ps(to + i, some,                                                          \
                                      widened_##half(_mm256_maskz_loadu_epi16(some, from + i)));             \
        }                                                                                                    \
        static TARGET_HALVES_512 void narrow_##half##_512(const float *restrict from, size_t n,              \
                                                          uint16_t *restrict to)                             \
        {                                                                                                    \
                size_t i = 0;                                                                                \
                for (; i + 16 <= n; i += 16)                                                                 \
                        _mm256_storeu_si256((__m256i *)(void *)(to + i),                                     \
                                            narrowed_##half(_mm512_loadu_ps(from + i)));                     \
                const __mmask16 some = (__mmask16)((1u << (n - i)) - 1);                                     \
                _mm256_mask_storeu_epi16(to + i, some,                                                       \
                                         narrowed_##half(_mm512_maskz_loadu_ps(some, from + i)));            \
        }
DEFINE_WIDE_LOOPS(f16)
DEFINE_WIDE_LOOPS(bf16)

bool halves_widen(Dtype half, const uint16_t *from, size_t n, float *to)
{
        const Isa isa = isa_level();
        if (isa >= ISA_AVX512)
                (half == DTYPE_F16 ? widen_f16_512 : widen_bf16_512)(from, n, to);
        else if (isa >= ISA_AVX2)
                (half == DTYPE_F16 ? widen_f16 : widen_bf16)(from, n, to);
        return isa >= ISA_AVX2;
}

bool halves_narrow(Dtype half, const float *from, size_t n, uint16_t *to)
{
        const Isa isa = isa_level();
        if (isa >= ISA_AVX512)
                (half == DTYPE_F16 ? narrow_f16_512 : narrow_bf16_512)(from, n, to);
        else if (isa >= ISA_AVX2)
                (half == DTYPE_F16 ? narrow_f16 : narrow_bf16)(from, n, to);
        return isa >= ISA_AVX2;
}
#else
bool halves_widen(Dtype half, const uint16_t *from, size_t n, float *to)
{
        (void)half, (void)from, (void)n, (void)to;
        return false;
}

bool halves_narrow(Dtype half, const float *from, size_t n, uint16_t *to)
{
        (void)half, (void)from, (void)n, (void)to;
        return false;
}
#endif
