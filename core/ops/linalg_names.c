// SPDX-License-Identifier: Apache-2.0
// linalg_names.c: torch.linalg's second names of operators, and what is a few reshapes around an
// inverse, a solution or singular values.
#include <math.h>
#include <string.h>
#include "core/ops/compose.h"
#include "core/ops/linalg.h"

static Status diagonal_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return emit_values(emitter, "aten::diagonal", call->args, call->n_args, out);
}

static Status matmul_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return emit_values(emitter, "aten::matmul", call->args, call->n_args, out);
}

static Status chain_matmul_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value list = NAMED(&c, "matrices");
        for (uint32_t i = 0; i < compose_length(list); i++) {
                if (compose_meta(&c, compose_item(&c, list, i))->rank != 2)
                        return fail(STATUS_SHAPE, "chain_matmul: tensor %u is no matrix", i);
        }
        if (compose_length(list) == 1)
                return compose_end(&c, OP(&c, "aten::clone", compose_item(&c, list, 0)), out);
        return compose_end(&c, OP(&c, "aten::linalg_multi_dot", list), out);
}

// ---- the condition number ----
// |A| |A^-1| in the given norm; a singular matrix has inverse infinity.
static Value by_inverse(Compose *c, Value a, const char *norm, Value order)
{
        Value pair = OP(c, "aten::linalg_inv_ex", a);
        Value info = OP(c, "aten::unsqueeze",
                        OP(c, "aten::unsqueeze", compose_item(c, pair, 1), value_int(-1)), value_int(-1));
        Value inverse = OP(c, "aten::masked_fill.Scalar", compose_item(c, pair, 0),
                           OP(c, "aten::gt.Scalar", info, value_int(0)), value_float(INFINITY));
        Value product = OP(c, "aten::mul.Tensor", OP(c, norm, a, order), OP(c, norm, inverse, order));
        return OP(c, "aten::nan_to_num", product, value_float(INFINITY), value_float(INFINITY),
                  value_float(-INFINITY));
}

// Matrices without elements have 0.
static Value empty_cond(Compose *c, const TensorMeta *a)
{
        Dtype dtype = a->dtype == DTYPE_C64 ? DTYPE_F32 : a->dtype == DTYPE_C128 ? DTYPE_F64 : a->dtype;
        return OP(c, "aten::zeros", compose_ints(c, a->size, a->rank - 2), value_dtype(dtype));
}

static Status cond_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), p = NAMED(&c, "p");
        const TensorMeta *meta = compose_meta(&c, a);
        TRY(linalg_matrix(meta, "linalg.cond"));
        const double order = p.kind == VALUE_NONE ? 2 : compose_double(&c, "p"), size = fabs(order);
        if (size != 1 && size != 2 && !isinf(size))
                return fail(STATUS_VALUE, "linalg.cond got an invalid norm type: %g", order);
        if (meta_numel(meta) == 0)
                return compose_end(&c, empty_cond(&c, meta), out);
        if (size != 2) {
                TRY(linalg_square(meta, "linalg.cond"));
                return compose_end(&c, by_inverse(&c, a, "aten::linalg_matrix_norm", p), out);
        }
        Value values = OP(&c, "aten::linalg_svdvals", a), first = value_int(0), last = value_int(-1);
        Value big = OP(&c, "aten::select.int", values, last, first),
              small = OP(&c, "aten::select.int", values, last, last);
        Value quotient =
                order > 0 ? OP(&c, "aten::div.Tensor", big, small) : OP(&c, "aten::div.Tensor", small, big);
        return compose_end(&c, quotient, out);
}

static Status cond_named_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), p = NAMED(&c, "p");
        const TensorMeta *meta = compose_meta(&c, a);
        const char *name = p.kind == VALUE_STR ? p.str->text : "";
        const bool is_nuclear = strcmp(name, "nuc") == 0;
        TRY(linalg_square(meta, "linalg.cond"));
        if (!is_nuclear && strcmp(name, "fro") != 0)
                return fail(STATUS_VALUE, "linalg.cond got an invalid norm type: %s", name);
        if (meta_numel(meta) == 0)
                return compose_end(&c, empty_cond(&c, meta), out);
        if (!is_nuclear)
                return compose_end(&c, by_inverse(&c, a, "aten::linalg_matrix_norm.str_ord", p), out);
        Value values = OP(&c, "aten::linalg_svdvals", a), last = INTS(&c, -1);
        Value inverses = OP(&c, "aten::sum.dim_IntList", OP(&c, "aten::reciprocal", values), last);
        Value sum = OP(&c, "aten::sum.dim_IntList", values, last);
        return compose_end(&c, OP(&c, "aten::mul.Tensor", sum, inverses), out);
}

