// SPDX-License-Identifier: Apache-2.0
// complex.c: complex tensors seen as pairs of real numbers, and made of them. A complex element is
// its real and its imaginary part, one behind the other, so both are views of its bytes.
#include <inttypes.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/lazy.h"
#include "core/ops/pointwise.h"
#include "core/ops/view.h"

static Dtype part_of(Dtype dtype)
{
        return dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
}

// The view of the parts at `part`: strides and offset count parts.
static Status parts_view(OpCall *call, int64_t part, TensorMeta *meta)
{
        const Tensor *self = arg_tensor(call, SELF);
        meta->dtype = part_of(self->meta.dtype);
        int64_t offset;
        for (int d = 0; d < self->meta.rank; d++) {
                if (!mul_i64(self->meta.stride[d], 2, &meta->stride[d]))
                        meta->stride[d] = VIEW_STRIDE_CAP;
        }
        if (!mul_i64(self->offset, 2, &offset))
                return fail(STATUS_TOO_LARGE, "%s: the offset is too large", call->schema->name);
        return out_view(call, 0, SELF, meta, offset + part);
}

static Status view_as_real_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        if (!point_is_complex(meta.dtype))
                return fail(STATUS_DTYPE, "view_as_real is only supported for complex tensors");
        if (arg_tensor(call, SELF)->conj)
                return fail(STATUS_VALUE,
                            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the "
                            "conjugate tensor so you can view it as real, use self.resolve_conj()");
        TRY(view_check_rank(call, meta.rank + 1));
        meta.size[meta.rank] = 2;
        meta.stride[meta.rank++] = 1;
        return parts_view(call, 0, &meta);
}

static Status real_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        return point_is_complex(meta.dtype) ? parts_view(call, 0, &meta) : out_same(call, 0, SELF);
}

static Status imag_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        if (!point_is_complex(meta.dtype))
                return fail(STATUS_DTYPE, "imag is not implemented for tensors with non-complex dtypes.");
        return parts_view(call, 1, &meta);
}

static Status view_as_complex_infer(OpCall *call)
{
        const Tensor *self = arg_tensor(call, SELF);
        TensorMeta meta = self->meta;
        if (meta.dtype != DTYPE_F32 && meta.dtype != DTYPE_F64)
                return fail(STATUS_DTYPE,
                            "view_as_complex is only supported for half, float and double tensors, "
                            "but got a tensor of scalar type: %s%s",
                            dtype_words(meta.dtype),
                            meta.dtype == DTYPE_F16 ? " (complex32 is not supported here)" : "");
        if (meta.rank == 0)
                return fail(STATUS_SHAPE, "Input tensor must have one or more dimensions");
        int last = --meta.rank;
        if (meta.size[last] != 2)
                return fail(STATUS_SHAPE, "Tensor must have a last dimension of size 2");
        if (meta.stride[last] != 1)
                return fail(STATUS_SHAPE, "Tensor must have a last dimension with stride 1");
        for (int d = 0; d < last; d++) {
                if (meta.stride[d] % 2 != 0)
                        return fail(STATUS_SHAPE, "Tensor must have a stride divisible by 2 for all but last "
                                                  "dimension");
                meta.stride[d] /= 2;
        }
        if (self->offset % 2 != 0)
                return fail(STATUS_SHAPE, "Tensor must have a storage_offset divisible by 2");
        meta.dtype = meta.dtype == DTYPE_F32 ? DTYPE_C64 : DTYPE_C128;
        return out_view(call, 0, SELF, &meta, self->offset / 2);
}

// ---- complex numbers made of real ones ----
static Status check_parts(const OpCall *call, const PointBound *bound)
{
        (void)bound;
        Dtype a = arg_meta(call, SELF)->dtype, b = arg_meta(call, BINARY_OTHER)->dtype;
        const DtypeSet parts = DTYPE_BIT(DTYPE_F32) | DTYPE_BIT(DTYPE_F64);
        if ((parts >> a & 1) == 0 || (parts >> b & 1) == 0)
                return fail(STATUS_DTYPE,
                            "Expected both inputs to be Half, Float or Double tensors but got %s and %s%s",
                            dtype_words(a), dtype_words(b),
                            a == DTYPE_F16 ? " (complex32 is not supported here)" : "");
        if (a != b)
                return fail(STATUS_DTYPE,
                            "Expected object of scalar type %s but got scalar type %s for second argument",
                            dtype_words(a), dtype_words(b));
        return STATUS_OK;
}

static const PointOp *select_conj(const OpCall *call)
{
        static const PointOp of_real = { .kernel = &point_copy, .args = "t" },
                             of_complex = { .kernel = &point_complex_conj, .args = "t" };
        return point_is_complex(arg_meta(call, SELF)->dtype) ? &of_complex : &of_real;
}

// Of real numbers the tensor itself.
static Status conj_physical_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = arg_value(call, SELF);
        if (point_is_complex(self.tensor->meta.dtype))
                return EMIT(emitter, "aten::_conj_physical", out, self);
        *out = value_ref(self);
        return STATUS_OK;
}

// ---- conj and neg bits ----
// A new view of self's bytes; of real numbers conj is the tensor itself.
static Status conj_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        const Tensor *self = call->args[SELF].tensor;
        if (point_is_complex(self->meta.dtype))
                return lazy_view(self, !self->conj, self->negative, out);
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

static Status neg_view_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        const Tensor *self = call->args[SELF].tensor;
        return lazy_view(self, self->conj, !self->negative, out);
}

static Status resolve_conj_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        if (call->args[SELF].tensor->conj)
                return EMIT(emitter, "aten::clone", out, call->args[SELF]);
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

static Status resolve_neg_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        if (call->args[SELF].tensor->negative)
                return EMIT(emitter, "aten::clone", out, call->args[SELF]);
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

const OpDef complex_ops[] = {
        { "aten::view_as_real(Tensor(a) self) -> Tensor(a)", .infer = view_as_real_infer },
        { "aten::view_as_complex(Tensor(a) self) -> Tensor(a)", .infer = view_as_complex_infer },
        { "aten::real(Tensor(a) self) -> Tensor(a)", .infer = real_infer },
        { "aten::imag(Tensor(a) self) -> Tensor(a)", .infer = imag_infer },
        { "aten::conj(Tensor(a) self) -> Tensor(a)", .expand = conj_expand },
        { "aten::_conj(Tensor(a) self) -> Tensor(a)", .expand = conj_expand },
        { "aten::_neg_view(Tensor(a) self) -> Tensor(a)", .expand = neg_view_expand },
        { "aten::resolve_conj(Tensor(a) self) -> Tensor(a)", .expand = resolve_conj_expand },
        { "aten::resolve_neg(Tensor(a) self) -> Tensor(a)", .expand = resolve_neg_expand },
        { "aten::conj_physical(Tensor self) -> Tensor", .flags = OP_INPLACE, .expand = conj_physical_expand,
          .traits = TRAIT_MAY_SHARE },
        POINT_OP("_conj_physical(Tensor self) -> Tensor", 0, .select = select_conj),
        POINT_OP("complex(Tensor real, Tensor imag) -> Tensor", 0, .args = "tt",
                 .kernel = &point_complex_join, .check = check_parts),
        POINT_OP("polar(Tensor abs, Tensor angle) -> Tensor", 0, .args = "tt", .kernel = &point_complex_polar,
                 .check = check_parts),
};
OP_FILE(complex_ops);
