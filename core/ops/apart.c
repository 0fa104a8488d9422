// SPDX-License-Identifier: Apache-2.0
// apart.c: the rules of apart.def. Where a result can lie apart at all follows from its two shapes:
// one dimension is n times as long. A rule then says whether the operator leads from the operands'
// dimensions to that one. Arguments that are no tensors must be equal in both calls, except for
// shapes where the rule looks at the geometry itself: a number that depends on the size of the
// batch is no number of one run.
#include "core/ops/apart.h"
#include <stdlib.h>
#include <string.h>
#include "core/ops/product.h"

typedef enum Rule {
        NO_RULE,
        FIRST,
        LEADING,
        LOOKUP,
        EACH,
        PAIRS,
        INDEX,
        CHANNELS,
        STEPS,
        PLACES,
        EXPAND,
        REPEAT,
        DIMS,
        RESHAPE,
        FILL,
        PRODUCT,
        ATTENTION
} Rule;
typedef struct Row {
        const char *overload;
        Rule rule;
        int which;
} Row;

static const Row rows[] = {
#define APART(overload, rule, which) { overload, rule, which },
#include "core/ops/apart.def"
#undef APART
};

// ---- rows, by the schema's text up to its bracket ----
static int compare_row(const void *schema, const void *row)
{
        const char *name = ((const Row *)row)->overload, *text = schema;
        size_t n = strlen(name), length = strcspn(text, "(");
        int order = memcmp(text, name, length < n ? length : n);
        return order != 0 ? order : (length > n) - (length < n);
}

static Row row_of(const OpCall *call)
{
        const Row *row =
                bsearch(call->op->schema, rows, sizeof(rows) / sizeof(rows[0]), sizeof(Row), compare_row);
        return row == NULL || call->inplace ? (Row){ .rule = NO_RULE } : *row;
}

// ---- arguments ----
static bool same_leaf(const Value *a, const Value *b)
{
        if (a->kind != b->kind || a->tag != b->tag)
                return false;
        switch (a->kind) {
        case VALUE_NONE:
        case VALUE_ELLIPSIS:
        case VALUE_ABSENT:
                return true;
        case VALUE_BOOL:
                return a->b == b->b;
        case VALUE_INT:
                return a->i == b->i;
        case VALUE_FLOAT:
                return memcmp(&a->f, &b->f, sizeof(a->f)) == 0;
        case VALUE_COMPLEX:
                return memcmp(&a->c, &b->c, sizeof(a->c)) == 0;
        case VALUE_DTYPE:
                return a->dtype == b->dtype;
        case VALUE_MEMORY_FORMAT:
                return a->memory_format == b->memory_format;
        case VALUE_STR:
        case VALUE_DEVICE:
        case VALUE_LAYOUT:
                return strcmp(a->str->text, b->str->text) == 0;
        default:
                return false;
        }
}

static bool same_value(const Value *a, const Value *b)
{
        if (!value_is_sequence(*a))
                return same_leaf(a, b);
        if (a->kind != b->kind || a->seq->n != b->seq->n)
                return false;
        for (uint32_t i = 0; i < a->seq->n; i++)
                if (!same_leaf(&a->seq->items[i], &b->seq->items[i]))
                        return false;
        return true;
}

// `but`: the one that may differ; -1: none. The size of the batch as native_group_norm takes it may
// differ, too: it says what the input's shape says.
static bool same_arguments(const ApartCall *call, int but)
{
        for (uint32_t i = 0; i < call->one->n_args; i++)
                if ((int)i != but && call->one->schema->args[i].type != ARG_TENSOR && // an operand
                    strcmp(call->one->schema->args[i].name, "N") != 0 &&
                    !same_value(&call->one->args[i], &call->many->args[i]))
                        return false;
        return true;
}

// ---- operands ----
static bool is_apart(const ApartOperand *operand)
{
        return operand->one != NULL && operand->dim >= 0;
}

static uint32_t count_apart(const ApartCall *call)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < call->n_operands; i++)
                n += is_apart(&call->operands[i]);
        return n;
}

// Of an operand that is broadcast against a result that is apart along `dim`: it is apart along the
// same dimension, counted from the last, or has one element for all there.
static bool broadcasts(const ApartOperand *operand, int dim, int rank)
{
        if (operand->one == NULL)
                return true;
        int at = dim - rank + operand->one->rank;
        return is_apart(operand) ? operand->dim == at : at < 0 || operand->many->size[at] == 1;
}

