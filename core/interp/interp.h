// SPDX-License-Identifier: Apache-2.0
// Running programs. A Frame is a worker's memory for runs: arena, operand pointers, time stamps,
// scratch. It grows to what the largest program needed and is used again; one run at a time.
#pragma once
#include "core/eval/walk.h"
#include "core/program/program.h"

typedef struct NumberTensor { // an input number as the 0-dim tensor that calls read
        Tensor tensor;
        Storage storage;
        union {
                double f;
                int64_t i;
        } bits;
} NumberTensor;

typedef struct Frame {
        uint8_t *arena;
        size_t arena_bytes;
        void **pointers; // slots' bases, then operands
        size_t n_pointers;
        int64_t *stamps;
        size_t n_stamps;
        ScratchPool pool;
        NumberTensor *numbers;
        size_t n_numbers;
        // for whoever looks on, on any thread: the run's context (NULL: none), and how many of its
        // graph's nodes are done
        _Atomic(const RunContext *) running;
        _Atomic uint32_t n_done, n_nodes;
        Tensor **inputs;   // of the run: leaves, borrowed
        Storage **outputs; // of the run: counted until they are handed out
        size_t n_tensors;
} Frame;

void frame_init(Frame *frame);
void frame_deinit(Frame *frame);
// Gives memory back when the frame holds more than `most_bytes`.
void frame_trim(Frame *frame, size_t most_bytes);

typedef struct ProgramRun {
        ValueSpan inputs; // one Value per placeholder, as the program was compiled for (bind_inputs)
        WalkTrace *trace; // NULL: no timing. Rows: capacity >= program->n_rows
} ProgramRun;

// *out_value and out_fetched (recording->n_fetched Values; may be NULL when 0) are owned by the
// caller. Inputs whose dtype, shape or strides differ from what the program was made for:
// STATUS_INTERNAL, nothing is run. The arena is charged to ctx->budget for the time of the run;
// failures of a kernel name its first authored node, as an eager run does. ctx->pool is set for the
// time of the run.
Status program_run(const Program *program, Frame *frame, const ProgramRun *run, RunContext *ctx,
                   Value *out_value, Value *out_fetched);

// The rows of a run whose n-th instruction began at stamps[n] and ended at stamps[n + 1]; a traced
// program_run leaves the stamps of its instructions in the frame.
void program_trace(const Program *program, const int64_t *stamps, WalkTrace *trace);

// For kernels of calls that run a program of their own within the memory of the outer one. `bases`
// has program_pointers(program) entries. The caller fills in the first: addresses of the arena, the
// inputs and the output storages by slot (program.h). The rest is overwritten. Nothing is checked,
// allocated or charged. The program has neither an eager tail nor input numbers.
static inline size_t program_pointers(const Program *program)
{
        return (size_t)SLOT_FIRST_INPUT + program->n_inputs + program->n_outputs + program->n_states +
               program->n_operands;
}
Status program_run_within(const Program *program, void **bases, RunContext *ctx);
