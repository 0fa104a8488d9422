// SPDX-License-Identifier: Apache-2.0
// Numbers of events: Poisson and binomial distributions, drawn one element after another with the
// algorithms and the precision of PyTorch's CPU kernels, bit for bit.
#pragma once
#include "core/kernels/random/generator.h"
#include "core/kernels/run_context.h"
#include "core/tensor/dtype.h"

// STATUS_VALUE for a rate below 0 or NaN.
Status poisson_draw(const RunContext *ctx, int64_t n, const double *rates, double *out);
// How many of counts[i] trials succeed with probability p[i]; computed in float32 or float64. NaN
// where p is NaN.
Status binomial_draw(const RunContext *ctx, Dtype dtype, int64_t n, const double *counts, const double *p,
                     double *out);
