// SPDX-License-Identifier: Apache-2.0
// Model files from the local disk, as uploads.
#pragma once
#include "api/upload.h"

// Reads a whole file (at most limits.max_upload). Messages name the file as the person gave it.
Status file_read(const char *path, Storage **out_bytes);
// Reads, decodes and stores a file under its stem ("models/digits.pt2" -> "digits").
Status preload_file(Engine *engine, const char *path, GraphVersion **out_version);
// Decodes only. Not strict: unsupported operators do not fail.
Status file_decode(const char *path, const char *model, bool strict, Graph **out_graph);
