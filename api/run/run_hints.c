// SPDX-License-Identifier: Apache-2.0
// Hints added to a failed run request's message: which input failed, and what was probably meant.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/run/run_private.h"

// ---- naming the input ----
Status run_name_input(Status status, const char *name)
{
        char argument[FAILURE_PLACE_MAX], message[FAILURE_MESSAGE_MAX];
        const Failure *failure = failure_current();
        bool about_the_value = status == STATUS_VALUE || status == STATUS_INPUT || status == STATUS_SHAPE ||
                               status == STATUS_DTYPE || status == STATUS_UNKNOWN_MEMBER;
        if (about_the_value && strncmp(failure->message, "line ", 5) != 0 &&
            strncmp(failure->message, "input \"", 7) != 0) {
                snprintf(argument, sizeof(argument), "%s", failure->argument);
                snprintf(message, sizeof(message), "%s", failure->message);
                fail(status, "input \"%.100s\": %s", name, message);
                failure_at_argument(status, argument[0] == '\0' ? NULL : argument);
        }
        return failure_at_argument(status, name);
}

// ---- "inputs" as a list ----
// The items of a short list: where each begins in the text, and where it ends.
typedef struct ListItems {
        uint32_t n;
        const char *from[RUN_HINT_BYTES / 2];
        size_t length[RUN_HINT_BYTES / 2];
} ListItems;

// The length of the list that begins at text[0]; 0 if it is longer than RUN_HINT_BYTES, or does not
// end.
static size_t list_length(const char *text, size_t n)
{
        int depth = 0;
        bool quoted = false;
        for (size_t i = 0; i < n && i < RUN_HINT_BYTES; i++) {
                if (text[i] == '"')
                        quoted = !quoted;
                else if (quoted && text[i] == '\\')
                        i++;
                else if (!quoted && (text[i] == '[' || text[i] == '{'))
                        depth++;
                else if (!quoted && (text[i] == ']' || text[i] == '}') && --depth == 0)
                        return i + 1;
        }
        return 0;
}

void run_note_list(RunCall *run, const char *text, size_t n)
{
        size_t length = list_length(text, n);
        run->inputs_as_list = true;
        memcpy(run->inputs_text, text, length);
        run->inputs_text[length] = '\0';
}

static void split_items(const char *text, ListItems *out)
{
        int depth = 0;
        bool quoted = false;
        out->n = 0;
        const char *from = text + 1;
        for (const char *at = text; *at != '\0'; at++) {
                if (*at == '"' && (at == text || at[-1] != '\\'))
                        quoted = !quoted;
                if (quoted)
                        continue;
                depth += (*at == '[' || *at == '{') - (*at == ']' || *at == '}');
                if (depth > 1 || (depth == 1 && *at != ','))
                        continue;
                if (at > from + strspn(from, " \t\r\n")) {
                        from += strspn(from, " \t\r\n");
                        const char *end = at;
                        while (end > from && strchr(" \t\r\n", end[-1]) != NULL)
                                end--;
                        out->from[out->n] = from;
                        out->length[out->n++] = (size_t)(end - from);
                }
                from = at + 1;
        }
}

// {"x": first, "z": ...}: what was sent, under the names of the arguments. A list that is too long
// is taken for the first argument.
static void suggest_by_name(const RunCall *run, uint32_t n, const ListItems *items)
{
        bool whole = items->n > n;
        failure_append("; did you mean {\"inputs\": {");
        for (uint32_t i = 0; i < n; i++) {
                failure_append("%s\"%s\": ", i == 0 ? "" : ", ", run_argument_name(run, i));
                if (whole && i == 0)
                        failure_append("%s", run->inputs_text);
                else if (!whole && i < items->n)
                        failure_append("%.*s", (int)items->length[i], items->from[i]);
                else
                        failure_append("...");
        }
        failure_append("}}?");
}

static void hint_of_list(const RunCall *run)
{
        enum { MOST_NAMES = 8 };
        uint32_t n = run_n_arguments(run);
        bool named = n > 0 && n <= MOST_NAMES;
        ListItems items;
        split_items(run->inputs_text, &items);
        failure_append(": \"inputs\" as a list holds one entry per argument");
        for (uint32_t i = 0; named && n > 1 && i < n; i++)
                failure_append("%s%s", i == 0 ? ", here " : ", ", run_argument_name(run, i));
        if (n == 1 && run->inputs_text[0] == '\0')
                failure_append("; a tensor's numbers nest inside: {\"inputs\": [[1.0, 2.0]]}");
        else if (n == 1 && items.n > 0)
                failure_append("; did you mean {\"inputs\": [%s]} or {\"inputs\": {\"%s\": %s}}?",
                               run->inputs_text, run_argument_name(run, 0), run->inputs_text);
        else if (named && items.n > 0 && items.n != n)
                suggest_by_name(run, n, &items);
}

