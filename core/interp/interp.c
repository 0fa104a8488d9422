// SPDX-License-Identifier: Apache-2.0
// interp.c: bind, the loop, results. Binding turns slots and offsets into pointers; after it the loop only calls. Memory is taken before
// the loop (the frame grows, outputs are allocated) and handed out after it.
#include "core/interp/interp.h"

#include <string.h>
#include <sys/mman.h>

// ---- frames ----
void frame_init(Frame *frame)
{
        memset(frame, 0, sizeof(*frame));
}

void frame_deinit(Frame *frame)
{
        free(frame->arena);
        free(frame->pointers);
        free(frame->stamps);
        free(frame->pool.data);
        free(frame->inputs);
        frame_init(frame);
}

void frame_trim(Frame *frame, size_t most_bytes)
{
        if (frame->arena_bytes + frame->pool.n_bytes > most_bytes)
                frame_deinit(frame);
}

enum { HUGE_PAGE = 2 << 20 };

static Status grow_bytes(uint8_t **bytes, size_t *n_bytes, size_t wanted)
{
        if (wanted <= *n_bytes)
                return STATUS_OK;
        size_t align = wanted >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : STORAGE_ALIGN;
        if (wanted > SIZE_MAX - align)
                return fail_memory();
        uint8_t *grown = aligned_alloc(align, (wanted + align - 1) / align * align);
        if (grown == NULL)
                return fail_memory();
        if (align == HUGE_PAGE) // fewer page faults and TLB misses; no harm where the kernel refuses
                (void)madvise(grown, wanted / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
        free(*bytes);
        *bytes = grown;
        *n_bytes = wanted;
        return STATUS_OK;
}

static Status grow_array(void *array, size_t *n, size_t wanted, size_t item_bytes)
{
        if (wanted <= *n)
                return STATUS_OK;
        void *grown = new_array(wanted, item_bytes);
        if (grown == NULL)
                return fail_memory();
        free(*(void **)array);
        *(void **)array = grown;
        *n = wanted;
        return STATUS_OK;
}

static Status frame_grow(Frame *frame, const Program *program)
{
        size_t n_slots = (size_t)SLOT_FIRST_INPUT + program->n_inputs + program->n_outputs,
               n_tensors = (size_t)program->n_inputs + program->n_outputs;
        TRY(grow_bytes(&frame->arena, &frame->arena_bytes, program->figures.arena_bytes));
        TRY(grow_bytes(&frame->pool.data, &frame->pool.n_bytes, atomic_load_explicit(&frame->pool.wanted, memory_order_relaxed)));
        TRY(grow_array(&frame->pointers, &frame->n_pointers, n_slots + program->n_operands, sizeof(void *)));
        TRY(grow_array(&frame->stamps, &frame->n_stamps, (size_t)program->n_code + 1, sizeof(int64_t)));
        TRY(grow_array(&frame->inputs, &frame->n_tensors, n_tensors, sizeof(void *)));
        frame->outputs = (Storage **)(frame->inputs + program->n_inputs);
        if (n_tensors > 0)
                memset(frame->inputs, 0, n_tensors * sizeof(void *));
        return STATUS_OK;
}

// ---- binding ----
typedef struct Leaves {
        const Program *program;
        Frame *frame;
        uint32_t n;
} Leaves;

static Status bind_leaf(void *context, const Value *leaf)
{
        Leaves *leaves = context;
        if (leaf->kind != VALUE_TENSOR)
                return STATUS_OK;
        if (leaves->n >= leaves->program->n_inputs)
                return fail(STATUS_INTERNAL, "more input tensors than the program was made for");
        const TensorMeta *want = &leaves->program->recording->inputs[leaves->n]->tensor.meta, *have = &leaf->tensor->meta;
        size_t bytes = want->rank * sizeof(int64_t);
        if (want->dtype != have->dtype || want->rank != have->rank || memcmp(want->size, have->size, bytes) != 0 ||
            memcmp(want->stride, have->stride, bytes) != 0)
                return fail(STATUS_INTERNAL, "input tensor %u is not what the program was made for", leaves->n);
        leaves->frame->inputs[leaves->n++] = leaf->tensor;
        return STATUS_OK;
}

static Status bind_inputs_of(const Program *program, Frame *frame, ValueSpan inputs)
{
        Leaves leaves = { .program = program, .frame = frame };
        for (uint32_t i = 0; i < inputs.n; i++)
                TRY(value_walk(inputs.items[i], bind_leaf, &leaves));
        return leaves.n == program->n_inputs ? STATUS_OK : fail(STATUS_INTERNAL, "fewer input tensors than the program was made for");
}

static Status make_outputs(const Program *program, Frame *frame, RunContext *ctx)
{
        for (uint32_t i = 0; i < program->n_outputs; i++)
                TRY(storage_new(program->output_bytes[i], false, ctx->budget, &frame->outputs[i]));
        return STATUS_OK;
}

static void **bind_pointers(const Program *program, Frame *frame)
{
        void **bases = frame->pointers;
        uint32_t n_slots = SLOT_FIRST_INPUT + program->n_inputs + program->n_outputs;
        bases[SLOT_CONSTANT] = NULL;
        bases[SLOT_ARENA] = frame->arena;
        for (uint32_t i = 0; i < program->n_inputs; i++)
                bases[SLOT_FIRST_INPUT + i] = tensor_data(frame->inputs[i]);
        for (uint32_t i = 0; i < program->n_outputs; i++)
                bases[SLOT_FIRST_INPUT + program->n_inputs + i] = frame->outputs[i]->data;
        void **pointers = bases + n_slots;
        const Operand *operands = program->operands;
        for (uint32_t i = 0; i < program->n_operands; i++)
                pointers[i] = (void *)((uintptr_t)bases[operands[i].slot] + operands[i].offset);
        return pointers;
}

// ---- the loop ----
static inline Status run_instruction(const Instruction *instruction, void **pointers, Frame *frame, RunContext *ctx)
{
        OpRun run = instruction->run;
        run.out = pointers + instruction->first_operand;
        run.in = (const void *const *)(run.out + run.n_out);
        run.scratch = run.out[run.n_out + run.n_in];
        run.ctx = ctx;
        atomic_store_explicit(&frame->pool.used, 0, memory_order_relaxed);
        return instruction->kernel(&run);
}

// The clock is asked now and then: instructions that take long poll it themselves.
enum { POLL_CLOCK_EVERY = 8 };

static inline Status poll_at(uint32_t i, const RunContext *ctx)
{
        if (i % POLL_CLOCK_EVERY == 0 || atomic_load_explicit(&ctx->cancelled, memory_order_relaxed) != 0)
                return run_poll(ctx);
        return STATUS_OK;
}

static Status run_code(const Program *program, Frame *frame, void **pointers, RunContext *ctx, bool traced)
{
        const Instruction *code = program->code;
        int64_t *stamps = frame->stamps;
        stamps[0] = traced ? clock_ns() : 0;
        for (uint32_t i = 0; i < program->n_code; i++) {
                Status status = poll_at(i, ctx);
                if (__builtin_expect(status == STATUS_OK, 1))
                        status = run_instruction(&code[i], pointers, frame, ctx);
                if (__builtin_expect(status != STATUS_OK, 0))
                        return code[i].call == NULL || code[i].call->n_nodes == 0 ? status : walk_annotate(status, code[i].call->nodes[0]);
                if (traced)
                        stamps[i + 1] = clock_ns();
        }
        return STATUS_OK;
}

// ---- results ----
typedef struct Results {
        const Program *program;
        const Frame *frame;
} Results;

static Status make_result(void *context, const Value *leaf, Value *out)
{
        const Results *results = context;
        const Program *program = results->program;
        if (leaf->kind != VALUE_TENSOR) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        const Recorded *value = recorded_of(leaf->tensor);
        Storage *storage = value->tensor.storage;
        int64_t offset = value->tensor.offset;
        if (!recorded_is_constant(value)) {
                uint32_t slot = program->places[recorded_buffer(value)->index].slot;
                if (slot < SLOT_FIRST_INPUT)
                        return fail(STATUS_INTERNAL, "a result has no storage of its own");
                if (slot >= SLOT_FIRST_INPUT + program->n_inputs) {
                        storage = results->frame->outputs[slot - SLOT_FIRST_INPUT - program->n_inputs];
                } else {
                        const Tensor *input = results->frame->inputs[slot - SLOT_FIRST_INPUT];
                        storage = input->storage;
                        offset += input->offset * dtype_info[input->meta.dtype].bytes / dtype_info[value->tensor.meta.dtype].bytes;
                }
        }
        Tensor *tensor;
        TRY(tensor_new_view(storage, &value->tensor.meta, offset, &tensor));
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

static Status make_results(const Program *program, const Frame *frame, Value *out_value, Value *out_fetched)
{
        Results results = { .program = program, .frame = frame };
        const Recording *recording = program->recording;
        _cleanup_(value_clear) Value value = value_none();
        TRY(value_map(recording->result, make_result, &results, &value));
        for (uint32_t i = 0; i < recording->n_fetched; i++) {
                Status status = value_map(recording->fetched[i], make_result, &results, &out_fetched[i]);
                while (status != STATUS_OK && i > 0)
                        value_clear(&out_fetched[--i]);
                TRY(status);
        }
        *out_value = value;
        value = value_none();
        return STATUS_OK;
}

static void trace_rows(const Program *program, const Frame *frame, WalkTrace *trace)
{
        int64_t now = frame->stamps[0];
        for (uint32_t i = 0; i < program->n_rows && trace->n_rows < trace->capacity; i++) {
                const ProgramRow *row = &program->rows[i];
                NodeTiming *timing = &trace->rows[trace->n_rows++];
                *timing = (NodeTiming){
                        .node = row->n_nodes > 0 ? row->nodes[0] : NULL,
                        .nodes = row->nodes,
                        .n_nodes = row->n_nodes,
                        .kernel = row->kernel,
                        .why = row->why,
                        .start_ns = now,
                        .end_ns = now,
                        .has_tensor = row->meta != NULL,
                        .bytes = row->bytes,
                        .flops = row->flops,
                };
                if (row->meta != NULL)
                        timing->meta = *row->meta;
                if (row->instruction >= 0) {
                        timing->start_ns = frame->stamps[row->instruction];
                        now = timing->end_ns = frame->stamps[row->instruction + 1];
                }
        }
}

// ---- one run ----
static Status run_bound(const Program *program, Frame *frame, const ProgramRun *run, RunContext *ctx, Value *out_value, Value *out_fetched)
{
        TRY(bind_inputs_of(program, frame, run->inputs));
        TRY(make_outputs(program, frame, ctx));
        void **pointers = bind_pointers(program, frame);
        ctx->pool = &frame->pool;
        Status status = run_code(program, frame, pointers, ctx, run->trace != NULL);
        ctx->pool = NULL;
        TRY(status);
        if (run->trace != NULL)
                trace_rows(program, frame, run->trace);
        return make_results(program, frame, out_value, out_fetched);
}

Status program_run(const Program *program, Frame *frame, const ProgramRun *run, RunContext *ctx, Value *out_value, Value *out_fetched)
{
        size_t bytes = program->figures.arena_bytes;
        if (!budget_take(ctx->budget, bytes))
                return fail(STATUS_TOO_LARGE,
                            "the run needs %zu bytes of working memory, which is over its limit; send smaller inputs or start the server "
                            "with a larger "
                            "--max-run-memory",
                            bytes);
        Status status = frame_grow(frame, program);
        if (status == STATUS_OK) {
                status = run_bound(program, frame, run, ctx, out_value, out_fetched);
                for (uint32_t i = 0; i < program->n_outputs; i++)
                        storage_unref(frame->outputs[i]);
        }
        if (run->trace != NULL && ctx->budget != NULL)
                run->trace->live_bytes_peak = atomic_load_explicit(&ctx->budget->peak, memory_order_relaxed);
        budget_give(ctx->budget, bytes);
        return status;
}
