// SPDX-License-Identifier: Apache-2.0
// tensor_lists.c: reads lists of lists in one pass, without recursion: a counter per level, numbers
// in rows straight into a growing buffer. Without a given type the first item decides and later
// ones may widen it, bool -> int64 -> float32, as torch.tensor would have decided from all of them.
#include "api/formats/tensor_lists.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "core/base/limits.h"

typedef struct Walk {
        Lists *lists;
        JsonReader *reader;
        int depth, max_rank;
        int64_t count[MAX_RANK + 1]; // items met so far in the open list of each level
} Walk;

static size_t item_bytes(ListType type)
{
        switch (type) {
        case LIST_BOOL:
                return 1;
        case LIST_F32:
                return sizeof(float);
        default:
                return 8;
        }
}

void lists_deinit(Lists *lists)
{
        free(lists->data);
        budget_give(lists->budget, lists->charged);
        *lists = (Lists){ .rank = -1 };
}

// Room for one more item at least. The buffer doubles; its bytes are charged before they are taken.
static Status grow(Lists *lists)
{
        size_t capacity = lists->capacity == 0 ? 256 : lists->capacity * 2, bytes;
        if ((int64_t)lists->n >= limits.max_numel)
                return fail(STATUS_TOO_LARGE,
                            "a tensor has more than %" PRId64 " elements (max_numel in GET /v1)",
                            limits.max_numel);
        if (!mul_size(capacity, item_bytes(lists->type), &bytes))
                return fail_memory();
        if (bytes > lists->charged) {
                if (!budget_take(lists->budget, bytes - lists->charged))
                        return fail(STATUS_TOO_LARGE,
                                    "the tensors of this request need more than %zu bytes (--max-run-memory)",
                                    lists->budget->limit);
                lists->charged = bytes;
        }
        void *grown = realloc(lists->data, bytes);
        if (grown == NULL)
                return fail_memory();
        lists->data = grown;
        lists->capacity = capacity;
        return STATUS_OK;
}

static Status reserve_one(Lists *lists)
{
        return lists->n < lists->capacity ? STATUS_OK : grow(lists);
}

// Turns what has been read into a wider type: bool -> int64, bool or int64 -> float32.
static Status widen(Lists *lists, ListType type)
{
        Lists wide = { .type = type, .budget = lists->budget, .rank = lists->rank };
        memcpy(wide.size, lists->size, sizeof(wide.size));
        Status status = STATUS_OK;
        while (wide.capacity <= lists->n && status == STATUS_OK)
                status = grow(&wide);
        if (status != STATUS_OK) {
                lists_deinit(&wide);
                return status;
        }
        for (size_t i = 0; i < lists->n; i++) {
                int64_t value =
                        lists->type == LIST_BOOL ? ((uint8_t *)lists->data)[i] : ((int64_t *)lists->data)[i];
                if (type == LIST_I64)
                        ((int64_t *)wide.data)[i] = value;
                else
                        ((float *)wide.data)[i] = (float)value;
        }
        wide.n = lists->n;
        lists_deinit(lists);
        *lists = wide;
        return STATUS_OK;
}

void lists_place(const Lists *lists, size_t i, char *out, size_t cap)
{
        out[0] = '\0';
        size_t inner = lists->n, at = 0;
        for (int d = 0; d < lists->rank && at < cap; d++) {
                inner = lists->size[d] > 0 ? inner / (size_t)lists->size[d] : 1;
                at += (size_t)snprintf(out + at, cap - at, "[%zu]", inner > 0 ? i / inner : i);
                i = inner > 0 ? i % inner : 0;
        }
}

// Where the walk stands: "[0][2]"; the item that comes next at the innermost level.
static const char *place(const Walk *walk, int depth, char *out, size_t cap)
{
        size_t at = 0;
        out[0] = '\0';
        for (int d = 0; d < depth && at < cap; d++)
                at += (size_t)snprintf(out + at, cap - at, "[%" PRId64 "]", walk->count[d]);
        return out;
}

static Status fail_ragged(const Walk *walk, int64_t expected, int64_t got)
{
        char where[128];
        int dim = walk->depth - 1;
        return fail(STATUS_VALUE,
                    "expected sequence of length %" PRId64 " at dim %d (got %" PRId64
                    "): the list at %s is not as long as the ones before it",
                    expected, dim, got, place(walk, dim, where, sizeof(where)));
}

