// SPDX-License-Identifier: Apache-2.0
// Finds the unsupported calls of an exported graph before its first run.
#pragma once
#include "core/kernels/run_context.h"
#include "core/targets/targets.h"

// Adds to `report` a row for each call of a finished, resolved graph with a signature that fails
// with STATUS_UNSUPPORTED at the sizes the exporter recorded. Computes no numbers and reads no
// state. Memory and time are bounded for any graph. STATUS_OK also when rows were added. `poll`
// may be NULL; a cancelled check keeps the rows found so far.
Status check_graph(const Graph *graph, const RunContext *poll, CheckReport *report);
