// SPDX-License-Identifier: Apache-2.0
// factor.c: LU by partial pivoting, triangular systems, Cholesky, Householder's QR, and the
// exponential by scaling and squaring. Inner loops go along rows.
#include "core/kernels/linalg/factor.h"

#include <math.h>
#include <string.h>
#include "core/base/memory.h"

// y -= f x
static void subtract_row(double *restrict y, const double *restrict x, double f, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                y[i] -= f * x[i];
}

static void swap_rows(double *a, double *b, int64_t n)
{
        for (int64_t i = 0; a != b && i < n; i++) {
                double t = a[i];
                a[i] = b[i];
                b[i] = t;
        }
}

// The sum of |l u| in element (i, j) of the factors' product.
static double subtracted(const double *a, int64_t n, int64_t i, int64_t j)
{
        double sum = 0;
        for (int64_t k = 0; k < j; k++)
                sum += fabs(a[i * n + k] * a[k * n + j]);
        return sum;
}

int32_t lu_factor(Work *work, double *a, int64_t m, int64_t n, double noise, int32_t *pivots)
{
        int32_t first_zero = 0;
        for (int64_t j = 0; j < MIN(m, n) && !work_stops(work, m + n); j++) {
                int64_t p = j;
                for (int64_t i = j + 1; i < m; i++)
                        p = fabs(a[i * n + j]) > fabs(a[p * n + j]) ? i : p;
                pivots[j] = (int32_t)(p + 1);
                if (fabs(a[p * n + j]) <= noise * subtracted(a, n, p, j)) {
                        first_zero = first_zero == 0 ? (int32_t)(j + 1) : first_zero;
                        a[p * n + j] = 0;
                        continue;
                }
                swap_rows(a + j * n, a + p * n, n);
                for (int64_t i = j + 1; i < m && !work_stops(work, n - j); i++) {
                        double f = a[i * n + j] /= a[j * n + j];
                        subtract_row(a + i * n + j + 1, a + j * n + j + 1, f, n - j - 1);
                }
        }
        return first_zero;
}

void triangle_solve(Work *work, const Triangle *triangle, double *b, int64_t k)
{
        const int64_t n = triangle->n, row = triangle->transposed ? 1 : n,
                      column = triangle->transposed ? n : 1;
        const bool backwards = triangle->upper != triangle->transposed;
        for (int64_t step = 0; step < n && !work_stops(work, k + 1); step++) {
                int64_t i = backwards ? n - 1 - step : step;
                int64_t begin = backwards ? i + 1 : 0, end = backwards ? n : i;
                for (int64_t j = begin; j < end && !work_stops(work, k + 1); j++)
                        subtract_row(b + i * k, b + j * k, triangle->a[i * row + j * column], k);
                for (int64_t c = 0; c < k && !triangle->unit; c++)
                        b[i * k + c] /= triangle->a[i * n + i];
        }
}

void lu_solve(Work *work, const LuFactors *factors, double *b, int64_t k)
{
        const int64_t n = factors->n;
        const int32_t *pivots = factors->pivots;
        const bool turned = factors->transposed;
        const Triangle lower = { .a = factors->lu, .n = n, .unit = true, .transposed = turned };
        const Triangle upper = { .a = factors->lu, .n = n, .upper = true, .transposed = turned };
        for (int64_t j = 0; j < n && !turned && !work_stops(work, k); j++)
                swap_rows(b + j * k, b + (pivots[j] - 1) * k, k);
        triangle_solve(work, turned ? &upper : &lower, b, k);
        triangle_solve(work, turned ? &lower : &upper, b, k);
        for (int64_t j = n - 1; j >= 0 && turned && !work_stops(work, k); j--)
                swap_rows(b + j * k, b + (pivots[j] - 1) * k, k);
}

int32_t cholesky_factor(Work *work, double *a, int64_t n)
{
        for (int64_t i = 0; i < n; i++) {
                for (int64_t j = 0; j <= i && !work_stops(work, j + 4); j++) {
                        double sum = a[i * n + j];
                        for (int64_t k = 0; k < j; k++)
                                sum -= a[i * n + k] * a[j * n + k];
                        if (i == j && !(sum > 0))
                                return (int32_t)(i + 1);
                        a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
                }
                memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof(double));
        }
        return 0;
}

// ---- QR ----
// Column j from row j on becomes beta and the reflection's vector, whose first element is 1.
static double make_reflection(Work *work, double *a, int64_t m, int64_t n, int64_t j)
{
        double largest = 0, sum = 0, first = a[j * n + j];
        for (int64_t i = j + 1; i < m; i++)
                largest = fmax(largest, fabs(a[i * n + j]));
        if (largest == 0 || work_stops(work, 4 * (m - j)))
                return 0;
        largest = fmax(largest, fabs(first)); // scaled: squares neither overflow nor vanish
        for (int64_t i = j; i < m; i++)
                sum += a[i * n + j] / largest * (a[i * n + j] / largest);
        double beta = first < 0 ? largest * sqrt(sum) : -largest * sqrt(sum); // -0 counts as 0
        for (int64_t i = j + 1; i < m; i++)
                a[i * n + j] /= first - beta;
        a[j * n + j] = beta;
        return (beta - first) / beta;
}

