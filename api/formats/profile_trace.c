// SPDX-License-Identifier: Apache-2.0
// Profiles for other tools. Chrome's trace event format: complete events (ph X) with ts and dur in
// microseconds, tracks named by metadata events. Folded stacks: frames joined by ';', a blank, a
// whole number (nanoseconds). Steps are kept as durations and shown in the order they happen:
// queue, compile (the graph or program made ready), decode, run, encode.
#include <stdio.h>
#include <string.h>
#include "api/formats/profile_parts.h"

const char *const profile_form_names[PROFILE_FORM_COUNT] = { "json", "text", "chrome", "folded", "html" };

enum { STEP_TRACK = 1, NODE_TRACK = 2 };

static double us(int64_t ns)
{
        return (double)ns / 1000.0;
}

// ---- chrome ----
static void begin_trace(Text *out)
{
        text_add(out, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
}

static void add_name(const char *what, uint32_t process, int track, const char *name, Text *out)
{
        text_addf(out, "%s{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %u, \"tid\": %d, \"args\": {\"name\": ",
                  out->data[out->n - 1] == '[' ? "\n" : ",\n", what, process, track);
        text_add_json(out, name);
        text_add(out, "}}");
}

typedef struct TraceEvent {
        const char *name, *category;
        uint32_t process;
        int track;
        double ts, duration; // microseconds
} TraceEvent;

// The event's object is left open for its args.
static void add_event(const TraceEvent *event, Text *out)
{
        text_add(out, ",\n{\"ph\": \"X\", \"name\": ");
        text_add_json(out, event->name);
        text_addf(out, ", \"cat\": \"%s\", \"pid\": %u, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f",
                  event->category, event->process, event->track, event->ts, event->duration);
}

// One row: {"nodes": ...} as in the JSON form becomes the event's args. `meta`: of the tensor that
// the row makes, or NULL.
static void add_row(RowNodes nodes, const char *kernel, const TensorMeta *meta, int64_t bytes, int64_t flops,
                    Text *out)
{
        text_add(out, ", \"args\": ");
        profile_write_node(nodes, kernel, NULL, out);
        if (nodes.first->module_stack != NULL) {
                text_add(out, ", \"module\": ");
                text_add_json(out, nodes.first->module_stack->path);
        }
        profile_write_meta(meta != NULL, meta, out);
        text_addf(out, ", \"bytes\": %lld, \"flops\": %lld}}", (long long)bytes, (long long)flops);
}

static void add_steps(const RunProfile *profile, double *out_run_ts, Text *out)
{
        const struct {
                const char *name;
                int64_t ns;
        } steps[] = { { "queue", profile->queue_ns },
                      { "compile", profile->compile_ns },
                      { "decode", profile->decode_ns },
                      { "run", profile->run_ns },
                      { "encode", profile->encode_ns } };
        int64_t sum = 0, at = 0;
        for (size_t i = 0; i < ARRAY_LENGTH(steps); i++)
                sum += steps[i].ns;
        char name[160];
        snprintf(name, sizeof(name), "%s %s",
                 profile->graph_name[0] == '\0' ? "POST /v1/run" : profile->graph_name, profile->id);
        add_event(&(TraceEvent){ name, "request", 1, STEP_TRACK, 0, us(MAX(sum, profile->total_ns)) }, out);
        text_add(out, ", \"args\": {\"id\": ");
        text_add_json(out, profile->id);
        text_add(out, ", \"signature\": ");
        text_add_json(out, profile->signature);
        text_addf(out, ", \"version\": %lld, \"ended_ms\": %lld}}", (long long)profile->version,
                  (long long)profile->wall_ms);
        for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
                if (strcmp(steps[i].name, "run") == 0)
                        *out_run_ts = us(at);
                add_event(&(TraceEvent){ steps[i].name, "step", 1, STEP_TRACK, us(at), us(steps[i].ns) },
                          out);
                text_add_char(out, '}');
                at += steps[i].ns;
        }
}

