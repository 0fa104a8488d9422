// SPDX-License-Identifier: Apache-2.0
// samples.c: quantiles, covariances, combinations and powers of samples, after PyTorch's own
// definitions, step by step.
#include "core/ops/compose.h"
#include "core/ops/pointwise.h"
#include <string.h>

// ---- quantile, nanquantile ----
static Value shares_of(Compose *c, Dtype dtype)
{
        Value q = NAMED(c, "q");
        const bool is_tensor = q.kind == VALUE_TENSOR;
        const TensorMeta *meta = is_tensor ? compose_meta(c, q) : NULL;
        if (is_tensor && meta->rank > 1)
                compose_check(c, fail(STATUS_SHAPE, "%s() q must be a scalar or 1D tensor", c->name));
        else if (is_tensor && meta->dtype != dtype)
                compose_check(c, fail(STATUS_DTYPE, "%s() q tensor must be same dtype as the input tensor",
                                      c->name));
        else if (!is_tensor && !(compose_double(c, "q") >= 0 && compose_double(c, "q") <= 1))
                compose_check(c, fail(STATUS_VALUE, "%s() q must be in the range [0, 1] but got %g", c->name,
                                      compose_double(c, "q")));
        if (!is_tensor)
                return OP(c, "aten::full", compose_ints(c, NULL, 0), value_float(compose_double(c, "q")),
                          value_dtype(dtype));
        Value inside = OP(c, "aten::logical_and", OP(c, "aten::ge.Scalar", q, value_int(0)),
                          OP(c, "aten::le.Scalar", q, value_int(1)));
        OP(c, "aten::_assert_async.msg", OP(c, "aten::all", inside),
           compose_text(c, "quantile() q values must be in the range [0, 1]"));
        return q;
}

// The rows whose quantiles are wanted, sorted along the last dimension; the dimension that they
// came from stays with size 1.
static Value sorted_rows(Compose *c, int dim)
{
        Value self = NAMED(c, "self");
        if (!compose_has(c, "dim"))
                self = OP(c, "aten::flatten.using_ints", self);
        else if (compose_meta(c, self)->rank > 0)
                self = OP(c, "aten::transpose.int", OP(c, "aten::unsqueeze", self, value_int(-1)),
                          value_int(dim), value_int(-1));
        else
                self = OP(c, "aten::unsqueeze", self, value_int(-1));
        return compose_item(c, OP(c, "aten::sort", self), 0);
}

static Value ranks_of(Compose *c, Value sorted, Value q, bool ignores_nan)
{
        const TensorMeta *meta = compose_meta(c, sorted);
        const int64_t last = meta->rank > 0 ? meta->size[meta->rank - 1] - 1 : 0;
        Value broken = OP(c, "aten::isnan", sorted), end = INTS(c, -1);
        if (ignores_nan) {
                Value n = OP(c, "aten::sum.dim_IntList", OP(c, "aten::logical_not", broken), end,
                             value_bool(true));
                Value rank = OP(c, "aten::mul.Tensor", q, OP(c, "aten::sub.Scalar", n, value_int(1)));
                return OP(c, "aten::masked_fill.Scalar", rank, OP(c, "aten::lt.Scalar", rank, value_int(0)),
                          value_int(0));
        }
        Value rank = OP(c, "aten::mul.Scalar", q, value_int(last));
        Value some = OP(c, "aten::any.dim", broken, value_int(-1), value_bool(true));
        return OP(c, "aten::masked_fill.Scalar", rank, some, value_int(last));
}

