// SPDX-License-Identifier: Apache-2.0
// attention.c: scaled_dot_product_attention. Scores and softmax in float32 (float64 for float64);
// half results round once. The causal mask is aligned top left. It may be combined with attn_mask
// where PyTorch has a kernel for both. Rows without allowed keys give zeros. Four-dimensional
// results have the query's layout. And fxserve::attention, which passes make of the same written
// out: its key is turned, its results are contiguous, and rows without allowed keys give NaN.
#include <math.h>
#include "core/kernels/attention/attention.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include <string.h>

typedef struct SdpaArgs {
        double scale;
        bool causal;
        int rank; // of the result
        int64_t out_size[MAX_RANK];
        int64_t n_keys, depth;
        int64_t repeat, value_repeat; // query heads per head of key and of value (enable_gqa)
        bool nan_rows;
        bool bf16; // products of bfloat16
} SdpaArgs;

typedef struct Operands {
        const TensorMeta *q, *k, *v, *mask; // mask NULL: none
} Operands;

static Status check_operands(const Operands *operands)
{
        const TensorMeta *q = operands->q, *k = operands->k, *v = operands->v, *mask = operands->mask;
        if (q->rank < 2 || k->rank < 2 || v->rank < 2)
                return fail(STATUS_SHAPE,
                            "Expected query, key, and value to all be  at least 2 dimensional, but got "
                            "query.dim: %d key.dim: %d and "
                            "value.dim: %d instead.",
                            q->rank, k->rank, v->rank);
        if (q->dtype != k->dtype || q->dtype != v->dtype)
                return fail(STATUS_DTYPE,
                            "Expected query, key, and value to have the same dtype, but got query.dtype: %s "
                            "key.dtype: %s and value.dtype: "
                            "%s instead.",
                            dtype_info[q->dtype].name, dtype_info[k->dtype].name, dtype_info[v->dtype].name);
        if (mask != NULL && mask->dtype != DTYPE_BOOL && mask->dtype != DTYPE_F32 && mask->dtype != q->dtype)
                return fail(STATUS_DTYPE,
                            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                            "attn_mask.dtype: %s and  "
                            "query.dtype: %s instead.",
                            dtype_info[mask->dtype].name, dtype_info[q->dtype].name);
        if (q->size[q->rank - 1] != k->size[k->rank - 1] || k->size[k->rank - 2] != v->size[v->rank - 2])
                return fail(STATUS_SHAPE,
                            "query (%ld), key (%ld) must agree in their last size, key (%ld) and value (%ld) "
                            "in the one before it",
                            (long)q->size[q->rank - 1], (long)k->size[k->rank - 1],
                            (long)k->size[k->rank - 2], (long)v->size[v->rank - 2]);
        return STATUS_OK;
}

// To `rank` dimensions by leading ones; batch dimensions of size 1 repeat.
static void spread(TensorMeta *meta, int rank, const int64_t *batch)
{
        int lead = rank - meta->rank;
        memmove(meta->size + lead, meta->size, meta->rank * sizeof(int64_t));
        memmove(meta->stride + lead, meta->stride, meta->rank * sizeof(int64_t));
        meta->rank = (uint8_t)rank;
        for (int d = 0; d < rank - 2; d++) {
                if (d < lead || (meta->size[d] == 1 && batch[d] != 1))
                        meta->stride[d] = 0;
                meta->size[d] = batch[d];
        }
}

static Status broadcast_batch(TensorMeta *into, const TensorMeta *meta)
{
        TensorMeta a = *into, b = *meta;
        b.rank = (uint8_t)MAX(0, meta->rank - 2);
        int rank;
        int64_t size[MAX_RANK];
        TRY(shape_broadcast(&a, &b, &rank, size));
        into->rank = (uint8_t)rank;
        memcpy(into->size, size, sizeof(into->size));
        return STATUS_OK;
}

// Splits the head dimension into (heads, repeat). A key or value head serves `repeat` query heads,
// with stride 0.
static void split_heads(TensorMeta *meta, int64_t repeat, bool is_query)
{
        int head = meta->rank - 3;
        memmove(meta->size + head + 1, meta->size + head, (size_t)(meta->rank - head) * sizeof(int64_t));
        memmove(meta->stride + head + 1, meta->stride + head, (size_t)(meta->rank - head) * sizeof(int64_t));
        meta->rank++;
        if (is_query) {
                meta->size[head] /= repeat;
                meta->stride[head] *= repeat;
        } else {
                meta->stride[head + 1] = 0;
        }
        meta->size[head + 1] = repeat;
}

