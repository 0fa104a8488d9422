// SPDX-License-Identifier: Apache-2.0
// Vectors are unique up to their sign, so they are held to what they are for: the matrix that they
// make, and that they are orthonormal. Values are compared with PyTorch's by the golden cases.
#include <math.h>
#include <string.h>
#include "core/kernels/linalg/factor.h"
#include "core/kernels/linalg/spectral.h"
#include "tests/kernels/sample.h"

enum { LARGEST = 24 };
static const double CLOSE = 1e-12;

static void fill(Sample *sample, double *a, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                a[i] = (double)sample_int(sample, -1000, 1000) / 300;
}

// |rows rows^T - I|, the largest element
static double from_orthonormal(const double *rows, int64_t n, int64_t length)
{
        double worst = 0;
        for (int64_t i = 0; i < n * n; i++) {
                double sum = 0;
                for (int64_t k = 0; k < length; k++)
                        sum += rows[i / n * length + k] * rows[i % n * length + k];
                worst = fmax(worst, fabs(sum - (i / n == i % n)));
        }
        return worst;
}

Test(linalg, eigenvectors_make_the_matrix_and_are_orthonormal)
{
        Sample sample = { 81 };
        for (int round = 0; round < 60; round++) {
                const int64_t n = sample_int(&sample, 1, LARGEST);
                double a[LARGEST * LARGEST], kept[LARGEST * LARGEST], v[LARGEST * LARGEST], w[LARGEST],
                        turned[LARGEST * LARGEST], spare[3 * LARGEST];
                fill(&sample, a, n * n);
                for (int64_t i = 0; i < n * n; i++)
                        kept[i] = a[i] = i / n < i % n ? a[i] : a[i % n * n + i / n];
                Work work = { 0 };
                cr_assert(symmetric_eigen(&work, a, n, w, v, spare));
                for (int64_t i = 0; i < n * n; i++) {
                        double sum = 0;
                        for (int64_t k = 0; k < n; k++)
                                sum += v[i / n * n + k] * w[k] * v[i % n * n + k];
                        cr_assert_lt(fabs(sum - kept[i]), CLOSE * 100, "n %ld: %g, %g", (long)n, sum,
                                     kept[i]);
                        turned[i % n * n + i / n] = v[i];
                }
                cr_assert_lt(from_orthonormal(turned, n, n), CLOSE);
                for (int64_t i = 1; i < n; i++)
                        cr_assert_geq(w[i], w[i - 1]);
        }
}

Test(linalg, singular_vectors_make_the_matrix_and_are_orthonormal)
{
        Sample sample = { 82 };
        for (int round = 0; round < 60; round++) {
                const int64_t n = sample_int(&sample, 1, LARGEST), m = sample_int(&sample, n, LARGEST);
                double rows[LARGEST * LARGEST], kept[LARGEST * LARGEST], v[LARGEST * LARGEST], s[LARGEST];
                fill(&sample, rows, n * m);
                memcpy(kept, rows, sizeof(rows));
                Work work = { 0 };
                cr_assert(singular_vectors(&work, rows, m, n, s, v));
                for (int64_t j = 0; j < n; j++) {
                        for (int64_t i = 0; i < m; i++) {
                                double sum = 0;
                                for (int64_t k = 0; k < n; k++)
                                        sum += rows[k * m + i] * s[k] * v[k * n + j];
                                cr_assert_lt(fabs(sum - kept[j * m + i]), CLOSE * 100);
                        }
                }
                cr_assert_lt(from_orthonormal(rows, n, m), CLOSE);
                cr_assert_lt(from_orthonormal(v, n, n), CLOSE);
        }
}

// Two algorithms. Some matrices have dependent rows, zeros or elements of very different sizes.
Test(linalg, singular_values_are_those_that_come_with_vectors)
{
        Sample sample = { 84 };
        for (int round = 0; round < 300; round++) {
                const int64_t n = sample_int(&sample, 1, LARGEST), m = sample_int(&sample, n, LARGEST),
                              kind = sample_int(&sample, 0, 5);
                double a[LARGEST * LARGEST], rows[LARGEST * LARGEST], v[LARGEST * LARGEST], s[LARGEST],
                        alone[LARGEST], spare[6 * LARGEST];
                fill(&sample, a, n * m);
                for (int64_t i = 0; i < n * m; i++) {
                        if (kind == 1 || (kind == 2 && i % m != i / m))
                                a[i] = 0;
                        if (kind == 3)
                                a[i] = a[i % m];
                        if (kind >= 4)
                                a[i] = ldexp(a[i], kind == 4 ? -1000 : (int)(i / m) * -40);
                }
                memcpy(rows, a, sizeof(rows));
                Work work = { 0 };
                cr_assert(singular_vectors(&work, rows, m, n, s, v));
                cr_assert(singular_values(&work, a, m, n, alone, spare));
                for (int64_t i = 0; i < n; i++)
                        cr_assert_leq(fabs(s[i] - alone[i]), CLOSE * s[0], "kind %ld: %g, %g", (long)kind,
                                      s[i], alone[i]);
        }
}

// Of a graph's Laplacian all but two eigenvalues are equal: [n - 1 on the diagonal, else -1].
Test(linalg, equal_eigenvalues_converge_with_orthonormal_vectors)
{
        enum { N = 150 };
        static double a[N * N], v[N * N], turned[N * N], w[N], spare[3 * N];
        for (int64_t i = 0; i < N * N; i++)
                a[i] = i / N == i % N ? N - 1 : -1;
        Work work = { 0 };
        cr_assert(symmetric_eigen(&work, a, N, w, v, spare));
        for (int64_t i = 0; i < N * N; i++)
                turned[i % N * N + i / N] = v[i];
        cr_assert_lt(from_orthonormal(turned, N, N), CLOSE);
        for (int64_t i = 0; i < N; i++)
                cr_assert_lt(fabs(w[i] - (i == 0 ? 0 : N)), CLOSE * (double)N);
}

Test(linalg, reflections_make_an_orthonormal_basis_of_any_width)
{
        Sample sample = { 83 };
        for (int round = 0; round < 60; round++) {
                const int64_t m = sample_int(&sample, 1, LARGEST), n = sample_int(&sample, 1, LARGEST);
                double a[LARGEST * LARGEST], kept[LARGEST * LARGEST], q[LARGEST * LARGEST], tau[LARGEST];
                fill(&sample, a, m * n);
                memcpy(kept, a, sizeof(a));
                Work work = { 0 };
                factoring_real.qr_factor(&work, a, m, n, tau);
                factoring_real.qr_make_q(&work, &(QrFactors){ a, tau, m, n }, q, m);
                cr_assert_lt(from_orthonormal(q, m, m), CLOSE);
                for (int64_t i = 0; i < m * n; i++) {
                        double sum = 0;
                        for (int64_t k = 0; k <= MIN(i % n, m - 1); k++)
                                sum += q[i / n * m + k] * a[k * n + i % n];
                        cr_assert_lt(fabs(sum - kept[i]), CLOSE * 100);
                }
        }
}
