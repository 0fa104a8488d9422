// SPDX-License-Identifier: Apache-2.0
// random_sample.c: random permutations, categories and slopes; normal numbers whose mean or
// deviation is a tensor.
#include "core/kernels/dense.h"
#include "core/kernels/random/counts.h"
#include "core/kernels/random/draw.h"
#include "core/kernels/random/sample.h"

#include <inttypes.h>
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/factory.h"

// ---- randperm ----
static Status permutation_check(Dtype dtype, int64_t n)
{
        static const struct {
                Dtype dtype;
                const char *name;
                int64_t most;
        } floats[] = { { DTYPE_F16, "Half", 2049 },
                       { DTYPE_F32, "Float", 16777217 },
                       { DTYPE_F64, "Double", 9007199254740993 } };
        if ((DTYPES_REAL >> dtype & 1) == 0 || dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "\"randperm\" not implemented for '%s'", dtype_words(dtype));
        for (size_t i = 0; i < ARRAY_LENGTH(floats); i++)
                if (floats[i].dtype == dtype && n > floats[i].most)
                        return fail(STATUS_VALUE, "n cannot be greater than %" PRId64 " for %s type.",
                                    floats[i].most, floats[i].name);
        int64_t bits = 8 * (int64_t)dtype_info[dtype].bytes - (dtype == DTYPE_U8 ? 0 : 1);
        if (!dtype_is_float(dtype) && bits < 63 && n >= (int64_t)1 << bits)
                return fail(STATUS_VALUE, "value cannot be converted to type %s_t without overflow",
                            dtype_info[dtype].name);
        return STATUS_OK;
}

static Status permutation_infer(OpCall *call)
{
        int64_t n = 0, numel;
        TensorMeta meta;
        Dtype dtype = arg_dtype(call, RANDPERM_DTYPE, DTYPE_I64);
        TRY(arg_int(call, RANDPERM_N, &n));
        if (n < 0)
                return fail(STATUS_VALUE,
                            "Trying to create tensor with negative dimension %" PRId64 ": [%" PRId64 "]", n,
                            n);
        TRY(permutation_check(dtype, n));
        TRY(shape_numel(1, &n, &numel));
        meta_init(&meta, dtype, 1, &n);
        return out_fresh(call, 0, &meta);
}

static Status permutation_run(const OpRun *run)
{
        const TensorMeta *meta = run->out_meta[0];
        return permutation_draw(run->ctx, meta->dtype, meta->size[0], run->out[0]);
}

static Cost permutation_cost(const OpCall *call)
{
        const TensorMeta *meta = &call->outs[0].meta;
        return (Cost){ .flops = 16 * meta->size[0], .bytes = meta->size[0] * dtype_info[meta->dtype].bytes };
}

static Status permutation_given_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, OP(&c, "aten::randperm", NAMED(&c, "n"), NAMED(&c, "dtype")), out);
}

// ---- multinomial ----
// Exponential numbers, one for each weight. The k categories with the largest weight / number are k
// draws without replacement.
static Status race_infer(OpCall *call)
{
        return factory_like(call, arg_meta(call, SELF)->dtype, MEMORY_FORMAT_PRESERVE);
}

static Status race_run(const OpRun *run)
{
        TRY(multinomial_check(run->ctx, run->in_meta[0], run->in[0]));
        return draw_fill(run->ctx, &(Draw){ .kind = DRAW_EXPONENTIAL, .a = 1 }, run->out_meta[0],
                         run->out[0]);
}

static Cost race_cost(const OpCall *call)
{
        const TensorMeta *meta = &call->outs[0].meta;
        const int64_t n = meta_numel(meta);
        return (Cost){ .flops = n * draw_steps(DRAW_EXPONENTIAL),
                       .bytes = 2 * n * dtype_info[meta->dtype].bytes };
}

