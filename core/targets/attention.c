// SPDX-License-Identifier: Apache-2.0
// attention.c: queries, keys and values are projected, split into heads [N, H, L, D], and attend;
// the heads are joined and projected again. Without a batch one of size 1 is added.
#include "core/targets/attention.h"

#include <math.h>
#include <string.h>

typedef struct Heads {
        const MultiHead *task;
        bool batched, batch_first;     // without a batch it becomes the first dimension
        int64_t batch, target, source; // N, L, S; S grows by what is added to keys
        Value q, k, v;                 // projected; then [N, H, length, D]
        Value mask;                    // of floats, broadcast to [N, H, L, S]; None
        bool causal;
} Heads;

// ---- checks, in PyTorch's words ----
Status multi_head_check(int64_t embed, int64_t heads)
{
        if (embed <= 0 || heads <= 0)
                return fail(
                        STATUS_VALUE,
                        "embed_dim and num_heads must be greater than 0, got embed_dim=%ld and num_heads=%ld "
                        "instead",
                        (long)embed, (long)heads);
        return embed % heads == 0 ? STATUS_OK
                                  : fail(STATUS_VALUE, "embed_dim must be divisible by num_heads");
}

static Status check_ranks(const MultiHead *task, const TensorMeta *query, const TensorMeta *key,
                          const TensorMeta *value)
{
        const int rank = query->rank;
        const char *words = rank == 3 ? "batched (3-D)" : "unbatched (2-D)";
        if (rank != 2 && rank != 3)
                return fail(
                        STATUS_SHAPE,
                        "query should be unbatched 2D or batched 3D tensor but received %d-D query tensor",
                        rank);
        if (key->rank != rank || value->rank != rank)
                return fail(STATUS_SHAPE,
                            "For %s `query`, expected `key` and `value` to be %d-D but found %d-D and %d-D "
                            "tensors respectively",
                            words, rank, key->rank, value->rank);
        const Value padding = task->key_padding_mask, mask = task->attn_mask;
        if (padding.kind == VALUE_TENSOR && padding.tensor->meta.rank != rank - 1)
                return fail(STATUS_SHAPE,
                            "For %s `query`, expected `key_padding_mask` to be `None` or %d-D but found %d-D "
                            "tensor instead",
                            words, rank - 1, padding.tensor->meta.rank);
        if (mask.kind == VALUE_TENSOR && mask.tensor->meta.rank != 2 && mask.tensor->meta.rank != 3)
                return fail(STATUS_SHAPE,
                            "For %s `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found %d-D "
                            "tensor instead",
                            words, mask.tensor->meta.rank);
        return STATUS_OK;
}

static Status check_sizes(const Heads *h, const TensorMeta *query, const TensorMeta *key,
                          const TensorMeta *value)
{
        const int same = h->task->in_weight.kind == VALUE_TENSOR ? key->rank : key->rank - 1;
        char key_text[160], value_text[160];
        if (query->size[query->rank - 1] != h->task->embed)
                return fail(STATUS_SHAPE, "was expecting embedding dimension of %ld, but got %ld",
                            (long)h->task->embed, (long)query->size[query->rank - 1]);
        if (memcmp(key->size, value->size, (size_t)same * sizeof(int64_t)) != 0)
                return fail(STATUS_SHAPE,
                            same == key->rank
                                    ? "key shape torch.Size(%s) does not match value shape torch.Size(%s)"
                                    : "key's sequence and batch dims torch.Size(%s) do not match value's "
                                      "torch.Size(%s)",
                            shape_text(same, key->size, key_text, sizeof(key_text)),
                            shape_text(same, value->size, value_text, sizeof(value_text)));
        if (h->batched && key->size[h->batch_first ? 0 : 1] != h->batch)
                return fail(STATUS_SHAPE, "the batch of `key` is %ld, but that of `query` is %ld",
                            (long)key->size[h->batch_first ? 0 : 1], (long)h->batch);
        return STATUS_OK;
}

