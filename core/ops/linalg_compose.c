// SPDX-License-Identifier: Apache-2.0
// linalg_compose.c: operators on matrices that are made of factorisations and products.
#include <float.h>
#include <math.h>
#include "core/ops/arguments.h"
#include "core/ops/complex_forms.h"
#include "core/ops/linalg.h"

// ---- powers, determinants ----
static Value matrix_power(Compose *c, Value x, int64_t n)
{
        const TensorMeta *meta = compose_meta(c, x);
        if (n == 0) {
                Value eye =
                        OP(c, "aten::eye", value_int(meta->size[meta->rank - 1]), value_dtype(meta->dtype));
                return OP(c, "aten::clone",
                          OP(c, "aten::expand", eye, compose_ints(c, meta->size, meta->rank)),
                          (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS });
        }
        if (n < 0)
                x = OP(c, "aten::linalg_inv", x);
        uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
        if (left == 1)
                return n < 0 ? x : OP(c, "aten::clone", x);
        if (left == 3) // PyTorch's order
                return OP(c, "aten::matmul", OP(c, "aten::matmul", x, x), x);
        Value result = value_none();
        for (Value square = x; left != 0 && !compose_failed(c); left >>= 1) {
                if ((left & 1) != 0)
                        result = result.kind == VALUE_NONE ? square : OP(c, "aten::matmul", result, square);
                if (left > 1)
                        square = OP(c, "aten::matmul", square, square);
        }
        return result;
}

static Status matrix_power_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        TRY(linalg_square(compose_meta(&c, self), "linalg.matrix_power"));
        return compose_end(&c, matrix_power(&c, self, compose_int(&c, "n")), out);
}

static Status logdet_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        TRY(linalg_square(compose_meta(&c, NAMED(&c, "self")), "logdet"));
        Value pair = OP(&c, "aten::linalg_slogdet", NAMED(&c, "self"));
        Value sign = compose_item(&c, pair, 0), log_size = compose_item(&c, pair, 1);
        if (!compose_failed(&c) && dtype_info[compose_meta(&c, sign)->dtype].kind == DTYPE_KIND_COMPLEX)
                return compose_end(&c, OP(&c, "aten::add.Tensor", OP(&c, "aten::log", sign), log_size), out);
        Value negative = OP(&c, "aten::eq.Scalar", sign, value_int(-1));
        return compose_end(&c, OP(&c, "aten::masked_fill.Scalar", log_size, negative, value_float(NAN)), out);
}

// ---- triangular systems ----
static Value solved(Compose *c, Value triangle, Value b, bool upper, bool unit)
{
        return OP(c, "aten::linalg_solve_triangular", triangle, b, value_bool(upper), value_bool(true),
                  value_bool(unit));
}

// X of L L^H X = B, or U^H U X = B.
static Value cholesky_solution(Compose *c, Value factor, Value b, bool upper)
{
        Value turned = OP(c, "aten::mH", factor);
        Value half = solved(c, upper ? turned : factor, b, false, false);
        return solved(c, upper ? factor : turned, half, true, false);
}

static Status cholesky_solve_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value b = NAMED(&c, "self"), factor = NAMED(&c, "input2");
        if (compose_meta(&c, b)->rank < 2)
                return fail(STATUS_SHAPE,
                            "b should have at least 2 dimensions, but has %d dimensions instead",
                            compose_meta(&c, b)->rank);
        if (compose_meta(&c, b)->dtype != compose_meta(&c, factor)->dtype)
                return fail(STATUS_DTYPE,
                            "Expected b and A to have the same dtype, but found b of type %s and A of type "
                            "%s instead.",
                            dtype_words(compose_meta(&c, b)->dtype),
                            dtype_words(compose_meta(&c, factor)->dtype));
        return compose_end(&c, cholesky_solution(&c, factor, b, compose_bool(&c, "upper")), out);
}

// A factor has a real diagonal. What LAPACK makes of other ones depends on their size.
static void check_diagonal(Compose *c, Value factor)
{
        Value imag = OP(c, "aten::diagonal", OP(c, "aten::imag", factor), value_int(0), value_int(-2),
                        value_int(-1));
        OP(c, "aten::_assert_async.msg", OP(c, "aten::all", OP(c, "aten::eq.Scalar", imag, value_int(0))),
           compose_text(c, "cholesky_inverse: the diagonal of a Cholesky factor must be real"));
}

static Status cholesky_inverse_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value factor = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, factor);
        TRY(linalg_square(meta, "cholesky_inverse"));
        Value eye = OP(&c, "aten::eye", value_int(meta->size[meta->rank - 1]), value_dtype(meta->dtype));
        if (linalg_compute(meta->dtype) == DTYPE_C128)
                check_diagonal(&c, factor);
        return compose_end(&c, cholesky_solution(&c, factor, eye, compose_bool(&c, "upper")), out);
}

