// SPDX-License-Identifier: Apache-2.0
// child_program.c: kernels of calls of child graphs. pack compiles the child graphs; all that their
// runs need beside operands lies in the scratch memory of the call: arenas, pointers, results that
// are copied, and the second place of each carried value.
#include "core/compile/child.h"

#include <string.h>
#include "core/base/limits.h"
#include "core/compile/emit_program.h"
#include "core/interp/interp.h"
#include "core/ops/arguments.h"
#include "core/passes/passes.h"

// ---- one child ----
typedef struct ChildResult {
        Operand at;
        size_t n_bytes;
        bool is_direct; // its output storage is the destination
} ChildResult;

typedef struct Child {
        Program *program;   // counted; NULL: none
        uint32_t *operands; // by input slot: index among the call's `inputs`
        ChildResult *results;
        uint32_t n_results;
        int32_t *direct;     // by output slot: the result that lies there alone; -1: `spares`
        size_t *spares;      // by output slot: in the scratch memory
        size_t bases, arena; // in the scratch memory
} Child;

typedef struct Children {
        Child children[2];
        uint32_t n_in, n_carried, n_over;
        int64_t n_rows;
        size_t now, next;               // in the scratch memory: addresses of inputs and of results
        size_t flag;                    // of the condition
        size_t *spares;                 // by carried value
        size_t *out_bytes, *step_bytes; // by output; by input that is a row
        Dtype flag_dtype;
} Children;

static size_t span_bytes(const TensorMeta *meta)
{
        int64_t n = 0;
        return meta_span(meta, &n) == STATUS_OK ? (size_t)(n * dtype_info[meta->dtype].bytes) : 0;
}

static Status take_scratch(size_t *inout_bytes, size_t n_bytes, size_t *out_at)
{
        *out_at = *inout_bytes;
        if (__builtin_add_overflow(n_bytes, STORAGE_ALIGN - 1, &n_bytes) ||
            __builtin_add_overflow(*inout_bytes, n_bytes / STORAGE_ALIGN * STORAGE_ALIGN, inout_bytes))
                return fail_memory();
        return STATUS_OK;
}

// ---- packing ----
static Operand place_of(const Program *program, const Recorded *value)
{
        uintptr_t offset =
                (uintptr_t)value->tensor.offset * (uintptr_t)dtype_info[value->tensor.meta.dtype].bytes;
        if (recorded_is_constant(value))
                return (Operand){ SLOT_CONSTANT, (uintptr_t)value->tensor.storage->data + offset };
        const Place *place = &program->places[recorded_buffer(value)->index];
        return (Operand){ place->slot, place->offset + offset };
}

// Results that are all of an output storage are computed where they are wanted.
static void place_results(Child *child, Recorded *const *values)
{
        const Program *program = child->program;
        uint32_t first = SLOT_FIRST_INPUT + program->n_inputs;
        for (uint32_t s = 0; s < program->n_outputs; s++)
                child->direct[s] = -1;
        for (uint32_t i = 0; i < child->n_results; i++) {
                ChildResult *result = &child->results[i];
                *result = (ChildResult){ .at = place_of(program, values[i]),
                                         .n_bytes = span_bytes(&values[i]->tensor.meta) };
                if (result->at.slot < first || result->at.offset != 0 ||
                    child->direct[result->at.slot - first] >= 0 ||
                    program->output_bytes[result->at.slot - first] > result->n_bytes)
                        continue;
                child->direct[result->at.slot - first] = (int32_t)i;
                result->is_direct = true;
        }
}

static Status lay_out_scratch(Child *child, size_t *inout_bytes)
{
        const Program *program = child->program;
        TRY(take_scratch(inout_bytes, program_pointers(program) * sizeof(void *), &child->bases));
        TRY(take_scratch(inout_bytes, program->figures.arena_bytes, &child->arena));
        for (uint32_t s = 0; s < program->n_outputs; s++) {
                if (child->direct[s] < 0)
                        TRY(take_scratch(inout_bytes, program->output_bytes[s], &child->spares[s]));
        }
        return STATUS_OK;
}

