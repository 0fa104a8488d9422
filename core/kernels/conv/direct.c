// SPDX-License-Identifier: Apache-2.0
// direct.c: the choice and order of tiles. The output is cut into stretches of evenly spaced
// pixels. Stretches form groups whose input fits the second-level cache. Within a group each panel
// of weights is used for all stretches while it is in the cache. Where all weights fit there, each
// stretch takes all panels instead: results are then written one after another. Padding is made
// once, by copying the input into a frame of zeros (frame.h). With less precision the frame holds
// rounded numbers, and two channels of bfloat16, or four of 8 bits, are one step of the sum: steps,
// runs and rows of panels count those then.
#include "core/kernels/conv/direct.h"

#include <stdio.h>
#include <string.h>
#include "core/kernels/dense.h"
#include "core/kernels/conv/frame.h"
#include "core/kernels/product/narrow_pack.h"

// Weights that stay in the second-level cache. With these all panels are used for a few stretches
// of pixels before the next ones: so many that their inputs or results take NEAR_ROWS.
enum { SMALL_FRAME = 1 << 16, NEAR_WEIGHTS = 256 << 10, NEAR_ROWS = 32 << 10 };

// ---- convolutions ----
struct DirectConv {
        Panels panels;
        DirectRun *runs;
        uint32_t n_runs;
        uint32_t *block_runs; // the run with which each block begins, and n_runs
        DirectClamp clamp;
        TensorMeta out;
        Frame frame;
        int64_t stride[2];                 // in the frame
        int64_t n_pixels;                  // of a line: an output row, or all there are
        int64_t n_parts, n_units;          // stretches of a line, in all
        int64_t part_pixels, longer_parts; // of a stretch at least; stretches with one more
        int64_t units, n_groups, n_chunks; // of a group at most; groups; pieces of the panels
        int64_t at_once;                   // units that a panel is used for in turn
        char name[32];
};

static bool fits(const DnnlConv *conv)
{
        if (conv->input.rank != 4 || conv->groups != 1 || conv->epilogue.add_out ||
            conv->epilogue.activation != DNNL_NOTHING ||
            (!meta_is_channels_last(&conv->input) && !meta_is_contiguous(&conv->input)) ||
            (!meta_is_channels_last(&conv->out) && conv->out.stride[1] != 1))
                return false;
        for (int i = 0; i < 2; i++) {
                int64_t reach = (conv->weight.size[2 + i] - 1) * conv->dilation[i] + 1;
                if (conv->padding[i] < 0 || conv->padding[i] >= reach || conv->out.size[2 + i] < 1)
                        return false;
        }
        // The frame is copied: where windows reach far beyond the input it would be mostly zeros.
        return meta_numel(&conv->out) > 0 && conv->weight.size[1] > 0 &&
               dnnl_conv_frame(conv) <=
                       MAX(4 * (meta_numel(&conv->input) / conv->input.size[0]), (int64_t)SMALL_FRAME);
}

bool direct_conv_has_bytes(void)
{
        return narrow_isa() != NULL && narrow_isa()->int8->range != NULL;
}

static bool has_one_pixel(const DnnlConv *conv)
{
        return conv->weight.size[2] == 1 && conv->weight.size[3] == 1;
}

// Channels of a pixel of the frame where products are narrow.
static int64_t narrow_channels(const DnnlConv *conv)
{
        return conv->weight.size[1] == 3 && !has_one_pixel(conv) ? 4 : conv->weight.size[1];
}

// How products of less precision are computed; NULL: not at all.
static const NarrowKind *narrow_kind(const DnnlConv *conv, Precision precision)
{
        const NarrowIsa *isa = narrow_isa();
        int64_t channels = narrow_channels(conv),
                n_k = channels * conv->weight.size[2] * conv->weight.size[3];
        if (isa == NULL || !meta_is_channels_last(&conv->input) ||
            !floats_are_finite_bf16(conv->weight_data, &conv->weight))
                return NULL;
        if (precision == PRECISION_INT8 && direct_conv_has_bytes() && channels % isa->int8->terms == 0 &&
            n_k <= INT32_MAX / NARROW_WEIGHT_STEPS / isa->int8->most_steps) // so that sums fit 32 bits
                return isa->int8;
        return isa->bf16->terms != 2 || channels % isa->bf16->terms != 0 ? NULL : isa->bf16;
}

