// SPDX-License-Identifier: Apache-2.0
// frame.c: rows are filled one by one. The scale of an image comes from the ranges of its rows, so
// that it depends neither on threads nor on other images. Zero is one of its steps: padding is
// exact.
#include "core/kernels/conv/frame.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 255 };

int64_t frame_element_bytes(const Frame *frame)
{
        return frame->narrow == NULL ? (int64_t)sizeof(float) : 4 / frame->narrow->terms;
}

// ---- scratch: scales and offsets of results, ranges of rows, steps of images, the frame ----
typedef struct Steps {
        float steps;
        int zero;
} Steps;

static size_t padded(int64_t n_bytes)
{
        return storage_padded((size_t)n_bytes);
}

static int64_t all_results(const Frame *frame)
{
        return frame->in.size[0] * frame->n_results;
}

static int64_t given_rows(const Frame *frame)
{
        return frame->given.size[0] * frame->given.size[2];
}

typedef struct Parts {
        size_t offsets, ranges, steps, frame, end; // where each part begins; scales are first
} Parts;

static Parts parts_of(const Frame *frame)
{
        Parts parts = { 0 };
        size_t results = padded(all_results(frame) * (int64_t)sizeof(float));
        if (frame->scaled) {
                parts.offsets = results;
                parts.ranges = 2 * results;
                parts.steps = parts.ranges;
                parts.frame = parts.ranges;
        }
        if (frame->scaled && !frame->by_pixel) {
                parts.steps += padded(given_rows(frame) * 2 * (int64_t)sizeof(float));
                parts.frame = parts.steps + padded(frame->in.size[0] * (int64_t)sizeof(Steps));
        }
        parts.end = parts.frame + padded(meta_numel(&frame->in) * frame_element_bytes(frame));
        return parts;
}

size_t frame_scratch(const Frame *frame)
{
        return frame->copied ? parts_of(frame).end : 0;
}

bool frame_is_same(const Frame *a, const Frame *b)
{
        for (int i = 0; i < 2; i++)
                if (a->pad[i] != b->pad[i] || a->pick[i] != b->pick[i])
                        return false;
        return a->copied == b->copied && a->narrow == b->narrow && a->by_pixel == b->by_pixel &&
               a->n_results == b->n_results && meta_same_places(&a->given, &b->given) &&
               meta_same_places(&a->in, &b->in);
}

// ---- filling ----
typedef struct Filling {
        const RunContext *ctx;
        const Frame *frame;
        const float *in;
        float *scales, *offsets, *ranges;
        Steps *steps; // NULL: not one for each image
        char *out;
        int64_t given_inner, n_inner; // elements of a pixel of the input, of the frame
        int64_t planes;               // planes of rows: images, or images times channels
} Filling;

static void find_ranges(void *argument, int64_t begin, int64_t end)
{
        const Filling *filling = argument;
        const Frame *frame = filling->frame;
        int64_t n = frame->given.size[3] * filling->given_inner;
        Work work = { .ctx = filling->ctx };
        for (int64_t row = begin; row < end && !work_stops(&work, n); row++) {
                float *range = filling->ranges + 2 * row;
                range[0] = range[1] = 0.0f;
                frame->narrow->range(filling->in + row * n, n, range);
        }
}

// NaN stays: no comparison with it holds.
static void find_steps(const Filling *filling, int64_t image)
{
        const Frame *frame = filling->frame;
        const float *range = filling->ranges + 2 * image * frame->given.size[2];
        float low = 0.0f, high = 0.0f, scale, offset = NAN;
        bool finite = true;
        for (int64_t y = 0; y < frame->given.size[2]; y++, range += 2) {
                finite &= isfinite(range[0]) && isfinite(range[1]);
                low = fminf(low, range[0]);
                high = fmaxf(high, range[1]);
        }
        scale = high / (float)MOST_STEPS - low / (float)MOST_STEPS; // high - low may be infinite
        float steps = 1.0f / scale; // too many of them: the image is as good as zero
        bool counts = finite && steps <= FLT_MAX;
        Steps *to = filling->steps + image;
        *to = (Steps){ .steps = counts ? steps : 0.0f, .zero = counts ? (int)lrintf(-low * steps) : 0 };
        scale = counts ? scale : finite ? 0.0f : NAN;
        if ((float)to->zero * scale > FLT_MAX) // by half a step
                to->zero--;
        if (finite)
                offset = -(float)to->zero * scale;
        for (int64_t i = image * frame->n_results; i < (image + 1) * frame->n_results; i++) {
                filling->scales[i] = scale;
                filling->offsets[i] = offset;
        }
}

static void fill_inside(const Filling *filling, int64_t image, const float *from, int64_t n, char *to)
{
        const NarrowKind *narrow = filling->frame->narrow;
        if (narrow == NULL)
                memcpy(to, from, (size_t)n * sizeof(float));
        else if (filling->steps != NULL)
                narrow->place(from, n, filling->steps[image].steps, filling->steps[image].zero,
                              (uint8_t *)to);
        else
                narrow->round(from, n, MOST_STEPS, to);
}

// n pixels of three numbers, which end where the fourth one of the last pixel will, become pixels
// of four: each is read, with the number before it, before its place is written.
static void add_fourth_2(char *pixels, int64_t n)
{
        uint64_t pixel;
        for (int64_t x = 0; x < n; x++) {
                memcpy(&pixel, pixels + 2 * (n + 3 * x - 1), sizeof(pixel));
                pixel >>= 16;
                memcpy(pixels + 8 * x, &pixel, sizeof(pixel));
        }
}

