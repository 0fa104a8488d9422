// SPDX-License-Identifier: Apache-2.0
// eager.c: the eager emitter. A kernel call makes output tensors as infer described them, a plain
// state in a stack buffer, and runs. Views share storage; in-place operators write where the tensor
// lives. If any node may write state, the run sees all state through its own copy-on-write shells,
// one per shared storage: tied entries and views see each other's writes, other runs see none.
// Otherwise state is used directly. One run, one thread.
#include "core/eval/eager.h"

#include "core/base/limits.h"
#include "core/eval/state.h"
#include "core/kernels/copy.h"
#include "core/ops/arguments.h"
#include "core/ops/inplace.h"

enum { MAX_INLINE_INPUTS = 16 };

typedef struct StateView { // one state entry as this run sees it
        const Tensor *entry;
        Tensor *seen; // counted
} StateView;

typedef struct Shell { // a shared storage as this run sees it
        const Storage *origin;
        Storage *shell; // counted
} Shell;

struct EagerEmitter {
        Emitter base;
        Graph *graph;     // counted
        StateView *views; // in order of first use
        uint32_t n_views, views_capacity;
        Shell *shells;
        uint32_t n_shells, shells_capacity;
        // some state entry, here or in a child graph, may be written, or somebody holds a shell:
        // all state is seen through shells
        bool writes;
};

static EagerEmitter *eager_of(Emitter *emitter)
{
        return (EagerEmitter *)emitter;
}

// ---- outputs ----
static Status make_out(const EagerEmitter *eager, const OpCall *call, const OutSpec *spec,
                       Tensor **out_tensor)
{
        Tensor *source;
        switch (spec->kind) {
        case OUT_FRESH:
                if (spec->undefined)
                        return STATUS_OK;
                return tensor_new(&spec->meta, eager->base.ctx->budget, out_tensor);
        case OUT_VIEW:
                source = call->args[spec->arg].tensor;
                return tensor_new_view(source->storage, &spec->meta, spec->offset, out_tensor);
        case OUT_SAME:
                *out_tensor = tensor_ref(call->args[spec->arg].tensor);
                return STATUS_OK;
        case OUT_VALUE:
                return STATUS_OK;
        case OUT_UNSET:
                break;
        }
        return fail(STATUS_INTERNAL, "%s: infer left an output open", call->schema->name);
}

// ---- running ----
typedef struct Operands {
        const void **data;
        const TensorMeta **metas;
        uint32_t n, capacity;
        const void *inline_data[MAX_INLINE_INPUTS];
        const TensorMeta *inline_metas[MAX_INLINE_INPUTS];
} Operands;

static void operands_add(Operands *operands, const Value *value)
{
        const Tensor *tensor = value->kind == VALUE_TENSOR ? value->tensor : NULL;
        operands->data[operands->n] = tensor == NULL ? NULL : tensor_data(tensor);
        operands->metas[operands->n++] = tensor == NULL ? NULL : &tensor->meta;
}

// Tensor arguments in schema order, lists flattened, absent optionals NULL.
static Status operands_open(const OpCall *call, Operands *out)
{
        size_t n = 0;
        for (uint32_t i = 0; i < call->n_args; i++) {
                if (call->schema->args[i].type == ARG_TENSOR)
                        n += value_is_sequence(call->args[i]) ? call->args[i].seq->n : 1;
        }
        out->n = 0;
        out->data = out->inline_data;
        out->metas = out->inline_metas;
        if (n > MAX_INLINE_INPUTS) {
                out->data = new_array(n, 2 * sizeof(void *));
                if (out->data == NULL)
                        return fail_memory();
                out->metas = (const TensorMeta **)(out->data + n);
        }
        for (uint32_t i = 0; i < call->n_args; i++) {
                if (call->schema->args[i].type != ARG_TENSOR)
                        continue;
                const Value *value = &call->args[i];
                if (!value_is_sequence(*value)) {
                        operands_add(out, value);
                        continue;
                }
                for (uint32_t k = 0; k < value->seq->n; k++)
                        operands_add(out, &value->seq->items[k]);
        }
        return STATUS_OK;
}

static void operands_close(Operands *operands)
{
        if (operands->data != operands->inline_data)
                free(operands->data);
}

static int64_t meta_bytes(const TensorMeta *meta)
{
        return meta == NULL ? 0 : meta_numel(meta) * dtype_info[meta->dtype].bytes;
}