// Columns begin..end of `b` (rows of `stride`) = (I - tau v v^T) of them; v is column j of `a` from
// row j on, with 1 at its head. `sums` holds a number per column.
typedef struct Reflection {
        const double *a;
        int64_t m, n, j;
        double tau;
} Reflection;

static void reflect(Work *work, const Reflection *r, double *b, int64_t stride, int64_t begin, int64_t end)
{
        enum { BLOCK = 256 };
        double sums[BLOCK];
        for (int64_t at = begin; at < end && r->tau != 0; at += BLOCK) {
                int64_t n = MIN(BLOCK, end - at);
                memcpy(sums, b + r->j * stride + at, (size_t)n * sizeof(double));
                for (int64_t i = r->j + 1; i < r->m && !work_stops(work, n); i++)
                        subtract_row(sums, b + i * stride + at, -r->a[i * r->n + r->j], n);
                subtract_row(b + r->j * stride + at, sums, r->tau, n);
                for (int64_t i = r->j + 1; i < r->m && !work_stops(work, n); i++)
                        subtract_row(b + i * stride + at, sums, r->tau * r->a[i * r->n + r->j], n);
        }
}

void qr_factor(Work *work, double *a, int64_t m, int64_t n, double *tau)
{
        for (int64_t j = 0; j < MIN(m, n) && !work_stops(work, 1); j++) {
                tau[j] = make_reflection(work, a, m, n, j);
                reflect(work, &(Reflection){ a, m, n, j, tau[j] }, a, n, j + 1, n);
        }
}

void qr_make_q(Work *work, const QrFactors *factors, double *q, int64_t k)
{
        const int64_t m = factors->m, n = factors->n;
        for (int64_t i = 0; k > 0 && i < m && !work_stops(work, k); i++) {
                memset(q + i * k, 0, (size_t)k * sizeof(double));
                if (i < k)
                        q[i * k + i] = 1;
        }
        for (int64_t j = MIN(m, n) - 1; j >= 0 && !work_stops(work, 1); j--)
                reflect(work, &(Reflection){ factors->a, m, n, j, factors->tau[j] }, q, k, MIN(j, k), k);
}

// ---- exponential ----
void square_product(Work *work, const double *a, const double *b, double *c, int64_t n)
{
        for (int64_t i = 0; i < n; i++) {
                memset(c + i * n, 0, (size_t)n * sizeof(double));
                for (int64_t j = 0; j < n && !work_stops(work, n); j++)
                        subtract_row(c + i * n, b + j * n, -a[i * n + j], n);
        }
}

static double largest_row_sum(Work *work, const double *a, int64_t n)
{
        double largest = 0;
        for (int64_t i = 0; i < n && !work_stops(work, n); i++) {
                double sum = 0;
                for (int64_t j = 0; j < n; j++)
                        sum += fabs(a[i * n + j]);
                largest = sum > largest || isnan(sum) ? sum : largest;
                if (isnan(sum))
                        return sum;
        }
        return largest;
}

// exp(a) = (Taylor's polynomial of a / 2^s)^(2^s), with a / 2^s of norm 1/2 at most: the 17th term
// is below 1e-19.
void matrix_exp(Work *work, const double *a, double *out, double *scratch, int64_t n)
{
        enum { DEGREE = 16 };
        double norm = largest_row_sum(work, a, n), *scaled = scratch, *product = scratch + n * n;
        int halvings = 0;
        for (int64_t i = 0; i < n * n && !isfinite(norm); i++)
                out[i] = NAN;
        if (!isfinite(norm))
                return;
        while (ldexp(norm, -halvings) > 0.5)
                halvings++;
        for (int64_t i = 0; i < n * n && !work_stops(work, 2); i++) {
                scaled[i] = ldexp(a[i], -halvings);
                out[i] = i % (n + 1) == 0;
        }
        for (int term = DEGREE; term > 0 && !work->stops; term--) { // out = I + scaled out / term
                square_product(work, scaled, out, product, n);
                for (int64_t i = 0; i < n * n && !work_stops(work, 1); i++)
                        out[i] = product[i] / term + (i % (n + 1) == 0);
        }
        for (int i = 0; i < halvings && !work->stops; i++) {
                square_product(work, out, out, product, n);
                memcpy(out, product, (size_t)(n * n) * sizeof(double));
        }
}
