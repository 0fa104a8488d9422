// SPDX-License-Identifier: Apache-2.0
// attention.c: chooses between blocked.c and products. Here pieces are blocks of query rows of one
// batch item: scores by one product, mask and softmax in place, values by a second product. Scores
// never exist for more than one block of rows per thread.
#include "core/kernels/attention/attention.h"
#include <math.h>
#include "core/kernels/attention/blocked.h"
#include "core/kernels/norm/softmax.h"
#include "core/tensor/half.h"

enum { SCORE_BYTES = 1 << 20, BLOCK_ROWS = 64, ROUNDING_STEPS = 8 };

typedef struct AttentionRun {
        const RunContext *ctx;
        const Attention *attention;
        int64_t rows, n_blocks; // query rows of a block; blocks of an item
        _Atomic int failed;
} AttentionRun;

void *attention_row(const Attention *attention, const GemmMatrix *matrix, int64_t item, int64_t row,
                    size_t item_bytes)
{
        int64_t offset = row * matrix->row;
        for (int d = attention->batch_rank - 1; d >= 0; d--) {
                offset += item % attention->batch_size[d] * matrix->batch[d];
                item /= attention->batch_size[d];
        }
        return (char *)matrix->data + offset * (int64_t)item_bytes;
}

// The mask and the causal rule over one row of scores of type T.
#define DEFINE_MASK_ROW(name, T)                                                                             \
        static void name(const Attention *attention, Work *work, const char *mask, int64_t row, T *scores)   \
        {                                                                                                    \
                int64_t step = attention->mask.col;                                                          \
                const T *added = (const void *)mask;                                                         \
                for (int64_t at = 0, end; (end = work_end(work, at, attention->s, 1)) > at; at = end) {      \
                        if (attention->mask_kind == MASK_BOOL) {                                             \
                                for (int64_t j = at; j < end; j++)                                           \
                                        scores[j] = mask[j * step] != 0 ? scores[j] : -INFINITY;             \
                        } else if (attention->mask_kind == MASK_ADD) {                                       \
                                for (int64_t j = at; j < end; j++)                                           \
                                        scores[j] += added[j * step];                                        \
                        }                                                                                    \
                        for (int64_t j = MAX(at, row + 1); attention->causal && j < end; j++)                \
                                scores[j] = -INFINITY;                                                       \
                }                                                                                            \
        }
DEFINE_MASK_ROW(mask_row_f32, float)
DEFINE_MASK_ROW(mask_row_f64, double)

// Weights of one row, not divided by their sum yet; returns 1 / sum (0 where nothing may be
// attended).
static double rounded_weights(Dtype dtype, Work *work, int64_t n, float *line)
{
        double sum = softmax_exp_row_f32(work, n, line, line);
        for (int64_t at = 0, end; (end = work_end(work, at, n, ROUNDING_STEPS)) > at; at = end) {
                for (int64_t j = at; j < end; j++)
                        line[j] = rounded_to_half(line[j], dtype);
        }
        return sum == 0 ? 0 : 1 / sum;
}

static void scale_rows(const Attention *attention, const GemmMatrix *out, int64_t n, const double *scale)
{
        for (int64_t i = 0; i < n; i++) {
                float *row = (float *)out->data + i * out->row;
                for (int64_t j = 0; j < attention->ev; j++)
                        row[j * out->col] = (float)((double)row[j * out->col] * scale[i]);
        }
}

