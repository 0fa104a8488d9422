// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document: operations from routes.def, parameters from parameters.def, failures from
// errors.def. Schemas state what a client needs to send and read; their descriptions have the
// details.
#include "api/routes/openapi.h"
#include <string.h>
#include "api/readers/steps.h"

// ---- parameters ----
static void add_names(const Parameter *row, Text *out)
{
        text_add(out, "{\"enum\": [");
        for (int i = 0; i < row->n_names; i++)
                text_addf(out, "%s\"%s\"", i == 0 ? "" : ", ", row->names[i]);
        text_add_char(out, ']');
        if (row->fallback != NO_DEFAULT)
                text_addf(out, ", \"default\": \"%s\"", row->names[row->fallback]);
        text_add_char(out, '}');
}

static void add_range(const Parameter *row, Text *out)
{
        int64_t most = parameter_max(row), fallback = parameter_default(row);
        text_addf(out, "{\"type\": \"integer\", \"minimum\": %lld", (long long)row->min);
        if (most != INT64_MAX)
                text_addf(out, ", \"maximum\": %lld", (long long)most);
        if (fallback != NO_DEFAULT)
                text_addf(out, ", \"default\": %lld", (long long)fallback);
        text_add_char(out, '}');
}

static void add_schema(const Parameter *row, bool in_body, Text *out)
{
        switch (row->type) {
        case TYPE_SCHEMA:
                text_add(out, row->schema);
                break;
        case TYPE_BOOL:
                text_addf(out, "{\"type\": \"boolean\", \"default\": %s}", row->fallback ? "true" : "false");
                break;
        case TYPE_INT:
                add_range(row, out);
                break;
        case TYPE_NUMBER:
                text_add(out, "{\"type\": \"number\", \"minimum\": 0}");
                break;
        case TYPE_CHOICE:
                add_names(row, out);
                break;
        case TYPE_TEXT:
        case TYPE_NAMES:
                text_add(out, row->type == TYPE_NAMES && in_body
                                      ? "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}"
                                      : "{\"type\": \"string\"}");
        }
}

static void add_parameter(const Parameter *row, Text *out)
{
        text_addf(out, "%s{\"name\": \"%s\", \"in\": \"%s\", \"required\": %s, \"schema\": ",
                  out->data[out->n - 1] == '[' ? "" : ", ", row->name,
                  row->place == IN_PATH ? "path" : "query", row->place == IN_PATH ? "true" : "false");
        add_schema(row, false, out);
        text_add(out, ", \"description\": ");
        text_add_json(out, row->words);
        text_add_char(out, '}');
}

// A placeholder of a path.
static const Parameter *placeholder(const char *name, size_t n)
{
        for (size_t i = 1; i < PARAM_COUNT; i++)
                if (parameters[i].place == IN_PATH && strlen(parameters[i].name) == n &&
                    memcmp(parameters[i].name, name, n) == 0)
                        return &parameters[i];
        return NULL;
}

static void add_parameters(const Route *route, Text *out)
{
        text_add(out, ", \"parameters\": [");
        for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at, '{')) {
                size_t n = strcspn(++at, "}");
                add_parameter(placeholder(at, n), out);
        }
        for (int i = 0; route->parameters[i] != PARAM_NONE; i++)
                add_parameter(&parameters[route->parameters[i]], out);
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

static void add_responses(const Route *route, Text *out)
{
        text_add(out, ", \"responses\": {");
        for (const int *status = route->statuses; *status != 0; status++) {
                bool has_body = *status != 204 && *status != 304;
                text_addf(out, "\"%d\": {\"description\": ", *status);
                text_add_json(out, *status == 204   ? "done"
                                   : *status == 304 ? "the client has it (If-None-Match)"
                                                    : route->words);
                if (has_body)
                        add_content(route->reply, out);
                text_add(out, "}, ");
        }
        text_add(out, "\"default\": {\"$ref\": \"#/components/responses/Error\"}}");
}

static void add_lower(const char *text, Text *out)
{
        for (; *text != '\0'; text++)
                text_add_char(out, (char)(*text >= 'A' && *text <= 'Z' ? *text + 32 : *text));
}

static void add_operation(const Route *route, Text *out)
{
        text_add_char(out, '"');
        add_lower(route->method, out);
        text_add(out, "\": {\"operationId\": \"");
        add_lower(route->id, out);
        text_add(out, "\", \"summary\": ");
        text_add_json(out, route->words);
        add_parameters(route, out);
        if (route->body->media != NULL) {
                text_add(out, ", \"requestBody\": {\"required\": true");
                add_content(route->body->media, out);
                text_add_char(out, '}');
        }
        add_responses(route, out);
        text_add_char(out, '}');
}

static void add_paths(Text *out)
{
        const Route *before = NULL;
        for (const Route *route = route_next(NULL); route != NULL; route = route_next(route)) {
                if (before != NULL && strcmp(before->path, route->path) == 0) {
                        text_add(out, ", ");
                } else {
                        text_add(out, before == NULL ? "\n" : "},\n");
                        text_add_json(out, route->path);
                        text_add(out, ": {");
                }
                add_operation(route, out);
                before = route;
        }
        text_add_char(out, '}');
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

static void add_run_body(Text *out)
{
        text_add(
                out,
                "\"RunBody\": {\"type\": \"object\", \"additionalProperties\": false, \"properties\": "
                "{\"inputs\": {\"description\": \"by argument name, or one entry per argument\", "
                "\"type\": [\"object\", \"array\"]}, \"overrides\": {\"description\": \"rules that replace "
                "calls of the graph for this run, or observe them\", \"type\": \"array\"}, \"leaf\": "
                "{\"description\": \"which calls of child graphs stay calls; the others are inlined\", "
                "\"type\": \"object\"}, \"initial_env\": "
                "{\"description\": \"values of nodes, which are not run\", \"type\": \"object\"}, \"until\": "
                "{\"description\": \"the last node to run\", \"type\": \"string\"}, \"keep\": "
                "{\"description\": \"values outlive the run\", \"enum\": [\"all\"]}, \"mutations\": "
                "{\"description\": \"the reply has what the run wrote to state and inputs\", \"type\": "
                "\"boolean\"}, \"session\": {\"description\": \"the run's state is this session's\", "
                "\"type\": "
                "\"string\"}");
        for (size_t i = 1; i < PARAM_COUNT; i++)
                if (parameters[i].place == IN_BOTH) {
                        text_addf(out, ", \"%s\": ", parameters[i].name);
                        add_schema(&parameters[i], true, out);
                }
        text_add(out, ", \"graph\": {\"description\": \"POST /v1/run: FX JSON\", \"type\": \"object\"}}}");
}

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
                 "\"array\"}}},\n");
        add_run_body(out);
        text_add(out, ",\n\"Step\": ");
        steps_schema(out);
        text_add(out, "}}");
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
