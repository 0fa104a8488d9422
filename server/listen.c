// SPDX-License-Identifier: Apache-2.0
#include "server/listen.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// ---- addresses ----
static Status parse_file(const char *path, ListenAddress *out)
{
        struct sockaddr_un *file = (struct sockaddr_un *)(void *)&out->socket;
        size_t n = strlen(path);
        if (n == 0 || n >= sizeof(file->sun_path))
                return fail(STATUS_USAGE, "--listen unix:PATH wants a path of 1 to %zu bytes",
                            sizeof(file->sun_path) - 1);
        file->sun_family = AF_UNIX;
        memcpy(file->sun_path, path, n + 1);
        snprintf(out->host, sizeof(out->host), "%s", path);
        out->n_socket = sizeof(*file);
        out->is_file = out->is_loopback = true;
        return STATUS_OK;
}

static Status parse(const char *text, ListenAddress *out)
{
        const char *colon = strrchr(text, ':');
        const char *start = text, *end = colon;
        if (colon == NULL || colon == text || colon[1] == '\0' || strlen(colon + 1) > 5 ||
            strspn(colon + 1, "0123456789") != strlen(colon + 1) || atoi(colon + 1) > UINT16_MAX)
                return fail(STATUS_USAGE, "--listen wants HOST:PORT or unix:PATH, not \"%s\"", text);
        if (*start == '[' && colon[-1] == ']') {
                start++;
                end--;
        }
        snprintf(out->host, sizeof(out->host), "%.*s", (int)(end - start), start);
        snprintf(out->port, sizeof(out->port), "%s", colon + 1);
        return STATUS_OK;
}

static bool is_loopback(const struct sockaddr *address)
{
        if (address->sa_family == AF_INET)
                return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) ==
                       127;
        return address->sa_family == AF_INET6 &&
               IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

Status listen_resolve(const char *text, ListenAddress *out_address)
{
        ListenAddress address = { .port = "" };
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
                        *found = NULL;
        if (strncmp(text, "unix:", 5) == 0) {
                TRY(parse_file(text + 5, &address));
                *out_address = address;
                return STATUS_OK;
        }
        TRY(parse(text, &address));
        int error = getaddrinfo(address.host, address.port, &hints, &found);
        if (error != 0)
                return fail(STATUS_USAGE, "--listen %s: %s", address.host, gai_strerror(error));
        memcpy(&address.socket, found->ai_addr, found->ai_addrlen);
        address.n_socket = found->ai_addrlen;
        address.is_loopback = is_loopback(found->ai_addr);
        freeaddrinfo(found);
        *out_address = address;
        return STATUS_OK;
}

// ---- sockets ----
static const struct sockaddr *raw(const ListenAddress *address)
{
        return (const struct sockaddr *)(const void *)&address->socket;
}

// A server that ended without removing its socket left it behind.
static Status remove_left_over(const ListenAddress *address)
{
        struct stat info;
        if (lstat(address->host, &info) != 0)
                return STATUS_OK; // bind says what is wrong
        if (!S_ISSOCK(info.st_mode))
                return fail(STATUS_USAGE, "--listen unix:%s: there is a file of another kind", address->host);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return fail(STATUS_USAGE, "no socket: %s", strerror(errno));
        bool refused = connect(fd, raw(address), address->n_socket) != 0 && errno == ECONNREFUSED;
        close(fd);
        if (!refused)
                return fail(STATUS_USAGE, "--listen unix:%s: another program listens there", address->host);
        if (unlink(address->host) != 0 && errno != ENOENT)
                return fail(STATUS_USAGE,
                            "--listen unix:%s: what an earlier server left cannot be removed: %s",
                            address->host, strerror(errno));
        return STATUS_OK;
}

Status listen_open(const ListenAddress *address, int *out_fd)
{
        int yes = 1;
        if (address->is_file)
                TRY(remove_left_over(address));
        int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !address->is_file) {
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        }
        // The file gets the mode that the socket has before bind.
        bool ok = fd >= 0 && (!address->is_file || fchmod(fd, 0600) == 0) &&
                  bind(fd, raw(address), address->n_socket) == 0 && listen(fd, SOMAXCONN) == 0;
        int error = errno;
        if (!ok) {
                if (fd >= 0)
                        close(fd);
                return fail(STATUS_USAGE, "cannot listen on %s%s%s: %s%s", address->host,
                            address->is_file ? "" : ":", address->port, strerror(error),
                            error == EADDRINUSE && !address->is_file
                                    ? "; --listen HOST:PORT names another place, port 0 a free one"
                                    : "");
        }
        *out_fd = fd;
        return STATUS_OK;
}

static int port_of(int fd)
{
        struct sockaddr_storage address;
        socklen_t n = sizeof(address);
        if (getsockname(fd, (struct sockaddr *)&address, &n) != 0)
                return 0;
        if (address.ss_family == AF_INET6)
                return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
        return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

void listen_url(const ListenAddress *address, int fd, bool tls, char *out, size_t n)
{
        bool v6 = strchr(address->host, ':') != NULL;
        if (address->is_file)
                snprintf(out, n, "unix:%s", address->host);
        else
                snprintf(out, n, "%s://%s%s%s:%d", tls ? "https" : "http", v6 ? "[" : "", address->host,
                         v6 ? "]" : "", port_of(fd));
}

void listen_end(const ListenAddress *address)
{
        if (address->is_file)
                unlink(address->host);
}
