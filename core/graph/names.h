// SPDX-License-Identifier: Apache-2.0
// torch.fx's _Namespace: names that are unique, legal Python and shadow neither keywords nor
// builtins. Graphs have one for their nodes; printed code has a fresh one for locals and globals
// together.
#pragma once
#include "core/base/arena.h"
#include "core/base/map.h"

typedef struct Namespace {
        StringMap used;   // name -> itself
        StringMap counts; // base -> highest number tried, plus one
} Namespace;

void namespace_deinit(Namespace *space);
// Whether a variable of this name would hide a keyword, a builtin or one of torch.fx's own globals.
bool name_is_reserved(const char *name);
// [A-Za-z_][A-Za-z0-9_]*, the only names torch.fx makes.
bool name_is_plain(const char *name);
// A free name made from `candidate`, in `arena`; it is taken from now on. `is_builtin`: the name
// will stand for the builtin of that very name.
Status namespace_create(Namespace *space, Arena *arena, const char *candidate, bool is_builtin,
                        const char **out_name);
// Takes a plain name as it is; the caller has seen that it is free. `borrow_name` must outlive the
// namespace.
Status namespace_claim(Namespace *space, Arena *arena, const char *borrow_name);
// A function's __name__ from its qualified name; for an overload of torch.ops "add.Tensor".
// Borrowed from `target` or static.
const char *function_name(const char *target);
