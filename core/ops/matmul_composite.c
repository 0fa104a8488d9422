// SPDX-License-Identifier: Apache-2.0
// matmul_composite.c: products made of others: outer, inner, tensordot, addr by expansion; addbmm
// as a chain of products, rounded after each as PyTorch's is.
#include "core/kernels/product/matmul.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/matmul.h"
#include <string.h>

// ---- outer, addr ----
static Status outer_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *self = arg_meta(call, SELF), *other = arg_meta(call, OUTER_VEC2);
        if (self->rank != 1 || other->rank != 1)
                return fail(STATUS_SHAPE, "outer: Expected 1-D argument %s, but got %d-D",
                            self->rank != 1 ? "self" : "vec2", self->rank != 1 ? self->rank : other->rank);
        _cleanup_(value_clear) Value column = value_none();
        TRY(EMIT(emitter, "aten::unsqueeze", &column, arg_value(call, SELF), value_int(1)));
        return EMIT(emitter, "aten::mul.Tensor", out, column, arg_value(call, OUTER_VEC2));
}

// beta or alpha as a factor; for a bool result only whether it is 0 counts.
static Status addr_factor(const OpCall *call, int index, Dtype result, Value *out)
{
        const char *name = call->schema->args[index].name;
        Value number = arg_number(call, index);
        double value;
        TRY(arg_double(call, index, &value));
        if (number.kind == VALUE_BOOL && result != DTYPE_BOOL)
                return fail(STATUS_VALUE, "Boolean %s only supported for Boolean results.", name);
        if (number.kind == VALUE_FLOAT && !dtype_is_float(result) &&
            dtype_info[result].kind != DTYPE_KIND_COMPLEX)
                return fail(STATUS_VALUE,
                            "For integral input tensors, argument %s must not be a floating point number.",
                            name);
        *out = result == DTYPE_BOOL ? value_bool(value != 0) : number;
        return STATUS_OK;
}

static Status addr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value factors[2];
        Dtype result = arg_meta(call, SELF)->dtype;
        int64_t size[2];
        for (int i = 0; i < 2; i++) {
                const TensorMeta *vector = arg_meta(call, ADDR_VEC1 + i);
                if (vector->rank != 1)
                        return fail(STATUS_SHAPE, "addr: Expected 1-D argument %s, but got %d-D",
                                    i == 0 ? "vec1" : "vec2", vector->rank);
                size[i] = vector->size[0];
                TRY(dtype_promote(result, vector->dtype, &result));
        }
        TRY(product_check_factors(call, result, true));
        for (int i = 0; i < 2; i++)
                TRY(addr_factor(call, ADDR_BETA + i, result, &factors[i]));
        _cleanup_(value_clear) Value product = value_none(), scaled = value_none(), kept = value_none(),
                                     sizes = value_none(), self = value_none();
        TRY(value_ints_new(VALUE_LIST, size, 2, &sizes));
        TRY(EMIT(emitter, "aten::expand", &self, arg_value(call, SELF), sizes));
        _cleanup_(value_clear) Value column = value_none(), row = value_none();
        TRY(EMIT(emitter, "aten::to.dtype", &column, arg_value(call, ADDR_VEC1), value_dtype(result)));
        TRY(EMIT(emitter, "aten::to.dtype", &row, arg_value(call, ADDR_VEC2), value_dtype(result)));
        TRY(EMIT(emitter, "aten::outer", &product, column, row));
        TRY(EMIT(emitter, "aten::mul.Tensor", &scaled, product, factors[1]));
        double beta;
        TRY(arg_double(call, ADDR_BETA, &beta));
        if (beta == 0) // whatever self holds, NaN included
                return EMIT(emitter, "aten::to.dtype", out, scaled, value_dtype(result));
        _cleanup_(value_clear) Value own = value_none();
        TRY(EMIT(emitter, "aten::to.dtype", &own, self, value_dtype(result)));
        TRY(EMIT(emitter, "aten::mul.Tensor", &kept, own, factors[0]));
        return EMIT(emitter, "aten::add.Tensor", out, kept, scaled);
}

// ---- inner, tensordot ----
static Status inner_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const TensorMeta *self = arg_meta(call, SELF), *other = arg_meta(call, INNER_OTHER);
        char a[128], b[128];
        if (self->rank == 0 || other->rank == 0)
                return EMIT(emitter, "aten::mul.Tensor", out, arg_value(call, SELF),
                            arg_value(call, INNER_OTHER));
        if (self->size[self->rank - 1] != other->size[other->rank - 1])
                return fail(STATUS_SHAPE,
                            "inner() the last dimension must match on both input tensors but got shapes %s "
                            "and %s",
                            shape_text(self->rank, self->size, a, sizeof(a)),
                            shape_text(other->rank, other->size, b, sizeof(b)));
        if (self->rank == 1 && other->rank == 1) // as PyTorch: autocast knows products, not this one
                return EMIT(emitter, "aten::dot", out, arg_value(call, SELF), arg_value(call, INNER_OTHER));
        _cleanup_(value_clear) Value last = value_none();
        TRY(value_ints_new(VALUE_LIST, (int64_t[]){ -1 }, 1, &last));
        return EMIT(emitter, "aten::tensordot", out, arg_value(call, SELF), arg_value(call, INNER_OTHER),
                    last, last);
}

