// SPDX-License-Identifier: Apache-2.0
// `fxserve demo`: a server in a child process, which keeps nothing on the disk, with a trained
// model; requests to it and their answers are printed. The child ends with this process.
#include "server/demo.h"
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/memory.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "server/client.h"
#include "server/command_line.h"
#include "server/commands.h"
#include "server/server.h"

enum { ASK_MS = 30000, MAX_REPLY = 1 << 20, DEFAULT_PORT = 8080 };

static const char seven[] = "{\"inputs\": {\"x\": [[[[0,0,5,11,16,16,5,0],[0,3,15,11,10,16,4,0],"
                            "[0,0,4,0,10,14,0,0],[0,0,7,15,16,16,12,0],[0,0,9,16,14,4,1,0],"
                            "[0,0,1,14,7,0,0,0],[0,0,4,16,4,0,0,0],[0,0,8,16,0,0,0,0]]]]}}";

// What is shown, in order.
static const struct {
        const char *words, *target, *body; // body: NULL is a GET
} requests[] = {
        { "The graph as code:", "/v1/graphs/digits/text?form=code", NULL },
        { "The two likeliest digits of an image of a seven:",
          "/v1/graphs/digits/run?top=2&reply=bare&mode=compiled", seven },
        { "Where the time went:", "/v1/graphs/digits/profile?form=text", NULL },
};

// The default port if nobody listens there, else one that the system picks.
static const char *free_address(void)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(DEFAULT_PORT) };
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
        if (fd < 0)
                return "127.0.0.1:0";
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        bool is_free = bind(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0;
        close(fd);
        return is_free ? "127.0.0.1:8080" : "127.0.0.1:0";
}

static volatile sig_atomic_t demo_child;

static void end_child(int signal_number)
{
        (void)signal_number;
        if (demo_child > 0)
                kill((pid_t)demo_child, SIGTERM);
}

// The child: serves until it is told to stop, or until its parent is gone.
static int serve(const char *listen, int out_fd, pid_t parent)
{
        char *flags[] = { "--listen", (char *)(uintptr_t)listen, "--data", "none", "--quiet", "--log-file",
                          "/dev/null" };
        Options options;
        setpgid(0, 0); // Ctrl-C reaches the parent alone, which passes it on
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent || dup2(out_fd, STDOUT_FILENO) < 0)
                return 1;
        close(out_fd);
        bool ok = ops_init() == STATUS_OK && targets_init() == STATUS_OK &&
                  options_read(ARRAY_LENGTH(flags), flags, 0, &options) == STATUS_OK;
        return ok ? server_main(&options) : command_report(STATUS_USAGE);
}

// Waits for the child's line `listening on URL`.
static Status read_url(int fd, char url[256])
{
        static const char before[] = "listening on ";
        size_t n = 0;
        while (n < 255 && (n == 0 || url[n - 1] != '\n')) {
                ssize_t got = read(fd, url + n, 1);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        return fail(STATUS_IO, "the server did not start");
                n++;
        }
        url[n - 1] = '\0';
        if (strncmp(url, before, strlen(before)) != 0)
                return fail(STATUS_IO, "the server did not start: %s", url);
        memmove(url, url + strlen(before), n - strlen(before));
        return STATUS_OK;
}

// STATUS_IO without a reply of success.
static Status ask(const ClientUrl *url, const char *method, const char *target, ByteSpan body,
                  ClientReply *out_reply)
{
        ClientRequest request = { .method = method,
                                  .target = target,
                                  .parts = { body },
                                  .n_parts = body.n > 0,
                                  .idle_ms = ASK_MS,
                                  .max_reply = MAX_REPLY };
        TRY(client_ask(url, &request, out_reply));
        if (out_reply->status / 100 == 2)
                return STATUS_OK;
        Status status = fail(STATUS_IO, "%s %s was answered with %d: %.*s", method, target, out_reply->status,
                             (int)MIN(out_reply->body.n, 300), out_reply->body.data);
        client_reply_deinit(out_reply);
        return status;
}

static Status show(const ClientUrl *url, const char *url_text, int at)
{
        const char *body = requests[at].body;
        ClientReply reply = { 0 };
        ByteSpan span = { 0 };
        if (body != NULL)
                span = (ByteSpan){ (const uint8_t *)body, strlen(body) };
        TRY(ask(url, body == NULL ? "GET" : "POST", requests[at].target, span, &reply));
        printf("\n%s\n$ curl -s '%s%s'", requests[at].words, url_text, requests[at].target);
        if (body != NULL)
                printf(" -d '%s'", body);
        bool has_line = reply.body.n > 0 && reply.body.data[reply.body.n - 1] == '\n';
        printf("\n%.*s%s", (int)reply.body.n, reply.body.data, has_line ? "" : "\n");
        client_reply_deinit(&reply);
        return STATUS_OK;
}

static Status show_all(int fd)
{
        char text[256];
        ClientUrl url;
        ClientReply reply = { 0 };
        TRY(read_url(fd, text));
        TRY(client_url_parse("demo", text, &url));
        TRY(ask(&url, "PUT", "/v1/graphs/digits", (ByteSpan){ demo_model, n_demo_model }, &reply));
        client_reply_deinit(&reply);
        printf("fxserve serves a model that reads digits, on %s\n", text);
        for (size_t i = 0; i < ARRAY_LENGTH(requests); i++)
                TRY(show(&url, text, (int)i));
        printf("\nOpen %s in a browser to see the graph. Ctrl-C ends the server.\n", text);
        return fflush(stdout) == 0 ? STATUS_OK : fail(STATUS_IO, "standard output cannot be written");
}

static int wait_for(pid_t child)
{
        int state;
        while (waitpid(child, &state, 0) < 0)
                if (errno != EINTR)
                        return 1;
        return WIFEXITED(state) ? WEXITSTATUS(state) : 1;
}

int command_demo(int argc, char **argv)
{
        const char *listen = NULL;
        for (int at = 0; at < argc; at++)
                if ((listen = flag_value("--listen", argc, argv, &at)) == NULL)
                        return command_usage("demo");
        int fds[2];
        if (pipe(fds) != 0)
                return command_report(fail(STATUS_IO, "no pipe: %s", strerror(errno)));
        fflush(stdout);
        pid_t parent = getpid(), child = fork();
        if (child == 0) {
                close(fds[0]);
                return serve(listen == NULL ? free_address() : listen, fds[1], parent);
        }
        close(fds[1]);
        if (child < 0)
                return command_report(fail(STATUS_IO, "no process: %s", strerror(errno)));
        struct sigaction on_end = { .sa_handler = end_child };
        demo_child = child;
        sigaction(SIGINT, &on_end, NULL);
        sigaction(SIGTERM, &on_end, NULL);
        Status status = show_all(fds[0]);
        int code = status == STATUS_OK ? 0 : command_report(status);
        if (status != STATUS_OK)
                kill(child, SIGTERM);
        int child_code = wait_for(child);
        close(fds[0]);
        return code != 0 ? code : child_code;
}
