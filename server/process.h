// SPDX-License-Identifier: Apache-2.0
// What the system says about this process, for /metrics.
#pragma once
#include "api/routes/metrics.h"

// Reads a few files of /proc; no disk. -1 for what cannot be known.
void process_read(ProcessFacts *out_facts);
