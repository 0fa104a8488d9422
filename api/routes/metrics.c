// SPDX-License-Identifier: Apache-2.0
// Names are stable. Labels are route templates, statuses and names of graphs. Names are checked,
// and at most METRICS_MAX_GRAPHS of them get a label, so that no client can grow the page without
// end. Routes with the same path (GET, PUT, DELETE) share a series.
#include "api/routes/metrics.h"
#include "api/routes/answer.h"
#include "api/routes/oip_metrics.h"
#include "api/run/reply_cache.h"
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"

const double metrics_bounds[METRICS_N_BOUNDS] = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                  0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                                  1,      2.5,     5,      10,    30 };

// ---- counting ----
// Cached: it is asked for every request.
static const Route *first_with_path(Metrics *metrics, const Route *route)
{
        if (!metrics->knows_paths) {
                for (int i = 0; i < ROUTE_COUNT; i++)
                        metrics->first_with_path[i] = route_first_with_path(&routes[i]);
                metrics->knows_paths = true;
        }
        return route == NULL ? NULL : metrics->first_with_path[route - routes];
}

static void observe(Histogram *histogram, double seconds)
{
        int i = 0;
        while (i < METRICS_N_BOUNDS && seconds > metrics_bounds[i])
                i++;
        histogram->n[i]++;
        histogram->sum += seconds;
}

void metrics_count_request(Metrics *metrics, const Route *route, int status, double seconds)
{
        uint32_t i = 0;
        route = first_with_path(metrics, route);
        observe(&metrics->request_seconds[route == NULL ? ROUTE_COUNT : route - routes], seconds);
        while (i < metrics->n_requests &&
               (metrics->requests[i].route != route || metrics->requests[i].status != status))
                i++;
        if (i == METRICS_MAX_COUNTS)
                return;
        if (i == metrics->n_requests) {
                metrics->requests[i].route = route;
                metrics->requests[i].status = status;
                metrics->n_requests++;
        }
        metrics->requests[i].n++;
}

// The row of a name; it is made if there is room among the first `room` rows. NULL: there is none.
static MetricsGraph *graph_named(Metrics *metrics, const char *name, bool may_make, uint32_t room)
{
        uint32_t i = 0;
        while (i < metrics->n_graphs && strcmp(metrics->graphs[i].name, name) != 0)
                i++;
        if (i >= room || (i == metrics->n_graphs && !may_make))
                return NULL;
        if (i == metrics->n_graphs) {
                memcpy(metrics->graphs[i].name, name, strlen(name) + 1);
                metrics->n_graphs++;
        }
        return &metrics->graphs[i];
}

static void count_error(MetricsGraph *graph, int status)
{
        uint32_t i = 0;
        while (i < graph->n_errors && graph->errors[i].status != status)
                i++;
        if (i == METRICS_MAX_ERRORS)
                return;
        if (i == graph->n_errors)
                graph->errors[graph->n_errors++].status = status;
        graph->errors[i].n++;
}

void metrics_count_run(Metrics *metrics, const RunCount *run)
{
        // the last two are not names: all others, and inline graphs
        enum { ALL = METRICS_MAX_GRAPHS + 2 };
        const char *name = run->graph[0] == '\0' ? "_inline" : run->graph;
        MetricsGraph *graph =
                graph_named(metrics, name, run->known, run->graph[0] == '\0' ? ALL : METRICS_MAX_GRAPHS);
        if (graph == NULL)
                graph = graph_named(metrics, "_other", true, ALL);
        if (run->status != 200) {
                count_error(graph, run->status);
                return;
        }
        graph->n++;
        observe(&graph->seconds, run->seconds);
        observe(&metrics->run_seconds, run->run_seconds);
}

void metrics_count_wait(Metrics *metrics, double seconds)
{
        observe(&metrics->wait_seconds, seconds);
}

