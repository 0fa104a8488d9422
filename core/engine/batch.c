// SPDX-License-Identifier: Apache-2.0
// batch.c: runs of one program as one run. Which size to use is a matter of measured times: those
// of the program for so many runs against those of its runs one by one. What a size costs is first
// measured by the batches that are compared with runs one by one; their replies are those of the
// single runs.
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/batch_private.h"
#include "core/kernels/copy.h"

enum {
        // A batch takes at most this share of its runs' own times. The first of them waits for all
        // the others, so it has to save a good part.
        PAYS_PERCENT = 75,
        TRY_AGAIN_AFTER = 256, // times that a size did not pay: times change
};
// Members' cancels are seen when the batch ends, so it must not last.
static const int64_t LONGEST_NS = 250000000;

// ---- what is known ----
Batches *batches_free(Batches *batches)
{
        for (uint32_t k = 0; batches != NULL && k <= BATCH_SIZES; k++)
                sample_dims_deinit(&batches->sizes[k].dims);
        free(batches);
        return NULL;
}

Batches *batches_of(CachedProgram *cached)
{
        Batches *batches = atomic_load(&cached->batches), *fresh;
        if (batches != NULL || (fresh = calloc(1, sizeof(*fresh))) == NULL)
                return batches;
        if (atomic_compare_exchange_strong(&cached->batches, &batches, fresh))
                return fresh;
        free(fresh);
        return batches;
}

int64_t batch_sent_bytes(const RunTask *task)
{
        int64_t bytes = 0;
        for (uint32_t i = 0; i < task->n_inputs; i++)
                if (task->inputs[i].kind == VALUE_TENSOR) {
                        const TensorMeta *meta = &task->inputs[i].tensor->meta;
                        bytes += meta_numel(meta) * dtype_info[meta->dtype].bytes;
                }
        return bytes;
}

// Bit k: batches of 2^k runs may be used.
static uint32_t sizes_of(const RunTask *task)
{
        BatchPolicy policy = { .max_size = 0 };
        if (task->version != NULL)
                policy = batch_policy(task->version);
        return batch_policy_sizes(&policy);
}

static uint32_t log2_up(uint32_t n)
{
        uint32_t k = 0;
        while ((1u << k) < n)
                k++;
        return k;
}

static uint32_t largest_of(uint32_t sizes)
{
        uint32_t k = BATCH_SIZES;
        while (k > 0 && (sizes >> k & 1) == 0)
                k--;
        return k;
}

// The smallest of the sizes that holds so many runs; else the largest.
static uint32_t size_for(uint32_t sizes, uint32_t n)
{
        for (uint32_t k = log2_up(n); k <= BATCH_SIZES; k++)
                if ((sizes >> k & 1) != 0)
                        return k;
        return largest_of(sizes);
}

uint32_t batch_most(const RunTask *task)
{
        const PlannedRun *plan = &task->plan;
        uint32_t sizes = sizes_of(task);
        if (sizes == 0 || plan->program == NULL || task->authored != NULL || task->n_kept > 0 ||
            task->keeps_state || task->n_mutated > 0 || task->n_watched > 0 || task->ctx.halt != NULL)
                return 1;
        CachedProgram *cached = plan->program;
        const Batches *batches = atomic_load(&cached->batches);
        if (cached->program->recording->tail != NULL ||
            atomic_load_explicit(&cached->run_ns, memory_order_relaxed) > LONGEST_NS / 2)
                return 1;
        if (batches != NULL && atomic_load(&batches->why_state) != 0)
                return 1;
        // Runs of much data gain nothing by going together, and would hold it all at once.
        int64_t fit = MAX(BATCH_BYTES / MAX(batch_sent_bytes(task), (int64_t)1), (int64_t)1);
        return (uint32_t)MIN(fit, (int64_t)1 << largest_of(sizes));
}

// ---- choosing ----
// Hands out a build of size k unless somebody has it. `again`: it is proved, and its program has
// left the registry.
static void want_build(Engine *engine, CachedProgram *cached, uint32_t k, bool again, EngineWork **out_work)
{
        BatchSize *size = &atomic_load(&cached->batches)->sizes[k];
        if (*out_work != NULL || atomic_load(&size->state) != (again ? BATCH_PROVED : BATCH_NEW) ||
            atomic_exchange(&size->building, true))
                return;
        if (batch_build_new(engine, cached, k, out_work) != STATUS_OK)
                atomic_store(&size->building, false);
}