static Value interpolated(Compose *c, Value sorted, Value rank)
{
        const char *how = NAMED(c, "interpolation").str->text;
        const bool middle = strcmp(how, "midpoint") == 0;
        if (strcmp(how, "lower") == 0)
                rank = OP(c, "aten::floor", rank);
        else if (strcmp(how, "higher") == 0)
                rank = OP(c, "aten::ceil", rank);
        else if (strcmp(how, "nearest") == 0)
                rank = OP(c, "aten::round", rank);
        else if (strcmp(how, "linear") != 0 && !middle)
                compose_check(c, fail(STATUS_VALUE,
                                      "%s() interpolation must be one of linear, lower, higher, midpoint or "
                                      "nearest, but got %s",
                                      c->name, how));
        Value below = compose_cast(c, rank, DTYPE_I64);
        Value low = OP(c, "aten::gather", sorted, value_int(-1), below);
        if (strcmp(how, "linear") != 0 && !middle)
                return low;
        Value weight = middle ? OP(c, "aten::full_like", rank, value_float(0.5))
                              : OP(c, "aten::sub.Tensor", rank, below);
        Value above = compose_cast(c, OP(c, "aten::ceil", rank), DTYPE_I64);
        return OP(c, "aten::lerp.Tensor", low, OP(c, "aten::gather", sorted, value_int(-1), above), weight);
}

static Status quantile_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const TensorMeta meta = *compose_meta(&c, NAMED(&c, "self"));
        if (meta_numel(&meta) == 0)
                compose_check(&c, fail(STATUS_SHAPE, "%s() input tensor must be non-empty", c.name));
        if (meta.dtype != DTYPE_F32 && meta.dtype != DTYPE_F64)
                compose_check(&c, fail(STATUS_DTYPE, "%s() input tensor must be either float or double dtype",
                                       c.name));
        const bool one_dim = compose_has(&c, "dim"), keeps = compose_bool(&c, "keepdim");
        const int dim = one_dim ? compose_dim(&c, "dim", meta.rank) : 0;
        Value q = shares_of(&c, meta.dtype), row = OP(&c, "aten::reshape", q, INTS(&c, -1));
        Value sorted = sorted_rows(&c, dim);
        Value x = interpolated(&c, sorted,
                               ranks_of(&c, sorted, row, strcmp(call->schema->name, "nanquantile") == 0));
        int64_t size[MAX_RANK + 1];
        int rank = 0;
        if (compose_meta(&c, q)->rank == 1) {
                x = OP(&c, "aten::movedim.int", x, value_int(-1), value_int(0));
                size[rank++] = compose_meta(&c, q)->size[0];
        }
        for (int d = 0; d < meta.rank; d++) {
                const bool reduced = !one_dim || d == dim;
                if (!reduced || keeps)
                        size[rank++] = reduced ? 1 : meta.size[d];
        }
        if (rank > MAX_RANK)
                compose_check(&c, fail(STATUS_SHAPE, "%s: too many dimensions", c.name));
        return compose_end(
                &c, OP(&c, "aten::reshape", x, compose_ints(&c, size, compose_failed(&c) ? 0 : rank)), out);
}

// ---- cov, corrcoef ----
static Value weights_of(Compose *c, int64_t n)
{
        static const char *const names[] = { "fweights", "aweights" };
        Value weights = value_none();
        for (int i = 0; i < 2; i++) {
                if (!compose_has(c, names[i]))
                        continue;
                Value given = NAMED(c, names[i]);
                const TensorMeta *meta = compose_meta(c, given);
                const bool floats = dtype_is_float(meta->dtype);
                if (meta->rank > 1 || meta_numel(meta) != n || floats != (i == 1))
                        compose_check(c, fail(STATUS_VALUE,
                                              "cov(): expected %s to be %s, one for each of %ld observations",
                                              names[i], i == 0 ? "integers" : "floats", (long)n));
                Value fine = OP(c, "aten::all", OP(c, "aten::ge.Scalar", given, value_int(0)));
                OP(c, "aten::_assert_async.msg", fine,
                   compose_text(c, i == 0 ? "cov(): fweights cannot be negative"
                                          : "cov(): aweights cannot be negative"));
                weights = weights.kind == VALUE_NONE ? given : OP(c, "aten::mul.Tensor", weights, given);
        }
        return weights;
}

