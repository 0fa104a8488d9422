// SPDX-License-Identifier: Apache-2.0
// rule.c: rules on a fresh session. A Standing says what became of a node, or of a region, that
// some rule matched. Rules on a node and on a region around it may both act only as long as neither
// finds its nodes gone or changed.
#include "core/edit/rule.h"

#include <stdio.h>
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/edit/region.h"

// What an action on one node takes, in nodes that are looked at.
enum { VISITS_PER_HIT = 16 };

typedef struct Standing {
        const char *name;         // authored; of a region its name
        const char *node;         // authored, that gave the value
        const EditRegion *region; // NULL: a node, or a region in whose place a call stands by now
        Node *call;               // that a further action works on; NULL: no call is left
        Value value;              // what the readers got; counted
        Node *last;               // of what rules put behind the value's node; NULL: nothing
} Standing;

// What CONSTANT and PATCH put into the graph.
typedef struct RuleValue {
        Node *node;  // a hidden input, or state
        bool copied; // CONSTANT: for several hits
} RuleValue;

typedef struct Matched {
        Node **nodes; // of regions: their exits
        EditRegions regions;
        uint32_t *standing; // indices
        RuleHit *hits;      // in the new graph's arena
        uint32_t n;
} Matched;

typedef struct Applying {
        Edit *edit;
        const EditRule *rules;
        uint32_t n_rules;
        Matched *matched;  // of each rule
        StringMap by_name; // authored name, or "module " and a key -> index in `standing`, plus one
        Standing *standing;
        uint32_t n_standing, capacity;
} Applying;

static void matched_deinit(Matched *matched)
{
        edit_regions_deinit(&matched->regions);
        free(matched->nodes);
        free(matched->standing);
}

static void applying_deinit(Applying *applying)
{
        for (uint32_t i = 0; applying->matched != NULL && i < applying->n_rules; i++)
                matched_deinit(&applying->matched[i]);
        for (uint32_t i = 0; i < applying->n_standing; i++)
                value_unref(applying->standing[i].value);
        free(applying->matched);
        free(applying->standing);
        string_map_deinit(&applying->by_name);
}

static Standing *standing_of(const Applying *applying, const Node *authored)
{
        uintptr_t index = (uintptr_t)string_map_get(&applying->by_name, authored->name);
        return index == 0 ? NULL : &applying->standing[index - 1];
}

static Value value_of_node(Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = node };
}

// ---- matching ----

// The standing of a node or, with `region`, of that; a new one if there is none.
static Status add_standing(Applying *applying, Node *node, const EditRegion *region, uint32_t *out_index)
{
        const char *key = node->name;
        if (region != NULL)
                key = arena_format(&applying->edit->work->arena, "module %s", region->key);
        if (key == NULL)
                return fail_memory();
        uintptr_t index = (uintptr_t)string_map_get(&applying->by_name, key);
        if (index == 0) {
                TRY(array_reserve(&applying->standing, &applying->capacity, applying->n_standing + 1,
                                  sizeof(*applying->standing)));
                applying->standing[applying->n_standing++] =
                        (Standing){ .name = region == NULL ? node->name : region->name,
                                    .node = node->name,
                                    .region = region,
                                    .call = node,
                                    .value = value_of_node(node) };
                index = applying->n_standing;
                TRY(string_map_set(&applying->by_name, key, (void *)index, NULL));
        }
        *out_index = (uint32_t)index - 1;
        return STATUS_OK;
}

static Status find_matches(Edit *edit, const EditMatch *match, Matched *out)
{
        if (!edit_match_is_of_regions(edit, match))
                return edit_match(edit, match, &out->nodes, &out->n);
        TRY(edit_match_regions(edit, match, &out->regions));
        out->nodes = new_array(out->regions.n, sizeof(Node *));
        if (out->nodes == NULL)
                return fail_memory();
        for (; out->n < out->regions.n; out->n++)
                out->nodes[out->n] = out->regions.items[out->n].exit;
        return STATUS_OK;
}

static Status match_rule(Applying *applying, const EditRule *rule, Matched *out)
{
        TRY(find_matches(applying->edit, &rule->match, out));
        if (out->n == 0 && !rule->optional)
                return edit_no_match(applying->edit, &rule->match);
        out->standing = new_array(out->n, sizeof(*out->standing));
        out->hits = arena_array(&applying->edit->work->arena, out->n + 1, sizeof(RuleHit));
        if (out->standing == NULL || out->hits == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < out->n; i++)
                TRY(add_standing(applying, out->nodes[i], out->regions.n == 0 ? NULL : &out->regions.items[i],
                                 &out->standing[i]));
        return STATUS_OK;
}

