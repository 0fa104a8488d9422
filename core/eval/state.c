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

// ---- by storage: a table that every run of a session asks ----
typedef struct Numbers {
        uint32_t n, n_slots; // n_slots: a power of two
        struct {
                const Storage *origin; // NULL: free
                uint32_t number;
        } slots[];
} Numbers;

// Where the storage is, or would be.
static uint32_t slot_of(const Numbers *numbers, const Storage *origin)
{
        uint64_t hash = (uint64_t)(uintptr_t)origin * 0x9e3779b97f4a7c15u;
        uint32_t at = (uint32_t)(hash >> 32) & (numbers->n_slots - 1);
        while (numbers->slots[at].origin != NULL && numbers->slots[at].origin != origin)
                at = (at + 1) & (numbers->n_slots - 1);
        return at;
}

// Recursion as in `search`, in its order: the first entry of a storage gives the number.
static void fill(Numbers *numbers, const Graph *graph, int depth)
{
        for (uint32_t i = 0; i < graph->n_state; i++, numbers->n++) {
                const Storage *origin = graph->state[i].tensor->storage;
                uint32_t at = origin == NULL ? 0 : slot_of(numbers, origin);
                if (origin != NULL && numbers->slots[at].origin == NULL) {
                        numbers->slots[at].origin = origin;
                        numbers->slots[at].number = numbers->n;
                }
        }
        for (uint32_t i = 0; i < graph->n_modules && depth < limits.max_child_graphs; i++)
                if (graph->modules[i]->graph != NULL)
                        fill(numbers, graph->modules[i]->graph, depth + 1);
}

// NULL: no memory. Threads that come at once make equal ones, and one of them stays.
static const Numbers *numbers_of(const Graph *graph)
{
        _Atomic(void *) *place = &((Graph *)graph)->state_numbers;
        void *there = atomic_load(place);
        if (there != NULL)
                return there;
        uint32_t n_slots = 16;
        for (uint32_t n = state_count(graph); n_slots < 2 * (uint64_t)n;)
                n_slots *= 2;
        Numbers *numbers = calloc(1, sizeof(*numbers) + n_slots * sizeof(numbers->slots[0]));
        if (numbers == NULL)
                return NULL;
        numbers->n_slots = n_slots;
        fill(numbers, graph, 0);
        if (atomic_compare_exchange_strong(place, &there, numbers))
                return numbers;
        free(numbers);
        return there;
}

uint32_t state_number(const Graph *graph, const Storage *origin)
{
        const Numbers *numbers = numbers_of(graph);
        Search one = { .origin = origin };
        if (numbers != NULL) {
                uint32_t at = slot_of(numbers, origin);
                return numbers->slots[at].origin == NULL ? numbers->n : numbers->slots[at].number;
        }
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