// ---- printing ----
static void family(Text *out, const char *name, const char *type, const char *help)
{
        text_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(Text *out, const char *name, const char *help, double value)
{
        family(out, name, "gauge", help);
        text_addf(out, "%s %.17g\n", name, value);
}

static void counter(Text *out, const char *name, const char *help, uint64_t value)
{
        family(out, name, "counter", help);
        text_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

// A label's value: backslash, quote and newline are escaped, nothing else is.
static void add_label(Text *out, const char *separator, const char *name, const char *value)
{
        text_addf(out, "%s%s=\"", separator, name);
        for (; *value != '\0'; value++) {
                if (*value == '\\' || *value == '"')
                        text_add_char(out, '\\');
                if (*value == '\n')
                        text_add(out, "\\n");
                else
                        text_add_char(out, *value);
        }
        text_add_char(out, '"');
}

static uint64_t total_of(const Histogram *histogram)
{
        uint64_t total = 0;
        for (int i = 0; i <= METRICS_N_BOUNDS; i++)
                total += histogram->n[i];
        return total;
}

typedef struct Label {
        const char *name, *value;
} Label;

static void add_start(Text *out, const char *name, const char *suffix, const Label *label)
{
        text_addf(out, "%s%s", name, suffix);
        if (label != NULL)
                add_label(out, "{", label->name, label->value);
}

static void add_bucket(Text *out, const char *name, const Label *label, const char *bound, uint64_t n)
{
        add_start(out, name, "_bucket", label);
        text_addf(out, "%sle=\"%s\"} %llu\n", label == NULL ? "{" : ",", bound, (unsigned long long)n);
}

// Every `step`-th bound is shown; the counts between go into the next bucket.
static void add_histogram(Text *out, const char *name, const Label *label, const Histogram *histogram,
                          int step)
{
        const char *end = label == NULL ? "" : "}";
        uint64_t n = 0;
        for (int i = 0; i < METRICS_N_BOUNDS; i++) {
                char bound[32];
                n += histogram->n[i];
                snprintf(bound, sizeof(bound), "%g", metrics_bounds[i]);
                if ((METRICS_N_BOUNDS - 1 - i) % step == 0)
                        add_bucket(out, name, label, bound, n);
        }
        add_bucket(out, name, label, "+Inf", total_of(histogram));
        add_start(out, name, "_sum", label);
        text_addf(out, "%s %.9g\n", end, histogram->sum);
        add_start(out, name, "_count", label);
        text_addf(out, "%s %llu\n", end, (unsigned long long)total_of(histogram));
}

static void add_requests(const Metrics *metrics, Text *out)
{
        family(out, "fxserve_requests_total", "counter",
               "Requests answered, by route and status; 499: the client had gone.");
        for (uint32_t i = 0; i < metrics->n_requests; i++) {
                add_label(out, "fxserve_requests_total{", "route",
                          route_template(metrics->requests[i].route));
                text_addf(out, ",code=\"%d\"} %llu\n", metrics->requests[i].status,
                          (unsigned long long)metrics->requests[i].n);
        }
        family(out, "fxserve_request_duration_seconds", "histogram",
               "From the request line to the reply handed over, by route.");
        for (int i = 0; i <= ROUTE_COUNT; i++)
                if (total_of(&metrics->request_seconds[i]) > 0)
                        add_histogram(
                                out, "fxserve_request_duration_seconds",
                                &(Label){ "route", route_template(i == ROUTE_COUNT ? NULL : &routes[i]) },
                                &metrics->request_seconds[i], 1);
        family(out, "fxserve_queue_wait_seconds", "histogram",
               "What requests waited until a worker took them.");
        add_histogram(out, "fxserve_queue_wait_seconds", NULL, &metrics->wait_seconds, 1);
}

// A hundred graphs make long pages, so only every second bound is shown.
static void add_graphs(const Metrics *metrics, Text *out)
{
        family(out, "fxserve_graph_request_duration_seconds", "histogram",
               "From the request line of a run to its reply handed over, by graph; runs that ended well.");
        for (uint32_t i = 0; i < metrics->n_graphs; i++)
                if (metrics->graphs[i].n > 0)
                        add_histogram(out, "fxserve_graph_request_duration_seconds",
                                      &(Label){ "graph", metrics->graphs[i].name },
                                      &metrics->graphs[i].seconds, 2);
        family(out, "fxserve_run_errors_total", "counter",
               "Runs that did not end well, by graph and status; names that there are not are _other.");
        for (uint32_t i = 0; i < metrics->n_graphs; i++) {
                for (uint32_t k = 0; k < metrics->graphs[i].n_errors; k++) {
                        add_label(out, "fxserve_run_errors_total{", "graph", metrics->graphs[i].name);
                        text_addf(out, ",code=\"%d\"} %llu\n", metrics->graphs[i].errors[k].status,
                                  (unsigned long long)metrics->graphs[i].errors[k].n);
                }
        }
}

static void add_runs(const Metrics *metrics, Text *out)
{
        family(out, "fxserve_runs_total", "counter",
               "Runs that ended well, by graph; the names seen first, all others are _other, graphs sent "
               "along are _inline.");
        for (uint32_t i = 0; i < metrics->n_graphs; i++) {
                add_label(out, "fxserve_runs_total{", "graph", metrics->graphs[i].name);
                text_addf(out, "} %llu\n", (unsigned long long)metrics->graphs[i].n);
        }
        add_graphs(metrics, out);
        family(out, "fxserve_run_duration_seconds", "histogram",
               "Time of the run itself, without waiting, reading and writing.");
        add_histogram(out, "fxserve_run_duration_seconds", NULL, &metrics->run_seconds, 1);
        counter(out, "fxserve_runs_cancelled_total",
                "Runs stopped before their end: the client had gone, or the deadline had passed.",
                metrics->runs_cancelled);
}

static void add_engine(const EngineStats *stats, Text *out)
{
        gauge(out, "fxserve_graphs", "Named graphs.", stats->n_graphs);
        gauge(out, "fxserve_graph_versions", "Versions of all graphs.", stats->n_versions);
        gauge(out, "fxserve_decoded_graph_bytes", "Memory of decoded graphs and their weights.",
              (double)stats->graphs.bytes);
        counter(out, "fxserve_graph_loads_total", "Stored graphs decoded on first use.",
                stats->graphs.builds);
        counter(out, "fxserve_graph_evictions_total", "Decoded graphs dropped for space.",
                stats->graphs.evictions);
        counter(out, "fxserve_compiles_total", "Programs compiled.", stats->compiles);
        counter(out, "fxserve_tolerance_searches_total", "Searches for precisions that keep a tolerance.",
                stats->searches);
        gauge(out, "fxserve_programs", "Compiled programs kept.", stats->programs.n_entries);
        gauge(out, "fxserve_program_bytes", "Memory of compiled programs.", (double)stats->programs.bytes);
        counter(out, "fxserve_program_evictions_total", "Compiled programs dropped for space.",
                stats->programs.evictions);
        counter(out, "fxserve_derived_graphs_total", "Graphs that the rules of runs made.", stats->derived);
        counter(out, "fxserve_derived_graph_hits_total", "Runs with rules whose graph was there already.",
                stats->derived_found);
        counter(out, "fxserve_batches_total", "Times that several runs were run as one.", stats->batches);
        counter(out, "fxserve_batched_runs_total", "Runs that were run as one with others.",
                stats->batched_runs);
        gauge(out, "fxserve_sessions", "Open sessions.", stats->sessions.n);
        gauge(out, "fxserve_session_bytes", "State that sessions hold.", (double)stats->sessions.bytes);
        counter(out, "fxserve_sessions_opened_total", "Sessions that were opened.", stats->sessions.opened);
        counter(out, "fxserve_sessions_expired_total", "Sessions that ended because nobody used them.",
                stats->sessions.expired);
        gauge(out, "fxserve_kept_runs", "Runs whose values are kept.", stats->kept.n_runs);
        gauge(out, "fxserve_kept_bytes", "Memory of kept values.", (double)stats->kept.bytes);
        counter(out, "fxserve_kept_evictions_total", "Runs whose kept values left for want of room.",
                stats->kept.evictions);
        gauge(out, "fxserve_profile_bytes", "Memory of run profiles and statistics.",
              (double)stats->profiles.bytes);
        counter(out, "fxserve_profile_evictions_total", "Run profiles and statistics dropped for space.",
                stats->profiles.evictions);
}

static void add_server(const ApiContext *context, Text *out)
{
        const ServerFacts *facts = context->facts;
        gauge(out, "fxserve_connections", "Open connections.", (double)facts->n_connections);
        gauge(out, "fxserve_body_bytes", "Request bodies being held.", (double)facts->body_bytes);
        gauge(out, "fxserve_memory_bytes", "Memory of the process, without mapped files.",
              (double)facts->memory_bytes);
        gauge(out, "fxserve_memory_limit_bytes", "What it may be (--max-memory); 0: no limit.",
              (double)limits.max_memory);
        gauge(out, "fxserve_memory_rung",
              "What is given up near the limit: 1 caches, 2 uploads as well, 3 runs as well.",
              facts->memory_rung);
        gauge(out, "fxserve_queue_depth", "Requests waiting for a worker.", (double)facts->n_queued);
        gauge(out, "fxserve_running", "Requests on a worker.", (double)facts->n_running);
        gauge(out, "fxserve_workers", "Threads that run graphs.", facts->n_workers);
        gauge(out, "fxserve_workers_stalled", "Of these, without a sign of life for a second.",
              facts->n_stalled);
        gauge(out, "fxserve_ready", "1 while new requests are taken, as /readyz says.",
              api_unready(context) == NULL);
        counter(out, "fxserve_log_dropped_total", "Log lines lost because their reader was too slow.",
                facts->n_log_dropped);
        counter(out, "fxserve_traces_sent_total", "Requests whose spans a collector has taken.",
                facts->n_traces_sent);
        counter(out, "fxserve_traces_dropped_total",
                "Traced requests whose spans were lost: no room, or a collector that did not take them.",
                facts->n_traces_dropped);
        gauge(out, "fxserve_uptime_seconds", "Time since start.", (double)facts->uptime_ns / 1e9);
}

static void add_disk(const ServerFacts *facts, Text *out)
{
        family(out, "fxserve_data_bytes", "gauge",
               "Disk that the data folder takes, as of the scrape before.");
        if (facts->data_bytes >= 0)
                text_addf(out, "fxserve_data_bytes %lld\n", (long long)facts->data_bytes);
        family(out, "fxserve_data_free_bytes", "gauge", "What is left on that disk.");
        if (facts->data_free_bytes >= 0)
                text_addf(out, "fxserve_data_free_bytes %lld\n", (long long)facts->data_free_bytes);
}

static void add_files(const ServerFacts *facts, Text *out)
{
        family(out, "fxserve_file_stale", "gauge",
               "1 while a file cannot be read again and what was read before stays: tokens, certificate.");
        for (int i = 0; i < facts->n_files; i++) {
                add_label(out, "fxserve_file_stale{", "file", facts->files[i].what);
                text_addf(out, "} %d\n", facts->files[i].stale);
        }
        family(out, "fxserve_quota_refusals_total", "counter",
               "Requests that a quota of their token refused.");
        for (int kind = 0; kind < QUOTA_KINDS; kind++)
                text_addf(out, "fxserve_quota_refusals_total{quota=\"%s\"} %llu\n", quota_names[kind],
                          (unsigned long long)facts->n_refused[kind]);
        family(out, "fxserve_tls_certificate_expiry_timestamp_seconds", "gauge",
               "When the certificate expires, in seconds since 1970.");
        if (facts->certificate_expires_s != 0)
                text_addf(out, "fxserve_tls_certificate_expiry_timestamp_seconds %lld\n",
                          (long long)facts->certificate_expires_s);
}

static void add_process(const ProcessFacts *process, Text *out)
{
        family(out, "process_cpu_seconds_total", "counter", "User and system time spent.");
        text_addf(out, "process_cpu_seconds_total %.9g\n", process->cpu_seconds);
        gauge(out, "process_start_time_seconds", "Start, in seconds since 1970.", process->start_seconds);
        if (process->resident_bytes >= 0)
                gauge(out, "process_resident_memory_bytes", "Resident memory.",
                      (double)process->resident_bytes);
        if (process->virtual_bytes >= 0)
                gauge(out, "process_virtual_memory_bytes", "Virtual memory.", (double)process->virtual_bytes);
        if (process->n_fds >= 0)
                gauge(out, "process_open_fds", "Open file descriptors.", (double)process->n_fds);
        if (process->max_fds >= 0)
                gauge(out, "process_max_fds", "Most file descriptors allowed.", (double)process->max_fds);
        if (process->n_threads >= 0)
                gauge(out, "process_threads", "Threads.", (double)process->n_threads);
}

static void add_replies(ReplyCache *replies, Text *out)
{
        RegistryStats stats = { .hits = 0 };
        if (replies != NULL)
                stats = reply_cache_stats(replies);
        gauge(out, "fxserve_reply_cache_bytes", "Replies kept for equal runs (--reply-cache).",
              (double)stats.bytes);
        counter(out, "fxserve_reply_cache_hits_total", "Runs whose reply was kept.", stats.hits);
        counter(out, "fxserve_reply_cache_misses_total", "Runs whose reply was looked for and not kept.",
                stats.misses);
        counter(out, "fxserve_reply_cache_evictions_total", "Kept replies dropped for space.",
                stats.evictions);
}

Status metrics_write(const ApiContext *context, Text *out)
{
        const ServerFacts *facts = context->facts;
        EngineStats stats = engine_stats(context->engine);
        family(out, "fxserve_build_info", "gauge", "Version, as labels.");
        add_label(out, "fxserve_build_info{", "version", facts->version);
        add_label(out, ",", "revision", facts->revision);
        add_label(out, ",", "torch", facts->torch_level);
        add_label(out, ",", "cpu", facts->cpu_level);
        text_add(out, "} 1\n");
        add_replies(context->replies, out);
        if (facts->metrics != NULL) {
                add_requests(facts->metrics, out);
                add_runs(facts->metrics, out);
        }
        add_engine(&stats, out);
        TRY(oip_metrics_write(context->engine, out));
        add_server(context, out);
        add_disk(facts, out);
        add_files(facts, out);
        if (facts->process != NULL)
                add_process(facts->process, out);
        return text_status(out);
}