// `alone_ns`: of its runs one by one; negative: not known.
static bool pays(BatchSize *size, int64_t alone_ns)
{
        int64_t ns = atomic_load_explicit(&size->ns, memory_order_relaxed);
        if (atomic_load_explicit(&size->n_checked, memory_order_relaxed) < CHECKED_BATCHES || alone_ns < 0)
                return true; // measured by then
        if (ns <= LONGEST_NS && ns * 100 <= alone_ns * PAYS_PERCENT)
                return true;
        return atomic_fetch_add_explicit(&size->n_declined, 1, memory_order_relaxed) % TRY_AGAIN_AFTER ==
               TRY_AGAIN_AFTER - 1;
}

// Runs that may be one: tasks, and how many places each takes.
typedef struct Joined {
        RunTask *const *tasks;
        const int64_t *rows;
        uint32_t n;
} Joined;

// How many of the first ones go into so many places, and what they take alone.
static uint32_t fitting(const Joined *joined, uint32_t places, int64_t *out_alone_ns)
{
        int64_t left = places, bytes = BATCH_BYTES, ns = 0;
        uint32_t n = 0;
        for (; n < joined->n; n++) {
                CachedProgram *own = joined->tasks[n]->plan.program;
                int64_t one_ns = atomic_load_explicit(&own->run_ns, memory_order_relaxed);
                left -= joined->rows[n];
                bytes -= batch_sent_bytes(joined->tasks[n]);
                if (left < 0 || (bytes < 0 && n > 0))
                        break;
                ns = ns < 0 || one_ns < 0 ? -1 : ns + one_ns;
        }
        *out_alone_ns = ns;
        return n;
}

static int64_t all_rows(const Joined *joined)
{
        int64_t rows = 0;
        for (uint32_t i = 0; i < joined->n; i++)
                rows += joined->rows[i];
        return rows;
}

// How many of the runs to do next, and as what size; 0: no batch is worth it.
static uint32_t choose(Batches *batches, uint32_t sizes, const Joined *joined, uint32_t *out_k)
{
        for (uint32_t k = size_for(sizes, (uint32_t)MIN(all_rows(joined), BATCH_LARGEST)); k > 0; k--) {
                BatchSize *size = &batches->sizes[k];
                int64_t alone_ns;
                if ((sizes >> k & 1) == 0 || atomic_load(&size->state) != BATCH_PROVED)
                        continue;
                uint32_t members = fitting(joined, 1u << k, &alone_ns);
                if (members >= 2 && pays(size, alone_ns)) {
                        *out_k = k;
                        return members;
                }
        }
        return 0;
}

// ---- one batch ----
typedef struct Batch {
        RunTask *const *tasks;
        const int64_t *rows; // places that each takes
        int64_t n_rows;
        uint32_t n, k;
        CachedProgram *base; // of one place
        BatchSize *size;
        PlannedRun plan; // of all
        Budget budget;
        RunContext ctx;
        RunResult result;
        Tensor **leaves; // of the result and of what was fetched; borrowed
        uint32_t n_leaves, leaves_capacity;
        int64_t start_ns, ns;
} Batch;

// Places that are left over have the first row of the first run.
static Status copy_rows(Batch *batch, uint32_t input, Tensor *to)
{
        Region all = region_of(&to->meta, tensor_data(to));
        int64_t unit = to->meta.size[0] >> batch->k, at = 0;
        for (uint32_t i = 0; at < (int64_t)1 << batch->k; i++) {
                bool is_member = i < batch->n;
                const Tensor *from = batch->tasks[is_member ? i : 0]->plan.inputs[input].tensor;
                int64_t rows = is_member ? batch->rows[i] : 1;
                Region source = region_of(&from->meta, tensor_data(from)),
                       part = region_part(&source, 0, 0, rows * unit),
                       place = region_part(&all, 0, at * unit, rows * unit);
                TRY(copy_region(&batch->ctx, &part, &place));
                at += rows;
        }
        return STATUS_OK;
}

static Status join_inputs(Batch *batch)
{
        for (uint32_t i = 0; i < batch->plan.n_inputs; i++) {
                Value *value = &batch->plan.inputs[i];
                if (value->kind != VALUE_TENSOR)
                        continue;
                Tensor *tensor;
                TRY(tensor_new(&value->tensor->meta, &batch->budget, &tensor));
                value_clear(value);
                *value = value_tensor_take(tensor);
                TRY(copy_rows(batch, i, tensor));
        }
        return STATUS_OK;
}

