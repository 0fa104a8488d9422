// SPDX-License-Identifier: Apache-2.0
// text/csv of SageMaker: a row per line, without a header. The rows become the only input; where
// the graph states its sizes behind the first, a row may hold those of one sample. Rows of a reply
// hold the values of all outputs, in their order.
#include <math.h>
#include <string.h>
#include <strings.h>
#include "api/formats/accept.h"
#include "api/formats/tensor_json.h"
#include "api/run/run_private.h"
#include "core/base/number.h"

static const char csv_type[] = "text/csv";

bool csv_accepted(const ApiCall *call)
{
        const char *accept = call->accept;
        int csv = 0, json = 0;
        AcceptItem item;
        while (accept_next(&accept, &item)) {
                if (accept_is(&item, csv_type))
                        csv = MAX(csv, item.quality);
                if (accept_is(&item, "application/json"))
                        json = MAX(json, item.quality);
        }
        return route_has(call->route, AS_SAGEMAKER) && csv > json;
}

static bool csv_reads(const ApiCall *call, ByteSpan body)
{
        size_t n = sizeof(csv_type) - 1;
        (void)body;
        return route_has(call->route, AS_SAGEMAKER) && strncasecmp(call->content_type, csv_type, n) == 0 &&
               strchr("; \t", call->content_type[n]) != NULL;
}

// ---- the request ----
typedef struct Cells {
        const char *at, *end;
        int64_t row, column; // from 1 on, for messages
        Dtype dtype;
        uint8_t *to;
} Cells;

// The end of the line at `at`.
static const char *line_end(const char *at, const char *end)
{
        const char *found = memchr(at, '\n', (size_t)(end - at));
        return found == NULL ? end : found;
}