static Status svd_pair_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        bool full = compose_bool(&c, "full_matrices");
        return compose_end(
                &c, OP(&c, "aten::_linalg_svd", NAMED(&c, "A"), value_bool(full), value_bool(true)), out);
}

static Status svdvals_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value all = OP(&c, "aten::_linalg_svd", NAMED(&c, "A"), value_bool(false), value_bool(false));
        return compose_end(&c, compose_item(&c, all, 1), out);
}

static Status old_qr_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value mode = compose_text(&c, compose_bool(&c, "some") ? "reduced" : "complete");
        return compose_end(&c, OP(&c, "aten::linalg_qr", NAMED(&c, "self"), mode), out);
}

// X of A X = B or A^T X = B, and a copy of A.
static Status old_triangular_solve_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "A"), b = NAMED(&c, "self");
        bool upper = compose_bool(&c, "upper"), transpose = compose_bool(&c, "transpose");
        Dtype of_a = compose_meta(&c, a)->dtype, of_b = compose_meta(&c, b)->dtype;
        if (of_a != of_b)
                compose_check(&c, fail(STATUS_DTYPE,
                                       "Expected b and A to have the same dtype, but found b of type %s and "
                                       "A of type %s instead.",
                                       dtype_words(of_b), dtype_words(of_a)));
        Value solution = OP(&c, "aten::linalg_solve_triangular", transpose ? OP(&c, "aten::mT", a) : a, b,
                            value_bool(upper != transpose), value_bool(true),
                            value_bool(compose_bool(&c, "unitriangular")));
        TensorMeta all = *compose_meta(&c, solution);
        if (!compose_failed(&c))
                all.size[all.rank - 1] = all.size[all.rank - 2];
        Value whole = OP(&c, "aten::expand", a, compose_ints(&c, all.size, all.rank));
        Value contiguous = { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS };
        Value columns = OP(&c, "aten::clone", OP(&c, "aten::mT", whole), contiguous);
        Value items[] = { solution, OP(&c, "aten::mT", columns) }; // column by column, as in PyTorch
        return compose_end(&c, compose_tuple(&c, items, 2), out);
}

static Status old_svd_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        if (!compose_bool(&c, "compute_uv"))
                return fail(STATUS_UNSUPPORTED,
                            "svd without vectors is not supported; torch.linalg.svdvals is");
        Value all = OP(&c, "aten::_linalg_svd", NAMED(&c, "self"), value_bool(!compose_bool(&c, "some")),
                       value_bool(true));
        Value items[] = { compose_item(&c, all, 0), compose_item(&c, all, 1),
                          OP(&c, "aten::mT", compose_item(&c, all, 2)) };
        return compose_end(&c, compose_tuple(&c, items, 3), out);
}

// ---- by singular values ----
static double given_atol(Compose *c)
{
        return compose_has(c, "atol") ? compose_double(c, "atol") : 0;
}

static double default_rtol(const TensorMeta *a)
{
        const bool is_double = a->dtype == DTYPE_F64 || a->dtype == DTYPE_C128;
        return (double)MAX(a->size[a->rank - 1], a->size[a->rank - 2]) *
               (is_double ? DBL_EPSILON : (double)FLT_EPSILON);
}

static double given_rtol(Compose *c, const TensorMeta *a)
{
        if (compose_has(c, "rtol"))
                return compose_double(c, "rtol");
        return given_atol(c) > 0 ? 0 : default_rtol(a);
}

static bool by_tensors(Compose *c)
{
        return NAMED(c, "atol").kind == VALUE_TENSOR || NAMED(c, "rtol").kind == VALUE_TENSOR;
}

static Value one_double(Compose *c, double number)
{
        return OP(c, "aten::full", compose_ints(c, NULL, 0), value_float(number), value_dtype(DTYPE_F64));
}

static Value tensor_rtol(Compose *c, const TensorMeta *a)
{
        if (compose_has(c, "rtol"))
                return NAMED(c, "rtol");
        Value usual = one_double(c, default_rtol(a));
        if (!compose_has(c, "atol"))
                return usual;
        return OP(c, "aten::where.ScalarSelf", OP(c, "aten::gt.Scalar", NAMED(c, "atol"), value_int(0)),
                  value_float(0), usual);
}

