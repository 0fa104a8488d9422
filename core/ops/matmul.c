// SPDX-License-Identifier: Apache-2.0
// matmul.c: products of matrices and vectors, one kernel for all of them: infer proves shapes in
// PyTorch's words, run pads vectors and batches to one rank and multiplies. Half types are
// multiplied in float32 and rounded once; integers wrap. Results are contiguous.
#include "core/kernels/product/matmul.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/matmul.h"
#include "core/ops/pack.h"
#include "core/ops/pointwise.h"
#include <inttypes.h>
#include <string.h>

enum { MATMUL_DTYPES = DTYPES_INTS | DTYPES_FLOATS };

static const char *cpp_name(Dtype dtype)
{
        static const char *const names[DTYPE_COUNT] = {
                [DTYPE_U8] = "unsigned char",   [DTYPE_I8] = "signed char",
                [DTYPE_I16] = "short",          [DTYPE_I32] = "int",
                [DTYPE_I64] = "long",           [DTYPE_F16] = "c10::Half",
                [DTYPE_BF16] = "c10::BFloat16", [DTYPE_F32] = "float",
                [DTYPE_F64] = "double",         [DTYPE_BOOL] = "bool",
        };
        return names[dtype] == NULL ? dtype_info[dtype].name : names[dtype];
}

static Status fail_product(int64_t m, int64_t k, int64_t k2, int64_t n)
{
        return fail(STATUS_SHAPE, "mat1 and mat2 shapes cannot be multiplied (%ldx%ld and %ldx%ld)", (long)m,
                    (long)k, (long)k2, (long)n);
}

static Status fail_vector(int64_t input, int64_t m, int64_t k, int64_t vec)
{
        return fail(STATUS_SHAPE, "size mismatch, got input (%ld), mat (%ldx%ld), vec (%ld)", (long)input,
                    (long)m, (long)k, (long)vec);
}

static Status check_mat_dtypes(const TensorMeta *a, const TensorMeta *b)
{
        if (a->dtype != b->dtype)
                return fail(STATUS_DTYPE, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                            cpp_name(a->dtype), cpp_name(b->dtype));
        return STATUS_OK;
}

static Status check_scalar_types(const TensorMeta *a, const TensorMeta *b)
{
        if (a->dtype != b->dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(a->dtype),
                            dtype_words(b->dtype));
        return STATUS_OK;
}

// `self` must expand to `size`: what beta * self needs.
static Status check_expands(const TensorMeta *self, int rank, const int64_t *size)
{
        char target[128], own[128];
        if (self->rank > rank)
                return fail(STATUS_SHAPE,
                            "expand(%s, size=%s): the number of sizes provided (%d) must be greater or equal "
                            "to the number of dimensions "
                            "in the tensor (%d)",
                            shape_text(self->rank, self->size, own, sizeof(own)),
                            shape_text(rank, size, target, sizeof(target)), rank, self->rank);
        for (int i = 1; i <= self->rank; i++) {
                int64_t have = self->size[self->rank - i], want = size[rank - i];
                if (have != 1 && have != want)
                        return fail(STATUS_SHAPE,
                                    "The expanded size of the tensor (%ld) must match the existing size "
                                    "(%ld) at non-singleton dimension "
                                    "%d.  Target sizes: "
                                    "%s.  Tensor sizes: %s",
                                    (long)want, (long)have, rank - i,
                                    shape_text(rank, size, target, sizeof(target)),
                                    shape_text(self->rank, self->size, own, sizeof(own)));
        }
        return STATUS_OK;
}

static Status out_contiguous(OpCall *call, Dtype dtype, int rank, const int64_t *size)
{
        int64_t numel;
        TRY(shape_numel(rank, size, &numel));
        TensorMeta meta;
        meta_init(&meta, dtype, rank, size);
        return out_fresh(call, 0, &meta);
}

// ---- operands of run: ranks evened out by leading ones ----
static void pad_rank(TensorMeta *meta, int rank)
{
        int missing = rank - meta->rank;
        if (missing <= 0)
                return;
        memmove(meta->size + missing, meta->size, meta->rank * sizeof(int64_t));
        memmove(meta->stride + missing, meta->stride, meta->rank * sizeof(int64_t));
        for (int d = 0; d < missing; d++) {
                meta->size[d] = 1;
                meta->stride[d] = 0;
        }
        meta->rank = (uint8_t)rank;
}

static void add_last_one(TensorMeta *meta)
{
        meta->size[meta->rank] = 1;
        meta->stride[meta->rank] = 1;
        meta->rank++;
}

