// SPDX-License-Identifier: Apache-2.0
// If-Match and If-None-Match (RFC 9110, 13.1) against a graph's ETag, which is condition_tag in
// quotes. A tag without quotes is accepted, too.
#pragma once
#include "api/call.h"
#include "core/store/store.h"

// The version's tag: its id, or a tag of its own for one model chosen from an archive.
HashHex condition_tag(const StoreVersion *version);

// `id`: the tag of the current version; NULL: there is none. STATUS_PRECONDITION when the request
// must not go on.
Status condition_check(const ApiCall *call, const char *id);
// The same for GET. *out_suffix is NULL, or (304: the client's copy is current) the suffix of the
// tag that the client sent: "" or GZIP_TAG.
Status condition_check_get(const ApiCall *call, const char *id, const char **out_suffix);
// For replies that are computed anew each time: only If-Match counts.
Status condition_check_info(const ApiCall *call, const char *id);
