// SPDX-License-Identifier: Apache-2.0
// figures.c: sums over what one walk on metas records. Costs come from the operators' rows, as
// those of profiles do.
#include "core/compile/figures.h"

#include "core/base/limits.h"
#include "core/compile/fusing.h"
#include "core/ops/op.h"

typedef struct Counter {
        const Graph *graph;
        GraphFigures *figures;
        uint32_t *last;    // by node index: of its last reader; itself without any
        int64_t *first_of; // by buffer: index of the node that made it, or -1
        int64_t *last_of;  // by buffer: of the last reader
        uint32_t node;     // while its value is visited
        const RunContext *poll;
        PackCache *cache;
} Counter;

// ---- costs ----

static int64_t bytes_of(const TensorMeta *meta)
{
        return meta_numel(meta) * dtype_info[meta->dtype].bytes;
}

static Status add_input(void *context, Recorded *value)
{
        Cost *cost = context;
        if (value != NULL)
                cost->bytes += bytes_of(&value->tensor.meta);
        return STATUS_OK;
}

static Status cost_of(const RecordedCall *call, Cost *out_cost)
{
        Cost cost = { 0 };
        if (call->computes && call->call.op->cost != NULL) {
                cost = call->call.op->cost(&call->call);
        } else if (call->computes) {
                TRY(recorded_visit_inputs(call, add_input, &cost));
                for (int k = 0; k < (int)call->call.n_outs; k++) {
                        if (call->outs[k] == NULL)
                                continue;
                        cost.bytes += bytes_of(&call->outs[k]->tensor.meta);
                        if ((call->call.op->flags & OP_ELEMENTWISE) != 0)
                                cost.flops += meta_numel(&call->outs[k]->tensor.meta);
                }
        }
        *out_cost = cost;
        return STATUS_OK;
}

static int64_t sum(int64_t a, int64_t b)
{
        int64_t both;
        return add_i64(a, b, &both) ? both : INT64_MAX;
}

static Status add_costs(const Counter *counter, const Recording *recording)
{
        GraphFigures *figures = counter->figures;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                Cost cost;
                TRY(cost_of(call, &cost));
                if (call->n_nodes == 0)
                        continue;
                NodeFigures *node = &figures->nodes[call->nodes[0]->index];
                node->flops = sum(node->flops, cost.flops);
                node->bytes = sum(node->bytes, cost.bytes);
                figures->flops = sum(figures->flops, cost.flops);
                figures->bytes = sum(figures->bytes, cost.bytes);
        }
        return STATUS_OK;
}

// ---- memory ----

static void find_last_readers(Counter *counter)
{
        const Graph *graph = counter->graph;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                counter->last[i] = i;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                for (uint32_t k = 0; k < graph->nodes[i]->n_frees; k++)
                        counter->last[graph->nodes[i]->frees[k]->index] = i;
}

static Status note_output(void *context, Node *input)
{
        const Counter *counter = context;
        counter->last[input->index] = counter->graph->n_nodes - 1;
        return STATUS_OK;
}

static void note_tensor(const Counter *counter, const Tensor *tensor)
{
        const Buffer *buffer = buffer_of(tensor->storage);
        if (buffer == NULL || buffer->kind != BUFFER_RUN)
                return;
        if (counter->first_of[buffer->index] < 0)
                counter->first_of[buffer->index] = counter->node;
        counter->last_of[buffer->index] =
                MAX(counter->last_of[buffer->index], (int64_t)counter->last[counter->node]);
}

static Status note_leaf(void *context, const Value *leaf, Value *out)
{
        if (leaf->kind == VALUE_TENSOR)
                note_tensor(context, leaf->tensor);
        *out = value_none();
        return STATUS_OK;
}

// Bytes that begin to be live at a node, minus those that ended before it; then their sums.
static void add_live_bytes(const Counter *counter, const Recording *recording)
{
        GraphFigures *figures = counter->figures;
        uint32_t n = counter->graph->n_nodes;
        for (uint32_t b = 0; b < recording->n_buffers; b++) {
                if (counter->first_of[b] < 0)
                        continue;
                int64_t n_bytes = (int64_t)recording->buffers[b]->n_bytes;
                figures->nodes[counter->first_of[b]].live_bytes += n_bytes;
                if (counter->last_of[b] + 1 < n)
                        figures->nodes[counter->last_of[b] + 1].live_bytes -= n_bytes;
        }
        for (uint32_t i = 1; i < n; i++)
                figures->nodes[i].live_bytes += figures->nodes[i - 1].live_bytes;
        for (uint32_t i = 0; i < n; i++) {
                if (figures->nodes[i].live_bytes > figures->peak_bytes) {
                        figures->peak_bytes = figures->nodes[i].live_bytes;
                        figures->peak = i;
                }
        }
        for (uint32_t b = 0; b < recording->n_buffers; b++) {
                int64_t first = counter->first_of[b];
                if (first >= 0 && first <= figures->peak && counter->last_of[b] >= figures->peak)
                        figures->nodes[first].held_bytes += (int64_t)recording->buffers[b]->n_bytes;
        }
}

static Status add_memory(Counter *counter, const Recording *recording, const Value *values)
{
        const Graph *graph = counter->graph;
        _cleanup_(freep) int64_t *ends = new_array(2 * (size_t)recording->n_buffers, sizeof(int64_t));
        _cleanup_(freep) uint32_t *last = new_array(graph->n_nodes, sizeof(uint32_t));
        if (ends == NULL || last == NULL)
                return fail_memory();
        counter->last = last;
        counter->first_of = ends;
        counter->last_of = ends + recording->n_buffers;
        for (uint32_t b = 0; b < recording->n_buffers; b++)
                counter->first_of[b] = -1;
        find_last_readers(counter);
        TRY(node_visit_inputs(graph->output, note_output, counter));
        for (uint32_t i = 0; i + 1 < graph->n_nodes; i++) {
                Value nothing;
                counter->node = i;
                TRY(value_map(values[i], note_leaf, counter, &nothing));
                value_unref(nothing);
        }
        add_live_bytes(counter, recording);
        return STATUS_OK;
}

static Status count(void *context, const Recording *recording, const Value *values)
{
        Counter *counter = context;
        for (uint32_t i = 0; i + 1 < counter->graph->n_nodes; i++) {
                NodeFigures *node = &counter->figures->nodes[i];
                node->has_tensor = values[i].kind == VALUE_TENSOR;
                if (node->has_tensor)
                        node->meta = values[i].tensor->meta;
        }
        TRY(add_costs(counter, recording));
        TRY(add_memory(counter, recording, values));
        FusingInputs inputs = { recording, values, counter->poll, counter->cache };
        return graph_fusing(counter->graph, &inputs, counter->figures);
}

Status graph_figures(const Graph *graph, const InputShapes *inputs, const RunContext *poll, PackCache *cache,
                     GraphFigures *out_figures)
{
        GraphFigures figures = { .nodes = new_array(graph->n_nodes, sizeof(NodeFigures)) };
        Counter counter = { .graph = graph, .figures = &figures, .poll = poll, .cache = cache };
        arena_init(&figures.arena, 0);
        if (figures.nodes == NULL)
                return fail_memory();
        Status status = shapes_walk(graph, inputs, poll, count, &counter);
        if (status != STATUS_OK)
                graph_figures_deinit(&figures);
        else
                *out_figures = figures;
        return status;
}
