// SPDX-License-Identifier: Apache-2.0
// gradient.c: torch.gradient, central differences with one-sided ones at the ends. All overloads
// are one: each dimension has a step, which is a number, or coordinates.
#include "core/ops/compose.h"

typedef struct Axes {
        Value self;
        int n, dim[MAX_RANK];
        int64_t edge_order;
} Axes;

// Elements begin .. end of dimension `dim`; a negative `end` counts from its end, 0 is the end.
static Value part(Compose *c, Value x, int dim, int64_t begin, int64_t end)
{
        return OP(c, "aten::slice.Tensor", x, value_int(dim), value_int(begin),
                  value_int(end == 0 ? INT64_MAX : end));
}

static Value minus(Compose *c, Value a, Value b)
{
        return OP(c, "aten::sub.Tensor", a, b);
}

static Value times(Compose *c, Value a, Value b)
{
        return OP(c, "aten::mul.Tensor", a, b);
}

static Value over(Compose *c, Value a, Value b)
{
        return OP(c, b.kind == VALUE_TENSOR ? "aten::div.Tensor" : "aten::div.Scalar", a, b);
}

static Value sum_of(Compose *c, Value a, Value b, Value third)
{
        return OP(c, "aten::add.Tensor", OP(c, "aten::add.Tensor", a, b), third);
}

// The slope of the parabola through three neighbours from `begin`, at the first or the last one.
// The 2 is an integer: as in PyTorch, integers are doubled in their own dtype.
static Value slope_of_three(Compose *c, Value x, int dim, int64_t begin, bool is_last)
{
        Value points[3];
        for (int64_t i = 0; i < 3; i++)
                points[i] = part(c, x, dim, begin + i, begin + i + 1);
        Value first = OP(c, "aten::mul.Scalar", points[0], value_float(is_last ? 0.5 : -1.5));
        Value second = OP(c, "aten::mul.Scalar", points[1], value_int(2));
        Value third = OP(c, "aten::mul.Scalar", points[2], value_float(is_last ? 1.5 : 0.5));
        return is_last ? OP(c, "aten::add.Tensor", minus(c, first, second), third)
                       : minus(c, OP(c, "aten::add.Tensor", first, second), third);
}

static Value even_steps(Compose *c, const Axes *axes, int dim, Value step)
{
        Value x = axes->self;
        Value middle = over(c, minus(c, part(c, x, dim, 2, 0), part(c, x, dim, 0, -2)), step);
        middle = OP(c, "aten::div.Scalar", middle, value_int(2));
        Value first = axes->edge_order == 2 ? slope_of_three(c, x, dim, 0, false)
                                            : minus(c, part(c, x, dim, 1, 2), part(c, x, dim, 0, 1));
        Value last = axes->edge_order == 2 ? slope_of_three(c, x, dim, -3, true)
                                           : minus(c, part(c, x, dim, -1, 0), part(c, x, dim, -2, -1));
        Value all[] = { over(c, first, step), middle, over(c, last, step) };
        return OP(c, "aten::cat", compose_list(c, all, 3), value_int(dim));
}

// The parabola through three points: the sum of three neighbours, each times its weight.
static Value parabola(Compose *c, const Value weights[3], const Value points[3])
{
        return sum_of(c, times(c, weights[0], points[0]), times(c, weights[1], points[1]),
                      times(c, weights[2], points[2]));
}

// Its slope at the end that lies `near` from the second point, which lies `far` from the third.
// The sum begins with the first element of the dimension, whichever end that is.
static Value end_slope(Compose *c, Value near, Value far, const Value points[3], bool is_last)
{
        Value both = OP(c, "aten::add.Tensor", near, far);
        Value twice = OP(c, "aten::add.Tensor", OP(c, "aten::mul.Scalar", near, value_int(2)), far);
        const Value weights[] = { OP(c, "aten::neg", over(c, twice, times(c, near, both))),
                                  over(c, both, times(c, near, far)),
                                  OP(c, "aten::neg", over(c, near, times(c, far, both))) };
        if (!is_last)
                return parabola(c, weights, points);
        Value slope = parabola(c, (const Value[]){ weights[2], weights[1], weights[0] },
                               (const Value[]){ points[2], points[1], points[0] });
        return OP(c, "aten::neg", slope);
}

