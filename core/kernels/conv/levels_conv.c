// SPDX-License-Identifier: Apache-2.0
// levels_conv.c: as direct.c, for levels. Padding is made by copying the input into a frame whose
// border is the zero point; levels that the instructions do not read as they are become such there.
// Kernel rows without dilation are one run of the sum, of kernel width times channels; a run is
// filled up to whole steps of four bytes, which meet weights of zero.
#include "core/kernels/conv/levels_conv.h"

#include <stdio.h>
#include <string.h>
#include "core/kernels/product/levels_panels.h"

// A frame of up to SMALL_FRAME levels is cheap, however small the input is.
enum { SMALL_FRAME = 1 << 22, FRAME_SLACK = 64, MOST_RUNS = 1024 };

struct LevelsConv {
        LevelsPanels panels;
        LevelsImages images; // its pointers are read only while it is made
        bool copies;
        int64_t frame[2];             // rows and pixels that tiles read
        int64_t element;              // bytes of a level in the frame
        int64_t pitch, channel_bytes; // bytes between rows, and between pixels
        DirectRun *runs;
        uint32_t n_runs;
        int64_t run_terms, run_steps;
        int64_t n_pixels;                  // of a line: an output row, or all there are
        int64_t n_parts, n_units;          // stretches of a line, in all
        int64_t part_pixels, longer_parts; // of a part; parts with one more
        int64_t units, n_groups, n_chunks; // of a group; groups; pieces that the panels are cut into
        char name[32];
};

// ---- what fits ----
static bool frame_fits(const LevelsImages *images, int64_t frame[2])
{
        const TensorMeta *in = &images->input;
        int64_t pixels, levels;
        for (int i = 0; i < 2; i++)
                frame[i] = (images->out.size[2 + i] - 1) * images->stride[i] +
                           (images->weight.size[2 + i] - 1) * images->dilation[i] + 1;
        return mul_i64(frame[0], frame[1], &pixels) && mul_i64(pixels, in->size[1], &levels) &&
               levels <= MAX(4 * in->size[1] * in->size[2] * in->size[3], (int64_t)SMALL_FRAME);
}

static bool joins_pixels(const LevelsImages *images)
{
        return images->dilation[1] == 1 || images->weight.size[3] == 1;
}

static int64_t runs_of(const LevelsImages *images)
{
        return images->weight.size[2] * (joins_pixels(images) ? 1 : images->weight.size[3]);
}

static bool fits(const LevelsImages *images, int64_t frame[2])
{
        return images->input.rank == 4 && meta_numel(&images->out) > 0 && meta_numel(&images->input) > 0 &&
               meta_lies_channels_last(&images->input) && meta_lies_channels_last(&images->out) &&
               images->weight.size[1] == images->input.size[1] &&
               meta_numel(&images->weight) / images->weight.size[0] <= LEVELS_MOST_TERMS &&
               runs_of(images) <= MOST_RUNS && frame_fits(images, frame);
}

// ---- planning ----
static void plan_input(const LevelsImages *images, LevelsConv *conv)
{
        const TensorMeta *in = &images->input;
        int64_t channels = in->size[1];
        bool pads = false;
        for (int i = 0; i < 2; i++)
                pads |= images->padding[i] > 0 || conv->frame[i] > in->size[2 + i];
        conv->run_terms = (joins_pixels(images) ? images->weight.size[3] : 1) * channels;
        conv->run_steps = (conv->run_terms + conv->panels.isa->terms - 1) / conv->panels.isa->terms;
        conv->n_runs = (uint32_t)runs_of(images);
        conv->copies = pads || conv->panels.isa->terms != 4 || in->dtype == DTYPE_I8 ||
                       conv->run_terms % conv->panels.isa->terms != 0;
        conv->element = 4 / conv->panels.isa->terms;
        if (!conv->copies) {
                conv->frame[0] = in->size[2];
                conv->frame[1] = in->size[3];
        }
        conv->channel_bytes = channels * conv->element;
        conv->pitch = conv->frame[1] * conv->channel_bytes;
}

