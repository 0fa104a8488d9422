// SPDX-License-Identifier: Apache-2.0
// print_json.c: FX JSON ("fx/1"), complete: the reader makes the same graph of it. One node, module
// and tensor per line. Child graphs are printed inside their module, at most
// limits.max_child_graphs deep.
#include <math.h>
#include <string.h>
#include "core/base/number.h"
#include "core/graph/print_json_parts.h"

// A text that begins with % or $ doubles it.
static void add_escaped(Text *out, const char *text, size_t n)
{
        if (n == 0 || (text[0] != '%' && text[0] != '$')) {
                text_add_json_n(out, text, n);
                return;
        }
        Text doubled = { 0 };
        text_add_char(&doubled, text[0]);
        text_add_n(&doubled, text, n);
        if (doubled.failed)
                out->failed = true;
        else
                text_add_json_n(out, doubled.data, doubled.n);
        text_deinit(&doubled);
}

static void add_float(Text *out, double value)
{
        char digits[NUMBER_TEXT_MAX];
        if (isfinite(value))
                text_add_n(out, digits, number_print_f64(value, digits));
        else
                text_addf(out, "{\"$float\": \"%s\"}", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static void add_items(Text *out, const Seq *seq)
{
        text_add_char(out, '[');
        for (uint32_t i = 0; i < seq->n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                value_print_json(seq->items[i], out);
        }
        text_add_char(out, ']');
}

static void add_dict(Text *out, const Dict *dict)
{
        text_add_char(out, '{');
        for (uint32_t i = 0; i < dict->n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                add_escaped(out, dict->items[i].key->text, dict->items[i].key->n);
                text_add(out, ": ");
                value_print_json(dict->items[i].value, out);
        }
        text_add_char(out, '}');
}

static void add_tagged(Text *out, const char *tag, const char *text)
{
        text_addf(out, "{\"%s\": ", tag);
        text_add_json(out, strncmp(text, "torch.", 6) == 0 ? text + 6 : text);
        text_add_char(out, '}');
}

void value_print_json(Value value, Text *out)
{
        static const char *const memory_formats[] = { "contiguous_format", "channels_last",
                                                      "channels_last_3d", "preserve_format" };
        switch (value.kind) {
        case VALUE_BOOL:
                text_add(out, value.b ? "true" : "false");
                break;
        case VALUE_INT:
                text_add_int(out, value.i);
                break;
        case VALUE_FLOAT:
                add_float(out, value.f);
                break;
        case VALUE_COMPLEX:
                text_add(out, "{\"$complex\": [");
                add_float(out, value.c.re);
                text_add(out, ", ");
                add_float(out, value.c.im);
                text_add(out, "]}");
                break;
        case VALUE_STR:
                add_escaped(out, value.str->text, value.str->n);
                break;
        case VALUE_DTYPE:
                add_tagged(out, "$dtype", dtype_info[value.dtype].name);
                break;
        case VALUE_DEVICE:
                add_tagged(out, "$device", value.str->text);
                break;
        case VALUE_LAYOUT:
                add_tagged(out, "$layout", value.str->text);
                break;
        case VALUE_MEMORY_FORMAT:
                add_tagged(out, "$memory_format", memory_formats[value.memory_format]);
                break;
        case VALUE_ELLIPSIS:
                text_add(out, "{\"$ellipsis\": true}");
                break;
        case VALUE_LIST:
                add_items(out, value.seq);
                break;
        case VALUE_TUPLE:
        case VALUE_SIZE:
        case VALUE_SLICE:
                text_add(out, value.kind == VALUE_SLICE ? "{\"$slice\": " : "{\"$tuple\": ");
                add_items(out, value.seq);
                text_add_char(out, '}');
                break;
        case VALUE_DICT:
                add_dict(out, value.dict);
                break;
        case VALUE_NODE:
                text_addf(out, "\"%%%s\"", value.node->name);
                break;
        // no reader makes an authored graph that has tensors, graphs or unknown values among its
        // arguments
        default:
                text_add(out, "null");
        }
}

void json_add_dimension(const SymDim *dim, Text *out)
{
        if (dim->expr != NULL)
                text_add_json(out, dim->expr);
        else
                text_add_int(out, dim->value);
}

// {"key": ["path", "type"], ...}, outermost first, as PyTorch's dict.
static void add_module_stack(Text *out, const StackEntry *innermost)
{
        const StackEntry *stack[MAX_MODULE_DEPTH];
        uint32_t n = 0;
        for (const StackEntry *call = innermost; call != NULL && n < MAX_MODULE_DEPTH; call = call->outer)
                stack[n++] = call;
        text_add(out, "\"nn_module_stack\": {");
        for (uint32_t i = n; i-- > 0;) {
                text_add(out, i + 1 == n ? "" : ", ");
                text_add_json(out, stack[i]->key);
                text_add(out, ": [");
                text_add_json(out, stack[i]->path);
                text_add(out, ", ");
                text_add_json(out, stack[i]->type);
                text_add_char(out, ']');
        }
        text_add_char(out, '}');
}

static void add_place(Text *out, const Node *node, const char **separator)
{
        if (node->module_stack != NULL) {
                text_add(out, *separator);
                add_module_stack(out, node->module_stack);
                *separator = ", ";
        }
        if (node->stack_trace != NULL) {
                text_addf(out, "%s\"stack_trace\": ", *separator);
                text_add_json(out, node->stack_trace);
                *separator = ", ";
        }
}

static void add_meta(Text *out, const Node *node)
{
        const TensorSpec *spec = node->spec;
        const char *separator = "";
        text_add(out, ", \"meta\": {");
        if (spec != NULL && spec->dtype != DTYPE_NONE) {
                text_addf(out, "\"dtype\": \"%s\"", dtype_info[spec->dtype].name);
                separator = ", ";
        }
        if (spec != NULL && spec->rank >= 0) {
                text_addf(out, "%s\"shape\": [", separator);
                separator = ", ";
                for (int i = 0; i < spec->rank; i++) {
                        text_add(out, i == 0 ? "" : ", ");
                        json_add_dimension(&spec->size[i], out);
                }
                text_add_char(out, ']');
        }
        if (node->symbol != NULL) {
                text_addf(out, "%s\"symbol\": ", separator);
                text_add_json(out, node->symbol);
                separator = ", ";
        }
        add_place(out, node, &separator);
        if (node->notes != NULL)
                text_addf(out, "%s%s", separator, node->notes);
        text_add_char(out, '}');
}

static void add_member(Text *out, const char *key, const char *text)
{
        if (text == NULL)
                return;
        text_addf(out, ", \"%s\": ", key);
        text_add_json(out, text);
}

static void add_node(Text *out, const Node *node)
{
        text_addf(out, "{\"op\": \"%s\", \"name\": \"%s\"", opcode_names[node->op], node->name);
        add_member(out, "target", node->target);
        if (node->args.seq->n > 0) {
                text_add(out, ", \"args\": ");
                add_items(out, node->args.seq);
        }
        if (node->kwargs.dict->n > 0) {
                text_add(out, ", \"kwargs\": ");
                add_dict(out, node->kwargs.dict);
        }
        add_member(out, "type", node->type);
        if (node->spec != NULL || node->symbol != NULL || node->notes != NULL || node->module_stack != NULL ||
            node->stack_trace != NULL)
                add_meta(out, node);
        if (strcmp(node_origin(node), node->name) != 0)
                add_member(out, "origin", node->origin);
        text_add_char(out, '}');
}

static void add_nodes(Text *out, const Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                text_add(out, i == 0 ? "  " : ",\n  ");
                add_node(out, graph->nodes[i]);
        }
}

static void add_graph(JsonWriter *writer, const Graph *graph);

static void add_module(JsonWriter *writer, const Module *module)
{
        Text *out = writer->out;
        const char *separator = "";
        text_add_json(out, module->path);
        text_add(out, ": {");
        if (module->type != NULL) {
                text_add(out, "\"type\": ");
                text_add_json(out, module->type);
                separator = ", ";
        }
        if (module->n_config > 0) {
                text_addf(out, "%s\"config\": {", separator);
                for (uint32_t i = 0; i < module->n_config; i++) {
                        text_add(out, i == 0 ? "" : ", ");
                        text_add_json(out, module->config[i].key);
                        text_add(out, ": ");
                        value_print_json(module->config[i].value, out);
                }
                text_add_char(out, '}');
                separator = ", ";
        }
        if (module->training) {
                text_addf(out, "%s\"training\": true", separator);
                separator = ", ";
        }
        if (module->graph != NULL) {
                text_addf(out, "%s\"graph\": ", separator);
                add_graph(writer, module->graph);
        }
        text_add_char(out, '}');
}

// Containers without a type are made again by their children's paths.
static bool is_written(const Module *module)
{
        return module->path[0] != '\0' && (module->type != NULL || module->graph != NULL || module->training);
}

static void add_modules(JsonWriter *writer, const Graph *graph)
{
        bool any = false;
        for (uint32_t i = 0; i < graph->n_modules && writer->status == STATUS_OK; i++) {
                if (!is_written(graph->modules[i]))
                        continue;
                text_add(writer->out, any ? ",\n  " : ",\n\"modules\": {\n  ");
                add_module(writer, graph->modules[i]);
                any = true;
        }
        text_add(writer->out, any ? "\n}" : "");
}

static void add_graph(JsonWriter *writer, const Graph *graph)
{
        Text *out = writer->out;
        text_add(out, "{\"format\": \"fx/1\",\n");
        if (strcmp(graph->class_name, "GraphModule") != 0) {
                text_add(out, "\"class_name\": ");
                text_add_json(out, graph->class_name);
                text_add(out, ",\n");
        }
        text_add(out, graph->pytree ? "\"pytree\": true,\n" : "");
        text_add(out, "\"nodes\": [\n");
        add_nodes(out, graph);
        text_add(out, "\n]");
        add_modules(writer, graph);
        if (graph->n_state > 0 && writer->status == STATUS_OK) {
                text_add(out, ",\n\"state\": {\n");
                writer->status = json_add_state(writer, graph);
                text_add(out, "\n}");
        }
        if (writer->status == STATUS_OK)
                writer->status = json_add_signature(graph, out);
        text_add_char(out, '}');
}

Status graph_print_json(const Graph *graph,
                        Status (*write_data)(void *context, const State *state, Text *out), void *context,
                        Text *out)
{
        JsonWriter writer = { .write_data = write_data, .context = context, .out = out };
        TRY(state_storages_of(graph, &writer.storages));
        add_graph(&writer, graph);
        state_storages_deinit(&writer.storages);
        TRY(writer.status);
        return text_status(out);
}
