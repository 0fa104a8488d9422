// SPDX-License-Identifier: Apache-2.0
// emit_program.c: first the implementations (pack where the row has one, else prepare), then the
// plan, which needs their scratch, then operands. All look-ups happen here, none in a run.
#include "core/compile/emit_program.h"

#include <string.h>
#include "core/compile/child.h"
#include "core/compile/plan.h"
#include "core/eval/walk.h"
#include "core/kernels/run_context.h"

typedef struct Making {
        Program *program;
        const EmitOptions *options;
        Arena *arena;          // the program's
        size_t *scratch_bytes; // by call
        uint32_t *n_readers;   // by value: calls that do not hold it packed yet
        MemoryPlan plan;
        uint32_t operands_capacity, packed_capacity;
} Making;

// ---- implementations ----
// The choice's: the least narrow one of those of the nodes that the call stands for.
static Precision precision_of(const EmitOptions *options, const RecordedCall *call)
{
        Precision precision = PRECISION_COUNT;
        if (options->choice == NULL)
                return options->precision;
        for (uint32_t i = 0; i < call->n_nodes; i++)
                precision = MIN(precision, choice_precision(options->choice, call->nodes[i]->index));
        return precision == PRECISION_COUNT ? PRECISION_F32 : precision;
}

// packed.run NULL: the row's own prepare and run are used.
static Status pack_as(Making *making, const RecordedCall *call, Precision precision, Packed *out_packed)
{
        Program *program = making->program;
        const EmitOptions *options = making->options;
        PackContext context = { .n_threads = options->n_threads,
                                .cache = options->cache,
                                .tune = options->tune,
                                .poll = options->poll,
                                .precision = precision };
        *out_packed = (Packed){ 0 };
        TRY(call->call.op->pack(&call->call, &context, out_packed));
        if (out_packed->run == NULL && out_packed->free_impl != NULL)
                out_packed->free_impl(out_packed->impl);
        if (out_packed->run == NULL)
                return STATUS_OK;
        program->packed[program->n_packed++] = *out_packed;
        program->child_bytes += child_program_bytes(out_packed);
        return STATUS_OK;
}

static Status pack_call(Making *making, const RecordedCall *call, Instruction *instruction,
                        uint64_t *out_baked, size_t *out_scratch)
{
        Packed packed;
        TRY(pack_as(making, call, precision_of(making->options, call), &packed));
        if (packed.run == NULL)
                return STATUS_OK;
        instruction->kernel = packed.run;
        instruction->run.state = packed.impl;
        instruction->name = packed.kernel != NULL ? packed.kernel : instruction->name;
        *out_baked = packed.baked;
        *out_scratch = packed.scratch_bytes;
        return STATUS_OK;
}

static Status prepare_call(Making *making, const RecordedCall *call, Instruction *instruction)
{
        uint8_t *block = arena_alloc(making->arena, OP_STATE_BYTES + STORAGE_ALIGN);
        if (block == NULL)
                return fail_memory();
        block += -(uintptr_t)block & (STORAGE_ALIGN - 1);
        instruction->kernel = call->call.op->run;
        instruction->run.state = block;
        return call->call.op->prepare == NULL ? STATUS_OK : call->call.op->prepare(&call->call, block);
}

static Status find_kernel(Making *making, const RecordedCall *call, Instruction *instruction,
                          uint64_t *out_baked, size_t *out_scratch)
{
        const OpDef *op = call->call.op;
        *instruction = (Instruction){ .call = call,
                                      .name = op->kernel != NULL ? op->kernel : call->call.schema->name };
        instruction->run.call = &call->call;
        *out_baked = 0;
        *out_scratch = 0;
        if (op->pack != NULL && !call->call.inplace)
                TRY(pack_call(making, call, instruction, out_baked, out_scratch));
        return instruction->kernel != NULL ? STATUS_OK : prepare_call(making, call, instruction);
}

static Status choose_kernel(Making *making, const RecordedCall *call, Instruction *instruction,
                            uint64_t *out_baked, size_t *out_scratch)
{
        Status status = find_kernel(making, call, instruction, out_baked, out_scratch);
        return status == STATUS_OK || call->n_nodes == 0 ? status : walk_annotate(status, call->nodes[0]);
}

