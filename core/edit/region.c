// SPDX-License-Identifier: Apache-2.0
// region.c: finds the regions on the base, whose operators are resolved, and edits them in the
// session. A region is convex: no path leads out of it and back in.
#include "core/edit/region.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/edit/edit_parts.h"
#include "core/targets/targets.h"

void edit_regions_deinit(EditRegions *regions)
{
        for (uint32_t i = 0; i < regions->n; i++)
                free(regions->items[i].nodes);
        free(regions->items);
        *regions = (EditRegions){ .n = 0 };
}

bool edit_match_is_of_regions(const Edit *edit, const EditMatch *match)
{
        if ((match->module == NULL && match->module_type == NULL) || match->has_op || match->target != NULL ||
            match->name != NULL)
                return false;
        bool found = false;
        for (uint32_t i = 0; i < edit->base->n_nodes; i++) {
                found |= edit->base->nodes[i]->module_stack != NULL;
                if (edit->base->nodes[i]->op == OP_CALL_MODULE)
                        return false;
        }
        return found;
}

// ---- matching ----

typedef struct Searching {
        Edit *edit;
        const EditMatch *match;
        const char *type;         // wanted class, normalised
        const StackEntry **found; // matched calls, in order
        uint32_t n, capacity;
} Searching;

static bool call_matches(const Searching *searching, const StackEntry *call)
{
        const EditMatch *match = searching->match;
        if (call->path[0] == '\0')
                return false;
        if (match->module != NULL && !edit_call_fits(match->module, call))
                return false;
        return searching->type == NULL || (call->type != NULL && strcmp(call->type, searching->type) == 0);
}

// The outermost matching call around the node: its region. Calls seen before keep what they got.
static Status note_calls(Searching *searching, const StackEntry *innermost)
{
        const StackEntry *outermost = NULL;
        for (const StackEntry *call = innermost; call != NULL; call = call->outer) {
                TRY(edit_visit(searching->edit, 1 + 2 * glob_cost(searching->match->module, call->path)));
                if (call_matches(searching, call))
                        outermost = call;
        }
        if (outermost == NULL)
                return STATUS_OK;
        for (uint32_t i = 0; i < searching->n; i++) {
                if (searching->found[i] == outermost)
                        return STATUS_OK;
        }
        TRY(array_reserve(&searching->found, &searching->capacity, searching->n + 1, sizeof(StackEntry *)));
        searching->found[searching->n++] = outermost;
        return STATUS_OK;
}

static bool is_within(const StackEntry *innermost, const StackEntry *wanted)
{
        while (innermost != NULL && innermost != wanted)
                innermost = innermost->outer;
        return innermost != NULL;
}

// ---- what can be one call ----

static Status fail_region(const StackEntry *call, const char *reason, const Node *node)
{
        return failure_at_node(fail(STATUS_UNSUPPORTED,
                                    "module %.200s%.20s (%.200s) cannot be one call: %s %.100s", call->path,
                                    edit_call_suffix(call), call->type, reason, node->name),
                               node->name);
}

static Status fail_write(const StackEntry *call, const Node *node)
{
        Status status = fail_region(call, "it writes to a tensor, at", node);
        failure_append("; the pass functionalise of a transform makes a graph that does not");
        return status;
}

typedef struct Judging {
        const StackEntry *call;
        bool *inside, *after; // by index of the base's nodes
        const Node *reader, *exit;
} Judging;

static Status judge_input(void *context, Node *input)
{
        Judging *judging = context;
        bool inside = judging->inside[judging->reader->index];
        if (inside && judging->after[input->index])
                return fail_region(judging->call,
                                   "a node outside reads its values, and goes back into its node",
                                   judging->reader);
        if (!inside && judging->inside[input->index]) {
                if (judging->exit != NULL && judging->exit != input)
                        return fail_region(judging->call, "it gives more than one value, also that of",
                                           input);
                judging->exit = input;
        }
        if (!inside && (judging->inside[input->index] || judging->after[input->index]))
                judging->after[judging->reader->index] = true;
        return STATUS_OK;
}

