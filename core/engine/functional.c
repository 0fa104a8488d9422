// SPDX-License-Identifier: Apache-2.0
// functional.c: recorded values and the nodes that have them.
#include "core/engine/functional.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/decompose.h"
#include "core/ops/emitter.h"
#include "core/ops/write.h"

static void find_last_writes(Functional *f)
{
        for (uint32_t i = 0; i < f->recording->n_calls; i++) {
                const RecordedCall *call = f->recording->calls[i];
                const Recorded *self =
                        recorded_writes_self(call) ? recorded_of(call->call.args[SELF].tensor) : NULL;
                if (self != NULL && !recorded_is_constant(self))
                        f->last_write[recorded_buffer(self)->index] = i + 1;
        }
}

Status functional_init(Functional *f, Edit *edit, const Recording *recording, const Value *values)
{
        *f = (Functional){ .edit = edit, .graph = edit_base(edit), .recording = recording, .values = values };
        f->held = new_array((size_t)recording->n_values + 1, sizeof(*f->held));
        f->moved = new_array((size_t)recording->n_values + 1, sizeof(*f->moved));
        f->now = new_array((size_t)recording->n_buffers + 1, sizeof(*f->now));
        f->first = new_array((size_t)recording->n_buffers + 1, sizeof(*f->first));
        f->last_write = new_array((size_t)recording->n_buffers + 1, sizeof(*f->last_write));
        f->written = new_array((size_t)recording->n_buffers + 1, sizeof(*f->written));
        f->made_at = new_array(f->graph->n_nodes, sizeof(*f->made_at));
        f->stays = new_array(f->graph->n_nodes, sizeof(*f->stays));
        bool all = f->held != NULL && f->moved != NULL && f->now != NULL && f->first != NULL &&
                   f->last_write != NULL && f->written != NULL && f->made_at != NULL && f->stays != NULL;
        if (!all)
                return fail_memory();
        find_last_writes(f);
        return STATUS_OK;
}

void functional_deinit(Functional *f)
{
        free(f->held);
        free(f->moved);
        free(f->now);
        free(f->first);
        free(f->last_write);
        free(f->written);
        free(f->made_at);
        free(f->stays);
        free(f->made);
}

// ---- nodes ----

static void spec_of(const TensorMeta *meta, TensorSpec *out_spec)
{
        *out_spec = (TensorSpec){ .dtype = meta->dtype, .rank = meta->rank };
        for (int i = 0; i < meta->rank; i++)
                out_spec->size[i].value = meta->size[i];
}

Status functional_add(Functional *f, const char *target, Value take_args, Value take_kwargs,
                      const TensorMeta *meta, Node **out_node)
{
        TensorSpec spec;
        EditNew new = { .op = OP_CALL_FUNCTION,
                        .target = target,
                        .args = take_args,
                        .kwargs = take_kwargs,
                        .origin = f->authored };
        TRY(edit_insert_before(f->edit, f->at, &new, out_node));
        if (f->authored != NULL)
                TRY(edit_copy_place(f->edit, *out_node, f->authored));
        TRY(array_reserve(&f->made, &f->made_capacity, f->n_made + 1, sizeof(Node *)));
        f->made[f->n_made++] = *out_node;
        if (meta == NULL)
                return STATUS_OK;
        spec_of(meta, &spec);
        return edit_set_spec(f->edit, *out_node, &spec);
}

Status functional_emit(Functional *f, const char *target, const Value *take_args, uint32_t n,
                       const TensorMeta *meta, Node **out_node)
{
        Seq *seq;
        TRY(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = take_args[i];
        return functional_add(f, target, value_seq_take(VALUE_TUPLE, seq), value_none(), meta, out_node);
}

static Value node_value(Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = node };
}

static Status add_item(Functional *f, Node *of, uint32_t k, const Recorded *value, Node **out_node)
{
        const Value args[] = { node_value(of), value_int(k) };
        return functional_emit(f, "_operator.getitem", args, 2, &value->tensor.meta, out_node);
}

// ---- values ----

static uint32_t *written_at(const Functional *f, const Recorded *value)
{
        const Buffer *buffer = recorded_is_constant(value) ? NULL : recorded_buffer(value);
        return buffer == NULL ? NULL : &f->written[buffer->index];
}

