// SPDX-License-Identifier: Apache-2.0
// view_part.c: views of some of a tensor's elements, or of one element many times: select, slice,
// expand, diagonal, windows, as_strided.
#include <inttypes.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/view.h"

static void drop_dim(TensorMeta *meta, int dim)
{
        for (int d = dim; d + 1 < meta->rank; d++) {
                meta->size[d] = meta->size[d + 1];
                meta->stride[d] = meta->stride[d + 1];
        }
        meta->rank--;
}

static Status select_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        char text[256];
        int dim;
        int64_t index = 0;
        if (self->rank == 0)
                return fail(STATUS_INDEX, "select() cannot be applied to a 0-dim tensor.");
        TRY(arg_dim(call, SELECT_INT_DIM, self->rank, &dim));
        TRY(arg_int(call, SELECT_INT_INDEX, &index));
        int64_t size = self->size[dim];
        if (index < -size || index >= size)
                return fail(STATUS_INDEX,
                            "select(): index %" PRId64 " out of range for tensor of size %s at dimension %d",
                            index, shape_text(self->rank, self->size, text, sizeof(text)), dim);
        int64_t offset = (index < 0 ? index + size : index) * self->stride[dim];
        drop_dim(&meta, dim);
        return view_self(call, 0, &meta, offset);
}

static Status optional_int(const OpCall *call, int index, int64_t if_none, int64_t *out)
{
        if (arg_is_none(call, index)) {
                *out = if_none;
                return STATUS_OK;
        }
        return arg_int(call, index, out);
}

static Status slice_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        int dim;
        int64_t start = 0, stop = 0, step = 1;
        if (meta.rank == 0)
                return fail(STATUS_VALUE, "slice() cannot be applied to a 0-dim tensor.");
        TRY(arg_dim(call, SLICE_TENSOR_DIM, meta.rank, &dim));
        TRY(optional_int(call, SLICE_TENSOR_START, 0, &start));
        TRY(optional_int(call, SLICE_TENSOR_END, INT64_MAX, &stop));
        TRY(arg_int(call, SLICE_TENSOR_STEP, &step));
        if (step <= 0)
                return fail(STATUS_VALUE, "slice step must be positive");
        view_clamp_slice(meta.size[dim], &start, &stop);
        int64_t offset = start * meta.stride[dim];
        int64_t length = stop - start;
        meta.size[dim] = length / step + (length % step != 0);
        if (!mul_i64(meta.stride[dim], step, &meta.stride[dim]) || meta.stride[dim] > VIEW_STRIDE_CAP)
                meta.stride[dim] = VIEW_STRIDE_CAP;
        return view_self(call, 0, &meta, offset);
}

static Status narrow_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        int dim;
        int64_t start = 0, length = 0;
        if (meta.rank == 0)
                return fail(STATUS_VALUE, "narrow() cannot be applied to a 0-dim tensor.");
        TRY(arg_int(call, NARROW_LENGTH, &length));
        if (length < 0)
                return fail(STATUS_VALUE, "narrow(): length must be non-negative.");
        TRY(arg_dim(call, NARROW_DIM, meta.rank, &dim));
        const Value *given = &call->args[NARROW_START];
        if (call->schema->args[NARROW_START].type == ARG_TENSOR && given->kind == VALUE_TENSOR &&
            (given->tensor->meta.rank != 0 || !dtype_is_int(given->tensor->meta.dtype)))
                return fail(STATUS_DTYPE, "start must be an 0-dim integral Tensor.");
        TRY(arg_int(call, NARROW_START, &start));
        int64_t size = meta.size[dim];
        if (start < -size || start > size)
                return fail(STATUS_INDEX,
                            "start out of range (expected to be in range of [%" PRId64 ", %" PRId64
                            "], but got %" PRId64 ")",
                            -size, size, start);
        if (start < 0)
                start += size;
        if (start > size - length)
                return fail(STATUS_VALUE,
                            "start (%" PRId64 ") + length (%" PRId64 ") exceeds dimension size (%" PRId64
                            ").",
                            start, length, size);
        meta.size[dim] = length;
        return view_self(call, 0, &meta, start * meta.stride[dim]);
}

