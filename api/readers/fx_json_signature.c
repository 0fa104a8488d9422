// SPDX-License-Identifier: Apache-2.0
// fx_json_signature.c: what an export says of its inputs and results ("signature"), and the sizes
// that its exporter saw ("hints"). Both are read where they stand. They are checked against
// placeholders, results and state when those are known.
#include <string.h>
#include "api/readers/fx_json_parts.h"
#include "api/readers/pt2_parts.h"
#include "core/base/limits.h"
#include "core/graph/expr.h"

static Status signature_of(FxReader *reader, Graph *graph, FxSignature **out_signature)
{
        for (FxSignature *old = reader->signatures; old != NULL; old = old->before) {
                if (old->graph == graph) {
                        *out_signature = old;
                        return STATUS_OK;
                }
        }
        FxSignature *signature = arena_alloc(&reader->scratch, sizeof(*signature));
        if (signature == NULL)
                return fail_memory();
        *signature = (FxSignature){ .graph = graph, .before = reader->signatures };
        *out_signature = reader->signatures = signature;
        return STATUS_OK;
}

// Room for one more in an array of the graph's arena; `n` are used.
static Status grow(Graph *graph, void *items, uint32_t n, size_t item_bytes, void *out_items)
{
        if ((n & (n - 1)) == 0 || n == 0) { // full at each power of two
                void *more = arena_array(&graph->arena, n == 0 ? 1 : 2 * (size_t)n, item_bytes);
                if (more == NULL)
                        return fail_memory();
                if (n > 0)
                        memcpy(more, items, n * item_bytes);
                items = more;
        }
        memcpy(out_items, &items, sizeof(items));
        return STATUS_OK;
}

static Status find_word(const char *word, const char *const *words, size_t n, const char *what,
                        int *out_index)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(words[i], word) == 0) {
                        *out_index = (int)i;
                        return STATUS_OK;
                }
        }
        return fail(STATUS_VALUE, "\"%.60s\" is no %s", word, what);
}

// ---- inputs ----
static const char *const input_kinds[] = {
        [INPUT_USER] = "user", [INPUT_STATE] = "state", [INPUT_LITERAL] = "literal"
};

typedef struct InputParts {
        const char *kind, *type, *target, *as;
        bool has_size, has_value;
        SymDim size;
} InputParts;

static Status read_input_member(FxReader *reader, Graph *graph, const char *key, InputParts *parts,
                                Input *input)
{
        if (strcmp(key, "kind") == 0)
                return fx_read_word(reader, &parts->kind);
        if (strcmp(key, "type") == 0)
                return fx_read_word(reader, &parts->type);
        if (strcmp(key, "target") == 0)
                return fx_read_word(reader, &parts->target);
        if (strcmp(key, "as") == 0)
                return fx_read_word(reader, &parts->as);
        if (strcmp(key, "size") == 0) {
                parts->has_size = true;
                return fx_read_dimension(reader, graph, &parts->size);
        }
        if (strcmp(key, "value") == 0) {
                parts->has_value = true;
                return fx_read_value(reader, NULL, 0, &input->literal);
        }
        return fx_unknown_member("an input", key, "kind, type, size, target, as, value");
}

static Status set_type(const InputParts *parts, Input *input)
{
        static const char *const types[] = { "any", "Tensor", "int", "float", "bool" };
        static const ValueKind kinds[] = { VALUE_NONE, VALUE_TENSOR, VALUE_INT, VALUE_FLOAT, VALUE_BOOL };
        int type = 0;
        if (parts->type == NULL)
                return fail(STATUS_MALFORMED,
                            "an input from the user needs \"type\": any, Tensor, int, float or bool");
        TRY(find_word(parts->type, types, ARRAY_LENGTH(types),
                      "type of an input; it is any, Tensor, int, float or bool", &type));
        input->value_kind = kinds[type];
        if (parts->has_size && input->value_kind != VALUE_INT)
                return fail(STATUS_VALUE, "only an input of type int has a \"size\"");
        if (parts->has_size)
                input->spec.size[0] = parts->size;
        return STATUS_OK;
}

