// SPDX-License-Identifier: Apache-2.0
// Products in parts against the blocked product, just above the number of operations that a part
// may have.
#include "core/kernels/product/parts.h"
#include <criterion/criterion.h>
#include <math.h>
#include "core/kernels/conv/conv.h"
#include "core/kernels/product/matmul.h"

static float *noise(int64_t n)
{
        float *data = aligned_alloc(64, ((size_t)n * sizeof(float) + 63) / 64 * 64);
        for (int64_t i = 0; i < n; i++)
                data[i] = (float)((uint32_t)i * 2654435761u % 2003) / 1001.5f - 1.0f;
        return data;
}

static void check_close(const char *what, const float *got, const float *want, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                if (!(fabsf(got[i] - want[i]) <= 2e-3f + 1e-4f * fabsf(want[i])))
                        cr_assert_fail("%s: element %ld is %g, expected %g", what, (long)i, (double)got[i],
                                       (double)want[i]);
}

typedef struct MatmulCase {
        const char *what;
        int64_t batch, m, k, n;
        bool constant, bias;
        int64_t n_parts; // at least
} MatmulCase;

// Leaves *out_parts NULL where the library has no fast implementation.
static void run_case(const MatmulCase *c, RunContext *ctx, Status wanted)
{
        int64_t a_size[] = { c->batch, c->m, c->k }, b_size[] = { c->batch, c->k, c->n },
                out_size[] = { c->batch, c->m, c->n };
        int skip = c->batch == 1;
        DnnlMatmul matmul = { .n_threads = 1 };
        meta_init(&matmul.a, DTYPE_F32, 3 - skip, a_size + skip);
        meta_init(&matmul.b, DTYPE_F32, 3 - skip, b_size + skip);
        meta_init(&matmul.out, DTYPE_F32, 3 - skip, out_size + skip);
        int64_t n_out = c->batch * c->m * c->n;
        float *a = noise(c->batch * c->m * c->k), *b = noise(c->batch * c->k * c->n), *bias = noise(c->n),
              *got = noise(n_out), *want = noise(n_out);
        matmul.b_data = c->constant ? b : NULL;
        matmul.bias_data = c->bias ? bias : NULL;
        Parts *parts;
        cr_assert_eq(parts_matmul_new(&matmul, &parts), STATUS_OK);
        if (parts != NULL) {
                cr_expect_geq(parts_count(parts), c->n_parts, "%s: %ld parts", c->what,
                              (long)parts_count(parts));
                cr_expect_leq(2 * n_out * c->k / parts_count(parts), 2 * PART_FLOPS, "%s: %ld parts", c->what,
                              (long)parts_count(parts));
                void *scratch = aligned_alloc(64, (parts_scratch(parts) + 127) / 64 * 64);
                Status status = parts_run(parts, ctx, a, c->constant ? NULL : b, got, scratch);
                cr_expect_eq(status, wanted, "%s: %s", c->what, status_code(status));
                Gemm task = { .dtype = DTYPE_F32,
                              .m = c->m,
                              .n = c->n,
                              .k = c->k,
                              .alpha = 1,
                              .beta = 1,
                              .batch_rank = 1,
                              .batch_size = { c->batch } };
                task.a = (GemmMatrix){ a, c->k, 1, { c->m * c->k } };
                task.b = (GemmMatrix){ b, c->n, 1, { c->k * c->n } };
                task.c = (GemmMatrix){ want, c->n, 1, { c->m * c->n } };
                if (c->bias)
                        task.add = (GemmMatrix){ bias, 0, 1, { 0 } };
                cr_assert_eq(gemm(NULL, &task), STATUS_OK);
                if (wanted == STATUS_OK)
                        check_close(c->what, got, want, n_out);
                free(scratch);
        }
        parts_free(parts);
        free(a);
        free(b);
        free(bias);
        free(got);
        free(want);
}

