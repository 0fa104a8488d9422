// SPDX-License-Identifier: Apache-2.0
// Building programs. A build holds what compiling needs and nothing of the request that asked for
// it: the graph, the signature (metas only), the nodes to fetch. When it is stopped, its context is
// cancelled and compiling ends at the next poll.
#include <string.h>
#include "core/engine/choose.h"
#include "core/engine/private.h"

enum { SMALL_NODES = 64, VALUES_FOR_ALL = 4 };

typedef struct ProgramBuild {
        EngineWork work;
        RegistryKey key, base; // base: without the values of numbers
        PlannedRun plan;       // inputs without bytes
        Graph *graph;          // counted
        const Node **fetch;
        RunContext ctx;
        bool learns;           // decides the tune record; no entry
        GraphVersion *version; // that it warms up, counted; NULL: it was asked for
        uint32_t n_stops;
} ProgramBuild;

static Status copy_inputs(const PlannedRun *plan, PlannedRun *out)
{
        out->inputs = new_array(plan->n_inputs, sizeof(*out->inputs));
        if (out->inputs == NULL)
                return fail_memory();
        for (; out->n_inputs < plan->n_inputs; out->n_inputs++)
                TRY(signature_value(plan->inputs[out->n_inputs], &out->inputs[out->n_inputs]));
        return STATUS_OK;
}

static Status copy_fetch(const PlannedRun *plan, ProgramBuild *build)
{
        build->fetch = new_array(plan->request.n_fetch, sizeof(*build->fetch));
        if (build->fetch == NULL)
                return fail_memory();
        if (plan->request.n_fetch > 0)
                memcpy(build->fetch, plan->request.fetch, plan->request.n_fetch * sizeof(*build->fetch));
        build->plan.request.fetch = build->fetch;
        return STATUS_OK;
}

static Ticket *run_build(EngineWork *take_work);

static void free_build(EngineWork *work)
{
        ProgramBuild *build = (ProgramBuild *)work;
        planned_run_deinit(&build->plan);
        free(build->fetch);
        graph_version_unref(build->version);
        graph_unref(build->graph);
        free(build);
}

Status program_build_new(Engine *engine, const PlannedRun *plan, const RegistryKey *key,
                         EngineWork **out_build)
{
        static const EngineWorkType type = { .run = run_build, .free = free_build };
        ProgramBuild *build = calloc(1, sizeof(*build));
        if (build == NULL)
                return fail_memory();
        work_init(&build->work, &type, engine);
        build->work.stop = &build->ctx.cancelled;
        build->key = *key;
        build->graph = graph_ref((Graph *)(uintptr_t)plan->graph);
        build->plan.graph = plan->graph;
        build->plan.request = plan->request;
        build->plan.n_threads = plan->n_threads;
        build->plan.keeps_state = plan->keeps_state;
        build->plan.by_value = plan->by_value;
        build->plan.tune = plan->tune;
        if (plan->tune != NULL)
                refcount_get(&plan->tune->ref);
        build->plan.choice = choice_ref(plan->choice);
        run_context_init(&build->ctx);
        build->ctx.n_threads = MAX(plan->n_threads, 1);
        Status status = engine_program_key(plan, 0, &build->base);
        if (status == STATUS_OK)
                status = copy_inputs(plan, &build->plan);
        if (status == STATUS_OK)
                status = copy_fetch(plan, build);
        if (status != STATUS_OK)
                engine_work_unref(&build->work);
        else
                *out_build = &build->work;
        return status;
}

Status program_build_learning(Engine *engine, const PlannedRun *plan, EngineWork **out_build)
{
        RegistryKey none = { { 0 } };
        TRY(program_build_new(engine, plan, &none, out_build));
        ((ProgramBuild *)*out_build)->learns = true;
        return STATUS_OK;
}

const Graph *program_build_graph(const EngineWork *build)
{
        return ((const ProgramBuild *)build)->graph;
}

void program_build_warms(EngineWork *work, GraphVersion *version, uint32_t n_stops)
{
        ProgramBuild *build = (ProgramBuild *)work;
        build->version = graph_version_ref(version);
        build->n_stops = n_stops;
}

bool program_build_is_small(const Graph *graph)
{
        return graph->n_nodes <= SMALL_NODES;
}

