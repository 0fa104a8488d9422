// SPDX-License-Identifier: Apache-2.0
// One GET on a connection of its own, with one deadline for all of it. Without a URL the server is the one this container or shell would
// start: FXSERVE_LISTEN, where an address that means "all" is asked on loopback, and HTTPS if there is a FXSERVE_TLS_CERT. The certificate
// is not checked: nothing secret is sent, and what counts is whether there is an answer.
#include "server/health.h"
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "core/base/memory.h"

enum { DEADLINE_MS = 3000 };

typedef struct Target {
        char host[256], port[8], path[512];
        bool in_brackets; // an IPv6 address
        bool tls;
} Target;

static Status parse_authority(const char *text, size_t n, const char *whole, Target *out)
{
        const char *colon = memrchr(text, ':', n), *end = text + n;
        if (n > 0 && text[n - 1] == ']')
                colon = NULL;
        const char *host_end = colon == NULL ? end : colon;
        out->in_brackets = host_end - text >= 2 && text[0] == '[' && host_end[-1] == ']';
        const char *host = text + out->in_brackets;
        size_t n_host = (size_t)(host_end - text) - 2 * out->in_brackets, n_port = colon == NULL ? 0 : (size_t)(end - colon) - 1;
        if (n_host == 0 || n_host >= sizeof(out->host) || n_port >= sizeof(out->port) || (colon != NULL && n_port == 0) ||
            (colon != NULL && strspn(colon + 1, "0123456789") < n_port))
                return fail(STATUS_USAGE, "health wants a URL like http://127.0.0.1:8080/readyz, not \"%.200s\"", whole);
        snprintf(out->host, sizeof(out->host), "%.*s", (int)n_host, host);
        snprintf(out->port, sizeof(out->port), "%.*s", (int)n_port, colon == NULL ? "" : colon + 1);
        if (n_port == 0)
                snprintf(out->port, sizeof(out->port), out->tls ? "443" : "80");
        return STATUS_OK;
}

static Status parse_url(const char *url, Target *out)
{
        out->tls = strncmp(url, "https://", 8) == 0;
        if (!out->tls && strncmp(url, "http://", 7) != 0)
                return fail(STATUS_USAGE, "health wants a URL like http://127.0.0.1:8080/readyz, not \"%.200s\"", url);
        const char *authority = url + (out->tls ? 8 : 7);
        size_t n = strcspn(authority, "/?#");
        const char *path = authority[n] == '/' && authority[n + 1] != '\0' ? authority + n : "/readyz";
        for (const char *at = path; *at != '\0'; at++)
                if ((unsigned char)*at <= 0x20 || (unsigned char)*at >= 0x7f)
                        return fail(STATUS_USAGE, "the URL's path holds a character that must be percent-encoded");
        if (strlen(path) >= sizeof(out->path))
                return fail(STATUS_USAGE, "the URL is too long");
        snprintf(out->path, sizeof(out->path), "%s", path);
        return parse_authority(authority, n, url, out);
}

static Status own_server(Target *out)
{
        const char *listen = getenv("FXSERVE_LISTEN"), *cert = getenv("FXSERVE_TLS_CERT");
        char url[300];
        snprintf(url, sizeof(url), "%s://%.280s", cert == NULL || cert[0] == '\0' ? "http" : "https",
                 listen == NULL || listen[0] == '\0' ? "127.0.0.1:8080" : listen);
        TRY(parse_url(url, out));
        if (strcmp(out->host, "0.0.0.0") == 0)
                snprintf(out->host, sizeof(out->host), "127.0.0.1");
        else if (strcmp(out->host, "::") == 0)
                snprintf(out->host, sizeof(out->host), "::1");
        return STATUS_OK;
}

// Waits until the socket is ready for `events`; false when the time is over.
static bool wait_for(int fd, short events, int64_t deadline_ns)
{
        struct pollfd entry = { .fd = fd, .events = events };
        for (;;) {
                int64_t left_ms = (deadline_ns - clock_ns()) / 1000000;
                if (left_ms <= 0)
                        return false;
                if (poll(&entry, 1, (int)left_ms) > 0)
                        return true;
        }
}

static Status connect_to(const struct addrinfo *address, int64_t deadline_ns, int *out_fd)
{
        int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
        socklen_t n = sizeof(error);
        if (fd < 0)
                return fail(STATUS_IO, "no socket: %s", strerror(errno));
        if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
                error = errno;
                if (error == EINPROGRESS)
                        error = wait_for(fd, POLLOUT, deadline_ns) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 ? error
                                                                                                                            : ETIMEDOUT;
        }
        if (error != 0) {
                close(fd);
                return fail(STATUS_IO, "no connection: %s", strerror(error));
        }
        *out_fd = fd;
        return STATUS_OK;
}

// ---- one exchange ----
// Reads or writes on the non-blocking socket, or through TLS.
typedef struct Stream {
        int fd;
        gnutls_session_t tls; // NULL: none
        int64_t deadline_ns;
} Stream;

