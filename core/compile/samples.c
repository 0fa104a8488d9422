// SPDX-License-Identifier: Apache-2.0
// samples.c: walks two recordings of one graph side by side. Both must have the same calls in the
// same order. What each value is, the same or apart along a dimension, follows from the inputs,
// call by call. A value that is mixed does no harm as long as no result depends on it.
#include "core/compile/samples.h"
#include <string.h>
#include "core/ops/apart.h"
#include "core/ops/pointwise.h"

typedef struct Sides {
        const Recording *one, *many;
        int64_t n;
        int8_t *dims; // by value
        ApartOperand *operands;
        uint32_t operands_capacity;
        uint32_t n_operands;
        const RecordedCall *mixing; // the first one whose result is mixed
} Sides;

static Status refuse(const char *why)
{
        return fail(STATUS_UNSUPPORTED, "%s", why);
}

// ---- values that no call makes ----
static bool same_bytes(const Recorded *a, const Recorded *b)
{
        const Storage *x = a->tensor.storage, *y = b->tensor.storage;
        if (x->source != NULL || y->source != NULL) // they may be empty by now
                return x->source != NULL && y->source != NULL &&
                       memcmp(x->source->key.hex, y->source->key.hex, sizeof(x->source->key.hex)) == 0;
        return x == y || x->data == y->data ||
               (x->n_bytes == y->n_bytes && memcmp(x->data, y->data, x->n_bytes) == 0);
}

static int dim_of_source(const Sides *sides, const Recorded *one, const Recorded *many)
{
        int dim = apart_shape(&one->tensor.meta, &many->tensor.meta, sides->n);
        if (one->from == FROM_INPUT)
                return dim == 0 ? 0 : APART_MIXED;
        if (dim != APART_SAME || recorded_is_constant(one) != recorded_is_constant(many))
                return APART_MIXED;
        if (recorded_is_constant(one))
                return same_bytes(one, many) ? APART_SAME : APART_MIXED;
        return APART_SAME;
}

static void start_values(Sides *sides)
{
        for (uint32_t i = 0; i < sides->one->n_values; i++) {
                const Recorded *one = sides->one->values[i], *many = sides->many->values[i];
                sides->dims[i] = one->from == FROM_CALL || one->from != many->from
                                         ? APART_MIXED
                                         : (int8_t)dim_of_source(sides, one, many);
        }
}

static Status check_buffers(const Recording *recording)
{
        for (uint32_t i = 0; i < recording->n_buffers; i++) {
                const Buffer *buffer = recording->buffers[i];
                if (buffer->written && buffer->kind == BUFFER_STATE)
                        return refuse("the graph writes to its state");
                if (buffer->written && buffer->kind == BUFFER_INPUT)
                        return refuse("the graph writes to an input");
        }
        return STATUS_OK;
}

// ---- calls ----
static Status add_one(void *context, Recorded *value)
{
        Sides *sides = context;
        TRY(array_reserve(&sides->operands, &sides->operands_capacity, sides->n_operands + 1,
                          sizeof(*sides->operands)));
        sides->operands[sides->n_operands++] = (ApartOperand){
                .one = value == NULL ? NULL : &value->tensor.meta,
                .dim = value == NULL ? APART_SAME : sides->dims[value->index],
        };
        return STATUS_OK;
}

// The other side of operand `n_operands`; the lists are equally long.
static Status add_many(void *context, Recorded *value)
{
        Sides *sides = context;
        ApartOperand *operand = &sides->operands[sides->n_operands];
        bool same = (value == NULL) == (operand->one == NULL) &&
                    (value == NULL || operand->one == &sides->one->values[value->index]->tensor.meta);
        if (!same)
                return refuse("its calls depend on how many samples there are");
        operand->many = value == NULL ? NULL : &value->tensor.meta;
        sides->n_operands++;
        return STATUS_OK;
}

static Status read_operands(Sides *sides, const RecordedCall *one, const RecordedCall *many)
{
        sides->n_operands = 0;
        TRY(recorded_visit_inputs(one, add_one, sides));
        sides->n_operands = 0;
        for (uint32_t i = 0; i < one->call.n_args; i++) {
                const Value *a = &one->call.args[i], *b = &many->call.args[i];
                if (value_is_sequence(*a) != value_is_sequence(*b) ||
                    (value_is_sequence(*a) && one->call.schema->args[i].type == ARG_TENSOR &&
                     a->seq->n != b->seq->n))
                        return refuse("its calls depend on how many samples there are");
        }
        return recorded_visit_inputs(many, add_many, sides);
}

static Status at_call(const RecordedCall *call, const char *what)
{
        return fail(STATUS_UNSUPPORTED, "node '%s' (%s) %s", call->n_nodes == 0 ? "?" : call->nodes[0]->name,
                    call->overload->name, what);
}

static Status mixes(const Sides *sides, const RecordedCall *call)
{
        return at_call(sides->mixing == NULL ? call : sides->mixing, "may mix samples");
}

static bool may_refuse(const OpCall *call)
{
        return (call->op->flags & (OP_EFFECT | OP_CHECKS)) != 0 || pointwise_may_fail(call);
}

static bool reads_mixed(const Sides *sides)
{
        for (uint32_t i = 0; i < sides->n_operands; i++)
                if (sides->operands[i].one != NULL && sides->operands[i].dim == APART_MIXED)
                        return true;
        return false;
}

