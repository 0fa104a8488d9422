// SPDX-License-Identifier: Apache-2.0
// Compiling: graph + input signature -> program. Any thread; nothing is shared but the graph, which
// is immutable.
#pragma once
#include "core/base/hash.h"
#include "core/compile/emit_program.h"
#include "core/compile/record.h"
#include "core/graph/print.h"
#include "core/interp/interp.h"
#include "core/passes/passes.h"

typedef struct CompileOptions {
        int n_threads;            // >= 1
        bool no_passes;           // as recorded: for tests
        const Node *const *fetch; // nodes whose values are wanted besides the output
        uint32_t n_fetch;
        PackCache *cache; // may be NULL
        TuneRecord *tune; // borrowed; may be NULL. While it is learning, what is learnt is written into it
} CompileOptions;

typedef struct ProgramKey {
        uint8_t bytes[32];
} ProgramKey;

// What a program depends on: the graph, dtypes, shapes and strides of input tensors, kinds of all
// other input values, what is fetched, threads, and the lines of the tune record. A learning
// record's own program has the id that the finished record gives. `inputs`: one Value per
// placeholder, as bind_inputs gives them. `by_value`: bit i: the value of input i, too, if it is a
// float or an int (texts, flags and containers count by value always, and so does every input from
// 64 on). A program says which bits it needs (Program.by_value): with no bits all numbers give one
// key, under which a caller may remember the bits; with the program's own bits the key is the
// program's.
#define BY_VALUE_ALL UINT64_MAX
Status program_key(const Graph *graph, ValueSpan inputs, const CompileOptions *options, uint64_t by_value,
                   ProgramKey *out_key);
ProgramId program_key_id(const ProgramKey *key);

// Of input tensors only metas are read. Nodes that need numbers known only in a run
// (data-dependent shapes, loops, branches) become the program's eager tail. STATUS_DYNAMIC: the
// tail would be the whole graph, or cannot be separated from the rest; run the graph eagerly.
// Shape and dtype failures are those of an eager run. `poll` (cancel, deadline) may be NULL. The
// program counts the graph.
Status compile_graph(const Graph *graph, ValueSpan inputs, const CompileOptions *options,
                     const RunContext *poll, Program **out_program);

// Stages of a program as graphs for printing, and its listing.
typedef enum ProgramStage { STAGE_ATEN, STAGE_OPTIMISED } ProgramStage;
// Compiles up to the stage once more: programs keep no copies for printing. *out_graph is finished;
// counted by the caller.
Status compile_stage(const Graph *graph, ValueSpan inputs, const CompileOptions *options, ProgramStage stage,
                     Graph **out_graph);
// The same for an existing program: with the signature that it was compiled for.
Status program_stage(const Program *program, ProgramStage stage, Graph **out_graph);
// Prints it. Below the graph, in forms that are text: bodies of fused calls, under the path by
// which the graph fetches them, and the nodes of the eager tail as authored.
Status program_print_stage(const Program *program, ProgramStage stage, GraphForm form, Text *out);