static Status group_heads(const TensorMeta *q, const TensorMeta *k, const TensorMeta *v, SdpaArgs *args)
{
        if (q->rank < 3 || k->rank < 3 || v->rank < 3)
                return fail(STATUS_SHAPE, "enable_gqa needs a dimension of heads: query, key and value of at "
                                          "least 3 dimensions");
        int64_t heads = q->size[q->rank - 3], key_heads = k->size[k->rank - 3],
                value_heads = v->size[v->rank - 3];
        if (heads == key_heads && heads == value_heads)
                return STATUS_OK;
        if (key_heads == 0 || value_heads == 0 || heads % key_heads != 0 || heads % value_heads != 0)
                return fail(STATUS_SHAPE,
                            "Number of heads in key and value must divide the number of heads in query");
        args->repeat = heads / key_heads;
        args->value_repeat = heads / value_heads;
        return STATUS_OK;
}

// The mask as wide as the scores [batch..., queries, keys].
static Status spread_mask(TensorMeta *mask, const SdpaArgs *args)
{
        TensorMeta scores = { .rank = (uint8_t)args->rank };
        memcpy(scores.size, args->out_size, sizeof(scores.size));
        scores.size[args->rank - 1] = args->n_keys;
        int rank, own = mask->rank;
        int64_t size[MAX_RANK];
        TRY(shape_broadcast(&scores, mask, &rank, size));
        if (rank != args->rank || memcmp(size, scores.size, (size_t)rank * sizeof(int64_t)) != 0)
                return fail(STATUS_SHAPE, "attn_mask does not broadcast to the shape of the scores");
        TensorMeta out;
        meta_init(&out, mask->dtype, rank, scores.size);
        for (int d = 0; d < rank; d++) {
                int from = d - (rank - own);
                out.stride[d] =
                        from < 0 || (mask->size[from] == 1 && out.size[d] != 1) ? 0 : mask->stride[from];
        }
        *mask = out;
        return STATUS_OK;
}

// Sizes of the batch and of the result; args->repeat and its like are set.
static Status set_sizes(const Operands *operands, SdpaArgs *args)
{
        const TensorMeta *q = operands->q, *k = operands->k, *v = operands->v;
        TensorMeta batch = { .rank = 0 }, key_batch = *k, value_batch = *v;
        if (args->repeat > 1)
                key_batch.size[k->rank - 3] *= args->repeat;
        if (args->value_repeat > 1)
                value_batch.size[v->rank - 3] *= args->value_repeat;
        args->n_keys = k->size[k->rank - 2];
        args->depth = q->size[q->rank - 1];
        TRY(broadcast_batch(&batch, q));
        TRY(broadcast_batch(&batch, &key_batch));
        TRY(broadcast_batch(&batch, &value_batch));
        args->rank = batch.rank + 2;
        if (args->rank + (args->repeat > 1) > MAX_RANK)
                return fail(STATUS_SHAPE, "scaled_dot_product_attention: %d dimensions are not supported",
                            args->rank);
        memcpy(args->out_size, batch.size, sizeof(args->out_size));
        args->out_size[args->rank - 2] = q->size[q->rank - 2];
        args->out_size[args->rank - 1] = v->size[v->rank - 1];
        if (operands->mask == NULL)
                return STATUS_OK;
        TensorMeta wide = *operands->mask;
        return spread_mask(&wide, args);
}

static Operands operands_of(const OpCall *call)
{
        return (Operands){ arg_meta(call, ATTENTION_QUERY), arg_meta(call, ATTENTION_KEY),
                           arg_meta(call, ATTENTION_VALUE), arg_meta(call, ATTENTION_ATTN_MASK) };
}