bool functional_is_stale(const Functional *f, const Recorded *value, uint32_t time)
{
        const uint32_t *written = written_at(f, value);
        return written != NULL && *written > time;
}

void functional_hold(Functional *f, const Recorded *value, Node *node)
{
        HeldValue *held = &f->held[value->index];
        if (held->node == NULL || held->item != 0 || functional_is_stale(f, value, held->time))
                *held = (HeldValue){ node, f->n_writes, 0 };
}

void functional_hold_item(Functional *f, const Recorded *value, Node *node, uint32_t k)
{
        if (f->held[value->index].node == NULL)
                f->held[value->index] = (HeldValue){ node, f->n_writes, k + 1 };
}

void functional_hold_first(Functional *f, const Recorded *value, Node *node)
{
        const Buffer *buffer = recorded_is_constant(value) ? NULL : recorded_buffer(value);
        if (f->held[value->index].node == NULL)
                f->held[value->index] = (HeldValue){ node, 0, 0 };
        if (buffer != NULL && buffer->base == value && f->first[buffer->index] == NULL)
                f->first[buffer->index] = node;
}

static const OutSpec *out_of(const Recorded *value)
{
        for (uint32_t k = 0; value->call != NULL && k < value->call->call.n_outs; k++) {
                if (value->call->outs[k] == value)
                        return &value->call->call.outs[k];
        }
        return NULL;
}

const Recorded *functional_viewed(const Recorded *value)
{
        const OutSpec *out = out_of(value);
        if (out == NULL || out->kind != OUT_VIEW)
                return NULL;
        return recorded_of(value->call->call.args[out->arg].tensor);
}

static Status keep_literal(Functional *f, const Recorded *value, const char **out_path)
{
        char wish[40];
        TensorMeta meta;
        Tensor *own;
        meta_init(&meta, value->tensor.meta.dtype, value->tensor.meta.rank, value->tensor.meta.size);
        snprintf(wish, sizeof(wish), "_tensor_constant%u", f->n_constants++);
        TRY(edit_free_path(f->edit, wish, out_path));
        TRY(tensor_new(&meta, NULL, &own));
        tensor_copy_data(&value->tensor, own);
        return edit_set_state(f->edit, *out_path, own);
}

// Paths are those of the graph that reads the state, which may be a child graph.
static bool is_own_state(const Functional *f, const Recorded *value)
{
        const State *state = value->path == NULL ? NULL : graph_state(f->graph, value->path);
        const Storage *storage =
                recorded_is_constant(value) ? value->tensor.storage : recorded_buffer(value)->origin;
        return state != NULL && state->tensor->storage == storage &&
               state->tensor->offset == value->tensor.offset;
}

// State that no node reads yet, or a tensor that belongs to the graph's text.
static Status read_constant(Functional *f, const Recorded *value, Node **out_node)
{
        const char *path = value->path;
        Node *node;
        if (!is_own_state(f, value)) {
                if (!recorded_is_constant(value))
                        return fail(STATUS_UNSUPPORTED, "the state \"%.200s\" of a child graph is written",
                                    path);
                TRY(keep_literal(f, value, &path));
        }
        EditNew new = { .op = OP_GET_ATTR, .target = path, .origin = f->authored };
        TRY(edit_insert_before(f->edit, f->at, &new, &node));
        functional_hold_first(f, value, node);
        *out_node = node;
        return STATUS_OK;
}

static Status write_view(Functional *f, const Recorded *value);

// Not a view, or a view whose node is up to date.
static Status held_node(Functional *f, const Recorded *value, Node **out_node)
{
        const HeldValue *held = &f->held[value->index];
        const uint32_t *written = written_at(f, value);
        *out_node = NULL;
        if (written != NULL && *written > 0 && functional_viewed(value) == NULL) {
                if (recorded_buffer(value)->base != value)
                        return fail(STATUS_UNSUPPORTED,
                                    "a tensor that has two names is written (tied parameters)");
                *out_node = f->now[recorded_buffer(value)->index];
        } else if (held->node != NULL && !functional_is_stale(f, value, held->time)) {
                *out_node = held->node;
                if (held->item == 0)
                        return STATUS_OK;
                TRY(add_item(f, held->node, held->item - 1, value, out_node));
                functional_hold(f, value, *out_node);
        } else if (functional_viewed(value) == NULL) {
                if (value->from != FROM_STATE && value->from != FROM_LITERAL && !recorded_is_constant(value))
                        return fail(STATUS_INTERNAL, "a recorded value is read before it is made");
                return read_constant(f, value, out_node);
        }
        return STATUS_OK;
}

