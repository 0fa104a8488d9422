// SPDX-License-Identifier: Apache-2.0
// nonzero.c: masks. Any dtype is first made one byte for each element; lines of the last dimension
// are then searched eight bytes at a time.
#include "core/kernels/index/index.h"
#include <string.h>

enum { EIGHT = 8, PART = 128 }; // PART: as many as a byte counts

Status index_count_nonzero(const RunContext *ctx, const TensorMeta *meta, const void *data,
                           int64_t *out_count)
{
        _cleanup_(dense_deinit) Dense dense = { 0 };
        TRY(dense_init(&dense, ctx, data, meta, DTYPE_BOOL));
        const uint8_t *mask = dense.data;
        int64_t n = meta_numel(meta), count = 0;
        Work work = { .ctx = ctx };
        for (int64_t at = 0, end; (end = work_end(&work, at, n, 1)) > at;) {
                for (; at + PART <= end; at += PART) {
                        uint8_t part = 0;
                        for (int64_t i = 0; i < PART; i++)
                                part = (uint8_t)(part + (mask[at + i] != 0));
                        count += part;
                }
                for (; at < end; at++)
                        count += mask[at] != 0;
        }
        *out_count = count;
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

typedef struct Found {
        int64_t *out;
        int64_t n, room;
} Found;

// Appends base + i * step for each byte i that is not 0. Stores also what the next one overwrites
// while there is room: that has no branch to guess.
static void find_in_line(Work *work, const uint8_t *mask, int64_t n, int64_t base, int64_t step, Found *found)
{
        int64_t *out = found->out, count = found->n;
        for (int64_t at = 0, end; (end = work_end(work, at, n, 2)) > at;) {
                for (; at + EIGHT <= end && count + EIGHT <= found->room; at += EIGHT) {
                        uint64_t eight;
                        memcpy(&eight, mask + at, EIGHT);
                        if (eight == 0)
                                continue;
                        for (int64_t i = at; i < at + EIGHT; i++) {
                                out[count] = base + i * step;
                                count += mask[i] != 0;
                        }
                }
                for (; at < end && count < found->room; at++) {
                        if (mask[at] != 0)
                                out[count++] = base + at * step;
                }
                at = end;
        }
        found->n = count;
}

// The lines of the last dimension, in order.
typedef struct Lines {
        int rank; // dimensions before the line
        int64_t n, length, place[MAX_RANK];
} Lines;

static Lines lines_of(const TensorMeta *meta)
{
        Lines lines = { .rank = MAX(meta->rank - 1, 0), .n = 1, .length = 1 };
        if (meta->rank > 0)
                lines.length = meta->size[lines.rank];
        for (int d = 0; d < lines.rank; d++)
                lines.n *= meta->size[d];
        return lines;
}

static void next_line(Lines *lines, const TensorMeta *meta)
{
        for (int d = lines->rank - 1; d >= 0; d--) {
                if (++lines->place[d] < meta->size[d])
                        return;
                lines->place[d] = 0;
        }
}

Status index_nonzero(const RunContext *ctx, const TensorMeta *meta, const void *data, int64_t count,
                     int64_t *out)
{
        _cleanup_(dense_deinit) Dense dense = { 0 };
        TRY(dense_init(&dense, ctx, data, meta, DTYPE_BOOL));
        const uint8_t *mask = dense.data;
        Lines lines = lines_of(meta);
        Found found = { .out = out + lines.rank * count, .room = meta->rank == 0 ? 0 : count };
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < lines.n && !work_stops(&work, 2 * MAX_RANK); i++) {
                int64_t first = found.n;
                find_in_line(&work, mask + i * lines.length, lines.length, 0, 1, &found);
                for (int d = 0; d < lines.rank; d++) {
                        for (int64_t at = first, end; (end = work_end(&work, at, found.n, 1)) > at; at = end)
                                for (int64_t k = at; k < end; k++)
                                        out[d * count + k] = lines.place[d];
                }
                next_line(&lines, meta);
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

Status index_mask_offsets(const RunContext *ctx, const TensorMeta *meta, const void *data,
                          const int64_t *stride, int64_t count, int64_t *out)
{
        _cleanup_(dense_deinit) Dense dense = { 0 };
        TRY(dense_init(&dense, ctx, data, meta, DTYPE_BOOL));
        const uint8_t *mask = dense.data;
        Lines lines = lines_of(meta);
        Found found = { .out = out, .room = count };
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < lines.n && !work_stops(&work, 2 * MAX_RANK); i++) {
                int64_t base = 0;
                for (int d = 0; d < lines.rank; d++)
                        base += lines.place[d] * stride[d];
                find_in_line(&work, mask + i * lines.length, lines.length, base,
                             meta->rank == 0 ? 0 : stride[lines.rank], &found);
                next_line(&lines, meta);
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}