static Status at_rule(Status status, uint32_t at)
{
        char place[32];
        snprintf(place, sizeof(place), "overrides[%u]", at);
        return failure_at_argument(status, place);
}

static Status observe_hit(Edit *edit, const EditRule *rule, const Matched *matched, uint32_t i)
{
        return matched->regions.n > 0 ? edit_observe_region(edit, &matched->regions.items[i], rule->observe,
                                                            rule->halt_on, &matched->hits[i])
                                      : edit_observe(edit, matched->nodes[i], rule->observe, rule->halt_on,
                                                     &matched->hits[i]);
}

// Before the first action, so that readers that observe a node get what its readers get. What an
// output node returns is known only after the last one.
static Status observe(const Applying *applying, bool outputs)
{
        for (uint32_t r = 0; r < applying->n_rules; r++) {
                const EditRule *rule = &applying->rules[r];
                const Matched *matched = &applying->matched[r];
                for (uint32_t i = 0; i < matched->n && (rule->observe | rule->halt_on) != 0; i++) {
                        if ((matched->nodes[i]->op == OP_OUTPUT) != outputs)
                                continue;
                        TRY(at_rule(edit_visit(applying->edit, VISITS_PER_HIT), r));
                        TRY(at_rule(observe_hit(applying->edit, rule, matched, i), r));
                }
        }
        return STATUS_OK;
}

// ---- actions ----

// The value may be a matched node itself, which a later rule replaced, or whose result it changed:
// the readers followed. NULL: no single node stands there.
static Node *node_standing(const Applying *applying, const Standing *standing)
{
        for (uint32_t i = 0; i <= applying->n_rules && standing->value.kind == VALUE_NODE; i++) {
                Node *node = standing->value.node;
                const Standing *next = standing_of(applying, node);
                bool stays = next == NULL || next == standing ||
                             (next->value.kind == VALUE_NODE && next->value.node == node);
                if (stays)
                        return edit_node_of(node)->erased ? NULL : node;
                standing = next;
        }
        return NULL;
}

static Node *still_there(const Edit *edit, Node *node)
{
        if (node->graph != edit->work)
                return edit_copy_of(edit, node);
        return edit_node_of(node)->erased ? NULL : node;
}

// What a node of the base or of the working graph is now, for arguments that name it.
static Status map_leaf(void *context, const Value *leaf, Value *out)
{
        const Applying *applying = context;
        *out = value_ref(*leaf);
        if (leaf->kind != VALUE_NODE)
                return STATUS_OK;
        const Standing *standing = standing_of(applying, leaf->node);
        Node *node = standing != NULL ? node_standing(applying, standing)
                                      : still_there(applying->edit, leaf->node);
        if (node == NULL && (standing == NULL || standing->value.kind == VALUE_NODE))
                return fail(STATUS_VALUE, "\"%%%.100s\" names a node that an earlier rule took away",
                            leaf->node->name);
        *out = node != NULL ? value_of_node(node) : value_ref(standing->value);
        return STATUS_OK;
}

static void change_result(Standing *standing, Value take_value)
{
        value_unref(standing->value);
        standing->value = take_value;
}

// Another value in the call's place; a result that an earlier rule made of it stays the result.
static void move_call(Standing *standing, Node *call, Value take_value)
{
        if (standing->value.kind == VALUE_NODE && standing->value.node == standing->call)
                change_result(standing, take_value);
        else
                value_unref(take_value);
        standing->call = call;
}

static Status replace_call(Applying *applying, const EditRule *rule, Standing *standing)
{
        EditNew new = rule->call;
        if (new.args.kind == VALUE_NONE &&new.kwargs.kind == VALUE_NONE) {
                TRY(edit_set_call(applying->edit, standing->call, new.op, new.target));
                return new.name == NULL ? STATUS_OK : edit_rename(applying->edit, standing->call, new.name);
        }
        TRY(value_map(rule->call.args, map_leaf, applying, &new.args));
        Status status = value_map(rule->call.kwargs, map_leaf, applying, &new.kwargs);
        if (status != STATUS_OK) {
                value_unref(new.args);
                return status;
        }
        Node *made;
        TRY(edit_retarget_call(applying->edit, standing->call, &new, &made));
        move_call(standing, made, value_of_node(made));
        return STATUS_OK;
}

static Status pass_through(Applying *applying, const EditRule *rule, Standing *standing)
{
        Node *node = standing->call;
        Value kept = rule->argument < node->args.seq->n ? value_ref(node->args.seq->items[rule->argument])
                                                        : value_none();
        Status status = edit_passthrough(applying->edit, node, rule->argument);
        move_call(standing, NULL, kept);
        return status;
}