static Status attend_block(const AttentionRun *run, const RunContext *ctx, int64_t item, int64_t row,
                           int64_t n, void *scores)
{
        const Attention *at = run->attention;
        size_t bytes = dtype_info[at->dtype].bytes, mask_bytes = at->mask_kind == MASK_BOOL ? 1 : bytes;
        Gemm score = { .dtype = at->dtype, .m = n, .n = at->s, .k = at->e, .alpha = at->scale };
        score.a = (GemmMatrix){ attention_row(at, &at->q, item, row, bytes), at->q.row, at->q.col, { 0 } };
        score.b = (GemmMatrix){ attention_row(at, &at->k, item, 0, bytes), at->k.col, at->k.row, { 0 } };
        score.c = (GemmMatrix){ scores, at->s, 1, { 0 } };
        TRY(gemm(ctx, &score));
        double row_scale[BLOCK_ROWS];
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, at->s); i++) {
                const char *mask = at->mask_kind == MASK_NONE
                                           ? NULL
                                           : attention_row(at, &at->mask, item, row + i, mask_bytes);
                if (at->dtype == DTYPE_F32) {
                        float *line = (float *)scores + i * at->s;
                        mask_row_f32(at, &work, mask, row + i, line);
                        if (at->weights == DTYPE_NONE)
                                softmax_row_f32(at->nan_rows ? SOFTMAX : SOFTMAX_SAFE, &work, at->s, line,
                                                line);
                        else
                                row_scale[i] = rounded_weights(at->weights, &work, at->s, line);
                } else {
                        double *line = (double *)scores + i * at->s;
                        mask_row_f64(at, &work, mask, row + i, line);
                        softmax_row_f64(at->nan_rows ? SOFTMAX : SOFTMAX_SAFE, &work, at->s, line, line);
                }
        }
        Gemm value = { .dtype = at->dtype, .m = n, .n = at->ev, .k = at->s, .alpha = 1, .a = score.c };
        value.b = (GemmMatrix){ attention_row(at, &at->v, item, 0, bytes), at->v.row, at->v.col, { 0 } };
        value.c = (GemmMatrix){
                attention_row(at, &at->out, item, row, bytes), at->out.row, at->out.col, { 0 }
        };
        TRY(gemm(ctx, &value));
        if (at->weights != DTYPE_NONE)
                scale_rows(at, &value.c, n, row_scale);
        return STATUS_OK;
}

static void attend_pieces(void *argument, int64_t begin, int64_t end)
{
        AttentionRun *run = argument;
        const Attention *at = run->attention;
        Scratch scores;
        if (scratch_init(&scores, run->ctx, run->rows * at->s, dtype_info[at->dtype].bytes) != STATUS_OK) {
                atomic_store(&run->failed, 1);
                return;
        }
        RunContext ctx; // this thread's part
        run_context_within(&ctx, run->ctx);
        for (int64_t piece = begin; piece < end; piece++) {
                int64_t row = piece % run->n_blocks * run->rows;
                if (attend_block(run, &ctx, piece / run->n_blocks, row, MIN(at->l - row, run->rows),
                                 scores.data) != STATUS_OK)
                        atomic_store(&run->failed, 1);
                if (run_stopping(run->ctx))
                        break;
        }
        scratch_deinit(&scores);
}

static Status run_by_products(const RunContext *ctx, const Attention *attention, int64_t items)
{
        AttentionRun run = { .ctx = ctx, .attention = attention };
        int64_t row_bytes = MAX((int64_t)1, attention->s) * dtype_info[attention->dtype].bytes;
        run.rows = MAX((int64_t)1, MIN((int64_t)BLOCK_ROWS, SCORE_BYTES / row_bytes));
        run.n_blocks = (attention->l + run.rows - 1) / run.rows;
        TRY(parallel_for(ctx, items * run.n_blocks, 1, attend_pieces, &run));
        TRY(run_poll(ctx));
        return atomic_load(&run.failed) ? STATUS_NO_MEMORY : STATUS_OK;
}

Status attention_run(const RunContext *ctx, const Attention *attention)
{
        int64_t items = 1;
        for (int d = 0; d < attention->batch_rank; d++)
                items *= attention->batch_size[d];
        if (items == 0 || attention->l == 0 || attention->ev == 0)
                return STATUS_OK;
        Status status = attention_is_blocked(attention) ? attention_run_blocked(ctx, attention, items)
                                                        : run_by_products(ctx, attention, items);
        if (status == STATUS_NO_MEMORY)
                return fail(STATUS_TOO_LARGE, "attention has no working memory left; send shorter sequences "
                                              "or start the server with a larger --max-run-memory");
        return status;
}
