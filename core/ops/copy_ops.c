// SPDX-License-Identifier: Apache-2.0
// copy_ops.c: copies of one tensor, with another dtype or memory format, and fills. `to` gives the
// tensor itself back where nothing changes, as PyTorch does. Devices are accepted and ignored.
#include <math.h>
#include <string.h>
#include "core/kernels/copy.h"
#include "core/ops/arguments.h"
#include "core/ops/inplace.h"
#include "core/ops/lazy.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"

// ---- copies ----
static Status copy_run(const OpRun *run)
{
        Region from = region_of(run->in_meta[0], run->in[0]), to = region_of(run->out_meta[0], run->out[0]);
        return copy_region(run->ctx, &from, &to);
}

static Status out_copy(OpCall *call, Dtype dtype, MemoryFormat format)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta = *self;
        meta.dtype = dtype;
        TRY(view_set_strides(&meta, format, self));
        return out_fresh(call, 0, &meta);
}

static Status clone_infer(OpCall *call)
{
        return out_copy(call, arg_meta(call, SELF)->dtype,
                        arg_memory_format(call, CLONE_MEMORY_FORMAT, MEMORY_FORMAT_PRESERVE));
}

static Status plain_copy_infer(OpCall *call)
{
        return out_copy(call, arg_meta(call, SELF)->dtype, MEMORY_FORMAT_PRESERVE);
}

static Status dense_copy_infer(OpCall *call)
{
        return out_copy(call, arg_meta(call, SELF)->dtype, MEMORY_FORMAT_CONTIGUOUS);
}

static Status to_copy_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        MemoryFormat format = arg_memory_format(call, TO_COPY_MEMORY_FORMAT, MEMORY_FORMAT_PRESERVE);
        // Unlike clone, a tensor with gaps or overlap gets the plain form of the format it
        // resembles.
        if (format == MEMORY_FORMAT_PRESERVE && !meta_is_non_overlapping_and_dense(self))
                format = view_suggested_format(self);
        return out_copy(call, arg_dtype(call, TO_COPY_DTYPE, self->dtype), format);
}

// ---- to ----
static Status convert(Emitter *emitter, Value self, Dtype dtype, bool copy, Value format, Value *out)
{
        const TensorMeta *meta = &self.tensor->meta;
        bool same_format = format.kind != VALUE_MEMORY_FORMAT ||
                           format.memory_format == MEMORY_FORMAT_PRESERVE ||
                           view_suggested_format(meta) == format.memory_format;
        if (dtype == meta->dtype && !copy && same_format) {
                *out = value_ref(self);
                return STATUS_OK;
        }
        Value none = value_none();
        return EMIT(emitter, "aten::_to_copy", out, self, value_dtype(dtype), none, none, none,
                    value_bool(false), format);
}

// `dtype`, `copy` and `format` are positions; -1: the overload has none.
static Status convert_args(Emitter *emitter, const OpCall *call, int dtype, int copy, int format, Value *out)
{
        Dtype to =
                dtype < 0 ? arg_meta(call, SELF)->dtype : arg_dtype(call, dtype, arg_meta(call, SELF)->dtype);
        return convert(emitter, arg_value(call, SELF), to, arg_bool(call, copy, false),
                       arg_value(call, format), out);
}

static Status to_dtype_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return convert_args(emitter, call, 1, 3, 4, out);
}

static Status to_device_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return convert_args(emitter, call, 2, 4, 5, out);
}

static Status to_layout_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return convert_args(emitter, call, 1, 6, 7, out);
}

static Status to_other_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return convert(emitter, arg_value(call, SELF), arg_meta(call, TO_OTHER_OTHER)->dtype,
                       arg_bool(call, TO_OTHER_COPY, false), arg_value(call, TO_OTHER_MEMORY_FORMAT), out);
}

static Status type_as_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return convert(emitter, arg_value(call, SELF), arg_meta(call, TYPE_AS_OTHER)->dtype, false,
                       value_none(), out);
}

// ---- writes ----
static Status copy_into_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        TRY(inplace_check_copy(call->args[SELF].tensor, call->args[COPY_SRC].tensor));
        TRY(lazy_write(emitter, call->args[SELF].tensor, call->args[COPY_SRC].tensor));
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

// copy, *_scatter: a clone whose view is written.
static Status copy_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value result;
        TRY(EMIT(emitter, "aten::clone", &result, arg_value(call, SELF)));
        Status status = emitter->vtbl->write(emitter, result.tensor, call->args[COPY_SRC].tensor);
        if (status != STATUS_OK)
                value_clear(&result);
        else
                *out = result;
        return status;
}

// ---- fills ----
Status value_element(Value number, Dtype dtype, void *out_element)
{
        TRY(number_check_fits(number, dtype));
        if (dtype_info[dtype].kind == DTYPE_KIND_COMPLEX) {
                double re = number.kind == VALUE_COMPLEX ? number.c.re
                            : number.kind == VALUE_FLOAT ? number.f
                            : number.kind == VALUE_INT   ? (double)number.i
                                                         : number.b;
                double im = number.kind == VALUE_COMPLEX ? number.c.im : 0;
                float halves[2] = { (float)re, (float)im };
                double parts[2] = { re, im };
                memcpy(out_element, dtype == DTYPE_C64 ? (const void *)halves : (const void *)parts,
                       dtype_info[dtype].bytes);
        } else if (number.kind == VALUE_COMPLEX) {
                return fail(STATUS_VALUE, "value cannot be converted to type %s without overflow",
                            dtype_words(dtype));
        } else if (number.kind == VALUE_FLOAT) {
                element_from_f64(dtype, out_element, number.f);
        } else {
                element_from_i64(dtype, out_element, number.kind == VALUE_INT ? number.i : number.b);
        }
        return STATUS_OK;
}