static Status expand_sizes(OpCall *call, int rank, const int64_t *size)
{
        const TensorMeta *self = arg_meta(call, SELF);
        char have[256], want[256];
        int shift = rank - self->rank;
        if (shift < 0)
                return fail(STATUS_SHAPE,
                            "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%d) must be "
                            "greater or equal to the number "
                            "of dimensions in "
                            "the tensor (%d)",
                            dtype_words(self->dtype), shape_text(self->rank, self->size, have, sizeof(have)),
                            shape_text(rank, size, want, sizeof(want)), rank, self->rank);
        TensorMeta meta = { .dtype = self->dtype, .rank = (uint8_t)rank };
        for (int d = rank - 1; d >= 0; d--) {
                int64_t old = d >= shift ? self->size[d - shift] : 1;
                int64_t stride = d >= shift     ? self->stride[d - shift]
                                 : d + 1 < rank ? meta.size[d + 1] * meta.stride[d + 1]
                                                : 1;
                int64_t wanted = size[d];
                if (wanted == -1) {
                        if (d < shift)
                                return fail(STATUS_SHAPE,
                                            "The expanded size of the tensor (-1) isn't allowed in a "
                                            "leading, non-existing dimension %d",
                                            d);
                        wanted = old;
                }
                if (old != wanted && old != 1)
                        return fail(STATUS_SHAPE,
                                    "The expanded size of the tensor (%" PRId64
                                    ") must match the existing size (%" PRId64
                                    ") at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                                    wanted, old, d, shape_text(rank, size, want, sizeof(want)),
                                    shape_text(self->rank, self->size, have, sizeof(have)));
                meta.size[d] = wanted;
                meta.stride[d] = old == wanted ? stride : 0;
        }
        int64_t numel;
        TRY(shape_numel(rank, meta.size, &numel));
        return view_self(call, 0, &meta, 0);
}

static Status expand_infer(OpCall *call)
{
        int64_t size[MAX_RANK];
        int rank = 0;
        TRY(view_arg_shape(call, EXPAND_SIZE, size, &rank));
        return expand_sizes(call, rank, size);
}

static Status expand_as_infer(OpCall *call)
{
        const TensorMeta *other = arg_meta(call, EXPAND_AS_OTHER);
        return expand_sizes(call, other->rank, other->size);
}

static Status diagonal_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        int64_t offset = 0;
        int a, b;
        TRY(arg_int(call, DIAGONAL_OFFSET, &offset));
        TRY(arg_dim(call, DIAGONAL_DIM1, self->rank, &a));
        TRY(arg_dim(call, DIAGONAL_DIM2, self->rank, &b));
        if (a == b)
                return fail(STATUS_VALUE, "diagonal dimensions cannot be identical %d, %d", a, b);
        int64_t rows = self->size[a], columns = self->size[b], n;
        offset = MIN(MAX(offset, -INT32_MAX), INT32_MAX);
        n = MAX(offset >= 0 ? MIN(rows, columns - offset) : MIN(rows + offset, columns), 0);
        int64_t start = n == 0 ? 0 : offset >= 0 ? offset * self->stride[b] : -offset * self->stride[a];
        drop_dim(&meta, MAX(a, b));
        drop_dim(&meta, MIN(a, b));
        meta.size[meta.rank] = n;
        meta.stride[meta.rank++] = self->stride[a] + self->stride[b];
        return view_self(call, 0, &meta, start);
}

