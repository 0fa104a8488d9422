// SPDX-License-Identifier: Apache-2.0
// Idle work, one piece at a time, while no request waits: programs for graphs whose signature
// leaves nothing open are built before their first run (warm-up), and stored graphs are tuned.
// Declared warm-ups begin although requests wait once they are overdue.
//
// Tuning: a stored graph's first program is compiled with a learning record. The record is written
// to the store and then used for every program of that content. A stored record is read when the
// graph comes in; it is made again only on another platform. Programs from before have other keys.
#include <string.h>
#include "core/base/limits.h"
#include "core/edit/edit.h"
#include "core/engine/choose.h"
#include "core/engine/private.h"

enum { MAX_PIECES = 256, PAUSE_NS = 100000000, MAX_DOUBLINGS = 10, LATE_NS = 1000000000 };
enum { MAX_CHOICE_LINES = TUNE_MAX_LINES / 2 }; // of one content

// ---- tune records by content ----
typedef struct TuneEntry {
        char content[2 * sizeof(RegistryKey) + 1];
        HashHex id;       // in the store (store_tune_id)
        SharedTune *tune; // counted; NULL: none (yet)
        Choice **choices; // counted: of precisions, for tolerances and samples; the oldest first
        uint32_t n_choices;
        bool decided; // read, learned or given up
} TuneEntry;

static void content_name(const void *content, char out[2 * sizeof(RegistryKey) + 1])
{
        static const char digits[] = "0123456789abcdef";
        const uint8_t *bytes = content;
        for (size_t i = 0; i < sizeof(RegistryKey); i++) {
                out[2 * i] = digits[bytes[i] >> 4];
                out[2 * i + 1] = digits[bytes[i] & 15];
        }
        out[2 * sizeof(RegistryKey)] = '\0';
}

SharedTune *shared_tune_unref(SharedTune *tune)
{
        if (tune == NULL || !refcount_put(&tune->ref))
                return NULL;
        tune_free(tune->record);
        free(tune);
        return NULL;
}

static Status shared_tune_new(TuneRecord *take_record, SharedTune **out_tune)
{
        SharedTune *tune = calloc(1, sizeof(*tune));
        if (tune == NULL) {
                tune_free(take_record);
                return fail_memory();
        }
        refcount_init(&tune->ref);
        tune->record = take_record;
        *out_tune = tune;
        return STATUS_OK;
}

static void choices_free(Choice **choices, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                choice_unref(choices[i]);
        free(choices);
}

static TuneEntry *entry_free(TuneEntry *entry)
{
        if (entry == NULL)
                return NULL;
        shared_tune_unref(entry->tune);
        choices_free(entry->choices, entry->n_choices);
        free(entry);
        return NULL;
}

static TuneEntry *entry_of(Engine *engine, const void *content)
{
        char name[2 * sizeof(RegistryKey) + 1];
        content_name(content, name);
        return string_map_get(&engine->tunes, name);
}

SharedTune *engine_tune_of(Engine *engine, const Graph *graph)
{
        SharedTune *tune = NULL;
        if (engine->store == NULL)
                return NULL;
        pthread_mutex_lock(&engine->mutex);
        const TuneEntry *entry = entry_of(engine, graph->derived ? graph->tuned_by : graph->content);
        if (entry != NULL && entry->tune != NULL) {
                tune = entry->tune;
                refcount_get(&tune->ref);
        }
        pthread_mutex_unlock(&engine->mutex);
        return tune;
}

bool engine_wants_tuning(Engine *engine, const Graph *graph)
{
        if (engine->store == NULL || engine->no_warm_up)
                return false;
        pthread_mutex_lock(&engine->mutex);
        const TuneEntry *entry = entry_of(engine, graph->content);
        bool wants = entry != NULL && !entry->decided;
        pthread_mutex_unlock(&engine->mutex);
        return wants;
}

// `tune` NULL: there is none, and none will be made.
static void decide(Engine *engine, const void *content, SharedTune *take_tune)
{
        pthread_mutex_lock(&engine->mutex);
        TuneEntry *entry = entry_of(engine, content);
        if (entry != NULL && !entry->decided) {
                entry->decided = true;
                entry->tune = take_ptr(take_tune);
        }
        pthread_mutex_unlock(&engine->mutex);
        shared_tune_unref(take_tune);
}

