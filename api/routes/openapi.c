// SPDX-License-Identifier: Apache-2.0
// One operation per row of routes.def, its parameters from the row's template and query, its bodies
// and replies from the tables below, its failures from errors.def. Schemas describe what a client
// must know to send and read; API details stand in their descriptions.
#include "api/routes/openapi.h"
#include <string.h>

// ---- tables ----
typedef struct ParameterText {
        const char *name, *schema, *text;
} ParameterText;
static const ParameterText parameter_texts[] = {
        { "name", "{\"type\": \"string\", \"pattern\": \"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$\"}",
          "a graph's name" },
        { "v", "{\"type\": [\"integer\", \"string\"]}", "a version's number or alias" },
        { "id", "{\"type\": \"string\"}", "a request's id (X-Request-Id)" },
        { "limit", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000}", "at most so many entries" },
        { "after", "{\"type\": \"string\"}", "go on after this name (\"next\" of the page before)" },
        { "model", "{\"type\": \"string\"}", "one of several models in an archive" },
        { "profile", "{\"type\": \"boolean\"}", "put the profile into the reply" },
        { "outputs", "{\"type\": \"string\"}", "nodes to fetch instead of the outputs, separated by commas" },
        { "mode", "{\"enum\": [\"auto\", \"compiled\", \"eager\"]}",
          "auto: eager at the first sight of an input shape, compiled from the second on; compiled waits for "
          "the program" },
        { "deadline_ms", "{\"type\": \"integer\", \"minimum\": 1}",
          "milliseconds after which the answer is 504; at most the server's --run-deadline-ms" },
        { "seed", "{\"type\": \"integer\", \"minimum\": 0}",
          "makes the random numbers of the run the same each time" },
        { "encoding", "{\"enum\": [\"list\", \"flat\", \"b64\"]}", "how tensor data is written in JSON" },
        { "reply", "{\"enum\": [\"full\", \"bare\"]}", "bare: the graph's own structure as plain lists" },
        { "stage", "{\"enum\": [\"authored\", \"aten\", \"optimised\", \"program\"]}", "what to print" },
        { "program", "{\"type\": \"string\"}", "id of a program; else the one that ran last" },
        { "slowest", "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000}",
          "so many entries, the slowest first" },
        { "by", "{\"enum\": [\"instruction\", \"node\", \"target\", \"op\", \"module\", \"kernel\"]}",
          "what rows are summed up by" },
};

// Of "form" and "as", whose values differ from route to route.
static const char *form_schema(RouteId id)
{
        if (id == ROUTE_WEIGHTS || id == ROUTE_VERSION_WEIGHTS)
                return "{\"enum\": [\"safetensors\", \"npz\"]}";
        if (id == ROUTE_RUN || id == ROUTE_VERSION_RUN || id == ROUTE_RUN_INLINE)
                return "{\"enum\": [\"json\", \"npy\", \"npz\", \"safetensors\"]}";
        bool text = id == ROUTE_TEXT || id == ROUTE_VERSION_TEXT;
        return text ? "{\"enum\": [\"graph\", \"code\", \"tabular\", \"json\"]}"
                    : "{\"enum\": [\"json\", \"text\", \"chrome\", \"folded\"]}";
}

// Media types of a success, each with its schema.
typedef struct Media {
        const char *type, *schema;
} Media;

static const Media json_object[] = { { "application/json", "{\"type\": \"object\"}" }, { NULL, NULL } };
static const Media graph_info[] = { { "application/json", "{\"$ref\": \"#/components/schemas/GraphInfo\"}" },
                                    { NULL, NULL } };
static const Media run_reply[] = { { "application/json", "{}" },
                                   { "application/x-npy", "{}" },
                                   { "application/x-npz", "{}" },
                                   { "application/x-safetensors", "{}" },
                                   { NULL, NULL } };
static const Media run_body[] = { { "application/json", "{\"$ref\": \"#/components/schemas/RunBody\"}" },
                                  { "application/x-npy", "{}" },
                                  { "application/x-npz", "{}" },
                                  { "application/x-safetensors", "{}" },
                                  { "multipart/form-data", "{\"type\": \"object\"}" },
                                  { NULL, NULL } };
