// SPDX-License-Identifier: Apache-2.0
// transform.c: POST /v1/graphs/{name}/transform. A working copy of the graph takes the steps, all
// or none; the reply has the graph they make, the difference of both as code, and what each step
// did.
#include <stdio.h>
#include <string.h>
#include "api/readers/steps.h"
#include "api/routes/answer.h"
#include "api/routes/code_diff.h"
#include "core/base/json.h"
#include "core/base/limits.h"
#include "core/engine/put.h"
#include "core/engine/saved.h"
#include "core/graph/print.h"

enum { HASHED_MAX_BYTES = 1 << 20 };

// The body: {"steps": [...], "dry_run": false, "store_as": "name"}.
typedef struct TransformBody {
        const char *steps; // a JSON list
        size_t n_steps;
        bool dry_run;
        const char *store_as; // NULL: nowhere
} TransformBody;

static Status read_member(JsonReader *json, const char *key, TransformBody *body)
{
        if (strcmp(key, "steps") == 0)
                return json_read_raw(json, &body->steps, &body->n_steps);
        if (strcmp(key, "dry_run") == 0) {
                if (json_peek(json) != JSON_TRUE && json_peek(json) != JSON_FALSE)
                        return fail(STATUS_MALFORMED, "\"dry_run\" is true or false");
                return json_read_bool(json, &body->dry_run);
        }
        if (strcmp(key, "store_as") == 0) {
                if (json_peek(json) == JSON_NULL)
                        return json_read_null(json);
                if (json_peek(json) != JSON_STRING)
                        return fail(STATUS_MALFORMED, "\"store_as\" is the name of a graph");
                return json_read_string(json, &body->store_as, NULL);
        }
        return fail(STATUS_UNKNOWN_MEMBER, "unknown member \"%.64s\"; it knows steps, dry_run, store_as",
                    key);
}

static Status read_body(JsonReader *json, TransformBody *body)
{
        if (json_peek(json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "the body is an object: {\"steps\": [...]}");
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                TRY(failure_at_argument(read_member(json, key, body), key));
        }
        TRY(json_finish(json));
        return body->steps != NULL ? STATUS_OK
                                   : fail(STATUS_MALFORMED, "the body needs \"steps\", a list of steps");
}

// ---- the reply ----

static size_t dense_bytes(const Tensor *tensor)
{
        return (size_t)meta_numel(&tensor->meta) * dtype_info[tensor->meta.dtype].bytes;
}

// Strided tensors become dense ones, within the budget of a run: a few bytes may expand to many.
static Status add_digest(Tensor *tensor, Text *out)
{
        Budget budget;
        _cleanup_(tensor_unrefp) Tensor *dense = NULL;
        budget_init(&budget, (size_t)limits.max_run_memory);
        TRY(tensor_contiguous(tensor, &budget, &dense));
        text_addf(out, ", \"sha256\": \"%s\"", sha256_of(tensor_data(dense), dense_bytes(dense)).hex);
        return STATUS_OK;
}

// By hash; large tensors that are the base's own are only marked as such.
static Status write_state(void *context, const State *state, Text *out)
{
        Tensor *tensor = state->tensor;
        const State *old = graph_state(context, state->path);
        bool same = old != NULL && old->tensor == tensor;
        if (same)
                text_add(out, ", \"unchanged\": true");
        if (!same || dense_bytes(tensor) <= HASHED_MAX_BYTES)
                TRY(add_digest(tensor, out));
        return STATUS_OK;
}

typedef struct Result {
        Graph *graph;
        Text report, done, diff; // done: the steps, saved ones written out
        GraphVersion *stored;    // NULL: nowhere
} Result;

static void result_deinit(Result *result)
{
        graph_unref(result->graph);
        graph_version_unref(result->stored);
        text_deinit(&result->report);
        text_deinit(&result->done);
        text_deinit(&result->diff);
}

