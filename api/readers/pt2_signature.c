// SPDX-License-Identifier: Apache-2.0
// pt2_signature.c: input_specs and output_specs run in parallel with the graph's inputs and
// outputs; module_call_graph[0] has the structure of arguments and results; range_constraints and
// guards_code are kept as they are written.
#include "api/readers/pt2_parts.h"

#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"

// One spec: {"parameter": {"arg": ..., "parameter_name": "w"}} and so on.
typedef struct SpecText {
        const char *kind;
        const char *value; // name of the graph value it is about; NULL for literals
        const char *target;
        bool persistent;
} SpecText;

static const struct {
        const char *kind, *target_key, *shown;
} state_kinds[] = {
        { "parameter", "parameter_name", "PARAMETER" },
        { "buffer", "buffer_name", "BUFFER" },
        { "tensor_constant", "tensor_constant_name", "CONSTANT_TENSOR" },
};
static const struct {
        const char *kind, *target_key;
        OutputKind output;
} output_kinds[] = {
        { "user_output", NULL, OUTPUT_USER },
        { "loss_output", NULL, OUTPUT_USER },
        { "buffer_mutation", "buffer_name", OUTPUT_STATE_MUTATION },
        { "parameter_mutation", "parameter_name", OUTPUT_STATE_MUTATION },
        { "user_input_mutation", "user_input_name", OUTPUT_INPUT_MUTATION },
        { "token", NULL, OUTPUT_STATE_MUTATION },
};

// The value an arg is about: {"name": "x"} or {"as_tensor": {"name": "x"}} or {"as_sym_int":
// {"as_name": "s"}}; NULL for literals.
static Status read_arg_name(JsonText text, bool is_union, Arena *scratch, const char **out_name)
{
        const char *tag, *name = NULL;
        Value constant;
        *out_name = NULL;
        if (text.n == 0)
                return fail(STATUS_MALFORMED, "an entry of the signature has no \"arg\"");
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, scratch, &reader));
        if (!is_union)
                return pt2_read_name(reader, out_name);
        TRY(json_union_enter(reader, &tag));
        if (strcmp(tag, "as_tensor") == 0 || strcmp(tag, "as_custom_obj") == 0)
                TRY(pt2_read_name(reader, &name));
        else if (strncmp(tag, "as_sym_", 7) == 0)
                TRY(pt2_read_symbol(reader, &name, &constant));
        *out_name = name;
        return STATUS_OK;
}

// Calls visit on each item of an array.
static Status each_item(JsonText text, Arena *scratch,
                        Status (*visit)(void *context, uint32_t i, JsonText item), void *context)
{
        if (text.n == 0)
                return STATUS_OK;
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, scratch, &reader));
        TRY(json_enter_array(reader));
        for (uint32_t i = 0;; i++) {
                bool more;
                JsonText item;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(json_read_raw(reader, &item.text, &item.n));
                TRY(visit(context, i, item));
        }
}

static Status count_item(void *context, uint32_t i, JsonText item)
{
        (void)item;
        *(uint32_t *)context = i + 1;
        return STATUS_OK;
}

// The kind of a spec and the raw text of its body.
static Status open_spec(JsonText text, Arena *scratch, const char **out_kind, JsonText *out_body)
{
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_text_open(text, scratch, &reader));
        TRY(json_union_enter(reader, out_kind));
        TRY(json_read_raw(reader, &out_body->text, &out_body->n));
        return json_union_leave(reader, *out_kind);
}

// ---- literal names ----
typedef struct LiteralNames {
        Arena *scratch;
        const char **names;
} LiteralNames;

static Status note_literal(void *context, uint32_t i, JsonText item)
{
        static const char *const names[] = { "name" };
        LiteralNames *literals = context;
        const char *kind;
        JsonText body, field;
        TRY(open_spec(item, literals->scratch, &kind, &body));
        if (strcmp(kind, "constant_input") != 0)
                return STATUS_OK;
        TRY(json_text_fields(body, "a constant input", literals->scratch, names, 1, &field));
        return json_text_string(field, literals->scratch, &literals->names[i]);
}

Status pt2_literal_names(JsonText signature, Arena *scratch, const char ***out_names, uint32_t *out_n)
{
        static const char *const names[] = { "input_specs" };
        JsonText specs;
        uint32_t n = 0;
        TRY(json_text_fields(signature, "\"signature\"", scratch, names, 1, &specs));
        TRY(each_item(specs, scratch, count_item, &n));
        LiteralNames literals = { .scratch = scratch, .names = arena_array(scratch, n + 1u, sizeof(char *)) };
        if (literals.names == NULL)
                return fail_memory();
        TRY(each_item(specs, scratch, note_literal, &literals));
        *out_names = literals.names;
        *out_n = n;
        return STATUS_OK;
}

