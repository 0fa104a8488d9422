// SPDX-License-Identifier: Apache-2.0
// packed.c: rows form groups that fit the second-level cache. Within a group each panel of the
// packed factor is used for all rows while it is in the cache, a few rows at a time. One or two
// rows take several panels at once: their sums would be too few to hide each other's latency.
//
// Where there are dense tiles, the rows of a group are first laid side by side for each tile. Deep
// sums are cut into blocks (panels.h), and a panel's block is used for all rows in turn.
#include "core/kernels/product/packed.h"

#include <stdio.h>
#include <string.h>

struct PackedMatmul {
        Panels panels;
        DirectClamp clamp;
        PointAfter after;
        int64_t n_rows, a_step, out_step;
        int n_threads;
        int64_t most;                        // rows of a tile
        int64_t n_tiles, n_groups, n_chunks; // of rows; groups of them; pieces of the panels
        bool dense;
        char name[32];
};

enum { DENSE_GROUP_BYTES = 640 << 10, DENSE_PANELS = 4 };

static bool fits(const DnnlMatmul *matmul)
{
        const TensorMeta *a = &matmul->a, *out = &matmul->out;
        return a->rank == 2 && matmul->b.rank == 2 && out->rank == 2 && matmul->b_data != NULL &&
               !matmul->epilogue.add_out && matmul->epilogue.activation == DNNL_NOTHING &&
               (a->stride[1] == 1 || a->size[1] == 1) && (out->stride[1] == 1 || out->size[1] == 1) &&
               meta_numel(a) > 0 && meta_numel(out) > 0;
}

static void pack_panel(const void *context, const Panels *panels, int64_t panel, float *weights)
{
        const DnnlMatmul *matmul = context;
        int64_t row = matmul->b.stride[0], column = matmul->b.stride[1];
        const float *from = (const float *)matmul->b_data + panel * panels_width(panels) * column;
        for (int64_t k = 0; k < panels->n_k; k++)
                panels_set(panels, weights, panel, k, from + k * row, column);
}

static Status pack(const DnnlMatmul *matmul, Panels *panels)
{
        const TensorMeta *b = &matmul->b;
        TRY(panels_init(panels, direct_isa(), b->size[0], b->size[1], PANELS_BLOCK));
        char format[64];
        snprintf(format, sizeof(format), "by %ld,%ld", (long)b->stride[0], (long)b->stride[1]);
        DirectSource source = { .share = matmul->share, .data = matmul->b_data };
        TRY(panels_fill(panels, &source, format, (PanelFill){ .fill = pack_panel, .context = matmul }));
        if (matmul->bias_data != NULL)
                memcpy(panels->bias, matmul->bias_data, (size_t)b->size[1] * sizeof(float));
        return STATUS_OK;
}

static void divide(PackedMatmul *packed)
{
        int64_t n_blocks = packed->dense ? packed->panels.n_blocks : 1,
                deep = (packed->panels.n_k + n_blocks - 1) / n_blocks;
        int64_t tiles = panels_group_tiles(packed->dense ? DENSE_GROUP_BYTES : PANELS_GROUP_BYTES,
                                           deep * (int64_t)sizeof(float), packed->most, &packed->after);
        int64_t n_columns = packed->panels.n_columns;
        packed->n_tiles = (packed->n_rows + packed->most - 1) / packed->most;
        PanelsCut cut = panels_cut(packed->n_tiles, (packed->n_tiles + tiles - 1) / tiles,
                                   packed->panels.n_panels, packed->n_threads,
                                   packed->n_rows * (packed->panels.n_k + n_columns) >
                                           packed->panels.n_k * n_columns);
        packed->n_groups = cut.n_groups;
        packed->n_chunks = cut.n_chunks;
}

