// SPDX-License-Identifier: Apache-2.0
// recorder.c: live tensors and the values that they stand for. The walk that records handles
// ordinary tensors, called live, as an eager run does. Their storages have no bytes and stand for
// buffers. Views of a live tensor share its storage, so tensors alias as they will in the run.
//
// A live tensor may change: `unsqueeze_` changes its meta. A Recorded never changes, because calls
// point to it. When the geometry of a live tensor differs from that of its value, the recorder adds
// a new value by as_strided.
#include "core/compile/child.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/ops/arguments.h"

// ---- live tensors and their values ----
Status recorder_live_tensor(const Recorded *value, Tensor **out_tensor)
{
        TRY(tensor_new_view(value->tensor.storage, &value->tensor.meta, value->tensor.offset, out_tensor));
        (*out_tensor)->tag = (Tag *)(uintptr_t)&value->tag;
        return STATUS_OK;
}

Status recorder_unknown(Recorder *recorder, const TensorMeta *meta, Tensor **out_tensor)
{
        Recorded *value;
        TRY(recording_add_fresh(recorder->recording, meta, &value));
        value->from = FROM_INPUT; // no call makes it
        return recorder_live_tensor(value, out_tensor);
}

bool recorder_same_geometry(const Tensor *a, const Tensor *b)
{
        size_t bytes = a->meta.rank * sizeof(int64_t);
        return a->offset == b->offset && a->meta.dtype == b->meta.dtype && a->meta.rank == b->meta.rank &&
               memcmp(a->meta.size, b->meta.size, bytes) == 0 &&
               memcmp(a->meta.stride, b->meta.stride, bytes) == 0;
}

static void drop_values(const Value *take_values, size_t n)
{
        for (size_t i = 0; i < n; i++)
                value_unref(take_values[i]);
}

Status recorder_add_call(Recorder *recorder, const OpCall *call, Value *take_args, RecordedCall **out_call)
{
        if (recorder->recording->n_calls >= recorder->max_calls) {
                drop_values(take_args, call->n_args);
                return fail(STATUS_DYNAMIC, "the graph unrolls to more than %u calls", recorder->max_calls);
        }
        TRY(recording_add_call(recorder->recording, call, take_args, out_call));
        return recorder->base.node == NULL
                       ? STATUS_OK
                       : recording_add_node(recorder->recording, *out_call, recorder->base.node);
}

// A value of the geometry of `tensor`, made from `from`, which has the same storage.
static Status add_restrided(Recorder *recorder, const Tensor *tensor, Recorded *from, Recorded **out_value)
{
        const Overload *overload = op_for(ROLE_AS_STRIDED);
        OpCall call;
        Value args[4] = { value_ref((Value){ .kind = VALUE_TENSOR, .tensor = &from->tensor }), value_none(),
                          value_none(), value_int(tensor->offset) };
        Status status = value_ints_new(VALUE_LIST, tensor->meta.size, tensor->meta.rank, &args[STRIDED_SIZE]);
        if (status == STATUS_OK)
                status = value_ints_new(VALUE_LIST, tensor->meta.stride, tensor->meta.rank,
                                        &args[STRIDED_STRIDE]);
        if (status == STATUS_OK)
                status = call_open(&recorder->base, overload, args, 15, &call);
        if (status != STATUS_OK) {
                drop_values(args, ARRAY_LENGTH(args));
                return status;
        }
        RecordedCall *added = NULL;
        status = out_view(&call, 0, SELF, &tensor->meta, tensor->offset);
        if (status == STATUS_OK)
                status = recorder_add_call(recorder, &call, args, &added);
        else
                drop_values(args, ARRAY_LENGTH(args));
        call_close(&call);
        TRY(status);
        TRY(recording_add_value(recorder->recording, FROM_CALL, tensor->storage, &tensor->meta,
                                tensor->offset, out_value));
        (*out_value)->call = added;
        added->outs[0] = *out_value;
        return STATUS_OK;
}