// ---- inputs ----
typedef struct SpecReader {
        Pt2Graph *graph;
        Signature *signature;
        Arena *arena;
        Value outputs; // the tuple of the output node
        Text missing;  // paths of state that is not there
        uint32_t n_missing;
} SpecReader;

static Status copy_text_to(Arena *arena, const char *text, const char **out_copy)
{
        *out_copy = arena_text(arena, text, strlen(text));
        return *out_copy == NULL ? fail_memory() : STATUS_OK;
}

static Status check_same_value(const char *spec, const Node *node, const char *what, uint32_t i)
{
        if (spec != NULL && (node == NULL || strcmp(spec, node->name) != 0))
                return fail(STATUS_MALFORMED,
                            "%s %u of the signature is \"%s\", but the graph has \"%s\" there", what, i, spec,
                            node == NULL ? "a literal" : node->name);
        return STATUS_OK;
}

static Status read_state_input(SpecReader *reader, uint32_t i, JsonText body, size_t row)
{
        const char *names[] = { "arg", state_kinds[row].target_key };
        JsonText fields[2];
        const char *value, *path;
        Input *input = &reader->signature->inputs[i];
        TRY(json_text_fields(body, "an input of the signature", reader->graph->scratch, names, 2, fields));
        TRY(read_arg_name(fields[0], false, reader->graph->scratch, &value));
        TRY(check_same_value(value, input->placeholder, "input", i));
        TRY(json_text_string(fields[1], reader->graph->scratch, &path));
        if (path == NULL)
                return fail(STATUS_MALFORMED, "input \"%s\" of the signature has no \"%s\"", value, names[1]);
        input->kind = INPUT_STATE;
        input->value_kind = VALUE_TENSOR;
        input->kind_name = state_kinds[row].shown;
        TRY(copy_text_to(reader->arena, path, &input->path));
        if (reader->graph->inputs[i].kind != VALUE_TENSOR)
                return fail(STATUS_MALFORMED, "input \"%s\" is a %s and must be a tensor", value,
                            state_kinds[row].kind);
        if (graph_state(reader->graph->graph, path) == NULL) {
                if (reader->n_missing++ < 20)
                        text_addf(&reader->missing, "%s%s", reader->n_missing == 1 ? "" : ", ", path);
        }
        return STATUS_OK;
}

// The token that keeps calls with effects in order is state without elements, which the graph
// writes back.
static Status read_token_input(SpecReader *reader, uint32_t i, JsonText body)
{
        static const char *const names[] = { "arg" };
        JsonText arg;
        const char *value;
        State *state;
        Tensor *tensor;
        TensorMeta meta;
        const int64_t nothing = 0;
        Input *input = &reader->signature->inputs[i];
        TRY(json_text_fields(body, "an input of the signature", reader->graph->scratch, names, 1, &arg));
        TRY(read_arg_name(arg, false, reader->graph->scratch, &value));
        TRY(check_same_value(value, input->placeholder, "input", i));
        if (reader->graph->inputs[i].kind != VALUE_TENSOR)
                return fail(STATUS_MALFORMED, "input %u is a token and must be a tensor", i);
        char path[96];
        snprintf(path, sizeof(path), "_effects.token%u", i);
        meta_init(&meta, DTYPE_F32, 1, &nothing);
        TRY(tensor_new(&meta, NULL, &tensor));
        TRY(graph_add_state(reader->graph->graph, path, tensor, &state));
        input->kind = INPUT_STATE;
        input->value_kind = VALUE_TENSOR;
        input->kind_name = "BUFFER";
        return copy_text_to(reader->arena, path, &input->path);
}

// The state that token output `i` writes: tokens come first in both lists, in the same order.
static const char *token_path(const SpecReader *reader, uint32_t i)
{
        const Input *input = i < reader->signature->n_inputs ? &reader->signature->inputs[i] : NULL;
        bool token = input != NULL && input->kind == INPUT_STATE && strncmp(input->path, "_effects.", 9) == 0;
        return token ? input->path : NULL;
}

