// SPDX-License-Identifier: Apache-2.0
#include "api/formats/tensor_json.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "core/base/limits.h"

static Status read_as(const char *text, Dtype expected, Budget *budget, Tensor **out_tensor)
{
        Arena arena;
        arena_init(&arena, 0);
        size_t n = strlen(text);
        char *copy = malloc(n == 0 ? 1 : n); // no byte more, so that reading past the end shows
        memcpy(copy, text, n);
        JsonReader *reader = NULL;
        Status status = json_open(copy, n, 32, 0, &arena, &reader);
        if (status == STATUS_OK)
                status = tensor_json_read(reader, expected, budget, out_tensor, NULL);
        if (status == STATUS_OK)
                status = json_finish(reader);
        json_close(reader);
        arena_deinit(&arena);
        free(copy);
        return status;
}

// Reads, and compares with what we print: shape, dtype and values in one line.
static void reads(const char *text, Dtype expected, const char *want)
{
        Tensor *tensor = NULL;
        char shape[256];
        cr_assert_eq(read_as(text, expected, NULL, &tensor), STATUS_OK, "%s: %s", text,
                     failure_current()->message);
        Text got = { 0 };
        text_addf(&got, "%s %s ", dtype_info[tensor->meta.dtype].name,
                  shape_text(tensor->meta.rank, tensor->meta.size, shape, sizeof(shape)));
        cr_assert_eq(tensor_json_write(tensor, TENSOR_JSON_FLAT, NULL, SIZE_MAX, &got), STATUS_OK);
        cr_assert_str_eq(got.data, want, "%s", text);
        text_deinit(&got);
        tensor_unref(tensor);
}

Test(tensor_json, without_a_dtype_the_values_decide_as_torch_tensor_does)
{
        static const char *const rows[][2] = {
                { "[1, 2, 3]", "int64 [3] [1, 2, 3]" },
                { "[1, 2.0, 3]", "float32 [3] [1.0, 2.0, 3.0]" },
                { "[1.5, 2, true]", "float32 [3] [1.5, 2.0, 1.0]" },
                { "[true, false]", "bool [2] [true, false]" },
                { "[true, 2]", "int64 [2] [1, 2]" },
                { "[2, false]", "int64 [2] [2, 0]" },
                { "[true, 2, 0.5]", "float32 [3] [1.0, 2.0, 0.5]" },
                { "[true, 0.5]", "float32 [2] [1.0, 0.5]" },
                { "[1, \"NaN\"]", "float32 [2] [1.0, \"NaN\"]" },
                { "[\"Infinity\", \"-Infinity\"]", "float32 [2] [\"Infinity\", \"-Infinity\"]" },
                { "[1, 1e2]", "float32 [2] [1.0, 100.0]" },
                { "[]", "float32 [0] []" },
                { "[[], []]", "float32 [2, 0] []" },
                { "[[1, 2], [3, 4]]", "int64 [2, 2] [1, 2, 3, 4]" },
                { "[[[1]], [[2.5]]]", "float32 [2, 1, 1] [1.0, 2.5]" },
                { "3", "int64 [] [3]" },
                { "-0.0", "float32 [] [-0.0]" },
                { "true", "bool [] [true]" },
                { "\"NaN\"", "float32 [] [\"NaN\"]" },
                { "[[[[[[[[7]]]]]]]]", "int64 [1, 1, 1, 1, 1, 1, 1, 1] [7]" },
                { "[9223372036854775807, -9223372036854775808]",
                  "int64 [2] [9223372036854775807, -9223372036854775808]" },
        };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                reads(rows[i][0], DTYPE_NONE, rows[i][1]);
}

