// SPDX-License-Identifier: Apache-2.0
// rewrite.c: who reads what, constants that passes make, and arguments.
#include "core/passes/rewrite.h"
#include "core/kernels/dense.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"

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

void uses_moved(Uses *uses, RecordedCall *call)
{
        Counting moving = { .uses = uses, .call = call };
        (void)recorded_visit_inputs(call, move_reader, &moving);
}

bool uses_first_result_only(const Uses *uses, const RecordedCall *call)
{
        for (uint32_t k = 1; k < call->call.n_outs; k++) {
                if (call->outs[k] != NULL && uses->n[recorded_buffer(call->outs[k])->index] != 0)
                        return false;
        }
        return call->outs[0] != NULL && call->outs[0]->call == call;
}

// ---- constants ----
Status rewrite_constant(Recording *recording, const TensorMeta *meta, Recorded **out_value)
{
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new((size_t)meta_numel(meta) * dtype_info[meta->dtype].bytes, false, NULL, &storage));
        return recording_add_value(recording, FROM_LITERAL, storage, meta, 0, out_value);
}

bool rewrite_is_finite(const Recorded *value)
{
        const TensorMeta *meta = &value->tensor.meta;
        return recorded_is_constant(value) && value->tensor.storage->data != NULL && is_packed_type(meta) &&
               meta_is_contiguous(meta) && floats_are_finite(tensor_data(&value->tensor), meta);
}

// ---- views ----
Status rewrite_view(Recording *recording, RecordedCall *at, const Recorded *from, const TensorMeta *meta,
                    Recorded *to, Recorded **out_value)
{
        Value size, stride;
        RecordedCall *maker = from->call, *made;
        TRY(value_ints_new(VALUE_LIST, meta->size, meta->rank, &size));
        Status status = value_ints_new(VALUE_LIST, meta->stride, meta->rank, &stride);
        if (status != STATUS_OK) {
                value_unref(size);
                return status;
        }
        Value args[] = { rewrite_tensor(from), size, stride,
                         value_int((to == NULL ? from : to)->tensor.offset) };
        NewCall new_call = { .overload = op_for(ROLE_AS_STRIDED),
                             .take_args = args,
                             .outs = to == NULL ? NULL : &to,
                             .n_outs = 1,
                             .stands_for = &maker,
                             .n_stands_for = maker == NULL ? 0 : 1 };
        TRY(recording_insert(recording, at, &new_call, &made));
        if (made == NULL)
                return fail(STATUS_INTERNAL, "a view is declined");
        *out_value = made->outs[0];
        return STATUS_OK;
}

// ---- arguments ----
Status rewrite_volume_transposed(const RecordedCall *conv, const ConvArgs *args, Value *out)
{
        uint32_t n = (uint32_t)args->spatial;
        for (int i = SELF; i <= CONV_BIAS; i++)
                out[i] = value_ref(conv->call.args[i]);
        TRY(value_ints_new(VALUE_LIST, args->stride, n, &out[CONV_STRIDE]));
        TRY(value_ints_new(VALUE_LIST, args->padding, n, &out[CONV_PADDING]));
        TRY(value_ints_new(VALUE_LIST, args->output_padding, n, &out[TRANSPOSED_OUTPUT_PADDING]));
        out[TRANSPOSED_GROUPS] = value_int(args->groups);
        return value_ints_new(VALUE_LIST, args->dilation, n, &out[TRANSPOSED_DILATION]);
}

Status rewrite_fused_conv(const RecordedCall *conv, const ConvArgs *args, Value *out)
{
        uint32_t n = (uint32_t)args->spatial, at = CONV_GROUPS + 1;
        int64_t padding[6];
        for (int i = SELF; i <= CONV_BIAS; i++)
                out[i] = value_ref(conv->call.args[i]);
        TRY(value_ints_new(VALUE_LIST, args->stride, n, &out[CONV_STRIDE]));
        memcpy(padding, args->padding, n * sizeof(int64_t));
        memcpy(padding + n, args->padding_after, n * sizeof(int64_t));
        bool same = memcmp(padding, padding + n, n * sizeof(int64_t)) == 0;
        TRY(value_ints_new(VALUE_LIST, padding, same ? n : 2 * n, &out[CONV_PADDING]));
        TRY(value_ints_new(VALUE_LIST, args->dilation, n, &out[CONV_DILATION]));
        out[CONV_GROUPS] = value_int(args->groups);
        for (uint32_t i = at; op_role(&conv->call) == ROLE_FUSED_CONV && i < conv->call.n_args; i++)
                out[i] = value_ref(conv->call.args[i]);
        if (op_role(&conv->call) == ROLE_FUSED_CONV)
                return STATUS_OK;
        TRY(value_str_new("none", strlen("none"), &out[at]));
        out[at + 1] = value_float(0);
        out[at + 2] = value_float(0);
        return STATUS_OK;
}
