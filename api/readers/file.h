// SPDX-License-Identifier: Apache-2.0
// Model files from the local disk.
#pragma once
#include "core/graph/graph.h"

// Reads a whole file, of any size that memory allows: it is no upload. Messages name the file as it
// was given.
Status file_read(const char *path, Storage **out_bytes);
// Decodes only, as an upload would be. Not strict: unsupported operators do not fail. `model`: of
// an archive of several; NULL: the only one. Weights may point into `bytes`, then counted.
Status bytes_decode(Storage *bytes, const char *model, bool strict, Graph **out_graph);
// `weights`: a safetensors file beside FX JSON; NULL: none.
Status file_decode(const char *path, const char *weights, bool strict, Graph **out_graph);
