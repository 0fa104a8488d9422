// SPDX-License-Identifier: Apache-2.0
// pool_fractional.c: fractional_max_pool2d and 3d with given random samples. torch.nn.functional
// draws them (core/targets/pool_rows.c).
#include "core/kernels/dense.h"
#include "core/kernels/pool/fractional.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"

// ---- checks ----
static Status read_pair(const OpCall *call, int index, int n, int64_t out[3])
{
        int given;
        TRY(arg_ints(call, index, 3, out + 3 - n, &given));
        return given == n ? STATUS_OK
                          : fail(STATUS_VALUE, "%s: %s must either be a single Int or tuple of Ints",
                                 call->schema->name, call->schema->args[index].name);
}

static Status check_samples(const OpCall *call, const FractionalPool *pool)
{
        const TensorMeta *self = arg_meta(call, SELF), *samples = arg_meta(call, FRACTIONAL_SAMPLES);
        const bool is_batch = self->rank == pool->n + 2;
        if (samples->dtype != self->dtype)
                return fail(STATUS_DTYPE, "Expect _random_samples to have the same dtype as input");
        if (samples->rank != 3)
                return fail(STATUS_SHAPE, "Expect _random_samples to have 3 dimensions, got %d",
                            samples->rank);
        if (samples->size[0] < (is_batch ? self->size[0] : 1))
                return fail(STATUS_SHAPE, "Expect _random_samples.size(0) no less then input batch size.");
        if (samples->size[1] != self->size[is_batch])
                return fail(STATUS_SHAPE, "Expect _random_samples.size(1) equals to input channel size.");
        if (samples->size[2] != pool->n)
                return fail(STATUS_SHAPE, "Expect _random_samples.size(2) equals to %d; got %ld.", pool->n,
                            (long)samples->size[2]);
        return STATUS_OK;
}

// PyTorch's volumes have to leave room for one window more.
static Status check_windows(const char *name, const FractionalPool *pool)
{
        static const char *const words[] = { "time", "height", "width" };
        for (int d = 3 - pool->n; d < 3; d++) {
                if (pool->kernel[d] < 1 || pool->out_size[d] < 0)
                        return fail(
                                STATUS_VALUE,
                                "%s(): sizes of windows must be positive, those of the result not negative",
                                name);
                if (pool->out_size[d] > pool->size[d] || pool->kernel[d] > pool->size[d] ||
                    pool->out_size[d] + pool->kernel[d] - (pool->n == 2) > pool->size[d])
                        return fail(STATUS_SHAPE, "%s(): pool %s %ld too large relative to input %s %ld",
                                    name, words[d], (long)pool->kernel[d], words[d], (long)pool->size[d]);
        }
        return STATUS_OK;
}

static Status read_pool(const OpCall *call, FractionalPool *out)
{
        const TensorMeta *self = arg_meta(call, SELF);
        const char *name = call->schema->name;
        char shape[128];
        *out = (FractionalPool){ .dtype = self->dtype,
                                 .n = call->schema->args[FRACTIONAL_KERNEL].list_size,
                                 .size = { 1, 1, 1 },
                                 .kernel = { 1, 1, 1 },
                                 .out_size = { 1, 1, 1 },
                                 .planes = 1 };
        TRY(read_pair(call, FRACTIONAL_KERNEL, out->n, out->kernel));
        TRY(read_pair(call, FRACTIONAL_SIZE, out->n, out->out_size));
        if (self->rank != out->n + 1 && self->rank != out->n + 2)
                return fail(STATUS_SHAPE, "%s(): Expected %dD or %dD tensor, but got: %s", name, out->n + 1,
                            out->n + 2, shape_text(self->rank, self->size, shape, sizeof(shape)));
        for (int d = 1; d < self->rank; d++) { // of volumes without a batch, too
                if (self->size[d] == 0)
                        return fail(STATUS_SHAPE,
                                    "%s(): Expected input to have non-zero size for non-batch dimensions, "
                                    "but got%s with dimension %d being empty.",
                                    name, shape_text(self->rank, self->size, shape, sizeof(shape)), d);
        }
        for (int d = 0; d < self->rank; d++) {
                if (d < self->rank - out->n)
                        out->planes *= self->size[d];
                else
                        out->size[3 - self->rank + d] = self->size[d];
        }
        TRY(check_windows(name, out));
        return check_samples(call, out);
}

// ---- the operator ----
static Status fractional_infer(OpCall *call)
{
        FractionalPool pool;
        TensorMeta meta = *arg_meta(call, SELF);
        TRY(read_pool(call, &pool));
        for (int d = 0; d < pool.n; d++)
                meta.size[meta.rank - pool.n + d] = pool.out_size[3 - pool.n + d];
        meta_set_contiguous(&meta);
        TRY(out_fresh(call, 0, &meta));
        meta.dtype = DTYPE_I64;
        return out_fresh(call, 1, &meta);
}

static Status fractional_run(const OpRun *run)
{
        FractionalPool pool;
        _cleanup_(dense_deinit) Dense in = { 0 }, samples = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(read_pool(run->call, &pool));
        TRY(dense_init(&in, run->ctx, run->in[0], run->in_meta[0], DTYPE_F64));
        TRY(dense_init(&samples, run->ctx, run->in[1], run->in_meta[1], DTYPE_F64));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], DTYPE_F64));
        pool.in = in.data;
        pool.samples = samples.data;
        pool.out = out.data;
        pool.indices = run->out[1];
        TRY(fractional_pool_run(run->ctx, &pool));
        return dense_out_store(&out);
}

static Cost fractional_cost(const OpCall *call)
{
        FractionalPool pool;
        const TensorMeta *self = arg_meta(call, SELF);
        int64_t steps = 2 * meta_numel(&call->outs[0].meta);
        if (read_pool(call, &pool) == STATUS_OK)
                for (int d = 0; d < 3; d++)
                        steps = saturating_product(steps, pool.kernel[d]);
        return (Cost){ .flops = steps, .bytes = meta_numel(self) * dtype_info[self->dtype].bytes };
}

#define FRACTIONAL(n)                                                                                        \
        {                                                                                                    \
                "aten::fractional_max_pool" n "d(Tensor self, int[" n "] kernel_size, int[" n                \
                "] output_size, Tensor random_samples) -> (Tensor, Tensor)",                                 \
                        DTYPES_FLOATS, .infer = fractional_infer, .run = fractional_run,                     \
                                       .cost = fractional_cost, .traits = TRAIT_FRESH                        \
        }
const OpDef pool_fractional_ops[] = { FRACTIONAL("2"), FRACTIONAL("3") };
OP_FILE(pool_fractional_ops);
