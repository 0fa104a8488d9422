// SPDX-License-Identifier: Apache-2.0
// FX JSON: a document into a graph; the graph in all forms, resolved, and written again, which must
// read back as the same graph.
#include "api/readers/fx_json.h"
#include "core/graph/print.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"
#include "tests/fuzz/fuzz.h"

static void print_all(const Graph *graph)
{
        static const GraphForm forms[] = { GRAPH_FORM_GRAPH, GRAPH_FORM_CODE, GRAPH_FORM_TABULAR };
        for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
                Text text = { 0 };
                Status status = graph_print(graph, forms[i], &text);
                if (status != STATUS_OK)
                        require_told(status);
                text_deinit(&text);
        }
}

static void write_and_read(const Graph *graph)
{
        Text first = { 0 }, second = { 0 };
        Graph *again = NULL;
        Status status = fx_json_write(graph, true, &first);
        if (status != STATUS_OK) {
                require_told(status);
        } else {
                status = fx_json_read(first.data, first.n, NULL, &again);
                require(status == STATUS_OK, "what was written is not read: %s\n%.*s",
                        failure_current()->message, (int)first.n, first.data);
                require(fx_json_write(again, true, &second) == STATUS_OK, "written once, but not twice");
                require(first.n == second.n && memcmp(first.data, second.data, first.n) == 0,
                        "written twice differs:\n%.*s\n%.*s", (int)first.n, first.data, (int)second.n,
                        second.data);
        }
        graph_unref(again);
        text_deinit(&first);
        text_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static bool ready;
        if (!ready)
                require(ops_init() == STATUS_OK && targets_init() == STATUS_OK, "no operators");
        ready = true;
        Graph *graph = NULL;
        CheckReport report;
        Status status = fx_json_read((const char *)data, n, NULL, &graph);
        if (status != STATUS_OK) {
                require_told(status);
                require(graph == NULL, "a graph beside a failure");
                return 0;
        }
        write_and_read(graph);
        print_all(graph);
        status = graph_resolve(graph, &report);
        if (status == STATUS_OK)
                check_report_deinit(&report);
        else
                require_told(status);
        print_all(graph);
        graph_unref(graph);
        return 0;
}
