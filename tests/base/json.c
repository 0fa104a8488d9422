// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/json.h"

static Arena arena;

static void begin(void)
{
        arena_init(&arena, 0);
}
static void end(void)
{
        arena_deinit(&arena);
}

TestSuite(json, .init = begin, .fini = end);

// Reads and checks the whole of one document by json_skip, from a heap block of exactly its size so
// that the address sanitizer guards its end.
static Status check_n(const char *text, size_t n, int max_depth, int64_t max_values)
{
        _cleanup_(freep) char *exact = malloc(n == 0 ? 1 : n);
        memcpy(exact, text, n);
        _cleanup_(json_closep) JsonReader *reader = NULL;
        TRY(json_open(exact, n, max_depth, max_values, &arena, &reader));
        TRY(json_skip(reader));
        return json_finish(reader);
}

static Status check(const char *text)
{
        return check_n(text, strlen(text), 32, 0);
}

static JsonReader *open_text(const char *text)
{
        JsonReader *reader = NULL;
        cr_assert_eq(json_open(text, strlen(text), 32, 0, &arena, &reader), STATUS_OK);
        return reader;
}

static void expect_failure(Status got, Status want, const char *message)
{
        cr_assert_eq(got, want, "status %s: %s", status_code(got), failure_current()->message);
        cr_assert_str_eq(failure_current()->message, message);
}

Test(json, reads_every_kind_of_value_in_order)
{
        const char *text =
                " { \"a\" : [ 1 , -2.5 , true , false , null , \"x\" ] , \"b\" : { } , \"c\" : [ ] } \n";
        _cleanup_(json_closep) JsonReader *reader = open_text(text);
        const char *key, *string;
        bool more, truth;
        int64_t whole;
        double value;
        NumberKind kind;
        size_t n;
        cr_assert_eq(json_peek(reader), JSON_OBJECT);
        cr_assert_eq(json_enter_object(reader), STATUS_OK);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert(more);
        cr_assert_str_eq(key, "a");
        cr_assert_eq(json_peek(reader), JSON_ARRAY);
        cr_assert_eq(json_enter_array(reader), STATUS_OK);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_eq(json_peek(reader), JSON_NUMBER);
        cr_assert_eq(json_read_int(reader, &whole), STATUS_OK);
        cr_assert_eq(whole, 1);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_eq(json_read_number(reader, &kind, &whole, &value), STATUS_OK);
        cr_assert_eq(kind, NUMBER_FLOAT);
        cr_assert_eq(whole, 1);
        cr_assert_eq(value, -2.5);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_eq(json_peek(reader), JSON_TRUE);
        cr_assert_eq(json_read_bool(reader, &truth), STATUS_OK);
        cr_assert(truth);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_eq(json_peek(reader), JSON_FALSE);
        cr_assert_eq(json_read_bool(reader, &truth), STATUS_OK);
        cr_assert_not(truth);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_eq(json_peek(reader), JSON_NULL);
        cr_assert_eq(json_read_null(reader), STATUS_OK);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_eq(json_peek(reader), JSON_STRING);
        cr_assert_eq(json_read_string(reader, &string, &n), STATUS_OK);
        cr_assert_str_eq(string, "x");
        cr_assert_eq(n, 1);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_not(more);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_str_eq(key, "b");
        cr_assert_eq(json_enter_object(reader), STATUS_OK);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_not(more);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_str_eq(key, "c");
        cr_assert_eq(json_skip(reader), STATUS_OK);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_not(more);
        cr_assert_eq(json_finish(reader), STATUS_OK);
        cr_assert_eq(json_peek(reader), JSON_END);
}

Test(json, next_item_may_be_asked_twice)
{
        _cleanup_(json_closep) JsonReader *reader = open_text("[1,2]");
        bool more;
        int64_t whole;
        cr_assert_eq(json_enter_array(reader), STATUS_OK);
        for (int i = 1; i <= 2; i++) {
                cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
                cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
                cr_assert(more);
                cr_assert_eq(json_read_int(reader, &whole), STATUS_OK);
                cr_assert_eq(whole, i);
        }
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_not(more);
}

Test(json, escapes_are_decoded)
{
        _cleanup_(json_closep) JsonReader *reader = open_text(
                "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\uD83D\\uDE00z\"");
        const char *string;
        size_t n;
        cr_assert_eq(json_read_string(reader, &string, &n), STATUS_OK);
        cr_assert_str_eq(string, "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80z");
        cr_assert_eq(n, strlen(string));
        cr_assert_eq(json_finish(reader), STATUS_OK);
}