static void plan(const DnnlMatmul *matmul, PackedMatmul *packed)
{
        int64_t n_k = matmul->a.size[1];
        packed->n_rows = matmul->a.size[0];
        packed->n_threads = matmul->n_threads;
        packed->a_step = matmul->a.stride[0];
        packed->out_step = matmul->out.stride[0];
        // laying out the rows costs about as much as a panel's multiplications
        packed->dense = packed->panels.isa->dense_rows != NULL && n_k >= packed->panels.isa->dense_from &&
                        packed->n_rows > DIRECT_WIDE_PIXELS && packed->panels.n_panels >= DENSE_PANELS;
        packed->most = packed->dense ? packed->panels.isa->max_pixels
                                     : panels_most_pixels(packed->panels.isa, packed->a_step);
        divide(packed);
        snprintf(packed->name, sizeof(packed->name), "packed:%s", isa_name(packed->panels.isa->isa));
}

Status packed_matmul_new(const DnnlMatmul *matmul, const DirectClamp *clamp, PackedMatmul **out_matmul)
{
        *out_matmul = NULL;
        if (direct_isa() == NULL || !fits(matmul))
                return STATUS_OK;
        PackedMatmul *packed = calloc(1, sizeof(*packed));
        if (packed == NULL)
                return fail_memory();
        packed->clamp = *clamp;
        Status status = pack(matmul, &packed->panels);
        if (status != STATUS_OK) {
                packed_matmul_free(packed);
                return status;
        }
        plan(matmul, packed);
        *out_matmul = packed;
        return STATUS_OK;
}

void packed_matmul_then(PackedMatmul *matmul, const PointAfter *after)
{
        matmul->after = *after;
        divide(matmul);
}

void packed_matmul_free(PackedMatmul *matmul)
{
        if (matmul == NULL)
                return;
        panels_deinit(&matmul->panels);
        free(matmul);
}

const char *packed_matmul_name(const PackedMatmul *matmul)
{
        return matmul->name;
}

// Threads that share a group lay out all rows before they multiply, others a group at a time.
static bool lays_out_all(const PackedMatmul *matmul)
{
        return matmul->n_chunks > 1;
}

// The first row of a group.
static int64_t group_begin(const PackedMatmul *matmul, int64_t group)
{
        return MIN(group * matmul->n_tiles / matmul->n_groups * matmul->most, matmul->n_rows);
}

size_t packed_matmul_scratch(const PackedMatmul *matmul)
{
        if (!matmul->dense)
                return 0;
        int64_t most = (matmul->n_tiles + matmul->n_groups - 1) / matmul->n_groups * matmul->most;
        return (size_t)(matmul->n_threads > 1 ? matmul->n_rows : MIN(most, matmul->n_rows)) *
               (size_t)matmul->panels.n_k * sizeof(float);
}

typedef struct MatmulRun {
        const RunContext *ctx;
        const PackedMatmul *matmul;
        const float *a, *residual;
        float *out, *scratch;
} MatmulRun;

// Rows of a group, in parts of a tile each.
typedef struct Group {
        int64_t begin, n_rows, n_parts;
        int64_t part_rows, longer_parts; // of a part at least; parts with one more
        float *dense;                    // [block][part][step][row of the part]
} Group;

static Group group_at(const MatmulRun *run, int64_t index)
{
        const PackedMatmul *matmul = run->matmul;
        Group group = { .begin = group_begin(matmul, index) };
        group.n_rows = group_begin(matmul, index + 1) - group.begin;
        group.n_parts = (group.n_rows + matmul->most - 1) / matmul->most;
        group.part_rows = group.n_rows / group.n_parts;
        group.longer_parts = group.n_rows % group.n_parts;
        group.dense = run->scratch + (matmul->n_threads > 1 ? group.begin * matmul->panels.n_k : 0);
        return group;
}

// The first parts are one row longer: 64-bit divisions take as long as a small tile.
static int64_t part_at(const Group *group, int64_t part)
{
        return part * group->part_rows + MIN(part, group->longer_parts);
}

static PanelsFollow follow_of(const MatmulRun *run, const Group *group, int64_t first)
{
        const PackedMatmul *matmul = run->matmul;
        return (PanelsFollow){ .after = &matmul->after,
                               .out = run->out + group->begin * matmul->out_step,
                               .out_step = matmul->out_step,
                               .n_rows = group->n_rows,
                               .n_columns = matmul->panels.n_columns,
                               .width = panels_width(&matmul->panels),
                               .done = first };
}