// What the stored record says: algorithms, once they are decided, and choices.
static Status read_stored(Engine *engine, TuneEntry *entry)
{
        _cleanup_(text_deinit) Text text = { 0 };
        _cleanup_(tune_freep) TuneRecord *record = NULL;
        TuneRecord *algorithms;
        TRY(store_get_tune(engine->store, &entry->id, &text));
        if (text.n == 0)
                return STATUS_OK;
        TRY(tune_read(text.data, text.n, &record));
        TRY(choices_read(record, &algorithms, &entry->choices, &entry->n_choices));
        if (tune_count(algorithms) == 0) {
                tune_free(algorithms);
                return STATUS_OK;
        }
        entry->decided = shared_tune_new(algorithms, &entry->tune) == STATUS_OK;
        return STATUS_OK;
}

void engine_recall_tune(Engine *engine, const GraphVersion *version)
{
        TuneEntry *entry = calloc(1, sizeof(*entry));
        if (entry == NULL)
                return; // without memory for it: not tuned
        content_name(version->key.bytes, entry->content);
        if (engine->store != NULL) {
                entry->id = store_tune_id(&version->stored);
                (void)read_stored(engine, entry);
        }
        pthread_mutex_lock(&engine->mutex);
        Status status = string_map_get(&engine->tunes, entry->content) != NULL
                                ? STATUS_CONFLICT
                                : string_map_set(&engine->tunes, entry->content, entry, NULL);
        pthread_mutex_unlock(&engine->mutex);
        if (status != STATUS_OK)
                entry_free(entry);
}

void engine_forget_tune(Engine *engine, const RegistryKey *content)
{
        char name[2 * sizeof(RegistryKey) + 1];
        content_name(content->bytes, name);
        pthread_mutex_lock(&engine->mutex);
        TuneEntry *entry = string_map_remove(&engine->tunes, name);
        pthread_mutex_unlock(&engine->mutex);
        entry_free(entry);
}

// ---- pieces of work ----
struct IdlePiece {
        IdlePiece *next;
        GraphVersion *version; // to warm up; counted, or NULL
        bool declared;         // as its setting says (declared.c); else as its signature says
        EngineWork *build;     // to learn from; or NULL
        uint32_t n_stops;      // how often requests came between
        int64_t due_ns;        // clock_ns(); 0: now
        int64_t by_ns;         // clock_ns(): overdue from then on; 0: never
};

static void piece_free(IdlePiece *piece)
{
        if (piece == NULL)
                return;
        graph_version_unref(piece->version);
        engine_work_unref(piece->build);
        free(piece);
}

// Interrupted work starts anew. So each pause is twice as long as the one before, and a server that
// is never idle long enough spends less and less on it.
static int64_t due_after(uint32_t n_stops)
{
        return n_stops == 0 ? 0
                            : clock_ns() + ((int64_t)PAUSE_NS << MIN(n_stops - 1, (uint32_t)MAX_DOUBLINGS));
}

static void append(Engine *engine, IdlePiece *piece)
{
        IdlePiece **link = &engine->idle;
        while (*link != NULL)
                link = &(*link)->next;
        *link = piece;
        engine->n_idle++;
}

bool engine_push_declared(Engine *engine, GraphVersion *version, uint32_t n_stops)
{
        IdlePiece *piece = calloc(1, sizeof(*piece));
        if (piece == NULL)
                return false;
        *piece = (IdlePiece){ .version = graph_version_ref(version),
                              .declared = true,
                              .n_stops = n_stops,
                              .due_ns = due_after(n_stops) };
        piece->by_ns = MAX(piece->due_ns, clock_ns()) + LATE_NS;
        append(engine, piece);
        return true;
}

// Best effort: without room the program is built when it is run.
static void push(Engine *engine, GraphVersion *take_version, EngineWork *take_build, uint32_t n_stops)
{
        IdlePiece *piece = calloc(1, sizeof(*piece));
        pthread_mutex_lock(&engine->mutex);
        bool room = piece != NULL && engine->n_idle < MAX_PIECES;
        if (room) {
                *piece = (IdlePiece){ .version = take_ptr(take_version),
                                      .build = take_ptr(take_build),
                                      .n_stops = n_stops,
                                      .due_ns = due_after(n_stops) };
                append(engine, piece);
        }
        pthread_mutex_unlock(&engine->mutex);
        if (room)
                return;
        graph_version_unref(take_version);
        engine_work_unref(take_build);
        free(piece);
}

