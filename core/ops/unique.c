// SPDX-License-Identifier: Apache-2.0
// unique.c: the different elements of a tensor, or its different slices: sorted, then those that
// differ from the one before. Only the run knows how many there are.
#include "core/ops/compose.h"

// A run of equal elements has a number, from 0.
typedef struct Groups {
        Value starts; // bool [n]: an element that differs from the one before it
        int64_t n;
} Groups;

// Elements of a vector, or slices along the first dimension of a matrix.
static Groups groups_of(Compose *c, Value items)
{
        const TensorMeta *meta = compose_meta(c, items);
        Groups groups = { .n = meta->rank == 0 ? 0 : meta->size[0] };
        Value one = value_int(1), zero = value_int(0), rest = value_int(MAX(groups.n - 1, 0));
        Value later = OP(c, "aten::narrow", items, zero, value_int(MIN(groups.n, 1)), rest),
              earlier = OP(c, "aten::narrow", items, zero, zero, rest);
        Value differs = OP(c, "aten::ne.Tensor", later, earlier);
        if (!compose_failed(c) && meta->rank > 1)
                differs = OP(c, "aten::any.dim", differs, one);
        Value parts[] = { OP(c, "aten::ones", INTS(c, MIN(groups.n, 1)), value_dtype(DTYPE_BOOL)), differs };
        groups.starts = OP(c, "aten::cat", compose_list(c, parts, 2));
        return groups;
}

// The number of each element's group.
static Value group_numbers(Compose *c, const Groups *groups)
{
        return OP(c, "aten::sub.Scalar", OP(c, "aten::cumsum", groups->starts, value_int(0)), value_int(1));
}

// How many elements each group has: the way from its start to the next one's.
static Value group_counts(Compose *c, const Groups *groups, Value starts)
{
        Value end = OP(c, "aten::full", INTS(c, groups->n > 0), value_int(groups->n), value_dtype(DTYPE_I64));
        Value edges = OP(c, "aten::cat", compose_list(c, (Value[]){ starts, end }, 2));
        return OP(c, "aten::diff", edges);
}

static Value start_places(Compose *c, const Groups *groups)
{
        return OP(c, "aten::reshape", OP(c, "aten::nonzero", groups->starts), INTS(c, -1));
}

static Value none_asked(Compose *c)
{
        return OP(c, "aten::empty.memory_format", INTS(c, 0), value_dtype(DTYPE_I64));
}

static Value like_self(Compose *c, Value flat, const TensorMeta *self)
{
        return OP(c, "aten::reshape", flat, compose_ints(c, self->size, self->rank));
}

// Group numbers of sorted items, in the order that the items had before.
static Value unsorted(Compose *c, Value numbers, Value order)
{
        return OP(c, "aten::scatter.src", OP(c, "aten::zeros_like", numbers), value_int(0), order, numbers);
}

// ---- of all elements ----
static Status unique_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        const bool with_counts = call->schema->n_returns == 3;
        Value sorted = OP(&c, "aten::sort", OP(&c, "aten::reshape", self, INTS(&c, -1)));
        Value values = compose_item(&c, sorted, 0);
        Groups groups = groups_of(&c, values);
        Value items[3] = { OP(&c, "aten::masked_select", values, groups.starts), none_asked(&c),
                           none_asked(&c) };
        if (compose_bool(&c, "return_inverse"))
                items[1] = like_self(
                        &c, unsorted(&c, group_numbers(&c, &groups), compose_item(&c, sorted, 1)), meta);
        if (with_counts && compose_bool(&c, "return_counts"))
                items[2] = group_counts(&c, &groups, start_places(&c, &groups));
        return compose_end(&c, compose_tuple(&c, items, with_counts ? 3 : 2), out);
}

// ---- of slices ----
// Slices along `dim` as rows.
static Value rows_of(Compose *c, Value self, int dim)
{
        Value first = OP(c, "aten::movedim.int", self, value_int(dim), value_int(0));
        const TensorMeta *meta = compose_meta(c, first);
        int64_t width = 1;
        for (int d = 1; d < meta->rank; d++)
                width *= meta->size[d];
        return OP(c, "aten::reshape", first, INTS(c, meta->rank == 0 ? 1 : meta->size[0], width));
}

// Some of the rows as slices along `dim` of a tensor like self.
static Value as_slices(Compose *c, Value rows, const TensorMeta *self, int dim)
{
        int64_t size[MAX_RANK] = { compose_meta(c, rows)->size[0] };
        int n = 1;
        for (int d = 0; d < self->rank; d++) {
                if (d != dim)
                        size[n++] = self->size[d];
        }
        return OP(c, "aten::movedim.int", OP(c, "aten::reshape", rows, compose_ints(c, size, n)),
                  value_int(0), value_int(dim));
}