static Status categories_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta;
        int64_t size[2] = { self->size[0] }, numel;
        TRY(arg_int(call, CATEGORIES_NUM_SAMPLES, &size[self->rank - 1]));
        TRY(shape_numel(self->rank, size, &numel));
        meta_init(&meta, DTYPE_I64, self->rank, size);
        return out_fresh(call, 0, &meta);
}

static Status categories_run(const OpRun *run)
{
        const TensorMeta *out = run->out_meta[0];
        return multinomial_draw(run->ctx, run->in_meta[0], run->in[0], out->size[out->rank - 1], run->out[0]);
}

static Cost categories_cost(const OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        return (Cost){ .flops = 8 * meta_numel(self) + 64 * meta_numel(&call->outs[0].meta),
                       .bytes = meta_numel(self) * dtype_info[self->dtype].bytes };
}

static Status multinomial_check_call(const TensorMeta *self, int64_t n, bool replacement)
{
        if (self->rank < 1 || self->rank > 2)
                return fail(STATUS_SHAPE, "prob_dist must be 1 or 2 dim");
        if (!dtype_is_float(self->dtype))
                return fail(STATUS_DTYPE,
                            "multinomial only supports floating-point dtypes for input, got: %s",
                            dtype_words(self->dtype));
        if (n <= 0)
                return fail(STATUS_VALUE, "cannot sample n_sample <= 0 samples");
        if (!replacement && n > self->size[self->rank - 1])
                return fail(STATUS_VALUE,
                            "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
        if (self->size[self->rank - 1] > 1 << 24)
                return fail(STATUS_VALUE, "number of categories cannot exceed 2^24");
        return STATUS_OK;
}

static Status multinomial_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), result;
        const TensorMeta *meta = compose_meta(&c, self);
        int64_t n = compose_int(&c, "num_samples"), size[2] = { meta->size[0], n };
        bool replacement = compose_bool(&c, "replacement");
        compose_check(&c, multinomial_check_call(meta, n, replacement));
        if (compose_failed(&c))
                return compose_end(&c, self, out);
        if (meta->rank == 2 && meta->size[0] == 0) {
                result = OP(&c, "aten::empty.memory_format", compose_ints(&c, size, 2),
                            value_dtype(DTYPE_I64));
        } else if (replacement && n > 1) {
                result = OP(&c, "fxserve::categories", self, value_int(n));
        } else {
                Value race = OP(&c, "aten::div.Tensor", self, OP(&c, "fxserve::race", self));
                result = n == 1 ? OP(&c, "aten::argmax", race, value_int(-1), value_bool(true))
                                : compose_item(&c, OP(&c, "aten::topk", race, value_int(n)), 1);
        }
        return compose_end(&c, result, out);
}

// ---- numbers of events ----
static Status counts_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        TensorMeta meta;
        if (!dtype_is_float(self->dtype))
                return fail(STATUS_DTYPE, "\"poisson_cpu\" not implemented for '%s'",
                            dtype_words(self->dtype));
        meta_init(&meta, self->dtype, self->rank, self->size);
        return out_fresh(call, 0, &meta);
}

static Status poisson_run(const OpRun *run)
{
        _cleanup_(dense_deinit) Dense rates = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_init(&rates, run->ctx, run->in[0], run->in_meta[0], DTYPE_F64));
        TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], DTYPE_F64));
        TRY(poisson_draw(run->ctx, meta_numel(run->in_meta[0]), rates.data, out.data));
        return dense_out_store(&out);
}

static Status successes_run(const OpRun *run)
{
        const TensorMeta *meta = run->out_meta[0];
        _cleanup_(dense_deinit) Dense counts = { 0 }, p = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        TRY(dense_init(&counts, run->ctx, run->in[0], run->in_meta[0], DTYPE_F64));
        TRY(dense_init(&p, run->ctx, run->in[1], run->in_meta[1], DTYPE_F64));
        TRY(dense_out_init(&out, run->ctx, run->out[0], meta, DTYPE_F64));
        TRY(binomial_draw(run->ctx, meta->dtype, meta_numel(meta), counts.data, p.data, out.data));
        return dense_out_store(&out);
}

