// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 over sockets: the calls to libmicrohttpd that this server makes. Only transport.c knows
// its types; http*.c is written against this header. Everything happens on the loop thread, driven
// by transport_run.
//
// What libmicrohttpd does that has to be worked around, and where. Both versions are tested: Debian
// 12 has 0.9.75, Debian 13 has 1.0.1.
//   both    repairs requests that RFC 9112 wants refused, before any event is raised
//           → http_tap.c, http_raw.c
//   1.0.1   takes the LF after a chunk's extension for the chunk's first byte
//           → http_raw.c removes extensions
//   both    times out silence only, and does not notice that the client of a suspended connection
//           left
//           → http_conn.c
//   0.9.75  misses the end of a stream that arrives together with the last bytes
//           → http_conn.c, has_left
//   both    raises events for a connection it has suspended, for the chunks it has read already
//           → http.c, handle
//   both    listens again after the limit of connections only when it is run next
//           → http.c, http_turn
//   both    zeroes the whole pool of a connection after each request, so all of it becomes resident
//           → http_idle.c
//   both    reads a body in pieces of half a connection's pool, and copies each
//           → http_tap.c receives the rest of a long body past it
//   both    closes a socket at once after the last reply, and all of them when it is stopped
//           → http_drain.c
//   both    copies the places of a reply's pieces into a connection's pool; where they do not fit,
//           the reply ends in the middle, and 0.9.75 the process with it
//           → transport.c, transport_reply_pieces
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "core/base/status.h"

typedef struct Transport Transport;
typedef struct MHD_Connection TransportConnection;
typedef struct MHD_Response TransportReply;

// Raised within transport_run and transport_stop.
typedef struct TransportEvents {
        // A connection was accepted. Returns what `begin` and `closed` get as `conn`; may be NULL.
        void *(*opened)(void *context, TransportConnection *connection, int fd);
        void (*closed)(void *context, void *conn);
        // A request line was read; `target` as it was sent. Returns what the next two get as
        // `exchange`; NULL closes the connection.
        void *(*begin)(void *context, TransportConnection *connection, void *conn, const char *target);
        // The head is complete (first call); part of the body has come (*n_data > 0: what is left
        // in it was not taken, and comes again); the body is complete, or the connection was
        // resumed (*n_data == 0). False closes the connection.
        bool (*handle)(void *exchange, const char *method, const char *data, size_t *n_data);
        // The reply was sent, or the client has gone.
        void (*completed)(void *exchange);
} TransportEvents;

typedef struct TransportOptions {
        int listen_fd; // taken
        size_t max_connections;
        size_t pool_bytes;  // memory of a connection, for its head and for reading
        void *tls_callback; // of tls.h; NULL: plain HTTP
        TransportEvents events;
        void *context; // of the events
} TransportOptions;

// STATUS_INTERNAL if the server could not be started.
Status transport_start(const TransportOptions *options, Transport **out_transport);
// Closes all connections, none of which may be suspended. NULL is allowed.
void transport_stop(Transport *transport);
const char *transport_version(void); // of libmicrohttpd
// Readable when transport_run has something to do.
int transport_poll_fd(const Transport *transport);
void transport_run(Transport *transport);
// When transport_run has to be called at the latest; false: not before transport_poll_fd is
// readable.
bool transport_wait(Transport *transport, uint64_t *out_ms);
// Closes the listening socket.
void transport_stop_listening(Transport *transport);
// Frees the memory of connections that were closed.
size_t transport_n_connections(Transport *transport);

// ---- one connection ----
const struct sockaddr *transport_client(TransportConnection *connection); // NULL: not known
// The session of GnuTLS (gnutls_session_t); NULL: plain HTTP, or no session yet.
void *transport_tls_session(TransportConnection *connection);
// Between the two no event is raised, but for parts of a body that were read already.
void transport_suspend(TransportConnection *connection);
void transport_resume(TransportConnection *connection);
// Bytes have come that libmicrohttpd did not see: its limit of silence begins anew.
void transport_touch(TransportConnection *connection);
// A header of the request under way; NULL: there is none. The first one of that name.
const char *transport_header(TransportConnection *connection, const char *name);
// Calls `take` for each header; `value` may be NULL.
void transport_each_header(TransportConnection *connection,
                           void (*take)(void *context, const char *name, const char *value), void *context);

// ---- replies ----
typedef struct TransportPiece {
        const void *data;
        size_t n;
} TransportPiece;

// With the `n` bytes, which are freed when they were sent; n may be 0 and `bytes` NULL. NULL: out
// of memory; `bytes` are freed then, too.
TransportReply *transport_reply(char *bytes, size_t n);
// Bytes are sent from where they lie (of very many pieces, copied when the client takes them), then
// sent(context) is called. `pieces` stay until then. NULL: out of memory; `sent` is
// called then, too.
TransportReply *transport_reply_pieces(const TransportPiece *pieces, unsigned n, void (*sent)(void *context),
                                       void *context);
// A reply whose end is not known: `read` gives up to `most` bytes whenever the client takes more;
// 0: there are none yet, and the connection is suspended until transport_resume; TRANSPORT_END.
// `ended` is called when the reply is over, however that came. NULL: out of memory; `ended` was
// called.
enum { TRANSPORT_END = -1 };
TransportReply *transport_reply_stream(TransportConnection *connection,
                                       int64_t (*read)(void *context, char *out, size_t most),
                                       void (*ended)(void *context), void *context);
void transport_reply_header(TransportReply *reply, const char *name, const char *value);
// Queues the reply and takes it. False: the connection closes without it.
bool transport_reply_send(TransportConnection *connection, int status, TransportReply *reply);