static bool all_broadcast(const ApartCall *call, uint32_t n, int dim, int rank)
{
        for (uint32_t i = 0; i < n; i++)
                if (!broadcasts(&call->operands[i], dim, rank))
                        return false;
        return true;
}

static int64_t product_before(const TensorMeta *meta, int dim)
{
        int64_t n = 1;
        for (int i = 0; i < dim; i++)
                n *= meta->size[i];
        return n;
}

// ---- rules; `dim`: of the result ----
typedef struct Seen {
        const ApartCall *call;
        const TensorMeta *one, *many; // the result's
        int dim;
        int which;
} Seen;

// Only operand `index` is apart.
static bool only(const Seen *seen, uint32_t index)
{
        return seen->call->n_operands > index && is_apart(&seen->call->operands[index]) &&
               count_apart(seen->call) == 1;
}

static bool first(const Seen *seen)
{
        const ApartOperand *operand = &seen->call->operands[0];
        return only(seen, 0) && operand->dim == 0 && operand->one->rank >= seen->which && seen->dim == 0;
}

// Products of rows that lie one after another take another way than those of other rows
// (product.c): the bits differ. A batch of one has such rows always.
static bool rows_lie(const TensorMeta *meta)
{
        TensorMeta made;
        return product_rows(meta, &made) && (made.stride[1] == 1 || made.size[1] == 1);
}

static bool same_way(const ApartOperand *left)
{
        return rows_lie(left->one) == rows_lie(left->many);
}

static bool leading(const Seen *seen)
{
        const ApartOperand *operand = &seen->call->operands[0];
        bool is_product = strncmp(seen->call->one->op->schema, "aten::linear(", 13) == 0;
        int taken = seen->which > 0 ? seen->which : (int)arg_list_length(seen->call->one, 1) / -seen->which;
        return only(seen, 0) && operand->dim < operand->one->rank - taken && seen->dim == operand->dim &&
               (!is_product || same_way(operand));
}

static bool along_others(const Seen *seen)
{
        const ApartCall *call = seen->call;
        const ApartOperand *operand = &call->operands[0];
        bool picks = strncmp(call->one->op->schema, "aten::index_select(", 19) == 0;
        if (!is_apart(operand) || count_apart(call) != (picks ? 1 : call->n_operands))
                return false;
        // as long as the first one: row 2 of an index of 2 rows, of the next run, meets row 2 of 3
        for (uint32_t i = 1; i < call->n_operands && !picks; i++)
                if (call->operands[i].dim != operand->dim ||
                    call->operands[i].one->size[operand->dim] != operand->one->size[operand->dim])
                        return false;
        int rank = MAX((int)operand->one->rank, (int)seen->one->rank), dim = operand->dim;
        uint32_t mask;
        if (arg_dims(call->one, seen->which, rank, true, &mask) != STATUS_OK)
                return false;
        if (seen->one->rank > operand->one->rank) // a new dimension
                return (mask & ((2u << dim) - 1)) != 0 ? seen->dim == dim + 1 : seen->dim == dim;
        if ((mask >> dim & 1) != 0)
                return false;
        int removed =
                seen->one->rank == operand->one->rank ? 0 : __builtin_popcount(mask & ((1u << dim) - 1));
        return seen->dim == dim - removed;
}

static bool reshaped(const Seen *seen)
{
        const ApartOperand *operand = &seen->call->operands[0];
        return only(seen, 0) &&
               product_before(operand->one, operand->dim) == product_before(seen->one, seen->dim);
}

// Where dimension `dim` of a factor is found in a result of `rank`; -1: products are summed along
// it. `is_left`: the first factor.
static int dim_after_product(const ApartOperand *factor, bool is_left, int rank)
{
        int from_end = factor->one->rank - factor->dim;
        if (from_end <= 2)
                return from_end == (is_left ? 2 : 1) ? rank - from_end : -1;
        return rank - from_end;
}

static bool product(const Seen *seen)
{
        const ApartCall *call = seen->call;
        uint32_t at = (uint32_t)seen->which;
        if (call->n_operands < at + 2 || !all_broadcast(call, at, seen->dim, seen->one->rank))
                return false;
        const ApartOperand *a = &call->operands[at], *b = a + 1;
        int rank = seen->one->rank;
        if (a->one == NULL || b->one == NULL || a->one->rank < 2 || b->one->rank < 2)
                return false;
        bool batched = seen->dim < rank - 2; // else rows of a, or columns of b
        if (is_apart(a) && dim_after_product(a, true, rank) != seen->dim)
                return false;
        if (is_apart(b) && dim_after_product(b, false, rank) != seen->dim)
                return false;
        if (!batched)
                return is_apart(a) != is_apart(b) && same_way(a);
        return broadcasts(a, seen->dim, rank) && broadcasts(b, seen->dim, rank);
}

