// SPDX-License-Identifier: Apache-2.0
// Start: engine, files, workers, socket, loop. Stop: the first SIGTERM or SIGINT drains (no new connections, running requests finish, at
// most --drain-s), a second one ends at once. The loop thread does sockets, timers and signals only.
#include "server/server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/limits.h"
#include "server/http.h"
#include "server/log.h"
#include "server/preload.h"
#include "server/version.h"

typedef struct Server {
        uv_loop_t loop;
        uv_signal_t signals[2];
        uv_timer_t drain_timer; // ends a drain that takes too long
        uv_timer_t stop_timer;  // leaves the callback we are in before MHD is stopped
        Http *http;
        Workers *workers;
        Engine *engine;
        bool stopping, forced;
} Server;

static void log_message(void *context, const char *message)
{
        (void)context;
        log_line("%s", message);
}

// ---- where to listen ----
typedef struct Address {
        char host[256], port[16];
        bool is_loopback;
} Address;

static Status parse_address(const char *text, Address *out)
{
        const char *colon = strrchr(text, ':');
        const char *start = text, *end = colon;
        if (colon == NULL || colon == text || colon[1] == '\0' || strlen(colon + 1) > 5 ||
            strspn(colon + 1, "0123456789") != strlen(colon + 1))
                return fail(STATUS_USAGE, "--listen wants HOST:PORT, not \"%s\"", text);
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
                return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
        return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static Status listen_on(Address *address, int *out_fd)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *found = NULL;
        int error = getaddrinfo(address->host, address->port, &hints, &found);
        if (error != 0)
                return fail(STATUS_USAGE, "--listen %s: %s", address->host, gai_strerror(error));
        int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
        if (fd >= 0) {
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        }
        bool ok = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
        error = errno;
        address->is_loopback = is_loopback(found->ai_addr);
        freeaddrinfo(found);
        if (!ok) {
                if (fd >= 0)
                        close(fd);
                return fail(STATUS_USAGE, "cannot listen on %s:%s: %s", address->host, address->port, strerror(error));
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

// ---- the data folder ----
static Status make_parents(char *path)
{
        for (char *at = path + 1; *at != '\0'; at++) {
                if (*at != '/')
                        continue;
                *at = '\0';
                int made = mkdir(path, 0700);
                *at = '/';
                if (made != 0 && errno != EEXIST)
                        return fail(STATUS_USAGE, "the data folder cannot be made: %s; choose one with --data", strerror(errno));
        }
        return STATUS_OK;
}

static Status data_folder(const Options *options, char *buffer, size_t capacity, const char **out_folder)
{
        *out_folder = NULL;
        if (strcmp(options->data, "none") == 0)
                return STATUS_OK;
        const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
        const struct passwd *user = home == NULL ? getpwuid(getuid()) : NULL;
        int n;
        if (options->data[0] != '\0')
                n = snprintf(buffer, capacity, "%s", options->data);
        else if (xdg != NULL && xdg[0] == '/')
                n = snprintf(buffer, capacity, "%s/fxserve", xdg);
        else
                n = snprintf(buffer, capacity, "%s/.local/share/fxserve", home != NULL ? home : user != NULL ? user->pw_dir : "");
        if (n <= 0 || (size_t)n >= capacity)
                return fail(STATUS_USAGE, "the data folder's name is too long; choose one with --data");
        TRY(make_parents(buffer));
        *out_folder = buffer;
        return STATUS_OK;
}

static Status open_engine(const Options *options, Engine **out_engine)
{
        char buffer[4096];
        const char *folder;
        TRY(data_folder(options, buffer, sizeof(buffer), &folder));
        EngineOptions engine = { .data_folder = folder, .loader = upload_loader, .log = log_message };
        return engine_open(&engine, out_engine);
}

static Status preload(Server *server, const Options *options)
{
        for (int i = 0; i < options->n_files; i++) {
                GraphVersion *version = NULL;
                Status status = preload_file(server->engine, options->files[i], &version);
                if (status != STATUS_OK) {
                        failure_append(" (%s)", options->files[i]);
                        return status;
                }
                log_line("loaded %s version %lld", version->name, (long long)version->stored.version);
                graph_version_unref(version);
        }
        return STATUS_OK;
}

// ---- stopping ----
static void close_loop(Server *server)
{
        for (size_t i = 0; i < ARRAY_LENGTH(server->signals); i++)
                uv_close((uv_handle_t *)&server->signals[i], NULL);
        uv_close((uv_handle_t *)&server->drain_timer, NULL);
        uv_close((uv_handle_t *)&server->stop_timer, NULL);
}

static void stop_now(uv_timer_t *timer)
{
        Server *server = timer->data;
        // A suspended connection may not outlive its daemon: jobs end first, the loop hands them back, and only then is there nothing
        // suspended.
        http_stop(server->http);
        close_loop(server);
}

static void on_idle(void *context)
{
        Server *server = context;
        if (!uv_is_active((uv_handle_t *)&server->stop_timer))
                uv_timer_start(&server->stop_timer, stop_now, 0, 0);
}

static void on_drain_timeout(uv_timer_t *timer)
{
        Server *server = timer->data;
        log_line("drain time is over: cancelling what still runs");
        server->forced = true;
        http_cancel_all(server->http);
}

static void on_signal(uv_signal_t *handle, int number)
{
        Server *server = handle->data;
        (void)number;
        if (server->stopping) {
                server->forced = true;
                http_cancel_all(server->http);
                return;
        }
        server->stopping = true;
        log_line("stopping: running requests finish first");
        uv_timer_start(&server->drain_timer, on_drain_timeout, (uint64_t)limits.drain_s * 1000, 0);
        http_drain(server->http);
}

// ---- starting ----
static Status start(Server *server, const Options *options)
{
        Address address;
        int fd = -1, n_workers = atoi(options->workers);
        TRY(parse_address(options->listen, &address));
        TRY(open_engine(options, &server->engine));
        TRY(preload(server, options));
        TRY(listen_on(&address, &fd));
        if (!address.is_loopback && options->no_auth[0] == '\0') {
                close(fd);
                return fail(STATUS_USAGE,
                            "%s is reachable from other machines and nothing checks who calls: listen on 127.0.0.1, or say --no-auth",
                            address.host);
        }
        int cores = granted_cores();
        n_workers = n_workers > 0 ? n_workers : cores;
        TRY(workers_start(n_workers, limits.max_queue, &server->workers));
        HttpOptions http = { .loop = &server->loop,
                             .listen_fd = fd,
                             .is_loopback = address.is_loopback,
                             .host_name = options->host_name,
                             .allow_origin = options->allow_origin,
                             .quiet = options->quiet[0] != '\0',
                             .engine = server->engine,
                             .workers = server->workers,
                             .facts = version_facts(),
                             .idle = on_idle,
                             .idle_context = server };
        http.facts.n_cores = cores;
        http.facts.n_workers = n_workers;
        TRY(http_start(&http, &server->http));
        bool v6 = strchr(address.host, ':') != NULL;
        printf("listening on http://%s%s%s:%d\n", v6 ? "[" : "", address.host, v6 ? "]" : "", port_of(fd));
        fflush(stdout);
        return STATUS_OK;
}

static void init_loop(Server *server)
{
        static const int numbers[] = { SIGTERM, SIGINT };
        uv_loop_init(&server->loop);
        for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
                uv_signal_init(&server->loop, &server->signals[i]);
                server->signals[i].data = server;
                uv_signal_start(&server->signals[i], on_signal, numbers[i]);
        }
        uv_timer_init(&server->loop, &server->drain_timer);
        uv_timer_init(&server->loop, &server->stop_timer);
        server->drain_timer.data = server->stop_timer.data = server;
}

int server_main(const Options *options)
{
        Server server = { .http = NULL };
        signal(SIGPIPE, SIG_IGN);
        log_start();
        init_loop(&server);
        Status status = start(&server, options);
        if (status != STATUS_OK) {
                log_stop();
                fprintf(stderr, "fxserve: %s\n", failure_current()->message);
                close_loop(&server);
                uv_run(&server.loop, UV_RUN_DEFAULT);
                uv_loop_close(&server.loop);
                workers_stop(server.workers);
                engine_close(server.engine);
                return status == STATUS_USAGE || status == STATUS_CONFLICT ? 2 : 1;
        }
        uv_run(&server.loop, UV_RUN_DEFAULT);
        workers_stop(server.workers);
        http_free(server.http);
        engine_close(server.engine);
        uv_loop_close(&server.loop);
        log_line("stopped");
        log_stop();
        return server.forced ? 1 : 0;
}
