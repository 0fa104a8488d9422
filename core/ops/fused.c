// SPDX-License-Identifier: Apache-2.0
// fused.c: groups of pointwise operators. Tracing walks the body on metas with the rows' own infer
// and binding. It gives the outputs' metas and, on request, the tile program, with the same loops
// and conversions as the nodes run one by one.
#include "core/ops/fused.h"

#include <string.h>
#include "core/kernels/pointwise/tile.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"
#include "core/ops/fused_tail.h"
#include "core/ops/pointwise.h"

typedef struct Traced {
        Tensor tensor; // meta only
        TileValueId value;
        int operand; // placeholders: which input
} Traced;

typedef struct Trace {
        const Graph *body;
        Traced *nodes;        // by index
        TileProgram *program; // NULL: metas only
        const Node *tail;     // the call that ends the group; NULL: pointwise to the end
        FusedTail *out_tail;  // with a program
} Trace;

static bool is_cast(const OpDef *op)
{
        static const char name[] = "aten::_to_copy(";
        return strncmp(op->schema, name, sizeof(name) - 1) == 0;
}

static bool can_cast(const TensorMeta *from, const TensorMeta *to)
{
        DtypeSet allowed = DTYPES_REAL & ~((DtypeSet)1 << DTYPE_U64);
        return (allowed >> from->dtype & 1) != 0 && (allowed >> to->dtype & 1) != 0;
}

static bool has_complex(const OpCall *call, const PointBound *bound)
{
        bool found = point_is_complex(bound->common) || point_is_complex(bound->out);
        for (int k = 0; k < bound->n_inputs && !found; k++) {
                const PointInput *input = &bound->inputs[k];
                found = point_is_complex(input->tensor < 0 ? input->dtype
                                                           : arg_meta(call, input->arg)->dtype);
        }
        return found;
}

bool fused_takes(const OpCall *call)
{
        PointBound bound;
        if (call->inplace || call->n_outs != 1 || call->outs[0].kind != OUT_FRESH)
                return false;
        if (is_cast(call->op))
                return arg_meta(call, SELF) != NULL && can_cast(arg_meta(call, SELF), &call->outs[0].meta);
        if (call->op->run != pointwise_run_op)
                return false;
        // A row that may refuse values is not taken: the group could not name the node.
        // Tiles hold no complex numbers.
        return point_bind(call, &bound) == STATUS_OK && !pointwise_may_fail(call) &&
               !has_complex(call, &bound);
}

// ---- one row ----
// A number in a Tensor slot becomes a 0-dim wrapped tensor, as in emit.
static void wrap_number(Value number, Tensor *out)
{
        *out = (Tensor){ .meta = { .wrapped = true } };
        out->meta.dtype = number.kind == VALUE_BOOL  ? DTYPE_BOOL
                          : number.kind == VALUE_INT ? DTYPE_I64
                                                     : DTYPE_F64;
}

static void number_element(Value number, PointParam *out)
{
        *out = (PointParam){ 0 };
        if (number.kind == VALUE_FLOAT)
                out->f = number.f;
        else if (number.kind == VALUE_INT)
                out->i = number.i;
        else
                memcpy(out, &number.b, sizeof(number.b));
}

// `values[arg]`: the tile value of a schema position; numbers[arg] where that is a number.
static Status add_row(TileProgram *program, const OpCall *call, const TileValueId *values,
                      const Value *numbers, TileValueId *out_value)
{
        PointBound bound;
        TRY(point_bind(call, &bound));
        TileOp op = {
                .kernel = bound.kernel, .common = bound.common, .out = bound.out, .params = &bound.params
        };
        for (int k = 0; k < bound.n_inputs; k++) {
                const PointInput *input = &bound.inputs[k];
                PointParam element = input->number;
                bool single = true;
                if (value_is_number(numbers[input->arg])) {
                        Tensor wrapped;
                        wrap_number(numbers[input->arg], &wrapped);
                        number_element(numbers[input->arg], &element);
                        TRY(tile_add_number(program, wrapped.meta.dtype, element, &op.in[k]));
                } else if (input->tensor < 0) {
                        TRY(tile_add_number(program, input->dtype, element, &op.in[k]));
                } else {
                        op.in[k] = values[input->arg];
                        single = meta_numel(arg_meta(call, input->arg)) == 1;
                }
                op.exact[k] = k == 1 && bound.op->exact_scalar && single && dtype_is_float(bound.common);
        }
        return tile_add_op(program, &op, out_value);
}