// One side of a tensordot as a matrix: kept dimensions in order, contracted ones in the order
// given.
typedef struct DotSide {
        int64_t order[MAX_RANK], kept[MAX_RANK];
        int rank, n_kept;
        int64_t n_rows, depth;
} DotSide;

static Status dot_side(const TensorMeta *meta, const int64_t *dims, int n, bool contracted_first,
                       DotSide *out)
{
        uint32_t mask = 0;
        int wrapped[MAX_RANK];
        for (int i = 0; i < n; i++) { // they are distinct, so n <= rank from here on
                TRY(dim_wrap(dims[i], meta->rank, &wrapped[i]));
                if ((mask >> wrapped[i] & 1) != 0)
                        return fail(STATUS_VALUE, "dim %d appears multiple times in the list of dims",
                                    wrapped[i]);
                mask |= 1u << wrapped[i];
        }
        *out = (DotSide){ .rank = meta->rank, .n_rows = 1, .depth = 1 };
        int at = contracted_first ? n : 0;
        for (int i = 0; i < n; i++) {
                out->order[contracted_first ? i : meta->rank - n + i] = wrapped[i];
                out->depth *= meta->size[wrapped[i]];
        }
        for (int d = 0; d < meta->rank; d++) {
                if ((mask >> d & 1) != 0)
                        continue;
                out->order[at++] = d;
                out->kept[out->n_kept++] = meta->size[d];
                out->n_rows *= meta->size[d];
        }
        return STATUS_OK;
}

static Status permuted(Emitter *emitter, Value tensor, const DotSide *side, Value *out)
{
        _cleanup_(value_clear) Value order = value_none();
        TRY(value_ints_new(VALUE_LIST, side->order, (uint32_t)side->rank, &order));
        return EMIT(emitter, "aten::permute", out, tensor, order);
}

static Status as_matrix(Emitter *emitter, Value tensor, const DotSide *side, bool contracted_first,
                        Value *out)
{
        _cleanup_(value_clear) Value turned = value_none(), size = value_none();
        TRY(permuted(emitter, tensor, side, &turned));
        int64_t shape[] = { contracted_first ? side->depth : side->n_rows,
                            contracted_first ? side->n_rows : side->depth };
        TRY(value_ints_new(VALUE_LIST, shape, 2, &size));
        return EMIT(emitter, "aten::reshape", out, turned, size);
}

static Status product_of_matrices(Emitter *emitter, const Value operands[2], const DotSide sides[2],
                                  Value *out)
{
        _cleanup_(value_clear) Value rows = value_none(), columns = value_none();
        TRY(as_matrix(emitter, operands[0], &sides[0], false, &rows));
        TRY(as_matrix(emitter, operands[1], &sides[1], true, &columns));
        return EMIT(emitter, "aten::mm", out, rows, columns);
}

// Only one sum. Autocast knows mm, and neither dot nor mul: PyTorch's choice decides the dtype.
static Status single_sum(Emitter *emitter, const Value operands[2], const DotSide sides[2], Value *out)
{
        _cleanup_(value_clear) Value a = value_none(), b = value_none(), flat_a = value_none(),
                                     flat_b = value_none(), list = value_none(), products = value_none();
        TRY(permuted(emitter, operands[0], &sides[0], &a));
        TRY(permuted(emitter, operands[1], &sides[1], &b));
        if (meta_is_contiguous(&a.tensor->meta) && meta_is_contiguous(&b.tensor->meta)) {
                TRY(value_ints_new(VALUE_LIST, (int64_t[]){ -1 }, 1, &list));
                TRY(EMIT(emitter, "aten::reshape", &flat_a, a, list));
                TRY(EMIT(emitter, "aten::reshape", &flat_b, b, list));
                return EMIT(emitter, "aten::dot", out, flat_a, flat_b);
        }
        TRY(EMIT(emitter, "aten::squeeze", &flat_a, a));
        TRY(EMIT(emitter, "aten::squeeze", &flat_b, b));
        TRY(EMIT(emitter, "aten::mul.Tensor", &products, flat_a, flat_b));
        return EMIT(emitter, "aten::sum", out, products, value_dtype(products.tensor->meta.dtype));
}

