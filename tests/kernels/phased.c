// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions in phases, against sums in double over all taps of all inputs.
#include "core/kernels/conv/phased.h"
#include "tests/kernels/conv_case.h"

// make_case's, turned: the weight is [channels in, channels out, taps, taps], `padding` as the
// argument of the transposed convolution.
static Case make_transposed(Sample *sample, const Shape *shape, const int64_t output_padding[2])
{
        Case made = { .conv = { .groups = 1, .n_threads = (int)sample_int(sample, 1, 2) } };
        DnnlConv *conv = &made.conv;
        int64_t in[4] = { shape->n, shape->n_in, shape->height, shape->width },
                out[4] = { shape->n, shape->n_out };
        for (int i = 0; i < 2; i++) {
                conv->stride[i] = shape->stride[i];
                conv->padding[i] = shape->padding[i];
                conv->dilation[i] = shape->dilation[i];
                out[2 + i] = (in[2 + i] - 1) * shape->stride[i] - 2 * shape->padding[i] +
                             (shape->kernel[i] - 1) * shape->dilation[i] + output_padding[i] + 1;
        }
        conv->input = image_meta(in, true);
        conv->out = image_meta(out, true);
        meta_init(&conv->weight, DTYPE_F32, 4,
                  (int64_t[]){ shape->n_in, shape->n_out, shape->kernel[0], shape->kernel[1] });
        made.input = random_floats(sample, meta_numel(&conv->input));
        made.weight = random_floats(sample, meta_numel(&conv->weight));
        made.out = guarded_new((size_t)meta_numel(&conv->out) * sizeof(float));
        conv->weight_data = made.weight;
        if (sample_int(sample, 0, 1) == 0)
                conv->bias_data = made.bias = random_floats(sample, shape->n_out);
        // some images as they are without a layout pass
        if (sample_int(sample, 0, 3) == 0)
                meta_set_contiguous(&conv->input);
        if (sample_int(sample, 0, 3) == 0)
                meta_set_contiguous(&conv->out);
        return made;
}

// The result at `at`, and how many products it is.
static double wanted(const Case *made, const int64_t at[4], int64_t *out_terms)
{
        const DnnlConv *conv = &made->conv;
        const TensorMeta *in = &conv->input, *weight = &conv->weight;
        double sum = made->bias == NULL ? 0 : (double)made->bias[at[1]];
        *out_terms = 1;
        for (int64_t y = 0; y < in->size[2]; y++)
                for (int64_t x = 0; x < in->size[3]; x++) {
                        int64_t tap[2] = { at[2] + conv->padding[0] - y * conv->stride[0],
                                           at[3] + conv->padding[1] - x * conv->stride[1] };
                        bool meets = true;
                        for (int i = 0; i < 2; i++) {
                                meets &= tap[i] >= 0 && tap[i] % conv->dilation[i] == 0 &&
                                         tap[i] / conv->dilation[i] < weight->size[2 + i];
                                tap[i] /= conv->dilation[i];
                        }
                        for (int64_t c = 0; meets && c < in->size[1]; c++, ++*out_terms)
                                sum += (double)made->input[at[0] * in->stride[0] + c * in->stride[1] +
                                                           y * in->stride[2] + x * in->stride[3]] *
                                       (double)made
                                               ->weight[c * weight->stride[0] + at[1] * weight->stride[1] +
                                                        tap[0] * weight->stride[2] + tap[1]];
                }
        return sum;
}

static void check(const Case *made, const char *name)
{
        const TensorMeta *out = &made->conv.out;
        for (int64_t i = 0; i < meta_numel(out); i++) {
                int64_t at[4], left = i, terms;
                for (int d = 3; d >= 0; left /= out->size[d--])
                        at[d] = left % out->size[d];
                double want = wanted(made, at, &terms),
                       got = (double)made->out[at[0] * out->stride[0] + at[1] * out->stride[1] +
                                               at[2] * out->stride[2] + at[3] * out->stride[3]];
                cr_assert(close_enough_sum(DTYPE_F32, got, want, terms), "%s: %.9g instead of %.9g", name,
                          got, want);
        }
}

// false: there is none.
static bool run(const Case *made, const DnnlConv *conv, Precision precision, float *out)
{
        Phased *phased;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = conv->n_threads;
        cr_assert_eq(phased_new(conv, precision, &phased), STATUS_OK);
        if (phased == NULL)
                return false;
        size_t n = phased_scratch(phased);
        void *scratch = guarded_new(n);
        memset(scratch, 0xff, n); // NaN: nothing may be read that was not written
        memset(out, 0xff, (size_t)meta_numel(&conv->out) * sizeof(float));
        const DirectImages images = { .in = made->input, .out = out, .scratch = scratch };
        cr_assert_eq(phased_run(phased, &ctx, &images), STATUS_OK);
        guarded_check(scratch, n);
        phased_free(phased);
        return true;
}

