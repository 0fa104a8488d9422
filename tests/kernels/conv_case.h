// SPDX-License-Identifier: Apache-2.0
// Random convolutions of images, and what they give in double and as chains of float32.
#pragma once
#include <criterion/criterion.h>
#include <string.h>
#include "core/kernels/conv/winograd.h"
#include "core/kernels/run_context.h"
#include "tests/kernels/chain.h"
#include "tests/kernels/sample.h"

typedef struct Case {
        DnnlConv conv;
        DirectClamp clamp;
        float *input, *weight, *bias, *residual, *out;
} Case;

static inline float *random_floats(Sample *sample, int64_t n)
{
        float *data = guarded_new((size_t)n * sizeof(float));
        sample_fill(sample, DTYPE_F32, data, n);
        return data;
}

static inline TensorMeta image_meta(const int64_t *size, bool channels_last)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 4, size);
        if (channels_last)
                meta_set_channels_last(&meta);
        return meta;
}

typedef struct Shape {
        int64_t n, n_in, n_out, height, width, kernel[2], stride[2], padding[2], dilation[2];
} Shape;

static inline Case make_case(Sample *sample, const Shape *shape, bool channels_last)
{
        Case made = { .conv = { .groups = 1, .n_threads = (int)sample_int(sample, 1, 2) } };
        DnnlConv *conv = &made.conv;
        int64_t in[4] = { shape->n, shape->n_in, shape->height, shape->width },
                out[4] = { shape->n, shape->n_out };
        for (int i = 0; i < 2; i++) {
                conv->stride[i] = shape->stride[i];
                conv->padding[i] = shape->padding[i];
                conv->dilation[i] = shape->dilation[i];
                out[2 + i] =
                        (in[2 + i] + 2 * shape->padding[i] - (shape->kernel[i] - 1) * shape->dilation[i] -
                         1) / shape->stride[i] +
                        1;
        }
        conv->input = image_meta(in, channels_last);
        conv->out = image_meta(out, true);
        meta_init(&conv->weight, DTYPE_F32, 4,
                  (int64_t[]){ shape->n_out, shape->n_in, shape->kernel[0], shape->kernel[1] });
        made.input = random_floats(sample, meta_numel(&conv->input));
        made.weight = random_floats(sample, meta_numel(&conv->weight));
        made.out = guarded_new((size_t)meta_numel(&conv->out) * sizeof(float));
        conv->weight_data = made.weight;
        if (sample_int(sample, 0, 1) == 0)
                conv->bias_data = made.bias = random_floats(sample, shape->n_out);
        if (sample_int(sample, 0, 1) == 0)
                made.residual = random_floats(sample, meta_numel(&conv->out));
        if (sample_int(sample, 0, 1) == 0)
                made.clamp = (DirectClamp){ .on = true,
                                            .low = -0.5f,
                                            .high = sample_int(sample, 0, 1) == 0 ? INFINITY : 2.0f };
        return made;
}

static inline void free_case(Case *made)
{
        guarded_check(made->input, (size_t)meta_numel(&made->conv.input) * sizeof(float));
        guarded_check(made->weight, (size_t)meta_numel(&made->conv.weight) * sizeof(float));
        guarded_check(made->out, (size_t)meta_numel(&made->conv.out) * sizeof(float));
        if (made->bias != NULL)
                guarded_check(made->bias, (size_t)made->conv.out.size[1] * sizeof(float));
        if (made->residual != NULL)
                guarded_check(made->residual, (size_t)meta_numel(&made->conv.out) * sizeof(float));
}

// By Winograd's tiles; without a vector set there are none.
static inline void run_winograd(Case *made, int step)
{
        Winograd *winograd;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->conv.n_threads;
        cr_assert_eq(winograd_new(&made->conv, &made->clamp, step, &winograd), STATUS_OK);
        if (direct_isa() == NULL) {
                cr_assert_null(winograd);
                return;
        }
        cr_assert_not_null(winograd);
        size_t n = winograd_scratch(winograd);
        void *scratch = guarded_new(n);
        memset(scratch, 0xff, n); // NaN: nothing may be read that was not written
        cr_assert_eq(winograd_run(winograd, &ctx, made->input, made->residual, made->out, scratch),
                     STATUS_OK);
        guarded_check(scratch, n);
        winograd_free(winograd);
}

// ---- what is wanted ----
typedef struct Sum {
        double exact;
        Chain parts; // of `chain`
        float chain; // of fused multiply-adds, in the order of memory, padding included (chain.h)
} Sum;

static inline void add_tap(const Case *made, const int64_t at[4], int64_t c, int64_t ky, int64_t kx, Sum *sum)
{
        const DnnlConv *conv = &made->conv;
        const TensorMeta *in = &conv->input, *weight = &conv->weight;
        int64_t y = at[2] * conv->stride[0] - conv->padding[0] + ky * conv->dilation[0],
                x = at[3] * conv->stride[1] - conv->padding[1] + kx * conv->dilation[1];
        bool inside = y >= 0 && y < in->size[2] && x >= 0 && x < in->size[3];
        float value =
                inside ? made->input[at[0] * in->stride[0] + (conv->groups > 1 ? at[1] : c) * in->stride[1] +
                                     y * in->stride[2] + x * in->stride[3]]
                       : 0;
        float factor =
                made->weight[at[1] * weight->stride[0] + c * weight->stride[1] + ky * weight->stride[2] + kx];
        sum->exact += (double)value * (double)factor;
        chain_add(&sum->parts, value, factor);
}

static inline Sum wanted_at(const Case *made, const int64_t at[4])
{
        const DnnlConv *conv = &made->conv;
        float bias = made->bias == NULL ? 0 : made->bias[at[1]];
        Sum sum = { .exact = (double)bias };
        const float *residual =
                made->residual == NULL
                        ? NULL
                        : &made->residual[at[0] * conv->out.stride[0] + at[1] + at[2] * conv->out.stride[2] +
                                          at[3] * conv->out.stride[3]];
        int64_t n_in = conv->weight.size[1], height = conv->weight.size[2], width = conv->weight.size[3];
        bool last = conv->input.stride[1] == 1;
        sum.parts = chain_begin(bias, residual, n_in * height * width, PANELS_BLOCK);
        for (int64_t i = 0; i < n_in * height * width; i++) {
                if (last)
                        add_tap(made, at, i % n_in, i / n_in / width, i / n_in % width, &sum);
                else
                        add_tap(made, at, i / width / height, i / width % height, i % width, &sum);
        }
        sum.chain = chain_end(&sum.parts);
        if (residual != NULL)
                sum.exact += (double)*residual;
        if (made->clamp.on) {
                sum.exact = fmin(fmax(sum.exact, (double)made->clamp.low), (double)made->clamp.high);
                sum.chain = fminf(fmaxf(sum.chain, made->clamp.low), made->clamp.high);
        }
        return sum;
}
