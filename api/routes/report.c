// SPDX-License-Identifier: Apache-2.0
// report.c: what a run with inputs of given shapes would cost, node by node, without running it.
#include <stdio.h>
#include <string.h>
#include "api/routes/answer.h"
#include "core/base/limits.h"
#include "core/engine/figures.h"

const char *const report_form_names[REPORT_FORM_COUNT] = { "json", "text" };

typedef struct Report {
        const Graph *graph;
        GraphFigures figures;
        // Of node i: users[first_user[i]] up to users[first_user[i + 1]]
        uint32_t *first_user, *users, *n_found;
        const Node *node; // while its inputs are visited
} Report;

static void report_deinit(Report *report)
{
        graph_figures_deinit(&report->figures);
        free(report->first_user);
        free(report->users);
        free(report->n_found);
}

// ---- users ----

static Status count_user(void *context, Node *input)
{
        Report *report = context;
        uint32_t *n = &report->n_found[input->index], first = report->first_user[input->index];
        if (*n > 0 && report->users[first + *n - 1] == report->node->index)
                return STATUS_OK; // reads it twice
        report->users[first + (*n)++] = report->node->index;
        return STATUS_OK;
}

static Status list_users(Report *report)
{
        const Graph *graph = report->graph;
        uint32_t n = 0;
        report->first_user = new_array((size_t)graph->n_nodes + 1, sizeof(uint32_t));
        report->n_found = new_array(graph->n_nodes, sizeof(uint32_t));
        if (report->first_user == NULL || report->n_found == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                report->first_user[i] = n;
                n += graph->nodes[i]->n_users;
        }
        report->first_user[graph->n_nodes] = n;
        report->users = new_array(n, sizeof(uint32_t));
        if (report->users == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                report->node = graph->nodes[i];
                TRY(node_visit_inputs(report->node, count_user, report));
        }
        return STATUS_OK;
}

// ---- JSON ----

static void write_meta(const NodeFigures *figures, Text *out)
{
        char shape[256];
        if (figures->has_tensor)
                text_addf(out, ", \"dtype\": \"%s\", \"shape\": %s", dtype_info[figures->meta.dtype].name,
                          shape_text(figures->meta.rank, figures->meta.size, shape, sizeof(shape)));
        else
                text_add(out, ", \"dtype\": null, \"shape\": null");
}

static void write_names(const Report *report, const Node *node, Text *out)
{
        text_add(out, ", \"users\": [");
        for (uint32_t k = report->first_user[node->index]; k < report->first_user[node->index + 1]; k++)
                text_addf(out, "%s\"%s\"", k == report->first_user[node->index] ? "" : ", ",
                          report->graph->nodes[report->users[k]]->name);
        text_add(out, "], \"last_uses\": [");
        for (uint32_t k = 0; k < node->n_frees; k++)
                text_addf(out, "%s\"%s\"", k == 0 ? "" : ", ", node->frees[k]->name);
        text_add_char(out, ']');
}

// At most this many: equal nodes merged into one call may be many.
enum { MAX_PARTNERS = 40 };

static uint32_t add_partners(const Node *node, const NodeFigures *figures, const char *quote, Text *out)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < figures->n_fused_with && n < MAX_PARTNERS; i++)
                if (figures->fused_with[i] != node)
                        text_addf(out, "%s%s%s%s", n++ == 0 ? "" : ", ", quote, figures->fused_with[i]->name,
                                  quote);
        return n;
}

static void write_fusing(const Node *node, const NodeFigures *figures, Text *out)
{
        text_add(out, ", \"fused_with\": [");
        (void)add_partners(node, figures, "\"", out);
        text_add(out, "], \"why_not\": ");
        if (figures->why_not == NULL)
                text_add(out, "null");
        else
                text_add_json(out, figures->why_not);
}

static void write_node(const Report *report, const Node *node, Text *out)
{
        const NodeFigures *figures = &report->figures.nodes[node->index];
        const char *module = node->op == OP_CALL_MODULE ? node->target : node_module_path(node);
        text_addf(out, "%s{\"node\": \"%s\", \"op\": \"%s\", \"target\": ", node->index == 0 ? "" : ",\n",
                  node->name, opcode_names[node->op]);
        text_add_json(out, node->target);
        if (module != NULL) {
                text_add(out, ", \"module\": ");
                text_add_json(out, module);
        }
        write_meta(figures, out);
        text_addf(out, ", \"flops\": %lld, \"bytes\": %lld, \"live_bytes\": %lld", (long long)figures->flops,
                  (long long)figures->bytes, (long long)figures->live_bytes);
        write_names(report, node, out);
        write_fusing(node, figures, out);
        text_add_char(out, '}');
}

// How often each thing is called, in order of first calls.
static Status write_ops(const Graph *graph, Text *out)
{
        StringMap counts = { 0 };
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < graph->n_nodes && status == STATUS_OK; i++) {
                const Node *node = graph->nodes[i];
                const Module *module = node->op == OP_CALL_MODULE ? graph_module(graph, node->target) : NULL;
                const char *name = module != NULL && module->type != NULL ? module->type : node->target;
                uintptr_t n = (uintptr_t)string_map_get(&counts, name);
                if (node_is_call(node))
                        status = string_map_set(&counts, name, (void *)(n + 1), NULL);
        }
        text_add(out, "\"ops\": {");
        for (uint32_t i = 0; i < counts.n && status == STATUS_OK; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, counts.entries[i].key);
                text_addf(out, ": %llu", (unsigned long long)(uintptr_t)counts.entries[i].value);
        }
        text_add_char(out, '}');
        string_map_deinit(&counts);
        return status;
}

