// SPDX-License-Identifier: Apache-2.0
// record_call.c: writes down an inferred call with its arguments as they are now. In-place twins
// are checked by the same code as eagerly. Reading a number that no buffer holds yet is
// STATUS_DYNAMIC.
#include "core/compile/recorder.h"

#include "core/ops/arguments.h"
#include "core/ops/inplace.h"
#include "core/ops/write.h"

// ---- calls ----
// Numbers that a tensor holds are baked into the call, so they must be known.
static Status check_number(const OpCall *call, uint32_t i, const Value *value)
{
        if (value->kind == VALUE_DYNAMIC || (value->kind == VALUE_TENSOR && !tensor_is_known(value->tensor)))
                return fail(STATUS_DYNAMIC, "the value of argument '%s' of %s is not known before the run",
                            call->schema->args[i].name, call->schema->name);
        return STATUS_OK;
}

Status record_check(Emitter *emitter, const OpCall *call)
{
        (void)emitter;
        for (uint32_t i = 0; i < call->n_args; i++) {
                const Value *value = &call->args[i];
                ArgType type = call->schema->args[i].type;
                if (type == ARG_TENSOR ||
                    (type == ARG_ANY && call->op->expand != NULL)) // an expansion checks its own arguments
                        continue;
                TRY(check_number(call, i, value));
                for (uint32_t k = 0; value_is_sequence(*value) && k < value->seq->n; k++)
                        TRY(check_number(call, i, &value->seq->items[k]));
        }
        return STATUS_OK;
}

static Status check_written(const Recording *recording, const OpCall *call, const Tensor *self)
{
        Buffer *buffer = self->storage == NULL ? NULL : buffer_of(self->storage);
        if (buffer == NULL)
                return fail(STATUS_DYNAMIC, "%s writes to a constant",
                            call == NULL ? "an assignment" : call->schema->name);
        if (recorder_is_number(recording, buffer))
                return fail(STATUS_DYNAMIC, "%s writes to a number",
                            call == NULL ? "an assignment" : call->schema->name);
        buffer->written = true;
        return STATUS_OK;
}

// The live tensor of output k and, when the call makes it, its value (call and place are filled in
// by the caller).
static Status make_out(Recorder *recorder, const OpCall *call, const OutSpec *spec, Tensor **out_tensor,
                       Recorded **out_value)
{
        switch (spec->kind) {
        case OUT_FRESH:
                if (spec->undefined)
                        return STATUS_OK;
                TRY(recording_add_fresh(recorder->recording, &spec->meta, out_value));
                return recorder_live_tensor(*out_value, out_tensor);
        case OUT_VIEW:
                TRY(recording_add_value(recorder->recording, FROM_CALL, call->args[spec->arg].tensor->storage,
                                        &spec->meta, spec->offset, out_value));
                return recorder_live_tensor(*out_value, out_tensor);
        case OUT_SAME:
                *out_tensor = tensor_ref(call->args[spec->arg].tensor);
                return recorder_value(recorder, *out_tensor, out_value);
        case OUT_VALUE:
                return STATUS_OK;
        case OUT_UNSET:
                break;
        }
        return fail(STATUS_INTERNAL, "%s: infer left an output open", call->schema->name);
}

static Status snapshot_args(Recorder *recorder, const OpCall *call, Value *out_args)
{
        Status status = STATUS_OK;
        uint32_t n = 0;
        for (; n < call->n_args && status == STATUS_OK; n++) {
                out_args[n] = value_none();
                status = value_map(call->args[n], recorder_leaf, recorder, &out_args[n]);
        }
        for (uint32_t i = 0; i < n && status != STATUS_OK; i++)
                value_clear(&out_args[i]);
        return status;
}

static Status record_call(Recorder *recorder, OpCall *call, bool computes, Recorded **values)
{
        Value args[SCHEMA_MAX_ARGS];
        RecordedCall *added;
        TRY(snapshot_args(recorder, call, args));
        TRY(recorder_add_call(recorder, call, args, &added));
        added->computes = computes && call->op->run != NULL;
        for (uint32_t k = 0; k < call->n_outs; k++) {
                added->outs[k] = values[k];
                if (values[k] != NULL && values[k]->from == FROM_CALL && values[k]->call == NULL) {
                        values[k]->call = added;
                }
        }
        return STATUS_OK;
}

static Status record_outs(Recorder *recorder, OpCall *call, Tensor **tensors, Recorded **values, Value *out)
{
        bool computes = call->inplace || call->n_outs == 0, views = false;
        if (call->inplace) {
                TRY(check_written(recorder->recording, call, call->args[SELF].tensor));
                tensors[0] = tensor_ref(call->args[SELF].tensor);
                TRY(recorder_value(recorder, tensors[0], &values[0]));
        } else {
                for (uint32_t k = 0; k < call->n_outs; k++) {
                        TRY(make_out(recorder, call, &call->outs[k], &tensors[k], &values[k]));
                        computes |= call->outs[k].kind == OUT_FRESH;
                        views |= call->outs[k].kind == OUT_VIEW;
                }
        }
        if (computes || views)
                TRY(record_call(recorder, call, computes, values));
        return call_outs_take(call, tensors, out);
}

