// SPDX-License-Identifier: Apache-2.0
// arrange_rows.c: functions that only rearrange, written as views and permutations of other operators: shuffles, broadcasting of lists,
// meshgrid, one_hot.
#include "core/targets/operators.h"

#include <string.h>

// ---- shuffles: reshape, permute, reshape ----
typedef struct Shuffle {
        int64_t split[MAX_RANK], order[MAX_RANK], joined[MAX_RANK];
        int n_split, n_joined;
} Shuffle;

static void shuffle_split(Shuffle *shuffle, int64_t size, int from)
{
        shuffle->split[shuffle->n_split] = size;
        shuffle->order[shuffle->n_split++] = from;
}

static Status run_shuffle(Emitter *emitter, Value input, const Shuffle *shuffle, Value *out)
{
        _cleanup_(value_clear) Value split = value_none();
        _cleanup_(value_clear) Value order = value_none();
        _cleanup_(value_clear) Value joined = value_none();
        _cleanup_(value_clear) Value apart = value_none();
        _cleanup_(value_clear) Value moved = value_none();
        TRY(value_ints_new(VALUE_LIST, shuffle->split, (uint32_t)shuffle->n_split, &split));
        TRY(value_ints_new(VALUE_LIST, shuffle->order, (uint32_t)shuffle->n_split, &order));
        TRY(value_ints_new(VALUE_LIST, shuffle->joined, (uint32_t)shuffle->n_joined, &joined));
        TRY(ATEN(emitter, "aten::reshape", &apart, input, split));
        TRY(ATEN(emitter, "aten::permute", &moved, apart, order));
        return ATEN(emitter, "aten::reshape", out, moved, joined);
}

// The factor, the batch dimensions in front of the last three, and room for two more dimensions.
static Status open_shuffle(const OpCall *call, int64_t *out_factor, int *out_batch, Shuffle *out)
{
        const TensorMeta *meta = &call->args[0].tensor->meta;
        TRY(arg_int(call, 1, out_factor));
        if (meta->rank < 3 || meta->rank + 2 > MAX_RANK)
                return fail(STATUS_SHAPE,
                            "%s expects input to have at least 3 dimensions and at most %d, but got input with %d dimension(s)",
                            call->schema->name, MAX_RANK - 2, meta->rank);
        if (*out_factor <= 0 || *out_factor > 1 << 20)
                return fail(STATUS_VALUE, "%s expects a positive factor, but got %ld", call->schema->name, (long)*out_factor);
        *out = (Shuffle){ .n_joined = meta->rank };
        *out_batch = meta->rank - 3;
        for (int d = 0; d < *out_batch; d++) {
                shuffle_split(out, meta->size[d], d);
                out->joined[d] = meta->size[d];
        }
        return STATUS_OK;
}

// [*, C*r*r, H, W] -> [*, C, H*r, W*r]
static Status pixel_shuffle_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Shuffle shuffle;
        int64_t r;
        int b;
        TRY(open_shuffle(call, &r, &b, &shuffle));
        const int64_t *size = call->args[0].tensor->meta.size + b;
        if (size[0] % (r * r) != 0)
                return fail(STATUS_SHAPE,
                            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                            "input.size(-3)=%ld is not divisible by %ld",
                            (long)size[0], (long)(r * r));
        const int64_t split[5] = { size[0] / (r * r), r, r, size[1], size[2] };
        static const int from[5] = { 0, 3, 1, 4, 2 };
        for (int i = 0; i < 5; i++)
                shuffle_split(&shuffle, split[i], b + from[i]);
        shuffle.joined[b] = split[0];
        shuffle.joined[b + 1] = size[1] * r;
        shuffle.joined[b + 2] = size[2] * r;
        return run_shuffle(emitter, call->args[0], &shuffle, out);
}

