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
        // [k]: 2^k runs. [0]: whether one run of the program is as many runs of one row as it has
        // rows; why it is not is no reason against the other sizes
        BatchSize sizes[BATCH_SIZES + 1];
};
Batches *batches_of(CachedProgram *cached); // NULL: no memory

enum {
        CHECKED_BATCHES = 2,  // of a size are compared bit for bit
        BATCH_BYTES = 1 << 20 // of the inputs of one batch
};
// Of the sent tensors of one run.
int64_t batch_sent_bytes(const RunTask *task);

// ---- batch_rows.c ----
// What the sizes of dimension 0 of all inputs are multiples of; 0: there is no such number.
int64_t batch_rows(const Program *program);
// The program for one row of what `cached` is for, counted, and in *out_rows how many of these each
// task has. NULL: it is not there yet, or not proved of all of them; *out_work may bring it nearer.
CachedProgram *batch_unit(Engine *engine, RunTask *const *tasks, uint32_t n, int64_t *out_rows,
                          EngineWork **out_work);

// The inputs of `times` runs as the plan of one run, tensors without bytes; the plan's own are
// borrowed where they are no tensors. `parts`: of one of so many parts of a run. The caller ends it
// with planned_run_deinit.
Status batch_plan(const Program *program, int64_t times, int64_t parts, PlannedRun *out_plan);
// A build of batches of 2^k runs of `base`, counted; of 0: the proof that it is runs of one row,
// and the program of one.
Status batch_build_new(Engine *engine, CachedProgram *base, uint32_t k, EngineWork **out_build);
void batch_refuse(Batches *batches, BatchSize *size, const char *why);
