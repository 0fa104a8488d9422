// SPDX-License-Identifier: Apache-2.0
// Compiling: from a graph and an input signature to a program. Any thread: calls share only the
// graph, which is immutable.
#pragma once
#include "core/base/hash.h"
#include "core/compile/emit_program.h"
#include "core/compile/record.h"
#include "core/graph/print.h"
#include "core/interp/interp.h"
#include "core/passes/passes.h"

typedef struct CompileOptions {
        int n_threads;            // >= 1
        bool no_passes;           // the program is as recorded; for tests
        const Node *const *fetch; // nodes whose values are wanted besides the output
        uint32_t n_fetch;
        bool keeps_state; // for runs with a RunState (eval/state.h)
        PackCache *cache; // may be NULL
        // Borrowed; may be NULL. A learning record gets the choices that this compilation measures.
        TuneRecord *tune;
        Precision precision;  // of products with constant factors
        const Choice *choice; // instead of `precision`, node by node; borrowed; may be NULL
        bool forms;           // EmitOptions.forms
} CompileOptions;

typedef struct ProgramKey {
        uint8_t bytes[32];
} ProgramKey;

// The key names everything that a program depends on: the graph; dtypes, shapes and strides of
// input tensors; kinds of all other input values; what is fetched; threads; precision, or the
// choice of it; the lines of the tune record.
// A program compiled with a learning record has the id that the finished record gives.
//
// `inputs`: one Value per placeholder, as bind_inputs gives them. `by_value`: if bit i is set, the
// key contains the value of input i, a float or an int. Values of texts, flags and containers are
// always in the key, and so are those of all inputs from 64 on.
//
// Program.by_value has the bits that a program needs, which are known only when it is compiled. A
// key without any bits is the same for all numbers, so a caller may store the bits under it. The
// key with those bits is the program's.
#define BY_VALUE_ALL UINT64_MAX
Status program_key(const Graph *graph, ValueSpan inputs, const CompileOptions *options, uint64_t by_value,
                   ProgramKey *out_key);
ProgramId program_key_id(const ProgramKey *key);

// Of input tensors only metas are read. Nodes that need numbers known only in a run
// (data-dependent shapes, loops, branches) become the program's eager tail. STATUS_DYNAMIC: the
// tail would be the whole graph, or cannot be separated from the rest; then the graph must run
// eagerly. Shape and dtype failures are those of an eager run. `poll` (cancel, deadline) may be
// NULL. The program holds a reference to the graph.
Status compile_graph(const Graph *graph, ValueSpan inputs, const CompileOptions *options,
                     const RunContext *poll, Program **out_program);

// Stages of a program, as graphs for printing.
typedef enum ProgramStage { STAGE_ATEN, STAGE_OPTIMISED } ProgramStage;
// Compiles up to the stage again, because programs keep no copies for printing. *out_graph is
// finished; the caller owns a reference.
Status compile_stage(const Graph *graph, ValueSpan inputs, const CompileOptions *options, ProgramStage stage,
                     Graph **out_graph);
// The same for an existing program: with the signature that it was compiled for.
Status program_stage(const Program *program, ProgramStage stage, Graph **out_graph);
// Prints a stage. Text forms continue below the graph with the bodies of fused calls, under the
// paths by which the graph fetches them, and with the nodes of the eager tail as authored.
Status program_print_stage(const Program *program, ProgramStage stage, GraphForm form, Text *out);
