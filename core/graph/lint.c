// SPDX-License-Identifier: Apache-2.0
// lint.c: what torch.fx's Graph.lint refuses, in its words, plus what Python would refuse when it
// compiles the generated code or runs the graph: exactly one output as the last node, arguments
// where a node cannot do without. A tensor that get_attr names may still be missing here: it may
// come with the weights, and whoever resolves targets lists all missing ones at once.
#include <string.h>
#include "core/graph/graph.h"

static Status check_input(void *context, Node *input)
{
        const Node *node = context;
        if (input->graph != node->graph) {
                return fail(STATUS_LINT,
                            "Argument '%s' of Node '%s' does not belong to this Graph, but was used as an "
                            "argument!",
                            input->name, node->name);
        }
        if (input->index >= node->index) {
                return fail(STATUS_LINT,
                            "Argument '%s' of Node '%s' was used before it has been defined! Please check "
                            "that Nodes in the graph are "
                            "topologically ordered",
                            input->name, node->name);
        }
        return STATUS_OK;
}

static Status check_shape_of_call(const Node *node)
{
        uint32_t n_args = node->args.seq->n;
        switch (node->op) {
        case OP_PLACEHOLDER:
                if (n_args > 1)
                        return fail(STATUS_LINT,
                                    "placeholder '%s' has %u arguments; it takes at most one, its default",
                                    node->name, n_args);
                break;
        case OP_CALL_METHOD:
                if (n_args == 0)
                        return fail(STATUS_LINT,
                                    "call_method node '%s' has no arguments; args[0] is the object whose "
                                    "method \"%.200s\" is called",
                                    node->name, node->target);
                break;
        case OP_OUTPUT:
                if (n_args != 1)
                        return fail(STATUS_LINT,
                                    "output node '%s' has %u arguments; it takes one, what the graph returns",
                                    node->name, n_args);
                break;
        default:
                break;
        }
        return STATUS_OK;
}

static Status missing_attribute(const Node *node, size_t at, size_t n)
{
        return fail(STATUS_LINT, "Node %s target %.200s references nonexistent attribute %.*s of %.*s",
                    node->name, node->target, (int)MIN(n, 200u), node->target + at,
                    (int)MIN(at == 0 ? 0 : at - 1, 200u), node->target);
}

// Walks the dotted path atom by atom, as getattr would; names the first atom that leads nowhere.
static Status check_path(const Graph *graph, const Node *node)
{
        for (size_t at = 0;;) {
                size_t n = strcspn(node->target + at, "."), end = at + n;
                bool last = node->target[end] == '\0';
                bool module = n > 0 && string_map_get_n(&graph->module_by_path, node->target, end) != NULL;
                bool tensor = string_map_get_n(&graph->state_by_path, node->target, end) != NULL;
                if (!module && !tensor)
                        return node->op == OP_GET_ATTR ? STATUS_OK : missing_attribute(node, at, n);
                if (tensor && node->op == OP_CALL_MODULE) {
                        return fail(STATUS_LINT,
                                    "Node %s target %.200s %.*s of %.*s does not reference an nn.Module",
                                    node->name, node->target, (int)MIN(n, 200u), node->target + at,
                                    (int)MIN(at == 0 ? 0 : at - 1, 200u), node->target);
                }
                if (tensor && !last)
                        return missing_attribute(node, end + 1, strcspn(node->target + end + 1, "."));
                if (last)
                        return STATUS_OK;
                at = end + 1;
        }
}

static Status check_node(const Graph *graph, const Node *node)
{
        if ((unsigned)node->op > OP_OUTPUT)
                return fail(STATUS_LINT, "Node %s had unknown opcode %d!", node->name, (int)node->op);
        if (node->graph != graph)
                return fail(STATUS_LINT, "Node '%s' does not belong to this Graph!", node->name);
        TRY(node_visit_inputs(node, check_input, (void *)(uintptr_t)node));
        if (graph_node(graph, node->name) != node)
                return fail(STATUS_LINT, "Node redefined name %s!", node->name);
        if (node->target[0] == '\0')
                return fail(STATUS_LINT, "Node %s has an empty target", node->name);
        TRY(check_shape_of_call(node));
        if (node->op == OP_GET_ATTR || node->op == OP_CALL_MODULE)
                TRY(check_path(graph, node));
        if (node->op == OP_OUTPUT && node->index + 1 != graph->n_nodes) {
                return fail(STATUS_LINT,
                            "output node '%s' is not the last node: a graph has exactly one output, and "
                            "nothing after it",
                            node->name);
        }
        return STATUS_OK;
}

// forward(self, x, x) is no Python.
static Status check_placeholders(const Graph *graph, StringMap *seen)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                Node *node = graph->nodes[i];
                if (node->op != OP_PLACEHOLDER)
                        continue;
                void *other;
                TRY(string_map_set(seen, node->target + strspn(node->target, "*"), node, &other));
                if (other != NULL) {
                        Status status = fail(
                                STATUS_LINT,
                                "duplicate argument '%.200s' in function definition: placeholders %s and %s",
                                node->target, ((Node *)other)->name, node->name);
                        return failure_at_node(status, node->name);
                }
        }
        return STATUS_OK;
}

Status graph_lint(const Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                TRY(failure_at_node(check_node(graph, graph->nodes[i]), graph->nodes[i]->name));
        if (graph->n_nodes == 0 || graph->nodes[graph->n_nodes - 1]->op != OP_OUTPUT)
                return fail(STATUS_LINT, "the graph has no output node; its last node must be one: {\"op\": "
                                         "\"output\", \"target\": "
                                         "\"output\", \"args\": [...]}");
        StringMap seen = { 0 };
        Status status = check_placeholders(graph, &seen);
        string_map_deinit(&seen);
        return status;
}
