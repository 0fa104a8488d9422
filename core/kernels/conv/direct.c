// SPDX-License-Identifier: Apache-2.0
// direct.c: the choice and order of tiles. The output is cut into stretches of evenly spaced
// pixels. Stretches form groups whose input fits the second-level cache. Within a group each panel
// of weights is used for all stretches while it is in the cache. Padding is made once, by copying
// the input into a frame of zeros. In bfloat16 the frame holds rounded numbers, and two channels
// are one step of the sum: steps, runs and rows of panels count pairs then.
#include "core/kernels/conv/direct.h"

#include <stdio.h>
#include <string.h>
#include "core/kernels/dense.h"
#include "core/kernels/product/narrow_tile.h"

enum { SMALL_FRAME = 1 << 16 };

// ---- convolutions ----
struct DirectConv {
        Panels panels;
        DirectRun *runs;
        uint32_t n_runs;
        DirectClamp clamp;
        TensorMeta in, out; // `in` as read: with padding
        TensorMeta given;
        int64_t pad[2], stride[2];
        bool padded;                       // or rounded: the frame is in scratch
        const NarrowKind *narrow;          // bfloat16; NULL: float32
        int64_t n_pixels;                  // of a line: an output row, or all there are
        int64_t n_parts, n_units;          // stretches of a line, in all
        int64_t units, n_groups, n_chunks; // of a group; groups; pieces that the panels are cut into
        char name[32];
};

static bool fits(const DnnlConv *conv)
{
        if (conv->input.rank != 4 || conv->groups != 1 || conv->epilogue.add_out ||
            conv->epilogue.activation != DNNL_NOTHING || !meta_is_channels_last(&conv->out) ||
            (!meta_is_channels_last(&conv->input) && !meta_is_contiguous(&conv->input)))
                return false;
        for (int i = 0; i < 2; i++) {
                int64_t reach = (conv->weight.size[2 + i] - 1) * conv->dilation[i] + 1;
                if (conv->padding[i] >= reach || conv->out.size[2 + i] < 1)
                        return false;
        }
        // The frame is copied: where windows reach far beyond the input it would be mostly zeros.
        return meta_numel(&conv->out) > 0 && conv->weight.size[1] > 0 &&
               dnnl_conv_frame(conv) <=
                       MAX(4 * (meta_numel(&conv->input) / conv->input.size[0]), (int64_t)SMALL_FRAME);
}

// How products of bfloat16 are computed here; NULL: not at all.
static const NarrowKind *narrow_kind(const DnnlConv *conv)
{
        const NarrowIsa *isa = narrow_isa();
        return isa == NULL || isa->bf16.terms != 2 || !meta_is_channels_last(&conv->input) ||
                               conv->weight.size[1] % 2 != 0 ||
                               !floats_are_finite(conv->weight_data, &conv->weight)
                       ? NULL
                       : &isa->bf16;
}

static int64_t element_bytes(const DirectConv *direct)
{
        return direct->narrow == NULL ? (int64_t)sizeof(float) : 2;
}

// Elements of a step.
static int64_t terms(const DirectConv *direct)
{
        return direct->narrow == NULL ? 1 : direct->narrow->terms;
}

// The input with its frame, as large as the windows reach.
static void plan_input(const DnnlConv *conv, DirectConv *direct)
{
        TensorMeta *in = &direct->in;
        *in = conv->input;
        // Strides of dimensions of size 1 are arbitrary.
        if (meta_is_channels_last(in))
                meta_set_channels_last(in);
        else
                meta_set_contiguous(in);
        direct->given = *in;
        for (int i = 0; i < 2; i++) {
                int64_t reach = (conv->weight.size[2 + i] - 1) * conv->dilation[i] + 1;
                int64_t last = (conv->out.size[2 + i] - 1) * conv->stride[i] + reach;
                direct->pad[i] = conv->padding[i];
                direct->stride[i] = conv->stride[i];
                direct->padded |= conv->padding[i] > 0 || last > in->size[2 + i];
                in->size[2 + i] = MAX(last, in->size[2 + i] + conv->padding[i]);
        }
        if (!direct->padded)
                *in = direct->given;
        else if (in->stride[1] == 1 && in->size[1] > 1)
                meta_set_channels_last(in);
        else
                meta_set_contiguous(in);
}

