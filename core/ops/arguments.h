// SPDX-License-Identifier: Apache-2.0
// Positions of arguments by name, for functions that read the arguments of several overloads
// (arguments.def).
#pragma once

enum OpArgument {
        SELF = 0, // the first argument, which schemas call self or input
#define FAMILY(overloads)
#define ARG(constant, position, names)          constant = (position),
#define OPTIONAL_ARG(constant, position, names) constant = (position),
#include "core/ops/arguments.def"
#undef FAMILY
#undef ARG
#undef OPTIONAL_ARG
};