// The other forms of a product. They share its operands: what some form does not hold packed is
// given to all.
static Status pack_forms(Making *making, const RecordedCall *call, const Instruction *instruction,
                         InstructionForms forms, uint64_t *inout_baked, size_t *inout_scratch)
{
        if (call->call.op->pack == NULL || call->call.inplace || instruction->kernel == call->call.op->run)
                return STATUS_OK;
        forms[PRECISION_F32] =
                (InstructionForm){ instruction->kernel, (void *)(uintptr_t)instruction->run.state };
        for (Precision precision = PRECISION_F32 + 1; precision < PRECISION_COUNT; precision++) {
                Packed packed;
                TRY(pack_as(making, call, precision, &packed));
                if (packed.run == NULL || packed.kernel == NULL ||
                    strcmp(packed.kernel, instruction->name) == 0)
                        continue;
                forms[precision] = (InstructionForm){ packed.run, packed.impl };
                *inout_baked &= packed.baked;
                *inout_scratch = MAX(*inout_scratch, packed.scratch_bytes);
        }
        return STATUS_OK;
}

static Status pack_all_forms(Making *making, const Instruction *chosen, InstructionForms *forms,
                             uint64_t *baked)
{
        const Recording *recording = making->program->recording;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                TRY(run_poll(making->options->poll));
                if (recording->calls[i]->computes)
                        TRY(pack_forms(making, recording->calls[i], &chosen[i], forms[i], &baked[i],
                                       &making->scratch_bytes[i]));
        }
        return STATUS_OK;
}

// ---- operands ----
static Operand operand_of(const Making *making, const Recorded *value)
{
        uintptr_t offset =
                (uintptr_t)value->tensor.offset * (uintptr_t)dtype_info[value->tensor.meta.dtype].bytes;
        if (recorded_is_constant(value))
                return (Operand){ .slot = SLOT_CONSTANT,
                                  .offset = value->tensor.storage->data == NULL
                                                    ? 0
                                                    : (uintptr_t)value->tensor.storage->data + offset };
        const Place *place = &making->plan.places[recorded_buffer(value)->index];
        if (recorded_buffer(value)->n_bytes == 0)
                return (Operand){ .slot = SLOT_CONSTANT };
        return (Operand){ .slot = place->slot, .offset = place->offset + offset };
}

static Status add_operand(Making *making, Operand operand)
{
        Program *program = making->program;
        TRY(array_reserve(&program->operands, &making->operands_capacity, program->n_operands + 1,
                          sizeof(Operand)));
        program->operands[program->n_operands++] = operand;
        return STATUS_OK;
}

typedef struct Inputs {
        Making *making;
        const TensorMeta **metas;
        uint32_t n;
        uint64_t baked;
} Inputs;

static Status count_input(void *context, Recorded *value)
{
        (void)value;
        (*(uint32_t *)context)++;
        return STATUS_OK;
}

static Status add_input(void *context, Recorded *value)
{
        Inputs *inputs = context;
        bool baked = inputs->n < 64 && (inputs->baked >> inputs->n & 1) != 0;
        inputs->metas[inputs->n++] = value == NULL ? NULL : &value->tensor.meta;
        return add_operand(inputs->making, value == NULL || baked ? (Operand){ .slot = SLOT_CONSTANT }
                                                                  : operand_of(inputs->making, value));
}

static Status lay_out(Making *making, uint32_t index, uint64_t baked, size_t scratch_bytes,
                      Instruction *instruction)
{
        const RecordedCall *call = instruction->call;
        uint32_t n_in = 0, n_out = call->call.n_outs;
        TRY(recorded_visit_inputs(call, count_input, &n_in));
        const TensorMeta **metas = arena_array(making->arena, (size_t)n_out + n_in, sizeof(*metas));
        if (metas == NULL)
                return fail_memory();
        instruction->first_operand = making->program->n_operands;
        instruction->run.n_out = n_out;
        instruction->run.n_in = n_in;
        instruction->run.out_meta = metas;
        instruction->run.in_meta = metas + n_out;
        for (uint32_t k = 0; k < n_out; k++) {
                const Recorded *value = call->outs[k];
                metas[k] = value == NULL ? NULL : &value->tensor.meta;
                TRY(add_operand(making, value == NULL ? (Operand){ .slot = SLOT_CONSTANT }
                                                      : operand_of(making, value)));
        }
        Inputs inputs = { .making = making, .metas = metas + n_out, .baked = baked };
        TRY(recorded_visit_inputs(call, add_input, &inputs));
        Operand scratch = { .slot = scratch_bytes > 0 ? SLOT_ARENA : SLOT_CONSTANT,
                            .offset = making->plan.scratch_offsets[index] };
        return add_operand(making, scratch);
}

