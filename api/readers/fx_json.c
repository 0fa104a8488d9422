// SPDX-License-Identifier: Apache-2.0
// fx_json.c: the document and its nodes. Members may come in any order. Nodes are added as they are
// read, so that arguments find the nodes before them. Child graphs are read inside their module
// (recursion, at most limits.max_child_graphs deep). When everything is read, the weights are
// assigned; then every graph is finished, children first.
#include "api/readers/fx_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json_parts.h"
#include "api/readers/node_place.h"
#include "api/formats/tensor_json.h"
#include "core/base/limits.h"
#include "core/graph/expr.h"
#include "core/graph/print.h"

enum { MAX_TYPE_BYTES = 1000, MAX_DIMENSION_BYTES = 4000, MAX_NAME_BYTES = 1000 };

// ---- places ----

size_t fx_enter(FxReader *reader, const char *format, ...)
{
        size_t outer = reader->n_place;
        va_list args;
        va_start(args, format);
        int n = vsnprintf(reader->place + outer, sizeof(reader->place) - outer, format, args);
        va_end(args);
        reader->n_place = MIN(outer + (size_t)MAX(n, 0), sizeof(reader->place) - 1);
        return outer;
}

void fx_leave(FxReader *reader, size_t outer)
{
        reader->n_place = outer;
        reader->place[outer] = '\0';
}

Status fx_unknown_member(const char *what, const char *key, const char *known)
{
        return fail(STATUS_UNKNOWN_MEMBER, "%s has no member \"%.60s\"; it knows %s", what, key, known);
}

Status fx_check_size(const FxReader *reader)
{
        size_t n = json_tell(reader->json) - reader->data_bytes;
        if (n > (size_t)limits.max_graph_json)
                return fail(STATUS_TOO_LARGE,
                            "the graph has more than %lld bytes without its tensor data (--max-graph-json); "
                            "send weights apart, or as "
                            "\"data\" and \"b64\" only",
                            (long long)limits.max_graph_json);
        return STATUS_OK;
}

// ---- nodes ----

void fx_node_deinit(FxNode *parts)
{
        value_unref(parts->args);
        value_unref(parts->kwargs);
        text_deinit(&parts->notes);
}

Status fx_read_word(FxReader *reader, const char **out_word)
{
        if (json_peek(reader->json) != JSON_STRING)
                return fail(STATUS_MALFORMED, "a text is expected here");
        return json_read_string(reader->json, out_word, NULL);
}

Status fx_read_opcode(FxReader *reader, Opcode *out_op)
{
        const char *name;
        TRY(fx_read_word(reader, &name));
        for (int op = OP_PLACEHOLDER; op <= OP_OUTPUT; op++) {
                if (strcmp(name, opcode_names[op]) == 0) {
                        *out_op = (Opcode)op;
                        return STATUS_OK;
                }
        }
        return fail(STATUS_LINT,
                    "unknown opcode \"%.60s\"; it knows placeholder, get_attr, call_function, call_method, "
                    "call_module, output",
                    name);
}

Status fx_read_dimension(FxReader *reader, const Graph *graph, SymDim *out_dim)
{
        if (json_peek(reader->json) == JSON_NUMBER) {
                TRY(json_read_int(reader->json, &out_dim->value));
                if (out_dim->value < 0)
                        return fail(STATUS_VALUE, "a size is negative; write a name, for example \"N\", "
                                                  "where any size will do");
                out_dim->expr = NULL;
                return STATUS_OK;
        }
        const char *text;
        size_t n;
        TRY(fx_read_word(reader, &text));
        n = strlen(text);
        if (n == 0 || n > MAX_DIMENSION_BYTES)
                return fail(STATUS_VALUE, "the name of a dimension has 1 to %d characters",
                            MAX_DIMENSION_BYTES);
        Expr *expr;
        TRY(expr_parse(text, &reader->scratch, &expr));
        *out_dim = (SymDim){ .value = -1, .expr = arena_text((Arena *)(uintptr_t)&graph->arena, text, n) };
        return out_dim->expr == NULL ? fail_memory() : STATUS_OK;
}

static Status read_shape(FxReader *reader, const Graph *graph, TensorSpec *spec)
{
        if (json_peek(reader->json) == JSON_NULL)
                return json_read_null(reader->json);
        TRY(json_enter_array(reader->json));
        spec->rank = 0;
        for (bool more;;) {
                TRY(json_next_item(reader->json, &more));
                if (!more)
                        return STATUS_OK;
                if (spec->rank == MAX_RANK)
                        return fail(STATUS_VALUE, "a shape has more than %d dimensions", MAX_RANK);
                TRY(fx_read_dimension(reader, graph, &spec->size[spec->rank]));
                spec->rank++;
        }
}