static Status set_state_kind(Graph *graph, const InputParts *parts, Input *input)
{
        static const char *const kinds[] = { "PARAMETER", "BUFFER", "CONSTANT_TENSOR" };
        int kind = 0;
        if (parts->target == NULL)
                return fail(STATUS_MALFORMED, "an input that is state needs its path as \"target\"");
        input->value_kind = VALUE_TENSOR;
        if (parts->as != NULL) {
                TRY(find_word(parts->as, kinds, ARRAY_LENGTH(kinds),
                              "kind of state; it is PARAMETER, BUFFER or CONSTANT_TENSOR", &kind));
                input->kind_name = kinds[kind];
        }
        return fx_keep_text(graph, parts->target, &input->path);
}

static Status set_input(Graph *graph, const InputParts *parts, Input *input)
{
        int kind = 0;
        if (parts->kind == NULL)
                return fail(STATUS_MALFORMED, "an input needs \"kind\": user, state or literal");
        TRY(find_word(parts->kind, input_kinds, ARRAY_LENGTH(input_kinds),
                      "kind of input; it is user, state or literal", &kind));
        input->kind = (InputKind)kind;
        bool is_user = kind == INPUT_USER, is_state = kind == INPUT_STATE, is_literal = kind == INPUT_LITERAL;
        if ((!is_user && (parts->type != NULL || parts->has_size)) ||
            (!is_state && (parts->target != NULL || parts->as != NULL)) || is_literal != parts->has_value)
                return fail(STATUS_MALFORMED,
                            "user goes with \"type\" and \"size\", state with \"target\" and \"as\", literal "
                            "with \"value\"");
        if (value_is_sequence(input->literal) || input->literal.kind == VALUE_DICT)
                return fail(STATUS_VALUE,
                            "the \"value\" of a literal is a number, a text, a boolean or null");
        return is_user ? set_type(parts, input) : is_state ? set_state_kind(graph, parts, input) : STATUS_OK;
}

static Status read_input(FxReader *reader, Graph *graph)
{
        Signature *signature = &graph->signature;
        InputParts parts = { 0 };
        TRY(grow(graph, signature->inputs, signature->n_inputs, sizeof(Input), &signature->inputs));
        Input *input = &signature->inputs[signature->n_inputs++]; // from here graph_unref drops its literal
        *input = (Input){ .spec = { .dtype = DTYPE_NONE, .rank = -1 } };
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        return set_input(graph, &parts, input);
                size_t outer = fx_enter(reader, ".%.60s", key);
                TRY(read_input_member(reader, graph, key, &parts, input));
                fx_leave(reader, outer);
        }
}

// ---- outputs ----
static Status read_output(FxReader *reader, Graph *graph)
{
        Signature *signature = &graph->signature;
        const char *kind = NULL, *target = NULL;
        int found = 0;
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                if (strcmp(key, "kind") == 0)
                        TRY(fx_read_word(reader, &kind));
                else if (strcmp(key, "target") == 0)
                        TRY(fx_read_word(reader, &target));
                else
                        return fx_unknown_member("an output", key, "kind, target");
        }
        if (kind == NULL)
                return fail(STATUS_MALFORMED, "an output needs \"kind\": user, state or input");
        TRY(find_word(kind, output_kind_names, OUTPUT_INPUT_MUTATION + 1,
                      "kind of output; it is user, state or input", &found));
        if ((found == OUTPUT_USER) != (target == NULL))
                return fail(
                        STATUS_MALFORMED,
                        "an output that is written to state or an input says which as \"target\", one for "
                        "the user does not");
        TRY(grow(graph, signature->outputs, signature->n_outputs, sizeof(Output), &signature->outputs));
        Output *output = &signature->outputs[signature->n_outputs++];
        *output = (Output){ .kind = (OutputKind)found };
        return fx_keep_text(graph, target, &output->target);
}

static Status read_list(FxReader *reader, Graph *graph, Status (*read_item)(FxReader *reader, Graph *graph))
{
        TRY(json_enter_array(reader->json));
        for (uint32_t i = 0;; i++) {
                bool more;
                TRY(json_next_item(reader->json, &more));
                if (!more)
                        return STATUS_OK;
                size_t outer = fx_enter(reader, "[%u]", i);
                TRY(read_item(reader, graph));
                fx_leave(reader, outer);
        }
}

