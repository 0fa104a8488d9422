// SPDX-License-Identifier: Apache-2.0
// walk.c: torch.fx.Interpreter's walk. One array holds values by node index. A node's arguments are
// laid out on the stack and borrow from that array; only containers that hold nodes are rebuilt. A
// value is dropped after its last reader, so the peak of memory is where PyTorch's is.
#include "core/eval/walk.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/eval/batch.h"
#include "core/graph/print.h"
#include "core/ops/arguments.h"
#include "core/ops/lazy.h"
#include "core/targets/arguments.h"
#include "core/targets/targets.h"

enum { INLINE_NODES = 48, INLINE_ARGS = 16, INLINE_KWARGS = 12, FEW_FETCHED = 16 };

typedef struct Walk {
        Emitter *emitter;
        const Graph *graph;
        const WalkOptions *options;
        Value *env;              // by node->index; VALUE_ABSENT: no value (yet, or any more)
        uint32_t n_placeholders; // met so far
        bool has_batches;        // some value is inside of torch.vmap
        Value result;            // of the output node
        // Of many values to fetch: by node its first place + 1, then by place the next one of the
        // same node + 1; 0: none. NULL: they are few.
        uint32_t *places;
} Walk;

// ---- arguments ----
typedef struct NodeArgs {
        CallArgs call;
        Value *args;
        struct DictItem *kwargs;
        Value *owned; // rebuilt containers
        uint32_t n_owned;
        void *block; // heap, for long argument lists
        Value inline_args[INLINE_ARGS];
        struct DictItem inline_kwargs[INLINE_KWARGS];
        Value inline_owned[INLINE_ARGS + INLINE_KWARGS];
} NodeArgs;

static bool holds_node(Value value)
{
        if (value.kind == VALUE_NODE)
                return true;
        if (value_is_sequence(value) || value.kind == VALUE_SLICE) {
                for (uint32_t i = 0; i < value.seq->n; i++) {
                        if (holds_node(value.seq->items[i]))
                                return true;
                }
        } else if (value.kind == VALUE_DICT) {
                for (uint32_t i = 0; i < value.dict->n; i++) {
                        if (holds_node(value.dict->items[i].value))
                                return true;
                }
        }
        return false;
}

static Status read_node(const Walk *walk, const Node *node, Value *out)
{
        const Value *value = &walk->env[node->index];
        if (value->kind == VALUE_ABSENT)
                return fail(STATUS_LINT,
                            "the value of node %s is read before it is there or after its last use",
                            node->name);
        *out = *value;
        return STATUS_OK;
}

static Status read_leaf(void *context, const Value *leaf, Value *out)
{
        Value value = *leaf;
        if (leaf->kind == VALUE_NODE)
                TRY(read_node(context, leaf->node, &value));
        *out = value_ref(value);
        return STATUS_OK;
}

// A borrowed value; what had to be rebuilt is owned by `args`.
static Status read_arg(Walk *walk, Value arg, NodeArgs *args, Value *out)
{
        if (arg.kind == VALUE_NODE)
                return read_node(walk, arg.node, out);
        if (arg.kind < VALUE_SLICE || arg.kind > VALUE_DICT || !holds_node(arg)) {
                *out = arg;
                return STATUS_OK;
        }
        TRY(value_map(arg, read_leaf, walk, out));
        args->owned[args->n_owned++] = *out;
        return value_check_nesting(*out);
}

static Status node_args_room(NodeArgs *args, uint32_t n_args, uint32_t n_kwargs)
{
        args->args = args->inline_args;
        args->kwargs = args->inline_kwargs;
        args->owned = args->inline_owned;
        if (n_args <= INLINE_ARGS && n_kwargs <= INLINE_KWARGS)
                return STATUS_OK;
        size_t n = (size_t)n_args + n_kwargs;
        args->block = new_array(n + n_args, sizeof(Value));
        if (args->block == NULL)
                return fail_memory();
        args->args = args->block;
        args->owned = args->args + n_args;
        args->kwargs = new_array(n_kwargs, sizeof(*args->kwargs));
        return args->kwargs == NULL ? fail_memory() : STATUS_OK;
}