// [*, C, H*r, W*r] -> [*, C*r*r, H, W]
static Status pixel_unshuffle_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Shuffle shuffle;
        int64_t r;
        int b;
        TRY(open_shuffle(call, &r, &b, &shuffle));
        const int64_t *size = call->args[0].tensor->meta.size + b;
        if (size[1] % r != 0 || size[2] % r != 0)
                return fail(STATUS_SHAPE,
                            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but input.size(-2)=%ld, "
                            "input.size(-1)=%ld and the factor is %ld",
                            (long)size[1], (long)size[2], (long)r);
        const int64_t split[5] = { size[0], size[1] / r, r, size[2] / r, r };
        static const int from[5] = { 0, 2, 4, 1, 3 };
        for (int i = 0; i < 5; i++)
                shuffle_split(&shuffle, split[i], b + from[i]);
        shuffle.joined[b] = size[0] * r * r;
        shuffle.joined[b + 1] = split[1];
        shuffle.joined[b + 2] = split[3];
        return run_shuffle(emitter, call->args[0], &shuffle, out);
}

// [N, g*C, *] seen as [N, g, C, *], groups and channels exchanged.
static Status channel_shuffle_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *meta = &call->args[0].tensor->meta;
        int64_t groups;
        TRY(arg_int(call, 1, &groups));
        if (meta->rank < 3 || meta->rank + 1 > MAX_RANK)
                return fail(STATUS_SHAPE, "channel_shuffle expects input with > 2 dims, but got input with %d dimension(s)", meta->rank);
        if (groups <= 0 || meta->size[1] % groups != 0)
                return fail(STATUS_VALUE, "Number of channels must be divisible by groups. Got %ld channels and %ld groups.",
                            (long)meta->size[1], (long)groups);
        Shuffle shuffle = { .n_joined = meta->rank };
        shuffle_split(&shuffle, meta->size[0], 0);
        shuffle_split(&shuffle, groups, 2);
        shuffle_split(&shuffle, meta->size[1] / groups, 1);
        for (int d = 2; d < meta->rank; d++)
                shuffle_split(&shuffle, meta->size[d], d + 1);
        memcpy(shuffle.joined, meta->size, sizeof(shuffle.joined));
        return run_shuffle(emitter, call->args[0], &shuffle, out);
}

// ---- lists of tensors ----
static Status broadcast_tensors_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Seq *tensors = call->args[0].seq;
        TensorMeta shape = { 0 };
        for (uint32_t i = 0; i < tensors->n; i++) {
                int rank;
                int64_t size[MAX_RANK];
                TRY(shape_broadcast(&shape, &tensors->items[i].tensor->meta, &rank, size));
                shape.rank = (uint8_t)rank;
                memcpy(shape.size, size, (size_t)rank * sizeof(*size));
        }
        _cleanup_(value_clear) Value wanted = value_none();
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(value_ints_new(VALUE_LIST, shape.size, shape.rank, &wanted));
        TRY(seq_new(tensors->n, &seq));
        for (uint32_t i = 0; i < seq->n; i++)
                TRY(ATEN(emitter, "aten::expand", &seq->items[i], tensors->items[i], wanted));
        *out = value_seq_take(VALUE_LIST, take_ptr(seq));
        return STATUS_OK;
}

// Every tensor becomes one dimension of a grid; "xy" exchanges the first two.
static Status meshgrid_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Seq *tensors = call->args[0].seq;
        const char *indexing = arg_text(call, 1) == NULL ? "ij" : arg_text(call, 1);
        bool swap = strcmp(indexing, "xy") == 0 && tensors->n >= 2;
        int64_t grid[MAX_RANK], line[MAX_RANK];
        if (strcmp(indexing, "ij") != 0 && strcmp(indexing, "xy") != 0)
                return fail(STATUS_VALUE, "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %.20s", indexing);
        if (tensors->n == 0 || tensors->n > MAX_RANK)
                return fail(STATUS_VALUE, "meshgrid expects 1 to %d tensors, not %u", MAX_RANK, tensors->n);
        for (uint32_t i = 0; i < tensors->n; i++) {
                const TensorMeta *meta = &tensors->items[i].tensor->meta;
                if (meta->rank > 1)
                        return fail(STATUS_SHAPE, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got %dD", meta->rank);
                grid[swap && i < 2 ? 1 - i : i] = meta_numel(meta);
        }
        _cleanup_(value_clear) Value shape = value_none();
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(value_ints_new(VALUE_LIST, grid, tensors->n, &shape));
        TRY(seq_new(tensors->n, &seq));
        for (uint32_t i = 0; i < seq->n; i++) {
                for (uint32_t d = 0; d < seq->n; d++)
                        line[d] = 1;
                line[swap && i < 2 ? 1 - i : i] = -1;
                _cleanup_(value_clear) Value lined = value_none();
                _cleanup_(value_clear) Value viewed = value_none();
                TRY(value_ints_new(VALUE_LIST, line, seq->n, &lined));
                TRY(ATEN(emitter, "aten::reshape", &viewed, tensors->items[i], lined));
                TRY(ATEN(emitter, "aten::expand", &seq->items[i], viewed, shape));
        }
        *out = value_seq_take(VALUE_LIST, take_ptr(seq));
        return STATUS_OK;
}

