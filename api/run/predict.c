// SPDX-License-Identifier: Apache-2.0
// Predictions as TensorFlow Serving and KServe v1 have them: rows ("instances", answered with
// "predictions") or columns ("inputs", answered with "outputs"). Rows are values of the only input,
// or objects by name; their numbers go straight into one tensor for each name. "signature_name" and
// members that nobody knows are skipped. TorchServe and SageMaker take the value of the only input
// as well, alone or as "data" or "body", and answer it with plain lists.
#include <string.h>
#include "api/formats/tensor_json.h"
#include "api/run/run_private.h"
#include "core/base/limits.h"

#define PREDICT_WANTED "a prediction needs \"instances\" (rows) or \"inputs\" (columns)"

enum { MAX_COLUMNS = 64, COLUMN_NAME_MAX = 256 };

// ---- rows that are objects ----
// The values of one name; the first `n` of `room` rows are there.
typedef struct Column {
        char name[COLUMN_NAME_MAX];
        const Input *input;
        Tensor *tensor; // [room, ...row]; NULL before the first row
        int64_t n, room;
} Column;

typedef struct Rows {
        RunCall *run;
        Column *columns;
        uint32_t n_columns;
        int64_t n; // rows that are read
} Rows;

static void rows_deinit(Rows *rows)
{
        for (uint32_t i = 0; i < rows->n_columns; i++)
                tensor_unref(rows->columns[i].tensor);
        free(rows->columns);
}

// [n, ...row]
static Status rows_meta(int64_t n, const TensorMeta *row, TensorMeta *out)
{
        int64_t size[MAX_RANK], numel;
        if (row->rank + 1 > MAX_RANK)
                return fail(STATUS_SHAPE, "a row has more than %d dimensions", MAX_RANK - 1);
        size[0] = n;
        memcpy(size + 1, row->size, (size_t)row->rank * sizeof(size[0]));
        TRY(shape_numel(row->rank + 1, size, &numel));
        meta_init(out, row->dtype, row->rank + 1, size);
        return STATUS_OK;
}

static size_t row_bytes(const TensorMeta *row)
{
        return (size_t)meta_numel(row) * dtype_info[row->dtype].bytes;
}

static Status column_grow(Column *column, const TensorMeta *row, Budget *budget)
{
        TensorMeta meta;
        Tensor *grown;
        int64_t room = MAX(column->room * 2, 16);
        TRY(rows_meta(room, row, &meta));
        TRY(tensor_new(&meta, budget, &grown));
        size_t n_bytes = (size_t)column->n * row_bytes(row);
        if (n_bytes > 0)
                memcpy(tensor_data(grown), tensor_data(column->tensor), n_bytes);
        tensor_unref(column->tensor);
        column->tensor = grown;
        column->room = room;
        return STATUS_OK;
}

static Status check_row(const Column *column, const TensorMeta *row)
{
        const TensorMeta *rows = &column->tensor->meta;
        char text[2][256];
        if (rows->dtype != row->dtype)
                return fail(
                        STATUS_DTYPE,
                        "row %lld of \"%s\" was read as %s, the rows before it as %s; write whole numbers "
                        "as 1.0 in all rows",
                        (long long)column->n, column->name, dtype_info[row->dtype].name,
                        dtype_info[rows->dtype].name);
        if (rows->rank - 1 == row->rank &&
            memcmp(rows->size + 1, row->size, (size_t)row->rank * sizeof(row->size[0])) == 0)
                return STATUS_OK;
        return fail(STATUS_SHAPE, "row %lld of \"%s\" has shape %s, the rows before it have %s",
                    (long long)column->n, column->name,
                    shape_text(row->rank, row->size, text[0], sizeof(text[0])),
                    shape_text(rows->rank - 1, rows->size + 1, text[1], sizeof(text[1])));
}

static Status column_add(Column *column, const Tensor *row, Budget *budget)
{
        size_t n_bytes = row_bytes(&row->meta);
        if (column->tensor != NULL)
                TRY(check_row(column, &row->meta));
        if (column->n == column->room)
                TRY(column_grow(column, &row->meta, budget));
        if (n_bytes > 0)
                memcpy((uint8_t *)tensor_data(column->tensor) + (size_t)column->n * n_bytes, tensor_data(row),
                       n_bytes);
        column->n++;
        return STATUS_OK;
}

