// SPDX-License-Identifier: Apache-2.0
// A run body with values that work.
#pragma once
#include "api/call.h"

// Appends {"inputs": ...}: sizes as the exporter had them (or small ones that hold the graph's
// ranges and guards), numbers of a fixed pattern, zeros for integers, which are valid as indices.
// What is written was run once, on this thread. STATUS_CONFLICT when the graph does not say what
// its inputs look like and no run has shown it (`stats`), and when no run would take such a body.
Status example_write(Graph *graph, ProfileStats *stats, Text *out);
