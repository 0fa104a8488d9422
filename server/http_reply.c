// SPDX-License-Identifier: Apache-2.0
// Replies on their way out, on the loop thread: headers, the bytes handed to the
// transport, the counts of /metrics and the log line.
#include <arpa/inet.h>
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
        facts.n_connections = (int64_t)transport_n_connections(http->transport);
        workers_counts(http->options.workers, &facts.n_queued, &facts.n_running);
        facts.body_bytes = (int64_t)atomic_load(&http->bodies.used);
        memory_read(http->options.memory, &facts.memory_bytes, &facts.memory_rung);
        facts.n_log_dropped = log_dropped();
        otlp_counts(http->options.otlp, &facts.n_traces_sent, &facts.n_traces_dropped);
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

static void find_trace(void *context, const char *key, const char *value)
{
        TraceHeader *header = context;
        if (strcasecmp(key, "traceparent") == 0) {
                header->n++;
                header->value = value;
        }
}

static void print_id(Http *http, char out[17])
{
        uint64_t id = random_next(http);
        print_hex(id == 0 ? 1 : id, out);
}

void take_trace(Exchange *exchange)
{
        Http *http = exchange->http;
        TraceIds *trace = &exchange->job->call.trace;
        TraceHeader header = { .n = 0 };
        transport_each_header(exchange->connection, find_trace, &header);
        if (header.n != 1 || header.value == NULL || !trace_parse(header.value, trace)) {
                if (http->options.otlp == NULL || !otlp_draws(http->options.otlp, random_next(http)))
                        return;
                trace->sampled = true;
                print_id(http, trace->trace_id);
                print_id(http, trace->trace_id + 16);
        }
        print_id(http, trace->span_id);
}

static void trace_exchange(const Exchange *exchange, int status, const char *code, int64_t took_ns)
{
        const Job *job = exchange->job;
        if (exchange->http->options.otlp == NULL || !job->call.trace.sampled ||
            route_is(job->call.route, KIND_PROBE))
                return;
        otlp_add(exchange->http->options.otlp, &(OtlpRequest){ .trace = &job->call.trace,
                                                               .method = exchange->method,
                                                               .route = route_template(job->call.route),
                                                               .graph = job_graph_name(job),
                                                               .request_id = job->call.request_id,
                                                               .code = code,
                                                               .version = job->call.version,
                                                               .status = status,
                                                               .took_ns = took_ns,
                                                               .queue_ns = job->queue_ns,
                                                               .step_ns = job->step_ns });
}

// ---- counting and logging ----
static void client_of(const Exchange *exchange, char out[INET6_ADDRSTRLEN])
{
        const struct sockaddr *address = transport_client(exchange->connection);
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
                                   .graph = job_graph_name(job),
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

// A run of a session that is not there is nobody's; "" comes with its graph.
static const char *metrics_name(const Job *job)
{
        const char *name = job_graph_name(job);
        return name[0] == '\0' && route_has(job->call.route, NEEDS_SESSION) ? "_other" : name;
}

static void count(Exchange *exchange, int status, const char *code, size_t n_sent)
{
        const Job *job = exchange->job;
        Metrics *metrics = &exchange->http->metrics;
        int64_t took_ns = clock_ns() - job->received_ns;
        if (exchange->counted)
                return;
        exchange->counted = true;
        tell_ended(exchange, status, code, took_ns);
        trace_exchange(exchange, status, code, took_ns);
        metrics_count_request(metrics, job->call.route, status, (double)took_ns / 1e9);
        if (job->queue_ns > 0)
                metrics_count_wait(metrics, (double)job->queue_ns / 1e9);
        if (job->is_run)
                metrics_count_run(
                        metrics,
                        &(RunCount){ .graph = metrics_name(job),
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
        TransportPiece *vectors;
        uint32_t n;
        ApiReply reply; // what the vectors point into; freed when it was sent
        Budget *budget;
        size_t n_charged;
} SentPieces;

static Status add_vector(void *context, const uint8_t *data, size_t n)
{
        SentPieces *pieces = context;
        pieces->vectors[pieces->n++] = (TransportPiece){ data, n };
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
static TransportReply *response_of_pieces(ApiReply *reply, Budget *budget, size_t n_charged)
{
        SentPieces *pieces = calloc(1, sizeof(*pieces));
        TransportPiece *vectors = new_array(2 * (size_t)reply->n_pieces + 1, sizeof(*vectors));
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
        return transport_reply_pieces(vectors, pieces->n, free_pieces, pieces);
}

static TransportReply *response_of(ApiReply *reply, Budget *budget, size_t n_charged)
{
        if (reply->content_type != NULL && (reply->n_pieces > 0 || n_charged > 0))
                return response_of_pieces(reply, budget, n_charged);
        size_t n = reply->content_type == NULL ? 0 : reply->body.n;
        char *bytes = n == 0 ? NULL : text_take(&reply->body);
        return n > 0 && bytes == NULL ? NULL : transport_reply(bytes, n);
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

bool send_reply(Exchange *exchange)
{
        Http *http = exchange->http;
        Job *job = exchange->job;
        ApiReply *reply = &job->reply;
        size_t n_charged = charge(exchange), n = api_reply_bytes(reply);
        if (exchange->conn != NULL && n > LARGE_REPLY)
                conn_starts_reply(exchange->conn);
        exchange->streams = exchange->stream != NULL;
        TransportReply *out = exchange->stream != NULL ? take_ptr(exchange->stream)
                                                       : response_of(reply, &http->replies, n_charged);
        if (out == NULL)
                return false;
        if (reply->content_type != NULL)
                transport_reply_header(out, "Content-Type", reply->content_type);
        transport_reply_header(out, "X-Request-Id", job->call.request_id);
        transport_reply_header(out, "X-Content-Type-Options", "nosniff");
        cors_add_headers(exchange, out);
        if (exchange->allow[0] != '\0')
                transport_reply_header(out, "Allow", exchange->allow);
        if (exchange->refused || http->leaving)
                transport_reply_header(out, "Connection", "close");
        for (uint32_t i = 0; i < reply->n_headers; i++)
                transport_reply_header(out, reply->headers[i].name, reply->headers[i].value);
        bool queued = transport_reply_send(exchange->connection, reply->status, out);
        if (reply->problem[0] != '\0')
                log_error("internal error in request %s: %s", job->call.request_id, reply->problem);
        count(exchange, reply->status, reply->code, n);
        return queued;
}

void prepare_refusal(Exchange *exchange)
{
        reply_failure(&exchange->job->call, failure_current(), &exchange->job->reply);
        exchange->done = true;
}

bool refuse(Exchange *exchange)
{
        prepare_refusal(exchange);
        return send_reply(exchange);
}