static Status node_args_open(Walk *walk, const Node *node, NodeArgs *args)
{
        uint32_t n_args = node->args.seq->n,
                 n_kwargs = node->kwargs.kind == VALUE_DICT ? node->kwargs.dict->n : 0;
        args->n_owned = 0;
        args->block = NULL;
        TRY(node_args_room(args, n_args, n_kwargs));
        for (uint32_t i = 0; i < n_args; i++)
                TRY(read_arg(walk, node->args.seq->items[i], args, &args->args[i]));
        for (uint32_t k = 0; k < n_kwargs; k++) {
                args->kwargs[k].key = node->kwargs.dict->items[k].key;
                TRY(read_arg(walk, node->kwargs.dict->items[k].value, args, &args->kwargs[k].value));
        }
        args->call = (CallArgs){
                .args = args->args, .n_args = n_args, .kwargs = args->kwargs, .n_kwargs = n_kwargs
        };
        return STATUS_OK;
}

static void node_args_close(NodeArgs *args)
{
        for (uint32_t i = 0; i < args->n_owned; i++)
                value_unref(args->owned[i]);
        if (args->block == NULL)
                return;
        free(args->block);
        free(args->kwargs);
}

// ---- the six opcodes ----
static Status empty_rest(const Node *node, Value *out)
{
        if (node->target[1] == '*') {
                Dict *dict;
                TRY(dict_new(0, &dict));
                *out = (Value){ .kind = VALUE_DICT, .dict = dict };
                return STATUS_OK;
        }
        Seq *seq;
        TRY(seq_new(0, &seq));
        *out = value_seq_take(VALUE_TUPLE, seq);
        return STATUS_OK;
}

static Status run_placeholder(Walk *walk, const Node *node, Value *out)
{
        const Signature *signature = &walk->graph->signature;
        uint32_t at = walk->n_placeholders++;
        if (at < walk->options->inputs.n && walk->options->inputs.items[at].kind != VALUE_ABSENT) {
                *out = value_ref(walk->options->inputs.items[at]);
                return STATUS_OK;
        }
        if (node->target[0] == '*')
                return empty_rest(node, out);
        if (at < signature->n_inputs && signature->inputs[at].placeholder == node &&
            signature->inputs[at].kind == INPUT_STATE)
                return walk->emitter->vtbl->state(walk->emitter, walk->graph, signature->inputs[at].path,
                                                  out);
        if (node->args.seq->n == 0)
                return failure_at_argument(
                        fail(STATUS_INPUT,
                             "Expected positional argument for parameter %s, but one was not passed in!",
                             node->target),
                        node->target);
        *out = value_ref(node->args.seq->items[0]);
        return STATUS_OK;
}

static Status run_function(Walk *walk, const Node *node, const CallArgs *call, Value *out)
{
        const Target *target = node->resolved != NULL ? node->resolved : target_function(node->target);
        if (target == NULL)
                return fail(STATUS_UNSUPPORTED, "no operator is known as %s", node->target);
        return target_call(walk->emitter, target, call, out);
}

static Status run_method(Walk *walk, const Node *node, const CallArgs *call, Value *out)
{
        const Target *target = node->resolved != NULL ? node->resolved : target_method(node->target);
        if (target == NULL && call->n_args > 0)
                return fail(STATUS_UNSUPPORTED, "'%s' object has no attribute '%s'",
                            value_kind_name(call->args[SELF].kind), node->target);
        if (target == NULL)
                return fail(STATUS_UNSUPPORTED, "no method is known as %s", node->target);
        return target_call(walk->emitter, target, call, out);
}

