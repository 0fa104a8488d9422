// SPDX-License-Identifier: Apache-2.0
// Direct convolutions of bfloat16 and of 8-bit integers: the latter against what they are said to
// be, bit by bit.
#include <float.h>
#include "core/kernels/pack_cache.h"
#include "core/kernels/product/narrow_tile.h"
#include "tests/kernels/conv_case.h"

static void index_of(const TensorMeta *meta, int64_t i, int64_t at[4])
{
        for (int d = 3; d >= 0; i /= meta->size[d--])
                at[d] = i % meta->size[d];
}

static int64_t offset_of(const TensorMeta *meta, const int64_t at[4])
{
        int64_t offset = 0;
        for (int d = 0; d < 4; d++)
                offset += at[d] * meta->stride[d];
        return offset;
}

// ---- bfloat16 ----
static void run_narrow(const Case *made, const DnnlConv *conv, Precision precision, const float *input,
                       float *out)
{
        DirectConv *direct;
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = conv->n_threads;
        cr_assert_eq(direct_conv_new(conv, precision, &made->clamp, &direct), STATUS_OK);
        cr_assert_not_null(direct);
        size_t n = direct_conv_scratch(direct);
        void *scratch = guarded_new(n);
        memset(scratch, 0xff, n);
        memset(out, 0xff, (size_t)meta_numel(&conv->out) * sizeof(float));
        const float *residual = made->residual == NULL ? NULL : made->residual + (out - made->out);
        cr_assert_eq(direct_conv_run(direct, &ctx, input, residual, out, scratch), STATUS_OK);
        guarded_check(scratch, n);
        direct_conv_free(direct);
}

static void round_all(float *data, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                data[i] = bf16_to_f32(f32_to_bf16(data[i]));
}

static void check_sums(const Case *made)
{
        const TensorMeta *out = &made->conv.out;
        int64_t at[4], terms = made->conv.weight.stride[0];
        for (int64_t i = 0; i < meta_numel(out); i++) {
                index_of(out, i, at);
                double want = wanted_at(made, at).exact, got = (double)made->out[offset_of(out, at)];
                cr_assert(close_enough_sum(DTYPE_F32, got, want, terms), "%.9g instead of %.9g", got, want);
        }
}

// Results of the rounded numbers; the same bits for numbers that are not rounded yet, and for the
// last image alone.
static void check_bf16(Case *made)
{
        const DnnlConv *conv = &made->conv;
        DnnlConv one = *conv;
        int64_t n_out = meta_numel(&conv->out), last = conv->input.size[0] - 1;
        float *first = guarded_new((size_t)n_out * sizeof(float));
        run_narrow(made, conv, PRECISION_BF16, made->input, made->out);
        memcpy(first, made->out, (size_t)n_out * sizeof(float));
        round_all(made->input, meta_numel(&conv->input));
        round_all(made->weight, meta_numel(&conv->weight));
        run_narrow(made, conv, PRECISION_BF16, made->input, made->out);
        cr_assert(memcmp(first, made->out, (size_t)n_out * sizeof(float)) == 0);
        check_sums(made);
        one.input.size[0] = one.out.size[0] = 1;
        int64_t at = last * conv->out.stride[0];
        run_narrow(made, &one, PRECISION_BF16, made->input + last * conv->input.stride[0], made->out + at);
        cr_assert(memcmp(first, made->out, (size_t)n_out * sizeof(float)) == 0);
        guarded_check(first, (size_t)n_out * sizeof(float));
}

Test(narrow_conv, bfloat16_rounds_input_and_weights_and_a_sample_keeps_its_bits_in_any_batch)
{
        Sample sample = { 26 };
        for (int round = 0; round < 60 && isa_level() == ISA_AVX512_BF16; round++) {
                Shape shape = { .n = sample_int(&sample, 1, 3),
                                .n_in = 2 * sample_int(&sample, 1, 12),
                                .n_out = sample_int(&sample, 1, 70),
                                .height = sample_int(&sample, 5, 20),
                                .width = sample_int(&sample, 5, 33) };
                for (int i = 0; i < 2; i++) {
                        shape.kernel[i] = sample_int(&sample, 1, 3);
                        shape.stride[i] = sample_int(&sample, 1, 3);
                        shape.dilation[i] = sample_int(&sample, 1, 2);
                        shape.padding[i] = sample_int(&sample, 0, (shape.kernel[i] - 1) * shape.dilation[i]);
                }
                if (round % 4 == 0 && shape.kernel[0] * shape.kernel[1] > 1)
                        shape.n_in = 3; // has a fourth one
                Case made = make_case(&sample, &shape, true);
                check_bf16(&made);
                free_case(&made);
        }
}