// ---- one item ----

static Status fail_kind(const Walk *walk, const char *wanted, const char *got)
{
        char where[128];
        place(walk, walk->depth, where, sizeof(where));
        return fail(STATUS_VALUE, "expected %s%s%s, got %s", wanted, where[0] == '\0' ? "" : " at ", where,
                    got);
}

static const char *wanted_kind(const Lists *lists)
{
        return lists->type == LIST_BOOL                             ? "true or false"
               : lists->type == LIST_I64 || lists->type == LIST_U64 ? "an integer"
                                                                    : "a number";
}

// As in Python, True is 1 where a number is wanted.
static Status store_bool(Walk *walk, bool value)
{
        Lists *lists = walk->lists;
        if (lists->type == LIST_GUESS)
                lists->type = LIST_BOOL;
        TRY(reserve_one(lists));
        if (lists->type == LIST_BOOL)
                ((uint8_t *)lists->data)[lists->n] = value;
        else if (lists->type == LIST_F32)
                ((float *)lists->data)[lists->n] = value;
        else if (lists->type == LIST_F64)
                ((double *)lists->data)[lists->n] = value;
        else
                ((int64_t *)lists->data)[lists->n] = value;
        lists->n++;
        return STATUS_OK;
}

// uint64 exceeds the range of the number scanner.
static Status read_u64(Walk *walk)
{
        Lists *lists = walk->lists;
        const char *text;
        size_t n;
        TRY(json_read_raw(walk->reader, &text, &n));
        uint64_t sum = 0;
        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
                    __builtin_add_overflow(sum, (uint64_t)(text[i] - '0'), &sum))
                        return fail_kind(walk, "an integer from 0 to 2^64 - 1", "another number");
        }
        TRY(reserve_one(lists));
        ((uint64_t *)lists->data)[lists->n++] = sum;
        return STATUS_OK;
}

static Status store_float(Walk *walk, double value, const char *text)
{
        Lists *lists = walk->lists;
        if (isinf(value) || (lists->type == LIST_F32 && isinf((float)value)))
                return fail_kind(
                        walk, lists->type == LIST_F32 ? "a number within float32" : "a number within float64",
                        text);
        TRY(reserve_one(lists));
        if (lists->type == LIST_F32)
                ((float *)lists->data)[lists->n++] = (float)value;
        else
                ((double *)lists->data)[lists->n++] = value;
        return STATUS_OK;
}

// Integers are wanted. 1.0 would be an integer, but a list of floats is more often a mistake, so it
// is refused.
static Status fail_fraction(Walk *walk, double value, const char *text)
{
        if (walk->lists->type == LIST_BOOL || floor(value) != value || fabs(value) > 9e15)
                return fail_kind(walk, wanted_kind(walk->lists), text);
        char advice[128];
        snprintf(advice, sizeof(advice), "%s, which is written as a float; write %.0f", text, value);
        return fail_kind(walk, wanted_kind(walk->lists), advice);
}

// A number that is not (known to be) a float: it may settle or widen the type.
static Status store_number(Walk *walk, bool integer, int64_t whole, double value, const char *text)
{
        Lists *lists = walk->lists;
        ListType type = integer ? LIST_I64 : LIST_F32;
        if (!integer && lists->fixed)
                return fail_fraction(walk, value, text);
        if (lists->type == LIST_GUESS)
                lists->type = type;
        else if (lists->type != type)
                TRY(widen(lists, type));
        if (!integer)
                return store_float(walk, value, text);
        TRY(reserve_one(lists));
        ((int64_t *)lists->data)[lists->n++] = whole;
        return STATUS_OK;
}

static Status read_number(Walk *walk)
{
        Lists *lists = walk->lists;
        const char *raw;
        char text[64];
        size_t n;
        NumberKind kind;
        int64_t whole = 0;
        double value;
        if (lists->type == LIST_U64)
                return read_u64(walk);
        TRY(json_read_raw(walk->reader, &raw, &n));
        if (number_scan(raw, raw + n, &kind, &whole, &value) == NULL)
                return fail_kind(walk, "a number", "something else");
        snprintf(text, sizeof(text), "%.*s%s", (int)MIN(n, 40u), raw, n > 40 ? "..." : "");
        bool integer =
                memchr(raw, '.', n) == NULL && memchr(raw, 'e', n) == NULL && memchr(raw, 'E', n) == NULL;
        if (lists->type == LIST_F32 || lists->type == LIST_F64)
                return store_float(walk, value, text);
        if (lists->fixed && lists->type == LIST_BOOL) {
                if (kind != NUMBER_INT || (whole != 0 && whole != 1))
                        return fail_kind(walk, "true or false", text);
                return store_bool(walk, whole == 1);
        }
        if (integer && kind != NUMBER_INT)
                return fail_kind(walk, "an integer within int64", text);
        return store_number(walk, integer, whole, value, text);
}