static void transpose_last(TensorMeta *meta)
{
        int last = meta->rank - 1;
        int64_t size = meta->size[last], stride = meta->stride[last];
        meta->size[last] = meta->size[last - 1];
        meta->stride[last] = meta->stride[last - 1];
        meta->size[last - 1] = size;
        meta->stride[last - 1] = stride;
}

static Operand operand(const OpRun *run, uint32_t i)
{
        return (Operand){ run->in[i], *run->in_meta[i] };
}

// alpha * a b + beta * add; a and b have at least two dimensions by now. The output's meta is
// rebuilt in the padded rank (it is contiguous).
static Status multiply(const OpRun *run, Operand *a, Operand *b, Operand *add, double alpha, double beta)
{
        int rank = MAX(a->meta.rank, b->meta.rank);
        pad_rank(&a->meta, rank);
        pad_rank(&b->meta, rank);
        if (add != NULL)
                pad_rank(&add->meta, rank);
        int64_t size[MAX_RANK];
        for (int d = 0; d < rank - 2; d++)
                size[d] = a->meta.size[d] == 1 ? b->meta.size[d] : a->meta.size[d];
        size[rank - 2] = a->meta.size[rank - 2];
        size[rank - 1] = b->meta.size[rank - 1];
        TensorMeta out_meta;
        meta_init(&out_meta, run->out_meta[0]->dtype, rank, size);
        return matmul_tensors(run->ctx, &(MatmulTensors){ a, b, add, alpha, beta }, run->out[0], &out_meta);
}

// ---- mm, bmm ----
static Status mm_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF), *b = arg_meta(call, MM_MAT2);
        if (a->rank != 2)
                return fail(STATUS_SHAPE, "self must be a matrix");
        if (b->rank != 2)
                return fail(STATUS_SHAPE, "mat2 must be a matrix");
        if (a->size[1] != b->size[0])
                return fail_product(a->size[0], a->size[1], b->size[0], b->size[1]);
        TRY(check_mat_dtypes(a, b));
        return out_contiguous(call, a->dtype, 2, (int64_t[]){ a->size[0], b->size[1] });
}

static Status check_batches(const TensorMeta *a, const TensorMeta *b)
{
        if (a->rank != 3)
                return fail(STATUS_SHAPE, "batch1 must be a 3D tensor");
        if (b->rank != 3)
                return fail(STATUS_SHAPE, "batch2 must be a 3D tensor");
        if (a->size[0] != b->size[0] || a->size[2] != b->size[1])
                return fail(STATUS_SHAPE,
                            "Expected size for first two dimensions of batch2 tensor to be: [%ld, %ld] but "
                            "got: [%ld, %ld].",
                            (long)a->size[0], (long)a->size[2], (long)b->size[0], (long)b->size[1]);
        return check_scalar_types(a, b);
}

static Status bmm_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF), *b = arg_meta(call, BMM_MAT2);
        TRY(check_batches(a, b));
        return out_contiguous(call, a->dtype, 3, (int64_t[]){ a->size[0], a->size[1], b->size[2] });
}

static Status product_run(const OpRun *run)
{
        Operand a = operand(run, 0), b = operand(run, 1);
        return multiply(run, &a, &b, NULL, 1, 0);
}

// ---- addmm, baddbmm, addmv ----
#define MAX_WHOLE_DOUBLE ((int64_t)1 << 53) // kernels are handed factors as doubles

Status product_check_factors(const OpCall *call, Dtype result, bool in_halfs)
{
        for (int i = 3; i <= 4; i++) {
                if (dtype_is_int(result) || (in_halfs && (DTYPES_HALFS >> result & 1) != 0))
                        TRY(number_check_fits(arg_number(call, i), result));
                Value number = arg_number(call, i);
                if (dtype_is_int(result) && number.kind == VALUE_INT &&
                    (number.i > MAX_WHOLE_DOUBLE || number.i < -MAX_WHOLE_DOUBLE))
                        return fail(STATUS_UNSUPPORTED,
                                    "%s(): %s=%" PRId64 ": products of integers take factors up to 2**53",
                                    call->schema->name, call->schema->args[i].name, number.i);
        }
        return STATUS_OK;
}

