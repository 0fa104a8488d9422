// SPDX-License-Identifier: Apache-2.0
// args.c: how infer, prepare and run read a call's arguments and describe its outputs. The binder
// has checked kinds; what remains to fail here are values: ranges, repeats, lists that are too
// long, and data that is not known while recording.
#include "core/ops/op.h"

#include <string.h>

static Status fail_unknown(const OpCall *call, int index)
{
        return fail(STATUS_DYNAMIC, "the value of argument '%s' of %s is not known before the run",
                    call->schema->args[index].name, call->schema->name);
}

// ---- reading ----
const Tensor *arg_tensor(const OpCall *call, int index)
{
        return call->args[index].kind == VALUE_TENSOR ? call->args[index].tensor : NULL;
}

const TensorMeta *arg_meta(const OpCall *call, int index)
{
        return call->args[index].kind == VALUE_TENSOR ? &call->args[index].tensor->meta : NULL;
}

bool arg_is_none(const OpCall *call, int index)
{
        return call->args[index].kind == VALUE_NONE || call->args[index].kind == VALUE_ABSENT;
}

bool arg_bool(const OpCall *call, int index, bool if_none)
{
        const Value *value = &call->args[index];
        switch (value->kind) {
        case VALUE_BOOL:
                return value->b;
        case VALUE_INT:
                return value->i != 0;
        case VALUE_TENSOR:
                return tensor_is_known(value->tensor) &&
                       element_as_f64(value->tensor->meta.dtype, tensor_data(value->tensor)) != 0;
        default:
                return if_none;
        }
}

static Status value_as_int(const OpCall *call, int index, const Value *value, int64_t *out)
{
        switch (value->kind) {
        case VALUE_INT:
                *out = value->i;
                return STATUS_OK;
        case VALUE_BOOL:
                *out = value->b;
                return STATUS_OK;
        case VALUE_TENSOR:
                if (!tensor_is_known(value->tensor))
                        return fail_unknown(call, index);
                return tensor_item_i64(value->tensor, out);
        case VALUE_DYNAMIC:
                return fail_unknown(call, index);
        default:
                return fail(STATUS_VALUE, "%s(): argument '%s' must be int, not %s", call->schema->name,
                            call->schema->args[index].name, value_kind_name(value->kind));
        }
}

Status arg_int(const OpCall *call, int index, int64_t *out)
{
        return value_as_int(call, index, &call->args[index], out);
}

Status arg_double(const OpCall *call, int index, double *out)
{
        const Value *value = &call->args[index];
        switch (value->kind) {
        case VALUE_FLOAT:
                *out = value->f;
                return STATUS_OK;
        case VALUE_INT:
                *out = (double)value->i;
                return STATUS_OK;
        case VALUE_BOOL:
                *out = value->b;
                return STATUS_OK;
        case VALUE_TENSOR:
                if (!tensor_is_known(value->tensor))
                        return fail_unknown(call, index);
                return tensor_item_f64(value->tensor, out);
        case VALUE_DYNAMIC:
                return fail_unknown(call, index);
        default:
                return fail(STATUS_VALUE, "%s(): argument '%s' must be a real number, not %s",
                            call->schema->name, call->schema->args[index].name, value_kind_name(value->kind));
        }
}

Value element_number(Dtype dtype, const void *element)
{
        switch (dtype_info[dtype].kind) {
        case DTYPE_KIND_BOOL:
                return value_bool(element_as_i64(dtype, element) != 0);
        case DTYPE_KIND_INT:
                return value_int(element_as_i64(dtype, element));
        case DTYPE_KIND_FLOAT:
                return value_float(element_as_f64(dtype, element));
        case DTYPE_KIND_COMPLEX:
                break;
        }
        Value number = { .kind = VALUE_COMPLEX };
        if (dtype == DTYPE_C64) {
                const float *parts = element;
                number.c.re = (double)parts[0];
                number.c.im = (double)parts[1];
        } else {
                memcpy(&number.c, element, sizeof(number.c));
        }
        return number;
}

// A 0-dim tensor in a Scalar slot: its element, as Python's arg parser reads it.
Value arg_number(const OpCall *call, int index)
{
        const Value *value = &call->args[index];
        if (value->kind != VALUE_TENSOR || !tensor_is_known(value->tensor))
                return *value;
        return element_number(value->tensor->meta.dtype, tensor_data(value->tensor));
}

const char *arg_text(const OpCall *call, int index)
{
        const Value *value = &call->args[index];
        return value->kind == VALUE_STR || value->kind == VALUE_DEVICE || value->kind == VALUE_LAYOUT
                       ? value->str->text
                       : NULL;
}

Dtype arg_dtype(const OpCall *call, int index, Dtype if_none)
{
        return call->args[index].kind == VALUE_DTYPE ? call->args[index].dtype : if_none;
}

Status fail_mean_dtype(const char *name, bool given, Dtype dtype)
{
        return fail(STATUS_DTYPE,
                    "%s(): could not infer output dtype. %s dtype must be either a floating point or "
                    "complex dtype. Got: %s",
                    name, given ? "Optional" : "Input", dtype_words(dtype));
}

MemoryFormat arg_memory_format(const OpCall *call, int index, MemoryFormat if_none)
{
        return call->args[index].kind == VALUE_MEMORY_FORMAT ? call->args[index].memory_format : if_none;
}

