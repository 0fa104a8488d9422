// SPDX-License-Identifier: Apache-2.0
// step_passes.c: the passes and rewrites of steps.def.
#include "api/readers/steps_parts.h"
#include "core/edit/passes.h"
#include "core/edit/pattern.h"
#include "core/engine/transform.h"
#include "core/graph/print.h"

// ---- passes ----

Status step_lint(Step *step)
{
        return edit_lint(step->edit);
}

Status step_eliminate_dead_code(Step *step)
{
        uint32_t n;
        return edit_eliminate_dead_code(step->edit, &n);
}

Status step_cse(Step *step)
{
        uint32_t n;
        return edit_cse(step->edit, &n);
}

Status step_remove_dropout(Step *step)
{
        uint32_t n;
        return edit_remove_dropout(step->edit, &n);
}

Status step_normalise(Step *step)
{
        uint32_t n;
        return edit_normalise(step->edit, &n);
}

Status step_constant_fold(Step *step)
{
        return engine_constant_fold(step->edit);
}

Status step_fuse(Step *step)
{
        return engine_fuse(step->edit);
}

// The pass closes the session and opens another.
typedef Status (*ShapedPass)(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes);

static Status run_shaped(Step *step, ShapedPass pass)
{
        const StepValue *shapes = &step->values[MEMBER_SHAPES];
        TRY(pass(&step->steps->edit, shapes->shapes, shapes->n));
        step->edit = step->steps->edit;
        return STATUS_OK;
}

Status step_shape_prop(Step *step)
{
        return run_shaped(step, engine_shape_prop);
}

Status step_functionalise(Step *step)
{
        return run_shaped(step, engine_functionalise);
}

Status step_decompose(Step *step)
{
        return run_shaped(step, engine_decompose);
}

Status step_extract_subgraph(Step *step)
{
        const StepValue *inputs = &step->values[MEMBER_INPUTS], *outputs = &step->values[MEMBER_OUTPUTS];
        return edit_extract_subgraph(step->edit, inputs->nodes, inputs->n, outputs->nodes, outputs->n);
}

// ---- patterns ----

// {"anchor": "relu", "nodes": {"x": "%a", "relu": "%relu"}, "replacements": ["tanh"]}
static void add_match(Text *out, const Graph *pattern, const EditFound *found)
{
        bool first = true;
        text_add(out, out->n == 0 ? "{\"anchor\": " : ", {\"anchor\": ");
        text_add_json(out, found->anchor->name);
        text_add(out, ", \"nodes\": {");
        for (uint32_t i = 0; i < pattern->n_nodes; i++) {
                if (found->values[i].kind == VALUE_ABSENT)
                        continue;
                text_add(out, first ? "" : ", ");
                first = false;
                text_add_json(out, pattern->nodes[i]->name);
                text_add(out, ": ");
                value_print_json(found->values[i], out);
        }
        text_add(out, "}, \"replacements\": [");
        for (uint32_t i = 0; i < found->n_replacements; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, found->replacements[i]->name);
        }
        text_add(out, "]}");
}

static void add_matches(const Step *step, const Graph *pattern, const EditFinds *finds)
{
        for (uint32_t i = 0; step->matches != NULL && i < finds->n; i++)
                add_match(step->matches, pattern, &finds->items[i]);
}

Status step_match(Step *step)
{
        _cleanup_(edit_finds_deinit) EditFinds finds = { 0 };
        EditPattern pattern = { .graph = step->values[MEMBER_MATCH].graph,
                                .ignore_literals = step->values[MEMBER_IGNORE_LITERALS].flag };
        TRY(edit_find(step->edit, &pattern, &finds));
        add_matches(step, pattern.graph, &finds);
        return STATUS_OK;
}

Status step_rewrite(Step *step)
{
        _cleanup_(edit_finds_deinit) EditFinds finds = { 0 };
        EditPattern pattern = { .graph = step->values[MEMBER_PATTERN].graph,
                                .ignore_literals = step->values[MEMBER_IGNORE_LITERALS].flag };
        TRY(edit_rewrite(step->edit, &pattern, step->values[MEMBER_REPLACEMENT].graph, &finds));
        add_matches(step, pattern.graph, &finds);
        return STATUS_OK;
}
