// SPDX-License-Identifier: Apache-2.0
// plan.c: greedy by size (Pisarchyk and Lee, arXiv 2001.03288). The life of a buffer is the union
// of the lives of all its views, in steps: 0 before the first call, i + 1 at call i, then the end.
// An elementwise call writes its result over an input that dies with the call. The inputs of a cat
// are made inside its result, if total bytes do not grow. Then blocks are placed, largest first,
// each in the lowest gap among the blocks that live at the same time.
#include "core/compile/plan.h"

#include <string.h>
#include "core/ops/arguments.h"
#include "core/ops/fused.h"

typedef struct Block {
        uint32_t first, last; // steps, inclusive
        size_t n_bytes, offset;
        bool planned; // has bytes in the arena
        bool used;
        bool is_output;
        uint32_t merged_into; // index + 1 of the block that this one is part of; 0: none
        size_t inside;        // byte offset in that block
} Block;

typedef struct Planner {
        const Recording *recording;
        const RunContext *poll;
        Block *blocks; // buffers, then scratch of calls
        uint32_t n_blocks;
        uint32_t step;
} Planner;

// The block that owns the buffer's bytes. `out_inside` (may be NULL): the buffer's offset there.
static Block *root_of(const Planner *planner, const Buffer *buffer, size_t *out_inside)
{
        Block *block = &planner->blocks[buffer->index];
        size_t inside = 0;
        while (block->merged_into != 0) {
                inside += block->inside;
                block = &planner->blocks[block->merged_into - 1];
        }
        if (out_inside != NULL)
                *out_inside = inside;
        return block;
}

// ---- lives ----
static Status touch(void *context, Recorded *value)
{
        Planner *planner = context;
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        Buffer *buffer = recorded_buffer(value);
        Block *block = &planner->blocks[buffer->index];
        if (!block->used) {
                block->used = true;
                // Buffers that the run copies first live from the start.
                block->first = buffer->kind == BUFFER_RUN ? planner->step : 0;
        }
        block->last = planner->step;
        return STATUS_OK;
}

static Status find_lives(Planner *planner)
{
        const Recording *recording = planner->recording;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                planner->step = i + 1;
                if (!call->computes)
                        continue;
                TRY(recorded_visit_inputs(call, touch, planner));
                for (uint32_t k = 0; k < call->call.n_outs; k++)
                        TRY(touch(planner, call->outs[k]));
        }
        planner->step = recording->n_calls + 1;
        TRY(recording_visit_results(recording, touch, planner));
        for (uint32_t i = 0; i < recording->n_buffers; i++) {
                Block *block = &planner->blocks[i];
                const Buffer *buffer = recording->buffers[i];
                block->n_bytes = storage_padded(buffer->n_bytes);
                block->is_output = block->used && block->last == planner->step;
                block->planned = block->used && (buffer->kind == BUFFER_RUN || buffer->written);
        }
        return STATUS_OK;
}

// ---- in place ----
typedef struct Reuse {
        const Planner *planner;
        const Recorded *out;
        Block *found;
        bool refused;
} Reuse;

static Status look_for_reuse(void *context, Recorded *value)
{
        Reuse *reuse = context;
        if (value == NULL || recorded_is_constant(value))
                return STATUS_OK;
        const Planner *planner = reuse->planner;
        Block *block = root_of(planner, recorded_buffer(value), NULL);
        const Tensor *in = &value->tensor, *out = &reuse->out->tensor;
        bool fits = in->offset == out->offset && in->meta.dtype == out->meta.dtype &&
                    meta_same_places(&in->meta, &out->meta);
        if (reuse->found == block)
                reuse->refused |= !fits; // another view of the same bytes, in another order
        if (!fits || reuse->found != NULL || !block->planned || block->last != planner->step ||
            recorded_buffer(value)->n_bytes != recorded_buffer(reuse->out)->n_bytes)
                return STATUS_OK;
        reuse->found = block;
        return STATUS_OK;
}