static Status sdpa_args(const OpCall *call, SdpaArgs *out)
{
        Operands operands = operands_of(call);
        TRY(check_operands(&operands));
        SdpaArgs args = { .causal = arg_bool(call, ATTENTION_IS_CAUSAL, false),
                          .repeat = 1,
                          .value_repeat = 1 };
        int64_t depth = operands.q->size[operands.q->rank - 1];
        args.scale = depth == 0 ? 1 : 1 / sqrt((double)depth);
        if (!arg_is_none(call, ATTENTION_SCALE))
                TRY(arg_double(call, ATTENTION_SCALE, &args.scale));
        if (arg_bool(call, ATTENTION_ENABLE_GQA, false))
                TRY(group_heads(operands.q, operands.k, operands.v, &args));
        TRY(set_sizes(&operands, &args));
        *out = args;
        return STATUS_OK;
}

// Whether PyTorch takes its blocked CPU kernel. The result then has the query's layout, and half
// weights are rounded before they are multiplied by the values.
static bool is_blocked(const OpCall *call, const SdpaArgs *args)
{
        const TensorMeta *operands[] = { arg_meta(call, ATTENTION_QUERY), arg_meta(call, ATTENTION_KEY),
                                         arg_meta(call, ATTENTION_VALUE) };
        for (int i = 0; i < 3; i++) {
                if (operands[i]->rank != 4 || operands[i]->stride[3] != 1 ||
                    operands[i]->size[0] != args->out_size[0] || operands[i]->size[2] == 0)
                        return false;
        }
        return args->out_size[3] == args->depth &&
               operands[1]->size[1] * args->repeat == operands[0]->size[1];
}

// Only PyTorch's blocked kernel accepts a mask together with is_causal, and only masks of two or
// four dimensions.
static bool mask_fits_blocks(const OpCall *call)
{
        return arg_meta(call, ATTENTION_ATTN_MASK)->rank == 2 ||
               arg_meta(call, ATTENTION_ATTN_MASK)->rank == 4;
}

static Status sdpa_infer(OpCall *call)
{
        const TensorMeta *q = arg_meta(call, ATTENTION_QUERY);
        SdpaArgs args;
        double dropout = 0;
        TRY(sdpa_args(call, &args));
        TRY(arg_double(call, ATTENTION_DROPOUT_P, &dropout));
        if (!(dropout >= 0))
                return fail(STATUS_VALUE, "dropout probability has to be between 0 and 1, but got %g",
                            dropout);
        int64_t numel;
        TRY(shape_numel(args.rank, args.out_size, &numel));
        TensorMeta meta;
        meta_init(&meta, q->dtype, args.rank, args.out_size);
        bool blocked = is_blocked(call, &args);
        if (args.causal && !arg_is_none(call, ATTENTION_ATTN_MASK) && numel != 0 && args.n_keys != 0 &&
            !(blocked && mask_fits_blocks(call)))
                return fail(STATUS_VALUE, "_scaled_dot_product_attention: Explicit attn_mask should not be "
                                          "set when is_causal=True");
        if (blocked)
                meta_set_strides_like(&meta, q);
        return out_fresh(call, 0, &meta);
}

// ---- run ----
static GemmMatrix matrix_of(const void *data, const TensorMeta *meta)
{
        GemmMatrix out = { .data = (void *)(uintptr_t)data,
                           .row = meta->stride[meta->rank - 2],
                           .col = meta->stride[meta->rank - 1] };
        memcpy(out.batch, meta->stride, (size_t)(meta->rank - 2) * sizeof(int64_t));
        return out;
}

// A tensor argument in the dtype of the computation. Without a conversion it keeps its strides.
typedef struct SdpaInput {
        const void *data;
        TensorMeta meta;
        Dense dense;
} SdpaInput;

static Status input_init(SdpaInput *input, const OpRun *run, uint32_t in, Dtype as)
{
        input->meta = *run->in_meta[in];
        TRY(dense_init_as_it_lies(&input->dense, run->ctx, run->in[in], &input->meta, as));
        input->data = input->dense.data;
        return STATUS_OK;
}

static void input_deinit(SdpaInput *input)
{
        dense_deinit(&input->dense);
}

// Expands all operands to the result's batch dimensions. Heads are split when query heads share a
// key head.
static GemmMatrix place(const SdpaArgs *args, const void *data, TensorMeta meta, bool shares_heads,
                        const int64_t *batch)
{
        bool grouped = args->repeat > 1;
        if (!grouped || !shares_heads)
                spread(&meta, args->rank, args->out_size);
        if (grouped)
                split_heads(&meta, args->repeat, !shares_heads);
        if (grouped && shares_heads)
                spread(&meta, args->rank + 1, batch);
        return matrix_of(data, &meta);
}

