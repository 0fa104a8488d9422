// SPDX-License-Identifier: Apache-2.0
// compose.c: expressions of emitted calls; the first failure is kept and ends all that follows.
#include "core/ops/compose.h"

#include <stdlib.h>
#include <string.h>
#include "core/ops/pointwise.h"

void compose_begin(Compose *c, Emitter *emitter, const OpCall *call)
{
        compose_begin_bare(c, emitter, call->schema->name);
        c->call = call;
}

void compose_begin_bare(Compose *c, Emitter *emitter, const char *name)
{
        c->emitter = emitter;
        c->call = NULL;
        c->name = name;
        c->status = STATUS_OK;
        c->n_made = 0;
        c->capacity = COMPOSE_INLINE;
        c->made = c->few;
}

Status compose_end(Compose *c, Value result, Value *out)
{
        if (c->status == STATUS_OK)
                *out = value_ref(result);
        for (uint32_t i = 0; i < c->n_made; i++)
                value_clear(&c->made[i]);
        if (c->made != c->few)
                free(c->made);
        c->n_made = 0;
        c->made = c->few;
        return c->status;
}

void compose_check(Compose *c, Status status)
{
        if (c->status == STATUS_OK)
                c->status = status;
}

static Status grow(Compose *c)
{
        if (c->n_made < c->capacity)
                return STATUS_OK;
        Value *more = malloc(2 * (size_t)c->capacity * sizeof(*more));
        if (more == NULL)
                return fail_memory();
        memcpy(more, c->made, c->n_made * sizeof(*more));
        if (c->made != c->few)
                free(c->made);
        c->made = more;
        c->capacity *= 2;
        return STATUS_OK;
}

Value compose_keep(Compose *c, Value take_value)
{
        if (c->status == STATUS_OK)
                compose_check(c, grow(c));
        if (c->status != STATUS_OK) {
                value_clear(&take_value);
                return value_none();
        }
        c->made[c->n_made++] = take_value;
        return take_value;
}

Value compose_emit(Compose *c, const char *name, const Value *args, uint32_t n_args)
{
        Value made = value_none();
        if (c->status != STATUS_OK)
                return made;
        c->status = emit_values(c->emitter, name, args, n_args, &made);
        return c->status == STATUS_OK ? compose_keep(c, made) : value_none();
}

// ---- arguments ----
static int position(Compose *c, const char *name)
{
        const Schema *schema = c->call->schema;
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (strcmp(schema->args[i].name, name) == 0)
                        return (int)i;
        }
        compose_check(c, fail(STATUS_INTERNAL, "%s has no argument %s", schema->name, name));
        return -1;
}

Value compose_arg(Compose *c, const char *name)
{
        int at = position(c, name);
        return at < 0 ? value_none() : c->call->args[at];
}

bool compose_has(Compose *c, const char *name)
{
        int at = position(c, name);
        return at >= 0 && !arg_is_none(c->call, at);
}

int64_t compose_int(Compose *c, const char *name)
{
        int at = position(c, name);
        int64_t value = 0;
        if (at >= 0 && c->status == STATUS_OK)
                compose_check(c, arg_int(c->call, at, &value));
        return value;
}

double compose_double(Compose *c, const char *name)
{
        int at = position(c, name);
        double value = 0;
        if (at >= 0 && c->status == STATUS_OK)
                compose_check(c, arg_double(c->call, at, &value));
        return value;
}

bool compose_bool(Compose *c, const char *name)
{
        int at = position(c, name);
        return at >= 0 && arg_bool(c->call, at, false);
}

int compose_int_list(Compose *c, const char *name, int64_t out[MAX_RANK])
{
        int at = position(c, name), n = 0;
        if (at >= 0 && c->status == STATUS_OK)
                compose_check(c, arg_ints(c->call, at, MAX_RANK, out, &n));
        return MAX(n, 0);
}

int compose_dim(Compose *c, const char *name, int rank)
{
        int at = position(c, name), dim = 0;
        if (at >= 0 && c->status == STATUS_OK)
                compose_check(c, arg_dim(c->call, at, rank, &dim));
        return dim;
}

// ---- values ----
const TensorMeta *compose_meta(Compose *c, Value tensor)
{
        static const TensorMeta none = { .dtype = DTYPE_F32 };
        if (tensor.kind == VALUE_TENSOR)
                return &tensor.tensor->meta;
        compose_check(c, c->status != STATUS_OK ? c->status
                                                : fail(STATUS_VALUE, "%s: a tensor is missing", c->name));
        return &none;
}

Value compose_ints(Compose *c, const int64_t *items, int n)
{
        Value list = value_none();
        if (c->status == STATUS_OK)
                compose_check(c, value_ints_new(VALUE_LIST, items, (uint32_t)n, &list));
        return c->status == STATUS_OK ? compose_keep(c, list) : value_none();
}

Value compose_list(Compose *c, const Value *items, uint32_t n)
{
        Seq *seq = NULL;
        if (c->status == STATUS_OK)
                compose_check(c, seq_new(n, &seq));
        if (c->status != STATUS_OK)
                return value_none();
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_ref(items[i]);
        return compose_keep(c, value_seq_take(VALUE_LIST, seq));
}

Value compose_tuple(Compose *c, const Value *items, uint32_t n)
{
        Value tuple = compose_list(c, items, n);
        if (!compose_failed(c))
                tuple.kind = VALUE_TUPLE;
        return tuple;
}

Value compose_text(Compose *c, const char *text)
{
        Value made = value_none();
        if (c->status == STATUS_OK)
                compose_check(c, value_str_new(text, strlen(text), &made));
        return c->status == STATUS_OK ? compose_keep(c, made) : value_none();
}

uint32_t compose_length(Value list)
{
        return value_is_sequence(list) ? list.seq->n : 0;
}

Value compose_item(Compose *c, Value list, uint32_t k)
{
        if (c->status != STATUS_OK)
                return value_none();
        if (value_is_sequence(list) && k < list.seq->n)
                return list.seq->items[k];
        compose_check(c, fail(STATUS_INTERNAL, "%s: item %u of a list is missing", c->name, k));
        return value_none();
}

Value compose_cast(Compose *c, Value tensor, Dtype dtype)
{
        if (tensor.kind != VALUE_TENSOR || tensor.tensor->meta.dtype == dtype)
                return tensor;
        return OP(c, "aten::_to_copy", tensor, value_dtype(dtype));
}

Value compose_wide(Compose *c, Value tensor)
{
        if (tensor.kind != VALUE_TENSOR || (DTYPES_HALFS >> tensor.tensor->meta.dtype & 1) == 0)
                return tensor;
        return compose_cast(c, tensor, DTYPE_F32);
}

Dtype compose_common_dtype(Compose *c, Value a, Value b)
{
        Promotion promotion = PROMOTION_INIT;
        Dtype dtype = DTYPE_F32;
        compose_check(c, promotion_add(&promotion, compose_meta(c, a)));
        compose_check(c, promotion_add(&promotion, compose_meta(c, b)));
        compose_check(c, promotion_result(&promotion, &dtype));
        return dtype;
}
