// SPDX-License-Identifier: Apache-2.0
// functionalise.c: an authored graph without writes, and without composites if it is decomposed.
//
// One walk records the calls of each node (core/compile/shapes.h). A node that writes is replaced
// by its calls, written without writes (functional.h); a decomposed graph has the calls of all
// nodes. The nodes that stay read what is written before them. What inputs and state are at the
// end is written by copy_ in front of the output node, or is a result of its own in an export. As
// when PyTorch traces a graph again, what nobody reads is taken away.
#include <string.h>
#include "core/compile/shapes.h"
#include "core/edit/passes.h"
#include "core/engine/functional.h"
#include "core/engine/transform.h"
#include "core/engine/transform_parts.h"
#include "core/ops/arguments.h"
#include "core/targets/targets.h"

typedef struct Rewriting {
        Functional f;
        bool writes, writes_state;
        uint32_t next_call; // of the recording
} Rewriting;

// ---- what cannot be rewritten ----

static Status refuse_node(const Node *node, const char *reason)
{
        return failure_at_node(fail(STATUS_UNSUPPORTED, "node %s %s", node->name, reason), node->name);
}

static Status check_input(const Graph *graph, uint32_t i, const Value *value)
{
        const Input *input = &graph->signature.inputs[i];
        bool tensor = value->kind == VALUE_TENSOR && input->kind != INPUT_LITERAL;
        if (tensor || input->kind != INPUT_USER || input->placeholder->n_users == 0)
                return STATUS_OK;
        return refuse_node(input->placeholder,
                           "is an input without a shape: its value would become a constant; "
                           "only tensors are inputs of such a graph");
}

// Composites write to what they have made themselves; that is no write of the node. A change of
// geometry is taken as a write.
static bool writes_others(const RecordedCall *call)
{
        if (!recorded_writes_self(call) && call->moved == 0)
                return false;
        const Recorded *base = recorded_buffer(recorded_of(call->call.args[SELF].tensor))->base;
        return base->call == NULL || base->call->n_nodes == 0 || call->n_nodes == 0 ||
               base->call->nodes[0] != call->nodes[0];
}

static Status check_graph(Rewriting *r)
{
        const Functional *f = &r->f;
        for (uint32_t i = 0; i < f->graph->signature.n_inputs; i++)
                TRY(check_input(f->graph, i, &f->values[f->graph->signature.inputs[i].placeholder->index]));
        for (uint32_t i = 0; i < f->recording->n_calls; i++)
                r->writes |= writes_others(f->recording->calls[i]);
        for (uint32_t i = 0; i < f->recording->n_buffers; i++) {
                const Buffer *buffer = f->recording->buffers[i];
                r->writes_state |= buffer->kind == BUFFER_STATE && buffer->written;
        }
        for (uint32_t i = 0; i + 1 < f->graph->n_nodes; i++) {
                const Node *node = f->graph->nodes[i];
                if (f->values[i].kind != VALUE_DYNAMIC)
                        continue;
                uint32_t effects = node_effects(f->graph, node);
                if (r->writes || (effects & (NODE_WRITES | NODE_WRITES_FIRST | NODE_MOVES)) != 0)
                        return refuse_node(node, "depends on numbers that only a run knows, and the graph "
                                                 "writes in place");
        }
        return STATUS_OK;
}

// ---- which nodes stay ----

static const Overload *overload_of(const Node *node)
{
        bool named = node->op == OP_CALL_FUNCTION && strncmp(node->target, "torch.ops.", 10) == 0;
        return named ? op_find(node->target) : NULL;
}

static uint32_t end_of_calls(const Rewriting *r, const Node *node, bool *out_writes, bool *out_hidden)
{
        const Recording *recording = r->f.recording;
        uint32_t i = r->next_call;
        for (; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                if (call->n_nodes == 0 || call->nodes[0] != node)
                        break;
                *out_writes |= writes_others(call);
                *out_hidden |= (call->overload->op->flags & (OP_HIDDEN | OP_INTERNAL)) != 0;
        }
        return i;
}

// A call of an overload that is recorded as that very call.
static bool is_decomposed(const Rewriting *r, const Overload *overload, uint32_t end)
{
        return overload != NULL && end == r->next_call + 1 &&
               r->f.recording->calls[r->next_call]->overload == overload;
}

// An item of a list that stays.
static bool is_item(const Rewriting *r, const Node *node, uint32_t end)
{
        const Value *of = node_is_getitem(node) && node->args.seq->n == 2 ? &node->args.seq->items[0] : NULL;
        return of != NULL && of->kind == VALUE_NODE && end == r->next_call && r->f.stays[of->node->index] &&
               value_is_sequence(r->f.values[of->node->index]);
}

