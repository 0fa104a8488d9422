// SPDX-License-Identifier: Apache-2.0
// module_recurrent.c: torch.nn.RNN, LSTM, GRU and their cells. The operators take batches; the
// classes also take single sequences, make the first state of zeros where none is given, and check
// sizes against their configuration.
#include "core/kernels/product/recurrent.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/compose.h"
#include "core/targets/module_table.h"

enum { INPUT, HX }; // of forward
// Of the state: every class begins with them, networks with those of layer 0.
enum { STATE_WEIGHT_IH, STATE_WEIGHT_HH, STATE_BIAS_IH, STATE_BIAS_HH };

// ---- configuration ----
typedef struct Shape {
        int gates;
        int64_t input, hidden, layers, projection; // projection: 0 if there is none
        int directions;
        bool bias;
} Shape;

static Shape shape_of(const Value *config, int gates, Value projection)
{
        return (Shape){ .gates = gates,
                        .input = python_int(config[NN_RECURRENT_INPUT_SIZE]),
                        .hidden = python_int(config[NN_RECURRENT_HIDDEN_SIZE]),
                        .layers = python_int(config[NN_RECURRENT_LAYERS]),
                        .projection = python_int(projection),
                        .directions = config[NN_RECURRENT_BIDIRECTIONAL].b ? 2 : 1,
                        .bias = config[NN_RECURRENT_BIAS].b };
}

static int64_t state_size(const Shape *shape)
{
        return shape->projection > 0 ? shape->projection : shape->hidden;
}

static bool layers_fit(const Shape *shape)
{
        return shape->layers >= 1 && shape->layers <= RECURRENT_MAX_DIRECTIONS / shape->directions;
}

static Status check_shape(const Shape *shape)
{
        if (shape->hidden <= 0)
                return fail(STATUS_VALUE, "hidden_size must be greater than zero");
        if (shape->layers <= 0)
                return fail(STATUS_VALUE, "num_layers must be greater than zero");
        if (!layers_fit(shape))
                return fail(STATUS_UNSUPPORTED, "num_layers times directions is at most %d, got %ld layers",
                            RECURRENT_MAX_DIRECTIONS, (long)shape->layers);
        if (shape->projection < 0)
                return fail(STATUS_VALUE,
                            "proj_size should be a positive integer or zero to disable projections");
        if (shape->projection >= shape->hidden)
                return fail(STATUS_VALUE, "proj_size has to be smaller than hidden_size");
        return STATUS_OK;
}

// ---- state: per layer and direction weight_ih, weight_hh, bias_ih, bias_hh, weight_hr ----
static int64_t times(int64_t a, int64_t b)
{
        int64_t product;
        return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static void entry_is(ModuleStateEntry *out, int rank, int64_t first, int64_t second)
{
        out->rank = rank;
        out->size[0] = first;
        out->size[1] = second;
}

static bool network_state(const Shape *shape, uint32_t index, ModuleStateEntry *out)
{
        static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr" };
        enum { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH, WEIGHT_HR };
        uint32_t per = 2u + (shape->bias ? 2u : 0u) + (shape->projection > 0 ? 1u : 0u);
        uint32_t slot = index / per, directions = (uint32_t)shape->directions, kind = index % per;
        if (!layers_fit(shape) || slot >= (uint32_t)shape->layers * directions)
                return false;
        if (kind == BIAS_IH && !shape->bias)
                kind = WEIGHT_HR;
        *out = (ModuleStateEntry){ 0 };
        snprintf(out->name, sizeof(out->name), "%s_l%u%s", names[kind], slot / directions,
                 slot % directions == 1 ? "_reverse" : "");
        int64_t rows = times(shape->gates, shape->hidden), states = state_size(shape);
        if (kind == WEIGHT_IH)
                entry_is(out, 2, rows, slot < directions ? shape->input : times(states, directions));
        else if (kind == WEIGHT_HH)
                entry_is(out, 2, rows, states);
        else if (kind == WEIGHT_HR)
                entry_is(out, 2, shape->projection, shape->hidden);
        else
                entry_is(out, 1, rows, 0);
        return true;
}

static bool lstm_state(const Value *config, uint32_t index, ModuleStateEntry *out)
{
        const Shape shape = shape_of(config, recurrent_gates(RECURRENT_LSTM), config[NN_LSTM_PROJ_SIZE]);
        return network_state(&shape, index, out);
}

static bool gru_state(const Value *config, uint32_t index, ModuleStateEntry *out)
{
        const Shape shape = shape_of(config, recurrent_gates(RECURRENT_GRU), value_int(0));
        return network_state(&shape, index, out);
}

static bool rnn_state(const Value *config, uint32_t index, ModuleStateEntry *out)
{
        const Shape shape = shape_of(config, recurrent_gates(RECURRENT_TANH), value_int(0));
        return network_state(&shape, index, out);
}

static bool cell_state(const Value *config, int gates, uint32_t index, ModuleStateEntry *out)
{
        static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };
        if (index >= (config[NN_RECURRENT_BIAS].b ? 4u : 2u))
                return false;
        *out = (ModuleStateEntry){ 0 };
        snprintf(out->name, sizeof(out->name), "%s", names[index]);
        int64_t hidden = python_int(config[NN_RECURRENT_HIDDEN_SIZE]);
        entry_is(out, index < 2 ? 2 : 1, times(gates, hidden),
                 index == 0 ? python_int(config[NN_RECURRENT_INPUT_SIZE]) : hidden);
        return true;
}

