// SPDX-License-Identifier: Apache-2.0
// SHA-256 (nettle) for content ids.
#pragma once
#include <nettle/sha2.h>
#include "core/base/memory.h"

enum { HASH_HEX_BYTES = 65 };
typedef struct Sha256 {
        struct sha256_ctx context;
} Sha256;
typedef struct HashHex {
        char hex[HASH_HEX_BYTES];
} HashHex; // lower-case, NUL-terminated

void sha256_start(Sha256 *sha);
void sha256_add(Sha256 *sha, const void *bytes, size_t n);
HashHex sha256_finish(Sha256 *sha);
HashHex sha256_of(const void *bytes, size_t n);
HashHex sha256_joined(const HashHex *digest, const char *text); // of its digits, then the text
