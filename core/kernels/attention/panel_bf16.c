// SPDX-License-Identifier: Apache-2.0
// panel_bf16.c: attention over a panel of queries in bfloat16, for CPUs that multiply pairs of it.
// Queries, keys, values and weights are rounded to bfloat16; sums, maxima, the mask and exp are
// float32. A sum takes two terms per step: a pair is two neighbours along the sum in one lane of 32
// bits. vdpbf16ps counts numbers below 2^-126 as zero.
#include "core/kernels/attention/panel.h"
#include <math.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/kernels/pointwise/vector_math.inc"

#if defined(__x86_64__)
#include <immintrin.h>
#define BF16_TARGET TARGET_512(ISA_AVX512_BF16_FEATURES)
#define BF16_INLINE BF16_TARGET static inline __attribute__((always_inline))

enum { LANES = 16, VECTORS = 4, QUERIES = VECTORS * LANES, MOST_KEYS = 12 };
#define LOG2_E 1.44269504088896341F

// Lane i: the numbers i of both, `first` in the low half.
BF16_INLINE __m512i pairs_of(__m512 first, __m512 second)
{
        static const _Alignas(64)
                uint16_t order[] = { 0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 };
        return _mm512_permutexvar_epi16(_mm512_load_si512(order),
                                        (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

// ---- packing ----
// In place: rows of a panel become rows of pairs.
BF16_TARGET static void pair_panel(float *panel, int64_t n)
{
        for (int64_t i = 0; i < n; i += 2, panel += 2 * QUERIES) {
                float *to = panel - i * QUERIES;
                for (int v = 0; v < QUERIES; v += LANES) {
                        __m512 second =
                                i + 1 < n ? _mm512_loadu_ps(panel + QUERIES + v) : _mm512_setzero_ps();
                        _mm512_storeu_si512(to + i / 2 * QUERIES + v,
                                            pairs_of(_mm512_loadu_ps(panel + v), second));
                }
        }
}

BF16_TARGET static void pack_keys(const PanelRows *from, int64_t n, int64_t e, uint32_t *to)
{
        int64_t half = (e + 1) / 2;
        for (int64_t j = 0; j < n; j++, to += half) {
                const float *row = (const float *)from->data + j * from->row;
                uint16_t *numbers = (uint16_t *)to;
                numbers[2 * half - 1] = 0;
                for (int64_t i = 0; i < e; i += LANES) {
                        __mmask16 there = (__mmask16)(e - i < LANES ? (1U << (e - i)) - 1 : 0xffff);
                        __m512 some;
                        if (from->col == 1) {
                                some = _mm512_maskz_loadu_ps(there, row + i);
                        } else {
                                float line[LANES] = { 0 };
                                for (int64_t k = 0; k < MIN(e - i, (int64_t)LANES); k++)
                                        line[k] = row[(i + k) * from->col];
                                some = _mm512_loadu_ps(line);
                        }
                        _mm256_mask_storeu_epi16(numbers + i, there, (__m256i)_mm512_cvtneps_pbh(some));
                }
        }
}

BF16_TARGET static void pack_values(const PanelRows *from, int64_t n, int64_t ev, uint32_t *to)
{
        for (int64_t j = 0; j < n; j += 2, to += ev) {
                for (int64_t c = 0; c < ev; c += LANES) {
                        int64_t width = MIN(ev - c, (int64_t)LANES);
                        __mmask16 there = (__mmask16)(width < LANES ? (1U << width) - 1 : 0xffff);
                        __m512 row[2];
                        for (int half = 0; half < 2; half++) {
                                const float *at =
                                        (const float *)from->data + (j + half) * from->row + c * from->col;
                                __mmask16 some = j + half < n ? there : 0;
                                float line[LANES] = { 0 };
                                for (int64_t k = 0; from->col != 1 && some != 0 && k < width; k++)
                                        line[k] = at[k * from->col];
                                row[half] = from->col == 1 ? _mm512_maskz_loadu_ps(some, at)
                                                           : _mm512_loadu_ps(line);
                        }
                        _mm512_mask_storeu_epi32(to + c, there, pairs_of(row[0], row[1]));
                }
        }
}

// ---- products ----
// sum[i][v] = over n pairs: left of row i times vector v of `right`, whose rows are panels.
BF16_INLINE void multiply(const int n_rows, const int n_vectors, const PanelRows *left, int64_t n,
                          const float *right, __m512 (*sum)[VECTORS])
{
        const int32_t *row[MOST_KEYS];
#pragma GCC unroll 16
        for (int i = 0; i < n_rows; i++) {
                row[i] = (const int32_t *)left->data + i * left->row;
#pragma GCC unroll 4
                for (int v = 0; v < n_vectors; v++)
                        sum[i][v] = _mm512_setzero_ps();
        }
        int64_t at = 0;
        for (int64_t k = 0; k < n; k++, at += left->col, right += QUERIES) {
                __m512i column[VECTORS];
#pragma GCC unroll 4
                for (int v = 0; v < n_vectors; v++)
                        column[v] = _mm512_loadu_si512(right + v * LANES);
#pragma GCC unroll 16
                for (int i = 0; i < n_rows; i++) {
                        __m512i pair = _mm512_set1_epi32(row[i][at]);
#pragma GCC unroll 4
                        for (int v = 0; v < n_vectors; v++)
                                sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)pair, (__m512bh)column[v]);
                }
        }
}

// Score j of vector v as softmax takes it.
BF16_INLINE __m512 final_score(const PanelKeys *keys, int64_t j, int v, __m512 product)
{
        __m512 score = _mm512_mul_ps(product, _mm512_set1_ps(keys->scale));
        if (keys->mask != NULL)
                score = _mm512_add_ps(score, keys->mask_is_row
                                                     ? _mm512_set1_ps(keys->mask[j])
                                                     : _mm512_loadu_ps(keys->mask + j * QUERIES + v * LANES));
        int64_t hidden = keys->after == INT64_MIN ? 0 : j + keys->after - v * LANES; // first lanes
        if (hidden > 0) {
                __mmask16 later = (__mmask16)(hidden < LANES ? (1U << hidden) - 1 : 0xffff);
                score = _mm512_mask_blend_ps(later, score, _mm512_set1_ps(-INFINITY));
        }
        return score;
}

// Scores of n_rows keys from j on. `max`: of all scores so far.
BF16_INLINE void score_tile(const int n_rows, const int n_vectors, const PanelKeys *keys, int64_t j,
                            __m512 *max)
{
        __m512 sum[MOST_KEYS][VECTORS];
        PanelRows rows = { (const int32_t *)keys->k.data + j * keys->k.row, keys->k.row, keys->k.col };
        multiply(n_rows, n_vectors, &rows, (keys->e + 1) / 2, keys->queries, sum);
#pragma GCC unroll 16
        for (int i = 0; i < n_rows; i++)
#pragma GCC unroll 4
                for (int v = 0; v < n_vectors; v++) {
                        __m512 score = final_score(keys, j + i, v, sum[i][v]);
                        _mm512_storeu_ps(keys->scores + (j + i) * QUERIES + v * LANES, score);
                        max[v] = _mm512_max_ps(score, max[v]);
                }
}

// out[c] = out[c] * factor + weights times number c of the values, for n_rows c.
BF16_INLINE void value_tile(const int n_rows, const int n_vectors, const PanelKeys *keys, int64_t c,
                            const __m512 *factor)
{
        __m512 sum[MOST_KEYS][VECTORS];
        PanelRows rows = { (const int32_t *)keys->v.data + c * keys->v.col, keys->v.col, keys->v.row };
        multiply(n_rows, n_vectors, &rows, (keys->n_keys + 1) / 2, keys->scores, sum);
#pragma GCC unroll 16
        for (int i = 0; i < n_rows; i++)
#pragma GCC unroll 4
                for (int v = 0; v < n_vectors; v++) {
                        float *out = keys->out + (c + i) * QUERIES + v * LANES;
                        _mm512_storeu_ps(out, _mm512_fmadd_ps(_mm512_loadu_ps(out), factor[v], sum[i][v]));
                }
}

// Whole tiles of n_rows, then smaller ones. A row's result does not depend on its tile.
#define TILES(tile_of, n_rows, n_vectors, total, more)                                                       \
        do {                                                                                                 \
                int64_t done = 0;                                                                            \
                for (; done + (n_rows) <= (total); done += (n_rows))                                         \
                        tile_of(n_rows, n_vectors, keys, done, more);                                        \
                for (; done + 4 <= (total); done += 4)                                                       \
                        tile_of(4, n_vectors, keys, done, more);                                             \
                for (; done + 2 <= (total); done += 2)                                                       \
                        tile_of(2, n_vectors, keys, done, more);                                             \
                for (; done < (total); done++)                                                               \
                        tile_of(1, n_vectors, keys, done, more);                                             \
        } while (0)

// ---- softmax ----
// exp(score - max); relative error 2.7e-6, a thousandth of what rounding to bfloat16 costs. The
// difference comes first: masks hold the least float32, which log2(e) would make infinite.
BF16_INLINE __m512 weight_of(__m512 score, __m512 max)
{
        __m512 x = _mm512_mul_ps(_mm512_sub_ps(score, max), _mm512_set1_ps(LOG2_E));
        __m512 f = _mm512_reduce_ps(x, 9); // x - floor(x)
        __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(EXP2_P4), f, _mm512_set1_ps(EXP2_P3));
        p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_P2));
        p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_P1));
        p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(EXP2_P0));
        return _mm512_scalef_ps(p, x); // p 2^floor(x)
}

