// SPDX-License-Identifier: Apache-2.0
// observe.c: the nodes that observe another one. They call functions of
// core/targets/observe_rows.c.
#include "core/edit/observe.h"

#include <stdio.h>
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/targets/targets.h"

typedef struct Observing {
        Edit *edit;
        Node *node;
        Value value;              // borrowed: the node itself, or what an output node returns
        Value args;               // borrowed: the node's, or those of a region
        const EditRegion *region; // that the node gives the value of; NULL: none
        Node *after;              // where readers of the value go
} Observing;

static Node *last_placeholder(const Edit *edit)
{
        Node *last = NULL;
        for (Node *node = edit_first(edit); node != NULL; node = edit_next(node))
                last = node->op == OP_PLACEHOLDER ? node : last;
        return last;
}

static Status take_pair(Value take_first, Value take_second, Value *out)
{
        Seq *seq;
        Status status = seq_new(2, &seq);
        if (status != STATUS_OK) {
                value_unref(take_first);
                value_unref(take_second);
                return status;
        }
        seq->items[0] = take_first;
        seq->items[1] = take_second;
        *out = value_seq_take(VALUE_TUPLE, seq);
        return STATUS_OK;
}

// ---- new nodes ----

typedef struct NewReader {
        const char *target, *suffix;
        Value args;  // taken
        bool before; // in front of the node, else behind its value
} NewReader;

static Status add_reader(const Observing *observing, const NewReader *take_reader, Node **out_node)
{
        char name[200];
        Node *made;
        Edit *edit = observing->edit;
        snprintf(name, sizeof(name), "%.160s_%s", observing->node->name, take_reader->suffix);
        EditNew new = {
                .op = OP_CALL_FUNCTION, .name = name, .target = take_reader->target, .args = take_reader->args
        };
        TRY(take_reader->before ? edit_insert_before(edit, observing->node, &new, &made)
                                : edit_insert_after(edit, observing->after, &new, &made));
        made->internal = true;
        *out_node = made;
        return STATUS_OK;
}

// A call with one argument.
static Status add_call(const Observing *observing, const char *target, const char *suffix, Value take_arg,
                       Node **out_node)
{
        Seq *seq;
        Status status = seq_new(1, &seq);
        if (status != STATUS_OK) {
                value_unref(take_arg);
                return status;
        }
        seq->items[0] = take_arg;
        NewReader reader = { .target = target,
                             .suffix = suffix,
                             .args = value_seq_take(VALUE_TUPLE, seq),
                             .before = strcmp(suffix, "call") == 0 || observing->node->op == OP_OUTPUT };
        return add_reader(observing, &reader, out_node);
}

// (args, kwargs)
static Status describe(const Observing *observing, Node **out_node)
{
        Value pair, kwargs = observing->region == NULL ? value_ref(observing->node->kwargs) : value_none();
        TRY(take_pair(value_ref(observing->args), kwargs, &pair));
        return add_call(observing, "fxserve.describe", "call", pair, out_node);
}

// ---- the check ----

typedef struct Inputs {
        Dict *dict; // name -> node
        uint32_t effects;
        const Node *first; // read by the first argument, which the node writes; NULL: none
} Inputs;

static Status gather_input(void *context, Node *input)
{
        Inputs *inputs = context;
        Dict *dict = inputs->dict;
        if (dict_get(dict, input->name) != NULL || input == inputs->first)
                return STATUS_OK;
        TRY(str_new(input->name, strlen(input->name), &dict->items[dict->n].key));
        dict->items[dict->n++].value = (Value){ .kind = VALUE_NODE, .node = input };
        return STATUS_OK;
}

static Status gather_leaf(void *context, const Value *leaf)
{
        return leaf->kind == VALUE_NODE ? gather_input(context, leaf->node) : STATUS_OK;
}

// What the node read and did not write: at the check it is still what it was. Regions do not write.
static Status gather_inputs(const Observing *observing, Value *out)
{
        const Node *node = observing->node;
        const Graph *base = edit_base(observing->edit);
        const Node *authored = graph_node(base, node->name);
        bool region = observing->region != NULL;
        // without an authored node it was inlined, after which the working graph was resolved
        Inputs inputs = { .effects = region             ? 0
                                     : authored == NULL ? node_effects(edit_work(observing->edit), node)
                                                        : node_effects(base, authored) };
        const Value *args = node->args.seq->items;
        bool writes_first = (inputs.effects & NODE_WRITES_FIRST) != 0;
        if (writes_first && node->args.seq->n > 0 && args[0].kind == VALUE_NODE)
                inputs.first = args[0].node;
        bool unknown = (inputs.effects & NODE_WRITES) != 0 || (writes_first && inputs.first == NULL);
        _cleanup_(dict_unrefp) Dict *dict = NULL;
        TRY(dict_new(region ? observing->args.seq->n : edit_node_of(node)->n_inputs, &dict));
        dict->n = 0;
        inputs.dict = dict;
        if (!unknown && node->op != OP_OUTPUT)
                TRY(value_walk(observing->args, gather_leaf, &inputs));
        if (!unknown && !region && node->op != OP_OUTPUT)
                TRY(value_walk(node->kwargs, gather_leaf, &inputs));
        *out = (Value){ .kind = VALUE_DICT, .dict = take_ptr(dict) };
        return STATUS_OK;
}