static bool takes_floats(const Lists *lists)
{
        return !lists->fixed || lists->type == LIST_F32 || lists->type == LIST_F64;
}

// What a quoted text was probably meant to be; "" when unknown.
static void advise_word(const Lists *lists, const char *text, size_t n, char *out, size_t capacity)
{
        static const char *const spellings[][2] = {
                { "nan", "NaN" },           { "+nan", "NaN" },
                { "inf", "Infinity" },      { "+inf", "Infinity" },
                { "infinity", "Infinity" }, { "+infinity", "Infinity" },
                { "-inf", "-Infinity" },    { "-infinity", "-Infinity" },
        };
        static const char *const files[] = { ".npy", ".npz",         ".json", ".csv", ".txt",
                                             ".pt",  ".safetensors", ".png",  ".jpg" };
        NumberKind kind;
        int64_t whole;
        double value;
        out[0] = '\0';
        for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++)
                if (strlen(spellings[i][0]) == n && strncasecmp(text, spellings[i][0], n) == 0) {
                        snprintf(out, capacity,
                                 takes_floats(lists) ? "; write \"%s\"" : "; integers have no %s",
                                 spellings[i][1]);
                        return;
                }
        bool is_file = n > 0 && text[0] == '@';
        for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
                is_file |= n > strlen(files[i]) &&
                           strncasecmp(text + n - strlen(files[i]), files[i], strlen(files[i])) == 0;
        if (is_file)
                snprintf(out, capacity,
                         "; a file is sent as the body, curl --data-binary @x.npy ..., or as a part: curl -F "
                         "x=@x.npy ...");
        else if (n > 0 && text[0] == '[')
                snprintf(out, capacity, "; write the list without the quotes around it");
        else if (n > 0 && n < 40 && number_scan(text, text + n, &kind, &whole, &value) == text + n)
                snprintf(out, capacity, "; write it without quotes: %.*s", (int)n, text);
}

static Status fail_word(Walk *walk, const char *raw, size_t n)
{
        char text[200], advice[128];
        advise_word(walk->lists, raw + 1, n - 2, advice, sizeof(advice));
        snprintf(text, sizeof(text), "%.*s%s", (int)MIN(n, 60u), raw, advice);
        return fail_kind(walk, wanted_kind(walk->lists), text);
}

static Status read_word(Walk *walk)
{
        Lists *lists = walk->lists;
        const char *raw;
        size_t n;
        TRY(json_read_raw(walk->reader, &raw, &n));
        bool nan = n == 5 && memcmp(raw, "\"NaN\"", n) == 0,
             minus = n == 11 && memcmp(raw, "\"-Infinity\"", n) == 0;
        if ((!nan && !minus && !(n == 10 && memcmp(raw, "\"Infinity\"", n) == 0)) || !takes_floats(lists))
                return fail_word(walk, raw, n);
        if (lists->type == LIST_GUESS)
                lists->type = LIST_F32;
        else if (lists->type == LIST_BOOL || lists->type == LIST_I64)
                TRY(widen(lists, LIST_F32));
        TRY(reserve_one(lists));
        double value = nan ? (double)NAN : minus ? -(double)INFINITY : (double)INFINITY;
        if (lists->type == LIST_F32)
                ((float *)lists->data)[lists->n++] = (float)value;
        else
                ((double *)lists->data)[lists->n++] = value;
        return STATUS_OK;
}

static Status read_item(Walk *walk)
{
        bool value;
        switch (json_peek(walk->reader)) {
        case JSON_NUMBER:
                return read_number(walk);
        case JSON_TRUE:
        case JSON_FALSE:
                TRY(json_read_bool(walk->reader, &value));
                return store_bool(walk, value);
        case JSON_STRING:
                return read_word(walk);
        case JSON_NULL:
                return fail_kind(walk, wanted_kind(walk->lists),
                                 takes_floats(walk->lists) ? "null; write \"NaN\" for a value that is missing"
                                                           : "null");
        case JSON_OBJECT:
                return fail_kind(walk, wanted_kind(walk->lists), "an object");
        default:
                return json_skip(walk->reader); // words the failure
        }
}

