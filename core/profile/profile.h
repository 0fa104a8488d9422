// SPDX-License-Identifier: Apache-2.0
// Profiles: what one run did (RunProfile, immutable once recorded, refcounted), a bounded ring of the last ones, and per-graph statistics
// over the last PROFILE_WINDOW runs of each input signature, never mixed.
#pragma once
#include "core/eval/walk.h"
#include "core/program/program.h"

enum { PROFILE_ID_MAX = 64, PROFILE_WINDOW = 128, PROFILE_MAX_SIGNATURES = 16, PROFILE_SIGNATURE_MAX = 256 };

// The caller's trace (W3C Trace Context), and the span this run is within it; "": the caller has none.
typedef struct TraceIds {
        char trace_id[33], parent_id[17], span_id[17];
} TraceIds;

typedef struct RunProfile {
        RefCount ref;
        char id[PROFILE_ID_MAX + 1]; // X-Request-Id
        TraceIds trace;
        char graph_name[65]; // "" for POST /v1/run
        int64_t version;
        char signature[PROFILE_SIGNATURE_MAX]; // "x: float32[1, 10]"
        int64_t wall_ms;                       // when it ended
        int64_t decode_ns, queue_ns, compile_ns, run_ns, encode_ns, total_ns;
        Graph *graph; // counted; rows point into it
        NodeTiming *rows;
        uint32_t n_rows;
        uint32_t n_rows_capacity;
        Program *program;     // counted; NULL: eager. Rows point into it
        int64_t run_start_ns; // rows' start_ns minus this = start within the run
        size_t arena_bytes, peak_live_bytes, weights_bytes;
} RunProfile;

Status run_profile_new(Graph *graph, uint32_t n_rows_capacity, RunProfile **out_profile);
// Makes room for at least `n_rows`; earlier rows are lost.
Status run_profile_reserve(RunProfile *profile, uint32_t n_rows);
RunProfile *run_profile_ref(RunProfile *profile);
RunProfile *run_profile_unref(RunProfile *profile);
DEFINE_CLEANUP(RunProfile, run_profile_unref)

// ---- ring of recent runs; any thread ----
typedef struct ProfileRing ProfileRing;
Status profile_ring_open(uint32_t capacity, ProfileRing **out_ring);
ProfileRing *profile_ring_close(ProfileRing *ring);
// Adds (counts) a finished profile; one with the same id is replaced.
void profile_ring_add(ProfileRing *ring, RunProfile *profile);
RunProfile *profile_ring_find(ProfileRing *ring, const char *id); // counted, or NULL
// Up to `capacity` counted profiles: newest first, or slowest first.
uint32_t profile_ring_list(ProfileRing *ring, bool slowest, uint32_t capacity, RunProfile **out);

// ---- statistics of one graph version; any thread ----
typedef struct ProfileStats ProfileStats;
typedef struct TimeSummary {
        uint64_t count;
        double mean_us, p50_us, p90_us, p99_us, max_us;
} TimeSummary; // count: all runs; the rest: the window
Status profile_stats_new(ProfileStats **out_stats);
ProfileStats *profile_stats_free(ProfileStats *stats);
void profile_stats_add(ProfileStats *stats, const RunProfile *profile);
typedef struct NodeSummary {
        const Node *node;
        const char *kernel;
        TimeSummary us;
        double share;
        int64_t bytes, flops;
        bool has_tensor;
        TensorMeta meta;
        const Node *const *nodes; // of a program's row; NULL: `node` alone
        uint32_t n_nodes;
        const char *why;
} NodeSummary;
// What rows may be summed up by. A module is the path of the module that a node belongs to ("" is the root).
typedef enum ProfileBy {
        PROFILE_BY_INSTRUCTION,
        PROFILE_BY_NODE,
        PROFILE_BY_TARGET,
        PROFILE_BY_OP,
        PROFILE_BY_MODULE,
        PROFILE_BY_KERNEL,
        PROFILE_BY_COUNT
} ProfileBy;
extern const char *const profile_by_names[PROFILE_BY_COUNT];
typedef struct GroupSummary {
        const char *key; // lives as long as the summary's graph and program
        uint32_t n_rows;
        TimeSummary us;
        double share;
        int64_t bytes, flops;
        bool estimated; // parts of rows that compute several nodes at once
} GroupSummary;
typedef struct SignatureSummary {
        char signature[PROFILE_SIGNATURE_MAX];
        TimeSummary run;
        uint32_t n_nodes;
        NodeSummary *nodes;
        uint32_t n_groups;    // 0 by instruction
        GroupSummary *groups; // in the order of their first rows
        double other_us;
        Graph *graph;
        Program *program;
} SignatureSummary;
// A snapshot; caller frees with profile_summary_free.
Status profile_stats_read(ProfileStats *stats, ProfileBy by, SignatureSummary **out_signatures, uint32_t *out_n);
void profile_summary_free(SignatureSummary *signatures, uint32_t n);