Test(json, strings_of_any_length_keep_their_bytes)
{
        for (size_t n = 0; n < 100; n++) {
                char text[128], want[128];
                for (size_t special = 0; special <= n; special++) {
                        memset(want, 'a' + (int)(n % 26), n);
                        want[n] = '\0';
                        memcpy(text + 1, want, n);
                        text[0] = text[n + 1] = '"';
                        if (special < n)
                                text[1 + special] = '\x1f';
                        text[n + 2] = '\0';
                        _cleanup_(json_closep) JsonReader *reader = open_text(text);
                        const char *got;
                        Status status = json_read_string(reader, &got, NULL);
                        if (special < n) {
                                cr_assert_eq(status, STATUS_MALFORMED);
                        } else {
                                cr_assert_eq(status, STATUS_OK);
                                cr_assert_str_eq(got, want);
                        }
                }
        }
}

typedef struct BadCase {
        const char *text, *message;
} BadCase;

Test(json, malformed_documents_are_refused_with_place_and_cure)
{
        static const BadCase cases[] = {
                { "", "line 1, column 1: expected a value, but the text ends here" },
                { "  \n ", "line 2, column 2: expected a value, but the text ends here" },
                { "[1,]", "line 1, column 4: expected a value, found ']'; remove the comma before it" },
                { "[,1]", "line 1, column 2: expected a value, found ','" },
                { "[1 2]", "line 1, column 4: expected ',' or ']', found '2'; items need commas between them "
                           "(json.dumps(x.tolist()) writes them)" },
                { "[1", "line 1, column 3: expected ',' or ']', but the text ends here" },
                { "[1,", "line 1, column 4: expected a value, but the text ends here" },
                { "[}", "line 1, column 2: expected a value, found '}'; remove the comma before it" },
                { "{\"a\":1,}", "line 1, column 8: expected a key, found '}'; remove the comma before it" },
                { "{a:1}", "line 1, column 2: expected a key in double quotes or '}', found 'a'; a shell "
                           "takes quotes away unless the body stands "
                           "in single ones: -d '{\"inputs\": ...}'" },
                { "{'a':1}", "line 1, column 2: keys are written in double quotes: json.dumps(body) does, "
                             "str(body) does not" },
                { "{\"a\":1, /* b */}", "line 1, column 9: comments are not part of JSON; remove them" },
                { "{\"a\":1 // b\n}", "line 1, column 8: comments are not part of JSON; remove them" },
                { "[[1] [2]]", "line 1, column 6: expected ',' or ']', found '['; items need commas between "
                               "them (json.dumps(x.tolist()) writes them)" },
                { "array([1.])", "line 1, column 1: this is how Python prints an array; "
                                 "json.dumps(x.tolist()) writes it as JSON" },
                { "@body.json", "line 1, column 1: this begins like a file's name; curl reads files with "
                                "--data-binary @body.json" },
                { "{\"a\" 1}", "line 1, column 6: expected ':', found '1'" },
                { "{\"a\":}", "line 1, column 6: expected a value, found '}'; remove the comma before it" },
                { "{\"a\":1 \"b\":2}", "line 1, column 8: expected ',' or '}', found '\"'" },
                { "{\n  \"a\": 1,\n  \"a\": 2\n}",
                  "line 3, column 3: duplicate key \"a\"; each key may stand once in an object" },
                { "{\"a\":1,\"\\u0061\":2}",
                  "line 1, column 8: duplicate key \"a\"; each key may stand once in an object" },
                { "1 2", "line 1, column 3: expected the end of the text, found '2'" },
                { "{}]", "line 1, column 3: expected the end of the text, found ']'" },
                { "NaN", "line 1, column 1: NaN is not a JSON number; write \"NaN\" as a string" },
                { "[1, Infinity]",
                  "line 1, column 5: Infinity is not a JSON number; write \"Infinity\" as a string" },
                { "[-Infinity]",
                  "line 1, column 2: -Infinity is not a JSON number; write \"-Infinity\" as a string" },
                { "[-inf]", "line 1, column 2: -inf is not a JSON number; write \"-Infinity\" as a string" },
                { "True", "line 1, column 1: JSON writes true, not True" },
                { "[None]", "line 1, column 2: JSON writes null, not None" },
                { "['a']", "line 1, column 2: strings are written in double quotes" },
                { "[1, // one\n2]", "line 1, column 5: comments are not part of JSON; remove them" },
                { "(1, 2)", "line 1, column 1: JSON has no tuples; write a list in square brackets" },
                { "01", "line 1, column 1: a number has no leading zeros" },
                { "-01", "line 1, column 1: a number has no leading zeros" },
                { "1.", "line 1, column 1: a number needs digits after its point and after its 'e'" },
                { "1e+", "line 1, column 1: a number needs digits after its point and after its 'e'" },
                { ".5", "line 1, column 1: a number needs a digit before its point, as in 0.5" },
                { "+1", "line 1, column 1: a number has no leading '+'" },
                { "-", "line 1, column 1: expected digits after '-'" },
                { "-a", "line 1, column 1: expected digits after '-'" },
                { "tru", "line 1, column 1: expected a value, found 't'" },
                { "truex", "line 1, column 5: expected the end of the text, found 'x'" },
                { "\"abc", "line 1, column 5: the text ends inside a string" },
                { "\"abc\\", "line 1, column 6: the text ends inside a string" },
                { "\"a\\x\"",
                  "line 1, column 3: unknown escape in a string; a backslash itself is written \\\\" },
                { "\"\\u12g4\"", "line 1, column 2: \\u must be followed by four hexadecimal digits" },
                { "\"\\u12", "line 1, column 2: \\u must be followed by four hexadecimal digits" },
                { "\"\\u0000\"", "line 1, column 2: the character U+0000 is not allowed in a string" },
                { "\"\\ud800\"", "line 1, column 2: \\ud800 is half of a surrogate pair; write both halves" },
                { "\"\\ud800\\u0041\"",
                  "line 1, column 2: \\ud800 is half of a surrogate pair; write both halves" },
                { "\"\\udc00\"", "line 1, column 2: \\udc00 is half of a surrogate pair; write both halves" },
                { "\"\\ud800\\udb00\"",
                  "line 1, column 2: \\ud800 is half of a surrogate pair; write both halves" },
                { "\"a\nb\"",
                  "line 1, column 3: the control character 0x0a in a string must be written \\u000a" },
                { "\"\xc3\xa9\xff\"",
                  "line 1, column 3: byte 0xff is not valid UTF-8; send the text as UTF-8" },
                { "\"\xc0\x80\"", "line 1, column 2: byte 0xc0 is not valid UTF-8; send the text as UTF-8" },
                { "\"\xed\xa0\x80\"",
                  "line 1, column 2: byte 0xed is not valid UTF-8; send the text as UTF-8" },
                { "\"\xf4\x90\x80\x80\"",
                  "line 1, column 2: byte 0xf4 is not valid UTF-8; send the text as UTF-8" },
                { "\"\xe2\x82\"", "line 1, column 2: byte 0xe2 is not valid UTF-8; send the text as UTF-8" },
                { "\x01", "line 1, column 1: expected a value, found byte 0x01" },
                { "\xef\xbb\xbf{}", "line 1, column 1: the text starts with a byte order mark (BOM); save it "
                                    "as UTF-8 without BOM" },
                { "\xff\xfe{", "line 1, column 1: the text is UTF-16; save it as UTF-8 without BOM" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                cr_assert_eq(check(cases[i].text), STATUS_MALFORMED, "%s", cases[i].text);
                cr_assert_str_eq(failure_current()->message, cases[i].message);
        }
}

Test(json, a_zero_byte_is_no_white_space_and_no_part_of_a_string)
{
        cr_assert_eq(check_n("1\0", 2, 8, 0), STATUS_MALFORMED);
        cr_assert_eq(check_n("[1\0]", 4, 8, 0), STATUS_MALFORMED);
        expect_failure(check_n("\"a\0b\"", 5, 8, 0), STATUS_MALFORMED,
                       "line 1, column 3: the character U+0000 is not allowed in a string");
}

Test(json, equal_keys_in_different_objects_are_no_duplicates)
{
        cr_assert_eq(check("{\"a\":{\"a\":{\"a\":1},\"b\":{\"a\":2}},\"b\":[{\"a\":1},{\"a\":1}]}"),
                     STATUS_OK);
        cr_assert_eq(check("{\"a\":{\"b\":1},\"b\":1,\"a\":2}"), STATUS_MALFORMED);
}

Test(json, duplicates_are_found_among_any_number_of_keys)
{
        enum { MANY = 30000 };
        for (int duplicate = 0; duplicate < 2; duplicate++) {
                Text text = { 0 };
                text_add_char(&text, '{');
                for (int i = 0; i < MANY; i++)
                        text_addf(&text, "\"key_%d\":{\"x\":%d},", i, i);
                text_addf(&text, "\"key_%d\":0}", duplicate != 0 ? 777 : MANY);
                Status status = check_n(text.data, text.n, 8, 0);
                cr_assert_eq(status, duplicate != 0 ? STATUS_MALFORMED : STATUS_OK);
                if (duplicate != 0)
                        cr_assert_not_null(strstr(failure_current()->message, "duplicate key \"key_777\""));
                text_deinit(&text);
        }
}

Test(json, keys_read_and_keys_skipped_are_checked_alike)
{
        _cleanup_(json_closep) JsonReader *reader = open_text("{\"a\":{\"b\":1,\"b\":2}}");
        const char *key;
        bool more;
        int64_t whole;
        cr_assert_eq(json_enter_object(reader), STATUS_OK);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_eq(json_enter_object(reader), STATUS_OK);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_eq(json_read_int(reader, &whole), STATUS_OK);
        expect_failure(json_next_key(reader, &key, &more), STATUS_MALFORMED,
                       "line 1, column 13: duplicate key \"b\"; each key may stand once in an object");
}

Test(json, nesting_is_capped)
{
        for (int depth = 1; depth <= JSON_MAX_DEPTH; depth += 51) {
                Text text = { 0 };
                for (int i = 0; i < depth; i++)
                        text_add(&text, i % 2 != 0 ? "{\"a\":" : "[");
                text_add(&text, "1");
                for (int i = depth - 1; i >= 0; i--)
                        text_add_char(&text, i % 2 != 0 ? '}' : ']');
                cr_assert_eq(check_n(text.data, text.n, depth, 0), STATUS_OK);
                cr_assert_eq(check_n(text.data, text.n, depth - 1, 0), STATUS_TOO_LARGE);
                text_deinit(&text);
        }
        expect_failure(check_n("[[[", 3, 2, 0), STATUS_TOO_LARGE,
                       "line 1, column 3: nesting is deeper than 2 levels (max_json_depth_run or "
                       "max_json_depth_model in GET /v1)");
        cr_assert_eq(check_n("1", 1, 0, 0), STATUS_OK);
        cr_assert_eq(check_n("1", 1, JSON_MAX_DEPTH + 1, 0), STATUS_INTERNAL);
}

Test(json, a_hostile_depth_costs_nothing)
{
        size_t n = 1 << 20;
        _cleanup_(freep) char *text = malloc(n);
        memset(text, '[', n);
        cr_assert_eq(check_n(text, n, JSON_MAX_DEPTH, 0), STATUS_TOO_LARGE);
        cr_assert_leq(arena.total_bytes, 8192);
}

Test(json, values_are_capped)
{
        cr_assert_eq(check_n("[1,2,{\"a\":3}]", 13, 8, 5), STATUS_OK);
        expect_failure(check_n("[1,2,{\"a\":3}]", 13, 8, 4), STATUS_TOO_LARGE,
                       "line 1, column 11: more than 4 values (max_json_values in GET /v1)");
}

static const char sample[] = "{\"name\": \"a\\u00e9\\ud83d\\ude00\xe2\x82\xac\", \"n\": [1, -2.5e-3, true, "
                             "null, {\"k\": [[], {}]}], \"t\": false} ";

Test(json, every_truncation_is_refused)
{
        size_t n = strlen(sample) - 1;
        cr_assert_eq(check_n(sample, n, 8, 0), STATUS_OK);
        for (size_t i = 0; i < n; i++)
                cr_assert_eq(check_n(sample, i, 8, 0), STATUS_MALFORMED, "%zu bytes", i);
}

Test(json, any_changed_byte_is_handled)
{
        char text[sizeof(sample)];
        size_t n = strlen(sample), refused = 0;
        for (size_t i = 0; i < n; i++) {
                for (int byte = 0; byte < 256; byte++) {
                        memcpy(text, sample, n);
                        text[i] = (char)byte;
                        Status status = check_n(text, n, 8, 0);
                        cr_assert(status == STATUS_OK || status == STATUS_MALFORMED);
                        refused += status != STATUS_OK;
                }
        }
        cr_assert_gt(refused, n * 100);
}

Test(json, a_value_of_another_type_names_both)
{
        int64_t whole;
        bool truth, more;
        const char *string;
        double value;
        NumberKind kind;
        _cleanup_(json_closep) JsonReader *reader = open_text("[\"a\", 1.5]");
        expect_failure(json_enter_object(reader), STATUS_MALFORMED,
                       "line 1, column 1: expected an object, found an array");
        cr_assert_eq(json_enter_array(reader), STATUS_OK);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        expect_failure(json_read_int(reader, &whole), STATUS_MALFORMED,
                       "line 1, column 2: expected an integer, found a string");
        expect_failure(json_read_number(reader, &kind, &whole, &value), STATUS_MALFORMED,
                       "line 1, column 2: expected a number, found a string");
        expect_failure(json_read_bool(reader, &truth), STATUS_MALFORMED,
                       "line 1, column 2: expected true or false, found a string");
        expect_failure(json_read_null(reader), STATUS_MALFORMED,
                       "line 1, column 2: expected null, found a string");
        expect_failure(json_enter_array(reader), STATUS_MALFORMED,
                       "line 1, column 2: expected an array, found a string");
        cr_assert_eq(json_read_string(reader, &string, NULL), STATUS_OK);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        expect_failure(json_read_string(reader, &string, NULL), STATUS_MALFORMED,
                       "line 1, column 7: expected a string, found a number");
        expect_failure(json_read_int(reader, &whole), STATUS_MALFORMED,
                       "line 1, column 7: expected an integer of 64 bits, found 1.5");
}

Test(json, reading_out_of_turn_is_our_failure)
{
        int64_t whole;
        bool more;
        const char *key;
        _cleanup_(json_closep) JsonReader *reader = open_text("{\"a\": 1}");
        cr_assert_eq(json_next_item(reader, &more), STATUS_INTERNAL);
        cr_assert_eq(json_enter_object(reader), STATUS_OK);
        cr_assert_eq(json_read_int(reader, &whole), STATUS_INTERNAL);
        cr_assert_eq(json_next_item(reader, &more), STATUS_INTERNAL);
        cr_assert_eq(json_finish(reader), STATUS_INTERNAL);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_INTERNAL);
}