// Elements of a step.
static int64_t terms(const DirectConv *direct)
{
        return direct->frame.narrow == NULL ? 1 : direct->frame.narrow->terms;
}

// The input with its frame, as large as the windows reach.
static void plan_input(const DnnlConv *conv, DirectConv *direct)
{
        Frame *frame = &direct->frame;
        TensorMeta *in = &frame->in;
        *in = conv->input;
        // Strides of dimensions of size 1 are arbitrary.
        if (meta_is_channels_last(in))
                meta_set_channels_last(in);
        else
                meta_set_contiguous(in);
        frame->given = *in;
        frame->n_results = conv->out.size[2] * conv->out.size[3];
        frame->copied = frame->narrow != NULL;
        frame->by_pixel = has_one_pixel(conv) && frame->copied &&
                          (frame->scaled || conv->stride[0] > 1 || conv->stride[1] > 1);
        for (int i = 0; i < 2; i++) {
                int64_t reach = (conv->weight.size[2 + i] - 1) * conv->dilation[i] + 1;
                int64_t last = (conv->out.size[2 + i] - 1) * conv->stride[i] + reach;
                frame->pad[i] = conv->padding[i];
                frame->pick[i] = frame->by_pixel ? conv->stride[i] : 1;
                direct->stride[i] = frame->by_pixel ? 1 : conv->stride[i];
                frame->copied |= conv->padding[i] > 0 || last > in->size[2 + i];
                in->size[2 + i] = frame->by_pixel ? conv->out.size[2 + i]
                                                  : MAX(last, in->size[2 + i] + conv->padding[i]);
        }
        if (frame->narrow != NULL)
                in->size[1] = narrow_channels(conv);
        if (!frame->copied)
                *in = frame->given;
        else if (in->stride[1] == 1 && in->size[1] > 1)
                meta_set_channels_last(in);
        else
                meta_set_contiguous(in);
}

// The weight's elements in the order of memory: the innermost loop walks along what lies together
// in the input. Channels of the frame that the weight does not have come last.
typedef struct Order {
        int64_t n[3], in_step[3], weight_step[3]; // outer to inner
} Order;

static Order order_of(const DnnlConv *conv, const DirectConv *direct)
{
        const TensorMeta *in = &direct->frame.in, *weight = &conv->weight;
        int64_t n_channels = direct->frame.narrow == NULL ? weight->size[1] : in->size[1];
        Order rows = { .n = { weight->size[2], weight->size[3], n_channels },
                       .in_step = { in->stride[2] * conv->dilation[0], in->stride[3] * conv->dilation[1],
                                    in->stride[1] },
                       .weight_step = { weight->stride[2], weight->stride[3], weight->stride[1] } };
        if (in->stride[1] == 1)
                return rows;
        return (Order){ .n = { rows.n[2], rows.n[0], rows.n[1] },
                        .in_step = { rows.in_step[2], rows.in_step[0], rows.in_step[1] },
                        .weight_step = { rows.weight_step[2], rows.weight_step[0], rows.weight_step[1] } };
}

// Element `k` of the sum. The first one of a block begins a run.
static void add_element(DirectConv *direct, int64_t k, int64_t offset, int64_t *n_begun)
{
        DirectRun *last = direct->n_runs == 0 ? NULL : &direct->runs[direct->n_runs - 1];
        bool begins = *n_begun < direct->panels.n_blocks && k == panels_block_at(&direct->panels, *n_begun);
        if (begins)
                direct->block_runs[(*n_begun)++] = direct->n_runs;
        if (!begins && last->offset + last->n == offset)
                last->n++;
        else
                direct->runs[direct->n_runs++] = (DirectRun){ .offset = offset, .n = 1 };
}

