// SPDX-License-Identifier: Apache-2.0
// Inside targets/: Python's operators on any values.
#pragma once
#include "core/targets/py.h"

// `a op b`; tensors, numbers, sequences, texts.
Status operator_binary(Emitter *emitter, PyBinary op, Value a, Value b, Value *out);
// The tensor operator for a function of Python's operator module: "truediv" -> "aten::div". NULL:
// none.
const char *operator_base(const char *name);
// `a op= b`: a tensor on the left is written in place and returned.
Status operator_inplace(Emitter *emitter, PyBinary op, Value a, Value b, Value *out);
// base_(args): the in-place twin, or compute and write where the table has none.
Status aten_inplace(Emitter *emitter, const char *base, const Value *args, uint32_t n_args, Value *out);
// A call of F.dropout and its relatives, or of their classes.
typedef struct DropoutCall {
        const char *base; // "aten::dropout"
        Value input, p;
        bool training, inplace;
        int batched_rank; // inputs of another rank are one item of a batch; 0: none are
} DropoutCall;
Status dropout_call(Emitter *emitter, const DropoutCall *call, Value *out);
// The checks that F.batch_norm and F.instance_norm add to the operators': more than one number per
// statistic, and a sensible eps.
Status norm_check_batch(const TensorMeta *input, bool training, Value eps);
Status norm_check_spatial(const TensorMeta *input);