// ---- the body ----
typedef struct BodyCall {
        Value args[SCHEMA_MAX_ARGS], numbers[SCHEMA_MAX_ARGS];
        Tensor wrapped[SCHEMA_MAX_ARGS];
        TileValueId values[SCHEMA_MAX_ARGS];
        const Traced *made[SCHEMA_MAX_ARGS]; // NULL: no tensor of the body
} BodyCall;

static Status trace_args(const Trace *trace, const Node *node, const Overload *overload, BodyCall *call)
{
        const Schema *schema = &overload->schema;
        CallArgs given = { .args = node->args.seq->items, .n_args = node->args.seq->n };
        uint64_t bits;
        if (node->kwargs.kind == VALUE_DICT) {
                given.kwargs = node->kwargs.dict->items;
                given.n_kwargs = node->kwargs.dict->n;
        }
        TRY(schema_bind(schema, &given, BIND_NUMBERS, call->args, &bits));
        for (uint32_t i = 0; i < schema->n_args; i++) {
                Value *arg = &call->args[i];
                call->numbers[i] = value_none();
                call->made[i] = NULL;
                if (arg->kind == VALUE_NODE) {
                        Traced *traced = &trace->nodes[arg->node->index];
                        call->values[i] = traced->value;
                        call->made[i] = traced;
                        *arg = (Value){ .kind = VALUE_TENSOR, .tensor = &traced->tensor };
                } else if (schema->args[i].type == ARG_TENSOR && value_is_number(*arg)) {
                        call->numbers[i] = *arg;
                        wrap_number(*arg, &call->wrapped[i]);
                        *arg = (Value){ .kind = VALUE_TENSOR, .tensor = &call->wrapped[i] };
                }
        }
        return STATUS_OK;
}

static Status add_call(TileProgram *program, const OpCall *call, const BodyCall *body, TileValueId *out_value)
{
        if (is_cast(call->op))
                return tile_add_cast(program, body->values[0], call->outs[0].meta.dtype, out_value);
        return add_row(program, call, body->values, body->numbers, out_value);
}

// The tile program's only output is the rows that the tail reads.
static Status end_with(const Trace *trace, const OpCall *call, const BodyCall *body)
{
        int operand[SCHEMA_MAX_ARGS];
        for (uint32_t i = 0; i < call->n_args; i++)
                operand[i] = i > 0 && body->made[i] != NULL ? body->made[i]->operand : -1;
        TRY(tile_add_output(trace->program, body->values[0], arg_meta(call, SELF)));
        return fused_tail_init(trace->out_tail, call, operand);
}

static Status trace_tail(const Trace *trace, const Node *node)
{
        const Overload *overload = op_find(node->target);
        BodyCall body;
        OpCall call;
        TRY(trace_args(trace, node, overload, &body));
        TRY(call_open(NULL, overload, body.args, 0, &call));
        Status status = call.op->infer(&call);
        if (status == STATUS_OK &&
            (!fused_takes_tail(&call) || body.made[0] == NULL || body.made[0]->operand >= 0))
                status = fail(STATUS_VALUE, "fxserve::fused: %s cannot end a group with these arguments",
                              node->target);
        if (status == STATUS_OK && trace->program != NULL)
                status = end_with(trace, &call, &body);
        trace->nodes[node->index].tensor.meta = call.outs[0].meta;
        call_close(&call);
        return status;
}

static bool is_pointwise(const Overload *overload)
{
        return overload != NULL && !overload->inplace &&
               (overload->op->run == pointwise_run_op || is_cast(overload->op));
}

