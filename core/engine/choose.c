// SPDX-License-Identifier: Apache-2.0
// choose.c: the search for the precision of each node under a tolerance.
//
// Samples that came with the version are taken alternately: the first, third ... choose, the others
// verify. One program per signature keeps every form of its products (EmitOptions.forms), so that a
// trial is a run and no compilation.
//     measure   all nodes in one form, in turns: how long each takes; one node in one form: the
//               error that the outputs have then
//     select    forms by error per microsecond that they save, as long as the choosing samples hold
//     verify    the program that would serve, on the verifying samples; if it misses, select again
//               within half of the error
// Times decide only which forms are worth their error. What is chosen is kept (engine_chosen), so
// that it is found once.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/choose.h"
#include "core/engine/compare.h"
#include "core/engine/private.h"
#include "core/interp/interp.h"
#include "core/kernels/random/generator.h"

enum { MAX_SAMPLES = 16, VERIFY_ROUNDS = 4, MEASURE_PERCENT = 50, SELECT_PERCENT = 75 };
enum { TIME_LEAST = 3, TIME_MOST = 2000, TIME_NS = 200000000 };
#define MARGIN 0.9 // of the tolerance, for the samples that choose

typedef struct SearchSample {
        PlannedRun plan;
        Program *program; // with forms; counted, shared by samples of one signature
        Value want;       // float32's result
} SearchSample;

typedef struct Candidate {
        uint32_t node;
        bool has[PRECISION_COUNT];
        int64_t ns[PRECISION_COUNT], round_ns;
        double error[PRECISION_COUNT];
        Precision now; // in trials
} Candidate;

typedef struct Gain {
        uint32_t candidate;
        Precision precision;
        double ns, error;
} Gain;

typedef struct Search {
        Engine *engine;
        const PlannedRun *asked;
        int64_t begin_ns;
        RunContext ctx;
        Budget budget;
        Generator generator;
        Frame frame;
        SearchSample *samples; // that choose, then that verify
        uint32_t n_samples, n_choose;
        Candidate *candidates; // by node
        uint32_t n_candidates;
        uint32_t *of_node; // by node: candidate + 1; 0: none
        Gain *gains;       // the cheapest error first
        uint32_t n_gains;
        double target, error; // of the choosing samples; of the verifying ones
} Search;

// ---- samples ----
void version_samples(const GraphVersion *version, char out[CHOICE_SAMPLES + 1])
{
        const int forms = PRECISION_FORMS;
        snprintf(out, CHOICE_SAMPLES + 1, "none");
        for (uint32_t i = 0; i < version->stored.n_parts; i++) {
                if (version->stored.parts[i].role != STORE_SAMPLES)
                        continue;
                Sha256 sha;
                sha256_start(&sha);
                sha256_add(&sha, version->stored.parts[i].digest.hex, sizeof(HashHex) - 1);
                sha256_add(&sha, &forms, sizeof(forms));
                HashHex hex = sha256_finish(&sha);
                snprintf(out, CHOICE_SAMPLES + 1, "%.*s", CHOICE_SAMPLES, hex.hex);
        }
}

// Those that choose run on one thread: on a busy machine threads wait for each other, and such
// times say nothing of forms. Those that verify run as the program that serves.
static Status open_sample(Search *it, Storage *bytes, int64_t at, SearchSample *sample)
{
        Value *inputs = NULL;
        uint32_t n = 0;
        TRY(it->engine->samples->inputs(it->asked->graph, bytes, at, &inputs, &n));
        RunRequest request = { .inputs = { inputs, n }, .mode = RUN_MODE_COMPILED };
        Status status = engine_bind(it->asked->graph, &request, &sample->plan);
        for (uint32_t i = 0; i < n; i++)
                value_clear(&inputs[i]);
        free(inputs);
        sample->plan.n_threads = sample < it->samples + it->n_choose ? 1 : it->asked->n_threads;
        sample->want = value_none();
        return status;
}