static Status cov_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        const TensorMeta meta = *compose_meta(&c, x);
        if (meta.rank > 2 || meta.dtype == DTYPE_BOOL)
                compose_check(&c, fail(STATUS_SHAPE,
                                       "cov(): expected numbers of two or fewer dimensions but "
                                       "got %s of %d",
                                       dtype_words(meta.dtype), meta.rank));
        if (meta.rank < 2)
                x = OP(&c, "aten::reshape", x, INTS(&c, 1, -1));
        const int64_t n = meta.rank == 0 ? 1 : meta.size[MAX(meta.rank, 1) - 1];
        Value weights = weights_of(&c, n), correction = value_int(compose_int(&c, "correction"));
        const bool weighted = weights.kind != VALUE_NONE;
        Value total = weighted ? OP(&c, "aten::sum", weights)
                               : OP(&c, "aten::full", compose_ints(&c, NULL, 0), value_int(n),
                                    value_dtype(DTYPE_I64));
        if (weighted)
                OP(&c, "aten::_assert_async.msg", OP(&c, "aten::ne.Scalar", total, value_int(0)),
                   compose_text(&c, "cov(): weights sum to zero, can't be normalized"));
        Value mean = OP(&c, "aten::sum.dim_IntList", weighted ? OP(&c, "aten::mul.Tensor", x, weights) : x,
                        INTS(&c, 1));
        mean = OP(&c, "aten::div.Tensor", mean, total);
        Value norm = OP(&c, "aten::sub.Scalar", total, correction);
        if (compose_has(&c, "aweights") && correction.i != 0) {
                Value more = OP(&c, "aten::sum", OP(&c, "aten::mul.Tensor", weights, NAMED(&c, "aweights")));
                more = OP(&c, "aten::div.Tensor", OP(&c, "aten::mul.Scalar", more, correction), total);
                norm = OP(&c, "aten::sub.Tensor", total, more);
        }
        x = OP(&c, "aten::sub.Tensor", x, OP(&c, "aten::unsqueeze", mean, value_int(1)));
        Value other = weighted ? OP(&c, "aten::mul.Tensor", x, weights) : x;
        Value product = OP(&c, "aten::mm", x, OP(&c, "aten::conj", OP(&c, "aten::t", other)));
        norm = OP(&c, "aten::clamp_min", norm, value_int(0));
        return compose_end(&c, OP(&c, "aten::squeeze", OP(&c, "aten::div.Tensor", product, norm)), out);
}

static Status corrcoef_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value cov = OP(&c, "aten::cov", NAMED(&c, "self"));
        if (compose_meta(&c, cov)->rank == 0)
                return compose_end(&c, OP(&c, "aten::div.Tensor", cov, cov), out);
        Value spread = OP(&c, "aten::sqrt", OP(&c, "aten::real", OP(&c, "aten::diagonal", cov)));
        cov = OP(&c, "aten::div.Tensor", cov, OP(&c, "aten::unsqueeze", spread, value_int(1)));
        cov = OP(&c, "aten::div.Tensor", cov, OP(&c, "aten::unsqueeze", spread, value_int(0)));
        const Value low = value_int(-1), high = value_int(1);
        if (compose_failed(&c) || !point_is_complex(compose_meta(&c, cov)->dtype))
                return compose_end(&c, OP(&c, "aten::clamp", cov, low, high), out);
        Value real = OP(&c, "aten::clamp", OP(&c, "aten::real", cov), low, high),
              imag = OP(&c, "aten::clamp", OP(&c, "aten::imag", cov), low, high);
        return compose_end(&c, OP(&c, "aten::complex", real, imag), out);
}

