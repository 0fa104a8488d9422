// SPDX-License-Identifier: Apache-2.0
// Commands that ask a server. Each makes one or two requests, like a person with curl.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "api/formats/report_html.h"
#include "api/routes/summary.h"
#include "core/base/memory.h"
#include "server/client.h"
#include "server/command_line.h"
#include "server/commands.h"
#include "server/preload.h"

enum { IDLE_MS = 300000, TARGET_MAX = 400, MAX_POSITIONAL = 2 };
static const size_t reply_max = (size_t)4 << 30;

// ---- the command line ----
typedef struct Remote {
        ClientUrl url;
        const char *url_text, *token, *ca_file, *weights, *output;
        const char *positional[MAX_POSITIONAL];
        int n_positional, n_inputs;
        bool insecure, profile;
        Text body; // of call: the run's envelope
        // of compare
        const char *mode, *form, *sample, *rtol, *atol, *seed;
        bool nodes, html;
} Remote;

static const char *environment(const char *name)
{
        const char *text = getenv(name);
        return text == NULL || text[0] == '\0' ? NULL : text;
}

typedef struct Flags {
        bool call, push, compare; // which of the commands' own flags are known
} Flags;

// STATUS_USAGE for another flag.
static Status read_compare_flag(int argc, char **argv, int *at, Remote *remote)
{
        const struct {
                const char *flag, **value;
        } flags[] = { { "--mode", &remote->mode },     { "--form", &remote->form },
                      { "--sample", &remote->sample }, { "--rtol", &remote->rtol },
                      { "--atol", &remote->atol },     { "--seed", &remote->seed } };
        for (size_t i = 0; i < ARRAY_LENGTH(flags); i++) {
                const char *value = flag_value(flags[i].flag, argc, argv, at);
                if (value == NULL)
                        continue;
                *flags[i].value = value;
                return STATUS_OK;
        }
        if (strcmp(argv[*at], "--html") == 0)
                remote->html = true;
        else if (strcmp(argv[*at], "--nodes") != 0)
                return fail(STATUS_USAGE, "not understood: %s", argv[*at]);
        remote->nodes = true; // a report shows them, too
        return STATUS_OK;
}

static Status read_flag(int argc, char **argv, int *at, Flags flags, Remote *remote)
{
        const char *value;
        if ((value = flag_value("--url", argc, argv, at)) != NULL)
                remote->url_text = value;
        else if ((value = flag_value("--token", argc, argv, at)) != NULL)
                remote->token = value;
        else if ((value = flag_value("--ca", argc, argv, at)) != NULL)
                remote->ca_file = value;
        else if (strcmp(argv[*at], "--insecure") == 0)
                remote->insecure = true;
        else if (flags.push && (value = flag_value("--weights", argc, argv, at)) != NULL)
                remote->weights = value;
        else if (flags.call && strcmp(argv[*at], "--profile") == 0)
                remote->profile = true;
        else if ((flags.call || flags.compare) && (value = flag_value("-o", argc, argv, at)) != NULL)
                remote->output = value;
        else if ((flags.call || flags.compare) && (value = flag_value("--input", argc, argv, at)) != NULL)
                return command_add_input(value, remote->n_inputs++ == 0, &remote->body);
        else if (flags.compare)
                return read_compare_flag(argc, argv, at, remote);
        else
                return fail(STATUS_USAGE, "not understood: %s", argv[*at]);
        return STATUS_OK;
}

static Status read_command_line(int argc, char **argv, Flags flags, Remote *remote)
{
        *remote = (Remote){ .url_text = environment("FXSERVE_URL"), .token = environment("FXSERVE_TOKEN") };
        text_add(&remote->body, "{\"inputs\": {");
        for (int at = 0; at < argc; at++) {
                if (argv[at][0] == '-')
                        TRY(read_flag(argc, argv, &at, flags, remote));
                else if (remote->n_positional < MAX_POSITIONAL)
                        remote->positional[remote->n_positional++] = argv[at];
                else
                        return fail(STATUS_USAGE, "not understood: %s", argv[at]);
        }
        text_add(&remote->body, "}}");
        for (const char *c = remote->token; c != NULL && *c != '\0'; c++)
                if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
                        return fail(STATUS_USAGE, "the token holds a character that no token has");
        if (remote->url_text != NULL)
                TRY(client_url_parse("--url", remote->url_text, &remote->url));
        else
                TRY(client_url_own(&remote->url));
        return text_status(&remote->body);
}