// ---- trees ----
static Status read_tree(FxReader *reader, Graph *graph, int depth, uint32_t *n_leaves, Tree **out_tree);

static Status read_children(FxReader *reader, Graph *graph, int depth, uint32_t *n_leaves, Tree *tree)
{
        bool by_key = tree->kind == TREE_DICT || tree->kind == TREE_NAMEDTUPLE;
        TRY(by_key ? json_enter_object(reader->json) : json_enter_array(reader->json));
        for (bool more;;) {
                const char *key = NULL, **keys = (const char **)(uintptr_t)tree->keys;
                TRY(by_key ? json_next_key(reader->json, &key, &more) : json_next_item(reader->json, &more));
                if (!more)
                        break;
                TRY(grow(graph, tree->children, tree->n, sizeof(Tree *), &tree->children));
                if (by_key) {
                        TRY(grow(graph, keys, tree->n, sizeof(char *), &tree->keys));
                        keys = (const char **)(uintptr_t)tree->keys;
                        TRY(fx_keep_text(graph, key, &keys[tree->n]));
                }
                TRY(read_tree(reader, graph, depth + 1, n_leaves, &tree->children[tree->n]));
                tree->n++;
        }
        return STATUS_OK;
}

// Recursion: at most limits.max_nested_values deep.
static Status read_tree(FxReader *reader, Graph *graph, int depth, uint32_t *n_leaves, Tree **out_tree)
{
        const char *word;
        bool more;
        int kind = 0;
        if (depth > limits.max_nested_values)
                return fail(STATUS_TOO_LARGE,
                            "the structure of the inputs or outputs is nested deeper than %d levels "
                            "(max_nested_values in GET /v1)",
                            (int)limits.max_nested_values);
        Tree *tree = arena_alloc(&graph->arena, sizeof(*tree));
        if (tree == NULL)
                return fail_memory();
        *tree = (Tree){ .kind = TREE_LEAF, .first_leaf = *n_leaves };
        *out_tree = tree;
        if (json_peek(reader->json) == JSON_STRING) {
                TRY(fx_read_word(reader, &word));
                if (strcmp(word, tree_kind_names[TREE_LEAF]) != 0)
                        return fail(STATUS_MALFORMED, "a leaf of a structure is \"*\", not \"%.60s\"", word);
                tree->n_leaves = 1;
                (*n_leaves)++;
                return STATUS_OK;
        }
        TRY(json_enter_object(reader->json));
        TRY(json_next_key(reader->json, &word, &more));
        if (!more)
                return fail(STATUS_MALFORMED, "a structure is \"*\" or {\"tuple\": [...]}, not empty");
        TRY(find_word(word, tree_kind_names, TREE_NAMEDTUPLE + 1,
                      "kind of structure; it is tuple, list, dict or namedtuple", &kind));
        tree->kind = (TreeKind)kind;
        if (kind == TREE_LEAF)
                return fail(STATUS_MALFORMED, "a leaf of a structure is \"*\" alone");
        TRY(read_children(reader, graph, depth, n_leaves, tree));
        tree->n_leaves = *n_leaves - tree->first_leaf;
        TRY(json_next_key(reader->json, &word, &more));
        return more ? fail(STATUS_MALFORMED, "a structure has one kind, here also \"%.60s\"", word)
                    : STATUS_OK;
}

// ---- texts, ranges, hints ----
static Status read_argument_name(FxReader *reader, Graph *graph)
{
        Signature *signature = &graph->signature;
        const char *text;
        TRY(fx_read_word(reader, &text));
        TRY(grow(graph, signature->argument_names, signature->n_arguments, sizeof(char *),
                 &signature->argument_names));
        return fx_keep_text(graph, text, &signature->argument_names[signature->n_arguments++]);
}

