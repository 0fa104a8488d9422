// SPDX-License-Identifier: Apache-2.0
#include "core/engine/figures.h"

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/compile/figures.h"

Status engine_figures(const Graph *graph, const EditShape *shapes, uint32_t n_shapes,
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
        return graph_figures(graph, &(InputShapes){ inputs, n_shapes }, &ctx, out_figures);
}