// ---- requests ----
static bool is_name(const char *text)
{
        for (const char *c = text; *c != '\0'; c++)
                if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                      strchr("_.-@", *c) != NULL))
                        return false;
        return true;
}

// /v1/graphs/NAME or /v1/graphs/NAME/versions/VERSION, and what follows it.
static Status graph_target(const char *name, const char *rest, char out[TARGET_MAX])
{
        size_t n = strcspn(name, "@");
        bool plain = n > 0;
        for (const char *c = name; *c != '\0'; c++)
                plain = plain && ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                                  (*c >= 'A' && *c <= 'Z') || strchr("_.-@", *c) != NULL);
        if (!plain || strlen(name) > 200)
                return fail(STATUS_USAGE,
                            "\"%.200s\" is no graph's name: letters, digits, _, . and -, perhaps @VERSION "
                            "behind it",
                            name);
        snprintf(out, TARGET_MAX, "/v1/graphs/%.*s%s%s%s", (int)n, name, name[n] == '@' ? "/versions/" : "",
                 name[n] == '@' ? name + n + 1 : "", rest);
        return STATUS_OK;
}

// A reply of 4xx or 5xx becomes a failure with the server's message. `request` lacks the members
// that all requests share.
static Status ask(const Remote *remote, ClientRequest request, ClientReply *out_reply)
{
        Text error = { 0 };
        request.token = remote->token;
        request.ca_file = remote->ca_file;
        request.insecure = remote->insecure;
        request.idle_ms = IDLE_MS;
        request.max_reply = reply_max;
        if (client_ask(&remote->url, &request, out_reply) != STATUS_OK) {
                failure_append("; is a server running at %s://%s:%s?", remote->url.tls ? "https" : "http",
                               remote->url.host, remote->url.port);
                return STATUS_IO;
        }
        if (out_reply->status < 400)
                return STATUS_OK;
        bool said = summary_of_error((ByteSpan){ (const uint8_t *)out_reply->body.data, out_reply->body.n },
                                     &error);
        Status status =
                fail(STATUS_IO, "%s (HTTP %d)", said ? error.data : "the server refused", out_reply->status);
        text_deinit(&error);
        client_reply_deinit(out_reply);
        return status;
}

static ByteSpan body_of(const ClientReply *reply)
{
        return (ByteSpan){ (const uint8_t *)reply->body.data, reply->body.n };
}

static ByteSpan span_of(const Text *text)
{
        return (ByteSpan){ (const uint8_t *)text->data, text->n };
}

static Status print_text(const Text *text)
{
        return write_text(text) == 0 ? STATUS_OK : fail(STATUS_IO, "the output could not be written");
}

// Prints the graph of the reply, and a last line. Frees the reply.
static Status print_graph(ClientReply *reply, const char *last_line)
{
        Text text = { 0 };
        Status status = summary_of_graph(body_of(reply), &text);
        text_add(&text, last_line);
        if (status == STATUS_OK)
                status = print_text(&text);
        text_deinit(&text);
        client_reply_deinit(reply);
        return status;
}

// Ends a command: frees everything, prints the failure and returns the exit code.
static int finish(const char *name, Status status, Remote *remote)
{
        text_deinit(&remote->body);
        if (status == STATUS_USAGE) {
                command_report(status);
                return command_usage(name);
        }
        return status == STATUS_OK ? 0 : command_report(status);
}

static Status want_positional(const Remote *remote, int least, int most)
{
        return remote->n_positional >= least && remote->n_positional <= most
                       ? STATUS_OK
                       : fail(STATUS_USAGE, least == 0 ? "too many words"
                                                       : "a name is missing, or there are too many words");
}

// ---- push ----
typedef struct MappedFile {
        void *data;
        size_t n;
} MappedFile;

static void unmap(MappedFile *file)
{
        if (file->n > 0)
                munmap(file->data, file->n);
}

// The file's bytes; they are sent from where the kernel keeps them.
static Status map_file(const char *path, MappedFile *out)
{
        struct stat info;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
                int error = fd < 0 ? errno : 0;
                if (fd >= 0)
                        close(fd);
                return error != 0 ? fail(STATUS_USAGE, "%s: %s", path, strerror(error))
                                  : fail(STATUS_USAGE, "%s is empty or no regular file", path);
        }
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        int error = errno;
        close(fd);
        if (data == MAP_FAILED)
                return fail(STATUS_USAGE, "%s: %s", path, strerror(error));
        *out = (MappedFile){ data, (size_t)info.st_size };
        return STATUS_OK;
}

