// SPDX-License-Identifier: Apache-2.0
// Decides how a run goes. mode=auto: the first run of an input signature is eager; the second hit
// starts a build, and all runs are eager until the program is ready. mode=compiled: callers are
// parked until it is ready. Signatures that cannot be planned are remembered and stay eager.
// Programs live in a registry of their own, in groups by graph; the least recently used leave
// first. They are immutable and hold the graph they were made from.
//
// Numbers among the inputs: a program says which of them it depends on by value. Until that is
// known, all are taken to matter.
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/choose.h"
#include "core/engine/private.h"
#include "core/eval/guards.h"

// ---- small tables ----
static uint64_t word_of(const RegistryKey *key)
{
        uint64_t word;
        memcpy(&word, key->bytes, sizeof(word));
        return word | 1;
}

bool seen_before(SeenTable *table, const RegistryKey *key)
{
        uint64_t word = word_of(key);
        return atomic_exchange_explicit(&table->words[word % ENGINE_SEEN], word, memory_order_relaxed) ==
               word;
}

bool seen_is_marked(SeenTable *table, const RegistryKey *key)
{
        uint64_t word = word_of(key);
        return atomic_load_explicit(&table->words[word % ENGINE_SEEN], memory_order_relaxed) == word;
}

void seen_forget(SeenTable *table, const RegistryKey *key)
{
        uint64_t word = word_of(key);
        atomic_compare_exchange_strong(&table->words[word % ENGINE_SEEN], &word, 0);
}

bool by_value_of(Engine *engine, const RegistryKey *base, uint64_t *out_mask)
{
        uint64_t word = word_of(base);
        pthread_mutex_lock(&engine->mutex);
        bool known = engine->by_value.words[word % ENGINE_BY_VALUE] == word;
        *out_mask = known ? engine->by_value.masks[word % ENGINE_BY_VALUE] : BY_VALUE_ALL;
        pthread_mutex_unlock(&engine->mutex);
        return known;
}

uint64_t by_value_learn(Engine *engine, const RegistryKey *base, uint64_t mask)
{
        uint64_t word = word_of(base), at = word % ENGINE_BY_VALUE;
        pthread_mutex_lock(&engine->mutex);
        if (engine->by_value.words[at] == word)
                mask |= engine->by_value.masks[at];
        engine->by_value.words[at] = word;
        engine->by_value.masks[at] = mask;
        pthread_mutex_unlock(&engine->mutex);
        return mask;
}

// ---- programs in the registry ----
static Status add_values(void *context, const Value *leaf)
{
        int64_t *total = context, n = 1;
        if (leaf->kind == VALUE_STR)
                n += (int64_t)leaf->str->n;
        const Tensor *tensor = leaf->kind == VALUE_TENSOR ? leaf->tensor : NULL;
        for (int i = 0; tensor != NULL && i < tensor->meta.rank; i++)
                if (__builtin_mul_overflow(n, MAX(tensor->meta.size[i], 1), &n))
                        n = INT64_MAX;
        if (tensor != NULL && storage_is_mapped(tensor->storage))
                n = INT64_MAX;
        if (__builtin_add_overflow(*total, n, total))
                *total = INT64_MAX;
        return STATUS_OK;
}

static int64_t result_values_of(const Recording *recording)
{
        int64_t n = 0;
        if (recording->tail != NULL)
                return INT64_MAX;
        (void)value_walk(recording->result, add_values, &n);
        for (uint32_t i = 0; i < recording->n_fetched; i++)
                (void)value_walk(recording->fetched[i], add_values, &n);
        return n;
}

Status cached_program_new(Program *take_program, CachedProgram **out_cached)
{
        CachedProgram *cached = calloc(1, sizeof(*cached));
        if (cached == NULL) {
                program_unref(take_program);
                return fail_memory();
        }
        refcount_init(&cached->ref);
        cached->program = take_program;
        if (run_labels_new(take_program->recording->graph, take_program, &cached->labels) != STATUS_OK) {
                cached_program_unref(cached);
                return STATUS_NO_MEMORY;
        }
        cached->result_values = result_values_of(take_program->recording);
        atomic_init(&cached->run_ns, -1);
        *out_cached = cached;
        return STATUS_OK;
}

CachedProgram *cached_program_unref(CachedProgram *cached)
{
        if (cached == NULL || !refcount_put(&cached->ref))
                return NULL;
        program_unref(cached->program);
        run_labels_unref(cached->labels);
        batches_free(atomic_load(&cached->batches));
        free(cached);
        return NULL;
}

void cached_program_used(CachedProgram *cached, int64_t run_ns)
{
        int64_t old = atomic_load_explicit(&cached->run_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&cached->n_runs, 1, memory_order_relaxed);
        atomic_store_explicit(&cached->run_ns, old < 0 ? run_ns : old + (run_ns - old) / 4,
                              memory_order_relaxed);
}

