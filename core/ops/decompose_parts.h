// SPDX-License-Identifier: Apache-2.0
// Inside the decompositions: the rows of their tables.
#pragma once
#include "core/ops/compose.h"
#include "core/ops/decompose.h"

typedef struct Decomposition {
        const char *name; // "softmax.int" for aten::softmax.int; else with its namespace
        OpDecompose decompose;
} Decomposition;
// NULL: no row has the operator's name.
OpDecompose decomposition_in(const Decomposition *rows, size_t n, const OpDef *op);
// ---- decompose_pointwise.c ----
OpDecompose pointwise_decomposition(const OpDef *op);
