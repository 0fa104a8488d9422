// SPDX-License-Identifier: Apache-2.0
// shapes.c: one walk on metas, as at upload (check.c), but the caller says what the inputs are, and
// a node that fails ends it.
#include "core/compile/shapes.h"

#include "core/compile/recorder.h"
#include "core/eval/bind.h"
#include "core/graph/expr.h"
#include "core/targets/targets.h"

static const InputShape *shape_for(const InputShapes *inputs, const Node *placeholder)
{
        for (uint32_t i = 0; i < inputs->n; i++) {
                if (inputs->items[i].placeholder == placeholder)
                        return &inputs->items[i];
        }
        return NULL;
}

// ---- sizes that given shapes settle ----

typedef struct Sizes {
        Arena arena;
        StringMap symbols; // name -> int64_t *, as the given shapes have it
} Sizes;

static bool find_size(void *context, const char *symbol, ExprNumber *out)
{
        const Sizes *sizes = context;
        const int64_t *value = string_map_get(&sizes->symbols, symbol);
        if (value != NULL)
                *out = (ExprNumber){ .i = *value };
        return value != NULL;
}

static Status learn_size(Sizes *sizes, const char *text, int64_t size)
{
        Expr *expr;
        TRY(expr_parse(text, &sizes->arena, &expr));
        const char *symbol = expr_single_symbol(expr);
        int64_t solved;
        if (symbol == NULL || string_map_get(&sizes->symbols, symbol) != NULL ||
            expr_solve(expr, size, &solved) != EXPR_SOLVED)
                return STATUS_OK;
        int64_t *value = arena_alloc(&sizes->arena, sizeof(*value));
        if (value == NULL)
                return fail_memory();
        *value = solved;
        return string_map_set(&sizes->symbols, symbol, value, NULL);
}

static Status learn_sizes(Sizes *sizes, const Signature *signature, const InputShapes *shapes)
{
        for (uint32_t i = 0; i < signature->n_inputs && shapes->n > 0; i++) {
                const Input *input = &signature->inputs[i];
                const InputShape *shape = shape_for(shapes, input->placeholder);
                for (int d = 0; shape != NULL && shape->rank == input->spec.rank && d < shape->rank; d++)
                        if (input->spec.size[d].expr != NULL)
                                TRY(learn_size(sizes, input->spec.size[d].expr, shape->size[d]));
        }
        return STATUS_OK;
}

// The input with these sizes in the place of the hints.
static Status settle(Sizes *sizes, const Input *input, Input *out_input)
{
        *out_input = *input;
        int n = input->value_kind == VALUE_INT ? 1 : input->spec.rank;
        for (int d = 0; d < n && input->kind == INPUT_USER && sizes->symbols.n > 0; d++) {
                SymDim *dim = &out_input->spec.size[d];
                Expr *expr;
                ExprNumber size;
                bool known = false;
                if (dim->expr == NULL)
                        continue;
                TRY(expr_parse(dim->expr, &sizes->arena, &expr));
                TRY(expr_eval(expr, find_size, sizes, &size, &known));
                if (known && !size.is_float && size.i >= 0)
                        dim->value = size.i;
        }
        return STATUS_OK;
}

// ---- inputs ----

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

static Status left_out_input(Recorder *recorder, const Input *input, Sizes *sizes, Value *out)
{
        const Node *node = input->placeholder;
        Input settled;
        TRY(settle(sizes, input, &settled));
        TRY(recorder_input(recorder, &settled, out));
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

typedef struct Notes {
        Recorder *recorder;
        Value *values;
} Notes;

// Noted at once: later nodes may change the geometry of the same tensor (`unsqueeze_`).
static Status note_value(void *context, const Node *node, Value value)
{
        const Notes *notes = context;
        if (node->op == OP_OUTPUT)
                return STATUS_OK;
        return value_map(value, recorder_leaf, notes->recorder, &notes->values[node->index]);
}

// *out_values: one per node but the output.
static Status walk(Recorder *recorder, const Graph *graph, ValueSpan inputs, Value *out_values)
{
        Value result = value_none();
        Notes notes = { recorder, out_values };
        WalkMend mender = { mend, NULL };
        WalkVisit visit = { .see = note_value, .context = &notes };
        WalkOptions options = { .inputs = inputs, .mend = &mender, .visit = &visit };
        TRY(walk_graph(&recorder->base, graph, &options, &result, NULL));
        value_unref(result);
        return STATUS_OK;
}

static Status check_inputs(const Graph *graph, const Value *inputs, const RunContext *poll)
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
        TRY(bind_inputs(graph, (ValueSpan){ user, n }, poll, bound));
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                value_unref(bound[i]);
        return STATUS_OK;
}

static Status make_inputs(Recorder *recorder, const Graph *graph, const InputShapes *shapes, Value *inputs,
                          uint32_t *out_n)
{
        const Signature *signature = &graph->signature;
        Sizes sizes = { .symbols = { 0 } };
        arena_init(&sizes.arena, 0);
        Status status = learn_sizes(&sizes, signature, shapes);
        while (*out_n < signature->n_inputs && status == STATUS_OK) {
                const Input *input = &signature->inputs[*out_n];
                const InputShape *shape = shape_for(shapes, input->placeholder);
                Value *made = &inputs[(*out_n)++];
                status = shape != NULL ? failure_at_node(given_input(recorder, input, shape, made),
                                                         input->placeholder->name)
                                       : left_out_input(recorder, input, &sizes, made);
        }
        string_map_deinit(&sizes.symbols);
        arena_deinit(&sizes.arena);
        return status;
}

static Status walk_inputs(Recorder *recorder, const Graph *graph, const InputShapes *shapes,
                          Value *out_values)
{
        const Signature *signature = &graph->signature;
        uint32_t n_made = 0;
        _cleanup_(freep) Value *inputs = new_array((size_t)signature->n_inputs + 1, sizeof(Value));
        if (inputs == NULL)
                return fail_memory();
        Status status = make_inputs(recorder, graph, shapes, inputs, &n_made);
        if (status == STATUS_OK && shapes->checked)
                status = check_inputs(graph, inputs, recorder->poll);
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
        ShapesThen then;
        void *context;
} ShapesWalk;

static bool any_moves(const Graph *graph)
{
        bool moves = false;
        for (uint32_t i = 0; i < graph->n_nodes && !moves; i++)
                moves = node_is_call(graph->nodes[i]) &&
                        (node_effects(graph, graph->nodes[i]) & NODE_MOVES) != 0;
        return moves;
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
        recorder.moves = shapes->decompositions != DECOMPOSE_NOTHING && any_moves(graph);
        Status status = walk_inputs(&recorder, graph, shapes->inputs, values);
        recorder.base.node = NULL;
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
