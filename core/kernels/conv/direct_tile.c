// SPDX-License-Identifier: Apache-2.0
// direct_tile.c: the tiles for AVX2 and AVX-512, as large as the registers allow.
#include "core/kernels/conv/direct_tile.h"

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
};
#undef DIRECT_LOOPS
#include "core/kernels/conv/direct_off.h"

#include "core/kernels/conv/direct_avx2.h"
#include "core/kernels/conv/direct_tile.inc"
DIRECT_LOOPS(1)
DIRECT_LOOPS(2)
DIRECT_LOOPS(3)
DIRECT_LOOPS(4)
DIRECT_LOOPS(5)
DIRECT_LOOPS(6)
static const DirectIsa avx2_isa = {
        .isa = ISA_AVX2,
        .lanes = 8,
        .max_pixels = 6,
        .of = { { avx2_one_1, avx2_one_2, avx2_one_3, avx2_one_4, avx2_one_5, avx2_one_6 },
                { avx2_two_1, avx2_two_2, avx2_two_3, avx2_two_4, avx2_two_5, avx2_two_6 } },
        .wide = { avx2_wide_1, avx2_wide_2 },
};
#undef DIRECT_LOOPS
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