// Nodes that cost more than the limits allow are refused before any node runs.
static Status check_costs(const Program *program)
{
        for (uint32_t i = 0; i < program->n_rows; i++) {
                const ProgramRow *row = &program->rows[i];
                Status status = run_check_cost(row->flops, row->bytes);
                if (status != STATUS_OK)
                        return row->n_nodes == 0 ? status : walk_annotate(status, row->nodes[0]);
        }
        return STATUS_OK;
}

void engine_tell_built(Engine *engine, const Program *program, int64_t start_ns)
{
        if (engine->built != NULL)
                engine->built(engine->built_context, program->id.hex, clock_ns() - start_ns);
}

static Status compile(ProgramBuild *build, TuneRecord *learning, CachedProgram **out_cached)
{
        CompileOptions options = engine_compile_options(&build->plan);
        if (learning != NULL)
                options.tune = learning;
        Program *program;
        options.cache = build->work.engine->packs;
        int64_t start_ns = clock_ns();
        TRY(run_poll(&build->ctx));
        TRY(compile_graph(build->graph, (ValueSpan){ build->plan.inputs, build->plan.n_inputs }, &options,
                          &build->ctx, &program));
        // Reject the program if any weight page it was built from was unreadable.
        Status status = engine_check_pages(build->work.engine, build->graph);
        if (status == STATUS_OK)
                status = check_costs(program);
        if (status != STATUS_OK) {
                program_unref(program);
                return status;
        }
        atomic_fetch_add(&build->work.engine->n_compiles, 1u);
        engine_tell_built(build->work.engine, program, start_ns);
        return cached_program_new(program, out_cached);
}

// A program that does not depend on all numbers serves more values than those it was built for: it
// moves to the key that says so.
static void settle_key(ProgramBuild *build, CachedProgram *cached)
{
        RegistryKey key, group;
        Engine *engine = build->work.engine;
        memcpy(group.bytes, build->graph->content, sizeof(group.bytes));
        uint64_t mask = by_value_learn(engine, &build->base, cached->program->by_value);
        seen_forget(&engine->unplannable, &build->base);
        if (engine_program_key(&build->plan, mask, &key) != STATUS_OK ||
            memcmp(key.bytes, build->key.bytes, sizeof(key.bytes)) == 0)
                return;
        if (registry_put_in(engine->programs, &key, &group, cached) == STATUS_OK)
                registry_drop(engine->programs, &build->key);
}

// A failure is not cached. But the signature must be hit twice again before the next build, so the
// failure is not repeated at every request.
static void forget_hits(ProgramBuild *build)
{
        seen_forget(&build->work.engine->seen, &build->base);
        seen_forget(&build->work.engine->seen, &build->key);
}

// Marks the signature unplannable after several values of its numbers failed to plan and none
// succeeded. One failure may just be a huge loop count. Each failure sets one of the words next to
// that of the base; the last one sets the base's word.
static void remember_unplannable(ProgramBuild *build)
{
        Engine *engine = build->work.engine;
        RegistryKey word = build->base;
        uint64_t mask;
        seen_before(&engine->unplannable, &build->key);
        if (by_value_of(engine, &build->base, &mask))
                return;
        for (unsigned i = VALUES_FOR_ALL; i-- > 0;) {
                // the last bit of a word is always set
                word.bytes[0] = (uint8_t)(build->base.bytes[0] ^ i << 1);
                if (!seen_before(&engine->unplannable, &word))
                        return;
        }
}

// The record is part of the program's key, so it is published first: everybody who plans from now
// on uses it.
static Status learn(ProgramBuild *build)
{
        _cleanup_(tune_freep) TuneRecord *record = NULL;
        Engine *engine = build->work.engine;
        CachedProgram *cached = NULL;
        RegistryKey key, group;
        TRY(tune_new(true, &record));
        TRY(compile(build, record, &cached));
        memcpy(group.bytes, build->graph->content, sizeof(group.bytes));
        build->plan.tune = shared_tune_unref(build->plan.tune);
        Status status = engine_learnt(engine, build->graph, record, &build->plan.tune);
        if (status == STATUS_OK)
                status = engine_program_key(&build->plan, 0, &build->base); // the record is part of it
        if (status == STATUS_OK)
                status = engine_program_key(
                        &build->plan, by_value_learn(engine, &build->base, cached->program->by_value), &key);
        if (status == STATUS_OK) {
                if (tune_count(record) > 0)
                        // programs made without the record: nobody will ask for them again
                        registry_drop_group(engine->programs, &group);
                status = registry_put_in(engine->programs, &key, &group, cached);
        }
        cached_program_unref(cached);
        return status;
}

