// SPDX-License-Identifier: Apache-2.0
// What rules observed, as JSON.
#pragma once
#include "api/run/run.h"
#include "core/kernels/reduce/tensor_stats.h"

// `, "overrides": [{"matched": [...], "observed": [...]}]`, one object per rule of the run's graph.
// STATUS_TOO_LARGE over limits.max_observed_bytes, before any text is made of tensors.
Status observed_write(RunCall *run, Text *out);
// STATUS_NOT_ACCEPTABLE when rules observe nodes and the reply has no place for it.
Status observed_check_reply(const RunCall *run);
// Statistics as an object; what has no value is null.
void observed_write_stats(const TensorStats *stats, bool histogram, Text *out);
// After STATUS_HALTED: statistics of the culprit's result and inputs into the failure's details.
Status observed_add_details(const RunCall *run, Status status);