// Pairs of scores become pairs of exp(score - max), in place; factor is what earlier results are
// multiplied by. `max`: of all scores so far, of those before in keys->max.
BF16_INLINE void weigh(const int n_vectors, const PanelKeys *keys, const __m512 *max, __m512 *factor)
{
        __m512 base[VECTORS], sum[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < n_vectors; v++) {
                float *before = keys->max + v * LANES;
                // Where no key is allowed, scores are -inf or NaN: the weight is 0 or NaN.
                __mmask16 some = _mm512_cmp_ps_mask(max[v], _mm512_set1_ps(-INFINITY), _CMP_GT_OQ);
                base[v] = _mm512_maskz_mov_ps(some, max[v]);
                factor[v] = weight_of(_mm512_loadu_ps(before), base[v]);
                sum[v] = _mm512_setzero_ps();
                _mm512_storeu_ps(before, max[v]);
        }
        for (int64_t j = 0; j < keys->n_keys; j += 2) {
                const float *from = keys->scores + j * QUERIES;
                float *to = keys->scores + j / 2 * QUERIES;
                bool is_pair = j + 1 < keys->n_keys;
#pragma GCC unroll 4
                for (int v = 0; v < n_vectors; v++) {
                        __m512 first = weight_of(_mm512_loadu_ps(from + v * LANES), base[v]),
                               second = _mm512_setzero_ps();
                        if (is_pair)
                                second = weight_of(_mm512_loadu_ps(from + QUERIES + v * LANES), base[v]);
                        sum[v] = _mm512_add_ps(sum[v], _mm512_add_ps(first, second));
                        _mm512_storeu_si512(to + v * LANES, pairs_of(first, second));
                }
        }
#pragma GCC unroll 4
        for (int v = 0; v < n_vectors; v++) {
                float *total = keys->sum + v * LANES;
                _mm512_storeu_ps(total, _mm512_fmadd_ps(_mm512_loadu_ps(total), factor[v], sum[v]));
        }
}

