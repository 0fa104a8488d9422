// SPDX-License-Identifier: Apache-2.0
// actions.c: the actions of rules, as edits of the working copy.
#include "core/edit/actions.h"

#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/targets/targets.h"

static Status check_call(const Edit *edit, const Node *node)
{
        TRY(edit_check_node(edit, node));
        if (!node_is_call(node))
                return failure_at_node(fail(STATUS_LINT, "Node %s is a %s, not a call", node_origin(node),
                                            opcode_names[node->op]),
                                       node_origin(node));
        return STATUS_OK;
}

static Status argument_at(const Node *node, uint32_t index, const Value **out_value)
{
        if (index >= node->args.seq->n)
                return failure_at_node(fail(STATUS_LINT, "Node %s has %u positional arguments, none is $%u",
                                            node_origin(node), node->args.seq->n, index),
                                       node_origin(node));
        *out_value = &node->args.seq->items[index];
        return STATUS_OK;
}

Status edit_passthrough(Edit *edit, Node *node, uint32_t index)
{
        const Value *value = NULL;
        TRY(check_call(edit, node));
        TRY(argument_at(node, index, &value));
        Value kept = value_ref(*value);
        Status status = edit_substitute(edit, node, kept);
        value_unref(kept);
        return status;
}

Status edit_retarget(Edit *edit, Node *node, const char *target)
{
        TRY(check_call(edit, node));
        bool method =
                node->op == OP_CALL_METHOD && strchr(target, '.') == NULL && target_method(target) != NULL;
        return edit_set_call(edit, node, method ? OP_CALL_METHOD : OP_CALL_FUNCTION, target);
}

// ---- templates ----

static Status index_of(const Node *node, const char *digits, uint32_t *out_index)
{
        size_t n = strspn(digits, "0123456789");
        if (n == 0 || n > 6 || digits[n] != '\0')
                return failure_at_node(
                        fail(STATUS_VALUE,
                             "\"$%.60s\" is no argument; write $args, $0, $kw:dim, or $$ for a "
                             "text that begins with $",
                             digits),
                        node_origin(node));
        *out_index = (uint32_t)strtoul(digits, NULL, 10);
        return STATUS_OK;
}

