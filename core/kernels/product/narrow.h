// SPDX-License-Identifier: Apache-2.0
// Products with a constant right factor that is packed once in fewer bits, for those who chose less
// precision. bfloat16: the factor is rounded, the rest is float32. int8: each column of the factor
// has a scale and 8-bit numbers; each row of the left one is rounded when it is met, to as many
// steps as exact sums of 32 bits allow (at most 32,767). A row's bits depend neither on the number
// of rows nor on its place. AVX2 with FMA or AVX-512.
#pragma once
#include "core/kernels/conv/panels.h"
#include "core/kernels/dnnl/primitive.h"
#include "core/kernels/numeric_policy.h"
#include "core/kernels/pointwise/pointwise.h"

typedef struct NarrowMatmul NarrowMatmul;

// As packed_matmul_new. *out_matmul stays NULL also for PRECISION_F32, for factors that are not
// finite, and where the factor is too small to be worth it.
Status narrow_matmul_new(const DnnlMatmul *matmul, Precision precision, const DirectClamp *clamp,
                         NarrowMatmul **out_matmul);
void narrow_matmul_then(NarrowMatmul *matmul, const PointAfter *after); // as packed_matmul_then
void narrow_matmul_free(NarrowMatmul *matmul);                          // NULL-safe
const char *narrow_matmul_name(const NarrowMatmul *matmul);
size_t narrow_matmul_scratch(const NarrowMatmul *matmul);
// As packed_matmul_run. `scratch`: narrow_matmul_scratch bytes, 64-byte aligned. A row of int8 that
// is not finite gives NaN.
Status narrow_matmul_run(const NarrowMatmul *matmul, const RunContext *ctx, const float *a,
                         const float *residual, float *out, void *scratch);