static Status compile_child(const OpCall *call, const Graph *graph, const PackContext *context,
                            const ChildInputs *inputs, Program **out_program)
{
        Recording *recording;
        ChildOptions options = { .poll = context->poll, .max_calls = (uint32_t)limits.max_nodes };
        PassContext passed = { .poll = context->poll,
                               .n_threads = context->n_threads,
                               .cache = context->cache };
        EmitOptions emit = { .n_threads = context->n_threads,
                             .cache = context->cache,
                             .tune = context->tune,
                             .poll = context->poll,
                             .precision = context->precision };
        TRY(child_record(call, graph, inputs, &options, &recording));
        Status status = passes_run(recording, &passed);
        if (status != STATUS_OK) {
                recording_free(recording);
                return status;
        }
        TRY(emit_program(recording, &emit, out_program)); // depth: limits.max_child_graphs
        (*out_program)->figures.constant_bytes = passed.folded_bytes;
        return STATUS_OK;
}

// The first `n_same` results are those that the call describes. Where a pass has changed that, the
// graph stays eager.
static Status check_child(const OpCall *call, const Child *child, const ChildInputs *inputs,
                          Recorded *const *values, uint32_t n_same)
{
        if (child->program->n_inputs != inputs->n_operands || child->n_results < n_same ||
            call->n_outs < n_same)
                return fail(STATUS_DYNAMIC, "a child's program has other inputs or results than its call");
        for (uint32_t i = 0; i < n_same; i++) {
                if (!child_same_meta(&values[i]->tensor.meta, &call->outs[i].meta))
                        return fail(STATUS_DYNAMIC, "a child's program has other results than its call");
        }
        return STATUS_OK;
}

static Status pack_child(const OpCall *call, int graph_arg, const PackContext *context, uint32_t n_same,
                         Child *child)
{
        _cleanup_(child_inputs_deinit) ChildInputs inputs = { 0 };
        _cleanup_(freep) Recorded **values = NULL;
        TRY(child_inputs(call, &inputs));
        TRY(compile_child(call, call->args[graph_arg].graph, context, &inputs, &child->program));
        Program *program = child->program;
        TRY(child_results(program->recording, &values, &child->n_results));
        TRY(check_child(call, child, &inputs, values, n_same));
        child->operands = arena_array(&program->arena, inputs.n_operands, sizeof(uint32_t));
        child->results = arena_array(&program->arena, child->n_results, sizeof(ChildResult));
        child->direct = arena_array(&program->arena, program->n_outputs, sizeof(int32_t));
        child->spares = arena_array(&program->arena, program->n_outputs, sizeof(size_t));
        if (child->operands == NULL || child->results == NULL || child->direct == NULL ||
            child->spares == NULL)
                return fail_memory();
        if (inputs.n_operands > 0)
                memcpy(child->operands, inputs.operands, inputs.n_operands * sizeof(uint32_t));
        place_results(child, values);
        return STATUS_OK;
}

static Children *children_free(Children *children)
{
        program_unref(children->children[0].program);
        program_unref(children->children[1].program);
        free(children->spares);
        free(children);
        return NULL;
}
DEFINE_CLEANUP(Children, children_free)

static void free_impl(void *impl)
{
        children_free(impl);
}

size_t child_program_bytes(const Packed *packed)
{
        size_t n_bytes = 0;
        if (packed->free_impl != free_impl)
                return 0;
        const Children *children = packed->impl;
        for (int i = 0; i < 2; i++)
                n_bytes += children->children[i].program == NULL
                                   ? 0
                                   : program_bytes(children->children[i].program);
        return n_bytes;
}

static Status children_new(const OpCall *call, Children **out_children)
{
        _cleanup_(children_freep) Children *children = calloc(1, sizeof(*children));
        if (children == NULL)
                return fail_memory();
        children->n_in = call->args[SELF].seq->n;
        children->n_carried = (uint32_t)call->args[CHILD_N_CARRIED].i;
        children->spares =
                new_array((size_t)children->n_carried + call->n_outs + children->n_in, sizeof(size_t));
        if (children->spares == NULL)
                return fail_memory();
        children->out_bytes = children->spares + children->n_carried;
        children->step_bytes = children->out_bytes + call->n_outs;
        for (uint32_t i = 0; i < call->n_outs; i++)
                children->out_bytes[i] = span_bytes(&call->outs[i].meta);
        *out_children = take_ptr(children);
        return STATUS_OK;
}

// What all calls need in their scratch memory. The two children never run at the same time, but
// they keep their memory apart: arenas of small bodies are small.
static Status take_common(const OpCall *call, Children *children, size_t *inout_bytes)
{
        TRY(take_scratch(inout_bytes, children->n_in * sizeof(void *), &children->now));
        TRY(take_scratch(inout_bytes, call->n_outs * sizeof(void *), &children->next));
        for (uint32_t i = 0; i < children->n_carried; i++)
                TRY(take_scratch(inout_bytes, children->out_bytes[i], &children->spares[i]));
        for (int i = 0; i < 2; i++) {
                if (children->children[i].program != NULL)
                        TRY(lay_out_scratch(&children->children[i], inout_bytes));
        }
        return STATUS_OK;
}

