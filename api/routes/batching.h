// SPDX-License-Identifier: Apache-2.0
// How a graph's runs are batched, as PATCH says it:
//     {"max_size": 8, "max_delay_us": 500, "preferred": [4, 8], "priority": 3}
#pragma once
#include "core/base/json.h"
#include "core/engine/batch.h"

// Reads the object. What it leaves out takes its default.
Status batching_read(JsonReader *reader, BatchPolicy *out_policy);
