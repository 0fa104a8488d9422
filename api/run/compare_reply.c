// SPDX-License-Identifier: Apache-2.0
// compare_reply.c: what a comparison found, as JSON and as lines of text. Differences are followed
// in the order in which "a" runs its nodes.
#include <math.h>
#include <string.h>
#include "api/run/compare.h"
#include "core/ops/choice.h"

#define NOTE_COMPILED                                                                                        \
        "a compiled side gives the values of its nodes in a program that was made to give them; it is "      \
        "another program than the one that serves, and its values are those at the end of the run"

// ---- what was found ----
static const CompareRow *first_of(const CompareRow *rows, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (!rows[i].close.close)
                        return &rows[i];
        return NULL;
}

static const CompareRow *first_difference(const CompareRun *run)
{
        const CompareRow *first = first_of(run->nodes.rows, run->nodes.n_rows);
        return first != NULL ? first : first_of(run->output_rows, run->n_output_rows);
}

static bool is_equal(const CompareRun *run)
{
        return first_of(run->output_rows, run->n_output_rows) == NULL;
}

static const char *name_of(const CompareRow *row)
{
        return row->name == NULL ? "" : row->name;
}

static bool any_compiled(const CompareRun *run)
{
        return run->sides[0].is_compiled || run->sides[1].is_compiled;
}

// ---- JSON ----
static void add_figures(Text *out, const CompareRow *row)
{
        text_addf(out, "\"close\": %s, \"max_abs\": ", row->close.close ? "true" : "false");
        text_add_f64(out, row->close.max_abs);
        text_add(out, ", \"max_rel\": ");
        text_add_f64(out, row->close.max_rel);
        text_addf(out, ", \"mismatched\": %lld, \"of\": %lld", (long long)row->close.n_mismatched,
                  (long long)row->close.n);
        if (row->message != NULL) {
                text_add(out, ", \"message\": ");
                text_add_json(out, row->message);
        }
        text_add_char(out, '}');
}

static void add_side(const CompareRun *run, int at, Text *out)
{
        const CompareSide *side = &run->sides[at];
        if (side->task == NULL) {
                text_addf(out, "{\"samples\": %lld}", (long long)run->body->sides[at].sample);
                return;
        }
        const GraphVersion *version = side->task->version;
        text_add(out, "{\"graph\": ");
        text_add_json(out, version->name);
        text_addf(out, ", \"version\": %lld, \"id\": \"%s\", \"mode\": \"%s\"",
                  (long long)version->stored.version, version->stored.id.hex,
                  side->is_compiled ? "compiled" : "eager");
        if (side->is_compiled && side->task->precision != PRECISION_F32)
                text_addf(out, ", \"precision\": \"%s\"", precision_names[side->task->precision]);
        if (side->is_compiled && side->task->bucket != 0)
                text_addf(out, ", \"tolerance\": %g", bucket_tolerance(side->task->bucket));
        if (run->body->sides[at].steps != NULL)
                text_add(out, ", \"steps\": true");
        if (run_has_recipe(&run->calls[at]))
                text_add(out, ", \"overrides\": true");
        if (run->body->n_times > 0)
                text_addf(out, ", \"us\": %.1f", (double)run->times[at] / 1000);
        text_add_char(out, '}');
}

static void add_outputs(const CompareRun *run, Text *out)
{
        text_add(out, ",\n \"outputs\": [");
        for (uint32_t i = 0; i < run->n_output_rows; i++) {
                text_add(out, i == 0 ? "\n  {\"name\": " : ",\n  {\"name\": ");
                text_add_json(out, run->outputs[0].leaves[i].name);
                text_add(out, ", \"node\": ");
                text_add_json(out, name_of(&run->output_rows[i]));
                text_add(out, ", ");
                add_figures(out, &run->output_rows[i]);
        }
        text_add_char(out, ']');
}

static void add_alone(const CompareRun *run, int at, Text *out)
{
        for (uint32_t i = 0; i < run->nodes.n_alone[at]; i++) {
                text_add(out, i == 0 ? "" : ", ");
                text_add_json(out, run->nodes.alone[at][i]->name);
        }
}

static void add_nodes(const CompareRun *run, Text *out)
{
        text_add(out, ",\n \"nodes\": [");
        for (uint32_t i = 0; i < run->nodes.n_rows; i++) {
                const CompareRow *row = &run->nodes.rows[i];
                text_add(out, i == 0 ? "\n  {\"a\": " : ",\n  {\"a\": ");
                text_add_json(out, row->a->name);
                text_add(out, ", \"b\": ");
                text_add_json(out, row->name_b);
                text_add(out, ", ");
                add_figures(out, row);
        }
        text_add(out, "],\n \"unmatched\": {\"a\": [");
        add_alone(run, 0, out);
        text_add(out, "], \"b\": [");
        add_alone(run, 1, out);
        text_addf(out, "]},\n \"runs\": %u", run->nodes.n_runs);
        if (any_compiled(run))
                text_add(out, ",\n \"note\": \"" NOTE_COMPILED "\"");
}

