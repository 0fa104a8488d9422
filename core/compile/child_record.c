// SPDX-License-Identifier: Apache-2.0
// child_record.c: decides whether a child graph can be a program of its own, and records the call.
// The recording made here is only looked at; child_program.c makes it again when the call gets its
// kernel, after the passes over the parent.
#include "core/compile/child.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/ops/arguments.h"

// More results than this are not compared with each other.
enum { MAX_RESULTS = 512, MIN_ROWS = 8 };

bool child_same_meta(const TensorMeta *a, const TensorMeta *b)
{
        size_t bytes = a->rank * sizeof(int64_t);
        return a->dtype == b->dtype && a->rank == b->rank && a->wrapped == b->wrapped &&
               memcmp(a->size, b->size, bytes) == 0 && memcmp(a->stride, b->stride, bytes) == 0;
}

// ---- inputs ----
void child_inputs_deinit(ChildInputs *inputs)
{
        seq_unref(inputs->values);
        free(inputs->operands);
}

static int64_t int_arg(const OpCall *call, int index)
{
        return call->args[index].i;
}

// How many of the tensors differ from call to call, and how many of them, at the end, are rows.
static void count_open(const OpCall *call, uint32_t *out_open, uint32_t *out_rows)
{
        bool scans = call->n_args > CHILD_N_OVER && call->args[CHILD_N_ROWS].kind == VALUE_INT;
        *out_rows = scans ? (uint32_t)int_arg(call, CHILD_N_OVER) : 0;
        *out_open = (uint32_t)int_arg(call, CHILD_N_CARRIED) + *out_rows;
}

static TensorMeta row_meta(const TensorMeta *meta)
{
        TensorMeta row = *meta;
        row.rank--;
        memmove(row.size, meta->size + 1, row.rank * sizeof(int64_t));
        memmove(row.stride, meta->stride + 1, row.rank * sizeof(int64_t));
        return row;
}

static Status open_tensor(const OpCall *call, uint32_t k, const Tensor *tensor, ChildInputs *inputs,
                          Value *out)
{
        uint32_t n_open, n_rows;
        count_open(call, &n_open, &n_rows);
        bool keeps = k >= n_open && tensor_is_known(tensor);
        bool is_row = k < n_open && k >= n_open - n_rows;
        TensorMeta meta = is_row ? row_meta(&tensor->meta) : tensor->meta;
        Tensor *seen;
        TRY(tensor_new_view(keeps ? tensor->storage : NULL, &meta, keeps ? tensor->offset : 0, &seen));
        *out = value_tensor_take(seen);
        if (!keeps)
                inputs->operands[inputs->n_operands++] = k;
        return STATUS_OK;
}

Status child_inputs(const OpCall *call, ChildInputs *out)
{
        const Seq *plain = call->args[CHILD_PLAIN].seq, *tensors = call->args[SELF].seq;
        *out = (ChildInputs){ 0 };
        TRY(seq_new(plain->n, &out->values));
        out->operands = new_array(tensors->n, sizeof(uint32_t));
        if (out->operands == NULL)
                return fail_memory();
        uint32_t k = 0;
        for (uint32_t i = 0; i < plain->n; i++) {
                if (plain->items[i].kind != VALUE_ELLIPSIS) {
                        out->values->items[i] = value_ref(plain->items[i]);
                        continue;
                }
                TRY(open_tensor(call, k, tensors->items[k].tensor, out, &out->values->items[i]));
                k++;
        }
        return STATUS_OK;
}

// ---- recording a child ----
static Status check_calls(const Recording *recording)
{
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                uint32_t flags = call->call.op->flags;
                if (call->moved != 0)
                        return fail(STATUS_DYNAMIC,
                                    "a child graph changes the geometry of a tensor in place");
                if ((flags & OP_EFFECT) != 0 && (flags & OP_INTERNAL) != 0)
                        return fail(STATUS_DYNAMIC, "a child graph has nodes that observe");
        }
        return STATUS_OK;
}

