// SPDX-License-Identifier: Apache-2.0
// Decoded graphs on demand, and runs. A graph that is not decoded yet is loaded by one worker,
// through the registry's single flight; the others' tickets wait.
#include <stdio.h>
#include <string.h>
#include "core/engine/private.h"
#include "core/eval/eager.h"
#include "core/eval/state.h"
#include "core/kernels/random/generator.h"

// ---- decoded graphs ----
static Status damaged(const GraphVersion *version)
{
        return fail(STATUS_DAMAGED, "graph '%s' version %lld is damaged: %s", version->name,
                    (long long)version->stored.version, graph_version_reason(version));
}

static Status read_graph(Engine *engine, const GraphVersion *version, void *out_graph)
{
        return engine_read_graph(engine, version, out_graph);
}

static Status read_version(Engine *engine, GraphVersion *version, Graph **out_graph)
{
        TRY(engine_read_stored(engine, version, read_graph, out_graph));
        engine_recall_tune(engine, version); // before anybody finds the graph
        return STATUS_OK;
}

typedef struct GraphLoad {
        EngineWork work;
        GraphVersion *version; // counted
} GraphLoad;

static Ticket *load(EngineWork *take_work)
{
        Graph *graph = NULL;
        Engine *engine = take_work->engine;
        GraphVersion *version = ((GraphLoad *)take_work)->version;
        Status status = read_version(engine, version, &graph);
        engine_mark(engine, version, status);
        if (atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                damaged(version);
        Ticket *tickets = work_publish(take_work, status == STATUS_OK ? graph : NULL);
        if (status == STATUS_OK)
                engine_prepare(engine, version);
        engine_work_unref(take_work);
        return tickets;
}

static void load_free(EngineWork *work)
{
        graph_version_unref(((GraphLoad *)work)->version);
        free(work);
}

// The first caller loads it, for all who wait.
static Status wait_for_graph(Engine *engine, GraphVersion *version, Ticket *ticket, Graph **out_graph,
                             Wait *out_wait)
{
        static const EngineWorkType type = { .run = load, .free = load_free };
        WorkPlace place = { .registry = engine->decoded, .key = version->key };
        GraphLoad *work = calloc(1, sizeof(*work));
        if (work == NULL)
                return fail_memory();
        work_init(&work->work, &type, engine);
        work->version = graph_version_ref(version);
        void *graph = NULL;
        TRY(work_begin(&work->work, &place, ticket, &graph, out_wait));
        out_wait->at_once = true;
        if (graph != NULL)
                *out_graph = graph;
        return STATUS_OK;
}

Status engine_acquire(Engine *engine, GraphVersion *version, Ticket *ticket, Graph **out_graph,
                      Wait *out_wait)
{
        *out_wait = (Wait){ .parked = false };
        if (atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                return damaged(version);
        Graph *graph = registry_peek(engine->decoded, &version->key);
        if (graph == NULL)
                TRY(wait_for_graph(engine, version, ticket, &graph, out_wait));
        if (out_wait->parked)
                return STATUS_OK;
        engine_mark(engine, version, STATUS_OK);
        *out_graph = graph;
        return STATUS_OK;
}

bool engine_is_resident(Engine *engine, const GraphVersion *version)
{
        return registry_is_ready(engine->decoded, &version->key);
}

Status engine_graph(Engine *engine, GraphVersion *version, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = registry_peek(engine->decoded, &version->key);
        if (graph == NULL) {
                Status status = read_version(engine, version, &graph);
                engine_mark(engine, version, status);
                if (status == STATUS_DAMAGED && atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                        return damaged(version);
                TRY(status);
                TRY(registry_put(engine->decoded, &version->key, graph));
        }
        *out_graph = take_ptr(graph);
        return STATUS_OK;
}

Graph *engine_cached_graph(Engine *engine, const RegistryKey *key)
{
        return registry_peek(engine->decoded, key);
}

Status engine_cache_graph(Engine *engine, const RegistryKey *key, Graph *graph)
{
        graph_set_content(graph, key);
        return registry_put(engine->decoded, key, graph);
}

Status engine_check_version(Engine *engine, GraphVersion *version)
{
        Graph *graph = registry_peek(engine->decoded, &version->key);
        Status status = graph == NULL ? STATUS_OK : engine_check_pages(engine, graph);
        graph_unref(graph);
        return status == STATUS_DAMAGED && atomic_load(&version->state) == GRAPH_STATE_DAMAGED
                       ? damaged(version)
                       : status;
}

// ---- runs ----
void run_result_deinit(RunResult *result)
{
        value_clear(&result->value);
        for (uint32_t i = 0; i < result->n_fetched; i++)
                value_clear(&result->fetched[i]);
        free(result->fetched);
        *result = (RunResult){ .fetched = NULL };
}

// The end of both ways of running: the trace goes straight into the profile's rows.
static void end_run(RunContext *ctx, const WalkTrace *trace, int64_t start_ns, RunProfile *profile)
{
        profile->run_start_ns = start_ns;
        profile->run_ns = clock_ns() - start_ns;
        profile->n_rows = trace->n_rows;
        profile->peak_live_bytes = ctx->budget == NULL ? 0 : atomic_load(&ctx->budget->peak);
}

static Status run_eagerly(const Graph *graph, const RunRequest *request, ValueSpan inputs, RunContext *ctx,
                          RunProfile *profile, RunResult *result)
{
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        WalkTrace trace = { .rows = profile->rows, .capacity = profile->n_rows_capacity };
        WalkOptions options = {
                .inputs = inputs, .fetch = request->fetch, .n_fetch = request->n_fetch, .trace = &trace
        };
        TRY(eager_open(graph, ctx, &eager));
        int64_t start_ns = clock_ns();
        Status status = walk_graph(eager_emitter(eager), graph, &options, &result->value, result->fetched);
        if (status == STATUS_OK)
                eager_leave_state(eager);
        end_run(ctx, &trace, start_ns, profile);
        return status;
}

// The states that the program wrote stand behind the values that were asked for.
static void leave_state(const Recording *recording, const RunState *state, uint32_t n_fetch,
                        RunResult *result)
{
        uint32_t at = n_fetch;
        for (uint32_t i = 0; i < recording->n_states; i++) {
                const Buffer *buffer = recording->states[i];
                if (!buffer->written)
                        continue;
                Storage **after = &state->after[buffer->number];
                if (*after == NULL)
                        *after = storage_ref(result->fetched[at].tensor->storage);
                value_clear(&result->fetched[at++]);
        }
}

static Status run_program(CachedProgram *cached, ValueSpan inputs, RunContext *ctx, Frame *frame,
                          RunProfile *profile, RunResult *result)
{
        Program *program = cached->program;
        if (atomic_load_explicit(&cached->batch, memory_order_relaxed) != 0)
                atomic_store_explicit(&cached->batch, 0, memory_order_relaxed);
        TRY(run_profile_reserve(profile, program->n_rows));
        WalkTrace trace = { .rows = profile->rows, .capacity = profile->n_rows_capacity };
        ProgramRun run = { .inputs = inputs, .trace = &trace };
        int64_t start_ns = clock_ns();
        Status status = program_run(program, frame, &run, ctx, &result->value, result->fetched);
        end_run(ctx, &trace, start_ns, profile);
        if (status == STATUS_OK) {
                cached_program_used(cached, profile->run_ns);
                if (ctx->state != NULL)
                        leave_state(program->recording, ctx->state, program->n_fetch, result);
                result->n_fetched = program->n_fetch;
        }
        profile->program = program_ref(program);
        profile->labels = run_labels_ref(cached->labels);
        profile->arena_bytes = program->figures.arena_bytes;
        return status;
}

Status engine_execute(PlannedRun *plan, RunContext *ctx, Frame *frame, RunProfile *profile,
                      RunResult *out_result)
{
        const RunRequest *request = &plan->request;
        ValueSpan inputs = { plan->inputs, plan->n_inputs };
        RunResult result = { .value = value_none(), .n_fetched = request->n_fetch };
        if (ctx->generator != NULL && ctx->state == NULL) // a session's goes on
                generator_rewind(ctx->generator);
        if (plan->program != NULL) // of one with an eager tail the recording has none
                result.n_fetched = MAX(request->n_fetch, plan->program->program->recording->n_fetched);
        result.fetched = new_array(result.n_fetched, sizeof(*result.fetched));
        if (result.fetched == NULL)
                return fail_memory();
        Status status = plan->program != NULL && frame != NULL
                                ? run_program(plan->program, inputs, ctx, frame, profile, &result)
                                : run_eagerly(plan->graph, request, inputs, ctx, profile, &result);
        if (status != STATUS_OK)
                run_result_deinit(&result);
        else
                *out_result = result;
        return status;
}

Status engine_plan_here(Engine *engine, PlannedRun *plan)
{
        Ticket ticket = { .next = NULL };
        Wait wait;
        bool again;
        TRY(engine_plan(engine, plan, &ticket, &wait));
        if (wait.work != NULL)
                // whoever else waits for it is a caller of this function, too: it has left
                engine_work_do(wait.work);
        if (wait.parked)
                return ticket_cancel(&ticket) ? STATUS_OK : engine_planned(plan, &ticket, &again);
        if (wait.work != NULL)
                engine_plan_ready(engine, plan);
        return STATUS_OK;
}
