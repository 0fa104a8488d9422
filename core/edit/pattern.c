// SPDX-License-Identifier: Apache-2.0
// pattern.c: the search.
//
// Anchors are the pattern's results that only its output reads. From an anchor and a node of the
// graph both are followed backwards together. There is no choice on the way, so a mismatch ends the
// attempt. Several anchors are tried in all combinations, first anchors first. Instead of
// torch.fx's recursion there is a stack of pairs, and one position per anchor.
//
// Stricter than torch.fx: numbers of different types are never the same literal, also where a
// placeholder stands at two places.
#include "core/edit/pattern.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/edit/edit_parts.h"
#include "core/graph/print.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

typedef struct Pair {
        Value pattern, graph; // borrowed
} Pair;

typedef struct Finder {
        Edit *edit;
        const EditPattern *pattern;
        Node **nodes; // of the working copy, in order; node->index is the place
        uint32_t n_nodes;
        Value *bound;    // by pattern node; VALUE_ABSENT: not yet. Borrowed.
        uint32_t *taken; // by node: the pattern node it is bound to in this attempt, plus one
        bool *used;      // by node: part of an accepted match
        bool *returned;  // by pattern node: a result
        uint32_t *trail; // pattern nodes in the order in which they were bound
        uint32_t n_trail;
        const Node **anchors;
        uint32_t n_anchors;
        Pair *stack;
        uint32_t n_stack, stack_capacity;
        Node **queue;
        uint32_t *seen; // by node: the walk that last saw it
        uint32_t n_walks;
        int64_t n_steps;
        EditFinds *finds;
} Finder;

static Status count_steps(Finder *finder, int64_t n)
{
        finder->n_steps += n;
        if (finder->n_steps > limits.max_match_steps)
                return fail(STATUS_TOO_LARGE,
                            "the pattern takes more than %lld comparisons (max_match_steps in GET /v1)",
                            (long long)limits.max_match_steps);
        return STATUS_OK;
}

// ---- literals ----

static Status refuse_node(void *context, const Value *leaf)
{
        *(bool *)context |= leaf->kind == VALUE_NODE;
        return STATUS_OK;
}

// Same type and same value, without nodes in it. NaN is not equal to itself.
static Status same_literal(Value a, Value b, bool *out_same)
{
        bool nodes = false;
        *out_same = false;
        if (a.kind != b.kind || (a.kind == VALUE_FLOAT && a.f != b.f))
                return STATUS_OK;
        (void)value_walk(a, refuse_node, &nodes);
        (void)value_walk(b, refuse_node, &nodes);
        if (nodes)
                return STATUS_OK;
        _cleanup_(text_deinit) Text first = { 0 };
        _cleanup_(text_deinit) Text second = { 0 };
        value_print_repr(a, &first);
        value_print_repr(b, &second);
        TRY(text_status(&first));
        TRY(text_status(&second));
        *out_same = first.n == second.n && memcmp(first.data, second.data, first.n) == 0;
        return STATUS_OK;
}

// ---- pairs ----

static Status push(Finder *finder, Value pattern, Value graph)
{
        TRY(array_reserve(&finder->stack, &finder->stack_capacity, finder->n_stack + 1, sizeof(Pair)));
        finder->stack[finder->n_stack++] = (Pair){ pattern, graph };
        return STATUS_OK;
}

static bool is_row(Value value)
{
        return value.kind == VALUE_LIST || value.kind == VALUE_TUPLE || value.kind == VALUE_SIZE;
}

static Status push_items(Finder *finder, const Seq *pattern, const Seq *graph)
{
        for (uint32_t i = pattern->n; i-- > 0;) // the first on top
                TRY(push(finder, pattern->items[i], graph->items[i]));
        return STATUS_OK;
}

static bool same_keys(const Dict *a, const Dict *b)
{
        if (a->n != b->n)
                return false;
        for (uint32_t i = 0; i < a->n; i++) {
                if (strcmp(a->items[i].key->text, b->items[i].key->text) != 0)
                        return false;
        }
        return true;
}

static Value argument_of(const Node *node, const SchemaArg *arg, uint32_t index)
{
        const Value *named = dict_get(node->kwargs.dict, arg->name);
        if (named != NULL)
                return *named;
        if (!arg->kwarg_only && index < node->args.seq->n)
                return node->args.seq->items[index];
        return arg->has_default ? arg->default_value : value_none();
}