static Status addmm_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *a = arg_meta(call, ADDMM_MAT1),
                         *b = arg_meta(call, ADDMM_MAT2);
        if (a->rank != 2)
                return fail(STATUS_SHAPE, "mat1 must be a matrix, got %d-D tensor", a->rank);
        if (b->rank != 2)
                return fail(STATUS_SHAPE, "mat2 must be a matrix, got %d-D tensor", b->rank);
        if (a->size[1] != b->size[0])
                return fail_product(a->size[0], a->size[1], b->size[0], b->size[1]);
        if (self->dtype != b->dtype)
                return fail(STATUS_DTYPE, "self and mat2 must have the same dtype, but got %s and %s",
                            dtype_words(self->dtype), dtype_words(b->dtype));
        TRY(check_mat_dtypes(a, b));
        int64_t size[] = { a->size[0], b->size[1] };
        TRY(check_expands(self, 2, size));
        TRY(product_check_factors(call, a->dtype, false));
        return out_contiguous(call, a->dtype, 2, size);
}

static Status baddbmm_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *a = arg_meta(call, BADDBMM_BATCH1),
                         *b = arg_meta(call, BADDBMM_BATCH2);
        TRY(check_batches(a, b));
        if (self->dtype != a->dtype)
                return fail(STATUS_DTYPE,
                            "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                            cpp_name(self->dtype), cpp_name(a->dtype), cpp_name(b->dtype));
        int64_t size[] = { a->size[0], a->size[1], b->size[2] };
        TRY(check_expands(self, 3, size));
        TRY(product_check_factors(call, a->dtype, false));
        return out_contiguous(call, a->dtype, 3, size);
}

static Status addmv_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *mat = arg_meta(call, ADDMV_MAT),
                         *vec = arg_meta(call, ADDMV_VEC);
        if (mat->rank != 2 || vec->rank != 1 || self->rank > 1)
                return fail(STATUS_SHAPE, "vector + matrix @ vector expected, got %d, %d, %d", self->rank,
                            mat->rank, vec->rank);
        int64_t n = self->rank == 0 ? 1 : self->size[0];
        if (mat->size[1] != vec->size[0] || (n != mat->size[0] && n != 1))
                return fail_vector(n, mat->size[0], mat->size[1], vec->size[0]);
        if (mat->dtype != vec->dtype || self->dtype != vec->dtype)
                return fail(STATUS_DTYPE,
                            "addmv input tensors must have the same dtype, but got %s, %s, and %s",
                            dtype_words(self->dtype), dtype_words(mat->dtype), dtype_words(vec->dtype));
        TRY(product_check_factors(call, mat->dtype, true));
        return out_contiguous(call, mat->dtype, 1, mat->size);
}

static Status scaled_run(const OpRun *run)
{
        Operand add = operand(run, 0), a = operand(run, 1), b = operand(run, 2);
        double beta, alpha;
        TRY(arg_double(run->call, PRODUCT_BETA, &beta));
        TRY(arg_double(run->call, PRODUCT_ALPHA, &alpha));
        if (b.meta.rank == 1) {
                add_last_one(&b.meta);
                if (add.meta.rank == 1)
                        add_last_one(&add.meta);
        }
        return multiply(run, &a, &b, &add, alpha, beta);
}

// ---- mv, dot ----
static Status mv_infer(OpCall *call)
{
        const TensorMeta *mat = arg_meta(call, SELF), *vec = arg_meta(call, MV_VEC);
        if (mat->rank != 2 || vec->rank != 1)
                return fail(STATUS_SHAPE, "vector + matrix @ vector expected, got 1, %d, %d", mat->rank,
                            vec->rank);
        if (mat->size[1] != vec->size[0])
                return fail_vector(mat->size[0], mat->size[0], mat->size[1], vec->size[0]);
        if (mat->dtype != vec->dtype)
                return fail(STATUS_DTYPE,
                            "addmv input tensors must have the same dtype, but got %s, %s, and %s",
                            dtype_words(vec->dtype), dtype_words(mat->dtype), dtype_words(vec->dtype));
        return out_contiguous(call, mat->dtype, 1, mat->size);
}

static Status check_dot(const TensorMeta *a, const TensorMeta *b)
{
        if (a->rank != 1 || b->rank != 1)
                return fail(STATUS_SHAPE, "1D tensors expected, but got %dD and %dD tensors", a->rank,
                            b->rank);
        if (a->dtype != b->dtype)
                return fail(STATUS_DTYPE,
                            "dot : expected both vectors to have same dtype, but found %s and %s",
                            dtype_words(a->dtype), dtype_words(b->dtype));
        if (a->size[0] != b->size[0])
                return fail(STATUS_SHAPE,
                            "inconsistent tensor size, expected tensor [%ld] and src [%ld] to have the same "
                            "number of elements, but got "
                            "%ld and %ld elements "
                            "respectively",
                            (long)a->size[0], (long)b->size[0], (long)a->size[0], (long)b->size[0]);
        return STATUS_OK;
}

