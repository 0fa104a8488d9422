// SPDX-License-Identifier: Apache-2.0
// Counts of one server, and GET /metrics: Prometheus text format, base units. A Metrics value
// belongs to one thread, the server's loop; nothing here allocates while counting.
#pragma once
#include "api/call.h"

enum { METRICS_MAX_GRAPHS = 100, METRICS_N_BOUNDS = 17, METRICS_MAX_COUNTS = 512, METRICS_MAX_ERRORS = 24 };
extern const double metrics_bounds[METRICS_N_BOUNDS]; // seconds, upper, ascending

typedef struct Histogram {
        uint64_t n[METRICS_N_BOUNDS + 1]; // per bucket, not cumulated; the last is +Inf
        double sum;
} Histogram;

// The counts of one name.
typedef struct MetricsGraph {
        char name[65];
        uint64_t n;        // runs that ended well
        Histogram seconds; // of their requests
        struct {
                int status;
                uint64_t n;
        } errors[METRICS_MAX_ERRORS]; // at least as many as errors.def has statuses
        uint32_t n_errors;
} MetricsGraph;

struct Metrics {
        struct {
                const Route *route; // the first one with this path
                int status;
                uint64_t n;
        } requests[METRICS_MAX_COUNTS];
        uint32_t n_requests;
        // by the first route with that path; the last is for requests without a route
        Histogram request_seconds[ROUTE_COUNT + 1];
        Histogram run_seconds;
        Histogram wait_seconds;
        // the names seen first; then all other names; then inline graphs (POST /v1/run)
        MetricsGraph graphs[METRICS_MAX_GRAPHS + 2];
        uint32_t n_graphs;
        uint64_t runs_cancelled;
        const Route *first_with_path[ROUTE_COUNT];
        bool knows_paths;
};
typedef struct Metrics Metrics;

// Facts of the operating system about this process; negative: unknown.
struct ProcessFacts {
        double cpu_seconds, start_seconds; // the latter since 1970
        int64_t resident_bytes, virtual_bytes, n_fds, max_fds, n_threads;
};
typedef struct ProcessFacts ProcessFacts;

// `route` may be NULL.
void metrics_count_request(Metrics *metrics, const Route *route, int status, double seconds);

typedef struct RunCount {
        const char *graph; // "": sent along with its inputs
        bool known;        // the graph exists: a name that a client made up gets no label
        int status;
        double seconds, run_seconds; // of the request, and of the run itself
} RunCount;
void metrics_count_run(Metrics *metrics, const RunCount *run);
// The time a request waited for a worker.
void metrics_count_wait(Metrics *metrics, double seconds);

// Quick enough for the loop thread: no disk, no lock held for long.
Status metrics_write(const ApiContext *context, Text *out);
