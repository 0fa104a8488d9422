// SPDX-License-Identifier: Apache-2.0
// Shared by http*.c.
// transport.h lists what libmicrohttpd does that has to be worked around, and where.
#pragma once
#include <pthread.h>
#include "api/routes/metrics.h"
#include "server/http.h"
#include "server/http_raw.h"
#include "server/spool.h"
#include "server/transport.h"

typedef struct Conn Conn;
typedef struct Linger Linger;
typedef enum ConnPhase { CONN_HEAD, CONN_BODY, CONN_REPLY } ConnPhase;

// One HTTP exchange: made when the request line is read, freed when the transport says that the
// request is completed.
typedef struct Exchange {
        struct Exchange *next, *previous; // all under way
        Http *http;
        TransportConnection *connection;
        Conn *conn;      // NULL: no memory for it
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
        bool framed;   // the end of the body is certain
        bool hostless; // HTTP/1.0 without a Host header
        bool refused;  // the connection closes after the reply; the rest of the body is not read
        bool dropping; // an error reply is ready; the rest of the body is read and dropped
        size_t n_dropped;
        bool counted;
        char allow[64];
        char token_name[AUTH_NAME_MAX + 1]; // "": without a token
        // In the list of pending requests: those whose job is on a worker, parked or queued.
        struct Exchange *pending_next, *pending_previous;
        int64_t pending_ns;
        bool watched;
        TransportReply *stream; // the reply goes on with events; taken when it is sent
        bool streams;           // it was: the reply has no end of its own
} Exchange;

// One connection: from accept to close.
struct Conn {
        Conn *next, *previous; // those in the middle of a head, a body or a large reply
        Http *http;
        TransportConnection *connection;
        Exchange *exchange; // under way, or NULL
        int fd;
        bool tls;
        bool slow; // refused with 408
        RawReader raw;
        uint64_t n_begun; // requests that libmicrohttpd has announced
        // http_tap.c: a long body. libmicrohttpd was told a shorter length.
        uint64_t long_number;    // which request of the connection; 0: none yet
        uint64_t long_length;    // what its Content-Length says
        uint64_t long_left;      // bytes to come that libmicrohttpd does not see
        int64_t touched_ns;      // when libmicrohttpd last learned that bytes come
        int64_t since_ns;        // when the head, the body or the reply began; 0: in none
        ConnPhase phase;         // which of them
        uint64_t n_heads;        // sound heads when it began
        uint64_t n_acknowledged; // bytes taken by the client when a reply began
        uint64_t n_read;         // bytes of it
        // http_drain.c
        Conn *open_next, *open_previous;   // all connections
        uint64_t n_read_ever, n_read_then; // bytes of the connection's life; at the last sweep
        int64_t quiet_ns;                  // no bytes have come, and no request was under way, since
        int64_t ended_ns;                  // the server has closed its side; 0: not yet
        // http_idle.c
        uint8_t *pool; // libmicrohttpd's, where that is known
        Conn *idle_next, *idle_previous;
        bool waits;             // it is on that list
        int64_t waits_since_ns; // and its n_begun then
        uint64_t n_begun_then;
};

