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
// One source for both kinds of tiles: those of integers are compiled for BF16, too, but nothing in
// them can become its instructions, which take bfloat16 only. They run where there is just VNNI.
#define DIRECT_TARGET TARGET_512(ISA_AVX512_BF16_FEATURES)
#include "core/kernels/conv/direct_finish.inc"

#define NARROW_TILE_ROWS 14
#define UNROLL_ROWS      _Pragma("GCC unroll 14")
#define UNROLL_VECTORS   _Pragma("GCC unroll 2")
#define UNROLL_PANELS    _Pragma("GCC unroll 4")
typedef enum Dot { DOT_BYTES, DOT_BF16 } Dot;

NARROW_INLINE __m512i add_dot(const Dot dot, __m512i sum, __m512i row, __m512i panel)
{
        return dot == DOT_BYTES ? _mm512_dpbusd_epi32(sum, row, panel)
                                : (__m512i)_mm512_dpbf16_ps((__m512)sum, (__m512bh)row, (__m512bh)panel);
}

// A residual is far away in memory, and so are the results then.
NARROW_INLINE void prefetch_residual(const int n_rows, const int n_vectors, const DirectTile *to)
{
        if (to->residual == NULL)
                return;
        UNROLL_ROWS
        for (int i = 0; i < n_rows; i++) {
                UNROLL_VECTORS
                for (int v = 0; v < n_vectors; v++) {
                        __builtin_prefetch(to->residual + i * to->out_step + v * DIRECT_LANES, 0);
                        __builtin_prefetch(to->out + i * to->out_step + v * DIRECT_LANES, 1);
                }
        }
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
        const uint8_t *weights = tile->weights, *ahead = tile->ahead;
        int64_t ahead_step = tile->ahead_step;
        for (uint32_t r = 0; r < tile->n_runs; r++) {
                const char *at = tile->in + tile->runs[r].offset * 4, *far = at + 7 * step,
                           *end = at + tile->runs[r].n * 4;
                __asm__("" : "+r"(far));
                for (; at < end; at += 4, far += 4, weights += 4 * n_vectors * DIRECT_LANES) {
                        __m512i panel[DIRECT_VECTORS];
                        __builtin_prefetch(ahead, 0, 2);
                        ahead += ahead_step;
                        UNROLL_VECTORS
                        for (int v = 0; v < n_vectors; v++)
                                panel[v] = _mm512_loadu_si512(weights + v * 4 * DIRECT_LANES);
                        UNROLL_ROWS
                        for (int i = 0; i < n_rows; i++) {
                                int32_t terms;
                                memcpy(&terms, i < 7 ? NARROW_ROW(at, i) : NARROW_ROW(far, i - 7),
                                       sizeof(terms));
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

// sum[p][v] of one row and several panels: a single panel would wait for each product before the
// next one.
NARROW_INLINE void add_wide_steps(const Dot dot, const NarrowTile *tile, __m512i (*sum)[DIRECT_VECTORS])
{
        int64_t step = tile->panel_step;
        const char *at = tile->in + tile->runs->offset * 4, *end = at + tile->runs->n * 4;
        for (const uint8_t *weights = tile->weights; at < end;
             at += 4, weights += 4 * DIRECT_VECTORS * DIRECT_LANES) {
                int32_t terms;
                memcpy(&terms, at, sizeof(terms));
                UNROLL_PANELS
                for (int p = 0; p < NARROW_WIDE_PANELS; p++) {
                        UNROLL_VECTORS
                        for (int v = 0; v < DIRECT_VECTORS; v++)
                                sum[p][v] = add_dot(
                                        dot, sum[p][v], _mm512_set1_epi32(terms),
                                        _mm512_loadu_si512(weights + p * step + v * 4 * DIRECT_LANES));
                }
        }
}

// The results of the panels lie side by side: they are stored as rows that do.
DIRECT_TARGET static void int8_wide(const NarrowTile *tile)
{
        __m512i sum[NARROW_WIDE_PANELS][DIRECT_VECTORS] = { 0 };
        avx512_Vector scaled[NARROW_WIDE_PANELS][DIRECT_VECTORS];
        DirectTile to = tile->to;
        add_wide_steps(DOT_BYTES, tile, sum);
        UNROLL_PANELS
        for (int p = 0; p < NARROW_WIDE_PANELS; p++) {
                UNROLL_VECTORS
                for (int v = 0; v < DIRECT_VECTORS; v++) {
                        int at = (p * DIRECT_VECTORS + v) * DIRECT_LANES;
                        avx512_Vector scale = DIRECT_LOAD(tile->column_scale + at),
                                      weight = DIRECT_LOAD(tile->column_weight + at),
                                      bias = DIRECT_LOAD(to.bias + at);
                        scaled[p][v] = DIRECT_FMAV(_mm512_cvtepi32_ps(sum[p][v]), tile->row_scale[0] * scale,
                                                   DIRECT_FMA(tile->row_offset[0], weight, bias));
                }
        }
        to.out_step = DIRECT_VECTORS * DIRECT_LANES;
        avx512_finish(NARROW_WIDE_PANELS, DIRECT_VECTORS, &to, scaled);
}

DIRECT_TARGET static void bf16_wide(const NarrowTile *tile)
{
        __m512i sum[NARROW_WIDE_PANELS][DIRECT_VECTORS];
        avx512_Vector sums[NARROW_WIDE_PANELS][DIRECT_VECTORS];
        DirectTile to = tile->to;
        UNROLL_PANELS
        for (int p = 0; p < NARROW_WIDE_PANELS; p++) {
                UNROLL_VECTORS
                for (int v = 0; v < DIRECT_VECTORS; v++)
                        sum[p][v] = (__m512i)DIRECT_LOAD(to.bias + (p * DIRECT_VECTORS + v) * DIRECT_LANES);
        }
        add_wide_steps(DOT_BF16, tile, sum);
        UNROLL_PANELS
        for (int p = 0; p < NARROW_WIDE_PANELS; p++) {
                UNROLL_VECTORS
                for (int v = 0; v < DIRECT_VECTORS; v++)
                        sums[p][v] = (avx512_Vector)sum[p][v];
        }
        to.out_step = DIRECT_VECTORS * DIRECT_LANES;
        avx512_finish(NARROW_WIDE_PANELS, DIRECT_VECTORS, &to, sums);
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
        prefetch_residual(n_rows, n_vectors, &tile->to);
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
        prefetch_residual(n_rows, n_vectors, &tile->to);
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
enum { AT_ONCE = 4 }; // vectors

typedef struct Range {
        __m512 low, high, sum; // `sum` of zero times every number: NaN where one is not finite
} Range;

static inline __mmask16 lanes_of(int64_t n)
{
        return (__mmask16)(n < DIRECT_LANES ? (1u << n) - 1 : 0xffff);
}

NARROW_INLINE void widen(Range *range, __m512 x)
{
        range->low = _mm512_min_ps(range->low, x);
        range->high = _mm512_max_ps(range->high, x);
        range->sum = _mm512_fmadd_ps(x, _mm512_setzero_ps(), range->sum);
}

NARROW_INLINE Range joined(Range a, Range b)
{
        return (Range){ _mm512_min_ps(a.low, b.low), _mm512_max_ps(a.high, b.high), a.sum + b.sum };
}

NARROW_INLINE Range range_of(const float *from, int64_t n, float low, float high)
{
        Range nothing = { _mm512_set1_ps(low), _mm512_set1_ps(high), _mm512_setzero_ps() };
        Range ranges[AT_ONCE] = { nothing, nothing, nothing, nothing }, *range = &ranges[0];
        int64_t k = 0;
        for (; k + AT_ONCE * DIRECT_LANES <= n; k += AT_ONCE * DIRECT_LANES) {
                widen(&ranges[0], _mm512_loadu_ps(from + k));
                widen(&ranges[1], _mm512_loadu_ps(from + k + DIRECT_LANES));
                widen(&ranges[2], _mm512_loadu_ps(from + k + 2 * DIRECT_LANES));
                widen(&ranges[3], _mm512_loadu_ps(from + k + 3 * DIRECT_LANES));
        }
        for (; k < n; k += DIRECT_LANES) {
                __mmask16 there = lanes_of(n - k);
                __m512 x = _mm512_maskz_loadu_ps(there, from + k);
                range->low = _mm512_mask_min_ps(range->low, there, range->low, x);
                range->high = _mm512_mask_max_ps(range->high, there, range->high, x);
                range->sum = _mm512_fmadd_ps(x, _mm512_setzero_ps(), range->sum);
        }
        return joined(joined(ranges[0], ranges[1]), joined(ranges[2], ranges[3]));
}

// Both ends at once: the greatest number is the least of the negative ones.
NARROW_INLINE void find_ends(const Range *range, float ends[2])
{
        __m512 low = _mm512_min_ps(range->low, _mm512_shuffle_f32x4(range->low, range->low, 0x4e)),
               high = _mm512_max_ps(range->high, _mm512_shuffle_f32x4(range->high, range->high, 0x4e));
        __m512 both = _mm512_mask_blend_ps(0xff00, low, -high);
        both = _mm512_min_ps(both, _mm512_shuffle_f32x4(both, both, 0xb1));
        both = _mm512_min_ps(both, _mm512_permute_ps(both, 0x4e));
        both = _mm512_min_ps(both, _mm512_permute_ps(both, 0xb1));
        float nothing = _mm512_cmp_ps_mask(range->sum, range->sum, _CMP_UNORD_Q) != 0 ? NAN : 0.0f;
        ends[0] = _mm512_cvtss_f32(both) + nothing;
        ends[1] = nothing - _mm_cvtss_f32(_mm512_extractf32x4_ps(both, 2));
}

DIRECT_TARGET static void range_of_bytes(const float *from, int64_t n, float range[2])
{
        Range found = range_of(from, n, range[0], range[1]);
        find_ends(&found, range);
}

// to[k] = (from[k] * shrink - low) * steps + zero, which fits a byte but for what rounding adds.
typedef struct Steps {
        float shrink, low, steps;
        int zero;
} Steps;

NARROW_INLINE __m512i placed(const bool shrinks, __m512 x, const Steps *by)
{
        __m512 small = shrinks ? _mm512_mul_ps(x, _mm512_set1_ps(by->shrink)) : x;
        __m512i whole = _mm512_cvtps_epi32((small - by->low) * by->steps);
        return _mm512_add_epi32(whole, _mm512_set1_epi32(by->zero));
}

NARROW_INLINE void place(const bool shrinks, const float *from, int64_t n, const Steps *by, uint8_t *to)
{
        // where the fours of each vector lie in each lane of 128 bits
        const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        int64_t k = 0;
        for (; k + AT_ONCE * DIRECT_LANES <= n; k += AT_ONCE * DIRECT_LANES) {
                __m512i a = placed(shrinks, _mm512_loadu_ps(from + k), by),
                        b = placed(shrinks, _mm512_loadu_ps(from + k + DIRECT_LANES), by),
                        c = placed(shrinks, _mm512_loadu_ps(from + k + 2 * DIRECT_LANES), by),
                        d = placed(shrinks, _mm512_loadu_ps(from + k + 3 * DIRECT_LANES), by);
                __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
                _mm512_storeu_si512(to + k, _mm512_permutexvar_epi32(order, bytes));
        }
        for (; k < n; k += DIRECT_LANES) {
                __mmask16 there = lanes_of(n - k);
                __m512i whole = placed(shrinks, _mm512_maskz_loadu_ps(there, from + k), by);
                whole = _mm512_max_epi32(whole, _mm512_setzero_si512());
                _mm512_mask_cvtusepi32_storeu_epi8(to + k, there, whole);
        }
}

DIRECT_TARGET static void place_bytes(const float *from, int64_t n, float steps, int zero, uint8_t *to)
{
        place(false, from, n, &(Steps){ .steps = steps, .zero = zero }, to);
}

DIRECT_TARGET static NarrowRow round_to_8_bits(const float *from, int64_t n, int most, void *to)
{
        float ends[2] = { INFINITY, -INFINITY };
        range_of_bytes(from, n, ends);
        float low = ends[0], high = ends[1];
        float shrink = high - low <= FLT_MAX ? 1.0f : 0.5f; // finite numbers may be further apart
        float range = high * shrink - low * shrink;         // NaN stays
        float steps = (float)most / range; // too many of them: the row is as good as constant
        bool finite = range <= FLT_MAX, counts = finite && steps <= FLT_MAX;
        Steps by = { shrink, low * shrink, counts ? steps : 0.0f, 0 };
        if (shrink < 1.0f)
                place(true, from, n, &by, to);
        else
                place(false, from, n, &by, to);
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
                __mmask16 there = lanes_of(n - k);
                __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(there, from + k));
                _mm256_mask_storeu_epi16(numbers + k, there, (__m256i)rounded);
        }
        return (NarrowRow){ 0 };
}

#include "core/kernels/product/narrow_loops.inc"
const NarrowKind narrow_dot_int8 = { .name = "avx512_vnni",
                                     .terms = 4,
                                     .weight_bytes = 1,
                                     .most_steps = 255,
                                     .least_steps = 255,
                                     .most_rows = NARROW_TILE_ROWS,
                                     .round = round_to_8_bits,
                                     .range = range_of_bytes,
                                     .place = place_bytes,
                                     .loops = avx512_int8_loops,
                                     .wide = int8_wide };
const NarrowKind narrow_dot_bf16 = { .name = "avx512_bf16",
                                     .terms = 2,
                                     .weight_bytes = 2,
                                     .most_rows = NARROW_TILE_ROWS,
                                     .round = round_to_bf16,
                                     .loops = avx512_bf16_loops,
                                     .wide = bf16_wide };
#endif