// The weight's elements in the order of memory: the innermost loop walks along what lies together
// in the input.
typedef struct Order {
        int64_t n[3], in_step[3], weight_step[3]; // outer to inner
} Order;

static Order order_of(const DnnlConv *conv, const DirectConv *direct)
{
        const TensorMeta *in = &direct->in, *weight = &conv->weight;
        Order rows = { .n = { weight->size[2], weight->size[3], weight->size[1] },
                       .in_step = { in->stride[2] * conv->dilation[0], in->stride[3] * conv->dilation[1],
                                    in->stride[1] },
                       .weight_step = { weight->stride[2], weight->stride[3], weight->stride[1] } };
        if (in->stride[1] == 1)
                return rows;
        return (Order){ .n = { rows.n[2], rows.n[0], rows.n[1] },
                        .in_step = { rows.in_step[2], rows.in_step[0], rows.in_step[1] },
                        .weight_step = { rows.weight_step[2], rows.weight_step[0], rows.weight_step[1] } };
}

static void add_element(DirectConv *direct, int64_t offset)
{
        DirectRun *last = direct->n_runs == 0 ? NULL : &direct->runs[direct->n_runs - 1];
        if (last != NULL && last->offset + last->n == offset)
                last->n++;
        else
                direct->runs[direct->n_runs++] = (DirectRun){ .offset = offset, .n = 1 };
}

typedef struct ConvWeights {
        const DnnlConv *conv;
        const Order *order;
        bool pairs;
} ConvWeights;

// Row `k` of a panel: pairs of bfloat16 from the elements at `from` and `next`.
static void set_pairs(const Panels *panels, float *weights, int64_t panel, int64_t k, const float *from,
                      const ConvWeights *all)
{
        float row[DIRECT_VECTORS * 16];
        int64_t step = all->conv->weight.stride[0], next = all->order->weight_step[2],
                n = MIN(panels->n_columns - panel * panels_width(panels), (int64_t)panels_width(panels));
        for (int64_t c = 0; c < n; c++) {
                uint16_t pair[2] = { f32_to_bf16(from[c * step]), f32_to_bf16(from[c * step + next]) };
                memcpy(row + c, pair, sizeof(pair));
        }
        panels_set(panels, weights, panel, k, row, 1);
}

static void pack_panel(const void *context, const Panels *panels, int64_t panel, float *weights)
{
        const ConvWeights *from = context;
        const Order *order = from->order;
        int64_t step = from->conv->weight.stride[0], k = 0;
        const float *first = (const float *)from->conv->weight_data + panel * panels_width(panels) * step;
        for (int64_t a = 0; a < order->n[0]; a++)
                for (int64_t b = 0; b < order->n[1]; b++)
                        for (int64_t c = 0; c < order->n[2]; c += from->pairs ? 2 : 1) {
                                const float *at = first + a * order->weight_step[0] +
                                                  b * order->weight_step[1] + c * order->weight_step[2];
                                if (from->pairs)
                                        set_pairs(panels, weights, panel, k++, at, from);
                                else
                                        panels_set(panels, weights, panel, k++, at, step);
                        }
}

static Status pack_weights(const DnnlConv *conv, const DirectIsa *isa, DirectConv *direct)
{
        Order order = order_of(conv, direct);
        int64_t n_terms = terms(direct), n_k = order.n[0] * order.n[1] * order.n[2] / n_terms,
                n_out = conv->weight.size[0];
        TRY(panels_init(&direct->panels, isa, n_k, n_out));
        direct->runs = new_array((size_t)n_k, sizeof(DirectRun));
        if (direct->runs == NULL)
                return fail_memory();
        for (int64_t a = 0; a < order.n[0]; a++)
                for (int64_t b = 0; b < order.n[1]; b++)
                        for (int64_t c = 0; c < order.n[2]; c += n_terms)
                                add_element(direct, (a * order.in_step[0] + b * order.in_step[1] +
                                                     c * order.in_step[2]) /
                                                            n_terms);
        char format[128];
        snprintf(format, sizeof(format), "%s%ld,%ld,%ld by %ld,%ld,%ld,%ld",
                 direct->narrow == NULL ? "" : "bf16 ", (long)order.n[0], (long)order.n[1], (long)order.n[2],
                 (long)order.weight_step[0], (long)order.weight_step[1], (long)order.weight_step[2],
                 (long)conv->weight.stride[0]);
        DirectSource source = { .share = conv->share, .data = conv->weight_data };
        ConvWeights from = { .conv = conv, .order = &order, .pairs = direct->narrow != NULL };
        TRY(panels_fill(&direct->panels, &source, format,
                        (PanelFill){ .fill = pack_panel, .context = &from }));
        if (conv->bias_data != NULL)
                memcpy(direct->panels.bias, conv->bias_data, (size_t)n_out * sizeof(float));
        return STATUS_OK;
}

