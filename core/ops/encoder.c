// SPDX-License-Identifier: Apache-2.0
// encoder.c: the layer of torch.nn.TransformerEncoder in one call, as torch.export(strict=True)
// leaves it, and its attention. Dropped out keys are true in the mask; a row without keys is NaN.
#include <math.h>
#include "core/ops/compose.h"

enum { MASK_SOURCE, MASK_KEYS }; // PyTorch's mask_type: [L, S], [N, S]; 2 is [N, heads, L, S]

typedef struct Encoder {
        Value x, key, value; // [N, L, E]; key and value [N, S, E]
        int64_t n, l, s, embed, heads;
} Encoder;

static Status encoder_init(Compose *c, Value x, const char *heads, Encoder *out)
{
        const TensorMeta *meta = compose_meta(c, x);
        *out = (Encoder){ .x = x,
                          .key = x,
                          .value = x,
                          .embed = compose_int(c, "embed_dim"),
                          .heads = compose_int(c, heads) };
        if (compose_failed(c))
                return c->status;
        if (meta->rank != 3)
                return fail(STATUS_SHAPE, "expected 3-D `query`, got %d-D tensor", meta->rank);
        if (meta->size[2] != out->embed)
                return fail(STATUS_SHAPE, "passed-in embed_dim %ld didn't match last dim of query %ld",
                            (long)out->embed, (long)meta->size[2]);
        if (out->heads <= 0 || out->embed % out->heads != 0)
                return fail(STATUS_VALUE, "`embed_dim` must divide evenly by `num_heads`");
        const Dtype bias = compose_meta(c, NAMED(c, "qkv_bias"))->dtype;
        if (bias != meta->dtype)
                return fail(STATUS_DTYPE, "%s: query is %s, but qkv_bias is %s", c->name,
                            dtype_info[meta->dtype].name, dtype_info[bias].name);
        out->n = meta->size[0];
        out->l = out->s = meta->size[1];
        return STATUS_OK;
}

// The mask as wide as the scores [N, heads, L, S] wants it; true: left out.
static Value wide_mask(Compose *c, const Encoder *e)
{
        Value mask = NAMED(c, "mask");
        if (mask.kind == VALUE_NONE)
                return mask;
        const TensorMeta *meta = compose_meta(c, mask);
        int64_t type = compose_has(c, "mask_type") ? compose_int(c, "mask_type") : -1;
        if (meta->dtype != DTYPE_BOOL)
                compose_check(c, fail(STATUS_UNSUPPORTED, "%s: a mask of %s is not supported; bool masks are",
                                      c->name, dtype_info[meta->dtype].name));
        const int64_t l = e->l, s = e->s, *size = meta->size;
        const bool whole = meta->rank == 4 && size[0] == e->n && size[1] == e->heads && size[2] == l &&
                           size[3] == s; // taken under any type
        const bool fits = type == MASK_SOURCE
                                  ? meta->rank == 2 && size[0] == l && size[1] == s
                                  : type == MASK_KEYS && meta->rank == 2 && size[0] == e->n && size[1] == s;
        if (!fits && !whole)
                compose_check(
                        c, fail(STATUS_SHAPE, "%s: mask and mask_type %ld do not fit", c->name, (long)type));
        return type == MASK_KEYS && !whole ? OP(c, "aten::view", mask, INTS(c, e->n, 1, 1, s)) : mask;
}

// [N, rows, E] to [N, heads, rows, depth].
static Value in_heads(Compose *c, const Encoder *e, Value x, int64_t rows)
{
        x = OP(c, "aten::view", x, INTS(c, e->n, rows, e->heads, e->embed / e->heads));
        return OP(c, "aten::transpose.int", x, value_int(1), value_int(2));
}

// Part i of the projection of `x`: 0 query, scaled, 1 key, 2 value. Half products are rounded
// before the bias is added.
static Value projected(Compose *c, const Encoder *e, Value x, int i)
{
        Value from = value_int(i * e->embed), to = value_int((i + 1) * e->embed), zero = value_int(0);
        Value weight = OP(c, "aten::slice.Tensor", NAMED(c, "qkv_weight"), zero, from, to);
        Value bias = OP(c, "aten::slice.Tensor", NAMED(c, "qkv_bias"), zero, from, to);
        Value product = OP(c, "aten::linear", x, weight, value_none());
        product = OP(c, "aten::add.Tensor", compose_wide(c, product), compose_wide(c, bias));
        if (i == 0)
                product = OP(c, "aten::mul.Scalar", product,
                             value_float(1 / sqrt((double)(e->embed / e->heads))));
        product = compose_cast(c, product, compose_meta(c, x)->dtype);
        return in_heads(c, e, product, i == 0 ? e->l : e->s);
}

