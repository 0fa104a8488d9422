// SPDX-License-Identifier: Apache-2.0
// linalg_factor.c: Cholesky, triangular systems, QR, the exponential.
#include <stdio.h>
#include <string.h>
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/linalg.h"

// ---- Cholesky ----
typedef struct CholeskyRow {
        const char *name;
        bool checks, has_info;
} CholeskyRow;

static Status cholesky_infer(OpCall *call)
{
        const CholeskyRow *row = call->op->row;
        const TensorMeta *a = arg_meta(call, SELF);
        TensorMeta meta;
        TRY(linalg_square(a, row->name));
        const int64_t n = a->size[a->rank - 1];
        TRY(linalg_meta(a, 2, 2, (const int64_t[]){ n, n }, true, &meta));
        TRY(out_fresh(call, 0, &meta));
        if (!row->has_info)
                return STATUS_OK;
        TRY(linalg_meta(a, 2, 0, (const int64_t[]){ 0, 0 }, false, &meta));
        meta.dtype = DTYPE_I32;
        return out_fresh(call, 1, &meta);
}

static Status cholesky_run(const OpRun *run)
{
        const CholeskyRow *row = run->call->op->row;
        const TensorMeta *a = run->in_meta[0];
        const bool upper = arg_bool(run->call, CHOLESKY_UPPER, false);
        const bool checks = row->checks || (row->has_info && arg_bool(run->call, CHOLESKY_CHECK, false));
        const TensorMeta read = upper ? linalg_turned(a) : *a;
        const int64_t n = a->size[a->rank - 1], count = linalg_count(a, 2);
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        TRY(linalg_open(run, &read, 0, upper ? 1 : 0, &io));
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; b < count && !work_stops(&work, n * n); b++) {
                void *l = linalg_at(io.by, io.out[0].data, b, n * n);
                linalg_copy(io.by, l, io.in.data, b, n * n);
                int32_t info = io.by->cholesky_factor(&work, l, n);
                if (info != 0 && checks && !work.stops)
                        return fail(STATUS_VALUE,
                                    "%s: %sThe factorization could not be completed because the input is not "
                                    "positive-definite (the leading minor of order %d is not "
                                    "positive-definite).",
                                    row->name, linalg_words(a, b).text, (int)info);
                if (row->has_info)
                        ((int64_t *)io.out[1].data)[b] = info;
        }
        return linalg_store(run, &io);
}

// ---- triangular systems ----
static Status triangular_infer(OpCall *call)
{
        static const char name[] = "linalg.solve_triangular";
        const TensorMeta *a = arg_meta(call, SELF), *b = arg_meta(call, TRIANGULAR_B);
        const bool left = arg_bool(call, TRIANGULAR_LEFT, true);
        TRY(linalg_square(a, name));
        if (b->rank < 2)
                return fail(STATUS_SHAPE, "%s: The input tensor B must have at least 2 dimensions.", name);
        const int64_t n = a->size[a->rank - 1], sizes[] = { b->size[b->rank - 2], b->size[b->rank - 1] };
        if (sizes[left ? 0 : 1] != n)
                return fail(
                        STATUS_SHAPE,
                        "%s: Incompatible shapes of A and B for the equation %s = B (%ldx%ld and %ldx%ld)",
                        name, left ? "AX" : "XA", (long)n, (long)n, (long)sizes[0], (long)sizes[1]);
        TensorMeta batches[] = { *a, *b }, all = *a, meta;
        int rank;
        batches[0].rank = (uint8_t)(a->rank - 2);
        batches[1].rank = (uint8_t)(b->rank - 2);
        TRY(shape_broadcast(&batches[0], &batches[1], &rank, all.size));
        all.rank = (uint8_t)rank;
        TRY(linalg_meta(&all, 0, 2, sizes, true, &meta));
        return out_fresh(call, 0, &meta);
}

// B takes the dtype of A, whatever its own.
static Status triangular_cast_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value args[SCHEMA_MAX_ARGS];
        compose_begin(&c, emitter, call);
        memcpy(args, call->args, call->n_args * sizeof(*args));
        args[TRIANGULAR_B] = compose_cast(&c, args[TRIANGULAR_B], arg_meta(call, SELF)->dtype);
        return compose_end(&c, compose_emit(&c, "aten::linalg_solve_triangular", args, call->n_args), out);
}

static OpExpand triangular_form(const OpCall *call)
{
        const Dtype a = arg_meta(call, SELF)->dtype;
        const bool casts =
                ((uint32_t)LINALG_NUMBERS >> a & 1) != 0 && arg_meta(call, TRIANGULAR_B)->dtype != a;
        return casts ? triangular_cast_expand : NULL;
}

