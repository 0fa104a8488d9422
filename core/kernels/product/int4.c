// SPDX-License-Identifier: Apache-2.0
// int4.c: the right side of the blocked product, unpacked into its panels; and the same product of
// few rows, without panels, which takes the same sums.
#include "core/kernels/product/int4.h"
#include <string.h>
#include "core/kernels/product/matmul.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { UNIT = 8, LEVEL_ZERO = 8, LOW_BITS = 15, NIBBLE = 4, FEW_GRAIN = 500000 };

// Where the levels of eight rows stand: in a byte each, or two in a byte. `step` bytes from column
// to column.
typedef struct Unit {
        const uint8_t *bytes;
        int64_t step;
        int shift;
        bool pairs;
} Unit;

static Unit unit_at(const Int4Weights *weights, int64_t row, int64_t k)
{
        int64_t begin = row / weights->block * weights->block,
                rows = MIN(weights->block, weights->rows - begin), half = rows / 2, within = row - begin;
        bool pairs = !weights->halves || rows < weights->block, high = !pairs && within >= half;
        int64_t place = pairs ? within / 2 : high ? within - half : within;
        return (Unit){ weights->bytes + begin * (weights->columns / 2) + k * half + place, half,
                       high ? NIBBLE : 0, pairs };
}

static void int4_unpack_plain(const Int4Weights *weights, int64_t row, int64_t k, int64_t n_k, int64_t step,
                              float *out)
{
        Unit unit = unit_at(weights, row, k);
        for (int64_t end = k + n_k; k < end; k++, unit.bytes += unit.step, out += step) {
                int64_t at = k / weights->group * weights->rows + row;
                for (int r = 0; r < UNIT; r++) {
                        int byte = unit.bytes[unit.pairs ? r / 2 : r];
                        int level = byte >> (unit.pairs ? r % 2 * NIBBLE : unit.shift) & LOW_BITS;
                        const float *affine = weights->affine + 2 * (at + r);
                        out[r] = (float)(level - LEVEL_ZERO) * affine[0] + affine[1];
                }
        }
}
static const Int4Kernel plain_kernel = { int4_unpack_plain, NULL };

#if defined(__x86_64__)
typedef struct Affine {
        __m256 scale, zero;
} Affine;

// Of eight rows: `at` counts pairs.
TARGET_AVX2 static inline Affine affine_at(const Int4Weights *weights, int64_t at)
{
        const __m256 low = _mm256_loadu_ps(weights->affine + 2 * at),
                     high = _mm256_loadu_ps(weights->affine + 2 * at + UNIT);
        const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
        return (Affine){
                _mm256_permutevar8x32_ps(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)), order),
                _mm256_permutevar8x32_ps(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)), order)
        };
}

TARGET_AVX2 static inline __m256 weight_of(__m256i level, Affine affine)
{
        return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(level), affine.scale), affine.zero);
}

TARGET_AVX2 static void int4_unpack_avx2(const Int4Weights *weights, int64_t row, int64_t k, int64_t n_k,
                                         int64_t step, float *out)
{
        Unit unit = unit_at(weights, row, k);
        int odd = unit.pairs ? NIBBLE : unit.shift;
        const __m256i shift = _mm256_setr_epi32(unit.shift, odd, unit.shift, odd, unit.shift, odd, unit.shift,
                                                odd),
                      low_bits = _mm256_set1_epi32(LOW_BITS), level_zero = _mm256_set1_epi32(LEVEL_ZERO);
        for (int64_t end = k + n_k; k < end;) {
                int64_t group = k / weights->group, last = MIN(end, (group + 1) * weights->group),
                        at = group * weights->rows + row;
                const Affine affine = affine_at(weights, at);
                for (; k < last; k++, unit.bytes += unit.step, out += step) {
                        __m128i bytes;
                        if (unit.pairs) {
                                bytes = _mm_loadu_si32(unit.bytes);
                                bytes = _mm_unpacklo_epi8(bytes, bytes);
                        } else {
                                bytes = _mm_loadl_epi64((const __m128i *)(const void *)unit.bytes);
                        }
                        __m256i level = _mm256_srlv_epi32(_mm256_cvtepu8_epi32(bytes), shift);
                        level = _mm256_sub_epi32(_mm256_and_si256(level, low_bits), level_zero);
                        _mm256_storeu_ps(out, weight_of(level, affine));
                }
        }
}