// ---- calls of child graphs: positional values and keywords to one value per placeholder ----
static Status gather_positional(const CallArgs *call, uint32_t from, Value *out)
{
        uint32_t n = from < call->n_args ? call->n_args - from : 0;
        Seq *seq;
        TRY(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(call->args[from + i]);
        *out = value_seq_take(VALUE_TUPLE, seq);
        return STATUS_OK;
}

// Keywords not yet used, as the dict of a **kwargs placeholder.
static Status gather_keywords(const CallArgs *call, const bool *used, Value *out)
{
        uint32_t n = 0;
        for (uint32_t k = 0; k < call->n_kwargs; k++)
                n += !used[k];
        Dict *dict;
        TRY(dict_new(n, &dict));
        n = 0;
        for (uint32_t k = 0; k < call->n_kwargs; k++) {
                if (used[k])
                        continue;
                refcount_get(&call->kwargs[k].key->ref);
                dict->items[n].key = call->kwargs[k].key;
                dict->items[n++].value = value_ref(call->kwargs[k].value);
        }
        *out = (Value){ .kind = VALUE_DICT, .dict = dict };
        return STATUS_OK;
}

static Status take_keyword(const CallArgs *call, const char *name, bool *used, Value *inout)
{
        for (uint32_t k = 0; k < call->n_kwargs; k++) {
                if (strcmp(call->kwargs[k].key->text, name) != 0)
                        continue;
                if (inout->kind != VALUE_ABSENT)
                        return fail(STATUS_VALUE, "forward() got multiple values for argument '%s'", name);
                *inout = value_ref(call->kwargs[k].value);
                used[k] = true;
        }
        return STATUS_OK;
}

// `inputs` (counted values) and `used` start out empty.
static Status lay_out_call(const Graph *graph, const CallArgs *call, bool *used, Value *inputs)
{
        uint32_t at = 0, next = 0;
        bool takes_all = false, takes_any_keyword = false;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                if (node->op != OP_PLACEHOLDER)
                        continue;
                if (node->target[0] == '*' && node->target[1] == '*') {
                        TRY(gather_keywords(call, used, &inputs[at]));
                        takes_any_keyword = true;
                } else if (node->target[0] == '*') {
                        TRY(gather_positional(call, next, &inputs[at]));
                        takes_all = true;
                } else {
                        if (next < call->n_args && !takes_all)
                                inputs[at] = value_ref(call->args[next++]);
                        TRY(take_keyword(call, node->target, used, &inputs[at]));
                }
                at++;
        }
        if (next < call->n_args && !takes_all)
                return fail(STATUS_VALUE, "forward() takes %u positional arguments but %u were given", at,
                            call->n_args);
        for (uint32_t k = 0; k < call->n_kwargs && !takes_any_keyword; k++) {
                if (!used[k])
                        return fail(STATUS_VALUE, "forward() got an unexpected keyword argument '%s'",
                                    call->kwargs[k].key->text);
        }
        return STATUS_OK;
}

static Status call_child(Walk *walk, const Graph *graph, const CallArgs *call, Value *out)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += graph->nodes[i]->op == OP_PLACEHOLDER;
        _cleanup_(freep) Value *inputs = new_array(n, sizeof(*inputs));
        _cleanup_(freep) bool *used = new_array(call->n_kwargs, sizeof(*used));
        if (inputs == NULL || used == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++)
                inputs[i].kind = VALUE_ABSENT;
        Status status = lay_out_call(graph, call, used, inputs);
        if (status == STATUS_OK)
                status = walk->emitter->vtbl->call(walk->emitter, graph,
                                                   (ValueSpan){ .items = inputs, .n = n }, out);
        for (uint32_t i = 0; i < n; i++)
                value_unref(inputs[i]);
        return status;
}

static Status run_module(Walk *walk, const Node *node, const CallArgs *call, Value *out)
{
        const Module *module = graph_module(walk->graph, node->target);
        if (module == NULL)
                return fail(STATUS_LINT, "Node %s target %s references nonexistent attribute", node->name,
                            node->target);
        return module->graph != NULL ? call_child(walk, module->graph, call, out)
                                     : module_call(walk->emitter, module, call, out);
}

static Status run_with(Walk *walk, const Node *node, const CallArgs *call, Value *out)
{
        if (node->op == OP_CALL_FUNCTION)
                return run_function(walk, node, call, out);
        return node->op == OP_CALL_METHOD ? run_method(walk, node, call, out)
                                          : run_module(walk, node, call, out);
}

// ---- calls inside of torch.vmap ----
typedef struct BatchNode {
        Walk *walk;
        const Node *node;
} BatchNode;

static Status run_for_index(void *context, const CallArgs *call, Value *out)
{
        BatchNode *of = context;
        TRY(run_poll(of->walk->emitter->ctx));
        return run_with(of->walk, of->node, call, out);
}