BF16_INLINE void attend_vectors(const int n_rows, const int n_vectors, const PanelKeys *keys)
{
        __m512 factor[VECTORS], max[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < n_vectors; v++)
                max[v] = _mm512_loadu_ps(keys->max + v * LANES);
        TILES(score_tile, n_rows, n_vectors, keys->n_keys, max);
        weigh(n_vectors, keys, max, factor);
        TILES(value_tile, n_rows, n_vectors, keys->ev, factor);
}

BF16_TARGET static void attend(const PanelKeys *keys)
{
        int n_vectors = (keys->n_queries + LANES - 1) / LANES;
        if (n_vectors == 4)
                attend_vectors(6, 4, keys);
        else if (n_vectors == 3)
                attend_vectors(8, 3, keys);
        else if (n_vectors == 2)
                attend_vectors(MOST_KEYS, 2, keys);
        else
                attend_vectors(MOST_KEYS, 1, keys);
}

static const AttentionPairs bf16_pairs = { QUERIES, pair_panel, pack_keys, pack_values, attend };
static const KernelVariant pair_variants[] = { { DTYPE_F32, ISA_AVX512_BF16, &bf16_pairs } };
const KernelFamily attention_pairs_family = { "attention_pairs", ARRAY_LENGTH(pair_variants), pair_variants };
#else
const KernelFamily attention_pairs_family = { .name = "attention_pairs" };
#endif
