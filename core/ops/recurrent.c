// SPDX-License-Identifier: Apache-2.0
// recurrent.c: LSTM, GRU and simple recurrent networks: per layer and direction one product for the
// inputs of all steps, then fxserve::recurrent_steps.
#include "core/kernels/dense.h"
#include "core/kernels/numeric_policy.h"
#include "core/kernels/product/recurrent.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"

// ---- the steps of one layer in one direction ----
static Status steps_infer(OpCall *call)
{
        const TensorMeta *gates = arg_meta(call, SELF), *hidden = arg_meta(call, STEPS_HIDDEN);
        TensorMeta meta;
        meta_init(&meta, gates->dtype, 3, (int64_t[]){ gates->size[0], gates->size[1], hidden->size[1] });
        TRY(out_fresh(call, 0, &meta));
        meta_init(&meta, gates->dtype, 2, (int64_t[]){ gates->size[1], hidden->size[1] });
        TRY(out_fresh(call, 1, &meta));
        if (arg_is_none(call, STEPS_CELL))
                return out_undefined(call, 2);
        meta_init(&meta, gates->dtype, 2, (int64_t[]){ gates->size[1], arg_meta(call, STEPS_CELL)->size[1] });
        return out_fresh(call, 2, &meta);
}

enum { N_INPUTS = 6, WEIGHT_OPERAND = 3, BIAS_OPERAND = 4 };

// What a program holds of the operands: the weight as recurrent_pack makes it, or the weight and
// the bias as recurrent_narrow_new does. NULL: they are operands.
typedef struct Held {
        const void *panels;
        const NarrowMatmul *narrow;
} Held;

static Status run_steps(const OpRun *run, const Held *held)
{
        const OpCall *call = run->call;
        Dtype as = dtype_compute(run->in_meta[0]->dtype);
        Dense in[N_INPUTS] = { 0 };
        DenseOut out[3] = { 0 };
        int64_t kind;
        Status status = arg_int(call, STEPS_KIND, &kind);
        for (uint32_t i = 0; i < N_INPUTS && status == STATUS_OK; i++) {
                bool is_held = (i == WEIGHT_OPERAND && (held->panels != NULL || held->narrow != NULL)) ||
                               (i == BIAS_OPERAND && held->narrow != NULL);
                if (run->in_meta[i] != NULL && !is_held)
                        status = dense_init(&in[i], run->ctx, run->in[i], run->in_meta[i], as);
        }
        for (uint32_t i = 0; i < 3 && status == STATUS_OK; i++) {
                if (run->out_meta[i] != NULL)
                        status = dense_out_init(&out[i], run->ctx, run->out[i], run->out_meta[i], as);
        }
        const TensorMeta *gates = run->in_meta[0];
        Recurrent task = { .kind = (RecurrentKind)kind, // checked when the call was made
                           .dtype = as,
                           .reverse = arg_bool(call, STEPS_REVERSE, false),
                           .steps = gates->size[0],
                           .batch = gates->size[1],
                           .cells = gates->size[2] / recurrent_gates((RecurrentKind)kind),
                           .states = run->in_meta[1]->size[1],
                           .gates = in[0].data,
                           .hidden = in[1].data,
                           .cell = in[2].data,
                           .weight = in[WEIGHT_OPERAND].data,
                           .packed = held->panels,
                           .narrow = held->narrow,
                           .narrow_scratch = run->scratch,
                           .bias = in[BIAS_OPERAND].data,
                           .projection = in[5].data,
                           .out = out[0].data,
                           .last_hidden = out[1].data,
                           .last_cell = out[2].data };
        if (status == STATUS_OK)
                status = recurrent_run(run->ctx, &task);
        for (uint32_t i = 0; i < 3; i++) {
                if (status == STATUS_OK && out[i].data != NULL)
                        status = dense_out_store(&out[i]);
                dense_out_deinit(&out[i]);
        }
        for (uint32_t i = 0; i < N_INPUTS; i++)
                dense_deinit(&in[i]);
        return status;
}

