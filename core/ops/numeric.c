// SPDX-License-Identifier: Apache-2.0
// numeric.c: numeric operators that are expressions of others: comparison within a tolerance,
// powers, integrals, cross and bilinear products, sampling grids, windows.
#include <math.h>
#include "core/ops/compose.h"

static Value halves(Compose *c, Value x)
{
        return OP(c, "aten::div.Scalar", x, value_float(2));
}

// ---- comparison ----
static Status isclose_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), other = NAMED(&c, "other");
        Dtype dtype = compose_meta(&c, self)->dtype;
        double rtol = compose_double(&c, "rtol"), atol = compose_double(&c, "atol");
        if (dtype != compose_meta(&c, other)->dtype)
                return fail(STATUS_DTYPE, "%s did not match %s", dtype_words(dtype),
                            dtype_words(compose_meta(&c, other)->dtype));
        if (!(rtol >= 0) || !(atol >= 0))
                return fail(STATUS_VALUE, "%s must be greater than or equal to zero, but got %g",
                            rtol >= 0 ? "atol" : "rtol", rtol >= 0 ? atol : rtol);
        Value close = OP(&c, "aten::eq.Tensor", self, other);
        bool inexact = dtype_is_float(dtype) || dtype_info[dtype].kind == DTYPE_KIND_COMPLEX;
        if (inexact && compose_bool(&c, "equal_nan"))
                close = OP(&c, "aten::logical_or", close,
                           OP(&c, "aten::logical_and", OP(&c, "aten::isnan", self),
                              OP(&c, "aten::isnan", other)));
        if (rtol == 0 && atol == 0)
                return compose_end(&c, close, out);
        if (dtype == DTYPE_BOOL)
                self = compose_cast(&c, self, DTYPE_F32);
        if (!inexact)
                other = compose_cast(&c, other, DTYPE_F32);
        Value allowed = OP(&c, "aten::abs", OP(&c, "aten::mul.Scalar", other, value_float(rtol)));
        allowed = OP(&c, "aten::add.Scalar", allowed, value_float(atol));
        Value gap = OP(&c, "aten::abs", OP(&c, "aten::sub.Tensor", self, other));
        Value within = OP(&c, "aten::logical_and", OP(&c, "aten::isfinite", gap),
                          OP(&c, "aten::le.Tensor", gap, allowed));
        return compose_end(&c, OP(&c, "aten::logical_or", close, within), out);
}

// ---- powers and means ----
// Complex as soon as one of both is.
static Value in_double(Compose *c, Value x, Value other)
{
        bool is_complex = other.kind == VALUE_COMPLEX;
        const Value both[] = { x, other };
        for (int k = 0; k < 2; k++)
                is_complex |= both[k].kind == VALUE_TENSOR &&
                              dtype_info[both[k].tensor->meta.dtype].kind == DTYPE_KIND_COMPLEX;
        return x.kind == VALUE_TENSOR ? compose_cast(c, x, is_complex ? DTYPE_C128 : DTYPE_F64) : x;
}

static Status float_power_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), exponent = NAMED(&c, "exponent");
        const char *name = self.kind != VALUE_TENSOR       ? "aten::pow.Scalar"
                           : exponent.kind != VALUE_TENSOR ? "aten::pow.Tensor_Scalar"
                                                           : "aten::pow.Tensor_Tensor";
        return compose_end(&c, OP(&c, name, in_double(&c, self, exponent), in_double(&c, exponent, self)),
                           out);
}

static Value power_of_two(Compose *c, Value exponent)
{
        return OP(c, "aten::pow.Scalar", value_float(2), compose_cast(c, exponent, DTYPE_F64));
}

// Two to the power of `other`, before it is multiplied. The base has the dtype of `self`
// and no dimensions; beside integers and float32 it is a number.
static Value ldexp_power(Compose *c, Value self, Value other)
{
        const Dtype dtype = compose_meta(c, self)->dtype;
        if (dtype_info[dtype].kind < DTYPE_KIND_FLOAT || dtype == DTYPE_F32)
                return OP(c, "aten::pow.Scalar", value_float(2), other);
        return OP(c, "aten::pow.Tensor_Tensor",
                  OP(c, "aten::scalar_tensor", value_float(2), value_dtype(dtype)), other);
}

