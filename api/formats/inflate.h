// SPDX-License-Identifier: Apache-2.0
// Bodies that came with Content-Encoding: gzip or deflate.
#pragma once
#include "api/call.h"

// "gzip", "x-gzip", "deflate", "identity", or NULL for no header. STATUS_ENCODING for any other,
// lists included.
Status encoding_named(const char *text, CallEncoding *out_encoding);
// Replaces the body by its inflated content; a body without an encoding is unchanged.
// STATUS_TOO_LARGE before more than the route's limit, or more than limits.max_inflate_ratio times
// its bytes, has been made. STATUS_MALFORMED when the stream does not end where the body ends. On a
// worker.
Status call_inflate(ApiCall *call);
// Inflates gzip that the build made, to exactly `n_out` bytes. STATUS_INTERNAL.
Status inflate_whole(const uint8_t *gzip, size_t n, uint8_t *out, size_t n_out);
