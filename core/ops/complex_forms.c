// SPDX-License-Identifier: Apache-2.0
// complex_forms.c: a linear operator works on real and imaginary parts separately; a product of two
// is four products of parts; norms are those of the absolute values.
#include "core/ops/complex_forms.h"

#include <float.h>
#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/linalg.h"
#include "core/ops/pointwise.h"

static bool is_complex(Value value)
{
        return value.kind == VALUE_TENSOR && point_is_complex(value.tensor->meta.dtype);
}

// Forms that compute with the parts of the first argument: if only another one were complex, the
// row would come back to its form without end.
static Status check_first(const OpCall *call)
{
        if (is_complex(call->args[SELF]))
                return STATUS_OK;
        return fail(STATUS_DTYPE, "%s: '%s' is real, other tensors are complex", call->schema->name,
                    call->schema->args[SELF].name);
}

// The name of the functional row, which an in-place call's parts go to.
static const char *row_name(const OpDef *op, char *out, size_t n_out)
{
        size_t n = strcspn(op->schema, "(");
        snprintf(out, n_out, "%.*s", (int)n, op->schema);
        return out;
}

static Value emit_row(Compose *c, const Value *args)
{
        char name[80];
        const Overload *overload = op_find(row_name(c->call->op, name, sizeof(name)));
        Value made = value_none();
        if (!compose_failed(c))
                compose_check(c, overload == NULL ? fail(STATUS_INTERNAL, "no operator %s", name)
                                                  : emit(c->emitter, overload, args, c->call->given, &made));
        return compose_failed(c) ? value_none() : compose_keep(c, made);
}

// ---- linear operators ----
// The call's arguments with `part` of all complex tensors. What has an effect on both must be real.
static Value on_part(Compose *c, const Value *args, const char *part)
{
        const OpCall *call = c->call;
        Value parts[SCHEMA_MAX_ARGS];
        for (uint32_t i = 0; i < call->n_args; i++) {
                parts[i] = args[i];
                if (args[i].kind == VALUE_TENSOR && dtype_is_float(args[i].tensor->meta.dtype))
                        compose_check(c, fail(STATUS_DTYPE, "%s: '%s' is real, other tensors are complex",
                                              call->schema->name, call->schema->args[i].name));
                if (args[i].kind == VALUE_COMPLEX)
                        compose_check(c,
                                      fail(STATUS_DTYPE, "%s of complex numbers takes no complex '%s' here",
                                           call->schema->name, call->schema->args[i].name));
                if (is_complex(args[i]))
                        parts[i] = OP(c, part, args[i]);
        }
        return emit_row(c, parts);
}

// The call's arguments; the dtype of the result, if given, is the operand's: the cast comes first.
static void cast_first(Compose *c, Value *args)
{
        const OpCall *call = c->call;
        compose_check(c, check_first(call));
        memcpy(args, call->args, call->n_args * sizeof(*args));
        for (uint32_t i = 1; i < call->n_args; i++) {
                if (args[i].kind != VALUE_DTYPE)
                        continue;
                if (call->inplace && args[i].dtype != args[SELF].tensor->meta.dtype)
                        compose_check(c, fail(STATUS_DTYPE,
                                              "Bad in-place call: input tensor dtype %s and output tensor "
                                              "dtype %s should match",
                                              dtype_c_name(args[SELF].tensor->meta.dtype),
                                              dtype_c_name(args[i].dtype)));
                args[SELF] = compose_cast(c, args[SELF], args[i].dtype);
                if (point_is_complex(args[i].dtype)) // of the parts it would be another one
                        args[i] = value_none();
        }
}

static Status linear_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value args[SCHEMA_MAX_ARGS];
        compose_begin(&c, emitter, call);
        cast_first(&c, args);
        if (!compose_failed(&c) && !is_complex(args[SELF]))
                return compose_end(&c, emit_row(&c, args), out);
        Value real = on_part(&c, args, "aten::real"), imag = on_part(&c, args, "aten::imag");
        return compose_end(&c, OP(&c, "aten::complex", real, imag), out);
}

