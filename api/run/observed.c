// SPDX-License-Identifier: Apache-2.0
// observed.c: what rules observed. Values stand behind those that the client asked for, in the
// order in which run_task_derive listed them; names, targets and classes are those that the rules
// were matched against.
#include "api/run/observed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/formats/tensor_json.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"
#include "core/base/number.h"
#include "core/graph/print.h"
#include "core/ops/observe.h"

// The time of a node: its share of the rows that compute it.
typedef struct NodeTime {
        double us;
        bool estimated; // some row computes other nodes, too
} NodeTime;

typedef struct Observed {
        RunCall *run;
        const Graph *graph; // that ran
        Text *out;
        const Value *next; // value of the next node that observes
        NodeTime *times;
        uint32_t n_times, times_capacity;
        StringMap time_of; // authored name -> index in `times`, plus one
} Observed;

// One node that a rule observes.
typedef struct Hit {
        const Value *call, *stats, *tensor; // NULL: not observed
        const RuleHit *from;
} Hit;

// ---- times ----

static Status add_time(Observed *observed, const Node *node, const NodeTiming *row)
{
        const char *name = node_origin(node);
        uintptr_t index = (uintptr_t)string_map_get(&observed->time_of, name);
        uint32_t n_parts = MAX(row->n_nodes, 1u);
        if (index == 0) {
                TRY(array_reserve(&observed->times, &observed->times_capacity, observed->n_times + 1,
                                  sizeof(NodeTime)));
                observed->times[observed->n_times] = (NodeTime){ .us = 0 };
                index = ++observed->n_times;
                TRY(string_map_set(&observed->time_of, name, (void *)index, NULL));
        }
        NodeTime *time = &observed->times[index - 1];
        time->us += (double)(row->end_ns - row->start_ns) / 1000 / n_parts;
        time->estimated = time->estimated || n_parts > 1;
        return STATUS_OK;
}

static Status add_times(Observed *observed)
{
        const RunProfile *profile = observed->run->task.profile;
        for (uint32_t i = 0; i < profile->n_rows; i++) {
                const NodeTiming *row = &profile->rows[i];
                for (uint32_t k = 0; k < row->n_nodes; k++)
                        TRY(add_time(observed, row->nodes[k], row));
                if (row->n_nodes == 0 && row->node != NULL)
                        TRY(add_time(observed, row->node, row));
        }
        return STATUS_OK;
}

static NodeTime time_of_name(const Observed *observed, const char *name)
{
        uintptr_t index = (uintptr_t)string_map_get(&observed->time_of, name);
        return index == 0 ? (NodeTime){ .us = 0 } : observed->times[index - 1];
}

// A module's call takes the time of its nodes.
static NodeTime time_of(const Observed *observed, const Hit *hit)
{
        NodeTime time = { .us = 0 };
        if (hit->from->n_parts == 0)
                return time_of_name(observed, hit->from->node);
        for (uint32_t i = 0; i < hit->from->n_parts; i++) {
                NodeTime part = time_of_name(observed, hit->from->parts[i]);
                time.us += part.us;
                time.estimated = time.estimated || part.estimated;
        }
        return time;
}

// ---- numbers ----