static Status check_mask(const TensorMeta *mask, const int64_t sizes[3])
{
        char text[160];
        const int64_t *wanted = mask->rank == 2 ? sizes + 1 : sizes;
        if (memcmp(mask->size, wanted, (size_t)mask->rank * sizeof(int64_t)) == 0)
                return STATUS_OK;
        shape_text(mask->rank, mask->size, text, sizeof(text));
        if (mask->rank == 2)
                return fail(STATUS_SHAPE,
                            "The shape of the 2D attn_mask is torch.Size(%s), but should be (%ld, %ld).",
                            text, (long)sizes[1], (long)sizes[2]);
        return fail(STATUS_SHAPE,
                    "The shape of the 3D attn_mask is torch.Size(%s), but should be (%ld, %ld, %ld).", text,
                    (long)sizes[0], (long)sizes[1], (long)sizes[2]);
}

static Status check_padding(const TensorMeta *mask, int64_t batch, int64_t length)
{
        for (int d = 0; d < 2; d++) {
                const int64_t wanted = d == 0 ? batch : length;
                if (mask->size[d] != wanted)
                        return fail(STATUS_SHAPE, "Expected key_padded_mask.shape[%d] to be %ld, but got %ld",
                                    d, (long)wanted, (long)mask->size[d]);
        }
        return STATUS_OK;
}

// ---- projections ----
static bool same_tensor(Value a, Value b)
{
        return a.kind == VALUE_TENSOR && b.kind == VALUE_TENSOR && a.tensor == b.tensor;
}

// Rows `from` to `from + n` times E of a weight or bias; None stays None.
static Value rows_of(Compose *c, const MultiHead *task, Value tensor, int64_t from, int64_t n)
{
        if (tensor.kind == VALUE_NONE)
                return tensor;
        return OP(c, "aten::narrow", tensor, value_int(0), value_int(from * task->embed),
                  value_int(n * task->embed));
}

// Parts `from` to `from + n` of the packed projection, of `input`, one after the other in `out`.
static void project_packed(Compose *c, const MultiHead *task, Value input, int from, int n, Value *const *out)
{
        Value weight = task->in_weight, bias = task->in_bias;
        if (n < 3) {
                weight = rows_of(c, task, weight, from, n);
                bias = rows_of(c, task, bias, from, n);
        }
        Value all = OP(c, "aten::linear", input, weight, bias);
        for (int i = 0; i < n; i++)
                *out[i] = n == 1 ? all
                                 : OP(c, "aten::narrow", all, value_int(-1), value_int(i * task->embed),
                                      value_int(task->embed));
}

static void project(Compose *c, Heads *h)
{
        const MultiHead *task = h->task;
        Value *const parts[] = { &h->q, &h->k, &h->v };
        const Value inputs[] = { task->query, task->key, task->value };
        const Value weights[] = { task->q_weight, task->k_weight, task->v_weight };
        if (task->in_weight.kind == VALUE_NONE) {
                for (int i = 0; i < 3; i++)
                        *parts[i] = OP(c, "aten::linear", inputs[i], weights[i],
                                       rows_of(c, task, task->in_bias, i, 1));
                return;
        }
        for (int i = 0; i < 3;) {
                int n = 1;
                while (i + n < 3 && same_tensor(inputs[i], inputs[i + n]))
                        n++;
                project_packed(c, task, inputs[i], i, n, parts + i);
                i += n;
        }
}

// ---- heads ----
// [N, S, E] or [S, N, E] -> [N, H, S, D].
static Value split_heads(Compose *c, const Heads *h, Value tensor)
{
        const TensorMeta *meta = compose_meta(c, tensor);
        if (compose_failed(c))
                return value_none();
        const int64_t heads = h->task->heads,
                      sizes[] = { meta->size[0], meta->size[1], heads, h->task->embed / heads };
        Value split = OP(c, "aten::reshape", tensor, compose_ints(c, sizes, 4));
        return OP(c, "aten::permute", split, h->batch_first ? INTS(c, 0, 2, 1, 3) : INTS(c, 1, 2, 0, 3));
}

