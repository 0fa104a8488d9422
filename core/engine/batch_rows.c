// SPDX-License-Identifier: Apache-2.0
// batch_rows.c: programs of one graph that differ in dimension 0 only. If a run of three rows is
// three runs of one row, which is proved like a batch (core/compile/samples.h), it takes three
// places of a batch of runs of one row.
#include "core/engine/batch_private.h"

static int64_t common(int64_t a, int64_t b)
{
        while (b != 0) {
                int64_t rest = a % b;
                a = b;
                b = rest;
        }
        return a;
}

int64_t batch_rows(const Program *program)
{
        int64_t rows = 0;
        for (uint32_t i = 0; i < program->n_signature; i++) {
                const Value *value = &program->signature[i];
                if (value->kind != VALUE_TENSOR || value->tensor->meta.rank == 0 ||
                    value->tensor->meta.size[0] < 1)
                        return 0;
                rows = common(value->tensor->meta.size[0], rows);
        }
        return rows;
}

static bool same_row(const TensorMeta *a, int64_t a_rows, const TensorMeta *b, int64_t b_rows)
{
        if (a->dtype != b->dtype || a->rank != b->rank || a->size[0] / a_rows != b->size[0] / b_rows)
                return false;
        for (int d = 1; d < a->rank; d++)
                if (a->size[d] != b->size[d])
                        return false;
        return true;
}

bool batch_alike(const RunTask *x, const RunTask *y)
{
        if (x->plan.program == y->plan.program)
                return true;
        const Program *a = x->plan.program->program, *b = y->plan.program->program;
        if (a->recording->graph != b->recording->graph || a->n_signature != b->n_signature ||
            a->n_fetch != b->n_fetch || a->precision != b->precision || a->choice != b->choice ||
            a->n_threads != b->n_threads)
                return false;
        for (uint32_t i = 0; i < a->n_fetch; i++)
                if (a->fetch[i] != b->fetch[i])
                        return false;
        int64_t a_rows = batch_rows(a), b_rows = batch_rows(b);
        if (a_rows == 0 || b_rows == 0 || a_rows > BATCH_LARGEST || b_rows > BATCH_LARGEST)
                return false;
        for (uint32_t i = 0; i < a->n_signature; i++)
                if (!same_row(&a->signature[i].tensor->meta, a_rows, &b->signature[i].tensor->meta, b_rows))
                        return false;
        return true;
}

// Whether it is proved; else hands out the proof unless somebody has it.
static bool is_proved(Engine *engine, CachedProgram *cached, EngineWork **out_work)
{
        Batches *batches = batches_of(cached);
        BatchSize *size = batches == NULL ? NULL : &batches->sizes[0];
        if (size == NULL || atomic_load(&size->state) != BATCH_NEW)
                return size != NULL && atomic_load(&size->state) == BATCH_PROVED;
        if (*out_work == NULL && !atomic_exchange(&size->building, true) &&
            batch_build_new(engine, cached, 0, out_work) != STATUS_OK)
                atomic_store(&size->building, false);
        return false;
}

// The program of one row; made anew when it has left the registry.
static CachedProgram *unit_of(Engine *engine, CachedProgram *cached, int64_t rows, EngineWork **out_work)
{
        PlannedRun plan = { .graph = NULL };
        CachedProgram *unit = NULL;
        if (batch_plan(cached->program, 1, rows, &plan) == STATUS_OK && engine_plan_ready(engine, &plan)) {
                unit = plan.program;
                plan.program = NULL;
        }
        planned_run_deinit(&plan);
        BatchSize *size = &atomic_load(&cached->batches)->sizes[0];
        if (unit == NULL && *out_work == NULL && !atomic_exchange(&size->building, true) &&
            batch_build_new(engine, cached, 0, out_work) != STATUS_OK)
                atomic_store(&size->building, false);
        return unit;
}

CachedProgram *batch_unit(Engine *engine, RunTask *const *tasks, uint32_t n, int64_t *out_rows,
                          EngineWork **out_work)
{
        CachedProgram *largest = tasks[0]->plan.program;
        bool all = true;
        for (uint32_t i = 0; i < n; i++) {
                CachedProgram *cached = tasks[i]->plan.program;
                out_rows[i] = batch_rows(cached->program);
                if (out_rows[i] > 1) {
                        all = is_proved(engine, cached, out_work) && all;
                        largest = cached;
                }
        }
        int64_t rows = batch_rows(largest->program);
        return all && rows > 1 ? unit_of(engine, largest, rows, out_work) : NULL;
}