static const MatmulCase matmuls[] = {
        { "small", 1, 20, 30, 40, false, false, 1 },
        { "square", 1, 1030, 1000, 1000, false, false, 2 },
        { "constant, many rows", 1, 1030, 1000, 1000, true, true, 2 },
        { "constant, large", 1, 5, 4100, 2100, true, true, 2 },
        { "tall", 1, 20011, 1000, 60, false, false, 2 },
        { "wide", 1, 60, 1000, 20011, false, true, 2 },
        { "wide, parts of one size with a bias each", 1, 60, 1000, 20032, false, true, 2 },
        { "batch", 70, 250, 250, 250, false, false, 2 },
        { "large items", 2, 800, 1600, 800, false, false, 2 },
};

Test(parts, products_of_parts_are_the_product)
{
        for (size_t i = 0; i < sizeof(matmuls) / sizeof(*matmuls); i++)
                run_case(&matmuls[i], NULL, STATUS_OK);
}

Test(parts, runs_stop_between_parts)
{
        RunContext ctx;
        run_context_init(&ctx);
        atomic_store(&ctx.cancelled, 1);
        run_case(&matmuls[1], &ctx, STATUS_CANCELLED);
}

static void check_conv(int64_t images, int64_t side, bool channels_last, int64_t least)
{
        enum { IN = 48, OUT = 40 };
        DnnlConv conv = { .groups = 1,
                          .stride = { 1, 1, 1 },
                          .padding = { 1, 1, 1 },
                          .dilation = { 1, 1, 1 },
                          .n_threads = 1 };
        meta_init(&conv.input, DTYPE_F32, 4, (int64_t[]){ images, IN, side, side });
        meta_init(&conv.weight, DTYPE_F32, 4, (int64_t[]){ OUT, IN, 3, 3 });
        meta_init(&conv.out, DTYPE_F32, 4, (int64_t[]){ images, OUT, side, side });
        if (channels_last) {
                meta_set_channels_last(&conv.input);
                meta_set_channels_last(&conv.out);
        }
        int64_t n_out = meta_numel(&conv.out);
        float *in = noise(meta_numel(&conv.input)), *weight = noise(meta_numel(&conv.weight)),
              *bias = noise(OUT), *got = noise(n_out), *want = noise(n_out);
        conv.weight_data = weight;
        conv.bias_data = bias;
        Parts *parts;
        cr_assert_eq(parts_conv_new(&conv, &parts), STATUS_OK);
        if (parts != NULL) {
                cr_expect_geq(parts_count(parts), least);
                void *scratch = aligned_alloc(64, (parts_scratch(parts) + 127) / 64 * 64);
                cr_assert_eq(parts_run(parts, NULL, in, NULL, got, scratch), STATUS_OK);
                Conv plain = {
                        .dtype = DTYPE_F32, .n = images, .groups = 1, .group_in = IN, .group_out = OUT
                };
                for (int d = 0; d < 3; d++) {
                        plain.in_size[d] = plain.out_size[d] = d == 0 ? 1 : side;
                        plain.kernel[d] = d == 0 ? 1 : 3;
                        plain.stride[d] = plain.dilation[d] = 1;
                        plain.pad[d] = d != 0;
                }
                const TensorMeta *metas[] = { &conv.input, &conv.out };
                for (int i = 0; i < 2; i++) {
                        int64_t *stride = i == 0 ? plain.in_stride : plain.out_stride;
                        stride[0] = metas[i]->stride[0];
                        stride[1] = metas[i]->stride[1];
                        stride[2] = 0;
                        stride[3] = metas[i]->stride[2];
                        stride[4] = metas[i]->stride[3];
                }
                cr_assert_eq(conv_run(NULL, &plain, in, weight, bias, want), STATUS_OK);
                check_close("convolution", got, want, n_out);
                free(scratch);
        }
        parts_free(parts);
        free(in);
        free(weight);
        free(bias);
        free(got);
        free(want);
}

Test(parts, convolutions_are_cut_by_images_and_output_channels)
{
        check_conv(3, 20, true, 1);
        check_conv(9, 112, true, 2);
        check_conv(9, 112, false, 2);
        check_conv(1, 260, false, 2);
        check_conv(2, 260, true, 2);
}
