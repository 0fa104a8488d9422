// SPDX-License-Identifier: Apache-2.0
// The manifest of one graph as key-value text, closed by a checksum line.
#pragma once
#include "core/base/text.h"
#include "core/store/store.h"

// STATUS_TOO_LARGE: more versions than manifest_read takes.
Status manifest_write(const StoreGraph *graph, Text *out);
// STATUS_DAMAGED with the reason. *out_graph->versions is from the heap: manifest_deinit. *out_old: it is one of FORMAT 1, where each part
// is its own document.
Status manifest_read(const char *text, size_t n, StoreGraph *out_graph, bool *out_old);
void manifest_deinit(StoreGraph *graph);
