// SPDX-License-Identifier: Apache-2.0
// distances.c: norms and distances made of linalg_vector_norm, and operators built on them.
#include <math.h>
#include <string.h>
#include "core/base/text.h"
#include "core/kernels/dense.h"
#include "core/kernels/reduce/distances.h"
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
#include "core/ops/pointwise.h"

// The p-norm along the last dimension.
static Value last_norm(Compose *c, Value x, Value p, bool keepdim)
{
        return OP(c, "aten::linalg_vector_norm", x, p, INTS(c, -1), value_bool(keepdim));
}

static Status pairwise_distance_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value gap = OP(&c, "aten::sub.Tensor", NAMED(&c, "x1"), NAMED(&c, "x2"));
        gap = OP(&c, "aten::add.Scalar", gap, NAMED(&c, "eps"));
        return compose_end(&c, last_norm(&c, gap, NAMED(&c, "p"), compose_bool(&c, "keepdim")), out);
}

static Status dist_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value gap = OP(&c, "aten::sub.Tensor", NAMED(&c, "self"), NAMED(&c, "other"));
        return compose_end(&c, OP(&c, "aten::linalg_vector_norm", gap, NAMED(&c, "p")), out);
}

static Status cosine_similarity_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        if (compose_double(&c, "eps") < 0)
                return fail(STATUS_VALUE, "eps must be non-negative, got: %g", compose_double(&c, "eps"));
        Value pair[] = { NAMED(&c, "x1"), NAMED(&c, "x2") };
        Dtype dtype = compose_common_dtype(&c, pair[0], pair[1]);
        if (!compose_failed(&c) && !dtype_is_float(dtype))
                compose_check(&c, fail(STATUS_DTYPE,
                                       "expected common dtype to be floating point, yet common "
                                       "dtype is %s",
                                       dtype_words(dtype)));
        Value both = OP(&c, "aten::broadcast_tensors", compose_list(&c, pair, 2));
        Value dims = compose_list(&c, (Value[]){ NAMED(&c, "dim") }, 1);
        for (uint32_t i = 0; i < 2; i++) {
                Value x = compose_item(&c, both, i); // floats of two dtypes keep theirs up to the product
                if (!compose_failed(&c) && !dtype_is_float(compose_meta(&c, x)->dtype))
                        x = compose_cast(&c, x, dtype);
                Value size = OP(&c, "aten::linalg_vector_norm", x, value_int(2), dims, value_bool(true));
                size = OP(&c, "aten::clamp_min", size, NAMED(&c, "eps"));
                pair[i] = OP(&c, "aten::div.Tensor", x, size);
        }
        Value product = OP(&c, "aten::mul.Tensor", pair[0], pair[1]);
        return compose_end(&c, OP(&c, "aten::sum.dim_IntList", product, dims), out);
}

// ---- all pairs of rows ----
// PyTorch takes the product's way for the 2-norm of more than 25 rows, unless it is told not to.
enum { CDIST_FEW_ROWS = 25, CDIST_DEFAULT = 0, CDIST_PRODUCT = 1, CDIST_DIRECT = 2 };

// sqrt(|a|^2 - 2 a b + |b|^2) as one product: [-2a, |a|^2, 1] with [b, 1, |b|^2].
static Value euclidean(Compose *c, Value a, Value b)
{
        Value last = INTS(c, -1);
        Value aa = OP(c, "aten::sum.dim_IntList", OP(c, "aten::mul.Tensor", a, a), last, value_bool(true));
        Value bb = OP(c, "aten::sum.dim_IntList", OP(c, "aten::mul.Tensor", b, b), last, value_bool(true));
        Value left[] = { OP(c, "aten::mul.Scalar", a, value_int(-2)), aa, OP(c, "aten::ones_like", aa) };
        Value right[] = { b, OP(c, "aten::ones_like", bb), bb };
        Value product = OP(c, "aten::matmul", OP(c, "aten::cat", compose_list(c, left, 3), value_int(-1)),
                           OP(c, "aten::mT", OP(c, "aten::cat", compose_list(c, right, 3), value_int(-1))));
        return OP(c, "aten::sqrt", OP(c, "aten::clamp_min", product, value_int(0)));
}

