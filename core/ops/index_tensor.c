// SPDX-License-Identifier: Apache-2.0
// index_tensor.c: indexing by tensors, read (index) and written (index_put). Masks become
// positions, so shapes depend on data there. Index tensors broadcast against each other; where they
// stand next to each other the result keeps their place, otherwise their dimensions come first.
// Negative values wrap.
#include "core/kernels/copy.h"
#include "core/kernels/index/index.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/inplace.h"
#include <string.h>

// One indexed dimension of self: a tensor of positions, or column `column` of a mask's nonzero
// positions.
typedef struct IndexedDim {
        int dim;
        uint32_t item; // of the indices argument
        int column;    // -1: positions
        int64_t count; // nonzero elements of the mask
} IndexedDim;

typedef struct IndexArgs {
        int n; // indexed dimensions
        IndexedDim dims[MAX_RANK];
        int rank, place; // of the index dimensions; their place in the result
        int64_t size[MAX_RANK];
        int result_rank;
        int64_t result_size[MAX_RANK];
        int kept[MAX_RANK], n_kept; // dimensions of self that are not indexed; the first `place` stand before
} IndexArgs;

// A mask over the dimensions of self from `dim` on.
static Status check_mask_shape(const TensorMeta *self, const TensorMeta *mask, int dim)
{
        char a[128], b[128];
        for (int k = 0; k < mask->rank; k++, dim++) {
                if (dim >= self->rank)
                        return fail(STATUS_INDEX, "too many indices for tensor of dimension %d (got %d)",
                                    self->rank, dim + mask->rank - k);
                if (mask->size[k] != self->size[dim])
                        return fail(STATUS_INDEX,
                                    "The shape of the mask %s at index %d does not match the shape of the "
                                    "indexed tensor %s at index %d",
                                    shape_text(mask->rank, mask->size, a, sizeof(a)), k,
                                    shape_text(self->rank, self->size, b, sizeof(b)), dim);
        }
        return STATUS_OK;
}

static Status mask_dims(const RunContext *ctx, const TensorMeta *self, const Tensor *index, uint32_t item,
                        int *dim, IndexArgs *args)
{
        const TensorMeta *mask = &index->meta;
        int64_t count;
        TRY(index_count_nonzero(ctx, mask, tensor_data(index), &count));
        if (mask->rank == 0)
                return fail(STATUS_UNSUPPORTED,
                            "indexing with a 0-dim mask is not supported; unsqueeze both tensors first");
        TRY(check_mask_shape(self, mask, *dim));
        for (int k = 0; k < mask->rank; k++, (*dim)++)
                args->dims[args->n++] = (IndexedDim){ *dim, item, k, count };
        return STATUS_OK;
}

static Status collect(const OpCall *call, const RunContext *ctx, IndexArgs *args)
{
        const TensorMeta *self = arg_meta(call, SELF);
        uint32_t n_items = arg_list_length(call, INDEX_INDICES);
        int dim = 0;
        for (uint32_t item = 0; item < n_items; item++) {
                const Tensor *index = arg_list_tensor(call, INDEX_INDICES, item);
                if (index == NULL) {
                        dim++;
                        continue;
                }
                if (dim >= self->rank)
                        return fail(STATUS_INDEX, "too many indices for tensor of dimension %d (got %u)",
                                    self->rank, n_items);
                Dtype dtype = index->meta.dtype;
                if (dtype == DTYPE_BOOL || dtype == DTYPE_U8) {
                        if (!tensor_is_known(index))
                                return fail(
                                        STATUS_DYNAMIC,
                                        "the number of elements a mask selects is not known before the run");
                        TRY(mask_dims(ctx, self, index, item, &dim, args));
                        continue;
                }
                if (dtype != DTYPE_I64 && dtype != DTYPE_I32)
                        return fail(STATUS_DTYPE,
                                    "tensors used as indices must be long, int, byte or bool tensors");
                args->dims[args->n++] = (IndexedDim){ dim++, item, -1, 0 };
        }
        if (dim > self->rank)
                return fail(STATUS_INDEX, "too many indices for tensor of dimension %d (got %d)", self->rank,
                            dim);
        return STATUS_OK;
}

static TensorMeta index_meta(const OpCall *call, const IndexedDim *dim)
{
        const TensorMeta *meta = &arg_list_tensor(call, INDEX_INDICES, dim->item)->meta;
        if (dim->column < 0)
                return *meta;
        TensorMeta positions;
        meta_init(&positions, DTYPE_I64, 1, &dim->count);
        return positions;
}

