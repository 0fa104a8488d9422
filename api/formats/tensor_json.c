// SPDX-License-Identifier: Apache-2.0
// tensor_json.c: one tensor value. Numbers are read into a buffer of the type that the dtype asks
// for (float32 and float64 directly, integers as int64, halves as float32) and then moved, narrowed
// where needed, into tensor memory. In an object "dtype" and "shape" may come after "data": the
// data's text is kept aside until the object ends.
#include "api/formats/tensor_json.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "api/formats/base64.h"
#include "api/formats/tensor_lists.h"
#include "core/base/limits.h"

static ListType list_type(Dtype dtype)
{
        switch (dtype) {
        case DTYPE_NONE:
                return LIST_GUESS;
        case DTYPE_BOOL:
                return LIST_BOOL;
        case DTYPE_U64:
                return LIST_U64;
        case DTYPE_F64:
        case DTYPE_C128:
                return LIST_F64;
        case DTYPE_F16:
        case DTYPE_BF16:
        case DTYPE_F8E4M3FN:
        case DTYPE_F8E5M2:
        case DTYPE_F8E4M3FNUZ:
        case DTYPE_F8E5M2FNUZ:
        case DTYPE_F8E8M0FNU:
        case DTYPE_F32:
        case DTYPE_C64:
                return LIST_F32;
        default:
                return LIST_I64;
        }
}

static Dtype guessed_dtype(ListType type)
{
        // no number at all: float32, as torch.tensor([]) has it
        return type == LIST_BOOL ? DTYPE_BOOL : type == LIST_I64 ? DTYPE_I64 : DTYPE_F32;
}

// ---- numbers into tensor memory ----

static Status fail_range(const Lists *lists, size_t i, Dtype dtype)
{
        char where[160], number[NUMBER_TEXT_MAX + 1];
        lists_place(lists, i, where, sizeof(where));
        bool whole = lists->type == LIST_I64;
        size_t n = whole ? number_print_i64(((const int64_t *)lists->data)[i], number)
                         : number_print_f32(((const float *)lists->data)[i], number);
        return fail(STATUS_VALUE, "%.*s%s%s is out of range for %s", (int)n, number,
                    where[0] == '\0' ? "" : " at ", where, dtype_info[dtype].name);
}

static Status narrow_ints(const Lists *lists, Dtype dtype, uint8_t *out)
{
        static const struct {
                int64_t min, max;
        } ranges[DTYPE_COUNT] = {
                [DTYPE_U8] = { 0, UINT8_MAX },          [DTYPE_I8] = { INT8_MIN, INT8_MAX },
                [DTYPE_I16] = { INT16_MIN, INT16_MAX }, [DTYPE_I32] = { INT32_MIN, INT32_MAX },
                [DTYPE_U16] = { 0, UINT16_MAX },        [DTYPE_U32] = { 0, UINT32_MAX },
        };
        size_t bytes = dtype_info[dtype].bytes;
        const int64_t *from = lists->data;
        for (size_t i = 0; i < lists->n; i++) {
                if (from[i] < ranges[dtype].min || from[i] > ranges[dtype].max)
                        return fail_range(lists, i, dtype);
                memcpy(out + i * bytes, &from[i], bytes); // little-endian: the low bytes
        }
        return STATUS_OK;
}

// Whether a float became another kind of number: casts take what is too large for float8_e4m3fn to
// its largest number, and drop the sign where the dtype has none.
static bool is_lost(Dtype dtype, float from, double got)
{
        // From here on the next number would be nearer, if there were one.
        static const float e4m3fn_end = 464;
        if (isnan(from) || !isfinite(got))
                return isnan(from) != isnan(got) || isinf(from) != isinf(got);
        return isinf(from) || (from < 0 && got > 0) || (dtype == DTYPE_F8E4M3FN && fabsf(from) > e4m3fn_end);
}

static Status narrow_floats(const Lists *lists, Dtype dtype, uint8_t *out)
{
        const float *from = lists->data;
        for (size_t i = 0; i < lists->n; i++, out += dtype_info[dtype].bytes) {
                element_from_f64(dtype, out, (double)from[i]);
                if (is_lost(dtype, from[i], element_as_f64(dtype, out)))
                        return fail_range(lists, i, dtype);
        }
        return STATUS_OK;
}

