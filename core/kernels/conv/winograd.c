// SPDX-License-Identifier: Apache-2.0
// winograd.c: a run goes through the layers in blocks of tiles, which may be several layers deep.
// It transforms a block to 36 (or 16) matrices [layers and tiles, input channels], one for each
// point of a tile. It multiplies each matrix by the weights of that point; a result of a volume
// takes a row of each layer that it reads, so that each layer is transformed once. Then it
// transforms the products back and adds the bias. A block fits the second-level cache.
//
// Two checks keep errors near those of plain sums: that of the weights (winograd_weights.h), and
// that of the input. Rounding errors of a tile grow with its largest input and reach all its
// results. If some result reads only inputs that are far smaller than the tile's largest one (a
// marker among pixels), its layer is convolved by the direct kernel. So it is when a result is not
// finite. Other layers, and other images of the batch, are not.
#include "core/kernels/conv/winograd.h"

#include <stdio.h>
#include <string.h>
#include "core/kernels/conv/winograd_plan.h"
#include "core/kernels/conv/winograd_weights.h"

enum {
        LINE_FLOATS = 16, // of a cache line
        BLOCK_BYTES = 768 << 10,
        LEAST_TILES = 28, // of a block
        MOST_LAYERS = 6,  // of a block of several
        MOST_GROUPS = 512,
        MOST_TAPS = 8,
        MOST_WEIGHTS = 512 << 20
};

// ---- making ----
// Numbers that no result of their panel reads are multiplied, too: as many as the others at most.
static bool groups_fit(const DnnlConv *conv)
{
        const DirectGroups groups = winograd_groups(conv);
        int64_t lanes = direct_isa()->lanes, width = DIRECT_VECTORS * lanes, n_read = 0;
        for (int64_t column = 0; column < conv->weight.size[0]; column += width)
                n_read += direct_span(&groups, column, width).n;
        return conv->input.rank == 4 && groups.n <= MOST_GROUPS && groups.n_in >= lanes &&
               n_read * width <= 2 * conv->weight.size[0];
}

static bool fits(const DnnlConv *conv)
{
        int rank = conv->input.rank, spatial = rank - 2;
        const DirectIsa *isa = direct_isa();
        if (isa == NULL || (rank != 4 && rank != 5) || conv->epilogue.add_out ||
            conv->epilogue.activation != DNNL_NOTHING || conv->input.size[1] < MOST_LANES ||
            conv->input.size[1] != conv->groups * conv->weight.size[1] || conv->weight.size[0] < MOST_LANES ||
            (conv->groups > 1 && !groups_fit(conv)) || !meta_is_channels_last(&conv->input) ||
            !meta_is_channels_last(&conv->out) || !meta_is_contiguous(&conv->weight) ||
            winograd_taps(conv) > MOST_TAPS)
                return false;
        for (int i = 0; i < spatial; i++) {
                int64_t taps = conv->weight.size[2 + i], out = conv->out.size[2 + i];
                if ((taps != 3 && (spatial == 2 || i > 0)) || conv->stride[i] != 1 ||
                    conv->dilation[i] != 1 || conv->padding[i] >= taps || out < 1 ||
                    out != conv->input.size[2 + i] + 2 * conv->padding[i] - taps + 1)
                        return false;
        }
        return true;
}

// Of the transformed weights.
static int64_t weight_bytes(const DnnlConv *conv, int64_t step)
{
        return (step + 2) * (step + 2) * winograd_products(conv) * winograd_columns(conv) *
               (int64_t)sizeof(float);
}

