// SPDX-License-Identifier: Apache-2.0
// run_scalar.c: inputs that are plain values. Floats without a literal in JSON are the texts "NaN",
// "Infinity" and "-Infinity", as in lists of numbers.
#include <math.h>
#include <string.h>
#include "api/run/run_private.h"

// A text that stands for a float, unless the graph was exported with a text in this place.
static Status read_string(JsonReader *reader, const Input *input, Value *out)
{
        const char *text;
        size_t n;
        double number;
        const bool is_text = input->kind == INPUT_LITERAL && input->literal.kind == VALUE_STR;
        TRY(json_read_string(reader, &text, &n));
        if (is_text || !number_word(text, n, &number))
                return value_str_new(text, n, out);
        *out = value_float(number);
        return STATUS_OK;
}

Status run_read_scalar(JsonReader *reader, const Input *input, Value *out)
{
        NumberKind kind;
        int64_t integer;
        double number;
        bool yes;
        switch (json_peek(reader)) {
        case JSON_NULL:
                TRY(json_read_null(reader));
                *out = value_none();
                return STATUS_OK;
        case JSON_TRUE:
        case JSON_FALSE:
                TRY(json_read_bool(reader, &yes));
                *out = value_bool(yes);
                return STATUS_OK;
        case JSON_STRING:
                return read_string(reader, input, out);
        case JSON_NUMBER:
                TRY(json_read_number(reader, &kind, &integer, &number));
                if (isinf(number))
                        return fail(STATUS_VALUE,
                                    "a number is too large for float64; write \"Infinity\" as a "
                                    "string if that is meant");
                *out = kind == NUMBER_INT ? value_int(integer) : value_float(number);
                return STATUS_OK;
        default:
                return fail(STATUS_INPUT,
                            "a plain value (number, text, true, false or null) is expected, not %s",
                            json_peek(reader) == JSON_ARRAY ? "a list" : "an object");
        }
}

Status run_wrap_number(RunCall *run, double number, Value *out)
{
        const float single = (float)number;
        TensorMeta meta;
        Tensor *tensor;
        meta_init(&meta, DTYPE_F32, 0, NULL);
        TRY(tensor_new(&meta, &run->task.budget, &tensor));
        memcpy(tensor_data(tensor), &single, sizeof(single));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}
