// SPDX-License-Identifier: Apache-2.0
// layer_rows.c: functions of torch.nn.functional that layers with weights call: attention with
// several heads, and bags of embeddings.
#include <string.h>
#include "core/targets/attention.h"
#include "core/targets/refuse.h"

// ---- attention ----
static Status attention_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const bool apart = compose_bool(&c, "use_separate_proj_weight");
        const MultiHead task = {
                .embed = compose_int(&c, "embed_dim_to_check"),
                .heads = compose_int(&c, "num_heads"),
                .query = NAMED(&c, "query"),
                .key = NAMED(&c, "key"),
                .value = NAMED(&c, "value"),
                .in_weight = apart ? value_none() : NAMED(&c, "in_proj_weight"),
                .in_bias = NAMED(&c, "in_proj_bias"),
                .q_weight = NAMED(&c, "q_proj_weight"),
                .k_weight = NAMED(&c, "k_proj_weight"),
                .v_weight = NAMED(&c, "v_proj_weight"),
                .bias_k = NAMED(&c, "bias_k"),
                .bias_v = NAMED(&c, "bias_v"),
                .out_weight = NAMED(&c, "out_proj_weight"),
                .out_bias = NAMED(&c, "out_proj_bias"),
                .key_padding_mask = NAMED(&c, "key_padding_mask"),
                .attn_mask = NAMED(&c, "attn_mask"),
                .is_causal = compose_bool(&c, "is_causal"),
                .add_zero = compose_bool(&c, "add_zero_attn"),
                .need_weights = compose_bool(&c, "need_weights"),
                .average_weights = compose_bool(&c, "average_attn_weights"),
                .training = compose_bool(&c, "training"),
                .dropout = compose_double(&c, "dropout_p"),
        };
        Value results[2] = { value_none(), value_none() };
        if (compose_has(&c, "static_k") || compose_has(&c, "static_v"))
                compose_check(&c, fail(STATUS_UNSUPPORTED, "static_k and static_v are not supported"));
        compose_check(&c, multi_head_check(task.embed, task.heads));
        if (!apart && task.in_weight.kind == VALUE_NONE)
                compose_check(&c, fail(STATUS_VALUE,
                                       "use_separate_proj_weight is False but in_proj_weight is None"));
        if (!compose_failed(&c))
                results[0] = multi_head(&c, &task, &results[1]);
        return compose_end(&c, compose_tuple(&c, results, 2), out);
}

// ---- bags ----
typedef struct Bags {
        Value input, offsets, weights;
        bool last;
} Bags;

// Rows of a matrix are bags of one size.
static void flatten_bags(Compose *c, const TensorMeta *meta, Bags *bags)
{
        if (bags->offsets.kind != VALUE_NONE)
                compose_check(c, fail(STATUS_VALUE,
                                      "if input is 2D, then offsets has to be None, as input is treated is a "
                                      "mini-batch of fixed length sequences. However, found offsets of type "
                                      "<class 'torch.Tensor'>"));
        if (meta->size[1] == 0)
                compose_check(c, fail(STATUS_VALUE, "step must be nonzero"));
        bags->offsets = OP(c, "aten::arange.start_step", value_int(0), value_int(meta_numel(meta)),
                           value_int(meta->size[1]), value_dtype(meta->dtype));
        bags->input = OP(c, "aten::reshape", bags->input, INTS(c, -1));
        if (bags->weights.kind != VALUE_NONE)
                bags->weights = OP(c, "aten::reshape", bags->weights, INTS(c, -1));
        bags->last = false;
}

static void check_bags(Compose *c, const TensorMeta *meta, const Bags *bags)
{
        char text[160], other[160];
        const int rank = compose_meta(c, NAMED(c, "weight"))->rank;
        if (compose_failed(c))
                return;
        if (rank != 2)
                compose_check(c, fail(STATUS_VALUE,
                                      "weight has to be a 2D Tensor, but got Tensor of dimension %d", rank));
        else if (meta->rank != 1 && meta->rank != 2)
                compose_check(c, fail(STATUS_VALUE,
                                      "input has to be 1D or 2D Tensor, but got Tensor of dimension %d",
                                      meta->rank));
        else if (meta->rank == 1 && bags->offsets.kind == VALUE_NONE)
                compose_check(c, fail(STATUS_VALUE, "offsets has to be a 1D Tensor but got None"));
        else if (bags->weights.kind == VALUE_TENSOR && !meta_same_shape(meta, &bags->weights.tensor->meta))
                compose_check(
                        c, fail(STATUS_VALUE,
                                "embedding_bag: If per_sample_weights (torch.Size(%s)) is not None, then it "
                                "must have the same shape as the input (torch.Size(%s))",
                                shape_text(bags->weights.tensor->meta.rank, bags->weights.tensor->meta.size,
                                           text, sizeof(text)),
                                shape_text(meta->rank, meta->size, other, sizeof(other))));
}

static Status embedding_bag_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        static const char *const modes[] = { "sum", "mean", "max" };
        Compose c;
        compose_begin(&c, emitter, call);
        int mode = 0;
        while (mode < 3 && strcmp(modes[mode], NAMED(&c, "mode").str->text) != 0)
                mode++;
        if (mode == 3)
                compose_check(&c, fail(STATUS_VALUE, "mode has to be one of sum, mean or max"));
        Bags bags = { NAMED(&c, "input"), NAMED(&c, "offsets"), NAMED(&c, "per_sample_weights"),
                      compose_bool(&c, "include_last_offset") };
        const TensorMeta *meta = compose_meta(&c, bags.input);
        check_bags(&c, meta, &bags);
        if (!compose_failed(&c) && meta->rank == 2)
                flatten_bags(&c, meta, &bags);
        Value weight = NAMED(&c, "weight");
        if (compose_has(&c, "max_norm"))
                OP(&c, "aten::embedding_renorm_", OP(&c, "aten::detach", weight), bags.input,
                   NAMED(&c, "max_norm"), NAMED(&c, "norm_type"));
        Value all = OP(&c, "aten::embedding_bag.padding_idx", weight, bags.input, bags.offsets,
                       value_bool(false), value_int(mode), value_bool(false), bags.weights,
                       value_bool(bags.last), NAMED(&c, "padding_idx"));
        return compose_end(&c, compose_item(&c, all, 0), out);
}

static const PyRow rows[] = {
        { "F.multi_head_attention_forward",
          "py::multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int embed_dim_to_check, "
          "int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, bool "
          "add_zero_attn, float dropout_p, Tensor out_proj_weight, Tensor? out_proj_bias, bool "
          "training=True, "
          "Tensor? key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None, bool "
          "use_separate_proj_weight=False, Tensor? q_proj_weight=None, Tensor? k_proj_weight=None, Tensor? "
          "v_proj_weight=None, Tensor? static_k=None, Tensor? static_v=None, bool average_attn_weights=True, "
          "bool is_causal=False) -> Any",
          .expand = attention_expand, .needs = "aten::scaled_dot_product_attention aten::softmax" },
        { "F.grouped_mm",
          "py::grouped_mm(Tensor mat_a, Tensor mat_b, *, Tensor? offs=None, Tensor? bias=None, ScalarType? "
          "out_dtype=None) -> Tensor",
          .emits = "aten::_grouped_mm a0 a1 a2 a3 a4" },
        { "F.embedding_bag",
          "py::embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float "
          "norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? "
          "per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
          .expand = embedding_bag_expand,
          .needs = "aten::embedding_bag.padding_idx aten::arange aten::embedding_renorm" },
};
const PyTable py_layer_rows = PY_TABLE(rows);
