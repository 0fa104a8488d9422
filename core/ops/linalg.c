// SPDX-License-Identifier: Apache-2.0
#include "core/ops/linalg.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"

const Factoring *linalg_factoring(Dtype dtype)
{
        return dtype_info[dtype].kind == DTYPE_KIND_COMPLEX ? &factoring_complex : &factoring_real;
}

Dtype linalg_compute(Dtype dtype)
{
        if (dtype_info[dtype].kind == DTYPE_KIND_COMPLEX)
                return DTYPE_C128;
        return dtype_is_float(dtype) ? DTYPE_F64 : DTYPE_I64;
}

Status linalg_matrix(const TensorMeta *a, const char *name)
{
        return a->rank >= 2
                       ? STATUS_OK
                       : fail(STATUS_SHAPE, "%s: The input tensor A must have at least 2 dimensions.", name);
}

Status linalg_square(const TensorMeta *a, const char *name)
{
        TRY(linalg_matrix(a, name));
        int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1];
        return m == n ? STATUS_OK
                      : fail(STATUS_SHAPE,
                             "%s: A must be batches of square matrices, but they are %ld by %ld matrices",
                             name, (long)m, (long)n);
}

Status linalg_meta(const TensorMeta *like, int drop, int n, const int64_t sizes[2], bool by_columns,
                   TensorMeta *out)
{
        int64_t size[MAX_RANK + 2], numel;
        int rank = like->rank - drop + n;
        memcpy(size, like->size, sizeof(like->size));
        for (int i = 0; i < n; i++)
                size[like->rank - drop + i] = sizes[i];
        if (rank > MAX_RANK)
                return fail(STATUS_SHAPE, "a result of %d dimensions is not supported", rank);
        TRY(shape_numel(rank, size, &numel));
        meta_init(out, like->dtype, rank, size);
        if (by_columns && rank >= 2) {
                out->stride[rank - 2] = 1;
                out->stride[rank - 1] = MAX(out->size[rank - 2], 1);
        }
        return STATUS_OK;
}

int64_t linalg_count(const TensorMeta *meta, int drop)
{
        int64_t n = 1;
        for (int d = 0; d < meta->rank - drop; d++)
                n *= meta->size[d];
        return n;
}

int64_t linalg_element(const TensorMeta *out, int out_drop, const TensorMeta *in, int in_drop, int64_t b)
{
        int64_t at = 0, step = 1;
        int n_in = in->rank - in_drop, n_out = out->rank - out_drop;
        for (int d = n_in - 1, o = n_out - 1; d >= 0 && o >= 0; d--, o--) {
                if (in->size[d] != 1)
                        at += b % out->size[o] * step;
                b /= out->size[o];
                step *= in->size[d];
        }
        return at;
}

TensorMeta linalg_turned(const TensorMeta *meta)
{
        TensorMeta turned = *meta;
        const int row = meta->rank - 2, column = meta->rank - 1;
        turned.size[row] = meta->size[column];
        turned.size[column] = meta->size[row];
        turned.stride[row] = meta->stride[column];
        turned.stride[column] = meta->stride[row];
        return turned;
}

Status linalg_open(const OpRun *run, const TensorMeta *read, int64_t n_scratch, uint32_t turned_outs,
                   LinalgIo *io)
{
        io->by = linalg_factoring(read->dtype);
        TRY(dense_init(&io->in, run->ctx, run->in[0], read, linalg_compute(read->dtype)));
        TRY(scratch_init(&io->scratch, run->ctx, n_scratch + 1, io->by->bytes));
        io->numbers = io->scratch.data;
        for (uint32_t k = 0; k < run->n_out; k++) {
                const TensorMeta *meta = run->out_meta[k];
                io->out_meta[k] = (turned_outs >> k & 1) != 0 ? linalg_turned(meta) : *meta;
                TRY(dense_out_init(&io->out[k], run->ctx, run->out[k], &io->out_meta[k],
                                   linalg_compute(meta->dtype)));
        }
        return STATUS_OK;
}

Status linalg_store(const OpRun *run, LinalgIo *io)
{
        TRY(run_poll(run->ctx));
        for (uint32_t k = 0; k < run->n_out; k++)
                TRY(dense_out_store(&io->out[k]));
        return STATUS_OK;
}

void linalg_io_deinit(LinalgIo *io)
{
        for (int k = 0; k < OP_INLINE_OUTS; k++)
                dense_out_deinit(&io->out[k]);
        scratch_deinit(&io->scratch);
        dense_deinit(&io->in);
}

BatchWords linalg_words(const TensorMeta *a, int64_t b)
{
        BatchWords words = { "" };
        if (a->rank > 2)
                snprintf(words.text, sizeof(words.text), "(Batch element %ld): ", (long)b);
        return words;
}

Cost linalg_cost(const OpCall *call, int64_t factor)
{
        const TensorMeta *a = arg_meta(call, SELF);
        if (a->rank < 2)
                return (Cost){ 0 };
        int64_t n = MAX(a->size[a->rank - 1], a->size[a->rank - 2]), steps = saturating_product(n, factor);
        steps = saturating_product(saturating_product(steps, n), n);
        return (Cost){ .flops = saturating_product(steps, linalg_count(a, 2)),
                       .bytes = saturating_product(meta_numel(a), 16) };
}
