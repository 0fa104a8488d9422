// SPDX-License-Identifier: Apache-2.0
// .pt2 archives of torch.export.save (torch 2.9 and later: raw weights) -> Graph. The result is the
// graph that str(torch.export.load(f).graph) prints: parameters, buffers and constants as
// placeholders, getitem nodes restored. No pickle is ever read; sample inputs are skipped.
#pragma once
#include "core/base/span.h"
#include "core/graph/graph.h"
#include "core/tensor/pieces.h"

// `archive` is borrowed for the call. `borrow_bytes`: the storage that holds the archive's bytes
// (archive.data points into it), or NULL. When given, weights that lie aligned in it are shared
// with it (each holds a reference); otherwise all weights are copied. `model` picks one of several
// models in the archive; NULL when there is one. On success *out_graph is finished (graph_finish),
// with signature and state. Failures name node or weight: STATUS_MALFORMED (damaged),
// STATUS_WRONG_FILE (written by an older torch; the message says what to do), STATUS_UNSUPPORTED
// (pickled weights, unsupported dtypes), STATUS_MISSING_STATE, STATUS_VALUE (`model` does not exist
// or was not given), STATUS_TOO_LARGE.
Status pt2_read(ByteSpan archive, Storage *borrow_bytes, const char *model, Graph **out_graph);
// The same for an archive that may have holes, or is being taken in (pieces.h); `pieces` may be
// NULL.
Status pt2_read_pieces(ByteSpan archive, Storage *borrow_bytes, Pieces *pieces, const char *model,
                       Graph **out_graph);