Test(tensor_json, the_signatures_dtype_decides_when_it_is_known)
{
        reads("[1, 2, 3]", DTYPE_F32, "float32 [3] [1.0, 2.0, 3.0]");
        reads("[16777217, 0.1]", DTYPE_F32, "float32 [2] [16777216.0, 0.1]");
        reads("[0.1, 1e300]", DTYPE_F64, "float64 [2] [0.1, 1e300]");
        reads("[0, 1, true]", DTYPE_BOOL, "bool [3] [false, true, true]");
        reads("[true, 5]", DTYPE_I64, "int64 [2] [1, 5]");
        reads("[255, 0]", DTYPE_U8, "uint8 [2] [255, 0]");
        reads("[-128, 127]", DTYPE_I8, "int8 [2] [-128, 127]");
        reads("[18446744073709551615]", DTYPE_U64, "uint64 [1] [18446744073709551615]");
        reads("[65504, 0.1]", DTYPE_F16, "float16 [2] [65504.0, 0.099975586]");
        reads("[1.5, \"Infinity\"]", DTYPE_BF16, "bfloat16 [2] [1.5, \"Infinity\"]");
        reads("[[1, -2.5], [0, 1]]", DTYPE_C64, "complex64 [2] [[1.0, -2.5], [0.0, 1.0]]");
        reads("[1, 2]", DTYPE_C128, "complex128 [] [[1.0, 2.0]]");
}

Test(tensor_json, objects_take_their_members_in_any_order)
{
        reads("{\"dtype\": \"float32\", \"shape\": [2, 2], \"data\": [1, 2, 3, 4]}", DTYPE_NONE,
              "float32 [2, 2] [1.0, 2.0, 3.0, 4.0]");
        reads("{\"data\": [1, 2, 3, 4], \"shape\": [2, 2], \"dtype\": \"float32\"}", DTYPE_NONE,
              "float32 [2, 2] [1.0, 2.0, 3.0, 4.0]");
        reads("{\"data\": [[1, 2], [3, 4]], \"dtype\": \"torch.int32\", \"shape\": [2, 2]}", DTYPE_NONE,
              "int32 [2, 2] [1, 2, 3, 4]");
        reads("{\"data\": [[1, 2], [3, 4]]}", DTYPE_NONE, "int64 [2, 2] [1, 2, 3, 4]");
        reads("{\"data\": [[1, 2], [3, 4]]}", DTYPE_F32, "float32 [2, 2] [1.0, 2.0, 3.0, 4.0]");
        reads("{\"shape\": [2], \"data\": [1, 0]}", DTYPE_BOOL, "bool [2] [true, false]");
        reads("{\"dtype\": \"int64\", \"data\": 3}", DTYPE_NONE, "int64 [] [3]");
        reads("{\"dtype\": \"int64\", \"shape\": [1, 1], \"data\": 3}", DTYPE_NONE, "int64 [1, 1] [3]");
        reads("{\"dtype\": \"float32\", \"shape\": [0, 3], \"data\": []}", DTYPE_NONE, "float32 [0, 3] []");
        reads("{\"dtype\": \"int64\", \"shape\": [2], \"data\": [1, 2]}", DTYPE_F32, "int64 [2] [1, 2]");
}

Test(tensor_json, base64_is_the_bytes_in_little_endian_order)
{
        reads("{\"dtype\": \"float32\", \"shape\": [2], \"b64\": \"AACAPwAAAMA=\"}", DTYPE_NONE,
              "float32 [2] [1.0, -2.0]");
        reads("{\"b64\": \"AACAPwAAAMA=\", \"shape\": [1, 2]}", DTYPE_F32, "float32 [1, 2] [1.0, -2.0]");
        reads("{\"b64\": \"\\/wD\\/\", \"shape\": [3], \"dtype\": \"uint8\"}", DTYPE_NONE,
              "uint8 [3] [255, 0, 255]");
        reads("{\"b64\": \"\", \"shape\": [0], \"dtype\": \"int64\"}", DTYPE_NONE, "int64 [0] []");
        reads("{\"b64\": \"AAEB\", \"shape\": [3], \"dtype\": \"bool\"}", DTYPE_NONE,
              "bool [3] [false, true, true]");
}