// The order of the rows: sorted by the last column, then, keeping that order, by the one before.
static Value row_order(Compose *c, Value rows)
{
        enum { MAX_COLUMNS = 256 };
        const TensorMeta *meta = compose_meta(c, rows);
        const int64_t n = compose_failed(c) ? 0 : meta->size[0],
                      columns = compose_failed(c) ? 0 : meta->size[1];
        if (columns > MAX_COLUMNS)
                compose_check(c, fail(STATUS_UNSUPPORTED,
                                      "%s: slices of more than %d elements are not supported", c->name,
                                      MAX_COLUMNS));
        Value order = OP(c, "aten::arange", value_int(n), value_dtype(DTYPE_I64)), zero = value_int(0);
        for (int64_t k = columns - 1; k >= 0 && !compose_failed(c); k--) {
                Value column = OP(c, "aten::select.int", rows, value_int(1), value_int(k));
                Value sorted = OP(c, "aten::sort.stable", OP(c, "aten::index_select", column, zero, order),
                                  value_bool(true), zero, value_bool(false));
                order = OP(c, "aten::index_select", order, zero, compose_item(c, sorted, 1));
        }
        return order;
}

static Status unique_dim_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const int dim = compose_dim(&c, "dim", compose_meta(&c, self)->rank);
        if (!compose_failed(&c) && compose_meta(&c, self)->rank == 0)
                return fail(STATUS_SHAPE, "Dimension specified as %d but tensor has no dimensions",
                            (int)compose_int(&c, "dim"));
        if (!compose_failed(&c) && meta_numel(compose_meta(&c, self)) == 0)
                return fail(STATUS_UNSUPPORTED, "%s of tensors without elements is not supported", c.name);
        Value rows = rows_of(&c, self, dim), order = row_order(&c, rows);
        Groups groups = groups_of(&c, OP(&c, "aten::index_select", rows, value_int(0), order));
        Value starts = start_places(&c, &groups);
        Value picked = OP(&c, "aten::index_select", order, value_int(0), starts);
        Value kept = OP(&c, "aten::index_select", rows, value_int(0), picked);
        Value items[] = { as_slices(&c, kept, compose_meta(&c, self), dim),
                          unsorted(&c, group_numbers(&c, &groups), order),
                          group_counts(&c, &groups, starts) };
        return compose_end(&c, compose_tuple(&c, items, 3), out);
}

// ---- of neighbours ----
static Status consecutive_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        const int dim = compose_has(&c, "dim") ? compose_dim(&c, "dim", meta->rank) : 0;
        const bool whole = !compose_has(&c, "dim") || (meta->rank == 1 && compose_int(&c, "dim") == 0);
        if (!whole && !compose_failed(&c) && meta->rank == 0)
                return fail(STATUS_SHAPE, "Dimension specified as 0 but tensor has no dimensions");
        if (!whole && !compose_failed(&c) && meta_numel(meta) == 0)
                return fail(STATUS_UNSUPPORTED, "%s of tensors without elements is not supported", c.name);
        Value items = whole ? OP(&c, "aten::reshape", self, INTS(&c, -1)) : rows_of(&c, self, dim);
        Groups groups = groups_of(&c, items);
        Value starts = start_places(&c, &groups), numbers = none_asked(&c), counts = none_asked(&c);
        if (!whole || compose_bool(&c, "return_inverse")) { // of slices PyTorch gives all three
                numbers = group_numbers(&c, &groups);
                numbers = whole ? like_self(&c, numbers, meta) : numbers;
        }
        if (!whole || compose_bool(&c, "return_counts"))
                counts = group_counts(&c, &groups, starts);
        Value kept = OP(&c, "aten::index_select", items, value_int(0), starts);
        if (!whole)
                kept = as_slices(&c, kept, meta, dim);
        return compose_end(&c, compose_tuple(&c, (Value[]){ kept, numbers, counts }, 3), out);
}

#define UNIQUE(schema, name)                                                                                 \
        {                                                                                                    \
                "aten::" schema, DTYPES_REAL, .expand = name##_expand, .traits = TRAIT_FRESH                 \
        }
const OpDef unique_ops[] = {
        UNIQUE("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
               unique),
        UNIQUE("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
               "-> (Tensor, Tensor, Tensor)",
               unique),
        UNIQUE("unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
               "return_counts=False) -> (Tensor, Tensor, Tensor)",
               unique_dim),
        UNIQUE("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
               "dim=None) -> (Tensor, Tensor, Tensor)",
               consecutive),
};
OP_FILE(unique_ops);
