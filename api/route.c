// SPDX-License-Identifier: Apache-2.0
// Routing over routes.def: the raw path is split at '/', each segment is percent-decoded on its own
// (so %2F never becomes a separator) and compared with the template's. Names are checked against
// one pattern; others are refused, never cleaned up.
#include <stdio.h>
#include <string.h>
#include "api/call.h"
#include "core/base/limits.h"

enum { MAX_SEGMENTS = 8, SEGMENT_MAX = 256 };

typedef struct Segments {
        char text[MAX_SEGMENTS][SEGMENT_MAX];
        size_t length[MAX_SEGMENTS]; // of the texts
        int n;
} Segments;

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Percent-decodes [from, end) into `out`; '+' is a blank in queries. False: bad escape, control
// byte, NUL, or too long.
static bool decode(const char *from, const char *end, bool plus_is_blank, char *out, size_t capacity)
{
        size_t n = 0;
        for (; from < end; from++) {
                int c = (unsigned char)*from;
                if (c == '%') {
                        if (end - from < 3 || hex_digit(from[1]) < 0 || hex_digit(from[2]) < 0)
                                return false;
                        c = hex_digit(from[1]) * 16 + hex_digit(from[2]);
                        from += 2;
                } else if (c == '+' && plus_is_blank) {
                        c = ' ';
                }
                if (c < 0x20 || c == 0x7f || n + 1 >= capacity)
                        return false;
                out[n++] = (char)c;
        }
        out[n] = '\0';
        return true;
}

// Appends the paths that exist below a graph, for a request of another one.
static void add_graph_paths(void)
{
        static const char below[] = "/v1/graphs/{name}/";
        for (size_t i = 0, n = 0; i < ROUTE_COUNT; i++) {
                const char *rest = routes[i].path + sizeof(below) - 1;
                if (strncmp(routes[i].path, below, sizeof(below) - 1) == 0 &&
                    strncmp(rest, "versions/", 9) != 0)
                        failure_append("%s%s", n++ == 0 ? "; below a graph there are " : ", ", rest);
        }
        failure_append(" and versions/1/...");
}

static Status fail_path(const Segments *path)
{
        Status status = fail(STATUS_NOT_FOUND, "there is nothing at this path");
        bool is_graph =
                path->n >= 3 && strcmp(path->text[0], "v1") == 0 && strcmp(path->text[1], "graphs") == 0;
        if (path->n > 1 && path->text[path->n - 1][0] == '\0')
                failure_append("; leave out the slash at its end");
        else if (is_graph)
                add_graph_paths();
        else
                failure_append("; GET /v1 lists the paths, a run is POST /v1/graphs/NAME/run");
        return status;
}

static Status fail_method(const char *method, const Segments *path, const char *allow)
{
        Status status = fail(STATUS_METHOD, "this path takes %s", allow);
        bool of_graphs = path->n >= 2 && path->n <= 3 && strcmp(path->text[1], "graphs") == 0;
        if (of_graphs && path->n == 3 && strcmp(method, "POST") == 0)
                failure_append("; a run is POST /v1/graphs/%.64s/run", path->text[2]);
        else if (of_graphs && path->n == 2 && strcmp(method, "PUT") == 0)
                failure_append("; an upload is PUT /v1/graphs/NAME");
        return status;
}

static Status split_path(const char *path, const char *end, Segments *out)
{
        out->n = 0;
        if (path == end || *path != '/')
                return fail(STATUS_NOT_FOUND, "there is nothing here; GET /v1 lists the paths");
        while (path < end) {
                const char *start = path + 1;
                const char *stop = memchr(start, '/', (size_t)(end - start));
                if (stop == NULL)
                        stop = end;
                if (out->n == MAX_SEGMENTS)
                        return fail_path(out);
                if (!decode(start, stop, false, out->text[out->n], SEGMENT_MAX))
                        return fail(STATUS_VALUE,
                                    "the path holds a bad percent escape, a control character or a segment "
                                    "over %d bytes",
                                    SEGMENT_MAX - 1);
                out->length[out->n] = strlen(out->text[out->n]);
                out->n++;
                path = stop;
        }
        return STATUS_OK;
}

