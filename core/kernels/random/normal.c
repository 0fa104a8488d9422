// SPDX-License-Identifier: Apache-2.0
// normal.c: numbers 0 to 7 of a block give the lengths of eight vectors, 8 to 15 their angles.
// float32 uses the polynomials of Cephes (S. Moshier) for logarithm, sine and cosine with fused
// multiplications, as PyTorch's AVX2 kernel does; half types are computed in float32. float64 uses
// libm. If the size is no multiple of 16, the last 16 elements are drawn again.
#include "core/kernels/random/normal.h"

#include <math.h>
#include <string.h>
#include "core/tensor/convert.h"

enum { HALF = NORMAL_BLOCK / 2, COST = 16 * NORMAL_BLOCK };

// Of a normal number above 0.
static inline float log_f32(float x)
{
        static const float terms[] = { -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f,
                                       1.4249322787e-1f,  -1.6668057665e-1f, 2.0000714765e-1f,
                                       -2.4999993993e-1f, 3.3333331174e-1f };
        uint32_t bits;
        float fraction, sum = 7.0376836292e-2f;
        memcpy(&bits, &x, sizeof(bits));
        float exponent = (float)((int32_t)(bits >> 23) - 126);
        bits = (bits & 0x7fffffu) | 0x3f000000u;
        memcpy(&fraction, &bits, sizeof(fraction));
        bool low = fraction < 0.707106781186547524f;
        exponent -= low ? 1.0f : 0.0f;
        fraction = fraction - 1.0f + (low ? fraction : 0.0f);
        float square = fraction * fraction;
        for (int i = 0; i < 8; i++)
                sum = fmaf(sum, fraction, terms[i]);
        sum = fmaf(sum * fraction, square, exponent * -2.12194440e-4f);
        sum = fmaf(-square, 0.5f, sum);
        return fmaf(exponent, 0.693359375f, fraction + sum);
}

// 0 <= x < 8192.
static inline void sin_cos_f32(float x, float *out_sin, float *out_cos)
{
        int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
        float turns = (float)octant;
        x = fmaf(turns, -0.78515625f, x);
        x = fmaf(turns, -2.4187564849853515625e-4f, x);
        x = fmaf(turns, -3.77489497744594108e-8f, x);
        float square = x * x;
        float even = fmaf(2.443315711809948e-5f, square, -1.388731625493765e-3f);
        even = fmaf(even, square, 4.166664568298827e-2f);
        even = fmaf(even * square, square, -(square * 0.5f)) + 1.0f;
        float odd = fmaf(-1.9515295891e-4f, square, 8.3321608736e-3f);
        odd = fmaf(odd, square, -1.6666654611e-1f);
        odd = fmaf(odd * square, x, x);
        bool swapped = (octant & 2) != 0;
        float sine = swapped ? even : odd, cosine = swapped ? odd : even;
        *out_sin = (octant & 4) != 0 ? -sine : sine;
        *out_cos = ((octant - 2) & 4) == 0 ? -cosine : cosine;
}

static void block_f32(float *block, float mean, float deviation)
{
        for (int i = 0; i < HALF; i++) {
                float length = sqrtf(-2.0f * log_f32(1.0f - block[i])), sine, cosine;
                sin_cos_f32((float)(2 * M_PI) * block[i + HALF], &sine, &cosine);
                block[i] = fmaf(length * cosine, deviation, mean);
                block[i + HALF] = fmaf(length * sine, deviation, mean);
        }
}

static void block_f64(double *block, double mean, double deviation)
{
        for (int i = 0; i < HALF; i++) {
                double length = sqrt(-2 * log(1 - block[i])), angle = 2 * M_PI * block[i + HALF];
                block[i] = fma(length * cos(angle), deviation, mean);
                block[i + HALF] = fma(length * sin(angle), deviation, mean);
        }
}

typedef struct Normal {
        Generator *generator;
        double mean, deviation;
        Dtype dtype;
        char *data;
} Normal;

static void draw_block(const Normal *normal, int64_t at)
{
        char *out = normal->data + at * dtype_info[normal->dtype].bytes;
        union {
                float f32[NORMAL_BLOCK];
                double f64[NORMAL_BLOCK];
        } block;
        bool wide = normal->dtype == DTYPE_F64;
        if (wide) {
                for (int i = 0; i < NORMAL_BLOCK; i++)
                        block.f64[i] = generator_uniform_f64(normal->generator);
                block_f64(block.f64, normal->mean, normal->deviation);
        } else {
                for (int i = 0; i < NORMAL_BLOCK; i++)
                        block.f32[i] = generator_uniform_f32(normal->generator);
                block_f32(block.f32, (float)normal->mean, (float)normal->deviation);
        }
        tile_storer(wide ? TILE_F64 : TILE_F32, normal->dtype)(&block, NORMAL_BLOCK, out,
                                                               dtype_info[normal->dtype].bytes);
}

Status normal_blocks(const RunContext *ctx, double mean, double deviation, const TensorMeta *meta, void *data)
{
        Normal normal = { .generator = ctx->generator,
                          .mean = mean,
                          .deviation = deviation,
                          .dtype = meta->dtype,
                          .data = data };
        int64_t n = meta_numel(meta), rest = n % NORMAL_BLOCK;
        Work work = { .ctx = ctx };
        for (int64_t at = 0; at < n - rest; at += NORMAL_BLOCK) {
                if (work_stops(&work, COST))
                        return run_poll(ctx);
                draw_block(&normal, at);
        }
        if (rest == 0)
                return STATUS_OK;
        // PyTorch fills float32 and float64 with uniform numbers before it looks at blocks.
        for (int64_t i = 0; i < rest; i++) {
                if (meta->dtype == DTYPE_F64)
                        (void)generator_next64(normal.generator);
                else if (meta->dtype == DTYPE_F32)
                        (void)generator_next32(normal.generator);
        }
        draw_block(&normal, n - NORMAL_BLOCK);
        return STATUS_OK;
}