static void add_first(const CompareRun *run, Text *out)
{
        const CompareRow *first = first_difference(run);
        text_add(out, ",\n \"first\": ");
        if (first == NULL) {
                text_add(out, "null");
                return;
        }
        text_add(out, "{\"node\": ");
        text_add_json(out, name_of(first));
        text_add(out, ", \"message\": ");
        text_add_json(out, first->message);
        text_add_char(out, '}');
}

Status compare_write_json(const CompareRun *run, Text *out)
{
        text_addf(out, "{\"equal\": %s,\n \"a\": ", is_equal(run) ? "true" : "false");
        add_side(run, 0, out);
        text_add(out, ",\n \"b\": ");
        add_side(run, 1, out);
        if (run->drew)
                text_addf(out, ",\n \"seed\": %lld", (long long)run->calls[0].task.generator.seed);
        add_first(run, out);
        add_outputs(run, out);
        if (run->walked)
                add_nodes(run, out);
        text_add(out, "}\n");
        return text_status(out);
}

// ---- text ----
static void add_side_line(const CompareRun *run, int at, Text *out)
{
        const CompareSide *side = &run->sides[at];
        text_addf(out, "%s: ", at == 0 ? "a" : "b");
        if (side->task == NULL)
                text_addf(out, "samples %lld\n", (long long)run->body->sides[at].sample);
        else
                text_addf(out, "%s version %lld, %s%s%s", side->task->version->name,
                          (long long)side->task->version->stored.version,
                          side->is_compiled ? "compiled" : "eager",
                          run->body->sides[at].steps != NULL ? ", with steps" : "",
                          run_has_recipe(&run->calls[at]) ? ", with overrides" : "");
        if (run->body->n_times > 0)
                text_addf(out, ", %.1f us", (double)run->times[at] / 1000);
        if (side->task != NULL)
                text_add_char(out, '\n');
}

static void add_line(const char *name, const CompareRow *row, Text *out)
{
        if (!row->close.close && isnan(row->close.max_abs) && row->close.n == 0) {
                text_addf(out, "%-9s %-10s %-10s %10s / %-10s %s\n", "differs", "-", "-", "-", "-", name);
                return;
        }
        text_addf(out, "%-9s %-10.3g %-10.3g %10lld / %-10lld %s\n", row->close.close ? "close" : "differs",
                  row->close.max_abs, row->close.max_rel, (long long)row->close.n_mismatched,
                  (long long)row->close.n, name);
}

static void add_heading(const char *what, Text *out)
{
        text_addf(out, "\n%-9s %-10s %-10s %10s / %-10s %s\n", "", "max abs", "max rel", "mismatched", "of",
                  what);
}

static void add_alone_line(const CompareRun *run, int at, Text *out)
{
        if (run->nodes.n_alone[at] == 0)
                return;
        text_addf(out, "only in %s:", at == 0 ? "a" : "b");
        for (uint32_t i = 0; i < run->nodes.n_alone[at]; i++)
                text_addf(out, "%s %s", i == 0 ? "" : ",", run->nodes.alone[at][i]->name);
        text_add_char(out, '\n');
}

Status compare_write_text(const CompareRun *run, Text *out)
{
        const CompareRow *first = first_difference(run);
        add_side_line(run, 0, out);
        add_side_line(run, 1, out);
        if (run->drew)
                text_addf(out, "seed: %lld\n", (long long)run->calls[0].task.generator.seed);
        text_add(out, is_equal(run) ? "the results are close\n" : "the results differ\n");
        add_heading("output", out);
        for (uint32_t i = 0; i < run->n_output_rows; i++)
                add_line(run->outputs[0].leaves[i].name, &run->output_rows[i], out);
        if (run->walked) {
                add_heading("node of a, in the order of its run", out);
                for (uint32_t i = 0; i < run->nodes.n_rows; i++)
                        add_line(run->nodes.rows[i].a->name, &run->nodes.rows[i], out);
                add_alone_line(run, 0, out);
                add_alone_line(run, 1, out);
                if (any_compiled(run))
                        text_add(out, "note: " NOTE_COMPILED "\n");
        }
        if (first != NULL)
                text_addf(out, "\nfirst difference: %s\n%s\n", name_of(first), first->message);
        return text_status(out);
}
