// SPDX-License-Identifier: Apache-2.0
// How much disk the data folder takes, and how much is free. Loop thread.
#pragma once
#include <uv.h>
#include "core/base/status.h"

typedef struct Usage Usage;

// `folder` is copied; NULL: there is none.
Status usage_new(const char *folder, Usage **out_usage);
// Counts for the first time, and again when usage_read finds the count old.
void usage_start(Usage *usage, uv_loop_t *loop);
// The last count; negative: none has ended yet, or there is no folder.
void usage_read(Usage *usage, int64_t *out_bytes, int64_t *out_free_bytes);
// Before the loop can end: gives up a count under way. NULL: nothing to do.
void usage_stop(Usage *usage);
Usage *usage_free(Usage *usage);
