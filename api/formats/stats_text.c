// SPDX-License-Identifier: Apache-2.0
// Statistics of a graph as JSON and as tables: rows, or sums of rows (?by=), all in authored order,
// or the slowest first (?slowest=).
#include <string.h>
#include "api/formats/profile_parts.h"

// A line: a row or a group of rows.
typedef struct Line {
        const NodeSummary *node;
        const GroupSummary *group;
        const TimeSummary *us;
} Line;

typedef struct Lines {
        Line *items;
        uint32_t n;
} Lines;

static int slower_first(const void *a, const void *b)
{
        const Line *left = a, *right = b;
        return (left->us->mean_us < right->us->mean_us) - (left->us->mean_us > right->us->mean_us);
}

// Of one signature: what is shown, in order. `ran_only` leaves out rows for which nothing ran.
static Status lines_of(const SignatureSummary *signature, const StatsView *view, bool ran_only, Lines *out)
{
        bool grouped = view->by != PROFILE_BY_INSTRUCTION;
        uint32_t n = grouped ? signature->n_groups : signature->n_nodes;
        Lines lines = { .items = new_array(n, sizeof(*lines.items)) };
        if (lines.items == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++) {
                const NodeSummary *node = grouped ? NULL : &signature->nodes[i];
                const GroupSummary *group = grouped ? &signature->groups[i] : NULL;
                if (node != NULL && (!profile_shows_node(node->node) ||
                                     (ran_only && (node->kernel == NULL || node->why != NULL))))
                        continue;
                lines.items[lines.n++] = (Line){ node, group, grouped ? &group->us : &node->us };
        }
        if (grouped || ran_only || view->slowest > 0)
                qsort(lines.items, lines.n, sizeof(*lines.items), slower_first);
        if (view->slowest > 0)
                lines.n = MIN(lines.n, view->slowest);
        *out = lines;
        return STATUS_OK;
}

// ---- JSON ----
static void write_summary(const TimeSummary *summary, Text *out)
{
        text_addf(out,
                  "{\"count\": %llu, \"mean\": %.3f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, \"max\": "
                  "%.3f}",
                  (unsigned long long)summary->count, summary->mean_us, summary->p50_us, summary->p90_us,
                  summary->p99_us, summary->max_us);
}

static void write_row(const NodeSummary *node, Text *out)
{
        profile_write_node(profile_row_nodes(&node->node, node->nodes, node->n_nodes), node->kernel,
                           node->why, out);
        text_add(out, ", \"us\": ");
        write_summary(&node->us, out);
        text_addf(out, ", \"share\": %.4f", node->share);
        profile_write_meta(node->has_tensor, &node->meta, out);
        text_addf(out, ", \"bytes\": %lld, \"flops\": %lld}", (long long)node->bytes, (long long)node->flops);
}

static void write_group(const GroupSummary *group, ProfileBy by, Text *out)
{
        text_addf(out, "{\"%s\": ", profile_by_names[by]);
        text_add_json(out, group->key);
        text_addf(out, ", \"rows\": %u, \"us\": ", group->n_rows);
        write_summary(&group->us, out);
        text_addf(out, ", \"share\": %.4f, \"bytes\": %lld, \"flops\": %lld%s}", group->share,
                  (long long)group->bytes, (long long)group->flops,
                  group->estimated ? ", \"estimated\": true" : "");
}

static Status write_signature(const SignatureSummary *signature, const StatsView *view, Text *out)
{
        Lines lines;
        TRY(lines_of(signature, view, false, &lines));
        text_add(out, "{\"signature\": ");
        text_add_json(out, signature->signature);
        text_add(out, ", \"program\": ");
        const char *program = run_program_id(signature->labels);
        if (program == NULL)
                text_add(out, "null");
        else
                text_add_json(out, program);
        text_add(out, ", \"run_us\": ");
        write_summary(&signature->run, out);
        text_addf(out, ", \"other_us\": %.3f, \"%s\": [", signature->other_us,
                  view->by == PROFILE_BY_INSTRUCTION ? "nodes" : "groups");
        for (uint32_t i = 0; i < lines.n; i++) {
                text_add(out, i == 0 ? "\n" : ",\n");
                if (lines.items[i].node != NULL)
                        write_row(lines.items[i].node, out);
                else
                        write_group(lines.items[i].group, view->by, out);
        }
        text_add(out, "]}");
        free(lines.items);
        return STATUS_OK;
}