static void list_runs(DirectConv *direct, const Order *order)
{
        int64_t n_terms = terms(direct), k = 0, n_begun = 0;
        for (int64_t a = 0; a < order->n[0]; a++)
                for (int64_t b = 0; b < order->n[1]; b++)
                        for (int64_t c = 0; c < order->n[2]; c += n_terms)
                                add_element(direct, k++,
                                            (a * order->in_step[0] + b * order->in_step[1] +
                                             c * order->in_step[2]) /
                                                    n_terms,
                                            &n_begun);
        direct->block_runs[direct->panels.n_blocks] = direct->n_runs;
}

typedef struct ConvWeights {
        const DnnlConv *conv;
        const DirectConv *direct;
        const Order *order;
        float *column; // where products are narrow: room for the terms of one
} ConvWeights;

// Behind the panels: a scale for each column, then their sums.
static const float *scales_of(const Panels *panels, const float *weights)
{
        return weights + panels->n_panels * panels_width(panels) * panels->n_k;
}

static void pack_narrow(const ConvWeights *from, const Panels *panels, int64_t panel, float *weights)
{
        const Order *order = from->order;
        int64_t first = panel * panels_width(panels), n_columns = panels->n_panels * panels_width(panels),
                n = MIN(panels->n_columns - first, (int64_t)panels_width(panels)),
                n_channels = from->conv->weight.size[1], n_terms = order->n[0] * order->n[1] * order->n[2];
        float *scales = (float *)(uintptr_t)scales_of(panels, weights),
              *to = panels_start(panels, weights, panel);
        for (int64_t column = 0; column < n; column++) {
                const float *data = (const float *)from->conv->weight_data +
                                    (first + column) * from->conv->weight.stride[0];
                float *term = from->column;
                for (int64_t a = 0; a < order->n[0]; a++)
                        for (int64_t b = 0; b < order->n[1]; b++)
                                for (int64_t c = 0; c < order->n[2]; c++)
                                        *term++ = c >= n_channels ? 0.0f
                                                                  : data[a * order->weight_step[0] +
                                                                         b * order->weight_step[1] +
                                                                         c * order->weight_step[2]];
                NarrowColumn packed = narrow_pack_column(from->direct->frame.narrow, from->column, n_terms,
                                                         panels_vectors(panels, panel) * panels->isa->lanes *
                                                                 (int64_t)sizeof(float),
                                                         (uint8_t *)(to + column));
                if (panels->n_behind > 0) {
                        scales[first + column] = packed.scale;
                        scales[n_columns + first + column] = packed.weight;
                }
        }
}

static void pack_panel(const void *context, const Panels *panels, int64_t panel, float *weights)
{
        const ConvWeights *from = context;
        const Order *order = from->order;
        int64_t step = from->conv->weight.stride[0], k = 0;
        const float *first = (const float *)from->conv->weight_data + panel * panels_width(panels) * step;
        if (from->column != NULL) {
                pack_narrow(from, panels, panel, weights);
                return;
        }
        for (int64_t a = 0; a < order->n[0]; a++)
                for (int64_t b = 0; b < order->n[1]; b++)
                        for (int64_t c = 0; c < order->n[2]; c++)
                                panels_set(panels, weights, panel, k++,
                                           first + a * order->weight_step[0] + b * order->weight_step[1] +
                                                   c * order->weight_step[2],
                                           step);
}

static const char *prefix_of(const DirectConv *direct)
{
        return direct->frame.narrow == NULL ? "" : direct->frame.scaled ? "int8:" : "bf16:";
}

