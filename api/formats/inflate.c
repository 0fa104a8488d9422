// SPDX-License-Identifier: Apache-2.0
// One zlib stream, checksum included. The output grows by doubling up to its bound. zlib never gets
// more room than that, so a compression bomb is never expanded.
#include "api/formats/inflate.h"
#include <stdio.h>
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

// The limit that holds for the call's body, in words: its flag, or where it is listed.
static size_t limit_of(const ApiCall *call, char out_words[64])
{
        const int64_t *limit = route_limit(call->route->body->inflated);
        const LimitRow *row = limit_row(limit);
        if (row->flag != NULL)
                snprintf(out_words, 64, "--%s", row->flag);
        else
                snprintf(out_words, 64, "%s in GET /v1", row->name);
        return (size_t)*limit;
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
        char limit[64];
        size_t n = 0, grown, n_in = call->body == NULL ? 0 : call->body->n_bytes;
        if (call->encoding == CALL_PLAIN || n_in == 0)
                return STATUS_OK;
        size_t most = limit_of(call, limit);
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

Status inflate_whole(const uint8_t *gzip, size_t n, uint8_t *out, size_t n_out)
{
        z_stream stream = { .next_in = (Bytef *)(uintptr_t)gzip,
                            .avail_in = (uInt)n,
                            .next_out = out,
                            .avail_out = (uInt)n_out };
        if (inflateInit2(&stream, MAX_WBITS + GZIP_ONLY) != Z_OK)
                return fail_memory();
        int code = inflate(&stream, Z_FINISH);
        inflateEnd(&stream);
        return code == Z_STREAM_END && stream.avail_out == 0
                       ? STATUS_OK
                       : fail(STATUS_INTERNAL, "an embedded file is damaged");
}
