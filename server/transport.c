// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd, driven from outside through its epoll descriptor.
#include "server/transport.h"
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "core/base/memory.h"

struct Transport {
        struct MHD_Daemon *daemon;
        TransportEvents events;
        void *context;
        int poll_fd;
};

// ---- events ----
static void notify(void *cls, struct MHD_Connection *connection, void **conn,
                   enum MHD_ConnectionNotificationCode code)
{
        Transport *transport = cls;
        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                transport->events.closed(transport->context, *conn);
                *conn = NULL;
                return;
        }
        const union MHD_ConnectionInfo *fd =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *conn = transport->events.opened(transport->context, connection, fd == NULL ? -1 : fd->connect_fd);
}

static void *begin(void *cls, const char *target, struct MHD_Connection *connection)
{
        Transport *transport = cls;
        const union MHD_ConnectionInfo *conn =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        return transport->events.begin(transport->context, connection,
                                       conn == NULL ? NULL : conn->socket_context, target);
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *n_data,
                              void **exchange)
{
        Transport *transport = cls;
        (void)connection;
        (void)url;
        (void)version;
        return *exchange != NULL && transport->events.handle(*exchange, method, data, n_data) ? MHD_YES
                                                                                              : MHD_NO;
}

static void completed(void *cls, struct MHD_Connection *connection, void **exchange,
                      enum MHD_RequestTerminationCode code)
{
        Transport *transport = cls;
        (void)connection;
        (void)code;
        if (*exchange != NULL)
                transport->events.completed(*exchange);
        *exchange = NULL;
}

static size_t keep_escaped(void *cls, struct MHD_Connection *connection, char *text)
{
        (void)cls;
        (void)connection;
        return strlen(text); // the raw target is routed; decoded forms are not used
}

// ---- start and stop ----
static struct MHD_Daemon *start_daemon(Transport *transport, const TransportOptions *options)
{
        struct MHD_OptionItem plain[] = {
                { MHD_OPTION_LISTEN_SOCKET, options->listen_fd, NULL },
                { MHD_OPTION_CONNECTION_LIMIT, (intptr_t)options->max_connections, NULL },
                { MHD_OPTION_PER_IP_CONNECTION_LIMIT, (intptr_t)limits.max_connections_per_address, NULL },
                { MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)limits.idle_timeout_s, NULL },
                { MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)options->pool_bytes, NULL },
                { MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
                { MHD_OPTION_END, 0, NULL },
        };
        struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, options->tls_callback },
                { MHD_OPTION_HTTPS_PRIORITIES, 0,
                  (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE" },
                { MHD_OPTION_END, 0, NULL },
        };
        bool with_tls = options->tls_callback != NULL;
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (with_tls ? (unsigned)MHD_USE_TLS : 0);
        return MHD_start_daemon(flags, 0, NULL, NULL, handle, transport, MHD_OPTION_URI_LOG_CALLBACK, begin,
                                transport, MHD_OPTION_NOTIFY_COMPLETED, completed, transport,
                                MHD_OPTION_NOTIFY_CONNECTION, notify, transport, MHD_OPTION_UNESCAPE_CALLBACK,
                                keep_escaped, NULL, MHD_OPTION_ARRAY, plain, MHD_OPTION_ARRAY,
                                with_tls ? tls : &tls[2], MHD_OPTION_END);
}

Status transport_start(const TransportOptions *options, Transport **out_transport)
{
        Transport *transport = calloc(1, sizeof(*transport));
        if (transport == NULL)
                return fail_memory();
        transport->events = options->events;
        transport->context = options->context;
        transport->daemon = start_daemon(transport, options);
        const union MHD_DaemonInfo *info =
                transport->daemon == NULL ? NULL
                                          : MHD_get_daemon_info(transport->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (info == NULL) {
                transport_stop(transport);
                return fail(STATUS_INTERNAL, "the HTTP server could not be started");
        }
        transport->poll_fd = info->epoll_fd;
        *out_transport = transport;
        return STATUS_OK;
}

void transport_stop(Transport *transport)
{
        if (transport != NULL && transport->daemon != NULL)
                MHD_stop_daemon(transport->daemon);
        free(transport);
}

const char *transport_version(void)
{
        return MHD_get_version();
}

// ---- the loop ----
int transport_poll_fd(const Transport *transport)
{
        return transport->poll_fd;
}

void transport_run(Transport *transport)
{
        MHD_run(transport->daemon);
}

bool transport_wait(Transport *transport, uint64_t *out_ms)
{
        MHD_UNSIGNED_LONG_LONG ms;
        if (MHD_get_timeout(transport->daemon, &ms) != MHD_YES)
                return false;
        *out_ms = ms;
        return true;
}

void transport_stop_listening(Transport *transport)
{
        MHD_socket fd = MHD_quiesce_daemon(transport->daemon);
        if (fd != MHD_INVALID_SOCKET)
                close(fd);
}

size_t transport_n_connections(Transport *transport)
{
        const union MHD_DaemonInfo *info =
                MHD_get_daemon_info(transport->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        return info == NULL ? 0 : info->num_connections;
}

// ---- one connection ----
const struct sockaddr *transport_client(TransportConnection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        return info == NULL ? NULL : info->client_addr;
}

void *transport_tls_session(TransportConnection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        return info == NULL ? NULL : info->tls_session;
}

void transport_suspend(TransportConnection *connection)
{
        MHD_suspend_connection(connection);
}

void transport_resume(TransportConnection *connection)
{
        MHD_resume_connection(connection);
}

void transport_touch(TransportConnection *connection)
{
        // the clock starts when a limit is set where there was none
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)limits.idle_timeout_s);
}

