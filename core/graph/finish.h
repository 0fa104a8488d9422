// SPDX-License-Identifier: Apache-2.0
// Steps of graph_finish that live in files of their own. Private to this room.
#pragma once
#include "core/graph/graph.h"

// SHA-256 of the canonical form; child graphs have theirs already.
void graph_set_fingerprint(Graph *graph);
