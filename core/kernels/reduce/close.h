// SPDX-License-Identifier: Apache-2.0
// Two tensors compared as torch.testing.assert_close compares them, with its words.
#pragma once
#include "core/base/text.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// What counts as close: |a - b| <= atol + rtol * |b|.
typedef struct CloseRule {
        bool given; // false: PyTorch's tolerances for the dtypes
        double rtol, atol;
        bool equal_nan; // two NaN are equal
} CloseRule;

// Differences are of all elements, close ones included, so that they can be followed along a graph.
// NaN: some difference is NaN.
typedef struct Closeness {
        bool close;
        double max_abs, max_rel;
        int64_t n_mismatched, n;
        double scale; // greatest finite |b|
} Closeness;

// The tolerances of two dtypes, as torch.testing gives them: the larger ones; 0 for integers.
void close_tolerances(Dtype a, Dtype b, const CloseRule *rule, double *out_rtol, double *out_atol);

// `a` is what assert_close calls actual, `b` what it calls expected. Tensors that differ get
// PyTorch's message appended to `message`. Another shape or dtype is a difference, and then no
// numbers are looked at. Fails with STATUS_CANCELLED and STATUS_DEADLINE only.
Status tensor_close(const Tensor *a, const Tensor *b, const CloseRule *rule, const RunContext *ctx,
                    Closeness *out_close, Text *message);

// The message for two numbers that differ: "Scalars are not close! ...". Complex numbers have an
// imaginary part; integers are exact.
typedef enum ScalarKind { SCALAR_BOOL, SCALAR_INT, SCALAR_FLOAT, SCALAR_COMPLEX } ScalarKind;
typedef struct Scalar {
        ScalarKind kind;
        int64_t i; // of BOOL and INT
        double re, im;
} Scalar;
void scalar_mismatch(const Scalar *a, const Scalar *b, double rtol, double atol, Text *message);
void text_add_python(Text *text, double value); // repr(float)
