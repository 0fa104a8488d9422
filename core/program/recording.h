// SPDX-License-Identifier: Apache-2.0
// Recording: a graph specialised to one input signature. It is the list of calls that an eager run
// would make, in its order. Arguments are bound: sizes and scalars are numbers. Composites are
// expanded. In-place writes stay in their places. Tensors whose numbers are known already (weights
// that nothing writes, literals) are constants with bytes. All other tensors lie in a Buffer, which
// gets bytes when the program runs.
//
//   Recorded   one tensor as it was when it was made: meta, offset, storage. It never changes, so
//              calls may point to it.
//   Buffer     one storage, shared by all views of it. So a write to one view changes the others,
//              as in an eager run.
//
// A buffer that some call writes after it was made (Buffer.written) is a barrier: passes may not
// move, merge or drop calls that read or write it. Passes build calls with recording_insert.
//
// Both stages, aten (as recorded) and optimised (after the passes), are recordings; recording_graph
// makes a graph of either. One thread builds and rewrites a recording. It is immutable once a
// program owns it.
#pragma once
#include "core/ops/emitter.h"

typedef enum BufferKind {
        BUFFER_RUN,   // computed
        BUFFER_INPUT, // an input's storage; copied first when some call writes it
        BUFFER_STATE, // state that some call may write: the run's own copy of `origin`
} BufferKind;

typedef struct Recorded Recorded;
typedef struct RecordedCall RecordedCall;
enum { TAG_BUFFER = 1, TAG_RECORDED }; // Tag.kind

typedef struct Buffer {
        Tag tag; // of its storage
        BufferKind kind;
        uint32_t index;  // in recording->buffers
        uint32_t input;  // INPUT: leaf
        uint32_t number; // STATE that lives on: of the entry (eval/state.h)
        size_t n_bytes;
        Storage *storage;   // counted; stands for the buffer in tensors, has no bytes
        Storage *origin;    // STATE: counted; the bytes it starts with
        Recorded *base;     // first tensor on it
        bool written;       // some call writes it after it was made
        bool is_output;     // part of the result
        bool written_later; // the eager tail may write it after all calls (written is true as well)
} Buffer;

typedef enum RecordedFrom { FROM_CALL, FROM_INPUT, FROM_STATE, FROM_LITERAL } RecordedFrom;
struct Recorded {
        Tensor tensor; // what calls and the result hold
        Tag tag;       // of `tensor`, and of live tensors that stand for the value while recording
        RecordedFrom from;
        uint32_t index;     // in recording->values
        RecordedCall *call; // FROM_CALL: who makes it
        uint32_t input;     // FROM_INPUT: leaf
        const char *name;   // FROM_INPUT: of the placeholder; borrowed from the authored graph
        const char *path;   // FROM_STATE; borrowed likewise
        Recorded *instead;  // replaced by a pass: use this one; NULL
};

struct RecordedCall {
        OpCall call; // args, schema, outs as inferred: what prepare, pack and run want to see
        const Overload *overload;
        // call.n_outs; NULL where the output is undefined, a plain value or an argument itself
        Recorded **outs;
        const Node **nodes; // authored nodes it computes, in order
        uint32_t n_nodes, nodes_capacity;
        bool computes; // has something to run; else views only
        bool removed;
        // `unsqueeze_` and the like: a tensor of value `moved - 1` has outs[0] then; 0: none
        uint32_t moved;
        RecordedCall *before; // inserted in front of it since the last recording_compact; NULL
};

// What is not planned: nodes that need numbers only a run knows, and all that depend on them. Eval
// walks them on real tensors after the calls (interp). Then the recording's result is not the
// graph's: it is the tuple of the values that the tail takes from the calls.
typedef struct EagerTail {
        bool *skip;         // by node index: not walked
        const Node **nodes; // walked, in order; the output node is the last
        uint32_t n_nodes;
        const Node **known; // whose values the tuple holds
        uint32_t n_known;
} EagerTail;

