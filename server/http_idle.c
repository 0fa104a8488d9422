// SPDX-License-Identifier: Apache-2.0
// Idle connections, on the loop thread: the ends that libmicrohttpd did not see, and their memory.
//
// A connection that has been between two requests for a while is ended if its client has closed its
// sending side. Otherwise its memory is given back: libmicrohttpd gives each connection a pool that
// holds the largest head, and zeroes all of it after every request. From then on the whole pool is
// resident for as long as the connection is open. Its pages are given back to the kernel; they read
// as zeros again, which is what the pool held.
//
// The address of a pool is known from the first recv() of its connection: the reading buffer is its
// first half, then and after every reset. This holds for libmicrohttpd 0.9.75 and 1.0.1, whose
// pools do not move and are zeroed in the step that completes a request. With another version
// nothing is given back.
//
// A connection joins the end of the list when a request of it ends, unless it is on it. The list is
// checked from its front, so a busy connection costs one look in IDLE_NS.
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "server/http_private.h"

enum { TICK_MS = 100, MOST_PER_TICK = 2000 };
static const int64_t IDLE_NS = 1000000000;

size_t idle_pool_bytes(void)
{
        return (size_t)limits.max_headers + 8192;
}

void idle_note_pool(Conn *conn, uint8_t *bytes, size_t capacity)
{
        if (conn->pool == NULL && conn->raw.n_heads == 0 && conn->raw.state == RAW_START &&
            capacity == idle_pool_bytes() / 2)
                conn->pool = bytes;
}

static void append(Conn *conn)
{
        Http *http = conn->http;
        conn->waits = true;
        conn->waits_since_ns = clock_ns();
        conn->n_begun_then = conn->n_begun;
        conn->idle_next = NULL;
        conn->idle_previous = http->idle_last;
        *(http->idle_last != NULL ? &http->idle_last->idle_next : &http->idle_first) = conn;
        http->idle_last = conn;
}

void idle_remove(Conn *conn)
{
        Http *http = conn->http;
        if (!conn->waits)
                return;
        *(conn->idle_previous != NULL ? &conn->idle_previous->idle_next : &http->idle_first) =
                conn->idle_next;
        *(conn->idle_next != NULL ? &conn->idle_next->idle_previous : &http->idle_last) = conn->idle_previous;
        conn->waits = false;
}

bool conn_is_between(const Conn *conn)
{
        const RawReader *raw = &conn->raw;
        return conn->exchange == NULL && raw->state == RAW_START && raw->n_line == 0 &&
               raw->n_requests == conn->n_begun;
}

static void give_back(const Conn *conn)
{
        if (conn->pool == NULL || !conn->http->pools_known)
                return;
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)conn->pool;
        uintptr_t from = (start + page - 1) / page * page, to = (start + idle_pool_bytes()) / page * page;
        if (to > from && madvise((void *)from, to - from, MADV_DONTNEED) != 0) {
                // It stays resident; nothing else is affected.
        }
}

static void sweep(uv_timer_t *timer)
{
        Http *http = timer->data;
        int64_t now = clock_ns();
        // This frees the connections that libmicrohttpd has closed, with their pools. Every
        // connection still on the list afterwards is open.
        transport_n_connections(http->transport);
        for (int i = 0; i < MOST_PER_TICK && http->idle_first != NULL &&
                        now - http->idle_first->waits_since_ns >= IDLE_NS;
             i++) {
                Conn *conn = http->idle_first;
                idle_remove(conn);
                if (conn->n_begun != conn->n_begun_then || !conn_is_between(conn))
                        append(conn);
                else if (conn_has_left(conn))
                        shutdown(conn->fd, SHUT_RDWR);
                else
                        give_back(conn);
        }
        if (http->idle_first == NULL)
                uv_timer_stop(timer);
        if (http->has_room) // room that was freed above
                http_turn(http);
}

void idle_add(Conn *conn)
{
        Http *http = conn->http;
        if (conn->waits)
                return;
        append(conn);
        if (!uv_is_active((uv_handle_t *)&http->idle_timer))
                uv_timer_start(&http->idle_timer, sweep, TICK_MS, TICK_MS);
}

bool http_pools_are_known(void)
{
        const char *version = transport_version();
        return strcmp(version, "0.9.75") == 0 || strcmp(version, "1.0.1") == 0;
}

void idle_start(Http *http)
{
        http->pools_known = http_pools_are_known();
        uv_timer_init(http->options.loop, &http->idle_timer);
        http->idle_timer.data = http;
}

void idle_stop(Http *http)
{
        uv_close((uv_handle_t *)&http->idle_timer, NULL);
}