// A tensor that has no value yet is a literal, or a view that an expansion made by itself.
Status recorder_value(Recorder *recorder, Tensor *tensor, Recorded **out_value)
{
        Recorded *value = recorded_of(tensor);
        if (value != NULL && value->tensor.storage == tensor->storage &&
            recorder_same_geometry(&value->tensor, tensor)) {
                *out_value = value;
                return STATUS_OK;
        }
        if (tensor->storage == NULL)
                return fail(STATUS_INTERNAL, "a tensor without storage in a recording");
        if (value == NULL && tensor_is_known(tensor))
                return recording_add_value(recorder->recording, FROM_LITERAL, tensor->storage, &tensor->meta,
                                           tensor->offset, out_value);
        if (value == NULL || value->tensor.storage != tensor->storage)
                value = tensor_is_known(tensor) ? NULL : buffer_of(tensor->storage)->base;
        if (value == NULL)
                return fail(STATUS_INTERNAL, "a tensor of unknown origin in a recording");
        TRY(add_restrided(recorder, tensor, value, &value));
        tensor->tag = &value->tag;
        *out_value = value;
        return STATUS_OK;
}

Status recorder_leaf(void *context, const Value *leaf, Value *out)
{
        *out = *leaf;
        if (leaf->kind == VALUE_TENSOR) {
                Recorded *value;
                TRY(recorder_value(context, leaf->tensor, &value));
                out->tensor = &value->tensor;
        }
        value_ref(*out);
        return STATUS_OK;
}

// ---- life ----
static const EmitterVtbl vtbl = {
        .number = record_number,
        .number_read = record_number_read,
        .check = record_check,
        .op = record_op,
        .write = record_write,
        .state = record_state,
        .call = walk_child,
        .cond = record_cond,
        .loop = record_loop,
        .rows = child_record_rows,
};

void recorder_init(Recorder *recorder, Recording *recording, const RunContext *poll)
{
        *recorder = (Recorder){ .poll = poll,
                                .recording = recording,
                                .max_calls = (uint32_t)limits.max_nodes,
                                .max_values = UINT32_MAX };
        run_context_within(&recorder->ctx, poll);
        recorder->ctx.budget = NULL;
        recorder->ctx.pool = NULL;
        recorder->base = (Emitter){ .vtbl = &vtbl, .ctx = &recorder->ctx, .graph = recording->graph };
}

void recorder_deinit(Recorder *recorder)
{
        for (uint32_t i = 0; i < recorder->n_views; i++)
                tensor_unref(recorder->views[i].seen);
        free(recorder->views);
        for (uint32_t i = 0; i < RUNTIME_SCALARS_MAX; i++)
                tensor_unref(recorder->numbers[i]);
}

// ---- values of which only sizes are known ----
static bool meta_of_spec(const TensorSpec *spec, TensorMeta *out_meta)
{
        int64_t size[MAX_RANK], n;
        if (spec == NULL || spec->rank < 0 || spec->rank > MAX_RANK || spec->dtype >= DTYPE_COUNT)
                return false;
        for (int d = 0; d < spec->rank; d++) {
                size[d] = spec->size[d].value;
                if (size[d] < 0)
                        return false;
        }
        meta_init(out_meta, spec->dtype, spec->rank, size);
        return meta_span(out_meta, &n) == STATUS_OK;
}

Status recorder_of_spec(Recorder *recorder, const TensorSpec *spec, Value *out)
{
        TensorMeta meta;
        Tensor *tensor;
        *out = (Value){ .kind = VALUE_DYNAMIC };
        if (!meta_of_spec(spec, &meta))
                return STATUS_OK;
        Status status = recorder_unknown(recorder, &meta, &tensor);
        if (status == STATUS_OK)
                *out = value_tensor_take(tensor);
        return status_class(status) == STATUS_CLASS_INTERNAL ? status : STATUS_OK;
}

Status recorder_input(Recorder *recorder, const Input *input, Value *out)
{
        *out = (Value){ .kind = input->kind == INPUT_STATE ? VALUE_ABSENT : VALUE_DYNAMIC };
        if (input->kind == INPUT_LITERAL)
                *out = value_ref(input->literal);
        else if (input->kind == INPUT_USER && input->value_kind == VALUE_INT &&
                 input->spec.dtype == DTYPE_I64 && input->spec.size[0].value >= 0)
                *out = value_int(input->spec.size[0].value);
        else if (input->kind == INPUT_USER && input->value_kind == VALUE_TENSOR)
                return recorder_of_spec(recorder, &input->spec, out);
        return STATUS_OK;
}