static Status judge(const Graph *base, Judging *judging)
{
        const Node *first = NULL, *last = NULL;
        for (uint32_t i = 0; i < base->n_nodes; i++) {
                const Node *node = base->nodes[i];
                judging->reader = node;
                judging->inside[i] = node_is_call(node) && is_within(node->module_stack, judging->call);
                if (judging->inside[i]) {
                        uint32_t effects = node_effects(base, node);
                        if ((effects & (NODE_WRITES | NODE_WRITES_FIRST | NODE_MOVES)) != 0)
                                return fail_write(judging->call, node);
                        first = first == NULL ? node : first;
                        last = node;
                }
                TRY(node_visit_inputs(node, judge_input, judging));
        }
        if (judging->exit == NULL) // nobody reads a value of it
                judging->exit = last;
        // other nodes in between must bear to stand before all of them
        for (uint32_t i = first->index; i < last->index; i++) {
                uint32_t effects = judging->inside[i] ? 0 : node_effects(base, base->nodes[i]);
                if ((effects & (NODE_WRITES | NODE_WRITES_FIRST | NODE_MOVES | NODE_DRAWS)) != 0)
                        return fail_region(judging->call, "between its nodes stands a call with effects,",
                                           base->nodes[i]);
        }
        return STATUS_OK;
}

static Status judge_exit(void *context, Node *input)
{
        const Judging *judging = context;
        if (input != judging->exit || !judging->inside[judging->reader->index])
                return STATUS_OK;
        return fail_region(judging->call, "it goes on with the value that it gives, at", judging->reader);
}

static Status make_region(Edit *edit, const Judging *judging, EditRegion *out_region)
{
        const Graph *base = edit->base;
        EditRegion region = { .exit = edit->by_base[judging->exit->index] };
        for (uint32_t i = 0; i < base->n_nodes; i++)
                region.n += judging->inside[i];
        TRY(edit_keep_text(edit, judging->call->key, &region.key));
        region.name = arena_format(&edit->work->arena, "%s%s", judging->call->path,
                                   edit_call_suffix(judging->call));
        if (region.name == NULL)
                return fail_memory();
        region.nodes = new_array(region.n, sizeof(Node *));
        if (region.nodes == NULL)
                return fail_memory();
        for (uint32_t i = 0, n = 0; i < base->n_nodes; i++) {
                if (judging->inside[i])
                        region.nodes[n++] = edit->by_base[i];
        }
        *out_region = region;
        return STATUS_OK;
}

static Status examine(Edit *edit, const StackEntry *call, EditRegion *out_region)
{
        _cleanup_(freep) bool *marks = new_array(edit->base->n_nodes, 2 * sizeof(bool));
        if (marks == NULL)
                return fail_memory();
        Judging judging = { .call = call, .inside = marks, .after = marks + edit->base->n_nodes };
        TRY(judge(edit->base, &judging));
        for (uint32_t i = judging.exit->index + 1; i < edit->base->n_nodes; i++) {
                judging.reader = edit->base->nodes[i];
                TRY(node_visit_inputs(judging.reader, judge_exit, &judging));
        }
        return make_region(edit, &judging, out_region);
}

static Status find_calls(Searching *searching)
{
        const Graph *base = searching->edit->base;
        for (uint32_t i = 0; i < base->n_nodes; i++) {
                const Node *node = base->nodes[i];
                if (node_is_call(node))
                        TRY(note_calls(searching, node->module_stack));
                if ((int64_t)searching->n * base->n_nodes > limits.max_match_steps)
                        return fail(
                                STATUS_TOO_LARGE,
                                "the rule matches too many calls of modules (max_match_steps in GET /v1)");
        }
        return STATUS_OK;
}

static Status make_regions(const Searching *searching, EditRegions *regions)
{
        int64_t nth = searching->match->nth;
        regions->items = new_array(searching->n, sizeof(EditRegion));
        if (regions->items == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < searching->n; i++) {
                if (nth < 0 || i == nth) {
                        TRY(examine(searching->edit, searching->found[i], &regions->items[regions->n]));
                        regions->n++;
                }
        }
        return STATUS_OK;
}

