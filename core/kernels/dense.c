// SPDX-License-Identifier: Apache-2.0
// Dense reading and writing: conversions and strided copies are the tensor room's tensor_copy_data;
// this file only decides when they are needed and who owns the bytes.
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"
#include <math.h>
#include <string.h>

// Marks the next n_bytes of the pool as taken and records the pool's peak. Returns their end. An
// end beyond the pool's n_bytes means that the caller must allocate from the heap.
static size_t pool_take(ScratchPool *pool, size_t n_bytes)
{
        size_t end = atomic_fetch_add_explicit(&pool->used, n_bytes, memory_order_relaxed) + n_bytes;
        size_t wanted = atomic_load_explicit(&pool->wanted, memory_order_relaxed);
        while (end > wanted &&
               !atomic_compare_exchange_weak_explicit(&pool->wanted, &wanted, end, memory_order_relaxed,
                                                      memory_order_relaxed))
                continue;
        return end;
}

// Only the newest piece can be given back at once; the rest is freed after the instruction.
static void pool_give(ScratchPool *pool, size_t end, size_t n_bytes)
{
        atomic_compare_exchange_strong_explicit(&pool->used, &end, end - n_bytes, memory_order_relaxed,
                                                memory_order_relaxed);
}

Status scratch_init(Scratch *scratch, const RunContext *ctx, int64_t n, size_t item_bytes)
{
        memset(scratch, 0, sizeof(*scratch));
        size_t n_bytes, padded;
        if (n < 0 || !mul_size((size_t)n, item_bytes, &n_bytes) ||
            !add_size(n_bytes, 2 * STORAGE_ALIGN - 1, &padded))
                return fail(STATUS_TOO_LARGE,
                            "an operator's working memory would overflow; use smaller shapes");
        n_bytes = padded / STORAGE_ALIGN * STORAGE_ALIGN;
        ScratchPool *pool = ctx == NULL ? NULL : ctx->pool;
        if (pool != NULL) {
                scratch->n_bytes = n_bytes;
                scratch->pool = pool;
                scratch->pool_end = pool_take(pool, n_bytes);
                if (scratch->pool_end <= pool->n_bytes) {
                        scratch->data = pool->data + (scratch->pool_end - n_bytes);
                        return STATUS_OK;
                }
        }
        Budget *budget = ctx == NULL ? NULL : ctx->budget;
        if (!budget_take(budget, n_bytes))
                return fail(STATUS_TOO_LARGE,
                            "the working memory of this operator (%zu bytes) is over the run's limit; send "
                            "smaller inputs or start the server "
                            "with a larger --max-run-memory",
                            n_bytes);
        scratch->data = aligned_alloc(STORAGE_ALIGN, n_bytes);
        if (scratch->data == NULL) {
                budget_give(budget, n_bytes);
                return fail_memory();
        }
        memory_prefer_huge(scratch->data, n_bytes);
        scratch->n_bytes = n_bytes;
        scratch->budget = budget;
        return STATUS_OK;
}

void scratch_deinit(Scratch *scratch)
{
        ScratchPool *pool = scratch->pool;
        if (pool != NULL)
                pool_give(pool, scratch->pool_end, scratch->n_bytes);
        if (scratch->data != NULL && (pool == NULL || scratch->pool_end > pool->n_bytes)) {
                budget_give(scratch->budget, scratch->n_bytes);
                free(scratch->data);
        }
        memset(scratch, 0, sizeof(*scratch));
}

Dtype dtype_compute(Dtype dtype)
{
        if (dtype == DTYPE_F64)
                return DTYPE_F64;
        return dtype_is_float(dtype) ? DTYPE_F32 : DTYPE_I64;
}

static TensorMeta contiguous_meta(const TensorMeta *meta, Dtype as)
{
        TensorMeta contiguous;
        meta_init(&contiguous, as, meta->rank, meta->size);
        return contiguous;
}

