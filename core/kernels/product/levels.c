// SPDX-License-Identifier: Apache-2.0
// levels.c: as narrow.c, for factors that are levels already. Rows that the instructions read as
// they are stay where they lie; others are widened first, in scratch.
#include "core/kernels/product/levels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/kernels/product/levels_panels.h"

struct LevelsMatmul {
        LevelsPanels panels;
        int64_t n_rows, n_k, in_step, out_step;
        bool is_signed, widens;
        LevelsOut out;
        DirectRun run; // of a row: the whole
        int64_t group, n_groups, n_chunks;
        char name[32];
};

// ---- packing ----
static int32_t pack_column(const void *context, int64_t column, const LevelsPanels *panels, int64_t step,
                           uint8_t *to)
{
        const LevelsProduct *from = context;
        const int8_t *levels = from->weights + column * from->weight_step[1];
        int32_t sum = 0;
        for (int64_t k = 0; k < from->n_k; k++) {
                int8_t level = levels[k * from->weight_step[0]];
                levels_set_term(panels, k, step, level, to);
                sum += level;
        }
        return sum;
}

static Status pack(const LevelsProduct *from, LevelsMatmul *matmul)
{
        char format[80];
        snprintf(format, sizeof(format), "%ld by %ld,%ld", (long)from->n_k, (long)from->weight_step[0],
                 (long)from->weight_step[1]);
        LevelsFactor factor = { .column_scale = from->column_scale,
                                .bias = from->bias,
                                .data = from->weights,
                                .format = format,
                                .share = from->share,
                                .pack = pack_column,
                                .context = from };
        return levels_panels_fill(&matmul->panels, &factor);
}

// ---- making ----
static void plan(const LevelsProduct *from, LevelsMatmul *matmul)
{
        const LevelsIsa *isa = matmul->panels.isa;
        int64_t n_steps = matmul->panels.n_steps;
        matmul->n_rows = from->n_rows;
        matmul->n_k = from->n_k;
        matmul->in_step = from->in_step;
        matmul->out_step = from->out_step;
        matmul->is_signed = from->is_signed;
        matmul->out = from->out;
        matmul->run = (DirectRun){ .n = n_steps };
        matmul->widens = isa->terms != 4 || from->is_signed || from->n_k % isa->terms != 0;
        matmul->group = MAX(PANELS_GROUP_BYTES / 4 / n_steps / isa->max_rows, (int64_t)1) * isa->max_rows;
        matmul->n_groups = (from->n_rows + matmul->group - 1) / matmul->group;
        matmul->n_chunks = panels_chunks(matmul->panels.n_panels, matmul->n_groups, from->n_threads);
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
        Status status = levels_panels_init(&matmul->panels, isa, from->n_columns,
                                           (from->n_k + isa->terms - 1) / isa->terms);
        if (status == STATUS_OK) {
                plan(from, matmul);
                status = pack(from, matmul);
        }
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
        levels_panels_deinit(&matmul->panels);
        free(matmul);
}

const char *levels_matmul_name(const LevelsMatmul *matmul)
{
        return matmul->name;
}

// ---- running ----
size_t levels_matmul_scratch(const LevelsMatmul *matmul)
{
        return matmul->widens ? (size_t)(matmul->n_rows * matmul->panels.n_steps) * 4 : 0;
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
                matmul->panels.isa->widen(run->operands->in + row * matmul->in_step, matmul->n_k,
                                          matmul->is_signed, to);
        }
}

static void run_panel(const LevelsRun *run, int64_t group, int64_t panel, Work *work, LevelsTile *tile)
{
        const LevelsMatmul *matmul = run->matmul;
        int64_t begin = group * matmul->group, n_rows = MIN(matmul->n_rows - begin, matmul->group);
        int64_t most = matmul->panels.isa->max_rows, n_parts = (n_rows + most - 1) / most;
        int64_t out_bytes = matmul->out.bytes ? 1 : (int64_t)sizeof(float);
        levels_panels_use(&matmul->panels, panel, tile);
        LevelsAhead ahead = levels_look_ahead(&matmul->panels, panel, n_parts, matmul->n_groups > 1, tile);
        tile->ahead_step = ahead.step;
        for (int64_t part = 0; part < n_parts && !work_stops(work, matmul->n_k * most); part++) {
                int64_t first = begin + part * n_rows / n_parts, last = begin + (part + 1) * n_rows / n_parts;
                int64_t to = first * matmul->out_step + panel * matmul->panels.width;
                tile->in = run->rows + first * run->row_bytes;
                tile->out = (char *)run->operands->out + to * out_bytes;
                tile->residual = run->operands->residual == NULL ? NULL : run->operands->residual + to;
                tile->ahead = ahead.from + part * ahead.part_bytes;
                levels_loop(&matmul->panels, panel, last - first)(tile);
        }
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const LevelsRun *run = argument;
        const LevelsMatmul *matmul = run->matmul;
        LevelsTile tile = { .in_step = run->row_bytes,
                            .runs = &matmul->run,
                            .n_runs = 1,
                            .row_scale = run->operands->scale,
                            .row_zero = run->zero,
                            .out_step = matmul->out_step };
        levels_panels_finish(&matmul->panels, &matmul->out, run->operands->residual != NULL, &tile);
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t group = piece / matmul->n_chunks, chunk = piece % matmul->n_chunks;
                int64_t last = (chunk + 1) * matmul->panels.n_panels / matmul->n_chunks;
                for (int64_t panel = chunk * matmul->panels.n_panels / matmul->n_chunks;
                     panel < last && !work.stops; panel++)
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
                run.row_bytes = 4 * matmul->panels.n_steps;
                run.zero += matmul->panels.isa->terms == 4 && matmul->is_signed ? 128 : 0;
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