static Status record_plain(Recorder *recorder, OpCall *call, Value *out)
{
        if (recorder->recording->n_values >= recorder->max_values)
                return fail(STATUS_DYNAMIC, "the graph makes more than %u values", recorder->max_values);
        size_t n = call->n_outs;
        _cleanup_(freep) void **block = new_array(n, 2 * sizeof(void *));
        if (block == NULL)
                return fail_memory();
        Tensor **tensors = (Tensor **)block;
        Status status = record_outs(recorder, call, tensors, (Recorded **)(block + n), out);
        for (size_t k = 0; k < n; k++)
                tensor_unref(tensors[k]);
        return status;
}

// `detach` is decomposed as its argument, but it is a tensor of its own: where geometries change,
// only one of the two may be meant.
static bool must_be_apart(const Recorder *recorder, const OpCall *call, const Value *result)
{
        return recorder->moves && result->kind == VALUE_TENSOR && call->n_outs == 1 &&
               call->outs[0].kind == OUT_VIEW && call->args[call->outs[0].arg].tensor == result->tensor;
}

// An in-place twin is decomposed as its functional row, whose result is then written.
static Status record_decomposed(Emitter *emitter, OpCall *call, OpDecompose decompose, Value *out)
{
        if (!call->inplace) {
                TRY(decompose(emitter, call, out));
                if (!must_be_apart(recorder_of(emitter), call, out))
                        return STATUS_OK;
                value_clear(out);
                return record_plain(recorder_of(emitter), call, out);
        }
        Tensor *self = call->args[SELF].tensor;
        _cleanup_(value_clear) Value result = value_none();
        TRY(decompose(emitter, call, &result));
        TRY(record_write(emitter, self, result.tensor));
        *out = value_tensor_take(tensor_ref(self));
        return STATUS_OK;
}

// A schema stands inside its overload.
static const Overload *moving_overload(const OpCall *call)
{
        const Overload *overload =
                (const Overload *)((const char *)call->schema - offsetof(Overload, schema));
        bool moves = overload->inplace && !call->inplace && call->outs[0].kind == OUT_VIEW &&
                     call->outs[0].arg == SELF;
        return moves ? overload : NULL;
}

// `unsqueeze_` and the like are recorded as the view that they make (emit.c).
static Status record_move(Emitter *emitter, const Overload *overload, OpCall *call, Value *out)
{
        Recorded *self, *view;
        if (overload->twin_of == NULL)
                return fail(STATUS_INTERNAL, "%s is the twin of no view", overload->name);
        TRY(recorder_value(recorder_of(emitter), call->args[SELF].tensor, &self));
        call->op = overload->twin_of->op;
        call->schema = &overload->twin_of->schema;
        TRY(record_op(emitter, call, out));
        TRY(recorder_value(recorder_of(emitter), out->tensor, &view));
        if (view != self && view->call != NULL)
                view->call->moved = self->index + 1;
        return STATUS_OK;
}

Status record_op(Emitter *emitter, OpCall *call, Value *out)
{
        Recorder *recorder = recorder_of(emitter);
        const Overload *moving = moving_overload(call);
        if (moving != NULL)
                return record_move(emitter, moving, call, out);
        TRY(run_poll(recorder->poll));
        OpDecompose decompose = op_decomposition(call->op, recorder->decompositions);
        if (decompose != NULL)
                return record_decomposed(emitter, call, decompose, out);
        return record_plain(recorder, call, out);
}

// ---- writes ----
static Status record_copy(Recorder *recorder, Tensor *to, Tensor *from)
{
        OpCall call;
        Value args[3] = { { .kind = VALUE_TENSOR, .tensor = to },
                          { .kind = VALUE_TENSOR, .tensor = from },
                          value_bool(false) };
        TRY(call_open(&recorder->base, op_for(ROLE_WRITE), args, 3, &call));
        call.op = &write_op;
        Recorded *self;
        Status status = out_same(&call, 0, SELF);
        if (status == STATUS_OK)
                status = recorder_value(recorder, to, &self);
        if (status == STATUS_OK)
                status = record_call(recorder, &call, true, &self);
        call_close(&call);
        return status;
}

Status record_write(Emitter *emitter, Tensor *to, const Tensor *from)
{
        Recorder *recorder = recorder_of(emitter);
        int rank;
        int64_t size[MAX_RANK];
        TRY(run_poll(recorder->poll));
        TRY(inplace_check_internal_overlap(&to->meta));
        TRY(shape_broadcast(&to->meta, &from->meta, &rank, size));
        TensorMeta wanted;
        meta_init(&wanted, to->meta.dtype, rank, size);
        TRY(inplace_check_write(to, &wanted));
        Overlap overlap = tensor_overlap(to, from);
        if (overlap == OVERLAP_FULL)
                return STATUS_OK;
        TRY(check_written(recorder->recording, NULL, to));
        Tensor *source = (Tensor *)(uintptr_t)from;
        if (overlap == OVERLAP_NONE)
                return record_copy(recorder, to, source);
        _cleanup_(value_clear) Value copy = value_none();
        Value args[] = { { .kind = VALUE_TENSOR, .tensor = source }, value_none() };
        TRY(emit(emitter, op_for(ROLE_CLONE), args, 1, &copy));
        return record_copy(recorder, to, copy.tensor);
}