static void hand_over(Children *take_children, Status (*run)(const OpRun *run), const char *kernel,
                      size_t scratch_bytes, Packed *out)
{
        *out = (Packed){ .run = run,
                         .impl = take_children,
                         .free_impl = free_impl,
                         .kernel = kernel,
                         .scratch_bytes = scratch_bytes };
}

// ---- running one child ----
static void copy_bytes(void *to, const void *from, size_t n_bytes)
{
        if (n_bytes > 0 && to != from)
                memcpy(to, from, n_bytes);
}

// `results`: where they are wanted; none of them is also an input.
static Status run_child(const Child *child, uint8_t *scratch, const void *const *inputs, void *const *results,
                        RunContext *ctx)
{
        const Program *program = child->program;
        void **bases = (void **)(void *)(scratch + child->bases), **outputs;
        bases[SLOT_ARENA] = scratch + child->arena;
        for (uint32_t i = 0; i < program->n_inputs; i++)
                bases[SLOT_FIRST_INPUT + i] = (void *)(uintptr_t)inputs[child->operands[i]];
        outputs = bases + SLOT_FIRST_INPUT + program->n_inputs;
        for (uint32_t s = 0; s < program->n_outputs; s++)
                outputs[s] = child->direct[s] >= 0 ? results[child->direct[s]] : scratch + child->spares[s];
        TRY(program_run_within(program, bases, ctx));
        for (uint32_t i = 0; i < child->n_results; i++) {
                const ChildResult *result = &child->results[i];
                if (!result->is_direct)
                        copy_bytes(results[i],
                                   (const void *)((uintptr_t)bases[result->at.slot] + result->at.offset),
                                   result->n_bytes);
        }
        return STATUS_OK;
}

static bool is_true(Dtype dtype, const void *bytes)
{
        Storage storage = { .data = (uint8_t *)(uintptr_t)bytes,
                            .n_bytes = dtype_info[dtype].bytes,
                            .readonly = true };
        Tensor tensor = { .storage = &storage };
        double number = 0;
        meta_init(&tensor.meta, dtype, 0, NULL);
        return tensor_item_f64(&tensor, &number) == STATUS_OK && number != 0;
}

// ---- torch.cond ----
static Status run_cond(const OpRun *run)
{
        const Children *children = run->state;
        bool taken = is_true(children->flag_dtype, run->in[children->n_in]);
        return run_child(&children->children[taken ? 0 : 1], run->scratch, run->in, run->out, run->ctx);
}

static Status pack_cond(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        size_t n_bytes = 0;
        _cleanup_(children_freep) Children *children = NULL;
        TRY(children_new(call, &children));
        children->flag_dtype = arg_meta(call, CHILD_PREDICATE)->dtype;
        TRY(pack_child(call, CHILD_FIRST, context, call->n_outs, &children->children[0]));
        TRY(pack_child(call, CHILD_SECOND, context, call->n_outs, &children->children[1]));
        TRY(take_common(call, children, &n_bytes));
        hand_over(take_ptr(children), run_cond, "branch", n_bytes, out_packed);
        return STATUS_OK;
}

// ---- while_loop ----
// A carried value lies in the result's place and in the spare one by turns.
static Status run_loop(const OpRun *run)
{
        const Children *children = run->state;
        uint8_t *scratch = run->scratch;
        const void **now = (const void **)(void *)(scratch + children->now);
        void **next = (void **)(void *)(scratch + children->next), *flag = scratch + children->flag;
        memcpy(now, run->in, children->n_in * sizeof(void *));
        for (;;) {
                TRY(run_poll(run->ctx));
                TRY(run_child(&children->children[0], scratch, now, &flag, run->ctx));
                if (!is_true(children->flag_dtype, flag))
                        break;
                for (uint32_t i = 0; i < children->n_carried; i++)
                        next[i] = now[i] == run->out[i] ? scratch + children->spares[i] : run->out[i];
                TRY(run_child(&children->children[1], scratch, now, next, run->ctx));
                memcpy(now, next, children->n_carried * sizeof(void *));
        }
        for (uint32_t i = 0; i < children->n_carried; i++)
                copy_bytes(run->out[i], now[i], children->out_bytes[i]);
        return STATUS_OK;
}

