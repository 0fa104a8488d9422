// SPDX-License-Identifier: Apache-2.0
// recording_graph.c: a recording as a struct graph, for the printers: placeholders for input
// tensors, get_attr for state and constants where they are first read, call_function torch.ops.*
// with its arguments in schema order (defaults at the end left out), getitem for results of tuples
// and lists. An in-place call stands for its first argument from then on. State has dtype and shape
// only.
#include "core/program/recording.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"

typedef struct Writing {
        const Recording *recording;
        Graph *graph;
        Node **nodes; // by value
        uint32_t n_constants, n_bodies;
} Writing;

static Status describe(Writing *writing, Node *node, const TensorMeta *meta)
{
        TensorSpec *spec = arena_alloc(&writing->graph->arena, sizeof(*spec));
        if (spec == NULL)
                return fail_memory();
        spec->dtype = meta->dtype;
        spec->rank = meta->rank;
        for (int i = 0; i < meta->rank; i++)
                spec->size[i].value = meta->size[i];
        node->spec = spec;
        return STATUS_OK;
}

static Status add_constant(Writing *writing, const Recorded *value, Node **out_node)
{
        char made[40];
        const char *path = value->path;
        if (path == NULL) {
                snprintf(made, sizeof(made), "_constant_%u", writing->n_constants++);
                path = made;
        }
        if (graph_state(writing->graph, path) == NULL) {
                Tensor *tensor;
                State *state;
                TRY(tensor_new_view(NULL, &value->tensor.meta, 0, &tensor));
                TRY(graph_add_state(writing->graph, path, tensor, &state));
        }
        TRY(graph_add_node(writing->graph, &(NodeSpec){ .op = OP_GET_ATTR, .target = path }, out_node));
        return describe(writing, *out_node, &value->tensor.meta);
}

static Status node_of(Writing *writing, const Recorded *value, Node **out_node)
{
        Node **node = &writing->nodes[value->index];
        if (*node == NULL) {
                if (value->from == FROM_CALL && !recorded_is_constant(value))
                        return fail(STATUS_INTERNAL, "a recorded value is read before it is made");
                TRY(add_constant(writing, value, node));
        }
        *out_node = *node;
        return STATUS_OK;
}

Value recorded_number(const Tensor *tensor)
{
        Value argument = { .kind = VALUE_TENSOR, .tensor = (Tensor *)(uintptr_t)tensor };
        OpCall call = { .args = &argument };
        return arg_number(&call, SELF);
}

// A child graph is a module of its own, fetched by get_attr as in PyTorch.
static Status add_body(Writing *writing, Graph *body, Node **out_node)
{
        char path[24];
        Module *module;
        snprintf(path, sizeof(path), "fused_%u", writing->n_bodies++);
        TRY(graph_add_module(writing->graph, path, NULL, &module));
        module->graph = graph_ref(body);
        return graph_add_node(writing->graph, &(NodeSpec){ .op = OP_GET_ATTR, .target = path }, out_node);
}

static Status write_leaf(void *context, const Value *leaf, Value *out)
{
        *out = *leaf;
        if (leaf->kind == VALUE_GRAPH) {
                out->kind = VALUE_NODE;
                return add_body(context, leaf->graph, &out->node);
        }
        if (leaf->kind == VALUE_ABSENT) {
                *out = value_none();
        } else if (leaf->kind == VALUE_TENSOR && leaf->tensor->meta.wrapped &&
                   tensor_is_known(leaf->tensor)) {
                *out = recorded_number(leaf->tensor);
        } else if (leaf->kind == VALUE_TENSOR) {
                out->kind = VALUE_NODE;
                TRY(node_of(context, recorded_of(leaf->tensor), &out->node));
        }
        value_ref(*out);
        return STATUS_OK;
}

// ---- calls ----
static bool same_plain(Value a, Value b)
{
        if (a.kind != b.kind)
                return (a.kind == VALUE_NONE || a.kind == VALUE_ABSENT) &&
                       (b.kind == VALUE_NONE || b.kind == VALUE_ABSENT);
        switch (a.kind) {
        case VALUE_NONE:
        case VALUE_ABSENT:
                return true;
        case VALUE_BOOL:
                return a.b == b.b;
        case VALUE_INT:
                return a.i == b.i;
        case VALUE_FLOAT:
                return a.f >= b.f && a.f <= b.f;
        case VALUE_STR:
                return strcmp(a.str->text, b.str->text) == 0;
        default:
                return value_is_sequence(a) && (a.seq == b.seq || (a.seq->n == 0 && b.seq->n == 0));
        }
}

static bool is_default(const RecordedCall *call, uint32_t i)
{
        const SchemaArg *arg = &call->call.schema->args[i];
        return arg->has_default && same_plain(call->call.args[i], arg->default_value);
}

static Status write_args(const RecordedCall *call, RecordedLeaf leaf, void *context, Value *out_args)
{
        const Schema *schema = call->call.schema;
        uint32_t n = schema->n_positional;
        while (n > 0 && is_default(call, n - 1))
                n--;
        Seq *seq;
        TRY(seq_new(n, &seq));
        *out_args = value_seq_take(VALUE_TUPLE, seq);
        for (uint32_t i = 0; i < n; i++)
                TRY(value_map(call->call.args[i], leaf, context, &seq->items[i]));
        return STATUS_OK;
}

static Status write_kwargs(const RecordedCall *call, RecordedLeaf leaf, void *context, Value *out_kwargs)
{
        const Schema *schema = call->call.schema;
        uint32_t n = 0, at = 0;
        for (uint32_t i = schema->n_positional; i < schema->n_args; i++)
                n += !is_default(call, i);
        Dict *dict;
        TRY(dict_new(n, &dict));
        *out_kwargs = (Value){ .kind = VALUE_DICT, .dict = dict };
        for (uint32_t i = schema->n_positional; i < schema->n_args; i++) {
                if (is_default(call, i))
                        continue;
                TRY(str_new(schema->args[i].name, __builtin_strlen(schema->args[i].name),
                            &dict->items[at].key));
                TRY(value_map(call->call.args[i], leaf, context, &dict->items[at++].value));
        }
        return STATUS_OK;
}

