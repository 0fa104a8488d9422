// SPDX-License-Identifier: Apache-2.0
// resolve.c: the check at upload. Looks up every call's name and tries its arguments against the
// overloads (values of other nodes fit anything). Dtypes that the exporter recorded are tried too.
// A node adds to at most one row: its first problem.
#include "core/targets/refuse.h"
#include "core/ops/complex_forms.h"
#include "core/targets/resolve.h"

#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"

// "torch.ops.aten.foo.default" is shown as aten.foo.default; methods as Tensor.foo.
void report_name(const Node *node, char out_name[200])
{
        const char *name = node->target;
        if (strncmp(name, "torch.ops.", 10) == 0)
                name += 10;
        snprintf(out_name, 200, "%s%.180s", node->op == OP_CALL_METHOD ? "Tensor." : "", name);
}

static Status report_unknown(CheckReport *report, const Node *node)
{
        char what[200];
        report_name(node, what);
        return report_unsupported(report, what, refused_name(what), node);
}

static CallArgs call_of(const Node *node)
{
        CallArgs call = { .args = node->args.seq->items, .n_args = node->args.seq->n };
        if (node->kwargs.kind == VALUE_DICT) {
                call.kwargs = node->kwargs.dict->items;
                call.n_kwargs = node->kwargs.dict->n;
        }
        return call;
}

// ---- dtypes ----
static bool dtype_allowed(const OpDef *op, Dtype dtype, bool first)
{
        bool is_complex = dtype_info[dtype].kind == DTYPE_KIND_COMPLEX;
        if (op->dtypes == 0 || (op->dtypes >> dtype & 1) != 0 || (is_complex && complex_form_of(op) != NULL))
                return true;
        // infer checks index, mask and condition tensors
        return !first && (dtype == DTYPE_BOOL || dtype_is_int(dtype));
}

static Dtype recorded_dtype(Value value)
{
        if (value.kind != VALUE_NODE || value.node->spec == NULL || value.node->spec->dtype >= DTYPE_COUNT)
                return DTYPE_NONE;
        return value.node->spec->dtype;
}

// The first recorded dtype that the operator does not take, or DTYPE_NONE.
static Dtype refused_dtype(const Overload *overload, const Value *args)
{
        bool first = true;
        for (uint32_t i = 0; i < overload->schema.n_args; i++) {
                if (overload->schema.args[i].type != ARG_TENSOR)
                        continue;
                ValueSpan items = value_is_sequence(args[i])
                                          ? (ValueSpan){ args[i].seq->items, args[i].seq->n }
                                          : (ValueSpan){ &args[i], 1 };
                for (uint32_t k = 0; k < items.n; k++) {
                        Dtype dtype = recorded_dtype(items.items[k]);
                        if (dtype != DTYPE_NONE && !dtype_allowed(overload->op, dtype, first))
                                return dtype;
                }
                first = false;
        }
        return DTYPE_NONE;
}

static Status check_recorded_dtypes(CheckReport *report, const Node *node, const Target *target,
                                    const CallArgs *call)
{
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        if (target->n_overloads != 1)
                return STATUS_OK;
        const Overload *overload = target->overloads[0];
        TRY(schema_bind(&overload->schema, call, BIND_NUMBERS, args, &given));
        Dtype dtype = refused_dtype(overload, args);
        schema_release(&overload->schema, args, given);
        if (dtype == DTYPE_NONE)
                return STATUS_OK;
        char what[200];
        snprintf(what, sizeof(what), "%.120s: %s tensors",
                 overload->target + (strncmp(overload->target, "torch.ops.", 10) == 0 ? 10 : 0),
                 dtype_info[dtype].name);
        _cleanup_(text_deinit) Text takes = { 0 };
        text_add(&takes, "it takes");
        for (Dtype d = 0; d < DTYPE_COUNT; d++) {
                if ((overload->op->dtypes >> d & 1) != 0)
                        text_addf(&takes, " %s", dtype_info[d].name);
        }
        TRY(text_status(&takes));
        return report_unsupported(report, what, takes.data, node);
}

// ---- nodes ----
static Status resolve_call(Node *node, const Target *target, const char *what, CheckReport *report)
{
        CallArgs call = call_of(node);
        Status status = target_check(target, &call);
        if (status == STATUS_OK)
                status = target_refuse(target, node);
        if (status != STATUS_OK)
                return report_refusal(report, node, what, status);
        node->resolved = target;
        return check_recorded_dtypes(report, node, target, &call);
}

