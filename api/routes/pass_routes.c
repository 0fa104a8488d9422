// SPDX-License-Identifier: Apache-2.0
// pass_routes.c: lists of steps saved by name. A list is kept as the text that was sent, so that it
// means what its steps mean when it is used.
#include <string.h>
#include "api/readers/steps.h"
#include "api/routes/answer.h"
#include "core/base/json.h"
#include "core/base/limits.h"
#include "core/engine/saved.h"

// {"steps": [...]}
static Status read_steps(JsonReader *json, ByteSpan *out_steps)
{
        const char *text = NULL;
        size_t n = 0;
        if (json_peek(json) != JSON_OBJECT)
                return fail(STATUS_MALFORMED, "the body is an object: {\"steps\": [...]}");
        TRY(json_enter_object(json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(json, &key, &more));
                if (!more)
                        break;
                if (strcmp(key, "steps") != 0)
                        return failure_at_argument(
                                fail(STATUS_UNKNOWN_MEMBER, "unknown member \"%.64s\"; it knows steps", key),
                                key);
                TRY(json_read_raw(json, &text, &n));
        }
        TRY(json_finish(json));
        if (text == NULL)
                return fail(STATUS_MALFORMED, "the body needs \"steps\", a list of steps");
        *out_steps = (ByteSpan){ (const uint8_t *)text, n };
        return steps_check(text, n);
}

static Status save(const Answer *answer, JsonReader *json)
{
        ByteSpan steps;
        bool created;
        const char *name = answer->call->name;
        TRY(read_steps(json, &steps));
        if (steps_has_pass(name))
                return fail(STATUS_CONFLICT, "\"%s\" is a pass of fxserve's own; choose another name", name);
        TRY(engine_put_pass(answer->context->engine, name, steps, &created));
        Text *out = answer_begin(answer, json_type);
        text_addf(out, "{\"name\": \"%s\", \"steps\": ", name);
        text_add_n(out, (const char *)steps.data, steps.n);
        text_add(out, "}\n");
        answer->reply->status = created ? 201 : 200;
        if (created)
                api_reply_header(answer->reply, "Location", "/v1/passes/%s", name);
        return STATUS_OK;
}

Status put_pass(const Answer *answer)
{
        Arena arena;
        JsonReader *json = NULL;
        const Storage *bytes = answer->call->body;
        if (bytes == NULL || bytes->n_bytes == 0)
                return fail(STATUS_MALFORMED, "the body is empty; it is {\"steps\": [...]}");
        arena_init(&arena, 0);
        Status status = json_open((const char *)bytes->data, bytes->n_bytes, (int)limits.max_json_depth_model,
                                  limits.max_json_values, &arena, &json);
        if (status == STATUS_OK)
                status = save(answer, json);
        json_close(json);
        arena_deinit(&arena);
        return status;
}

Status get_pass(const Answer *answer)
{
        _cleanup_(text_deinit) Text steps = { 0 };
        TRY(engine_get_pass(answer->context->engine, answer->call->name, &steps));
        Text *out = answer_begin(answer, json_type);
        text_addf(out, "{\"name\": \"%s\", \"steps\": ", answer->call->name);
        text_add_n(out, steps.data, steps.n);
        text_add(out, "}\n");
        return STATUS_OK;
}

Status delete_pass(const Answer *answer)
{
        TRY(engine_delete_pass(answer->context->engine, answer->call->name));
        answer->reply->status = 204;
        return STATUS_OK;
}

typedef struct Listing {
        Text *out;
        bool any;
} Listing;

static Status list_pass(void *context, const char *name)
{
        Listing *listing = context;
        text_addf(listing->out, "%s{\"name\": \"%s\"}", listing->any ? ", " : "", name);
        listing->any = true;
        return STATUS_OK;
}

Status get_passes(const Answer *answer)
{
        Listing listing = { .out = answer_begin(answer, json_type) };
        text_add(listing.out, "{\"passes\": [");
        TRY(engine_each_pass(answer->context->engine, list_pass, &listing));
        text_add(listing.out, "], \"own\": ");
        steps_list_passes(listing.out);
        text_add(listing.out, "}\n");
        return STATUS_OK;
}
