// SPDX-License-Identifier: Apache-2.0
// What the system knows about this process, for /metrics.
#pragma once
#include "api/routes/metrics.h"

// Reads a few files of /proc; no disk. -1 for unknown values.
void process_read(ProcessFacts *out_facts);