// Other members that an exporter notes are kept as written.
static Status add_note(const char *key, const char *raw, size_t n, Text *notes)
{
        text_add(notes, notes->n == 0 ? "" : ", ");
        text_add_json(notes, key);
        text_add(notes, ": ");
        text_add_n(notes, raw, n);
        return text_status(notes);
}

// "2*s39": the expression of a symbolic number. Any other text is a note.
static Status read_symbol(FxReader *reader, const char *key, FxNode *parts)
{
        const char *text;
        Expr *expr;
        TRY(fx_read_word(reader, &text));
        bool one_line = text[0] != '\0' && strlen(text) <= MAX_DIMENSION_BYTES;
        if (one_line && expr_parse(text, &reader->scratch, &expr) == STATUS_OK) {
                parts->symbol = text;
                return STATUS_OK;
        }
        _cleanup_(text_deinit) Text quoted = { 0 };
        text_add_json(&quoted, text);
        TRY(text_status(&quoted));
        return add_note(key, quoted.data, quoted.n, &parts->notes);
}

static Status read_note(FxReader *reader, const char *key, FxNode *parts)
{
        const char *raw;
        size_t n;
        if (strcmp(key, "symbol") == 0 && json_peek(reader->json) == JSON_STRING)
                return read_symbol(reader, key, parts);
        if (strcmp(key, "stack_trace") == 0 && json_peek(reader->json) == JSON_STRING)
                return json_read_string(reader->json, &parts->stack_trace, NULL);
        TRY(json_read_raw(reader->json, &raw, &n));
        if (strcmp(key, "nn_module_stack") != 0 || !is_module_stack(raw, n))
                return add_note(key, raw, n, &parts->notes);
        parts->module_stack = raw;
        parts->n_module_stack = n;
        return STATUS_OK;
}

// {"dtype": "float32", "shape": ["N", 10]}
static Status read_meta(FxReader *reader, const Graph *graph, FxNode *parts)
{
        parts->spec = (TensorSpec){ .dtype = DTYPE_NONE, .rank = -1 };
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key, *name;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                size_t outer = fx_enter(reader, ".%.60s", key);
                if (strcmp(key, "dtype") == 0) {
                        TRY(fx_read_word(reader, &name));
                        parts->spec.dtype = dtype_from_name(name);
                        if (parts->spec.dtype == DTYPE_NONE)
                                return fail(
                                        STATUS_VALUE,
                                        "unknown dtype \"%.60s\"; for example float32, float16, int64, bool",
                                        name);
                } else if (strcmp(key, "shape") == 0) {
                        TRY(read_shape(reader, graph, &parts->spec));
                } else {
                        TRY(read_note(reader, key, parts));
                }
                fx_leave(reader, outer);
        }
        parts->has_spec = parts->spec.dtype != DTYPE_NONE || parts->spec.rank >= 0;
        return STATUS_OK;
}

static Status read_type(FxReader *reader, FxNode *parts)
{
        if (json_peek(reader->json) == JSON_NULL)
                return json_read_null(reader->json);
        TRY(fx_read_word(reader, &parts->type));
        if (parts->type[0] == '\0' || strlen(parts->type) > MAX_TYPE_BYTES ||
            strpbrk(parts->type, "\n\r") != NULL)
                return fail(STATUS_VALUE, "a type is one line of 1 to %d characters", MAX_TYPE_BYTES);
        return STATUS_OK;
}

static Status read_line(FxReader *reader, const char **out_text)
{
        TRY(fx_read_word(reader, out_text));
        if (**out_text == '\0' || strlen(*out_text) > MAX_NAME_BYTES || strpbrk(*out_text, "\n\r") != NULL)
                return fail(STATUS_VALUE, "a name is one line of 1 to %d characters", MAX_NAME_BYTES);
        return STATUS_OK;
}

static Status read_node_member(FxReader *reader, const Graph *graph, const char *key, FxNode *parts)
{
        if (strcmp(key, "op") == 0) {
                parts->has_op = true;
                return fx_read_opcode(reader, &parts->op);
        }
        if (strcmp(key, "name") == 0)
                return fx_read_word(reader, &parts->name);
        if (strcmp(key, "target") == 0)
                return fx_read_word(reader, &parts->target);
        if (strcmp(key, "type") == 0)
                return read_type(reader, parts);
        if (strcmp(key, "meta") == 0)
                return read_meta(reader, graph, parts);
        if (strcmp(key, "args") == 0) {
                if (json_peek(reader->json) != JSON_ARRAY)
                        return fail(STATUS_MALFORMED, "\"args\" is a list");
                return fx_read_value(reader, graph, 0, &parts->args);
        }
        if (strcmp(key, "kwargs") == 0) {
                if (json_peek(reader->json) != JSON_OBJECT)
                        return fail(STATUS_MALFORMED, "\"kwargs\" is an object");
                TRY(fx_read_value(reader, graph, 0, &parts->kwargs));
                return parts->kwargs.kind == VALUE_DICT
                               ? STATUS_OK
                               : fail(STATUS_MALFORMED,
                                      "\"kwargs\" is an object of arguments by name, no \"$\" form");
        }
        if (strcmp(key, "origin") == 0)
                return read_line(reader, &parts->origin);
        return fx_unknown_member("a node", key, "op, name, target, args, kwargs, type, meta, origin");
}

