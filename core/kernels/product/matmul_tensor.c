// SPDX-License-Identifier: Apache-2.0
// matmul_tensor.c: products of tensors on top of gemm. Operands that are not in the compute dtype
// are converted as a whole first; all others are read where they stand, whatever their strides.
#include "core/kernels/product/matmul.h"
#include <string.h>

typedef struct Read {
        Dense dense;
        GemmMatrix matrix;
        int64_t size[MAX_RANK], stride[MAX_RANK];
} Read;

static Status read_init(Read *read, const RunContext *ctx, const Operand *operand, Dtype as)
{
        memset(read, 0, sizeof(*read));
        if (operand == NULL)
                return STATUS_OK;
        TensorMeta meta = operand->meta;
        TRY(dense_init_as_it_lies(&read->dense, ctx, operand->data, &meta, as));
        read->matrix.data = (void *)(uintptr_t)read->dense.data;
        memcpy(read->size, meta.size, sizeof(read->size));
        memcpy(read->stride, meta.stride, sizeof(read->stride));
        return STATUS_OK;
}

// Strides of the batch and of the matrix; a dimension of size 1 against a larger one is repeated.
static void lay_out(Read *read, int rank, const int64_t *out_size)
{
        for (int d = 0; d < rank - 2; d++)
                read->matrix.batch[d] = read->size[d] == 1 && out_size[d] != 1 ? 0 : read->stride[d];
        read->matrix.row = read->stride[rank - 2];
        read->matrix.col = read->stride[rank - 1];
}

// While b does not depend on the last batch dimension, and the rows of a, add and c continue
// across it, that dimension is merged into the rows.
static void fold_batch(Gemm *task)
{
        GemmMatrix *matrices[] = { &task->a, &task->c, task->add.data == NULL ? NULL : &task->add };
        while (task->batch_rank > 0) {
                int d = task->batch_rank - 1;
                bool folds = task->batch_size[d] == 1 || task->b.batch[d] == 0;
                for (size_t i = 0; i < ARRAY_LENGTH(matrices) && task->batch_size[d] != 1; i++)
                        folds = folds && (matrices[i] == NULL || task->m == 1 ||
                                          matrices[i]->batch[d] == task->m * matrices[i]->row);
                if (!folds)
                        return;
                for (size_t i = 0; i < ARRAY_LENGTH(matrices) && task->batch_size[d] != 1 && task->m == 1;
                     i++) {
                        if (matrices[i] != NULL)
                                matrices[i]->row = matrices[i]->batch[d];
                }
                task->m *= task->batch_size[d];
                task->batch_rank--;
        }
}

static void expand_add(Read *add, int rank, const int64_t *out_size)
{
        for (int d = rank - 2; d < rank; d++) {
                if (add->size[d] == 1 && out_size[d] != 1)
                        add->stride[d] = 0;
        }
        lay_out(add, rank, out_size);
}

typedef struct Factors {
        Read a, b, add;
} Factors;

static void factors_deinit(Factors *factors)
{
        dense_deinit(&factors->a.dense);
        dense_deinit(&factors->b.dense);
        dense_deinit(&factors->add.dense);
}

static Status multiply(const RunContext *ctx, Factors *factors, double alpha, double beta,
                       const DenseOut *out)
{
        Read *a = &factors->a, *b = &factors->b, *add = &factors->add;
        int rank = out->meta->rank;
        const int64_t *size = out->meta->size;
        TensorMeta contiguous = *out->meta;
        meta_set_contiguous(&contiguous);
        Read c = { .matrix.data = out->data };
        memcpy(c.size, contiguous.size, sizeof(c.size));
        memcpy(c.stride, contiguous.stride, sizeof(c.stride));
        lay_out(a, rank, size);
        lay_out(b, rank, size);
        lay_out(&c, rank, size);
        if (add->matrix.data != NULL)
                expand_add(add, rank, size);
        // BLAS, which PyTorch asks for matrices of these dtypes, reads neither factor where alpha
        // is 0.
        bool unread =
                alpha == 0 && rank == 2 && (out->meta->dtype == DTYPE_F32 || out->meta->dtype == DTYPE_F64);
        Gemm task = { .dtype = out->as,
                      .m = size[rank - 2],
                      .n = size[rank - 1],
                      .k = unread ? 0 : a->size[rank - 1],
                      .batch_rank = rank - 2,
                      .a = a->matrix,
                      .b = b->matrix,
                      .c = c.matrix,
                      .add = add->matrix,
                      .alpha = alpha,
                      .beta = beta };
        memcpy(task.batch_size, size, (size_t)(rank - 2) * sizeof(int64_t));
        fold_batch(&task);
        return gemm(ctx, &task);
}

Status matmul_tensors(const RunContext *ctx, const MatmulTensors *task, void *out, const TensorMeta *out_meta)
{
        // sums that wrap have the low bits of sums that do not
        bool narrow = dtype_is_int(out_meta->dtype) && dtype_info[out_meta->dtype].bytes <= 4;
        Dtype as = narrow ? DTYPE_I32 : dtype_compute(out_meta->dtype);
        _cleanup_(factors_deinit) Factors factors = { 0 };
        _cleanup_(dense_out_deinit) DenseOut result = { 0 };
        TRY(read_init(&factors.a, ctx, task->a, as));
        TRY(read_init(&factors.b, ctx, task->b, as));
        TRY(read_init(&factors.add, ctx, task->beta == 0 ? NULL : task->add, as));
        TRY(dense_out_init(&result, ctx, out, out_meta, as));
        TRY(multiply(ctx, &factors, task->alpha, task->beta, &result));
        TRY(dense_out_store(&result));
        return STATUS_OK;
}
