// SPDX-License-Identifier: Apache-2.0
// cse.c: three passes that need no new call.
// merge_equal. Match: two calls of one overload with equal arguments, on bytes that are written
// once. Rewrite: readers of the second read the first; the second is dropped.
// remove_same_views. Match: a view that is the tensor itself (`x[:, :n]` of n channels). Rewrite:
// its readers, and in-place calls on it, take the tensor.
// remove_copies. Match: a copy whose bytes nobody writes afterwards, on the source's places.
// Rewrite: its readers read the source.
#include "core/passes/passes.h"

#include <string.h>
#include "core/ops/arguments.h"

static bool untouched(const Recorded *value)
{
        return value == NULL || recorded_is_constant(value) || (!recorded_buffer(value)->written);
}

static Status check_untouched(void *context, Recorded *value)
{
        *(bool *)context &= untouched(value);
        return STATUS_OK;
}

// Reads and makes bytes that are written once, and is not part of the result: outputs with
// separate bytes in an eager run must keep separate bytes.
static bool is_pure(const RecordedCall *call)
{
        bool pure = call->call.n_outs > 0 && !call->call.inplace &&
                    (call->call.op->flags & (OP_EFFECT | OP_RANDOM)) == 0;
        for (uint32_t k = 0; pure && k < call->call.n_outs; k++) {
                const Recorded *value = call->outs[k];
                pure &= untouched(value) && (value == NULL || value->call == call);
                pure &= value == NULL || recorded_is_constant(value) || !recorded_buffer(value)->is_output;
        }
        if (pure)
                (void)recorded_visit_inputs(call, check_untouched, &pure);
        return pure;
}

// ---- equality ----
static const Recorded *settled(const Tensor *tensor)
{
        const Recorded *value = recorded_of(tensor);
        while (value->instead != NULL)
                value = value->instead;
        return value;
}

static bool same_constant(const Recorded *a, const Recorded *b, bool by_bits)
{
        const Tensor *x = &a->tensor, *y = &b->tensor;
        if (!recorded_is_constant(a) || !recorded_is_constant(b) ||
            memcmp(&x->meta.size, &y->meta.size, x->meta.rank * sizeof(int64_t)) != 0 ||
            memcmp(&x->meta.stride, &y->meta.stride, x->meta.rank * sizeof(int64_t)) != 0 ||
            x->meta.rank != y->meta.rank || x->meta.dtype != y->meta.dtype ||
            x->meta.wrapped != y->meta.wrapped)
                return false;
        if (x->storage == y->storage)
                return x->offset == y->offset;
        size_t bytes = (size_t)dtype_info[x->meta.dtype].bytes;
        return by_bits && meta_numel(&x->meta) == 1 && memcmp(tensor_data(x), tensor_data(y), bytes) == 0;
}

// `by_bits`: constants may be equal without being the same.
static bool same_value(Value a, Value b, bool by_bits)
{
        if (a.kind != b.kind)
                return false;
        switch (a.kind) {
        case VALUE_NONE:
        case VALUE_ELLIPSIS:
        case VALUE_ABSENT:
                return true;
        case VALUE_BOOL:
                return a.b == b.b;
        case VALUE_INT:
                return a.i == b.i;
        case VALUE_FLOAT:
                return memcmp(&a.f, &b.f, sizeof(a.f)) == 0;
        case VALUE_COMPLEX:
                return memcmp(&a.c, &b.c, sizeof(a.c)) == 0;
        case VALUE_DTYPE:
                return a.dtype == b.dtype;
        case VALUE_MEMORY_FORMAT:
                return a.memory_format == b.memory_format;
        case VALUE_STR:
        case VALUE_DEVICE:
        case VALUE_LAYOUT:
                return a.str->n == b.str->n && memcmp(a.str->text, b.str->text, a.str->n) == 0;
        case VALUE_TENSOR:
                return settled(a.tensor) == settled(b.tensor) ||
                       same_constant(settled(a.tensor), settled(b.tensor), by_bits);
        case VALUE_SLICE:
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                for (uint32_t i = 0; a.seq->n == b.seq->n && i < a.seq->n; i++) {
                        if (!same_value(a.seq->items[i], b.seq->items[i], by_bits))
                                return false;
                }
                return a.seq->n == b.seq->n;
        default:
                return false;
        }
}

static bool same_call(const RecordedCall *a, const RecordedCall *b)
{
        if (a->overload != b->overload || a->call.op != b->call.op || a->call.n_outs != b->call.n_outs)
                return false;
        for (uint32_t i = 0; i < a->call.n_args; i++) {
                // a view points into its own constant's bytes
                if (!same_value(a->call.args[i], b->call.args[i], a->computes))
                        return false;
        }
        return true;
}

// ---- hashing: the overload, the tensors and the numbers ----
static uint64_t hash_tensor(const Recorded *value)
{
        const Tensor *tensor = &value->tensor;
        uint64_t bits = 0;
        if (!recorded_is_constant(value))
                return (uintptr_t)value;
        if (meta_numel(&tensor->meta) != 1)
                return (uintptr_t)tensor->storage + (uint64_t)tensor->offset;
        memcpy(&bits, tensor_data(tensor), MIN((size_t)dtype_info[tensor->meta.dtype].bytes, sizeof(bits)));
        return bits;
}

