// SPDX-License-Identifier: Apache-2.0
// print_code.c: GraphModule.code, byte for byte as torch.fx 2.13 generates it: three newlines, the
// function, every body line indented by four, four blanks at the end. Names come from a fresh
// namespace, asked for in the order of PyTorch's generator: the order decides which name gets the
// suffix "_1".
#include <string.h>
#include "core/graph/print_forms.h"

typedef struct Printer {
        const Graph *graph;
        CodeNames names;
        Naming naming;
        Text parameters, body;
        Text flat, annotated; // pytree: names of the placeholders, and "name : type" of those that have one
        Text returns;         // " -> type"
        bool readable;        // with shapes and lines of Python
        Text summary;         // the last line of Python
} Printer;

typedef struct Operator {
        const char *name, *before, *between, *after;
} Operator;

// Functions of _operator that are written as operators: before a between b after.
static const Operator operators[] = {
        { "eq", "", " == ", "" },       { "ne", "", " != ", "" },     { "lt", "", " < ", "" },
        { "gt", "", " > ", "" },        { "le", "", " <= ", "" },     { "ge", "", " >= ", "" },
        { "pos", "+", NULL, "" },       { "neg", "-", NULL, "" },     { "invert", "~", NULL, "" },
        { "add", "", " + ", "" },       { "sub", "", " - ", "" },     { "mul", "", " * ", "" },
        { "floordiv", "", " // ", "" }, { "truediv", "", " / ", "" }, { "div", "", " / ", "" },
        { "mod", "", " % ", "" },       { "pow", "", " ** ", "" },    { "lshift", "", " << ", "" },
        { "rshift", "", " >> ", "" },   { "and_", "", " & ", "" },    { "or_", "", " | ", "" },
        { "xor", "", " ^ ", "" },       { "getitem", "", "[", "]" },  { "matmul", "", " @ ", "" },
};
static const Operator inplace_operators[] = {
        { "iadd", "", " += ", "" },     { "iand", "", " &= ", "" },     { "ifloordiv", "", " //= ", "" },
        { "ilshift", "", " <<= ", "" }, { "imod", "", " %= ", "" },     { "imul", "", " *= ", "" },
        { "imatmul", "", " @= ", "" },  { "ior", "", " |= ", "" },      { "ipow", "", " **= ", "" },
        { "irshift", "", " >>= ", "" }, { "isub", "", " -= ", "" },     { "itruediv", "", " /= ", "" },
        { "ixor", "", " ^= ", "" },     { "setitem", "", "[", "] = " },
};

static const Operator *find_operator(const char *target, const Operator *table, size_t n)
{
        if (strncmp(target, "_operator.", 10) != 0)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                if (strcmp(target + 10, table[i].name) == 0)
                        return &table[i];
        }
        return NULL;
}

static const char *name_of(void *context, const Node *node)
{
        Printer *printer = context;
        const char **name = &printer->names.nodes[node->index];
        if (*name == NULL && printer->names.status == STATUS_OK)
                printer->names.status = namespace_create(&printer->names.space, &printer->names.arena,
                                                         node->name, false, name);
        return *name == NULL ? node->name : *name;
}

static void add_value(Printer *printer, Value value, Text *out)
{
        python_repr(value, &printer->naming, out);
}

// base.a.b, or getattr(base, "0") for parts that are no identifiers.
static void add_path(const Text *base, const char *path, Text *out)
{
        size_t n_odd = 0;
        for (const char *at = path;; at++) {
                size_t n = strcspn(at, ".");
                n_odd += !python_is_identifier(at, n);
                at += n;
                if (*at == '\0')
                        break;
        }
        for (size_t i = 0; i < n_odd; i++)
                text_add(out, "getattr(");
        text_add_n(out, base->data == NULL ? "" : base->data, base->n);
        for (const char *at = path;; at++) {
                size_t n = strcspn(at, ".");
                bool plain = python_is_identifier(at, n);
                text_add(out, plain ? "." : ", \"");
                text_add_n(out, at, n);
                text_add(out, plain ? "" : "\")");
                at += n;
                if (*at == '\0')
                        break;
        }
}