static Status read_user_input(SpecReader *reader, uint32_t i, JsonText body)
{
        static const char *const names[] = { "arg" };
        JsonText arg;
        const char *value;
        Pt2Input *given = &reader->graph->inputs[i];
        Input *input = &reader->signature->inputs[i];
        TRY(json_text_fields(body, "an input of the signature", reader->graph->scratch, names, 1, &arg));
        TRY(read_arg_name(arg, true, reader->graph->scratch, &value));
        TRY(check_same_value(value, input->placeholder, "input", i));
        if (given->kind == VALUE_ABSENT) {
                input->kind = INPUT_LITERAL;
                input->literal = given->literal;
                given->literal = value_none();
                return STATUS_OK;
        }
        input->kind = INPUT_USER;
        input->value_kind = given->kind;
        if (input->placeholder->spec != NULL)
                input->spec = *input->placeholder->spec;
        return STATUS_OK;
}

static Status read_input_spec(void *context, uint32_t i, JsonText item)
{
        SpecReader *reader = context;
        const char *kind;
        JsonText body;
        TRY(open_spec(item, reader->graph->scratch, &kind, &body));
        Input *input = &reader->signature->inputs[i];
        input->placeholder = reader->graph->inputs[i].placeholder;
        input->spec = (TensorSpec){ .dtype = DTYPE_NONE, .rank = -1 };
        for (size_t row = 0; row < ARRAY_LENGTH(state_kinds); row++) {
                if (strcmp(kind, state_kinds[row].kind) == 0)
                        return read_state_input(reader, i, body, row);
        }
        if (strcmp(kind, "token") == 0)
                return read_token_input(reader, i, body);
        bool constant = strcmp(kind, "constant_input") == 0;
        if (!constant && strcmp(kind, "user_input") != 0)
                return fail(STATUS_UNSUPPORTED, "input \"%s\" is a %s, which cannot be run here",
                            input->placeholder->name, kind);
        reader->signature->n_user_inputs++;
        if (!constant)
                return read_user_input(reader, i, body);
        if (reader->graph->inputs[i].kind != VALUE_ABSENT)
                return fail(STATUS_MALFORMED,
                            "input \"%s\" is a constant in the signature and a value in the graph",
                            input->placeholder->name);
        input->kind = INPUT_LITERAL;
        input->literal = reader->graph->inputs[i].literal;
        reader->graph->inputs[i].literal = value_none();
        return STATUS_OK;
}

static Status read_inputs(SpecReader *reader, JsonText specs)
{
        uint32_t n = 0;
        TRY(each_item(specs, reader->graph->scratch, count_item, &n));
        if (n != reader->graph->n_inputs)
                return fail(STATUS_MALFORMED, "the signature has %u inputs and the graph %u", n,
                            reader->graph->n_inputs);
        reader->signature->inputs = arena_array(reader->arena, n + 1u, sizeof(Input));
        if (reader->signature->inputs == NULL)
                return fail_memory();
        reader->signature->n_inputs = n;
        TRY(each_item(specs, reader->graph->scratch, read_input_spec, reader));
        if (reader->n_missing > 0) {
                TRY(text_status(&reader->missing));
                return fail(STATUS_MISSING_STATE,
                            "%u weights of the graph are not in the archive: %s%s; save it again with "
                            "torch.export.save(ep, \"m.pt2\")",
                            reader->n_missing, reader->missing.data, reader->n_missing > 20 ? ", ..." : "");
        }
        return STATUS_OK;
}

// ---- outputs ----
static Status read_output_spec(void *context, uint32_t i, JsonText item)
{
        SpecReader *reader = context;
        const char *kind, *value, *target;
        JsonText body, fields[2];
        size_t row = 0;
        TRY(open_spec(item, reader->graph->scratch, &kind, &body));
        while (row < ARRAY_LENGTH(output_kinds) && strcmp(kind, output_kinds[row].kind) != 0)
                row++;
        if (row == ARRAY_LENGTH(output_kinds))
                return fail(STATUS_UNSUPPORTED, "output %u is a %s, which cannot be run here", i, kind);
        const char *names[] = { "arg",
                                output_kinds[row].target_key == NULL ? "" : output_kinds[row].target_key };
        TRY(json_text_fields(body, "an output of the signature", reader->graph->scratch, names, 2, fields));
        TRY(read_arg_name(fields[0], strcmp(kind, "user_output") == 0, reader->graph->scratch, &value));
        Output *output = &reader->signature->outputs[i];
        output->kind = output_kinds[row].output;
        output->arg = reader->outputs.kind == VALUE_TUPLE ? reader->outputs.seq->items[i] : reader->outputs;
        if (value != NULL &&
            (output->arg.kind != VALUE_NODE || pt2_value_node(reader->graph, value) != output->arg.node))
                return fail(STATUS_MALFORMED,
                            "output %u of the signature is \"%s\", but the graph returns another value there",
                            i, value);
        if (output->kind == OUTPUT_USER)
                return STATUS_OK;
        TRY(json_text_string(fields[1], reader->graph->scratch, &target));
        if (output_kinds[row].target_key == NULL)
                target = token_path(reader, i);
        if (target == NULL)
                return fail(STATUS_MALFORMED, "output %u of the signature has no \"%s\"", i, names[1]);
        if (output->kind == OUTPUT_STATE_MUTATION && graph_state(reader->graph->graph, target) == NULL)
                return fail(STATUS_MALFORMED, "output %u writes \"%s\", which is no weight of the graph", i,
                            target);
        Node *input = output->kind == OUTPUT_INPUT_MUTATION ? pt2_value_node(reader->graph, target) : NULL;
        if (output->kind == OUTPUT_INPUT_MUTATION && (input == NULL || input->op != OP_PLACEHOLDER))
                return fail(STATUS_MALFORMED, "output %u writes \"%s\", which is no input of the graph", i,
                            target);
        return copy_text_to(reader->arena, target, &output->target);
}

