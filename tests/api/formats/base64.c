// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>
#include "api/formats/base64.h"

Test(base64, encodes_and_decodes_the_vectors_of_the_rfc)
{
        static const struct {
                const char *plain, *encoded;
        } cases[] = { { "", "" },
                      { "f", "Zg==" },
                      { "fo", "Zm8=" },
                      { "foo", "Zm9v" },
                      { "foob", "Zm9vYg==" },
                      { "fooba", "Zm9vYmE=" },
                      { "foobar", "Zm9vYmFy" } };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                Text text = { 0 };
                uint8_t bytes[16];
                size_t n;
                base64_encode(cases[i].plain, strlen(cases[i].plain), &text);
                cr_expect_eq(text.n, strlen(cases[i].encoded));
                cr_expect(text.n == 0 || strcmp(text.data, cases[i].encoded) == 0, "%s", cases[i].plain);
                cr_assert_eq(base64_bytes(cases[i].encoded, strlen(cases[i].encoded), &n), STATUS_OK);
                cr_expect_eq(n, strlen(cases[i].plain));
                cr_assert_eq(base64_decode(cases[i].encoded, strlen(cases[i].encoded), bytes), STATUS_OK);
                cr_expect(memcmp(bytes, cases[i].plain, n) == 0);
                text_deinit(&text);
        }
}

Test(base64, round_trips_all_bytes_at_all_lengths)
{
        uint8_t bytes[256], back[256];
        for (int i = 0; i < 256; i++)
                bytes[i] = (uint8_t)(i * 37 + 11);
        for (size_t n = 0; n <= 256; n++) {
                Text text = { 0 };
                size_t n_back;
                base64_encode(bytes, n, &text);
                cr_assert_eq(base64_bytes(text.data, text.n, &n_back), STATUS_OK);
                cr_assert_eq(n_back, n);
                cr_assert_eq(base64_decode(text.data, text.n, back), STATUS_OK);
                cr_assert(memcmp(bytes, back, n) == 0);
                text_deinit(&text);
        }
}

Test(base64, refuses_everything_that_is_not_strict)
{
        static const struct {
                const char *text, *word;
        } cases[] = { { "Zg", "multiple of 4" },     { "Zg=", "multiple of 4" }, { "=", "multiple of 4" },
                      { "Zm9v\n", "multiple of 4" }, { "Zm 9v===", "0x20" },     { "====", "0x3d" },
                      { "Zg==Zg==", "0x3d" },        { "Zm9-", "'-'" },          { "Zm9_", "'_'" },
                      { "Zh==", "stray" },           { "Zm9=", "stray" },        { "Z===", "0x3d" },
                      { "\xc3\xa9Zm", "0xc3" },      { "Zm\t9v=Zm", "0x09" } };
        uint8_t out[64];
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                cr_expect_eq(base64_decode(cases[i].text, strlen(cases[i].text), out), STATUS_MALFORMED, "%s",
                             cases[i].text);
                cr_expect(strstr(failure_current()->message, cases[i].word) != NULL, "%s: %s", cases[i].text,
                          failure_current()->message);
        }
}