// self * 2^other. PyTorch's kernel reads 32 bits of the exponent. At the bounds the result is 0,
// infinite or `self`; a float64 gets there by four factors, each of which is finite and above 0.
static Value scaled_by_power(Compose *c, Value self, Value other)
{
        const Dtype dtype = compose_meta(c, self)->dtype;
        const int64_t bound = dtype == DTYPE_F64 ? 2200 : 400;
        Value product = compose_cast(c, self, DTYPE_F64);
        Value exponent =
                OP(c, "aten::clamp", compose_cast(c, other, DTYPE_I32), value_int(-bound), value_int(bound));
        if (dtype == DTYPE_F64) {
                Value quarter = OP(c, "aten::__rshift__.Scalar", exponent, value_int(2));
                Value factor = power_of_two(c, quarter);
                for (int i = 0; i < 3; i++)
                        product = OP(c, "aten::mul.Tensor", product, factor);
                exponent = OP(c, "aten::sub.Tensor", exponent, quarter, value_int(3));
        }
        return compose_cast(c, OP(c, "aten::mul.Tensor", product, power_of_two(c, exponent)), dtype);
}

static Status ldexp_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), other = NAMED(&c, "other");
        const Dtype dtype = compose_meta(&c, self)->dtype, power = compose_meta(&c, other)->dtype;
        if (!dtype_is_float(dtype) || dtype_info[power].kind >= DTYPE_KIND_FLOAT)
                return compose_end(&c, OP(&c, "aten::mul.Tensor", self, ldexp_power(&c, self, other)), out);
        if (power == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "\"ldexp_cpu_exp\" not implemented for 'Bool'");
        return compose_end(&c, scaled_by_power(&c, self, other), out);
}

static Status nanmean_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), dim = NAMED(&c, "dim"), keepdim = NAMED(&c, "keepdim");
        Value dtype = NAMED(&c, "dtype");
        if (!dtype_is_float(compose_meta(&c, self)->dtype))
                return fail(STATUS_DTYPE,
                            "nanmean(): expected input to have floating point or complex dtype but "
                            "got %s",
                            dtype_words(compose_meta(&c, self)->dtype));
        if (dtype.kind == VALUE_DTYPE && !dtype_is_float(dtype.dtype))
                return fail_mean_dtype("nanmean", true, dtype.dtype);
        Value count = OP(&c, "aten::sum.dim_IntList",
                         OP(&c, "aten::logical_not", OP(&c, "aten::isnan", self)), dim, keepdim);
        Value sum = OP(&c, "aten::nansum", self, dim, keepdim, dtype);
        return compose_end(&c, OP(&c, "aten::div.Tensor", sum, count), out);
}

static Status vecdot_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "x"), y = NAMED(&c, "y");
        if (compose_meta(&c, x)->dtype != compose_meta(&c, y)->dtype)
                return fail(
                        STATUS_DTYPE,
                        "linalg.vecdot: Expected x and y to have the same dtype, but found x of type %s and "
                        "y of type %s instead",
                        dtype_words(compose_meta(&c, x)->dtype), dtype_words(compose_meta(&c, y)->dtype));
        const bool is_complex = dtype_info[compose_meta(&c, x)->dtype].kind == DTYPE_KIND_COMPLEX;
        if (!is_complex && !dtype_is_float(compose_meta(&c, x)->dtype))
                return fail(STATUS_DTYPE,
                            "linalg.vecdot: Expected a floating point or complex tensor as input. Got %s",
                            dtype_words(compose_meta(&c, x)->dtype));
        if (compose_meta(&c, x)->rank == 1 && compose_meta(&c, y)->rank == 1) // PyTorch ignores `dim` then
                return compose_end(&c, OP(&c, "aten::vdot", x, y), out);
        if (is_complex)
                x = OP(&c, "aten::conj_physical", x);
        Value product = OP(&c, "aten::mul.Tensor", x, y);
        Value dims = compose_list(&c, (Value[]){ NAMED(&c, "dim") }, 1);
        return compose_end(&c, OP(&c, "aten::sum.dim_IntList", product, dims), out);
}

