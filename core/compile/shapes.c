// SPDX-License-Identifier: Apache-2.0
// shapes.c: one walk on metas, as at upload (check.c), but the caller says what the inputs are, and
// a node that fails ends it.
#include "core/compile/shapes.h"

#include "core/compile/recorder.h"
#include "core/eval/bind.h"

static const InputShape *shape_for(const InputShapes *inputs, const Node *placeholder)
{
        for (uint32_t i = 0; i < inputs->n; i++) {
                if (inputs->items[i].placeholder == placeholder)
                        return &inputs->items[i];
        }
        return NULL;
}

static Status given_input(Recorder *recorder, const Input *input, const InputShape *shape, Value *out)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t n;
        Dtype declared = input->spec.dtype;
        Dtype dtype = shape->dtype != DTYPE_NONE ? shape->dtype
                      : declared != DTYPE_NONE   ? declared
                                                 : DTYPE_F32;
        TRY(shape_numel(shape->rank, shape->size, &n));
        meta_init(&meta, dtype, shape->rank, shape->size);
        TRY(recorder_unknown(recorder, &meta, &tensor));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

static Status one_input(Recorder *recorder, const Input *input, const InputShape *shape, Value *out)
{
        const Node *node = input->placeholder;
        if (shape != NULL)
                return failure_at_node(given_input(recorder, input, shape, out), node->name);
        TRY(recorder_input(recorder, input, out));
        if (out->kind == VALUE_DYNAMIC && (node->args.seq->n > 0 || node->target[0] == '*'))
                *out = (Value){ .kind = VALUE_ABSENT };
        if (out->kind == VALUE_DYNAMIC)
                return failure_at_node(
                        fail(STATUS_INPUT,
                             "the shape of input \"%.100s\" is not known; add it: {\"shapes\": "
                             "{\"%.100s\": [1, 3]}}",
                             node->name, node->name),
                        node->name);
        return STATUS_OK;
}

static Status mend(void *context, const Node *node, Status status, Value *out)
{
        (void)context;
        (void)node;
        *out = (Value){ .kind = VALUE_DYNAMIC };
        return status == STATUS_DYNAMIC ? STATUS_OK : status;
}

// *out_values: one per node but the output.
static Status walk(Recorder *recorder, const Graph *graph, ValueSpan inputs, Value *out_values)
{
        Value result = value_none();
        WalkMend mender = { mend, NULL };
        WalkOptions options = { .inputs = inputs,
                                .mend = &mender,
                                .fetch = (const Node *const *)graph->nodes,
                                .n_fetch = graph->n_nodes - 1 };
        TRY(walk_graph(&recorder->base, graph, &options, &result, out_values));
        value_unref(result);
        return STATUS_OK;
}

static Status check_inputs(const Graph *graph, const Value *inputs)
{
        const Signature *signature = &graph->signature;
        uint32_t n = 0;
        _cleanup_(freep) Value *user = new_array((size_t)signature->n_inputs + 1, sizeof(Value));
        _cleanup_(freep) Value *bound = new_array((size_t)signature->n_inputs + 1, sizeof(Value));
        if (user == NULL || bound == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                if (signature->inputs[i].kind != INPUT_STATE)
                        user[n++] = inputs[i];
        TRY(bind_inputs(graph, (ValueSpan){ user, n }, bound));
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                value_unref(bound[i]);
        return STATUS_OK;
}

static Status walk_inputs(Recorder *recorder, const Graph *graph, const InputShapes *shapes,
                          Value *out_values)
{
        const Signature *signature = &graph->signature;
        uint32_t n_made = 0;
        Status status = STATUS_OK;
        _cleanup_(freep) Value *inputs = new_array((size_t)signature->n_inputs + 1, sizeof(Value));
        if (inputs == NULL)
                return fail_memory();
        while (n_made < signature->n_inputs && status == STATUS_OK) {
                const Input *input = &signature->inputs[n_made];
                status = one_input(recorder, input, shape_for(shapes, input->placeholder), &inputs[n_made++]);
        }
        if (status == STATUS_OK && shapes->checked)
                status = check_inputs(graph, inputs);
        if (status == STATUS_OK)
                status = walk(recorder, graph, (ValueSpan){ inputs, n_made }, out_values);
        while (n_made > 0)
                value_unref(inputs[--n_made]);
        return status;
}

typedef struct ShapesWalk {
        const Graph *graph;
        const InputShapes *inputs;
        Decompositions decompositions;
        bool recorded; // values are mapped to those of the recording
        ShapesThen then;
        void *context;
} ShapesWalk;

static Status map_values(Recorder *recorder, const Graph *graph, Value *values)
{
        for (uint32_t i = 0; i + 1 < graph->n_nodes; i++) {
                Value mapped;
                TRY(value_map(values[i], recorder_leaf, recorder, &mapped));
                value_unref(values[i]);
                values[i] = mapped;
        }
        return STATUS_OK;
}

static Status run_walk(const ShapesWalk *shapes, const RunContext *poll)
{
        Recorder recorder;
        const Graph *graph = shapes->graph;
        _cleanup_(recording_freep) Recording *recording = NULL;
        _cleanup_(freep) Value *values = new_array(graph->n_nodes, sizeof(Value));
        if (values == NULL)
                return fail_memory();
        TRY(recording_new(graph, &recording));
        recorder_init(&recorder, recording, poll);
        recorder.decompositions = shapes->decompositions;
        Status status = walk_inputs(&recorder, graph, shapes->inputs, values);
        recorder.base.node = NULL;
        if (status == STATUS_OK && shapes->recorded)
                status = map_values(&recorder, graph, values);
        if (status == STATUS_OK)
                status = shapes->then(shapes->context, recording, values);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                value_unref(values[i]);
        recorder_deinit(&recorder);
        return status;
}

Status shapes_walk(const Graph *graph, const InputShapes *inputs, const RunContext *poll, ShapesThen then,
                   void *context)
{
        return run_walk(&(ShapesWalk){ .graph = graph, .inputs = inputs, .then = then, .context = context },
                        poll);
}

Status shapes_walk_decomposed(const Graph *graph, const InputShapes *inputs, const RunContext *poll,
                              Decompositions decompositions, ShapesThen then, void *context)
{
        return run_walk(&(ShapesWalk){ .graph = graph,
                                       .inputs = inputs,
                                       .decompositions = decompositions,
                                       .recorded = true,
                                       .then = then,
                                       .context = context },
                        poll);
}

typedef struct Show {
        const Graph *graph;
        ShapeVisit visit;
        void *context;
} Show;

static Status show(void *context, const Recording *recording, const Value *values)
{
        const Show *show = context;
        (void)recording;
        for (uint32_t i = 0; i + 1 < show->graph->n_nodes; i++) {
                if (values[i].kind == VALUE_TENSOR)
                        TRY(show->visit(show->context, show->graph->nodes[i], &values[i].tensor->meta));
        }
        return STATUS_OK;
}

Status graph_shapes(const Graph *graph, const InputShapes *inputs, const RunContext *poll, ShapeVisit visit,
                    void *context)
{
        Show shows = { graph, visit, context };
        return shapes_walk(graph, inputs, poll, show, &shows);
}