static const Media inline_body[] = { { "application/json", "{\"$ref\": \"#/components/schemas/RunBody\"}" },
                                     { "multipart/form-data", "{\"type\": \"object\"}" },
                                     { NULL, NULL } };
static const Media upload_body[] = { { "application/octet-stream", "{}" },
                                     { "application/json", "{\"type\": \"object\"}" },
                                     { "multipart/form-data", "{\"type\": \"object\"}" },
                                     { NULL, NULL } };
static const Media change_body[] = {
        { "application/json",
          "{\"type\": \"object\", \"properties\": {\"default_version\": {\"type\": \"integer\"}, "
          "\"aliases\": "
          "{\"description\": \"null removes\", "
          "\"type\": \"object\", \"additionalProperties\": {\"type\": [\"integer\", \"null\"]}}}}" },
        { NULL, NULL }
};
static const Media text_reply[] = { { "text/plain", "{\"type\": \"string\"}" },
                                    { "application/json", "{\"type\": \"object\"}" },
                                    { NULL, NULL } };
static const Media plain_reply[] = { { "text/plain", "{\"type\": \"string\"}" }, { NULL, NULL } };
static const Media weights_reply[] = { { "application/x-safetensors", "{}" },
                                       { "application/x-npz", "{}" },
                                       { NULL, NULL } };

static const Media *body_of(RouteId id)
{
        switch (id) {
        case ROUTE_GRAPH_PUT:
        case ROUTE_GRAPH_POST:
                return upload_body;
        case ROUTE_GRAPH_PATCH:
                return change_body;
        case ROUTE_RUN:
        case ROUTE_VERSION_RUN:
                return run_body;
        case ROUTE_RUN_INLINE:
                return inline_body;
        default:
                return NULL;
        }
}

static const Media *reply_of(RouteId id)
{
        switch (id) {
        case ROUTE_GRAPH_PUT:
        case ROUTE_GRAPH_POST:
        case ROUTE_GRAPH_GET:
        case ROUTE_GRAPH_PATCH:
        case ROUTE_VERSION_GET:
                return graph_info;
        case ROUTE_RUN:
        case ROUTE_VERSION_RUN:
        case ROUTE_RUN_INLINE:
                return run_reply;
        case ROUTE_TEXT:
        case ROUTE_VERSION_TEXT:
        case ROUTE_PROFILE_STATS:
        case ROUTE_VERSION_PROFILE_STATS:
        case ROUTE_PROFILE_GET:
                return text_reply;
        case ROUTE_WEIGHTS:
        case ROUTE_VERSION_WEIGHTS:
                return weights_reply;
        case ROUTE_METRICS:
                return plain_reply;
        default:
                return json_object;
        }
}

// ---- parameters ----
static void add_parameter(const char *name, size_t n, bool in_path, RouteId id, Text *out)
{
        const char *schema = form_schema(id), *text = "form of the reply";
        for (size_t i = 0; i < ARRAY_LENGTH(parameter_texts); i++) {
                const ParameterText *known = &parameter_texts[i];
                if (strlen(known->name) == n && memcmp(known->name, name, n) == 0) {
                        schema = known->schema;
                        text = known->text;
                }
        }
        text_addf(
                out,
                "%s{\"name\": \"%.*s\", \"in\": \"%s\", \"required\": %s, \"schema\": %s, \"description\": ",
                out->data[out->n - 1] == '[' ? "" : ", ", (int)n, name, in_path ? "path" : "query",
                in_path ? "true" : "false", schema);
        text_add_json(out, text);
        text_add_char(out, '}');
}

static void add_parameters(const Route *route, Text *out)
{
        text_add(out, ", \"parameters\": [");
        for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at, '{')) {
                size_t n = strcspn(++at, "}");
                add_parameter(at, n, true, route->id, out);
        }
        for (const char *at = route->query; *at != '\0';) {
                size_t n = strcspn(at, " ");
                add_parameter(at, n, false, route->id, out);
                at += n + (at[n] == ' ');
        }
        text_add_char(out, ']');
}

