// SPDX-License-Identifier: Apache-2.0
// case_values.c: JSON <-> Value for the cases of tools/generate/make_target_cases.py.
#include "tests/targets/case_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void must(Status status)
{
        if (status != STATUS_OK) {
                fprintf(stderr, "%s\n", failure_current()->message);
                abort();
        }
}

static Value tensor_value(const json_t *json)
{
        const json_t *shape = json_object_get(json, "shape"), *data = json_object_get(json, "data");
        int64_t size[MAX_RANK];
        for (size_t d = 0; d < json_array_size(shape); d++)
                size[d] = json_integer_value(json_array_get(shape, d));
        TensorMeta meta = { 0 };
        meta_init(&meta, dtype_from_name(json_string_value(json_object_get(json, "dtype"))),
                  (int)json_array_size(shape), size);
        Tensor *tensor;
        must(tensor_new(&meta, NULL, &tensor));
        for (size_t i = 0; i < json_array_size(data); i++) {
                const json_t *item = json_array_get(data, i);
                uint8_t *element = (uint8_t *)tensor_data(tensor) + i * dtype_info[meta.dtype].bytes;
                if (json_is_string(item))
                        element_from_f64(meta.dtype, element, strtod(json_string_value(item), NULL));
                else
                        element_from_i64(meta.dtype, element,
                                         json_is_boolean(item) ? json_is_true(item)
                                                               : json_integer_value(item));
        }
        return value_tensor_take(tensor);
}

static Value seq_value(ValueKind kind, const json_t *items)
{
        Seq *seq;
        must(seq_new((uint32_t)json_array_size(items), &seq));
        for (uint32_t i = 0; i < seq->n; i++)
                seq->items[i] = case_value(json_array_get(items, i));
        return value_seq_take(kind, seq);
}

static Value text(ValueKind kind, const char *string)
{
        Value value;
        must(value_str_new(string, strlen(string), &value));
        value.kind = kind;
        return value;
}

static Value dict_value(const json_t *json)
{
        Dict *dict;
        must(dict_new((uint32_t)json_object_size(json), &dict));
        uint32_t n = 0;
        const char *key;
        json_t *item;
        json_object_foreach((json_t *)(uintptr_t)json, key, item)
        {
                must(str_new(key, strlen(key), &dict->items[n].key));
                dict->items[n++].value = case_value(item);
        }
        return (Value){ .kind = VALUE_DICT, .dict = dict };
}

static MemoryFormat memory_format(const char *name)
{
        return strcmp(name, "channels_last") == 0     ? MEMORY_FORMAT_CHANNELS_LAST
               : strcmp(name, "preserve_format") == 0 ? MEMORY_FORMAT_PRESERVE
                                                      : MEMORY_FORMAT_CONTIGUOUS;
}

Value case_value(const json_t *json)
{
        switch (json_typeof(json)) {
        case JSON_NULL:
                return value_none();
        case JSON_TRUE:
        case JSON_FALSE:
                return value_bool(json_is_true(json));
        case JSON_INTEGER:
                return value_int(json_integer_value(json));
        case JSON_STRING:
                return text(VALUE_STR, json_string_value(json));
        default:
                break;
        }
        const char *key = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)json));
        const json_t *inner = json_object_get(json, key);
        if (strcmp(key, "tensor") == 0)
                return tensor_value(inner);
        if (strcmp(key, "f") == 0)
                return value_float(strtod(json_string_value(inner), NULL));
        if (strcmp(key, "list") == 0)
                return seq_value(VALUE_LIST, inner);
        if (strcmp(key, "tuple") == 0)
                return seq_value(VALUE_TUPLE, inner);
        if (strcmp(key, "size") == 0)
                return seq_value(VALUE_SIZE, inner);
        if (strcmp(key, "slice") == 0)
                return seq_value(VALUE_SLICE, inner);
        if (strcmp(key, "ellipsis") == 0)
                return (Value){ .kind = VALUE_ELLIPSIS };
        if (strcmp(key, "dtype") == 0)
                return value_dtype(dtype_from_name(json_string_value(inner)));
        if (strcmp(key, "device") == 0)
                return text(VALUE_DEVICE, json_string_value(inner));
        if (strcmp(key, "memory_format") == 0)
                return (Value){ .kind = VALUE_MEMORY_FORMAT,
                                .memory_format = memory_format(json_string_value(inner)) };
        if (strcmp(key, "dict") == 0)
                return dict_value(inner);
        fprintf(stderr, "a value of kind \"%s\" in cases.json\n", key);
        abort();
}