// X A = B is A^T X^T = B^T.
static Status triangular_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0], *b = run->in_meta[1], *x = run->out_meta[0];
        const bool left = arg_bool(run->call, TRIANGULAR_LEFT, true);
        const TensorMeta read = left ? *b : linalg_turned(b);
        const int64_t n = a->size[a->rank - 1], count = linalg_count(x, 2);
        const int64_t size = count == 0 ? 0 : meta_numel(x) / count;
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        _cleanup_(dense_deinit) Dense right = { 0 };
        TRY(linalg_open(run, a, 0, left ? 0 : 1, &io));
        TRY(dense_init(&right, run->ctx, run->in[1], &read, linalg_compute(b->dtype)));
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < count && size > 0 && !work_stops(&work, size); i++) {
                void *to = linalg_at(io.by, io.out[0].data, i, size);
                linalg_copy(io.by, to, right.data, linalg_element(x, 2, b, 2, i), size);
                const Triangle triangle = { .a = linalg_at(io.by, io.in.data, linalg_element(x, 2, a, 2, i),
                                                           n * n),
                                            .n = n,
                                            .upper = arg_bool(run->call, TRIANGULAR_UPPER, false),
                                            .unit = arg_bool(run->call, TRIANGULAR_UNIT, false),
                                            .transposed = !left };
                io.by->triangle_solve(&work, &triangle, to, size / n);
        }
        return linalg_store(run, &io);
}

static Cost triangular_cost(const OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF);
        const int64_t numel = meta_numel(&call->outs[0].meta);
        return (Cost){ .flops = saturating_product(numel, a->size[a->rank - 1]),
                       .bytes = saturating_product(numel + meta_numel(a), 16) };
}

// ---- QR ----
typedef enum QrMode { QR_REDUCED, QR_COMPLETE, QR_R } QrMode;

static Status qr_mode(const OpCall *call, QrMode *out)
{
        const char *text = arg_text(call, QR_MODE);
        *out = strcmp(text, "complete") == 0 ? QR_COMPLETE : strcmp(text, "r") == 0 ? QR_R : QR_REDUCED;
        return *out != QR_REDUCED || strcmp(text, "reduced") == 0
                       ? STATUS_OK
                       : fail(STATUS_VALUE,
                              "qr received unrecognized mode '%s' but expected one of 'reduced' (default), "
                              "'r', "
                              "or 'complete'",
                              text);
}

static Status qr_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF);
        QrMode mode;
        TensorMeta meta;
        TRY(linalg_matrix(a, "linalg.qr"));
        TRY(qr_mode(call, &mode));
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1];
        const int64_t k = mode == QR_COMPLETE ? m : MIN(m, n);
        if (mode == QR_R)
                meta_init(&meta, a->dtype, 1, &(int64_t){ 0 });
        else
                TRY(linalg_meta(a, 2, 2, (const int64_t[]){ m, k }, true, &meta));
        TRY(out_fresh(call, 0, &meta));
        TRY(linalg_meta(a, 2, 2, (const int64_t[]){ k, n }, true, &meta));
        return out_fresh(call, 1, &meta);
}

static Status qr_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0];
        QrMode mode;
        TRY(qr_mode(run->call, &mode));
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1], least = MIN(m, n);
        const int64_t k = mode == QR_COMPLETE ? m : least, count = linalg_count(a, 2);
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        TRY(linalg_open(run, a, m * n + least, 0, &io));
        Work work = { .ctx = run->ctx };
        void *factors = io.numbers, *tau = linalg_at(io.by, factors, 1, m * n);
        for (int64_t b = 0; b < count && !work_stops(&work, m * n); b++) {
                linalg_copy(io.by, factors, io.in.data, b, m * n);
                io.by->qr_factor(&work, factors, m, n, tau);
                for (int64_t i = 0; n > 0 && i < k; i++) {
                        char *row = linalg_at(io.by, io.out[1].data, b * k + i, n);
                        const int64_t left = MIN(i, n);
                        memset(row, 0, (size_t)left * io.by->bytes);
                        linalg_copy(io.by, row + left * (int64_t)io.by->bytes,
                                    linalg_at(io.by, factors, i * n + left, 1), 0, n - left);
                }
                if (mode != QR_R)
                        io.by->qr_make_q(&work, &(QrFactors){ factors, tau, m, n },
                                         linalg_at(io.by, io.out[0].data, b, m * k), k);
        }
        return linalg_store(run, &io);
}

// ---- exponential ----
static Status exp_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF);
        TensorMeta meta = *a;
        TRY(linalg_square(a, "linalg.matrix_exp"));
        meta_set_contiguous(&meta);
        return out_fresh(call, 0, &meta);
}