Status profile_write_chrome(const RunProfile *profile, Text *out)
{
        double run_ts = 0;
        char label[64];
        begin_trace(out);
        add_name("process_name", 1, STEP_TRACK, "fxserve", out);
        add_name("thread_name", 1, STEP_TRACK, "request", out);
        add_name("thread_name", 1, NODE_TRACK, "nodes", out);
        add_steps(profile, &run_ts, out);
        for (uint32_t i = 0; i < profile->n_rows; i++) {
                const NodeTiming *row = &profile->rows[i];
                if (!profile_shows_node(row->node) || row->why != NULL || row->end_ns <= row->start_ns)
                        continue;
                add_event(&(TraceEvent){ profile_row_label(row->node, row->n_nodes, label),
                                         opcode_names[row->node->op], 1, NODE_TRACK,
                                         run_ts + us(row->start_ns - profile->run_start_ns),
                                         us(row->end_ns - row->start_ns) },
                          out);
                add_row(profile_row_nodes(&row->node, row->nodes, row->n_nodes), row->kernel,
                        row->has_tensor ? &row->meta : NULL, row->bytes, row->flops, out);
        }
        text_add(out, "]}\n");
        return text_status(out);
}

Status stats_write_chrome(const char *graph, const SignatureSummary *signatures, uint32_t n, Text *out)
{
        char label[64];
        begin_trace(out);
        for (uint32_t i = 0; i < n; i++) {
                double at = 0;
                char name[PROFILE_SIGNATURE_MAX + 80];
                snprintf(name, sizeof(name), "%s  %s", graph, signatures[i].signature);
                add_name("process_name", i + 1, STEP_TRACK, name, out);
                add_name("thread_name", i + 1, STEP_TRACK, "run (mean)", out);
                add_name("thread_name", i + 1, NODE_TRACK, "nodes (mean)", out);
                add_event(&(TraceEvent){ "run", "step", i + 1, STEP_TRACK, 0, signatures[i].run.mean_us },
                          out);
                text_addf(out, ", \"args\": {\"runs\": %llu}}", (unsigned long long)signatures[i].run.count);
                for (uint32_t row = 0; row < signatures[i].n_nodes; row++) {
                        const NodeSummary *node = &signatures[i].nodes[row];
                        if (!profile_shows_node(node->node) || node->why != NULL || node->us.mean_us <= 0)
                                continue;
                        add_event(&(TraceEvent){ profile_row_label(node->node, node->n_nodes, label),
                                                 opcode_names[node->node->op], i + 1, NODE_TRACK, at,
                                                 node->us.mean_us },
                                  out);
                        add_row(profile_row_nodes(&node->node, node->nodes, node->n_nodes), node->kernel,
                                node->has_tensor ? &node->meta : NULL, node->bytes, node->flops, out);
                        at += node->us.mean_us;
                }
        }
        text_add(out, "]}\n");
        return text_status(out);
}

// ---- folded ----
// A frame may hold neither the separator nor a line end.
static void add_frame(const char *text, size_t n, Text *out)
{
        text_add_char(out, ';');
        for (size_t i = 0; i < n; i++)
                text_add_char(out, text[i] == ';' || text[i] == '\n' || text[i] == '\r' ? '_' : text[i]);
}

static void add_stack(const char *graph, const Node *node, uint32_t n_nodes, const char *kernel, double ns,
                      Text *out)
{
        char label[64];
        text_add(out, graph[0] == '\0' ? "run" : graph);
        for (const char *at = node->module_stack == NULL ? "" : node->module_stack->path; *at != '\0';) {
                size_t n = strcspn(at, ".");
                add_frame(at, n, out);
                at += n + (at[n] == '.');
        }
        profile_row_label(node, n_nodes, label);
        add_frame(label, strlen(label), out);
        if (kernel != NULL)
                add_frame(kernel, strlen(kernel), out);
        text_addf(out, " %.0f\n", ns);
}

Status profile_write_folded(const RunProfile *profile, Text *out)
{
        for (uint32_t i = 0; i < profile->n_rows; i++) {
                const NodeTiming *row = &profile->rows[i];
                if (profile_shows_node(row->node) && row->why == NULL && row->end_ns > row->start_ns)
                        add_stack(profile->graph_name, row->node, row->n_nodes, row->kernel,
                                  (double)(row->end_ns - row->start_ns), out);
        }
        return text_status(out);
}

Status stats_write_folded(const char *graph, const SignatureSummary *signatures, uint32_t n, Text *out)
{
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t row = 0; row < signatures[i].n_nodes; row++) {
                        const NodeSummary *node = &signatures[i].nodes[row];
                        if (profile_shows_node(node->node) && node->why == NULL && node->us.mean_us > 0)
                                add_stack(graph, node->node, node->n_nodes, node->kernel,
                                          node->us.mean_us * 1000 * (double)node->us.count, out);
                }
        return text_status(out);
}