static void ref_object(void *object)
{
        refcount_get(&((CachedProgram *)object)->ref);
}
static void unref_object(void *object)
{
        cached_program_unref(object);
}
static size_t bytes_of_object(const void *object)
{
        const CachedProgram *cached = object;
        return sizeof(*cached) + program_bytes(cached->program) + run_labels_bytes(cached->labels);
}
// Bytes of packed constants, which programs share: counted once, in the cache.
static size_t packed_bytes(void *context)
{
        return pack_cache_stats(context).bytes;
}

Status programs_open(Engine *engine)
{
        TRY(pack_cache_open(&engine->packs));
        RegistryType type = { .ref = ref_object,
                              .unref = unref_object,
                              .bytes = bytes_of_object,
                              .max_per_group = ENGINE_MAX_PROGRAMS,
                              .shared_bytes = packed_bytes,
                              .context = engine->packs };
        return registry_open(&type, (size_t)limits.max_program_memory, &engine->programs);
}

void programs_close(Engine *engine)
{
        registry_close(engine->programs);
        pack_cache_close(engine->packs);
}

// ---- plans ----
void planned_run_deinit(PlannedRun *plan)
{
        for (uint32_t i = 0; i < plan->n_inputs; i++)
                value_clear(&plan->inputs[i]);
        free(plan->inputs);
        cached_program_unref(plan->program);
        shared_tune_unref(plan->tune);
        choice_unref(plan->choice);
        *plan = (PlannedRun){ .graph = NULL };
}

Status engine_bind(const Graph *graph, const RunRequest *request, PlannedRun *plan)
{
        uint32_t n = graph->signature.n_inputs;
        plan->graph = graph;
        plan->request = *request;
        plan->request.inputs = (ValueSpan){ .n = 0 };
        plan->inputs = new_array(n, sizeof(*plan->inputs));
        if (plan->inputs == NULL)
                return fail_memory();
        for (plan->n_inputs = 0; plan->n_inputs < n; plan->n_inputs++)
                plan->inputs[plan->n_inputs].kind = VALUE_ABSENT;
        plan->request.poll = NULL;
        Status status = bind_inputs(graph, request->inputs, request->poll, plan->inputs);
        if (status != STATUS_OK)
                planned_run_deinit(plan);
        return status;
}

int64_t engine_bind_ns(const Graph *graph)
{
        return guards_bind_ns(graph);
}

CompileOptions engine_compile_options(const PlannedRun *plan)
{
        return (CompileOptions){ .n_threads = MAX(plan->n_threads, 1),
                                 .fetch = plan->request.fetch,
                                 .n_fetch = plan->request.n_fetch,
                                 .keeps_state = plan->keeps_state,
                                 .precision = plan->request.precision,
                                 .choice = plan->choice,
                                 .tune = plan->tune == NULL ? NULL : plan->tune->record };
}

Status engine_program_key(const PlannedRun *plan, uint64_t by_value, RegistryKey *out_key)
{
        CompileOptions options = engine_compile_options(plan);
        ProgramKey key;
        TRY(program_key(plan->graph, (ValueSpan){ plan->inputs, plan->n_inputs }, &options, by_value, &key));
        memcpy(out_key->bytes, key.bytes, sizeof(out_key->bytes));
        return STATUS_OK;
}

static bool has_numbers(const PlannedRun *plan)
{
        for (uint32_t i = 0; i < plan->n_inputs; i++)
                if (plan->inputs[i].kind == VALUE_FLOAT || plan->inputs[i].kind == VALUE_INT)
                        return true;
        return false;
}

// The key for the look-up, and the key that counts hits: while it is unknown which numbers matter,
// all numbers are one signature.
static Status find_key(Engine *engine, PlannedRun *plan, RegistryKey *out_key, RegistryKey *out_hits)
{
        shared_tune_unref(plan->tune);
        plan->tune = engine_tune_of(engine, plan->graph);
        plan->by_value = BY_VALUE_ALL;
        if (!has_numbers(plan)) {
                TRY(engine_program_key(plan, BY_VALUE_ALL, out_key));
                *out_hits = *out_key;
                return STATUS_OK;
        }
        RegistryKey base;
        uint64_t mask;
        TRY(engine_program_key(plan, 0, &base));
        by_value_of(engine, &base, &mask);
        plan->by_value = mask;
        TRY(engine_program_key(plan, mask, out_key));
        *out_hits = mask == BY_VALUE_ALL ? base : *out_key;
        return STATUS_OK;
}

static bool is_unplannable(Engine *engine, const RegistryKey *key, const RegistryKey *hits)
{
        return seen_is_marked(&engine->unplannable, key) || seen_is_marked(&engine->unplannable, hits);
}