bool route_is_name(const char *text)
{
        size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
        return n > 0 && text[n] == '\0' && n <= (size_t)limits.max_name && text[0] != '.' && text[0] != '-';
}

static bool names_passes(const Route *route)
{
        static const char path[] = "/v1/passes/";
        return route != NULL && strncmp(route->path, path, sizeof(path) - 1) == 0;
}

static Status take_name(const char *text, ApiCall *call)
{
        char name[SEGMENT_MAX];
        size_t n = strlen(text);
        memcpy(name, text, n + 1);
        bool is_file = route_is(call->route, KIND_UPLOAD);
        if (is_file && n > 4 && strcmp(name + n - 4, ".pt2") == 0)
                name[n - 4] = '\0';
        else if (is_file && n > 5 && strcmp(name + n - 5, ".json") == 0)
                name[n - 5] = '\0';
        if (!route_is_name(name))
                return fail(STATUS_VALUE,
                            "a %s has 1 to %d letters, digits, '_', '.' or '-' and begins with a "
                            "letter, a digit or '_'",
                            names_passes(call->route) ? "pass's name" : "graph name", (int)limits.max_name);
        memcpy(call->name, name, strlen(name) + 1);
        return STATUS_OK;
}

bool route_is_alias(const char *text)
{
        return route_is_name(text) && strchr("0123456789", text[0]) == NULL;
}

// The first `n` characters are the number.
static Status take_number(const char *text, size_t n, ApiCall *call)
{
        if (n == 0 || n > 15 || strtoll(text, NULL, 10) == 0)
                return fail(
                        STATUS_VALUE,
                        "a version is a number from 1 on, or an alias, which begins with a letter or '_'");
        call->version = strtoll(text, NULL, 10);
        return STATUS_OK;
}

static Status take_version(const char *text, ApiCall *call)
{
        size_t n = strspn(text, "0123456789");
        if (route_has(call->route, AS_TORCHSERVE) && strcmp(text + n, ".0") == 0) // as its archives count
                return take_number(text, n, call);
        if (route_is_alias(text)) {
                memcpy(call->alias, text, strlen(text) + 1);
                return STATUS_OK;
        }
        return take_number(text, text[n] == '\0' ? n : 0, call);
}

// The text behind a placeholder in its segment: ":predict" of "{name}:predict".
static const char *suffix_of(const char *segment, size_t n, size_t *out_n)
{
        const char *end = memchr(segment, '}', n);
        *out_n = end == NULL ? 0 : (size_t)(segment + n - end) - 1;
        return end + 1;
}

// The characters up to the next '/' or the end. Templates' segments are short.
static size_t segment_length(const char *segment)
{
        size_t n = 0;
        while (segment[n] != '/' && segment[n] != '\0')
                n++;
        return n;
}

static bool segment_fits(const char *segment, size_t n, const char *text, size_t n_text)
{
        size_t n_suffix;
        if (*segment != '{')
                return n_text == n && memcmp(text, segment, n) == 0;
        const char *suffix = suffix_of(segment, n, &n_suffix);
        return n_text >= n_suffix && memcmp(text + n_text - n_suffix, suffix, n_suffix) == 0;
}

// Whether the segments fit the template; placeholders fit anything here.
static bool fits(const char *template, const Segments *path)
{
        int i = 0;
        for (const char *at = template; *at == '/'; i++) {
                const char *start = at + 1;
                size_t n = segment_length(start);
                if (i == path->n)
                        return false;
                if (!segment_fits(start, n, path->text[i], path->length[i]))
                        return false;
                at = start + n;
        }
        return i == path->n;
}

static Status take_placeholders(const char *template, const Segments *path, ApiCall *call)
{
        int i = 0;
        for (const char *at = template; *at == '/'; i++) {
                const char *start = at + 1;
                char text[SEGMENT_MAX];
                size_t n = segment_length(start), n_suffix = 0;
                if (*start == '{')
                        (void)suffix_of(start, n, &n_suffix);
                memcpy(text, path->text[i], path->length[i] - n_suffix);
                text[path->length[i] - n_suffix] = '\0';
                if (strncmp(start, "{name}", 6) == 0)
                        TRY(take_name(text, call));
                else if (strncmp(start, "{v}", 3) == 0)
                        TRY(take_version(text, call));
                else if (strncmp(start, "{id}", 4) == 0 || strncmp(start, "{file}", 6) == 0)
                        snprintf(call->id, sizeof(call->id), "%.64s", text);
                at = start + n;
        }
        return STATUS_OK;
}

