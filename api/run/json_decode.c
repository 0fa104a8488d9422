// SPDX-License-Identifier: Apache-2.0
// The members of a run body. "inputs" may stand anywhere; tensor data goes straight into tensors,
// everything else is the envelope, whose size is capped.
#include <stdio.h>
#include <string.h>
#include "api/readers/recognise.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"

// Counts '[' and '{', also within strings: in large bodies, strings hold few of them. At most 255
// bytes, so that the compiler counts in bytes. The two differ only in bit 0x20, and no third ASCII
// character equals them with that bit cleared.
static uint8_t count_opened(const char *text, size_t n)
{
        uint8_t count = 0;
        for (size_t i = 0; i < n; i++)
                count = (uint8_t)(count + ((text[i] & ~0x20) == '['));
        return count;
}

Status run_check_lists(const char *text, size_t n)
{
        enum { PIECE = 240 };
        size_t most = (size_t)limits.max_json_values, count = 0;
        for (size_t at = 0; n > most && at < n && count <= most; at += PIECE)
                count += count_opened(text + at, MIN((size_t)PIECE, n - at));
        return count <= most ? STATUS_OK
                             : fail(STATUS_TOO_LARGE,
                                    "the body holds more than %zu values that are lists or objects "
                                    "(max_json_values in GET /v1)",
                                    most);
}

Status run_check_value(JsonReader *reader)
{
        JsonType type = json_peek(reader);
        return type == JSON_BAD || type == JSON_END ? json_skip(reader) : STATUS_OK;
}

static Status read_outputs(JsonReader *reader, RunCall *run)
{
        bool more;
        if (json_peek(reader) != JSON_ARRAY)
                return fail(STATUS_VALUE, "\"outputs\" is a list of node names, as in [\"relu\"]");
        TRY(json_enter_array(reader));
        for (;;) {
                const char *name;
                size_t n;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                TRY(run_check_value(reader));
                if (json_peek(reader) != JSON_STRING)
                        return fail(STATUS_VALUE, "\"outputs\" is a list of node names, as in [\"relu\"]");
                TRY(json_read_string(reader, &name, &n));
                if (memchr(name, ',', n) != NULL)
                        return fail(STATUS_VALUE,
                                    "\"outputs\" names \"%.64s\", but the graph has no such node", name);
                if (run->task.n_fetch == (uint32_t)limits.max_nodes)
                        return fail(STATUS_TOO_LARGE,
                                    "\"outputs\" names more than %lld nodes (max_nodes in GET /v1)",
                                    (long long)limits.max_nodes);
                TRY(run_take_outputs(name, n, run));
        }
}

static Status read_text(JsonReader *reader, const char *member, const char **out)
{
        if (json_peek(reader) != JSON_STRING)
                return fail(STATUS_VALUE, "\"%s\" is a text", member);
        return json_read_string(reader, out, NULL);
}

Status run_read_integer(JsonReader *reader, ParameterId id, int64_t *out)
{
        const Parameter *row = &parameters[id];
        NumberKind kind = NUMBER_NONE;
        double number;
        if (json_peek(reader) == JSON_NUMBER)
                TRY(json_read_number(reader, &kind, out, &number));
        if (kind != NUMBER_INT || *out < row->min || *out > parameter_max(row))
                return fail(STATUS_VALUE, "\"%s\" is a whole number from %lld to %lld", row->name,
                            (long long)row->min, (long long)parameter_max(row));
        return STATUS_OK;
}

// The parameter that is also a member of bodies; PARAM_NONE: there is none.
static ParameterId member_named(const char *key)
{
        for (ParameterId id = 1; id < PARAM_COUNT; id++)
                if (parameters[id].place == IN_BOTH && strcmp(parameters[id].name, key) == 0)
                        return id;
        return PARAM_NONE;
}

static Status fail_member(const char *key, bool graph_allowed, const RunCall *run)
{
        Status status = fail(STATUS_UNKNOWN_MEMBER,
                             "unknown member \"%.64s\"; a run body has: %sinputs, overrides, leaf, "
                             "initial_env, until, keep, mutations, session",
                             key, graph_allowed ? "graph, " : "");
        for (ParameterId id = 1; id < PARAM_COUNT; id++)
                if (parameters[id].place == IN_BOTH)
                        failure_append(", %s", parameters[id].name);
        run_hint_of_member(run, key);
        return status;
}

static Status read_number(JsonReader *reader, ParameterId id, RunCall *run)
{
        int64_t value;
        TRY(run_read_integer(reader, id, &value));
        if (id == PARAM_SEED)
                run_take_seed(run, value);
        else if (id == PARAM_TOP)
                run->top = value;
        else if (id == PARAM_PRIORITY)
                run->priority = value;
        else
                run->task.deadline_ms = value;
        return STATUS_OK;
}

static Status read_option(JsonReader *reader, const char *key, bool graph_allowed, RunCall *run)
{
        const char *text;
        bool known;
        TRY(run_read_partial(reader, key, run, &known));
        if (known)
                return STATUS_OK;
        ParameterId id = member_named(key);
        if (id == PARAM_NONE)
                return fail_member(key, graph_allowed, run);
        if (param_text(run->call, id) != NULL)
                return fail(STATUS_VALUE, "\"%.64s\" is given in the query and in the body", key);
        switch (parameters[id].type) {
        case TYPE_BOOL:
                if (json_peek(reader) != JSON_TRUE && json_peek(reader) != JSON_FALSE)
                        return fail(STATUS_VALUE, "\"%s\" is true or false", key);
                return json_read_bool(reader, &run->profile_in_reply);
        case TYPE_INT:
                return read_number(reader, id, run);
        case TYPE_NUMBER:
                return run_read_tolerance(reader, run);
        case TYPE_CHOICE:
                TRY(read_text(reader, key, &text));
                return run_take_choice(run, id, text);
        default:
                return read_outputs(reader, run);
        }
}

