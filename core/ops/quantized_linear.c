// SPDX-License-Identifier: Apache-2.0
// quantized_linear.c: fxserve::quantized_linear, a linear layer between tensors of 8-bit levels:
//
//     y[m, n] = scale * weight_scale[n] * sum_k (input[m, k] - zero_point) * weight[n, k] + bias[n]
//     y = clamp(y + residual, low, high)
//     with dtype: clamp(round(y * out_inverse) + out_zero, quant_min, quant_max) as dtype
//
// And fxserve::quantize, which makes levels of a tensor: clamp(round(x * inverse) + zero_point).
// Passes make these calls of dequantize, linear, relu, quantize. The sum is exact; a graph that
// multiplies dequantised tensors rounds each term.
#include <math.h>
#include <string.h>
#include "core/kernels/numeric_policy.h"
#include "core/kernels/product/levels.h"
#include "core/ops/arguments.h"
#include "core/ops/levels_out.h"
#include "core/ops/matmul.h"
#include "core/ops/product.h"

// The residual among the tensors of a run: behind the bias.
enum { LEVELS_RESIDUAL_OPERAND = 6, QUANTIZE_PIECE = 4096 };

// ---- arguments ----
Status levels_refuse(const OpCall *call, const char *why)
{
        return fail(STATUS_SHAPE, "%s: %s", call->schema->name, why);
}

bool levels_are_floats(const TensorMeta *meta, int64_t n)
{
        return meta->rank == 1 && meta->size[0] == n && is_packed_type(meta) && meta_is_contiguous(meta);
}

static bool is_scalar(const TensorMeta *meta)
{
        return meta->rank == 0;
}

static Status check_operands(const OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF), *weight = arg_meta(call, LEVELS_WEIGHT),
                         *bias = arg_meta(call, LEVELS_BIAS);
        TensorMeta rows;
        if ((input->dtype != DTYPE_U8 && input->dtype != DTYPE_I8) || weight->dtype != DTYPE_I8)
                return levels_refuse(call, "expected levels of 8 bits");
        if (input->rank < 1 || weight->rank != 2 || input->size[input->rank - 1] != weight->size[1])
                return levels_refuse(call, "the input and the weight do not fit");
        if (weight->size[1] < 1 || weight->size[1] > LEVELS_MOST_TERMS)
                return levels_refuse(call, "sums of so many levels do not fit 32 bits");
        if (!product_rows(input, &rows) || (rows.stride[1] != 1 && rows.size[1] != 1))
                return levels_refuse(call, "the rows of the input are not equally spaced");
        if (!is_scalar(arg_meta(call, LEVELS_SCALE)) || !is_scalar(arg_meta(call, LEVELS_ZERO_POINT)))
                return levels_refuse(call, "expected one scale and one zero point");
        if (!levels_are_floats(arg_meta(call, LEVELS_WEIGHT_SCALE), weight->size[0]) ||
            (bias != NULL && !levels_are_floats(bias, weight->size[0])))
                return levels_refuse(call, "expected a scale, and a bias, for each row of the weight");
        return STATUS_OK;
}

static Status levels_infer(OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF), *weight = arg_meta(call, LEVELS_WEIGHT),
                         *residual = arg_meta(call, LEVELS_RESIDUAL);
        Dtype dtype = arg_dtype(call, LEVELS_DTYPE, PACKED_DTYPE);
        TensorMeta out;
        int64_t size[MAX_RANK];
        TRY(check_operands(call));
        if (dtype != PACKED_DTYPE && dtype != DTYPE_U8 && dtype != DTYPE_I8)
                return levels_refuse(call, "the result is float32 or levels of 8 bits");
        memcpy(size, input->size, sizeof(size));
        size[input->rank - 1] = weight->size[0];
        meta_init(&out, dtype, input->rank, size);
        if (residual != NULL &&
            (!is_packed_type(residual) || !meta_same_shape(residual, &out) || !meta_is_contiguous(residual)))
                return levels_refuse(call, "the residual must be laid out as the result");
        return out_fresh(call, 0, &out);
}

