// SPDX-License-Identifier: Apache-2.0
// Replies on their way out, on the loop thread: headers, the response handed to MHD, the counts of
// /metrics and the log line.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "core/base/limits.h"
#include "server/http_private.h"
#include "server/log.h"
#include "server/process.h"
#include "server/trace.h"

// ---- facts ----
enum { SILENCE_NS = 1000000000 };

ServerFacts facts_now(Http *http, const Route *route)
{
        ServerFacts facts = http->options.facts;
        if (!route_has(route, NEEDS_FACTS))
                return facts;
        facts.uptime_ns = clock_ns() - http->started_ns;
        facts.n_stalled = workers_stalled(http->options.workers, SILENCE_NS);
        facts.ready = !http->leaving && facts.n_stalled < facts.n_workers;
        if (!route_has(route, NEEDS_COUNTS))
                return facts;
        const union MHD_DaemonInfo *info =
                MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        facts.n_connections = info == NULL ? 0 : info->num_connections;
        workers_counts(http->options.workers, &facts.n_queued, &facts.n_running);
        facts.body_bytes = (int64_t)atomic_load(&http->bodies.used);
        facts.n_log_dropped = log_dropped();
        process_read(&http->process);
        facts.process = &http->process;
        facts.metrics = &http->metrics;
        door_facts(http->options.door, &facts);
        usage_read(http->options.usage, &facts.data_bytes, &facts.data_free_bytes);
        return facts;
}

// ---- tracing ----
typedef struct TraceHeader {
        int n;
        const char *value;
} TraceHeader;

static enum MHD_Result find_trace(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
        TraceHeader *header = context;
        (void)kind;
        if (strcasecmp(key, "traceparent") == 0) {
                header->n++;
                header->value = value;
        }
        return MHD_YES;
}

void take_trace(Exchange *exchange)
{
        TraceIds *trace = &exchange->job->call.trace;
        TraceHeader header = { .n = 0 };
        MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, find_trace, &header);
        if (header.n != 1 || header.value == NULL || !trace_parse(header.value, trace))
                return;
        uint64_t span = random_next(exchange->http);
        snprintf(trace->span_id, sizeof(trace->span_id), "%016llx",
                 (unsigned long long)(span == 0 ? 1 : span));
}

// ---- counting and logging ----
static void client_of(const Exchange *exchange, char out[INET6_ADDRSTRLEN])
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        const struct sockaddr *address = info == NULL ? NULL : info->client_addr;
        const void *bytes = NULL;
        out[0] = '\0';
        if (address != NULL && address->sa_family == AF_INET)
                bytes = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
        else if (address != NULL && address->sa_family == AF_INET6)
                bytes = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        if (bytes != NULL)
                inet_ntop(address->sa_family, bytes, out, INET6_ADDRSTRLEN);
}

static void log_exchange(const Exchange *exchange, int status, const char *code, int64_t took_ns,
                         size_t n_sent)
{
        const Job *job = exchange->job;
        char client[INET6_ADDRSTRLEN];
        client_of(exchange, client);
        log_request(&(LogRequest){ .method = exchange->method,
                                   .route = route_template(job->call.route),
                                   .id = job->call.request_id,
                                   .graph = job->call.name,
                                   .version = job->call.version,
                                   .status = status,
                                   .code = code,
                                   .client = client,
                                   .token = exchange->token_name,
                                   .trace_id = job->call.trace.trace_id,
                                   .parent_id = job->call.trace.parent_id,
                                   .span_id = job->call.trace.span_id,
                                   .total_ms = (double)took_ns / 1e6,
                                   .is_run = job->is_run,
                                   .queue_ms = (double)job->queue_ns / 1e6,
                                   .run_ms = (double)job->step_ns[STEP_RUN] / 1e6,
                                   .request_bytes = exchange->n_body,
                                   .response_bytes = n_sent });
}

static void count(Exchange *exchange, int status, const char *code, size_t n_sent)
{
        const Job *job = exchange->job;
        Metrics *metrics = &exchange->http->metrics;
        int64_t took_ns = clock_ns() - job->received_ns;
        if (exchange->counted)
                return;
        exchange->counted = true;
        metrics_count_request(metrics, job->call.route, status, (double)took_ns / 1e9);
        if (job->queue_ns > 0)
                metrics_count_wait(metrics, (double)job->queue_ns / 1e9);
        if (job->is_run)
                metrics_count_run(
                        metrics,
                        &(RunCount){ .graph = job->call.name,
                                     .known = job->call.name[0] == '\0' || atomic_load(&job->found_graph),
                                     .status = status,
                                     .seconds = (double)took_ns / 1e9,
                                     .run_seconds = (double)job->step_ns[STEP_RUN] / 1e9 });
        metrics->runs_cancelled += job->is_run && (status == 499 || status == 504);
        if (!exchange->http->options.quiet && !route_is(job->call.route, KIND_PROBE))
                log_exchange(exchange, status, code, took_ns, n_sent);
}

void count_unanswered(Exchange *exchange)
{
        Status status = exchange->conn != NULL && exchange->conn->slow ? STATUS_SLOW : STATUS_CANCELLED;
        if (exchange->checked || status == STATUS_SLOW)
                count(exchange, status_http(status), status_code(status), 0);
}

void count_slow_head(Http *http)
{
        metrics_count_request(&http->metrics, NULL, status_http(STATUS_SLOW),
                              (double)limits.header_timeout_s);
}

