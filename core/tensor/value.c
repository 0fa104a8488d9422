// SPDX-License-Identifier: Apache-2.0
// value.c: counted values. Containers are written only between their creation and the moment they
// are shared, and never contain themselves, so counting frees everything; nesting is capped where
// values are built from client data, so the recursions here are shallow.
#include "core/tensor/value.h"

#include <string.h>
#include "core/base/limits.h"

static bool is_sequence(ValueKind kind)
{
        return kind == VALUE_SLICE || kind == VALUE_BATCH || (kind >= VALUE_LIST && kind <= VALUE_SIZE);
}

static bool is_text(ValueKind kind)
{
        return kind == VALUE_STR || kind == VALUE_DEVICE || kind == VALUE_LAYOUT;
}

// core/graph owns graphs; a value only borrows one, as it borrows nodes.
Value value_ref(Value value)
{
        if (is_text(value.kind))
                refcount_get(&value.str->ref);
        else if (is_sequence(value.kind))
                refcount_get(&value.seq->ref);
        else if (value.kind == VALUE_DICT)
                refcount_get(&value.dict->ref);
        else if (value.kind == VALUE_TENSOR)
                refcount_get(&value.tensor->ref);
        return value;
}

static void str_unref(Str *str)
{
        if (refcount_put(&str->ref))
                free(str);
}

void value_unref(Value value)
{
        if (is_text(value.kind))
                str_unref(value.str);
        else if (is_sequence(value.kind))
                seq_unref(value.seq);
        else if (value.kind == VALUE_DICT)
                dict_unref(value.dict);
        else if (value.kind == VALUE_TENSOR)
                tensor_unref(value.tensor);
}

void value_clear(Value *value)
{
        value_unref(*value);
        *value = value_none();
}

Status str_new(const char *text, size_t n, Str **out_str)
{
        if (n >= UINT32_MAX)
                return fail_memory();
        Str *str = malloc(sizeof(*str) + n + 1);
        if (str == NULL)
                return fail_memory();
        refcount_init(&str->ref);
        str->n = (uint32_t)n;
        if (n > 0)
                memcpy(str->text, text, n);
        str->text[n] = '\0';
        *out_str = str;
        return STATUS_OK;
}

Status value_str_new(const char *text, size_t n, Value *out_value)
{
        Str *str;
        TRY(str_new(text, n, &str));
        *out_value = (Value){ .kind = VALUE_STR, .str = str };
        return STATUS_OK;
}

Status seq_new(uint32_t n, Seq **out_seq)
{
        Seq *seq = calloc(1, sizeof(*seq) + (size_t)n * sizeof(seq->items[0]));
        if (seq == NULL)
                return fail_memory();
        refcount_init(&seq->ref);
        seq->n = n;
        *out_seq = seq;
        return STATUS_OK;
}

Status dict_new(uint32_t n, Dict **out_dict)
{
        Dict *dict = calloc(1, sizeof(*dict) + (size_t)n * sizeof(dict->items[0]));
        if (dict == NULL)
                return fail_memory();
        refcount_init(&dict->ref);
        dict->n = n;
        *out_dict = dict;
        return STATUS_OK;
}

Seq *seq_unref(Seq *seq)
{
        if (seq != NULL && refcount_put(&seq->ref)) {
                for (uint32_t i = 0; i < seq->n; i++)
                        value_unref(seq->items[i]);
                free(seq);
        }
        return NULL;
}

Dict *dict_unref(Dict *dict)
{
        if (dict != NULL && refcount_put(&dict->ref)) {
                for (uint32_t i = 0; i < dict->n; i++) {
                        if (dict->items[i].key != NULL)
                                str_unref(dict->items[i].key);
                        value_unref(dict->items[i].value);
                }
                free(dict);
        }
        return NULL;
}

const Value *dict_get(const Dict *dict, const char *key)
{
        size_t n = strlen(key);
        for (uint32_t i = 0; i < dict->n; i++) {
                const Str *have = dict->items[i].key;
                if (have != NULL && have->n == n && memcmp(have->text, key, n) == 0)
                        return &dict->items[i].value;
        }
        return NULL;
}

