// SPDX-License-Identifier: Apache-2.0
// recurrent.c: step by step; a product of the hidden state with the weights, then the gates.
#include "core/kernels/product/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/kernels/pointwise/vector_math.h"
#include "core/kernels/product/matmul.h"
#include "core/kernels/product/matmul_tile.h"
#include "core/kernels/product/narrow_tile.h"

int recurrent_gates(RecurrentKind kind)
{
        return kind == RECURRENT_LSTM ? 4 : kind == RECURRENT_GRU ? 3 : 1;
}

// The cells of one sample: x are the products with the inputs, h those with the state, `state` the
// hidden state of the step before (GRU), `cell` is read and written (LSTM). `out` overlaps nothing.
typedef struct RecurrentCells {
        int64_t n;
        const void *x, *h, *state;
        void *cell, *out;
} RecurrentCells;

typedef struct RecurrentKernel {
        void (*run[RECURRENT_KINDS])(const RecurrentCells *cells);
} RecurrentKernel;

static float sigmoid_f32(float x)
{
        return 1 / (1 + expf(-x));
}

static double sigmoid_f64(double x)
{
        return 1 / (1 + exp(-x));
}

#define CELLS_TARGET
#define CELLS(x)      f32_plain_##x
#define CELLS_T       float
#define CELLS_SIGMOID sigmoid_f32
#define CELLS_TANH    tanhf
#include "core/kernels/product/recurrent_cells.inc"
#undef CELLS
#undef CELLS_T
#undef CELLS_SIGMOID
#undef CELLS_TANH
#define CELLS(x)      f64_plain_##x
#define CELLS_T       double
#define CELLS_SIGMOID sigmoid_f64
#define CELLS_TANH    tanh
#include "core/kernels/product/recurrent_cells.inc"
#undef CELLS
#undef CELLS_T
#undef CELLS_SIGMOID
#undef CELLS_TANH
#undef CELLS_TARGET

#if defined(__x86_64__)
#define CELLS_T          float
#define CELLS_SIGMOID(x) (1.0F / vm_one_plus_exp(-(x)))
#define CELLS_TANH       vm_tanh
#define CELLS_TARGET     TARGET_AVX2
#define CELLS(x)         f32_avx2_##x
#include "core/kernels/product/recurrent_cells.inc"
#undef CELLS
#undef CELLS_TARGET
#define CELLS_TARGET TARGET_AVX512
#define CELLS(x)     f32_avx512_##x
#include "core/kernels/product/recurrent_cells.inc"
#endif

static const KernelVariant cells_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &f32_plain_kernel },
        { DTYPE_F64, ISA_PORTABLE, &f64_plain_kernel },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &f32_avx2_kernel },
        { DTYPE_F32, ISA_AVX512, &f32_avx512_kernel },
#endif
};
const KernelFamily recurrent_family = { "recurrent", ARRAY_LENGTH(cells_variants), cells_variants };

// A product of the batch's rows: to[batch][n] = from[batch][k] * weight[n][k]^T, plus bias[n].
typedef struct Rows {
        int64_t n, k;
        const void *from, *weight, *bias; // bias: or NULL
        void *to;
} Rows;

static Status product(const RunContext *ctx, const Recurrent *task, const Rows *rows)
{
        Gemm gemm_task = { .dtype = task->dtype,
                           .m = task->batch,
                           .n = rows->n,
                           .k = rows->k,
                           .a = { (void *)(uintptr_t)rows->from, rows->k, 1, { 0 } },
                           .b = { (void *)(uintptr_t)rows->weight, 1, rows->k, { 0 } },
                           .c = { rows->to, rows->n, 1, { 0 } },
                           .add = { (void *)(uintptr_t)rows->bias, 0, 1, { 0 } },
                           .alpha = 1,
                           .beta = rows->bias == NULL ? 0 : 1 };
        return gemm(ctx, &gemm_task);
}

// The run of all steps. From PACK_STEPS steps on weights that are not packed yet are packed before
// the first one.
enum { PACK_STEPS = 4, ROW_PANELS = 4 };
typedef struct RecurrentRun {
        const RunContext *ctx;
        const Recurrent *task;
        const RecurrentKernel *cells;
        const GemmTile *tile;
        int64_t n;          // G H
        size_t bytes;       // of an element
        const void *weight; // panels [G H / columns][P][columns]; NULL: not packed
        void *rows;         // scratch: panels of rows of the state
        void *product;      // scratch: [batch][G H]
        void *raw;          // scratch: [batch][H], before the projection
        // this step begins with the last panel and the next one with the first: with those that are
        // still in the cache
        bool turns;
} RecurrentRun;

typedef struct Step {
        int64_t at;
        const void *state; // hidden state before it
        void *out;         // and behind it
} Step;

// c += bias for columns j.. of row i of the products, which `from` holds.
static void keep_row(const RecurrentRun *run, int64_t i, int64_t j, int64_t width, const char *from)
{
        const GemmMerge merge = { true, true, 1, 1, 1, 1 };
        const char *bias = run->task->bias;
        run->tile->merge_row(&merge, width, from,
                             (char *)run->product + (size_t)(i * run->n + j) * run->bytes,
                             bias == NULL ? NULL : bias + (size_t)j * run->bytes);
}

