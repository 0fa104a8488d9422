// SPDX-License-Identifier: Apache-2.0
// The oracle is the C library, whose strtod and snprintf are exact.
#include <criterion/criterion.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/base/number.h"

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t random_bits(void)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state * 0x2545f4914f6cdd1du;
}

static double double_of(uint64_t bits)
{
        double value;
        memcpy(&value, &bits, sizeof(value));
        return value;
}

static float float_of(uint32_t bits)
{
        float value;
        memcpy(&value, &bits, sizeof(value));
        return value;
}

static bool same_bits(double a, double b)
{
        return memcmp(&a, &b, sizeof(a)) == 0;
}

static void expect_like_strtod(const char *text)
{
        size_t n = strlen(text);
        NumberKind kind = NUMBER_NONE;
        int64_t whole;
        double got = -7, want = strtod(text, NULL);
        const char *after = number_scan(text, text + n, &kind, &whole, &got);
        if (after != text + n || !same_bits(got, want))
                cr_assert_fail("%.60s (%zu bytes): %a, want %a", text, n, got, want);
}

static const char *scan(const char *text, NumberKind *kind, int64_t *whole)
{
        double value;
        return number_scan(text, text + strlen(text), kind, whole, &value);
}

Test(number_scan, integers_that_fit_are_integers)
{
        static const struct {
                const char *text;
                int64_t value;
        } cases[] = {
                { "0", 0 },
                { "-0", 0 },
                { "7", 7 },
                { "-12", -12 },
                { "9223372036854775807", INT64_MAX },
                { "-9223372036854775808", INT64_MIN },
                { "9007199254740993", 9007199254740993 },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                NumberKind kind;
                int64_t whole = 99;
                cr_assert_eq(scan(cases[i].text, &kind, &whole), cases[i].text + strlen(cases[i].text));
                cr_assert_eq(kind, NUMBER_INT, "%s", cases[i].text);
                cr_assert_eq(whole, cases[i].value, "%s", cases[i].text);
                expect_like_strtod(cases[i].text);
        }
}

Test(number_scan, what_has_a_point_an_exponent_or_too_many_digits_is_a_float)
{
        static const char *const texts[] = { "1.0",
                                             "1e2",
                                             "-0.0",
                                             "9223372036854775808",
                                             "-9223372036854775809",
                                             "18446744073709551616",
                                             "99999999999999999999999",
                                             "1E+2",
                                             "0e0" };
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                NumberKind kind;
                int64_t whole = 99;
                cr_assert_not_null(scan(texts[i], &kind, &whole));
                cr_assert_eq(kind, NUMBER_FLOAT, "%s", texts[i]);
                cr_assert_eq(whole, 99);
                expect_like_strtod(texts[i]);
        }
}

Test(number_scan, only_the_grammar_of_json_is_taken)
{
        static const char *const texts[] = { "",    "-",  "+1",  ".5", "-.5", "1.",  "1.e2", "1e",   "1e+",
                                             "1e-", "01", "-01", "00", "NaN", "inf", "-in",  "abc",  " 1",
                                             "1.-", "0x", "--1", "e5", "1.e", "-e1", "1E",   "-00.1" };
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
                NumberKind kind;
                int64_t whole;
                const char *after = scan(texts[i], &kind, &whole);
                if (strcmp(texts[i], "0x") == 0)
                        cr_assert_eq(after, texts[i] + 1);
                else
                        cr_assert_null(after, "%s", texts[i]);
        }
}

Test(number_scan, stops_behind_the_number_and_never_reads_past_the_end)
{
        NumberKind kind;
        int64_t whole;
        double value;
        const char *text = "12.5,7";
        cr_assert_eq(number_scan(text, text + 6, &kind, &whole, &value), text + 4);
        cr_assert_eq(value, 12.5);
        cr_assert_eq(number_scan(text, text + 2, &kind, &whole, &value), text + 2);
        cr_assert_eq(whole, 12);
        cr_assert_null(number_scan(text, text + 3, &kind, &whole, &value));
        cr_assert_null(number_scan(text, text, &kind, &whole, &value));
        // Exact heap blocks: the address sanitizer sees any byte read behind them.
        for (size_t n = 1; n <= 24; n++) {
                char *exact = malloc(n);
                memset(exact, '1', n);
                cr_assert_eq(number_scan(exact, exact + n, &kind, &whole, &value), exact + n);
                free(exact);
        }
}