// When no input was sent at all, naming the first missing one would mislead.
static Status fail_nothing_sent(const RunCall *run)
{
        if (run->sent == RUN_SENT_NO_BODY)
                return fail(STATUS_INPUT, "the body is empty; send {\"inputs\": {...}}");
        return fail(STATUS_INPUT, "the body has no \"inputs\"; send {\"inputs\": {\"%s\": ...}}",
                    run->task.user[0]->placeholder->target);
}

Status run_add_hints(const RunCall *run, Status status)
{
        const Failure *failure = failure_current();
        if (run->sent != RUN_SENT_INPUTS && status == STATUS_INPUT && run->task.n_inputs > 0 &&
            failure->node[0] == '\0')
                return fail_nothing_sent(run);
        if (run->inputs_as_list && (status == STATUS_SHAPE || status == STATUS_INPUT) &&
            failure->node[0] == '\0')
                hint_of_list(run);
        if (run->guessed_int != NULL && status == STATUS_DTYPE)
                failure_append("\n\"%s\" was read as int64 because every number is an integer; write 1.0, "
                               "send {\"dtype\": \"float32\", "
                               "\"data\": ...}, or declare it in "
                               "the graph",
                               run->guessed_int);
        return status;
}

static bool is_argument(const RunCall *run, const char *name)
{
        for (uint32_t i = 0; i < run_n_arguments(run); i++)
                if (strcmp(run_argument_name(run, i), name) == 0)
                        return true;
        return false;
}

Status run_add_list_hint(const RunCall *run, Status status)
{
        ListItems items;
        if (!run->inputs_as_list || strncmp(failure_current()->message, "line ", 5) == 0)
                return status;
        split_items(run->inputs_text, &items);
        if (status == STATUS_UNKNOWN_MEMBER && items.n == 1 && items.from[0][0] == '{' &&
            is_argument(run, failure_current()->argument))
                failure_append("; did you mean {\"inputs\": %.*s}?", (int)items.length[0], items.from[0]);
        bool too_many =
                status == STATUS_INPUT && strncmp(failure_current()->message, "\"inputs\" holds", 14) == 0;
        if (too_many || (status == STATUS_VALUE && items.n > 0 && items.n != run_n_arguments(run)))
                hint_of_list(run);
        return status;
}

// ---- an int, and what was sent instead ----
static Status fail_number(const char *raw, size_t n, double number)
{
        if (floor(number) == number && fabs(number) < 9e15)
                return fail(STATUS_INPUT, "an int is expected, and %.*s is written as a float; send %.0f",
                            (int)MIN(n, 40u), raw, number);
        return fail(STATUS_INPUT, "an int is expected; %.*s is no whole number of 64 bits", (int)MIN(n, 40u),
                    raw);
}

Status run_read_whole(JsonReader *reader, int64_t *out)
{
        NumberKind kind;
        double number;
        const char *raw;
        size_t n;
        JsonType type = json_peek(reader);
        TRY(json_read_raw(reader, &raw, &n));
        switch (type) {
        case JSON_NUMBER:
                if (number_scan(raw, raw + n, &kind, out, &number) == NULL)
                        return fail(STATUS_INTERNAL, "a number that was read is none");
                if (kind == NUMBER_INT && memchr(raw, '.', n) == NULL && memchr(raw, 'e', n) == NULL &&
                    memchr(raw, 'E', n) == NULL)
                        return STATUS_OK;
                return fail_number(raw, n, kind == NUMBER_INT ? (double)*out : number);
        case JSON_TRUE:
        case JSON_FALSE:
                return fail(STATUS_INPUT, "an int is expected, and %.*s is a bool; send %d", (int)n, raw,
                            type == JSON_TRUE);
        case JSON_STRING:
                return fail(STATUS_INPUT,
                            "an int is expected, and %.*s is a text; send the number without quotes",
                            (int)MIN(n, 40u), raw);
        case JSON_NULL:
                return fail(STATUS_INPUT, "an int is expected, not null");
        default:
                return fail(STATUS_INPUT, "an int is expected; send the number itself, not %s",
                            type == JSON_ARRAY ? "a list" : "an object");
        }
}

// ---- members of the body ----
void run_hint_of_member(const RunCall *run, const char *key)
{
        static const struct {
                const char *key, *hint;
        } hints[] = {
                { "input", "did you mean \"inputs\"?" },
                { "instances", "did you mean \"inputs\"?" },
                { "data", "did you mean \"inputs\"?" },
                { "args", "did you mean {\"inputs\": {\"$args\": [...]}}?" },
                { "kwargs", "did you mean {\"inputs\": {\"$kwargs\": {...}}}?" },
                { "output", "did you mean \"outputs\"?" },
                { "timeout", "did you mean \"deadline_ms\"?" },
                { "as", "it stands in the query: ?as=npz" },
                { "graph", "POST /v1/run takes a graph and its inputs in one body" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(hints); i++)
                if (strcmp(hints[i].key, key) == 0) {
                        failure_append("; %s", hints[i].hint);
                        return;
                }
        if (is_argument(run, key))
                failure_append("; inputs stand inside: {\"inputs\": {\"%.100s\": ...}}", key);
}
