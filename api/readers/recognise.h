// SPDX-License-Identifier: Apache-2.0
// What a file is, by its content. The message for a wrong file says what to send instead.
#pragma once
#include "core/base/span.h"
#include "core/base/status.h"

typedef enum FileKind { FILE_PT2, FILE_JSON, FILE_SAFETENSORS, FILE_NPY, FILE_OTHER } FileKind;

// By the first bytes only; FILE_PT2 for any zip. For parts of multipart, whose names say what they
// should be.
FileKind recognise_kind(ByteSpan bytes);
// A body that should be a graph: FILE_PT2 (a torch.export archive) or FILE_JSON; anything else is
// STATUS_WRONG_FILE (an empty body STATUS_MALFORMED), saying what it is and what to send instead.
Status recognise_graph(ByteSpan bytes, FileKind *out_kind);
// Whether a body is JSON that says "format": "fx-variant/1".
bool recognise_variant(ByteSpan bytes);
// The body of a run that no reader could read (`status`, with its failure). A file of another kind
// gives STATUS_WRONG_FILE, which says what it is and what to send instead. Otherwise `status`, with
// a hint if there is one.
Status recognise_run_body(ByteSpan bytes, Status status);
