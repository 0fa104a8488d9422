// SPDX-License-Identifier: Apache-2.0
// Recipes: a graph in FX JSON, a line "---", and a list of steps, patterns included. What they make
// passes lint and is written as FX JSON that reads back; the report is JSON.
#include "api/readers/fx_json.h"
#include "api/readers/steps.h"
#include "core/base/json.h"
#include "core/base/limits.h"
#include "core/graph/print.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "tests/fuzz/fuzz.h"

static bool finished; // the last recipe was carried out to its end

bool fuzz_keep(void)
{
        return finished;
}

static void prepare(void)
{
        static bool ready;
        if (ready)
                return;
        require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        limits.max_run_memory = 16 << 20;
        limits.run_deadline_ms = 1000;
        limits.max_match_steps = 100000;
        limits.max_edit_visits = 100000;
        limits.max_edit_growth = 1000;
        ready = true;
}

static Status find_saved(void *context, const char *name, Text *out)
{
        const ByteSpan *steps = context;
        if (strcmp(name, "itself") != 0)
                return fail(STATUS_NOT_FOUND, "no pass");
        text_add_n(out, (const char *)steps->data, steps->n);
        return text_status(out);
}

static void check_report(const Text *report)
{
        Text list = { 0 };
        Arena arena;
        JsonReader *json = NULL;
        text_addf(&list, "[%s]", report->data == NULL ? "" : report->data);
        arena_init(&arena, 0);
        require(json_open(list.data, list.n, JSON_MAX_DEPTH, 0, &arena, &json) == STATUS_OK &&
                        json_skip(json) == STATUS_OK && json_finish(json) == STATUS_OK,
                "the report is no JSON: %s", list.data);
        json_close(json);
        arena_deinit(&arena);
        text_deinit(&list);
}

static void check_made(const Graph *graph)
{
        Text text = { 0 };
        Graph *again = NULL;
        require(graph_lint(graph) == STATUS_OK, "%s", failure_current()->message);
        Status status = fx_json_write(graph, true, &text);
        if (status == STATUS_OK)
                status = fx_json_read(text.data, text.n, NULL, &again);
        if (status != STATUS_OK)
                require_told(status);
        graph_unref(again);
        text_deinit(&text);
}

static void run(const Graph *base, ByteSpan list)
{
        Text report = { 0 };
        Graph *made = NULL;
        const SavedSteps saved = { find_saved, &list };
        Steps steps = { .saved = &saved, .report = &report };
        Status status = edit_new(base, &steps.edit);
        if (status == STATUS_OK)
                status = steps_run(&steps, (const char *)list.data, list.n);
        if (status == STATUS_OK) {
                check_report(&report);
                status = edit_finish(steps.edit, &made);
        }
        if (status != STATUS_OK)
                require_told(status);
        else
                check_made(made);
        finished = status == STATUS_OK;
        graph_unref(made);
        edit_free(steps.edit);
        text_deinit(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const char mark[] = "\n---\n";
        const char *text = (const char *)data, *at = memmem(data, n, mark, sizeof(mark) - 1);
        Graph *graph = NULL;
        CheckReport report;
        prepare();
        finished = false;
        if (at == NULL)
                return 0;
        const char *steps = at + sizeof(mark) - 1;
        ByteSpan list = { (const uint8_t *)steps, n - (size_t)(steps - text) };
        Status status = steps_check(steps, list.n);
        if (status != STATUS_OK)
                require_told(status);
        status = fx_json_read(text, (size_t)(at - text), NULL, &graph);
        if (status == STATUS_OK)
                status = graph_resolve(graph, &report);
        if (status == STATUS_OK) {
                status = check_report_status(&report, graph);
                check_report_deinit(&report);
        }
        if (status == STATUS_OK)
                run(graph, list);
        else
                require_told(status);
        graph_unref(graph);
        return 0;
}