// Differences to p-norms over the last dimension.
static Value gap_norm(Compose *c, Value gap, double p)
{
        const TensorMeta *meta = compose_meta(c, gap);
        if (meta->rank > 0 && meta->size[meta->rank - 1] == 0) // the norm of nothing is 0, for p = inf too
                return OP(c, "aten::sum.dim_IntList", gap, INTS(c, -1));
        if (p == 1 || p == 2 || isinf(p))
                return last_norm(c, gap, value_float(p), false);
        if (p != 0) { // in the dtype of the rows: large powers are infinite, as in PyTorch
                Value powers = OP(c, "aten::pow.Tensor_Scalar", OP(c, "aten::abs", gap), value_float(p));
                return OP(c, "aten::pow.Tensor_Scalar", OP(c, "aten::sum.dim_IntList", powers, INTS(c, -1)),
                          value_float(1 / p));
        }
        // as PyTorch's loop: NaN is no number of differences
        Value differs = OP(c, "aten::clamp_max", OP(c, "aten::ceil", OP(c, "aten::abs", gap)), value_int(1));
        return OP(c, "aten::sum.dim_IntList", differs, INTS(c, -1));
}

static Status cdist_check(const TensorMeta *a, const TensorMeta *b, double p)
{
        if (a->rank < 2 || b->rank < 2)
                return fail(STATUS_SHAPE, "cdist only supports at least 2D tensors, X%d got: %dD",
                            a->rank < 2 ? 1 : 2, a->rank < 2 ? a->rank : b->rank);
        if (a->size[a->rank - 1] != b->size[b->rank - 1])
                return fail(STATUS_SHAPE, "X1 and X2 must have the same number of columns. X1: %ld X2: %ld",
                            (long)a->size[a->rank - 1], (long)b->size[b->rank - 1]);
        if (!dtype_is_float(a->dtype) || !dtype_is_float(b->dtype))
                return fail(STATUS_DTYPE, "cdist only supports floating-point dtypes, X%d got: %s",
                            dtype_is_float(a->dtype) ? 2 : 1,
                            dtype_words(dtype_is_float(a->dtype) ? b->dtype : a->dtype));
        if (a->dtype != b->dtype)
                return fail(STATUS_DTYPE, "expected scalar type %s but found %s", dtype_words(a->dtype),
                            dtype_words(b->dtype));
        return !(p >= 0) ? fail(STATUS_VALUE, "cdist only supports non-negative p values") : STATUS_OK;
}

static Status cdist_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "x1"), b = NAMED(&c, "x2");
        const TensorMeta *am = compose_meta(&c, a), *bm = compose_meta(&c, b);
        double p = compose_double(&c, "p");
        TRY(cdist_check(am, bm, p));
        int64_t mode = compose_has(&c, "compute_mode") ? compose_int(&c, "compute_mode") : CDIST_DEFAULT;
        if (mode < CDIST_DEFAULT || mode > CDIST_DIRECT)
                return fail(STATUS_VALUE, "possible modes: 0, 1, 2, but was: %ld", (long)mode);
        int64_t rows = am->size[am->rank - 2], columns = bm->size[bm->rank - 2];
        bool many = rows > CDIST_FEW_ROWS || columns > CDIST_FEW_ROWS;
        if (p == 2 && (mode == CDIST_PRODUCT || (mode == CDIST_DEFAULT && many)) &&
            am->size[am->rank - 1] > 0)
                return compose_end(&c, euclidean(&c, a, b), out);
        Value gap = OP(&c, "aten::sub.Tensor", OP(&c, "aten::unsqueeze", a, value_int(-2)),
                       OP(&c, "aten::unsqueeze", b, value_int(-3)));
        if (isinf(p)) // its maximum passes over NaN
                gap = OP(&c, "aten::nan_to_num", gap, value_float(0), value_float(INFINITY),
                         value_float(-INFINITY));
        return compose_end(&c, gap_norm(&c, gap, p), out);
}

