// SPDX-License-Identifier: Apache-2.0
// multipart/form-data (RFC 7578) in memory. Strict: CRLF line ends, a name on every part, no name
// twice, nothing before the first or after the last delimiter, a complete closing delimiter.
#pragma once
#include "core/base/arena.h"
#include "core/base/span.h"

enum { MULTIPART_MAX_PARTS = 256, MULTIPART_MAX_HEADERS = 8192, MULTIPART_MAX_BOUNDARY = 70 };

typedef struct MultipartPart {
        const char *name;
        const char *filename;     // NULL if not given
        const char *content_type; // NULL if not given
        ByteSpan content;         // borrowed from the body
} MultipartPart;

typedef struct Multipart {
        MultipartPart *parts;
        uint32_t n_parts;
        Arena arena; // names
} Multipart;

// The boundary of a Content-Type header. *out_boundary is "" when the type is not
// multipart/form-data; STATUS_MALFORMED when it is and has no (good) boundary. `content_type` may
// be NULL.
Status multipart_boundary(const char *content_type, char out_boundary[MULTIPART_MAX_BOUNDARY + 1]);
// `body` is borrowed for as long as the parts are used. STATUS_MALFORMED or STATUS_TOO_LARGE.
Status multipart_read(ByteSpan body, const char *boundary, Multipart *out_multipart);
void multipart_deinit(Multipart *multipart);
const MultipartPart *multipart_find(const Multipart *multipart, const char *name); // NULL if absent