// A chain of views may be as long as the graph, so it is not followed by recursion.
Status functional_node(Functional *f, const Recorded *value, Node **out_node)
{
        TRY(held_node(f, value, out_node));
        while (*out_node == NULL) {
                const Recorded *next = value;
                Node *node = NULL;
                for (;;) {
                        const Recorded *viewed = functional_viewed(next);
                        TRY(edit_visit(f->edit, 1));
                        TRY(held_node(f, viewed, &node));
                        if (node != NULL)
                                break;
                        next = viewed;
                }
                TRY(write_view(f, next));
                TRY(held_node(f, value, out_node));
        }
        return STATUS_OK;
}

Status functional_leaf(void *context, const Value *leaf, Value *out)
{
        Functional *f = context;
        *out = *leaf;
        if (leaf->kind == VALUE_ABSENT) {
                *out = value_none();
        } else if (leaf->kind == VALUE_TENSOR && leaf->tensor->meta.wrapped &&
                   tensor_is_known(leaf->tensor)) {
                *out = recorded_number(leaf->tensor);
        } else if (leaf->kind == VALUE_TENSOR) {
                out->kind = VALUE_NODE;
                TRY(functional_node(f, recorded_of(leaf->tensor), &out->node));
        }
        value_ref(*out);
        return STATUS_OK;
}

// No chain is longer than the calls that move one tensor; each step is a node of the graph.
const Recorded *functional_moved(const Functional *f, const Recorded *value)
{
        while (f->moved[value->index] != NULL)
                value = f->moved[value->index];
        return value;
}

Status functional_moved_leaf(void *context, const Value *leaf, Value *out)
{
        const Functional *f = context;
        if (leaf->kind != VALUE_TENSOR)
                return functional_leaf(context, leaf, out);
        // A value's tensor is written by no reader.
        Tensor *now = (Tensor *)(uintptr_t)&functional_moved(f, recorded_of(leaf->tensor))->tensor;
        return functional_leaf(context, &(Value){ .kind = VALUE_TENSOR, .tensor = now }, out);
}

// ---- calls ----

static Status hold_results(Functional *f, const RecordedCall *call, Node *node)
{
        if (call->call.schema->returns == RETURN_ONE) {
                if (call->outs[0] != NULL)
                        functional_hold(f, call->outs[0], node);
                return STATUS_OK;
        }
        for (uint32_t k = 0; k < call->call.n_outs; k++) {
                Node *item;
                if (call->outs[k] == NULL || call->outs[k]->call != call)
                        continue;
                TRY(add_item(f, node, k, call->outs[k], &item));
                functional_hold(f, call->outs[k], item);
        }
        return STATUS_OK;
}

static const TensorMeta *only_meta(const RecordedCall *call)
{
        bool one = call->call.schema->returns == RETURN_ONE && call->outs[0] != NULL;
        return one ? &call->outs[0]->tensor.meta : NULL;
}

static Status write_as(Functional *f, const RecordedCall *call, const char *target, Node **out_node)
{
        Value args, kwargs;
        TRY(recorded_call_arguments(call, functional_leaf, f, &args, &kwargs));
        return functional_add(f, target, args, kwargs, only_meta(call), out_node);
}

// Whether the view is all of what it views, as detach is: else it would have been decomposed.
static bool views_all(const Functional *f, const Recorded *view)
{
        Decompositions decompositions = f->decomposes ? DECOMPOSE_ALL : DECOMPOSE_VIEWS;
        return op_decomposition(view->call->overload->op, decompositions) != NULL;
}

static Status write_view(Functional *f, const Recorded *value)
{
        Node *node;
        if (views_all(f, value))
                TRY(functional_node(f, functional_viewed(value), &node));
        else
                TRY(write_as(f, value->call, value->call->overload->target, &node));
        return hold_results(f, value->call, node);
}

// ---- writes ----

static bool same_geometry(const Tensor *a, const Tensor *b)
{
        return a->meta.dtype == b->meta.dtype && a->meta.rank == b->meta.rank &&
               memcmp(a->meta.size, b->meta.size, (size_t)a->meta.rank * sizeof(int64_t)) == 0;
}

