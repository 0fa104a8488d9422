// SPDX-License-Identifier: Apache-2.0
// observe_rows.c: what rules that observe a run insert (core/edit/observe.h), for values of any
// kind. Tensors in containers count each; numbers and texts have no statistics. Only nodes that
// core inserts may call them: no list has their names, and resolving refuses them elsewhere.
#include "core/targets/py.h"

#include <string.h>
#include "core/base/text.h"

// ---- statistics ----

static bool has_stats(const Value *leaf)
{
        return leaf->kind == VALUE_TENSOR && (DTYPES_COMPLEX >> leaf->tensor->meta.dtype & 1) == 0;
}

static Status stats_of_leaf(void *context, const Value *leaf, Value *out)
{
        *out = value_none();
        return has_stats(leaf) ? EMIT((Emitter *)context, "fxserve::stats", out, *leaf) : STATUS_OK;
}

static Status stats_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return value_map(call->args[SELF], stats_of_leaf, emitter, out);
}

// ---- copies ----

static Status copy_leaf(void *context, const Value *leaf, Value *out)
{
        if (leaf->kind == VALUE_TENSOR)
                return EMIT((Emitter *)context, "aten::clone", out, *leaf);
        *out = value_ref(*leaf);
        return STATUS_OK;
}

static Status copy_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        return value_map(call->args[SELF], copy_leaf, emitter, out);
}

// ---- arguments ----

static Status set_item(Dict *dict, uint32_t at, const char *key, Value take_value)
{
        dict->items[at].value = take_value;
        return str_new(key, strlen(key), &dict->items[at].key);
}

// {"shape": ..., "dtype": ..., "stride": ...}: known while recording, so nothing is kept.
static Status describe_tensor(const TensorMeta *meta, Value *out)
{
        Value shape = value_none(), stride = value_none();
        _cleanup_(dict_unrefp) Dict *dict = NULL;
        TRY(dict_new(3, &dict));
        TRY(value_ints_new(VALUE_SIZE, meta->size, meta->rank, &shape));
        TRY(set_item(dict, 0, "shape", shape));
        TRY(set_item(dict, 1, "dtype", value_dtype(meta->dtype)));
        TRY(value_ints_new(VALUE_TUPLE, meta->stride, meta->rank, &stride));
        TRY(set_item(dict, 2, "stride", stride));
        *out = (Value){ .kind = VALUE_DICT, .dict = take_ptr(dict) };
        return STATUS_OK;
}

static Status describe_leaf(void *context, const Value *leaf, Value *out)
{
        Emitter *emitter = context;
        switch (leaf->kind) {
        case VALUE_TENSOR:
                return describe_tensor(&leaf->tensor->meta, out);
        case VALUE_GRAPH:
                return text_value("graph", out);
        case VALUE_DYNAMIC:
                return fail(STATUS_DYNAMIC, "an argument is not known before the run");
        default:
                emitter_number_read(emitter, *leaf);
                *out = value_ref(*leaf);
                out->tag = 0;
                return STATUS_OK;
        }
}

static Status describe_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        TRY(value_map(call->args[SELF], describe_leaf, emitter, out));
        return value_check_nesting(*out);
}

// ---- the check ----

enum { VALUE, INPUTS, NODE, NAN_TOO, INF_TOO };

typedef struct Inputs {
        Value *tensors; // borrowed
        uint32_t n, capacity;
        Text names;
        const char *name; // of the node whose value is walked
} Inputs;

static void inputs_deinit(Inputs *inputs)
{
        free(inputs->tensors);
        text_deinit(&inputs->names);
}

static Status take_input(void *context, const Value *leaf)
{
        Inputs *inputs = context;
        if (!has_stats(leaf))
                return STATUS_OK;
        TRY(array_reserve(&inputs->tensors, &inputs->capacity, inputs->n + 1, sizeof(Value)));
        inputs->tensors[inputs->n++] = *leaf;
        text_addf(&inputs->names, "%s\n", inputs->name);
        return STATUS_OK;
}

// `inputs`: a dict, name of a node -> its value.
static Status take_inputs(const Value *inputs, Inputs *out)
{
        for (uint32_t i = 0; inputs->kind == VALUE_DICT && i < inputs->dict->n; i++) {
                out->name = inputs->dict->items[i].key->text;
                TRY(value_walk(inputs->dict->items[i].value, take_input, out));
        }
        text_add(&out->names, "");
        return text_status(&out->names);
}

typedef struct Checking {
        Emitter *emitter;
        const OpCall *call;
        Value inputs, names;
} Checking;

static Status check_leaf(void *context, const Value *leaf)
{
        Checking *checking = context;
        const Value *args = checking->call->args;
        _cleanup_(value_clear) Value nothing = value_none();
        if (leaf->kind != VALUE_TENSOR || !dtype_is_float(leaf->tensor->meta.dtype))
                return STATUS_OK;
        return EMIT(checking->emitter, "fxserve::assert_finite", &nothing, *leaf, checking->inputs,
                    checking->names, args[NODE], args[NAN_TOO], args[INF_TOO]);
}

static Status check_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(inputs_deinit) Inputs inputs = { 0 };
        _cleanup_(value_clear) Value list = value_none();
        _cleanup_(value_clear) Value names = value_none();
        Seq *seq;
        TRY(take_inputs(&call->args[INPUTS], &inputs));
        TRY(seq_new(inputs.n, &seq));
        for (uint32_t i = 0; i < inputs.n; i++)
                seq->items[i] = value_ref(inputs.tensors[i]);
        list = value_seq_take(VALUE_LIST, seq);
        TRY(text_value(inputs.names.data, &names));
        Checking checking = { .emitter = emitter, .call = call, .inputs = list, .names = names };
        *out = value_none();
        return value_walk(call->args[VALUE], check_leaf, &checking);
}

static const PyRow rows[] = {
        { "fxserve.stats", "fxserve::stats_of(Any value) -> Any", .expand = stats_expand,
          .needs = "fxserve::stats", .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "fxserve.copy", "fxserve::copy_of(Any value) -> Any", .expand = copy_expand, .needs = "aten::clone",
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "fxserve.describe", "fxserve::describe(Any value) -> Any", .expand = describe_expand,
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
        { "fxserve.assert_finite",
          "fxserve::_assert_finite_of(Any value, Any inputs, Any node, Any nan, Any inf) -> Any",
          .expand = check_expand, .needs = "fxserve::assert_finite",
          .traits = TRAIT_FRESH | TRAIT_DRAWS_NOTHING },
};
const PyTable py_observe_rows = PY_TABLE(rows);