static bool attention(const Seen *seen)
{
        const ApartCall *call = seen->call;
        if (call->n_operands < 3 || seen->dim != 0)
                return false;
        for (uint32_t i = 0; i < call->n_operands; i++) {
                const ApartOperand *operand = &call->operands[i];
                if (i < 3 ? operand->one == NULL || operand->dim != 0 || operand->one->rank < 3
                          : !broadcasts(operand, 0, seen->one->rank))
                        return false;
        }
        return true;
}

// Every element of operand 0 by itself, next to tensors that are the same for all.
static bool each(const Seen *seen)
{
        if (seen->which >= 0) {
                const Value *number = &seen->call->one->args[seen->which];
                if (number->kind != VALUE_INT || number->i < 0)
                        return false; // follows from all elements
        }
        return only(seen, 0) && seen->call->operands[0].dim == seen->dim;
}

static bool paired(const Seen *seen)
{
        const ApartCall *call = seen->call;
        for (uint32_t i = 0; i < call->n_operands; i++) {
                const ApartOperand *operand = &call->operands[i];
                if (operand->one == NULL || operand->dim != 0 || operand->one->rank < seen->which ||
                    operand->one->size[0] != call->operands[0].one->size[0])
                        return false;
        }
        return seen->dim == 0;
}

static bool in_channels(const Seen *seen)
{
        const ApartCall *call = seen->call;
        if (first(seen))
                return seen->which > 0; // statistics of the batch's own are of all samples
        if (!is_apart(&call->operands[0]) || call->operands[0].dim != 1)
                return false;
        for (uint32_t i = 1; i < call->n_operands; i++)
                if (call->operands[i].one != NULL && call->operands[i].dim != 0)
                        return false;
        return seen->dim == (seen->one->rank == 1 ? 0 : 1);
}

static bool stepped(const Seen *seen)
{
        const ApartCall *call = seen->call;
        int rank = seen->one->rank;
        for (uint32_t i = 0; i < call->n_operands; i++) {
                const ApartOperand *operand = &call->operands[i];
                int want = i == 0 ? 1 : (int)i <= seen->which ? 0 : APART_SAME;
                if (operand->one != NULL && operand->dim != want)
                        return false;
        }
        return call->operands[0].one->rank == 3 && seen->dim == (rank == 3 ? 1 : 0);
}

// What of the result comes from where, of a table that is indexed.
typedef struct Indexed {
        int first, n;         // dimensions of the table that are indexed
        int rank;             // of all indices, broadcast
        bool adjacent, plain; // plain: no masks
        uint32_t mask;
} Indexed;

static Indexed indexed(const ApartCall *call)
{
        Indexed of = { .plain = call->n_operands > 1 && call->operands[0].one != NULL };
        int last = -1;
        for (uint32_t i = 1; i < call->n_operands; i++) {
                const TensorMeta *meta = call->operands[i].one;
                if (meta == NULL)
                        continue;
                if (of.n == 0)
                        of.first = (int)i - 1;
                of.n++;
                last = (int)i - 1;
                of.mask |= 1u << last;
                of.rank = MAX(of.rank, (int)meta->rank);
                of.plain = of.plain && (meta->dtype == DTYPE_I64 || meta->dtype == DTYPE_I32);
        }
        of.adjacent = last - of.first + 1 == of.n;
        return of;
}

static bool index_follows(const Seen *seen)
{
        const ApartCall *call = seen->call;
        const ApartOperand *table = &call->operands[0];
        Indexed of = indexed(call);
        if (!of.plain || of.n == 0 || call->n_operands > MAX_RANK + 1)
                return false;
        if (is_apart(table)) { // along a dimension that no index goes to
                int d = table->dim, before = __builtin_popcount(~of.mask & ((1u << d) - 1));
                bool leads = of.adjacent ? d < of.first : false;
                return only(seen, 0) && (of.mask >> d & 1) == 0 &&
                       seen->dim == (leads ? d : before + of.rank);
        }
        int start = of.adjacent ? of.first : 0, at = seen->dim - start;
        if (at < 0 || at >= of.rank)
                return false;
        for (uint32_t i = 1; i < call->n_operands; i++)
                if (!broadcasts(&call->operands[i], at, of.rank))
                        return false;
        return true;
}

