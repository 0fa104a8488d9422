// SPDX-License-Identifier: Apache-2.0
#include "tests/edit/recipe.h"

#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json.h"
#include "api/readers/steps.h"
#include "core/targets/targets.h"

static void must(Status status)
{
        if (status != STATUS_OK) {
                fprintf(stderr, "%s\n", failure_current()->message);
                abort();
        }
}

Graph *recipe_graph(const json_t *document)
{
        char *text = json_dumps(document, 0);
        Graph *graph;
        CheckReport report;
        must(targets_init());
        must(fx_json_read(text, strlen(text), NULL, &graph));
        free(text);
        must(graph_resolve(graph, &report));
        must(check_report_status(&report, graph));
        check_report_deinit(&report);
        return graph;
}

Status recipe_step(Edit *edit, const json_t *step)
{
        char *text = json_dumps(step, 0), list[1 << 16];
        Steps steps = { .edit = edit };
        int n = snprintf(list, sizeof(list), "[%s]", text);
        free(text);
        if (n >= (int)sizeof(list))
                abort();
        Status status = steps_run(&steps, list, (size_t)n);
        char *message = failure_current()->message, *behind = strstr(message, "): ");
        if (status != STATUS_OK && strncmp(message, "steps[0] (", 10) == 0 && behind != NULL)
                memmove(message, behind + 3, strlen(behind + 3) + 1);
        return status;
}
