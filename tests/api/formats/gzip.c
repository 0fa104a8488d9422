// SPDX-License-Identifier: Apache-2.0
#include "api/formats/gzip.h"
#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>
#include "core/base/limits.h"

static void fill(ApiReply *reply, size_t n, bool noise)
{
        uint64_t state = 88172645463325252u;
        reply->status = 200;
        reply->content_type = "application/json";
        for (size_t i = 0; i < n; i++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                text_add_char(&reply->body, noise ? (char)state : (char)('0' + state % 10));
        }
        api_reply_header(reply, "ETag", "\"abc\"");
}

static size_t inflated(const ApiReply *reply, char *out, size_t room)
{
        z_stream stream = { .next_in = (Bytef *)reply->body.data, .avail_in = (uInt)reply->body.n };
        cr_assert_eq(inflateInit2(&stream, 16 + 15), Z_OK);
        stream.next_out = (Bytef *)out;
        stream.avail_out = (uInt)room;
        cr_assert_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
        inflateEnd(&stream);
        return room - stream.avail_out;
}

Test(gzip, what_is_packed_is_the_body_at_every_size_around_the_pieces)
{
        static const size_t sizes[] = { 65536, 131071, 131072, 131073, 262144, 1000003 };
        static char out[2000000];
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                for (int run = 0; run < 2; run++) {
                        ApiCall call = { .route = &routes[run ? ROUTE_RUN : ROUTE_OPS], .takes_gzip = true };
                        ApiReply reply = { .status = 0 }, before = { .status = 0 };
                        RunContext ctx;
                        run_context_init(&ctx);
                        fill(&reply, sizes[i], false);
                        fill(&before, sizes[i], false);
                        cr_assert_eq(reply_gzip(&call, &ctx, &reply), STATUS_OK);
                        cr_assert_lt(reply.body.n, sizes[i]);
                        cr_assert_eq(inflated(&reply, out, sizeof(out)), sizes[i]);
                        cr_assert_eq(memcmp(out, before.body.data, sizes[i]), 0);
                        cr_assert_str_eq(reply.headers[0].value, "\"abc-gzip\"");
                        api_reply_deinit(&reply);
                        api_reply_deinit(&before);
                }
        }
}

Test(gzip, what_would_not_become_smaller_goes_as_it_is)
{
        ApiCall call = { .route = &routes[ROUTE_OPS], .takes_gzip = true };
        ApiReply reply = { .status = 0 };
        RunContext ctx;
        run_context_init(&ctx);
        fill(&reply, 500000, true);
        cr_assert_eq(reply_gzip(&call, &ctx, &reply), STATUS_OK);
        cr_assert_eq(reply.body.n, 500000);
        cr_assert_str_eq(reply.headers[0].value, "\"abc\"");
        cr_assert_eq(reply.n_headers, 2);
        cr_assert_str_eq(reply.headers[1].name, "Vary");
        api_reply_deinit(&reply);
}

Test(gzip, a_client_that_left_and_a_deadline_stop_it)
{
        ApiCall call = { .route = &routes[ROUTE_RUN], .takes_gzip = true };
        ApiReply reply = { .status = 0 };
        RunContext ctx;
        run_context_init(&ctx);
        fill(&reply, 500000, false);
        ctx.cancelled = 1;
        cr_assert_eq(reply_gzip(&call, &ctx, &reply), STATUS_CANCELLED);
        ctx.cancelled = 0;
        ctx.deadline_ns = 1;
        cr_assert_eq(reply_gzip(&call, &ctx, &reply), STATUS_DEADLINE);
        api_reply_deinit(&reply);
}