static Status add_leaf(void *context, const Value *leaf)
{
        Batch *batch = context;
        if (leaf->kind != VALUE_TENSOR)
                return STATUS_OK;
        TRY(array_reserve(&batch->leaves, &batch->leaves_capacity, batch->n_leaves + 1,
                          sizeof(*batch->leaves)));
        batch->leaves[batch->n_leaves++] = leaf->tensor;
        return STATUS_OK;
}

static Status list_leaves(Batch *batch)
{
        TRY(value_walk(batch->result.value, add_leaf, batch));
        for (uint32_t i = 0; i < batch->result.n_fetched; i++)
                TRY(value_walk(batch->result.fetched[i], add_leaf, batch));
        return batch->n_leaves == batch->size->dims.n
                       ? STATUS_OK
                       : fail(STATUS_INTERNAL, "a batch has other results than its runs");
}

static Status run_joined(Batch *batch, Frame *frame)
{
        CachedProgram *cached = batch->plan.program;
        const Program *program = cached->program;
        RunResult *result = &batch->result;
        WalkTrace trace = { .rows = NULL }; // only stamps are wanted
        ProgramRun run = { .inputs = { batch->plan.inputs, batch->plan.n_inputs }, .trace = &trace };
        TRY(join_inputs(batch));
        result->fetched = new_array(program->n_fetch, sizeof(*result->fetched));
        if (result->fetched == NULL)
                return fail_memory();
        batch->start_ns = clock_ns();
        TRY(program_run(program, frame, &run, &batch->ctx, &result->value, result->fetched));
        result->n_fetched = program->n_fetch;
        batch->ns = clock_ns() - batch->start_ns;
        cached_program_used(cached, batch->ns);
        return list_leaves(batch);
}

// ---- taking apart ----
typedef struct Share {
        const Batch *batch;
        uint32_t member, leaf;
        int64_t place; // the member's first
        Budget *budget;
        RunContext *ctx;
} Share;

// Whether a batch's result holds those of runs like this one.
static bool holds(const Share *share, const TensorMeta *all, const TensorMeta *one, int dim)
{
        bool same = all->rank == one->rank && all->dtype == one->dtype;
        for (int d = 0; d < one->rank && same; d++) {
                int64_t rows = share->batch->rows[share->member], size = one->size[d];
                if (d == dim && size % rows != 0)
                        return false;
                same = all->size[d] == (d == dim ? size / rows << share->batch->k : size);
        }
        return same;
}

// What the member's program gives at this place, with the batch's numbers.
static Status take_leaf(void *context, const Value *leaf, Value *out)
{
        Share *share = context;
        if (leaf->kind != VALUE_TENSOR) {
                *out = value_ref(*leaf);
                return STATUS_OK;
        }
        if (share->leaf >= share->batch->n_leaves)
                return fail(STATUS_INTERNAL, "a batch has other results than its runs");
        int dim = share->batch->size->dims.dims[share->leaf];
        const Tensor *all = share->batch->leaves[share->leaf++];
        TensorMeta meta = leaf->tensor->meta;
        _cleanup_(tensor_unrefp) Tensor *tensor = NULL;
        if (!holds(share, &all->meta, &meta, dim))
                return fail(STATUS_INTERNAL, "a batch has other results than its runs");
        if (!meta_is_non_overlapping_and_dense(&meta))
                meta_set_contiguous(&meta);
        TRY(tensor_new(&meta, share->budget, &tensor));
        Region from = region_of(&all->meta, tensor_data(all)), to = region_of(&meta, tensor_data(tensor));
        int64_t rows = share->batch->rows[share->member];
        if (dim >= 0)
                from = region_part(&from, dim, share->place * (meta.size[dim] / rows), meta.size[dim]);
        TRY(copy_region(share->ctx, &from, &to));
        *out = value_tensor_take(take_ptr(tensor));
        return STATUS_OK;
}

static Status take_result(const Batch *batch, uint32_t member, RunResult *out_result)
{
        RunTask *task = batch->tasks[member];
        const Recording *one = task->plan.program->program->recording;
        Share share = { .batch = batch, .member = member, .budget = &task->budget, .ctx = &task->ctx };
        for (uint32_t i = 0; i < member; i++)
                share.place += batch->rows[i];
        RunResult result = { .value = value_none() };
        result.fetched = new_array(one->n_fetched, sizeof(*result.fetched));
        if (result.fetched == NULL)
                return fail_memory();
        Status status = value_map(one->result, take_leaf, &share, &result.value);
        for (; status == STATUS_OK && result.n_fetched < one->n_fetched; result.n_fetched++)
                status = value_map(one->fetched[result.n_fetched], take_leaf, &share,
                                   &result.fetched[result.n_fetched]);
        if (status != STATUS_OK)
                run_result_deinit(&result);
        else
                *out_result = result;
        return status;
}

