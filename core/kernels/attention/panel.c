// SPDX-License-Identifier: Apache-2.0
// panel.c: the inner loops of panel.inc for each instruction set.
#include "core/kernels/attention/panel.h"
#include <math.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/kernels/pointwise/vector_math.h"
#include "core/kernels/turn.h"

static const int32_t lane_numbers[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

// Portable: what every CPU has. Products are rounded before they are added.
#define AT(x) plain_##x
#define AT_TARGET
#define AT_BYTES        16
#define AT_VECTORS      2
#define AT_KEYS_2       6
#define AT_MOST_KEYS    8
#define AT_TURN         TURN_4
#define AT_ALL(x)       ((plain_vector){ (x), (x), (x), (x) })
#define AT_FMA(a, b, c) ((c) + (a) * (b))
typedef int32_t PlainWhole __attribute__((vector_size(16)));
#define PLAIN_PICK(a, b, mask) ((__typeof__(a))(((PlainWhole)(a) & (mask)) | ((PlainWhole)(b) & ~(mask))))
#define AT_MAX(a, b)           PLAIN_PICK(a, b, (a) > (b))
#include "core/kernels/attention/panel.inc"

#if defined(__x86_64__)
#include <immintrin.h>
#define AT(x)           avx2_##x
#define AT_TARGET       TARGET_AVX2
#define AT_BYTES        32
#define AT_VECTORS      2
#define AT_KEYS_2       6
#define AT_MOST_KEYS    8
#define AT_TURN         TURN_8
#define AT_ALL(x)       _mm256_set1_ps(x)
#define AT_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define AT_MAX(a, b)    _mm256_max_ps(a, b)
#include "core/kernels/attention/panel.inc"

#define AT(x)           avx512_##x
#define AT_TARGET       TARGET_AVX512
#define AT_BYTES        64
#define AT_VECTORS      4
#define AT_KEYS         6
#define AT_KEYS_2       12
#define AT_MOST_KEYS    12
#define AT_TURN         TURN_16
#define AT_ALL(x)       _mm512_set1_ps(x)
#define AT_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define AT_MAX(a, b)    _mm512_max_ps(a, b)
#include "core/kernels/attention/panel.inc"
#endif

static const KernelVariant panel_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &plain_panel },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &avx2_panel },
        { DTYPE_F32, ISA_AVX512, &avx512_panel },
#endif
};
const KernelFamily attention_family = { "attention", ARRAY_LENGTH(panel_variants), panel_variants };
