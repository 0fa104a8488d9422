// SPDX-License-Identifier: Apache-2.0
// json_row.c: numbers of an array in bulk, the hot path of tensor data. The quick loop takes
// "number, comma, number, ..." while numbers have the common form and NUMBER_QUICK_ROOM bytes
// remain. Anything else goes one step through the general reader, which knows the whole grammar and
// words the failures. One body serves the three types; it is inlined with the type as a constant.
#include "core/base/json_reader.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "core/base/number_scan.h"

typedef enum RowType { ROW_F32, ROW_F64, ROW_I64 } RowType;

// The three strings that stand for floats without a JSON literal. Returns the length with quotes, 0
// if none of them is here.
static size_t word_at(const JsonReader *reader, double *out_value)
{
        static const struct {
                const char *text;
                size_t n;
                double value;
        } words[] = { { "\"NaN\"", 5, (double)NAN },
                      { "\"Infinity\"", 10, (double)INFINITY },
                      { "\"-Infinity\"", 11, -(double)INFINITY } };
        for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
                if ((size_t)(reader->end - reader->at) >= words[i].n &&
                    memcmp(reader->at, words[i].text, words[i].n) == 0) {
                        *out_value = words[i].value;
                        return words[i].n;
                }
        }
        return 0;
}

// False when a literal is beyond the type.
static inline bool store(RowType type, void *out, size_t i, double value, int64_t whole)
{
        switch (type) {
        case ROW_F32:
                ((float *)out)[i] = (float)value;
                return fabsf((float)value) <= FLT_MAX;
        case ROW_F64:
                ((double *)out)[i] = value;
                return fabs(value) <= DBL_MAX;
        default:
                ((int64_t *)out)[i] = whole;
                return true;
        }
}

// An integer of at most 16 digits: long enough for what tensors hold.
static inline const char *scan_quick_int(const char *at, int64_t *out_whole)
{
        bool negative = *at == '-';
        at += negative;
        uint64_t w = 0;
        unsigned n = number_take8(at, &w);
        if (n == 8)
                n += number_take8(at + 8, &w);
        char next = at[n];
        if (n == 0 || n == 16 || (at[0] == '0' && n > 1) || next == '.' || (next | 0x20) == 'e')
                return NULL;
        *out_whole = negative ? -(int64_t)w : (int64_t)w;
        return at + n;
}

static inline bool is_space(char c)
{
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Reads on from a place where a value must follow. Returns the place behind the last value taken;
// *out_at_value says that a comma was read after it.
static inline const char *read_quick(const JsonReader *reader, RowType type, void *out, size_t capacity,
                                     size_t *n, bool *out_at_value)
{
        const char *at = reader->at;
        const char *quick_end = reader->end - at > NUMBER_QUICK_ROOM ? reader->end - NUMBER_QUICK_ROOM : at;
        size_t i = *n;
        bool at_value = true;
        while (i < capacity && at < quick_end) {
                double value = 0;
                int64_t whole = 0;
                const char *after =
                        type == ROW_I64 ? scan_quick_int(at, &whole) : number_scan_quick(at, &value);
                if (after == NULL || !store(type, out, i, value, whole))
                        break;
                i++;
                at = after;
                at_value = false;
                while (is_space(*at) && at < quick_end)
                        at++;
                if (*at != ',')
                        break;
                at++;
                at_value = true;
                while (is_space(*at) && at < quick_end)
                        at++;
        }
        *n = i;
        *out_at_value = at_value;
        return at;
}

// One value by the general reader. *out_taken false: it is not of the row's type, and nothing was
// consumed.
static Status read_one(JsonReader *reader, RowType type, void *out, size_t i, bool *out_taken)
{
        const char *at = reader->at, *after;
        NumberKind kind = NUMBER_FLOAT;
        int64_t whole = 0;
        double value = 0;
        *out_taken = false;
        JsonType found = json_peek(reader);
        if (found == JSON_BAD || found == JSON_END)
                return json_fail_value(reader);
        if (found == JSON_NUMBER) {
                after = number_scan(at, reader->end, &kind, &whole, &value);
                if (after == NULL)
                        return json_fail_value(reader);
                if (type == ROW_I64 && kind != NUMBER_INT)
                        return STATUS_OK;
                if (!store(type, out, i, value, whole))
                        return json_fail(
                                reader, at, STATUS_VALUE,
                                "%.*s is too large for %s; write \"Infinity\" as a string if that is meant",
                                (int)MIN(after - at, 60), at, type == ROW_F32 ? "float32" : "float64");
        } else {
                size_t n_bytes = type == ROW_I64 ? 0 : word_at(reader, &value);
                if (n_bytes == 0)
                        return STATUS_OK;
                after = at + n_bytes;
                (void)store(type, out, i, value, 0);
        }
        reader->at = after;
        json_top(reader)->state = JSON_AFTER_VALUE;
        *out_taken = true;
        return STATUS_OK;
}

static inline __attribute__((always_inline)) Status read_row(JsonReader *reader, RowType type, void *out,
                                                             size_t capacity, size_t *out_n,
                                                             JsonRow *out_state)
{
        size_t n = 0;
        JsonFrame *top = json_top(reader);
        JsonRow state = JSON_ROW_OTHER;
        if (top->kind != '[')
                return fail(STATUS_INTERNAL, "json: a row was read outside of an array");
        for (;;) {
                json_space(reader);
                if (n == capacity &&
                    (top->state == JSON_AT_VALUE || reader->at == reader->end || *reader->at != ']')) {
                        state = JSON_ROW_FULL;
                        break;
                }
                bool more, taken, at_value;
                TRY(json_next_item(reader, &more));
                if (!more) {
                        state = JSON_ROW_END;
                        break;
                }
                size_t before = n;
                reader->at = read_quick(reader, type, out, capacity, &n, &at_value);
                top->state = at_value ? JSON_AT_VALUE : JSON_AFTER_VALUE;
                if (n > before)
                        continue;
                TRY(read_one(reader, type, out, n, &taken));
                if (!taken)
                        break;
                n++;
        }
        *out_n = n;
        *out_state = state;
        return STATUS_OK;
}

Status json_read_f32_row(JsonReader *reader, float *out, size_t capacity, size_t *out_n, JsonRow *out_state)
{
        return read_row(reader, ROW_F32, out, capacity, out_n, out_state);
}

Status json_read_f64_row(JsonReader *reader, double *out, size_t capacity, size_t *out_n, JsonRow *out_state)
{
        return read_row(reader, ROW_F64, out, capacity, out_n, out_state);
}

Status json_read_i64_row(JsonReader *reader, int64_t *out, size_t capacity, size_t *out_n, JsonRow *out_state)
{
        return read_row(reader, ROW_I64, out, capacity, out_n, out_state);
}
