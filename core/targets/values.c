// SPDX-License-Identifier: Apache-2.0
// values.c: conversions between tensors and Python values: single elements as numbers, nested lists
// as tensors, shapes as torch.Size.
#include "core/ops/pointwise.h"
#include "core/ops/view.h"
#include "core/targets/py.h"

#include <stdio.h>
#include <string.h>

Status value_as_number(Emitter *emitter, Value value, Value *out)
{
        if (value.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "a number is not known before the run");
        if (value.kind != VALUE_TENSOR) {
                *out = value_ref(value);
                return STATUS_OK;
        }
        if (!tensor_is_known(value.tensor))
                return fail(STATUS_DYNAMIC, "a tensor's element is not known before the run");
        return ATEN(emitter, "aten::item", out, value);
}

Status value_is_true(Emitter *emitter, Value value, bool *out)
{
        if (value.kind == VALUE_TENSOR && meta_numel(&value.tensor->meta) != 1)
                return fail(STATUS_VALUE, "Boolean value of Tensor with %s is ambiguous",
                            meta_numel(&value.tensor->meta) == 0 ? "no values" : "more than one value");
        _cleanup_(value_clear) Value number = value_none();
        TRY(value_as_number(emitter, value, &number));
        *out = python_truth(number);
        return STATUS_OK;
}

Status value_as_int(Emitter *emitter, Value value, const char *what, int64_t *out)
{
        _cleanup_(value_clear) Value number = value_none();
        if (value.kind == VALUE_TENSOR && !dtype_is_int(value.tensor->meta.dtype) &&
            value.tensor->meta.dtype != DTYPE_BOOL)
                return fail(STATUS_VALUE,
                            "only integer tensors of a single element can be converted to an index (%s)",
                            what);
        TRY(value_as_number(emitter, value, &number));
        if (!python_is_integral(number))
                return fail(STATUS_VALUE, "%s must be int, not %s", what, value_kind_name(number.kind));
        *out = python_int(number);
        return STATUS_OK;
}

Status shape_value(const Tensor *tensor, Value *out)
{
        return value_ints_new(VALUE_SIZE, tensor->meta.size, tensor->meta.rank, out);
}

Status text_value(const char *text, Value *out)
{
        return value_str_new(text, strlen(text), out);
}

Status refuse_out(const OpCall *call, int index)
{
        if (arg_is_none(call, index))
                return STATUS_OK;
        return fail(STATUS_UNSUPPORTED,
                    "%s: out= is not supported; take the result, or copy_ it to the tensor",
                    call->schema->name);
}

Status check_device(Value device)
{
        if (device.kind == VALUE_NONE || device.kind == VALUE_ABSENT)
                return STATUS_OK;
        if (device.kind != VALUE_DEVICE && device.kind != VALUE_STR)
                return fail(STATUS_VALUE, "a device must be torch.device or str, not %s",
                            value_kind_name(device.kind));
        if (strcmp(device.str->text, "cpu") == 0 || strcmp(device.str->text, "cpu:0") == 0)
                return STATUS_OK;
        return fail(STATUS_UNSUPPORTED,
                    "device \"%.40s\" is not here: fxserve runs on the CPU; export the graph for \"cpu\"",
                    device.str->text);
}

// ---- nested lists ----
typedef struct ListShape {
        int rank;
        int64_t size[MAX_RANK];
        Dtype dtype; // bool < int64 < float32 < complex64
} ListShape;

static Dtype dtype_of_number(Value value)
{
        return value.kind == VALUE_BOOL    ? DTYPE_BOOL
               : value.kind == VALUE_INT   ? DTYPE_I64
               : value.kind == VALUE_FLOAT ? DTYPE_F32
                                           : DTYPE_C64;
}

static Status measure(Value value, int depth, ListShape *shape)
{
        if (!value_is_sequence(value)) {
                if (!value_is_number(value))
                        return fail(STATUS_VALUE,
                                    "a tensor is made from nested lists of numbers, not from %s",
                                    value_kind_name(value.kind));
                if (shape->rank >= 0 && shape->rank != depth)
                        return fail(STATUS_VALUE, "expected sequence of length %ld at dim %d (got %s)",
                                    (long)shape->size[depth], depth, value_kind_name(value.kind));
                shape->rank = depth;
                Dtype dtype = dtype_of_number(value);
                shape->dtype = shape->dtype == DTYPE_NONE || dtype > shape->dtype ? dtype : shape->dtype;
                return STATUS_OK;
        }
        if (depth == MAX_RANK)
                return fail(STATUS_VALUE, "lists nest deeper than %d, the largest number of dimensions",
                            MAX_RANK);
        if (shape->size[depth] >= 0 && shape->size[depth] != (int64_t)value.seq->n)
                return fail(STATUS_VALUE, "expected sequence of length %ld at dim %d (got %u)",
                            (long)shape->size[depth], depth, value.seq->n);
        shape->size[depth] = value.seq->n;
        if (value.seq->n == 0 && (shape->rank < 0 || shape->rank == depth + 1)) {
                shape->rank = depth + 1;
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < value.seq->n; i++)
                TRY(measure(value.seq->items[i], depth + 1, shape)); // depth: MAX_RANK
        return STATUS_OK;
}

static Status fill(Value value, Dtype dtype, uint8_t **cursor)
{
        if (value_is_sequence(value)) {
                for (uint32_t i = 0; i < value.seq->n; i++)
                        TRY(fill(value.seq->items[i], dtype, cursor)); // depth: MAX_RANK
                return STATUS_OK;
        }
        if (dtype_is_int(dtype) && number_check_fits(value, dtype) != STATUS_OK)
                return fail(STATUS_VALUE, "value cannot be converted to type %s without overflow",
                            dtype_info[dtype].name);
        if (point_is_complex(dtype))
                TRY(value_element(value, dtype, *cursor));
        else if (value.kind == VALUE_FLOAT)
                element_from_f64(dtype, *cursor, value.f);
        else
                element_from_i64(dtype, *cursor, python_int(value));
        *cursor += dtype_info[dtype].bytes;
        return STATUS_OK;
}

Status tensor_from_value(Emitter *emitter, Value value, Dtype dtype, Value *out)
{
        ListShape shape = { .rank = -1, .size = { -1, -1, -1, -1, -1, -1, -1, -1 }, .dtype = DTYPE_NONE };
        TRY(measure(value, 0, &shape));
        if (shape.dtype == DTYPE_C64 && dtype != DTYPE_NONE && !point_is_complex(dtype))
                return fail(STATUS_VALUE, "must be real number, not complex");
        TensorMeta meta = { 0 };
        if (dtype == DTYPE_NONE)
                dtype = shape.dtype == DTYPE_NONE ? DTYPE_F32 : shape.dtype;
        meta_init(&meta, dtype, shape.rank, shape.size);
        Tensor *tensor;
        TRY(tensor_new(&meta, emitter->ctx == NULL ? NULL : emitter->ctx->budget, &tensor));
        uint8_t *cursor = tensor_data(tensor);
        Status status = fill(value, dtype, &cursor);
        if (status != STATUS_OK)
                tensor_unref(tensor);
        else
                *out = value_tensor_take(tensor);
        return status;
}