// The level that the call ends; 0: none.
static uint32_t level_ended(const Node *node, const CallArgs *call)
{
        if (node->op != OP_CALL_FUNCTION || call->n_args <= PY_REMOVE_BATCH_LEVEL ||
            call->args[PY_REMOVE_BATCH_LEVEL].kind != VALUE_INT ||
            strcmp(node->target, "torch._functorch.predispatch._remove_batch_dim") != 0)
                return 0;
        return (uint32_t)call->args[PY_REMOVE_BATCH_LEVEL].i;
}

static Status run_batched(Walk *walk, const Node *node, const CallArgs *call, Value *out)
{
        BatchNode of = { walk, node };
        BatchRun run = { .run = run_for_index, .context = &of, .keep_level = level_ended(node, call) };
        return batch_call(&run, call, out);
}

static Status run_call(Walk *walk, const Node *node, Value *out)
{
        NodeArgs args;
        Status status = node_args_open(walk, node, &args);
        if (status == STATUS_OK)
                status = walk->has_batches && batch_among(&args.call)
                                 ? run_batched(walk, node, &args.call, out)
                                 : run_with(walk, node, &args.call, out);
        node_args_close(&args);
        walk->has_batches |= status == STATUS_OK && out->kind == VALUE_BATCH;
        return status;
}

static Status run_output(Walk *walk, const Node *node, Value *out)
{
        if (node->args.seq->n != 1)
                return fail(STATUS_LINT, "the output node has %u arguments; it takes one", node->args.seq->n);
        _cleanup_(value_clear) Value value = value_none();
        TRY(value_map(node->args.seq->items[0], read_leaf, walk, &value));
        TRY(value_check_nesting(value));
        *out = value;
        value = value_none();
        return STATUS_OK;
}

static Status run_node(Walk *walk, const Node *node, Value *out)
{
        if (walk->emitter->depth == 0)
                walk->emitter->node = node;
        switch (node->op) {
        case OP_PLACEHOLDER:
                return run_placeholder(walk, node, out);
        case OP_GET_ATTR:
                return walk->emitter->vtbl->state(walk->emitter, walk->graph, node->target, out);
        case OP_OUTPUT:
                return run_output(walk, node, out);
        default:
                return run_call(walk, node, out);
        }
}

// ---- failures, timing ----
// Adds the line that PyTorch prints to a failure. Cancelled runs, deadlines and internal failures
// belong to no node; what halts a run has named its node.
Status walk_annotate(Status status, const Node *node)
{
        if (status_class(status) != STATUS_CLASS_CALLER || status == STATUS_CANCELLED ||
            status == STATUS_DEADLINE || status == STATUS_HALTED)
                return status;
        Text line = { 0 };
        node_print(node, &line);
        if (text_status(&line) == STATUS_OK)
                failure_append("\n\nWhile executing %s", line.data);
        if (node->stack_trace != NULL)
                failure_append("\nOriginal traceback:\n%s", node->stack_trace);
        text_deinit(&line);
        return failure_at_node(status, node_origin(node));
}

static const Tensor *first_tensor(Value value)
{
        for (int depth = 0; value_is_sequence(value) && value.seq->n > 0 && depth < 4; depth++)
                value = value.seq->items[0];
        return value.kind == VALUE_TENSOR ? value.tensor : NULL;
}

static void trace_node(const Walk *walk, const Node *node, Value value, int64_t start_ns, int64_t end_ns)
{
        WalkTrace *trace = walk->options->trace;
        const Emitter *emitter = walk->emitter;
        bool counts = walk->options->skip == NULL || node_is_call(node); // programs have rows for calls only
        if (trace->n_rows >= trace->capacity || !counts)
                return;
        const Tensor *tensor = first_tensor(value);
        NodeTiming *row = &trace->rows[trace->n_rows++];
        *row = (NodeTiming){
                .node = node,
                .kernel = emitter->last_kernel != NULL           ? emitter->last_kernel
                          : node_is_call(node) && tensor != NULL ? "view"
                                                                 : NULL,
                .start_ns = start_ns,
                .end_ns = end_ns,
                .has_tensor = tensor != NULL,
                .bytes = emitter->cost.bytes,
                .flops = emitter->cost.flops,
        };
        if (tensor != NULL)
                row->meta = tensor->meta;
}