// ---- tensors as matrices ----
// The product of sizes [from, to); -1 when it does not fit.
static int64_t product_of(const TensorMeta *meta, int from, int to)
{
        int64_t product = 1;
        for (int d = from; d < to; d++) {
                if (!mul_i64(product, meta->size[d], &product))
                        return -1;
        }
        return product;
}

static Status tensorinv_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self");
        const TensorMeta *meta = compose_meta(&c, a);
        const int64_t ind = compose_int(&c, "ind");
        if (ind <= 0)
                return fail(STATUS_VALUE, "Expected a strictly positive integer for 'ind'");
        if (ind > meta->rank)
                return fail(STATUS_SHAPE, "Expected self to have more than 'ind' dimensions");
        const int k = (int)ind;
        const int64_t rows = product_of(meta, 0, k), columns = product_of(meta, k, meta->rank);
        if (rows != columns || rows < 0)
                return fail(STATUS_SHAPE,
                            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                            "prod(self.shape[:ind]), but got %ld != %ld",
                            (long)columns, (long)rows);
        int64_t size[MAX_RANK];
        for (int d = 0; d < meta->rank; d++)
                size[d] = meta->size[(d + k) % meta->rank];
        Value inverse = OP(&c, "aten::linalg_inv", OP(&c, "aten::reshape", a, INTS(&c, rows, columns)));
        return compose_end(&c, OP(&c, "aten::reshape", inverse, compose_ints(&c, size, meta->rank)), out);
}

static Status tensorsolve_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "self"), b = NAMED(&c, "other");
        if (compose_has(&c, "dims")) {
                int64_t from[MAX_RANK], to[MAX_RANK];
                const int n = compose_int_list(&c, "dims", from);
                for (int i = 0; i < n; i++)
                        to[i] = compose_meta(&c, a)->rank - n + i;
                a = OP(&c, "aten::movedim.intlist", a, compose_ints(&c, from, n), compose_ints(&c, to, n));
        }
        const TensorMeta *am = compose_meta(&c, a), *bm = compose_meta(&c, b);
        const int k = bm->rank;
        if (!compose_failed(&c) && k > am->rank)
                compose_check(&c, fail(STATUS_SHAPE, "Expected self to have at least as many dimensions as "
                                                     "other"));
        if (compose_failed(&c))
                return compose_end(&c, a, out);
        const int64_t rows = product_of(bm, 0, k), columns = product_of(am, k, am->rank);
        if (rows != columns || rows != product_of(am, 0, k))
                compose_check(&c, fail(STATUS_SHAPE, "Expected self to satisfy the requirement "
                                                     "prod(self.shape[other.ndim:]) == "
                                                     "prod(self.shape[:other.ndim])"));
        Value solution = OP(&c, "aten::linalg_solve", OP(&c, "aten::reshape", a, INTS(&c, rows, columns)),
                            OP(&c, "aten::reshape", b, INTS(&c, rows)));
        return compose_end(
                &c, OP(&c, "aten::reshape", solution, compose_ints(&c, am->size + k, am->rank - k)), out);
}

// ---- powers of a vector ----
static Status vander_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta *meta = compose_meta(&c, NAMED(&c, "x"));
        if (meta->dtype == DTYPE_BOOL || (DTYPES_HALFS >> meta->dtype & 1) != 0)
                return fail(STATUS_DTYPE,
                            "linalg.vander supports floating point, complex, and integer tensors, "
                            "but got %s",
                            dtype_words(meta->dtype));
        if (meta->rank == MAX_RANK)
                return fail(STATUS_SHAPE, "linalg.vander: expected at most %d dimensions", MAX_RANK - 1);
        const int64_t n = compose_has(&c, "N") ? compose_int(&c, "N")
                          : meta->rank == 0    ? 1
                                               : meta->size[meta->rank - 1];
        if (n <= 1)
                return fail(STATUS_VALUE, "N must be greater than 1.");
        Value x = OP(&c, "aten::atleast_1d", NAMED(&c, "x"));
        meta = compose_meta(&c, x);
        int64_t size[MAX_RANK];
        memcpy(size, meta->size, sizeof(size));
        size[meta->rank] = n - 1;
        Value tall = OP(&c, "aten::unsqueeze", x, value_int(-1));
        Value columns[] = { OP(&c, "aten::ones_like", tall),
                            OP(&c, "aten::expand", tall, compose_ints(&c, size, meta->rank + 1)) };
        Value all = OP(&c, "aten::cat", compose_list(&c, columns, 2), value_int(-1));
        return compose_end(&c, OP(&c, "aten::cumprod", all, value_int(-1)), out);
}

