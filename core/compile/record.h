// SPDX-License-Identifier: Apache-2.0
// The recording emitter: walks the authored graph once on metas and writes down the calls an eager
// run would make.
#pragma once
#include "core/program/recording.h"
#include "core/eval/walk.h"

typedef struct RecordOptions {
        // as for a run (WalkOptions.inputs): of tensors only the metas are looked at
        ValueSpan inputs;
        const Node *const *fetch; // nodes whose values are wanted besides the output
        uint32_t n_fetch;
        uint32_t max_calls; // 0: limits.max_nodes
        // A child graph (child.h): input tensors that have bytes are constants, numbers count by
        // value, and nothing is left to a tail: STATUS_DYNAMIC. `depth` child graphs are around it.
        bool is_child;
        int depth;
        bool keeps_state; // Recording.keeps_state; STATUS_DYNAMIC if nodes are left to a tail
        bool autocast;    // it is called inside of torch.autocast("cpu")
        Dtype autocast_dtype;
} RecordOptions;

// Nodes that need numbers known only in a run go to recording->tail. STATUS_DYNAMIC: the tail
// cannot be separated from the calls; the graph stays eager. Other failures are those of an eager
// run. `poll` (cancel, deadline) may be NULL.
Status record_graph(const Graph *graph, const RecordOptions *options, const RunContext *poll,
                    Recording **out_recording);
