// SPDX-License-Identifier: Apache-2.0
// The end of connections when the server stops, on the loop thread. No client that was let in sees
// a reset, or an end instead of a reply:
//
//   leaving     each reply says `Connection: close`, so clients that keep connections come back on
//               new ones, which are still accepted
//   draining    1. no new connection begins: a socket filter drops SYNs. Handshakes under way
//                  complete; a client whose SYN was dropped tries again a second later and is
//                  refused
//               2. the queue of the listening socket is accepted to its end, then the socket closed
//               3. accepted requests are answered, and their connections close with the reply
//               4. a connection between two requests has IDLE_NS since the server began to leave;
//                  one in its first request, or in the middle of one, has SILENCE_NS since its last
//                  byte
//
// Closing a socket whose client is sending makes the kernel answer with a reset, which may overtake
// a reply. So a connection is closed in two steps: first the server's side (FIN); then the socket,
// once the client has closed its side too or after LINGER_NS. Until then incoming bytes are read
// and dropped. libmicrohttpd closes in one step after a reply: a duplicate of its descriptor keeps
// the socket open meanwhile. One race of HTTP/1.1 remains (RFC 9112, 9.5): a client that was silent
// for IDLE_NS and sends just when its connection ends finds it closed, without a reset, and may
// repeat an idempotent request.
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "server/http_private.h"

enum { SWEEP_MS = 20, MOST_READS = 64 };
static const int64_t LAST_SYN_NS = 100000000, IDLE_NS = 500000000, LINGER_NS = 500000000,
                     SILENCE_NS = 2000000000, STREAM_NS = 200000000;

struct Linger {
        Linger *next;
        int fd;
        int64_t until_ns;
};

// ---- closing in two steps ----
// Whether the client has closed its side, or the connection is broken; else *out_waits says whether
// unread bytes wait.
static bool has_ended(int fd, bool *out_waits)
{
        char byte;
        ssize_t n = recvfrom(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL);
        *out_waits = n > 0;
        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void linger(Http *http, int fd)
{
        Linger *linger = calloc(1, sizeof(*linger));
        if (linger == NULL)
                return;
        linger->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (linger->fd < 0) { // no descriptor is free: it closes at once
                free(linger);
                return;
        }
        shutdown(linger->fd, SHUT_WR);
        linger->until_ns = clock_ns() + LINGER_NS;
        linger->next = http->lingering;
        http->lingering = linger;
}

static bool is_over(const Linger *linger, int64_t now)
{
        char waste[4096];
        ssize_t n = 1;
        for (int i = 0; i < MOST_READS && n > 0; i++)
                n = recvfrom(linger->fd, waste, sizeof(waste), MSG_DONTWAIT, NULL, NULL);
        return now >= linger->until_ns || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void sweep_lingering(Http *http, int64_t now)
{
        for (Linger **at = &http->lingering; *at != NULL;) {
                Linger *linger = *at;
                if (is_over(linger, now)) {
                        *at = linger->next;
                        close(linger->fd);
                        free(linger);
                } else {
                        at = &linger->next;
                }
        }
}

void drain_add(Conn *conn)
{
        Http *http = conn->http;
        conn->quiet_ns = clock_ns();
        conn->open_next = http->open;
        if (conn->open_next != NULL)
                conn->open_next->open_previous = conn;
        http->open = conn;
}

void drain_remove(Conn *conn)
{
        Http *http = conn->http;
        bool waits;
        *(conn->open_previous != NULL ? &conn->open_previous->open_next : &http->open) = conn->open_next;
        if (conn->open_next != NULL)
                conn->open_next->open_previous = conn->open_previous;
        if (http->leaving && !http->stopped && !has_ended(conn->fd, &waits))
                linger(http, conn->fd);
}

// ---- connections without a request ----
// The first step; libmicrohttpd closes the socket when it reads the client's end. A request that
// arrives from now on is not begun: see look() in http_tap.c.
static void end_sending(Conn *conn, int64_t now)
{
        bool waits;
        if (has_ended(conn->fd, &waits) || waits)
                return; // it is about to be read
        gnutls_session_t session = transport_tls_session(conn->connection);
        if (session != NULL && conn->n_begun > 0)
                gnutls_bye(session, GNUTLS_SHUT_WR);
        shutdown(conn->fd, SHUT_WR);
        conn->ended_ns = now;
}

static void look_at(Conn *conn, int64_t now)
{
        const Exchange *exchange = conn->exchange;
        if (conn->n_read_ever != conn->n_read_then ||
            (exchange != NULL && (exchange->submitted || exchange->paused))) {
                conn->n_read_then = conn->n_read_ever;
                conn->quiet_ns = now;
                return;
        }
        int64_t quiet_ns = now - MAX(conn->quiet_ns, conn->http->leave_ns);
        if (conn->ended_ns != 0) {
                if (now - conn->ended_ns >= LINGER_NS)
                        shutdown(conn->fd, SHUT_RDWR);
        } else if (!conn_is_between(conn)) {
                if (quiet_ns >= SILENCE_NS)
                        shutdown(conn->fd, SHUT_RDWR);
        } else if (quiet_ns >= (conn->n_begun == 0 ? SILENCE_NS : IDLE_NS)) {
                end_sending(conn, now);
        }
}

// ---- the listening socket ----
// Offset 13 of a TCP header holds the flags: SYN without ACK is dropped.
static void refuse_handshakes(int fd)
{
        struct sock_filter rows[] = {
                BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),          BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
                BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        };
        struct sock_fprog program = { .len = sizeof(rows) / sizeof(rows[0]), .filter = rows };
        if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0) {
                // A connection that begins between the last look at the queue and the close is
                // reset.
        }
}

