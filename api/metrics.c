// SPDX-License-Identifier: Apache-2.0
// Metrics in base units. Names are stable; labels are route templates, never client text.
#include "api/metrics.h"

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

Status metrics_write(const ApiContext *context, Text *out)
{
        const ServerFacts *facts = context->facts;
        EngineStats stats = engine_stats(context->engine);
        family(out, "fxserve_build_info", "gauge", "Version, as labels.");
        text_addf(out, "fxserve_build_info{version=\"%s\",revision=\"%s\",torch=\"%s\"} 1\n", facts->version, facts->revision,
                  facts->torch_level);
        family(out, "fxserve_requests_total", "counter", "Requests answered, by route and status.");
        for (uint32_t i = 0; i < facts->n_counts; i++)
                text_addf(out, "fxserve_requests_total{route=\"%s\",code=\"%d\"} %llu\n", route_template(facts->counts[i].route),
                          facts->counts[i].status, (unsigned long long)facts->counts[i].n);
        family(out, "fxserve_request_seconds_total", "counter", "Time from the first byte of a request to its reply, summed.");
        for (uint32_t i = 0; i < facts->n_counts; i++)
                text_addf(out, "fxserve_request_seconds_total{route=\"%s\",code=\"%d\"} %.9g\n", route_template(facts->counts[i].route),
                          facts->counts[i].status, facts->counts[i].seconds);
        counter(out, "fxserve_runs_total", "Graph runs that ended well.", stats.runs);
        gauge(out, "fxserve_graphs", "Named graphs.", stats.n_graphs);
        gauge(out, "fxserve_graph_versions", "Versions of all graphs.", stats.n_versions);
        gauge(out, "fxserve_decoded_graph_bytes", "Memory of decoded graphs and their weights.", (double)stats.graphs.bytes);
        counter(out, "fxserve_graph_loads_total", "Stored graphs decoded on first use.", stats.graphs.builds);
        counter(out, "fxserve_graph_evictions_total", "Decoded graphs dropped for space.", stats.graphs.evictions);
        counter(out, "fxserve_compiles_total", "Programs compiled.", stats.compiles);
        gauge(out, "fxserve_program_bytes", "Memory of compiled programs.", (double)stats.programs.bytes);
        gauge(out, "fxserve_connections", "Open connections.", (double)facts->n_connections);
        gauge(out, "fxserve_queue_depth", "Requests waiting for a worker.", (double)facts->n_queued);
        gauge(out, "fxserve_running", "Requests on a worker.", (double)facts->n_running);
        gauge(out, "fxserve_uptime_seconds", "Time since start.", (double)facts->uptime_ns / 1e9);
        return text_status(out);
}