// A 1-d tensor that stands for a list of ints.
static Status tensor_ints(const OpCall *call, int index, int cap, int64_t *out, int *out_n)
{
        const Tensor *tensor = call->args[index].tensor;
        int64_t n = tensor->meta.size[0],
                step = tensor->meta.stride[0] * dtype_info[tensor->meta.dtype].bytes;
        if (!tensor_is_known(tensor))
                return fail_unknown(call, index);
        if (n > cap)
                return fail(STATUS_VALUE, "%s(): argument '%s' holds %ld numbers; at most %d are supported",
                            call->schema->name, call->schema->args[index].name, (long)n, cap);
        for (int64_t i = 0; i < n; i++)
                out[i] = element_as_i64(tensor->meta.dtype, (const char *)tensor_data(tensor) + i * step);
        *out_n = (int)n;
        return STATUS_OK;
}

Status arg_ints(const OpCall *call, int index, int cap, int64_t *out, int *out_n)
{
        const Value *value = &call->args[index];
        const SchemaArg *arg = &call->schema->args[index];
        if (arg_is_none(call, index)) {
                *out_n = -1;
                return STATUS_OK;
        }
        if (value->kind == VALUE_DYNAMIC)
                return fail_unknown(call, index);
        if (value->kind == VALUE_TENSOR && value->tensor->meta.rank == 1)
                return tensor_ints(call, index, cap, out, out_n);
        bool is_list = value_is_sequence(*value);
        int64_t n = is_list ? (int64_t)value->seq->n : MAX(arg->list_size, 1);
        if (n > cap)
                return fail(STATUS_VALUE, "%s(): argument '%s' holds %ld numbers; at most %d are supported",
                            call->schema->name, arg->name, (long)n, cap);
        for (int64_t i = 0; i < n; i++)
                TRY(value_as_int(call, index, is_list ? &value->seq->items[i] : value, &out[i]));
        *out_n = (int)n;
        return STATUS_OK;
}

Status arg_dim(const OpCall *call, int index, int rank, int *out_dim)
{
        int64_t dim;
        TRY(arg_int(call, index, &dim));
        return dim_wrap(dim, rank, out_dim);
}

Status arg_dims(const OpCall *call, int index, int rank, bool empty_is_all, uint32_t *out_mask)
{
        enum { DIMS_CAP = 64 }; // repeats and out-of-range dims are told apart before anything is cut
        int64_t dims[DIMS_CAP];
        int n;
        TRY(arg_ints(call, index, DIMS_CAP, dims, &n));
        uint32_t all = (1u << rank) - 1, mask = 0;
        if (n < 0 || (n == 0 && empty_is_all)) {
                *out_mask = all;
                return STATUS_OK;
        }
        for (int i = 0; i < n; i++) {
                int dim;
                TRY(dim_wrap(dims[i], rank, &dim));
                if ((mask >> dim & 1) != 0)
                        return fail(STATUS_VALUE, "dim %d appears multiple times in the list of dims", dim);
                mask |= 1u << dim;
        }
        *out_mask = mask & all;
        return STATUS_OK;
}

uint32_t arg_list_length(const OpCall *call, int index)
{
        const Value *value = &call->args[index];
        if (value->kind == VALUE_TENSOR && value->tensor->meta.rank == 1)
                return (uint32_t)MIN(value->tensor->meta.size[0], (int64_t)UINT32_MAX);
        return value_is_sequence(*value) ? value->seq->n : 0;
}

const Tensor *arg_list_tensor(const OpCall *call, int index, uint32_t item)
{
        const Value *value = &call->args[index].seq->items[item];
        return value->kind == VALUE_TENSOR ? value->tensor : NULL;
}

Status arg_data(const OpCall *call, int index, const Tensor **out)
{
        const Tensor *tensor = arg_tensor(call, index);
        if (tensor == NULL || !tensor_is_known(tensor))
                return fail_unknown(call, index);
        *out = tensor;
        return STATUS_OK;
}

// ---- describing ----
Status out_reserve(OpCall *call, uint32_t n_outs)
{
        if (n_outs > OP_MAX_OUTS)
                return fail(STATUS_TOO_LARGE, "%s() would return %u tensors; at most %d are supported",
                            call->schema->name, n_outs, OP_MAX_OUTS);
        if (n_outs > call->outs_capacity) {
                OutSpec *outs = new_array(n_outs, sizeof(*outs));
                if (outs == NULL)
                        return fail_memory();
                if (call->outs != call->inline_outs)
                        free(call->outs);
                call->outs = outs;
                call->outs_capacity = n_outs;
        }
        for (uint32_t k = 0; k < n_outs; k++)
                call->outs[k].kind = OUT_UNSET;
        call->n_outs = n_outs;
        return STATUS_OK;
}

Status out_fresh(OpCall *call, uint32_t k, const TensorMeta *meta)
{
        OutSpec *spec = &call->outs[k];
        spec->kind = OUT_FRESH;
        spec->undefined = false;
        spec->meta = *meta;
        spec->meta.wrapped = false;
        return STATUS_OK;
}

Status out_view(OpCall *call, uint32_t k, int arg, const TensorMeta *meta, int64_t offset)
{
        OutSpec *spec = &call->outs[k];
        spec->kind = OUT_VIEW;
        spec->undefined = false;
        spec->arg = arg;
        spec->offset = offset;
        spec->meta = *meta;
        spec->meta.wrapped = false;
        return STATUS_OK;
}

Status out_same(OpCall *call, uint32_t k, int arg)
{
        call->outs[k].kind = OUT_SAME;
        call->outs[k].undefined = false;
        call->outs[k].arg = arg;
        return STATUS_OK;
}

Status out_undefined(OpCall *call, uint32_t k)
{
        call->outs[k].kind = OUT_FRESH;
        call->outs[k].undefined = true;
        return STATUS_OK;
}

Status out_value(OpCall *call, uint32_t k, Value take_value)
{
        call->outs[k].kind = OUT_VALUE;
        call->outs[k].undefined = false;
        call->outs[k].value = take_value;
        return STATUS_OK;
}