// ---- comparing ----
static bool close_to(double got, double want, Dtype dtype)
{
        double relative = dtype == DTYPE_F16    ? 1e-3
                          : dtype == DTYPE_BF16 ? 1.6e-2
                          : dtype == DTYPE_F32  ? 1.3e-6
                                                : 1e-7;
        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got);
        return got == want || fabs(got - want) <= (dtype == DTYPE_F64 ? 1e-7 : 1e-5) + relative * fabs(want);
}

static bool tensors_equal(const Tensor *got, const Tensor *want, Text *why)
{
        char a[160], b[160];
        if (got->meta.dtype != want->meta.dtype || !meta_same_shape(&got->meta, &want->meta)) {
                text_addf(why, "%s%s, not %s%s", dtype_info[got->meta.dtype].name,
                          shape_text(got->meta.rank, got->meta.size, a, sizeof(a)),
                          dtype_info[want->meta.dtype].name,
                          shape_text(want->meta.rank, want->meta.size, b, sizeof(b)));
                return false;
        }
        Tensor *dense;
        must(tensor_contiguous((Tensor *)(uintptr_t)got, NULL, &dense));
        bool equal = true;
        Dtype dtype = got->meta.dtype;
        for (int64_t i = 0; i < meta_numel(&want->meta) && equal; i++) {
                const uint8_t *x = (const uint8_t *)tensor_data(dense) + i * dtype_info[dtype].bytes,
                              *y = (const uint8_t *)tensor_data(want) + i * dtype_info[dtype].bytes;
                bool real = dtype_is_float(dtype);
                equal = real ? close_to(element_as_f64(dtype, x), element_as_f64(dtype, y), dtype)
                             : element_as_i64(dtype, x) == element_as_i64(dtype, y);
                if (!equal)
                        text_addf(why, "element %ld is %.9g, not %.9g", (long)i, element_as_f64(dtype, x),
                                  element_as_f64(dtype, y));
        }
        tensor_unref(dense);
        return equal;
}

static bool seqs_equal(Value got, Value want, Text *why);

static bool values_equal(Value got, Value want, Text *why)
{
        if (got.kind != want.kind) {
                text_addf(why, "%s, not %s", value_kind_name(got.kind), value_kind_name(want.kind));
                return false;
        }
        bool equal = true;
        switch (got.kind) {
        case VALUE_TENSOR:
                return tensors_equal(got.tensor, want.tensor, why);
        case VALUE_LIST:
        case VALUE_TUPLE:
        case VALUE_SIZE:
                return seqs_equal(got, want, why);
        case VALUE_BOOL:
                equal = got.b == want.b;
                break;
        case VALUE_INT:
                equal = got.i == want.i;
                if (!equal)
                        text_addf(why, "%ld, not %ld: ", (long)got.i, (long)want.i);
                break;
        case VALUE_FLOAT:
                equal = (isnan(got.f) && isnan(want.f)) ||
                        (got.f == want.f && signbit(got.f) == signbit(want.f));
                if (!equal)
                        text_addf(why, "%.17g, not %.17g: ", got.f, want.f);
                break;
        case VALUE_STR:
        case VALUE_DEVICE:
                equal = strcmp(got.str->text, want.str->text) == 0;
                break;
        case VALUE_DTYPE:
                equal = got.dtype == want.dtype;
                break;
        default:
                break;
        }
        if (!equal)
                text_addf(why, "another %s", value_kind_name(got.kind));
        return equal;
}

static bool seqs_equal(Value got, Value want, Text *why)
{
        if (got.seq->n != want.seq->n) {
                text_addf(why, "%u items, not %u", got.seq->n, want.seq->n);
                return false;
        }
        for (uint32_t i = 0; i < got.seq->n; i++) {
                if (!values_equal(got.seq->items[i], want.seq->items[i], why)) {
                        text_addf(why, " (item %u)", i);
                        return false;
                }
        }
        return true;
}

bool case_equal(Value got, const json_t *want, Text *out_why)
{
        Value wanted = case_value(want);
        bool equal = values_equal(got, wanted, out_why);
        value_clear(&wanted);
        return equal;
}
