// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit levels, those of all channels and depthwise ones: every result bit by bit
// against the formula of levels_tile.h, on each instruction set, for random kernels, strides,
// paddings and dilations; the largest sums; what is declined.
#include "core/kernels/conv/levels_depthwise.h"
#include "tests/kernels/sample.h"

typedef enum Added { ADDED_NOTHING, ADDED_FLOATS, ADDED_LEVELS } Added;

typedef struct Case {
        LevelsImages images;
        Added added;
        uint8_t *in, *levels;
        int8_t *weights;
        float *scales, *bias, *residual;
        void *out;
        size_t in_bytes, weight_bytes, n_out, out_bytes;
} Case;

static float *random_floats(Sample *sample, size_t n, double by)
{
        float *data = guarded_new(n * sizeof(float));
        for (size_t i = 0; i < n; i++)
                data[i] = (float)(sample_double(sample) * by);
        return data;
}

static void *random_bytes(Sample *sample, size_t n)
{
        uint8_t *data = guarded_new(n);
        for (size_t i = 0; i < n; i++)
                data[i] = (uint8_t)sample_int(sample, 0, 255);
        return data;
}

static TensorMeta image_meta(Dtype dtype, const int64_t size[4], bool last)
{
        TensorMeta meta;
        meta_init(&meta, dtype, 4, size);
        if (last)
                meta_set_channels_last(&meta);
        return meta;
}

typedef struct Shape {
        int64_t batch, in, out, size[2], kernel[2];
        bool plain;     // no padding, stride or dilation
        bool depthwise; // `out` is `in`
} Shape;

static void set_windows(Sample *sample, const Shape *shape, LevelsImages *images)
{
        int64_t out[4] = { shape->batch, shape->out };
        for (int i = 0; i < 2; i++) {
                int64_t behind = shape->plain ? 0 : sample_int(sample, 0, 3);
                images->stride[i] = shape->plain ? 1 : sample_int(sample, 1, 3);
                images->dilation[i] = shape->plain ? 1 : sample_int(sample, 1, 2);
                images->padding[i] = shape->plain ? 0 : sample_int(sample, 0, 3);
                int64_t reach = (shape->kernel[i] - 1) * images->dilation[i] + 1,
                        padded = MAX(shape->size[i] + images->padding[i] + behind, reach);
                out[2 + i] = (padded - reach) / images->stride[i] + 1;
        }
        Dtype dtype = sample_int(sample, 0, 2) == 0 ? DTYPE_F32 : DTYPE_U8;
        images->out = image_meta(dtype, out, true);
        images->as = (LevelsOut){ .low = -INFINITY, .high = INFINITY };
        images->as.bytes = dtype == DTYPE_U8;
        images->as.steps = (LevelsSteps){ 20, (float)sample_int(sample, 0, 127), 3, 120 };
        if (sample_int(sample, 0, 1) == 0)
                images->as.low = 0;
        if (sample_int(sample, 0, 2) == 0)
                images->as.high = 3;
}

static Case make_case(Sample *sample, const Shape *shape)
{
        Dtype dtype = sample_int(sample, 0, 1) == 0 ? DTYPE_U8 : DTYPE_I8;
        Case made = { .added = (Added)sample_int(sample, 0, 2) };
        LevelsImages *images = &made.images;
        images->input = image_meta(
                dtype, (int64_t[]){ shape->batch, shape->in, shape->size[0], shape->size[1] }, true);
        images->weight = image_meta(DTYPE_I8,
                                    (int64_t[]){ shape->out, shape->depthwise ? 1 : shape->in,
                                                 shape->kernel[0], shape->kernel[1] },
                                    sample_int(sample, 0, 1) != 0);
        set_windows(sample, shape, images);
        images->zero =
                (int32_t)(dtype == DTYPE_I8 ? sample_int(sample, -128, 127) : sample_int(sample, 0, 255));
        images->scale = 0.03f;
        images->residual = (LevelsResidual){ .is_signed = sample_int(sample, 0, 1) != 0,
                                             .zero = (int32_t)sample_int(sample, 0, 127),
                                             .scale = 0.011f };
        images->n_threads = (int)sample_int(sample, 1, 2);
        made.in_bytes = (size_t)meta_numel(&images->input);
        made.weight_bytes = (size_t)meta_numel(&images->weight);
        made.n_out = (size_t)meta_numel(&images->out);
        made.out_bytes = made.n_out * (images->as.bytes ? 1 : sizeof(float));
        made.in = random_bytes(sample, made.in_bytes);
        images->weights = made.weights = random_bytes(sample, made.weight_bytes);
        images->column_scale = made.scales = random_floats(sample, (size_t)shape->out, 0.01);
        made.bias = random_floats(sample, (size_t)shape->out, 1);
        images->bias = sample_int(sample, 0, 1) == 0 ? NULL : made.bias;
        made.residual = random_floats(sample, made.n_out, 1);
        made.levels = random_bytes(sample, made.n_out);
        made.out = guarded_new(made.out_bytes);
        return made;
}