// STATUS_NOT_FOUND: there are fewer than two.
static Status open_samples(Search *it)
{
        _cleanup_(storage_unrefp) Storage *bytes = NULL;
        int64_t n = 0;
        if (it->engine->samples == NULL)
                return fail(STATUS_NOT_FOUND, "this engine reads no samples");
        TRY(engine_part(it->engine, it->asked->request.version, STORE_SAMPLES, &bytes));
        TRY(it->engine->samples->count(bytes, &n));
        if (n < 2)
                return fail(STATUS_NOT_FOUND, "one sample cannot both choose and verify");
        n = MIN(n, MAX_SAMPLES);
        it->samples = new_array((size_t)n, sizeof(*it->samples));
        if (it->samples == NULL)
                return fail_memory();
        it->n_choose = (uint32_t)(n + 1) / 2;
        for (int64_t i = 0; i < n; i++) {
                int64_t at = i < it->n_choose ? 2 * i : 2 * (i - it->n_choose) + 1;
                it->n_samples++;
                TRY(open_sample(it, bytes, at, &it->samples[i]));
        }
        return STATUS_OK;
}

static void close_search(Search *it)
{
        for (uint32_t i = 0; i < it->n_samples; i++) {
                value_clear(&it->samples[i].want);
                program_unref(it->samples[i].program);
                planned_run_deinit(&it->samples[i].plan);
        }
        free(it->samples);
        free(it->candidates);
        free(it->of_node);
        free(it->gains);
        frame_deinit(&it->frame);
}

// ---- runs ----
static Status run_once(Search *it, const Program *program, const SearchSample *sample, WalkTrace *trace,
                       Value *out_value)
{
        ProgramRun run = { .inputs = { sample->plan.inputs, sample->plan.n_inputs }, .trace = trace };
        generator_rewind(&it->generator);
        it->ctx.n_threads = MAX(sample->plan.n_threads, 1);
        TRY(run_poll(&it->ctx));
        return program_run(program, &it->frame, &run, &it->ctx, out_value, NULL);
}

static Status collect_leaf(void *context, const Value *leaf)
{
        ValueSpan *leaves = context;
        if (leaves->items != NULL)
                ((Value *)(uintptr_t)leaves->items)[leaves->n] = *leaf;
        leaves->n++;
        return STATUS_OK;
}

// The greatest of all outputs' max|d| / max(1, max|want|); infinite where that is no number.
static Status error_between(const Search *it, Value got, Value want, double *inout_error)
{
        static const CloseRule exact = { .given = true, .equal_nan = true };
        ValueSpan n[2] = { { .n = 0 }, { .n = 0 } };
        TRY(value_walk(got, collect_leaf, &n[0]));
        TRY(value_walk(want, collect_leaf, &n[1]));
        _cleanup_(freep) Value *leaves = new_array((size_t)n[0].n + n[1].n, sizeof(*leaves));
        if (leaves == NULL)
                return fail_memory();
        if (n[0].n != n[1].n)
                *inout_error = INFINITY;
        ValueSpan a = { leaves, 0 }, b = { leaves + n[0].n, 0 };
        TRY(value_walk(got, collect_leaf, &a));
        TRY(value_walk(want, collect_leaf, &b));
        for (uint32_t i = 0; i < MIN(a.n, b.n); i++) {
                _cleanup_(text_deinit) Text message = { 0 };
                Closeness close;
                TRY(value_close(a.items[i], b.items[i], &exact, &it->ctx, &close, &message));
                double error = close.max_abs / MAX(1, close.scale);
                bool is_known = close.close || (isfinite(error) && error > 0);
                *inout_error = MAX(*inout_error, is_known ? (close.close ? 0 : error) : INFINITY);
        }
        return STATUS_OK;
}

