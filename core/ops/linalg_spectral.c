// SPDX-License-Identifier: Apache-2.0
// linalg_spectral.c: eigenvalues of symmetric matrices and singular values. Vectors are unique up
// to their sign (and up to rotations where values are equal), so they may differ from PyTorch's
// there.
#include <math.h>
#include <string.h>
#include "core/kernels/linalg/spectral.h"
#include "core/ops/arguments.h"
#include "core/ops/linalg.h"

static bool all_finite(Work *work, const double *a, int64_t n)
{
        for (int64_t i = 0; i < n && !work_stops(work, 1); i++) {
                if (!isfinite(a[i]))
                        return false;
        }
        return true;
}

static Status no_convergence(const char *name, const TensorMeta *a, int64_t b)
{
        return fail(STATUS_VALUE, "%s: %sThe algorithm failed to converge.", name, linalg_words(a, b).text);
}

// ---- eigh ----
typedef enum EighVectors { EIGH_VALUES, EIGH_BOTH, EIGH_BY_ARGUMENT } EighVectors;

static bool wants_vectors(const OpCall *call)
{
        const EighVectors *row = call->op->row;
        return *row == EIGH_BOTH || (*row == EIGH_BY_ARGUMENT && arg_bool(call, EIGH_VECTORS, true));
}

static Status eigh_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF);
        const EighVectors *row = call->op->row;
        const char *half = arg_text(call, EIGH_UPLO);
        TensorMeta meta;
        TRY(linalg_square(a, "linalg.eigh"));
        if (strlen(half) != 1 || strchr("LlUu", half[0]) == NULL)
                return fail(STATUS_VALUE, "Expected UPLO argument to be 'L' or 'U', but got %s", half);
        const int64_t n = a->size[a->rank - 1];
        TRY(linalg_meta(a, 2, 1, (const int64_t[]){ n, 0 }, false, &meta));
        TRY(out_fresh(call, 0, &meta));
        if (*row == EIGH_VALUES)
                return STATUS_OK;
        if (wants_vectors(call))
                TRY(linalg_meta(a, 2, 2, (const int64_t[]){ n, n }, true, &meta));
        else
                meta_init(&meta, a->dtype, 1, &(int64_t){ 0 });
        return out_fresh(call, 1, &meta);
}

// The lower triangle, on both sides.
static void symmetrise(Work *work, const double *from, double *to, int64_t n)
{
        for (int64_t i = 0; i < n && !work_stops(work, 2 * n); i++) {
                for (int64_t j = 0; j <= i; j++)
                        to[i * n + j] = to[j * n + i] = from[i * n + j];
        }
}

static Status eigh_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0];
        const char half = arg_text(run->call, EIGH_UPLO)[0];
        const TensorMeta read = half == 'U' || half == 'u' ? linalg_turned(a) : *a;
        const int64_t n = a->size[a->rank - 1], count = linalg_count(a, 2);
        const bool vectors = wants_vectors(run->call);
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        TRY(linalg_open(run, &read, n * n + 3 * n, 0, &io));
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; b < count && !work.stops; b++) {
                double *values = (double *)io.out[0].data + b * n;
                double *v = vectors ? (double *)io.out[1].data + b * n * n : NULL;
                symmetrise(&work, (const double *)io.in.data + b * n * n, io.numbers, n);
                if (all_finite(&work, io.numbers, n * n)) {
                        if (!symmetric_eigen(&work, io.numbers, n, values, v, (double *)io.numbers + n * n) &&
                            !work.stops)
                                return no_convergence("linalg.eigh", a, b);
                        continue;
                }
                for (int64_t i = 0; i < n * n && !work_stops(&work, 1); i++) {
                        values[i / n] = NAN;
                        if (v != NULL)
                                v[i] = NAN;
                }
        }
        return linalg_store(run, &io);
}

static Cost eigh_cost(const OpCall *call)
{
        return linalg_cost(call, 32);
}

// ---- svd ----
static Status svd_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF);
        TRY(linalg_matrix(a, "linalg.svd"));
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1], least = MIN(m, n);
        const bool full = arg_bool(call, SVD_FULL, false), vectors = arg_bool(call, SVD_VECTORS, true);
        TensorMeta u, s, vh;
        TRY(linalg_meta(a, 2, 1, (const int64_t[]){ least, 0 }, false, &s));
        TRY(linalg_meta(a, 2, 2, (const int64_t[]){ m, full ? m : least }, true, &u));
        TRY(linalg_meta(a, 2, 2, (const int64_t[]){ full ? n : least, n }, true, &vh));
        if (!vectors) {
                meta_init(&u, a->dtype, 1, &(int64_t){ 0 });
                vh = u;
        }
        TRY(out_fresh(call, 0, &u));
        TRY(out_fresh(call, 1, &s));
        return out_fresh(call, 2, &vh);
}

