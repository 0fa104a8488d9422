// SPDX-License-Identifier: Apache-2.0
// linalg_reflect.c: products of Householder's reflections as LAPACK stores them: geqrf, orgqr,
// ormqr.
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/linalg.h"

// ---- geqrf ----
static Status geqrf_infer(OpCall *call)
{
        const TensorMeta *a = arg_meta(call, SELF);
        TensorMeta meta;
        if (a->rank < 2)
                return fail(STATUS_SHAPE, "torch.geqrf: input must have at least 2 dimensions.");
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1];
        TRY(linalg_meta(a, 2, 2, (const int64_t[]){ m, n }, true, &meta));
        TRY(out_fresh(call, 0, &meta));
        TRY(linalg_meta(a, 2, 1, (const int64_t[]){ MIN(m, n), 0 }, false, &meta));
        return out_fresh(call, 1, &meta);
}

static Status geqrf_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0];
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1];
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        TRY(linalg_open(run, a, 0, 0, &io));
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; m * n > 0 && b < linalg_count(a, 2) && !work_stops(&work, m * n); b++) {
                void *factors = linalg_at(io.by, io.out[0].data, b, m * n);
                linalg_copy(io.by, factors, io.in.data, b, m * n);
                io.by->qr_factor(&work, factors, m, n, linalg_at(io.by, io.out[1].data, b, MIN(m, n)));
        }
        return linalg_store(run, &io);
}

// ---- the first columns of the product ----
// `part`: tau, or ormqr's other operand. Its first dimensions are the input's.
static Status check_batch(const char *name, const TensorMeta *input, const TensorMeta *part, int n_own,
                          const char *part_name)
{
        char text[128];
        const int batch = input->rank - 2;
        for (int d = 0; d < batch; d++) {
                if (part->rank != batch + n_own || part->size[d] != input->size[d])
                        return fail(STATUS_SHAPE,
                                    "torch.%s: Expected batch dimensions of %s to be equal to "
                                    "input.shape[:-2], but got %s",
                                    name, part_name,
                                    shape_text(MIN(batch, part->rank), part->size, text, sizeof(text)));
        }
        return STATUS_OK;
}

static Status check_tau(const char *name, const TensorMeta *input, const TensorMeta *tau)
{
        if (tau->rank != input->rank - 1)
                return fail(STATUS_SHAPE,
                            "torch.%s: Expected tau to have one dimension less than input, but got tau.ndim "
                            "equal to %d and input.ndim is equal to %d",
                            name, tau->rank, input->rank);
        return check_batch(name, input, tau, 1, "tau");
}

static Status product_infer(OpCall *call)
{
        static const char name[] = "linalg.householder_product";
        const TensorMeta *a = arg_meta(call, SELF), *tau = arg_meta(call, HOUSEHOLDER_TAU);
        TensorMeta meta;
        if (a->rank < 2)
                return fail(STATUS_SHAPE, "torch.%s: input must have at least 2 dimensions.", name);
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1];
        if (m < n)
                return fail(STATUS_SHAPE,
                            "torch.%s: input.shape[-2] must be greater than or equal to input.shape[-1]",
                            name);
        if (tau->rank > 0 && tau->size[tau->rank - 1] > n)
                return fail(STATUS_SHAPE,
                            "torch.%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", name);
        TRY(check_tau(name, a, tau));
        if (tau->dtype != a->dtype)
                return fail(STATUS_DTYPE, "torch.%s: tau dtype %s does not match input dtype %s", name,
                            dtype_words(tau->dtype), dtype_words(a->dtype));
        TRY(linalg_meta(a, 2, 2, (const int64_t[]){ m, n }, true, &meta));
        return out_fresh(call, 0, &meta);
}

// The reflections that tau does not name are none: their factor is 0.
static Status product_run(const OpRun *run)
{
        const TensorMeta *a = run->in_meta[0], *tau_meta = run->in_meta[1];
        const int64_t m = a->size[a->rank - 2], n = a->size[a->rank - 1];
        const int64_t k = tau_meta->size[tau_meta->rank - 1];
        _cleanup_(linalg_io_deinit) LinalgIo io = { 0 };
        _cleanup_(dense_deinit) Dense tau = { 0 };
        TRY(linalg_open(run, a, n, 0, &io));
        TRY(dense_init(&tau, run->ctx, run->in[1], tau_meta, linalg_compute(a->dtype)));
        Work work = { .ctx = run->ctx };
        for (int64_t b = 0; n > 0 && b < linalg_count(a, 2) && !work_stops(&work, m * n); b++) {
                memset(io.numbers, 0, (size_t)n * io.by->bytes);
                linalg_copy(io.by, io.numbers, tau.data, b, k);
                const QrFactors factors = { linalg_at(io.by, io.in.data, b, m * n), io.numbers, m, n };
                io.by->qr_make_q(&work, &factors, linalg_at(io.by, io.out[0].data, b, m * n), n);
        }
        return linalg_store(run, &io);
}

