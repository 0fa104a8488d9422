// SPDX-License-Identifier: Apache-2.0
// sample_reader.c: samples for the engine's search (SampleReader of engine.h).
#include "api/run/run_private.h"
#include "api/run/samples.h"

static Status count(Storage *bytes, int64_t *out_n)
{
        Samples samples;
        TRY(samples_read(bytes, &samples));
        *out_n = samples.n;
        samples_deinit(&samples);
        return STATUS_OK;
}

static Status take_inputs(RunCall *run, Storage *bytes, int64_t at)
{
        Samples samples;
        TRY(run_task_open(&run->task));
        TRY(samples_read(bytes, &samples));
        Status status = samples_give_inputs(&samples, at, run);
        samples_deinit(&samples);
        return status;
}

// Their tensors view the file's bytes, and hold them.
static Status inputs(const Graph *graph, Storage *bytes, int64_t at, Value **out_inputs, uint32_t *out_n)
{
        RunCall run;
        run_call_init(&run);
        run.task.graph = graph_ref((Graph *)(uintptr_t)graph);
        Status status = take_inputs(&run, bytes, at);
        if (status == STATUS_OK) {
                *out_inputs = take_ptr(run.task.inputs);
                *out_n = run.task.n_inputs;
                run.task.n_inputs = 0;
        }
        run_call_deinit(&run);
        return status;
}

const SampleReader sample_reader = { .count = count, .inputs = inputs };