static Status dot_infer(OpCall *call)
{
        TRY(check_dot(arg_meta(call, SELF), arg_meta(call, DOT_OTHER)));
        return out_contiguous(call, arg_meta(call, SELF)->dtype, 0, NULL);
}

static Status vector_run(const OpRun *run)
{
        Operand a = operand(run, 0), b = operand(run, 1);
        if (a.meta.rank == 1)
                pad_rank(&a.meta, 2);
        if (b.meta.rank == 1)
                add_last_one(&b.meta);
        return multiply(run, &a, &b, NULL, 1, 0);
}

// ---- matmul ----
static Status check_depth(const TensorMeta *a, const TensorMeta *b)
{
        int64_t k = a->size[a->rank - 1], rows = 1;
        for (int d = 0; d < a->rank - 1; d++)
                rows *= a->size[d];
        if (b->rank == 1)
                return k == b->size[0] ? STATUS_OK : fail_vector(rows, rows, k, b->size[0]);
        int64_t k2 = b->size[b->rank - 2], n = b->size[b->rank - 1];
        if (k == k2)
                return STATUS_OK;
        if (a->rank <= 2 || b->rank <= 2)
                return fail_product(rows, k, k2, n);
        int64_t items = 1;
        for (int d = 0; d < a->rank - 2; d++)
                items *= a->size[d];
        return fail(STATUS_SHAPE,
                    "Expected size for first two dimensions of batch2 tensor to be: [%ld, %ld] but got: "
                    "[%ld, %ld].",
                    (long)items, (long)k, (long)items, (long)k2);
}

static Status matmul_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF), *b = arg_meta(call, MATMUL_OTHER);
        if (a->rank == 0 || b->rank == 0)
                return fail(STATUS_SHAPE,
                            "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                            a->rank, b->rank);
        if (a->rank == 1 && b->rank == 1) {
                TRY(check_dot(a, b));
                return out_contiguous(call, a->dtype, 0, NULL);
        }
        TensorMeta a_batch = *a, b_batch = *b;
        a_batch.rank = (uint8_t)MAX(a->rank - 2, 0);
        b_batch.rank = (uint8_t)MAX(b->rank - 2, 0);
        int rank;
        int64_t size[MAX_RANK];
        TRY(shape_broadcast(&a_batch, &b_batch, &rank, size));
        TRY(check_depth(a, b));
        TRY(check_mat_dtypes(a, b));
        if (a->rank > 1)
                size[rank++] = a->size[a->rank - 2];
        if (b->rank > 1)
                size[rank++] = b->size[b->rank - 1];
        return out_contiguous(call, a->dtype, rank, size);
}

// ---- linear ----
Status linear_infer(OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF), *weight = arg_meta(call, LINEAR_WEIGHT),
                         *bias = arg_meta(call, LINEAR_BIAS);
        if (input->rank == 0 || weight->rank == 0)
                return fail(STATUS_SHAPE,
                            "both arguments to linear need to be at least 1D, but they are %dD and %dD",
                            input->rank, weight->rank);
        if (weight->rank > 2)
                return fail(STATUS_SHAPE, "t() expects a tensor with <= 2 dimensions, but self is %dD",
                            weight->rank);
        if (weight->rank == 1 && bias != NULL)
                return fail(STATUS_SHAPE, "mat2 must be a matrix, got 1-D tensor");
        TensorMeta right = *weight;
        if (weight->rank == 2)
                transpose_last(&right);
        if (weight->rank == 2 && input->rank == 1 && input->size[0] != right.size[0])
                return fail_product(1, input->size[0], right.size[0], right.size[1]);
        TRY(check_depth(input, &right));
        if (bias != NULL && bias->dtype != weight->dtype)
                return fail(STATUS_DTYPE, "self and mat2 must have the same dtype, but got %s and %s",
                            dtype_words(bias->dtype), dtype_words(weight->dtype));
        TRY(check_mat_dtypes(input, weight));
        int64_t size[MAX_RANK], rows = 1;
        int rank = input->rank - 1;
        for (int d = 0; d < rank; d++) {
                size[d] = input->size[d];
                rows *= size[d];
        }
        if (weight->rank == 2)
                size[rank++] = weight->size[0];
        if (bias != NULL)
                TRY(check_expands(bias, 2, (int64_t[]){ rows, weight->size[0] }));
        return out_contiguous(call, input->dtype, rank, size);
}