typedef struct Bad {
        const char *text;
        Dtype expected;
        Status status;
        const char *words;
} Bad;

static const Bad bad[] = {
        { "[[1, 2], [3]]", DTYPE_NONE, STATUS_VALUE,
          "expected sequence of length 2 at dim 1 (got 1): the list at [1]" },
        { "[[1, 2], [3]]", DTYPE_F32, STATUS_VALUE,
          "expected sequence of length 2 at dim 1 (got 1): the list at [1]" },
        { "[[[1], [2]], [[3]]]", DTYPE_F32, STATUS_VALUE,
          "expected sequence of length 2 at dim 1 (got 1): the list at [1]" },
        { "[[1, 2], 3]", DTYPE_NONE, STATUS_VALUE, "expected a list at [1], got a number" },
        { "[[1.5, 2], 3]", DTYPE_F32, STATUS_VALUE, "expected a list at [1], got a number" },
        { "[1, [2]]", DTYPE_NONE, STATUS_VALUE, "expected a number at [1], got a list" },
        { "[[], [1]]", DTYPE_NONE, STATUS_VALUE, "expected sequence of length 0 at dim 1 (got 1)" },
        { "[[], 1]", DTYPE_F32, STATUS_VALUE, "at [1]" },
        { "[[[[[[[[[1]]]]]]]]]", DTYPE_NONE, STATUS_VALUE, "nested more than 8 deep" },
        { "null", DTYPE_NONE, STATUS_VALUE, "got null" },
        { "[1, null]", DTYPE_NONE, STATUS_VALUE, "at [1], got null" },
        { "[1, {}]", DTYPE_F32, STATUS_VALUE, "at [1], got an object" },
        { "[\"one\"]", DTYPE_F32, STATUS_VALUE, "expected a number at [0], got \"one\"" },
        { "[\"nan\"]", DTYPE_F32, STATUS_VALUE, "got \"nan\"" },
        { "[1.5]", DTYPE_I64, STATUS_VALUE, "expected an integer at [0], got 1.5" },
        { "[0, 1.0]", DTYPE_I32, STATUS_VALUE, "expected an integer at [1], got 1.0" },
        { "[\"NaN\"]", DTYPE_I64, STATUS_VALUE, "expected an integer" },
        { "[2]", DTYPE_BOOL, STATUS_VALUE, "expected true or false at [0], got 2" },
        { "[1, 256]", DTYPE_U8, STATUS_VALUE, "256 at [1] is out of range for uint8" },
        { "[[0, 0], [0, -129]]", DTYPE_I8, STATUS_VALUE, "-129 at [1][1] is out of range for int8" },
        { "[-1]", DTYPE_U64, STATUS_VALUE, "2^64" },
        { "[18446744073709551616]", DTYPE_U64, STATUS_VALUE, "2^64" },
        { "[9223372036854775808]", DTYPE_I64, STATUS_VALUE, "expected an integer within int64 at [0]" },
        { "[9223372036854775808]", DTYPE_NONE, STATUS_VALUE, "expected an integer within int64 at [0]" },
        { "[1e39]", DTYPE_F32, STATUS_VALUE, "too large for float32" },
        { "[0.5, 1e39]", DTYPE_NONE, STATUS_VALUE, "too large for float32" },
        { "1e39", DTYPE_F32, STATUS_VALUE, "within float32" },
        { "[1, 1e39]", DTYPE_NONE, STATUS_VALUE, "within float32" },
        { "[1e400]", DTYPE_F64, STATUS_VALUE, "too large for float64" },
        { "[65520]", DTYPE_F16, STATUS_VALUE, "65520.0 at [0] is out of range for float16" },
        { "[464, 465]", DTYPE_F8E4M3FN, STATUS_VALUE, "465.0 at [1] is out of range for float8_e4m3fn" },
        { "[1e9]", DTYPE_F8E5M2, STATUS_VALUE, "1000000000.0 at [0] is out of range for float8_e5m2" },
        { "[-500]", DTYPE_F8E4M3FNUZ, STATUS_VALUE, "-500.0 at [0] is out of range for float8_e4m3fnuz" },
        { "[1, -1]", DTYPE_F8E8M0FNU, STATUS_VALUE, "-1.0 at [1] is out of range for float8_e8m0fnu" },
        { "[3.4e38]", DTYPE_BF16, STATUS_VALUE, "out of range for bfloat16" },
        { "[1, 2, 3]", DTYPE_C64, STATUS_VALUE, "[real, imaginary]" },
        { "3", DTYPE_C64, STATUS_VALUE, "[real, imaginary]" },
        { "[1, 2", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "[1, 2,]", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "[1 2]", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "[1, 2] 3", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "[01]", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "[NaN]", DTYPE_F32, STATUS_MALFORMED, "NaN" },
        { "", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "{}", DTYPE_F32, STATUS_VALUE, "needs \"data\" or \"b64\"" },
        { "{\"data\": [1], \"b64\": \"\"}", DTYPE_F32, STATUS_VALUE, "not both" },
        { "{\"data\": [1], \"size\": [1]}", DTYPE_F32, STATUS_UNKNOWN_MEMBER,
          "\"size\"; it knows dtype, shape, data, b64" },
        { "{\"dtype\": 3, \"data\": [1]}", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "{\"dtype\": \"quint8\", \"data\": [1]}", DTYPE_F32, STATUS_VALUE, "unknown dtype \"quint8\"" },
        { "{\"shape\": [2], \"data\": [1]}", DTYPE_F32, STATUS_SHAPE,
          "\"data\" has 1 values, but \"shape\" [2] needs 2" },
        { "{\"shape\": [4], \"data\": [[1, 2], [3, 4]]}", DTYPE_F32, STATUS_SHAPE,
          "\"data\" has shape [2, 2], but \"shape\" says [4]" },
        { "{\"shape\": [4294967296, 4294967296, 4294967296], \"data\": []}", DTYPE_F32, STATUS_TOO_LARGE,
          "elements" },
        { "{\"shape\": [-1], \"data\": [1]}", DTYPE_F32, STATUS_VALUE, "negative size -1" },
        { "{\"shape\": [1, 1, 1, 1, 1, 1, 1, 1, 1], \"data\": [1]}", DTYPE_F32, STATUS_VALUE,
          "more than 8 dimensions" },
        { "{\"shape\": [1.5], \"data\": [1]}", DTYPE_F32, STATUS_MALFORMED, "line 1" },
        { "{\"b64\": \"AAAA\"}", DTYPE_F32, STATUS_VALUE, "needs \"shape\"" },
        { "{\"b64\": \"AAAA\", \"shape\": [1]}", DTYPE_NONE, STATUS_VALUE, "needs \"dtype\"" },
        { "{\"b64\": 3, \"shape\": [1]}", DTYPE_F32, STATUS_VALUE, "\"b64\" must be a text" },
        { "{\"b64\": \"AAA?\", \"shape\": [3], \"dtype\": \"uint8\"}", DTYPE_NONE, STATUS_MALFORMED,
          "alphabet" },
        { "{\"b64\": \"AAAA\", \"shape\": [4], \"dtype\": \"uint8\"}", DTYPE_NONE, STATUS_SHAPE,
          "holds 3 bytes, but shape [4] of uint8 needs 4" },
        { "{\"b64\": \"AgAA\", \"shape\": [3], \"dtype\": \"bool\"}", DTYPE_NONE, STATUS_VALUE,
          "byte 0x02 at 0" },
};