// ---- combinations, vander ----
static Status combinations_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "self");
        const TensorMeta meta = *compose_meta(&c, x);
        const int64_t r = compose_int(&c, "r"), n = meta.rank == 1 ? meta.size[0] : 0;
        if (meta.rank != 1)
                compose_check(&c, fail(STATUS_SHAPE, "Expect a 1D vector, but got shape of %d dimensions",
                                       meta.rank));
        if (r < 0)
                compose_check(&c, fail(STATUS_VALUE, "Expect a non-negative number, but got %ld", (long)r));
        else if (r > 2)
                compose_check(&c,
                              fail(STATUS_UNSUPPORTED, "combinations of more than two are not supported"));
        if (r == 0)
                return compose_end(&c, OP(&c, "aten::new_empty", x, INTS(&c, 0)), out);
        if (r == 1)
                return compose_end(&c, OP(&c, "aten::clone", OP(&c, "aten::unsqueeze", x, value_int(1))),
                                   out);
        const int64_t first = compose_bool(&c, "with_replacement") ? 0 : 1;
        Value pairs = OP(&c, "aten::triu_indices", value_int(n), value_int(n), value_int(first));
        Value columns[2];
        for (int i = 0; i < 2; i++)
                columns[i] = OP(&c, "aten::index_select", x, value_int(0),
                                OP(&c, "aten::select.int", pairs, value_int(0), value_int(i)));
        return compose_end(&c, OP(&c, "aten::stack", compose_list(&c, columns, 2), value_int(1)), out);
}

static Status vander_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = NAMED(&c, "x");
        const TensorMeta meta = *compose_meta(&c, x);
        if (meta.rank != 1)
                compose_check(&c, fail(STATUS_SHAPE, "x must be a one-dimensional tensor."));
        const int64_t rows = meta.rank == 1 ? meta.size[0] : 0;
        const int64_t n = compose_has(&c, "N") ? compose_int(&c, "N") : rows;
        if (n < 0)
                compose_check(&c, fail(STATUS_VALUE, "N must be non-negative."));
        const Dtype dtype = (DTYPES_INTS | DTYPES_BOOL) >> meta.dtype & 1 ? DTYPE_I64 : meta.dtype;
        x = compose_cast(&c, x, dtype);
        Value powers = OP(&c, "aten::new_ones", x, INTS(&c, rows, MIN(n, 1)));
        if (n > 1) {
                Value each = OP(&c, "aten::expand", OP(&c, "aten::unsqueeze", x, value_int(1)),
                                INTS(&c, rows, n - 1));
                const Value both[] = { powers, OP(&c, "aten::cumprod", each, value_int(1)) };
                powers = OP(&c, "aten::cat", compose_list(&c, both, 2), value_int(1));
        }
        if (!compose_bool(&c, "increasing"))
                powers = OP(&c, "aten::flip", powers, INTS(&c, 1));
        return compose_end(&c, powers, out);
}

#define COMPOSED(text, dtypes_, how)                                                                         \
        {                                                                                                    \
                "aten::" text, dtypes_, .expand = how, .traits = TRAIT_FRESH                                 \
        }
#define QUANTILE(name)                                                                                       \
        COMPOSED(name "(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "                   \
                      "interpolation='linear') -> Tensor",                                                   \
                 0, quantile_expand),                                                                        \
                COMPOSED(name ".scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "     \
                              "interpolation='linear') -> Tensor",                                           \
                         0, quantile_expand)
const OpDef samples_ops[] = {
        QUANTILE("quantile"),
        QUANTILE("nanquantile"),
        COMPOSED("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
                 "Tensor",
                 DTYPES_REAL | DTYPES_COMPLEX, cov_expand),
        COMPOSED("corrcoef(Tensor self) -> Tensor", DTYPES_REAL | DTYPES_COMPLEX, corrcoef_expand),
        COMPOSED("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", 0,
                 combinations_expand),
        COMPOSED("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
                 DTYPES_REAL | DTYPES_COMPLEX, vander_expand),
};
OP_FILE(samples_ops);
