// SPDX-License-Identifier: Apache-2.0
// print.c: str(graph) and the choice among forms. Graphs are finished, hence immutable: printing
// takes no locks and keeps nothing.
#include "core/graph/print.h"

#include <string.h>
#include "core/graph/print_forms.h"
#include "core/graph/python_text.h"

const char *const graph_form_names[GRAPH_FORM_COUNT] = {
        "graph", "code", "readable", "tabular", "dot", "json"
};

// Arguments as torch.fx's _format_arg shows them: %names, texts and keys without quotes. Inside a
// slice, as everywhere in repr, nodes stand bare.
static void add_argument(Value value, Text *out)
{
        switch (value.kind) {
        case VALUE_NODE:
                text_add_char(out, '%');
                text_add(out, value.node->name);
                break;
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                text_add_char(out, value.kind == VALUE_LIST ? '[' : '(');
                for (uint32_t i = 0; i < value.seq->n; i++) {
                        if (i > 0)
                                text_add(out, ", ");
                        add_argument(value.seq->items[i], out);
                }
                if (value.kind != VALUE_LIST && value.seq->n == 1)
                        text_add_char(out, ',');
                text_add_char(out, value.kind == VALUE_LIST ? ']' : ')');
                break;
        case VALUE_DICT:
                text_add_char(out, '{');
                for (uint32_t i = 0; i < value.dict->n; i++) {
                        if (i > 0)
                                text_add(out, ", ");
                        text_add_n(out, value.dict->items[i].key->text, value.dict->items[i].key->n);
                        text_add(out, ": ");
                        add_argument(value.dict->items[i].value, out);
                }
                text_add_char(out, '}');
                break;
        default:
                python_str(value, out);
        }
}

void target_print(const Node *node, Text *out)
{
        const char *target = node->target;
        if (node->op == OP_CALL_FUNCTION && strncmp(target, "_operator.", 10) == 0)
                target++; // "operator.add"
        else if (node->op == OP_CALL_FUNCTION && strchr(target, '.') == NULL)
                text_add(out, "builtins.");
        text_add(out, target);
}

void node_print(const Node *node, Text *out)
{
        if (node->op == OP_OUTPUT) {
                text_add(out, "return ");
                if (node->args.kind == VALUE_TUPLE && node->args.seq->n > 0)
                        python_str(node->args.seq->items[0], out);
                return;
        }
        text_add_char(out, '%');
        text_add(out, node->name);
        text_add(out, " : ");
        if (node->type != NULL) {
                text_add(out, node->type);
                text_add_char(out, ' ');
        }
        text_addf(out, "[num_users=%u] = %s[target=", node->n_users, opcode_names[node->op]);
        target_print(node, out);
        text_add_char(out, ']');
        if (node->op == OP_PLACEHOLDER && node->args.seq->n > 0) {
                text_add(out, "(default=");
                python_str(node->args.seq->items[0], out);
                text_add_char(out, ')');
        }
        if (!node_is_call(node))
                return;
        text_add(out, "(args = ");
        add_argument(node->args, out);
        text_add(out, ", kwargs = ");
        add_argument(node->kwargs, out);
        text_add_char(out, ')');
}

static void print_graph(const Graph *graph, Text *out)
{
        text_add(out, "graph():");
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                text_add(out, "\n    ");
                node_print(graph->nodes[i], out);
        }
}

void value_print_repr(Value value, Text *out)
{
        python_repr(value, NULL, out);
}

Status graph_print(const Graph *graph, GraphForm form, Text *out)
{
        switch (form) {
        case GRAPH_FORM_GRAPH:
                print_graph(graph, out);
                break;
        case GRAPH_FORM_CODE:
                return print_function_code(graph, false, out);
        case GRAPH_FORM_TABULAR:
                TRY(print_tabular(graph, out));
                break;
        case GRAPH_FORM_READABLE:
                return print_readable(graph, out);
        case GRAPH_FORM_DOT:
                return graph_print_dot(graph, NULL, out);
        case GRAPH_FORM_JSON:
                return graph_print_json(graph, NULL, NULL, out);
        case GRAPH_FORM_COUNT:
                return fail(STATUS_INTERNAL, "no such form");
        }
        return text_status(out);
}
