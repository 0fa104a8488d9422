// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of symmetric matrices and singular values. Matrices are dense, row-major, of doubles
// and finite. All count their steps in `work`; after it stops the numbers mean nothing. False: no
// convergence.
#pragma once
#include "core/kernels/run_context.h"

// A = V diag(values) V^T of the symmetric A (n x n, destroyed), values rising. Columns of `v` (n x
// n) are the vectors; of each the element of largest magnitude is positive. `v` may be NULL.
// `spare`: 3 n.
bool symmetric_eigen(Work *work, double *a, int64_t n, double *values, double *v, double *spare);

// The singular values of A (n x m, m >= n, destroyed), falling. `spare`: 5 n + m.
bool singular_values(Work *work, double *a, int64_t m, int64_t n, double *values, double *spare);

// The singular values of A, falling, and the vectors in rows: A^T (n x m, m >= n, destroyed)
// becomes the n left vectors, `v` (n x n) the right ones. Of each right vector the element of
// largest magnitude is positive. A left vector of a value 0 is 0. By Jacobi's rotations.
bool singular_vectors(Work *work, double *a_transposed, int64_t m, int64_t n, double *values, double *v);
