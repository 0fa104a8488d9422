// SPDX-License-Identifier: Apache-2.0
// pt2_graph.c: the graph section -> placeholders, nodes (pt2_node.c), output, recorded metas.
// Branches of higher-order operators are child graphs, entered by recursion that
// limits.max_child_graphs bounds; each stands before its caller as a get_attr node.
#include "api/readers/pt2_parts.h"

#include <string.h>
#include "core/base/limits.h"

void pt2_graph_deinit(Pt2Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                value_unref(graph->inputs[i].literal);
        free(graph->inputs);
        string_map_deinit(&graph->values);
        string_map_deinit(&graph->infix);
        graph->graph = graph_unref(graph->graph);
}

// ---- inputs, outputs, metas ----
static Status read_graph_input(Pt2Graph *graph, JsonReader *reader, const char *const *literal_names,
                               uint32_t n_literal_names)
{
        const char *tag, *name = NULL;
        _cleanup_(value_clear) Value literal = value_none();
        Pt2Input input = { .kind = VALUE_ABSENT };
        TRY(json_union_enter(reader, &tag));
        if (strcmp(tag, "as_tensor") == 0) {
                TRY(pt2_read_name(reader, &name));
                input.kind = VALUE_TENSOR;
        } else if (strncmp(tag, "as_sym_", 7) == 0 && tag[strlen(tag) - 1] != 's') {
                TRY(pt2_read_symbol(reader, &name, &literal));
                if (name == NULL)
                        return fail(STATUS_MALFORMED,
                                    "an input of the graph is a constant written as symbolic number");
                input.kind = strcmp(tag, "as_sym_int") == 0     ? VALUE_INT
                             : strcmp(tag, "as_sym_float") == 0 ? VALUE_FLOAT
                                                                : VALUE_BOOL;
        } else if (strcmp(tag, "as_int") == 0 || strcmp(tag, "as_float") == 0 ||
                   strcmp(tag, "as_bool") == 0 || strcmp(tag, "as_none") == 0 ||
                   strcmp(tag, "as_string") == 0) {
                TRY(pt2_read_tagged(graph, reader, tag, &literal));
        } else if (strcmp(tag, "as_custom_obj") == 0) {
                TRY(pt2_read_tagged(graph, reader, tag, &literal));
        } else {
                return fail(STATUS_MALFORMED, "\"%s\" cannot be an input of a graph", tag);
        }
        TRY(json_union_leave(reader, tag));
        TRY(array_reserve(&graph->inputs, &graph->inputs_capacity, graph->n_inputs + 1, sizeof(input)));
        if (name != NULL) {
                TRY(pt2_add_named(graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .name = name, .target = name },
                                  &input.placeholder));
        } else {
                uint32_t i = graph->n_inputs;
                const char *wish = i < n_literal_names ? literal_names[i] : NULL, *fresh;
                if (wish == NULL)
                        wish = arena_format(graph->scratch, "arg%u", i);
                if (wish == NULL)
                        return fail_memory();
                TRY(graph_fresh_name(graph->graph, wish, &fresh));
                TRY(graph_add_node(graph->graph,
                                   &(NodeSpec){ .op = OP_PLACEHOLDER, .name = fresh, .target = wish },
                                   &input.placeholder));
        }
        input.literal = literal;
        literal = value_none();
        graph->inputs[graph->n_inputs++] = input;
        return STATUS_OK;
}

static Status read_graph_inputs(Pt2Graph *graph, JsonText text, const char *const *literal_names,
                                uint32_t n_literal_names)
{
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, graph->scratch, &reader));
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read_graph_input(graph, reader, literal_names, n_literal_names));
        }
}

static Status read_nodes(Pt2Graph *graph, JsonText text)
{
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, graph->scratch, &reader));
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(pt2_read_node(graph, reader));
        }
}