static Status fill_tensor(const Lists *lists, Dtype dtype, Tensor *tensor)
{
        void *out = tensor_data(tensor);
        int64_t parts = dtype == DTYPE_C64 || dtype == DTYPE_C128 ? 2 : 1;
        if ((int64_t)lists->n != parts * meta_numel(&tensor->meta))
                return fail(STATUS_INTERNAL, "%zu numbers for a tensor of %" PRId64, lists->n,
                            meta_numel(&tensor->meta));
        if (lists->n == 0)
                return STATUS_OK;
        if (lists->type == LIST_F32 && dtype != DTYPE_F32 && dtype != DTYPE_C64)
                return narrow_floats(lists, dtype, out);
        if (lists->type == LIST_I64 && dtype != DTYPE_I64)
                return narrow_ints(lists, dtype, out);
        memcpy(out, lists->data, tensor->storage->n_bytes);
        return STATUS_OK;
}

// The shape of what was read, without the pair of numbers that a complex one is written as. Lists
// without numbers have no pairs.
static Status data_shape(const Lists *lists, bool complex, int *out_rank)
{
        bool pairs = complex && lists->n > 0;
        *out_rank = lists->rank - pairs;
        if ((complex && lists->rank < 1) || (pairs && lists->size[lists->rank - 1] != 2))
                return fail(STATUS_VALUE, "a complex number is written as [real, imaginary]");
        if (*out_rank > MAX_RANK)
                return fail(STATUS_VALUE, "lists are nested deeper than %d dimensions", MAX_RANK);
        return STATUS_OK;
}

// What an object says about its tensor.
typedef struct Description {
        TensorJsonDescription said;
        const char *data, *b64; // texts kept aside; NULL: not there (or read already)
        size_t n_data, n_b64;
        bool may_lack_data;
        bool oip;                   // the Open Inference Protocol's members
        const TensorJsonMore *more; // NULL: none
} Description;

static Status read_numbers(JsonReader *reader, Dtype dtype, Budget *budget, Tensor **out_tensor)
{
        bool complex = dtype == DTYPE_C64 || dtype == DTYPE_C128;
        _cleanup_(lists_deinit)
                Lists lists = { .type = list_type(dtype), .fixed = dtype != DTYPE_NONE, .budget = budget };
        TRY(lists_read(&lists, reader, MAX_RANK + complex));
        if (dtype == DTYPE_NONE)
                dtype = guessed_dtype(lists.type);
        int rank;
        TRY(data_shape(&lists, complex, &rank));
        int64_t numel;
        TRY(shape_numel(rank, lists.size, &numel));
        TensorMeta meta;
        meta_init(&meta, dtype, rank, lists.size);
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(tensor_new(&meta, budget, &tensor));
        TRY(fill_tensor(&lists, dtype, tensor));
        *out_tensor = take_ptr(tensor);
        return STATUS_OK;
}

// An object's "shape" over its data, which may be flat or nested.
static Status apply_shape(const Description *description, Tensor *tensor)
{
        TensorMeta meta;
        int64_t needed, n = meta_numel(&tensor->meta);
        TRY(shape_numel(description->said.rank, description->said.shape, &needed));
        meta_init(&meta, tensor->meta.dtype, description->said.rank, description->said.shape);
        bool nested = tensor->meta.rank > 1 && !description->oip;
        if (!meta_same_shape(&meta, &tensor->meta) && (n != needed || (nested && n > 0))) {
                char said[256], found[256];
                shape_text(meta.rank, meta.size, said, sizeof(said));
                if (!nested)
                        return fail(STATUS_SHAPE,
                                    "\"data\" has %" PRId64 " values, but \"shape\" %s needs %" PRId64, n,
                                    said, needed);
                return fail(STATUS_SHAPE, "\"data\" has shape %s, but \"shape\" says %s",
                            shape_text(tensor->meta.rank, tensor->meta.size, found, sizeof(found)), said);
        }
        tensor->meta = meta;
        return STATUS_OK;
}

// ---- objects ----

static Status read_dtype(JsonReader *reader, Dtype *out_dtype)
{
        const char *name;
        TRY(json_read_string(reader, &name, NULL));
        *out_dtype = dtype_from_name(name);
        if (*out_dtype == DTYPE_NONE)
                return fail(STATUS_VALUE,
                            "unknown dtype \"%.60s\"; for example float32, float16, int64, bool", name);
        return STATUS_OK;
}

static Status read_shape(JsonReader *reader, Description *description)
{
        TRY(json_enter_array(reader));
        description->said.rank = 0;
        for (bool more;;) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        return STATUS_OK;
                int64_t size;
                TRY(json_read_int(reader, &size));
                if (size < 0)
                        return fail(STATUS_VALUE, "\"shape\" has the negative size %" PRId64, size);
                if (description->said.rank == MAX_RANK)
                        return fail(STATUS_VALUE, "\"shape\" has more than %d dimensions", MAX_RANK);
                description->said.shape[description->said.rank++] = size;
        }
}