// The distances of all pairs of rows: row 0 to the others, row 1 to those behind it, …
static Status pdist_check(const OpCall *call, double *out_p)
{
        const TensorMeta *meta = arg_meta(call, SELF);
        TRY(arg_double(call, PDIST_P, out_p));
        if (meta->rank != 2)
                return fail(STATUS_SHAPE, "pdist only supports 2D tensors, got: %dD", meta->rank);
        if (!meta_is_contiguous(meta))
                return fail(STATUS_VALUE, "_pdist_forward requires contiguous input");
        if (!(*out_p >= 0))
                return fail(STATUS_VALUE, "pdist only supports non-negative p values");
        if (meta->dtype != DTYPE_F32 && meta->dtype != DTYPE_F64 && meta->size[0] > 1 && meta->size[1] > 0)
                return fail(STATUS_DTYPE, "\"pdist\" not implemented for '%s'", dtype_words(meta->dtype));
        return STATUS_OK;
}

// By a gather of all pairs.
static Status pdist_forward_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        double p;
        TRY(pdist_check(call, &p));
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        Value rows = value_int(meta->size[0]);
        Value pairs = OP(&c, "aten::triu_indices", rows, rows, value_int(1));
        Value first = OP(&c, "aten::select.int", pairs, value_int(0), value_int(0));
        Value second = OP(&c, "aten::select.int", pairs, value_int(0), value_int(1));
        Value gap = OP(&c, "aten::sub.Tensor", OP(&c, "aten::index_select", self, value_int(0), first),
                       OP(&c, "aten::index_select", self, value_int(0), second));
        if (dtype_is_float(meta->dtype))
                return compose_end(&c, gap_norm(&c, gap, p), out);
        Value none = OP(&c, "aten::sum.dim_IntList", gap, INTS(&c, -1)); // no pairs, or no columns
        return compose_end(&c, compose_cast(&c, none, meta->dtype), out);
}

static OpExpand pdist_form(const OpCall *call)
{
        double p;
        const TensorMeta *meta = arg_meta(call, SELF);
        const bool pairs = pdist_check(call, &p) == STATUS_OK && meta->size[0] > 1 && meta->size[1] > 0;
        return pairs && (p == 1 || p == 2 || isinf(p)) ? NULL : pdist_forward_expand;
}

static Status pdist_infer(OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF);
        const int64_t n = self->size[0];
        int64_t twice;
        if (!mul_i64(n, n - 1, &twice))
                return fail(STATUS_TOO_LARGE, "pdist: the result is too large");
        TensorMeta meta;
        meta_init(&meta, self->dtype, 1, &(int64_t){ twice / 2 });
        return out_fresh(call, 0, &meta);
}

static Status pdist_run(const OpRun *run)
{
        double p;
        const TensorMeta *self = run->in_meta[0];
        TRY(arg_double(run->call, PDIST_P, &p));
        Distances task = { .dtype = self->dtype,
                           .kind = p == 1   ? DISTANCE_SUM
                                   : p == 2 ? DISTANCE_EUCLIDEAN
                                            : DISTANCE_LARGEST,
                           .n = self->size[0],
                           .m = self->size[1],
                           .data = run->in[0] };
        return distances_run(run->ctx, &task, run->out[0]);
}

static Cost pdist_cost(const OpCall *call)
{
        const TensorMeta *self = arg_meta(call, SELF), *out = &call->outs[0].meta;
        return (Cost){ .flops = saturating_product(meta_numel(out), 3 * self->size[1]),
                       .bytes = (meta_numel(self) + meta_numel(out)) * dtype_info[self->dtype].bytes };
}