static void write_number(double number, Text *out)
{
        char text[NUMBER_TEXT_MAX];
        if (isnan(number))
                text_add(out, "null");
        else if (isinf(number))
                text_add(out, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        else
                text_add_n(out, text, number_print_f64(number, text));
}

static void write_extreme(const TensorStats *stats, double real, int64_t whole, Text *out)
{
        if (stats->is_float || isnan(real))
                write_number(real, out);
        else
                text_add_int(out, whole);
}

static void write_list(const int64_t *items, int n, Text *out)
{
        text_add_char(out, '[');
        for (int i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_int(out, items[i]);
        }
        text_add_char(out, ']');
}

void observed_write_stats(const TensorStats *stats, bool histogram, Text *out)
{
        text_add(out, "{\"min\": ");
        write_extreme(stats, stats->min, stats->min_int, out);
        text_add(out, ", \"max\": ");
        write_extreme(stats, stats->max, stats->max_int, out);
        text_add(out, ", \"mean\": ");
        write_number(stats->mean, out);
        text_add(out, ", \"std\": ");
        write_number(stats->std, out);
        text_addf(out, ", \"nan\": %lld, \"inf\": %lld, \"zeros\": %lld", (long long)stats->n_nan,
                  (long long)stats->n_inf, (long long)stats->n_zero);
        if (histogram) {
                text_add(out, ", \"histogram\": {\"from\": ");
                write_number(stats->from, out);
                text_add(out, ", \"to\": ");
                write_number(stats->to, out);
                text_add(out, ", \"counts\": ");
                write_list(stats->counts, STATS_BINS, out);
                text_add_char(out, '}');
        }
        text_add_char(out, '}');
}

// ---- values: containers as lists and objects ----

typedef Status (*WriteLeaf)(Observed *observed, Value leaf);

// Recursion: limits.max_nested_values.
static Status write_nested(Observed *observed, Value value, WriteLeaf leaf)
{
        Text *out = observed->out;
        bool row = value_is_sequence(value);
        uint32_t n = row ? value.seq->n : value.kind == VALUE_DICT ? value.dict->n : 0;
        if (!row && value.kind != VALUE_DICT)
                return leaf(observed, value);
        text_add_char(out, row ? '[' : '{');
        for (uint32_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "" : ", ");
                if (!row) {
                        text_add_json(out, value.dict->items[i].key->text);
                        text_add(out, ": ");
                }
                TRY(write_nested(observed, row ? value.seq->items[i] : value.dict->items[i].value, leaf));
        }
        text_add_char(out, row ? ']' : '}');
        return run_check_reply(out->n);
}

static Status write_argument(Observed *observed, Value leaf)
{
        if (leaf.kind == VALUE_DTYPE)
                text_add_json(observed->out, dtype_info[leaf.dtype].name);
        else
                value_print_json(leaf, observed->out);
        return STATUS_OK;
}

static Status write_stats(Observed *observed, Value leaf)
{
        TensorStats stats;
        if (leaf.kind == VALUE_TENSOR && stats_load(leaf.tensor, &stats))
                observed_write_stats(&stats, true, observed->out);
        else
                text_add(observed->out, "null");
        return STATUS_OK;
}

static Status write_tensor(Observed *observed, Value leaf)
{
        Text *out = observed->out;
        if (leaf.kind != VALUE_TENSOR) {
                value_print_json(leaf, out);
                return STATUS_OK;
        }
        const TensorMeta *meta = &leaf.tensor->meta;
        text_addf(out, "{\"dtype\": \"%s\", \"shape\": ", dtype_info[meta->dtype].name);
        write_list(meta->size, meta->rank, out);
        TRY(run_write_data(observed->run, leaf.tensor, out));
        text_add_char(out, '}');
        return STATUS_OK;
}

// ---- a node ----

static Status write_call(Observed *observed, const Hit *hit)
{
        Text *out = observed->out;
        text_addf(out, ", \"call\": {\"op\": \"%s\", \"target\": ", opcode_names[hit->from->op]);
        text_add_json(out, hit->from->target);
        if (hit->from->module != NULL) {
                text_add(out, ", \"module\": ");
                text_add_json(out, hit->from->module);
        }
        if (hit->from->module_type != NULL) {
                text_add(out, ", \"type\": ");
                text_add_json(out, hit->from->module_type);
        }
        const Value *pair =
                hit->call->kind == VALUE_TUPLE && hit->call->seq->n == 2 ? hit->call->seq->items : NULL;
        text_add(out, ", \"args\": ");
        if (pair == NULL)
                text_add(out, "[]");
        else
                TRY(write_nested(observed, pair[0], write_argument));
        if (pair != NULL && pair[1].kind == VALUE_DICT && pair[1].dict->n > 0) {
                text_add(out, ", \"kwargs\": ");
                TRY(write_nested(observed, pair[1], write_argument));
        }
        NodeTime time = time_of(observed, hit);
        text_addf(out, ", \"us\": %.3f%s}", time.us, time.estimated ? ", \"estimated\": true" : "");
        return STATUS_OK;
}

static Status write_hit(Observed *observed, const Hit *hit)
{
        Text *out = observed->out;
        text_add(out, "{\"node\": ");
        text_add_json(out, hit->from->node);
        if (hit->call != NULL)
                TRY(write_call(observed, hit));
        if (hit->stats != NULL) {
                text_add(out, ", \"stats\": ");
                TRY(write_nested(observed, *hit->stats, write_stats));
        }
        if (hit->tensor != NULL) {
                text_add(out, ", \"tensor\": ");
                TRY(write_nested(observed, *hit->tensor, write_tensor));
        }
        text_add_char(out, '}');
        return run_check_reply(out->n);
}