// Base64 text as it stands in the document; some writers escape its slashes.
static Status plain_base64(const char *raw, size_t n, char **out_copy, const char **out_text, size_t *out_n)
{
        *out_text = raw + 1;
        *out_n = n - 2;
        if (memchr(raw, '\\', n) == NULL)
                return STATUS_OK;
        char *copy = malloc(n);
        if (copy == NULL)
                return fail_memory();
        size_t at = 0;
        for (size_t i = 1; i + 1 < n; i++) {
                if (raw[i] != '\\' || raw[i + 1] != '/')
                        copy[at++] = raw[i];
        }
        *out_text = *out_copy = copy;
        *out_n = at;
        return STATUS_OK;
}

static Status check_bools(const Tensor *tensor)
{
        const uint8_t *data = tensor_data(tensor);
        for (size_t i = 0; i < tensor->storage->n_bytes; i++) {
                if (data[i] > 1)
                        return fail(STATUS_VALUE,
                                    "\"b64\" holds byte 0x%02x at %zu; bytes of a bool tensor are 0 or 1",
                                    data[i], i);
        }
        return STATUS_OK;
}

static Status read_b64(const Description *description, Dtype expected, Budget *budget, Tensor **out_tensor)
{
        Dtype dtype = description->said.dtype != DTYPE_NONE ? description->said.dtype : expected;
        if (dtype == DTYPE_NONE || description->said.rank < 0)
                return fail(STATUS_VALUE, "a tensor with \"b64\" needs \"%s\" as well",
                            dtype == DTYPE_NONE ? "dtype" : "shape");
        int64_t numel;
        TRY(shape_numel(description->said.rank, description->said.shape, &numel));
        _cleanup_(freep) char *copy = NULL;
        const char *text;
        size_t n, n_bytes, needed;
        TRY(plain_base64(description->b64, description->n_b64, &copy, &text, &n));
        TRY(base64_bytes(text, n, &n_bytes));
        if (!mul_size((size_t)numel, dtype_info[dtype].bytes, &needed) || n_bytes != needed) {
                char shape[256];
                return fail(STATUS_SHAPE, "\"b64\" holds %zu bytes, but shape %s of %s needs %zu", n_bytes,
                            shape_text(description->said.rank, description->said.shape, shape, sizeof(shape)),
                            dtype_info[dtype].name, needed);
        }
        TensorMeta meta;
        meta_init(&meta, dtype, description->said.rank, description->said.shape);
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(tensor_new(&meta, budget, &tensor));
        TRY(base64_decode(text, n, tensor_data(tensor)));
        if (dtype == DTYPE_BOOL)
                TRY(check_bools(tensor));
        *out_tensor = take_ptr(tensor);
        return STATUS_OK;
}

static Status fail_member(const char *key)
{
        static const char *const meant[][2] = {
                { "datatype", "dtype" }, { "type", "dtype" }, { "size", "shape" }, { "dims", "shape" },
                { "values", "data" },    { "value", "data" }, { "array", "data" }, { "base64", "b64" },
        };
        Status status = fail(STATUS_UNKNOWN_MEMBER,
                             "a tensor has no member \"%.60s\"; it knows dtype, shape, data, b64", key);
        for (size_t i = 0; i < ARRAY_LENGTH(meant); i++)
                if (strcmp(meant[i][0], key) == 0)
                        failure_append("; did you mean \"%s\"?", meant[i][1]);
        return status;
}

// Data is read at once when its dtype is known by now, else its text is kept.
static Status read_data(JsonReader *reader, Description *description, Budget *budget, Tensor **tensor)
{
        if (description->said.dtype != DTYPE_NONE)
                return read_numbers(reader, description->said.dtype, budget, tensor);
        return json_read_raw(reader, &description->data, &description->n_data);
}

static Status read_more(JsonReader *reader, const char *key, const Description *description, bool *out_known)
{
        *out_known = false;
        return description->more == NULL
                       ? STATUS_OK
                       : description->more->read(description->more->context, reader, key, out_known);
}

static Status read_datatype(JsonReader *reader, Dtype *out_dtype)
{
        const char *name;
        TRY(json_read_string(reader, &name, NULL));
        *out_dtype = dtype_from_oip(name);
        if (*out_dtype != DTYPE_NONE)
                return STATUS_OK;
        if (strcmp(name, "BYTES") == 0)
                return fail(STATUS_UNSUPPORTED, "datatype BYTES: graphs take tensors of numbers only");
        return fail(STATUS_VALUE, "unknown datatype \"%.60s\"; for example FP32, FP16, INT64, BOOL", name);
}

