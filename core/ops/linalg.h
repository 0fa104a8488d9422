// SPDX-License-Identifier: Apache-2.0
// What operators on batches of matrices share. The last two dimensions are a matrix's, the others
// count them. Numbers are computed in float64, complex ones in complex128, and rounded once.
#pragma once
#include <string.h>
#include "core/kernels/dense.h"
#include "core/kernels/linalg/factor.h"
#include "core/ops/emitter.h"

enum {
        LINALG_DTYPES = 1u << DTYPE_F32 | 1u << DTYPE_F64,
        LINALG_NUMBERS = LINALG_DTYPES | 1u << DTYPE_C64 | 1u << DTYPE_C128,
};

// How matrices of a dtype are factored.
const Factoring *linalg_factoring(Dtype dtype);
// The dtype of the numbers in which one of these dtypes is computed.
Dtype linalg_compute(Dtype dtype);

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

// The last two dimensions exchanged.
TensorMeta linalg_turned(const TensorMeta *meta);

// Operands, results and scratch of a kernel that goes from matrix to matrix. Floats are float64,
// complex numbers complex128, integers int64, dense and row-major as the given metas order them.
typedef struct LinalgIo {
        const Factoring *by;
        Dense in;
        DenseOut out[OP_INLINE_OUTS];
        TensorMeta out_meta[OP_INLINE_OUTS];
        Scratch scratch;
        void *numbers; // of the scratch, as wide as the operand's
} LinalgIo;
// Argument 0 is read by `read`. turned_outs, bit k: result k is written exchanged.
Status linalg_open(const OpRun *run, const TensorMeta *read, int64_t n_scratch, uint32_t turned_outs,
                   LinalgIo *io);
// Stores the results, unless the run stopped.
Status linalg_store(const OpRun *run, LinalgIo *io);
void linalg_io_deinit(LinalgIo *io);

// Where matrix b of n numbers begins; of constant numbers to be read only, as with memchr.
static inline void *linalg_at(const Factoring *by, const void *numbers, int64_t b, int64_t n)
{
        return (char *)numbers + b * n * (int64_t)by->bytes;
}

// The n numbers of matrix b. Empty matrices have no address, which memcpy must not see.
static inline void linalg_copy(const Factoring *by, void *to, const void *numbers, int64_t b, int64_t n)
{
        if (n > 0)
                memcpy(to, linalg_at(by, numbers, b, n), (size_t)n * by->bytes);
}

// "(Batch element 3): ", or nothing for a single matrix.
typedef struct BatchWords {
        char text[48];
} BatchWords;
BatchWords linalg_words(const TensorMeta *a, int64_t b);

// n^3 * factor steps for each matrix, n the larger side.
Cost linalg_cost(const OpCall *call, int64_t factor);