static Status check_call(Sides *sides, uint32_t index)
{
        const RecordedCall *one = sides->one->calls[index], *many = sides->many->calls[index];
        if (one->overload != many->overload || one->call.n_outs != many->call.n_outs ||
            one->moved != many->moved || one->call.n_args != many->call.n_args)
                return at_call(one, "is another one for other numbers of samples");
        if ((one->call.op->flags & OP_RANDOM) != 0)
                return at_call(one, "draws random numbers");
        if (one->moved != 0)
                return at_call(one, "changes a tensor's shape in place");
        TRY(read_operands(sides, one, many));
        ApartCall call = { &one->call, &many->call, sides->n, sides->operands, sides->n_operands };
        // one run's values would be refused by what the others bring, or be taken for their sake
        const bool refuses = may_refuse(&one->call);
        if (refuses && reads_mixed(sides))
                return mixes(sides, one);
        for (uint32_t k = 0; k < one->call.n_outs; k++) {
                const Recorded *a = one->outs[k], *b = many->outs[k];
                if (a == NULL && b == NULL)
                        continue;
                if (a == NULL || b == NULL || a->index != b->index)
                        return at_call(one, "has other results for other numbers of samples");
                int dim = apart_result(&call, &a->tensor.meta, &b->tensor.meta);
                if ((refuses && dim == APART_MIXED) ||
                    (recorded_writes_self(one) && (dim < APART_SAME || dim != sides->dims[a->index])))
                        return mixes(sides, one);
                if (a->call != one)
                        continue;
                sides->dims[a->index] = (int8_t)dim;
                if (dim == APART_MIXED && sides->mixing == NULL)
                        sides->mixing = one;
        }
        return STATUS_OK;
}

// ---- results ----
typedef struct ResultDims {
        Sides *sides;
        SampleDims dims;
        uint32_t capacity;
} ResultDims;

static Status add_result(void *context, Recorded *value)
{
        ResultDims *results = context;
        int8_t dim = value == NULL ? APART_MIXED : results->sides->dims[value->index];
        const RecordedCall *mixing = results->sides->mixing;
        if (dim < APART_SAME)
                return mixing == NULL ? refuse("a result may depend on all samples")
                                      : at_call(mixing, "may mix samples");
        TRY(array_reserve(&results->dims.dims, &results->capacity, results->dims.n + 1, 1));
        results->dims.dims[results->dims.n++] = dim;
        return STATUS_OK;
}

typedef struct Leaves {
        Value *other; // borrowed
        uint32_t n, at, capacity;
} Leaves;

static Status keep_leaf(void *context, const Value *leaf)
{
        Leaves *leaves = context;
        TRY(array_reserve(&leaves->other, &leaves->capacity, leaves->n + 1, sizeof(*leaves->other)));
        leaves->other[leaves->n++] = *leaf;
        return STATUS_OK;
}

static bool same_result(const Tensor *a, const Tensor *b)
{
        const Recorded *one = recorded_of(a), *many = recorded_of(b);
        return one != NULL && many != NULL && one->index == many->index;
}

static Status compare_leaf(void *context, const Value *leaf)
{
        Leaves *leaves = context;
        const Value *other = leaves->at < leaves->n ? &leaves->other[leaves->at++] : NULL;
        bool same = other != NULL && other->kind == leaf->kind &&
                    (leaf->kind == VALUE_TENSOR  ? same_result(leaf->tensor, other->tensor)
                     : leaf->kind == VALUE_INT   ? leaf->i == other->i
                     : leaf->kind == VALUE_BOOL  ? leaf->b == other->b
                     : leaf->kind == VALUE_FLOAT ? memcmp(&leaf->f, &other->f, sizeof(leaf->f)) == 0
                                                 : leaf->kind == VALUE_NONE);
        return same ? STATUS_OK : refuse("a result tells how many samples there are");
}

static Status compare_results(Value one, Value many)
{
        Leaves leaves = { .n = 0 };
        Status status = value_walk(one, keep_leaf, &leaves);
        if (status == STATUS_OK)
                status = value_walk(many, compare_leaf, &leaves);
        if (status == STATUS_OK && leaves.at != leaves.n)
                status = refuse("a result tells how many samples there are");
        free(leaves.other);
        return status;
}

static Status check_results(Sides *sides, SampleDims *out_dims)
{
        const Recording *one = sides->one, *many = sides->many;
        ResultDims results = { .sides = sides };
        TRY(compare_results(one->result, many->result));
        for (uint32_t i = 0; i < one->n_fetched; i++)
                TRY(compare_results(one->fetched[i], many->fetched[i]));
        Status status = recording_visit_results(one, add_result, &results);
        if (status != STATUS_OK)
                free(results.dims.dims);
        else
                *out_dims = results.dims;
        return status;
}

static Status check_sides(Sides *sides, SampleDims *out_dims)
{
        const Recording *one = sides->one, *many = sides->many;
        if (one->tail != NULL || many->tail != NULL)
                return refuse(
                        "parts of the graph run eagerly, because they need numbers that only a run has");
        if (one->n_values != many->n_values || one->n_calls != many->n_calls ||
            one->n_inputs != many->n_inputs || one->n_fetched != many->n_fetched)
                return refuse("its calls depend on how many samples there are");
        if (one->n_inputs != one->n_tensor_inputs)
                return refuse("it has inputs that are numbers");
        TRY(check_buffers(one));
        TRY(check_buffers(many));
        start_values(sides);
        for (uint32_t i = 0; i < one->n_calls; i++)
                TRY(check_call(sides, i));
        return check_results(sides, out_dims);
}

Status samples_check(const Recording *one, const Recording *many, int64_t n, SampleDims *out_dims)
{
        Sides sides = { .one = one, .many = many, .n = n };
        sides.dims = new_array(one->n_values, sizeof(*sides.dims));
        if (sides.dims == NULL)
                return fail_memory();
        Status status = check_sides(&sides, out_dims);
        free(sides.dims);
        free(sides.operands);
        return status;
}

void sample_dims_deinit(SampleDims *dims)
{
        free(dims->dims);
        *dims = (SampleDims){ .n = 0 };
}