// ---- 8-bit integers ----
// How the numbers of one image, or of one pixel, are rounded: to whole numbers from 0 to 255.
typedef struct Bytes {
        float scale, offset, shrink, low, steps;
        int zero;
} Bytes;

static bool is_one_pixel(const DnnlConv *conv)
{
        return conv->weight.size[2] == 1 && conv->weight.size[3] == 1;
}

static Bytes bytes_of(const float *from, int64_t n, bool pixel)
{
        float low = pixel ? from[0] : 0, high = low;
        bool finite = true;
        for (int64_t i = 0; i < n; i++) {
                finite &= isfinite(from[i]) != 0;
                low = fminf(low, from[i]);
                high = fmaxf(high, from[i]);
        }
        Bytes bytes = { .scale = NAN, .offset = NAN, .shrink = 1 };
        if (!finite)
                return bytes;
        if (!pixel) {
                bytes.scale = high / 255 - low / 255;
                bytes.steps = 1 / bytes.scale;
                if (isinf(bytes.steps))
                        bytes.scale = bytes.steps = 0;
                bytes.zero = (int)lrintf(-low * bytes.steps);
                bytes.zero -= isinf((float)bytes.zero * bytes.scale) ? 1 : 0;
                bytes.offset = -(float)bytes.zero * bytes.scale;
                return bytes;
        }
        bytes.shrink = high - low <= FLT_MAX ? 1.0f : 0.5f;
        float range = high * bytes.shrink - low * bytes.shrink;
        bytes.steps = 255 / range;
        bytes.scale = isinf(bytes.steps) ? 0 : range / 255 / bytes.shrink;
        bytes.steps = isinf(bytes.steps) ? 0 : bytes.steps;
        bytes.low = low * bytes.shrink;
        bytes.offset = low;
        return bytes;
}

static int byte_of(const Bytes *bytes, float x)
{
        int64_t whole = lrintf((x * bytes->shrink - bytes->low) * bytes->steps) + bytes->zero;
        return (int)MAX((int64_t)0, MIN((int64_t)255, whole));
}

// What every result is said to be: an exact sum of whole numbers, scaled once.
static float expected_bytes(const Case *made, const int64_t at[4])
{
        const DnnlConv *conv = &made->conv;
        const TensorMeta *in = &conv->input, *weight = &conv->weight;
        int64_t height = weight->size[2], width = weight->size[3], n_in = weight->size[1], sum = 0,
                weights = 0;
        const float *column = made->weight + at[1] * weight->stride[0],
                    *image = made->input + at[0] * in->stride[0];
        float peak = 0, bias = made->bias == NULL ? 0 : made->bias[at[1]];
        for (int64_t i = 0; i < weight->stride[0]; i++)
                peak = fmaxf(peak, fabsf(column[i]));
        float scale = peak / 127, steps = scale < 1e-37f ? 0 : 1 / scale;
        const float *pixel =
                image + at[2] * conv->stride[0] * in->stride[2] + at[3] * conv->stride[1] * in->stride[3];
        Bytes bytes =
                is_one_pixel(conv) ? bytes_of(pixel, n_in, true) : bytes_of(image, in->stride[0], false);
        for (int64_t i = 0; i < n_in * height * width; i++) {
                int64_t c = i / height / width, ky = i / width % height, kx = i % width;
                int64_t y = at[2] * conv->stride[0] - conv->padding[0] + ky * conv->dilation[0],
                        x = at[3] * conv->stride[1] - conv->padding[1] + kx * conv->dilation[1];
                bool inside = y >= 0 && y < in->size[2] && x >= 0 && x < in->size[3];
                int64_t factor = lrintf(column[i] * steps);
                int byte = !inside ? bytes.zero
                                   : byte_of(&bytes, image[c + y * in->stride[2] + x * in->stride[3]]);
                sum += byte * factor;
                weights += factor;
        }
        float result =
                fmaf((float)sum, bytes.scale * scale, fmaf(bytes.offset, (float)weights * scale, bias));
        if (made->residual != NULL)
                result += made->residual[offset_of(&conv->out, at)];
        if (made->clamp.on && !isnan(result))
                result = fminf(fmaxf(result, made->clamp.low), made->clamp.high);
        return result;
}

