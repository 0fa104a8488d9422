// SPDX-License-Identifier: Apache-2.0
// step_edits.c: the edits of steps.def, by the functions of core/edit.
#include "api/readers/steps_parts.h"
#include "core/edit/leaf.h"
#include "core/edit/passes.h"

static Node *node_of(const Step *step, StepMember id)
{
        return step->values[id].node;
}

static const char *text_of(const Step *step, StepMember id)
{
        return step->values[id].text;
}

// The node's arguments move into it.
static EditNew take_new(Step *step)
{
        FxNode *from = &step->values[MEMBER_NEW].new;
        EditNew new = { .op = from->op,
                        .name = from->name,
                        .target = from->target,
                        .args = from->args,
                        .kwargs = from->kwargs,
                        .type = from->type,
                        .notes = from->notes.data,
                        .spec = from->has_spec ? &from->spec : NULL };
        from->args = from->kwargs = value_none();
        return new;
}

// ---- nodes ----

Status step_set_target(Step *step)
{
        Node *node = node_of(step, MEMBER_NODE);
        Opcode op = step->values[MEMBER_OP].op;
        if (!step_has(step, MEMBER_OP))
                return edit_set_target(step->edit, node, text_of(step, MEMBER_TARGET));
        bool call = op == OP_CALL_FUNCTION || op == OP_CALL_METHOD || op == OP_CALL_MODULE;
        if (op != node->op && !(call && node_is_call(node)))
                return failure_at_node(fail(STATUS_LINT, "a %s cannot become a %s", opcode_names[node->op],
                                            opcode_names[op]),
                                       node->name);
        return edit_set_call(step->edit, node, op, text_of(step, MEMBER_TARGET));
}

Status step_replace(Step *step)
{
        Node *made;
        EditNew new = take_new(step);
        return edit_replace(step->edit, node_of(step, MEMBER_NODE), &new, &made);
}

Status step_insert_before(Step *step)
{
        Node *made;
        EditNew new = take_new(step);
        return edit_insert_before(step->edit, node_of(step, MEMBER_NODE), &new, &made);
}

Status step_insert_after(Step *step)
{
        Node *made;
        EditNew new = take_new(step);
        return edit_insert_after(step->edit, node_of(step, MEMBER_NODE), &new, &made);
}

Status step_replace_all_uses(Step *step)
{
        return edit_replace_all_uses(step->edit, node_of(step, MEMBER_NODE), step->values[MEMBER_WITH].value,
                                     node_of(step, MEMBER_EXCEPT));
}

Status step_erase(Step *step)
{
        return edit_erase(step->edit, node_of(step, MEMBER_NODE));
}

Status step_move(Step *step)
{
        Node *node = node_of(step, MEMBER_NODE);
        if (step_has(step, MEMBER_BEFORE) == step_has(step, MEMBER_AFTER))
                return fail(STATUS_MALFORMED, "the step needs either \"before\" or \"after\"");
        return step_has(step, MEMBER_BEFORE)
                       ? edit_move_before(step->edit, node, node_of(step, MEMBER_BEFORE))
                       : edit_move_after(step->edit, node, node_of(step, MEMBER_AFTER));
}

Status step_rename(Step *step)
{
        return edit_rename(step->edit, node_of(step, MEMBER_NODE), text_of(step, MEMBER_NAME));
}

Status step_set_args(Step *step)
{
        Node *node = node_of(step, MEMBER_NODE);
        bool args = step_has(step, MEMBER_ARGS), kwargs = step_has(step, MEMBER_KWARGS);
        return edit_set_args(step->edit, node, value_ref(args ? step->values[MEMBER_ARGS].value : node->args),
                             value_ref(kwargs ? step->values[MEMBER_KWARGS].value : node->kwargs));
}

Status step_replace_input(Step *step)
{
        return edit_replace_input(step->edit, node_of(step, MEMBER_NODE), node_of(step, MEMBER_FROM),
                                  step->values[MEMBER_WITH].value);
}

// ---- results ----

Status step_add_output(Step *step)
{
        return edit_add_output(step->edit, value_ref(step->values[MEMBER_RESULT].value));
}

Status step_remove_output(Step *step)
{
        return edit_remove_output(step->edit, (uint32_t)step->values[MEMBER_INDEX].index);
}

// ---- modules and state ----

static Status put_module(Step *step,
                         Status (*put)(Edit *edit, const char *path, const EditModule *take_module))
{
        const Module *from = graph_module(step->values[MEMBER_MODULE].graph, "module");
        EditModule module = { .type = from->type, .training = from->training, .graph = from->graph };
        _cleanup_(freep) ModuleConfig *config = new_array(from->n_config, sizeof(*config));
        if (config == NULL)
                return fail_memory();
        module.config = config;
        for (; module.n_config < from->n_config; module.n_config++) {
                config[module.n_config] = from->config[module.n_config];
                value_ref(config[module.n_config].value);
        }
        return put(step->edit, text_of(step, MEMBER_PATH), &module);
}

Status step_add_module(Step *step)
{
        return put_module(step, edit_add_module);
}

Status step_replace_module(Step *step)
{
        return put_module(step, edit_replace_module);
}

Status step_delete_module(Step *step)
{
        return edit_delete_module(step->edit, text_of(step, MEMBER_PATH));
}

Status step_set_state(Step *step)
{
        return edit_set_state(step->edit, text_of(step, MEMBER_PATH),
                              tensor_ref(step->values[MEMBER_TENSOR].tensor));
}

Status step_delete_state(Step *step)
{
        return edit_delete_state(step->edit, text_of(step, MEMBER_PATH));
}

Status step_rename_state(Step *step)
{
        return edit_rename_state(step->edit, text_of(step, MEMBER_PATH), text_of(step, MEMBER_TO));
}

// ---- child graphs ----

Status step_inline(Step *step)
{
        return edit_inline(step->edit, node_of(step, MEMBER_NODE));
}

Status step_outline(Step *step)
{
        Node *call;
        const StepValue *nodes = &step->values[MEMBER_NODES];
        return edit_outline(step->edit, nodes->nodes, nodes->n, text_of(step, MEMBER_PATH), &call);
}

Status step_leaf(Step *step)
{
        const StepValue *types = &step->values[MEMBER_TYPES], *paths = &step->values[MEMBER_PATHS];
        EditLeaves leaves = {
                .types = types->texts, .paths = paths->texts, .n_types = types->n, .n_paths = paths->n
        };
        return edit_inline_calls(step->edit, &leaves);
}
