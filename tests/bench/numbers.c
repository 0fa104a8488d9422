// SPDX-License-Identifier: Apache-2.0
// numbers.c: nanoseconds per number, reading and printing, and a long differential run against the
// C library. Usage: numbers [values per timing = 1000000] [values per comparison = 0] Exits 1 when
// any comparison differs; never because of time.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/base/json.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state * 0x2545f4914f6cdd1du;
}

static double random_unit(void)
{
        return (double)(random_bits() >> 11) * 0x1p-53;
}

static double random_normal(void)
{
        return sqrt(-2 * log(1 - random_unit())) * cos(6.283185307179586 * random_unit());
}

static float float_of(uint32_t bits)
{
        float value;
        memcpy(&value, &bits, sizeof(value));
        return value;
}

static double double_of(uint64_t bits)
{
        double value;
        memcpy(&value, &bits, sizeof(value));
        return value;
}

enum { ROUNDS = 7 };

typedef size_t (*Writer)(size_t i, char *out);

static size_t write_six(size_t i, char *out)
{
        (void)i;
        return (size_t)sprintf(out, "%.6f", random_unit());
}
static size_t write_f32(size_t i, char *out)
{
        (void)i;
        return number_print_f32((float)random_normal(), out);
}
static size_t write_f64(size_t i, char *out)
{
        (void)i;
        return number_print_f64(random_normal(), out);
}
static size_t write_f32_as_f64(size_t i, char *out)
{
        (void)i;
        return number_print_f64((double)(float)random_normal(), out);
}
static size_t write_byte(size_t i, char *out)
{
        (void)i;
        return number_print_u64(random_bits() >> 56, out);
}
static size_t write_any(size_t i, char *out)
{
        (void)i;
        return number_print_f32(float_of((uint32_t)random_bits() & 0xbfffffff), out);
}
static size_t write_long(size_t i, char *out)
{
        (void)i;
        return (size_t)sprintf(out, "%.30f", random_unit());
}

// Best of ROUNDS, so that a neighbour on the machine matters less.
static void time_rows(const char *name, Writer writer, const char *comma, size_t n)
{
        Text text = { 0 };
        text_add_char(&text, '[');
        for (size_t i = 0; i < n; i++) {
                char number[64];
                if (i > 0)
                        text_add(&text, comma);
                text_add_n(&text, number, writer(i, number));
        }
        text_add_char(&text, ']');
        float *values = new_array(n, sizeof(*values));
        double *doubles = new_array(n, sizeof(*doubles));
        if (text_status(&text) != STATUS_OK || values == NULL || doubles == NULL)
                exit(2);
        double best[2] = { 1e300, 1e300 };
        for (int round = 0; round < 2 * ROUNDS; round++) {
                int wide = round & 1;
                JsonReader *reader;
                JsonRow state;
                size_t got = 0;
                int64_t start = clock_ns();
                if (json_open(text.data, text.n, 8, 0, NULL, &reader) != STATUS_OK ||
                    json_enter_array(reader) != STATUS_OK ||
                    (wide ? json_read_f64_row(reader, doubles, n, &got, &state)
                          : json_read_f32_row(reader, values, n, &got, &state)) != STATUS_OK ||
                    got != n || state != JSON_ROW_END) {
                        printf("%s: %s\n", name, failure_current()->message);
                        exit(2);
                }
                best[wide] = fmin(best[wide], (double)(clock_ns() - start) / (double)n);
                json_close(reader);
        }
        printf("read  %-34s f32 %6.1f ns   f64 %6.1f ns   (%.1f bytes each)\n", name, best[0], best[1],
               (double)text.n / (double)n);
        free(values);
        free(doubles);
        text_deinit(&text);
}

static void time_ints(size_t n)
{
        Text text = { 0 };
        text_add_char(&text, '[');
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        text_add_char(&text, ',');
                text_add_int(&text, (int64_t)(random_bits() >> 48));
        }
        text_add_char(&text, ']');
        int64_t *values = new_array(n, sizeof(*values));
        if (text_status(&text) != STATUS_OK || values == NULL)
                exit(2);
        double best = 1e300;
        for (int round = 0; round < ROUNDS; round++) {
                JsonReader *reader;
                JsonRow state;
                size_t got = 0;
                int64_t start = clock_ns();
                if (json_open(text.data, text.n, 8, 0, NULL, &reader) != STATUS_OK ||
                    json_enter_array(reader) != STATUS_OK ||
                    json_read_i64_row(reader, values, n, &got, &state) != STATUS_OK || got != n)
                        exit(2);
                best = fmin(best, (double)(clock_ns() - start) / (double)n);
                json_close(reader);
        }
        printf("read  %-34s i64 %6.1f ns\n", "16-bit integers", best);
        free(values);
        text_deinit(&text);
}

typedef double (*Maker)(void);

static double make_any_f32(void)
{
        return (double)float_of((uint32_t)random_bits() & 0xbfffffff);
}
static double make_any_f64(void)
{
        return double_of(random_bits() & 0xbfffffffffffffffu);
}
static double make_whole(void)
{
        return (double)(random_bits() >> 56);
}