static void add_arguments(Printer *printer, const Node *node, uint32_t from)
{
        const Seq *args = node->args.seq;
        const Dict *kwargs = node->kwargs.dict;
        const char *separator = "";
        for (uint32_t i = from; i < args->n; i++, separator = ", ") {
                text_add(&printer->body, separator);
                add_value(printer, args->items[i], &printer->body);
        }
        for (uint32_t i = 0; i < kwargs->n; i++, separator = ", ") {
                text_addf(&printer->body, "%s%s = ", separator, kwargs->items[i].key->text);
                add_value(printer, kwargs->items[i].value, &printer->body);
        }
}

// "name : type = "; the annotation's globals are asked for before the node's own name.
static void add_assignment(Printer *printer, const Node *node, const char *annotation)
{
        text_add(&printer->body, name_of(printer, node));
        text_add(&printer->body, annotation);
        text_add(&printer->body, " = ");
}

static void add_operator(Printer *printer, const Operator *form, const Seq *args)
{
        Text *out = &printer->body;
        text_add(out, form->before);
        add_value(printer, args->items[0], out);
        if (form->between != NULL) {
                text_add(out, form->between);
                add_value(printer, args->items[1], out);
        }
        text_add(out, form->after);
}

static bool is_plain_getattr(const Node *node)
{
        const Seq *args = node->args.seq;
        return strcmp(node->target, "getattr") == 0 && args->n == 2 && args->items[1].kind == VALUE_STR &&
               python_is_identifier(args->items[1].str->text, args->items[1].str->n);
}

static void add_path_of_value(Printer *printer, Value base, const char *path)
{
        Text text = { 0 };
        add_value(printer, base, &text);
        add_path(&text, path, &printer->body);
        printer->body.failed |= text.failed;
        text_deinit(&text);
}

static void print_function(Printer *printer, const Node *node, const char *annotation)
{
        const Seq *args = node->args.seq;
        const Operator *infix = find_operator(node->target, operators, ARRAY_LENGTH(operators));
        const Operator *inplace =
                find_operator(node->target, inplace_operators, ARRAY_LENGTH(inplace_operators));
        if (infix != NULL && args->n >= (infix->between == NULL ? 1 : 2)) {
                add_assignment(printer, node, annotation);
                add_operator(printer, infix, args);
        } else if (inplace != NULL && args->n >= (inplace->after[0] == '\0' ? 2 : 3)) {
                add_operator(printer, inplace, args);
                if (inplace->after[0] != '\0')
                        add_value(printer, args->items[2], &printer->body);
                text_add(&printer->body, ";  ");
                add_assignment(printer, node, annotation);
                add_value(printer, args->items[0], &printer->body);
        } else if (is_plain_getattr(node)) {
                code_global(&printer->names, node->target);
                add_assignment(printer, node, annotation);
                add_path_of_value(printer, args->items[0], args->items[1].str->text);
        } else {
                const char *global = code_global(&printer->names, node->target);
                add_assignment(printer, node, annotation);
                text_add(&printer->body, global);
                text_add_char(&printer->body, '(');
                add_arguments(printer, node, 0);
                text_add_char(&printer->body, ')');
        }
}

// A parameter of forward; a name that is taken gets a line of its own: "input_1 = input".
static void print_placeholder(Printer *printer, const Node *node, const char *annotation)
{
        Text *out = &printer->parameters;
        bool first = out->n == 0 && printer->flat.n == 0;
        if (first && (strcmp(node->target, "self") != 0 || annotation[0] != '\0' || node->args.seq->n > 0))
                text_add(out, "self");
        text_add(out, out->n > 0 ? ", " : "");
        text_add(out, node->target);
        text_add(out, annotation);
        if (node->args.seq->n > 0) {
                text_add(out, " = ");
                add_value(printer, node->args.seq->items[0], out);
        }
        // Pytree code strips what follows the colon, and keeps the blank before it.
        text_addf(&printer->flat, "%s%s%s", printer->flat.n > 0 ? ", " : "", node->target,
                  annotation[0] == ' ' ? " " : "");
        if (annotation[0] != '\0')
                text_addf(&printer->annotated, "%s%s; ", node->target, annotation);
        const char *raw = node->target + strspn(node->target, "*"), *name = name_of(printer, node);
        if (strcmp(raw, name) != 0)
                text_addf(&printer->body, "    %s = %s\n", name, raw);
}

