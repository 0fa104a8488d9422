// SPDX-License-Identifier: Apache-2.0
// complex_forms.c: a linear operator works on real and imaginary parts separately; a product of two
// is four products of parts; norms are those of the absolute values.
#include "core/ops/complex_forms.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/compose.h"
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

// The result's dtype is the operand's: the cast comes first.
static Status linear_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        Value args[SCHEMA_MAX_ARGS];
        compose_begin(&c, emitter, call);
        compose_check(&c, check_first(call));
        memcpy(args, call->args, call->n_args * sizeof(*args));
        for (uint32_t i = 1; i < call->n_args; i++) {
                if (args[i].kind != VALUE_DTYPE)
                        continue;
                if (call->inplace && args[i].dtype != args[SELF].tensor->meta.dtype)
                        compose_check(&c, fail(STATUS_DTYPE,
                                               "Bad in-place call: input tensor dtype %s and output tensor "
                                               "dtype %s should match",
                                               dtype_c_name(args[SELF].tensor->meta.dtype),
                                               dtype_c_name(args[i].dtype)));
                args[SELF] = compose_cast(&c, args[SELF], args[i].dtype);
                args[i] = value_none();
        }
        if (!compose_failed(&c) && !is_complex(args[SELF]))
                return compose_end(&c, emit_row(&c, args), out);
        Value real = on_part(&c, args, "aten::real"), imag = on_part(&c, args, "aten::imag");
        return compose_end(&c, OP(&c, "aten::complex", real, imag), out);
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

// beta self + alpha (a b); self does not count where beta is 0.
static Status added_product(Emitter *emitter, const OpCall *call, const char *name, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value alpha = NAMED(&c, "alpha"), beta = NAMED(&c, "beta");
        Value sum = four_products(&c, name, call->args[PRODUCT_LEFT], call->args[PRODUCT_RIGHT]);
        bool plain = alpha.kind == VALUE_INT && alpha.i == 1;
        if (!plain)
                sum = OP(&c, "aten::mul.Scalar", sum, alpha);
        if (!((beta.kind == VALUE_INT && beta.i == 0) || (beta.kind == VALUE_FLOAT && beta.f == 0)))
                sum = OP(&c, "aten::add.Tensor", sum, OP(&c, "aten::mul.Scalar", call->args[SELF], beta));
        return compose_end(&c, sum, out);
}

static Status addmm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return added_product(emitter, call, "aten::mm", out);
}

static Status baddbmm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return added_product(emitter, call, "aten::bmm", out);
}

static Status addmv_form(Emitter *emitter, const OpCall *call, Value *out)
{
        return added_product(emitter, call, "aten::mv", out);
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

static Status norm_form(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return compose_end(&c, with_self(&c, OP(&c, "aten::abs", call->args[SELF])), out);
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

// ---- the table ----
static const struct {
        const char *row;
        OpExpand form;
} forms[] = {
        { "aten::sum", linear_form },
        { "aten::sum.dim_IntList", linear_form },
        { "aten::mean", linear_form },
        { "aten::mean.dim", linear_form },
        { "aten::cumsum", linear_form },
        { "aten::index_add", linear_form },
        { "aten::index_put", linear_form },
        { "aten::scatter_add", linear_form },
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
