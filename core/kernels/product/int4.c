// SPDX-License-Identifier: Apache-2.0
// int4.c: the right side of the blocked product, unpacked into its panels.
#include "core/kernels/product/int4.h"
#include <string.h>
#include "core/kernels/product/matmul.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { UNIT = 8, LEVEL_ZERO = 8, LOW_BITS = 15, NIBBLE = 4 };

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
                        out[r] = (float)(level - LEVEL_ZERO) * weights->scales[at + r] +
                                 weights->zeros[at + r];
                }
        }
}
static const Int4Kernel plain_kernel = { int4_unpack_plain };

#if defined(__x86_64__)
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
                const __m256 scale = _mm256_loadu_ps(weights->scales + at),
                             zero = _mm256_loadu_ps(weights->zeros + at);
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
                        __m256 weight = _mm256_mul_ps(_mm256_cvtepi32_ps(level), scale);
                        _mm256_storeu_ps(out, _mm256_add_ps(weight, zero));
                }
        }
}
static const Int4Kernel avx2_kernel = { int4_unpack_avx2 };
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

Status int4_product(const RunContext *ctx, const Int4Weights *weights, int64_t m, const float *x, float *out)
{
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