static Status add_error(Search *it, const Program *program, const SearchSample *sample, double *inout_error)
{
        _cleanup_(value_clear) Value got = value_none();
        TRY(run_once(it, program, sample, NULL, &got));
        return error_between(it, got, sample->want, inout_error);
}

// ---- programs with forms ----
static Candidate *candidate_of(const Search *it, const Instruction *instruction)
{
        const RecordedCall *call = instruction->call;
        uint32_t at = call == NULL || call->n_nodes == 0 ? 0 : it->of_node[call->nodes[0]->index];
        return at == 0 ? NULL : &it->candidates[at - 1];
}

static Precision least_of(const Search *it, const RecordedCall *call)
{
        Precision least = PRECISION_COUNT;
        for (uint32_t i = 0; i < call->n_nodes; i++) {
                uint32_t at = it->of_node[call->nodes[i]->index];
                if (at != 0)
                        least = MIN(least, it->candidates[at - 1].now);
        }
        return least;
}

// Puts every instruction into the form that its node has now, as emitting with the choice does.
static void put_forms(Search *it, Program *program)
{
        for (uint32_t i = 0; i < program->n_code; i++) {
                const InstructionForm *forms = program->forms[i];
                if (candidate_of(it, &program->code[i]) == NULL || forms[PRECISION_F32].kernel == NULL)
                        continue;
                Precision precision = least_of(it, program->code[i].call);
                if (forms[precision].kernel == NULL)
                        precision = PRECISION_F32;
                program->code[i].kernel = forms[precision].kernel;
                program->code[i].run.state = forms[precision].state;
        }
}

static Status compile_sample(Search *it, SearchSample *sample, const Choice *choice, Program **out_program)
{
        CompileOptions options = engine_compile_options(&sample->plan);
        _cleanup_(shared_tune_unrefp) SharedTune *tune = engine_tune_of(it->engine, it->asked->graph);
        options.cache = it->engine->packs;
        options.tune = tune == NULL ? NULL : tune->record;
        options.choice = choice;
        options.forms = choice == NULL;
        return compile_graph(it->asked->graph, (ValueSpan){ sample->plan.inputs, sample->plan.n_inputs },
                             &options, &it->ctx, out_program);
}

static bool same_signature(const SearchSample *a, const SearchSample *b)
{
        RegistryKey keys[2];
        return engine_program_key(&a->plan, BY_VALUE_ALL, &keys[0]) == STATUS_OK &&
               engine_program_key(&b->plan, BY_VALUE_ALL, &keys[1]) == STATUS_OK &&
               memcmp(&keys[0], &keys[1], sizeof(keys[0])) == 0;
}

static Status compile_all(Search *it)
{
        for (uint32_t i = 0; i < it->n_samples; i++) {
                SearchSample *sample = &it->samples[i];
                for (uint32_t k = 0; k < i && sample->program == NULL; k++)
                        if (same_signature(sample, &it->samples[k]))
                                sample->program = program_ref(it->samples[k].program);
                if (sample->program == NULL)
                        TRY(compile_sample(it, sample, NULL, &sample->program));
                TRY(run_once(it, sample->program, sample, NULL, &sample->want));
        }
        return STATUS_OK;
}

// ---- candidates ----
static bool has_forms(const InstructionForm *forms)
{
        for (int precision = PRECISION_F32 + 1; precision < PRECISION_COUNT; precision++)
                if (forms[precision].kernel != NULL)
                        return true;
        return false;
}

static void mark_candidates(Search *it, const Program *program)
{
        for (uint32_t i = 0; i < program->n_code; i++) {
                const RecordedCall *call = program->code[i].call;
                if (call != NULL && call->n_nodes > 0 && has_forms(program->forms[i]))
                        it->of_node[call->nodes[0]->index] = 1;
        }
}

static void note_forms(Search *it, const Program *program)
{
        for (uint32_t i = 0; i < program->n_code; i++) {
                Candidate *candidate = candidate_of(it, &program->code[i]);
                for (int precision = 0; candidate != NULL && precision < PRECISION_COUNT; precision++)
                        candidate->has[precision] |= program->forms[i][precision].kernel != NULL;
        }
}