static Status plan_weights(const DnnlConv *conv, const DirectIsa *isa, DirectConv *direct)
{
        Order order = order_of(conv, direct);
        int64_t n_k = order.n[0] * order.n[1] * order.n[2] / terms(direct), n_out = conv->weight.size[0];
        // Narrow sums are as rough as their terms: one block.
        TRY(panels_init(&direct->panels, isa, n_k, n_out,
                        direct->frame.narrow == NULL ? PANELS_BLOCK : MAX(n_k, (int64_t)1)));
        if (direct->frame.scaled)
                direct->panels.n_behind = 2 * direct->panels.n_panels * panels_width(&direct->panels);
        direct->runs = new_array((size_t)n_k, sizeof(DirectRun));
        direct->block_runs = new_array((size_t)direct->panels.n_blocks + 1, sizeof(uint32_t));
        if (direct->runs == NULL || direct->block_runs == NULL)
                return fail_memory();
        list_runs(direct, &order);
        if (conv->bias_data != NULL)
                memcpy(direct->panels.bias, conv->bias_data, (size_t)n_out * sizeof(float));
        return STATUS_OK;
}

Status direct_conv_pack(DirectConv *direct, const DnnlConv *conv)
{
        Order order = order_of(conv, direct);
        _cleanup_(freep) float *column = NULL;
        if (direct->frame.narrow != NULL) {
                column = new_array((size_t)(order.n[0] * order.n[1] * order.n[2]), sizeof(float));
                if (column == NULL)
                        return fail_memory();
        }
        char format[192];
        snprintf(format, sizeof(format), "%s%ld,%ld,%ld of %ld by %ld,%ld,%ld,%ld", prefix_of(direct),
                 (long)order.n[0], (long)order.n[1], (long)order.n[2], (long)conv->weight.size[1],
                 (long)order.weight_step[0], (long)order.weight_step[1], (long)order.weight_step[2],
                 (long)conv->weight.stride[0]);
        DirectSource source = { .share = conv->share, .data = conv->weight_data };
        ConvWeights from = { .conv = conv, .direct = direct, .order = &order, .column = column };
        return panels_fill(&direct->panels, &source, format,
                           (PanelFill){ .fill = pack_panel, .context = &from });
}

// Output pixels that are evenly spaced in both images: a row, or the whole output.
static void plan_units(const DnnlConv *conv, DirectConv *direct)
{
        const TensorMeta *in = &direct->frame.in, *out = &direct->out;
        int64_t rows = out->size[2], pixel_step = in->stride[3] * direct->stride[1];
        bool rows_join = in->stride[2] * direct->stride[0] == out->size[3] * pixel_step &&
                         in->stride[0] == rows * out->size[3] * pixel_step;
        direct->n_pixels = out->size[3];
        if (rows_join && meta_is_channels_last(out))
                direct->n_pixels *= rows * out->size[0];
        int64_t most = direct->frame.narrow != NULL ? (int64_t)direct->frame.narrow->most_rows
                                                    : panels_most_pixels(direct->panels.isa, pixel_step),
                n_lines = meta_numel(out) / out->size[1] / direct->n_pixels;
        direct->n_parts = (direct->n_pixels + most - 1) / most;
        direct->part_pixels = direct->n_pixels / direct->n_parts;
        direct->longer_parts = direct->n_pixels % direct->n_parts;
        direct->n_units = n_lines * direct->n_parts;
        int64_t all_bytes = meta_numel(in) * frame_element_bytes(&direct->frame);
        int64_t weight_bytes = direct->panels.n_panels * panels_width(&direct->panels) * direct->panels.n_k *
                               (int64_t)sizeof(float);
        PanelsCut cut = panels_cut(direct->n_units,
                                   MIN(MAX(all_bytes / PANELS_GROUP_BYTES, (int64_t)1), direct->n_units),
                                   direct->panels.n_panels, conv->n_threads,
                                   all_bytes + meta_numel(out) * (int64_t)sizeof(float) > weight_bytes);
        direct->n_groups = cut.n_groups;
        direct->n_chunks = cut.n_chunks;
        direct->units = (direct->n_units + direct->n_groups - 1) / direct->n_groups;
        int64_t row_bytes = direct->part_pixels * MAX(pixel_step, out->size[1]) * (int64_t)sizeof(float);
        direct->at_once =
                direct->frame.narrow == NULL && direct->panels.n_panels > 1 && weight_bytes <= NEAR_WEIGHTS
                        ? MIN(MAX(NEAR_ROWS / row_bytes, (int64_t)1), direct->units)
                        : direct->units;
}

