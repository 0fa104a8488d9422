// SPDX-License-Identifier: Apache-2.0
// One HTTP request as a value, and its reply. No sockets, no threads: the server fills an ApiCall,
// hands it to api/ on any thread and sends the ApiReply.
#pragma once
#include <string.h>
#include "api/quota.h"
#include "api/route.h"
#include "core/base/text.h"
#include "core/engine/engine.h"

enum { CALL_HEADER_MAX = 256, REPLY_MAX_HEADERS = 10 };

typedef enum CallEncoding { CALL_PLAIN, CALL_GZIP, CALL_DEFLATE } CallEncoding;

typedef struct ApiCall {
        const Route *route;                 // NULL: unknown, or none
        char name[65];                      // {name}, trailing .pt2/.json dropped for uploads
        int64_t version;                    // {v}; 0: the default one, or what `alias` names
        char alias[65];                     // {v} as a name; "": none
        char id[65];                        // {id}
        char *query[ROUTE_MAX_PARAMETERS];  // of the route's parameters: decoded, owned; NULL: not given
        char caller[65];                    // the name of the caller's token; "": none
        Quota *quota;                       // of the token; counted, NULL: none
        unsigned scopes;                    // what the caller may do, a sum of Scope (NEEDS_SCOPES)
        char content_type[CALL_HEADER_MAX]; // a hint only; "" if absent
        char accept[CALL_HEADER_MAX];
        char if_match[CALL_HEADER_MAX], if_none_match[CALL_HEADER_MAX]; // "" if absent
        char header_length[CALL_HEADER_MAX]; // Inference-Header-Content-Length (AS_OIP); "" if absent
        char request_id[PROFILE_ID_MAX + 1];
        TraceIds trace;        // empty without a traceparent
        Storage *body;         // counted; NULL: none
        CallEncoding encoding; // of the body still; call_inflate makes it plain
        bool takes_gzip;       // as the reply's Content-Encoding
        HashHex body_digest;   // SHA-256 of the body when it is known already, else ""
} ApiCall;

typedef struct ReplyHeader {
        const char *name;
        char value[CALL_HEADER_MAX];
} ReplyHeader;

// Bytes that are sent from where they lie, between parts of the body's text: `body` up to `after`
// is sent before them.
typedef struct ReplyPiece {
        size_t after;
        const uint8_t *data;
        size_t n;
        Storage *owner; // counted
} ReplyPiece;

typedef struct ApiReply {
        int status;               // HTTP
        const char *content_type; // static; NULL: no body
        Text body;
        ReplyPiece *pieces; // in order; what remains of `body` follows the last one
        uint32_t n_pieces, pieces_capacity;
        uint32_t n_headers;
        const char *code;  // of a failure, static; NULL: none
        char problem[256]; // of an internal failure: for the log, never for the client; "": none
        // the last member: a job leaves it as its memory comes
        ReplyHeader headers[REPLY_MAX_HEADERS];
} ApiReply;

// `text` into `out`, cut to `capacity` bytes with the NUL.
static inline void copy_cut(char *out, size_t capacity, const char *text)
{
        if (memccpy(out, text, '\0', capacity) == NULL)
                out[capacity - 1] = '\0';
}

void api_call_deinit(ApiCall *call);
void api_reply_deinit(ApiReply *reply);
// The `n` bytes at `data`, which lie in `owner`, follow the body's text so far.
Status api_reply_piece(ApiReply *reply, Storage *owner, const uint8_t *data, size_t n);
size_t api_reply_bytes(const ApiReply *reply); // body and pieces
// Calls `part` for each stretch of the reply's bytes, in order; stops when it fails.
Status api_reply_each(const ApiReply *reply, Status (*part)(void *context, const uint8_t *data, size_t n),
                      void *context);