static Status steps_run(const OpRun *run)
{
        return run_steps(run, &(Held){ 0 });
}

static Status packed_steps_run(const OpRun *run)
{
        const Storage *panels = run->state;
        return run_steps(run, &(Held){ .panels = panels->data });
}

static Status narrow_steps_run(const OpRun *run)
{
        return run_steps(run, &(Held){ .narrow = run->state });
}

static void free_panels(void *impl)
{
        storage_unref(impl);
}

static void free_narrow(void *impl)
{
        narrow_matmul_free(impl);
}

// Contiguous bytes that are known now, of a dtype that is computed in; else NULL.
static const Tensor *held_operand(const OpCall *call, int index)
{
        const Tensor *tensor;
        if (arg_data(call, index, &tensor) != STATUS_OK || tensor == NULL ||
            !meta_is_contiguous(&tensor->meta) || meta_numel(&tensor->meta) == 0 ||
            dtype_compute(tensor->meta.dtype) != tensor->meta.dtype)
                return NULL;
        return tensor;
}

// With less precision states and weights are bfloat16, where the CPU multiplies that: integers
// would need a scale of each state's row in every step.
static Status pack_narrow(const OpCall *call, const PackContext *context, const RecurrentWeight *weight,
                          Packed *out_packed)
{
        bool has_bias = arg_meta(call, STEPS_BIAS) != NULL;
        const Tensor *bias = has_bias ? held_operand(call, STEPS_BIAS) : NULL;
        const RecurrentRows rows = { arg_meta(call, SELF)->size[1], context->n_threads };
        NarrowMatmul *narrow;
        if (has_bias && bias == NULL)
                return STATUS_OK;
        TRY(recurrent_narrow_new(weight, has_bias ? tensor_data(bias) : NULL, &rows, &narrow));
        if (narrow != NULL)
                *out_packed =
                        (Packed){ .run = narrow_steps_run,
                                  .impl = narrow,
                                  .free_impl = free_narrow,
                                  .kernel = "bf16:recurrent",
                                  .scratch_bytes = narrow_matmul_scratch(narrow),
                                  .baked = 1u << WEIGHT_OPERAND | (has_bias ? 1u << BIAS_OPERAND : 0u) };
        return STATUS_OK;
}

static Status steps_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        const Tensor *weight = held_operand(call, STEPS_WEIGHT);
        Storage *panels;
        if (weight == NULL)
                return STATUS_OK;
        const RecurrentWeight task = {
                .dtype = weight->meta.dtype,
                .n = weight->meta.size[0],
                .k = weight->meta.size[1],
                .data = tensor_data(weight),
                .share = { .cache = context->cache, .storage = weight->storage, .poll = context->poll }
        };
        if (context->precision != PRECISION_F32)
                TRY(pack_narrow(call, context, &task, out_packed));
        if (out_packed->run != NULL)
                return STATUS_OK;
        TRY(recurrent_pack(&task, &panels));
        *out_packed = (Packed){ .run = packed_steps_run,
                                .impl = panels,
                                .free_impl = free_panels,
                                .kernel = "recurrent:packed",
                                .baked = 1u << WEIGHT_OPERAND };
        return STATUS_OK;
}

static Cost steps_cost(const OpCall *call)
{
        const TensorMeta *gates = arg_meta(call, SELF), *hidden = arg_meta(call, STEPS_HIDDEN);
        int64_t n = meta_numel(gates);
        return (Cost){ .flops = saturating_product(2 * hidden->size[1] + 8, n),
                       .bytes = saturating_product(2 * dtype_info[gates->dtype].bytes, n) };
}

// ---- layers ----
typedef struct Layer {
        RecurrentKind kind;
        Value w_ih, w_hh, b_ih, b_hh, w_hr; // None where there is none
} Layer;
typedef struct States {
        Value out, hidden, cell; // cell: LSTM only
} States;

