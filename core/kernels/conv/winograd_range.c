// SPDX-License-Identifier: Apache-2.0
// winograd_range.c: a tile's errors in one group of channels are proportional to the largest input
// of that group. All its results get them, also those that do not read that input.
#include <string.h>
#include "core/kernels/conv/winograd.h"
#include "core/kernels/conv/winograd_plan.h"

// ABSOLUTE_TOLERANCE: the error that assert_close accepts in a result near 0. MOST_UNEVEN: the
// largest accepted ratio of a tile's largest input to the largest input that one result reads.
static const float ABSOLUTE_TOLERANCE = 1e-5f, MOST_UNEVEN = 16;

typedef struct Range { // of one sample
        const RunContext *ctx;
        const Winograd *winograd;
        const float *in;
        int64_t layer, group;
        int32_t *pixels; // by group and layer: a pixel's largest magnitude, as the float's bits
        int32_t *merged; // the largest ones of all layers that `layer` reads
        atomic_bool uneven;
} Range;

static void look_at_pixels(void *argument, int64_t begin, int64_t end)
{
        const Range *range = argument;
        const Winograd *winograd = range->winograd;
        int64_t channels = winograd->in.size[1], groups = winograd->groups, n = channels / groups,
                n_pixels = winograd->in.size[2] * winograd_pixels(winograd);
        Work work = { .ctx = range->ctx };
        for (int64_t i = begin; i < end && !work_stops(&work, channels / 4); i++)
                for (int64_t group = 0; group < groups; group++)
                        range->pixels[group * n_pixels + i] =
                                winograd->kernels.largest(range->in + i * channels + group * n, n);
}

static void merge_layers(void *argument, int64_t begin, int64_t end)
{
        const Range *range = argument;
        const Winograd *winograd = range->winograd;
        int64_t first = range->layer - winograd->pad[0], n_pixels = winograd_pixels(winograd);
        int64_t low = MAX(first, (int64_t)0), high = MIN(first + winograd->taps, winograd->in.size[2]);
        memset(range->merged + begin, 0, (size_t)(end - begin) * sizeof(int32_t));
        for (int64_t layer = low; layer < high; layer++) {
                const int32_t *pixels = range->pixels + layer * n_pixels;
                for (int64_t i = begin; i < end; i++)
                        range->merged[i] = MAX(range->merged[i], pixels[i]);
        }
}

// Whether a result whose inputs are at most `least` stays accurate in a tile with an input of
// `most` (magnitudes, as bits).
static bool is_even(const Winograd *winograd, int32_t most, int32_t least)
{
        float large, small;
        memcpy(&large, &most, sizeof(large));
        memcpy(&small, &least, sizeof(small));
        return large * winograd->error <= ABSOLUTE_TOLERANCE || large <= MOST_UNEVEN * small;
}

// The largest magnitude of each 3x3 window is found down the columns, then across the row.
static bool tile_is_even(const Winograd *winograd, const int32_t *pixels, int64_t row, int64_t column)
{
        const int64_t *in = winograd->in.size + 3, *out = winograd->out.size + 3;
        int32_t line[MAX_SIDE] = { 0 }, most = 0, least = INT32_MAX;
        int high[] = { winograd_clip(out[0] - row, winograd->step),
                       winograd_clip(out[1] - column, winograd->step) };
        for (int i = 0; i < high[0]; i++) {
                int64_t y = row + i - winograd->pad[1], first = MAX(y, (int64_t)0), next = MIN(y + 3, in[0]);
                for (int j = 0; j < high[1] + 2; j++) {
                        int64_t x = column + j - winograd->pad[2];
                        line[j] = 0;
                        for (y = first; y < next && x >= 0 && x < in[1]; y++)
                                line[j] = MAX(line[j], pixels[y * in[1] + x]);
                }
                for (int j = 0; j < high[1]; j++) {
                        int32_t window = MAX(MAX(line[j], line[j + 1]), line[j + 2]);
                        most = MAX(most, window);
                        least = MIN(least, window);
                }
        }
        return is_even(winograd, most, least);
}

static void look_at_tiles(void *argument, int64_t begin, int64_t end)
{
        Range *range = argument;
        const Winograd *winograd = range->winograd;
        for (int64_t t = begin; t < end; t++) {
                TilePlace place = winograd_place(winograd, t);
                if (!tile_is_even(winograd, range->merged, place.row, place.column))
                        atomic_store_explicit(&range->uneven, true, memory_order_relaxed);
        }
}

// One group of one layer.
static Status look_at_layer(Range *range)
{
        const Winograd *winograd = range->winograd;
        int32_t most = 0, least = INT32_MAX;
        int64_t n_pixels = winograd_pixels(winograd);
        if (winograd->taps > 1)
                TRY(parallel_for(range->ctx, n_pixels, 4096, merge_layers, range));
        else
                range->merged =
                        range->pixels + (range->group * winograd->in.size[2] + range->layer) * n_pixels;
        Work work = { .ctx = range->ctx };
        for (int64_t i = 0; i < n_pixels && !work_stops(&work, 1); i++) {
                most = MAX(most, range->merged[i]);
                least = MIN(least, range->merged[i]);
        }
        if (!is_even(winograd, most, least)) // some pixel is far from another, perhaps not in one tile
                TRY(parallel_for(range->ctx, winograd->rows * winograd->columns, 32, look_at_tiles, range));
        return work.stops ? run_poll(range->ctx) : STATUS_OK;
}

size_t winograd_range_bytes(const Winograd *winograd)
{
        int64_t layers = winograd->groups * winograd->in.size[2] + (winograd->taps > 1);
        return (size_t)(layers * winograd_pixels(winograd)) * sizeof(int32_t);
}

Status winograd_find_uneven(const Winograd *winograd, const RunContext *ctx, const float *in, void *scratch,
                            atomic_bool *refused, int64_t *out_n)
{
        int64_t n_in = winograd->in.size[2], n_out = winograd->out.size[2],
                n_pixels = winograd_pixels(winograd);
        *out_n = 0;
        for (int64_t i = 0; i < winograd->in.size[0]; i++) {
                Range range = { .ctx = ctx,
                                .winograd = winograd,
                                .in = in + i * winograd->in.stride[0],
                                .pixels = scratch,
                                .merged = (int32_t *)scratch + n_in * n_pixels };
                TRY(parallel_for(ctx, n_in * n_pixels, 512, look_at_pixels, &range));
                for (range.layer = 0; range.layer < n_out; range.layer++) {
                        bool uneven = false;
                        atomic_init(&range.uneven, false);
                        for (range.group = 0; range.group < winograd->groups && !uneven; range.group++) {
                                TRY(look_at_layer(&range));
                                uneven = atomic_load_explicit(&range.uneven, memory_order_relaxed);
                        }
                        atomic_init(&refused[i * n_out + range.layer], uneven);
                        *out_n += uneven;
                }
        }
        return STATUS_OK;
}
