// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/pool/resample.h"
#include <math.h>
#include <string.h>
#include "tests/kernels/sample.h"

// One line resampled; weights come from resample_axis.
static void resample_line(ResampleKind kind, bool align_corners, int64_t n_in, int64_t n_out, const float *in,
                          float *out)
{
        int64_t index[3][4 * 16];
        double weight[3][4 * 16];
        Resample resample = { .dtype = DTYPE_F32, .planes = 1, .channels = 1 };
        for (int d = 0; d < 3; d++) {
                resample.axis[d] = (ResampleAxis){ .in_size = d < 2 ? 1 : n_in,
                                                   .out_size = d < 2 ? 1 : n_out,
                                                   .index = index[d],
                                                   .weight = weight[d] };
                resample_axis(NULL, &resample.axis[d], d < 2 ? RESAMPLE_NEAREST : kind, align_corners, 0,
                              DTYPE_F32);
        }
        cr_assert_eq(resample_run(NULL, &resample, in, out), STATUS_OK);
}

Test(resample, gives_pytorchs_lines)
{
        // torch.nn.functional.interpolate of 0..5 and 0..2.
        static const float six[] = { 0, 1, 2, 3, 4, 5 }, three[] = { 0, 1, 2 };
        float out[16];
        static const struct {
                ResampleKind kind;
                bool corners;
                int64_t n_in, n_out;
                float want[8];
        } cases[] = {
                { RESAMPLE_NEAREST, false, 6, 4, { 0, 1, 3, 4 } },
                { RESAMPLE_NEAREST_EXACT, false, 6, 4, { 0, 2, 3, 5 } },
                { RESAMPLE_NEAREST, false, 3, 6, { 0, 0, 1, 1, 2, 2 } },
                { RESAMPLE_LINEAR, false, 3, 6, { 0, 0.25f, 0.75f, 1.25f, 1.75f, 2 } },
                { RESAMPLE_LINEAR, true, 3, 5, { 0, 0.5f, 1, 1.5f, 2 } },
                { RESAMPLE_LINEAR, false, 6, 3, { 0.5f, 2.5f, 4.5f } },
                { RESAMPLE_CUBIC, true, 3, 5, { 0, 0.40625f, 1, 1.59375f, 2 } },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                resample_line(cases[i].kind, cases[i].corners, cases[i].n_in, cases[i].n_out,
                              cases[i].n_in == 6 ? six : three, out);
                for (int64_t k = 0; k < cases[i].n_out; k++)
                        cr_assert_float_eq(out[k], cases[i].want[k], 1e-6f, "case %zu, element %ld: %g", i,
                                           (long)k, (double)out[k]);
        }
}

Test(resample, source_positions_are_rounded_once_as_pytorchs)
{
        // torch.nn.functional.interpolate(torch.arange(70003.0)[None, None], scale_factor=2.5,
        // mode="linear")
        static const struct {
                int64_t out, index;
                double weight;
        } wanted[] = { { 10240, 4095, 0.699951171875 },
                       { 81920, 32767, 0.701171875 },
                       { 163840, 65535, 0.69921875 } };
        enum { IN = 70003, OUT = 175007 };
        static int64_t index[2 * OUT];
        static double weight[2 * OUT];
        ResampleAxis axis = { .in_size = IN, .out_size = OUT, .index = index, .weight = weight };
        cr_assert_eq(resample_axis(NULL, &axis, RESAMPLE_LINEAR, false, 2.5, DTYPE_F32), STATUS_OK);
        for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
                cr_expect_eq(index[2 * wanted[i].out], wanted[i].index);
                cr_expect_eq(weight[2 * wanted[i].out + 1], wanted[i].weight, "output %ld: %.12g",
                             (long)wanted[i].out, weight[2 * wanted[i].out + 1]);
        }
}

Test(resample, weights_of_every_output_add_up_to_one_and_stay_inside)
{
        for (ResampleKind kind = RESAMPLE_NEAREST; kind <= RESAMPLE_CUBIC; kind++) {
                for (int64_t in = 1; in < 12; in++) {
                        for (int64_t out = 1; out < 16; out++) {
                                int64_t index[64];
                                double weight[64];
                                ResampleAxis axis = {
                                        .in_size = in, .out_size = out, .index = index, .weight = weight
                                };
                                resample_axis(NULL, &axis, kind, (in + out) % 2 == 0, 0, DTYPE_F64);
                                for (int64_t o = 0; o < out; o++) {
                                        double sum = 0;
                                        for (int t = 0; t < axis.n_taps; t++) {
                                                cr_assert(index[o * axis.n_taps + t] >= 0 &&
                                                          index[o * axis.n_taps + t] < in);
                                                sum += weight[o * axis.n_taps + t];
                                        }
                                        cr_assert_float_eq(sum, 1, 1e-12);
                                }
                        }
                }
        }
}

// 2 images of 2 x 3 x 5 pixels and 7 channels to 3 x 4 x 11: channels innermost against planes.
Test(resample, channels_innermost_give_the_bits_of_planes)
{
        enum { N = 2, C = 7, IN = 2 * 3 * 5, OUT = 3 * 4 * 11 };
        static const int64_t sizes[3][2] = { { 2, 3 }, { 3, 4 }, { 5, 11 } };
        float planes[N * C * IN], pixels[N * C * IN], want[N * C * OUT], got[N * C * OUT];
        for (int i = 0; i < N * C * IN; i++) {
                planes[i] = i % 11 == 0 ? -0.0f : sinf((float)i);
                pixels[(i / (C * IN) * IN + i % IN) * C + i / IN % C] = planes[i];
        }
        for (ResampleKind kind = RESAMPLE_NEAREST; kind <= RESAMPLE_CUBIC; kind++) {
                int64_t index[3][4 * 11];
                double weight[3][4 * 11];
                Resample resample = { .dtype = DTYPE_F32, .planes = N * C, .channels = 1 };
                for (int d = 0; d < 3; d++) {
                        resample.axis[d] = (ResampleAxis){ .in_size = sizes[d][0],
                                                           .out_size = sizes[d][1],
                                                           .index = index[d],
                                                           .weight = weight[d] };
                        resample_axis(NULL, &resample.axis[d], kind, false, 0, DTYPE_F32);
                }
                cr_assert_eq(resample_run(NULL, &resample, planes, want), STATUS_OK);
                resample.planes = N;
                resample.channels = C;
                cr_assert_eq(resample_run(NULL, &resample, pixels, got), STATUS_OK);
                for (int i = 0; i < N * C * OUT; i++) {
                        float one = got[(i / (C * OUT) * OUT + i % OUT) * C + i / OUT % C];
                        cr_assert_eq(memcmp(&one, &want[i], sizeof(one)), 0,
                                     "kind %d, element %d: %g, not %g", (int)kind, i, (double)one,
                                     (double)want[i]);
                }
        }
}