static Status run_traced(Walk *walk, const Node *node, int64_t *inout_clock, Value *out)
{
        walk->emitter->last_op = NULL;
        walk->emitter->last_kernel = NULL;
        walk->emitter->cost = (Cost){ 0 };
        TRY(run_node(walk, node, out));
        int64_t start_ns = *inout_clock;
        *inout_clock = clock_ns();
        trace_node(walk, node, *out, start_ns, *inout_clock);
        return STATUS_OK;
}

// ---- the walk ----
static Status find_places(Walk *walk)
{
        const WalkOptions *options = walk->options;
        if (options->n_fetch <= FEW_FETCHED)
                return STATUS_OK;
        uint32_t *first = new_array((size_t)walk->graph->n_nodes + options->n_fetch, sizeof(*first));
        if (first == NULL)
                return fail_memory();
        uint32_t *next = first + walk->graph->n_nodes;
        for (uint32_t i = 0; i < options->n_fetch; i++) {
                uint32_t *of_node = &first[options->fetch[i]->index];
                next[i] = *of_node;
                *of_node = i + 1;
        }
        walk->places = first;
        return STATUS_OK;
}

static void keep_fetched(const Walk *walk, const Node *node, Value value, Value *out_fetched)
{
        const uint32_t *first = walk->places, *next = first == NULL ? NULL : first + walk->graph->n_nodes;
        if (first == NULL) {
                for (uint32_t i = 0; i < walk->options->n_fetch; i++)
                        if (walk->options->fetch[i] == node)
                                out_fetched[i] = value_ref(value);
                return;
        }
        for (uint32_t i = first[node->index]; i > 0; i = next[i - 1])
                out_fetched[i - 1] = value_ref(value);
}

static void take_known(Walk *walk, Value *out_fetched)
{
        for (uint32_t i = 0; i < walk->options->n_known; i++) {
                const WalkKnown *known = &walk->options->known[i];
                walk->env[known->node->index] = value_ref(known->value);
                walk->has_batches |= known->value.kind == VALUE_BATCH;
                keep_fetched(walk, known->node, known->value, out_fetched);
        }
}

// ---- leaving nodes out ----
static Status note_left(void *context, Node *input)
{
        const Walk *walk = context;
        return walk->env[input->index].kind == VALUE_DYNAMIC ? STATUS_DYNAMIC : STATUS_OK;
}

static Status run_or_leave(Walk *walk, const Node *node, Value *out)
{
        const WalkSplit *split = walk->options->split;
        bool *left = &split->left[node->index];
        *left = *left || node_visit_inputs(node, note_left, walk) != STATUS_OK;
        if (!*left) {
                Status status = run_node(walk, node, out);
                if (status != STATUS_DYNAMIC)
                        return status;
                *left = true;
        }
        walk->n_placeholders += node->op == OP_PLACEHOLDER;
        *out = (Value){ .kind = VALUE_DYNAMIC };
        return split->leave(split->context, node, walk->env);
}

static Status run_or_mend(Walk *walk, const Node *node, Value *out)
{
        const WalkMend *mend = walk->options->mend;
        if (node->op == OP_OUTPUT)
                return STATUS_OK;
        Status status = node_visit_inputs(node, note_left, walk) != STATUS_OK ? STATUS_DYNAMIC
                                                                              : run_node(walk, node, out);
        return status == STATUS_OK ? STATUS_OK : mend->mend(mend->context, node, status, out);
}

static bool is_skipped(Walk *walk, const Node *node)
{
        if (walk->options->skip == NULL || !walk->options->skip[node->index])
                return false;
        walk->n_placeholders += node->op == OP_PLACEHOLDER;
        return true;
}

static Status run_one(Walk *walk, const Node *node, int64_t *inout_clock, Value *out)
{
        if (walk->options->trace != NULL)
                return run_traced(walk, node, inout_clock, out);
        if (walk->options->mend != NULL)
                return run_or_mend(walk, node, out);
        return walk->options->split != NULL ? run_or_leave(walk, node, out) : run_node(walk, node, out);
}

// Who looks on sees bytes, so conjugates are computed.
static Status show(const Walk *walk, const Node *node, Value value)
{
        const WalkVisit *visit = walk->options->visit;
        _cleanup_(value_clear) Value seen = value_none();
        TRY(lazy_resolve(walk->emitter, value, &seen));
        return visit->see(visit->context, node, seen);
}