// In mode=auto nobody waits: the second hit starts the build, and the others run eagerly meanwhile.
// The build is made before the ticket is parked: from then on the plan belongs to the thread that
// wakes it.
static Status start_build(Engine *engine, PlannedRun *plan, const RegistryKey *key, Ticket *ticket_or_null,
                          Wait *out_wait)
{
        WorkPlace place = { .registry = engine->programs, .key = *key, .has_group = true };
        EngineWork *build;
        void *program = NULL;
        memcpy(place.group.bytes, plan->graph->content, sizeof(place.group.bytes));
        out_wait->at_once = ticket_or_null == NULL && program_build_is_small(plan->graph);
        TRY(program_build_new(engine, plan, key, &build));
        TRY(work_begin(build, &place, ticket_or_null, &program, out_wait));
        if (program != NULL)
                plan->program = program;
        return STATUS_OK;
}

// False: it has to be searched for first.
static bool has_choice(Engine *engine, PlannedRun *plan)
{
        if (plan->request.bucket != 0 && plan->choice == NULL)
                plan->choice = engine_choice_of(engine, plan);
        return plan->request.bucket == 0 || plan->choice != NULL;
}

Status engine_plan(Engine *engine, PlannedRun *plan, Ticket *ticket, Wait *out_wait)
{
        RegistryKey key, hits;
        *out_wait = (Wait){ .parked = false };
        RunMode mode = plan->request.mode;
        if (mode != RUN_MODE_EAGER && !has_choice(engine, plan))
                return engine_start_choosing(engine, plan, ticket, out_wait);
        if (mode == RUN_MODE_EAGER || find_key(engine, plan, &key, &hits) != STATUS_OK ||
            is_unplannable(engine, &key, &hits))
                return STATUS_OK;
        plan->program = registry_peek(engine->programs, &key);
        if (plan->program != NULL)
                return STATUS_OK;
        if (mode == RUN_MODE_COMPILED)
                return start_build(engine, plan, &key, ticket, out_wait);
        if (seen_before(&engine->seen, &hits) && !registry_has(engine->programs, &key))
                // no memory for it: this run is eager
                (void)start_build(engine, plan, &key, NULL, out_wait);
        return STATUS_OK;
}

Status engine_plan_background(Engine *engine, PlannedRun *plan, EngineWork **out_build)
{
        RegistryKey key, hits;
        Wait wait = { .parked = false };
        if (!has_choice(engine, plan))
                return STATUS_OK; // the first run searches
        TRY(find_key(engine, plan, &key, &hits));
        if (registry_has(engine->programs, &key) || is_unplannable(engine, &key, &hits))
                return STATUS_OK;
        TRY(start_build(engine, plan, &key, NULL, &wait));
        *out_build = wait.work;
        return STATUS_OK;
}

void engine_unplan(PlannedRun *plan)
{
        plan->program = cached_program_unref(plan->program);
}

// Below this, waking threads costs more than they do.
enum { WIDE_BYTES = 1 << 20 };

static Status add_bytes(void *context, const Value *leaf)
{
        if (leaf->kind == VALUE_TENSOR)
                *(int64_t *)context +=
                        meta_numel(&leaf->tensor->meta) * dtype_info[leaf->tensor->meta.dtype].bytes;
        return STATUS_OK;
}

int engine_width(const PlannedRun *plan, int n_threads)
{
        int64_t n_bytes = (int64_t)plan->graph->weights_bytes;
        for (uint32_t i = 0; i < plan->n_inputs; i++)
                (void)value_walk(plan->inputs[i], add_bytes, &n_bytes);
        return n_bytes < WIDE_BYTES ? 1 : MAX(n_threads, 1);
}

bool engine_plan_ready(Engine *engine, PlannedRun *plan)
{
        RegistryKey key, hits;
        if (plan->request.mode == RUN_MODE_EAGER || !has_choice(engine, plan) ||
            find_key(engine, plan, &key, &hits) != STATUS_OK)
                return false;
        plan->program = registry_peek(engine->programs, &key);
        return plan->program != NULL;
}

int64_t engine_predict_ns(const PlannedRun *plan)
{
        if (plan->program == NULL || plan->program->program->recording->tail != NULL)
                return -1;
        return atomic_load_explicit(&plan->program->run_ns, memory_order_relaxed);
}

int64_t engine_result_values(const PlannedRun *plan)
{
        return plan->program == NULL ? INT64_MAX : plan->program->result_values;
}

Status engine_planned(PlannedRun *plan, Ticket *ticket, bool *out_again)
{
        void *program = NULL;
        Status status = ticket_take(ticket, &program);
        plan->program = program;
        *out_again = status == STATUS_CANCELLED;
        return status == STATUS_CANCELLED || status == STATUS_DYNAMIC || status == STATUS_UNSUPPORTED
                       ? STATUS_OK
                       : status;
}
