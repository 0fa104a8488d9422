// SPDX-License-Identifier: Apache-2.0
// pt2_node.c: one node of the document -> nodes of the graph, as torch.export.load builds them. The
// archive has no getitem nodes: a node of several results lists their names, and each becomes
// `operator.getitem(node, k)` right behind it. A node of one result bears the result's name; one of
// several bears its own ("name"), made free by FX's rule.
#include "api/readers/pt2_parts.h"

#include <string.h>
#include "api/readers/node_place.h"
#include "core/ops/op.h"

#define HIGHER_ORDER "torch.ops.higher_order."
enum { KIND_UNKNOWN = 0, KIND_POSITIONAL = 1, KIND_KEYWORD = 2, MAX_NODE_INPUTS = 1024 };

typedef struct NodeInput {
        const char *name;
        int64_t kind;
        Value value;
        uint32_t rank; // place in the operator's schema
} NodeInput;

// One name in "outputs": a value, a list of values (its items follow, `n_items` of them) or None.
typedef struct NodeOutput {
        enum { RESULT_VALUE, RESULT_LIST, RESULT_NONE } kind;
        const char *name;
        uint32_t n_items;
} NodeOutput;

// A node as the document has it.
typedef struct NodeText {
        const char *target, *name;
        const char *module_stack, *stack_trace;
        bool single_return; // is_hop_single_tensor_return
        NodeInput *inputs;
        uint32_t n_inputs, inputs_capacity;
        NodeOutput *outputs; // flat: a list's items stand behind it
        uint32_t n_outputs, outputs_capacity;
        uint32_t n_results; // without the items of lists
} NodeText;

static void node_text_deinit(NodeText *text)
{
        for (uint32_t i = 0; i < text->n_inputs; i++)
                value_unref(text->inputs[i].value);
        free(text->inputs);
        free(text->outputs);
}

// ---- making nodes ----
static Status bind_value(Pt2Graph *graph, const char *name, Node *node)
{
        void *old;
        TRY(string_map_set(&graph->values, name, node, &old));
        if (old != NULL)
                return fail(STATUS_MALFORMED, "two nodes make the value \"%s\"", name);
        return STATUS_OK;
}

// FX's namespace sees the wish as well, as it does in PyTorch, where the name is overwritten
// afterwards.
Status pt2_add_named(Pt2Graph *graph, const NodeSpec *take_spec, Node **out_node)
{
        const char *wish;
        Status status = STATUS_OK;
        if (graph_node(graph->graph, take_spec->name) != NULL)
                status = fail(STATUS_MALFORMED, "two nodes are called \"%s\"", take_spec->name);
        if (status == STATUS_OK)
                status = graph_fresh_name(graph->graph, take_spec->name, &wish);
        if (status != STATUS_OK) {
                value_unref(take_spec->args);
                value_unref(take_spec->kwargs);
                return status;
        }
        TRY(graph_add_node(graph->graph, take_spec, out_node));
        return bind_value(graph, take_spec->name, *out_node);
}

// `result`: the name of the value it makes; NULL: one that nothing can refer to, called by FX's
// rule after `wish` (NULL: "getitem").
static Status add_getitem(Pt2Graph *graph, Node *of, uint32_t k, const char *result, const char *wish,
                          Node **out_node)
{
        Seq *args;
        const char *name = NULL;
        if (wish != NULL)
                TRY(graph_fresh_name(graph->graph, wish, &name));
        TRY(seq_new(2, &args));
        args->items[0] = (Value){ .kind = VALUE_NODE, .node = of };
        args->items[1] = value_int(k);
        Value tuple = value_seq_take(VALUE_TUPLE, args);
        NodeSpec spec = {
                .op = OP_CALL_FUNCTION, .name = name, .target = "_operator.getitem", .args = tuple
        };
        if (result == NULL)
                return graph_add_node(graph->graph, &spec, out_node);
        spec.name = result;
        return pt2_add_named(graph, &spec, out_node);
}

static Status add_getitems(Pt2Graph *graph, Node *node, const NodeOutput *outputs, uint32_t n)
{
        uint32_t at = 0;
        for (uint32_t k = 0; k < n; k++) {
                const NodeOutput *output = &outputs[at++];
                Node *item, *inner;
                switch (output->kind) {
                case RESULT_VALUE:
                        TRY(add_getitem(graph, node, k, output->name, NULL, &item));
                        break;
                case RESULT_NONE:
                        TRY(add_getitem(graph, node, k, NULL, "as_none", &item));
                        break;
                case RESULT_LIST:
                        TRY(add_getitem(graph, node, k, NULL, NULL, &item));
                        for (uint32_t i = 0; i < output->n_items; i++)
                                TRY(add_getitem(graph, item, i, outputs[at++].name, NULL, &inner));
                        break;
                }
        }
        return STATUS_OK;
}

