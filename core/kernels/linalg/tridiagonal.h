// SPDX-License-Identifier: Apache-2.0
// Symmetric tridiagonal matrices: how symmetric matrices and, for their singular values, any others
// become one by reflections, and their eigenvalues by QL steps (EISPACK's tql2). Matrices are
// dense, row-major, of doubles with elements of at most about 1. All count their steps in `work`;
// after it stops the numbers mean nothing.
#pragma once
#include "core/kernels/run_context.h"

typedef struct Tridiagonal {
        int64_t n;
        double *diagonal, *beside; // n each; the last of `beside` is not used
} Tridiagonal;

// A = Q T Q^T for the symmetric A (n x n, destroyed). `turned_q`: Q^T; may be NULL. `spare`: 2 n.
void tridiagonal_make(Work *work, double *a, const Tridiagonal *t, double *turned_q, double *spare);

// The matrix of 2 n rows whose eigenvalues are the singular values of A and their negatives. A: n x
// m, m >= n, destroyed. `spare`: n + m.
void tridiagonal_make_pairs(Work *work, double *a, int64_t m, const Tridiagonal *t, double *spare);

// The diagonal becomes the eigenvalues, in no order. Row i of `rows` (n x n; may be NULL) becomes
// vector i of the matrix whose Q^T it was. False: no convergence.
bool tridiagonal_values(Work *work, const Tridiagonal *t, double *rows);