#define BOUNDARY "fxserve-6f0b9a52c1d84e7e"
static const char
        part_graph[] = "--" BOUNDARY
                       "\r\nContent-Disposition: form-data; name=\"graph\"; filename=\"graph\"\r\n\r\n",
        part_weights[] = "\r\n--" BOUNDARY
                         "\r\nContent-Disposition: form-data; name=\"weights\"; filename=\"weights\"\r\n\r\n",
        part_end[] = "\r\n--" BOUNDARY "--\r\n";

static ByteSpan literal(const char *text)
{
        return (ByteSpan){ (const uint8_t *)text, strlen(text) };
}

static Status push(const Remote *remote)
{
        _cleanup_(unmap) MappedFile graph = { NULL, 0 }, weights = { NULL, 0 };
        char target[TARGET_MAX], name[SUMMARY_NAME];
        ClientReply reply;
        TRY(want_positional(remote, 1, 2));
        model_name_of(remote->positional[0], name);
        TRY(graph_target(remote->n_positional == 2 ? remote->positional[1] : name, "", target));
        TRY(map_file(remote->positional[0], &graph));
        ClientRequest request = {
                .method = "PUT", .target = target, .parts = { { graph.data, graph.n } }, .n_parts = 1
        };
        if (remote->weights != NULL) {
                TRY(map_file(remote->weights, &weights));
                request.content_type = "multipart/form-data; boundary=" BOUNDARY;
                request.n_parts = 0;
                const ByteSpan parts[] = { literal(part_graph),
                                           { graph.data, graph.n },
                                           literal(part_weights),
                                           { weights.data, weights.n },
                                           literal(part_end) };
                for (; request.n_parts < (int)ARRAY_LENGTH(parts); request.n_parts++)
                        request.parts[request.n_parts] = parts[request.n_parts];
        }
        TRY(ask(remote, request, &reply));
        return print_graph(&reply, reply.status == 201 ? "uploaded\n" : "the server had it already\n");
}

int command_push(int argc, char **argv)
{
        Remote remote;
        Status status = read_command_line(argc, argv, (Flags){ .push = true }, &remote);
        return finish("push", status == STATUS_OK ? push(&remote) : status, &remote);
}

// ---- list, show, rm ----
static Status list(const Remote *remote)
{
        char next[SUMMARY_NAME] = "", target[TARGET_MAX];
        bool first = true;
        TRY(want_positional(remote, 0, 0));
        do {
                ClientReply reply;
                Text text = { 0 };
                snprintf(target, sizeof(target), "/v1/graphs%s%s", first ? "" : "?after=", next);
                TRY(ask(remote, (ClientRequest){ .method = "GET", .target = target }, &reply));
                Status status = summary_of_list(body_of(&reply), first, &text, next);
                if (status == STATUS_OK)
                        status = print_text(&text);
                if (status == STATUS_OK && !is_name(next)) // it becomes part of a request
                        status = fail(STATUS_IO, "the list goes on after something that is no name");
                text_deinit(&text);
                client_reply_deinit(&reply);
                TRY(status);
                first = false;
        } while (next[0] != '\0');
        return STATUS_OK;
}

int command_list(int argc, char **argv)
{
        Remote remote;
        Status status = read_command_line(argc, argv, (Flags){ .push = false }, &remote);
        return finish("list", status == STATUS_OK ? list(&remote) : status, &remote);
}

static Status show(const Remote *remote)
{
        char target[TARGET_MAX];
        ClientReply reply;
        TRY(want_positional(remote, 1, 1));
        TRY(graph_target(remote->positional[0], "", target));
        TRY(ask(remote, (ClientRequest){ .method = "GET", .target = target }, &reply));
        return print_graph(&reply, "");
}

int command_show(int argc, char **argv)
{
        Remote remote;
        Status status = read_command_line(argc, argv, (Flags){ .push = false }, &remote);
        return finish("show", status == STATUS_OK ? show(&remote) : status, &remote);
}

static Status rm(const Remote *remote)
{
        char target[TARGET_MAX];
        ClientReply reply;
        TRY(want_positional(remote, 1, 1));
        TRY(graph_target(remote->positional[0], "", target));
        TRY(ask(remote, (ClientRequest){ .method = "DELETE", .target = target }, &reply));
        client_reply_deinit(&reply);
        return STATUS_OK;
}

int command_rm(int argc, char **argv)
{
        Remote remote;
        Status status = read_command_line(argc, argv, (Flags){ .push = false }, &remote);
        return finish("rm", status == STATUS_OK ? rm(&remote) : status, &remote);
}

