// SPDX-License-Identifier: Apache-2.0
// Shared by stats.c and groups.c.
#pragma once
#include <pthread.h>
#include "core/profile/profile.h"

typedef struct Window {
        float us[PROFILE_WINDOW];
} Window;

typedef struct SignatureStats {
        char signature[PROFILE_SIGNATURE_MAX];
        uint64_t n_runs, last_use;
        Graph *graph;     // counted: rows point into it
        Program *program; // counted: rows point into it; NULL: eager runs
        uint32_t n_nodes;
        NodeTiming *rows; // of the last run: node, kernel, shape
        Window run;
        Window *nodes;
} SignatureStats;

struct ProfileStats {
        pthread_mutex_t mutex;
        uint64_t clock;
        uint32_t n;
        SignatureStats *items[PROFILE_MAX_SIGNATURES];
};

TimeSummary window_summary(const Window *window, uint64_t n_runs);
// Fills out->groups. Under the statistics' mutex.
Status stats_group(const SignatureStats *stats, ProfileBy by, SignatureSummary *out);