// Output pixels that are evenly spaced in the input, too: a row, or the whole output.
static void plan_units(const DnnlConv *conv, DirectConv *direct)
{
        const TensorMeta *in = &direct->in, *out = &conv->out;
        int64_t rows = out->size[2], pixel_step = in->stride[3] * direct->stride[1];
        bool rows_join = in->stride[2] * direct->stride[0] == out->size[3] * pixel_step;
        direct->n_pixels = out->size[3];
        if (rows_join && in->stride[0] == rows * out->size[3] * pixel_step)
                direct->n_pixels *= rows * out->size[0];
        int64_t most = direct->narrow != NULL ? (int64_t)direct->narrow->most_rows
                                              : panels_most_pixels(direct->panels.isa, pixel_step),
                n_lines = meta_numel(out) / out->size[1] / direct->n_pixels;
        direct->n_parts = (direct->n_pixels + most - 1) / most;
        direct->n_units = n_lines * direct->n_parts;
        int64_t all_bytes = meta_numel(in) * element_bytes(direct);
        direct->n_groups = MIN(MAX(all_bytes / PANELS_GROUP_BYTES, (int64_t)1), direct->n_units);
        direct->units = (direct->n_units + direct->n_groups - 1) / direct->n_groups;
        direct->n_groups = (direct->n_units + direct->units - 1) / direct->units;
        direct->n_chunks = conv->n_threads > 1 && direct->n_groups < 4 * conv->n_threads
                                   ? MIN(direct->panels.n_panels, 4 * conv->n_threads)
                                   : 1;
}

Status direct_conv_new(const DnnlConv *conv, Precision precision, const DirectClamp *clamp,
                       DirectConv **out_conv)
{
        *out_conv = NULL;
        const DirectIsa *isa = direct_isa();
        if (isa == NULL || !fits(conv))
                return STATUS_OK;
        bool narrow = precision != PRECISION_F32;
        const NarrowKind *kind = narrow ? narrow_kind(conv) : NULL;
        if (narrow && kind == NULL)
                return STATUS_OK;
        DirectConv *direct = calloc(1, sizeof(*direct));
        if (direct == NULL)
                return fail_memory();
        direct->out = conv->out;
        direct->clamp = *clamp;
        direct->narrow = kind;
        plan_input(conv, direct);
        direct->padded |= narrow;
        Status status = pack_weights(conv, isa, direct);
        if (status != STATUS_OK) {
                direct_conv_free(direct);
                return status;
        }
        plan_units(conv, direct);
        snprintf(direct->name, sizeof(direct->name), "%sdirect:%s", narrow ? "bf16:" : "",
                 narrow ? direct->narrow->name : isa_name(isa->isa));
        *out_conv = direct;
        return STATUS_OK;
}

void direct_conv_free(DirectConv *conv)
{
        if (conv == NULL)
                return;
        panels_deinit(&conv->panels);
        free(conv->runs);
        free(conv);
}

const char *direct_conv_name(const DirectConv *conv)
{
        return conv->name;
}

size_t direct_conv_scratch(const DirectConv *conv)
{
        return conv->padded ? (size_t)(meta_numel(&conv->in) * element_bytes(conv)) : 0;
}

// ---- padding ----
typedef struct Padding {
        const RunContext *ctx;
        const DirectConv *conv;
        const float *in;
        char *out;
        int64_t n_inner, planes; // elements of a pixel; planes of rows: images, or images times channels
} Padding;

