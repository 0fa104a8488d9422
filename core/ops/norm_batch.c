// SPDX-License-Identifier: Apache-2.0
// norm_batch.c: batch_norm and its native forms. The kernels are functional: one that uses running
// statistics, one that takes those of the batch (biased) and returns updated running ones
// (unbiased). Forms that write running statistics expand to the second and then write through the
// emitter. Results keep channels_last, otherwise they are contiguous.
#include <math.h>
#include <string.h>
#include "core/kernels/norm/norm.h"
#include "core/kernels/reduce/reduce.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/norm.h"
#include "core/tensor/half.h"

// Schemas begin with input, weight, bias and then running_mean, running_var, except no_stats.
static bool has_running(const OpCall *call)
{
        return call->schema->n_tensor_args >= 5;
}

static int64_t n_channels(const TensorMeta *input)
{
        return input->rank < 2 ? 0 : input->size[1];
}

static Status batch_check(const OpCall *call, bool training, Dtype *out_stats)
{
        static const char *const names[] = { "weight", "bias", "running_mean", "running_var" };
        const TensorMeta *input = arg_meta(call, SELF),
                         *params[4] = { arg_meta(call, FUNCTIONAL_BATCH_NORM_WEIGHT),
                                        arg_meta(call, FUNCTIONAL_BATCH_NORM_BIAS) };
        // Empty vectors pass in PyTorch, with no channels.
        int64_t channels = n_channels(input);
        if (has_running(call)) {
                params[2] = arg_meta(call, RUNNING_MEAN);
                params[3] = arg_meta(call, RUNNING_VAR);
        }
        if (input->rank < 2 && meta_numel(input) != 0)
                return fail(STATUS_SHAPE, "batch_norm: expected 2D or higher input (got %dD input)",
                            input->rank);
        if (!training && (params[2] == NULL || params[3] == NULL))
                return fail(STATUS_VALUE, "%s must be defined in evaluation mode",
                            params[2] == NULL ? "running_mean" : "running_var");
        if ((params[2] == NULL) != (params[3] == NULL))
                return fail(STATUS_VALUE,
                            "running_mean and running_var must either both be None or neither be None");
        for (int i = 0; i < 4; i++) {
                if (params[i] != NULL && (params[i]->rank != 1 || params[i]->size[0] != channels))
                        return fail(STATUS_SHAPE, "%s should contain %ld elements not %ld", names[i],
                                    (long)channels, (long)meta_numel(params[i]));
        }
        return norm_check_params(input, params, 4, out_stats);
}

static void result_meta(const TensorMeta *input, TensorMeta *out)
{
        *out = *input;
        meta_set_contiguous(out);
        const bool images = input->rank == 4 || input->rank == 5;
        if (meta_suggests_channels_last(input) ||
            (images && !meta_is_contiguous(input) && meta_lies_channels_last(input)))
                meta_set_channels_last(out);
}

// Where elements of one channel lie when input and output share a layout: [outer][channels][inner].
static void split_channels(const TensorMeta *out, int64_t *outer, int64_t *inner)
{
        bool last = meta_suggests_channels_last(out);
        *outer = out->size[0];
        *inner = 1;
        for (int d = 2; d < out->rank; d++)
                *(last ? outer : inner) *= out->size[d];
}

typedef struct BatchArrays {
        Dense in, weight, bias, mean, var;
        Scratch scales;
        DenseOut out;
        const void *x; // input in the output's layout
        void *y;
        Dtype as;
        uint32_t n_params; // of weight, bias, mean and variance: those that the image is normalised by
        bool centred;      // the mean is taken off first
        bool rounded;      // each step to the image's half dtype
} BatchArrays;

static void arrays_deinit(BatchArrays *arrays)
{
        dense_deinit(&arrays->in);
        dense_deinit(&arrays->weight);
        dense_deinit(&arrays->bias);
        dense_deinit(&arrays->mean);
        dense_deinit(&arrays->var);
        scratch_deinit(&arrays->scales);
        dense_out_deinit(&arrays->out);
}

// channels_last as a permutation: N, spatial, C. Reading and writing in this order makes the layout
// contiguous.
static TensorMeta in_memory_order(const TensorMeta *meta, bool last)
{
        TensorMeta out = *meta;
        if (!last)
                return out;
        for (int d = 1; d < meta->rank - 1; d++) {
                out.size[d] = meta->size[d + 1];
                out.stride[d] = meta->stride[d + 1];
        }
        out.size[meta->rank - 1] = meta->size[1];
        out.stride[meta->rank - 1] = meta->stride[1];
        return out;
}

