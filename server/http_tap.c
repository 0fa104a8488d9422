// SPDX-License-Identifier: Apache-2.0
// The raw bytes that clients send. libmicrohttpd 0.9.75 repairs what RFC 9112 wants refused (bare
// LF as a line end, folded fields, a value cut at NUL, chunk sizes that end in LF), and its
// callbacks see the repaired text only. There is no hook before its parser, and peeking at the
// socket from outside cannot tell where one request of a pipeline ends. So this file defines recv()
// and gnutls_record_recv(). The program's definition takes precedence over the C library's and
// GnuTLS's: libmicrohttpd reads through them, and for its connections the bytes pass http_raw.c
// first. All other descriptors are passed through. Chunk extensions are removed: libmicrohttpd
// 1.0.1 takes the LF behind one for the first byte of the chunk.
//
// A request that http_raw.c refuses never reaches libmicrohttpd's parser whole. It is replaced by a
// small valid one, which the guard answers with the verdict and `Connection: close`. If its
// beginning was already handed on (it came in pieces), it is ended as quickly as the syntax allows.
//
// The rest of a long body never passes libmicrohttpd, which would take it in pieces of half its
// pool. Its head says a smaller Content-Length: what has come already, and one byte more. All that
// lies between is received straight into the exchange's memory, and the last byte goes to
// libmicrohttpd, for which it completes the request.
//
// The check fails closed: the guard answers request k of a connection only if http_raw.c has
// counted k valid heads there. If these definitions were not in place, nothing would be answered.
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "server/http_private.h"

enum {
        LONG_FROM = 32768,    // bytes of a body that are still to come
        TURN_BYTES = 1 << 20, // then the other connections have theirs
};
static const int64_t TOUCH_NS = 100000000;

// ---- connections by descriptor ----
// Allocated once, with room for every descriptor of this process. Only the loop thread writes to
// it. Other threads that receive look up their own descriptors, which have no entry: a connection's
// is taken out before its descriptor is closed.
static _Atomic(Conn *) *by_fd;
static size_t n_by_fd;

Status tap_start(void)
{
        enum { MOST = 1 << 20 };
        struct rlimit files;
        if (by_fd != NULL)
                return STATUS_OK;
        if (getrlimit(RLIMIT_NOFILE, &files) != 0)
                return fail(STATUS_INTERNAL, "the limit of open files is not known");
        files.rlim_cur = MIN(files.rlim_max, (rlim_t)MOST);
        if (setrlimit(RLIMIT_NOFILE, &files) != 0 && getrlimit(RLIMIT_NOFILE, &files) != 0)
                return fail(STATUS_INTERNAL, "the limit of open files is not known");
        size_t n = (size_t)MIN(files.rlim_cur, (rlim_t)MOST);
        by_fd = calloc(n, sizeof(*by_fd));
        if (by_fd == NULL)
                return fail_memory();
        n_by_fd = n;
        return STATUS_OK;
}

size_t tap_capacity(void)
{
        return n_by_fd;
}

static Conn *conn_of(int fd)
{
        if (fd < 0 || (size_t)fd >= n_by_fd)
                return NULL;
        return atomic_load_explicit(&by_fd[fd], memory_order_acquire);
}

bool tap_add(Conn *conn)
{
        if (conn->fd < 0 || (size_t)conn->fd >= n_by_fd)
                return false;
        atomic_store_explicit(&by_fd[conn->fd], conn, memory_order_release);
        return true;
}

void tap_remove(const Conn *conn)
{
        if (conn_of(conn->fd) == conn)
                atomic_store_explicit(&by_fd[conn->fd], NULL, memory_order_release);
}

// ---- refusing ----
#define HEAD_END "Host: refused\r\nConnection: close\r\n\r\n"
static const char whole[] = "GET / HTTP/1.1\r\n" HEAD_END;