// An OpDef without `cost` is counted as reading every operand once, writing every result once and
// doing one operation per element.
static Status add_cost(Emitter *emitter, const OpRun *run)
{
        Cost cost = { 0 };
        if (run->call->op->cost != NULL) {
                cost = run->call->op->cost(run->call);
        } else {
                for (uint32_t i = 0; i < run->n_in; i++)
                        cost.bytes += meta_bytes(run->in_meta[i]);
                for (uint32_t k = 0; k < run->n_out; k++) {
                        cost.bytes += meta_bytes(run->out_meta[k]);
                        if ((run->call->op->flags & OP_ELEMENTWISE) != 0 && run->out_meta[k] != NULL)
                                cost.flops += meta_numel(run->out_meta[k]);
                }
        }
        emitter->cost.bytes += cost.bytes;
        emitter->cost.flops += cost.flops;
        return run_check_cost(cost.flops, cost.bytes);
}

static Status run_kernel(EagerEmitter *eager, OpCall *call, Tensor **tensors, void **out_data,
                         const TensorMeta **out_metas)
{
        _Alignas(64) uint8_t state[OP_STATE_BYTES];
        _cleanup_(operands_close) Operands operands;
        operands.data = operands.inline_data;
        for (uint32_t k = 0; k < call->n_outs; k++) {
                out_data[k] = tensors[k] == NULL ? NULL : tensor_data(tensors[k]);
                out_metas[k] = tensors[k] == NULL ? NULL : &tensors[k]->meta;
        }
        TRY(operands_open(call, &operands));
        if (call->op->prepare != NULL)
                TRY(call->op->prepare(call, state));
        eager->base.last_op = call->op;
        eager->base.last_kernel = call->op->kernel != NULL ? call->op->kernel : call->schema->name;
        OpRun run = {
                .out = out_data,
                .in = operands.data,
                .out_meta = out_metas,
                .in_meta = operands.metas,
                .n_out = call->n_outs,
                .n_in = operands.n,
                .state = state,
                .call = call,
                .ctx = eager->base.ctx,
        };
        if (eager->base.measure)
                TRY(add_cost(&eager->base, &run));
        return call->op->run(&run);
}

static Status run_call(EagerEmitter *eager, OpCall *call, Tensor **tensors, void **out_data,
                       const TensorMeta **out_metas, Value *out)
{
        bool computes = call->inplace || call->n_outs == 0;
        if (call->inplace) {
                Tensor *self = call->args[SELF].tensor;
                TRY(storage_make_writable(self->storage));
                tensors[0] = tensor_ref(self);
        } else {
                for (uint32_t k = 0; k < call->n_outs; k++) {
                        TRY(make_out(eager, call, &call->outs[k], &tensors[k]));
                        computes |= call->outs[k].kind == OUT_FRESH;
                }
        }
        if (call->op->run != NULL && computes)
                TRY(run_kernel(eager, call, tensors, out_data, out_metas));
        return call_outs_take(call, tensors, out);
}

static Status eager_op(Emitter *emitter, OpCall *call, Value *out)
{
        EagerEmitter *eager = eager_of(emitter);
        Tensor *inline_tensors[OP_INLINE_OUTS] = { 0 };
        void *inline_data[OP_INLINE_OUTS];
        const TensorMeta *inline_metas[OP_INLINE_OUTS];
        if (call->n_outs <= OP_INLINE_OUTS) {
                Status status = run_call(eager, call, inline_tensors, inline_data, inline_metas, out);
                for (uint32_t k = 0; k < call->n_outs; k++)
                        tensor_unref(inline_tensors[k]);
                return status;
        }
        // Long lists: one block for the three arrays.
        size_t n = call->n_outs;
        _cleanup_(freep) void **block = new_array(n, 3 * sizeof(void *));
        if (block == NULL)
                return fail_memory();
        Tensor **tensors = (Tensor **)block;
        Status status = run_call(eager, call, tensors, block + n, (const TensorMeta **)(block + 2 * n), out);
        for (size_t k = 0; k < n; k++)
                tensor_unref(tensors[k]);
        return status;
}

