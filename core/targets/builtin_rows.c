// SPDX-License-Identifier: Apache-2.0
// builtin_rows.c: builtins and torch.sym_*: the size arithmetic of traced graphs.
#include "core/targets/operators.h"

#include <math.h>
#include <string.h>

static Status real_of(Emitter *emitter, const OpCall *call, int index, double *out)
{
        _cleanup_(value_clear) Value number = value_none();
        TRY(value_as_number(emitter, call->args[index], &number));
        if (!value_is_number(number) || number.kind == VALUE_COMPLEX)
                return fail(STATUS_VALUE, "%s(): must be a real number, not %s", call->schema->name,
                            value_kind_name(number.kind));
        *out = python_float(number);
        return STATUS_OK;
}

static Status len_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        Value a = call->args[SELF];
        if (a.kind == VALUE_TENSOR) {
                if (a.tensor->meta.rank == 0)
                        return fail(STATUS_VALUE, "len() of a 0-d tensor");
                *out = value_int(a.tensor->meta.size[0]);
        } else if (value_is_sequence(a)) {
                *out = value_int(a.seq->n);
        } else if (a.kind == VALUE_DICT) {
                *out = value_int(a.dict->n);
        } else if (a.kind == VALUE_STR) {
                *out = value_int(a.str->n);
        } else {
                return fail(STATUS_VALUE, "object of type '%s' has no len()", value_kind_name(a.kind));
        }
        return STATUS_OK;
}

// ---- to int, to float ----
static Status rounded_to_int(Emitter *emitter, const OpCall *call, double (*rounding)(double),
                             const char *tensor_op, Value *out)
{
        if (call->args[SELF].kind == VALUE_TENSOR && tensor_op != NULL)
                return ATEN(emitter, tensor_op, out, call->args[SELF]);
        _cleanup_(value_clear) Value number = value_none();
        TRY(value_as_number(emitter, call->args[SELF], &number));
        return python_to_int(number, rounding, out);
}

static Status int_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return rounded_to_int(emitter, call, trunc, NULL, out);
}

static Status trunc_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return rounded_to_int(emitter, call, trunc, "aten::trunc", out);
}

static Status floor_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return rounded_to_int(emitter, call, floor, NULL, out);
}

static Status ceil_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return rounded_to_int(emitter, call, ceil, NULL, out);
}

static Status float_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        double real;
        TRY(real_of(emitter, call, SELF, &real));
        *out = value_float(real);
        return STATUS_OK;
}

static Status round_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value digits = call->args[PY_ROUND_NDIGITS];
        if (call->args[SELF].kind == VALUE_TENSOR && digits.kind != VALUE_NONE && !python_is_integral(digits))
                return fail(STATUS_VALUE, "round(): argument 'ndigits' must be int, not %s",
                            value_kind_name(digits.kind));
        if (call->args[SELF].kind == VALUE_TENSOR)
                return digits.kind == VALUE_NONE
                               ? ATEN(emitter, "aten::round", out, call->args[SELF])
                               : EMIT(emitter, "aten::round.decimals", out, call->args[SELF], digits);
        if (digits.kind != VALUE_NONE && !python_is_integral(digits))
                return fail(STATUS_VALUE, "'%s' object cannot be interpreted as an integer",
                            value_kind_name(digits.kind));
        return python_round(call->args[SELF], digits, out);
}

// ---- max, min, sum, prod ----
static Status pick(Emitter *emitter, const OpCall *call, PyBinary better, Value *out)
{
        const Seq *items = call->args[PY_MAX_ARGS].seq;
        if (items->n == 1 && value_is_sequence(items->items[0]))
                items = items->items[0].seq; // max([1, 2])
        else if (items->n == 1)
                return fail(STATUS_VALUE, "'%s' object is not iterable here",
                            value_kind_name(items->items[0].kind));
        if (items->n == 0)
                return fail(STATUS_VALUE, "%s() arg is an empty sequence", call->schema->name);
        Value best = items->items[0];
        for (uint32_t i = 1; i < items->n; i++) {
                _cleanup_(value_clear) Value answer = value_none();
                bool is_better;
                TRY(operator_binary(emitter, better, items->items[i], best, &answer));
                TRY(value_is_true(emitter, answer, &is_better));
                if (is_better)
                        best = items->items[i];
        }
        *out = value_ref(best);
        return STATUS_OK;
}

static Status max_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return pick(emitter, call, PY_GT, out);
}

static Status min_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return pick(emitter, call, PY_LT, out);
}

// sym_max(int, float) is a float, unlike max().
static Status sym_pick(Emitter *emitter, const OpCall *call, PyBinary better, Value *out)
{
        _cleanup_(value_clear) Value best = value_none();
        TRY(pick(emitter, call, better, &best));
        bool real = false;
        for (uint32_t i = 0; i < call->args[PY_MAX_ARGS].seq->n; i++)
                real |= call->args[PY_MAX_ARGS].seq->items[i].kind == VALUE_FLOAT;
        *out = real && python_is_integral(best) ? value_float(python_float(best)) : value_ref(best);
        return STATUS_OK;
}