static Status binomial_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value count = NAMED(&c, "count"), p = NAMED(&c, "prob");
        const TensorMeta *meta = compose_meta(&c, count), *given = compose_meta(&c, p);
        int rank = 0;
        int64_t size[MAX_RANK];
        if (!dtype_is_float(meta->dtype) || !dtype_is_float(given->dtype))
                return fail(STATUS_DTYPE, "binomial only supports floating-point dtypes for %s, got: %s",
                            dtype_is_float(meta->dtype) ? "prob" : "count",
                            dtype_words(dtype_is_float(meta->dtype) ? given->dtype : meta->dtype));
        if (given->dtype != meta->dtype)
                return fail(STATUS_DTYPE, "Found dtype %s but expected %s", dtype_words(given->dtype),
                            dtype_words(meta->dtype));
        if (meta->dtype != DTYPE_F32 && meta->dtype != DTYPE_F64)
                return fail(STATUS_DTYPE, "\"binomial_cpu\" not implemented for '%s'",
                            dtype_words(meta->dtype));
        compose_check(&c, shape_broadcast(meta, given, &rank, size));
        count = OP(&c, "aten::expand", count, compose_ints(&c, size, rank));
        p = OP(&c, "aten::expand", p, compose_ints(&c, size, rank));
        return compose_end(&c, OP(&c, "fxserve::successes", count, p), out);
}

// Rejection takes few steps; gaps between successes are ten on average.
static Cost counts_cost(const OpCall *call)
{
        const TensorMeta *meta = &call->outs[0].meta;
        const int64_t n = meta_numel(meta);
        return (Cost){ .flops = saturating_product(n, 128),
                       .bytes = saturating_product(n, 2 * dtype_info[meta->dtype].bytes) };
}

// ---- rrelu ----
static Status slopes_infer(OpCall *call)
{
        TensorMeta meta = *arg_meta(call, SELF);
        meta_set_contiguous(&meta);
        TRY(out_fresh(call, 0, &meta));
        return out_fresh(call, 1, &meta);
}

static Status slopes_run(const OpRun *run)
{
        Slopes slopes = { .dtype = run->in_meta[0]->dtype,
                          .n = meta_numel(run->in_meta[0]),
                          .in = run->in[0],
                          .out = run->out[0],
                          .noise = run->out[1] };
        TRY(arg_double(run->call, RRELU_SLOPES_LOWER, &slopes.lower));
        TRY(arg_double(run->call, RRELU_SLOPES_UPPER, &slopes.upper));
        return slopes_draw(run->ctx, &slopes);
}

static Cost slopes_cost(const OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        const int64_t n = meta_numel(self);
        return (Cost){ .flops = 16 * n, .bytes = 3 * n * dtype_info[self->dtype].bytes };
}

// The result; the slopes are written to `noise` unless that is None.
static Value rrelu_train(Compose *c, Value self, Value noise)
{
        const TensorMeta *meta = compose_meta(c, self);
        Value lower = NAMED(c, "lower"), upper = NAMED(c, "upper");
        double low = compose_double(c, "lower"), high = compose_double(c, "upper");
        if (!(low <= high))
                compose_check(c, fail(STATUS_VALUE, "Lower bound should be less than or equal to the upper "
                                                    "bound"));
        if (!dtype_is_float(meta->dtype) || meta->dtype == DTYPE_F16)
                compose_check(c, fail(STATUS_DTYPE, "\"rrelu_with_noise_out_cpu\" not implemented for '%s'",
                                      dtype_words(meta->dtype)));
        bool contiguous = meta_is_contiguous(meta);
        Value pair = OP(c, "fxserve::slopes", OP(c, "aten::contiguous", self), lower, upper);
        Value result = compose_item(c, pair, 0);
        if (noise.kind != VALUE_NONE)
                OP(c, "aten::copy_", noise, compose_item(c, pair, 1));
        return contiguous ? result : OP(c, "aten::copy_", OP(c, "aten::empty_like", self), result);
}

