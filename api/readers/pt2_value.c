// SPDX-License-Identifier: Apache-2.0
// pt2_value.c: the Argument union. One table says for each tag how an item is read and how deep it
// is listed; nesting is three levels at most, except for as_string_to_argument, which is capped at
// limits.max_nested_values.
#include "api/readers/pt2_parts.h"

#include <string.h>
#include "core/base/limits.h"

Status value_list_add(ValueList *list, Value take_value)
{
        Status status = array_reserve(&list->items, &list->capacity, list->n + 1, sizeof(*list->items));
        if (status == STATUS_OK)
                list->items[list->n++] = take_value;
        else
                value_unref(take_value);
        return status;
}

Status value_list_take(ValueList *list, ValueKind kind, Value *out_value)
{
        Seq *seq;
        TRY(seq_new(list->n, &seq));
        if (list->n > 0)
                memcpy(seq->items, list->items, list->n * sizeof(*list->items));
        list->n = 0;
        *out_value = value_seq_take(kind, seq);
        return STATUS_OK;
}

void value_list_deinit(ValueList *list)
{
        for (uint32_t i = 0; i < list->n; i++)
                value_unref(list->items[i]);
        free(list->items);
        *list = (ValueList){ 0 };
}

Node *pt2_value_node(const Pt2Graph *graph, const char *name)
{
        return string_map_get(&graph->values, name);
}

Status pt2_find_value(const Pt2Graph *graph, const char *name, Node **out_node)
{
        *out_node = pt2_value_node(graph, name);
        if (*out_node == NULL)
                return fail(STATUS_MALFORMED, "the value \"%s\" is used before any node makes it", name);
        return STATUS_OK;
}

static Status node_value(const Pt2Graph *graph, const char *name, Value *out_value)
{
        Node *node;
        TRY(pt2_find_value(graph, name, &node));
        *out_value = (Value){ .kind = VALUE_NODE, .node = node };
        return STATUS_OK;
}

static Status read_name(void *out_name, JsonReader *reader, const char *key)
{
        return strcmp(key, "name") == 0 ? json_read_string(reader, out_name, NULL) : json_skip(reader);
}

Status pt2_read_name(JsonReader *reader, const char **out_name)
{
        const char *name = NULL;
        TRY(json_each_member(reader, read_name, &name));
        if (name == NULL)
                return fail(STATUS_MALFORMED, "a value has no \"name\"");
        *out_name = name;
        return STATUS_OK;
}

Status pt2_read_symbol(JsonReader *reader, const char **out_name, Value *out_value)
{
        const char *tag;
        *out_name = NULL;
        *out_value = value_none();
        TRY(json_union_enter(reader, &tag));
        if (strcmp(tag, "as_name") == 0) {
                TRY(json_read_string(reader, out_name, NULL));
        } else if (strcmp(tag, "as_int") == 0) {
                out_value->kind = VALUE_INT;
                TRY(json_read_int(reader, &out_value->i));
        } else if (strcmp(tag, "as_float") == 0) {
                out_value->kind = VALUE_FLOAT;
                TRY(json_read_float(reader, &out_value->f));
        } else if (strcmp(tag, "as_bool") == 0) {
                out_value->kind = VALUE_BOOL;
                TRY(json_read_bool(reader, &out_value->b));
        } else {
                return fail(STATUS_MALFORMED, "\"%s\" cannot be a symbolic number", tag);
        }
        return json_union_leave(reader, tag);
}

// ---- items ----
typedef Status ReadItem(Pt2Graph *graph, JsonReader *reader, Value *out_value);

static Status read_none(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        *out_value = value_none();
        return json_skip(reader);
}

static Status read_int(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        *out_value = value_int(0);
        return json_read_int(reader, &out_value->i);
}

static Status read_float(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        *out_value = value_float(0);
        return json_read_float(reader, &out_value->f);
}

static Status read_bool(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        *out_value = value_bool(false);
        return json_read_bool(reader, &out_value->b);
}

static Status read_string(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        const char *text;
        size_t n;
        TRY(json_read_string(reader, &text, &n));
        return value_str_new(text, n, out_value);
}

static Status read_tensor(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        const char *name;
        if (json_peek(reader) == JSON_STRING) // schema before 8.0 wrote the bare name within optional tensors
                TRY(json_read_string(reader, &name, NULL));
        else
                TRY(pt2_read_name(reader, &name));
        return node_value(graph, name, out_value);
}

static Status read_symbol(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        const char *name;
        TRY(pt2_read_symbol(reader, &name, out_value));
        return name == NULL ? STATUS_OK : node_value(graph, name, out_value);
}

static Status read_optional_tensor(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        const char *tag;
        TRY(json_union_enter(reader, &tag));
        if (strcmp(tag, "as_tensor") == 0)
                TRY(read_tensor(graph, reader, out_value));
        else if (strcmp(tag, "as_none") == 0)
                TRY(read_none(graph, reader, out_value));
        else
                return fail(STATUS_MALFORMED, "\"%s\" cannot be an optional tensor", tag);
        return json_union_leave(reader, tag);
}

