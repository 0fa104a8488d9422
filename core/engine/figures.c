// SPDX-License-Identifier: Apache-2.0
#include "core/engine/figures.h"

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/compile/figures.h"
#include "core/engine/private.h"

Status engine_figures(Engine *engine, const Graph *graph, const EditShape *shapes, uint32_t n_shapes,
                      GraphFigures *out_figures)
{
        RunContext ctx;
        Budget budget;
        run_context_init(&ctx);
        budget_init(&budget, (size_t)limits.max_run_memory);
        ctx.budget = &budget;
        ctx.deadline_ns = clock_ns() + limits.run_deadline_ms * 1000000;
        _cleanup_(freep) InputShape *inputs = new_array(n_shapes, sizeof(*inputs));
        if (inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n_shapes; i++)
                inputs[i] = (InputShape){ shapes[i].placeholder, shapes[i].dtype, shapes[i].rank,
                                          shapes[i].size };
        GraphFigures figures;
        TRY(graph_figures(graph, &(InputShapes){ inputs, n_shapes, true }, &ctx, engine->packs, &figures));
        Status status = engine_check_pages(engine, graph); // passes may have read weights
        if (status != STATUS_OK)
                graph_figures_deinit(&figures);
        else
                *out_figures = figures;
        return status;
}
