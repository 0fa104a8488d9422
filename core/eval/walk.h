// SPDX-License-Identifier: Apache-2.0
// walk_graph: the only code that knows the six opcodes at run time. Visits nodes in order with
// torch.fx.Interpreter's meaning (defaults, *args, nested arguments, values freed at their last
// use) and reports failures with the line PyTorch prints: "While executing %add : [num_users=1] =
// ...".
#pragma once
#include "core/ops/emitter.h"

// One row per executed node, in order. Times are clock_ns().
typedef struct NodeTiming {
        const Node *node;
        const char *kernel; // static; NULL: none ran (placeholders, get_attr, views say "view")
        int64_t start_ns, end_ns;
        bool has_tensor;
        TensorMeta meta; // of the (first) tensor result
        int64_t bytes, flops;
        // Rows of programs: all authored nodes that the instruction computes, in order; `node` is
        // the first of them. Eager rows: NULL.
        const Node *const *nodes;
        uint32_t n_nodes;
        const char *why; // "view", "folded": nothing ran for the node; static; else NULL
} NodeTiming;

typedef struct WalkTrace { // caller's storage; rows: capacity >= graph->n_nodes
        NodeTiming *rows;
        uint32_t n_rows, capacity;
        size_t live_bytes_peak;
} WalkTrace;

// A walk that leaves nodes out: those that fail with STATUS_DYNAMIC, and all that read them
// directly or indirectly. They get the value VALUE_DYNAMIC and are not run. For the outermost graph
// of a recording.
typedef struct WalkSplit {
        bool *left; // by node index, in and out: true = leave it out
        // Called for every node left out, in order. `values` by node index are those of the nodes
        // before it (VALUE_DYNAMIC: left out, too).
        Status (*leave)(void *context, const Node *node, const Value *values);
        void *context;
} WalkSplit;

// A walk that continues after a failure. A node that fails, or that reads VALUE_DYNAMIC (it is not
// run: STATUS_DYNAMIC), gets the value that `mend` returns (VALUE_DYNAMIC: none is known). A
// failure of `mend` ends the walk. The output node is not run.
typedef struct WalkMend {
        Status (*mend)(void *context, const Node *node, Status status, Value *out);
        void *context;
} WalkMend;

// Shown each value as soon as it is there, before later nodes can write to it. A failure ends the
// walk. Setting `done` ends it, too, without a failure and without a result.
typedef struct WalkVisit {
        Status (*see)(void *context, const Node *node, Value value);
        void *context;
        bool done;
} WalkVisit;

// The value of a node that another part of the run has computed.
typedef struct WalkKnown {
        const Node *node;
        Value value; // borrowed
} WalkKnown;

typedef struct WalkOptions {
        // One Value per placeholder, in order. VALUE_ABSENT: not given (the state entry for
        // INPUT_STATE placeholders, else the default). A "*args" placeholder's value is a tuple, a
        // "**kwargs" placeholder's a dict; absent they are empty.
        ValueSpan inputs;
        const Node *const *fetch; // nodes whose values are wanted besides the output (kept alive to the end)
        uint32_t n_fetch;
        WalkTrace *trace;       // NULL: no timing
        const WalkSplit *split; // NULL: every node is run
        const WalkMend *mend;   // NULL: the first failure ends the walk
        WalkVisit *visit;       // NULL: nobody looks on
        // The eager tail of a program: nodes with `skip` set (by node index; NULL: none) are not
        // run; `known` gives the values of those that others read or that are fetched.
        const bool *skip;
        const WalkKnown *known;
        uint32_t n_known;
} WalkOptions;

// Adds PyTorch's line and the node's name to the thread's failure when a node caused it; returns
// `status`.
Status walk_annotate(Status status, const Node *node);

// `out_fetched` (n_fetch Values, may be NULL when n_fetch is 0) and *out_value (the output node's
// structure) are owned by the caller.
Status walk_graph(Emitter *emitter, const Graph *graph, const WalkOptions *options, Value *out_value,
                  Value *out_fetched);

// EmitterVtbl.call of every emitter: walks a child graph in place. STATUS_RUN when child graphs are
// nested deeper than limits.max_child_graphs.
Status walk_child(Emitter *emitter, const Graph *graph, ValueSpan inputs, Value *out);