static bool is_late(const IdlePiece *piece, int64_t now_ns)
{
        return piece->by_ns != 0 && piece->by_ns <= now_ns;
}

// The first that is overdue, or else due, by `now_ns`.
static IdlePiece *pop(Engine *engine, int64_t now_ns)
{
        IdlePiece **found = NULL, *piece = NULL;
        pthread_mutex_lock(&engine->mutex);
        for (IdlePiece **link = &engine->idle; *link != NULL; link = &(*link)->next) {
                bool late = is_late(*link, now_ns);
                if (late || (found == NULL && (*link)->due_ns <= now_ns))
                        found = link;
                if (late)
                        break;
        }
        if (found != NULL) {
                piece = *found;
                *found = piece->next;
                engine->n_idle--;
        }
        pthread_mutex_unlock(&engine->mutex);
        return piece;
}

void engine_prepare(Engine *engine, GraphVersion *version)
{
        if (!engine->no_warm_up)
                push(engine, graph_version_ref(version), NULL, 0);
}

bool engine_has_idle_work(Engine *engine, int64_t *out_due_ns, int64_t *out_by_ns)
{
        int64_t due_ns = INT64_MAX, by_ns = INT64_MAX;
        pthread_mutex_lock(&engine->mutex);
        for (const IdlePiece *piece = engine->idle; piece != NULL; piece = piece->next) {
                due_ns = MIN(due_ns, piece->due_ns);
                by_ns = piece->by_ns == 0 ? by_ns : MIN(by_ns, piece->by_ns);
        }
        pthread_mutex_unlock(&engine->mutex);
        if (due_ns == INT64_MAX)
                return false;
        *out_due_ns = due_ns;
        *out_by_ns = by_ns == INT64_MAX ? 0 : by_ns;
        return true;
}

void engine_close_idle(Engine *engine)
{
        IdlePiece *piece;
        while ((piece = pop(engine, INT64_MAX)) != NULL)
                piece_free(piece);
        for (uint32_t i = 0; i < engine->tunes.n; i++) {
                if (engine->tunes.entries[i].key != NULL)
                        entry_free(engine->tunes.entries[i].value);
        }
        string_map_deinit(&engine->tunes);
}

// ---- warm-up ----
static Status tensor_input(Dtype dtype, int rank, const int64_t *size, Value *out_value)
{
        TensorMeta meta;
        Tensor *tensor;
        int64_t numel;
        TRY(shape_numel(rank, size, &numel));
        meta_init(&meta, dtype, rank, size);
        TRY(tensor_new_view(NULL, &meta, 0, &tensor));
        *out_value = value_tensor_take(tensor);
        return STATUS_OK;
}

static Status static_input(const Input *input, Value *out_value)
{
        int64_t size[MAX_RANK];
        out_value->kind = VALUE_ABSENT;
        if (input->kind == INPUT_LITERAL)
                return STATUS_OK;
        if ((input->value_kind != VALUE_TENSOR && input->value_kind != VALUE_NONE) ||
            input->spec.dtype == DTYPE_NONE || input->spec.rank < 0)
                return fail(STATUS_DYNAMIC, "an input's signature is open");
        for (int d = 0; d < input->spec.rank; d++) {
                if (input->spec.size[d].expr != NULL)
                        return fail(STATUS_DYNAMIC, "an input's size is open");
                size[d] = input->spec.size[d].value;
        }
        return tensor_input(input->spec.dtype, input->spec.rank, size, out_value);
}

// As `shapes` say, else as the signature does.
static Status shaped_input(const Input *input, const EditShape *shapes, uint32_t n, Value *out_value)
{
        Dtype dtype = input->spec.dtype == DTYPE_NONE ? DTYPE_F32 : input->spec.dtype;
        for (uint32_t i = 0; i < n; i++)
                if (shapes[i].placeholder == input->placeholder)
                        return tensor_input(dtype, shapes[i].rank, shapes[i].size, out_value);
        return static_input(input, out_value);
}

