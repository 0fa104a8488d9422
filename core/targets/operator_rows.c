// SPDX-License-Identifier: Apache-2.0
// operator_rows.c: Python's operators (`_operator.*`). Model: as Python dispatches them. Without a
// tensor they are Python arithmetic; with a tensor on the left the Tensor method; with one on the
// right only, the reflected method, which PyTorch does not always define as the same expression (2
// / x is reciprocal(x) * 2).
#include "core/targets/operators.h"
#include "core/ops/lazy.h"

#include <string.h>

static const struct {
        const char *forward, *alternative; // operator on (a, b)
        PyBinary mirrored;                 // comparisons: the operator for `b op a`
} binary_ops[PY_BINARY_COUNT] = {
        [PY_ADD] = { "aten::add", NULL, PY_ADD },
        [PY_SUB] = { "aten::sub", NULL, PY_SUB },
        [PY_MUL] = { "aten::mul", NULL, PY_MUL },
        [PY_TRUEDIV] = { "aten::div", NULL, PY_TRUEDIV },
        [PY_FLOORDIV] = { "aten::floor_divide", NULL, PY_FLOORDIV },
        [PY_MOD] = { "aten::remainder", NULL, PY_MOD },
        [PY_POW] = { "aten::pow", NULL, PY_POW },
        [PY_MATMUL] = { "aten::matmul", NULL, PY_MATMUL },
        [PY_AND] = { "aten::bitwise_and", "aten::__and__", PY_AND },
        [PY_OR] = { "aten::bitwise_or", "aten::__or__", PY_OR },
        [PY_XOR] = { "aten::bitwise_xor", "aten::__xor__", PY_XOR },
        [PY_LSHIFT] = { "aten::__lshift__", "aten::bitwise_left_shift", PY_LSHIFT },
        [PY_RSHIFT] = { "aten::__rshift__", "aten::bitwise_right_shift", PY_RSHIFT },
        [PY_EQ] = { "aten::eq", NULL, PY_EQ },
        [PY_NE] = { "aten::ne", NULL, PY_NE },
        [PY_LT] = { "aten::lt", NULL, PY_GT },
        [PY_LE] = { "aten::le", NULL, PY_GE },
        [PY_GT] = { "aten::gt", NULL, PY_LT },
        [PY_GE] = { "aten::ge", NULL, PY_LE },
};

static const char *forward_of(PyBinary op)
{
        return binary_ops[op].alternative == NULL
                       ? binary_ops[op].forward
                       : aten_first(binary_ops[op].forward, binary_ops[op].alternative);
}

// a op b where only b is a tensor.
static Status reflected(Emitter *emitter, PyBinary op, Value a, Value b, Value *out)
{
        if (op == PY_ADD || op == PY_MUL || op == PY_AND || op == PY_OR || op == PY_XOR || op >= PY_EQ)
                return ATEN(emitter, forward_of(binary_ops[op].mirrored), out, b, a);
        if (op == PY_SUB && ops_present("aten::rsub"))
                return ATEN(emitter, "aten::rsub", out, b, a);
        if (op == PY_TRUEDIV) {
                _cleanup_(value_clear) Value inverse = value_none();
                TRY(ATEN(emitter, "aten::reciprocal", &inverse, b));
                return ATEN(emitter, "aten::mul", out, inverse, a);
        }
        if (op == PY_LSHIFT || op == PY_RSHIFT)
                return ATEN(emitter,
                            op == PY_LSHIFT ? "aten::bitwise_left_shift" : "aten::bitwise_right_shift", out,
                            a, b);
        return ATEN(emitter, forward_of(op), out, a, b);
}

static bool is_operand(Value value)
{
        return value.kind == VALUE_TENSOR || value_is_number(value);
}

Status operator_binary(Emitter *emitter, PyBinary op, Value a, Value b, Value *out)
{
        if (a.kind == VALUE_DYNAMIC || b.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "an operand of %s is not known before the run",
                            py_binary_signs[op]);
        bool tensors = a.kind == VALUE_TENSOR || b.kind == VALUE_TENSOR;
        if (!tensors || !is_operand(a) || !is_operand(b)) {
                emitter_number_read(emitter, a);
                emitter_number_read(emitter, b);
        }
        if (!tensors) {
                TRY(value_check_nesting(a));
                TRY(value_check_nesting(b));
                return python_binary(op, a, b, out);
        }
        if (!is_operand(a) || !is_operand(b)) {
                // x == None is False, as for any two objects that cannot be compared.
                if (op == PY_EQ || op == PY_NE)
                        return python_binary(op, a, b, out);
                return fail(STATUS_VALUE, "unsupported operand type(s) for %s: '%s' and '%s'",
                            py_binary_signs[op], value_kind_name(a.kind), value_kind_name(b.kind));
        }
        if (a.kind != VALUE_TENSOR)
                return reflected(emitter, op, a, b, out);
        return ATEN(emitter, forward_of(op), out, a, b);
}

