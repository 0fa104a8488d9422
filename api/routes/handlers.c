// SPDX-License-Identifier: Apache-2.0
// Routes about the server itself, and api_answer, which calls the handler of any route's row and
// turns failures into replies.
#include <stdio.h>
#include <string.h>
#include "api/routes/answer.h"
#include "api/routes/metrics.h"
#include "api/routes/openapi.h"
#include "api/routes/ops_list.h"
#include "core/base/limits.h"
#include "core/engine/declared.h"

const char json_type[] = "application/json", text_type[] = "text/plain; charset=utf-8";

void answer_bounds(const Answer *answer, RunContext *out)
{
        run_context_within(out, answer->context->ctx);
        out->deadline_ns = answer->context->deadline_ns;
}

Text *answer_begin(const Answer *answer, const char *content_type)
{
        answer->reply->status = 200;
        answer->reply->content_type = content_type;
        return &answer->reply->body;
}

// ---- server ----
// The head of the reply; server/events.h has the rest.
Status get_events(const Answer *answer)
{
        int64_t seconds;
        TRY(param_int(answer->call, PARAM_SECONDS, &seconds));
        (void)answer_begin(answer, "text/event-stream");
        api_reply_header(answer->reply, "Cache-Control", "no-store");
        return STATUS_OK;
}

// What the caller's token may do.
static void write_scopes(unsigned scopes, Text *out)
{
        static const char *const names[] = { "read", "run", "write", "admin" }; // by bit of Scope
        const char *between = "";
        text_add(out, "\"scopes\": [");
        for (unsigned i = 0; i < ARRAY_LENGTH(names); i++) {
                if ((scopes & 1u << i) == 0)
                        continue;
                text_addf(out, "%s\"%s\"", between, names[i]);
                between = ", ";
        }
        text_add(out, "], ");
}

Status get_root(const Answer *answer)
{
        const ServerFacts *facts = answer->context->facts;
        EngineStats stats = engine_stats(answer->context->engine);
        Text *out = answer_begin(answer, json_type);
        text_addf(out,
                  "{\"name\": \"fxserve\", \"version\": \"%s\", \"revision\": \"%s\", \"torch\": \"%s\", "
                  "\"cpu\": \"%s\", \"cores\": %d, "
                  "\"workers\": %d, ",
                  facts->version, facts->revision, facts->torch_level, facts->cpu_level, facts->n_cores,
                  facts->n_workers);
        write_scopes(answer->call->scopes, out);
        text_addf(out, "\"uptime_s\": %.1f, \"graphs\": %u, \"versions\": %u, \"runs\": %llu, \"limits\": {",
                  (double)facts->uptime_ns / 1e9, stats.n_graphs, stats.n_versions,
                  (unsigned long long)stats.runs);
        for (size_t i = 0; i < n_limit_rows; i++) {
                int64_t value;
                memcpy(&value, (const char *)&limits + limit_rows[i].offset, sizeof(value));
                text_addf(out, "%s\"%s\": %lld", i == 0 ? "" : ", ", limit_rows[i].name, (long long)value);
        }
        text_add(out, "}, \"routes\": [");
        const Route *first = route_next(NULL);
        for (const Route *route = first; route != NULL; route = route_next(route))
                text_addf(out, "%s\"%s %s\"", route == first ? "" : ", ", route->method, route->path);
        text_add(out, "]}\n");
        return STATUS_OK;
}

static bool is_there(Engine *engine, const char *name)
{
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        return engine_find(engine, name, 0, &version) == STATUS_OK;
}

const char *api_unready(const ApiContext *context)
{
        const ServerFacts *facts = context->facts;
        if (facts->n_stalled >= facts->n_workers)
                return "no worker has shown life for a second: each is in a long operation, or stuck";
        if (!facts->ready)
                return "the server is stopping";
        if (facts->awaited != NULL && !is_there(context->engine, facts->awaited))
                return "the model that --model-name names is not loaded; the log says why";
        return engine_is_warm(context->engine) ? NULL : "warm-ups that graphs declare are under way";
}

Status get_livez(const Answer *answer)
{
        text_add(answer_begin(answer, json_type), "{\"live\": true}\n");
        return STATUS_OK;
}

Status get_readyz(const Answer *answer)
{
        const char *why = api_unready(answer->context);
        Text *out = answer_begin(answer, json_type);
        answer->reply->status = why == NULL ? 200 : 503;
        if (why == NULL)
                text_add(out, "{\"ready\": true}\n");
        else
                text_addf(out, "{\"ready\": false, \"error\": \"%s\", \"code\": \"busy\"}\n", why);
        return STATUS_OK;
}

Status get_ops(const Answer *answer)
{
        return ops_list_json(answer_begin(answer, json_type));
}

Status get_openapi(const Answer *answer)
{
        return openapi_write(answer->context->facts->version, answer_begin(answer, json_type));
}

Status get_metrics(const Answer *answer)
{
        return metrics_write(answer->context,
                             answer_begin(answer, "text/plain; version=0.0.4; charset=utf-8"));
}

// ---- any route ----
Status answer_run(const Answer *answer)
{
        return fail(STATUS_INTERNAL, "%s is no route that a handler answers", answer->call->route->id);
}

// What was unloaded is there for the other routes only.
static Status check_loaded(const ApiCall *call, GraphVersion **version)
{
        if (!route_has(call->route, AS_OIP) || !atomic_load(&(*version)->unloaded))
                return STATUS_OK;
        *version = graph_version_unref(*version);
        return fail(STATUS_VALUE, "Request for unknown model: '%s' has no available versions", call->name);
}

Status api_take_only(Engine *engine, ApiCall *call)
{
        GraphVersion *rows[1];
        uint32_t n;
        bool more;
        TRY(engine_list(engine, NULL, 1, rows, &n, &more));
        if (n == 0)
                return fail(STATUS_NOT_FOUND, "there is no graph; upload one: PUT /v1/graphs/NAME");
        snprintf(call->name, sizeof(call->name), "%s", rows[0]->name);
        graph_version_unref(rows[0]);
        if (more)
                return fail(STATUS_VALUE, "there are several graphs: start fxserve with --codecs "
                                          "sagemaker=GRAPH to say which one this path runs");
        return STATUS_OK;
}

Status api_find_version(Engine *engine, ApiCall *call, GraphVersion **out_version)
{
        if (call->alias[0] == '\0') {
                TRY(engine_find(engine, call->name, call->version, out_version));
                return check_loaded(call, out_version);
        }
        TRY(engine_find_alias(engine, call->name, call->alias, out_version));
        call->version = (*out_version)->stored.version;
        return check_loaded(call, out_version);
}

void api_answer(const ApiContext *context, ApiCall *call, Graph *graph_or_null, GraphVersion *version_or_null,
                ApiReply *reply)
{
        Answer answer = { context, call, graph_or_null, version_or_null, reply };
        Status status = call->route->handler(&answer);
        if (status == STATUS_OK)
                status = text_status(&reply->body);
        if (status != STATUS_OK)
                reply_failure(call, failure_current(), reply);
}