static Status read_graph_outputs(Pt2Graph *graph, JsonText text, bool single)
{
        _cleanup_(value_list_deinit) ValueList list = { 0 };
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, graph->scratch, &reader));
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                Value item;
                TRY(json_next_item(reader, &more));
                if (!more)
                        break;
                TRY(pt2_read_argument(graph, reader, &item));
                TRY(value_list_add(&list, item));
        }
        if (single && list.n != 1)
                return fail(STATUS_MALFORMED, "a graph with \"is_single_tensor_return\" has %u outputs",
                            list.n);
        Seq *args;
        TRY(seq_new(1, &args));
        Value tuple = value_seq_take(VALUE_TUPLE, args);
        Status status = STATUS_OK;
        if (single)
                args->items[0] = list.items[--list.n];
        else
                status = value_list_take(&list, VALUE_TUPLE, &args->items[0]);
        if (status != STATUS_OK) {
                value_unref(tuple);
                return status;
        }
        const char *name;
        Node *output;
        status = graph_fresh_name(graph->graph, "output", &name);
        if (status != STATUS_OK) {
                value_unref(tuple);
                return status;
        }
        return graph_add_node(graph->graph,
                              &(NodeSpec){ .op = OP_OUTPUT, .name = name, .target = "output", .args = tuple },
                              &output);
}

// What is said of values, by their names. A document may lack it.
static Status read_values(Pt2Graph *graph, JsonText text,
                          Status (*read)(void *graph, JsonReader *reader, const char *name))
{
        _cleanup_(json_closep) JsonReader *reader = NULL;
        if (text.n == 0)
                return STATUS_OK;
        TRY(json_text_open(text, graph->scratch, &reader));
        return json_each_member(reader, read, graph);
}

static Status read_tensor_value(void *context, JsonReader *reader, const char *name)
{
        Pt2Graph *graph = context;
        JsonText raw;
        Pt2TensorMeta meta;
        Node *node = pt2_value_node(graph, name);
        if (node == NULL)
                return json_skip(reader);
        TRY(json_read_raw(reader, &raw.text, &raw.n));
        TRY(failure_at_node(pt2_read_tensor_meta(graph, graph->scratch, raw, &meta), name));
        return pt2_spec_new(graph, &meta, &node->spec);
}

// A symbolic int among the inputs: its symbol goes to spec->size[0] of a spec of rank 0.
static Status set_number_spec(const Pt2Graph *graph, Node *node, SymDim number)
{
        if (node->op != OP_PLACEHOLDER)
                return STATUS_OK;
        node->spec = arena_alloc(&graph->graph->arena, sizeof(*node->spec));
        if (node->spec == NULL)
                return fail_memory();
        node->spec->dtype = DTYPE_I64;
        node->spec->size[0] = number;
        return STATUS_OK;
}

// Of symbolic numbers that no input is, only what they are called is read. What does not look like
// one is passed over.
static Status read_symbol(void *context, JsonReader *reader, const char *name)
{
        _cleanup_(json_closep) JsonReader *number = NULL;
        Pt2Graph *graph = context;
        JsonText raw;
        SymDim dim = { 0 };
        Node *node = pt2_value_node(graph, name);
        if (node == NULL)
                return json_skip(reader);
        TRY(json_read_raw(reader, &raw.text, &raw.n));
        TRY(json_text_open(raw, graph->scratch, &number));
        Status status = pt2_read_sym_int(graph, graph->scratch, number, &dim);
        if (status == STATUS_OK)
                node->symbol = dim.expr;
        return status_class(status) == STATUS_CLASS_INTERNAL ? status : STATUS_OK;
}

static Status read_symbols(Pt2Graph *graph, JsonText text)
{
        _cleanup_(json_closep) JsonReader *reader = NULL;
        if (text.n == 0)
                return STATUS_OK;
        TRY(json_text_open(text, graph->scratch, &reader));
        return json_peek(reader) == JSON_OBJECT ? json_each_member(reader, read_symbol, graph) : STATUS_OK;
}

