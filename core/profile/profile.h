// SPDX-License-Identifier: Apache-2.0
// Profiles: what one run did (RunProfile, immutable once recorded, refcounted), a bounded ring of
// the last ones, and per-graph statistics over the last PROFILE_WINDOW runs of each input
// signature, never mixed.
#pragma once
#include "core/eval/walk.h"

typedef struct Program Program; // core/program/program.h

enum { PROFILE_ID_MAX = 64, PROFILE_WINDOW = 128, PROFILE_MAX_SIGNATURES = 16, PROFILE_SIGNATURE_MAX = 256 };

// The caller's trace (W3C Trace Context), and the span this run is within it; "": the caller has
// none.
typedef struct TraceIds {
        char trace_id[33], parent_id[17], span_id[17]; // parent_id "": the trace begins here
        bool sampled;                                  // its spans are to be sent
} TraceIds;

// What the rows of runs print, copied: profiles and statistics keep neither graphs nor programs
// alive. All runs of a program share one, and so do a graph's runs without a program. Immutable.
typedef struct RowLabel {
        const Node *const *nodes; // NULL: none
        uint32_t n_nodes;
        const char *kernel, *why;
} RowLabel;
typedef struct InputLabel {
        bool is_tensor;
        TensorMeta meta;
} InputLabel;
typedef struct RunLabels {
        RefCount ref;
        Arena arena;
        char program_id[65]; // "": eager
        Node *nodes;         // by index: op, name, target and path of the innermost module call only
        uint32_t n_nodes;
        struct Choice *choice; // of the program's precisions; counted, NULL: none
        RowLabel *rows;        // of a program but for its eager tail, in order
        uint32_t n_rows;
        InputLabel *inputs; // that a program was made for, by placeholder
        uint32_t n_inputs;
        uint32_t n_in_ring; // profiles; guarded by the ring
} RunLabels;
// program NULL: eager
Status run_labels_new(const Graph *graph, const Program *program, RunLabels **out_labels);
RunLabels *run_labels_ref(RunLabels *labels);
RunLabels *run_labels_unref(RunLabels *labels); // NULL-safe, returns NULL
DEFINE_CLEANUP(RunLabels, run_labels_unref)
size_t run_labels_bytes(const RunLabels *labels); // NULL: 0
// Of the program that ran; NULL: none did.
static inline const char *run_program_id(const RunLabels *labels)
{
        return labels == NULL || labels->program_id[0] == '\0' ? NULL : labels->program_id;
}

typedef struct RunProfile {
        RefCount ref;
        char id[PROFILE_ID_MAX + 1]; // X-Request-Id
        TraceIds trace;
        char graph_name[65]; // "" for POST /v1/run
        int64_t version;
        char content_id[65]; // of that version: a name and a number come again after a delete
        char signature[PROFILE_SIGNATURE_MAX]; // "x: float32[1, 10]"
        int64_t wall_ms;                       // when it ended
        int64_t decode_ns, queue_ns, compile_ns, run_ns, encode_ns, total_ns;
        Graph *graph; // counted; rows point into it. NULL once detached
        NodeTiming *rows;
        uint32_t n_rows;
        uint32_t n_rows_capacity;
        Program *program; // counted; NULL: eager, or detached. Rows point into it
        // counted; of the program from the run on, else NULL until detached. Rows point into it
        // then
        RunLabels *labels;
        int64_t run_start_ns; // rows' start_ns minus this = start within the run
        size_t arena_bytes, peak_live_bytes, weights_bytes;
        uint32_t batch; // how many runs were one with it, whose times are shares; 0: it ran alone
} RunProfile;

Status run_profile_new(Graph *graph, uint32_t n_rows_capacity, RunProfile **out_profile);
// Makes room for at least `n_rows`; earlier rows are lost.
Status run_profile_reserve(RunProfile *profile, uint32_t n_rows);
// Before it is shared: lets go of graph and program. False: no memory for it.
bool run_profile_detach(RunProfile *profile);
RunProfile *run_profile_ref(RunProfile *profile);
RunProfile *run_profile_unref(RunProfile *profile);
DEFINE_CLEANUP(RunProfile, run_profile_unref)

