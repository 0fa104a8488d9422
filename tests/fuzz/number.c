// SPDX-License-Identifier: Apache-2.0
// Numbers: number_scan against the grammar of RFC 8259 and strtod, to the bit; rows of numbers
// against (float)strtod; printed numbers against what they came from.
#include <errno.h>
#include <math.h>
#include "core/base/json.h"
#include "core/base/number.h"
#include "tests/fuzz/fuzz.h"

static const char *digits(const char *at)
{
        const char *start = at;
        while (*at >= '0' && *at <= '9')
                at++;
        return at == start ? NULL : at;
}

// The end of the JSON number at `at` (NUL-terminated), NULL if there is none; the longest one, as
// scanners take it. A 0 before other digits is none.
static const char *grammar(const char *at, bool *out_is_int)
{
        *out_is_int = true;
        at += *at == '-';
        const char *first = at;
        if ((at = digits(at)) == NULL || (*first == '0' && at - first > 1))
                return NULL;
        if (*at == '.') {
                *out_is_int = false;
                if ((at = digits(at + 1)) == NULL)
                        return NULL;
        }
        if (*at == 'e' || *at == 'E') {
                *out_is_int = false;
                at++;
                at += *at == '-' || *at == '+';
                at = digits(at);
        }
        return at;
}

static void scan(const char *text, size_t n)
{
        NumberKind kind = NUMBER_NONE;
        int64_t integer = 0;
        double value = 0;
        bool is_int;
        const char *end = number_scan(text, text + n, &kind, &integer, &value),
                   *expected = grammar(text, &is_int);
        require(end == expected, "the number in \"%s\" ends elsewhere", text);
        if (end == NULL)
                return;
        char *copy = strndup(text, (size_t)(end - text));
        double theirs = strtod(copy, NULL);
        require(memcmp(&theirs, &value, sizeof(value)) == 0, "%s is %a, not %a", copy, theirs, value);
        errno = 0;
        long long whole = is_int ? strtoll(copy, NULL, 10) : 0;
        bool fits = is_int && errno == 0;
        require((kind == NUMBER_INT) == fits, "%s: an integer or not", copy);
        require(!fits || whole == integer, "%s: read as %lld", copy, (long long)integer);
        free(copy);
}

// The text within brackets: rows take the quick path where there is room behind the number.
static void rows(const char *text, size_t n)
{
        char *list = malloc(n + 80);
        require(list != NULL, "no memory");
        list[0] = '[';
        memcpy(list + 1, text, n);
        list[n + 1] = ']';
        memset(list + n + 2, ' ', 78);
        Arena arena;
        JsonReader *reader = NULL;
        arena_init(&arena, 0);
        require(json_open(list, n + 80, 8, 0, &arena, &reader) == STATUS_OK, "no reader");
        float row[256];
        size_t n_row = 0;
        JsonRow state;
        if (json_enter_array(reader) == STATUS_OK &&
            json_read_f32_row(reader, row, 256, &n_row, &state) == STATUS_OK) {
                char *at = list + 1;
                for (size_t i = 0; i < n_row; i++) {
                        at += strspn(at, " \n\r\t,");
                        if (*at == '"') // NaN or an infinity
                                break;
                        float theirs = (float)strtod(at, &at);
                        require(memcmp(&theirs, &row[i], sizeof(float)) == 0,
                                "number %zu of %s is %a, not %a", i, list, (double)theirs, (double)row[i]);
                }
        }
        json_close(reader);
        arena_deinit(&arena);
        free(list);
}

static void print(const uint8_t *data)
{
        char text[NUMBER_TEXT_MAX + 1];
        double f64;
        float f32;
        int64_t i64;
        memcpy(&f64, data, sizeof(f64));
        memcpy(&f32, data, sizeof(f32));
        memcpy(&i64, data, sizeof(i64));
        if (isfinite(f64)) {
                text[number_print_f64(f64, text)] = '\0';
                double back = strtod(text, NULL);
                require(memcmp(&back, &f64, sizeof(back)) == 0, "%a prints as %s", f64, text);
                scan(text, strlen(text));
        }
        if (isfinite(f32)) {
                text[number_print_f32(f32, text)] = '\0';
                float back = strtof(text, NULL), twice = (float)strtod(text, NULL);
                require(memcmp(&back, &f32, sizeof(back)) == 0 && memcmp(&twice, &f32, sizeof(twice)) == 0,
                        "%a prints as %s", (double)f32, text);
        }
        text[number_print_i64(i64, text)] = '\0';
        require(strtoll(text, NULL, 10) == i64, "%lld prints as %s", (long long)i64, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        if (n >= 8)
                print(data);
        if (memchr(data, '\0', n) != NULL)
                return 0;
        char *text = strndup((const char *)data, n);
        require(text != NULL, "no memory");
        scan(text, n);
        rows(text, n);
        free(text);
        return 0;
}