static void set_runs(const LevelsImages *images, LevelsConv *conv)
{
        int64_t per_row = conv->n_runs / images->weight.size[2];
        for (uint32_t r = 0; r < conv->n_runs; r++)
                conv->runs[r] =
                        (DirectRun){ .offset = r / per_row * images->dilation[0] * conv->pitch +
                                               r % per_row * images->dilation[1] * conv->channel_bytes,
                                     .n = conv->run_steps };
}

// Output pixels that are evenly spaced in the input, too: a row, or the whole output.
static void plan_units(const LevelsImages *images, LevelsConv *conv)
{
        const int64_t *out = images->out.size;
        int64_t row = out[3] * images->stride[1] * conv->channel_bytes;
        conv->n_pixels = out[3];
        if (conv->pitch * images->stride[0] == row && conv->pitch * conv->frame[0] == out[2] * row)
                conv->n_pixels *= out[0] * out[2];
        int64_t most = conv->panels.isa->max_rows, n_lines = out[0] * out[2] * out[3] / conv->n_pixels;
        conv->n_parts = (conv->n_pixels + most - 1) / most;
        conv->part_pixels = conv->n_pixels / conv->n_parts;
        conv->longer_parts = conv->n_pixels % conv->n_parts;
        conv->n_units = n_lines * conv->n_parts;
        int64_t all_bytes = out[0] * conv->frame[0] * conv->pitch;
        conv->n_groups = MIN(MAX(all_bytes / PANELS_GROUP_BYTES, (int64_t)1), conv->n_units);
        conv->units = (conv->n_units + conv->n_groups - 1) / conv->n_groups;
        conv->n_groups = (conv->n_units + conv->units - 1) / conv->units;
        conv->n_chunks = panels_chunks(conv->panels.n_panels, conv->n_groups, images->n_threads);
}

// ---- packing ----
typedef struct Kernels {
        const LevelsImages *images;
        const LevelsConv *conv;
} Kernels;

static int32_t pack_column(const void *context, int64_t column, const LevelsPanels *panels, int64_t step,
                           uint8_t *to)
{
        const Kernels *from = context;
        const TensorMeta *weight = &from->images->weight;
        int64_t channels = weight->size[1], width = from->conv->run_terms / channels,
                per_row = weight->size[3] / width, run_terms = from->conv->run_steps * panels->isa->terms;
        int32_t sum = 0;
        for (int64_t run = 0; run < from->conv->n_runs; run++)
                for (int64_t i = 0; i < from->conv->run_terms; i++) {
                        int64_t x = run % per_row * width + i / channels;
                        int8_t level =
                                from->images
                                        ->weights[column * weight->stride[0] +
                                                  i % channels * weight->stride[1] +
                                                  run / per_row * weight->stride[2] + x * weight->stride[3]];
                        levels_set_term(panels, run * run_terms + i, step, level, to);
                        sum += level;
                }
        return sum;
}

static Status pack(const LevelsImages *images, LevelsConv *conv)
{
        const TensorMeta *weight = &images->weight;
        char format[160];
        snprintf(format, sizeof(format), "conv %ld of %ld,%ld,%ld by %ld,%ld,%ld,%ld", (long)conv->n_runs,
                 (long)weight->size[1], (long)weight->size[2], (long)weight->size[3], (long)weight->stride[0],
                 (long)weight->stride[1], (long)weight->stride[2], (long)weight->stride[3]);
        Kernels kernels = { images, conv };
        LevelsFactor factor = { .column_scale = images->column_scale,
                                .bias = images->bias,
                                .data = images->weights,
                                .format = format,
                                .share = images->share,
                                .pack = pack_column,
                                .context = &kernels };
        TRY(levels_panels_init(&conv->panels, conv->panels.isa, weight->size[0],
                               conv->n_runs * conv->run_steps));
        return levels_panels_fill(&conv->panels, &factor);
}

