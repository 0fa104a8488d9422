// SPDX-License-Identifier: Apache-2.0
// print_json_signature.c: what an export says of inputs and results: their structure, what each
// placeholder and result is, ranges and guards; and the sizes the exporter saw.
#include <string.h>
#include "core/base/map.h"
#include "core/graph/print_json_parts.h"

// ---- trees ----
// "*" is a leaf. Recursion: readers cap trees at limits.max_nested_values.
static void add_tree(const Tree *tree, Text *out)
{
        bool by_key = tree->kind == TREE_DICT || tree->kind == TREE_NAMEDTUPLE;
        if (tree->kind == TREE_LEAF) {
                text_add(out, "\"*\"");
                return;
        }
        text_addf(out, "{\"%s\": %c", tree_kind_names[tree->kind], by_key ? '{' : '[');
        for (uint32_t i = 0; i < tree->n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                if (by_key) {
                        text_add_json(out, tree->keys[i]);
                        text_add(out, ": ");
                }
                add_tree(tree->children[i], out);
        }
        text_add(out, by_key ? "}}" : "]}");
}

static void add_tree_member(const char *key, const Tree *tree, Text *out)
{
        if (tree == NULL)
                return;
        text_addf(out, ",\n  \"%s\": ", key);
        add_tree(tree, out);
}

// ---- inputs and outputs ----
static void add_user_input(const Input *input, Text *out)
{
        const SymDim *size = &input->spec.size[0];
        bool is_any = input->value_kind == VALUE_NONE;
        text_addf(out, "{\"kind\": \"user\", \"type\": \"%s\"",
                  is_any ? "any" : value_kind_name(input->value_kind));
        if (input->value_kind == VALUE_INT && input->spec.rank == 0 &&
            (size->expr != NULL || size->value > 0)) {
                text_add(out, ", \"size\": ");
                json_add_dimension(size, out);
        }
        text_add_char(out, '}');
}

static void add_input(const Input *input, Text *out)
{
        if (input->kind == INPUT_USER) {
                add_user_input(input, out);
        } else if (input->kind == INPUT_LITERAL) {
                text_add(out, "{\"kind\": \"literal\", \"value\": ");
                value_print_json(input->literal, out);
                text_add_char(out, '}');
        } else {
                text_add(out, "{\"kind\": \"state\", \"target\": ");
                text_add_json(out, input->path);
                if (input->kind_name != NULL) {
                        text_add(out, ", \"as\": ");
                        text_add_json(out, input->kind_name);
                }
                text_add_char(out, '}');
        }
}

static void add_output(const Output *output, Text *out)
{
        text_addf(out, "{\"kind\": \"%s\"", output_kind_names[output->kind]);
        if (output->target != NULL) {
                text_add(out, ", \"target\": ");
                text_add_json(out, output->target);
        }
        text_add_char(out, '}');
}

static void add_texts(const char *key, const char *const *texts, uint32_t n, Text *out)
{
        text_addf(out, ",\n  \"%s\": [", key);
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, texts[i]);
        }
        text_add_char(out, ']');
}

// [min, max], null where there is no bound.
static void add_ranges(const Signature *signature, Text *out)
{
        text_add(out, ",\n  \"ranges\": {");
        for (uint32_t i = 0; i < signature->n_ranges; i++) {
                const SymbolRange *range = &signature->ranges[i];
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, range->symbol);
                text_add(out, ": [");
                if (range->min == INT64_MIN)
                        text_add(out, "null");
                else
                        text_add_int(out, range->min);
                text_add(out, ", ");
                if (range->max == INT64_MAX)
                        text_add(out, "null");
                else
                        text_add_int(out, range->max);
                text_add_char(out, ']');
        }
        text_add_char(out, '}');
}

static void add_signature(const Signature *signature, Text *out)
{
        text_add(out, ",\n\"signature\": {\n  \"inputs\": [");
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                text_add(out, i == 0 ? "\n    " : ",\n    ");
                add_input(&signature->inputs[i], out);
        }
        text_add(out, "],\n  \"outputs\": [");
        for (uint32_t i = 0; i < signature->n_outputs; i++) {
                text_add(out, i == 0 ? "\n    " : ",\n    ");
                add_output(&signature->outputs[i], out);
        }
        text_add_char(out, ']');
        add_tree_member("in_tree", signature->in_tree, out);
        add_tree_member("out_tree", signature->out_tree, out);
        if (signature->argument_names != NULL)
                add_texts("argument_names", signature->argument_names, signature->n_arguments, out);
        if (signature->n_ranges > 0)
                add_ranges(signature, out);
        if (signature->n_guards > 0)
                add_texts("guards", signature->guards, signature->n_guards, out);
        if (signature->ir != NULL) {
                text_add(out, ",\n  \"ir\": ");
                text_add_json(out, signature->ir);
        }
        text_add(out, "\n}");
}

// ---- hints ----
typedef struct Hints {
        StringMap seen;
        Text *out;
} Hints;

static Status add_hint(Hints *hints, const SymDim *dim)
{
        if (dim->expr == NULL || dim->value < 0 || string_map_get(&hints->seen, dim->expr) != NULL)
                return STATUS_OK;
        text_add(hints->out, hints->seen.n == 0 ? ",\n\"hints\": {" : ", ");
        text_add_json(hints->out, dim->expr);
        text_addf(hints->out, ": %lld", (long long)dim->value);
        return string_map_set(&hints->seen, dim->expr, (void *)(uintptr_t)dim->expr, NULL);
}

static Status add_hints(const Graph *graph, Hints *hints)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const TensorSpec *spec = graph->nodes[i]->spec;
                for (int d = 0; spec != NULL && d < MAX(spec->rank, 1); d++)
                        TRY(add_hint(hints, &spec->size[d]));
        }
        text_add(hints->out, hints->seen.n == 0 ? "" : "}");
        return STATUS_OK;
}

Status json_add_signature(const Graph *graph, Text *out)
{
        Hints hints = { .out = out };
        Status status = add_hints(graph, &hints);
        string_map_deinit(&hints.seen);
        TRY(status);
        // a graph without trees has the signature that its placeholders say
        if (graph->signature.in_tree != NULL)
                add_signature(&graph->signature, out);
        return STATUS_OK;
}
