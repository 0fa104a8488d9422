// SPDX-License-Identifier: Apache-2.0
// complex.c: complex tensors seen as pairs of real numbers, and made of them. A complex element is
// its real and its imaginary part, one behind the other, so both are views of its bytes.
#include <inttypes.h>
#include <string.h>
#include "core/ops/arguments.h"
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

// ---- conj ----
// A conjugate is a view in PyTorch: what is written to it, or to its base, shows in the other. Here
// it is a copy, which nobody can tell apart as long as the graph writes nothing.
static bool has_true(Value value)
{
        if (value.kind == VALUE_BOOL)
                return value.b;
        for (uint32_t i = 0; value_is_sequence(value) && i < value.seq->n; i++) {
                if (has_true(value.seq->items[i]))
                        return true;
        }
        for (uint32_t i = 0; value.kind == VALUE_DICT && i < value.dict->n; i++) {
                if (has_true(value.dict->items[i].value))
                        return true;
        }
        return false;
}

static bool schema_writes(const Schema *schema)
{
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (schema->args[i].is_written)
                        return true;
        }
        return false;
}

// Anything but an operator that is known to write nothing counts as a writer if it could be one:
// names that end in "_", in-place Python operators, functions and modules with a flag `inplace`,
// calls of other graphs.
static bool may_write(const Node *node)
{
        static const char *const pure[] = { "_operator.getitem", "_operator.add",     "_operator.sub",
                                            "_operator.mul",     "_operator.truediv", "_operator.neg",
                                            "_operator.matmul",  "_operator.pow",     "_operator.abs" };
        if (node->op != OP_CALL_FUNCTION && node->op != OP_CALL_METHOD)
                return node->op == OP_CALL_MODULE;
        const Overload *overload = op_find(node->target);
        if (overload != NULL)
                return schema_writes(&overload->schema);
        for (size_t i = 0; i < ARRAY_LENGTH(pure); i++) {
                if (strcmp(node->target, pure[i]) == 0)
                        return false;
        }
        size_t n = strlen(node->target);
        return strncmp(node->target, "_operator.", 10) == 0 || strstr(node->target, "higher_order") != NULL ||
               strstr(node->target, "cond") != NULL || strstr(node->target, "loop") != NULL ||
               (n > 0 && node->target[n - 1] == '_') ||
               (strncmp(node->target, "torch.nn.functional.", 20) == 0 &&
                (has_true(node->args) || has_true(node->kwargs)));
}

static Status check_no_writes(const Emitter *emitter, const char *name)
{
        const Graph *graph = emitter->graph;
        for (uint32_t i = 0; graph != NULL && i < graph->n_nodes && emitter->depth == 0; i++) {
                if (may_write(graph->nodes[i]))
                        return fail(STATUS_UNSUPPORTED,
                                    "%s() is a view in PyTorch, and a copy here, which node %s of this graph "
                                    "could tell apart if it writes in place; use torch.conj_physical",
                                    name, graph->nodes[i]->name);
        }
        return emitter->depth == 0
                       ? STATUS_OK
                       : fail(STATUS_UNSUPPORTED,
                              "%s() in a graph that another one calls; use torch.conj_physical", name);
}

static Status conj_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value self = arg_value(call, SELF);
        if (point_is_complex(self.tensor->meta.dtype)) {
                TRY(check_no_writes(emitter, call->schema->name));
                return EMIT(emitter, "aten::_conj_physical", out, self);
        }
        *out = value_ref(self);
        return STATUS_OK;
}

const OpDef complex_ops[] = {
        { "aten::view_as_real(Tensor(a) self) -> Tensor(a)", .infer = view_as_real_infer },
        { "aten::view_as_complex(Tensor(a) self) -> Tensor(a)", .infer = view_as_complex_infer },
        { "aten::real(Tensor(a) self) -> Tensor(a)", .infer = real_infer },
        { "aten::imag(Tensor(a) self) -> Tensor(a)", .infer = imag_infer },
        { "aten::conj(Tensor(a) self) -> Tensor(a)", .expand = conj_expand },
        { "aten::_conj(Tensor(a) self) -> Tensor(a)", .expand = conj_expand },
        { "aten::conj_physical(Tensor self) -> Tensor", .flags = OP_INPLACE, .expand = conj_physical_expand,
          .traits = TRAIT_MAY_SHARE },
        POINT_OP("_conj_physical(Tensor self) -> Tensor", 0, .select = select_conj),
        POINT_OP("complex(Tensor real, Tensor imag) -> Tensor", 0, .args = "tt",
                 .kernel = &point_complex_join, .check = check_parts),
        POINT_OP("polar(Tensor abs, Tensor angle) -> Tensor", 0, .args = "tt", .kernel = &point_complex_polar,
                 .check = check_parts),
};
OP_FILE(complex_ops);