// Below max(atol, rtol * largest) a singular value counts as 0. Numbers make a limit of float64, as
// in PyTorch; tensors are promoted as any others.
static Value threshold(Compose *c, Value values, const TensorMeta *a)
{
        Value largest = OP(c, "aten::amax", values, INTS(c, -1), value_bool(true));
        if (!by_tensors(c)) {
                Value share = OP(c, "aten::mul.Scalar", compose_cast(c, largest, DTYPE_F64),
                                 value_float(given_rtol(c, a)));
                return OP(c, "aten::clamp_min", share, value_float(given_atol(c)));
        }
        Value atol = compose_has(c, "atol") ? NAMED(c, "atol") : one_double(c, 0);
        Value share = OP(c, "aten::mul.Tensor", OP(c, "aten::unsqueeze", tensor_rtol(c, a), value_int(-1)),
                         largest);
        return OP(c, "aten::maximum", OP(c, "aten::unsqueeze", atol, value_int(-1)), share);
}

static Status tolerance_check(Compose *c, const char *argument, const char *name)
{
        const Value given = NAMED(c, argument);
        if (given.kind == VALUE_TENSOR && dtype_info[given.tensor->meta.dtype].kind == DTYPE_KIND_COMPLEX)
                return fail(STATUS_DTYPE, "%s: %s tensor of complex type is not supported. Got %s", name,
                            argument, dtype_words(given.tensor->meta.dtype));
        return STATUS_OK;
}

static Status spectral_check(Compose *c, const TensorMeta *a, const char *name)
{
        TRY(linalg_matrix(a, name));
        TRY(tolerance_check(c, "atol", name));
        TRY(tolerance_check(c, "rtol", name));
        return compose_bool(c, "hermitian") && meta_numel(a) != 0 ? linalg_square(a, "linalg.eigh")
                                                                  : STATUS_OK;
}

// Of the real matrix that has all values twice: its inverse is that of the complex one, doubled.
// torch.autocast leaves complex numbers as they are.
static Value complex_pinv(Compose *c, Value self, const TensorMeta *a)
{
        const Value m = value_int(a->size[a->rank - 2]), n = value_int(a->size[a->rank - 1]);
        const Value first = value_int(0), across = value_int(-1), down = value_int(-2);
        const bool hermitian = compose_bool(c, "hermitian"), autocast = c->emitter->autocast;
        c->emitter->autocast = false;
        Value twice = hermitian ? complex_hermitian(c, self, false)
                                : complex_doubled(c, OP(c, "aten::real", self), OP(c, "aten::imag", self));
        Value inverse =
                by_tensors(c) ? OP(c, "aten::linalg_pinv.atol_rtol_tensor", twice, NAMED(c, "atol"),
                                   tensor_rtol(c, a), value_bool(hermitian))
                              : OP(c, "aten::linalg_pinv.atol_rtol_float", twice, value_float(given_atol(c)),
                                   value_float(given_rtol(c, a)), value_bool(hermitian));
        Value left = OP(c, "aten::slice.Tensor", inverse, across, first, m);
        Value result = OP(c, "aten::complex", OP(c, "aten::slice.Tensor", left, down, first, n),
                          OP(c, "aten::slice.Tensor", left, down, n, value_int(INT64_MAX)));
        c->emitter->autocast = autocast;
        return result;
}

// left * diag(1 / values) * right^T, where values count whose sizes do.
static Value inverted(Compose *c, const TensorMeta *a, Value left, Value values, Value right)
{
        Value sizes = OP(c, "aten::abs", values);
        Value kept = OP(c, "aten::gt.Tensor", sizes, threshold(c, sizes, a));
        Value inverse =
                OP(c, "aten::where.ScalarOther", kept, OP(c, "aten::reciprocal", values), value_int(0));
        Value scaled = OP(c, "aten::mul.Tensor", left, OP(c, "aten::unsqueeze", inverse, value_int(-2)));
        return OP(c, "aten::matmul", scaled, OP(c, "aten::mT", right));
}

static Status pinv_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = NAMED(&c, "self");
        const TensorMeta *a = compose_meta(&c, self);
        TRY(spectral_check(&c, a, "torch.linalg.pinv"));
        if (dtype_is_int(a->dtype) || a->dtype == DTYPE_BOOL || (DTYPES_HALFS >> a->dtype & 1) != 0)
                return fail(
                        STATUS_DTYPE,
                        "linalg.pinv: expected a tensor with 2 or more dimensions of float, double, cfloat "
                        "or cdouble types");
        if (meta_numel(a) == 0) {
                TensorMeta turned = linalg_turned(a), square = turned;
                Value result = OP(&c, "aten::zeros", compose_ints(&c, turned.size, turned.rank),
                                  value_dtype(a->dtype));
                square.size[square.rank - 2] = square.size[square.rank - 1];
                // a product, as PyTorch's: torch.autocast lowers its dtype
                return compose_end(&c,
                                   OP(&c, "aten::matmul", result,
                                      OP(&c, "aten::zeros", compose_ints(&c, square.size, square.rank),
                                         value_dtype(a->dtype))),
                                   out);
        }
        if (dtype_info[a->dtype].kind == DTYPE_KIND_COMPLEX)
                return compose_end(&c, complex_pinv(&c, self, a), out);
        if (compose_bool(&c, "hermitian")) {
                Value all = OP(&c, "aten::_linalg_eigh", self), vectors = compose_item(&c, all, 1);
                return compose_end(&c, inverted(&c, a, vectors, compose_item(&c, all, 0), vectors), out);
        }
        Value all = OP(&c, "aten::_linalg_svd", self, value_bool(false), value_bool(true));
        Value right = OP(&c, "aten::mT", compose_item(&c, all, 2));
        return compose_end(&c, inverted(&c, a, right, compose_item(&c, all, 1), compose_item(&c, all, 0)),
                           out);
}

