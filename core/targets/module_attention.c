// SPDX-License-Identifier: Apache-2.0
// module_attention.c: torch.nn.MultiheadAttention. Rows of masks that leave out every key give what
// PyTorch's path with gradients gives.
#include "core/targets/attention.h"
#include "core/targets/module_table.h"

#include <stdio.h>

enum { QUERY, KEY, VALUE, PADDING, NEED_WEIGHTS, MASK, AVERAGE, CAUSAL }; // of forward

// ---- state ----
enum { IN_WEIGHT, Q_WEIGHT, K_WEIGHT, V_WEIGHT, IN_BIAS, OUT_WEIGHT, OUT_BIAS, BIAS_K, BIAS_V, N_STATE };

static int64_t width(const Value *config, int which)
{
        return python_int(config[config[which].kind == VALUE_NONE ? NN_MHA_EMBED_DIM : which]);
}

static int64_t thrice(int64_t n)
{
        return n < 0 || n > INT64_MAX / 3 ? INT64_MAX : 3 * n; // no size fits either
}

static bool attention_state(const Value *config, uint32_t index, ModuleStateEntry *out)
{
        static const char *const names[] = { "in_proj_weight", "q_proj_weight", "k_proj_weight",
                                             "v_proj_weight",  "in_proj_bias",  "out_proj.weight",
                                             "out_proj.bias",  "bias_k",        "bias_v" };
        const int64_t embed = width(config, NN_MHA_EMBED_DIM), k = width(config, NN_MHA_KDIM),
                      v = width(config, NN_MHA_VDIM);
        const bool packed = k == embed && v == embed, bias = config[NN_MHA_BIAS].b,
                   more = config[NN_MHA_ADD_BIAS_KV].b;
        const ModuleStateEntry entries[] = {
                [IN_WEIGHT] = { .absent = !packed, .rank = 2, .size = { thrice(embed), embed } },
                [Q_WEIGHT] = { .absent = packed, .rank = 2, .size = { embed, embed } },
                [K_WEIGHT] = { .absent = packed, .rank = 2, .size = { embed, k } },
                [V_WEIGHT] = { .absent = packed, .rank = 2, .size = { embed, v } },
                [IN_BIAS] = { .absent = !bias, .rank = 1, .size = { thrice(embed) } },
                [OUT_WEIGHT] = { .rank = 2, .size = { embed, embed } },
                [OUT_BIAS] = { .absent = !bias, .rank = 1, .size = { embed } },
                [BIAS_K] = { .absent = !more, .rank = 3, .size = { 1, 1, embed } },
                [BIAS_V] = { .absent = !more, .rank = 3, .size = { 1, 1, embed } },
        };
        if (index >= N_STATE)
                return false;
        *out = entries[index];
        snprintf(out->name, sizeof(out->name), "%s", names[index]);
        return true;
}

static Status attention_refuse(const ModuleCall *call)
{
        const int64_t embed = python_int(call->config[NN_MHA_EMBED_DIM]),
                      heads = python_int(call->config[NN_MHA_NUM_HEADS]);
        return multi_head_check(embed, heads);
}

static Status attention_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        Compose c;
        const Value *config = call->config, *state = call->state, *args = call->args;
        TRY(attention_refuse(call));
        compose_begin_bare(&c, emitter, "MultiheadAttention");
        const MultiHead task = {
                .embed = python_int(config[NN_MHA_EMBED_DIM]),
                .heads = python_int(config[NN_MHA_NUM_HEADS]),
                .query = args[QUERY],
                .key = args[KEY],
                .value = args[VALUE],
                .batch_first = config[NN_MHA_BATCH_FIRST].b,
                .in_weight = state[IN_WEIGHT],
                .in_bias = state[IN_BIAS],
                .q_weight = state[Q_WEIGHT],
                .k_weight = state[K_WEIGHT],
                .v_weight = state[V_WEIGHT],
                .bias_k = state[BIAS_K],
                .bias_v = state[BIAS_V],
                .out_weight = state[OUT_WEIGHT],
                .out_bias = state[OUT_BIAS],
                .key_padding_mask = args[PADDING],
                .attn_mask = args[MASK],
                .is_causal = args[CAUSAL].b,
                .add_zero = config[NN_MHA_ADD_ZERO_ATTN].b,
                .need_weights = args[NEED_WEIGHTS].b,
                .average_weights = args[AVERAGE].b,
                .training = call->module->training,
                .dropout = python_float(config[NN_MHA_DROPOUT]),
        };
        Value results[2];
        results[0] = multi_head(&c, &task, &results[1]);
        return compose_end(&c, compose_tuple(&c, results, 2), out);
}

static const ModuleClass rows[] = {
        { "torch.nn.MultiheadAttention",
          "nn::MultiheadAttention(int embed_dim, int num_heads, float dropout=0.0, bool bias=True, bool "
          "add_bias_kv=False, bool add_zero_attn=False, int? kdim=None, int? vdim=None, bool "
          "batch_first=False) -> ()",
          "",
          "nn::forward(Tensor query, Tensor key, Tensor value, Tensor? key_padding_mask=None, bool "
          "need_weights=True, Tensor? attn_mask=None, bool average_attn_weights=True, bool is_causal=False) "
          "-> Any",
          .run = attention_run, .refuse = attention_refuse,
          .needs = "aten::scaled_dot_product_attention aten::softmax", .state_at = attention_state },
};
const ModuleTable attention_classes = MODULE_TABLE(rows);