static Value rrelu_result(Compose *c, Value noise)
{
        Value self = NAMED(c, "self");
        if (compose_bool(c, "training"))
                return rrelu_train(c, self, noise);
        double slope = (compose_double(c, "lower") + compose_double(c, "upper")) / 2;
        return OP(c, "aten::leaky_relu", self, value_float(slope));
}

static Status rrelu_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, rrelu_result(&c, value_none()), out);
}

static void check_noise(Compose *c)
{
        const TensorMeta *self = compose_meta(c, NAMED(c, "self")),
                         *noise = compose_meta(c, NAMED(c, "noise"));
        char shape[128], other[128];
        if (!compose_failed(c) && !meta_same_shape(self, noise))
                compose_check(c, fail(STATUS_SHAPE,
                                      "noise tensor shape must match self tensor shape. Got self.shape = %s "
                                      "noise.shape = %s",
                                      shape_text(self->rank, self->size, shape, sizeof(shape)),
                                      shape_text(noise->rank, noise->size, other, sizeof(other))));
}

static Status rrelu_with_noise_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        check_noise(&c);
        return compose_end(&c, rrelu_result(&c, NAMED(&c, "noise")), out);
}

static Status rrelu_functional_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        check_noise(&c);
        Value noise = OP(&c, "aten::clone", NAMED(&c, "noise"));
        Value result = rrelu_result(&c, noise);
        return compose_end(&c, compose_tuple(&c, (const Value[]){ result, noise }, 2), out);
}

// ---- normal ----
// Draws for an empty tensor of the given shape and dtype.
static Value normal_of(Compose *c, const int64_t *size, int rank, Dtype dtype, double deviation)
{
        Value drawn = OP(c, "aten::empty.memory_format", compose_ints(c, size, rank), value_dtype(dtype));
        return OP(c, "aten::normal_", drawn, value_float(0), value_float(deviation));
}

static Status normal_tensor_float_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value mean = NAMED(&c, "mean");
        const TensorMeta meta = *compose_meta(&c, mean);
        Value drawn = normal_of(&c, meta.size, meta.rank, meta.dtype, compose_double(&c, "std"));
        return compose_end(&c, OP(&c, "aten::add_.Tensor", drawn, mean), out);
}

// PyTorch's check of the deviations reads them all.
static Value checked_deviation(Compose *c)
{
        Value deviation = NAMED(c, "std");
        const TensorMeta *meta = compose_meta(c, deviation);
        if (dtype_info[meta->dtype].kind == DTYPE_KIND_COMPLEX)
                compose_check(c, fail(STATUS_VALUE, "normal expects standard deviation to be non-complex"));
        if (meta_numel(meta) > 0) {
                Value good = OP(c, "aten::all", OP(c, "aten::ge.Scalar", deviation, value_int(0)));
                OP(c, "aten::_assert_async.msg", good,
                   compose_text(c, "normal expects all elements of std >= 0.0"));
        }
        return deviation;
}

static Status normal_float_tensor_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value deviation = checked_deviation(&c);
        const TensorMeta meta = *compose_meta(&c, deviation);
        Value drawn = normal_of(&c, meta.size, meta.rank, meta.dtype, 1);
        OP(&c, "aten::mul_.Tensor", drawn, deviation);
        Value mean =
                OP(&c, "aten::full", compose_ints(&c, NULL, 0), NAMED(&c, "mean"), value_dtype(meta.dtype));
        return compose_end(&c, OP(&c, "aten::add_.Tensor", drawn, mean), out);
}

