// SPDX-License-Identifier: Apache-2.0
// Reductions of neighbouring rows at once, where the elements of a row lie apart and its neighbours'
// side by side: memory is read in order, and nothing is gathered.
#pragma once
#include "core/kernels/isa.h"
#include "core/kernels/reduce/reduce.h"

extern const KernelFamily column_family;

// Whether columns_run takes it: sums, means, products and extremes without an index, of rows whose
// neighbours are contiguous.
bool columns_fit(const RowPlan *plan, const Reduction *reduction);
// As reduce_run, with the same bits: each row's operations come in the same order.
Status columns_run(const RunContext *ctx, const RowPlan *plan, const Reduction *reduction);
