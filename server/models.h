// SPDX-License-Identifier: Apache-2.0
// A folder of models, as model servers are given one (--models). It may hold
//     NAME.pt2, NAME.json                      a graph
//     NAME/FILE                                one graph (.pt2 or .json) and what belongs to it
//     NAME/VERSION/FILE                        the version of that number, from 1 on
// Beside a graph may lie weights.safetensors, labels.txt and image.json. The folder is looked at
// every few seconds; a file that is new or has changed is taken when it looks the same twice, so
// that one that is still being copied is left alone. A file that cannot be taken is reported, and
// what was taken before stays. Content that the name already has is not taken again. Nothing is
// removed. The highest number is the default. A number never gets other content, as clients may
// have pinned it: such a file is reported, and taken once that version was deleted.
#pragma once
#include <uv.h>
#include "core/engine/engine.h"
#include "server/workers.h"

typedef struct Models Models;

// Takes what the folder holds now. `name`: of a graph that lies in the folder itself, instead of
// its file's; "": none. STATUS_USAGE: there is no such folder. Files that cannot be taken are
// logged.
Status models_open(Engine *engine, const char *folder, const char *name, Models **out_models);
// From here on the workers look. Loop thread.
void models_start(Models *models, uv_loop_t *loop, Workers *workers);
void models_stop(Models *models); // NULL-safe; loop thread
// After the workers have stopped. NULL-safe, returns NULL.
Models *models_free(Models *models);
