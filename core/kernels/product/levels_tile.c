// SPDX-License-Identifier: Apache-2.0
// levels_tile.c: the tiles of products of levels for AVX2 and for AVX-512 with VNNI.
#include "core/kernels/product/levels_tile.h"

#include <string.h>
#include "core/base/memory.h"
#include "core/kernels/product/narrow_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

// ---- AVX-512 with VNNI ----
// Compiled with the features of the set above it, as narrow_dot.c's tiles are: nothing here can
// become an instruction for bfloat16.
#define LEVELS(x)                    avx512_##x
#define LEVELS_NAME                  "avx512_vnni"
#define LEVELS_TARGET                TARGET_512(ISA_AVX512_BF16_FEATURES)
#define LEVELS_LANES                 16
#define LEVELS_ROWS                  14
#define LEVELS_TERMS                 4
#define LEVELS_CELL                  4
#define LEVELS_REGISTER              "v"
#define LEVELS_INTS                  __m512i
#define LEVELS_FLOATS                __m512
#define LEVELS_ZERO()                _mm512_setzero_si512()
#define LEVELS_SAME(x)               _mm512_set1_ps(x)
#define LEVELS_SAME_INT(x)           _mm512_set1_epi32(x)
#define LEVELS_LOAD(from)            _mm512_loadu_ps(from)
#define LEVELS_LOAD_INTS(from)       _mm512_loadu_si512(from)
#define LEVELS_PANEL(from)           _mm512_loadu_si512(from)
#define LEVELS_DOT(sum, row, panel)  _mm512_dpbusd_epi32((sum), (row), (panel))
#define LEVELS_ADD(a, b)             _mm512_add_epi32((a), (b))
#define LEVELS_XOR(a, b)             _mm512_xor_si512((a), (b))
#define LEVELS_SUB(a, b)             _mm512_sub_epi32((a), (b))
#define LEVELS_MUL(a, b)             _mm512_mullo_epi32((a), (b))
#define LEVELS_TO_FLOATS(x)          _mm512_cvtepi32_ps(x)
#define LEVELS_TO_INTS(x)            _mm512_cvttps_epi32(x)
#define LEVELS_NEAREST(x)            _mm512_cvtps_epi32(x)
#define LEVELS_FMA(x, y, z)          _mm512_fmadd_ps((x), (y), (z))
#define LEVELS_MAX(low, x)           _mm512_max_ps((low), (x))
#define LEVELS_MIN(high, x)          _mm512_min_ps((high), (x))
#define LEVELS_ROUND(x)              _mm512_roundscale_ps((x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define LEVELS_MASK(n)               ((__mmask16)((1u << (n)) - 1))
#define LEVELS_LOAD_PART(from, n)    _mm512_maskz_loadu_ps(LEVELS_MASK(n), (from))
#define LEVELS_STORE_PART(to, n, x)  _mm512_mask_storeu_ps((to), LEVELS_MASK(n), (x))
#define LEVELS_BYTES_PART(from, n)   _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(LEVELS_MASK(n), (from)))
#define LEVELS_STORE_BYTES(to, n, x) _mm_mask_storeu_epi8((to), LEVELS_MASK(n), _mm512_cvtepi32_epi8(x))

LEVELS_TARGET static void avx512_widen(const uint8_t *from, int64_t n, bool is_signed, void *to)
{
        const uint8_t flip = is_signed ? 0x80 : 0;
        uint8_t *levels = to;
        for (int64_t k = 0; k < n; k++)
                levels[k] = from[k] ^ flip;
}

// The steps of a vector's channels of one pixel.
LEVELS_TARGET static inline __attribute__((always_inline)) __m512i avx512_steps(const LevelsStrip *strip,
                                                                                int64_t pixel, int64_t at,
                                                                                __mmask16 mask,
                                                                                const int n_rows)
{
        __m512i steps = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int row = 0; row < n_rows; row++) {
                const uint8_t *from = strip->rows[row] + pixel * strip->step[row] + at;
                __m512i levels = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from));
                steps = _mm512_or_si512(steps, _mm512_slli_epi32(levels, 8 * (unsigned)row));
        }
        return steps;
}