static void free_case(Case *made)
{
        guarded_check(made->in, made->in_bytes);
        guarded_check(made->weights, made->weight_bytes);
        guarded_check(made->scales, (size_t)made->images.weight.size[0] * sizeof(float));
        guarded_check(made->bias, (size_t)made->images.weight.size[0] * sizeof(float));
        guarded_check(made->residual, made->n_out * sizeof(float));
        guarded_check(made->levels, made->n_out);
        guarded_check(made->out, made->out_bytes);
}

static int64_t place(const TensorMeta *meta, int64_t n, int64_t c, int64_t y, int64_t x)
{
        return n * meta->stride[0] + c * meta->stride[1] + y * meta->stride[2] + x * meta->stride[3];
}

static int64_t exact_sum(const LevelsImages *images, const uint8_t *in, const int64_t at[4])
{
        const TensorMeta *weight = &images->weight, *input = &images->input;
        int64_t sum = 0, first = weight->size[1] < input->size[1] ? at[1] : 0;
        for (int64_t c = 0; c < weight->size[1]; c++)
                for (int64_t i = 0; i < weight->size[2]; i++)
                        for (int64_t j = 0; j < weight->size[3]; j++) {
                                int64_t y = at[2] * images->stride[0] - images->padding[0] +
                                            i * images->dilation[0],
                                        x = at[3] * images->stride[1] - images->padding[1] +
                                            j * images->dilation[1];
                                if (y < 0 || x < 0 || y >= input->size[2] || x >= input->size[3])
                                        continue;
                                uint8_t level = in[place(input, at[0], first + c, y, x)];
                                int64_t value = input->dtype == DTYPE_I8 ? (int8_t)level : level;
                                sum += (value - images->zero) *
                                       images->weights[place(weight, at[1], c, i, j)];
                        }
        return sum;
}

static float expected(const Case *made, const int64_t at[4], int64_t to)
{
        const LevelsImages *images = &made->images;
        const LevelsOut *as = &images->as;
        float x = fmaf((float)exact_sum(images, made->in, at) * images->scale, made->scales[at[1]],
                       images->bias == NULL ? 0 : images->bias[at[1]]);
        int level = images->residual.is_signed ? (int8_t)made->levels[to] : made->levels[to];
        if (made->added == ADDED_FLOATS)
                x += made->residual[to];
        if (made->added == ADDED_LEVELS)
                x += (float)(level - images->residual.zero) * images->residual.scale;
        x = fminf(fmaxf(x, as->low), as->high);
        return !as->bytes ? x
                          : fminf(fmaxf(rintf(x * as->steps.inverse) + as->steps.zero, as->steps.least),
                                  as->steps.most);
}

static void check_case(const Case *made)
{
        const LevelsImages *images = &made->images;
        const int64_t *size = images->out.size;
        for (int64_t i = 0; i < (int64_t)made->n_out; i++) {
                int64_t at[4] = { i / (size[1] * size[2] * size[3]), i / (size[2] * size[3]) % size[1],
                                  i / size[3] % size[2], i % size[3] };
                int64_t to = place(&images->out, at[0], at[1], at[2], at[3]);
                float want = expected(made, at, to),
                      got = images->as.bytes ? (float)((uint8_t *)made->out)[to] : ((float *)made->out)[to];
                cr_assert(got == want, "image %ld, channel %ld, pixel %ld,%ld is %g, expected %g",
                          (long)at[0], (long)at[1], (long)at[2], (long)at[3], (double)got, (double)want);
        }
}