Test(number_scan, hard_cases_read_like_strtod)
{
        static const char *const texts[] = {
                "0.1",
                "1e-7",
                "123456.789e3",
                "5e-324",
                "4.9e-324",
                "2.4703282292062327e-324",
                "2.4703282292062328e-324",
                "2.47032822920623272e-324",
                "2.4703282292062327208299991e-324",
                "2.2250738585072014e-308",
                "2.2250738585072011e-308",
                "2.225073858507201136057409796709131975934819546351645648023426109724822222021e-308",
                "1.7976931348623157e308",
                "1.7976931348623158e308",
                "1.7976931348623159e308",
                "1.797693134862315807e308",
                "17976931348623158079372897140530341507993413271003782693617377898044496829276475094664901797"
                "758720709633028641669288791094"
                "65555478519404026306574886715058206819089020007083836762738548458177115317644757302700698555"
                "713669596228429148198608349364"
                "75292719074168444365510704342711559699508093042880",
                "1e308",
                "1e309",
                "1e400",
                "-1e400",
                "1e-400",
                "-1e-400",
                "1e99999999999999999999",
                "1e-99999999999999999999",
                "0e99999999999999999999",
                "0.0e-5000",
                "-0",
                "-0.0",
                "-0e10",
                "9007199254740991",
                "9007199254740992",
                "9007199254740993",
                "9007199254740993.0",
                "9007199254740993.00000000000000000000000000001",
                "9007199254740992.99999999999999999999999999999",
                "9007199254740995",
                "4503599627370496.5",
                "4503599627370497.5",
                "4503599627370496.50000000000000000000000001",
                "0.500000000000000166533453693773481063544750213623046875",
                "0."
                "50000000000000016653345369377348106354475021362304687500000000000000000000000000000000000000"
                "000000000000001",
                "1.00000000000000011102230246251565404236316680908203125",
                "1.00000000000000011102230246251565404236316680908203124",
                "1.00000000000000011102230246251565404236316680908203126",
                "8.5e22",
                "8.5e23",
                "1e22",
                "1e23",
                "123456789012345678901234567890",
                "7.2057594037927933e16",
                "72057594037927933",
                "72057594037927935",
                "72057594037927936",
                "0.000000000000000000000000000000000000000000000000000000000000001",
                "1e-22",
                "1e-23",
                "18446744073709551615",
                "18446744073709551616",
                "1844674407370955161.5",
                "9223372036854775807.5",
                "6.9294956446009195e15",
                "3.2378839133029012895883524125015321748630309055e-319",
                "9355950000000000000."
                "00000000000000000000000000000000001844674407370955161600000184467440737095516161844674407370"
                "955161407370955161618446744073"
                "70955161600018446744073709551616600000184467440737095516161844674407370955161407370955161618"
                "446744073709551616000184467440"
                "73709551616018446744073709556744516161844674407370955161407370955161618446744073709551616000"
                "184467440737095516160184467440"
                "73709551611616000184467440737095001844674407370955161600184467440737095516160018446744073709"
                "551168164467440737095516160001"
                "84407370955161601844674407370955161618446744073709551616000184467440753691075160161161600018"
                "446744073709500184467440737095"
                "51616001844674407370955161600184467440737095516161844674407370955161600018449551616184467440"
                "737095516160001844674407536910"
                "75160018446744073709",
        };
        for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
                expect_like_strtod(texts[i]);
}

Test(number_scan, ten_thousand_digits_read_like_strtod)
{
        enum { N = 10000 };
        static char text[N + 64];
        memset(text, '7', N);
        text[N] = '\0';
        expect_like_strtod(text);
        text[1] = '.';
        expect_like_strtod(text);
        strcpy(text + N, "e-9999");
        expect_like_strtod(text);
        memset(text, '0', N);
        text[0] = '1';
        strcpy(text + N, "e-9999");
        expect_like_strtod(text);
        text[N - 1] = '1';
        expect_like_strtod(text);
        memset(text, '0', N);
        text[1] = '.';
        text[N - 1] = '3';
        strcpy(text + N, "e9990");
        expect_like_strtod(text);
        // A middle between two doubles, then thousands of zeros, then what lifts it over.
        const char *middle = "1.00000000000000011102230246251565404236316680908203125";
        memset(text, '0', N);
        memcpy(text, middle, strlen(middle));
        text[N] = '\0';
        expect_like_strtod(text);
        text[N - 1] = '1';
        expect_like_strtod(text);
        NumberKind kind;
        int64_t whole;
        double value = 0;
        number_scan(text, text + N, &kind, &whole, &value);
        cr_assert_eq(value, 1 + DBL_EPSILON);
}