// Decided by the sizes of one sample: the batch has no say. Weights grow with the step, so few
// tiles take the smaller one, and fewer still none; wide vectors multiply the unchanged weights
// before memory gives more of them. Small groups have few products for each transform: tiles should
// lie in the image.
int winograd_rule(const DnnlConv *conv)
{
        enum { MANY_TILES = 12, LEAST_SIDE = 4, LEAST_SIDE_WIDE = 7, LEAST_FOR_TWO = 32, LEAST_GROUP = 32 };
        if (!fits(conv))
                return 0;
        bool wide = direct_isa()->lanes > 8;
        const int64_t *size = conv->out.size + conv->out.rank - 2;
        int64_t channels = MIN(conv->weight.size[0], conv->weight.size[1]), side = MIN(size[0], size[1]),
                deep = conv->out.rank == 5 ? conv->out.size[2] : 1,
                n_tiles = (size[0] + 3) / 4 * ((size[1] + 3) / 4) * deep;
        int64_t least = wide && deep == 1 ? LEAST_SIDE_WIDE : LEAST_SIDE;
        int64_t covered = n_tiles / deep * 16, pixels = size[0] * size[1];
        bool small_groups = conv->groups > 1 && channels < LEAST_GROUP;
        if (side < least || (small_groups && (wide || pixels * 5 < covered * 4)))
                return 0;
        if (n_tiles >= MANY_TILES && weight_bytes(conv, 4) <= MOST_WEIGHTS)
                return 4;
        return channels >= LEAST_FOR_TWO && weight_bytes(conv, 2) <= MOST_WEIGHTS ? 2 : 0;
}

// Threads take blocks of their own where images are larger than the weights, as panels_cut has it:
// a thread then finds in its cache what it wrote before, and waits for no other one.
static void divide(Winograd *winograd, int64_t weights, int n_threads)
{
        int64_t n_in = winograd->in.size[1], n_out = winograd->out.size[1], deep = winograd->out.size[2];
        int64_t all = winograd->n_tiles * deep;
        int64_t most = MAX(BLOCK_BYTES / (int64_t)sizeof(float) / winograd->points / (n_in + n_out),
                           (int64_t)LEAST_TILES);
        bool apart = n_threads > 1 && all >= LEAST_TILES * (int64_t)n_threads &&
                     meta_numel(&winograd->in) + meta_numel(&winograd->out) > weights;
        int64_t n_apart = apart ? n_threads : 1, few = winograd->taps == 1 ? 1 : MOST_LAYERS,
                layers = MIN(deep, MAX(few, LEAST_TILES / winograd->n_tiles)),
                tiles = MAX(most / layers, (int64_t)1), n_across = (winograd->n_tiles + tiles - 1) / tiles;
        winograd->n_apart = (int)n_apart;
        winograd->n_deep = (deep + layers - 1) / layers;
        winograd->n_across = (n_across + n_apart - 1) / n_apart * n_apart;
        winograd->tiles = (winograd->n_tiles + winograd->n_across - 1) / winograd->n_across;
        winograd->layers = (deep + winograd->n_deep - 1) / winograd->n_deep;
}

static TensorMeta as_volume(const TensorMeta *meta)
{
        TensorMeta volume = *meta;
        if (meta->rank == 5)
                return volume;
        meta_init(&volume, meta->dtype, 5,
                  (int64_t[]){ meta->size[0], meta->size[1], 1, meta->size[2], meta->size[3] });
        meta_set_channels_last(&volume);
        return volume;
}

static Status init_products(const DnnlConv *conv, const float *points, Winograd *winograd)
{
        // Other numbers of results or groups: another matrix of this shape from the same bytes.
        char format[96];
        snprintf(format, sizeof(format), "winograd_%dx%d of %ld, %ld by %ld in %ld", winograd->step,
                 winograd->step, (long)winograd->taps, (long)conv->weight.size[0], (long)conv->weight.size[1],
                 (long)conv->groups);
        DirectPlanes product = { .n_planes = winograd->points,
                                 .n_taps = winograd->taps,
                                 .groups = winograd_groups(conv),
                                 .n_columns = winograd->width,
                                 .b = points,
                                 .source = { .share = conv->share, .data = conv->weight_data },
                                 .format = format };
        return direct_products_new(&product, &winograd->products);
}