// ---- lists ----

// Numbers of the open list, as many as come in a row.
static Status read_row(Walk *walk, JsonRow *out_state)
{
        Lists *lists = walk->lists;
        size_t n = 0;
        if (lists->type != LIST_F32 && lists->type != LIST_F64 && lists->type != LIST_I64) {
                bool more;
                TRY(json_next_item(walk->reader, &more));
                *out_state = more ? JSON_ROW_OTHER : JSON_ROW_END;
                return STATUS_OK;
        }
        TRY(reserve_one(lists));
        size_t room = lists->capacity - lists->n;
        if (lists->type == LIST_F32)
                TRY(json_read_f32_row(walk->reader, (float *)lists->data + lists->n, room, &n, out_state));
        else if (lists->type == LIST_F64)
                TRY(json_read_f64_row(walk->reader, (double *)lists->data + lists->n, room, &n, out_state));
        else
                TRY(json_read_i64_row(walk->reader, (int64_t *)lists->data + lists->n, room, &n, out_state));
        lists->n += n;
        walk->count[walk->depth - 1] += (int64_t)n;
        if (n > 0 && lists->rank < 0)
                lists->rank = walk->depth;
        return STATUS_OK;
}

static Status fail_depth(const Walk *walk, bool list)
{
        char where[128];
        place(walk, walk->depth, where, sizeof(where));
        if (walk->lists->rank < 0)
                return fail(STATUS_VALUE, "lists are nested more than %d deep at %s", walk->max_rank, where);
        return fail(STATUS_VALUE, "expected %s at %s, got %s: lists before it are nested %d deep",
                    list ? "a number" : "a list", where, list ? "a list" : "a number", walk->lists->rank);
}

static Status open_list(Walk *walk)
{
        Lists *lists = walk->lists;
        if (walk->depth == walk->max_rank || (lists->rank >= 0 && walk->depth >= lists->rank))
                return fail_depth(walk, true);
        TRY(json_enter_array(walk->reader));
        walk->count[walk->depth++] = 0;
        return STATUS_OK;
}

// The list that just ended must be as long as its siblings; then it counts as one item of the list
// around it.
static Status close_list(Walk *walk)
{
        Lists *lists = walk->lists;
        int64_t *size = &lists->size[walk->depth - 1], count = walk->count[walk->depth - 1];
        if (lists->rank < 0)
                lists->rank = walk->depth; // an empty list ends the nesting
        if (*size >= 0 && *size != count)
                return fail_ragged(walk, *size, count);
        *size = count;
        walk->depth--;
        if (walk->depth > 0)
                walk->count[walk->depth - 1]++;
        return STATUS_OK;
}

static Status read_other(Walk *walk)
{
        if (json_peek(walk->reader) == JSON_ARRAY)
                return open_list(walk);
        if (walk->lists->rank >= 0 && walk->lists->rank != walk->depth)
                return fail_depth(walk, false);
        TRY(read_item(walk));
        walk->lists->rank = walk->depth;
        walk->count[walk->depth - 1]++;
        return STATUS_OK;
}

Status lists_read(Lists *lists, JsonReader *reader, int max_rank)
{
        Walk walk = { .lists = lists, .reader = reader, .max_rank = max_rank };
        lists->rank = -1;
        for (int d = 0; d <= MAX_RANK; d++)
                lists->size[d] = -1;
        if (json_peek(reader) != JSON_ARRAY) {
                TRY(read_item(&walk));
                lists->rank = 0;
                return STATUS_OK;
        }
        TRY(open_list(&walk));
        while (walk.depth > 0) {
                JsonRow state;
                bool met = lists->rank >= 0;
                int64_t before = walk.count[walk.depth - 1];
                TRY(read_row(&walk, &state));
                if (met && walk.count[walk.depth - 1] != before && lists->rank != walk.depth) {
                        walk.count[walk.depth - 1] = before;
                        return fail_depth(&walk, false);
                }
                if (state == JSON_ROW_END)
                        TRY(close_list(&walk));
                else if (state == JSON_ROW_OTHER)
                        TRY(read_other(&walk));
        }
        return STATUS_OK;
}