Status fx_keep_text(Graph *graph, const char *text, const char **out_copy)
{
        *out_copy = text == NULL ? NULL : arena_text(&graph->arena, text, strlen(text));
        return text != NULL && *out_copy == NULL ? fail_memory() : STATUS_OK;
}

// What is there fits; "args" becomes a tuple.
static Status check_node(FxNode *parts)
{
        if (!parts->has_op)
                return fail(STATUS_MALFORMED, "a node needs \"op\"");
        if (parts->target == NULL && parts->op != OP_OUTPUT)
                return fail(STATUS_MALFORMED, "a node needs \"target\"");
        if (parts->target == NULL)
                parts->target = "output";
        if (parts->op == OP_OUTPUT && strcmp(parts->target, "output") != 0)
                return fail(STATUS_LINT, "the target of an output node is \"output\", not \"%.60s\"",
                            parts->target);
        if (parts->args.kind == VALUE_LIST)
                parts->args.kind = VALUE_TUPLE;
        return STATUS_OK;
}

static Status add_node(Graph *graph, FxNode *parts)
{
        Value args = parts->args, kwargs = parts->kwargs;
        parts->args = parts->kwargs = value_none();
        Node *node;
        TRY(graph_add_node(graph,
                           &(NodeSpec){ .op = parts->op,
                                        .name = parts->name,
                                        .target = parts->target,
                                        .args = args,
                                        .kwargs = kwargs },
                           &node));
        TRY(fx_keep_text(graph, parts->type, &node->type));
        TRY(fx_keep_text(graph, parts->notes.data, &node->notes));
        TRY(fx_keep_text(graph, parts->origin, &node->origin));
        TRY(fx_keep_text(graph, parts->symbol, &node->symbol));
        if (parts->module_stack != NULL)
                TRY(read_module_stack_json(graph, parts->module_stack, parts->n_module_stack, node));
        if (parts->stack_trace != NULL)
                TRY(graph_set_trace(graph, node, parts->stack_trace));
        if (parts->has_spec) {
                node->spec = arena_alloc(&graph->arena, sizeof(TensorSpec));
                if (node->spec == NULL)
                        return fail_memory();
                *node->spec = parts->spec;
        }
        return STATUS_OK;
}

Status fx_read_node(FxReader *reader, const Graph *graph, const char *place, FxNode *parts)
{
        size_t start = reader->n_place;
        fx_enter(reader, "%s", place);
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                size_t outer = fx_enter(reader, ", %.60s", key);
                Status status = read_node_member(reader, graph, key, parts);
                if (status != STATUS_OK)
                        return failure_at_argument(status, key);
                fx_leave(reader, outer);
                if (parts->name != NULL) {
                        fx_leave(reader, start);
                        fx_enter(reader, "node \"%.100s\"", parts->name);
                }
        }
        TRY(check_node(parts));
        fx_leave(reader, start);
        return STATUS_OK;
}

static Status read_node(FxReader *reader, Graph *graph, FxNode *parts)
{
        char place[32];
        snprintf(place, sizeof(place), "nodes[%u]", graph->n_nodes);
        TRY(fx_read_node(reader, graph, place, parts));
        size_t outer = parts->name == NULL ? fx_enter(reader, "%s", place)
                                           : fx_enter(reader, "node \"%.100s\"", parts->name);
        TRY(add_node(graph, parts));
        fx_leave(reader, outer);
        return STATUS_OK;
}

static Status read_nodes(FxReader *reader, Graph *graph)
{
        TRY(json_enter_array(reader->json));
        for (bool more;;) {
                TRY(json_next_item(reader->json, &more));
                if (!more)
                        return STATUS_OK;
                _cleanup_(fx_node_deinit) FxNode parts = { 0 };
                Status status = read_node(reader, graph, &parts);
                TRY(failure_at_node(status, parts.name));
                TRY(fx_check_size(reader));
        }
}

// ---- the document ----

static Status read_format(FxReader *reader)
{
        const char *format;
        TRY(fx_read_word(reader, &format));
        if (strcmp(format, "fx-variant/1") == 0)
                return fail(STATUS_MALFORMED,
                            "a variant (\"fx-variant/1\") is uploaded by itself: PUT /v1/graphs/{name}");
        if (strcmp(format, "fx/1") != 0)
                return fail(STATUS_MALFORMED, "unknown format \"%.60s\"; this version reads \"fx/1\"",
                            format);
        return STATUS_OK;
}