static Status resolve_in_place(Emitter *emitter, Value *inout)
{
        Value resolved;
        if (!value_is_lazy(*inout))
                return STATUS_OK;
        TRY(lazy_resolve(emitter, *inout, &resolved));
        value_unref(*inout);
        *inout = resolved;
        return STATUS_OK;
}

// What leaves the outermost graph has neither a conj nor a neg bit.
static Status resolve_results(Walk *walk, Value *out_fetched)
{
        if (walk->emitter->depth > 0)
                return STATUS_OK;
        TRY(resolve_in_place(walk->emitter, &walk->result));
        for (uint32_t i = 0; i < walk->options->n_fetch; i++)
                TRY(resolve_in_place(walk->emitter, &out_fetched[i]));
        return STATUS_OK;
}

static Status walk_nodes(Walk *walk, Value *out_fetched)
{
        const Graph *graph = walk->graph;
        WalkVisit *visit = walk->options->visit;
        int64_t clock = walk->options->trace != NULL ? clock_ns() : 0;
        take_known(walk, out_fetched);
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const Node *node = graph->nodes[i];
                Value value = value_none();
                if (is_skipped(walk, node))
                        continue;
                TRY(run_poll(walk->emitter->ctx));
                Status status = run_one(walk, node, &clock, &value);
                if (__builtin_expect(status != STATUS_OK, 0))
                        return walk_annotate(status, node);
                keep_fetched(walk, node, value, out_fetched);
                if (node->op == OP_OUTPUT)
                        walk->result = value_ref(value);
                walk->env[i] = value;
                if (visit != NULL) {
                        TRY(show(walk, node, value));
                        if (visit->done)
                                return STATUS_OK;
                }
                for (uint32_t k = 0; k < node->n_frees; k++) {
                        Value *dead = &walk->env[node->frees[k]->index];
                        value_unref(*dead);
                        dead->kind = VALUE_ABSENT;
                }
        }
        if (walk->n_placeholders < walk->options->inputs.n)
                return fail(STATUS_INPUT, "forward() takes %u positional arguments but %u were given",
                            walk->n_placeholders, walk->options->inputs.n);
        return STATUS_OK;
}

Status walk_graph(Emitter *emitter, const Graph *graph, const WalkOptions *options, Value *out_value,
                  Value *out_fetched)
{
        Value inline_env[INLINE_NODES];
        Walk walk = { .emitter = emitter,
                      .graph = graph,
                      .options = options,
                      .env = inline_env,
                      .result = value_none() };
        _cleanup_(freep) Value *block = NULL;
        if (graph->n_nodes > INLINE_NODES) {
                walk.env = block = new_array(graph->n_nodes, sizeof(Value));
                if (block == NULL)
                        return fail_memory();
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                walk.env[i].kind = VALUE_ABSENT;
        for (uint32_t i = 0; i < options->n_fetch; i++)
                out_fetched[i] = value_none();
        bool measure = emitter->measure;
        emitter->measure = measure || options->trace != NULL;
        Status status = find_places(&walk);
        if (status == STATUS_OK)
                status = walk_nodes(&walk, out_fetched);
        if (status == STATUS_OK)
                status = resolve_results(&walk, out_fetched);
        emitter->measure = measure;
        free(walk.places);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                value_unref(walk.env[i]);
        if (options->trace != NULL && emitter->ctx->budget != NULL)
                options->trace->live_bytes_peak =
                        atomic_load_explicit(&emitter->ctx->budget->peak, memory_order_relaxed);
        if (status == STATUS_OK) {
                *out_value = walk.result;
                return STATUS_OK;
        }
        value_unref(walk.result);
        for (uint32_t i = 0; i < options->n_fetch; i++)
                value_clear(&out_fetched[i]);
        return status;
}

Status walk_child(Emitter *emitter, const Graph *graph, ValueSpan inputs, Value *out)
{
        if (emitter->depth >= limits.max_child_graphs)
                return fail(STATUS_RUN, "child graphs are nested deeper than %d levels",
                            (int)limits.max_child_graphs);
        const Graph *outer = emitter->graph;
        emitter->graph = graph;
        emitter->depth++;
        WalkOptions options = { .inputs = inputs };
        Status status = walk_graph(emitter, graph, &options, out, NULL);
        emitter->depth--;
        emitter->graph = outer;
        return status;
}