static Status read_inputs(JsonReader *reader, ByteSpan document, RunCall *run, size_t *out_bytes)
{
        size_t before = json_tell(reader);
        if (json_peek(reader) == JSON_ARRAY)
                run_note_list(run, (const char *)document.data + before, document.n - before);
        TRY(run_read_inputs(reader, run));
        *out_bytes = json_tell(reader) - before;
        return STATUS_OK;
}

static Status read_session(JsonReader *reader, RunCall *run)
{
        const char *id;
        TRY(read_text(reader, "session", &id));
        return failure_at_argument(run_take_session(run, id), "session");
}

static Status read_members(JsonReader *reader, ByteSpan document, bool graph_allowed, RunCall *run,
                           bool *out_seen_inputs)
{
        const char *key;
        bool more, seen_inputs = false;
        size_t data_bytes = 0, graph_bytes = 0;
        const char *graph_text;
        TRY(run_check_value(reader));
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_INPUT, "a run body is an object: {\"inputs\": {...}}");
        TRY(json_enter_object(reader));
        for (;;) {
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                TRY(run_check_value(reader));
                if (strcmp(key, "inputs") == 0) {
                        TRY(read_inputs(reader, document, run, &data_bytes));
                        seen_inputs = true;
                } else if (strcmp(key, "overrides") == 0) {
                        TRY(failure_at_argument(
                                recipe_read_overrides(reader, &run->task.budget, &run->recipe), key));
                } else if (strcmp(key, "session") == 0) {
                        TRY(read_session(reader, run));
                } else if (graph_allowed && strcmp(key, "graph") == 0) {
                        TRY(json_read_raw(reader, &graph_text, &graph_bytes));
                } else {
                        TRY(failure_at_argument(read_option(reader, key, graph_allowed, run), key));
                }
        }
        size_t end = json_tell(reader);
        TRY(json_finish(reader));
        if (end - data_bytes - graph_bytes > (size_t)limits.max_envelope)
                return fail(STATUS_TOO_LARGE,
                            "the run body without its tensor data is %zu bytes; the limit is %lld "
                            "(max_envelope in GET /v1)",
                            end - data_bytes - graph_bytes, (long long)limits.max_envelope);
        *out_seen_inputs = seen_inputs;
        return STATUS_OK;
}

// ---- the codec ----
typedef struct JsonSource {
        ByteSpan text;
        const char *name; // of a part
        int64_t depth;
} JsonSource;

static Status read_source(const JsonSource *source, RunCall *run,
                          Status (*read)(JsonReader *reader, const JsonSource *source, RunCall *run))
{
        Arena arena;
        JsonReader *reader = NULL;
        const char *text = (const char *)source->text.data;
        arena_init_charged(&arena, (size_t)limits.max_envelope * 4, &run->task.budget);
        Status status = run_check_lists(text, source->text.n);
        if (status == STATUS_OK)
                status = json_open(text, source->text.n, (int)source->depth, 0, &arena, &reader);
        if (status == STATUS_OK)
                status = read(reader, source, run);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

static Status read_body(JsonReader *reader, const JsonSource *source, RunCall *run)
{
        bool seen_inputs;
        TRY(read_members(reader, source->text, route_has(run->call->route, BRINGS_GRAPH), run, &seen_inputs));
        run->sent = seen_inputs ? RUN_SENT_INPUTS : RUN_SENT_NO_INPUTS;
        return STATUS_OK;
}

static Status json_decode(RunCall *run)
{
        ByteSpan body = body_span(run->call->body);
        JsonSource source = { .text = body,
                              .depth = route_has(run->call->route, BRINGS_GRAPH)
                                               ? limits.max_json_depth_model
                                               : limits.max_json_depth_run + MAX_RANK };
        Status status = read_source(&source, run, read_body);
        return status == STATUS_OK ? status : recognise_run_body(body, run_add_list_hint(run, status));
}

// "request": the members of a run body.
static Status read_request(JsonReader *reader, const JsonSource *source, RunCall *run)
{
        bool seen_inputs;
        return read_members(reader, source->text, false, run, &seen_inputs);
}

// Any other name: the value of an input.
static Status read_value(JsonReader *reader, const JsonSource *source, RunCall *run)
{
        TRY(run_check_value(reader));
        TRY(run_read_named(reader, source->name, run));
        return json_finish(reader);
}

static Status json_decode_part(RunCall *run, const MultipartPart *part)
{
        JsonSource source = { .text = part->content,
                              .name = part->name,
                              .depth = limits.max_json_depth_run + MAX_RANK };
        return read_source(&source, run, strcmp(part->name, "request") == 0 ? read_request : read_value);
}

const Codec json_codec = { .types = { "application/json", "*/*", "application/*" },
                           .take_graph = json_take_graph,
                           .decode = json_decode,
                           .decode_part = json_decode_part,
                           .encode = json_encode };