static Status init(const DnnlConv *conv, const DirectClamp *clamp, int step, const float *points,
                   Winograd *winograd)
{
        size_t n_out = (size_t)conv->weight.size[0];
        int first = 5 - conv->input.rank;
        winograd->step = step;
        winograd->side = step + 2;
        winograd->points = winograd->side * winograd->side;
        winograd->taps = winograd_taps(conv);
        winograd->width = winograd_columns(conv);
        winograd->groups = conv->groups;
        winograd->in = as_volume(&conv->input);
        winograd->out = as_volume(&conv->out);
        winograd->clamp = *clamp;
        for (int i = first; i < 3; i++)
                winograd->pad[i] = conv->padding[i - first];
        winograd->rows = (winograd->out.size[3] + step - 1) / step;
        winograd->columns = (winograd->out.size[4] + step - 1) / step;
        winograd->n_tiles = winograd->out.size[0] * winograd->rows * winograd->columns;
        divide(winograd, weight_bytes(conv, step) / (int64_t)sizeof(float), conv->n_threads);
        winograd->kernels = tile_kernels(step);
        winograd->bias = new_array(n_out, sizeof(float));
        if (winograd->bias == NULL)
                return fail_memory();
        if (conv->bias_data != NULL)
                memcpy(winograd->bias, conv->bias_data, n_out * sizeof(float));
        TRY(late_direct_new(conv, clamp, &winograd->fallback));
        return init_products(conv, points, winograd);
}

Status winograd_new(const DnnlConv *conv, const DirectClamp *clamp, int step, Winograd **out_winograd)
{
        *out_winograd = NULL;
        if (!fits(conv) || weight_bytes(conv, step) > MOST_WEIGHTS)
                return STATUS_OK;
        _cleanup_(freep) float *points = NULL;
        Winograd *winograd = calloc(1, sizeof(*winograd));
        Status status = winograd == NULL ? fail_memory()
                                         : winograd_weights_new(conv, step, &points, &winograd->error);
        if (status == STATUS_OK && points != NULL)
                status = init(conv, clamp, step, points, winograd);
        if (status != STATUS_OK || winograd->products == NULL || winograd->fallback == NULL) {
                winograd_free(winograd);
                return status;
        }
        snprintf(winograd->name, sizeof(winograd->name), "winograd_%dx%d:%s", step, step,
                 isa_name(direct_isa()->isa));
        *out_winograd = winograd;
        return STATUS_OK;
}

void winograd_free(Winograd *winograd)
{
        if (winograd == NULL)
                return;
        direct_products_free(winograd->products);
        late_direct_free(winograd->fallback);
        free(winograd->bias);
        free(winograd);
}

const char *winograd_name(const Winograd *winograd)
{
        return winograd->name;
}

// Floats from one point of a block to the next. An odd number of cache lines: where points lie a
// multiple of 4 KB apart, one tile's values share a few lines of the first-level cache.
static int64_t point_step(int64_t n_tiles, int64_t channels)
{
        return ((n_tiles * channels + LINE_FLOATS - 1) / LINE_FLOATS | 1) * LINE_FLOATS;
}

// Of one block: transformed tiles.
static size_t taken_bytes(const Winograd *winograd)
{
        int64_t n = winograd->tiles * (winograd->layers + winograd->taps - 1);
        return storage_padded((size_t)(winograd->points * point_step(n, winograd->in.size[1])) *
                              sizeof(float));
}

// Of one block: transformed tiles and their products.
static size_t block_bytes(const Winograd *winograd)
{
        int64_t n = winograd->tiles * winograd->layers;
        return taken_bytes(winograd) +
               storage_padded((size_t)(winograd->points * point_step(n, winograd->width)) * sizeof(float));
}

// What a run works in, without the marks of layers.
static size_t work_bytes(const Winograd *winograd)
{
        size_t n = (size_t)winograd->n_apart * block_bytes(winograd);
        return storage_padded(
                MAX(MAX(n, late_direct_scratch(winograd->fallback)), winograd_range_bytes(winograd)));
}

size_t winograd_scratch(const Winograd *winograd)
{
        return work_bytes(winograd) +
               (size_t)(winograd->out.size[0] * winograd->out.size[2]) * sizeof(atomic_bool);
}

// ---- running ----
typedef struct Block {
        const RunContext *ctx;
        const Winograd *winograd;
        const float *in, *residual;
        float *out, *taken, *products;
        int64_t first, n;              // tiles
        int64_t first_layer, n_layers; // of results
        atomic_bool *refused;          // by sample and layer: some result is not finite
} Block;

enum { TILE_STEPS = 16 }; // of one channel

static int64_t n_taken(const Block *block)
{
        return block->n * (block->n_layers + block->winograd->taps - 1);
}