static void add_fourth_1(char *pixels, int64_t n)
{
        uint32_t pixel;
        for (int64_t x = 0; x < n; x++) {
                memcpy(&pixel, pixels + n + 3 * x - 1, sizeof(pixel));
                pixel >>= 8;
                memcpy(pixels + 4 * x, &pixel, sizeof(pixel));
        }
}

// The pixels of row `row` of the input, between what lies before and after them.
static void fill_inside_row(const Filling *filling, int64_t image, const float *row, char *to)
{
        const Frame *frame = filling->frame;
        int64_t width = frame->given.size[3], bytes = frame_element_bytes(frame);
        int64_t more = width * (filling->n_inner - filling->given_inner);
        fill_inside(filling, image, row, width * filling->given_inner, to + more * bytes);
        if (more > 0 && bytes == 2)
                add_fourth_2(to, width);
        else if (more > 0)
                add_fourth_1(to, width);
}

// Pixel x of a row of the frame. `from` NULL: it lies outside, and is zero.
static void fill_pixel(const Filling *filling, int64_t at, const float *from)
{
        const Frame *frame = filling->frame;
        int64_t n = filling->n_inner, bytes = n * frame_element_bytes(frame);
        char *to = filling->out + at * bytes;
        NarrowRow rounded = { 0 };
        if (from == NULL)
                memset(to, 0, (size_t)bytes);
        else
                rounded = frame->narrow->round(from, n, MOST_STEPS, to);
        if (frame->scaled) {
                filling->scales[at] = rounded.scale;
                filling->offsets[at] = rounded.offset;
        }
}

// Pixels that are rounded, or taken, one by one. `from` NULL: the row lies outside.
static void fill_pixels(const Filling *filling, int64_t row, const float *from)
{
        const Frame *frame = filling->frame;
        int64_t width = frame->in.size[3], step = frame->pick[1],
                inside = from == NULL ? 0 : MIN(width, (frame->given.size[3] + step - 1) / step);
        for (int64_t x = 0; x < width; x++)
                fill_pixel(filling, row * width + x, x < inside ? from + x * step * filling->n_inner : NULL);
}

static void fill_rows(void *argument, int64_t begin, int64_t end)
{
        const Filling *filling = argument;
        const Frame *frame = filling->frame;
        int64_t rows = frame->in.size[2], inner = filling->n_inner, bytes = frame_element_bytes(frame);
        int64_t width = frame->in.size[3] * inner, from_width = frame->given.size[3] * inner,
                before = frame->pad[1] * inner, given_width = frame->given.size[3] * filling->given_inner;
        Work work = { .ctx = filling->ctx };
        for (int64_t r = begin; r < end && !work_stops(&work, width); r++) {
                int64_t plane = r / rows, y = r % rows * frame->pick[0] - frame->pad[0];
                int zero = filling->steps == NULL ? 0 : filling->steps[plane].zero;
                char *to = filling->out + r * width * bytes;
                bool outside = y < 0 || y >= frame->given.size[2];
                const float *from =
                        outside ? NULL : filling->in + (plane * frame->given.size[2] + y) * given_width;
                if (frame->by_pixel) {
                        fill_pixels(filling, r, from);
                        continue;
                }
                if (outside) {
                        memset(to, zero, (size_t)(width * bytes));
                        continue;
                }
                memset(to, zero, (size_t)(before * bytes));
                fill_inside_row(filling, plane, from, to + before * bytes);
                memset(to + (before + from_width) * bytes, zero,
                       (size_t)((width - before - from_width) * bytes));
        }
}

Status frame_fill(const Frame *frame, const RunContext *ctx, const float *in, void *scratch, Framed *out)
{
        *out = (Framed){ .in = in };
        if (!frame->copied)
                return STATUS_OK;
        Parts parts = parts_of(frame);
        char *at = scratch;
        bool last = frame->in.stride[1] == 1;
        Filling filling = { .ctx = ctx,
                            .frame = frame,
                            .in = in,
                            .out = at + parts.frame,
                            .given_inner = last ? frame->given.size[1] : 1,
                            .n_inner = last ? frame->in.size[1] : 1,
                            .planes = frame->in.size[0] * (last ? 1 : frame->in.size[1]) };
        int64_t width = frame->in.size[3] * filling.n_inner,
                rows = MAX((int64_t)1, 32768 / MAX(width, (int64_t)1));
        if (frame->scaled) {
                filling.scales = (float *)(void *)at;
                filling.offsets = (float *)(void *)(at + parts.offsets);
        }
        if (frame->scaled && !frame->by_pixel) {
                filling.ranges = (float *)(void *)(at + parts.ranges);
                filling.steps = (Steps *)(void *)(at + parts.steps);
                TRY(parallel_for(ctx, given_rows(frame), rows, find_ranges, &filling));
                for (int64_t image = 0; image < frame->in.size[0]; image++)
                        find_steps(&filling, image);
        }
        *out = (Framed){ filling.out, filling.scales, filling.offsets };
        return parallel_for(ctx, filling.planes * frame->in.size[2], rows, fill_rows, &filling);
}
