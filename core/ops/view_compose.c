// SPDX-License-Identifier: Apache-2.0
// view_compose.c: composites of views and copies: scatters into a part of a tensor, grids,
// differences, repeated elements.
#include <inttypes.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/view.h"

// ---- a copy whose view is written ----
static bool has_repeats(const TensorMeta *meta)
{
        for (int d = 0; d < meta->rank; d++) {
                if (meta->stride[d] == 0 && meta->size[d] > 1)
                        return true;
        }
        return false;
}

// Strides are kept as they are, gaps included, unless elements share memory.
static Status clone_with_strides(Emitter *emitter, Value self, Value *out)
{
        const TensorMeta *meta = &self.tensor->meta;
        int64_t span = 0;
        bool plain = meta_is_non_overlapping_and_dense(meta) || has_repeats(meta);
        TRY(meta_span(meta, &span));
        if (plain || span == 0)
                return EMIT(emitter, "aten::clone", out, self);
        _cleanup_(value_clear) Value size = value_none(), stride = value_none(), flat_size = value_none(),
                                     flat = value_none(), copy = value_none(), one = value_none();
        TRY(value_ints_new(VALUE_LIST, meta->size, meta->rank, &size));
        TRY(value_ints_new(VALUE_LIST, meta->stride, meta->rank, &stride));
        TRY(value_ints_new(VALUE_LIST, &span, 1, &flat_size));
        TRY(value_ints_new(VALUE_LIST, &(int64_t){ 1 }, 1, &one));
        TRY(EMIT(emitter, "aten::as_strided", &flat, self, flat_size, one, value_int(self.tensor->offset)));
        TRY(EMIT(emitter, "aten::clone", &copy, flat));
        return EMIT(emitter, "aten::as_strided", out, copy, size, stride, value_int(0));
}

static Status check_source(const OpCall *call, const TensorMeta *part)
{
        const TensorMeta *source = arg_meta(call, SLICE_SCATTER_SRC);
        char have[256], want[256];
        if (meta_same_shape(part, source))
                return STATUS_OK;
        return fail(STATUS_SHAPE,
                    "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                    shape_text(source->rank, source->size, have, sizeof(have)),
                    shape_text(part->rank, part->size, want, sizeof(want)));
}

static Status scatter_into(Emitter *emitter, const OpCall *call, const char *view, const Value *args,
                           uint32_t n_args, Value *out)
{
        Value view_args[8];
        _cleanup_(value_clear) Value copy = value_none(), part = value_none();
        TRY(clone_with_strides(emitter, arg_value(call, SELF), &copy));
        view_args[0] = copy;
        for (uint32_t i = 0; i < n_args; i++)
                view_args[i + 1] = args[i];
        TRY(emit_values(emitter, view, view_args, n_args + 1, &part));
        TRY(check_source(call, &part.tensor->meta));
        TRY(emitter->vtbl->write(emitter, part.tensor, call->args[SLICE_SCATTER_SRC].tensor));
        *out = copy;
        copy = value_none();
        return STATUS_OK;
}

static Status slice_scatter_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return scatter_into(emitter, call, "aten::slice.Tensor", call->args + 2, 4, out);
}

static Status select_scatter_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return scatter_into(emitter, call, "aten::select.int", call->args + 2, 2, out);
}

static Status diagonal_scatter_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return scatter_into(emitter, call, "aten::diagonal", call->args + 2, 3, out);
}

// The part is counted from the beginning of self's storage. Only elements that lie in self's own
// span are there to be written.
static Status as_strided_scatter_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Tensor *self = call->args[SELF].tensor;
        TensorMeta part = { .dtype = self->meta.dtype };
        int rank = 0, n_strides = 0;
        int64_t span, wanted, offset = 0;
        TRY(view_arg_shape(call, AS_STRIDED_SCATTER_SIZE, part.size, &rank));
        TRY(view_arg_shape(call, AS_STRIDED_SCATTER_STRIDE, part.stride, &n_strides));
        if (rank != n_strides)
                return fail(STATUS_VALUE, "mismatch in length of strides and shape");
        part.rank = (uint8_t)rank;
        TRY(meta_span(&self->meta, &span));
        TRY(meta_span(&part, &wanted));
        int64_t begin = self->offset;
        if (has_repeats(&self->meta)) { // its copy is contiguous
                span = meta_numel(&self->meta);
                begin = 0;
        }
        if (!arg_is_none(call, AS_STRIDED_SCATTER_OFFSET)) {
                TRY(arg_int(call, AS_STRIDED_SCATTER_OFFSET, &offset));
                if (offset < begin)
                        return fail(STATUS_UNSUPPORTED,
                                    "as_strided_scatter: places in front of self's first element are not "
                                    "supported");
                offset -= begin;
        }
        if (offset > span || wanted > span - offset)
                return fail(STATUS_UNSUPPORTED,
                            "as_strided_scatter: places behind self's last element are not supported");
        Value args[] = { call->args[AS_STRIDED_SCATTER_SIZE], call->args[AS_STRIDED_SCATTER_STRIDE],
                         value_int(offset) };
        return scatter_into(emitter, call, "aten::as_strided", args, 3, out);
}

