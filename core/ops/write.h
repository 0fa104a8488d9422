// SPDX-License-Identifier: Apache-2.0
// Writing one tensor into another while a program runs: a recorded emitter `write`.
#pragma once
#include "core/ops/op.h"

// in[0] and out[0]: the tensor written to; in[1]: what is written, broadcast and cast. They share
// no element.
extern const OpDef write_op;
