// SPDX-License-Identifier: Apache-2.0
// Decoded graphs on demand, and runs. A graph that is not decoded yet is loaded by one worker, through the registry's single flight; the
// others' tickets wait.
#include <stdio.h>
#include <string.h>
#include "core/engine_private.h"
#include "core/eval/eager.h"

// ---- decoded graphs ----
static Status read_part(Engine *engine, const GraphVersion *version, uint32_t index, Storage **out_bytes)
{
        if (version->bytes[index] != NULL) {
                *out_bytes = storage_ref(version->bytes[index]);
                return STATUS_OK;
        }
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        TRY(storage_new((size_t)version->stored.parts[index].n_bytes, false, NULL, &bytes));
        TRY(store_read_blob(engine->store, &version->stored.parts[index], bytes->data));
        *out_bytes = take_ptr(bytes);
        return STATUS_OK;
}

static Status load(Engine *engine, const GraphVersion *version, Graph **out_graph)
{
        UploadPart parts[STORE_MAX_PARTS] = { { .name = NULL } };
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (; n < version->stored.n_parts && status == STATUS_OK; n++) {
                parts[n].name = version->stored.parts[n].name;
                status = read_part(engine, version, n, &parts[n].bytes);
        }
        if (status == STATUS_OK)
                status = engine->loader.load(engine->loader.context, parts, n,
                                             version->stored.model[0] == '\0' ? NULL : version->stored.model, out_graph);
        if (status == STATUS_OK)
                graph_set_content(*out_graph, &version->key);
        for (uint32_t i = 0; i < n; i++)
                storage_unref(parts[i].bytes);
        return status;
}

// The reason is written by whoever builds, and builds of one version do not overlap.
static void mark(GraphVersion *version, Status status)
{
        if (status == STATUS_OK) {
                atomic_store(&version->state, GRAPH_STATE_READY);
        } else if (status_class(status) == STATUS_CLASS_CALLER && status != STATUS_CANCELLED && status != STATUS_DEADLINE) {
                snprintf(version->reason, sizeof(version->reason), "%.255s", failure_current()->message);
                atomic_store(&version->state, GRAPH_STATE_DAMAGED);
        }
}

static Status damaged(const GraphVersion *version)
{
        return fail(STATUS_DAMAGED, "graph '%s' version %lld is damaged: %s", version->name, (long long)version->stored.version,
                    version->reason);
}

Status engine_acquire(Engine *engine, GraphVersion *version, Ticket *ticket, Acquired *out_how, Graph **out_graph,
                      RegistryEntry **out_build)
{
        if (atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                return damaged(version);
        void *object = NULL;
        TRY(registry_acquire(engine->decoded, &version->key, ticket, out_how, &object, out_build));
        *out_graph = object;
        if (*out_how == ACQUIRE_READY)
                atomic_store(&version->state, GRAPH_STATE_READY);
        return STATUS_OK;
}

Ticket *engine_load(Engine *engine, GraphVersion *version, RegistryEntry *build)
{
        Graph *graph = NULL;
        Status status = load(engine, version, &graph);
        mark(version, status);
        if (atomic_load(&version->state) == GRAPH_STATE_DAMAGED)
                damaged(version);
        return registry_publish(engine->decoded, build, status == STATUS_OK ? graph : NULL);
}

Status engine_graph(Engine *engine, GraphVersion *version, Graph **out_graph)
{
        Graph *graph = registry_peek(engine->decoded, &version->key);
        if (graph == NULL) {
                Status status = load(engine, version, &graph);
                mark(version, status);
                TRY(status);
                TRY(registry_put(engine->decoded, &version->key, graph));
        }
        *out_graph = graph;
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

static void values_free(Value *values, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                value_clear(&values[i]);
        free(values);
}

// What both ways of running share: the trace goes straight into the profile's rows.
static void end_run(RunContext *ctx, const WalkTrace *trace, int64_t start_ns, RunProfile *profile)
{
        profile->run_start_ns = start_ns;
        profile->run_ns = clock_ns() - start_ns;
        profile->n_rows = trace->n_rows;
        profile->peak_live_bytes = ctx->budget == NULL ? 0 : atomic_load(&ctx->budget->peak);
}

static Status run_eagerly(const Graph *graph, const RunRequest *request, ValueSpan inputs, RunContext *ctx, RunProfile *profile,
                          RunResult *result)
{
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        WalkTrace trace = { .rows = profile->rows, .capacity = profile->n_rows_capacity };
        WalkOptions options = { .inputs = inputs, .fetch = request->fetch, .n_fetch = request->n_fetch, .trace = &trace };
        TRY(eager_open(graph, ctx, &eager));
        int64_t start_ns = clock_ns();
        Status status = walk_graph(eager_emitter(eager), graph, &options, &result->value, result->fetched);
        end_run(ctx, &trace, start_ns, profile);
        return status;
}

static Status run_program(Program *program, ValueSpan inputs, RunContext *ctx, Frame *frame, RunProfile *profile, RunResult *result)
{
        TRY(run_profile_reserve(profile, program->n_rows));
        WalkTrace trace = { .rows = profile->rows, .capacity = profile->n_rows_capacity };
        ProgramRun run = { .inputs = inputs, .trace = &trace };
        int64_t start_ns = clock_ns();
        Status status = program_run(program, frame, &run, ctx, &result->value, result->fetched);
        end_run(ctx, &trace, start_ns, profile);
        profile->program = program_ref(program);
        profile->arena_bytes = program->figures.arena_bytes;
        return status;
}

static Status run_bound(Engine *engine, const Graph *graph, const RunRequest *request, ValueSpan inputs, RunContext *ctx, Frame *frame,
                        RunProfile *profile, RunResult *result)
{
        _cleanup_(program_unrefp) Program *program = NULL;
        result->n_fetched = request->n_fetch;
        result->fetched = new_array(request->n_fetch, sizeof(*result->fetched));
        if (result->fetched == NULL)
                return fail_memory();
        int64_t start_ns = clock_ns();
        if (engine != NULL && frame != NULL)
                engine_choose(engine, graph, request, inputs, ctx, &program);
        profile->compile_ns += clock_ns() - start_ns;
        if (program != NULL)
                return run_program(program, inputs, ctx, frame, profile, result);
        return run_eagerly(graph, request, inputs, ctx, profile, result);
}

Status engine_run(Engine *engine, const Graph *graph, const RunRequest *request, RunContext *ctx, Frame *frame, RunProfile *profile,
                  RunResult *out_result)
{
        uint32_t n = graph->signature.n_inputs;
        RunResult result = { .value = value_none() };
        Value *inputs = new_array(n, sizeof(*inputs));
        if (inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++)
                inputs[i].kind = VALUE_ABSENT;
        Status status = bind_inputs(graph, request->inputs, inputs);
        if (status == STATUS_OK)
                status = run_bound(engine, graph, request, (ValueSpan){ inputs, n }, ctx, frame, profile, &result);
        values_free(inputs, n);
        if (status != STATUS_OK)
                run_result_deinit(&result);
        else
                *out_result = result;
        return status;
}

void engine_record(Engine *engine, GraphVersion *version, RunProfile *profile)
{
        atomic_fetch_add(&engine->n_runs, 1u);
        profile_ring_add(engine->profiles, profile);
        if (version != NULL)
                profile_stats_add(version->stats, profile);
        engine_note_program(engine, version, profile->program);
}

ProfileRing *engine_profiles(Engine *engine)
{
        return engine->profiles;
}