// ---- dense tiles ----
// Parts from `part` on, before `last`.
static void lay_out(const MatmulRun *run, const Group *group, int64_t part, int64_t last, Work *work)
{
        const PackedMatmul *matmul = run->matmul;
        const Panels *panels = &matmul->panels;
        for (; part < last && !work_stops(work, matmul->most * panels->n_k); part++) {
                int64_t first = part_at(group, part), n_rows = part_at(group, part + 1) - first;
                for (int64_t block = 0; block < panels->n_blocks; block++) {
                        int64_t k = panels_block_at(panels, block),
                                n = panels_block_at(panels, block + 1) - k;
                        panels->isa->dense_rows(run->a + (group->begin + first) * matmul->a_step + k,
                                                matmul->a_step, (int)n_rows, n,
                                                group->dense + k * group->n_rows + first * n);
                }
        }
}

// Groups in `n_threads` pieces each.
static void lay_out_pieces(void *argument, int64_t begin, int64_t end)
{
        const MatmulRun *run = argument;
        Work work = { .ctx = run->ctx };
        int64_t n = run->matmul->n_threads;
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                Group group = group_at(run, piece / n);
                lay_out(run, &group, piece % n * group.n_parts / n, (piece % n + 1) * group.n_parts / n,
                        &work);
        }
}

// The panel of one block, for all rows of the group.
static void run_dense_panel(const MatmulRun *run, const Group *group, int64_t block, int64_t panel,
                            Work *work, DenseTile *tile)
{
        const PackedMatmul *matmul = run->matmul;
        const Panels *panels = &matmul->panels;
        int vectors = panels_vectors(panels, panel);
        int64_t k = panels_block_at(panels, block), n = panels_block_at(panels, block + 1) - k,
                wide = vectors * panels->isa->lanes;
        panels_use(panels, panel, block, &tile->of);
        tile->of.clamps = matmul->clamp.on && block == panels->n_blocks - 1;
        tile->n_steps = n;
        tile->next_step = wide * (int64_t)sizeof(float) / group->n_parts;
        for (int64_t part = 0; part < group->n_parts && !work_stops(work, n * matmul->most); part++) {
                int64_t first = part_at(group, part), n_rows = part_at(group, part + 1) - first;
                int64_t to = (group->begin + first) * matmul->out_step + panel * panels_width(panels);
                // the same block of the next panel
                tile->next =
                        (const char *)(tile->of.weights + panels->n_k * wide) + part * n * tile->next_step;
                tile->in = group->dense + k * group->n_rows + first * n;
                panels_to(&tile->of, block, run->out, run->residual, to);
                panels->isa->dense[vectors - 1][n_rows - 1](tile);
        }
}

static void run_dense_piece(void *argument, int64_t begin, int64_t end)
{
        const MatmulRun *run = argument;
        const PackedMatmul *matmul = run->matmul;
        DenseTile tile = {
                .of = { .out_step = matmul->out_step, .low = matmul->clamp.low, .high = matmul->clamp.high }
        };
        Work work = { .ctx = run->ctx };
        int64_t n_panels = matmul->panels.n_panels, n_blocks = matmul->panels.n_blocks;
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                Group group = group_at(run, piece / matmul->n_chunks);
                int64_t chunk = piece % matmul->n_chunks, first = chunk * n_panels / matmul->n_chunks,
                        last = (chunk + 1) * n_panels / matmul->n_chunks;
                PanelsFollow results = follow_of(run, &group, first);
                if (!lays_out_all(matmul))
                        lay_out(run, &group, 0, group.n_parts, &work);
                for (int64_t block = 0; block < n_blocks; block++)
                        for (int64_t panel = first; panel < last && !work.stops; panel++) {
                                run_dense_panel(run, &group, block, panel, &work, &tile);
                                if (block == n_blocks - 1)
                                        panels_follow(&results, panel + 1, panel + 1 == last);
                        }
        }
}