static bool is_dense_image(const TensorMeta *meta)
{
        return meta_is_contiguous(meta) || meta_is_channels_last(meta);
}

// Images that are not dense and parameters that are not contiguous go through PyTorch's elementwise
// operators: the mean is taken off first, and among halfs every step is rounded. But with running
// statistics samples that are dense by themselves, as those of `x[:, 8:]` are, go the same way in
// every batch: one sample's strides do not tell.
static void choose_steps(BatchArrays *arrays, const OpRun *run)
{
        Dtype dtype = run->in_meta[0]->dtype, stats;
        TensorMeta sample = *run->in_meta[0];
        if (arrays->n_params == 4 && dtype != DTYPE_F16 && dtype != DTYPE_BF16)
                sample.size[0] = MIN(sample.size[0], (int64_t)1);
        arrays->centred = !is_dense_image(&sample);
        for (uint32_t k = 1; k <= arrays->n_params; k++)
                arrays->centred |= run->in_meta[k] != NULL && !meta_is_contiguous(run->in_meta[k]);
        arrays->rounded = arrays->centred && (dtype == DTYPE_F16 || dtype == DTYPE_BF16) &&
                          batch_check(run->call, true, &stats) == STATUS_OK && stats == dtype;
}

static Status arrays_init(BatchArrays *arrays, const OpRun *run, const TensorMeta *out_order,
                          const TensorMeta *in_order)
{
        choose_steps(arrays, run);
        TRY(dense_init(&arrays->in, run->ctx, run->in[0], in_order, arrays->as));
        TRY(dense_out_init(&arrays->out, run->ctx, run->out[0], out_order, arrays->as));
        arrays->x = arrays->in.data;
        arrays->y = arrays->out.data;
        TRY(norm_param_init(&arrays->weight, run, 1, arrays->as));
        TRY(norm_param_init(&arrays->bias, run, 2, arrays->as));
        return scratch_init(&arrays->scales, run->ctx, run->in_meta[0]->size[1], 4 * sizeof(double));
}

enum { HALF_STEPS = 32, CHANNEL_STEPS = 32 };