static Status sym_max_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return sym_pick(emitter, call, PY_GT, out);
}

static Status sym_min_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return sym_pick(emitter, call, PY_LT, out);
}

static Status gather_with(Emitter *emitter, PyBinary op, Value items, Value start, Value *out)
{
        if (!value_is_sequence(items))
                return fail(STATUS_VALUE, "'%s' object is not iterable here", value_kind_name(items.kind));
        _cleanup_(value_clear) Value total = value_ref(start);
        for (uint32_t i = 0; i < items.seq->n; i++) {
                Value next = value_none();
                TRY(operator_binary(emitter, op, total, items.seq->items[i], &next));
                value_clear(&total);
                total = next;
        }
        *out = value_ref(total);
        return STATUS_OK;
}

static Status sum_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return gather_with(emitter, PY_ADD, call->args[PY_SUM_ITERABLE], call->args[PY_SUM_START], out);
}

static Status prod_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return gather_with(emitter, PY_MUL, call->args[PY_SUM_ITERABLE], call->args[PY_SUM_START], out);
}

// ---- containers, choices ----
static Status convert_sequence(Value value, ValueKind kind, Value *out)
{
        if (value.kind == VALUE_NONE) {
                Seq *empty;
                TRY(seq_new(0, &empty));
                *out = value_seq_take(kind, empty);
                return STATUS_OK;
        }
        if (!value_is_sequence(value))
                return fail(STATUS_VALUE, "'%s' object is not iterable here", value_kind_name(value.kind));
        Seq *seq;
        TRY(seq_new(value.seq->n, &seq));
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = value_ref(value.seq->items[i]);
        *out = value_seq_take(kind, seq);
        return STATUS_OK;
}

static Status list_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        return convert_sequence(call->args[SELF], VALUE_LIST, out);
}

static Status tuple_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        return convert_sequence(call->args[SELF], VALUE_TUPLE, out);
}

static Status size_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        return convert_sequence(call->args[SELF], VALUE_SIZE, out);
}

static Status ite_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        bool chosen;
        TRY(value_is_true(emitter, call->args[PY_ITE_CONDITION], &chosen));
        *out = value_ref(call->args[chosen ? PY_ITE_THEN : PY_ITE_ELSE]);
        return STATUS_OK;
}

static Status slice_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        Seq *seq;
        TRY(seq_new(3, &seq));
        bool only_stop = call->args[PY_SLICE_STOP].kind == VALUE_ABSENT ||
                         (!arg_given(call, PY_SLICE_STOP) && !arg_given(call, PY_SLICE_STEP));
        for (int i = PY_SLICE_START; i <= PY_SLICE_STEP; i++)
                seq->items[i] = value_ref(call->args[i]);
        if (only_stop) {
                seq->items[PY_SLICE_STOP] = seq->items[PY_SLICE_START];
                seq->items[PY_SLICE_START] = value_none();
        }
        *out = value_seq_take(VALUE_SLICE, seq);
        return STATUS_OK;
}

static const PyRow rows[] = {
        { "len builtins.len .__len__", "py::len(Any a) -> Any", .expand = len_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "int builtins.int torch.sym_int", "py::int_(Any a=0) -> Any", .expand = int_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "math.trunc", "py::trunc(Any a) -> Any", .expand = trunc_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "math.floor", "py::floor(Any a) -> Any", .expand = floor_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "math.ceil", "py::ceil(Any a) -> Any", .expand = ceil_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "_operator.index", "py::index(Any a) -> Any", .expand = int_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "float builtins.float torch.sym_float", "py::float_(Any a=0) -> Any", .expand = float_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "round builtins.round", "py::round(Any number, Any ndigits=None) -> Any", .expand = round_expand },
        { "max builtins.max", "py::max(*Any[] args) -> Any", .expand = max_expand },
        { "min builtins.min", "py::min(*Any[] args) -> Any", .expand = min_expand },
        { "torch.sym_max", "py::sym_max(*Any[] args) -> Any", .expand = sym_max_expand },
        { "torch.sym_min", "py::sym_min(*Any[] args) -> Any", .expand = sym_min_expand },
        { "sum builtins.sum torch.sym_sum", "py::sum(Any iterable, Any start=0) -> Any",
          .expand = sum_expand },
        { "math.prod", "py::prod(Any iterable, *, Any start=1) -> Any", .expand = prod_expand,
          .traits = TRAIT_DRAWS_NOTHING },
        { "list builtins.list", "py::list(Any a=None) -> Any", .expand = list_expand },
        { "tuple builtins.tuple", "py::tuple(Any a=None) -> Any", .expand = tuple_expand },
        { "torch.Size", "py::Size(Any a=None) -> Any", .expand = size_expand },
        { "slice builtins.slice", "py::slice(Any start, Any stop=None, Any step=None) -> Any",
          .expand = slice_expand },
        { "torch.sym_ite", "py::sym_ite(Any b, Any t, Any f) -> Any", .expand = ite_expand },
};
const PyTable py_builtin_rows = PY_TABLE(rows);