Status direct_conv_plan(const DnnlConv *conv, Precision precision, const DirectClamp *clamp,
                        DirectConv **out_conv)
{
        *out_conv = NULL;
        const DirectIsa *isa = direct_isa();
        if (isa == NULL || !fits(conv))
                return STATUS_OK;
        bool narrow = precision != PRECISION_F32;
        const NarrowKind *kind = narrow ? narrow_kind(conv, precision) : NULL;
        if (narrow && kind == NULL)
                return STATUS_OK;
        DirectConv *direct = calloc(1, sizeof(*direct));
        if (direct == NULL)
                return fail_memory();
        direct->out = conv->out;
        if (meta_is_channels_last(&direct->out)) // strides of dimensions of size 1 are arbitrary
                meta_set_channels_last(&direct->out);
        direct->clamp = *clamp;
        direct->frame.narrow = kind;
        direct->frame.scaled = kind != NULL && kind->range != NULL;
        plan_input(conv, direct);
        Status status = plan_weights(conv, isa, direct);
        if (status != STATUS_OK) {
                direct_conv_free(direct);
                return status;
        }
        plan_units(conv, direct);
        snprintf(direct->name, sizeof(direct->name), "%sdirect:%s", prefix_of(direct),
                 narrow ? kind->name : isa_name(isa->isa));
        *out_conv = direct;
        return STATUS_OK;
}

Status direct_conv_new(const DnnlConv *conv, Precision precision, const DirectClamp *clamp,
                       DirectConv **out_conv)
{
        TRY(direct_conv_plan(conv, precision, clamp, out_conv));
        if (*out_conv == NULL)
                return STATUS_OK;
        Status status = direct_conv_pack(*out_conv, conv);
        if (status != STATUS_OK) {
                direct_conv_free(*out_conv);
                *out_conv = NULL;
        }
        return status;
}

void direct_conv_free(DirectConv *conv)
{
        if (conv == NULL)
                return;
        panels_deinit(&conv->panels);
        free(conv->block_runs);
        free(conv->runs);
        free(conv);
}

const char *direct_conv_name(const DirectConv *conv)
{
        return conv->name;
}

size_t direct_conv_scratch(const DirectConv *conv)
{
        return frame_scratch(&conv->frame);
}

// ---- running ----
typedef struct ConvRun {
        const RunContext *ctx;
        const DirectConv *conv;
        Framed framed;
        const float *residual;
        float *out;
} ConvRun;

// Where a unit lies. Places are counted on: divisions take as long as a small tile.
typedef struct Place {
        int64_t unit, part, line, image, y; // the unit in its group, the stretch in its line
        int64_t panel, block;               // of the weights, of the sum
} Place;

// The first unit of a group.
static int64_t group_at(const DirectConv *conv, int64_t group)
{
        return group * conv->n_units / conv->n_groups;
}

static Place place_of(const DirectConv *conv, int64_t group)
{
        int64_t unit = group_at(conv, group), line = unit / conv->n_parts, rows = conv->out.size[2];
        return (Place){ .part = unit % conv->n_parts, .line = line, .image = line / rows, .y = line % rows };
}

static void place_next(const DirectConv *conv, Place *place)
{
        place->unit++;
        if (++place->part < conv->n_parts)
                return;
        place->part = 0;
        place->line++;
        if (++place->y < conv->out.size[2])
                return;
        place->y = 0;
        place->image++;
}

// The stretch `part` of a line begins here; the first ones are one pixel longer.
static int64_t part_at(const DirectConv *conv, int64_t part)
{
        return part * conv->part_pixels + MIN(part, conv->longer_parts);
}