static Status resolve_function(Node *node, CheckReport *report)
{
        const Target *target = target_function(node->target);
        if (target == NULL || (target_is_internal(target) && !node->internal))
                return report_unknown(report, node);
        const char *what = strncmp(node->target, "torch.ops.", 10) == 0 ? node->target + 10 : node->target;
        return resolve_call(node, target, what, report);
}

static Status resolve_method(Node *node, CheckReport *report)
{
        char what[160];
        const Target *target = target_method(node->target);
        if (target == NULL)
                return report_unknown(report, node);
        snprintf(what, sizeof(what), "Tensor.%.140s", node->target);
        return resolve_call(node, target, what, report);
}

static Status resolve_module_call(Graph *graph, Node *node, CheckReport *report)
{
        Module *module = graph_module(graph, node->target);
        if (module == NULL)
                return failure_at_node(fail(STATUS_LINT,
                                            "Node %s target %s references a module that does not exist",
                                            node->name, node->target),
                                       node->name);
        if (module->graph != NULL)
                return STATUS_OK;
        TRY(failure_at_node(resolve_module(graph, module, node, report), node->name));
        const ResolvedModule *resolved = module->resolved;
        if (resolved == NULL)
                return STATUS_OK;
        Value args[SCHEMA_MAX_ARGS];
        uint64_t given;
        CallArgs call = call_of(node);
        Status status = schema_bind(&resolved->entry->forward, &call, BIND_STRICT, args, &given);
        if (status == STATUS_OK) {
                schema_release(&resolved->entry->forward, args, given);
                status = module_refuse(module);
        }
        return report_refusal(report, node, module->type, status);
}

static Status resolve_get_attr(Graph *graph, Node *node, CheckReport *report)
{
        const Module *module = graph_module(graph, node->target);
        bool found = graph_state(graph, node->target) != NULL || (module != NULL && module->graph != NULL);
        return found ? STATUS_OK : report_missing_state(report, node->target);
}

static Status resolve_graph(Graph *graph, CheckReport *report, int depth);

typedef struct ChildWalk {
        CheckReport *report;
        int depth;
} ChildWalk;

static Status resolve_child_leaf(void *context, const Value *leaf)
{
        ChildWalk *walk = context;
        return leaf->kind == VALUE_GRAPH ? resolve_graph(leaf->graph, walk->report, walk->depth + 1)
                                         : STATUS_OK;
}

static Status resolve_node(Graph *graph, Node *node, CheckReport *report, int depth)
{
        ChildWalk children = { report, depth };
        TRY(value_walk(node->args, resolve_child_leaf, &children));
        switch (node->op) {
        case OP_CALL_FUNCTION:
                return resolve_function(node, report);
        case OP_CALL_METHOD:
                return resolve_method(node, report);
        case OP_CALL_MODULE:
                return resolve_module_call(graph, node, report);
        case OP_GET_ATTR:
                return resolve_get_attr(graph, node, report);
        default:
                return STATUS_OK;
        }
}

static Status resolve_graph(Graph *graph, CheckReport *report, int depth)
{
        if (depth > limits.max_child_graphs)
                return fail(STATUS_TOO_LARGE, "graphs nest deeper than %d", (int)limits.max_child_graphs);
        for (uint32_t i = 0; i < graph->n_modules; i++) {
                if (graph->modules[i]->graph != NULL)
                        // depth: limits.max_child_graphs
                        TRY(resolve_graph(graph->modules[i]->graph, report, depth + 1));
        }
        for (uint32_t i = 0; i < graph->signature.n_inputs; i++) {
                const Input *input = &graph->signature.inputs[i];
                if (input->kind == INPUT_STATE && graph_state(graph, input->path) == NULL)
                        TRY(report_missing_state(report, input->path));
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                TRY(resolve_node(graph, graph->nodes[i], report, depth));
        return STATUS_OK;
}

Status graph_resolve(Graph *graph, CheckReport *out_report)
{
        *out_report = (CheckReport){ 0 };
        arena_init(&out_report->arena, 0);
        Status status = resolve_graph(graph, out_report, 0);
        if (status == STATUS_OK)
                status = mark_written(graph);
        if (status != STATUS_OK)
                check_report_deinit(out_report);
        return status;
}