static Status exp_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0];
        const int64_t n = a->size[a->rank - 1], count = linalg_count(a, 2);
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        TRY(linalg_open(run, a, 2 * n * n, 0, &io));
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; b < count && !work_stops(&work, n * n); b++)
                io.by->matrix_exp(&work, linalg_at(io.by, io.in.data, b, n * n),
                                  linalg_at(io.by, io.out[0].data, b, n * n), io.numbers, n);
        return linalg_store(run, &io);
}

static Cost factor_cost(const OpCall *call)
{
        return linalg_cost(call, 2);
}

static Cost exp_cost(const OpCall *call)
{
        return linalg_cost(call, 20);
}

#define CHOLESKY(schema, ...)                                                                                \
        {                                                                                                    \
                "aten::" schema, LINALG_NUMBERS, OP_CHECKS, .infer = cholesky_infer, .run = cholesky_run,    \
                                                            .cost = factor_cost, .kernel = "cholesky_cpu",   \
                                                            .row = &(const CholeskyRow){ __VA_ARGS__ },      \
                                                            .traits = TRAIT_FRESH                            \
        }
#define PLAIN(schema, name, cost_, kernel_)                                                                  \
        {                                                                                                    \
                "aten::" schema, LINALG_NUMBERS, .infer = name##_infer, .run = name##_run, .cost = cost_,    \
                                                 .kernel = kernel_, .traits = TRAIT_FRESH                    \
        }
// ---- failures that an earlier operator found ----
static Status no_results(OpCall *call)
{
        (void)call;
        return STATUS_OK;
}

// In PyTorch's words, by the name of the caller.
static Status info_failure(const char *name, const char *batch, int64_t info)
{
        const long at = (long)info;
        if (strstr(name, "inv") != NULL)
                return fail(STATUS_RUN,
                            "%s: %sThe diagonal element %ld is zero, the inversion could not be completed "
                            "because the input matrix is singular.",
                            name, batch, at);
        if (strstr(name, "solve") != NULL)
                return fail(STATUS_RUN, "%s: %sThe solver failed because the input matrix is singular.", name,
                            batch);
        if (strstr(name, "cholesky") != NULL)
                return fail(STATUS_RUN,
                            "%s: %sThe factorization could not be completed because the input is not "
                            "positive-definite (the leading minor of order %ld is not positive-definite).",
                            name, batch, at);
        if (strstr(name, "svd") != NULL || strstr(name, "eig") != NULL)
                return fail(STATUS_RUN,
                            "%s: %sThe algorithm failed to converge because the input matrix is "
                            "ill-conditioned or has too many repeated %s values (error code: %ld).",
                            name, batch, strstr(name, "svd") != NULL ? "singular" : "eigen", at);
        return fail(STATUS_RUN, "%s: %sthe input matrix is singular (error code: %ld)", name, batch, at);
}

static Status check_errors_run(const OpRun *run)
{
        _cleanup_(dense_deinit) Dense infos = { 0 };
        TRY(dense_init(&infos, run->ctx, run->in[0], run->in_meta[0], DTYPE_I64));
        const int64_t *info = infos.data;
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; b < meta_numel(run->in_meta[0]) && !work_stops(&work, 1); b++) {
                char batch[48] = "";
                if (run->in_meta[0]->rank > 0)
                        snprintf(batch, sizeof(batch), "(Batch element %ld): ", (long)b);
                if (info[b] != 0)
                        return info_failure(arg_text(run->call, CHECK_ERRORS_API_NAME), batch, info[b]);
        }
        return run_poll(run->ctx);
}

const OpDef linalg_factor_ops[] = {
        { "aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", 1u << DTYPE_I32,
          OP_EFFECT, .infer = no_results, .run = check_errors_run },
        CHOLESKY("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", "linalg.cholesky", true,
                 false),
        CHOLESKY("cholesky(Tensor self, bool upper=False) -> Tensor", "cholesky", true, false),
        CHOLESKY(
                "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
                "Tensor info)",
                "linalg.cholesky_ex", false, true),
        { "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
          "unitriangular=False) -> Tensor",
          LINALG_NUMBERS, .infer = triangular_infer, .run = triangular_run, .form = triangular_form,
          .cost = triangular_cost, .kernel = "triangular_solve_cpu", .traits = TRAIT_FRESH },
        PLAIN("linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)", qr, factor_cost,
              "geqrf_cpu"),
        PLAIN("linalg_matrix_exp(Tensor self) -> Tensor", exp, exp_cost, "matrix_exp"),
        PLAIN("matrix_exp(Tensor self) -> Tensor", exp, exp_cost, "matrix_exp"),
};
OP_FILE(linalg_factor_ops);