static Status merge_in_place(Planner *planner)
{
        const Recording *recording = planner->recording;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                planner->step = i + 1;
                if (!call->computes || (call->call.op->flags & OP_ELEMENTWISE) == 0 || call->call.inplace ||
                    call->call.n_outs != 1 || call->outs[0] == NULL || call->outs[0]->call != call ||
                    recorded_is_constant(call->outs[0]) || fused_reduces(&call->call))
                        continue;
                Reuse reuse = { .planner = planner, .out = call->outs[0] };
                Block *out = &planner->blocks[recorded_buffer(call->outs[0])->index];
                if (!out->planned || out->n_bytes == 0)
                        continue;
                TRY(recorded_visit_inputs(call, look_for_reuse, &reuse));
                // second visit: compares the arguments before reuse.found with it
                if (reuse.found != NULL)
                        TRY(recorded_visit_inputs(call, look_for_reuse, &reuse));
                if (reuse.found == NULL || reuse.refused)
                        continue;
                out->merged_into = (uint32_t)(reuse.found - planner->blocks) + 1;
                reuse.found->last = MAX(reuse.found->last, out->last);
                reuse.found->is_output |= out->is_output;
        }
        return STATUS_OK;
}

// ---- cat: inputs made inside the result ----
typedef struct Joining {
        Planner *planner;
        const Recorded *out;
        Block *root;   // of the output
        size_t inside; // offset of the output in root
        int dim;
        int64_t start; // along dim
} Joining;

// The output's slice for `value` is one dense run of bytes, and the value is all that its buffer
// holds.
static bool is_whole_slice(const Joining *joining, const Recorded *value, size_t n_bytes)
{
        const TensorMeta *slice = &value->tensor.meta, *out = &joining->out->tensor.meta;
        for (int d = 0; d < joining->dim; d++) {
                if (slice->size[d] != 1)
                        return false;
        }
        return slice->dtype == out->dtype && meta_is_contiguous(slice) && meta_is_contiguous(out) &&
               value->tensor.offset == 0 && recorded_buffer(value)->n_bytes == n_bytes;
}

static Status join(void *context, Recorded *value)
{
        Joining *joining = context;
        const Planner *planner = joining->planner;
        if (value == NULL || (value->tensor.meta.rank == 1 && value->tensor.meta.size[0] == 0))
                return STATUS_OK;
        const TensorMeta *out = &joining->out->tensor.meta;
        size_t bytes = dtype_info[out->dtype].bytes,
               n_bytes = (size_t)meta_numel(&value->tensor.meta) * bytes;
        size_t inside = joining->inside + (size_t)(joining->start * out->stride[joining->dim]) * bytes;
        joining->start += value->tensor.meta.size[joining->dim];
        if (recorded_is_constant(value) || recorded_buffer(value)->kind != BUFFER_RUN ||
            inside % STORAGE_ALIGN != 0 || !is_whole_slice(joining, value, n_bytes))
                return STATUS_OK;
        Block *root = root_of(planner, recorded_buffer(value), NULL);
        // A value that stands twice in the list was merged the first time.
        if (!root->planned || root->is_output || root == joining->root || root->last != planner->step ||
            root->n_bytes != storage_padded(n_bytes))
                return STATUS_OK;
        root->merged_into = (uint32_t)(joining->root - planner->blocks) + 1;
        root->inside = inside;
        joining->root->first = MIN(joining->root->first, root->first);
        return STATUS_OK;
}

static Status join_in_place(Planner *planner)
{
        const Recording *recording = planner->recording;
        for (uint32_t i = 0; i < recording->n_calls; i++) {
                const RecordedCall *call = recording->calls[i];
                planner->step = i + 1;
                if (!call->computes || (call->call.op->flags & OP_JOINS) == 0 || call->call.n_outs != 1 ||
                    call->outs[0] == NULL || call->outs[0]->call != call ||
                    recorded_is_constant(call->outs[0]) || call->outs[0]->tensor.offset != 0 ||
                    recorded_buffer(call->outs[0])->kind != BUFFER_RUN)
                        continue;
                Joining joining = { .planner = planner, .out = call->outs[0] };
                joining.root = root_of(planner, recorded_buffer(call->outs[0]), &joining.inside);
                if (!joining.root->planned ||
                    arg_dim(&call->call, CAT_DIM, joining.out->tensor.meta.rank, &joining.dim) != STATUS_OK)
                        continue;
                TRY(recorded_visit_inputs(call, join, &joining));
        }
        return STATUS_OK;
}

