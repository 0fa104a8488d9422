// SPDX-License-Identifier: Apache-2.0
// From a recording to a program: implementations, states, places, operands, rows of the profile.
#pragma once
#include "core/program/program.h"

typedef struct EmitOptions {
        int n_threads;
        PackCache *cache;       // may be NULL
        TuneRecord *tune;       // may be NULL
        const RunContext *poll; // may be NULL
        Precision precision;
        const Choice *choice; // instead of `precision`, node by node; may be NULL
        // Each instruction keeps all forms that its product has, so that a search may put one in
        // the place of another. Such a program is never shared.
        bool forms;
} EmitOptions;

// The recording is taken, also on failure. The program's id is left empty.
Status emit_program(Recording *take_recording, const EmitOptions *options, Program **out_program);
