// SPDX-License-Identifier: Apache-2.0
// levels_depthwise.c: a stretch of results of one row and one panel of channels at a time. The rows
// of the image that its windows read are woven into a strip: for each pixel and channel one step of
// the sum, whose terms are levels of neighbouring rows. So a step multiplies as many kernel rows as
// it has terms, and a run of the sum is one kernel column of so many rows. Pixels outside the image
// are the zero point; kernel rows that there are not have weights of zero.
#include "core/kernels/conv/levels_depthwise.h"

#include <stdio.h>
#include <string.h>
#include "core/kernels/product/levels_panels.h"

// STRIP_PIXELS: of all groups of rows. A step has four bytes.
enum { STRIP_PIXELS = 256, MOST_STEPS = 128, MOST_COLUMNS = 32 };

struct LevelsDepthwise {
        LevelsPanels panels;
        LevelsImages images; // its pointers are read only while it is made
        int64_t n_groups;    // of kernel rows
        int64_t stretch;     // most results at once
        // Windows that lie far apart have pixels of their own in the strip: that of kernel column j
        // and result x is j * stretch + x. Else pixels lie as in the image.
        bool apart;
        int64_t pixel_bytes, group_bytes; // of the strip
        DirectRun runs[MOST_STEPS];
        uint32_t n_runs;
        char name[40];
};

// ---- making ----
static bool fits(const LevelsImages *images, const LevelsIsa *isa)
{
        const TensorMeta *in = &images->input, *weight = &images->weight;
        return in->rank == 4 && meta_numel(&images->out) > 0 && meta_numel(in) > 0 && weight->size[1] == 1 &&
               weight->size[0] == in->size[1] && images->out.size[1] == in->size[1] &&
               meta_lies_channels_last(in) && meta_lies_channels_last(&images->out) &&
               weight->size[2] <= MOST_STEPS && weight->size[3] <= MOST_STEPS &&
               (weight->size[2] + isa->terms - 1) / isa->terms * weight->size[3] <= MOST_STEPS &&
               images->stride[1] <= INT32_MAX && images->dilation[1] <= INT32_MAX;
}

static int64_t span_of(const LevelsImages *images, int64_t results)
{
        return (results - 1) * images->stride[1] + (images->weight.size[3] - 1) * images->dilation[1] + 1;
}

static void plan(const LevelsImages *images, LevelsDepthwise *conv)
{
        int64_t columns = images->weight.size[3], room = STRIP_PIXELS / conv->n_groups,
                most = conv->panels.isa->max_rows, left = room - span_of(images, 1);
        int64_t n = left < 0 ? 0 : left / images->stride[1] + 1;
        conv->apart = room / columns > n;
        n = conv->apart ? room / columns : n;
        conv->stretch = n < most ? n : n / most * most;
}

static void set_runs(const LevelsImages *images, LevelsDepthwise *conv)
{
        int64_t columns = images->weight.size[3],
                column = conv->apart ? conv->stretch : images->dilation[1]; // pixels to the next
        conv->pixel_bytes = conv->panels.width * 4;
        conv->group_bytes =
                (conv->apart ? conv->stretch * columns : span_of(images, conv->stretch)) * conv->pixel_bytes;
        conv->n_runs = (uint32_t)(columns * conv->n_groups);
        for (uint32_t r = 0; r < conv->n_runs; r++)
                conv->runs[r] = (DirectRun){ .offset = r / conv->n_groups * column * conv->pixel_bytes +
                                                       r % conv->n_groups * conv->group_bytes,
                                             .n = 1 };
}

static int32_t pack_column(const void *context, int64_t column, const LevelsPanels *panels, int64_t step,
                           uint8_t *to)
{
        const LevelsImages *images = context;
        const TensorMeta *weight = &images->weight;
        int64_t terms = panels->isa->terms, n_groups = (weight->size[2] + terms - 1) / terms;
        int32_t sum = 0;
        for (int64_t x = 0; x < weight->size[3]; x++)
                for (int64_t y = 0; y < weight->size[2]; y++) {
                        int8_t level = images->weights[column * weight->stride[0] + y * weight->stride[2] +
                                                       x * weight->stride[3]];
                        levels_set_term(panels, x * n_groups * terms + y, step, level, to);
                        sum += level;
                }
        return sum;
}

