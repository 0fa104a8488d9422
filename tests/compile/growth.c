// SPDX-License-Identifier: Apache-2.0
// growth.h. Each call is tried on real tensors before it becomes a node, so that what stands in the
// graph is valid.
#include "tests/compile/growth.h"
#include <stdio.h>
#include <string.h>
#include "core/targets/targets.h"

int64_t pick(Growth *growth, int64_t low, int64_t high)
{
        return sample_int(&growth->sample, low, high);
}

// ---- tensors ----
static Tensor *copy_of(const Tensor *from)
{
        Tensor *copy;
        cr_assert_eq(tensor_new(&from->meta, NULL, &copy), STATUS_OK);
        if (copy->storage->n_bytes > 0)
                memcpy(tensor_data(copy), tensor_data(from), copy->storage->n_bytes);
        return copy;
}

Tensor *random_tensor(Growth *growth, Dtype dtype, int rank, const int64_t *size, double scale)
{
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, dtype, rank, size);
        if (rank > 1 && pick(growth, 0, 5) == 0) { // as if transposed
                int64_t stride = 1;
                for (int d = 0; d < rank; d++) {
                        meta.stride[d] = stride;
                        stride *= size[d];
                }
        }
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        for (int64_t i = 0; i < meta_numel(&meta); i++) {
                char *element = (char *)tensor_data(tensor) + i * dtype_info[dtype].bytes;
                if (dtype_is_float(dtype))
                        element_from_f64(dtype, element, scale * sample_double(&growth->sample));
                else
                        element_from_i64(dtype, element,
                                         dtype == DTYPE_BOOL ? pick(growth, 0, 1)
                                                             : pick(growth, dtype == DTYPE_U8 ? 0 : -9, 9));
        }
        return tensor;
}

Made *hold(Growth *growth, Node *node, Tensor *take_tensor)
{
        Made *made = &growth->made[growth->n_made++];
        *made = (Made){ .node = node, .tensor = take_tensor };
        return made;
}

void add_input(Growth *growth, Tensor *take_tensor)
{
        char name[8];
        Node *node;
        snprintf(name, sizeof(name), "x%d", growth->n_inputs);
        cr_assert_eq(
                graph_add_node(growth->graph, &(NodeSpec){ .op = OP_PLACEHOLDER, .target = name }, &node),
                STATUS_OK);
        growth->inputs[growth->n_inputs++] = value_tensor_take(take_tensor);
        hold(growth, node, copy_of(take_tensor));
}

Made *add_state(Growth *growth, Tensor *take_tensor)
{
        char path[16];
        Node *node;
        State *state;
        Tensor *copy = copy_of(take_tensor);
        snprintf(path, sizeof(path), "w%d", growth->n_states++);
        cr_assert_eq(graph_add_state(growth->graph, path, take_tensor, &state), STATUS_OK);
        cr_assert_eq(graph_add_node(growth->graph, &(NodeSpec){ .op = OP_GET_ATTR, .target = path }, &node),
                     STATUS_OK);
        return hold(growth, node, copy);
}

Made *hidden_state(Growth *growth, Tensor *take_tensor)
{
        Made *made = add_state(growth, take_tensor);
        made->hidden = true;
        return made;
}

Made *state_of(Growth *growth, int rank, const int64_t *size, double scale)
{
        return hidden_state(growth, random_tensor(growth, DTYPE_F32, rank, size, scale));
}

// ---- calls ----

Made *made_of(Growth *growth, const Node *node)
{
        for (int i = 0; i < growth->n_made; i++) {
                if (growth->made[i].node == node)
                        return &growth->made[i];
        }
        return NULL;
}

static Status take_tensor(void *context, const Value *leaf, Value *out)
{
        *out = leaf->kind == VALUE_NODE
                       ? (Value){ .kind = VALUE_TENSOR, .tensor = made_of(context, leaf->node)->tensor }
                       : *leaf;
        value_ref(*out);
        return STATUS_OK;
}

typedef struct Look {
        Growth *growth;
        bool rounded, read; // read: to be noted
} Look;

static Status look_at(void *context, const Value *leaf)
{
        Look *look = context;
        Made *made = leaf->kind == VALUE_NODE ? made_of(look->growth, leaf->node) : NULL;
        look->rounded |= made != NULL && made->rounded;
        if (made != NULL && look->read)
                made->read = true;
        return STATUS_OK;
}

static Node *add_node(Growth *growth, const char *target, const Value *args, uint32_t n)
{
        Node *node;
        Seq *seq;
        cr_assert_eq(seq_new(n, &seq), STATUS_OK);
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(args[i]);
        cr_assert_eq(graph_add_node(growth->graph,
                                    &(NodeSpec){ .op = OP_CALL_FUNCTION,
                                                 .target = target,
                                                 .args = value_seq_take(VALUE_TUPLE, seq) },
                                    &node),
                     STATUS_OK);
        return node;
}

// All that stands on the same bytes is rounded, too.
static void spread(Growth *growth, const Made *from)
{
        for (int i = 0; i < growth->n_made && from->rounded; i++)
                growth->made[i].rounded |= growth->made[i].tensor->storage == from->tensor->storage;
}