Status stats_write_json(const SignatureSummary *signatures, uint32_t n, const StatsView *view, Text *out)
{
        text_addf(out, "{\"window\": %d, \"signatures\": [", PROFILE_WINDOW);
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                TRY(write_signature(&signatures[i], view, out));
        }
        text_add(out, "]}\n");
        return text_status(out);
}

// ---- tables ----
static const char *label_of(const Line *line, char out[64])
{
        if (line->node != NULL)
                return profile_row_label(line->node->node, line->node->n_nodes, out);
        return line->group->key[0] == '\0' ? "(root)" : line->group->key;
}

static const char *kernel_of(const Line *line)
{
        return line->node != NULL ? line->node->kernel : line->group->estimated ? "estimated" : "";
}

static void write_lines(const Lines *lines, ProfileBy by, Text *out)
{
        char label[64];
        int name = (int)strlen(by == PROFILE_BY_INSTRUCTION ? "node" : profile_by_names[by]),
            kernel = by == PROFILE_BY_INSTRUCTION ? 6 : 0;
        for (uint32_t i = 0; i < lines->n; i++) {
                name = profile_name_width(label_of(&lines->items[i], label), name);
                kernel = profile_name_width(kernel_of(&lines->items[i]), kernel);
        }
        text_addf(out, "%-*s  %-*s  %10s  %10s  %10s  %6s\n", name,
                  by == PROFILE_BY_INSTRUCTION ? "node" : profile_by_names[by], kernel,
                  by == PROFILE_BY_INSTRUCTION ? "kernel" : "", "mean us", "p90 us", "max us", "share");
        for (uint32_t i = 0; i < lines->n; i++) {
                const Line *line = &lines->items[i];
                double share = line->node != NULL ? line->node->share : line->group->share;
                text_addf(out, "%-*.40s  %-*.40s  %10.2f  %10.2f  %10.2f  %5.1f%%  ", name,
                          label_of(line, label), kernel, kernel_of(line), line->us->mean_us, line->us->p90_us,
                          line->us->max_us, share * 100);
                profile_bar(out, share);
                text_add_char(out, '\n');
        }
}

// "x: float32[3]", and by what it ran where there are several of that signature.
static void write_heading(const SignatureSummary *signatures, uint32_t n, uint32_t index, Text *out)
{
        bool alone = true;
        for (uint32_t i = 0; i < n; i++)
                alone &= i == index || strcmp(signatures[i].signature, signatures[index].signature) != 0;
        const char *program = run_program_id(signatures[index].labels);
        text_add(out, signatures[index].signature);
        if (!alone && program == NULL)
                text_add(out, ", eager");
        else if (!alone)
                text_addf(out, ", program %.8s", program);
}

Status stats_write_table(const SignatureSummary *signatures, uint32_t n, const StatsView *view, Text *out)
{
        if (n == 0)
                text_add(out, "no runs yet: POST .../run first\n");
        for (uint32_t i = 0; i < n; i++) {
                const TimeSummary *run = &signatures[i].run;
                Lines lines;
                TRY(lines_of(&signatures[i], view, true, &lines));
                text_add(out, i == 0 ? "" : "\n");
                write_heading(signatures, n, i, out);
                text_addf(out,
                          ": %llu run%s, us: mean %.1f, p50 %.1f, p90 %.1f, p99 %.1f, max %.1f (last %d)\n",
                          (unsigned long long)run->count, run->count == 1 ? "" : "s", run->mean_us,
                          run->p50_us, run->p90_us, run->p99_us, run->max_us, PROFILE_WINDOW);
                write_lines(&lines, view->by, out);
                free(lines.items);
        }
        return text_status(out);
}
