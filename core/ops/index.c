// SPDX-License-Identifier: Apache-2.0
// index.c: index_select, embedding, gather, take and take_along_dim. Negative indices do not wrap,
// except in take. Results are contiguous.
#include "core/kernels/index/index.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include <string.h>

static bool is_index_dtype(Dtype dtype)
{
        return dtype == DTYPE_I64 || dtype == DTYPE_I32;
}

static Status fresh(OpCall *call, Dtype dtype, int rank, const int64_t *size)
{
        int64_t numel;
        TRY(shape_numel(rank, size, &numel));
        TensorMeta meta;
        meta_init(&meta, dtype, rank, size);
        return out_fresh(call, 0, &meta);
}

// ---- index_select, embedding: whole blocks ----
static Status select_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *index = arg_meta(call, INDEX_SELECT_INDEX);
        int dim;
        TRY(arg_dim(call, INDEX_SELECT_DIM, self->rank, &dim));
        if (index->rank > 1)
                return fail(STATUS_INDEX, "index_select(): Index is supposed to be a vector");
        if (!is_index_dtype(index->dtype))
                return fail(STATUS_DTYPE, "index_select(): Expected dtype int32 or int64 for index");
        int64_t n = meta_numel(index), size[MAX_RANK];
        if (self->rank == 0 && n != 1)
                return fail(STATUS_INDEX,
                            "index_select(): Index to scalar can have only 1 value, got %ld value(s)",
                            (long)n);
        memcpy(size, self->size, sizeof(size));
        if (self->rank > 0)
                size[dim] = n;
        return fresh(call, self->dtype, self->rank, size);
}

static Status embedding_infer(OpCall *call)
{
        const TensorMeta *weight = arg_meta(call, EMBEDDING_WEIGHT),
                         *indices = arg_meta(call, EMBEDDING_INDICES);
        if (weight->rank != 2)
                return fail(STATUS_SHAPE, "'weight' must be 2-D");
        if (!is_index_dtype(indices->dtype))
                return fail(STATUS_DTYPE,
                            "Expected tensor for argument #1 'indices' to have one of the following scalar "
                            "types: Long, Int; but got "
                            "torch.%sTensor instead "
                            "(while checking arguments for embedding)",
                            dtype_words(indices->dtype));
        if (indices->rank == MAX_RANK)
                return fail(STATUS_SHAPE,
                            "embedding: indices of %d dimensions are not supported; at most %d are",
                            indices->rank, MAX_RANK - 1);
        int64_t size[MAX_RANK];
        memcpy(size, indices->size, sizeof(size));
        size[indices->rank] = weight->size[1];
        return fresh(call, weight->dtype, indices->rank + 1, size);
}

// Rows of dimension `dim` of argument 0, by tensor argument 1.
static Status select_rows(const OpRun *run, int dim)
{
        const TensorMeta *self = run->in_meta[0];
        _cleanup_(dense_deinit) Dense from = { 0 }, index = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_init(&index, run->ctx, run->in[1], run->in_meta[1], DTYPE_I64));
        TRY(dense_init(&from, run->ctx, run->in[0], self, self->dtype));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], self->dtype));
        IndexRows rows = { .outer = 1,
                           .n_from = self->rank == 0 ? 1 : self->size[dim],
                           .n_indices = meta_numel(run->in_meta[1]),
                           .indices = index.data };
        rows.block_bytes = dtype_info[self->dtype].bytes;
        for (int d = 0; d < self->rank; d++) {
                if (d < dim)
                        rows.outer *= self->size[d];
                else if (d > dim)
                        rows.block_bytes *= (size_t)self->size[d];
        }
        TRY(index_rows(run->ctx, &rows, from.data, out.data));
        TRY(dense_out_store(&out));
        return STATUS_OK;
}

static Status select_run(const OpRun *run)
{
        int dim;
        TRY(arg_dim(run->call, INDEX_SELECT_DIM, run->in_meta[0]->rank, &dim));
        return select_rows(run, dim);
}

static Status embedding_run(const OpRun *run)
{
        return select_rows(run, 0);
}

// ---- gather, take_along_dim ----
static Status gather_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *index = arg_meta(call, GATHER_INDEX);
        int dim;
        TRY(arg_dim(call, GATHER_DIM, self->rank, &dim));
        if (meta_numel(index) != 0 && !is_index_dtype(index->dtype))
                return fail(STATUS_DTYPE, "gather(): Expected dtype int32/int64 for index");
        if (meta_numel(index) != 0 && MAX(index->rank, 1) != MAX(self->rank, 1))
                return fail(STATUS_SHAPE,
                            "Index tensor must have the same number of dimensions as input tensor");
        char a[128], b[128];
        for (int d = 0; d < MIN(index->rank, self->rank) && meta_numel(index) != 0; d++) {
                if (d != dim && index->size[d] > self->size[d])
                        return fail(STATUS_SHAPE,
                                    "Size does not match at dimension %d expected index %s to be no larger "
                                    "than self %s apart from "
                                    "dimension %d",
                                    d, shape_text(index->rank, index->size, a, sizeof(a)),
                                    shape_text(self->rank, self->size, b, sizeof(b)), dim);
        }
        return fresh(call, self->dtype, index->rank, index->size);
}

