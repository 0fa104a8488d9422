// SPDX-License-Identifier: Apache-2.0
// plan.c: factors, and tables of roots, each computed from an angle of at most pi / 4.
#include "core/kernels/fft/plan.h"

#include <math.h>
#include "core/base/memory.h"
#include "core/kernels/dense.h"
#include "core/kernels/fft/fft.h"

// ---- lengths ----
// false: a factor is too large for a stage.
static bool find_factors(int64_t n, FftPlan *plan)
{
        plan->length = n;
        plan->n_stages = 0;
        for (; n % 4 == 0; n /= 4)
                plan->factor[plan->n_stages++] = 4;
        for (int p = 2; n > 1 && p <= FFT_LARGEST_FACTOR; p++) {
                for (; n % p == 0; n /= p)
                        plan->factor[plan->n_stages++] = p;
        }
        return n == 1;
}

// The least length from `least` on whose factors are 2, 3 and 5.
static int64_t smooth_length(int64_t least)
{
        int64_t best = INT64_MAX;
        for (int64_t fives = 1; fives < 5 * least; fives *= 5) {
                for (int64_t threes = fives; threes < 3 * least; threes *= 3) {
                        int64_t n = threes;
                        while (n < least)
                                n *= 2;
                        best = MIN(best, n);
                }
        }
        return best;
}

Status fft_plan_init(FftPlan *plan, int64_t n, bool is_real)
{
        *plan = (FftPlan){ .n = n, .half = is_real && n % 2 == 0 };
        if (n > (int64_t)1 << 40)
                return fail(STATUS_TOO_LARGE, "a Fourier transform of %lld points", (long long)n);
        plan->points = plan->half ? n / 2 : n;
        plan->is_chirp = !find_factors(plan->points, plan);
        if (plan->is_chirp)
                find_factors(smooth_length(2 * plan->points - 1), plan);
        return STATUS_OK;
}

int64_t fft_flops(int64_t n)
{
        FftPlan plan;
        bool direct = find_factors(n, &plan);
        if (!direct && n > INT64_MAX / 64)
                return INT64_MAX;
        if (!direct)
                find_factors(smooth_length(2 * n - 1), &plan);
        int64_t per_point = 16;
        for (int i = 0; i < plan.n_stages; i++)
                per_point += 8 * plan.factor[i];
        return saturating_product(saturating_product(plan.length, per_point), direct ? 1 : 3);
}

// ---- tables ----
// exp(-2 pi i k / n) for 0 <= k < n; exact at quarters of the circle.
static ComplexF64 root_of_unity(int64_t k, int64_t n)
{
        int64_t eighths = 8 * k;
        bool upper = eighths > 4 * n;
        eighths = upper ? 8 * n - eighths : eighths;
        bool left = eighths > 2 * n;
        eighths = left ? 4 * n - eighths : eighths;
        bool steep = eighths > n;
        eighths = steep ? 2 * n - eighths : eighths;
        double sine, cosine;
        sincos(M_PI / 4 * ((double)eighths / (double)n), &sine, &cosine);
        double re = steep ? sine : cosine, im = steep ? cosine : sine;
        return (ComplexF64){ left ? -re : re, upper ? im : -im };
}

static void fill_twiddles(const FftPlan *plan, int stage, int64_t s, Work *work)
{
        const int p = plan->factor[stage];
        const int64_t groups = plan->length / (s * p);
        for (int64_t j = 0; j < groups && !work_stops(work, 32 * p); j++) {
                for (int t = 1; t < p; t++)
                        plan->twiddle[stage][j * (p - 1) + t - 1] = root_of_unity(j * t * s, plan->length);
        }
        for (int k = 0; k < p && plan->roots[stage] != NULL; k++)
                plan->roots[stage][k] = root_of_unity(k, p);
}

static void fill_chirp(const FftPlan *plan, Work *work)
{
        const int64_t n = plan->points, length = plan->length;
        int64_t square = 0; // k^2 modulo 2 n
        for (int64_t k = n; k <= length - n; k++)
                plan->response[k] = (ComplexF64){ 0 };
        for (int64_t k = 0; k < n && !work_stops(work, 32); k++) {
                ComplexF64 turn = root_of_unity(square, 2 * n), back = { turn.re, -turn.im };
                plan->chirp[k] = turn;
                plan->response[k] = back;
                plan->response[k == 0 ? 0 : length - k] = back;
                square = (square + 2 * k + 1) % (2 * n);
        }
}

// The next `n` numbers of the tables, from *io_at on; NULL: only counted.
static ComplexF64 *take(ComplexF64 *tables, int64_t n, int64_t *io_at)
{
        ComplexF64 *table = tables == NULL ? NULL : tables + *io_at;
        *io_at += n;
        return table;
}

static int64_t lay_out(FftPlan *plan, ComplexF64 *tables)
{
        int64_t at = 0, s = 1;
        for (int i = 0; i < plan->n_stages; i++) {
                int p = plan->factor[i];
                plan->twiddle[i] = take(tables, plan->length / (s * p) * (p - 1), &at);
                plan->roots[i] = p <= 5 ? NULL : take(tables, p, &at);
                s *= p;
        }
        plan->turns = plan->half ? take(tables, plan->n / 4 + 1, &at) : NULL;
        plan->chirp = plan->is_chirp ? take(tables, plan->points, &at) : NULL;
        plan->response = plan->is_chirp ? take(tables, plan->length, &at) : NULL;
        return at;
}

int64_t fft_plan_numbers(const FftPlan *plan)
{
        FftPlan counted = *plan;
        return lay_out(&counted, NULL);
}

void fft_plan_fill(FftPlan *plan, ComplexF64 *tables, Work *work)
{
        lay_out(plan, tables);
        int64_t s = 1;
        for (int i = 0; i < plan->n_stages; i++) {
                fill_twiddles(plan, i, s, work);
                s *= plan->factor[i];
        }
        for (int64_t k = 0; plan->half && k <= plan->n / 4 && !work_stops(work, 32); k++)
                plan->turns[k] = root_of_unity(k, plan->n);
        if (plan->is_chirp)
                fill_chirp(plan, work);
}