Status recorded_call_arguments(const RecordedCall *call, RecordedLeaf leaf, void *context, Value *out_args,
                               Value *out_kwargs)
{
        _cleanup_(value_clear) Value args = value_none();
        _cleanup_(value_clear) Value kwargs = value_none();
        TRY(write_args(call, leaf, context, &args));
        TRY(write_kwargs(call, leaf, context, &kwargs));
        *out_args = args;
        *out_kwargs = kwargs;
        args = kwargs = value_none();
        return STATUS_OK;
}

static Status write_item(Writing *writing, Node *of, uint32_t k, const Recorded *value)
{
        Seq *seq;
        Node *node;
        TRY(seq_new(2, &seq));
        seq->items[0] = (Value){ .kind = VALUE_NODE, .node = of };
        seq->items[1] = value_int(k);
        TRY(graph_add_node(writing->graph,
                           &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                        .target = "_operator.getitem",
                                        .args = value_seq_take(VALUE_TUPLE, seq) },
                           &node));
        writing->nodes[value->index] = node;
        return describe(writing, node, &value->tensor.meta);
}

static Status write_call(Writing *writing, const RecordedCall *call)
{
        _cleanup_(value_clear) Value args = value_none();
        _cleanup_(value_clear) Value kwargs = value_none();
        Node *node;
        TRY(recorded_call_arguments(call, write_leaf, writing, &args, &kwargs));
        TRY(graph_add_node(writing->graph,
                           &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                        .target = call->overload->target,
                                        .args = value_ref(args),
                                        .kwargs = value_ref(kwargs) },
                           &node));
        if (call->call.schema->returns == RETURN_ONE) {
                if (call->outs[0] == NULL)
                        return STATUS_OK;
                writing->nodes[call->outs[0]->index] = node;
                return describe(writing, node, &call->outs[0]->tensor.meta);
        }
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                if (call->outs[k] != NULL && call->outs[k]->call == call)
                        TRY(write_item(writing, node, k, call->outs[k]));
        }
        return STATUS_OK;
}

// ---- the graph ----
static Status write_inputs(Writing *writing)
{
        const Recording *recording = writing->recording;
        for (uint32_t i = 0; i < recording->n_inputs; i++) {
                const Recorded *input = recording->inputs[i];
                Node **node = &writing->nodes[input->index];
                TRY(graph_add_node(writing->graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .target = input->name },
                                   node));
                TRY(describe(writing, *node, &input->tensor.meta));
        }
        return STATUS_OK;
}

static Status write_output(Writing *writing)
{
        Seq *seq;
        Node *node;
        TRY(seq_new(1, &seq));
        _cleanup_(value_clear) Value args = value_seq_take(VALUE_TUPLE, seq);
        TRY(value_map(writing->recording->result, write_leaf, writing, &seq->items[0]));
        return graph_add_node(writing->graph,
                              &(NodeSpec){ .op = OP_OUTPUT, .target = "output", .args = value_ref(args) },
                              &node);
}

Status recording_graph(const Recording *recording, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(freep) Node **nodes = new_array(recording->n_values, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        TRY(graph_new(GRAPH_FX_JSON, &graph));
        Writing writing = { .recording = recording, .graph = graph, .nodes = nodes };
        TRY(write_inputs(&writing));
        for (uint32_t i = 0; i < recording->n_calls; i++)
                TRY(write_call(&writing, recording->calls[i]));
        TRY(write_output(&writing));
        TRY(graph_finish(graph));
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

// ---- a group of calls ----
static Status write_body(Writing *writing, const RecordedGroup *group)
{
        for (uint32_t i = 0; i < group->n_inputs; i++) {
                const Recorded *input = group->inputs[i];
                char name[16];
                Node **node = &writing->nodes[input->index];
                snprintf(name, sizeof(name), "x%u", i);
                TRY(graph_add_node(writing->graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .target = name },
                                   node));
                TRY(describe(writing, *node, &input->tensor.meta));
        }
        for (uint32_t i = 0; i < group->n_calls; i++)
                TRY(write_call(writing, group->calls[i]));
        Seq *results, *args;
        Node *node;
        TRY(seq_new(group->n_outputs, &results));
        _cleanup_(value_clear) Value tuple = value_seq_take(VALUE_TUPLE, results);
        for (uint32_t k = 0; k < group->n_outputs; k++)
                results->items[k] =
                        (Value){ .kind = VALUE_NODE, .node = writing->nodes[group->outputs[k]->index] };
        TRY(seq_new(1, &args));
        args->items[0] = value_ref(tuple);
        return graph_add_node(
                writing->graph,
                &(NodeSpec){ .op = OP_OUTPUT, .target = "output", .args = value_seq_take(VALUE_TUPLE, args) },
                &node);
}

Status recording_body(Recording *recording, const RecordedGroup *group, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(freep) Node **nodes = new_array(recording->n_values, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        TRY(graph_new(GRAPH_FX_JSON, &graph));
        Writing writing = { .recording = recording, .graph = graph, .nodes = nodes };
        TRY(write_body(&writing, group));
        TRY(graph_finish(graph));
        TRY(array_reserve(&recording->bodies, &recording->bodies_capacity, recording->n_bodies + 1,
                          sizeof(Graph *)));
        *out_graph = recording->bodies[recording->n_bodies++] = take_ptr(graph);
        return STATUS_OK;
}