static Status attend(const OpRun *run, const SdpaArgs *args, const SdpaInput *inputs, const SdpaInput *mask,
                     void *out, const TensorMeta *out_meta)
{
        bool grouped = args->repeat > 1;
        TensorMeta result = *out_meta;
        if (grouped)
                split_heads(&result, args->repeat, true);
        Attention attention = { .dtype = dtype_compute(out_meta->dtype),
                                .l = args->out_size[args->rank - 2],
                                .s = args->n_keys,
                                .e = args->depth,
                                .ev = args->out_size[args->rank - 1],
                                .batch_rank = result.rank - 2,
                                .causal = args->causal,
                                .nan_rows = args->nan_rows,
                                .scale = args->scale,
                                .bf16 = args->bf16 };
        attention.weights = DTYPE_NONE;
        // the kernel of bfloat16 rounds them to that
        if (!args->bf16 && run->out_meta[0]->dtype != attention.dtype && is_blocked(run->call, args))
                attention.weights = run->out_meta[0]->dtype;
        memcpy(attention.batch_size, result.size, (size_t)attention.batch_rank * sizeof(int64_t));
        attention.q = place(args, inputs[0].data, inputs[0].meta, false, result.size);
        attention.k = place(args, inputs[1].data, inputs[1].meta, true, result.size);
        attention.v = place(args, inputs[2].data, inputs[2].meta, true, result.size);
        attention.out = matrix_of(out, &result);
        if (mask->data != NULL) {
                TensorMeta wide = mask->meta;
                TRY(spread_mask(&wide, args));
                if (grouped)
                        split_heads(&wide, args->repeat, true);
                attention.mask = matrix_of(mask->data, &wide);
                attention.mask_kind = wide.dtype == DTYPE_BOOL ? MASK_BOOL : MASK_ADD;
        }
        return attention_run(run->ctx, &attention);
}

static void inputs_deinit(SdpaInput (*inputs)[4])
{
        for (int i = 0; i < 4; i++)
                input_deinit(&(*inputs)[i]);
}

static Status run_sdpa(const OpRun *run, bool bf16)
{
        SdpaArgs args;
        TRY(sdpa_args(run->call, &args));
        args.bf16 = bf16;
        if (meta_numel(run->out_meta[0]) == 0)
                return STATUS_OK;
        Dtype as = dtype_compute(run->in_meta[0]->dtype);
        _cleanup_(inputs_deinit) SdpaInput inputs[4] = { 0 };
        _cleanup_(dense_out_deinit) DenseOut out = { 0 };
        for (uint32_t i = 0; i < 3; i++)
                TRY(input_init(&inputs[i], run, i, as));
        if (run->in_meta[3] != NULL)
                TRY(input_init(&inputs[3], run, 3, run->in_meta[3]->dtype == DTYPE_BOOL ? DTYPE_BOOL : as));
        TensorMeta out_meta = *run->out_meta[0];
        void *target = run->out[0];
        if (out_meta.dtype != as) {
                TRY(dense_out_init(&out, run->ctx, run->out[0], run->out_meta[0], as));
                target = out.data;
                out_meta.dtype = as;
                meta_set_contiguous(&out_meta);
        }
        TRY(attend(run, &args, inputs, &inputs[3], target, &out_meta));
        TRY(dense_out_store(&out));
        return STATUS_OK;
}

static Status sdpa_run(const OpRun *run)
{
        return run_sdpa(run, false);
}

static Status sdpa_run_bf16(const OpRun *run)
{
        return run_sdpa(run, true);
}

// Products in bfloat16, in the same kernel.
static void pack_bf16(const SdpaArgs *args, Dtype dtype, Status (*run)(const OpRun *run), Packed *out_packed)
{
        Attention attention = { .dtype = dtype,
                                .weights = DTYPE_NONE,
                                .l = args->out_size[args->rank - 2],
                                .e = args->depth,
                                .ev = args->out_size[args->rank - 1] };
        const char *name = attention_bf16_name();
        if (name != NULL && args->depth > 0 && attention_is_blocked(&attention))
                *out_packed = (Packed){ .run = run, .kernel = name };
}