// ---- call ----
static const char *form_of(const char *output)
{
        static const char *const forms[] = { "npy", "npz", "safetensors" };
        const char *dot = output == NULL ? NULL : strrchr(output, '.');
        for (size_t i = 0; dot != NULL && i < ARRAY_LENGTH(forms); i++)
                if (strcmp(dot + 1, forms[i]) == 0)
                        return forms[i];
        return "json";
}

static Status save(const char *path, const Text *bytes)
{
        FILE *file = fopen(path, "wbe");
        if (file == NULL)
                return fail(STATUS_USAGE, "%s: %s", path, strerror(errno));
        bool ok = fwrite(bytes->data, 1, bytes->n, file) == bytes->n;
        ok = fclose(file) == 0 && ok;
        return ok ? STATUS_OK : fail(STATUS_IO, "%s: %s", path, strerror(errno));
}

// The profile of the last run, on standard error, because standard output has the reply.
static Status show_profile(const Remote *remote, const char *id)
{
        char target[TARGET_MAX];
        ClientReply reply;
        snprintf(target, sizeof(target), "/v1/profiles/%s?form=text", id);
        TRY(ask(remote, (ClientRequest){ .method = "GET", .target = target }, &reply));
        fwrite(reply.body.data, 1, reply.body.n, stderr);
        client_reply_deinit(&reply);
        return STATUS_OK;
}

// Without inputs: the server's own example.
static Status example(const Remote *remote, ClientReply *out_reply)
{
        char target[TARGET_MAX];
        TRY(graph_target(remote->positional[0], "/example", target));
        return ask(remote, (ClientRequest){ .method = "GET", .target = target }, out_reply);
}

static Status call(const Remote *remote)
{
        char target[TARGET_MAX], rest[64], id[40];
        ClientReply sample = { .status = 0 }, reply;
        TRY(want_positional(remote, 1, 1));
        snprintf(id, sizeof(id), "call-%lld-%d", (long long)time(NULL), (int)getpid());
        snprintf(rest, sizeof(rest), "/run?as=%s", form_of(remote->output));
        TRY(graph_target(remote->positional[0], rest, target));
        if (remote->n_inputs == 0)
                TRY(example(remote, &sample));
        ClientRequest request = { .method = "POST",
                                  .target = target,
                                  .request_id = id,
                                  .content_type = "application/json",
                                  .parts = { span_of(remote->n_inputs == 0 ? &sample.body : &remote->body) },
                                  .n_parts = 1 };
        Status status = ask(remote, request, &reply);
        client_reply_deinit(&sample);
        TRY(status);
        status = remote->output == NULL ? print_text(&reply.body) : save(remote->output, &reply.body);
        client_reply_deinit(&reply);
        TRY(status);
        return remote->profile ? show_profile(remote, id) : STATUS_OK;
}

int command_call(int argc, char **argv)
{
        Remote remote;
        Status status = read_command_line(argc, argv, (Flags){ .call = true }, &remote);
        return finish("call", status == STATUS_OK ? call(&remote) : status, &remote);
}

// ---- compare ----
enum { MODE_MAX = 16 };

static void add_side(const char *name, const char *mode, Text *body)
{
        size_t n = strcspn(name, "@");
        text_add(body, "{\"graph\": ");
        text_add_json_n(body, name, n);
        if (name[n] == '@' && name[n + 1] >= '0' && name[n + 1] <= '9')
                text_addf(body, ", \"version\": %lld", strtoll(name + n + 1, NULL, 10));
        else if (name[n] == '@') {
                text_add(body, ", \"version\": ");
                text_add_json(body, name + n + 1);
        }
        text_add(body, ", \"mode\": ");
        text_add_json(body, mode);
        text_add_char(body, '}');
}

// "compiled", or "eager,compiled": of both sides, or of each.
static Status read_modes(const Remote *remote, char out_a[MODE_MAX], char out_b[MODE_MAX])
{
        bool one_graph = remote->n_positional == 1 && remote->sample == NULL;
        const char *text = remote->mode != NULL ? remote->mode : one_graph ? "eager,compiled" : "eager";
        const char *comma = strchr(text, ',');
        snprintf(out_a, MODE_MAX, "%.*s", (int)MIN(strcspn(text, ","), MODE_MAX - 1u), text);
        snprintf(out_b, MODE_MAX, "%s", comma == NULL ? out_a : comma + 1);
        for (int i = 0; i < 2; i++) {
                const char *mode = i == 0 ? out_a : out_b;
                if (strcmp(mode, "eager") != 0 && strcmp(mode, "compiled") != 0)
                        return fail(STATUS_USAGE,
                                    "--mode is eager or compiled, or two of them as eager,compiled; not %s",
                                    text);
        }
        if (remote->sample != NULL && comma != NULL)
                return fail(STATUS_USAGE, "a sample has no mode: --mode has one word beside --sample");
        return STATUS_OK;
}