static bool lstm_cell_state(const Value *config, uint32_t index, ModuleStateEntry *out)
{
        return cell_state(config, recurrent_gates(RECURRENT_LSTM), index, out);
}

static bool gru_cell_state(const Value *config, uint32_t index, ModuleStateEntry *out)
{
        return cell_state(config, recurrent_gates(RECURRENT_GRU), index, out);
}

static bool rnn_cell_state(const Value *config, uint32_t index, ModuleStateEntry *out)
{
        return cell_state(config, recurrent_gates(RECURRENT_TANH), index, out);
}

// ---- checks of a call ----
static Status check_input(const ModuleCall *call, const Shape *shape, const TensorMeta *input)
{
        const Dtype dtype = call->state[STATE_WEIGHT_IH].tensor->meta.dtype;
        if (input->dtype != dtype)
                return fail(
                        STATUS_DTYPE,
                        "RNN input dtype (torch.%s) does not match weight dtype (torch.%s). Convert input: "
                        "input.to(torch.%s), or convert model: model.to(torch.%s)",
                        dtype_info[input->dtype].name, dtype_info[dtype].name, dtype_info[dtype].name,
                        dtype_info[input->dtype].name);
        if (input->size[input->rank - 1] != shape->input)
                return fail(STATUS_SHAPE, "input.size(-1) must be equal to input_size. Expected %ld, got %ld",
                            (long)shape->input, (long)input->size[input->rank - 1]);
        return STATUS_OK;
}

static Status check_hidden(const TensorMeta *given, const int64_t wanted[3], const char *which)
{
        if (given->rank == 3 && memcmp(given->size, wanted, 3 * sizeof(int64_t)) == 0)
                return STATUS_OK;
        char text[160];
        return fail(STATUS_SHAPE, "Expected %s size (%ld, %ld, %ld), got %s", which, (long)wanted[0],
                    (long)wanted[1], (long)wanted[2],
                    shape_text(given->rank, given->size, text, sizeof(text)));
}

static Value zeros(Compose *c, const int64_t *size, int n, Dtype dtype)
{
        return OP(c, "aten::zeros", compose_ints(c, size, n), value_dtype(dtype));
}

static Value squeezed(Compose *c, Value tensor, int64_t dim)
{
        return OP(c, "aten::squeeze.dim", tensor, value_int(dim));
}

// ---- networks ----
typedef struct Network {
        const char *name, *op; // "LSTM", "aten::lstm.input"
        Shape shape;
        bool batch_first, batched;
        Value input;          // with a batch
        int64_t wanted[2][3]; // sizes of the first states
        uint32_t n_states;    // 2: hidden and cell
} Network;

