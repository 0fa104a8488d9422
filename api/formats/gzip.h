// SPDX-License-Identifier: Apache-2.0
// Replies with Content-Encoding: gzip.
#pragma once
#include "api/call.h"
#include "core/kernels/run_context.h"

// Makes a JSON or text reply of limits.gzip_from bytes or more smaller, if the client takes gzip,
// and says in Vary that it might; any other reply stays as it is. The reply's strong ETag gets
// GZIP_TAG at its end: other bytes, another tag. Not for the loop thread. STATUS_CANCELLED,
// STATUS_DEADLINE.
Status reply_gzip(const ApiCall *call, const RunContext *ctx, ApiReply *reply);

#define GZIP_TAG "-gzip"