// ---- offsets ----
static int by_size(const void *a, const void *b)
{
        const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
        if (x->n_bytes != y->n_bytes)
                return x->n_bytes < y->n_bytes ? 1 : -1;
        return x->first != y->first ? (x->first < y->first ? -1 : 1) : x < y ? -1 : 1;
}

// `placed` is sorted by offset.
static size_t lowest_gap(Block *const *placed, uint32_t n, const Block *block)
{
        size_t at = 0;
        for (uint32_t i = 0; i < n; i++) {
                if (placed[i]->last < block->first || placed[i]->first > block->last)
                        continue;
                if (placed[i]->offset >= at && placed[i]->offset - at >= block->n_bytes)
                        break;
                at = MAX(at, placed[i]->offset + placed[i]->n_bytes);
        }
        return at;
}

static Status place_blocks(Planner *planner, Arena *arena, PlanFigures *figures)
{
        Block **order = arena_array(arena, 2 * (size_t)planner->n_blocks, sizeof(*order));
        if (order == NULL)
                return fail_memory();
        Block **placed = order + planner->n_blocks;
        uint32_t n = 0, n_placed = 0;
        for (uint32_t i = 0; i < planner->n_blocks; i++) {
                Block *block = &planner->blocks[i];
                if (block->planned && block->merged_into == 0 && !block->is_output && block->n_bytes > 0)
                        order[n++] = block;
        }
        qsort(order, n, sizeof(*order), by_size);
        for (; n_placed < n; n_placed++) {
                if (n_placed % 64 == 0)
                        TRY(run_poll(planner->poll));
                Block *block = order[n_placed];
                block->offset = lowest_gap(placed, n_placed, block);
                uint32_t at = n_placed;
                while (at > 0 && placed[at - 1]->offset > block->offset)
                        at--;
                memmove(placed + at + 1, placed + at, (n_placed - at) * sizeof(*placed));
                placed[at] = block;
                figures->arena_bytes = MAX(figures->arena_bytes, block->offset + block->n_bytes);
        }
        return STATUS_OK;
}

// The most bytes alive at one step: a lower bound for any plan.
static Status find_lower_bound(const Planner *planner, Arena *arena, PlanFigures *figures)
{
        uint32_t n_steps = planner->recording->n_calls + 3;
        int64_t *change = arena_array(arena, n_steps, sizeof(*change)), alive = 0, most = 0;
        if (change == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < planner->n_blocks; i++) {
                const Block *block = &planner->blocks[i];
                if (!block->planned || block->is_output)
                        continue;
                figures->naive_bytes += block->n_bytes;
                if (block->merged_into != 0)
                        continue;
                change[block->first] += (int64_t)block->n_bytes;
                change[block->last + 1] -= (int64_t)block->n_bytes;
        }
        for (uint32_t i = 0; i < n_steps; i++) {
                alive += change[i];
                most = MAX(most, alive);
        }
        figures->lower_bound_bytes = (size_t)most;
        return STATUS_OK;
}