static void pad_rows(void *argument, int64_t begin, int64_t end)
{
        const Padding *padding = argument;
        const DirectConv *conv = padding->conv;
        int64_t rows = conv->in.size[2], inner = padding->n_inner, width = conv->in.size[3] * inner,
                from_width = conv->given.size[3] * inner;
        int64_t before = conv->pad[1] * inner, after = width - before - from_width,
                bytes = element_bytes(conv);
        Work work = { .ctx = padding->ctx };
        for (int64_t r = begin; r < end && !work_stops(&work, width); r++) {
                int64_t y = r % rows - conv->pad[0];
                char *to = padding->out + r * width * bytes;
                if (y < 0 || y >= conv->given.size[2]) {
                        memset(to, 0, (size_t)(width * bytes));
                        continue;
                }
                const float *from = padding->in + (r / rows * conv->given.size[2] + y) * from_width;
                memset(to, 0, (size_t)(before * bytes));
                if (conv->narrow != NULL)
                        conv->narrow->round(from, from_width, 0, to + before * bytes);
                else
                        memcpy(to + before * bytes, from, (size_t)(from_width * bytes));
                memset(to + (before + from_width) * bytes, 0, (size_t)(after * bytes));
        }
}

static Status pad(const DirectConv *conv, const RunContext *ctx, const float *in, void *scratch)
{
        bool last = conv->in.stride[1] == 1;
        Padding padding = { .ctx = ctx,
                            .conv = conv,
                            .in = in,
                            .out = scratch,
                            .n_inner = last ? conv->in.size[1] : 1,
                            .planes = conv->in.size[0] * (last ? 1 : conv->in.size[1]) };
        int64_t width = conv->in.size[3] * padding.n_inner;
        return parallel_for(ctx, padding.planes * conv->in.size[2],
                            MAX((int64_t)1, 32768 / MAX(width, (int64_t)1)), pad_rows, &padding);
}

// ---- running ----
typedef struct ConvRun {
        const RunContext *ctx;
        const DirectConv *conv;
        const void *in; // with its frame
        const float *residual;
        float *out;
} ConvRun;

static void run_narrow(const DirectConv *conv, const char *in, int64_t n_pixels, int vectors,
                       const DirectTile *tile)
{
        NarrowTile narrow = { .to = *tile,
                              .in = in,
                              .in_step = tile->pixel_step * element_bytes(conv),
                              .runs = tile->runs,
                              .n_runs = tile->n_runs,
                              .weights = (const uint8_t *)tile->weights };
        conv->narrow->loops[vectors - 1][n_pixels - 1](&narrow);
}

static void run_unit(const ConvRun *run, int64_t unit, int vectors, DirectTile *tile)
{
        const DirectConv *conv = run->conv;
        int64_t line = unit / conv->n_parts, part = unit % conv->n_parts;
        int64_t first = part * conv->n_pixels / conv->n_parts,
                next = (part + 1) * conv->n_pixels / conv->n_parts;
        int64_t rows = conv->out.size[2], image = line / rows, y = line % rows,
                channel = tile->bias - conv->panels.bias;
        int64_t to = (line * conv->n_pixels + first) * conv->out.size[1] + channel;
        int64_t from = image * conv->in.stride[0] + y * conv->stride[0] * conv->in.stride[2] +
                       first * tile->pixel_step;
        const char *in = (const char *)run->in + from * element_bytes(conv);
        tile->out = run->out + to;
        tile->residual = run->residual == NULL ? NULL : run->residual + to;
        if (conv->narrow != NULL) {
                run_narrow(conv, in, next - first, vectors, tile);
                return;
        }
        tile->in = (const float *)(const void *)in;
        conv->panels.isa->of[vectors - 1][next - first - 1](tile);
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const ConvRun *run = argument;
        const DirectConv *conv = run->conv;
        DirectTile tile = { .pixel_step = conv->in.stride[3] * conv->stride[1],
                            .runs = conv->runs,
                            .n_runs = conv->n_runs,
                            .out_step = conv->out.size[1],
                            .clamps = conv->clamp.on,
                            .low = conv->clamp.low,
                            .high = conv->clamp.high };
        Work work = { .ctx = run->ctx };
        // of a unit with one panel
        int64_t steps = conv->panels.n_k * DIRECT_VECTORS * (conv->n_pixels / conv->n_parts + 1) / 2;
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t group = piece / conv->n_chunks, chunk = piece % conv->n_chunks,
                        n_panels = conv->panels.n_panels;
                int64_t last = MIN(conv->n_units, (group + 1) * conv->units);
                for (int64_t panel = chunk * n_panels / conv->n_chunks;
                     panel < (chunk + 1) * n_panels / conv->n_chunks; panel++) {
                        panels_use(&conv->panels, panel, &tile);
                        for (int64_t unit = group * conv->units; unit < last && !work_stops(&work, steps);
                             unit++)
                                run_unit(run, unit, panels_vectors(&conv->panels, panel), &tile);
                }
        }
}

