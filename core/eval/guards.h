// SPDX-License-Identifier: Apache-2.0
// What an export says of its inputs in expressions: guards, which are conditions on sizes and
// numbers as PyTorch writes them (`L['x'].size()[0] % 2 == 0`), ranges (`2*s0` from 4 to 64), and
// the sizes themselves. All are parsed once per graph.
#pragma once
#include "core/graph/expr.h"
#include "core/graph/graph.h"
#include "core/kernels/run_context.h"

typedef struct Guards Guards;

// STATUS_UNSUPPORTED names a guard that cannot be read, or speaks of what is not an input: it would
// refuse every run, or none. STATUS_TOO_LARGE over limits.max_guards, STATUS_MALFORMED for a size
// or a range that cannot be read.
Status guards_check(const Graph *graph);
// At most about what they take when they are parsed. A graph keeps them from the check or its first
// run on.
size_t guards_footprint(const Signature *signature);

// The graph's, parsed now if they are not yet. `poll` may be NULL.
Status guards_of(const Graph *graph, const RunContext *poll, const Guards **out_guards);
// A size of an input or the subject of a range, as the signature has it. NULL: it is a name.
const Expr *guards_size(const Guards *guards, const char *text);
// Symbols that sizes can give a value are numbered. guards_n_names: it is none of them.
uint32_t guards_n_names(const Guards *guards);
uint32_t guards_name(const Guards *guards, const char *name);
// About how long it takes to read and to bind inputs of this graph, apart from their bytes. -1: not
// known before the expressions are parsed.
int64_t guards_bind_ns(const Graph *graph);

// Values of the symbols in shapes, as expr_eval wants them.
typedef struct GuardSymbols {
        bool (*lookup)(void *context, const char *symbol, ExprNumber *out);
        void *context;
} GuardSymbols;
enum { GUARDS_STEPS = 64 }; // of `work`, for an operation

// `user` as for bind_inputs, literals filled in or VALUE_ABSENT. STATUS_GUARD shows a guard that
// does not hold, as PyTorch prints it. A guard on what is absent holds; one on a dimension that a
// tensor has not does not.
Status guards_hold(const Guards *guards, const Signature *signature, ValueSpan user, GuardSymbols symbols,
                   Work *work);