// ---- few rows of x ----
// Sixteen rows of weights at a time stay in registers. In memory their levels take 16 bytes of a
// column, or 8 (`pairs`).
typedef struct Few {
        const Int4Weights *weights;
        const float *x;
        float *out;
        int64_t row;
} Few;
typedef struct Sixteen {
        const uint8_t *bytes;
        int64_t step;
        __m128i shift;
        Affine affine[2];
} Sixteen;
typedef __m256 Sums[2][INT4_MAX_ROWS][2]; // of sixteen rows of weights, by row of x, in two halves

TARGET_AVX2 static inline __m128i sixteen_levels(const Sixteen *from, int64_t k, const bool pairs)
{
        const void *at = from->bytes + k * from->step;
        __m128i bytes;
        if (pairs) {
                bytes = _mm_loadl_epi64(at);
                bytes = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, NIBBLE));
        } else {
                bytes = _mm_srl_epi16(_mm_loadu_si128(at), from->shift);
        }
        return _mm_sub_epi8(_mm_and_si128(bytes, _mm_set1_epi8(LOW_BITS)), _mm_set1_epi8(LEVEL_ZERO));
}

// Columns k to end - 1, which are of one group.
TARGET_AVX2 static inline __attribute__((always_inline)) void add_columns(const Few *few, const Sixteen *from,
                                                                          int64_t k, int64_t end,
                                                                          const int n_from, const int m,
                                                                          const bool pairs, Sums sums)
{
        for (; k < end; k++) {
#pragma GCC unroll 2
                for (int u = 0; u < n_from; u++) {
                        __m128i levels = sixteen_levels(&from[u], k, pairs);
                        __m256 low = weight_of(_mm256_cvtepi8_epi32(levels), from[u].affine[0]),
                               high = weight_of(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(levels, levels)),
                                                from[u].affine[1]);
#pragma GCC unroll 4
                        for (int i = 0; i < m; i++) {
                                __m256 x = _mm256_broadcast_ss(few->x + i * few->weights->columns + k);
                                sums[u][i][0] = _mm256_fmadd_ps(x, low, sums[u][i][0]);
                                sums[u][i][1] = _mm256_fmadd_ps(x, high, sums[u][i][1]);
                        }
                }
        }
}

// Columns k to end - 1, from zero.
TARGET_AVX2 static inline __attribute__((always_inline)) void block_sums(const Few *few, Sixteen *from,
                                                                         int64_t k, int64_t end,
                                                                         const int n_from, const int m,
                                                                         const bool pairs, Sums sums)
{
        const Int4Weights *weights = few->weights;
#pragma GCC unroll 2
        for (int u = 0; u < n_from; u++)
#pragma GCC unroll 4
                for (int i = 0; i < m; i++)
                        sums[u][i][0] = sums[u][i][1] = _mm256_setzero_ps();
        while (k < end) {
                int64_t group = k / weights->group, last = MIN(end, (group + 1) * weights->group);
#pragma GCC unroll 2
                for (int u = 0; u < n_from; u++) {
                        int64_t at = group * weights->rows + few->row + u * 2 * UNIT;
                        from[u].affine[0] = affine_at(weights, at);
                        from[u].affine[1] = affine_at(weights, at + UNIT);
                }
                add_columns(few, from, k, last, n_from, m, pairs, sums);
                k = last;
        }
}

TARGET_AVX2 static inline __attribute__((always_inline)) void few_rows(const Few *few, const int n_from,
                                                                       const int m, const bool pairs)
{
        const Int4Weights *weights = few->weights;
        Sixteen from[2];
        for (int u = 0; u < n_from; u++) {
                Unit unit = unit_at(weights, few->row + u * 2 * UNIT, 0);
                from[u] = (Sixteen){ .bytes = unit.bytes,
                                     .step = unit.step,
                                     .shift = _mm_cvtsi32_si128(unit.shift) };
        }
        for (int64_t k = 0; k < weights->columns; k += GEMM_K_BLOCK) {
                Sums sums;
                block_sums(few, from, k, MIN(k + GEMM_K_BLOCK, weights->columns), n_from, m, pairs, sums);
#pragma GCC unroll 2
                for (int u = 0; u < n_from; u++)
#pragma GCC unroll 4
                        for (int i = 0; i < m; i++)
#pragma GCC unroll 2
                                for (int half = 0; half < 2; half++) {
                                        float *to = few->out + i * weights->rows + few->row +
                                                    (2 * u + half) * UNIT;
                                        __m256 sum = sums[u][i][half];
                                        _mm256_storeu_ps(
                                                to, k == 0 ? sum : _mm256_add_ps(_mm256_loadu_ps(to), sum));
                                }
        }
}

