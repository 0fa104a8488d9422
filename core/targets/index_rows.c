// SPDX-License-Identifier: Apache-2.0
// index_rows.c: x[...] and x[...] = v. Model, as PyTorch's own indexing: the index is read left to
// right; ints, slices, None and Ellipsis become select, slice and unsqueeze at once. Tensors (lists
// become tensors) are collected with their dimension, and one aten::index or index_put_ takes them
// all at the end. A bool number is a new dimension of size 0 or 1.
#include "core/ops/inplace.h"
#include "core/ops/lazy.h"
#include "core/ops/pointwise.h"
#include "core/targets/operators.h"

#include <string.h>

// An index half applied: `result` is the view so far, `dim` its next dimension.
typedef struct Indexing {
        Emitter *emitter;
        Value result; // owned
        int dim;
        Value tensors[MAX_RANK * 2]; // owned; one per entry of aten::index's list
        uint32_t n_tensors;
        int n_consumed;  // dimensions the list covers so far
        int n_specified; // dimensions named by the whole index
        int rank;        // of the tensor indexed
} Indexing;

static void indexing_deinit(Indexing *indexing)
{
        value_clear(&indexing->result);
        for (uint32_t i = 0; i < indexing->n_tensors; i++)
                value_clear(&indexing->tensors[i]);
}

// Takes `next` as the new result.
static void advance(Indexing *indexing, Value take_next)
{
        value_clear(&indexing->result);
        indexing->result = take_next;
}

static const TensorMeta *current(const Indexing *indexing)
{
        return &indexing->result.tensor->meta;
}

static bool is_mask(Value value)
{
        Dtype dtype = value.tensor->meta.dtype;
        return dtype == DTYPE_BOOL || dtype == DTYPE_U8;
}