static void take_tiles(void *argument, int64_t begin, int64_t end)
{
        const Block *block = argument;
        const Winograd *winograd = block->winograd;
        const int64_t *size = winograd->in.size, *stride = winograd->in.stride;
        int side = winograd->side;
        TileTask task = { .row_step = stride[3],
                          .column_step = stride[4],
                          .channels = size[1],
                          .point = point_step(n_taken(block), size[1]) };
        Work work = { .ctx = block->ctx };
        for (int64_t i = begin; i < end && !work_stops(&work, size[1] * TILE_STEPS); i++) {
                TilePlace place = winograd_place(winograd, block->first + i % block->n);
                int64_t layer = block->first_layer + i / block->n - winograd->pad[0],
                        row = place.row - winograd->pad[1], column = place.column - winograd->pad[2];
                bool outside = layer < 0 || layer >= size[2];
                task.low[0] = winograd_clip(-row, side);
                task.low[1] = winograd_clip(-column, side);
                task.high[0] = outside ? 0 : winograd_clip(size[3] - row, side);
                task.high[1] = winograd_clip(size[4] - column, side);
                const float *from = block->in + place.sample * stride[0] + layer * stride[2] +
                                    row * stride[3] + column * stride[4];
                winograd->kernels.take(&task, from, block->taken + i * size[1]);
        }
}

static void give_tiles(void *argument, int64_t begin, int64_t end)
{
        const Block *block = argument;
        const Winograd *winograd = block->winograd;
        const int64_t *size = winograd->out.size, *stride = winograd->out.stride;
        TileTask task = { .row_step = stride[3],
                          .column_step = stride[4],
                          .channels = size[1],
                          .point = point_step(block->n * block->n_layers, winograd->width),
                          .bias = winograd->bias,
                          .clamp = winograd->clamp };
        Work work = { .ctx = block->ctx };
        for (int64_t i = begin; i < end && !work_stops(&work, size[1] * TILE_STEPS); i++) {
                TilePlace place = winograd_place(winograd, block->first + i % block->n);
                int64_t layer = block->first_layer + i / block->n;
                task.high[0] = winograd_clip(size[3] - place.row, winograd->step);
                task.high[1] = winograd_clip(size[4] - place.column, winograd->step);
                int64_t at = place.sample * stride[0] + layer * stride[2] + place.row * stride[3] +
                             place.column * stride[4];
                task.residual = block->residual == NULL ? NULL : block->residual + at;
                if (!winograd->kernels.give(&task, block->products + i * winograd->width, block->out + at))
                        atomic_store_explicit(&block->refused[place.sample * size[2] + layer], true,
                                              memory_order_relaxed);
        }
}

static Status run_block(Block *block, int64_t index)
{
        const Winograd *winograd = block->winograd;
        int64_t across = index / winograd->n_deep, deep = index % winograd->n_deep,
                n_layers = winograd->out.size[2];
        block->first = across * winograd->n_tiles / winograd->n_across;
        block->n = (across + 1) * winograd->n_tiles / winograd->n_across - block->first;
        block->first_layer = deep * n_layers / winograd->n_deep;
        block->n_layers = (deep + 1) * n_layers / winograd->n_deep - block->first_layer;
        if (block->n == 0)
                return STATUS_OK;
        int64_t n_in = winograd->in.size[1], n = block->n * block->n_layers;
        TRY(parallel_for(block->ctx, n_taken(block), 8, take_tiles, block));
        DirectRows rows = { .n = n,
                            .a = block->taken,
                            .out = block->products,
                            .a_step = point_step(n_taken(block), n_in),
                            .out_step = point_step(n, winograd->width),
                            .tap_step = block->n * n_in };
        TRY(direct_products_run(winograd->products, block->ctx, &rows));
        return parallel_for(block->ctx, n, 8, give_tiles, block);
}

// The blocks of threads that have some of their own. Failures are those of run_poll.
static void run_apart(void *argument, int64_t begin, int64_t end)
{
        const Block *shared = argument;
        const Winograd *winograd = shared->winograd;
        int64_t n = winograd->n_across * winograd->n_deep / winograd->n_apart;
        RunContext ctx;
        run_context_within(&ctx, shared->ctx);
        for (int64_t thread = begin; thread < end; thread++) {
                Block block = *shared;
                block.ctx = &ctx;
                block.taken += thread * (int64_t)(block_bytes(winograd) / sizeof(float));
                block.products += thread * (int64_t)(block_bytes(winograd) / sizeof(float));
                for (int64_t i = thread * n; i < (thread + 1) * n; i++)
                        if (run_block(&block, i) != STATUS_OK)
                                return;
        }
}