// PyTorch divides the sum by a complex number: an infinite part makes the other one NaN.
static Status mean_form(Emitter *emitter, const OpCall *call, Value *out)
{
        const bool all = call->schema->n_args == 2; // self, dtype
        Compose c;
        compose_begin(&c, emitter, call);
        Value self = call->args[SELF], dtype = NAMED(&c, "dtype");
        if (dtype.kind == VALUE_DTYPE && !dtype_is_float(dtype.dtype) && !point_is_complex(dtype.dtype))
                return fail_mean_dtype("mean", true, dtype.dtype);
        Value sum =
                all ? OP(&c, "aten::sum", self, dtype)
                    : OP(&c, "aten::sum.dim_IntList", self, NAMED(&c, "dim"), NAMED(&c, "keepdim"), dtype);
        const int64_t n_in = meta_numel(&self.tensor->meta), n_out = meta_numel(compose_meta(&c, sum));
        return compose_end(&c, OP(&c, "aten::div.Scalar", sum, value_int(n_out == 0 ? 1 : n_in / n_out)),
                           out);
}

// dtype= leaves the imaginary parts out. Without it PyTorch has no kernel.
static Status softmax_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value args[SCHEMA_MAX_ARGS];
        memcpy(args, call->args, call->n_args * sizeof(*args));
        Dtype dtype = arg_dtype(call, SOFTMAX_INT_DTYPE, args[SELF].tensor->meta.dtype);
        if ((DTYPES_COMPLEX & DTYPE_BIT(dtype)) != 0)
                return fail(STATUS_DTYPE, "\"softmax_lastdim_kernel_impl\" not implemented for '%s'",
                            dtype_words(dtype));
        args[SELF] = compose_cast(&c, args[SELF], dtype);
        return compose_end(&c, emit_row(&c, args), out);
}

// ---- products of elements ----
static Value running_products(Compose *c, Value x, int64_t dim, bool single)
{
        Value pairs = OP(c, "aten::view_as_real", OP(c, "aten::resolve_conj", x));
        pairs = OP(c, "fxserve::pair_products", pairs, value_int(dim), value_bool(single));
        return OP(c, "aten::view_as_complex", pairs);
}

static Status cumprod_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value args[SCHEMA_MAX_ARGS];
        compose_begin(&c, emitter, call);
        cast_first(&c, args);
        if (!compose_failed(&c) && !is_complex(args[SELF]))
                return compose_end(&c, emit_row(&c, args), out);
        const int rank = compose_meta(&c, args[SELF])->rank, dim = compose_dim(&c, "dim", rank);
        if (rank == 0) // 1 * x could be NaN
                return compose_end(&c, OP(&c, "aten::clone", args[SELF]), out);
        return compose_end(&c, running_products(&c, args[SELF], dim, false), out);
}

// The last of the running products; of nothing it is 1.
static Status prod_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value args[SCHEMA_MAX_ARGS];
        compose_begin(&c, emitter, call);
        cast_first(&c, args);
        if (!compose_failed(&c) && !is_complex(args[SELF]))
                return compose_end(&c, emit_row(&c, args), out);
        const bool all = call->schema->n_args == 2; // self, dtype
        Value x = all ? OP(&c, "aten::reshape", args[SELF], INTS(&c, -1)) : args[SELF];
        const TensorMeta meta = *compose_meta(&c, x);
        const int dim = all ? 0 : compose_dim(&c, "dim", meta.rank);
        Value keepdim = value_bool(!all && compose_bool(&c, "keepdim"));
        if (meta.rank == 0)
                return compose_end(&c, OP(&c, "aten::clone", x), out);
        if (meta.size[dim] == 0)
                return compose_end(
                        &c,
                        OP(&c, "aten::ones_like", OP(&c, "aten::sum.dim_IntList", x, INTS(&c, dim), keepdim)),
                        out);
        x = running_products(&c, x, dim, true);
        Value last = value_int(meta.size[dim] - 1);
        x = keepdim.b ? OP(&c, "aten::narrow", x, value_int(dim), last, value_int(1))
                      : OP(&c, "aten::select.int", x, value_int(dim), last);
        Value format = { .kind = VALUE_MEMORY_FORMAT, .memory_format = MEMORY_FORMAT_CONTIGUOUS };
        return compose_end(&c, OP(&c, "aten::clone", x, format), out);
}