static Status read_scalar_type(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        int64_t code;
        TRY(json_read_int(reader, &code));
        Dtype dtype = pt2_dtype(code);
        const char *name = pt2_dtype_name(code);
        if (dtype == DTYPE_NONE && name != NULL)
                return fail(STATUS_UNSUPPORTED, "dtype torch.%s is not supported", name);
        if (dtype == DTYPE_NONE)
                return fail(STATUS_MALFORMED, "scalar type %lld is not one of torch.export's",
                            (long long)code);
        *out_value = value_dtype(dtype);
        return STATUS_OK;
}

static Status read_memory_format(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        static const MemoryFormat formats[] = { MEMORY_FORMAT_CONTIGUOUS, MEMORY_FORMAT_CHANNELS_LAST,
                                                MEMORY_FORMAT_CHANNELS_LAST_3D, MEMORY_FORMAT_PRESERVE };
        int64_t code;
        TRY(json_read_int(reader, &code));
        if (code < 1 || code > (int64_t)ARRAY_LENGTH(formats))
                return fail(STATUS_MALFORMED, "memory format %lld is not one of torch.export's",
                            (long long)code);
        *out_value = (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = formats[code - 1] };
        return STATUS_OK;
}

static Status text_value(ValueKind kind, const char *text, Value *out_value)
{
        TRY(value_str_new(text, strlen(text), out_value));
        out_value->kind = kind;
        return STATUS_OK;
}

static Status read_layout(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        static const char *const layouts[] = { "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
                                               "torch.sparse_bsr", "torch.sparse_bsc", "torch._mkldnn",
                                               "torch.strided" };
        int64_t code;
        TRY(json_read_int(reader, &code));
        if (code < 1 || code > (int64_t)ARRAY_LENGTH(layouts))
                return fail(STATUS_MALFORMED, "layout %lld is not one of torch.export's", (long long)code);
        return text_value(VALUE_LAYOUT, layouts[code - 1], out_value);
}

static Status read_device(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        static const char *const names[] = { "type", "index" };
        JsonText raw, fields[2];
        const char *type;
        int64_t index;
        TRY(json_read_raw(reader, &raw.text, &raw.n));
        TRY(json_text_fields(raw, "a device", graph->scratch, names, 2, fields));
        TRY(json_text_string(fields[0], graph->scratch, &type));
        TRY(json_text_int(fields[1], graph->scratch, -1, &index));
        if (type == NULL)
                return fail(STATUS_MALFORMED, "a device has no \"type\"");
        if (index < 0)
                return text_value(VALUE_DEVICE, type, out_value);
        const char *text = arena_format(graph->scratch, "%s:%lld", type, (long long)index);
        return text == NULL ? fail_memory() : text_value(VALUE_DEVICE, text, out_value);
}

static Status read_complex(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        static const char *const names[] = { "real", "imag" };
        JsonText raw, fields[2];
        double part[2];
        TRY(json_read_raw(reader, &raw.text, &raw.n));
        TRY(json_text_fields(raw, "a complex number", graph->scratch, names, 2, fields));
        for (int i = 0; i < 2; i++) {
                if (fields[i].n == 0)
                        return fail(STATUS_MALFORMED, "a complex number has no \"%s\"", names[i]);
                _cleanup_(json_closep) JsonReader *number = NULL;
                TRY(json_text_open(fields[i], graph->scratch, &number));
                TRY(json_read_float(number, &part[i]));
        }
        *out_value = (Value){ .kind = VALUE_COMPLEX, .c = { part[0], part[1] } };
        return STATUS_OK;
}

// An operator as argument, printed as str(op): "aten.add.Tensor".
static Status read_operator(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        const char *text;
        TRY(json_read_string(reader, &text, NULL));
        if (strncmp(text, "torch.ops.", 10) == 0)
                text += 10;
        return value_str_new(text, strlen(text), out_value);
}

static Status read_custom_object(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        (void)graph;
        (void)out_value;
        const char *name;
        TRY(pt2_read_name(reader, &name));
        return fail(STATUS_UNSUPPORTED,
                    "\"%s\" is a custom (TorchBind) object; such objects are code and cannot be run here",
                    name);
}