typedef struct OnOwnBase {
        const Node *node;
        bool found;
} OnOwnBase;

static Status look_at_base(void *context, const Value *leaf)
{
        OnOwnBase *own = context;
        const Recorded *value = leaf->kind == VALUE_TENSOR ? recorded_of(leaf->tensor) : NULL;
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        const Recorded *base = recorded_buffer(value)->base;
        own->found |= base != value && base->call != NULL && base->call->n_nodes > 0 &&
                      base->call->nodes[0] == own->node;
        return STATUS_OK;
}

// Whether the value is a view of what only the node's own calls know: a write to it has to be put
// back there.
static bool views_its_own(const Rewriting *r, const Node *node)
{
        OnOwnBase own = { node, false };
        (void)value_walk(r->f.values[node->index], look_at_base, &own);
        return own.found;
}

static bool node_stays(const Rewriting *r, const Node *node, uint32_t end, bool writes, bool hidden)
{
        const Overload *overload = overload_of(node);
        if (r->f.values[node->index].kind == VALUE_DYNAMIC)
                return true;
        if (writes || (r->writes && views_its_own(r, node)))
                return false;
        if (node->op == OP_CALL_MODULE && r->writes_state) // it would read what was there at first
                return false;
        if (r->f.decomposes)
                return hidden || is_decomposed(r, overload, end) || is_item(r, node, end) ||
                       (overload != NULL && op_is_core_composite(overload));
        return overload == NULL ||
               (!op_is_named_view(overload) && (overload->op->traits & TRAIT_STATISTICS) == 0);
}

// ---- arguments ----

typedef struct Reads {
        Rewriting *r;
        uint32_t time;
        bool stale;
} Reads;

static Status look_if_stale(void *context, const Value *leaf)
{
        Reads *reads = context;
        if (leaf->kind != VALUE_TENSOR)
                return STATUS_OK;
        const Recorded *value = recorded_of(leaf->tensor);
        reads->stale |= functional_moved(&reads->r->f, value) != value ||
                        functional_is_stale(&reads->r->f, value, reads->time);
        return STATUS_OK;
}

// Whether readers of the node may go on reading it.
static bool has_its_value(Rewriting *r, const Node *node)
{
        Reads reads = { r, r->f.made_at[node->index], false };
        if (!r->f.stays[node->index])
                return false;
        (void)value_walk(r->f.values[node->index], look_if_stale, &reads);
        return !reads.stale;
}

static Status look_at_argument(void *context, const Value *leaf)
{
        Reads *reads = context;
        if (leaf->kind == VALUE_NODE)
                reads->stale |= !has_its_value(reads->r, leaf->node);
        return STATUS_OK;
}

static Status argument_leaf(void *context, const Value *leaf, Value *out)
{
        Rewriting *r = context;
        *out = value_ref(*leaf);
        if (leaf->kind != VALUE_NODE)
                return STATUS_OK;
        if (has_its_value(r, leaf->node)) {
                out->node = edit_copy_of(r->f.edit, leaf->node);
                return STATUS_OK;
        }
        return value_map(r->f.values[leaf->node->index], functional_moved_leaf, &r->f, out);
}

static Status renew_arguments(Rewriting *r, const Node *node, Node *copy)
{
        Reads reads = { r, 0, false };
        Value args, kwargs = value_none();
        (void)value_walk(node->args, look_at_argument, &reads);
        (void)value_walk(node->kwargs, look_at_argument, &reads);
        if (!reads.stale)
                return STATUS_OK;
        TRY(value_map(node->args, argument_leaf, r, &args));
        Status status = value_map(node->kwargs, argument_leaf, r, &kwargs);
        if (status != STATUS_OK) {
                value_unref(args);
                return status;
        }
        TRY(edit_set_args(r->f.edit, copy, args, kwargs));
        const Value *value = &r->f.values[node->index];
        return value->kind == VALUE_TENSOR && node->op != OP_OUTPUT
                       ? engine_note_shape(r->f.edit, copy, &value->tensor->meta)
                       : STATUS_OK;
}

// ---- nodes ----

// Items of a container that stays, for calls that read them.
static Status hold_items(Functional *f, const Value *row, Node *node)
{
        for (uint32_t k = 0; k < row->seq->n; k++) {
                const Value *item = &row->seq->items[k];
                Node *part;
                if (item->kind == VALUE_TENSOR)
                        functional_hold_item(f, recorded_of(item->tensor), node, k);
                if (!value_is_sequence(*item))
                        continue;
                const Value args[] = { { .kind = VALUE_NODE, .node = node }, value_int(k) };
                TRY(functional_emit(f, "_operator.getitem", args, 2, NULL, &part));
                TRY(hold_items(f, item, part)); // depth: as value_check_nesting allows
        }
        return STATUS_OK;
}