Status engine_shapes_plan(const Graph *graph, const char *text, int n_threads, PlannedRun *plan)
{
        const Signature *signature = &graph->signature;
        EditShape shapes[EDIT_MAX_SHAPES];
        uint32_t n = 0, n_shapes = 0;
        TRY(edit_read_shapes(graph, text, shapes, &n_shapes));
        Value *values = new_array(signature->n_inputs, sizeof(*values));
        if (values == NULL)
                return fail_memory();
        Status status = STATUS_OK;
        for (uint32_t i = 0; i < signature->n_inputs && status == STATUS_OK; i++)
                if (signature->inputs[i].kind != INPUT_STATE)
                        status = shaped_input(&signature->inputs[i], shapes, n_shapes, &values[n++]);
        RunRequest request = { .inputs = { values, n }, .mode = RUN_MODE_COMPILED };
        if (status == STATUS_OK)
                status = engine_bind(graph, &request, plan);
        if (status == STATUS_OK)
                plan->n_threads = engine_width(plan, n_threads);
        for (uint32_t i = 0; i < n; i++)
                value_clear(&values[i]);
        free(values);
        return status;
}

static EngineWork *warm_up(Engine *engine, GraphVersion *version, uint32_t n_stops, int n_threads)
{
        PlannedRun plan = { .graph = NULL };
        EngineWork *build = NULL;
        Graph *graph = registry_peek(engine->decoded, &version->key);
        if (graph == NULL)
                return NULL;
        // Packed weights are a second copy: for a large graph it is made when somebody runs it.
        if (graph->weights_bytes <= (size_t)limits.max_warm_up &&
            engine_shapes_plan(graph, "", n_threads, &plan) == STATUS_OK) {
                plan.request.precision = (Precision)atomic_load(&version->precision);
                plan.request.bucket = atomic_load(&version->bucket);
                plan.request.version = version;
                if (engine_wants_tuning(engine, graph))
                        (void)program_build_learning(engine, &plan, &build);
                else
                        (void)engine_plan_background(engine, &plan, &build);
                if (build != NULL)
                        program_build_warms(build, version, n_stops);
        }
        planned_run_deinit(&plan);
        graph_unref(graph);
        return build;
}

EngineWork *engine_idle_work(Engine *engine, int n_threads)
{
        EngineWork *build = NULL;
        IdlePiece *piece;
        while (build == NULL && (piece = pop(engine, clock_ns())) != NULL) {
                if (piece->declared)
                        build = declared_work_new(engine, piece->version, piece->n_stops,
                                                  is_late(piece, clock_ns()), n_threads);
                else if (piece->version != NULL)
                        build = warm_up(engine, piece->version, piece->n_stops, n_threads);
                else if (engine_wants_tuning(engine, program_build_graph(piece->build)))
                        build = take_ptr(piece->build);
                piece_free(piece);
        }
        return build;
}

void engine_warm_up_again(Engine *engine, GraphVersion *version, uint32_t n_stops)
{
        push(engine, graph_version_ref(version), NULL, n_stops);
}

// ---- tuning ----
// One piece per graph is enough: the first one that is built decides for all its programs.
static bool will_learn(Engine *engine, const Graph *graph)
{
        bool will = false;
        pthread_mutex_lock(&engine->mutex);
        for (const IdlePiece *piece = engine->idle; piece != NULL && !will; piece = piece->next)
                will = piece->build != NULL && memcmp(program_build_graph(piece->build)->content,
                                                      graph->content, sizeof(graph->content)) == 0;
        pthread_mutex_unlock(&engine->mutex);
        return will;
}

void engine_learn_later(Engine *engine, const PlannedRun *plan)
{
        EngineWork *build = NULL;
        if (engine_wants_tuning(engine, plan->graph) && !will_learn(engine, plan->graph) &&
            program_build_learning(engine, plan, &build) == STATUS_OK)
                push(engine, NULL, build, 0);
}

void engine_learn_again(Engine *engine, EngineWork *take_build, uint32_t n_stops)
{
        push(engine, NULL, take_build, n_stops);
}

