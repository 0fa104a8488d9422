// SPDX-License-Identifier: Apache-2.0
// The rows of a profile: one per executed node, in order. `us` of all rows and `other_us` add up to `run_us`.
#include "api/profile_text.h"
#include <stdio.h>
#include <string.h>

static double us(int64_t ns)
{
        return (double)ns / 1000.0;
}

static void write_meta(bool has_tensor, const TensorMeta *meta, Text *out)
{
        if (!has_tensor) {
                text_add(out, ", \"shape\": null, \"dtype\": null");
                return;
        }
        text_add(out, ", \"shape\": [");
        for (int i = 0; i < meta->rank; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_int(out, meta->size[i]);
        }
        text_addf(out, "], \"dtype\": \"%s\"", dtype_info[meta->dtype].name);
}

// What a row stands for: one authored node, or all that an instruction of a program computes.
typedef struct RowNodes {
        const Node *first;
        const Node *const *nodes;
        uint32_t n;
} RowNodes;

static RowNodes row_nodes(const Node *const *node, const Node *const *nodes, uint32_t n_nodes)
{
        if (nodes != NULL && n_nodes > 0)
                return (RowNodes){ nodes[0], nodes, n_nodes };
        return (RowNodes){ *node, node, *node == NULL ? 0 : 1 };
}

static void write_node(RowNodes row, const char *kernel, const char *why, Text *out)
{
        text_add(out, "{\"nodes\": [");
        for (uint32_t i = 0; i < row.n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, row.nodes[i]->name);
        }
        text_addf(out, "], \"op\": \"%s\", \"target\": ", opcode_names[row.first->op]);
        text_add_json(out, row.first->target);
        text_add(out, ", \"kernel\": ");
        if (kernel == NULL)
                text_add(out, "null");
        else
                text_add_json(out, kernel);
        if (why == NULL && kernel != NULL && strcmp(kernel, "view") == 0)
                why = "view";
        if (why != NULL) {
                text_add(out, ", \"why\": ");
                text_add_json(out, why);
        }
}

static bool is_shown_node(const Node *node)
{
        return node != NULL && (node_is_call(node) || node->op == OP_GET_ATTR);
}

static bool is_shown(const NodeTiming *row)
{
        return is_shown_node(row->node);
}

// "conv1 +2" for the tables.
static const char *row_label(const Node *node, uint32_t n_nodes, char out[64])
{
        if (n_nodes > 1)
                snprintf(out, 64, "%.40s +%u", node->name, n_nodes - 1);
        else
                snprintf(out, 64, "%.60s", node->name);
        return out;
}

void profile_write_json(const RunProfile *profile, Text *out)
{
        double in_nodes = 0;
        bool first = true;
        text_add(out, "{\"id\": ");
        text_add_json(out, profile->id);
        text_add(out, ", \"graph\": ");
        if (profile->graph_name[0] == '\0')
                text_add(out, "null");
        else
                text_add_json(out, profile->graph_name);
        text_addf(out, ", \"version\": %lld, \"signature\": ", (long long)profile->version);
        text_add_json(out, profile->signature);
        text_addf(out,
                  ", \"ended_ms\": %lld, \"program\": %s%s%s, \"decode_us\": %.3f, \"queue_us\": %.3f, \"compile_us\": %.3f, \"run_us\": "
                  "%.3f, "
                  "\"encode_us\": %.3f, \"total_us\": %.3f, \"nodes\": [",
                  (long long)profile->wall_ms, profile->program == NULL ? "" : "\"",
                  profile->program == NULL ? "null" : profile->program->id.hex, profile->program == NULL ? "" : "\"",
                  us(profile->decode_ns), us(profile->queue_ns), us(profile->compile_ns), us(profile->run_ns), us(profile->encode_ns),
                  us(profile->total_ns));
        for (uint32_t i = 0; i < profile->n_rows; i++) {
                const NodeTiming *row = &profile->rows[i];
                if (!is_shown(row))
                        continue;
                double took = us(row->end_ns - row->start_ns);
                in_nodes += took;
                text_add(out, first ? "\n" : ",\n");
                first = false;
                write_node(row_nodes(&row->node, row->nodes, row->n_nodes), row->kernel, row->why, out);
                text_addf(out, ", \"start_us\": %.3f, \"us\": %.3f, \"share\": %.4f", us(row->start_ns - profile->run_start_ns), took,
                          profile->run_ns > 0 ? took / us(profile->run_ns) : 0.0);
                write_meta(row->has_tensor, &row->meta, out);
                text_addf(out, ", \"bytes\": %lld, \"flops\": %lld}", (long long)row->bytes, (long long)row->flops);
        }
        double other = us(profile->run_ns) - in_nodes;
        text_addf(out, "], \"other_us\": %.3f, \"memory\": {\"arena_bytes\": %zu, \"peak_live_bytes\": %zu, \"weights_bytes\": %zu}}",
                  other > 0 ? other : 0.0, profile->arena_bytes, profile->peak_live_bytes, profile->weights_bytes);
}