// ---- integrals ----
// Sums of neighbours along `dim`: y[1:] + y[:-1].
static Value neighbour_sums(Compose *c, Value y, int dim)
{
        Value left = OP(c, "aten::slice.Tensor", y, value_int(dim), value_int(0), value_int(-1));
        Value right = OP(c, "aten::slice.Tensor", y, value_int(dim), value_int(1));
        return OP(c, "aten::add.Tensor", left, right);
}

// The steps between the points x, made to stand against y along `dim`.
static Value point_steps(Compose *c, Value x, const TensorMeta *y, int dim)
{
        const TensorMeta *meta = compose_meta(c, x);
        if (meta->rank == 0)
                compose_check(c, fail(STATUS_SHAPE,
                                      "trapezoid: The provided `x` must have at least one dimension"));
        int64_t n = y->size[dim];
        if (!compose_failed(c) && meta->rank == 1 && meta->size[0] != n)
                compose_check(c, fail(STATUS_SHAPE,
                                      "trapezoid: There must be one `x` value for each sample point"));
        if (compose_failed(c))
                return value_none();
        if (meta->rank != 1) { // sizes of 1 in front of x; `dim` counts from the front in any case
                int64_t padded[MAX_RANK];
                int more = MAX(y->rank - meta->rank, 0);
                for (int d = 0; d < meta->rank + more; d++)
                        padded[d] = d < more ? 1 : meta->size[d - more];
                if (more > 0)
                        x = OP(c, "aten::reshape", x, compose_ints(c, padded, meta->rank + more));
                Value left = OP(c, "aten::slice.Tensor", x, value_int(dim), value_int(0), value_int(-1));
                Value right = OP(c, "aten::slice.Tensor", x, value_int(dim), value_int(1));
                return OP(c, "aten::sub.Tensor", right, left);
        }
        Value left = OP(c, "aten::slice.Tensor", x, value_int(0), value_int(0), value_int(-1));
        Value right = OP(c, "aten::slice.Tensor", x, value_int(0), value_int(1));
        int64_t size[MAX_RANK];
        for (int d = 0; d < y->rank; d++)
                size[d] = d == dim ? MAX(n - 1, 0) : 1;
        return OP(c, "aten::reshape", OP(c, "aten::sub.Tensor", right, left), compose_ints(c, size, y->rank));
}

// (the sum of y - half of its two ends) * dx
static Value even_trapezoid(Compose *c, Value y, int dim)
{
        Value ends = OP(c, "aten::add.Tensor", OP(c, "aten::select.int", y, value_int(dim), value_int(0)),
                        OP(c, "aten::select.int", y, value_int(dim), value_int(-1)));
        Value inner = OP(c, "aten::sub.Tensor", OP(c, "aten::sum.dim_IntList", y, INTS(c, dim)),
                         OP(c, "aten::mul.Scalar", ends, value_float(0.5)));
        return OP(c, "aten::mul.Scalar", inner, value_float(compose_double(c, "dx")));
}

typedef struct TrapezoidRow {
        bool cumulative, by_points; // points x are given, else the step dx
} TrapezoidRow;

static Status trapezoid_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value y = NAMED(&c, "y");
        const TensorMeta *meta = compose_meta(&c, y);
        const TrapezoidRow *row = call->op->row;
        if (meta->dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE,
                            "trapezoid: received a bool input for `y`, but bool is not supported");
        if (!row->by_points && NAMED(&c, "dx").kind == VALUE_COMPLEX)
                return fail(STATUS_VALUE, "%s: Currently, we only support dx as a real number.",
                            row->cumulative ? "cumulative_trapezoid" : "trapezoid");
        if (meta->rank == 0)
                return fail(STATUS_INDEX, "Dimension specified as 0 but tensor has no dimensions");
        int dim = compose_dim(&c, "dim", meta->rank);
        if (!compose_failed(&c) && meta->size[dim] == 0 && !row->cumulative) {
                Value sum = OP(&c, "aten::sum.dim_IntList", y, INTS(&c, dim));
                return compose_end(&c, compose_cast(&c, sum, meta->dtype), out);
        }
        if (!row->cumulative && !row->by_points) // the sum without half of both ends, as PyTorch has it
                return compose_end(&c, even_trapezoid(&c, y, dim), out);
        Value sums = neighbour_sums(&c, y, dim);
        if (row->by_points)
                sums = OP(&c, "aten::mul.Tensor", point_steps(&c, NAMED(&c, "x"), meta, dim), sums);
        else { // cumulative: sums of floats, also where y holds integers
                sums = OP(&c, "aten::mul.Scalar", sums, value_float(compose_double(&c, "dx") / 2));
                return compose_end(&c, OP(&c, "aten::cumsum", sums, value_int(dim)), out);
        }
        Value total = row->cumulative ? OP(&c, "aten::cumsum", sums, value_int(dim))
                                      : OP(&c, "aten::sum.dim_IntList", sums, INTS(&c, dim));
        return compose_end(&c, halves(&c, total), out);
}