// ---- arguments ----
static bool is_python_keyword(const char *name)
{
        static const char *const keywords[] = { "False",  "None",     "True",  "and",    "as",       "assert",
                                                "async",  "await",    "break", "class",  "continue", "def",
                                                "del",    "elif",     "else",  "except", "finally",  "for",
                                                "from",   "global",   "if",    "import", "in",       "is",
                                                "lambda", "nonlocal", "not",   "or",     "pass",     "raise",
                                                "return", "try",      "while", "with",   "yield" };
        for (size_t i = 0; i < ARRAY_LENGTH(keywords); i++) {
                if (strcmp(keywords[i], name) == 0)
                        return true;
        }
        return false;
}

static int compare_inputs(const void *a, const void *b)
{
        const NodeInput *left = a, *right = b;
        return left->rank < right->rank ? -1 : left->rank > right->rank;
}

// PyTorch's loader takes arguments by name, in the schema's order. The writer keeps that order; a
// document that was rewritten may not.
static Status order_inputs(NodeText *text)
{
        const Overload *overload = op_find(text->target);
        if (overload == NULL)
                return STATUS_OK;
        const Schema *schema = &overload->schema;
        bool ordered = true;
        for (uint32_t i = 0; i < text->n_inputs; i++) {
                NodeInput *input = &text->inputs[i];
                input->rank = 0;
                while (input->rank < schema->n_args &&
                       strcmp(schema->args[input->rank].name, input->name) != 0)
                        input->rank++;
                if (input->rank == schema->n_args)
                        return STATUS_OK; // the binder will say so
                ordered = ordered && (i == 0 || input->rank > text->inputs[i - 1].rank);
        }
        if (!ordered)
                qsort(text->inputs, text->n_inputs, sizeof(*text->inputs), compare_inputs);
        uint32_t n_positional = 0;
        for (uint32_t i = 0; i < text->n_inputs; i++) {
                if (i > 0 && text->inputs[i].rank == text->inputs[i - 1].rank)
                        return fail(STATUS_MALFORMED, "the argument \"%s\" is given twice",
                                    text->inputs[i].name);
                NodeInput *input = &text->inputs[i];
                const SchemaArg *arg = &schema->args[input->rank];
                if (input->kind == KIND_UNKNOWN && !arg->has_default && !arg->kwarg_only)
                        input->kind = KIND_POSITIONAL; // documents before schema 8.6 do not say
                if (input->kind == KIND_POSITIONAL && input->rank != n_positional)
                        input->kind = KIND_KEYWORD; // an argument before it was left out, or is given by name
                n_positional += input->kind == KIND_POSITIONAL;
        }
        return STATUS_OK;
}

static bool is_positional(const NodeText *text, const NodeInput *input)
{
        if (input->kind == KIND_POSITIONAL || input->name[0] == '\0')
                return true;
        bool symbolic = strncmp(text->target, "_operator.", 10) == 0 ||
                        strncmp(text->target, "math.", 5) == 0 ||
                        strncmp(text->target, "torch.sym_", 10) == 0;
        return symbolic || (input->kind == KIND_KEYWORD && is_python_keyword(input->name));
}

// Moves the inputs into args and kwargs.
static Status take_arguments(NodeText *text, Value *out_args, Value *out_kwargs)
{
        uint32_t n_args = 0, at_arg = 0, at_kwarg = 0;
        for (uint32_t i = 0; i < text->n_inputs; i++)
                n_args += is_positional(text, &text->inputs[i]);
        _cleanup_(seq_unrefp) Seq *args = NULL;
        _cleanup_(dict_unrefp) Dict *kwargs = NULL;
        TRY(seq_new(n_args, &args));
        TRY(dict_new(text->n_inputs - n_args, &kwargs));
        for (uint32_t i = 0; i < text->n_inputs; i++) {
                NodeInput *input = &text->inputs[i];
                if (is_positional(text, input)) {
                        args->items[at_arg++] = input->value;
                } else {
                        if (dict_get(kwargs, input->name) != NULL)
                                return fail(STATUS_MALFORMED, "the argument \"%s\" is given twice",
                                            input->name);
                        TRY(str_new(input->name, strlen(input->name), &kwargs->items[at_kwarg].key));
                        kwargs->items[at_kwarg++].value = input->value;
                }
                input->value = value_none();
        }
        *out_args = value_seq_take(VALUE_TUPLE, take_ptr(args));
        *out_kwargs = (Value){ .kind = VALUE_DICT, .dict = take_ptr(kwargs) };
        return STATUS_OK;
}