static Cost reflect_cost(const OpCall *call)
{
        return linalg_cost(call, 2);
}

static Status orgqr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(
                &c, OP(&c, "aten::linalg_householder_product", NAMED(&c, "self"), NAMED(&c, "input2")), out);
}

// ---- the whole product times a matrix ----
static Status check_ormqr(const TensorMeta *a, const TensorMeta *tau, const TensorMeta *other, bool left)
{
        static const char name[] = "ormqr";
        if (a->rank < 2 || other->rank < 2)
                return fail(STATUS_SHAPE, "torch.ormqr: %s must have at least 2 dimensions.",
                            a->rank < 2 ? "input" : "other");
        const int64_t m = a->size[a->rank - 2];
        const int dim = other->rank - (left ? 2 : 1), behind = left ? 2 : 1;
        if (other->size[dim] != m)
                return fail(STATUS_SHAPE, "torch.ormqr: other.shape[-%d] must be equal to input.shape[-2]",
                            behind);
        if (tau->rank == 0 || tau->size[tau->rank - 1] != MIN(m, a->size[a->rank - 1]))
                return fail(STATUS_SHAPE,
                            "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-%d], "
                            "input.shape[-1])",
                            behind);
        TRY(check_tau(name, a, tau));
        if (other->rank != a->rank)
                return fail(STATUS_SHAPE,
                            "torch.ormqr: Expected other to have the same number of dimensions as input, but "
                            "got other.ndim equal to %d and input.ndim is equal to %d",
                            other->rank, a->rank);
        TRY(check_batch(name, a, other, 2, "other"));
        if (tau->dtype != a->dtype || other->dtype != a->dtype)
                return fail(STATUS_DTYPE,
                            "torch.ormqr: Expected input and %s to have the same dtype, but input has "
                            "dtype%s and %s has dtype %s",
                            tau->dtype != a->dtype ? "tau" : "other", dtype_words(a->dtype),
                            tau->dtype != a->dtype ? "tau" : "other",
                            dtype_words(tau->dtype != a->dtype ? tau->dtype : other->dtype));
        return STATUS_OK;
}

// Computed turned, so that the result lies by columns.
static Status ormqr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), tau = NAMED(&c, "input2"), other = NAMED(&c, "input3");
        const bool left = compose_bool(&c, "left"), transpose = compose_bool(&c, "transpose");
        const TensorMeta *meta = compose_meta(&c, a);
        TRY(check_ormqr(meta, compose_meta(&c, tau), compose_meta(&c, other), left));
        if (((uint32_t)LINALG_NUMBERS >> meta->dtype & 1) == 0)
                return fail(STATUS_DTYPE, "\"ormqr_cpu\" not implemented for '%s'", dtype_words(meta->dtype));
        const int64_t m = meta->size[meta->rank - 2], n = meta->size[meta->rank - 1];
        Value square = n > m ? OP(&c, "aten::slice.Tensor", a, value_int(-1), value_int(0), value_int(m))
                             : OP(&c, "aten::constant_pad_nd", a, INTS(&c, 0, m - n));
        Value q = OP(&c, "aten::linalg_householder_product", square, tau);
        q = transpose ? OP(&c, "aten::conj", q) : OP(&c, "aten::mT", q);
        other = OP(&c, "aten::mT", other);
        Value product = left ? OP(&c, "aten::matmul", other, q) : OP(&c, "aten::matmul", q, other);
        return compose_end(&c, OP(&c, "aten::mT", product), out);
}

#define REFLECT(schema, name, kernel_)                                                                       \
        {                                                                                                    \
                "aten::" schema, LINALG_NUMBERS, .infer = name##_infer, .run = name##_run,                   \
                                                 .cost = reflect_cost, .kernel = kernel_,                    \
                                                 .traits = TRAIT_FRESH                                       \
        }
const OpDef linalg_reflect_ops[] = {
        REFLECT("geqrf(Tensor self) -> (Tensor a, Tensor tau)", geqrf, "geqrf_cpu"),
        REFLECT("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", product, "orgqr_cpu"),
        { "aten::orgqr(Tensor self, Tensor input2) -> Tensor", 0, .expand = orgqr_expand,
          .traits = TRAIT_FRESH },
        { "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> "
          "Tensor",
          0, .expand = ormqr_expand, .traits = TRAIT_FRESH },
};
OP_FILE(linalg_reflect_ops);
