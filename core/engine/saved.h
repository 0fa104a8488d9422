// SPDX-License-Identifier: Apache-2.0
// Saved passes: texts by name, kept in memory and, with a data folder, on disk. Any thread.
#pragma once
#include "core/engine/engine.h"

// Durable when it returns OK. *out_created false: it took the place of another. STATUS_TOO_LARGE
// over limits.max_passes.
Status engine_put_pass(Engine *engine, const char *name, ByteSpan text, bool *out_created);
// Adds the text to *out. STATUS_NOT_FOUND.
Status engine_get_pass(Engine *engine, const char *name, Text *out);
Status engine_delete_pass(Engine *engine, const char *name); // STATUS_NOT_FOUND
// Calls visit with each name, sorted. It must not call the engine.
Status engine_each_pass(Engine *engine, Status (*visit)(void *context, const char *name), void *context);