// Whether a guard or the size of a range is an expression. Their length is bounded before they are
// parsed: a parsed one is forty times as long.
static Status check_expression(const char *text, size_t *inout_bytes)
{
        _cleanup_(arena_deinit) Arena arena;
        Expr *expr;
        arena_init(&arena, 0);
        *inout_bytes += strlen(text) + 1;
        if (*inout_bytes > (size_t)limits.max_guards)
                return fail(STATUS_TOO_LARGE,
                            "the guards, or the sizes with ranges, have more than %lld bytes (max_guards in "
                            "GET /v1)",
                            (long long)limits.max_guards);
        return expr_parse(text, &arena, &expr);
}

static Status read_guard(FxReader *reader, Graph *graph)
{
        Signature *signature = &graph->signature;
        const char *text;
        TRY(fx_read_word(reader, &text));
        TRY(check_expression(text, &reader->guard_bytes));
        TRY(grow(graph, signature->guards, signature->n_guards, sizeof(char *), &signature->guards));
        return fx_keep_text(graph, text, &signature->guards[signature->n_guards++]);
}

static Status read_bound(FxReader *reader, int64_t unbounded, int64_t *out_bound)
{
        bool more;
        TRY(json_next_item(reader->json, &more));
        if (!more)
                return fail(STATUS_MALFORMED, "a range is [min, max], null where there is no bound");
        if (json_peek(reader->json) != JSON_NULL)
                return json_read_int(reader->json, out_bound);
        *out_bound = unbounded;
        return json_read_null(reader->json);
}

static Status read_range(FxReader *reader, Graph *graph, const char *symbol)
{
        Signature *signature = &graph->signature;
        SymbolRange range;
        bool more;
        TRY(check_expression(symbol, &reader->range_bytes));
        TRY(json_enter_array(reader->json));
        TRY(read_bound(reader, INT64_MIN, &range.min));
        TRY(read_bound(reader, INT64_MAX, &range.max));
        TRY(json_next_item(reader->json, &more));
        if (more)
                return fail(STATUS_MALFORMED, "a range is [min, max], null where there is no bound");
        if (range.min > range.max)
                return fail(STATUS_VALUE, "the range of \"%.60s\" is empty", symbol);
        TRY(grow(graph, signature->ranges, signature->n_ranges, sizeof(SymbolRange), &signature->ranges));
        TRY(fx_keep_text(graph, symbol, &range.symbol));
        signature->ranges[signature->n_ranges++] = range;
        return STATUS_OK;
}

static Status read_hint(FxReader *reader, Graph *graph, const char *symbol)
{
        FxSignature *kept = NULL;
        TRY(signature_of(reader, graph, &kept));
        int64_t value;
        TRY(json_read_int(reader->json, &value));
        if (value < 0)
                return fail(STATUS_VALUE, "a size is not negative");
        return string_map_set(&kept->hints, symbol, (void *)(uintptr_t)(value + 1), NULL);
}

static Status read_members(FxReader *reader, Graph *graph,
                           Status (*read)(FxReader *reader, Graph *graph, const char *key))
{
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        return STATUS_OK;
                size_t outer = fx_enter(reader, ".%.60s", key);
                TRY(read(reader, graph, key));
                fx_leave(reader, outer);
        }
}

Status fx_read_hints(FxReader *reader, Graph *graph)
{
        size_t outer = fx_enter(reader, "hints");
        TRY(read_members(reader, graph, read_hint));
        fx_leave(reader, outer);
        return STATUS_OK;
}

// ---- the member ----
static Status read_member(FxReader *reader, Graph *graph, const char *key)
{
        Signature *signature = &graph->signature;
        const char *ir;
        uint32_t n_leaves = 0;
        if (strcmp(key, "inputs") == 0)
                return read_list(reader, graph, read_input);
        if (strcmp(key, "outputs") == 0) {
                TRY(grow(graph, NULL, 0, sizeof(Output), &signature->outputs)); // also where it is empty
                return read_list(reader, graph, read_output);
        }
        if (strcmp(key, "in_tree") == 0)
                return read_tree(reader, graph, 0, &n_leaves, &signature->in_tree);
        if (strcmp(key, "out_tree") == 0)
                return read_tree(reader, graph, 0, &n_leaves, &signature->out_tree);
        if (strcmp(key, "argument_names") == 0) {
                TRY(grow(graph, NULL, 0, sizeof(char *), &signature->argument_names));
                return read_list(reader, graph, read_argument_name);
        }
        if (strcmp(key, "ranges") == 0)
                return read_members(reader, graph, read_range);
        if (strcmp(key, "guards") == 0)
                return read_list(reader, graph, read_guard);
        if (strcmp(key, "ir") != 0)
                return fx_unknown_member(
                        "a signature", key,
                        "inputs, outputs, in_tree, out_tree, argument_names, ranges, guards, "
                        "ir");
        TRY(fx_read_word(reader, &ir));
        return fx_keep_text(graph, ir, &signature->ir);
}

