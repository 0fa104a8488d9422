// SPDX-License-Identifier: Apache-2.0
// fuse_pointwise.c. Match: pointwise calls whose results have one shape and that feed each other.
// Rewrite: one fused call whose body is their graph, in the place of the last of them. A row
// operator (softmax, sums, norms) that alone reads a group may end it.
//
// Calls are looked at in order. One joins the groups it reads from as long as they are open; a
// group closes when anybody else reads from it, so that all its readers stand behind its last
// member. Only bytes that are written once take part, so members may wait until then. Values that
// are read outside become outputs.
#include "core/passes/passes.h"

#include <stdlib.h>
#include <string.h>
#include "core/kernels/pointwise/tile.h"
#include "core/ops/arguments.h"
#include "core/ops/fused.h"
#include "core/ops/fused_tail.h"
#include "core/passes/rewrite.h"

enum { MAX_MEMBERS = 40 };

typedef struct Group {
        uint32_t into; // index + 1 of the group that it was merged into; 0: none
        uint32_t n;
        uint32_t members[MAX_MEMBERS]; // positions of calls
        bool closed;
        uint32_t tail; // position + 1 of the row operator that ends it; 0: none
} Group;

typedef struct Fusing {
        Recording *recording;
        const Uses *uses;
        Group *groups;
        uint32_t n_groups;
        uint32_t *group_of;              // by buffer: index + 1; 0: none
        bool *read_outside;              // by buffer
        uint32_t at;                     // position of the call looked at
        uint32_t reads[TILE_MAX_INPUTS]; // groups it reads from
        uint32_t n_reads;
        bool too_many;
} Fusing;

static Group *group_at(const Fusing *fusing, uint32_t index)
{
        Group *group = &fusing->groups[index];
        while (group->into != 0)
                group = &fusing->groups[group->into - 1];
        return group;
}

static Group *group_of_buffer(const Fusing *fusing, const Buffer *buffer)
{
        uint32_t group = fusing->group_of[buffer->index];
        return group == 0 ? NULL : group_at(fusing, group - 1);
}

// ---- what may be fused ----
static bool can_fuse(const RecordedCall *call)
{
        const Recorded *value = call->call.n_outs == 1 ? call->outs[0] : NULL;
        if (!call->computes || call->removed || value == NULL || value->call != call ||
            recorded_is_constant(value))
                return false;
        const Buffer *buffer = recorded_buffer(value);
        return buffer->kind == BUFFER_RUN && !buffer->written && buffer->base == value &&
               value->tensor.offset == 0 && call_is_movable(call) && fused_takes(&call->call);
}

static Status note_read(void *context, Recorded *value)
{
        Fusing *fusing = context;
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        const Group *group = group_of_buffer(fusing, recorded_buffer(value));
        uint32_t index = group == NULL ? 0 : (uint32_t)(group - fusing->groups);
        for (uint32_t i = 0; group != NULL && i < fusing->n_reads; i++) {
                if (fusing->reads[i] == index)
                        return STATUS_OK;
        }
        if (group == NULL)
                return STATUS_OK;
        if (fusing->n_reads == TILE_MAX_INPUTS)
                fusing->too_many = true;
        else
                fusing->reads[fusing->n_reads++] = index;
        return STATUS_OK;
}

static const Recorded *result_at(const Fusing *fusing, uint32_t position)
{
        return fusing->recording->calls[position]->outs[0];
}

static bool may_join(const Fusing *fusing, const Group *group, const Recorded *value, uint32_t n_now)
{
        return !group->closed && group->n + n_now <= MAX_MEMBERS &&
               meta_same_shape(&result_at(fusing, group->members[0])->tensor.meta, &value->tensor.meta);
}

// A view of a member's result counts as a read from outside. The group closes before the view is
// read.
static Status close_read(void *context, Recorded *value)
{
        Fusing *fusing = context;
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        Group *group = group_of_buffer(fusing, recorded_buffer(value));
        if (group == NULL)
                return STATUS_OK;
        group->closed = true;
        fusing->read_outside[recorded_buffer(value)->index] = true;
        return STATUS_OK;
}

static Status close_unless_joined(void *context, Recorded *value)
{
        Fusing *fusing = context;
        const Recorded *made = result_at(fusing, fusing->at);
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        const Group *joined = group_of_buffer(fusing, recorded_buffer(made)),
                    *read = group_of_buffer(fusing, recorded_buffer(value));
        return read == joined ? STATUS_OK : close_read(context, value);
}

// ---- grouping ----
static void merge_groups(Fusing *fusing, Group *into, Group *from)
{
        memcpy(into->members + into->n, from->members, from->n * sizeof(uint32_t));
        into->n += from->n;
        from->into = (uint32_t)(into - fusing->groups) + 1;
}