// take_along_dim counts around the dimension, as Python's % does.
static Status wrap_indices(const RunContext *ctx, int64_t size, int64_t n, const int64_t *indices,
                           Scratch *out_wrapped)
{
        if (size == 0)
                return fail(STATUS_INDEX, "take_along_dim: the dimension that is taken from is empty");
        TRY(scratch_init(out_wrapped, ctx, n, sizeof(int64_t)));
        int64_t *wrapped = out_wrapped->data;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 4); i++) {
                int64_t at = indices[i] % size;
                wrapped[i] = at < 0 ? at + size : at;
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

// out (shape of the positions) = self along `dim` by the int64 index.
static Status gather_positions(const OpRun *run, int dim, const TensorMeta *self,
                               const TensorMeta *index_meta, bool wraps)
{
        const TensorMeta *out = run->out_meta[0];
        if (meta_numel(out) == 0)
                return STATUS_OK;
        _cleanup_(dense_deinit) Dense index = { 0 };
        _cleanup_(scratch_deinit) Scratch wrapped = { 0 };
        int64_t n_values;
        IndexWalk walk = { .dim = dim, .dtype = self->dtype };
        TRY(index_walk_init(run->ctx, run->in[1], index_meta, &walk, &index, &n_values));
        if (wraps) {
                TRY(wrap_indices(run->ctx, self->rank == 0 ? 1 : self->size[dim], n_values, index.data,
                                 &wrapped));
                walk.index = wrapped.data;
        }
        memcpy(walk.plain_stride, out->stride, sizeof(walk.plain_stride));
        if (self->rank > 0)
                memcpy(walk.indexed_stride, self->stride, sizeof(walk.indexed_stride));
        if (out->rank == 0) {
                walk.rank = 1;
                walk.size[0] = 1;
                walk.plain_stride[0] = 0;
        }
        walk.n_indexed = self->rank == 0 ? 1 : self->size[dim];
        return index_gather(run->ctx, &walk, run->in[0], run->out[0]);
}

static Status gather_run(const OpRun *run)
{
        int dim;
        TRY(arg_dim(run->call, GATHER_DIM, run->in_meta[0]->rank, &dim));
        return gather_positions(run, dim, run->in_meta[0], run->in_meta[1], false);
}

// Broadcasts all dimensions but `dim`.
static Status along_shape(const TensorMeta *self, const TensorMeta *index, int dim, int64_t *out_size)
{
        TensorMeta a = *self, b = *index;
        a.size[dim] = b.size[dim] = 1;
        int rank;
        TRY(shape_broadcast(&a, &b, &rank, out_size));
        out_size[dim] = index->size[dim];
        return STATUS_OK;
}

static Status along_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *index = arg_meta(call, TAKE_ALONG_DIM_INDICES);
        // Without a dimension PyTorch hands the elements to gather, which takes int32 as well.
        if (index->dtype != DTYPE_I64 &&
            !(index->dtype == DTYPE_I32 && arg_is_none(call, TAKE_ALONG_DIM_DIM)))
                return fail(STATUS_DTYPE,
                            "torch.take_along_dim(): dtype of indices should be Long but got %s",
                            dtype_words(index->dtype));
        if (arg_is_none(call, TAKE_ALONG_DIM_DIM))
                return fresh(call, self->dtype, 1, (int64_t[]){ meta_numel(index) });
        int dim;
        TRY(arg_dim(call, TAKE_ALONG_DIM_DIM, self->rank, &dim));
        if (self->rank != index->rank)
                return fail(STATUS_SHAPE,
                            "torch.take_along_dim(): input and indices should have the same number of "
                            "dimensions, but got %d dimensions "
                            "for input, and %d "
                            "dimensions for indices",
                            self->rank, index->rank);
        if (self->rank == 0)
                return fail(STATUS_INDEX, "Dimension specified as 0 but tensor has no dimensions");
        int64_t size[MAX_RANK];
        TRY(along_shape(self, index, dim, size));
        return fresh(call, self->dtype, self->rank, size);
}

static void broadcast_to(TensorMeta *meta, const int64_t *size)
{
        for (int d = 0; d < meta->rank; d++) {
                if (meta->size[d] == 1 && size[d] != 1)
                        meta->stride[d] = 0;
                meta->size[d] = size[d];
        }
}

