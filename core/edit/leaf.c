// SPDX-License-Identifier: Apache-2.0
// leaf.c: inlines the calls of child graphs that are no leaves. All calls of one child are inlined
// together: they share its modules and state, which take the child's place in the module tree.
#include "core/edit/leaf.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/edit/edit_parts.h"
#include "core/edit/match.h"

typedef struct Inlining {
        Edit *edit;
        const EditLeaves *leaves;
        uint32_t capacity; // of the new graph's `inlined`
} Inlining;

// ---- leaves ----

// "Block" names the class Block, and so does "models.Block".
static bool is_of_type(const Module *module, const char *type)
{
        const char *dot = strrchr(type, '.');
        if (module->type != NULL && strcmp(module->type, type) == 0)
                return true;
        return module->graph != NULL && strcmp(module->graph->class_name, dot == NULL ? type : dot + 1) == 0;
}

static Status is_leaf(const Inlining *inlining, const Module *module, bool *out_leaf)
{
        const EditLeaves *leaves = inlining->leaves;
        *out_leaf = false;
        for (uint32_t i = 0; i < leaves->n_types && !*out_leaf; i++)
                *out_leaf = is_of_type(module, leaves->types[i]);
        for (uint32_t i = 0; i < leaves->n_paths && !*out_leaf; i++) {
                TRY(edit_visit(inlining->edit, glob_cost(leaves->paths[i], module->path)));
                *out_leaf = glob_matches(leaves->paths[i], module->path);
        }
        return edit_visit(inlining->edit, 1 + leaves->n_types + leaves->n_paths);
}

// ---- names that no module has ----

typedef struct Sought {
        Edit *edit;
        const char *type, *path; // one of them
        Arena *scratch;
        bool found;
} Sought;

// Depth: limits.max_child_graphs.
static Status seek(Sought *sought, const Graph *graph, const char *below)
{
        for (uint32_t i = 1; i < graph->n_modules && !sought->found; i++) { // the first is the root
                const Module *module = graph->modules[i];
                const char *path = below == NULL
                                           ? module->path
                                           : arena_format(sought->scratch, "%s.%s", below, module->path);
                if (path == NULL)
                        return fail_memory();
                TRY(edit_visit(sought->edit, 1 + glob_cost(sought->path, path)));
                sought->found = sought->path != NULL ? glob_matches(sought->path, path)
                                                     : is_of_type(module, sought->type);
                if (module->graph != NULL && !sought->found)
                        TRY(seek(sought, module->graph, path));
        }
        return STATUS_OK;
}

static Status fail_unknown(const Sought *sought)
{
        const Graph *base = edit_base(sought->edit);
        return fail(STATUS_VALUE, "\"leaf\" names the %s \"%.100s\", but the graph has no such module%s",
                    sought->path != NULL ? "path" : "type",
                    sought->path != NULL ? sought->path : sought->type,
                    base->format == GRAPH_PT2 ? ": an export has the calls of its modules inlined already"
                                              : "; GET .../modules shows them");
}

static Status check_known(const Inlining *inlining)
{
        const EditLeaves *leaves = inlining->leaves;
        Arena scratch;
        Status status = STATUS_OK;
        arena_init(&scratch, 0);
        for (uint32_t i = 0; i < leaves->n_types + leaves->n_paths && status == STATUS_OK; i++) {
                Sought sought = { .edit = inlining->edit, .scratch = &scratch };
                *(i < leaves->n_types ? &sought.type : &sought.path) =
                        i < leaves->n_types ? leaves->types[i] : leaves->paths[i - leaves->n_types];
                status = seek(&sought, inlining->edit->work, NULL);
                if (status == STATUS_OK && !sought.found)
                        status = fail_unknown(&sought);
        }
        arena_deinit(&scratch);
        return status;
}

// ---- inlining ----

// For names of the request that mean the call.
static Status note_call(Inlining *inlining, const char *name, Value result)
{
        Graph *work = inlining->edit->work;
        InlinedCall *call = &work->inlined[work->n_inlined];
        if (result.kind != VALUE_NODE)
                return STATUS_OK;
        TRY(edit_keep_text(inlining->edit, name, &call->authored));
        TRY(edit_keep_text(inlining->edit, result.node->name, &call->node));
        work->n_inlined++;
        return STATUS_OK;
}

static Status make_room(Inlining *inlining)
{
        Graph *work = inlining->edit->work;
        if (work->n_inlined < inlining->capacity)
                return STATUS_OK;
        uint32_t capacity = MAX(16u, work->n_inlined * 2); // an earlier step may have inlined some
        InlinedCall *room = arena_array(&work->arena, capacity, sizeof(*room));
        if (room == NULL)
                return fail_memory();
        if (work->n_inlined > 0)
                memcpy(room, work->inlined, work->n_inlined * sizeof(*room));
        work->inlined = room;
        inlining->capacity = capacity;
        return STATUS_OK;
}

static Status inline_call(Inlining *inlining, Node *node, const EditInlining *how)
{
        _cleanup_(value_clear) Value result = value_none();
        const char *name = node->name;
        TRY(make_room(inlining));
        TRY(edit_visit(inlining->edit, how->child->n_nodes));
        TRY(failure_at_node(edit_inline_as(inlining->edit, node, how, &result), name));
        return note_call(inlining, name, result);
}

static bool calls(const Node *node, const char *path)
{
        return node->op == OP_CALL_MODULE && strcmp(node->target, path) == 0;
}

// Whether a node has the child as a value, as the branches of a cond.
static bool is_value(const Edit *edit, const char *path)
{
        for (const Node *node = edit_first(edit); node != NULL; node = edit_next(node)) {
                if (node->op == OP_GET_ATTR && strcmp(node->target, path) == 0)
                        return true;
        }
        return false;
}

static Status inline_all_calls(Inlining *inlining, Module *module, const Graph *child)
{
        Edit *edit = inlining->edit;
        EditInlining how = { .child = child, .prefix = module->path, .names_by_path = true };
        TRY(edit_visit(edit, 2 * (int64_t)edit_n_nodes(edit)));
        if (is_value(edit, module->path))
                TRY(edit_free_path(edit, module->path, &how.prefix));
        else
                module_clear(module);
        for (Node *node = edit_first(edit), *next; node != NULL; node = next) {
                next = edit_next(node);
                if (!calls(node, module->path))
                        continue;
                TRY(inline_call(inlining, node, &how));
                how.shares = true;
        }
        return STATUS_OK;
}

static Status inline_calls(Inlining *inlining)
{
        Edit *edit = inlining->edit;
        for (Node *node = edit_first(edit), *next; node != NULL; node = next) {
                Node *before = edit_previous(node);
                Module *module = node->op == OP_CALL_MODULE ? graph_module(edit->work, node->target) : NULL;
                bool leaf = true;
                next = edit_next(node);
                if (module != NULL && module->graph != NULL)
                        TRY(is_leaf(inlining, module, &leaf));
                if (leaf)
                        continue;
                Graph *child = graph_ref(module->graph);
                Status status = inline_all_calls(inlining, module, child);
                graph_unref(child);
                TRY(status);
                next = before == NULL ? edit_first(edit) : edit_next(before); // the child's nodes, too
        }
        return STATUS_OK;
}

Status edit_inline_calls(Edit *edit, const EditLeaves *leaves)
{
        Inlining inlining = { .edit = edit, .leaves = leaves };
        TRY(check_known(&inlining));
        TRY(inline_calls(&inlining));
        return edit_resolve(edit);
}