static Status add_rounded_bias(const OpRun *run, const TensorMeta *bias)
{
        const TensorMeta *out = run->out_meta[0];
        int64_t n = meta_numel(out), columns = out->size[out->rank - 1], bytes = dtype_info[out->dtype].bytes;
        int64_t step = bias->rank == 0 || bias->size[bias->rank - 1] == 1 ? 0 : bias->stride[bias->rank - 1];
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, 8); i++) {
                char *at = (char *)run->out[0] + i * bytes;
                double add =
                        element_as_f64(out->dtype, (const char *)run->in[2] + i % columns * step * bytes);
                element_from_f64(out->dtype, at, element_as_f64(out->dtype, at) + add);
        }
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

bool linear_rounds_first(const TensorMeta *input, bool has_bias)
{
        return has_bias && input->rank > 2 && is_half_type(input) && !meta_is_contiguous(input);
}

Status linear_run(const OpRun *run)
{
        Operand input = operand(run, 0), weight = operand(run, 1), bias;
        if (input.meta.rank == 1)
                pad_rank(&input.meta, 2);
        if (weight.meta.rank == 1)
                pad_rank(&weight.meta, 2);
        transpose_last(&weight.meta);
        bool has_bias = run->in_meta[2] != NULL;
        if (has_bias)
                bias = operand(run, 2);
        bool rounds = linear_rounds_first(run->in_meta[0], has_bias);
        TRY(multiply(run, &input, &weight, has_bias && !rounds ? &bias : NULL, 1, 1));
        return rounds ? add_rounded_bias(run, &bias.meta) : STATUS_OK;
}

// ---- cost ----
Cost product_cost(const OpCall *call)
{
        const OutSpec *out = &call->outs[0];
        const TensorMeta *last =
                arg_meta(call, (int)call->schema->n_tensor_args > 2 && call->op->run == scaled_run ? 1 : 0);
        int64_t k = last->rank == 0 ? 1 : last->size[last->rank - 1], numel = meta_numel(&out->meta);
        return (Cost){ .flops = saturating_product(2 * k, numel),
                       .bytes = (numel + meta_numel(last)) * dtype_info[out->meta.dtype].bytes };
}

const OpDef matmul_ops[] = {
        { "aten::mm(Tensor self, Tensor mat2) -> Tensor", MATMUL_DTYPES, .infer = mm_infer,
          .run = product_run, .pack = mm_pack, .cost = product_cost, .traits = TRAIT_FRESH, .role = ROLE_MM },
        { "aten::bmm(Tensor self, Tensor mat2) -> Tensor", MATMUL_DTYPES, .infer = bmm_infer,
          .run = product_run, .pack = mm_pack, .cost = product_cost, .traits = TRAIT_FRESH,
          .role = ROLE_MATMUL },
        { "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          MATMUL_DTYPES, OP_INPLACE, .infer = addmm_infer, .run = scaled_run, .pack = addmm_pack,
          .cost = product_cost, .traits = TRAIT_FRESH, .role = ROLE_ADDMM },
        { "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
          "Tensor",
          MATMUL_DTYPES, OP_INPLACE, .infer = baddbmm_infer, .run = scaled_run, .cost = product_cost,
          .traits = TRAIT_FRESH },
        { "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          MATMUL_DTYPES, OP_INPLACE, .infer = addmv_infer, .run = scaled_run, .cost = product_cost,
          .traits = TRAIT_FRESH },
        { "aten::mv(Tensor self, Tensor vec) -> Tensor", MATMUL_DTYPES, .infer = mv_infer, .run = vector_run,
          .cost = product_cost, .traits = TRAIT_FRESH },
        { "aten::dot(Tensor self, Tensor tensor) -> Tensor", MATMUL_DTYPES, .infer = dot_infer,
          .run = vector_run, .cost = product_cost, .traits = TRAIT_FRESH },
        { "aten::vdot(Tensor self, Tensor other) -> Tensor", MATMUL_DTYPES, .infer = dot_infer,
          .run = vector_run, .cost = product_cost, .traits = TRAIT_FRESH },
        { "aten::matmul(Tensor self, Tensor other) -> Tensor", MATMUL_DTYPES, .infer = matmul_infer,
          .run = vector_run, .pack = mm_pack, .cost = product_cost, .traits = TRAIT_FRESH,
          .role = ROLE_MATMUL },
        { "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", MATMUL_DTYPES,
          .infer = linear_infer, .run = linear_run, .pack = linear_pack, .cost = product_cost,
          .traits = TRAIT_FRESH | TRAIT_ANY_LAYOUT, .role = ROLE_LINEAR },
};
OP_FILE(matmul_ops);