// A contracted dimension of size 1 on one side only is broadcast: the other side is summed along
// it, and keeps it with size 1.
static Status sum_against_ones(Emitter *emitter, int64_t dims[2][MAX_RANK], int n, Value operands[2])
{
        for (int i = 0; i < n; i++) {
                int64_t size[2];
                for (int k = 0; k < 2; k++) {
                        const TensorMeta *meta = &operands[k].tensor->meta;
                        int dim;
                        if (meta->rank == 0)
                                return fail(STATUS_INDEX,
                                            "Dimension specified as %ld but tensor has no dimensions",
                                            (long)dims[k][i]);
                        TRY(dim_wrap(dims[k][i], meta->rank, &dim));
                        size[k] = meta->size[dim];
                }
                if (size[0] == size[1] || (size[0] != 1 && size[1] != 1))
                        continue;
                int summed = size[1] == 1 ? 0 : 1;
                _cleanup_(value_clear) Value list = value_none();
                Value sum = value_none();
                TRY(value_ints_new(VALUE_LIST, &dims[summed][i], 1, &list));
                TRY(EMIT(emitter, "aten::sum.dim_IntList", &sum, operands[summed], list, value_bool(true),
                         value_dtype(operands[summed].tensor->meta.dtype)));
                value_clear(&operands[summed]);
                operands[summed] = sum;
        }
        return STATUS_OK;
}

static Status dot_operands(Emitter *emitter, const Value operands[2], int64_t dims[2][MAX_RANK], int n,
                           Value *out)
{
        const TensorMeta *a = &operands[0].tensor->meta, *b = &operands[1].tensor->meta;
        DotSide sides[2];
        TRY(dot_side(a, dims[0], n, false, &sides[0]));
        TRY(dot_side(b, dims[1], n, true, &sides[1]));
        const DotSide *left = &sides[0], *right = &sides[1];
        for (int i = 0; i < n; i++) {
                int64_t da = left->order[left->rank - n + i], db = right->order[i];
                if (a->size[da] != b->size[db])
                        return fail(STATUS_SHAPE,
                                    "contracted dimensions need to match, but first has size %ld in dim %ld "
                                    "and second has size %ld in dim %ld",
                                    (long)a->size[da], (long)dims[0][i], (long)b->size[db], (long)dims[1][i]);
        }
        if (left->n_kept + right->n_kept > MAX_RANK)
                return fail(STATUS_SHAPE, "tensordot: a result of %d dimensions is not supported",
                            left->n_kept + right->n_kept);
        _cleanup_(value_clear) Value product = value_none(), size = value_none();
        if (left->n_rows == 1 && right->n_rows == 1)
                TRY(single_sum(emitter, operands, sides, &product));
        else
                TRY(product_of_matrices(emitter, operands, sides, &product));
        int64_t shape[MAX_RANK];
        memcpy(shape, left->kept, (size_t)left->n_kept * sizeof(int64_t));
        memcpy(shape + left->n_kept, right->kept, (size_t)right->n_kept * sizeof(int64_t));
        TRY(value_ints_new(VALUE_LIST, shape, (uint32_t)(left->n_kept + right->n_kept), &size));
        return EMIT(emitter, "aten::reshape", out, product, size);
}

static Status tensordot_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        int64_t dims[2][MAX_RANK];
        int n[2];
        for (int i = 0; i < 2; i++)
                TRY(arg_ints(call, TENSORDOT_DIMS_SELF + i, MAX_RANK, dims[i], &n[i]));
        if (n[0] != n[1])
                return fail(STATUS_VALUE, "both dimension lists should have same length");
        if (arg_meta(call, SELF)->dtype != arg_meta(call, TENSORDOT_OTHER)->dtype)
                return fail(STATUS_DTYPE, "both inputs should have same dtype");
        Value operands[2] = { value_ref(call->args[SELF]), value_ref(call->args[TENSORDOT_OTHER]) };
        Status status = sum_against_ones(emitter, dims, n[0], operands);
        if (status == STATUS_OK)
                status = dot_operands(emitter, operands, dims, n[0], out);
        value_clear(&operands[0]);
        value_clear(&operands[1]);
        return status;
}