Test(tensor_json, what_is_wrong_is_refused_with_its_place)
{
        for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
                Tensor *tensor = NULL;
                Budget budget;
                budget_init(&budget, 1 << 20);
                Status status = read_as(bad[i].text, bad[i].expected, &budget, &tensor);
                cr_expect_eq(status, bad[i].status, "%s: %s: %s", bad[i].text, status_code(status),
                             failure_current()->message);
                cr_expect(strstr(failure_current()->message, bad[i].words) != NULL,
                          "%s: \"%s\" does not hold \"%s\"", bad[i].text, failure_current()->message,
                          bad[i].words);
                tensor_unref(tensor); // "[1, 2] 3" gives one
                cr_expect_eq(budget.used, 0, "%s keeps %zu bytes", bad[i].text, budget.used);
        }
}

Test(tensor_json, rows_longer_than_the_first_buffer_lose_nothing)
{
        enum { ROWS = 7, COLUMNS = 1000 };
        static const Dtype dtypes[] = { DTYPE_NONE, DTYPE_F32, DTYPE_F64, DTYPE_I64,
                                        DTYPE_I16,  DTYPE_U64, DTYPE_F16, DTYPE_BOOL };
        Text text = { 0 };
        for (size_t k = 0; k < ARRAY_LENGTH(dtypes); k++) {
                text.n = 0;
                text_add_char(&text, '[');
                for (int i = 0; i < ROWS * COLUMNS; i++) {
                        text_add(&text, i % COLUMNS > 0 ? "," : i > 0 ? "],[" : "[");
                        text_add_int(&text, dtypes[k] == DTYPE_BOOL ? i % 2 : i % 2048);
                }
                text_add(&text, "]]");
                Tensor *tensor = NULL;
                cr_assert_eq(read_as(text.data, dtypes[k], NULL, &tensor), STATUS_OK, "%s",
                             failure_current()->message);
                cr_assert_eq(tensor->meta.size[0], ROWS);
                cr_assert_eq(tensor->meta.size[1], COLUMNS);
                const uint8_t *data = tensor_data(tensor);
                Dtype dtype = tensor->meta.dtype;
                for (int i = 0; i < ROWS * COLUMNS; i++)
                        cr_assert_eq(element_as_f64(dtype, data + (size_t)i * dtype_info[dtype].bytes),
                                     dtype == DTYPE_BOOL ? i % 2 : i % 2048);
                tensor_unref(tensor);
        }
        text_deinit(&text);
}

