// SPDX-License-Identifier: Apache-2.0
// W3C Trace Context: the caller's trace, so that log lines and profiles can be found from it.
#pragma once
#include "core/engine/engine.h"

// Fills trace_id, parent_id and sampled from a traceparent header. False, and nothing is written,
// if it is malformed (then it must be ignored).
bool trace_parse(const char *header, TraceIds *out_trace);
