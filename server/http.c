// SPDX-License-Identifier: Apache-2.0
// The life of an exchange, all on the loop thread:
//   request line → begin();  headers → first handler call: guards, route, limits;  body → further calls;  complete → submit to the workers,
//   suspend job finished (worker) → list + one uv_async → resume → handler called again → reply queued;  completed → freed.
// MHD never sees a resumed connection whose job is not finished, and a connection is suspended only while its job is away.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "server/http_private.h"
#include "server/log.h"

// ---- finished jobs ----
static void job_finished(Job *job)
{
        Exchange *exchange = job->exchange;
        Http *http = exchange->http;
        pthread_mutex_lock(&http->finished_mutex);
        bool was_empty = http->finished == NULL;
        job->next = http->finished;
        http->finished = job;
        pthread_mutex_unlock(&http->finished_mutex);
        if (was_empty)
                uv_async_send(&http->async);
}

static void job_requeue(Job *job)
{
        Exchange *exchange = job->exchange;
        workers_resubmit(exchange->http->options.workers, job);
}

// ---- replies ----
static const char *const method_names[] = { "GET", "HEAD", "POST", "PUT", "DELETE" };

static void count_request(Http *http, RouteId route, int status, double seconds)
{
        uint32_t i = 0;
        while (i < http->n_counts && (http->counts[i].route != route || http->counts[i].status != status))
                i++;
        if (i == HTTP_MAX_COUNTS)
                return;
        if (i == http->n_counts)
                http->counts[http->n_counts++] = (struct RequestCount){ .route = route, .status = status };
        http->counts[i].n++;
        http->counts[i].seconds += seconds;
}

static bool is_probe(RouteId route)
{
        return route == ROUTE_LIVEZ || route == ROUTE_READYZ || route == ROUTE_HEALTHZ || route == ROUTE_METRICS;
}

static enum MHD_Result send_reply(Exchange *exchange)
{
        Http *http = exchange->http;
        Job *job = exchange->job;
        ApiReply *reply = &job->reply;
        size_t n = reply->body.n;
        bool with_body = reply->content_type != NULL;
        char *bytes = with_body && n > 0 ? text_take(&reply->body) : NULL;
        struct MHD_Response *response = bytes == NULL ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT)
                                                      : MHD_create_response_from_buffer_with_free_callback(n, bytes, free);
        if (response == NULL) {
                free(bytes);
                return MHD_NO;
        }
        if (with_body)
                MHD_add_response_header(response, "Content-Type", reply->content_type);
        MHD_add_response_header(response, "X-Request-Id", job->call.request_id);
        if (exchange->allow[0] != '\0')
                MHD_add_response_header(response, "Allow", exchange->allow);
        if (exchange->refused || http->draining)
                MHD_add_response_header(response, "Connection", "close");
        for (uint32_t i = 0; i < reply->n_headers; i++)
                MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
        enum MHD_Result result = MHD_queue_response(exchange->connection, (unsigned)reply->status, response);
        MHD_destroy_response(response);
        int64_t took_ns = clock_ns() - job->received_ns;
        count_request(http, job->call.route, reply->status, (double)took_ns / 1e9);
        if (!http->options.quiet && !is_probe(job->call.route))
                log_line("%s %s %d %.3f ms %zu bytes %s", exchange->method, route_template(job->call.route), reply->status,
                         (double)took_ns / 1e6, n, job->call.request_id);
        return result;
}

static void log_internal(const Job *job)
{
        const Failure *failure = failure_current();
        if (status_class(failure->status) == STATUS_CLASS_INTERNAL)
                log_line("internal error in request %s: %s (%s:%d)", job->call.request_id, failure->message,
                         failure->file == NULL ? "?" : failure->file, failure->line);
}

static void prepare_refusal(Exchange *exchange)
{
        log_internal(exchange->job);
        reply_failure(failure_current(), exchange->job->call.request_id, &exchange->job->reply);
        exchange->done = true;
}

// Answers from the loop thread with this thread's failure.
static enum MHD_Result refuse(Exchange *exchange)
{
        prepare_refusal(exchange);
        return send_reply(exchange);
}

