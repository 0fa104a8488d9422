// SPDX-License-Identifier: Apache-2.0
// Measured with zlib 1.2.13, processor time of one core (tests/bench/gzip_levels.py). Printed
// float32 numbers: Huffman codes alone leave 0.49 at 171 MB/s, level 1 leaves 0.48 at 101 MB/s,
// level 6 0.43 at 13 MB/s, because digits hardly repeat. Names repeat: of a profile, level 1 leaves
// 0.14 at 287 MB/s, level 6 0.12 at 110 MB/s. So replies of runs get Huffman codes, everything else
// level 1.
#include "api/formats/gzip.h"
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include "core/base/limits.h"

enum { PIECE_BYTES = 1 << 17, ROOM_BYTES = 1 << 16, GZIP_FORMAT = 16 + 15, MEMORY_LEVEL = 8 };

// An ETag of a reply to another method is the graph's, not the reply's.
static bool may_vary(const ApiCall *call, const ApiReply *reply)
{
        const char *type = reply->content_type;
        bool suits =
                type != NULL && (strcmp(type, "application/json") == 0 || strncmp(type, "text/", 5) == 0);
        // clients of the Open Inference Protocol take packed results only
        bool route = route_is(call->route, KIND_RUN) ||
                     (call->route != NULL && strcmp(call->route->method, "GET") == 0 &&
                      !route_has(call->route, AS_OIP));
        return suits && route && limits.gzip_from > 0 && reply->n_pieces == 0 &&
               reply->body.n >= (size_t)limits.gzip_from;
}

// Packs one piece of the body; the last one ends the stream. False: out of memory, or not smaller.
static bool pack_piece(z_stream *stream, bool last, size_t most, Text *out)
{
        do {
                char *room = text_reserve(out, ROOM_BYTES);
                if (room == NULL)
                        return false;
                stream->next_out = (Bytef *)room;
                stream->avail_out = ROOM_BYTES;
                deflate(stream, last ? Z_FINISH : Z_NO_FLUSH);
                out->n += ROOM_BYTES - stream->avail_out;
        } while (stream->avail_out == 0 && out->n <= most);
        return out->n <= most;
}

static Status pack(z_stream *stream, const RunContext *ctx, const Text *body, Text *out, bool *out_packed)
{
        size_t most = body->n - body->n / 10; // a tenth should be gained
        bool packed = true;
        for (size_t at = 0; at < body->n && packed; at += PIECE_BYTES) {
                size_t n = MIN((size_t)PIECE_BYTES, body->n - at);
                TRY(run_poll(ctx));
                stream->next_in = (Bytef *)(uintptr_t)(body->data + at);
                stream->avail_in = (uInt)n;
                packed = pack_piece(stream, at + n == body->n, most, out);
        }
        *out_packed = packed;
        return STATUS_OK;
}

// "id" becomes "id-gzip".
static void mark_tag(ApiReply *reply)
{
        for (uint32_t i = 0; i < reply->n_headers; i++) {
                char *value = reply->headers[i].value;
                size_t n = strlen(value);
                if (strcmp(reply->headers[i].name, "ETag") == 0 && n > 0 && value[n - 1] == '"')
                        snprintf(value + n - 1, sizeof(reply->headers[i].value) - n + 1, GZIP_TAG "\"");
        }
}

Status reply_gzip(const ApiCall *call, const RunContext *ctx, ApiReply *reply)
{
        z_stream stream = { .next_in = NULL };
        Text packed = { .n = 0 };
        bool packed_all = false;
        if (!may_vary(call, reply))
                return STATUS_OK;
        api_reply_header(reply, "Vary", "Accept-Encoding");
        if (!call->takes_gzip ||
            deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_FORMAT, MEMORY_LEVEL,
                         route_is(call->route, KIND_RUN) ? Z_HUFFMAN_ONLY : Z_DEFAULT_STRATEGY) != Z_OK)
                return STATUS_OK;
        Status status = pack(&stream, ctx, &reply->body, &packed, &packed_all);
        deflateEnd(&stream);
        if (status != STATUS_OK || !packed_all) {
                text_deinit(&packed);
                return status;
        }
        text_deinit(&reply->body);
        reply->body = packed;
        api_reply_header(reply, "Content-Encoding", "gzip");
        mark_tag(reply);
        return STATUS_OK;
}
