// SPDX-License-Identifier: Apache-2.0
// One zlib stream, checksum included. The output grows by doubling up to its bound. zlib never gets
// more room than that, so a compression bomb is never expanded.
#include "api/formats/inflate.h"
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include "core/base/limits.h"
#include "core/base/memory.h"

enum { FIRST_BYTES = 1 << 16, GZIP_ONLY = 16 };

Status encoding_named(const char *text, CallEncoding *out_encoding)
{
        static const struct {
                const char *name;
                CallEncoding encoding;
        } rows[] = {
                { "identity", CALL_PLAIN },
                { "gzip", CALL_GZIP },
                { "x-gzip", CALL_GZIP },
                { "deflate", CALL_DEFLATE },
        };
        if (text == NULL) {
                *out_encoding = CALL_PLAIN;
                return STATUS_OK;
        }
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                if (strcasecmp(text, rows[i].name) == 0) {
                        *out_encoding = rows[i].encoding;
                        return STATUS_OK;
                }
        return fail(STATUS_ENCODING,
                    "this Content-Encoding is not known; send the body as it is, or with gzip or deflate");
}

static size_t limit_of(RouteId route, const char **out_limit)
{
        switch (route) {
        case ROUTE_GRAPH_PUT:
        case ROUTE_GRAPH_POST:
                *out_limit = limits.max_upload < limits.max_upload_in_memory ? "--max-upload"
                                                                             : "--max-upload-in-memory";
                // what is inflated is held in memory
                return (size_t)MIN(limits.max_upload, limits.max_upload_in_memory);
        case ROUTE_RUN:
        case ROUTE_VERSION_RUN:
        case ROUTE_RUN_INLINE:
                *out_limit = "--max-run-body";
                return (size_t)limits.max_run_body;
        default:
                *out_limit = "max_envelope in GET /v1";
                return (size_t)limits.max_envelope;
        }
}

static Status grow(uint8_t **bytes, size_t *capacity, size_t n, size_t most)
{
        size_t wish = (MIN(*capacity * 2, most) + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN;
        uint8_t *larger = aligned_alloc(STORAGE_ALIGN, wish);
        if (larger == NULL)
                return fail_memory();
        memcpy(larger, *bytes, n);
        free(*bytes);
        *bytes = larger;
        *capacity = wish;
        return STATUS_OK;
}

// Runs `stream` over its whole input. `most` bounds the output; `limit` names where it comes from.
static Status inflate_all(z_stream *stream, size_t most, const char *limit, uint8_t **bytes, size_t *out_n)
{
        size_t capacity = FIRST_BYTES, n = 0;
        for (;;) {
                size_t room = MIN(MIN(capacity, most + 1) - n, (size_t)UINT32_MAX / 2);
                stream->next_out = *bytes + n;
                stream->avail_out = (uInt)room;
                int code = inflate(stream, Z_NO_FLUSH);
                n += room - stream->avail_out;
                if (n > most)
                        return fail(STATUS_TOO_LARGE,
                                    "the body grows beyond %zu bytes when it is inflated (%s; and at most "
                                    "%lld times what was sent: "
                                    "max_inflate_ratio in GET /v1)",
                                    most, limit, (long long)limits.max_inflate_ratio);
                if (code == Z_STREAM_END)
                        break;
                if (code == Z_MEM_ERROR)
                        return fail_memory();
                if (code != Z_OK || (stream->avail_in == 0 && stream->avail_out > 0))
                        return fail(STATUS_MALFORMED,
                                    "the body is not what its Content-Encoding says, or ends too early");
                if (n == capacity)
                        TRY(grow(bytes, &capacity, n, most + 1));
        }
        if (stream->avail_in > 0)
                return fail(STATUS_MALFORMED, "the body goes on behind the end of its Content-Encoding");
        *out_n = n;
        return STATUS_OK;
}

Status call_inflate(ApiCall *call)
{
        const char *limit;
        size_t n = 0, grown, n_in = call->body == NULL ? 0 : call->body->n_bytes,
               most = limit_of(call->route, &limit);
        if (call->encoding == CALL_PLAIN || n_in == 0)
                return STATUS_OK;
        if (n_in > UINT32_MAX)
                return fail(STATUS_TOO_LARGE, "a body of 4 GiB and more is taken as it is only");
        if (!__builtin_mul_overflow(n_in, (size_t)limits.max_inflate_ratio, &grown))
                most = MIN(most, grown);
        z_stream stream = { .next_in = call->body->data, .avail_in = (uInt)n_in };
        uint8_t *bytes = aligned_alloc(STORAGE_ALIGN, FIRST_BYTES);
        if (bytes == NULL)
                return fail_memory();
        if (inflateInit2(&stream, MAX_WBITS + (call->encoding == CALL_GZIP ? GZIP_ONLY : 0)) != Z_OK) {
                free(bytes);
                return fail_memory();
        }
        Status status = inflate_all(&stream, most, limit, &bytes, &n);
        inflateEnd(&stream);
        Storage *body = NULL;
        if (status == STATUS_OK && n > 0)
                status = storage_adopt(bytes, n, true, NULL, NULL, &body);
        if (body == NULL)
                free(bytes);
        if (status != STATUS_OK)
                return status;
        storage_unref(call->body);
        call->body = body;
        call->body_digest.hex[0] = '\0';
        call->encoding = CALL_PLAIN;
        return STATUS_OK;
}
