// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/json.h"

// A reader that just entered the array `text`, which lies in a heap block of exactly its size.
static JsonReader *enter_row(const char *text, char **out_exact)
{
        size_t n = strlen(text);
        char *exact = malloc(n);
        memcpy(exact, text, n);
        JsonReader *reader = NULL;
        cr_assert_eq(json_open(exact, n, 8, 0, NULL, &reader), STATUS_OK);
        cr_assert_eq(json_enter_array(reader), STATUS_OK);
        *out_exact = exact;
        return reader;
}

Test(json_row, reads_numbers_and_the_three_words_up_to_the_end)
{
        _cleanup_(freep) char *exact = NULL;
        _cleanup_(json_closep) JsonReader *reader =
                enter_row("[ 1, -0.25 ,1e2,\"NaN\",\"Infinity\", \"-Infinity\" , -0]", &exact);
        float row[16];
        size_t n;
        JsonRow state;
        cr_assert_eq(json_read_f32_row(reader, row, 16, &n, &state), STATUS_OK);
        cr_assert_eq(state, JSON_ROW_END);
        cr_assert_eq(n, 7);
        cr_assert_eq(row[0], 1);
        cr_assert_eq(row[1], -0.25f);
        cr_assert_eq(row[2], 100);
        cr_assert(isnan(row[3]));
        cr_assert_eq(row[4], INFINITY);
        cr_assert_eq(row[5], -INFINITY);
        cr_assert(signbit(row[6]));
        cr_assert_eq(json_finish(reader), STATUS_OK);
}

Test(json_row, an_empty_array_ends_at_once)
{
        _cleanup_(freep) char *exact = NULL;
        _cleanup_(json_closep) JsonReader *reader = enter_row("[ ]", &exact);
        float row[1];
        size_t n = 9;
        JsonRow state;
        cr_assert_eq(json_read_f32_row(reader, row, 0, &n, &state), STATUS_OK);
        cr_assert_eq(n, 0);
        cr_assert_eq(state, JSON_ROW_END);
        cr_assert_eq(json_finish(reader), STATUS_OK);
}

Test(json_row, exactly_the_capacity_ends_and_one_more_is_full)
{
        float row[3];
        size_t n;
        JsonRow state;
        bool more;
        {
                _cleanup_(freep) char *exact = NULL;
                _cleanup_(json_closep) JsonReader *reader = enter_row("[1,2,3]", &exact);
                cr_assert_eq(json_read_f32_row(reader, row, 3, &n, &state), STATUS_OK);
                cr_assert_eq(state, JSON_ROW_END);
        }
        _cleanup_(freep) char *exact = NULL;
        _cleanup_(json_closep) JsonReader *reader = enter_row("[1,2,3,4]", &exact);
        cr_assert_eq(json_read_f32_row(reader, row, 3, &n, &state), STATUS_OK);
        cr_assert_eq(state, JSON_ROW_FULL);
        cr_assert_eq(n, 3);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert(more);
        cr_assert_eq(json_read_f32_row(reader, row, 3, &n, &state), STATUS_OK);
        cr_assert_eq(state, JSON_ROW_END);
        cr_assert_eq(n, 1);
        cr_assert_eq(row[0], 4);
}

Test(json_row, any_capacity_reads_the_same_numbers)
{
        Text text = { 0 };
        text_add_char(&text, '[');
        for (int i = 0; i < 60; i++)
                text_addf(&text, "%s%d.%0*d", i > 0 ? (i % 3 != 0 ? "," : " ,\n ") : "", i * 7, 1 + i % 20,
                          i);
        text_add_char(&text, ']');
        text_add_n(&text, "", 1);
        for (size_t capacity = 1; capacity <= 61; capacity++) {
                _cleanup_(freep) char *exact = NULL;
                _cleanup_(json_closep) JsonReader *reader = enter_row(text.data, &exact);
                JsonRow state = JSON_ROW_FULL;
                size_t total = 0;
                while (state != JSON_ROW_END) {
                        double row[61];
                        size_t n;
                        cr_assert_eq(json_read_f64_row(reader, row, capacity, &n, &state), STATUS_OK);
                        cr_assert_neq(state, JSON_ROW_OTHER);
                        for (size_t i = 0; i < n; i++, total++) {
                                char want[64];
                                snprintf(want, sizeof(want), "%zu.%0*zu", total * 7, (int)(1 + total % 20),
                                         total);
                                cr_assert_eq(row[i], strtod(want, NULL), "%s", want);
                        }
                }
                cr_assert_eq(total, 60);
                cr_assert_eq(json_finish(reader), STATUS_OK);
        }
        text_deinit(&text);
}

