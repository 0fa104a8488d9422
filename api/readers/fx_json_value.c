// SPDX-License-Identifier: Apache-2.0
// fx_json_value.c: node arguments: JSON's own values, "%x" for node x, and {"$...": ...} for values
// that JSON lacks. A text or key that begins with % or $ has it doubled. Nesting recurses, at most
// limits.max_nested_values deep.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/fx_json_parts.h"
#include "core/base/limits.h"

typedef struct ValueList {
        Value *items;
        uint32_t n, capacity;
} ValueList;

static void value_list_deinit(ValueList *list)
{
        for (uint32_t i = 0; i < list->n; i++)
                value_unref(list->items[i]);
        free(list->items);
}

// Items until the array ends.
static Status read_items(FxReader *reader, const Graph *graph, int depth, ValueList *list)
{
        TRY(json_enter_array(reader->json));
        for (bool more;;) {
                TRY(json_next_item(reader->json, &more));
                if (!more)
                        return STATUS_OK;
                TRY(array_reserve(&list->items, &list->capacity, list->n + 1, sizeof(Value)));
                size_t outer = fx_enter(reader, "[%u]", list->n);
                TRY(fx_read_value(reader, graph, depth, &list->items[list->n]));
                fx_leave(reader, outer);
                list->n++;
        }
}

static Status read_sequence(FxReader *reader, const Graph *graph, int depth, ValueKind kind, Value *out_value)
{
        _cleanup_(value_list_deinit) ValueList list = { 0 };
        TRY(read_items(reader, graph, depth, &list));
        if (kind == VALUE_SLICE && list.n != 3)
                return fail(STATUS_MALFORMED,
                            "{\"$slice\": [start, stop, step]} has three members, null where Python has "
                            "None; here are %u",
                            list.n);
        Seq *seq;
        TRY(seq_new(list.n, &seq));
        if (list.n > 0)
                memcpy(seq->items, list.items, list.n * sizeof(Value));
        list.n = 0;
        *out_value = value_seq_take(kind, seq);
        return STATUS_OK;
}

// ---- texts ----

// Whether `at` (a quoted text) is the value of a "name" member.
static bool follows_name_key(const char *text, const char *at)
{
        static const char key[] = "\"name\"";
        while (at > text && strchr(" \t\r\n", at[-1]) != NULL)
                at--;
        if (at == text || at[-1] != ':')
                return false;
        at--;
        while (at > text && strchr(" \t\r\n", at[-1]) != NULL)
                at--;
        return (size_t)(at - text) >= sizeof(key) - 1 &&
               memcmp(at - (sizeof(key) - 1), key, sizeof(key) - 1) == 0;
}

// Searches the rest of the document for a node of that name; only the wording of a failure depends
// on it.
static bool name_comes_later(const FxReader *reader, const char *name)
{
        char pattern[160];
        int n = snprintf(pattern, sizeof(pattern), "\"%s\"", name);
        if (n >= (int)sizeof(pattern))
                return false;
        const char *end = reader->text + reader->n;
        for (const char *at = reader->text + json_tell(reader->json); at < end; at++) {
                at = memmem(at, (size_t)(end - at), pattern, (size_t)n);
                if (at == NULL)
                        return false;
                if (follows_name_key(reader->text, at))
                        return true;
        }
        return false;
}

static Status read_node(const FxReader *reader, const Graph *graph, const char *name, Value *out_value)
{
        if (graph == NULL)
                return fail(STATUS_MALFORMED,
                            "\"%%%.100s\" names a node, which a module's config cannot do; double the %% for "
                            "a text",
                            name);
        Node *node = graph_node(graph, name);
        if (node != NULL) {
                *out_value = (Value){ .kind = VALUE_NODE, .node = node };
                return STATUS_OK;
        }
        if (name_comes_later(reader, name)) {
                return fail(STATUS_LINT,
                            "Argument '%.100s' was used before it has been defined! Please check that Nodes "
                            "in the graph are topologically "
                            "ordered",
                            name);
        }
        return fail(STATUS_LINT, "\"%%%.100s\" names no node of this graph", name);
}

static Status read_text(const FxReader *reader, const Graph *graph, Value *out_value)
{
        const char *text;
        size_t n;
        TRY(json_read_string(reader->json, &text, &n));
        if (text[0] == '%' && text[1] != '%')
                return read_node(reader, graph, text + 1, out_value);
        if (text[0] == '$' && reader->templates)
                return value_str_new(text, n, out_value);
        if (text[0] == '$' && text[1] != '$')
                return fail(STATUS_MALFORMED, "\"%.100s\": a text that begins with $ doubles it", text);
        bool doubled = text[0] == '%' || text[0] == '$';
        return value_str_new(text + doubled, n - doubled, out_value);
}

// ---- {"$...": ...} ----

static Status read_dtype(FxReader *reader, Value *out_value)
{
        const char *name;
        TRY(fx_read_word(reader, &name));
        Dtype dtype = dtype_from_name(name);
        if (dtype == DTYPE_NONE)
                return fail(STATUS_VALUE,
                            "unknown dtype \"%.60s\"; for example float32, float16, int64, bool", name);
        *out_value = value_dtype(dtype);
        return STATUS_OK;
}