static Status trace_call(const Trace *trace, const Node *node)
{
        const Overload *overload = op_find(node->target);
        if (node == trace->tail)
                return trace_tail(trace, node);
        if (!is_pointwise(overload))
                return fail(STATUS_VALUE, "fxserve::fused: %s is no pointwise operator", node->target);
        BodyCall body;
        OpCall call;
        TRY(trace_args(trace, node, overload, &body));
        TRY(call_open(NULL, overload, body.args, 0, &call));
        Status status = call.op->infer(&call);
        if (status == STATUS_OK && !fused_takes(&call))
                status = fail(STATUS_VALUE,
                              "fxserve::fused: %s cannot be part of a group with these arguments",
                              node->target);
        if (status == STATUS_OK && trace->program != NULL)
                status = add_call(trace->program, &call, &body, &trace->nodes[node->index].value);
        trace->nodes[node->index].tensor.meta = call.outs[0].meta;
        call_close(&call);
        return status;
}

// Inputs that only the tail reads come last: the tile program does not have them.
static bool only_tail_reads(const Trace *trace, const Node *node)
{
        if (trace->tail == NULL || node->n_users != 1)
                return false;
        for (uint32_t i = 0; i < trace->tail->args.seq->n; i++) {
                const Value *arg = &trace->tail->args.seq->items[i];
                if (arg->kind == VALUE_NODE && arg->node == node)
                        return true;
        }
        return false;
}

static const Node *find_tail(const Graph *body)
{
        for (uint32_t i = body->n_nodes; i > 0; i--) {
                const Node *node = body->nodes[i - 1];
                if (node->op == OP_CALL_FUNCTION)
                        return op_find(node->target) == NULL || is_pointwise(op_find(node->target)) ? NULL
                                                                                                    : node;
        }
        return NULL;
}

static Status trace_node(const Trace *trace, const Node *node, const OpCall *call, uint32_t *inout_inputs)
{
        switch (node->op) {
        case OP_PLACEHOLDER: {
                const Tensor *input = *inout_inputs < arg_list_length(call, FUSED_INPUTS)
                                              ? arg_list_tensor(call, FUSED_INPUTS, *inout_inputs)
                                              : NULL;
                if (input == NULL)
                        return fail(STATUS_VALUE,
                                    "fxserve::fused: the body has more placeholders than there are inputs");
                trace->nodes[node->index].operand = (int)(*inout_inputs)++;
                trace->nodes[node->index].tensor.meta = input->meta;
                return trace->program == NULL || only_tail_reads(trace, node)
                               ? STATUS_OK
                               : tile_add_input(trace->program, &input->meta,
                                                &trace->nodes[node->index].value);
        }
        case OP_CALL_FUNCTION:
                return trace_call(trace, node);
        case OP_OUTPUT:
                return STATUS_OK;
        default:
                return fail(STATUS_VALUE, "fxserve::fused: the body has a %s node", opcode_names[node->op]);
        }
}

// visit(context, k, traced): the outputs in order.
typedef Status (*OutputVisit)(void *context, uint32_t k, const Traced *traced);
static Status trace_outputs(const Trace *trace, OutputVisit visit, void *context)
{
        const Value *result = &trace->body->output->args.seq->items[0];
        if (!value_is_sequence(*result))
                return fail(STATUS_VALUE, "fxserve::fused: the body returns no tuple");
        for (uint32_t k = 0; k < result->seq->n; k++) {
                if (result->seq->items[k].kind != VALUE_NODE)
                        return fail(STATUS_VALUE,
                                    "fxserve::fused: the body returns something else than tensors");
                TRY(visit(context, k, &trace->nodes[result->seq->items[k].node->index]));
        }
        return STATUS_OK;
}