// ---- the table ----
static const struct {
        const char *tag;
        ReadItem *read;
        uint8_t lists;   // how many lists are around the item
        ValueKind inner; // kind of the inner list when there are two
} tags[] = {
        { "as_tensor", read_tensor, 0, 0 },
        { "as_int", read_int, 0, 0 },
        { "as_float", read_float, 0, 0 },
        { "as_bool", read_bool, 0, 0 },
        { "as_none", read_none, 0, 0 },
        { "as_ints", read_int, 1, 0 },
        { "as_tensors", read_tensor, 1, 0 },
        { "as_sym_int", read_symbol, 0, 0 },
        { "as_sym_ints", read_symbol, 1, 0 },
        { "as_scalar_type", read_scalar_type, 0, 0 },
        { "as_device", read_device, 0, 0 },
        { "as_layout", read_layout, 0, 0 },
        { "as_memory_format", read_memory_format, 0, 0 },
        { "as_string", read_string, 0, 0 },
        { "as_strings", read_string, 1, 0 },
        { "as_floats", read_float, 1, 0 },
        { "as_bools", read_bool, 1, 0 },
        { "as_sym_bool", read_symbol, 0, 0 },
        { "as_sym_bools", read_symbol, 1, 0 },
        { "as_sym_float", read_symbol, 0, 0 },
        { "as_sym_floats", read_symbol, 1, 0 },
        { "as_optional_tensor", read_optional_tensor, 0, 0 },
        { "as_optional_tensors", read_optional_tensor, 1, 0 },
        { "as_graph", pt2_read_child, 0, 0 },
        { "as_complex", read_complex, 0, 0 },
        { "as_nested_tensors", read_tensor, 2, VALUE_LIST },
        { "as_int_lists", read_int, 2, VALUE_TUPLE },
        { "as_float_lists", read_float, 2, VALUE_LIST },
        { "as_operator", read_operator, 0, 0 },
        { "as_custom_obj", read_custom_object, 0, 0 },
};

static Status read_list(Pt2Graph *graph, JsonReader *reader, ReadItem *read, ValueKind kind, Value *out_value)
{
        _cleanup_(value_list_deinit) ValueList list = { 0 };
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                Value item;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return value_list_take(&list, kind, out_value);
                TRY(read(graph, reader, &item));
                TRY(value_list_add(&list, item));
        }
}

static Status read_lists(Pt2Graph *graph, JsonReader *reader, ReadItem *read, ValueKind inner,
                         Value *out_value)
{
        _cleanup_(value_list_deinit) ValueList list = { 0 };
        TRY(json_enter_array(reader));
        for (;;) {
                bool more;
                Value item;
                TRY(json_next_item(reader, &more));
                if (!more)
                        return value_list_take(&list, VALUE_LIST, out_value);
                TRY(read_list(graph, reader, read, inner, &item));
                TRY(value_list_add(&list, item));
        }
}

static Status read_value(Pt2Graph *graph, JsonReader *reader, const char *tag, int level, Value *out_value);

static Status read_argument(Pt2Graph *graph, JsonReader *reader, int level, Value *out_value)
{
        const char *tag;
        _cleanup_(value_clear) Value value = value_none();
        TRY(json_union_enter(reader, &tag));
        TRY(read_value(graph, reader, tag, level, &value));
        TRY(json_union_leave(reader, tag));
        *out_value = value;
        value = value_none();
        return STATUS_OK;
}

// {"key": Argument, ...}; level counts these only.
static Status read_dict(Pt2Graph *graph, JsonReader *reader, int level, Value *out_value)
{
        if (level >= limits.max_nested_values)
                return fail(STATUS_TOO_LARGE,
                            "an argument is nested deeper than %lld levels (max_nested_values in GET /v1)",
                            (long long)limits.max_nested_values);
        _cleanup_(value_list_deinit) ValueList list = { 0 }; // key, value, key, value ...
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                bool more;
                Value item;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                TRY(text_value(VALUE_STR, key, &item));
                TRY(value_list_add(&list, item));
                TRY(read_argument(graph, reader, level + 1, &item));
                TRY(value_list_add(&list, item));
        }
        Dict *dict;
        TRY(dict_new(list.n / 2, &dict));
        for (uint32_t i = 0; i < dict->n; i++) {
                dict->items[i].key = list.items[2 * i].str;
                dict->items[i].value = list.items[2 * i + 1];
        }
        list.n = 0;
        *out_value = (Value){ .kind = VALUE_DICT, .dict = dict };
        return STATUS_OK;
}

static Status read_value(Pt2Graph *graph, JsonReader *reader, const char *tag, int level, Value *out_value)
{
        if (strcmp(tag, "as_string_to_argument") == 0)
                return read_dict(graph, reader, level, out_value);
        for (size_t i = 0; i < ARRAY_LENGTH(tags); i++) {
                if (strcmp(tags[i].tag, tag) != 0)
                        continue;
                if (tags[i].lists == 0)
                        return tags[i].read(graph, reader, out_value);
                if (tags[i].lists == 1)
                        return read_list(graph, reader, tags[i].read, VALUE_LIST, out_value);
                return read_lists(graph, reader, tags[i].read, tags[i].inner, out_value);
        }
        return fail(STATUS_UNSUPPORTED, "arguments of kind \"%s\" are not known to this version", tag);
}

Status pt2_read_argument(Pt2Graph *graph, JsonReader *reader, Value *out_value)
{
        return read_argument(graph, reader, 0, out_value);
}

Status pt2_read_tagged(Pt2Graph *graph, JsonReader *reader, const char *tag, Value *out_value)
{
        return read_value(graph, reader, tag, 0, out_value);
}
