// SPDX-License-Identifier: Apache-2.0
// Inside compile/: the recording emitter. record.c makes recordings for programs with it; check.c
// makes a recording only to find failures, and discards it.
#pragma once
#include "core/compile/runtime_scalars.h"
#include "core/compile/record.h"
#include "core/ops/decompose.h"

typedef struct StateView { // one state entry as the recording sees it
        const Tensor *entry;
        Tensor *seen; // counted
} StateView;

typedef struct Recorder {
        Emitter base;
        // The recorder's own, without a budget: literals outlive the request that compiles and are
        // not charged to it.
        RunContext ctx;
        const RunContext *poll;
        Recording *recording;
        StateView *views;
        uint32_t n_views, views_capacity;
        uint32_t max_calls, max_values;
        Decompositions decompositions;        // that calls are expanded by
        bool moves;                           // some node changes a tensor's geometry in place
        bool state_unknown;                   // state is recorded without reading its bytes
        bool has_children;                    // child graphs may become programs of their own
        bool is_child;                        // as in RecordOptions
        int depth;                            // child graphs around the recorded graph
        uint64_t scalars;                     // bit i: placeholder i is a runtime scalar ...
        uint64_t scalars_read;                // ... whose value was read
        Tensor *numbers[RUNTIME_SCALARS_MAX]; // live, counted: by placeholder
} Recorder;

static inline Recorder *recorder_of(Emitter *emitter)
{
        return (Recorder *)emitter;
}

// Caller's storage; the recording is borrowed.
void recorder_init(Recorder *recorder, Recording *recording, const RunContext *poll);
void recorder_deinit(Recorder *recorder);

// A live tensor (counted) on a new buffer, whose numbers are unknown. STATUS_TOO_LARGE over
// --max-run-memory.
Status recorder_unknown(Recorder *recorder, const TensorMeta *meta, Tensor **out_tensor);
// The same with the sizes that an exporter recorded, hints included; VALUE_DYNAMIC where they are
// not known.
Status recorder_of_spec(Recorder *recorder, const TensorSpec *spec, Value *out);
// An input with the sizes that the exporter recorded; VALUE_ABSENT for state.
Status recorder_input(Recorder *recorder, const Input *input, Value *out);
// A live tensor (counted) with the geometry of `value`, on its buffer's storage.
Status recorder_live_tensor(const Recorded *value, Tensor **out_tensor);
// The value that a live tensor stands for now. Tensors unknown to the recorder are literals, or
// views that an expansion made.
Status recorder_value(Recorder *recorder, Tensor *tensor, Recorded **out_value);
// For value_map, with the recorder as context: live tensors become their values.
Status recorder_leaf(void *recorder, const Value *leaf, Value *out);
bool recorder_same_geometry(const Tensor *a, const Tensor *b); // dtype, sizes, strides and offset
// recording_add_call for the node that is being walked. STATUS_DYNAMIC over max_calls.
Status recorder_add_call(Recorder *recorder, const OpCall *call, Value *take_args, RecordedCall **out_call);
// Whether the buffer holds a runtime scalar.
static inline bool recorder_is_number(const Recording *recording, const Buffer *buffer)
{
        return buffer->kind == BUFFER_INPUT && buffer->input >= recording->n_tensor_inputs;
}

// ---- members of the emitter's table ----
// record_call.c
Status record_check(Emitter *emitter, const OpCall *call);
Status record_op(Emitter *emitter, OpCall *call, Value *out);
Status record_write(Emitter *emitter, Tensor *to, const Tensor *from);
// record_state.c
Status record_state(Emitter *emitter, const Graph *graph, const char *path, Value *out);
Status record_cond(Emitter *emitter, Value predicate, const Graph *if_true, const Graph *if_false,
                   ValueSpan operands, Value *out);
Status record_loop(Emitter *emitter, const Graph *condition, const Graph *body, ValueSpan carried,
                   ValueSpan additional, Value *out);
// record_number.c
Status record_number(Emitter *emitter, Value number, Tensor **out_tensor);
void record_number_read(Emitter *emitter, Value number);
