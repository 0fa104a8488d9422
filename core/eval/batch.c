// SPDX-License-Identifier: Apache-2.0
// batch.c: the outermost level is taken apart first, so a batch holds batches of deeper levels
// only, and a call is made with what none is left in. value_check_nesting bounds how deep they
// nest.
#include "core/eval/batch.h"

#include <string.h>
#include "core/base/limits.h"

// ---- finding ----
// The lowest level other than `keep`; UINT32_MAX: none.
static const Value *outermost(const Value *value, uint32_t keep, const Value *best)
{
        if (value->kind == VALUE_BATCH)
                return value->tag != keep && (best == NULL || value->tag < best->tag) ? value : best;
        if (value_is_sequence(*value) || value->kind == VALUE_SLICE) {
                for (uint32_t i = 0; i < value->seq->n; i++)
                        best = outermost(&value->seq->items[i], keep, best); // depth: max_nested_values
        }
        return best;
}

static const Value *outermost_of(const CallArgs *call, uint32_t keep)
{
        const Value *best = NULL;
        for (uint32_t i = 0; i < call->n_args; i++)
                best = outermost(&call->args[i], keep, best);
        for (uint32_t i = 0; i < call->n_kwargs; i++)
                best = outermost(&call->kwargs[i].value, keep, best);
        return best;
}

bool batch_among(const CallArgs *call)
{
        return outermost_of(call, 0) != NULL;
}

// ---- the arguments for one index ----
// *out is counted.
static Status pick(const Value *value, uint32_t level, uint32_t at, Value *out)
{
        if (value->kind == VALUE_BATCH && value->tag == level) {
                if (at >= value->seq->n)
                        return fail(STATUS_SHAPE, "vmap: tensors of one level have different sizes");
                *out = value_ref(value->seq->items[at]);
                return STATUS_OK;
        }
        if (!value_is_sequence(*value) && value->kind != VALUE_SLICE) {
                *out = value_ref(*value);
                return STATUS_OK;
        }
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(seq_new(value->seq->n, &seq));
        seq->fields = value->seq->fields;
        for (uint32_t i = 0; i < seq->n; i++)
                TRY(pick(&value->seq->items[i], level, at, &seq->items[i])); // depth: max_nested_values
        *out = value_seq_take(value->kind, take_ptr(seq));
        return STATUS_OK;
}

typedef struct Picked {
        CallArgs call;
        Value *args;
        struct DictItem *kwargs;
} Picked;

static void picked_deinit(Picked *picked)
{
        for (uint32_t i = 0; i < picked->call.n_args && picked->args != NULL; i++)
                value_unref(picked->args[i]);
        for (uint32_t i = 0; i < picked->call.n_kwargs && picked->kwargs != NULL; i++)
                value_unref(picked->kwargs[i].value);
        free(picked->args);
        free(picked->kwargs);
}

static Status pick_all(const CallArgs *call, uint32_t level, uint32_t at, Picked *picked)
{
        picked->call = (CallArgs){ .n_args = call->n_args, .n_kwargs = call->n_kwargs };
        picked->args = new_array(call->n_args, sizeof(Value));
        picked->kwargs = new_array(call->n_kwargs, sizeof(*picked->kwargs));
        if (picked->args == NULL || picked->kwargs == NULL)
                return fail_memory();
        picked->call.args = picked->args;
        picked->call.kwargs = picked->kwargs;
        for (uint32_t i = 0; i < call->n_args; i++)
                TRY(pick(&call->args[i], level, at, &picked->args[i]));
        for (uint32_t i = 0; i < call->n_kwargs; i++) {
                picked->kwargs[i].key = call->kwargs[i].key; // borrowed
                TRY(pick(&call->kwargs[i].value, level, at, &picked->kwargs[i].value));
        }
        return STATUS_OK;
}

// ---- results ----
static bool same_plain(const Value *a, const Value *b)
{
        if (a->kind != b->kind)
                return false;
        switch (a->kind) {
        case VALUE_NONE:
                return true;
        case VALUE_BOOL:
                return a->b == b->b;
        case VALUE_INT:
                return a->i == b->i;
        case VALUE_FLOAT:
                return a->f == b->f;
        case VALUE_DTYPE:
                return a->dtype == b->dtype;
        default:
                return false;
        }
}

static bool all_same(const Value *results, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                if (!same_plain(&results[0], &results[i]))
                        return false;
        }
        return true;
}

static Status join(const Value *results, uint32_t n, uint32_t level, Value *out);

// The k-th item of every result, joined.
static Status join_item(const Value *results, uint32_t n, uint32_t k, uint32_t level, Value *out)
{
        _cleanup_(freep) Value *column = new_array(n, sizeof(*column));
        if (column == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++) {
                if (results[i].kind != results[0].kind || results[i].seq->n != results[0].seq->n)
                        return fail(STATUS_RUN,
                                    "vmap: the call returns %u values for one index, %u for another",
                                    results[0].seq->n, value_is_sequence(results[i]) ? results[i].seq->n : 1);
                column[i] = results[i].seq->items[k];
        }
        return join(column, n, level, out);
}

// One result per index, as one value: lists item by item, plain numbers that are all the same as
// one.
static Status join(const Value *results, uint32_t n, uint32_t level, Value *out)
{
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        if (all_same(results, n)) {
                *out = value_ref(results[0]);
                return STATUS_OK;
        }
        if (value_is_sequence(results[0])) {
                TRY(seq_new(results[0].seq->n, &seq));
                seq->fields = results[0].seq->fields;
                for (uint32_t k = 0; k < seq->n; k++)
                        TRY(join_item(results, n, k, level, &seq->items[k])); // depth: max_nested_values
                *out = value_seq_take(results[0].kind, take_ptr(seq));
                return STATUS_OK;
        }
        TRY(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(results[i]);
        *out = value_seq_take(VALUE_BATCH, take_ptr(seq));
        out->tag = level;
        return value_check_nesting(*out);
}

// ---- calls ----
static Status call_each(const BatchRun *run, const CallArgs *call, const Value *batch, Value *results)
{
        for (uint32_t i = 0; i < batch->seq->n; i++) {
                _cleanup_(picked_deinit) Picked picked = { 0 };
                TRY(pick_all(call, batch->tag, i, &picked));
                TRY(batch_call(run, &picked.call, &results[i])); // depth: levels
        }
        return STATUS_OK;
}

Status batch_call(const BatchRun *run, const CallArgs *call, Value *out)
{
        const Value *batch = outermost_of(call, run->keep_level);
        if (batch == NULL)
                return run->run(run->context, call, out);
        uint32_t n = batch->seq->n;
        _cleanup_(freep) Value *results = new_array(n, sizeof(*results));
        if (results == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++)
                results[i] = value_none();
        _cleanup_(value_clear) Value joined = value_none();
        Status status = call_each(run, call, batch, results);
        if (status == STATUS_OK)
                status = join(results, n, batch->tag, &joined);
        for (uint32_t i = 0; i < n; i++)
                value_unref(results[i]);
        if (status == STATUS_OK)
                *out = value_ref(joined);
        return status;
}
