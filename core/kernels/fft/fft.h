// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of one dimension, of any length.
#pragma once
#include "core/kernels/isa.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// Every line of `in` along `dim` becomes a line of `out`; the other sizes are equal. A real `in`
// has n points. A complex one has n, or, when `out` is real, the first n / 2 + 1 of n points of
// which the others are the conjugates. A complex `out` takes as many of the n results as it has
// room for. `out` may be the same tensor as `in`. Computed in double precision. The bits of a
// line do not depend on the other lines.
typedef struct FftLines {
        const TensorMeta *in, *out;
        int dim;
        int64_t n;    // >= 1
        bool forward; // exp(-2 pi i j k / n); false: the conjugate
        double scale; // of the results
} FftLines;
// Fails with STATUS_NO_MEMORY or STATUS_TOO_LARGE for scratch memory, or when the run stops.
Status fft_lines_run(const RunContext *ctx, const FftLines *lines, const void *in, void *out);
// Floating point operations of one line of n points.
int64_t fft_flops(int64_t n);

extern const KernelFamily fft_family;
