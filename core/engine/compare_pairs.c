// SPDX-License-Identifier: Apache-2.0
// compare_pairs.c: which nodes of two graphs stand for each other. Names come first, because edits
// and rules keep them. What a rule put in a node's place may be any node, also one that has a
// partner: it is in two pairs then. Nodes that are left over get a key of their operator and of the
// numbers of their inputs, where partners have one number; nodes of the same key are partners in
// their order. Both graphs are read once.
#include <stdio.h>
#include <string.h>
#include "core/edit/match.h"
#include "core/engine/compare.h"

typedef struct Half {
        const Graph *graph;
        StringMap named;   // the node that stands for a name, of its own or of an authored node
        StringMap placed;  // of nodes that rules matched: what stands there by now
        uint32_t *partner; // by index: the partner's index + 1; 0: none
        uint32_t *number;  // by index, from 1; partners have the same
} Half;

typedef struct Waiting Waiting;
struct Waiting { // a node of `a` without a partner
        Waiting *next;
        const Node *node;
};
typedef struct Kind { // nodes of one key, in order
        Waiting *first, *last;
} Kind;

typedef struct Pairing {
        Half a, b;
        NodePair *pairs;
        uint32_t n_pairs, capacity;
        Arena arena;
        StringMap kinds;
        uint32_t n_numbers;
} Pairing;

static bool is_compared(const Graph *graph, const Node *node)
{
        if (node->op == OP_OUTPUT || node->internal)
                return false;
        for (uint32_t i = graph->signature.n_inputs; node->op == OP_PLACEHOLDER && i-- > 0;)
                if (graph->signature.inputs[i].placeholder == node)
                        return !graph->signature.inputs[i].hidden;
        return true;
}

// ---- by name ----
static Status name_nodes(Half *half)
{
        const Graph *graph = half->graph;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (is_compared(graph, graph->nodes[i]))
                        TRY(string_map_set(&half->named, node_origin(graph->nodes[i]), graph->nodes[i],
                                           NULL));
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (is_compared(graph, graph->nodes[i]))
                        TRY(string_map_set(&half->named, graph->nodes[i]->name, graph->nodes[i], NULL));
        for (uint32_t r = 0; r < graph->n_rules; r++)
                for (uint32_t i = 0; i < graph->rules[r].n_hits; i++) {
                        const RuleHit *hit = &graph->rules[r].hits[i];
                        if (hit->value != NULL)
                                TRY(string_map_set(&half->placed, hit->node, (void *)(uintptr_t)hit->value,
                                                   NULL));
                }
        return STATUS_OK;
}

static Status add_pair(Pairing *it, const char *name, const Node *a, const Node *b)
{
        uint32_t *partner_a = &it->a.partner[a->index], *partner_b = &it->b.partner[b->index];
        TRY(array_reserve(&it->pairs, &it->capacity, it->n_pairs + 1, sizeof(*it->pairs)));
        it->pairs[it->n_pairs++] = (NodePair){ .name = name, .a = a, .b = b };
        *partner_a = *partner_a == 0 ? b->index + 1 : *partner_a;
        *partner_b = *partner_b == 0 ? a->index + 1 : *partner_b;
        return STATUS_OK;
}

static bool is_free(const Pairing *it, const Node *a, const Node *b)
{
        return it->a.partner[a->index] == 0 && it->b.partner[b->index] == 0;
}

static const Node *standing_for(const Half *half, const char *name)
{
        const Node *node = string_map_get(&half->placed, name);
        return node != NULL ? node : string_map_get(&half->named, name);
}

// What stands in the place of the nodes that rules of `half` matched.
static Status join_placed(Pairing *it, const Half *half)
{
        for (uint32_t i = 0; i < half->placed.n; i++) {
                const char *name = half->placed.entries[i].key;
                if (name == NULL || (half == &it->b && string_map_get(&it->a.placed, name) != NULL))
                        continue;
                const Node *a = standing_for(&it->a, name), *b = standing_for(&it->b, name);
                if (a != NULL && b != NULL)
                        TRY(add_pair(it, name, a, b));
        }
        return STATUS_OK;
}

static Status join_named(Pairing *it)
{
        for (uint32_t i = 0; i < it->a.named.n; i++) {
                const StringMapEntry *entry = &it->a.named.entries[i];
                if (entry->key == NULL || string_map_get(&it->a.placed, entry->key) != NULL ||
                    string_map_get(&it->b.placed, entry->key) != NULL)
                        continue;
                const Node *a = entry->value, *b = string_map_get(&it->b.named, entry->key);
                if (b != NULL && is_free(it, a, b))
                        TRY(add_pair(it, node_origin(a), a, b));
        }
        TRY(join_placed(it, &it->a));
        return join_placed(it, &it->b);
}

// ---- by structure ----
typedef struct KeyText {
        Text text;
        const Half *half;
} KeyText;

static Status add_input(void *context, Node *input)
{
        KeyText *key = context;
        text_addf(&key->text, " %u", key->half->number[input->index]);
        return STATUS_OK;
}

