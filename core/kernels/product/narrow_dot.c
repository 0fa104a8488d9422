// SPDX-License-Identifier: Apache-2.0
// narrow_dot.c: the tiles of narrow products for CPUs that multiply pairs of bfloat16 and quads of
// 8-bit integers in one instruction. Rows are rounded, too: to bfloat16, or to 255 steps between
// their least and their greatest number. vdpbf16ps counts numbers below 2^-126 as zero.
#include "core/kernels/product/narrow_tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include "core/kernels/conv/direct_avx512.h"
#undef DIRECT_TARGET
#define DIRECT_TARGET TARGET_512(ISA_AVX512_BF16_FEATURES)
#include "core/kernels/conv/direct_finish.inc"

#define UNROLL_ROWS    _Pragma("GCC unroll 6")
#define UNROLL_VECTORS _Pragma("GCC unroll 2")
typedef enum Dot { DOT_BYTES, DOT_BF16 } Dot;

NARROW_INLINE __m512i add_dot(const Dot dot, __m512i sum, __m512i row, __m512i panel)
{
        return dot == DOT_BYTES ? _mm512_dpbusd_epi32(sum, row, panel)
                                : (__m512i)_mm512_dpbf16_ps((__m512)sum, (__m512bh)row, (__m512bh)panel);
}

// sum[i][v] += the terms of row i times those of the columns of vector v, over all steps. The
// second barrier keeps each sum in one register.
NARROW_INLINE void add_steps(const Dot dot, const int n_rows, const int n_vectors, const NarrowTile *tile,
                             __m512i (*sum)[DIRECT_VECTORS])
{
        int64_t step = tile->in_step, three = 3 * step, five = 5 * step;
        __asm__("" : "+r"(step)); // as in direct_tile.inc
        __asm__("" : "+r"(three));
        __asm__("" : "+r"(five));
        const uint8_t *weights = tile->weights;
        for (uint32_t r = 0; r < tile->n_runs; r++) {
                const char *at = tile->in + tile->runs[r].offset * 4, *end = at + tile->runs[r].n * 4;
                for (; at < end; at += 4, weights += 4 * n_vectors * DIRECT_LANES) {
                        __m512i panel[DIRECT_VECTORS];
                        UNROLL_VECTORS
                        for (int v = 0; v < n_vectors; v++)
                                panel[v] = _mm512_loadu_si512(weights + v * 4 * DIRECT_LANES);
                        UNROLL_ROWS
                        for (int i = 0; i < n_rows; i++) {
                                int32_t terms;
                                memcpy(&terms, NARROW_ROW(i), sizeof(terms));
                                UNROLL_VECTORS
                                for (int v = 0; v < n_vectors; v++) {
                                        sum[i][v] =
                                                add_dot(dot, sum[i][v], _mm512_set1_epi32(terms), panel[v]);
                                        __asm__ volatile("" : "+v"(sum[i][v]));
                                }
                        }
                }
        }
}

NARROW_INLINE void avx512_int8_tile(const int n_rows, const int n_vectors, const NarrowTile *tile)
{
        __m512i sum[NARROW_MAX_ROWS][DIRECT_VECTORS];
        UNROLL_ROWS
        for (int i = 0; i < n_rows; i++) {
                UNROLL_VECTORS
                for (int v = 0; v < n_vectors; v++)
                        sum[i][v] = _mm512_setzero_si512();
        }
        add_steps(DOT_BYTES, n_rows, n_vectors, tile, sum);
        avx512_Vector scaled[NARROW_MAX_ROWS][DIRECT_VECTORS];
        UNROLL_VECTORS
        for (int v = 0; v < n_vectors; v++) {
                avx512_Vector scale = DIRECT_LOAD(tile->column_scale + v * DIRECT_LANES),
                              weight = DIRECT_LOAD(tile->column_weight + v * DIRECT_LANES),
                              bias = DIRECT_LOAD(tile->to.bias + v * DIRECT_LANES);
                UNROLL_ROWS
                for (int i = 0; i < n_rows; i++)
                        scaled[i][v] = DIRECT_FMAV(_mm512_cvtepi32_ps(sum[i][v]), tile->row_scale[i] * scale,
                                                   DIRECT_FMA(tile->row_offset[i], weight, bias));
        }
        avx512_finish(n_rows, n_vectors, &tile->to, scaled);
}

