// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: versions 1, 2 and 3, any byte order, C and Fortran order, all our dtypes except bfloat16. Objects (pickles), text and
// structured arrays are refused.
#pragma once
#include "core/base/span.h"
#include "core/base/text.h"
#include "core/tensor/tensor.h"

// Whether the bytes start with the magic of a .npy file.
bool npy_is(ByteSpan bytes);
// A contiguous copy with own bytes, charged to `budget` (may be NULL). STATUS_MALFORMED, STATUS_UNSUPPORTED (dtype), STATUS_TOO_LARGE.
Status npy_read(ByteSpan bytes, Budget *budget, Tensor **out_tensor);
// Appends a version 1 file, C order. `tensor` may be strided. STATUS_NOT_ACCEPTABLE for dtypes NumPy lacks.
Status npy_write(Tensor *tensor, Text *out);
