// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph are planned and which are left to the eager tail.
#pragma once
#include "core/eval/walk.h"
#include "core/program/recording.h"

typedef struct Split Split;
// Of the outermost graph; graph and `poll` (may be NULL) must outlive it.
Status split_new(const Graph *graph, const RunContext *poll, Split **out_split);
Split *split_free(Split *split);
DEFINE_CLEANUP(Split, split_free)

// One attempt: `recording` is being made by a walk with *split_walk(split). Forgets earlier
// attempts but for the nodes they left out.
void split_start(Split *split, const Recording *recording);
const WalkSplit *split_walk(const Split *split);
// After the walk. *out_again: more nodes have to be left out (they are marked), so that the graph
// must be recorded once more. STATUS_DYNAMIC: the tail and the calls cannot be told apart; the
// graph must run eagerly as a whole.
Status split_settle(Split *split, bool *out_again);
// A node failed half-way and was left out: its calls are still in the recording.
bool split_gave_up(const Split *split);
// One of these nodes takes a runtime scalar: with the value known it might be recorded.
bool split_asks_number(const Split *split);
// Nothing is left out: the recording is the whole graph.
bool split_is_whole(const Split *split);
// Adds the value of a fetched node to those that are kept for the tail.
Status split_keep(Split *split, const Node *node, Value value);
// Fills in recording->tail (in its arena). out_values: what the tail takes from the calls, as live
// values, borrowed from the split until the next start.
Status split_finish(Split *split, Recording *recording, ValueSpan *out_values);
