// SPDX-License-Identifier: Apache-2.0
// Shared by the files that answer routes (handlers.c, graph_routes.c, profile_routes.c). A handler
// fills the reply or fails.
#pragma once
#include "api/call.h"

struct Answer {
        const ApiContext *context;
        ApiCall *call;
        Graph *graph;          // NULL unless the route needs it
        GraphVersion *version; // NULL unless the route needs it
        ApiReply *reply;
};

enum { LIST_MAX = 1000, LIST_DEFAULT = 100 };

// Indices of the names of "stage" and of the weights' "as" (parameters.def).
typedef enum TextStage {
        TEXT_AUTHORED,
        TEXT_ATEN,
        TEXT_OPTIMISED,
        TEXT_OF_PROGRAM,
        TEXT_STAGE_COUNT
} TextStage;
typedef enum WeightsAs { WEIGHTS_SAFETENSORS, WEIGHTS_NPZ, WEIGHTS_AS_COUNT } WeightsAs;

typedef enum ReportForm { REPORT_JSON, REPORT_TEXT, REPORT_FORM_COUNT } ReportForm;
extern const char *const report_form_names[REPORT_FORM_COUNT];

extern const char json_type[], text_type[];

// Status 200 and the content type; returns the body to be written.
Text *answer_begin(const Answer *answer, const char *content_type);
// For replies that depend only on the stored graph: sets its tag, and checks whether the client
// already has it. Then the reply is complete (304).
Status answer_unchanged(const Answer *answer, bool *out_unchanged);

// Why the server should get no new requests, as /readyz says; NULL: it should.
const char *api_unready(const ApiContext *context);

// The request's deadline and cancellation, for work on a graph. Valid as long as the answer's
// context.
void answer_bounds(const Answer *answer, RunContext *out);

// After an upload: the version's info, 201 if it is new.
Status answer_put(const Answer *answer, GraphVersion *version, const Graph *graph, bool created);
// The request's If-Match and If-None-Match and its token's quotas, as a condition of a put
// (PutCondition; a NamedAnswer).
typedef struct NamedAnswer {
        const Answer *answer;
        const char *name;
        size_t n_bytes;              // that are to be stored
        const StoreVersion *content; // NULL: not known yet
} NamedAnswer;
Status answer_check_named(void *context);
bool answer_is_conditional(const Answer *answer);
// The body of an upload is a variant (recognise_variant).
Status put_variant(const Answer *answer);

// The handlers that routes.def names.
#define ROUTE(id, method, path, words, kind, scope, body, needs, statuses, reply, handler, parameters)       \
        Status handler(const Answer *answer);
#define VERSIONED_ROUTE(id, of_version, method, path, part, words, version_words, ...)                       \
        ROUTE(id, method, path, words, __VA_ARGS__)
#include "api/routes.def"
#undef ROUTE
#undef VERSIONED_ROUTE