static Status read_device(FxReader *reader, Value *out_value)
{
        const char *name;
        TRY(fx_read_word(reader, &name));
        size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyz"),
               digits = name[letters] == ':' ? strspn(name + letters + 1, "0123456789") : 0;
        size_t n = letters + (name[letters] == ':' ? 1 + digits : 0);
        if (letters == 0 || name[n] != '\0' || n > 40 ||
            (name[letters] == ':' && (digits == 0 || digits > 4)))
                return fail(STATUS_VALUE, "\"%.60s\" is no device; \"cpu\" is meant, perhaps", name);
        TRY(value_str_new(name, n, out_value));
        out_value->kind = VALUE_DEVICE;
        return STATUS_OK;
}

static Status read_layout(FxReader *reader, Value *out_value)
{
        static const char *const layouts[] = { "strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                               "sparse_bsr", "sparse_bsc", "jagged" };
        const char *name;
        TRY(fx_read_word(reader, &name));
        const char *bare = strncmp(name, "torch.", 6) == 0 ? name + 6 : name;
        for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++) {
                char full[32];
                int n = snprintf(full, sizeof(full), "torch.%s", layouts[i]);
                if (strcmp(bare, layouts[i]) != 0)
                        continue;
                TRY(value_str_new(full, (size_t)n, out_value));
                out_value->kind = VALUE_LAYOUT;
                return STATUS_OK;
        }
        return fail(STATUS_VALUE, "unknown layout \"%.60s\"; for example strided", name);
}

static Status read_memory_format(FxReader *reader, Value *out_value)
{
        static const char *const names[] = { "contiguous_format", "channels_last", "channels_last_3d",
                                             "preserve_format" };
        const char *name;
        TRY(fx_read_word(reader, &name));
        const char *bare = strncmp(name, "torch.", 6) == 0 ? name + 6 : name;
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                if (strcmp(bare, names[i]) == 0) {
                        *out_value = (Value){ .kind = VALUE_MEMORY_FORMAT, .memory_format = (MemoryFormat)i };
                        return STATUS_OK;
                }
        }
        return fail(STATUS_VALUE,
                    "unknown memory format \"%.60s\"; it knows contiguous_format, channels_last, "
                    "channels_last_3d, preserve_format",
                    name);
}

static Status read_float_word(FxReader *reader, double *out)
{
        static const struct {
                const char *text;
                double value;
        } words[] = {
                { "inf", (double)INFINITY },      { "-inf", -(double)INFINITY },      { "nan", (double)NAN },
                { "Infinity", (double)INFINITY }, { "-Infinity", -(double)INFINITY }, { "NaN", (double)NAN }
        };
        const char *text;
        TRY(fx_read_word(reader, &text));
        for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
                if (strcmp(text, words[i].text) == 0) {
                        *out = words[i].value;
                        return STATUS_OK;
                }
        }
        return fail(
                STATUS_VALUE,
                "{\"$float\": \"%.60s\"} is none of inf, -inf, nan; other floats are written as JSON numbers",
                text);
}

static Status as_double(Value value, double *out)
{
        if (value.kind != VALUE_INT && value.kind != VALUE_FLOAT)
                return fail(STATUS_MALFORMED, "{\"$complex\": [real, imaginary]} holds two numbers");
        *out = value.kind == VALUE_INT ? (double)value.i : value.f;
        return STATUS_OK;
}

static Status read_complex(FxReader *reader, int depth, Value *out_value)
{
        _cleanup_(value_list_deinit) ValueList list = { 0 };
        TRY(read_items(reader, NULL, depth, &list));
        if (list.n != 2)
                return fail(STATUS_MALFORMED, "{\"$complex\": [real, imaginary]} holds two numbers");
        Value value = { .kind = VALUE_COMPLEX };
        TRY(as_double(list.items[0], &value.c.re));
        TRY(as_double(list.items[1], &value.c.im));
        *out_value = value;
        return STATUS_OK;
}

static Status read_ellipsis(FxReader *reader, Value *out_value)
{
        if (json_peek(reader->json) != JSON_TRUE)
                return fail(STATUS_MALFORMED, "an ellipsis is written {\"$ellipsis\": true}");
        bool yes;
        TRY(json_read_bool(reader->json, &yes));
        *out_value = (Value){ .kind = VALUE_ELLIPSIS };
        return STATUS_OK;
}

