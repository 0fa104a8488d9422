// SPDX-License-Identifier: Apache-2.0
// emit.c: every call of an operator goes through emit(). A call's frame lives on the stack; nothing
// here hashes, formats or allocates unless something fails or a number has to be wrapped. The rules
// of in-place twins are decided here for all operators; inplace.c has the checks.
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"

#include <stdio.h>
#include <string.h>
#include "core/ops/complex_forms.h"
#include "core/ops/inplace.h"
#include "core/ops/lazy.h"

// ---- frames ----
Status call_open(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given,
                 OpCall *out_call)
{
        OpCall *call = out_call;
        call->op = overload->op;
        call->schema = &overload->schema;
        call->args = args;
        call->n_args = overload->schema.n_args;
        call->given = given;
        call->inplace = overload->inplace;
        call->emitter = emitter;
        call->outs = call->inline_outs;
        call->outs_capacity = OP_INLINE_OUTS;
        call->n_outs = 0;
        return out_reserve(call, overload->schema.n_returns);
}

void call_close(OpCall *call)
{
        for (uint32_t k = 0; k < call->n_outs; k++) {
                if (call->outs[k].kind == OUT_VALUE)
                        value_clear(&call->outs[k].value);
        }
        if (call->outs != call->inline_outs)
                free(call->outs);
        call->outs = call->inline_outs;
        call->n_outs = 0;
}

static Value take_out(OutSpec *spec, Tensor **tensor)
{
        if (spec->kind == OUT_VALUE) {
                spec->kind = OUT_UNSET;
                return spec->value;
        }
        return *tensor == NULL ? value_none() : value_tensor_take(take_ptr(*tensor));
}

Status call_outs_take(OpCall *call, Tensor **tensors, Value *out)
{
        const Schema *schema = call->schema;
        if (schema->returns == RETURN_NOTHING) {
                *out = value_none();
                return STATUS_OK;
        }
        if (schema->returns == RETURN_ONE) {
                *out = take_out(&call->outs[0], &tensors[0]);
                return STATUS_OK;
        }
        Seq *seq;
        TRY(seq_new(call->n_outs, &seq));
        seq->fields = schema->return_names;
        for (uint32_t k = 0; k < call->n_outs; k++)
                seq->items[k] = take_out(&call->outs[k], &tensors[k]);
        *out = value_seq_take(schema->returns == RETURN_LIST ? VALUE_LIST : VALUE_TUPLE, seq);
        return STATUS_OK;
}

// ---- dtypes ----
static Status check_dtype(const OpCall *call, const TensorMeta *meta, bool first)
{
        DtypeSet allowed = call->op->dtypes;
        if ((allowed >> meta->dtype & 1) != 0)
                return STATUS_OK;
        // infer checks index, mask and condition tensors behind the first argument, and wrapped
        // numbers that are real.
        bool is_complex = dtype_info[meta->dtype].kind == DTYPE_KIND_COMPLEX;
        if (!first && !is_complex &&
            (meta->wrapped || meta->dtype == DTYPE_BOOL || dtype_is_int(meta->dtype)))
                return STATUS_OK;
        return fail(STATUS_DTYPE, "\"%s\" not implemented for '%s'",
                    call->op->kernel != NULL ? call->op->kernel : call->schema->name,
                    dtype_words(meta->dtype));
}

Status call_check_dtypes(const OpCall *call)
{
        DtypeSet allowed = call->op->dtypes;
        if (allowed == 0 || allowed == (DtypeSet)DTYPES_ANY)
                return STATUS_OK;
        bool first = true;
        for (uint32_t i = 0; i < call->n_args; i++) {
                const Value *value = &call->args[i];
                if (value->kind == VALUE_TENSOR && call->schema->args[i].type == ARG_TENSOR) {
                        TRY(check_dtype(call, &value->tensor->meta, first));
                        first = false;
                } else if (call->schema->args[i].type == ARG_TENSOR && value_is_sequence(*value)) {
                        for (uint32_t k = 0; k < value->seq->n; k++) {
                                if (value->seq->items[k].kind == VALUE_TENSOR)
                                        TRY(check_dtype(call, &value->seq->items[k].tensor->meta, first));
                        }
                        first = false;
                }
        }
        return STATUS_OK;
}

