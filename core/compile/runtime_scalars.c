// SPDX-License-Identifier: Apache-2.0
// runtime_scalars.c: an input number is a runtime scalar if every node that reads it passes it
// unchanged to an operator. The number then reaches emit() with its tag, or an access that reports
// the read. Containers, child graphs, modules, rows with a Python body of their own and the output
// node may use the value in any way: a number that they read counts by value.
#include "core/compile/runtime_scalars.h"

#include "core/targets/targets.h"

static bool passes_numbers_on(const Node *node)
{
        const Target *target = node->resolved;
        if ((node->op != OP_CALL_FUNCTION && node->op != OP_CALL_METHOD) || target == NULL)
                return false;
        for (uint32_t i = 0; i < target->n_overloads; i++) {
                if (!op_takes_runtime_scalars(target->overloads[i]))
                        return false;
        }
        return true;
}

typedef struct Reading {
        const uint32_t *place; // by node: placeholder's number + 1; 0: no candidate
        uint64_t read, direct;
        bool twice; // `node` reads one number in two places
} Reading;

static Status note_read(void *context, Node *input)
{
        Reading *reading = context;
        if (reading->place[input->index] != 0) {
                uint64_t bit = (uint64_t)1 << (reading->place[input->index] - 1);
                reading->twice |= (reading->read & bit) != 0;
                reading->read |= bit;
        }
        return STATUS_OK;
}

static void note_direct(Reading *reading, Value value)
{
        if (value.kind == VALUE_NODE && reading->place[value.node->index] != 0)
                reading->direct |= (uint64_t)1 << (reading->place[value.node->index] - 1);
}

// The numbers whose values `node` may need.
static uint64_t values_needed_by(const Node *node, const uint32_t *place)
{
        Reading reading = { .place = place };
        (void)node_visit_inputs(node, note_read, &reading);
        if (reading.read == 0 || !passes_numbers_on(node) || reading.twice)
                return reading.read;
        for (uint32_t i = 0; i < node->args.seq->n; i++)
                note_direct(&reading, node->args.seq->items[i]);
        for (uint32_t k = 0; node->kwargs.kind == VALUE_DICT && k < node->kwargs.dict->n; k++)
                note_direct(&reading, node->kwargs.dict->items[k].value);
        return reading.read & ~reading.direct;
}

uint64_t runtime_scalars(const Graph *graph, ValueSpan inputs, const Node *const *fetch, uint32_t n_fetch)
{
        uint64_t scalars = 0;
        for (uint32_t i = 0; i < inputs.n && i < RUNTIME_SCALARS_MAX; i++) {
                if (inputs.items[i].kind == VALUE_FLOAT || inputs.items[i].kind == VALUE_INT)
                        scalars |= (uint64_t)1 << i;
        }
        _cleanup_(freep) uint32_t *place = scalars == 0 ? NULL : new_array(graph->n_nodes, sizeof(*place));
        if (place == NULL)
                return 0;
        uint32_t at = 0;
        for (uint32_t i = 0; i < graph->n_nodes && at < RUNTIME_SCALARS_MAX; i++) {
                if (graph->nodes[i]->op != OP_PLACEHOLDER)
                        continue;
                if ((scalars >> at & 1) != 0)
                        place[i] = at + 1;
                at++;
        }
        for (uint32_t i = 0; i < graph->n_nodes && scalars != 0; i++)
                scalars &= ~values_needed_by(graph->nodes[i], place);
        for (uint32_t i = 0; i < n_fetch; i++) {
                if (place[fetch[i]->index] != 0)
                        scalars &= ~((uint64_t)1 << (place[fetch[i]->index] - 1));
        }
        return scalars;
}

const char *runtime_scalar_name(const Graph *graph, uint32_t at)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (graph->nodes[i]->op == OP_PLACEHOLDER && at-- == 0)
                        return graph->nodes[i]->name;
        }
        return NULL;
}
