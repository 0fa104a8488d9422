// SPDX-License-Identifier: Apache-2.0
// fused_tail.c: blocks of rows. Each block is made by the tile program in scratch, then the row
// operator's run sees it as a tensor of its own: the same dimensions, as many rows as the block
// has.
#include "core/ops/fused_tail.h"

#include <stdio.h>
#include <string.h>
#include "core/kernels/dense.h"
#include "core/kernels/numeric_policy.h"
#include "core/ops/arguments.h"
#include "core/ops/emitter.h"

enum { BLOCK_FLOATS = 16384, LONGEST_ROW = 65536 };

static bool asks_for_dtype(const OpCall *call)
{
        for (uint32_t i = 0; i < call->n_args; i++) {
                if (call->schema->args[i].type == ARG_DTYPE && !arg_is_none(call, (int)i))
                        return true;
        }
        return false;
}

// Dimensions before the rows'; -1: the call does not go along the last ones.
static int lead_of(const OpCall *call)
{
        int rank = arg_meta(call, SELF)->rank, dim, n;
        int64_t shape[MAX_RANK];
        uint32_t mask;
        if (asks_for_dtype(call))
                return -1;
        if (call->op->row_end == END_BY_DIM)
                return arg_dim(call, ROW_END_ALONG, rank, &dim) == STATUS_OK && dim == rank - 1 ? dim : -1;
        if (call->op->row_end == END_BY_SHAPE)
                return arg_ints(call, ROW_END_ALONG, MAX_RANK, shape, &n) == STATUS_OK && n > 0 && n < rank
                               ? rank - n
                               : -1;
        if (arg_dims(call, ROW_END_ALONG, rank, true, &mask) != STATUS_OK)
                return -1;
        for (int lead = 1; lead < rank; lead++) {
                if (mask == (((1u << rank) - 1) & ~((1u << lead) - 1)))
                        return lead;
        }
        return -1;
}

static int64_t rows_of(const TensorMeta *meta, int lead)
{
        int64_t n = 1;
        for (int d = 0; d < lead; d++)
                n *= meta->size[d];
        return n;
}

bool fused_takes_tail(const OpCall *call)
{
        if (call->op->row_end == END_NONE || call->inplace || call->n_outs != 1 ||
            call->outs[0].kind != OUT_FRESH)
                return false;
        const TensorMeta *in = arg_meta(call, SELF), *out = &call->outs[0].meta;
        if (in == NULL || !is_packed_type(in) || !is_packed_type(out) || in->rank < 2 ||
            !meta_is_contiguous(in) || !meta_is_contiguous(out) || meta_numel(in) == 0)
                return false;
        int lead = lead_of(call);
        return lead > 0 && meta_numel(in) / rows_of(in, lead) <= LONGEST_ROW;
}

bool fused_tail_reduces(const OpDef *op)
{
        return op->row_end == END_BY_DIMS;
}

Status fused_tail_init(FusedTail *tail, const OpCall *call, const int *operand)
{
        if (call->op->row_end == END_NONE)
                return fail(STATUS_VALUE, "fxserve::fused: %s cannot end a group", call->schema->name);
        tail->call = (OpCall){ .op = call->op,
                               .schema = call->schema,
                               .args = tail->args,
                               .n_args = call->n_args,
                               .given = call->given };
        for (uint32_t i = 0; i < call->n_args; i++) {
                tail->operand[i] = operand[i];
                if (call->args[i].kind != VALUE_TENSOR) {
                        tail->args[i] = value_ref(call->args[i]);
                        continue;
                }
                tail->tensors[i] = (Tensor){ .meta = call->args[i].tensor->meta };
                tail->args[i] = (Value){ .kind = VALUE_TENSOR, .tensor = &tail->tensors[i] };
        }
        tail->out = call->outs[0].meta;
        tail->lead = lead_of(call);
        tail->n_rows = rows_of(&tail->tensors[0].meta, tail->lead);
        tail->n_in = meta_numel(&tail->tensors[0].meta) / tail->n_rows;
        tail->n_out = meta_numel(&tail->out) / tail->n_rows;
        return STATUS_OK;
}