static Status take_run(const OpRun *run);

static Status along_run(const OpRun *run)
{
        if (arg_is_none(run->call, TAKE_ALONG_DIM_DIM))
                return take_run(run);
        TensorMeta self = *run->in_meta[0], index = *run->in_meta[1];
        int dim = 0;
        TRY(arg_dim(run->call, TAKE_ALONG_DIM_DIM, self.rank, &dim));
        int64_t n = self.size[dim], size[MAX_RANK];
        memcpy(size, run->out_meta[0]->size, sizeof(size));
        broadcast_to(&index, size);
        size[dim] = n;
        broadcast_to(&self, size);
        return gather_positions(run, dim, &self, &index, true);
}

// ---- take: flat positions ----
static Status take_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *index = arg_meta(call, TAKE_INDEX);
        if (index->dtype != DTYPE_I64)
                return fail(STATUS_DTYPE, "take(): Expected a long tensor for index, but got %s",
                            dtype_words(index->dtype));
        if (meta_numel(self) == 0 && meta_numel(index) != 0)
                return fail(STATUS_INDEX, "take(): tried to take from an empty tensor");
        return fresh(call, self->dtype, index->rank, index->size);
}

// Positions begin..end - 1 among `n` elements; negative ones count from the end if `wraps`.
typedef struct Positions {
        const int64_t *given;
        int64_t n;
        bool wraps;
        int64_t *out;
} Positions;

static Status find_positions(const Positions *positions, int64_t begin, int64_t end)
{
        const int64_t *given = positions->given, n = positions->n, behind = positions->wraps ? n : 0;
        uint64_t bad = 0; // the sign of any position or of what is left behind it
        for (int64_t i = begin; i < end; i++) {
                const int64_t at = given[i] + (given[i] < 0 ? behind : 0);
                positions->out[i] = at;
                bad |= (uint64_t)at | ((uint64_t)n - 1 - (uint64_t)at);
        }
        for (int64_t i = begin; bad >> 63 != 0 && i < end; i++) {
                if (positions->out[i] < 0 || positions->out[i] >= n)
                        return fail(STATUS_INDEX,
                                    "out of range: tried to access index %ld on a tensor of %ld elements.",
                                    (long)given[i], (long)n);
        }
        return STATUS_OK;
}

static Status take_run(const OpRun *run)
{
        const TensorMeta *self = run->in_meta[0];
        int64_t n = meta_numel(self), n_out = meta_numel(run->out_meta[0]);
        if (n_out == 0)
                return STATUS_OK;
        bool wraps = run->call->schema->n_args == 2;
        _cleanup_(dense_deinit) Dense from = { 0 }, given = { 0 };
        _cleanup_(scratch_deinit) Scratch wrapped = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_init(&given, run->ctx, run->in[1], run->in_meta[1], DTYPE_I64));
        TRY(dense_init(&from, run->ctx, run->in[0], self, self->dtype));
        TRY(scratch_init(&wrapped, run->ctx, n_out, sizeof(int64_t)));
        const Positions positions = { given.data, n, wraps, wrapped.data };
        Work work = { .ctx = run->ctx };
        for (int64_t begin = 0, end; (end = work_end(&work, begin, n_out, 2)) > begin; begin = end)
                TRY(find_positions(&positions, begin, end));
        if (work.stops)
                return run_poll(run->ctx);
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], self->dtype));
        IndexRows rows = { .outer = 1,
                           .n_from = n,
                           .n_indices = n_out,
                           .block_bytes = dtype_info[self->dtype].bytes,
                           .indices = wrapped.data };
        TRY(index_rows(run->ctx, &rows, from.data, out.data));
        TRY(dense_out_store(&out));
        return STATUS_OK;
}

const OpDef index_ops[] = {
        { "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
          "scale_grad_by_freq=False, bool sparse=False) -> "
          "Tensor",
          DTYPES_ANY, OP_CHECKS, .infer = embedding_infer, .run = embedding_run, .traits = TRAIT_FRESH },
        { "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", DTYPES_ANY, OP_CHECKS,
          .infer = select_infer, .run = select_run, .traits = TRAIT_FRESH, .role = ROLE_INDEX_SELECT },
        { "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", DTYPES_ALL,
          OP_CHECKS, .infer = gather_infer, .run = gather_run, .traits = TRAIT_FRESH },
        { "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", DTYPES_ALL, OP_CHECKS,
          .infer = along_infer, .run = along_run, .traits = TRAIT_FRESH },
        { "aten::take(Tensor self, Tensor index) -> Tensor", DTYPES_ANY, OP_CHECKS, .infer = take_infer,
          .run = take_run, .traits = TRAIT_FRESH },
};
OP_FILE(index_ops);