static const char *header_of(const Exchange *exchange, const char *name)
{
        return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

// A refusal before the body was read. Closing a connection while its client still sends would lose the reply on the way, so a body of
// bearable size is read to its end first, and the connection is kept; a client that waits to be asked for its body (Expect) is answered at
// once, and so is a request whose end is in doubt.
static enum MHD_Result refuse_head(Exchange *exchange)
{
        const char *length = header_of(exchange, "Content-Length");
        bool bearable = length == NULL || strtoull(length, NULL, 10) <= (uint64_t)limits.max_body_budget;
        prepare_refusal(exchange);
        exchange->dropping = exchange->framed && bearable && header_of(exchange, "Expect") == NULL;
        exchange->refused = !exchange->dropping;
        return exchange->dropping ? MHD_YES : send_reply(exchange);
}

// Part of a body that nobody wants. Without end it is cut off: there is no way to answer in its middle.
static enum MHD_Result drop(Exchange *exchange, size_t n)
{
        exchange->n_dropped += n;
        return exchange->n_dropped <= (uint64_t)limits.max_body_budget ? MHD_YES : MHD_NO;
}

// ---- requests ----
static void copy_header(Exchange *exchange, const char *name, char out[CALL_HEADER_MAX])
{
        const char *value = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
        snprintf(out, CALL_HEADER_MAX, "%s", value == NULL ? "" : value);
}

static Status open_request(Exchange *exchange, const char *method)
{
        Job *job = exchange->job;
        take_request_id(exchange);
        for (size_t i = 0; i < ARRAY_LENGTH(method_names); i++)
                if (strcmp(method, method_names[i]) == 0)
                        snprintf(exchange->method, sizeof(exchange->method), "%s", method);
        TRY(guard_request(exchange));
        TRY(route_parse(exchange->method, exchange->target, &job->call, exchange->allow));
        copy_header(exchange, "Content-Type", job->call.content_type);
        copy_header(exchange, "Accept", job->call.accept);
        job->is_run = job->call.route == ROUTE_RUN || job->call.route == ROUTE_VERSION_RUN || job->call.route == ROUTE_RUN_INLINE;
        return guard_length(exchange);
}

// Room for `n` more bytes, aligned so that weights in an archive can be used where they are; doubles.
static Status grow_body(Exchange *exchange, size_t n)
{
        size_t needed = exchange->n_body + n;
        if (!budget_take(&exchange->http->bodies, n))
                return fail(STATUS_BUSY, "the server holds as many request bodies as it may; try again");
        exchange->n_body = needed;
        TRY(guard_length(exchange));
        exchange->n_body = needed - n;
        if (needed <= exchange->capacity)
                return STATUS_OK;
        const char *declared = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "Content-Length");
        size_t wish = declared == NULL ? MAX(exchange->capacity * 2, (size_t)65536) : (size_t)strtoull(declared, NULL, 10);
        size_t capacity = (MAX(wish, needed) + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN;
        uint8_t *body = aligned_alloc(STORAGE_ALIGN, capacity);
        if (body == NULL) {
                budget_give(&exchange->http->bodies, n);
                return fail_memory();
        }
        if (exchange->n_body > 0)
                memcpy(body, exchange->body, exchange->n_body);
        free(exchange->body);
        exchange->body = body;
        exchange->capacity = capacity;
        return STATUS_OK;
}

static ServerFacts facts_now(Http *http, Job *job)
{
        ServerFacts facts = http->options.facts;
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        facts.uptime_ns = clock_ns() - http->started_ns;
        facts.n_connections = info == NULL ? 0 : info->num_connections;
        facts.ready = !http->draining;
        workers_counts(http->options.workers, &facts.n_queued, &facts.n_running);
        if (job->call.route == ROUTE_METRICS && (job->counts = new_array(http->n_counts, sizeof(*job->counts))) != NULL) {
                memcpy(job->counts, http->counts, http->n_counts * sizeof(*job->counts));
                facts.counts = job->counts;
                facts.n_counts = http->n_counts;
        }
        return facts;
}

static enum MHD_Result submit(Exchange *exchange)
{
        Http *http = exchange->http;
        Job *job = exchange->job;
        exchange->submitted = true;
        if (exchange->n_body > 0) {
                if (storage_adopt(exchange->body, exchange->n_body, true, NULL, NULL, &job->call.body) != STATUS_OK)
                        return refuse(exchange);
                exchange->body = NULL;
        }
        job->facts = is_probe(job->call.route) || job->call.route == ROUTE_ROOT_INFO ? facts_now(http, job) : http->options.facts;
        job->context = (ApiContext){ http->options.engine, &job->facts };
        if (job->call.route == ROUTE_LIVEZ || job->call.route == ROUTE_READYZ || job->call.route == ROUTE_HEALTHZ) {
                api_answer(&job->context, &job->call, NULL, NULL, &job->reply);
                exchange->done = true;
                return send_reply(exchange);
        }
        if (http->draining) {
                fail(STATUS_BUSY, "the server is stopping");
                return refuse(exchange);
        }
        if (!workers_submit(http->options.workers, job)) {
                fail(STATUS_BUSY, "%lld requests wait for a worker already (--max-queue); try again", (long long)limits.max_queue);
                return refuse(exchange);
        }
        MHD_suspend_connection(exchange->connection); // before the loop can see the job finished: that is this thread's business, too
        return MHD_YES;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
                              const char *data, size_t *n_data, void **state)
{
        Exchange *exchange = *state;
        (void)context;
        (void)url;
        (void)version;
        if (exchange == NULL)
                return MHD_NO;
        exchange->connection = connection;
        if (!exchange->checked) {
                exchange->checked = true;
                return open_request(exchange, method) == STATUS_OK ? MHD_YES : refuse_head(exchange);
        }
        if (*n_data > 0) {
                size_t n = *n_data;
                *n_data = 0;
                if (exchange->dropping)
                        return drop(exchange, n);
                if (grow_body(exchange, n) != STATUS_OK) {
                        prepare_refusal(exchange);
                        exchange->dropping = true;
                        return drop(exchange, n);
                }
                memcpy(exchange->body + exchange->n_body, data, n);
                exchange->n_body += n;
                return MHD_YES;
        }
        if (!exchange->submitted && !exchange->dropping)
                return submit(exchange);
        return exchange->done ? send_reply(exchange) : MHD_YES;
}

// ---- begin and end of an exchange ----
static void *begin(void *context, const char *target, struct MHD_Connection *connection)
{
        Http *http = context;
        Exchange *exchange = calloc(1, sizeof(*exchange));
        if (exchange == NULL)
                return NULL;
        exchange->http = http;
        exchange->connection = connection;
        exchange->target = copy_text(target, strlen(target));
        snprintf(exchange->method, sizeof(exchange->method), "-");
        if (exchange->target == NULL || job_new(&exchange->job) != STATUS_OK) {
                free(exchange->target);
                free(exchange);
                return NULL;
        }
        exchange->job->exchange = exchange;
        exchange->job->received_ns = clock_ns();
        exchange->job->requeue = job_requeue;
        exchange->job->finished = job_finished;
        exchange->job->call.route = ROUTE_NONE;
        exchange->next = http->exchanges;
        if (exchange->next != NULL)
                exchange->next->previous = exchange;
        http->exchanges = exchange;
        http->n_exchanges++;
        return exchange;
}

static void completed(void *context, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
        Http *http = context;
        Exchange *exchange = *state;
        (void)connection;
        (void)code;
        *state = NULL;
        if (exchange == NULL)
                return;
        budget_give(&http->bodies, exchange->n_body);
        *(exchange->previous != NULL ? &exchange->previous->next : &http->exchanges) = exchange->next;
        if (exchange->next != NULL)
                exchange->next->previous = exchange->previous;
        http->n_exchanges--;
        job_free(exchange->job);
        free(exchange->body);
        free(exchange->target);
        free(exchange);
        if (http->draining && http->n_exchanges == 0 && !http->stopped)
                http->options.idle(http->options.idle_context);
}

// ---- the loop ----
static void turn(Http *http);

static void on_timer(uv_timer_t *timer)
{
        turn(timer->data);
}

static void turn(Http *http)
{
        MHD_UNSIGNED_LONG_LONG wait_ms;
        if (http->stopped)
                return;
        MHD_run(http->daemon);
        if (http->stopped)
                return;
        if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES)
                uv_timer_start(&http->timer, on_timer, wait_ms, 0);
        else
                uv_timer_stop(&http->timer);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
        (void)status;
        (void)events;
        turn(poll->data);
}

