// SPDX-License-Identifier: Apache-2.0
// copy_join.c: tensors put side by side (cat, stack and their kin), repeated, mirrored, rotated.
// All are copies of regions into a fresh tensor; the number of regions is bounded by list length or
// by 2^rank, never by a size.
#include <inttypes.h>
#include <string.h>
#include "core/kernels/copy.h"
#include "core/ops/arguments.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"

// ---- cat, stack ----
// cat ignores empty 1-d tensors, whatever the shapes of the others.
static bool is_skipped(const TensorMeta *meta)
{
        return meta->rank == 1 && meta->size[0] == 0;
}

static Status list_dtype(const OpCall *call, Dtype *out_dtype)
{
        Promotion promotion = PROMOTION_INIT;
        uint32_t n = arg_list_length(call, CAT_TENSORS);
        for (uint32_t i = 0; i < n; i++)
                TRY(promotion_add(&promotion, &arg_list_tensor(call, CAT_TENSORS, i)->meta));
        return promotion_result(&promotion, out_dtype);
}

static Status check_cat_shapes(const TensorMeta *first, const TensorMeta *next, int dim, uint32_t at)
{
        if (next->rank != first->rank)
                return fail(STATUS_SHAPE, "Tensors must have same number of dimensions: got %d and %d",
                            first->rank, next->rank);
        for (int d = 0; d < first->rank; d++) {
                if (d != dim && next->size[d] != first->size[d])
                        return fail(
                                STATUS_SHAPE,
                                "Sizes of tensors must match except in dimension %d. Expected size %" PRId64
                                " but got size %" PRId64 " for tensor number %u in the list.",
                                dim, first->size[d], next->size[d], at);
        }
        return STATUS_OK;
}

// The first tensor that cat does not ignore; the very first when it ignores all.
static const TensorMeta *cat_model(const OpCall *call)
{
        uint32_t n = arg_list_length(call, CAT_TENSORS);
        for (uint32_t i = 0; i < n; i++) {
                const TensorMeta *meta = &arg_list_tensor(call, CAT_TENSORS, i)->meta;
                if (!is_skipped(meta))
                        return meta;
        }
        return &arg_list_tensor(call, CAT_TENSORS, 0)->meta;
}

// When all tensors are ignored, any dimension is accepted.
static Status cat_dim(const OpCall *call, const TensorMeta *model, int *out_dim)
{
        *out_dim = 0;
        return is_skipped(model) ? STATUS_OK : arg_dim(call, CAT_DIM, model->rank, out_dim);
}

static MemoryFormat common_format(const OpCall *call)
{
        uint32_t n = arg_list_length(call, CAT_TENSORS);
        MemoryFormat format = view_suggested_format(&arg_list_tensor(call, CAT_TENSORS, 0)->meta);
        for (uint32_t i = 1; i < n; i++) {
                if (view_suggested_format(&arg_list_tensor(call, CAT_TENSORS, i)->meta) != format)
                        return MEMORY_FORMAT_CONTIGUOUS;
        }
        return format;
}

static Status cat_infer(OpCall *call)
{
        uint32_t n = arg_list_length(call, CAT_TENSORS);
        int dim;
        if (n == 0)
                return fail(STATUS_VALUE, "torch.cat(): expected a non-empty list of Tensors");
        for (uint32_t i = 0; i < n; i++) {
                if (arg_list_tensor(call, CAT_TENSORS, i)->meta.rank == 0)
                        return fail(STATUS_SHAPE,
                                    "zero-dimensional tensor (at position %u) cannot be concatenated", i);
        }
        const TensorMeta *model = cat_model(call);
        TensorMeta meta = *model;
        int64_t numel;
        TRY(cat_dim(call, model, &dim));
        meta.size[dim] = 0;
        for (uint32_t i = 0; i < n; i++) {
                const TensorMeta *next = &arg_list_tensor(call, CAT_TENSORS, i)->meta;
                if (is_skipped(next))
                        continue;
                TRY(check_cat_shapes(model, next, dim, i));
                if (!add_i64(meta.size[dim], next->size[dim], &meta.size[dim]))
                        return fail(STATUS_TOO_LARGE, "torch.cat(): the result is too large");
        }
        TRY(shape_numel(meta.rank, meta.size, &numel));
        TRY(list_dtype(call, &meta.dtype));
        MemoryFormat format = common_format(call);
        TRY(view_set_strides(&meta, meta.rank == 4 || meta.rank == 5 ? format : MEMORY_FORMAT_CONTIGUOUS,
                             model));
        return out_fresh(call, 0, &meta);
}

