// SPDX-License-Identifier: Apache-2.0
// rewrite.c: a replaced call keeps its output values, so that whoever reads them needs no change.
#include "core/passes/rewrite.h"

#include <string.h>

// ---- who reads what ----
typedef struct Counting {
        Uses *uses;
        RecordedCall *call;
} Counting;

static Status count_value(void *context, Recorded *value)
{
        const Counting *counting = context;
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        uint32_t index = recorded_buffer(value)->index;
        counting->uses->n[index]++;
        counting->uses->reader[index] = counting->call;
        return STATUS_OK;
}

Status uses_count(const Recording *recording, Uses *out_uses)
{
        Uses uses = { .n_buffers = recording->n_buffers };
        uses.n = new_array(recording->n_buffers, sizeof(*uses.n));
        uses.reader = new_array(recording->n_buffers, sizeof(RecordedCall *));
        if (uses.n == NULL || uses.reader == NULL) {
                uses_deinit(&uses);
                return fail_memory();
        }
        Counting counting = { .uses = &uses };
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                counting.call = recording->calls[i];
                if (!counting.call->removed)
                        (void)recorded_visit_inputs(counting.call, count_value, &counting);
        }
        counting.call = NULL;
        (void)recording_visit_results(recording, count_value, &counting);
        *out_uses = uses;
        return STATUS_OK;
}

void uses_deinit(Uses *uses)
{
        free(uses->n);
        free(uses->reader);
        *uses = (Uses){ 0 };
}

RecordedCall *uses_only_reader(const Uses *uses, const Recorded *value)
{
        if (recorded_is_constant(value))
                return NULL;
        const Buffer *buffer = recorded_buffer(value);
        if (buffer->index >= uses->n_buffers || buffer->kind != BUFFER_RUN || buffer->written ||
            buffer->is_output || uses->n[buffer->index] != 1)
                return NULL;
        return uses->reader[buffer->index];
}

static Status look_for_written(void *context, Recorded *value)
{
        *(bool *)context |= value != NULL && !recorded_is_constant(value) && recorded_buffer(value)->written;
        return STATUS_OK;
}

bool call_is_movable(const RecordedCall *call)
{
        bool written = false;
        (void)recorded_visit_inputs(call, look_for_written, &written);
        return !written;
}

static Status move_reader(void *context, Recorded *value)
{
        const Counting *counting = context;
        if (value != NULL && !recorded_is_constant(value) &&
            recorded_buffer(value)->index < counting->uses->n_buffers)
                counting->uses->reader[recorded_buffer(value)->index] = counting->call;
        return STATUS_OK;
}

// ---- replacing ----
static Status settle(Recording *recording, Uses *uses, uint32_t at, RecordedCall *merged, RecordedCall *added)
{
        RecordedCall *old = recording->calls[at];
        recording->calls[at] = added;
        recording->calls[recording->n_calls - 1] = old;
        old->removed = true;
        added->computes = true;
        added->outs[0] = old->outs[0];
        added->outs[0]->call = added;
        added->outs[0]->out = 0;
        added->call.outs[0].meta = old->outs[0]->tensor.meta;
        Counting moving = { .uses = uses, .call = added };
        (void)recorded_visit_inputs(added, move_reader, &moving);
        for (uint32_t i = 0; i < old->n_nodes; i++)
                TRY(recording_add_node(recording, added, old->nodes[i]));
        for (uint32_t i = 0; merged != NULL && i < merged->n_nodes; i++)
                TRY(recording_add_node(recording, added, merged->nodes[i]));
        if (merged != NULL)
                merged->removed = true;
        return STATUS_OK;
}

static void drop_args(Value *args, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                value_unref(args[i]);
}

Status rewrite_call(Recording *recording, Uses *uses, uint32_t at, const Overload *overload, Value *take_args,
                    RecordedCall *merged, RecordedCall **out_call)
{
        const Recorded *old = recording->calls[at]->outs[0];
        uint32_t n = overload->schema.n_args;
        OpCall call;
        *out_call = NULL;
        Status status = call_open(NULL, overload, take_args, ((uint64_t)1 << n) - 1, &call);
        if (status == STATUS_OK)
                status = overload->op->infer(&call);
        if (status != STATUS_OK || call.n_outs == 0 || call.outs[0].kind != OUT_FRESH ||
            call.outs[0].meta.dtype != old->tensor.meta.dtype ||
            !meta_same_places(&call.outs[0].meta, &old->tensor.meta)) {
                call_close(&call);
                drop_args(take_args, n);
                return status == STATUS_NO_MEMORY ? status : STATUS_OK;
        }
        RecordedCall *added;
        status = recording_add_call(recording, &call, take_args, &added);
        call_close(&call);
        TRY(status);
        TRY(settle(recording, uses, at, merged, added));
        *out_call = added;
        return STATUS_OK;
}

Status rewrite_constant_on(Recording *recording, Storage *storage, const TensorMeta *meta, const char *name,
                           Recorded **out_value)
{
        TRY(recording_add_value(recording, FROM_LITERAL, storage, meta, 0, out_value));
        (*out_value)->name = name;
        return STATUS_OK;
}

Status rewrite_constant(Recording *recording, const TensorMeta *meta, const char *name, Recorded **out_value)
{
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new((size_t)meta_numel(meta) * dtype_info[meta->dtype].bytes, false, NULL, &storage));
        return rewrite_constant_on(recording, storage, meta, name, out_value);
}
