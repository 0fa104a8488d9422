// SPDX-License-Identifier: Apache-2.0
// print_tabular.c: the table of Graph.print_tabular, which is tabulate's "simple" layout: a header,
// a rule, columns two blanks apart, everything to the left (the last row is the output node's, so
// no column consists of numbers alone), no blanks at line ends. Function objects, whose repr holds
// an address, appear by qualified name; overloads as PyTorch prints them ("aten.add.Tensor").
#include <string.h>
#include "core/graph/print_forms.h"

enum { N_COLUMNS = 5, MIN_PADDING = 2 };
static const char *const headers[N_COLUMNS] = { "opcode", "name", "target", "args", "kwargs" };

typedef struct Table {
        Text cells;   // one after the other
        size_t *ends; // of each cell, in `cells`
        size_t n;
        size_t width[N_COLUMNS]; // in characters
} Table;

static void end_cell(Table *table)
{
        size_t start = table->n == 0 ? 0 : table->ends[table->n - 1];
        size_t *width = &table->width[table->n % N_COLUMNS];
        if (table->cells.data != NULL)
                *width = MAX(*width, python_length(table->cells.data + start, table->cells.n - start));
        table->ends[table->n++] = table->cells.n;
}

// A printed overload leaves "torch.ops." away, a higher-order operator its namespace too.
static void add_target(const Node *node, Text *out)
{
        const char *target = node->target;
        if (node->op == OP_CALL_FUNCTION && strncmp(target, "torch.ops.higher_order.", 23) == 0)
                target += 23;
        else if (node->op == OP_CALL_FUNCTION && strncmp(target, "torch.ops.", 10) == 0)
                target += 10;
        text_add(out, target);
}

static void add_row(Table *table, const Node *node)
{
        text_add(&table->cells, opcode_names[node->op]);
        end_cell(table);
        text_add(&table->cells, node->name);
        end_cell(table);
        add_target(node, &table->cells);
        end_cell(table);
        python_repr(node->args, NULL, &table->cells);
        end_cell(table);
        python_repr(node->kwargs, NULL, &table->cells);
        end_cell(table);
}

static void trim_line(Text *out, size_t start)
{
        while (out->data != NULL && out->n > start && out->data[out->n - 1] == ' ')
                out->data[--out->n] = '\0';
}

static void layout(const Table *table, Text *out)
{
        size_t line = out->n;
        for (int c = 0; c < N_COLUMNS; c++)
                text_addf(out, "%s%-*s", c == 0 ? "" : "  ", (int)table->width[c], headers[c]);
        trim_line(out, line);
        text_add_char(out, '\n');
        for (int c = 0; c < N_COLUMNS; c++) {
                text_add(out, c == 0 ? "" : "  ");
                text_repeat(out, '-', table->width[c]);
        }
        size_t start = 0;
        for (size_t i = 0; i < table->n; i++) {
                const char *cell = table->cells.data + start;
                size_t n = table->ends[i] - start, c = i % N_COLUMNS;
                if (c == 0) {
                        text_add_char(out, '\n');
                        line = out->n;
                }
                text_add(out, c == 0 ? "" : "  ");
                text_add_n(out, cell, n);
                text_repeat(out, ' ', table->width[c] - python_length(cell, n));
                if (c == N_COLUMNS - 1)
                        trim_line(out, line);
                start = table->ends[i];
        }
}

Status print_tabular(const Graph *graph, Text *out)
{
        _cleanup_(freep) size_t *ends = new_array((size_t)graph->n_nodes * N_COLUMNS, sizeof(*ends));
        if (ends == NULL)
                return fail_memory();
        Table table = { .ends = ends };
        for (int c = 0; c < N_COLUMNS; c++)
                table.width[c] = strlen(headers[c]) + MIN_PADDING;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                add_row(&table, graph->nodes[i]);
        Status status = text_status(&table.cells);
        if (status == STATUS_OK)
                layout(&table, out);
        text_deinit(&table.cells);
        return status;
}
