// SPDX-License-Identifier: Apache-2.0
// halves.c: the loops of half.h compiled for AVX2. float16 is read and rounded by the instructions
// for it. NaNs keep the bits that half.h gives them, which are not those of the instructions.
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

bool halves_widen(Dtype half, const uint16_t *from, size_t n, float *to)
{
        if (isa_level() < ISA_AVX2)
                return false;
        (half == DTYPE_F16 ? widen_f16 : widen_bf16)(from, n, to);
        return true;
}

bool halves_narrow(Dtype half, const float *from, size_t n, uint16_t *to)
{
        if (isa_level() < ISA_AVX2)
                return false;
        (half == DTYPE_F16 ? narrow_f16 : narrow_bf16)(from, n, to);
        return true;
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
