// SPDX-License-Identifier: Apache-2.0
// functional_views.c: the inverse of a view, by the operator that made it.
#include "core/engine/functional.h"

#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/decompose.h"
#include "core/ops/emitter.h"

typedef struct PutBack {
        Functional *f;
        const Recorded *view;
        const char *target;
        const OpCall *call;
        Node *node, *part;
        const TensorMeta *meta; // of the whole
} PutBack;

static Value node_value(Node *node)
{
        return (Value){ .kind = VALUE_NODE, .node = node };
}

static Value arg(const PutBack *p, const char *name)
{
        for (uint32_t i = 0; i < p->call->n_args; i++) {
                if (strcmp(p->call->schema->args[i].name, name) == 0)
                        return value_ref(p->call->args[i]);
        }
        return value_none();
}

static Status same_bytes(const PutBack *p, Node **out_node)
{
        Value size;
        TRY(value_ints_new(VALUE_LIST, p->meta->size, (uint32_t)p->meta->rank, &size));
        const Value args[] = { node_value(p->part), size };
        return functional_emit(p->f, p->target, args, 2, p->meta, out_node);
}

static Status unsqueezed(const PutBack *p, Node **out_node)
{
        if (p->f->decomposes) {
                const int64_t dim = arg(p, "dim").i;
                Value dims;
                TRY(value_ints_new(VALUE_LIST, &dim, 1, &dims));
                const Value core[] = { node_value(p->part), dims };
                return functional_emit(p->f, "torch.ops.aten.squeeze.dims", core, 2, p->meta, out_node);
        }
        const Value args[] = { node_value(p->part), arg(p, "dim") };
        return functional_emit(p->f, p->target, args, 2, p->meta, out_node);
}

static Status transposed(const PutBack *p, Node **out_node)
{
        const Value args[] = { node_value(p->part), value_ref(p->call->args[1]),
                               value_ref(p->call->args[2]) };
        return functional_emit(p->f, p->target, args, 3, p->meta, out_node);
}

static Status turned(const PutBack *p, Node **out_node)
{
        const Value args[] = { node_value(p->part) };
        return functional_emit(p->f, p->target, args, 1, p->meta, out_node);
}

static Status permuted(const PutBack *p, Node **out_node)
{
        int64_t dims[MAX_RANK], back[MAX_RANK] = { 0 };
        int n;
        Value list;
        TRY(arg_ints(p->call, PERMUTE_DIMS, MAX_RANK, dims, &n));
        for (int i = 0; i < n; i++)
                back[dims[i] + (dims[i] < 0 ? n : 0)] = i;
        TRY(value_ints_new(VALUE_LIST, back, (uint32_t)n, &list));
        const Value args[] = { node_value(p->part), list };
        return functional_emit(p->f, p->target, args, 2, p->meta, out_node);
}

static Status selected(const PutBack *p, Node **out_node)
{
        const Value args[] = { node_value(p->node), node_value(p->part), arg(p, "dim"), arg(p, "index") };
        return functional_emit(p->f, p->target, args, 4, p->meta, out_node);
}

// Absent arguments at the end are left out.
static Status sliced(const PutBack *p, Node **out_node)
{
        Value args[] = { node_value(p->node), node_value(p->part), arg(p, "dim"),
                         arg(p, "start"),     arg(p, "end"),       arg(p, "step") };
        uint32_t n = ARRAY_LENGTH(args);
        if (args[5].kind != VALUE_INT || args[5].i == 1)
                n--;
        if (n == 5 && args[4].kind != VALUE_INT)
                n--;
        return functional_emit(p->f, p->target, args, n, p->meta, out_node);
}

static Status on_diagonal(const PutBack *p, Node **out_node)
{
        static const int64_t usual[] = { 0, 0, 1 };
        const Value args[] = { node_value(p->node), node_value(p->part), arg(p, "offset"), arg(p, "dim1"),
                               arg(p, "dim2") };
        uint32_t n = ARRAY_LENGTH(args);
        while (n > 2 && args[n - 1].kind == VALUE_INT && args[n - 1].i == usual[n - 3])
                n--;
        return functional_emit(p->f, p->target, args, n, p->meta, out_node);
}

static uint32_t position(const PutBack *p)
{
        uint32_t k = 0;
        while (p->view->call->outs[k] != p->view)
                k++;
        return k;
}

static int dim_of(const PutBack *p)
{
        Value dim = arg(p, "dim");
        return dim.kind != VALUE_INT ? 0 : (int)(dim.i < 0 ? dim.i + p->meta->rank : dim.i);
}

// An item of unbind.
static Status unbound(const PutBack *p, Node **out_node)
{
        const Value args[] = { node_value(p->node), node_value(p->part), value_int(dim_of(p)),
                               value_int(position(p)) };
        return functional_emit(p->f, p->target, args, 4, p->meta, out_node);
}

// An item of split: its place follows from the sizes of those before it.
static Status split_off(const PutBack *p, Node **out_node)
{
        int dim = dim_of(p);
        int64_t start = 0;
        for (uint32_t k = 0; k < position(p); k++)
                start += p->call->outs[k].meta.size[dim];
        const Value args[] = { node_value(p->node), node_value(p->part), value_int(dim), value_int(start),
                               value_int(start + p->view->tensor.meta.size[dim]) };
        return functional_emit(p->f, p->target, args, 5, p->meta, out_node);
}

typedef Status (*PutBackBy)(const PutBack *p, Node **out_node);

Status functional_put_back(Functional *f, const Recorded *view, const Recorded *whole, Node *node, Node *part,
                           Node **out_node)
{
        static const PutBackBy ways[INVERSE_COUNT] = {
                [INVERSE_SIZES] = same_bytes,     [INVERSE_DIM] = unsqueezed, [INVERSE_DIMS] = transposed,
                [INVERSE_ITSELF] = turned,        [INVERSE_ORDER] = permuted, [INVERSE_SELECT] = selected,
                [INVERSE_SLICE] = sliced,         [INVERSE_ROW] = unbound,    [INVERSE_PART] = split_off,
                [INVERSE_DIAGONAL] = on_diagonal,
        };
        const char *target = NULL;
        ViewInverse inverse = op_view_inverse(view->call->overload, &target);
        if (inverse == INVERSE_NONE || view->tensor.meta.dtype != whole->tensor.meta.dtype)
                return fail(STATUS_UNSUPPORTED, "nothing writes through %s without writing in place",
                            view->call->overload->target);
        PutBack p = { .f = f,
                      .view = view,
                      .target = target,
                      .call = &view->call->call,
                      .node = node,
                      .part = part,
                      .meta = &whole->tensor.meta };
        return ways[inverse](&p, out_node);
}
