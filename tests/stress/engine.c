// SPDX-License-Identifier: Apache-2.0
// Threads upload, replace, delete, list and run graphs under the same names, eagerly and compiled,
// with so little room for programs that they are evicted all the time. Version k of a graph
// computes x * k: every answer must be a whole multiple of x by some k that was uploaded, whatever
// happens beside it. Threads that are parked for a program wait for it, or leave.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/run/run.h"
#include "api/readers/upload.h"
#include "core/base/limits.h"
#include "core/engine/describe.h"
#include "core/interp/interp.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

enum { N_NAMES = 2, N_FACTORS = 5, N_SIZES = 12, N_PENDING = 4 };
static const int64_t PROGRAM_MEMORY = 20000, PROFILE_MEMORY = 50000;

static Engine *engine;
static int64_t end_ns;
static _Atomic long n_runs, n_puts, n_deletes, n_missed, n_builds, n_waits, n_left, n_programs;

static void complain(const char *what)
{
        fprintf(stderr, "stress_engine: %s: %s\n", what, failure_current()->message);
        abort();
}

static const char *name_at(unsigned number)
{
        static const char *const names[N_NAMES] = { "first", "second" };
        return names[number % N_NAMES];
}

static void put(unsigned *seed)
{
        char text[512];
        int factor = 1 + rand_r(seed) % N_FACTORS;
        int n = snprintf(text, sizeof(text),
                         "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", "
                         "\"target\": \"x\"}, {\"op\": "
                         "\"call_function\", \"name\": \"y\", "
                         "\"target\": \"torch.mul\", \"args\": [\"%%x\", %d]}, {\"op\": \"output\", "
                         "\"name\": \"output\", \"target\": "
                         "\"output\", \"args\": [\"%%y\"]}]}",
                         factor);
        Storage *bytes = NULL;
        Graph *graph = NULL;
        GraphVersion *version = NULL;
        StoreVersion identified;
        bool created;
        if (storage_new((size_t)n, false, NULL, &bytes) != STATUS_OK)
                complain("memory");
        memcpy(bytes->data, text, (size_t)n);
        UploadPart part = { .name = "", .bytes = bytes };
        if (upload_identify(&part, 1, NULL, "fx", &identified) != STATUS_OK ||
            upload_decode(&part, 1, NULL, true, &graph) != STATUS_OK)
                complain("upload");
        PutRequest put = { .name = name_at((unsigned)rand_r(seed)),
                           .parts = &part,
                           .n_parts = 1,
                           .identified = &identified,
                           .graph = graph };
        if (engine_put(engine, &put, &version, &created) != STATUS_OK)
                complain("put");
        graph_version_unref(version);
        graph_unref(graph);
        storage_unref(bytes);
        atomic_fetch_add(&n_puts, 1);
}

static bool is_known(const float *data)
{
        for (int factor = 1; factor <= N_FACTORS; factor++)
                if (data[0] == 3.0f * (float)factor && data[1] == -4.0f * (float)factor)
                        return true;
        return false;
}

// ---- callers that wait ----
typedef struct Waiter {
        Ticket ticket; // first: wake_all finds the waiter by it
        pthread_mutex_t mutex;
        pthread_cond_t woken;
        bool is_woken;
} Waiter;

static void wake_all(Ticket *tickets)
{
        while (tickets != NULL) {
                Waiter *waiter = (Waiter *)tickets;
                tickets = tickets->next;
                pthread_mutex_lock(&waiter->mutex);
                waiter->is_woken = true;
                pthread_cond_signal(&waiter->woken);
                pthread_mutex_unlock(&waiter->mutex);
        }
}

// Builds lie about for a while, as in a queue; whoever is about to wait builds what lies there
// first.
static pthread_mutex_t pending_mutex = PTHREAD_MUTEX_INITIALIZER;
static EngineWork *pending[N_PENDING];

static EngineWork *take_pending(void)
{
        EngineWork *build = NULL;
        pthread_mutex_lock(&pending_mutex);
        for (int i = 0; i < N_PENDING && build == NULL; i++)
                build = take_ptr(pending[i]);
        pthread_mutex_unlock(&pending_mutex);
        return build;
}

static bool put_pending(EngineWork *build)
{
        pthread_mutex_lock(&pending_mutex);
        int i = 0;
        while (i < N_PENDING && pending[i] != NULL)
                i++;
        if (i < N_PENDING)
                pending[i] = build;
        pthread_mutex_unlock(&pending_mutex);
        return i < N_PENDING;
}

static void build_pending(unsigned *seed)
{
        EngineWork *build;
        while ((build = take_pending()) != NULL) {
                wake_all(rand_r(seed) % 8 == 0 ? engine_work_drop(build) : engine_work_do(build));
                atomic_fetch_add(&n_builds, 1);
        }
}

// False: the caller left. The waiter may not go before its ticket has come back or was taken back.
static bool wait_for_program(Waiter *waiter, PlannedRun *plan, unsigned *seed, bool *out_again)
{
        if (rand_r(seed) % 3 == 0 && ticket_cancel(&waiter->ticket)) {
                atomic_fetch_add(&n_left, 1);
                return false;
        }
        build_pending(seed);
        pthread_mutex_lock(&waiter->mutex);
        while (!waiter->is_woken)
                pthread_cond_wait(&waiter->woken, &waiter->mutex);
        waiter->is_woken = false;
        pthread_mutex_unlock(&waiter->mutex);
        atomic_fetch_add(&n_waits, 1);
        if (engine_planned(plan, &waiter->ticket, out_again) != STATUS_OK)
                complain("a build failed");
        ticket_drop(&waiter->ticket); // as good as new, also when ticket_cancel came too late
        return true;
}

