// SPDX-License-Identifier: Apache-2.0
// What a graph is, as JSON: inputs, outputs, operators, versions.
#pragma once
#include "core/base/text.h"
#include "core/engine.h"

// `graph` NULL: not decoded (state loading or damaged). `versions` may be NULL. `programs`: those that are ready.
Status info_write(const GraphVersion *version, const Graph *graph, GraphVersion *const *versions, uint32_t n_versions,
                  int64_t default_version, const ProgramInfo *programs, uint32_t n_programs, Text *out);
// The short form of the list.
void info_write_row(const GraphVersion *version, Text *out);