// ---- tiles of rows as they lie ----
// Rows from `first` on of the columns of the tile's panel.
static void run_tile(const MatmulRun *run, int64_t first, int64_t panel, int64_t block, DirectTile *tile,
                     DirectLoop *loop)
{
        const PackedMatmul *matmul = run->matmul;
        tile->in = run->a + first * matmul->a_step;
        panels_to(tile, block, run->out, run->residual,
                  first * matmul->out_step + panel * panels_width(&matmul->panels));
        loop(tile);
}

// Panels from `panel` on that the rows can take at once.
static int64_t panels_at_once(const PackedMatmul *matmul, int64_t n_rows, int64_t panel, int64_t end)
{
        int64_t n = n_rows > DIRECT_WIDE_PIXELS ? 1 : DIRECT_WIDE_PANELS / n_rows;
        bool full = (panel + n) * panels_width(&matmul->panels) <= matmul->panels.n_columns;
        return panel + n <= end && full ? n : 1;
}

// One block of `n_panels` panels for the rows of a group.
static void run_block(const MatmulRun *run, const Group *rows, int64_t panel, int64_t n_panels, int64_t block,
                      Work *work)
{
        const PackedMatmul *matmul = run->matmul;
        const Panels *panels = &matmul->panels;
        int64_t k = panels_block_at(panels, block);
        int vectors = panels_vectors(panels, panel);
        DirectRun block_run = { .offset = k, .n = panels_block_at(panels, block + 1) - k };
        DirectTile tile = { .pixel_step = matmul->a_step,
                            .runs = &block_run,
                            .n_runs = 1,
                            .out_step = matmul->out_step,
                            .clamps = matmul->clamp.on && block == panels->n_blocks - 1,
                            .low = matmul->clamp.low,
                            .high = matmul->clamp.high };
        panels_use(panels, panel, block, &tile);
        for (int64_t part = 0; part < rows->n_parts && !work_stops(work, block_run.n * matmul->most);
             part++) {
                int64_t first = part_at(rows, part), last = part_at(rows, part + 1);
                run_tile(run, rows->begin + first, panel, block, &tile,
                         n_panels > 1 ? panels->isa->wide[rows->n_rows - 1]
                                      : panels->isa->of[vectors - 1][last - first - 1]);
        }
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const MatmulRun *run = argument;
        const PackedMatmul *matmul = run->matmul;
        Work work = { .ctx = run->ctx };
        int64_t n_panels = matmul->panels.n_panels, n_blocks = matmul->panels.n_blocks, n;
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                Group rows = group_at(run, piece / matmul->n_chunks);
                int64_t chunk = piece % matmul->n_chunks, last = (chunk + 1) * n_panels / matmul->n_chunks;
                int64_t first = chunk * n_panels / matmul->n_chunks;
                PanelsFollow results = follow_of(run, &rows, first);
                for (int64_t panel = first; panel < last; panel += n) {
                        n = panels_at_once(matmul, rows.n_rows, panel, last);
                        for (int64_t block = 0; block < n_blocks && !work.stops; block++)
                                run_block(run, &rows, panel, n, block, &work);
                        if (!work.stops)
                                panels_follow(&results, panel + n, panel + n == last);
                }
        }
}

Status packed_matmul_run(const PackedMatmul *matmul, const RunContext *ctx, const float *a,
                         const float *residual, float *out, void *scratch)
{
        MatmulRun run = {
                .ctx = ctx, .matmul = matmul, .a = a, .residual = residual, .out = out, .scratch = scratch
        };
        if (matmul->dense && lays_out_all(matmul))
                TRY(parallel_for(ctx, matmul->n_groups * matmul->n_threads, 1, lay_out_pieces, &run));
        TRY(parallel_for(ctx, matmul->n_groups * matmul->n_chunks, 1,
                         matmul->dense ? run_dense_piece : run_piece, &run));
        return run_poll(ctx);
}