// ---- in-place twins ----
static Status give_self(const OpCall *call, Value *out)
{
        *out = value_ref(call->args[SELF]);
        return STATUS_OK;
}

static Status write_result(OpCall *call, Value result, Value *out)
{
        Tensor *self = call->args[SELF].tensor;
        if (result.kind != VALUE_TENSOR)
                return fail(STATUS_INTERNAL, "%s: the in-place twin of an operator without a tensor result",
                            call->schema->name);
        if (result.tensor != self) {
                TRY(inplace_check_write(self, &result.tensor->meta));
                TRY(call->emitter->vtbl->write(call->emitter, self, result.tensor));
        }
        return give_self(call, out);
}

static Status emit_functional_then_write(OpCall *call, Value *out)
{
        _cleanup_(value_clear) Value result = value_none();
        call->inplace = false;
        TRY(call->emitter->vtbl->op(call->emitter, call, &result));
        return write_result(call, result, out);
}

// A view row's twin is emitted as the view, whose geometry self then takes.
static Status emit_move(OpCall *call, Value *out)
{
        Tensor *self = call->args[SELF].tensor;
        _cleanup_(value_clear) Value view = value_none();
        call->inplace = false;
        TRY(call->emitter->vtbl->op(call->emitter, call, &view));
        self->meta = view.tensor->meta;
        self->offset = view.tensor->offset;
        self->tag = view.tensor->tag;
        return give_self(call, out);
}

static Status emit_inplace_kernel(OpCall *call, Value *out)
{
        Tensor *self = call->args[SELF].tensor;
        const OutSpec *spec = &call->outs[0];
        switch (spec->kind) {
        case OUT_SAME:
                if (spec->arg != 0)
                        return emit_functional_then_write(call, out);
                // A twin whose functional row returns self has nothing to do. A row written in
                // place runs on self.
                if (call->op->run == NULL || call->schema->text != call->op->schema)
                        return give_self(call, out);
                TRY(inplace_check_internal_overlap(&self->meta));
                return call->emitter->vtbl->op(call->emitter, call, out);
        case OUT_VIEW:
                return spec->arg != 0 ? emit_functional_then_write(call, out) : emit_move(call, out);
        case OUT_FRESH:
                break;
        default:
                return fail(STATUS_INTERNAL, "%s: the in-place twin of an operator without a tensor result",
                            call->schema->name);
        }
        TRY(inplace_check_write(self, &spec->meta));
        bool elementwise = (call->op->flags & OP_ELEMENTWISE) != 0;
        bool direct = elementwise && spec->meta.dtype == self->meta.dtype;
        if (elementwise)
                TRY(inplace_check_inputs(call, &direct));
        return direct ? call->emitter->vtbl->op(call->emitter, call, out)
                      : emit_functional_then_write(call, out);
}

// ---- calls ----
static Status emit_expand(OpCall *call, OpExpand expand, Value *out)
{
        if (!call->inplace)
                return expand(call->emitter, call, out);
        _cleanup_(value_clear) Value result = value_none();
        TRY(expand(call->emitter, call, &result));
        return write_result(call, result, out);
}

// A row that claims fresh results but shares bytes could let a run write to the model.
static Status check_fresh(const OpCall *call)
{
        for (uint32_t k = 0; k < call->n_outs && op_has(call, TRAIT_FRESH); k++) {
                if (call->outs[k].kind == OUT_VIEW || call->outs[k].kind == OUT_SAME)
                        return fail(STATUS_INTERNAL, "%s claims fresh results, but result %u shares bytes",
                                    call->schema->name, k);
        }
        return STATUS_OK;
}

static Status infer_bound(OpCall *call)
{
        TRY(call->op->infer(call));
        return check_fresh(call);
}

