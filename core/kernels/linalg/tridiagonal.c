// SPDX-License-Identifier: Apache-2.0
// tridiagonal.c: a reflection makes zeros of all but the first element beside the diagonal, row
// after row. A QL step with Wilkinson's shift chases a bulge up the diagonal; what stands beside it
// vanishes within a few steps.
#include "core/kernels/linalg/tridiagonal.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "core/kernels/linalg/rows.h"

enum { MAX_STEPS = 60 }; // for one eigenvalue
// Squares below this are too small to divide by: beside elements of about 1 they are nothing.
static const double NOISE = 1e-280;

// ---- reflections ----
typedef struct Reflection { // I - tau v v^T; tau 0: there is nothing to do
        const double *v;
        double tau;
} Reflection;

// Of x the reflection that leaves only a first element, which is returned. x becomes v.
static double reflect(double *x, int64_t n, Reflection *out)
{
        double rest = dot(x + 1, x + 1, n - 1), first = x[0];
        *out = (Reflection){ x, 0 };
        if (rest < NOISE)
                return first;
        double left = -copysign(sqrt(first * first + rest), first);
        x[0] = first - left;
        out->tau = 2 / (x[0] * x[0] + rest);
        return left;
}

typedef struct Block { // of a matrix
        double *data;
        int64_t rows, columns, step;
} Block;

// From the left. `sums`: block.columns.
static void reflect_columns(Work *work, Block block, Reflection by, double *sums)
{
        memset(sums, 0, (size_t)block.columns * sizeof(double));
        for (int64_t i = 0; i < block.rows && !work_stops(work, block.columns); i++)
                add_row(sums, by.v[i], block.data + i * block.step, block.columns);
        for (int64_t i = 0; i < block.rows && !work_stops(work, block.columns); i++)
                add_row(block.data + i * block.step, -by.tau * by.v[i], sums, block.columns);
}

// From the right.
static void reflect_rows(Work *work, Block block, Reflection by)
{
        for (int64_t i = 0; i < block.rows && !work_stops(work, 2 * block.columns); i++) {
                double *row = block.data + i * block.step;
                add_row(row, -by.tau * dot(row, by.v, block.columns), by.v, block.columns);
        }
}

// From both sides of a symmetric block, which stays symmetric to the bit. `w`: block.columns.
static void reflect_both(Work *work, Block block, Reflection by, double *w)
{
        const int64_t n = block.columns;
        memset(w, 0, (size_t)n * sizeof(double));
        for (int64_t i = 0; i < n && !work_stops(work, n); i++)
                add_row(w, by.v[i] * by.tau, block.data + i * block.step, n);
        add_row(w, -by.tau / 2 * dot(w, by.v, n), by.v, n);
        for (int64_t i = 0; i < n && !work_stops(work, n); i++) {
                double *row = block.data + i * block.step;
                for (int64_t k = 0; k < n; k++)
                        row[k] -= by.v[i] * w[k] + w[i] * by.v[k];
        }
}

// ---- to tridiagonal form ----
// The product of the reflections that tridiagonal_make left in the rows of `a`, exchanged.
static void make_turned_q(Work *work, const double *a, const double *tau, int64_t n, double *q, double *sums)
{
        memset(q, 0, (size_t)(n * n) * sizeof(double));
        for (int64_t i = 0; i < n; i++)
                q[i * n + i] = 1;
        for (int64_t k = n - 3; k >= 0 && !work->stops; k--) {
                Block block = { q + (k + 1) * n + k + 1, n - k - 1, n - k - 1, n };
                reflect_columns(work, block, (Reflection){ a + k * n + k + 1, tau[k] }, sums);
        }
        for (int64_t i = 0; i < n && !work_stops(work, n); i++) {
                for (int64_t j = 0; j < i; j++) {
                        double t = q[i * n + j];
                        q[i * n + j] = q[j * n + i];
                        q[j * n + i] = t;
                }
        }
}