// Names come in the same order in most rows: `guess` is looked at first. Only the first row adds
// columns.
static Status find_column(Rows *rows, const char *name, uint32_t guess, Column **out_column)
{
        if (guess < rows->n_columns && strcmp(rows->columns[guess].name, name) == 0) {
                *out_column = &rows->columns[guess];
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < rows->n_columns; i++)
                if (strcmp(rows->columns[i].name, name) == 0) {
                        *out_column = &rows->columns[i];
                        return STATUS_OK;
                }
        if (rows->n > 0)
                return fail(STATUS_INPUT, "row %lld has \"%.64s\", which row 0 lacks", (long long)rows->n,
                            name);
        if (rows->n_columns == MAX_COLUMNS || strlen(name) >= COLUMN_NAME_MAX)
                return fail(STATUS_TOO_LARGE, "a row has at most %d names of less than %d bytes", MAX_COLUMNS,
                            COLUMN_NAME_MAX);
        Column *column = &rows->columns[rows->n_columns];
        TRY(run_find_input(rows->run, name, &column->input));
        memcpy(column->name, name, strlen(name) + 1);
        rows->n_columns++;
        *out_column = column;
        return STATUS_OK;
}

static Status read_cell(JsonReader *reader, Column *column, RunCall *run)
{
        _cleanup_(tensor_unrefp) Tensor *row = NULL;
        bool guessed;
        TRY(run_check_value(reader));
        Status status =
                tensor_json_read(reader, column->input->spec.dtype, &run->task.budget, &row, &guessed);
        return status == STATUS_OK ? column_add(column, row, &run->task.budget)
                                   : run_name_input(status, column->name);
}

static Status read_row(JsonReader *reader, Rows *rows)
{
        bool more;
        if (json_peek(reader) != JSON_OBJECT)
                return fail(STATUS_INPUT, "row %lld of \"instances\" is no object, but row 0 is",
                            (long long)rows->n);
        TRY(json_enter_object(reader));
        for (uint32_t i = 0;; i++) {
                const char *name;
                Column *column;
                TRY(json_next_key(reader, &name, &more));
                if (!more)
                        break;
                TRY(find_column(rows, name, i, &column));
                TRY(read_cell(reader, column, rows->run));
        }
        rows->n++;
        for (uint32_t i = 0; i < rows->n_columns; i++)
                if (rows->columns[i].n != rows->n)
                        return fail(STATUS_INPUT, "row %lld lacks \"%s\"", (long long)rows->n - 1,
                                    rows->columns[i].name);
        return STATUS_OK;
}

// The rows that are there. The room behind them is gone: views that a graph makes could show it.
static Status take_column(Column *column, RunCall *run)
{
        TensorMeta meta = column->tensor->meta;
        Tensor *tensor;
        meta.size[0] = column->n;
        TRY(tensor_new(&meta, &run->task.budget, &tensor));
        if (tensor->storage->n_bytes > 0)
                memcpy(tensor->storage->data, tensor_data(column->tensor), tensor->storage->n_bytes);
        column->tensor = tensor_unref(column->tensor);
        return run_take_tensor(run, column->name, tensor);
}

static Status read_objects(JsonReader *reader, RunCall *run)
{
        _cleanup_(rows_deinit) Rows rows = { .run = run };
        bool more;
        rows.columns = new_array(MAX_COLUMNS, sizeof(*rows.columns));
        if (rows.columns == NULL)
                return fail_memory();
        TRY(json_enter_array(reader));
        for (;;) {
                TRY(json_next_item(reader, &more));
                if (!more)
                        break;
                TRY(run_check_value(reader));
                TRY(read_row(reader, &rows));
        }
        for (uint32_t i = 0; i < rows.n_columns; i++)
                TRY(take_column(&rows.columns[i], run));
        return STATUS_OK;
}

