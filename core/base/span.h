// SPDX-License-Identifier: Apache-2.0
// Borrowed bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct ByteSpan {
        const uint8_t *data;
        size_t n;
} ByteSpan;