void tridiagonal_make(Work *work, double *a, const Tridiagonal *t, double *turned_q, double *spare)
{
        const int64_t n = t->n;
        double *tau = spare, *sums = spare + n;
        for (int64_t k = 0; k < n && !work->stops; k++) {
                const int64_t left = n - k - 1;
                double *row = a + k * n + k + 1;
                Reflection by = { row, 0 };
                t->diagonal[k] = a[k * n + k];
                t->beside[k] = left == 0 ? 0 : reflect(row, left, &by);
                tau[k] = by.tau;
                if (by.tau != 0)
                        reflect_both(work, (Block){ a + (k + 1) * n + k + 1, left, left, n }, by, sums);
        }
        if (turned_q != NULL && !work->stops)
                make_turned_q(work, a, tau, n, turned_q, sums);
}

// Reflections from both sides leave A with a diagonal and the elements below it. Of such a matrix
// [[0, A], [A^T, 0]] is tridiagonal when its rows and columns are dealt out in turns (Golub and
// Kahan): zeros, and beside them both kinds of elements in turns.
void tridiagonal_make_pairs(Work *work, double *a, int64_t m, const Tridiagonal *t, double *spare)
{
        const int64_t n = t->n / 2;
        double *column = spare, *sums = spare + n;
        memset(t->diagonal, 0, (size_t)(2 * n) * sizeof(double));
        for (int64_t k = 0; k < n && !work->stops; k++) {
                const int64_t below = n - k - 1;
                double *first = a + k * m + k;
                Reflection by;
                t->beside[2 * k] = reflect(first, m - k, &by);
                if (by.tau != 0)
                        reflect_rows(work, (Block){ first + m, below, m - k, m }, by);
                for (int64_t i = 0; i < below; i++)
                        column[i] = first[(i + 1) * m];
                t->beside[2 * k + 1] = below == 0 ? 0 : reflect(column, below, &by);
                if (below > 0 && by.tau != 0)
                        reflect_columns(work, (Block){ first + m + 1, below, m - k - 1, m }, by, sums);
        }
}

// ---- eigenvalues ----
static double length_of(double x, double y)
{
        double square = x * x + y * y;
        return square > NOISE ? sqrt(square) : hypot(x, y);
}

// One step for rows first .. last, between which no element beside the diagonal is 0.
static void ql_step(Work *work, const Tridiagonal *t, int64_t first, int64_t last, double *rows)
{
        double *d = t->diagonal, *e = t->beside;
        double slope = (d[first + 1] - d[first]) / (2 * e[first]), c = 1, s = 1, shift = 0;
        double g = d[last] - d[first] + e[first] / (slope + copysign(hypot(slope, 1), slope));
        for (int64_t i = last - 1; i >= first && !work_stops(work, 16); i--) {
                double f = s * e[i], b = c * e[i], r = length_of(f, g);
                e[i + 1] = r;
                if (r == 0) { // the rest is a matrix of its own
                        d[i + 1] -= shift;
                        e[last] = 0;
                        return;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - shift;
                r = (d[i] - g) * s + 2 * c * b;
                shift = s * r;
                d[i + 1] = g + shift;
                g = c * r - b;
                if (rows != NULL) {
                        rotate_rows(rows + i * t->n, rows + (i + 1) * t->n, c, s, t->n);
                        work_stops(work, t->n);
                }
        }
        d[first] -= shift;
        e[first] = g;
        e[last] = 0;
}

// What may be left out changes eigenvalues by less than rounding does: beside its neighbours, or
// beside the whole matrix (with a large margin) where these are 0.
static int64_t end_of_block(const Tridiagonal *t, int64_t first, double nothing)
{
        int64_t last = first;
        while (last < t->n - 1 &&
               fabs(t->beside[last]) >
                       DBL_EPSILON * (fabs(t->diagonal[last]) + fabs(t->diagonal[last + 1])) + nothing)
                last++;
        return last;
}

bool tridiagonal_values(Work *work, const Tridiagonal *t, double *rows)
{
        double largest = 0;
        for (int64_t i = 0; i < t->n; i++)
                largest = fmax(largest, fmax(fabs(t->diagonal[i]), i < t->n - 1 ? fabs(t->beside[i]) : 0));
        if (t->n > 0)
                t->beside[t->n - 1] = 0;
        for (int64_t first = 0; first < t->n; first++) {
                for (int steps = 0;; steps++) {
                        int64_t last = end_of_block(t, first, largest * DBL_EPSILON / 1024);
                        if (last == first || work_stops(work, last - first))
                                break;
                        if (steps == MAX_STEPS)
                                return false;
                        ql_step(work, t, first, last, rows);
                }
        }
        return true;
}