static bool plan_run(PlannedRun *plan, unsigned *seed)
{
        Waiter waiter = { .is_woken = false };
        bool again = true, stays = true;
        pthread_mutex_init(&waiter.mutex, NULL);
        pthread_cond_init(&waiter.woken, NULL);
        while (again && stays) {
                Wait wait;
                again = false;
                if (engine_plan(engine, plan, &waiter.ticket, &wait) != STATUS_OK)
                        complain("plan");
                while (wait.work != NULL && !put_pending(wait.work))
                        build_pending(seed);
                if (wait.parked)
                        stays = wait_for_program(&waiter, plan, seed, &again);
        }
        pthread_mutex_destroy(&waiter.mutex);
        pthread_cond_destroy(&waiter.woken);
        return stays;
}

static void run(GraphVersion *version, Graph *graph, Frame *frame, unsigned *seed)
{
        Text body = { 0 };
        RunCall run_call;
        ApiCall call = { .route = &routes[ROUTE_RUN] };
        int size = 2 + rand_r(seed) % N_SIZES;
        text_add(&body, "{\"inputs\": {\"x\": [3.0, -4.0");
        for (int i = 2; i < size; i++)
                text_add(&body, ", 1.0");
        text_add(&body, "]}}");
        size_t n = body.n;
        run_call_init(&run_call);
        run_call.task.graph = graph;
        run_call.task.mode = (RunMode)(rand_r(seed) % 3);
        if (storage_adopt(text_take(&body), n, true, NULL, NULL, &call.body) != STATUS_OK)
                complain("memory");
        if (run_decode(&call, &run_call) != STATUS_OK || run_bind(&run_call) != STATUS_OK)
                complain("bind");
        if (plan_run(&run_call.task.plan, seed)) {
                if (run_execute(&run_call, frame) != STATUS_OK)
                        complain("run");
                if (run_call.task.result.value.kind != VALUE_TENSOR ||
                    !is_known(tensor_data(run_call.task.result.value.tensor)))
                        complain("an answer that no version gives");
                snprintf(run_call.task.profile->id, sizeof(run_call.task.profile->id), "%ld",
                         atomic_fetch_add(&n_runs, 1));
                engine_record(engine, version, run_call.task.profile);
                atomic_fetch_add(&n_programs, run_program_id(run_call.task.profile->labels) != NULL);
        }
        api_call_deinit(&call);
        run_call_deinit(&run_call);
}

static void find_and_run(Frame *frame, unsigned *seed)
{
        GraphVersion *version = NULL;
        Graph *graph = NULL;
        if (engine_find(engine, name_at((unsigned)rand_r(seed)), 0, &version) != STATUS_OK ||
            engine_graph(engine, version, &graph) != STATUS_OK) {
                if (failure_current()->status != STATUS_NOT_FOUND)
                        complain("find");
                atomic_fetch_add(&n_missed, 1);
        } else {
                run(version, graph, frame, seed);
        }
        graph_version_unref(version);
}

static void list(void)
{
        ProgramInfo programs[ENGINE_MAX_PROGRAMS];
        GraphVersion *rows[N_NAMES];
        uint32_t n;
        bool more;
        if (engine_list(engine, NULL, N_NAMES, rows, &n, &more) != STATUS_OK)
                complain("list");
        for (uint32_t i = 0; i < n; i++) {
                uint32_t n_listed = engine_programs(engine, rows[i], programs);
                while (n_listed > 0)
                        program_info_deinit(&programs[--n_listed]);
                SignatureSummary *summary;
                if (profile_stats_read(rows[i]->stats, (ProfileGrouping){ PROFILE_BY_NODE, 0 }, &summary,
                                       &n_listed) != STATUS_OK)
                        complain("statistics");
                profile_summary_free(summary, n_listed);
                graph_version_unref(rows[i]);
        }
}

static void *work(void *argument)
{
        unsigned seed = (unsigned)(uintptr_t)argument;
        Frame frame;
        frame_init(&frame);
        while (clock_ns() < end_ns) {
                int dice = rand_r(&seed) % 20;
                if (dice < 10)
                        build_pending(&seed);
                if (dice < 4) {
                        put(&seed);
                } else if (dice == 4) {
                        if (engine_delete(engine, name_at((unsigned)rand_r(&seed)), 0) == STATUS_OK)
                                atomic_fetch_add(&n_deletes, 1);
                } else if (dice == 5) {
                        list();
                } else {
                        find_and_run(&frame, &seed);
                }
        }
        build_pending(&seed);
        frame_deinit(&frame);
        return NULL;
}

int main(int argc, char **argv)
{
        enum { N_THREADS = 4 };
        pthread_t threads[N_THREADS];
        EngineOptions options = { .loader = upload_loader };
        limits.max_program_memory = PROGRAM_MEMORY;
        limits.max_profile_memory = PROFILE_MEMORY;
        end_ns = clock_ns() + (argc > 1 ? atoll(argv[1]) : 5) * 1000000000;
        if (ops_init() != STATUS_OK || targets_init() != STATUS_OK ||
            engine_open(&options, &engine) != STATUS_OK)
                complain("start");
        for (uintptr_t i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)(i + 1));
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        EngineStats stats = engine_stats(engine);
        printf("%ld runs (%ld of programs), %ld uploads, %ld deletes, %ld not found, %ld builds, %ld waits, "
               "%ld left, %llu evicted\n",
               n_runs, n_programs, n_puts, n_deletes, n_missed, n_builds, n_waits, n_left,
               (unsigned long long)stats.programs.evictions);
        engine_close(engine);
        return n_runs > 0 && n_programs > 0 && n_puts > 0 && n_deletes > 0 && n_waits > 0 && n_left > 0 &&
                               stats.programs.evictions > 0 && stats.profiles.evictions > 0
                       ? 0
                       : 1;
}