typedef struct Recording {
        Arena arena;
        Graph *graph;         // counted: the authored graph
        RecordedCall **calls; // in order
        uint32_t n_calls, calls_capacity, n_inserted;
        Recorded **values;
        uint32_t n_values, values_capacity;
        Buffer **buffers;
        uint32_t n_buffers, buffers_capacity;
        // tensor leaves of the inputs, in order; then numbers that calls read as 0-dim tensors
        Recorded **inputs;
        uint32_t n_inputs, inputs_capacity, n_tensor_inputs;
        uint32_t *number_inputs; // of inputs[n_tensor_inputs + k]: which placeholder it is
        uint32_t number_inputs_capacity;
        uint64_t by_value; // bit i: the calls depend on the value of placeholder i (program_key)
        EagerTail *tail;   // NULL: everything is planned
        Value result;      // the output node's structure (with a tail: see Tail), tensors are Recorded
        // behind what was asked for: the state that calls write, when it lives on (`states`)
        Value *fetched;
        uint32_t n_fetched;
        bool keeps_state; // state is an input, even where nothing writes to it
        Buffer **states;  // with keeps_state: all of kind STATE, in the order of their slots
        uint32_t n_states, states_capacity;
        Graph **bodies; // counted: graphs that calls hold as arguments
        uint32_t n_bodies, bodies_capacity;
} Recording;

Status recording_new(const Graph *graph, Recording **out_recording);
Recording *recording_free(Recording *recording);
DEFINE_CLEANUP(Recording, recording_free)

// The value that a tensor is, or stands for while recording; NULL: no tensor of a recording.
// Tensors in the arguments of calls and in results are always Recorded.tensor.
static inline Recorded *recorded_of(const Tensor *tensor)
{
        Tag *tag = tensor->tag;
        return tag != NULL && tag->kind == TAG_RECORDED
                       ? (Recorded *)(uintptr_t)((char *)tag - offsetof(Recorded, tag))
                       : NULL;
}
// NULL: its bytes are there.
static inline Buffer *buffer_of(const Storage *storage)
{
        Tag *tag = storage->tag;
        return tag != NULL && tag->kind == TAG_BUFFER
                       ? (Buffer *)(uintptr_t)((char *)tag - offsetof(Buffer, tag))
                       : NULL;
}
static inline Buffer *recorded_buffer(const Recorded *value)
{
        return buffer_of(value->tensor.storage);
}
static inline bool recorded_is_constant(const Recorded *value)
{
        return tensor_is_known(&value->tensor);
}

Status recording_add_buffer(Recording *recording, BufferKind kind, size_t n_bytes, Buffer **out_buffer);
// A value on `storage` (counted by the value): a buffer's, or one with bytes.
Status recording_add_value(Recording *recording, RecordedFrom from, Storage *storage, const TensorMeta *meta,
                           int64_t offset, Recorded **out_value);
// Copies the frame `call` with arguments `take_args` (n_args counted values, tensors in them are
// Recorded) and room for its outputs.
Status recording_add_call(Recording *recording, const OpCall *call, Value *take_args,
                          RecordedCall **out_call);
Status recording_add_node(Recording *recording, RecordedCall *call, const Node *node);
// Adds the authored nodes of `other` to those that `call` computes.
Status recording_add_nodes(Recording *recording, RecordedCall *call, const RecordedCall *other);
// A value that a call makes on a new buffer; `call` is the caller's to fill in.
// STATUS_TOO_LARGE over --max-run-memory.
Status recording_add_fresh(Recording *recording, const TensorMeta *meta, Recorded **out_value);

// ---- inserting (recording_insert.c) ----
// What the results of a new call are, given the values that other calls make now (NewCall.outs).
typedef enum NewResults {
        // These values themselves: their readers need no change.
        // Declined unless dtype, shape and strides are equal, and of views the place in the buffer.
        RESULTS_TAKEN_OVER,
        RESULTS_ALIKE, // new values; declined unless dtype, shape and strides are equal
        // Where the strides are equal (of views also the place in the buffer), that value; else a
        // new one. Declined unless dtype and shape are equal and the result is dense or a view.
        RESULTS_RESTRIDED,
} NewResults;