// The parent may have written the state by the time of the call.
static Status check_buffers(const Recording *recording)
{
        for (uint32_t i = 0; i < recording->n_buffers; i++) {
                const Buffer *buffer = recording->buffers[i];
                if (buffer->kind == BUFFER_STATE || (buffer->kind == BUFFER_INPUT && buffer->written))
                        return fail(STATUS_DYNAMIC, "a child graph shares bytes that are written");
        }
        return STATUS_OK;
}

static bool is_ours(Status status)
{
        return status_class(status) != STATUS_CLASS_CALLER || status == STATUS_CANCELLED ||
               status == STATUS_DEADLINE;
}

Status child_record(const OpCall *call, const Graph *graph, const ChildInputs *inputs,
                    const ChildOptions *options, Recording **out_recording)
{
        _cleanup_(recording_freep) Recording *recording = NULL;
        Value dtype = call->args[CHILD_AUTOCAST];
        RecordOptions record = { .inputs = { inputs->values->items, inputs->values->n },
                                 .max_calls = options->max_calls,
                                 .is_child = true,
                                 .depth = options->depth,
                                 .autocast = dtype.kind == VALUE_DTYPE,
                                 .autocast_dtype = dtype.kind == VALUE_DTYPE ? dtype.dtype : DTYPE_NONE };
        if (options->depth > limits.max_child_graphs || options->max_calls == 0)
                return fail(STATUS_DYNAMIC, "too many child graphs for a program");
        Status status = record_graph(graph, &record, options->poll, &recording);
        // What fails now might never be reached in a run.
        if (status != STATUS_OK)
                return is_ours(status) ? status : fail(STATUS_DYNAMIC, "a child graph cannot be recorded");
        TRY(check_calls(recording));
        TRY(check_buffers(recording));
        *out_recording = take_ptr(recording);
        return STATUS_OK;
}

Status child_results(const Recording *recording, Recorded ***out_values, uint32_t *out_n)
{
        Value result = recording->result;
        uint32_t n = value_is_sequence(result) ? result.seq->n : 1;
        const Value *items = value_is_sequence(result) ? result.seq->items : &result;
        _cleanup_(freep) Recorded **values = new_array(n, sizeof(*values));
        if (values == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++) {
                values[i] = items[i].kind == VALUE_TENSOR ? recorded_of(items[i].tensor) : NULL;
                if (values[i] == NULL)
                        return fail(STATUS_DYNAMIC, "a child graph returns something else than tensors");
        }
        *out_values = take_ptr(values);
        *out_n = n;
        return STATUS_OK;
}

// ---- one call ----
enum { MAX_CHILD_ARGS = 7 };
typedef struct ChildCall {
        Recorder *recorder;
        OpCall call;
        Value args[MAX_CHILD_ARGS]; // lists counted
        ChildInputs inputs;
        Recording *recordings[2];
        Recorded **results[2];
        uint32_t n_results[2];
        bool draws;
} ChildCall;

static void child_call_deinit(ChildCall *child)
{
        for (int i = 0; i < 2; i++) {
                recording_free(child->recordings[i]);
                free(child->results[i]);
        }
        child_inputs_deinit(&child->inputs);
        call_close(&child->call);
        for (int i = 0; i < MAX_CHILD_ARGS; i++)
                value_unref(child->args[i]);
}

// A runtime scalar counts by its value from now on.
static Status plain_value(Emitter *emitter, Value value, Value *out)
{
        if (value.kind > VALUE_STR)
                return fail(STATUS_DYNAMIC, "a child graph takes a %s", value_kind_name(value.kind));
        emitter_number_read(emitter, value);
        value.tag = 0;
        *out = value_ref(value);
        return STATUS_OK;
}

