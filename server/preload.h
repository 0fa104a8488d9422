// SPDX-License-Identifier: Apache-2.0
// Model files from the local disk, as uploads.
#pragma once
#include "api/readers/file.h"
#include "api/readers/upload.h"

// The name that a file is stored under, its stem: "models/digits.pt2" -> "digits", "m.fx.json" ->
// "m".
void model_name_of(const char *path, char out_name[65]);
// Files that make one version; NULL: there is none.
typedef struct PreloadParts {
        const char *graph, *weights, *labels, *image; // weights: of FX JSON only
        int64_t version; // that was made of earlier files at these paths; 0: not known
        int64_t number;  // that the version is to have; 0: any
} PreloadParts;
// Stores them as a version of the name. *out_created false: the name has a version of this content
// already, which is *out_version; if `version` is known, only that one or the latest will do, and
// if it is to have a number, only that one. STATUS_CONFLICT: the version of that number has other
// content.
Status preload_parts(Engine *engine, const char *name, const PreloadParts *parts, GraphVersion **out_version,
                     bool *out_created);
// Reads, decodes and stores a file, or all models (.pt2, .json) of a folder in the order of their
// names. `report` is told of each. The failure names the file.
Status preload_path(Engine *engine, const char *path, void (*report)(const GraphVersion *version));
