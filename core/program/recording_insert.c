// SPDX-License-Identifier: Apache-2.0
// recording_insert.c: new calls. A recorder appends calls that it has inferred. A pass inserts
// calls that are inferred here. An inserted call is linked to the call that it precedes, so that
// positions stay as they are until recording_compact. Every check that can decline comes first.
#include "core/program/recording.h"

#include <string.h>
#include "core/base/limits.h"

// ---- calls ----
static void drop_values(const Value *take_values, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                value_unref(take_values[i]);
}

static Status fill_call(Recording *recording, const OpCall *call, RecordedCall *out_call)
{
        Arena *arena = &recording->arena;
        out_call->call = *call;
        out_call->call.emitter = NULL;
        out_call->call.args = arena_array(arena, call->n_args, sizeof(Value));
        out_call->call.outs = call->n_outs <= OP_INLINE_OUTS
                                      ? out_call->call.inline_outs
                                      : arena_array(arena, call->n_outs, sizeof(OutSpec));
        out_call->outs = arena_array(arena, call->n_outs, sizeof(Recorded *));
        if (out_call->call.args == NULL || out_call->call.outs == NULL || out_call->outs == NULL)
                return fail_memory();
        memcpy(out_call->call.outs, call->outs, call->n_outs * sizeof(OutSpec));
        for (uint32_t k = 0; k < call->n_outs; k++) {
                if (call->outs[k].kind == OUT_VALUE) // plain values are known, so no call computes them
                        out_call->call.outs[k].kind = OUT_UNSET;
        }
        // A schema stands inside its overload.
        out_call->overload = (const Overload *)((const char *)call->schema - offsetof(Overload, schema));
        return STATUS_OK;
}

static Status check_leaf(void *context, const Value *leaf)
{
        (void)context;
        const Recorded *value = leaf->kind == VALUE_TENSOR ? recorded_of(leaf->tensor) : NULL;
        return leaf->kind != VALUE_TENSOR || (value != NULL && &value->tensor == leaf->tensor)
                       ? STATUS_OK
                       : fail(STATUS_INTERNAL, "an argument of a recorded call is no value of a recording");
}

static Status check_args(const Value *args, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                TRY(value_walk(args[i], check_leaf, NULL));
        return STATUS_OK;
}

// A call without a position; `calls` has room for it.
static Status make_call(Recording *recording, const OpCall *call, Value *take_args, RecordedCall **out_call)
{
        RecordedCall *made = arena_alloc(&recording->arena, sizeof(*made));
        Status status = made == NULL ? fail_memory() : check_args(take_args, call->n_args);
        if (status == STATUS_OK)
                status = fill_call(recording, call, made);
        if (status == STATUS_OK)
                status =
                        array_reserve(&recording->calls, &recording->calls_capacity,
                                      recording->n_calls + recording->n_inserted + 1, sizeof(RecordedCall *));
        if (status != STATUS_OK) {
                drop_values(take_args, call->n_args);
                return status;
        }
        memcpy((Value *)(uintptr_t)made->call.args, take_args, call->n_args * sizeof(Value));
        *out_call = made;
        return STATUS_OK;
}

Status recording_add_call(Recording *recording, const OpCall *call, Value *take_args, RecordedCall **out_call)
{
        TRY(make_call(recording, call, take_args, out_call));
        recording->calls[recording->n_calls++] = *out_call;
        return STATUS_OK;
}

static void put_before(Recording *recording, RecordedCall *at, RecordedCall *call)
{
        if (at == NULL) {
                recording->calls[recording->n_calls++] = call;
                return;
        }
        call->before = at->before;
        at->before = call;
        recording->n_inserted++;
}

