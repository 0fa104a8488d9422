// SPDX-License-Identifier: Apache-2.0
// Replies with Content-Encoding: gzip.
#pragma once
#include "api/call.h"
#include "core/kernels/run_context.h"

// Packs a JSON or text reply of limits.gzip_from bytes or more if the client accepts gzip, and adds
// Vary where it might. Other replies are unchanged. The reply's strong ETag gets GZIP_TAG at its
// end, because its bytes differ. Not for the loop thread. STATUS_CANCELLED, STATUS_DEADLINE.
Status reply_gzip(const ApiCall *call, const RunContext *ctx, ApiReply *reply);

#define GZIP_TAG "-gzip"
