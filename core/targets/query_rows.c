// SPDX-License-Identifier: Apache-2.0
// query_rows.c: what Python code asks of tensors and dtypes to decide something, and short
// arrangements of torch.* that are a few operators each.
#include <string.h>
#include "core/ops/compose.h"
#include "core/targets/operators.h"

// ---- questions about values: a bool ----
// A tensor of bools, all of them; while recording only the run knows.
static Status end_question(Compose *c, Value tensor, Value *out)
{
        _cleanup_(value_clear) Value all = value_none();
        bool answer = false;
        Emitter *emitter = c->emitter;
        TRY(compose_end(c, OP(c, "aten::all", tensor), &all));
        TRY(value_is_true(emitter, all, &answer));
        *out = value_bool(answer);
        return STATUS_OK;
}

static Status equal_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value a = NAMED(&c, "input"), b = NAMED(&c, "other");
        const TensorMeta *left = compose_meta(&c, a), *right = compose_meta(&c, b);
        if (!meta_same_shape(left, right)) {
                *out = value_bool(false);
                return compose_end(&c, *out, out);
        }
        if (left->dtype != right->dtype)
                compose_check(&c, fail(STATUS_DTYPE,
                                       "Expected object of data type %s but got data type %s for "
                                       "argument 'other'",
                                       dtype_words(left->dtype), dtype_words(right->dtype)));
        return end_question(&c, OP(&c, "aten::eq.Tensor", a, b), out);
}

static Status allclose_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        return end_question(&c,
                            OP(&c, "aten::isclose", NAMED(&c, "input"), NAMED(&c, "other"), NAMED(&c, "rtol"),
                               NAMED(&c, "atol"), NAMED(&c, "equal_nan")),
                            out);
}

static Status nonzero_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Value input = call->args[SELF];
        bool answer = false;
        TRY(value_is_true(emitter, input, &answer));
        *out = value_bool(answer);
        return STATUS_OK;
}

// ---- questions about shapes and dtypes ----
static Status same_size_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        *out = value_bool(
                meta_same_shape(&call->args[PY_LEFT].tensor->meta, &call->args[PY_RIGHT].tensor->meta));
        return STATUS_OK;
}

static Status is_signed_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        const Dtype dtype = call->args[SELF].tensor->meta.dtype;
        const bool is_unsigned = dtype == DTYPE_BOOL || dtype == DTYPE_U8 || dtype == DTYPE_U16 ||
                                 dtype == DTYPE_U32 || dtype == DTYPE_U64;
        *out = value_bool(!is_unsigned);
        return STATUS_OK;
}

static Status promote_types_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        Dtype dtype;
        TRY(dtype_promote(call->args[PY_LEFT].dtype, call->args[PY_RIGHT].dtype, &dtype));
        *out = value_dtype(dtype);
        return STATUS_OK;
}

static Status nonzero_tuple_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input");
        if (!compose_bool(&c, "as_tuple"))
                return compose_end(&c, OP(&c, "aten::nonzero", input), out);
        Value columns = OP(&c, "aten::nonzero_numpy", input);
        columns.kind = columns.kind == VALUE_LIST ? VALUE_TUPLE : columns.kind;
        return compose_end(&c, columns, out);
}

// ---- arrangements ----
static Value split_at(Compose *c, Value tensor, int dim)
{
        Value parts = NAMED(c, "indices_or_sections");
        const char *op =
                python_is_integral(parts) ? "aten::tensor_split.sections" : "aten::tensor_split.indices";
        const TensorMeta *meta = compose_meta(c, tensor);
        if (!compose_failed(c) && python_is_integral(parts) &&
            (python_int(parts) <= 0 || meta->size[dim] % python_int(parts) != 0))
                compose_check(
                        c,
                        fail(STATUS_VALUE,
                             "torch.%s attempted to split along dimension %d, but the size of the dimension "
                             "%ld is not divisible by the split_size %ld!",
                             c->name, dim, (long)meta->size[dim], (long)python_int(parts)));
        return OP(c, op, tensor, parts, value_int(dim));
}

static Status split_along(Emitter *emitter, const OpCall *call, int least_rank, int dim, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value input = NAMED(&c, "input");
        const int rank = compose_meta(&c, input)->rank;
        if (rank < least_rank)
                compose_check(&c, fail(STATUS_SHAPE,
                                       "torch.%s requires a tensor with at least %d dimension, but got a "
                                       "tensor with %d dimensions!",
                                       c.name, least_rank, rank));
        Value parts = split_at(&c, input, rank == 1 ? 0 : dim);
        parts.kind = parts.kind == VALUE_LIST ? VALUE_TUPLE : parts.kind;
        return compose_end(&c, parts, out);
}

static Status hsplit_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return split_along(emitter, call, 1, 1, out);
}