// Columns of the packed product, `step` at once, for all rows. One or two rows go one by one.
typedef struct PackedRows {
        const RecurrentRun *run;
        const char *state;
        int64_t step, rows;
} PackedRows;

static void packed_pieces(void *argument, int64_t begin, int64_t end)
{
        const PackedRows *packed = argument;
        const RecurrentRun *run = packed->run;
        const GemmTile *tile = run->tile;
        int64_t columns = tile->columns, k = run->task->states, batch = run->task->batch;
        _Alignas(64) char out[GEMM_MAX_TILE * sizeof(double)];
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < batch; i += packed->rows) {
                const char *from = packed->state + (size_t)(i * k) * run->bytes,
                           *laid = (const char *)run->rows + (size_t)(i * k) * run->bytes;
                int n_rows = (int)MIN(batch - i, packed->rows);
                for (int64_t p = begin; p < end && !work_stops(&work, k * packed->step * n_rows / 16); p++) {
                        int64_t j = (run->turns ? begin + end - 1 - p : p) * packed->step;
                        int64_t width = MIN(run->n - j, packed->step);
                        const char *panels = (const char *)run->weight + (size_t)(j * k) * run->bytes;
                        if (packed->rows > 1)
                                tile->product(n_rows, k, laid, panels, out);
                        else
                                tile->row_product((int)((width + columns - 1) / columns), k, from, panels,
                                                  out);
                        for (int r = 0; r < n_rows; r++)
                                keep_row(run, i + r, j, width, out + (size_t)(r * columns) * run->bytes);
                }
        }
}

// As `product` of the state with the packed weights.
static Status packed_product(const RecurrentRun *run, const char *state)
{
        enum { LEAST_WORK = 50000 }; // multiplications of a thread
        const GemmTile *tile = run->tile;
        int64_t k = run->task->states, batch = run->task->batch;
        PackedRows packed = { run, state, tile->columns, tile->rows };
        if (batch <= 2) {
                packed.step *= ROW_PANELS;
                packed.rows = 1;
        }
        if (packed.rows > 1)
                tile->pack_a(state, k, 1, batch, k, run->rows);
        int64_t n = (run->n + packed.step - 1) / packed.step;
        TRY(parallel_for(run->ctx, n,
                         run_share(run->ctx, n, LEAST_WORK / MAX(k * packed.step * batch, (int64_t)1)),
                         packed_pieces, &packed));
        return run_poll(run->ctx);
}

static Status run_step(const RecurrentRun *run, const Step *step)
{
        const Recurrent *task = run->task;
        void *cells = task->projection == NULL ? step->out : run->raw;
        const char *gates =
                (const char *)task->gates + (size_t)(step->at * task->batch * run->n) * run->bytes;
        const Rows from_state = { run->n, task->states, step->state, task->weight, task->bias, run->product };
        TRY(task->narrow != NULL  ? narrow_matmul_run(task->narrow, run->ctx, step->state, NULL, run->product,
                                                      task->narrow_scratch)
            : run->weight != NULL ? packed_product(run, step->state)
                                  : product(run->ctx, task, &from_state));
        enum { CELL_STEPS = 64 }; // exponentials, for polls
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; b < task->batch && !work_stops(&work, CELL_STEPS * task->cells); b++) {
                size_t cell = (size_t)(b * task->cells) * run->bytes,
                       gate = (size_t)(b * run->n) * run->bytes;
                run->cells->run[task->kind](&(RecurrentCells){
                        .n = task->cells,
                        .x = gates + gate,
                        .h = (const char *)run->product + gate,
                        .state = (const char *)step->state + (size_t)(b * task->states) * run->bytes,
                        .cell = task->last_cell == NULL ? NULL : (char *)task->last_cell + cell,
                        .out = (char *)cells + cell });
        }
        if (task->projection == NULL)
                return run_poll(run->ctx);
        const Rows projected = { task->states, task->cells, run->raw, task->projection, NULL, step->out };
        return product(run->ctx, task, &projected);
}

// ---- panels: columns of the transpose of weight[n][k] ----
static int64_t panel_items(const GemmTile *tile, int64_t n, int64_t k)
{
        return (n + tile->columns - 1) / tile->columns * tile->columns * k;
}

static Status fill_panels(const RecurrentWeight *weight, char *to)
{
        const GemmTile *tile = kernel_variant(&gemm_family, weight->dtype);
        size_t bytes = dtype_info[weight->dtype].bytes;
        int64_t k = weight->k;
        Work work = { .ctx = weight->share.poll };
        for (int64_t j = 0; j < weight->n && !work_stops(&work, k * tile->columns); j += tile->columns)
                tile->pack_b((const char *)weight->data + (size_t)(j * k) * bytes, 1, k, k,
                             MIN(weight->n - j, (int64_t)tile->columns), to + (size_t)(j * k) * bytes);
        return work.stops ? run_poll(weight->share.poll) : STATUS_OK;
}

