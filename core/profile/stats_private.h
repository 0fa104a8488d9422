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
        uint64_t number; // of the pool's, unlike all others
        uint64_t n_runs, last_use;
        RunLabels *labels; // counted: rows point into it; may be NULL
        size_t n_bytes;    // taken from the pool
        uint32_t n_nodes;
        NodeTiming *rows; // of the last run: node, kernel, shape
        Window run;
        Window *nodes;
} SignatureStats;

struct StatsPool {
        pthread_mutex_t mutex; // guards the list and makes room; taken before that of any statistics
        ProfileStats *first;
        _Atomic size_t bytes;
        _Atomic uint64_t clock, evictions;
        size_t max_bytes;
};

struct ProfileStats {
        StatsPool *pool; // borrowed
        ProfileStats *next, *previous;
        _Atomic uint64_t last_use;
        pthread_mutex_t mutex;
        RunSums sums;
        uint32_t n;
        SignatureStats *items[PROFILE_MAX_SIGNATURES];
};

TimeSummary window_summary(const Window *window, uint64_t n_runs);
// Fills out->groups.
Status stats_group(const SignatureStats *stats, ProfileGrouping grouping, SignatureSummary *out);