static bool is_written_later(const Functional *f, const Recorded *value)
{
        return !recorded_is_constant(value) && f->last_write[recorded_buffer(value)->index] > f->call;
}

// What the authored node itself computed is written as it is.
static bool copies_own(const Functional *f, const RecordedCall *call, const Recorded *source)
{
        bool own = source->call != NULL && source->call->n_nodes > 0 && call->n_nodes > 0 &&
                   source->call->nodes[0] == call->nodes[0] && functional_viewed(source) == NULL;
        return (own || (f->direct_copies && !is_written_later(f, source))) && !source->tensor.meta.wrapped &&
               same_geometry(&source->tensor, call->call.args[SELF].tensor);
}

static Status copied(Functional *f, const RecordedCall *call, Node **out_node)
{
        const Recorded *self = recorded_of(call->call.args[SELF].tensor);
        const Recorded *source = recorded_of(call->call.args[1].tensor);
        if (source->tensor.meta.wrapped && tensor_is_known(&source->tensor)) {
                Node *node;
                TRY(functional_node(f, self, &node));
                const Value args[] = { node_value(node), recorded_number(&source->tensor) };
                return functional_emit(
                        f, f->decomposes ? "torch.ops.aten.full_like.default" : "torch.ops.aten.fill.Scalar",
                        args, 2, &self->tensor.meta, out_node);
        }
        if (copies_own(f, call, source))
                return functional_node(f, source, out_node);
        return write_as(f, call, target_copy, out_node);
}

static Status functional_result(Functional *f, const RecordedCall *call, Node **out_node)
{
        char target[160];
        if (call->call.op == &write_op)
                return copied(f, call, out_node);
        if (call->overload->twin_of != NULL)
                return write_as(f, call, call->overload->twin_of->target, out_node);
        // "torch.ops.aten.index_put_.default"
        const char *own = call->overload->target, *end = strstr(own, "_.");
        if (end == NULL)
                return fail(STATUS_UNSUPPORTED, "%s has no functional form", own);
        snprintf(target, sizeof(target), "%.*s%s", (int)(end - own), own, end + 1);
        if (op_find(target) == NULL)
                return fail(STATUS_UNSUPPORTED, "%s has no functional form", own);
        return write_as(f, call, target, out_node);
}

// The nodes that put the part back, from the view that was written down to the base.
static Status write_self(Functional *f, const RecordedCall *call)
{
        const Recorded *view = recorded_of(call->call.args[SELF].tensor), *whole;
        Node *part, *node;
        if (call->call.n_outs != 1)
                return fail(STATUS_UNSUPPORTED, "%s has no functional form", call->overload->target);
        TRY(functional_result(f, call, &part));
        for (; (whole = functional_viewed(view)) != NULL; view = whole) {
                if (views_all(f, view))
                        continue;
                TRY(functional_node(f, whole, &node));
                TRY(functional_put_back(f, view, whole, node, part, &part));
        }
        Buffer *buffer = recorded_is_constant(view) ? NULL : recorded_buffer(view);
        if (buffer == NULL || buffer->base != view)
                return fail(STATUS_UNSUPPORTED, "a tensor that has two names is written (tied parameters)");
        f->now[buffer->index] = part;
        f->written[buffer->index] = ++f->n_writes;
        return STATUS_OK;
}

Status functional_call(Functional *f, const RecordedCall *call)
{
        Node *node;
        if ((call->overload->op->flags & (OP_HIDDEN | OP_INTERNAL)) != 0)
                return fail(STATUS_UNSUPPORTED, "the call is no operator of PyTorch: %s",
                            call->overload->name);
        if (recorded_writes_self(call))
                return write_self(f, call);
        if (call->moved != 0)
                f->moved[call->moved - 1] = call->outs[0];
        if (call->call.n_outs == 1 && call->outs[0] != NULL && functional_viewed(call->outs[0]) != NULL)
                return write_view(f, call->outs[0]);
        const Overload *twin_of = call->overload->twin_of; // its result is written by another call
        TRY(write_as(f, call, twin_of == NULL ? call->overload->target : twin_of->target, &node));
        return hold_results(f, call, node);
}