static int64_t count_of(const char *at, const char *end, char wanted)
{
        int64_t n = 0;
        for (; at < end; at++)
                n += *at == wanted;
        return n;
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

static Status fail_cell(const Cells *cells, const char *at, const char *end)
{
        return fail(STATUS_INPUT, "line %lld, column %lld of the CSV: \"%.*s\" is no number",
                    (long long)cells->row, (long long)cells->column, (int)MIN(end - at, 32), at);
}

// Not finite: as printf and Python write it.
static bool read_special(const char *at, size_t n, double *out)
{
        static const struct {
                const char *name;
                double value;
        } rows[] = { { "nan", NAN },
                     { "inf", INFINITY },
                     { "-inf", -INFINITY },
                     { "infinity", INFINITY },
                     { "-infinity", -INFINITY } };
        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
                if (strlen(rows[i].name) == n && strncasecmp(rows[i].name, at, n) == 0) {
                        *out = rows[i].value;
                        return true;
                }
        return false;
}

static Status check_range(const Cells *cells, double number, const char *at, const char *end)
{
        if (cells->dtype == DTYPE_I64 || isfinite(cells->dtype == DTYPE_F32 ? (double)(float)number : number))
                return STATUS_OK;
        return fail(STATUS_VALUE,
                    "line %lld, column %lld of the CSV: %.*s is too large for %s; write %s if that is meant",
                    (long long)cells->row, (long long)cells->column, (int)MIN(end - at, 60), at,
                    dtype_info[cells->dtype].name, number < 0 ? "-inf" : "inf");
}

static Status take_cell(Cells *cells, const char *at, const char *end)
{
        NumberKind kind = NUMBER_FLOAT;
        int64_t integer = 0;
        double number = 0;
        while (at < end && is_blank(*at))
                at++;
        while (at < end && is_blank(end[-1]))
                end--;
        const bool special = read_special(at, (size_t)(end - at), &number);
        if (!special && number_scan(at, end, &kind, &integer, &number) != end)
                return fail_cell(cells, at, end);
        if (cells->dtype == DTYPE_I64 && kind != NUMBER_INT)
                return fail(STATUS_DTYPE, "line %lld, column %lld of the CSV: the input is of int64",
                            (long long)cells->row, (long long)cells->column);
        float single = (float)number;
        if (!special)
                TRY(check_range(cells, number, at, end));
        if (cells->dtype == DTYPE_F32)
                memcpy(cells->to, &single, sizeof(single));
        else if (cells->dtype == DTYPE_F64)
                memcpy(cells->to, &number, sizeof(number));
        else
                memcpy(cells->to, &integer, sizeof(integer));
        cells->to += dtype_info[cells->dtype].bytes;
        return STATUS_OK;
}

static Status take_line(Cells *cells, int64_t n_columns)
{
        const char *stop = line_end(cells->at, cells->end);
        int64_t n = count_of(cells->at, stop, ',') + 1;
        if (n != n_columns)
                return fail(STATUS_SHAPE, "line %lld of the CSV has %lld columns, the first one has %lld",
                            (long long)cells->row, (long long)n, (long long)n_columns);
        for (cells->column = 1; cells->column <= n; cells->column++) {
                const char *comma = memchr(cells->at, ',', (size_t)(stop - cells->at));
                const char *cell_end = comma == NULL ? stop : comma;
                TRY(take_cell(cells, cells->at, cell_end));
                cells->at = cell_end + 1;
        }
        cells->row++;
        return STATUS_OK;
}

// [rows, columns], or [rows, ...sample] where the graph states the sizes of a sample.
static void meta_of(const TensorSpec *spec, int64_t rows, int64_t columns, Dtype dtype, TensorMeta *out)
{
        int64_t size[MAX_RANK] = { rows, columns }, numel = 1;
        bool stated = spec->rank >= 1;
        for (int d = 1; d < spec->rank && stated; d++) {
                stated = spec->size[d].expr == NULL && spec->size[d].value > 0 &&
                         !__builtin_mul_overflow(numel, spec->size[d].value, &numel);
                size[d] = spec->size[d].value;
        }
        if (!stated || numel != columns)
                size[1] = columns;
        meta_init(out, dtype, stated && numel == columns ? spec->rank : 2, size);
}

static Status dtype_of(const RunCall *run, const Input *input, Dtype *out)
{
        *out = input->spec.dtype == DTYPE_NONE ? DTYPE_F32 : input->spec.dtype;
        if (*out == DTYPE_F32 || *out == DTYPE_F64 || *out == DTYPE_I64)
                return STATUS_OK;
        return fail(STATUS_DTYPE,
                    "CSV holds numbers of float32, float64 or int64, and input \"%.64s\" is of %s: send JSON",
                    run_argument_name(run, 0), dtype_info[*out].name);
}

static Status csv_decode(RunCall *run)
{
        ByteSpan body = body_span(run->call->body);
        const char *at = (const char *)body.data, *end = at + body.n;
        const Input *input;
        TensorMeta meta;
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        if (run_n_arguments(run) != 1)
                return fail(STATUS_INPUT, "CSV holds one input; this graph takes %u: send JSON",
                            run_n_arguments(run));
        while (end > at && (is_blank(end[-1]) || end[-1] == '\n'))
                end--;
        if (end <= at)
                return fail(STATUS_INPUT, "the CSV has no line");
        TRY(run_find_input(run, run_argument_name(run, 0), &input));
        int64_t rows = count_of(at, end, '\n') + 1, columns = count_of(at, line_end(at, end), ',') + 1;
        int64_t numel;
        Dtype dtype;
        TRY(dtype_of(run, input, &dtype));
        if (__builtin_mul_overflow(rows, columns, &numel) || numel > (int64_t)body.n)
                return fail(STATUS_SHAPE, "the lines of the CSV have different numbers of columns");
        meta_of(&input->spec, rows, columns, dtype, &meta);
        TRY(tensor_new(&meta, &run->task.budget, &tensor));
        Cells cells = { .at = at, .end = end, .row = 1, .dtype = dtype, .to = tensor_data(tensor) };
        while (cells.row <= rows)
                TRY(take_line(&cells, columns));
        run->predict = PREDICT_BARE;
        return run_take_tensor(run, run_argument_name(run, 0), take_ptr(tensor));
}

// ---- the reply ----
static Status check_output(const OutputList *list, uint32_t i)
{
        const Value *value = &list->leaves[i].value, *first = &list->leaves[0].value;
        if (value->kind == VALUE_TENSOR && value->tensor->meta.rank > 0 &&
            dtype_info[value->tensor->meta.dtype].kind != DTYPE_KIND_COMPLEX &&
            value->tensor->meta.size[0] == first->tensor->meta.size[0])
                return STATUS_OK;
        return fail(STATUS_NOT_ACCEPTABLE,
                    "output \"%.64s\" has no row of real numbers for each row of the others, as CSV needs; "
                    "accept application/json",
                    list->leaves[i].name);
}

// Of a list of numbers, from `from` on, the numbers and commas stay.
static void keep_cells(Text *out, size_t from)
{
        size_t n = from;
        for (size_t i = from; i < out->n; i++)
                if (strchr("[] \"", out->data[i]) == NULL)
                        out->data[n++] = out->data[i];
        out->data[n] = '\0';
        out->n = n;
}

static Status write_line(RunCall *run, const OutputList *list, int64_t row, Text *out)
{
        for (uint32_t i = 0; i < list->n; i++) {
                size_t from = out->n;
                TRY(run_write_row(run, list->leaves[i].value.tensor, row, out));
                TRY(text_status(out));
                keep_cells(out, from);
                text_add(out, i + 1 < list->n ? "," : "\n");
        }
        return run_check_reply(out->n);
}

static Status csv_encode(RunCall *run, const OutputList *list, ApiReply *reply)
{
        if (run->top > 0)
                return fail(STATUS_NOT_ACCEPTABLE, "\"top\" has no form as CSV; accept application/json");
        reply->content_type = "text/csv; charset=utf-8";
        for (uint32_t i = 0; i < list->n; i++)
                TRY(check_output(list, i));
        int64_t n = list->n == 0 ? 0 : list->leaves[0].value.tensor->meta.size[0];
        for (int64_t row = 0; row < n; row++)
                TRY(write_line(run, list, row, &reply->body));
        run_stamp(run);
        run_add_headers(run, reply);
        return text_status(&reply->body);
}

const Codec csv_codec = { .reads = csv_reads, .decode = csv_decode, .encode = csv_encode };
