// SPDX-License-Identifier: Apache-2.0
// product_half.c: products and convolutions of float16 or bfloat16 with constant weights, for
// programs. What they read is widened to float32, multiplied as float32 is, and the results are
// rounded once, as the operators' own kernels do it. Widened bfloat16 has the values of bfloat16:
// factors keep their size where they are packed, and CPUs that multiply bfloat16 lose nothing.
#include "core/ops/product_half.h"

#include <string.h>
#include "core/kernels/dense.h"
#include "core/ops/arguments.h"
#include "core/ops/matmul.h"
#include "core/ops/product.h"
#include "core/tensor/convert.h"

enum { ROW_GRAIN = 16384 }; // elements

typedef struct HalfProduct {
        PackedProduct product; // of float32
        Dtype half;
        int64_t n_rows, n_k;          // what is given, as rows
        int64_t row, column;          // their strides, in elements
        int64_t n_results, n_columns; // what comes out, as rows one after another
        float *bias; // added to rounded products; NULL: there is none, or the product adds it
        size_t in_bytes, out_bytes;
} HalfProduct;

// ---- running ----
typedef struct HalfRun {
        const HalfProduct *product;
        const uint16_t *given;
        float *rows, *results;
        uint16_t *out;
} HalfRun;

static void widen_rows(void *argument, int64_t begin, int64_t end)
{
        const HalfRun *run = argument;
        const HalfProduct *product = run->product;
        const TileLoad load = tile_loader(TILE_F32, product->half);
        for (int64_t i = begin; i < end; i++)
                load(run->given + i * product->row, product->column * (int64_t)sizeof(uint16_t),
                     (size_t)product->n_k, run->rows + i * product->n_k);
}

static void round_rows(void *argument, int64_t begin, int64_t end)
{
        const HalfRun *run = argument;
        const HalfProduct *product = run->product;
        const TileStore store = tile_storer(TILE_F32, product->half);
        const TileLoad load = tile_loader(TILE_F32, product->half);
        const size_t n = (size_t)product->n_columns;
        for (int64_t i = begin; i < end; i++) {
                float *from = run->results + i * product->n_columns;
                uint16_t *to = run->out + i * product->n_columns;
                store(from, n, to, sizeof(*to));
                if (product->bias == NULL)
                        continue;
                load(to, sizeof(*to), n, from);
                for (size_t k = 0; k < n; k++)
                        from[k] += product->bias[k];
                store(from, n, to, sizeof(*to));
        }
}

static Status half_run(const HalfProduct *product, const OpRun *run, const void *given)
{
        char *scratch = run->scratch;
        HalfRun half = { .product = product,
                         .given = given,
                         .rows = (float *)(void *)scratch,
                         .results = (float *)(void *)(scratch + product->in_bytes),
                         .out = run->out[0] };
        OpRun single = *run;
        single.in = (const void *const[]){ half.rows };
        single.out = (void *const[]){ half.results };
        single.scratch = scratch + product->in_bytes + product->out_bytes;
        TRY(parallel_for(run->ctx, product->n_rows, MAX(ROW_GRAIN / product->n_k, (int64_t)1), widen_rows,
                         &half));
        TRY(packed_product_run(&product->product, &single, NULL));
        TRY(parallel_for(run->ctx, product->n_results, MAX(ROW_GRAIN / product->n_columns, (int64_t)1),
                         round_rows, &half));
        return run_poll(run->ctx);
}

static Status half_first_run(const OpRun *run)
{
        return half_run(run->state, run, run->in[0]);
}

static Status half_second_run(const OpRun *run)
{
        return half_run(run->state, run, run->in[1]);
}

static void half_free(void *impl)
{
        HalfProduct *product = impl;
        packed_product_deinit(&product->product);
        free(product->bias);
        free(product);
}

// ---- making ----
typedef struct Factors {
        TensorMeta rows; // of the left factor
        const Tensor *weight, *bias;
        TensorMeta right; // the weight as [k, n]
        bool rounds;      // the bias is added to rounded products
} Factors;

// The argument's tensor when its bytes are known now and are of the dtype, in any dense order.
static const Tensor *half_constant(const OpCall *call, int index, Dtype half)
{
        const Tensor *tensor = NULL;
        if (arg_meta(call, index) == NULL || arg_data(call, index, &tensor) != STATUS_OK || tensor == NULL ||
            tensor->meta.dtype != half || meta_numel(&tensor->meta) == 0 ||
            !meta_is_non_overlapping_and_dense(&tensor->meta))
                return NULL;
        return tensor;
}

