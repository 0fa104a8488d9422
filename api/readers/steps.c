// SPDX-License-Identifier: Apache-2.0
// steps.c: a recipe, step by step. Arguments of a step name nodes of the graph as the earlier steps
// left it, so a step is read when its turn has come. Until then it is text.
#include "api/readers/steps.h"

#include <stdio.h>
#include <string.h>
#include "api/readers/steps_parts.h"
#include "core/base/limits.h"

enum { MAX_SAVED_DEPTH = 8, MAX_KIND_TEXT = 200 };

const StepMemberRow step_members[MEMBER_COUNT] = {
#define MEMBER(id, text, is, does)                                                                           \
        [MEMBER_##id] = { .name = (text), .type = STEP_TYPE_##is, .words = (does) },
#define STEP(...)
#include "api/readers/steps.def"
#undef MEMBER
#undef STEP
};

#define NEEDS(...)                                                                                           \
        {                                                                                                    \
                __VA_ARGS__                                                                                  \
        }
#define TAKES NEEDS
const StepRow step_rows[] = {
#define MEMBER(...)
#define STEP(is, called, function, does, needs, takes) { STEP_##is, #called, does, function, needs, takes },
#include "api/readers/steps.def"
#undef MEMBER
#undef STEP
};
const uint32_t n_step_rows = ARRAY_LENGTH(step_rows);

static const char *const kind_keys[STEP_KIND_COUNT] = { [STEP_EDIT] = "edit", [STEP_PASS] = "pass" };

// ---- which step ----

// What a step's object says before its members are read.
typedef struct StepHead {
        const StepRow *row;  // NULL: a saved list
        const char *saved;   // its name
        const char *members; // OBJECT: the object with the members
        size_t n_members;
} StepHead;

static const StepRow *find_row(StepKind kind, const char *name)
{
        for (uint32_t i = 0; i < n_step_rows; i++) {
                if (step_rows[i].kind == kind && strcmp(step_rows[i].name, name) == 0)
                        return &step_rows[i];
        }
        return NULL;
}

static Status refuse_edit(const char *name)
{
        Status status = fail(STATUS_UNKNOWN_MEMBER, "there is no edit \"%.60s\"; it knows", name);
        for (uint32_t i = 0, n = 0; i < n_step_rows; i++) {
                if (step_rows[i].kind == STEP_EDIT)
                        failure_append("%s %s", n++ == 0 ? "" : ",", step_rows[i].name);
        }
        return status;
}

static Status take_kind(JsonReader *json, StepKind kind, StepHead *head)
{
        const char *name;
        if (json_peek(json) != JSON_STRING)
                return fail(STATUS_MALFORMED, "\"%s\" is a text", kind_keys[kind]);
        TRY(json_read_string(json, &name, NULL));
        head->row = find_row(kind, name);
        if (head->row == NULL && kind == STEP_EDIT)
                return refuse_edit(name);
        head->saved = head->row == NULL ? name : NULL;
        return STATUS_OK;
}

// Finds out what the step is. Other members are skipped.
static Status read_head(JsonReader *json, StepHead *out_head)
{
        bool found = false;
        if (json_peek(json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "a step is an object: {\"edit\": \"erase\", \"node\": \"a\"}");
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                StepKind kind = strcmp(key, "edit") == 0 ? STEP_EDIT : STEP_PASS;
                const StepRow *object = find_row(STEP_OBJECT, key), *direct = find_row(STEP_DIRECTLY, key);
                bool names = strcmp(key, kind_keys[kind]) == 0;
                if (found || (!names && object == NULL && direct == NULL)) {
                        TRY(json_skip(json));
                        continue;
                }
                found = true;
                if (names) {
                        TRY(take_kind(json, kind, out_head));
                } else {
                        out_head->row = object != NULL ? object : direct;
                        if (object != NULL && json_peek(json) != JSON_OBJECT)
                                return fail(STATUS_MALFORMED, "\"%s\" is an object", key);
                        if (object != NULL)
                                TRY(json_read_raw(json, &out_head->members, &out_head->n_members));
                        else
                                TRY(json_skip(json));
                }
        }
        return found ? STATUS_OK
                     : fail(STATUS_UNKNOWN_MEMBER,
                            "a step has \"edit\", \"pass\", \"rewrite\", \"leaf\", \"match\" or \"lint\"");
}

// ---- its members ----

static StepMember member_named(const StepRow *row, const char *key)
{
        for (int i = 0; row->needs[i] != MEMBER_NONE; i++) {
                if (strcmp(step_members[row->needs[i]].name, key) == 0)
                        return row->needs[i];
        }
        for (int i = 0; row->takes[i] != MEMBER_NONE; i++) {
                if (strcmp(step_members[row->takes[i]].name, key) == 0)
                        return row->takes[i];
        }
        return MEMBER_NONE;
}

static Status refuse_member(const StepRow *row, const char *key)
{
        Status status = fail(STATUS_UNKNOWN_MEMBER, "the step has no member \"%.60s\"; it knows", key);
        int n = 0;
        for (int i = 0; row->needs[i] != MEMBER_NONE; i++)
                failure_append("%s %s", n++ == 0 ? "" : ",", step_members[row->needs[i]].name);
        for (int i = 0; row->takes[i] != MEMBER_NONE; i++)
                failure_append("%s %s", n++ == 0 ? "" : ",", step_members[row->takes[i]].name);
        if (n == 0)
                failure_append(" none");
        return status;
}

static Status read_members(JsonReader *json, Step *step)
{
        const StepRow *row = step->row;
        const char *kind = kind_keys[row->kind];
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                if (kind != NULL && strcmp(key, kind) == 0) {
                        TRY(json_skip(json));
                        continue;
                }
                StepMember member = member_named(row, key);
                if (member == MEMBER_NONE)
                        return failure_at_argument(refuse_member(row, key), key);
                if (json_peek(json) == JSON_NULL && step_members[member].type != STEP_TYPE_VALUE) {
                        TRY(json_skip(json)); // as if it were not there
                        continue;
                }
                TRY(json_read_raw(json, &step->values[member].raw, &step->values[member].n_raw));
        }
        for (int i = 0; row->needs[i] != MEMBER_NONE; i++) {
                if (!step_has(step, row->needs[i]))
                        return fail(STATUS_MALFORMED, "the step needs \"%s\": %s",
                                    step_members[row->needs[i]].name, step_members[row->needs[i]].words);
        }
        return STATUS_OK;
}

