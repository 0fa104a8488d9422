// SPDX-License-Identifier: Apache-2.0
// module_transformer.c: torch.nn.TransformerEncoderLayer and DecoderLayer, stacks of them, and
// torch.nn.Transformer. Results are those of PyTorch in eval mode without gradients: an encoder
// whose layers PyTorch can run on nested tensors gives zeros where src_key_padding_mask leaves out
// the end of a sequence.
#include "core/targets/attention.h"
#include "core/targets/module_table.h"

#include <stdio.h>
#include <string.h>

// Of the state of both layers; a decoder's goes on.
enum {
        SELF_ATTN,
        LINEAR1 = SELF_ATTN + 4,
        LINEAR2 = LINEAR1 + 2,
        NORM1 = LINEAR2 + 2,
        NORM2 = NORM1 + 2,
        NORM3 = NORM2 + 2,
        MULTIHEAD_ATTN = NORM3 + 2
};
enum { ACTIVATION }; // the only child of a layer

typedef struct Layer {
        Compose c;
        const ModuleCall *call;
        double dropout; // 0 but for training
        bool norm_first;
} Layer;

static void layer_begin(Layer *layer, Emitter *emitter, const ModuleCall *call)
{
        compose_begin_bare(&layer->c, emitter, call->module->type);
        layer->call = call;
        layer->dropout = call->module->training ? python_float(call->config[NN_LAYER_DROPOUT]) : 0;
        layer->norm_first = call->config[NN_LAYER_NORM_FIRST].b;
}

// ---- parts of a layer ----
static Value called(Compose *c, const Module *module, const Value *args, uint32_t n)
{
        Value out = value_none();
        const CallArgs call = { .args = args, .n_args = n };
        if (!compose_failed(c))
                compose_check(c, module_call(c->emitter, module, &call, &out));
        return compose_failed(c) ? value_none() : compose_keep(c, out);
}

static Value dropped(Layer *layer, Value x)
{
        if (layer->dropout <= 0)
                return x;
        return OP(&layer->c, "aten::dropout", x, value_float(layer->dropout), value_bool(true));
}

static Value added(Layer *layer, Value x, Value block)
{
        return OP(&layer->c, "aten::add.Tensor", x, dropped(layer, block));
}

static Value normed(Layer *layer, Value x, int norm)
{
        const Value *config = layer->call->config;
        return OP(&layer->c, "aten::layer_norm", x, INTS(&layer->c, python_int(config[NN_LAYER_D_MODEL])),
                  layer->call->state[norm], layer->call->state[norm + 1], config[NN_LAYER_EPS]);
}

static Value linear(Layer *layer, Value x, int weights)
{
        return OP(&layer->c, "aten::linear", x, layer->call->state[weights], layer->call->state[weights + 1]);
}

static Status activation_target(const ModuleCall *call, const Target **out_target)
{
        char name[96];
        const char *activation = call->config[NN_LAYER_ACTIVATION].str->text;
        snprintf(name, sizeof(name), "torch.nn.functional.%.60s", activation);
        *out_target = target_function(name);
        if (*out_target != NULL)
                return STATUS_OK;
        snprintf(name, sizeof(name), "torch.%.60s", activation);
        *out_target = target_function(name);
        return *out_target != NULL ? STATUS_OK
                                   : fail(STATUS_UNSUPPORTED,
                                          "activation should be a function of torch.nn.functional, or "
                                          "the module \"activation\" under it, not %.60s",
                                          activation);
}

static Value activated(Layer *layer, Value x)
{
        const Target *target;
        Value out = value_none();
        const CallArgs call = { .args = &x, .n_args = 1 };
        if (layer->call->children[ACTIVATION] != NULL)
                return called(&layer->c, layer->call->children[ACTIVATION], &x, 1);
        compose_check(&layer->c, activation_target(layer->call, &target));
        if (!compose_failed(&layer->c))
                compose_check(&layer->c, target_call(layer->c.emitter, target, &call, &out));
        return compose_failed(&layer->c) ? value_none() : compose_keep(&layer->c, out);
}

static Value feed_forward(Layer *layer, Value x)
{
        return linear(layer, dropped(layer, activated(layer, linear(layer, x, LINEAR1))), LINEAR2);
}

typedef struct Masks {
        Value mask, padding, causal; // causal: a bool
} Masks;