static Status add_check(const Observing *observing, uint8_t halt_on)
{
        Node *made;
        Seq *seq;
        const char *name = node_origin(observing->node);
        TRY(seq_new(5, &seq));
        Value args = value_seq_take(VALUE_TUPLE, seq);
        seq->items[0] = value_ref(observing->value);
        Status status = gather_inputs(observing, &seq->items[1]);
        if (status == STATUS_OK)
                status = value_str_new(name, strlen(name), &seq->items[2]);
        if (status != STATUS_OK) {
                value_unref(args);
                return status;
        }
        seq->items[3] = value_bool((halt_on & HALT_NAN) != 0);
        seq->items[4] = value_bool((halt_on & HALT_INF) != 0);
        NewReader reader = { .target = "fxserve.assert_finite",
                             .suffix = "finite",
                             .args = args,
                             .before = observing->node->op == OP_OUTPUT };
        return add_reader(observing, &reader, &made);
}

static Status add_readers(Observing *observing, uint8_t observe, uint8_t halt_on, RuleHit *out_hit)
{
        Node *call = NULL, *stats = NULL, *tensor = NULL;
        const Node *node = observing->node;
        if ((observe & OBSERVE_TENSOR) != 0)
                TRY(add_call(observing, "fxserve.copy", "tensor", value_ref(observing->value), &tensor));
        if ((observe & OBSERVE_STATS) != 0)
                TRY(add_call(observing, "fxserve.stats", "stats", value_ref(observing->value), &stats));
        if (halt_on != 0)
                TRY(add_check(observing, halt_on));
        if ((observe & OBSERVE_CALL) != 0 && (node_is_call(node) || node->op == OP_OUTPUT))
                TRY(describe(observing, &call));
        out_hit->call = call;
        out_hit->stats = stats;
        out_hit->tensor = tensor;
        return STATUS_OK;
}

// The texts are in the working graph's arena, whatever becomes of the node.
static void note_node(const Edit *edit, const Node *node, RuleHit *out_hit)
{
        const Module *module = node->op == OP_CALL_MODULE ? edit_module(edit, node->target) : NULL;
        out_hit->op = node->op;
        out_hit->target = node->target;
        out_hit->module = module != NULL ? module->path : node_module_path(node);
        out_hit->module_type = module != NULL ? module->type : node_module_type(node);
}

Status edit_observe(Edit *edit, Node *node, uint8_t observe, uint8_t halt_on, RuleHit *out_hit)
{
        Observing observing = { .edit = edit, .node = node, .after = node };
        TRY(edit_check_node(edit, node));
        note_node(edit, node, out_hit);
        observing.args = node->args;
        observing.value = (Value){ .kind = VALUE_NODE, .node = node };
        if (node->op == OP_OUTPUT)
                observing.value = node->args.seq->items[0];
        else if (node->op == OP_PLACEHOLDER)
                observing.after = last_placeholder(edit);
        return add_readers(&observing, observe, halt_on, out_hit);
}

// Which module it is, and its nodes.
static Status note_region(Edit *edit, const EditRegion *region, RuleHit *out_hit)
{
        const StackEntry *call = region->exit->module_stack;
        while (call != NULL && strcmp(call->key, region->key) != 0)
                call = call->outer;
        if (call == NULL)
                return fail(STATUS_INTERNAL, "the exit of region %s is outside of it", region->key);
        const char **parts = arena_array(&edit->work->arena, region->n, sizeof(char *));
        if (parts == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < region->n; i++)
                TRY(edit_keep_text(edit, node_origin(region->nodes[i]), &parts[i]));
        TRY(edit_keep_text(edit, call->path, &out_hit->module));
        TRY(edit_keep_text(edit, call->type, &out_hit->module_type));
        out_hit->op = OP_CALL_MODULE;
        out_hit->target = out_hit->module;
        out_hit->parts = parts;
        out_hit->n_parts = region->n;
        return STATUS_OK;
}

Status edit_observe_region(Edit *edit, const EditRegion *region, uint8_t observe, uint8_t halt_on,
                           RuleHit *out_hit)
{
        _cleanup_(value_clear) Value args = value_none();
        Observing observing = { .edit = edit, .node = region->exit, .after = region->exit, .region = region };
        TRY(edit_check_node(edit, region->exit));
        TRY(edit_region_arguments(edit, region, &args));
        TRY(note_region(edit, region, out_hit));
        observing.args = args;
        observing.value = (Value){ .kind = VALUE_NODE, .node = region->exit };
        return add_readers(&observing, observe, halt_on, out_hit);
}