// ---- operations ----
static void add_content(const Media *media, Text *out)
{
        text_add(out, ", \"content\": {");
        for (; media->type != NULL; media++)
                text_addf(out, "\"%s\": {\"schema\": %s}%s", media->type, media->schema,
                          media[1].type == NULL ? "" : ", ");
        text_add_char(out, '}');
}

static bool shows_tag(RouteId id)
{
        return id == ROUTE_TEXT || id == ROUTE_VERSION_TEXT || id == ROUTE_EXAMPLE ||
               id == ROUTE_VERSION_EXAMPLE || id == ROUTE_WEIGHTS || id == ROUTE_VERSION_WEIGHTS;
}

static void add_responses(const Route *route, Text *out)
{
        text_add(out, ", \"responses\": {");
        for (const char *at = route->success; *at != '\0';) {
                size_t n = strcspn(at, " ");
                bool empty = n == 3 && memcmp(at, "204", 3) == 0;
                text_addf(out, "\"%.*s\": {\"description\": ", (int)n, at);
                text_add_json(out, empty ? "done" : route->summary);
                if (!empty)
                        add_content(reply_of(route->id), out);
                text_add(out, "}, ");
                at += n + (at[n] == ' ');
        }
        if (shows_tag(route->id))
                text_add(out, "\"304\": {\"description\": \"the client has it (If-None-Match)\"}, ");
        text_add(out, "\"default\": {\"$ref\": \"#/components/responses/Error\"}}");
}

static void add_operation_id(const Route *route, Text *out)
{
        static const char *const ids[ROUTE_COUNT] = {
#define ROUTE(id, ...) #id,
#include "api/routes.def"
#undef ROUTE
        };
        for (const char *at = ids[route->id]; *at != '\0'; at++)
                text_add_char(out, (char)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at));
}

static void add_operation(const Route *route, Text *out)
{
        static const char *const methods[][2] = { { "GET", "get" },
                                                  { "POST", "post" },
                                                  { "PUT", "put" },
                                                  { "PATCH", "patch" },
                                                  { "DELETE", "delete" } };
        const char *method = "get";
        for (size_t i = 0; i < ARRAY_LENGTH(methods); i++)
                if (strcmp(methods[i][0], route->method) == 0)
                        method = methods[i][1];
        text_addf(out, "\"%s\": {\"operationId\": \"", method);
        add_operation_id(route, out);
        text_add(out, "\", \"summary\": ");
        text_add_json(out, route->summary);
        add_parameters(route, out);
        if (body_of(route->id) != NULL) {
                text_add(out, ", \"requestBody\": {\"required\": true");
                add_content(body_of(route->id), out);
                text_add_char(out, '}');
        }
        add_responses(route, out);
        text_add_char(out, '}');
}

static bool path_seen_before(size_t index)
{
        for (size_t i = 0; i < index; i++)
                if (strcmp(routes[i].path, routes[index].path) == 0)
                        return true;
        return false;
}

static void add_paths(Text *out)
{
        bool first_path = true;
        for (size_t i = 0; i < ROUTE_COUNT; i++) {
                if (path_seen_before(i))
                        continue;
                text_add(out, first_path ? "\n" : ",\n");
                first_path = false;
                text_add_json(out, routes[i].path);
                text_add(out, ": {");
                bool first = true;
                for (size_t k = i; k < ROUTE_COUNT; k++)
                        if (strcmp(routes[k].path, routes[i].path) == 0) {
                                text_add(out, first ? "" : ", ");
                                first = false;
                                add_operation(&routes[k], out);
                        }
                text_add_char(out, '}');
        }
}

// ---- components ----
typedef struct ErrorText {
        Status status;
        const char *cure;
} ErrorText;
static const ErrorText error_texts[] = {
#define ERROR(name, http, cure) { STATUS_##name, cure },
#include "api/errors.def"
#undef ERROR
};

