// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/base/text.h"
#include "core/base/utf8.h"

// Under the address sanitizer an impossible size must fail as malloc does, not end the program.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
        return "allocator_may_return_null=1";
}

static Text text;

static void forget(void)
{
        text_deinit(&text);
}

TestSuite(text, .fini = forget);

Test(text, everything_added_stands_in_order_and_is_terminated)
{
        text_add(&text, "a=");
        text_add_int(&text, INT64_MIN);
        text_add_char(&text, ',');
        text_repeat(&text, '-', 3);
        text_addf(&text, "%s%d", "x", 5);
        text_add_n(&text, "yz!", 2);
        cr_assert_eq(text_status(&text), STATUS_OK);
        cr_assert_str_eq(text.data, "a=-9223372036854775808,---x5yz");
        cr_assert_eq(text.n, strlen(text.data));
}

Test(text, floats_are_json_also_where_json_has_no_number)
{
        text_add_f64(&text, 0.1);
        text_add_f32(&text, 0.1f);
        text_add_f64(&text, -INFINITY);
        text_add_f32(&text, INFINITY);
        text_add_f64(&text, NAN);
        cr_assert_str_eq(text.data, "0.10.1\"-Infinity\"\"Infinity\"\"NaN\"");
}

Test(text, long_formats_fit)
{
        char long_text[3000];
        memset(long_text, 'q', sizeof(long_text));
        long_text[sizeof(long_text) - 1] = '\0';
        text_addf(&text, "<%s>", long_text);
        cr_assert_eq(text.n, sizeof(long_text) + 1);
        cr_assert_eq(text.data[text.n - 1], '>');
        cr_assert_eq(strlen(text.data), text.n);
}

Test(text, take_hands_over_and_starts_anew)
{
        text_add(&text, "one");
        _cleanup_(freep) char *one = text_take(&text);
        cr_assert_str_eq(one, "one");
        cr_assert_null(text.data);
        _cleanup_(freep) char *empty = text_take(&text);
        cr_assert_str_eq(empty, "");
}

Test(text, reserve_gives_room_for_direct_writing)
{
        text_add(&text, "ab");
        char *to = text_reserve(&text, 1000);
        memset(to, 'c', 1000);
        text.n += 1000;
        text_add(&text, "d");
        cr_assert_eq(text.n, 1003);
        cr_assert_eq(text.data[1001], 'c');
}

Test(text, out_of_memory_sticks_and_nothing_more_is_added)
{
        text_add(&text, "kept");
        cr_assert_null(text_reserve(&text, SIZE_MAX / 2));
        text_add(&text, "lost");
        text_add_char(&text, 'c');
        text_add_json(&text, "j");
        text_addf(&text, "%d", 1);
        text_repeat(&text, 'x', 3);
        cr_assert_eq(text.n, 4);
        cr_assert_eq(text_status(&text), STATUS_NO_MEMORY);
        cr_assert_null(text_take(&text));
        cr_assert_eq(text_status(&text), STATUS_OK);
}

Test(text, a_size_that_overflows_is_out_of_memory)
{
        text_add(&text, "x");
        cr_assert_null(text_reserve(&text, SIZE_MAX));
        cr_assert_eq(text_status(&text), STATUS_NO_MEMORY);
}

Test(text, json_strings_are_escaped)
{
        text_add_json(&text, "a\"b\\c/\n\t\r\b\f\x01\x7f");
        cr_assert_str_eq(text.data, "\"a\\\"b\\\\c/\\n\\t\\r\\b\\f\\u0001\\u007f\"");
        forget();
        text_add_json_n(&text, "x\0y", 3);
        cr_assert_str_eq(text.data, "\"x\\u0000y\"");
}

Test(text, json_strings_keep_utf8_and_replace_what_is_none)
{
        text_add_json(&text, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
        cr_assert_str_eq(text.data, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
        forget();
        text_add_json(&text, "a\xff"
                             "b\xe2\x82");
        cr_assert_str_eq(text.data, "\"a\xef\xbf\xbd"
                                    "b\xef\xbf\xbd\xef\xbf\xbd\"");
}

// Decodes by arithmetic, independent of the table in utf8.h.
static bool is_character(const unsigned char *b, size_t n)
{
        uint32_t c;
        if (n == 1)
                return b[0] < 0x80;
        static const unsigned char mark[] = { 0, 0, 0xc0, 0xe0, 0xf0 }, mask[] = { 0, 0, 0x1f, 0x0f, 0x07 };
        if ((b[0] & ~mask[n] & 0xff) != mark[n])
                return false;
        c = b[0] & mask[n];
        for (size_t i = 1; i < n; i++) {
                if ((b[i] & 0xc0) != 0x80)
                        return false;
                c = c << 6 | (b[i] & 0x3f);
        }
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        return c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

Test(text, utf8_length_agrees_with_the_definition)
{
        for (uint32_t word = 0; word < 1u << 24; word += word < 1u << 16 ? 1 : 7) {
                unsigned char b[4] = { (unsigned char)(word >> 16), (unsigned char)(word >> 8),
                                       (unsigned char)word, 0x80 };
                if (word < 1u << 16)
                        memmove(b, b + 1, 3), b[2] = 0x80;
                for (size_t n = 1; n <= 4; n++) {
                        size_t want = 0;
                        for (size_t k = 1; k <= n; k++) {
                                if (is_character(b, k))
                                        want = k;
                        }
                        size_t got = utf8_length((const char *)b, (const char *)b + n);
                        if (got != want)
                                cr_assert_fail("%02x %02x %02x %02x of %zu: %zu, want %zu", b[0], b[1], b[2],
                                               b[3], n, got, want);
                }
        }
}