// ---- ring of recent runs; any thread ----
typedef struct ProfileRing ProfileRing;
typedef struct ProfileUse {
        size_t bytes;
        uint64_t evictions; // for want of bytes
} ProfileUse;
Status profile_ring_open(uint32_t capacity, size_t max_bytes, ProfileRing **out_ring);
ProfileRing *profile_ring_close(ProfileRing *ring);
ProfileUse profile_ring_use(ProfileRing *ring);
void profile_ring_clear(ProfileRing *ring);
// Adds (counts) a finished profile; one with the same id leaves, and the oldest ones as long as
// bytes are short.
void profile_ring_add(ProfileRing *ring, RunProfile *profile);
RunProfile *profile_ring_find(ProfileRing *ring, const char *id); // counted, or NULL
// Up to `capacity` counted profiles: newest first, or slowest first.
uint32_t profile_ring_list(ProfileRing *ring, bool slowest, uint32_t capacity, RunProfile **out);

// ---- statistics of one graph version; any thread ----
// What all versions' statistics may take
// together. Where that is too little, the version that has gone longest without a run loses its
// own.
typedef struct StatsPool StatsPool;
Status stats_pool_open(size_t max_bytes, StatsPool **out_pool);
StatsPool *stats_pool_close(StatsPool *pool); // after the last statistics
ProfileUse stats_pool_use(StatsPool *pool);
// All signatures of all versions; their sums stay.
void stats_pool_clear(StatsPool *pool);
typedef struct ProfileStats ProfileStats;
typedef struct TimeSummary {
        uint64_t count;
        double mean_us, p50_us, p90_us, p99_us, max_us;
} TimeSummary; // count: all runs; the rest: the window
Status profile_stats_new(StatsPool *pool, ProfileStats **out_stats);
ProfileStats *profile_stats_free(ProfileStats *stats);
void profile_stats_add(ProfileStats *stats, const RunProfile *profile);
// A run whose reply was there already, and how long it took.
void profile_stats_add_kept(ProfileStats *stats, int64_t took_ns);
// A run that failed, and how long it took.
void profile_stats_add_failure(ProfileStats *stats, int64_t took_ns);
// Over all runs of the version since the start of the process.
typedef struct RunSums {
        uint64_t n_runs, n_failures, n_kept; // n_kept: of replies that were there already
        int64_t kept_ns;
        double n_executions;         // of runs that succeeded; each of n runs in a batch is 1 / n of one
        int64_t total_ns, failed_ns; // of runs that succeeded, and of the others
        int64_t queue_ns, decode_ns, run_ns, encode_ns;
        int64_t last_ms; // when the last one ended, in ms since 1970; 0: there was none
} RunSums;
RunSums profile_stats_sums(ProfileStats *stats);
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
// What rows may be summed up by. A module is the path of the module that a node belongs to ("" is
// the root), or its first parts: with depth 2, "layer1.0.conv1" counts for "layer1.0".
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
        const char *key; // lives as long as the summary's labels, or is `own_key`
        char *own_key;
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
        RunLabels *labels; // may be NULL
} SignatureSummary;
typedef struct ProfileGrouping {
        ProfileBy by;
        uint32_t depth; // of modules' paths; 0: whole
} ProfileGrouping;
// A snapshot; caller frees with profile_summary_free.
Status profile_stats_read(ProfileStats *stats, ProfileGrouping grouping, SignatureSummary **out_signatures,
                          uint32_t *out_n);
// Rows and labels of at most `most` signatures, the one that ran last first, without times and
// shares.
Status profile_stats_shapes(ProfileStats *stats, uint32_t most, SignatureSummary **out_signatures,
                            uint32_t *out_n);
void profile_summary_free(SignatureSummary *signatures, uint32_t n);