// Without dimensions: it does not widen the dtype of the result, as in PyTorch.
static Value step_at(Compose *c, Value line, int64_t i)
{
        return OP(c, "aten::select.int", line, value_int(0), value_int(i));
}

static Value uneven_steps(Compose *c, const Axes *axes, int dim, Value coordinates)
{
        int64_t shape[MAX_RANK];
        Value x = axes->self;
        const int rank = compose_meta(c, x)->rank;
        Value line = minus(c, part(c, coordinates, 0, 1, 0), part(c, coordinates, 0, 0, -1));
        for (int d = 0; d < rank; d++)
                shape[d] = d == dim ? -1 : 1;
        Value steps = OP(c, "aten::reshape", line, compose_ints(c, shape, rank));
        Value left = part(c, steps, dim, 0, -1), right = part(c, steps, dim, 1, 0);
        Value both = OP(c, "aten::add.Tensor", left, right);
        const Value points[] = { part(c, x, dim, 0, -2), part(c, x, dim, 1, -1), part(c, x, dim, 2, 0) };
        const Value weights[] = { OP(c, "aten::neg", over(c, right, times(c, left, both))),
                                  over(c, minus(c, right, left), times(c, left, right)),
                                  over(c, left, times(c, right, both)) };
        Value middle = parabola(c, weights, points), first, last;
        if (axes->edge_order == 2) {
                const Value head[] = { part(c, x, dim, 0, 1), part(c, x, dim, 1, 2), part(c, x, dim, 2, 3) },
                            tail[] = { part(c, x, dim, -1, 0), part(c, x, dim, -2, -1),
                                       part(c, x, dim, -3, -2) };
                first = end_slope(c, step_at(c, line, 0), step_at(c, line, 1), head, false);
                last = end_slope(c, step_at(c, line, -1), step_at(c, line, -2), tail, true);
        } else {
                first = over(c, minus(c, part(c, x, dim, 1, 2), part(c, x, dim, 0, 1)), step_at(c, line, 0));
                last = over(c, minus(c, part(c, x, dim, -1, 0), part(c, x, dim, -2, -1)),
                            step_at(c, line, -1));
        }
        return OP(c, "aten::cat", compose_list(c, (Value[]){ first, middle, last }, 3), value_int(dim));
}

// Dimensions as given, or all of them.
static Status read_axes(Compose *c, Axes *axes)
{
        const Value dim = NAMED(c, "dim");
        const TensorMeta *meta = compose_meta(c, axes->self);
        axes->n = meta->rank;
        for (int d = 0; d < meta->rank; d++)
                axes->dim[d] = d;
        if (dim.kind == VALUE_INT) {
                axes->n = 1;
                axes->dim[0] = compose_dim(c, "dim", meta->rank);
        } else if (dim.kind != VALUE_NONE) {
                int64_t dims[MAX_RANK];
                bool seen[MAX_RANK] = { false };
                axes->n = compose_int_list(c, "dim", dims);
                for (int i = 0; i < axes->n; i++) {
                        TRY(dim_wrap(dims[i], meta->rank, &axes->dim[i]));
                        if (seen[axes->dim[i]])
                                return fail(STATUS_VALUE, "dim %d appears multiple times in the list of dims",
                                            axes->dim[i]);
                        seen[axes->dim[i]] = true;
                }
        }
        return c->status;
}

// Python hands a tensor without dimensions over as a number; in lists it is refused.
static bool is_number(Compose *c, Value step)
{
        return step.kind != VALUE_TENSOR || compose_meta(c, step)->rank == 0;
}

