// SPDX-License-Identifier: Apache-2.0
#include "core/compile/fusing.h"

#include <string.h>
#include "core/compile/record.h"
#include "core/passes/passes.h"
#include "core/program/program.h"
#include "core/program/reasons.h"

typedef struct Fusing {
        const Graph *graph;
        const FusingInputs *inputs;
        GraphFigures *figures;
        const RecordedCall **made_by; // by node: the call with the most nodes; NULL: none computes
        bool *computes;               // by node: as recorded, before the passes
} Fusing;

static bool is_explained(const Node *node)
{
        return node_is_call(node);
}

static Status say(GraphFigures *figures, NodeFigures *node, const char *why)
{
        node->why_not = arena_text(&figures->arena, why, strlen(why));
        return node->why_not == NULL ? fail_memory() : STATUS_OK;
}

static Status say_all(const Graph *graph, GraphFigures *figures, const char *why)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (is_explained(graph->nodes[i]))
                        TRY(say(figures, &figures->nodes[i], why));
        return STATUS_OK;
}

static void note_calls(const Fusing *fusing, const Recording *recording)
{
        for (uint32_t i = 0; i < fusing->inputs->recorded->n_calls; i++) {
                const RecordedCall *call = fusing->inputs->recorded->calls[i];
                for (uint32_t k = 0; k < call->n_nodes; k++)
                        fusing->computes[call->nodes[k]->index] |= call->computes;
        }
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                for (uint32_t k = 0; k < call->n_nodes && call->computes; k++) {
                        const RecordedCall **made_by = &fusing->made_by[call->nodes[k]->index];
                        if (*made_by == NULL || (*made_by)->n_nodes < call->n_nodes)
                                *made_by = call;
                }
        }
}

static Status note_groups(const Fusing *fusing, const Recording *recording)
{
        GraphFigures *figures = fusing->figures;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                if (!call->computes || call->n_nodes < 2)
                        continue;
                const Node **nodes = arena_array(&figures->arena, call->n_nodes, sizeof(*nodes));
                if (nodes == NULL)
                        return fail_memory();
                memcpy(nodes, call->nodes, call->n_nodes * sizeof(*nodes));
                for (uint32_t k = 0; k < call->n_nodes; k++) {
                        NodeFigures *node = &figures->nodes[nodes[k]->index];
                        if (fusing->made_by[nodes[k]->index] != call)
                                continue;
                        node->fused_with = nodes;
                        node->n_fused_with = call->n_nodes;
                }
        }
        return STATUS_OK;
}

static Status explain_call(const Fusing *fusing, const Reasons *reasons, uint32_t at)
{
        const RecordedCall *call = fusing->made_by[at];
        NodeFigures *node = &fusing->figures->nodes[at];
        _cleanup_(text_deinit) Text why = { 0 };
        if (call == NULL && !fusing->computes[at])
                return say(fusing->figures, node,
                           "it computes no numbers: a view, a size or a part of a value");
        if (call == NULL)
                return say(fusing->figures, node, "it is computed when the program is built, or not needed");
        if (!reasons_covers(call))
                return say(fusing->figures, node, "it returns no tensor");
        reason_add(reasons, call, &why);
        TRY(text_status(&why));
        return say(fusing->figures, node, why.data);
}

static Status explain(const Fusing *fusing, const Recording *recording)
{
        _cleanup_(reasons_deinit) Reasons reasons = { 0 };
        TRY(reasons_init(&reasons, recording));
        for (uint32_t i = 0; i < fusing->graph->n_nodes; i++) {
                if (i % 64 == 0)
                        TRY(run_poll(fusing->inputs->poll));
                if (is_explained(fusing->graph->nodes[i]) && fusing->figures->nodes[i].n_fused_with == 0)
                        TRY(explain_call(fusing, &reasons, i));
        }
        for (uint32_t i = 0; recording->tail != NULL && i < recording->tail->n_nodes; i++) {
                const Node *node = recording->tail->nodes[i];
                if (is_explained(node))
                        TRY(say(fusing->figures, &fusing->figures->nodes[node->index],
                                "it runs eagerly, behind the program: it needs numbers that only a run "
                                "knows, or memory of a node that does"));
        }
        return STATUS_OK;
}

// The values of the walk as inputs of a run: state comes from the graph.
static Status record(const Fusing *fusing, Recording **out_recording)
{
        const Signature *signature = &fusing->graph->signature;
        Status status = STATUS_OK;
        uint32_t n = 0;
        _cleanup_(freep) Value *values = new_array((size_t)signature->n_inputs + 1, sizeof(Value));
        if (values == NULL)
                return fail_memory();
        for (; n < signature->n_inputs && status == STATUS_OK; n++) {
                const Input *input = &signature->inputs[n];
                values[n] = (Value){ .kind = VALUE_ABSENT };
                if (input->kind != INPUT_STATE && input->placeholder != NULL)
                        status = signature_value(fusing->inputs->values[input->placeholder->index],
                                                 &values[n]);
        }
        RecordOptions options = { .inputs = { values, n } };
        if (status == STATUS_OK)
                status = record_graph(fusing->graph, &options, fusing->inputs->poll, out_recording);
        while (n > 0)
                value_unref(values[--n]);
        return status;
}

static Status fill(Fusing *fusing, const Recording *recording)
{
        uint32_t n = fusing->graph->n_nodes;
        _cleanup_(freep) const RecordedCall **made_by = new_array(n, sizeof(*made_by));
        _cleanup_(freep) bool *computes = new_array(n, sizeof(*computes));
        if (made_by == NULL || computes == NULL)
                return fail_memory();
        fusing->made_by = made_by;
        fusing->computes = computes;
        note_calls(fusing, recording);
        TRY(note_groups(fusing, recording));
        return explain(fusing, recording);
}

Status graph_fusing(const Graph *graph, const FusingInputs *inputs, GraphFigures *inout_figures)
{
        _cleanup_(recording_freep) Recording *recording = NULL;
        PassContext passed = { .poll = inputs->poll, .n_threads = 1, .cache = inputs->cache };
        Fusing fusing = { .graph = graph, .inputs = inputs, .figures = inout_figures };
        Status status = record(&fusing, &recording);
        if (status == STATUS_DYNAMIC || status == STATUS_UNSUPPORTED)
                return say_all(graph, inout_figures,
                               "the graph runs eagerly: it depends on numbers that only a run knows");
        TRY(status);
        TRY(passes_run(recording, &passed));
        return fill(&fusing, recording);
}