// ---- products ----
static Status cross_with(Emitter *emitter, const OpCall *call, int dim, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value pair[] = { NAMED(&c, "self"), NAMED(&c, "other") }, turned[2][2];
        Value both = OP(&c, "aten::broadcast_tensors", compose_list(&c, pair, 2));
        for (uint32_t i = 0; i < 2; i++) {
                for (int k = 0; k < 2; k++) // the next element, and the one before
                        turned[i][k] = OP(&c, "aten::roll", compose_item(&c, both, i),
                                          INTS(&c, k == 0 ? -1 : 1), INTS(&c, dim));
        }
        Value result = OP(&c, "aten::sub.Tensor", OP(&c, "aten::mul.Tensor", turned[0][0], turned[1][1]),
                          OP(&c, "aten::mul.Tensor", turned[0][1], turned[1][0]));
        return compose_end(&c, result, out);
}

static Status linalg_cross_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *a = compose_meta(&c, NAMED(&c, "self")), *b = compose_meta(&c, NAMED(&c, "other"));
        int64_t given = compose_int(&c, "dim");
        int at, bt;
        if (a->rank != b->rank)
                return fail(STATUS_SHAPE, "linalg.cross: inputs must have the same number of dimensions.");
        if (a->dtype != b->dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(a->dtype),
                            dtype_words(b->dtype));
        TRY(dim_wrap(given, a->rank, &at));
        bt = at;
        if (a->rank == 0 || a->size[at] != 3 || b->size[bt] != 3)
                return fail(STATUS_SHAPE,
                            "linalg.cross: inputs dimension %ld must have length 3. Got %ld and %ld",
                            (long)given, a->rank == 0 ? 0L : (long)a->size[at],
                            a->rank == 0 ? 0L : (long)b->size[bt]);
        return cross_with(emitter, call, at, out);
}

static Status cross_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), other = NAMED(&c, "other");
        const TensorMeta *meta = compose_meta(&c, self);
        if (compose_has(&c, "dim"))
                return compose_end(&c, OP(&c, "aten::linalg_cross", self, other, NAMED(&c, "dim")), out);
        for (int d = 0; d < meta->rank; d++) {
                if (meta->size[d] == 3)
                        return compose_end(&c, OP(&c, "aten::linalg_cross", self, other, value_int(d)), out);
        }
        return fail(STATUS_SHAPE, "no dimension of size 3 in input");
}

static Status check_bilinear_bias(const TensorMeta *bias, Dtype dtype, int64_t n_out)
{
        if (bias->dtype != dtype)
                return fail(STATUS_DTYPE,
                            "bilinear(): All tensors must have the same dtype, got %s and a bias of %s",
                            dtype_words(dtype), dtype_words(bias->dtype));
        if (bias->rank == 0)
                return fail(STATUS_SHAPE, "Dimension specified as 0 but tensor has no dimensions");
        return bias->size[0] == n_out
                       ? STATUS_OK
                       : fail(STATUS_SHAPE,
                              "bilinear(): bias size does not match weight size: got %ld but expected %ld",
                              (long)bias->size[0], (long)n_out);
}

