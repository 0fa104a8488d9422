// SPDX-License-Identifier: Apache-2.0
// Tensors as JSON: nested lists, {"shape", "dtype", "data"} or {"shape", "dtype", "b64"}. Text and
// tensor memory are converted without a tree in between.
#pragma once
#include "core/base/json.h"
#include "core/tensor/tensor.h"

// Reads the next value as a tensor. `expected` is the signature's dtype, DTYPE_NONE when unknown:
// then an object's "dtype" or torch.tensor's inference (bools -> bool, all integers -> int64, any
// float -> float32) decides. Failures say where: ragged lists, wrong counts, values out of range.
// *out_guessed (may be NULL): the dtype is inferred.
Status tensor_json_read(JsonReader *reader, Dtype expected, Budget *budget, Tensor **out_tensor,
                        bool *out_guessed);

// Reads an object that may leave its data out: then *out_tensor is NULL and `out_described` holds
// what was said (dtype DTYPE_NONE, rank -1: nothing). `more` (may be NULL) is asked about members
// that a tensor does not have; it reads the values of those it knows.
typedef struct TensorJsonDescription {
        Dtype dtype;
        int rank;
        int64_t shape[MAX_RANK];
} TensorJsonDescription;
typedef struct TensorJsonMore {
        Status (*read)(void *context, JsonReader *reader, const char *key, bool *out_known);
        void *context;
} TensorJsonMore;
Status tensor_json_read_described(JsonReader *reader, Budget *budget, const TensorJsonMore *more,
                                  Tensor **out_tensor, TensorJsonDescription *out_described);

// The same in the words of the Open Inference Protocol: "datatype" ("FP32"), "shape" and "data". A
// member that is null counts as missing, and those that nobody knows are skipped. "data" is nested
// or flat; only the number of its values counts.
Status tensor_json_read_oip(JsonReader *reader, Budget *budget, const TensorJsonMore *more,
                            Tensor **out_tensor, TensorJsonDescription *out_described);

typedef enum TensorJsonStyle { TENSOR_JSON_NESTED, TENSOR_JSON_FLAT, TENSOR_JSON_B64 } TensorJsonStyle;
// The data alone: nested lists (a bare number for 0-dim), one flat list, or a base64 string of the
// contiguous little-endian bytes. Non-finite floats are the strings "NaN", "Infinity", "-Infinity".
// The tensor may be strided; its copy is charged to `budget` (may be NULL). STATUS_TOO_LARGE soon
// after `out` holds more than `most` bytes.
Status tensor_json_write(const Tensor *tensor, TensorJsonStyle style, Budget *budget, size_t most, Text *out);
// Bytes that the text has at least: brackets, separators and one character per number. Lets a
// caller refuse millions of empty lists, or more numbers than it may send, before the text is
// begun.
int64_t tensor_json_least(const TensorMeta *meta, TensorJsonStyle style);
