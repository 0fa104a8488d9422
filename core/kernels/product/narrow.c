// SPDX-License-Identifier: Apache-2.0
// narrow.c: as packed.c, with panels of fewer bytes per step and column. Where the instructions
// want rounded rows, all of them are rounded first, in scratch.
#include "core/kernels/product/narrow.h"

#include <stdio.h>
#include <string.h>
#include "core/kernels/dense.h"
#include "core/kernels/product/narrow_pack.h"

// Smaller factors cost more to prepare than they save.
enum { LEAST_TERMS = 16, LEAST_COLUMNS = 8 };
enum { WIDE_WEIGHTS = 1 << 20 }; // bytes

const char *const precision_names[PRECISION_COUNT] = {
        [PRECISION_F32] = "f32", [PRECISION_BF16] = "bf16", [PRECISION_INT8] = "int8"
};

Precision precision_named(const char *name)
{
        for (int i = 0; i < PRECISION_COUNT; i++)
                if (strcmp(precision_names[i], name) == 0)
                        return (Precision)i;
        return PRECISION_F32;
}

struct NarrowMatmul {
        const NarrowKind *kind;
        Precision precision;
        DirectClamp clamp;
        PointAfter after;
        int n_threads;
        int64_t n_rows, n_k, n_columns, a_step, out_step;
        DirectRun run;           // the steps of a sum
        int64_t n_panels, width; // columns of a panel
        int most;                // steps that a row is rounded to
        int64_t group, n_groups, n_chunks;
        Storage *storage; // counted: scales and sums of columns, then panels; maybe shared
        float *bias;      // padded with zeros
        char name[32];
};

// ---- packing ----
typedef struct Factor {
        const NarrowMatmul *matmul;
        const float *data;
        int64_t row, column; // strides
        const RunContext *poll;
} Factor;

static float factor_at(const Factor *factor, int64_t k, int64_t column)
{
        return factor->data[k * factor->row + column * factor->column];
}

// Where the panels begin, behind two floats per column.
static size_t header_bytes(const NarrowMatmul *matmul)
{
        return (size_t)(matmul->n_panels * matmul->width) * 2 * sizeof(float);
}

// Bytes of a column's numbers in one step.
static int64_t cell_bytes(const NarrowKind *kind)
{
        return kind->terms * kind->weight_bytes;
}

// Bytes of a full panel.
static int64_t panel_bytes(const NarrowMatmul *matmul)
{
        return matmul->run.n * matmul->width * cell_bytes(matmul->kind);
}

// A last panel that one vector holds has no more.
static int64_t panel_columns(const NarrowMatmul *matmul, int64_t panel)
{
        int64_t left = matmul->n_columns - panel * matmul->width, one = matmul->width / DIRECT_VECTORS;
        return left <= one ? one : matmul->width;
}

// The columns of a panel, one after another: read in the order of memory.
static void gather_panel(const Factor *factor, int64_t panel, float *to)
{
        const NarrowMatmul *matmul = factor->matmul;
        int64_t first = panel * matmul->width, n_k = matmul->n_k,
                n = MIN(matmul->n_columns - first, matmul->width);
        if (factor->row == 1)
                for (int64_t c = 0; c < n; c++)
                        memcpy(to + c * n_k, factor->data + (first + c) * factor->column,
                               (size_t)n_k * sizeof(float));
        else
                for (int64_t k = 0; k < n_k; k++)
                        for (int64_t c = 0; c < n; c++)
                                to[c * n_k + k] = factor_at(factor, k, first + c);
}

static Status make_panels(void *context, Storage **out_storage)
{
        const Factor *factor = context;
        const NarrowMatmul *matmul = factor->matmul;
        int64_t width = matmul->width, n_columns = matmul->n_panels * width, cell = cell_bytes(matmul->kind);
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new(header_bytes(matmul) + (size_t)(n_columns * matmul->run.n * cell), true, NULL,
                        &storage));
        float *scales = (float *)storage->data, *weights = scales + n_columns;
        uint8_t *panels = storage->data + header_bytes(matmul);
        _cleanup_(freep) float *gathered = new_array((size_t)(width * matmul->n_k), sizeof(float));
        if (gathered == NULL)
                return fail_memory();
        Work work = { .ctx = factor->poll };
        for (int64_t panel = 0; panel < matmul->n_panels && !work_stops(&work, 2 * width * matmul->n_k);
             panel++) {
                gather_panel(factor, panel, gathered);
                int64_t step = cell * panel_columns(matmul, panel);
                for (int64_t c = 0; c < MIN(width, matmul->n_columns - panel * width); c++) {
                        NarrowColumn column =
                                narrow_pack_column(matmul->kind, gathered + c * matmul->n_k, matmul->n_k,
                                                   step, panels + (panel * matmul->run.n * width + c) * cell);
                        scales[panel * width + c] = column.scale;
                        weights[panel * width + c] = column.weight;
                }
        }
        if (work.stops)
                return run_poll(factor->poll);
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