// ---- addbmm ----
static Status addbmm_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *a = arg_meta(call, ADDBMM_BATCH1),
                         *b = arg_meta(call, ADDBMM_BATCH2);
        if (a->rank != 3 || b->rank != 3)
                return fail(STATUS_SHAPE, "%s must be a 3D tensor", a->rank != 3 ? "batch1" : "batch2");
        if (a->size[0] != b->size[0])
                return fail(STATUS_SHAPE,
                            "batch1 and batch2 must have same number of batches, got %ld and %ld",
                            (long)a->size[0], (long)b->size[0]);
        if (a->size[2] != b->size[1])
                return fail(STATUS_SHAPE, "Incompatible matrix sizes for bmm (%ldx%ld and %ldx%ld)",
                            (long)a->size[1], (long)a->size[2], (long)b->size[1], (long)b->size[2]);
        if (self->dtype != a->dtype || self->dtype != b->dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(self->dtype),
                            dtype_words(a->dtype != self->dtype ? a->dtype : b->dtype));
        TRY(product_check_factors(call, self->dtype, false));
        TensorMeta meta, wide;
        meta_init(&meta, self->dtype, 2, (int64_t[]){ a->size[1], b->size[2] });
        wide = meta;
        int rank;
        int64_t size[MAX_RANK];
        TRY(shape_broadcast(&wide, self, &rank, size));
        if (rank != 2 || size[0] != meta.size[0] || size[1] != meta.size[1])
                return fail(STATUS_SHAPE, "addbmm: self does not expand to [%ld, %ld]", (long)meta.size[0],
                            (long)meta.size[1]);
        return out_fresh(call, 0, &meta);
}

// Item `i` of a batch as a matrix.
static Operand batch_item(const OpRun *run, uint32_t in, int64_t i)
{
        const TensorMeta *meta = run->in_meta[in];
        Operand item = { (const char *)run->in[in] + i * meta->stride[0] * dtype_info[meta->dtype].bytes,
                         *meta };
        item.meta.rank = 2;
        for (int d = 0; d < 2; d++) {
                item.meta.size[d] = meta->size[d + 1];
                item.meta.stride[d] = meta->stride[d + 1];
        }
        return item;
}

static Status addbmm_run(const OpRun *run)
{
        double beta, alpha;
        TRY(arg_double(run->call, ADDBMM_BETA, &beta));
        TRY(arg_double(run->call, ADDBMM_ALPHA, &alpha));
        const TensorMeta *out = run->out_meta[0];
        Operand add = { run->in[0], *out };
        const TensorMeta *self = run->in_meta[0];
        for (int d = 0; d < 2; d++) {
                int own = self->rank - 2 + d;
                add.meta.stride[d] = own < 0 || self->size[own] == 1 ? 0 : self->stride[own];
        }
        int64_t n = run->in_meta[1]->size[0];
        _cleanup_(scratch_deinit) Scratch other = { 0 };
        TRY(scratch_init(&other, run->ctx, meta_numel(out), dtype_info[out->dtype].bytes));
        // Two buffers take turns; the last product must land in the output.
        void *buffers[] = { run->out[0], other.data };
        Operand empty = { run->out[0], *out };
        empty.meta.size[1] = 0;
        if (n == 0) {
                Operand none = empty;
                none.meta.size[0] = 0;
                none.meta.size[1] = out->size[1];
                return matmul_tensors(run->ctx, &(MatmulTensors){ &empty, &none, &add, 1, beta }, run->out[0],
                                      out);
        }
        for (int64_t i = 0; i < n; i++) {
                Operand a = batch_item(run, 1, i), b = batch_item(run, 2, i);
                void *to = buffers[(n - 1 - i) % 2];
                TRY(matmul_tensors(run->ctx, &(MatmulTensors){ &a, &b, &add, alpha, i == 0 ? beta : 1 }, to,
                                   out));
                add = (Operand){ to, *out };
        }
        return STATUS_OK;
}

static Cost addbmm_cost(const OpCall *call)
{
        const TensorMeta *a = arg_meta(call, ADDBMM_BATCH1), *b = arg_meta(call, ADDBMM_BATCH2),
                         *out = &call->outs[0].meta;
        return (Cost){ .flops = saturating_product(2 * meta_numel(a), out->size[1]),
                       .bytes = (meta_numel(a) + meta_numel(b) + 2 * meta_numel(out)) *
                                dtype_info[out->dtype].bytes };
}

const OpDef matmul_composite_ops[] = {
        { "aten::outer(Tensor self, Tensor vec2) -> Tensor", 0, .expand = outer_expand,
          .traits = TRAIT_MAY_SHARE },
        { "aten::ger(Tensor self, Tensor vec2) -> Tensor", 0, .expand = outer_expand,
          .traits = TRAIT_MAY_SHARE },
        { "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", 0,
          OP_INPLACE, .expand = addr_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::inner(Tensor self, Tensor other) -> Tensor", 0, .expand = inner_expand,
          .traits = TRAIT_MAY_SHARE },
        { "aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", 0,
          .expand = tensordot_expand, .traits = TRAIT_MAY_SHARE },
        { "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
          "Tensor",
          DTYPES_INTS | DTYPES_FLOATS, OP_INPLACE, .infer = addbmm_infer, .run = addbmm_run,
          .cost = addbmm_cost, .traits = TRAIT_FRESH },
};
OP_FILE(matmul_composite_ops);