// ---- reading a node ----
static Status read_input(Pt2Graph *graph, JsonReader *reader, NodeText *text)
{
        NodeInput input = { .name = "", .value = value_none() };
        bool given = false;
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                bool more;
                Status status = json_next_key(reader, &key, &more);
                if (status == STATUS_OK && !more)
                        break;
                if (status == STATUS_OK) {
                        if (json_peek(reader) == JSON_NULL)
                                status = json_skip(reader);
                        else if (strcmp(key, "name") == 0)
                                status = json_read_string(reader, &input.name, NULL);
                        else if (strcmp(key, "kind") == 0)
                                status = json_read_int(reader, &input.kind);
                        else if (strcmp(key, "arg") == 0) {
                                status = pt2_read_argument(graph, reader, &input.value);
                                given = status == STATUS_OK;
                        } else
                                status = json_skip(reader);
                }
                if (status != STATUS_OK) {
                        value_unref(input.value);
                        return failure_at_argument(status, input.name[0] == '\0' ? NULL : input.name);
                }
        }
        Status status = given ? array_reserve(&text->inputs, &text->inputs_capacity, text->n_inputs + 1,
                                              sizeof(input))
                              : fail(STATUS_MALFORMED, "an input of the node has no \"arg\"");
        if (status == STATUS_OK)
                text->inputs[text->n_inputs++] = input;
        else
                value_unref(input.value);
        return status;
}

static Status read_inputs(Pt2Graph *graph, JsonReader *reader, NodeText *text)
{
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                if (text->n_inputs == MAX_NODE_INPUTS)
                        return fail(STATUS_TOO_LARGE, "a node has more than %d arguments", MAX_NODE_INPUTS);
                TRY(read_input(graph, reader, text));
        }
}

static Status add_output(NodeText *text, NodeOutput output)
{
        TRY(array_reserve(&text->outputs, &text->outputs_capacity, text->n_outputs + 1, sizeof(output)));
        text->outputs[text->n_outputs++] = output;
        return STATUS_OK;
}

// The name in one item of a list of results, whichever list it is.
static Status read_result_name(JsonReader *reader, bool symbolic, const char **out_name)
{
        Value constant;
        if (!symbolic)
                return pt2_read_name(reader, out_name);
        TRY(pt2_read_symbol(reader, out_name, &constant));
        if (*out_name == NULL)
                return fail(STATUS_MALFORMED, "a result of the node is a constant");
        return STATUS_OK;
}

static Status read_result_list(JsonReader *reader, bool symbolic, NodeText *text)
{
        uint32_t list = text->n_outputs;
        TRY(add_output(text, (NodeOutput){ .kind = RESULT_LIST }));
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                const char *name;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read_result_name(reader, symbolic, &name));
                TRY(add_output(text, (NodeOutput){ .kind = RESULT_VALUE, .name = name }));
                text->outputs[list].n_items++;
        }
}

static Status read_result(JsonReader *reader, NodeText *text)
{
        const char *tag, *name;
        TRY(json_union_enter(reader, &tag));
        bool plural = tag[0] != '\0' && tag[strlen(tag) - 1] == 's',
             symbolic = strncmp(tag, "as_sym_", 7) == 0;
        if (strcmp(tag, "as_none") == 0) {
                TRY(json_skip(reader));
                TRY(add_output(text, (NodeOutput){ .kind = RESULT_NONE }));
        } else if (strcmp(tag, "as_tensor") == 0 || (symbolic && !plural)) {
                TRY(read_result_name(reader, symbolic, &name));
                TRY(add_output(text, (NodeOutput){ .kind = RESULT_VALUE, .name = name }));
        } else if (strcmp(tag, "as_tensors") == 0 || symbolic) {
                TRY(read_result_list(reader, symbolic, text));
        } else {
                return fail(STATUS_UNSUPPORTED, "results of kind \"%s\" are not known to this version", tag);
        }
        text->n_results++;
        return json_union_leave(reader, tag);
}

static Status read_results(JsonReader *reader, NodeText *text)
{
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(read_result(reader, text));
        }
}