static Status read_sym_int_value(void *context, JsonReader *reader, const char *name)
{
        Pt2Graph *graph = context;
        SymDim number;
        Node *node = pt2_value_node(graph, name);
        if (node == NULL || node->op != OP_PLACEHOLDER)
                return json_skip(reader);
        TRY(failure_at_node(pt2_read_sym_int(graph, graph->scratch, reader, &number), name));
        return set_number_spec(graph, node, number);
}

Status pt2_graph_read(JsonText text, const char *const *literal_names, uint32_t n_literal_names,
                      Pt2Graph *graph)
{
        static const char *const names[] = { "inputs",          "nodes",
                                             "outputs",         "is_single_tensor_return",
                                             "tensor_values",   "sym_int_values",
                                             "sym_bool_values", "sym_float_values" };
        JsonText fields[8];
        bool single;
        TRY(json_text_fields(text, "the graph", graph->scratch, names, 8, fields));
        for (int i = 0; i < 3; i++) {
                if (fields[i].n == 0)
                        return fail(STATUS_MALFORMED, "the graph has no \"%s\"", names[i]);
        }
        TRY(graph_new(GRAPH_PT2, &graph->graph));
        TRY(json_text_bool(fields[3], graph->scratch, false, &single));
        if (single && graph->depth == 0)
                return fail(STATUS_MALFORMED, "\"is_single_tensor_return\" is true, but a model returns a "
                                              "tuple: only graphs within it may "
                                              "return one bare value");
        TRY(read_graph_inputs(graph, fields[0], literal_names, n_literal_names));
        TRY(read_nodes(graph, fields[1]));
        TRY(read_graph_outputs(graph, fields[2], single));
        TRY(read_values(graph, fields[4], read_tensor_value));
        TRY(read_values(graph, fields[5], read_sym_int_value));
        for (int i = 5; i < 8; i++)
                TRY(read_symbols(graph, fields[i]));
        return STATUS_OK;
}

// ---- child graphs ----
static bool is_identifier(const char *name)
{
        for (const char *c = name; *c != '\0'; c++) {
                bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
                if (!letter && (c == name || *c < '0' || *c > '9'))
                        return false;
        }
        return name[0] != '\0';
}

Status pt2_read_child(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        static const char *const names[] = { "name", "graph" };
        JsonText raw, fields[2];
        const char *wish, *name;
        if (graph->depth + 1 > limits.max_child_graphs)
                return fail(STATUS_TOO_LARGE,
                            "graphs are nested deeper than %lld levels (max_child_graphs in GET /v1)",
                            (long long)limits.max_child_graphs);
        TRY(json_read_raw(reader, &raw.text, &raw.n));
        TRY(json_text_fields(raw, "a graph argument", graph->scratch, names, 2, fields));
        TRY(json_text_string(fields[0], graph->scratch, &wish));
        if (wish == NULL || fields[1].n == 0)
                return fail(STATUS_MALFORMED, "a graph argument lacks \"name\" or \"graph\"");
        if (!is_identifier(wish))
                return fail(STATUS_MALFORMED, "\"%s\" cannot be the name of a child graph", wish);
        _cleanup_(pt2_graph_deinit) Pt2Graph child = { .scratch = graph->scratch, .depth = graph->depth + 1 };
        TRY(pt2_graph_read(fields[1], NULL, 0, &child));
        TRY(graph_finish(child.graph));
        TRY(graph_fresh_name(graph->graph, wish, &name));
        Module *module;
        Node *node;
        TRY(graph_add_module(graph->graph, name, "torch.fx.GraphModule", &module));
        module->graph = take_ptr(child.graph);
        TRY(graph_add_node(graph->graph, &(NodeSpec){ .op = OP_GET_ATTR, .name = name, .target = name },
                           &node));
        *out_value = (Value){ .kind = VALUE_NODE, .node = node };
        return STATUS_OK;
}
