// SPDX-License-Identifier: Apache-2.0
// Shared by batch.c, which runs, and batch_build.c, which proves and builds.
#pragma once
#include "core/compile/samples.h"
#include "core/engine/batch.h"
#include "core/engine/private.h"

// PROVED: may be used; the program may have left the registry again. REFUSED: Batches.why.
typedef enum BatchState { BATCH_NEW, BATCH_PROVED, BATCH_REFUSED } BatchState;

typedef struct BatchSize {
        _Atomic int state;
        _Atomic bool building;       // one build has it: it alone writes state and dims
        SampleDims dims;             // PROVED
        _Atomic uint32_t n_checked;  // batches that were compared
        _Atomic uint32_t n_declined; // since it was used last, because it did not pay
        _Atomic int64_t ns;          // of late; 0: never ran
} BatchSize;

// Of one program: what is known about running several of its runs as one.
struct Batches {
        _Atomic int why_state; // 0: none, 1: being written, 2: `why` is there
        char why[160];
        BatchSize sizes[BATCH_SIZES + 1]; // [k]: 2^k runs; [0] is unused
};

// The inputs of 2^k runs as the plan of one run, tensors without bytes; the plan's own are borrowed
// where they are no tensors. The caller ends it with planned_run_deinit.
Status batch_plan(const Program *program, uint32_t k, PlannedRun *out_plan);
// A build of batches of 2^k runs of `base`, counted.
Status batch_build_new(Engine *engine, CachedProgram *base, uint32_t k, EngineWork **out_build);
void batch_refuse(Batches *batches, BatchSize *size, const char *why);
