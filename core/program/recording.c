// SPDX-License-Identifier: Apache-2.0
// recording.c: life, walking and rewriting of recordings. Everything lives in the recording's
// arena; what is counted elsewhere (argument values, storages) is dropped at the end. The Tensor
// inside a Recorded keeps one reference of its own for the recording's whole life, so that it is
// never freed by value_unref.
#include "core/program/recording.h"

#include <string.h>

Status recording_new(const Graph *graph, Recording **out_recording)
{
        Recording *recording = calloc(1, sizeof(*recording));
        if (recording == NULL)
                return fail_memory();
        arena_init(&recording->arena, 0);
        recording->graph = graph_ref((Graph *)(uintptr_t)graph);
        *out_recording = recording;
        return STATUS_OK;
}

static void call_deinit(const RecordedCall *call)
{
        for (uint32_t i = 0; i < call->call.n_args; i++)
                value_unref(call->call.args[i]);
}

Recording *recording_free(Recording *recording)
{
        if (recording == NULL)
                return NULL;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                for (const RecordedCall *call = recording->calls[i]; call != NULL; call = call->before)
                        call_deinit(call);
        }
        value_unref(recording->result);
        for (uint32_t i = 0; i < recording->n_fetched; i++)
                value_unref(recording->fetched[i]);
        for (uint32_t i = 0; i < recording->n_values; i++)
                storage_unref(recording->values[i]->tensor.storage);
        for (uint32_t i = 0; i < recording->n_buffers; i++) {
                storage_unref(recording->buffers[i]->storage);
                storage_unref(recording->buffers[i]->origin);
        }
        for (uint32_t i = 0; i < recording->n_bodies; i++)
                graph_unref(recording->bodies[i]);
        free(recording->bodies);
        free(recording->calls);
        free(recording->values);
        free(recording->buffers);
        free(recording->inputs);
        free(recording->states);
        free(recording->number_inputs);
        graph_unref(recording->graph);
        arena_deinit(&recording->arena);
        free(recording);
        return NULL;
}

// ---- building ----
Status recording_add_buffer(Recording *recording, BufferKind kind, size_t n_bytes, Buffer **out_buffer)
{
        TRY(array_reserve(&recording->buffers, &recording->buffers_capacity, recording->n_buffers + 1,
                          sizeof(Buffer *)));
        Buffer *buffer = arena_alloc(&recording->arena, sizeof(*buffer));
        if (buffer == NULL)
                return fail_memory();
        *buffer = (Buffer){
                .tag = { TAG_BUFFER }, .kind = kind, .index = recording->n_buffers, .n_bytes = n_bytes
        };
        TRY(storage_adopt(NULL, n_bytes, false, NULL, NULL, &buffer->storage));
        buffer->storage->tag = &buffer->tag;
        recording->buffers[recording->n_buffers++] = buffer;
        *out_buffer = buffer;
        return STATUS_OK;
}

Status recording_add_value(Recording *recording, RecordedFrom from, Storage *storage, const TensorMeta *meta,
                           int64_t offset, Recorded **out_value)
{
        TRY(array_reserve(&recording->values, &recording->values_capacity, recording->n_values + 1,
                          sizeof(Recorded *)));
        Recorded *value = arena_alloc(&recording->arena, sizeof(*value));
        if (value == NULL)
                return fail_memory();
        refcount_init(&value->tensor.ref);
        value->tensor.meta = *meta;
        value->tensor.storage = storage_ref(storage);
        value->tensor.offset = offset;
        value->tensor.tag = &value->tag;
        value->tag.kind = TAG_RECORDED;
        value->from = from;
        value->index = recording->n_values;
        if (buffer_of(storage) != NULL && buffer_of(storage)->base == NULL)
                buffer_of(storage)->base = value;
        recording->values[recording->n_values++] = value;
        *out_value = value;
        return STATUS_OK;
}

// ---- walking ----
Status recorded_visit_inputs(const RecordedCall *call, RecordedVisit visit, void *context)
{
        for (uint32_t i = 0; i < recorded_n_read(call); i++) {
                if (call->call.schema->args[i].type != ARG_TENSOR)
                        continue;
                const Value *value = &call->call.args[i];
                if (!value_is_sequence(*value)) {
                        TRY(visit(context, value->kind == VALUE_TENSOR ? recorded_of(value->tensor) : NULL));
                        continue;
                }
                for (uint32_t k = 0; k < value->seq->n; k++) {
                        const Value *item = &value->seq->items[k];
                        TRY(visit(context, item->kind == VALUE_TENSOR ? recorded_of(item->tensor) : NULL));
                }
        }
        return STATUS_OK;
}

