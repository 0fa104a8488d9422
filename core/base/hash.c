// SPDX-License-Identifier: Apache-2.0
// hash.c: SHA-256 by nettle, printed as hexadecimal.
#include "core/base/hash.h"
#include <string.h>

void sha256_start(Sha256 *sha)
{
        sha256_init(&sha->context);
}

void sha256_add(Sha256 *sha, const void *bytes, size_t n)
{
        if (n > 0)
                sha256_update(&sha->context, n, bytes);
}

HashHex sha256_finish(Sha256 *sha)
{
        static const char hex_digits[] = "0123456789abcdef";
        uint8_t digest[SHA256_DIGEST_SIZE];
        sha256_digest(&sha->context, sizeof(digest), digest);
        HashHex out;
        for (size_t i = 0; i < sizeof(digest); i++) {
                out.hex[2 * i] = hex_digits[digest[i] >> 4];
                out.hex[2 * i + 1] = hex_digits[digest[i] & 15];
        }
        out.hex[2 * sizeof(digest)] = '\0';
        return out;
}

HashHex sha256_of(const void *bytes, size_t n)
{
        Sha256 sha;
        sha256_start(&sha);
        sha256_add(&sha, bytes, n);
        return sha256_finish(&sha);
}

HashHex sha256_joined(const HashHex *digest, const char *text)
{
        Sha256 sha;
        sha256_start(&sha);
        sha256_add(&sha, digest->hex, HASH_HEX_BYTES - 1);
        sha256_add(&sha, text, strlen(text));
        return sha256_finish(&sha);
}
