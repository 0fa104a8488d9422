// SPDX-License-Identifier: Apache-2.0
#include "core/program/reasons.h"

#include "core/ops/arguments.h"
#include "core/ops/fused.h"

// ---- readers ----
typedef struct Filling {
        Reasons *reasons;
        uint32_t *n; // by buffer: how many are there
        const RecordedCall *reader;
} Filling;

static Status count_reader(void *context, Recorded *value)
{
        if (value != NULL && !recorded_is_constant(value))
                ((uint32_t *)context)[recorded_buffer(value)->index + 1]++;
        return STATUS_OK;
}

static Status fill_reader(void *context, Recorded *value)
{
        Filling *filling = context;
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        uint32_t buffer = recorded_buffer(value)->index, first = filling->reasons->first[buffer];
        filling->reasons->readers[first + filling->n[buffer]++] = filling->reader;
        return STATUS_OK;
}

Status reasons_init(Reasons *reasons, const Recording *recording)
{
        uint32_t n_buffers = recording->n_buffers;
        *reasons = (Reasons){ .recording = recording,
                              .first = new_array((size_t)n_buffers + 1, sizeof(uint32_t)) };
        _cleanup_(freep) uint32_t *n = new_array(n_buffers, sizeof(uint32_t));
        if (reasons->first == NULL || n == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < recording->n_calls; i++)
                if (recording->calls[i]->computes)
                        TRY(recorded_visit_inputs(recording->calls[i], count_reader, reasons->first));
        for (uint32_t i = 0; i < n_buffers; i++)
                reasons->first[i + 1] += reasons->first[i];
        reasons->readers = new_array(reasons->first[n_buffers], sizeof(*reasons->readers));
        if (reasons->readers == NULL)
                return fail_memory();
        Filling filling = { .reasons = reasons, .n = n };
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                filling.reader = recording->calls[i];
                if (filling.reader->computes)
                        TRY(recorded_visit_inputs(filling.reader, fill_reader, &filling));
        }
        return STATUS_OK;
}

void reasons_deinit(Reasons *reasons)
{
        free(reasons->first);
        free(reasons->readers);
        *reasons = (Reasons){ 0 };
}

// A reader of the result other than `but`; NULL: none.
static const RecordedCall *another_reader(const Reasons *reasons, const RecordedCall *call,
                                          const RecordedCall *but)
{
        uint32_t buffer = recorded_buffer(call->outs[0])->index;
        for (uint32_t i = reasons->first[buffer]; i < reasons->first[buffer + 1]; i++)
                if (reasons->readers[i] != but && reasons->readers[i] != call)
                        return reasons->readers[i];
        return NULL;
}

// ---- calls ----
static const RecordedCall *maker_of(const Recorded *value)
{
        const RecordedCall *call =
                value == NULL || recorded_is_constant(value) ? NULL : recorded_buffer(value)->base->call;
        return call != NULL && call->computes && !call->removed ? call : NULL;
}

bool reasons_is_fused(const RecordedCall *call)
{
        return op_role(&call->call) == ROLE_FUSED;
}

static bool takes_part(const RecordedCall *call)
{
        return reasons_is_fused(call) || fused_takes(&call->call);
}

static bool is_product(const RecordedCall *call)
{
        OpRole role = op_role(&call->call);
        return role == ROLE_CONV || role == ROLE_LINEAR;
}

bool reasons_covers(const RecordedCall *call)
{
        return call->computes && !call->removed && call->call.n_outs > 0 && call->outs[0] != NULL &&
               !recorded_is_constant(call->outs[0]);
}

static const char *name_of(const RecordedCall *call)
{
        return call->n_nodes > 0 ? call->nodes[0]->name : call->call.schema->name;
}

// ---- pointwise calls ----
typedef struct Neighbours { // of a call: those it reads from, or those that read it
        const RecordedCall *call;
        const RecordedCall *maker, *reader; // pointwise, of the same shape
        const RecordedCall *other_shape, *other_layout, *in_the_way, *copy;
} Neighbours;

static void note_neighbour(Neighbours *neighbours, const RecordedCall *other, bool is_maker)
{
        if (other == neighbours->call || other->call.n_outs == 0 || other->outs[0] == NULL)
                return;
        const TensorMeta *mine = &neighbours->call->outs[0]->tensor.meta,
                         *theirs = &other->outs[0]->tensor.meta;
        if (op_role(&other->call) == ROLE_CLONE)
                neighbours->copy = other;
        else if (!takes_part(other))
                neighbours->in_the_way = other;
        else if (!meta_same_shape(mine, theirs))
                neighbours->other_shape = other;
        else if (!meta_same_places(mine, theirs))
                neighbours->other_layout = other;
        else if (is_maker)
                neighbours->maker = other;
        else
                neighbours->reader = other;
}