static Status find_candidates(Search *it)
{
        uint32_t n_nodes = it->asked->graph->n_nodes;
        it->of_node = new_array(n_nodes, sizeof(*it->of_node));
        it->candidates = new_array(n_nodes, sizeof(*it->candidates));
        it->gains = new_array((size_t)n_nodes * PRECISION_COUNT, sizeof(*it->gains));
        if (it->of_node == NULL || it->candidates == NULL || it->gains == NULL)
                return fail_memory();
        for (uint32_t i = 0; i < it->n_samples; i++)
                mark_candidates(it, it->samples[i].program);
        for (uint32_t i = 0; i < n_nodes; i++) {
                if (it->of_node[i] == 0)
                        continue;
                it->candidates[it->n_candidates] = (Candidate){ .node = i };
                it->of_node[i] = ++it->n_candidates;
        }
        for (uint32_t i = 0; i < it->n_samples; i++)
                note_forms(it, it->samples[i].program);
        return STATUS_OK;
}

static void set_all(Search *it, Precision precision)
{
        for (uint32_t i = 0; i < it->n_candidates; i++)
                it->candidates[i].now = it->candidates[i].has[precision] ? precision : PRECISION_F32;
}

// ---- measure ----
// Of the first sample's program. The least of all rounds stays.
static Status time_form(Search *it, Precision precision, NodeTiming *rows)
{
        _cleanup_(value_clear) Value got = value_none();
        Program *program = it->samples[0].program;
        WalkTrace trace = { .rows = rows, .capacity = program->n_rows };
        set_all(it, precision);
        put_forms(it, program);
        for (uint32_t i = 0; i < it->n_candidates; i++)
                it->candidates[i].round_ns = 0;
        TRY(run_once(it, program, &it->samples[0], &trace, &got));
        for (uint32_t i = 0; i < program->n_code; i++) {
                Candidate *candidate = candidate_of(it, &program->code[i]);
                if (candidate != NULL)
                        candidate->round_ns += it->frame.stamps[i + 1] - it->frame.stamps[i];
        }
        for (uint32_t i = 0; i < it->n_candidates; i++) {
                Candidate *candidate = &it->candidates[i];
                int64_t *least = &candidate->ns[precision];
                *least = *least == 0 ? candidate->round_ns : MIN(*least, candidate->round_ns);
        }
        return STATUS_OK;
}

// All forms in turn, so that a busy moment is nobody's; short programs more often.
static Status time_forms(Search *it)
{
        _cleanup_(freep) NodeTiming *rows = new_array(it->samples[0].program->n_rows, sizeof(*rows));
        int64_t end_ns = clock_ns() + TIME_NS;
        if (rows == NULL)
                return fail_memory();
        for (int round = 0; round < TIME_MOST && (round < TIME_LEAST || clock_ns() < end_ns); round++)
                for (Precision precision = 0; precision < PRECISION_COUNT; precision++)
                        TRY(time_form(it, precision, rows));
        return STATUS_OK;
}

static Status choosing_error(Search *it, double *out_error)
{
        *out_error = 0;
        for (uint32_t i = 0; i < it->n_choose && isfinite(*out_error); i++) {
                put_forms(it, it->samples[i].program);
                TRY(add_error(it, it->samples[i].program, &it->samples[i], out_error));
        }
        return STATUS_OK;
}

// What a form saves of float32's time. Within a tenth counts as a little, for it reads fewer bytes.
static double gain_of(const Candidate *candidate, Precision precision)
{
        double f32 = (double)candidate->ns[PRECISION_F32], ns = (double)candidate->ns[precision];
        return ns > f32 * 1.1 ? 0 : MAX(f32 - ns, f32 * 0.01);
}