// Arguments of two calls of the same target, side by side. An overload's missing ones are its
// defaults.
static Status push_arguments(Finder *finder, const Node *pattern, const Node *graph, bool *out_alike)
{
        const Dict *a = pattern->kwargs.dict, *b = graph->kwargs.dict;
        *out_alike = true;
        if (pattern->args.seq->n == graph->args.seq->n && same_keys(a, b)) {
                for (uint32_t i = a->n; i-- > 0;)
                        TRY(push(finder, a->items[i].value, b->items[i].value));
                return push_items(finder, pattern->args.seq, graph->args.seq);
        }
        const Overload *overload = pattern->op == OP_CALL_FUNCTION ? op_find(pattern->target) : NULL;
        *out_alike = overload != NULL && strcmp(overload->target, pattern->target) == 0;
        for (uint32_t i = *out_alike ? overload->schema.n_args : 0; i-- > 0;) {
                const SchemaArg *arg = &overload->schema.args[i];
                TRY(push(finder, argument_of(pattern, arg, i), argument_of(graph, arg, i)));
        }
        return STATUS_OK;
}

// ---- one attempt ----

static void bind_value(Finder *finder, const Node *pattern, Value value)
{
        finder->bound[pattern->index] = value;
        finder->trail[finder->n_trail++] = pattern->index;
        if (value.kind == VALUE_NODE)
                finder->taken[value.node->index] = pattern->index + 1;
}

static void undo(Finder *finder, uint32_t n_trail)
{
        while (finder->n_trail > n_trail) {
                Value *bound = &finder->bound[finder->trail[--finder->n_trail]];
                if (bound->kind == VALUE_NODE)
                        finder->taken[bound->node->index] = 0;
                bound->kind = VALUE_ABSENT;
        }
}

static bool same_call(const Finder *finder, const Node *pattern, const Node *graph)
{
        if (pattern->op != graph->op)
                return false;
        if (pattern->op == OP_GET_ATTR) // of any tensor: values are not compared
                return graph_state(finder->pattern->graph, pattern->target) != NULL &&
                       graph_state(finder->edit->work, graph->target) != NULL;
        return strcmp(pattern->target, graph->target) == 0;
}

static Status match_node(Finder *finder, const Node *pattern, Value graph, bool *out_match)
{
        Value bound = finder->bound[pattern->index];
        bool node = graph.kind == VALUE_NODE;
        *out_match = false;
        if (bound.kind == VALUE_NODE || (bound.kind != VALUE_ABSENT && node)) {
                *out_match = node && bound.kind == VALUE_NODE && bound.node == graph.node;
                return STATUS_OK;
        }
        if (bound.kind != VALUE_ABSENT)
                return same_literal(bound, graph, out_match);
        if (node && finder->taken[graph.node->index] != 0)
                return STATUS_OK;
        if (pattern->op == OP_PLACEHOLDER) {
                bind_value(finder, pattern, graph);
                *out_match = true;
                return STATUS_OK;
        }
        if (!node || !same_call(finder, pattern, graph.node))
                return STATUS_OK;
        bind_value(finder, pattern, graph);
        return push_arguments(finder, pattern, graph.node, out_match);
}

static Status match_pair(Finder *finder, Pair pair, bool *out_match)
{
        TRY(count_steps(finder, 1));
        if (pair.pattern.kind == VALUE_NODE)
                return match_node(finder, pair.pattern.node, pair.graph, out_match);
        bool ignore = finder->pattern->ignore_literals;
        if (is_row(pair.pattern) && is_row(pair.graph)) {
                *out_match = pair.pattern.seq->n == pair.graph.seq->n;
                return *out_match ? push_items(finder, pair.pattern.seq, pair.graph.seq) : STATUS_OK;
        }
        *out_match = ignore;
        if (ignore || pair.graph.kind == VALUE_NODE)
                return STATUS_OK;
        return same_literal(pair.pattern, pair.graph, out_match);
}