void fused_tail_deinit(FusedTail *tail)
{
        for (uint32_t i = 0; i < tail->call.n_args; i++) {
                if (tail->args[i].kind != VALUE_TENSOR)
                        value_unref(tail->args[i]);
        }
}

// ---- running ----
typedef struct TailRun {
        const FusedTail *tail;
        const TileProgram *program;
        const OpRun *run;
        _Atomic Status status; // of the first piece that failed
        char message[256];     // its message
} TailRun;

// A block's meta: the leading dimensions become (n_rows, 1, ...).
static TensorMeta block_meta(const TensorMeta *meta, int lead, int64_t n_rows)
{
        TensorMeta block = *meta;
        for (int d = 0; d < lead; d++)
                block.size[d] = d == 0 ? n_rows : 1;
        meta_set_contiguous(&block);
        return block;
}

static Status run_block(const TailRun *task, RunContext *ctx, float *rows, int64_t begin, int64_t end)
{
        const FusedTail *tail = task->tail;
        TRY(tile_run_part(task->program, task->run->in, (void *const[]){ rows }, begin * tail->n_in,
                          end * tail->n_in));
        TensorMeta out_meta = block_meta(&tail->out, tail->lead, end - begin);
        Tensor first = { .meta = block_meta(&tail->tensors[0].meta, tail->lead, end - begin) };
        Value args[SCHEMA_MAX_ARGS];
        OpCall call = tail->call;
        const void *in[SCHEMA_MAX_ARGS] = { rows };
        const TensorMeta *in_meta[SCHEMA_MAX_ARGS] = { &first.meta };
        OpRun run = { .in = in, .in_meta = in_meta, .n_in = 1, .n_out = 1, .call = &call, .ctx = ctx };
        memcpy(args, tail->args, call.n_args * sizeof(Value));
        args[SELF].tensor = &first;
        call.args = args;
        for (uint32_t i = 1; i < call.n_args; i++) {
                if (call.schema->args[i].type != ARG_TENSOR)
                        continue;
                bool given = tail->operand[i] >= 0;
                in[run.n_in] = given ? task->run->in[tail->operand[i]] : NULL;
                in_meta[run.n_in++] = given ? &tail->tensors[i].meta : NULL;
        }
        run.out = (void *const[]){ (float *)task->run->out[0] + begin * tail->n_out };
        run.out_meta = (const TensorMeta *const[]){ &out_meta };
        return call.op->run(&run);
}

static int64_t block_rows(const FusedTail *tail)
{
        return MAX((int64_t)1, BLOCK_FLOATS / tail->n_in);
}

static void run_blocks(void *argument, int64_t begin, int64_t end)
{
        TailRun *task = argument;
        const RunContext *outer = task->run->ctx;
        int64_t step = block_rows(task->tail);
        _cleanup_(scratch_deinit) Scratch rows = { 0 };
        RunContext ctx;
        run_context_within(&ctx, outer);
        Status status = scratch_init(&rows, &ctx, step * task->tail->n_in, sizeof(float));
        for (int64_t at = begin; at < end && status == STATUS_OK; at += step)
                status = run_block(task, &ctx, rows.data, at, MIN(at + step, end));
        Status none = STATUS_OK;
        if (status != STATUS_OK && atomic_compare_exchange_strong(&task->status, &none, status))
                snprintf(task->message, sizeof(task->message), "%.255s", failure_current()->message);
}

Status fused_tail_run(const FusedTail *tail, const TileProgram *program, const OpRun *run)
{
        TailRun task = { .tail = tail, .program = program, .run = run };
        int64_t step = block_rows(tail);
        TRY(parallel_for(run->ctx, tail->n_rows, step * 4, run_blocks, &task));
        Status status = atomic_load_explicit(&task.status, memory_order_relaxed);
        if (status == STATUS_OK)
                return STATUS_OK;
        TRY(run_poll(run->ctx)); // a passed deadline has a message of its own
        return status == STATUS_NO_MEMORY ? fail_memory() : fail(status, "%s", task.message);
}