LEVELS_TARGET static inline __attribute__((always_inline)) void avx512_weave(const LevelsStrip *strip,
                                                                             int32_t *to, const int n_rows)
{
        const LevelsStrip own = *strip;
        const __m512i flip = _mm512_set1_epi32(own.is_signed ? (int)0x80808080u : 0);
        for (int64_t at = 0; at < own.n_channels; at += LEVELS_LANES) {
                int64_t left = own.n_channels - at;
                __mmask16 mask = LEVELS_MASK(left < LEVELS_LANES ? left : LEVELS_LANES);
                for (int64_t pixel = 0; pixel < own.n_pixels; pixel++)
                        _mm512_storeu_si512(
                                to + pixel * LEVELS_VECTORS * LEVELS_LANES + at,
                                _mm512_xor_si512(avx512_steps(&own, pixel, at, mask, n_rows), flip));
        }
}

LEVELS_TARGET static void avx512_interleave(const LevelsStrip *strip, void *to)
{
        if (strip->n_rows == 3)
                avx512_weave(strip, to, 3);
        else
                avx512_weave(strip, to, 4);
}

#include "core/kernels/product/levels_tile.inc"
#undef LEVELS
#undef LEVELS_NAME
#undef LEVELS_TARGET
#undef LEVELS_LANES
#undef LEVELS_ROWS
#undef LEVELS_TERMS
#undef LEVELS_CELL
#undef LEVELS_REGISTER
#undef LEVELS_INTS
#undef LEVELS_FLOATS
#undef LEVELS_ZERO
#undef LEVELS_SAME
#undef LEVELS_SAME_INT
#undef LEVELS_LOAD
#undef LEVELS_LOAD_INTS
#undef LEVELS_PANEL
#undef LEVELS_DOT
#undef LEVELS_SUB
#undef LEVELS_MUL
#undef LEVELS_TO_FLOATS
#undef LEVELS_TO_INTS
#undef LEVELS_FMA
#undef LEVELS_MAX
#undef LEVELS_MIN
#undef LEVELS_ROUND
#undef LEVELS_LOAD_PART
#undef LEVELS_STORE_PART
#undef LEVELS_STORE_BYTES
#undef LEVELS_ADD
#undef LEVELS_XOR
#undef LEVELS_NEAREST
#undef LEVELS_BYTES_PART

// ---- AVX2 ----
#define LEVELS(x)                    avx2_##x
#define LEVELS_NAME                  "avx2"
#define LEVELS_TARGET                TARGET_AVX2
#define LEVELS_LANES                 8
#define LEVELS_ROWS                  6
#define LEVELS_TERMS                 2
#define LEVELS_CELL                  2
#define LEVELS_REGISTER              "x"
#define LEVELS_INTS                  __m256i
#define LEVELS_FLOATS                __m256
#define LEVELS_ZERO()                _mm256_setzero_si256()
#define LEVELS_SAME(x)               _mm256_set1_ps(x)
#define LEVELS_SAME_INT(x)           _mm256_set1_epi32(x)
#define LEVELS_LOAD(from)            _mm256_loadu_ps(from)
#define LEVELS_LOAD_INTS(from)       _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define LEVELS_PANEL(from)           avx2_panel(from)
#define LEVELS_DOT(sum, row, panel)  _mm256_add_epi32((sum), _mm256_madd_epi16((row), (panel)))
#define LEVELS_ADD(a, b)             _mm256_add_epi32((a), (b))
#define LEVELS_XOR(a, b)             _mm256_xor_si256((a), (b))
#define LEVELS_SUB(a, b)             _mm256_sub_epi32((a), (b))
#define LEVELS_MUL(a, b)             _mm256_mullo_epi32((a), (b))
#define LEVELS_TO_FLOATS(x)          _mm256_cvtepi32_ps(x)
#define LEVELS_TO_INTS(x)            _mm256_cvttps_epi32(x)
#define LEVELS_NEAREST(x)            _mm256_cvtps_epi32(x)
#define LEVELS_FMA(x, y, z)          _mm256_fmadd_ps((x), (y), (z))
#define LEVELS_MAX(low, x)           _mm256_max_ps((low), (x))
#define LEVELS_MIN(high, x)          _mm256_min_ps((high), (x))
#define LEVELS_ROUND(x)              _mm256_round_ps((x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define LEVELS_LOAD_PART(from, n)    _mm256_maskload_ps((from), avx2_below(n))
#define LEVELS_STORE_PART(to, n, x)  _mm256_maskstore_ps((to), avx2_below(n), (x))
#define LEVELS_BYTES_PART(from, n)   _mm256_cvtepu8_epi32(avx2_bytes((from), (n)))
#define LEVELS_STORE_BYTES(to, n, x) avx2_store_bytes((to), (n), (x))