static Value joined(Compose *c, Value a, Value b, int dim)
{
        return OP(c, "aten::cat", compose_list(c, (Value[]){ a, b }, 2), value_int(dim));
}

// bias_k and bias_v behind the keys and values of every sample.
static Value with_bias(Compose *c, const Heads *h, Value tensor, Value bias)
{
        const int64_t sizes[] = { h->batch_first ? h->batch : 1, h->batch_first ? 1 : h->batch,
                                  h->task->embed };
        return joined(c, tensor, OP(c, "aten::expand", bias, compose_ints(c, sizes, 3)),
                      h->batch_first ? 1 : 0);
}

static Value with_zeros(Compose *c, const Heads *h, Value tensor)
{
        const int64_t sizes[] = { h->batch, h->task->heads, 1, h->task->embed / h->task->heads };
        return joined(
                c, tensor,
                OP(c, "aten::zeros", compose_ints(c, sizes, 4), value_dtype(compose_meta(c, tensor)->dtype)),
                2);
}

static void make_heads(Compose *c, Heads *h)
{
        const MultiHead *task = h->task;
        Value *const parts[] = { &h->q, &h->k, &h->v };
        const Value biases[] = { value_none(), task->bias_k, task->bias_v };
        project(c, h);
        for (int i = 0; i < 3; i++) {
                if (!h->batched)
                        *parts[i] = OP(c, "aten::unsqueeze", *parts[i], value_int(0));
                if (biases[i].kind == VALUE_TENSOR)
                        *parts[i] = with_bias(c, h, *parts[i], biases[i]);
                *parts[i] = split_heads(c, h, *parts[i]);
                if (i > 0 && task->add_zero)
                        *parts[i] = with_zeros(c, h, *parts[i]);
        }
        h->source += (task->bias_k.kind == VALUE_TENSOR) + task->add_zero;
}

// ---- masks ----
Value float_mask(Compose *c, Value mask, Dtype dtype, const char *name)
{
        if (mask.kind == VALUE_NONE)
                return mask;
        const Dtype given = compose_meta(c, mask)->dtype;
        if (!compose_failed(c) && given != DTYPE_BOOL && !dtype_is_float(given))
                compose_check(c,
                              fail(STATUS_DTYPE, "only bool and floating types of %s are supported", name));
        if (given != DTYPE_BOOL)
                return mask;
        return OP(c, "aten::masked_fill.Scalar", OP(c, "aten::zeros_like", mask, value_dtype(dtype)), mask,
                  value_float(-INFINITY));
}

// Keys that were added behind the others are open to all.
static Value widened(Compose *c, Value mask, int64_t by)
{
        if (mask.kind == VALUE_NONE || by == 0)
                return mask;
        return OP(c, "aten::constant_pad_nd", mask, INTS(c, 0, by));
}

static Value heads_mask(Compose *c, const Heads *h, Value mask, int64_t source)
{
        const TensorMeta *meta = compose_meta(c, mask);
        const int64_t heads = h->task->heads;
        if (!compose_failed(c))
                compose_check(c, check_mask(meta, (int64_t[]){ h->batch * heads, h->target, source }));
        if (compose_failed(c) || meta->rank == 2)
                return mask;
        return OP(c, "aten::reshape", mask, INTS(c, h->batch, heads, h->target, source));
}

static Value padding_mask(Compose *c, const Heads *h, Value mask, int64_t source)
{
        if (!h->batched)
                mask = OP(c, "aten::unsqueeze", mask, value_int(0));
        const TensorMeta *meta = compose_meta(c, mask);
        if (!compose_failed(c))
                compose_check(c, check_padding(meta, h->batch, source));
        return OP(c, "aten::reshape", mask, INTS(c, h->batch, 1, 1, source));
}