static Status vsplit_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return split_along(emitter, call, 2, 0, out);
}

static Status dsplit_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return split_along(emitter, call, 3, 2, out);
}

static Status column_stack_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value tensors = NAMED(&c, "tensors");
        const uint32_t n = compose_length(tensors);
        _cleanup_(freep) Value *columns = new_array(n, sizeof(*columns));
        if (columns == NULL)
                compose_check(&c, fail_memory());
        for (uint32_t i = 0; i < n && !compose_failed(&c); i++) {
                columns[i] = compose_item(&c, tensors, i);
                const TensorMeta *meta = compose_meta(&c, columns[i]);
                if (meta->rank < 2)
                        columns[i] = OP(&c, "aten::reshape", columns[i], INTS(&c, meta_numel(meta), 1));
        }
        return compose_end(&c,
                           compose_failed(&c)
                                   ? value_none()
                                   : OP(&c, "aten::cat", compose_list(&c, columns, n), value_int(1)),
                           out);
}

static Status diagflat_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        Value flat = OP(&c, "aten::reshape", NAMED(&c, "input"), INTS(&c, -1));
        return compose_end(&c, OP(&c, "aten::diag", flat, NAMED(&c, "offset")), out);
}

// ---- sequences ----
static Status count_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        Value items = call->args[PY_LEFT];
        int64_t count = 0;
        if (!value_is_sequence(items))
                return fail(STATUS_VALUE, "'%s' object is not iterable here", value_kind_name(items.kind));
        for (uint32_t i = 0; i < items.seq->n; i++)
                count += python_equal(items.seq->items[i], call->args[PY_RIGHT]);
        *out = value_int(count);
        return STATUS_OK;
}

static Status index_of_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        (void)emitter;
        Value items = call->args[PY_LEFT];
        if (!value_is_sequence(items))
                return fail(STATUS_VALUE, "'%s' object is not iterable here", value_kind_name(items.kind));
        for (uint32_t i = 0; i < items.seq->n; i++) {
                if (python_equal(items.seq->items[i], call->args[PY_RIGHT])) {
                        *out = value_int(i);
                        return STATUS_OK;
                }
        }
        return fail(STATUS_VALUE, "sequence.index(x): x not in sequence");
}

#define ASKS  .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING
#define SPLIT "(Tensor input, Any indices_or_sections) -> Any"
static const PyRow rows[] = {
        { "torch.equal .equal", "py::equal(Tensor input, Tensor other) -> Any", .expand = equal_expand,
          .needs = "aten::eq aten::all", ASKS },
        { "torch.allclose .allclose",
          "py::allclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
          "equal_nan=False) -> "
          "Any",
          .expand = allclose_expand, .needs = "aten::isclose aten::all", ASKS },
        { "torch.is_nonzero .is_nonzero .__bool__", "py::is_nonzero(Tensor input) -> Any",
          .expand = nonzero_expand, ASKS },
        { "torch.nonzero .nonzero", "py::nonzero(Tensor input, *, bool as_tuple) -> Any",
          .expand = nonzero_tuple_expand, .needs = "aten::nonzero aten::nonzero_numpy", ASKS },
        { "torch.is_same_size .is_same_size", "py::is_same_size(Tensor a, Tensor b) -> Any",
          .expand = same_size_expand, ASKS },
        { "torch.is_signed .is_signed", "py::is_signed(Tensor input) -> Any", .expand = is_signed_expand,
          ASKS },
        { "torch.promote_types", "py::promote_types(ScalarType a, ScalarType b) -> Any",
          .expand = promote_types_expand, ASKS },
        { "torch.hsplit .hsplit", "py::hsplit" SPLIT, .expand = hsplit_expand,
          .needs = "aten::tensor_split" },
        { "torch.vsplit .vsplit", "py::vsplit" SPLIT, .expand = vsplit_expand,
          .needs = "aten::tensor_split" },
        { "torch.dsplit .dsplit", "py::dsplit" SPLIT, .expand = dsplit_expand,
          .needs = "aten::tensor_split" },
        { "torch.column_stack", "py::column_stack(Any tensors) -> Tensor", .expand = column_stack_expand,
          .needs = "aten::cat aten::reshape" },
        { "torch.diagflat .diagflat", "py::diagflat(Tensor input, int offset=0) -> Tensor",
          .expand = diagflat_expand, .needs = "aten::diag aten::reshape" },
        { ".where", "py::where(Tensor self, Tensor condition, Any other) -> Tensor",
          .emits = "aten::where a1 a0 a2" },
        { "_operator.countOf", "py::countOf(Any a, Any b) -> Any", .expand = count_expand, ASKS },
        { "_operator.indexOf", "py::indexOf(Any a, Any b) -> Any", .expand = index_of_expand, ASKS },
};
const PyTable py_query_rows = PY_TABLE(rows);