static Shape random_shape(Sample *sample, int64_t output_padding[2])
{
        Shape shape = { .n = sample_int(sample, 1, 2),
                        .n_in = sample_int(sample, 1, 20),
                        .n_out = sample_int(sample, 1, 70),
                        .height = sample_int(sample, 1, 9),
                        .width = sample_int(sample, 1, 17) };
        for (int i = 0; i < 2; i++) {
                shape.kernel[i] = sample_int(sample, 1, 5);
                shape.stride[i] = sample_int(sample, 1, 3);
                shape.dilation[i] = sample_int(sample, 1, 2);
                int64_t reach = (shape.kernel[i] - 1) * shape.dilation[i];
                shape.padding[i] = sample_int(sample, 0, reach / 2);
                output_padding[i] = sample_int(sample, 0, MAX(shape.stride[i], shape.dilation[i]) - 1);
        }
        return shape;
}

Test(phased, every_result_is_the_sum_over_its_taps_on_each_instruction_set)
{
        Sample sample = { 61 };
        int n_run = 0, n_made = 0;
        for (int round = 0; round < 150; round++) {
                int64_t output_padding[2];
                Shape shape = random_shape(&sample, output_padding);
                Case made = make_transposed(&sample, &shape, output_padding);
                FOR_EACH_ISA(isa)
                {
                        bool ran = run(&made, &made.conv, PRECISION_F32, made.out);
                        n_made += isa != ISA_PORTABLE;
                        n_run += ran;
                        cr_assert(!ran || isa != ISA_PORTABLE);
                        if (ran)
                                check(&made, isa_name(isa));
                }
                free_case(&made);
        }
        cr_assert(n_run * 3 >= n_made, "%d of %d", n_run, n_made);
}

// Numbers of up to 1 and a step of 2 / 255 for each, and of up to 1 and a step of 2 / 254 for each
// weight: a product is at most so far off.
static void check_bytes(const Case *made)
{
        const TensorMeta *out = &made->conv.out;
        for (int64_t i = 0; i < meta_numel(out); i++) {
                int64_t at[4], left = i, terms;
                for (int d = 3; d >= 0; left /= out->size[d--])
                        at[d] = left % out->size[d];
                double want = wanted(made, at, &terms),
                       got = (double)made->out[at[0] * out->stride[0] + at[1] * out->stride[1] +
                                               at[2] * out->stride[2] + at[3] * out->stride[3]];
                cr_assert(fabs(got - want) <= 0.0081 * (double)terms, "int8: %.9g instead of %.9g, %ld terms",
                          got, want, (long)terms);
        }
}

static void round_all(float *data, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                data[i] = bf16_to_f32(f32_to_bf16(data[i]));
}

// Numbers that are bfloat16 already: sums are exact as in float32. The last image alone has the
// same bits in either precision.
Test(phased, less_precision_rounds_what_is_read_and_a_sample_keeps_its_bits_in_any_batch)
{
        Sample sample = { 62 };
        for (int round = 0; round < 60 && isa_level() == ISA_AVX512_BF16; round++) {
                int64_t output_padding[2];
                Shape shape = random_shape(&sample, output_padding);
                shape.n_in *= 4;
                Case made = make_transposed(&sample, &shape, output_padding);
                const DnnlConv *conv = &made.conv;
                size_t n_bytes = (size_t)meta_numel(&conv->out) * sizeof(float);
                float *all = guarded_new(n_bytes);
                round_all(made.input, meta_numel(&conv->input));
                round_all(made.weight, meta_numel(&conv->weight));
                for (Precision precision = PRECISION_BF16; precision < PRECISION_COUNT; precision++) {
                        if (!run(&made, conv, precision, made.out))
                                continue;
                        if (precision == PRECISION_BF16)
                                check(&made, "bfloat16");
                        else
                                check_bytes(&made);
                        memcpy(all, made.out, n_bytes);
                        Case one = made;
                        int64_t last = conv->input.size[0] - 1;
                        one.conv.input.size[0] = one.conv.out.size[0] = 1;
                        one.input += last * conv->input.stride[0];
                        cr_assert(run(&one, &one.conv, precision, made.out + last * conv->out.stride[0]));
                        cr_assert(memcmp(all, made.out, n_bytes) == 0, "precision %d", (int)precision);
                }
                guarded_check(all, n_bytes);
                free_case(&made);
        }
}

Test(phased, there_is_none_for_weights_that_are_not_finite_and_fewer_taps_than_the_stride)
{
        Sample sample = { 63 };
        for (int what = 0; what < 4; what++) {
                Shape shape = { 1, 6, 32, 6, 6, { 3, what == 1 ? 1 : 2 }, { 2, 2 }, { 1, 0 }, { 1, 1 } };
                Case made = make_transposed(&sample, &shape, (int64_t[]){ 0, 0 });
                if (what == 0)
                        made.weight[7] = INFINITY;
                cr_assert_eq(run(&made, &made.conv, PRECISION_F32, made.out),
                             what > 1 && isa_level() > ISA_PORTABLE, "case %d", what);
                free_case(&made);
        }
}
