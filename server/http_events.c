// SPDX-License-Identifier: Apache-2.0
// http_events.c: what requests tell those who follow GET /v1/events, and the streams themselves.
#include <stdio.h>
#include <string.h>
#include "server/http_private.h"

enum { JSON_MAX = 1024 };

// Names, ids and codes hold nothing that JSON would escape.
static void post(const Exchange *exchange, const char *kind, const char *json)
{
        events_post(exchange->http->options.events, kind, exchange->job->call.request_id, json);
}

static bool is_wanted(const Exchange *exchange)
{
        return events_wanted(exchange->http->options.events) && exchange->job->call.route != NULL;
}

void tell_begun(const Exchange *exchange)
{
        const Job *job = exchange->job;
        char json[JSON_MAX];
        if (!job->is_run || !is_wanted(exchange))
                return;
        snprintf(json, sizeof(json), "{\"id\": \"%s\", \"graph\": \"%s\", \"state\": \"begun\"}",
                 job->call.request_id, job_graph_name(job));
        post(exchange, "run", json);
}

static void tell_run(const Exchange *exchange, int status, const char *code, int64_t took_ns)
{
        const Job *job = exchange->job;
        char json[JSON_MAX];
        int n = snprintf(json, sizeof(json),
                         "{\"id\": \"%s\", \"graph\": \"%s\", \"state\": \"ended\", \"status\": %d, ",
                         job->call.request_id, job_graph_name(job), status);
        if (code != NULL && status >= 400)
                n += snprintf(json + n, sizeof(json) - (size_t)n, "\"code\": \"%s\", ", code);
        snprintf(json + n, sizeof(json) - (size_t)n,
                 "\"queue_us\": %.3f, \"run_us\": %.3f, \"total_us\": %.3f}", (double)job->queue_ns / 1e3,
                 (double)job->step_ns[STEP_RUN] / 1e3, (double)took_ns / 1e3);
        post(exchange, "run", json);
}

void tell_ended(const Exchange *exchange, int status, const char *code, int64_t took_ns)
{
        const Job *job = exchange->job;
        char json[JSON_MAX];
        if (!is_wanted(exchange))
                return;
        if (job->is_run) {
                tell_run(exchange, status, code, took_ns);
                return;
        }
        // what changed a graph: all but reading needs the scope to write
        if (job->call.route->scope != SCOPE_WRITE || job->call.name[0] == '\0' || status >= 300)
                return;
        snprintf(json, sizeof(json),
                 "{\"id\": \"%s\", \"method\": \"%s\", \"route\": \"%s\", \"name\": \"%s\"}",
                 job->call.request_id, exchange->method, route_template(job->call.route), job->call.name);
        post(exchange, "change", json);
}

// Runs under way for a while: how far they are.
static void tell_progress(void *context)
{
        static const int64_t WORTH_NS = 200000000;
        const Http *http = context;
        int64_t now = clock_ns();
        char json[JSON_MAX];
        for (const Exchange *it = http->pending; it != NULL; it = it->pending_next) {
                const Job *job = it->job;
                uint32_t n_done, n_nodes;
                if (!job->is_run || now - it->pending_ns < WORTH_NS)
                        continue;
                int n = snprintf(
                        json, sizeof(json), "{\"id\": \"%s\", \"graph\": \"%s\", \"elapsed_us\": %.3f",
                        job->call.request_id, job_graph_name(job), (double)(now - job->received_ns) / 1e3);
                if (workers_progress(http->options.workers, &job->run.task.ctx, &n_done, &n_nodes))
                        n += snprintf(json + n, sizeof(json) - (size_t)n, ", \"done\": %u, \"nodes\": %u",
                                      n_done, n_nodes);
                snprintf(json + n, sizeof(json) - (size_t)n, "}");
                post(it, "progress", json);
        }
}

static void turn(void *context)
{
        http_turn(context);
}

void http_events_start(Http *http)
{
        events_start(http->options.events, &(EventsOptions){ .loop = http->options.loop,
                                                             .turn = turn,
                                                             .tick = tell_progress,
                                                             .context = http });
}

// The handler has checked the request, and made the head of the reply.
Status http_events_open(Exchange *exchange)
{
        ApiCall *call = &exchange->job->call;
        int64_t seconds = 0;
        TRY(param_int(call, PARAM_SECONDS, &seconds));
        if (strcmp(exchange->method, "HEAD") == 0)
                return STATUS_OK; // libmicrohttpd would send the chunk that ends the stream
        if (param_text(call, PARAM_SECONDS) == NULL)
                seconds = 0;
        return events_open(exchange->http->options.events, exchange->connection,
                           param_text(call, PARAM_EVENTS_ID), seconds, &exchange->stream);
}
