// SPDX-License-Identifier: Apache-2.0
// copy.c: tensor_copy_data in pieces. The destination's outermost dimension (by stride) is cut, so that threads write to ranges of their
// own; small copies run in one piece.
#include "core/kernels/copy.h"

#include <string.h>

enum { GRAIN_ELEMENTS = 32768 };

typedef struct CopyJob {
        const Region *from, *to;
        int dim;
} CopyJob;

Region region_part(const Region *region, int dim, int64_t start, int64_t length)
{
        Region part = *region;
        part.meta.size[dim] = length;
        part.data += start * region->meta.stride[dim] * dtype_info[region->meta.dtype].bytes;
        return part;
}

static void copy_piece(const Region *from, const Region *to)
{
        Storage from_storage = { .data = (uint8_t *)from->data }, to_storage = { .data = (uint8_t *)to->data };
        Tensor source = { .meta = from->meta, .storage = &from_storage }, target = { .meta = to->meta, .storage = &to_storage };
        tensor_copy_data(&source, &target);
}

static void copy_pieces(void *argument, int64_t begin, int64_t end)
{
        const CopyJob *job = argument;
        Region from = region_part(job->from, job->dim, begin, end - begin);
        Region to = region_part(job->to, job->dim, begin, end - begin);
        copy_piece(&from, &to);
}

Status copy_region(const RunContext *ctx, const Region *from, const Region *to)
{
        int64_t numel = meta_numel(&to->meta);
        if (numel == 0)
                return STATUS_OK;
        if (numel <= GRAIN_ELEMENTS) {
                copy_piece(from, to);
                return STATUS_OK;
        }
        CopyJob job = { .from = from, .to = to, .dim = 0 };
        for (int d = 1; d < to->meta.rank; d++) {
                bool outer = to->meta.size[d] > 1 && to->meta.stride[d] > to->meta.stride[job.dim];
                if (outer || to->meta.size[job.dim] == 1)
                        job.dim = d;
        }
        int64_t n = to->meta.size[job.dim];
        return parallel_for(ctx, n, MAX(GRAIN_ELEMENTS / (numel / n), 1), copy_pieces, &job);
}

Status fill_region(const RunContext *ctx, const Region *to, const void *value)
{
        Region from = region_of(&to->meta, value);
        memset(from.meta.stride, 0, sizeof(from.meta.stride));
        return copy_region(ctx, &from, to);
}
