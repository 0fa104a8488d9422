// SPDX-License-Identifier: Apache-2.0
// The Emitter interface: what walk_graph, targets and expand bodies talk to. The eager emitter
// (eval/) infers and runs at once on real tensors; a recording emitter infers on metas and appends
// nodes.
//
// In-place twins. A kernel row computes into self (elementwise, same dtype) or into a temporary
// that is then written. A view row's twin (`unsqueeze_`, `t_`) changes the geometry of the Tensor
// object itself, as in PyTorch: whoever holds that object sees the new shape; storage is not
// touched.
#pragma once
#include "core/ops/op.h"

// A body that is called once per row of some tensors.
typedef struct RowCalls {
        const Graph *body;
        // Of each call: what the call before returned (at first these), a row of each of `over`,
        // `more`. The body returns the next carried values, then one value per column.
        ValueSpan carried, over, more;
        int64_t n_rows; // > 0, in dimension 0 of each of `over`
} RowCalls;

typedef struct EmitterVtbl {
        // Before a call is inferred or expanded; NULL: nothing to check. Emitters whose tensors may
        // have no bytes refuse here what needs the number that such a tensor holds.
        Status (*check)(Emitter *emitter, const OpCall *call);
        // A bound call of a kernel or view op (no expand), already inferred: call->outs describes
        // the results. *out is a Tensor, a tuple, a list or a plain value as in the schema's
        // returns (values are taken out of call->outs). call->inplace: the one output is computed
        // straight into argument 0, whose dtype and shape are those of outs[0]; overlap has been
        // ruled out.
        Status (*op)(Emitter *emitter, OpCall *call, Value *out);
        // Writes `from` (broadcast to and cast as `to`) into `to`'s storage: copy_, and the tail of
        // every in-place twin.
        Status (*write)(Emitter *emitter, Tensor *to, const Tensor *from);
        // A state entry or child graph by dotted path (get_attr, module weights).
        Status (*state)(Emitter *emitter, const Graph *graph, const char *path, Value *out);
        // Runs a child graph: one value per placeholder, VALUE_ABSENT for a default.
        Status (*call)(Emitter *emitter, const Graph *graph, ValueSpan inputs, Value *out);
        // torch.cond: `predicate` a bool, or a one-element tensor.
        Status (*cond)(Emitter *emitter, Value predicate, const Graph *if_true, const Graph *if_false,
                       ValueSpan operands, Value *out);
        // while_loop: carried values through `body` while `condition` holds; `additional` are
        // passed to both.
        Status (*loop)(Emitter *emitter, const Graph *condition, const Graph *body, ValueSpan carried,
                       ValueSpan additional, Value *out);
        // All calls of a body at once: *out is the tuple of the carried values, then the columns,
        // stacked. Left VALUE_ABSENT with STATUS_OK: the caller makes the calls. NULL: always so.
        Status (*rows)(Emitter *emitter, const RowCalls *calls, Value *out);
        // With Emitter.runtime_scalars only. `number` gives the 0-dim wrapped tensor (counted) that
        // stands for a tagged runtime scalar. `number_read` reports that its value is read.
        Status (*number)(Emitter *emitter, Value number, Tensor **out_tensor);
        void (*number_read)(Emitter *emitter, Value number);
} EmitterVtbl;

struct Emitter {
        const EmitterVtbl *vtbl;
        RunContext *ctx;
        const Graph *graph;      // the graph being walked (state lookups)
        const Node *node;        // of the outermost graph: what is being run; NULL outside a walk
        int depth;               // child graphs entered; <= limits.max_child_graphs
        const OpDef *last_op;    // kernel that ran last: for profiles
        const char *last_kernel; // its name; static
        bool measure;            // add up the cost of a node's kernels
        bool runtime_scalars;    // some numbers may be tagged as runtime scalars
        bool autocast;           // inside of torch.autocast("cpu")
        Dtype autocast_dtype;    // the region's: what most products are cast to
        Cost cost;
};

// A fresh call frame over `args` (borrowed), outputs unset; emit() does it for every call.
// call_close drops what infer left there.
Status call_open(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given,
                 OpCall *out_call);
void call_close(OpCall *call);
// Whether the row takes the dtypes of the call's tensors: STATUS_DTYPE.
Status call_check_dtypes(const OpCall *call);
// The call's result as a Value of the schema's kind. Output k is tensors[k] (taken, set to NULL)
// where it is a tensor, else its plain value.
Status call_outs_take(OpCall *call, Tensor **tensors, Value *out);

// Runs or records a call: all calls go through here. `args` has all arguments in schema order (from
// schema_bind or by hand). Wraps numbers in Tensor slots, checks dtypes, makes the in-place twin's
// checks (cast, shape, overlap), then expands or hands to the vtbl.
Status emit(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given, Value *out);

// As emit, outside of autocast regions and inside of them.
Status emit_plain(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given, Value *out);
Status emit_autocast(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given,
                     Value *out);

// For expand bodies: binds positional values to the overload `name` ("aten::_softmax"); trailing
// defaults may be left out. The count is taken from the array: EMIT(e, "aten::add.Tensor", out, a,
// b). Results are owned by the caller (value_clear).
Status emit_values(Emitter *emitter, const char *name, const Value *args, uint32_t n_args, Value *out);
#define EMIT(emitter, name, out, ...)                                                                        \
        emit_values((emitter), (name), (const Value[]){ __VA_ARGS__ },                                       \
                    (uint32_t)(sizeof((const Value[]){ __VA_ARGS__ }) / sizeof(Value)), (out))
// To be called before Python code computes with a number that may be a runtime scalar: the result
// depends on its value.
static inline void emitter_number_read(Emitter *emitter, Value number)
{
        if (number.tag != 0 && emitter->runtime_scalars)
                emitter->vtbl->number_read(emitter, number);
}

// `args` of the call, borrowed: what an expand body passes on.
static inline Value arg_value(const OpCall *call, int index)
{
        return call->args[index];
}