Value number_for_fill(Value number, const TensorMeta *meta)
{
        double value = number.kind == VALUE_FLOAT ? number.f
                       : number.kind == VALUE_INT ? (double)number.i
                                                  : 0;
        bool rounds = (DTYPES_HALFS >> meta->dtype & 1) != 0 && meta_numel(meta) == 1;
        return rounds && fabs(value) > dtype_largest(meta->dtype) ? value_float(copysign(INFINITY, value))
                                                                  : number;
}

static Status fill_scalar_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TRY(number_check_fits(number_for_fill(arg_number(call, FILL_SCALAR_VALUE), self), self->dtype));
        return plain_copy_infer(call);
}

static Status fill_scalar_prepare(const OpCall *call, void *out_state)
{
        const TensorMeta *self = arg_meta(call, SELF);
        return value_element(number_for_fill(arg_number(call, FILL_SCALAR_VALUE), self), self->dtype,
                             out_state);
}

static Status fill_scalar_run(const OpRun *run)
{
        Region to = region_of(run->out_meta[0], run->out[0]);
        return fill_region(run->ctx, &to, run->state);
}

static Status fill_tensor_infer(OpCall *call)
{
        int rank = arg_meta(call, FILL_TENSOR_VALUE)->rank;
        if (rank != 0)
                return fail(STATUS_SHAPE,
                            "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
                            rank);
        return plain_copy_infer(call);
}

static Status fill_tensor_run(const OpRun *run)
{
        Region to = region_of(run->out_meta[0], run->out[0]), from = region_of(run->out_meta[0], run->in[1]);
        from.meta.dtype = run->in_meta[1]->dtype;
        memset(from.meta.stride, 0, sizeof(from.meta.stride));
        return copy_region(run->ctx, &from, &to);
}

static Status zero_run(const OpRun *run)
{
        static const uint64_t zero[2];
        Region to = region_of(run->out_meta[0], run->out[0]);
        return fill_region(run->ctx, &to, zero);
}

#define COPY_KERNEL(schema_)                                                                                 \
        {                                                                                                    \
                .schema = "aten::" schema_, .infer = dense_copy_infer, .run = copy_run,                      \
                .traits = TRAIT_FRESH | TRAIT_COPIES                                                         \
        }

const OpDef copy_ops[] = {
        { .schema = "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
          .infer = clone_infer,
          .run = copy_run,
          .traits = TRAIT_FRESH | TRAIT_COPIES,
          .role = ROLE_CLONE },
        COPY_KERNEL("lift_fresh_copy(Tensor self) -> Tensor"),
        COPY_KERNEL("detach_copy(Tensor self) -> Tensor"),
        COPY_KERNEL("alias_copy(Tensor self) -> Tensor"),
        { .schema = "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None, "
                    "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
          .flags = OP_NUMBERS,
          .infer = to_copy_infer,
          .run = copy_run,
          .traits = TRAIT_FRESH | TRAIT_COPIES | TRAIT_LAYOUT },
        { .schema = "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool "
                    "copy=False, MemoryFormat? "
                    "memory_format=None) -> Tensor(a)",
          .flags = OP_NUMBERS,
          .expand = to_dtype_expand },
        { .schema = "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool "
                    "non_blocking=False, bool copy=False, "
                    "MemoryFormat? memory_format=None) -> Tensor(a)",
          .expand = to_device_expand },
        { .schema =
                  "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, "
                  "Device? device=None, bool? "
                  "pin_memory=None, "
                  "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
          .expand = to_layout_expand },
        { .schema = "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
                    "MemoryFormat? "
                    "memory_format=None) -> Tensor(a)",
          .expand = to_other_expand },
        { .schema = "aten::type_as(Tensor self, Tensor other) -> Tensor",
          .expand = type_as_expand,
          .traits = TRAIT_MAY_SHARE },
        { .schema = "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
          .flags = OP_NUMBERS,
          .expand = copy_into_expand,
          .role = ROLE_WRITE },
        { .schema = "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
          .flags = OP_NUMBERS,
          .expand = copy_expand,
          .traits = TRAIT_MAY_SHARE },
        { .schema = "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
          .flags = OP_INPLACE | OP_ELEMENTWISE,
          .infer = fill_scalar_infer,
          .prepare = fill_scalar_prepare,
          .run = fill_scalar_run,
          .form = inplace_fill_form,
          .traits = TRAIT_FRESH },
        { .schema = "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
          .flags = OP_INPLACE,
          .infer = fill_tensor_infer,
          .run = fill_tensor_run,
          .traits = TRAIT_FRESH },
        { .schema = "aten::zero(Tensor self) -> Tensor",
          .flags = OP_INPLACE | OP_ELEMENTWISE,
          .infer = plain_copy_infer,
          .run = zero_run,
          .form = inplace_fill_form,
          .traits = TRAIT_FRESH },
};
OP_FILE(copy_ops);
