// SPDX-License-Identifier: Apache-2.0
// The life of an exchange, all on the loop thread:
//
//   request line      begin()
//   headers           first handler call: guards, route, limits
//   body              further handler calls
//   body complete     the job is submitted to the workers, the connection is suspended
//   job finished      (on a worker) added to a list, one uv_async wakes the loop
//   loop wakes        the connection is resumed, the handler is called again and queues the reply
//   completed         freed
//
// The transport never sees a resumed connection whose job is unfinished. A connection is suspended
// only while its job is on a worker, parked or queued.
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "server/http_private.h"
#include "server/log.h"

// ---- finished jobs ----
static void job_finished(Job *job)
{
        Http *http = job->owner;
        pthread_mutex_lock(&http->finished_mutex);
        bool wake = http->finished == NULL && !http->deaf;
        job->next = http->finished;
        http->finished = job;
        if (wake) {
                turns_need(http->turns, TURN_LOOP);
                uv_async_send(&http->async);
        }
        pthread_mutex_unlock(&http->finished_mutex);
}

// ---- requests ----
static const char *const method_names[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" };

const char *header_of(const Exchange *exchange, const char *name)
{
        return transport_header(exchange->connection, name);
}

// Refuses before the body was read. Closing a connection while its client still sends would lose
// the reply on the way. So a body of moderate size is read to its end first, and the connection is
// kept. A client that waits for permission to send its body (Expect) is answered at once, and so is
// a request whose end is uncertain.
static bool refuse_head(Exchange *exchange)
{
        Status status = failure_current()->status;
        bool bearable = declared_length(exchange) <= (uint64_t)limits.max_body_budget;
        prepare_refusal(exchange);
        if (status == STATUS_TOKEN)
                api_reply_header(&exchange->job->reply, "WWW-Authenticate", "Bearer realm=\"fxserve\"");
        exchange->dropping = exchange->framed && bearable && header_of(exchange, "Expect") == NULL;
        exchange->refused = !exchange->dropping;
        return exchange->dropping || send_reply(exchange);
}

static void copy_header(Exchange *exchange, const char *name, char out[CALL_HEADER_MAX])
{
        const char *value = header_of(exchange, name);
        copy_cut(out, CALL_HEADER_MAX, value == NULL ? "" : value);
}

// All fields of one name, which are one list (RFC 9110, 5.3). A list that is cut would have another
// meaning.
typedef struct HeaderList {
        const char *name;
        char *out; // CALL_HEADER_MAX bytes
        size_t n;
        bool is_cut;
} HeaderList;

static void add_field(void *context, const char *name, const char *value)
{
        HeaderList *list = context;
        if (value == NULL || list->is_cut || strcasecmp(name, list->name) != 0)
                return;
        int n = snprintf(list->out + list->n, CALL_HEADER_MAX - list->n, "%s%s", list->n == 0 ? "" : ", ",
                         value);
        list->is_cut = n < 0 || (size_t)n >= CALL_HEADER_MAX - list->n;
        list->n += list->is_cut ? 0 : (size_t)n;
}

static Status join_header(Exchange *exchange, const char *name, char out[CALL_HEADER_MAX])
{
        HeaderList list = { .name = name, .out = out };
        out[0] = '\0';
        transport_each_header(exchange->connection, add_field, &list);
        return !list.is_cut ? STATUS_OK
                            : fail(STATUS_HEADERS, "%s has more than %d bytes", name, CALL_HEADER_MAX - 1);
}

static AuthAddress address_of(const Exchange *exchange)
{
        AuthAddress address = { .bytes = { 0 } };
        const struct sockaddr *from = transport_client(exchange->connection);
        if (from != NULL && from->sa_family == AF_INET6) {
                memcpy(address.bytes, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
        } else if (from != NULL && from->sa_family == AF_INET) {
                address.bytes[10] = address.bytes[11] = 0xff;
                memcpy(address.bytes + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        }
        return address;
}

// Before the reply reveals anything about the route: `known` is the result of routing, this
// thread's failure with it. A path without a route needs the scope to read, so that a stranger does
// not learn which graphs exist.
static Status check_token(Exchange *exchange, Status known)
{
        Auth *auth = exchange->http->options.auth;
        if (auth == NULL) {
                exchange->job->call.scopes = SCOPE_ALL;
                return known;
        }
        Failure found = *failure_current();
        AuthAddress address = address_of(exchange);
        Status status = auth_check(auth, header_of(exchange, "Authorization"), &address,
                                   known == STATUS_OK ? exchange->job->call.route->scope : SCOPE_READ,
                                   exchange->token_name);
        copy_cut(exchange->job->call.caller, sizeof(exchange->job->call.caller), exchange->token_name);
        if (status != STATUS_OK) {
                exchange->allow[0] = '\0';
                return status;
        }
        if (auth_quota(auth) != NULL) {
                TRY(quota_enter(auth_quota(auth)));
                exchange->job->call.quota = quota_ref(auth_quota(auth));
        }
        if (route_has(exchange->job->call.route, NEEDS_SCOPES))
                exchange->job->call.scopes = auth_scopes(auth, header_of(exchange, "Authorization"));
        *failure_current() = found;
        return known;
}

// Of a path that names none.
static Status name_graph(Exchange *exchange)
{
        ApiCall *call = &exchange->job->call;
        if (call->name[0] != '\0') // by its path
                return STATUS_OK;
        memcpy(call->name, exchange->http->options.codecs.invoked, sizeof(call->name));
        return call->name[0] != '\0' ? STATUS_OK : api_take_only(exchange->http->options.engine, call);
}

static Status open_request(Exchange *exchange, const char *method)
{
        Job *job = exchange->job;
        take_request_id(exchange);
        take_trace(exchange);
        for (size_t i = 0; i < ARRAY_LENGTH(method_names); i++)
                if (strcmp(method, method_names[i]) == 0)
                        copy_cut(exchange->method, sizeof(exchange->method), method);
        TRY(guard_request(exchange, method));
        bool is_answered;
        TRY(cors_preflight(exchange, method, &is_answered));
        if (is_answered) {
                // a preflight with a body, which no browser sends
                exchange->done = exchange->dropping = true;
                return STATUS_OK;
        }
        Status known = route_parse(exchange->method, exchange->target, &job->call, exchange->allow);
        if (exchange->hostless)
                TRY(guard_route(exchange));
        if (known == STATUS_OK)
                known = route_check_codec(job->call.route, &exchange->http->options.codecs);
        TRY(check_token(exchange, known));
        copy_header(exchange, "Content-Type", job->call.content_type);
        copy_header(exchange, "Accept", job->call.accept);
        TRY(join_header(exchange, "If-Match", job->call.if_match));
        TRY(join_header(exchange, "If-None-Match", job->call.if_none_match));
        if (route_has(job->call.route, AS_OIP))
                copy_header(exchange, "Inference-Header-Content-Length", job->call.header_length);
        if (route_has(job->call.route, AS_SAGEMAKER | NEEDS_VERSION))
                TRY(name_graph(exchange));
        job->is_run = route_is(job->call.route, KIND_RUN);
        TRY(memory_admit(exchange->http->options.memory, job->call.route));
        return body_limit(exchange);
}

static bool submit(Exchange *exchange)
{
        Http *http = exchange->http;
        Job *job = exchange->job;
        exchange->submitted = true;
        if (guard_body(exchange) != STATUS_OK) {
                exchange->refused = true;
                return refuse(exchange);
        }
        if (body_finish(exchange) != STATUS_OK)
                return refuse(exchange);
        job->facts = facts_now(http, job->call.route);
        job->context = (ApiContext){ .engine = http->options.engine,
                                     .replies = http->options.replies,
                                     .facts = &job->facts };
        if (route_is(job->call.route, KIND_PROBE) || route_is(job->call.route, KIND_STATIC)) {
                api_answer(&job->context, &job->call, NULL, NULL, &job->reply);
                exchange->done = true;
                return send_reply(exchange);
        }
        if (route_is(job->call.route, KIND_EVENTS)) {
                api_answer(&job->context, &job->call, NULL, NULL, &job->reply);
                if (job->reply.status == 200 && http_events_open(exchange) != STATUS_OK)
                        return refuse(exchange);
                exchange->done = true;
                return send_reply(exchange);
        }
        if (http->forced) {
                fail(STATUS_BUSY, "the server is stopping");
                return refuse(exchange);
        }
        if (job->is_run)
                atomic_store(&job->deadline_ns, job->received_ns + limits.run_deadline_ms * 1000000);
        size_t n = job->call.body == NULL ? 0 : job->call.body->n_bytes;
        if (http->options.inline_runs && job->call.encoding == CALL_PLAIN &&
            n <= (size_t)limits.max_inline_body && job_try_here(job, &http->frame)) {
                exchange->done = true;
                return send_reply(exchange);
        }
        if (job_submit(job) != STATUS_OK)
                return refuse(exchange);
        pending_add(exchange);
        tell_begun(exchange);
        // before the loop can see the job finished; both happen on this thread
        transport_suspend(exchange->connection);
        return true;
}

static bool handle(void *state, const char *method, const char *data, size_t *n_data)
{
        Exchange *exchange = state;
        if (!exchange->checked) {
                exchange->checked = true;
                return open_request(exchange, method) == STATUS_OK || refuse_head(exchange);
        }
        if (*n_data > 0) {
                size_t n = *n_data;
                // libmicrohttpd calls again for chunks it has already read; bytes that are not
                // taken now are offered again
                if (exchange->paused)
                        return true;
                *n_data = 0;
                return body_take(exchange, data, n);
        }
        if (!exchange->submitted && !exchange->dropping)
                return body_wait(exchange) || submit(exchange);
        return !exchange->done || send_reply(exchange);
}

// ---- begin and end of an exchange ----
static void *begin(void *context, TransportConnection *connection, void *conn, const char *target)
{
        Http *http = context;
        Exchange *exchange = calloc(1, sizeof(*exchange));
        if (exchange == NULL)
                return NULL;
        exchange->http = http;
        exchange->connection = connection;
        exchange->conn = conn;
        exchange->target = exchange->target_memory = copy_text(target, strlen(target));
        copy_cut(exchange->method, sizeof(exchange->method), "-");
        if (exchange->target == NULL || job_new(http->options.workers, &exchange->job) != STATUS_OK) {
                free(exchange->target_memory);
                free(exchange);
                return NULL;
        }
        if (exchange->conn != NULL) {
                exchange->conn->exchange = exchange;
                exchange->number = ++exchange->conn->n_begun;
        }
        exchange->job->exchange = exchange;
        exchange->job->received_ns = clock_ns();
        exchange->job->owner = http;
        exchange->job->finished = job_finished;
        exchange->next = http->exchanges;
        if (exchange->next != NULL)
                exchange->next->previous = exchange;
        http->exchanges = exchange;
        http->n_exchanges++;
        return exchange;
}

static void completed(void *state)
{
        Exchange *exchange = state;
        Http *http = exchange->http;
        count_unanswered(exchange);
        if (exchange->conn != NULL) {
                exchange->conn->exchange = NULL;
                if (exchange->conn->phase == CONN_REPLY)
                        conn_settle(exchange->conn);
                idle_add(exchange->conn);
        }
        body_deinit(exchange);
        *(exchange->previous != NULL ? &exchange->previous->next : &http->exchanges) = exchange->next;
        if (exchange->next != NULL)
                exchange->next->previous = exchange->previous;
        http->n_exchanges--;
        // an upload that never reached a worker
        spools_drop(http->spools, take_ptr(exchange->job->call.body));
        job_free(exchange->job);
        free(exchange->target_memory);
        free(exchange);
}

// ---- the loop ----
static void on_timer(uv_timer_t *timer)
{
        http_turn(timer->data);
}

void http_turn(Http *http)
{
        uint64_t wait_ms;
        if (http->stopped)
                return;
        // At the limit of connections libmicrohttpd stops listening, and starts again when it is
        // next run, not when one has gone.
        do {
                http->has_room = false;
                transport_run(http->transport);
        } while (http->has_room && !http->stopped);
        if (http->stopped)
                return;
        if (transport_wait(http->transport, &wait_ms))
                uv_timer_start(&http->timer, on_timer, wait_ms, 0);
        else
                uv_timer_stop(&http->timer);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
        (void)status;
        (void)events;
        Http *http = poll->data;
        turns_need(http->turns, TURN_LOOP);
        http_turn(http);
}

// Before the loop waits for events.
static void on_idle(uv_prepare_t *prepare)
{
        Http *http = prepare->data;
        workers_wake(http->options.workers);
        turns_done(http->turns, TURN_LOOP);
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
                if (!job_reap(job)) {
                        exchange->done = true;
                        pending_remove(exchange);
                        transport_resume(exchange->connection);
                }
                job = next;
        }
        http_turn(http);
}

// ---- start and stop ----
static Status start_transport(Http *http)
{
        enum { KEPT_FILES = 128 }; // descriptors for everything but connections
        size_t most = tap_capacity() > 2 * KEPT_FILES ? tap_capacity() - KEPT_FILES : KEPT_FILES;
        http->max_conns = MIN((size_t)limits.max_connections, most);
        if (http->max_conns < (size_t)limits.max_connections)
                log_line("ulimit -n leaves room for %zu connections, not for the %lld of --max-connections; "
                         "raise it (LimitNOFILE), or lower --max-connections",
                         http->max_conns, (long long)limits.max_connections);
        TransportOptions options = { .listen_fd = http->options.listen_fd,
                                     .max_connections = http->max_conns,
                                     .pool_bytes = idle_pool_bytes(),
                                     .tls_callback = http->options.tls_callback,
                                     .events = { conn_opened, conn_closed, begin, handle, completed },
                                     .context = http };
        return transport_start(&options, &http->transport);
}

// Everything that can fail comes before the first handle of the loop.
static Status start_http(Http *http)
{
        TRY(cors_check(http->options.allow_origin));
        TRY(tap_start());
        TRY(random_fill(http));
        TRY(start_transport(http));
        TRY(conn_start(http));
        uv_poll_init(http->options.loop, &http->poll, transport_poll_fd(http->transport));
        uv_timer_init(http->options.loop, &http->timer);
        uv_async_init(http->options.loop, &http->async, on_finished);
        uv_prepare_init(http->options.loop, &http->prepare);
        http->poll.data = http->timer.data = http->async.data = http->prepare.data = http;
        http_events_start(http);
        uv_poll_start(&http->poll, UV_READABLE, on_readable);
        uv_prepare_start(&http->prepare, on_idle);
        turns_watch_loop(http->turns, uv_backend_fd(http->options.loop));
        workers_wake_late(http->options.workers, http->options.one_core);
        return STATUS_OK;
}

Status http_start(const HttpOptions *options, Http **out_http)
{
        Http *http = calloc(1, sizeof(*http));
        if (http == NULL)
                return fail_memory();
        http->options = *options;
        http->turns = workers_turns(options->workers);
        http->started_ns = clock_ns();
        pthread_mutex_init(&http->finished_mutex, NULL);
        budget_init(&http->bodies, (size_t)limits.max_body_budget);
        budget_init(&http->replies, (size_t)limits.max_reply_budget);
        frame_init(&http->frame);
        Status status = start_http(http);
        if (status != STATUS_OK) {
                transport_stop(http->transport);
                http_free(http);
                return status;
        }
        *out_http = http;
        http_turn(http);
        return STATUS_OK;
}

void http_stop(Http *http)
{
        http->stopped = true;
        spools_stop(http->spools); // nothing may be suspended from here on
        events_end(http->options.events);
        transport_stop(http->transport);
        conn_stop(http);
        pthread_mutex_lock(&http->finished_mutex);
        http->deaf = true;
        pthread_mutex_unlock(&http->finished_mutex);
        events_stop(http->options.events);
        turns_watch_loop(http->turns, -1);
        workers_wake_late(http->options.workers, false);
        uv_close((uv_handle_t *)&http->prepare, NULL);
        uv_close((uv_handle_t *)&http->poll, NULL);
        uv_close((uv_handle_t *)&http->timer, NULL);
        uv_close((uv_handle_t *)&http->async, NULL);
}

Http *http_free(Http *http)
{
        if (http == NULL)
                return NULL;
        // detached jobs that came back too late for the loop
        for (Job *job = http->finished, *next; job != NULL; job = next) {
                next = job->next;
                job_free(job);
        }
        spools_free(http->spools);
        frame_deinit(&http->frame);
        pthread_mutex_destroy(&http->finished_mutex);
        free(http);
        return NULL;
}