// Fills in `inputs` and `plain` from what the child graphs take.
static Status lay_out_values(ChildCall *child, const ValueSpan *spans, uint32_t n_spans)
{
        uint32_t n = 0, n_tensors = 0, at = 0;
        for (uint32_t s = 0; s < n_spans; s++) {
                n += spans[s].n;
                for (uint32_t i = 0; i < spans[s].n; i++)
                        n_tensors += spans[s].items[i].kind == VALUE_TENSOR;
        }
        Seq *tensors, *plain;
        TRY(seq_new(n_tensors, &tensors));
        child->args[SELF] = value_seq_take(VALUE_LIST, tensors);
        TRY(seq_new(n, &plain));
        child->args[CHILD_PLAIN] = value_seq_take(VALUE_LIST, plain);
        n_tensors = 0;
        for (uint32_t s = 0; s < n_spans; s++) {
                for (uint32_t i = 0; i < spans[s].n; i++, at++) {
                        Value value = spans[s].items[i];
                        if (value.kind == VALUE_TENSOR) {
                                tensors->items[n_tensors++] = value_ref(value);
                                plain->items[at] = (Value){ .kind = VALUE_ELLIPSIS };
                        } else {
                                TRY(plain_value(&child->recorder->base, value, &plain->items[at]));
                        }
                }
        }
        return STATUS_OK;
}

static bool all_tensors(ValueSpan span)
{
        for (uint32_t i = 0; i < span.n; i++) {
                if (span.items[i].kind != VALUE_TENSOR || span.items[i].tensor->meta.wrapped)
                        return false;
        }
        return true;
}

static Status open_call(ChildCall *child, OpRole role, uint32_t n_carried)
{
        const Emitter *emitter = &child->recorder->base;
        child->args[CHILD_N_CARRIED] = value_int(n_carried);
        child->args[CHILD_AUTOCAST] = emitter->autocast ? value_dtype(emitter->autocast_dtype) : value_none();
        TRY(call_open(&child->recorder->base, op_for(role), child->args, UINT64_MAX, &child->call));
        return child_inputs(&child->call, &child->inputs);
}

static Status note_calls(ChildCall *child, const Recording *recording)
{
        Recorder *recorder = child->recorder;
        recorder->max_calls -= MIN(recorder->max_calls, recording->n_calls);
        for (uint32_t i = 0; i < recording->n_calls; i++)
                child->draws |= (recording->calls[i]->call.op->flags & OP_RANDOM) != 0;
        return STATUS_OK;
}

static Status record_part(ChildCall *child, int part, const Graph *graph)
{
        Recorder *recorder = child->recorder;
        ChildOptions options = { .poll = recorder->poll,
                                 .max_calls = recorder->max_calls,
                                 .depth = recorder->depth + recorder->base.depth + 1 };
        TRY(child_record(&child->call, graph, &child->inputs, &options, &child->recordings[part]));
        TRY(note_calls(child, child->recordings[part]));
        return child_results(child->recordings[part], &child->results[part], &child->n_results[part]);
}

// A result that is an input, or a part of another result, would have to stay one in the parent.
static Status check_apart(const ChildCall *child, int part)
{
        Recorded *const *values = child->results[part];
        if (child->n_results[part] > MAX_RESULTS)
                return fail(STATUS_DYNAMIC, "a child graph returns many values");
        for (uint32_t i = 0; i < child->n_results[part]; i++) {
                if (recorded_is_constant(values[i]) || recorded_buffer(values[i])->kind != BUFFER_RUN)
                        return fail(STATUS_DYNAMIC, "a child graph returns what it is given");
                for (uint32_t k = 0; k < i; k++) {
                        if (values[k]->tensor.storage == values[i]->tensor.storage)
                                return fail(STATUS_DYNAMIC, "two results of a child graph share bytes");
                }
        }
        return STATUS_OK;
}

static Status check_metas(const TensorMeta *got, const TensorMeta *want)
{
        return child_same_meta(got, want)
                       ? STATUS_OK
                       : fail(STATUS_DYNAMIC, "the results of a child graph differ from call to call");
}