static Status read_tagged(FxReader *reader, const Graph *graph, int depth, const char *tag, Value *out_value)
{
        if (strcmp(tag, "$tuple") == 0)
                return read_sequence(reader, graph, depth, VALUE_TUPLE, out_value);
        if (strcmp(tag, "$slice") == 0)
                return read_sequence(reader, graph, depth, VALUE_SLICE, out_value);
        if (strcmp(tag, "$dtype") == 0)
                return read_dtype(reader, out_value);
        if (strcmp(tag, "$device") == 0)
                return read_device(reader, out_value);
        if (strcmp(tag, "$layout") == 0)
                return read_layout(reader, out_value);
        if (strcmp(tag, "$memory_format") == 0)
                return read_memory_format(reader, out_value);
        if (strcmp(tag, "$ellipsis") == 0)
                return read_ellipsis(reader, out_value);
        if (strcmp(tag, "$complex") == 0)
                return read_complex(reader, depth, out_value);
        if (strcmp(tag, "$float") == 0) {
                *out_value = value_float(0);
                return read_float_word(reader, &out_value->f);
        }
        return fail(STATUS_UNKNOWN_MEMBER,
                    "\"%.60s\" is no form of FX JSON; it knows $tuple, $slice, $dtype, $device, $layout, "
                    "$memory_format, $ellipsis, "
                    "$float, $complex; a key that begins with $ doubles it",
                    tag);
}

// ---- objects ----

typedef struct Items {
        struct DictItem *items;
        uint32_t n, capacity;
} Items;

static void items_deinit(Items *items)
{
        for (uint32_t i = 0; i < items->n; i++) {
                value_unref((Value){ .kind = VALUE_STR, .str = items->items[i].key });
                value_unref(items->items[i].value);
        }
        free(items->items);
}

static Status add_item(FxReader *reader, const Graph *graph, int depth, const char *key, Items *items)
{
        if ((key[0] == '%' || key[0] == '$') && key[1] != key[0])
                return fail(STATUS_MALFORMED, "key \"%.60s\": a key that begins with %c doubles it", key,
                            key[0]);
        const char *plain = key + (key[0] == '%' || key[0] == '$');
        TRY(array_reserve(&items->items, &items->capacity, items->n + 1, sizeof(*items->items)));
        struct DictItem *item = &items->items[items->n];
        *item = (struct DictItem){ 0 };
        TRY(str_new(plain, strlen(plain), &item->key));
        items->n++;
        size_t outer = fx_enter(reader, ".%.60s", key);
        TRY(fx_read_value(reader, graph, depth, &item->value));
        fx_leave(reader, outer);
        return STATUS_OK;
}

static Status read_object(FxReader *reader, const Graph *graph, int depth, Value *out_value)
{
        _cleanup_(items_deinit) Items items = { 0 };
        TRY(json_enter_object(reader->json));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader->json, &key, &more));
                if (!more)
                        break;
                if (items.n == 0 && key[0] == '$' && key[1] != '$') {
                        _cleanup_(value_clear) Value value = value_none();
                        size_t outer = fx_enter(reader, ".%.60s", key);
                        TRY(read_tagged(reader, graph, depth, key, &value));
                        fx_leave(reader, outer);
                        TRY(json_next_key(reader->json, &key, &more));
                        if (more)
                                return fail(
                                        STATUS_MALFORMED,
                                        "an object with a \"$\" form has no other members, here \"%.60s\"",
                                        key);
                        *out_value = value;
                        value = value_none();
                        return STATUS_OK;
                }
                TRY(add_item(reader, graph, depth, key, &items));
        }
        Dict *dict;
        TRY(dict_new(items.n, &dict));
        if (items.n > 0)
                memcpy(dict->items, items.items, items.n * sizeof(*items.items));
        items.n = 0;
        *out_value = (Value){ .kind = VALUE_DICT, .dict = dict };
        return STATUS_OK;
}

static Status read_number(FxReader *reader, Value *out_value)
{
        const char *text = reader->text + json_tell(reader->json);
        NumberKind kind;
        int64_t whole;
        double value;
        TRY(json_read_number(reader->json, &kind, &whole, &value));
        size_t n = (size_t)(reader->text + json_tell(reader->json) - text);
        bool integer =
                memchr(text, '.', n) == NULL && memchr(text, 'e', n) == NULL && memchr(text, 'E', n) == NULL;
        if (kind != NUMBER_INT && (integer || isinf(value)))
                return fail(STATUS_VALUE, "%.*s does not fit %s", (int)MIN(n, 40u), text,
                            integer ? "int64" : "float64; write {\"$float\": \"inf\"} if that is meant");
        *out_value = kind == NUMBER_INT ? value_int(whole) : value_float(value);
        return STATUS_OK;
}

Status fx_read_value(FxReader *reader, const Graph *graph, int depth, Value *out_value)
{
        bool truth;
        *out_value = value_none();
        if (depth >= limits.max_nested_values)
                return fail(STATUS_TOO_LARGE,
                            "values are nested more than %d deep (max_nested_values in GET /v1)",
                            (int)limits.max_nested_values);
        switch (json_peek(reader->json)) {
        case JSON_TRUE:
        case JSON_FALSE:
                TRY(json_read_bool(reader->json, &truth));
                *out_value = value_bool(truth);
                return STATUS_OK;
        case JSON_NUMBER:
                return read_number(reader, out_value);
        case JSON_STRING:
                return read_text(reader, graph, out_value);
        case JSON_ARRAY:
                return read_sequence(reader, graph, depth + 1, VALUE_LIST, out_value);
        case JSON_OBJECT:
                return read_object(reader, graph, depth + 1, out_value);
        default:
                return json_read_null(reader->json);
        }
}
