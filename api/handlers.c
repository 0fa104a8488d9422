// SPDX-License-Identifier: Apache-2.0
// Every route but the runs: one function each, chosen by a table. A handler fills the reply or fails; api_answer turns failures into
// replies.
#include <stdio.h>
#include <string.h>
#include "api/info.h"
#include "api/metrics.h"
#include "api/ops_list.h"
#include "api/profile_text.h"
#include "api/upload.h"
#include "core/base/limits.h"
#include "core/graph/print.h"

typedef struct Answer {
        const ApiContext *context;
        ApiCall *call;
        Graph *graph;          // NULL unless the route needs it
        GraphVersion *version; // NULL unless the route needs it
        ApiReply *reply;
} Answer;

enum { LIST_MAX = 1000, LIST_DEFAULT = 100 };
static const char json_type[] = "application/json", text_type[] = "text/plain; charset=utf-8";

static Text *begin(const Answer *answer, const char *content_type)
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
        Text *out = begin(answer, json_type);
        text_addf(out,
                  "{\"name\": \"fxserve\", \"version\": \"%s\", \"revision\": \"%s\", \"torch\": \"%s\", \"cpu\": \"%s\", \"cores\": %d, "
                  "\"workers\": %d, ",
                  facts->version, facts->revision, facts->torch_level, facts->cpu_level, facts->n_cores, facts->n_workers);
        text_addf(out, "\"uptime_s\": %.1f, \"graphs\": %u, \"versions\": %u, \"runs\": %llu, \"limits\": {",
                  (double)facts->uptime_ns / 1e9, stats.n_graphs, stats.n_versions, (unsigned long long)stats.runs);
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
        text_add(begin(answer, json_type), "{\"live\": true}\n");
        return STATUS_OK;
}

static Status get_readyz(const Answer *answer)
{
        bool ready = answer->context->facts->ready;
        Text *out = begin(answer, json_type);
        answer->reply->status = ready ? 200 : 503;
        text_add(out, ready ? "{\"ready\": true}\n" : "{\"ready\": false, \"error\": \"the server is stopping\", \"code\": \"busy\"}\n");
        return STATUS_OK;
}

static Status get_ops(const Answer *answer)
{
        return ops_list_json(begin(answer, json_type));
}

static Status get_metrics(const Answer *answer)
{
        return metrics_write(answer->context, begin(answer, "text/plain; version=0.0.4; charset=utf-8"));
}

// ---- uploads ----
static Status reply_info(const Answer *answer, GraphVersion *version, const Graph *graph)
{
        GraphVersion **versions = NULL;
        uint32_t n = 0;
        int64_t default_version = 0;
        Status status = engine_versions(answer->context->engine, version->name, &versions, &n, &default_version);
        if (status == STATUS_OK || status == STATUS_NOT_FOUND) { // deleted meanwhile: answer all the same
                Text *out = begin(answer, json_type);
                char program[65];
                engine_latest_program(answer->context->engine, version, program);
                status = info_write(version, graph, versions, n, default_version, program, out);
                text_add_char(out, '\n');
        }
        for (uint32_t i = 0; i < n; i++)
                graph_version_unref(versions[i]);
        free(versions);
        return status;
}

static Status store_upload(const Answer *answer, const Upload *upload)
{
        const char *model = call_query(answer->call, "model");
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(graph_version_unrefp) GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        TRY(upload_identify(upload->parts, upload->n_parts, model, upload->format, &identified));
        TRY(upload_decode(upload->parts, upload->n_parts, model, true, &graph));
        TRY(engine_put(answer->context->engine, answer->call->name, upload->parts, upload->n_parts, &identified, graph, &version,
                       &created));
        TRY(reply_info(answer, version, graph));
        answer->reply->status = created ? 201 : 200;
        if (created)
                api_reply_header(answer->reply, "Location", "/v1/graphs/%s", version->name);
        return STATUS_OK;
}

static Status put_graph(const Answer *answer)
{
        Upload upload = { .n_parts = 0 };
        if (answer->call->body == NULL || answer->call->body->n_bytes == 0)
                return fail(STATUS_WRONG_FILE, "the body is empty; send the file with curl -T model.pt2 .../v1/graphs/model");
        TRY(upload_split(answer->call->body, answer->call->content_type, &upload));
        Status status = store_upload(answer, &upload);
        upload_deinit(&upload);
        return status;
}

