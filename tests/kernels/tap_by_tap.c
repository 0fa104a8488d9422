// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include "core/kernels/conv/tap_by_tap.h"
#include "core/kernels/run_context.h"
#include "tests/kernels/conv_case.h"

static Case dilated_case(Sample *sample)
{
        Shape shape = { .n = sample_int(sample, 1, 2),
                        .n_in = sample_int(sample, 64, 70),
                        .n_out = sample_int(sample, 1, 20) };
        int64_t *size[2] = { &shape.height, &shape.width };
        for (int i = 0; i < 2; i++) {
                shape.kernel[i] = sample_int(sample, 2, 3);
                shape.dilation[i] = sample_int(sample, 2, 6);
                shape.padding[i] = shape.dilation[i];
                shape.stride[i] = sample_int(sample, 1, 2);
                *size[i] = sample_int(sample, shape.dilation[i], shape.dilation[i] + 5);
        }
        Case made = make_case(sample, &shape, true);
        made.clamp = (DirectClamp){ 0 };
        return made;
}

static void check_results(const Case *made)
{
        const int64_t *size = made->conv.out.size;
        for (int64_t i = 0; i < meta_numel(&made->conv.out); i++) {
                int64_t pixel = i / size[1], at[4] = { pixel / size[3] / size[2], i % size[1],
                                                       pixel / size[3] % size[2], pixel % size[3] };
                double want = wanted_at(made, at).exact, got = (double)made->out[i];
                cr_assert(
                        close_enough_sum(DTYPE_F32, got, want, meta_numel(&made->conv.weight) / size[1] + 2),
                        "result %ld: %.9g instead of %.9g", (long)i, got, want);
        }
}

Test(tap_by_tap, every_window_sums_what_it_has_inside)
{
        Sample sample = { 95 };
        int n_made = 0;
        FOR_EACH_ISA(isa)
        {
                for (int round = 0; round < 60 && direct_isa() != NULL; round++) {
                        Case made = dilated_case(&sample);
                        float *residual = made.residual;
                        TapByTap *taps;
                        RunContext ctx;
                        run_context_init(&ctx);
                        ctx.n_threads = made.conv.n_threads;
                        made.residual = NULL; // it adds none
                        cr_assert_eq(tap_by_tap_new(&made.conv, &taps), STATUS_OK);
                        if (taps != NULL) {
                                cr_assert_eq(tap_by_tap_run(taps, &ctx, made.input, made.out), STATUS_OK);
                                check_results(&made);
                                n_made++;
                        }
                        tap_by_tap_free(taps);
                        made.residual = residual;
                        free_case(&made);
                }
        }
        cr_assert(n_made >= 20 || isa_machine() == ISA_PORTABLE, "only %d", n_made);
}

Test(tap_by_tap, refuses_windows_that_are_mostly_inside)
{
        Sample sample = { 96 };
        Shape shape = { 1, 64, 8, 20, 20, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
        Case made = make_case(&sample, &shape, true);
        TapByTap *taps;
        cr_assert_eq(tap_by_tap_new(&made.conv, &taps), STATUS_OK);
        cr_assert_null(taps);
        free_case(&made);
}