// ---- tables ----
static void shape_cell(bool has_tensor, const TensorMeta *meta, char *out, size_t capacity)
{
        char shape[128];
        if (has_tensor)
                snprintf(out, capacity, "%s%s", dtype_info[meta->dtype].short_name,
                         shape_text(meta->rank, meta->size, shape, sizeof(shape)));
        else
                snprintf(out, capacity, "-");
}

static void bar(Text *out, double share)
{
        int n = (int)(share * 20 + 0.5);
        for (int i = 0; i < n && i < 20; i++)
                text_add_char(out, '#');
}

static int by_time(const void *a, const void *b)
{
        const NodeTiming *left = *(NodeTiming *const *)a, *right = *(NodeTiming *const *)b;
        int64_t took_left = left->end_ns - left->start_ns, took_right = right->end_ns - right->start_ns;
        return (took_left < took_right) - (took_left > took_right);
}

static int name_width(const char *name, int width)
{
        int n = (int)MIN(strlen(name), (size_t)40);
        return MAX(n, width);
}

Status profile_write_table(const RunProfile *profile, Text *out)
{
        _cleanup_(freep) const NodeTiming **rows = new_array(profile->n_rows, sizeof(*rows));
        uint32_t n = 0;
        int name = 4, kernel = 6;
        char label[64];
        if (rows == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < profile->n_rows; i++)
                if (is_shown(&profile->rows[i]) && profile->rows[i].kernel != NULL && profile->rows[i].why == NULL) {
                        rows[n++] = &profile->rows[i];
                        name = name_width(row_label(rows[n - 1]->node, rows[n - 1]->n_nodes, label), name);
                        kernel = name_width(rows[n - 1]->kernel, kernel);
                }
        qsort(rows, n, sizeof(*rows), by_time);
        text_addf(out, "run %s  %s  total %.1f us  (decode %.1f, queue %.1f, run %.1f, encode %.1f)\n", profile->id, profile->signature,
                  us(profile->total_ns), us(profile->decode_ns), us(profile->queue_ns), us(profile->run_ns), us(profile->encode_ns));
        text_addf(out, "%-*s  %-*s  %10s  %6s  %-20s  shape\n", name, "node", kernel, "kernel", "us", "share", "");
        for (uint32_t i = 0; i < n; i++) {
                char shape[160];
                double took = us(rows[i]->end_ns - rows[i]->start_ns), share = profile->run_ns > 0 ? took / us(profile->run_ns) : 0;
                shape_cell(rows[i]->has_tensor, &rows[i]->meta, shape, sizeof(shape));
                text_addf(out, "%-*.40s  %-*.40s  %10.2f  %5.1f%%  ", name, row_label(rows[i]->node, rows[i]->n_nodes, label), kernel,
                          rows[i]->kernel, took, share * 100);
                size_t before = out->n;
                bar(out, share);
                text_repeat(out, ' ', 22 - (out->n - before));
                text_addf(out, "%s\n", shape);
        }
        return text_status(out);
}