// ---- what a run copies first ----
static Status copy_run(const OpRun *run)
{
        size_t n = *(const size_t *)run->state;
        Work work = { .ctx = run->ctx };
        for (int64_t at = 0, end; (end = work_end(&work, at, (int64_t)n, 1)) > at; at = end)
                memcpy((char *)run->out[0] + at, (const char *)run->in[0] + at, (size_t)(end - at));
        return work.stops ? run_poll(run->ctx) : STATUS_OK;
}

static Operand source_of(const Making *making, const Buffer *buffer)
{
        const Recording *recording = making->program->recording;
        if (buffer->kind != BUFFER_STATE)
                return (Operand){ .slot = SLOT_FIRST_INPUT + buffer->input };
        for (uint32_t k = 0; k < recording->n_states; k++)
                if (recording->states[k] == buffer)
                        return (Operand){ .slot = state_slot(recording, making->plan.n_outputs, k) };
        return (Operand){ .slot = SLOT_CONSTANT, .offset = (uintptr_t)buffer->origin->data };
}

static Status add_copy(Making *making, const Buffer *buffer, Instruction *instruction)
{
        Program *program = making->program;
        const Place *place = &making->plan.places[buffer->index];
        const TensorMeta **metas = arena_array(making->arena, 2, sizeof(*metas));
        if (metas == NULL)
                return fail_memory();
        metas[0] = metas[1] = &buffer->base->tensor.meta;
        *instruction =
                (Instruction){ .kernel = copy_run, .name = "copy", .first_operand = program->n_operands };
        instruction->run = (OpRun){
                .n_out = 1, .n_in = 1, .out_meta = metas, .in_meta = metas + 1, .state = &buffer->n_bytes
        };
        TRY(add_operand(making, (Operand){ .slot = place->slot, .offset = place->offset }));
        TRY(add_operand(making, source_of(making, buffer)));
        return add_operand(making, (Operand){ .slot = SLOT_CONSTANT });
}

static Status add_copies(Making *making)
{
        Program *program = making->program;
        const Recording *recording = program->recording;
        for (uint32_t i = 0; i < recording->n_buffers; i++) {
                if (making->plan.copied[i] && recording->buffers[i]->n_bytes > 0)
                        TRY(add_copy(making, recording->buffers[i], &program->code[program->n_code++]));
        }
        return STATUS_OK;
}

// ---- constants that passes have computed ----
// They are dropped when the instructions that read them hold them packed.
typedef struct Dropping {
        const Making *making;
        uint32_t n;
        uint64_t baked;
} Dropping;

static Status drop_bytes(Recorded *value)
{
        Storage *empty;
        TRY(storage_without_bytes(value->tensor.storage, &empty));
        storage_unref(value->tensor.storage);
        value->tensor.storage = empty;
        return STATUS_OK;
}

static Status count_reader(void *context, Recorded *value)
{
        const Making *making = context;
        if (value != NULL)
                making->n_readers[value->index]++;
        return STATUS_OK;
}

// Values without readers were given new forms by later passes; they are dropped at once. No result
// is a constant that has a source: passes compute those for products only.
static Status count_readers(Making *making)
{
        const Recording *recording = making->program->recording;
        making->n_readers = arena_array(making->arena, recording->n_values, sizeof(uint32_t));
        if (making->n_readers == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < recording->n_calls; i++)
                if (recording->calls[i]->computes)
                        TRY(recorded_visit_inputs(recording->calls[i], count_reader, making));
        for (uint32_t i = 0; i < recording->n_values; i++) {
                Recorded *value = recording->values[i];
                if (recorded_is_constant(value) && value->tensor.storage->source != NULL &&
                    making->n_readers[i] == 0)
                        TRY(drop_bytes(value));
        }
        return STATUS_OK;
}

static Status drop_input(void *context, Recorded *value)
{
        Dropping *dropping = context;
        bool baked = dropping->n < 64 && (dropping->baked >> dropping->n & 1) != 0;
        dropping->n++;
        if (!baked || value == NULL || !recorded_is_constant(value) ||
            value->tensor.storage->source == NULL || --dropping->making->n_readers[value->index] > 0)
                return STATUS_OK;
        return drop_bytes(value);
}