// Keeps the new bindings if the anchor matches, else undoes them.
static Status match_anchor(Finder *finder, const Node *anchor, Node *node, bool *out_match)
{
        uint32_t n_trail = finder->n_trail;
        finder->n_stack = 0;
        TRY(push(finder, (Value){ .kind = VALUE_NODE, .node = (Node *)(uintptr_t)anchor },
                 (Value){ .kind = VALUE_NODE, .node = node }));
        *out_match = true;
        while (*out_match && finder->n_stack > 0)
                TRY(match_pair(finder, finder->stack[--finder->n_stack], out_match));
        if (!*out_match)
                undo(finder, n_trail);
        return STATUS_OK;
}

// ---- accepting ----

static bool is_inner(const Finder *finder, uint32_t index)
{
        const Node *pattern = finder->pattern->graph->nodes[index];
        return pattern->op != OP_PLACEHOLDER && pattern->op != OP_OUTPUT;
}

// Whether the node is part of the match, other than as a placeholder's value.
static bool is_matched(const Finder *finder, const Node *node)
{
        uint32_t taken = finder->taken[node->index];
        return taken != 0 && is_inner(finder, taken - 1);
}

static Status is_contained(Finder *finder, bool *out_contained)
{
        for (uint32_t i = 0; i < finder->n_trail; i++) {
                uint32_t index = finder->trail[i];
                if (!is_inner(finder, index))
                        continue;
                const Node *node = finder->bound[index].node;
                *out_contained = !finder->used[node->index];
                const EditUse *use = finder->returned[index] ? NULL : edit_first_use(node);
                for (; use != NULL && *out_contained; use = use->after) {
                        TRY(count_steps(finder, 1));
                        *out_contained = is_matched(finder, edit_user(use));
                }
                if (!*out_contained)
                        return STATUS_OK;
        }
        return STATUS_OK;
}

static void enqueue(Finder *finder, uint32_t *n, Node *node)
{
        if (finder->seen[node->index] != finder->n_walks) {
                finder->seen[node->index] = finder->n_walks;
                finder->queue[(*n)++] = node;
        }
}

// Whether a path from the match through nodes outside leads back into it. Replaced by one node, the
// match would depend on itself.
static Status forms_cycle(Finder *finder, bool *out_cycle)
{
        uint32_t n = 0;
        finder->n_walks++;
        *out_cycle = false;
        for (uint32_t i = 0; i < finder->n_trail; i++) {
                uint32_t index = finder->trail[i];
                const EditUse *use =
                        is_inner(finder, index) ? edit_first_use(finder->bound[index].node) : NULL;
                for (; use != NULL; use = use->after) {
                        TRY(count_steps(finder, 1));
                        if (!is_matched(finder, edit_user(use)))
                                enqueue(finder, &n, edit_user(use));
                }
        }
        while (n > 0 && !*out_cycle) {
                const Node *node = finder->queue[--n];
                TRY(count_steps(finder, 1 + node->n_users));
                *out_cycle = is_matched(finder, node);
                for (const EditUse *use = edit_first_use(node); use != NULL; use = use->after)
                        enqueue(finder, &n, edit_user(use));
        }
        return STATUS_OK;
}

static Status keep_match(Finder *finder)
{
        EditFinds *finds = finder->finds;
        TRY(array_reserve(&finds->items, &finds->capacity, finds->n + 1, sizeof(*finds->items)));
        Value *values = new_array(finds->n_values, sizeof(Value));
        if (values == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < finds->n_values; i++) {
                values[i] = value_ref(finder->bound[i]);
                if (values[i].kind == VALUE_NODE && is_inner(finder, i))
                        finder->used[values[i].node->index] = true;
        }
        finds->items[finds->n++] =
                (EditFound){ .anchor = values[finder->anchors[0]->index].node, .values = values };
        return STATUS_OK;
}

static Status accept(Finder *finder)
{
        bool contained = true, cycle = false;
        TRY(count_steps(finder, finder->finds->n_values));
        TRY(is_contained(finder, &contained));
        if (contained)
                TRY(forms_cycle(finder, &cycle));
        return contained && !cycle ? keep_match(finder) : STATUS_OK;
}

// ---- all attempts ----

typedef struct Level {
        uint32_t next, n_trail; // node to be tried next; the trail before the one that matched
} Level;

