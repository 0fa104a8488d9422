// SPDX-License-Identifier: Apache-2.0
// direct_tile.c: the tiles for AVX2 and AVX-512, as large as the registers allow.
#include "core/kernels/conv/direct_tile.h"
#include "core/kernels/turn.h"

#if defined(__x86_64__)
#include "core/kernels/conv/direct_avx512.h"
#include "core/kernels/conv/direct_tile.inc"
DIRECT_LOOPS(1)
DIRECT_LOOPS(2)
DIRECT_LOOPS(3)
DIRECT_LOOPS(4)
DIRECT_LOOPS(5)
DIRECT_LOOPS(6)
DIRECT_LOOPS(7)
DIRECT_LOOPS(8)
DIRECT_LOOPS(9)
DIRECT_LOOPS(10)
DIRECT_LOOPS(11)
DIRECT_LOOPS(12)
DIRECT_LOOPS(13)
DIRECT_LOOPS(14)
DIRECT_DENSE_LOOPS(1)
DIRECT_DENSE_LOOPS(2)
DIRECT_DENSE_LOOPS(3)
DIRECT_DENSE_LOOPS(4)
DIRECT_DENSE_LOOPS(5)
DIRECT_DENSE_LOOPS(6)
DIRECT_DENSE_LOOPS(7)
DIRECT_DENSE_LOOPS(8)
DIRECT_DENSE_LOOPS(9)
DIRECT_DENSE_LOOPS(10)
DIRECT_DENSE_LOOPS(11)
DIRECT_DENSE_LOOPS(12)
DIRECT_DENSE_LOOPS(13)
DIRECT_DENSE_LOOPS(14)

DIRECT_TARGET static void avx512_dense_rows(const float *from, int64_t step, int n_rows, int64_t n_k,
                                            float *to)
{
        for (int64_t k = 0; k < n_k; k += DIRECT_LANES) {
                avx512_Vector row[DIRECT_LANES];
                int n = (int)MIN(n_k - k, (int64_t)DIRECT_LANES);
#pragma GCC unroll 16
                for (int i = 0; i < DIRECT_LANES; i++)
                        row[i] = DIRECT_LOAD_PART(from + MIN(i, n_rows - 1) * step + k, n);
                TURN_16(row);
                for (int c = 0; c < n; c++)
                        DIRECT_STORE_PART(to + (k + c) * n_rows, n_rows, row[c]);
        }
}
static const DirectIsa avx512_isa = {
        .isa = ISA_AVX512,
        .lanes = 16,
        .max_pixels = 14,
        .of = { { avx512_one_1, avx512_one_2, avx512_one_3, avx512_one_4, avx512_one_5, avx512_one_6,
                  avx512_one_7, avx512_one_8, avx512_one_9, avx512_one_10, avx512_one_11, avx512_one_12,
                  avx512_one_13, avx512_one_14 },
                { avx512_two_1, avx512_two_2, avx512_two_3, avx512_two_4, avx512_two_5, avx512_two_6,
                  avx512_two_7, avx512_two_8, avx512_two_9, avx512_two_10, avx512_two_11, avx512_two_12,
                  avx512_two_13, avx512_two_14 } },
        .wide = { avx512_wide_1, avx512_wide_2 },
        .dense_rows = avx512_dense_rows,
        .dense = { { avx512_dense_one_1, avx512_dense_one_2, avx512_dense_one_3, avx512_dense_one_4,
                     avx512_dense_one_5, avx512_dense_one_6, avx512_dense_one_7, avx512_dense_one_8,
                     avx512_dense_one_9, avx512_dense_one_10, avx512_dense_one_11, avx512_dense_one_12,
                     avx512_dense_one_13, avx512_dense_one_14 },
                   { avx512_dense_two_1, avx512_dense_two_2, avx512_dense_two_3, avx512_dense_two_4,
                     avx512_dense_two_5, avx512_dense_two_6, avx512_dense_two_7, avx512_dense_two_8,
                     avx512_dense_two_9, avx512_dense_two_10, avx512_dense_two_11, avx512_dense_two_12,
                     avx512_dense_two_13, avx512_dense_two_14 } },
};
#undef DIRECT_LOOPS
#undef DIRECT_DENSE_LOOPS
#include "core/kernels/conv/direct_off.h"

#include "core/kernels/conv/direct_avx2.h"
#include "core/kernels/conv/direct_tile.inc"
DIRECT_LOOPS(1)
DIRECT_LOOPS(2)
DIRECT_LOOPS(3)
DIRECT_LOOPS(4)
DIRECT_LOOPS(5)
DIRECT_LOOPS(6)
DIRECT_DENSE_LOOPS(1)
DIRECT_DENSE_LOOPS(2)
DIRECT_DENSE_LOOPS(3)
DIRECT_DENSE_LOOPS(4)
DIRECT_DENSE_LOOPS(5)
DIRECT_DENSE_LOOPS(6)

// Lanes behind a step's rows are the next step's, which is written later.
DIRECT_TARGET static void avx2_dense_rows(const float *from, int64_t step, int n_rows, int64_t n_k, float *to)
{
        for (int64_t k = 0; k < n_k; k += DIRECT_LANES) {
                avx2_Vector row[DIRECT_LANES];
                int n = (int)MIN(n_k - k, (int64_t)DIRECT_LANES);
#pragma GCC unroll 8
                for (int i = 0; i < DIRECT_LANES; i++) {
                        const float *at = from + MIN(i, n_rows - 1) * step + k;
                        row[i] = n == DIRECT_LANES ? DIRECT_LOAD(at) : DIRECT_LOAD_PART(at, n);
                }
                TURN_8(row);
                for (int c = 0; c < n; c++) {
                        float *out = to + (k + c) * n_rows;
                        if ((n_k - k - c) * n_rows >= DIRECT_LANES)
                                DIRECT_STORE(out, row[c]);
                        else
                                DIRECT_STORE_PART(out, n_rows, row[c]);
                }
        }
}
static const DirectIsa avx2_isa = {
        .isa = ISA_AVX2,
        .lanes = 8,
        .max_pixels = 6,
        .of = { { avx2_one_1, avx2_one_2, avx2_one_3, avx2_one_4, avx2_one_5, avx2_one_6 },
                { avx2_two_1, avx2_two_2, avx2_two_3, avx2_two_4, avx2_two_5, avx2_two_6 } },
        .wide = { avx2_wide_1, avx2_wide_2 },
        .dense_rows = avx2_dense_rows,
        .dense_from = 512, // below, a panel stays in the first-level cache
        .dense = { { avx2_dense_one_1, avx2_dense_one_2, avx2_dense_one_3, avx2_dense_one_4, avx2_dense_one_5,
                     avx2_dense_one_6 },
                   { avx2_dense_two_1, avx2_dense_two_2, avx2_dense_two_3, avx2_dense_two_4, avx2_dense_two_5,
                     avx2_dense_two_6 } },
};
#undef DIRECT_LOOPS
#undef DIRECT_DENSE_LOOPS
#include "core/kernels/conv/direct_off.h"

static const KernelVariant direct_variants[] = {
        { DTYPE_F32, ISA_AVX2, &avx2_isa },
        { DTYPE_F32, ISA_AVX512, &avx512_isa },
};
const KernelFamily direct_family = { "direct", ARRAY_LENGTH(direct_variants), direct_variants };
#else
const KernelFamily direct_family = { .name = "direct" };
#endif

const DirectIsa *direct_isa(void)
{
        return kernel_variant(&direct_family, DTYPE_F32);
}