// Bytes that end a request of which libmicrohttpd has seen a part. "": there are none.
static const char *ending(const RawReader *raw)
{
        static const char version[] = "HTTP/1.1\r\n" HEAD_END;
        bool fresh = raw->n_line == 0;
        switch (raw->bad_in) {
        case RAW_START_LF:
                return "\nGET / HTTP/1.1\r\n" HEAD_END;
        case RAW_METHOD:
                return " / HTTP/1.1\r\n" HEAD_END;
        case RAW_TARGET:
                return "/ HTTP/1.1\r\n" HEAD_END;
        case RAW_VERSION:
                return raw->n_line <= sizeof("HTTP/1.1") ? version + raw->n_line - 1 : "";
        case RAW_LINE_LF:
                return "\n" HEAD_END;
        case RAW_NAME:
                return raw->in_trailers ? (fresh ? "\r\n" : ":\r\n\r\n")
                       : fresh          ? HEAD_END
                                        : ":\r\n" HEAD_END;
        case RAW_VALUE_START:
        case RAW_VALUE:
                return raw->in_trailers ? "\r\n\r\n" : "\r\n" HEAD_END;
        case RAW_FIELD_LF:
                return raw->in_trailers ? "\n\r\n" : "\n" HEAD_END;
        case RAW_END_LF:
                return "\n";
        case RAW_SIZE:
                // "5x" is not a size: libmicrohttpd refuses it, too
                return raw->n_digits == 0 ? "0\r\n\r\n" : "x\r\n";
        case RAW_EXTENSION:
        case RAW_SIZE_LF:
                return "x\r\n";
        case RAW_CHUNK_CR:
                return "xx";
        case RAW_CHUNK_LF:
                return "\n0\r\n\r\n";
        default:
                return "";
        }
}

// Reads and drops what the client has sent so far: closing a connection with unread bytes would
// lose the reply.
static void drain(const Conn *conn)
{
        char waste[4096];
        for (int i = 0;
             i < 64 && !conn->tls && recvfrom(conn->fd, waste, sizeof(waste), MSG_DONTWAIT, NULL, NULL) > 0;
             i++) {
        }
}

// ---- long bodies ----
// These bytes hold the whole head of a request, and as much of its body as has come. No other
// request is under way.
static void shorten_length(Conn *conn, uint8_t *bytes)
{
        RawReader *raw = &conn->raw;
        uint64_t said = raw->length - raw->left + 1;
        conn->long_number = raw->n_heads;
        conn->long_length = raw->length;
        conn->long_left = raw->left - 1;
        conn->touched_ns = clock_ns();
        for (size_t i = raw->n_length_digits; i-- > 0; said /= 10)
                bytes[raw->length_at + i] = (uint8_t)('0' + said % 10);
}

// libmicrohttpd has learned nothing of these bytes: they keep the connection from its time limit.
static void note_bytes(Conn *conn, size_t n)
{
        int64_t now = clock_ns();
        conn->long_left -= n;
        raw_skip(&conn->raw, n);
        conn_has_read(conn, n);
        if (now - conn->touched_ns <= TOUCH_NS)
                return;
        transport_touch(conn->connection);
        conn->touched_ns = now;
}

// The next bytes of a long body, and what comes behind it into `bytes`. Returns like recv() for
// what is in `bytes`. A client that is as fast as this thread would keep it for the whole body, in
// a single recvmsg(), too. EINTR ends a turn: unlike after EAGAIN, libmicrohttpd soon reads again.
static ssize_t receive_long(Conn *conn, void *bytes, size_t capacity, int flags)
{
        Exchange *exchange = conn->exchange;
        if (exchange == NULL || exchange->number != conn->long_number || !exchange->checked)
                return 0; // libmicrohttpd has given the request up
        for (size_t n_room = 0, n = 0, turn = TURN_BYTES;
             n == n_room && conn->long_left > 0 && !exchange->paused; turn -= n) {
                if (turn == 0) {
                        errno = EINTR;
                        return -1;
                }
                uint8_t *room = body_room(exchange, MIN(conn->long_left, (uint64_t)turn), &n_room);
                struct iovec into[] = { { room, n_room }, { bytes, capacity } };
                struct msghdr message = { .msg_iov = into, .msg_iovlen = n_room == conn->long_left ? 2 : 1 };
                ssize_t got = recvmsg(conn->fd, &message, flags);
                if (got <= 0)
                        return got;
                n = MIN((size_t)got, n_room);
                note_bytes(conn, n);
                if (!body_received(exchange, room, n))
                        return 0;
                if ((size_t)got > n)
                        return got - (ssize_t)n;
        }
        errno = EAGAIN;
        return -1;
}