// The graph may write to the tensor: each of several hits gets a copy of its own.
static Status put_constant(Applying *applying, RuleValue constant, Standing *standing)
{
        Node *node = constant.node;
        if (constant.copied)
                TRY(edit_copy_before(applying->edit, standing->call, constant.node, &node));
        TRY(edit_substitute(applying->edit, standing->call, value_of_node(node)));
        move_call(standing, NULL, value_of_node(node));
        return STATUS_OK;
}

static Status call_graph(Applying *applying, const EditRule *rule, Standing *standing)
{
        Value value;
        TRY(edit_call_graph(applying->edit, standing->call, rule->after, rule->after_name, &value));
        move_call(standing, NULL, value);
        return STATUS_OK;
}

// What changes the result works on the call whose value the readers have by now. What a graph gave
// may be a tensor of its state: then on a call that gives it back.
static Status result_call(const Applying *applying, Standing *standing, Node **out_call)
{
        Node *node = node_standing(applying, standing), *identity;
        if (node == NULL)
                return failure_at_node(
                        fail(STATUS_VALUE, "no single node gives the result of %s any more", standing->name),
                        standing->name);
        *out_call = node;
        if (node_is_call(node))
                return STATUS_OK;
        TRY(edit_identity(applying->edit, node, &identity));
        change_result(standing, value_of_node(identity));
        standing->last = NULL;
        *out_call = identity;
        return STATUS_OK;
}

static Status wrap(Applying *applying, const EditRule *rule, Standing *standing)
{
        EditWrap before = { .before = rule->before, .before_name = rule->before_name },
                 after = { .after = rule->after, .after_name = rule->after_name };
        Node *result;
        Value value;
        if (rule->before != NULL && standing->region != NULL)
                TRY(edit_region_before(applying->edit, standing->region, rule->before, rule->before_name));
        else if (rule->before != NULL)
                TRY(edit_wrap(applying->edit, standing->call, &before, NULL));
        if (rule->after == NULL)
                return STATUS_OK;
        TRY(result_call(applying, standing, &result));
        after.behind = standing->last;
        Node *next = edit_next(standing->last == NULL ? result : standing->last);
        TRY(edit_wrap(applying->edit, result, &after, &value));
        change_result(standing, value);
        Node *last = edit_previous(next);
        standing->last = last == result ? NULL : last; // the graph may have put nothing there
        return STATUS_OK;
}

static Status patch(Applying *applying, const EditRule *rule, Node *value, Standing *standing)
{
        EditPatch patch = { .kind = rule->patch, .index = rule->index, .value = value_of_node(value) };
        Node *result, *copy;
        TRY(result_call(applying, standing, &result));
        patch.behind = standing->last;
        TRY(edit_patch(applying->edit, result, &patch, &copy));
        change_result(standing, value_of_node(copy));
        standing->last = NULL;
        return STATUS_OK;
}

static Status fail_changed(const Standing *standing)
{
        return failure_at_node(fail(STATUS_VALUE,
                                    "%s was changed by an earlier rule on another part of the same nodes",
                                    standing->name),
                               standing->node);
}

// Another rule may have acted on a node of a region, or replaced the region around a node.
static Status check_untouched(const Standing *standing, uint32_t number)
{
        if (standing->call != NULL && edit_node_of(standing->call)->erased)
                return fail_changed(standing);
        if (standing->region == NULL) {
                if (standing->call != NULL)
                        edit_node_of(standing->call)->acted_by = number;
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < standing->region->n; i++) {
                EditNode *node = edit_node_of(standing->region->nodes[i]);
                if (node->erased || (node->acted_by != 0 && node->acted_by != number))
                        return fail_changed(standing);
                node->acted_by = number;
        }
        return STATUS_OK;
}

// For what replaces a region: one call in its place.
static Status leave_region(Applying *applying, const EditRule *rule, Standing *standing)
{
        Node *call;
        if (standing->region == NULL || rule->action == EDIT_WRAP || rule->action == EDIT_PATCH)
                return STATUS_OK;
        TRY(edit_region_call(applying->edit, standing->region, &call));
        move_call(standing, call, value_of_node(call));
        standing->region = NULL;
        return STATUS_OK;
}