static Status pack(const DnnlMatmul *from, NarrowMatmul *matmul)
{
        Factor factor = { matmul, from->b_data, from->b.stride[0], from->b.stride[1], from->share.poll };
        int64_t width = matmul->n_panels * matmul->width;
        char format[160];
        if (matmul->precision == PRECISION_BF16 ? !floats_are_finite_bf16(factor.data, &from->b)
                                                : !floats_are_finite(factor.data, &from->b))
                return STATUS_OK;
        matmul->bias = new_array((size_t)width, sizeof(float));
        if (matmul->bias == NULL)
                return fail_memory();
        memset(matmul->bias, 0, (size_t)width * sizeof(float));
        if (from->bias_data != NULL)
                memcpy(matmul->bias, from->bias_data, (size_t)matmul->n_columns * sizeof(float));
        snprintf(format, sizeof(format), "%s %ldx%ld by %ld,%ld", matmul->name, (long)matmul->n_k,
                 (long)matmul->n_columns, (long)factor.row, (long)factor.column);
        PackSource source = pack_source(&from->share, from->b_data);
        return pack_cache_get(from->share.storage == NULL ? NULL : from->share.cache, format, &source, 1,
                              (PackMaker){ make_panels, &factor, factor.poll }, &matmul->storage);
}

// ---- making ----
static bool fits(const DnnlMatmul *matmul)
{
        const TensorMeta *a = &matmul->a, *out = &matmul->out;
        return a->rank == 2 && matmul->b.rank == 2 && out->rank == 2 && matmul->b_data != NULL &&
               !matmul->epilogue.add_out && matmul->epilogue.activation == DNNL_NOTHING &&
               (a->stride[1] == 1 || a->size[1] == 1) && (out->stride[1] == 1 || out->size[1] == 1) &&
               meta_numel(a) > 0 && meta_numel(out) > 0 && a->size[1] >= LEAST_TERMS &&
               out->size[1] >= LEAST_COLUMNS;
}

static void divide(NarrowMatmul *matmul)
{
        int64_t most = matmul->kind->most_rows;
        matmul->group =
                panels_group_tiles(PANELS_GROUP_BYTES, 4 * matmul->run.n, most, &matmul->after) * most;
        matmul->n_groups = (matmul->n_rows + matmul->group - 1) / matmul->group;
        matmul->n_chunks = panels_chunks(matmul->n_panels, matmul->n_groups, matmul->n_threads);
}

static void plan(const DnnlMatmul *from, Precision precision, NarrowMatmul *matmul)
{
        const NarrowIsa *isa = narrow_isa();
        const NarrowKind *kind = precision == PRECISION_INT8 ? isa->int8 : isa->bf16;
        matmul->kind = kind;
        matmul->width = DIRECT_VECTORS * isa->lanes;
        matmul->precision = precision;
        matmul->n_rows = from->a.size[0];
        matmul->n_k = from->a.size[1];
        matmul->n_columns = from->out.size[1];
        matmul->a_step = from->a.stride[0];
        matmul->out_step = from->out.stride[0];
        matmul->run.n = (matmul->n_k + kind->terms - 1) / kind->terms;
        matmul->n_panels = (matmul->n_columns + matmul->width - 1) / matmul->width;
        // so that the largest sum fits 32 bits
        matmul->most = (int)MIN(INT32_MAX / NARROW_WEIGHT_STEPS / matmul->n_k, (int64_t)kind->most_steps);
        matmul->n_threads = from->n_threads;
        divide(matmul);
        snprintf(matmul->name, sizeof(matmul->name), "%s:%s", precision_names[precision], kind->name);
}

