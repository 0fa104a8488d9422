// SPDX-License-Identifier: Apache-2.0
// Connections and their time limits, on the loop thread. libmicrohttpd limits silence only; the
// cost of a slow or vanished client is bounded here:
//
//   head          complete --header-timeout-s after its first byte
//   body          after --body-grace-s, at least --min-body-rate on the whole so far
//   large reply   taken at the same rate
//
// Otherwise the client gets 408 and the connection ends. Other connections are on no list and cost
// nothing.
//
// A request is pending while its job is on a worker, parked or queued; its connection is suspended.
// Pending requests are checked every SWEEP_MS. Past its deadline a request is answered 504 at once,
// with a stand-in for the job, which is detached. After WATCH_NS its socket is watched; a client
// that leaves (or closes its sending side, which looks the same) cancels its job. The watch is one
// epoll descriptor of its own, so that nothing has to be closed asynchronously. A socket leaves it
// before its connection is resumed, because descriptor numbers are reused.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "server/http_private.h"

enum { SWEEP_MS = 10, SLOW_SWEEP_MS = 200, LOOK_EVERY = 5, MAX_EVENTS = 64 };
static const int64_t WATCH_NS = 15000000, SECOND_NS = 1000000000;

// ---- slow clients ----
void conn_settle(Conn *conn)
{
        Http *http = conn->http;
        if (conn->since_ns == 0)
                return;
        *(conn->previous != NULL ? &conn->previous->next : &http->reading) = conn->next;
        if (conn->next != NULL)
                conn->next->previous = conn->previous;
        conn->next = conn->previous = NULL;
        conn->since_ns = 0;
}

static void start_clock(Conn *conn, ConnPhase phase)
{
        Http *http = conn->http;
        conn->since_ns = clock_ns();
        conn->phase = phase;
        conn->n_read = 0;
        conn->next = http->reading;
        if (conn->next != NULL)
                conn->next->previous = conn;
        http->reading = conn;
        if (!uv_is_active((uv_handle_t *)&http->slow_timer))
                uv_timer_start(&http->slow_timer, conn_sweep_slow, SLOW_SWEEP_MS, SLOW_SWEEP_MS);
}

void conn_has_read(Conn *conn, size_t n)
{
        ConnPhase phase = raw_in_body(&conn->raw) ? CONN_BODY : CONN_HEAD;
        conn->n_read_ever += n;
        if (phase == CONN_HEAD && !raw_in_head(&conn->raw)) {
                conn_settle(conn);
                return;
        }
        // The clock starts anew for a body, and for a request that began behind another one in the
        // same bytes.
        if (conn->since_ns == 0 || conn->phase != phase || conn->n_heads != conn->raw.n_heads) {
                conn_settle(conn);
                start_clock(conn, phase);
                conn->n_heads = conn->raw.n_heads;
        }
        conn->n_read += n;
}

// TCP_INFO as the kernel gives it; the C library's declaration lacks the last members.
typedef struct TcpInfo {
        struct tcp_info known;
        uint64_t pacing_rate, max_pacing_rate, bytes_acked;
} TcpInfo;
_Static_assert(sizeof(struct tcp_info) == 104, "the kernel's next member is at 104");

// Bytes that the client's side has confirmed since the connection was made.
static uint64_t acknowledged(const Conn *conn)
{
        TcpInfo info = { .bytes_acked = 0 };
        socklen_t n = sizeof(info);
        return getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.bytes_acked : 0;
}

void conn_starts_reply(Conn *conn)
{
        conn_settle(conn);
        start_clock(conn, CONN_REPLY);
        conn->n_acknowledged = acknowledged(conn);
}

static bool is_slow(const Conn *conn, int64_t now)
{
        int64_t age_ns = now - conn->since_ns;
        if (conn->phase == CONN_HEAD)
                return age_ns > limits.header_timeout_s * SECOND_NS;
        if (age_ns <= limits.body_grace_s * SECOND_NS)
                return false;
        uint64_t n = conn->phase == CONN_BODY ? conn->n_read : acknowledged(conn) - conn->n_acknowledged;
        return (double)n < (double)limits.min_body_rate * (double)age_ns / 1e9;
}