// ---- graphs ----
static Status get_list(const Answer *answer)
{
        int64_t limit = LIST_DEFAULT;
        GraphVersion *rows[LIST_MAX];
        uint32_t n;
        bool more;
        TRY(call_query_int(answer->call, "limit", 1, LIST_MAX, &limit));
        TRY(engine_list(answer->context->engine, call_query(answer->call, "after"), (uint32_t)limit, rows, &n, &more));
        Text *out = begin(answer, json_type);
        text_add(out, "{\"graphs\": [");
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ",\n");
                info_write_row(rows[i], out);
        }
        text_add(out, "], \"next\": ");
        if (more)
                text_add_json(out, rows[n - 1]->name);
        else
                text_add(out, "null");
        text_add(out, "}\n");
        for (uint32_t i = 0; i < n; i++)
                graph_version_unref(rows[i]);
        return STATUS_OK;
}

static Status get_graph(const Answer *answer)
{
        return reply_info(answer, answer->version, answer->graph);
}

static Status delete_graph(const Answer *answer)
{
        TRY(engine_delete(answer->context->engine, answer->call->name, answer->call->version));
        answer->reply->status = 204;
        return STATUS_OK;
}

// The later stages belong to one specialisation: ?program=ID, or the one that ran last.
static Status find_program(const Answer *answer, Program **out_program)
{
        const char *wish = call_query(answer->call, "program");
        char id[65] = "";
        if (wish != NULL)
                snprintf(id, sizeof(id), "%.64s", wish);
        else
                engine_latest_program(answer->context->engine, answer->version, id);
        *out_program = id[0] == '\0' ? NULL : engine_program(answer->context->engine, id);
        if (*out_program != NULL)
                return STATUS_OK;
        if (wish != NULL)
                return fail(STATUS_NOT_FOUND, "there is no program '%.64s'; replies name the program that ran", wish);
        return fail(STATUS_NOT_FOUND,
                    "no program has run for this graph yet; run it twice with inputs of one shape, or once with \"mode\": \"compiled\"");
}

static Status print_program(const Program *program, const char *stage, GraphForm form, Text *out)
{
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        if (strcmp(stage, "program") == 0) {
                program_print(program, out);
                if (out->n > 0 && out->data[out->n - 1] == '\n')
                        out->n--;
                return text_status(out);
        }
        TRY(program_stage(program, strcmp(stage, "aten") == 0 ? STAGE_ATEN : STAGE_OPTIMISED, &graph));
        return graph_print(graph, form, out);
}

static Status print_stage(const Answer *answer, const char *stage, GraphForm form, Text *out)
{
        _cleanup_(program_unrefp) Program *program = NULL;
        if (strcmp(stage, "aten") != 0 && strcmp(stage, "optimised") != 0 && strcmp(stage, "program") != 0)
                return fail(STATUS_VALUE, "\"stage\" is authored, aten, optimised or program, not \"%s\"", stage);
        TRY(find_program(answer, &program));
        return print_program(program, stage, form, out);
}

static Status get_text(const Answer *answer)
{
        const char *form = call_query(answer->call, "form"), *stage = call_query(answer->call, "stage");
        int chosen = 0;
        while (form != NULL && chosen < GRAPH_FORM_COUNT && strcmp(form, graph_form_names[chosen]) != 0)
                chosen++;
        if (chosen == GRAPH_FORM_COUNT)
                return fail(STATUS_VALUE, "\"form\" is graph, code, tabular or json, not \"%s\"", form);
        Text *out = begin(answer, chosen == GRAPH_FORM_JSON ? json_type : text_type);
        TRY(stage == NULL || strcmp(stage, "authored") == 0 ? graph_print(answer->graph, (GraphForm)chosen, out)
                                                            : print_stage(answer, stage, (GraphForm)chosen, out));
        text_add_char(out, '\n');
        return STATUS_OK;
}

// ---- profiles ----
static Status wants_table(const ApiCall *call, bool *out)
{
        const char *form = call_query(call, "form");
        *out = form != NULL && strcmp(form, "text") == 0;
        if (form != NULL && !*out && strcmp(form, "json") != 0)
                return fail(STATUS_VALUE, "\"form\" is json or text, not \"%s\"", form);
        return STATUS_OK;
}

static Status get_stats(const Answer *answer)
{
        SignatureSummary *signatures;
        uint32_t n;
        bool table;
        TRY(wants_table(answer->call, &table));
        TRY(profile_stats_read(answer->version->stats, &signatures, &n));
        Text *out = begin(answer, table ? text_type : json_type);
        Status status = STATUS_OK;
        if (table) {
                status = stats_write_table(signatures, n, out);
        } else {
                stats_write_json(signatures, n, out);
                text_add_char(out, '\n');
        }
        profile_summary_free(signatures, n);
        return status;
}

