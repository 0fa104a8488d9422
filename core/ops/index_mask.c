// SPDX-License-Identifier: Apache-2.0
// index_mask.c: operators whose result's shape depends on the data: nonzero, argwhere,
// nonzero_numpy, masked_select, bincount, repeat_interleave with a tensor; one_hot without
// num_classes.
#include "core/kernels/copy.h"
#include "core/kernels/index/index.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include <inttypes.h>
#include <string.h>

// ---- nonzero ----
static Status nonzero_infer(OpCall *call)
{
        const Tensor *self;
        TRY(arg_data(call, SELF, &self));
        int64_t count;
        TRY(index_count_nonzero(call->emitter->ctx, &self->meta, tensor_data(self), &count));
        TensorMeta meta;
        meta_init(&meta, DTYPE_I64, 2, (int64_t[]){ count, self->meta.rank });
        // Columns one after another, as PyTorch returns them.
        meta.stride[0] = 1;
        meta.stride[1] = count;
        return out_fresh(call, 0, &meta);
}

static Status nonzero_run(const OpRun *run)
{
        if (meta_numel(run->out_meta[0]) != 0)
                TRY(index_nonzero(run->ctx, run->in_meta[0], run->in[0], run->out_meta[0]->size[0],
                                  run->out[0]));
        return STATUS_OK;
}

// One tensor of positions for each dimension; a number counts as a row.
static Status nonzero_numpy_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = call->args[SELF];
        if (compose_meta(&c, self)->rank == 0)
                self = OP(&c, "aten::unsqueeze", self, value_int(0));
        return compose_end(&c, OP(&c, "aten::unbind.int", OP(&c, "aten::nonzero", self), value_int(1)), out);
}

// ---- masked_select ----
// Self or mask repeated to the common shape.
static void spread(TensorMeta *meta, int rank, const int64_t *size)
{
        TensorMeta out;
        meta_init(&out, meta->dtype, rank, size);
        for (int d = 0; d < rank; d++) {
                int own = meta->rank - rank + d;
                out.stride[d] = own < 0 || (meta->size[own] == 1 && size[d] != 1) ? 0 : meta->stride[own];
        }
        *meta = out;
}

static Status masked_select_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        const Tensor *mask;
        TRY(arg_data(call, MASKED_SELECT_MASK, &mask));
        if (mask->meta.dtype != DTYPE_BOOL)
                return fail(STATUS_DTYPE, "masked_select: expected BoolTensor for mask");
        int rank;
        int64_t size[MAX_RANK], numel;
        TRY(shape_broadcast(self, &mask->meta, &rank, size));
        TRY(shape_numel(rank, size, &numel));
        TensorMeta common = mask->meta, meta;
        spread(&common, rank, size);
        int64_t count;
        TRY(index_count_nonzero(call->emitter->ctx, &common, tensor_data(mask), &count));
        meta_init(&meta, self->dtype, 1, &count);
        return out_fresh(call, 0, &meta);
}

static Status masked_select_run(const OpRun *run)
{
        int rank;
        int64_t size[MAX_RANK], count = run->out_meta[0]->size[0];
        if (count == 0)
                return STATUS_OK;
        TRY(shape_broadcast(run->in_meta[0], run->in_meta[1], &rank, size));
        TensorMeta self = *run->in_meta[0], mask = *run->in_meta[1];
        spread(&self, rank, size);
        spread(&mask, rank, size);
        _cleanup_(scratch_deinit) Scratch offsets = { 0 };
        TRY(scratch_init(&offsets, run->ctx, 2 * count, sizeof(int64_t)));
        int64_t *from = offsets.data, *to = from + count;
        TRY(index_mask_offsets(run->ctx, &mask, run->in[1], self.stride, count, from));
        Work work = { .ctx = run->ctx };
        for (int64_t at = 0, end; (end = work_end(&work, at, count, 1)) > at; at = end)
                for (int64_t i = at; i < end; i++)
                        to[i] = i;
        if (work.stops)
                return run_poll(run->ctx);
        IndexTable table = { .dtype = self.dtype, .n = count, .from = from, .to = to };
        return index_table(run->ctx, &table, false, false, run->in[0], run->out[0]);
}