// libmicrohttpd has no way to answer in the middle of a request. Nothing else is being sent while a
// request is read, so the few bytes are written here and the socket is shut down, which
// libmicrohttpd sees as the end of the stream.
static void refuse_slow(Conn *conn)
{
        static const char body[] =
                "{\"error\": \"the request came too slowly\", \"code\": \"slow_client\"}\n";
        char text[512];
        int n = snprintf(
                text, sizeof(text),
                "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nX-Content-Type-Options: "
                "nosniff\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                sizeof(body) - 1, body);
        conn_settle(conn);
        conn->slow = conn->phase != CONN_REPLY;
        if (conn->phase == CONN_REPLY) {
                // With a reset, or the kernel would keep the unsent part of the reply.
                struct linger linger = { .l_onoff = 1, .l_linger = 0 };
                setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
                shutdown(conn->fd, SHUT_RDWR);
                return;
        }
        if (conn->exchange == NULL && !conn->tls)
                count_slow_head(conn->http);
        if (!conn->tls && send(conn->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
                // The client gets no explanation.
        }
        shutdown(conn->fd, SHUT_RDWR);
}

// When the last bytes and the end of the stream arrive together, libmicrohttpd 0.9.75 takes the
// bytes and waits for another edge of its epoll descriptor, which never comes. (A client that
// closed its sending side may still read a reply.)
bool conn_has_left(const Conn *conn)
{
        char byte;
        return recvfrom(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) == 0;
}

void conn_sweep_slow(uv_timer_t *timer)
{
        Http *http = timer->data;
        int64_t now = clock_ns();
        bool look = ++http->n_slow_sweeps % LOOK_EVERY == 0;
        for (Conn *conn = http->reading, *next; conn != NULL; conn = next) {
                next = conn->next;
                if (conn->phase != CONN_REPLY && conn->exchange != NULL && conn->exchange->submitted)
                        // the next request waits for this one; its client is not at fault
                        conn->since_ns = now;
                else if (is_slow(conn, now))
                        refuse_slow(conn);
                else if (look && conn->phase != CONN_REPLY && conn_has_left(conn))
                        shutdown(conn->fd, SHUT_RDWR);
        }
        if (http->reading == NULL)
                uv_timer_stop(timer);
}

// ---- begin and end ----
void conn_closed(void *context, void *closed)
{
        Http *http = context;
        Conn *conn = closed;
        http->has_room |= http->n_conns-- >= http->max_conns;
        if (conn == NULL)
                return;
        tap_remove(conn);
        drain_remove(conn);
        conn_settle(conn);
        idle_remove(conn);
        free(conn);
}

void *conn_opened(void *context, TransportConnection *connection, int fd)
{
        Http *http = context;
        http->n_conns++;
        Conn *conn = fd < 0 ? NULL : calloc(1, sizeof(*conn));
        if (conn == NULL)
                return NULL; // requests on it are not answered, because no heads are counted for it
        conn->http = http;
        conn->connection = connection;
        conn->fd = fd;
        conn->tls = http->options.tls_callback != NULL;
        raw_init(&conn->raw);
        tap_add(conn);
        drain_add(conn);
        if (conn->tls)
                start_clock(conn, CONN_HEAD); // one clock for the handshake and the first head
        return conn;
}

// ---- pending requests ----
void pending_add(Exchange *exchange)
{
        Http *http = exchange->http;
        exchange->pending_ns = clock_ns();
        exchange->pending_previous = http->pending_last;
        exchange->pending_next = NULL;
        *(http->pending_last != NULL ? &http->pending_last->pending_next : &http->pending) = exchange;
        http->pending_last = exchange;
        if (!uv_is_active((uv_handle_t *)&http->pending_timer))
                uv_timer_start(&http->pending_timer, pending_sweep, SWEEP_MS, SWEEP_MS);
}

void pending_remove(Exchange *exchange)
{
        Http *http = exchange->http;
        *(exchange->pending_previous != NULL ? &exchange->pending_previous->pending_next : &http->pending) =
                exchange->pending_next;
        *(exchange->pending_next != NULL ? &exchange->pending_next->pending_previous : &http->pending_last) =
                exchange->pending_previous;
        exchange->pending_next = exchange->pending_previous = NULL;
        exchange->pending_ns = 0;
        if (exchange->watched)
                epoll_ctl(http->watch_fd, EPOLL_CTL_DEL, exchange->conn->fd, NULL);
        exchange->watched = false;
}

static void watch(Exchange *exchange)
{
        struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = exchange };
        exchange->watched =
                epoll_ctl(exchange->http->watch_fd, EPOLL_CTL_ADD, exchange->conn->fd, &event) == 0;
}

// The reply goes out now; the job stops at its next poll.
static void answer_deadline(Exchange *exchange, int64_t deadline_ns)
{
        Job *job = exchange->job, *other;
        if (job_stand_in(job, &other) != STATUS_OK)
                return;                           // the job's own deadline is enough
        if (!job_answer_late(job, deadline_ns)) { // it is about to be answered
                job_free(other);
                return;
        }
        exchange->job = other;
        fail(STATUS_DEADLINE, "the run took longer than its deadline of %lld ms",
             (long long)((deadline_ns - job->received_ns) / 1000000));
        prepare_refusal(exchange);
        job_detach(job);
        pending_remove(exchange);
        transport_resume(exchange->connection);
}

void pending_sweep(uv_timer_t *timer)
{
        Http *http = timer->data;
        int64_t now = clock_ns();
        bool any = false;
        for (Exchange *exchange = http->pending, *next; exchange != NULL; exchange = next) {
                next = exchange->pending_next;
                int64_t deadline_ns = atomic_load(&exchange->job->deadline_ns);
                if (deadline_ns > 0 && now >= deadline_ns) {
                        answer_deadline(exchange, deadline_ns);
                        any = true;
                } else if (!exchange->watched && now - exchange->pending_ns >= WATCH_NS) {
                        watch(exchange);
                }
        }
        if (http->pending == NULL)
                uv_timer_stop(timer);
        if (any)
                http_turn(http);
}

static void on_gone(uv_poll_t *poll, int status, int events)
{
        Http *http = poll->data;
        struct epoll_event found[MAX_EVENTS];
        (void)status;
        (void)events;
        int n = epoll_wait(http->watch_fd, found, MAX_EVENTS, 0);
        for (int i = 0; i < n; i++) {
                Exchange *exchange = found[i].data.ptr;
                job_cancel(exchange->job); // comes back as 499
        }
}

// ---- start and stop ----
Status conn_start(Http *http)
{
        http->watch_fd = epoll_create1(EPOLL_CLOEXEC);
        if (http->watch_fd < 0)
                return fail(STATUS_INTERNAL, "the HTTP server could not be started");
        uv_timer_init(http->options.loop, &http->slow_timer);
        uv_timer_init(http->options.loop, &http->pending_timer);
        idle_start(http);
        drain_start(http);
        uv_poll_init(http->options.loop, &http->watch, http->watch_fd);
        http->slow_timer.data = http->pending_timer.data = http->watch.data = http;
        uv_poll_start(&http->watch, UV_READABLE, on_gone);
        return STATUS_OK;
}

static void on_closed(uv_handle_t *handle)
{
        Http *http = handle->data;
        close(http->watch_fd);
}

void conn_stop(Http *http)
{
        uv_close((uv_handle_t *)&http->slow_timer, NULL);
        uv_close((uv_handle_t *)&http->pending_timer, NULL);
        idle_stop(http);
        drain_stop(http);
        uv_close((uv_handle_t *)&http->watch, on_closed);
}
