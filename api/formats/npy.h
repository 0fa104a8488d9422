// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: versions 1, 2 and 3, any byte order, C and Fortran order, all our dtypes
// except bfloat16. Objects (pickles), text and structured arrays are refused.
#pragma once
#include "core/base/span.h"
#include "core/base/text.h"
#include "core/tensor/tensor.h"

// Whether the bytes start with the magic of a .npy file.
bool npy_is(ByteSpan bytes);
// `borrow_bytes`: the storage that holds `bytes`, or NULL. When given, the tensor lies in it where
// alignment, order and byte order allow, as a copy-on-write shell that holds a reference; otherwise
// it is a contiguous copy, charged to `budget` (may be NULL). STATUS_MALFORMED, STATUS_UNSUPPORTED
// (dtype), STATUS_TOO_LARGE.
Status npy_read(ByteSpan bytes, Storage *borrow_bytes, Budget *budget, Tensor **out_tensor);
// Appends the head of a version 1 file in C order: everything before the elements.
// STATUS_NOT_ACCEPTABLE for dtypes NumPy lacks.
Status npy_write_header(const TensorMeta *meta, Text *out);
