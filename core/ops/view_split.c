// SPDX-License-Identifier: Apache-2.0
// view_split.c: one tensor, many views of it along one dimension. The number of views is a size or
// a list length; OP_MAX_OUTS caps it.
#include <inttypes.h>
#include "core/ops/arguments.h"
#include "core/ops/view.h"

static Status split_dim(const OpCall *call, int index, int *out_dim)
{
        const TensorMeta *self = arg_meta(call, SELF);
        if (self->rank == 0)
                return fail(STATUS_VALUE, "%s expects at least a 1-dimensional tensor", call->schema->name);
        return arg_dim(call, index, self->rank, out_dim);
}

static Status out_count(OpCall *call, int64_t n)
{
        return out_reserve(call, (uint32_t)MIN(n, (int64_t)UINT32_MAX));
}

static Status out_part(OpCall *call, uint32_t k, int dim, int64_t start, int64_t length)
{
        TensorMeta meta = *arg_meta(call, SELF);
        meta.size[dim] = length;
        return view_self(call, k, &meta, start * meta.stride[dim]);
}

static Status out_pieces(OpCall *call, int dim, int64_t piece)
{
        int64_t size = arg_meta(call, SELF)->size[dim];
        int64_t n = piece == 0 ? 1 : MAX(size / piece + (size % piece != 0), 1);
        TRY(out_count(call, n));
        for (int64_t k = 0; k < n; k++) {
                int64_t start = k * piece;
                TRY(out_part(call, (uint32_t)k, dim, start, MIN(piece, size - start)));
        }
        return STATUS_OK;
}

static Status split_infer(OpCall *call)
{
        int dim;
        int64_t piece = 0;
        TRY(split_dim(call, SPLIT_DIM, &dim));
        TRY(arg_int(call, SPLIT_SPLIT_SIZE, &piece));
        int64_t size = arg_meta(call, SELF)->size[dim];
        if (piece < 0)
                return fail(STATUS_VALUE,
                            "split expects split_size be non-negative, but got split_size=%" PRId64, piece);
        if (piece == 0 && size != 0)
                return fail(
                        STATUS_VALUE,
                        "split_size can only be 0 if dimension size is 0, but got dimension size of %" PRId64,
                        size);
        return out_pieces(call, dim, piece);
}

static Status chunk_infer(OpCall *call)
{
        int dim;
        int64_t chunks = 0;
        TRY(split_dim(call, SPLIT_DIM, &dim));
        TRY(arg_int(call, CHUNK_CHUNKS, &chunks));
        if (chunks <= 0)
                return fail(STATUS_VALUE, "chunk expects `chunks` to be greater than 0, got: %" PRId64,
                            chunks);
        int64_t size = arg_meta(call, SELF)->size[dim];
        if (size > 0)
                return out_pieces(call, dim, size / chunks + (size % chunks != 0));
        TRY(out_count(call, chunks));
        for (int64_t k = 0; k < chunks; k++)
                TRY(out_part(call, (uint32_t)k, dim, 0, 0));
        return STATUS_OK;
}

// A list of ints of any allowed length.
static Status arg_many_ints(const OpCall *call, int index, int64_t **out_items, int *out_n)
{
        _cleanup_(freep) int64_t *items =
                new_array(MIN(arg_list_length(call, index), (uint32_t)OP_MAX_OUTS) + 1, sizeof(*items));
        if (items == NULL)
                return fail_memory();
        TRY(arg_ints(call, index, OP_MAX_OUTS, items, out_n));
        *out_items = take_ptr(items);
        return STATUS_OK;
}

static Status split_sizes_infer(OpCall *call)
{
        _cleanup_(freep) int64_t *sizes = NULL;
        int dim, n = 0;
        char text[256];
        TRY(split_dim(call, SPLIT_DIM, &dim));
        TRY(arg_many_ints(call, SPLIT_SIZES, &sizes, &n));
        int64_t size = arg_meta(call, SELF)->size[dim], start = 0;
        for (int k = 0; k < n; k++) {
                if (sizes[k] < 0)
                        return fail(STATUS_VALUE,
                                    "split_with_sizes expects split_sizes have only non-negative entries, "
                                    "but got split_sizes=%s",
                                    shape_text(n, sizes, text, sizeof(text)));
                if (!add_i64(start, sizes[k], &start))
                        start = INT64_MAX, k = n;
        }
        if (start != size)
                return fail(STATUS_VALUE,
                            "split_with_sizes expects split_sizes to sum exactly to %" PRId64
                            " (input tensor's size at dimension %d), but got split_sizes=%s",
                            size, dim, shape_text(n, sizes, text, sizeof(text)));
        TRY(out_count(call, n));
        start = 0;
        for (int k = 0; k < n; k++) {
                TRY(out_part(call, (uint32_t)k, dim, start, sizes[k]));
                start += sizes[k];
        }
        return STATUS_OK;
}

