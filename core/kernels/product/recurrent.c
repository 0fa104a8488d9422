// SPDX-License-Identifier: Apache-2.0
// recurrent.c: step by step; a product of the hidden state with the weights, then the gates.
#include "core/kernels/product/recurrent.h"

#include <math.h>
#include <string.h>
#include "core/kernels/product/matmul.h"

int recurrent_gates(RecurrentKind kind)
{
        return kind == RECURRENT_LSTM ? 4 : kind == RECURRENT_GRU ? 3 : 1;
}

// Cells of one sample: x are the products with the inputs, h those with the state, `state` the
// hidden state of the step before (GRU), `cell` is read and written (LSTM).
#define CELLS(T, EXP, TANH)                                                                                  \
        static T sigmoid_##T(T x)                                                                            \
        {                                                                                                    \
                return 1 / (1 + EXP(-x));                                                                    \
        }                                                                                                    \
        static void cells_##T(RecurrentKind kind, int64_t n, const T *x, const T *h, const T *state,         \
                              T *cell, T *out)                                                               \
        {                                                                                                    \
                for (int64_t i = 0; i < n; i++) {                                                            \
                        if (kind == RECURRENT_LSTM) {                                                        \
                                T in = sigmoid_##T(x[i] + h[i]), keep = sigmoid_##T(x[n + i] + h[n + i]);    \
                                T new = TANH(x[2 * n + i] + h[2 * n + i]);                                   \
                                cell[i] = keep * cell[i] + in * new;                                         \
                                out[i] = sigmoid_##T(x[3 * n + i] + h[3 * n + i]) * TANH(cell[i]);           \
                        } else if (kind == RECURRENT_GRU) {                                                  \
                                T reset = sigmoid_##T(x[i] + h[i]);                                          \
                                T keep = sigmoid_##T(x[n + i] + h[n + i]);                                   \
                                T new = TANH(x[2 * n + i] + reset * h[2 * n + i]);                           \
                                out[i] = (state[i] - new) * keep + new;                                      \
                        } else {                                                                             \
                                T sum = x[i] + h[i];                                                         \
                                out[i] = kind == RECURRENT_TANH ? TANH(sum) : sum < 0 ? 0 : sum;             \
                        }                                                                                    \
                }                                                                                            \
        }
CELLS(float, expf, tanhf)
CELLS(double, exp, tanh)

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

typedef struct Step {
        int64_t at;
        const void *state; // hidden state before it
        void *out;         // and behind it
        void *products;    // scratch: [batch][G H]
        void *raw;         // scratch: [batch][H], before the projection
} Step;

static Status run_step(const RunContext *ctx, const Recurrent *task, const Step *step)
{
        const int64_t n = recurrent_gates(task->kind) * task->cells, bytes = dtype_info[task->dtype].bytes;
        void *cells = task->projection == NULL ? step->out : step->raw;
        const char *gates = (const char *)task->gates + step->at * task->batch * n * bytes;
        const Rows from_state = { n, task->states, step->state, task->weight, task->bias, step->products };
        TRY(product(ctx, task, &from_state));
        enum { CELL_STEPS = 64 }; // exponentials, for polls
        Work work = { .ctx = ctx };
        for (int64_t b = 0; b < task->batch && !work_stops(&work, CELL_STEPS * task->cells); b++) {
                const void *x = gates + b * n * bytes, *h = (const char *)step->products + b * n * bytes;
                const void *before = (const char *)step->state + b * task->states * bytes;
                void *to = (char *)cells + b * task->cells * bytes;
                void *cell =
                        task->last_cell == NULL ? NULL : (char *)task->last_cell + b * task->cells * bytes;
                if (task->dtype == DTYPE_F32)
                        cells_float(task->kind, task->cells, x, h, before, cell, to);
                else
                        cells_double(task->kind, task->cells, x, h, before, cell, to);
        }
        if (task->projection == NULL)
                return run_poll(ctx);
        const Rows projected = { task->states, task->cells, step->raw, task->projection, NULL, step->out };
        return product(ctx, task, &projected);
}

Status recurrent_run(const RunContext *ctx, const Recurrent *task)
{
        const int64_t bytes = dtype_info[task->dtype].bytes;
        const int64_t n = recurrent_gates(task->kind) * task->cells,
                      size = task->batch * task->states * bytes;
        _cleanup_(scratch_deinit) Scratch products = { 0 }, raw = { 0 };
        TRY(scratch_init(&products, ctx, task->batch * n, (size_t)bytes));
        TRY(scratch_init(&raw, ctx, task->batch * task->cells, (size_t)bytes));
        Step step = { .state = task->hidden, .products = products.data, .raw = raw.data };
        if (task->kind == RECURRENT_LSTM && task->batch * task->cells > 0)
                memcpy(task->last_cell, task->cell, (size_t)(task->batch * task->cells * bytes));
        for (int64_t i = 0; i < task->steps; i++) {
                step.at = task->reverse ? task->steps - 1 - i : i;
                step.out = (char *)task->out + step.at * size;
                TRY(run_step(ctx, task, &step));
                step.state = step.out;
        }
        if (size > 0)
                memcpy(task->last_hidden, step.state, (size_t)size);
        return STATUS_OK;
}