static Status read_outputs(SpecReader *reader, JsonText specs)
{
        uint32_t n = 0;
        reader->outputs = reader->graph->graph->output->args.seq->items[0];
        uint32_t n_graph = reader->outputs.kind == VALUE_TUPLE ? reader->outputs.seq->n : 1;
        TRY(each_item(specs, reader->graph->scratch, count_item, &n));
        if (n != n_graph)
                return fail(STATUS_MALFORMED, "the signature has %u outputs and the graph %u", n, n_graph);
        reader->signature->outputs = arena_array(reader->arena, n + 1u, sizeof(Output));
        if (reader->signature->outputs == NULL)
                return fail_memory();
        reader->signature->n_outputs = n;
        return each_item(specs, reader->graph->scratch, read_output_spec, reader);
}

// ---- structure ----
typedef struct TextList {
        Arena *scratch, *arena;
        const char **items;
        uint32_t capacity;
} TextList;

static Status add_text(void *context, uint32_t i, JsonText item)
{
        TextList *list = context;
        const char *text;
        TRY(json_text_string(item, list->scratch, &text));
        return copy_text_to(list->arena, text, &list->items[i]);
}

static Status read_texts(JsonText text, Arena *scratch, Arena *arena, const char ***out_items,
                         uint32_t *out_n)
{
        uint32_t n = 0;
        TRY(each_item(text, scratch, count_item, &n));
        TextList list = { .scratch = scratch,
                          .arena = arena,
                          .items = arena_array(arena, n + 1u, sizeof(char *)) };
        if (list.items == NULL)
                return fail_memory();
        TRY(each_item(text, scratch, add_text, &list));
        *out_items = list.items;
        *out_n = n;
        return STATUS_OK;
}

typedef struct RootEntry {
        Arena *scratch;
        JsonText signature;
} RootEntry;

static Status find_root_entry(void *context, uint32_t i, JsonText item)
{
        (void)i;
        static const char *const names[] = { "fqn", "signature" };
        RootEntry *root = context;
        JsonText fields[2];
        const char *fqn;
        if (root->signature.n != 0)
                return STATUS_OK;
        TRY(json_text_fields(item, "an entry of \"module_call_graph\"", root->scratch, names, 2, fields));
        TRY(json_text_string(fields[0], root->scratch, &fqn));
        if (fqn != NULL && fqn[0] == '\0')
                root->signature = fields[1];
        return STATUS_OK;
}