static Status hold_result(Rewriting *r, const Node *node, Node *copy)
{
        Functional *f = &r->f;
        const Value *value = &f->values[node->index];
        bool first = node->op == OP_PLACEHOLDER || node->op == OP_GET_ATTR;
        f->made_at[node->index] = first ? 0 : f->n_writes;
        if (value->kind == VALUE_TENSOR && first)
                functional_hold_first(f, recorded_of(value->tensor), copy);
        else if (value->kind == VALUE_TENSOR)
                functional_hold(f, recorded_of(value->tensor), copy);
        else if (value_is_sequence(*value) && (r->f.decomposes || r->writes)) {
                f->at = edit_next(copy);
                return hold_items(f, value, copy);
        }
        return STATUS_OK;
}

static Status rewrite_node(Rewriting *r, const Node *node)
{
        Functional *f = &r->f;
        Node *copy = edit_copy_of(f->edit, node);
        bool writes = false, hidden = false;
        uint32_t end = end_of_calls(r, node, &writes, &hidden);
        f->at = copy;
        f->authored = node;
        f->stays[node->index] = !node_is_call(node) || node_stays(r, node, end, writes, hidden);
        if (f->stays[node->index]) {
                if (node_is_call(node))
                        TRY(renew_arguments(r, node, copy));
                TRY(hold_result(r, node, copy));
        } else {
                for (uint32_t i = r->next_call; i < end; i++) {
                        f->call = i + 1;
                        TRY(functional_call(f, f->recording->calls[i]));
                }
        }
        r->next_call = end;
        return STATUS_OK;
}

// ---- the end ----

static const Node *node_argument(const Node *node, uint32_t i)
{
        bool there = node->args.seq->n == 2 && node->args.seq->items[i].kind == VALUE_NODE;
        return there ? node->args.seq->items[i].node : NULL;
}

// Whether the graph ends with just this copy_, as it does if it is the result of an earlier pass.
static bool keeps_copy_back(Functional *f, const Node *first, const Node *now)
{
        for (uint32_t i = f->graph->n_nodes - 1; i-- > 0;) {
                const Node *node = f->graph->nodes[i], *to = node_argument(node, 0),
                           *from = node_argument(node, 1);
                if (node->op != OP_CALL_FUNCTION || strcmp(node->target, op_for(ROLE_WRITE)->target) != 0 ||
                    node->n_users > 0 || to == NULL || from == NULL)
                        return false;
                if (edit_copy_of(f->edit, to) != first || edit_copy_of(f->edit, from) != now)
                        continue;
                f->stays[i] = true;
                return true;
        }
        return false;
}

static Status write_back(Rewriting *r, const Buffer *buffer, const Node *placeholder)
{
        Functional *f = &r->f;
        const Signature *signature = &f->graph->signature;
        Node *first = f->first[buffer->index], *now = f->now[buffer->index], *made;
        if (f->written[buffer->index] == 0 || first == NULL)
                return STATUS_OK;
        f->written[buffer->index] = 0;
        if (signature->outputs == NULL) {
                if (keeps_copy_back(f, first, now))
                        return STATUS_OK;
                const Value args[] = { { .kind = VALUE_NODE, .node = first },
                                       { .kind = VALUE_NODE, .node = now } };
                return functional_emit(f, op_for(ROLE_WRITE)->target, args, 2, &buffer->base->tensor.meta,
                                       &made);
        }
        for (uint32_t i = 0; placeholder != NULL && i < signature->n_inputs; i++) {
                const Input *input = &signature->inputs[i];
                if (input->placeholder != placeholder)
                        continue;
                bool state = input->kind == INPUT_STATE;
                return edit_add_written(f->edit, state ? OUTPUT_STATE_MUTATION : OUTPUT_INPUT_MUTATION,
                                        state ? input->path : placeholder->name, now);
        }
        return edit_add_written(f->edit, OUTPUT_STATE_MUTATION, buffer->base->path, now);
}

// In the order of the placeholders, then of the recording.
static Status write_all_back(Rewriting *r)
{
        const Functional *f = &r->f;
        for (uint32_t i = 0; i < f->graph->n_nodes && f->graph->nodes[i]->op == OP_PLACEHOLDER; i++) {
                const Value *value = &f->values[i];
                const Recorded *base = value->kind == VALUE_TENSOR ? recorded_of(value->tensor) : NULL;
                if (base != NULL && !recorded_is_constant(base))
                        TRY(write_back(r, recorded_buffer(base), f->graph->nodes[i]));
        }
        for (uint32_t i = 0; i < f->recording->n_buffers; i++) {
                const Buffer *buffer = f->recording->buffers[i];
                if (buffer->kind == BUFFER_STATE)
                        TRY(write_back(r, buffer, NULL));
        }
        return STATUS_OK;
}