// y[k] = x1 W[k] x2 + b[k]
static Status bilinear_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "input1"), b = NAMED(&c, "input2"), weight = NAMED(&c, "weight");
        const TensorMeta *am = compose_meta(&c, a), *bm = compose_meta(&c, b), *wm = compose_meta(&c, weight);
        bool fits = am->rank == bm->rank && am->rank > 0 && wm->rank == 3;
        for (int d = 0; fits && d < am->rank - 1; d++)
                fits = am->size[d] == bm->size[d];
        if (!fits)
                return fail(STATUS_SHAPE,
                            "bilinear(): input dimensions do not match: got %d and %d dimensions and a "
                            "weight of %d",
                            am->rank, bm->rank, wm->rank);
        int64_t n1 = am->size[am->rank - 1], n2 = bm->size[bm->rank - 1], n_out = wm->size[0];
        if (n1 != wm->size[1] || n2 != wm->size[2])
                return fail(STATUS_SHAPE,
                            "bilinear(): input%d size does not match weight size: got %ld but expected "
                            "%ld",
                            n1 != wm->size[1] ? 1 : 2, (long)(n1 != wm->size[1] ? n1 : n2),
                            (long)(n1 != wm->size[1] ? wm->size[1] : wm->size[2]));
        if (compose_has(&c, "bias"))
                TRY(check_bilinear_bias(compose_meta(&c, NAMED(&c, "bias")), am->dtype, n_out));
        if (n1 == 0 || n2 == 0)
                return fail(STATUS_UNSUPPORTED, "bilinear(): inputs without features");
        Value left = OP(&c, "aten::reshape", a, INTS(&c, -1, 1, 1, n1));
        Value right = OP(&c, "aten::reshape", b, INTS(&c, -1, 1, n2, 1));
        Value product = OP(&c, "aten::matmul", OP(&c, "aten::matmul", left, weight), right);
        int64_t size[MAX_RANK];
        for (int d = 0; d < am->rank; d++)
                size[d] = d == am->rank - 1 ? n_out : am->size[d];
        Value result = OP(&c, "aten::reshape", product, compose_ints(&c, size, am->rank));
        if (compose_has(&c, "bias"))
                result = OP(&c, "aten::add.Tensor", result,
                            OP(&c, "aten::expand", NAMED(&c, "bias"), compose_ints(&c, size, am->rank)));
        return compose_end(&c, result, out);
}

// A factor with dimensions of size 1 where the list says so.
static Value expanded(Compose *c, const char *tensor, const char *list)
{
        int64_t dims[MAX_RANK];
        Value x = NAMED(c, tensor);
        int n = compose_int_list(c, list, dims);
        for (int i = 0; i < n; i++)
                x = OP(c, "aten::unsqueeze", x, value_int(dims[i]));
        return x;
}

static Status trilinear_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        bool empty = meta_numel(compose_meta(&c, NAMED(&c, "i1"))) == 0 ||
                     meta_numel(compose_meta(&c, NAMED(&c, "i2"))) == 0 ||
                     meta_numel(compose_meta(&c, NAMED(&c, "i3"))) == 0;
        Value product =
                OP(&c, "aten::mul.Tensor", expanded(&c, "i1", "expand1"), expanded(&c, "i2", "expand2"));
        product = OP(&c, "aten::mul.Tensor", product, expanded(&c, "i3", "expand3"));
        int64_t dims[MAX_RANK];
        if (compose_int_list(&c, "sumdim", dims) > 0)
                product = OP(&c, "aten::sum.dim_IntList", product, NAMED(&c, "sumdim"), value_bool(false),
                             value_dtype(compose_meta(&c, product)->dtype));
        if (empty) // PyTorch makes zeros of the first factor's type
                product = compose_cast(&c, product, compose_meta(&c, NAMED(&c, "i1"))->dtype);
        return compose_end(&c, product, out);
}

// ---- sampling grids ----
// n positions from -1 to 1: of the corners, or of the centres of n cells. One position is 0.
static Value grid_axis(Compose *c, int64_t n, Dtype dtype, bool corners)
{
        if (n <= 1)
                return OP(c, "aten::zeros", INTS(c, n), value_dtype(dtype));
        Value axis = OP(c, "aten::linspace", value_int(-1), value_int(1), value_int(n), value_dtype(dtype));
        return corners ? axis : OP(c, "aten::mul.Scalar", axis, value_float((double)(n - 1) / (double)n));
}