// Where a view begins and how it steps is the same in both calls. How long it is, its shape says.
static bool same_places(const ApartCall *call)
{
        static const char *const lengths[] = { "size", "sizes", "end", "length" };
        for (uint32_t i = 0; i < call->one->n_args; i++) {
                const SchemaArg *arg = &call->one->schema->args[i];
                bool is_length = false;
                for (size_t k = 0; k < ARRAY_LENGTH(lengths); k++)
                        is_length |= strcmp(arg->name, lengths[k]) == 0;
                if (!is_length && arg->type != ARG_TENSOR &&
                    !same_value(&call->one->args[i], &call->many->args[i]))
                        return false;
        }
        return true;
}

static bool is_view(const ApartCall *call)
{
        return call->one->n_outs > 0 && call->one->outs[0].kind == OUT_VIEW;
}

// ---- places ----
static int places_dim(const ApartOperand *operand) // -1: it has none
{
        return operand->one == NULL || operand->dim > APART_PLACES ? -1 : APART_PLACES - operand->dim;
}

static bool is_number(const Value *value, int64_t number)
{
        return value->kind == VALUE_INT && value->i == number;
}

static bool counts(const Seen *seen)
{
        const OpCall *one = seen->call->one;
        if (seen->dim != 0 || seen->one->dtype != DTYPE_I64 || !same_arguments(seen->call, seen->which))
                return false;
        for (uint32_t i = 0; i < one->n_args; i++) {
                const char *name = one->schema->args[i].name;
                if ((strcmp(name, "start") == 0 && !is_number(&one->args[i], 0)) ||
                    (strcmp(name, "step") == 0 && !is_number(&one->args[i], 1)))
                        return false;
        }
        return true;
}

// A table that is apart, read along that dimension at the places of each run's own rows.
static bool reads_places(const Seen *seen)
{
        const ApartCall *call = seen->call;
        const ApartOperand *table = &call->operands[0];
        Indexed of = indexed(call);
        if (!of.plain || !is_apart(table) || (uint32_t)table->dim + 1 >= call->n_operands)
                return false;
        const ApartOperand *places = &call->operands[table->dim + 1];
        int d = places_dim(places);
        if (d < 0 || places->one->size[d] != table->one->size[table->dim])
                return false;
        int at = of.rank - places->one->rank + d;
        for (uint32_t i = 1; i < call->n_operands; i++) {
                const ApartOperand *other = &call->operands[i];
                if (other != places && (places_dim(other) >= 0 || !broadcasts(other, at, of.rank)))
                        return false;
        }
        return seen->dim == (of.adjacent ? of.first : 0) + at;
}

// With places among the operands. What is not known to read them is taken to mix.
static int from_places(const Seen *seen, Rule rule)
{
        const ApartOperand *operand = &seen->call->operands[0];
        int d = places_dim(operand);
        if (rule == INDEX)
                return same_arguments(seen->call, -1) && reads_places(seen) ? seen->dim : APART_MIXED;
        bool is_whole = is_view(seen->call) && seen->call->n_operands == 1 && d >= 0 && seen->dim >= 0 &&
                        seen->call->one->op->role != ROLE_AS_STRIDED && same_places(seen->call) &&
                        operand->many->size[d] == seen->many->size[seen->dim] &&
                        operand->many->stride[d] == seen->many->stride[seen->dim];
        return is_whole ? APART_PLACES - seen->dim : APART_MIXED;
}

static bool expanded(const Seen *seen)
{
        return seen->call->n_operands == 2 &&
               broadcasts(&seen->call->operands[0], seen->dim, seen->one->rank);
}

// How often a dimension of the result is repeated; 0: it is not known.
static int64_t repeats(const OpCall *call, int which, int dim)
{
        const Value *list = &call->args[which];
        if (!value_is_sequence(*list) || dim < 0 || (uint32_t)dim >= list->seq->n ||
            list->seq->items[dim].kind != VALUE_INT)
                return 0;
        return list->seq->items[dim].i;
}

// All but `but` are repeated as often in both calls.
static bool same_repeats(const Seen *seen, int but)
{
        for (int d = 0; d < seen->one->rank; d++) {
                int64_t one = repeats(seen->call->one, seen->which, d);
                if (d != but && (one == 0 || one != repeats(seen->call->many, seen->which, d)))
                        return false;
        }
        return true;
}

static bool repeated(const Seen *seen)
{
        const ApartOperand *operand = &seen->call->operands[0];
        return only(seen, 0) && same_repeats(seen, -1) &&
               seen->dim == operand->dim + seen->one->rank - operand->one->rank &&
               repeats(seen->call->one, seen->which, seen->dim) == 1;
}