// *out: the list of new tensors, as described in child->call.outs.
static Status finish_call(ChildCall *child, const OpDef *op, Value *out)
{
        child->call.op = op;
        return record_op(&child->recorder->base, &child->call, out);
}

static Value as_tuple(Value take_list)
{
        take_list.kind = VALUE_TUPLE;
        return take_list;
}

// bool() of it is what a run decides by.
static Status check_flag(const TensorMeta *meta)
{
        bool decides = meta_numel(meta) == 1 && dtype_info[meta->dtype].kind != DTYPE_KIND_COMPLEX;
        return decides ? STATUS_OK : fail(STATUS_DYNAMIC, "a condition is not one real number");
}

static Value graph_value(const Graph *graph)
{
        return (Value){ .kind = VALUE_GRAPH, .graph = (Graph *)(uintptr_t)graph };
}

// ---- torch.cond ----
static Status record_branches(ChildCall *child, Value predicate, const Graph *if_true, const Graph *if_false)
{
        child->args[CHILD_FIRST] = graph_value(if_true);
        child->args[CHILD_SECOND] = graph_value(if_false);
        child->args[CHILD_PREDICATE] = value_ref(predicate);
        TRY(open_call(child, ROLE_CHILD_COND, 0));
        TRY(record_part(child, 0, if_true));
        TRY(record_part(child, 1, if_false));
        TRY(check_apart(child, 0));
        TRY(check_apart(child, 1));
        if (child->n_results[0] != child->n_results[1] ||
            value_is_sequence(child->recordings[0]->result) !=
                    value_is_sequence(child->recordings[1]->result))
                return fail(STATUS_DYNAMIC, "branches return different numbers of values");
        TRY(out_reserve(&child->call, child->n_results[0]));
        for (uint32_t i = 0; i < child->n_results[0]; i++) {
                const TensorMeta *meta = &child->results[0][i]->tensor.meta;
                TRY(check_metas(&child->results[1][i]->tensor.meta, meta));
                TRY(out_fresh(&child->call, i, meta));
        }
        return STATUS_OK;
}

Status child_record_cond(Recorder *recorder, Value predicate, const Graph *if_true, const Graph *if_false,
                         ValueSpan operands, Value *out)
{
        _cleanup_(child_call_deinit) ChildCall child = { .recorder = recorder };
        _cleanup_(value_clear) Value made = value_none();
        if (predicate.kind != VALUE_TENSOR)
                return fail(STATUS_DYNAMIC, "which branch is taken is not known before the run");
        TRY(check_flag(&predicate.tensor->meta));
        TRY(lay_out_values(&child, &operands, 1));
        TRY(record_branches(&child, predicate, if_true, if_false));
        TRY(finish_call(&child, child_cond_op(child.draws), &made));
        Value result = child.recordings[0]->result;
        if (!value_is_sequence(result))
                *out = value_ref(made.seq->items[0]);
        else
                *out = as_tuple(value_ref(made));
        return STATUS_OK;
}

// ---- while_loop ----
static Status record_rounds(ChildCall *child, const Graph *condition, const Graph *body, ValueSpan carried)
{
        child->args[CHILD_FIRST] = graph_value(condition);
        child->args[CHILD_SECOND] = graph_value(body);
        TRY(open_call(child, ROLE_CHILD_LOOP, carried.n));
        TRY(record_part(child, 0, condition));
        TRY(record_part(child, 1, body));
        TRY(check_apart(child, 1));
        if (child->n_results[0] != 1 || child->n_results[1] != carried.n)
                return fail(STATUS_DYNAMIC, "how often a loop runs is not known before the run");
        TRY(check_flag(&child->results[0][0]->tensor.meta));
        TRY(out_reserve(&child->call, carried.n));
        for (uint32_t i = 0; i < carried.n; i++) {
                TRY(check_metas(&child->results[1][i]->tensor.meta, &carried.items[i].tensor->meta));
                TRY(out_fresh(&child->call, i, &carried.items[i].tensor->meta));
        }
        return STATUS_OK;
}

