// SPDX-License-Identifier: Apache-2.0
// Direct and Winograd convolutions and products: the tiles of both instruction sets against the
// chains that they are said to be, bit by bit; Winograd against sums in double.
#include "core/kernels/conv/depthwise.h"
#include "core/kernels/pack_cache.h"
#include "core/kernels/conv/winograd.h"
#include "tests/kernels/conv_case.h"

static void check_case(const Case *made, const char *name, bool bits)
{
        const TensorMeta *out = &made->conv.out;
        int64_t at[4], terms = meta_numel(&made->conv.weight) / made->conv.weight.size[0];
        for (at[0] = 0; at[0] < out->size[0]; at[0]++)
                for (at[2] = 0; at[2] < out->size[2]; at[2]++)
                        for (at[3] = 0; at[3] < out->size[3]; at[3]++)
                                for (at[1] = 0; at[1] < out->size[1]; at[1]++) {
                                        Sum want = wanted_at(made, at);
                                        float got =
                                                made->out[at[0] * out->stride[0] + at[1] +
                                                          at[2] * out->stride[2] + at[3] * out->stride[3]];
                                        if (bits)
                                                cr_assert(got == want.chain,
                                                          "%s at %ld,%ld,%ld: %.9g instead of %.9g", name,
                                                          (long)at[1], (long)at[2], (long)at[3], (double)got,
                                                          (double)want.chain);
                                        cr_assert(close_enough_sum(DTYPE_F32, (double)got, want.exact, terms),
                                                  "%s: %.9g instead of %.9g", name, (double)got, want.exact);
                                }
}

static void run_direct(Case *made)
{
        DirectConv *direct;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->conv.n_threads;
        cr_assert_eq(direct_conv_new(&made->conv, PRECISION_F32, &made->clamp, &direct), STATUS_OK);
        cr_assert_not_null(direct);
        size_t n = direct_conv_scratch(direct);
        void *scratch = guarded_new(n + 64);
        memset(scratch, 0xff, n); // NaN: nothing may be read that was not written
        memset(made->out, 0xff, (size_t)meta_numel(&made->conv.out) * sizeof(float));
        cr_assert_eq(direct_conv_run(direct, &ctx, made->input, made->residual, made->out, scratch),
                     STATUS_OK);
        check_case(made, direct_conv_name(direct), true);
        guarded_check(scratch, n + 64);
        direct_conv_free(direct);
}

Test(direct, every_result_is_a_chain_of_multiply_adds_for_each_block_on_either_instruction_set)
{
        Sample sample = { 21 };
        for (int round = 0; round < 120; round++) {
                Shape shape = { .n = sample_int(&sample, 1, 2),
                                .n_in = sample_int(&sample, 1, 20),
                                .n_out = sample_int(&sample, 1, 70),
                                .height = sample_int(&sample, 5, 20),
                                .width = sample_int(&sample, 5, 33) };
                for (int i = 0; i < 2; i++) {
                        shape.kernel[i] = sample_int(&sample, 1, 3);
                        shape.stride[i] = sample_int(&sample, 1, 3);
                        shape.dilation[i] = sample_int(&sample, 1, 2);
                        shape.padding[i] = sample_int(&sample, 0, (shape.kernel[i] - 1) * shape.dilation[i]);
                }
                Case made = make_case(&sample, &shape, sample_int(&sample, 0, 2) != 0);
                FOR_EACH_ISA(isa) if (direct_isa() != NULL) run_direct(&made);
                free_case(&made);
        }
}