// ---- the request ----
// Whether the list at the reader's place begins with an object; nothing is consumed.
static bool begins_with_object(const JsonReader *reader, ByteSpan document)
{
        size_t at = json_tell(reader) + 1;
        while (at < document.n && memchr(" \t\r\n", document.data[at], 4) != NULL)
                at++;
        return at < document.n && document.data[at] == '{';
}

static Status read_instances(JsonReader *reader, ByteSpan document, RunCall *run)
{
        if (json_peek(reader) != JSON_ARRAY)
                return fail(STATUS_INPUT, "\"instances\" is a list of rows; \"inputs\" holds columns");
        run->predict = PREDICT_ROWS;
        return begins_with_object(reader, document) ? read_objects(reader, run) : run_read_only(reader, run);
}

static Status read_columns(JsonReader *reader, RunCall *run)
{
        run->predict = PREDICT_COLUMNS;
        return json_peek(reader) == JSON_OBJECT ? run_read_inputs(reader, run) : run_read_only(reader, run);
}

static bool holds_inputs(const RunCall *run, const char *key)
{
        if (codec_is_bare(run->call->route) && (strcmp(key, "data") == 0 || strcmp(key, "body") == 0))
                return true;
        return strcmp(key, "instances") == 0 || strcmp(key, "inputs") == 0;
}

static Status read_inputs(JsonReader *reader, const char *key, ByteSpan document, RunCall *run)
{
        if (strcmp(key, "instances") == 0)
                return read_instances(reader, document, run);
        return strcmp(key, "inputs") == 0 ? read_columns(reader, run) : run_read_only(reader, run);
}

static Status check_envelope(size_t n_bytes)
{
        if (n_bytes <= (size_t)limits.max_envelope)
                return STATUS_OK;
        return fail(STATUS_TOO_LARGE,
                    "the body without its tensor data is %zu bytes; the limit is %lld (max_envelope in GET "
                    "/v1)",
                    n_bytes, (long long)limits.max_envelope);
}

static Status read_object(JsonReader *reader, ByteSpan document, RunCall *run)
{
        bool more, inputs, seen = false;
        size_t data_bytes = 0;
        TRY(json_enter_object(reader));
        for (;;) {
                const char *key;
                TRY(json_next_key(reader, &key, &more));
                if (!more)
                        break;
                TRY(run_check_value(reader));
                size_t before = json_tell(reader);
                inputs = holds_inputs(run, key);
                if (inputs && seen)
                        return fail(STATUS_INPUT, "a prediction has \"instances\" or \"inputs\", not both");
                TRY(inputs ? read_inputs(reader, key, document, run) : json_skip(reader));
                if (inputs)
                        data_bytes = json_tell(reader) - before;
                seen |= inputs;
        }
        size_t end = json_tell(reader);
        TRY(json_finish(reader));
        return seen ? check_envelope(end - data_bytes) : fail(STATUS_INPUT, PREDICT_WANTED);
}

static Status read_document(JsonReader *reader, ByteSpan document, RunCall *run)
{
        TRY(run_check_value(reader));
        if (json_peek(reader) == JSON_OBJECT)
                return read_object(reader, document, run);
        if (!codec_is_bare(run->call->route))
                return fail(STATUS_INPUT, PREDICT_WANTED ": it is an object");
        TRY(run_read_only(reader, run));
        return json_finish(reader);
}

static Status predict_decode(RunCall *run)
{
        Arena arena;
        JsonReader *reader = NULL;
        ByteSpan body = body_span(run->call->body);
        arena_init(&arena, (size_t)limits.max_envelope * 4);
        Status status = run_check_lists((const char *)body.data, body.n);
        if (status == STATUS_OK)
                status = json_open((const char *)body.data, body.n, (int)limits.max_json_depth_run + MAX_RANK,
                                   0, &arena, &reader);
        if (status == STATUS_OK)
                status = read_document(reader, body, run);
        json_close(reader);
        arena_deinit(&arena);
        return status;
}

// ---- the reply ----
static Status check_size(const Text *out)
{
        TRY(text_status(out));
        return run_check_reply(out->n);
}