static Status write_reply(const Answer *answer, const Result *result)
{
        Text *out = answer_begin(answer, json_type);
        text_add(out, "{\"graph\": ");
        TRY(graph_print_json(result->graph, write_state, answer->graph, out));
        text_add(out, ",\n\"diff\": ");
        text_add_json_n(out, result->diff.data, result->diff.n);
        text_add(out, ",\n\"steps\": [");
        text_add_n(out, result->report.data == NULL ? "" : result->report.data, result->report.n);
        text_add(out, "],\n\"stored\": ");
        if (result->stored == NULL)
                text_add(out, "null}\n");
        else
                text_addf(out, "{\"name\": \"%s\", \"version\": %lld, \"id\": \"%s\"}}\n",
                          result->stored->name, (long long)result->stored->stored.version,
                          result->stored->stored.id.hex);
        return text_status(out);
}

// ---- the request ----

static Status find_saved(void *context, const char *name, Text *out)
{
        return engine_get_pass(context, name, out);
}

static Status check_target(const Answer *answer, const TransformBody *body)
{
        if (body->store_as == NULL)
                return STATUS_OK;
        if (!route_is_name(body->store_as))
                return failure_at_argument(fail(STATUS_VALUE,
                                                "\"store_as\" is \"%.80s\", which no graph can "
                                                "be called",
                                                body->store_as),
                                           "store_as");
        if (!body->dry_run && (answer->call->scopes & SCOPE_WRITE) == 0)
                return fail(STATUS_SCOPE, "this token lacks the scope \"write\", which \"store_as\" needs");
        return STATUS_OK;
}

static Status store(const Answer *answer, const char *name, Result *result, bool *out_created)
{
        _cleanup_(text_deinit) Text recipe = { 0 };
        NamedAnswer named = { answer, name, 0, NULL };
        PutCondition condition = { answer_check_named, &named };
        text_add(&recipe, "{\"steps\":[");
        text_add_n(&recipe, result->done.data == NULL ? "" : result->done.data, result->done.n);
        text_add(&recipe, "]}");
        TRY(text_status(&recipe));
        DerivedPut put = { .name = name,
                           .graph = result->graph,
                           .base = answer->version,
                           .recipe = { (const uint8_t *)recipe.data, recipe.n },
                           .diff = result->diff.data,
                           .owner = answer->call->caller,
                           .only_if = answer_is_conditional(answer) ? &condition : NULL };
        TRY(engine_check(result->graph));
        return engine_put_derived(answer->context->engine, &put, &result->stored, out_created);
}

static Status carry_out(const Answer *answer, const TransformBody *body, Result *result)
{
        const SavedSteps saved = { find_saved, answer->context->engine };
        Steps steps = { .saved = &saved, .report = &result->report, .done = &result->done };
        RunContext bounds;
        answer_bounds(answer, &bounds);
        TRY(edit_new(answer->graph, &steps.edit));
        edit_set_poll(steps.edit, &bounds);
        Status status = steps_run(&steps, body->steps, body->n_steps);
        if (status == STATUS_OK)
                status = edit_finish(steps.edit, &result->graph);
        edit_free(steps.edit);
        return status;
}

static Status transform(const Answer *answer, const TransformBody *body)
{
        _cleanup_(result_deinit) Result result = { .graph = NULL };
        bool created = false;
        TRY(check_target(answer, body));
        TRY(carry_out(answer, body, &result));
        TRY(code_diff(answer->version, answer->graph, result.graph, &result.diff));
        if (body->store_as != NULL && !body->dry_run)
                TRY(store(answer, body->store_as, &result, &created));
        TRY(write_reply(answer, &result));
        if (created) {
                answer->reply->status = 201;
                api_reply_header(answer->reply, "Location", "/v1/graphs/%s", result.stored->name);
        }
        return STATUS_OK;
}

Status post_transform(const Answer *answer)
{
        Arena arena;
        JsonReader *json = NULL;
        TransformBody body = { .steps = NULL };
        const Storage *bytes = answer->call->body;
        if (bytes == NULL || bytes->n_bytes == 0)
                return fail(STATUS_MALFORMED, "the body is empty; it is {\"steps\": [...]}");
        arena_init(&arena, 0);
        Status status = json_open((const char *)bytes->data, bytes->n_bytes, (int)limits.max_json_depth_model,
                                  limits.max_json_values, &arena, &json);
        if (status == STATUS_OK)
                status = read_body(json, &body);
        if (status == STATUS_OK)
                status = transform(answer, &body);
        json_close(json);
        arena_deinit(&arena);
        return status;
}
