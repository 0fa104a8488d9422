// SPDX-License-Identifier: Apache-2.0
// Products with a constant right factor that is packed once (core/kernels/conv/panels.h), with what
// follows them done while results are in registers. Each result is one chain of fused
// multiply-adds, and then the bias: a row's bits depend neither on the number of rows nor on its
// place. float32, AVX2 with FMA or AVX-512.
#pragma once
#include "core/kernels/conv/panels.h"
#include "core/kernels/dnnl/primitive.h"
#include "core/kernels/pointwise/pointwise.h"

typedef struct PackedMatmul PackedMatmul;

// out = a b + bias, then a residual is added, then results are clamped. Takes matrices, b constant,
// rows of a and out contiguous; matmul->epilogue must be empty. Else, and where the CPU lacks the
// instructions, *out_matmul stays NULL (STATUS_OK).
Status packed_matmul_new(const DnnlMatmul *matmul, const DirectClamp *clamp, PackedMatmul **out_matmul);
// `after` follows the residual and the clamp; before the first run.
void packed_matmul_then(PackedMatmul *matmul, const PointAfter *after);
void packed_matmul_free(PackedMatmul *matmul); // NULL-safe
const char *packed_matmul_name(const PackedMatmul *matmul);
size_t packed_matmul_scratch(const PackedMatmul *matmul);
// `residual`: laid out as the output, apart from it; NULL: none. `scratch`: packed_matmul_scratch
// bytes. Splits over out only. Polls.
Status packed_matmul_run(const PackedMatmul *matmul, const RunContext *ctx, const float *a,
                         const float *residual, float *out, void *scratch);