Test(json_row, nested_arrays_are_left_to_the_caller)
{
        _cleanup_(freep) char *exact = NULL;
        _cleanup_(json_closep) JsonReader *reader = enter_row("[[1,2],[3,4.5] , 6]", &exact);
        float row[8];
        size_t n;
        JsonRow state;
        float want = 1;
        for (int i = 0; i < 2; i++) {
                cr_assert_eq(json_read_f32_row(reader, row, 8, &n, &state), STATUS_OK);
                cr_assert_eq(n, 0);
                cr_assert_eq(state, JSON_ROW_OTHER);
                cr_assert_eq(json_peek(reader), JSON_ARRAY);
                cr_assert_eq(json_enter_array(reader), STATUS_OK);
                cr_assert_eq(json_read_f32_row(reader, row, 8, &n, &state), STATUS_OK);
                cr_assert_eq(state, JSON_ROW_END);
                cr_assert_eq(n, 2);
                cr_assert_eq(row[0], want);
                want += 2;
        }
        cr_assert_eq(row[1], 4.5f);
        cr_assert_eq(json_read_f32_row(reader, row, 8, &n, &state), STATUS_OK);
        cr_assert_eq(state, JSON_ROW_END);
        cr_assert_eq(row[0], 6);
        cr_assert_eq(json_finish(reader), STATUS_OK);
}

Test(json_row, what_is_no_number_is_left_to_the_caller)
{
        static const struct {
                const char *text;
                JsonType type;
        } cases[] = { { "[1, true]", JSON_TRUE },
                      { "[1, null]", JSON_NULL },
                      { "[1, \"nan\"]", JSON_STRING },
                      { "[1, \"-NaN\"]", JSON_STRING },
                      { "[1, {}]", JSON_OBJECT } };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                _cleanup_(freep) char *exact = NULL;
                _cleanup_(json_closep) JsonReader *reader = enter_row(cases[i].text, &exact);
                float row[4];
                size_t n;
                JsonRow state;
                bool more;
                cr_assert_eq(json_read_f32_row(reader, row, 4, &n, &state), STATUS_OK);
                cr_assert_eq(n, 1);
                cr_assert_eq(state, JSON_ROW_OTHER);
                cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
                cr_assert(more);
                cr_assert_eq(json_peek(reader), cases[i].type);
                cr_assert_eq(json_skip(reader), STATUS_OK);
                cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
                cr_assert_not(more);
        }
}

// The bad item stands near the end of a short text, and again before a long tail, where the quick
// loop meets it.
static void expect_bad_row(const char *item, Status want, const char *message)
{
        for (int tail = 0; tail < 2; tail++) {
                Text text = { 0 };
                text_addf(&text, "[1,%s", item);
                if (tail != 0) {
                        text_add_char(&text, ',');
                        text_repeat(&text, ' ', 100);
                        text_add_char(&text, '1');
                }
                text_add_n(&text, "]", 2);
                _cleanup_(freep) char *exact = NULL;
                _cleanup_(json_closep) JsonReader *reader = enter_row(text.data, &exact);
                float row[8];
                size_t n;
                JsonRow state;
                Status status = json_read_f32_row(reader, row, 8, &n, &state);
                cr_assert_eq(status, want, "%s: %s", item, status_code(status));
                cr_assert_str_eq(failure_current()->message, message);
                text_deinit(&text);
        }
}

