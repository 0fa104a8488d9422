// SPDX-License-Identifier: Apache-2.0
// Every route but the runs: one function each, chosen by the table at the end; api_answer turns
// failures into replies. Here are those about the server itself.
#include <stdio.h>
#include <string.h>
#include "api/routes/answer.h"
#include "api/routes/metrics.h"
#include "api/routes/openapi.h"
#include "api/routes/ops_list.h"
#include "core/base/limits.h"

const char json_type[] = "application/json", text_type[] = "text/plain; charset=utf-8";

Text *answer_begin(const Answer *answer, const char *content_type)
{
        answer->reply->status = 200;
        answer->reply->content_type = content_type;
        return &answer->reply->body;
}

// ---- server ----
static Status get_root(const Answer *answer)
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
        text_addf(out, "\"uptime_s\": %.1f, \"graphs\": %u, \"versions\": %u, \"runs\": %llu, \"limits\": {",
                  (double)facts->uptime_ns / 1e9, stats.n_graphs, stats.n_versions,
                  (unsigned long long)stats.runs);
        for (size_t i = 0; i < n_limit_rows; i++) {
                int64_t value;
                memcpy(&value, (const char *)&limits + limit_rows[i].offset, sizeof(value));
                text_addf(out, "%s\"%s\": %lld", i == 0 ? "" : ", ", limit_rows[i].name, (long long)value);
        }
        text_add(out, "}, \"routes\": [");
        for (size_t i = 0; i < ROUTE_COUNT; i++)
                text_addf(out, "%s\"%s %s\"", i == 0 ? "" : ", ", routes[i].method, routes[i].path);
        text_add(out, "]}\n");
        return STATUS_OK;
}

static Status get_livez(const Answer *answer)
{
        text_add(answer_begin(answer, json_type), "{\"live\": true}\n");
        return STATUS_OK;
}

static Status get_readyz(const Answer *answer)
{
        const ServerFacts *facts = answer->context->facts;
        Text *out = answer_begin(answer, json_type);
        answer->reply->status = facts->ready ? 200 : 503;
        if (facts->ready)
                text_add(out, "{\"ready\": true}\n");
        else
                text_addf(out, "{\"ready\": false, \"error\": \"%s\", \"code\": \"busy\"}\n",
                          facts->n_stalled < facts->n_workers ? "the server is stopping"
                                                              : "no worker has shown life for a second: each "
                                                                "is in a long operation, or stuck");
        return STATUS_OK;
}

static Status get_ops(const Answer *answer)
{
        return ops_list_json(answer_begin(answer, json_type));
}

static Status get_openapi(const Answer *answer)
{
        return openapi_write(answer->context->facts->version, answer_begin(answer, json_type));
}

static Status get_metrics(const Answer *answer)
{
        return metrics_write(answer->context,
                             answer_begin(answer, "text/plain; version=0.0.4; charset=utf-8"));
}

// ---- the table ----
enum { NEEDS_VERSION = 1, NEEDS_GRAPH = 2, SHOWS_DAMAGE = 4 };
typedef struct Handler {
        Status (*answer)(const Answer *answer);
        int needs;
} Handler;

static const Handler handlers[ROUTE_COUNT] = {
        [ROUTE_ROOT_INFO] = { get_root, 0 },
        [ROUTE_GRAPH_LIST] = { get_list, 0 },
        [ROUTE_GRAPH_POST] = { put_graph, 0 },
        [ROUTE_GRAPH_PUT] = { put_graph, 0 },
        [ROUTE_GRAPH_GET] = { get_graph, NEEDS_VERSION | NEEDS_GRAPH | SHOWS_DAMAGE },
        [ROUTE_GRAPH_PATCH] = { patch_graph, 0 },
        [ROUTE_GRAPH_DELETE] = { delete_graph, 0 },
        [ROUTE_VERSION_LIST] = { get_versions, 0 },
        [ROUTE_VERSION_GET] = { get_graph, NEEDS_VERSION | NEEDS_GRAPH | SHOWS_DAMAGE },
        [ROUTE_VERSION_DELETE] = { delete_graph, 0 },
        [ROUTE_RUN] = { NULL, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_VERSION_RUN] = { NULL, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_RUN_INLINE] = { NULL, 0 },
        [ROUTE_TEXT] = { get_text, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_VERSION_TEXT] = { get_text, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_EXAMPLE] = { get_example, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_VERSION_EXAMPLE] = { get_example, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_WEIGHTS] = { get_weights, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_VERSION_WEIGHTS] = { get_weights, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_PROFILE_STATS] = { get_stats, NEEDS_VERSION },
        [ROUTE_VERSION_PROFILE_STATS] = { get_stats, NEEDS_VERSION },
        [ROUTE_PROFILE_LIST] = { get_profiles, 0 },
        [ROUTE_PROFILE_GET] = { get_profile, 0 },
        [ROUTE_OPS] = { get_ops, 0 },
        [ROUTE_OPENAPI] = { get_openapi, 0 },
        [ROUTE_METRICS] = { get_metrics, 0 },
        [ROUTE_LIVEZ] = { get_livez, 0 },
        [ROUTE_READYZ] = { get_readyz, 0 },
        [ROUTE_HEALTHZ] = { get_readyz, 0 },
};

bool api_needs_version(RouteId route)
{
        return (handlers[route].needs & NEEDS_VERSION) != 0;
}

Status api_find_version(Engine *engine, ApiCall *call, GraphVersion **out_version)
{
        if (call->alias[0] == '\0')
                return engine_find(engine, call->name, call->version, out_version);
        TRY(engine_find_alias(engine, call->name, call->alias, out_version));
        call->version = (*out_version)->stored.version;
        return STATUS_OK;
}

bool api_needs_graph(RouteId route)
{
        return (handlers[route].needs & NEEDS_GRAPH) != 0;
}

bool api_shows_damage(RouteId route)
{
        return (handlers[route].needs & SHOWS_DAMAGE) != 0;
}

void api_answer(const ApiContext *context, ApiCall *call, Graph *graph_or_null, GraphVersion *version_or_null,
                ApiReply *reply)
{
        Answer answer = { context, call, graph_or_null, version_or_null, reply };
        Status status = handlers[call->route].answer(&answer);
        if (status == STATUS_OK)
                status = text_status(&reply->body);
        if (status != STATUS_OK)
                reply_failure(failure_current(), call->request_id, reply);
}
