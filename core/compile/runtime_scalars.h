// SPDX-License-Identifier: Apache-2.0
// Runtime scalars: float and int inputs whose value a program need not know.
#pragma once
#include "core/graph/graph.h"

enum { RUNTIME_SCALARS_MAX = 64 }; // placeholders looked at
// Bit i: placeholder i is a float or an int that only arithmetic reads: operators whose Tensor
// slots are known when they are emitted, and Python's operators, which report when they read the
// value. `inputs`: one Value per placeholder.
uint64_t runtime_scalars(const Graph *graph, ValueSpan inputs, const Node *const *fetch, uint32_t n_fetch);
// The name of placeholder `at`; borrowed from the graph.
const char *runtime_scalar_name(const Graph *graph, uint32_t at);
