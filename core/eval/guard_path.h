// SPDX-License-Identifier: Apache-2.0
// What a symbol of a guard speaks of: a path from the name of an argument, through containers, to a
// leaf: `pair[0].size()[1]`, `d['n']`.
#pragma once
#include "core/graph/graph.h"
#include "core/kernels/run_context.h"

enum { GUARD_WHOLE = -1, GUARD_OTHER = -2 };
typedef struct GuardPlace {
        const Input *input; // NULL: the path leads to no input
        uint32_t leaf;      // of the flat user inputs
        int dim;            // GUARD_WHOLE: the input itself; GUARD_OTHER: neither that nor a size of it
} GuardPlace;

// The arguments of one signature by name. Steps are counted over all paths, so that containers of
// very many keys cannot make the search endless.
typedef struct GuardPaths {
        const Signature *signature;
        StringMap arguments; // name -> its number + 1; empty without a tree
        StringMap inputs;    // name -> its number among the flat user inputs, + 1
        const Input **user;  // the flat user inputs
        uint32_t n_user;
        Arena scratch;
        Work work;
        int64_t steps;
} GuardPaths;

// `poll` may be NULL. guard_paths_deinit is the caller's, also on failure.
Status guard_paths_init(GuardPaths *paths, const Signature *signature, const RunContext *poll);
void guard_paths_deinit(GuardPaths *paths);
// STATUS_TOO_LARGE after too many steps, otherwise what run_poll says.
Status guard_paths_spend(GuardPaths *paths, int64_t steps);
Status guard_paths_find(GuardPaths *paths, const char *symbol, GuardPlace *out_place);