// ---- records on disk ----
// A search that had no time says nothing of the graph: the next server searches again.
static Status learn_choice(const Choice *choice, TuneRecord *record)
{
        return choice == NULL || choice->outcome == CHOICE_NO_TIME ? STATUS_OK : choice_learn(choice, record);
}

// What is known of a content, taken under `mutex` in no time. Its record, which may be long, is
// made of this copy, outside.
typedef struct TuneCopy {
        HashHex id;
        SharedTune *tune; // counted, or NULL
        Choice **choices; // counted, the oldest first; room for one more
        uint32_t n;
} TuneCopy;

static void tune_copy_deinit(TuneCopy *copy)
{
        shared_tune_unref(copy->tune);
        choices_free(copy->choices, copy->n);
}

static Status copy_locked(const TuneEntry *entry, TuneCopy *out)
{
        if (entry == NULL)
                return fail(STATUS_NOT_FOUND, "the graph was deleted");
        out->choices = new_array(entry->n_choices + 1, sizeof(*out->choices));
        if (out->choices == NULL)
                return fail_memory();
        for (; out->n < entry->n_choices; out->n++)
                out->choices[out->n] = choice_ref(entry->choices[out->n]);
        out->id = entry->id;
        out->tune = entry->tune;
        if (out->tune != NULL)
                refcount_get(&out->tune->ref);
        return STATUS_OK;
}

static Status tune_copy(Engine *engine, const Graph *graph, TuneCopy *out)
{
        pthread_mutex_lock(&engine->mutex);
        Status status = copy_locked(entry_of(engine, graph->content), out);
        pthread_mutex_unlock(&engine->mutex);
        return status;
}

static int by_lines(const void *a, const void *b)
{
        return choice_order(*(Choice *const *)a, *(Choice *const *)b);
}

static Status print_record(const TuneCopy *copy, const TuneRecord *algorithms, Text *out)
{
        _cleanup_(tune_freep) TuneRecord *all = NULL;
        _cleanup_(freep) Choice **sorted = new_array(copy->n, sizeof(*sorted));
        if (sorted == NULL)
                return fail_memory();
        TRY(tune_new(false, &all));
        for (uint32_t i = 0; i < tune_count(algorithms); i++) {
                const char *key, *algorithm;
                tune_line(algorithms, i, &key, &algorithm);
                TRY(tune_learn(all, key, algorithm));
        }
        memcpy(sorted, copy->choices, copy->n * sizeof(*sorted));
        qsort(sorted, copy->n, sizeof(*sorted), by_lines);
        for (uint32_t i = 0; i < copy->n; i++)
                TRY(learn_choice(sorted[i], all));
        tune_write(all, out);
        return text_status(out);
}

// Under `writing`. `algorithms` NULL: those that the copy has.
static Status store_record(Engine *engine, const TuneCopy *copy, const TuneRecord *algorithms)
{
        _cleanup_(text_deinit) Text text = { 0 };
        if (engine->store == NULL)
                return STATUS_OK;
        if (algorithms == NULL && copy->tune != NULL)
                algorithms = copy->tune->record;
        TRY(print_record(copy, algorithms, &text));
        return store_put_tune(engine->store, &copy->id, (ByteSpan){ (const uint8_t *)text.data, text.n });
}

// Nothing is written when the last version with this content was deleted meanwhile.
static Status store_algorithms(Engine *engine, const Graph *graph, const TuneRecord *algorithms)
{
        TuneCopy copy = { .tune = NULL };
        Status status = tune_copy(engine, graph, &copy);
        if (status == STATUS_OK)
                status = store_record(engine, &copy, algorithms);
        tune_copy_deinit(&copy);
        return status;
}

