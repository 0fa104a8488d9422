// SPDX-License-Identifier: Apache-2.0
// lazy.c: the conj and neg bits. Only live tensors of a walk have them: calls, kernels and
// recordings see tensors without bits, and views of them.
#include "core/ops/lazy.h"

#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/pointwise.h"

// ---- which tensors are lazy ----
static Status find_lazy(void *context, const Value *leaf)
{
        if (leaf->kind == VALUE_TENSOR)
                *(bool *)context |= tensor_is_lazy(leaf->tensor);
        return STATUS_OK;
}

bool value_is_lazy(Value value)
{
        bool found = false;
        if (value.kind == VALUE_TENSOR)
                return tensor_is_lazy(value.tensor);
        if (value_is_sequence(value) || value.kind == VALUE_DICT || value.kind == VALUE_SLICE)
                (void)value_walk(value, find_lazy, &found);
        return found;
}

bool lazy_among(const Schema *schema, const Value *args)
{
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (args[i].kind == VALUE_TENSOR ? tensor_is_lazy(args[i].tensor) : value_is_lazy(args[i]))
                        return true;
        }
        return false;
}

static bool is_view(const Schema *schema)
{
        return schema->n_args > 0 && schema->n_returns > 0 && schema->args[SELF].is_alias &&
               !schema->args[SELF].is_written && schema->return_types[0].is_alias;
}

static bool is_named(const Schema *schema, const char *const *names, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(names[i], schema->name) == 0)
                        return true;
        }
        return false;
}

// Python rows that read numbers. A branch that a constant chooses is a call like any other.
static bool takes_bytes(const Schema *schema, const Value *args)
{
        static const char *const names[] = { "while_loop", "scan", "map_impl", "associative_scan", "tolist" };
        return strcmp(schema->name, "cond") == 0 ? args[SELF].kind == VALUE_TENSOR
                                                 : is_named(schema, names, ARRAY_LENGTH(names));
}

// Child graphs may have programs of their own, which take tensors as bytes: what they write to a
// copy would be lost. PyTorch has no kernels for conjugates there.
static Status check_children(const Schema *schema, const Value *args)
{
        static const char *const names[] = { "cond", "while_loop", "scan", "map_impl" };
        if (strcmp(schema->ns, "py") != 0 || !is_named(schema, names, ARRAY_LENGTH(names)))
                return STATUS_OK;
        for (uint32_t i = 1; i < schema->n_args; i++) {
                if (value_is_lazy(args[i]))
                        return fail(
                                STATUS_UNSUPPORTED,
                                "%s() takes no conjugates, in PyTorch neither; use resolve_conj() or clone()",
                                schema->name);
        }
        return STATUS_OK;
}

// Rows that may return their argument, or write to it, without saying so in the schema, and that
// hand it on to emit() or lazy_write only.
static bool hands_on(const Schema *schema)
{
        static const char *const names[] = {
                "copy_",         "instance_norm",         "dropout",      "feature_dropout",
                "alpha_dropout", "feature_alpha_dropout", "atleast_1d",   "atleast_2d",
                "atleast_3d",    "broadcast_tensors",     "meshgrid",     "cartesian_prod",
                "_unsafe_view",  "conj_physical",         "einsum",       "inner",
                "tensordot",     "linalg_matmul",         "linalg_vecdot"
        };
        return is_named(schema, names, ARRAY_LENGTH(names));
}

bool lazy_takes(const Overload *overload, const Value *args)
{
        const Schema *schema = &overload->schema;
        if (strcmp(schema->ns, "py") == 0)
                return !takes_bytes(schema, args);
        return hands_on(schema) || is_view(schema) ||
               (overload->twin_of != NULL && is_view(&overload->twin_of->schema));
}

// ---- bits ----
Status lazy_view(const Tensor *tensor, bool conj, bool negative, Value *out)
{
        Tensor *view;
        TRY(tensor_new_view(tensor->storage, &tensor->meta, tensor->offset, &view));
        view->tag = tensor->tag;
        view->conj = conj;
        view->negative = negative;
        *out = value_tensor_take(view);
        return STATUS_OK;
}

// The real part of a conjugate is that of its base; the imaginary part is the negative.
static void keep_bits(const OpCall *call, const Tensor *base, Tensor *view)
{
        bool is_part = point_is_complex(base->meta.dtype) && !point_is_complex(view->meta.dtype);
        bool is_imag = strcmp(call->schema->name, "imag") == 0;
        view->conj = base->conj && !is_part;
        view->negative = base->negative != (base->conj && is_imag);
}

void lazy_keep(const OpCall *call, Value out)
{
        for (uint32_t k = 0; k < call->n_outs; k++) {
                Value view = value_is_sequence(out) ? out.seq->items[k] : out;
                if (call->outs[k].kind == OUT_VIEW && view.kind == VALUE_TENSOR)
                        keep_bits(call, call->args[call->outs[k].arg].tensor, view.tensor);
        }
}