// Half a step of each weight and of each number, where nothing is added or clamped.
static double allowed_bytes(const Case *made, const int64_t at[4])
{
        const DnnlConv *conv = &made->conv;
        const float *column = made->weight + at[1] * conv->weight.stride[0],
                    *image = made->input + at[0] * conv->input.stride[0];
        double high = 0, peak = 0, sum = 0;
        for (int64_t i = 0; i < conv->input.stride[0]; i++)
                high = fmax(high, fabs((double)image[i]));
        for (int64_t i = 0; i < conv->weight.stride[0]; i++) {
                peak = fmax(peak, fabs((double)column[i]));
                sum += fabs((double)column[i]);
        }
        double step = 2 * high / 255;
        return (sum * step / 2 + (double)conv->weight.stride[0] * (high + step) * peak / 254) * 1.001 + 1e-6;
}

static void check_bytes(const Case *made, const char *words)
{
        const TensorMeta *out = &made->conv.out;
        int64_t at[4];
        for (int64_t i = 0; i < meta_numel(out); i++) {
                index_of(out, i, at);
                float want = expected_bytes(made, at), got = made->out[offset_of(out, at)];
                cr_assert(got == want || (isnan(got) && isnan(want)),
                          "%s at %ld,%ld,%ld,%ld: %.9g instead of %.9g", words, (long)at[0], (long)at[1],
                          (long)at[2], (long)at[3], (double)got, (double)want);
                if (made->residual != NULL || made->clamp.on || isnan(want))
                        continue;
                double exact = wanted_at(made, at).exact;
                cr_assert(fabs((double)got - exact) <= allowed_bytes(made, at), "%s: %.9g instead of %.9g",
                          words, (double)got, exact);
        }
}

static Shape byte_shape(Sample *sample, bool one_pixel)
{
        Shape shape = { .n = sample_int(sample, 1, 3),
                        .n_in = 4 * sample_int(sample, 1, 9),
                        .n_out = sample_int(sample, 1, 70),
                        .height = sample_int(sample, 5, 14),
                        .width = sample_int(sample, 5, 27) };
        for (int i = 0; i < 2; i++) {
                shape.kernel[i] = one_pixel ? 1 : sample_int(sample, 1, 3);
                shape.stride[i] = sample_int(sample, 1, 3);
                shape.dilation[i] = sample_int(sample, 1, 2);
                shape.padding[i] = sample_int(sample, 0, (shape.kernel[i] - 1) * shape.dilation[i]);
        }
        if (shape.n % 2 == 0 && shape.kernel[0] * shape.kernel[1] > 1)
                shape.n_in = 3; // has a fourth one
        return shape;
}

// Numbers of one sign, of a size of their own, one far from the others, all alike, nothing.
static void stretch(Sample *sample, Case *made)
{
        int64_t image = made->conv.input.stride[0];
        for (int64_t n = 0; n < made->conv.input.size[0]; n++) {
                float *data = made->input + n * image, size = powf(10, (float)sample_int(sample, -6, 6));
                int64_t what = sample_int(sample, 0, 5);
                for (int64_t i = 0; i < image; i++)
                        data[i] = what == 0   ? fabsf(data[i])
                                  : what == 1 ? -fabsf(data[i])
                                  : what == 2 ? 0
                                  : what == 3 ? 3
                                              : data[i] * size;
                if (what == 4)
                        data[sample_int(sample, 0, image - 1)] *= 1000;
        }
}

Test(narrow_conv, int8_is_an_exact_sum_of_bytes_with_a_scale_for_each_image_or_pixel)
{
        Sample sample = { 29 };
        FOR_EACH_ISA(isa)
        for (int round = 0; round < 60 && direct_conv_has_bytes(); round++) {
                Shape shape = byte_shape(&sample, round % 3 == 0);
                Case made = make_case(&sample, &shape, true);
                const DnnlConv *conv = &made.conv;
                if (round % 2 == 0)
                        stretch(&sample, &made);
                int64_t n_out = meta_numel(&conv->out), last = conv->input.size[0] - 1;
                run_narrow(&made, conv, PRECISION_INT8, made.input, made.out);
                check_bytes(&made, "int8");
                // the last image alone
                float *all = guarded_new((size_t)n_out * sizeof(float));
                memcpy(all, made.out, (size_t)n_out * sizeof(float));
                DnnlConv one = *conv;
                one.input.size[0] = one.out.size[0] = 1;
                run_narrow(&made, &one, PRECISION_INT8, made.input + last * conv->input.stride[0],
                           made.out + last * conv->out.stride[0]);
                cr_assert(memcmp(all, made.out, (size_t)n_out * sizeof(float)) == 0);
                guarded_check(all, (size_t)n_out * sizeof(float));
                free_case(&made);
        }
}

