// SPDX-License-Identifier: Apache-2.0
// spectral.c: eigenvalues, and singular values without vectors, are those of a tridiagonal matrix.
// Singular values with vectors come from sweeps over all pairs of rows: each rotation makes one
// pair orthogonal, until a sweep finds nothing to do.
#include "core/kernels/linalg/spectral.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/kernels/linalg/rows.h"
#include "core/kernels/linalg/tridiagonal.h"

enum { MAX_SWEEPS = 60 };
// Products of rows this small, where the largest element is about 1, are rounding.
static const double NOISE = 1e-36;

static void make_positive(double *row, int64_t n, double *with, int64_t n_with)
{
        int64_t top = 0;
        for (int64_t i = 1; i < n; i++)
                top = fabs(row[i]) > fabs(row[top]) ? i : top;
        if (n == 0 || row[top] >= 0)
                return;
        for (int64_t i = 0; i < n; i++)
                row[i] = -row[i];
        for (int64_t i = 0; i < n_with; i++)
                with[i] = -with[i];
}

static void swap_rows(double *x, double *y, int64_t n)
{
        for (int64_t i = 0; i < n; i++) {
                double t = x[i];
                x[i] = y[i];
                y[i] = t;
        }
}

// Rows that go with the values when these are put in order; may be NULL.
typedef struct Rows {
        double *a, *b;
        int64_t n_a, n_b; // lengths
} Rows;

static void sort_values(Work *work, double *values, int64_t n, bool falls, const Rows *rows)
{
        for (int64_t i = 0; i < n && !work_stops(work, n - i); i++) {
                int64_t best = i;
                for (int64_t j = i + 1; j < n; j++)
                        best = (falls ? values[j] > values[best] : values[j] < values[best]) ? j : best;
                if (best == i)
                        continue;
                swap_rows(values + i, values + best, 1);
                if (rows->a != NULL)
                        swap_rows(rows->a + i * rows->n_a, rows->a + best * rows->n_a, rows->n_a);
                if (rows->b != NULL)
                        swap_rows(rows->b + i * rows->n_b, rows->b + best * rows->n_b, rows->n_b);
        }
}

// Divides by a power of 2 so that the largest element is near 1: squares neither overflow nor
// vanish. Returns its exponent.
static int scale_down(Work *work, double *a, int64_t n)
{
        double largest = 0;
        int exponent = 0;
        for (int64_t i = 0; i < n && !work_stops(work, 1); i++)
                largest = fmax(largest, fabs(a[i]));
        if (largest > 0)
                frexp(largest, &exponent);
        for (int64_t i = 0; i < n && !work_stops(work, 1); i++)
                a[i] = ldexp(a[i], -exponent);
        return exponent;
}

// Vectors are rows while the rotations go on.
bool symmetric_eigen(Work *work, double *a, int64_t n, double *values, double *v, double *spare)
{
        const Tridiagonal t = { n, values, spare };
        const int exponent = scale_down(work, a, n * n);
        tridiagonal_make(work, a, &t, v, spare + n);
        bool found = work->stops || tridiagonal_values(work, &t, v);
        for (int64_t i = 0; i < n; i++)
                values[i] = ldexp(values[i], exponent);
        sort_values(work, values, n, false, &(Rows){ .a = v, .n_a = n });
        for (int64_t i = 0; i < n && v != NULL && !work_stops(work, n); i++)
                make_positive(v + i * n, n, NULL, 0);
        for (int64_t i = 0; i < n && v != NULL && !work_stops(work, n); i++) {
                for (int64_t j = 0; j < i; j++) {
                        double kept = v[i * n + j];
                        v[i * n + j] = v[j * n + i];
                        v[j * n + i] = kept;
                }
        }
        return found;
}

bool singular_values(Work *work, double *a, int64_t m, int64_t n, double *values, double *spare)
{
        const Tridiagonal t = { 2 * n, spare, spare + 2 * n };
        const int exponent = scale_down(work, a, m * n);
        tridiagonal_make_pairs(work, a, m, &t, spare + 4 * n);
        bool found = work->stops || tridiagonal_values(work, &t, NULL);
        sort_values(work, t.diagonal, t.n, true, &(Rows){ 0 });
        for (int64_t i = 0; i < n; i++)
                values[i] = ldexp(fmax(t.diagonal[i], 0), exponent);
        return found;
}

// ---- with vectors ----
// The smaller rotation that makes [[a, b], [b, d]] diagonal.
static void rotation_of(double a, double b, double d, double *c, double *s)
{
        double zeta = (d - a) / (2 * b);
        double t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));
        *c = 1 / hypot(1, t);
        *s = *c * t;
}

static void set_identity(double *v, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                        v[i * n + j] = i == j;
}

static int64_t singular_sweep(Work *work, double *a, int64_t m, int64_t n, double *v)
{
        int64_t n_made = 0;
        for (int64_t p = 0; p < n; p++) {
                for (int64_t q = p + 1; q < n && !work_stops(work, 3 * m); q++) {
                        double *x = a + p * m, *y = a + q * m, c, s;
                        double xx = dot(x, x, m), xy = dot(x, y, m), yy = dot(y, y, m);
                        if (fabs(xy) <= DBL_EPSILON * sqrt(xx) * sqrt(yy) || fabs(xy) < NOISE)
                                continue;
                        rotation_of(xx, xy, yy, &c, &s);
                        rotate_rows(x, y, c, s, m);
                        rotate_rows(v + p * n, v + q * n, c, s, n);
                        work_stops(work, 2 * m + 2 * n);
                        n_made++;
                }
        }
        return n_made;
}

bool singular_vectors(Work *work, double *a, int64_t m, int64_t n, double *values, double *v)
{
        int exponent = scale_down(work, a, m * n), sweep = 0;
        set_identity(v, n);
        while (sweep < MAX_SWEEPS && !work->stops && singular_sweep(work, a, m, n, v) > 0)
                sweep++;
        double largest = 0;
        for (int64_t i = 0; i < n && !work_stops(work, m); i++) {
                values[i] = sqrt(dot(a + i * m, a + i * m, m));
                largest = fmax(largest, values[i]);
        }
        sort_values(work, values, n, true, &(Rows){ a, v, m, n });
        for (int64_t i = 0; i < n && !work_stops(work, 2 * m); i++) {
                // What rounding left of a row that depends on the others has no direction.
                double size = values[i] > largest * DBL_EPSILON * (double)m ? values[i] : 0;
                for (int64_t k = 0; k < m; k++)
                        a[i * m + k] = size == 0 ? 0 : a[i * m + k] / size;
                values[i] = ldexp(values[i], exponent);
                make_positive(v + i * n, n, a + i * m, m);
        }
        return sweep < MAX_SWEEPS;
}
