// SPDX-License-Identifier: Apache-2.0
// linalg_solve.c: LU factors taken apart and used again, least squares.
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/linalg.h"

// ---- lu_unpack: P, L [m, k] and U [k, n] of packed factors [m, n], k the smaller size ----
typedef struct Unpacked {
        const Factoring *by;
        int64_t m, n, k, count;
        bool data, pivots;
} Unpacked;

static Unpacked unpacked_of(const OpCall *call)
{
        const TensorMeta *lu = arg_meta(call, SELF);
        Unpacked u = { .by = linalg_factoring(lu->dtype),
                       .m = lu->size[lu->rank - 2],
                       .n = lu->size[lu->rank - 1],
                       .count = linalg_count(lu, 2),
                       .data = arg_bool(call, LU_UNPACK_DATA, true),
                       .pivots = arg_bool(call, LU_UNPACK_PIVOTS, true) };
        u.k = MIN(u.m, u.n);
        return u;
}

static Status unpack_infer(OpCall *call)
{
        const TensorMeta *lu = arg_meta(call, SELF), *pivots = arg_meta(call, LU_PIVOTS);
        TRY(linalg_matrix(lu, "torch.lu_unpack"));
        const Unpacked u = unpacked_of(call);
        if (u.pivots && pivots->dtype != DTYPE_I32)
                return fail(STATUS_DTYPE,
                            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                            "torch.int32 dtype.");
        if (u.pivots && (pivots->rank != lu->rank - 1 || pivots->size[pivots->rank - 1] != u.k ||
                         linalg_count(pivots, 1) != u.count))
                return fail(STATUS_SHAPE, "torch.lu_unpack: LU_pivots do not fit LU_data");
        const int64_t sizes[3][2] = { { u.m, u.m }, { u.m, u.k }, { u.k, u.n } };
        for (uint32_t i = 0; i < 3; i++) {
                const int64_t none = 0;
                TensorMeta meta;
                meta_init(&meta, lu->dtype, 1, &none);
                if (i == 0 ? u.pivots : u.data)
                        TRY(linalg_meta(lu, 2, 2, sizes[i], false, &meta));
                TRY(out_fresh(call, i, &meta));
        }
        return STATUS_OK;
}

// The rows as the swaps leave them: P[order[i], i] = 1.
static Status permutation(const Unpacked *u, const int64_t *pivots, int64_t *order, void *p)
{
        for (int64_t i = 0; i < u->m; i++)
                order[i] = i;
        for (int64_t i = 0; i < u->k; i++) {
                const int64_t other = pivots[i] - 1;
                if (other < 0 || other >= u->m)
                        return fail(STATUS_VALUE,
                                    "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. "
                                    "Did you properly pass the result of lu_factor?");
                const int64_t swapped = order[i];
                order[i] = order[other];
                order[other] = swapped;
        }
        const double one = 1;
        for (int64_t i = 0; i < u->m; i++)
                memcpy(linalg_at(u->by, p, order[i] * u->m + i, 1), &one, sizeof(one));
        return STATUS_OK;
}

static void triangles(const Unpacked *u, const void *lu, void *l, void *upper, Work *work)
{
        const Factoring *by = u->by;
        const double one = 1; // the real part comes first
        for (int64_t i = 0; u->k > 0 && i < u->m && !work_stops(work, u->k); i++) {
                memset(linalg_at(by, l, i, u->k), 0, (size_t)u->k * by->bytes);
                linalg_copy(by, linalg_at(by, l, i, u->k), linalg_at(by, lu, i, u->n), 0, MIN(i, u->k));
                if (i < u->k)
                        memcpy(linalg_at(by, l, i, u->k + 1), &one, sizeof(one));
        }
        for (int64_t i = 0; i < u->k && !work_stops(work, u->n); i++) {
                memset(linalg_at(by, upper, i, u->n), 0, (size_t)i * by->bytes);
                linalg_copy(by, linalg_at(by, upper, i, u->n + 1), linalg_at(by, lu, i, u->n + 1), 0,
                            u->n - i);
        }
}

static void outs_deinit(DenseOut (*outs)[3])
{
        for (int i = 0; i < 3; i++)
                dense_out_deinit(&(*outs)[i]);
}