static Status sdpa_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        SdpaArgs args;
        TRY(sdpa_args(call, &args));
        // where less precision was asked for, and where PyTorch's kernel does so, too
        const Dtype dtype = arg_meta(call, ATTENTION_QUERY)->dtype;
        if (dtype == DTYPE_BF16 ? is_blocked(call, &args) : context->precision != PRECISION_F32)
                pack_bf16(&args, dtype == DTYPE_BF16 ? DTYPE_F32 : dtype, sdpa_run_bf16, out_packed);
        return STATUS_OK;
}

// ---- written out ----
static TensorMeta turned(const TensorMeta *meta)
{
        TensorMeta out = *meta;
        int row = meta->rank - 2, column = meta->rank - 1;
        out.size[row] = meta->size[column];
        out.size[column] = meta->size[row];
        out.stride[row] = meta->stride[column];
        out.stride[column] = meta->stride[row];
        return out;
}

// Only what runs without storing all scores: the library's products are faster than ours.
static Status fused_args(const OpCall *call, SdpaArgs *out)
{
        Operands operands = operands_of(call);
        SdpaArgs args = { .repeat = 1, .value_repeat = 1, .nan_rows = true };
        if (operands.k->rank < 2)
                return fail(STATUS_SHAPE, "%s: the key is no matrix", call->schema->name);
        TensorMeta key = turned(operands.k);
        operands.k = &key;
        TRY(check_operands(&operands));
        TRY(arg_double(call, FUSED_ATTENTION_SCALE, &args.scale));
        TRY(set_sizes(&operands, &args));
        Attention attention = { .dtype = operands.q->dtype,
                                .weights = DTYPE_NONE,
                                .l = args.out_size[args.rank - 2],
                                .e = args.depth,
                                .ev = args.out_size[args.rank - 1] };
        if (args.n_keys == 0 || args.depth == 0 || !attention_is_blocked(&attention))
                return fail(STATUS_UNSUPPORTED, "%s: not these sizes", call->schema->name);
        *out = args;
        return STATUS_OK;
}

static Status fused_infer(OpCall *call)
{
        SdpaArgs args;
        TRY(fused_args(call, &args));
        TensorMeta meta;
        meta_init(&meta, PACKED_DTYPE, args.rank, args.out_size);
        return out_fresh(call, 0, &meta);
}

static Status run_fused(const OpRun *run, bool bf16)
{
        SdpaArgs args;
        TRY(fused_args(run->call, &args));
        args.bf16 = bf16;
        if (meta_numel(run->out_meta[0]) == 0)
                return STATUS_OK;
        SdpaInput inputs[4] = { 0 };
        for (int i = 0; i < 4; i++)
                if (run->in_meta[i] != NULL)
                        inputs[i] = (SdpaInput){ .data = run->in[i], .meta = *run->in_meta[i] };
        inputs[ATTENTION_KEY].meta = turned(run->in_meta[ATTENTION_KEY]);
        return attend(run, &args, inputs, &inputs[3], run->out[0], run->out_meta[0]);
}

static Status fused_run(const OpRun *run)
{
        return run_fused(run, false);
}

static Status fused_run_bf16(const OpRun *run)
{
        return run_fused(run, true);
}

static Status fused_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        SdpaArgs args;
        TRY(fused_args(call, &args));
        if (context->precision != PRECISION_F32)
                pack_bf16(&args, PACKED_DTYPE, fused_run_bf16, out_packed);
        return STATUS_OK;
}

static Cost cost_of(const OpCall *call, const SdpaArgs *args)
{
        int64_t items = 1, bytes = 0;
        for (int d = 0; d < args->rank - 1; d++)
                items *= args->out_size[d];
        for (int i = 0; i < 3; i++)
                bytes += meta_numel(arg_meta(call, i)) * dtype_info[arg_meta(call, i)->dtype].bytes;
        return (Cost){ .flops = saturating_product(saturating_product(2 * items, args->n_keys),
                                                   args->depth + args->out_size[args->rank - 1]),
                       .bytes = bytes };
}

static Cost sdpa_cost(const OpCall *call)
{
        SdpaArgs args;
        return sdpa_args(call, &args) == STATUS_OK ? cost_of(call, &args) : (Cost){ 0 };
}

static Cost fused_cost(const OpCall *call)
{
        SdpaArgs args;
        return fused_args(call, &args) == STATUS_OK ? cost_of(call, &args) : (Cost){ 0 };
}