// Whether a number stands in the flag's value, alone.
static Status add_number(const char *flag, const char *name, const char *value, Text *body)
{
        if (value == NULL)
                return STATUS_OK;
        if (value[0] == '\0' || strspn(value, "0123456789.eE+-") != strlen(value))
                return fail(STATUS_USAGE, "%s is a number, not %s", flag, value);
        text_addf(body, ", \"%s\": %s", name, value);
        return STATUS_OK;
}

static Status write_comparison(const Remote *remote, Text *body)
{
        char modes[2][MODE_MAX];
        TRY(want_positional(remote, 1, remote->sample != NULL ? 1 : 2));
        TRY(read_modes(remote, modes[0], modes[1]));
        text_add(body, "{\"a\": ");
        add_side(remote->positional[0], modes[0], body);
        if (remote->sample != NULL) {
                text_add(body, ", \"b\": {");
                if (remote->sample[0] == '\0' ||
                    strspn(remote->sample, "0123456789") != strlen(remote->sample))
                        return fail(STATUS_USAGE, "--sample is a whole number, not %s", remote->sample);
                text_addf(body, "\"samples\": %s}", remote->sample);
        } else {
                text_add(body, ", \"b\": ");
                add_side(remote->positional[remote->n_positional - 1], modes[1], body);
        }
        TRY(add_number("--rtol", "rtol", remote->rtol, body));
        TRY(add_number("--atol", "atol", remote->atol, body));
        TRY(add_number("--seed", "seed", remote->seed, body));
        text_add(body, remote->nodes ? ", \"nodes\": true" : "");
        text_addf(body, ", \"form\": \"%s\"",
                  remote->html           ? "json"
                  : remote->form == NULL ? "text"
                                         : remote->form);
        if (remote->n_inputs > 0) {
                text_add(body, ", ");
                text_add(body, remote->body.data + 1); // {"inputs": {...}}
        } else {
                text_add_char(body, '}');
        }
        return text_status(body);
}

// The reply, or with --html a report that shows it.
static Status write_found(const Remote *remote, const Text *reply)
{
        _cleanup_(text_deinit) Text data = { 0 }, page = { 0 };
        if (remote->html) {
                text_add(&data, "{\"comparison\": ");
                text_add_n(&data, reply->data, reply->n);
                text_add_char(&data, '}');
                TRY(report_write_html(&data, &page));
                reply = &page;
        }
        return remote->output == NULL ? print_text(reply) : save(remote->output, reply);
}

static Status compare(const Remote *remote, bool *out_equal)
{
        _cleanup_(text_deinit) Text body = { 0 };
        ClientReply reply;
        if (remote->form != NULL && strcmp(remote->form, "text") != 0 && strcmp(remote->form, "json") != 0)
                return fail(STATUS_USAGE, "--form is text or json, not %s", remote->form);
        if (remote->form != NULL && remote->html)
                return fail(STATUS_USAGE, "--form and --html are two forms of one reply: leave one out");
        TRY(write_comparison(remote, &body));
        ClientRequest request = { .method = "POST",
                                  .target = "/v1/compare",
                                  .content_type = "application/json",
                                  .parts = { span_of(&body) },
                                  .n_parts = 1 };
        TRY(ask(remote, request, &reply));
        Status status = write_found(remote, &reply.body);
        const char *text = reply.body.data == NULL ? "" : reply.body.data;
        *out_equal = strstr(text, "\nthe results are close\n") != NULL ||
                     strncmp(text, "{\"equal\": true,", strlen("{\"equal\": true,")) == 0;
        client_reply_deinit(&reply);
        return status;
}

int command_compare(int argc, char **argv)
{
        Remote remote;
        bool equal = false;
        Status status = read_command_line(argc, argv, (Flags){ .compare = true }, &remote);
        status = status == STATUS_OK ? compare(&remote, &equal) : status;
        if (status == STATUS_OK && !equal) {
                text_deinit(&remote.body);
                return 1;
        }
        return finish("compare", status, &remote) == 0 ? 0 : 2;
}
