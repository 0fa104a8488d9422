// SPDX-License-Identifier: Apache-2.0
// Binding: flat user inputs against the signature, before any node runs. Count, kinds, literals,
// ranks, static sizes, symbols, ranges and guards, in this order; dtypes are the operators'
// business, as in PyTorch. Symbols are unified across inputs; a size "2*s39" is solved for its
// symbol, which then may be a fraction: PyTorch checks sizes against each other and against ranges,
// not whether they are multiples.
#pragma once
#include "core/graph/graph.h"
#include "core/kernels/run_context.h"

// `user` holds one Value per INPUT_USER and INPUT_LITERAL entry, in signature order; a literal may
// be VALUE_NONE-and-absent (VALUE_ABSENT): it is filled in. On success
// out_inputs[graph->signature.n_inputs] holds a (counted) Value for every placeholder except
// INPUT_STATE ones, which are VALUE_ABSENT: the walk takes them from the state. Failures name the
// input: `input "x" has shape [3], expected [s31, 3]`. `poll` may be NULL.
Status bind_inputs(const Graph *graph, ValueSpan user, const RunContext *poll, Value *out_inputs);