static Made *take_result(Growth *growth, const char *name, const Value *args, uint32_t n, Value result,
                         bool rounded)
{
        char target[80];
        bool list = value_is_sequence(result);
        uint32_t at = list ? (uint32_t)pick(growth, 0, result.seq->n - 1) : 0;
        Value leaf = list ? result.seq->items[at] : result;
        if (leaf.kind != VALUE_TENSOR || meta_numel(&leaf.tensor->meta) > MAX_ELEMENTS ||
            leaf.tensor->meta.rank > 5)
                return NULL;
        Dtype dtype = leaf.tensor->meta.dtype;
        if (rounded && dtype != DTYPE_F32 && dtype != DTYPE_F64)
                return NULL;
        snprintf(target, sizeof(target), "torch.ops.aten.%s%s", name,
                 strchr(name, '.') == NULL ? ".default" : "");
        Node *node = add_node(growth, target, args, n);
        if (list)
                node = add_node(growth, "_operator.getitem",
                                (Value[]){ { .kind = VALUE_NODE, .node = node }, value_int(at) }, 2);
        Made *made = hold(growth, node, tensor_ref(leaf.tensor));
        made->rounded = rounded;
        spread(growth, made);
        return made;
}

// NULL where such a call fails, or is not wanted. In-place calls that are not wanted have written,
// which no later call minds.
Made *call(Growth *growth, const char *name, int flags, const Value *args, uint32_t n)
{
        char full[80];
        Value with[8];
        _cleanup_(value_clear) Value result = value_none();
        Look look = { .growth = growth };
        if (growth->n_made + 2 > MAX_MADE)
                return NULL;
        for (uint32_t i = 0; i < n; i++) {
                (void)value_walk(args[i], look_at, &look);
                cr_assert_eq(value_map(args[i], take_tensor, growth, &with[i]), STATUS_OK);
        }
        Status status = STATUS_VALUE;
        snprintf(full, sizeof(full), "aten::%s", name);
        if (!look.rounded || (flags & EXACT) == 0)
                status = emit_values(eager_emitter(growth->eager), full, with, n, &result);
        for (uint32_t i = 0; i < n; i++)
                value_unref(with[i]);
        Made *made = status == STATUS_OK ? take_result(growth, name, args, n, result,
                                                       look.rounded || (flags & PRODUCT) != 0)
                                         : NULL;
        look.read = true;
        for (uint32_t i = 0; i < n && made != NULL; i++)
                (void)value_walk(args[i], look_at, &look);
        return made;
}

Value of(const Made *made)
{
        return (Value){ .kind = VALUE_NODE, .node = made->node };
}

// ---- arguments ----
bool any_dtype(Dtype dtype)
{
        return dtype != DTYPE_NONE;
}
static bool integer_dtype(Dtype dtype)
{
        return !dtype_is_float(dtype) && dtype != DTYPE_BOOL;
}
static bool bool_dtype(Dtype dtype)
{
        return dtype == DTYPE_BOOL;
}

static bool broadcasts(const TensorMeta *a, const TensorMeta *b)
{
        for (int d = 1; d <= a->rank && d <= b->rank; d++) {
                int64_t x = a->size[a->rank - d], y = b->size[b->rank - d];
                if (x != y && x != 1 && y != 1)
                        return false;
        }
        return true;
}

const Made *any_of(Growth *growth, Wanted wanted, const Made *with)
{
        bool fresh = pick(growth, 0, 2) > 0;
        for (int tries = 0; tries < 40; tries++) {
                const Made *made = &growth->made[pick(growth, tries < 20 ? MAX(0, growth->n_made - 8) : 0,
                                                      growth->n_made - 1)];
                if (wanted(made->tensor->meta.dtype) && !made->hidden &&
                    (!fresh || !made->read || tries >= 12) &&
                    (with == NULL || broadcasts(&made->tensor->meta, &with->tensor->meta)))
                        return made;
        }
        return &growth->made[0]; // operators refuse what they do not take
}

Value list_of(const int64_t *items, uint32_t n)
{
        Value list;
        cr_assert_eq(value_ints_new(VALUE_LIST, items, n, &list), STATUS_OK);
        return list;
}

Value argument(Growth *growth, char code, const Made *first)
{
        static const Dtype dtypes[] = { DTYPE_F32, DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16, DTYPE_I64,
                                        DTYPE_I32, DTYPE_I16, DTYPE_I8,  DTYPE_U8,  DTYPE_BOOL };
        static const double numbers[] = { 0, 0.5, 1, -1, 2, 3, -0.25, 1.75 };
        int rank = first == NULL ? 1 : MAX(first->tensor->meta.rank, 1);
        switch (code) {
        case 't':
                return of(any_of(growth, any_dtype, first));
        case 'f':
                return of(any_of(growth, dtype_is_float, first));
        case 'i':
                return of(any_of(growth, integer_dtype, first));
        case 'm':
                return of(any_of(growth, bool_dtype, first));
        case 'n':
                return pick(growth, 0, 1) == 0 ? value_int(pick(growth, -3, 3))
                                               : value_float(numbers[pick(growth, 0, 7)]);
        case 'p': // positive
                return pick(growth, 0, 1) == 0 ? value_int(pick(growth, 1, 4))
                                               : value_float((double)pick(growth, 1, 8) / 4);
        case 'k':
                return value_int(pick(growth, 0, 3));
        case 'd':
                return value_int(pick(growth, -rank, rank - 1));
        case 'l': // the last, which kernels are made for, or any
                return value_int(pick(growth, 0, 2) == 0 ? pick(growth, -rank, rank - 1) : -1);
        case 'D': {
                int64_t last = pick(growth, 0, 2) == 0 ? pick(growth, 0, rank - 1) : rank - 1;
                return list_of((int64_t[]){ last, last - 1 }, last > 0 && pick(growth, 0, 2) == 0 ? 2 : 1);
        }
        case 'y':
                return value_bool(pick(growth, 0, 1) == 1);
        case 'T':
                return value_dtype(dtypes[pick(growth, 0, ARRAY_LENGTH(dtypes) - 1)]);
        default:
                return value_none();
        }
}
