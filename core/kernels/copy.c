// SPDX-License-Identifier: Apache-2.0
// copy.c: tensor_copy_data in pieces. The destination's outermost dimension (by stride) is cut, so
// that threads write to ranges of their own; small copies run in one piece. Images that change
// their layout are turned in blocks of four by four.
#include "core/kernels/copy.h"

#include <string.h>

enum { GRAIN_ELEMENTS = 32768, MOST_ELEMENTS = 4 * GRAIN_ELEMENTS };

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
        Storage from_storage = { .data = (uint8_t *)from->data },
                to_storage = { .data = (uint8_t *)to->data };
        Tensor source = { .meta = from->meta, .storage = &from_storage },
               target = { .meta = to->meta, .storage = &to_storage };
        tensor_copy_data(&source, &target);
}

static void copy_pieces(void *argument, int64_t begin, int64_t end)
{
        const CopyJob *job = argument;
        Region from = region_part(job->from, job->dim, begin, end - begin);
        Region to = region_part(job->to, job->dim, begin, end - begin);
        copy_piece(&from, &to);
}

// ---- images of 4-byte elements between channels_last and contiguous ----
typedef struct Turn { // [rows][columns] -> [columns][rows], dense, once per image
        const RunContext *ctx;
        const uint32_t *from;
        uint32_t *to;
        int64_t rows, columns;
} Turn;

typedef uint32_t Four __attribute__((vector_size(16)));
typedef uint32_t LooseFour __attribute__((vector_size(16), aligned(4), may_alias));

static void turn_block(const uint32_t *from, int64_t from_step, uint32_t *to, int64_t to_step)
{
        Four a = *(const LooseFour *)from, b = *(const LooseFour *)(from + from_step),
             c = *(const LooseFour *)(from + 2 * from_step), d = *(const LooseFour *)(from + 3 * from_step);
        Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        *(LooseFour *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
        *(LooseFour *)(to + to_step) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        *(LooseFour *)(to + 2 * to_step) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
        *(LooseFour *)(to + 3 * to_step) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

// Columns begin..end of one image, sixteen at a time, so that each cache line is used whole while
// it is in the cache.
static void turn_columns(const Turn *turn, Work *work, int64_t begin, int64_t end)
{
        enum { STRIP = 16 };
        for (int64_t strip = begin; strip < end; strip += STRIP) {
                int64_t stop = MIN(strip + STRIP, end), r = 0;
                for (; r + 4 <= turn->rows && !work_stops(work, 4 * STRIP); r += 4) {
                        int64_t c = strip;
                        for (; c + 4 <= stop; c += 4)
                                turn_block(turn->from + r * turn->columns + c, turn->columns,
                                           turn->to + c * turn->rows + r, turn->rows);
                        for (; c < stop; c++)
                                for (int64_t k = r; k < r + 4; k++)
                                        turn->to[c * turn->rows + k] = turn->from[k * turn->columns + c];
                }
                for (; r < turn->rows && !work->stops; r++)
                        for (int64_t c = strip; c < stop; c++)
                                turn->to[c * turn->rows + r] = turn->from[r * turn->columns + c];
        }
}

// An image of three planes: the usual input.
static void interleave_three(Work *work, const uint32_t *from, uint32_t *to, int64_t begin, int64_t end,
                             int64_t plane)
{
        const uint32_t *red = from, *green = from + plane, *blue = from + 2 * plane;
        for (int64_t at = begin, stop; (stop = work_end(work, at, end, 3)) > at; at = stop) {
                for (int64_t i = at; i < stop; i++) {
                        to[3 * i] = red[i];
                        to[3 * i + 1] = green[i];
                        to[3 * i + 2] = blue[i];
                }
        }
}

static void turn_images(void *argument, int64_t begin, int64_t end)
{
        const Turn *turn = argument;
        Work work = { .ctx = turn->ctx };
        for (int64_t at = begin; at < end && !work.stops;) {
                int64_t image = at / turn->columns, first = at % turn->columns,
                        last = MIN(turn->columns, first + end - at);
                Turn one = *turn;
                one.from += image * turn->rows * turn->columns;
                one.to += image * turn->rows * turn->columns;
                if (turn->rows == 3)
                        interleave_three(&work, one.from, one.to, first, last, turn->columns);
                else
                        turn_columns(&one, &work, first, last);
                at += last - first;
        }
}

// false: the copy is of another kind.
static bool is_turn(const Region *from, const Region *to, Turn *out_turn)
{
        const TensorMeta *a = &from->meta, *b = &to->meta;
        if (a->rank != 4 || a->dtype != b->dtype || dtype_info[a->dtype].bytes != 4 || !meta_same_shape(a, b))
                return false;
        bool to_last = meta_is_contiguous(a) && meta_is_channels_last(b),
             from_last = meta_is_channels_last(a) && meta_is_contiguous(b);
        int64_t channels = a->size[1], pixels = a->size[2] * a->size[3];
        if (!to_last && !from_last)
                return false;
        *out_turn = (Turn){ .from = (const uint32_t *)(const void *)from->data,
                            .to = (uint32_t *)(void *)to->data,
                            .rows = to_last ? channels : pixels,
                            .columns = to_last ? pixels : channels };
        return true;
}

// Cuts along the outermost dimension; pieces that are still too large along the next one, and so
// on.
static Status copy_cut(const RunContext *ctx, const Region *from, const Region *to, int64_t numel)
{
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
        for (int64_t i = 0; numel / n > MOST_ELEMENTS && i < n; i++) {
                Region one_from = region_part(from, job.dim, i, 1), one_to = region_part(to, job.dim, i, 1);
                TRY(run_poll(ctx));
                TRY(copy_cut(ctx, &one_from, &one_to, numel / n));
        }
        if (numel / n > MOST_ELEMENTS)
                return STATUS_OK;
        return parallel_for(ctx, n, MAX(GRAIN_ELEMENTS / (numel / n), 1), copy_pieces, &job);
}

Status copy_region(const RunContext *ctx, const Region *from, const Region *to)
{
        int64_t numel = meta_numel(&to->meta);
        Turn turn;
        if (numel == 0)
                return STATUS_OK;
        if (is_turn(from, to, &turn)) {
                turn.ctx = ctx;
                TRY(parallel_for(ctx, numel / turn.rows,
                                 MAX((int64_t)16, GRAIN_ELEMENTS / turn.rows / 16 * 16), turn_images, &turn));
                return run_poll(ctx);
        }
        return copy_cut(ctx, from, to, numel);
}

Status fill_region(const RunContext *ctx, const Region *to, const void *value)
{
        Region from = region_of(&to->meta, value);
        memset(from.meta.stride, 0, sizeof(from.meta.stride));
        return copy_region(ctx, &from, to);
}
