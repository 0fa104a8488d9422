// SPDX-License-Identifier: Apache-2.0
// loop_rows.c: torch.ops.higher_order.scan, map_impl and associative_scan. A body is a child graph
// that is called once per row of its tensors; what it returns for each row is stacked. While
// recording, the rows are unrolled.
#include "core/ops/arguments.h"
#include "core/targets/py.h"

// One call of the body takes: carry, a row of each of `over`, `more`. It returns the next carry,
// then one value per column.
typedef struct Rows {
        Emitter *emitter;
        const char *name; // for messages
        const Graph *body;
        ValueSpan over, more;
        int64_t n_rows;
        Value *carry; // counted
        uint32_t n_carry;
        Value *inputs;  // of one call: carry and `more` borrowed, rows counted
        Value *columns; // lists of n_rows values each
        uint32_t n_columns;
} Rows;

static ValueSpan span_of(Value value)
{
        return value_is_sequence(value) ? (ValueSpan){ value.seq->items, value.seq->n }
                                        : (ValueSpan){ NULL, 0 };
}

static void rows_deinit(Rows *rows)
{
        for (uint32_t i = 0; i < rows->n_carry && rows->carry != NULL; i++)
                value_unref(rows->carry[i]);
        for (uint32_t i = 0; i < rows->n_columns; i++)
                value_unref(rows->columns[i]);
        free(rows->carry);
        free(rows->inputs);
        free(rows->columns);
}

static Status count_rows(Rows *rows)
{
        for (uint32_t i = 0; i < rows->over.n; i++) {
                const Value *value = &rows->over.items[i];
                if (value->kind != VALUE_TENSOR || value->tensor->meta.rank == 0)
                        return fail(STATUS_VALUE, "%s: xs must be tensors of at least one dimension",
                                    rows->name);
                int64_t n = value->tensor->meta.size[0];
                if (i > 0 && n != rows->n_rows)
                        return fail(STATUS_SHAPE,
                                    "%s: xs must have the same size in dimension 0, but got %ld and %ld",
                                    rows->name, (long)rows->n_rows, (long)n);
                rows->n_rows = n;
        }
        if (rows->n_rows > VALUE_MAX_ITEMS)
                return fail(STATUS_TOO_LARGE, "%s: %ld rows are more than %d", rows->name, (long)rows->n_rows,
                            VALUE_MAX_ITEMS);
        return STATUS_OK;
}

// The caller has set what is plain; `rows` is closed with rows_deinit in every case.
static Status rows_open(Rows *rows, const OpCall *call, Value body, uint32_t n_carry)
{
        rows->name = call->schema->name;
        if (body.kind != VALUE_GRAPH)
                return fail(STATUS_VALUE, "%s(): the body must be a graph, not %s", rows->name,
                            value_kind_name(body.kind));
        rows->body = body.graph;
        rows->n_carry = n_carry;
        rows->carry = new_array(n_carry, sizeof(Value));
        rows->inputs = new_array((size_t)n_carry + rows->over.n + rows->more.n, sizeof(Value));
        if (rows->carry == NULL || rows->inputs == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n_carry; i++)
                rows->carry[i] = value_none();
        return count_rows(rows);
}

static Status add_columns(Rows *rows, uint32_t n)
{
        rows->columns = new_array(n, sizeof(Value));
        if (rows->columns == NULL)
                return fail_memory();
        for (; rows->n_columns < n; rows->n_columns++) {
                Seq *seq;
                TRY(seq_new((uint32_t)rows->n_rows, &seq));
                rows->columns[rows->n_columns] = value_seq_take(VALUE_LIST, seq);
        }
        return STATUS_OK;
}

static Status take_result(Rows *rows, int64_t at, Value result)
{
        ValueSpan items = value_is_sequence(result) ? span_of(result) : (ValueSpan){ &result, 1 };
        if (items.n < rows->n_carry)
                return fail(STATUS_RUN, "%s: the body returns %u values; %u are carried", rows->name, items.n,
                            rows->n_carry);
        if (rows->columns == NULL)
                TRY(add_columns(rows, items.n - rows->n_carry));
        if (items.n != rows->n_carry + rows->n_columns)
                return fail(STATUS_RUN, "%s: the body returns %u values, and %u before", rows->name, items.n,
                            rows->n_carry + rows->n_columns);
        for (uint32_t i = 0; i < rows->n_carry; i++) {
                value_unref(rows->carry[i]);
                rows->carry[i] = value_ref(items.items[i]);
        }
        for (uint32_t i = 0; i < rows->n_columns; i++)
                rows->columns[i].seq->items[at] = value_ref(items.items[rows->n_carry + i]);
        return STATUS_OK;
}

static Status read_row(const Rows *rows, uint32_t i, int64_t at, Value *out)
{
        return ATEN(rows->emitter, "aten::select", out, rows->over.items[i], value_int(0), value_int(at));
}

static Status run_row(Rows *rows, int64_t at)
{
        uint32_t n = 0, n_read = 0;
        Status status = STATUS_OK;
        _cleanup_(value_clear) Value result = value_none();
        for (uint32_t i = 0; i < rows->n_carry; i++)
                rows->inputs[n++] = rows->carry[i];
        for (; n_read < rows->over.n && status == STATUS_OK; n_read++) {
                rows->inputs[n] = value_none();
                status = read_row(rows, n_read, at, &rows->inputs[n++]);
        }
        for (uint32_t i = 0; i < rows->more.n; i++)
                rows->inputs[rows->n_carry + rows->over.n + i] = rows->more.items[i];
        if (status == STATUS_OK)
                status = rows->emitter->vtbl->call(
                        rows->emitter, rows->body,
                        (ValueSpan){ rows->inputs, rows->n_carry + rows->over.n + rows->more.n }, &result);
        for (uint32_t i = 0; i < n_read; i++)
                value_clear(&rows->inputs[rows->n_carry + i]);
        return status == STATUS_OK ? take_result(rows, at, result) : status;
}