static Status unpack_run(const OpRun *run)
{
        const Unpacked u = unpacked_of(run->call);
        _cleanup_(dense_deinit) Dense lu = { 0 };
        _cleanup_(dense_deinit) Dense pivots = { 0 };
        _cleanup_(scratch_deinit) Scratch order = { 0 };
        _cleanup_(outs_deinit) DenseOut outs[3] = { 0 };
        const Dtype as = linalg_compute(run->in_meta[0]->dtype);
        TRY(dense_init(&lu, run->ctx, run->in[0], run->in_meta[0], as));
        if (u.pivots)
                TRY(dense_init(&pivots, run->ctx, run->in[1], run->in_meta[1], DTYPE_I64));
        TRY(scratch_init(&order, run->ctx, u.m + 1, sizeof(int64_t)));
        for (int i = 0; i < 3; i++)
                TRY(dense_out_init(&outs[i], run->ctx, run->out[i], run->out_meta[i], as));
        Work work = { .ctx = run->ctx };
        if (u.pivots && meta_numel(run->out_meta[0]) > 0)
                memset(outs[0].data, 0, (size_t)meta_numel(run->out_meta[0]) * u.by->bytes);
        for (int64_t b = 0; b < u.count && !work_stops(&work, u.m + 1); b++) {
                if (u.pivots)
                        TRY(permutation(&u, (const int64_t *)pivots.data + b * u.k, order.data,
                                        linalg_at(u.by, outs[0].data, b, u.m * u.m)));
                if (u.data)
                        triangles(&u, linalg_at(u.by, lu.data, b, u.m * u.n),
                                  linalg_at(u.by, outs[1].data, b, u.m * u.k),
                                  linalg_at(u.by, outs[2].data, b, u.k * u.n), &work);
        }
        TRY(run_poll(run->ctx));
        for (int i = 0; i < 3; i++)
                TRY(dense_out_store(&outs[i]));
        return STATUS_OK;
}

static Cost unpack_cost(const OpCall *call)
{
        return linalg_cost(call, 1);
}

// ---- made of it ----
static Status lu_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        if (!compose_bool(&c, "pivot"))
                return fail(STATUS_UNSUPPORTED, "linalg.lu: pivot=False is not supported on the CPU");
        Value factors = OP(&c, "aten::linalg_lu_factor_ex", NAMED(&c, "A"));
        Value parts = OP(&c, "aten::lu_unpack", compose_item(&c, factors, 0), compose_item(&c, factors, 1));
        return compose_end(&c, parts, out);
}

static Value turned(Compose *c, Value x)
{
        return OP(c, "aten::transpose.int", x, value_int(-2), value_int(-1));
}

static Value triangular(Compose *c, Value a, Value b, bool upper, bool unit)
{
        return OP(c, "aten::linalg_solve_triangular", a, b, value_bool(upper), value_bool(true),
                  value_bool(unit));
}

// X of A X = B, or of A^T X = B, where A = P L U.
static Value solved(Compose *c, Value lu, Value pivots, Value b, bool transposed)
{
        Value parts = OP(c, "aten::lu_unpack", lu, pivots), p = compose_item(c, parts, 0),
              l = compose_item(c, parts, 1), u = compose_item(c, parts, 2);
        if (!transposed) {
                Value x = triangular(c, l, OP(c, "aten::matmul", turned(c, p), b), false, true);
                return triangular(c, u, x, true, false);
        }
        Value x = triangular(c, turned(c, u), b, false, false);
        x = OP(c, "aten::matmul", p, triangular(c, turned(c, l), x, true, true));
        return turned(c, OP(c, "aten::contiguous", turned(c, x))); // by columns, as in PyTorch
}

static Status lu_solve_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value lu = NAMED(&c, "LU"), pivots = NAMED(&c, "pivots"), b = NAMED(&c, "B");
        const bool left = compose_bool(&c, "left"), adjoint = compose_bool(&c, "adjoint");
        TRY(linalg_square(compose_meta(&c, lu), "linalg.lu_solve"));
        if (compose_meta(&c, b)->dtype != compose_meta(&c, lu)->dtype)
                return fail(STATUS_DTYPE,
                            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
                            "%s and B of type %s instead",
                            dtype_words(compose_meta(&c, lu)->dtype),
                            dtype_words(compose_meta(&c, b)->dtype));
        if (adjoint && linalg_compute(compose_meta(&c, lu)->dtype) == DTYPE_C128)
                lu = OP(&c, "aten::conj_physical", lu); // the rest is A^T
        if (left)
                return compose_end(&c, solved(&c, lu, pivots, b, adjoint), out);
        Value x = turned(&c, solved(&c, lu, pivots, turned(&c, b), !adjoint));
        return compose_end(&c, x, out);
}

static Status old_lu_solve_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = OP(&c, "aten::linalg_lu_solve", NAMED(&c, "LU_data"), NAMED(&c, "LU_pivots"),
                     NAMED(&c, "self"));
        return compose_end(&c, x, out);
}