// ---- products ----
static Value four_products(Compose *c, const char *name, Value a, Value b)
{
        if (!compose_failed(c) && compose_meta(c, a)->dtype != compose_meta(c, b)->dtype)
                compose_check(c, fail(STATUS_DTYPE,
                                      "expected m1 and m2 to have the same dtype, but got: %s != %s",
                                      dtype_c_name(compose_meta(c, a)->dtype),
                                      dtype_c_name(compose_meta(c, b)->dtype)));
        if (compose_failed(c))
                return value_none();
        Value ar = OP(c, "aten::real", a), ai = OP(c, "aten::imag", a), br = OP(c, "aten::real", b),
              bi = OP(c, "aten::imag", b);
        Value real = OP(c, "aten::sub.Tensor", OP(c, name, ar, br), OP(c, name, ai, bi));
        Value imag = OP(c, "aten::add.Tensor", OP(c, name, ar, bi), OP(c, name, ai, br));
        return OP(c, "aten::complex", real, imag);
}

static Status product_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        char name[80];
        compose_begin(&c, emitter, call);
        return compose_end(&c,
                           four_products(&c, row_name(call->op, name, sizeof(name)), call->args[SELF],
                                         call->args[PRODUCT_OTHER]),
                           out);
}

static Status vdot_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value left = OP(&c, "aten::conj_physical", call->args[SELF]);
        return compose_end(&c, four_products(&c, "aten::dot", left, call->args[PRODUCT_OTHER]), out);
}

static Status linear_layer_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value product = four_products(&c, "aten::linear", NAMED(&c, "input"), NAMED(&c, "weight"));
        if (compose_has(&c, "bias"))
                product = OP(&c, "aten::add.Tensor", product, NAMED(&c, "bias"));
        return compose_end(&c, product, out);
}

static bool is_number(Value value, int number)
{
        return (value.kind == VALUE_INT && value.i == number) ||
               (value.kind == VALUE_FLOAT && value.f == number);
}

// A factor of 1 leaves infinite parts what they are, as in BLAS.
static Value scaled(Compose *c, Value x, Value factor)
{
        return is_number(factor, 1) ? x : OP(c, "aten::mul.Scalar", x, factor);
}

// beta self + alpha product; self does not count where beta is 0.
static Value added(Compose *c, Value product)
{
        Value sum = scaled(c, product, NAMED(c, "alpha")), beta = NAMED(c, "beta");
        return is_number(beta, 0) ? sum
                                  : OP(c, "aten::add.Tensor", sum, scaled(c, c->call->args[SELF], beta));
}

static Status added_product(Emitter *emitter, const OpCall *call, const char *name, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value product = four_products(&c, name, call->args[PRODUCT_LEFT], call->args[PRODUCT_RIGHT]);
        return compose_end(&c, added(&c, product), out);
}

static Status addmm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return added_product(emitter, call, "aten::mm", out);
}

static Status baddbmm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return added_product(emitter, call, "aten::bmm", out);
}

static Status addbmm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value products = four_products(&c, "aten::bmm", NAMED(&c, "batch1"), NAMED(&c, "batch2"));
        return compose_end(&c, added(&c, OP(&c, "aten::sum.dim_IntList", products, INTS(&c, 0))), out);
}

static Status addmv_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return added_product(emitter, call, "aten::mv", out);
}

// ---- convolutions ----
static Status check_conv_types(const OpCall *call)
{
        const Value *input = &call->args[SELF], *weight = &call->args[CONV_WEIGHT],
                    *bias = &call->args[CONV_BIAS];
        const Dtype dtype = input->tensor->meta.dtype;
        if (weight->tensor->meta.dtype != dtype)
                return fail(STATUS_DTYPE, "Input type (%s) and weight type (%s) should be the same",
                            dtype_words(dtype), dtype_words(weight->tensor->meta.dtype));
        if (bias->kind == VALUE_TENSOR && bias->tensor->meta.dtype != dtype)
                return fail(STATUS_DTYPE, "Input type (%s) and bias type (%s) should be the same",
                            dtype_words(dtype), dtype_words(bias->tensor->meta.dtype));
        return STATUS_OK;
}