Test(tensor_json, a_late_float_changes_the_type_of_all_that_came_before)
{
        Text text = { 0 };
        text_add_char(&text, '[');
        for (int i = 0; i < 3000; i++)
                text_add(&text, i < 1000 ? "true," : "2,");
        text_add(&text, "0.5]");
        Tensor *tensor = NULL;
        cr_assert_eq(read_as(text.data, DTYPE_NONE, NULL, &tensor), STATUS_OK);
        const float *data = tensor_data(tensor);
        cr_assert_eq(tensor->meta.dtype, DTYPE_F32);
        cr_assert(data[0] == 1 && data[999] == 1 && data[1000] == 2 && data[2999] == 2 && data[3000] == 0.5f);
        tensor_unref(tensor);
        text_deinit(&text);
}

Test(tensor_json, the_budget_is_charged_before_memory_is_taken)
{
        Budget budget;
        budget_init(&budget, 4096);
        Text text = { 0 };
        text_add(&text, "[1");
        for (int i = 0; i < 5000; i++)
                text_add(&text, ",2");
        text_add_char(&text, ']');
        Tensor *tensor = NULL;
        cr_assert_eq(read_as(text.data, DTYPE_F32, &budget, &tensor), STATUS_TOO_LARGE);
        cr_assert_null(tensor);
        cr_assert_eq(budget.used, 0);
        cr_assert_leq(budget.peak, 4096);
        text_deinit(&text);
        cr_assert_eq(read_as("[1, 2]", DTYPE_F32, &budget, &tensor), STATUS_OK);
        cr_assert_eq(budget.used, 8); // the tensor alone
        tensor_unref(tensor);
        cr_assert_eq(budget.used, 0);
}

