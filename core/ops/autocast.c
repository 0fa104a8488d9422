// SPDX-License-Identifier: Apache-2.0
// autocast.c: calls inside of torch.autocast("cpu"). PyTorch casts at the outermost operator that
// has a policy; what that operator is made of is no longer watched. So does emit_autocast: the
// region is off while such a call is emitted.
#include "core/ops/emitter.h"

#include <stdlib.h>
#include <string.h>

typedef enum Policy { LOWER, FLOAT32, WIDEST, UNCHANGED, REFUSED } Policy;
typedef struct Row {
        const char *overload;
        Policy policy;
} Row;

static const Row rows[] = {
#define AUTOCAST(overload, policy) { overload, policy },
#include "core/ops/autocast.def"
#undef AUTOCAST
};

static int compare_row(const void *name, const void *row)
{
        return strcmp(name, ((const Row *)row)->overload);
}

static bool is_eligible(const Value *value)
{
        if (value->kind != VALUE_TENSOR)
                return false;
        const Dtype dtype = value->tensor->meta.dtype;
        return (dtype_is_float(dtype) && dtype != DTYPE_F64) || dtype_is_float8(dtype);
}

// ---- the dtype that arguments are cast to ----
// Argument by argument, as PyTorch does: behind a float32, other dtypes no longer matter.
static Status widen_by(const Value *value, Dtype lower, Dtype *inout)
{
        if (!is_eligible(value) || *inout == DTYPE_F32)
                return STATUS_OK;
        const Dtype next = value->tensor->meta.dtype;
        if (next != DTYPE_F32 && next != lower)
                return fail(STATUS_DTYPE,
                            "a %s tensor before any Float tensor, in a region of torch.autocast to %s: "
                            "Unexpected floating ScalarType in at::autocast::prioritize",
                            dtype_words(next), dtype_words(lower));
        *inout = next;
        return STATUS_OK;
}

static Status dtype_of(Policy policy, Dtype lower, const Value *args, uint32_t n, Dtype *out_dtype)
{
        Dtype dtype = policy == FLOAT32 ? DTYPE_F32 : lower;
        for (uint32_t i = 0; i < n && policy == WIDEST; i++) {
                TRY(widen_by(&args[i], lower, &dtype));
                for (uint32_t k = 0; value_is_sequence(args[i]) && k < args[i].seq->n; k++)
                        TRY(widen_by(&args[i].seq->items[k], lower, &dtype));
        }
        *out_dtype = dtype;
        return STATUS_OK;
}

// ---- casts ----
// *out is counted.
static Status cast(Emitter *emitter, const Value *value, Dtype dtype, Value *out)
{
        if (!is_eligible(value) || value->tensor->meta.dtype == dtype) {
                *out = value_ref(*value);
                return STATUS_OK;
        }
        return EMIT(emitter, "aten::to.dtype", out, *value, value_dtype(dtype));
}

static Status cast_list(Emitter *emitter, const Value *list, Dtype dtype, Value *out)
{
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(seq_new(list->seq->n, &seq));
        for (uint32_t i = 0; i < seq->n; i++)
                TRY(cast(emitter, &list->seq->items[i], dtype, &seq->items[i]));
        *out = value_seq_take(list->kind, take_ptr(seq));
        return STATUS_OK;
}

static Status emit_cast(Emitter *emitter, const Overload *overload, Dtype dtype, const Value *args,
                        uint64_t given, Value *out)
{
        Value casted[SCHEMA_MAX_ARGS] = { 0 };
        uint32_t n = 0;
        Status status = STATUS_OK;
        for (; n < overload->schema.n_args && status == STATUS_OK; n++) {
                casted[n] = value_none();
                bool is_list = overload->schema.args[n].type == ARG_TENSOR && value_is_sequence(args[n]);
                status = is_list ? cast_list(emitter, &args[n], dtype, &casted[n])
                                 : cast(emitter, &args[n], dtype, &casted[n]);
        }
        if (status == STATUS_OK)
                status = emit(emitter, overload, casted, given, out);
        while (n > 0)
                value_unref(casted[--n]);
        return status;
}

Status emit_autocast(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given,
                     Value *out)
{
        const Row *row = bsearch(overload->name, rows, ARRAY_LENGTH(rows), sizeof(rows[0]), compare_row);
        if (row == NULL) // its parts may have a policy
                return emit_plain(emitter, overload, args, given, out);
        if (row->policy == REFUSED)
                return fail(STATUS_UNSUPPORTED,
                            "%s inside of torch.autocast is not supported; export the model without it",
                            overload->schema.name);
        Dtype dtype = DTYPE_NONE;
        if (row->policy != UNCHANGED)
                TRY(dtype_of(row->policy, emitter->autocast_dtype, args, overload->schema.n_args, &dtype));
        emitter->autocast = false;
        Status status = row->policy == UNCHANGED ? emit_plain(emitter, overload, args, given, out)
                                                 : emit_cast(emitter, overload, dtype, args, given, out);
        emitter->autocast = true;
        return status;
}
