// SPDX-License-Identifier: Apache-2.0
// interp.c: bind, the loop, results. Binding turns slots and offsets into pointers; the loop then
// only calls kernels. Memory is taken before the loop (the frame grows, outputs are allocated) and
// handed out after it. An eager tail, if there is one, is walked after the loop on tensors over the
// outputs, and produces the result.
#include "core/interp/interp.h"

#include <string.h>
#include <sys/mman.h>
#include "core/eval/eager.h"
#include "core/eval/state.h"

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
        free(frame->numbers);
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
        size_t n_slots =
                       (size_t)SLOT_FIRST_INPUT + program->n_inputs + program->n_outputs + program->n_states,
               n_tensors = (size_t)program->n_inputs + program->n_outputs;
        TRY(grow_bytes(&frame->arena, &frame->arena_bytes, program->figures.arena_bytes));
        TRY(grow_bytes(&frame->pool.data, &frame->pool.n_bytes,
                       atomic_load_explicit(&frame->pool.wanted, memory_order_relaxed)));
        TRY(grow_array(&frame->pointers, &frame->n_pointers, n_slots + program->n_operands, sizeof(void *)));
        TRY(grow_array(&frame->stamps, &frame->n_stamps, (size_t)program->n_code + 1, sizeof(int64_t)));
        TRY(grow_array(&frame->numbers, &frame->n_numbers,
                       program->n_inputs - program->recording->n_tensor_inputs, sizeof(NumberTensor)));
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
        if (leaves->n >= leaves->program->recording->n_tensor_inputs)
                return fail(STATUS_INTERNAL, "more input tensors than the program was made for");
        const TensorMeta *want = &leaves->program->recording->inputs[leaves->n]->tensor.meta,
                         *have = &leaf->tensor->meta;
        size_t bytes = want->rank * sizeof(int64_t);
        if (want->dtype != have->dtype || want->rank != have->rank ||
            memcmp(want->size, have->size, bytes) != 0 || memcmp(want->stride, have->stride, bytes) != 0)
                return fail(STATUS_INTERNAL, "input tensor %u is not what the program was made for",
                            leaves->n);
        leaves->frame->inputs[leaves->n++] = leaf->tensor;
        return STATUS_OK;
}

static Status bind_number(const Program *program, Frame *frame, ValueSpan inputs, uint32_t slot)
{
        const Recording *recording = program->recording;
        const TensorMeta *meta = &recording->inputs[slot]->tensor.meta;
        uint32_t k = slot - recording->n_tensor_inputs, at = recording->number_inputs[k];
        NumberTensor *number = &frame->numbers[k];
        const Value *input = at < inputs.n ? &inputs.items[at] : NULL;
        // An int where the operator takes a float is a float in the program (schema_bind.c).
        if (input == NULL ||
            (input->kind != VALUE_INT && (input->kind != VALUE_FLOAT || meta->dtype == DTYPE_I64)))
                return fail(STATUS_INTERNAL, "input %u is not the number that the program was made for", at);
        if (meta->dtype == DTYPE_I64)
                number->bits.i = input->i;
        else
                number->bits.f = input->kind == VALUE_INT ? (double)input->i : input->f;
        number->storage = (Storage){ .data = (uint8_t *)&number->bits,
                                     .n_bytes = sizeof(number->bits),
                                     .readonly = true };
        number->tensor = (Tensor){ .meta = *meta, .storage = &number->storage };
        frame->inputs[slot] = &number->tensor;
        return STATUS_OK;
}

static Status bind_inputs_of(const Program *program, Frame *frame, ValueSpan inputs)
{
        Leaves leaves = { .program = program, .frame = frame };
        for (uint32_t i = 0; i < inputs.n; i++)
                TRY(value_walk(inputs.items[i], bind_leaf, &leaves));
        if (leaves.n != program->recording->n_tensor_inputs)
                return fail(STATUS_INTERNAL, "fewer input tensors than the program was made for");
        for (uint32_t i = leaves.n; i < program->n_inputs; i++)
                TRY(bind_number(program, frame, inputs, i));
        return STATUS_OK;
}

