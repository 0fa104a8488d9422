// SPDX-License-Identifier: Apache-2.0
// windows.c: the windows of signal processing, step by step as PyTorch makes them in the dtype of
// the result. A periodic window is one that is longer by one, without its last element.
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "core/ops/compose.h"
#include "core/tensor/half.h"

// Element i of a window of n elements, from i = 0, 1, …
typedef Value (*Shape)(Compose *c, Value ramp, int64_t n);

// Not every overload has the argument.
static bool has(Compose *c, const char *name)
{
        const Schema *schema = c->call->schema;
        for (uint32_t i = 0; i < schema->n_args; i++) {
                if (strcmp(schema->args[i].name, name) == 0)
                        return true;
        }
        return false;
}

static double number_or(Compose *c, const char *name, double otherwise)
{
        return has(c, name) ? compose_double(c, name) : otherwise;
}

// As PyTorch's mul_ by a number, which is rounded to a half dtype first.
static Value scaled(Compose *c, Value x, double factor)
{
        Dtype dtype = compose_meta(c, x)->dtype;
        bool half = dtype == DTYPE_F16 || dtype == DTYPE_BF16;
        return OP(c, "aten::mul.Scalar", x,
                  value_float(half ? (double)rounded_to_half((float)factor, dtype) : factor));
}

static Value cosine(Compose *c, Value ramp, int64_t n, double alpha, double beta)
{
        Value wave = OP(c, "aten::cos", scaled(c, ramp, M_PI * 2.0 / (double)(n - 1)));
        return OP(c, "aten::add.Scalar", scaled(c, wave, -beta), value_float(alpha));
}

static Value hann(Compose *c, Value ramp, int64_t n)
{
        return cosine(c, ramp, n, 0.5, 0.5);
}

static Value hamming(Compose *c, Value ramp, int64_t n)
{
        return cosine(c, ramp, n, number_or(c, "alpha", 0.54), number_or(c, "beta", 0.46));
}

static Value blackman(Compose *c, Value ramp, int64_t n)
{
        Value x = scaled(c, ramp, M_PI / (double)(n - 1));
        Value fast = scaled(c, OP(c, "aten::cos", scaled(c, x, 4)), 0.08);
        Value slow = scaled(c, OP(c, "aten::cos", scaled(c, x, 2)), 0.5);
        return OP(c, "aten::add.Scalar", OP(c, "aten::sub.Tensor", fast, slow), value_float(0.42));
}

static Value bartlett(Compose *c, Value ramp, int64_t n)
{
        Value rising = scaled(c, ramp, 2.0 / (double)(n - 1)), middle = value_int(((n - 1) >> 1) + 1);
        Value first = OP(c, "aten::slice.Tensor", rising, value_int(0), value_int(0), middle);
        Value second = OP(c, "aten::slice.Tensor", rising, value_int(0), middle);
        second = OP(c, "aten::add.Scalar", OP(c, "aten::neg", second), value_int(2));
        return OP(c, "aten::cat", compose_list(c, (Value[]){ first, second }, 2), value_int(0));
}

static Value kaiser(Compose *c, Value ramp, int64_t n)
{
        Value beta = value_float(number_or(c, "beta", 12.0)), half = value_float((double)(n - 1) / 2.0);
        Dtype dtype = compose_meta(c, ramp)->dtype;
        Value x = compose_wide(c, ramp);
        x = OP(c, "aten::div.Scalar", OP(c, "aten::sub.Scalar", x, half), half);
        x = OP(c, "aten::rsub.Scalar", OP(c, "aten::mul.Tensor", x, x), value_int(1));
        x = OP(c, "aten::i0", OP(c, "aten::mul.Scalar", OP(c, "aten::sqrt", x), beta));
        Value most = OP(c, "aten::full_like",
                        OP(c, "aten::slice.Tensor", x, value_int(0), value_int(0), value_int(1)), beta);
        return compose_cast(c, OP(c, "aten::div.Tensor", x, OP(c, "aten::i0", most)), dtype);
}

typedef struct WindowRow {
        Shape shape;
} WindowRow;

static Status window_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        Compose c;
        compose_begin(&c, emitter, call);
        const int64_t length = compose_int(&c, "window_length");
        const bool periodic = !has(&c, "periodic") || compose_bool(&c, "periodic");
        const Value dtype = NAMED(&c, "dtype"), layout = NAMED(&c, "layout"), device = NAMED(&c, "device");
        if (length < 0)
                return fail(STATUS_VALUE,
                            "%s requires non-negative window_length, got window_length=%" PRId64,
                            call->schema->name, length);
        if (dtype.kind == VALUE_DTYPE && !dtype_is_float(dtype.dtype))
                return fail(STATUS_DTYPE, "%s expects floating point dtypes, got: %s", call->schema->name,
                            dtype_words(dtype.dtype));
        int64_t n;
        if (!add_i64(length, periodic, &n))
                return fail(STATUS_VALUE, "%s: window_length=%" PRId64 " is too large", call->schema->name,
                            length);
        const Value type = dtype.kind == VALUE_DTYPE ? dtype : value_dtype(DTYPE_F32);
        if (length <= 1) {
                Value ones = OP(&c, "aten::ones", INTS(&c, length), type, layout, device);
                return compose_end(&c, ones, out);
        }
        const WindowRow *row = call->op->row;
        Value ramp = OP(&c, "aten::arange", value_int(n), type, layout, device);
        Value window = row->shape(&c, ramp, n);
        return compose_end(
                &c, OP(&c, "aten::slice.Tensor", window, value_int(0), value_int(0), value_int(length)), out);
}

#define OPTIONS                                                                                              \
        ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "  \
        "Tensor"
#define WINDOW(name, arguments, shape_)                                                                      \
        {                                                                                                    \
                "aten::" name "(int window_length" arguments OPTIONS, 0,                                     \
                        .expand = window_expand, .row = &(const WindowRow){ shape_ }, .traits = TRAIT_FRESH  \
        }
const OpDef windows_ops[] = {
        WINDOW("hann_window", "", hann),
        WINDOW("hann_window.periodic", ", bool periodic", hann),
        WINDOW("hamming_window", "", hamming),
        WINDOW("hamming_window.periodic", ", bool periodic", hamming),
        WINDOW("hamming_window.periodic_alpha", ", bool periodic, float alpha", hamming),
        WINDOW("hamming_window.periodic_alpha_beta", ", bool periodic, float alpha, float beta", hamming),
        WINDOW("blackman_window", "", blackman),
        WINDOW("blackman_window.periodic", ", bool periodic", blackman),
        WINDOW("bartlett_window", "", bartlett),
        WINDOW("bartlett_window.periodic", ", bool periodic", bartlett),
        WINDOW("kaiser_window", "", kaiser),
        WINDOW("kaiser_window.periodic", ", bool periodic", kaiser),
        WINDOW("kaiser_window.beta", ", bool periodic, float beta", kaiser),
};
OP_FILE(windows_ops);
