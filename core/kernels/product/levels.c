// SPDX-License-Identifier: Apache-2.0
// levels.c: as narrow.c, for factors that are levels already. Rows that the instructions read as
// they are stay where they lie; others are widened first, in scratch.
#include "core/kernels/product/levels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct LevelsMatmul {
        const LevelsIsa *isa;
        int64_t n_rows, n_k, n_columns, in_step, out_step;
        bool is_signed, widens;
        LevelsOut out;
        int64_t n_steps, n_panels, width; // of four bytes; columns of a panel
        int64_t group, n_groups, n_chunks;
        Storage *storage;     // counted: sums of columns, then panels; maybe shared
        float *scales, *bias; // of columns, padded with zeros
        char name[32];
};

// ---- packing ----
typedef struct Factor {
        const LevelsMatmul *matmul;
        const LevelsProduct *from;
} Factor;

static size_t header_bytes(const LevelsMatmul *matmul)
{
        return (size_t)(matmul->n_panels * matmul->width) * sizeof(int32_t);
}

static int64_t panel_bytes(const LevelsMatmul *matmul)
{
        return matmul->n_steps * matmul->width * matmul->isa->terms;
}

// A last panel that one vector holds has no more.
static int64_t panel_columns(const LevelsMatmul *matmul, int64_t panel)
{
        int64_t left = matmul->n_columns - panel * matmul->width;
        return left <= matmul->isa->lanes ? matmul->isa->lanes : matmul->width;
}

static int32_t pack_column(const LevelsProduct *from, int64_t column, int64_t terms, int64_t step,
                           uint8_t *to)
{
        const int8_t *levels = from->weights + column * from->weight_step[1];
        int32_t sum = 0;
        for (int64_t k = 0; k < from->n_k; k++) {
                int8_t level = levels[k * from->weight_step[0]];
                to[k / terms * step + k % terms] = (uint8_t)level;
                sum += level;
        }
        return sum;
}

static Status make_panels(void *context, Storage **out_storage)
{
        const Factor *factor = context;
        const LevelsMatmul *matmul = factor->matmul;
        const RunContext *poll = factor->from->share.poll;
        int64_t terms = matmul->isa->terms;
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new(header_bytes(matmul) + (size_t)(matmul->n_panels * panel_bytes(matmul)), true, NULL,
                        &storage));
        int32_t *sums = (int32_t *)(void *)storage->data;
        uint8_t *panels = storage->data + header_bytes(matmul);
        Work work = { .ctx = poll };
        for (int64_t column = 0; column < matmul->n_columns && !work_stops(&work, matmul->n_k); column++) {
                int64_t panel = column / matmul->width, at = column % matmul->width;
                sums[column] = pack_column(factor->from, column, terms, terms * panel_columns(matmul, panel),
                                           panels + panel * panel_bytes(matmul) + at * terms);
        }
        if (work.stops)
                return run_poll(poll);
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

static Status pack(const LevelsProduct *from, LevelsMatmul *matmul)
{
        Factor factor = { matmul, from };
        size_t n = (size_t)matmul->n_columns, width = (size_t)(matmul->n_panels * matmul->width);
        char format[160];
        matmul->scales = new_array(width, sizeof(float));
        matmul->bias = new_array(width, sizeof(float));
        if (matmul->scales == NULL || matmul->bias == NULL)
                return fail_memory();
        memset(matmul->scales, 0, width * sizeof(float));
        memset(matmul->bias, 0, width * sizeof(float));
        memcpy(matmul->scales, from->column_scale, n * sizeof(float));
        if (from->bias != NULL)
                memcpy(matmul->bias, from->bias, n * sizeof(float));
        snprintf(format, sizeof(format), "levels %s %ldx%ld by %ld,%ld", matmul->isa->name, (long)matmul->n_k,
                 (long)matmul->n_columns, (long)from->weight_step[0], (long)from->weight_step[1]);
        PackSource source = { .storage = from->share.storage, .data = from->weights };
        return pack_cache_get(from->share.storage == NULL ? NULL : from->share.cache, format, &source, 1,
                              (PackMaker){ make_panels, &factor }, &matmul->storage);
}