static void run_unit(const ConvRun *run, const Place *place, NarrowTile *tile)
{
        const DirectConv *conv = run->conv;
        const Frame *frame = &conv->frame;
        const Panels *panels = &conv->panels;
        const TensorMeta *in = &frame->in;
        int64_t first = part_at(conv, place->part), next = part_at(conv, place->part + 1);
        int64_t width = panels_width(panels), pixel = place->line * conv->n_pixels + first;
        int64_t to = place->image * conv->out.stride[0] + place->y * conv->out.stride[2] +
                     first * conv->out.stride[3] + place->panel * width,
                from = place->image * in->stride[0] + place->y * conv->stride[0] * in->stride[2] +
                       first * tile->to.pixel_step;
        const char *at = (const char *)run->framed.in + from * frame_element_bytes(frame);
        int vectors = panels_vectors(panels, place->panel);
        panels_to(&tile->to, place->block, run->out, run->residual, to);
        if (frame->narrow == NULL) {
                tile->to.in = (const float *)(const void *)at;
                panels->isa->of[vectors - 1][next - first - 1](&tile->to);
                return;
        }
        tile->in = at;
        narrow_look_ahead(&(NarrowPanels){ panels->n_panels, width * (int64_t)sizeof(float) * panels->n_k,
                                           panels->n_k, conv->n_groups > 1 },
                          place->panel, place->unit, conv->units, tile);
        if (frame->scaled) {
                tile->row_scale = run->framed.scales + pixel;
                tile->row_offset = run->framed.offsets + pixel;
        }
        frame->narrow->loops[vectors - 1][next - first - 1](tile);
}

static void use_panel(const DirectConv *conv, const Place *place, NarrowTile *tile)
{
        const Panels *panels = &conv->panels;
        int64_t panel = place->panel, block = place->block;
        panels_use(panels, panel, block, &tile->to);
        tile->to.runs = conv->runs + conv->block_runs[block];
        tile->to.n_runs = conv->block_runs[block + 1] - conv->block_runs[block];
        tile->to.clamps = conv->clamp.on && block == conv->panels.n_blocks - 1;
        tile->weights = (const uint8_t *)tile->to.weights;
        tile->column_scale = scales_of(panels, panels->weights) + panel * panels_width(panels);
        tile->column_weight = tile->column_scale + panels->n_panels * panels_width(panels);
}

// One block of a panel for the units from `place` on, before `last`. Returns where it ended.
static Place run_block(const ConvRun *run, Place place, int64_t last, Work *work, NarrowTile *tile)
{
        const DirectConv *conv = run->conv;
        int64_t n_k = conv->panels.n_blocks == 1 ? conv->panels.n_k : PANELS_BLOCK,
                steps = n_k * DIRECT_VECTORS * (conv->part_pixels + 1) / 2; // of a unit
        use_panel(conv, &place, tile);
        for (; place.unit < last && !work_stops(work, steps); place_next(conv, &place))
                run_unit(run, &place, tile);
        return place;
}

// The panels of one chunk for the units of a group.
static void run_group(const ConvRun *run, int64_t group, int64_t chunk, Work *work, NarrowTile *tile)
{
        const DirectConv *conv = run->conv;
        int64_t n_panels = conv->panels.n_panels, n = group_at(conv, group + 1) - group_at(conv, group);
        int64_t begin = chunk * n_panels / conv->n_chunks, end = (chunk + 1) * n_panels / conv->n_chunks;
        Place first = place_of(conv, group);
        while (begin < end && first.unit < n && !work->stops) {
                int64_t last = MIN(first.unit + conv->at_once, n);
                Place place = first;
                for (first.panel = begin; first.panel < end; first.panel++)
                        for (first.block = 0; first.block < conv->panels.n_blocks; first.block++)
                                place = run_block(run, first, last, work, tile);
                first = place;
        }
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const ConvRun *run = argument;
        const DirectConv *conv = run->conv;
        int64_t pixel_step = conv->frame.in.stride[3] * conv->stride[1];
        NarrowTile tile = { .to = { .pixel_step = pixel_step,
                                    .out_step = conv->out.stride[3],
                                    .low = conv->clamp.low,
                                    .high = conv->clamp.high },
                            .in_step = pixel_step * frame_element_bytes(&conv->frame),
                            .runs = conv->runs,
                            .n_runs = conv->n_runs };
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++)
                run_group(run, piece / conv->n_chunks, piece % conv->n_chunks, &work, &tile);
}

