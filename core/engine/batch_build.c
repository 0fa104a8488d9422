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
static Status input_of_many(const Value *one, uint32_t k, Value *out)
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
        if (__builtin_mul_overflow(meta.size[0], (int64_t)1 << k, &meta.size[0]))
                return fail(STATUS_UNSUPPORTED, "an input is too large");
        meta_set_contiguous(&meta);
        Tensor *tensor;
        TRY(tensor_new_view(NULL, &meta, 0, &tensor));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

Status batch_plan(const Program *program, uint32_t k, PlannedRun *out_plan)
{
        PlannedRun plan = { .graph = program->recording->graph, .n_threads = program->n_threads };
        uint32_t n_tensors = 0;
        plan.request = (RunRequest){ .fetch = program->fetch,
                                     .n_fetch = program->n_fetch,
                                     .precision = program->precision };
        plan.inputs = new_array(program->n_signature, sizeof(*plan.inputs));
        Status status = plan.inputs == NULL ? fail_memory() : STATUS_OK;
        for (; status == STATUS_OK && plan.n_inputs < program->n_signature; plan.n_inputs++) {
                const Value *one = &program->signature[plan.n_inputs];
                status = input_of_many(one, k, &plan.inputs[plan.n_inputs]);
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
static Status prove(const Program *program, const PlannedRun *many, uint32_t k, const RunContext *poll,
                    SampleDims *out_dims)
{
        _cleanup_(recording_freep) Recording *one_side = NULL, *many_side = NULL;
        RecordOptions options = { .inputs = { program->signature, program->n_signature },
                                  .fetch = program->fetch,
                                  .n_fetch = program->n_fetch };
        TRY(check_signature(many));
        TRY(record_graph(many->graph, &options, poll, &one_side));
        options.inputs = (ValueSpan){ many->inputs, many->n_inputs };
        TRY(record_graph(many->graph, &options, poll, &many_side));
        return samples_check(one_side, many_side, (int64_t)1 << k, out_dims);
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

static void build(BatchBuild *it)
{
        Batches *batches = atomic_load(&it->base->batches);
        BatchSize *size = &batches->sizes[it->k];
        const Program *base = it->base->program;
        PlannedRun many = { .graph = NULL };
        Program *program = NULL;
        bool proved = atomic_load(&size->state) == BATCH_PROVED;
        Status status = batch_plan(base, it->k, &many);
        if (status == STATUS_OK && !proved)
                status = prove(base, &many, it->k, &it->ctx, &size->dims);
        if (status == STATUS_OK)
                status = engine_compile(it->work.engine, &many, true, &it->ctx, &program);
        if (status == STATUS_OK && engine_plan_ready(it->work.engine, &many))
                atomic_store(&many.program->batch, 1u << it->k);
        planned_run_deinit(&many);
        program_unref(program);
        if (status == STATUS_OK)
                atomic_store(&size->state, BATCH_PROVED);
        else if (!proved) {
                sample_dims_deinit(&size->dims);
                if (status != STATUS_CANCELLED && status != STATUS_NO_MEMORY)
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
