// SPDX-License-Identifier: Apache-2.0
// Inside compile/: child graphs of loops, branches and scans as programs of their own. A child
// graph whose results have the same dtypes, shapes and strides in every call is recorded once and
// becomes one call of the parent's recording (core/ops/control.c). The call's kernel runs the
// child's program within the parent's memory. Child graphs that write to what they are given, or
// that need an eager tail, are left to the parent's tail.
#pragma once
#include "core/compile/recorder.h"

// ---- recording (child_record.c) ----
// STATUS_DYNAMIC: the call cannot be recorded; *out is unset.
Status child_record_cond(Recorder *recorder, Value predicate, const Graph *if_true, const Graph *if_false,
                         ValueSpan operands, Value *out);
Status child_record_loop(Recorder *recorder, const Graph *condition, const Graph *body, ValueSpan carried,
                         ValueSpan additional, Value *out);
// EmitterVtbl.rows.
Status child_record_rows(Emitter *emitter, const RowCalls *calls, Value *out);

// ---- what a call says of its child graphs ----
typedef struct ChildInputs {
        // one per placeholder; tensors that are the same in every call keep the bytes they have
        Seq *values;
        uint32_t *operands; // of tensors without bytes, in order: index among the call's `inputs`
        uint32_t n_operands;
} ChildInputs;
// Of a call of core/ops/control.c. The caller closes *out in every case.
Status child_inputs(const OpCall *call, ChildInputs *out);
void child_inputs_deinit(ChildInputs *inputs);

typedef struct ChildOptions {
        const RunContext *poll; // may be NULL
        uint32_t max_calls;
        int depth; // of child graphs around it
} ChildOptions;
// As record_graph for the whole child graph; STATUS_DYNAMIC where it is no program.
Status child_record(const OpCall *call, const Graph *graph, const ChildInputs *inputs,
                    const ChildOptions *options, Recording **out_recording);
// The tensors of a child's result, in order: of a tuple or list, or the one. STATUS_DYNAMIC if
// something else is among them.
Status child_results(const Recording *recording, Recorded ***out_values, uint32_t *out_n);
bool child_same_meta(const TensorMeta *a, const TensorMeta *b);

// ---- programs (child_program.c) ----
// What the calls are made with: rows with the kernels that core/ops/control.c leaves out. `draws`:
// a child draws random numbers.
const OpDef *child_cond_op(bool draws);
const OpDef *child_loop_op(bool draws);
const OpDef *child_rows_op(bool draws);
// Bytes of the programs that the call holds; 0 for other calls.
size_t child_program_bytes(const Packed *packed);
