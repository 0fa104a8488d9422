// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/base/text.h"
#include "core/engine/engine.h"

// Adds nv_inference_* of the first METRICS_MAX_GRAPHS graphs, by name. Reads no disk.
Status oip_metrics_write(Engine *engine, Text *out);