// The call's row with these operands.
static Value convolved(Compose *c, Value input, Value weight, Value bias)
{
        Value args[SCHEMA_MAX_ARGS];
        memcpy(args, c->call->args, c->call->n_args * sizeof(*args));
        args[SELF] = input;
        args[CONV_WEIGHT] = weight;
        args[CONV_BIAS] = bias;
        return emit_row(c, args);
}

static Value part_sum(Compose *c, Value real, Value imag)
{
        return real.kind == VALUE_TENSOR ? OP(c, "aten::add.Tensor", real, imag) : real;
}

// Three convolutions, as in PyTorch: a of the real parts, b of the imaginary ones, s of the sums of
// both; the result is a - b + i (s - a - b).
static Status conv_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        compose_check(&c, check_conv_types(call));
        Value real[3], imag[3];
        for (int i = 0; i < 3; i++) {
                const Value operand = call->args[SELF + i];
                const bool given = operand.kind == VALUE_TENSOR;
                real[i] = given ? OP(&c, "aten::real", operand) : operand;
                imag[i] = given ? OP(&c, "aten::imag", operand) : operand;
        }
        Value a = convolved(&c, real[0], real[1], real[2]), b = convolved(&c, imag[0], imag[1], value_none()),
              s = convolved(&c, part_sum(&c, real[0], imag[0]), part_sum(&c, real[1], imag[1]),
                            part_sum(&c, real[2], imag[2]));
        const Value i = { .kind = VALUE_COMPLEX, .c = { .re = 0, .im = 1 } };
        Value turned = OP(&c, "aten::sub.Tensor", OP(&c, "aten::sub.Tensor", s, a), b);
        Value sum = OP(&c, "aten::add.Tensor", OP(&c, "aten::sub.Tensor", a, b),
                       OP(&c, "aten::mul.Scalar", turned, i));
        return compose_end(&c, sum, out);
}

// ---- truth, norms ----
static Value with_self(Compose *c, Value self)
{
        Value args[SCHEMA_MAX_ARGS];
        compose_check(c, check_first(c->call));
        memcpy(args, c->call->args, c->call->n_args * sizeof(*args));
        for (uint32_t i = 1; i < c->call->n_args; i++) {
                if (args[i].kind == VALUE_DTYPE || args[i].kind == VALUE_COMPLEX)
                        compose_check(c, fail(STATUS_DTYPE, "%s of complex numbers takes no '%s' here",
                                              c->call->schema->name, c->call->schema->args[i].name));
        }
        args[SELF] = self;
        return emit_row(c, args);
}

static Status truth_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, with_self(&c, OP(&c, "aten::ne.Scalar", call->args[SELF], value_int(0))), out);
}

// dtype= is the operand's, before its absolute values are taken.
static Status norm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value args[SCHEMA_MAX_ARGS];
        compose_check(&c, check_first(call));
        memcpy(args, call->args, call->n_args * sizeof(*args));
        for (uint32_t i = 1; i < call->n_args; i++) {
                if (args[i].kind != VALUE_DTYPE)
                        continue;
                if (!point_is_complex(args[i].dtype))
                        compose_check(&c, fail(STATUS_DTYPE,
                                               "linalg.vector_norm: dtype should be complex for complex "
                                               "inputs, but got %s",
                                               dtype_words(args[i].dtype)));
                else if (args[i].dtype < args[SELF].tensor->meta.dtype)
                        compose_check(&c, fail(STATUS_DTYPE,
                                               "linalg.vector_norm: the dtype of the input (%s) should be "
                                               "convertible without narrowing to the specified dtype (%s)",
                                               dtype_words(args[SELF].tensor->meta.dtype),
                                               dtype_words(args[i].dtype)));
                args[SELF] = compose_cast(&c, args[SELF], args[i].dtype);
                args[i] = value_none();
        }
        args[SELF] = OP(&c, "aten::abs", args[SELF]);
        return compose_end(&c, emit_row(&c, args), out);
}

// The variances of both parts add up.
static Status var_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value real = with_self(&c, OP(&c, "aten::real", call->args[SELF])),
              imag = with_self(&c, OP(&c, "aten::imag", call->args[SELF]));
        return compose_end(&c, OP(&c, "aten::add.Tensor", real, imag), out);
}