static Status normal_tensors_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value mean = NAMED(&c, "mean"), deviation = checked_deviation(&c);
        int64_t size[MAX_RANK];
        int rank = 0;
        Dtype dtype = compose_meta(&c, mean)->dtype;
        compose_check(&c, shape_broadcast(compose_meta(&c, mean), compose_meta(&c, deviation), &rank, size));
        Value drawn = normal_of(&c, size, rank, dtype, 1);
        OP(&c, "aten::mul_.Tensor", drawn, deviation);
        return compose_end(&c, OP(&c, "aten::add_.Tensor", drawn, mean), out);
}

#define GENERATOR ", *, Generator? generator=None) -> Tensor"
#define RRELU                                                                                                \
        "Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "             \
        "generator=None) -> "
#define COMPOSED(schema_, expand_, flags_)                                                                   \
        {                                                                                                    \
                .schema = "aten::" schema_, .flags = OP_RANDOM | (flags_), .expand = expand_,                \
                .traits = TRAIT_FRESH                                                                        \
        }

const OpDef random_sample_ops[] = {
        { .schema = "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? "
                    "device=None, "
                    "bool? pin_memory=None) -> Tensor",
          .flags = OP_RANDOM,
          .infer = permutation_infer,
          .run = permutation_run,
          .cost = permutation_cost,
          .traits = TRAIT_FRESH },
        COMPOSED("randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=4, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                 permutation_given_expand, 0),
        COMPOSED("multinomial(Tensor self, SymInt num_samples, bool replacement=False" GENERATOR,
                 multinomial_expand, 0),
        COMPOSED("rrelu(Tensor self, " RRELU "Tensor", rrelu_expand, OP_INPLACE),
        COMPOSED("rrelu_with_noise(Tensor self, Tensor(b!) noise, " RRELU "Tensor", rrelu_with_noise_expand,
                 0),
        COMPOSED("rrelu_with_noise_functional(Tensor self, Tensor noise, " RRELU "(Tensor, Tensor noise_out)",
                 rrelu_functional_expand, 0),
        COMPOSED("normal.Tensor_float(Tensor mean, float std=1." GENERATOR, normal_tensor_float_expand, 0),
        COMPOSED("normal.float_Tensor(float mean, Tensor std" GENERATOR, normal_float_tensor_expand, 0),
        COMPOSED("normal.Tensor_Tensor(Tensor mean, Tensor std" GENERATOR, normal_tensors_expand, 0),
        { .schema = "aten::poisson(Tensor self, Generator? generator=None) -> Tensor",
          .flags = OP_RANDOM | OP_CHECKS,
          .infer = counts_infer,
          .run = poisson_run,
          .cost = counts_cost,
          .traits = TRAIT_FRESH },
        COMPOSED("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", binomial_expand,
                 0),
        { .schema = "fxserve::successes(Tensor count, Tensor prob) -> Tensor",
          .flags = OP_RANDOM | OP_HIDDEN | OP_INTERNAL,
          .infer = counts_infer,
          .run = successes_run,
          .cost = counts_cost,
          .traits = TRAIT_FRESH },
        { .schema = "fxserve::race(Tensor self) -> Tensor",
          .flags = OP_RANDOM | OP_HIDDEN | OP_INTERNAL | OP_CHECKS,
          .infer = race_infer,
          .run = race_run,
          .cost = race_cost,
          .traits = TRAIT_FRESH },
        { .schema = "fxserve::categories(Tensor self, int num_samples) -> Tensor",
          .flags = OP_RANDOM | OP_HIDDEN | OP_INTERNAL | OP_CHECKS,
          .infer = categories_infer,
          .run = categories_run,
          .cost = categories_cost,
          .traits = TRAIT_FRESH },
        { .schema = "fxserve::slopes(Tensor self, Scalar lower, Scalar upper) -> (Tensor, Tensor)",
          .flags = OP_RANDOM | OP_HIDDEN | OP_INTERNAL,
          .infer = slopes_infer,
          .run = slopes_run,
          .cost = slopes_cost,
          .traits = TRAIT_FRESH },
};
OP_FILE(random_sample_ops);