// `value` without bits, conjugated and negated as `like` says.
static Status compute(Emitter *emitter, const Tensor *like, Value value, Value *out)
{
        bool conj = like->conj && point_is_complex(value.tensor->meta.dtype);
        _cleanup_(value_clear) Value conjugate = value_none();
        if (conj)
                TRY(EMIT(emitter, "aten::_conj_physical", &conjugate, value));
        if (like->negative)
                return EMIT(emitter, "aten::neg", out, conj ? conjugate : value);
        *out = value_ref(conj ? conjugate : value);
        return STATUS_OK;
}

static Status resolve_leaf(void *context, const Value *leaf, Value *out)
{
        if (leaf->kind != VALUE_TENSOR || !tensor_is_lazy(leaf->tensor)) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        _cleanup_(value_clear) Value plain = value_none();
        TRY(lazy_view(leaf->tensor, false, false, &plain));
        return compute(context, leaf->tensor, plain, out);
}

Status lazy_resolve(Emitter *emitter, Value value, Value *out)
{
        if (value_is_lazy(value))
                return value_map(value, resolve_leaf, emitter, out);
        *out = value_ref(value);
        return STATUS_OK;
}

// ---- writes ----
static Status write_through(Emitter *emitter, const Tensor *to, Tensor *from)
{
        _cleanup_(value_clear) Value plain = value_none(), cast = value_none(), value = value_none();
        TRY(lazy_view(to, false, false, &plain));
        TRY(EMIT(emitter, "aten::to.dtype", &cast, (Value){ .kind = VALUE_TENSOR, .tensor = from },
                 value_dtype(to->meta.dtype)));
        TRY(compute(emitter, to, cast, &value));
        return emitter->vtbl->write(emitter, plain.tensor, value.tensor);
}

Status lazy_write(Emitter *emitter, Tensor *to, Tensor *from)
{
        _cleanup_(value_clear) Value resolved = value_none();
        TRY(lazy_resolve(emitter, (Value){ .kind = VALUE_TENSOR, .tensor = from }, &resolved));
        return tensor_is_lazy(to) ? write_through(emitter, to, resolved.tensor)
                                  : emitter->vtbl->write(emitter, to, resolved.tensor);
}

// What the call wrote to the copy of an argument is written to the argument. A result that is the
// copy is the argument.
static Status write_back(Emitter *emitter, Value argument, Value copy, Value *inout)
{
        TRY(lazy_write(emitter, argument.tensor, copy.tensor));
        if (inout->kind == VALUE_TENSOR && inout->tensor == copy.tensor) {
                value_unref(*inout);
                *inout = value_ref(argument);
        }
        return STATUS_OK;
}

// Inner products that PyTorch computes of the bases: their conjugate is the result.
static bool is_conjugate(const Schema *schema, const Value *args)
{
        static const char *const names[] = { "dot", "vdot", "matmul" };
        if (strcmp(schema->ns, "aten") != 0 || !is_named(schema, names, ARRAY_LENGTH(names)))
                return false;
        const Tensor *a = args[SELF].tensor, *b = args[PRODUCT_OTHER].tensor;
        bool turns = strcmp(schema->name, "vdot") == 0;
        return a->meta.rank == 1 && b->meta.rank == 1 && a->conj != turns && b->conj && !a->negative &&
               !b->negative;
}

static Status conjugate_product(Emitter *emitter, const Value *args, Value *out)
{
        _cleanup_(value_clear) Value a = value_none(), b = value_none(), product = value_none();
        TRY(lazy_view(args[SELF].tensor, false, false, &a));
        TRY(lazy_view(args[PRODUCT_OTHER].tensor, false, false, &b));
        TRY(EMIT(emitter, "aten::dot", &product, a, b));
        return lazy_view(product.tensor, true, false, out);
}

Status lazy_call(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given, Value *out)
{
        const Schema *schema = &overload->schema;
        Value resolved[SCHEMA_MAX_ARGS] = { 0 };
        uint32_t n = 0;
        if (is_conjugate(schema, args))
                return conjugate_product(emitter, args, out);
        Status status = check_children(schema, args);
        for (; n < schema->n_args && status == STATUS_OK; n++) {
                resolved[n] = value_none();
                status = schema->args[n].is_written && schema->args[n].is_list && value_is_lazy(args[n])
                                 ? fail(STATUS_UNSUPPORTED, "%s writes to a list of conjugates", schema->name)
                                 : lazy_resolve(emitter, args[n], &resolved[n]);
        }
        _cleanup_(value_clear) Value result = value_none();
        if (status == STATUS_OK)
                status = emit_plain(emitter, overload, resolved, given, &result);
        for (uint32_t i = 0; i < n && status == STATUS_OK; i++) {
                if (schema->args[i].is_written && value_is_lazy(args[i]))
                        status = write_back(emitter, args[i], resolved[i], &result);
        }
        for (uint32_t i = 0; i < n; i++)
                value_unref(resolved[i]);
        TRY(status);
        *out = result;
        result = value_none();
        return STATUS_OK;
}
