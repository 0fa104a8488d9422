// SPDX-License-Identifier: Apache-2.0
// Passes: recording -> recording, in the order of passes.def. A pass may drop, merge or replace
// calls only while every buffer concerned is written once (Buffer.written false). The number and
// order of effects and random calls stay. Every remaining call lists all authored nodes that it
// computes.
#pragma once
#include "core/program/recording.h"

typedef struct PassContext {
        const RunContext *poll; // may be NULL
        int n_threads;
        PackCache *cache;    // shares large constants that passes make; may be NULL
        size_t folded_bytes; // bytes of constants that passes have made for this recording alone
        size_t scaled_bytes; // and of those that it may share with others through the cache
} PassContext;

// Whether passes that have made constants of `n_made` bytes may make `n_bytes` more: 256 MiB in
// all, or as many as the weights have. Without it a small graph that reads one weight a thousand
// times would have a thousand of them.
bool passes_may_add(const Recording *recording, size_t n_made, size_t n_bytes);

typedef struct Pass {
        const char *name;
        Status (*run)(Recording *recording, PassContext *context);
} Pass;

extern const Pass passes[];
extern const unsigned n_passes;
Status passes_run(Recording *recording, PassContext *context);

#define PASS(name) Status pass_##name(Recording *recording, PassContext *context);
#include "core/passes/passes.def"
#undef PASS
