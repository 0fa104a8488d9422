// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648, section 4), strict: padded, no white space, no stray bits.
#pragma once
#include "core/base/text.h"

// Bytes that `n` characters decode to; STATUS_MALFORMED when n is no multiple of 4.
Status base64_bytes(const char *text, size_t n, size_t *out_bytes);
// Decodes into `out`, which has room for base64_bytes. STATUS_MALFORMED names the first wrong
// character's position.
Status base64_decode(const char *text, size_t n, uint8_t *out);
void base64_encode(const void *bytes, size_t n, Text *out);
