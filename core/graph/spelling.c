// SPDX-License-Identifier: Apache-2.0
// spelling.c: one name per function and module class: the one PyTorch prints. Short prefixes people
// type are written out first; then a table made from torch itself (tools/generate/make_spelling.py)
// maps the names under which torch.nn.functional and friends offer functions of other modules.
#include <string.h>
#include "core/graph/graph.h"

typedef struct Alias {
        const char *from, *to;
} Alias;

static const Alias aliases[] = {
#define ALIAS(from, to) { from, to },
#include "core/graph/spelling.def"
#undef ALIAS
};

static const char *const modules_apart[] = {
#define MODULE_APART(path) path,
#include "core/graph/spelling.def"
#undef MODULE_APART
};

static const Alias prefixes[] = {
        { "F.", "torch.nn.functional." },
        { "nn.functional.", "torch.nn.functional." },
        { "functional.", "torch.nn.functional." },
        { "operator.", "_operator." },
        { "builtins.", "" },
        { "Tensor.", "torch.Tensor." },
        { "torch._tensor.Tensor.", "torch.Tensor." },
        { "aten.", "torch.ops.aten." },
        { "ops.aten.", "torch.ops.aten." },
        { "torch._ops.", "torch.ops." },
};

// aten::add.Tensor is how schemas spell it. Any other name with colons stays as it is.
static const char *schema_spelling(Arena *arena, const char *target)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
        const char *colons = strstr(target, "::");
        if (colons == NULL || strcspn(target, ".:") != (size_t)(colons - target) ||
            colons[2 + strspn(colons + 2, letters)] != '\0')
                return target;
        bool overload = strchr(colons, '.') != NULL;
        return arena_format(arena, "torch.ops.%.*s.%s%s", (int)(colons - target), target, colons + 2,
                            overload ? "" : ".default");
}

static int compare_alias(const void *key, const void *row)
{
        return strcmp(key, ((const Alias *)row)->from);
}

const char *graph_normalise_target(Graph *graph, const char *target)
{
        for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
                size_t n = strlen(prefixes[i].from);
                if (strncmp(target, prefixes[i].from, n) == 0 && target[n] != '\0') {
                        target = arena_format(&graph->arena, "%s%s", prefixes[i].to, target + n);
                        break;
                }
        }
        if (target != NULL)
                target = schema_spelling(&graph->arena, target);
        if (target == NULL)
                return NULL;
        // torch.nn.functional.norm and the like may be two steps away.
        for (int step = 0; step < 2; step++) {
                const Alias *alias =
                        bsearch(target, aliases, ARRAY_LENGTH(aliases), sizeof(Alias), compare_alias);
                if (alias == NULL)
                        break;
                target = alias->to;
        }
        return target;
}

static bool stands_apart(const char *type)
{
        for (size_t i = 0; i < ARRAY_LENGTH(modules_apart); i++) {
                if (strcmp(modules_apart[i], type) == 0)
                        return true;
        }
        return false;
}

const char *graph_normalise_module_type(Graph *graph, const char *type)
{
        static const char below[] = "torch.nn.modules.";
        if (strncmp(type, "torch.fx.graph_module.GraphModule", 33) == 0 ||
            strcmp(type, "fx.GraphModule") == 0 || strcmp(type, "GraphModule") == 0)
                return "torch.fx.GraphModule";
        if (strncmp(type, "nn.", 3) == 0)
                return arena_format(&graph->arena, "torch.%s", type);
        const char *dot = strrchr(type, '.');
        // torch.nn.modules.<file>.<Class>, and the class is no helper of that file.
        if (strncmp(type, below, sizeof(below) - 1) == 0 && strchr(type + sizeof(below) - 1, '.') == dot &&
            dot[1] != '_' && !stands_apart(type))
                return arena_format(&graph->arena, "torch.nn.%s", dot + 1);
        return arena_text(&graph->arena, type, strlen(type));
}