Test(tensor_json, an_object_may_leave_its_data_out_where_that_is_allowed)
{
        Arena arena;
        arena_init(&arena, 0);
        static const char text[] = "{\"dtype\": \"int8\", \"shape\": [2, 3]}";
        JsonReader *reader = NULL;
        Tensor *tensor = NULL;
        TensorJsonDescription said;
        cr_assert_eq(json_open(text, sizeof(text) - 1, 8, 0, &arena, &reader), STATUS_OK);
        cr_assert_eq(tensor_json_read_described(reader, NULL, NULL, &tensor, &said), STATUS_OK);
        cr_assert_null(tensor);
        cr_assert(said.dtype == DTYPE_I8 && said.rank == 2 && said.shape[1] == 3);
        json_close(reader);
        arena_deinit(&arena);
}

// ---- writing ----

static void writes(const char *text, Dtype dtype, TensorJsonStyle style, const char *want)
{
        Tensor *tensor = NULL;
        cr_assert_eq(read_as(text, dtype, NULL, &tensor), STATUS_OK, "%s", failure_current()->message);
        Text out = { 0 };
        cr_assert_eq(tensor_json_write(tensor, style, NULL, SIZE_MAX, &out), STATUS_OK);
        cr_assert_str_eq(out.data, want);
        text_deinit(&out);
        tensor_unref(tensor);
}

Test(tensor_json, nested_lists_have_the_shape_of_the_tensor)
{
        writes("[[1.5, 2], [3, 4]]", DTYPE_F32, TENSOR_JSON_NESTED, "[[1.5, 2.0], [3.0, 4.0]]");
        writes("[[[1], [2]], [[3], [4]]]", DTYPE_I64, TENSOR_JSON_NESTED, "[[[1], [2]], [[3], [4]]]");
        writes("[[[1], [2]], [[3], [4]]]", DTYPE_I64, TENSOR_JSON_FLAT, "[1, 2, 3, 4]");
        writes("7", DTYPE_I64, TENSOR_JSON_NESTED, "7");
        writes("7", DTYPE_I64, TENSOR_JSON_FLAT, "[7]");
        writes("true", DTYPE_BOOL, TENSOR_JSON_NESTED, "true");
        writes("[]", DTYPE_F32, TENSOR_JSON_NESTED, "[]");
        writes("[[], []]", DTYPE_F32, TENSOR_JSON_NESTED, "[[], []]");
        writes("{\"shape\": [2, 0, 3], \"data\": []}", DTYPE_F32, TENSOR_JSON_NESTED, "[[], []]");
        writes("{\"shape\": [0, 2], \"data\": []}", DTYPE_F32, TENSOR_JSON_NESTED, "[]");
        writes("{\"shape\": [1, 2, 0, 0], \"data\": []}", DTYPE_F32, TENSOR_JSON_NESTED, "[[[], []]]");
        writes("[1.0, -2.0]", DTYPE_F32, TENSOR_JSON_B64, "\"AACAPwAAAMA=\"");
        writes("[[1, 2]]", DTYPE_C64, TENSOR_JSON_NESTED, "[[1.0, 2.0]]");
        writes("[0.1, 1e-7, 123456789, \"NaN\"]", DTYPE_F64, TENSOR_JSON_FLAT,
               "[0.1, 1e-7, 123456789.0, \"NaN\"]");
}

Test(tensor_json, strided_tensors_are_written_in_logical_order)
{
        Tensor *tensor = NULL, *view = NULL;
        cr_assert_eq(read_as("[[1, 2, 3], [4, 5, 6]]", DTYPE_I64, NULL, &tensor), STATUS_OK);
        TensorMeta meta = tensor->meta;
        meta.size[0] = 3;
        meta.size[1] = 2;
        meta.stride[0] = 1;
        meta.stride[1] = 3;
        cr_assert_eq(tensor_new_view(tensor->storage, &meta, 0, &view), STATUS_OK);
        Text out = { 0 };
        cr_assert_eq(tensor_json_write(view, TENSOR_JSON_NESTED, NULL, SIZE_MAX, &out), STATUS_OK);
        cr_assert_str_eq(out.data, "[[1, 4], [2, 5], [3, 6]]");
        text_deinit(&out);
        tensor_unref(view);
        tensor_unref(tensor);
}