static void join(Fusing *fusing, RecordedCall *call)
{
        const Recorded *value = call->outs[0];
        Group *target = NULL;
        for (uint32_t i = 0; i < fusing->n_reads; i++) {
                Group *group = &fusing->groups[fusing->reads[i]];
                if (!may_join(fusing, group, value, target == NULL ? 1 : target->n + 1))
                        continue;
                if (target == NULL)
                        target = group;
                else
                        merge_groups(fusing, target, group);
        }
        if (target == NULL)
                target = &fusing->groups[fusing->n_groups++];
        target->members[target->n++] = fusing->at;
        fusing->group_of[recorded_buffer(value)->index] = (uint32_t)(target - fusing->groups) + 1;
}

// ---- ends ----
// The group that only this row operator reads from outside. The operator closes it.
static Group *group_to_end(const Fusing *fusing, const RecordedCall *call)
{
        const Recorded *out = call->call.n_outs == 1 ? call->outs[0] : NULL;
        if (!call->computes || call->removed || out == NULL || out->call != call ||
            recorded_is_constant(out) || out->tensor.offset != 0 || !fused_takes_tail(&call->call) ||
            !call_is_movable(call))
                return NULL;
        const Buffer *buffer = recorded_buffer(out);
        const Recorded *rows = recorded_of(call->call.args[SELF].tensor);
        if (buffer->kind != BUFFER_RUN || buffer->written || buffer->base != out ||
            recorded_is_constant(rows) || uses_only_reader(fusing->uses, rows) != call ||
            recorded_buffer(rows)->base != rows)
                return NULL;
        Group *group = group_of_buffer(fusing, recorded_buffer(rows));
        return group == NULL || group->closed ? NULL : group;
}

static Status close_other(void *context, Recorded *value)
{
        Fusing *fusing = context;
        const RecordedCall *call = fusing->recording->calls[fusing->at];
        return value == recorded_of(call->call.args[SELF].tensor) ? STATUS_OK : close_read(context, value);
}

static Status look_at_call(Fusing *fusing, RecordedCall *call)
{
        Group *ended = group_to_end(fusing, call);
        if (ended != NULL) {
                ended->closed = true;
                ended->tail = fusing->at + 1;
                return recorded_visit_inputs(call, close_other, fusing);
        }
        fusing->n_reads = 0;
        fusing->too_many = false;
        TRY(recorded_visit_inputs(call, note_read, fusing));
        if (!can_fuse(call) || fusing->too_many)
                return recorded_visit_inputs(call, close_read, fusing);
        join(fusing, call);
        return recorded_visit_inputs(call, close_unless_joined, fusing);
}

// ---- making the call ----
typedef struct Making {
        const Fusing *fusing;
        const Group *group;
        Recorded *inputs[TILE_MAX_INPUTS], *outputs[TILE_MAX_OUTPUTS];
        RecordedCall *calls[MAX_MEMBERS + 1];
        uint32_t n_calls, n_inputs, n_outputs;
        bool too_many;
} Making;

static Status gather_input(void *context, Recorded *value)
{
        Making *making = context;
        if (value == NULL || (recorded_is_constant(value) && value->tensor.meta.wrapped))
                return STATUS_OK;
        if (!recorded_is_constant(value) &&
            group_of_buffer(making->fusing, recorded_buffer(value)) == making->group)
                return STATUS_OK;
        for (uint32_t i = 0; i < making->n_inputs; i++) {
                if (making->inputs[i] == value)
                        return STATUS_OK;
        }
        if (making->n_inputs == TILE_MAX_INPUTS)
                making->too_many = true;
        else
                making->inputs[making->n_inputs++] = value;
        return STATUS_OK;
}

static int by_position(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        return x < y ? -1 : x > y;
}

static Status gather(Making *making)
{
        const Fusing *fusing = making->fusing;
        for (uint32_t i = 0; i < making->group->n; i++) {
                RecordedCall *call = making->calls[i] = fusing->recording->calls[making->group->members[i]];
                const Buffer *buffer = recorded_buffer(call->outs[0]);
                making->n_calls++;
                TRY(recorded_visit_inputs(call, gather_input, making));
                if (!fusing->read_outside[buffer->index])
                        continue;
                if (making->n_outputs == TILE_MAX_OUTPUTS)
                        making->too_many = true;
                else
                        making->outputs[making->n_outputs++] = call->outs[0];
        }
        return STATUS_OK;
}

