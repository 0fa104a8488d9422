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

// Places of the names of "stage" and of the weights' "as" (parameters.def).
typedef enum TextStage {
        TEXT_AUTHORED,
        TEXT_ATEN,
        TEXT_OPTIMISED,
        TEXT_OF_PROGRAM,
        TEXT_STAGE_COUNT
} TextStage;
typedef enum WeightsAs { WEIGHTS_SAFETENSORS, WEIGHTS_NPZ, WEIGHTS_AS_COUNT } WeightsAs;

extern const char json_type[], text_type[];

// Status 200 and the content type; returns the body to be written.
Text *answer_begin(const Answer *answer, const char *content_type);

// ---- the server ----
Status get_root(const Answer *answer);
Status get_ops(const Answer *answer);
Status get_openapi(const Answer *answer);
Status get_metrics(const Answer *answer);
Status get_livez(const Answer *answer);
Status get_readyz(const Answer *answer);
// ---- graphs ----
Status put_graph(const Answer *answer);
Status get_list(const Answer *answer);
Status get_graph(const Answer *answer);
Status get_versions(const Answer *answer);
Status patch_graph(const Answer *answer);
Status delete_graph(const Answer *answer);
Status get_text(const Answer *answer);
Status get_example(const Answer *answer);
Status get_weights(const Answer *answer);
// ---- profiles ----
Status get_stats(const Answer *answer);
Status get_profiles(const Answer *answer);
Status get_profile(const Answer *answer);