static Status pdist_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        if (!dtype_is_float(compose_meta(&c, self)->dtype))
                return fail(STATUS_DTYPE, "pdist only supports floating-point dtypes");
        Value packed = OP(&c, "aten::contiguous", self);
        return compose_end(&c, OP(&c, "aten::_pdist_forward", packed, NAMED(&c, "p")), out);
}

static Status euclidean_dist_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, euclidean(&c, NAMED(&c, "x1"), NAMED(&c, "x2")), out);
}

// ---- weights as direction and size ----
// The norm over all dimensions but `dim`, which keep size 1; of all with dim -1 (0-dim then). Other
// negative ones count from the end.
static Value norm_except(Compose *c, Value v, Value p, int64_t dim)
{
        const TensorMeta *meta = compose_meta(c, v);
        if (dim == -1)
                return OP(c, "aten::linalg_vector_norm", v, p);
        if (dim < -1)
                dim += meta->rank;
        if (dim < 0 || dim >= MAX(meta->rank, 1)) {
                compose_check(c, fail(STATUS_INDEX,
                                      "Dimension out of range (expected to be in range of [%d, %d], "
                                      "but got %ld)",
                                      -MAX(meta->rank, 1), MAX(meta->rank, 1) - 1, (long)dim));
                return value_none();
        }
        int64_t dims[MAX_RANK];
        int n = 0;
        for (int d = 0; d < meta->rank; d++) {
                if (d != dim)
                        dims[n++] = d;
        }
        if (n == 0) // of each element alone: 1 or 0 for p = 0, and no integers
                return OP(c, "aten::linalg_vector_norm", OP(c, "aten::unsqueeze", v, value_int(-1)), p,
                          INTS(c, -1));
        return OP(c, "aten::linalg_vector_norm", v, p, compose_ints(c, dims, n), value_bool(true));
}

static Status norm_except_dim_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value v = NAMED(&c, "v");
        const int64_t dim = compose_int(&c, "dim");
        if (compose_meta(&c, v)->rank == 0 && dim == 0)
                return fail(STATUS_SHAPE, "Dimension specified as 0 but tensor has no dimensions");
        return compose_end(&c, norm_except(&c, v, NAMED(&c, "pow"), dim), out);
}

// One factor for each entry of `dim`, of the dtype of v. Computed wide, rounded once.
static Value kernel_weight_norm(Compose *c, Value v, Value g, Value size)
{
        const TensorMeta *vm = compose_meta(c, v), *gm = compose_meta(c, g), *sm = compose_meta(c, size);
        if (!compose_failed(c) && vm->dtype != gm->dtype)
                compose_check(c, fail(STATUS_DTYPE, "expected scalar type %s but found %s",
                                      dtype_words(vm->dtype), dtype_words(gm->dtype)));
        else if (!compose_failed(c) && meta_numel(gm) != meta_numel(sm))
                compose_check(c, fail(STATUS_SHAPE, "_weight_norm: g has %ld elements, expected %ld",
                                      (long)meta_numel(gm), (long)meta_numel(sm)));
        g = OP(c, "aten::reshape", g, compose_ints(c, sm->size, sm->rank));
        Value scale = OP(c, "aten::div.Tensor", compose_wide(c, g), size);
        return compose_cast(c, OP(c, "aten::mul.Tensor", compose_wide(c, v), scale), vm->dtype);
}

static Status weight_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value v = NAMED(&c, "v"), g = NAMED(&c, "g");
        const int64_t dim = compose_int(&c, "dim");
        const bool by_kernel = dim == 0 || dim == compose_meta(&c, v)->rank - 1,
                   gives_size = call->schema->n_returns > 1;
        if (gives_size && !by_kernel)
                return fail(STATUS_VALUE, "_weight_norm_interface: only the first or the last dim");
        Value size = norm_except(&c, by_kernel ? compose_wide(&c, v) : v, value_int(2), dim);
        if (!by_kernel) // as PyTorch has it there: by operators, each of which rounds
                return compose_end(&c, OP(&c, "aten::mul.Tensor", v, OP(&c, "aten::div.Tensor", g, size)),
                                   out);
        Value weight = kernel_weight_norm(&c, v, g, size);
        return compose_end(&c, gives_size ? compose_tuple(&c, (Value[]){ weight, size }, 2) : weight, out);
}