// ---- old names of norms ----
static Status frobenius_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           OP(&c, "aten::linalg_vector_norm", NAMED(&c, "self"), value_int(2),
                              NAMED(&c, "dim"), NAMED(&c, "keepdim")),
                           out);
}

static Status nuclear_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value dims = call->schema->n_args > 2 ? NAMED(&c, "dim") : INTS(&c, -2, -1);
        return compose_end(&c,
                           OP(&c, "aten::linalg_matrix_norm.str_ord", NAMED(&c, "self"),
                              compose_text(&c, "nuc"), dims, NAMED(&c, "keepdim")),
                           out);
}

static Status pinverse_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           OP(&c, "aten::linalg_pinv.atol_rtol_float", NAMED(&c, "self"), value_float(0),
                              NAMED(&c, "rcond")),
                           out);
}

static Status rank_by_tol_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           OP(&c, "aten::linalg_matrix_rank.atol_rtol_float", NAMED(&c, "self"),
                              NAMED(&c, "tol"), value_float(0), NAMED(&c, "hermitian")),
                           out);
}

static Status pinv_by_rcond_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           OP(&c, "aten::linalg_pinv.atol_rtol_float", NAMED(&c, "self"), value_float(0),
                              NAMED(&c, "rcond"), NAMED(&c, "hermitian")),
                           out);
}

static Status rank_by_tol_tensor_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value zero = OP(&c, "aten::full", compose_ints(&c, NULL, 0), value_float(0), value_dtype(DTYPE_F64));
        return compose_end(&c,
                           OP(&c, "aten::linalg_matrix_rank.atol_rtol_tensor", NAMED(&c, "input"),
                              NAMED(&c, "tol"), zero, NAMED(&c, "hermitian")),
                           out);
}

static Status pinv_by_rcond_tensor_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           OP(&c, "aten::linalg_pinv.atol_rtol_tensor", NAMED(&c, "self"), value_none(),
                              NAMED(&c, "rcond"), NAMED(&c, "hermitian")),
                           out);
}

#define MADE(schema, name, traits_)                                                                          \
        {                                                                                                    \
                "aten::" schema, 0, .expand = name##_expand, .traits = traits_                               \
        }
const OpDef linalg_names_ops[] = {
        MADE("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", diagonal,
             0),
        MADE("linalg_matmul(Tensor self, Tensor other) -> Tensor", matmul, TRAIT_FRESH),
        MADE("chain_matmul(Tensor[] matrices) -> Tensor", chain_matmul, TRAIT_FRESH),
        MADE("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", cond, TRAIT_FRESH),
        MADE("linalg_cond.p_str(Tensor self, str p) -> Tensor", cond_named, TRAIT_FRESH),
        MADE("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", tensorinv, TRAIT_FRESH),
        MADE("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", tensorsolve,
             TRAIT_FRESH),
        MADE("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", vander, TRAIT_FRESH),
        MADE("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", frobenius,
             TRAIT_FRESH),
        MADE("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", nuclear, TRAIT_FRESH),
        MADE("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", nuclear, TRAIT_FRESH),
        MADE("pinverse(Tensor self, float rcond=1e-15) -> Tensor", pinverse, TRAIT_FRESH),
        MADE("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", pinv_by_rcond,
             TRAIT_FRESH),
        MADE("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", rank_by_tol,
             TRAIT_FRESH),
        MADE("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
             pinv_by_rcond_tensor, TRAIT_FRESH),
        MADE("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
             rank_by_tol_tensor, TRAIT_FRESH),
};
OP_FILE(linalg_names_ops);