static Status run_pieces(ConvRun *run)
{
        TRY(parallel_for(run->ctx, run->conv->n_groups * run->conv->n_chunks, 1, run_piece, run));
        return run_poll(run->ctx);
}

Status direct_conv_run(const DirectConv *conv, const RunContext *ctx, const float *in, const float *residual,
                       float *out, void *scratch)
{
        ConvRun run = { .ctx = ctx, .conv = conv, .residual = residual, .out = out };
        TRY(frame_fill(&conv->frame, ctx, in, scratch, &run.framed));
        return run_pieces(&run);
}

Status direct_convs_run(const DirectPart *parts, int n, const RunContext *ctx, const DirectImages *images)
{
        Framed framed = { 0 };
        for (int i = 0; i < n; i++) {
                const DirectPart *part = &parts[i];
                if (i == 0 || !frame_is_same(&part->conv->frame, &parts[i - 1].conv->frame))
                        TRY(frame_fill(&part->conv->frame, ctx, images->in, images->scratch, &framed));
                ConvRun run = { .ctx = ctx,
                                .conv = part->conv,
                                .framed = framed,
                                .residual = images->residual == NULL ? NULL : images->residual + part->offset,
                                .out = images->out + part->offset };
                run.framed.in = (const float *)framed.in + part->in_offset;
                TRY(run_pieces(&run));
        }
        return STATUS_OK;
}

// ---- products ----
struct DirectProducts {
        Panels panels; // of all planes, side by side
        DirectGroups groups;
        int64_t n_planes, n_taps, n_columns, plane_panels;
        char name[32];
};

enum { LEAST_TAP = 16, MOST_RUNS = PLANES_BLOCK / LEAST_TAP + 2 }; // pieces of a row; of a block

static void pack_plane_panel(const void *context, const Panels *panels, int64_t panel, float *weights)
{
        const DirectPlanes *planes = context;
        int64_t plane_panels = planes->n_columns / panels_width(panels), plane = panel / plane_panels;
        const float *from = planes->b + plane * panels->n_k * planes->n_columns +
                            panel % plane_panels * panels_width(panels);
        for (int64_t k = 0; k < panels->n_k; k++)
                panels_set(panels, weights, panel, k, from + k * planes->n_columns, 1);
}

Status direct_products_new(const DirectPlanes *planes, DirectProducts **out_products)
{
        *out_products = NULL;
        const DirectIsa *isa = direct_isa();
        if (isa == NULL || planes->n_columns % (DIRECT_VECTORS * isa->lanes) != 0 ||
            (planes->n_taps > 1 && planes->groups.n_in < LEAST_TAP))
                return STATUS_OK;
        int64_t n_k = planes->n_taps * planes->groups.n_in *
                      direct_most_groups(&planes->groups, DIRECT_VECTORS * isa->lanes);
        DirectProducts *products = calloc(1, sizeof(*products));
        Status status = products == NULL ? fail_memory()
                                         : panels_init(&products->panels, isa, n_k,
                                                       planes->n_planes * planes->n_columns, PLANES_BLOCK);
        if (status == STATUS_OK)
                status = panels_fill(&products->panels, &planes->source, planes->format,
                                     (PanelFill){ .fill = pack_plane_panel, .context = planes });
        if (status != STATUS_OK) {
                direct_products_free(products);
                return status;
        }
        products->n_planes = planes->n_planes;
        products->n_taps = planes->n_taps;
        products->groups = planes->groups;
        products->n_columns = planes->n_columns;
        products->plane_panels = planes->n_columns / panels_width(&products->panels);
        snprintf(products->name, sizeof(products->name), "direct:%s", isa_name(isa->isa));
        *out_products = products;
        return STATUS_OK;
}