static Status tensor_split_sections_infer(OpCall *call)
{
        int dim;
        int64_t sections = 0;
        if (arg_meta(call, SELF)->rank == 0)
                return fail(STATUS_VALUE, "tensor_split expected at least a 1-dimensional tensor, but got a "
                                          "tensor with 0 dims");
        TRY(split_dim(call, SPLIT_DIM, &dim));
        TRY(arg_int(call, TENSOR_SPLIT_SECTIONS_SECTIONS, &sections));
        if (sections <= 0)
                return fail(STATUS_VALUE, "number of sections must be larger than 0, got %" PRId64, sections);
        int64_t size = arg_meta(call, SELF)->size[dim], start = 0;
        TRY(out_count(call, sections));
        for (int64_t k = 0; k < sections; k++) {
                int64_t length = size / sections + (k < size % sections);
                TRY(out_part(call, (uint32_t)k, dim, start, length));
                start += length;
        }
        return STATUS_OK;
}

static Status tensor_split_indices_infer(OpCall *call)
{
        _cleanup_(freep) int64_t *indices = NULL;
        int dim, n = 0;
        if (arg_meta(call, SELF)->rank == 0)
                return fail(STATUS_VALUE, "tensor_split expected at least a 1-dimensional tensor, but got a "
                                          "tensor with 0 dims");
        TRY(split_dim(call, SPLIT_DIM, &dim));
        TRY(arg_many_ints(call, TENSOR_SPLIT_INDICES_INDICES, &indices, &n));
        int64_t size = arg_meta(call, SELF)->size[dim], before = 0;
        TRY(out_count(call, n + 1));
        for (int k = 0; k <= n; k++) {
                int64_t start = before, stop = k < n ? indices[k] : size;
                view_clamp_slice(size, &start, &stop);
                TRY(out_part(call, (uint32_t)k, dim, start, stop - start));
                before = k < n ? indices[k] : size;
        }
        return STATUS_OK;
}

static Status unbind_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        int dim;
        if (self->rank == 0)
                return fail(STATUS_VALUE, "Dimension specified as 0 but tensor has no dimensions");
        TRY(arg_dim(call, UNBIND_INT_DIM, self->rank, &dim));
        TensorMeta meta = *self;
        for (int d = dim; d + 1 < self->rank; d++) {
                meta.size[d] = self->size[d + 1];
                meta.stride[d] = self->stride[d + 1];
        }
        meta.rank--;
        TRY(out_count(call, self->size[dim]));
        for (int64_t k = 0; k < self->size[dim]; k++)
                TRY(view_self(call, (uint32_t)k, &meta, k * self->stride[dim]));
        return STATUS_OK;
}

const OpDef view_split_ops[] = {
        { "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
          .infer = split_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
          .infer = split_sizes_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
          .infer = split_sizes_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", .infer = chunk_infer,
          .traits = TRAIT_BY_SHAPE },
        { "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
          .infer = tensor_split_sections_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
          .infer = tensor_split_indices_infer, .traits = TRAIT_BY_SHAPE },
        { "aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
          .infer = split_infer, .traits = TRAIT_MAY_SHARE | TRAIT_BY_SHAPE },
        { "aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
          .infer = split_sizes_infer, .traits = TRAIT_MAY_SHARE | TRAIT_BY_SHAPE },
        { "aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", .infer = chunk_infer,
          .traits = TRAIT_MAY_SHARE | TRAIT_BY_SHAPE },
        { "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", .infer = unbind_infer,
          .traits = TRAIT_BY_SHAPE },
};
OP_FILE(view_split_ops);