const char *transport_header(TransportConnection *connection, const char *name)
{
        return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

typedef struct HeaderTaker {
        void (*take)(void *context, const char *name, const char *value);
        void *context;
} HeaderTaker;

static enum MHD_Result take_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
        const HeaderTaker *taker = cls;
        (void)kind;
        taker->take(taker->context, name, value);
        return MHD_YES;
}

void transport_each_header(TransportConnection *connection,
                           void (*take)(void *context, const char *name, const char *value), void *context)
{
        HeaderTaker taker = { take, context };
        MHD_get_connection_values(connection, MHD_HEADER_KIND, take_header, &taker);
}

// ---- replies ----
TransportReply *transport_reply(char *bytes, size_t n)
{
        if (n == 0) {
                free(bytes);
                return MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
        }
        struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback(n, bytes, free);
        if (response == NULL)
                free(bytes);
        return response;
}

_Static_assert(sizeof(TransportPiece) == sizeof(struct MHD_IoVec) &&
                       offsetof(TransportPiece, data) == offsetof(struct MHD_IoVec, iov_base) &&
                       offsetof(TransportPiece, n) == offsetof(struct MHD_IoVec, iov_len),
               "a TransportPiece is handed over as a struct MHD_IoVec");

// Pieces that are copied in order.
typedef struct PiecesReply {
        const TransportPiece *pieces;
        unsigned n, at;
        size_t taken; // of the piece `at`
        void (*sent)(void *context);
        void *context;
} PiecesReply;

static ssize_t read_pieces(void *cls, uint64_t place, char *out, size_t most)
{
        PiecesReply *reply = cls;
        size_t n = 0;
        (void)place; // the reply goes to one client
        while (n < most && reply->at < reply->n) {
                const TransportPiece *piece = &reply->pieces[reply->at];
                size_t part = MIN(most - n, piece->n - reply->taken);
                memcpy(out + n, (const char *)piece->data + reply->taken, part);
                n += part;
                reply->taken += part;
                if (reply->taken == piece->n) {
                        reply->at++;
                        reply->taken = 0;
                }
        }
        return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)n;
}

static void end_pieces(void *cls)
{
        PiecesReply *reply = cls;
        reply->sent(reply->context);
        free(reply);
}

static struct MHD_Response *copied_pieces(const TransportPiece *pieces, unsigned n,
                                          void (*sent)(void *context), void *context)
{
        enum { PART_BYTES = 1 << 16 };
        PiecesReply *reply = malloc(sizeof(*reply));
        uint64_t n_bytes = 0;
        if (reply == NULL)
                return NULL;
        for (unsigned i = 0; i < n; i++)
                n_bytes += pieces[i].n;
        *reply = (PiecesReply){ .pieces = pieces, .n = n, .sent = sent, .context = context };
        struct MHD_Response *response =
                MHD_create_response_from_callback(n_bytes, PART_BYTES, read_pieces, reply, end_pieces);
        if (response == NULL)
                free(reply);
        return response;
}

TransportReply *transport_reply_pieces(const TransportPiece *pieces, unsigned n, void (*sent)(void *context),
                                       void *context)
{
        enum { MOST_PIECES = 64 }; // they fit the pool beside the largest head
        struct MHD_Response *response =
                n > MOST_PIECES ? copied_pieces(pieces, n, sent, context)
                                : MHD_create_response_from_iovec(
                                          (const struct MHD_IoVec *)(const void *)pieces, n, sent, context);
        if (response == NULL)
                sent(context);
        return response;
}

typedef struct StreamReply {
        struct MHD_Connection *connection;
        int64_t (*read)(void *context, char *out, size_t most);
        void (*ended)(void *context);
        void *context;
} StreamReply;

static ssize_t read_part(void *cls, uint64_t at, char *out, size_t most)
{
        StreamReply *stream = cls;
        (void)at;
        int64_t n = stream->read(stream->context, out, most);
        if (n == 0)
                MHD_suspend_connection(stream->connection);
        return n == TRANSPORT_END ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)n;
}

static void end_stream(void *cls)
{
        StreamReply *stream = cls;
        stream->ended(stream->context);
        free(stream);
}

TransportReply *transport_reply_stream(TransportConnection *connection,
                                       int64_t (*read)(void *context, char *out, size_t most),
                                       void (*ended)(void *context), void *context)
{
        enum { PART_BYTES = 4096 };
        StreamReply *stream = calloc(1, sizeof(*stream));
        struct MHD_Response *response = NULL;
        if (stream == NULL) {
                ended(context);
                return NULL;
        }
        *stream = (StreamReply){ connection, read, ended, context };
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PART_BYTES, read_part, stream,
                                                     end_stream);
        if (response == NULL)
                end_stream(stream);
        return response;
}

void transport_reply_header(TransportReply *reply, const char *name, const char *value)
{
        MHD_add_response_header(reply, name, value);
}

bool transport_reply_send(TransportConnection *connection, int status, TransportReply *reply)
{
        enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, reply);
        MHD_destroy_response(reply);
        return result == MHD_YES;
}