Status levels_read_out(const OpCall *call, int first, LevelsOut *out)
{
        double low, high, inverse;
        int64_t zero, least, most;
        TRY(arg_double(call, first, &low));
        TRY(arg_double(call, first + LEVELS_HIGH - LEVELS_LOW, &high));
        TRY(arg_double(call, first + LEVELS_OUT_INVERSE - LEVELS_LOW, &inverse));
        TRY(arg_int(call, first + LEVELS_OUT_ZERO - LEVELS_LOW, &zero));
        TRY(arg_int(call, first + LEVELS_QUANT_MIN - LEVELS_LOW, &least));
        TRY(arg_int(call, first + LEVELS_QUANT_MAX - LEVELS_LOW, &most));
        *out = (LevelsOut){ .bytes = call->outs[0].meta.dtype != PACKED_DTYPE,
                            .low = (float)low,
                            .high = (float)high,
                            .steps = { (float)inverse, (float)zero, (float)least, (float)most } };
        return STATUS_OK;
}

// ---- what a run knows ----
static float run_scale(const OpRun *run)
{
        return (float)element_as_f64(run->in_meta[LEVELS_SCALE]->dtype, run->in[LEVELS_SCALE]);
}

// Terms may be infinite or NaN: they are made one by one, and the sum of them.
static bool is_extreme(float scale)
{
        return !(fabsf(scale) <= (float)LEVELS_MOST_SCALE);
}

static int32_t run_zero(const OpRun *run)
{
        return (int32_t)element_as_i64(run->in_meta[LEVELS_ZERO_POINT]->dtype, run->in[LEVELS_ZERO_POINT]);
}

// ---- portable ----
typedef struct Rows {
        const OpRun *run;
        TensorMeta input, weight; // [rows, k], [n, k]
        LevelsOut out;
        float scale;
        int32_t zero;
} Rows;

#define LEVELS_SUM(name, type)                                                                               \
        static int32_t name(const type *row, const int8_t *weight, int64_t step, const Rows *rows)           \
        {                                                                                                    \
                int32_t sum = 0, zero = rows->zero;                                                          \
                for (int64_t k = 0; k < rows->input.size[1]; k++)                                            \
                        sum += (row[k] - zero) * weight[k * step];                                           \
                return sum;                                                                                  \
        }
LEVELS_SUM(sum_unsigned, uint8_t)
LEVELS_SUM(sum_signed, int8_t)

static int32_t sum_of(const Rows *rows, int64_t row, int64_t column)
{
        const int64_t *stride = rows->weight.stride, at = row * rows->input.stride[0];
        const int8_t *weight = (const int8_t *)rows->run->in[LEVELS_WEIGHT] + column * stride[0];
        const void *in = rows->run->in[SELF];
        return rows->input.dtype == DTYPE_U8 ? sum_unsigned((const uint8_t *)in + at, weight, stride[1], rows)
                                             : sum_signed((const int8_t *)in + at, weight, stride[1], rows);
}

static double sum_of_terms(const Rows *rows, int64_t row, int64_t column, float column_scale)
{
        const int64_t *stride = rows->weight.stride, at = row * rows->input.stride[0];
        const int8_t *weight = (const int8_t *)rows->run->in[LEVELS_WEIGHT] + column * stride[0];
        const uint8_t *in = (const uint8_t *)rows->run->in[SELF] + at;
        double sum = 0;
        for (int64_t k = 0; k < rows->input.size[1]; k++) {
                int32_t level = rows->input.dtype == DTYPE_U8 ? in[k] : (int8_t)in[k];
                float x = (float)(level - rows->zero) * rows->scale;
                sum += (double)x * (double)((float)weight[k * stride[1]] * column_scale);
        }
        return sum;
}

static float product_of(const Rows *rows, int64_t row, int64_t column, float column_scale, float bias)
{
        return is_extreme(rows->scale)
                       ? (float)sum_of_terms(rows, row, column, column_scale) + bias
                       : fmaf((float)sum_of(rows, row, column) * rows->scale, column_scale, bias);
}

void levels_store(const LevelsOut *out, float x, int64_t at, void *to)
{
        x = x < out->low ? out->low : x > out->high ? out->high : x;
        if (out->bytes)
                levels_quantize(&x, 1, &out->steps, (uint8_t *)to + at);
        else
                ((float *)to)[at] = x;
}