static void learn_or_try_later(ProgramBuild *take_build)
{
        Engine *engine = take_build->work.engine;
        Status status = learn(take_build);
        if (status == STATUS_CANCELLED && atomic_load(&take_build->ctx.cancelled) != 0) {
                atomic_store(&take_build->ctx.cancelled, 0);
                engine_learn_again(engine, &take_build->work, ++take_build->n_stops);
                return;
        }
        if (status != STATUS_OK)
                engine_not_learnt(engine, take_build->graph);
        engine_work_unref(&take_build->work);
}

static Ticket *run_build(EngineWork *take_work)
{
        ProgramBuild *build = (ProgramBuild *)take_work;
        Engine *engine = take_work->engine;
        CachedProgram *cached = NULL;
        if (build->learns) {
                learn_or_try_later(build);
                return NULL;
        }
        Status status = compile(build, NULL, &cached);
        if (status == STATUS_DYNAMIC || status == STATUS_UNSUPPORTED)
                remember_unplannable(build);
        else if (status != STATUS_OK)
                forget_hits(build);
        if (status == STATUS_CANCELLED && build->version != NULL)
                engine_warm_up_again(engine, build->version, build->n_stops + 1);
        // The runs that wait agree in the numbers of the key. If the program depends on others,
        // they plan again.
        bool serves_all = cached != NULL && (cached->program->by_value & ~build->plan.by_value) == 0;
        if (serves_all)
                refcount_get(&cached->ref);
        else if (cached != NULL)
                fail(STATUS_CANCELLED, "the program depends on more numbers");
        Ticket *tickets = work_publish(take_work, serves_all ? cached : NULL);
        if (cached != NULL) {
                settle_key(build, cached);
                engine_learn_later(engine, &build->plan);
        }
        cached_program_unref(cached);
        engine_work_unref(take_work);
        return tickets;
}

// ---- without a build ----
static Status keep_program(Engine *engine, const PlannedRun *plan, const Program *program)
{
        RegistryKey base, key, group;
        CachedProgram *cached;
        memcpy(group.bytes, plan->graph->content, sizeof(group.bytes));
        TRY(engine_check_pages(engine, plan->graph)); // it may have been made of unreadable weights
        TRY(engine_program_key(plan, 0, &base));
        TRY(engine_program_key(plan, by_value_learn(engine, &base, program->by_value), &key));
        TRY(cached_program_new(program_ref(program), &cached));
        Status status = registry_put_in(engine->programs, &key, &group, cached);
        cached_program_unref(cached);
        return status;
}

static Status compile_plan(Engine *engine, PlannedRun *plan, bool keeps, const RunContext *poll,
                           Program **out_program)
{
        _cleanup_(program_unrefp) Program *program = NULL;
        if (engine != NULL && engine_plan_ready(engine, plan)) {
                *out_program = program_ref(plan->program->program);
                engine_unplan(plan);
                plan->tune = shared_tune_unref(plan->tune);
                return STATUS_OK;
        }
        CompileOptions options = engine_compile_options(plan);
        options.cache = engine == NULL ? NULL : engine->packs;
        int64_t start_ns = clock_ns();
        Status status = compile_graph(plan->graph, (ValueSpan){ plan->inputs, plan->n_inputs }, &options,
                                      poll, &program);
        if (status == STATUS_OK && engine != NULL) {
                atomic_fetch_add(&engine->n_compiles, 1u);
                engine_tell_built(engine, program, start_ns);
                status = keeps ? keep_program(engine, plan, program) : STATUS_OK;
        }
        plan->tune = shared_tune_unref(plan->tune);
        TRY(status);
        *out_program = take_ptr(program);
        return STATUS_OK;
}

Status engine_compile(Engine *engine, PlannedRun *plan, bool keeps, const RunContext *poll,
                      Program **out_program)
{
        _cleanup_(choice_unrefp) Choice *choice = NULL;
        if (engine != NULL && plan->request.bucket != 0 && plan->choice == NULL) {
                choice = engine_choice_of(engine, plan);
                if (choice == NULL)
                        TRY(engine_choose(engine, plan, poll, &choice));
                plan->choice = choice;
        }
        Status status = compile_plan(engine, plan, keeps, poll, out_program);
        if (choice != NULL)
                plan->choice = NULL;
        return status;
}