static Status trace_body(const OpCall *call, TileProgram *program, FusedTail *out_tail, OutputVisit visit,
                         void *context)
{
        const Graph *body = call->args[FUSED_BODY].graph;
        uint32_t n_inputs = 0;
        _cleanup_(freep) Traced *nodes = new_array(body->n_nodes, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        Trace trace = { .body = body,
                        .nodes = nodes,
                        .program = program,
                        .tail = find_tail(body),
                        .out_tail = out_tail };
        for (uint32_t i = 0; i < body->n_nodes; i++)
                nodes[i].operand = -1;
        for (uint32_t i = 0; i < body->n_nodes; i++)
                TRY(trace_node(&trace, body->nodes[i], call, &n_inputs));
        if (n_inputs != arg_list_length(call, FUSED_INPUTS))
                return fail(STATUS_VALUE,
                            "fxserve::fused: the body has fewer placeholders than there are inputs");
        return trace.tail != NULL && program != NULL ? STATUS_OK : trace_outputs(&trace, visit, context);
}

// ---- the operator ----
static Status give_output(void *context, uint32_t k, const Traced *traced)
{
        return out_fresh(context, k, &traced->tensor.meta);
}

static Status fused_infer(OpCall *call)
{
        const Value *result = &call->args[FUSED_BODY].graph->output->args.seq->items[0];
        TRY(out_reserve(call, value_is_sequence(*result) ? result->seq->n : 0));
        return trace_body(call, NULL, NULL, give_output, call);
}

bool fused_reduces(const OpCall *call)
{
        const Node *tail = call->op->infer == fused_infer ? find_tail(call->args[FUSED_BODY].graph) : NULL;
        return tail != NULL && fused_tail_reduces(op_find(tail->target)->op);
}

static Status add_output(void *context, uint32_t k, const Traced *traced)
{
        (void)k;
        return tile_add_output(context, traced->value, &traced->tensor.meta);
}

typedef struct FusedImpl {
        TileProgram *program;
        FusedTail tail; // call.op NULL: none
} FusedImpl;

static void fused_free(void *impl)
{
        FusedImpl *fused = impl;
        tile_program_free(fused->program);
        fused_tail_deinit(&fused->tail);
        free(fused);
}

static Status fused_init(FusedImpl *fused, const OpCall *call)
{
        TRY(tile_program_new(&fused->program));
        TRY(trace_body(call, fused->program, &fused->tail, add_output, fused->program));
        TRY(tile_finish(fused->program));
        if (fused->tail.call.op != NULL && !tile_has_dense_outputs(fused->program))
                return fail(STATUS_VALUE, "fxserve::fused: the rows of a tail are not dense");
        return STATUS_OK;
}

static Status fused_new(const OpCall *call, FusedImpl **out_fused)
{
        FusedImpl *fused = calloc(1, sizeof(*fused));
        Status status = fused == NULL ? fail_memory() : fused_init(fused, call);
        if (status == STATUS_OK)
                *out_fused = fused;
        else if (fused != NULL)
                fused_free(fused);
        return status;
}

static Status run_impl(const FusedImpl *fused, const OpRun *run)
{
        return fused->tail.call.op != NULL ? fused_tail_run(&fused->tail, fused->program, run)
                                           : tile_run(fused->program, run->in, run->out, run->ctx);
}

// No prepared program: trace one for this run.
static Status fused_run(const OpRun *run)
{
        FusedImpl *fused;
        TRY(fused_new(run->call, &fused));
        Status status = run_impl(fused, run);
        fused_free(fused);
        return status;
}

static Status run_fused(const OpRun *run)
{
        return run_impl(run->state, run);
}

static Status fused_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        FusedImpl *fused;
        (void)context;
        TRY(fused_new(call, &fused));
        *out_packed =
                (Packed){ .run = run_fused, .impl = fused, .free_impl = fused_free, .kernel = tile_name() };
        return STATUS_OK;
}

