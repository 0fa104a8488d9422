// SPDX-License-Identifier: Apache-2.0
// GET /metrics: Prometheus text format.
#pragma once
#include "api/call.h"

Status metrics_write(const ApiContext *context, Text *out);
