// SPDX-License-Identifier: Apache-2.0
// Reductions: rows of a strided array, gathered where they are not contiguous, handed to a function
// per row.
#pragma once
#include "core/kernels/dense.h"
#include "core/tensor/convert.h"

// Dimensions split into kept ones (one row per kept index, in row-major order) and reduced ones
// (elements of a row).
typedef struct RowPlan {
        int n_keep, n_reduce;
        int64_t keep_size[MAX_RANK], keep_stride[MAX_RANK], reduce_size[MAX_RANK], reduce_stride[MAX_RANK];
        int64_t n_rows, row_length;
} RowPlan;

enum { REDUCE_LANES = 16, REDUCE_CHUNK = 512 }; // of a row's sum, see reduce.c

// Where element `index` of these dimensions lies, in elements; it is one of theirs.
static inline int64_t row_offset(int n, const int64_t *size, const int64_t *stride, int64_t index)
{
        int64_t offset = 0;
        for (int d = n - 1; d > 0; d--) {
                offset += index % size[d] * stride[d];
                index /= size[d];
        }
        return n == 0 ? 0 : offset + index * stride[0];
}

// `mask`: bit d set = dimension d is reduced. `ordered`: elements of a row keep their row-major
// order (arg reductions, scans, sorts); otherwise the order of memory is taken.
void row_plan(RowPlan *plan, const TensorMeta *meta, uint32_t mask, bool ordered);

// Called for rows begin .. in any order from several threads; `row` is contiguous and must not be
// written. `work` is the thread's: what is left of the row when it stops may stay undone.
typedef void (*RowFunction)(const void *context, Work *work, int64_t index, int64_t n, const void *row);
// Visits all rows of `data` (elements of 1, 4 or 8 bytes). Rows of length 0 are visited too.
Status rows_visit(const RunContext *ctx, const RowPlan *plan, size_t item_bytes, const void *data,
                  RowFunction visit, const void *context);
// The failure of a reduction whose scratch does not fit into the run's budget.
Status fail_no_scratch(void);

typedef enum ReduceKind {
        REDUCE_SUM,
        REDUCE_MEAN,
        REDUCE_PROD,
        REDUCE_MAX, // NaN wins
        REDUCE_MIN,
        REDUCE_ANY, // 0 or 1
        REDUCE_ALL,
        REDUCE_NONZERO, // count, as int64 (also for floats)
        REDUCE_LOGSUMEXP,
        REDUCE_NORM, // of order `p`
        REDUCE_VAR,  // with `p` as correction
        REDUCE_STD,
        REDUCE_NANSUM, // NaN counts as 0
} ReduceKind;

// Reduces `data` to out[n_rows] of the compute dtype `dtype` (F32, F64, I64); REDUCE_NONZERO, ANY
// and ALL write int64. MEAN, LOGSUMEXP, NORM, VAR, STD and NANSUM are for floats. Elements are read
// in their own dtype `stored`, and converted some at a time.
// `extra`: REDUCE_VAR and REDUCE_STD write the mean there, MAX and MIN the index (int64) of the
// first extreme (NaN counts as extreme; needs an ordered plan); NULL: not wanted.
typedef struct Reduction {
        Dtype dtype, stored;
        ReduceKind kind;
        double p; // order of the norm; correction of the variance
        // REDUCE_LOGSUMEXP of half values: rounded to this half dtype at every step, as PyTorch's
        // composite is; others: not
        Dtype rounding;
        // used
        const void *data;
        void *out, *extra;
        const struct ReduceSteps *steps; // reduce_run's: of the elements' dtype
} Reduction;
Status reduce_run(const RunContext *ctx, const RowPlan *plan, const Reduction *reduction);

// Whether the kind asks only which elements are not 0.
static inline bool reduce_counts(ReduceKind kind)
{
        return kind == REDUCE_ANY || kind == REDUCE_ALL || kind == REDUCE_NONZERO;
}
// What the elements of a row are when the row functions see them: uint8 where it counts, uint8 and
// int32 for extremes of bool, uint8 and int32, otherwise the reduction's dtype.
static inline Dtype reduce_item(const Reduction *reduction)
{
        const bool extreme = reduction->kind == REDUCE_MAX || reduction->kind == REDUCE_MIN;
        const Dtype stored = reduction->stored;
        if (reduce_counts(reduction->kind))
                return DTYPE_U8;
        if (!extreme || reduction->extra != NULL || reduction->dtype != DTYPE_I64)
                return reduction->dtype;
        return stored == DTYPE_BOOL || stored == DTYPE_U8 ? DTYPE_U8
               : stored == DTYPE_I32                      ? DTYPE_I32
                                                          : DTYPE_I64;
}
// How elements become that. NULL: they are it already, or bytes that are 0 or not where it counts.
static inline TileLoad reduce_loader(const Reduction *reduction)
{
        const Dtype stored = reduction->stored, item = reduce_item(reduction);
        if (reduce_counts(reduction->kind))
                return dtype_info[stored].bytes == 1 && dtype_info[stored].kind != DTYPE_KIND_FLOAT
                               ? NULL
                               : tile_loader(TILE_MASK, stored);
        if (item != reduction->dtype)
                return NULL;
        const TileClass class = reduction->dtype == DTYPE_F32   ? TILE_F32
                                : reduction->dtype == DTYPE_F64 ? TILE_F64
                                                                : TILE_I64;
        return stored == reduction->dtype ? NULL : tile_loader(class, stored);
}
