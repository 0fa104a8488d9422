// SPDX-License-Identifier: Apache-2.0
// print_json.c: FX JSON ("fx/1"), in the form that the reader takes back: one node, module and
// tensor per line. Child graphs are printed inside their module, at most limits.max_child_graphs
// deep.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/number.h"
#include "core/graph/print.h"

typedef struct Writer {
        Status (*write_state)(void *context, const State *state, Text *out);
        void *context;
        Text *out;
        Status status; // first failure of write_state
} Writer;

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
                        if (spec->size[i].expr != NULL)
                                text_add_json(out, spec->size[i].expr);
                        else
                                text_add_int(out, spec->size[i].value);
                }
                text_add_char(out, ']');
        }
        add_place(out, node, &separator);
        if (node->notes != NULL)
                text_addf(out, "%s%s", separator, node->notes);
        text_add_char(out, '}');
}

// `lifted`: the state path that an export turned into this placeholder; NULL for all other nodes.
static void add_node(Text *out, const Node *node, const char *lifted)
{
        text_addf(out, "{\"op\": \"%s\", \"name\": \"%s\", \"target\": ",
                  lifted == NULL ? opcode_names[node->op] : "get_attr", node->name);
        text_add_json(out, lifted == NULL ? node->target : lifted);
        if (node->args.seq->n > 0) {
                text_add(out, ", \"args\": ");
                add_items(out, node->args.seq);
        }
        if (node->kwargs.dict->n > 0) {
                text_add(out, ", \"kwargs\": ");
                add_dict(out, node->kwargs.dict);
        }
        if (node->type != NULL) {
                text_add(out, ", \"type\": ");
                text_add_json(out, node->type);
        }
        if (node->spec != NULL || node->notes != NULL || node->module_stack != NULL ||
            node->stack_trace != NULL)
                add_meta(out, node);
        text_add_char(out, '}');
}

static void add_nodes(Text *out, const Graph *graph)
{
        uint32_t n_placeholders = 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                const Input *input = node->op == OP_PLACEHOLDER && n_placeholders < graph->signature.n_inputs
                                             ? &graph->signature.inputs[n_placeholders++]
                                             : NULL;
                text_add(out, i == 0 ? "  " : ",\n  ");
                add_node(out, node, input != NULL && input->kind == INPUT_STATE ? input->path : NULL);
        }
}

static void add_graph(Writer *writer, const Graph *graph);

static void add_module(Writer *writer, const Module *module)
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

// Entries in the order of their tensors' addresses, to find those tied to an earlier one.
typedef struct Tied {
        const Tensor *tensor;
        uint32_t index;
} Tied;

static int compare_tied(const void *a, const void *b)
{
        const Tied *x = a, *y = b;
        uintptr_t p = (uintptr_t)x->tensor, q = (uintptr_t)y->tensor;
        return p != q ? (p > q) - (p < q) : (x->index > y->index) - (x->index < y->index);
}

// out_first[i]: the first entry that holds the same tensor as entry i.
static Status find_ties(const Graph *graph, uint32_t *out_first)
{
        _cleanup_(freep) Tied *tied = new_array(graph->n_state, sizeof(*tied));
        if (tied == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_state; i++)
                tied[i] = (Tied){ graph->state[i].tensor, i };
        qsort(tied, graph->n_state, sizeof(*tied), compare_tied);
        for (uint32_t i = 0; i < graph->n_state; i++)
                out_first[tied[i].index] = i > 0 && tied[i - 1].tensor == tied[i].tensor
                                                   ? out_first[tied[i - 1].index]
                                                   : tied[i].index;
        return STATUS_OK;
}

static Status add_tensor(Writer *writer, const Graph *graph, uint32_t index, uint32_t first)
{
        Text *out = writer->out;
        const State *state = &graph->state[index];
        text_add_json(out, state->path);
        text_add(out, ": ");
        if (first != index) {
                text_add(out, "{\"same_as\": ");
                text_add_json(out, graph->state[first].path);
                text_add_char(out, '}');
                return STATUS_OK;
        }
        if (writer->write_state != NULL)
                return writer->write_state(writer->context, state, out);
        char shape[256];
        text_addf(out, "{\"dtype\": \"%s\", \"shape\": %s}", dtype_info[state->tensor->meta.dtype].name,
                  shape_text(state->tensor->meta.rank, state->tensor->meta.size, shape, sizeof(shape)));
        return STATUS_OK;
}

static void add_state(Writer *writer, const Graph *graph)
{
        _cleanup_(freep) uint32_t *first = new_array(graph->n_state, sizeof(*first));
        writer->status = first == NULL ? fail_memory() : find_ties(graph, first);
        for (uint32_t i = 0; i < graph->n_state && writer->status == STATUS_OK; i++) {
                text_add(writer->out, i == 0 ? "  " : ",\n  ");
                writer->status = add_tensor(writer, graph, i, first[i]);
        }
}

static void add_graph(Writer *writer, const Graph *graph)
{
        Text *out = writer->out;
        text_add(out, "{\"format\": \"fx/1\",\n\"nodes\": [\n");
        add_nodes(out, graph);
        text_add(out, "\n]");
        bool any = false;
        for (uint32_t i = 0; i < graph->n_modules && writer->status == STATUS_OK; i++) {
                const Module *module = graph->modules[i];
                // Containers without a type are made again by their children's paths.
                if (module->path[0] == '\0' ||
                    (module->type == NULL && module->graph == NULL && !module->training))
                        continue;
                text_add(out, any ? ",\n  " : ",\n\"modules\": {\n  ");
                add_module(writer, module);
                any = true;
        }
        text_add(out, any ? "\n}" : "");
        if (graph->n_state > 0) {
                text_add(out, ",\n\"state\": {\n");
                add_state(writer, graph);
                text_add(out, "\n}");
        }
        text_add_char(out, '}');
}

Status graph_print_json(const Graph *graph,
                        Status (*write_state)(void *context, const State *state, Text *out), void *context,
                        Text *out)
{
        Writer writer = { .write_state = write_state, .context = context, .out = out };
        add_graph(&writer, graph);
        TRY(writer.status);
        return text_status(out);
}