Status edit_match_regions(Edit *edit, const EditMatch *match, EditRegions *out_regions)
{
        Searching searching = { .edit = edit, .match = match };
        EditRegions regions = { .n = 0 };
        if (match->module_type != NULL) {
                searching.type = graph_normalise_module_type(edit->work, match->module_type);
                if (searching.type == NULL)
                        return fail_memory();
        }
        Status status = find_calls(&searching);
        if (status == STATUS_OK)
                status = make_regions(&searching, &regions);
        free(searching.found);
        if (status == STATUS_OK)
                *out_regions = regions;
        else
                edit_regions_deinit(&regions);
        return status;
}

// ---- arguments ----

static bool gives_tensor(const Node *node)
{
        const Overload *overload = node->op == OP_CALL_FUNCTION ? op_find(node->target) : NULL;
        return overload != NULL && overload->schema.returns == RETURN_ONE &&
               overload->schema.return_types[0].type == ARG_TENSOR;
}

// Whether what calls give is recorded: then numbers and sizes are those without a record. Edits
// drop the records of nodes that they change, and a tensor without one shows that.
static bool has_records(const Graph *base)
{
        bool any = false;
        for (uint32_t i = 0; i < base->n_nodes; i++) {
                if (node_is_call(base->nodes[i]) && base->nodes[i]->spec == NULL &&
                    gives_tensor(base->nodes[i]))
                        return false;
                any |= node_is_call(base->nodes[i]) && base->nodes[i]->spec != NULL;
        }
        return any;
}

// Judged by what the node was in the base, or stands for.
static bool is_argument(const Edit *edit, const Node *node, bool recorded)
{
        const Node *authored = graph_node(edit->base, node_origin(node));
        if (authored == NULL)
                return true;
        const Input *input = edit_node_of(edit->by_base[authored->index])->input;
        if (authored->op == OP_PLACEHOLDER)
                return input == NULL || (input->kind == INPUT_USER && input->value_kind != VALUE_INT);
        return authored->op != OP_GET_ATTR && (!recorded || authored->spec != NULL);
}

typedef struct Arguments {
        Node **items;
        uint32_t n, capacity;
} Arguments;

static uint64_t mark_region(Edit *edit, const EditRegion *region)
{
        uint64_t inside = ++edit->walk;
        for (uint32_t i = 0; i < region->n; i++)
                edit_node_of(region->nodes[i])->mark = inside;
        return inside;
}

static Status list_arguments(Edit *edit, const EditRegion *region, Arguments *out)
{
        bool recorded = has_records(edit->base);
        uint64_t inside = mark_region(edit, region);
        for (uint32_t i = 0; i < region->n; i++) {
                const EditNode *node = edit_node_of(region->nodes[i]);
                for (uint32_t k = 0; k < node->n_inputs; k++) {
                        EditNode *input = node->inputs[k].input;
                        if (input->mark == inside || !is_argument(edit, &input->node, recorded))
                                continue;
                        input->mark = inside; // listed once
                        TRY(array_reserve(&out->items, &out->capacity, out->n + 1, sizeof(Node *)));
                        out->items[out->n++] = &input->node;
                }
        }
        return STATUS_OK;
}

static Status argument_values(const Arguments *arguments, Value *out_args)
{
        Seq *args;
        TRY(seq_new(arguments->n, &args));
        for (uint32_t i = 0; i < arguments->n; i++)
                args->items[i] = (Value){ .kind = VALUE_NODE, .node = arguments->items[i] };
        *out_args = value_seq_take(VALUE_TUPLE, args);
        return STATUS_OK;
}

Status edit_region_arguments(Edit *edit, const EditRegion *region, Value *out_args)
{
        Arguments arguments = { .n = 0 };
        Status status = list_arguments(edit, region, &arguments);
        if (status == STATUS_OK)
                status = argument_values(&arguments, out_args);
        free(arguments.items);
        return status;
}

// ---- in place of the region ----

static Status drop_region(Edit *edit, const EditRegion *region)
{
        for (uint32_t i = region->n; i-- > 0;) {
                if (region->nodes[i]->n_users == 0)
                        TRY(edit_erase(edit, region->nodes[i]));
        }
        return STATUS_OK;
}

