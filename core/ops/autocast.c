// SPDX-License-Identifier: Apache-2.0
// autocast.c: calls inside of torch.autocast("cpu"). PyTorch casts at the outermost operator that
// has a policy; what that operator is made of is no longer watched. So does emit_autocast: the
// region is off while such a call is emitted.
#include "core/ops/emitter.h"

#include <stdlib.h>
#include <string.h>

typedef enum Policy { LOWER, FLOAT32, WIDEST, REFUSED } Policy;
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
        return value->kind == VALUE_TENSOR && dtype_is_float(value->tensor->meta.dtype) &&
               value->tensor->meta.dtype != DTYPE_F64;
}

// ---- the dtype that arguments are cast to ----
static void widen(const Value *value, Dtype *inout)
{
        if (is_eligible(value) && value->tensor->meta.dtype == DTYPE_F32)
                *inout = DTYPE_F32;
        for (uint32_t i = 0; value_is_sequence(*value) && i < value->seq->n; i++) {
                if (is_eligible(&value->seq->items[i]) &&
                    value->seq->items[i].tensor->meta.dtype == DTYPE_F32)
                        *inout = DTYPE_F32;
        }
}

static Dtype dtype_of(Policy policy, Dtype lower, const Value *args, uint32_t n)
{
        Dtype dtype = policy == FLOAT32 ? DTYPE_F32 : lower;
        for (uint32_t i = 0; i < n && policy == WIDEST; i++)
                widen(&args[i], &dtype);
        return dtype;
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
        Dtype dtype = dtype_of(row->policy, emitter->autocast_dtype, args, overload->schema.n_args);
        emitter->autocast = false;
        Status status = emit_cast(emitter, overload, dtype, args, given, out);
        emitter->autocast = true;
        return status;
}