static Status normalise_in_half(const OpRun *run, BatchArrays *arrays, const float *mean, const float *rstd)
{
        Dtype half = run->in_meta[0]->dtype;
        const float *weight = arrays->weight.data, *bias = arrays->bias.data, *x = arrays->x;
        float *y = arrays->y;
        int64_t channels = run->in_meta[0]->size[1], outer, inner, n = meta_numel(run->in_meta[0]);
        split_channels(run->out_meta[0], &outer, &inner);
        Work work = { .ctx = run->ctx };
        for (int64_t i = 0; i < n && !work_stops(&work, HALF_STEPS); i++) {
                int64_t c = i / inner % channels;
                float value = rounded_to_half(rounded_to_half(x[i] - mean[c], half) * rstd[c], half);
                value = rounded_to_half(value * (weight == NULL ? 1 : weight[c]), half);
                y[i] = rounded_to_half(value + (bias == NULL ? 0 : bias[c]), half);
        }
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

// From mean and 1 / standard deviation of the channels. As in PyTorch, most inputs are scaled and
// shifted in one step, where mean * scale is part of the shift, others are centred first: a
// difference where mean and values nearly cancel.
static Status normalise(const OpRun *run, BatchArrays *arrays, const void *mean, const void *rstd)
{
        if (arrays->rounded)
                return normalise_in_half(run, arrays, mean, rstd);
        int64_t channels = run->in_meta[0]->size[1];
        Dtype as = arrays->as;
        const bool centred = arrays->centred;
        float *scale32 = arrays->scales.data, *shift32 = scale32 + channels;
        double *scale64 = arrays->scales.data, *shift64 = scale64 + channels;
        Work work = { .ctx = run->ctx };
        for (int64_t c = 0; c < channels && !work_stops(&work, CHANNEL_STEPS); c++) {
                double scale = compute_as_f64(as, rstd, c) *
                               (arrays->weight.data == NULL ? 1 : compute_as_f64(as, arrays->weight.data, c));
                double bias = arrays->bias.data == NULL ? 0 : compute_as_f64(as, arrays->bias.data, c);
                if (as == DTYPE_F32) {
                        scale32[c] = (float)scale;
                        shift32[c] =
                                centred ? (float)bias : (float)bias - ((const float *)mean)[c] * scale32[c];
                } else {
                        scale64[c] = scale;
                        shift64[c] = centred ? bias : bias - ((const double *)mean)[c] * scale;
                }
        }
        NormScale by = { .dtype = as, .channels = channels, .mean = centred ? mean : NULL };
        by.scale = as == DTYPE_F32 ? (void *)scale32 : (void *)scale64;
        by.shift = as == DTYPE_F32 ? (void *)shift32 : (void *)shift64;
        split_channels(run->out_meta[0], &by.outer, &by.inner);
        return norm_scale_channels(run->ctx, &by, arrays->x, arrays->y);
}

static void set_element(Dtype as, void *array, int64_t i, double value)
{
        if (as == DTYPE_F32)
                ((float *)array)[i] = (float)value;
        else
                ((double *)array)[i] = value;
}

// ---- with running statistics ----
static Status eval_infer(OpCall *call)
{
        Dtype stats;
        TRY(batch_check(call, false, &stats));
        TensorMeta meta, empty;
        result_meta(arg_meta(call, SELF), &meta);
        TRY(out_fresh(call, 0, &meta));
        meta_init(&empty, stats, 1, (int64_t[]){ 0 });
        for (uint32_t k = 1; k < call->schema->n_returns; k++) {
                if (k == 3)
                        empty.dtype = DTYPE_U8;
                TRY(out_fresh(call, k, &empty));
        }
        return STATUS_OK;
}

static Status eval_run(const OpRun *run)
{
        double eps;
        if (meta_numel(run->in_meta[0]) == 0)
                return STATUS_OK;
        TRY(arg_double(run->call, (int)run->call->schema->n_args - 1, &eps));
        bool last = meta_suggests_channels_last(run->out_meta[0]);
        TensorMeta in_order = in_memory_order(run->in_meta[0], last),
                   out_order = in_memory_order(run->out_meta[0], last);
        _cleanup_(arrays_deinit)
                BatchArrays arrays = { .as = dtype_compute(run->in_meta[0]->dtype), .n_params = 4 };
        TRY(arrays_init(&arrays, run, &out_order, &in_order));
        TRY(norm_param_init(&arrays.mean, run, 3, arrays.as));
        TRY(norm_param_init(&arrays.var, run, 4, arrays.as));
        _cleanup_(scratch_deinit) Scratch rstd = { 0 };
        TRY(scratch_init(&rstd, run->ctx, run->in_meta[0]->size[1], sizeof(double)));
        Dtype half = run->in_meta[0]->dtype;
        Work work = { .ctx = run->ctx };
        for (int64_t c = 0; c < run->in_meta[0]->size[1] && !work_stops(&work, CHANNEL_STEPS); c++) {
                double var = compute_as_f64(arrays.as, arrays.var.data, c);
                float shifted = rounded_to_half((float)(var + eps), half);
                if (arrays.rounded)
                        ((float *)rstd.data)[c] =
                                rounded_to_half(1 / rounded_to_half(sqrtf(shifted), half), half);
                else
                        set_element(arrays.as, rstd.data, c, 1 / sqrt(var + eps));
        }
        TRY(normalise(run, &arrays, arrays.mean.data, rstd.data));
        TRY(dense_out_store(&arrays.out));
        return STATUS_OK;
}

// ---- with the statistics of the batch ----
// Positions from the end: ..., bool training, float momentum, float eps.
static bool is_training(const OpCall *call)
{
        return arg_bool(call, (int)call->n_args - 3, true);
}

static Status train_infer(OpCall *call)
{
        Dtype stats;
        const TensorMeta *input = arg_meta(call, SELF);
        bool training = is_training(call);
        if (!training && !has_running(call))
                return fail(STATUS_VALUE,
                            "%s(training=False) has no statistics to use; pass running_mean and running_var",
                            call->schema->name);
        TRY(batch_check(call, training, &stats));
        TensorMeta meta, param;
        result_meta(input, &meta);
        TRY(out_fresh(call, 0, &meta));
        for (uint32_t k = 1; k < call->schema->n_returns; k++) {
                // Without training, batch statistics are empty and running ones are passed on.
                meta_init(&param, stats, 1, (int64_t[]){ training || k > 2 ? n_channels(input) : 0 });
                TRY(out_fresh(call, k, &param));
        }
        return STATUS_OK;
}

static double load_stat(const OpRun *run, uint32_t k, int64_t channel)
{
        const TensorMeta *meta = run->out_meta[k];
        return element_as_f64(meta->dtype, (const char *)run->out[k] +
                                                   channel * meta->stride[0] * dtype_info[meta->dtype].bytes);
}

static void store_stat(const OpRun *run, uint32_t k, int64_t channel, double value)
{
        const TensorMeta *meta = run->out_meta[k];
        element_from_f64(meta->dtype,
                         (char *)run->out[k] + channel * meta->stride[0] * dtype_info[meta->dtype].bytes,
                         value);
}

static double round_stat(const OpRun *run, uint32_t k, int64_t channel, double value)
{
        store_stat(run, k, channel, value);
        return load_stat(run, k, channel);
}

// Stores the statistics in the outputs. Then mean and var become the stored mean and 1 / standard
// deviation, rounded when the parameters are half.
static Status store_stats(const OpRun *run, const BatchArrays *arrays, void *mean, void *var, double eps)
{
        double momentum;
        TRY(arg_double(run->call, (int)run->call->n_args - 2, &momentum));
        int64_t channels = n_channels(run->in_meta[0]),
                n = channels == 0 ? 0 : meta_numel(run->in_meta[0]) / channels;
        Work work = { .ctx = run->ctx };
        for (int64_t c = 0; c < channels && !work_stops(&work, CHANNEL_STEPS); c++) {
                double m = compute_as_f64(arrays->as, mean, c), v = compute_as_f64(arrays->as, var, c);
                double unbiased = v * (double)n / (double)(n - 1);
                store_stat(run, 1, c, m);
                // For dense bfloat16, PyTorch rounds the mean, the sum of squares and its quotients
                // to the parameters' dtype.
                if (run->in_meta[0]->dtype == DTYPE_BF16 && is_dense_image(run->in_meta[0])) {
                        m = load_stat(run, 1, c);
                        double sum = round_stat(run, 2, c, v * (double)n);
                        unbiased = round_stat(run, 2, c, sum / (double)(n - 1));
                        v = round_stat(run, 2, c, sum / (double)n);
                }
                store_stat(run, 2, c, 1 / sqrt(v + eps));
                set_element(arrays->as, mean, c, load_stat(run, 1, c));
                set_element(arrays->as, var, c, load_stat(run, 2, c));
                if (run->n_out < 5)
                        continue;
                store_stat(run, 3, c,
                           (1 - momentum) * compute_as_f64(arrays->as, arrays->mean.data, c) + momentum * m);
                store_stat(run, 4, c,
                           (1 - momentum) * compute_as_f64(arrays->as, arrays->var.data, c) +
                                   momentum * unbiased);
        }
        return STATUS_OK;
}

// Without elements, running statistics stay and the others are 0.
static Status keep_running(const OpRun *run)
{
        Work work = { .ctx = run->ctx };
        for (int64_t c = 0; c < n_channels(run->in_meta[0]) && !work_stops(&work, CHANNEL_STEPS); c++) {
                for (uint32_t k = 1; k < MIN(run->n_out, 3u) && meta_numel(run->out_meta[k]) != 0; k++)
                        store_stat(run, k, c, 0);
                for (uint32_t k = 3; k < run->n_out; k++) {
                        const TensorMeta *meta = run->in_meta[k];
                        store_stat(
                                run, k, c,
                                element_as_f64(meta->dtype,
                                               (const char *)run->in[k] +
                                                       c * meta->stride[0] * dtype_info[meta->dtype].bytes));
                }
        }
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

static Status train_run(const OpRun *run)
{
        double eps;
        const TensorMeta *input = run->in_meta[0];
        if (!is_training(run->call))
                TRY(eval_run(run));
        if (meta_numel(input) == 0 || !is_training(run->call))
                return keep_running(run);
        TRY(arg_double(run->call, (int)run->call->n_args - 1, &eps));
        bool last = meta_suggests_channels_last(run->out_meta[0]);
        TensorMeta in_order = in_memory_order(input, last),
                   out_order = in_memory_order(run->out_meta[0], last), dense = in_order;
        _cleanup_(arrays_deinit) BatchArrays arrays = { .as = dtype_compute(input->dtype), .n_params = 2 };
        TRY(arrays_init(&arrays, run, &out_order, &in_order));
        if (run->n_out == 5) {
                TRY(norm_param_init(&arrays.mean, run, 3, arrays.as));
                TRY(norm_param_init(&arrays.var, run, 4, arrays.as));
        }
        _cleanup_(scratch_deinit) Scratch stats = { 0 };
        TRY(scratch_init(&stats, run->ctx, input->size[1], 2 * sizeof(double)));
        void *mean = stats.data, *var = (char *)stats.data + (size_t)input->size[1] * sizeof(double);
        dense.dtype = arrays.as;
        meta_set_contiguous(&dense);
        RowPlan plan;
        int channel = last ? input->rank - 1 : 1;
        row_plan(&plan, &dense, ((1u << input->rank) - 1) & ~(1u << channel), false);
        Reduction reduction = { .dtype = arrays.as,
                                .stored = arrays.as,
                                .kind = REDUCE_VAR,
                                .data = arrays.x,
                                .out = var,
                                .extra = mean };
        TRY(reduce_run(run->ctx, &plan, &reduction));
        TRY(store_stats(run, &arrays, mean, var, eps));
        TRY(normalise(run, &arrays, mean, var));
        TRY(dense_out_store(&arrays.out));
        return STATUS_OK;
}

// ---- forms that write ----
static Status write_back(Emitter *emitter, const OpCall *call, const Value *results)
{
        for (int i = 0; i < 2; i++)
                TRY(emitter->vtbl->write(emitter, arg_value(call, BATCH_NORM_RUNNING_MEAN + i).tensor,
                                         results[3 + i].tensor));
        return STATUS_OK;
}

// The first `n` results of the training kernel that fits; running statistics written. *out_results:
// its tuple.
static Status train_expand(Emitter *emitter, const OpCall *call, Value momentum, Value eps,
                           Value *out_results)
{
        Value input = arg_value(call, SELF), weight = arg_value(call, BATCH_NORM_WEIGHT),
              bias = arg_value(call, BATCH_NORM_BIAS), mean = arg_value(call, BATCH_NORM_RUNNING_MEAN),
              var = arg_value(call, BATCH_NORM_RUNNING_VAR);
        if ((mean.kind == VALUE_TENSOR) != (var.kind == VALUE_TENSOR))
                return fail(STATUS_VALUE,
                            "running_mean and running_var must either both be None or neither be None");
        if (mean.kind != VALUE_TENSOR)
                return EMIT(emitter, "aten::_native_batch_norm_legit.no_stats", out_results, input, weight,
                            bias, value_bool(true), momentum, eps);
        TRY(EMIT(emitter, "aten::_native_batch_norm_legit_functional", out_results, input, weight, bias, mean,
                 var, value_bool(true), momentum, eps));
        return write_back(emitter, call, out_results->seq->items);
}

static Status eval_expand(Emitter *emitter, const OpCall *call, const char *name, Value *out)
{
        return EMIT(emitter, name, out, arg_value(call, SELF), arg_value(call, BATCH_NORM_WEIGHT),
                    arg_value(call, BATCH_NORM_BIAS), arg_value(call, BATCH_NORM_RUNNING_MEAN),
                    arg_value(call, BATCH_NORM_RUNNING_VAR), arg_value(call, NATIVE_BATCH_NORM_MOMENTUM),
                    arg_value(call, NATIVE_BATCH_NORM_EPS));
}

static Status batch_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        if (!arg_bool(call, NATIVE_BATCH_NORM_TRAINING, false))
                return eval_expand(emitter, call, "fxserve::batch_norm_eval", out);
        _cleanup_(value_clear) Value results = value_none();
        TRY(train_expand(emitter, call, arg_value(call, NATIVE_BATCH_NORM_MOMENTUM),
                         arg_value(call, NATIVE_BATCH_NORM_EPS), &results));
        *out = value_ref(results.seq->items[0]);
        return STATUS_OK;
}

// A tuple of the first `n` items.
static Status first_items(const Value *results, uint32_t n, Value *out)
{
        Seq *seq;
        TRY(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(results->seq->items[i]);
        *out = value_seq_take(VALUE_TUPLE, seq);
        return STATUS_OK;
}

static Status native_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        if (!arg_bool(call, NATIVE_BATCH_NORM_TRAINING, false))
                return eval_expand(emitter, call, "aten::_native_batch_norm_legit_no_training", out);
        _cleanup_(value_clear) Value results = value_none();
        TRY(train_expand(emitter, call, arg_value(call, NATIVE_BATCH_NORM_MOMENTUM),
                         arg_value(call, NATIVE_BATCH_NORM_EPS), &results));
        return first_items(&results, 3, out);
}

static Status with_update_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value results = value_none(), reserve = value_none(), empty = value_none();
        TRY(train_expand(emitter, call, arg_value(call, BATCH_NORM_UPDATE_MOMENTUM),
                         arg_value(call, BATCH_NORM_UPDATE_EPS), &results));
        TRY(value_ints_new(VALUE_LIST, (int64_t[]){ 0 }, 1, &empty));
        TRY(EMIT(emitter, "aten::zeros", &reserve, empty, value_dtype(DTYPE_U8)));
        Seq *seq;
        TRY(seq_new(4, &seq));
        for (uint32_t i = 0; i < 3; i++)
                seq->items[i] = value_ref(results.seq->items[i]);
        seq->items[3] = value_ref(reserve);
        *out = value_seq_take(VALUE_TUPLE, seq);
        return STATUS_OK;
}