// ---- authored nodes ----
static Status grow_nodes(Recording *recording, RecordedCall *call)
{
        uint32_t capacity = call->nodes_capacity == 0 ? 1 : 2 * call->nodes_capacity;
        const Node **nodes = arena_array(&recording->arena, capacity, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        if (call->n_nodes > 0)
                memcpy(nodes, call->nodes, call->n_nodes * sizeof(*nodes));
        call->nodes = nodes;
        call->nodes_capacity = capacity;
        return STATUS_OK;
}

Status recording_add_node(Recording *recording, RecordedCall *call, const Node *node)
{
        uint32_t low = 0, high = call->n_nodes;
        while (low < high) {
                uint32_t middle = (low + high) / 2;
                if (call->nodes[middle]->index < node->index)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (uint32_t i = low; i < call->n_nodes && call->nodes[i]->index == node->index; i++) {
                if (call->nodes[i] == node)
                        return STATUS_OK;
        }
        if (call->n_nodes == call->nodes_capacity)
                TRY(grow_nodes(recording, call));
        memmove(call->nodes + low + 1, call->nodes + low, (call->n_nodes - low) * sizeof(*call->nodes));
        call->nodes[low] = node;
        call->n_nodes++;
        return STATUS_OK;
}

Status recording_add_nodes(Recording *recording, RecordedCall *call, const RecordedCall *other)
{
        for (uint32_t i = 0; i < other->n_nodes; i++)
                TRY(recording_add_node(recording, call, other->nodes[i]));
        return STATUS_OK;
}

// ---- results ----
Status recording_add_fresh(Recording *recording, const TensorMeta *meta, Recorded **out_value)
{
        int64_t n_elements, n_bytes;
        Buffer *buffer;
        TRY(meta_span(meta, &n_elements));
        if (!mul_i64(n_elements, dtype_info[meta->dtype].bytes, &n_bytes) || n_bytes > limits.max_run_memory)
                return fail(STATUS_TOO_LARGE, "a tensor of %lld elements is over --max-run-memory",
                            (long long)n_elements);
        TRY(recording_add_buffer(recording, BUFFER_RUN, (size_t)n_bytes, &buffer));
        return recording_add_value(recording, FROM_CALL, buffer->storage, meta, 0, out_value);
}

// The result may be `old` itself.
static bool takes_place(const OpCall *call, const OutSpec *spec, const Recorded *old)
{
        if (spec->meta.dtype != old->tensor.meta.dtype || !meta_same_places(&spec->meta, &old->tensor.meta))
                return false;
        return spec->kind == OUT_FRESH || (call->args[spec->arg].tensor->storage == old->tensor.storage &&
                                           spec->offset == old->tensor.offset);
}

static bool result_fits(const NewCall *new_call, const OpCall *call, uint32_t k)
{
        const OutSpec *spec = &call->outs[k];
        const Recorded *old = new_call->outs[k];
        bool view = spec->kind == OUT_VIEW && new_call->results != RESULTS_ALIKE;
        if ((spec->kind != OUT_FRESH && !view) || spec->undefined)
                return false;
        if (takes_place(call, spec, old))
                return true;
        return new_call->results == RESULTS_RESTRIDED && spec->meta.dtype == old->tensor.meta.dtype &&
               meta_same_shape(&spec->meta, &old->tensor.meta) &&
               (view || meta_is_non_overlapping_and_dense(&spec->meta));
}

static bool results_fit(const NewCall *new_call, const OpCall *call)
{
        if (new_call->outs != NULL && call->n_outs != new_call->n_outs)
                return false;
        for (uint32_t k = 0; new_call->outs != NULL && k < call->n_outs; k++) {
                if (!result_fits(new_call, call, k))
                        return false;
        }
        return true;
}

static Status make_result(Recording *recording, const NewCall *new_call, RecordedCall *added, uint32_t k)
{
        OutSpec *spec = &added->call.outs[k];
        Recorded *old = new_call->outs == NULL ? NULL : new_call->outs[k], *made = NULL;
        if (old != NULL && takes_place(&added->call, spec, old)) {
                spec->meta = old->tensor.meta; // strides of dimensions of size 1 may differ
                made = new_call->results == RESULTS_ALIKE ? NULL : old;
        }
        added->computes |= spec->kind == OUT_FRESH && added->call.op->run != NULL;
        if (spec->kind == OUT_SAME)
                made = recorded_of(added->call.args[spec->arg].tensor);
        else if (spec->kind == OUT_VIEW && made == NULL)
                TRY(recording_add_value(recording, FROM_CALL, added->call.args[spec->arg].tensor->storage,
                                        &spec->meta, spec->offset, &made));
        else if (spec->kind == OUT_FRESH && !spec->undefined && made == NULL)
                TRY(recording_add_fresh(recording, &spec->meta, &made));
        added->outs[k] = made;
        if (made == NULL || spec->kind == OUT_SAME)
                return STATUS_OK;
        made->call = added;
        return STATUS_OK;
}

// ---- inserting ----
// Only what would stop the whole build is a failure. Any other failure of the operator declines:
// the existing calls stay.
static bool declines(Status status)
{
        return status != STATUS_NO_MEMORY && status != STATUS_DEADLINE && status != STATUS_CANCELLED;
}

// *out_fits false: declined.
static Status infer(const NewCall *new_call, OpCall *call, bool *out_fits)
{
        Status status = call_check_dtypes(call);
        if (status == STATUS_OK)
                status = call->op->infer(call);
        *out_fits = status == STATUS_OK && results_fit(new_call, call);
        if (*out_fits && new_call->accept != NULL)
                status = new_call->accept(call);
        *out_fits &= status == STATUS_OK;
        return declines(status) ? STATUS_OK : status;
}

static Status complete(Recording *recording, const NewCall *new_call, RecordedCall *added)
{
        for (uint32_t k = 0; k < added->call.n_outs; k++)
                TRY(make_result(recording, new_call, added, k));
        for (uint32_t i = 0; i < new_call->n_stands_for; i++) {
                TRY(recording_add_nodes(recording, added, new_call->stands_for[i]));
                new_call->stands_for[i]->removed |= new_call->replaces;
        }
        return STATUS_OK;
}

Status recording_insert(Recording *recording, RecordedCall *at, const NewCall *new_call,
                        RecordedCall **out_call)
{
        const Overload *overload = new_call->overload;
        if (overload == NULL) // without an overload, the number of arguments is unknown
                return fail(STATUS_INTERNAL, "the table lacks an operator that a pass inserts");
        uint32_t n = overload->schema.n_args;
        uint64_t all = n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
        RecordedCall *added = NULL;
        OpCall call;
        bool fits = false;
        *out_call = NULL;
        Status status = overload->op->infer == NULL || overload->inplace
                                ? fail(STATUS_INTERNAL, "%s cannot be inserted", overload->name)
                                : call_open(NULL, overload, new_call->take_args,
                                            new_call->given == 0 ? all : new_call->given, &call);
        if (status != STATUS_OK) {
                drop_values(new_call->take_args, n);
                return status;
        }
        status = infer(new_call, &call, &fits);
        if (fits)
                status = make_call(recording, &call, new_call->take_args, &added);
        else
                drop_values(new_call->take_args, n);
        call_close(&call);
        if (status != STATUS_OK || !fits)
                return status;
        put_before(recording, at, added);
        TRY(complete(recording, new_call, added));
        *out_call = added;
        return STATUS_OK;
}
