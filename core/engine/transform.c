// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transform.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/edit/passes.h"
#include "core/engine/transform_parts.h"
#include "core/eval/eager.h"
#include "core/targets/targets.h"

void transform_bounds_init(TransformBounds *bounds, const Edit *edit)
{
        const RunContext *outer = edit_poll(edit);
        run_context_within(&bounds->ctx, outer);
        budget_init(&bounds->budget, (size_t)limits.max_run_memory);
        bounds->ctx.budget = &bounds->budget;
        if (bounds->ctx.deadline_ns == 0)
                bounds->ctx.deadline_ns = clock_ns() + limits.run_deadline_ms * 1000000;
}

// ---- constants ----

static Status resolve(Graph *graph)
{
        CheckReport report;
        TRY(graph_resolve(graph, &report));
        Status status = check_report_status(&report, graph);
        check_report_deinit(&report);
        return status;
}

static Status run_child(const Graph *graph, RunContext *ctx, Value *out_value)
{
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        TRY(eager_open(graph, ctx, &eager));
        return walk_graph(eager_emitter(eager), graph, &(WalkOptions){ .trace = NULL }, out_value, NULL);
}

static Status fold_child(Edit *edit, const EditChild *child, RunContext *ctx)
{
        uint32_t n;
        _cleanup_(value_clear) Value value = value_none();
        TRY(resolve(child->graph));
        TRY(run_child(child->graph, ctx, &value));
        bool several = child->n_results != 1;
        if (several && (value.kind != VALUE_TUPLE || value.seq->n != child->n_results))
                return fail(STATUS_INTERNAL, "the constants' graph gives another number of results");
        return edit_put_constants(edit, child, several ? value.seq->items : &value, &n);
}

Status engine_constant_fold(Edit *edit)
{
        TransformBounds bounds;
        transform_bounds_init(&bounds, edit);
        _cleanup_(edit_child_deinit) EditChild child = { .graph = NULL };
        TRY(edit_constants(edit, &child));
        return child.graph == NULL ? STATUS_OK : fold_child(edit, &child, &bounds.ctx);
}

Status engine_fuse(Edit *edit)
{
        TransformBounds bounds;
        uint32_t n;
        transform_bounds_init(&bounds, edit);
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        TRY(eager_open(edit_base(edit), &bounds.ctx, &eager));
        return edit_fuse(edit, eager_emitter(eager), &n);
}

// ---- shapes ----

Status engine_note_shape(Edit *edit, Node *node, const TensorMeta *meta)
{
        TensorSpec spec = { .dtype = meta->dtype, .rank = meta->rank };
        for (int i = 0; i < meta->rank; i++)
                spec.size[i].value = meta->size[i];
        return edit_set_spec(edit, node, &spec);
}

static Status note_shape(void *context, const Node *node, const TensorMeta *meta)
{
        return engine_note_shape(context, edit_copy_of(context, node), meta);
}

// Names stay; nodes do not: shapes name the old session's placeholders.
Status engine_same_inputs(const Graph *graph, const EditShape *shapes, uint32_t n, InputShape *out_shapes)
{
        for (uint32_t i = 0; i < n; i++) {
                const Node *node = graph_node(graph, shapes[i].placeholder->name);
                if (node == NULL)
                        return fail(STATUS_INTERNAL, "the input is gone");
                out_shapes[i] = (InputShape){ node, shapes[i].dtype, shapes[i].rank, shapes[i].size };
        }
        return STATUS_OK;
}

Status engine_shape_prop(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes)
{
        TransformBounds bounds;
        transform_bounds_init(&bounds, *io_edit);
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(edit_freep) Edit *edit = NULL;
        _cleanup_(freep) InputShape *inputs = new_array(n_shapes, sizeof(*inputs));
        if (inputs == NULL)
                return fail_memory();
        TRY(edit_reopen(*io_edit, &graph, &edit));
        TRY(engine_same_inputs(graph, shapes, n_shapes, inputs));
        InputShapes given = { .items = inputs, .n = n_shapes };
        TRY(graph_shapes(graph, &given, &bounds.ctx, note_shape, edit));
        edit_free(*io_edit);
        *io_edit = take_ptr(edit);
        return STATUS_OK;
}
