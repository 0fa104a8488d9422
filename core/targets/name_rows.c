// SPDX-License-Identifier: Apache-2.0
// name_rows.c: names of torch.* and Tensor.* whose Python signatures differ from the operators':
// unique, unravel_index, new_tensor, casts to complex numbers, questions with one answer here.
#include <string.h>
#include "core/ops/compose.h"
#include "core/targets/operators.h"

// ---- the different elements ----
// The result, and the parts that were asked for: a tensor alone, or a tuple.
static Status end_unique(Compose *c, Value all, Value *out)
{
        const char *const asked[] = { "return_inverse", "return_counts" };
        Value items[3] = { compose_item(c, all, 0) };
        uint32_t n = 1;
        for (uint32_t i = 0; i < 2; i++) {
                if (compose_bool(c, asked[i]))
                        items[n++] = compose_item(c, all, i + 1);
        }
        if (n == 1)
                return compose_end(c, items[0], out);
        return compose_end(c, compose_tuple(c, items, n), out);
}

static Status unique_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input"), sorted = NAMED(&c, "sorted"), inverse = NAMED(&c, "return_inverse"),
              counts = NAMED(&c, "return_counts");
        Value all = compose_has(&c, "dim")
                            ? OP(&c, "aten::unique_dim", input, NAMED(&c, "dim"), sorted, inverse, counts)
                            : OP(&c, "aten::_unique2", input, sorted, inverse, counts);
        return end_unique(&c, all, out);
}

static Status consecutive_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value all = OP(&c, "aten::unique_consecutive", NAMED(&c, "input"), NAMED(&c, "return_inverse"),
                       NAMED(&c, "return_counts"), NAMED(&c, "dim"));
        return end_unique(&c, all, out);
}

// ---- places ----
// As Python writes a tuple.
static Status refuse_negative(int n, const int64_t *size)
{
        char text[512];
        shape_text(n, size, text, sizeof(text));
        return fail(STATUS_VALUE, "'shape' cannot have negative values, but got (%.*s%s)",
                    (int)strlen(text) - 2, text + 1, n == 1 ? "," : "");
}

static Status unravel_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value indices = NAMED(&c, "indices"), made[MAX_RANK];
        const Dtype dtype = compose_meta(&c, indices)->dtype;
        int64_t size[MAX_RANK], step = 1;
        const int n = compose_int_list(&c, "shape", size);
        if (!compose_failed(&c) && !dtype_is_int(dtype))
                return fail(STATUS_DTYPE, "expected 'indices' to be integer dtype, but got torch.%s",
                            dtype_info[dtype].name);
        Value whole = compose_cast(&c, indices, DTYPE_I64);
        for (int d = n - 1; d >= 0 && !compose_failed(&c); d--) {
                if (size[d] < 0)
                        compose_check(&c, refuse_negative(n, size));
                made[d] = OP(&c, "aten::floor_divide.Scalar", whole, value_int(step));
                made[d] = OP(&c, "aten::remainder.Scalar", made[d], value_int(size[d]));
                if (!mul_i64(step, size[d], &step))
                        compose_check(&c, fail(STATUS_TOO_LARGE, "unravel_index: the shape is too large"));
        }
        if (compose_failed(&c))
                return compose_end(&c, value_none(), out);
        return compose_end(&c, compose_tuple(&c, made, (uint32_t)n), out);
}

// ---- casts ----
static Status complex_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        const Dtype dtype = strcmp(call->schema->name, "cdouble") == 0 ? DTYPE_C128 : DTYPE_C64;
        return EMIT(emitter, "aten::to.dtype", out, call->args[SELF], value_dtype(dtype));
}

static Status new_tensor_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value data = NAMED(&c, "data");
        const Dtype dtype =
                compose_has(&c, "dtype") ? NAMED(&c, "dtype").dtype : call->args[SELF].tensor->meta.dtype;
        if (data.kind == VALUE_TENSOR)
                return compose_end(&c,
                                   OP(&c, "aten::to.dtype", data, value_dtype(dtype), value_bool(false),
                                      value_bool(true)),
                                   out);
        if (data.kind == VALUE_DYNAMIC)
                return fail(STATUS_DYNAMIC, "the data of new_tensor is not known before the run");
        return tensor_from_value(emitter, data, dtype, out);
}

static Status same_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

// ---- questions ----
static Status never_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        (void)call;
        *out = value_bool(false);
        return STATUS_OK;
}

static Status is_conj_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_bool(call->args[SELF].tensor->conj);
        return STATUS_OK;
}

static Status is_neg_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_bool(call->args[SELF].tensor->negative);
        return STATUS_OK;
}

static Status can_cast_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        static const DtypeSet floats = DTYPES_FLOATS | DTYPES_COMPLEX;
        Compose c;
        compose_begin(&c, emitter, call);
        const DtypeSet from = DTYPE_BIT(NAMED(&c, "from_").dtype), to = DTYPE_BIT(NAMED(&c, "to").dtype);
        const bool loses = ((from & DTYPES_COMPLEX) != 0 && (to & DTYPES_COMPLEX) == 0) ||
                           ((from & floats) != 0 && (to & floats) == 0) ||
                           (from != DTYPES_BOOL && to == DTYPES_BOOL);
        return compose_end(&c, value_bool(!loses), out);
}

#define ASKS    .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING
#define COMPLEX "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"
static const PyRow rows[] = {
        { "torch.functional.unique torch.unique .unique",
          "py::unique(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False, "
          "int? dim=None) -> Any",
          .expand = unique_expand, .needs = "aten::_unique2 aten::unique_dim" },
        { "torch.functional.unique_consecutive torch.unique_consecutive .unique_consecutive",
          "py::unique_consecutive(Tensor input, bool return_inverse=False, bool return_counts=False, int? "
          "dim=None) -> Any",
          .expand = consecutive_expand, .needs = "aten::unique_consecutive" },
        { "torch.functional.unravel_index torch.unravel_index",
          "py::unravel_index(Tensor indices, int[1] shape) -> Any", .expand = unravel_expand,
          .needs = "aten::floor_divide aten::remainder" },
        { ".cfloat", "py::cfloat" COMPLEX, .expand = complex_expand, .needs = "aten::to.dtype" },
        { ".cdouble", "py::cdouble" COMPLEX, .expand = complex_expand, .needs = "aten::to.dtype" },
        { ".new_tensor",
          "py::new_tensor(Tensor self, Any data, *, ScalarType? dtype=None, Device? device=None, bool "
          "requires_grad=False) -> Tensor",
          .expand = new_tensor_expand, .needs = "aten::to.dtype" },
        { ".to_dense", "py::to_dense(Tensor self, *, bool? masked_grad=None) -> Tensor",
          .expand = same_expand },
        { ".polygamma", "py::polygamma(Tensor self, int n) -> Tensor", .emits = "aten::polygamma a1 a0" },
        { "torch.is_conj .is_conj", "py::is_conj(Tensor input) -> Any", .expand = is_conj_expand, ASKS },
        { "torch.is_neg .is_neg", "py::is_neg(Tensor input) -> Any", .expand = is_neg_expand, ASKS },
        { "torch.is_inference .is_inference torch.is_distributed .is_distributed .is_pinned .is_shared",
          "py::is_inference(Tensor input) -> Any", .expand = never_expand, ASKS },
        { "torch.can_cast", "py::can_cast(ScalarType from_, ScalarType to) -> Any", .expand = can_cast_expand,
          ASKS },
};
const PyTable py_name_rows = PY_TABLE(rows);