Test(json, raw_text_is_the_value_without_the_space_around_it)
{
        const char *text = "{\"a\":  {\"b\" : [1, 2] } , \"c\": \"x\\ny\"}";
        _cleanup_(json_closep) JsonReader *reader = open_text(text);
        const char *key, *raw;
        bool more;
        size_t n;
        cr_assert_eq(json_enter_object(reader), STATUS_OK);
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_eq(json_tell(reader), 7);
        cr_assert_eq(json_read_raw(reader, &raw, &n), STATUS_OK);
        cr_assert_eq(raw, text + 7);
        cr_assert_eq(n, strlen("{\"b\" : [1, 2] }"));
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_eq(json_read_raw(reader, &raw, &n), STATUS_OK);
        cr_assert_eq(n, strlen("\"x\\ny\""));
        cr_assert_eq(json_next_key(reader, &key, &more), STATUS_OK);
        cr_assert_not(more);
        cr_assert_eq(json_finish(reader), STATUS_OK);
}

Test(json, skipping_keeps_nothing)
{
        Text text = { 0 };
        text_add_char(&text, '[');
        for (int i = 0; i < 10000; i++)
                text_addf(&text, "{\"key\": \"a string that is long enough to be seen\", \"n\": %d},", i);
        text_add(&text, "0]");
        cr_assert_eq(check_n(text.data, text.n, 8, 0), STATUS_OK);
        cr_assert_eq(arena.total_bytes, 0);
        text_deinit(&text);
}

