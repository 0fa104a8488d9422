// SPDX-License-Identifier: Apache-2.0
// Small texts as files of their own: the text, closed by a line `checksum <sha256 of all bytes
// before it>`. Inside the store.
#pragma once
#include "core/store/store_private.h"

enum { CHECKED_MAX_BYTES = 16 << 20 };

// Durable when it returns OK; replaces an earlier one. Takes store->writing.
Status checked_write(Store *store, int folder, const char *name, ByteSpan text);
// Adds the text to *out. *out_found false: there is none, or it is damaged.
Status checked_read(int folder, const char *name, Text *out, bool *out_found);
