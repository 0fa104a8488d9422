// SPDX-License-Identifier: Apache-2.0
// declared.c: warm-ups that graphs declare, as work for when no request waits (idle.c).
#include "core/engine/declared.h"
#include <string.h>
#include "core/edit/edit.h"
#include "core/engine/private.h"

// After these, about three seconds apart in all, requests wait for the warm-up instead: with one
// worker, a client that asks without pause would stop it for ever. Where the queue is never empty,
// it begins only once it is late, and that takes nine seconds.
enum { STOPS_BEFORE_INSISTING = 5 };

const char *const warm_up_state_names[] = { [WARM_UP_NONE] = "not the default version",
                                            [WARM_UP_WAITING] = "waiting",
                                            [WARM_UP_DONE] = "done",
                                            [WARM_UP_FAILED] = "failed" };

// ---- states ----
// `n_warming` counts the versions that wait. Under the engine's mutex, so that a state belongs to
// the line that was declared last.
static void set_state(Engine *engine, GraphVersion *version, WarmUpState state)
{
        int old = atomic_exchange(&version->warming, (int)state);
        if (old != WARM_UP_WAITING && state == WARM_UP_WAITING)
                atomic_fetch_add(&engine->n_warming, 1u);
        if (old == WARM_UP_WAITING && state != WARM_UP_WAITING &&
            atomic_fetch_sub(&engine->n_warming, 1u) == 1)
                atomic_store(&engine->was_warm, true);
}

bool engine_is_warm(Engine *engine)
{
        if (!atomic_load(&engine->was_warm) && atomic_load(&engine->n_warming) == 0)
                atomic_store(&engine->was_warm, true);
        return atomic_load(&engine->was_warm);
}

static void start(Engine *engine, GraphVersion *version)
{
        version->n_declared++;
        set_state(engine, version, WARM_UP_WAITING);
        if (!engine_push_declared(engine, version, 0))
                set_state(engine, version, WARM_UP_FAILED);
}

void engine_declare(Engine *engine, EngineGraph *graph, bool again)
{
        for (uint32_t i = 0; i < graph->n_versions; i++) {
                GraphVersion *version = graph->versions[i];
                int64_t number = version->stored.version;
                const char *line = store_head_setting(&graph->head, SETTING_WARM_UP, number);
                bool is_default = number == graph->head.default_version, is_new = again;
                if (version->declared == NULL || strcmp(version->declared, line) != 0) {
                        free(version->declared);
                        version->declared = strdup(line);
                        set_state(engine, version, WARM_UP_NONE);
                        is_new = true;
                }
                if (line[0] != '\0' && is_default && (is_new || warm_up_state(version) == WARM_UP_NONE))
                        start(engine, version);
        }
}

void engine_declare_again(Engine *engine, const char *name)
{
        pthread_mutex_lock(&engine->mutex);
        EngineGraph *graph = string_map_get(&engine->graphs, name);
        if (graph != NULL)
                engine_declare(engine, graph, true);
        pthread_mutex_unlock(&engine->mutex);
}

// ---- lines ----
enum { ENTRY_BYTES = STORE_SETTING_MAX + 1 };

// The entry at *at, which moves behind it. False: there is none.
static bool next_entry(const char **at, char out_entry[ENTRY_BYTES])
{
        *at += strspn(*at, " ");
        size_t n = strcspn(*at, " ");
        if (n == 0 || n >= ENTRY_BYTES)
                return false;
        memcpy(out_entry, *at, n);
        out_entry[n] = '\0';
        *at += n;
        if (strcmp(out_entry, "-") == 0)
                out_entry[0] = '\0';
        return true;
}

void warm_up_each(const char *line, void (*write)(void *context, const char *shapes, bool is_first),
                  void *context)
{
        char entry[ENTRY_BYTES];
        for (bool first = true; next_entry(&line, entry); first = false)
                write(context, entry, first);
}

Status warm_up_check(const Graph *graph, const char *line)
{
        char entry[ENTRY_BYTES];
        while (next_entry(&line, entry)) {
                PlannedRun plan = { .graph = NULL };
                Status status = engine_shapes_plan(graph, entry, 1, &plan);
                if (status == STATUS_DYNAMIC)
                        return fail(STATUS_VALUE,
                                    "\"%s\" leaves shapes open: every input needs one, here or in "
                                    "the graph's signature",
                                    entry);
                TRY(status);
                planned_run_deinit(&plan);
        }
        return STATUS_OK;
}

// ---- the work ----
typedef struct DeclaredWork {
        EngineWork work;
        GraphVersion *version; // counted
        uint32_t n_stops;
        bool late;
        int n_threads;
        RunContext ctx;
} DeclaredWork;

