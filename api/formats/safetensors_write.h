// SPDX-License-Identifier: Apache-2.0
// Writing safetensors files.
#pragma once
#include "api/call.h"
#include "api/formats/named.h"

// Fills the reply's body with one file, whose data starts on a multiple of 64 and whose tensors are
// aligned to their elements; bytes are sent from where they lie. Names are unique.
// STATUS_NOT_ACCEPTABLE for dtypes the format lacks.
Status safetensors_write(const NamedTensor *tensors, uint32_t n, ApiReply *reply);
// The head of such a file alone, added to `out`, and where in the file each tensor's bytes begin.
Status safetensors_head(const NamedTensor *tensors, uint32_t n, Text *out, size_t *out_begins);