static void on_finished(uv_async_t *async)
{
        Http *http = async->data;
        pthread_mutex_lock(&http->finished_mutex);
        Job *job = http->finished;
        http->finished = NULL;
        pthread_mutex_unlock(&http->finished_mutex);
        while (job != NULL) {
                Job *next = job->next;
                Exchange *exchange = job->exchange;
                exchange->done = true;
                MHD_resume_connection(exchange->connection);
                job = next;
        }
        turn(http);
}

static size_t keep_escaped(void *context, struct MHD_Connection *connection, char *text)
{
        (void)context;
        (void)connection;
        return strlen(text); // the raw target is routed; nothing here reads MHD's decoded forms
}

Status http_start(const HttpOptions *options, Http **out_http)
{
        Http *http = calloc(1, sizeof(*http));
        if (http == NULL)
                return fail_memory();
        http->options = *options;
        http->started_ns = clock_ns();
        pthread_mutex_init(&http->finished_mutex, NULL);
        budget_init(&http->bodies, (size_t)limits.max_body_budget);
        if (getrandom(&http->id_seed, sizeof(http->id_seed), 0) != sizeof(http->id_seed))
                http->id_seed = (uint64_t)http->started_ns;
        http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET,
                                        options->listen_fd, MHD_OPTION_URI_LOG_CALLBACK, begin, http, MHD_OPTION_NOTIFY_COMPLETED,
                                        completed, http, MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL, MHD_OPTION_CONNECTION_LIMIT,
                                        (unsigned)limits.max_connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)limits.idle_timeout_s,
                                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(limits.max_headers + 16384),
                                        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
        const union MHD_DaemonInfo *info = http->daemon == NULL ? NULL : MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (info == NULL) {
                free(http);
                return fail(STATUS_INTERNAL, "the HTTP server could not be started");
        }
        uv_poll_init(options->loop, &http->poll, info->epoll_fd);
        uv_timer_init(options->loop, &http->timer);
        uv_async_init(options->loop, &http->async, on_finished);
        http->poll.data = http->timer.data = http->async.data = http;
        uv_poll_start(&http->poll, UV_READABLE, on_readable);
        *out_http = http;
        turn(http);
        return STATUS_OK;
}

