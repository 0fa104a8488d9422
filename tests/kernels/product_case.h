// SPDX-License-Identifier: Apache-2.0
// Random products with a constant right factor, for tests of the kernels that pack it.
#pragma once
#include "core/kernels/conv/panels.h"
#include "core/kernels/dnnl/primitive.h"
#include "core/kernels/pointwise/pointwise.h"
#include "tests/kernels/sample.h"

typedef struct Case {
        DnnlMatmul matmul;
        DirectClamp clamp;
        PointAfter after; // `doubled`, or none
        float *a, *b, *bias, *residual, *out;
        int64_t a_floats, out_floats;
} Case;

static inline float *random_floats(Sample *sample, int64_t n)
{
        float *data = guarded_new((size_t)n * sizeof(float));
        sample_fill(sample, DTYPE_F32, data, n);
        return data;
}

// What follows: done twice or not at all, it is seen.
static inline void doubled(const PointTile *tile)
{
        float *out = tile->out;
        for (size_t i = 0; i < tile->n; i++)
                out[i] = ((const float *)tile->in[0])[i] * 2;
}

// Rows of a and of the result stand `a_gap` and `out_gap` floats further apart than they are long.
static inline Case make_case(Sample *sample, int64_t m, int64_t n, int64_t k, bool b_transposed)
{
        Case made = { .matmul = { .n_threads = (int)sample_int(sample, 1, 2) } };
        int64_t a_gap = sample_int(sample, 0, 1) * 5, out_gap = sample_int(sample, 0, 1) * 3;
        DnnlMatmul *matmul = &made.matmul;
        meta_init(&matmul->a, DTYPE_F32, 2, (int64_t[]){ m, k });
        meta_init(&matmul->b, DTYPE_F32, 2, (int64_t[]){ k, n });
        meta_init(&matmul->out, DTYPE_F32, 2, (int64_t[]){ m, n });
        matmul->a.stride[0] = k + a_gap;
        matmul->out.stride[0] = n + out_gap;
        if (b_transposed) {
                matmul->b.stride[0] = 1;
                matmul->b.stride[1] = k;
        }
        made.a_floats = (m - 1) * (k + a_gap) + k;
        made.out_floats = (m - 1) * (n + out_gap) + n;
        made.a = random_floats(sample, made.a_floats);
        made.b = random_floats(sample, k * n);
        made.out = guarded_new((size_t)made.out_floats * sizeof(float));
        matmul->b_data = made.b;
        if (sample_int(sample, 0, 1) == 0)
                matmul->bias_data = made.bias = random_floats(sample, n);
        if (sample_int(sample, 0, 1) == 0)
                made.residual = random_floats(sample, made.out_floats);
        if (sample_int(sample, 0, 1) == 0)
                made.clamp = (DirectClamp){ .on = true, .low = -1.5f, .high = 2.5f };
        return made;
}

static inline Case make_case_then(Sample *sample, int64_t m, int64_t n, int64_t k, bool b_transposed)
{
        Case made = make_case(sample, m, n, k, b_transposed);
        if (sample_int(sample, 0, 1) == 0)
                made.after.loop = doubled;
        return made;
}

static inline void free_case(Case *made)
{
        guarded_check(made->a, (size_t)made->a_floats * sizeof(float));
        guarded_check(made->b, (size_t)meta_numel(&made->matmul.b) * sizeof(float));
        guarded_check(made->out, (size_t)made->out_floats * sizeof(float));
        if (made->bias != NULL)
                guarded_check(made->bias, (size_t)made->matmul.b.size[1] * sizeof(float));
        if (made->residual != NULL)
                guarded_check(made->residual, (size_t)made->out_floats * sizeof(float));
}

// What a product does with a sum that has the bias in it.
static inline const float *residual_at(const Case *made, int64_t i, int64_t j)
{
        return made->residual == NULL ? NULL : &made->residual[i * made->matmul.out.stride[0] + j];
}

static inline float clamped(const Case *made, float sum)
{
        if (made->clamp.on && !isnan(sum))
                sum = fminf(fmaxf(sum, made->clamp.low), made->clamp.high);
        return made->after.loop == NULL ? sum : sum * 2;
}

static inline float finished(const Case *made, int64_t i, int64_t j, float sum)
{
        const float *residual = residual_at(made, i, j);
        return clamped(made, residual == NULL ? sum : sum + *residual);
}

static inline void check_result(const Case *made, const char *name,
                                float (*expected)(const Case *made, int64_t i, int64_t j))
{
        const DnnlMatmul *matmul = &made->matmul;
        for (int64_t i = 0; i < matmul->out.size[0]; i++)
                for (int64_t j = 0; j < matmul->out.size[1]; j++) {
                        float got = made->out[i * matmul->out.stride[0] + j], want = expected(made, i, j);
                        if (memcmp(&got, &want, sizeof(got)) != 0 && !(isnan(got) && isnan(want)))
                                cr_assert_fail("%s: %ld x %ld x %ld, element %ld, %ld is %g, expected %g",
                                               name, (long)matmul->out.size[0], (long)matmul->out.size[1],
                                               (long)matmul->a.size[1], (long)i, (long)j, (double)got,
                                               (double)want);
                }
}
