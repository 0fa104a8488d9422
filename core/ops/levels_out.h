// SPDX-License-Identifier: Apache-2.0
// What rows that sum levels have in common: checks of operands, and what they do with results. That
// is said by the arguments low, high, dtype, out_inverse, out_zero, quant_min and quant_max, which
// follow each other.
#pragma once
#include "core/kernels/product/levels.h"
#include "core/ops/op.h"

// `first`: the position of low. The results of the call are known.
Status levels_read_out(const OpCall *call, int first, LevelsOut *out);
// Puts `x` at element `at` of `to`, clamped, as a float or as a level.
void levels_store(const LevelsOut *out, float x, int64_t at, void *to);
// STATUS_SHAPE, with the row's name.
Status levels_refuse(const OpCall *call, const char *why);
// Whether it is a scale, or a bias, of each of `n` columns.
bool levels_are_floats(const TensorMeta *meta, int64_t n);