static Status affine_grid_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value theta = NAMED(&c, "theta"), axes[4];
        const TensorMeta *meta = compose_meta(&c, theta);
        int64_t size[MAX_RANK];
        int n = compose_int_list(&c, "size", size), n_axes = n - 2;
        bool corners = compose_bool(&c, "align_corners");
        if (n != 4 && n != 5)
                return fail(STATUS_SHAPE,
                            "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
        if (meta->rank == 3 && size[0] != meta->size[0])
                return fail(STATUS_SHAPE,
                            "Expected size for first two dimensions of batch2 tensor to be: [%ld, %d] but "
                            "got: [%ld, %d].",
                            (long)size[0], n_axes + 1, (long)meta->size[0], n_axes + 1);
        if (meta->rank != 3 || meta->size[1] != n_axes || meta->size[2] != n_axes + 1)
                return fail(STATUS_SHAPE, "Expected a batch of %dD affine matrices of shape Nx%dx%d", n_axes,
                            n_axes, n_axes + 1);
        int64_t places = 1;
        for (int d = 0; d < n_axes; d++) { // from the first to the last dimension of the image
                axes[d] = grid_axis(&c, size[2 + d], meta->dtype, corners);
                if (!mul_i64(places, size[2 + d], &places))
                        compose_check(&c, fail(STATUS_TOO_LARGE, "affine_grid: the grid is too large"));
        }
        Value grid = OP(&c, "aten::meshgrid.indexing", compose_list(&c, axes, (uint32_t)n_axes),
                        compose_text(&c, "ij"));
        Value columns[4];
        for (int d = 0; d < n_axes; d++) // x, which runs along the last dimension, is first
                columns[d] = OP(&c, "aten::reshape", compose_item(&c, grid, (uint32_t)(n_axes - 1 - d)),
                                INTS(&c, places));
        columns[n_axes] = OP(&c, "aten::ones", INTS(&c, places), value_dtype(meta->dtype));
        Value base = OP(&c, "aten::stack", compose_list(&c, columns, (uint32_t)n_axes + 1), value_int(-1));
        Value result = OP(&c, "aten::matmul", base, OP(&c, "aten::mT", theta));
        int64_t shape[MAX_RANK] = { meta->size[0] };
        for (int d = 0; d < n_axes; d++)
                shape[1 + d] = size[2 + d];
        shape[1 + n_axes] = n_axes;
        return compose_end(&c, OP(&c, "aten::reshape", result, compose_ints(&c, shape, n_axes + 2)), out);
}

// ---- windows ----
// How many windows lie side by side; fewer than 1: none fits.
static Status window_count(int64_t size, int64_t padding, int64_t dilation, int64_t kernel, int64_t stride,
                           int64_t *out)
{
        int64_t reach, padded;
        if (kernel <= 0 || dilation <= 0 || stride <= 0 || padding < 0)
                return fail(STATUS_VALUE,
                            "im2col: kernel size, dilation and stride should be greater than zero and "
                            "padding not negative, but got %ld, %ld, %ld and %ld",
                            (long)kernel, (long)dilation, (long)stride, (long)padding);
        if (!mul_i64(dilation, kernel - 1, &reach) || !mul_i64(2, padding, &padded) ||
            !add_i64(size, padded, &padded) || reach == INT64_MAX)
                return fail(STATUS_TOO_LARGE, "im2col: the sizes are too large");
        *out = padded < reach + 1 ? 0 : (padded - reach - 1) / stride + 1;
        return STATUS_OK;
}

