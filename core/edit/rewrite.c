// SPDX-License-Identifier: Apache-2.0
// rewrite.c: replaces every found place by a copy of the replacement, in order. The copy stands
// before the first reader of the replaced nodes. A later place may have bound a node that an
// earlier one has replaced: it then reads the replacement.
#include <string.h>
#include "core/base/limits.h"
#include "core/edit/edit_parts.h"
#include "core/edit/pattern.h"

typedef struct Rewriting {
        Edit *edit;
        const Graph *pattern, *replacement;
        Node **returned; // of the pattern, in order of the results
        uint32_t n_returned;
        StringMap became; // a node that was replaced, by name -> Value
        Arena arena;
        int64_t n_steps;
} Rewriting;

static Status collect_returned(void *context, const Value *leaf)
{
        Rewriting *rewriting = context;
        if (leaf->kind != VALUE_NODE)
                return STATUS_OK;
        for (uint32_t i = 0; i < rewriting->n_returned; i++) {
                if (rewriting->returned[i] == leaf->node)
                        return STATUS_OK;
        }
        if (rewriting->n_returned >= rewriting->pattern->n_nodes)
                return STATUS_OK;
        rewriting->returned[rewriting->n_returned++] = leaf->node;
        return STATUS_OK;
}

// Names are unique in the session, even those of erased nodes.
static Status current_leaf(void *context, const Value *leaf, Value *out)
{
        const Rewriting *rewriting = context;
        const Value *became =
                leaf->kind == VALUE_NODE ? string_map_get(&rewriting->became, leaf->node->name) : NULL;
        *out = value_ref(became != NULL ? *became : *leaf);
        return STATUS_OK;
}

static bool reads_returned(const Rewriting *rewriting, const EditFound *found, const EditNode *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                for (uint32_t k = 0; k < rewriting->n_returned; k++) {
                        Value value = found->values[rewriting->returned[k]->index];
                        if (value.kind == VALUE_NODE && value.node == &node->inputs[i].input->node)
                                return true;
                }
        }
        return false;
}

// The first reader of a result; without readers the node behind the last result.
static Status insertion_point(Rewriting *rewriting, const EditFound *found, Node **out_node)
{
        Node *last = NULL;
        for (const EditNode *node = rewriting->edit->first; node != NULL; node = node->after) {
                rewriting->n_steps += 1 + (int64_t)node->n_inputs * rewriting->n_returned;
                if (rewriting->n_steps > limits.max_match_steps)
                        return fail(STATUS_TOO_LARGE, "the rewrite takes more than %lld steps",
                                    (long long)limits.max_match_steps);
                if (reads_returned(rewriting, found, node)) {
                        *out_node = (Node *)(uintptr_t)&node->node;
                        return STATUS_OK;
                }
                for (uint32_t k = 0; k < rewriting->n_returned; k++) {
                        if (found->values[rewriting->returned[k]->index].node == &node->node)
                                last = edit_next(&node->node);
                }
        }
        *out_node = last;
        return last != NULL ? STATUS_OK : fail(STATUS_LINT, "the graph has no node behind the pattern's");
}

static Status note_replacement(Rewriting *rewriting, const Node *old, Value new)
{
        Value *kept = arena_alloc(&rewriting->arena, sizeof(*kept));
        if (kept == NULL)
                return fail_memory();
        TRY(string_map_set(&rewriting->became, old->name, kept, NULL));
        *kept = value_ref(new);
        return STATUS_OK;
}

static Status put_results(Rewriting *rewriting, const EditFound *found, Value result)
{
        bool row = result.kind == VALUE_TUPLE || result.kind == VALUE_LIST;
        uint32_t n = row ? result.seq->n : 1;
        if (n != rewriting->n_returned)
                return fail(STATUS_LINT, "the pattern returns %u nodes, the replacement %u values",
                            rewriting->n_returned, n);
        for (uint32_t i = 0; i < n; i++) {
                Node *old = found->values[rewriting->returned[i]->index].node;
                Value new = row ? result.seq->items[i] : result;
                TRY(edit_replace_all_uses(rewriting->edit, old, new, NULL));
                TRY(note_replacement(rewriting, old, new));
        }
        return STATUS_OK;
}

