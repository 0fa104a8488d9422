// SPDX-License-Identifier: Apache-2.0
// state.c: a walk over the entries of a graph and its child graphs.
#include "core/eval/state.h"
#include "core/base/limits.h"

typedef struct Search {
        const Storage *origin; // NULL: looks for a number
        uint32_t number, n;
        const State *found;
} Search;

// Recursion: graphs are nested at most limits.max_child_graphs deep.
static void search(Search *search_for, const Graph *graph, int depth)
{
        for (uint32_t i = 0; i < graph->n_state && search_for->found == NULL; i++, search_for->n++) {
                const State *state = &graph->state[i];
                bool hit = search_for->origin != NULL ? state->tensor->storage == search_for->origin
                                                      : search_for->n == search_for->number;
                if (hit)
                        search_for->found = state;
        }
        for (uint32_t i = 0; i < graph->n_modules && depth < limits.max_child_graphs; i++)
                if (graph->modules[i]->graph != NULL && search_for->found == NULL)
                        search(search_for, graph->modules[i]->graph, depth + 1);
}

uint32_t state_count(const Graph *graph)
{
        Search all = { .number = UINT32_MAX };
        search(&all, graph, 0);
        return all.n;
}

uint32_t state_number(const Graph *graph, const Storage *origin)
{
        Search one = { .origin = origin };
        search(&one, graph, 0);
        return one.found == NULL ? one.n : one.n - 1;
}

const State *state_at(const Graph *graph, uint32_t number)
{
        Search one = { .number = number };
        search(&one, graph, 0);
        return one.found;
}

void run_state_clear(RunState *state)
{
        for (uint32_t i = 0; i < state->n && state->after != NULL; i++)
                state->after[i] = storage_unref(state->after[i]);
        free(state->after);
        *state = (RunState){ .n = 0 };
}