// ---- statistics ----
static void write_summary(const TimeSummary *summary, Text *out)
{
        text_addf(out, "{\"count\": %llu, \"mean\": %.3f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, \"max\": %.3f}",
                  (unsigned long long)summary->count, summary->mean_us, summary->p50_us, summary->p90_us, summary->p99_us, summary->max_us);
}

void stats_write_json(const SignatureSummary *signatures, uint32_t n, Text *out)
{
        text_addf(out, "{\"window\": %d, \"signatures\": [", PROFILE_WINDOW);
        for (uint32_t i = 0; i < n; i++) {
                bool first = true;
                text_add(out, i == 0 ? "" : ", ");
                text_add(out, "{\"signature\": ");
                text_add_json(out, signatures[i].signature);
                text_add(out, ", \"run_us\": ");
                write_summary(&signatures[i].run, out);
                text_addf(out, ", \"other_us\": %.3f, \"nodes\": [", signatures[i].other_us);
                for (uint32_t row = 0; row < signatures[i].n_nodes; row++) {
                        const NodeSummary *node = &signatures[i].nodes[row];
                        if (!is_shown_node(node->node))
                                continue;
                        text_add(out, first ? "\n" : ",\n");
                        first = false;
                        write_node(row_nodes(&node->node, node->nodes, node->n_nodes), node->kernel, node->why, out);
                        text_add(out, ", \"us\": ");
                        write_summary(&node->us, out);
                        text_addf(out, ", \"share\": %.4f", node->share);
                        write_meta(node->has_tensor, &node->meta, out);
                        text_addf(out, ", \"bytes\": %lld, \"flops\": %lld}", (long long)node->bytes, (long long)node->flops);
                }
                text_add(out, "]}");
        }
        text_add(out, "]}");
}

static int by_mean(const void *a, const void *b)
{
        const NodeSummary *left = *(const NodeSummary *const *)a, *right = *(const NodeSummary *const *)b;
        return (left->us.mean_us < right->us.mean_us) - (left->us.mean_us > right->us.mean_us);
}

static Status write_signature_table(const SignatureSummary *signature, Text *out)
{
        _cleanup_(freep) const NodeSummary **rows = new_array(signature->n_nodes, sizeof(*rows));
        uint32_t n = 0;
        int name = 4, kernel = 6;
        char label[64];
        if (rows == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_nodes; i++)
                if (signature->nodes[i].node != NULL && signature->nodes[i].kernel != NULL && signature->nodes[i].why == NULL) {
                        rows[n++] = &signature->nodes[i];
                        name = name_width(row_label(rows[n - 1]->node, rows[n - 1]->n_nodes, label), name);
                        kernel = name_width(rows[n - 1]->kernel, kernel);
                }
        qsort(rows, n, sizeof(*rows), by_mean);
        const TimeSummary *run = &signature->run;
        text_addf(out, "%s: %llu run%s, us: mean %.1f, p50 %.1f, p90 %.1f, p99 %.1f, max %.1f (last %d)\n", signature->signature,
                  (unsigned long long)run->count, run->count == 1 ? "" : "s", run->mean_us, run->p50_us, run->p90_us, run->p99_us,
                  run->max_us, PROFILE_WINDOW);
        text_addf(out, "%-*s  %-*s  %10s  %10s  %10s  %6s\n", name, "node", kernel, "kernel", "mean us", "p90 us", "max us", "share");
        for (uint32_t i = 0; i < n; i++) {
                text_addf(out, "%-*.40s  %-*.40s  %10.2f  %10.2f  %10.2f  %5.1f%%  ", name,
                          row_label(rows[i]->node, rows[i]->n_nodes, label), kernel, rows[i]->kernel, rows[i]->us.mean_us,
                          rows[i]->us.p90_us, rows[i]->us.max_us, rows[i]->share * 100);
                bar(out, rows[i]->share);
                text_add_char(out, '\n');
        }
        return text_status(out);
}

Status stats_write_table(const SignatureSummary *signatures, uint32_t n, Text *out)
{
        if (n == 0)
                text_add(out, "no runs yet: POST .../run first\n");
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : "\n");
                TRY(write_signature_table(&signatures[i], out));
        }
        return text_status(out);
}
