// SPDX-License-Identifier: Apache-2.0
// Facts that a graph does not state come from a run: from its program, which has all of them, else
// from the rows of an eager run. Inputs and outputs come from the same run.
#include "api/routes/facts.h"

typedef struct Shown {
        const ProgramInfo *program; // borrowed; knows the inputs and the whole result. NULL: none
        SignatureSummary *runs;     // the latest; may be none
        uint32_t n_runs;
        StringMap rows; // of that run: name of a node -> TensorMeta of its result
} Shown;

static void shown_deinit(Shown *shown)
{
        profile_summary_free(shown->runs, shown->n_runs);
        string_map_deinit(&shown->rows);
}

static Status look(const GraphVersion *version, const ProgramInfo *programs, uint32_t n_programs, Shown *out)
{
        for (uint32_t i = 0; i < n_programs; i++)
                if (programs[i].result != NULL && programs[i].batch == 0) {
                        out->program = &programs[i];
                        return STATUS_OK;
                }
        if (version->stats == NULL)
                return STATUS_OK;
        TRY(profile_stats_shapes(version->stats, 1, &out->runs, &out->n_runs));
        for (uint32_t i = 0; out->n_runs > 0 && i < out->runs[0].n_nodes; i++) {
                NodeSummary *row = &out->runs[0].nodes[i];
                // the last of fused nodes is the result
                const Node *node = row->n_nodes > 0 ? row->nodes[row->n_nodes - 1] : row->node;
                if (node != NULL && row->has_tensor)
                        TRY(string_map_set(&out->rows, node->name, &row->meta, NULL));
        }
        return STATUS_OK;
}

static bool is_known(const TensorSpec *spec)
{
        return spec->rank >= 0 && spec->dtype != DTYPE_NONE;
}

static void take_meta(const TensorMeta *meta, TensorFact *fact)
{
        if (meta == NULL || is_known(&fact->spec))
                return;
        fact->spec = (TensorSpec){ .dtype = meta->dtype, .rank = meta->rank };
        for (int d = 0; d < meta->rank; d++)
                fact->spec.size[d].value = meta->size[d];
}

static const TensorMeta *shown_input(const Shown *shown, uint32_t i, const Node *placeholder)
{
        const RunLabels *labels = shown->n_runs == 0 ? NULL : shown->runs[0].labels;
        if (shown->program != NULL && i < shown->program->signature.n) {
                const Value *value = &shown->program->signature.items[i];
                return value->kind == VALUE_TENSOR ? &value->tensor->meta : NULL;
        }
        if (labels != NULL && i < labels->n_inputs)
                return labels->inputs[i].is_tensor ? &labels->inputs[i].meta : NULL;
        return string_map_get(&shown->rows, placeholder->name);
}

static TensorFact input_fact(const Graph *graph, const Shown *shown, uint32_t i)
{
        const Input *input = &graph->signature.inputs[i];
        TensorFact fact = { .name = graph->signature.in_tree == NULL ? input->placeholder->target
                                                                     : input->placeholder->name,
                            .kind = input->kind == INPUT_LITERAL     ? FACT_LITERAL
                                    : input->value_kind == VALUE_INT ? FACT_INT
                                                                     : FACT_TENSOR,
                            .literal = input->literal,
                            .spec = input->spec };
        if (fact.kind == FACT_TENSOR)
                take_meta(shown_input(shown, i, input->placeholder), &fact);
        return fact;
}

static const TensorMeta *shown_output(const Shown *shown, const OutputLeaf *leaf)
{
        if (leaf->value.kind == VALUE_TENSOR)
                return &leaf->value.tensor->meta;
        return leaf->node == NULL ? NULL : string_map_get(&shown->rows, leaf->node->name);
}

static TensorFact output_fact(const OutputLeaf *leaf, const Shown *shown)
{
        TensorFact fact = { .name = leaf->name, .spec = { .dtype = DTYPE_NONE, .rank = -1 } };
        if (leaf->node != NULL && leaf->node->spec != NULL)
                fact.spec = *leaf->node->spec;
        take_meta(shown_output(shown, leaf), &fact);
        return fact;
}

static Status collect(const Graph *graph, const Shown *shown, GraphFacts *out)
{
        TRY(output_list_of(graph, shown->program == NULL ? NULL : shown->program->result, &out->list));
        out->inputs = new_array(graph->signature.n_inputs, sizeof(*out->inputs));
        out->outputs = new_array(out->list.n, sizeof(*out->outputs));
        if (out->inputs == NULL || out->outputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++)
                if (graph->signature.inputs[i].kind != INPUT_STATE)
                        out->inputs[out->n_inputs++] = input_fact(graph, shown, i);
        for (uint32_t i = 0; i < out->list.n; i++)
                out->outputs[i] = output_fact(&out->list.leaves[i], shown);
        return STATUS_OK;
}

void graph_facts_deinit(GraphFacts *facts)
{
        output_list_deinit(&facts->list);
        free(facts->inputs);
        free(facts->outputs);
        *facts = (GraphFacts){ .n_inputs = 0 };
}

Status graph_facts(const GraphVersion *version, const Graph *graph, const ProgramInfo *programs,
                   uint32_t n_programs, GraphFacts *out)
{
        _cleanup_(shown_deinit) Shown shown = { .n_runs = 0 };
        *out = (GraphFacts){ .n_inputs = 0 };
        if (graph->format == GRAPH_FX_JSON) // exports state everything
                TRY(look(version, programs, n_programs, &shown));
        return collect(graph, &shown, out);
}

Status graph_facts_now(Engine *engine, GraphVersion *version, const Graph *graph, GraphFacts *out)
{
        ProgramInfo programs[ENGINE_MAX_PROGRAMS];
        uint32_t n = engine_programs(engine, version, programs);
        Status status = graph_facts(version, graph, programs, n, out);
        for (uint32_t i = 0; i < n; i++)
                program_info_deinit(&programs[i]);
        return status;
}

Dtype fact_dtype(const TensorFact *fact)
{
        if (fact->kind == FACT_INT || (fact->kind == FACT_LITERAL && fact->literal.kind == VALUE_INT))
                return DTYPE_I64;
        if (fact->kind == FACT_LITERAL)
                return fact->literal.kind == VALUE_BOOL ? DTYPE_BOOL : DTYPE_F64;
        return fact->spec.dtype == DTYPE_NONE ? DTYPE_F32 : fact->spec.dtype;
}