// ---- making ----
static void plan(const LevelsProduct *from, LevelsMatmul *matmul)
{
        const LevelsIsa *isa = matmul->isa;
        matmul->width = LEVELS_VECTORS * isa->lanes;
        matmul->n_rows = from->n_rows;
        matmul->n_k = from->n_k;
        matmul->n_columns = from->n_columns;
        matmul->in_step = from->in_step;
        matmul->out_step = from->out_step;
        matmul->is_signed = from->is_signed;
        matmul->out = from->out;
        matmul->widens = isa->terms != 4 || from->is_signed || from->n_k % isa->terms != 0;
        matmul->n_steps = (from->n_k + isa->terms - 1) / isa->terms;
        matmul->n_panels = (from->n_columns + matmul->width - 1) / matmul->width;
        matmul->group =
                MAX(PANELS_GROUP_BYTES / 4 / matmul->n_steps / isa->max_rows, (int64_t)1) * isa->max_rows;
        matmul->n_groups = (from->n_rows + matmul->group - 1) / matmul->group;
        matmul->n_chunks = panels_chunks(matmul->n_panels, matmul->n_groups, from->n_threads);
        snprintf(matmul->name, sizeof(matmul->name), "levels:%s", isa->name);
}

Status levels_matmul_new(const LevelsProduct *from, LevelsMatmul **out_matmul)
{
        const LevelsIsa *isa = levels_isa();
        *out_matmul = NULL;
        if (isa == NULL || from->n_rows < 1 || from->n_columns < 1 || from->n_k < 1 ||
            from->n_k > LEVELS_MOST_TERMS)
                return STATUS_OK;
        LevelsMatmul *matmul = calloc(1, sizeof(*matmul));
        if (matmul == NULL)
                return fail_memory();
        matmul->isa = isa;
        plan(from, matmul);
        Status status = pack(from, matmul);
        if (status != STATUS_OK) {
                levels_matmul_free(matmul);
                return status;
        }
        *out_matmul = matmul;
        return STATUS_OK;
}

void levels_matmul_free(LevelsMatmul *matmul)
{
        if (matmul == NULL)
                return;
        storage_unref(matmul->storage);
        free(matmul->scales);
        free(matmul->bias);
        free(matmul);
}

const char *levels_matmul_name(const LevelsMatmul *matmul)
{
        return matmul->name;
}

// ---- running ----
size_t levels_matmul_scratch(const LevelsMatmul *matmul)
{
        return matmul->widens ? (size_t)(matmul->n_rows * matmul->n_steps) * 4 : 0;
}

typedef struct LevelsRun {
        const RunContext *ctx;
        const LevelsMatmul *matmul;
        const LevelsOperands *operands;
        const char *rows;
        int64_t row_bytes; // between rows
        int32_t zero;      // of the rows as the tile reads them
} LevelsRun;

static void widen_rows(void *argument, int64_t begin, int64_t end)
{
        const LevelsRun *run = argument;
        const LevelsMatmul *matmul = run->matmul;
        Work work = { .ctx = run->ctx };
        for (int64_t row = begin; row < end && !work_stops(&work, matmul->n_k); row++) {
                char *to = (char *)run->operands->scratch + row * run->row_bytes;
                memset(to + run->row_bytes - 4, 0, 4); // terms behind the last one
                matmul->isa->widen(run->operands->in + row * matmul->in_step, matmul->n_k, matmul->is_signed,
                                   to);
        }
}

