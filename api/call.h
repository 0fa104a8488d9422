// SPDX-License-Identifier: Apache-2.0
// One HTTP request as a value, and its reply. No sockets, no threads: the server fills an ApiCall, hands it to api/ on any thread and sends
// the ApiReply.
#pragma once
#include "core/base/text.h"
#include "core/engine.h"

typedef enum RouteId {
#define ROUTE(id, ...) ROUTE_##id,
#include "api/routes.def"
#undef ROUTE
        ROUTE_COUNT,
        ROUTE_NONE = ROUTE_COUNT
} RouteId;

typedef struct Route {
        RouteId id;
        const char *method, *path, *query, *success, *summary;
} Route;
extern const Route routes[ROUTE_COUNT];

enum { CALL_MAX_QUERY = 16, CALL_HEADER_MAX = 256, REPLY_MAX_HEADERS = 6 };

typedef struct QueryParameter {
        char *key, *value;
} QueryParameter; // decoded, owned by the call

typedef struct ApiCall {
        RouteId route;
        char name[65];   // {name}, trailing .pt2/.json dropped for uploads
        int64_t version; // {v}; 0: the default one
        char id[65];     // {id}
        QueryParameter query[CALL_MAX_QUERY];
        uint32_t n_query;
        char content_type[CALL_HEADER_MAX]; // "" if absent; a hint only
        char accept[CALL_HEADER_MAX];
        char request_id[PROFILE_ID_MAX + 1];
        Storage *body; // counted; NULL: none
} ApiCall;

typedef struct ReplyHeader {
        const char *name;
        char value[CALL_HEADER_MAX];
} ReplyHeader;
typedef struct ApiReply {
        int status;               // HTTP
        const char *content_type; // static; NULL: no body
        Text body;
        ReplyHeader headers[REPLY_MAX_HEADERS];
        uint32_t n_headers;
} ApiReply;

void api_call_deinit(ApiCall *call);
void api_reply_deinit(ApiReply *reply);
void api_reply_header(ApiReply *reply, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Method and raw request target (path?query, percent-encoded) -> route, name, version, id, query. STATUS_NOT_FOUND, STATUS_METHOD
// (*out_allow receives the Allow list), STATUS_UNKNOWN_MEMBER for query parameters the route does not know (all listed), STATUS_VALUE for
// bad names or a parameter given twice. HEAD is routed as GET. `call` is zeroed by the caller; what was set stays valid on failure (for
// logs).
Status route_parse(const char *method, const char *target, ApiCall *call, char out_allow[64]);
// Template of the route for metrics and logs ("/v1/graphs/{name}/run"); "-" for ROUTE_NONE.
const char *route_template(RouteId route);
const char *call_query(const ApiCall *call, const char *key); // NULL if absent
// 1/0/true/false (or empty = true); STATUS_VALUE otherwise. Absent: unchanged.
Status call_query_bool(const ApiCall *call, const char *key, bool *value);
Status call_query_int(const ApiCall *call, const char *key, int64_t min, int64_t max, int64_t *value);

// The failure as a JSON reply: {"error", "code", "node", "details"}; INTERNAL failures show "internal error" and the request id only.
void reply_failure(const Failure *failure, const char *request_id, ApiReply *reply);
int status_http(Status status);

// What the server knows and api shows. Filled by the server for each call that needs it.
typedef struct ServerFacts {
        const char *version, *revision, *torch_level, *cpu_level;
        int n_cores, n_workers;
        int64_t uptime_ns;
        int64_t n_connections, n_queued, n_running;
        bool ready;
        // Requests by route and status, for /metrics.
        const struct RequestCount {
                RouteId route;
                int status;
                uint64_t n;
                double seconds;
        } * counts;
        uint32_t n_counts;
} ServerFacts;

typedef struct ApiContext {
        Engine *engine;
        const ServerFacts *facts;
} ApiContext;

// Everything but runs: uploads, info, lists, text, profiles, ops, metrics, probes. May read and write the disk, decode and hash: not for
// the loop thread, except the probes. Never fails: failures become the reply. Graphs that must be loaded first are acquired by the caller
// (api_needs_graph) and handed in.
void api_answer(const ApiContext *context, ApiCall *call, Graph *graph_or_null, GraphVersion *version_or_null, ApiReply *reply);
// Whether the route works on a named graph's version / needs it decoded.
bool api_needs_version(RouteId route);
bool api_needs_graph(RouteId route);
