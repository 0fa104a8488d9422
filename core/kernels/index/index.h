// SPDX-License-Identifier: Apache-2.0
// Moving elements by index. Elements are bytes of a size (1, 2, 4, 8, 16); index values are checked
// by the caller or here, never trusted.
#pragma once
#include "core/kernels/dense.h"

// out[o][j] = from[o][indices[j]] over blocks of `block_bytes`; from: [outer][n_from], out:
// [outer][n_indices], contiguous. `index out of range in self` for values outside 0..n_from - 1.
typedef struct IndexRows {
        int64_t outer, n_from, n_indices;
        size_t block_bytes;
        const int64_t *indices;
} IndexRows;
Status index_rows(const RunContext *ctx, const IndexRows *rows, const void *from, void *out);

typedef enum ScatterKind {
        SCATTER_COPY,
        SCATTER_ADD,
        SCATTER_MULTIPLY,
        SCATTER_MAX,
        SCATTER_MIN
} ScatterKind;

// Elements addressed by an index tensor along one dimension. For every position p of `index` (int64
// of shape size[rank]), element q of `indexed` is paired with element p of `plain`; q is p with
// p[dim] replaced by index[p]. `indexed` has strides indexed_stride and n_indexed elements along
// dim; plain_stride and index_stride may be 0. Dimensions after dim that share an index and are
// contiguous on both sides move as whole rows.
typedef struct IndexWalk {
        int rank, dim;
        int64_t size[MAX_RANK], indexed_stride[MAX_RANK], plain_stride[MAX_RANK], index_stride[MAX_RANK];
        int64_t n_indexed;
        const int64_t *index;
        Dtype dtype;
        bool wraps; // negative indices count from the end
} IndexWalk;
// Sets rank, size, index and index_stride from an int32 or int64 index of shape and strides
// `positions`, not empty. `index` holds its *out_n values; those of an expanded dimension once.
Status index_walk_init(const RunContext *ctx, const void *data, const TensorMeta *positions, IndexWalk *walk,
                       Dense *index, int64_t *out_n);
// plain = indexed (gather). `index 3 is out of bounds for dimension 0 with size 3`.
Status index_gather(const RunContext *ctx, const IndexWalk *walk, const void *indexed, void *plain);
// indexed = indexed op plain, in row-major order of positions; sums are rounded at every step, as
// PyTorch's are.
Status index_scatter(const RunContext *ctx, const IndexWalk *walk, ScatterKind kind, void *indexed,
                     const void *plain);

// Element pairs given by two tables of offsets (elements) and plain dimensions around them: before,
// table, after.
typedef struct IndexTable {
        Dtype dtype;
        int n_before, n_after;
        int64_t before_size[MAX_RANK], before_from[MAX_RANK], before_to[MAX_RANK];
        int64_t after_size[MAX_RANK], after_from[MAX_RANK], after_to[MAX_RANK];
        int64_t n;
        const int64_t *from, *to;
} IndexTable;
// to = from; with `accumulate` to += from (then one thread, in order).
Status index_table(const RunContext *ctx, const IndexTable *table, bool ordered, bool accumulate,
                   const void *from, void *to);

// Positions of the nonzero elements (any dtype, any strides), row-major: how many; then out:
// [rank][count] int64.
Status index_count_nonzero(const RunContext *ctx, const TensorMeta *meta, const void *data,
                           int64_t *out_count);
Status index_nonzero(const RunContext *ctx, const TensorMeta *meta, const void *data, int64_t count,
                     int64_t *out);
// The nonzero elements' offsets in a tensor of these strides and the mask's shape: `count` of them.
Status index_mask_offsets(const RunContext *ctx, const TensorMeta *meta, const void *data,
                          const int64_t *stride, int64_t count, int64_t *out);