static Status give_readers(Edit *edit, const EditRegion *region, Node *call)
{
        uint32_t n = 0;
        uint64_t inside = mark_region(edit, region);
        _cleanup_(freep) Node **readers = new_array(region->exit->n_users, sizeof(Node *));
        if (readers == NULL)
                return fail_memory();
        for (const EditUse *use = edit_first_use(region->exit); use != NULL; use = edit_next_use(use)) {
                if (use->user->mark != inside && edit_user(use) != call)
                        readers[n++] = edit_user(use);
        }
        for (uint32_t i = 0; i < n; i++)
                TRY(edit_replace_input(edit, readers[i], region->exit,
                                       (Value){ .kind = VALUE_NODE, .node = call }));
        return STATUS_OK;
}

Status edit_region_call(Edit *edit, const EditRegion *region, Node **out_call)
{
        EditNew new = { .op = OP_CALL_FUNCTION,
                        .target = "torch.ops.aten.alias.default",
                        .origin = region->exit };
        TRY(edit_region_arguments(edit, region, &new.args));
        TRY(edit_insert_after(edit, region->exit, &new, out_call));
        TRY(give_readers(edit, region, *out_call));
        return drop_region(edit, region);
}

// ---- in front of the region ----

// The nodes up to the exit follow each other then, so that all arguments stand before them.
static Status gather(Edit *edit, const EditRegion *region)
{
        for (uint32_t i = 0; i < region->n && region->nodes[i] != region->exit; i++)
                TRY(edit_move_before(edit, region->nodes[i], region->exit));
        return STATUS_OK;
}

typedef struct Exchange {
        const Arguments *from;
        const Value *to; // as many
} Exchange;

static Status exchange_leaf(void *context, const Value *leaf, Value *out)
{
        const Exchange *exchange = context;
        *out = *leaf;
        for (uint32_t i = 0; i < exchange->from->n && leaf->kind == VALUE_NODE; i++) {
                if (exchange->from->items[i] == leaf->node)
                        *out = exchange->to[i];
        }
        value_ref(*out);
        return STATUS_OK;
}

static Status exchange_arguments(Edit *edit, const EditRegion *region, Exchange *exchange)
{
        for (uint32_t i = 0; i < region->n; i++) {
                Node *node = region->nodes[i];
                Value args, kwargs;
                TRY(value_map(node->args, exchange_leaf, exchange, &args));
                Status status = value_map(node->kwargs, exchange_leaf, exchange, &kwargs);
                if (status != STATUS_OK) {
                        value_unref(args);
                        return status;
                }
                TRY(edit_set_args(edit, node, args, kwargs));
        }
        return STATUS_OK;
}

static Status put_before(Edit *edit, const EditRegion *region, const Arguments *arguments,
                         const Graph *before, const char *name)
{
        _cleanup_(value_clear) Value inputs = value_none();
        _cleanup_(value_clear) Value result = value_none();
        EditSplice splice = { .graph = before, .before = region->nodes[0], .origin = region->exit };
        TRY(argument_values(arguments, &inputs));
        splice.inputs = inputs.seq->items;
        splice.n_inputs = arguments->n;
        TRY(edit_splice_called(edit, &splice, name, &result));
        uint32_t n = result.kind == VALUE_TUPLE ? result.seq->n : 1;
        if (n != arguments->n)
                return failure_at_node(fail(STATUS_VALUE,
                                            "the graph before module %.100s gives %u values for its %u "
                                            "arguments",
                                            region->name, n, arguments->n),
                                       region->exit->name);
        Exchange exchange = { .from = arguments,
                              .to = result.kind == VALUE_TUPLE ? result.seq->items : &result };
        return exchange_arguments(edit, region, &exchange);
}

Status edit_region_before(Edit *edit, const EditRegion *region, const Graph *before, const char *name)
{
        Arguments arguments = { .n = 0 };
        TRY(gather(edit, region));
        Status status = list_arguments(edit, region, &arguments);
        if (status == STATUS_OK)
                status = put_before(edit, region, &arguments, before, name);
        free(arguments.items);
        return status;
}