// ---- one_hot: index == arange(classes), along a new last dimension ----
static Status extreme(Emitter *emitter, const char *base, Value indices, int64_t *out)
{
        _cleanup_(value_clear) Value found = value_none();
        TRY(ATEN(emitter, base, &found, indices));
        return value_as_int(emitter, found, "an index", out);
}

static Status one_hot_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value indices = call->args[0];
        int64_t classes, low = 0, high = -1;
        TRY(arg_int(call, 1, &classes));
        if (indices.tensor->meta.dtype != DTYPE_I64)
                return fail(STATUS_DTYPE, "one_hot is only applicable to index tensor of type LongTensor.");
        bool empty = meta_numel(&indices.tensor->meta) == 0;
        if (empty && classes <= 0)
                return fail(STATUS_VALUE, "Can not infer total number of classes from empty tensor.");
        if (!empty) {
                TRY(extreme(emitter, "aten::min", indices, &low));
                TRY(extreme(emitter, "aten::max", indices, &high));
        }
        if (low < 0)
                return fail(STATUS_VALUE, "Class values must be non-negative.");
        if (classes != -1 && (classes < 1 || high >= classes))
                return fail(STATUS_VALUE,
                            classes < 1 ? "num_classes should be positive" : "Class values must be smaller than num_classes.");
        if (classes == -1 && (high == INT64_MAX || high >= INT32_MAX))
                return fail(STATUS_TOO_LARGE, "one_hot of index %ld would hold too many classes", (long)high);
        _cleanup_(value_clear) Value column = value_none();
        _cleanup_(value_clear) Value range = value_none();
        _cleanup_(value_clear) Value equal = value_none();
        TRY(EMIT(emitter, "aten::unsqueeze", &column, indices, value_int(-1)));
        TRY(ATEN(emitter, "aten::arange", &range, value_int(classes == -1 ? high + 1 : classes)));
        TRY(ATEN(emitter, "aten::eq", &equal, column, range));
        return EMIT(emitter, "aten::to.dtype", out, equal, value_dtype(DTYPE_I64));
}

#define MOVES "aten::reshape aten::permute"
static const PyRow rows[] = {
        { "torch.pixel_shuffle F.pixel_shuffle", "py::pixel_shuffle(Tensor input, int upscale_factor) -> Tensor", NULL,
          pixel_shuffle_expand, MOVES },
        { "torch.pixel_unshuffle F.pixel_unshuffle", "py::pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor", NULL,
          pixel_unshuffle_expand, MOVES },
        { "torch.channel_shuffle F.channel_shuffle torch.native_channel_shuffle", "py::channel_shuffle(Tensor input, int groups) -> Tensor",
          NULL, channel_shuffle_expand, MOVES },
        { "torch.functional.broadcast_tensors torch.broadcast_tensors", "py::broadcast_tensors(*Tensor[] tensors) -> Tensor[]", NULL,
          broadcast_tensors_expand, "aten::expand" },
        { "torch.functional.meshgrid torch.meshgrid", "py::meshgrid(*Tensor[] tensors, *, str? indexing=None) -> Tensor[]", NULL,
          meshgrid_expand, "aten::reshape aten::expand" },
        { "torch._C._nn.one_hot F.one_hot", "py::one_hot(Tensor tensor, int num_classes=-1) -> Tensor", NULL, one_hot_expand,
          "aten::unsqueeze aten::arange aten::eq aten::max aten::min" },
};
const PyTable py_arrange_rows = PY_TABLE(rows);