// *out_weights: [N, heads, L, S].
static Value attend(Compose *c, const Encoder *e, Value *out_weights)
{
        Value q = projected(c, e, e->x, 0), k = projected(c, e, e->key, 1), v = projected(c, e, e->value, 2);
        Value scores =
                OP(c, "aten::matmul", q, OP(c, "aten::transpose.int", k, value_int(-2), value_int(-1)));
        Value mask = wide_mask(c, e);
        if (mask.kind != VALUE_NONE)
                scores = OP(c, "aten::masked_fill.Scalar", scores, mask, value_float(-INFINITY));
        *out_weights = OP(c, "aten::softmax.int", scores, value_int(-1));
        Value mixed = OP(c, "aten::matmul", *out_weights, v);
        mixed = OP(c, "aten::reshape", OP(c, "aten::transpose.int", mixed, value_int(1), value_int(2)),
                   INTS(c, e->n, e->l, e->embed));
        return OP(c, "aten::linear", mixed, NAMED(c, "proj_weight"), NAMED(c, "proj_bias"));
}

static Status attention_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Encoder e;
        compose_begin(&c, emitter, call);
        Value query = NAMED(&c, "query"), weights;
        TRY(encoder_init(&c, query, "num_head", &e));
        e.key = NAMED(&c, "key");
        e.value = NAMED(&c, "value");
        const TensorMeta *key = compose_meta(&c, e.key), *value = compose_meta(&c, e.value);
        if (key->rank != 3 || !meta_same_shape(key, value) || key->size[0] != e.n || key->size[2] != e.embed)
                return fail(STATUS_SHAPE, "%s: expected `key`/`value` shapes to match", c.name);
        e.s = key->size[1];
        Value pair[] = { attend(&c, &e, &weights), value_none() };
        if (compose_bool(&c, "need_weights"))
                pair[1] = compose_bool(&c, "average_attn_weights")
                                  ? OP(&c, "aten::mean.dim", weights, INTS(&c, 1))
                                  : weights;
        return compose_end(&c, compose_tuple(&c, pair, 2), out);
}

static Value normed(Compose *c, const Encoder *e, Value x, const char *weight, const char *bias)
{
        return OP(c, "aten::layer_norm", x, INTS(c, e->embed), NAMED(c, weight), NAMED(c, bias),
                  NAMED(c, "eps"));
}

static Status layer_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Encoder e;
        compose_begin(&c, emitter, call);
        Value src = NAMED(&c, "src"), weights;
        const bool first = compose_bool(&c, "norm_first");
        TRY(encoder_init(&c, src, "num_heads", &e));
        if (first)
                e.x = e.key = e.value = normed(&c, &e, src, "norm_weight_1", "norm_bias_1");
        Value x = OP(&c, "aten::add.Tensor", attend(&c, &e, &weights), src);
        if (!first)
                x = normed(&c, &e, x, "norm_weight_1", "norm_bias_1");
        Value in = first ? normed(&c, &e, x, "norm_weight_2", "norm_bias_2") : x;
        Value hidden = OP(&c, "aten::linear", in, NAMED(&c, "ffn_weight_1"), NAMED(&c, "ffn_bias_1"));
        hidden = compose_bool(&c, "use_gelu") ? OP(&c, "aten::gelu", hidden) : OP(&c, "aten::relu", hidden);
        hidden = OP(&c, "aten::linear", hidden, NAMED(&c, "ffn_weight_2"), NAMED(&c, "ffn_bias_2"));
        x = OP(&c, "aten::add.Tensor", hidden, x);
        if (!first)
                x = normed(&c, &e, x, "norm_weight_2", "norm_bias_2");
        return compose_end(&c, x, out);
}

const OpDef encoder_ops[] = {
        { "aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int "
          "num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? "
          "mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> "
          "(Tensor, Tensor)",
          0, .expand = attention_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, "
          "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, "
          "Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor "
          "ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? "
          "mask_type=None) -> Tensor",
          0, .expand = layer_expand, .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
};
OP_FILE(encoder_ops);