static Value attended(Layer *layer, Value x, Value memory, const Masks *masks, int weights)
{
        const Value *config = layer->call->config, *state = layer->call->state;
        enum { IN_WEIGHT, IN_BIAS, OUT_WEIGHT, OUT_BIAS };
        const MultiHead task = {
                .embed = python_int(config[NN_LAYER_D_MODEL]),
                .heads = python_int(config[NN_LAYER_NHEAD]),
                .query = x,
                .key = memory,
                .value = memory,
                .batch_first = config[NN_LAYER_BATCH_FIRST].b,
                .in_weight = state[weights + IN_WEIGHT],
                .in_bias = state[weights + IN_BIAS],
                .out_weight = state[weights + OUT_WEIGHT],
                .out_bias = state[weights + OUT_BIAS],
                .key_padding_mask = masks->padding,
                .attn_mask = masks->mask,
                .is_causal = masks->causal.b,
                .training = layer->call->module->training,
                .dropout = layer->dropout,
        };
        Value none;
        return multi_head(&layer->c, &task, &none);
}

// x + block(norm(x)), or norm(x + block(x)).
static Value attention_step(Layer *layer, Value x, const Value *memory, const Masks *masks, int weights,
                            int norm)
{
        Value in = layer->norm_first ? normed(layer, x, norm) : x;
        x = added(layer, x, attended(layer, in, memory == NULL ? in : *memory, masks, weights));
        return layer->norm_first ? x : normed(layer, x, norm);
}

static Value feed_forward_step(Layer *layer, Value x, int norm)
{
        Value in = layer->norm_first ? normed(layer, x, norm) : x;
        x = added(layer, x, feed_forward(layer, in));
        return layer->norm_first ? x : normed(layer, x, norm);
}

// ---- layers ----
static Status layer_refuse(const ModuleCall *call)
{
        const Target *target;
        TRY(multi_head_check(python_int(call->config[NN_LAYER_D_MODEL]),
                             python_int(call->config[NN_LAYER_NHEAD])));
        return call->children[ACTIVATION] != NULL ? STATUS_OK : activation_target(call, &target);
}

static Status encoder_layer_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        enum { SRC, SRC_MASK, SRC_PADDING, CAUSAL }; // of forward
        Layer layer;
        TRY(layer_refuse(call));
        layer_begin(&layer, emitter, call);
        const Masks masks = { call->args[SRC_MASK], call->args[SRC_PADDING], call->args[CAUSAL] };
        Value x = attention_step(&layer, call->args[SRC], NULL, &masks, SELF_ATTN, NORM1);
        return compose_end(&layer.c, feed_forward_step(&layer, x, NORM2), out);
}

// Of forward of decoders and their layers.
enum {
        TGT,
        MEMORY,
        TGT_MASK,
        MEMORY_MASK,
        TGT_PADDING,
        MEMORY_PADDING,
        TGT_CAUSAL,
        MEMORY_CAUSAL,
        N_DECODER
};

static Status decoder_layer_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        Layer layer;
        const Value *args = call->args;
        TRY(layer_refuse(call));
        layer_begin(&layer, emitter, call);
        const Masks own = { args[TGT_MASK], args[TGT_PADDING], args[TGT_CAUSAL] },
                    cross = { args[MEMORY_MASK], args[MEMORY_PADDING], args[MEMORY_CAUSAL] };
        Value x = attention_step(&layer, args[TGT], NULL, &own, SELF_ATTN, NORM1);
        x = attention_step(&layer, x, &args[MEMORY], &cross, MULTIHEAD_ATTN, NORM2);
        return compose_end(&layer.c, feed_forward_step(&layer, x, NORM3), out);
}

// ---- stacks ----
// Whether a stack's is_causal is said. Without it PyTorch looks whether the mask is causal, which
// changes no result.
static Value said_causal(Value causal)
{
        return value_bool(causal.kind == VALUE_BOOL && causal.b);
}

// The children are the layers, and the norm at the end.
static Value normed_at_end(Compose *c, const ModuleCall *call, Value x)
{
        const Module *norm = call->children[call->n_children - 1];
        return norm == NULL ? x : called(c, norm, &x, 1);
}

// Whether PyTorch would run the layers on nested tensors.
static bool may_nest(const ModuleCall *call)
{
        const Module *layer = call->children[0];
        const ResolvedModule *resolved = layer->resolved;
        const Value *config = resolved->config;
        const Module *activation = resolved->children[ACTIVATION];
        const char *function = config[NN_LAYER_ACTIVATION].str->text,
                   *class = activation == NULL || activation->type == NULL ? "" : activation->type;
        bool known = activation == NULL
                             ? strcmp(function, "relu") == 0 || strcmp(function, "gelu") == 0
                             : strcmp(class, "torch.nn.ReLU") == 0 || strcmp(class, "torch.nn.GELU") == 0;
        return call->config[NN_ENCODER_NESTED].b && !layer->training && !config[NN_LAYER_NORM_FIRST].b &&
               config[NN_LAYER_BATCH_FIRST].b && config[NN_LAYER_BIAS].b && known &&
               python_int(config[NN_LAYER_NHEAD]) % 2 == 0;
}