static void print_frees(Printer *printer, const Node *node)
{
        for (uint32_t i = 0; i < node->n_frees; i++)
                text_addf(&printer->body, "%s%s", i == 0 ? ";  " : " = ", name_of(printer, node->frees[i]));
        text_add(&printer->body, node->n_frees > 0 ? " = None\n" : "\n");
}

static void print_output(Printer *printer, const Node *node, const char *annotation)
{
        bool unflatten = printer->graph->pytree && printer->graph->signature.out_tree != NULL;
        if (annotation[0] != '\0')
                text_addf(&printer->returns, " -> %s", annotation + 3);
        text_add(&printer->body, unflatten ? "return pytree.tree_unflatten(" : "return ");
        add_value(printer, node->args.seq->items[0], &printer->body);
        text_add(&printer->body, unflatten ? ", self._out_spec)" : "");
}

static void print_node(Printer *printer, const Node *node, const char *annotation)
{
        static const Text self = { .data = (char *)(uintptr_t) "self", .n = 4 };
        if (node->op == OP_PLACEHOLDER) {
                print_placeholder(printer, node, annotation);
                return;
        }
        text_add(&printer->body, "    ");
        if (node->op == OP_CALL_FUNCTION) {
                print_function(printer, node, annotation);
        } else if (node->op == OP_OUTPUT) {
                print_output(printer, node, annotation);
        } else {
                add_assignment(printer, node, annotation);
                if (node->op == OP_CALL_METHOD)
                        add_path_of_value(printer, node->args.seq->items[0], node->target);
                else
                        add_path(&self, node->target, &printer->body);
                if (node->op != OP_GET_ATTR) {
                        text_add_char(&printer->body, '(');
                        add_arguments(printer, node, node->op == OP_CALL_METHOD ? 1 : 0);
                        text_add_char(&printer->body, ')');
                }
        }
        print_frees(printer, node);
}

// The line of Python, where it is another than that of the node before.
static void print_summary(Printer *printer, const Node *node)
{
        Text summary = { 0 };
        readable_summary(node, &summary);
        printer->body.failed |= summary.failed;
        if (summary.failed || (printer->summary.n == summary.n &&
                               memcmp(printer->summary.data, summary.data, summary.n) == 0)) {
                text_deinit(&summary);
                return;
        }
        text_deinit(&printer->summary);
        printer->summary = summary;
        text_addf(&printer->body, "%s    # %s\n", printer->body.n == 0 ? "" : "\n", summary.data);
}

static void print_nodes(Printer *printer)
{
        for (uint32_t i = 0; i < printer->graph->n_nodes; i++) {
                const Node *node = printer->graph->nodes[i];
                Text annotation = { 0 };
                if (node->type != NULL) {
                        text_add(&annotation, " : ");
                        code_annotation(&printer->names, node->type, &annotation);
                }
                if (printer->readable && node->op != OP_OUTPUT)
                        readable_annotation(node, &annotation);
                if (printer->readable && node->op != OP_OUTPUT && node->op != OP_PLACEHOLDER)
                        print_summary(printer, node);
                print_node(printer, node, annotation.data == NULL ? "" : annotation.data);
                printer->body.failed |= annotation.failed;
                text_deinit(&annotation);
        }
}

// ---- the function's head ----

static bool has_args_and_kwargs(const Tree *tree)
{
        return tree->kind == TREE_TUPLE && tree->n == 2 && tree->children[0]->kind == TREE_TUPLE &&
               tree->children[1]->kind == TREE_DICT;
}