// ---- with dropout, or other heads in key than in value: PyTorch takes single operators ----
static Value repeated_heads(Compose *c, Value x, int64_t repeat)
{
        return repeat == 1 ? x
                           : OP(c, "aten::repeat_interleave.self_int", x, value_int(repeat), value_int(-3));
}

// The mask as numbers to add, of the scores' dtype.
static Value added_mask(Compose *c, const TensorMeta *query, const TensorMeta *key, Dtype dtype)
{
        Value mask = NAMED(c, "attn_mask");
        const bool given = compose_has(c, "attn_mask");
        if (compose_bool(c, "is_causal")) {
                if (given)
                        compose_check(c, fail(STATUS_VALUE,
                                              "_scaled_dot_product_attention: Explicit attn_mask should not "
                                              "be set when is_causal=True"));
                mask = OP(c, "aten::ones", INTS(c, query->size[query->rank - 2], key->size[key->rank - 2]),
                          value_dtype(DTYPE_BOOL));
                mask = OP(c, "aten::tril", mask);
        } else if (!given) {
                return value_none();
        }
        if (compose_meta(c, mask)->dtype != DTYPE_BOOL)
                return compose_wide(c, mask);
        Value zeros = OP(c, "aten::zeros_like", mask, value_dtype(dtype));
        return OP(c, "aten::masked_fill.Scalar", zeros, OP(c, "aten::logical_not", mask),
                  value_float(-INFINITY));
}

static Status single_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        SdpaArgs args;
        TRY(sdpa_args(call, &args));
        Compose c;
        compose_begin(&c, emitter, call);
        Value q = compose_wide(&c, NAMED(&c, "query")), k = compose_wide(&c, NAMED(&c, "key")),
              v = compose_wide(&c, NAMED(&c, "value"));
        const TensorMeta *meta = arg_meta(call, ATTENTION_QUERY);
        Value mask = added_mask(&c, meta, arg_meta(call, ATTENTION_KEY), dtype_compute(meta->dtype));
        k = repeated_heads(&c, k, args.repeat);
        v = repeated_heads(&c, v, args.value_repeat);
        const double root = sqrt(fabs(args.scale));
        q = OP(&c, "aten::mul.Scalar", q, value_float(args.scale < 0 ? -root : root));
        k = OP(&c, "aten::mul.Scalar", k, value_float(root));
        Value scores =
                OP(&c, "aten::matmul", q, OP(&c, "aten::transpose.int", k, value_int(-2), value_int(-1)));
        if (mask.kind != VALUE_NONE)
                scores = OP(&c, "aten::add.Tensor", scores, mask);
        Value weights = OP(&c, "aten::_safe_softmax", scores, value_int(-1));
        if (compose_double(&c, "dropout_p") > 0)
                weights = OP(&c, "aten::dropout", weights, NAMED(&c, "dropout_p"), value_bool(true));
        Value result = OP(&c, "aten::matmul", weights, v);
        return compose_end(&c, compose_cast(&c, result, meta->dtype), out);
}

static OpExpand sdpa_form(const OpCall *call)
{
        const TensorMeta *k = arg_meta(call, ATTENTION_KEY), *v = arg_meta(call, ATTENTION_VALUE);
        const bool unequal = k->rank > 2 && v->rank > 2 && k->size[k->rank - 3] != v->size[v->rank - 3] &&
                             arg_bool(call, ATTENTION_ENABLE_GQA, false);
        double dropout = 0;
        (void)arg_double(call, ATTENTION_DROPOUT_P, &dropout);
        return unequal || dropout > 0 ? single_expand : NULL;
}

const OpDef attention_ops[] = {
        { "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
          "attn_mask=None, float dropout_p=0., bool "
          "is_causal=False, *, float? "
          "scale=None, bool enable_gqa=False) -> Tensor",
          DTYPES_FLOATS, OP_DROPS, .infer = sdpa_infer, .run = sdpa_run, .pack = sdpa_pack, .form = sdpa_form,
          .cost = sdpa_cost, .traits = TRAIT_FRESH },
        { "fxserve::attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float scale) -> "
          "Tensor",
          1u << PACKED_DTYPE, OP_HIDDEN, .infer = fused_infer, .run = fused_run, .pack = fused_pack,
          .cost = fused_cost, .traits = TRAIT_FRESH, .role = ROLE_FUSED_ATTENTION },
};
OP_FILE(attention_ops);