static Status pack_loop(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        size_t n_bytes = 0;
        _cleanup_(children_freep) Children *children = NULL;
        TRY(children_new(call, &children));
        TRY(pack_child(call, CHILD_FIRST, context, 0, &children->children[0]));
        TRY(pack_child(call, CHILD_SECOND, context, call->n_outs, &children->children[1]));
        Value result = children->children[0].program->recording->result;
        children->flag_dtype = (value_is_sequence(result) ? result.seq->items[0] : result).tensor->meta.dtype;
        TRY(take_scratch(&n_bytes, children->children[0].results[0].n_bytes, &children->flag));
        TRY(take_common(call, children, &n_bytes));
        hand_over(take_ptr(children), run_loop, "loop", n_bytes, out_packed);
        return STATUS_OK;
}

// ---- scan and map ----
static Status run_rows(const OpRun *run)
{
        const Children *children = run->state;
        uint8_t *scratch = run->scratch;
        const void **now = (const void **)(void *)(scratch + children->now);
        void **next = (void **)(void *)(scratch + children->next);
        uint32_t n_carried = children->n_carried;
        memcpy(now, run->in, children->n_in * sizeof(void *));
        for (int64_t at = 0; at < children->n_rows; at++) {
                TRY(run_poll(run->ctx));
                for (uint32_t i = n_carried; i < n_carried + children->n_over; i++)
                        now[i] = (const char *)run->in[i] + (size_t)at * children->step_bytes[i];
                for (uint32_t i = 0; i < n_carried; i++)
                        next[i] = now[i] == run->out[i] ? scratch + children->spares[i] : run->out[i];
                for (uint32_t i = n_carried; i < run->n_out; i++)
                        next[i] = (char *)run->out[i] + (size_t)at * children->out_bytes[i];
                TRY(run_child(&children->children[0], scratch, now, next, run->ctx));
                memcpy(now, next, n_carried * sizeof(void *));
        }
        for (uint32_t i = 0; i < n_carried; i++)
                copy_bytes(run->out[i], now[i], children->out_bytes[i]);
        return STATUS_OK;
}

static Status pack_rows(const OpCall *call, const PackContext *context, Packed *out_packed)
{
        size_t n_bytes = 0;
        _cleanup_(children_freep) Children *children = NULL;
        TRY(children_new(call, &children));
        children->n_rows = call->args[CHILD_N_ROWS].i;
        children->n_over = (uint32_t)call->args[CHILD_N_OVER].i;
        TRY(pack_child(call, CHILD_FIRST, context, children->n_carried, &children->children[0]));
        for (uint32_t i = children->n_carried; i < children->n_carried + children->n_over; i++) {
                const TensorMeta *meta = &arg_list_tensor(call, SELF, i)->meta;
                children->step_bytes[i] = (size_t)(meta->stride[0] * dtype_info[meta->dtype].bytes);
        }
        for (uint32_t i = children->n_carried; i < call->n_outs; i++)
                children->out_bytes[i] = children->children[0].results[i].n_bytes; // of one row
        TRY(take_common(call, children, &n_bytes));
        hand_over(take_ptr(children), run_rows, "scan", n_bytes, out_packed);
        return STATUS_OK;
}

// ---- the rows ----
// OP_EFFECT: they run in their places, and no pass runs, merges or drops them.
static Status no_program(const OpRun *run)
{
        return fail(STATUS_INTERNAL, "%s has no program", run->call->schema->name);
}

#define CHILD_OP(name, pack_function, more_flags)                                                            \
        {                                                                                                    \
                .schema = (name), .flags = OP_HIDDEN | OP_EFFECT | (more_flags), .run = no_program,          \
                .pack = (pack_function), .traits = TRAIT_FRESH                                               \
        }
#define CHILD_OPS(name, pack_function)                                                                       \
        {                                                                                                    \
                CHILD_OP(name, pack_function, 0), CHILD_OP(name, pack_function, OP_RANDOM)                   \
        }
static const OpDef cond_ops[] = CHILD_OPS("branch", pack_cond);
static const OpDef loop_ops[] = CHILD_OPS("loop", pack_loop);
static const OpDef rows_ops[] = CHILD_OPS("rows", pack_rows);

const OpDef *child_cond_op(bool draws)
{
        return &cond_ops[draws];
}

const OpDef *child_loop_op(bool draws)
{
        return &loop_ops[draws];
}

const OpDef *child_rows_op(bool draws)
{
        return &rows_ops[draws];
}