// ---- one_hot ----
static Status class_range(const Tensor *self, const RunContext *ctx, int64_t *out_low, int64_t *out_high)
{
        _cleanup_(dense_deinit) Dense dense = { 0 };
        TRY(dense_init(&dense, ctx, tensor_data(self), &self->meta, DTYPE_I64));
        const int64_t *values = dense.data;
        *out_low = 0;
        *out_high = -1;
        Work work = { .ctx = ctx };
        for (int64_t i = 0, n = meta_numel(&self->meta); i < n && !work_stops(&work, 1); i++) {
                *out_low = MIN(*out_low, values[i]);
                *out_high = MAX(*out_high, values[i]);
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

static Status one_hot_infer(OpCall *call)
{
        const TensorMeta *meta = arg_meta(call, SELF);
        int64_t n_classes, low, high;
        TRY(arg_int(call, ONE_HOT_NUM_CLASSES, &n_classes));
        if (meta->dtype != DTYPE_I64)
                return fail(STATUS_DTYPE, "one_hot is only applicable to index tensor of type LongTensor.");
        if (meta_numel(meta) == 0 && n_classes <= 0)
                return fail(STATUS_VALUE, "Can not infer total number of classes from empty tensor.");
        if (n_classes == -1) {
                const Tensor *self;
                TRY(arg_data(call, SELF, &self));
                TRY(class_range(self, call->emitter->ctx, &low, &high));
                if (low < 0)
                        return fail(STATUS_INDEX, "Class values must be non-negative.");
                if (!add_i64(high, 1, &n_classes))
                        return fail(STATUS_TOO_LARGE, "one_hot: too many classes");
        }
        if (n_classes < 1)
                return fail(STATUS_VALUE, "num_classes should be positive");
        if (meta->rank == MAX_RANK)
                return fail(STATUS_SHAPE,
                            "one_hot: a tensor of %d dimensions is not supported; at most %d are", meta->rank,
                            MAX_RANK - 1);
        int64_t size[MAX_RANK], numel;
        memcpy(size, meta->size, sizeof(size));
        size[meta->rank] = n_classes;
        TRY(shape_numel(meta->rank + 1, size, &numel));
        TensorMeta out;
        meta_init(&out, DTYPE_I64, meta->rank + 1, size);
        return out_fresh(call, 0, &out);
}

static Status one_hot_run(const OpRun *run)
{
        const TensorMeta *out = run->out_meta[0];
        int64_t n_classes = out->size[out->rank - 1], n = meta_numel(run->in_meta[0]);
        if (meta_numel(out) == 0)
                return STATUS_OK;
        _cleanup_(dense_deinit) Dense dense = { 0 };
        TRY(dense_init(&dense, run->ctx, run->in[0], run->in_meta[0], DTYPE_I64));
        Region to = region_of(out, run->out[0]);
        TRY(fill_region(run->ctx, &to, &(int64_t){ 0 }));
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 4); i++) {
                int64_t value = ((const int64_t *)dense.data)[i];
                if (value < 0)
                        return fail(STATUS_INDEX, "Class values must be non-negative.");
                if (value >= n_classes)
                        return fail(STATUS_INDEX, "Class values must be smaller than num_classes.");
                ((int64_t *)run->out[0])[i * n_classes + value] = 1;
        }
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// ---- bincount ----
static Status check_counted(const OpCall *call, int64_t *out_n)
{
        const TensorMeta *self = arg_meta(call, SELF), *weights = arg_meta(call, BINCOUNT_WEIGHTS);
        TRY(arg_int(call, BINCOUNT_MINLENGTH, out_n));
        if (*out_n < 0)
                return fail(STATUS_VALUE, "minlength should be >= 0");
        if (dtype_is_float(self->dtype))
                return fail(STATUS_DTYPE, "\"bincount_cpu\" not implemented for '%s'",
                            dtype_info[self->dtype].name);
        if (self->rank != 1)
                return fail(STATUS_SHAPE, "bincount only supports 1-d non-negative integral inputs.");
        if (weights != NULL && self->size[0] > 0 && (weights->rank != 1 || weights->size[0] != self->size[0]))
                return fail(STATUS_SHAPE, "weights should be 1-d and have the same length as input");
        return STATUS_OK;
}

static Status bincount_infer(OpCall *call)
{
        const TensorMeta *weights = arg_meta(call, BINCOUNT_WEIGHTS);
        const Tensor *self;
        int64_t n, low, high;
        TRY(check_counted(call, &n));
        TRY(arg_data(call, SELF, &self));
        TRY(class_range(self, call->emitter->ctx, &low, &high));
        if (low < 0)
                return fail(STATUS_VALUE, "bincount only supports 1-d non-negative integral inputs.");
        if (!add_i64(high, 1, &high))
                return fail(STATUS_TOO_LARGE, "bincount: too many bins");
        n = MAX(n, high);
        TensorMeta out;
        meta_init(&out,
                  weights == NULL || self->meta.size[0] == 0 ? DTYPE_I64
                  : weights->dtype == DTYPE_F32              ? DTYPE_F32
                                                             : DTYPE_F64,
                  1, &n);
        return out_fresh(call, 0, &out);
}

static Status bincount_run(const OpRun *run)
{
        const TensorMeta *out = run->out_meta[0];
        int64_t n_bins = out->size[0], n = meta_numel(run->in_meta[0]);
        _cleanup_(dense_deinit) Dense bins = { 0 }, weights = { 0 };
        TRY(dense_init(&bins, run->ctx, run->in[0], run->in_meta[0], DTYPE_I64));
        if (out->dtype != DTYPE_I64)
                TRY(dense_init(&weights, run->ctx, run->in[1], run->in_meta[1], out->dtype));
        Region to = region_of(out, run->out[0]);
        TRY(fill_region(run->ctx, &to, &(int64_t){ 0 }));
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 4); i++) {
                int64_t bin = ((const int64_t *)bins.data)[i];
                if (bin < 0 || bin >= n_bins)
                        return fail(STATUS_VALUE, "bincount only supports 1-d non-negative integral inputs.");
                if (out->dtype == DTYPE_I64)
                        ((int64_t *)run->out[0])[bin]++;
                else if (out->dtype == DTYPE_F32)
                        ((float *)run->out[0])[bin] += ((const float *)weights.data)[i];
                else
                        ((double *)run->out[0])[bin] += ((const double *)weights.data)[i];
        }
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// ---- repeat_interleave ----
static Status repeats_sum(const RunContext *ctx, const int64_t *repeats, int64_t n, int64_t *out_sum)
{
        *out_sum = 0;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 1); i++) {
                if (repeats[i] < 0)
                        return fail(STATUS_VALUE, "repeats can not be negative");
                if (!add_i64(*out_sum, repeats[i], out_sum))
                        return fail(STATUS_TOO_LARGE, "repeat_interleave: too many repeats");
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

static Status repeat_indices_infer(OpCall *call)
{
        const TensorMeta *repeats = arg_meta(call, SELF);
        const Tensor *known;
        int64_t total = 0;
        if (repeats->rank != 1)
                return fail(STATUS_SHAPE, "repeat_interleave only accept 1D vector as repeat");
        if (repeats->dtype != DTYPE_I64 && repeats->dtype != DTYPE_I32)
                return fail(STATUS_DTYPE, "\"repeat_interleave_cpu\" not implemented for '%s'",
                            dtype_info[repeats->dtype].name);
        if (repeats->size[0] != 0 && !arg_is_none(call, REPEAT_INDICES_OUTPUT_SIZE)) {
                TRY(arg_int(call, REPEAT_INDICES_OUTPUT_SIZE, &total));
                if (total < 0)
                        return fail(STATUS_SHAPE,
                                    "Trying to create tensor with negative dimension %" PRId64 ": [%" PRId64
                                    "]",
                                    total, total);
        } else if (repeats->size[0] != 0) {
                _cleanup_(dense_deinit) Dense dense = { 0 };
                TRY(arg_data(call, SELF, &known));
                TRY(dense_init(&dense, call->emitter->ctx, tensor_data(known), repeats, DTYPE_I64));
                TRY(repeats_sum(call->emitter->ctx, dense.data, repeats->size[0], &total));
        }
        TensorMeta out;
        meta_init(&out, repeats->dtype, 1, &total);
        return out_fresh(call, 0, &out);
}

static Status repeat_indices_run(const OpRun *run)
{
        const TensorMeta *meta = run->in_meta[0], *out = run->out_meta[0];
        int64_t sum = 0, n = meta->size[0];
        _cleanup_(dense_deinit) Dense repeats = { 0 };
        if (n == 0)
                return STATUS_OK;
        TRY(dense_init(&repeats, run->ctx, run->in[0], meta, DTYPE_I64));
        TRY(repeats_sum(run->ctx, repeats.data, n, &sum));
        if (sum != out->size[0])
                return fail(STATUS_VALUE, "allocated size does not match required size");
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0, at = 0; i < n && !work.stops; i++) {
                int64_t end = at + ((const int64_t *)repeats.data)[i];
                for (; at < end && !work_stops(&work, 1); at++) {
                        if (out->dtype == DTYPE_I64)
                                ((int64_t *)run->out[0])[at] = i;
                        else
                                ((int32_t *)run->out[0])[at] = (int32_t)i;
                }
        }
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// The rows of self along dim that the indices name. Without dim self is a row of its elements.
static Status repeat_rows_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), often = NAMED(&c, "repeats");
        int dim = 0;
        if (compose_has(&c, "dim"))
                dim = compose_dim(&c, "dim", compose_meta(&c, self)->rank);
        else
                self = OP(&c, "aten::flatten.using_ints", self);
        const TensorMeta *meta = compose_meta(&c, self), *repeats = compose_meta(&c, often);
        const int64_t length = meta->rank == 0 ? 0 : meta->size[dim];
        if (meta->rank == 0)
                compose_check(&c,
                              fail(STATUS_INDEX, "Dimension specified as 0 but tensor has no dimensions"));
        else if (repeats->rank > 1)
                compose_check(&c, fail(STATUS_SHAPE, "repeats must be 0-dim or 1-dim tensor"));
        else if (repeats->rank == 0 || repeats->size[0] == 1)
                often = OP(&c, "aten::expand", OP(&c, "aten::reshape", often, INTS(&c, 1)), INTS(&c, length));
        else if (repeats->size[0] != length)
                compose_check(&c, fail(STATUS_SHAPE,
                                       "repeats must have the same size as input along dim, but got "
                                       "repeats.size(0) = %" PRId64 " and input.size(%d) = %" PRId64,
                                       repeats->size[0], dim, length));
        Value at = OP(&c, "aten::repeat_interleave.Tensor", often, NAMED(&c, "output_size"));
        return compose_end(&c, OP(&c, "aten::index_select", self, value_int(dim), at), out);
}

