// SPDX-License-Identifier: Apache-2.0
// Shared by http*.c.
//
// What libmicrohttpd does that has to be worked around, and where. Both versions are tested: Debian
// 12 has 0.9.75, Debian 13 has 1.0.1.
//   both    repairs requests that RFC 9112 wants refused, before any callback sees them
//           → http_tap.c, http_raw.c
//   1.0.1   takes the LF behind a chunk's extension for the chunk's first byte
//           → http_raw.c takes extensions out
//   both    times out silence only, and does not see that the client of a suspended connection left
//           → http_conn.c
//   0.9.75  misses the end of a stream that comes with the last bytes
//           → http_conn.c, has_left
//   both    calls the handler of a connection it has suspended, for the chunks it has read already
//           → http.c, handle
//   both    listens again after the limit of connections only when it is run next
//           → http.c, http_turn
//   both    zeroes the whole pool of a connection after each request, so all of it becomes resident
//           → http_idle.c
//   both    closes a socket at once after the last reply, and all of them when it is stopped
//           → http_drain.c
#pragma once
#include <microhttpd.h>
#include <pthread.h>
#include "api/routes/metrics.h"
#include "server/http.h"
#include "server/http_raw.h"
#include "server/spool.h"

typedef struct Conn Conn;
typedef struct Linger Linger;
typedef enum ConnPhase { CONN_HEAD, CONN_BODY, CONN_REPLY } ConnPhase;

// One HTTP exchange: made when the request line is read, freed when MHD says that the request is
// completed.
typedef struct Exchange {
        struct Exchange *next, *previous; // all under way
        Http *http;
        struct MHD_Connection *connection;
        Conn *conn;      // NULL: memory was short when it was made
        uint64_t number; // of its connection's requests, from 1
        Job *job;
        char *target_memory; // owned
        const char *target;  // raw request target, from its path on
        char method[16];
        uint8_t *body; // while it is small, or there is no data folder
        Spool *spool;  // else
        bool paused;   // suspended until the spool wakes
        size_t n_body, capacity, n_charged;
        bool checked, submitted, done;
        bool framed;   // where the body ends is beyond doubt
        bool refused;  // the connection closes after the reply; what is left of the body is not read
        bool dropping; // an error reply is ready; the rest of the body is read and dropped
        size_t n_dropped;
        bool counted;
        char allow[64];
        char token_name[AUTH_NAME_MAX + 1]; // "": without a token
        // While its job is away.
        struct Exchange *away_next, *away_previous;
        int64_t away_ns;
        bool watched;
} Exchange;

// One connection: from accept to close.
struct Conn {
        Conn *next, *previous; // those in the middle of a head, a body or a large reply
        Http *http;
        struct MHD_Connection *connection;
        Exchange *exchange; // under way, or NULL
        int fd;
        bool tls;
        bool slow; // refused with 408
        RawReader raw;
        uint64_t n_begun;        // requests that libmicrohttpd has announced
        int64_t since_ns;        // when the head, the body or the reply began; 0: in none
        ConnPhase phase;         // which of them
        uint64_t n_heads;        // sound heads when it began
        uint64_t n_acknowledged; // bytes taken by the client when a reply began
        uint64_t n_read;         // bytes of it
        // http_drain.c
        Conn *open_next, *open_previous;   // all there are
        uint64_t n_read_ever, n_read_then; // bytes of the connection's life; at the last sweep
        int64_t quiet_ns;                  // nothing has come, and nothing was under way, since
        int64_t ended_ns;                  // we have closed our side; 0: not yet
        // http_idle.c
        uint8_t *pool; // libmicrohttpd's, where that is known
        Conn *idle_next, *idle_previous;
        bool waits;             // on that list
        int64_t waits_since_ns; // and its n_begun then
        uint64_t n_begun_then;
};

struct Http {
        HttpOptions options;
        struct MHD_Daemon *daemon;
        uv_poll_t poll;
        uv_timer_t timer;
        uv_async_t async;
        pthread_mutex_t finished_mutex;
        Job *finished; // jobs to send, newest first
        bool deaf;     // nobody looks at them any more; guarded as they are
        Budget bodies, replies;
        Frame frame;    // of runs so short that the loop thread does them
        Spools *spools; // NULL until the first large upload
        Exchange *exchanges;
        uint32_t n_exchanges;
        size_t n_conns, max_conns;
        bool has_room; // a connection went while there were as many as may be
        Conn *reading; // connections in the middle of a head, a body or a large reply
        // connections that had a request since their memory was given back, longest there first
        Conn *idle_first, *idle_last;
        uv_timer_t idle_timer;
        bool pools_known;
        Exchange *away, *away_last; // requests whose jobs are away, oldest first
        uv_timer_t slow_timer, away_timer;
        uint32_t n_slow_sweeps;
        int watch_fd; // epoll: sockets of requests that are away
        uv_poll_t watch;
        bool leaving, draining, forced, stopped;
        // http_drain.c
        int64_t leave_ns, drain_ns;
        bool listening;
        Conn *open;        // every connection
        Linger *lingering; // sockets whose connection libmicrohttpd has closed
        uv_timer_t drain_timer;
        int64_t started_ns;
        Metrics metrics;
        ProcessFacts process; // as of the last GET /metrics
        uint64_t random[32];  // unused: the first n_random
        uint32_t n_random;
};