static Status narrow_copy_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value part = value_none();
        TRY(EMIT(emitter, "aten::narrow", &part, arg_value(call, SELF), arg_value(call, NARROW_COPY_DIM),
                 arg_value(call, NARROW_COPY_START), arg_value(call, NARROW_COPY_LENGTH)));
        return EMIT(emitter, "aten::clone", out, part,
                    (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS });
}

// ---- grids ----
static Status grid_one(Emitter *emitter, Value tensor, int at, int n, Value sizes, Value *out)
{
        int64_t shape[MAX_RANK];
        _cleanup_(value_clear) Value list = value_none(), wide = value_none();
        for (int d = 0; d < n; d++)
                shape[d] = d == at ? meta_numel(&tensor.tensor->meta) : 1;
        TRY(value_ints_new(VALUE_LIST, shape, (uint32_t)n, &list));
        TRY(EMIT(emitter, "aten::view", &wide, tensor, list));
        return EMIT(emitter, "aten::expand", out, wide, sizes);
}

static Status check_grid(const OpCall *call, uint32_t n, int64_t *out_sizes)
{
        if (n == 0 || n > MAX_RANK)
                return fail(STATUS_VALUE, "meshgrid expects 1 to %d tensors, not %u", MAX_RANK, n);
        for (uint32_t i = 0; i < n; i++) {
                const TensorMeta *meta = &arg_list_tensor(call, MESHGRID_TENSORS, i)->meta;
                if (meta->rank > 1)
                        return fail(STATUS_SHAPE,
                                    "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: %d "
                                    "dimensions",
                                    meta->rank);
                if (meta->dtype != arg_list_tensor(call, MESHGRID_TENSORS, 0)->meta.dtype)
                        return fail(STATUS_DTYPE,
                                    "torch.meshgrid expects all tensors to have the same dtype");
                out_sizes[i] = meta_numel(meta);
        }
        return STATUS_OK;
}

// Grid k varies along dimension k; for "xy" the first two change places.
static Status meshgrid_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        uint32_t n = arg_list_length(call, MESHGRID_TENSORS);
        const char *indexing = call->n_args > 1 ? arg_text(call, MESHGRID_INDEXING) : "ij";
        bool swap = strcmp(indexing, "xy") == 0;
        int64_t size[MAX_RANK];
        _cleanup_(value_clear) Value sizes = value_none();
        Seq *seq;
        if (!swap && strcmp(indexing, "ij") != 0)
                return fail(STATUS_VALUE,
                            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %.40s",
                            indexing);
        TRY(check_grid(call, n, size));
        swap = swap && n > 1;
        if (swap) {
                int64_t first = size[0];
                size[0] = size[1];
                size[1] = first;
        }
        TRY(value_ints_new(VALUE_LIST, size, n, &sizes));
        TRY(seq_new(n, &seq));
        _cleanup_(value_clear) Value grids = value_seq_take(VALUE_LIST, seq);
        for (uint32_t i = 0; i < n; i++) {
                int at = swap && i < 2 ? 1 - (int)i : (int)i;
                TRY(grid_one(emitter, call->args[MESHGRID_TENSORS].seq->items[i], at, (int)n, sizes,
                             &seq->items[i]));
        }
        *out = grids;
        grids = value_none();
        return STATUS_OK;
}

// ---- differences ----
static Status joined(Emitter *emitter, const OpCall *call, int dim, Value *out)
{
        Seq *seq;
        uint32_t n = 0;
        if (arg_is_none(call, DIFF_PREPEND) && arg_is_none(call, DIFF_APPEND)) {
                *out = value_ref(arg_value(call, SELF));
                return STATUS_OK;
        }
        TRY(seq_new(3u - arg_is_none(call, DIFF_PREPEND) - arg_is_none(call, DIFF_APPEND), &seq));
        _cleanup_(value_clear) Value list = value_seq_take(VALUE_LIST, seq);
        if (!arg_is_none(call, DIFF_PREPEND))
                seq->items[n++] = value_ref(arg_value(call, DIFF_PREPEND));
        seq->items[n++] = value_ref(arg_value(call, SELF));
        if (!arg_is_none(call, DIFF_APPEND))
                seq->items[n] = value_ref(arg_value(call, DIFF_APPEND));
        return EMIT(emitter, "aten::cat", out, list, value_int(dim));
}

static Status diff_once(Emitter *emitter, Value self, int dim, Value *out)
{
        int64_t length = MAX(self.tensor->meta.size[dim] - 1, 0);
        bool is_bool = self.tensor->meta.dtype == DTYPE_BOOL;
        _cleanup_(value_clear) Value later = value_none(), earlier = value_none();
        TRY(EMIT(emitter, "aten::narrow", &later, self, value_int(dim),
                 value_int(MIN(self.tensor->meta.size[dim], 1)), value_int(length)));
        TRY(EMIT(emitter, "aten::narrow", &earlier, self, value_int(dim), value_int(0), value_int(length)));
        if (is_bool)
                return EMIT(emitter, "aten::logical_xor", out, later, earlier);
        return EMIT(emitter, "aten::sub.Tensor", out, later, earlier);
}