const OpDef index_mask_ops[] = {
        { "aten::nonzero(Tensor self) -> Tensor", DTYPES_ALL, .infer = nonzero_infer, .run = nonzero_run,
          .traits = TRAIT_FRESH },
        { "aten::argwhere(Tensor self) -> Tensor", DTYPES_ALL, .infer = nonzero_infer, .run = nonzero_run,
          .traits = TRAIT_FRESH },
        { "aten::nonzero_numpy(Tensor self) -> Tensor[]", 0, .expand = nonzero_numpy_expand,
          .traits = TRAIT_FRESH },
        { "aten::where(Tensor condition) -> Tensor[]", 0, .expand = nonzero_numpy_expand,
          .traits = TRAIT_FRESH },
        { "aten::masked_select(Tensor self, Tensor mask) -> Tensor", DTYPES_ANY, .infer = masked_select_infer,
          .run = masked_select_run, .traits = TRAIT_FRESH },
        { "aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", DTYPES_ALL, OP_CHECKS,
          .infer = one_hot_infer, .run = one_hot_run, .traits = TRAIT_FRESH },
        { "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
          DTYPES_INTS | DTYPES_FLOATS, OP_CHECKS, .infer = bincount_infer, .run = bincount_run,
          .traits = TRAIT_FRESH },
        { "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
          DTYPES_INTS | DTYPES_FLOATS, OP_CHECKS, .infer = repeat_indices_infer, .run = repeat_indices_run,
          .traits = TRAIT_FRESH },
        { "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
          "output_size=None) -> Tensor",
          .expand = repeat_rows_expand, .traits = TRAIT_FRESH },
};
OP_FILE(index_mask_ops);