Status value_ints_new(ValueKind kind, const int64_t *items, uint32_t n, Value *out_value)
{
        Seq *seq;
        TRY(seq_new(n, &seq));
        for (uint32_t i = 0; i < n; i++)
                seq->items[i] = value_int(items[i]);
        *out_value = value_seq_take(kind, seq);
        return STATUS_OK;
}

Status value_wrap_number(Value number, Budget *budget, Tensor **out_tensor)
{
        static const Dtype dtypes[] = { [VALUE_BOOL] = DTYPE_BOOL,
                                        [VALUE_INT] = DTYPE_I64,
                                        [VALUE_FLOAT] = DTYPE_F64,
                                        [VALUE_COMPLEX] = DTYPE_C128 };
        if (!value_is_number(number))
                return fail(STATUS_INTERNAL, "a %s was given where a number is wrapped",
                            value_kind_name(number.kind));
        TensorMeta meta;
        meta_init(&meta, dtypes[number.kind], 0, NULL);
        meta.wrapped = true;
        Tensor *tensor;
        TRY(tensor_new(&meta, budget, &tensor));
        void *data = tensor_data(tensor);
        if (number.kind == VALUE_BOOL)
                *(uint8_t *)data = number.b;
        else if (number.kind == VALUE_COMPLEX)
                memcpy(data, &number.c, sizeof(number.c));
        else
                memcpy(data, number.kind == VALUE_INT ? (const void *)&number.i : (const void *)&number.f, 8);
        *out_tensor = tensor;
        return STATUS_OK;
}

// ---- nesting ----
// A graph can nest a list in a list at every node, or hold the same list twice at
// every node; `budget` counts the latter down.
static bool nesting_fits(Value value, int64_t levels, uint32_t *budget)
{
        bool is_dict = value.kind == VALUE_DICT;
        if (!is_dict && !is_sequence(value.kind))
                return true;
        uint32_t n = is_dict ? value.dict->n : value.seq->n;
        if (levels == 0 || n > *budget)
                return false;
        *budget -= n;
        for (uint32_t i = 0; i < n; i++) {
                Value item = is_dict ? value.dict->items[i].value : value.seq->items[i];
                if (!nesting_fits(item, levels - 1, budget)) // depth: max_nested_values
                        return false;
        }
        return true;
}

Status value_check_nesting(Value value)
{
        uint32_t budget = VALUE_MAX_ITEMS;
        if (nesting_fits(value, limits.max_nested_values, &budget))
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE, "a %s nests deeper than %d levels or holds more than %d items",
                    value_kind_name(value.kind), (int)limits.max_nested_values, VALUE_MAX_ITEMS);
}

Status value_walk(Value value, Status (*visit)(void *context, const Value *leaf), void *context)
{
        if (is_sequence(value.kind)) {
                for (uint32_t i = 0; i < value.seq->n; i++)
                        TRY(value_walk(value.seq->items[i], visit, context));
                return STATUS_OK;
        }
        if (value.kind == VALUE_DICT) {
                for (uint32_t i = 0; i < value.dict->n; i++)
                        TRY(value_walk(value.dict->items[i].value, visit, context));
                return STATUS_OK;
        }
        return visit(context, &value);
}

// Whether two values are the same object: equal numbers, or the same counted thing.
static bool same_value(const Value *a, const Value *b)
{
        if (a->kind != b->kind)
                return false;
        switch (a->kind) {
        case VALUE_NONE:
        case VALUE_ELLIPSIS:
        case VALUE_DYNAMIC:
        case VALUE_ABSENT:
                return true;
        case VALUE_BOOL:
                return a->b == b->b;
        case VALUE_DTYPE:
                return a->dtype == b->dtype;
        case VALUE_MEMORY_FORMAT:
                return a->memory_format == b->memory_format;
        case VALUE_INT:
                return a->i == b->i;
        case VALUE_FLOAT:
                return memcmp(&a->f, &b->f, sizeof(a->f)) == 0;
        case VALUE_COMPLEX:
                return memcmp(&a->c, &b->c, sizeof(a->c)) == 0;
        default:
                return a->seq == b->seq; // every other member is one pointer
        }
}