Status dense_init(Dense *dense, const RunContext *ctx, const void *data, const TensorMeta *meta, Dtype as)
{
        memset(dense, 0, sizeof(*dense));
        dense->data = data;
        int64_t n = meta_numel(meta);
        if (n == 0 || (meta->dtype == as && meta_is_contiguous(meta)))
                return STATUS_OK;
        TRY(scratch_init(&dense->scratch, ctx, n, dtype_info[as].bytes));
        dense->data = dense->scratch.data;
        TensorMeta to_meta = contiguous_meta(meta, as);
        Region from = region_of(meta, data), to = region_of(&to_meta, dense->scratch.data);
        return copy_region(ctx, &from, &to);
}

Status dense_init_as_it_lies(Dense *dense, const RunContext *ctx, const void *data, TensorMeta *meta,
                             Dtype as)
{
        TensorMeta given = *meta, line;
        meta->dtype = as;
        if (given.dtype == as) {
                *dense = (Dense){ .data = data };
                return STATUS_OK;
        }
        if (!meta_is_non_overlapping_and_dense(&given)) {
                meta_set_contiguous(meta);
                return dense_init(dense, ctx, data, &given, as);
        }
        meta_init(&line, given.dtype, 1, (int64_t[]){ meta_numel(&given) });
        return dense_init(dense, ctx, data, &line, as);
}

void dense_deinit(Dense *dense)
{
        scratch_deinit(&dense->scratch);
}

Status dense_out_init(DenseOut *out, const RunContext *ctx, void *target, const TensorMeta *meta, Dtype as)
{
        *out = (DenseOut){ .data = target, .as = as, .target = target, .meta = meta, .ctx = ctx };
        int64_t n = meta_numel(meta);
        if (n == 0 || (meta->dtype == as && meta_is_contiguous(meta)))
                return STATUS_OK;
        TRY(scratch_init(&out->scratch, ctx, n, dtype_info[as].bytes));
        out->data = out->scratch.data;
        return STATUS_OK;
}

Status dense_out_store(DenseOut *out)
{
        if (out->scratch.data == NULL)
                return STATUS_OK;
        TensorMeta from_meta = contiguous_meta(out->meta, out->as);
        Region from = region_of(&from_meta, out->data), to = region_of(out->meta, out->target);
        return copy_region(out->ctx, &from, &to);
}

void dense_out_deinit(DenseOut *out)
{
        scratch_deinit(&out->scratch);
}

static bool span_is_below(const float *data, int64_t n, float limit)
{
        bool below = true;
        for (int64_t i = 0; i < n; i++)
                below &= fabsf(data[i]) < limit;
        return below;
}

bool floats_are_below(const float *data, const TensorMeta *meta, float limit)
{
        int64_t n = meta_numel(meta), span = 1;
        for (int d = 0; d < meta->rank; d++)
                span += (meta->size[d] - 1) * meta->stride[d];
        if (n == 0 || span == n)
                return span_is_below(data, n, limit);
        for (int64_t i = 0; i < n; i++) { // between the elements there may be anything
                int64_t at = 0, left = i;
                for (int d = meta->rank - 1; d >= 0; left /= meta->size[d--])
                        at += left % meta->size[d] * meta->stride[d];
                if (!(fabsf(data[at]) < limit))
                        return false;
        }
        return true;
}

TensorMeta meta_line_as_image(const TensorMeta *meta)
{
        TensorMeta image = *meta;
        if (meta->rank != 3)
                return image;
        image.rank = 4;
        image.size[3] = meta->size[2];
        image.stride[3] = meta->stride[2];
        image.size[2] = 1;
        image.stride[2] = meta->size[2] * meta->stride[2];
        return image;
}

bool meta_suggests_channels_last(const TensorMeta *meta)
{
        // Innermost first. A batch stride equal to the channel stride is the ambiguous N111:
        // contiguous.
        static const int order4[] = { 1, 3, 2, 0 }, order5[] = { 1, 4, 3, 2, 0 };
        if ((meta->rank != 4 && meta->rank != 5) || meta->stride[1] == 0)
                return false;
        const int *order = meta->rank == 4 ? order4 : order5;
        int64_t least = 0;
        for (int i = 0; i < meta->rank; i++) {
                int d = order[i];
                if (meta->size[d] == 0 || meta->stride[d] < least || (d == 0 && least == meta->stride[1]))
                        return false;
                least = meta->stride[d] * (meta->size[d] > 1 ? meta->size[d] : 1);
        }
        return true;
}