static Status drop_packed(const Making *making, const RecordedCall *call, uint64_t baked)
{
        Dropping dropping = { .making = making, .baked = baked };
        return recorded_visit_inputs(call, drop_input, &dropping);
}

// ---- code ----
static Status make_code(Making *making)
{
        Program *program = making->program;
        const Recording *recording = program->recording;
        uint32_t n = recording->n_calls;
        // There are at most n_buffers copies and n_calls calls.
        program->code = arena_array(making->arena, (size_t)n + recording->n_buffers, sizeof(Instruction));
        program->packed = arena_array(making->arena, (size_t)n * PRECISION_COUNT, sizeof(Packed));
        InstructionForms *forms =
                making->options->forms ? arena_array(making->arena, n, sizeof(*forms)) : NULL;
        Instruction *chosen = arena_array(making->arena, n, sizeof(*chosen));
        uint64_t *baked = arena_array(making->arena, n, sizeof(*baked));
        making->scratch_bytes = arena_array(making->arena, n, sizeof(size_t));
        if (program->code == NULL || program->packed == NULL || chosen == NULL || baked == NULL ||
            making->scratch_bytes == NULL || (making->options->forms && forms == NULL))
                return fail_memory();
        TRY(count_readers(making));
        for (uint32_t i = 0; i < n; i++) {
                TRY(run_poll(making->options->poll));
                if (recording->calls[i]->computes)
                        TRY(choose_kernel(making, recording->calls[i], &chosen[i], &baked[i],
                                          &making->scratch_bytes[i]));
                if (recording->calls[i]->computes && forms == NULL)
                        TRY(drop_packed(making, recording->calls[i], baked[i]));
        }
        if (forms != NULL)
                TRY(pack_all_forms(making, chosen, forms, baked));
        TRY(plan_memory(recording, making->scratch_bytes, making->options->poll, making->arena,
                        &making->plan));
        if (forms != NULL)
                program->forms = arena_array(making->arena, (size_t)n + recording->n_buffers, sizeof(*forms));
        if (forms != NULL && program->forms == NULL)
                return fail_memory();
        TRY(add_copies(making));
        for (uint32_t i = 0; i < n; i++) {
                if (!recording->calls[i]->computes)
                        continue;
                if (forms != NULL)
                        memcpy(program->forms[program->n_code], forms[i], sizeof(forms[i]));
                Instruction *instruction = &program->code[program->n_code++];
                *instruction = chosen[i];
                TRY(lay_out(making, i, baked[i], making->scratch_bytes[i], instruction));
        }
        return STATUS_OK;
}

// ---- rows ----
static int64_t meta_bytes(const TensorMeta *meta)
{
        return meta == NULL ? 0 : meta_numel(meta) * dtype_info[meta->dtype].bytes;
}

static Cost cost_of(const Instruction *instruction)
{
        const OpRun *run = &instruction->run;
        Cost cost = { 0 };
        if (instruction->call != NULL && instruction->call->call.op->cost != NULL)
                return instruction->call->call.op->cost(&instruction->call->call);
        for (uint32_t i = 0; i < run->n_in; i++)
                cost.bytes += meta_bytes(run->in_meta[i]);
        for (uint32_t k = 0; k < run->n_out; k++) {
                cost.bytes += meta_bytes(run->out_meta[k]);
                if (instruction->call != NULL && (instruction->call->call.op->flags & OP_ELEMENTWISE) != 0 &&
                    run->out_meta[k] != NULL)
                        cost.flops += meta_numel(run->out_meta[k]);
        }
        return cost;
}

static void add_row(Program *program, ProgramRow row)
{
        program->rows[program->n_rows++] = row;
}

static Status add_idle_row(Making *making, const Node *node, bool viewed)
{
        const Node **nodes = arena_array(making->arena, 1, sizeof(*nodes));
        if (nodes == NULL)
                return fail_memory();
        nodes[0] = node;
        add_row(making->program, (ProgramRow){ .nodes = nodes,
                                               .n_nodes = 1,
                                               .instruction = ROW_IDLE,
                                               .kernel = viewed ? "view" : NULL,
                                               .why = viewed ? "view" : "folded" });
        return STATUS_OK;
}

enum { NODE_IDLE, NODE_VIEWED, NODE_COMPUTED };