// One state of the call, checked, with a batch.
static Value first_state(Compose *c, const Network *net, Value given, uint32_t which)
{
        static const char *const words[] = { "hidden[0]", "hidden[1]" };
        const int rank = net->batched ? 3 : 2;
        const TensorMeta *meta = compose_meta(c, given);
        if (!compose_failed(c) && meta->rank != rank)
                compose_check(c, fail(STATUS_SHAPE,
                                      "For %s %d-D input, hx should also be %d-D but got %d-D tensor",
                                      net->batched ? "batched" : "unbatched", rank, rank, meta->rank));
        if (!net->batched)
                given = OP(c, "aten::unsqueeze", given, value_int(1));
        if (!compose_failed(c))
                compose_check(c, check_hidden(compose_meta(c, given), net->wanted[which],
                                              net->n_states == 2 ? words[which] : "hidden"));
        return given;
}

static Value first_states(Compose *c, const Network *net, Value hx)
{
        Value states[2] = { value_none(), value_none() };
        const Dtype dtype = compose_meta(c, net->input)->dtype;
        if (hx.kind != VALUE_NONE && net->n_states == 2 && compose_length(hx) != 2)
                compose_check(c, fail(STATUS_VALUE, "%s: hx is a pair (h_0, c_0)", net->name));
        for (uint32_t i = 0; i < net->n_states && !compose_failed(c); i++) {
                if (hx.kind == VALUE_NONE)
                        states[i] = zeros(c, net->wanted[i], 3, dtype);
                else
                        states[i] = first_state(c, net, net->n_states == 2 ? compose_item(c, hx, i) : hx, i);
        }
        return net->n_states == 2 ? compose_list(c, states, 2) : states[0];
}

static void open_network(Compose *c, const ModuleCall *call, Network *net)
{
        const TensorMeta *input = compose_meta(c, call->args[INPUT]);
        compose_check(c, check_shape(&net->shape));
        if (!compose_failed(c) && input->rank != 2 && input->rank != 3)
                compose_check(c, fail(STATUS_SHAPE, "%s: Expected input to be 2D or 3D, got %dD%s instead",
                                      net->name, input->rank, net->n_states == 2 ? "" : " tensor"));
        if (!compose_failed(c))
                compose_check(c, check_input(call, &net->shape, input));
        net->batched = input->rank == 3;
        net->input = call->args[INPUT];
        if (!net->batched)
                net->input = OP(c, "aten::unsqueeze", net->input, value_int(net->batch_first ? 0 : 1));
        const TensorMeta *meta = compose_meta(c, net->input);
        for (int i = 0; i < 2 && !compose_failed(c); i++) {
                net->wanted[i][0] = net->shape.layers * net->shape.directions;
                net->wanted[i][1] = meta->size[net->batch_first ? 0 : 1];
                net->wanted[i][2] = i == 0 ? state_size(&net->shape) : net->shape.hidden;
        }
}

// (output, states) as the class gives them.
static Value close_network(Compose *c, const Network *net, Value results)
{
        Value out[2] = { compose_item(c, results, 0), value_none() }, states[2];
        if (!net->batched)
                out[0] = squeezed(c, out[0], net->batch_first ? 0 : 1);
        for (uint32_t i = 0; i < net->n_states; i++) {
                states[i] = compose_item(c, results, i + 1);
                if (!net->batched)
                        states[i] = squeezed(c, states[i], 1);
        }
        out[1] = net->n_states == 2 ? compose_tuple(c, states, 2) : states[0];
        return compose_tuple(c, out, 2);
}

static Status network_run(Emitter *emitter, const ModuleCall *call, Network *net, Value *out)
{
        Compose c;
        const Value *config = call->config;
        compose_begin_bare(&c, emitter, net->name);
        net->batch_first = config[NN_RECURRENT_BATCH_FIRST].b;
        open_network(&c, call, net);
        Value states = first_states(&c, net, call->args[HX]);
        Value params = compose_list(&c, call->state, call->n_state);
        Value results = OP(&c, net->op, net->input, states, params, value_bool(net->shape.bias),
                           value_int(net->shape.layers), config[NN_RECURRENT_DROPOUT],
                           value_bool(call->module->training), config[NN_RECURRENT_BIDIRECTIONAL],
                           value_bool(net->batch_first));
        return compose_end(&c, close_network(&c, net, results), out);
}

