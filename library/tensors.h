// SPDX-License-Identifier: Apache-2.0
// DLPack's tensors <-> core's.
#pragma once
#include "core/engine/task.h"
#include "library/fxserve.h"

DLDataType dtype_to_dl(Dtype dtype); // DTYPE_NONE: zeroed
Status dtype_from_dl(DLDataType type, Dtype *out_dtype);
// Dtype, shape and strides, checked; data is not looked at.
Status meta_from_dl(const DLTensor *from, TensorMeta *out_meta);
// A contiguous copy. STATUS_INPUT: not on the CPU, not readable as it stands, or too large.
Status tensor_from_dl(const DLTensor *from, Budget *budget, Tensor **out_tensor);
// Counts the tensor, which is contiguous.
Status tensor_to_dl(Tensor *tensor, DLManagedTensor **out_managed);
