// SPDX-License-Identifier: Apache-2.0
// safetensors files in memory. Everything is proven before a tensor is made: the header's size,
// unique names, dtype * shape == span, spans that tile the data without gap or overlap to the last
// byte.
#pragma once
#include "core/base/arena.h"
#include "core/base/map.h"
#include "core/base/span.h"
#include "core/tensor/pieces.h"

typedef struct SafetensorsEntry {
        const char *name;
        Tensor *tensor; // counted; contiguous, read-only bytes
} SafetensorsEntry;

typedef struct Safetensors {
        SafetensorsEntry *entries; // in the order of the header
        uint32_t n_entries;
        StringMap by_name;  // name -> Tensor
        StringMap metadata; // "__metadata__": key -> text
        Arena arena;        // names and texts
} Safetensors;

// `borrow_bytes`: the storage that holds `bytes`, or NULL. When given, tensors lie in it where
// their dtype's alignment allows (each holds a reference); otherwise, and when not given, they are
// copies. *out_file is to be given to safetensors_deinit. STATUS_MALFORMED, STATUS_UNSUPPORTED
// (dtypes we lack), STATUS_TOO_LARGE; the failure names the tensor.
Status safetensors_read(ByteSpan bytes, Storage *borrow_bytes, Safetensors *out_file);
// The same for a file that may have holes, or is being taken in (pieces.h); `pieces` may be NULL.
Status safetensors_read_pieces(ByteSpan bytes, Storage *borrow_bytes, Pieces *pieces, Safetensors *out_file);
void safetensors_deinit(Safetensors *file);
Tensor *safetensors_find(const Safetensors *file, const char *name);        // borrowed; NULL if absent
const char *safetensors_metadata(const Safetensors *file, const char *key); // borrowed; NULL if absent