static Status get_profiles(const Answer *answer)
{
        int64_t slowest = 0, limit = LIST_DEFAULT;
        RunProfile *rows[LIST_MAX];
        TRY(call_query_int(answer->call, "slowest", 1, LIST_MAX, &slowest));
        TRY(call_query_int(answer->call, "limit", 1, LIST_MAX, &limit));
        uint32_t n =
                profile_ring_list(engine_profiles(answer->context->engine), slowest > 0, (uint32_t)(slowest > 0 ? slowest : limit), rows);
        Text *out = begin(answer, json_type);
        text_add(out, "{\"profiles\": [");
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ",\n");
                text_add(out, "{\"id\": ");
                text_add_json(out, rows[i]->id);
                text_add(out, ", \"graph\": ");
                text_add_json(out, rows[i]->graph_name);
                text_addf(out, ", \"version\": %lld, \"signature\": ", (long long)rows[i]->version);
                text_add_json(out, rows[i]->signature);
                text_addf(out, ", \"ended_ms\": %lld, \"run_us\": %.3f, \"total_us\": %.3f}", (long long)rows[i]->wall_ms,
                          (double)rows[i]->run_ns / 1e3, (double)rows[i]->total_ns / 1e3);
                run_profile_unref(rows[i]);
        }
        text_add(out, "]}\n");
        return STATUS_OK;
}

static Status get_profile(const Answer *answer)
{
        bool table;
        TRY(wants_table(answer->call, &table));
        _cleanup_(run_profile_unrefp) RunProfile *profile = profile_ring_find(engine_profiles(answer->context->engine), answer->call->id);
        if (profile == NULL)
                return fail(STATUS_NOT_FOUND,
                            "there is no profile '%s'; the last %lld runs are kept (--max-profiles), GET /v1/profiles lists them",
                            answer->call->id, (long long)limits.max_profiles);
        Text *out = begin(answer, table ? text_type : json_type);
        if (table)
                return profile_write_table(profile, out);
        profile_write_json(profile, out);
        text_add_char(out, '\n');
        return STATUS_OK;
}

// ---- the table ----
enum { NEEDS_VERSION = 1, NEEDS_GRAPH = 2 };
typedef struct Handler {
        Status (*answer)(const Answer *answer);
        int needs;
} Handler;

static const Handler handlers[ROUTE_COUNT] = {
        [ROUTE_ROOT_INFO] = { get_root, 0 },
        [ROUTE_GRAPH_LIST] = { get_list, 0 },
        [ROUTE_GRAPH_POST] = { put_graph, 0 },
        [ROUTE_GRAPH_PUT] = { put_graph, 0 },
        [ROUTE_GRAPH_GET] = { get_graph, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_GRAPH_DELETE] = { delete_graph, 0 },
        [ROUTE_VERSION_GET] = { get_graph, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_VERSION_DELETE] = { delete_graph, 0 },
        [ROUTE_RUN] = { NULL, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_VERSION_RUN] = { NULL, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_RUN_INLINE] = { NULL, 0 },
        [ROUTE_TEXT] = { get_text, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_VERSION_TEXT] = { get_text, NEEDS_VERSION | NEEDS_GRAPH },
        [ROUTE_PROFILE_STATS] = { get_stats, NEEDS_VERSION },
        [ROUTE_VERSION_PROFILE_STATS] = { get_stats, NEEDS_VERSION },
        [ROUTE_PROFILE_LIST] = { get_profiles, 0 },
        [ROUTE_PROFILE_GET] = { get_profile, 0 },
        [ROUTE_OPS] = { get_ops, 0 },
        [ROUTE_METRICS] = { get_metrics, 0 },
        [ROUTE_LIVEZ] = { get_livez, 0 },
        [ROUTE_READYZ] = { get_readyz, 0 },
        [ROUTE_HEALTHZ] = { get_readyz, 0 },
};

bool api_needs_version(RouteId route)
{
        return (handlers[route].needs & NEEDS_VERSION) != 0;
}

bool api_needs_graph(RouteId route)
{
        return (handlers[route].needs & NEEDS_GRAPH) != 0;
}

void api_answer(const ApiContext *context, ApiCall *call, Graph *graph_or_null, GraphVersion *version_or_null, ApiReply *reply)
{
        Answer answer = { context, call, graph_or_null, version_or_null, reply };
        Status status = handlers[call->route].answer(&answer);
        if (status == STATUS_OK)
                status = text_status(&reply->body);
        if (status != STATUS_OK)
                reply_failure(failure_current(), call->request_id, reply);
}