Test(narrow_conv, int8_gives_nan_for_an_image_or_a_pixel_that_is_not_finite_and_leaves_its_neighbours)
{
        static const float odd[] = { NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 1e-40f };
        Sample sample = { 30 };
        FOR_EACH_ISA(isa)
        for (size_t what = 0; what < 2 * ARRAY_LENGTH(odd) && direct_conv_has_bytes(); what++) {
                Shape shape = byte_shape(&sample, what % 2 == 0);
                shape.n = 3;
                if (what % 4 == 1 && shape.kernel[0] * shape.kernel[1] > 1)
                        shape.n_in = 3;
                Case made = make_case(&sample, &shape, true);
                int64_t image = made.conv.input.stride[0];
                for (int64_t i = 0; i < meta_numel(&made.conv.weight); i++)
                        made.weight[i] *= 1e-5f; // so that results of the largest numbers are finite
                float *data = made.input + image;
                if (what / 2 == 5)
                        for (int64_t i = 0; i < image; i++)
                                data[i] *= odd[5];
                else
                        data[sample_int(&sample, 0, shape.n_in - 1)] = odd[what / 2]; // in the first pixel
                if (what / 2 == 4)
                        data[shape.n_in > 4 ? 1 : 0] = 3.4e38f;
                run_narrow(&made, &made.conv, PRECISION_INT8, made.input, made.out);
                check_bytes(&made, "odd");
                bool nan = isnan(made.out[made.conv.out.stride[0]]) != 0;
                cr_assert_eq(nan, what / 2 < 3, "case %zu", what);
                cr_assert(!isnan(made.out[0]));
                free_case(&made);
        }
}

Test(narrow_conv,
     bfloat16_is_declined_for_odd_channels_planes_and_weights_that_are_not_finite_but_not_for_three)
{
        Sample sample = { 27 };
        for (int what = 0; what < 7; what++) {
                Shape shape = {
                        1, what == 0 ? 5 : what > 3 ? 3 : 6, 32, 6, 6, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }
                };
                if (what == 5) // three channels of one pixel
                        shape.kernel[0] = shape.kernel[1] = 1;
                Case made = make_case(&sample, &shape, what != 1);
                DirectConv *direct = NULL;
                if (what == 2 || what == 6)
                        made.weight[7] = what == 2 ? INFINITY : 0x1.ffp+127f; // which bfloat16 has not
                cr_assert_eq(direct_conv_new(&made.conv, PRECISION_BF16, &made.clamp, &direct), STATUS_OK);
                cr_assert_eq(direct != NULL, (what == 3 || what == 4) && isa_level() == ISA_AVX512_BF16,
                             "case %d", what);
                direct_conv_free(direct);
                free_case(&made);
        }
}

// A weight's first three channels of four lie where it lies, with its strides.
Test(narrow_conv, weights_of_three_and_of_four_channels_at_one_place_are_packed_apart)
{
        enum { N_OUT = 8, TAPS = 9 };
        PackCache *cache;
        _cleanup_(storage_unrefp) Storage *place = NULL;
        Sample sample = { 28 };
        cr_assert_eq(pack_cache_open(&cache), STATUS_OK);
        cr_assert_eq(storage_new(N_OUT * 4 * TAPS * sizeof(float), true, NULL, &place), STATUS_OK);
        sample_fill(&sample, DTYPE_F32, place->data, N_OUT * 4 * TAPS);
        DirectConv *kept = NULL;
        for (int64_t channels = 3; channels <= 4 && isa_level() == ISA_AVX512_BF16; channels++) {
                Shape shape = { 1, channels, N_OUT, 6, 7, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
                Case made = make_case(&sample, &shape, true);
                DnnlConv *conv = &made.conv;
                size_t n_bytes = (size_t)meta_numel(&conv->out) * sizeof(float);
                float *alone = guarded_new(n_bytes);
                conv->weight.stride[0] = 4 * TAPS;
                conv->weight_data = place->data;
                run_narrow(&made, conv, PRECISION_BF16, made.input, made.out);
                memcpy(alone, made.out, n_bytes);
                conv->share = (PackShare){ .cache = cache, .storage = place };
                if (kept == NULL) // its panels stay in the cache
                        cr_assert_eq(direct_conv_new(conv, PRECISION_BF16, &made.clamp, &kept), STATUS_OK);
                run_narrow(&made, conv, PRECISION_BF16, made.input, made.out);
                cr_assert(memcmp(alone, made.out, n_bytes) == 0, "%ld channels", (long)channels);
                guarded_check(alone, n_bytes);
                free_case(&made);
        }
        direct_conv_free(kept);
        pack_cache_close(cache);
}