static Status im2col_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        int64_t kernel[MAX_RANK], dilation[MAX_RANK], padding[MAX_RANK], stride[MAX_RANK], n[2];
        char text[128];
        if (compose_int_list(&c, "kernel_size", kernel) != 2 ||
            compose_int_list(&c, "dilation", dilation) != 2 ||
            compose_int_list(&c, "padding", padding) != 2 || compose_int_list(&c, "stride", stride) != 2)
                return compose_failed(&c) ? c.status
                                          : fail(STATUS_VALUE, "im2col: expected lists of 2 numbers");
        if (dtype_is_float8(meta->dtype))
                return fail(STATUS_DTYPE, "\"im2col_out_cpu\" not implemented for '%s'",
                            dtype_words(meta->dtype));
        bool batched = meta->rank == 4;
        if ((meta->rank != 3 && !batched) || meta->size[meta->rank - 3] == 0 ||
            meta->size[meta->rank - 2] == 0 || meta->size[meta->rank - 1] == 0)
                return fail(
                        STATUS_SHAPE,
                        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                        "dimensions for input, but got: %s",
                        shape_text(meta->rank, meta->size, text, sizeof(text)));
        const int64_t *size = meta->size + meta->rank - 2;
        for (int d = 0; d < 2; d++)
                TRY(window_count(size[d], padding[d], dilation[d], kernel[d], stride[d], &n[d]));
        if (n[0] < 1 || n[1] < 1)
                return fail(
                        STATUS_SHAPE,
                        "Given input with spatial size (%ld, %ld), calculated shape of the array of sliding "
                        "blocks as (%ld, %ld), but its components must be at least one.",
                        (long)size[0], (long)size[1], (long)n[0], (long)n[1]);
        if (padding[0] != 0 || padding[1] != 0)
                self = OP(&c, "aten::constant_pad_nd", self,
                          INTS(&c, padding[1], padding[1], padding[0], padding[0]));
        const TensorMeta *padded = compose_meta(&c, self);
        const int64_t *step = padded->stride + padded->rank - 2;
        int64_t channels = meta->size[meta->rank - 3];
        int64_t sizes[] = { batched ? meta->size[0] : 1, channels, kernel[0], kernel[1], n[0], n[1] };
        // The step of a dimension with one place is not taken, and may be of any size. All other
        // steps are within the padded tensor, so that no product overflows.
        int64_t strides[] = {
                batched ? padded->stride[0] : 0,           padded->stride[padded->rank - 3],
                kernel[0] > 1 ? dilation[0] * step[0] : 0, kernel[1] > 1 ? dilation[1] * step[1] : 0,
                n[0] > 1 ? stride[0] * step[0] : 0,        n[1] > 1 ? stride[1] * step[1] : 0
        };
        Value windows =
                OP(&c, "aten::as_strided", self, compose_ints(&c, sizes, 6), compose_ints(&c, strides, 6));
        int64_t shape[] = { sizes[0], channels, n[0] };
        if (!mul_i64(shape[1], kernel[0], &shape[1]) || !mul_i64(shape[1], kernel[1], &shape[1]) ||
            !mul_i64(shape[2], n[1], &shape[2]))
                compose_check(&c, fail(STATUS_TOO_LARGE, "im2col: the sizes are too large"));
        Value columns =
                OP(&c, "aten::reshape",
                   OP(&c, "aten::clone", windows,
                      (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS }),
                   compose_ints(&c, batched ? shape : shape + 1, batched ? 3 : 2));
        return compose_end(&c, columns, out);
}

// Each element goes to the place that its index names in its plane, all else is 0.
static Status max_unpool(Emitter *emitter, const OpCall *call, int n_spatial, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), indices = NAMED(&c, "indices");
        const TensorMeta *meta = compose_meta(&c, self), *at = compose_meta(&c, indices);
        int64_t size[MAX_RANK];
        int n = compose_int_list(&c, "output_size", size), rank = meta->rank;
        if (at->dtype != DTYPE_I64)
                return fail(STATUS_DTYPE, "elements in indices should be type int64 but got: %s",
                            dtype_words(at->dtype));
        if (n != n_spatial)
                return fail(STATUS_VALUE, "There should be exactly %s in output_size, but got %d elements.",
                            n_spatial == 2 ? "two elements (height, width)"
                                           : "three elements (depth, height, width)",
                            n);
        if ((rank != n_spatial + 1 && rank != n_spatial + 2) || !meta_same_shape(meta, at))
                return fail(STATUS_SHAPE,
                            "Input to max_unpooling%dd should be a %dd or %dd Tensor of the shape of "
                            "indices, but got %d and %d dimensions",
                            n_spatial, n_spatial + 1, n_spatial + 2, rank, at->rank);
        for (int d = 1; d < rank; d++) {
                if (meta->size[d] == 0)
                        return fail(STATUS_SHAPE,
                                    "max_unpooling%dd: Expected input to have non-zero size for non-batch "
                                    "dimensions, but dimension %d is empty",
                                    n_spatial, d);
        }
        const int outer = rank - n_spatial;
        int64_t flat[MAX_RANK], shape[MAX_RANK], plane = 1;
        for (int d = 0; d < outer; d++)
                flat[d] = shape[d] = meta->size[d];
        flat[outer] = 1;
        for (int d = 0; d < n_spatial; d++) {
                flat[outer] *= meta->size[outer + d];
                shape[outer + d] = size[d];
                if (size[d] < 0 || !mul_i64(plane, size[d], &plane))
                        return fail(STATUS_VALUE, "max_unpooling%dd: bad output_size", n_spatial);
        }
        if (plane == 0) // no place to go to; the indices are not looked at
                return compose_end(
                        &c, OP(&c, "aten::zeros", compose_ints(&c, shape, rank), value_dtype(meta->dtype)),
                        out);
        Value values = OP(&c, "aten::reshape", self, compose_ints(&c, flat, outer + 1));
        Value places = OP(&c, "aten::reshape", indices, compose_ints(&c, flat, outer + 1));
        flat[outer] = plane;
        Value zeros = OP(&c, "aten::zeros", compose_ints(&c, flat, outer + 1), value_dtype(meta->dtype));
        Value made = OP(&c, "aten::scatter.src", zeros, value_int(-1), places, values);
        return compose_end(&c, OP(&c, "aten::reshape", made, compose_ints(&c, shape, rank)), out);
}