static Status add_hash(void *context, const Value *leaf)
{
        uint64_t *hash = context;
        uint64_t part = (uint64_t)leaf->kind;
        if (leaf->kind == VALUE_TENSOR)
                part = hash_tensor(settled(leaf->tensor));
        else if (leaf->kind == VALUE_INT)
                part = (uint64_t)leaf->i;
        else if (leaf->kind == VALUE_FLOAT)
                memcpy(&part, &leaf->f, sizeof(part));
        *hash = (*hash ^ part) * 0x9e3779b97f4a7c15u;
        *hash ^= *hash >> 29;
        return STATUS_OK;
}

static uint64_t hash_call(const RecordedCall *call)
{
        uint64_t hash = (uintptr_t)call->overload;
        for (uint32_t i = 0; i < call->call.n_args; i++)
                (void)value_walk(call->call.args[i], add_hash, &hash);
        return hash;
}

static Status replace_call(Recording *recording, BufferValues *values, RecordedCall *call, RecordedCall *by)
{
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                if ((call->outs[k] == NULL) != (by->outs[k] == NULL))
                        return STATUS_OK;
        }
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                if (call->outs[k] == NULL)
                        continue;
                // Views of the replaced tensor become views of the other.
                if (call->computes && !recorded_is_constant(call->outs[k]))
                        buffer_values_move(values, call->outs[k]->tensor.storage,
                                           by->outs[k]->tensor.storage);
                call->outs[k]->instead = by->outs[k];
        }
        for (uint32_t i = 0; i < call->n_nodes; i++)
                TRY(recording_add_node(recording, by, call->nodes[i]));
        call->removed = true;
        return STATUS_OK;
}

Status pass_merge_equal(Recording *recording, PassContext *context)
{
        size_t n_slots = 16;
        while (n_slots < 2 * (size_t)recording->n_calls)
                n_slots *= 2;
        _cleanup_(freep) RecordedCall **slots = new_array(n_slots, sizeof(*slots));
        _cleanup_(buffer_values_deinit) BufferValues values = { 0 };
        if (slots == NULL)
                return fail_memory();
        TRY(buffer_values_find(recording, &values));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                if (i % 64 == 0)
                        TRY(run_poll(context->poll));
                if (!is_pure(call))
                        continue;
                size_t slot = hash_call(call) & (n_slots - 1);
                while (slots[slot] != NULL && !same_call(slots[slot], call))
                        slot = (slot + 1) & (n_slots - 1);
                if (slots[slot] == NULL)
                        slots[slot] = call;
                else
                        TRY(replace_call(recording, &values, call, slots[slot]));
        }
        TRY(recording_substitute(recording));
        recording_compact(recording);
        return STATUS_OK;
}

// ---- views and copies ----
static bool same_place(const Tensor *a, const Tensor *b)
{
        if (a->meta.dtype != b->meta.dtype || a->offset != b->offset ||
            a->storage->n_bytes != b->storage->n_bytes || !meta_same_shape(&a->meta, &b->meta))
                return false;
        return memcmp(a->meta.stride, b->meta.stride, a->meta.rank * sizeof(int64_t)) == 0;
}

static bool is_same_view(const RecordedCall *call)
{
        if (call->computes || call->moved != 0 || call->call.inplace || call->call.n_outs != 1 ||
            call->call.n_args == 0 || call->call.args[SELF].kind != VALUE_TENSOR ||
            (call->call.op->flags & OP_EFFECT) != 0)
                return false;
        const Recorded *from = settled(call->call.args[SELF].tensor), *to = call->outs[0];
        return to != NULL && to->call == call && to != from && to->tensor.storage == from->tensor.storage &&
               to->tensor.meta.wrapped == from->tensor.meta.wrapped && same_place(&from->tensor, &to->tensor);
}

Status pass_remove_same_views(Recording *recording, PassContext *context)
{
        (void)context;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                for (uint32_t k = 0; k < call->call.n_outs; k++) { // an in-place call's is its argument
                        if (call->outs[k] != NULL && call->outs[k]->instead != NULL)
                                call->outs[k] = call->outs[k]->instead;
                }
                if (!is_same_view(call))
                        continue;
                call->outs[0]->instead = recorded_of(&settled(call->call.args[SELF].tensor)->tensor);
                call->removed = true;
        }
        TRY(recording_substitute(recording));
        recording_compact(recording);
        return STATUS_OK;
}

Status pass_remove_copies(Recording *recording, PassContext *context)
{
        (void)context;
        _cleanup_(buffer_values_deinit) BufferValues values = { 0 };
        TRY(buffer_values_find(recording, &values));
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                if (!op_has(&call->call, TRAIT_COPIES) || !call->computes || call->call.n_outs != 1 ||
                    !is_pure(call) || call->call.args[SELF].kind != VALUE_TENSOR)
                        continue;
                Recorded *from = recorded_of(&settled(call->call.args[SELF].tensor)->tensor),
                         *to = call->outs[0];
                if (recorded_is_constant(to) || !same_place(&from->tensor, &to->tensor))
                        continue;
                buffer_values_move(&values, to->tensor.storage, from->tensor.storage);
                to->instead = from;
                call->removed = true;
        }
        TRY(recording_substitute(recording));
        recording_compact(recording);
        return STATUS_OK;
}
