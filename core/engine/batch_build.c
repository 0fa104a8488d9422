// SPDX-License-Identifier: Apache-2.0
// batch_build.c: whether runs of a program may be one (the proof), and the program for so many of
// them. Nobody waits for it: until it is there, runs go one by one.
#include <stdio.h>
#include "core/engine/batch_private.h"
#include "core/eval/bind.h"

typedef struct BatchBuild {
        EngineWork work;
        CachedProgram *base; // counted
        uint32_t k;
        RunContext ctx;
} BatchBuild;

// ---- the inputs of several runs ----
static Status input_of_many(const Value *one, int64_t times, int64_t parts, Value *out)
{
        if (one->kind != VALUE_TENSOR) {
                *out = value_ref(*one);
                return value_is_sequence(*one) || one->kind == VALUE_DICT
                               ? fail(STATUS_UNSUPPORTED, "inputs in lists or dicts are not batched")
                               : STATUS_OK;
        }
        TensorMeta meta = one->tensor->meta;
        if (meta.rank == 0 || meta.size[0] < 1 || !meta_is_contiguous(&meta))
                return fail(STATUS_UNSUPPORTED, "an input has no dimension 0 to be batched along");
        if (meta.size[0] % parts != 0 || __builtin_mul_overflow(meta.size[0] / parts, times, &meta.size[0]))
                return fail(STATUS_UNSUPPORTED, "an input is too large");
        meta_set_contiguous(&meta);
        Tensor *tensor;
        TRY(tensor_new_view(NULL, &meta, 0, &tensor));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

Status batch_plan(const Program *program, int64_t times, int64_t parts, PlannedRun *out_plan)
{
        PlannedRun plan = { .graph = program->recording->graph, .n_threads = program->n_threads };
        uint32_t n_tensors = 0;
        plan.request = (RunRequest){ .fetch = program->fetch,
                                     .n_fetch = program->n_fetch,
                                     .precision = program->precision };
        plan.choice = choice_ref(program->choice);
        plan.inputs = new_array(program->n_signature, sizeof(*plan.inputs));
        Status status = plan.inputs == NULL ? fail_memory() : STATUS_OK;
        for (; status == STATUS_OK && plan.n_inputs < program->n_signature; plan.n_inputs++) {
                const Value *one = &program->signature[plan.n_inputs];
                status = input_of_many(one, times, parts, &plan.inputs[plan.n_inputs]);
                n_tensors += one->kind == VALUE_TENSOR;
        }
        if (status == STATUS_OK && n_tensors == 0)
                status = fail(STATUS_UNSUPPORTED, "it has no input tensors");
        if (status != STATUS_OK)
                planned_run_deinit(&plan);
        else
                *out_plan = plan;
        return status;
}

// The signature's symbols, ranges and guards, for so many samples.
static Status check_signature(const PlannedRun *plan)
{
        const Signature *signature = &plan->graph->signature;
        RunRequest request = plan->request;
        PlannedRun bound = { .graph = NULL };
        _cleanup_(freep) Value *user = new_array(plan->n_inputs, sizeof(*user));
        if (user == NULL)
                return fail_memory();
        request.inputs.items = user;
        for (uint32_t i = 0; i < plan->n_inputs; i++)
                if (signature->inputs[i].kind != INPUT_STATE)
                        user[request.inputs.n++] = plan->inputs[i];
        TRY(engine_bind(plan->graph, &request, &bound));
        planned_run_deinit(&bound);
        return STATUS_OK;
}

// ---- the proof ----
static Status record(const PlannedRun *plan, const RunContext *poll, Recording **out_recording)
{
        RecordOptions options = { .inputs = { plan->inputs, plan->n_inputs },
                                  .fetch = plan->request.fetch,
                                  .n_fetch = plan->request.n_fetch };
        TRY(check_signature(plan));
        return record_graph(plan->graph, &options, poll, out_recording);
}

// That the run of `many` is `n` runs of `one`.
static Status prove(const PlannedRun *one, const PlannedRun *many, int64_t n, const RunContext *poll,
                    SampleDims *out_dims)
{
        _cleanup_(recording_freep) Recording *one_side = NULL, *many_side = NULL;
        TRY(record(many, poll, &many_side));
        TRY(record(one, poll, &one_side));
        return samples_check(one_side, many_side, n, out_dims);
}

void batch_refuse(Batches *batches, BatchSize *size, const char *why)
{
        int none = 0;
        if (atomic_compare_exchange_strong(&batches->why_state, &none, 1)) {
                snprintf(batches->why, sizeof(batches->why), "%s", why);
                atomic_store(&batches->why_state, 2);
        }
        atomic_store(&size->state, BATCH_REFUSED);
}

static Status build_plan(BatchBuild *it, PlannedRun *plan)
{
        Program *program = NULL;
        Status status = engine_compile(it->work.engine, plan, true, &it->ctx, &program);
        program_unref(program);
        return status;
}

static void build(BatchBuild *it)
{
        Batches *batches = atomic_load(&it->base->batches);
        BatchSize *size = &batches->sizes[it->k];
        const Program *base = it->base->program;
        PlannedRun one = { .graph = NULL }, many = { .graph = NULL };
        int64_t n = it->k == 0 ? batch_rows(base) : (int64_t)1 << it->k, parts = it->k == 0 ? n : 1;
        bool proved = atomic_load(&size->state) == BATCH_PROVED;
        Status status = batch_plan(base, n, parts, &many);
        if (status == STATUS_OK)
                status = batch_plan(base, 1, parts, &one);
        if (status == STATUS_OK && !proved)
                status = prove(&one, &many, n, &it->ctx, &size->dims);
        PlannedRun *wanted = it->k == 0 ? &one : &many;
        if (status == STATUS_OK)
                status = build_plan(it, wanted);
        if (status == STATUS_OK && it->k > 0 && engine_plan_ready(it->work.engine, &many))
                atomic_store(&many.program->batch, 1u << it->k);
        planned_run_deinit(&one);
        planned_run_deinit(&many);
        if (status == STATUS_OK) {
                atomic_store(&size->state, BATCH_PROVED);
        } else if (!proved) {
                sample_dims_deinit(&size->dims);
                if (it->k == 0 && status != STATUS_CANCELLED && status != STATUS_NO_MEMORY)
                        atomic_store(&size->state, BATCH_REFUSED);
                else if (status != STATUS_CANCELLED && status != STATUS_NO_MEMORY)
                        batch_refuse(batches, size, failure_current()->message);
        }
}

static Ticket *run_build(EngineWork *take_work)
{
        build((BatchBuild *)take_work);
        engine_work_unref(take_work);
        return NULL;
}

static void free_build(EngineWork *work)
{
        BatchBuild *it = (BatchBuild *)work;
        atomic_store(&atomic_load(&it->base->batches)->sizes[it->k].building, false);
        cached_program_unref(it->base);
        free(it);
}

Status batch_build_new(Engine *engine, CachedProgram *base, uint32_t k, EngineWork **out_build)
{
        static const EngineWorkType type = { .run = run_build, .free = free_build };
        BatchBuild *it = calloc(1, sizeof(*it));
        if (it == NULL)
                return fail_memory();
        work_init(&it->work, &type, engine);
        it->work.stop = &it->ctx.cancelled;
        refcount_get(&base->ref);
        it->base = base;
        it->k = k;
        run_context_init(&it->ctx);
        it->ctx.n_threads = MAX(base->program->n_threads, 1);
        *out_build = &it->work;
        return STATUS_OK;
}