// ---- one entry of the index ----
static Status apply_int(Indexing *indexing, int64_t index)
{
        const TensorMeta *meta = current(indexing);
        if (indexing->dim >= meta->rank && meta->rank == 0)
                return fail(STATUS_INDEX, "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                                          "`tensor.item<T>()` in C++ to "
                                          "convert a 0-dim tensor to a number");
        if (indexing->dim >= meta->rank)
                return fail(STATUS_INDEX,
                            "Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                            -meta->rank, meta->rank - 1, indexing->dim);
        int64_t size = meta->size[indexing->dim];
        if (index < -size || index >= size)
                return fail(STATUS_INDEX, "index %ld is out of bounds for dimension %d with size %ld",
                            (long)index, indexing->dim, (long)size);
        Value next = value_none();
        TRY(EMIT(indexing->emitter, "aten::select.int", &next, indexing->result, value_int(indexing->dim),
                 value_int(index)));
        advance(indexing, next);
        return STATUS_OK;
}

static Status slice_part(Indexing *indexing, Value part, const char *what, int64_t if_none, int64_t *out)
{
        *out = if_none;
        return part.kind == VALUE_NONE ? STATUS_OK : value_as_int(indexing->emitter, part, what, out);
}

static Status apply_slice(Indexing *indexing, const Seq *slice)
{
        int64_t start, stop, step;
        TRY(slice_part(indexing, slice->items[0], "slice start", 0, &start));
        TRY(slice_part(indexing, slice->items[1], "slice stop", INT64_MAX, &stop));
        TRY(slice_part(indexing, slice->items[2], "slice step", 1, &step));
        if (step <= 0)
                return fail(STATUS_VALUE, "step must be greater than zero");
        if (current(indexing)->rank == 0)
                return fail(STATUS_INDEX, "slice() cannot be applied to a 0-dim tensor.");
        int dim = indexing->dim++;
        if (start == 0 && stop == INT64_MAX && step == 1)
                return STATUS_OK;
        Value next = value_none();
        TRY(EMIT(indexing->emitter, "aten::slice.Tensor", &next, indexing->result, value_int(dim),
                 value_int(start), value_int(stop), value_int(step)));
        advance(indexing, next);
        return STATUS_OK;
}

static Status apply_none(Indexing *indexing)
{
        Value next = value_none();
        TRY(EMIT(indexing->emitter, "aten::unsqueeze", &next, indexing->result, value_int(indexing->dim)));
        advance(indexing, next);
        indexing->dim++;
        return STATUS_OK;
}

static Status add_slot(Indexing *indexing, Value take_tensor)
{
        if (indexing->n_tensors == ARRAY_LENGTH(indexing->tensors)) {
                value_unref(take_tensor);
                return fail(STATUS_INDEX, "too many indices for tensor of dimension %d", indexing->rank);
        }
        indexing->tensors[indexing->n_tensors++] = take_tensor;
        return STATUS_OK;
}

// Collects a tensor for the current dimension; a mask stands for as many dimensions as it has.
static Status apply_tensor(Indexing *indexing, Value take_tensor)
{
        while (indexing->n_consumed < indexing->dim) {
                Status status = add_slot(indexing, value_none());
                if (status != STATUS_OK) {
                        value_unref(take_tensor);
                        return status;
                }
                indexing->n_consumed++;
        }
        int width = is_mask(take_tensor) ? take_tensor.tensor->meta.rank : 1;
        indexing->dim += width;
        indexing->n_consumed += width;
        return add_slot(indexing, take_tensor);
}

// x[True] is a new dimension of size 1, x[False] of size 0.
static Status apply_bool(Indexing *indexing, bool value)
{
        Value next = value_none(), tensor = value_none(), index = value_none();
        TRY(EMIT(indexing->emitter, "aten::unsqueeze", &next, indexing->result, value_int(indexing->dim)));
        advance(indexing, next);
        int64_t zero = 0;
        TRY(value_ints_new(VALUE_LIST, &zero, value, &index));
        Status status = tensor_from_value(indexing->emitter, index, DTYPE_I64, &tensor);
        value_clear(&index);
        return status != STATUS_OK ? status : apply_tensor(indexing, tensor);
}

static Status apply_index_tensor(Indexing *indexing, Value tensor)
{
        Dtype dtype = tensor.tensor->meta.dtype;
        if (dtype != DTYPE_BOOL && !dtype_is_int(dtype))
                return fail(STATUS_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
        if (tensor.tensor->meta.rank > 0)
                return apply_tensor(indexing, value_ref(tensor));
        if (is_mask(tensor)) {
                bool value;
                TRY(value_is_true(indexing->emitter, tensor, &value));
                return apply_bool(indexing, value);
        }
        int64_t index;
        TRY(value_as_int(indexing->emitter, tensor, "index", &index));
        return apply_int(indexing, index);
}

static Status apply_entry(Indexing *indexing, Value entry)
{
        switch (entry.kind) {
        case VALUE_INT:
                return apply_int(indexing, entry.i);
        case VALUE_BOOL:
                return apply_bool(indexing, entry.b);
        case VALUE_SLICE:
                return apply_slice(indexing, entry.seq);
        case VALUE_NONE:
                return apply_none(indexing);
        case VALUE_ELLIPSIS:
                indexing->dim += MAX(indexing->rank - indexing->n_specified, 0);
                return STATUS_OK;
        case VALUE_TENSOR:
                return apply_index_tensor(indexing, entry);
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE: {
                _cleanup_(value_clear) Value tensor = value_none();
                bool empty = entry.seq->n == 0;
                TRY(tensor_from_value(indexing->emitter, entry, empty ? DTYPE_I64 : DTYPE_NONE, &tensor));
                return apply_index_tensor(indexing, tensor);
        }
        default:
                return fail(STATUS_INDEX,
                            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                            "are valid indices (got %s)",
                            value_kind_name(entry.kind));
        }
}

// ---- the whole index ----
// x[[0, 1]] is a list of rows, but a list that holds lists, tensors,
// slices, None or Ellipsis means a tuple (an old PyTorch rule that 2.13 still has).
static bool list_means_tuple(const Seq *seq)
{
        for (uint32_t i = 0; i < seq->n && seq->n < 32; i++) {
                ValueKind kind = seq->items[i].kind;
                if (value_is_sequence(seq->items[i]) || kind == VALUE_TENSOR || kind == VALUE_SLICE ||
                    kind == VALUE_NONE || kind == VALUE_ELLIPSIS)
                        return true;
        }
        return false;
}

static ValueSpan index_entries(const Value *index)
{
        bool many = index->kind == VALUE_TUPLE || index->kind == VALUE_SIZE ||
                    (index->kind == VALUE_LIST && list_means_tuple(index->seq));
        return many ? (ValueSpan){ index->seq->items, index->seq->n } : (ValueSpan){ index, 1 };
}

static Status check_known(ValueSpan entries)
{
        for (uint32_t i = 0; i < entries.n; i++) {
                if (entries.items[i].kind == VALUE_DYNAMIC)
                        return fail(STATUS_DYNAMIC, "an index is not known before the run");
        }
        return STATUS_OK;
}

static int specified_dims(ValueSpan entries)
{
        int n = 0;
        for (uint32_t i = 0; i < entries.n; i++) {
                Value entry = entries.items[i];
                if (entry.kind == VALUE_TENSOR)
                        n += is_mask(entry) ? entry.tensor->meta.rank : 1;
                else
                        n += entry.kind != VALUE_NONE && entry.kind != VALUE_ELLIPSIS &&
                             entry.kind != VALUE_BOOL;
        }
        return n;
}

static Status indexing_run(Indexing *indexing, Emitter *emitter, Value self, const Value *index)
{
        ValueSpan entries = index_entries(index);
        *indexing =
                (Indexing){ .emitter = emitter, .result = value_ref(self), .rank = self.tensor->meta.rank };
        indexing->n_specified = specified_dims(entries);
        TRY(check_known(entries));
        bool scalar = indexing->rank == 0 && entries.n == 1 &&
                      (entries.items[0].kind == VALUE_INT || entries.items[0].kind == VALUE_SLICE);
        if (indexing->n_specified > indexing->rank && !scalar)
                return fail(STATUS_INDEX, "too many indices for tensor of dimension %d", indexing->rank);
        for (uint32_t i = 0; i < entries.n; i++)
                TRY(apply_entry(indexing, entries.items[i]));
        return STATUS_OK;
}

static Status slots_value(const Indexing *indexing, Value *out)
{
        Seq *seq;
        TRY(seq_new(indexing->n_tensors, &seq));
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = value_ref(indexing->tensors[i]);
        *out = value_seq_take(VALUE_LIST, seq);
        return STATUS_OK;
}

static Status tensor_getitem(Emitter *emitter, Value self, const Value *index, Value *out)
{
        _cleanup_(indexing_deinit) Indexing indexing;
        TRY(indexing_run(&indexing, emitter, self, index));
        if (indexing.n_tensors == 0) {
                bool same = indexing.result.tensor == self.tensor && ops_present("aten::alias");
                if (same)
                        return ATEN(emitter, "aten::alias", out, self);
                *out = value_ref(indexing.result);
                return STATUS_OK;
        }
        _cleanup_(value_clear) Value list = value_none();
        TRY(slots_value(&indexing, &list));
        return EMIT(emitter, "aten::index.Tensor", out, indexing.result, list);
}

// ---- assignment ----
// The value without its leading dimensions of size 1: a[0] = v accepts v of shape [1, 1, 4].
static Status strip_leading_ones(Emitter *emitter, Value value, Value *out)
{
        const TensorMeta *meta = &value.tensor->meta;
        int n = 0;
        while (n < meta->rank && meta->size[n] == 1)
                n++;
        if (n == 0) {
                *out = value_ref(value);
                return STATUS_OK;
        }
        _cleanup_(value_clear) Value shape = value_none();
        TRY(value_ints_new(VALUE_LIST, meta->size + n, (uint32_t)(meta->rank - n), &shape));
        return EMIT(emitter, "aten::view", out, value, shape);
}

static Status copy_into(Emitter *emitter, Value to, Value from)
{
        _cleanup_(value_clear) Value value = value_none();
        if (from.kind != VALUE_TENSOR) {
                Tensor *number;
                TRY(value_wrap_number(from, emitter->ctx == NULL ? NULL : emitter->ctx->budget, &number));
                value = value_tensor_take(number);
        } else {
                TRY(strip_leading_ones(emitter, from, &value));
        }
        const TensorMeta *target = &to.tensor->meta, *source = &value.tensor->meta;
        for (int d = 1; d <= source->rank; d++) {
                int64_t size = d <= target->rank ? target->size[target->rank - d] : -1;
                if (source->size[source->rank - d] == size ||
                    (source->size[source->rank - d] == 1 && size >= 0))
                        continue;
                char target_text[160], source_text[160];
                return fail(STATUS_SHAPE,
                            "The expanded size of the tensor (%ld) must match the existing size (%ld) at "
                            "non-singleton dimension %d.  "
                            "Target sizes: %s.  "
                            "Tensor sizes: %s",
                            (long)size, (long)source->size[source->rank - d],
                            d <= target->rank ? target->rank - d : 0,
                            shape_text(target->rank, target->size, target_text, sizeof(target_text)),
                            shape_text(source->rank, source->size, source_text, sizeof(source_text)));
        }
        if (meta_same_shape(target, source)) // a broadcast value is copied through a temporary
                TRY(inplace_check_copy(to.tensor, value.tensor));
        return lazy_write(emitter, to.tensor, value.tensor);
}

static Status put_into(Emitter *emitter, const Indexing *indexing, Value from)
{
        _cleanup_(value_clear) Value value = value_none();
        _cleanup_(value_clear) Value list = value_none();
        _cleanup_(value_clear) Value written = value_none();
        if (from.kind != VALUE_TENSOR)
                TRY(tensor_from_value(emitter, from, indexing->result.tensor->meta.dtype, &value));
        else
                TRY(strip_leading_ones(emitter, from, &value));
        TRY(slots_value(indexing, &list));
        return ATEN(emitter, "aten::index_put_", &written, indexing->result, list, value, value_bool(false));
}

static Status setitem_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = call->args[PY_LEFT], from = call->args[PY_SETITEM_VALUE];
        if (self.kind == VALUE_DYNAMIC || from.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC,
                            "the target or the value of an assignment is not known before the run");
        if (self.kind != VALUE_TENSOR)
                return fail(STATUS_VALUE, "'%s' object does not support item assignment in a graph",
                            value_kind_name(self.kind));
        if (from.kind != VALUE_TENSOR && !value_is_number(from))
                return fail(STATUS_VALUE, "can't assign a %s to a torch.%sTensor", value_kind_name(from.kind),
                            dtype_words(self.tensor->meta.dtype));
        Dtype dtype = self.tensor->meta.dtype;
        // f16 and bf16 turn values that are too large into infinity
        if (from.kind != VALUE_TENSOR && dtype != DTYPE_F16 && dtype != DTYPE_BF16)
                TRY(number_check_fits(from, dtype));
        _cleanup_(indexing_deinit) Indexing indexing;
        TRY(indexing_run(&indexing, emitter, self, &call->args[PY_RIGHT]));
        if (indexing.n_tensors == 0)
                TRY(copy_into(emitter, indexing.result, from));
        else
                TRY(put_into(emitter, &indexing, from));
        *out = value_none();
        return STATUS_OK;
}

// ---- sequences ----
static Status sequence_slice(Emitter *emitter, Value self, const Seq *slice, Value *out)
{
        int64_t n = self.seq->n, start, stop, step = 1;
        if (slice->items[2].kind != VALUE_NONE)
                TRY(value_as_int(emitter, slice->items[2], "slice step", &step));
        if (step == 0)
                return fail(STATUS_VALUE, "slice step cannot be zero");
        start = step > 0 ? 0 : n - 1;
        stop = step > 0 ? n : -1;
        int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
        int64_t *const bounds[] = { &start, &stop };
        for (int i = 0; i < 2; i++) {
                if (slice->items[i].kind == VALUE_NONE)
                        continue;
                TRY(value_as_int(emitter, slice->items[i], "slice bound", bounds[i]));
                int64_t bound = *bounds[i] < 0 ? *bounds[i] + n : *bounds[i];
                *bounds[i] = bound < low ? low : bound > high ? high : bound;
        }
        int64_t span = step > 0 ? stop - start : start - stop;
        uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
        uint32_t n_items = span <= 0 ? 0 : (uint32_t)(1 + ((uint64_t)span - 1) / stride);
        Seq *seq;
        TRY(seq_new(n_items, &seq));
        for (uint32_t i = 0; i < n_items; i++)
                seq->items[i] = value_ref(self.seq->items[step > 0 ? start + (int64_t)(i * stride)
                                                                   : start - (int64_t)(i * stride)]);
        *out = value_seq_take(self.kind, seq);
        return STATUS_OK;
}

static Status sequence_getitem(Emitter *emitter, Value self, Value index, Value *out)
{
        if (index.kind == VALUE_SLICE)
                return sequence_slice(emitter, self, index.seq, out);
        int64_t at, n = self.seq->n;
        TRY(value_as_int(emitter, index, "index", &at));
        if (at < -n || at >= n)
                return fail(STATUS_INDEX, "%s index out of range",
                            self.kind == VALUE_LIST ? "list" : "tuple");
        *out = value_ref(self.seq->items[at < 0 ? at + n : at]);
        return STATUS_OK;
}

static Status getitem_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = call->args[PY_LEFT], index = call->args[PY_RIGHT];
        if (self.kind == VALUE_DYNAMIC || index.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "an indexed object or its index is not known before the run");
        if (self.kind == VALUE_TENSOR)
                return tensor_getitem(emitter, self, &call->args[PY_RIGHT], out);
        if (value_is_sequence(self))
                return sequence_getitem(emitter, self, index, out);
        if (self.kind == VALUE_DICT && index.kind == VALUE_STR) {
                const Value *found = dict_get(self.dict, index.str->text);
                if (found == NULL)
                        return fail(STATUS_INDEX, "the dict has no key '%.80s'", index.str->text);
                *out = value_ref(*found);
                return STATUS_OK;
        }
        return fail(STATUS_VALUE, "'%s' object is not subscriptable with %s", value_kind_name(self.kind),
                    value_kind_name(index.kind));
}

#define VIEWS "aten::select.int aten::slice.Tensor aten::unsqueeze"
static const PyRow rows[] = {
        { "_operator.getitem .__getitem__", "py::getitem(Any a, Any b) -> Any", .expand = getitem_expand,
          .needs = VIEWS },
        { "_operator.setitem .__setitem__", "py::setitem(Any(a!) a, Any b, Any c) -> Any",
          .expand = setitem_expand, .needs = VIEWS },
};
const PyTable py_index_rows = PY_TABLE(rows);
