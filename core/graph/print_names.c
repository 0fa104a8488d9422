// SPDX-License-Identifier: Apache-2.0
// print_names.c: what things are called in generated code. torch.fx gives the code one fresh
// namespace for locals and globals. Objects from torch keep their qualified name; everything else
// becomes a global whose name is made by the naming rule (math.floor -> math_floor), on first use.
#include <string.h>
#include "core/base/limits.h"
#include "core/graph/print_forms.h"

static const char *const python_methods[] = {
#define PYTHON_METHOD(name) name,
#include "core/graph/spelling.def"
#undef PYTHON_METHOD
};

// torch.Tensor's methods written in C have no module; only the Python ones count as torch's own.
static bool is_method_of_torch(const char *method)
{
        for (size_t i = 0; i < ARRAY_LENGTH(python_methods); i++) {
                if (strcmp(python_methods[i], method) == 0)
                        return true;
        }
        return false;
}

// The object's module is torch or below, but not below torch._dynamo or torch._inductor.
static bool is_from_torch(const char *name)
{
        if (strncmp(name, "torch.", 6) != 0 || strcmp(name, "torch.device") == 0)
                return false;
        if (strncmp(name, "torch.Tensor.", 13) == 0)
                return is_method_of_torch(name + 13);
        const char *last = strrchr(name, '.');
        const char *dynamo = strstr(name, "._dynamo."), *inductor = strstr(name, "._inductor.");
        return (dynamo == NULL || dynamo + 8 >= last) && (inductor == NULL || inductor + 10 >= last);
}

const char *code_global(CodeNames *names, const char *qualified_name)
{
        if (names->status != STATUS_OK || is_from_torch(qualified_name))
                return qualified_name;
        const char *known = string_map_get(&names->globals, qualified_name);
        if (known != NULL)
                return known;
        const char *name = qualified_name,
                   *key = arena_text(&names->arena, qualified_name, strlen(qualified_name));
        names->status = key == NULL ? fail_memory()
                                    : namespace_create(&names->space, &names->arena, qualified_name,
                                                       strchr(qualified_name, '.') == NULL, &name);
        if (names->status == STATUS_OK)
                names->status = string_map_set(&names->globals, key, (void *)(uintptr_t)name, NULL);
        return name;
}

// ---- annotations ----

typedef struct Annotation {
        CodeNames *names;
        Text *out;
        int depth;
} Annotation;

static void add_type(Annotation *a, const char *text, size_t n);

// The class behind one of typing's generics, whose name generated code shows: typing.Sequence is
// collections.abc.Sequence. NULL: it stands for itself.
static const char *class_of_typing(const char *name, bool bare)
{
        static const char *const builtin[][2] = {
                { "List", "list" }, { "Dict", "dict" },           { "Tuple", "tuple" },
                { "Set", "set" },   { "FrozenSet", "frozenset" },
        };
        static const char *const others[][2] = {
                { "Type", "type" },
                { "Deque", "collections.deque" },
                { "DefaultDict", "collections.defaultdict" },
                { "OrderedDict", "collections.OrderedDict" },
                { "Counter", "collections.Counter" },
                { "ChainMap", "collections.ChainMap" },
                { "AbstractSet", "collections.abc.Set" },
                { "Sequence", "collections.abc.Sequence" },
                { "MutableSequence", "collections.abc.MutableSequence" },
                { "Iterable", "collections.abc.Iterable" },
                { "Iterator", "collections.abc.Iterator" },
                { "Callable", "collections.abc.Callable" },
                { "Mapping", "collections.abc.Mapping" },
                { "MutableMapping", "collections.abc.MutableMapping" },
                { "MutableSet", "collections.abc.MutableSet" },
                { "Collection", "collections.abc.Collection" },
                { "Container", "collections.abc.Container" },
                { "Generator", "collections.abc.Generator" },
                { "Hashable", "collections.abc.Hashable" },
                { "Sized", "collections.abc.Sized" },
                { "Reversible", "collections.abc.Reversible" },
                { "Awaitable", "collections.abc.Awaitable" },
                { "Coroutine", "collections.abc.Coroutine" },
        };
        // with arguments torch.fx goes back to typing.List and so on
        for (size_t i = 0; bare && i < ARRAY_LENGTH(builtin); i++) {
                if (strcmp(name, builtin[i][0]) == 0)
                        return builtin[i][1];
        }
        for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
                if (strcmp(name, others[i][0]) == 0)
                        return others[i][1];
        }
        return NULL;
}

static void add_name(Annotation *a, const char *text, size_t n, bool bare)
{
        char *name = arena_text(&a->names->arena, text, n);
        if (name == NULL) {
                a->names->status = fail_memory();
                return;
        }
        const char *found = strncmp(name, "typing.", 7) == 0 ? class_of_typing(name + 7, bare)
                            : strcmp(name, "None") == 0      ? "NoneType"
                                                             : NULL;
        text_add(a->out, code_global(a->names, found == NULL ? name : found));
}

// The end of the first item of a list separated by `separator` outside of brackets.
static size_t item_end(const char *text, size_t n, char separator)
{
        int depth = 0;
        for (size_t i = 0; i < n; i++) {
                depth += text[i] == '[' || text[i] == '(';
                depth -= text[i] == ']' || text[i] == ')';
                if (depth == 0 && text[i] == separator)
                        return i;
        }
        return n;
}

static void add_list(Annotation *a, const char *text, size_t n, char separator)
{
        for (size_t at = 0; at < n;) {
                size_t end = at + item_end(text + at, n - at, separator);
                if (at > 0)
                        text_add_char(a->out, separator);
                size_t from = at, to = end;
                while (from < to && text[from] == ' ')
                        from++;
                while (to > from && text[to - 1] == ' ')
                        to--;
                add_type(a, text + from, to - from);
                at = end + 1;
        }
}

static void add_type(Annotation *a, const char *text, size_t n)
{
        if (a->names->status != STATUS_OK)
                return;
        const char *bracket = memchr(text, '[', n);
        if (++a->depth > limits.max_nested_values || (n == 2 && memcmp(text, "()", 2) == 0)) {
                text_add_n(a->out, text, n);
        } else if (item_end(text, n, '|') < n) {
                add_list(a, text, n, '|');
        } else if (bracket == NULL || text[n - 1] != ']') {
                add_name(a, text, n, true);
        } else {
                size_t head = (size_t)(bracket - text);
                bool optional = head == 15 && memcmp(text, "typing.Optional", 15) == 0;
                add_name(a, optional ? "typing.Union" : text, optional ? 12 : head, false);
                text_add_char(a->out, '[');
                add_list(a, bracket + 1, n - head - 2, ',');
                if (optional)
                        text_add(a->out, ",NoneType");
                text_add_char(a->out, ']');
        }
        a->depth--;
}

void code_annotation(CodeNames *names, const char *type, Text *out)
{
        Annotation annotation = { .names = names, .out = out };
        add_type(&annotation, type, strlen(type));
}
