// SPDX-License-Identifier: Apache-2.0
// The two tables that define the wire: routes (routes.def) and their parameters (parameters.def).
// Routing, tokens, limits, loading, messages, metrics labels and the OpenAPI document read the
// rows. No code outside of a route's handler tests which route a request has.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

typedef enum RouteKind {
        KIND_ANSWER, // a handler answers, on a worker
        // the same; a large body goes to disk, and a name loses a trailing ".pt2" or ".json"
        KIND_UPLOAD,
        KIND_RUN,    // run by server/job.c
        KIND_PROBE,  // a handler answers on the loop thread, even when the server is full or stopping
        KIND_STATIC, // the same, with a file of the page; logged as other requests are
        KIND_EVENTS  // the same, and the reply goes on with events (server/events.h)
} RouteKind;

// What a token may do; a token's scopes are a sum of these.
typedef enum Scope {
        SCOPE_NONE = 0,
        SCOPE_READ = 1,
        SCOPE_RUN = 2,
        SCOPE_WRITE = 4,
        SCOPE_ADMIN = 8,
        SCOPE_ALL = 15
} Scope;

typedef enum RouteNeed {
        NEEDS_NOTHING = 0,
        NEEDS_VERSION = 1,               // the version that the path names
        NEEDS_GRAPH = 2 | NEEDS_VERSION, // that version, decoded
        SHOWS_DAMAGE = 4,                // answers without its graph when that is damaged
        BRINGS_GRAPH = 8,                // the body holds the graph
        NEEDS_FACTS = 16,                // ServerFacts: uptime, readiness
        NEEDS_COUNTS = 32 | NEEDS_FACTS, // ServerFacts: all of it
        NEEDS_SCOPES = 64,               // ApiCall.scopes: some bodies ask for more than the route's scope
        // bodies, replies and failures are the Open Inference Protocol's; unknown parameters of the
        // query are ignored
        AS_OIP = 128,
        NEEDS_SESSION = 256, // the session that the path names, and its version's graph
        // the route is another server's, and there only when --codecs names it
        AS_TFSERVING = 512,
        AS_TORCHSERVE = 1024,
        AS_SAGEMAKER = 2048, // a path without {name} is of the graph that --codecs names, or of the only one
        KEEPS_GRAPH = 4096   // brings a graph into memory that stays there
} RouteNeed;

// A media type and its JSON schema; lists end with a NULL type.
typedef struct Media {
        const char *type, *schema;
} Media;

// The body of a request. The smaller of two limits holds; of equal ones the first. Limits are
// fields of `limits`; the second may be NULL.
typedef struct RouteBody {
        const Media *media;         // NULL: no body is expected
        const int64_t *limits[2];   // of the body as it arrives
        const int64_t *inflated[2]; // of a body with a Content-Encoding, inflated
} RouteBody;

typedef enum ParameterId {
        PARAM_NONE, // ends a list
#define PARAMETER(id, ...) PARAM_##id,
#include "api/parameters.def"
#undef PARAMETER
        PARAM_COUNT
} ParameterId;

typedef enum ParameterPlace { IN_PATH, IN_QUERY, IN_BOTH } ParameterPlace;
typedef enum ParameterType {
        TYPE_SCHEMA,
        TYPE_TEXT,
        TYPE_NAMES,
        TYPE_BOOL,
        TYPE_INT,
        TYPE_NUMBER,
        TYPE_CHOICE
} ParameterType;

#define NO_DEFAULT INT64_MIN

typedef struct Parameter {
        const char *name;
        ParameterPlace place;
        ParameterType type;
        int64_t min, max;         // TYPE_INT
        const int64_t *limit;     // TYPE_INT: instead of `max` and `fallback`; or NULL
        const char *const *names; // TYPE_CHOICE
        int n_names;
        int64_t fallback;   // of TYPE_BOOL, TYPE_INT, TYPE_CHOICE (an index); NO_DEFAULT
        const char *schema; // TYPE_SCHEMA
        const char *words;
} Parameter;
extern const Parameter parameters[PARAM_COUNT]; // [PARAM_NONE] is empty
// Of TYPE_INT; the limits are set before threads start.
int64_t parameter_max(const Parameter *row);
int64_t parameter_default(const Parameter *row);

typedef enum RouteId {
#define ROUTE(id, ...)                       ROUTE_##id,
#define VERSIONED_ROUTE(id, of_version, ...) ROUTE_##id, ROUTE_##of_version,
#include "api/routes.def"
#undef ROUTE
#undef VERSIONED_ROUTE
        ROUTE_COUNT
} RouteId;

enum { ROUTE_MAX_STATUSES = 3, ROUTE_MAX_PARAMETERS = 12 };

typedef struct Answer Answer;
typedef Status (*RouteHandler)(const Answer *answer);

typedef struct Route {
        const char *id; // "GRAPH_GET"
        const char *method, *path, *words;
        RouteKind kind;
        Scope scope;
        unsigned needs; // of RouteNeed
        const RouteBody *body;
        const Media *reply;
        RouteHandler handler;                         // not called for KIND_RUN
        int statuses[ROUTE_MAX_STATUSES + 1];         // of success; 0 ends
        uint8_t parameters[ROUTE_MAX_PARAMETERS + 1]; // ParameterId of the query; PARAM_NONE ends
} Route;
extern const Route routes[ROUTE_COUNT];

// Questions about a call's route, which is NULL while it is unknown.
bool route_is(const Route *route, RouteKind kind);
bool route_has(const Route *route, RouteNeed need); // all of it
// The routes of other servers that are there.
typedef struct RouteCodecs {
        unsigned on;      // a sum of AS_TFSERVING and so on
        char invoked[65]; // the graph of POST /invocations; "": the only one
} RouteCodecs;
// From names separated by commas, as --codecs has them. STATUS_USAGE lists the names.
Status route_codecs(const char *names, RouteCodecs *out_codecs);
// STATUS_NOT_FOUND: the route is of a server that is not among `codecs`; says how to switch it on.
Status route_check_codec(const Route *route, const RouteCodecs *codecs);
// Path template for metrics and logs ("/v1/graphs/{name}/run"); "-" for NULL.
const char *route_template(const Route *route);
// The limit that holds for a body, of `body->limits` or `body->inflated`.
const int64_t *route_limit(const int64_t *const limits[2]);
// The first route with the same path.
const Route *route_first_with_path(const Route *route);
// Iterates over all routes; those with the same path are neighbours. NULL begins; NULL ends.
const Route *route_next(const Route *route);