static Status broadcast_indices(const OpCall *call, IndexArgs *args)
{
        TensorMeta common = { .rank = 0 };
        char text[256];
        size_t at = 0;
        for (int i = 0; i < args->n; i++) {
                TensorMeta meta = index_meta(call, &args->dims[i]);
                char one[128];
                shape_text(meta.rank, meta.size, one, sizeof(one));
                for (const char *from = i == 0 ? "" : ", "; *from != '\0' && at < sizeof(text) - 1; from++)
                        text[at++] = *from;
                for (const char *from = one; *from != '\0' && at < sizeof(text) - 1; from++)
                        text[at++] = *from;
                text[at] = '\0';
        }
        for (int i = 0; i < args->n; i++) {
                TensorMeta meta = index_meta(call, &args->dims[i]);
                int rank;
                int64_t size[MAX_RANK];
                if (shape_broadcast(&common, &meta, &rank, size) != STATUS_OK)
                        return fail(STATUS_INDEX,
                                    "shape mismatch: indexing tensors could not be broadcast together with "
                                    "shapes %s",
                                    text);
                common.rank = (uint8_t)rank;
                memcpy(common.size, size, sizeof(common.size));
        }
        args->rank = common.rank;
        memcpy(args->size, common.size, sizeof(args->size));
        return STATUS_OK;
}

static Status index_args(const OpCall *call, const RunContext *ctx, IndexArgs *out_args)
{
        const TensorMeta *self = arg_meta(call, SELF);
        IndexArgs args = { 0 };
        TRY(collect(call, ctx, &args));
        if (args.n == 0)
                return fail(STATUS_VALUE, "%s(): at least one index must be a tensor", call->schema->name);
        TRY(broadcast_indices(call, &args));
        bool adjacent = true;
        for (int i = 1; i < args.n; i++)
                adjacent = adjacent && args.dims[i].dim == args.dims[i - 1].dim + 1;
        for (int d = 0, i = 0; d < self->rank; d++) {
                if (i < args.n && args.dims[i].dim == d)
                        i++;
                else
                        args.kept[args.n_kept++] = d;
        }
        args.place = adjacent ? args.dims[0].dim : 0;
        args.result_rank = args.n_kept + args.rank;
        if (args.result_rank > MAX_RANK)
                return fail(STATUS_SHAPE, "%s(): a result of %d dimensions is not supported; at most %d are",
                            call->schema->name, args.result_rank, MAX_RANK);
        for (int d = 0; d < args.result_rank; d++) {
                if (d >= args.place && d < args.place + args.rank)
                        args.result_size[d] = args.size[d - args.place];
                else
                        args.result_size[d] = self->size[args.kept[d < args.place ? d : d - args.rank]];
        }
        int64_t numel;
        TRY(shape_numel(args.result_rank, args.result_size, &numel));
        *out_args = args;
        return STATUS_OK;
}

// Self with the result's shape: stride 0 along the index dimensions.
static void restrided_self(const TensorMeta *self, const IndexArgs *args, TensorMeta *out)
{
        meta_init(out, self->dtype, args->result_rank, args->result_size);
        for (int d = 0; d < args->result_rank; d++) {
                bool indexed = d >= args->place && d < args->place + args->rank;
                out->stride[d] = indexed ? 0 : self->stride[args->kept[d < args->place ? d : d - args->rank]];
        }
}

// An index tensor (already broadcast) with the result's shape.
static void restrided_index(const OpCall *call, const IndexArgs *args, int i, TensorMeta *out)
{
        TensorMeta meta = index_meta(call, &args->dims[i]);
        meta_init(out, DTYPE_I64, args->result_rank, args->result_size);
        memset(out->stride, 0, sizeof(out->stride));
        int lead = args->rank - meta.rank;
        for (int d = 0; d < meta.rank; d++) {
                if (meta.size[d] != 1 || args->size[d + lead] == 1)
                        out->stride[args->place + lead + d] = meta.stride[d];
        }
}