Status operator_inplace(Emitter *emitter, PyBinary op, Value a, Value b, Value *out)
{
        if (a.kind != VALUE_TENSOR || op == PY_MATMUL)
                return operator_binary(emitter, op, a, b, out);
        return aten_inplace(emitter, forward_of(op), (const Value[]){ a, b }, 2, out);
}

Status aten_inplace(Emitter *emitter, const char *base, const Value *args, uint32_t n_args, Value *out)
{
        char twin[96];
        uint32_t n;
        size_t length = strlen(base);
        if (length + 2 <= sizeof(twin)) {
                memcpy(twin, base, length);
                memcpy(twin + length, "_", 2);
                if (op_overloads(twin, &n) != NULL)
                        return aten_call(emitter, twin, args, n_args, out);
        }
        _cleanup_(value_clear) Value result = value_none();
        TRY(aten_call(emitter, base, args, n_args, &result));
        if (result.kind != VALUE_TENSOR || args[SELF].kind != VALUE_TENSOR)
                return fail(STATUS_VALUE, "%s cannot write to %s", base, value_kind_name(args[SELF].kind));
        TRY(lazy_write(emitter, args[SELF].tensor, result.tensor));
        *out = value_ref(args[SELF]);
        return STATUS_OK;
}

// ---- rows ----
#define BINARY(name, code, traits)                                                                           \
        static Status name##_expand(Emitter *emitter, const OpCall *call, Value *out)                        \
        {                                                                                                    \
                return operator_binary(emitter, code, call->args[PY_LEFT], call->args[PY_RIGHT], out);       \
        }
#define INPLACE(name, schema, code, traits)                                                                  \
        static Status name##_expand(Emitter *emitter, const OpCall *call, Value *out)                        \
        {                                                                                                    \
                return operator_inplace(emitter, code, call->args[PY_LEFT], call->args[PY_RIGHT], out);      \
        }
#include "core/targets/operators.def"
#undef BINARY
#undef INPLACE

static Status unary(Emitter *emitter, const char *base, Status (*python)(Value, Value *), const OpCall *call,
                    Value *out)
{
        Value a = call->args[SELF];
        if (a.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "the operand of %s is not known before the run",
                            call->schema->name);
        return a.kind == VALUE_TENSOR ? ATEN(emitter, base, out, a) : python(a, out);
}

static Status neg_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return unary(emitter, "aten::neg", python_negate, call, out);
}

static Status abs_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return unary(emitter, "aten::abs", python_abs, call, out);
}

static Status invert_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return unary(emitter, "aten::bitwise_not", python_invert, call, out);
}

static Status pos_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        if (call->args[SELF].kind != VALUE_TENSOR && !value_is_number(call->args[SELF]))
                return fail(STATUS_VALUE, "bad operand type for unary +: '%s'",
                            value_kind_name(call->args[SELF].kind));
        if (call->args[SELF].kind == VALUE_TENSOR && call->args[SELF].tensor->meta.dtype == DTYPE_BOOL)
                return fail(STATUS_DTYPE, "The `+` operator, on a bool tensor is not supported.");
        *out = call->args[SELF].kind == VALUE_BOOL ? value_int(call->args[SELF].b)
                                                   : value_ref(call->args[SELF]);
        return STATUS_OK;
}

static Status not_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        bool truth;
        TRY(value_is_true(emitter, call->args[SELF], &truth));
        *out = value_bool(!truth);
        return STATUS_OK;
}

static Status truth_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        bool truth;
        TRY(value_is_true(emitter, call->args[SELF], &truth));
        *out = value_bool(truth);
        return STATUS_OK;
}

static bool same_object(Value a, Value b)
{
        return a.kind == b.kind && (value_is_sequence(a)   ? a.seq == b.seq
                                    : a.kind == VALUE_DICT ? a.dict == b.dict
                                                           : python_equal(a, b));
}

static Status is_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_bool(same_object(call->args[PY_LEFT], call->args[PY_RIGHT]));
        return STATUS_OK;
}

static Status is_not_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_bool(!same_object(call->args[PY_LEFT], call->args[PY_RIGHT]));
        return STATUS_OK;
}

static Status contains_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value a = call->args[PY_LEFT], b = call->args[PY_RIGHT];
        bool found = false;
        if (a.kind == VALUE_DICT && b.kind == VALUE_STR) {
                found = dict_get(a.dict, b.str->text) != NULL;
        } else if (value_is_sequence(a)) {
                for (uint32_t i = 0; i < a.seq->n && !found; i++) {
                        _cleanup_(value_clear) Value equal = value_none();
                        TRY(operator_binary(emitter, PY_EQ, a.seq->items[i], b, &equal));
                        TRY(value_is_true(emitter, equal, &found));
                }
        } else {
                return fail(STATUS_VALUE, "argument of type '%s' is not iterable here",
                            value_kind_name(a.kind));
        }
        *out = value_bool(found);
        return STATUS_OK;
}