// ---- writes ----
static Status eager_write(Emitter *emitter, Tensor *to, const Tensor *from)
{
        Budget *budget = emitter->ctx->budget;
        int rank;
        int64_t size[MAX_RANK];
        TRY(inplace_check_internal_overlap(&to->meta));
        TRY(shape_broadcast(&to->meta, &from->meta, &rank, size));
        TensorMeta wanted;
        meta_init(&wanted, to->meta.dtype, rank, size);
        TRY(inplace_check_write(to, &wanted));
        TRY(storage_make_writable(to->storage));
        Overlap overlap = tensor_overlap(to, from);
        if (overlap == OVERLAP_FULL)
                return STATUS_OK;
        _cleanup_(tensor_unrefp) Tensor *copy = NULL;
        if (overlap != OVERLAP_NONE) {
                TensorMeta dense = from->meta;
                meta_set_contiguous(&dense);
                TRY(tensor_new(&dense, budget, &copy));
                Region source = region_of(&from->meta, tensor_data(from)),
                       target = region_of(&dense, tensor_data(copy));
                TRY(copy_region(emitter->ctx, &source, &target));
                from = copy;
        }
        Region source = region_of(&from->meta, tensor_data(from)),
               target = region_of(&to->meta, tensor_data(to));
        int shift = to->meta.rank - from->meta.rank;
        source.meta.rank = to->meta.rank;
        for (int i = 0; i < to->meta.rank; i++) {
                source.meta.size[i] = to->meta.size[i];
                source.meta.stride[i] = i < shift || from->meta.size[i - shift] != to->meta.size[i]
                                                ? 0
                                                : from->meta.stride[i - shift];
        }
        return copy_region(emitter->ctx, &source, &target);
}

// ---- state ----
Status eager_shell(EagerEmitter *eager, Storage *origin, Storage **out_storage)
{
        for (uint32_t i = 0; i < eager->n_shells; i++) {
                if (eager->shells[i].origin == origin) {
                        *out_storage = storage_ref(eager->shells[i].shell);
                        return STATUS_OK;
                }
        }
        Storage *shell, *from = origin;
        const RunState *state = eager->base.ctx->state;
        eager->writes = true;
        if (state != NULL)
                from = state_now(state, state_number(eager->graph, origin), origin);
        TRY(array_reserve(&eager->shells, &eager->shells_capacity, eager->n_shells + 1,
                          sizeof(*eager->shells)));
        TRY(storage_shell(from, eager->base.ctx->budget, &shell));
        eager->shells[eager->n_shells++] = (Shell){ .origin = origin, .shell = shell };
        *out_storage = storage_ref(shell);
        return STATUS_OK;
}

void eager_leave_state(const EagerEmitter *eager)
{
        const RunState *state = eager->base.ctx->state;
        for (uint32_t i = 0; state != NULL && i < eager->n_shells; i++) {
                Storage *shell = eager->shells[i].shell;
                uint32_t number =
                        shell->readonly ? state->n : state_number(eager->graph, eager->shells[i].origin);
                if (number < state->n && state->after[number] == NULL)
                        state->after[number] = storage_ref(shell);
        }
}

static Status eager_state(Emitter *emitter, const Graph *graph, const char *path, Value *out)
{
        EagerEmitter *eager = eager_of(emitter);
        const State *state = graph_state(graph, path);
        if (state == NULL) {
                const Module *module = graph_module(graph, path);
                if (module == NULL || module->graph == NULL)
                        return fail(STATUS_RUN, "Node referenced nonexistent target %s", path);
                *out = (Value){ .kind = VALUE_GRAPH, .graph = module->graph };
                return STATUS_OK;
        }
        if (!eager->writes) {
                *out = value_tensor_take(tensor_ref(state->tensor));
                return STATUS_OK;
        }
        for (uint32_t i = 0; i < eager->n_views; i++) {
                if (eager->views[i].entry == state->tensor) {
                        *out = value_tensor_take(tensor_ref(eager->views[i].seen));
                        return STATUS_OK;
                }
        }
        TRY(array_reserve(&eager->views, &eager->views_capacity, eager->n_views + 1, sizeof(*eager->views)));
        _cleanup_(storage_unrefp) Storage *shell = NULL;
        TRY(eager_shell(eager, state->tensor->storage, &shell));
        Tensor *seen;
        TRY(tensor_new_view(shell, &state->tensor->meta, state->tensor->offset, &seen));
        eager->views[eager->n_views++] = (StateView){ .entry = state->tensor, .seen = seen };
        *out = value_tensor_take(tensor_ref(seen));
        return STATUS_OK;
}

