// SPDX-License-Identifier: Apache-2.0
// Guards of exports: conditions on the sizes and numbers that a graph is given, as PyTorch writes
// them: `L['x'].size()[0] % 2 == 0`.
#pragma once
#include "core/graph/expr.h"
#include "core/graph/graph.h"
#include "core/kernels/run_context.h"

// STATUS_UNSUPPORTED names a guard that cannot be read, or speaks of what is not an input: it would
// refuse every run, or none. STATUS_TOO_LARGE over limits.max_guards, or when the guards speak of
// too many inputs. `poll` may be NULL.
Status guards_check(const Graph *graph, const RunContext *poll);
// At most about what parsed guards take. A graph keeps them from the check or its first run on.
size_t guards_footprint(const Signature *signature);

// Values of the symbols in shapes, as expr_eval wants them.
typedef struct GuardSymbols {
        bool (*lookup)(void *context, const char *symbol, ExprNumber *out);
        void *context;
} GuardSymbols;

// `user` as for bind_inputs, literals filled in or VALUE_ABSENT. STATUS_GUARD shows a guard that
// does not hold, as PyTorch prints it. A guard on what is absent holds.
Status guards_hold(const Graph *graph, ValueSpan user, GuardSymbols symbols);