// Zeros at the masked places, if they are the ends of their sequences.
static Value padded(Compose *c, Value x, Value padding, Dtype dtype)
{
        padding = float_mask(c, padding, dtype, "src_key_padding_mask");
        Value left_out = OP(c, "aten::ne.Scalar", padding, value_int(0));
        const TensorMeta *meta = compose_meta(c, left_out);
        const int64_t rest = meta->rank == 2 ? MAX(meta->size[1] - 1, 0) : 0;
        Value before = OP(c, "aten::narrow", left_out, value_int(1), value_int(0), value_int(rest));
        Value after = OP(c, "aten::narrow", left_out, value_int(1),
                         value_int(meta->rank == 2 ? meta->size[1] - rest : 0), value_int(rest));
        Value aligned = OP(c, "aten::all", OP(c, "aten::le.Tensor", before, after));
        Value zeroed = OP(c, "aten::logical_and", OP(c, "aten::unsqueeze", left_out, value_int(-1)), aligned);
        return OP(c, "aten::masked_fill.Scalar", x, zeroed, value_int(0));
}

static Status encoder_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        enum { SRC, MASK, PADDING, CAUSAL }; // of forward, also of a layer's
        Compose c;
        const Value *args = call->args;
        compose_begin_bare(&c, emitter, "TransformerEncoder");
        const TensorMeta *src = compose_meta(&c, args[SRC]);
        Value x = args[SRC];
        for (uint32_t i = 0; i + 1 < call->n_children; i++)
                x = called(&c, call->children[i],
                           (Value[]){ x, args[MASK], args[PADDING], said_causal(args[CAUSAL]) }, 4);
        if (args[PADDING].kind == VALUE_TENSOR && args[MASK].kind == VALUE_NONE && src->rank == 3 &&
            may_nest(call))
                x = padded(&c, x, args[PADDING], src->dtype);
        return compose_end(&c, normed_at_end(&c, call, x), out);
}

static Status decoder_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        Compose c;
        Value args[N_DECODER];
        compose_begin_bare(&c, emitter, "TransformerDecoder");
        memcpy(args, call->args, sizeof(args));
        args[TGT_CAUSAL] = said_causal(args[TGT_CAUSAL]);
        for (uint32_t i = 0; i + 1 < call->n_children; i++)
                args[TGT] = called(&c, call->children[i], args, N_DECODER);
        return compose_end(&c, normed_at_end(&c, call, args[TGT]), out);
}

// ---- both ----
static Status check_transformer(const ModuleCall *call, const TensorMeta *src, const TensorMeta *tgt)
{
        const int64_t width = python_int(call->config[NN_TRANSFORMER_D_MODEL]);
        const int batch = call->config[NN_TRANSFORMER_BATCH_FIRST].b ? 0 : 1;
        if (src->rank < 2 || tgt->rank < 2)
                return fail(STATUS_SHAPE, "src and tgt have 2 or 3 dimensions, got %d and %d", src->rank,
                            tgt->rank);
        if (src->rank == 3 && src->size[batch] != tgt->size[batch])
                return fail(STATUS_SHAPE, "the batch number of src and tgt must be equal");
        if (src->size[src->rank - 1] != width || tgt->size[tgt->rank - 1] != width)
                return fail(STATUS_SHAPE, "the feature number of src and tgt must be equal to d_model");
        return STATUS_OK;
}

static Status transformer_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        // of forward
        enum {
                SRC,
                TO,
                SRC_MASK,
                TO_MASK,
                MEM_MASK,
                SRC_PADDING,
                TO_PADDING,
                MEM_PADDING,
                SRC_CAUSAL,
                TO_CAUSAL,
                MEM_CAUSAL
        };
        enum { ENCODER, DECODER }; // of the children
        Compose c;
        const Value *args = call->args;
        compose_begin_bare(&c, emitter, "Transformer");
        const TensorMeta *src = compose_meta(&c, args[SRC]), *tgt = compose_meta(&c, args[TO]);
        if (!compose_failed(&c))
                compose_check(&c, check_transformer(call, src, tgt));
        Value memory = called(&c, call->children[ENCODER],
                              (Value[]){ args[SRC], args[SRC_MASK], args[SRC_PADDING], args[SRC_CAUSAL] }, 4);
        const Value given[N_DECODER] = { args[TO],        memory,           args[TO_MASK],
                                         args[MEM_MASK],  args[TO_PADDING], args[MEM_PADDING],
                                         args[TO_CAUSAL], args[MEM_CAUSAL] };
        return compose_end(&c, called(&c, call->children[DECODER], given, N_DECODER), out);
}

