// SPDX-License-Identifier: Apache-2.0
// print_readable.c: GraphModule.print_readable, byte for byte as torch.fx 2.13 prints it: the code
// as a class, with the dtype and shape of each value that the exporter recorded, the line of Python
// that made it, and child graphs as classes within.
#include <string.h>
#include "core/graph/print_forms.h"

// ---- shapes ----

void readable_annotation(const Node *node, Text *annotation)
{
        const TensorSpec *spec = node->spec;
        if (node->symbol != NULL) {
                annotation->n = 0;
                text_addf(annotation, ": \"Sym(%s)\"", node->symbol);
        } else if (spec != NULL && spec->rank >= 0 && spec->dtype != DTYPE_NONE) {
                annotation->n = 0;
                text_addf(annotation, ": \"%s[", dtype_info[spec->dtype].short_name);
                for (int i = 0; i < spec->rank; i++) {
                        text_add(annotation, i == 0 ? "" : ", ");
                        if (spec->size[i].expr != NULL)
                                text_add(annotation, spec->size[i].expr);
                        else
                                text_add_int(annotation, spec->size[i].value);
                }
                text_add(annotation, "]\"");
        }
}

// ---- lines of Python ----

typedef struct Line {
        const char *text;
        size_t n;
} Line;

static bool is_blank(char c)
{
        return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

static Line stripped(const char *text, size_t n)
{
        while (n > 0 && is_blank(text[0])) {
                text++;
                n--;
        }
        while (n > 0 && is_blank(text[n - 1]))
                n--;
        return (Line){ text, n };
}

// `File "m.py", line 12, in forward`: the parts, as the regular expression of torch.fx finds them
// (the file's name is as long as can be).
static bool parse_place(Line line, Line *out_file, Line *out_number, Line *out_name)
{
        static const char before[] = "File \"", between[] = "\", line ", in[] = ", in ";
        const size_t n_before = sizeof(before) - 1, n_between = sizeof(between) - 1, n_in = sizeof(in) - 1;
        const char *end = line.text + line.n, *first = line.text + n_before;
        if (line.n < n_before + n_between || memcmp(line.text, before, n_before) != 0)
                return false;
        for (const char *at = end - n_between; at > first; at--) {
                if (memcmp(at, between, n_between) != 0)
                        continue;
                const char *number = at + n_between, *after = number;
                while (after < end && *after >= '0' && *after <= '9')
                        after++;
                if (after == number || (size_t)(end - after) <= n_in || memcmp(after, in, n_in) != 0)
                        continue;
                *out_file = (Line){ first, (size_t)(at - first) };
                *out_number = (Line){ number, (size_t)(after - number) };
                *out_name = (Line){ after + n_in, (size_t)(end - after) - n_in };
                return true;
        }
        return false;
}

// The innermost place of a stack trace stands last; the line below it is the code.
void readable_summary(const Node *node, Text *out)
{
        const char *trace = node->stack_trace == NULL ? "" : node->stack_trace;
        Line all = stripped(trace, strlen(trace)), file, number, name;
        const char *code = NULL, *code_end = all.text + all.n;
        for (const char *end = code_end; end > all.text;) {
                const char *start = end;
                while (start > all.text && start[-1] != '\n')
                        start--;
                Line line = stripped(start, (size_t)(end - start));
                if (code != NULL && parse_place(line, &file, &number, &name)) {
                        Line below = stripped(code, (size_t)(code_end - code));
                        text_add(out, "File: ");
                        text_add_n(out, file.text, file.n);
                        text_add_char(out, ':');
                        text_add_n(out, number.text, number.n);
                        text_add(out, " in ");
                        text_add_n(out, name.text, name.n);
                        text_add(out, ", code: ");
                        text_add_n(out, below.text, below.n);
                        return;
                }
                code = start;
                code_end = end;
                end = start > all.text ? start - 1 : start;
        }
        text_add(out, "No stacktrace found for following nodes");
}

// ---- classes ----

// Lines that hold more than blanks, indented; others are empty.
static void add_indented(const char *text, size_t indent, Text *out)
{
        for (const char *at = text;;) {
                size_t n = strcspn(at, "\n");
                if (stripped(at, n).n > 0) {
                        text_repeat(out, ' ', indent);
                        text_add_n(out, at, n);
                }
                if (at[n] == '\0')
                        return;
                text_add_char(out, '\n');
                at += n + 1;
        }
}

// Child graphs are nested at most limits.max_child_graphs deep.
static Status add_class(const Graph *graph, const char *name, size_t indent, Text *out)
{
        Text code = { 0 };
        Status status = print_function_code(graph, true, &code);
        if (status == STATUS_OK) {
                text_repeat(out, ' ', indent);
                text_addf(out, "class %s(torch.nn.Module):\n", name);
                add_indented(code.data + strspn(code.data, "\n"), indent + 4, out);
        }
        text_deinit(&code);
        for (uint32_t i = 0; i < graph->n_modules && status == STATUS_OK; i++) {
                const Module *module = graph->modules[i];
                if (module->graph == NULL || strchr(module->path, '.') != NULL)
                        continue;
                text_add_char(out, '\n');
                status = add_class(module->graph, module->path, indent + 4, out);
        }
        return status == STATUS_OK ? text_status(out) : status;
}

Status print_readable(const Graph *graph, Text *out)
{
        return add_class(graph, graph->class_name, 0, out);
}
