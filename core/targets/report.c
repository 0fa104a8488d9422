// SPDX-License-Identifier: Apache-2.0
// report.c: what an upload lacks, gathered row by row and reported in full in one failure.
#include "core/targets/resolve.h"

#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"

void check_report_deinit(CheckReport *report)
{
        if (report == NULL)
                return;
        for (uint32_t i = 0; i < report->n_rows; i++)
                free(report->rows[i].nodes);
        free(report->rows);
        free(report->missing_state);
        free(report->unknown_config);
        arena_deinit(&report->arena);
        *report = (CheckReport){ 0 };
}

// ---- gathering ----
static Status add_node(UnsupportedRow *row, const Node *node)
{
        // Capacity is the next power of two, so the public row needs no field for it.
        if ((row->n_nodes & (row->n_nodes - 1)) == 0) {
                size_t capacity = row->n_nodes == 0 ? 1 : 2 * (size_t)row->n_nodes;
                const Node **nodes = realloc(row->nodes, capacity * sizeof(*nodes));
                if (nodes == NULL)
                        return fail_memory();
                row->nodes = nodes;
        }
        row->nodes[row->n_nodes++] = node;
        return STATUS_OK;
}

static bool same_text(const char *a, const char *b)
{
        return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

Status report_unsupported(CheckReport *report, const char *what, const char *reason, const Node *node)
{
        UnsupportedRow *row = NULL;
        for (uint32_t i = 0; i < report->n_rows && row == NULL; i++) {
                if (strcmp(report->rows[i].what, what) == 0 && same_text(report->rows[i].reason, reason))
                        row = &report->rows[i];
        }
        if (row == NULL) {
                TRY(array_reserve(&report->rows, &report->rows_capacity, report->n_rows + 1,
                                  sizeof(*report->rows)));
                row = &report->rows[report->n_rows];
                *row = (UnsupportedRow){ .what = arena_text(&report->arena, what, strlen(what)) };
                if (reason != NULL)
                        row->reason = arena_text(&report->arena, reason, strlen(reason));
                if (row->what == NULL || (reason != NULL && row->reason == NULL))
                        return fail_memory();
                report->n_rows++;
        }
        report->n_nodes++;
        return add_node(row, node);
}

static Status add_text(CheckReport *report, const char ***texts, uint32_t *n, uint32_t *capacity,
                       const char *text)
{
        for (uint32_t i = 0; i < *n; i++) {
                if (strcmp((*texts)[i], text) == 0)
                        return STATUS_OK;
        }
        TRY(array_reserve(texts, capacity, *n + 1, sizeof(**texts)));
        const char *copy = arena_text(&report->arena, text, strlen(text));
        if (copy == NULL)
                return fail_memory();
        (*texts)[(*n)++] = copy;
        return STATUS_OK;
}

Status report_refusal(CheckReport *report, const Node *node, const char *what, Status status)
{
        if (status == STATUS_OK || status_class(status) != STATUS_CLASS_CALLER)
                return status;
        char reason[1200];
        snprintf(reason, sizeof(reason), "%.1100s", failure_current()->message);
        return report_unsupported(report, what, reason, node);
}

Status report_missing_state(CheckReport *report, const char *path)
{
        return add_text(report, &report->missing_state, &report->n_missing_state, &report->missing_capacity,
                        path);
}

Status report_unknown_config(CheckReport *report, const char *text)
{
        return add_text(report, &report->unknown_config, &report->n_unknown_config, &report->unknown_capacity,
                        text);
}

// ---- the failure's message ----
static uint32_t count_nodes(const Graph *graph, int depth)
{
        uint32_t n = graph->n_nodes;
        for (uint32_t i = 0; i < graph->n_modules && depth < limits.max_child_graphs; i++) {
                if (graph->modules[i]->graph != NULL)
                        // depth: limits.max_child_graphs
                        n += count_nodes(graph->modules[i]->graph, depth + 1);
        }
        return n;
}

// By number of nodes, descending; unknown names before those with a reason.
static int compare_rows(const void *a, const void *b)
{
        const UnsupportedRow *x = a, *y = b;
        if ((x->reason != NULL) != (y->reason != NULL))
                return x->reason != NULL ? 1 : -1;
        if (x->n_nodes != y->n_nodes)
                return x->n_nodes > y->n_nodes ? -1 : 1;
        return strcmp(x->what, y->what);
}

static void tell_row(Text *text, const UnsupportedRow *row)
{
        enum { MAX_NAMES = 8 };
        text_addf(text, "%s (", row->what);
        for (uint32_t i = 0; i < row->n_nodes && i < MAX_NAMES; i++)
                text_addf(text, "%s%s", i == 0 ? "" : ", ", row->nodes[i]->name);
        if (row->n_nodes > MAX_NAMES)
                text_addf(text, " and %u more", row->n_nodes - MAX_NAMES);
        text_add(text, ")");
        if (row->reason != NULL)
                text_addf(text, ": %s", row->reason);
}

// Of an operator that no library of PyTorch has: how it may come along with the upload.
static bool tell_custom(const UnsupportedRow *row, Text *text)
{
        static const char *const known[] = { "aten.",         "prims.",
                                             "higher_order.", "quantized_decomposed.",
                                             "quantized.",    "torchvision.",
                                             "torchao.",      "inductor.",
                                             "fxserve." };
        static const char prefix[] = "torch.ops.";
        const Node *node = row->n_nodes == 0 ? NULL : row->nodes[0];
        if (row->reason != NULL || node == NULL || node->op != OP_CALL_FUNCTION ||
            strncmp(node->target, prefix, sizeof(prefix) - 1) != 0)
                return false;
        const char *name = node->target + sizeof(prefix) - 1, *dot = strchr(name, '.');
        if (dot == NULL)
                return false;
        for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
                if (strncmp(name, known[i], strlen(known[i])) == 0)
                        return false;
        size_t n = (size_t)(dot - name) + 1 + strcspn(dot + 1, ".");
        text_addf(text,
                  "; an operator of your own may come along as a graph: curl -F graph=@FILE -F "
                  "op:%.*s=@%.*s.json",
                  (int)n, name, (int)(n - (size_t)(dot + 1 - name)), dot + 1);
        return true;
}

static Status tell_unsupported(const CheckReport *report, const Graph *graph)
{
        _cleanup_(freep) UnsupportedRow *sorted = new_array(report->n_rows, sizeof(*sorted));
        _cleanup_(text_deinit) Text text = { 0 };
        if (sorted == NULL)
                return fail_memory();
        memcpy(sorted, report->rows, report->n_rows * sizeof(*sorted));
        qsort(sorted, report->n_rows, sizeof(*sorted), compare_rows);
        for (uint32_t i = 0; i < report->n_rows; i++) {
                if (i > 0)
                        text_add(&text, sorted[i - 1].reason != NULL ? "; " : ", ");
                tell_row(&text, &sorted[i]);
        }
        for (uint32_t i = 0; i < report->n_rows && !tell_custom(&sorted[i], &text);)
                i++;
        TRY(text_status(&text));
        return fail(STATUS_UNSUPPORTED, "%u of %u nodes use operators fxserve " FXSERVE_SERIES " lacks: %s",
                    report->n_nodes, count_nodes(graph, 0), text.data);
}

static Status tell_list(Status status, const char *before, const char *const *texts, uint32_t n,
                        const char *between, const char *after)
{
        _cleanup_(text_deinit) Text text = { 0 };
        for (uint32_t i = 0; i < n; i++)
                text_addf(&text, "%s%s", i == 0 ? "" : between, texts[i]);
        TRY(text_status(&text));
        return fail(status, "%s%s%s", before, text.data, after);
}

Status check_report_status(const CheckReport *report, const Graph *graph)
{
        if (report->n_rows > 0)
                return tell_unsupported(report, graph);
        if (report->n_unknown_config > 0)
                return tell_list(STATUS_UNKNOWN_CONFIG,
                                 "module configuration that does not fit: ", report->unknown_config,
                                 report->n_unknown_config, "; ", "");
        if (report->n_missing_state > 0)
                return tell_list(STATUS_MISSING_STATE,
                                 "the graph needs state that did not come along: ", report->missing_state,
                                 report->n_missing_state, ", ",
                                 "; put it under \"state\", or send a safetensors file beside the graph "
                                 "(curl -F graph=@g.json -F "
                                 "weights=@w.safetensors)");
        return STATUS_OK;
}