static void run_rows(void *argument, int64_t begin, int64_t end)
{
        const Rows *rows = argument;
        const OpRun *run = rows->run;
        const float *scales = run->in[LEVELS_WEIGHT_SCALE], *bias = run->in[LEVELS_BIAS],
                    *residual = run->in_meta[LEVELS_RESIDUAL_OPERAND] == NULL
                                        ? NULL
                                        : run->in[LEVELS_RESIDUAL_OPERAND];
        int64_t n_columns = rows->weight.size[0];
        Work work = { .ctx = run->ctx };
        for (int64_t row = begin; row < end; row++) {
                for (int64_t n = 0; n < n_columns && !work_stops(&work, rows->input.size[1]); n++) {
                        float x = product_of(rows, row, n, scales[n],
                                             run->in_meta[LEVELS_BIAS] == NULL ? 0 : bias[n]);
                        if (residual != NULL)
                                x += residual[row * n_columns + n];
                        levels_store(&rows->out, x, row * n_columns + n, run->out[0]);
                }
        }
}

static Status levels_run(const OpRun *run)
{
        Rows rows = { .run = run,
                      .weight = *run->in_meta[LEVELS_WEIGHT],
                      .scale = run_scale(run),
                      .zero = run_zero(run) };
        TRY(levels_read_out(run->call, LEVELS_LOW, &rows.out));
        if (!product_rows(run->in_meta[SELF], &rows.input))
                return fail(STATUS_INTERNAL, "%s: the rows of the input have moved", run->call->schema->name);
        TRY(parallel_for(run->ctx, rows.input.size[0], 1, run_rows, &rows));
        return run_poll(run->ctx);
}

// ---- packed ----
static Status packed_run(const OpRun *run)
{
        if (is_extreme(run_scale(run)))
                return levels_run(run);
        return levels_matmul_run(run->state, run->ctx,
                                 &(LevelsOperands){ .in = run->in[SELF],
                                                    .scale = run_scale(run),
                                                    .zero = run_zero(run),
                                                    .residual = run->in_meta[LEVELS_RESIDUAL_OPERAND] == NULL
                                                                        ? NULL
                                                                        : run->in[LEVELS_RESIDUAL_OPERAND],
                                                    .out = run->out[0],
                                                    .scratch = run->scratch });
}

static void free_levels(void *impl)
{
        levels_matmul_free(impl);
}

static Status levels_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        const Tensor *weight, *scales, *bias = NULL, *scale;
        TensorMeta rows;
        LevelsMatmul *matmul;
        bool has_bias = arg_meta(call, LEVELS_BIAS) != NULL;
        if (arg_data(call, LEVELS_WEIGHT, &weight) != STATUS_OK ||
            arg_data(call, LEVELS_WEIGHT_SCALE, &scales) != STATUS_OK ||
            (has_bias && arg_data(call, LEVELS_BIAS, &bias) != STATUS_OK) ||
            !product_rows(arg_meta(call, SELF), &rows))
                return STATUS_OK;
        LevelsProduct product = {
                .n_rows = rows.size[0],
                .n_k = rows.size[1],
                .n_columns = weight->meta.size[0],
                .is_signed = rows.dtype == DTYPE_I8,
                .in_step = rows.stride[0],
                .out_step = weight->meta.size[0],
                .weights = tensor_data(weight),
                .weight_step = { weight->meta.stride[1], weight->meta.stride[0] },
                .column_scale = tensor_data(scales),
                .bias = has_bias ? tensor_data(bias) : NULL,
                .share = { .cache = context->cache, .storage = weight->storage, .poll = context->poll },
                .n_threads = context->n_threads
        };
        TRY(levels_read_out(call, LEVELS_LOW, &product.out));
        TRY(levels_matmul_new(&product, &matmul));
        if (matmul != NULL)
                *out_packed = (Packed){ .run = packed_run,
                                        .impl = matmul,
                                        .free_impl = free_levels,
                                        .kernel = levels_matmul_name(matmul),
                                        .scratch_bytes = levels_matmul_scratch(matmul),
                                        .baked = arg_data(call, LEVELS_SCALE, &scale) != STATUS_OK
                                                         ? 0 // extreme scales of a run read them
                                                         : 1u << LEVELS_WEIGHT | 1u << LEVELS_WEIGHT_SCALE |
                                                                   (has_bias ? 1u << LEVELS_BIAS : 0u) };
        return STATUS_OK;
}