// ---- child graphs ----
static Status truth(Value value, bool *out)
{
        double number = 0;
        if (value_is_sequence(value) && value.seq->n == 1)
                value = value.seq->items[0];
        switch (value.kind) {
        case VALUE_BOOL:
                *out = value.b;
                return STATUS_OK;
        case VALUE_INT:
                *out = value.i != 0;
                return STATUS_OK;
        case VALUE_TENSOR:
                if (meta_numel(&value.tensor->meta) != 1)
                        return fail(STATUS_VALUE,
                                    "Boolean value of Tensor with more than one value is ambiguous");
                TRY(tensor_item_f64(value.tensor, &number));
                *out = number != 0;
                return STATUS_OK;
        default:
                return fail(STATUS_VALUE, "a condition must be a bool or a one-element tensor, not %s",
                            value_kind_name(value.kind));
        }
}

static Status eager_cond(Emitter *emitter, Value predicate, const Graph *if_true, const Graph *if_false,
                         ValueSpan operands, Value *out)
{
        bool taken = false;
        TRY(truth(predicate, &taken));
        return walk_child(emitter, taken ? if_true : if_false, operands, out);
}

static Status take_carried(Value result, uint32_t n_carried, Value *carried)
{
        Value single = result;
        const Value *items = value_is_sequence(result) ? result.seq->items : &single;
        uint32_t n = value_is_sequence(result) ? result.seq->n : 1;
        if (n != n_carried)
                return fail(STATUS_RUN, "while_loop: the body returns %u values; %u are carried", n,
                            n_carried);
        for (uint32_t i = 0; i < n; i++) {
                Value old = carried[i];
                carried[i] = value_ref(items[i]);
                value_unref(old);
        }
        return STATUS_OK;
}

static Status run_loop(Emitter *emitter, const Graph *condition, const Graph *body, Value *values,
                       uint32_t n_carried, uint32_t n)
{
        ValueSpan inputs = { .items = values, .n = n };
        for (;;) {
                bool again = false;
                TRY(run_poll(emitter->ctx));
                _cleanup_(value_clear) Value holds = value_none();
                TRY(walk_child(emitter, condition, inputs, &holds));
                TRY(truth(holds, &again));
                if (!again)
                        return STATUS_OK;
                _cleanup_(value_clear) Value result = value_none();
                TRY(walk_child(emitter, body, inputs, &result));
                TRY(take_carried(result, n_carried, values));
        }
}

static Status eager_loop(Emitter *emitter, const Graph *condition, const Graph *body, ValueSpan carried,
                         ValueSpan additional, Value *out)
{
        // The sequence holds carried and additional values; it becomes the result when the
        // additional ones are cut off.
        uint32_t n = carried.n + additional.n;
        _cleanup_(seq_unrefp) Seq *values = NULL;
        Seq *result;
        TRY(seq_new(n, &values));
        for (uint32_t i = 0; i < n; i++)
                values->items[i] =
                        value_ref(i < carried.n ? carried.items[i] : additional.items[i - carried.n]);
        TRY(run_loop(emitter, condition, body, values->items, carried.n, n));
        TRY(seq_new(carried.n, &result));
        for (uint32_t i = 0; i < carried.n; i++)
                result->items[i] = value_ref(values->items[i]);
        *out = value_seq_take(VALUE_TUPLE, result);
        return STATUS_OK;
}

static const EmitterVtbl eager_vtbl = {
        .op = eager_op,
        .write = eager_write,
        .state = eager_state,
        .call = walk_child,
        .cond = eager_cond,
        .loop = eager_loop,
};

// ---- life ----
Status eager_open(const Graph *graph, RunContext *ctx, EagerEmitter **out_eager)
{
        EagerEmitter *eager = calloc(1, sizeof(*eager));
        if (eager == NULL)
                return fail_memory();
        eager->graph = graph_ref((Graph *)(uintptr_t)graph);
        eager->writes = graph_writes_state(graph);
        eager->base = (Emitter){ .vtbl = &eager_vtbl, .ctx = ctx, .graph = graph };
        *out_eager = eager;
        return STATUS_OK;
}

EagerEmitter *eager_close(EagerEmitter *eager)
{
        if (eager == NULL)
                return NULL;
        for (uint32_t i = 0; i < eager->n_views; i++)
                tensor_unref(eager->views[i].seen);
        for (uint32_t i = 0; i < eager->n_shells; i++)
                storage_unref(eager->shells[i].shell);
        free(eager->views);
        free(eager->shells);
        graph_unref(eager->graph);
        free(eager);
        return NULL;
}

Emitter *eager_emitter(EagerEmitter *eager)
{
        return &eager->base;
}