// Python's operators: of tensors and numbers. + and * of lists give lists of the same items.
#define OPERATOR (TRAIT_FRESH | TRAIT_DRAWS_NOTHING)
#define ON_LISTS (OPERATOR | TRAIT_KEEPS_ITEMS)
#define WRITES   "(Any(a!) a, Any b) -> Any(a)"
#define BINARY(name, code, traits_)                                                                          \
        { "_operator." #name, "py::" #name "(Any a, Any b) -> Any", .expand = name##_expand,                 \
          .traits = traits_ },
#define INPLACE(name, arguments, code, traits_)                                                              \
        { "_operator." #name, "py::" #name arguments, .expand = name##_expand, .traits = traits_ },
static const PyRow rows[] = {
#include "core/targets/operators.def"
        { "_operator.neg .__neg__", "py::neg(Any a) -> Any", .expand = neg_expand, .traits = OPERATOR },
        { "_operator.pos", "py::pos(Any a) -> Any", .expand = pos_expand },
        { "_operator.abs abs builtins.abs", "py::abs(Any a) -> Any", .expand = abs_expand,
          .traits = OPERATOR },
        { "_operator.invert _operator.inv .__invert__", "py::invert(Any a) -> Any", .expand = invert_expand,
          .traits = OPERATOR },
        { "_operator.not_ torch.sym_not", "py::not_(Any a) -> Any", .expand = not_expand,
          .traits = OPERATOR },
        { "_operator.truth bool builtins.bool", "py::truth(Any a=False) -> Any", .expand = truth_expand,
          .traits = OPERATOR },
        { "_operator.is_", "py::is_(Any a, Any b) -> Any", .expand = is_expand },
        { "_operator.is_not", "py::is_not(Any a, Any b) -> Any", .expand = is_not_expand },
        { "_operator.contains", "py::contains(Any a, Any b) -> Any", .expand = contains_expand },
        { "_operator.concat _operator.iconcat", "py::concat(Any a, Any b) -> Any", .expand = add_expand },
        { ".__add__ .__radd__", "py::add(Any a, Any b) -> Any", .expand = add_expand,
          .traits = ON_LISTS | TRAIT_RUNTIME_SCALARS },
        { ".__sub__", "py::sub(Any a, Any b) -> Any", .expand = sub_expand,
          .traits = OPERATOR | TRAIT_RUNTIME_SCALARS },
        { ".__mul__ .__rmul__", "py::mul(Any a, Any b) -> Any", .expand = mul_expand,
          .traits = ON_LISTS | TRAIT_RUNTIME_SCALARS },
        { ".__truediv__", "py::truediv(Any a, Any b) -> Any", .expand = truediv_expand,
          .traits = OPERATOR | TRAIT_RUNTIME_SCALARS },
        { ".__pow__", "py::pow(Any a, Any b) -> Any", .expand = pow_expand, .traits = OPERATOR },
        { ".__matmul__", "py::matmul(Any a, Any b) -> Any", .expand = matmul_expand, .traits = OPERATOR },
        { ".__eq__", "py::eq(Any a, Any b) -> Any", .expand = eq_expand,
          .traits = OPERATOR | TRAIT_RUNTIME_SCALARS },
        { ".__ne__", "py::ne(Any a, Any b) -> Any", .expand = ne_expand,
          .traits = OPERATOR | TRAIT_RUNTIME_SCALARS },
        { ".__iadd__", "py::iadd" WRITES, .expand = iadd_expand, .traits = TRAIT_RUNTIME_SCALARS },
        { ".__imul__", "py::imul" WRITES, .expand = imul_expand, .traits = TRAIT_RUNTIME_SCALARS },
};
#undef BINARY
#undef INPLACE
const PyTable py_operator_rows = PY_TABLE(rows);

const char *operator_base(const char *name)
{
#undef BINARY
#undef INPLACE
#define BINARY(name_, code, traits_) { #name_, code },
#define INPLACE(name_, arguments, code, traits_)
        static const struct {
                const char *name;
                PyBinary op;
        } binary[] = {
#include "core/targets/operators.def"
        };
        static const struct {
                const char *name, *base;
        } unary[] = { { "neg", "aten::neg" }, { "abs", "aten::abs" }, { "invert", "aten::bitwise_not" } };
        for (size_t i = 0; i < ARRAY_LENGTH(binary); i++) {
                if (strcmp(binary[i].name, name) == 0)
                        return forward_of(binary[i].op);
        }
        for (size_t i = 0; i < ARRAY_LENGTH(unary); i++) {
                if (strcmp(unary[i].name, name) == 0)
                        return unary[i].base;
        }
        return NULL;
}