// Parameters of each module itself, without those below it.
static Status write_parameters(const Graph *graph, Text *out)
{
        StringMap counts = { 0 };
        Arena arena;
        Status status = STATUS_OK;
        arena_init(&arena, 0);
        for (uint32_t i = 0; i < graph->n_state && status == STATUS_OK; i++) {
                const char *path = graph->state[i].path, *dot = strrchr(path, '.');
                if (!graph->state[i].is_parameter)
                        continue;
                const char *module = arena_text(&arena, path, dot == NULL ? 0 : (size_t)(dot - path));
                int64_t n = module == NULL ? 0 : (int64_t)(intptr_t)string_map_get(&counts, module);
                n += meta_numel(&graph->state[i].tensor->meta);
                status = module == NULL ? fail_memory()
                                        : string_map_set(&counts, module, (void *)(intptr_t)n, NULL);
        }
        text_add(out, "\"parameters\": {");
        for (uint32_t i = 0; i < counts.n && status == STATUS_OK; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, counts.entries[i].key);
                text_addf(out, ": %lld", (long long)(intptr_t)counts.entries[i].value);
        }
        text_add_char(out, '}');
        string_map_deinit(&counts);
        arena_deinit(&arena);
        return status;
}

// Whose results are live at the peak.
static void write_held(const Report *report, Text *out)
{
        const char *between = "";
        for (uint32_t i = 0; i < report->graph->n_nodes; i++) {
                int64_t n_bytes = report->figures.nodes[i].held_bytes;
                if (n_bytes == 0)
                        continue;
                text_addf(out, "%s{\"node\": \"%s\", \"bytes\": %lld}", between,
                          report->graph->nodes[i]->name, (long long)n_bytes);
                between = ", ";
        }
}

static Status write_json(const Report *report, Text *out)
{
        const Graph *graph = report->graph;
        const GraphFigures *figures = &report->figures;
        text_addf(out,
                  "{\"flops\": %lld, \"bytes\": %lld, \"memory\": {\"peak_bytes\": %lld, \"peak_node\": "
                  "\"%s\", \"weights_bytes\": %zu, \"held\": [",
                  (long long)figures->flops, (long long)figures->bytes, (long long)figures->peak_bytes,
                  graph->nodes[figures->peak]->name, graph->weights_bytes);
        write_held(report, out);
        text_add(out, "]},\n");
        TRY(write_ops(graph, out));
        text_add(out, ",\n");
        TRY(write_parameters(graph, out));
        text_add(out, ",\n\"nodes\": [\n");
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                write_node(report, graph->nodes[i], out);
        text_add(out, "]}\n");
        return STATUS_OK;
}

// ---- text ----

static Status write_table(const Report *report, Text *out)
{
        const Graph *graph = report->graph;
        const GraphFigures *figures = &report->figures;
        text_addf(out,
                  "%lld flops, %lld bytes read and written, at most %lld bytes live (at %s), weights %zu "
                  "bytes\n",
                  (long long)figures->flops, (long long)figures->bytes, (long long)figures->peak_bytes,
                  graph->nodes[figures->peak]->name, graph->weights_bytes);
        text_addf(out, "%-28s %-24s %14s %12s %12s %5s  %s\n", "node", "shape", "flops", "bytes",
                  "live bytes", "users", "fused with");
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const NodeFigures *node = &figures->nodes[i];
                char shape[256] = "", value[300] = "";
                if (node->has_tensor)
                        snprintf(value, sizeof(value), "%s%s", dtype_info[node->meta.dtype].short_name,
                                 shape_text(node->meta.rank, node->meta.size, shape, sizeof(shape)));
                text_addf(out, "%-28s %-24s %14lld %12lld %12lld %5u", graph->nodes[i]->name, value,
                          (long long)node->flops, (long long)node->bytes, (long long)node->live_bytes,
                          graph->nodes[i]->n_users);
                text_add(out, node->n_fused_with > 0 || node->why_not != NULL ? "  " : "");
                if (add_partners(graph->nodes[i], node, "", out) == 0 && node->why_not != NULL)
                        text_addf(out, "- (%s)", node->why_not);
                text_add_char(out, '\n');
        }
        return STATUS_OK;
}

static Status write_report(Report *report, const Answer *answer, int form)
{
        TRY(list_users(report));
        Text *out = answer_begin(answer, form == REPORT_JSON ? json_type : text_type);
        return form == REPORT_JSON ? write_json(report, out) : write_table(report, out);
}

Status get_report(const Answer *answer)
{
        EditShape shapes[EDIT_MAX_SHAPES];
        uint32_t n = 0;
        int form;
        Report report = { .graph = answer->graph };
        TRY(param_choice(answer->call, PARAM_REPORT_FORM, &form));
        TRY(edit_read_shapes(report.graph, param_text(answer->call, PARAM_SHAPES), shapes, &n));
        TRY(engine_figures(answer->context->engine, report.graph, shapes, n, &report.figures));
        Status status = write_report(&report, answer, form);
        report_deinit(&report);
        return status;
}
