// SPDX-License-Identifier: Apache-2.0
// Memory plan: which bytes each buffer gets, so that buffers that are never alive together share
// them.
#pragma once
#include "core/program/program.h"

typedef struct MemoryPlan {
        Place *places;           // by buffer index, in `arena`
        size_t *scratch_offsets; // by call
        uint32_t n_outputs;
        size_t *output_bytes;
        bool *copied; // by buffer: an input or state that some call writes; filled before the first call
        PlanFigures figures;
} MemoryPlan;

// `scratch_bytes`: per call of the recording. Everything in *out_plan is taken from `arena`.
Status plan_memory(const Recording *recording, const size_t *scratch_bytes, const RunContext *poll,
                   Arena *arena, MemoryPlan *out_plan);