static float *widened(const Tensor *tensor)
{
        const int64_t n = meta_numel(&tensor->meta);
        float *out = new_array((size_t)n, sizeof(*out));
        if (out != NULL)
                tile_loader(TILE_F32, tensor->meta.dtype)(tensor_data(tensor), sizeof(uint16_t), (size_t)n,
                                                          out);
        return out;
}

static Precision precision_of(Dtype half)
{
        return half == DTYPE_BF16 ? PRECISION_BF16 : PRECISION_F32;
}

static Status make_product(const Factors *factors, const PackContext *context, HalfProduct *half)
{
        _cleanup_(freep) float *weight = widened(factors->weight), *bias = NULL;
        if (weight == NULL)
                return fail_memory();
        if (factors->bias != NULL) {
                bias = widened(factors->bias);
                if (bias == NULL)
                        return fail_memory();
        }
        DnnlMatmul matmul = { .b = factors->right,
                              .b_data = weight,
                              .share = { .cache = context->cache,
                                         .storage = factors->weight->storage,
                                         .poll = context->poll,
                                         .copy = weight,
                                         .original = tensor_data(factors->weight),
                                         .stored = half->half },
                              .bias_data = factors->rounds ? NULL : bias,
                              .n_threads = context->n_threads };
        TensorMeta left;
        meta_init(&left, DTYPE_F32, 2, (int64_t[]){ half->n_rows, half->n_k });
        meta_init(&matmul.out, DTYPE_F32, 2, (int64_t[]){ half->n_rows, half->n_columns });
        matmul.b.dtype = DTYPE_F32;
        TRY(left_product_new(&left, &matmul, precision_of(half->half), &(DirectClamp){ 0 }, &half->product));
        if (factors->rounds)
                half->bias = take_ptr(bias);
        return STATUS_OK;
}

// Takes `half`.
static Status take(HalfProduct *half, Status made, Status (*run)(const OpRun *run), Packed *out_packed)
{
        if (made != STATUS_OK || half->product.kind == NULL) {
                half_free(half);
                return made;
        }
        half->in_bytes = storage_padded((size_t)(half->n_rows * half->n_k) * sizeof(float));
        half->out_bytes = storage_padded((size_t)(half->n_results * half->n_columns) * sizeof(float));
        *out_packed =
                (Packed){ .run = run,
                          .impl = half,
                          .free_impl = half_free,
                          .kernel = half->product.name,
                          .scratch_bytes = half->in_bytes + half->out_bytes + half->product.scratch_bytes };
        return STATUS_OK;
}

static Status make(const Factors *factors, const PackContext *context, Status (*run)(const OpRun *run),
                   Packed *out_packed)
{
        HalfProduct *half = calloc(1, sizeof(*half));
        if (half == NULL)
                return fail_memory();
        *half = (HalfProduct){ .half = factors->rows.dtype,
                               .n_rows = factors->rows.size[0],
                               .n_k = factors->rows.size[1],
                               .row = factors->rows.stride[0],
                               .column = factors->rows.stride[1],
                               .n_results = factors->rows.size[0],
                               .n_columns = factors->right.size[1] };
        return take(half, make_product(factors, context, half), run, out_packed);
}

// Whether the factors can be multiplied so: `left` and `bias` are positions of arguments, a bias is
// a constant of one number per column, or there is none.
static bool fits(const OpCall *call, int left, int bias, Factors *factors)
{
        const TensorMeta *given = arg_meta(call, left);
        const Dtype half = given->dtype;
        if (factors->weight == NULL || factors->weight->meta.rank != 2 || meta_numel(given) == 0 ||
            given->rank == 0 || !product_rows(given, &factors->rows) ||
            factors->rows.size[1] != factors->right.size[0])
                return false;
        factors->bias = bias < 0 ? NULL : half_constant(call, bias, half);
        return bias < 0 || arg_meta(call, bias) == NULL ||
               (factors->bias != NULL && factors->bias->meta.rank == 1 &&
                factors->bias->meta.size[0] == factors->right.size[1]);
}

Status half_linear_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        const TensorMeta *input = arg_meta(call, SELF);
        Factors factors = { .weight = half_constant(call, LINEAR_WEIGHT, input->dtype) };
        if (factors.weight == NULL || factors.weight->meta.rank != 2)
                return STATUS_OK;
        factors.right = product_transposed(&factors.weight->meta);
        if (!fits(call, SELF, LINEAR_BIAS, &factors))
                return STATUS_OK;
        factors.rounds = linear_rounds_first(input, factors.bias != NULL);
        TRY(make(&factors, context, half_first_run, out_packed));
        out_packed->baked = 1u << 1 | (factors.bias != NULL ? 1u << 2 : 0u);
        return STATUS_OK;
}