static Status pack(const LevelsImages *images, LevelsDepthwise *conv)
{
        const TensorMeta *weight = &images->weight;
        char format[128];
        snprintf(format, sizeof(format), "depthwise %ld,%ld by %ld,%ld,%ld", (long)weight->size[2],
                 (long)weight->size[3], (long)weight->stride[0], (long)weight->stride[2],
                 (long)weight->stride[3]);
        LevelsFactor factor = { .column_scale = images->column_scale,
                                .bias = images->bias,
                                .data = images->weights,
                                .format = format,
                                .share = images->share,
                                .pack = pack_column,
                                .context = images };
        TRY(levels_panels_init(&conv->panels, conv->panels.isa, weight->size[0],
                               weight->size[3] * conv->n_groups));
        return levels_panels_fill(&conv->panels, &factor);
}

Status levels_depthwise_new(const LevelsImages *images, LevelsDepthwise **out_conv)
{
        const LevelsIsa *isa = levels_isa();
        *out_conv = NULL;
        if (isa == NULL || !fits(images, isa))
                return STATUS_OK;
        LevelsDepthwise *conv = calloc(1, sizeof(*conv));
        if (conv == NULL)
                return fail_memory();
        conv->panels.isa = isa;
        conv->images = *images;
        conv->n_groups = (images->weight.size[2] + isa->terms - 1) / isa->terms;
        snprintf(conv->name, sizeof(conv->name), "levels:depthwise:%s", isa->name);
        Status status = pack(images, conv);
        if (status != STATUS_OK) {
                levels_depthwise_free(conv);
                return status;
        }
        plan(images, conv);
        set_runs(images, conv);
        *out_conv = conv;
        return STATUS_OK;
}

void levels_depthwise_free(LevelsDepthwise *conv)
{
        if (conv == NULL)
                return;
        levels_panels_deinit(&conv->panels);
        free(conv);
}

const char *levels_depthwise_name(const LevelsDepthwise *conv)
{
        return conv->name;
}

// ---- running ----
typedef struct DepthwiseRun {
        const RunContext *ctx;
        const LevelsDepthwise *conv;
        const LevelsConvOperands *operands;
        LevelsResidual residual;
        uint8_t zeros[MOST_COLUMNS]; // a pixel outside the image
} DepthwiseRun;

// Where results are: results x .. x + n - 1 of row y, channels of a panel.
typedef struct Stretch {
        const DepthwiseRun *run;
        int64_t image, y, x, n, channel, n_channels;
        char *strip;
} Stretch;

// Pixels that lie `step` apart in a row of the image, the first one at column `from`.
static void weave(const Stretch *stretch, int64_t group, int64_t from, int64_t step, int64_t n, char *to)
{
        const DepthwiseRun *run = stretch->run;
        const LevelsDepthwise *conv = run->conv;
        const LevelsImages *images = &conv->images;
        int64_t channels = images->input.size[1], width = images->input.size[3];
        int64_t first = from >= 0 ? 0 : MIN((-from + step - 1) / step, n),
                next = from >= width ? first : MAX(MIN((width - 1 - from) / step + 1, n), first);
        LevelsStrip outside = { .rows = { run->zeros, run->zeros, run->zeros, run->zeros },
                                .n_rows = (int)MIN(images->weight.size[2], (int64_t)conv->panels.isa->terms),
                                .n_channels = stretch->n_channels,
                                .is_signed = images->input.dtype == DTYPE_I8 };
        LevelsStrip inside = outside;
        inside.n_pixels = next - first;
        for (int64_t t = 0; t < conv->panels.isa->terms; t++) {
                int64_t i = group * conv->panels.isa->terms + t,
                        row = stretch->y * images->stride[0] - images->padding[0] + i * images->dilation[0];
                if (i >= images->weight.size[2] || row < 0 || row >= images->input.size[2])
                        continue;
                int64_t pixel = (stretch->image * images->input.size[2] + row) * width + from + first * step;
                inside.rows[t] = run->operands->in + pixel * channels + stretch->channel;
                inside.step[t] = step * channels;
        }
        outside.n_pixels = first;
        conv->panels.isa->interleave(&outside, to);
        conv->panels.isa->interleave(&inside, to + first * conv->pixel_bytes);
        outside.n_pixels = n - next;
        conv->panels.isa->interleave(&outside, to + next * conv->pixel_bytes);
}