static Status read_structure(SpecReader *reader, const Pt2SignatureText *text)
{
        static const char *const names[] = { "in_spec", "out_spec", "forward_arg_names" };
        Arena *scratch = reader->graph->scratch;
        RootEntry root = { .scratch = scratch };
        JsonText fields[3];
        const char *in_spec, *out_spec;
        Signature *signature = reader->signature;
        TRY(each_item(text->module_call_graph, scratch, find_root_entry, &root));
        if (root.signature.n == 0)
                return fail(STATUS_MALFORMED, "\"module_call_graph\" has no entry with fqn \"\": the "
                                              "structure of the arguments is not known");
        TRY(json_text_fields(root.signature, "the call signature", scratch, names, 3, fields));
        TRY(json_text_string(fields[0], scratch, &in_spec));
        TRY(json_text_string(fields[1], scratch, &out_spec));
        if (in_spec == NULL || out_spec == NULL)
                return fail(STATUS_MALFORMED, "the call signature has no \"in_spec\" or \"out_spec\"");
        TRY(failure_at_argument(
                pt2_tree_read(in_spec, text->namedtuple_fields, scratch, reader->arena, &signature->in_tree),
                "in_spec"));
        TRY(failure_at_argument(pt2_tree_check_keys(signature->in_tree), "in_spec"));
        TRY(failure_at_argument(pt2_tree_read(out_spec, text->namedtuple_fields, scratch, reader->arena,
                                              &signature->out_tree),
                                "out_spec"));
        const Tree *in_tree = signature->in_tree;
        if (in_tree->kind != TREE_TUPLE || in_tree->n != 2 || in_tree->children[0]->kind != TREE_TUPLE ||
            in_tree->children[1]->kind != TREE_DICT)
                return fail(STATUS_MALFORMED,
                            "in_spec is not a pair of positional and keyword arguments, a tuple and a dict");
        uint32_t n_user_outputs = 0;
        for (uint32_t i = 0; i < signature->n_outputs; i++)
                n_user_outputs += signature->outputs[i].kind == OUTPUT_USER;
        if (signature->in_tree->n_leaves != signature->n_user_inputs ||
            signature->out_tree->n_leaves != n_user_outputs)
                return fail(STATUS_MALFORMED,
                            "in_spec has %u leaves for %u inputs, out_spec %u for %u outputs",
                            signature->in_tree->n_leaves, signature->n_user_inputs,
                            signature->out_tree->n_leaves, n_user_outputs);
        if (fields[2].n == 0)
                return STATUS_OK;
        return read_texts(fields[2], scratch, reader->arena, &signature->argument_names,
                          &signature->n_arguments);
}

static Status read_ranges(SpecReader *reader, JsonText text)
{
        static const char *const names[] = { "min_val", "max_val" };
        Arena *scratch = reader->graph->scratch;
        if (text.n == 0)
                return STATUS_OK;
        _cleanup_(json_closep) JsonReader *json = NULL;
        TRY(json_text_open(text, scratch, &json));
        TRY(json_enter_object(json));
        uint32_t capacity = 0;
        _cleanup_(freep) SymbolRange *ranges = NULL;
        uint32_t n = 0;
        for (;; n++) {
                const char *symbol;
                bool more;
                JsonText raw, fields[2];
                TRY(json_next_key(json, &symbol, &more));
                if (!more)
                        break;
                TRY(json_read_raw(json, &raw.text, &raw.n));
                TRY(json_text_fields(raw, "a range constraint", scratch, names, 2, fields));
                TRY(array_reserve(&ranges, &capacity, n + 1, sizeof(*ranges)));
                TRY(json_text_int(fields[0], scratch, INT64_MIN, &ranges[n].min));
                TRY(json_text_int(fields[1], scratch, INT64_MAX, &ranges[n].max));
                TRY(copy_text_to(reader->arena, symbol, &ranges[n].symbol));
        }
        reader->signature->ranges = arena_array(reader->arena, n + 1u, sizeof(*ranges));
        if (reader->signature->ranges == NULL)
                return fail_memory();
        if (n > 0)
                memcpy(reader->signature->ranges, ranges, n * sizeof(*ranges));
        reader->signature->n_ranges = n;
        return STATUS_OK;
}

static void spec_reader_deinit(SpecReader *reader)
{
        text_deinit(&reader->missing);
}

Status pt2_signature_read(const Pt2SignatureText *text, Pt2Graph *graph)
{
        static const char *const names[] = { "input_specs", "output_specs" };
        JsonText specs[2];
        _cleanup_(spec_reader_deinit) SpecReader reader = { .graph = graph,
                                                            .signature = &graph->graph->signature,
                                                            .arena = &graph->graph->arena };
        TRY(json_text_fields(text->signature, "\"signature\"", graph->scratch, names, 2, specs));
        TRY(read_inputs(&reader, specs[0]));
        TRY(read_outputs(&reader, specs[1]));
        TRY(read_structure(&reader, text));
        TRY(read_ranges(&reader, text->range_constraints));
        TRY(read_texts(text->guards, graph->scratch, reader.arena, &reader.signature->guards,
                       &reader.signature->n_guards));
        const char **verifiers;
        uint32_t n_verifiers;
        TRY(read_texts(text->verifiers, graph->scratch, reader.arena, &verifiers, &n_verifiers));
        reader.signature->ir = n_verifiers > 0 ? verifiers[0] : NULL;
        return STATUS_OK;
}
