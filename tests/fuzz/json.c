// SPDX-License-Identifier: Apache-2.0
// The JSON pull parser: a walk that reads every value as what it says it is, json_skip and
// json_read_raw over the same document. What the walk takes, the other two take; what they refuse,
// the walk refuses. First byte: the caps.
#include "core/base/json.h"
#include "tests/fuzz/fuzz.h"

typedef struct Walk {
        JsonReader *reader;
        char kinds[JSON_MAX_DEPTH + 1];
        int depth;
} Walk;

// One value that is no container, or the way into one.
static Status take(Walk *walk, unsigned how)
{
        JsonReader *reader = walk->reader;
        NumberKind kind;
        int64_t integer;
        double value;
        float row[4];
        const char *text;
        size_t n;
        bool flag;
        JsonRow state;
        int line, column;
        json_position(reader, &line, &column);
        require(line >= 1 && column >= 1, "line %d, column %d", line, column);
        switch (json_peek(reader)) {
        case JSON_NULL:
                return json_read_null(reader);
        case JSON_TRUE:
        case JSON_FALSE:
                return json_read_bool(reader, &flag);
        case JSON_NUMBER:
                return json_read_number(reader, &kind, &integer, &value);
        case JSON_STRING:
                TRY(json_read_string(reader, &text, &n));
                require(strlen(text) == n, "a string of %zu bytes ends after %zu", n, strlen(text));
                return STATUS_OK;
        case JSON_ARRAY:
                TRY(json_enter_array(reader));
                walk->kinds[++walk->depth] = '[';
                if (how % 2 == 1) {
                        TRY(json_read_f32_row(reader, row, 4, &n, &state));
                        require(n <= 4, "a row of %zu", n);
                        walk->depth -= state == JSON_ROW_END;
                }
                return STATUS_OK;
        case JSON_OBJECT:
                TRY(json_enter_object(reader));
                walk->kinds[++walk->depth] = '{';
                return STATUS_OK;
        default:
                return json_skip(reader); // gives the failure
        }
}

static Status walk_all(Walk *walk, unsigned how)
{
        TRY(take(walk, how));
        while (walk->depth > 0) {
                const char *key;
                bool more;
                if (walk->kinds[walk->depth] == '{')
                        TRY(json_next_key(walk->reader, &key, &more));
                else
                        TRY(json_next_item(walk->reader, &more));
                if (!more)
                        walk->depth--;
                else
                        TRY(take(walk, how));
        }
        return json_finish(walk->reader);
}

typedef enum Pass { PASS_WALK, PASS_SKIP, PASS_RAW } Pass;

static Status one(const char *text, size_t n, unsigned how, Pass pass)
{
        Arena arena;
        Walk walk = { .depth = 0 };
        arena_init(&arena, 0);
        Status status =
                json_open(text, n, 1 + (int)(how >> 1 & 31), how & 64 ? 100 : 0, &arena, &walk.reader);
        if (status == STATUS_OK && pass == PASS_WALK)
                status = walk_all(&walk, how);
        if (status == STATUS_OK && pass != PASS_WALK) {
                const char *raw;
                size_t n_raw;
                status =
                        pass == PASS_SKIP ? json_skip(walk.reader) : json_read_raw(walk.reader, &raw, &n_raw);
                if (status == STATUS_OK)
                        status = json_finish(walk.reader);
                if (status == STATUS_OK && pass == PASS_RAW)
                        require(raw >= text && raw + n_raw <= text + n,
                                "the raw value lies outside of the document");
        }
        if (status != STATUS_OK)
                require_told(status);
        json_close(walk.reader);
        arena_deinit(&arena);
        return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        if (n == 0)
                return 0;
        char *text = malloc(n); // one byte more than is given, so that n is never 0
        require(text != NULL, "no memory");
        memcpy(text, data + 1, n - 1);
        Status walked = one(text, n - 1, data[0], PASS_WALK), skipped = one(text, n - 1, data[0], PASS_SKIP),
               raw = one(text, n - 1, data[0], PASS_RAW);
        require(skipped == raw, "skipping gives %s, reading raw %s", status_code(skipped), status_code(raw));
        // Rows do not count as values: a walk with rows may take more values than the cap.
        if (walked == STATUS_OK && (data[0] & 1) == 0)
                require(skipped == STATUS_OK, "read well, but skipping gives %s", status_code(skipped));
        free(text);
        return 0;
}
