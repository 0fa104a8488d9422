// SPDX-License-Identifier: Apache-2.0
// winograd_tile.c: F(4x4, 3x3) and F(2x2, 3x3) of Lavin and Gray (arXiv 1509.09308) for each
// instruction set.
#include "core/kernels/conv/winograd_tile.h"
#include "core/kernels/conv/winograd.h"

// The points of the interpolation for step 4 are 0, +-5/8, +-3/2 and infinity. A1 and B1 are the
// two magnitudes, A2 and B2 their squares. Errors are about half of those with 0, +-1, +-2.
#define A1 0.625f
#define A2 0.390625f
#define B1 1.5f
#define B2 2.25f

// No variant uses fused multiply-add, so all variants give the same bits.
#define WINOGRAD_TARGET
#define WINOGRAD_LANES 8
#define WINOGRAD(x)    plain4_##x
#define WINOGRAD_STEP  4
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#define WINOGRAD(x)   plain2_##x
#define WINOGRAD_STEP 2
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#undef WINOGRAD_LANES
#undef WINOGRAD_TARGET
#if defined(__x86_64__)
#define WINOGRAD_TARGET TARGET_AVX512
#define WINOGRAD_LANES  16
#define WINOGRAD(x)     avx512_4_##x
#define WINOGRAD_STEP   4
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#define WINOGRAD(x)   avx512_2_##x
#define WINOGRAD_STEP 2
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#undef WINOGRAD_LANES
#undef WINOGRAD_TARGET
#define WINOGRAD_TARGET TARGET_AVX2
#define WINOGRAD_LANES  8
#define WINOGRAD(x)     avx2_4_##x
#define WINOGRAD_STEP   4
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#define WINOGRAD(x)   avx2_2_##x
#define WINOGRAD_STEP 2
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#undef WINOGRAD_LANES
#undef WINOGRAD_TARGET
#endif

// The kernels of one instruction set.
typedef struct StepKernels {
        TileKernels two, four;
} StepKernels;

static const StepKernels plain_steps = { { plain2_take, plain2_give, plain2_largest },
                                         { plain4_take, plain4_give, plain4_largest } };
#if defined(__x86_64__)
static const StepKernels avx2_steps = { { avx2_2_take, avx2_2_give, avx2_2_largest },
                                        { avx2_4_take, avx2_4_give, avx2_4_largest } },
                         avx512_steps = { { avx512_2_take, avx512_2_give, avx512_2_largest },
                                          { avx512_4_take, avx512_4_give, avx512_4_largest } };
#endif
static const KernelVariant winograd_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &plain_steps },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &avx2_steps },
        { DTYPE_F32, ISA_AVX512, &avx512_steps },
#endif
};
const KernelFamily winograd_family = { "winograd", ARRAY_LENGTH(winograd_variants), winograd_variants };

static TileKernels kernels_of(const StepKernels *steps, int step)
{
        return step == 4 ? steps->four : steps->two;
}

TileKernels tile_kernels(int step)
{
        return kernels_of(kernel_variant(&winograd_family, DTYPE_F32), step);
}

TileKernels tile_kernels_plain(int step)
{
        return kernels_of(&plain_steps, step);
}