Test(number_scan, random_texts_read_like_strtod)
{
        char text[96];
        for (int i = 0; i < 1000000; i++) {
                int n = 0, digits = 1 + (int)(random_bits() % 25), point = (int)(random_bits() % 25);
                if ((random_bits() & 1) != 0)
                        text[n++] = '-';
                if (point == 0)
                        text[n++] = '0';
                for (int j = 0; j < digits; j++) {
                        if (j == point)
                                text[n++] = '.';
                        text[n++] = (char)('0' + (j == 0 && point != 0 ? 1 + random_bits() % 9
                                                                       : random_bits() % 10));
                }
                if ((random_bits() & 1) != 0)
                        n += sprintf(text + n, "e%d", (int)(random_bits() % 700) - 350);
                text[n] = '\0';
                expect_like_strtod(text);
        }
}

Test(number_scan, middles_between_doubles_and_their_surroundings_read_like_strtod)
{
        char text[900];
        for (int i = 0; i < 20000; i++) {
                uint64_t bits = random_bits() >> 1;
                if (i % 4 == 0)
                        bits >>= 12 + random_bits() % 50;
                double low = double_of(bits), high = nextafter(low, (double)INFINITY);
                if (!isfinite(low) || !isfinite(high))
                        continue;
                long double middle = ((long double)low + (long double)high) / 2;
                int digits = i % 2 == 0 ? 780 : (int)(random_bits() % 30);
                sprintf(text, "%.*Le", digits, middle);
                expect_like_strtod(text);
                strchr(text, 'e')[-1] = (char)('0' + random_bits() % 10);
                if (text[1] == '.')
                        expect_like_strtod(text);
        }
}

// The digits of a printed number as d.ddd and its exponent, without zeros at the end.
static void digits_of(const char *text, char *out_digits, int *out_exponent)
{
        int n = 0, point = 0;
        bool seen = false;
        const char *at = text;
        for (; *at != '\0' && *at != 'e'; at++) {
                if (*at == '.')
                        seen = true;
                else if (*at != '-' && (n > 0 || *at != '0'))
                        out_digits[n++] = *at;
                if (seen && *at != '.')
                        point++;
        }
        *out_exponent = n - 1 - point + (*at == 'e' ? atoi(at + 1) : 0);
        while (n > 1 && out_digits[n - 1] == '0')
                n--;
        out_digits[n] = '\0';
}

static bool reads_back(const char *text, double value, bool narrow)
{
        return narrow ? strtof(text, NULL) == (float)value : same_bits(strtod(text, NULL), value);
}

// Whether any number of `n` digits reads back as `value`: the nearest one, and those beside it.
static bool fits_digits(double value, int n, bool narrow)
{
        char text[64], digits[32];
        int exponent;
        sprintf(text, "%.*e", n - 1, fabs(value));
        memset(digits, '0', sizeof(digits));
        digits[0] = text[0];
        memcpy(digits + 1, text + 2, (size_t)n - 1);
        digits[n] = '\0';
        exponent = atoi(strchr(text, 'e') + 1);
        long long whole = atoll(digits);
        for (int step = -1; step <= 1; step++) {
                sprintf(text, "%s%llde%d", signbit(value) != 0 ? "-" : "", whole + step, exponent - (n - 1));
                if (reads_back(text, value, narrow))
                        return true;
        }
        return false;
}

static void expect_shortest(double value, bool narrow)
{
        char text[NUMBER_TEXT_MAX + 1], digits[64], nearest[64], nearest_digits[64];
        size_t n_bytes = narrow ? number_print_f32((float)value, text) : number_print_f64(value, text);
        cr_assert_leq(n_bytes, NUMBER_TEXT_MAX);
        text[n_bytes] = '\0';
        double back = narrow ? (double)(float)strtod(text, NULL) : strtod(text, NULL);
        if (!same_bits(back, value))
                cr_assert_fail("%s does not read back as %a", text, value);
        expect_like_strtod(text);
        int exponent, nearest_exponent;
        digits_of(text, digits, &exponent);
        int n = (int)strlen(digits);
        if (n > 1 && fits_digits(value, n - 1, narrow))
                cr_assert_fail("%s for %a is not the shortest", text, value);
        sprintf(nearest, "%.*e", n - 1, value);
        if (reads_back(nearest, value, narrow)) {
                digits_of(nearest, nearest_digits, &nearest_exponent);
                if (strcmp(digits, nearest_digits) != 0 || exponent != nearest_exponent)
                        cr_assert_fail("%s for %a: %s is closer", text, value, nearest);
        }
}

