// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/pool/pool.h"
#include "tests/kernels/sample.h"

static PoolWindow random_window(Sample *sample, bool dilated)
{
        PoolWindow window = { .kernel = sample_int(sample, 1, 4),
                              .stride = sample_int(sample, 1, 3),
                              .dilation = dilated ? sample_int(sample, 1, 2) : 1 };
        window.pad = sample_int(sample, 0, window.kernel / 2);
        return window;
}

typedef struct Wanted {
        double max, sum;
        int64_t index, count;
} Wanted;

// Largest and sum over the window of output position `at`, straight from the definition.
static Wanted reference(const Pool *pool, const PoolWindow *windows, const float *in, const int64_t *at)
{
        Wanted want = { .max = -INFINITY, .index = -1 };
        int64_t height = pool->axis[1].in_size, width = pool->axis[2].in_size;
        for (int64_t a = 0; a < windows[0].kernel; a++) {
                for (int64_t b = 0; b < windows[1].kernel; b++) {
                        for (int64_t c = 0; c < windows[2].kernel; c++) {
                                int64_t z = at[0] * windows[0].stride - windows[0].pad +
                                            a * windows[0].dilation,
                                        y = at[1] * windows[1].stride - windows[1].pad +
                                            b * windows[1].dilation,
                                        x = at[2] * windows[2].stride - windows[2].pad +
                                            c * windows[2].dilation;
                                if (z < 0 || y < 0 || x < 0 || z >= pool->axis[0].in_size || y >= height ||
                                    x >= width)
                                        continue;
                                double value = (double)in[(z * height + y) * width + x];
                                if (value > want.max || isnan(value)) {
                                        want.max = value;
                                        want.index = (z * height + y) * width + x;
                                }
                                want.sum += value;
                                want.count++;
                        }
                }
        }
        return want;
}

static void check_pool(Sample *sample, bool average)
{
        Pool pool = { .dtype = DTYPE_F32, .planes = sample_int(sample, 1, 3) };
        PoolWindow windows[3];
        int64_t bounds[3][3 * 16], n_in = pool.planes, n_out = pool.planes;
        for (int d = 0; d < 3; d++) {
                windows[d] = random_window(sample, !average);
                PoolAxis *axis = &pool.axis[d];
                axis->in_size = sample_int(sample, 4, 9);
                axis->out_size =
                        pool_output_size(axis->in_size, windows[d].kernel, windows[d].stride, windows[d].pad,
                                         windows[d].dilation, sample_int(sample, 0, 1) != 0);
                if (axis->out_size < 1)
                        return;
                pool_windows(NULL, axis, &windows[d], bounds[d]);
                n_in *= axis->in_size;
                n_out *= axis->out_size;
        }
        float *in = guarded_new((size_t)n_in * 4), *out = guarded_new((size_t)n_out * 4),
              *indexed = guarded_new((size_t)n_out * 4);
        int64_t *indices = guarded_new((size_t)n_out * 8);
        sample_fill(sample, DTYPE_F32, in, n_in);
        if (!average && sample_int(sample, 0, 2) == 0)
                in[sample_int(sample, 0, n_in - 1)] = NAN;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        cr_assert_eq(average ? pool_average(&ctx, &pool, in, out) : pool_max(&ctx, &pool, in, out, NULL),
                     STATUS_OK);
        cr_assert_eq(pool_max(&ctx, &pool, in, indexed, indices), STATUS_OK);
        for (int64_t i = 0; i < n_out; i++) {
                int64_t rest = i, at[3];
                for (int d = 2; d >= 0; d--) {
                        at[d] = rest % pool.axis[d].out_size;
                        rest /= pool.axis[d].out_size;
                }
                Wanted at_i = reference(&pool, windows, in + rest * (n_in / pool.planes), at);
                double mean = at_i.count == 0 ? 0 : at_i.sum / (double)at_i.count,
                       want = average ? mean : at_i.max;
                cr_assert(close_enough(DTYPE_F32, (double)out[i], want), "output %ld: %.9g instead of %.9g",
                          (long)i, (double)out[i], want);
                cr_assert(close_enough(DTYPE_F32, (double)indexed[i], at_i.max));
                if (at_i.index >= 0)
                        cr_assert_eq(indices[i], at_i.index);
        }
        guarded_check(in, (size_t)n_in * 4);
        guarded_check(out, (size_t)n_out * 4);
        guarded_check(indexed, (size_t)n_out * 4);
        guarded_check(indices, (size_t)n_out * 8);
}

Test(pool, takes_the_largest_of_every_window)
{
        Sample sample = { 21 };
        for (int round = 0; round < 120; round++)
                check_pool(&sample, false);
}

Test(pool, averages_what_a_window_has)
{
        Sample sample = { 22 };
        for (int round = 0; round < 120; round++)
                check_pool(&sample, true);
}

Test(pool, drops_the_last_window_when_it_would_start_in_the_right_padding)
{
        cr_assert_eq(pool_output_size(5, 2, 2, 0, 1, false), 2);
        cr_assert_eq(pool_output_size(5, 2, 2, 0, 1, true), 3);
        cr_assert_eq(pool_output_size(4, 2, 3, 1, 1, true), 2);
        cr_assert_eq(pool_output_size(3, 2, 3, 1, 1, true), 2);
        cr_assert_eq(pool_output_size(2, 2, 3, 1, 1, true), 1);
}

Test(pool, counts_padding_but_not_the_ceiling_overhang)
{
        PoolAxis axis = { .in_size = 4, .out_size = pool_output_size(4, 3, 2, 1, 1, true) };
        int64_t bounds[9];
        cr_assert_eq(axis.out_size, 3);
        pool_windows(NULL, &axis, &(PoolWindow){ 3, 2, 1, 1, true }, bounds);
        // Positions -1..1, 1..3, 3..5; padding ends with 4.
        cr_assert(axis.count[0] == 3 && axis.count[1] == 3 && axis.count[2] == 2);
}

Test(pool, adaptive_windows_cover_the_input_without_gaps)
{
        for (int64_t in = 1; in < 20; in++) {
                for (int64_t out = 1; out < 25; out++) {
                        PoolAxis axis = { .in_size = in, .out_size = out };
                        int64_t bounds[75];
                        pool_adaptive_windows(NULL, &axis, bounds);
                        cr_assert_eq(axis.low[0], 0);
                        cr_assert_eq(axis.high[out - 1], in);
                        for (int64_t o = 0; o < out; o++) {
                                cr_assert(axis.low[o] < axis.high[o] && axis.high[o] <= in);
                                cr_assert(o == 0 || axis.low[o] <= axis.high[o - 1]);
                        }
                }
        }
}