static Status fill_leaf(void *context, const Value *leaf, Value *out)
{
        const Node *node = context;
        const char *text = leaf->kind == VALUE_STR ? leaf->str->text : "";
        if (text[0] != '$') {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        if (text[1] == '$')
                return value_str_new(text + 1, leaf->str->n - 1, out);
        const Value *value = NULL;
        if (strncmp(text, "$kw:", 4) == 0) {
                value = dict_get(node->kwargs.dict, text + 4);
                if (value == NULL)
                        return failure_at_node(fail(STATUS_LINT, "Node %s has no keyword argument %.100s",
                                                    node_origin(node), text + 4),
                                               node_origin(node));
        } else {
                uint32_t index = 0;
                TRY(index_of(node, text + 1, &index));
                TRY(argument_at(node, index, &value));
        }
        *out = value_ref(*value);
        return STATUS_OK;
}

static bool is_all_arguments(Value value)
{
        return value.kind == VALUE_STR && strcmp(value.str->text, "$args") == 0;
}

// args with "$args" written out.
static Status spread_arguments(const Node *node, Value args, Value *out_args)
{
        uint32_t n = 0, n_own = node->args.seq->n, at = 0;
        for (uint32_t i = 0; i < args.seq->n; i++) {
                uint32_t more = is_all_arguments(args.seq->items[i]) ? n_own : 1;
                if (__builtin_add_overflow(n, more, &n) || n > VALUE_MAX_ITEMS)
                        return fail(STATUS_TOO_LARGE, "a call with more than %d arguments", VALUE_MAX_ITEMS);
        }
        Seq *seq;
        TRY(seq_new(n, &seq));
        *out_args = value_seq_take(VALUE_TUPLE, seq);
        for (uint32_t i = 0; i < args.seq->n; i++) {
                if (!is_all_arguments(args.seq->items[i])) {
                        seq->items[at++] = value_ref(args.seq->items[i]);
                        continue;
                }
                for (uint32_t k = 0; k < n_own; k++)
                        seq->items[at++] = value_ref(node->args.seq->items[k]);
        }
        return STATUS_OK;
}

static Status fill_call(const Node *node, const EditNew *from, Value *out_args, Value *out_kwargs)
{
        void *context = (void *)(uintptr_t)node;
        _cleanup_(value_clear) Value args = value_none();
        if (from->args.kind == VALUE_TUPLE)
                TRY(spread_arguments(node, from->args, &args));
        TRY(value_map(args, fill_leaf, context, out_args));
        Status status = value_map(from->kwargs, fill_leaf, context, out_kwargs);
        if (status != STATUS_OK)
                value_clear(out_args);
        return status;
}

Status edit_retarget_call(Edit *edit, Node *node, const EditNew *take_new, Node **out_node)
{
        _cleanup_(value_clear) Value args = take_new->args;
        _cleanup_(value_clear) Value kwargs = take_new->kwargs;
        EditNew given = *take_new, new = *take_new;
        given.args = args;
        given.kwargs = kwargs;
        TRY(check_call(edit, node));
        TRY(fill_call(node, &given, &new.args, &new.kwargs));
        return edit_replace(edit, node, &new, out_node);
}

// ---- behind a node ----

// The users of a node but for those up to `last`, and how many; the caller's to free.
static Status readers_behind(Edit *edit, Node *node, Node *last, Node ***out_readers, uint32_t *out_n)
{
        uint64_t inside = ++edit->walk;
        Node **readers = new_array(node->n_users, sizeof(Node *));
        if (readers == NULL)
                return fail_memory();
        for (Node *at = node; at != last; at = edit_next(at))
                edit_node_of(edit_next(at))->mark = inside;
        *out_n = 0;
        for (const EditUse *use = edit_first_use(node); use != NULL; use = edit_next_use(use)) {
                if (use->user->mark != inside)
                        readers[(*out_n)++] = edit_user(use);
        }
        *out_readers = readers;
        return STATUS_OK;
}

static Status give_readers(Edit *edit, Node *node, Node *const *readers, uint32_t n, Value with)
{
        for (uint32_t i = 0; i < n; i++)
                TRY(edit_replace_input(edit, readers[i], node, with));
        return STATUS_OK;
}

// A call of a function behind `at`, with up to three arguments (borrowed).
static Status insert_behind(Edit *edit, Node *at, const Node *origin, const char *target, ValueSpan args,
                            Node **out_node)
{
        EditNew new = { .op = OP_CALL_FUNCTION, .target = target, .origin = origin };
        Seq *seq;
        TRY(seq_new(args.n, &seq));
        for (uint32_t i = 0; i < args.n; i++)
                seq->items[i] = value_ref(args.items[i]);
        new.args = value_seq_take(VALUE_TUPLE, seq);
        return edit_insert_after(edit, at, &new, out_node);
}

Status edit_copy_before(Edit *edit, Node *before, Node *node, Node **out_copy)
{
        Value own = { .kind = VALUE_NODE, .node = node };
        TRY(edit_check_node(edit, before));
        return insert_behind(edit, edit_previous(before), before, "torch.ops.aten.clone.default",
                             (ValueSpan){ &own, 1 }, out_copy);
}

// ---- nodes that are no calls ----

static Status count_reads(void *context, const Value *leaf)
{
        const Value *wanted = context;
        if (leaf->kind == VALUE_NODE && leaf->node == wanted->node)
                ((Value *)context)->tag++;
        return STATUS_OK;
}

// The node that gives the graph's only result. An export's output node holds written values, too.
static Status only_result(const Edit *edit, const Node *output, Value *out_result)
{
        Value all = output->args.seq->n == 1 ? output->args.seq->items[0] : value_none();
        bool sequence = value_is_sequence(all);
        uint32_t n = sequence ? all.seq->n : 1, n_written = 0;
        while (n_written < edit->n_outputs && edit->outputs[n_written].kind != OUTPUT_USER)
                n_written++;
        Value result = !sequence ? all : n_written < n ? all.seq->items[n_written] : value_none();
        result.tag = 0;
        TRY(value_walk(output->args, count_reads, &result));
        if (n - n_written != 1 || result.kind != VALUE_NODE || result.tag != 1)
                return failure_at_node(fail(STATUS_VALUE,
                                            "the output is not one value of one node; match the node that "
                                            "gives the value to be changed"),
                                       output->name);
        *out_result = (Value){ .kind = VALUE_NODE, .node = result.node };
        return STATUS_OK;
}

static Status identity_of_output(Edit *edit, Node *output, Node **out_call)
{
        Value result;
        TRY(only_result(edit, output, &result));
        TRY(insert_behind(edit, edit_previous(output), output, "torch.ops.aten.alias.default",
                          (ValueSpan){ &result, 1 }, out_call));
        return edit_replace_input(edit, output, result.node,
                                  (Value){ .kind = VALUE_NODE, .node = *out_call });
}

// Whether `next` is an input, or was put in the place of an input in front of `input`.
static bool is_of_earlier_input(const Edit *edit, const Node *next, const Node *input)
{
        if (next->op == OP_PLACEHOLDER)
                return true;
        const Graph *base = edit_base(edit);
        const Node *authored = graph_node(base, node_origin(next)),
                   *own = graph_node(base, node_origin(input));
        return authored != NULL && own != NULL && authored->op == OP_PLACEHOLDER &&
               authored->index < own->index;
}

Status edit_identity(Edit *edit, Node *node, Node **out_call)
{
        uint32_t n;
        Node *last = node;
        Value own = { .kind = VALUE_NODE, .node = node };
        _cleanup_(freep) Node **readers = NULL;
        TRY(edit_check_node(edit, node));
        if (node->op == OP_OUTPUT)
                return identity_of_output(edit, node, out_call);
        while (node->op == OP_PLACEHOLDER && is_of_earlier_input(edit, edit_next(last), node)) {
                TRY(edit_visit(edit, 1));
                last = edit_next(last);
        }
        TRY(readers_behind(edit, node, node, &readers, &n));
        TRY(insert_behind(edit, last, node, "torch.ops.aten.alias.default", (ValueSpan){ &own, 1 },
                          out_call));
        return give_readers(edit, node, readers, n, (Value){ .kind = VALUE_NODE, .node = *out_call });
}

// ---- parts of values ----

Status edit_patch(Edit *edit, Node *node, const EditPatch *patch, Node **out_result)
{
        uint32_t n;
        Node *copy, *result, *last = patch->behind == NULL ? node : patch->behind;
        Value own = { .kind = VALUE_NODE, .node = node }, part[2], items[3];
        _cleanup_(freep) Node **readers = NULL;
        TRY(check_call(edit, node));
        TRY(readers_behind(edit, node, last, &readers, &n));
        TRY(insert_behind(edit, last, node, "torch.ops.aten.clone.default", (ValueSpan){ &own, 1 }, &copy));
        Value whole = { .kind = VALUE_NODE, .node = copy };
        last = copy;
        items[0] = part[0] = whole;
        items[1] = part[1] = patch->index;
        items[2] = patch->value;
        if (patch->kind != PATCH_SET) {
                TRY(insert_behind(edit, last, node, "_operator.getitem", (ValueSpan){ part, 2 }, &last));
                part[0] = (Value){ .kind = VALUE_NODE, .node = last };
                part[1] = patch->value;
                TRY(insert_behind(edit, last, node,
                                  patch->kind == PATCH_ADD ? "_operator.iadd" : "_operator.imul",
                                  (ValueSpan){ part, 2 }, &last));
                items[2] = (Value){ .kind = VALUE_NODE, .node = last };
        }
        TRY(insert_behind(edit, last, node, "_operator.setitem", (ValueSpan){ items, 3 }, &last));
        // a node behind the change: further edits of the result come after it
        TRY(insert_behind(edit, last, node, "torch.ops.aten.alias.default", (ValueSpan){ &whole, 1 },
                          &result));
        *out_result = result;
        return give_readers(edit, node, readers, n, (Value){ .kind = VALUE_NODE, .node = result });
}

// ---- other graphs ----

static Status call_graph(Edit *edit, Node *node, const Graph *graph, const char *name, Value *out_result)
{
        _cleanup_(freep) Value *inputs = new_array(graph->n_nodes, sizeof(Value));
        if (inputs == NULL)
                return fail_memory();
        EditSplice splice = { .graph = graph, .before = node, .inputs = inputs, .origin = node };
        TRY(edit_bind_call(graph, node, inputs, &splice.n_inputs));
        return edit_splice_called(edit, &splice, name, out_result);
}

Status edit_call_graph(Edit *edit, Node *node, const Graph *graph, const char *name, Value *out_value)
{
        _cleanup_(value_clear) Value result = value_none();
        TRY(check_call(edit, node));
        TRY(failure_at_node(call_graph(edit, node, graph, name, &result), node_origin(node)));
        TRY(edit_substitute(edit, node, result));
        if (out_value != NULL)
                *out_value = value_ref(result);
        return STATUS_OK;
}

static Status wrap_before(Edit *edit, Node *node, const Graph *before, const char *name)
{
        EditSplice splice = { .graph = before,
                              .before = node,
                              .inputs = node->args.seq->items,
                              .n_inputs = node->args.seq->n,
                              .origin = node };
        Value result = value_none();
        TRY(edit_splice_called(edit, &splice, name, &result));
        if (result.kind != VALUE_TUPLE) {
                Seq *args;
                Status status = seq_new(1, &args);
                if (status != STATUS_OK) {
                        value_unref(result);
                        return status;
                }
                args->items[0] = result;
                result = value_seq_take(VALUE_TUPLE, args);
        }
        return edit_set_args(edit, node, result, value_ref(node->kwargs));
}

// Inserts the graph behind the node. The node's readers get the graph's result; the graph itself
// keeps reading the node.
static Status wrap_after(Edit *edit, Node *node, const EditWrap *wrap, Value *out_result)
{
        uint32_t n;
        Node *last = wrap->behind == NULL ? node : wrap->behind;
        _cleanup_(freep) Node **readers = NULL;
        TRY(readers_behind(edit, node, last, &readers, &n));
        Value own = { .kind = VALUE_NODE, .node = node };
        EditSplice splice = {
                .graph = wrap->after, .before = edit_next(last), .inputs = &own, .n_inputs = 1, .origin = node
        };
        TRY(edit_splice_called(edit, &splice, wrap->after_name, out_result));
        return give_readers(edit, node, readers, n, *out_result);
}

Status edit_wrap(Edit *edit, Node *node, const EditWrap *wrap, Value *out_value)
{
        _cleanup_(value_clear) Value result = { .kind = VALUE_NODE, .node = node };
        TRY(check_call(edit, node));
        if (wrap->before != NULL)
                TRY(failure_at_node(wrap_before(edit, node, wrap->before, wrap->before_name),
                                    node_origin(node)));
        if (wrap->after != NULL)
                TRY(failure_at_node(wrap_after(edit, node, wrap, &result), node_origin(node)));
        if (out_value != NULL)
                *out_value = value_ref(result);
        return STATUS_OK;
}
