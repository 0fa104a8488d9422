// SPDX-License-Identifier: Apache-2.0
// If-Match and If-None-Match (RFC 9110, 13.1) against a graph's ETag, which is its id in quotes. A bare id is understood as well.
#pragma once
#include "api/call.h"

// `id`: of what is there now; NULL: nothing is. STATUS_PRECONDITION when the request must not go on.
Status condition_check(const ApiCall *call, const char *id);
// The same for GET: *out_unchanged when the client has it already (304).
Status condition_check_get(const ApiCall *call, const char *id, bool *out_unchanged);
