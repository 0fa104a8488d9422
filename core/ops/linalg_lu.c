// SPDX-License-Identifier: Apache-2.0
// linalg_lu.c: what an LU factorisation gives: solutions, inverses, determinants, the factors. One
// infer and one run serve all; a row says which results it has.
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/linalg.h"

// A letter per result: x solution, v inverse, d determinant, s its sign, g log of its magnitude, l
// the factors, p pivots, i info.
typedef struct LuRow {
        const char *outs, *name;
        bool checks;   // a singular matrix is refused
        int check_arg; // > 0: if this argument says so
} LuRow;

static bool has(const LuRow *row, char what)
{
        return strchr(row->outs, what) != NULL;
}

// A vector, or a batch of vectors, instead of matrices.
static bool is_vector(const TensorMeta *a, const TensorMeta *b)
{
        bool same = b->rank == 1 || a->rank - 1 == b->rank;
        for (int d = 0; same && b->rank > 1 && d < b->rank; d++)
                same = a->size[d] == b->size[d];
        return same;
}

static Status solution_meta(const OpCall *call, const LuRow *row, TensorMeta *out)
{
        const TensorMeta *a = arg_meta(call, SELF), *b = arg_meta(call, SOLVE_B);
        const bool left = arg_bool(call, SOLVE_LEFT, true), vector = is_vector(a, b);
        if (b->dtype != a->dtype)
                return fail(
                        STATUS_DTYPE,
                        "linalg.solve: Expected A and B to have the same dtype, but found A of type %s and B "
                        "of type %s instead",
                        dtype_words(a->dtype), dtype_words(b->dtype));
        if (b->rank == 0)
                return fail(STATUS_SHAPE, "linalg.solve: The input tensor B must have at least 1 dimension");
        const int64_t n = a->size[a->rank - 1];
        int64_t sizes[2] = { b->size[b->rank - 1], 1 };
        if (!vector) {
                sizes[0] = b->size[b->rank - 2];
                sizes[1] = b->size[b->rank - 1];
        }
        if (sizes[left ? 0 : 1] != n)
                return fail(
                        STATUS_SHAPE,
                        "%s: Incompatible shapes of A and B for the equation %s = B (%ldx%ld and %ldx%ld)",
                        row->name, left ? "AX" : "XA", (long)n, (long)n, (long)sizes[0], (long)sizes[1]);
        TensorMeta batches[2] = { *a, *b }, all = *a;
        int rank;
        batches[0].rank = (uint8_t)(a->rank - 2);
        batches[1].rank = (uint8_t)(b->rank - (vector ? 1 : 2));
        TRY(shape_broadcast(&batches[0], &batches[1], &rank, all.size));
        all.rank = (uint8_t)rank;
        return linalg_meta(&all, 0, vector ? 1 : 2, sizes, left, out);
}