static int by_gain(const void *a, const void *b)
{
        const Gain *left = a, *right = b;
        return (left->ns < right->ns) - (left->ns > right->ns);
}

static int by_sensitivity(const void *a, const void *b)
{
        const Gain *left = a, *right = b;
        double of_left = left->error / left->ns, of_right = right->error / right->ns;
        if (of_left != of_right)
                return of_left < of_right ? -1 : 1;
        if (left->candidate != right->candidate)
                return left->candidate < right->candidate ? -1 : 1;
        return left->precision < right->precision ? 1 : -1;
}

static void list_gains(Search *it)
{
        for (uint32_t i = 0; i < it->n_candidates; i++)
                for (Precision p = PRECISION_F32 + 1; p < PRECISION_COUNT; p++) {
                        double ns = it->candidates[i].has[p] ? gain_of(&it->candidates[i], p) : 0;
                        if (ns > 0)
                                it->gains[it->n_gains++] = (Gain){ i, p, ns, INFINITY };
                }
        qsort(it->gains, it->n_gains, sizeof(*it->gains), by_gain);
}

// The greatest gains first: those that time is too short for stay out.
static Status measure_errors(Search *it)
{
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < it->n_gains && status == STATUS_OK; i++) {
                Gain *gain = &it->gains[i];
                set_all(it, PRECISION_F32);
                it->candidates[gain->candidate].now = gain->precision;
                status = choosing_error(it, &gain->error);
                if (status != STATUS_OK)
                        gain->error = INFINITY;
                it->candidates[gain->candidate].error[gain->precision] = gain->error;
        }
        return status;
}

static int64_t search_ns(void)
{
        return limits.search_deadline_ms * 1000000;
}

static Status measure(Search *it)
{
        TRY(time_forms(it));
        list_gains(it);
        int64_t deadline_ns = it->ctx.deadline_ns;
        it->ctx.deadline_ns = MIN(deadline_ns, it->begin_ns + search_ns() / 100 * MEASURE_PERCENT);
        Status status = measure_errors(it);
        it->ctx.deadline_ns = deadline_ns;
        if (status == STATUS_DEADLINE)
                status = run_poll(&it->ctx);
        TRY(status);
        qsort(it->gains, it->n_gains, sizeof(*it->gains), by_sensitivity);
        return STATUS_OK;
}

// ---- select ----
// Of two forms of one node the one that saves more stays.
static void take_gain(Search *it, const Gain *gain)
{
        Candidate *candidate = &it->candidates[gain->candidate];
        if (candidate->now == PRECISION_F32 ||
            gain_of(candidate, gain->precision) > gain_of(candidate, candidate->now))
                candidate->now = gain->precision;
}

static void take_first(Search *it, uint32_t n)
{
        set_all(it, PRECISION_F32);
        for (uint32_t i = 0; i < n; i++)
                if (it->gains[i].error <= it->target)
                        take_gain(it, &it->gains[i]);
}

// The longest beginning of the list that holds, by bisection; then one by one what can still join,
// while there is time.
static Status select_forms(Search *it)
{
        uint32_t low = 0, high = it->n_gains;
        double error;
        while (low < high) {
                uint32_t middle = low + (high - low + 1) / 2;
                take_first(it, middle);
                TRY(choosing_error(it, &error));
                if (error <= it->target)
                        low = middle;
                else
                        high = middle - 1;
        }
        take_first(it, low);
        int64_t end_ns = it->begin_ns + search_ns() / 100 * SELECT_PERCENT;
        for (uint32_t i = low; i < it->n_gains && clock_ns() < end_ns; i++) {
                const Gain *gain = &it->gains[i];
                Candidate *candidate = &it->candidates[gain->candidate];
                Precision before = candidate->now;
                if (gain->error > it->target)
                        continue;
                take_gain(it, gain);
                if (candidate->now == before)
                        continue;
                TRY(choosing_error(it, &error));
                if (error > it->target)
                        candidate->now = before;
        }
        return STATUS_OK;
}

