// SPDX-License-Identifier: Apache-2.0
// arrange_rows.c: functions that only rearrange: shuffles, and broadcasting of lists, meshgrid and
// one_hot, which are written as views of other operators.
#include "core/targets/operators.h"

#include <string.h>

// ---- lists of tensors ----
static Status broadcast_tensors_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Seq *tensors = call->args[PY_TENSORS].seq;
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
        const Seq *tensors = call->args[PY_TENSORS].seq;
        const char *indexing =
                arg_text(call, PY_MESHGRID_INDEXING) == NULL ? "ij" : arg_text(call, PY_MESHGRID_INDEXING);
        bool swap = strcmp(indexing, "xy") == 0 && tensors->n >= 2;
        int64_t grid[MAX_RANK], line[MAX_RANK];
        if (strcmp(indexing, "ij") != 0 && strcmp(indexing, "xy") != 0)
                return fail(STATUS_VALUE,
                            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %.20s",
                            indexing);
        if (tensors->n == 0 || tensors->n > MAX_RANK)
                return fail(STATUS_VALUE, "meshgrid expects 1 to %d tensors, not %u", MAX_RANK, tensors->n);
        for (uint32_t i = 0; i < tensors->n; i++) {
                const TensorMeta *meta = &tensors->items[i].tensor->meta;
                if (meta->rank > 1)
                        return fail(STATUS_SHAPE,
                                    "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got %dD",
                                    meta->rank);
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
        Value indices = call->args[SELF];
        int64_t classes, low = 0, high = -1;
        TRY(arg_int(call, PY_ONE_HOT_NUM_CLASSES, &classes));
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
                return fail(STATUS_VALUE, classes < 1 ? "num_classes should be positive"
                                                      : "Class values must be smaller than num_classes.");
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

static const PyRow rows[] = {
        { "torch.pixel_shuffle F.pixel_shuffle",
          "py::pixel_shuffle(Tensor input, int upscale_factor) -> Tensor",
          .emits = "aten::pixel_shuffle a0 a1" },
        { "torch.pixel_unshuffle F.pixel_unshuffle",
          "py::pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor",
          .emits = "aten::pixel_unshuffle a0 a1" },
        { "torch.channel_shuffle F.channel_shuffle torch.native_channel_shuffle",
          "py::channel_shuffle(Tensor input, int groups) -> Tensor", .emits = "aten::channel_shuffle a0 a1" },
        { "torch.functional.broadcast_tensors torch.broadcast_tensors",
          "py::broadcast_tensors(*Tensor[] tensors) -> Tensor[]", .expand = broadcast_tensors_expand,
          .needs = "aten::expand" },
        { "torch.functional.meshgrid torch.meshgrid",
          "py::meshgrid(*Tensor[] tensors, *, str? indexing=None) -> Tensor[]", .expand = meshgrid_expand,
          .needs = "aten::reshape aten::expand" },
        { "torch._C._nn.one_hot F.one_hot", "py::one_hot(Tensor tensor, int num_classes=-1) -> Tensor",
          .expand = one_hot_expand, .needs = "aten::unsqueeze aten::arange aten::eq aten::max aten::min" },
};
const PyTable py_arrange_rows = PY_TABLE(rows);
