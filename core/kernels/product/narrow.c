// SPDX-License-Identifier: Apache-2.0
// narrow.c: as packed.c, with panels of two bytes per step and column. Rows of int8 are rounded
// first, all of them, in scratch.
#include "core/kernels/product/narrow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/kernels/product/narrow_tile.h"

// Smaller factors cost more to prepare than they save.
enum { LEAST_TERMS = 16, LEAST_COLUMNS = 8 };
// Steps of a row, so that the largest sum fits 32 bits; with fewer it is better left alone.
enum { MOST_STEPS = 32767, LEAST_STEPS = 1024, WEIGHT_STEPS = 127 };

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
        const NarrowIsa *isa;
        Precision precision;
        DirectClamp clamp;
        int64_t n_rows, n_k, n_columns, a_step, out_step;
        int64_t n_steps, n_panels; // steps of a sum: pairs of terms, or terms
        int most;                  // steps that a row is rounded to
        int64_t group, n_groups, n_chunks;
        Storage *storage; // counted: scales of columns, then panels; maybe shared
        float *bias;      // padded with zeros
        char name[32];
};

static int64_t width_of(const NarrowIsa *isa)
{
        return DIRECT_VECTORS * isa->lanes;
}

// ---- packing ----
static uint16_t bf16_of(float x)
{
        uint32_t bits;
        memcpy(&bits, &x, sizeof(bits));
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

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

static void pack_column(const Factor *factor, int64_t column, float *scale, uint8_t *to)
{
        const NarrowMatmul *matmul = factor->matmul;
        int64_t step = 2 * width_of(matmul->isa);
        float peak = 0.0f;
        for (int64_t k = 0; k < matmul->n_k; k++)
                peak = fmaxf(peak, fabsf(factor_at(factor, k, column)));
        *scale = peak / (float)WEIGHT_STEPS;
        float steps = *scale < 1e-37f ? 0.0f : 1.0f / *scale;
        for (int64_t k = 0; k < matmul->n_k; k++) {
                float x = factor_at(factor, k, column);
                if (matmul->precision == PRECISION_INT8) {
                        int8_t number = (int8_t)lrintf(x * steps);
                        memcpy(to + k / 2 * step + k % 2, &number, sizeof(number));
                } else {
                        uint16_t number = bf16_of(x);
                        memcpy(to + k * step, &number, sizeof(number));
                }
        }
}

static Status make_panels(void *context, Storage **out_storage)
{
        const Factor *factor = context;
        const NarrowMatmul *matmul = factor->matmul;
        int64_t width = width_of(matmul->isa);
        size_t n_columns = (size_t)(matmul->n_panels * width);
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new(n_columns * (sizeof(float) + 2 * (size_t)matmul->n_steps), true, NULL, &storage));
        float *scales = (float *)storage->data;
        uint8_t *panels = storage->data + n_columns * sizeof(float);
        Work work = { .ctx = factor->poll };
        for (int64_t c = 0; c < matmul->n_columns && !work_stops(&work, 2 * matmul->n_k); c++)
                pack_column(factor, c, scales + c,
                            panels + (c / width * matmul->n_steps * width + c % width) * 2);
        if (work.stops)
                return run_poll(factor->poll);
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

static bool is_finite(const Factor *factor)
{
        bool finite = true;
        for (int64_t k = 0; k < factor->matmul->n_k; k++)
                for (int64_t c = 0; c < factor->matmul->n_columns; c++)
                        finite &= isfinite(factor_at(factor, k, c)) != 0;
        return finite;
}

static Status pack(const DnnlMatmul *from, NarrowMatmul *matmul)
{
        Factor factor = { matmul, from->b_data, from->b.stride[0], from->b.stride[1], from->share.poll };
        int64_t width = matmul->n_panels * width_of(matmul->isa);
        char format[160];
        if (!is_finite(&factor))
                return STATUS_OK;
        matmul->bias = new_array((size_t)width, sizeof(float));
        if (matmul->bias == NULL)
                return fail_memory();
        memset(matmul->bias, 0, (size_t)width * sizeof(float));
        if (from->bias_data != NULL)
                memcpy(matmul->bias, from->bias_data, (size_t)matmul->n_columns * sizeof(float));
        snprintf(format, sizeof(format), "%s %ldx%ld by %ld,%ld", matmul->name, (long)matmul->n_k,
                 (long)matmul->n_columns, (long)factor.row, (long)factor.column);
        PackSource source = { .storage = from->share.storage, .data = from->b_data };
        return pack_cache_get(from->share.storage == NULL ? NULL : from->share.cache, format, &source, 1,
                              (PackMaker){ make_panels, &factor }, &matmul->storage);
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

static void plan(const DnnlMatmul *from, Precision precision, NarrowMatmul *matmul)
{
        bool int8 = precision == PRECISION_INT8;
        matmul->precision = precision;
        matmul->n_rows = from->a.size[0];
        matmul->n_k = from->a.size[1];
        matmul->n_columns = from->out.size[1];
        matmul->a_step = from->a.stride[0];
        matmul->out_step = from->out.stride[0];
        matmul->n_steps = int8 ? (matmul->n_k + 1) / 2 : matmul->n_k;
        matmul->n_panels = (matmul->n_columns + width_of(matmul->isa) - 1) / width_of(matmul->isa);
        matmul->most = (int)MIN(INT32_MAX / WEIGHT_STEPS / matmul->n_k, (int64_t)MOST_STEPS);
        matmul->group =
                MAX(PANELS_GROUP_BYTES / 4 / matmul->n_steps / NARROW_MAX_ROWS, (int64_t)1) * NARROW_MAX_ROWS;
        matmul->n_groups = (matmul->n_rows + matmul->group - 1) / matmul->group;
        matmul->n_chunks = from->n_threads > 1 && matmul->n_groups < 4 * from->n_threads
                                   ? MIN(matmul->n_panels, 4 * (int64_t)from->n_threads)
                                   : 1;
        snprintf(matmul->name, sizeof(matmul->name), "%s:%s", precision_names[precision],
                 isa_name(matmul->isa->isa));
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
        matmul->isa = narrow_isa();
        matmul->clamp = *clamp;
        plan(from, precision, matmul);
        Status status = STATUS_OK;
        if (precision == PRECISION_BF16 || matmul->most >= LEAST_STEPS)
                status = pack(from, matmul);
        if (matmul->storage == NULL) {
                narrow_matmul_free(matmul);
                return status;
        }
        *out_matmul = matmul;
        return STATUS_OK;
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
static size_t scales_bytes(const NarrowMatmul *matmul)
{
        return (size_t)(matmul->n_rows + 15) / 16 * 16 * sizeof(float);
}

size_t narrow_matmul_scratch(const NarrowMatmul *matmul)
{
        return matmul->precision == PRECISION_INT8
                       ? scales_bytes(matmul) +
                                 (size_t)(matmul->n_rows * matmul->n_steps) * 2 * sizeof(int16_t)
                       : 0;
}

typedef struct NarrowRun {
        const RunContext *ctx;
        const NarrowMatmul *matmul;
        const float *a, *residual;
        float *out;
        float *scales;    // of rows that were rounded
        int16_t *rounded; // [row][2 * n_steps]; NULL: rows are read as they are
} NarrowRun;

static void round_rows(void *argument, int64_t begin, int64_t end)
{
        const NarrowRun *run = argument;
        const NarrowMatmul *matmul = run->matmul;
        Work work = { .ctx = run->ctx };
        for (int64_t row = begin; row < end && !work_stops(&work, matmul->n_k); row++) {
                int16_t *to = run->rounded + row * 2 * matmul->n_steps;
                to[2 * matmul->n_steps - 1] = 0; // behind an odd number of terms
                matmul->isa->round(run->a + row * matmul->a_step, matmul->n_k, matmul->most, to,
                                   run->scales + row);
        }
}

static void use_rows(const NarrowRun *run, int64_t first, int64_t panel, NarrowTile *tile)
{
        const NarrowMatmul *matmul = run->matmul;
        int64_t to = first * matmul->out_step + panel * width_of(matmul->isa);
        tile->in = run->rounded != NULL ? (const char *)(run->rounded + first * 2 * matmul->n_steps)
                                        : (const char *)(run->a + first * matmul->a_step);
        tile->row_scale = run->scales == NULL ? NULL : run->scales + first;
        tile->to.out = run->out + to;
        tile->to.residual = run->residual == NULL ? NULL : run->residual + to;
}

static void use_panel(const NarrowMatmul *matmul, int64_t panel, NarrowTile *tile)
{
        int64_t width = width_of(matmul->isa), column = panel * width;
        tile->column_scale = (const float *)matmul->storage->data + column;
        tile->weights = matmul->storage->data + (size_t)(matmul->n_panels * width) * sizeof(float) +
                        panel * matmul->n_steps * width * 2;
        tile->to.bias = matmul->bias + column;
        tile->to.n_valid = (int)MIN(matmul->n_columns - column, width);
}

static void run_panel(const NarrowRun *run, int64_t group, int64_t panel, Work *work, NarrowTile *tile)
{
        const NarrowMatmul *matmul = run->matmul;
        int64_t begin = group * matmul->group, n_rows = MIN(matmul->n_rows - begin, matmul->group);
        int64_t n_parts = (n_rows + NARROW_MAX_ROWS - 1) / NARROW_MAX_ROWS;
        use_panel(matmul, panel, tile);
        int vectors = tile->to.n_valid <= matmul->isa->lanes ? 1 : DIRECT_VECTORS;
        NarrowLoop *const *loops =
                (matmul->precision == PRECISION_INT8 ? matmul->isa->int8 : matmul->isa->bf16)[vectors - 1];
        for (int64_t part = 0; part < n_parts && !work_stops(work, matmul->n_k * NARROW_MAX_ROWS); part++) {
                int64_t first = begin + part * n_rows / n_parts, last = begin + (part + 1) * n_rows / n_parts;
                use_rows(run, first, panel, tile);
                loops[last - first - 1](tile);
        }
}

static void run_piece(void *argument, int64_t begin, int64_t end)
{
        const NarrowRun *run = argument;
        const NarrowMatmul *matmul = run->matmul;
        NarrowTile tile = { .in_step = run->rounded != NULL ? matmul->n_steps * 2 * (int64_t)sizeof(int16_t)
                                                            : matmul->a_step * (int64_t)sizeof(float),
                            .n_steps = matmul->n_steps,
                            .to = { .out_step = matmul->out_step,
                                    .clamps = matmul->clamp.on,
                                    .low = matmul->clamp.low,
                                    .high = matmul->clamp.high } };
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t group = piece / matmul->n_chunks, chunk = piece % matmul->n_chunks;
                int64_t last = (chunk + 1) * matmul->n_panels / matmul->n_chunks;
                for (int64_t panel = chunk * matmul->n_panels / matmul->n_chunks; panel < last && !work.stops;
                     panel++)
                        run_panel(run, group, panel, &work, &tile);
        }
}

Status narrow_matmul_run(const NarrowMatmul *matmul, const RunContext *ctx, const float *a,
                         const float *residual, float *out, void *scratch)
{
        NarrowRun run = { .ctx = ctx, .matmul = matmul, .a = a, .residual = residual, .out = out };
        if (matmul->precision == PRECISION_INT8) {
                run.scales = scratch;
                run.rounded = (int16_t *)(void *)((char *)scratch + scales_bytes(matmul));
                TRY(parallel_for(ctx, matmul->n_rows, MAX(16384 / matmul->n_k, (int64_t)1), round_rows,
                                 &run));
        }
        TRY(parallel_for(ctx, matmul->n_groups * matmul->n_chunks, 1, run_piece, &run));
        return run_poll(ctx);
}