static Status read_metadata(void *context, JsonReader *reader, const char *key)
{
        NodeText *text = context;
        if (strcmp(key, "nn_module_stack") == 0 && json_peek(reader) == JSON_STRING)
                return json_read_string(reader, &text->module_stack, NULL);
        if (strcmp(key, "stack_trace") == 0 && json_peek(reader) == JSON_STRING)
                return json_read_string(reader, &text->stack_trace, NULL);
        return json_skip(reader);
}

static Status read_node_member(Pt2Graph *graph, JsonReader *reader, const char *key, NodeText *text)
{
        if (json_peek(reader) == JSON_NULL)
                return json_skip(reader);
        if (strcmp(key, "target") == 0)
                return json_read_string(reader, &text->target, NULL);
        if (strcmp(key, "name") == 0)
                return json_read_string(reader, &text->name, NULL);
        if (strcmp(key, "inputs") == 0)
                return read_inputs(graph, reader, text);
        if (strcmp(key, "outputs") == 0)
                return read_results(reader, text);
        if (strcmp(key, "metadata") == 0)
                return json_each_member(reader, read_metadata, text);
        if (strcmp(key, "is_hop_single_tensor_return") == 0)
                return json_read_bool(reader, &text->single_return);
        return json_skip(reader);
}

// All nodes that stand for one of the document have its place: also getitem nodes, and those that
// name child graphs.
static Status set_places(Graph *graph, uint32_t first, const NodeText *text)
{
        for (uint32_t i = first; i < graph->n_nodes; i++) {
                if (text->module_stack != NULL)
                        TRY(read_module_stack(graph, text->module_stack, graph->nodes[i]));
                if (text->stack_trace != NULL)
                        TRY(graph_set_trace(graph, graph->nodes[i], text->stack_trace));
        }
        return STATUS_OK;
}

// The name of a node that has no or several results.
static Status own_name(Pt2Graph *graph, const NodeText *text, const char **out_name)
{
        const char *wish = text->name;
        if (wish == NULL || wish[0] == '\0')
                TRY(graph_name_of_target(graph->graph, OP_CALL_FUNCTION, text->target, &wish));
        return graph_fresh_name(graph->graph, wish, out_name);
}

static Status unused_name(Pt2Graph *graph, const NodeText *text, const char **out_name)
{
        const char *name;
        TRY(own_name(graph, text, &name));
        TRY(graph_name_of_target(graph->graph, OP_CALL_FUNCTION, text->target, &name));
        const char *wish = arena_format(graph->scratch, "%s_unused", name);
        return wish == NULL ? fail_memory() : graph_fresh_name(graph->graph, wish, out_name);
}

// ---- results ----
static const char *const result_words[] = {
        [RESULT_VALUE] = "one value", [RESULT_LIST] = "a list", [RESULT_NONE] = "None"
};

// The results of an operator as its schema has them. A result that nobody reads may be left out, or
// None.
static Status check_schema_results(const NodeText *text, const Schema *schema)
{
        bool is_list = schema->returns == RETURN_LIST;
        uint32_t n = schema->returns == RETURN_TUPLE ? schema->n_returns : schema->returns != RETURN_NOTHING;
        if (text->n_results == 0 || (text->n_results == 1 && text->outputs[0].kind == RESULT_NONE))
                return STATUS_OK;
        if (text->n_results != n)
                return fail(STATUS_MALFORMED, "the node lists %u results, but %s returns %u", text->n_results,
                            text->target, n);
        for (uint32_t i = 0; i < text->n_outputs; i += 1 + text->outputs[i].n_items) {
                if (text->outputs[i].kind != RESULT_NONE && (text->outputs[i].kind == RESULT_LIST) != is_list)
                        return fail(STATUS_MALFORMED, "a result of the node is %s, but %s returns %s",
                                    result_words[text->outputs[i].kind], text->target,
                                    result_words[is_list ? RESULT_LIST : RESULT_VALUE]);
        }
        return STATUS_OK;
}

// The child graph that makes the results of a higher-order operator; NULL for other arguments.
static const Graph *child_of(const Pt2Graph *graph, const NodeInput *input)
{
        const Node *node = input->value.kind == VALUE_NODE ? input->value.node : NULL;
        const Module *module =
                node == NULL || node->op != OP_GET_ATTR ? NULL : graph_module(graph->graph, node->target);
        return module == NULL ? NULL : module->graph;
}

