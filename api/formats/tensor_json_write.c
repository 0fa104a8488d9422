// SPDX-License-Identifier: Apache-2.0
// tensor_json_write.c: tensor memory -> text. Numbers are printed straight into the reply's buffer,
// in batches for which room is reserved first; between batches the length is compared with the
// limit. Halves print as the equal float32; complex numbers as [real, imaginary].
#include <math.h>
#include <string.h>
#include "api/formats/base64.h"
#include "api/formats/tensor_json.h"

enum { BATCH = 64, FLOAT_BATCH = 1024, BASE64_BATCH = 3 << 18, SEPARATOR_MAX = 4 };

// Quotes around values that JSON has no number for.
static size_t print_float(double value, bool single, char *out)
{
        bool finite = isfinite(value);
        char *at = out + !finite;
        at += single ? number_print_f32((float)value, at) : number_print_f64(value, at);
        if (!finite) {
                out[0] = '"';
                *at++ = '"';
        }
        return (size_t)(at - out);
}

static size_t print_complex(double re, double im, bool single, char *out)
{
        size_t n = 0;
        out[n++] = '[';
        n += print_float(re, single, out + n);
        out[n++] = ',';
        out[n++] = ' ';
        n += print_float(im, single, out + n);
        out[n++] = ']';
        return n;
}

static size_t print_item(Dtype dtype, const uint8_t *item, char *out)
{
        float f[2];
        double d[2];
        uint64_t u;
        switch (dtype) {
        case DTYPE_F32:
                memcpy(f, item, sizeof(f[0]));
                return print_float((double)f[0], true, out);
        case DTYPE_F64:
                memcpy(d, item, sizeof(d[0]));
                return print_float(d[0], false, out);
        case DTYPE_F16:
        case DTYPE_BF16:
        case DTYPE_F8E4M3FN:
        case DTYPE_F8E5M2:
        case DTYPE_F8E4M3FNUZ:
        case DTYPE_F8E5M2FNUZ:
        case DTYPE_F8E8M0FNU:
                return print_float(element_as_f64(dtype, item), true, out);
        case DTYPE_C64:
                memcpy(f, item, sizeof(f));
                return print_complex((double)f[0], (double)f[1], true, out);
        case DTYPE_C128:
                memcpy(d, item, sizeof(d));
                return print_complex(d[0], d[1], false, out);
        case DTYPE_BOOL:
                memcpy(out, *item != 0 ? "true" : "false", 5);
                return *item != 0 ? 4 : 5;
        case DTYPE_U64:
                memcpy(&u, item, sizeof(u));
                return number_print_u64(u, out);
        default:
                return number_print_i64(element_as_i64(dtype, item), out);
        }
}

// The most common dtype, directly.
static void write_floats(const float *items, int64_t n, size_t most, Text *out)
{
        int64_t done = 0;
        while (done < n && out->n <= most) {
                int64_t batch = MIN(n - done, FLOAT_BATCH);
                char *at = text_reserve(out, (size_t)batch * (NUMBER_TEXT_MAX + SEPARATOR_MAX));
                if (at == NULL)
                        return;
                out->n += number_print_f32_row(items + done, (size_t)batch, at);
                done += batch;
        }
        if (n > 0 && done == n) { // a text that was cut off stays longer than `most`
                out->n -= 2;      // the last separator
                out->data[out->n] = '\0';
        }
}

// "1.0, 2.5, 3.0": n items that lie one after the other.
static void write_items(Dtype dtype, const uint8_t *items, int64_t n, size_t most, Text *out)
{
        size_t bytes = dtype_info[dtype].bytes;
        if (dtype == DTYPE_F32) {
                write_floats((const float *)(const void *)items, n, most, out);
                return;
        }
        for (int64_t done = 0; done < n && out->n <= most;) {
                int64_t batch = MIN(n - done, BATCH);
                char *start = text_reserve(out, (size_t)batch * 2 * (NUMBER_TEXT_MAX + SEPARATOR_MAX)),
                     *at = start;
                if (start == NULL)
                        return;
                for (int64_t i = 0; i < batch; i++, done++) {
                        if (done > 0) {
                                *at++ = ',';
                                *at++ = ' ';
                        }
                        const uint8_t *item = items + (size_t)done * bytes;
                        at += print_item(dtype, item, at);
                }
                *at = '\0';
                out->n += (size_t)(at - start);
        }
}

