// SPDX-License-Identifier: Apache-2.0
// What a graph is, as JSON: inputs, outputs, operators, versions.
#pragma once
#include "core/base/text.h"
#include "core/engine/batch.h"
#include "core/engine/describe.h"

typedef struct InfoOf {
        const GraphVersion *version;
        bool is_resident;            // its graph is decoded
        const Graph *graph;          // NULL: not decoded; then its members are left out
        const VersionList *list;     // of the name; NULL: the name has gone
        const ProgramInfo *programs; // that are ready
        uint32_t n_programs;
        BatchFacts batching;
        const Text *derivation; // engine_derivation's; NULL: it was uploaded
} InfoOf;

Status info_write(const InfoOf *of, Text *out);
// The short form of the list of graphs.
void info_write_row(const GraphVersion *version, bool is_resident, Text *out);
// That of the list of a graph's versions.
void info_write_version(const VersionList *list, const GraphVersion *version, bool is_resident, Text *out);