static bool is_any_chosen(const Search *it)
{
        for (uint32_t i = 0; i < it->n_candidates; i++)
                if (it->candidates[i].now != PRECISION_F32)
                        return true;
        return false;
}

// ---- the choice ----
static void start_choice(const Search *it, ChoiceOutcome outcome, Choice *choice)
{
        choice->bucket = it->asked->request.bucket;
        version_samples(it->asked->request.version, choice->samples);
        choice->outcome = outcome;
        choice->n_choose = outcome == CHOICE_NO_SAMPLES ? 0 : it->n_choose;
        choice->n_verify = outcome == CHOICE_NO_SAMPLES ? 0 : it->n_samples - it->n_choose;
}

static Status choice_of_none(const Search *it, ChoiceOutcome outcome, Choice **out_choice)
{
        TRY(choice_new(0, out_choice));
        start_choice(it, outcome, *out_choice);
        return STATUS_OK;
}

static Status choice_of_now(const Search *it, Choice **out_choice)
{
        Choice *choice;
        TRY(choice_new(it->n_candidates, &choice));
        start_choice(it, CHOICE_HOLDS, choice);
        for (; choice->n < it->n_candidates; choice->n++) {
                const Candidate *candidate = &it->candidates[choice->n];
                double error = candidate->error[candidate->now];
                choice->nodes[choice->n] =
                        (ChosenNode){ candidate->node, candidate->now, choice_rounded(error) };
        }
        *out_choice = choice;
        return STATUS_OK;
}

static Status verify(Search *it, const Choice *choice)
{
        _cleanup_(program_unrefp) Program *program = NULL;
        it->error = 0;
        for (uint32_t i = it->n_choose; i < it->n_samples; i++) {
                SearchSample *sample = &it->samples[i];
                if (program == NULL || !same_signature(sample, &it->samples[i - 1])) {
                        program = program_unref(program);
                        TRY(compile_sample(it, sample, choice, &program));
                }
                TRY(add_error(it, program, sample, &it->error));
        }
        return STATUS_OK;
}

static Status select_and_verify(Search *it, Choice **out_choice)
{
        double tolerance = bucket_tolerance(it->asked->request.bucket);
        it->target = tolerance * MARGIN;
        for (int round = 0; round < VERIFY_ROUNDS; round++, it->target /= 2) {
                _cleanup_(choice_unrefp) Choice *choice = NULL;
                TRY(select_forms(it));
                if (!is_any_chosen(it))
                        break;
                TRY(choice_of_now(it, &choice));
                TRY(verify(it, choice));
                choice->error = choice_rounded(it->error);
                if (it->error <= tolerance) {
                        *out_choice = take_ptr(choice);
                        return STATUS_OK;
                }
        }
        return choice_of_none(it, CHOICE_NONE_HOLDS, out_choice);
}

static Status search(Search *it, Choice **out_choice)
{
        Status status = open_samples(it);
        if (status == STATUS_NOT_FOUND)
                return choice_of_none(it, CHOICE_NO_SAMPLES, out_choice);
        TRY(status);
        status = compile_all(it);
        if (status == STATUS_DYNAMIC || status == STATUS_UNSUPPORTED)
                return choice_of_none(it, CHOICE_NO_FORMS, out_choice); // there is no program
        TRY(status);
        TRY(find_candidates(it));
        if (it->n_candidates == 0)
                return choice_of_none(it, CHOICE_NO_FORMS, out_choice);
        TRY(measure(it));
        if (it->n_gains == 0)
                return choice_of_none(it, CHOICE_NO_FORMS, out_choice); // those that it has are slower
        return select_and_verify(it, out_choice);
}