// A view that takes the whole dimension along which its base is apart.
static bool viewed(const Seen *seen)
{
        const ApartOperand *operand = &seen->call->operands[0];
        return only(seen, 0) && seen->call->n_operands == 1 && seen->call->one->op->role != ROLE_AS_STRIDED &&
               same_places(seen->call) && operand->many->size[operand->dim] == seen->many->size[seen->dim] &&
               operand->many->stride[operand->dim] == seen->many->stride[seen->dim];
}

static bool follows(const Seen *seen, Rule rule)
{
        const ApartCall *call = seen->call;
        if (is_view(call) && viewed(seen))
                return true;
        if (rule == REPEAT)
                return repeated(seen);
        if (rule == RESHAPE || rule == FILL)
                return rule == FILL ? same_arguments(call, seen->which) : reshaped(seen);
        if (!same_arguments(call, -1))
                return false;
        if ((call->one->op->flags & OP_ELEMENTWISE) != 0 || op_has(call->one, TRAIT_COPIES))
                return all_broadcast(call, call->n_operands, seen->dim, seen->one->rank);
        switch (rule) {
        case FIRST:
                return first(seen);
        case LEADING:
                return leading(seen);
        case LOOKUP:
                return only(seen, 1) && call->operands[1].dim == seen->dim;
        case EACH:
                return each(seen);
        case PAIRS:
                return paired(seen);
        case INDEX:
                return index_follows(seen);
        case CHANNELS:
                return in_channels(seen);
        case STEPS:
                return stepped(seen);
        case EXPAND:
                return expanded(seen);
        case DIMS:
                return along_others(seen);
        case PRODUCT:
                return product(seen);
        case ATTENTION:
                return attention(seen);
        default:
                return false;
        }
}

// All operands are the same: the result is as well, or it repeats one sample for all.
static int from_same(const Seen *seen, Row row)
{
        const ApartCall *call = seen->call;
        if (seen->dim == APART_SAME)
                return same_arguments(call, -1) ? APART_SAME : APART_MIXED;
        if (row.rule == FILL)
                return same_arguments(call, row.which) ? seen->dim : APART_MIXED;
        if (row.rule == PLACES)
                return counts(seen) ? APART_PLACES - seen->dim : APART_MIXED;
        // as often as there are samples more: a part of it repeats what one run has
        if (row.rule == REPEAT)
                return same_repeats(seen, seen->dim) && call->n_operands == 1 &&
                                       repeats(call->many, row.which, seen->dim) ==
                                               call->n * repeats(call->one, row.which, seen->dim)
                               ? seen->dim
                               : APART_MIXED;
        bool expands = call->n_operands == 1 && strncmp(call->one->op->schema, "aten::expand(", 13) == 0;
        return expands && broadcasts(&call->operands[0], seen->dim, seen->one->rank) ? seen->dim
                                                                                     : APART_MIXED;
}

int apart_shape(const TensorMeta *one, const TensorMeta *many, int64_t n)
{
        int dim = APART_SAME;
        if (one->dtype != many->dtype || one->rank != many->rank || one->wrapped != many->wrapped)
                return APART_MIXED;
        for (int i = 0; i < one->rank; i++) {
                if (one->size[i] == many->size[i])
                        continue;
                if (dim != APART_SAME || many->size[i] != n * one->size[i])
                        return APART_MIXED;
                dim = i;
        }
        return dim;
}

int apart_result(const ApartCall *call, const TensorMeta *one, const TensorMeta *many)
{
        Row row = row_of(call->one);
        Seen seen = { call, one, many, apart_shape(one, many, call->n), row.which };
        for (uint32_t i = 0; i < call->n_operands; i++)
                if (call->operands[i].one != NULL && call->operands[i].dim == APART_MIXED)
                        return APART_MIXED;
        if (seen.dim == APART_MIXED || (call->one->op->flags & OP_RANDOM) != 0)
                return APART_MIXED;
        for (uint32_t i = 0; i < call->n_operands; i++)
                if (places_dim(&call->operands[i]) >= 0)
                        return from_places(&seen, row.rule);
        if (count_apart(call) == 0)
                return from_same(&seen, row);
        if (seen.dim == APART_SAME) // of samples only their shape is read
                return row.rule == FILL && same_arguments(call, -1) ? APART_SAME : APART_MIXED;
        return follows(&seen, row.rule) ? seen.dim : APART_MIXED;
}