Status fx_read_signature(FxReader *reader, Graph *graph)
{
        FxSignature *kept = NULL;
        TRY(signature_of(reader, graph, &kept));
        kept->has_signature = true;
        size_t outer = fx_enter(reader, "signature");
        TRY(read_members(reader, graph, read_member));
        fx_leave(reader, outer);
        return fx_check_size(reader);
}

// ---- closing ----
static void apply_hint(const FxSignature *kept, SymDim *dim)
{
        uintptr_t stored = dim->expr == NULL ? 0 : (uintptr_t)string_map_get(&kept->hints, dim->expr);
        if (stored != 0)
                dim->value = (int64_t)stored - 1;
}

static void apply_hints(const FxSignature *kept)
{
        for (uint32_t i = 0; i < kept->graph->n_nodes; i++) {
                TensorSpec *spec = kept->graph->nodes[i]->spec;
                for (int d = 0; spec != NULL && d < MAX(spec->rank, 1); d++)
                        apply_hint(kept, &spec->size[d]);
        }
}

// The size of a symbolic int is kept with its placeholder, whose spec has rank 0.
static Status join_user(const FxSignature *kept, Input *input)
{
        TensorSpec *spec = input->placeholder->spec;
        SymDim size = input->spec.size[0];
        if (input->value_kind == VALUE_INT && spec != NULL) {
                if (spec->dtype != DTYPE_I64 || spec->rank != 0)
                        return fail(STATUS_MALFORMED,
                                    "its \"meta\" must say dtype int64 and shape [], as it is an int");
                apply_hint(kept, &size);
                spec->size[0] = size;
        } else if (size.expr != NULL) {
                return fail(STATUS_MALFORMED, "an int with a \"size\" needs \"meta\": {\"dtype\": \"int64\", "
                                              "\"shape\": []}");
        }
        input->spec = spec == NULL ? (TensorSpec){ .dtype = DTYPE_NONE, .rank = -1 } : *spec;
        return STATUS_OK;
}

static Status join_inputs(const FxSignature *kept)
{
        const Graph *graph = kept->graph;
        Signature *signature = &kept->graph->signature;
        uint32_t n = 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                Node *node = graph->nodes[i];
                if (node->op != OP_PLACEHOLDER)
                        continue;
                if (n == signature->n_inputs)
                        return fail(STATUS_MALFORMED, "the graph has more than its %u inputs: %.100s", n,
                                    node->name);
                Input *input = &signature->inputs[n++];
                input->placeholder = node;
                signature->n_user_inputs += input->kind != INPUT_STATE;
                if (input->kind == INPUT_USER)
                        TRY(failure_at_node(join_user(kept, input), node->name));
                if (input->kind == INPUT_STATE && graph_state(graph, input->path) == NULL)
                        return failure_at_node(fail(STATUS_MISSING_STATE,
                                                    "input %.100s is \"%.200s\" of the state, which is not "
                                                    "there; send the weights along: curl -F graph=@g.json -F "
                                                    "weights=@w.safetensors",
                                                    node->name, input->path),
                                               node->name);
        }
        return n == signature->n_inputs ? STATUS_OK
                                        : fail(STATUS_MALFORMED, "there are %u inputs and %u placeholders",
                                               signature->n_inputs, n);
}