static Status matrix_rank_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = call->args[SELF];
        const TensorMeta *a = compose_meta(&c, self);
        TRY(spectral_check(&c, a, "torch.linalg.matrix_rank"));
        if (!compose_has(&c, "rtol") && (dtype_is_int(a->dtype) || DTYPES_HALFS >> a->dtype & 1))
                return fail(STATUS_DTYPE, "This function doesn't handle types other than float and double");
        if (dtype_is_int(a->dtype) && meta_numel(a) != 0)
                return fail(STATUS_DTYPE,
                            "linalg.matrix_rank: expected floats or complex numbers, but got %s",
                            dtype_words(a->dtype));
        if (meta_numel(a) == 0)
                return compose_end(
                        &c,
                        OP(&c, "aten::zeros", compose_ints(&c, a->size, a->rank - 2), value_dtype(DTYPE_I64)),
                        out);
        Value values = compose_bool(&c, "hermitian")
                               ? OP(&c, "aten::abs", OP(&c, "aten::linalg_eigvalsh", self))
                               : OP(&c, "aten::linalg_svdvals", self);
        Value counted = OP(&c, "aten::gt.Tensor", values, threshold(&c, values, a));
        return compose_end(&c, OP(&c, "aten::sum.dim_IntList", counted, INTS(&c, -1)), out);
}

// ---- chains of products ----
static Status multi_dot_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value list = NAMED(&c, "tensors");
        uint32_t n = compose_length(list);
        if (n < 2)
                return fail(STATUS_VALUE, "multi_dot(): expected at least 2 tensors but got %u", n);
        for (uint32_t i = 0; i < n; i++) {
                int rank = compose_meta(&c, compose_item(&c, list, i))->rank;
                if (rank != 2 && !((i == 0 || i == n - 1) && rank == 1))
                        return fail(STATUS_SHAPE, "multi_dot(): tensor %u must be 2D but got %dD", i, rank);
                Dtype first = compose_meta(&c, compose_item(&c, list, 0))->dtype,
                      dtype = compose_meta(&c, compose_item(&c, list, i))->dtype;
                if (dtype != first)
                        return fail(STATUS_DTYPE,
                                    "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s "
                                    "and tensor %u %s",
                                    dtype_words(first), i, dtype_words(dtype));
        }
        Value product = compose_item(&c, list, 0);
        for (uint32_t i = 1; i < n; i++)
                product = OP(&c, "aten::matmul", product, compose_item(&c, list, i));
        return compose_end(&c, product, out);
}

#define MADE(schema, name)                                                                                   \
        {                                                                                                    \
                "aten::" schema, 0, .expand = name##_expand, .traits = TRAIT_FRESH                           \
        }
const OpDef linalg_compose_ops[] = {
        MADE("linalg_matrix_power(Tensor self, int n) -> Tensor", matrix_power),
        MADE("matrix_power(Tensor self, int n) -> Tensor", matrix_power),
        MADE("logdet(Tensor self) -> Tensor", logdet),
        MADE("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", cholesky_solve),
        MADE("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", cholesky_inverse),
        MADE("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", old_qr),
        MADE("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
             "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
             old_triangular_solve),
        MADE("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> "
             "(Tensor U, Tensor S, Tensor Vh)",
             svd_pair),
        MADE("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", svdvals),
        { "aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", 0,
          .expand = old_svd_expand, .traits = TRAIT_MAY_SHARE },
        MADE("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
             "hermitian=False) -> Tensor",
             pinv),
        MADE("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
             "hermitian=False) -> Tensor",
             matrix_rank),
        MADE("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
             "hermitian=False) -> Tensor",
             pinv),
        MADE("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
             "bool hermitian=False) -> Tensor",
             matrix_rank),
        MADE("linalg_multi_dot(Tensor[] tensors) -> Tensor", multi_dot),
};
OP_FILE(linalg_compose_ops);