#define LAYER                                                                                                \
        "(int d_model, int nhead, int dim_feedforward=2048, float dropout=0.1, str activation='relu', "      \
        "float "                                                                                             \
        "layer_norm_eps=1e-05, bool batch_first=False, bool norm_first=False, bool bias=True) -> ()"
#define LAYER_STATE                                                                                          \
        "self_attn.in_proj_weight self_attn.in_proj_bias?bias self_attn.out_proj.weight "                    \
        "self_attn.out_proj.bias?bias linear1.weight linear1.bias?bias linear2.weight linear2.bias?bias "    \
        "norm1.weight norm1.bias?bias norm2.weight norm2.bias?bias"
#define DECODER_STATE                                                                                        \
        " norm3.weight norm3.bias?bias multihead_attn.in_proj_weight multihead_attn.in_proj_bias?bias "      \
        "multihead_attn.out_proj.weight multihead_attn.out_proj.bias?bias"
#define LAYER_SHAPES                                                                                         \
        "- - d_model,d_model d_model dim_feedforward,d_model dim_feedforward d_model,dim_feedforward "       \
        "d_model "                                                                                           \
        "d_model d_model d_model d_model"
#define DECODER_FORWARD(causal)                                                                              \
        "nn::forward(Tensor tgt, Tensor memory, Tensor? tgt_mask=None, Tensor? memory_mask=None, Tensor? "   \
        "tgt_key_padding_mask=None, Tensor? memory_key_padding_mask=None, " causal ", bool "                 \
        "memory_is_causal=False) -> Tensor"
#define NEEDS "aten::scaled_dot_product_attention aten::layer_norm"
static const ModuleClass rows[] = {
        { "torch.nn.TransformerEncoderLayer", "nn::TransformerEncoderLayer" LAYER, LAYER_STATE,
          "nn::forward(Tensor src, Tensor? src_mask=None, Tensor? src_key_padding_mask=None, bool "
          "is_causal=False) -> Tensor",
          .run = encoder_layer_run, .refuse = layer_refuse, .needs = NEEDS, .shapes = LAYER_SHAPES,
          .children = "activation?" },
        { "torch.nn.TransformerDecoderLayer", "nn::TransformerDecoderLayer" LAYER, LAYER_STATE DECODER_STATE,
          DECODER_FORWARD("bool tgt_is_causal=False"), .run = decoder_layer_run, .refuse = layer_refuse,
          .needs = NEEDS, .shapes = LAYER_SHAPES " d_model d_model - - d_model,d_model d_model",
          .children = "activation?" },
        { "torch.nn.TransformerEncoder", "nn::TransformerEncoder(bool enable_nested_tensor=True) -> ()", "",
          "nn::forward(Tensor src, Tensor? mask=None, Tensor? src_key_padding_mask=None, bool? "
          "is_causal=None) -> Tensor",
          .run = encoder_run, .needs = NEEDS, .children = "layers.*:torch.nn.TransformerEncoderLayer norm?" },
        { "torch.nn.TransformerDecoder", "nn::TransformerDecoder() -> ()", "",
          DECODER_FORWARD("bool? tgt_is_causal=None"), .run = decoder_run, .needs = NEEDS,
          .children = "layers.*:torch.nn.TransformerDecoderLayer norm?" },
        { "torch.nn.Transformer", "nn::Transformer(int d_model=512, bool batch_first=False) -> ()", "",
          "nn::forward(Tensor src, Tensor tgt, Tensor? src_mask=None, Tensor? tgt_mask=None, Tensor? "
          "memory_mask=None, Tensor? src_key_padding_mask=None, Tensor? tgt_key_padding_mask=None, Tensor? "
          "memory_key_padding_mask=None, bool? src_is_causal=None, bool? tgt_is_causal=None, bool "
          "memory_is_causal=False) -> Tensor",
          .run = transformer_run, .needs = NEEDS,
          .children = "encoder:torch.nn.TransformerEncoder decoder:torch.nn.TransformerDecoder" },
};
const ModuleTable transformer_classes = MODULE_TABLE(rows);
