// SPDX-License-Identifier: Apache-2.0
// What operators on batches of matrices share. The last two dimensions are a matrix's, the others
// count them. Numbers are computed in float64 and rounded once.
#pragma once
#include "core/kernels/dense.h"
#include "core/ops/emitter.h"

enum { LINALG_DTYPES = 1u << DTYPE_F32 | 1u << DTYPE_F64 };

// Two dimensions at least; equal ones for linalg_square. `name` as in "linalg.inv".
Status linalg_matrix(const TensorMeta *a, const char *name);
Status linalg_square(const TensorMeta *a, const char *name);

// Shape: the batch of `like` (all dimensions but its last `drop`), then `n` sizes. By columns: the
// last two dimensions lie as LAPACK has them.
Status linalg_meta(const TensorMeta *like, int drop, int n, const int64_t sizes[2], bool by_columns,
                   TensorMeta *out);

// How many matrices (drop 2) or vectors (drop 1) a tensor holds.
int64_t linalg_count(const TensorMeta *meta, int drop);
// Which one of `in` element b of the batch `out` reads, where `in` was broadcast to it.
int64_t linalg_element(const TensorMeta *out, int out_drop, const TensorMeta *in, int in_drop, int64_t b);

// "(Batch element 3): ", or nothing for a single matrix.
typedef struct BatchWords {
        char text[48];
} BatchWords;
BatchWords linalg_words(const TensorMeta *a, int64_t b);

// n^3 * factor steps for each matrix, n the larger side.
Cost linalg_cost(const OpCall *call, int64_t factor);