static Status index_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        IndexArgs args;
        TRY(index_args(call, call->emitter == NULL ? NULL : call->emitter->ctx, &args)); // NULL in passes
        TensorMeta meta, seen[MAX_RANK + 1];
        const TensorMeta *operands[8];
        meta_init(&meta, self->dtype, args.result_rank, args.result_size);
        restrided_self(self, &args, &seen[0]);
        operands[0] = &seen[0];
        int n = 1;
        for (int i = 0; i < args.n && n < 8; i++, n++) {
                restrided_index(call, &args, i, &seen[n]);
                operands[n] = &seen[n];
        }
        meta_set_strides_elementwise(&meta, operands, n);
        return out_fresh(call, 0, &meta);
}

// ---- run ----
enum { OFFSET_STEPS = 16 };

// Adds values (of shape `meta`, dense) to every entry of offsets (args->size, row-major): offsets
// themselves, or indices, which are checked, along dimension `dim` of self.
static Status add_values(const OpRun *run, const IndexArgs *args, const TensorMeta *meta,
                         const int64_t *values, int dim, int64_t *offsets)
{
        int64_t n = 1, stride[MAX_RANK], step = 1;
        int64_t size = dim < 0 ? 0 : run->in_meta[0]->size[dim],
                self_stride = dim < 0 ? 1 : run->in_meta[0]->stride[dim];
        int lead = args->rank - meta->rank;
        memset(stride, 0, sizeof(stride));
        for (int d = meta->rank - 1; d >= 0; d--) {
                stride[d + lead] = meta->size[d] == 1 ? 0 : step;
                step *= meta->size[d];
        }
        for (int d = 0; d < args->rank; d++)
                n *= args->size[d];
        Work work = { .ctx = run->ctx };
        bool whole = step == n; // not broadcast
        for (int64_t p = 0; p < n && !work_stops(&work, OFFSET_STEPS); p++) {
                int64_t at = whole ? p : 0, rest = p;
                for (int d = args->rank - 1; d >= 0 && !whole; d--) {
                        at += rest % args->size[d] * stride[d];
                        rest /= args->size[d];
                }
                int64_t value = values[at];
                if (dim >= 0 && (value < -size || value >= size))
                        return fail(STATUS_INDEX, "index %ld is out of bounds for dimension %d with size %ld",
                                    (long)value, dim, (long)size);
                offsets[p] += (dim >= 0 && value < 0 ? value + size : value) * self_stride;
        }
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// Adds dims[i]'s part of the offset into self. The first dimension of a mask stands for all of it.
static Status add_offsets(const OpRun *run, const IndexArgs *args, int i, int64_t *offsets)
{
        const IndexedDim *indexed = &args->dims[i];
        const Tensor *index = arg_list_tensor(run->call, INDEX_INDICES, indexed->item);
        TensorMeta meta = index_meta(run->call, indexed);
        _cleanup_(dense_deinit) Dense dense = { 0 };
        _cleanup_(scratch_deinit) Scratch selected = { 0 };
        const void *data = run->in[1 + indexed->item];
        if (indexed->column > 0)
                return STATUS_OK;
        if (indexed->column < 0) {
                TRY(dense_init(&dense, run->ctx, data, &meta, DTYPE_I64));
                return add_values(run, args, &meta, dense.data, indexed->dim, offsets);
        }
        TRY(scratch_init(&selected, run->ctx, indexed->count, sizeof(int64_t)));
        TRY(index_mask_offsets(run->ctx, &index->meta, data, run->in_meta[0]->stride + indexed->dim,
                               indexed->count, selected.data));
        return add_values(run, args, &meta, selected.data, -1, offsets);
}

// Offsets of the index dimensions in a tensor of the result's shape.
static Status result_offsets(const RunContext *ctx, const IndexArgs *args, const TensorMeta *meta, int64_t n,
                             int64_t *out)
{
        Work work = { .ctx = ctx };
        int64_t place[MAX_RANK] = { 0 }, offset = 0;
        for (int64_t p = 0; p < n && !work_stops(&work, OFFSET_STEPS); p++) {
                out[p] = offset;
                for (int d = args->rank - 1; d >= 0; d--) {
                        int64_t step = meta->stride[args->place + d];
                        offset += step;
                        if (++place[d] < args->size[d])
                                break;
                        offset -= place[d] * step;
                        place[d] = 0;
                }
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

typedef struct IndexSides {
        const TensorMeta *self;  // lends strides of the indexed side
        const TensorMeta *other; // those of the other; of the result's shape
        bool reading;            // from self
} IndexSides;

// The table of both sides.
static Status make_table(const OpRun *run, const IndexArgs *args, const IndexSides *sides, Scratch *offsets,
                         IndexTable *out)
{
        const TensorMeta *self_meta = sides->self, *other = sides->other;
        bool reading = sides->reading;
        int64_t n = 1;
        for (int d = 0; d < args->rank; d++)
                n *= args->size[d];
        TRY(scratch_init(offsets, run->ctx, n, 2 * sizeof(int64_t)));
        int64_t *self_side = offsets->data, *other_side = self_side + n;
        Work work = { .ctx = run->ctx };
        for (int64_t at = 0, end; (end = work_end(&work, at, n, 1)) > at; at = end)
                memset(self_side + at, 0, (size_t)(end - at) * sizeof(int64_t));
        for (int i = 0; i < args->n; i++)
                TRY(add_offsets(run, args, i, self_side));
        TRY(result_offsets(run->ctx, args, other, n, other_side));
        *out = (IndexTable){ .dtype = self_meta->dtype,
                             .n = n,
                             .from = reading ? self_side : other_side,
                             .to = reading ? other_side : self_side };
        for (int k = 0; k < args->n_kept; k++) {
                bool before = k < args->place;
                int at = before ? out->n_before++ : out->n_after++;
                int64_t a = self_meta->stride[args->kept[k]], b = other->stride[before ? k : k + args->rank];
                (before ? out->before_size : out->after_size)[at] = self_meta->size[args->kept[k]];
                (before ? out->before_from : out->after_from)[at] = reading ? a : b;
                (before ? out->before_to : out->after_to)[at] = reading ? b : a;
        }
        return STATUS_OK;
}

static Status index_run(const OpRun *run)
{
        IndexArgs args;
        TRY(index_args(run->call, run->ctx, &args));
        _cleanup_(scratch_deinit) Scratch offsets = { 0 };
        IndexTable table;
        TRY(make_table(run, &args, &(IndexSides){ run->in_meta[0], run->out_meta[0], true }, &offsets,
                       &table));
        return index_table(run->ctx, &table, false, false, run->in[0], run->out[0]);
}

// ---- index_put ----
static Status put_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *values = arg_meta(call, INDEX_VALUES);
        char a[128], b[128];
        IndexArgs args;
        TRY(index_args(call, call->emitter->ctx, &args));
        if (self->dtype != values->dtype)
                return fail(STATUS_DTYPE,
                            "Index put requires the source and destination dtypes match, got %s for the "
                            "destination and %s for the source.",
                            dtype_words(self->dtype), dtype_words(values->dtype));
        bool fits = values->rank <= args.result_rank;
        for (int i = 1; fits && i <= values->rank; i++)
                fits = values->size[values->rank - i] == 1 ||
                       values->size[values->rank - i] == args.result_size[args.result_rank - i];
        // The values may have more leading ones than the result has dimensions.
        for (int d = 0; d < values->rank - args.result_rank && !fits; d++) {
                if (values->size[d] != 1)
                        break;
                if (d == values->rank - args.result_rank - 1)
                        fits = memcmp(values->size + d + 1, args.result_size,
                                      (size_t)args.result_rank * sizeof(int64_t)) == 0;
        }
        if (!fits)
                return fail(STATUS_SHAPE,
                            "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result "
                            "of shape %s",
                            shape_text(values->rank, values->size, a, sizeof(a)),
                            shape_text(args.result_rank, args.result_size, b, sizeof(b)));
        TensorMeta meta = *self;
        meta_set_strides_like(&meta, self);
        return out_fresh(call, 0, &meta);
}

static Status put_run(const OpRun *run)
{
        IndexArgs args;
        TRY(index_args(run->call, run->ctx, &args));
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(run->out_meta[0], run->out[0]);
        TRY(copy_region(run->ctx, &from, &to));
        // Tensor arguments: self, the items of the list, values last.
        const TensorMeta *values = run->in_meta[run->n_in - 1];
        TensorMeta spread;
        meta_init(&spread, values->dtype, args.result_rank, args.result_size);
        for (int d = 0; d < args.result_rank; d++) {
                int own = values->rank - args.result_rank + d;
                spread.stride[d] =
                        own < 0 || (values->size[own] == 1 && spread.size[d] != 1) ? 0 : values->stride[own];
        }
        // Offsets into the result's copy of self.
        OpRun copy = *run;
        const TensorMeta *metas[] = { run->out_meta[0] };
        copy.in_meta = metas;
        _cleanup_(scratch_deinit) Scratch offsets = { 0 };
        IndexTable table;
        TRY(make_table(&copy, &args, &(IndexSides){ run->out_meta[0], &spread, false }, &offsets, &table));
        return index_table(run->ctx, &table, true, arg_bool(run->call, INDEX_ACCUMULATE, false),
                           run->in[run->n_in - 1], run->out[0]);
}

// The mask of an index_put_ that PyTorch runs as masked_fill_: one mask, no other tensor, and one
// value of any dtype. The shape then does not depend on the mask. NULL otherwise.
static Status only_mask(const OpCall *call, const Tensor **out_mask, int *out_behind)
{
        const TensorMeta *self = arg_meta(call, SELF);
        const Tensor *mask = NULL;
        uint32_t n_items = arg_list_length(call, INDEX_PUT_INDICES);
        int dim = 0;
        *out_mask = NULL;
        *out_behind = 0;
        if (arg_bool(call, INDEX_PUT_ACCUMULATE, false) || meta_numel(arg_meta(call, INDEX_PUT_VALUES)) != 1)
                return STATUS_OK;
        for (uint32_t item = 0; item < n_items; item++) {
                const Tensor *index = arg_list_tensor(call, INDEX_PUT_INDICES, item);
                if (index == NULL) {
                        dim++;
                        continue;
                }
                if (mask != NULL || (index->meta.dtype != DTYPE_BOOL && index->meta.dtype != DTYPE_U8))
                        return STATUS_OK;
                mask = index;
                TRY(check_mask_shape(self, &mask->meta, dim));
                dim += mask->meta.rank;
                *out_behind = self->rank - dim;
        }
        if (dim > self->rank)
                return fail(STATUS_INDEX, "too many indices for tensor of dimension %d (got %d)", self->rank,
                            dim);
        *out_mask = mask;
        return STATUS_OK;
}

static Status put_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Tensor *mask;
        int behind;
        TRY(only_mask(call, &mask, &behind));
        if (mask == NULL) {
                if (call->inplace)
                        TRY(inplace_check_apart(call, call->n_args));
                return EMIT(emitter, "aten::_unsafe_index_put", out, arg_value(call, SELF),
                            arg_value(call, INDEX_PUT_INDICES), arg_value(call, INDEX_PUT_VALUES),
                            arg_value(call, INDEX_PUT_ACCUMULATE));
        }
        Value wide = value_ref((Value){ .kind = VALUE_TENSOR, .tensor = (Tensor *)(uintptr_t)mask });
        Status status = STATUS_OK;
        for (int i = 0; i < behind && status == STATUS_OK; i++) {
                Value next = value_none();
                status = EMIT(emitter, "aten::unsqueeze", &next, wide, value_int(-1));
                value_clear(&wide);
                wide = next;
        }
        _cleanup_(value_clear) Value mask_value = wide, shape = value_none(), seen = value_none(),
                                     number = value_none(), copy = value_none();
        TRY(status);
        TRY(value_ints_new(VALUE_LIST, NULL, 0, &shape));
        TRY(EMIT(emitter, "aten::reshape", &seen, arg_value(call, INDEX_PUT_VALUES), shape));
        TRY(EMIT(emitter, "aten::clone", &number, seen)); // it may be an element of self
        if (call->inplace)
                return EMIT(emitter, "aten::masked_fill_.Tensor", out, arg_value(call, SELF), mask_value,
                            number);
        // masked_fill would not keep self's layout
        TRY(EMIT(emitter, "aten::clone", &copy, arg_value(call, SELF)));
        return EMIT(emitter, "aten::masked_fill_.Tensor", out, copy, mask_value, number);
}

#define INDEX(schema)                                                                                        \
        {                                                                                                    \
                schema, DTYPES_ANY, OP_CHECKS, .infer = index_infer, .run = index_run,                       \
                                               .traits = TRAIT_FRESH, .role = ROLE_INDEX                     \
        }

const OpDef index_tensor_ops[] = {
        INDEX("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"),
        INDEX("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"),
        { "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
          DTYPES_REAL, OP_INPLACE, .expand = put_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
          "Tensor",
          DTYPES_REAL, OP_CHECKS, .infer = put_infer, .run = put_run, .traits = TRAIT_FRESH },
};
OP_FILE(index_tensor_ops);
