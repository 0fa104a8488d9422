// SPDX-License-Identifier: Apache-2.0
// Small direct factorisations of one matrix. Matrices are dense, row-major, of doubles or of
// complex doubles; results for narrower dtypes are rounded once, by whoever stores them. All count
// their steps in `work`; after it stops the numbers mean nothing.
#pragma once
#include <stddef.h>
#include "core/kernels/run_context.h"

typedef struct LuFactors {
        const void *lu; // n x n
        const int32_t *pivots;
        int64_t n;
        bool transposed;
} LuFactors;

typedef struct Triangle {
        const void *a; // n x n; the other triangle is not read
        int64_t n;
        bool upper, unit, transposed; // T^T instead of T
} Triangle;

// What qr_factor left of an m x n matrix.
typedef struct QrFactors {
        const void *a, *tau;
        int64_t m, n;
} QrFactors;

typedef struct Factoring {
        size_t bytes; // of a number
        // P A = L U in place, A: m x n. L has a unit diagonal, which is not stored. pivots[j] (from
        // 1) is the row that was exchanged with row j, as LAPACK's getrf counts. A pivot that is at
        // most `noise` times the sum of the products that were subtracted from it is taken as 0.
        // Returns 0, or the first j + 1 whose pivot is 0.
        int32_t (*lu_factor)(Work *work, void *a, int64_t m, int64_t n, double noise, int32_t *pivots);
        // X of A X = B (`transposed`: A^T X = B) in place of B, n x k.
        void (*lu_solve)(Work *work, const LuFactors *factors, void *b, int64_t k);
        // The determinant; that divided by its magnitude, or 0; the logarithm of its magnitude.
        void (*lu_determinant)(const LuFactors *factors, void *out_whole, void *out_sign, double *out_log);
        // X of T X = B in place of B, n x k. A zero on the diagonal divides.
        void (*triangle_solve)(Work *work, const Triangle *triangle, void *b, int64_t k);
        // The lower factor L of A = L L^H in place of A's lower triangle; the other one becomes 0.
        // Returns 0, or the order of the leading minor that is not positive.
        int32_t (*cholesky_factor)(Work *work, void *a, int64_t n);
        // A = Q R by Householder's reflections, with LAPACK's signs: R in the upper triangle of A
        // (m x n), the reflections below it, their factors in tau (min(m, n)).
        void (*qr_factor)(Work *work, void *a, int64_t m, int64_t n, void *tau);
        // The first k columns of Q (m x k, k <= m).
        void (*qr_make_q)(Work *work, const QrFactors *factors, void *q, int64_t k);
        // out = exp(a); `scratch` holds 2 n^2 numbers. NaN where a is not finite.
        void (*matrix_exp)(Work *work, const void *a, void *out, void *scratch, int64_t n);
} Factoring;

extern const Factoring factoring_real, factoring_complex;