static Status run_tiles(Block *block)
{
        const Winograd *winograd = block->winograd;
        int64_t n_blocks = winograd->n_across * winograd->n_deep;
        if (winograd->n_apart > 1)
                TRY(parallel_for(block->ctx, winograd->n_apart, 1, run_apart, block));
        for (int64_t i = 0; winograd->n_apart == 1 && i < n_blocks; i++)
                TRY(run_block(block, i));
        return run_poll(block->ctx); // parallel_for does not poll after a single piece of tiles
}

// ---- layers that are convolved directly ----
static Status fill_bias(const Block *block, float *out)
{
        const Winograd *winograd = block->winograd;
        int64_t channels = winograd->out.size[1], n = winograd->out.stride[2];
        Work work = { .ctx = block->ctx };
        for (int64_t at = 0; at < n && !work_stops(&work, channels); at += channels)
                memcpy(out + at, winograd->bias, (size_t)channels * sizeof(float));
        return run_poll(block->ctx);
}

// Residual and clamp of one layer.
static Status finish(const Block *block, const float *residual, float *out)
{
        const DirectClamp *clamp = &block->winograd->clamp;
        int64_t channels = block->winograd->out.size[1], n = block->winograd->out.stride[2];
        Work work = { .ctx = block->ctx };
        for (int64_t at = 0; at < n && !work_stops(&work, channels); at += channels) {
                for (int64_t i = at; i < at + channels; i++) {
                        float result = out[i];
                        if (residual != NULL)
                                result += residual[i];
                        if (clamp->on)
                                result = result < clamp->low    ? clamp->low
                                         : result > clamp->high ? clamp->high
                                                                : result;
                        out[i] = result;
                }
        }
        return run_poll(block->ctx);
}

static Status run_directly(const Block *block, int64_t sample, int64_t layer, void *scratch)
{
        const Winograd *winograd = block->winograd;
        const TensorMeta *in = &winograd->in, *out = &winograd->out;
        int64_t at = sample * out->stride[0] + layer * out->stride[2];
        const float *from = block->in + sample * in->stride[0],
                    *residual = block->residual == NULL ? NULL : block->residual + at;
        LateParts direct;
        TRY(late_direct_get(winograd->fallback, block->ctx, &direct));
        if (winograd->taps == 1)
                return direct_convs_run(direct.parts, direct.n, block->ctx,
                                        &(DirectImages){ .in = from + layer * in->stride[2],
                                                         .residual = residual,
                                                         .out = block->out + at,
                                                         .scratch = scratch });
        TRY(fill_bias(block, block->out + at));
        for (int64_t k = 0; k < winograd->taps; k++) {
                int64_t read = layer + k - winograd->pad[0];
                if (read >= 0 && read < in->size[2])
                        TRY(direct_conv_run(direct.parts[k].conv, block->ctx, from + read * in->stride[2],
                                            block->out + at, block->out + at, scratch));
        }
        return finish(block, residual, block->out + at);
}

Status winograd_run(const Winograd *winograd, const RunContext *ctx, const float *in, const float *residual,
                    float *out, void *scratch)
{
        char *bytes = scratch;
        Block block = { .ctx = ctx,
                        .winograd = winograd,
                        .in = in,
                        .residual = residual,
                        .out = out,
                        .taken = scratch,
                        .products = (float *)(void *)(bytes + taken_bytes(winograd)),
                        .refused = (atomic_bool *)(bytes + work_bytes(winograd)) };
        int64_t n_layers = winograd->out.size[2], n = winograd->out.size[0] * n_layers, n_uneven;
        TRY(winograd_find_uneven(winograd, ctx, in, scratch, block.refused, &n_uneven));
        if (n_uneven < n)
                TRY(run_tiles(&block));
        for (int64_t i = 0; i < n; i++)
                if (atomic_load_explicit(&block.refused[i], memory_order_relaxed))
                        TRY(run_directly(&block, i / n_layers, i % n_layers, scratch));
        return STATUS_OK;
}