static Status lstm_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        Network net = { .name = "LSTM", .op = "aten::lstm.input", .n_states = 2 };
        net.shape = shape_of(call->config, recurrent_gates(RECURRENT_LSTM), call->config[NN_LSTM_PROJ_SIZE]);
        return network_run(emitter, call, &net, out);
}

static Status gru_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        Network net = { .name = "GRU", .op = "aten::gru.input", .n_states = 1 };
        net.shape = shape_of(call->config, recurrent_gates(RECURRENT_GRU), value_int(0));
        return network_run(emitter, call, &net, out);
}

// The operator of a nonlinearity: STATUS_VALUE for others than tanh and relu.
static Status choose(Value nonlinearity, const char *if_tanh, const char *if_relu, const char **out_op)
{
        const char *name = nonlinearity.str->text;
        if (strcmp(name, "tanh") != 0 && strcmp(name, "relu") != 0)
                return fail(STATUS_VALUE, "Unknown nonlinearity '%.40s'. Select from 'tanh' or 'relu'.",
                            name);
        *out_op = name[0] == 't' ? if_tanh : if_relu;
        return STATUS_OK;
}

static Status rnn_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        Network net = { .name = "RNN", .n_states = 1 };
        TRY(choose(call->config[NN_RNN_NONLINEARITY], "aten::rnn_tanh.input", "aten::rnn_relu.input",
                   &net.op));
        net.shape = shape_of(call->config, recurrent_gates(RECURRENT_TANH), value_int(0));
        return network_run(emitter, call, &net, out);
}

static Status lstm_refuse(const ModuleCall *call)
{
        const Shape shape =
                shape_of(call->config, recurrent_gates(RECURRENT_LSTM), call->config[NN_LSTM_PROJ_SIZE]);
        return check_shape(&shape);
}

static Status gru_refuse(const ModuleCall *call)
{
        const Shape shape = shape_of(call->config, recurrent_gates(RECURRENT_GRU), value_int(0));
        return check_shape(&shape);
}

static Status rnn_refuse(const ModuleCall *call)
{
        const char *op;
        const Shape shape = shape_of(call->config, recurrent_gates(RECURRENT_TANH), value_int(0));
        TRY(choose(call->config[NN_RNN_NONLINEARITY], "", "", &op));
        return check_shape(&shape);
}

// ---- cells ----
static void check_cell_rank(Compose *c, const char *what, Value tensor)
{
        const TensorMeta *meta = compose_meta(c, tensor);
        if (!compose_failed(c) && meta->rank != 1 && meta->rank != 2)
                compose_check(c, fail(STATUS_SHAPE, "%s: Expected %s to be 1D or 2D, got %dD instead",
                                      c->name, what, meta->rank));
}

static Value cell_first(Compose *c, const ModuleCall *call, Value input, Value given, bool batched)
{
        const TensorMeta *meta = compose_meta(c, input);
        if (given.kind == VALUE_NONE)
                return zeros(c,
                             (int64_t[]){ meta->size[0], python_int(call->config[NN_RECURRENT_HIDDEN_SIZE]) },
                             2, meta->dtype);
        check_cell_rank(c, "hidden", given);
        return batched ? given : OP(c, "aten::unsqueeze", given, value_int(0));
}

static Value state_or_none(const ModuleCall *call, uint32_t index)
{
        return index < call->n_state ? call->state[index] : value_none();
}