static void mark_nodes(const Recording *recording, uint8_t *what)
{
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                for (uint32_t k = 0; k < call->n_nodes; k++)
                        if (call->computes || what[call->nodes[k]->index] == NODE_IDLE)
                                what[call->nodes[k]->index] = call->computes ? NODE_COMPUTED : NODE_VIEWED;
        }
        for (uint32_t i = 0; recording->tail != NULL && i < recording->tail->n_nodes; i++)
                what[recording->tail->nodes[i]->index] = NODE_COMPUTED;
}

// Room only: the walk of the tail fills its rows in.
static void add_tail_rows(Program *program)
{
        const EagerTail *tail = program->recording->tail;
        for (uint32_t i = 0; tail != NULL && i < tail->n_nodes; i++) {
                if (node_is_call(tail->nodes[i]))
                        add_row(program, (ProgramRow){ .nodes = &tail->nodes[i],
                                                       .n_nodes = 1,
                                                       .instruction = ROW_OF_TAIL });
        }
}

static Status add_idle_rows(Making *making, const uint8_t *what, uint32_t until, uint32_t *inout_next)
{
        const Graph *graph = making->program->recording->graph;
        for (; *inout_next < until; (*inout_next)++) {
                const Node *node = graph->nodes[*inout_next];
                if (what[*inout_next] != NODE_COMPUTED && node_is_call(node))
                        TRY(add_idle_row(making, node, what[*inout_next] == NODE_VIEWED));
        }
        return STATUS_OK;
}

static Status make_rows(Making *making)
{
        Program *program = making->program;
        const Graph *graph = program->recording->graph;
        uint8_t *what = arena_alloc(making->arena, graph->n_nodes);
        program->rows =
                arena_array(making->arena, 2 * (size_t)graph->n_nodes + program->n_code, sizeof(ProgramRow));
        if (what == NULL || program->rows == NULL)
                return fail_memory();
        mark_nodes(program->recording, what);
        uint32_t next = 0;
        for (uint32_t i = 0; i < program->n_code; i++) {
                const Instruction *instruction = &program->code[i];
                const RecordedCall *call = instruction->call;
                if (call == NULL || call->n_nodes == 0)
                        continue; // copies made for the run stand for no authored node
                TRY(add_idle_rows(making, what, call->nodes[0]->index, &next));
                Cost cost = cost_of(instruction);
                add_row(program,
                        (ProgramRow){
                                .nodes = call->nodes,
                                .n_nodes = call->n_nodes,
                                .instruction = (int32_t)i,
                                .kernel = instruction->name,
                                .meta = instruction->run.n_out > 0 ? instruction->run.out_meta[0] : NULL,
                                .bytes = cost.bytes,
                                .flops = cost.flops,
                        });
        }
        TRY(add_idle_rows(making, what, graph->n_nodes, &next));
        add_tail_rows(program);
        return STATUS_OK;
}

// ---- the program ----
static Status settle(Making *making)
{
        Program *program = making->program;
        Operand *operands = arena_array(making->arena, program->n_operands, sizeof(*operands));
        if (operands == NULL)
                return fail_memory();
        if (program->n_operands > 0)
                memcpy(operands, program->operands, program->n_operands * sizeof(*operands));
        free(program->operands);
        program->operands = operands;
        program->places = making->plan.places;
        program->n_outputs = making->plan.n_outputs;
        program->n_states = program->recording->n_states;
        program->output_bytes = making->plan.output_bytes;
        size_t constant_bytes = program->figures.constant_bytes;
        program->figures = making->plan.figures;
        program->figures.constant_bytes = constant_bytes;
        return STATUS_OK;
}

Status emit_program(Recording *take_recording, const EmitOptions *options, Program **out_program)
{
        Program *program = calloc(1, sizeof(*program));
        if (program == NULL) {
                recording_free(take_recording);
                return fail_memory();
        }
        refcount_init(&program->ref);
        arena_init(&program->arena, 0);
        program->recording = take_recording;
        program->n_threads = options->n_threads;
        program->n_inputs = take_recording->n_inputs;
        Making making = { .program = program, .options = options, .arena = &program->arena };
        Status status = make_code(&making);
        if (status == STATUS_OK)
                status = settle(&making);
        else
                free(program->operands);
        if (status == STATUS_OK)
                status = make_rows(&making);
        if (status != STATUS_OK) {
                program_unref(program);
                return status;
        }
        *out_program = program;
        return STATUS_OK;
}