// ---- lines of text, as an interpreter's handlers would print them ----

typedef struct Lines {
        Text *out;
        Text line;
        uint32_t n;
} Lines;

static Status end_line(Lines *lines)
{
        TRY(text_status(&lines->line));
        text_add(lines->out, lines->n++ == 0 ? "" : ", ");
        text_add_json_n(lines->out, lines->line.data, lines->line.n);
        lines->line.n = 0;
        return run_check_reply(lines->out->n);
}

// A tensor's description, or NULL.
static const Value *described_shape(Value value)
{
        if (value.kind != VALUE_DICT || value.dict->n != 3 ||
            strcmp(value.dict->items[0].key->text, "shape") != 0)
                return NULL;
        return &value.dict->items[0].value;
}

static void add_shapes(Value value, Text *line, bool *first)
{
        const Value *shape = described_shape(value);
        if (shape != NULL) {
                text_add(line, *first ? "" : ", ");
                *first = false;
                text_add(line, "torch.Size([");
                for (uint32_t i = 0; i < shape->seq->n; i++)
                        text_addf(line, "%s%lld", i == 0 ? "" : ", ", (long long)shape->seq->items[i].i);
                text_add(line, "])");
        } else if (value_is_sequence(value)) {
                for (uint32_t i = 0; i < value.seq->n; i++)
                        add_shapes(value.seq->items[i], line, first); // depth: limits.max_nested_values
        }
}

static Status add_call_lines(Observed *observed, const Hit *hit, Lines *lines)
{
        static const char *const kinds[] = { "placeholder", "attribute", "function",
                                             "method",      "module",    "output" };
        bool first = true;
        NodeTime time = time_of(observed, hit);
        text_addf(&lines->line, "Calling %s: %s", kinds[hit->from->op], hit->from->target);
        TRY(end_line(lines));
        text_add(&lines->line, "Input shapes: [");
        if (hit->call->kind == VALUE_TUPLE && hit->call->seq->n == 2)
                add_shapes(hit->call->seq->items[0], &lines->line, &first);
        text_add_char(&lines->line, ']');
        TRY(end_line(lines));
        text_addf(&lines->line, "Operation: %s, Time: %.4f seconds%s", hit->from->authored, time.us / 1e6,
                  time.estimated ? " (estimated)" : "");
        return end_line(lines);
}

// The text of a value, after a word. Written by the functions for JSON.
static Status add_value_line(Observed *observed, const char *word, Value value, WriteLeaf leaf, Lines *lines)
{
        Text *out = observed->out;
        observed->out = &lines->line;
        text_addf(&lines->line, "%s: ", word);
        Status status = write_nested(observed, value, leaf);
        observed->out = out;
        TRY(status);
        return end_line(lines);
}

static Status write_lines(Observed *observed, const Hit *hit, Lines *lines)
{
        if (hit->call != NULL)
                TRY(add_call_lines(observed, hit, lines));
        if (hit->stats != NULL) {
                text_addf(&lines->line, "%s ", hit->from->authored);
                TRY(add_value_line(observed, "stats", *hit->stats, write_stats, lines));
        }
        if (hit->tensor != NULL) {
                text_addf(&lines->line, "%s ", hit->from->authored);
                TRY(add_value_line(observed, "tensor", *hit->tensor, write_tensor, lines));
        }
        return STATUS_OK;
}

// ---- rules ----

static Hit take_hit(Observed *observed, const RuleHit *from)
{
        Hit hit = { .from = from };
        if (from->call != NULL)
                hit.call = observed->next++;
        if (from->stats != NULL)
                hit.stats = observed->next++;
        if (from->tensor != NULL)
                hit.tensor = observed->next++;
        return hit;
}

static Status write_observed(Observed *observed, const RuleTrace *rule)
{
        Lines lines = { .out = observed->out };
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < rule->n_hits && status == STATUS_OK && rule->observe != 0; i++) {
                Hit hit = take_hit(observed, &rule->hits[i]);
                if (!rule->as_text)
                        text_add(observed->out, i == 0 ? "" : ", ");
                status = rule->as_text ? write_lines(observed, &hit, &lines) : write_hit(observed, &hit);
        }
        text_deinit(&lines.line);
        return status;
}