typedef struct NewCall {
        const Overload *overload;
        Value *take_args; // one counted value per argument of the schema
        uint64_t given;   // OpCall.given; 0: all
        // one value per result, none NULL; NULL: all results are new, as the operator infers them
        Recorded *const *outs;
        uint32_t n_outs;                 // with `outs`: another number of results declines
        NewResults results;              // with `outs`
        RecordedCall *const *stands_for; // calls whose authored nodes it computes
        uint32_t n_stands_for;
        bool replaces; // they are removed
        // Asked after infer; a failure declines the call. NULL: accepts all.
        Status (*accept)(const OpCall *call);
} NewCall;

// Puts a call in front of `at` (NULL: at the end). The operator infers it; its results become
// values of the recording, on buffers of their own where they are new. The arguments are taken in
// any case. Positions in `calls` stay as they are until recording_compact.
//
// *out_call NULL with STATUS_OK: declined, nothing has changed. The operator refuses these
// arguments, or its results are not what NewCall.results asks for. A failure (memory, deadline,
// cancel) ends the build: the recording can only be freed.
Status recording_insert(Recording *recording, RecordedCall *at, const NewCall *new_call,
                        RecordedCall **out_call);
// Drops removed calls and puts inserted ones in their places. O(n).
void recording_compact(Recording *recording);

// How many of its arguments a call reads, the first ones. A view reads what it is of; of others
// (expand_as) it has taken the shape.
static inline uint32_t recorded_n_read(const RecordedCall *call)
{
        return call->computes ? call->call.n_args : MIN(call->call.n_args, 1u);
}

// ---- walking and rewriting ----
// Tensor arguments in schema order, lists flattened; visit gets NULL for absent ones.
typedef Status (*RecordedVisit)(void *context, Recorded *value);
Status recorded_visit_inputs(const RecordedCall *call, RecordedVisit visit, void *context);
// Tensors anywhere in the result and what was fetched.
Status recording_visit_results(const Recording *recording, RecordedVisit visit, void *context);
// Argument 0 is written: in-place twins and copies into a tensor.
static inline bool recorded_writes_self(const RecordedCall *call)
{
        return call->call.inplace;
}
// Puts the replacement wherever a replaced value stands, in live calls and results.
Status recording_substitute(Recording *recording);
// The values on each buffer, as of when it was made. For passes that move values and add none.
typedef struct BufferValues {
        Recorded **first; // by buffer
        Recorded **next;  // by value
} BufferValues;
Status buffer_values_find(const Recording *recording, BufferValues *out_values);
void buffer_values_deinit(BufferValues *values);
// Moves all values on the buffer of `from` to `to`, at the same offsets.
void buffer_values_move(BufferValues *values, const Storage *from, Storage *to);

typedef struct RecordedGroup { // some calls, in order, with their inputs and outputs
        RecordedCall *const *calls;
        Recorded *const *inputs, *const *outputs;
        uint32_t n_calls, n_inputs, n_outputs;
} RecordedGroup;
// The group as a graph of its own, of a kind that a call may hold as an argument: one placeholder
// per value in `inputs`, the tuple of `outputs` as result. All tensors that the calls read are
// inputs, made by an earlier one of them, or wrapped numbers. Finished; owned by the recording.
Status recording_body(Recording *recording, const RecordedGroup *group, Graph **out_graph);
// The call's arguments as those of a node: in schema order, defaults at the end left out,
// keyword-only ones by name. `leaf` gives what stands for a leaf (value_map). Results are the
// caller's.
typedef Status (*RecordedLeaf)(void *context, const Value *leaf, Value *out);
Status recorded_call_arguments(const RecordedCall *call, RecordedLeaf leaf, void *context, Value *out_args,
                               Value *out_kwargs);
// The number in a wrapped tensor whose bytes are there.
Value recorded_number(const Tensor *tensor);
// The recording as a finished graph: placeholders, get_attr, call_function torch.ops.*, output.
// State entries share the recording's storages.
Status recording_graph(const Recording *recording, Graph **out_graph);