static Status std_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value real = with_self(&c, OP(&c, "aten::real", call->args[SELF])),
              imag = with_self(&c, OP(&c, "aten::imag", call->args[SELF]));
        return compose_end(&c, OP(&c, "aten::hypot", real, imag), out);
}

// The row's spreads and means of both parts, which `join` makes one spread of.
static Status spread_mean(Emitter *emitter, const OpCall *call, const char *join, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value real = with_self(&c, OP(&c, "aten::real", call->args[SELF])),
              imag = with_self(&c, OP(&c, "aten::imag", call->args[SELF]));
        Value both[] = { OP(&c, join, compose_item(&c, real, 0), compose_item(&c, imag, 0)),
                         OP(&c, "aten::complex", compose_item(&c, real, 1), compose_item(&c, imag, 1)) };
        return compose_end(&c, compose_tuple(&c, both, 2), out);
}

static Status var_mean_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return spread_mean(emitter, call, "aten::add.Tensor", out);
}

static Status std_mean_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return spread_mean(emitter, call, "aten::hypot", out);
}

// log sum exp(x - m) + m, where m is the largest real part.
static Status logsumexp_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = call->args[SELF], dim = NAMED(&c, "dim"), keepdim = NAMED(&c, "keepdim");
        if (meta_numel(&x.tensor->meta) == 0)
                return compose_end(&c, OP(&c, "aten::log", OP(&c, "aten::sum.dim_IntList", x, dim, keepdim)),
                                   out);
        Value top = OP(&c, "aten::amax", OP(&c, "aten::real", x), dim, value_bool(true));
        top = OP(&c, "aten::masked_fill.Scalar", top, OP(&c, "aten::isinf", top), value_int(0));
        Value powers = OP(&c, "aten::exp", OP(&c, "aten::sub.Tensor", x, top));
        Value sum = OP(&c, "aten::sum.dim_IntList", powers, dim, keepdim);
        if (!compose_bool(&c, "keepdim")) // of one element each
                top = OP(&c, "aten::sum.dim_IntList", top, dim, keepdim);
        return compose_end(&c, OP(&c, "aten::add.Tensor", OP(&c, "aten::log", sum), top), out);
}

// x / sqrt(mean(x^2) + eps): squares of the numbers, not of their absolute values.
static Status rms_norm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = call->args[SELF];
        if (!is_complex(x))
                return fail(STATUS_DTYPE, "rms_norm: 'input' is real, 'weight' is complex");
        const TensorMeta *meta = &x.tensor->meta;
        int64_t size[MAX_RANK], dims[MAX_RANK];
        const int n = compose_int_list(&c, "normalized_shape", size);
        bool fits = n > 0 && n <= meta->rank;
        for (int k = 0; fits && k < n; k++) {
                dims[k] = meta->rank - n + k;
                fits = size[k] == meta->size[dims[k]];
        }
        if (!fits)
                compose_check(&c,
                              fail(STATUS_SHAPE, "rms_norm: the input does not end with normalized_shape"));
        const double least = meta->dtype == DTYPE_C64 ? FLT_EPSILON : DBL_EPSILON;
        const double eps = compose_has(&c, "eps") ? compose_double(&c, "eps") : least;
        Value mean = OP(&c, "aten::mean.dim", OP(&c, "aten::pow.Tensor_Scalar", x, value_int(2)),
                        compose_ints(&c, dims, n), value_bool(true));
        Value scale = OP(&c, "aten::rsqrt", OP(&c, "aten::add.Scalar", mean, value_float(eps)));
        Value made = OP(&c, "aten::mul.Tensor", x, scale);
        if (compose_has(&c, "weight"))
                made = OP(&c, "aten::mul.Tensor", made, NAMED(&c, "weight"));
        return compose_end(&c, made, out);
}

