// SPDX-License-Identifier: Apache-2.0
// Inside targets/: positions of arguments by name (arguments.def), beside those of operators.
#pragma once
#include "core/ops/arguments.h"

enum PyArgument {
#define FAMILY(schemas)
#define ARG(constant, position, names)          constant = (position),
#define OPTIONAL_ARG(constant, position, names) constant = (position),
#include "core/targets/arguments.def"
#undef FAMILY
#undef ARG
#undef OPTIONAL_ARG
};