// The member's profile: its share of the batch's time. The rows are those of its own program, which
// has the same instructions as a rule; else they share the time equally.
static Status take_profile(const Batch *batch, uint32_t member, const Frame *frame, RunProfile *profile)
{
        CachedProgram *own = batch->tasks[member]->plan.program;
        Program *program = own->program;
        const Program *joined = batch->plan.program->program;
        _cleanup_(freep) int64_t *stamps = new_array((size_t)program->n_code + 1, sizeof(*stamps));
        if (stamps == NULL)
                return fail_memory();
        TRY(run_profile_reserve(profile, program->n_rows));
        WalkTrace trace = { .rows = profile->rows, .capacity = profile->n_rows_capacity };
        int64_t ns = batch->ns * batch->rows[member] / batch->n_rows;
        for (uint32_t i = 0; i <= program->n_code; i++) {
                int64_t at = joined->n_code == program->n_code ? (frame->stamps[i] - batch->start_ns) *
                                                                         batch->rows[member] / batch->n_rows
                                                               : ns * i / MAX(program->n_code, 1u);
                stamps[i] = batch->start_ns + at;
        }
        program_trace(program, stamps, &trace);
        profile->n_rows = trace.n_rows;
        atomic_fetch_add_explicit(&own->n_runs, 1, memory_order_relaxed);
        profile->run_start_ns = batch->start_ns;
        profile->run_ns = ns;
        profile->batch = batch->n;
        profile->program = program_ref(program);
        profile->labels = run_labels_ref(own->labels);
        profile->arena_bytes = joined->figures.arena_bytes / batch->n;
        profile->peak_live_bytes = atomic_load(&batch->budget.peak) / batch->n;
        return STATUS_OK;
}

// A member that cannot have its share runs alone.
static void take_apart(const Batch *batch, const Frame *frame)
{
        for (uint32_t i = 0; i < batch->n; i++) {
                RunTask *task = batch->tasks[i];
                RunResult result;
                if (take_result(batch, i, &result) != STATUS_OK)
                        continue;
                if (take_profile(batch, i, frame, task->profile) != STATUS_OK) {
                        run_result_deinit(&result);
                        continue;
                }
                task->result = result;
                task->ran = true;
        }
}

// ---- comparing ----
// By what was found out about its own program.
static BatchSize *rows_of(const Batch *batch, uint32_t member)
{
        CachedProgram *own = batch->tasks[member]->plan.program;
        return batch->rows[member] == 1 ? NULL : &atomic_load(&own->batches)->sizes[0];
}

static bool is_checked(const Batch *batch)
{
        bool all = atomic_load(&batch->size->n_checked) >= CHECKED_BATCHES;
        for (uint32_t i = 0; i < batch->n && all; i++) {
                BatchSize *rows = rows_of(batch, i);
                all = rows == NULL || atomic_load(&rows->n_checked) >= CHECKED_BATCHES;
        }
        return all;
}

static void note_checked(const Batch *batch)
{
        atomic_fetch_add(&batch->size->n_checked, 1);
        for (uint32_t i = 0; i < batch->n; i++) {
                BatchSize *rows = rows_of(batch, i);
                if (rows != NULL)
                        atomic_fetch_add(&rows->n_checked, 1);
        }
}

// Whoever is to blame, neither is batched any more.
static void refuse_member(const Batch *batch, uint32_t member)
{
        static const char why[] = "a batch had other bits than its runs one by one";
        BatchSize *rows = rows_of(batch, member);
        if (rows != NULL)
                batch_refuse(atomic_load(&batch->tasks[member]->plan.program->batches), rows, why);
        batch_refuse(atomic_load(&batch->base->batches), batch->size, why);
}

typedef struct Bits {
        const Batch *batch;
        Tensor **leaves;
        uint32_t n, at, capacity;
        bool differ;
} Bits;

static Status add_bits(void *context, const Value *leaf)
{
        Bits *bits = context;
        if (leaf->kind != VALUE_TENSOR)
                return STATUS_OK;
        TRY(array_reserve(&bits->leaves, &bits->capacity, bits->n + 1, sizeof(*bits->leaves)));
        bits->leaves[bits->n++] = leaf->tensor;
        return STATUS_OK;
}