// Adds the row operator at the group's end, if it is the only reader. Its own inputs come last.
static Status gather_tail(Making *making)
{
        const Fusing *fusing = making->fusing;
        RecordedCall *call = fusing->recording->calls[making->group->tail - 1];
        if (making->n_outputs > 0) { // other calls read the group: the row operator stays outside
                Recorded *rows = recorded_of(call->call.args[SELF].tensor);
                if (making->n_outputs == TILE_MAX_OUTPUTS)
                        making->too_many = true;
                else
                        making->outputs[making->n_outputs++] = rows;
                return STATUS_OK;
        }
        making->calls[making->n_calls++] = call;
        making->outputs[making->n_outputs++] = call->outs[0];
        return recorded_visit_inputs(call, gather_input, making);
}

static Status make_args(const Making *making, Value *out_args)
{
        Seq *inputs;
        out_args[FUSED_INPUTS] = out_args[FUSED_BODY] = value_none();
        TRY(seq_new(making->n_inputs, &inputs));
        out_args[FUSED_INPUTS] = value_seq_take(VALUE_LIST, inputs);
        for (uint32_t i = 0; i < making->n_inputs; i++)
                inputs->items[i] = rewrite_tensor(making->inputs[i]);
        RecordedGroup members = { .calls = making->calls,
                                  .n_calls = making->n_calls,
                                  .inputs = making->inputs,
                                  .n_inputs = making->n_inputs,
                                  .outputs = making->outputs,
                                  .n_outputs = making->n_outputs };
        Graph *body = NULL;
        Status status = recording_body(making->fusing->recording, &members, &body);
        if (status != STATUS_OK) {
                value_clear(&out_args[FUSED_INPUTS]);
                return status;
        }
        out_args[FUSED_BODY] = (Value){ .kind = VALUE_GRAPH, .graph = body };
        return STATUS_OK;
}

// A group that does not fit one tile program stays as it is.
static Status check_fits(const OpCall *call)
{
        Packed packed = { 0 };
        TRY(call->op->pack(call, &(PackContext){ .n_threads = 1 }, &packed));
        packed.free_impl(packed.impl);
        return STATUS_OK;
}

static Status fuse(Recording *recording, const Fusing *fusing, Group *group)
{
        Making making = { .fusing = fusing, .group = group };
        Value args[2];
        RecordedCall *fused;
        qsort(group->members, group->n, sizeof(uint32_t), by_position);
        TRY(gather(&making));
        if (group->tail != 0)
                TRY(gather_tail(&making));
        if (making.n_calls < 2 || making.too_many || making.n_outputs == 0)
                return STATUS_OK;
        TRY(make_args(&making, args));
        NewCall new_call = { .overload = op_for(ROLE_FUSED),
                             .take_args = args,
                             .outs = making.outputs,
                             .n_outs = making.n_outputs,
                             .stands_for = making.calls,
                             .n_stands_for = making.n_calls,
                             .replaces = true,
                             .accept = check_fits };
        return recording_insert(recording, making.calls[making.n_calls - 1], &new_call, &fused);
}

static Status note_result(void *context, Recorded *value)
{
        return close_read(context, value);
}

static Status fuse_all(Recording *recording, const Uses *uses, PassContext *context)
{
        _cleanup_(freep) Group *groups = new_array(recording->n_calls, sizeof(*groups));
        _cleanup_(freep) uint32_t *group_of = new_array(recording->n_buffers, sizeof(*group_of));
        _cleanup_(freep) bool *read_outside = new_array(recording->n_buffers, sizeof(*read_outside));
        if (groups == NULL || group_of == NULL || read_outside == NULL)
                return fail_memory();
        Fusing fusing = { .recording = recording,
                          .uses = uses,
                          .groups = groups,
                          .group_of = group_of,
                          .read_outside = read_outside };
        uint32_t n_calls = recording->n_calls;
        for (; fusing.at < n_calls; fusing.at++) {
                if (fusing.at % 64 == 0)
                        TRY(run_poll(context->poll));
                if (!recording->calls[fusing.at]->removed)
                        TRY(look_at_call(&fusing, recording->calls[fusing.at]));
        }
        TRY(recording_visit_results(recording, note_result, &fusing));
        for (uint32_t i = 0; i < fusing.n_groups; i++) {
                if (groups[i].into == 0 && (groups[i].n > 1 || groups[i].tail != 0))
                        TRY(fuse(recording, &fusing, &groups[i]));
        }
        recording_compact(recording);
        return STATUS_OK;
}

Status pass_fuse_pointwise(Recording *recording, PassContext *context)
{
        _cleanup_(uses_deinit) Uses uses = { 0 };
        TRY(uses_count(recording, &uses));
        return fuse_all(recording, &uses, context);
}
