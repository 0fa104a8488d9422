// SPDX-License-Identifier: Apache-2.0
// print_dot.c: a graph in the language of graphviz. All texts are quoted, so that no name can be
// read as anything else.
#include <string.h>
#include "core/base/map.h"
#include "core/graph/print_forms.h"
#include "core/graph/region.h"

// Within a quoted string.
static void add_escaped(Text *out, const char *text)
{
        for (const char *at = text; *at != '\0'; at++) {
                if (*at == '"' || *at == '\\')
                        text_add_char(out, '\\');
                text_add_char(out, (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at);
        }
}

static void add_shape(const TensorSpec *spec, Text *out)
{
        text_addf(out, "\\n%s[", dtype_info[spec->dtype].short_name);
        for (int i = 0; i < spec->rank; i++) {
                text_add(out, i == 0 ? "" : ", ");
                if (spec->size[i].expr != NULL)
                        add_escaped(out, spec->size[i].expr);
                else
                        text_add_int(out, spec->size[i].value);
        }
        text_add_char(out, ']');
}

// Modules in the order of their first nodes: 1, 2, ...; 0: the root, or one that there is no memory
// for.
static uintptr_t number_of(const char *path, StringMap *numbers)
{
        if (path == NULL || path[0] == '\0')
                return 0;
        uintptr_t number = (uintptr_t)string_map_get(numbers, path);
        if (number != 0)
                return number;
        number = numbers->n + 1;
        return string_map_set(numbers, path, (void *)number, NULL) == STATUS_OK ? number : 0;
}

// Hue, saturation and brightness. Steps of the golden ratio keep the hues of neighbours apart,
// however many there are. The root's nodes are grey.
static void add_module_colour(uintptr_t number, Text *out)
{
        double hue = (double)number * 0.618033988749895;
        if (number == 0)
                text_add(out, "\"0.000 0.000 0.930\"");
        else
                text_addf(out, "\"%.3f 0.350 1.000\"", hue - (double)(int64_t)hue);
}

static void add_node(const Node *node, const double *share, double most, StringMap *numbers, Text *out)
{
        const TensorSpec *spec = node->spec;
        const char *module = node_module(node);
        text_addf(out, "    \"%s\" [label=\"%%%s\\n%s ", node->name, node->name, opcode_names[node->op]);
        Text target = { 0 };
        target_print(node, &target);
        add_escaped(out, target.data == NULL ? "" : target.data);
        out->failed |= target.failed;
        text_deinit(&target);
        if (spec != NULL && spec->rank >= 0 && spec->dtype != DTYPE_NONE)
                add_shape(spec, out);
        if (share != NULL && share[node->index] > 0)
                text_addf(out, "\\n%.1f%%", 100 * share[node->index]);
        text_add(out, "\", tooltip=\"");
        add_escaped(out, module == NULL ? "" : module);
        text_add(out, "\", fillcolor=");
        if (share != NULL)
                text_addf(out, "\"0.000 %.3f 1.000\"", most > 0 ? share[node->index] / most : 0.0);
        else
                add_module_colour(number_of(module, numbers), out);
        text_add(out, "];\n");
}

typedef struct Edges {
        Text *out;
        const Node *node;
        uint32_t *seen; // by index: the last node + 1 that reads it
} Edges;

static Status add_edge(void *context, Node *input)
{
        Edges *edges = context;
        if (edges->seen[input->index] != edges->node->index + 1)
                text_addf(edges->out, "    \"%s\" -> \"%s\";\n", input->name, edges->node->name);
        edges->seen[input->index] = edges->node->index + 1;
        return STATUS_OK;
}

Status graph_print_dot(const Graph *graph, const double *share, Text *out)
{
        double most = 0;
        StringMap numbers = { 0 };
        Edges edges = { .out = out, .seen = new_array(graph->n_nodes, sizeof(uint32_t)) };
        if (edges.seen == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_nodes && share != NULL; i++)
                most = MAX(most, share[i]);
        text_add(out, "digraph \"");
        add_escaped(out, graph->class_name);
        text_add(out, "\" {\n    node [shape=box, style=filled, fontname=\"monospace\"];\n");
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                add_node(graph->nodes[i], share, most, &numbers, out);
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                edges.node = graph->nodes[i];
                (void)node_visit_inputs(edges.node, add_edge, &edges);
        }
        text_add_char(out, '}');
        free(edges.seen);
        string_map_deinit(&numbers);
        return text_status(out);
}