static Status with_reader(const char *text, size_t n, Arena *arena, JsonReader **out_json)
{
        return json_open(text, n, (int)limits.max_json_depth_model, limits.max_json_values, arena, out_json);
}

// Fills in row and raw members. A saved list takes no members.
static Status read_step(const char *text, size_t n, Step *step, StepHead *out_head)
{
        _cleanup_(json_closep) JsonReader *json = NULL;
        _cleanup_(json_closep) JsonReader *members = NULL;
        *out_head = (StepHead){ 0 };
        TRY(with_reader(text, n, &step->scratch, &json));
        TRY(read_head(json, out_head));
        static const StepRow saved = { .kind = STEP_PASS };
        step->row = out_head->row == NULL ? &saved : out_head->row;
        bool inside = out_head->members != NULL;
        TRY(with_reader(inside ? out_head->members : text, inside ? out_head->n_members : n, &step->scratch,
                        &members));
        return read_members(members, step);
}

// ---- carrying out ----

static void add_name(Text *out, const char *name, bool *first)
{
        text_add(out, *first ? "" : ", ");
        text_add_json(out, name);
        *first = false;
}

static Status report(const Steps *steps, const Text *matches)
{
        Text *out = steps->report;
        const Edit *edit = steps->edit;
        bool first = true;
        if (out == NULL)
                return STATUS_OK;
        text_add(out, out->n == 0 ? "{\"changed\": [" : ",\n  {\"changed\": [");
        for (const Node *node = edit_first(edit); node != NULL; node = edit_next(node)) {
                if (edit_is_touched(edit, node))
                        add_name(out, node->name, &first);
        }
        text_add(out, "], \"erased\": [");
        first = true;
        for (uint32_t i = 0; edit_erased(edit, i) != NULL; i++)
                add_name(out, edit_erased(edit, i)->name, &first);
        text_add(out, "], \"matches\": [");
        if (matches->n > 0)
                text_add_n(out, matches->data, matches->n);
        text_add(out, "]}");
        if (out->n > (size_t)limits.max_response)
                return fail(STATUS_TOO_LARGE, "the report is more than %lld bytes (--max-response)",
                            (long long)limits.max_response);
        return text_status(out);
}

// Without the white space between its parts.
static Status note_done(const Step *step)
{
        Text *out = step->steps->done;
        bool quoted = false;
        if (out == NULL)
                return STATUS_OK;
        text_add(out, out->n == 0 ? "" : ",");
        for (size_t i = 0; i < step->n_text; i++) {
                char c = step->text[i];
                if (!quoted && strchr(" \t\r\n", c) != NULL)
                        continue;
                text_add_char(out, c);
                if (quoted && c == '\\')
                        text_add_char(out, step->text[++i]);
                else
                        quoted ^= c == '"';
        }
        return text_status(out);
}

static Status carry_out(Step *step)
{
        _cleanup_(text_deinit) Text matches = { 0 };
        Steps *steps = step->steps;
        TRY(edit_step(step->edit));
        TRY(step_read_values(step));
        step->matches = steps->report == NULL ? NULL : &matches;
        TRY(step->row->run(step));
        TRY(edit_lint(step->edit));
        TRY(note_done(step));
        return report(steps, &matches);
}

static Status run_list(Steps *steps, const char *text, size_t n);