Test(direct, deep_sums_are_several_chains)
{
        Sample sample = { 34 };
        static const Shape shapes[] = {
                { 2, 1031, 33, 6, 17, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
                { 1, 401, 48, 5, 9, { 3, 3 }, { 1, 2 }, { 1, 1 }, { 1, 1 } },
                { 1, 130, 20, 9, 7, { 3, 5 }, { 2, 1 }, { 1, 2 }, { 1, 1 } },
        };
        for (size_t i = 0; i < 2 * ARRAY_LENGTH(shapes); i++) {
                Case made = make_case(&sample, &shapes[i / 2], i % 2 == 0);
                FOR_EACH_ISA(isa) if (direct_isa() != NULL) run_direct(&made);
                free_case(&made);
        }
}

Test(direct, only_kernels_of_three_by_three_are_winograds_by_rule)
{
        Sample sample = { 28 };
        Shape shape = { 1, 32, 64, 16, 16, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
        for (int what = 0; what < 3; what++) {
                if (what == 1)
                        shape = (Shape){ 1, 32, 64, 16, 16, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
                else if (what == 2)
                        shape = (Shape){ 1, 32, 64, 32, 32, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 } };
                Case made = make_case(&sample, &shape, true);
                cr_assert_eq(winograd_rule(&made.conv), what == 0 ? 4 : 0, "case %d", what);
                free_case(&made);
        }
}

Test(direct, rows_a_multiple_of_four_kilobytes_apart_and_single_pixels_are_right_too)
{
        Sample sample = { 22 };
        Shape shapes[] = { { 1, 1024, 40, 4, 4, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
                           { 2, 64, 33, 1, 1, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
                           { 1, 3, 16, 1, 9, { 1, 3 }, { 1, 2 }, { 0, 1 }, { 1, 1 } },
                           { 3, 5, 8, 9, 1, { 3, 1 }, { 1, 1 }, { 1, 0 }, { 1, 1 } } };
        for (size_t k = 0; k < 2 * ARRAY_LENGTH(shapes); k++) {
                Case made = make_case(&sample, &shapes[k / 2], k % 2 == 0);
                FOR_EACH_ISA(isa) if (direct_isa() != NULL) run_direct(&made);
                free_case(&made);
        }
}

Test(direct, large_inputs_in_groups_are_right_with_weights_in_and_beyond_the_cache)
{
        Sample sample = { 26 };
        Shape shapes[] = { { 2, 300, 40, 11, 20, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
                           { 2, 300, 40, 11, 20, { 1, 1 }, { 1, 2 }, { 0, 0 }, { 1, 1 } },
                           { 2, 1100, 40, 4, 17, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
                           { 2, 1100, 40, 8, 17, { 1, 1 }, { 2, 1 }, { 0, 0 }, { 1, 1 } } };
        for (size_t k = 0; k < ARRAY_LENGTH(shapes); k++) {
                Case made = make_case(&sample, &shapes[k], true);
                FOR_EACH_ISA(isa) if (direct_isa() != NULL) run_direct(&made);
                free_case(&made);
        }
}

Test(direct, clamps_let_nan_pass)
{
        Sample sample = { 23 };
        Shape shape = { 1, 4, 32, 6, 6, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } };
        Case made = make_case(&sample, &shape, true);
        made.clamp = (DirectClamp){ .on = true, .low = 0, .high = 6 };
        made.input[0] = NAN;
        FOR_EACH_ISA(isa)
        {
                DirectConv *direct;
                RunContext ctx;
                run_context_init(&ctx);
                if (direct_isa() == NULL)
                        continue;
                cr_assert_eq(direct_conv_new(&made.conv, PRECISION_F32, &made.clamp, &direct), STATUS_OK);
                cr_assert_eq(direct_conv_run(direct, &ctx, made.input, made.residual, made.out, NULL),
                             STATUS_OK);
                for (int c = 0; c < 32; c++)
                        cr_assert(isnan(made.out[c]) && !isnan(made.out[32 + c]));
                direct_conv_free(direct);
        }
        free_case(&made);
}

Test(direct, refuses_what_it_is_not_made_for)
{
        Sample sample = { 24 };
        Shape shape = { 1, 4, 32, 6, 6, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
        for (int what = 0; what < 4; what++) {
                Case made = make_case(&sample, &shape, true);
                DirectConv *direct = NULL;
                if (what == 0)
                        made.conv.groups = 2;
                else if (what == 1)
                        made.conv.out = image_meta(made.conv.out.size, false);
                else if (what == 2)
                        made.conv.epilogue.add_out = true;
                else
                        made.conv.padding[0] = 3;
                cr_assert_eq(direct_conv_new(&made.conv, PRECISION_F32, &made.clamp, &direct), STATUS_OK);
                cr_assert_null(direct, "case %d", what);
                free_case(&made);
        }
}

Test(direct, a_frame_out_of_proportion_to_the_image_is_not_copied)
{
        // bytes that overflow, that are too many, that are nothing to speak of
        static const int64_t reaches[] = { 536870896, 2000, 33 };
        Sample sample = { 25 };
        for (size_t i = 0; i < ARRAY_LENGTH(reaches); i++) {
                int64_t reach = reaches[i];
                Shape shape = { 1,
                                16,
                                64,
                                16,
                                16,
                                { 2, 2 },
                                { 1, 1 },
                                { reach / 2, reach / 2 },
                                { reach + 1, reach + 1 } };
                Case made = make_case(&sample, &shape, true);
                DirectConv *direct = NULL;
                DnnlPrimitive *primitive = NULL;
                cr_assert_eq(direct_conv_new(&made.conv, PRECISION_F32, &made.clamp, &direct), STATUS_OK);
                cr_assert_eq(direct != NULL, i == 2 && direct_isa() != NULL, "reach %ld", (long)reach);
                cr_assert_eq(dnnl_conv_new(&made.conv, &primitive), STATUS_OK);
                cr_assert(i > 0 || primitive == NULL);
                dnnl_primitive_free(primitive);
                direct_conv_free(direct);
                free_case(&made);
        }
}

Test(direct, products_of_planes_are_chains_too)
{
        Sample sample = { 25 };
        FOR_EACH_ISA(isa)
        {
                int64_t n_planes = 3, n_k = 2 * PLANES_BLOCK + 37, n_columns = 64, n_rows = 29;
                float *a = random_floats(&sample, n_planes * n_rows * n_k),
                      *b = random_floats(&sample, n_planes * n_k * n_columns),
                      *out = guarded_new((size_t)(n_planes * n_rows * n_columns) * sizeof(float));
                DirectPlanes planes = { .n_planes = n_planes,
                                        .n_taps = 1,
                                        .groups = { 1, n_k, n_columns },
                                        .n_columns = n_columns,
                                        .b = b,
                                        .source = { .data = b },
                                        .format = "plain" };
                DirectProducts *products;
                RunContext ctx;
                run_context_init(&ctx);
                if (direct_isa() != NULL) {
                        cr_assert_eq(direct_products_new(&planes, &products), STATUS_OK);
                        cr_assert_not_null(products);
                        DirectRows rows = { n_rows, a, out, n_rows * n_k, n_rows * n_columns, 0 };
                        cr_assert_eq(direct_products_run(products, &ctx, &rows), STATUS_OK);
                        for (int64_t i = 0; i < n_planes * n_rows * n_columns; i++) {
                                int64_t p = i / n_columns / n_rows;
                                Chain want = chain_begin(0, NULL, n_k, PLANES_BLOCK);
                                for (int64_t k = 0; k < n_k; k++)
                                        chain_add(&want, a[i / n_columns * n_k + k],
                                                  b[(p * n_k + k) * n_columns + i % n_columns]);
                                cr_assert_eq(out[i], chain_end(&want));
                        }
                        direct_products_free(products);
                }
                guarded_check(a, (size_t)(n_planes * n_rows * n_k) * sizeof(float));
                guarded_check(b, (size_t)(n_planes * n_k * n_columns) * sizeof(float));
                guarded_check(out, (size_t)(n_planes * n_rows * n_columns) * sizeof(float));
        }
}

// ---- depthwise ----
static void run_depthwise(Case *made)
{
        Depthwise *depthwise;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = made->conv.n_threads;
        cr_assert_eq(depthwise_new(&made->conv, &made->clamp, &depthwise), STATUS_OK);
        cr_assert_not_null(depthwise);
        memset(made->out, 0xff, (size_t)meta_numel(&made->conv.out) * sizeof(float));
        cr_assert_eq(depthwise_run(depthwise, &ctx, made->input, made->residual, made->out), STATUS_OK);
        check_case(made, depthwise_name(depthwise), true);
        depthwise_free(depthwise);
}

static void make_depthwise(Case *made)
{
        made->conv.groups = made->conv.out.size[1];
        made->conv.weight.size[1] = 1;
        made->conv.weight.stride[0] = made->conv.weight.stride[1];
}

Test(depthwise, every_result_is_one_chain_of_multiply_adds_on_either_instruction_set)
{
        Sample sample = { 31 };
        for (int round = 0; round < 160; round++) {
                Shape shape = { .n = sample_int(&sample, 1, 2),
                                .n_in = sample_int(&sample, 2, 70),
                                .height = sample_int(&sample, 1, 20),
                                .width = sample_int(&sample, 1, 33) };
                shape.n_out = shape.n_in;
                for (int i = 0; i < 2; i++) {
                        shape.kernel[i] = sample_int(&sample, 1, 7);
                        shape.stride[i] = sample_int(&sample, 1, 3);
                        shape.dilation[i] = sample_int(&sample, 1, 2);
                        shape.padding[i] =
                                (shape.kernel[i] - 1) * shape.dilation[i] + sample_int(&sample, 0, 1);
                        shape.padding[i] -= sample_int(&sample, 0,
                                                       i == 0 ? MIN(shape.height, shape.padding[i])
                                                              : MIN(shape.width, shape.padding[i])) /
                                            2;
                }
                Case made = make_case(&sample, &shape, true);
                int64_t n_weights = meta_numel(&made.conv.weight);
                make_depthwise(&made);
                FOR_EACH_ISA(isa) if (direct_isa() != NULL) run_depthwise(&made);
                made.conv.weight.size[1] = n_weights / made.conv.weight.size[0] / made.conv.weight.size[2] /
                                           made.conv.weight.size[3];
                free_case(&made);
        }
}

Test(depthwise, packed_weights_are_shared_by_those_made_of_the_same_constant)
{
        Sample sample = { 33 };
        Shape shape = { 1, 8, 8, 6, 6, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
        Case made = make_case(&sample, &shape, true);
        int64_t n_in = made.conv.weight.size[1];
        PackCache *cache;
        Storage *place;
        Depthwise *first, *second;
        make_depthwise(&made);
        cr_assert_eq(pack_cache_open(&cache), STATUS_OK);
        cr_assert_eq(storage_new(64, true, NULL, &place), STATUS_OK); // stands for what the weight lies in
        made.conv.share = (PackShare){ .cache = cache, .storage = place };
        cr_assert_eq(depthwise_new(&made.conv, &made.clamp, &first), STATUS_OK);
        cr_assert_eq(depthwise_new(&made.conv, &made.clamp, &second), STATUS_OK);
        if (first != NULL) { // the CPU has the instructions
                cr_assert_eq(pack_cache_stats(cache).n_entries, 1);
                cr_assert_eq(pack_cache_stats(cache).bytes, 9 * 16 * sizeof(float));
        }
        depthwise_free(first);
        depthwise_free(second);
        cr_assert_eq(pack_cache_stats(cache).n_entries, 0);
        pack_cache_close(cache);
        storage_unref(place);
        made.conv.weight.size[1] = n_in;
        free_case(&made);
}

Test(depthwise, refuses_what_it_is_not_made_for)
{
        Sample sample = { 32 };
        Shape shape = { 1, 8, 8, 6, 6, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
        for (int what = 0; what < 3; what++) {
                Case made = make_case(&sample, &shape, true);
                Depthwise *depthwise = NULL;
                if (what == 0)
                        made.conv.groups = 4;
                else if (what == 1)
                        made.conv.input = image_meta(made.conv.input.size, false);
                else
                        made.conv.out = image_meta(made.conv.out.size, false);
                made.conv.groups = what == 0 ? 4 : 8;
                cr_assert_eq(depthwise_new(&made.conv, &made.clamp, &depthwise), STATUS_OK);
                cr_assert_null(depthwise, "case %d", what);
                free_case(&made);
        }
}

// ---- winograd ----
static Case winograd_case(Sample *sample, int64_t n_in, int64_t n_out)
{
        Shape shape = { sample_int(sample, 1, 2),
                        n_in,
                        n_out,
                        sample_int(sample, 7, 22),
                        sample_int(sample, 7, 22),
                        { 3, 3 },
                        { 1, 1 },
                        { 0, 0 },
                        { 1, 1 } };
        shape.padding[0] = sample_int(sample, 0, 2);
        shape.padding[1] = sample_int(sample, 0, 2);
        return make_case(sample, &shape, true);
}

Test(winograd, agrees_with_plain_sums_and_its_errors_stay_small)
{
        Sample sample = { 14 };
        for (int round = 0; round < 16; round++) {
                Case made = winograd_case(&sample, sample_int(&sample, 16, 80), sample_int(&sample, 16, 96));
                FOR_EACH_ISA(isa)
                {
                        run_winograd(&made, round % 2 == 0 ? 4 : 2);
                        if (direct_isa() != NULL)
                                check_case(&made, "winograd", false);
                }
                free_case(&made);
        }
}

// Images larger than the weights: each thread has blocks of its own.
Test(winograd, has_the_same_bits_on_any_number_of_threads)
{
        Sample sample = { 15 };
        Shape shape = { 2, 32, 32, 45, 61, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
        Case made = make_case(&sample, &shape, true);
        size_t n = (size_t)meta_numel(&made.conv.out) * sizeof(float);
        float *one = malloc(n);
        FOR_EACH_ISA(isa)
        {
                for (made.conv.n_threads = 1; made.conv.n_threads <= 5; made.conv.n_threads++) {
                        memset(made.out, 0xff, n);
                        run_winograd(&made, 4);
                        if (made.conv.n_threads == 1)
                                memcpy(one, made.out, n);
                        cr_assert_eq(memcmp(one, made.out, n), 0, "%d threads", made.conv.n_threads);
                }
        }
        free(one);
        free_case(&made);
}

Test(winograd, keeps_infinity_and_nan_where_they_belong)
{
        Sample sample = { 16 };
        for (int step = 2; step <= 4; step += 2) {
                Case made = winograd_case(&sample, 32, 32);
                made.input[100] = INFINITY;
                made.input[700] = NAN;
                made.input[1003] = 3e38f;
                made.clamp.on = false;
                run_winograd(&made, step);
                int64_t n_finite = 0;
                for (int64_t i = 0; i < meta_numel(&made.conv.out); i++)
                        n_finite += isfinite(made.out[i]) != 0;
                if (direct_isa() != NULL)
                        cr_assert_geq(n_finite, meta_numel(&made.conv.out) - 3 * 9 * 32);
                free_case(&made);
        }
}

// Pixels that stand for "nothing here" in all channels: one of them, or all above and left of a
// diagonal.
static bool is_marker(int kind, int64_t y, int64_t x)
{
        return kind == 0 ? y == 4 && x == 5 : y + x < 9;
}

static bool sees_marker(const Case *made, int kind, int64_t row, int64_t column)
{
        bool sees = false;
        for (int64_t y = row - made->conv.padding[0]; y < row - made->conv.padding[0] + 3; y++)
                for (int64_t x = column - made->conv.padding[1]; x < column - made->conv.padding[1] + 3; x++)
                        sees |= y >= 0 && x >= 0 && y < made->conv.input.size[2] &&
                                x < made->conv.input.size[3] && is_marker(kind, y, x);
        return sees;
}

static void check_beside_markers(Sample *sample, int step, int kind, float marker)
{
        Case made = winograd_case(sample, 32, 32);
        const TensorMeta *in = &made.conv.input, *out = &made.conv.out;
        made.clamp.on = false;
        for (int64_t i = 0; i < meta_numel(in); i++) {
                if (is_marker(kind, i / 32 / in->size[3] % in->size[2], i / 32 % in->size[3]))
                        made.input[i] = marker;
        }
        run_winograd(&made, step);
        for (int64_t i = 0; i < meta_numel(out) && direct_isa() != NULL; i++) {
                int64_t at[] = { i / 32 / out->size[3] / out->size[2], i % 32,
                                 i / 32 / out->size[3] % out->size[2], i / 32 % out->size[3] };
                double want = wanted_at(&made, at).exact;
                if (!sees_marker(&made, kind, at[2], at[3]))
                        cr_assert(close_enough_sum(DTYPE_F32, (double)made.out[i], want, 288),
                                  "step %d, marker %g: %.9g instead of %.9g", step, (double)marker,
                                  (double)made.out[i], want);
        }
        free_case(&made);
}

Test(winograd, results_that_do_not_see_a_large_input_are_right_beside_those_that_do)
{
        static const float markers[] = { -9999, 1e6f, 1e10f, 20 };
        Sample sample = { 17 };
        for (int i = 0; i < 16; i++)
                check_beside_markers(&sample, i % 2 == 0 ? 4 : 2, i / 2 % 2, markers[i / 4]);
}

// A pixel far larger than the others, and an output channel with far larger weights than those that
// the guard looks at by their place: its errors are the largest.
Test(winograd, the_channel_with_the_largest_weights_decides_which_inputs_are_uneven)
{
        Sample sample = { 18 };
        Case made = winograd_case(&sample, 32, 32);
        const TensorMeta *in = &made.conv.input, *out = &made.conv.out;
        made.clamp.on = false;
        for (int64_t i = 0; i < 32 * 32 * 9; i++)
                made.weight[i] *= i / 32 / 9 == 1 ? 100 : 0.01f;
        for (int64_t i = 0; i < meta_numel(in); i++)
                made.input[i] *= i / 32 == 7 ? 1 : 1e-3f;
        run_winograd(&made, 4);
        for (int64_t i = 1; i < meta_numel(out) && direct_isa() != NULL; i += 32) {
                int64_t at[] = { i / 32 / out->size[3] / out->size[2], 1,
                                 i / 32 / out->size[3] % out->size[2], i / 32 % out->size[3] };
                double want = wanted_at(&made, at).exact;
                cr_assert(close_enough_sum(DTYPE_F32, (double)made.out[i], want, 288), "%.9g instead of %.9g",
                          (double)made.out[i], want);
        }
        free_case(&made);
}

// At that side of an image, results do not have these taps, but their rounding errors.
Test(winograd, weights_with_far_larger_taps_at_one_side_are_left_alone)
{
        for (int side = 0; side < 5; side++) {
                Sample sample = { 19 };
                Case made = winograd_case(&sample, 32, 32);
                Winograd *winograd;
                for (int64_t i = 0; i < 32 * 32 * 9; i++) {
                        int64_t row = i / 3 % 3, column = i % 3;
                        bool large = side == 0   ? row == 0
                                     : side == 1 ? row == 2
                                     : side == 2 ? column == 0
                                                 : side == 3 && column == 2;
                        made.weight[i] *= large ? 100 : 1;
                }
                cr_assert_eq(winograd_new(&made.conv, &made.clamp, 4, &winograd), STATUS_OK);
                cr_expect((winograd != NULL) == (side == 4 && direct_isa() != NULL), "side %d", side);
                winograd_free(winograd);
                free_case(&made);
        }
}

Test(winograd, weights_that_would_grow_too_large_are_left_alone)
{
        static const struct {
                int64_t channels;
                int step;
        } cases[] = { { 1024, 4 }, { 2048, 2 }, { 4096, 0 } };
        for (size_t i = 0; i < ARRAY_LENGTH(cases) && direct_isa() != NULL; i++) {
                int64_t n = cases[i].channels;
                DnnlConv conv = { .input = image_meta((int64_t[]){ 1, n, 16, 16 }, true),
                                  .out = image_meta((int64_t[]){ 1, n, 16, 16 }, true),
                                  .stride = { 1, 1 },
                                  .padding = { 1, 1 },
                                  .dilation = { 1, 1 },
                                  .groups = 1 };
                meta_init(&conv.weight, DTYPE_F32, 4, (int64_t[]){ n, n, 3, 3 });
                cr_assert_eq(winograd_rule(&conv), cases[i].step, "%ld channels", (long)n);
        }
}

Test(winograd, refuses_what_it_is_not_made_for)
{
        Sample sample = { 15 };
        for (int what = 0; what < 7; what++) {
                Case made = winograd_case(&sample, 32, 32);
                Winograd *winograd = NULL;
                if (what == 0)
                        made.conv.stride[1] = 2;
                else if (what == 1)
                        made.conv.dilation[0] = 2;
                else if (what == 2)
                        made.conv.input = image_meta(made.conv.input.size, false);
                else if (what == 3)
                        made.conv.epilogue.add_out = true;
                else if (what == 4)
                        made.weight[7] = NAN; // no accuracy to speak of
                else if (what == 5)
                        made.conv.weight.size[1] = 15;
                else
                        made.conv.out.size[3]++;
                cr_assert_eq(winograd_new(&made.conv, &made.clamp, 4, &winograd), STATUS_OK);
                cr_assert_null(winograd, "case %d", what);
                made.conv.out.size[3] -= what == 6;
                made.conv.weight.size[1] = 32;
                free_case(&made);
        }
}