static Status emit_bound(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given,
                         Value *out)
{
        OpCall call;
        const bool is_lazy = lazy_among(&overload->schema, args);
        if (__builtin_expect(is_lazy, 0) && !lazy_takes(overload, args))
                return lazy_call(emitter, overload, args, given, out);
        TRY(call_open(emitter, overload, args, given, &call));
        Status status = emitter->vtbl->check == NULL ? STATUS_OK : emitter->vtbl->check(emitter, &call);
        OpExpand form = complex_form(&call);
        if (form == NULL && call.op->form != NULL)
                form = call.op->form(&call);
        if (status == STATUS_OK && form == NULL)
                status = call_check_dtypes(&call);
        if (status == STATUS_OK && overload->inplace && args[SELF].kind != VALUE_TENSOR)
                status = fail(STATUS_VALUE, "%s(): argument 'input' (position 1) must be Tensor, not %s",
                              call.schema->name, value_kind_name(args[SELF].kind));
        if (status == STATUS_OK) {
                if (form != NULL || call.op->infer == NULL)
                        status = emit_expand(&call, form != NULL ? form : call.op->expand, out);
                else if ((status = infer_bound(&call)) == STATUS_OK)
                        status = call.inplace ? emit_inplace_kernel(&call, out)
                                              : emitter->vtbl->op(emitter, &call, out);
                if (is_lazy && form == NULL && status == STATUS_OK)
                        lazy_keep(&call, *out);
        }
        call_close(&call);
        return status;
}

static bool is_number_slot(const Schema *schema, uint32_t i, const Value *args)
{
        return value_is_number(args[i]) && schema->args[i].type == ARG_TENSOR && !schema->args[i].is_list;
}

// Numbers in Tensor slots become 0-dim tensors marked `wrapped` for the time of the call.
static __attribute__((noinline)) Status emit_wrapped(Emitter *emitter, const Overload *overload,
                                                     const Value *args, uint64_t given, Value *out)
{
        const Schema *schema = &overload->schema;
        Value wrapped[SCHEMA_MAX_ARGS];
        Tensor *owned[SCHEMA_MAX_ARGS];
        uint32_t n_owned = 0;
        Status status = STATUS_OK;
        memcpy(wrapped, args, schema->n_args * sizeof(*args));
        for (uint32_t i = 0; i < schema->n_args && status == STATUS_OK; i++) {
                if (!is_number_slot(schema, i, args) || (i == 0 && overload->inplace))
                        continue;
                Tensor *tensor;
                if ((overload->op->flags & OP_NUMBERS) == 0)
                        status = fail(
                                STATUS_VALUE, "%s(): argument '%s' (position %u) must be Tensor, not %s",
                                schema->name,
                                strcmp(schema->args[i].name, "self") == 0 ? "input" : schema->args[i].name,
                                i + 1, value_kind_name(args[i].kind));
                else if (args[i].tag != 0 && emitter->runtime_scalars)
                        status = emitter->vtbl->number(emitter, args[i], &tensor);
                else
                        status = value_wrap_number(
                                args[i], emitter->ctx == NULL ? NULL : emitter->ctx->budget, &tensor);
                if (status == STATUS_OK) {
                        wrapped[i] = value_tensor_take(tensor);
                        owned[n_owned++] = tensor;
                }
        }
        if (status == STATUS_OK)
                status = emit_bound(emitter, overload, wrapped, given, out);
        while (n_owned > 0)
                tensor_unref(owned[--n_owned]);
        return status;
}

// ---- runtime scalars (recordings only) ----
// "aten::mul.Scalar", and "aten::mul.Tensor" with a number in its Tensor slot, follow the same
// rules. For a runtime scalar the Tensor overload is called, which reads the number when the
// program runs.
static const Overload *tensor_twin(const Overload *overload)
{
        static const char *const bases[] = { "add", "sub", "mul", "div", "rsub", "eq",
                                             "ne",  "lt",  "le",  "gt",  "ge" };
        size_t n = strlen(overload->schema.name) - overload->inplace;
        char name[64];
        for (size_t i = 0; i < ARRAY_LENGTH(bases) && strcmp(overload->schema.overload, "Scalar") == 0; i++) {
                if (strlen(bases[i]) != n || strncmp(bases[i], overload->schema.name, n) != 0)
                        continue;
                snprintf(name, sizeof(name), "aten::%s.Tensor", overload->schema.name);
                return op_find(name);
        }
        return NULL;
}