// Sub-tensors along `dim` whose p-norm is over maxnorm are scaled down to it.
static Status renorm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, self);
        double p = compose_double(&c, "p"), largest = compose_double(&c, "maxnorm");
        if (!(p > 0))
                return fail(STATUS_VALUE, "renorm: non-positive-norm not supported");
        if (!(largest >= 0))
                return fail(STATUS_VALUE, "renorm: expected maxnorm to be >= 0 but got %g", largest);
        if (meta->rank < 2)
                return fail(STATUS_SHAPE, "renorm: input needs at least 2 dimensions, got %d dimensions",
                            meta->rank);
        Value wide = compose_wide(&c, self);
        Value size = norm_except(&c, wide, NAMED(&c, "p"), compose_dim(&c, "dim", meta->rank));
        Value factor = OP(&c, "aten::mul.Scalar",
                          OP(&c, "aten::reciprocal", OP(&c, "aten::add.Scalar", size, value_float(1e-7))),
                          value_float(largest));
        factor = OP(&c, "aten::where.self", OP(&c, "aten::gt.Scalar", size, value_float(largest)), factor,
                    OP(&c, "aten::ones_like", size));
        Value scaled = OP(&c, "aten::mul.Tensor", wide, factor);
        scaled = compose_cast(&c, scaled, meta->dtype);
        return compose_end(&c, OP(&c, "aten::contiguous", scaled), out);
}

// ---- torch.linalg ----
// The largest or smallest along a dimension. The largest of nothing is 0, as a norm; of nothing the
// smallest is refused.
static Value extreme(Compose *c, Value values, int dim, bool largest, bool keepdim)
{
        const TensorMeta *meta = compose_meta(c, values);
        bool of_nothing = !compose_failed(c) && meta->size[dim] == 0;
        const char *name = largest && of_nothing ? "aten::sum.dim_IntList"
                           : largest             ? "aten::amax"
                                                 : "aten::amin";
        return OP(c, name, values, INTS(c, dim), value_bool(keepdim));
}

// Sums of absolute values along `a`, of them the largest or smallest along `b`.
static Value extreme_of_sums(Compose *c, Value x, int a, int b, bool largest, bool keepdim)
{
        Value sums = OP(c, "aten::linalg_vector_norm", x, value_int(1), INTS(c, a), value_bool(keepdim));
        return extreme(c, sums, b > a && !keepdim ? b - 1 : b, largest, keepdim);
}

// Their sum (order 0: the nuclear norm), the largest (2) or the smallest (-2).
static Value norm_by_singular_values(Compose *c, Value x, const int dims[2], double order, bool keepdim)
{
        Value at_end = OP(c, "aten::movedim.intlist", x, INTS(c, dims[0], dims[1]), INTS(c, -2, -1));
        Value values = OP(c, "aten::linalg_svdvals", at_end);
        int last = compose_meta(c, values)->rank - 1;
        Value norm = order == 0 ? OP(c, "aten::sum.dim_IntList", values, INTS(c, last))
                                : extreme(c, values, last, order > 0, false);
        for (int i = 0; i < 2 && keepdim; i++)
                norm = OP(c, "aten::unsqueeze", norm,
                          value_int(i == 0 ? MIN(dims[0], dims[1]) : MAX(dims[0], dims[1])));
        return norm;
}

static Status matrix_order(const char *name, double order)
{
        if (name != NULL && strcmp(name, "fro") != 0 && strcmp(name, "nuc") != 0)
                return fail(STATUS_VALUE, "linalg.matrix_norm: Order %s not supported.", name);
        if (name == NULL && fabs(order) != 1 && fabs(order) != 2 && !isinf(order))
                return fail(STATUS_VALUE, "linalg.matrix_norm: Order %g not supported.", order);
        return STATUS_OK;
}