static Status compare_bits(void *context, const Value *leaf)
{
        Bits *bits = context;
        if (leaf->kind != VALUE_TENSOR || bits->differ)
                return STATUS_OK;
        Tensor *a = leaf->tensor, *b = bits->at < bits->n ? bits->leaves[bits->at++] : NULL;
        bits->differ = b == NULL || a->meta.dtype != b->meta.dtype || !meta_same_shape(&a->meta, &b->meta);
        if (bits->differ)
                return STATUS_OK;
        _cleanup_(tensor_unrefp) Tensor *x = NULL;
        _cleanup_(tensor_unrefp) Tensor *y = NULL;
        TRY(tensor_contiguous(a, NULL, &x));
        TRY(tensor_contiguous(b, NULL, &y));
        size_t n = (size_t)meta_numel(&x->meta) * dtype_info[x->meta.dtype].bytes;
        bits->differ = n > 0 && memcmp(tensor_data(x), tensor_data(y), n) != 0;
        return STATUS_OK;
}

static Status compare_member(const Batch *batch, uint32_t member, bool *out_differ)
{
        Bits bits = { .batch = batch };
        RunResult shared, *alone = &batch->tasks[member]->result;
        TRY(take_result(batch, member, &shared));
        Status status = value_walk(shared.value, add_bits, &bits);
        for (uint32_t i = 0; status == STATUS_OK && i < shared.n_fetched; i++)
                status = value_walk(shared.fetched[i], add_bits, &bits);
        if (status == STATUS_OK)
                status = value_walk(alone->value, compare_bits, &bits);
        for (uint32_t i = 0; status == STATUS_OK && i < alone->n_fetched; i++)
                status = value_walk(alone->fetched[i], compare_bits, &bits);
        *out_differ = bits.differ;
        free(bits.leaves);
        run_result_deinit(&shared);
        return status;
}

// Runs every member alone, which is its result, and compares.
static void check_batch(const Batch *batch, Frame *frame)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < batch->n; i++) {
                bool differ = false;
                RunTask *task = batch->tasks[i];
                task->ctx.n_threads = task->plan.n_threads;
                task->ran = run_task_execute(task, frame) == STATUS_OK;
                n += task->ran && compare_member(batch, i, &differ) == STATUS_OK;
                if (differ) {
                        refuse_member(batch, i);
                        return;
                }
        }
        if (n == batch->n)
                note_checked(batch);
}

// ---- running ----
// A batch that another process held up says little: it counts as twice the time before.
static void note_time(Batch *batch)
{
        int64_t old = atomic_load_explicit(&batch->size->ns, memory_order_relaxed),
                ns = old == 0          ? batch->ns
                     : batch->ns < old ? batch->ns
                                       : old + (MIN(batch->ns, 2 * old) - old) / 8;
        atomic_store_explicit(&batch->size->ns, ns, memory_order_relaxed);
}

static void start_context(Batch *batch)
{
        run_context_init(&batch->ctx);
        budget_init(&batch->budget, (size_t)limits.max_run_memory);
        batch->ctx.budget = &batch->budget;
        batch->ctx.n_threads = batch->plan.n_threads;
        batch->ctx.watch = batch->tasks[0]->ctx.watch;
        for (uint32_t i = 0; i < batch->n; i++)
                batch->ctx.deadline_ns = MAX(batch->ctx.deadline_ns, batch->tasks[i]->ctx.deadline_ns);
}

// The proofs of its members say of the results what its own does.
static bool same_dims(const Batch *batch)
{
        const SampleDims *dims = &batch->size->dims;
        for (uint32_t i = 0; i < batch->n; i++) {
                const BatchSize *rows = rows_of(batch, i);
                if (rows != NULL &&
                    (rows->dims.n != dims->n || memcmp(rows->dims.dims, dims->dims, dims->n) != 0))
                        return false;
        }
        return true;
}