static Status unfold_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        int dim;
        int64_t size = 0, step = 0;
        TRY(arg_dim(call, UNFOLD_DIMENSION, self->rank, &dim));
        TRY(arg_int(call, UNFOLD_SIZE, &size));
        TRY(arg_int(call, UNFOLD_STEP, &step));
        TRY(view_check_rank(call, self->rank + 1));
        int64_t length = self->rank == 0 ? 1 : self->size[dim];
        if (size < 0)
                return fail(STATUS_VALUE, "size is %" PRId64 " but must be >= 0", size);
        if (size > length)
                return fail(STATUS_VALUE,
                            "maximum size for tensor at dimension %d is %" PRId64 " but size is %" PRId64,
                            dim, length, size);
        if (step <= 0)
                return fail(STATUS_VALUE, "step is %" PRId64 " but must be > 0", step);
        meta.size[meta.rank] = size;
        meta.stride[meta.rank] = self->rank == 0 ? 1 : self->stride[dim];
        if (self->rank > 0) {
                meta.size[dim] = (length - size) / step + 1;
                if (!mul_i64(self->stride[dim], step, &meta.stride[dim]) ||
                    meta.stride[dim] > VIEW_STRIDE_CAP)
                        meta.stride[dim] = VIEW_STRIDE_CAP;
        }
        meta.rank++;
        int64_t numel;
        TRY(shape_numel(meta.rank, meta.size, &numel));
        return view_self(call, 0, &meta, 0);
}

// Any geometry, within the bytes that are there. offset_arg 0: the offset of self.
static Status strided_view(OpCall *call, int offset_arg)
{
        const Tensor *self = arg_tensor(call, SELF);
        TensorMeta meta = { .dtype = self->meta.dtype };
        int rank = 0, n_strides = 0;
        int64_t offset = self->offset, numel;
        char size_text[256], stride_text[256];
        TRY(view_arg_shape(call, STRIDED_SIZE, meta.size, &rank));
        TRY(view_arg_shape(call, STRIDED_STRIDE, meta.stride, &n_strides));
        if (rank != n_strides)
                return fail(STATUS_VALUE, "mismatch in length of strides and shape");
        meta.rank = (uint8_t)rank;
        if (offset_arg > 0)
                TRY(optional_int(call, offset_arg, offset, &offset));
        for (int d = 0; d < rank; d++) {
                if (meta.stride[d] < 0)
                        return fail(STATUS_VALUE,
                                    "as_strided: Negative strides are not supported at the moment, got "
                                    "strides: %s",
                                    shape_text(rank, meta.stride, stride_text, sizeof(stride_text)));
                if (meta.size[d] <= 1)
                        meta.stride[d] = MIN(meta.stride[d], VIEW_STRIDE_CAP);
        }
        if (offset < 0)
                return fail(STATUS_VALUE, "Tensor: invalid storage offset %" PRId64, offset);
        TRY(shape_numel(rank, meta.size, &numel));
        if (self->storage != NULL && tensor_check_bounds(&meta, offset, self->storage->n_bytes) != STATUS_OK)
                return fail(STATUS_VALUE,
                            "setStorage: sizes %s, strides %s, storage offset %" PRId64
                            ", and itemsize %d are out of bounds for storage of size %zu",
                            shape_text(rank, meta.size, size_text, sizeof(size_text)),
                            shape_text(rank, meta.stride, stride_text, sizeof(stride_text)), offset,
                            dtype_info[meta.dtype].bytes, self->storage->n_bytes);
        if (numel == 0) // whose offset nothing reads, in elements or bytes
                offset = MIN(offset, VIEW_STRIDE_CAP);
        return out_view(call, 0, SELF, &meta, offset);
}

static Status as_strided_infer(OpCall *call)
{
        return strided_view(call, STRIDED_OFFSET);
}

static Status reshape_alias_infer(OpCall *call)
{
        enum { NO_OFFSET = 0 };
        return strided_view(call, NO_OFFSET);
}

const OpDef view_part_ops[] = {
        { "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", .infer = select_infer,
          .traits = TRAIT_BY_SHAPE },
        { "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
          "step=1) -> Tensor(a)",
          .infer = slice_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
          .infer = narrow_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
          .infer = narrow_infer },
        { "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
          .infer = expand_infer },
        { "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", .infer = expand_as_infer },
        { "aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", .infer = expand_infer },
        { "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
          .infer = diagonal_infer },
        { "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
          .infer = unfold_infer },
        { "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
          "Tensor(a)",
          .flags = OP_INPLACE, .infer = as_strided_infer, .role = ROLE_AS_STRIDED },
        { "aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
          .infer = reshape_alias_infer },
};
OP_FILE(view_part_ops);