// Of a million elements or rows, in every style: it ends soon after the limit.
static void stops(Dtype dtype, int rank, const int64_t *size, TensorJsonStyle style)
{
        enum { MOST = 1000, SLACK = 1024 * (NUMBER_TEXT_MAX + 4) };
        TensorMeta meta;
        Tensor *tensor = NULL;
        Text out = { 0 };
        meta_init(&meta, dtype, rank, size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        if (tensor->storage->n_bytes > 0)
                memset(tensor_data(tensor), 0, tensor->storage->n_bytes);
        cr_expect_eq(tensor_json_write(tensor, style, NULL, MOST, &out), STATUS_TOO_LARGE);
        cr_expect(out.n > MOST && (out.n < MOST + SLACK || style == TENSOR_JSON_B64), "%zu", out.n);
        text_deinit(&out);
        tensor_unref(tensor);
}

Test(tensor_json, a_text_ends_soon_after_its_limit)
{
        const int64_t flat[] = { 1000000 }, rows[] = { 1000000, 0 }, nested[] = { 1000, 1000 };
        stops(DTYPE_F32, 1, flat, TENSOR_JSON_NESTED);
        stops(DTYPE_F32, 2, rows, TENSOR_JSON_NESTED);
        stops(DTYPE_F32, 2, nested, TENSOR_JSON_NESTED);
        stops(DTYPE_I64, 2, nested, TENSOR_JSON_NESTED);
        stops(DTYPE_F32, 2, nested, TENSOR_JSON_FLAT);
        stops(DTYPE_BOOL, 1, flat, TENSOR_JSON_FLAT);
        stops(DTYPE_F64, 2, nested, TENSOR_JSON_B64);
}

static int64_t least(int rank, const int64_t *size, TensorJsonStyle style)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_I8, rank, size);
        return tensor_json_least(&meta, style);
}

// Digits have one character, so the text is as short as it may be.
Test(tensor_json, the_least_length_is_that_of_the_shortest_text)
{
        static const int64_t sizes[][3] = { { 1, 1, 1 }, { 3, 2, 4 }, { 0, 2, 4 }, { 3, 0, 4 }, { 3, 2, 0 } };
        for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++)
                for (int rank = 0; rank <= 3; rank++)
                        for (int style = TENSOR_JSON_NESTED; style <= TENSOR_JSON_B64; style++) {
                                TensorMeta meta;
                                Tensor *tensor = NULL;
                                Text out = { 0 };
                                meta_init(&meta, DTYPE_I8, rank, sizes[i]);
                                cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
                                if (tensor->storage->n_bytes > 0)
                                        memset(tensor_data(tensor), 0, tensor->storage->n_bytes);
                                TensorJsonStyle as = (TensorJsonStyle)style;
                                cr_assert_eq(tensor_json_write(tensor, as, NULL, SIZE_MAX, &out), STATUS_OK);
                                cr_expect_eq((size_t)tensor_json_least(&meta, as), out.n, "%s", out.data);
                                text_deinit(&out);
                                tensor_unref(tensor);
                        }
}

Test(tensor_json, the_least_length_of_empty_lists_is_known_without_writing_them)
{
        const int64_t rows[] = { INT32_MAX, 0 }, deep[] = { INT32_MAX, INT32_MAX, INT32_MAX, 0 };
        cr_expect_eq(least(2, rows, TENSOR_JSON_NESTED), 2 + 2 * (INT32_MAX - 1LL) + 2LL * INT32_MAX);
        cr_expect_eq(least(2, rows, TENSOR_JSON_FLAT), 2);
        cr_expect_eq(least(4, deep, TENSOR_JSON_NESTED), INT64_MAX);
}