// ---- failures that are not an instruction's ----
static Status at_call(Status status, const RecordedCall *call)
{
        return call == NULL || call->n_nodes == 0 ? status : walk_annotate(status, call->nodes[0]);
}

// The call that makes the bytes of the n-th output.
static const RecordedCall *maker_of_output(const Program *program, uint32_t output)
{
        const Recording *recording = program->recording;
        for (uint32_t i = 0; i < recording->n_values; i++) {
                const Recorded *value = recording->values[i];
                if (value->from == FROM_CALL && value->call != NULL && !recorded_is_constant(value) &&
                    program->places[recorded_buffer(value)->index].slot ==
                            SLOT_FIRST_INPUT + program->n_inputs + output)
                        return value->call;
        }
        return NULL;
}

// The call with the largest result, named in the failure when the arena does not fit the budget.
static const RecordedCall *largest_call(const Program *program)
{
        const RecordedCall *largest = NULL;
        size_t most = 0;
        for (uint32_t i = 0; i < program->n_code; i++) {
                const RecordedCall *call = program->code[i].call;
                for (uint32_t k = 0; call != NULL && k < call->call.n_outs; k++) {
                        const Recorded *value = call->outs[k];
                        size_t n_bytes = value == NULL || recorded_is_constant(value)
                                                 ? 0
                                                 : recorded_buffer(value)->n_bytes;
                        if (n_bytes > most && call->n_nodes > 0) {
                                most = n_bytes;
                                largest = call;
                        }
                }
        }
        return largest;
}

static Status make_outputs(const Program *program, Frame *frame, RunContext *ctx)
{
        for (uint32_t i = 0; i < program->n_outputs; i++) {
                Status status = storage_new(program->output_bytes[i], false, ctx->budget, &frame->outputs[i]);
                if (status != STATUS_OK)
                        return at_call(status, maker_of_output(program, i));
        }
        return STATUS_OK;
}

// `bases` of all slots are there; the operands' pointers follow them.
static void **bind_operands(const Program *program, void **bases)
{
        void **pointers =
                bases + SLOT_FIRST_INPUT + program->n_inputs + program->n_outputs + program->n_states;
        const Operand *operands = program->operands;
        for (uint32_t i = 0; i < program->n_operands; i++)
                pointers[i] = (void *)((uintptr_t)bases[operands[i].slot] + operands[i].offset);
        return pointers;
}

static Storage *state_of_slot(const Program *program, const RunContext *ctx, uint32_t n)
{
        const Buffer *buffer = program->recording->states[n];
        return state_now(ctx->state, buffer->number, buffer->origin);
}

static void **bind_pointers(const Program *program, Frame *frame, const RunContext *ctx)
{
        void **bases = frame->pointers;
        bases[SLOT_CONSTANT] = NULL;
        bases[SLOT_ARENA] = frame->arena;
        for (uint32_t i = 0; i < program->n_inputs; i++)
                bases[SLOT_FIRST_INPUT + i] = tensor_data(frame->inputs[i]);
        for (uint32_t i = 0; i < program->n_outputs; i++)
                bases[SLOT_FIRST_INPUT + program->n_inputs + i] = frame->outputs[i]->data;
        for (uint32_t i = 0; i < program->n_states; i++)
                bases[state_slot(program->recording, program->n_outputs, i)] =
                        state_of_slot(program, ctx, i)->data;
        return bind_operands(program, bases);
}

// ---- the loop ----
static inline Status run_instruction(const Instruction *instruction, void **pointers, RunContext *ctx)
{
        OpRun run = instruction->run;
        run.out = pointers + instruction->first_operand;
        run.in = (const void *const *)(run.out + run.n_out);
        run.scratch = run.out[run.n_out + run.n_in];
        run.ctx = ctx;
        if (ctx->pool != NULL)
                atomic_store_explicit(&ctx->pool->used, 0, memory_order_relaxed);
        return instruction->kernel(&run);
}

