// SPDX-License-Identifier: Apache-2.0
// Compiling: graph + input signature -> program. Any thread; nothing is shared but the graph, which is immutable.
#pragma once
#include "core/base/hash.h"
#include "core/compile/emit_program.h"
#include "core/compile/record.h"
#include "core/interp/interp.h"
#include "core/passes/passes.h"

typedef struct CompileOptions {
        int n_threads;            // >= 1
        bool no_passes;           // as recorded: for tests
        const Node *const *fetch; // nodes whose values are wanted besides the output
        uint32_t n_fetch;
        PackCache *cache; // may be NULL
} CompileOptions;

typedef struct ProgramKey {
        uint8_t bytes[32];
} ProgramKey;

// What the program depends on: the graph, dtypes, shapes and strides of input tensors, all other input values, what is fetched, threads.
// `inputs`: one Value per placeholder, as bind_inputs gives them.
Status program_key(const Graph *graph, ValueSpan inputs, const CompileOptions *options, ProgramKey *out_key);
ProgramId program_key_id(const ProgramKey *key);

// Of input tensors only metas are looked at. STATUS_DYNAMIC: needs numbers that only a run knows (data-dependent shapes, loops, branches):
// run it eagerly. Shape and dtype failures are those an eager run gives. `poll` (cancel, deadline) may be NULL. The program counts the
// graph.
Status compile_graph(const Graph *graph, ValueSpan inputs, const CompileOptions *options, const RunContext *poll, Program **out_program);

// Stages of a program as graphs for printing, and its listing.
typedef enum ProgramStage { STAGE_ATEN, STAGE_OPTIMISED } ProgramStage;
// Compiles up to the stage once more: programs keep no copies for printing. *out_graph is finished; counted by the caller.
Status compile_stage(const Graph *graph, ValueSpan inputs, const CompileOptions *options, ProgramStage stage, Graph **out_graph);
// The same for a program that is at hand: signature as it was compiled for.
Status program_stage(const Program *program, ProgramStage stage, Graph **out_graph);