TARGET_AVX2 static inline __attribute__((always_inline)) void sixteen_rows(const Few *few, int64_t m,
                                                                           const bool pairs)
{
        switch (m) {
        case 1:
                few_rows(few, 1, 1, pairs);
                break;
        case 2:
                few_rows(few, 1, 2, pairs);
                break;
        case 3:
                few_rows(few, 1, 3, pairs);
                break;
        default:
                few_rows(few, 1, INT4_MAX_ROWS, pairs);
        }
}

TARGET_AVX2 static void int4_product_avx2(const Int4Weights *weights, int64_t row, int64_t m, const float *x,
                                          float *out)
{
        const Few few = { weights, x, out, row }, second = { weights, x, out, row + 2 * UNIT };
        bool pairs = unit_at(weights, row, 0).pairs, whole = weights->rows - row >= INT4_STEP;
        if (m == 1 && whole && pairs) {
                few_rows(&few, 2, 1, true);
        } else if (m == 1 && whole) {
                few_rows(&few, 2, 1, false);
        } else if (pairs) {
                sixteen_rows(&few, m, true);
                if (whole)
                        sixteen_rows(&second, m, true);
        } else {
                sixteen_rows(&few, m, false);
                if (whole)
                        sixteen_rows(&second, m, false);
        }
}
static const Int4Kernel avx2_kernel = { int4_unpack_avx2, int4_product_avx2 };
#endif

static const KernelVariant int4_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &plain_kernel },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &avx2_kernel },
#endif
};
const KernelFamily int4_family = { "int4", ARRAY_LENGTH(int4_variants), int4_variants };

// Panels are whole units wide in every instruction set.
static void pack_weights(const void *context, const GemmBlock *block, int width, void *panels)
{
        const Int4Weights *weights = context;
        const Int4Kernel *kernel = kernel_variant(&int4_family, DTYPE_F32);
        float *out = panels;
        for (int64_t j = 0; j < block->n_j; j += width, out += block->n_k * width) {
                int64_t n = MIN(block->n_j - j, width);
                for (int64_t r = 0; r < n; r += UNIT)
                        kernel->unpack(weights, block->j + j + r, block->k, block->n_k, width, out + r);
                for (int64_t k = 0; k < block->n_k && n < width; k++)
                        memset(out + k * width + n, 0, (size_t)(width - n) * sizeof(float));
        }
}

typedef struct FewTask {
        const RunContext *ctx;
        const Int4Weights *weights;
        const float *x;
        float *out;
        int64_t m;
} FewTask;

static void few_pieces(void *argument, int64_t begin, int64_t end)
{
        const FewTask *task = argument;
        const Int4Kernel *kernel = kernel_variant(&int4_family, DTYPE_F32);
        Work work = { .ctx = task->ctx };
        for (int64_t i = begin; i < end && !work_stops(&work, task->weights->columns * INT4_STEP / 2); i++)
                kernel->product(task->weights, i * INT4_STEP, task->m, task->x, task->out);
}

static Status few_product(FewTask *task)
{
        const Int4Weights *weights = task->weights;
        int64_t n = (weights->rows + INT4_STEP - 1) / INT4_STEP,
                grain = MAX((int64_t)1, FEW_GRAIN / MAX(weights->columns * INT4_STEP, (int64_t)1));
        TRY(parallel_for(task->ctx, n, grain, few_pieces, task));
        return run_poll(task->ctx);
}

Status int4_product(const RunContext *ctx, const Int4Weights *weights, int64_t m, const float *x, float *out)
{
        const Int4Kernel *kernel = kernel_variant(&int4_family, DTYPE_F32);
        if (kernel->product != NULL && m > 0 && m <= INT4_MAX_ROWS && weights->columns > 0)
                return few_product(&(FewTask){ ctx, weights, x, out, m });
        Gemm task = { .dtype = DTYPE_F32,
                      .m = m,
                      .n = weights->rows,
                      .k = weights->columns,
                      .a = { (void *)(uintptr_t)x, weights->columns, 1, { 0 } },
                      .c = { out, weights->rows, 1, { 0 } },
                      .alpha = 1,
                      .pack_b = pack_weights,
                      .pack_context = weights };
        return gemm(ctx, &task);
}
