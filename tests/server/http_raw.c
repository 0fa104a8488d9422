// SPDX-License-Identifier: Apache-2.0
#include "server/http_raw.h"
#include <criterion/criterion.h>
#include <string.h>

static const char sound[] =
        "\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n"
        "POST /b HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 3\r\n\r\nabc"
        "POST /c HTTP/1.1\r\nhost:x\r\nTransfer-Encoding: chunked\r\n\r\n3;q=\"1\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
        "GET /d HTTP/1.0\r\nHost: x\r\n\r\n";

static const char *const refused[] = {
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\n",
        "GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000001\r\nx\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\rb\r\nHost: x\r\n\r\n",
        "G\tT / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
        "\r\n\r\n\r\n\r\n",
};

// Feeds `n` bytes in pieces of `step`; the number of sound bytes.
static size_t feed(RawReader *raw, const char *text, size_t n, size_t step)
{
        size_t done = 0;
        int64_t start;
        raw_init(raw);
        while (done < n && raw->state != RAW_BAD)
                done += raw_read(raw, (const uint8_t *)text + done, n - done < step ? n - done : step, &start);
        return done;
}

Test(http_raw, sound_requests_are_counted_however_they_come)
{
        for (size_t step = 1; step < sizeof(sound); step++) {
                RawReader raw;
                cr_assert_eq(feed(&raw, sound, sizeof(sound) - 1, step), sizeof(sound) - 1);
                cr_assert_eq(raw.state, RAW_START);
                cr_assert_eq(raw.n_heads, 4);
                cr_assert_eq(raw.n_requests, 4);
        }
}

Test(http_raw, what_is_refused_is_refused_at_the_same_byte_however_it_comes)
{
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
                RawReader raw;
                size_t n = strlen(refused[i]), at = feed(&raw, refused[i], n, n);
                cr_assert_eq(raw.state, RAW_BAD, "%s", refused[i]);
                cr_assert_eq(raw.n_requests, 0);
                cr_assert_not_null(raw.words);
                for (size_t step = 1; step < n; step++)
                        cr_assert_eq(feed(&raw, refused[i], n, step), at, "%s in pieces of %zu", refused[i], step);
        }
}

Test(http_raw, the_start_of_the_request_under_way_is_told)
{
        static const char two[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\nHost: x\r\n\r\n";
        RawReader raw;
        int64_t start;
        raw_init(&raw);
        cr_assert_eq(raw_read(&raw, (const uint8_t *)two, sizeof(two) - 1, &start), 43);
        cr_assert_eq(start, 28);
        cr_assert_eq(raw.n_heads, 1);
        raw_init(&raw);
        raw_read(&raw, (const uint8_t *)two, 10, &start);
        cr_assert_eq(start, 0);
        raw_read(&raw, (const uint8_t *)two + 10, 10, &start);
        cr_assert_eq(start, -1);
}

Test(http_raw, every_prefix_of_a_sound_stream_is_borne)
{
        for (size_t n = 0; n < sizeof(sound) - 1; n++) {
                RawReader raw;
                cr_assert_eq(feed(&raw, sound, n, n + 1), n);
                cr_assert_eq(raw_in_head(&raw) && raw_in_body(&raw), false);
        }
}