static Status search(Finder *finder, Level *levels)
{
        int64_t at = 0;
        levels[0] = (Level){ 0 };
        while (at >= 0) {
                Level *level = &levels[at];
                bool match = false;
                if (at == finder->n_anchors) {
                        TRY(accept(finder));
                } else {
                        level->n_trail = finder->n_trail;
                        while (!match && level->next < finder->n_nodes)
                                TRY(match_anchor(finder, finder->anchors[at], finder->nodes[level->next++],
                                                 &match));
                }
                if (match) {
                        levels[++at] = (Level){ 0 };
                } else if (--at >= 0) {
                        undo(finder, levels[at].n_trail);
                }
        }
        return STATUS_OK;
}

// ---- the pattern ----

static Status collect_anchor(void *context, const Value *leaf)
{
        Finder *finder = context;
        if (leaf->kind != VALUE_NODE || finder->returned[leaf->node->index])
                return STATUS_OK;
        finder->returned[leaf->node->index] = true;
        if (leaf->node->n_users == 1)
                finder->anchors[finder->n_anchors++] = leaf->node;
        return STATUS_OK;
}

static Status check_pattern(Finder *finder)
{
        const Graph *graph = finder->pattern->graph;
        bool any = false;
        for (uint32_t i = 0; i + 1 < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                any |= node->op != OP_PLACEHOLDER;
                if (node->n_users == 0)
                        return failure_at_node(
                                fail(STATUS_LINT,
                                     "the pattern's node %s is read by nothing; a pattern has no "
                                     "dead code and uses all its placeholders",
                                     node->name),
                                node->name);
        }
        TRY(value_walk(graph->output->args, collect_anchor, finder));
        if (finder->n_anchors == 0)
                return fail(STATUS_LINT, "the pattern returns no node that nothing else in it reads");
        if (!any) // it would be found at every node
                return fail(STATUS_LINT, "the pattern has inputs and results only; it needs a call");
        return STATUS_OK;
}

static Status prepare(Finder *finder)
{
        uint32_t n = finder->edit->n_nodes, n_pattern = finder->pattern->graph->n_nodes;
        finder->nodes = new_array(n, sizeof(Node *));
        finder->queue = new_array(n, sizeof(Node *));
        finder->taken = new_array(n, sizeof(uint32_t));
        finder->used = new_array(n, sizeof(bool));
        finder->seen = new_array(n, sizeof(uint32_t));
        finder->bound = new_array(n_pattern, sizeof(Value));
        finder->returned = new_array(n_pattern, sizeof(bool));
        finder->trail = new_array(n_pattern, sizeof(uint32_t));
        finder->anchors = new_array(n_pattern, sizeof(Node *));
        if (finder->nodes == NULL || finder->queue == NULL || finder->taken == NULL || finder->used == NULL ||
            finder->seen == NULL || finder->bound == NULL || finder->returned == NULL ||
            finder->trail == NULL || finder->anchors == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n_pattern; i++)
                finder->bound[i].kind = VALUE_ABSENT;
        for (Node *node = edit_first(finder->edit); node != NULL; node = edit_next(node)) {
                node->index = finder->n_nodes;
                finder->nodes[finder->n_nodes++] = node;
        }
        return STATUS_OK;
}

static void finder_deinit(Finder *finder)
{
        free(finder->nodes);
        free(finder->queue);
        free(finder->taken);
        free(finder->used);
        free(finder->seen);
        free(finder->bound);
        free(finder->returned);
        free(finder->trail);
        free(finder->anchors);
        free(finder->stack);
}

void edit_finds_deinit(EditFinds *finds)
{
        for (uint32_t i = 0; i < finds->n; i++) {
                for (uint32_t k = 0; k < finds->n_values; k++)
                        value_unref(finds->items[i].values[k]);
                free(finds->items[i].values);
                free(finds->items[i].replacements);
        }
        free(finds->items);
        *finds = (EditFinds){ 0 };
}

Status edit_find(Edit *edit, const EditPattern *pattern, EditFinds *out_finds)
{
        _cleanup_(edit_finds_deinit) EditFinds finds = { .n_values = pattern->graph->n_nodes };
        _cleanup_(finder_deinit) Finder finder = { .edit = edit, .pattern = pattern, .finds = &finds };
        TRY(prepare(&finder));
        TRY(check_pattern(&finder));
        _cleanup_(freep) Level *levels = new_array(finder.n_anchors + 1u, sizeof(Level));
        if (levels == NULL)
                return fail_memory();
        TRY(search(&finder, levels));
        *out_finds = finds;
        finds = (EditFinds){ 0 };
        return STATUS_OK;
}