static Status cat_run(const OpRun *run)
{
        Region out = region_of(run->out_meta[0], run->out[0]);
        int dim;
        int64_t start = 0;
        TRY(cat_dim(run->call, &out.meta, &dim));
        for (uint32_t i = 0; i < run->n_in; i++) {
                if (is_skipped(run->in_meta[i]))
                        continue;
                Region from = region_of(run->in_meta[i], run->in[i]);
                Region to = region_part(&out, dim, start, from.meta.size[dim]);
                if (from.data != to.data) // equal: its producer wrote into the result (OP_JOINS)
                        TRY(copy_region(run->ctx, &from, &to));
                start += from.meta.size[dim];
        }
        return STATUS_OK;
}

static void insert_dim(TensorMeta *meta, int dim, int64_t size)
{
        memmove(meta->size + dim + 1, meta->size + dim, (size_t)(meta->rank - dim) * sizeof(int64_t));
        memmove(meta->stride + dim + 1, meta->stride + dim, (size_t)(meta->rank - dim) * sizeof(int64_t));
        meta->rank++;
        meta->size[dim] = size;
        meta->stride[dim] = 1;
}

// PyTorch builds stack from cat. It concatenates along the dimension before the new one, then
// splits it. A new last dimension is added to every tensor first, with size 1.
static Status stack_strides(const OpCall *call, int dim, TensorMeta *meta)
{
        uint32_t n = arg_list_length(call, CAT_TENSORS);
        bool last = dim == meta->rank - 1;
        MemoryFormat format = MEMORY_FORMAT_CONTIGUOUS;
        for (uint32_t i = 0; i < n; i++) {
                TensorMeta one = arg_list_tensor(call, CAT_TENSORS, i)->meta;
                if (last)
                        insert_dim(&one, dim, 1);
                MemoryFormat next = view_suggested_format(&one);
                format = i == 0 || next == format ? next : MEMORY_FORMAT_CONTIGUOUS;
                if (format == MEMORY_FORMAT_CONTIGUOUS)
                        break;
        }
        if (last)
                return view_set_strides(meta, format, meta);
        TensorMeta joined = arg_list_tensor(call, CAT_TENSORS, 0)->meta;
        int64_t each = joined.size[dim];
        joined.size[dim] *= n;
        TRY(view_set_strides(&joined, format, &joined));
        memcpy(meta->stride, joined.stride, sizeof(meta->stride));
        memmove(meta->stride + dim + 1, joined.stride + dim, (size_t)(joined.rank - dim) * sizeof(int64_t));
        meta->stride[dim] = joined.stride[dim] * MAX(each, 1);
        return STATUS_OK;
}

static Status stack_infer(OpCall *call)
{
        uint32_t n = arg_list_length(call, CAT_TENSORS);
        char first_text[256], text[256];
        int dim;
        if (n == 0)
                return fail(STATUS_VALUE, "stack expects a non-empty TensorList");
        const TensorMeta *first = &arg_list_tensor(call, CAT_TENSORS, 0)->meta;
        TRY(view_check_rank(call, first->rank + 1));
        TRY(arg_dim(call, CAT_DIM, first->rank + 1, &dim));
        for (uint32_t i = 1; i < n; i++) {
                const TensorMeta *next = &arg_list_tensor(call, CAT_TENSORS, i)->meta;
                if (!meta_same_shape(first, next))
                        return fail(STATUS_SHAPE,
                                    "stack expects each tensor to be equal size, but got %s at entry 0 and "
                                    "%s at entry %u",
                                    shape_text(first->rank, first->size, first_text, sizeof(first_text)),
                                    shape_text(next->rank, next->size, text, sizeof(text)), i);
        }
        TensorMeta meta = *first;
        int64_t numel;
        insert_dim(&meta, dim, n);
        TRY(shape_numel(meta.rank, meta.size, &numel));
        TRY(list_dtype(call, &meta.dtype));
        TRY(stack_strides(call, dim, &meta));
        return out_fresh(call, 0, &meta);
}

static Status stack_run(const OpRun *run)
{
        Region out = region_of(run->out_meta[0], run->out[0]);
        int dim;
        TRY(arg_dim(run->call, CAT_DIM, out.meta.rank, &dim));
        for (uint32_t i = 0; i < run->n_in; i++) {
                Region from = region_of(run->in_meta[i], run->in[i]);
                Region to = region_part(&out, dim, i, 1);
                memmove(&to.meta.size[dim], &to.meta.size[dim + 1],
                        (size_t)(to.meta.rank - dim - 1) * sizeof(int64_t));
                memmove(&to.meta.stride[dim], &to.meta.stride[dim + 1],
                        (size_t)(to.meta.rank - dim - 1) * sizeof(int64_t));
                to.meta.rank--;
                TRY(copy_region(run->ctx, &from, &to));
        }
        return STATUS_OK;
}