static Status make(const LevelsImages *images, LevelsConv *conv)
{
        plan_input(images, conv);
        conv->runs = new_array(conv->n_runs, sizeof(DirectRun));
        if (conv->runs == NULL)
                return fail_memory();
        set_runs(images, conv);
        TRY(pack(images, conv));
        plan_units(images, conv);
        return STATUS_OK;
}

Status levels_conv_new(const LevelsImages *images, LevelsConv **out_conv)
{
        const LevelsIsa *isa = levels_isa();
        int64_t frame[2];
        *out_conv = NULL;
        if (isa == NULL || !fits(images, frame))
                return STATUS_OK;
        LevelsConv *conv = calloc(1, sizeof(*conv));
        if (conv == NULL)
                return fail_memory();
        conv->panels.isa = isa;
        conv->images = *images;
        memcpy(conv->frame, frame, sizeof(frame));
        snprintf(conv->name, sizeof(conv->name), "levels:conv:%s", isa->name);
        Status status = make(images, conv);
        if (status != STATUS_OK) {
                levels_conv_free(conv);
                return status;
        }
        *out_conv = conv;
        return STATUS_OK;
}

void levels_conv_free(LevelsConv *conv)
{
        if (conv == NULL)
                return;
        levels_panels_deinit(&conv->panels);
        free(conv->runs);
        free(conv);
}

const char *levels_conv_name(const LevelsConv *conv)
{
        return conv->name;
}

static size_t frame_bytes(const LevelsConv *conv)
{
        return (size_t)(conv->images.input.size[0] * conv->frame[0] * conv->pitch);
}

size_t levels_conv_scratch(const LevelsConv *conv)
{
        return conv->copies ? frame_bytes(conv) + FRAME_SLACK : 0;
}

// ---- running ----
typedef struct ConvRun {
        const RunContext *ctx;
        const LevelsConv *conv;
        const LevelsConvOperands *operands;
        const char *in;
        int32_t zero; // as tiles read it
        LevelsResidual residual;
} ConvRun;

static void fill_zeros(const ConvRun *run, int64_t n, char *to)
{
        if (run->conv->element == 1) {
                memset(to, run->zero, (size_t)n);
                return;
        }
        for (int64_t i = 0; i < n; i++)
                ((int16_t *)(void *)to)[i] = (int16_t)run->zero;
}

static void fill_rows(void *argument, int64_t begin, int64_t end)
{
        const ConvRun *run = argument;
        const LevelsConv *conv = run->conv;
        const TensorMeta *in = &conv->images.input;
        int64_t channels = in->size[1], width = conv->frame[1] * channels,
                before = MIN(conv->images.padding[1] * channels, width),
                n = MIN(in->size[3] * channels, width - before);
        Work work = { .ctx = run->ctx };
        for (int64_t row = begin; row < end && !work_stops(&work, width); row++) {
                int64_t y = row % conv->frame[0] - conv->images.padding[0], image = row / conv->frame[0];
                char *to = (char *)run->operands->scratch + row * conv->pitch;
                if (y < 0 || y >= in->size[2]) {
                        fill_zeros(run, width, to);
                        continue;
                }
                fill_zeros(run, before, to);
                conv->panels.isa->widen(run->operands->in +
                                                (image * in->size[2] + y) * in->size[3] * channels,
                                        n, in->dtype == DTYPE_I8, to + before * conv->element);
                fill_zeros(run, width - before - n, to + (before + n) * conv->element);
        }
}

// A unit: a part of a line, which begins at a row of an image.
typedef struct Unit {
        int64_t line, part, image, row;
} Unit;

static Unit unit_at(const LevelsConv *conv, int64_t unit)
{
        int64_t line = unit / conv->n_parts, rows = conv->images.out.size[2];
        return (Unit){ .line = line, .part = unit % conv->n_parts, .image = line / rows, .row = line % rows };
}

// Divisions take longer than small tiles.
static void next_unit(const LevelsConv *conv, Unit *unit)
{
        if (++unit->part < conv->n_parts)
                return;
        unit->part = 0;
        unit->line++;
        if (++unit->row == conv->images.out.size[2]) {
                unit->row = 0;
                unit->image++;
        }
}