static bool takes_runtime_scalar(const Overload *overload, uint32_t i)
{
        const SchemaArg *arg = &overload->schema.args[i];
        // a Python row reports the numbers it reads (emitter_number_read), or gets no runtime
        // scalars
        if (arg->type == ARG_ANY)
                return true;
        return arg->type == ARG_TENSOR && !arg->is_list && !(i == 0 && overload->inplace);
}

static const Overload *with_runtime_scalars(Emitter *emitter, const Overload *overload, const Value *args)
{
        uint32_t n = overload->schema.n_args;
        for (uint32_t i = 0; i < n; i++) {
                const Overload *twin =
                        args[i].tag == 0 || takes_runtime_scalar(overload, i) ? NULL : tensor_twin(overload);
                if (twin != NULL && twin->schema.n_args == n && takes_runtime_scalar(twin, i))
                        overload = twin;
        }
        for (uint32_t i = 0; i < n; i++) {
                if (args[i].tag != 0 && !takes_runtime_scalar(overload, i))
                        emitter_number_read(emitter, args[i]);
                for (uint32_t k = 0; value_is_sequence(args[i]) && k < args[i].seq->n; k++)
                        emitter_number_read(emitter, args[i].seq->items[k]);
        }
        return overload;
}

Status emit_plain(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given, Value *out)
{
        if (__builtin_expect(emitter->runtime_scalars, 0))
                overload = with_runtime_scalars(emitter, overload, args);
        const Schema *schema = &overload->schema;
        if (schema->n_tensor_args > 0) {
                for (uint32_t i = 0; i < schema->n_args; i++) {
                        if (is_number_slot(schema, i, args))
                                return emit_wrapped(emitter, overload, args, given, out);
                }
        }
        return emit_bound(emitter, overload, args, given, out);
}

Status emit(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given, Value *out)
{
        return __builtin_expect(emitter->autocast, 0) ? emit_autocast(emitter, overload, args, given, out)
                                                      : emit_plain(emitter, overload, args, given, out);
}

// Caches overloads by the address of the name, a string literal in an expand body. A slot holds
// only an overload and its name is compared, so two threads may write the same slot.
static const Overload *find_by_literal(const char *name)
{
        enum { SLOT_BITS = 9 };
        static _Atomic(const Overload *) slots[1 << SLOT_BITS];
        size_t slot = (size_t)(((uintptr_t)name * 0x9e3779b97f4a7c15u) >> (64 - SLOT_BITS));
        const Overload *overload = atomic_load_explicit(&slots[slot], memory_order_acquire);
        if (overload != NULL && strcmp(overload->name, name) == 0)
                return overload;
        overload = op_find(name);
        if (overload != NULL)
                atomic_store_explicit(&slots[slot], overload, memory_order_release);
        return overload;
}

Status emit_values(Emitter *emitter, const char *name, const Value *args, uint32_t n_args, Value *out)
{
        const Overload *overload = find_by_literal(name);
        if (overload == NULL)
                return fail(STATUS_UNSUPPORTED, "this build lacks the operator %s", name);
        const Schema *schema = &overload->schema;
        if (n_args > schema->n_args)
                return fail(STATUS_INTERNAL, "%s called with %u arguments", name, n_args);
        Value bound[SCHEMA_MAX_ARGS];
        memcpy(bound, args, n_args * sizeof(*args));
        for (uint32_t i = n_args; i < schema->n_args; i++) {
                if (!schema->args[i].has_default)
                        return fail(STATUS_INTERNAL, "%s called without its argument '%s'", name,
                                    schema->args[i].name);
                bound[i] = schema->args[i].default_value;
        }
        uint64_t given = n_args >= 64 ? UINT64_MAX : ((uint64_t)1 << n_args) - 1;
        return emit(emitter, overload, bound, given, out);
}