// ---- hstack and kin: every tensor brought to a rank, then cat ----
static Status raise_rank(Emitter *emitter, Value tensor, int rank, bool behind, Value *out)
{
        Value value = value_ref(tensor);
        while (value.tensor->meta.rank < rank) {
                Value next;
                // atleast_3d adds the third dimension at the end, atleast_2d the first in front.
                int64_t dim = behind && value.tensor->meta.rank == 2 ? 2 : 0;
                Status status = EMIT(emitter, "aten::unsqueeze", &next, value, value_int(dim));
                value_unref(value);
                TRY(status);
                value = next;
        }
        *out = value;
        return STATUS_OK;
}

static Status cat_raised(Emitter *emitter, const OpCall *call, int rank, int64_t dim, Value *out)
{
        uint32_t n = arg_list_length(call, CAT_TENSORS);
        Seq *seq;
        if (n == 0)
                return fail(STATUS_VALUE, "%s expects a non-empty TensorList", call->schema->name);
        TRY(seq_new(n, &seq));
        _cleanup_(value_clear) Value list = value_seq_take(VALUE_LIST, seq);
        for (uint32_t i = 0; i < n; i++)
                TRY(raise_rank(emitter, call->args[CAT_TENSORS].seq->items[i], rank, rank == 3,
                               &seq->items[i]));
        return EMIT(emitter, "aten::cat", out, list, value_int(dim));
}

static Status hstack_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        bool flat = arg_list_length(call, CAT_TENSORS) > 0 &&
                    arg_list_tensor(call, CAT_TENSORS, 0)->meta.rank <= 1;
        return cat_raised(emitter, call, 1, flat ? 0 : 1, out);
}

static Status vstack_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return cat_raised(emitter, call, 2, 0, out);
}

static Status dstack_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return cat_raised(emitter, call, 3, 2, out);
}

static Status concat_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return EMIT(emitter, "aten::cat", out, arg_value(call, CONCAT_TENSORS), arg_value(call, CONCAT_DIM));
}

// ---- repeat ----
static Status repeat_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t repeats[MAX_RANK], size[MAX_RANK], numel;
        int n = 0;
        TRY(view_arg_shape(call, REPEAT_REPEATS, repeats, &n));
        if (n < self->rank)
                return fail(STATUS_VALUE, "Number of dimensions of repeat dims can not be smaller than "
                                          "number of dimensions of tensor");
        for (int d = 0; d < n; d++) {
                int64_t old = d < n - self->rank ? 1 : self->size[d - (n - self->rank)];
                if (!mul_i64(old, repeats[d], &size[d]))
                        return fail(STATUS_TOO_LARGE, "repeat(): the result is too large");
        }
        TRY(shape_numel(n, size, &numel));
        TensorMeta meta;
        meta_init(&meta, self->dtype, n, size);
        return out_fresh(call, 0, &meta);
}

// Copies the first tile in. Then, along each dimension, innermost first, doubles the filled part
// until it has the full size.
static Status repeat_run(const OpRun *run)
{
        Region out = region_of(run->out_meta[0], run->out[0]);
        Region from = region_of(run->in_meta[0], run->in[0]);
        int shift = out.meta.rank - from.meta.rank;
        if (meta_numel(&out.meta) == 0)
                return STATUS_OK;
        Region filled = out;
        for (int d = 0; d < out.meta.rank; d++)
                filled.meta.size[d] = d < shift ? 1 : from.meta.size[d - shift];
        Region tile = filled;
        for (int d = 0; d < from.meta.rank; d++) {
                tile.meta.size[d] = filled.meta.size[d + shift];
                tile.meta.stride[d] = filled.meta.stride[d + shift];
        }
        tile.meta.rank = from.meta.rank;
        TRY(copy_region(run->ctx, &from, &tile));
        for (int d = out.meta.rank - 1; d >= 0; d--) {
                while (filled.meta.size[d] < out.meta.size[d]) {
                        int64_t have = filled.meta.size[d], n = MIN(have, out.meta.size[d] - have);
                        Region source = region_part(&filled, d, 0, n),
                               target = region_part(&filled, d, have, n);
                        TRY(copy_region(run->ctx, &source, &target));
                        filled.meta.size[d] += n;
                }
        }
        return STATUS_OK;
}

