// SPDX-License-Identifier: Apache-2.0
// Steps on rows of doubles. The order of a sum does not depend on the instruction set.
#pragma once
#include <stdint.h>

// (x, y) = (c x - s y, s x + c y)
static inline void rotate_rows(double *restrict x, double *restrict y, double c, double s, int64_t n)
{
        for (int64_t i = 0; i < n; i++) {
                double t = c * x[i] - s * y[i];
                y[i] = s * x[i] + c * y[i];
                x[i] = t;
        }
}

static inline double dot(const double *x, const double *y, int64_t n)
{
        enum { LANES = 8 };
        double lane[LANES] = { 0 };
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES) {
                for (int k = 0; k < LANES; k++)
                        lane[k] += x[i + k] * y[i + k];
        }
        for (int k = 0; i < n; i++, k++)
                lane[k] += x[i] * y[i];
        for (int half = LANES / 2; half > 0; half /= 2) {
                for (int k = 0; k < half; k++)
                        lane[k] += lane[k + half];
        }
        return lane[0];
}

// y += factor x
static inline void add_row(double *restrict y, double factor, const double *restrict x, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                y[i] += factor * x[i];
}