// Shapes of a layer against its input [steps, batch, features] and its states [batch, ...].
static Status check_layer(const Layer *layer, const TensorMeta *input, Value hidden, Value cell)
{
        const Value tensors[] = { layer->w_ih, layer->w_hh, hidden };
        for (int i = 0; i < 3; i++) {
                if (tensors[i].kind != VALUE_TENSOR || tensors[i].tensor->meta.rank != 2)
                        return fail(STATUS_SHAPE, "recurrent network: weights and states are matrices");
        }
        const TensorMeta *w_ih = &layer->w_ih.tensor->meta, *w_hh = &layer->w_hh.tensor->meta,
                         *h = &hidden.tensor->meta;
        int gates = recurrent_gates(layer->kind);
        int64_t n = w_ih->size[0];
        bool projected = layer->w_hr.kind == VALUE_TENSOR;
        if (n % gates != 0 || w_hh->size[0] != n || w_hh->size[1] != h->size[1] ||
            w_ih->size[1] != input->size[2] || h->size[0] != input->size[1])
                return fail(STATUS_SHAPE,
                            "recurrent network: an input of %ld features and a state of %ld do not fit "
                            "weights of "
                            "[%ld, %ld] and [%ld, %ld]",
                            (long)input->size[2], (long)h->size[1], (long)n, (long)w_ih->size[1],
                            (long)w_hh->size[0], (long)w_hh->size[1]);
        if (!projected && h->size[1] != n / gates)
                return fail(STATUS_SHAPE, "Expected hidden size %ld, got %ld", (long)(n / gates),
                            (long)h->size[1]);
        if (projected &&
            (layer->w_hr.tensor->meta.rank != 2 || layer->w_hr.tensor->meta.size[0] != h->size[1] ||
             layer->w_hr.tensor->meta.size[1] != n / gates))
                return fail(STATUS_SHAPE, "recurrent network: the projection does not fit the cells");
        if (cell.kind == VALUE_TENSOR &&
            (cell.tensor->meta.rank != 2 || cell.tensor->meta.size[0] != input->size[1] ||
             cell.tensor->meta.size[1] != n / gates))
                return fail(STATUS_SHAPE, "Expected a cell state of [%ld, %ld]", (long)input->size[1],
                            (long)(n / gates));
        for (int i = 0; i < 2; i++) {
                Value bias = i == 0 ? layer->b_ih : layer->b_hh;
                if (bias.kind == VALUE_TENSOR &&
                    (bias.tensor->meta.rank != 1 || bias.tensor->meta.size[0] != n))
                        return fail(STATUS_SHAPE, "recurrent network: a bias does not fit the weights");
        }
        return STATUS_OK;
}

static Status check_dtypes(const Layer *layer, Dtype dtype, Value hidden, Value cell)
{
        const Value all[] = { layer->w_ih, layer->w_hh, layer->b_ih, layer->b_hh, layer->w_hr, hidden, cell };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                if (all[i].kind == VALUE_TENSOR && all[i].tensor->meta.dtype != dtype)
                        return fail(STATUS_DTYPE,
                                    "input and parameter tensors are not the same dtype, found input "
                                    "tensor with %s and another with %s",
                                    dtype_words(dtype), dtype_words(all[i].tensor->meta.dtype));
        }
        return dtype_is_float(dtype) ? STATUS_OK
                                     : fail(STATUS_DTYPE, "recurrent network: not implemented for '%s'",
                                            dtype_words(dtype));
}