static Status run_depthwise(const LevelsImages *images, const RunContext *ctx,
                            const LevelsConvOperands *operands)
{
        LevelsDepthwise *conv;
        TRY(levels_depthwise_new(images, &conv));
        cr_assert_eq(conv == NULL, isa_level() == ISA_PORTABLE);
        Status status = conv == NULL ? STATUS_OK : levels_depthwise_run(conv, ctx, operands);
        levels_depthwise_free(conv);
        return status;
}

static Status run_conv(const LevelsImages *images, const RunContext *ctx, LevelsConvOperands *operands)
{
        LevelsConv *conv;
        TRY(levels_conv_new(images, &conv));
        cr_assert_eq(conv == NULL, isa_level() == ISA_PORTABLE);
        if (conv == NULL)
                return STATUS_OK;
        size_t n_scratch = levels_conv_scratch(conv);
        operands->scratch = guarded_new(n_scratch);
        Status status = levels_conv_run(conv, ctx, operands);
        levels_conv_free(conv);
        guarded_check(operands->scratch, n_scratch);
        return status;
}

static void run_case(Case *made)
{
        const LevelsImages *images = &made->images;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = images->n_threads;
        LevelsConvOperands operands = { .in = made->in,
                                        .residual = made->added == ADDED_FLOATS ? made->residual : NULL,
                                        .residual_levels = made->added == ADDED_LEVELS ? made->levels : NULL,
                                        .out = made->out };
        bool depthwise = images->weight.size[1] < images->input.size[1];
        cr_assert_eq(depthwise ? run_depthwise(images, &ctx, &operands) : run_conv(images, &ctx, &operands),
                     STATUS_OK);
        if (isa_level() != ISA_PORTABLE)
                check_case(made);
}

Test(levels_conv, every_result_is_the_exact_sum_with_its_scales)
{
        Sample sample = { 61 };
        FOR_EACH_ISA(isa)
        {
                for (int i = 0; i < 150; i++) {
                        Shape shape = { .batch = sample_int(&sample, 1, 2),
                                        .in = sample_int(&sample, 1, 9),
                                        .out = sample_int(&sample, 1, 70),
                                        .size = { sample_int(&sample, 1, 9), sample_int(&sample, 1, 33) },
                                        .kernel = { sample_int(&sample, 1, 4), sample_int(&sample, 1, 4) } };
                        Case made = make_case(&sample, &shape);
                        run_case(&made);
                        free_case(&made);
                }
                // several groups of rows, pixels that follow each other
                Shape large = { 1, 64, 40, { 70, 70 }, { 1, 1 }, true, false };
                Case made = make_case(&sample, &large);
                run_case(&made);
                free_case(&made);
        }
}

Test(levels_conv, each_channel_has_a_kernel_of_its_own)
{
        // strips that are full, windows that lie apart, panels of one vector, many kernel rows
        static const Shape shapes[] = {
                { 1, 96, 96, { 5, 300 }, { 3, 3 }, true, true },
                { 2, 37, 37, { 9, 270 }, { 1, 5 }, false, true },
                { 1, 48, 48, { 40, 9 }, { 33, 2 }, false, true },
                { 1, 3, 3, { 1, 1 }, { 1, 1 }, true, true },
                { 2, 16, 16, { 128, 3 }, { 128, 1 }, false, true },
                { 1, 8, 8, { 2, 128 }, { 2, 128 }, true, true },
        };
        Sample sample = { 65 };
        FOR_EACH_ISA(isa)
        {
                for (int i = 0; i < 200; i++) {
                        int64_t channels = sample_int(&sample, 2, 70);
                        Shape shape = { .batch = sample_int(&sample, 1, 2),
                                        .in = channels,
                                        .out = channels,
                                        .size = { sample_int(&sample, 1, 9), sample_int(&sample, 1, 33) },
                                        .kernel = { sample_int(&sample, 1, 6), sample_int(&sample, 1, 6) },
                                        .depthwise = true };
                        if (i < (int)ARRAY_LENGTH(shapes))
                                shape = shapes[i];
                        Case made = make_case(&sample, &shape);
                        run_case(&made);
                        free_case(&made);
                }
        }
}