Status engine_learnt(Engine *engine, const Graph *graph, const TuneRecord *record, SharedTune **out_tune)
{
        TuneRecord *copy;
        SharedTune *tune = NULL;
        Text text = { 0 };
        pthread_mutex_lock(&engine->mutex);
        const TuneEntry *entry = entry_of(engine, graph->content);
        bool wanted = entry != NULL && !entry->decided;
        pthread_mutex_unlock(&engine->mutex);
        if (!wanted)
                return fail(STATUS_CANCELLED, "the graph has gone, or has been tuned meanwhile");
        tune_print(record, &text);
        Status status = text_status(&text);
        if (status == STATUS_OK)
                status = tune_parse(text.data, text.n, &copy);
        text_deinit(&text);
        if (status == STATUS_OK)
                status = shared_tune_new(copy, &tune);
        pthread_mutex_lock(&engine->writing);
        if (status == STATUS_OK && tune_count(tune->record) > 0)
                status = store_algorithms(engine, graph, tune->record);
        if (status == STATUS_NOT_FOUND)
                status = STATUS_OK; // deleted: its programs end with the runs that use them
        if (status == STATUS_OK) {
                refcount_get(&tune->ref);
                *out_tune = tune;
                decide(engine, graph->content, tune);
        } else {
                shared_tune_unref(tune);
                decide(engine, graph->content, NULL);
        }
        pthread_mutex_unlock(&engine->writing);
        return status;
}

void engine_not_learnt(Engine *engine, const Graph *graph)
{
        decide(engine, graph->content, NULL);
}

// ---- choices of precisions ----
static Choice *find_choice(Choice *const *choices, uint32_t n, int bucket, const char *samples)
{
        for (uint32_t i = n; i > 0; i--)
                if (choices[i - 1]->bucket == bucket && strcmp(choices[i - 1]->samples, samples) == 0)
                        return choices[i - 1];
        return NULL;
}

Choice *engine_choice_of(Engine *engine, const PlannedRun *plan)
{
        char samples[CHOICE_SAMPLES + 1];
        Choice *choice = NULL;
        version_samples(plan->request.version, samples);
        pthread_mutex_lock(&engine->mutex);
        const TuneEntry *entry = entry_of(engine, plan->graph->content);
        if (entry != NULL)
                choice = choice_ref(
                        find_choice(entry->choices, entry->n_choices, plan->request.bucket, samples));
        pthread_mutex_unlock(&engine->mutex);
        return choice;
}

// The newest that fit into MAX_CHOICE_LINES with it stay.
static void add_choice(TuneCopy *copy, const Choice *choice)
{
        uint64_t n_lines = choice_lines(choice);
        uint32_t first = copy->n;
        while (first > 0 && n_lines + choice_lines(copy->choices[first - 1]) <= MAX_CHOICE_LINES)
                n_lines += choice_lines(copy->choices[--first]);
        for (uint32_t i = 0; i < first; i++)
                choice_unref(copy->choices[i]);
        copy->n -= first;
        memmove(copy->choices, copy->choices + first, copy->n * sizeof(*copy->choices));
        copy->choices[copy->n++] = choice_ref(choice);
}

// The entry's choices and the copy's change places.
static Status swap_choices(Engine *engine, const Graph *graph, TuneCopy *copy)
{
        pthread_mutex_lock(&engine->mutex);
        TuneEntry *entry = entry_of(engine, graph->content);
        if (entry != NULL) {
                TuneCopy before = { .choices = entry->choices, .n = entry->n_choices };
                entry->choices = copy->choices;
                entry->n_choices = copy->n;
                copy->choices = before.choices;
                copy->n = before.n;
        }
        pthread_mutex_unlock(&engine->mutex);
        return entry != NULL ? STATUS_OK : fail(STATUS_NOT_FOUND, "the graph was deleted");
}

static Status keep_choice(Engine *engine, const Graph *graph, const Choice *choice, TuneCopy *copy)
{
        TRY(tune_copy(engine, graph, copy));
        if (find_choice(copy->choices, copy->n, choice->bucket, choice->samples) != NULL)
                return STATUS_OK;
        add_choice(copy, choice);
        if (store_record(engine, copy, NULL) != STATUS_OK)
                engine_say(engine, "a choice within a tolerance is not kept on disk: %s",
                           failure_current()->message);
        return swap_choices(engine, graph, copy);
}

Status engine_chosen(Engine *engine, const Graph *graph, const Choice *choice)
{
        TuneCopy copy = { .tune = NULL };
        pthread_mutex_lock(&engine->writing);
        Status status = keep_choice(engine, graph, choice, &copy);
        pthread_mutex_unlock(&engine->writing);
        tune_copy_deinit(&copy);
        return status;
}
