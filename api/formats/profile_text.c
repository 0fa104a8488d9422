// SPDX-License-Identifier: Apache-2.0
// The rows of a profile: one per executed node, in order. `us` of all rows and `other_us` add up to
// `run_us`.
#include "api/formats/choice_text.h"
#include "api/formats/profile_parts.h"
#include <stdio.h>
#include <string.h>

static double us(int64_t ns)
{
        return (double)ns / 1000.0;
}

void profile_write_meta(bool has_tensor, const TensorMeta *meta, Text *out)
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

RowNodes profile_row_nodes(const Node *const *node, const Node *const *nodes, uint32_t n_nodes)
{
        if (nodes != NULL && n_nodes > 0)
                return (RowNodes){ nodes[0], nodes, n_nodes };
        return (RowNodes){ *node, node, *node == NULL ? 0 : 1 };
}

void profile_write_node(RowNodes row, const char *kernel, const char *why, Text *out)
{
        text_add(out, "{\"nodes\": [");
        for (uint32_t i = 0; i < row.n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, node_origin(row.nodes[i]));
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
        text_add(out, ", \"why\": ");
        if (why != NULL)
                text_add_json(out, why);
        else
                text_add(out, "null");
}

bool profile_shows_node(const Node *node)
{
        return node != NULL && (node_is_call(node) || node->op == OP_GET_ATTR);
}

static bool is_shown(const NodeTiming *row)
{
        return profile_shows_node(row->node);
}

// "conv1 +2" for the tables.
const char *profile_row_label(const Node *node, uint32_t n_nodes, char out[64])
{
        if (n_nodes > 1)
                snprintf(out, 64, "%.40s +%u", node_origin(node), n_nodes - 1);
        else
                snprintf(out, 64, "%.60s", node_origin(node));
        return out;
}

static const char *label_name(const void *labels, uint32_t index)
{
        const RunLabels *of = labels;
        return index < of->n_nodes ? of->nodes[index].name : "?";
}

static const Choice *choice_of(const RunProfile *profile)
{
        return profile->labels == NULL ? NULL : profile->labels->choice;
}

void profile_write_json(const RunProfile *profile, Text *out)
{
        const char *program = run_program_id(profile->labels);
        double in_nodes = 0;
        bool first = true;
        text_add(out, "{\"id\": ");
        text_add_json(out, profile->id);
        if (profile->trace.trace_id[0] != '\0')
                text_addf(out, ", \"trace_id\": \"%s\"", profile->trace.trace_id);
        if (profile->trace.parent_id[0] != '\0')
                text_addf(out, ", \"parent_id\": \"%s\"", profile->trace.parent_id);
        if (profile->trace.span_id[0] != '\0')
                text_addf(out, ", \"span_id\": \"%s\"", profile->trace.span_id);
        text_add(out, ", \"graph\": ");
        if (profile->graph_name[0] == '\0')
                text_add(out, "null");
        else
                text_add_json(out, profile->graph_name);
        text_addf(out, ", \"version\": %lld, \"signature\": ", (long long)profile->version);
        text_add_json(out, profile->signature);
        text_addf(out,
                  ", \"ended_ms\": %lld, \"program\": %s%s%s, \"decode_us\": %.3f, \"queue_us\": %.3f, "
                  "\"compile_us\": %.3f, \"run_us\": "
                  "%.3f, "
                  "\"encode_us\": %.3f, \"total_us\": %.3f, \"nodes\": [",
                  (long long)profile->wall_ms, program == NULL ? "" : "\"",
                  program == NULL ? "null" : program, program == NULL ? "" : "\"", us(profile->decode_ns),
                  us(profile->queue_ns), us(profile->compile_ns), us(profile->run_ns), us(profile->encode_ns),
                  us(profile->total_ns));
        for (uint32_t i = 0; i < profile->n_rows; i++) {
                const NodeTiming *row = &profile->rows[i];
                if (!is_shown(row))
                        continue;
                double took = us(row->end_ns - row->start_ns);
                in_nodes += took;
                text_add(out, first ? "\n" : ",\n");
                first = false;
                profile_write_node(profile_row_nodes(&row->node, row->nodes, row->n_nodes), row->kernel,
                                   row->why, out);
                text_addf(out, ", \"start_us\": %.3f, \"us\": %.3f, \"share\": %.4f",
                          us(row->start_ns - profile->run_start_ns), took,
                          profile->run_ns > 0 ? took / us(profile->run_ns) : 0.0);
                profile_write_meta(row->has_tensor, &row->meta, out);
                text_addf(out, ", \"bytes\": %lld, \"flops\": %lld}", (long long)row->bytes,
                          (long long)row->flops);
        }
        double other = us(profile->run_ns) - in_nodes;
        text_add_char(out, ']');
        if (profile->batch > 0)
                text_addf(out, ", \"batch\": %u", profile->batch);
        if (choice_of(profile) != NULL) {
                text_add(out, ", \"tolerance\": ");
                choice_write_json(choice_of(profile), label_name, profile->labels, out);
        }
        text_addf(out,
                  ", \"other_us\": %.3f, \"memory\": {\"arena_bytes\": %zu, \"peak_live_bytes\": %zu, "
                  "\"weights_bytes\": %zu}}",
                  other > 0 ? other : 0.0, profile->arena_bytes, profile->peak_live_bytes,
                  profile->weights_bytes);
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

void profile_bar(Text *out, double share)
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

int profile_name_width(const char *name, int width)
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
                if (is_shown(&profile->rows[i]) && profile->rows[i].kernel != NULL &&
                    profile->rows[i].why == NULL) {
                        rows[n++] = &profile->rows[i];
                        name = profile_name_width(
                                profile_row_label(rows[n - 1]->node, rows[n - 1]->n_nodes, label), name);
                        kernel = profile_name_width(rows[n - 1]->kernel, kernel);
                }
        qsort(rows, n, sizeof(*rows), by_time);
        text_addf(
                out,
                "run %s  %s  total %.1f us  (decode %.1f, queue %.1f, compile %.1f, run %.1f, encode %.1f)\n",
                profile->id, profile->signature, us(profile->total_ns), us(profile->decode_ns),
                us(profile->queue_ns), us(profile->compile_ns), us(profile->run_ns), us(profile->encode_ns));
        if (choice_of(profile) != NULL)
                choice_write_text(choice_of(profile), label_name, profile->labels, out);
        text_addf(out, "%-*s  %-*s  %10s  %6s  %-20s  shape\n", name, "node", kernel, "kernel", "us", "share",
                  "");
        for (uint32_t i = 0; i < n; i++) {
                char shape[160];
                double took = us(rows[i]->end_ns - rows[i]->start_ns),
                       share = profile->run_ns > 0 ? took / us(profile->run_ns) : 0;
                shape_cell(rows[i]->has_tensor, &rows[i]->meta, shape, sizeof(shape));
                text_addf(out, "%-*.40s  %-*.40s  %10.2f  %5.1f%%  ", name,
                          profile_row_label(rows[i]->node, rows[i]->n_nodes, label), kernel, rows[i]->kernel,
                          took, share * 100);
                size_t before = out->n;
                profile_bar(out, share);
                text_repeat(out, ' ', 22 - (out->n - before));
                text_addf(out, "%s\n", shape);
        }
        return text_status(out);
}