static bool all_zero_row(const double *row, int64_t n)
{
        for (int64_t i = 0; i < n; i++) {
                if (row[i] != 0)
                        return false;
        }
        return true;
}

// One matrix, seen so that it has more rows than columns: `large` x `least`.
typedef struct Svd {
        int64_t large, least, wanted; // wanted: left vectors
        double *rows;                 // least x large: the columns, then the left vectors
        double *v;                    // least x least
        double *basis, *tau;          // large x least, least
        double *q;                    // large x large
} Svd;

// The left vectors as rows of `out`. Where the values are 0, and beyond `least`, any that are
// orthogonal to the others will do.
static void left_vectors(Work *work, const Svd *svd, double *out)
{
        const int64_t m = svd->large, n = svd->least;
        int64_t r = 0;
        while (r < n && !all_zero_row(svd->rows + r * m, m))
                r++;
        if (r > 0)
                memcpy(out, svd->rows, (size_t)(r * m) * sizeof(double));
        if (r == svd->wanted)
                return;
        for (int64_t i = 0; i < m && !work_stops(work, r); i++) {
                for (int64_t j = 0; j < r; j++)
                        svd->basis[i * r + j] = svd->rows[j * m + i];
        }
        factoring_real.qr_factor(work, svd->basis, m, r, svd->tau);
        factoring_real.qr_make_q(work, &(QrFactors){ svd->basis, svd->tau, m, r }, svd->q, m);
        for (int64_t j = r; j < svd->wanted && !work_stops(work, m); j++) {
                for (int64_t i = 0; i < m; i++)
                        out[j * m + i] = svd->q[i * m + j];
        }
}

static Status svd_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0];
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1], count = linalg_count(a, 2);
        const bool tall = m >= n, vectors = arg_bool(run->call, SVD_VECTORS, true);
        Svd svd = { .large = MAX(m, n), .least = MIN(m, n) };
        svd.wanted = arg_bool(run->call, SVD_FULL, false) ? svd.large : svd.least;
        const int64_t block = svd.large * svd.least,
                      more = vectors ? block + svd.least + svd.large * svd.large : 6 * svd.large;
        const TensorMeta read = tall ? linalg_turned(a) : *a;
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        // U is made of rows, too: it is written exchanged.
        TRY(linalg_open(run, &read, block + more, vectors ? 1 : 0, &io));
        svd.rows = io.numbers;
        svd.basis = svd.rows + block; // with vectors, as tau and q
        svd.tau = svd.basis + block;
        svd.q = svd.tau + svd.least;
        double *left = io.out[tall ? 0 : 2].data, *right = io.out[tall ? 2 : 0].data;
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; b < count && !work_stops(&work, block); b++) {
                linalg_copy(io.by, svd.rows, io.in.data, b, block);
                if (!all_finite(&work, svd.rows, block))
                        return fail(STATUS_VALUE,
                                    "linalg.svd: %sThe algorithm failed to converge because the input matrix "
                                    "contained non-finite values.",
                                    linalg_words(a, b).text);
                double *values = (double *)io.out[1].data + b * svd.least;
                svd.v = vectors ? right + b * svd.least * svd.least : NULL;
                bool found = vectors ? singular_vectors(&work, svd.rows, svd.large, svd.least, values, svd.v)
                                     : singular_values(&work, svd.rows, svd.large, svd.least, values,
                                                       svd.rows + block);
                if (!found && !work.stops)
                        return no_convergence("linalg.svd", a, b);
                if (vectors)
                        left_vectors(&work, &svd, left + b * svd.wanted * svd.large);
        }
        return linalg_store(run, &io);
}

static const EighVectors values_only = EIGH_VALUES, both = EIGH_BOTH, by_argument = EIGH_BY_ARGUMENT;
#define SPECTRAL(schema, name, row_)                                                                         \
        {                                                                                                    \
                "aten::" schema, LINALG_DTYPES, OP_CHECKS,                                                   \
                        .infer = name##_infer, .run = name##_run, .cost = eigh_cost,                         \
                        .kernel = "linalg_" #name "_cpu", .row = row_, .traits = TRAIT_FRESH                 \
        }
const OpDef linalg_spectral_ops[] = {
        SPECTRAL("_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor "
                 "eigenvectors)",
                 eigh, &by_argument),
        SPECTRAL("linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
                 eigh, &both),
        SPECTRAL("linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", eigh, &values_only),
        SPECTRAL("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
                 "-> (Tensor U, Tensor S, Tensor Vh)",
                 svd, NULL),
};
OP_FILE(linalg_spectral_ops);