// Requests that are not complete yet have this long to go on; a client that vanished in the middle would otherwise be waited for until it
// times out.
enum { DRAIN_SILENCE_S = 2 };

void http_drain(Http *http)
{
        if (http->draining)
                return;
        http->draining = true;
        MHD_socket fd = MHD_quiesce_daemon(http->daemon);
        if (fd != MHD_INVALID_SOCKET)
                close(fd);
        for (Exchange *exchange = http->exchanges; exchange != NULL; exchange = exchange->next)
                if (!exchange->submitted)
                        MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT, DRAIN_SILENCE_S);
        if (http->n_exchanges == 0)
                http->options.idle(http->options.idle_context);
        else
                turn(http);
}

void http_cancel_all(Http *http)
{
        for (Exchange *exchange = http->exchanges; exchange != NULL; exchange = exchange->next)
                job_cancel(exchange->job);
}

void http_stop(Http *http)
{
        http->stopped = true;
        MHD_stop_daemon(http->daemon);
        uv_close((uv_handle_t *)&http->poll, NULL);
        uv_close((uv_handle_t *)&http->timer, NULL);
        uv_close((uv_handle_t *)&http->async, NULL);
}

Http *http_free(Http *http)
{
        if (http == NULL)
                return NULL;
        pthread_mutex_destroy(&http->finished_mutex);
        free(http);
        return NULL;
}