NARROW_INLINE void avx512_bf16_tile(const int n_rows, const int n_vectors, const NarrowTile *tile)
{
        __m512i sum[NARROW_MAX_ROWS][DIRECT_VECTORS];
        avx512_Vector sums[NARROW_MAX_ROWS][DIRECT_VECTORS];
        UNROLL_ROWS
        for (int i = 0; i < n_rows; i++) {
                UNROLL_VECTORS
                for (int v = 0; v < n_vectors; v++)
                        sum[i][v] = (__m512i)DIRECT_LOAD(tile->to.bias + v * DIRECT_LANES);
        }
        add_steps(DOT_BF16, n_rows, n_vectors, tile, sum);
        UNROLL_ROWS
        for (int i = 0; i < n_rows; i++) {
                UNROLL_VECTORS
                for (int v = 0; v < n_vectors; v++)
                        sums[i][v] = (avx512_Vector)sum[i][v];
        }
        avx512_finish(n_rows, n_vectors, &tile->to, sums);
}

// ---- rounding of rows ----
// Numbers in the order of floats, and back.
static int32_t ordered(int32_t bits)
{
        return bits ^ (bits >> 31 & 0x7fffffff);
}

static float from_ordered(int32_t key)
{
        float x;
        key = ordered(key);
        memcpy(&x, &key, sizeof(x));
        return x;
}

DIRECT_TARGET static NarrowRow round_to_8_bits(const float *from, int64_t n, int most, void *to)
{
        uint8_t *numbers = to;
        int32_t least = INT32_MAX, greatest = INT32_MIN, bits;
        for (int64_t k = 0; k < n; k++) {
                memcpy(&bits, from + k, sizeof(bits));
                int32_t key = bits ^ (bits >> 31 & 0x7fffffff);
                least = MIN(least, key);
                greatest = MAX(greatest, key);
        }
        float low = from_ordered(least), high = from_ordered(greatest);
        float shrink = high - low <= FLT_MAX ? 1.0f : 0.5f; // finite numbers may be further apart
        float range = high * shrink - low * shrink;         // NaN and infinity stay
        float steps = (float)most / range; // too many of them: the row is as good as constant
        bool finite = range <= FLT_MAX, counts = finite && steps <= FLT_MAX;
        steps = counts ? steps : 0.0f;
        for (int64_t k = 0; k < n; k++) {
                float whole = (from[k] * shrink - low * shrink) * steps + NARROW_WHOLE;
                memcpy(&bits, &whole, sizeof(bits));
                numbers[k] = (uint8_t)(bits - NARROW_WHOLE_BITS);
        }
        return (NarrowRow){ .scale = !finite  ? NAN
                                     : counts ? range / (float)most / shrink
                                              : 0.0f,
                            .offset = finite ? low : NAN };
}

DIRECT_TARGET static NarrowRow round_to_bf16(const float *from, int64_t n, int most, void *to)
{
        (void)most;
        uint16_t *numbers = to;
        for (int64_t k = 0; k < n; k += DIRECT_LANES) {
                __mmask16 there = (__mmask16)(n - k < DIRECT_LANES ? (1u << (n - k)) - 1 : 0xffff);
                __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(there, from + k));
                _mm256_mask_storeu_epi16(numbers + k, there, (__m256i)rounded);
        }
        return (NarrowRow){ 0 };
}

#include "core/kernels/product/narrow_loops.inc"
const NarrowIsa narrow_dot = {
        .lanes = DIRECT_LANES,
        .int8 = { "avx512_vnni", 4, 1, 255, 255, round_to_8_bits, avx512_int8_loops },
        .bf16 = { "avx512_bf16", 2, 2, 0, 0, round_to_bf16, avx512_bf16_loops },
};
#endif