static Status write_data(RunCall *run, const Tensor *tensor, Text *out)
{
        TRY(run_check_reply(out->n + (size_t)tensor_json_least(&tensor->meta, TENSOR_JSON_NESTED)));
        Status status = tensor_json_write(tensor, TENSOR_JSON_NESTED, &run->task.budget,
                                          (size_t)limits.max_response, out);
        TRY(run_check_reply(out->n)); // in words that name the flag
        return status;
}

static Status write_value(RunCall *run, const OutputLeaf *leaf, Text *out)
{
        if (leaf->value.kind == VALUE_TENSOR)
                return write_data(run, leaf->value.tensor, out);
        TRY(run_write_plain(leaf->value, out));
        return check_size(out);
}

static Status write_columns(RunCall *run, const OutputList *list, Text *out)
{
        for (uint32_t i = 0; i < list->n; i++) {
                text_add(out, i == 0 ? "{" : ", ");
                text_add_json(out, list->leaves[i].name);
                text_add(out, ": ");
                TRY(write_value(run, &list->leaves[i], out));
        }
        text_add(out, list->n == 0 ? "{}" : "}");
        return STATUS_OK;
}

// How many rows all outputs have.
static Status count_rows(const OutputList *list, int64_t *out_n)
{
        for (uint32_t i = 0; i < list->n; i++) {
                const OutputLeaf *leaf = &list->leaves[i];
                const Tensor *tensor = leaf->value.kind == VALUE_TENSOR ? leaf->value.tensor : NULL;
                if (tensor == NULL || tensor->meta.rank == 0 || (i > 0 && tensor->meta.size[0] != *out_n))
                        return fail(STATUS_NOT_ACCEPTABLE,
                                    "output \"%.64s\" has no row for each row of the others; send columns: "
                                    "{\"inputs\": ...}",
                                    leaf->name);
                *out_n = tensor->meta.size[0];
        }
        return STATUS_OK;
}

Status run_write_row(RunCall *run, const Tensor *tensor, int64_t row, Text *out)
{
        _cleanup_(tensor_unrefp) Tensor *view = NULL;
        TensorMeta meta = tensor->meta;
        meta.rank--;
        memmove(meta.size, meta.size + 1, (size_t)meta.rank * sizeof(meta.size[0]));
        memmove(meta.stride, meta.stride + 1, (size_t)meta.rank * sizeof(meta.stride[0]));
        TRY(tensor_new_view(tensor->storage, &meta, tensor->offset + row * tensor->meta.stride[0], &view));
        return write_data(run, view, out);
}

static Status write_rows(RunCall *run, const OutputList *list, Text *out)
{
        int64_t n = 0;
        TRY(count_rows(list, &n));
        text_add_char(out, '[');
        for (int64_t row = 0; row < n; row++) {
                text_add(out, row == 0 ? "{" : "}, {");
                for (uint32_t i = 0; i < list->n; i++) {
                        text_add(out, i == 0 ? "" : ", ");
                        text_add_json(out, list->leaves[i].name);
                        text_add(out, ": ");
                        TRY(run_write_row(run, list->leaves[i].value.tensor, row, out));
                }
        }
        text_add(out, n == 0 ? "]" : "}]");
        return STATUS_OK;
}

// A single output has no name.
static Status predict_encode(RunCall *run, const OutputList *list, ApiReply *reply)
{
        Text *out = &reply->body;
        bool rows = run->predict == PREDICT_ROWS;
        if (run->predict == PREDICT_BARE) {
                run->bare = true;
                return json_encode(run, list, reply);
        }
        reply->content_type = "application/json";
        text_add(out, rows ? "{\"predictions\": " : "{\"outputs\": ");
        if (list->n == 1)
                TRY(write_value(run, &list->leaves[0], out));
        else
                TRY(rows ? write_rows(run, list, out) : write_columns(run, list, out));
        text_add(out, "}\n");
        run_stamp(run);
        run_add_headers(run, reply);
        return check_size(out);
}

const Codec predict_codec = { .decode = predict_decode, .encode = predict_encode };
