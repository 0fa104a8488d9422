// SPDX-License-Identifier: Apache-2.0
#include "server/http_raw.h"
#include <criterion/criterion.h>
#include <string.h>

#define EXTENSION ";q=\"1\";r"
static const char sound[] = "\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n"
                            "POST /b HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 3\r\n\r\nabc"
                            "POST /c HTTP/1.1\r\nhost:x\r\nTransfer-Encoding: chunked\r\n\r\n3" EXTENSION
                            "\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
                            "GET /d HTTP/1.0\r\nHost: x\r\n\r\n"
                            "GET /e HTTP/1.0\r\n\r\n";

static const char *const refused[] = {
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\n",
        "GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n",
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

// Feeds `n` bytes in pieces of `step`, and collects what is left of them; the number of sound
// bytes.
static char left[1024];

static size_t feed(RawReader *raw, const char *text, size_t n, size_t step)
{
        size_t n_left = 0;
        int64_t start;
        raw_init(raw);
        for (size_t at = 0; at < n && raw->state != RAW_BAD; at += step) {
                uint8_t piece[1024];
                size_t n_piece = n - at < step ? n - at : step;
                memcpy(piece, text + at, n_piece);
                size_t n_sound = raw_read(raw, piece, n_piece, &start);
                memcpy(left + n_left, piece, n_sound);
                n_left += n_sound;
        }
        left[n_left] = '\0';
        return n_left;
}

Test(http_raw, sound_requests_are_counted_however_they_come)
{
        for (size_t step = 1; step < sizeof(sound); step++) {
                RawReader raw;
                cr_assert_eq(feed(&raw, sound, sizeof(sound) - 1, step),
                             sizeof(sound) - 1 - strlen(EXTENSION));
                cr_assert_eq(raw.state, RAW_START);
                cr_assert_eq(raw.n_heads, 5);
                cr_assert_eq(raw.n_requests, 5);
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
                        cr_assert_eq(feed(&raw, refused[i], n, step), at, "%s in pieces of %zu", refused[i],
                                     step);
        }
}

Test(http_raw, extensions_of_chunks_are_taken_out_however_they_come)
{
#define CHUNKS(extension)                                                                                    \
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3" extension                        \
        "\r\n;b;\r\n00" extension "\r\n\r\nGET / "                                                           \
        "HTTP/1.1\r\n"
        static const char with[] = CHUNKS(";a=\"b\" ; c"), without[] = CHUNKS("");
        for (size_t step = 1; step < sizeof(with); step++) {
                RawReader raw;
                feed(&raw, with, sizeof(with) - 1, step);
                cr_assert_str_eq(left, without, "in pieces of %zu", step);
                cr_assert_eq(raw.n_requests, 1);
        }
}

Test(http_raw, the_start_of_the_request_under_way_is_told)
{
        uint8_t two[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\nHost: x\r\n\r\n";
        RawReader raw;
        int64_t start;
        raw_init(&raw);
        cr_assert_eq(raw_read(&raw, two, sizeof(two) - 1, &start), 43);
        cr_assert_eq(start, 28);
        cr_assert_eq(raw.n_heads, 1);
        raw_init(&raw);
        raw_read(&raw, two, 10, &start);
        cr_assert_eq(start, 0);
        raw_read(&raw, two + 10, 10, &start);
        cr_assert_eq(start, -1);
}

Test(http_raw, every_prefix_of_a_sound_stream_is_borne)
{
        for (size_t n = 0; n < sizeof(sound) - 1; n++) {
                RawReader raw;
                feed(&raw, sound, n, n + 1);
                cr_assert_neq(raw.state, RAW_BAD);
                cr_assert_eq(raw_in_head(&raw) && raw_in_body(&raw), false);
        }
}

Test(http_raw, digits_of_a_length_are_found_where_the_bytes_hold_all_of_them)
{
        static const char head[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0070\r\nX: 12\r\n\r\nbody";
        const size_t at = (size_t)(strstr(head, "0070") - head), n = sizeof(head) - 1;
        for (size_t cut = 0; cut <= n; cut++) {
                uint8_t bytes[sizeof(head)];
                RawReader raw;
                int64_t start;
                raw_init(&raw);
                memcpy(bytes, head, sizeof(head));
                raw_read(&raw, bytes, cut, &start);
                cr_assert_eq(raw.n_length_digits, cut > at + 4 ? 4 : 0, "cut at %zu", cut);
                cr_assert(raw.n_length_digits == 0 || raw.length_at == at);
                raw_read(&raw, bytes + cut, n - cut, &start);
                cr_assert_eq(raw.n_length_digits, cut <= at ? 4 : 0, "cut at %zu", cut);
                cr_assert(raw.n_length_digits == 0 || raw.length_at == at - cut);
                cr_assert_eq(raw.length, 70);
                cr_assert_eq(raw.left, 66);
        }
}
