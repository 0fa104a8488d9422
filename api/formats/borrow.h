// SPDX-License-Identifier: Apache-2.0
// Tensors that lie in the bytes of a request body.
#pragma once
#include "core/base/span.h"
#include "core/tensor/tensor.h"

// A copy-on-write shell over `range`, which lies in `bytes` (a reference is held). A copy, if a run
// writes to it, is charged to `budget`. For one run on one thread.
Status borrow_storage(Storage *bytes, ByteSpan range, Budget *budget, Storage **out_shell);

// A contiguous tensor of the bytes at `content`, which lie in `bytes` and are as many as `meta`
// needs: in place if they are aligned, else a copy. STATUS_VALUE: a bool that is neither 0 nor 1.
Status borrow_tensor(Storage *bytes, ByteSpan content, const TensorMeta *meta, Budget *budget,
                     Tensor **out_tensor);