typedef struct ResultVisit {
        RecordedVisit visit;
        void *context;
} ResultVisit;

static Status visit_leaf(void *context, const Value *leaf)
{
        const ResultVisit *result = context;
        return leaf->kind == VALUE_TENSOR ? result->visit(result->context, recorded_of(leaf->tensor))
                                          : STATUS_OK;
}

Status recording_visit_results(const Recording *recording, RecordedVisit visit, void *context)
{
        ResultVisit result = { .visit = visit, .context = context };
        TRY(value_walk(recording->result, visit_leaf, &result));
        for (uint32_t i = 0; i < recording->n_fetched; i++)
                TRY(value_walk(recording->fetched[i], visit_leaf, &result));
        return STATUS_OK;
}

// ---- rewriting ----
static Status replace_leaf(void *context, const Value *leaf, Value *out)
{
        (void)context;
        *out = *leaf;
        if (leaf->kind == VALUE_TENSOR) {
                Recorded *value = recorded_of(leaf->tensor);
                while (value->instead != NULL)
                        value = value->instead;
                out->tensor = &value->tensor;
        }
        value_ref(*out);
        return STATUS_OK;
}

static Status replace_value(Value *value)
{
        if (value->kind != VALUE_TENSOR && !value_is_sequence(*value) && value->kind != VALUE_DICT &&
            value->kind != VALUE_BATCH)
                return STATUS_OK;
        Value mapped;
        TRY(value_map(*value, replace_leaf, NULL, &mapped));
        value_unref(*value);
        *value = mapped;
        return STATUS_OK;
}

Status recording_substitute(Recording *recording)
{
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                RecordedCall *call = recording->calls[i];
                for (uint32_t k = 0; k < call->call.n_args && !call->removed; k++)
                        TRY(replace_value((Value *)(uintptr_t)&call->call.args[k]));
        }
        TRY(replace_value(&recording->result));
        for (uint32_t i = 0; i < recording->n_fetched; i++)
                TRY(replace_value(&recording->fetched[i]));
        return STATUS_OK;
}

Status buffer_values_find(const Recording *recording, BufferValues *out_values)
{
        BufferValues values = { .first = new_array(recording->n_buffers, sizeof(Recorded *)),
                                .next = new_array(recording->n_values, sizeof(Recorded *)) };
        if (values.first == NULL || values.next == NULL) {
                buffer_values_deinit(&values);
                return fail_memory();
        }
        for (uint32_t i = 0; i < recording->n_values; i++) {
                Recorded *value = recording->values[i];
                if (recorded_is_constant(value))
                        continue;
                values.next[i] = values.first[recorded_buffer(value)->index];
                values.first[recorded_buffer(value)->index] = value;
        }
        *out_values = values;
        return STATUS_OK;
}

void buffer_values_deinit(BufferValues *values)
{
        free(values->first);
        free(values->next);
        *values = (BufferValues){ 0 };
}

void buffer_values_move(BufferValues *values, const Storage *from, Storage *to)
{
        const Buffer *left = buffer_of(from), *taken = buffer_of(to);
        Recorded *next;
        for (Recorded *value = values->first[left->index]; value != NULL; value = next) {
                next = values->next[value->index];
                storage_ref(to);
                storage_unref(value->tensor.storage);
                value->tensor.storage = to;
                if (taken == NULL)
                        continue;
                values->next[value->index] = values->first[taken->index];
                values->first[taken->index] = value;
        }
        values->first[left->index] = NULL;
}

// From the back: no call moves to a lower position than its own before all in front of it are read.
void recording_compact(Recording *recording)
{
        uint32_t end = recording->n_calls + recording->n_inserted, at = end;
        for (uint32_t i = recording->n_calls; i-- > 0;) {
                RecordedCall *before;
                for (RecordedCall *call = recording->calls[i]; call != NULL; call = before) {
                        before = take_ptr(call->before);
                        if (call->removed)
                                call_deinit(call);
                        else
                                recording->calls[--at] = call;
                }
        }
        recording->n_calls = end - at;
        recording->n_inserted = 0;
        if (at > 0)
                memmove(recording->calls, recording->calls + at, recording->n_calls * sizeof(RecordedCall *));
}