// The clock is read every few calls only; long-running kernels poll it themselves.
enum { POLL_CLOCK_EVERY = 8 };

static inline Status poll_at(uint32_t i, const RunContext *ctx)
{
        if (i % POLL_CLOCK_EVERY == 0 || atomic_load_explicit(&ctx->cancelled, memory_order_relaxed) != 0)
                return run_poll(ctx);
        return STATUS_OK;
}

static inline void show_progress(Frame *frame, uint32_t i, const Instruction *code)
{
        if (i % POLL_CLOCK_EVERY == 0 && code->call != NULL && code->call->n_nodes > 0)
                atomic_store_explicit(&frame->n_done, code->call->nodes[0]->index, memory_order_relaxed);
}

// `frame` NULL: nobody looks on. `times`: fills its stamps.
static Status run_code(const Program *program, void **pointers, RunContext *ctx, Frame *frame, bool times)
{
        int64_t *stamps = times ? frame->stamps : NULL;
        const Instruction *code = program->code;
        if (stamps != NULL)
                stamps[0] = clock_ns();
        for (uint32_t i = 0; i < program->n_code; i++) {
                Status status = poll_at(i, ctx);
                if (frame != NULL)
                        show_progress(frame, i, &code[i]);
                if (__builtin_expect(status == STATUS_OK, 1))
                        status = run_instruction(&code[i], pointers, ctx);
                if (__builtin_expect(status != STATUS_OK, 0))
                        return at_call(status, code[i].call);
                if (stamps != NULL)
                        stamps[i + 1] = clock_ns();
        }
        return STATUS_OK;
}

Status program_run_within(const Program *program, void **bases, RunContext *ctx)
{
        bases[SLOT_CONSTANT] = NULL;
        return run_code(program, bind_operands(program, bases), ctx, NULL, false);
}

// ---- results ----
typedef struct Results {
        const Program *program;
        const Frame *frame;
        const RunContext *ctx;
        EagerEmitter *eager; // of the tail; NULL: the values leave
        // by index of the value, for the tail: one object per value, as in an eager run; counted
        Tensor **made;
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
        _cleanup_(storage_unrefp) Storage *shell = NULL;
        if (results->made != NULL && results->made[value->index] != NULL) {
                *out = value_tensor_take(tensor_ref(results->made[value->index]));
                return STATUS_OK;
        }
        if (recorded_is_constant(value) && results->eager != NULL) { // other runs have it, too
                TRY(eager_shell(results->eager, storage, &shell));
                storage = shell;
        } else if (!recorded_is_constant(value)) {
                uint32_t slot = program->places[recorded_buffer(value)->index].slot;
                if (slot < SLOT_FIRST_INPUT)
                        return fail(STATUS_INTERNAL, "a result has no storage of its own");
                uint32_t first_state = state_slot(program->recording, program->n_outputs, 0);
                if (slot >= first_state) {
                        storage = state_of_slot(program, results->ctx, slot - first_state);
                } else if (slot >= SLOT_FIRST_INPUT + program->n_inputs) {
                        storage = results->frame->outputs[slot - SLOT_FIRST_INPUT - program->n_inputs];
                } else {
                        const Tensor *input = results->frame->inputs[slot - SLOT_FIRST_INPUT];
                        storage = input->storage;
                        offset += input->offset * dtype_info[input->meta.dtype].bytes /
                                  dtype_info[value->tensor.meta.dtype].bytes;
                }
        }
        Tensor *tensor;
        TRY(tensor_new_view(storage, &value->tensor.meta, offset, &tensor));
        if (results->made != NULL)
                results->made[value->index] = tensor_ref(tensor);
        *out = value_tensor_take(tensor);
        return STATUS_OK;
}