struct Http {
        HttpOptions options;
        Transport *transport;
        uv_poll_t poll;
        uv_timer_t timer;
        uv_async_t async;
        uv_prepare_t prepare;
        Turns *turns; // the pool's
        pthread_mutex_t finished_mutex;
        Job *finished; // jobs to send, newest first
        bool deaf;     // the server stops: finished jobs are no longer sent; guarded like `finished`
        Budget bodies, replies;
        Frame frame;    // for runs on the loop thread
        Spools *spools; // NULL until the first large upload
        Exchange *exchanges;
        uint32_t n_exchanges;
        size_t n_conns, max_conns;
        bool has_room; // a connection closed while the limit was reached
        Conn *reading; // connections in the middle of a head, a body or a large reply
        // connections that had a request since their memory was given back; the longest waiting
        // first
        Conn *idle_first, *idle_last;
        uv_timer_t idle_timer;
        bool pools_known;
        // requests whose job is on a worker, parked or queued; oldest first
        Exchange *pending, *pending_last;
        uv_timer_t slow_timer, pending_timer;
        uint32_t n_slow_sweeps;
        int watch_fd; // epoll: sockets of those requests
        uv_poll_t watch;
        bool leaving, draining, forced, stopped;
        // http_drain.c
        int64_t leave_ns, drain_ns, forced_ns;
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

// http_tap.c: the connection's RawReader sees every byte first.
// Raises the limit of open files, and makes the table of connections; once per process.
Status tap_start(void);
size_t tap_capacity(void); // descriptors it has room for
bool tap_add(Conn *conn);
void tap_remove(const Conn *conn);

// http_conn.c
// Events of the transport; `context` is the Http, `conn` a Conn or NULL.
void *conn_opened(void *context, TransportConnection *connection, int fd);
void conn_closed(void *context, void *conn);
// `n` bytes have come and been read by conn->raw.
void conn_has_read(Conn *conn, size_t n);
// A large reply begins; its end is the end of the exchange.
void conn_starts_reply(Conn *conn);
// The connection is between requests again.
void conn_settle(Conn *conn);
void conn_sweep_slow(uv_timer_t *timer);
// The client has closed its sending side, and all it sent was read.
bool conn_has_left(const Conn *conn);
// The exchange's job leaves the loop thread; it is back (or was replaced).
void pending_add(Exchange *exchange);
void pending_remove(Exchange *exchange);
void pending_sweep(uv_timer_t *timer);
Status conn_start(Http *http);
void conn_stop(Http *http);

// http_drain.c: connections when the server stops.
void drain_add(Conn *conn);
void drain_remove(Conn *conn); // before its descriptor is closed
void drain_start(Http *http);
void drain_stop(Http *http);

// http_idle.c: connections between two requests.
// All received bytes were whole requests, and they were answered.
bool conn_is_between(const Conn *conn);
size_t idle_pool_bytes(void); // of every connection, for libmicrohttpd
// libmicrohttpd reads into a buffer of `capacity` bytes: the first call shows where the pool is.
void idle_note_pool(Conn *conn, uint8_t *bytes, size_t capacity);
void idle_add(Conn *conn); // a request of it has ended
void idle_remove(Conn *conn);
void idle_start(Http *http);
void idle_stop(Http *http);

// http_guard.c: checked before anything else.
Status guard_request(Exchange *exchange, const char *method);
// When the route is known: what may be asked without a Host header.
Status guard_route(const Exchange *exchange);
// Once more when the body is complete: it may have been framed badly.
Status guard_body(const Exchange *exchange);
void take_request_id(Exchange *exchange);
void print_hex(uint64_t id, char out[17]); // 16 digits
Status random_fill(Http *http);            // once, at start
uint64_t random_next(Http *http);          // 64 unpredictable bits

// http_cors.c: pages of other origins.
bool origin_is_allowed(const Http *http, const char *origin); // by --allow-origin
// STATUS_USAGE if --allow-origin holds something that is not an origin.
Status cors_check(const char *list);
// Answers a preflight of an allowed origin: the job's reply is ready. STATUS_ORIGIN for another
// origin.
Status cors_preflight(Exchange *exchange, const char *method, bool *out_answered);
void cors_add_headers(Exchange *exchange, TransportReply *out);

// http_body.c
// What Content-Length says; 0 without one.
uint64_t declared_length(const Exchange *exchange);
// STATUS_TOO_LARGE if the declared length, or the bytes so far, exceed the route's limit.
Status body_limit(Exchange *exchange);
// Takes part of the body. A body that is refused is read to its end and dropped, with the refusal
// ready. The connection is suspended when the disk is behind. False: it ends.
bool body_take(Exchange *exchange, const char *data, size_t n);
// Before body_finish: true when the connection was suspended until the body is on disk; ask again
// then.
bool body_wait(Exchange *exchange);
// Drops `n` bytes. False: there were too many, the connection ends.
bool body_drop(Exchange *exchange, size_t n);
// Where the next bytes of a long body are to be received: room for *out_n, `left` at most.
uint8_t *body_room(Exchange *exchange, uint64_t left, size_t *out_n);
// `n` bytes were received there; as body_take.
bool body_received(Exchange *exchange, const uint8_t *room, size_t n);
// The body is complete: it becomes the job's.
Status body_finish(Exchange *exchange);
void body_deinit(Exchange *exchange);

// http_events.c: what requests tell those who follow GET /v1/events.
void tell_begun(const Exchange *exchange); // a run was given to the workers
void tell_ended(const Exchange *exchange, int status, const char *code, int64_t took_ns);
void http_events_start(Http *http);
Status http_events_open(Exchange *exchange); // a stream

// http_reply.c
// The server's facts that the route shows.
ServerFacts facts_now(Http *http, const Route *route);
// Takes traceparent if it is there once and well-formed; else the request may begin a trace.
void take_trace(Exchange *exchange);
// Counts and logs a request whose client left before it was answered, as 499.
void count_unanswered(Exchange *exchange);
// Counts a connection refused with 408 before libmicrohttpd had a request line.
void count_slow_head(Http *http);
// Queues the job's reply, or a refusal when too many large replies are not taken yet; counts and
// logs it. False: the connection ends without it.
bool send_reply(Exchange *exchange);
// This thread's failure becomes the reply.
void prepare_refusal(Exchange *exchange);
bool refuse(Exchange *exchange);