const OpDef norm_batch_ops[] = {
        { "fxserve::batch_norm_eval(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
          "Tensor? running_var, float momentum, "
          "float eps) -> Tensor",
          DTYPES_FLOATS, OP_HIDDEN, .infer = eval_infer, .run = eval_run, .kernel = "batch_norm",
          .traits = TRAIT_FRESH | TRAIT_LAYOUT, .role = ROLE_BATCH_NORM_EVAL },
        { "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
          "running_mean, Tensor running_var, "
          "float momentum, float eps) -> "
          "(Tensor, Tensor, Tensor)",
          DTYPES_FLOATS, .infer = eval_infer, .run = eval_run, .traits = TRAIT_FRESH | TRAIT_LAYOUT,
          .role = ROLE_BATCH_NORM_EVAL },
        { "aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
          "Tensor? running_var, float "
          "momentum, float eps) -> (Tensor, "
          "Tensor, Tensor, Tensor)",
          DTYPES_FLOATS, .infer = eval_infer, .run = eval_run, .traits = TRAIT_FRESH | TRAIT_LAYOUT,
          .role = ROLE_BATCH_NORM_EVAL },
        { "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
          "running_mean, Tensor running_var, "
          "bool training, float momentum, "
          "float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
          DTYPES_FLOATS, .infer = train_infer, .run = train_run, .traits = TRAIT_FRESH },
        { "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
          "training, float momentum, float eps) "
          "-> (Tensor, Tensor, Tensor)",
          DTYPES_FLOATS, .infer = train_infer, .run = train_run, .traits = TRAIT_FRESH },
        { "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
          "running_var, bool training, float "
          "momentum, float eps, bool "
          "cudnn_enabled) -> Tensor",
          DTYPES_FLOATS, .expand = batch_norm_expand, .traits = TRAIT_FRESH | TRAIT_STATISTICS },
        { "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
          "running_var, bool training, "
          "float momentum, float eps) -> "
          "(Tensor, Tensor, Tensor)",
          DTYPES_FLOATS, .expand = native_expand, .traits = TRAIT_MAY_SHARE | TRAIT_STATISTICS },
        { "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
          "running_mean, Tensor(b!) running_var, "
          "bool training, float momentum, "
          "float eps) -> (Tensor, Tensor, Tensor)",
          DTYPES_FLOATS, .expand = native_expand, .traits = TRAIT_MAY_SHARE | TRAIT_STATISTICS },
        { "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
          "running_mean, Tensor(b!) running_var, "
          "float momentum, float eps) -> "
          "(Tensor, Tensor, Tensor, Tensor)",
          DTYPES_FLOATS, .expand = with_update_expand, .traits = TRAIT_MAY_SHARE | TRAIT_STATISTICS },
};
OP_FILE(norm_batch_ops);