static Status tile_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t dims[MAX_RANK], repeats[MAX_RANK];
        int n = 0, rank = arg_meta(call, SELF)->rank;
        _cleanup_(value_clear) Value list = value_none();
        TRY(view_arg_shape(call, TILE_DIMS, dims, &n));
        int shift = MAX(rank - n, 0);
        for (int d = 0; d < n + shift; d++)
                repeats[d] = d < shift ? 1 : dims[d - shift];
        TRY(value_ints_new(VALUE_LIST, repeats, (uint32_t)(n + shift), &list));
        return EMIT(emitter, "aten::repeat", out, arg_value(call, SELF), list);
}

// ---- flip, roll ----
static Status flip_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        uint32_t mask;
        TRY(arg_dims(call, FLIP_DIMS, self->rank, false, &mask));
        meta_set_strides_like(&meta, self);
        return out_fresh(call, 0, &meta);
}

static Status flip_run(const OpRun *run)
{
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(run->out_meta[0], run->out[0]);
        uint32_t mask;
        if (meta_numel(&to.meta) == 0)
                return STATUS_OK;
        TRY(arg_dims(run->call, FLIP_DIMS, from.meta.rank, false, &mask));
        for (int d = 0; d < from.meta.rank; d++) {
                if ((mask >> d & 1) == 0)
                        continue;
                from = (Region){
                        .meta = from.meta,
                        .data = region_part(&from, d, from.meta.size[d] - 1, from.meta.size[d]).data
                };
                from.meta.stride[d] = -from.meta.stride[d];
        }
        return copy_region(run->ctx, &from, &to);
}

enum { ROLL_CAP = 64 };

// Total shift of every dimension, 0 <= shift < size.
static Status roll_shifts(const OpCall *call, const TensorMeta *self, int64_t out_shift[MAX_RANK])
{
        int64_t shifts[ROLL_CAP], dims[ROLL_CAP];
        int n = 0;
        TRY(arg_ints(call, ROLL_SHIFTS, ROLL_CAP, shifts, &n));
        TRY(arg_ints(call, ROLL_DIMS, ROLL_CAP, dims, &n)); // as many: roll_dims_infer
        memset(out_shift, 0, MAX_RANK * sizeof(*out_shift));
        for (int i = 0; i < n; i++) {
                int dim;
                TRY(dim_wrap(dims[i], self->rank, &dim));
                int64_t size = MAX(self->rank == 0 ? 1 : self->size[dim], 1);
                out_shift[dim] = (out_shift[dim] + shifts[i] % size + size) % size;
        }
        return STATUS_OK;
}

// PyTorch builds roll from cat, one dimension after the other. The result keeps a memory format
// only while both parts have it; an empty part never has.
static Status roll_dims_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        int64_t shifts[ROLL_CAP], dims[ROLL_CAP], total[MAX_RANK];
        int n = 0, n_dims = 0;
        TRY(arg_ints(call, ROLL_SHIFTS, ROLL_CAP, shifts, &n));
        TRY(arg_ints(call, ROLL_DIMS, ROLL_CAP, dims, &n_dims));
        if (n == 0)
                return fail(STATUS_VALUE, "`shifts` required");
        if (n != n_dims)
                return fail(STATUS_VALUE, "shifts and dimensions must align. shifts: %d, dims:%d", n, n_dims);
        if (meta_numel(self) == 0) // PyTorch checks nothing else for an empty tensor
                return out_fresh(call, 0, &meta);
        if (self->rank == 0)
                return fail(STATUS_INDEX, "Dimension specified as 0 but tensor has no dimensions");
        TRY(roll_shifts(call, self, total));
        for (int i = 0; i < n && meta_numel(&meta) != 0; i++) {
                int dim;
                TRY(dim_wrap(dims[i], meta.rank, &dim));
                if (meta.rank == 0)
                        break;
                TensorMeta head = meta, tail = meta;
                tail.size[dim] = (shifts[i] % meta.size[dim] + meta.size[dim]) % meta.size[dim];
                head.size[dim] -= tail.size[dim];
                MemoryFormat format = view_suggested_format(&head);
                TRY(view_set_strides(
                        &meta, view_suggested_format(&tail) == format ? format : MEMORY_FORMAT_CONTIGUOUS,
                        &meta));
        }
        return out_fresh(call, 0, &meta);
}