static Status write_rules(Observed *observed)
{
        Text *out = observed->out;
        text_add(out, ", \"overrides\": [");
        for (uint32_t r = 0; r < observed->graph->n_rules; r++) {
                const RuleTrace *rule = &observed->graph->rules[r];
                text_add(out, r == 0 ? "{\"matched\": [" : ", {\"matched\": [");
                for (uint32_t i = 0; i < rule->n_hits; i++) {
                        text_add(out, i == 0 ? "" : ", ");
                        text_add_json(out, rule->hits[i].authored);
                }
                text_add(out, "], \"observed\": [");
                TRY(write_observed(observed, rule));
                text_add(out, "]}");
        }
        text_add_char(out, ']');
        return text_status(out);
}

static Status add_bytes(void *context, const Value *leaf)
{
        int64_t *total = context;
        if (leaf->kind == VALUE_TENSOR)
                *total += meta_numel(&leaf->tensor->meta) * dtype_info[leaf->tensor->meta.dtype].bytes;
        return STATUS_OK;
}

static Status check_bytes(const Observed *observed)
{
        const Value *next = observed->next;
        int64_t total = 0;
        for (uint32_t r = 0; r < observed->graph->n_rules; r++) {
                const RuleTrace *rule = &observed->graph->rules[r];
                for (uint32_t i = 0; i < rule->n_hits; i++) {
                        const RuleHit *hit = &rule->hits[i];
                        next += (hit->call != NULL) + (hit->stats != NULL);
                        if (hit->tensor != NULL)
                                TRY(value_walk(*next++, add_bytes, &total));
                }
        }
        if (total > limits.max_observed_bytes)
                return fail(
                        STATUS_TOO_LARGE,
                        "the rules observe tensors of %lld bytes; the limit is %lld (max_observed_bytes in "
                        "GET /v1); observe \"stats\", or fewer nodes",
                        (long long)total, (long long)limits.max_observed_bytes);
        return STATUS_OK;
}

static bool wants_times(const Graph *graph)
{
        for (uint32_t r = 0; r < graph->n_rules; r++)
                if ((graph->rules[r].observe & OBSERVE_CALL) != 0)
                        return true;
        return false;
}

Status observed_write(RunCall *run, Text *out)
{
        const RunTask *task = &run->task;
        Observed observed = { .run = run, .graph = task->graph, .out = out };
        observed.next = task->result.fetched + task->n_fetch;
        TRY(check_bytes(&observed));
        Status status = wants_times(task->graph) ? add_times(&observed) : STATUS_OK;
        if (status == STATUS_OK)
                status = write_rules(&observed);
        free(observed.times);
        string_map_deinit(&observed.time_of);
        return status;
}

Status observed_check_reply(const RunCall *run)
{
        bool full = run->replies == &json_codec && !run->bare;
        if (run->task.n_watched == 0 || full)
                return STATUS_OK;
        return fail(STATUS_NOT_ACCEPTABLE, "what rules observe is a member of the full JSON reply; ask for "
                                           "as=json without \"reply\": \"bare\"");
}

// ---- halted ----

Status observed_add_details(const RunCall *run, Status status)
{
        const HaltReport *report = run->task.ctx.halt;
        if (report == NULL)
                return status;
        _cleanup_(text_deinit) Text text = { 0 };
        text_addf(&text, "\"kind\": \"%s\", \"result\": ", report->nan ? "nan" : "inf");
        observed_write_stats(&report->result, false, &text);
        text_add(&text, ", \"inputs\": [");
        for (uint32_t i = 0; i < report->n_inputs; i++) {
                size_t before = text.n;
                text_add(&text, i == 0 ? "{\"node\": " : ", {\"node\": ");
                text_add_json(&text, report->inputs[i].name);
                text_add(&text, ", \"stats\": ");
                observed_write_stats(&report->inputs[i].stats, false, &text);
                text_add_char(&text, '}');
                if (text.n + 2 >= FAILURE_DETAIL_MAX) { // as many as fit
                        text.n = before;
                        break;
                }
        }
        text_add_char(&text, ']');
        return text_status(&text) == STATUS_OK ? failure_members(status, text.data, text.n) : status;
}