Test(json_row, malformed_numbers_are_refused_with_their_place)
{
        expect_bad_row("01", STATUS_MALFORMED, "line 1, column 4: a number has no leading zeros");
        expect_bad_row("-01.5", STATUS_MALFORMED, "line 1, column 4: a number has no leading zeros");
        expect_bad_row("1.", STATUS_MALFORMED,
                       "line 1, column 4: a number needs digits after its point and after its 'e'");
        expect_bad_row("1e", STATUS_MALFORMED,
                       "line 1, column 4: a number needs digits after its point and after its 'e'");
        expect_bad_row(".5", STATUS_MALFORMED,
                       "line 1, column 4: a number needs a digit before its point, as in 0.5");
        expect_bad_row("NaN", STATUS_MALFORMED,
                       "line 1, column 4: NaN is not a JSON number; write \"NaN\" as a string");
        expect_bad_row("1 2", STATUS_MALFORMED,
                       "line 1, column 6: expected ',' or ']', found '2'; items need commas between them "
                       "(json.dumps(x.tolist()) writes them)");
        expect_bad_row("1.2.3", STATUS_MALFORMED, "line 1, column 7: expected ',' or ']', found '.'");
        expect_bad_row("0x10", STATUS_MALFORMED, "line 1, column 5: expected ',' or ']', found 'x'");
        expect_bad_row("1-2", STATUS_MALFORMED, "line 1, column 5: expected ',' or ']', found '-'");
        expect_bad_row("12345678901234567890a", STATUS_MALFORMED,
                       "line 1, column 24: expected ',' or ']', found 'a'");
        expect_bad_row(",2", STATUS_MALFORMED, "line 1, column 4: expected a value, found ','");
}

Test(json_row, literals_beyond_the_type_are_refused)
{
        expect_bad_row("1e39", STATUS_VALUE,
                       "line 1, column 4: 1e39 is too large for float32; write \"Infinity\" as a string if "
                       "that is meant");
        expect_bad_row("-3.5e38", STATUS_VALUE,
                       "line 1, column 4: -3.5e38 is too large for float32; write \"Infinity\" as a string "
                       "if that is meant");
        _cleanup_(freep) char *exact = NULL;
        _cleanup_(json_closep) JsonReader *reader = enter_row("[1e39,-1e308,1e309]", &exact);
        double row[4];
        size_t n;
        JsonRow state;
        cr_assert_eq(json_read_f64_row(reader, row, 2, &n, &state), STATUS_OK);
        cr_assert_eq(row[1], -1e308);
        cr_assert_eq(json_read_f64_row(reader, row, 2, &n, &state), STATUS_VALUE);
        _cleanup_(freep) char *edge_exact = NULL;
        _cleanup_(json_closep) JsonReader *edge =
                enter_row("[3.4028235e38,3.4028235677973362e38]", &edge_exact);
        float floats[4];
        cr_assert_eq(json_read_f32_row(edge, floats, 4, &n, &state), STATUS_OK);
        cr_assert_eq(floats[1], 3.4028235e38f);
}

Test(json_row, trailing_commas_and_cut_texts_are_refused)
{
        static const char *const texts[] = { "[1,2,]", "[1,2,", "[1,2", "[1,",      "[",
                                             "[1,2.",  "[1,2e", "[1,-", "[1,\"NaN", "[1}" };
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                _cleanup_(freep) char *exact = NULL;
                _cleanup_(json_closep) JsonReader *reader = enter_row(texts[i], &exact);
                float row[8];
                size_t n = 0;
                JsonRow state = JSON_ROW_END;
                Status status = json_read_f32_row(reader, row, 8, &n, &state);
                if (status == STATUS_OK) {
                        cr_assert_eq(state, JSON_ROW_OTHER, "%s", texts[i]);
                        status = json_skip(reader);
                }
                cr_assert_eq(status, STATUS_MALFORMED, "%s", texts[i]);
        }
}