// The first row that fits says which path it is; others of that path have other methods.
static Status find_route(const char *method, const Segments *path, ApiCall *call, char out_allow[64])
{
        const char *known = NULL;
        size_t n = 0;
        if (strcmp(method, "HEAD") == 0)
                method = "GET";
        out_allow[0] = '\0';
        for (size_t i = 0; i < ROUTE_COUNT; i++) {
                if (known == NULL ? !fits(routes[i].path, path) : strcmp(routes[i].path, known) != 0)
                        continue;
                known = routes[i].path;
                if (strcmp(routes[i].method, method) == 0) {
                        call->route = &routes[i];
                        out_allow[0] = '\0'; // only a refusal lists the other methods
                        return STATUS_OK;
                }
                n += (size_t)snprintf(out_allow + n, 64 - n, "%s%s%s", n == 0 ? "" : ", ", routes[i].method,
                                      strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
        }
        if (known != NULL)
                return fail_method(method, path, out_allow);
        return fail_path(path);
}

// ---- query ----
// The index of a parameter in the route's list; -1: the route does not have it.
static int place_of(const Route *route, const char *name)
{
        for (int i = 0; route->parameters[i] != PARAM_NONE; i++)
                if (strcmp(parameters[route->parameters[i]].name, name) == 0)
                        return i;
        return -1;
}

static Status fail_parameter(const Route *route, const char *name)
{
        Status status = fail(STATUS_UNKNOWN_MEMBER, "unknown query parameter \"%s\"; this path takes%s", name,
                             route->parameters[0] == PARAM_NONE ? " none" : ":");
        for (int i = 0; route->parameters[i] != PARAM_NONE; i++)
                failure_append(" %s", parameters[route->parameters[i]].name);
        return status;
}

static Status add_query(const char *from, const char *end, ApiCall *call)
{
        char key[64], value[SEGMENT_MAX * 8];
        const char *equals = memchr(from, '=', (size_t)(end - from));
        const char *key_end = equals == NULL ? end : equals;
        if (!decode(from, key_end, true, key, sizeof(key)) ||
            (equals != NULL && !decode(equals + 1, end, true, value, sizeof(value))))
                return fail(STATUS_VALUE, "the query holds a bad percent escape, a control character or a "
                                          "text that is too long");
        if (equals == NULL)
                value[0] = '\0';
        int place = place_of(call->route, key);
        if (place < 0)
                return route_has(call->route, AS_OIP) ? STATUS_OK : fail_parameter(call->route, key);
        if (call->query[place] != NULL)
                return fail(STATUS_VALUE, "query parameter \"%s\" is given twice", key);
        call->query[place] = copy_text(value, strlen(value));
        return call->query[place] == NULL ? fail_memory() : STATUS_OK;
}

static Status parse_query(const char *query, ApiCall *call)
{
        while (*query != '\0') {
                size_t n = strcspn(query, "&");
                if (n > 0)
                        TRY(add_query(query, query + n, call));
                query += n + (query[n] == '&');
        }
        return STATUS_OK;
}

Status route_parse(const char *method, const char *target, ApiCall *call, char out_allow[64])
{
        Segments path;
        call->route = NULL;
        out_allow[0] = '\0';
        if (strlen(target) > (size_t)limits.max_uri)
                return fail(STATUS_TOO_LARGE,
                            "the request line is longer than %lld bytes (max_uri in GET /v1)",
                            (long long)limits.max_uri);
        const char *query = strchr(target, '?');
        TRY(split_path(target, query == NULL ? target + strlen(target) : query, &path));
        if (path.n == 2 && strcmp(path.text[0], "v2") == 0 && path.text[1][0] == '\0')
                path.n = 1; // GET /v2/, as clients of the Open Inference Protocol send it
        TRY(find_route(method, &path, call, out_allow));
        TRY(take_placeholders(call->route->path, &path, call));
        return query == NULL ? STATUS_OK : parse_query(query + 1, call);
}

// ---- questions ----
bool route_is(const Route *route, RouteKind kind)
{
        return route != NULL && route->kind == kind;
}

bool route_has(const Route *route, RouteNeed need)
{
        return route != NULL && (route->needs & need) == need;
}

// ---- routes of other servers ----
static const struct {
        const char *name, *server;
        unsigned bit;
} codecs[] = { { "tfserving", "TensorFlow Serving and KServe v1", AS_TFSERVING },
               { "torchserve", "TorchServe", AS_TORCHSERVE },
               { "sagemaker", "SageMaker", AS_SAGEMAKER } };

static Status fail_codec(const char *name, size_t n)
{
        Status status = fail(STATUS_USAGE, "--codecs names \"%.*s\"; there are:", (int)MIN(n, 64U), name);
        for (size_t i = 0; i < ARRAY_LENGTH(codecs); i++)
                failure_append("%s %s", i == 0 ? "" : ",", codecs[i].name);
        failure_append("=GRAPH");
        return status;
}

// "tfserving", or "sagemaker=GRAPH".
static Status add_codec(const char *text, size_t n, RouteCodecs *all)
{
        const char *equals = memchr(text, '=', n);
        size_t n_name = equals == NULL ? n : (size_t)(equals - text), i = 0;
        while (i < ARRAY_LENGTH(codecs) &&
               (strlen(codecs[i].name) != n_name || memcmp(codecs[i].name, text, n_name) != 0))
                i++;
        if (i == ARRAY_LENGTH(codecs) || (equals != NULL && codecs[i].bit != AS_SAGEMAKER))
                return fail_codec(text, n);
        all->on |= codecs[i].bit;
        if (equals == NULL)
                return STATUS_OK;
        size_t n_graph = n - n_name - 1;
        snprintf(all->invoked, sizeof(all->invoked), "%.*s", (int)MIN(n_graph, 64U), equals + 1);
        if (n_graph > 64 || !route_is_name(all->invoked))
                return fail(STATUS_USAGE, "--codecs sagemaker=%.64s: this is no name of a graph",
                            all->invoked);
        return STATUS_OK;
}

Status route_codecs(const char *names, RouteCodecs *out_codecs)
{
        RouteCodecs all = { .on = 0 };
        for (const char *at = names; *at != '\0';) {
                size_t n = strcspn(at, ",");
                TRY(add_codec(at, n, &all));
                at += n + (at[n] == ',');
        }
        *out_codecs = all;
        return STATUS_OK;
}

Status route_check_codec(const Route *route, const RouteCodecs *on)
{
        unsigned all = AS_TFSERVING | AS_TORCHSERVE | AS_SAGEMAKER;
        if ((route->needs & all) == 0 || (route->needs & on->on) != 0)
                return STATUS_OK;
        size_t i = 0;
        while ((route->needs & codecs[i].bit) == 0)
                i++;
        return fail(STATUS_NOT_FOUND,
                    "this path is one of %s, which is not switched on: start fxserve with --codecs %s "
                    "(FXSERVE_CODECS)",
                    codecs[i].server, codecs[i].name);
}

const char *route_template(const Route *route)
{
        return route == NULL ? "-" : route->path;
}

const int64_t *route_limit(const int64_t *const choice[2])
{
        return choice[1] != NULL && *choice[1] < *choice[0] ? choice[1] : choice[0];
}

const Route *route_first_with_path(const Route *route)
{
        const Route *first = routes;
        while (strcmp(first->path, route->path) != 0)
                first++;
        return first;
}

const Route *route_next(const Route *route)
{
        const Route *end = routes + ROUTE_COUNT, *next = route == NULL ? routes : route + 1;
        for (; route != NULL && next < end; next++)
                if (strcmp(next->path, route->path) == 0)
                        return next;
        next = route == NULL ? routes : route_first_with_path(route) + 1;
        while (next < end && route_first_with_path(next) != next)
                next++;
        return next < end ? next : NULL;
}

void api_call_deinit(ApiCall *call)
{
        for (int i = 0; i < ROUTE_MAX_PARAMETERS; i++) {
                free(call->query[i]);
                call->query[i] = NULL;
        }
        call->body = storage_unref(call->body);
        call->quota = quota_unref(call->quota);
}
