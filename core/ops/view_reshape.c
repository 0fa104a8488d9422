// SPDX-License-Identifier: Apache-2.0
// view_reshape.c: shapes that are a view where strides allow it and a copy where they do not, and
// other composites of views.
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/view.h"

static Status reshape_to(Emitter *emitter, const OpCall *call, int rank, int64_t *size, Value *out)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t stride[MAX_RANK];
        _cleanup_(value_clear) Value shape = value_none(), copy = value_none();
        TRY(view_infer_size(rank, size, meta_numel(self)));
        TRY(value_ints_new(VALUE_LIST, size, (uint32_t)rank, &shape));
        if (meta_view_strides(self, rank, size, stride))
                return EMIT(emitter, "aten::view", out, arg_value(call, SELF), shape);
        TRY(EMIT(emitter, "aten::clone", &copy, arg_value(call, SELF),
                 (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS }));
        return EMIT(emitter, "aten::_unsafe_view", out, copy, shape);
}

static Status reshape_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t size[MAX_RANK];
        int rank = 0;
        TRY(view_arg_shape(call, RESHAPE_SHAPE, size, &rank));
        return reshape_to(emitter, call, rank, size, out);
}

static Status reshape_as_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        TensorMeta other = *arg_meta(call, RESHAPE_AS_OTHER);
        return reshape_to(emitter, call, other.rank, other.size, out);
}

static Status flatten_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int start, end;
        TRY(arg_dim(call, FLATTEN_USING_INTS_START_DIM, self->rank, &start));
        TRY(arg_dim(call, FLATTEN_USING_INTS_END_DIM, self->rank, &end));
        if (start > end)
                return fail(STATUS_VALUE, "flatten() has invalid args: start_dim cannot come after end_dim");
        if (self->rank == 0)
                return reshape_to(emitter, call, 1, (int64_t[]){ 1 }, out);
        if (start == end) {
                *out = value_ref(arg_value(call, SELF));
                return STATUS_OK;
        }
        int64_t size[MAX_RANK], merged = 1;
        int rank = 0;
        for (int d = 0; d < self->rank; d++) {
                if (d >= start && d <= end)
                        merged *= self->size[d];
                if (d < start || d > end)
                        size[rank++] = self->size[d];
                else if (d == end)
                        size[rank++] = merged;
        }
        return reshape_to(emitter, call, rank, size, out);
}

// Contiguous first: a strided line is copied, though it could be viewed.
static Status ravel_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value dense = value_none(), shape = value_none();
        TRY(EMIT(emitter, "aten::contiguous", &dense, arg_value(call, SELF)));
        TRY(value_ints_new(VALUE_LIST, &(int64_t){ meta_numel(&dense.tensor->meta) }, 1, &shape));
        return EMIT(emitter, "aten::view", out, dense, shape);
}

static Status contiguous_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        MemoryFormat format = arg_memory_format(call, CONTIGUOUS_MEMORY_FORMAT, MEMORY_FORMAT_CONTIGUOUS);
        MemoryFormat asked = format == MEMORY_FORMAT_PRESERVE ? MEMORY_FORMAT_CONTIGUOUS : format;
        if (view_is_contiguous_as(arg_meta(call, SELF), asked)) {
                *out = value_ref(arg_value(call, SELF));
                return STATUS_OK;
        }
        if (format == MEMORY_FORMAT_PRESERVE)
                return fail(STATUS_VALUE, "preserve memory format is unsupported by the contiguous operator");
        return EMIT(emitter, "aten::clone", out, arg_value(call, SELF),
                    (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = format });
}

const OpDef view_reshape_ops[] = {
        { "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", .expand = reshape_expand },
        { "aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", .expand = reshape_as_expand },
        { "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
          .expand = flatten_expand },
        { "aten::ravel(Tensor(a) self) -> Tensor(a)", .expand = ravel_expand },
        { "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
          .expand = contiguous_expand },
};
OP_FILE(view_reshape_ops);
