// SPDX-License-Identifier: Apache-2.0
// passes.c: the small passes.
#include "core/edit/passes.h"

#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/graph/print.h"
#include "core/targets/targets.h"

Status edit_eliminate_dead_code(Edit *edit, uint32_t *out_n)
{
        uint32_t n = 0;
        TRY(edit_lint(edit)); // else a reader before its input would be visited too late
        TRY(edit_resolve(edit));
        Node *previous;
        for (Node *node = edit_last(edit); node != NULL; node = previous) {
                previous = edit_previous(node);
                if (node->n_users > 0 || node_is_impure(edit->work, node))
                        continue;
                TRY(edit_erase(edit, node));
                n++;
        }
        *out_n = n;
        return STATUS_OK;
}

// ---- common subexpressions ----

// A text that two calls share only if they are equal. Texts are quoted in it, nodes are not. 1, 1.0
// and True differ, unlike in PyTorch's pass.
static Status call_text(Arena *arena, const Node *node, const char **out_text)
{
        _cleanup_(text_deinit) Text text = { 0 };
        text_addf(&text, "%d ", (int)node->op);
        text_add_json(&text, node->target);
        text_add_char(&text, ' ');
        value_print_repr(node->args, &text);
        text_add_char(&text, ' ');
        value_print_repr(node->kwargs, &text);
        TRY(text_status(&text));
        *out_text = arena_text(arena, text.data, text.n);
        return *out_text == NULL ? fail_memory() : STATUS_OK;
}

bool edit_any_call_writes(const Edit *edit)
{
        for (const EditNode *node = edit->first; node != NULL; node = node->after) {
                uint32_t effects = node_is_call(&node->node) ? node_effects(edit->work, &node->node) : 0;
                if ((effects & (NODE_WRITES | NODE_WRITES_FIRST | NODE_MOVES)) != 0)
                        return true;
        }
        return false;
}

static Status merge_calls(Edit *edit, Arena *arena, StringMap *seen, uint32_t *out_n)
{
        Node *next;
        for (Node *node = edit_first(edit); node != NULL; node = next) {
                next = edit_next(node);
                if (!node_is_call(node) || node_is_impure(edit->work, node))
                        continue;
                const char *text;
                TRY(call_text(arena, node, &text));
                Node *first = string_map_get(seen, text);
                if (first == NULL) {
                        TRY(string_map_set(seen, text, node, NULL));
                        continue;
                }
                TRY(edit_replace_all_uses(edit, node, (Value){ .kind = VALUE_NODE, .node = first }, NULL));
                TRY(edit_erase(edit, node));
                (*out_n)++;
        }
        return STATUS_OK;
}

Status edit_cse(Edit *edit, uint32_t *out_n)
{
        TRY(edit_lint(edit));
        TRY(edit_resolve(edit));
        *out_n = 0;
        if (edit_any_call_writes(edit))
                return STATUS_OK;
        Arena arena;
        arena_init(&arena, 0);
        StringMap seen = { 0 };
        Status status = merge_calls(edit, &arena, &seen, out_n);
        string_map_deinit(&seen);
        arena_deinit(&arena);
        return status;
}

// ---- dropout ----

static bool calls_dropout(const Edit *edit, const Node *node)
{
        const Module *module = node->op == OP_CALL_MODULE ? edit_module(edit, node->target) : NULL;
        return module != NULL && module->type != NULL && module_is_dropout(module->type);
}

Status edit_remove_dropout(Edit *edit, uint32_t *out_n)
{
        uint32_t n = 0;
        Node *next;
        for (Node *node = edit_first(edit); node != NULL; node = next) {
                next = edit_next(node);
                if (!calls_dropout(edit, node))
                        continue;
                const Value *input = node->args.seq->n == 1 ? &node->args.seq->items[0]
                                                            : dict_get(node->kwargs.dict, "input");
                if (input == NULL || node->args.seq->n + node->kwargs.dict->n != 1)
                        return failure_at_node(
                                fail(STATUS_LINT, "Expected 1 arg for Dropout, got %u", node->args.seq->n),
                                node->name);
                Value kept = value_ref(*input);
                Status status = edit_substitute(edit, node, kept);
                value_unref(kept);
                TRY(status);
                n++;
        }
        *out_n = n;
        return STATUS_OK;
}