static Cost fused_cost(const OpCall *call)
{
        Cost cost = { 0 };
        const Graph *body = call->args[FUSED_BODY].graph;
        for (uint32_t k = 0; k < call->n_outs; k++)
                cost.bytes += meta_numel(&call->outs[k].meta) * dtype_info[call->outs[k].meta.dtype].bytes;
        for (uint32_t k = 0; k < arg_list_length(call, FUSED_INPUTS); k++) {
                const TensorMeta *meta = &arg_list_tensor(call, FUSED_INPUTS, k)->meta;
                cost.bytes += meta_numel(meta) * dtype_info[meta->dtype].bytes;
        }
        for (uint32_t i = 0; i < body->n_nodes; i++)
                cost.flops += body->nodes[i]->op == OP_CALL_FUNCTION ? meta_numel(&call->outs[0].meta) : 0;
        return cost;
}

// ---- single rows in programs ----
static Status run_packed(const OpRun *run)
{
        return tile_run(run->state, run->in, run->out, run->ctx);
}

static void free_packed(void *impl)
{
        tile_program_free(impl);
}

static Status single_program(const OpCall *call, TileProgram **out_program)
{
        _cleanup_(tile_program_freep) TileProgram *program = NULL;
        TileValueId values[SCHEMA_MAX_ARGS], value;
        Value numbers[SCHEMA_MAX_ARGS];
        TRY(tile_program_new(&program));
        for (uint32_t i = 0; i < call->n_args; i++) {
                const Tensor *tensor =
                        call->schema->args[i].type == ARG_TENSOR ? arg_tensor(call, (int)i) : NULL;
                numbers[i] = value_none();
                if (tensor != NULL)
                        TRY(tile_add_input(program, &tensor->meta, &values[i]));
        }
        TRY(add_row(program, call, values, numbers, &value));
        TRY(tile_add_output(program, value, &call->outs[0].meta));
        TRY(tile_finish(program));
        *out_program = take_ptr(program);
        return STATUS_OK;
}

// Of two operands one is repeated along each row, but not over all rows: the row's own run takes it
// as a number per row, where a tile would hold it as often as there are results.
static bool repeats_in_rows(const OpCall *call)
{
        enum { ROW = 16 };
        const TensorMeta *out = &call->outs[0].meta;
        const int last = out->rank - 1;
        int n_repeated = 0, n_dense = 0;
        if (call->schema->n_tensor_args != 2 || out->dtype != DTYPE_F32 || last < 0 || out->size[last] < ROW)
                return false;
        for (uint32_t i = 0; i < call->n_args; i++) {
                if (call->schema->args[i].type != ARG_TENSOR)
                        continue;
                const TensorMeta *meta = arg_meta(call, (int)i);
                const int inner = meta->rank - 1;
                const bool repeated = inner < 0 || meta->size[inner] == 1 || meta->stride[inner] == 0;
                n_repeated += repeated && meta_numel(meta) > 1;
                n_dense += !repeated && meta->stride[inner] == 1;
        }
        return n_repeated == 1 && n_dense == 1;
}

Status pointwise_pack(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        (void)context;
        TileProgram *program;
        // A call that fused_takes refuses, or whose optional tensors are absent, keeps the row's
        // own run.
        if (!fused_takes(call) || call->schema->n_tensor_args > TILE_MAX_INPUTS)
                return STATUS_OK;
        for (uint32_t i = 0; i < call->n_args; i++) {
                if (call->schema->args[i].type == ARG_TENSOR && arg_tensor(call, (int)i) == NULL)
                        return STATUS_OK;
        }
        if (repeats_in_rows(call))
                return STATUS_OK;
        TRY(single_program(call, &program));
        *out_packed = (Packed){
                .run = run_packed, .impl = program, .free_impl = free_packed, .kernel = tile_name()
        };
        return STATUS_OK;
}

const OpDef fused_ops[] = {
        { .schema = "fxserve::fused(Tensor[] inputs, Graph body) -> Tensor[]",
          .dtypes = DTYPES_REAL,
          .flags = OP_ELEMENTWISE | OP_HIDDEN,
          .infer = fused_infer,
          .run = fused_run,
          .pack = fused_pack,
          .cost = fused_cost,
          .kernel = "tile",
          .traits = TRAIT_FRESH,
          .role = ROLE_FUSED },
};
OP_FILE(fused_ops);