// Pools to one element are means; PyTorch has no others.
static Status adaptive_form(Emitter *emitter, const OpCall *call, Value *out)
{
        static const int64_t last[] = { -1, -2, -3 };
        Compose c;
        compose_begin(&c, emitter, call);
        Value x = call->args[SELF];
        const TensorMeta *meta = &x.tensor->meta;
        int64_t size[MAX_RANK];
        const int n = compose_int_list(&c, "output_size", size),
                  n_dims = call->schema->name[strlen("adaptive_avg_pool")] - '0';
        bool is_one = n == n_dims;
        for (int k = 0; k < n && is_one; k++)
                is_one = size[k] == 1;
        if (!is_one)
                compose_check(&c, fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'", call->schema->name,
                                       dtype_words(meta->dtype)));
        if (n_dims == 1 && meta->rank != 2 && meta->rank != 3)
                compose_check(&c, fail(STATUS_SHAPE,
                                       "adaptive_avg_pool1d: Expected 2 to 3 dimensions, but got "
                                       "%d-dimensional tensor",
                                       meta->rank));
        return compose_end(
                &c, OP(&c, "aten::mean.dim", x, compose_ints(&c, last, MIN(n_dims, 3)), value_bool(true)),
                out);
}

// ---- spectra ----
Value complex_doubled(Compose *c, Value real, Value imag)
{
        Value top[] = { real, OP(c, "aten::neg", imag) }, bottom[] = { imag, real };
        Value rows[] = { OP(c, "aten::cat", compose_list(c, top, 2), value_int(-1)),
                         OP(c, "aten::cat", compose_list(c, bottom, 2), value_int(-1)) };
        return OP(c, "aten::cat", compose_list(c, rows, 2), value_int(-2));
}

// Values in order, of which each stands twice.
static Value every_second(Compose *c, Value values)
{
        return OP(c, "aten::clone",
                  OP(c, "aten::slice.Tensor", values, value_int(-1), value_int(0), value_int(INT64_MAX),
                     value_int(2)));
}

static Status refuse_vectors(const OpCall *call)
{
        return fail(STATUS_UNSUPPORTED, "%s: vectors of complex matrices are not supported, only values",
                    call->schema->name);
}

static Status svd_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = call->args[SELF], none = value_bool(false);
        TRY(linalg_matrix(&a.tensor->meta, "linalg.svd"));
        if (compose_bool(&c, "compute_uv"))
                return refuse_vectors(call);
        Value all = OP(&c, "aten::_linalg_svd",
                       complex_doubled(&c, OP(&c, "aten::real", a), OP(&c, "aten::imag", a)), none, none);
        Value empty = OP(&c, "aten::new_empty", a, INTS(&c, 0));
        Value items[] = { empty, every_second(&c, compose_item(&c, all, 1)),
                          OP(&c, "aten::new_empty", a, INTS(&c, 0)) };
        return compose_end(&c, compose_tuple(&c, items, 3), out);
}

Value complex_hermitian(Compose *c, Value a, bool upper)
{
        Value low = OP(c, "aten::tril", upper ? OP(c, "aten::mH", a) : a, value_int(-1));
        Value real = OP(c, "aten::real", low), imag = OP(c, "aten::imag", low);
        Value diagonal =
                OP(c, "aten::diagonal", OP(c, "aten::real", a), value_int(0), value_int(-2), value_int(-1));
        real = OP(c, "aten::add.Tensor", OP(c, "aten::add.Tensor", real, OP(c, "aten::mT", real)),
                  OP(c, "aten::diag_embed", diagonal));
        imag = OP(c, "aten::sub.Tensor", imag, OP(c, "aten::mT", imag));
        return complex_doubled(c, real, imag);
}

static Status eigh_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = call->args[SELF];
        TRY(linalg_square(&a.tensor->meta, "linalg.eigh"));
        const char *half = arg_text(call, EIGH_UPLO);
        const bool values_only = call->schema->n_returns == 1;
        if (!values_only && compose_bool(&c, "compute_v"))
                return refuse_vectors(call);
        Value twice = complex_hermitian(&c, a, half[0] == 'U' || half[0] == 'u');
        // The doubled matrix is symmetric: the name of its half is passed on to be checked.
        Value values = OP(&c, "aten::linalg_eigvalsh", twice, NAMED(&c, "UPLO"));
        Value items[] = { every_second(&c, values), OP(&c, "aten::new_empty", a, INTS(&c, 0)) };
        return values_only ? compose_end(&c, items[0], out)
                           : compose_end(&c, compose_tuple(&c, items, 2), out);
}