// The first pixels of a line's parts.
static int64_t part_begin(const LevelsConv *conv, int64_t part)
{
        return part * conv->part_pixels + MIN(part, conv->longer_parts);
}

static void run_unit(const ConvRun *run, const Unit *unit, int64_t panel, LevelsTile *tile)
{
        const LevelsConv *conv = run->conv;
        int64_t first = part_begin(conv, unit->part), n = part_begin(conv, unit->part + 1) - first;
        int64_t row = unit->image * conv->frame[0] + unit->row * conv->images.stride[0];
        int64_t to = (unit->line * conv->n_pixels + first) * tile->out_step + panel * conv->panels.width;
        tile->in = run->in + row * conv->pitch + first * tile->in_step;
        tile->out = (char *)run->operands->out + to * (conv->images.as.bytes ? 1 : (int64_t)sizeof(float));
        tile->residual = run->operands->residual == NULL ? NULL : run->operands->residual + to;
        LevelsResidual residual = run->residual;
        if (tile->levels != NULL) {
                residual.levels += to;
                tile->levels = &residual;
        }
        levels_loop(&conv->panels, panel, n)(tile);
}

static void run_panel(const ConvRun *run, int64_t group, int64_t panel, Work *work, LevelsTile *tile)
{
        const LevelsConv *conv = run->conv;
        int64_t first = group * conv->units, last = MIN(conv->n_units, first + conv->units),
                steps = conv->panels.n_steps * (conv->n_pixels / conv->n_parts + 1); // of a unit
        levels_panels_use(&conv->panels, panel, tile);
        LevelsAhead ahead = levels_look_ahead(&conv->panels, panel, conv->units, conv->n_groups > 1, tile);
        Unit unit = unit_at(conv, first);
        tile->ahead_step = ahead.step;
        for (int64_t i = first; i < last && !work_stops(work, steps); i++) {
                tile->ahead = ahead.from + (i - first) * ahead.part_bytes;
                run_unit(run, &unit, panel, tile);
                next_unit(conv, &unit);
        }
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const ConvRun *run = argument;
        const LevelsConv *conv = run->conv;
        LevelsTile tile = { .in_step = conv->images.stride[1] * conv->channel_bytes,
                            .runs = conv->runs,
                            .n_runs = conv->n_runs,
                            .row_scale = conv->images.scale,
                            .row_zero = run->zero,
                            .out_step = conv->images.out.size[1],
                            .levels = run->residual.levels == NULL ? NULL : &run->residual };
        levels_panels_finish(&conv->panels, &conv->images.as, run->operands->residual != NULL, &tile);
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t group = piece / conv->n_chunks, chunk = piece % conv->n_chunks,
                        n_panels = conv->panels.n_panels;
                for (int64_t panel = chunk * n_panels / conv->n_chunks;
                     panel < (chunk + 1) * n_panels / conv->n_chunks; panel++)
                        run_panel(run, group, panel, &work, &tile);
        }
}

Status levels_conv_run(const LevelsConv *conv, const RunContext *ctx, const LevelsConvOperands *operands)
{
        bool flips = conv->panels.isa->terms == 4 && conv->images.input.dtype == DTYPE_I8;
        ConvRun run = { .ctx = ctx,
                        .conv = conv,
                        .operands = operands,
                        .in = (const char *)operands->in,
                        .zero = conv->images.zero + (flips ? 128 : 0),
                        .residual = conv->images.residual };
        run.residual.levels = operands->residual_levels;
        if (conv->copies) {
                int64_t n_rows = conv->images.input.size[0] * conv->frame[0];
                run.in = operands->scratch;
                memset((char *)operands->scratch + frame_bytes(conv), 0, FRAME_SLACK);
                TRY(parallel_for(ctx, n_rows, MAX(32768 / conv->pitch, (int64_t)1), fill_rows, &run));
        }
        TRY(parallel_for(ctx, conv->n_groups * conv->n_chunks, 1, run_piece, &run));
        return run_poll(ctx);
}