static Value matrix_norm(Compose *c, Value x, const int dims[2], const char *name, double order, bool keepdim)
{
        if (name != NULL && strcmp(name, "fro") == 0)
                return OP(c, "aten::linalg_vector_norm", x, value_int(2), INTS(c, dims[0], dims[1]),
                          value_bool(keepdim));
        if (name == NULL && fabs(order) == 1)
                return extreme_of_sums(c, x, dims[0], dims[1], order > 0, keepdim);
        if (name == NULL && isinf(order))
                return extreme_of_sums(c, x, dims[1], dims[0], order > 0, keepdim);
        return norm_by_singular_values(c, x, dims, name != NULL ? 0 : order, keepdim);
}

static Status refuse_dims(const int64_t given[MAX_RANK], int n)
{
        _cleanup_(text_deinit) Text text = { 0 };
        for (int i = 0; i < n; i++)
                text_addf(&text, " %ld", (long)given[i]);
        return fail(STATUS_VALUE, "linalg.matrix_norm: dim must be a 2-tuple. Got%s",
                    text.data == NULL ? "" : text.data);
}

static Status matrix_dims(const TensorMeta *meta, const int64_t given[MAX_RANK], int n, int out[2])
{
        if (meta->rank < 2)
                return fail(STATUS_SHAPE,
                            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
        if (n != 2)
                return refuse_dims(given, n);
        for (int i = 0; i < 2; i++)
                TRY(dim_wrap(given[i], meta->rank, &out[i]));
        return out[0] != out[1]
                       ? STATUS_OK
                       : fail(STATUS_VALUE, "linalg.matrix_norm: dims must be different. Got (%ld, %ld)",
                              (long)given[0], (long)given[1]);
}

// What the matrices are made of, and what dtype= makes of it.
static Status matrix_dtypes(Dtype from, Dtype as, bool by_singular_values)
{
        const bool of_complex = point_is_complex(from);
        Dtype wider;
        if (!dtype_is_float(from) && !of_complex)
                return fail(STATUS_DTYPE,
                            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
                            "%s",
                            dtype_words(from));
        if (by_singular_values && (DTYPES_HALFS >> from & 1) != 0)
                return fail(STATUS_DTYPE, "linalg.matrix_norm: Low precision dtypes not supported. Got %s",
                            dtype_words(from));
        if (!dtype_is_float(as) && !point_is_complex(as))
                return fail(STATUS_DTYPE,
                            "linalg.matrix_norm: dtype should be floating point or complex, but got %s",
                            dtype_words(as));
        if (of_complex != point_is_complex(as))
                return fail(STATUS_DTYPE, "linalg.matrix_norm: dtype should be %s for %s inputs, but got %s",
                            of_complex ? "complex" : "real", of_complex ? "complex" : "real",
                            dtype_words(as));
        TRY(dtype_promote(from, as, &wider));
        return wider == as ? STATUS_OK
                           : fail(STATUS_DTYPE,
                                  "linalg.matrix_norm: the dtype of the input (%s) should be convertible "
                                  "without narrowing to the specified dtype (%s)",
                                  dtype_words(from), dtype_words(as));
}

// `ord` by name or number, of matrices in the dimensions given (by default the last two).
static Value norm_of_matrices(Compose *c, Value self, const int64_t given[MAX_RANK], int n)
{
        int dims[2] = { 0, 1 };
        Value order = NAMED(c, "ord");
        const char *name = order.kind == VALUE_STR ? order.str->text : NULL;
        const double number = name == NULL ? compose_double(c, "ord") : 0;
        const TensorMeta *meta = compose_meta(c, self);
        const Dtype as = compose_has(c, "dtype") ? NAMED(c, "dtype").dtype : meta->dtype;
        const bool by_singular_values = name == NULL ? fabs(number) == 2 : strcmp(name, "nuc") == 0;
        if (!compose_failed(c))
                compose_check(c, matrix_order(name, number));
        if (!compose_failed(c))
                compose_check(c, matrix_dtypes(meta->dtype, as, by_singular_values));
        if (!compose_failed(c))
                compose_check(c, matrix_dims(meta, given, n, dims));
        return compose_failed(c) ? value_none()
                                 : matrix_norm(c, compose_cast(c, self, as), dims, name, number,
                                               compose_bool(c, "keepdim"));
}

static Status linalg_matrix_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        int64_t dims[MAX_RANK];
        int n = compose_int_list(&c, "dim", dims);
        return compose_end(&c, norm_of_matrices(&c, NAMED(&c, "self"), dims, n), out);
}