typedef Status MapLeaf(void *context, const Value *leaf, Value *out);

static Status map_sequence(Value value, MapLeaf *map, void *context, Value *out_value)
{
        _cleanup_(seq_unrefp) Seq *seq = NULL;
        TRY(seq_new(value.seq->n, &seq));
        seq->fields = value.seq->fields;
        bool changed = false;
        for (uint32_t i = 0; i < seq->n; i++) {
                TRY(value_map(value.seq->items[i], map, context, &seq->items[i]));
                changed |= !same_value(&seq->items[i], &value.seq->items[i]);
        }
        if (!changed) {
                *out_value = value_ref(value);
                return STATUS_OK;
        }
        *out_value = value_seq_take(value.kind, take_ptr(seq));
        out_value->tag = value.tag;
        return STATUS_OK;
}

static Status map_dict(Value value, MapLeaf *map, void *context, Value *out_value)
{
        _cleanup_(dict_unrefp) Dict *dict = NULL;
        TRY(dict_new(value.dict->n, &dict));
        bool changed = false;
        for (uint32_t i = 0; i < dict->n; i++) {
                const struct DictItem *item = &value.dict->items[i];
                if (item->key != NULL)
                        refcount_get(&item->key->ref);
                dict->items[i].key = item->key;
                TRY(value_map(item->value, map, context, &dict->items[i].value));
                changed |= !same_value(&dict->items[i].value, &item->value);
        }
        *out_value = changed ? (Value){ .kind = VALUE_DICT, .dict = take_ptr(dict) } : value_ref(value);
        return STATUS_OK;
}

Status value_map(Value value, Status (*map)(void *context, const Value *leaf, Value *out), void *context,
                 Value *out_value)
{
        if (is_sequence(value.kind))
                return map_sequence(value, map, context, out_value);
        if (value.kind == VALUE_DICT)
                return map_dict(value, map, context, out_value);
        return map(context, &value, out_value);
}

const char *value_kind_name(ValueKind kind)
{
        static const char *const names[] = {
                [VALUE_NONE] = "NoneType",
                [VALUE_BOOL] = "bool",
                [VALUE_INT] = "int",
                [VALUE_FLOAT] = "float",
                [VALUE_COMPLEX] = "complex",
                [VALUE_STR] = "str",
                [VALUE_DTYPE] = "torch.dtype",
                [VALUE_DEVICE] = "torch.device",
                [VALUE_LAYOUT] = "torch.layout",
                [VALUE_MEMORY_FORMAT] = "torch.memory_format",
                [VALUE_ELLIPSIS] = "ellipsis",
                [VALUE_SLICE] = "slice",
                [VALUE_LIST] = "list",
                [VALUE_TUPLE] = "tuple",
                [VALUE_SIZE] = "torch.Size",
                [VALUE_DICT] = "dict",
                [VALUE_BATCH] = "BatchedTensor",
                [VALUE_TENSOR] = "Tensor",
                [VALUE_GRAPH] = "GraphModule",
                [VALUE_NODE] = "Node",
                [VALUE_DYNAMIC] = "value not known yet",
                [VALUE_ABSENT] = "nothing",
        };
        return names[kind];
}

void value_add_literal(Value literal, uint32_t most_bytes, Text *text)
{
        switch (literal.kind) {
        case VALUE_NONE:
                text_add(text, "null");
                break;
        case VALUE_BOOL:
                text_add(text, literal.b ? "true" : "false");
                break;
        case VALUE_INT:
                text_add_int(text, literal.i);
                break;
        case VALUE_FLOAT:
                text_add_f64(text, literal.f);
                break;
        case VALUE_STR:
                text_add_json_n(text, literal.str->text, MIN(literal.str->n, most_bytes));
                break;
        default:
                text_add(text, value_kind_name(literal.kind));
        }
}
