// SPDX-License-Identifier: Apache-2.0
// What a symbol of a guard speaks of: a path from the name of an argument, through containers, to a
// leaf: `pair[0].size()[1]`, `d['n']`.
#pragma once
#include <string.h>
#include "core/graph/graph.h"

// As forward calls it: the placeholder's target without the stars of *args and **kwargs; "input"
// for none.
static inline const char *input_name(const Input *input)
{
        return input->placeholder == NULL
                       ? "input"
                       : input->placeholder->target + strspn(input->placeholder->target, "*");
}

enum { GUARD_WHOLE = -1, GUARD_OTHER = -2 };
typedef struct GuardPlace {
        const Input *input; // NULL: the path leads to no input
        uint32_t leaf;      // of the flat user inputs
        int dim;            // GUARD_WHOLE: the input itself; GUARD_OTHER: neither that nor a size of it
} GuardPlace;

// The arguments of one signature by name.
typedef struct GuardPaths {
        const Signature *signature;
        StringMap arguments; // name -> its number + 1; empty without a tree
        StringMap inputs;    // name -> its number among the flat user inputs, + 1
        const Input **user;  // the flat user inputs
        uint32_t n_user;
        Arena scratch;
} GuardPaths;

// guard_paths_deinit is the caller's, also on failure.
Status guard_paths_init(GuardPaths *paths, const Signature *signature);
void guard_paths_deinit(GuardPaths *paths);
Status guard_paths_find(GuardPaths *paths, const char *symbol, GuardPlace *out_place);

int input_n_sizes(const Input *input); // a symbolic int has one

// The symbols that stand in sizes of the inputs.
typedef struct SizeWords {
        StringMap map;
        Arena texts;
} SizeWords;
Status size_words_init(SizeWords *words, const Signature *signature);
void size_words_deinit(SizeWords *words);  // also after a failure, and of one that is all zero
size_t size_word_length(const char *text); // of the word that it begins with, 0: with none
