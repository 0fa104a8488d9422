// SPDX-License-Identifier: Apache-2.0
// Decoded graphs on demand, and runs. A graph that is not decoded yet is loaded by one worker,
// through the registry's single flight; the others' tickets wait.
#include <stdio.h>
#include <string.h>
#include "core/engine/private.h"
#include "core/eval/eager.h"

// ---- decoded graphs ----
static Status damaged(const GraphVersion *version)
{
        return fail(STATUS_DAMAGED, "graph '%s' version %lld is damaged: %s", version->name,
                    (long long)version->stored.version, graph_version_reason(version));
}

Status engine_acquire(Engine *engine, GraphVersion *version, Ticket *ticket, Acquired *out_how,
                      Graph **out_graph, RegistryEntry **out_build)
{
        if (atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                return damaged(version);
        Acquisition got;
        TRY(registry_acquire(engine->decoded, &version->key, NULL, ticket, &got));
        *out_how = got.how;
        *out_graph = got.object;
        if (got.how == ACQUIRE_START)
                *out_build = got.build;
        if (got.how == ACQUIRE_READY)
                engine_mark(engine, version, STATUS_OK);
        return STATUS_OK;
}

bool engine_cancel_acquire(Engine *engine, Ticket *ticket)
{
        return registry_cancel(engine->decoded, ticket);
}

Ticket *engine_load(Engine *engine, GraphVersion *version, RegistryEntry *build)
{
        Graph *graph = NULL;
        Status status = engine_read_graph(engine, version, &graph);
        engine_mark(engine, version, status);
        if (atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                damaged(version);
        if (status == STATUS_OK)
                engine_recall_tune(engine, version);
        Ticket *tickets = registry_publish(engine->decoded, build, status == STATUS_OK ? graph : NULL);
        if (status == STATUS_OK)
                engine_prepare(engine, version);
        return tickets;
}

bool engine_is_resident(Engine *engine, const GraphVersion *version)
{
        return registry_is_ready(engine->decoded, &version->key);
}

Status engine_graph(Engine *engine, GraphVersion *version, Graph **out_graph)
{
        _cleanup_(graph_unrefp) Graph *graph = registry_peek(engine->decoded, &version->key);
        if (graph == NULL) {
                Status status = engine_read_graph(engine, version, &graph);
                engine_mark(engine, version, status);
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

// ---- runs ----
void run_result_deinit(RunResult *result)
{
        value_clear(&result->value);
        for (uint32_t i = 0; i < result->n_fetched; i++)
                value_clear(&result->fetched[i]);
        free(result->fetched);
        *result = (RunResult){ .fetched = NULL };
}

// What both ways of running share: the trace goes straight into the profile's rows.
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
        end_run(ctx, &trace, start_ns, profile);
        return status;
}

static Status run_program(CachedProgram *cached, ValueSpan inputs, RunContext *ctx, Frame *frame,
                          RunProfile *profile, RunResult *result)
{
        Program *program = cached->program;
        TRY(run_profile_reserve(profile, program->n_rows));
        WalkTrace trace = { .rows = profile->rows, .capacity = profile->n_rows_capacity };
        ProgramRun run = { .inputs = inputs, .trace = &trace };
        int64_t start_ns = clock_ns();
        Status status = program_run(program, frame, &run, ctx, &result->value, result->fetched);
        end_run(ctx, &trace, start_ns, profile);
        if (status == STATUS_OK)
                cached_program_used(cached, profile->run_ns);
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
        result.fetched = new_array(request->n_fetch, sizeof(*result.fetched));
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
        ProgramBuild *build;
        Planned how;
        bool again;
        TRY(engine_plan(engine, plan, &ticket, &how, &build));
        if (build != NULL)
                // whoever else waits for it is a caller of this function, too: it has left
                engine_build(build);
        if (how == PLAN_PARKED)
                return engine_cancel_plan(engine, &ticket) ? STATUS_OK
                                                           : engine_planned(plan, &ticket, &again);
        if (build != NULL)
                engine_plan_ready(engine, plan);
        return STATUS_OK;
}

void engine_record(Engine *engine, GraphVersion *version, RunProfile *profile)
{
        atomic_fetch_add(&engine->n_runs, 1u);
        engine_note_program(engine, version, profile->program);
        if (!run_profile_detach(profile))
                return;
        profile_ring_add(engine->profiles, profile);
        if (version != NULL)
                profile_stats_add(version->stats, profile);
}

ProfileRing *engine_profiles(Engine *engine)
{
        return engine->profiles;
}