// One direction of a layer over input [steps, batch, features].
static States run_layer(Compose *c, const Layer *layer, Value input, const States *first, bool reverse)
{
        States states = { value_none(), value_none(), value_none() };
        const Value hidden = first->hidden, cell = first->cell;
        const RecurrentKind kind = layer->kind;
        const TensorMeta *meta = compose_meta(c, input);
        if (!compose_failed(c))
                compose_check(c, check_layer(layer, meta, hidden, cell));
        if (!compose_failed(c))
                compose_check(c, check_dtypes(layer, meta->dtype, hidden, cell));
        // Only a GRU needs the state's bias apart.
        Value bias = layer->b_ih, rest = layer->b_hh;
        if (kind != RECURRENT_GRU && rest.kind == VALUE_TENSOR) {
                bias = OP(c, "aten::add.Tensor", bias, rest);
                rest = value_none();
        }
        Value gates = OP(c, "aten::linear", input, layer->w_ih, bias);
        Value all = OP(c, "fxserve::recurrent_steps", gates, hidden, cell, layer->w_hh, rest, layer->w_hr,
                       value_int(kind), value_bool(reverse));
        if (compose_failed(c))
                return states;
        return (States){ compose_item(c, all, 0), compose_item(c, all, 1), compose_item(c, all, 2) };
}

// ---- networks ----
typedef struct Network {
        RecurrentKind kind;
        int64_t n_layers;
        int n_directions;
        bool biases, projected, batch_first;
        Value input, hidden, cell, params; // cell: None but for LSTM
} Network;

static Layer layer_at(Compose *c, const Network *net, uint32_t index)
{
        uint32_t per = 2u + (net->biases ? 2u : 0u) + (net->projected ? 1u : 0u), at = index * per;
        Layer layer = { .kind = net->kind,
                        .w_ih = compose_item(c, net->params, at),
                        .w_hh = compose_item(c, net->params, at + 1) };
        if (net->biases) {
                layer.b_ih = compose_item(c, net->params, at + 2);
                layer.b_hh = compose_item(c, net->params, at + 3);
        }
        if (net->projected)
                layer.w_hr = compose_item(c, net->params, at + per - 1);
        return layer;
}

static void check_network(Compose *c, const Network *net)
{
        uint32_t per = 2u + (net->biases ? 2u : 0u) + (net->projected ? 1u : 0u);
        if (compose_failed(c))
                return;
        if (net->n_layers < 1 || net->n_layers > RECURRENT_MAX_DIRECTIONS / net->n_directions)
                compose_check(c,
                              fail(STATUS_VALUE, "recurrent network: 1 to %d layers and directions, got %ld",
                                   RECURRENT_MAX_DIRECTIONS, (long)net->n_layers));
        else if (compose_length(net->params) != net->n_layers * net->n_directions * per)
                compose_check(c, fail(STATUS_VALUE, "recurrent network: %u parameters given, %ld expected",
                                      compose_length(net->params),
                                      (long)(net->n_layers * net->n_directions * per)));
        else if (compose_meta(c, net->input)->rank != 3)
                compose_check(c, fail(STATUS_SHAPE, "recurrent network: the input has 3 dimensions, got %d",
                                      compose_meta(c, net->input)->rank));
        for (int i = 0; i < 2 && !compose_failed(c); i++) {
                Value state = i == 0 ? net->hidden : net->cell;
                if (state.kind == VALUE_NONE)
                        continue;
                const TensorMeta *meta = compose_meta(c, state);
                if (meta->rank != 3 || meta->size[0] != net->n_layers * net->n_directions)
                        compose_check(c, fail(STATUS_SHAPE,
                                              "Expected %s to hold %ld states, one per layer and "
                                              "direction",
                                              i == 0 ? "hx[0]" : "hx[1]",
                                              (long)(net->n_layers * net->n_directions)));
        }
}

static Value state_at(Compose *c, Value states, uint32_t index)
{
        return states.kind == VALUE_NONE ? states
                                         : OP(c, "aten::select.int", states, value_int(0), value_int(index));
}