// ---- the eager tail ----
static Status walk_tail(const Program *program, const ProgramRun *run, EagerEmitter *eager, Value taken,
                        Value *out_value, Value *out_fetched)
{
        const EagerTail *tail = program->recording->tail;
        _cleanup_(freep) WalkKnown *known = new_array(tail->n_known, sizeof(*known));
        if (known == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < tail->n_known; i++)
                known[i] = (WalkKnown){ .node = tail->known[i], .value = taken.seq->items[i] };
        WalkOptions options = { .inputs = run->inputs,
                                .fetch = program->fetch,
                                .n_fetch = program->n_fetch,
                                .trace = run->trace,
                                .skip = tail->skip,
                                .known = known,
                                .n_known = tail->n_known };
        return walk_graph(eager_emitter(eager), program->recording->graph, &options, out_value, out_fetched);
}

static Status run_rest(const Program *program, const Frame *frame, const ProgramRun *run, RunContext *ctx,
                       Value *out_value, Value *out_fetched)
{
        const Recording *recording = program->recording;
        _cleanup_(eager_closep) EagerEmitter *eager = NULL;
        _cleanup_(value_clear) Value taken = value_none();
        _cleanup_(freep) Tensor **made = new_array(recording->n_values, sizeof(*made));
        if (made == NULL)
                return fail_memory();
        TRY(eager_open(recording->graph, ctx, &eager));
        Results results = { .program = program, .frame = frame, .eager = eager, .made = made };
        Status status = value_map(recording->result, make_result, &results, &taken);
        for (uint32_t i = 0; i < recording->n_values; i++)
                tensor_unref(made[i]);
        return status == STATUS_OK ? walk_tail(program, run, eager, taken, out_value, out_fetched) : status;
}

static Status make_results(const Program *program, const Frame *frame, const RunContext *ctx,
                           Value *out_value, Value *out_fetched)
{
        Results results = { .program = program, .frame = frame, .ctx = ctx };
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

void program_trace(const Program *program, const int64_t *stamps, WalkTrace *trace)
{
        int64_t now = stamps[0];
        for (uint32_t i = 0; i < program->n_rows && trace->n_rows < trace->capacity; i++) {
                const ProgramRow *row = &program->rows[i];
                if (row->instruction == ROW_OF_TAIL)
                        continue;
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
                        timing->start_ns = stamps[row->instruction];
                        now = timing->end_ns = stamps[row->instruction + 1];
                }
        }
}

// ---- one run ----
static Status run_bound(const Program *program, Frame *frame, const ProgramRun *run, RunContext *ctx,
                        Value *out_value, Value *out_fetched)
{
        TRY(bind_inputs_of(program, frame, run->inputs));
        TRY(make_outputs(program, frame, ctx));
        void **pointers = bind_pointers(program, frame, ctx);
        ctx->pool = &frame->pool;
        atomic_store_explicit(&frame->n_done, 0, memory_order_relaxed);
        atomic_store_explicit(&frame->n_nodes, program->recording->graph->n_nodes, memory_order_relaxed);
        atomic_store_explicit(&frame->running, ctx, memory_order_release);
        Status status = run_code(program, pointers, ctx, frame, run->trace != NULL);
        atomic_store_explicit(&frame->running, NULL, memory_order_relaxed);
        ctx->pool = NULL;
        TRY(status);
        if (run->trace != NULL)
                program_trace(program, frame->stamps, run->trace);
        if (program->recording->tail != NULL)
                return run_rest(program, frame, run, ctx, out_value, out_fetched);
        return make_results(program, frame, ctx, out_value, out_fetched);
}

Status program_run(const Program *program, Frame *frame, const ProgramRun *run, RunContext *ctx,
                   Value *out_value, Value *out_fetched)
{
        size_t bytes = program->figures.arena_bytes;
        if (!budget_take(ctx->budget, bytes))
                return at_call(fail(STATUS_TOO_LARGE,
                                    "the run needs %zu bytes of working memory, which is over its limit; "
                                    "send smaller inputs or start the "
                                    "server with a larger --max-run-memory",
                                    bytes),
                               largest_call(program));
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