// What GnuTLS waits for before it can go on.
static bool tls_wait(const Stream *stream, ssize_t result)
{
        if (result != GNUTLS_E_AGAIN && result != GNUTLS_E_INTERRUPTED)
                return false;
        return wait_for(stream->fd, gnutls_record_get_direction(stream->tls) == 1 ? POLLOUT : POLLIN, stream->deadline_ns);
}

static int tls_shake_hands(const Stream *stream)
{
        int result;
        do {
                result = gnutls_handshake(stream->tls);
        } while (result < 0 && tls_wait(stream, result));
        return result;
}

static ssize_t stream_send(const Stream *stream, const char *bytes, size_t n)
{
        ssize_t sent;
        if (stream->tls == NULL)
                return wait_for(stream->fd, POLLOUT, stream->deadline_ns) ? send(stream->fd, bytes, n, MSG_NOSIGNAL) : -1;
        do {
                sent = gnutls_record_send(stream->tls, bytes, n);
        } while (sent < 0 && tls_wait(stream, sent));
        return sent;
}

static ssize_t stream_receive(const Stream *stream, char *bytes, size_t capacity)
{
        ssize_t got;
        if (stream->tls == NULL)
                return wait_for(stream->fd, POLLIN, stream->deadline_ns) ? recv(stream->fd, bytes, capacity, 0) : -1;
        do {
                got = gnutls_record_recv(stream->tls, bytes, capacity);
        } while (got < 0 && tls_wait(stream, got));
        return got;
}

static Status exchange_on(const Stream *stream, const Target *target, char *out_line, size_t capacity)
{
        char request[1024];
        size_t n =
                (size_t)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n\r\n", target->path,
                                 target->in_brackets ? "[" : "", target->host, target->in_brackets ? "]" : "", target->port);
        for (size_t done = 0; done < n;) {
                ssize_t sent = stream_send(stream, request + done, n - done);
                if (sent < 0)
                        return fail(STATUS_IO, "the request could not be sent in time");
                done += (size_t)sent;
        }
        for (size_t have = 0; have + 1 < capacity;) {
                ssize_t got = stream_receive(stream, out_line + have, capacity - 1 - have);
                if (got <= 0)
                        return fail(STATUS_IO, "no reply within %d s", DEADLINE_MS / 1000);
                have += (size_t)got;
                out_line[have] = '\0';
                if (strchr(out_line, '\n') != NULL)
                        return STATUS_OK;
        }
        return fail(STATUS_IO, "the reply is no HTTP");
}

static Status exchange_tls(Stream *stream, const Target *target, char *out_line, size_t capacity)
{
        gnutls_certificate_credentials_t credentials;
        if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS)
                return fail_memory();
        if (gnutls_init(&stream->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != GNUTLS_E_SUCCESS) {
                gnutls_certificate_free_credentials(credentials);
                return fail_memory();
        }
        int result = gnutls_set_default_priority(stream->tls);
        if (result == GNUTLS_E_SUCCESS)
                result = gnutls_credentials_set(stream->tls, GNUTLS_CRD_CERTIFICATE, credentials);
        gnutls_transport_set_int(stream->tls, stream->fd);
        if (result == GNUTLS_E_SUCCESS)
                result = tls_shake_hands(stream);
        Status status =
                result < 0 ? fail(STATUS_IO, "no TLS: %s", gnutls_strerror(result)) : exchange_on(stream, target, out_line, capacity);
        gnutls_deinit(stream->tls);
        gnutls_certificate_free_credentials(credentials);
        return status;
}

static Status ask(const Target *target, int *out_http_status)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
        int64_t deadline_ns = clock_ns() + (int64_t)DEADLINE_MS * 1000000;
        char line[512] = "";
        int error = getaddrinfo(target->host, target->port, &hints, &found), fd = -1, http_status = 0;
        if (error != 0)
                return fail(STATUS_IO, "%s: %s", target->host, gai_strerror(error));
        Status status = STATUS_OK;
        for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
                status = connect_to(at, deadline_ns, &fd);
        freeaddrinfo(found);
        TRY(status);
        Stream stream = { .fd = fd, .deadline_ns = deadline_ns };
        status = target->tls ? exchange_tls(&stream, target, line, sizeof(line)) : exchange_on(&stream, target, line, sizeof(line));
        close(fd);
        TRY(status);
        if (sscanf(line, "HTTP/1.%*1[01] %3d", &http_status) != 1)
                return fail(STATUS_IO, "the reply is no HTTP");
        *out_http_status = http_status;
        return STATUS_OK;
}

int command_health(int argc, char **argv)
{
        Target target;
        int http_status = 0;
        if (argc > 1) {
                fprintf(stderr, "usage: fxserve health [URL]\n");
                return 2;
        }
        Status status = argc == 1 ? parse_url(argv[0], &target) : own_server(&target);
        if (status == STATUS_OK)
                status = ask(&target, &http_status);
        if (status != STATUS_OK) {
                fprintf(stderr, "fxserve: %s\n", failure_current()->message);
                return status == STATUS_USAGE ? 2 : 1;
        }
        if (http_status != 200) {
                fprintf(stderr, "fxserve: %s answered %d\n", target.path, http_status);
                return 1;
        }
        printf("ok\n");
        return 0;
}