static Status note_input(void *context, Recorded *value)
{
        const RecordedCall *maker = maker_of(value);
        if (maker != NULL)
                note_neighbour(context, maker, true);
        return STATUS_OK;
}

static void find_neighbours(const Reasons *reasons, const RecordedCall *call, Neighbours *out)
{
        uint32_t buffer = recorded_buffer(call->outs[0])->index;
        *out = (Neighbours){ .call = call };
        (void)recorded_visit_inputs(call, note_input, out);
        for (uint32_t i = reasons->first[buffer]; i < reasons->first[buffer + 1]; i++)
                note_neighbour(out, reasons->readers[i], false);
}

// `first` and its reader `second` are pointwise calls of one shape in different groups: somebody
// else reads the first one's result before the second runs, or they do not fit into one group.
// `call` is one of the two.
static void add_apart(const Reasons *reasons, const RecordedCall *first, const RecordedCall *second,
                      const RecordedCall *call, Text *out)
{
        const RecordedCall *between = another_reader(reasons, first, second);
        const char *neighbour = name_of(call == first ? second : first);
        if (between == NULL)
                text_addf(out,
                          "between it and %s others read or write, or the group is full: a group has at "
                          "most 40 calls and 16 inputs",
                          neighbour);
        else if (call == first)
                text_addf(out, "its result has several users: %s reads it as well as %s", name_of(between),
                          name_of(second));
        else
                text_addf(out, "the result of %s has several users: %s reads it, too", name_of(first),
                          name_of(between));
}

static void add_pointwise(const Reasons *reasons, const RecordedCall *call, Text *out)
{
        Neighbours neighbours;
        find_neighbours(reasons, call, &neighbours);
        if (neighbours.maker != NULL)
                add_apart(reasons, neighbours.maker, call, call, out);
        else if (neighbours.reader != NULL)
                add_apart(reasons, call, neighbours.reader, call, out);
        else if (neighbours.other_layout != NULL)
                text_addf(out, "%s has another memory layout", name_of(neighbours.other_layout));
        else if (neighbours.other_shape != NULL)
                text_addf(out, "%s has another shape", name_of(neighbours.other_shape));
        else if (neighbours.copy != NULL)
                text_add(out, "a copy into another memory layout stands beside it");
        else if (neighbours.in_the_way != NULL)
                text_addf(out, "%s is not pointwise", name_of(neighbours.in_the_way));
        else
                text_add(out, "no call beside it");
}

// ---- products ----
// A convolution or linear takes an addition and an activation behind it into its own kernel.
static void add_product(const Reasons *reasons, const RecordedCall *call, Text *out)
{
        const RecordedCall *reader = another_reader(reasons, call, NULL);
        if (recorded_buffer(call->outs[0])->is_output)
                text_add(out, "its result escapes: it is an output");
        else if (reader == NULL)
                text_add(out, "no call behind it");
        else if (another_reader(reasons, call, reader) != NULL)
                text_addf(out, "its result has several users: %s and %s", name_of(reader),
                          name_of(another_reader(reasons, call, reader)));
        else if (!takes_part(reader))
                text_addf(out, "%s behind it is not pointwise", name_of(reader));
        else if (!meta_same_places(&call->outs[0]->tensor.meta, &reader->outs[0]->tensor.meta))
                text_addf(out, "%s behind it has another shape or memory layout", name_of(reader));
        else
                text_addf(out,
                          "its kernel takes an addition or an activation with constant weights and a dtype "
                          "that it has; %s is not one",
                          name_of(reader));
}

void reason_add(const Reasons *reasons, const RecordedCall *call, Text *out)
{
        if (recorded_writes_self(call))
                text_add(out, "it writes to a tensor that others see");
        else if (recorded_buffer(call->outs[0])->written)
                text_add(out, "its result is written again");
        else if (is_product(call))
                add_product(reasons, call, out);
        else if (takes_part(call))
                add_pointwise(reasons, call, out);
        else if ((call->call.op->flags & OP_ELEMENTWISE) != 0)
                text_add(out, "it may refuse values, or no group computes its dtypes");
        else
                text_add(out, "it is not pointwise: it has a kernel of its own");
}