// *out_hidden and *out_cell: the last states of all layers, stacked; the result is the output.
static Value run_network(Compose *c, const Network *net, Value *out_hidden, Value *out_cell)
{
        Value last[2][RECURRENT_MAX_DIRECTIONS], outs[2];
        check_network(c, net);
        if (compose_failed(c))
                return value_none();
        Value x = net->input;
        if (net->batch_first)
                // one copy of the input: its rows are read by the products of both directions
                x = OP(c, "aten::contiguous", OP(c, "aten::transpose.int", x, value_int(0), value_int(1)));
        uint32_t index = 0;
        for (int64_t l = 0; l < net->n_layers && !compose_failed(c); l++) {
                for (int d = 0; d < net->n_directions; d++, index++) {
                        Layer layer = layer_at(c, net, index);
                        States first = { .hidden = state_at(c, net->hidden, index),
                                         .cell = state_at(c, net->cell, index) };
                        States states = run_layer(c, &layer, x, &first, d == 1);
                        outs[d] = states.out;
                        last[0][index] = states.hidden;
                        last[1][index] = states.cell;
                }
                x = outs[0];
                if (net->n_directions == 2)
                        x = OP(c, "aten::cat", compose_list(c, outs, 2), value_int(2));
                if (l < net->n_layers - 1 && compose_bool(c, "train"))
                        x = OP(c, "aten::dropout", x, NAMED(c, "dropout"), value_bool(true));
        }
        *out_hidden = OP(c, "aten::stack", compose_list(c, last[0], index), value_int(0));
        if (net->cell.kind != VALUE_NONE)
                *out_cell = OP(c, "aten::stack", compose_list(c, last[1], index), value_int(0));
        return net->batch_first ? OP(c, "aten::transpose.int", x, value_int(0), value_int(1)) : x;
}

static void read_network(Compose *c, RecurrentKind kind, Network *out)
{
        *out = (Network){ .kind = kind,
                          .n_layers = compose_int(c, "num_layers"),
                          .n_directions = compose_bool(c, "bidirectional") ? 2 : 1,
                          .biases = compose_bool(c, "has_biases"),
                          .batch_first = compose_bool(c, "batch_first"),
                          .input = NAMED(c, "input"),
                          .hidden = NAMED(c, "hx"),
                          .params = NAMED(c, "params") };
}

static Status lstm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Network net;
        Value states[3];
        compose_begin(&c, emitter, call);
        read_network(&c, RECURRENT_LSTM, &net);
        if (compose_length(net.hidden) != 2)
                return fail(STATUS_VALUE, "lstm expects two hidden states");
        net.cell = compose_item(&c, net.hidden, 1);
        net.hidden = compose_item(&c, net.hidden, 0);
        const TensorMeta *h = compose_meta(&c, net.hidden), *cell = compose_meta(&c, net.cell);
        net.projected = h->rank == 3 && cell->rank == 3 && h->size[2] != cell->size[2];
        states[0] = run_network(&c, &net, &states[1], &states[2]);
        return compose_end(&c, compose_tuple(&c, states, 3), out);
}

static Status network_expand(Emitter *emitter, const OpCall *call, RecurrentKind kind, Value *out)
{
        Compose c;
        Network net;
        Value states[2], cell;
        compose_begin(&c, emitter, call);
        read_network(&c, kind, &net);
        states[0] = run_network(&c, &net, &states[1], &cell);
        return compose_end(&c, compose_tuple(&c, states, 2), out);
}

static Status gru_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return network_expand(emitter, call, RECURRENT_GRU, out);
}

static Status rnn_tanh_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return network_expand(emitter, call, RECURRENT_TANH, out);
}

static Status rnn_relu_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return network_expand(emitter, call, RECURRENT_RELU, out);
}