Test(number_print, random_doubles_print_shortest_and_closest)
{
        for (int i = 0; i < 1000000; i++) {
                double value = double_of(random_bits());
                if (isfinite(value))
                        expect_shortest(value, false);
        }
}

Test(number_print, random_floats_print_shortest_and_closest)
{
        for (int i = 0; i < 1000000; i++) {
                float value = float_of((uint32_t)(random_bits() >> 32));
                if (isfinite(value))
                        expect_shortest((double)value, true);
        }
}

Test(number_print, powers_of_two_subnormals_and_extremes_print_shortest)
{
        for (int e = -1074; e <= 1023; e++) {
                expect_shortest(ldexp(1, e), false);
                if (e > -1074)
                        expect_shortest(nextafter(ldexp(1, e), 0), false);
                expect_shortest(nextafter(ldexp(1, e), (double)INFINITY), false);
        }
        for (int e = -149; e <= 127; e++) {
                expect_shortest(ldexp(1, e), true);
                expect_shortest((double)nextafterf((float)ldexp(1, e), INFINITY), true);
        }
        expect_shortest(DBL_MAX, false);
        expect_shortest(-DBL_MAX, false);
        expect_shortest((double)FLT_MAX, true);
        for (uint64_t bits = 1; bits < 3000; bits++) {
                expect_shortest(double_of(bits), false);
                expect_shortest((double)float_of((uint32_t)bits), true);
                expect_shortest(double_of((1ull << 52) - bits), false);
        }
        for (int e = -323; e <= 308; e++) {
                char text[16];
                sprintf(text, "1e%d", e);
                expect_shortest(strtod(text, NULL), false);
        }
}

Test(number_print, the_one_float_that_double_rounding_spoils_reads_back)
{
        float value = float_of(0x15ae43fd);
        char text[NUMBER_TEXT_MAX + 1];
        text[number_print_f32(value, text)] = '\0';
        cr_assert_eq((float)strtod(text, NULL), value);
        cr_assert_eq(strtof(text, NULL), value);
        cr_assert_str_eq(text, "7.0385307e-26");
}

typedef struct PrintCase {
        double value;
        const char *json, *python;
} PrintCase;

Test(number_print, forms_are_those_of_json_and_of_python)
{
        static const PrintCase cases[] = {
                { 0.0, "0.0", "0.0" },
                { -0.0, "-0.0", "-0.0" },
                { 1, "1.0", "1.0" },
                { -1.5, "-1.5", "-1.5" },
                { 0.1, "0.1", "0.1" },
                { 1e-4, "0.0001", "0.0001" },
                { 1.25e-4, "0.000125", "0.000125" },
                { 1e-5, "1e-5", "1e-05" },
                { -1.5e-5, "-1.5e-5", "-1.5e-05" },
                { 1e-7, "1e-7", "1e-07" },
                { 123456, "123456.0", "123456.0" },
                { 1234567.25, "1234567.25", "1234567.25" },
                { 12345678.5, "12345678.5", "12345678.5" },
                { 1e15, "1000000000000000.0", "1000000000000000.0" },
                { 123456789012345.6, "123456789012345.6", "123456789012345.6" },
                { 1234567890123456.0, "1234567890123456.0", "1234567890123456.0" },
                { 1e16, "1e16", "1e+16" },
                { 1.2345e20, "1.2345e20", "1.2345e+20" },
                { 1e100, "1e100", "1e+100" },
                { 5e-324, "5e-324", "5e-324" },
                { 1.7976931348623157e308, "1.7976931348623157e308", "1.7976931348623157e+308" },
                { 0.30000000000000004, "0.30000000000000004", "0.30000000000000004" },
                { 2.5e-10, "2.5e-10", "2.5e-10" },
                { (double)NAN, "NaN", "nan" },
                { (double)INFINITY, "Infinity", "inf" },
                { -(double)INFINITY, "-Infinity", "-inf" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                char text[NUMBER_TEXT_MAX + 1];
                text[number_print_f64(cases[i].value, text)] = '\0';
                cr_assert_str_eq(text, cases[i].json);
                text[number_print_python(cases[i].value, text)] = '\0';
                cr_assert_str_eq(text, cases[i].python);
        }
}

Test(number_print, floats_have_the_forms_of_doubles_with_their_own_digits)
{
        static const struct {
                float value;
                const char *text;
        } cases[] = { { 0.1f, "0.1" },
                      { 16777216.0f, "16777216.0" },
                      { 3.4028235e38f, "3.4028235e38" },
                      { 1e-45f, "1e-45" },
                      { 0.33333334f, "0.33333334" },
                      { -0.0f, "-0.0" },
                      { 1e10f, "10000000000.0" },
                      { 123456792.0f, "123456790.0" },
                      { 1e-5f, "1e-5" },
                      { 0.00012345678f, "0.00012345678" },
                      { -NAN, "NaN" },
                      { -INFINITY, "-Infinity" } };
        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                char text[NUMBER_TEXT_MAX + 1];
                text[number_print_f32(cases[i].value, text)] = '\0';
                cr_assert_str_eq(text, cases[i].text);
        }
}