static void use_panel(const LevelsMatmul *matmul, int64_t panel, LevelsTile *tile)
{
        int64_t column = panel * matmul->width;
        tile->column_sum = (const int32_t *)(const void *)matmul->storage->data + column;
        tile->column_scale = matmul->scales + column;
        tile->bias = matmul->bias + column;
        tile->weights = matmul->storage->data + header_bytes(matmul) + panel * panel_bytes(matmul);
        tile->n_valid = (int)MIN(matmul->n_columns - column, matmul->width);
}

static void run_panel(const LevelsRun *run, int64_t group, int64_t panel, Work *work, LevelsTile *tile)
{
        const LevelsMatmul *matmul = run->matmul;
        int64_t begin = group * matmul->group, n_rows = MIN(matmul->n_rows - begin, matmul->group);
        int64_t most = matmul->isa->max_rows, n_parts = (n_rows + most - 1) / most;
        int64_t out_bytes = matmul->out.bytes ? 1 : (int64_t)sizeof(float);
        use_panel(matmul, panel, tile);
        LevelsLoop *const *loops = matmul->isa->loops[panel_columns(matmul, panel) / matmul->isa->lanes - 1];
        for (int64_t part = 0; part < n_parts && !work_stops(work, matmul->n_k * most); part++) {
                int64_t first = begin + part * n_rows / n_parts, last = begin + (part + 1) * n_rows / n_parts;
                int64_t to = first * matmul->out_step + panel * matmul->width;
                tile->in = run->rows + first * run->row_bytes;
                tile->out = (char *)run->operands->out + to * out_bytes;
                tile->residual = run->operands->residual == NULL ? NULL : run->operands->residual + to;
                loops[last - first - 1](tile);
        }
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const LevelsRun *run = argument;
        const LevelsMatmul *matmul = run->matmul;
        const LevelsOut *out = &matmul->out;
        LevelsTile tile = { .in_step = run->row_bytes,
                            .n_steps = matmul->n_steps,
                            .row_scale = run->operands->scale,
                            .row_zero = run->zero,
                            .out_step = matmul->out_step,
                            .bytes = out->bytes,
                            .low = out->low,
                            .high = out->high,
                            .steps = out->steps };
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t group = piece / matmul->n_chunks, chunk = piece % matmul->n_chunks;
                int64_t last = (chunk + 1) * matmul->n_panels / matmul->n_chunks;
                for (int64_t panel = chunk * matmul->n_panels / matmul->n_chunks; panel < last && !work.stops;
                     panel++)
                        run_panel(run, group, panel, &work, &tile);
        }
}

Status levels_matmul_run(const LevelsMatmul *matmul, const RunContext *ctx, const LevelsOperands *operands)
{
        LevelsRun run = { .ctx = ctx,
                          .matmul = matmul,
                          .operands = operands,
                          .rows = (const char *)operands->in,
                          .row_bytes = matmul->in_step,
                          .zero = operands->zero };
        if (matmul->widens) {
                run.rows = operands->scratch;
                run.row_bytes = 4 * matmul->n_steps;
                run.zero += matmul->isa->terms == 4 && matmul->is_signed ? 128 : 0;
                TRY(parallel_for(ctx, matmul->n_rows, MAX(65536 / matmul->n_k, (int64_t)1), widen_rows,
                                 &run));
        }
        TRY(parallel_for(ctx, matmul->n_groups * matmul->n_chunks, 1, run_piece, &run));
        return run_poll(ctx);
}

// ---- rounding ----
void levels_quantize(const float *from, int64_t n, const LevelsSteps *steps, uint8_t *to)
{
        const LevelsIsa *isa = levels_isa();
        if (isa != NULL) {
                isa->quantize(from, n, steps, to);
                return;
        }
        for (int64_t k = 0; k < n; k++) {
                float x = rintf(from[k] * steps->inverse) + steps->zero;
                x = x < steps->least ? steps->least : x > steps->most ? steps->most : x;
                to[k] = isnan(x) ? 0 : (uint8_t)(int)x;
        }
}