void api_reply_header(ApiReply *reply, const char *name, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
// The header's value, CALL_HEADER_MAX bytes, for the caller to write; NULL: there is no room.
char *api_reply_header_room(ApiReply *reply, const char *name);

// Method and raw request target (path?query, percent-encoded) -> route, name, version, id, query.
// STATUS_NOT_FOUND. STATUS_METHOD: *out_allow receives the Allow list. STATUS_UNKNOWN_MEMBER: query
// parameters that the route lacks; all are listed. STATUS_VALUE: bad names, or a parameter given
// twice. HEAD is routed as GET. `call` is zeroed by the caller; members that were set stay valid on
// failure (for logs).
Status route_parse(const char *method, const char *target, ApiCall *call, char out_allow[64]);
// Whether it may be the name of a graph.
bool route_is_name(const char *text);
// Whether it may stand in place of a version's number: a name that begins with a letter or '_'.
bool route_is_alias(const char *text);
// A query parameter that the call's route has, as text; NULL: not given.
const char *param_text(const ApiCall *call, ParameterId id);
// Its value, or the row's default; without either *out is unchanged. STATUS_VALUE lists the allowed
// values. A choice is the index of its name.
Status param_bool(const ApiCall *call, ParameterId id, bool *out);
Status param_int(const ApiCall *call, ParameterId id, int64_t *out);
Status param_number(const ApiCall *call, ParameterId id, double *out);
Status param_choice(const ApiCall *call, ParameterId id, int *out);
// The index of a name of TYPE_CHOICE. STATUS_VALUE lists the allowed names.
Status param_choose(ParameterId id, const char *name, int *out);

// Says in the "details" of a failure after how many seconds another try may do; also the header.
#define RETRY_AFTER_MEMBER "\"retry_after_s\": "
// Waiting does not help: there is no header.
#define RETRY_NEVER RETRY_AFTER_MEMBER "null"
// The failure as the call's reply, in JSON: {"error", "code", "node", "details"}. INTERNAL failures
// show only "internal error" and the request id.
void reply_failure(const ApiCall *call, const Failure *failure, ApiReply *reply);
int status_http(Status status);

enum { SERVER_MAX_FILES = 2 };

// The server's facts that replies show. Filled in by the server for each call that needs them.
typedef struct ServerFacts {
        const char *version, *revision, *torch_level, *cpu_level;
        int n_cores, n_workers, n_stalled;
        int64_t uptime_ns;
        int64_t n_connections, n_queued, n_running;
        int64_t body_bytes;
        int64_t memory_bytes; // of the process, without mapped files
        int memory_rung;      // server/memory.h
        uint64_t n_log_dropped;
        uint64_t n_traces_sent, n_traces_dropped;
        bool ready;
        const char *awaited;                 // a graph that must be there to be ready; NULL: none
        uint64_t n_refused[QUOTA_KINDS];     // by quotas of tokens
        int64_t data_bytes, data_free_bytes; // of the data folder and its disk; negative: not known
        int64_t certificate_expires_s;       // since 1970; 0: there is none
        int n_files;                         // that are read again when they change
        struct {
                const char *what;
                bool stale; // the file on disk could not be read
        } files[SERVER_MAX_FILES];
        const struct Metrics *metrics;      // metrics.h; NULL unless /metrics is asked for
        const struct ProcessFacts *process; // the same
} ServerFacts;

typedef struct ApiContext {
        Engine *engine;
        const ServerFacts *facts;
        struct ReplyCache *replies; // NULL: none are kept
        // of the request; NULL and 0: none
        RunContext *ctx;
        int64_t received_ns, deadline_ns;
} ApiContext;

// Everything but runs: uploads, info, lists, text, profiles, ops, metrics, probes. May read and
// write the disk, decode and hash: not for the loop thread, except the probes. Never fails:
// failures become the reply. Graphs that must be loaded first are acquired by the caller
// (NEEDS_GRAPH) and handed in.
void api_answer(const ApiContext *context, ApiCall *call, Graph *graph_or_null, GraphVersion *version_or_null,
                ApiReply *reply);
// A path that names no graph is that of the only one. STATUS_VALUE: there are several.
Status api_take_only(Engine *engine, ApiCall *call);
// The version that the path names, counted; the call has its number from then on.
Status api_find_version(Engine *engine, ApiCall *call, GraphVersion **out_version);