// http.c
const char *header_of(const Exchange *exchange, const char *name); // NULL: there is none
// Lets libmicrohttpd do what is due, and sets its next time.
void http_turn(Http *http);

// http_tap.c: every byte that comes is seen by the connection's RawReader first.
// Raises the limit of open files, and makes the table of connections; once per process.
Status tap_start(void);
size_t tap_capacity(void); // descriptors it has room for
bool tap_add(Conn *conn);
void tap_remove(const Conn *conn);

// http_conn.c
void conn_notify(void *context, struct MHD_Connection *connection, void **state,
                 enum MHD_ConnectionNotificationCode code);
Conn *conn_of_connection(struct MHD_Connection *connection); // NULL: none was made
// `n` bytes have come and been read by conn->raw.
void conn_has_read(Conn *conn, size_t n);
// A large reply begins; its end is the end of the exchange.
void conn_starts_reply(Conn *conn);
// Not in the middle of anything any more.
void conn_settle(Conn *conn);
void conn_sweep_slow(uv_timer_t *timer);
// The exchange's job goes away, or is back (or has been replaced).
void away_add(Exchange *exchange);
void away_remove(Exchange *exchange);
void away_sweep(uv_timer_t *timer);
Status conn_start(Http *http);
void conn_stop(Http *http);

// http_drain.c: connections at the server's end.
void drain_add(Conn *conn);
void drain_remove(Conn *conn); // before its descriptor is closed
void drain_start(Http *http);
void drain_stop(Http *http);

// http_idle.c: the memory of connections between two requests.
// Everything that has come has been a whole request, and was answered.
bool conn_is_between(const Conn *conn);
size_t idle_pool_bytes(void); // of every connection, for libmicrohttpd
// libmicrohttpd reads into room for `capacity`: the first time, that shows where the pool is.
void idle_note_pool(Conn *conn, uint8_t *bytes, size_t capacity);
void idle_add(Conn *conn); // a request of it has ended
void idle_remove(Conn *conn);
void idle_start(Http *http);
void idle_stop(Http *http);

// http_guard.c: what must hold before anything else is looked at.
Status guard_request(Exchange *exchange, const char *method);
// Once more when the body is complete: it may have been framed badly.
Status guard_body(const Exchange *exchange);
void take_request_id(Exchange *exchange);
Status random_fill(Http *http);   // once, at start
uint64_t random_next(Http *http); // 64 bits that nobody can foresee

// http_cors.c: pages of other origins.
bool origin_is_allowed(const Http *http, const char *origin); // by --allow-origin
// STATUS_USAGE if --allow-origin holds what no browser sends.
Status cors_check(const char *list);
// Answers a preflight of an allowed origin: the job's reply is ready. STATUS_ORIGIN for that of
// another one.
Status cors_preflight(Exchange *exchange, const char *method, bool *out_answered);
void cors_add_headers(Exchange *exchange, struct MHD_Response *response);

// http_body.c
// What Content-Length says; 0 without one.
uint64_t declared_length(const Exchange *exchange);
// STATUS_TOO_LARGE if the declared length, or what has come, is over the route's limit.
Status body_limit(Exchange *exchange);
// Part of the body has come. A body that cannot be taken is read to its end and dropped, with the
// refusal ready. The connection is suspended when the disk cannot follow.
enum MHD_Result body_take(Exchange *exchange, const char *data, size_t n);
// Before body_finish: true when the connection was suspended until the body is on disk; ask again
// then.
bool body_wait(Exchange *exchange);
// Drops `n` bytes that nobody wants.
enum MHD_Result body_drop(Exchange *exchange, size_t n);
// The body is complete: it becomes the job's.
Status body_finish(Exchange *exchange);
void body_deinit(Exchange *exchange);

// http_reply.c
// answered on the loop thread, even when the server is full or stopping; not logged
bool is_probe(RouteId route);
// What the server knows, as far as the route shows it.
ServerFacts facts_now(Http *http, RouteId route);
// traceparent, if it is there once and well-formed.
void take_trace(Exchange *exchange);
// Counts and logs a request whose client went before it was answered, as 499.
void count_unanswered(Exchange *exchange);
// Counts a connection refused with 408 before libmicrohttpd had a request line.
void count_slow_head(Http *http);
// Queues the job's reply, or another one when too many large replies wait to be taken; counts and
// logs it.
enum MHD_Result send_reply(Exchange *exchange);
// This thread's failure becomes the reply.
void prepare_refusal(Exchange *exchange);
enum MHD_Result refuse(Exchange *exchange);