static Status read_oip_member(JsonReader *reader, const char *key, Description *description, Budget *budget,
                              Tensor **tensor)
{
        bool known;
        if (json_peek(reader) == JSON_NULL)
                return json_read_null(reader);
        if (strcmp(key, "datatype") == 0)
                return read_datatype(reader, &description->said.dtype);
        if (strcmp(key, "shape") == 0)
                return read_shape(reader, description);
        if (strcmp(key, "data") == 0)
                return read_data(reader, description, budget, tensor);
        TRY(read_more(reader, key, description, &known));
        return known ? STATUS_OK : json_skip(reader);
}

static Status read_member(JsonReader *reader, const char *key, Description *description, Budget *budget,
                          Tensor **tensor)
{
        bool known;
        if (description->oip)
                return read_oip_member(reader, key, description, budget, tensor);
        if (strcmp(key, "dtype") == 0)
                return read_dtype(reader, &description->said.dtype);
        if (strcmp(key, "shape") == 0)
                return read_shape(reader, description);
        if (strcmp(key, "b64") == 0) {
                if (json_peek(reader) != JSON_STRING)
                        return fail(STATUS_VALUE, "\"b64\" must be a text");
                return json_read_raw(reader, &description->b64, &description->n_b64);
        }
        if (strcmp(key, "data") == 0)
                return read_data(reader, description, budget, tensor);
        TRY(read_more(reader, key, description, &known));
        return known ? STATUS_OK : fail_member(key);
}

static Status read_kept_data(const Description *description, Dtype expected, Budget *budget,
                             Tensor **out_tensor)
{
        Arena arena;
        arena_init(&arena, 0);
        JsonReader *reader = NULL;
        Status status = json_open(description->data, description->n_data, MAX_RANK + 2, 0, &arena, &reader);
        if (status == STATUS_OK)
                status = read_numbers(
                        reader, description->said.dtype != DTYPE_NONE ? description->said.dtype : expected,
                        budget, out_tensor);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

static Status read_object(JsonReader *reader, Dtype expected, Budget *budget, Description *description,
                          Tensor **out_tensor)
{
        description->said = (TensorJsonDescription){ .dtype = DTYPE_NONE, .rank = -1 };
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        TRY(json_enter_object(reader));
        for (bool more;;) {
                const char *key;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                TRY(failure_at_argument(read_member(reader, key, description, budget, &tensor), key));
        }
        bool has_data = tensor != NULL || description->data != NULL;
        if (has_data && description->b64 != NULL)
                return fail(STATUS_VALUE, "a tensor has either \"data\" or \"b64\", not both");
        if (!description->may_lack_data && !has_data && description->b64 == NULL)
                return fail(STATUS_VALUE, "a tensor needs \"data\" or \"b64\"");
        if (description->b64 != NULL) {
                TRY(failure_at_argument(read_b64(description, expected, budget, &tensor), "b64"));
        } else if (has_data) {
                if (tensor == NULL)
                        TRY(failure_at_argument(read_kept_data(description, expected, budget, &tensor),
                                                "data"));
                if (description->said.rank >= 0)
                        TRY(failure_at_argument(apply_shape(description, tensor), "shape"));
        }
        *out_tensor = take_ptr(tensor);
        return STATUS_OK;
}

Status tensor_json_read_described(JsonReader *reader, Budget *budget, const TensorJsonMore *more,
                                  Tensor **out_tensor, TensorJsonDescription *out_described)
{
        Description description = { .may_lack_data = true, .more = more };
        TRY(read_object(reader, DTYPE_NONE, budget, &description, out_tensor));
        *out_described = description.said;
        return STATUS_OK;
}

Status tensor_json_read_oip(JsonReader *reader, Budget *budget, const TensorJsonMore *more,
                            Tensor **out_tensor, TensorJsonDescription *out_described)
{
        Description description = { .may_lack_data = true, .oip = true, .more = more };
        TRY(read_object(reader, DTYPE_NONE, budget, &description, out_tensor));
        *out_described = description.said;
        return STATUS_OK;
}

Status tensor_json_read(JsonReader *reader, Dtype expected, Budget *budget, Tensor **out_tensor,
                        bool *out_guessed)
{
        Description description = { .said = { .dtype = DTYPE_NONE } };
        bool is_object = json_peek(reader) == JSON_OBJECT;
        if (is_object)
                TRY(read_object(reader, expected, budget, &description, out_tensor));
        if (out_guessed != NULL)
                *out_guessed = expected == DTYPE_NONE && description.said.dtype == DTYPE_NONE;
        if (is_object)
                return STATUS_OK;
        return read_numbers(reader, expected, budget, out_tensor);
}