static Status erase_found(Rewriting *rewriting, const EditFound *found)
{
        const Graph *pattern = rewriting->pattern;
        for (uint32_t i = pattern->n_nodes; i-- > 0;) {
                if (pattern->nodes[i]->op != OP_PLACEHOLDER && pattern->nodes[i]->op != OP_OUTPUT)
                        TRY(edit_erase(rewriting->edit, found->values[i].node));
        }
        return STATUS_OK;
}

// Nodes made since `n_before`, in the order in which they were made.
static Status note_inserted(Edit *edit, uint32_t n_before, EditFound *found)
{
        found->replacements = new_array(edit->n_made - n_before, sizeof(Node *));
        if (found->replacements == NULL)
                return fail_memory();
        for (uint32_t i = n_before; i < edit->n_made; i++)
                found->replacements[found->n_replacements++] = edit->work->nodes[i];
        return STATUS_OK;
}

static Status rewrite_one(Rewriting *rewriting, EditFound *found, Value *inputs, uint32_t n_inputs)
{
        Edit *edit = rewriting->edit;
        uint32_t n_before = edit->n_made;
        EditSplice splice = { .graph = rewriting->replacement, .inputs = inputs, .n_inputs = n_inputs };
        splice.origin = found->anchor;
        TRY(insertion_point(rewriting, found, &splice.before));
        _cleanup_(value_clear) Value result = value_none();
        TRY(edit_splice(edit, &splice, &result));
        TRY(note_inserted(edit, n_before, found));
        TRY(put_results(rewriting, found, result));
        return erase_found(rewriting, found);
}

static Status rewrite_found(Rewriting *rewriting, EditFound *found)
{
        const Graph *pattern = rewriting->pattern;
        uint32_t n = 0;
        Status status = STATUS_OK;
        _cleanup_(freep) Value *inputs = new_array(pattern->n_nodes, sizeof(Value));
        if (inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < pattern->n_nodes && status == STATUS_OK; i++) {
                if (pattern->nodes[i]->op != OP_PLACEHOLDER)
                        continue;
                status = value_map(found->values[i], current_leaf, rewriting, &inputs[n]);
                n += status == STATUS_OK;
        }
        if (status == STATUS_OK)
                status = rewrite_one(rewriting, found, inputs, n);
        while (n > 0)
                value_unref(inputs[--n]);
        return status;
}

static uint32_t count_placeholders(const Graph *graph)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += graph->nodes[i]->op == OP_PLACEHOLDER;
        return n;
}

static Status rewrite_all(Rewriting *rewriting, EditFinds *finds)
{
        uint32_t n = count_placeholders(rewriting->pattern);
        if (n != count_placeholders(rewriting->replacement))
                return fail(STATUS_LINT, "Placeholder count mismatch: %u vs %u", n,
                            count_placeholders(rewriting->replacement));
        TRY(value_walk(rewriting->pattern->output->args, collect_returned, rewriting));
        for (uint32_t i = 0; i < finds->n; i++)
                TRY(rewrite_found(rewriting, &finds->items[i]));
        return STATUS_OK;
}

Status edit_rewrite(Edit *edit, const EditPattern *pattern, const Graph *replacement, EditFinds *out_finds)
{
        _cleanup_(edit_finds_deinit) EditFinds finds = { 0 };
        TRY(edit_find(edit, pattern, &finds));
        Rewriting rewriting = { .edit = edit, .pattern = pattern->graph, .replacement = replacement };
        arena_init(&rewriting.arena, 0);
        rewriting.returned = new_array(pattern->graph->n_nodes, sizeof(Node *));
        Status status = rewriting.returned == NULL ? fail_memory() : rewrite_all(&rewriting, &finds);
        for (uint32_t i = 0; i < rewriting.became.n; i++)
                value_unref(*(Value *)rewriting.became.entries[i].value);
        string_map_deinit(&rewriting.became);
        arena_deinit(&rewriting.arena);
        free(rewriting.returned);
        TRY(status);
        *out_finds = finds;
        finds = (EditFinds){ 0 };
        return STATUS_OK;
}
