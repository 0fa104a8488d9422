// SPDX-License-Identifier: Apache-2.0
// An open loop: requests arrive as a Poisson process of a given rate, whether or not the server has
// answered the earlier ones, each on an idle connection. A request that finds none waits for one,
// and its latency counts from its arrival, not from when it was sent. Prints one line: replies,
// failures, p50, p99 and p99.9 in microseconds.
//
//   open_loop PORT REQUEST_FILE RATE SECONDS CONNECTIONS
//
// REQUEST_FILE holds one whole HTTP/1.1 request. A reply ends by its Content-Length or last chunk.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_HEAD = 16384, MAX_CONNECTIONS = 1024 };
enum { GRACE_NS = 2000000000 }; // for replies that are under way at the end

typedef struct {
        int fd;
        bool busy, chunked;
        uint64_t arrived;        // of the request that is under way
        size_t sent, got, need;  // bytes of the request; bytes of the reply, and of all of it once known
        char head[MAX_HEAD + 1]; // the reply's first bytes, then its last five
} Connection;

static Connection connections[MAX_CONNECTIONS];
static char *request;
static size_t request_bytes, failures, n_latencies;
static uint64_t *latencies;

static uint64_t now(void)
{
        struct timespec at;
        clock_gettime(CLOCK_MONOTONIC, &at);
        return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static void die(const char *what)
{
        perror(what);
        exit(1);
}

static void open_connection(Connection *c, int port, int epoll)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to))
                die("connect");
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

static void send_more(Connection *c)
{
        while (c->busy && c->sent < request_bytes) {
                ssize_t n =
                        send(c->fd, request + c->sent, request_bytes - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n < 0)
                        die("send");
                c->sent += (size_t)n;
        }
}

static void begin(Connection *c, uint64_t arrived)
{
        c->busy = true;
        c->arrived = arrived;
        c->sent = c->got = c->need = 0;
        c->chunked = false;
        send_more(c);
}

// What the reply's head says about its length, once the head is whole.
static void read_head(Connection *c)
{
        c->head[c->got < MAX_HEAD ? c->got : MAX_HEAD] = '\0';
        char *end = strstr(c->head, "\r\n\r\n");
        if (!end)
                return;
        char *length = strcasestr(c->head, "\r\ncontent-length:");
        c->chunked = !length || length > end;
        c->need = c->chunked ? SIZE_MAX : (size_t)(end + 4 - c->head) + strtoul(length + 17, NULL, 10);
        if (strncmp(c->head + 9, "200", 3))
                failures++;
}

// The last bytes of the reply are kept behind its head, for the end of a chunked one.
static void receive(Connection *c)
{
        static char bytes[1 << 18];
        for (;;) {
                ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0)
                        die("the server closed a connection");
                size_t room = c->got < MAX_HEAD ? MAX_HEAD - c->got : 0;
                memcpy(c->head + c->got, bytes, (size_t)n < room ? (size_t)n : room);
                c->got += (size_t)n;
                if (!c->need)
                        read_head(c);
                bool last = c->chunked && n >= 5 && !memcmp(bytes + n - 5, "0\r\n\r\n", 5);
                if (c->need && (c->got >= c->need || last)) {
                        latencies[n_latencies++] = now() - c->arrived;
                        c->busy = false;
                }
        }
}

static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

static double quantile(double q)
{
        return n_latencies ? (double)latencies[(size_t)(q * (double)(n_latencies - 1))] / 1000 : 0;
}

static void run(int epoll, double rate, uint64_t until, int n_connections)
{
        struct epoll_event events[256];
        uint64_t next = now();
        size_t arrived = 0, started = 0;
        static uint64_t waiting[1 << 20]; // arrivals that found no idle connection, a ring
        while (now() < until + GRACE_NS) {
                for (; next <= now() && next < until; arrived++) {
                        waiting[arrived % (1 << 20)] = next;
                        next += (uint64_t)(-log(1 - drand48()) / rate * 1e9);
                }
                for (int i = 0; i < n_connections && started < arrived; i++)
                        if (!connections[i].busy)
                                begin(&connections[i], waiting[started++ % (1 << 20)]);
                if (now() > until && n_latencies == arrived)
                        break;
                int n = epoll_wait(epoll, events, 256, 0);
                for (int i = 0; i < n; i++) {
                        send_more(events[i].data.ptr);
                        if (events[i].events & EPOLLIN)
                                receive(events[i].data.ptr);
                }
        }
        failures += arrived - n_latencies;
}

int main(int n, char **words)
{
        if (n != 6)
                return fprintf(stderr, "usage: open_loop PORT REQUEST_FILE RATE SECONDS CONNECTIONS\n"), 2;
        FILE *file = fopen(words[2], "rb");
        double rate = atof(words[3]), seconds = atof(words[4]);
        int n_connections = atoi(words[5]), epoll = epoll_create1(0);
        if (!file || n_connections > MAX_CONNECTIONS)
                die(words[2]);
        request = malloc(1 << 24);
        request_bytes = fread(request, 1, 1 << 24, file);
        latencies = malloc(sizeof *latencies * ((size_t)(rate * seconds * 2) + 10000));
        for (int i = 0; i < n_connections; i++)
                open_connection(&connections[i], atoi(words[1]), epoll);
        srand48(1);
        run(epoll, rate, now() + (uint64_t)(seconds * 1e9), n_connections);
        qsort(latencies, n_latencies, sizeof *latencies, by_size);
        printf("%zu %zu %.0f %.0f %.0f\n", n_latencies, failures, quantile(0.5), quantile(0.99),
               quantile(0.999));
        return 0;
}
