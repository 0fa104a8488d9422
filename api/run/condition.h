// SPDX-License-Identifier: Apache-2.0
// If-Match and If-None-Match (RFC 9110, 13.1) against a graph's ETag, which is condition_tag in
// quotes. A bare one is understood as well.
#pragma once
#include "api/call.h"
#include "core/store/store.h"

// What the version's tag is: its id; of one model that was chosen from an archive, one of its own.
HashHex condition_tag(const StoreVersion *version);

// `id`: of what is there now; NULL: nothing is. STATUS_PRECONDITION when the request must not go
// on.
Status condition_check(const ApiCall *call, const char *id);
// The same for GET: *out_suffix is NULL, or what stood behind the id in the tag of what the client
// has already (304): "" or GZIP_TAG.
Status condition_check_get(const ApiCall *call, const char *id, const char **out_suffix);
// For what is answered anew each time: only If-Match counts.
Status condition_check_info(const ApiCall *call, const char *id);