static Status check_written(const Graph *graph, const Output *output)
{
        if (output->kind == OUTPUT_STATE_MUTATION)
                return graph_state(graph, output->target) != NULL
                               ? STATUS_OK
                               : fail(STATUS_MALFORMED, "\"%.100s\" is written and is not in the state",
                                      output->target);
        const Node *node = graph_node(graph, output->target);
        return node != NULL && node->op == OP_PLACEHOLDER
                       ? STATUS_OK
                       : fail(STATUS_MALFORMED, "\"%.100s\" is written and is no placeholder",
                              output->target);
}

static Status join_outputs(const FxSignature *kept, uint32_t *out_n_user)
{
        const Graph *graph = kept->graph;
        const Signature *signature = &graph->signature;
        const Node *last = graph->n_nodes == 0 ? NULL : graph->nodes[graph->n_nodes - 1];
        if (last == NULL || last->op != OP_OUTPUT || last->args.seq->n != 1 ||
            !value_is_sequence(last->args.seq->items[0]))
                return fail(STATUS_MALFORMED,
                            "a graph with a signature returns a tuple: \"args\": [{\"$tuple\": [...]}]");
        const Seq *results = last->args.seq->items[0].seq;
        if (results->n != signature->n_outputs)
                return fail(STATUS_MALFORMED, "there are %u outputs, and the graph returns %u values",
                            signature->n_outputs, results->n);
        *out_n_user = 0;
        for (uint32_t i = 0; i < results->n; i++) {
                Output *output = &signature->outputs[i];
                output->arg = results->items[i];
                if (output->kind != OUTPUT_USER && *out_n_user > 0)
                        return fail(STATUS_MALFORMED,
                                    "output %u is written to state or an input; such outputs come first", i);
                if (output->kind == OUTPUT_USER)
                        (*out_n_user)++;
                else
                        TRY(check_written(graph, output));
        }
        return STATUS_OK;
}

static Status check_trees(const Signature *signature, uint32_t n_user_outputs)
{
        const Tree *in = signature->in_tree, *out = signature->out_tree;
        if (in == NULL || out == NULL || signature->outputs == NULL)
                return fail(STATUS_MALFORMED,
                            "it needs \"inputs\", \"outputs\", \"in_tree\" and \"out_tree\"");
        if (in->kind != TREE_TUPLE || in->n != 2 || in->children[0]->kind != TREE_TUPLE ||
            in->children[1]->kind != TREE_DICT)
                return fail(STATUS_MALFORMED, "\"in_tree\" is {\"tuple\": [{\"tuple\": [...]}, {\"dict\": "
                                              "{...}}]}, positional and keyword arguments");
        if (in->n_leaves != signature->n_user_inputs || out->n_leaves != n_user_outputs)
                return fail(STATUS_MALFORMED,
                            "\"in_tree\" has %u leaves for %u inputs, \"out_tree\" %u for %u "
                            "outputs",
                            in->n_leaves, signature->n_user_inputs, out->n_leaves, n_user_outputs);
        return STATUS_OK;
}

static Status close_signature(FxReader *reader, const FxSignature *kept)
{
        Signature *signature = &kept->graph->signature;
        uint32_t n_user_outputs;
        size_t outer = fx_enter(reader, "signature");
        TRY(join_inputs(kept));
        TRY(join_outputs(kept, &n_user_outputs));
        TRY(check_trees(signature, n_user_outputs));
        if (signature->n_arguments > signature->in_tree->children[0]->n + signature->in_tree->children[1]->n)
                return fail(STATUS_MALFORMED, "there are more \"argument_names\" than arguments");
        fx_leave(reader, outer);
        kept->graph->format = GRAPH_PT2;
        return pt2_mark_writes(kept->graph);
}

Status fx_complete_signature(FxReader *reader, Graph *graph)
{
        const FxSignature *kept = reader->signatures;
        while (kept != NULL && kept->graph != graph)
                kept = kept->before;
        if (kept == NULL)
                return STATUS_OK;
        apply_hints(kept);
        return kept->has_signature ? close_signature(reader, kept) : STATUS_OK;
}

void fx_signatures_deinit(FxReader *reader)
{
        for (FxSignature *kept = reader->signatures; kept != NULL; kept = kept->before)
                string_map_deinit(&kept->hints);
}