Status narrow_matmul_new(const DnnlMatmul *from, Precision precision, const DirectClamp *clamp,
                         NarrowMatmul **out_matmul)
{
        *out_matmul = NULL;
        if (precision == PRECISION_F32 || narrow_isa() == NULL || !fits(from))
                return STATUS_OK;
        NarrowMatmul *matmul = calloc(1, sizeof(*matmul));
        if (matmul == NULL)
                return fail_memory();
        matmul->clamp = *clamp;
        plan(from, precision, matmul);
        Status status = STATUS_OK;
        if (matmul->most >= matmul->kind->least_steps) // with fewer it is better left alone
                status = pack(from, matmul);
        if (matmul->storage == NULL) {
                narrow_matmul_free(matmul);
                return status;
        }
        *out_matmul = matmul;
        return STATUS_OK;
}

void narrow_matmul_then(NarrowMatmul *matmul, const PointAfter *after)
{
        matmul->after = *after;
        divide(matmul);
}

void narrow_matmul_free(NarrowMatmul *matmul)
{
        if (matmul == NULL)
                return;
        storage_unref(matmul->storage);
        free(matmul->bias);
        free(matmul);
}

const char *narrow_matmul_name(const NarrowMatmul *matmul)
{
        return matmul->name;
}

// ---- running ----
// Scales and offsets of rows, in front of the rounded ones.
static size_t rows_bytes(const NarrowMatmul *matmul)
{
        return (size_t)(matmul->n_rows + 15) / 16 * 16 * 2 * sizeof(float);
}

size_t narrow_matmul_scratch(const NarrowMatmul *matmul)
{
        return matmul->kind->round == NULL
                       ? 0
                       : rows_bytes(matmul) + (size_t)(matmul->n_rows * matmul->run.n) * 4;
}

typedef struct NarrowRun {
        const RunContext *ctx;
        const NarrowMatmul *matmul;
        const float *a, *residual;
        float *out;
        float *scales, *offsets; // of rows that were rounded
        char *rounded;           // [row][4 * n_steps]; NULL: rows are read as they are
} NarrowRun;

static void round_rows(void *argument, int64_t begin, int64_t end)
{
        const NarrowRun *run = argument;
        const NarrowMatmul *matmul = run->matmul;
        Work work = { .ctx = run->ctx };
        for (int64_t row = begin; row < end && !work_stops(&work, matmul->n_k); row++) {
                char *to = run->rounded + row * 4 * matmul->run.n;
                memset(to + 4 * (matmul->run.n - 1), 0, 4); // terms behind the last one
                NarrowRow rounded =
                        matmul->kind->round(run->a + row * matmul->a_step, matmul->n_k, matmul->most, to);
                run->scales[row] = rounded.scale;
                run->offsets[row] = rounded.offset;
        }
}

static void use_rows(const NarrowRun *run, int64_t first, int64_t panel, NarrowTile *tile)
{
        const NarrowMatmul *matmul = run->matmul;
        int64_t to = first * matmul->out_step + panel * matmul->width;
        tile->in = run->rounded != NULL ? run->rounded + first * 4 * matmul->run.n
                                        : (const char *)(run->a + first * matmul->a_step);
        tile->row_scale = run->scales == NULL ? NULL : run->scales + first;
        tile->row_offset = run->offsets == NULL ? NULL : run->offsets + first;
        tile->to.out = run->out + to;
        tile->to.residual = run->residual == NULL ? NULL : run->residual + to;
}

static void use_panel(const NarrowMatmul *matmul, int64_t panel, NarrowTile *tile)
{
        int64_t width = matmul->width, column = panel * width;
        tile->column_scale = (const float *)matmul->storage->data + column;
        tile->column_weight = tile->column_scale + matmul->n_panels * width;
        tile->weights = matmul->storage->data + header_bytes(matmul) + panel * panel_bytes(matmul);
        tile->to.bias = matmul->bias + column;
        tile->to.n_valid = (int)MIN(matmul->n_columns - column, width);
}