Test(tensor_json, a_text_may_be_as_long_as_its_limit)
{
        Tensor *tensor = NULL;
        Text out = { 0 };
        cr_assert_eq(read_as("[[1, 2], [3, 4]]", DTYPE_I64, NULL, &tensor), STATUS_OK);
        cr_expect_eq(tensor_json_write(tensor, TENSOR_JSON_NESTED, NULL, 16, &out), STATUS_OK);
        cr_expect_str_eq(out.data, "[[1, 2], [3, 4]]");
        text_deinit(&out);
        cr_expect_eq(tensor_json_write(tensor, TENSOR_JSON_NESTED, NULL, 15, &out), STATUS_TOO_LARGE);
        text_deinit(&out);
        tensor_unref(tensor);
}

Test(tensor_json, a_text_that_was_stopped_just_beyond_its_limit_is_too_large)
{
        enum { MOST = 1 + 1024 * 5 - 1 }; // "[" and the first batch of "0.0, " are one byte more
        int64_t size = 2048;
        TensorMeta meta;
        Tensor *tensor = NULL;
        Text out = { 0 };
        meta_init(&meta, DTYPE_F32, 1, &size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        memset(tensor_data(tensor), 0, tensor->storage->n_bytes);
        cr_expect_eq(tensor_json_write(tensor, TENSOR_JSON_FLAT, NULL, MOST, &out), STATUS_TOO_LARGE);
        cr_expect_gt(out.n, MOST);
        text_deinit(&out);
        tensor_unref(tensor);
}

Test(tensor_json, the_copy_of_a_strided_tensor_is_charged)
{
        Tensor *tensor = NULL, *view = NULL;
        Text out = { 0 };
        Budget budget;
        cr_assert_eq(read_as("[[1, 2, 3], [4, 5, 6]]", DTYPE_I64, NULL, &tensor), STATUS_OK);
        TensorMeta meta = tensor->meta;
        meta.size[1] = 2;
        cr_assert_eq(tensor_new_view(tensor->storage, &meta, 0, &view), STATUS_OK);
        budget_init(&budget, 31);
        cr_expect_eq(tensor_json_write(view, TENSOR_JSON_FLAT, &budget, SIZE_MAX, &out), STATUS_TOO_LARGE);
        budget_init(&budget, 32);
        cr_expect_eq(tensor_json_write(view, TENSOR_JSON_FLAT, &budget, SIZE_MAX, &out), STATUS_OK);
        cr_expect_eq(budget.used, 0);
        text_deinit(&out);
        tensor_unref(view);
        tensor_unref(tensor);
}

Test(tensor_json, float32_bits_survive_text)
{
        enum { N = 20000 };
        int64_t size = N;
        TensorMeta meta;
        Tensor *tensor = NULL, *again = NULL;
        meta_init(&meta, DTYPE_F32, 1, &size);
        cr_assert_eq(tensor_new(&meta, NULL, &tensor), STATUS_OK);
        uint32_t *bits = tensor_data(tensor), state = 1;
        for (int i = 0; i < N; i++) {
                do
                        state = state * 1664525u + 1013904223u;
                // any bits but NaN's
                while ((state & 0x7f800000u) == 0x7f800000u && (state & 0x7fffffu) != 0);
                bits[i] = state;
        }
        Text out = { 0 };
        cr_assert_eq(tensor_json_write(tensor, TENSOR_JSON_NESTED, NULL, SIZE_MAX, &out), STATUS_OK);
        cr_assert_eq(read_as(out.data, DTYPE_F32, NULL, &again), STATUS_OK, "%s", failure_current()->message);
        cr_assert_eq(memcmp(tensor_data(again), bits, N * 4), 0);
        text_deinit(&out);
        tensor_unref(tensor);
        tensor_unref(again);
}