static Status linalg_norm_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self"), order = NAMED(&c, "ord");
        const TensorMeta *meta = compose_meta(&c, self);
        int64_t dims[MAX_RANK] = { -2, -1 };
        bool has_dims = compose_has(&c, "dim"), has_order = compose_has(&c, "ord");
        int n = has_dims ? compose_int_list(&c, "dim", dims) : meta->rank;
        char text[512];
        if (has_dims && n != 1 && n != 2)
                return fail(STATUS_VALUE,
                            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %s",
                            shape_text(n, dims, text, sizeof(text)));
        if (has_order && !has_dims && meta->rank != 1 && meta->rank != 2)
                return fail(STATUS_SHAPE,
                            "linalg.norm: If dim is not specified but ord is, the input must be 1D "
                            "or 2D. Got %dD.",
                            meta->rank);
        if (has_order && n == 2)
                return compose_end(&c, norm_of_matrices(&c, self, dims, n), out);
        if (order.kind == VALUE_STR)
                return fail(STATUS_VALUE,
                            "linalg.norm: Order %s is for matrices: the input or dim must have 2 "
                            "dimensions",
                            order.str->text);
        Value list = has_dims ? NAMED(&c, "dim") : value_none();
        Value norm = OP(&c, "aten::linalg_vector_norm", self, has_order ? order : value_int(2), list,
                        NAMED(&c, "keepdim"), NAMED(&c, "dtype"));
        return compose_end(&c, norm, out);
}

#define DISTANCE_OF(dtypes, schema, function)                                                                \
        {                                                                                                    \
                "aten::" schema, dtypes, .expand = function##_expand, .traits = TRAIT_FRESH                  \
        }
#define DISTANCE(schema, function)   DISTANCE_OF(DTYPES_REAL, schema, function)
#define OF_COMPLEX(schema, function) DISTANCE_OF(DTYPES_REAL | DTYPES_COMPLEX, schema, function)
const OpDef distances_ops[] = {
        OF_COMPLEX(
                "pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool "
                "keepdim=False) -> Tensor",
                pairwise_distance),
        OF_COMPLEX("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist),
        DISTANCE("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
                 cosine_similarity),
        DISTANCE("pdist(Tensor self, float p=2.) -> Tensor", pdist),
        { "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor", DTYPES_REAL, .infer = pdist_infer,
          .run = pdist_run, .cost = pdist_cost, .form = pdist_form, .traits = TRAIT_FRESH },
        DISTANCE("cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", cdist),
        DISTANCE("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", cdist),
        DISTANCE("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", euclidean_dist),
        OF_COMPLEX("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", norm_except_dim),
        DISTANCE("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", weight_norm),
        DISTANCE("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)", weight_norm),
        { "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
          DTYPES_REAL | DTYPES_COMPLEX, .flags = OP_INPLACE, .expand = renorm_expand, .traits = TRAIT_FRESH },
        OF_COMPLEX("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
                   "ScalarType? dtype=None) -> Tensor",
                   linalg_norm),
        OF_COMPLEX("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
                   "ScalarType? dtype=None) -> Tensor",
                   linalg_norm),
        OF_COMPLEX("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, "
                   "ScalarType? dtype=None) -> Tensor",
                   linalg_matrix_norm),
        OF_COMPLEX("linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool "
                   "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                   linalg_matrix_norm),
};
OP_FILE(distances_ops);