static Status erase_replaced(const Functional *f)
{
        for (uint32_t i = f->graph->n_nodes; i-- > 0;) {
                if (!f->stays[i] && f->graph->nodes[i]->op != OP_OUTPUT)
                        TRY(edit_erase(f->edit, edit_copy_of(f->edit, f->graph->nodes[i])));
        }
        return STATUS_OK;
}

static bool is_static(const TensorSpec *spec, const TensorMeta *meta)
{
        bool same = spec != NULL && spec->dtype == meta->dtype && spec->rank == meta->rank;
        for (int i = 0; same && i < meta->rank; i++)
                same = spec->size[i].expr == NULL && spec->size[i].value == meta->size[i];
        return same;
}

static Status fix_inputs(const Functional *f)
{
        for (uint32_t i = 0; i < f->graph->n_nodes; i++) {
                const Node *node = f->graph->nodes[i];
                if (node->op == OP_PLACEHOLDER && f->values[i].kind == VALUE_TENSOR &&
                    !is_static(node->spec, &f->values[i].tensor->meta))
                        TRY(engine_note_shape(f->edit, edit_copy_of(f->edit, node),
                                              &f->values[i].tensor->meta));
        }
        edit_fix_inputs(f->edit);
        return STATUS_OK;
}

// Names in order: of all calls of a decomposed graph, else of the new ones.
static Status name_calls(const Rewriting *r)
{
        uint32_t n = 0;
        _cleanup_(freep) Node **nodes = new_array(edit_n_nodes(r->f.edit), sizeof(Node *));
        if (nodes == NULL)
                return fail_memory();
        for (Node *node = edit_first(r->f.edit); node != NULL; node = edit_next(node)) {
                bool is_new = edit_node_is_new(node);
                if (node->op != OP_PLACEHOLDER && node->op != OP_OUTPUT &&
                    (is_new || (r->f.decomposes && node_is_call(node))))
                        nodes[n++] = node;
        }
        return edit_name_anew(r->f.edit, nodes, n);
}

static Status rewrite_graph(Rewriting *r)
{
        Functional *f = &r->f;
        uint32_t n;
        TRY(check_graph(r));
        for (uint32_t i = 0; i + 1 < f->graph->n_nodes; i++)
                TRY(failure_at_node(rewrite_node(r, f->graph->nodes[i]), f->graph->nodes[i]->name));
        const Node *output = f->graph->output;
        f->at = edit_copy_of(f->edit, output);
        f->authored = output;
        TRY(renew_arguments(r, output, f->at));
        TRY(write_all_back(r));
        TRY(erase_replaced(f));
        TRY(fix_inputs(f));
        TRY(edit_eliminate_dead_code(f->edit, &n));
        return name_calls(r);
}

static Status rewrite_recorded(void *context, const Recording *recording, const Value *values)
{
        Rewriting *r = context;
        Edit *edit = r->f.edit;
        bool decomposes = r->f.decomposes;
        Status status = functional_init(&r->f, edit, recording, values);
        r->f.decomposes = decomposes;
        r->f.direct_copies = edit_base(edit)->signature.outputs == NULL;
        if (status == STATUS_OK)
                status = rewrite_graph(r);
        functional_deinit(&r->f);
        return status;
}

static Status rewrite(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes, bool decomposes)
{
        TransformBounds bounds;
        transform_bounds_init(&bounds, *io_edit);
        _cleanup_(graph_unrefp) Graph *graph = NULL;
        _cleanup_(edit_freep) Edit *edit = NULL;
        _cleanup_(freep) InputShape *inputs = new_array((size_t)n_shapes + 1, sizeof(*inputs));
        if (inputs == NULL)
                return fail_memory();
        TRY(edit_reopen(*io_edit, &graph, &edit));
        TRY(engine_same_inputs(graph, shapes, n_shapes, inputs));
        InputShapes given = { .items = inputs, .n = n_shapes };
        Rewriting r = { .f = { .edit = edit, .decomposes = decomposes } };
        TRY(shapes_walk_decomposed(graph, &given, &bounds.ctx, decomposes ? DECOMPOSE_ALL : DECOMPOSE_VIEWS,
                                   rewrite_recorded, &r));
        edit_free(*io_edit);
        *io_edit = take_ptr(edit);
        return STATUS_OK;
}

Status engine_functionalise(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes)
{
        return rewrite(io_edit, shapes, n_shapes, false);
}

Status engine_decompose(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes)
{
        return rewrite(io_edit, shapes, n_shapes, true);
}