// ---- least squares ----
// The solution in memory as LAPACK leaves it: the first rows of a taller matrix, by columns.
static Value as_lapack(Compose *c, Value x, int64_t rows, bool vectors)
{
        const TensorMeta *meta = compose_meta(c, x);
        const int rank = meta->rank;
        int64_t size[MAX_RANK];
        memcpy(size, meta->size, sizeof(size));
        const int at = vectors ? rank - 1 : rank - 2;
        const int64_t n = compose_failed(c) ? 0 : size[at];
        if (!vectors && !compose_failed(c)) {
                size[rank - 2] = size[rank - 1];
                size[rank - 1] = rows;
        } else if (!compose_failed(c)) {
                size[at] = rows;
        }
        Value whole = OP(c, "aten::zeros", compose_ints(c, size, rank), value_dtype(meta->dtype));
        if (!vectors)
                whole = turned(c, whole);
        Value part = OP(c, "aten::narrow", whole, value_int(at), value_int(0), value_int(n));
        return OP(c, "aten::copy_", part, x);
}

// gelsy drops columns of a QR decomposition, not singular values: the solutions agree only where
// what is dropped is no more than rounding.
static void check_kept(Compose *c, Value a, Value kept, Value rounding)
{
        Value whole = OP(c, "aten::linalg_matrix_rank.atol_rtol_float", a, value_float(0), rounding);
        OP(c, "aten::_assert_async.msg", OP(c, "aten::all", OP(c, "aten::le.Tensor", whole, kept)),
           compose_text(
                   c, "torch.linalg.lstsq: an rcond that drops more than rounding errors is not supported"));
}

// By the pseudo-inverse, which gives the shortest solution, as LAPACK's gelsy does.
static Status lstsq_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), b = NAMED(&c, "b");
        const TensorMeta *meta = compose_meta(&c, a), *right = compose_meta(&c, b);
        TRY(linalg_matrix(meta, "torch.linalg.lstsq"));
        if (compose_has(&c, "driver") && strcmp(NAMED(&c, "driver").str->text, "gelsy") != 0)
                return fail(STATUS_UNSUPPORTED,
                            "torch.linalg.lstsq: driver \"%.20s\" is not supported; gelsy is",
                            NAMED(&c, "driver").str->text);
        const int rank = meta->rank;
        const bool vectors = right->rank == rank - 1;
        if (!vectors && right->rank != rank)
                return fail(STATUS_SHAPE, "torch.linalg.lstsq: input.dim() must be greater or equal to "
                                          "other.dim() and (input.dim() - other.dim()) <= 1");
        const int64_t m = meta->size[rank - 2], n = meta->size[rank - 1];
        if (right->size[vectors ? right->rank - 1 : rank - 2] != m)
                return fail(STATUS_SHAPE, "torch.linalg.lstsq: input.size(-2) should match other.size(%d)",
                            vectors ? -1 : -2);
        const double epsilon = meta->dtype == DTYPE_F64 ? DBL_EPSILON : FLT_EPSILON;
        // gelsy always keeps the largest column.
        Value limit = value_float(compose_has(&c, "rcond") ? fmin(compose_double(&c, "rcond"), 1 - epsilon)
                                                           : epsilon * (double)MAX(m, n));
        Value zero = value_float(0);
        Value inverse = OP(&c, "aten::linalg_pinv.atol_rtol_float", a, zero, limit);
        Value x = vectors ? OP(&c, "aten::squeeze.dim",
                               OP(&c, "aten::matmul", inverse, OP(&c, "aten::unsqueeze", b, value_int(-1))),
                               value_int(-1))
                          : OP(&c, "aten::matmul", inverse, b);
        Value none = OP(&c, "aten::empty.memory_format", INTS(&c, 0), value_dtype(meta->dtype));
        Value kept = OP(&c, "aten::linalg_matrix_rank.atol_rtol_float", a, zero, limit);
        if (compose_has(&c, "rcond"))
                check_kept(&c, a, kept, value_float(epsilon * (double)MAX(m, n)));
        if (meta_numel(right) == 0) // LAPACK factors nothing then
                kept = OP(&c, "aten::zeros_like", kept);
        Value items[] = { as_lapack(&c, x, MAX(m, n), vectors), none, kept, none };
        return compose_end(&c, compose_tuple(&c, items, 4), out);
}

#define MADE(schema, name)                                                                                   \
        {                                                                                                    \
                "aten::" schema, LINALG_NUMBERS, .expand = name##_expand,                                    \
                                                 .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING                 \
        }
const OpDef linalg_solve_ops[] = {
        { "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
          "-> (Tensor P, Tensor L, Tensor U)",
          LINALG_NUMBERS | 1u << DTYPE_F16 | 1u << DTYPE_BF16, OP_CHECKS, .infer = unpack_infer,
          .run = unpack_run, .cost = unpack_cost, .traits = TRAIT_FRESH },
        MADE("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", lu),
        MADE("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> "
             "Tensor",
             lu_solve),
        MADE("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", old_lu_solve),
        { "aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor "
          "solution, Tensor residuals, Tensor rank, Tensor singular_values)",
          LINALG_DTYPES, .expand = lstsq_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
};
OP_FILE(linalg_solve_ops);