// Panels from `panel` on, before `last`, that the rows of a group take at once. Panels that do not
// stay in the second-level cache come faster one after another.
static int64_t panels_at_once(const NarrowMatmul *matmul, int64_t panel, int64_t last)
{
        int64_t end = panel + NARROW_WIDE_PANELS;
        bool wide = matmul->n_rows == 1 && matmul->kind->wide != NULL && end <= last &&
                    end * matmul->width <= matmul->n_columns &&
                    matmul->n_panels * panel_bytes(matmul) <= WIDE_WEIGHTS;
        return wide ? NARROW_WIDE_PANELS : 1;
}

static void run_wide(const NarrowRun *run, int64_t panel, NarrowTile *tile)
{
        use_panel(run->matmul, panel, tile);
        use_rows(run, 0, panel, tile);
        tile->panel_step = panel_bytes(run->matmul);
        run->matmul->kind->wide(tile);
}

static void run_panel(const NarrowRun *run, int64_t group, int64_t panel, Work *work, NarrowTile *tile)
{
        const NarrowMatmul *matmul = run->matmul;
        int64_t begin = group * matmul->group, n_rows = MIN(matmul->n_rows - begin, matmul->group);
        int64_t most = matmul->kind->most_rows, n_parts = (n_rows + most - 1) / most;
        use_panel(matmul, panel, tile);
        int64_t vectors = panel_columns(matmul, panel) / (matmul->width / DIRECT_VECTORS);
        NarrowLoop *const *loops = matmul->kind->loops[vectors - 1];
        NarrowPanels panels = { matmul->n_panels, panel_bytes(matmul), matmul->run.n, matmul->n_groups > 1 };
        for (int64_t part = 0; part < n_parts && !work_stops(work, matmul->n_k * most); part++) {
                int64_t first = begin + part * n_rows / n_parts, last = begin + (part + 1) * n_rows / n_parts;
                use_rows(run, first, panel, tile);
                narrow_look_ahead(&panels, panel, part, n_parts, tile);
                loops[last - first - 1](tile);
        }
}

static PanelsFollow follow_of(const NarrowRun *run, int64_t group, int64_t first)
{
        const NarrowMatmul *matmul = run->matmul;
        int64_t begin = group * matmul->group;
        return (PanelsFollow){ .after = &matmul->after,
                               .out = run->out + begin * matmul->out_step,
                               .out_step = matmul->out_step,
                               .n_rows = MIN(matmul->n_rows - begin, matmul->group),
                               .n_columns = matmul->n_columns,
                               .width = matmul->width,
                               .done = first };
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const NarrowRun *run = argument;
        const NarrowMatmul *matmul = run->matmul;
        NarrowTile tile = { .in_step = 4 * (run->rounded != NULL ? matmul->run.n : matmul->a_step),
                            .runs = &matmul->run,
                            .n_runs = 1,
                            .to = { .out_step = matmul->out_step,
                                    .clamps = matmul->clamp.on,
                                    .low = matmul->clamp.low,
                                    .high = matmul->clamp.high } };
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t group = piece / matmul->n_chunks, chunk = piece % matmul->n_chunks;
                int64_t first = chunk * matmul->n_panels / matmul->n_chunks,
                        last = (chunk + 1) * matmul->n_panels / matmul->n_chunks;
                PanelsFollow results = follow_of(run, group, first);
                for (int64_t panel = first, n; panel < last && !work.stops; panel += n) {
                        n = panels_at_once(matmul, panel, last);
                        if (n > 1 && !work_stops(&work, n * matmul->n_k))
                                run_wide(run, panel, &tile);
                        else
                                run_panel(run, group, panel, &work, &tile);
                        panels_follow(&results, panel + n, panel + n == last);
                }
        }
}

Status narrow_matmul_run(const NarrowMatmul *matmul, const RunContext *ctx, const float *a,
                         const float *residual, float *out, void *scratch)
{
        NarrowRun run = { .ctx = ctx, .matmul = matmul, .a = a, .residual = residual, .out = out };
        if (matmul->kind->round != NULL) {
                run.scales = scratch;
                run.offsets = run.scales + rows_bytes(matmul) / sizeof(float) / 2;
                run.rounded = (char *)scratch + rows_bytes(matmul);
                TRY(parallel_for(ctx, matmul->n_rows, MAX(16384 / matmul->n_k, (int64_t)1), round_rows,
                                 &run));
        }
        TRY(parallel_for(ctx, matmul->n_groups * matmul->n_chunks, 1, run_piece, &run));
        return run_poll(ctx);
}
