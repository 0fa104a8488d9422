// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz files: zip archives of .npy members. Reading bounds what deflated members may
// become; writing stores members as they are.
#pragma once
#include "api/call.h"
#include "api/formats/named.h"

// Whether the bytes start as a zip archive does.
bool npz_is(ByteSpan bytes);
// Gives each array to `take`, in the archive's order, named as its member without ".npy". Arrays
// lie in `bytes` where they are stored and aligned; inflated or copied ones are charged to
// `budget`. STATUS_MALFORMED, STATUS_UNSUPPORTED, STATUS_TOO_LARGE, and the failures of `take`.
Status npz_read(Storage *bytes, Budget *budget, TakeNamed take, void *context);
// Fills the reply's body: one stored member per tensor, bytes sent from where they lie.
// STATUS_NOT_ACCEPTABLE for dtypes NumPy lacks.
Status npz_write(const NamedTensor *tensors, uint32_t n, ApiReply *reply);