static Status lu_infer(OpCall *call)
{
        const LuRow *row = call->op->row;
        const TensorMeta *a = arg_meta(call, SELF);
        const bool rectangular = !has(row, 'x') && !has(row, 'v') && !has(row, 'd') && !has(row, 's');
        TRY(rectangular ? linalg_matrix(a, row->name) : linalg_square(a, row->name));
        if (rectangular && !arg_bool(call, LU_PIVOT, true))
                return fail(STATUS_UNSUPPORTED,
                            "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1], least = MIN(m, n);
        for (uint32_t k = 0; row->outs[k] != '\0'; k++) {
                TensorMeta meta = { 0 };
                switch (row->outs[k]) {
                case 'x':
                        TRY(solution_meta(call, row, &meta));
                        break;
                case 'v':
                case 'l':
                        TRY(linalg_meta(a, 2, 2, (const int64_t[]){ m, n }, true, &meta));
                        break;
                case 'p':
                        TRY(linalg_meta(a, 2, 1, (const int64_t[]){ least, 0 }, false, &meta));
                        meta.dtype = DTYPE_I32;
                        break;
                default:
                        TRY(linalg_meta(a, 2, 0, (const int64_t[]){ 0, 0 }, false, &meta));
                        meta.dtype = row->outs[k] == 'i'                              ? DTYPE_I32
                                     : row->outs[k] != 'g'                            ? a->dtype
                                     : a->dtype == DTYPE_C64 || a->dtype == DTYPE_F32 ? DTYPE_F32
                                                                                      : DTYPE_F64;
                }
                TRY(out_fresh(call, k, &meta));
        }
        return STATUS_OK;
}

// ---- running ----
typedef struct LuRun {
        const OpRun *run;
        const LuRow *row;
        int64_t m, n, n_matrices;
        bool checks;
        const Factoring *by;
        void *lu; // of all matrices
        int32_t *pivots, *infos;
        DenseOut out[OP_INLINE_OUTS];
} LuRun;

static void lu_run_deinit(LuRun *lu)
{
        for (int k = 0; k < OP_INLINE_OUTS; k++)
                dense_out_deinit(&lu->out[k]);
}

static DenseOut *output(LuRun *lu, char what)
{
        const char *at = strchr(lu->row->outs, what);
        return at == NULL ? NULL : &lu->out[at - lu->row->outs];
}

static Status singular(const LuRun *lu, int64_t b)
{
        const BatchWords batch = linalg_words(lu->run->in_meta[0], b);
        const int at = lu->infos[b];
        if (has(lu->row, 'x'))
                return fail(STATUS_VALUE,
                            "torch.%s: %sThe solver failed because the input matrix is singular.",
                            lu->row->name, batch.text);
        if (has(lu->row, 'v'))
                return fail(
                        STATUS_VALUE,
                        "%s: %sThe diagonal element %d is zero, the inversion could not be completed because "
                        "the input matrix is singular.",
                        lu->row->name, batch.text, at);
        return fail(STATUS_VALUE,
                    "torch.%s: %sU[%d,%d] is zero and using it on lu_solve would result in a division by "
                    "zero. If "
                    "you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                    "linalg.lu_factor_ex(A, pivot)",
                    lu->row->name, batch.text, at, at);
}

static Status factor_all(LuRun *lu, Work *work)
{
        const int64_t least = MIN(lu->m, lu->n);
        // A float32 matrix whose pivot is this small has a 0 there in exact numbers: what is left
        // is rounding of the steps in float64.
        const Dtype dtype = lu->run->in_meta[0]->dtype;
        const bool exact = dtype == DTYPE_F64 || dtype == DTYPE_C128;
        const double noise = exact ? 0 : DBL_EPSILON * (double)MAX(lu->m, lu->n);
        for (int64_t b = 0; b < lu->n_matrices && !work->stops; b++) {
                void *a = linalg_at(lu->by, lu->lu, b, lu->m * lu->n);
                lu->infos[b] = lu->by->lu_factor(work, a, lu->m, lu->n, noise, lu->pivots + b * least);
                if (lu->infos[b] != 0 && lu->checks && !work->stops)
                        return singular(lu, b);
        }
        return work->stops ? run_poll(lu->run->ctx) : STATUS_OK;
}

static LuFactors factors_of(const LuRun *lu, int64_t b, bool transposed)
{
        const int64_t n = lu->n;
        return (LuFactors){ linalg_at(lu->by, lu->lu, b, n * n), lu->pivots + b * n, n, transposed };
}

// Element b of a result, or `unread` where the row does not have it.
static void *number_of(const LuRun *lu, const DenseOut *out, int64_t b, void *unread)
{
        return out == NULL ? unread : linalg_at(lu->by, out->data, b, 1);
}

static void determinants(LuRun *lu, Work *work)
{
        DenseOut *det = output(lu, 'd'), *sign = output(lu, 's'), *log_size = output(lu, 'g');
        double unread[2], unread_log;
        for (int64_t b = 0; b < lu->n_matrices && !work_stops(work, 8 * lu->n); b++) {
                const LuFactors factors = factors_of(lu, b, false);
                lu->by->lu_determinant(&factors, number_of(lu, det, b, unread),
                                       number_of(lu, sign, b, unread),
                                       log_size == NULL ? &unread_log : (double *)log_size->data + b);
        }
}

static void inverses(LuRun *lu, Work *work)
{
        const int64_t n = lu->n;
        char *inverse = output(lu, 'v')->data;
        const double one = 1; // the real part comes first
        for (int64_t b = 0; n > 0 && b < lu->n_matrices && !work->stops; b++) {
                const LuFactors factors = factors_of(lu, b, false);
                memset(inverse, 0, (size_t)(n * n) * lu->by->bytes);
                for (int64_t i = 0; i < n; i++)
                        memcpy(linalg_at(lu->by, inverse, i, n + 1), &one, sizeof(one));
                lu->by->lu_solve(work, &factors, inverse, n);
                inverse += n * n * (int64_t)lu->by->bytes;
        }
}

// From rows x columns in `from` to `to`, exchanged.
static void transpose(const Factoring *by, const void *from, void *to, int64_t rows, int64_t columns)
{
        for (int64_t i = 0; i < rows; i++) {
                for (int64_t j = 0; j < columns; j++)
                        linalg_copy(by, linalg_at(by, to, j * rows + i, 1), from, i * columns + j, 1);
        }
}

static Status solutions(LuRun *lu, Work *work)
{
        const OpRun *run = lu->run;
        const TensorMeta *am = run->in_meta[0], *bm = run->in_meta[1], *xm = run->out_meta[0];
        const bool left = arg_bool(run->call, SOLVE_LEFT, true);
        const int drop = is_vector(am, bm) ? 1 : 2;
        const int64_t n = lu->n, n_solutions = linalg_count(xm, drop);
        const int64_t size = n_solutions == 0 ? 0 : meta_numel(xm) / n_solutions, k = n == 0 ? 0 : size / n;
        _cleanup_(dense_deinit) Dense b_dense = { 0 };
        _cleanup_(scratch_deinit) Scratch turned = { 0 };
        TRY(dense_init(&b_dense, run->ctx, run->in[1], bm, linalg_compute(bm->dtype)));
        TRY(scratch_init(&turned, run->ctx, MAX(size, 1), lu->by->bytes));
        for (int64_t i = 0; i < n_solutions && size > 0 && !work_stops(work, 2 * size); i++) {
                const LuFactors factors = factors_of(lu, linalg_element(xm, drop, am, 2, i), !left);
                const void *b = linalg_at(lu->by, b_dense.data, linalg_element(xm, drop, bm, drop, i), size);
                void *x = linalg_at(lu->by, output(lu, 'x')->data, i, size), *to = left ? x : turned.data;
                if (left)
                        linalg_copy(lu->by, x, b, 0, size);
                else
                        transpose(lu->by, b, to, k, n);
                lu->by->lu_solve(work, &factors, to, k);
                if (!left)
                        transpose(lu->by, to, x, n, k);
        }
        return work->stops ? run_poll(run->ctx) : STATUS_OK;
}

static Status run_factored(LuRun *lu)
{
        Work work = { .ctx = lu->run->ctx };
        TRY(factor_all(lu, &work));
        if (has(lu->row, 'd') || has(lu->row, 's'))
                determinants(lu, &work);
        if (has(lu->row, 'v'))
                inverses(lu, &work);
        if (has(lu->row, 'x'))
                TRY(solutions(lu, &work));
        DenseOut *pivots = output(lu, 'p'), *info = output(lu, 'i'), *factors = output(lu, 'l');
        const int64_t n_pivots = lu->n_matrices * MIN(lu->m, lu->n);
        for (int64_t i = 0; i < n_pivots && pivots != NULL && !work_stops(&work, 1); i++)
                ((int64_t *)pivots->data)[i] = lu->pivots[i];
        for (int64_t i = 0; i < lu->n_matrices && info != NULL && !work_stops(&work, 1); i++)
                ((int64_t *)info->data)[i] = lu->infos[i];
        for (int64_t i = 0; i < lu->n_matrices && factors != NULL && !work_stops(&work, lu->m * lu->n); i++) {
                const int64_t n = lu->m * lu->n;
                linalg_copy(lu->by, linalg_at(lu->by, factors->data, i, n), lu->lu, i, n);
        }
        TRY(run_poll(lu->run->ctx));
        for (uint32_t k = 0; k < lu->run->n_out; k++)
                TRY(dense_out_store(&lu->out[k]));
        return STATUS_OK;
}

// A determinant's factors are those of A^T where A is real and contiguous, as PyTorch has them.
static bool factors_transposed(const LuRow *row, const TensorMeta *a)
{
        return has(row, 'l') && (has(row, 'd') || has(row, 's')) && meta_is_contiguous(a) &&
               linalg_compute(a->dtype) == DTYPE_F64;
}

static Status lu_run(const OpRun *run)
{
        const LuRow *row = run->call->op->row;
        const TensorMeta *a = run->in_meta[0];
        _cleanup_(lu_run_deinit) LuRun lu = { .run = run,
                                              .row = row,
                                              .by = linalg_factoring(a->dtype),
                                              .m = a->size[a->rank - 2],
                                              .n = a->size[a->rank - 1],
                                              .n_matrices = linalg_count(a, 2) };
        lu.checks = row->checks || (row->check_arg > 0 && arg_bool(run->call, row->check_arg, false));
        _cleanup_(dense_deinit) Dense in = { 0 };
        _cleanup_(scratch_deinit) Scratch factors = { 0 }, pivots = { 0 }, infos = { 0 };
        const int64_t numel = meta_numel(a);
        TensorMeta read = factors_transposed(row, a) ? linalg_turned(a) : *a;
        TRY(dense_init(&in, run->ctx, run->in[0], &read, linalg_compute(a->dtype)));
        TRY(scratch_init(&factors, run->ctx, MAX(numel, 1), lu.by->bytes));
        TRY(scratch_init(&pivots, run->ctx, lu.n_matrices * MIN(lu.m, lu.n) + 1, sizeof(int32_t)));
        TRY(scratch_init(&infos, run->ctx, lu.n_matrices + 1, sizeof(int32_t)));
        Work work = { .ctx = run->ctx };
        for (int64_t at = 0, end; (end = work_end(&work, at, numel, 1)) > at; at = end)
                linalg_copy(lu.by, linalg_at(lu.by, factors.data, at, 1), linalg_at(lu.by, in.data, at, 1), 0,
                            end - at);
        TRY(run_poll(run->ctx));
        lu.lu = factors.data;
        lu.pivots = pivots.data;
        lu.infos = infos.data;
        for (uint32_t k = 0; k < run->n_out; k++) {
                TRY(dense_out_init(&lu.out[k], run->ctx, run->out[k], run->out_meta[k],
                                   linalg_compute(run->out_meta[k]->dtype)));
        }
        return run_factored(&lu);
}

static Cost lu_cost(const OpCall *call)
{
        const LuRow *row = call->op->row;
        Cost cost = linalg_cost(call, has(row, 'v') ? 2 : 1);
        if (has(row, 'x'))
                cost.flops +=
                        saturating_product(meta_numel(&call->outs[0].meta),
                                           2 * arg_meta(call, SELF)->size[arg_meta(call, SELF)->rank - 1]);
        return cost;
}

#define LU(schema, outs_, name_, checks_, check_arg_)                                                        \
        {                                                                                                    \
                "aten::" schema, LINALG_NUMBERS, OP_CHECKS,                                                  \
                        .infer = lu_infer, .run = lu_run, .cost = lu_cost, .kernel = "lu_cpu",               \
                        .row = &(const LuRow){ outs_, name_, checks_, check_arg_ }, .traits = TRAIT_FRESH    \
        }
const OpDef linalg_lu_ops[] = {
        LU("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", "x", "linalg.solve", true, 0),
        LU("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
           "result, "
           "Tensor info)",
           "xi", "linalg.solve_ex", false, SOLVE_CHECK),
        LU("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
           "result, "
           "Tensor LU, Tensor pivots, Tensor info)",
           "xlpi", "linalg.solve", false, SOLVE_CHECK),
        LU("linalg_inv(Tensor A) -> Tensor", "v", "linalg.inv", true, 0),
        LU("inverse(Tensor self) -> Tensor", "v", "linalg.inv", true, 0),
        LU("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", "vi",
           "linalg.inv_ex", false, INV_CHECK),
        LU("linalg_det(Tensor A) -> Tensor", "d", "linalg.det", false, 0),
        LU("det(Tensor self) -> Tensor", "d", "linalg.det", false, 0),
        LU("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", "dlp", "linalg.det", false,
           0),
        LU("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", "sg", "linalg.slogdet", false, 0),
        LU("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", "sg", "linalg.slogdet", false, 0),
        LU("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", "sglp",
           "linalg.slogdet", false, 0),
        LU("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", "lp",
           "linalg.lu_factor", true, 0),
        LU("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor "
           "pivots, Tensor info)",
           "lpi", "linalg.lu_factor_ex", false, LU_CHECK),
};
OP_FILE(linalg_lu_ops);
