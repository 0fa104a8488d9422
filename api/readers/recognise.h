// SPDX-License-Identifier: Apache-2.0
// What a file is, by its content. Wrong files are named together with their cure.
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
// The body of a run, which no reader could read (`status`, with its failure): when it is a file of
// another kind, STATUS_WRONG_FILE says which and what to send instead. Else `status`, with a hint
// where one is known.
Status recognise_run_body(ByteSpan bytes, Status status);