Status engine_choose(Engine *engine, const PlannedRun *plan, const RunContext *poll, Choice **out_choice)
{
        _cleanup_(choice_unrefp) Choice *choice = NULL;
        Search it = { .engine = engine, .asked = plan, .begin_ns = clock_ns() };
        run_context_init(&it.ctx);
        budget_init(&it.budget, (size_t)limits.max_run_memory);
        generator_seed(&it.generator, 0);
        frame_init(&it.frame);
        it.ctx.within = poll;
        it.ctx.budget = &it.budget;
        it.ctx.generator = &it.generator;
        it.ctx.deadline_ns = it.begin_ns + search_ns();
        bool is_sooner = poll->deadline_ns != 0 && poll->deadline_ns < it.ctx.deadline_ns;
        if (is_sooner)
                it.ctx.deadline_ns = poll->deadline_ns;
        atomic_fetch_add(&engine->n_searches, 1u);
        Status status = search(&it, &choice);
        if (status == STATUS_DEADLINE && !is_sooner)
                status = choice_of_none(&it, CHOICE_NO_TIME, &choice);
        close_search(&it);
        if (status == STATUS_OK)
                status = engine_check_pages(engine, plan->graph);
        TRY(status);
        TRY(engine_chosen(engine, plan->graph, choice));
        *out_choice = take_ptr(choice);
        return STATUS_OK;
}

// ---- as work ----
static void choice_key(const Graph *graph, int bucket, const char *samples, RegistryKey *out_key)
{
        Sha256 sha;
        sha256_start(&sha);
        sha256_add(&sha, "choice", sizeof("choice"));
        sha256_add(&sha, graph->content, sizeof(graph->content));
        sha256_add(&sha, &bucket, sizeof(bucket));
        sha256_add(&sha, samples, strlen(samples));
        HashHex hex = sha256_finish(&sha);
        memcpy(out_key->bytes, hex.hex, sizeof(out_key->bytes)); // half of the digits are enough
}

typedef struct ChooseWork {
        EngineWork work;
        PlannedRun plan; // without inputs
        Graph *graph;    // counted
        GraphVersion *version;
        RunContext ctx;
} ChooseWork;

// Whoever waited plans again, and finds the choice.
static Ticket *run_choose(EngineWork *take_work)
{
        ChooseWork *it = (ChooseWork *)take_work;
        Choice *choice = NULL;
        Status status = engine_choose(take_work->engine, &it->plan, &it->ctx, &choice);
        choice_unref(choice);
        if (status == STATUS_OK)
                fail(STATUS_CANCELLED, "the choice is made");
        Ticket *tickets = work_publish(take_work, NULL);
        engine_work_unref(take_work);
        return tickets;
}

static void free_choose(EngineWork *work)
{
        ChooseWork *it = (ChooseWork *)work;
        graph_unref(it->graph);
        graph_version_unref(it->version);
        free(it);
}

Status engine_start_choosing(Engine *engine, const PlannedRun *plan, Ticket *ticket, Wait *out_wait)
{
        static const EngineWorkType type = { .run = run_choose, .free = free_choose };
        char samples[CHOICE_SAMPLES + 1];
        void *none = NULL;
        WorkPlace place = { .registry = engine->programs, .has_group = true };
        ChooseWork *it = calloc(1, sizeof(*it));
        if (it == NULL)
                return fail_memory();
        version_samples(plan->request.version, samples);
        choice_key(plan->graph, plan->request.bucket, samples, &place.key);
        memcpy(place.group.bytes, plan->graph->content, sizeof(place.group.bytes));
        work_init(&it->work, &type, engine);
        it->work.stop = &it->ctx.cancelled;
        run_context_init(&it->ctx);
        it->graph = graph_ref((Graph *)(uintptr_t)plan->graph);
        it->version = graph_version_ref(plan->request.version);
        it->plan.graph = it->graph;
        it->plan.n_threads = plan->n_threads;
        it->plan.request.bucket = plan->request.bucket;
        it->plan.request.version = it->version;
        return work_begin(&it->work, &place, ticket, &none, out_wait);
}