static Status read_class_name(FxReader *reader, Graph *graph)
{
        const char *name;
        TRY(read_line(reader, &name));
        for (const char *c = name; *c != '\0'; c++) {
                bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
                if (!letter && (c == name || *c < '0' || *c > '9'))
                        return fail(STATUS_VALUE, "\"%.60s\" is no name of a class", name);
        }
        return fx_keep_text(graph, name, &graph->class_name);
}

static Status read_document_member(FxReader *reader, const char *key, Graph *graph)
{
        if (strcmp(key, "format") == 0)
                return read_format(reader);
        if (strcmp(key, "nodes") == 0)
                return read_nodes(reader, graph);
        if (strcmp(key, "modules") == 0)
                return fx_read_modules(reader, graph);
        if (strcmp(key, "state") == 0)
                return fx_read_state(reader, graph);
        if (strcmp(key, "signature") == 0)
                return fx_read_signature(reader, graph);
        if (strcmp(key, "hints") == 0)
                return fx_read_hints(reader, graph);
        if (strcmp(key, "pytree") == 0)
                return json_read_bool(reader->json, &graph->pytree);
        if (strcmp(key, "class_name") == 0)
                return read_class_name(reader, graph);
        return fx_unknown_member("a graph", key,
                                 "format, nodes, modules, state, signature, hints, pytree, class_name");
}

Status fx_read_graph(FxReader *reader, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        TRY(graph_new(GRAPH_FX_JSON, &graph));
        bool has_nodes = false;
        if (json_peek(reader->json) != JSON_OBJECT && json_peek(reader->json) != JSON_BAD)
                return fail(STATUS_MALFORMED,
                            "a graph is an object: {\"format\": \"fx/1\", \"nodes\": [...], ...}");
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                has_nodes |= strcmp(key, "nodes") == 0;
                TRY(failure_at_argument(read_document_member(reader, key, graph), key));
        }
        if (!has_nodes)
                return fail(STATUS_MALFORMED, "a graph needs \"nodes\"");
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

// Children first: a graph's fingerprint holds theirs.
static Status finish(FxReader *reader, Graph *graph)
{
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph == NULL)
                        continue;
                size_t outer = fx_enter(reader, "module \"%.100s\", graph, ", graph->modules[i]->path);
                TRY(finish(reader, graph->modules[i]->graph));
                fx_leave(reader, outer);
        }
        TRY(fx_complete_signature(reader, graph));
        return graph_finish(graph);
}

static Status read_document(FxReader *reader, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        TRY(json_open(reader->text, reader->n, (int)limits.max_json_depth_model, limits.max_json_values,
                      &reader->scratch, &reader->json));
        json_set_poll(reader->json, run_poll_callback, reader->poll);
        TRY(fx_read_graph(reader, &graph));
        TRY(json_finish(reader->json));
        TRY(fx_check_size(reader));
        TRY(fx_complete_state(reader, graph));
        TRY(run_poll(reader->poll));
        TRY(finish(reader, graph));
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

void fx_put_in_front(const char *place)
{
        Failure *failure = failure_current();
        size_t n = strlen(place);
        while (n > 0 && (place[n - 1] == ' ' || place[n - 1] == ','))
                n--;
        if (n == 0 || status_class(failure->status) != STATUS_CLASS_CALLER)
                return;
        size_t room = sizeof(failure->message) - n - 3, length = MIN(strlen(failure->message), room);
        memmove(failure->message + n + 2, failure->message, length);
        memcpy(failure->message, place, n);
        memcpy(failure->message + n, ": ", 2);
        failure->message[n + 2 + length] = '\0';
}

Status fx_json_read(const char *text, size_t n, const FxStateSource *state, Graph **out_graph)
{
        return fx_json_read_within(text, n, state, NULL, out_graph);
}

Status fx_json_read_within(const char *text, size_t n, const FxStateSource *state, const RunContext *poll,
                           Graph **out_graph)
{
        FxReader reader = { .text = text, .n = n, .source = state, .poll = poll };
        arena_init(&reader.scratch, 0);
        Status status = read_document(&reader, out_graph);
        if (status != STATUS_OK)
                fx_put_in_front(reader.place);
        json_close(reader.json);
        fx_state_deinit(&reader);
        fx_signatures_deinit(&reader);
        arena_deinit(&reader.scratch);
        return status;
}

// ---- writing ----

static Status write_data(void *context, const State *state, Text *out)
{
        (void)context;
        text_add(out, ", \"data\": ");
        return tensor_json_write(state->tensor, TENSOR_JSON_FLAT, NULL, SIZE_MAX, out);
}

Status fx_json_write(const Graph *graph, bool with_data, Text *out)
{
        return graph_print_json(graph, with_data ? write_data : NULL, NULL, out);
}
