// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/pool/image.h"
#include <math.h>
#include <string.h>
#include "core/kernels/dense.h"

enum { PRECISION = 22 };

// Results begin..end of an axis; each is the sum of count inputs from first on.
typedef struct ImageAxis {
        int64_t in_size, size;
        int64_t begin, end;
        int64_t n_taps;
        int64_t *first, *count; // end - begin each
        int32_t *weight;        // n_taps each
        Scratch scratch;
} ImageAxis;

// Weights of the result at `at`: a triangle around its centre, as wide as two results.
static void weigh(ImageAxis *axis, int64_t at, double *weights)
{
        double scale = (double)axis->in_size / (double)axis->size;
        double wide = MAX(scale, 1.0), centre = ((double)at + 0.5) * scale, sum = 0;
        int64_t first = MAX((int64_t)(centre - wide + 0.5), (int64_t)0);
        int64_t n = MIN((int64_t)(centre + wide + 0.5), axis->in_size) - first;
        for (int64_t i = 0; i < n; i++) {
                double far = fabs(((double)(i + first) - centre + 0.5) * (1.0 / wide));
                weights[i] = far < 1 ? 1 - far : 0;
                sum += weights[i];
        }
        int64_t place = at - axis->begin;
        axis->first[place] = first;
        axis->count[place] = n;
        for (int64_t i = 0; i < n; i++) {
                double weight = sum == 0 ? weights[i] : weights[i] / sum;
                axis->weight[place * axis->n_taps + i] = (int32_t)(0.5 + weight * (1 << PRECISION));
        }
}

// The results that a window from `from` on shows. There may be none.
static Status axis_init(ImageAxis *axis, const RunContext *ctx, int64_t from, int64_t n)
{
        Work work = { .ctx = ctx };
        axis->begin = MIN(MAX(from, (int64_t)0), axis->size);
        axis->end = MAX(MIN(from + n, axis->size), axis->begin);
        double wide = MAX((double)axis->in_size / (double)axis->size, 1.0);
        axis->n_taps = MIN((int64_t)ceil(wide) * 2 + 1, axis->in_size + 1);
        int64_t n_results = MAX(axis->end - axis->begin, (int64_t)1);
        size_t each = 2 * sizeof(int64_t) + (size_t)axis->n_taps * sizeof(int32_t);
        TRY(scratch_init(&axis->scratch, ctx, n_results + 1, each + sizeof(double)));
        _cleanup_(scratch_deinit) Scratch weights = { 0 };
        TRY(scratch_init(&weights, ctx, axis->n_taps, sizeof(double)));
        axis->first = axis->scratch.data;
        axis->count = axis->first + n_results;
        axis->weight = (int32_t *)(axis->count + n_results);
        for (int64_t at = axis->begin; at < axis->end && !work_stops(&work, 8 * axis->n_taps); at++)
                weigh(axis, at, weights.data);
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

static uint8_t to_byte(int32_t sum)
{
        sum >>= PRECISION;
        return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void narrow_row(const ImageAxis *axis, const ImageView *in, const uint8_t *row, uint8_t *out)
{
        for (int64_t x = 0; x < axis->end - axis->begin; x++) {
                const int32_t *weight = axis->weight + x * axis->n_taps;
                for (int c = 0; c < in->channels; c++) {
                        const uint8_t *at = row + axis->first[x] * in->column + c;
                        int32_t sum = 1 << (PRECISION - 1);
                        for (int64_t i = 0; i < axis->count[x]; i++)
                                sum += at[i * in->column] * weight[i];
                        *out++ = to_byte(sum);
                }
        }
}

// One result row of n bytes from rows of n bytes; `sums` has room for them.
static void mix_rows(const ImageAxis *axis, int64_t place, const uint8_t *rows, int64_t n, int32_t *sums,
                     uint8_t *out)
{
        const int32_t *weight = axis->weight + place * axis->n_taps;
        for (int64_t i = 0; i < n; i++)
                sums[i] = 1 << (PRECISION - 1);
        for (int64_t tap = 0; tap < axis->count[place]; tap++) {
                const uint8_t *row = rows + tap * n;
                int32_t by = weight[tap];
                for (int64_t i = 0; i < n; i++)
                        sums[i] += row[i] * by;
        }
        for (int64_t i = 0; i < n; i++)
                out[i] = to_byte(sums[i]);
}

static Status resize(const RunContext *ctx, const ImageView *in, const ImageWindow *window,
                     const ImageAxis *across, const ImageAxis *down, uint8_t *out)
{
        _cleanup_(scratch_deinit) Scratch narrow = { 0 }, sums = { 0 };
        Work work = { .ctx = ctx };
        int64_t n = (across->end - across->begin) * in->channels, n_down = down->end - down->begin;
        memset(out, 0, (size_t)(window->out_width * window->out_height * in->channels));
        if (n == 0 || n_down == 0)
                return STATUS_OK;
        int64_t begin = down->first[0], end = down->first[n_down - 1] + down->count[n_down - 1];
        TRY(scratch_init(&narrow, ctx, end - begin, (size_t)n));
        TRY(scratch_init(&sums, ctx, n, sizeof(int32_t)));
        uint8_t *rows = narrow.data;
        for (int64_t y = begin; y < end && !work_stops(&work, n * across->n_taps); y++)
                narrow_row(across, in, in->origin + y * in->row, rows + (y - begin) * n);
        for (int64_t y = 0; y < n_down && !work_stops(&work, n * down->n_taps); y++) {
                uint8_t *to = out + ((y + down->begin - window->top) * window->out_width + across->begin -
                                     window->left) *
                                            in->channels;
                mix_rows(down, y, rows + (down->first[y] - begin) * n, n, sums.data, to);
        }
        return work.stops ? run_poll(ctx) : STATUS_OK;
}

Status image_resize(const RunContext *ctx, const ImageView *in, const ImageWindow *window, uint8_t *out)
{
        ImageAxis across = { .in_size = in->width, .size = window->width };
        ImageAxis down = { .in_size = in->height, .size = window->height };
        Status status = axis_init(&across, ctx, window->left, window->out_width);
        if (status == STATUS_OK)
                status = axis_init(&down, ctx, window->top, window->out_height);
        if (status == STATUS_OK)
                status = resize(ctx, in, window, &across, &down, out);
        scratch_deinit(&down.scratch);
        scratch_deinit(&across.scratch);
        return status;
}