static Status max_unpool2d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return max_unpool(emitter, call, 2, out);
}

static Status check_three(Compose *c, const char *name, int64_t least)
{
        int64_t given[MAX_RANK];
        char text[160];
        const int n = compose_int_list(c, name, given);
        if (n != 3)
                return fail(
                        STATUS_VALUE,
                        "There should be exactly three elements (depth, height, width) in %s, but got: %d "
                        "elements.",
                        name, n);
        for (int d = 0; d < n; d++) {
                if (given[d] < least)
                        return fail(STATUS_VALUE, "strides should be greater than zero, but got %s: %s", name,
                                    shape_text(n, given, text, sizeof(text)));
        }
        return STATUS_OK;
}

// The sizes alone say where the planes end; stride and padding are only looked at.
static Status max_unpool3d_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        TRY(check_three(&c, "stride", 1));
        TRY(check_three(&c, "padding", INT64_MIN));
        return max_unpool(emitter, call, 3, out);
}

#define NUMERIC(schema, function)                                                                            \
        {                                                                                                    \
                "aten::" schema, 0, .expand = function##_expand, .traits = TRAIT_FRESH                       \
        }
#define REAL_ONLY(schema, function)                                                                          \
        {                                                                                                    \
                "aten::" schema, DTYPES_REAL, .expand = function##_expand, .traits = TRAIT_FRESH             \
        }
#define TRAPEZOID(schema, ...)                                                                               \
        {                                                                                                    \
                "aten::" schema, 0, .expand = trapezoid_expand, .row = &(const TrapezoidRow){ __VA_ARGS__ }, \
                                    .traits = TRAIT_FRESH                                                    \
        }
const OpDef numeric_ops[] = {
        NUMERIC("isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, "
                "bool equal_nan=False) -> Tensor",
                isclose),
        NUMERIC("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", float_power),
        NUMERIC("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", float_power),
        NUMERIC("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", float_power),
        NUMERIC("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", ldexp),
        NUMERIC("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
                "Tensor",
                nanmean),
        NUMERIC("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", vecdot),
        TRAPEZOID("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", false, true),
        TRAPEZOID("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", false, false),
        TRAPEZOID("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", false, true),
        TRAPEZOID("trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", false, false),
        TRAPEZOID("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", true, true),
        TRAPEZOID("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", true, false),
        NUMERIC("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", linalg_cross),
        NUMERIC("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", cross),
        NUMERIC("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
                bilinear),
        NUMERIC("_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
                "int[] sumdim, int unroll_dim=1) -> Tensor",
                trilinear),
        NUMERIC("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
                affine_grid),
        NUMERIC("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
                "Tensor",
                im2col),
        REAL_ONLY("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", max_unpool2d),
        REAL_ONLY("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] "
                  "padding) -> Tensor",
                  max_unpool3d),
};
OP_FILE(numeric_ops);
