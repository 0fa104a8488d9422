// SPDX-License-Identifier: Apache-2.0
// Split: which nodes of a graph are recorded as calls, and which are left to the eager tail.
#pragma once
#include "core/eval/walk.h"
#include "core/program/recording.h"

typedef struct Split Split;
// For the outermost graph. `graph` and `poll` (may be NULL) must outlive the split.
Status split_new(const Graph *graph, const RunContext *poll, Split **out_split);
Split *split_free(Split *split);
DEFINE_CLEANUP(Split, split_free)

// Begins an attempt: a walk with *split_walk(split) is about to make `recording`. Of earlier
// attempts only the nodes that they left out are kept.
void split_start(Split *split, const Recording *recording);
const WalkSplit *split_walk(const Split *split);
// Looks for conflicts after the walk. *out_again: more nodes were marked to be left out, and the
// graph must be recorded again. STATUS_DYNAMIC: calls and tail cannot be separated, and the whole
// graph must run eagerly.
Status split_settle(Split *split, bool *out_again);
// A node failed after it had recorded some calls, and was left out. These calls are still in the
// recording.
bool split_gave_up(const Split *split);
// Such a node takes a runtime scalar: with the scalar's value known, it might be recorded.
bool split_asks_number(const Split *split);
// Nothing is left out: the recording is the whole graph.
bool split_is_whole(const Split *split);
// Adds the value of a fetched node to those that are kept for the tail.
Status split_keep(Split *split, const Node *node, Value value);
// Fills in recording->tail (in its arena). out_values: what the tail takes from the calls, as live
// values, borrowed from the split until the next start.
Status split_finish(Split *split, Recording *recording, ValueSpan *out_values);