Status child_record_loop(Recorder *recorder, const Graph *condition, const Graph *body, ValueSpan carried,
                         ValueSpan additional, Value *out)
{
        _cleanup_(child_call_deinit) ChildCall child = { .recorder = recorder };
        _cleanup_(value_clear) Value made = value_none();
        ValueSpan spans[] = { carried, additional };
        if (carried.n == 0 || !all_tensors(carried))
                return fail(STATUS_DYNAMIC, "how often a loop runs is not known before the run");
        TRY(lay_out_values(&child, spans, 2));
        TRY(record_rounds(&child, condition, body, carried));
        TRY(finish_call(&child, child_loop_op(child.draws), &made));
        *out = as_tuple(value_ref(made));
        return STATUS_OK;
}

// ---- scan and map ----
// Rows of a column lie side by side in the stack of them only if they are contiguous.
static Status column_meta(const TensorMeta *row, int64_t n_rows, TensorMeta *out)
{
        int64_t size[MAX_RANK], n;
        TensorMeta plain;
        if (row->rank >= MAX_RANK)
                return fail(STATUS_DYNAMIC, "a column of a scan has too many dimensions");
        size[0] = n_rows;
        for (int d = 0; d < row->rank; d++)
                size[d + 1] = row->size[d];
        meta_init(&plain, row->dtype, row->rank, row->size);
        TRY(check_metas(row, &plain));
        meta_init(out, row->dtype, row->rank + 1, size);
        return meta_span(out, &n);
}

static Status record_all_rows(ChildCall *child, const RowCalls *calls)
{
        child->args[CHILD_FIRST] = graph_value(calls->body);
        child->args[CHILD_N_ROWS] = value_int(calls->n_rows);
        child->args[CHILD_N_OVER] = value_int(calls->over.n);
        TRY(open_call(child, ROLE_CHILD_ROWS, calls->carried.n));
        TRY(record_part(child, 0, calls->body));
        TRY(check_apart(child, 0));
        uint32_t n = child->n_results[0], n_carried = calls->carried.n;
        if (n < n_carried)
                return fail(STATUS_DYNAMIC, "a scan's body returns too few values");
        TRY(out_reserve(&child->call, n));
        for (uint32_t i = 0; i < n; i++) {
                TensorMeta meta = child->results[0][i]->tensor.meta;
                if (i < n_carried)
                        TRY(check_metas(&meta, &calls->carried.items[i].tensor->meta));
                else
                        TRY(column_meta(&child->results[0][i]->tensor.meta, calls->n_rows, &meta));
                TRY(out_fresh(&child->call, i, &meta));
        }
        return STATUS_OK;
}

static Status record_rows(Recorder *recorder, const RowCalls *calls, Value *out)
{
        _cleanup_(child_call_deinit) ChildCall child = { .recorder = recorder };
        _cleanup_(value_clear) Value made = value_none();
        ValueSpan spans[] = { calls->carried, calls->over, calls->more };
        if (!all_tensors(calls->carried) || !all_tensors(calls->over))
                return fail(STATUS_DYNAMIC, "a scan over something else than tensors");
        TRY(lay_out_values(&child, spans, 3));
        TRY(record_all_rows(&child, calls));
        TRY(finish_call(&child, child_rows_op(child.draws), &made));
        *out = as_tuple(value_ref(made));
        return STATUS_OK;
}

Status child_record_rows(Emitter *emitter, const RowCalls *calls, Value *out)
{
        *out = (Value){ .kind = VALUE_ABSENT };
        if (!recorder_of(emitter)->has_children || calls->n_rows < MIN_ROWS)
                return STATUS_OK;
        Status status = record_rows(recorder_of(emitter), calls, out);
        return status == STATUS_DYNAMIC ? STATUS_OK : status;
}