static Status build_one(DeclaredWork *it, const Graph *graph, const char *shapes)
{
        PlannedRun plan = { .graph = NULL };
        Program *program = NULL;
        Status status = engine_shapes_plan(graph, shapes, it->n_threads, &plan);
        if (status == STATUS_OK) {
                plan.request.precision = (Precision)atomic_load(&it->version->precision);
                plan.request.bucket = atomic_load(&it->version->bucket);
                plan.request.version = it->version;
                status = engine_compile(it->work.engine, &plan, true, &it->ctx, &program);
        }
        planned_run_deinit(&plan);
        program_unref(program);
        return status;
}

// A stored graph's first program is made to learn from, and those after it follow what was learnt:
// programs that are built before are not those that runs will ask for. But where the queue is never
// empty, nothing is tuned.
static Status wait_for_tuning(DeclaredWork *it, const Graph *graph, const char *line)
{
        enum { LONG_ENOUGH = 8 }; // pauses, each twice as long as the one before
        char entry[ENTRY_BYTES];
        PlannedRun plan = { .graph = NULL };
        if (it->n_stops >= LONG_ENOUGH || (it->late && it->work.insists) ||
            !engine_wants_tuning(it->work.engine, graph) || !next_entry(&line, entry))
                return STATUS_OK;
        TRY(engine_shapes_plan(graph, entry, it->n_threads, &plan));
        engine_learn_later(it->work.engine, &plan);
        planned_run_deinit(&plan);
        return fail(STATUS_CANCELLED, "tuning comes first");
}

// All that is declared, whatever comes of the one before it; the failure is the last one's.
static Status build_all(DeclaredWork *it, const char *line)
{
        char entry[ENTRY_BYTES];
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        Status status = STATUS_OK;
        TRY(engine_graph(it->work.engine, it->version, &graph));
        TRY(wait_for_tuning(it, graph, line));
        while (status != STATUS_CANCELLED && next_entry(&line, entry)) {
                Status one = build_one(it, graph, entry);
                if (one == STATUS_OK)
                        continue;
                status = one;
                if (one != STATUS_CANCELLED)
                        engine_say(it->work.engine, "graph '%s': the warm-up '%s' failed: %s",
                                   it->version->name, entry, failure_current()->message);
        }
        return status;
}

static void finish(DeclaredWork *it, uint64_t n_declared, Status status)
{
        Engine *engine = it->work.engine;
        pthread_mutex_lock(&engine->mutex);
        bool gone = atomic_load(&it->version->unloaded);
        bool again = status == STATUS_CANCELLED && !gone &&
                     engine_push_declared(engine, it->version, it->n_stops + 1);
        if (!again && it->version->n_declared == n_declared && warm_up_state(it->version) == WARM_UP_WAITING)
                set_state(engine, it->version,
                          gone                  ? WARM_UP_NONE
                          : status == STATUS_OK ? WARM_UP_DONE
                                                : WARM_UP_FAILED);
        pthread_mutex_unlock(&engine->mutex);
}

static Ticket *run_declared(EngineWork *take_work)
{
        DeclaredWork *it = (DeclaredWork *)take_work;
        Engine *engine = it->work.engine;
        char line[ENTRY_BYTES] = "";
        pthread_mutex_lock(&engine->mutex);
        uint64_t n_declared = it->version->n_declared;
        if (it->version->declared != NULL)
                memcpy(line, it->version->declared, strlen(it->version->declared) + 1);
        pthread_mutex_unlock(&engine->mutex);
        if (atomic_load(&it->version->unloaded))
                line[0] = '\0';
        finish(it, n_declared, line[0] == '\0' ? STATUS_OK : build_all(it, line));
        engine_work_unref(take_work);
        return NULL;
}

static void free_declared(EngineWork *work)
{
        DeclaredWork *it = (DeclaredWork *)work;
        graph_version_unref(it->version);
        free(it);
}

EngineWork *declared_work_new(Engine *engine, GraphVersion *version, uint32_t n_stops, bool late,
                              int n_threads)
{
        static const EngineWorkType type = { .run = run_declared, .free = free_declared };
        DeclaredWork *it = calloc(1, sizeof(*it));
        if (it == NULL) {
                pthread_mutex_lock(&engine->mutex);
                set_state(engine, version, WARM_UP_FAILED);
                pthread_mutex_unlock(&engine->mutex);
                return NULL;
        }
        work_init(&it->work, &type, engine);
        it->work.stop = &it->ctx.cancelled;
        it->work.insists = n_stops >= STOPS_BEFORE_INSISTING;
        it->version = graph_version_ref(version);
        it->n_stops = n_stops;
        it->late = late;
        it->n_threads = n_threads;
        run_context_init(&it->ctx);
        it->ctx.n_threads = MAX(n_threads, 1);
        return &it->work;
}