static Status make_panels(void *context, Storage **out_storage)
{
        const RecurrentWeight *weight = context;
        int64_t n = panel_items(kernel_variant(&gemm_family, weight->dtype), weight->n, weight->k);
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        TRY(storage_new((size_t)n * dtype_info[weight->dtype].bytes, false, NULL, &storage));
        TRY(fill_panels(weight, (char *)storage->data));
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

Status recurrent_pack(const RecurrentWeight *weight, Storage **out_panels)
{
        const GemmTile *tile = kernel_variant(&gemm_family, weight->dtype);
        char format[96];
        snprintf(format, sizeof(format), "recurrent %s %ldx%ld by %d", dtype_info[weight->dtype].name,
                 (long)weight->n, (long)weight->k, tile->columns);
        PackSource source = { .storage = weight->share.storage, .data = weight->data };
        return pack_cache_get(weight->share.storage == NULL ? NULL : weight->share.cache, format, &source, 1,
                              (PackMaker){ make_panels, (void *)(uintptr_t)weight, weight->share.poll },
                              out_panels);
}

Status recurrent_narrow_new(const RecurrentWeight *weight, const float *bias, const RecurrentRows *rows,
                            NarrowMatmul **out_narrow)
{
        enum { LEAST_WORK = 100000 };  // multiplications of a thread
        enum { LEAST_WEIGHT = 16384 }; // with fewer numbers float32 is as fast
        int64_t work = rows->batch * weight->n * weight->k, batch = rows->batch;
        DnnlMatmul matmul = { .b_data = weight->data,
                              .share = weight->share,
                              .bias_data = bias,
                              .n_threads = (int)MIN(rows->n_threads, MAX(work / LEAST_WORK, (int64_t)1)) };
        *out_narrow = NULL;
        if (weight->n * weight->k < LEAST_WEIGHT || weight->dtype != DTYPE_F32 || narrow_isa() == NULL ||
            narrow_isa()->bf16->terms != 2)
                return STATUS_OK;
        meta_init(&matmul.a, weight->dtype, 2, (int64_t[]){ batch, weight->k });
        meta_init(&matmul.b, weight->dtype, 2, (int64_t[]){ weight->k, weight->n });
        meta_init(&matmul.out, weight->dtype, 2, (int64_t[]){ batch, weight->n });
        matmul.b.stride[0] = 1;
        matmul.b.stride[1] = weight->k;
        return narrow_matmul_new(&matmul, PRECISION_BF16, &(DirectClamp){ 0 }, out_narrow);
}

// Room for panels of the state's rows, and the weight's panels, made now where there are none.
static Status find_panels(RecurrentRun *run, Scratch *panels, Scratch *rows)
{
        const Recurrent *task = run->task;
        if (task->narrow != NULL || (task->packed == NULL && task->steps < PACK_STEPS))
                return STATUS_OK;
        TRY(scratch_init(rows, run->ctx, (task->batch + run->tile->rows) * task->states, run->bytes));
        run->rows = rows->data;
        run->weight = task->packed;
        if (task->packed != NULL)
                return STATUS_OK;
        const RecurrentWeight weight = { .dtype = task->dtype,
                                         .n = run->n,
                                         .k = task->states,
                                         .data = task->weight,
                                         .share = { .poll = run->ctx } };
        TRY(scratch_init(panels, run->ctx, panel_items(run->tile, run->n, task->states), run->bytes));
        run->weight = panels->data;
        return fill_panels(&weight, panels->data);
}

Status recurrent_run(const RunContext *ctx, const Recurrent *task)
{
        RecurrentRun run = { .ctx = ctx,
                             .task = task,
                             .cells = kernel_variant(&recurrent_family, task->dtype),
                             .tile = kernel_variant(&gemm_family, task->dtype),
                             .n = recurrent_gates(task->kind) * task->cells,
                             .bytes = dtype_info[task->dtype].bytes };
        const size_t size = (size_t)(task->batch * task->states) * run.bytes;
        _cleanup_(scratch_deinit) Scratch product = { 0 }, raw = { 0 }, weight = { 0 }, rows = { 0 };
        TRY(scratch_init(&product, ctx, task->batch * run.n, run.bytes));
        TRY(scratch_init(&raw, ctx, task->batch * task->cells, run.bytes));
        run.product = product.data;
        run.raw = raw.data;
        TRY(find_panels(&run, &weight, &rows));
        if (task->kind == RECURRENT_LSTM && task->batch * task->cells > 0)
                memcpy(task->last_cell, task->cell, (size_t)(task->batch * task->cells) * run.bytes);
        Step step = { .state = task->hidden };
        for (int64_t i = 0; i < task->steps; i++) {
                step.at = task->reverse ? task->steps - 1 - i : i;
                step.out = (char *)task->out + (size_t)step.at * size;
                TRY(run_step(&run, &step));
                step.state = step.out;
                run.turns = !run.turns;
        }
        if (size > 0)
                memcpy(task->last_hidden, step.state, size);
        return STATUS_OK;
}