Test(number_print, integers_print_in_full)
{
        static const int64_t values[] = { 0, 1, -1, 9, 10, 99, 100, 1234567890123, INT64_MAX, INT64_MIN };
        char text[NUMBER_TEXT_MAX + 1], want[NUMBER_TEXT_MAX + 1];
        for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
                text[number_print_i64(values[i], text)] = '\0';
                sprintf(want, "%" PRId64, values[i]);
                cr_assert_str_eq(text, want);
                text[number_print_u64((uint64_t)values[i], text)] = '\0';
                sprintf(want, "%" PRIu64, (uint64_t)values[i]);
                cr_assert_str_eq(text, want);
        }
        for (int i = 0; i < 20000; i++) {
                uint64_t value = random_bits() >> (random_bits() % 64);
                text[number_print_u64(value, text)] = '\0';
                sprintf(want, "%" PRIu64, value);
                cr_assert_str_eq(text, want);
        }
}

Test(number_print, nothing_is_written_beyond_the_promised_room)
{
        for (int i = 0; i < 300000; i++) {
                uint64_t bits = random_bits();
                if (i % 3 == 0)
                        // sizes near one, written without exponent
                        bits = 0x3f00000000000000u + (bits & 0x81ffffffffffffffu);
                char room[NUMBER_TEXT_MAX + 8];
                memset(room, 'x', sizeof(room));
                number_print_f64(double_of(bits), room);
                number_print_python(double_of(bits), room);
                number_print_f32(float_of((uint32_t)(bits >> 32)), room);
                cr_assert_arr_eq(room + NUMBER_TEXT_MAX, "xxxxxxxx", 8);
        }
}

Test(number_print, a_row_is_what_its_numbers_are_one_by_one)
{
        static const uint32_t edges[] = { 0,          0x80000000, 1,          0x007fffff, 0x00800000,
                                          0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x15ae43fd,
                                          0x95ae43fd, 0x3f800000, 0x3f000000, 0x38d1b717, 0x38d1b718,
                                          0x4b18967f, 0x4b189680, 0x4b189681, 0x4cbebc20, 0x47c35000,
                                          0x3dcccccd, 0x3d800000, 0x42c80000 };
        enum { MOST = 37 };
        for (int round = 0; round < 30000; round++) {
                float values[MOST];
                char got[MOST * (NUMBER_TEXT_MAX + 4)], want[sizeof(got)], *at = want;
                size_t n = random_bits() % (MOST + 1);
                for (size_t i = 0; i < n; i++) {
                        uint64_t bits = random_bits();
                        uint32_t word = (uint32_t)(bits >> 32);
                        if (bits % 4 == 0)
                                word = edges[bits / 4 % ARRAY_LENGTH(edges)];
                        else if (bits % 4 == 1) // sizes near one
                                word = 0x38000000u + (word & 0x8fffffffu) % 0x14000000u;
                        values[i] = float_of(word);
                        bool finite = values[i] - values[i] == 0;
                        at += sprintf(at, "%s", finite ? "" : "\"");
                        at += number_print_f32(values[i], at);
                        at += sprintf(at, "%s, ", finite ? "" : "\"");
                }
                size_t n_bytes = number_print_f32_row(values, n, got);
                cr_assert_eq(n_bytes, (size_t)(at - want));
                cr_assert(n_bytes == 0 || memcmp(got, want, n_bytes) == 0, "%.*s\n%.*s", (int)n_bytes, got,
                          (int)n_bytes, want);
        }
}