static Status write_key(const Half *half, const Node *node, KeyText *key)
{
        Meaning meaning = { 0 };
        key->half = half;
        key->text.n = 0;
        if (node_is_call(node))
                graph_node_meaning(half->graph, node, &meaning);
        if (meaning.n > 0)
                text_addf(&key->text, "aten %s", meaning.items[0]->schema.name);
        else
                text_addf(&key->text, "%s %s", opcode_names[node->op],
                          node->op == OP_PLACEHOLDER ? "" : node->target);
        TRY(node_visit_inputs(node, add_input, key));
        return text_status(&key->text);
}

static Status kind_of(Pairing *it, const KeyText *key, Kind **out_kind)
{
        *out_kind = string_map_get(&it->kinds, key->text.data);
        if (*out_kind != NULL)
                return STATUS_OK;
        char *text = arena_text(&it->arena, key->text.data, key->text.n);
        *out_kind = arena_alloc(&it->arena, sizeof(**out_kind));
        if (text == NULL || *out_kind == NULL)
                return fail_memory();
        return string_map_set(&it->kinds, text, *out_kind, NULL);
}

static Status number_a(Pairing *it, const Node *node, KeyText *key)
{
        Kind *kind;
        it->a.number[node->index] = ++it->n_numbers;
        if (it->a.partner[node->index] != 0 || !is_compared(it->a.graph, node))
                return STATUS_OK;
        TRY(write_key(&it->a, node, key));
        TRY(kind_of(it, key, &kind));
        Waiting *waiting = arena_alloc(&it->arena, sizeof(*waiting));
        if (waiting == NULL)
                return fail_memory();
        waiting->node = node;
        if (kind->last != NULL)
                kind->last->next = waiting;
        else
                kind->first = waiting;
        kind->last = waiting;
        return STATUS_OK;
}

static Status number_b(Pairing *it, const Node *node, KeyText *key)
{
        uint32_t *partner = &it->b.partner[node->index];
        if (*partner == 0 && is_compared(it->b.graph, node)) {
                Kind *kind;
                TRY(write_key(&it->b, node, key));
                kind = string_map_get(&it->kinds, key->text.data);
                if (kind != NULL && kind->first != NULL) {
                        const Node *a = kind->first->node;
                        TRY(add_pair(it, node_origin(a), a, node));
                        kind->first = kind->first->next;
                        if (kind->first == NULL)
                                kind->last = NULL;
                }
        }
        it->b.number[node->index] = *partner != 0 ? it->a.number[*partner - 1] : ++it->n_numbers;
        return STATUS_OK;
}

static Status join_alike(Pairing *it)
{
        _cleanup_(text_deinit) Text text = { 0 };
        KeyText key = { .half = NULL };
        Status status = STATUS_OK;
        for (uint32_t i = 0; status == STATUS_OK && i < it->a.graph->n_nodes; i++)
                status = number_a(it, it->a.graph->nodes[i], &key);
        for (uint32_t i = 0; status == STATUS_OK && i < it->b.graph->n_nodes; i++)
                status = number_b(it, it->b.graph->nodes[i], &key);
        text = key.text;
        return status;
}

// ---- all ----
static Status half_init(Half *half, const Graph *graph)
{
        half->graph = graph;
        half->partner = new_array(graph->n_nodes, sizeof(*half->partner));
        half->number = new_array(graph->n_nodes, sizeof(*half->number));
        if (half->partner == NULL || half->number == NULL)
                return fail_memory();
        return name_nodes(half);
}

static void half_deinit(Half *half)
{
        string_map_deinit(&half->named);
        string_map_deinit(&half->placed);
        free(half->partner);
        free(half->number);
}

static Status list_alone(const Half *half, const Node ***out_nodes, uint32_t *out_n)
{
        *out_nodes = new_array(half->graph->n_nodes, sizeof(**out_nodes));
        if (*out_nodes == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < half->graph->n_nodes; i++)
                if (half->partner[i] == 0 && is_compared(half->graph, half->graph->nodes[i]))
                        (*out_nodes)[(*out_n)++] = half->graph->nodes[i];
        return STATUS_OK;
}

static int in_order(const void *left, const void *right)
{
        const NodePair *a = left, *b = right;
        if (a->a->index != b->a->index)
                return a->a->index < b->a->index ? -1 : 1;
        return a->b->index < b->b->index ? -1 : a->b->index > b->b->index;
}

Status compare_pairs(const Graph *a, const Graph *b, NodePair **out_pairs, uint32_t *out_n, Comparison *alone)
{
        Pairing it = { .n_numbers = 0 };
        arena_init(&it.arena, 0);
        *out_n = 0;
        Status status = half_init(&it.a, a);
        if (status == STATUS_OK)
                status = half_init(&it.b, b);
        if (status == STATUS_OK) {
                join_named(&it);
                status = join_alike(&it);
        }
        if (status == STATUS_OK)
                status = list_alone(&it.a, &alone->alone[0], &alone->n_alone[0]);
        if (status == STATUS_OK)
                status = list_alone(&it.b, &alone->alone[1], &alone->n_alone[1]);
        if (status == STATUS_OK && it.n_pairs > 0)
                qsort(it.pairs, it.n_pairs, sizeof(*it.pairs), in_order);
        if (status == STATUS_OK) {
                *out_n = it.n_pairs;
                *out_pairs = take_ptr(it.pairs);
        }
        free(it.pairs);
        string_map_deinit(&it.kinds);
        half_deinit(&it.a);
        half_deinit(&it.b);
        arena_deinit(&it.arena);
        return status;
}
