// SPDX-License-Identifier: Apache-2.0
// Products with a packed constant: every result against the chains that it is said to be, bit by
// bit, on each instruction set, whatever the number of rows and threads, and what follows them.
#include "core/kernels/product/packed.h"
#include "tests/kernels/chain.h"
#include "tests/kernels/product_case.h"

static float expected(const Case *made, int64_t i, int64_t j)
{
        const DnnlMatmul *matmul = &made->matmul;
        int64_t n_k = matmul->a.size[1];
        Chain chain = chain_begin(made->bias == NULL ? 0 : made->bias[j], residual_at(made, i, j), n_k,
                                  PANELS_BLOCK);
        for (int64_t k = 0; k < n_k; k++)
                chain_add(&chain, made->a[i * matmul->a.stride[0] + k],
                          made->b[k * matmul->b.stride[0] + j * matmul->b.stride[1]]);
        return clamped(made, chain_end(&chain));
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
                packed_matmul_then(packed, &made->after);
                memset(made->out, 0xff, (size_t)made->out_floats * sizeof(float));
                size_t n_scratch = packed_matmul_scratch(packed);
                void *scratch = guarded_new(n_scratch);
                memset(scratch, 0xff, n_scratch);
                cr_assert_eq(packed_matmul_run(packed, &ctx, made->a, made->residual, made->out, scratch),
                             STATUS_OK);
                guarded_check(scratch, n_scratch);
                check_result(made, packed_matmul_name(packed), expected);
        }
        packed_matmul_free(packed);
}

// A chain that began with the bias would round at its size in every step.
Test(packed, a_large_bias_is_rounded_to_once)
{
        enum { ROWS = 9, COLUMNS = 40, TERMS = 900 };
        Sample sample = { 37 };
        Case made = make_case(&sample, ROWS, COLUMNS, TERMS, true);
        float biases[COLUMNS];
        for (int64_t j = 0; j < COLUMNS; j++)
                biases[j] = 4096;
        made.matmul.bias_data = biases;
        PackedMatmul *packed;
        RunContext ctx;
        run_context_init(&ctx);
        cr_assert_eq(packed_matmul_new(&made.matmul, &(DirectClamp){ .on = false }, &packed), STATUS_OK);
        if (packed == NULL) // ISA_PORTABLE
                return;
        size_t n_scratch = packed_matmul_scratch(packed);
        void *scratch = guarded_new(n_scratch);
        cr_assert_eq(packed_matmul_run(packed, &ctx, made.a, NULL, made.out, scratch), STATUS_OK);
        guarded_check(scratch, n_scratch);
        for (int64_t i = 0; i < ROWS; i++)
                for (int64_t j = 0; j < COLUMNS; j++) {
                        double want = 4096;
                        for (int64_t k = 0; k < TERMS; k++)
                                want += (double)made.a[i * made.matmul.a.stride[0] + k] *
                                        (double)made.b[j * TERMS + k];
                        double got = (double)made.out[i * made.matmul.out.stride[0] + j];
                        cr_assert(fabs(got - want) <= 0x1p-11, "%.9g instead of %.9g", got, want);
                }
        packed_matmul_free(packed);
        free_case(&made);
}

Test(packed, every_result_is_a_chain_of_multiply_adds_for_each_block)
{
        static const int64_t columns[] = { 1, 7, 8, 9, 16, 17, 33, 64, 65, 130 };
        Sample sample = { 31 };
        FOR_EACH_ISA(isa)
        {
                for (int64_t m = 1; m <= 15; m++)
                        for (size_t c = 0; c < ARRAY_LENGTH(columns); c++) {
                                Case made = make_case_then(&sample, m, columns[c], sample_int(&sample, 1, 70),
                                                           c % 2 == 0);
                                run_case(&made);
                                free_case(&made);
                        }
                // as many steps as dense tiles of every instruction set want
                for (int64_t m = 3; m <= 15; m++) {
                        Case made = make_case_then(&sample, m, 65 + m, 512 + m, true);
                        run_case(&made);
                        free_case(&made);
                }
                // several blocks, for wide tiles, tiles of rows as they lie and dense ones
                for (int64_t m = 1; m <= 9; m += 2)
                        for (size_t c = 0; c < ARRAY_LENGTH(columns); c += 3) {
                                Case deep = make_case_then(&sample, m, columns[c], 1024 * 2 + m, true);
                                run_case(&deep);
                                free_case(&deep);
                        }
                // several groups of rows, and a depth that is a multiple of 4 KiB
                Case large = make_case_then(&sample, 90, 40, 1024, true);
                run_case(&large);
                free_case(&large);
                // more panels and rows than what follows takes at once
                Case wide = make_case(&sample, 250, 1200, 20, true);
                wide.after.loop = doubled;
                wide.matmul.n_threads = 1;
                run_case(&wide);
                free_case(&wide);
                // sums in three blocks, several groups of rows, and threads that share panels
                for (int threads = 1; threads <= 3; threads += 2) {
                        Case deep = make_case_then(&sample, 250, 145, 2050, true);
                        deep.matmul.n_threads = threads;
                        run_case(&deep);
                        free_case(&deep);
                }
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
        free_case(&made);
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
                if (packed != NULL) {
                        size_t n_scratch = packed_matmul_scratch(packed);
                        void *scratch = guarded_new(n_scratch);
                        cr_assert_eq(
                                packed_matmul_run(packed, &ctx, made.a, made.residual, made.out, scratch),
                                STATUS_DEADLINE);
                        guarded_check(scratch, n_scratch);
                }
                packed_matmul_free(packed);
                free_case(&made);
        }
}
