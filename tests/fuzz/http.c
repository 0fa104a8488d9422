// SPDX-License-Identifier: Apache-2.0
// The whole server in this process: it serves on a free port of the loopback in a thread of its
// own, without a data folder; an input is what one client sends. The client reads what comes back,
// closes its side when nothing comes any more, and the server must close its own. Every now and
// then a good request must be answered well.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"

int fxserve_main(int argc, char **argv); // server/main.c, built with another name for its main

enum { SILENCE_MS = 4, PATIENCE_MS = 20000, CHECK_EVERY = 64 };
static char address[32];
static struct sockaddr_in place;

static void *serve(void *unused)
{
        char *argv[] = { "fxserve",  "serve",
                         "--listen", address,
                         "--data",   "none",
                         "--quiet",  "--max-run-body",
                         "200000",   "--max-upload",
                         "200000",   "--max-run-memory",
                         "50000000", "--idle-timeout-s",
                         "5",        NULL };
        (void)unused;
        int code = fxserve_main((int)ARRAY_LENGTH(argv) - 1, argv);
        require(false, "the server ended with %d", code);
        return NULL;
}

static int connect_once(void)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
        struct linger linger = { .l_onoff = 1, .l_linger = 0 };
        require(fd >= 0, "no socket");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)); // ports are free again at once
        if (connect(fd, (const struct sockaddr *)&place, sizeof(place)) == 0)
                return fd;
        close(fd);
        return -1;
}

static int connect_patiently(void)
{
        for (int i = 0; i < 400; i++) {
                int fd = connect_once();
                if (fd >= 0)
                        return fd;
                usleep(50000); // no free port, or the machine is busy
        }
        require(false, "the server takes no connection");
        return -1;
}

static void start(void)
{
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        socklen_t n = sizeof(place);
        place = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        require(fd >= 0 && bind(fd, (const struct sockaddr *)&place, n) == 0 &&
                        getsockname(fd, (struct sockaddr *)&place, &n) == 0,
                "no port");
        close(fd);
        snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(place.sin_port));
        pthread_t thread;
        require(pthread_create(&thread, NULL, serve, NULL) == 0, "no thread");
        close(connect_patiently());
}

static bool send_all(int fd, const uint8_t *data, size_t n)
{
        while (n > 0) {
                ssize_t done = send(fd, data, n, MSG_NOSIGNAL);
                if (done <= 0)
                        return false; // it answered and closed before it had read everything
                data += done;
                n -= (size_t)done;
        }
        return true;
}

// Reads until the server is silent for `ms`; false: it closed the connection. The first bytes go to
// `out`.
static bool read_for(int fd, int ms, char *out, size_t capacity)
{
        static char buffer[65536];
        for (size_t n = 0;;) {
                struct pollfd wait = { .fd = fd, .events = POLLIN };
                if (poll(&wait, 1, ms) == 0)
                        return true;
                ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
                if (got <= 0)
                        return false;
                size_t kept = MIN((size_t)got, capacity - n);
                if (kept > 0)
                        memcpy(out + n, buffer, kept);
                n += kept;
        }
}

static void good_request(void)
{
        static const char text[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        char reply[16] = "";
        int fd = connect_patiently();
        send_all(fd, (const uint8_t *)text, sizeof(text) - 1);
        require(!read_for(fd, PATIENCE_MS, reply, sizeof(reply) - 1), "the server does not answer any more");
        require(strncmp(reply, "HTTP/1.1 200", 12) == 0, "a good request is answered by %s", reply);
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static unsigned long n_inputs;
        if (n_inputs == 0)
                start();
        int fd = connect_patiently();
        send_all(fd, data, n);
        if (read_for(fd, SILENCE_MS, NULL, 0)) {
                shutdown(fd, SHUT_WR);
                require(!read_for(fd, PATIENCE_MS, NULL, 0),
                        "the server keeps a connection that its client has closed");
        }
        close(fd);
        if (n_inputs++ % CHECK_EVERY == 0)
                good_request();
        return 0;
}