// True: all went well, or it was compared.
static bool run_batch(Engine *engine, Batch *batch, Frame *frame, EngineWork **out_work)
{
        if (!same_dims(batch) ||
            batch_plan(batch->base->program, (int64_t)1 << batch->k, 1, &batch->plan) != STATUS_OK)
                return false;
        start_context(batch);
        bool compared = false;
        if (!engine_plan_ready(engine, &batch->plan)) {
                want_build(engine, batch->base, batch->k, true, out_work);
        } else if (run_joined(batch, frame) == STATUS_OK) {
                compared = true;
                note_time(batch);
                if (is_checked(batch))
                        take_apart(batch, frame);
                else
                        check_batch(batch, frame);
                atomic_fetch_add_explicit(&engine->n_batches, 1, memory_order_relaxed);
                atomic_fetch_add_explicit(&engine->n_batched_runs, batch->n, memory_order_relaxed);
        }
        run_result_deinit(&batch->result);
        planned_run_deinit(&batch->plan);
        free(batch->leaves);
        return compared;
}

// Runs whose places `base` is the program of; false: none of them.
static bool run_joined_by(Engine *engine, CachedProgram *base, Joined joined, Frame *frame,
                          EngineWork **out_work)
{
        Batches *batches = batches_of(base);
        uint32_t k = 0, members, sizes = sizes_of(joined.tasks[0]), n = joined.n;
        if (batches == NULL || joined.n < 2 || sizes == 0)
                return false;
        want_build(engine, base, size_for(sizes, (uint32_t)MIN(all_rows(&joined), BATCH_LARGEST)), false,
                   out_work);
        while (joined.n >= 2 && (members = choose(batches, sizes, &joined, &k)) >= 2) {
                Batch batch = { .tasks = joined.tasks,
                                .rows = joined.rows,
                                .n = members,
                                .k = k,
                                .base = base,
                                .size = &batches->sizes[k],
                                .result = { .value = value_none() } };
                for (uint32_t i = 0; i < members; i++)
                        batch.n_rows += joined.rows[i];
                if (!run_batch(engine, &batch, frame, out_work))
                        break;
                joined.tasks += members;
                joined.rows += members;
                joined.n -= members;
        }
        return joined.n < n;
}

// Those that have one program, together; `tasks` is put in the order of the programs.
static void run_by_program(Engine *engine, RunTask **tasks, uint32_t n, Frame *frame, EngineWork **out_work)
{
        static const int64_t ones[BATCH_LARGEST] = { [0 ... BATCH_LARGEST - 1] = 1 };
        for (uint32_t first = 0, end; first < n; first = end) {
                CachedProgram *cached = tasks[first]->plan.program;
                end = first + 1;
                for (uint32_t i = end; i < n; i++)
                        if (tasks[i]->plan.program == cached) {
                                RunTask *task = tasks[i];
                                tasks[i] = tasks[end];
                                tasks[end++] = task;
                        }
                (void)run_joined_by(engine, cached, (Joined){ &tasks[first], ones, end - first }, frame,
                                    out_work);
        }
}

void batch_run(Engine *engine, RunTask *const *tasks, uint32_t n, Frame *frame, EngineWork **out_work)
{
        RunTask *sorted[BATCH_LARGEST];
        int64_t rows[BATCH_LARGEST];
        bool same = true;
        *out_work = NULL;
        n = MIN(n, (uint32_t)BATCH_LARGEST);
        for (uint32_t i = 0; i < n; i++) {
                sorted[i] = tasks[i];
                same = same && tasks[i]->plan.program == tasks[0]->plan.program;
        }
        CachedProgram *unit = same ? NULL : batch_unit(engine, tasks, n, rows, out_work);
        if (unit == NULL || !run_joined_by(engine, unit, (Joined){ tasks, rows, n }, frame, out_work))
                run_by_program(engine, sorted, n, frame, out_work);
        cached_program_unref(unit);
}

// ---- facts ----
void engine_batch_facts(Engine *engine, const GraphVersion *version, BatchFacts *out_facts)
{
        void *objects[ENGINE_MAX_PROGRAMS];
        uint32_t n = registry_group(engine->programs, &version->key, ENGINE_MAX_PROGRAMS, objects);
        *out_facts = (BatchFacts){ .sizes = 0 };
        for (uint32_t i = 0; i < n; i++) {
                CachedProgram *cached = objects[i];
                const Batches *batches = atomic_load(&cached->batches);
                bool refused = batches != NULL && atomic_load(&batches->why_state) == 2;
                for (uint32_t k = 1; batches != NULL && !refused && k <= BATCH_SIZES; k++)
                        if (atomic_load(&batches->sizes[k].n_checked) >= CHECKED_BATCHES)
                                out_facts->sizes |= 1u << k;
                if (refused)
                        memcpy(out_facts->why, batches->why, sizeof(batches->why));
                cached_program_unref(cached);
        }
        if (out_facts->sizes != 0)
                out_facts->why[0] = '\0';
}