Test(json_row, integers_are_integers_and_nothing_else)
{
        _cleanup_(freep) char *exact = NULL;
        _cleanup_(json_closep) JsonReader *reader =
                enter_row("[0,-1,12345678,123456789012345,1234567890123456,9223372036854775807,-"
                          "9223372036854775808,1.0,1e3,9223372036854775808,\"NaN\",7]",
                          &exact);
        static const int64_t want[] = { 0,         -1,       12345678, 123456789012345, 1234567890123456,
                                        INT64_MAX, INT64_MIN };
        int64_t row[16];
        size_t n;
        JsonRow state;
        cr_assert_eq(json_read_i64_row(reader, row, 16, &n, &state), STATUS_OK);
        cr_assert_eq(n, ARRAY_LENGTH(want));
        cr_assert_arr_eq(row, want, sizeof(want));
        for (int i = 0; i < 4; i++) {
                cr_assert_eq(state, JSON_ROW_OTHER);
                cr_assert_eq(json_skip(reader), STATUS_OK);
                cr_assert_eq(json_read_i64_row(reader, row, 16, &n, &state), STATUS_OK);
        }
        cr_assert_eq(state, JSON_ROW_END);
        cr_assert_eq(n, 1);
        cr_assert_eq(row[0], 7);
}

Test(json_row, integers_have_no_leading_zeros_either)
{
        _cleanup_(freep) char *exact = NULL;
        _cleanup_(json_closep) JsonReader *reader = enter_row(
                "[01,                                                                        2]", &exact);
        int64_t row[4];
        size_t n;
        JsonRow state;
        cr_assert_eq(json_read_i64_row(reader, row, 4, &n, &state), STATUS_MALFORMED);
}

Test(json_row, rows_outside_of_an_array_are_our_failure)
{
        JsonReader *reader = NULL;
        cr_assert_eq(json_open("1", 1, 8, 0, NULL, &reader), STATUS_OK);
        float row[1];
        size_t n;
        JsonRow state;
        cr_assert_eq(json_read_f32_row(reader, row, 1, &n, &state), STATUS_INTERNAL);
        cr_assert_eq(json_read_f32_row(reader, row, 0, &n, &state), STATUS_INTERNAL);
        json_close(reader);
}

static uint64_t random_state = 0x853c49e6748fea9bu;

static uint64_t random_bits(void)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state * 0x2545f4914f6cdd1du;
}

// One number in one of the shapes that clients send.
static int write_number(char *out)
{
        double unit = (double)(random_bits() >> 11) * 0x1p-53;
        float single;
        uint32_t bits = (uint32_t)random_bits() & 0xbfffffff;
        memcpy(&single, &bits, sizeof(single));
        switch (random_bits() % 8) {
        case 0:
                return sprintf(out, "%.*f", (int)(random_bits() % 24), unit * 10000);
        case 1:
                return sprintf(out, "%.9g", (double)single);
        case 2:
                return sprintf(out, "%.17g", (double)single);
        case 3:
                return sprintf(out, "%d", (int)(random_bits() % 512) - 256);
        case 4:
                return sprintf(out, "%.17g", -unit);
        case 5:
                return (int)number_print_f32(single, out);
        case 6:
                return sprintf(out, "%.*e", (int)(random_bits() % 20), unit);
        default:
                return sprintf(out, "%.6f", unit);
        }
}

Test(json_row, random_rows_read_like_a_cast_of_strtod)
{
        enum { N = 200000 };
        Text text = { 0 };
        float *want = malloc(N * sizeof(*want)), *got = malloc(N * sizeof(*got));
        text_add_char(&text, '[');
        for (int i = 0; i < N; i++) {
                char number[512];
                int n = write_number(number);
                number[n] = '\0';
                want[i] = (float)strtod(number, NULL);
                if (i > 0)
                        text_add(&text, random_bits() % 4 == 0 ? " , " : ",");
                text_add_n(&text, number, (size_t)n);
        }
        text_add_char(&text, ']');
        JsonReader *reader = NULL;
        cr_assert_eq(json_open(text.data, text.n, 8, 0, NULL, &reader), STATUS_OK);
        cr_assert_eq(json_enter_array(reader), STATUS_OK);
        size_t n;
        JsonRow state;
        cr_assert_eq(json_read_f32_row(reader, got, N, &n, &state), STATUS_OK, "%s",
                     failure_current()->message);
        cr_assert_eq(n, N);
        cr_assert_eq(state, JSON_ROW_END);
        cr_assert_arr_eq(got, want, N * sizeof(*want));
        json_close(reader);
        text_deinit(&text);
        free(want);
        free(got);
}