// ---- the plan ----
static Status give_places(Planner *planner, Arena *arena, MemoryPlan *plan)
{
        const Recording *recording = planner->recording;
        uint32_t n = recording->n_buffers;
        plan->places = arena_array(arena, n, sizeof(*plan->places));
        plan->copied = arena_array(arena, n, sizeof(*plan->copied));
        plan->output_bytes = arena_array(arena, n, sizeof(*plan->output_bytes));
        if (plan->places == NULL || plan->copied == NULL || plan->output_bytes == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < n; i++) { // roots before the blocks merged into them
                const Buffer *buffer = recording->buffers[i];
                const Block *block = &planner->blocks[i];
                plan->places[i] =
                        (Place){ .slot = SLOT_ARENA, .offset = block->offset, .n_bytes = buffer->n_bytes };
                plan->copied[i] = block->planned && buffer->kind != BUFFER_RUN;
                if (!block->planned && buffer->kind == BUFFER_INPUT)
                        plan->places[i] = (Place){ .slot = SLOT_FIRST_INPUT + buffer->input,
                                                   .n_bytes = buffer->n_bytes };
                if (!block->planned || block->merged_into != 0 || !block->is_output)
                        continue;
                plan->places[i] = (Place){ .slot = SLOT_FIRST_INPUT + recording->n_inputs + plan->n_outputs,
                                           .n_bytes = buffer->n_bytes };
                plan->output_bytes[plan->n_outputs++] = buffer->n_bytes;
                plan->figures.output_bytes += buffer->n_bytes;
        }
        for (uint32_t k = 0; k < recording->n_states; k++) {
                const Buffer *buffer = recording->states[k];
                if (!planner->blocks[buffer->index].planned)
                        plan->places[buffer->index] =
                                (Place){ .slot = state_slot(recording, plan->n_outputs, k),
                                         .n_bytes = buffer->n_bytes };
        }
        for (uint32_t i = 0; i < n; i++) {
                size_t inside;
                if (planner->blocks[i].merged_into == 0)
                        continue;
                plan->places[i] =
                        plan->places[root_of(planner, recording->buffers[i], &inside) - planner->blocks];
                plan->places[i].offset += inside;
                plan->places[i].n_bytes = recording->buffers[i]->n_bytes;
        }
        return STATUS_OK;
}

static void add_scratch(Planner *planner, const size_t *scratch_bytes)
{
        uint32_t n = planner->recording->n_buffers;
        for (uint32_t i = 0; i < planner->recording->n_calls; i++) {
                if (scratch_bytes[i] > 0)
                        planner->blocks[n + i] = (Block){ .first = i + 1,
                                                          .last = i + 1,
                                                          .n_bytes = storage_padded(scratch_bytes[i]),
                                                          .planned = true,
                                                          .used = true };
        }
}

// Places everything. If merging cat inputs costs more bytes than copying them, places everything
// again without it.
static Status place(Planner *planner, Arena *work, PlanFigures *out_figures)
{
        size_t n = planner->n_blocks;
        Block *plain = arena_array(work, n, sizeof(Block)), *joined = planner->blocks;
        PlanFigures figures = { 0 }, plain_figures = { 0 };
        if (plain == NULL)
                return fail_memory();
        memcpy(plain, planner->blocks, n * sizeof(Block));
        TRY(join_in_place(planner));
        bool same = memcmp(plain, joined, n * sizeof(Block)) == 0;
        TRY(place_blocks(planner, work, &figures));
        if (!same) {
                planner->blocks = plain;
                TRY(place_blocks(planner, work, &plain_figures));
                if (figures.arena_bytes <= plain_figures.arena_bytes)
                        planner->blocks = joined;
                else
                        figures = plain_figures;
        }
        TRY(find_lower_bound(planner, work, &figures));
        *out_figures = figures;
        return STATUS_OK;
}

Status plan_memory(const Recording *recording, const size_t *scratch_bytes, const RunContext *poll,
                   Arena *arena, MemoryPlan *out_plan)
{
        uint32_t n = recording->n_buffers, n_calls = recording->n_calls;
        Planner planner = { .recording = recording, .poll = poll, .n_blocks = n + n_calls };
        Arena work;
        arena_init(&work, 0);
        planner.blocks = arena_array(&work, planner.n_blocks, sizeof(Block));
        MemoryPlan plan = { .scratch_offsets = arena_array(arena, n_calls, sizeof(size_t)) };
        Status status =
                planner.blocks == NULL || plan.scratch_offsets == NULL ? fail_memory() : find_lives(&planner);
        if (status == STATUS_OK)
                status = merge_in_place(&planner);
        if (status == STATUS_OK) {
                add_scratch(&planner, scratch_bytes);
                status = place(&planner, &work, &plan.figures);
        }
        if (status == STATUS_OK)
                status = give_places(&planner, arena, &plan);
        for (uint32_t i = 0; i < n_calls && status == STATUS_OK; i++)
                plan.scratch_offsets[i] = planner.blocks[n + i].offset;
        arena_deinit(&work);
        TRY(status);
        *out_plan = plan;
        return STATUS_OK;
}