static void add_components(Text *out)
{
        text_add(out, "\"components\": {\"securitySchemes\": {\"token\": {\"type\": \"http\", \"scheme\": "
                      "\"bearer\"}}, \"responses\": "
                      "{\"Error\": {\"description\": \"what went wrong, and what to do next\", \"content\": "
                      "{\"application/json\": {\"schema\": {\"$ref\": \"#/components/schemas/Error\"}}}}}, "
                      "\"schemas\": {\n\"Error\": "
                      "{\"type\": \"object\", \"required\": [\"error\", \"code\"], \"properties\": "
                      "{\"error\": {\"type\": \"string\"}, \"node\": "
                      "{\"type\": \"string\"}, \"details\": {\"type\": \"object\"}, \"code\": {\"oneOf\": [");
        for (size_t i = 0; i < ARRAY_LENGTH(error_texts); i++) {
                text_addf(out,
                          "%s\n  {\"const\": \"%s\", \"title\": \"%d\", \"description\": ", i == 0 ? "" : ",",
                          status_code(error_texts[i].status), status_http(error_texts[i].status));
                text_add_json(out, error_texts[i].cure);
                text_add_char(out, '}');
        }
        text_add(out,
                 "]}}},\n\"GraphInfo\": {\"type\": \"object\", \"required\": [\"name\", \"version\", \"id\", "
                 "\"format\", \"state\"], "
                 "\"properties\": {\"name\": {\"type\": \"string\"}, \"version\": {\"type\": \"integer\"}, "
                 "\"id\": {\"type\": \"string\"}, "
                 "\"format\": {\"enum\": [\"pt2\", \"fx\"]}, \"state\": {\"enum\": [\"ready\", "
                 "\"damaged\"]}, \"resident\": "
                 "{\"description\": "
                 "\"decoded, so that a run need not read it first\", \"type\": \"boolean\"}, \"created\": "
                 "{\"type\": \"string\", "
                 "\"format\": \"date-time\"}, \"upload_bytes\": {\"type\": "
                 "\"integer\"}, \"aliases\": {\"type\": \"object\", \"additionalProperties\": {\"type\": "
                 "\"integer\"}}, \"inputs\": "
                 "{\"type\": \"array\"}, \"outputs\": {\"type\": \"array\"}, \"ops\": {\"type\": "
                 "\"object\"}, \"programs\": {\"type\": "
                 "\"array\"}}},\n\"RunBody\": {\"type\": \"object\", \"additionalProperties\": false, "
                 "\"properties\": {\"inputs\": {\"description\": \"by argument name, or "
                 "one entry per argument\", \"type\": [\"object\", \"array\"]}, \"outputs\": {\"type\": "
                 "\"array\", \"items\": {\"type\": "
                 "\"string\"}}, \"profile\": {\"type\": \"boolean\"}, \"mode\": {\"enum\": [\"auto\", "
                 "\"compiled\", "
                 "\"eager\"]}, \"deadline_ms\": {\"type\": \"integer\", \"minimum\": 1}, \"seed\": "
                 "{\"type\": \"integer\", "
                 "\"minimum\": 0}, \"reply\": {\"enum\": [\"full\", \"bare\"]}, \"encoding\": {\"enum\": "
                 "[\"list\", \"flat\", \"b64\"]}, \"graph\": {\"description\": \"POST /v1/run: FX JSON\", "
                 "\"type\": \"object\"}}}}}");
}

Status openapi_write(const char *version, Text *out)
{
        text_add(out, "{\"openapi\": \"3.1.0\", \"info\": {\"title\": \"fxserve\", \"summary\": \"PyTorch "
                      "graphs over HTTP\", \"license\": "
                      "{\"name\": \"Apache-2.0\", \"identifier\": \"Apache-2.0\"}, \"version\": ");
        text_add_json(out, version);
        text_add(out, "}, \"paths\": {");
        add_paths(out);
        text_add(out, "},\n\"security\": [{}, {\"token\": []}],\n"); // a server without tokens asks for none
        add_components(out);
        text_add(out, "}\n");
        return text_status(out);
}
