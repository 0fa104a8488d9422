// SPDX-License-Identifier: Apache-2.0
// Shared by the files that answer routes (handlers.c, graph_routes.c, profile_routes.c). A handler
// fills the reply or fails.
#pragma once
#include "api/call.h"

typedef struct Answer {
        const ApiContext *context;
        ApiCall *call;
        Graph *graph;          // NULL unless the route needs it
        GraphVersion *version; // NULL unless the route needs it
        ApiReply *reply;
} Answer;

enum { LIST_MAX = 1000, LIST_DEFAULT = 100 };
extern const char json_type[], text_type[];

// Status 200 and the content type; returns the body to be written.
Text *answer_begin(const Answer *answer, const char *content_type);

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