// A higher-order operator returns what its child graphs return: one bare value, or a tuple. The
// condition of a loop returns no result.
static Status check_child_results(const Pt2Graph *graph, const NodeText *text)
{
        bool is_loop = strcmp(text->target, "torch.ops.higher_order.while_loop") == 0;
        if (is_loop && text->single_return)
                return fail(STATUS_MALFORMED,
                            "\"is_hop_single_tensor_return\" is true, but a loop returns a tuple");
        for (uint32_t i = 0; i < text->n_inputs; i++) {
                const Graph *child = child_of(graph, &text->inputs[i]);
                if (child == NULL || (is_loop && i == 0))
                        continue;
                Value result = child->output->args.seq->items[0];
                bool in_tuple = result.kind == VALUE_TUPLE;
                uint32_t n = in_tuple ? result.seq->n : 1;
                if (text->single_return == in_tuple && !is_loop)
                        return fail(STATUS_MALFORMED,
                                    "\"is_hop_single_tensor_return\" is %s, but graph \"%s\" returns %s",
                                    text->single_return ? "true" : "false", text->inputs[i].value.node->name,
                                    in_tuple ? "a tuple" : "one value");
                if (text->n_results != n)
                        return fail(STATUS_MALFORMED,
                                    "the node lists %u results, but graph \"%s\" returns %u", text->n_results,
                                    text->inputs[i].value.node->name, n);
        }
        return STATUS_OK;
}

// The document says twice what a node returns. Where the two disagree, its readers would get
// something else than they were exported for.
static Status check_results(const Pt2Graph *graph, const NodeText *text)
{
        static const char *const child_runners[] = { "cond", "while_loop", "wrap_with_set_grad_enabled",
                                                     "wrap_with_autocast" };
        const Overload *overload = op_find(text->target);
        if (overload != NULL)
                return check_schema_results(text, &overload->schema);
        bool higher_order = strncmp(text->target, HIGHER_ORDER, sizeof(HIGHER_ORDER) - 1) == 0;
        for (size_t i = 0; i < ARRAY_LENGTH(child_runners) && higher_order; i++) {
                if (strcmp(text->target + sizeof(HIGHER_ORDER) - 1, child_runners[i]) == 0)
                        return check_child_results(graph, text);
        }
        return STATUS_OK;
}

static Status make_node(Pt2Graph *graph, NodeText *text)
{
        Value args, kwargs;
        Node *node;
        const NodeOutput *only = text->n_results == 1 ? &text->outputs[0] : NULL;
        bool in_tuple =
                strncmp(text->target, HIGHER_ORDER, sizeof(HIGHER_ORDER) - 1) == 0 && !text->single_return;
        TRY(order_inputs(text));
        TRY(check_results(graph, text));
        if (only != NULL && only->kind == RESULT_VALUE && !in_tuple) {
                TRY(take_arguments(text, &args, &kwargs));
                TRY(pt2_add_named(graph,
                                  &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                               .name = only->name,
                                               .target = text->target,
                                               .args = args,
                                               .kwargs = kwargs },
                                  &node));
                return STATUS_OK;
        }
        const char *name;
        bool nothing = only != NULL && only->kind == RESULT_NONE;
        TRY(nothing ? unused_name(graph, text, &name) : own_name(graph, text, &name));
        TRY(take_arguments(text, &args, &kwargs));
        TRY(graph_add_node(graph->graph,
                           &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                        .name = name,
                                        .target = text->target,
                                        .args = args,
                                        .kwargs = kwargs },
                           &node));
        if (nothing || text->n_results == 0)
                return STATUS_OK;
        if (only != NULL && only->kind == RESULT_LIST) {
                for (uint32_t i = 0; i < only->n_items; i++) {
                        Node *item;
                        TRY(add_getitem(graph, node, i, text->outputs[1 + i].name, NULL, &item));
                }
        } else {
                TRY(add_getitems(graph, node, text->outputs, text->n_results));
        }
        return STATUS_OK;
}

Status pt2_read_node(Pt2Graph *graph, JsonReader *reader)
{
        _cleanup_(node_text_deinit) NodeText text = { 0 };
        uint32_t n_before = graph->graph->n_nodes;
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                bool more;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                Status status = read_node_member(graph, reader, key, &text);
                if (status != STATUS_OK)
                        return failure_at_node(status, text.name != NULL ? text.name : text.target);
        }
        if (text.target == NULL || text.target[0] == '\0')
                return fail(STATUS_MALFORMED, "a node has no \"target\"");
        if (text.target[0] == '#')
                return failure_at_node(fail(STATUS_UNSUPPORTED,
                                            "\"%s\" is an operator of an extension; extensions are code and "
                                            "cannot be run here",
                                            text.target),
                                       text.name);
        TRY(failure_at_node(make_node(graph, &text), text.name != NULL ? text.name : text.target));
        return set_places(graph->graph, n_before, &text);
}