static Cost levels_cost(const OpCall *call)
{
        const TensorMeta *weight = arg_meta(call, LEVELS_WEIGHT), *out = &call->outs[0].meta;
        int64_t k = weight->size[1], n = weight->size[0], numel = meta_numel(out);
        return (Cost){ .flops = 2 * k * numel, .bytes = numel * dtype_info[out->dtype].bytes + k * n };
}

// ---- quantize ----
static Status quantize_infer(OpCall *call)
{
        const TensorMeta *input = arg_meta(call, SELF);
        Dtype dtype = arg_dtype(call, QUANTIZE_DTYPE, DTYPE_U8);
        TensorMeta out = *input;
        if (!is_packed_type(input) || !meta_is_non_overlapping_and_dense(input) ||
            (dtype != DTYPE_U8 && dtype != DTYPE_I8))
                return levels_refuse(call, "expected dense float32, and levels of 8 bits");
        if (!is_scalar(arg_meta(call, QUANTIZE_INVERSE)) || !is_scalar(arg_meta(call, QUANTIZE_ZERO_POINT)))
                return levels_refuse(call, "expected one scale and one zero point");
        out.dtype = dtype;
        return out_fresh(call, 0, &out);
}

typedef struct Rounding {
        const OpRun *run;
        LevelsSteps steps;
} Rounding;

static void quantize_piece(void *argument, int64_t begin, int64_t end)
{
        const Rounding *rounding = argument;
        Work work = { .ctx = rounding->run->ctx };
        for (int64_t at = begin; at < end && !work_stops(&work, QUANTIZE_PIECE); at += QUANTIZE_PIECE)
                levels_quantize((const float *)rounding->run->in[SELF] + at,
                                MIN(end - at, (int64_t)QUANTIZE_PIECE), &rounding->steps,
                                (uint8_t *)rounding->run->out[0] + at);
}

static Status quantize_run(const OpRun *run)
{
        int64_t least, most;
        TRY(arg_int(run->call, QUANTIZE_QUANT_MIN, &least));
        TRY(arg_int(run->call, QUANTIZE_QUANT_MAX, &most));
        const void *inverse = run->in[QUANTIZE_INVERSE], *zero = run->in[QUANTIZE_ZERO_POINT];
        Rounding rounding = {
                .run = run,
                .steps = { .inverse = (float)element_as_f64(run->in_meta[QUANTIZE_INVERSE]->dtype, inverse),
                           .zero = (float)element_as_f64(run->in_meta[QUANTIZE_ZERO_POINT]->dtype, zero),
                           .least = (float)least,
                           .most = (float)most }
        };
        TRY(parallel_for(run->ctx, meta_numel(run->out_meta[0]), 16 * QUANTIZE_PIECE, quantize_piece,
                         &rounding));
        return run_poll(run->ctx);
}

static Cost quantize_cost(const OpCall *call)
{
        int64_t n = meta_numel(&call->outs[0].meta);
        return (Cost){ .flops = 4 * n, .bytes = 5 * n };
}

const OpDef quantized_linear_ops[] = {
        { .schema = "fxserve::quantized_linear(Tensor input, Tensor scale, Tensor zero_point, Tensor weight, "
                    "Tensor weight_scale, Tensor? bias, float low, float high, ScalarType? dtype=None, "
                    "float out_inverse=0., int out_zero=0, int quant_min=0, int quant_max=0, "
                    "Tensor? residual=None) -> Tensor",
          .flags = OP_HIDDEN | OP_INTERNAL,
          .infer = levels_infer,
          .run = levels_run,
          .pack = levels_pack,
          .cost = levels_cost,
          .traits = TRAIT_FRESH,
          .role = ROLE_QUANTIZED_LINEAR },
        { .schema = "fxserve::quantize(Tensor input, Tensor inverse, Tensor zero_point, int quant_min, int "
                    "quant_max, ScalarType dtype) -> Tensor",
          .flags = OP_HIDDEN | OP_INTERNAL,
          .infer = quantize_infer,
          .run = quantize_run,
          .cost = quantize_cost,
          .kernel = "quantize",
          .traits = TRAIT_FRESH | TRAIT_LAYOUT,
          .role = ROLE_QUANTIZE },
};
OP_FILE(quantized_linear_ops);