static Status run_saved(Steps *steps, const char *name)
{
        _cleanup_(text_deinit) Text list = { 0 };
        TRY(edit_step(steps->edit));
        Status status = STATUS_NOT_FOUND;
        if (steps->saved != NULL)
                status = steps->saved->find(steps->saved->context, name, &list);
        if (status == STATUS_NOT_FOUND) {
                fail(STATUS_NOT_FOUND, "there is no pass \"%.64s\", neither saved nor among", name);
                for (uint32_t i = 0, k = 0; i < n_step_rows; i++) {
                        if (step_rows[i].kind == STEP_PASS)
                                failure_append("%s %s", k++ == 0 ? "" : ",", step_rows[i].name);
                }
        }
        TRY(status);
        if (steps->depth >= MAX_SAVED_DEPTH)
                return fail(STATUS_TOO_LARGE, "saved passes name saved passes more than %d deep",
                            MAX_SAVED_DEPTH);
        steps->depth++;
        status = run_list(steps, list.data == NULL ? "[]" : list.data, list.data == NULL ? 2 : list.n);
        steps->depth--;
        return status;
}

// What stands in front of a failure's message: `steps[2] (erase)`.
static Status blame(Status status, uint32_t index, const StepHead *head)
{
        char place[MAX_KIND_TEXT];
        const char *name = head->row != NULL ? head->row->name : head->saved;
        if (name == NULL)
                snprintf(place, sizeof(place), "steps[%u]", index);
        else
                snprintf(place, sizeof(place), "steps[%u] (%.64s)", index, name);
        fx_put_in_front(place);
        char number[16];
        snprintf(number, sizeof(number), "%u", index);
        return failure_detail(status, "step", number);
}

static Status run_step(Steps *steps, const char *text, size_t n, uint32_t index)
{
        StepHead head;
        Step step = { .steps = steps, .edit = steps->edit, .text = text, .n_text = n };
        arena_init(&step.scratch, 0);
        Status status = read_step(text, n, &step, &head);
        if (status == STATUS_OK)
                status = head.row != NULL ? carry_out(&step) : run_saved(steps, head.saved);
        if (status != STATUS_OK)
                blame(status, index, &head);
        step_deinit(&step);
        return status;
}

static Status run_items(Steps *steps, JsonReader *json)
{
        if (json_peek(json) != JSON_ARRAY)
                return fail(STATUS_MALFORMED, "\"steps\" is a list of steps");
        TRY(json_enter_array(json));
        for (uint32_t index = 0;; index++) {
                const char *raw;
                size_t n;
                bool more;
                TRY(json_next_item(json, &more));
                if (!more)
                        return json_finish(json);
                TRY(json_read_raw(json, &raw, &n));
                TRY(run_step(steps, raw, n, index));
        }
}

static Status run_list(Steps *steps, const char *text, size_t n)
{
        Arena arena;
        JsonReader *json = NULL;
        arena_init(&arena, 0);
        Status status = with_reader(text, n, &arena, &json);
        if (status == STATUS_OK)
                status = run_items(steps, json);
        json_close(json);
        arena_deinit(&arena);
        return status;
}

Status steps_run(Steps *steps, const char *text, size_t n)
{
        return run_list(steps, text, n);
}

// ---- lists that are to be saved ----

static Status check_step(const char *text, size_t n, uint32_t index)
{
        StepHead head;
        Step step = { 0 };
        arena_init(&step.scratch, 0);
        Status status = read_step(text, n, &step, &head);
        if (status != STATUS_OK)
                blame(status, index, &head);
        step_deinit(&step);
        return status;
}

static Status check_items(JsonReader *json)
{
        if (json_peek(json) != JSON_ARRAY)
                return fail(STATUS_MALFORMED, "\"steps\" is a list of steps");
        TRY(json_enter_array(json));
        for (uint32_t index = 0;; index++) {
                const char *raw;
                size_t n;
                bool more;
                TRY(json_next_item(json, &more));
                if (!more)
                        return json_finish(json);
                if (index >= limits.max_edit_steps)
                        return fail(STATUS_TOO_LARGE,
                                    "the recipe has more than %lld steps (max_edit_steps in GET /v1)",
                                    (long long)limits.max_edit_steps);
                TRY(json_read_raw(json, &raw, &n));
                TRY(check_step(raw, n, index));
        }
}

Status steps_check(const char *text, size_t n)
{
        Arena arena;
        JsonReader *json = NULL;
        arena_init(&arena, 0);
        Status status = with_reader(text, n, &arena, &json);
        if (status == STATUS_OK)
                status = check_items(json);
        json_close(json);
        arena_deinit(&arena);
        return status;
}

// ---- names ----

bool steps_has_pass(const char *name)
{
        return find_row(STEP_PASS, name) != NULL;
}

void steps_list_passes(Text *out)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < n_step_rows; i++) {
                if (step_rows[i].kind == STEP_PASS)
                        text_addf(out, "%s\"%s\"", n++ == 0 ? "[" : ", ", step_rows[i].name);
        }
        text_add_char(out, ']');
}