// Before keys are added: h->source is that of `key`.
static void make_mask(Compose *c, Heads *h)
{
        const MultiHead *task = h->task;
        const Dtype dtype = compose_meta(c, task->query)->dtype;
        const int64_t added = (task->bias_k.kind == VALUE_TENSOR) + task->add_zero;
        Value mask = task->attn_mask, padding = task->key_padding_mask;
        if (task->is_causal && mask.kind == VALUE_NONE)
                compose_check(c, fail(STATUS_VALUE,
                                      "Need attn_mask if specifying the is_causal hint. You may use the "
                                      "Transformer module method `generate_square_subsequent_mask` to create "
                                      "this mask."));
        h->causal = task->is_causal && padding.kind == VALUE_NONE && !task->need_weights;
        if (h->causal)
                mask = value_none();
        if (mask.kind != VALUE_NONE)
                mask = widened(c, heads_mask(c, h, float_mask(c, mask, dtype, "attn_mask"), h->source),
                               added);
        if (padding.kind != VALUE_NONE) {
                padding = float_mask(c, padding, dtype, "key_padding_mask");
                padding = widened(c, padding_mask(c, h, padding, h->source), added);
        }
        h->mask = mask;
        if (padding.kind != VALUE_NONE)
                h->mask = mask.kind == VALUE_NONE ? padding : OP(c, "aten::add.Tensor", mask, padding);
}

// ---- attention ----
// softmax(q k' / sqrt(D) + mask) v, with the weights.
static Value attend(Compose *c, const Heads *h, Value *out_weights)
{
        const MultiHead *task = h->task;
        const double dropout = task->training ? task->dropout : 0;
        *out_weights = value_none();
        if (!task->need_weights)
                return OP(c, "aten::scaled_dot_product_attention", h->q, h->k, h->v, h->mask,
                          value_float(dropout), value_bool(h->causal));
        const double scale = sqrt((double)task->heads / (double)task->embed);
        Value scaled = OP(c, "aten::mul.Scalar", h->q, value_float(scale));
        Value scores = OP(c, "aten::matmul", scaled,
                          OP(c, "aten::transpose.int", h->k, value_int(-2), value_int(-1)));
        if (h->mask.kind != VALUE_NONE)
                scores = OP(c, "aten::add.Tensor", scores, h->mask);
        Value weights = OP(c, "aten::softmax.int", scores, value_int(-1));
        if (dropout > 0)
                weights = OP(c, "aten::dropout", weights, value_float(dropout), value_bool(true));
        *out_weights = weights;
        if (task->average_weights)
                *out_weights = OP(c, "aten::mean.dim", weights, INTS(c, 1));
        if (!h->batched)
                *out_weights = OP(c, "aten::squeeze.dim", *out_weights, value_int(0));
        return OP(c, "aten::matmul", weights, h->v);
}

Value multi_head(Compose *c, const MultiHead *task, Value *out_weights)
{
        const TensorMeta *query = compose_meta(c, task->query), *key = compose_meta(c, task->key),
                         *value = compose_meta(c, task->value);
        Heads h = { .task = task, .batched = query->rank == 3, .mask = value_none() };
        *out_weights = value_none();
        if (!compose_failed(c))
                compose_check(c, check_ranks(task, query, key, value));
        if (compose_failed(c))
                return value_none();
        h.batch_first = task->batch_first || !h.batched;
        h.batch = h.batched ? query->size[h.batch_first ? 0 : 1] : 1;
        h.target = query->size[h.batched && h.batch_first ? 1 : 0];
        h.source = key->size[h.batched && h.batch_first ? 1 : 0];
        compose_check(c, check_sizes(&h, query, key, value));
        make_mask(c, &h);
        make_heads(c, &h);
        Value out = attend(c, &h, out_weights);
        out = OP(c, "aten::permute", out, h.batch_first ? INTS(c, 0, 2, 1, 3) : INTS(c, 2, 0, 1, 3));
        const int64_t sizes[] = { h.batch_first ? h.batch : h.target, h.batch_first ? h.target : h.batch,
                                  task->embed };
        out = OP(c, "aten::reshape", out, compose_ints(c, sizes, 3));
        out = OP(c, "aten::linear", out, task->out_weight, task->out_bias);
        return h.batched ? out : OP(c, "aten::squeeze.dim", out, value_int(0));
}