void direct_products_free(DirectProducts *products)
{
        if (products == NULL)
                return;
        panels_deinit(&products->panels);
        free(products);
}

const char *direct_products_name(const DirectProducts *products)
{
        return products->name;
}

typedef struct ProductsRun {
        const RunContext *ctx;
        const DirectProducts *products;
        const DirectRows *rows;
} ProductsRun;

// The pieces of a row that block `block` multiplies for columns of the groups of `span`. Returns
// how many.
static uint32_t list_pieces(const ProductsRun *run, DirectSpan span, int64_t block,
                            DirectRun pieces[MOST_RUNS])
{
        const DirectProducts *products = run->products;
        const Panels *panels = &products->panels;
        int64_t n_in = products->groups.n_in, tap_k = span.n * n_in;
        int64_t end = MIN(panels_block_at(panels, block + 1), products->n_taps * tap_k);
        uint32_t n = 0;
        for (int64_t k = panels_block_at(panels, block), next; k < end; k = next) {
                int64_t tap = k / tap_k;
                next = MIN((tap + 1) * tap_k, end);
                pieces[n++] =
                        (DirectRun){ .offset = span.first * n_in + tap * run->rows->tap_step + k % tap_k,
                                     .n = next - k };
        }
        return n;
}

// One block of a panel for all rows.
static void run_rows(const ProductsRun *run, int64_t panel, int64_t block, Work *work)
{
        const DirectProducts *products = run->products;
        const DirectRows *rows = run->rows;
        const Panels *panels = &products->panels;
        int64_t n_columns = products->n_columns, row = products->groups.n * products->groups.n_in;
        int64_t most = panels_most_pixels(panels->isa, row), n_parts = (rows->n + most - 1) / most;
        int64_t steps = most * (panels->n_k / panels->n_blocks) * DIRECT_VECTORS;
        int64_t plane = panel / products->plane_panels,
                column = panel % products->plane_panels * panels_width(panels),
                to = plane * rows->out_step + column;
        DirectSpan span = direct_span(&products->groups, column, panels_width(panels));
        DirectRun pieces[MOST_RUNS];
        DirectTile tile = { .pixel_step = row,
                            .runs = pieces,
                            .n_runs = list_pieces(run, span, block, pieces),
                            .out_step = n_columns };
        panels_use(panels, panel, block, &tile);
        for (int64_t part = 0; part < n_parts && !work_stops(work, steps); part++) {
                int64_t first = part * rows->n / n_parts, next = (part + 1) * rows->n / n_parts;
                tile.in = rows->a + plane * rows->a_step + first * row;
                panels_to(&tile, block, rows->out, NULL, to + first * n_columns);
                panels->isa->of[DIRECT_VECTORS - 1][next - first - 1](&tile);
        }
}

static void run_panels(void *argument, int64_t begin, int64_t end)
{
        const ProductsRun *run = argument;
        Work work = { .ctx = run->ctx };
        for (int64_t panel = begin; panel < end && !work.stops; panel++)
                for (int64_t block = 0; block < run->products->panels.n_blocks; block++)
                        run_rows(run, panel, block, &work);
}

Status direct_products_run(const DirectProducts *products, const RunContext *ctx, const DirectRows *rows)
{
        ProductsRun run = { ctx, products, rows };
        int64_t work = rows->n * products->panels.n_k * panels_width(&products->panels);
        TRY(parallel_for(ctx, products->panels.n_panels, MAX((int64_t)1, 1000000 / MAX(work, (int64_t)1)),
                         run_panels, &run));
        return run_poll(ctx);
}