Test(json, positions_count_lines_and_characters)
{
        _cleanup_(json_closep) JsonReader *reader = open_text("[\"\xc3\xa9\xe2\x82\xac\",\n  2]");
        bool more;
        int line, column;
        const char *string;
        cr_assert_eq(json_enter_array(reader), STATUS_OK);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        cr_assert_eq(json_read_string(reader, &string, NULL), STATUS_OK);
        json_position(reader, &line, &column);
        cr_assert_eq(line, 1);
        cr_assert_eq(column, 6);
        cr_assert_eq(json_next_item(reader, &more), STATUS_OK);
        json_position(reader, &line, &column);
        cr_assert_eq(line, 2);
        cr_assert_eq(column, 3);
        cr_assert_eq(json_tell(reader), 12);
}

Test(json, texts_over_the_arenas_cap_are_too_large)
{
        Arena small;
        arena_init(&small, 1000);
        Text text = { 0 };
        text_add_char(&text, '"');
        text_repeat(&text, 'x', 5000);
        text_add_char(&text, '"');
        _cleanup_(json_closep) JsonReader *reader = NULL;
        cr_assert_eq(json_open(text.data, text.n, 8, 0, &small, &reader), STATUS_OK);
        const char *string;
        cr_assert_eq(json_read_string(reader, &string, NULL), STATUS_TOO_LARGE);
        cr_assert_str_eq(failure_current()->message,
                         "line 1, column 5003: keys and texts up to here take more than 1000 bytes");
        arena_deinit(&small);
        text_deinit(&text);
}

Test(json, close_takes_null)
{
        cr_assert_null(json_close(NULL));
}
