// SPDX-License-Identifier: Apache-2.0
// Tensors of random numbers, bit for bit those of PyTorch's CPU kernels (the ones without MKL's
// generators). Elements are drawn one after another in the order in which PyTorch visits them: in
// the order of their addresses. All on one thread.
#pragma once
#include "core/kernels/random/generator.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

typedef enum DrawKind {
        DRAW_UNIFORM,     // a: from, b: to
        DRAW_NORMAL,      // a: mean, b: deviation
        DRAW_LOG_NORMAL,  // a: mean, b: deviation, of the logarithm
        DRAW_EXPONENTIAL, // a: rate
        DRAW_CAUCHY,      // a: median, b: scale
        DRAW_GEOMETRIC,   // a: probability
        DRAW_BERNOULLI,   // a: probability of 1
        DRAW_INTEGER,     // base .. base + range - 1
        DRAW_ANY_INT64,   // all 64 bits
        DRAW_ANY,         // whole numbers from 0 to what the dtype can hold without a gap
} DrawKind;

typedef struct Draw {
        DrawKind kind;
        double a, b;
        int64_t base;
        uint64_t range;
} Draw;

// Steps of Work per element.
static inline int draw_steps(DrawKind kind)
{
        return kind == DRAW_UNIFORM || kind >= DRAW_BERNOULLI ? 8 : 48;
}

// Fills `data`, laid out as `meta` says (no two elements at one address), with numbers drawn from
// the run's generator. The kinds up to DRAW_CAUCHY want a float dtype, complex ones not included.
Status draw_fill(const RunContext *ctx, const Draw *draw, const TensorMeta *meta, void *data);
// 0 or 1, each with a probability of its own, which is a float; out of 0..1: STATUS_VALUE.
// `p_meta` has the shape of `meta`; its strides may be 0.
Status draw_bernoulli(const RunContext *ctx, const TensorMeta *p_meta, const void *p, const TensorMeta *meta,
                      void *data);