// Rows of the innermost dimension, with the brackets that open and close between them. `size` has
// at least one dimension.
static void write_nested(const TensorMeta *meta, const uint8_t *data, size_t most, Text *out)
{
        int rank = meta->rank;
        int64_t inner = meta->size[rank - 1], index[MAX_RANK] = { 0 };
        size_t row_bytes = (size_t)inner * dtype_info[meta->dtype].bytes;
        int open = rank;
        for (int d = 0; d < rank - 1; d++) {
                if (meta->size[d] == 0) { // nothing below: [[], []] ends at the first empty dimension
                        open = d + 1;
                        inner = 0;
                        break;
                }
        }
        text_repeat(out, '[', (size_t)open);
        for (;;) {
                if (open == rank)
                        write_items(meta->dtype, data, inner, most, out);
                data += row_bytes;
                int d = open - 2, closed = 1;
                for (; d >= 0 && ++index[d] == meta->size[d]; d--) {
                        index[d] = 0;
                        closed++;
                }
                text_repeat(out, ']', (size_t)closed);
                if (d < 0 || out->n > most)
                        return;
                text_add(out, ", ");
                text_repeat(out, '[', (size_t)closed);
        }
}

static void write_base64(const uint8_t *bytes, size_t n, size_t most, Text *out)
{
        text_add_char(out, '"');
        for (size_t done = 0; done < n && out->n <= most; done += BASE64_BATCH)
                base64_encode(bytes + done, MIN(n - done, (size_t)BASE64_BATCH), out);
        text_add_char(out, '"');
}

// a + b * c; stays at INT64_MAX. No argument is negative.
static int64_t sum_of(int64_t a, int64_t b, int64_t c)
{
        int64_t product, sum;
        return mul_i64(b, c, &product) && add_i64(a, product, &sum) ? sum : INT64_MAX;
}

int64_t tensor_json_least(const TensorMeta *meta, TensorJsonStyle style)
{
        int64_t numel = meta_numel(meta), lists = 1, bytes = 0;
        if (style == TENSOR_JSON_B64)
                return sum_of(2, (numel * dtype_info[meta->dtype].bytes + 2) / 3, 4);
        if (style == TENSOR_JSON_FLAT)
                return sum_of(2, 1, numel + 2 * MAX(numel - 1, 0));
        for (int d = 0; d < meta->rank; d++) {
                bytes = sum_of(bytes, lists, 2 + 2 * MAX(meta->size[d] - 1, 0));
                lists = sum_of(0, lists, meta->size[d]);
        }
        return sum_of(bytes, lists, 1);
}

Status tensor_json_write(const Tensor *tensor, TensorJsonStyle style, Budget *budget, size_t most, Text *out)
{
        _cleanup_(tensor_unrefp) Tensor *dense = NULL;
        TRY(tensor_contiguous((Tensor *)(uintptr_t)tensor, budget, &dense)); // a reference more, or a copy
        const TensorMeta *meta = &dense->meta;
        const uint8_t *data = tensor_data(dense);
        int64_t numel = meta_numel(meta);
        if (style == TENSOR_JSON_B64) {
                write_base64(data, (size_t)numel * dtype_info[meta->dtype].bytes, most, out);
        } else if (style == TENSOR_JSON_FLAT) {
                text_add_char(out, '[');
                write_items(meta->dtype, data, numel, most, out);
                text_add_char(out, ']');
        } else if (meta->rank == 0) {
                write_items(meta->dtype, data, 1, most, out);
        } else {
                write_nested(meta, data, most, out);
        }
        TRY(text_status(out));
        return out->n <= most ? STATUS_OK
                              : fail(STATUS_TOO_LARGE, "the tensor's text is larger than %zu bytes", most);
}