static void sweep_listener(Http *http, int64_t now)
{
        struct pollfd queue = { .fd = http->options.listen_fd, .events = POLLIN };
        if (!http->listening || now - http->drain_ns < LAST_SYN_NS || poll(&queue, 1, 0) > 0)
                return;
        http->listening = false;
        transport_stop_listening(http->transport);
}

// ---- the steps ----
// Streams of events have ended. Whoever does not read the end of one in time does not get it.
static void cut_streams(Http *http, int64_t now)
{
        for (Exchange *exchange = http->exchanges; exchange != NULL; exchange = exchange->next)
                if (exchange->streams && exchange->conn != NULL && now - http->forced_ns >= STREAM_NS)
                        shutdown(exchange->conn->fd, SHUT_RDWR);
}

static void sweep(uv_timer_t *timer)
{
        Http *http = timer->data;
        int64_t now = clock_ns();
        sweep_lingering(http, now);
        if (!http->draining)
                return;
        http_turn(http); // received bytes are taken before any connection is ended
        sweep_listener(http, now);
        if (http->forced)
                cut_streams(http, now);
        for (Conn *conn = http->open; conn != NULL; conn = conn->open_next)
                look_at(conn, now);
        bool over = !http->listening && http->open == NULL && http->lingering == NULL;
        if (over || (http->forced && http->n_exchanges == 0))
                http->options.idle(http->options.idle_context);
}

void http_leave(Http *http)
{
        http->leaving = true;
        http->leave_ns = clock_ns();
        events_end(http->options.events);
        uv_timer_start(&http->drain_timer, sweep, SWEEP_MS, SWEEP_MS);
}

void http_drain(Http *http)
{
        if (http->draining)
                return;
        http->draining = true;
        http->drain_ns = clock_ns();
        refuse_handshakes(http->options.listen_fd);
}

bool http_cancel_all(Http *http)
{
        bool any = false;
        http->forced = true;
        http->forced_ns = clock_ns();
        for (Exchange *exchange = http->exchanges; exchange != NULL; exchange = exchange->next) {
                if (exchange->submitted && !exchange->done)
                        job_cancel(exchange->job);
                else if (exchange->streams) // its end is on the way: cut_streams
                        continue;
                else if (exchange->conn != NULL) // a body is still coming in, or a reply going out
                        shutdown(exchange->conn->fd, SHUT_RDWR);
                any = true;
        }
        return any;
}

void drain_start(Http *http)
{
        http->listening = true;
        uv_timer_init(http->options.loop, &http->drain_timer);
        http->drain_timer.data = http;
}

void drain_stop(Http *http)
{
        uv_close((uv_handle_t *)&http->drain_timer, NULL);
        for (Linger *linger = http->lingering; linger != NULL; linger = linger->next)
                linger->until_ns = 0;
        sweep_lingering(http, clock_ns());
}
