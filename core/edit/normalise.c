// SPDX-License-Identifier: Apache-2.0
// normalise.c: calls by names of Python become calls of the overload that they reach.
//
// What a node holds is not always known, so a call may fit several overloads. It is only changed
// where the choice does not matter: the others take a number where the chosen one takes a tensor,
// and that is known to be one, or numbers may stand in its place. Calls with several results stay:
// by Python's names lists are tuples, and items have names.
#include <string.h>
#include "core/edit/edit_parts.h"
#include "core/edit/passes.h"
#include "core/targets/targets.h"

static const Target *target_of(const Node *node)
{
        if (node->op == OP_CALL_FUNCTION)
                return target_function(node->target);
        return node->op == OP_CALL_METHOD ? target_method(node->target) : NULL;
}

static bool is_number(const SchemaArg *arg)
{
        return !arg->is_list && (arg->type == ARG_SCALAR || arg->type == ARG_INT || arg->type == ARG_FLOAT);
}

static bool holds_tensor(Value value)
{
        if (value.kind != VALUE_NODE)
                return false;
        const Node *node = value.node;
        const Input *input = edit_node_of(node)->input;
        if (input != NULL)
                return input->kind == INPUT_STATE || input->value_kind == VALUE_TENSOR;
        const Overload *overload = node->op == OP_CALL_FUNCTION ? op_find(node->target) : NULL;
        return node->spec != NULL || (overload != NULL && overload->schema.returns == RETURN_ONE &&
                                      overload->schema.return_types[0].type == ARG_TENSOR);
}

// A call, bound to the overload that was chosen for it.
typedef struct Choice {
        const Overload *chosen;
        const Value *args;
        uint64_t given;
} Choice;

static bool may_stand_for(const Choice *choice, const Overload *other)
{
        const Overload *chosen = choice->chosen;
        if (chosen == other)
                return true;
        if (chosen->schema.n_args != other->schema.n_args)
                return false;
        for (uint32_t i = 0; i < chosen->schema.n_args; i++) {
                const SchemaArg *a = &chosen->schema.args[i], *b = &other->schema.args[i];
                bool same = a->type == b->type && a->is_list == b->is_list;
                bool tensor = a->type == ARG_TENSOR && !a->is_list && is_number(b) &&
                              ((chosen->op->flags & OP_NUMBERS) != 0 || (choice->given >> i & 1) == 0 ||
                               holds_tensor(choice->args[i]));
                if (strcmp(a->name, b->name) != 0 || (!same && !tensor))
                        return false;
        }
        return true;
}

static bool is_decided(const Target *target, const Choice *choice, const CallArgs *call)
{
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                if (schema_fits(&target->overloads[i]->schema, call, BIND_STRICT) &&
                    !may_stand_for(choice, target->overloads[i]))
                        return false;
        }
        return true;
}

// A lone number where a list of any length belongs: Python's name takes it, the overload does not.
static bool is_lone(const SchemaArg *arg, Value value)
{
        return arg->is_list && arg->list_size == 0 && (value.kind == VALUE_INT || value.kind == VALUE_NODE);
}

// Python's names take one number for a list; overloads do not, or not all of them.
static Status own_value(const SchemaArg *arg, Value value, Value *out)
{
        Seq *seq;
        bool spread = arg->is_list && value.kind == VALUE_INT;
        *out = value_ref(value);
        if (!spread && !is_lone(arg, value))
                return STATUS_OK;
        uint32_t n = arg->list_size == 0 ? 1 : (uint32_t)arg->list_size;
        TRY(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value;
        *out = value_seq_take(VALUE_LIST, seq);
        return STATUS_OK;
}

// A node may be a number or a list.
static bool has_lone_node(const Schema *schema, const Value *args, uint64_t given)
{
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if ((given >> i & 1) != 0 && args[i].kind == VALUE_NODE && is_lone(&schema->args[i], args[i]))
                        return true;
        }
        return false;
}

// Positional as far as nothing is left out, then by keyword.
static Status lay_out(const Schema *schema, const Value *args, uint64_t given, Value *out_args,
                      Value *out_kwargs)
{
        uint32_t n_args = 0, n_kwargs = 0, at = 0;
        Seq *seq;
        Dict *dict;
        while (n_args < schema->n_args && !schema->args[n_args].kwarg_only && (given >> n_args & 1) != 0)
                n_args++;
        for (uint32_t i = n_args; i < schema->n_args; i++)
                n_kwargs += (given >> i & 1) != 0;
        TRY(seq_new(n_args, &seq));
        *out_args = value_seq_take(VALUE_TUPLE, seq);
        for (uint32_t i = 0; i < n_args; i++)
                TRY(own_value(&schema->args[i], args[i], &seq->items[i]));
        TRY(dict_new(n_kwargs, &dict));
        *out_kwargs = (Value){ .kind = VALUE_DICT, .dict = dict };
        for (uint32_t i = n_args; i < schema->n_args; i++) {
                if ((given >> i & 1) == 0)
                        continue;
                TRY(str_new(schema->args[i].name, strlen(schema->args[i].name), &dict->items[at].key));
                TRY(own_value(&schema->args[i], args[i], &dict->items[at++].value));
        }
        return STATUS_OK;
}

static Status call_overload(Edit *edit, Node *node, const Overload *overload, const CallArgs *call,
                            uint32_t *out_n)
{
        const Target *target = target_of(node);
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        _cleanup_(value_clear) Value new_args = value_none();
        _cleanup_(value_clear) Value new_kwargs = value_none();
        TRY(schema_bind(&overload->schema, call, BIND_NUMBERS, args, &given));
        Choice choice = { overload, args, given };
        bool decided = !has_lone_node(&overload->schema, args, given) && is_decided(target, &choice, call);
        Status status = decided ? lay_out(&overload->schema, args, given, &new_args, &new_kwargs) : STATUS_OK;
        schema_release(&overload->schema, args, given);
        if (status != STATUS_OK || !decided)
                return status;
        (*out_n)++;
        TRY(edit_set_call(edit, node, OP_CALL_FUNCTION, overload->target));
        Value take_args = new_args, take_kwargs = new_kwargs;
        new_args = new_kwargs = value_none();
        return edit_set_args(edit, node, take_args, take_kwargs);
}

static Status normalise(Edit *edit, Node *node, uint32_t *out_n)
{
        const Target *target = target_of(node);
        CallArgs call = { .args = node->args.seq->items,
                          .n_args = node->args.seq->n,
                          .kwargs = node->kwargs.dict->items,
                          .n_kwargs = node->kwargs.dict->n };
        const Overload *overload = target == NULL ? NULL : target_choose(target, &call);
        if (overload == NULL || strcmp(overload->schema.ns, "aten") != 0 ||
            overload->schema.returns != RETURN_ONE || strcmp(overload->target, node->target) == 0)
                return STATUS_OK;
        return failure_at_node(call_overload(edit, node, overload, &call, out_n), node->name);
}

Status edit_normalise(Edit *edit, uint32_t *out_n)
{
        *out_n = 0;
        TRY(edit_lint(edit));
        for (Node *node = edit_first(edit); node != NULL; node = edit_next(node))
                TRY(normalise(edit, node, out_n));
        return STATUS_OK;
}
