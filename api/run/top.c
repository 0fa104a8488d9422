// SPDX-License-Identifier: Apache-2.0
#include "api/run/top.h"
#include <string.h>
#include "api/run/run_private.h"
#include "core/base/limits.h"
#include "core/base/utf8.h"
#include "core/engine/put.h"

// ---- labels ----
// Calls nothing for an empty text; a line end at the end begins no further line.
static uint32_t count_lines(ByteSpan text)
{
        uint32_t n = text.n > 0 && text.data[text.n - 1] != '\n';
        for (size_t i = 0; i < text.n; i++)
                n += text.data[i] == '\n';
        return n;
}

Status labels_check(ByteSpan text)
{
        const char *at = (const char *)text.data, *end = at + text.n;
        if (text.n > (size_t)limits.max_labels)
                return fail(STATUS_TOO_LARGE,
                            "labels of %zu bytes; the limit is %lld (max_labels in GET /v1)", text.n,
                            (long long)limits.max_labels);
        while (at < end) {
                size_t n = utf8_length(at, end);
                if (n == 0 || *at == '\0')
                        return fail(STATUS_MALFORMED, "labels are lines of UTF-8 text; byte %zu is none",
                                    (size_t)(at - (const char *)text.data));
                at += n;
        }
        return STATUS_OK;
}

static Status split_lines(Labels *labels)
{
        ByteSpan text = body_span(labels->bytes);
        uint32_t n = count_lines(text);
        labels->lines = new_array(n, sizeof(*labels->lines));
        if (labels->lines == NULL)
                return fail_memory();
        for (const uint8_t *at = text.data, *end = at + text.n; labels->n < n;) {
                const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
                stop = stop == NULL ? end : stop;
                size_t length = (size_t)(stop - at);
                length -= length > 0 && at[length - 1] == '\r';
                labels->lines[labels->n++] = (ByteSpan){ at, length };
                at = stop + 1;
        }
        return STATUS_OK;
}

Status labels_open(const RunCall *run, Labels *out)
{
        const GraphVersion *version = run->task.version;
        *out = (Labels){ .n = 0 };
        if (version == NULL)
                return STATUS_OK;
        for (uint32_t i = 0; i < version->stored.n_parts; i++) {
                if (version->stored.parts[i].role != STORE_LABELS)
                        continue;
                TRY(engine_part(run->recipe.engine, version, STORE_LABELS, &out->bytes));
                Status status = split_lines(out);
                if (status != STATUS_OK)
                        labels_deinit(out);
                return status;
        }
        return STATUS_OK;
}

void labels_deinit(Labels *labels)
{
        storage_unref(labels->bytes);
        free(labels->lines);
        *labels = (Labels){ .n = 0 };
}

// ---- the greatest values ----
static bool is_float(Dtype dtype)
{
        return dtype_info[dtype].kind == DTYPE_KIND_FLOAT;
}

static bool is_greater(Dtype dtype, const TopValue *a, const TopValue *b)
{
        if (dtype == DTYPE_U64)
                return (uint64_t)a->whole > (uint64_t)b->whole;
        return is_float(dtype) ? a->value > b->value || (a->value != a->value && b->value == b->value)
                               : a->whole > b->whole;
}

Status top_of_row(const RunCall *run, const TopRow *row, int64_t k, TopValue out[TOP_MAX], int64_t *out_n)
{
        size_t bytes = dtype_info[row->dtype].bytes;
        Work work = { .ctx = &run->task.ctx };
        int64_t n = 0;
        k = MIN(k, TOP_MAX);
        for (int64_t i = 0; i < row->n; i++) {
                const uint8_t *element = row->data + (size_t)i * bytes;
                TopValue value = { .index = i };
                if (is_float(row->dtype))
                        value.value = element_as_f64(row->dtype, element);
                else
                        value.whole = element_as_i64(row->dtype, element);
                if (work_stops(&work, 4))
                        return run_poll(work.ctx);
                if (n == k && !is_greater(row->dtype, &value, &out[k - 1]))
                        continue;
                int64_t at = n < k ? n++ : k - 1;
                for (; at > 0 && is_greater(row->dtype, &value, &out[at - 1]); at--)
                        out[at] = out[at - 1];
                out[at] = value;
        }
        *out_n = n;
        return STATUS_OK;
}

bool top_applies(const Tensor *tensor)
{
        return tensor->meta.rank > 0 && dtype_info[tensor->meta.dtype].kind != DTYPE_KIND_COMPLEX;
}

// ---- as JSON ----
void top_write_integer(Dtype dtype, const TopValue *value, Text *out)
{
        if (dtype == DTYPE_U64)
                text_addf(out, "%llu", (unsigned long long)value->whole);
        else
                text_add_int(out, value->whole);
}

static void write_value(Dtype dtype, const TopValue *value, Text *out)
{
        if (!is_float(dtype))
                top_write_integer(dtype, value, out);
        else if (dtype == DTYPE_F64)
                text_add_f64(out, value->value);
        else
                text_add_f32(out, (float)value->value);
}

static void write_row(Dtype dtype, const TopValue *top, int64_t n, const Labels *labels, Text *out)
{
        text_add_char(out, '[');
        for (int64_t i = 0; i < n; i++) {
                text_add(out, i == 0 ? "{\"index\": " : ", {\"index\": ");
                text_add_int(out, top[i].index);
                text_add(out, ", \"value\": ");
                write_value(dtype, &top[i], out);
                if (top[i].index < labels->n) {
                        ByteSpan line = labels->lines[top[i].index];
                        text_add(out, ", \"label\": ");
                        text_add_json_n(out, (const char *)line.data, line.n);
                }
                text_add_char(out, '}');
        }
        text_add_char(out, ']');
}

// Opens or closes the lists around row `row`: one for each dimension whose first or last row it is.
static void write_brackets(const TensorMeta *meta, int64_t row, char bracket, Text *out)
{
        for (int d = meta->rank - 2; d >= 0; d--) {
                int64_t at = row % meta->size[d];
                if (at != (bracket == '[' ? 0 : meta->size[d] - 1))
                        return;
                text_add_char(out, bracket);
                row /= meta->size[d];
        }
}

static Status write_rows(RunCall *run, const Tensor *tensor, const Labels *labels, Text *out)
{
        const TensorMeta *meta = &tensor->meta;
        int64_t n = meta->size[meta->rank - 1], n_rows = n == 0 ? 0 : meta_numel(meta) / n, n_top;
        size_t bytes = (size_t)n * dtype_info[meta->dtype].bytes;
        TopValue top[TOP_MAX];
        if (n_rows == 0)
                text_add(out, "[]");
        for (int64_t row = 0; row < n_rows; row++) {
                TopRow values = { meta->dtype, (const uint8_t *)tensor_data(tensor) + (size_t)row * bytes,
                                  n };
                TRY(top_of_row(run, &values, run->top, top, &n_top));
                text_add(out, row == 0 ? "" : ", ");
                write_brackets(meta, row, '[', out);
                write_row(meta->dtype, top, n_top, labels, out);
                write_brackets(meta, row, ']', out);
                TRY(text_status(out));
                TRY(run_check_reply(out->n));
        }
        return text_status(out);
}

Status top_write(RunCall *run, const Tensor *tensor, Text *out)
{
        _cleanup_(tensor_unrefp) Tensor *dense = NULL;
        _cleanup_(labels_deinit) Labels labels;
        TRY(labels_open(run, &labels));
        TRY(tensor_contiguous((Tensor *)(uintptr_t)tensor, &run->task.budget, &dense));
        return write_rows(run, dense, &labels, out);
}