// ---- cells: one step ----
static Status check_cell_state(const TensorMeta *input, const TensorMeta *state, int64_t size, int label)
{
        if (input->rank != 2 || state->rank != 2)
                return STATUS_OK; // said by others
        if (input->size[0] != state->size[0])
                return fail(STATUS_SHAPE, "Input batch size %ld doesn't match hidden%d batch size %ld",
                            (long)input->size[0], label, (long)state->size[0]);
        if (state->size[1] != size)
                return fail(STATUS_SHAPE, "hidden%d has inconsistent hidden_size: got %ld, expected %ld",
                            label, (long)state->size[1], (long)size);
        return STATUS_OK;
}

static Value sigmoid_sum(Compose *c, Value a, Value b)
{
        return OP(c, "aten::sigmoid", OP(c, "aten::add.Tensor", a, b));
}

// One step in the operators that PyTorch has for complex numbers.
static States complex_cell(Compose *c, const Layer *layer, Value input, const States *first)
{
        Value a = OP(c, "aten::linear", input, layer->w_ih, layer->b_ih),
              b = OP(c, "aten::linear", first->hidden, layer->w_hh, layer->b_hh);
        States next = { value_none(), value_none(), value_none() };
        if (layer->kind == RECURRENT_LSTM) {
                Value gates =
                        OP(c, "aten::chunk", OP(c, "aten::add.Tensor", a, b), value_int(4), value_int(1));
                Value in = OP(c, "aten::sigmoid", compose_item(c, gates, 0)),
                      forget = OP(c, "aten::sigmoid", compose_item(c, gates, 1)),
                      fresh = OP(c, "aten::tanh", compose_item(c, gates, 2)),
                      shown = OP(c, "aten::sigmoid", compose_item(c, gates, 3));
                next.cell = OP(c, "aten::add.Tensor", OP(c, "aten::mul.Tensor", forget, first->cell),
                               OP(c, "aten::mul.Tensor", in, fresh));
                next.hidden = OP(c, "aten::mul.Tensor", shown, OP(c, "aten::tanh", next.cell));
        } else if (layer->kind == RECURRENT_GRU) {
                Value x = OP(c, "aten::chunk", a, value_int(3), value_int(1)),
                      h = OP(c, "aten::chunk", b, value_int(3), value_int(1));
                Value reset = sigmoid_sum(c, compose_item(c, x, 0), compose_item(c, h, 0)),
                      update = sigmoid_sum(c, compose_item(c, x, 1), compose_item(c, h, 1));
                Value fresh = OP(c, "aten::tanh",
                                 OP(c, "aten::add.Tensor", compose_item(c, x, 2),
                                    OP(c, "aten::mul.Tensor", reset, compose_item(c, h, 2))));
                Value gap = OP(c, "aten::sub.Tensor", first->hidden, fresh);
                next.hidden = OP(c, "aten::add.Tensor", OP(c, "aten::mul.Tensor", gap, update), fresh);
        } else {
                next.hidden = OP(c, layer->kind == RECURRENT_TANH ? "aten::tanh" : "aten::relu",
                                 OP(c, "aten::add.Tensor", a, b));
        }
        return next;
}

static States run_cell(Compose *c, RecurrentKind kind, Value hidden, Value cell)
{
        Value input = NAMED(c, "input");
        Layer layer = { kind,        NAMED(c, "w_ih"), NAMED(c, "w_hh"), NAMED(c, "b_ih"), NAMED(c, "b_hh"),
                        value_none() };
        if (compose_meta(c, input)->rank != 2)
                compose_check(c, fail(STATUS_SHAPE, "%s: the input has 2 dimensions, got %d",
                                      c->call->schema->name, compose_meta(c, input)->rank));
        if ((layer.b_ih.kind == VALUE_NONE) != (layer.b_hh.kind == VALUE_NONE))
                compose_check(c, fail(STATUS_VALUE, "%s: one bias alone", c->call->schema->name));
        const TensorMeta *meta = compose_meta(c, input), *w_hh = compose_meta(c, layer.w_hh);
        const Value states[] = { hidden, cell };
        for (int i = 0; i < 2 && !compose_failed(c) && w_hh->rank == 2; i++) {
                if (states[i].kind == VALUE_TENSOR)
                        compose_check(c,
                                      check_cell_state(meta, compose_meta(c, states[i]), w_hh->size[1], i));
        }
        if (compose_failed(c))
                return (States){ value_none(), value_none(), value_none() };
        const States first = { .hidden = hidden, .cell = cell };
        Value steps = OP(c, "aten::unsqueeze", input, value_int(0));
        if (dtype_info[meta->dtype].kind != DTYPE_KIND_COMPLEX)
                return run_layer(c, &layer, steps, &first, false);
        compose_check(c, check_layer(&layer, compose_meta(c, steps), hidden, cell));
        return complex_cell(c, &layer, input, &first);
}