Status half_addmm_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        Factors factors = { .weight = half_constant(call, ADDMM_MAT2, arg_meta(call, ADDMM_MAT1)->dtype) };
        if (factors.weight == NULL || call->inplace || !value_is_one(arg_number(call, ADDMM_BETA)) ||
            !value_is_one(arg_number(call, ADDMM_ALPHA)))
                return STATUS_OK;
        factors.right = factors.weight->meta;
        if (!fits(call, ADDMM_MAT1, SELF, &factors))
                return STATUS_OK;
        TRY(make(&factors, context, half_second_run, out_packed));
        out_packed->baked = 1u << 0 | 1u << 2;
        return STATUS_OK;
}

Status half_mm_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        const TensorMeta *left = arg_meta(call, SELF);
        Factors factors = { .weight = half_constant(call, MM_OTHER, left->dtype) };
        if (factors.weight == NULL)
                return STATUS_OK;
        factors.right = factors.weight->meta;
        if (!fits(call, SELF, -1, &factors))
                return STATUS_OK;
        TRY(make(&factors, context, half_first_run, out_packed));
        out_packed->baked = 1u << 1;
        return STATUS_OK;
}

// ---- convolutions ----
static TensorMeta as_single(TensorMeta meta)
{
        meta.dtype = DTYPE_F32;
        return meta;
}

static Status make_conv(const OpCall *call, const ConvArgs *args, const Tensor *weight, const Tensor *bias,
                        const PackContext *context, HalfProduct *half)
{
        _cleanup_(freep) float *single = widened(weight), *single_bias = NULL;
        PackContext of_half = *context;
        if (single == NULL)
                return fail_memory();
        DnnlConv conv = conv_task(call, args, weight, context);
        conv.input = as_single(conv.input);
        if (half->row != half->n_k) // samples are widened to lie one after another
                conv.input.stride[0] = half->n_k;
        conv.weight = as_single(conv.weight);
        conv.out = as_single(conv.out);
        conv.weight_data = single;
        conv.share.copy = single;
        conv.share.original = tensor_data(weight);
        conv.share.stored = half->half;
        if (bias != NULL) {
                single_bias = widened(bias);
                if (single_bias == NULL)
                        return fail_memory();
                conv.bias_data = single_bias;
        }
        of_half.precision = precision_of(half->half);
        return conv_product_of(&conv, false, &of_half, &(DirectClamp){ 0 }, &half->product);
}

// Bytes as they lie in memory, whatever their order: as many rows as there are channels.
static void set_rows(const TensorMeta *meta, int64_t *out_n, int64_t *out_length)
{
        *out_n = meta->size[0] * (meta->rank > 1 ? meta->size[1] : 1);
        *out_length = meta_numel(meta) / *out_n;
}

// The same, or a row for each sample where only their bytes lie together. False: not even these do.
static bool set_input_rows(const TensorMeta *input, int spatial, HalfProduct *half)
{
        TensorMeta sample = *input;
        half->column = 1;
        set_rows(input, &half->n_rows, &half->n_k);
        half->row = half->n_k;
        if (meta_is_non_overlapping_and_dense(input))
                return true;
        sample.size[0] = 1;
        half->n_rows = input->size[0];
        half->n_k = meta_numel(&sample);
        half->row = input->stride[0];
        return input->rank == spatial + 2 && meta_is_non_overlapping_and_dense(&sample);
}

Status half_conv_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        ConvArgs args;
        const TensorMeta *input = arg_meta(call, SELF), *out = &call->outs[0].meta;
        const Tensor *weight = half_constant(call, CONV_WEIGHT, input->dtype),
                     *bias = half_constant(call, CONV_BIAS, input->dtype);
        bool has_bias = arg_meta(call, CONV_BIAS) != NULL;
        TRY(conv_args(call, &args));
        if (args.transposed || weight == NULL || !meta_is_contiguous(&weight->meta) ||
            (has_bias && bias == NULL) || meta_numel(input) == 0 || meta_numel(out) == 0 ||
            !meta_is_non_overlapping_and_dense(out))
                return STATUS_OK;
        HalfProduct *half = calloc(1, sizeof(*half));
        if (half == NULL)
                return fail_memory();
        half->half = input->dtype;
        set_rows(out, &half->n_results, &half->n_columns);
        if (!set_input_rows(input, args.spatial, half)) {
                half_free(half);
                return STATUS_OK;
        }
        TRY(take(half, make_conv(call, &args, weight, bias, context, half), half_first_run, out_packed));
        out_packed->baked = 1u << 1 | (has_bias ? 1u << 2 : 0u);
        return STATUS_OK;
}