static Status diff_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t n = 0;
        int dim;
        const TensorMeta *self = arg_meta(call, SELF);
        TRY(arg_int(call, DIFF_N, &n));
        if (self->rank == 0)
                return fail(STATUS_SHAPE, "diff expects input to be at least one-dimensional");
        if (n < 0)
                return fail(STATUS_VALUE, "order must be non-negative but got %" PRId64, n);
        TRY(arg_dim(call, DIFF_DIM, self->rank, &dim));
        if (n == 0)
                return EMIT(emitter, "aten::clone", out, arg_value(call, SELF));
        Value value = value_none();
        TRY(joined(emitter, call, dim, &value));
        // After as many steps as its length the tensor is empty: further ones change nothing.
        int64_t steps = MIN(n, MAX(value.tensor->meta.size[dim], 1));
        enum { MAX_STEPS = 64 };
        Status status = steps > MAX_STEPS
                                ? fail(STATUS_VALUE, "diff(): orders above %d are not supported", MAX_STEPS)
                                : STATUS_OK;
        for (int64_t i = 0; i < steps && status == STATUS_OK; i++) {
                Value next = value_none();
                status = diff_once(emitter, value, dim, &next);
                value_unref(value);
                value = next;
        }
        if (status != STATUS_OK)
                value_clear(&value);
        else
                *out = value;
        return status;
}

// ---- repeated and mirrored elements ----
static Status repeat_interleave_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t repeats = 0;
        int dim = 0;
        _cleanup_(value_clear) Value self = value_none(), tall = value_none(), sizes = value_none(),
                                     wide = value_none(), copy = value_none();
        TRY(arg_int(call, REPEAT_INTERLEAVE_REPEATS, &repeats));
        if (repeats < 0)
                return fail(STATUS_VALUE, "Repeats must be non-negative");
        if (arg_is_none(call, REPEAT_INTERLEAVE_DIM)) {
                TRY(EMIT(emitter, "aten::flatten.using_ints", &self, arg_value(call, SELF)));
        } else {
                TRY(arg_dim(call, REPEAT_INTERLEAVE_DIM, arg_meta(call, SELF)->rank, &dim));
                self = value_ref(arg_value(call, SELF));
                if (arg_meta(call, SELF)->rank == 0) {
                        value_clear(&self);
                        TRY(EMIT(emitter, "aten::unsqueeze", &self, arg_value(call, SELF), value_int(0)));
                }
        }
        TRY(EMIT(emitter, "aten::unsqueeze", &tall, self, value_int(dim + 1)));
        TensorMeta meta = tall.tensor->meta;
        meta.size[dim + 1] = repeats;
        TRY(value_ints_new(VALUE_LIST, meta.size, meta.rank, &sizes));
        TRY(EMIT(emitter, "aten::expand", &wide, tall, sizes));
        TRY(EMIT(emitter, "aten::clone", &copy, wide,
                 (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS }));
        return EMIT(emitter, "aten::flatten.using_ints", out, copy, value_int(dim), value_int(dim + 1));
}

static Status flip_dim(Emitter *emitter, const OpCall *call, int64_t dim, Value *out)
{
        _cleanup_(value_clear) Value dims = value_none();
        if (arg_meta(call, SELF)->rank <= dim)
                return fail(STATUS_SHAPE, "Input must be >= %d-d.", (int)dim + 1);
        TRY(value_ints_new(VALUE_LIST, &dim, 1, &dims));
        return EMIT(emitter, "aten::flip", out, arg_value(call, SELF), dims);
}

static Status fliplr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return flip_dim(emitter, call, 1, out);
}

static Status flipud_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return flip_dim(emitter, call, 0, out);
}

const OpDef view_compose_ops[] = {
        { "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
          "SymInt step=1) -> Tensor",
          .expand = slice_scatter_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
          .expand = select_scatter_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
          .expand = diagonal_scatter_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
          "storage_offset=None) -> Tensor",
          .expand = as_strided_scatter_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
          .expand = narrow_copy_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::meshgrid(Tensor[] tensors) -> Tensor[]", .expand = meshgrid_expand,
          .traits = TRAIT_MAY_SHARE },
        { "aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", .expand = meshgrid_expand,
          .traits = TRAIT_MAY_SHARE },
        { "aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
          .expand = diff_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
          "output_size=None) -> Tensor",
          .expand = repeat_interleave_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::fliplr(Tensor self) -> Tensor", .expand = fliplr_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::flipud(Tensor self) -> Tensor", .expand = flipud_expand, .traits = TRAIT_MAY_SHARE },
};
OP_FILE(view_compose_ops);