static Status lstm_cell_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value hx = NAMED(&c, "hx");
        if (compose_length(hx) != 2)
                return fail(STATUS_VALUE, "lstm_cell expects two hidden states");
        States states = run_cell(&c, RECURRENT_LSTM, compose_item(&c, hx, 0), compose_item(&c, hx, 1));
        return compose_end(&c, compose_tuple(&c, (Value[]){ states.hidden, states.cell }, 2), out);
}

static Status cell_expand(Emitter *emitter, const OpCall *call, RecurrentKind kind, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        States states = run_cell(&c, kind, NAMED(&c, "hx"), value_none());
        return compose_end(&c, states.hidden, out);
}

static Status gru_cell_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return cell_expand(emitter, call, RECURRENT_GRU, out);
}

static Status rnn_tanh_cell_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return cell_expand(emitter, call, RECURRENT_TANH, out);
}

static Status rnn_relu_cell_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return cell_expand(emitter, call, RECURRENT_RELU, out);
}

#define OPTIONS                                                                                              \
        "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, "  \
        "bool batch_first) -> "
#define NETWORK(name, state, returns, function)                                                              \
        {                                                                                                    \
                "aten::" name ".input(Tensor input, " state " hx, " OPTIONS returns, DTYPES_REAL,            \
                        .expand = function##_expand, .traits = TRAIT_FRESH                                   \
        }
#define CELL(name, state, returns, function)                                                                 \
        {                                                                                                    \
                "aten::" name "(Tensor input, " state " hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "   \
                "Tensor? b_hh=None) -> " returns,                                                            \
                        DTYPES_REAL | DTYPES_COMPLEX, .expand = function##_expand, .traits = TRAIT_FRESH     \
        }
const OpDef recurrent_ops[] = {
        { "fxserve::recurrent_steps(Tensor gates, Tensor hidden, Tensor? cell, Tensor weight, Tensor? bias, "
          "Tensor? projection, int kind, bool reverse) -> (Tensor, Tensor, Tensor)",
          DTYPES_REAL, OP_HIDDEN | OP_INTERNAL, .infer = steps_infer, .run = steps_run, .pack = steps_pack,
          .cost = steps_cost, .kernel = "recurrent", .traits = TRAIT_FRESH },
        NETWORK("lstm", "Tensor[]", "(Tensor, Tensor, Tensor)", lstm),
        NETWORK("gru", "Tensor", "(Tensor, Tensor)", gru),
        NETWORK("rnn_tanh", "Tensor", "(Tensor, Tensor)", rnn_tanh),
        NETWORK("rnn_relu", "Tensor", "(Tensor, Tensor)", rnn_relu),
        CELL("lstm_cell", "Tensor[]", "(Tensor, Tensor)", lstm_cell),
        CELL("gru_cell", "Tensor", "Tensor", gru_cell),
        CELL("rnn_tanh_cell", "Tensor", "Tensor", rnn_tanh_cell),
        CELL("rnn_relu_cell", "Tensor", "Tensor", rnn_relu_cell),
};
OP_FILE(recurrent_ops);