static Status check_spacing(Compose *c, const Axes *axes, Value spacing)
{
        const TensorMeta *meta = compose_meta(c, axes->self);
        const uint32_t n = compose_length(spacing);
        const bool is_list = spacing.kind == VALUE_LIST || spacing.kind == VALUE_TUPLE;
        if (is_list && !compose_has(c, "dim") && n != meta->rank)
                return fail(
                        STATUS_VALUE,
                        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
                        "equal to 'self.dim() = %d', since dim argument was not given, but got a list of "
                        "length %u",
                        meta->rank, n);
        if (is_list && n != (uint32_t)axes->n)
                return fail(STATUS_VALUE,
                            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and "
                            "dim arguments to have the same length, but got a spacing argument of length %u "
                            "and a dim argument of length %d.",
                            n, axes->n);
        for (uint32_t i = 0; i < n; i++) {
                const Value item = compose_item(c, spacing, i);
                if (item.kind == VALUE_TENSOR && compose_meta(c, item)->rank != 1)
                        return fail(STATUS_SHAPE,
                                    "torch.gradient expected each element of spacing to have one dimension, "
                                    "but got an element with %d dimensions!",
                                    compose_meta(c, item)->rank);
        }
        if (axes->edge_order != 1 && axes->edge_order != 2)
                return fail(STATUS_VALUE, "torch.gradient only supports edge_order=1 and edge_order=2.");
        for (int i = 0; i < axes->n; i++) {
                const Value item = is_list ? compose_item(c, spacing, (uint32_t)i) : spacing;
                const int64_t size = meta->size[axes->dim[i]];
                if (size < axes->edge_order + 1)
                        return fail(
                                STATUS_SHAPE,
                                "torch.gradient expected each dimension size to be at least edge_order+1");
                if (!is_number(c, item) && compose_meta(c, item)->size[0] != size)
                        return fail(STATUS_SHAPE,
                                    "torch.gradient: %ld coordinates for a dimension of %ld elements",
                                    (long)compose_meta(c, item)->size[0], (long)size);
        }
        return STATUS_OK;
}

static Status gradient_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Axes axes = { .self = NAMED(&c, "self"), .edge_order = compose_int(&c, "edge_order") };
        const Dtype dtype = compose_meta(&c, axes.self)->dtype;
        const bool has_spacing = call->schema->n_args == 4;
        Value spacing = has_spacing ? NAMED(&c, "spacing") : value_none(), made[MAX_RANK];
        TRY(read_axes(&c, &axes));
        TRY(check_spacing(&c, &axes, spacing));
        if (dtype == DTYPE_U8)
                return fail(STATUS_DTYPE, "torch.gradient does not support uint8 input.");
        for (int i = 0; i < axes.n; i++) {
                Value step = compose_length(spacing) > 0  ? compose_item(&c, spacing, (uint32_t)i)
                             : spacing.kind == VALUE_NONE ? value_int(1)
                                                          : spacing;
                if (step.kind == VALUE_TENSOR && is_number(&c, step) && dtype_is_int(dtype))
                        step = compose_cast(&c, step, DTYPE_F32);
                made[i] = is_number(&c, step) ? even_steps(&c, &axes, axes.dim[i], step)
                                              : uneven_steps(&c, &axes, axes.dim[i], step);
        }
        return compose_end(&c, compose_list(&c, made, (uint32_t)axes.n), out);
}

#define GRADIENT(name, spacing, dim)                                                                         \
        {                                                                                                    \
                "aten::gradient." name "(Tensor self, *, " spacing dim ", int edge_order=1) -> Tensor[]", 0, \
                        .expand = gradient_expand, .traits = TRAIT_FRESH                                     \
        }
const OpDef gradient_ops[] = {
        GRADIENT("scalarint", "Scalar? spacing=None, ", "int? dim=None"),
        GRADIENT("scalararray", "Scalar spacing, ", "int[] dim"),
        GRADIENT("array", "", "int[] dim"),
        GRADIENT("scalarrayint", "Scalar[] spacing, ", "int? dim=None"),
        GRADIENT("scalarrayarray", "Scalar[] spacing, ", "int[] dim"),
        GRADIENT("tensorarrayint", "Tensor[] spacing, ", "int? dim=None"),
        GRADIENT("tensorarray", "Tensor[] spacing, ", "int[] dim"),
};
OP_FILE(gradient_ops);