static void fill_strip(const Stretch *stretch)
{
        const LevelsDepthwise *conv = stretch->run->conv;
        const LevelsImages *images = &conv->images;
        int64_t from = stretch->x * images->stride[1] - images->padding[1];
        for (int64_t group = 0; group < conv->n_groups; group++) {
                char *to = stretch->strip + group * conv->group_bytes;
                if (!conv->apart) {
                        weave(stretch, group, from, 1, span_of(images, stretch->n), to);
                        continue;
                }
                for (int64_t j = 0; j < images->weight.size[3]; j++)
                        weave(stretch, group, from + j * images->dilation[1], images->stride[1], stretch->n,
                              to + j * conv->stretch * conv->pixel_bytes);
        }
}

static void run_stretch(const Stretch *stretch, LevelsTile *tile)
{
        const DepthwiseRun *run = stretch->run;
        const LevelsDepthwise *conv = run->conv;
        const TensorMeta *out = &conv->images.out;
        int64_t most = conv->panels.isa->max_rows, n_parts = (stretch->n + most - 1) / most;
        int n_vectors = stretch->n_channels > conv->panels.isa->lanes ? 2 : 1;
        fill_strip(stretch);
        for (int64_t part = 0; part < n_parts; part++) {
                int64_t first = part * stretch->n / n_parts, next = (part + 1) * stretch->n / n_parts,
                        line = stretch->image * out->size[2] + stretch->y;
                int64_t to = (line * out->size[3] + stretch->x + first) * out->size[1] + stretch->channel;
                LevelsResidual residual = run->residual;
                if (residual.levels != NULL)
                        residual.levels += to;
                tile->levels = residual.levels == NULL ? NULL : &residual;
                tile->residual = run->operands->residual == NULL ? NULL : run->operands->residual + to;
                tile->in = stretch->strip + first * tile->in_step;
                tile->out = (char *)run->operands->out + to * (tile->bytes ? 1 : (int64_t)sizeof(float));
                conv->panels.isa->depthwise[n_vectors - 1][next - first - 1](tile);
        }
}

static void run_rows(void *argument, int64_t begin, int64_t end)
{
        const DepthwiseRun *run = argument;
        const LevelsDepthwise *conv = run->conv;
        const LevelsImages *images = &conv->images;
        bool flips = conv->panels.isa->terms == 4 && images->input.dtype == DTYPE_I8;
        _Alignas(64) char strip[STRIP_PIXELS * MOST_COLUMNS * 4];
        LevelsTile tile = { .in_step = (conv->apart ? 1 : images->stride[1]) * conv->pixel_bytes,
                            .runs = conv->runs,
                            .n_runs = conv->n_runs,
                            .row_scale = images->scale,
                            .row_zero = images->zero + (flips ? 128 : 0),
                            .out_step = images->out.size[1] };
        levels_panels_finish(&conv->panels, &images->as, run->operands->residual != NULL, &tile);
        Work work = { .ctx = run->ctx };
        for (int64_t row = begin; row < end && !work.stops; row++)
                for (int64_t panel = 0; panel < conv->panels.n_panels && !work.stops; panel++) {
                        levels_panels_use(&conv->panels, panel, &tile);
                        Stretch stretch = { .run = run,
                                            .image = row / images->out.size[2],
                                            .y = row % images->out.size[2],
                                            .channel = panel * conv->panels.width,
                                            .n_channels = tile.n_valid,
                                            .strip = strip };
                        for (; stretch.x < images->out.size[3] && !work_stops(&work, stretch.n);
                             stretch.x += stretch.n) {
                                stretch.n = MIN(images->out.size[3] - stretch.x, conv->stretch);
                                run_stretch(&stretch, &tile);
                                work_stops(&work, (conv->n_runs + 4) * stretch.n);
                        }
                }
}

Status levels_depthwise_run(const LevelsDepthwise *conv, const RunContext *ctx,
                            const LevelsConvOperands *operands)
{
        const TensorMeta *out = &conv->images.out;
        DepthwiseRun run = {
                .ctx = ctx, .conv = conv, .operands = operands, .residual = conv->images.residual
        };
        run.residual.levels = operands->residual_levels;
        memset(run.zeros, conv->images.zero, sizeof(run.zeros));
        int64_t work = out->size[3] * conv->panels.n_panels * (conv->n_runs + 4);
        TRY(parallel_for(ctx, out->size[0] * out->size[2], MAX((int64_t)1, 100000 / work), run_rows, &run));
        return run_poll(ctx);
}