Status direct_conv_run(const DirectConv *conv, const RunContext *ctx, const float *in, const float *residual,
                       float *out, void *scratch)
{
        ConvRun run = { .ctx = ctx, .conv = conv, .in = in, .residual = residual, .out = out };
        if (conv->padded) {
                TRY(pad(conv, ctx, in, scratch));
                run.in = scratch;
        }
        TRY(parallel_for(ctx, conv->n_groups * conv->n_chunks, 1, run_piece, &run));
        return run_poll(ctx);
}

// ---- products ----
struct DirectProducts {
        Panels panels; // of all planes, side by side
        int64_t n_planes, n_columns, plane_panels;
        DirectRun run;
        char name[32];
};

static void pack_plane_panel(const void *context, const Panels *panels, int64_t panel, float *weights)
{
        const DirectPlanes *planes = context;
        int64_t plane_panels = planes->n_columns / panels_width(panels), plane = panel / plane_panels;
        const float *from = planes->b + plane * planes->n_k * planes->n_columns +
                            panel % plane_panels * panels_width(panels);
        for (int64_t k = 0; k < planes->n_k; k++)
                panels_set(panels, weights, panel, k, from + k * planes->n_columns, 1);
}

Status direct_products_new(const DirectPlanes *planes, DirectProducts **out_products)
{
        *out_products = NULL;
        const DirectIsa *isa = direct_isa();
        if (isa == NULL || planes->n_columns % (DIRECT_VECTORS * isa->lanes) != 0)
                return STATUS_OK;
        DirectProducts *products = calloc(1, sizeof(*products));
        Status status = products == NULL ? fail_memory()
                                         : panels_init(&products->panels, isa, planes->n_k,
                                                       planes->n_planes * planes->n_columns);
        if (status == STATUS_OK)
                status = panels_fill(&products->panels, &planes->source, planes->format,
                                     (PanelFill){ .fill = pack_plane_panel, .context = planes });
        if (status != STATUS_OK) {
                direct_products_free(products);
                return status;
        }
        products->n_planes = planes->n_planes;
        products->n_columns = planes->n_columns;
        products->plane_panels = planes->n_columns / panels_width(&products->panels);
        products->run = (DirectRun){ .n = planes->n_k };
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

static void run_panels(void *argument, int64_t begin, int64_t end)
{
        const ProductsRun *run = argument;
        const DirectProducts *products = run->products;
        const DirectRows *rows = run->rows;
        int64_t n_k = products->run.n, n_columns = products->n_columns,
                most = panels_most_pixels(products->panels.isa, n_k);
        int64_t n_parts = (rows->n + most - 1) / most;
        DirectTile tile = { .pixel_step = n_k, .runs = &products->run, .n_runs = 1, .out_step = n_columns };
        Work work = { .ctx = run->ctx };
        for (int64_t panel = begin; panel < end && !work.stops; panel++) {
                int64_t plane = panel / products->plane_panels,
                        column = panel % products->plane_panels * panels_width(&products->panels);
                panels_use(&products->panels, panel, &tile);
                for (int64_t part = 0; part < n_parts && !work_stops(&work, most * n_k * DIRECT_VECTORS);
                     part++) {
                        int64_t first = part * rows->n / n_parts, next = (part + 1) * rows->n / n_parts;
                        tile.in = rows->a + plane * rows->a_step + first * n_k;
                        tile.out = rows->out + plane * rows->out_step + first * n_columns + column;
                        products->panels.isa->of[DIRECT_VECTORS - 1][next - first - 1](&tile);
                }
        }
}

Status direct_products_run(const DirectProducts *products, const RunContext *ctx, const DirectRows *rows)
{
        ProductsRun run = { ctx, products, rows };
        int64_t work = rows->n * products->run.n * panels_width(&products->panels);
        TRY(parallel_for(ctx, products->panels.n_panels, MAX((int64_t)1, 1000000 / MAX(work, (int64_t)1)),
                         run_panels, &run));
        return run_poll(ctx);
}
