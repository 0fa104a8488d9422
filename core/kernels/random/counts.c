// SPDX-License-Identifier: Apache-2.0
// counts.c: small means are drawn event by event, large ones by rejection.
#include "core/kernels/random/counts.h"

#include <math.h>

// ---- Poisson ----
// Uniform numbers are multiplied until the product falls below e^-rate.
static int64_t poisson_by_product(Generator *generator, Work *work, double rate)
{
        const double least = exp(-rate);
        double product = 1;
        int64_t n = -1;
        do {
                product *= generator_uniform_f64(generator);
                n++;
        } while (product > least && !work_stops(work, 8));
        return n;
}

// Hörmann's transformed rejection (PTRS, 1993); names as there.
static int64_t poisson_by_rejection(Generator *generator, Work *work, double rate)
{
        const double root = sqrt(rate), log_rate = log(rate);
        const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
        const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), vr = 0.9277 - 3.6224 / (b - 2);
        while (!work_stops(work, 64)) {
                const double u = generator_uniform_f64(generator) - 0.5;
                const double v = generator_uniform_f64(generator);
                const double us = 0.5 - fabs(u);
                const double at = floor((2 * a / us + b) * u + rate + 0.43);
                const int64_t k = at >= -0x1p63 && at < 0x1p63 ? (int64_t)at : INT64_MIN;
                if (us >= 0.07 && v <= vr)
                        return k;
                if (k < 0 || (us < 0.013 && v > us))
                        continue;
                if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <=
                    -rate + (double)k * log_rate - lgamma((double)k + 1))
                        return k;
        }
        return 0;
}

Status poisson_draw(const RunContext *ctx, int64_t n, const double *rates, double *out)
{
        Work work = { .ctx = ctx };
        TRY(generator_start(ctx->generator));
        for (int64_t i = 0; i < n && !work_stops(&work, 8); i++) {
                if (!(rates[i] >= 0))
                        return fail(STATUS_VALUE, "invalid Poisson rate, expected rate to be non-negative");
                out[i] = rates[i] == 0
                                 ? 0
                                 : (double)(rates[i] >= 10
                                                    ? poisson_by_rejection(ctx->generator, &work, rates[i])
                                                    : poisson_by_product(ctx->generator, &work, rates[i]));
        }
        return run_poll(ctx);
}

// ---- binomial ----
// ln k! beyond Stirling's formula.
static double stirling_tail(double k)
{
        static const double tails[] = { 0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                        0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                        0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                        0.00833056343336287 };
        if (k <= 9)
                return tails[k >= 0 ? (int)k : 0];
        const double square = (k + 1) * (k + 1);
        return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

#define T       float
#define LOG1P   log1pf
#define SQRT    sqrtf
#define FLOOR   floorf
#define NAME(x) x##_f32
#include "core/kernels/random/binomial.inc"
#undef T
#undef LOG1P
#undef SQRT
#undef FLOOR
#undef NAME
#define T       double
#define LOG1P   log1p
#define SQRT    sqrt
#define FLOOR   floor
#define NAME(x) x##_f64
#include "core/kernels/random/binomial.inc"

Status binomial_draw(const RunContext *ctx, Dtype dtype, int64_t n, const double *counts, const double *p,
                     double *out)
{
        Work work = { .ctx = ctx };
        TRY(generator_start(ctx->generator));
        for (int64_t i = 0; i < n && !work_stops(&work, 8); i++)
                out[i] = dtype == DTYPE_F32
                                 ? (double)binomial_f32(ctx->generator, &work, (float)counts[i], (float)p[i])
                                 : binomial_f64(ctx->generator, &work, counts[i], p[i]);
        return run_poll(ctx);
}