static Status act_on(Applying *applying, const EditRule *rule, RuleValue value, Standing *standing)
{
        Edit *edit = applying->edit;
        TRY(check_untouched(standing, (uint32_t)(standing - applying->standing) + 1));
        TRY(leave_region(applying, rule, standing));
        if (standing->call != NULL && !node_is_call(standing->call)) {
                Node *identity;
                TRY(edit_identity(edit, standing->call, &identity));
                move_call(standing, identity, value_of_node(identity));
        }
        if (standing->call == NULL)
                return failure_at_node(fail(STATUS_VALUE,
                                            "node %s has no call any more: an earlier rule put a value "
                                            "in its place",
                                            standing->name),
                                       standing->name);
        switch (rule->action) {
        case EDIT_RETARGET:
                return edit_retarget(edit, standing->call, rule->target);
        case EDIT_RETARGET_CALL:
                return replace_call(applying, rule, standing);
        case EDIT_PASSTHROUGH:
                return pass_through(applying, rule, standing);
        case EDIT_CONSTANT:
                return put_constant(applying, value, standing);
        case EDIT_PATCH:
                return patch(applying, rule, value.node, standing);
        case EDIT_CALL:
                return call_graph(applying, rule, standing);
        case EDIT_WRAP:
                return wrap(applying, rule, standing);
        default:
                return STATUS_OK;
        }
}

// The node that gives the rule's value: a hidden input, or state. What acts on an input stands
// right behind it, where other inputs may follow: its state is read in front of all.
static Status value_node(Edit *edit, const EditRule *rule, bool on_inputs, Node **out_node)
{
        static const char name[] = "value_of_rule";
        uint32_t index;
        if (rule->state == NULL)
                return edit_hidden_input(edit, name, &rule->constant, out_node, &index);
        Node *at = edit_first(edit);
        while (!on_inputs && at != NULL && at->op == OP_PLACEHOLDER)
                at = edit_next(at);
        EditNew new = { .op = OP_GET_ATTR };
        TRY(edit_free_path(edit, name, &new.target));
        TRY(edit_set_state(edit, new.target, tensor_ref(rule->state)));
        return edit_insert_before(edit, at, &new, out_node);
}

static Status act(Applying *applying, const EditRule *rule, const Matched *matched)
{
        RuleValue value = { .copied = matched->n > 1 };
        bool on_inputs = false;
        for (uint32_t i = 0; i < matched->n; i++)
                on_inputs |= matched->nodes[i]->op == OP_PLACEHOLDER;
        if (rule->action == EDIT_CONSTANT || rule->action == EDIT_PATCH)
                TRY(value_node(applying->edit, rule, on_inputs, &value.node));
        for (uint32_t i = 0; i < matched->n && rule->action != EDIT_NO_ACTION; i++) {
                TRY(edit_visit(applying->edit, VISITS_PER_HIT));
                TRY(act_on(applying, rule, value, &applying->standing[matched->standing[i]]));
        }
        return STATUS_OK;
}

// ---- what was matched ----

static void note_rule(const Applying *applying, uint32_t at, RuleTrace *out)
{
        const EditRule *rule = &applying->rules[at];
        const Matched *matched = &applying->matched[at];
        *out = (RuleTrace){ .hits = matched->hits,
                            .n_hits = matched->n,
                            .observe = rule->observe,
                            .halt_on = rule->halt_on,
                            .as_text = rule->as_text };
        for (uint32_t i = 0; i < matched->n; i++) {
                const Standing *standing = &applying->standing[matched->standing[i]];
                out->hits[i].authored = standing->name;
                out->hits[i].node = standing->node;
                out->hits[i].value = node_standing(applying, standing);
        }
}

static Status apply(Applying *applying)
{
        Graph *work = applying->edit->work;
        applying->matched = new_array(applying->n_rules, sizeof(Matched));
        work->rules = arena_array(&work->arena, applying->n_rules + 1, sizeof(RuleTrace));
        if (applying->matched == NULL || work->rules == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < applying->n_rules; i++) {
                Status status = match_rule(applying, &applying->rules[i], &applying->matched[i]);
                if (status != STATUS_OK)
                        return at_rule(status, i);
        }
        TRY(observe(applying, false));
        for (uint32_t i = 0; i < applying->n_rules; i++) {
                Status status = act(applying, &applying->rules[i], &applying->matched[i]);
                if (status != STATUS_OK)
                        return at_rule(status, i);
        }
        TRY(observe(applying, true));
        for (; work->n_rules < applying->n_rules; work->n_rules++)
                note_rule(applying, work->n_rules, &work->rules[work->n_rules]);
        return STATUS_OK;
}

Status edit_apply_rules(Edit *edit, const EditRule *rules, uint32_t n)
{
        Applying applying = { .edit = edit, .rules = rules, .n_rules = n };
        Status status = apply(&applying);
        applying_deinit(&applying);
        return status;
}