// `n` bytes have come into a buffer of `capacity`; returns how many of them libmicrohttpd gets.
// *out_removed: fewer, because extensions of chunks were removed.
static size_t look(Conn *conn, uint8_t *bytes, size_t n, size_t capacity, bool *out_removed)
{
        RawReader *raw = &conn->raw;
        int64_t start;
        *out_removed = false;
        if (raw->state == RAW_BAD || conn->ended_ns != 0)
                return 0; // the end of the stream
        idle_note_pool(conn, bytes, capacity);
        size_t sound = raw_read(raw, bytes, n, &start);
        conn_has_read(conn, n);
        if (raw->state != RAW_BAD) {
                *out_removed = sound < n;
                if (raw->state == RAW_BODY && raw->left >= LONG_FROM && raw->n_length_digits > 0 &&
                    conn->exchange == NULL && raw->n_heads == conn->n_begun + 1 && !conn->tls)
                        shorten_length(conn, bytes);
                return sound;
        }
        const char *instead = start >= 0 ? whole : ending(raw);
        size_t at = start >= 0 ? (size_t)start : sound, length = strlen(instead);
        drain(conn);
        if (length == 0 || at + length > capacity)
                return at; // 0 ends the connection here; otherwise it ends with the next bytes
        memcpy(bytes + at, instead, length);
        return at + length;
}

// ---- what libmicrohttpd calls ----
// Declared by its name in object files: the headers may define a body for that name.
ssize_t tap_recv(int fd, void *bytes, size_t capacity, int flags) __asm__("recv")
        __attribute__((used, visibility("default")));

ssize_t tap_recv(int fd, void *bytes, size_t capacity, int flags)
{
        Conn *conn = (flags & MSG_PEEK) != 0 ? NULL : conn_of(fd);
        if (conn == NULL || conn->tls)
                return recvfrom(fd, bytes, capacity, flags, NULL, NULL);
        // libmicrohttpd takes a buffer that is not full for the end of what has come.
        size_t kept = 0;
        for (bool more = true; more;) {
                uint8_t *at = (uint8_t *)bytes + kept;
                size_t room = capacity - kept;
                bool removed;
                ssize_t n = conn->long_left > 0 ? receive_long(conn, at, room, flags)
                                                : recvfrom(fd, at, room, flags, NULL, NULL);
                if (n <= 0)
                        return kept > 0 ? (ssize_t)kept : n;
                kept += look(conn, at, (size_t)n, room, &removed);
                more = removed && (kept == 0 || (size_t)n == room);
        }
        return (ssize_t)kept;
}

__attribute__((used, visibility("default"))) ssize_t gnutls_record_recv(gnutls_session_t session, void *bytes,
                                                                        size_t capacity)
{
        unsigned char sequence[8];
        bool removed = true;
        ssize_t n = 0;
        while (n == 0 && removed) {
                n = gnutls_record_recv_seq(session, bytes, capacity, sequence);
                Conn *conn = n <= 0 ? NULL : conn_of(gnutls_transport_get_int(session));
                if (conn == NULL || !conn->tls)
                        return n;
                n = (ssize_t)look(conn, bytes, (size_t)n, capacity, &removed);
        }
        return n;
}