static void time_print(const char *name, Maker maker, size_t n)
{
        double *values = new_array(n, sizeof(*values));
        float *singles = new_array(n, sizeof(*singles));
        char *out = malloc(n * (NUMBER_TEXT_MAX + 4));
        if (values == NULL || singles == NULL || out == NULL)
                exit(2);
        for (size_t i = 0; i < n; i++) {
                values[i] = maker();
                singles[i] = (float)values[i];
        }
        double best[2] = { 1e300, 1e300 }, best_row = 1e300;
        size_t n_bytes[2];
        for (int round = 0; round < 2 * ROUNDS; round++) {
                int wide = round & 1;
                char *at = out;
                int64_t start = clock_ns();
                for (size_t i = 0; i < n; i++) {
                        at += wide ? number_print_f64(values[i], at) : number_print_f32((float)values[i], at);
                        *at++ = ',';
                }
                best[wide] = fmin(best[wide], (double)(clock_ns() - start) / (double)n);
                n_bytes[wide] = (size_t)(at - out);
        }
        for (int round = 0; round < ROUNDS; round++) {
                int64_t start = clock_ns();
                number_print_f32_row(singles, n, out);
                best_row = fmin(best_row, (double)(clock_ns() - start) / (double)n);
        }
        printf("print %-34s f32 %6.1f ns   f64 %6.1f ns   row of f32 %6.1f ns   (%.1f and %.1f bytes each)\n",
               name, best[0], best[1], best_row, (double)n_bytes[0] / (double)n,
               (double)n_bytes[1] / (double)n);
        free(values);
        free(singles);
        free(out);
}

static uint64_t n_wrong;

static void wrong(const char *what, const char *text, size_t n)
{
        if (n_wrong++ < 20)
                printf("differs: %s: %.*s\n", what, (int)n, text);
}

static void compare_scan(const char *text, size_t n)
{
        NumberKind kind;
        int64_t whole;
        double got = -1;
        double want = strtod(text, NULL);
        if (number_scan(text, text + n, &kind, &whole, &got) != text + n ||
            memcmp(&got, &want, sizeof(got)) != 0)
                wrong("number_scan", text, n);
}

// Prints a double and a float of these bits; both must read back to the bit by the C library.
static void compare_print(uint64_t bits)
{
        char text[NUMBER_TEXT_MAX + 1];
        double value = double_of(bits);
        if (isfinite(value)) {
                size_t n = number_print_f64(value, text);
                text[n] = '\0';
                double back = strtod(text, NULL);
                if (memcmp(&back, &value, sizeof(back)) != 0)
                        wrong("number_print_f64", text, n);
                compare_scan(text, n);
        }
        float narrow = float_of((uint32_t)(bits >> 32));
        if (isfinite(narrow)) {
                size_t n = number_print_f32(narrow, text);
                text[n] = '\0';
                float back = (float)strtod(text, NULL);
                if (memcmp(&back, &narrow, sizeof(back)) != 0)
                        wrong("number_print_f32", text, n);
        }
}

static void compare_text(void)
{
        char text[96];
        int n = 0, digits = 1 + (int)(random_bits() % 24), point = (int)(random_bits() % 24);
        if ((random_bits() & 1) != 0)
                text[n++] = '-';
        if (point == 0)
                text[n++] = '0';
        for (int i = 0; i < digits; i++) {
                if (i == point)
                        text[n++] = '.';
                text[n++] = (char)('0' + (i == 0 && point != 0 ? 1 + random_bits() % 9 : random_bits() % 10));
        }
        if ((random_bits() & 3) == 0)
                n += sprintf(text + n, "e%d", (int)(random_bits() % 700) - 350);
        text[n] = '\0';
        compare_scan(text, (size_t)n);
}

int main(int argc, char **argv)
{
        size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
        size_t n_compare = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
        if (n > 0) {
                time_rows("0.123456, uniform", write_six, ",", n);
                time_rows("0.123456, with spaces", write_six, ", ", n);
                time_rows("shortest f32, normal", write_f32, ",", n);
                time_rows("shortest f64, normal", write_f64, ",", n);
                time_rows("f32 as f64 (Python tolist)", write_f32_as_f64, ", ", n);
                time_rows("bytes 0 to 255", write_byte, ",", n);
                time_rows("any f32 bits", write_any, ",", n);
                time_rows("30 digits", write_long, ",", n);
                time_ints(n);
                time_print("normal", random_normal, n);
                time_print("any f32 bits", make_any_f32, n);
                time_print("any f64 bits", make_any_f64, n);
                time_print("whole 0 to 255", make_whole, n);
        }
        for (size_t i = 0; i < n_compare; i++) {
                compare_print(random_bits());
                compare_text();
        }
        if (n_compare > 0)
                printf("compared %zu bit patterns and %zu texts: %" PRIu64 " differ\n", n_compare, n_compare,
                       n_wrong);
        return n_wrong > 0;
}