static Status run_rows(Rows *rows)
{
        for (int64_t at = 0; at < rows->n_rows; at++) {
                TRY(run_poll(rows->emitter->ctx));
                TRY(run_row(rows, at));
        }
        return STATUS_OK;
}

// The emitter may take all rows as one call; *out is VALUE_ABSENT if it does not.
static Status run_at_once(const Rows *rows, ValueSpan carried, Value *out)
{
        RowCalls calls = { .body = rows->body,
                           .carried = carried,
                           .over = rows->over,
                           .more = rows->more,
                           .n_rows = rows->n_rows };
        *out = (Value){ .kind = VALUE_ABSENT };
        if (rows->emitter->vtbl->rows == NULL || rows->over.n == 0)
                return STATUS_OK;
        return rows->emitter->vtbl->rows(rows->emitter, &calls, out);
}

// *out: carry, then the stacked columns.
static Status stack_columns(const Rows *rows, uint32_t n_carry, Value *out)
{
        Seq *seq;
        TRY(seq_new(n_carry + rows->n_columns, &seq));
        *out = value_seq_take(VALUE_TUPLE, seq);
        for (uint32_t i = 0; i < n_carry; i++)
                seq->items[i] = value_ref(rows->carry[i]);
        for (uint32_t i = 0; i < rows->n_columns; i++)
                TRY(ATEN(rows->emitter, "aten::stack", &seq->items[n_carry + i], rows->columns[i],
                         value_int(0)));
        return STATUS_OK;
}

static Status finish(const Rows *rows, uint32_t n_carry, Value *out)
{
        _cleanup_(value_clear) Value result = value_none();
        TRY(stack_columns(rows, n_carry, &result));
        *out = value_ref(result);
        return STATUS_OK;
}

// What a body returns for a row is not known when there is none.
static Status check_some(const Rows *rows)
{
        if (rows->over.n > 0 && rows->n_rows > 0)
                return STATUS_OK;
        return fail(STATUS_SHAPE, "%s() operator doesn't support %s", rows->name,
                    rows->over.n == 0 ? "zero xs" : "zero-sized scanned dimensions");
}

static Status scan_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        ValueSpan init = span_of(call->args[PY_SCAN_INIT]);
        _cleanup_(rows_deinit) Rows rows = { .emitter = emitter,
                                             .over = span_of(call->args[PY_SCAN_XS]),
                                             .more = span_of(call->args[PY_SCAN_ADDITIONAL]) };
        TRY(rows_open(&rows, call, call->args[PY_SCAN_BODY], init.n));
        for (uint32_t i = 0; i < init.n; i++)
                rows.carry[i] = value_ref(init.items[i]);
        if (rows.over.n > 0)
                TRY(check_some(&rows));
        TRY(run_at_once(&rows, init, out));
        if (out->kind != VALUE_ABSENT)
                return STATUS_OK;
        TRY(run_rows(&rows));
        return finish(&rows, rows.n_carry, out);
}

static Status map_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(rows_deinit) Rows rows = { .emitter = emitter,
                                             .over = span_of(call->args[PY_MAP_XS]),
                                             .more = span_of(call->args[PY_MAP_ADDITIONAL]) };
        TRY(rows_open(&rows, call, call->args[PY_MAP_BODY], 0));
        TRY(check_some(&rows));
        TRY(run_at_once(&rows, (ValueSpan){ NULL, 0 }, out));
        if (out->kind != VALUE_ABSENT)
                return STATUS_OK;
        TRY(run_rows(&rows));
        return finish(&rows, 0, out);
}

// From the first row on, one after the other: PyTorch adds the same rows as a tree, which rounds
// otherwise.
static Status associative_scan_expand(Emitter *emitter, const OpCall *call, Value *out)
{
        _cleanup_(rows_deinit) Rows rows = { .emitter = emitter,
                                             .over = span_of(call->args[PY_SCAN_ALL_XS]),
                                             .more = span_of(call->args[PY_SCAN_ALL_ADDITIONAL]) };
        TRY(rows_open(&rows, call, call->args[PY_SCAN_ALL_BODY], rows.over.n));
        TRY(check_some(&rows));
        _cleanup_(rows_deinit) Rows kept = { .emitter = emitter, .n_rows = rows.n_rows };
        TRY(add_columns(&kept, rows.over.n));
        for (int64_t at = 0; at < rows.n_rows; at++) {
                TRY(run_poll(emitter->ctx));
                if (at > 0)
                        TRY(run_row(&rows, at));
                for (uint32_t i = 0; i < rows.over.n; i++) {
                        if (at == 0)
                                TRY(read_row(&rows, i, 0, &rows.carry[i]));
                        kept.columns[i].seq->items[at] = value_ref(rows.carry[i]);
                }
        }
        return finish(&kept, 0, out);
}

static const PyRow rows[] = {
        { "torch.ops.higher_order.scan",
          "py::scan(Any combine_fn, Any init, Any xs, Any additional_inputs=None) -> Any",
          .expand = scan_expand, .needs = "aten::select aten::stack" },
        { "torch.ops.higher_order.map_impl", "py::map_impl(Any f, Any xs, Any pos_args=None) -> Any",
          .expand = map_expand, .needs = "aten::select aten::stack" },
        { "torch.ops.higher_order.associative_scan",
          "py::associative_scan(Any combine_fn, Any xs, Any additional_inputs=None) -> Any",
          .expand = associative_scan_expand, .needs = "aten::select aten::stack" },
};
const PyTable py_loop_rows = PY_TABLE(rows);