Test(levels_conv, windows_that_are_far_apart_read_only_their_own_pixels)
{
        Sample sample = { 66 };
        FOR_EACH_ISA(isa)
        for (int64_t far = 3; far < 400; far *= 5) {
                Shape shape = { 1, 20, 20, { 5, 900 }, { 2, 2 }, true, true };
                Case made = make_case(&sample, &shape);
                made.images.stride[1] = far;
                made.images.dilation[1] = 401 - far;
                made.images.padding[1] = 200;
                int64_t n = (900 + 250 - (401 - far) - 1) / far + 1;
                made.images.out = image_meta(made.images.out.dtype, (int64_t[]){ 1, 20, 4, n }, true);
                cr_assert_leq((size_t)meta_numel(&made.images.out), made.n_out);
                made.n_out = (size_t)meta_numel(&made.images.out);
                run_case(&made);
                made.n_out = 20 * 4 * 899;
                free_case(&made);
        }
}

Test(levels_conv, the_largest_sums_do_not_saturate)
{
        Sample sample = { 62 };
        Shape shape = { 1, LEVELS_MOST_TERMS / 4, 3, { 2, 2 }, { 2, 2 }, true, false };
        FOR_EACH_ISA(isa)
        for (int is_signed = 0; is_signed <= 1; is_signed++) {
                Case made = make_case(&sample, &shape);
                made.images.input.dtype = is_signed != 0 ? DTYPE_I8 : DTYPE_U8;
                made.images.zero = is_signed != 0 ? -128 : 0;
                memset(made.in, is_signed != 0 ? 127 : 255, made.in_bytes);
                memset(made.weights, -128, made.weight_bytes);
                run_case(&made);
                free_case(&made);
        }
}

Test(levels_conv, strides_of_dimensions_of_size_1_are_arbitrary)
{
        Sample sample = { 64 };
        Shape mask = { 2, 4, 1, { 6, 6 }, { 1, 1 }, true, false },
              pixels = { 3, 8, 8, { 1, 1 }, { 1, 1 }, true, false };
        FOR_EACH_ISA(isa)
        {
                Case made = make_case(&sample, &mask);
                meta_set_contiguous(&made.images.out);
                run_case(&made);
                free_case(&made);
                made = make_case(&sample, &pixels);
                meta_set_contiguous(&made.images.input);
                meta_set_contiguous(&made.images.out);
                run_case(&made);
                free_case(&made);
        }
}

static void expect_declined(const LevelsImages *images)
{
        LevelsConv *conv = (void *)(uintptr_t)images;
        cr_assert_eq(levels_conv_new(images, &conv), STATUS_OK);
        cr_assert_null(conv);
}

static void expect_declined_depthwise(const LevelsImages *images)
{
        LevelsDepthwise *conv = (void *)(uintptr_t)images;
        cr_assert_eq(levels_depthwise_new(images, &conv), STATUS_OK);
        cr_assert_null(conv);
}

Test(levels_conv, sums_that_may_not_fit_and_other_layouts_are_declined)
{
        Sample sample = { 63 };
        Shape many = { 1, LEVELS_MOST_TERMS + 1, 1, { 1, 1 }, { 1, 1 }, true, false },
              some = { 1, 4, 4, { 5, 5 }, { 3, 3 }, true, false };
        Case made = make_case(&sample, &many);
        expect_declined(&made.images);
        free_case(&made);
        made = make_case(&sample, &some);
        LevelsImages rows = made.images;
        meta_set_contiguous(&rows.input);
        expect_declined(&rows);
        LevelsImages far = made.images; // a frame of zeros that would not fit any memory
        far.dilation[0] = far.dilation[1] = INT32_MAX;
        expect_declined(&far);
        free_case(&made);
        Shape each = { 1, 4, 4, { 9, 129 }, { 9, 129 }, true, true };
        made = make_case(&sample, &each);
        expect_declined_depthwise(&made.images);
        rows = made.images;
        rows.weight = image_meta(DTYPE_I8, (int64_t[]){ 4, 1, 1, 1 }, true);
        rows.weights = made.weights;
        meta_set_contiguous(&rows.input);
        expect_declined_depthwise(&rows);
        free_case(&made);
}