#define AVX2_INLINE TARGET_AVX2 static inline __attribute__((always_inline))
AVX2_INLINE __m256i avx2_panel(const uint8_t *from)
{
        return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

// The first n of eight bytes.
AVX2_INLINE __m128i avx2_bytes(const uint8_t *from, int n)
{
        int64_t bytes = 0;
        memcpy(&bytes, from, (size_t)n);
        return _mm_cvtsi64_si128(bytes);
}

// The first n of eight lanes.
AVX2_INLINE __m256i avx2_below(int n)
{
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// The low byte of each.
AVX2_INLINE void avx2_store_bytes(char *to, int n, __m256i x)
{
        const __m256i low = _mm256_set1_epi32(0x0c080400);
        __m256i bytes = _mm256_shuffle_epi8(x, low);
        int32_t halves[2] = { _mm256_extract_epi32(bytes, 0), _mm256_extract_epi32(bytes, 4) };
        memcpy(to, halves, (size_t)n);
}

TARGET_AVX2 static void avx2_widen(const uint8_t *from, int64_t n, bool is_signed, void *to)
{
        int16_t *levels = to;
        if (is_signed)
                for (int64_t k = 0; k < n; k++)
                        levels[k] = (int8_t)from[k];
        else
                for (int64_t k = 0; k < n; k++)
                        levels[k] = from[k];
}

AVX2_INLINE __m256i avx2_level(const LevelsStrip *strip, int row, int64_t pixel, int64_t at)
{
        const uint8_t *from = strip->rows[row] + pixel * strip->step[row] + at;
        int64_t left = strip->n_channels - at;
        __m128i bytes = left < LEVELS_LANES ? avx2_bytes(from, (int)left) : avx2_bytes(from, LEVELS_LANES);
        return strip->is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

TARGET_AVX2 static void avx2_interleave(const LevelsStrip *strip, void *to)
{
        const LevelsStrip own = *strip;
        for (int64_t at = 0; at < own.n_channels; at += LEVELS_LANES)
                for (int64_t pixel = 0; pixel < own.n_pixels; pixel++) {
                        __m256i a = avx2_level(&own, 0, pixel, at), b = avx2_level(&own, 1, pixel, at);
                        int32_t *steps = (int32_t *)to + pixel * LEVELS_VECTORS * LEVELS_LANES + at;
                        _mm256_storeu_si256((__m256i *)(void *)steps,
                                            _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa));
                }
}

#include "core/kernels/product/levels_tile.inc"

static const KernelVariant levels_variants[] = {
        { DTYPE_I8, ISA_AVX2, &avx2_isa },
        { DTYPE_I8, ISA_AVX512_VNNI, &avx512_isa },
};
const KernelFamily levels_family = { "levels", ARRAY_LENGTH(levels_variants), levels_variants };
#else
const KernelFamily levels_family = { .name = "levels" };
#endif

const LevelsIsa *levels_isa(void)
{
        return kernel_variant(&levels_family, DTYPE_I8);
}
