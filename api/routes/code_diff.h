// SPDX-License-Identifier: Apache-2.0
// What an edit changed, as a unified diff of the printed code.
#pragma once
#include "core/engine/engine.h"

// From the version's graph to one that was made of it. Empty, not NULL, when both print the same.
Status code_diff(const GraphVersion *version, const Graph *before, const Graph *after, Text *out_diff);
