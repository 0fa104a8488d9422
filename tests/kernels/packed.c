// SPDX-License-Identifier: Apache-2.0
// Products with a packed constant: every result against the plain chain that it is said to be, bit
// by bit, on each instruction set, whatever the number of rows and threads.
#include "core/kernels/product/packed.h"
#include "tests/kernels/sample.h"

typedef struct Case {
        DnnlMatmul matmul;
        DirectClamp clamp;
        float *a, *b, *bias, *residual, *out;
        int64_t a_floats, out_floats;
} Case;

static float *random_floats(Sample *sample, int64_t n)
{
        float *data = guarded_new((size_t)n * sizeof(float));
        sample_fill(sample, DTYPE_F32, data, n);
        return data;
}

// Rows of a and of the result stand `a_gap` and `out_gap` floats further apart than they are long.
static Case make_case(Sample *sample, int64_t m, int64_t n, int64_t k, bool b_transposed)
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

static void free_case(Case *made)
{
        guarded_check(made->a, (size_t)made->a_floats * sizeof(float));
        guarded_check(made->b, (size_t)meta_numel(&made->matmul.b) * sizeof(float));
        guarded_check(made->out, (size_t)made->out_floats * sizeof(float));
        if (made->bias != NULL)
                guarded_check(made->bias, (size_t)made->matmul.b.size[1] * sizeof(float));
        if (made->residual != NULL)
                guarded_check(made->residual, (size_t)made->out_floats * sizeof(float));
}

static float expected(const Case *made, int64_t i, int64_t j)
{
        const DnnlMatmul *matmul = &made->matmul;
        float sum = made->bias == NULL ? 0 : made->bias[j];
        for (int64_t k = 0; k < matmul->a.size[1]; k++)
                sum = fmaf(made->a[i * matmul->a.stride[0] + k],
                           made->b[k * matmul->b.stride[0] + j * matmul->b.stride[1]], sum);
        if (made->residual != NULL)
                sum += made->residual[i * matmul->out.stride[0] + j];
        if (!made->clamp.on || isnan(sum))
                return sum;
        return fminf(fmaxf(sum, made->clamp.low), made->clamp.high);
}

static void check_result(const Case *made, const char *name)
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

static void run_case(Case *made)
{
        PackedMatmul *packed;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->matmul.n_threads;
        cr_assert_eq(packed_matmul_new(&made->matmul, &made->clamp, &packed), STATUS_OK);
        cr_assert_eq(packed == NULL, isa_level() == ISA_PORTABLE);
        if (packed != NULL) {
                memset(made->out, 0xff, (size_t)made->out_floats * sizeof(float));
                cr_assert_eq(packed_matmul_run(packed, &ctx, made->a, made->residual, made->out), STATUS_OK);
                check_result(made, packed_matmul_name(packed));
        }
        packed_matmul_free(packed);
}

Test(packed, every_result_is_one_chain_of_multiply_adds)
{
        static const int64_t columns[] = { 1, 7, 8, 9, 16, 17, 33, 64, 65, 130 };
        Sample sample = { 31 };
        FOR_EACH_ISA(isa)
        {
                for (int64_t m = 1; m <= 15; m++)
                        for (size_t c = 0; c < ARRAY_LENGTH(columns); c++) {
                                Case made = make_case(&sample, m, columns[c], sample_int(&sample, 1, 70),
                                                      c % 2 == 0);
                                run_case(&made);
                                free_case(&made);
                        }
                // several groups of rows, and a depth that is a multiple of 4 KiB
                Case large = make_case(&sample, 90, 40, 1024, true);
                run_case(&large);
                free_case(&large);
        }
}

Test(packed, what_is_not_a_product_with_a_constant_is_declined)
{
        Sample sample = { 32 };
        PackedMatmul *packed = (void *)&sample;
        Case made = make_case(&sample, 3, 5, 4, false);
        made.matmul.b_data = NULL;
        cr_assert_eq(packed_matmul_new(&made.matmul, &made.clamp, &packed), STATUS_OK);
        cr_assert_null(packed);
        made.matmul.b_data = made.b;
        made.matmul.a.stride[0] = 1;
        made.matmul.a.stride[1] = 3;
        cr_assert_eq(packed_matmul_new(&made.matmul, &made.clamp, &packed), STATUS_OK);
        cr_assert_null(packed);
}

Test(packed, a_run_past_its_deadline_stops)
{
        Sample sample = { 33 };
        FOR_EACH_ISA(isa)
        {
                Case made = make_case(&sample, 64, 64, 64, true);
                PackedMatmul *packed;
                RunContext ctx;
                run_context_init(&ctx);
                ctx.deadline_ns = 1;
                cr_assert_eq(packed_matmul_new(&made.matmul, &made.clamp, &packed), STATUS_OK);
                if (packed != NULL)
                        cr_assert_eq(packed_matmul_run(packed, &ctx, made.a, made.residual, made.out),
                                     STATUS_DEADLINE);
                packed_matmul_free(packed);
        }
}