static Status roll_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        if (arg_list_length(call, ROLL_DIMS) > 0 || !value_is_sequence(call->args[ROLL_DIMS]))
                return roll_dims_infer(call);
        if (value_is_sequence(call->args[ROLL_SHIFTS]) && call->args[ROLL_SHIFTS].seq->n != 1)
                return call->args[ROLL_SHIFTS].seq->n == 0
                               ? fail(STATUS_VALUE, "`shifts` required")
                               : fail(STATUS_VALUE, "shifts and dimensions must align. shifts: %u, dims:0",
                                      call->args[ROLL_SHIFTS].seq->n);
        meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

// Each shifted dimension is split into two parts that are swapped: at most 2^rank regions.
static Status roll_parts(const OpRun *run, const Region *from, const Region *to, const int64_t *shift)
{
        uint32_t n_combinations = 1u << to->meta.rank;
        for (uint32_t mask = 0; mask < n_combinations; mask++) {
                Region source = *from, target = *to;
                bool empty = false;
                for (int d = 0; d < to->meta.rank && !empty; d++) {
                        bool wrapped = (mask >> d & 1) != 0;
                        int64_t size = to->meta.size[d], head = size - shift[d];
                        int64_t length = wrapped ? shift[d] : head;
                        empty = length == 0;
                        source = region_part(&source, d, wrapped ? head : 0, length);
                        target = region_part(&target, d, wrapped ? 0 : shift[d], length);
                }
                if (!empty)
                        TRY(copy_region(run->ctx, &source, &target));
        }
        return STATUS_OK;
}

static Status roll_run(const OpRun *run)
{
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(run->out_meta[0], run->out[0]);
        int64_t shift[MAX_RANK] = { 0 };
        int64_t numel = meta_numel(&to.meta);
        if (numel == 0)
                return STATUS_OK;
        if (arg_list_length(run->call, ROLL_DIMS) > 0 || !value_is_sequence(run->call->args[ROLL_DIMS])) {
                TRY(roll_shifts(run->call, &from.meta, shift));
                return roll_parts(run, &from, &to, shift);
        }
        // Without dims the tensor is rolled as if it were flat: copied contiguously, then rotated
        // into the result.
        int64_t by = 0;
        int n = 0;
        TRY(arg_ints(run->call, ROLL_SHIFTS, 1, &by, &n));
        _cleanup_(tensor_unrefp) Tensor *flat = NULL;
        TensorMeta dense = from.meta;
        meta_set_contiguous(&dense);
        TRY(tensor_new(&dense, run->ctx == NULL ? NULL : run->ctx->budget, &flat));
        Region copy = region_of(&dense, tensor_data(flat));
        TRY(copy_region(run->ctx, &from, &copy));
        shift[0] = (by % numel + numel) % numel;
        meta_init(&copy.meta, dense.dtype, 1, &numel);
        to.meta = copy.meta;
        return roll_parts(run, &copy, &to, shift);
}

const OpDef copy_join_ops[] = {
        { "aten::cat(Tensor[] tensors, int dim=0) -> Tensor", .flags = OP_JOINS, .infer = cat_infer,
          .run = cat_run, .traits = TRAIT_FRESH | TRAIT_LAYOUT, .role = ROLE_CAT },
        { "aten::concat(Tensor[] tensors, int dim=0) -> Tensor", .expand = concat_expand,
          .traits = TRAIT_FRESH },
        { "aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor", .expand = concat_expand,
          .traits = TRAIT_FRESH },
        { "aten::stack(Tensor[] tensors, int dim=0) -> Tensor", .infer = stack_infer, .run = stack_run,
          .traits = TRAIT_FRESH },
        { "aten::hstack(Tensor[] tensors) -> Tensor", .expand = hstack_expand, .traits = TRAIT_FRESH },
        { "aten::vstack(Tensor[] tensors) -> Tensor", .expand = vstack_expand, .traits = TRAIT_FRESH },
        { "aten::dstack(Tensor[] tensors) -> Tensor", .expand = dstack_expand, .traits = TRAIT_FRESH },
        { "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", .infer = repeat_infer, .run = repeat_run,
          .traits = TRAIT_FRESH },
        { "aten::tile(Tensor self, SymInt[] dims) -> Tensor", .expand = tile_expand,
          .traits = TRAIT_MAY_SHARE },
        { "aten::flip(Tensor self, int[] dims) -> Tensor", DTYPES_ALL, .infer = flip_infer, .run = flip_run,
          .traits = TRAIT_FRESH },
        { "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", .infer = roll_infer,
          .run = roll_run, .traits = TRAIT_FRESH },
};
OP_FILE(copy_join_ops);