// ---- sending ----
// Smaller replies fit into the socket's buffer as a whole.
enum { LARGE_REPLY = 1 << 16 };

typedef struct SentPieces {
        struct MHD_IoVec *vectors;
        uint32_t n;
        ApiReply reply; // what the vectors point into; freed when MHD has sent it
        Budget *budget;
        size_t n_charged;
} SentPieces;

static Status add_vector(void *context, const uint8_t *data, size_t n)
{
        SentPieces *pieces = context;
        pieces->vectors[pieces->n++] = (struct MHD_IoVec){ .iov_base = data, .iov_len = n };
        return STATUS_OK;
}

static void free_pieces(void *context)
{
        SentPieces *pieces = context;
        budget_give(pieces->budget, pieces->n_charged);
        api_reply_deinit(&pieces->reply);
        free(pieces->vectors);
        free(pieces);
}

// Bytes in other memory (tensors) are sent from there. Takes the reply's bytes and their charge;
// NULL: out of memory.
static struct MHD_Response *response_of_pieces(ApiReply *reply, Budget *budget, size_t n_charged)
{
        SentPieces *pieces = calloc(1, sizeof(*pieces));
        struct MHD_IoVec *vectors = new_array(2 * (size_t)reply->n_pieces + 1, sizeof(*vectors));
        if (pieces == NULL || vectors == NULL) {
                budget_give(budget, n_charged);
                free(pieces);
                free(vectors);
                return NULL;
        }
        pieces->vectors = vectors;
        pieces->budget = budget;
        pieces->n_charged = n_charged;
        pieces->reply = *reply;
        reply->body = (Text){ .n = 0 };
        reply->pieces = NULL;
        reply->n_pieces = reply->pieces_capacity = 0;
        api_reply_each(&pieces->reply, add_vector, pieces);
        struct MHD_Response *response =
                MHD_create_response_from_iovec(vectors, pieces->n, free_pieces, pieces);
        if (response == NULL)
                free_pieces(pieces);
        return response;
}

static struct MHD_Response *response_of(ApiReply *reply, Budget *budget, size_t n_charged)
{
        if (reply->content_type != NULL && (reply->n_pieces > 0 || n_charged > 0))
                return response_of_pieces(reply, budget, n_charged);
        size_t n = reply->content_type == NULL ? 0 : reply->body.n;
        if (n == 0)
                return MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
        char *bytes = text_take(&reply->body);
        if (bytes == NULL)
                return NULL;
        struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback(n, bytes, free);
        if (response == NULL)
                free(bytes);
        return response;
}

// The memory that a large reply holds until its client has taken it; files cost nothing. A reply
// without room becomes a refusal.
static size_t charge(Exchange *exchange)
{
        ApiReply *reply = &exchange->job->reply;
        Budget *budget = &exchange->http->replies;
        size_t n = reply->body.n;
        for (uint32_t i = 0; i < reply->n_pieces; i++)
                n += storage_is_mapped(reply->pieces[i].owner) ? 0 : reply->pieces[i].n;
        if (reply->content_type == NULL || n <= LARGE_REPLY ||
            route_is(exchange->job->call.route, KIND_PROBE))
                return 0;
        if (budget_take(budget, n))
                return n;
        if (n > budget->limit)
                fail(STATUS_TOO_LARGE,
                     "the reply is larger than %zu bytes (--max-reply-budget, FXSERVE_MAX_REPLY_BUDGET)",
                     budget->limit);
        else
                fail(STATUS_BUSY, "as many bytes of replies as may wait for their clients already "
                                  "(--max-reply-budget); try again");
        prepare_refusal(exchange);
        return 0;
}

enum MHD_Result send_reply(Exchange *exchange)
{
        Http *http = exchange->http;
        Job *job = exchange->job;
        ApiReply *reply = &job->reply;
        size_t n_charged = charge(exchange), n = api_reply_bytes(reply);
        if (exchange->conn != NULL && n > LARGE_REPLY)
                conn_starts_reply(exchange->conn);
        struct MHD_Response *response = response_of(reply, &http->replies, n_charged);
        if (response == NULL)
                return MHD_NO;
        if (reply->content_type != NULL)
                MHD_add_response_header(response, "Content-Type", reply->content_type);
        MHD_add_response_header(response, "X-Request-Id", job->call.request_id);
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        cors_add_headers(exchange, response);
        if (exchange->allow[0] != '\0')
                MHD_add_response_header(response, "Allow", exchange->allow);
        if (exchange->refused || http->leaving)
                MHD_add_response_header(response, "Connection", "close");
        for (uint32_t i = 0; i < reply->n_headers; i++)
                MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
        enum MHD_Result result = MHD_queue_response(exchange->connection, (unsigned)reply->status, response);
        MHD_destroy_response(response);
        if (reply->problem[0] != '\0')
                log_error("internal error in request %s: %s", job->call.request_id, reply->problem);
        count(exchange, reply->status, reply->code, n);
        return result;
}

void prepare_refusal(Exchange *exchange)
{
        reply_failure(failure_current(), exchange->job->call.request_id, &exchange->job->reply);
        exchange->done = true;
}

enum MHD_Result refuse(Exchange *exchange)
{
        prepare_refusal(exchange);
        return send_reply(exchange);
}