static Status cell_run(Emitter *emitter, const ModuleCall *call, const char *name, const char *op, Value *out)
{
        Compose c;
        const bool pair = strcmp(name, "LSTMCell") == 0;
        compose_begin_bare(&c, emitter, name);
        Value input = call->args[INPUT], hx = call->args[HX];
        check_cell_rank(&c, "input", input);
        const bool batched = compose_meta(&c, input)->rank == 2;
        if (!batched)
                input = OP(&c, "aten::unsqueeze", input, value_int(0));
        if (pair && hx.kind != VALUE_NONE && compose_length(hx) != 2)
                compose_check(&c, fail(STATUS_VALUE, "LSTMCell: hx is a pair (h_0, c_0)"));
        Value states[2] = { hx, hx };
        for (uint32_t i = 0; i < (pair ? 2u : 1u) && !compose_failed(&c); i++) {
                if (pair && hx.kind != VALUE_NONE)
                        states[i] = compose_item(&c, hx, i);
                states[i] = cell_first(&c, call, input, states[i], batched);
        }
        Value first = pair ? compose_list(&c, states, 2) : states[0];
        Value result = OP(&c, op, input, first, call->state[STATE_WEIGHT_IH], call->state[STATE_WEIGHT_HH],
                          state_or_none(call, STATE_BIAS_IH), state_or_none(call, STATE_BIAS_HH));
        if (pair) {
                for (uint32_t i = 0; i < 2; i++) {
                        states[i] = compose_item(&c, result, i);
                        states[i] = batched ? states[i] : squeezed(&c, states[i], 0);
                }
                result = compose_tuple(&c, states, 2);
        } else if (!batched) {
                result = squeezed(&c, result, 0);
        }
        return compose_end(&c, result, out);
}

static Status lstm_cell_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return cell_run(emitter, call, "LSTMCell", "aten::lstm_cell", out);
}

static Status gru_cell_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        return cell_run(emitter, call, "GRUCell", "aten::gru_cell", out);
}

static Status rnn_cell_run(Emitter *emitter, const ModuleCall *call, Value *out)
{
        const char *op;
        TRY(choose(call->config[NN_RNN_CELL_NONLINEARITY], "aten::rnn_tanh_cell", "aten::rnn_relu_cell",
                   &op));
        return cell_run(emitter, call, "RNNCell", op, out);
}

#define NETWORK                                                                                              \
        "(int input_size, int hidden_size, bool bias=True, int num_layers=1, bool batch_first=False, float " \
        "dropout=0.0, bool bidirectional=False"
#define CELL "(int input_size, int hidden_size, bool bias=True"
#define ONE  "nn::forward(Tensor input, Tensor? hx=None) -> Any"
#define PAIR "nn::forward(Tensor input, Any hx=None) -> Any"
static const ModuleClass rows[] = {
        { "torch.nn.RNN", "nn::RNN" NETWORK ", str nonlinearity='tanh') -> ()", "", ONE, .run = rnn_run,
          .refuse = rnn_refuse, .needs = "aten::rnn_tanh aten::rnn_relu", .state_at = rnn_state },
        { "torch.nn.LSTM", "nn::LSTM" NETWORK ", int proj_size=0) -> ()", "", PAIR, .run = lstm_run,
          .refuse = lstm_refuse, .needs = "aten::lstm aten::zeros", .state_at = lstm_state },
        { "torch.nn.GRU", "nn::GRU" NETWORK ") -> ()", "", ONE, .run = gru_run, .refuse = gru_refuse,
          .needs = "aten::gru aten::zeros", .state_at = gru_state },
        { "torch.nn.RNNCell", "nn::RNNCell" CELL ", str nonlinearity='tanh') -> ()", "", ONE,
          .run = rnn_cell_run, .needs = "aten::rnn_tanh_cell aten::rnn_relu_cell",
          .state_at = rnn_cell_state },
        { "torch.nn.LSTMCell", "nn::LSTMCell" CELL ") -> ()", "", PAIR, .run = lstm_cell_run,
          .needs = "aten::lstm_cell aten::zeros", .state_at = lstm_cell_state },
        { "torch.nn.GRUCell", "nn::GRUCell" CELL ") -> ()", "", ONE, .run = gru_cell_run,
          .needs = "aten::gru_cell aten::zeros", .state_at = gru_cell_state },
};
const ModuleTable recurrent_classes = MODULE_TABLE(rows);