static void add_names(const char **names, uint32_t from, uint32_t to, Text *out)
{
        for (uint32_t i = from; i < to; i++)
                text_addf(out, "%s%s", i == from ? "" : ", ", names[i]);
}

// With pytrees, forward takes the user's arguments and flattens them into the placeholders.
static void print_pytree_head(const Printer *printer, Text *out)
{
        const Signature *signature = &printer->graph->signature;
        uint32_t n = signature->n_arguments;
        bool own_self = n > 0 && strcmp(signature->argument_names[0], "self") == 0;
        text_addf(out, "def forward(%s", own_self ? "" : n > 0 ? "self, " : "self");
        add_names(signature->argument_names, 0, n, out);
        text_addf(out, ")%s:", printer->returns.data == NULL ? "" : printer->returns.data);
        if (printer->flat.n == 0)
                return;
        if (printer->annotated.n > 0)
                text_addf(out, "\n    %s\n", printer->annotated.data);
        text_addf(out, "\n    %s%s, = fx_pytree.tree_flatten_spec(", own_self ? "self, " : "",
                  printer->flat.data);
        if (has_args_and_kwargs(signature->in_tree)) {
                const Tree *kwargs = signature->in_tree->children[1];
                uint32_t n_args = MIN(signature->in_tree->children[0]->n, n);
                text_add(out, "([");
                add_names(signature->argument_names, 0, n_args, out);
                text_add(out, "], {");
                for (uint32_t i = 0; i < kwargs->n && n_args + i < n; i++)
                        text_addf(out, "%s'%s':%s", i == 0 ? "" : ", ", kwargs->keys[i],
                                  signature->argument_names[n_args + i]);
                text_add(out, "}), self._in_spec)");
        } else {
                text_add_char(out, '[');
                add_names(signature->argument_names, 0, n, out);
                text_add(out, "], self._in_spec)");
        }
}

static void print_head(const Printer *printer, Text *out)
{
        text_add(out, "\n\n\n");
        if (printer->graph->pytree && printer->graph->signature.in_tree != NULL) {
                print_pytree_head(printer, out);
        } else {
                text_addf(out, "def forward(%s)%s:",
                          printer->parameters.n == 0 ? "self" : printer->parameters.data,
                          printer->returns.data == NULL ? "" : printer->returns.data);
        }
        text_add_char(out, '\n');
}

// Globals that every generated function has, in torch.fx's order.
static void reserve_globals(CodeNames *names)
{
        static const char *const always[] = { "inf",    "nan",       "NoneType", "torch",
                                              "device", "fx_pytree", "pytree" };
        for (size_t i = 0; i < ARRAY_LENGTH(always); i++)
                code_global(names, always[i]);
        if (names->status == STATUS_OK)
                names->status =
                        string_map_set(&names->globals, "torch.device", (void *)(uintptr_t) "device", NULL);
}

Status print_function_code(const Graph *graph, bool readable, Text *out)
{
        _cleanup_(freep) const char **nodes = new_array(graph->n_nodes, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        Printer printer = { .graph = graph,
                            .names = { .nodes = nodes },
                            .naming = { .name = name_of },
                            .readable = readable };
        printer.naming.context = &printer;
        arena_init(&printer.names.arena, 0);
        reserve_globals(&printer.names);
        print_nodes(&printer);
        Status status = printer.names.status;
        if (status == STATUS_OK &&
            (printer.parameters.failed || printer.flat.failed || printer.annotated.failed ||
             printer.returns.failed || printer.body.failed))
                status = fail_memory();
        if (status == STATUS_OK) {
                print_head(&printer, out);
                text_add_n(out, printer.body.data, printer.body.n);
                text_add(out, "    ");
                status = text_status(out);
        }
        text_deinit(&printer.parameters);
        text_deinit(&printer.flat);
        text_deinit(&printer.annotated);
        text_deinit(&printer.returns);
        text_deinit(&printer.summary);
        text_deinit(&printer.body);
        string_map_deinit(&printer.names.globals);
        namespace_deinit(&printer.names.space);
        arena_deinit(&printer.names.arena);
        return status;
}
