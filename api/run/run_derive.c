// SPDX-License-Identifier: Apache-2.0
// run_derive.c: from a run's recipe to the graph that runs. The key of that graph is made of the
// base's content, the recipe's text and the contents of the graphs that it calls, so that a known
// recipe costs a hash.
#include "api/run/run_private.h"
#include "core/engine/derive.h"

bool run_has_recipe(const RunCall *run)
{
        return run->recipe.text.n > 0;
}

static Status find_called(const ApiContext *context, RunCall *run)
{
        uint32_t n = run->recipe.n_called;
        if (run->found_called)
                return STATUS_OK;
        run->called = new_array(n, sizeof(*run->called));
        run->called_graphs = new_array(n, sizeof(*run->called_graphs));
        if (run->called == NULL || run->called_graphs == NULL)
                return fail_memory();
        run->found_called = true;
        for (uint32_t i = 0; i < n; i++)
                TRY(engine_find_named(context->engine, run->recipe.called[i], &run->called[i]));
        return STATUS_OK;
}

static DerivedFrom derived_from(const RunCall *run)
{
        return (DerivedFrom){ .base = run->task.graph,
                              .recipe = &run->recipe.text,
                              .called = run->called,
                              .called_graphs = run->called_graphs,
                              .n_called = run->recipe.n_called };
}

static Status take_derived(RunCall *run, Graph *take_graph)
{
        return run_task_derive(&run->task, take_graph,
                               (ValueSpan){ run->recipe.hidden, run->recipe.n_hidden });
}

Status run_derive_known(const ApiContext *context, RunCall *run, bool *out_known)
{
        RegistryKey key;
        TRY(find_called(context, run));
        DerivedFrom from = derived_from(run);
        TRY(engine_derived_key(context->engine, &from, &key));
        Graph *graph = engine_find_derived(context->engine, &key);
        *out_known = graph != NULL;
        return graph == NULL ? STATUS_OK : take_derived(run, graph);
}

GraphVersion *run_next_called(const RunCall *run)
{
        for (uint32_t i = 0; i < run->recipe.n_called; i++)
                if (run->called_graphs[i] == NULL)
                        return run->called[i];
        return NULL;
}

void run_take_called(RunCall *run, Graph *take_graph)
{
        uint32_t i = 0;
        while (run->called_graphs[i] != NULL)
                i++;
        run->called_graphs[i] = take_graph;
}

Status run_derive(const ApiContext *context, RunCall *run)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        RegistryKey key;
        DerivedFrom from = derived_from(run);
        TRY(engine_derived_key(context->engine, &from, &key));
        TRY(recipe_derive(&run->recipe, from.base, (const Graph *const *)run->called_graphs, false,
                          &run->task.ctx, &graph));
        TRY(engine_keep_derived(context->engine, &from, &key, graph));
        return take_derived(run, take_ptr(graph));
}

Status run_check_pages(const ApiContext *context, const RunCall *run)
{
        const RunTask *task = &run->task;
        if (task->authored != NULL) // what it was derived from first: their versions are damaged
                TRY(engine_check_pages(context->engine, task->authored));
        for (uint32_t i = 0; run->found_called && i < run->recipe.n_called; i++)
                TRY(engine_check_version(context->engine, run->called[i]));
        return engine_check_pages(context->engine, task->graph);
}
