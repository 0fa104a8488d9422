// SPDX-License-Identifier: Apache-2.0
#include "api/routes/code_diff.h"

#include <stdio.h>
#include "core/base/line_diff.h"
#include "core/graph/print.h"

enum { DIFF_MAX_STEPS = 20000000 };

static Status print_code(const Graph *graph, Text *out)
{
        TRY(graph_print(graph, GRAPH_FORM_CODE, out));
        text_add_char(out, '\n');
        return text_status(out);
}

Status code_diff(const GraphVersion *version, const Graph *before, const Graph *after, Text *out_diff)
{
        _cleanup_(text_deinit) Text old = { 0 };
        _cleanup_(text_deinit) Text new = { 0 };
        char from[2 * STORE_NAME_MAX], to[2 * STORE_NAME_MAX];
        TRY(print_code(before, &old));
        TRY(print_code(after, &new));
        snprintf(from, sizeof(from), "%s@%lld", version->name, (long long)version->stored.version);
        snprintf(to, sizeof(to), "%s@%lld transformed", version->name, (long long)version->stored.version);
        TRY(line_diff(&(DiffSide){ from, old.data, old.n }, &(DiffSide){ to, new.data, new.n },
                      DIFF_MAX_STEPS, out_diff));
        if (out_diff->data == NULL)
                text_add(out_diff, "");
        return text_status(out_diff);
}
