// SPDX-License-Identifier: Apache-2.0
// `fxserve demo`: a server in a child process, which keeps nothing on the disk, with a trained
// model; requests to it and their answers are printed. The child ends with this process.
#include "server/demo.h"
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/memory.h"
#include "server/child.h"
#include "server/client.h"
#include "server/command_line.h"
#include "server/commands.h"

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

static Status show_all(const char *text)
{
        ClientUrl url;
        ClientReply reply = { 0 };
        TRY(client_url_parse("demo", text, &url));
        TRY(ask(&url, "PUT", "/v1/graphs/digits", (ByteSpan){ demo_model, n_demo_model }, &reply));
        client_reply_deinit(&reply);
        printf("fxserve serves a model that reads digits, on %s\n", text);
        for (size_t i = 0; i < ARRAY_LENGTH(requests); i++)
                TRY(show(&url, text, (int)i));
        printf("\nThe graph with the heat of that run: %s/#/g/digits/graph\nCtrl-C ends the server.\n", text);
        return fflush(stdout) == 0 ? STATUS_OK : fail(STATUS_IO, "standard output cannot be written");
}

int command_demo(int argc, char **argv)
{
        const char *listen = NULL;
        ChildServer child;
        for (int at = 0; at < argc; at++)
                if ((listen = flag_value("--listen", argc, argv, &at)) == NULL)
                        return command_usage("demo");
        fflush(stdout);
        Status status = child_start(listen == NULL ? free_address() : listen, NULL, &child);
        if (status != STATUS_OK)
                return command_report(status);
        status = show_all(child.url);
        if (status == STATUS_OK) {
                char page[300];
                snprintf(page, sizeof(page), "%s/#/g/digits/graph", child.url);
                child_show(page);
        }
        int code = status == STATUS_OK ? 0 : command_report(status);
        int child_code = child_wait(&child, status != STATUS_OK);
        return code != 0 ? code : child_code;
}