// ---- the table ----
static const struct {
        const char *row;
        OpExpand form;
} forms[] = {
        { "aten::sum", linear_form },
        { "aten::sum.dim_IntList", linear_form },
        { "aten::mean", mean_form },
        { "aten::mean.dim", mean_form },
        { "aten::cumsum", linear_form },
        { "aten::prod", prod_form },
        { "aten::prod.dim_int", prod_form },
        { "aten::cumprod", cumprod_form },
        { "aten::index_add", linear_form },
        { "aten::index_put", linear_form },
        { "aten::_unsafe_index_put", linear_form },
        { "aten::scatter_add", linear_form },
        { "aten::softmax.int", softmax_form },
        { "aten::log_softmax.int", softmax_form },
        { "aten::im2col", linear_form },
        { "aten::col2im", linear_form },
        { "aten::mm", product_form },
        { "aten::bmm", product_form },
        { "aten::mv", product_form },
        { "aten::dot", product_form },
        { "aten::matmul", product_form },
        { "aten::vdot", vdot_form },
        { "aten::linear", linear_layer_form },
        { "aten::addmm", addmm_form },
        { "aten::baddbmm", baddbmm_form },
        { "aten::addmv", addmv_form },
        { "aten::addbmm", addbmm_form },
        { "aten::conv1d", conv_form },
        { "aten::conv1d.padding", conv_form },
        { "aten::conv2d", conv_form },
        { "aten::conv2d.padding", conv_form },
        { "aten::conv3d", conv_form },
        { "aten::conv3d.padding", conv_form },
        { "aten::conv_transpose1d", conv_form },
        { "aten::conv_transpose2d.input", conv_form },
        { "aten::conv_transpose3d.input", conv_form },
        { "aten::all", truth_form },
        { "aten::all.dim", truth_form },
        { "aten::all.dims", truth_form },
        { "aten::any", truth_form },
        { "aten::any.dim", truth_form },
        { "aten::any.dims", truth_form },
        { "aten::count_nonzero", truth_form },
        { "aten::count_nonzero.dim_IntList", truth_form },
        { "aten::linalg_vector_norm", norm_form },
        { "aten::norm.Scalar", norm_form },
        { "aten::norm.ScalarOpt_dim", norm_form },
        { "aten::var", var_form },
        { "aten::var.dim", var_form },
        { "aten::var.correction", var_form },
        { "aten::std", std_form },
        { "aten::std.dim", std_form },
        { "aten::std.correction", std_form },
        { "aten::var_mean", var_mean_form },
        { "aten::var_mean.dim", var_mean_form },
        { "aten::var_mean.correction", var_mean_form },
        { "aten::std_mean", std_mean_form },
        { "aten::std_mean.dim", std_mean_form },
        { "aten::std_mean.correction", std_mean_form },
        { "aten::logsumexp", logsumexp_form },
        { "aten::rms_norm", rms_norm_form },
        { "aten::adaptive_avg_pool1d", adaptive_form },
        { "aten::adaptive_avg_pool2d", adaptive_form },
        { "aten::adaptive_avg_pool3d", adaptive_form },
        { "aten::_linalg_svd", svd_form },
        { "aten::_linalg_eigh", eigh_form },
        { "aten::linalg_eigvalsh", eigh_form },
};

static bool has_complex(const OpCall *call)
{
        for (uint32_t i = 0; i < call->n_args; i++) {
                if (is_complex(call->args[i]))
                        return true;
        }
        return false;
}

OpExpand complex_form_of(const OpDef *op)
{
        char name[80];
        row_name(op, name, sizeof(name));
        for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
                if (strcmp(forms[i].row, name) == 0)
                        return forms[i].form;
        }
        return NULL;
}

OpExpand complex_form(const OpCall *call)
{
        DtypeSet taken = call->op->dtypes;
        bool real_only = taken != 0 && (taken & DTYPES_COMPLEX) == 0;
        return real_only && has_complex(call) ? complex_form_of(call->op) : NULL;
}
