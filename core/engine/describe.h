// SPDX-License-Identifier: Apache-2.0
// What may be shown of programs, of runs, and of what computes them (platform.h).
#pragma once
#include "core/engine/engine.h"
#include "core/graph/print.h"
#include "core/kernels/platform.h"
#include "core/ops/choice.h"

enum { ENGINE_MAX_PROGRAMS = 64 }; // of one graph
// What may be shown of a program. All that it points to lives as long as `program`.
typedef struct ProgramInfo {
        Program *program; // counted
        const char *id;
        ValueSpan signature; // what it was made for, by placeholder; tensors have metas only
        // The output's structure, tensors with metas only, when it computes just that; NULL: nodes
        // are fetched besides, or some are left to an eager tail.
        const Value *result;
        uint32_t n_instructions;
        size_t arena_bytes;
        Precision precision;
        const Choice *choice; // of precisions; NULL: `precision` is every node's
        uint64_t n_runs;
        int64_t run_ns; // of late; -1: not known
        uint32_t batch; // so many runs are one with it (batch.h); 0: it has run for one
} ProgramInfo;
void program_info_deinit(ProgramInfo *info); // leaves it zeroed
// Live programs of a version's graph, the most recently used first; at most ENGINE_MAX_PROGRAMS.
uint32_t engine_programs(Engine *engine, const GraphVersion *version, ProgramInfo out[ENGINE_MAX_PROGRAMS]);
typedef enum ProgramView { VIEW_ATEN, VIEW_OPTIMISED, VIEW_LISTING } ProgramView;
// Its graph after recording or after the passes, as `form`, or the listing of its instructions.
Status engine_print_program(const ProgramInfo *info, ProgramView view, GraphForm form, Text *out);
// The id of the program that ran last for this version; "" if none has.
void engine_latest_program(Engine *engine, const GraphVersion *version, char out_id[65]);
// Records a finished run: the ring and (when version is not NULL) its statistics.
void engine_record(Engine *engine, GraphVersion *version, RunProfile *profile);
ProfileRing *engine_profiles(Engine *engine);
