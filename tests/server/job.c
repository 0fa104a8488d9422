// SPDX-License-Identifier: Apache-2.0
#include "server/job.h"
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include "api/readers/upload.h"
#include "core/ops/op.h"
#include "core/targets/targets.h"

// One worker, an engine without a folder, and a graph whose run takes far longer than a test may.
static struct {
        Engine *engine;
        Workers *workers;
        ServerFacts facts;
        sem_t came_back;
} house;

enum { N_PRODUCTS = 4000 };

static void come_back(Job *job)
{
        (void)job;
        sem_post(&house.came_back);
}

static Job *make_job(const char *method, const char *target, const Text *body)
{
        Job *job;
        char allow[64];
        cr_assert_eq(job_new(house.workers, &job), STATUS_OK);
        cr_assert_eq(route_parse(method, target, &job->call, allow), STATUS_OK);
        uint8_t *bytes =
                aligned_alloc(STORAGE_ALIGN, (body->n + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN);
        memcpy(bytes, body->data, body->n);
        cr_assert_eq(storage_adopt(bytes, body->n, true, NULL, NULL, &job->call.body), STATUS_OK);
        job->is_run = strcmp(method, "POST") == 0;
        job->context = (ApiContext){ .engine = house.engine, .facts = &house.facts };
        job->received_ns = clock_ns();
        job->owner = &house;
        job->finished = come_back;
        return job;
}

static void upload_slow_graph(void)
{
        Text text = { .n = 0 };
        text_add(&text, "{\"format\": \"fx/1\", \"nodes\": [{\"op\": \"placeholder\", \"name\": \"x\", "
                        "\"target\": \"x\"},"
                        "{\"op\": \"call_method\", \"name\": \"p0\", \"target\": \"expand\", \"args\": "
                        "[\"%x\", 700, 700]},");
        for (int i = 0; i < N_PRODUCTS; i++)
                text_addf(&text,
                          "{\"op\": \"call_function\", \"name\": \"p%d\", \"target\": \"torch.matmul\", "
                          "\"args\": [\"%%p%d\", \"%%p%d\"]},",
                          i + 1, i, i);
        text_addf(
                &text,
                "{\"op\": \"output\", \"name\": \"output\", \"target\": \"output\", \"args\": [\"%%p%d\"]}]}",
                N_PRODUCTS);
        Job *job = make_job("PUT", "/v1/graphs/slow", &text);
        cr_assert_eq(job_submit(job), STATUS_OK);
        sem_wait(&house.came_back);
        cr_assert_eq(job->reply.status, 201, "%.*s", (int)job->reply.body.n, job->reply.body.data);
        job_free(job);
        text_deinit(&text);
}

static Job *make_run_in(const char *mode)
{
        Text body = { .n = 0 };
        text_addf(&body, "{\"inputs\": {\"x\": [[0.001]]}, \"mode\": \"%s\"}", mode);
        Job *job = make_job("POST", "/v1/graphs/slow/run", &body);
        text_deinit(&body);
        return job;
}

static Job *make_run(void)
{
        return make_run_in("eager");
}

static void set_up(void)
{
        cr_assert(ops_init() == STATUS_OK && targets_init() == STATUS_OK);
        EngineOptions engine = { .loader = upload_loader, .no_warm_up = true };
        sem_init(&house.came_back, 0, 0);
        cr_assert_eq(engine_open(&engine, &house.engine), STATUS_OK);
        cr_assert_eq(workers_start(1, 1, 16, &house.workers), STATUS_OK);
        upload_slow_graph();
}

static void tear_down(void)
{
        cr_expect_eq(engine_stats(house.engine).runs, 0, "no run came to its end");
        workers_stop(house.workers);
        engine_close(house.engine);
        sem_destroy(&house.came_back);
}

static void until(int64_t queued, int64_t running)
{
        int64_t n_queued = -1, n_running = -1;
        while (n_queued != queued || n_running != running)
                workers_counts(house.workers, &n_queued, &n_running);
}

TestSuite(job, .init = set_up, .fini = tear_down);

Test(job, cancelled_on_a_worker_it_comes_back_soon_with_499)
{
        Job *job = make_run();
        cr_assert_eq(job_submit(job), STATUS_OK);
        until(0, 1);
        while (!atomic_load(&job->found_graph)) { // it has begun
        }
        job_cancel(job);
        sem_wait(&house.came_back);
        cr_assert_eq(job->reply.status, 499);
        cr_assert_str_eq(job->reply.code, "cancelled");
        job_free(job);
}

Test(job, cancelled_in_the_queue_it_comes_back_at_once_and_runs_nothing)
{
        Job *first = make_run(), *job = make_run();
        cr_assert_eq(job_submit(first), STATUS_OK);
        until(0, 1);
        cr_assert_eq(job_submit(job), STATUS_OK);
        job_cancel(job);
        cr_assert_eq(sem_trywait(&house.came_back), 0);
        cr_assert_eq(job->reply.status, 499);
        until(0, 1);
        job_free(job);
        job_cancel(first);
        sem_wait(&house.came_back);
        job_free(first);
}

// One run, then `parked` and another run behind it; the first one goes, so that the only worker
// parks the job, whose build is queued behind the run that it has then.
static void park(Job *parked, Job **out_running)
{
        Job *first = make_run();
        *out_running = make_run();
        cr_assert_eq(job_submit(first), STATUS_OK);
        until(0, 1);
        cr_assert_eq(job_submit(parked), STATUS_OK);
        cr_assert_eq(job_submit(*out_running), STATUS_OK);
        job_cancel(first);
        sem_wait(&house.came_back);
        job_free(first);
        until(0, 1);
}

Test(job, cancelled_while_it_waits_for_its_program_it_comes_back_at_once)
{
        Job *job = make_run_in("compiled"), *other;
        park(job, &other);
        cr_assert_eq(job->step, STEP_PROGRAM);
        job_cancel(job);
        cr_assert_eq(sem_trywait(&house.came_back), 0);
        cr_assert_eq(job->reply.status, 499);
        job_free(job);
        job_cancel(other);
        sem_wait(&house.came_back);
        job_free(other);
}

Test(job, detached_while_it_waits_for_its_program_it_frees_itself_at_once)
{
        Job *job = make_run_in("compiled"), *other;
        park(job, &other);
        job_detach(job);
        job_cancel(other);
        sem_wait(&house.came_back);
        job_free(other);
        cr_assert_neq(sem_trywait(&house.came_back), 0, "nobody is told");
}

Test(job, detached_it_stops_soon_and_frees_itself)
{
        Job *first = make_run(), *second = make_run();
        cr_assert_eq(job_submit(first), STATUS_OK);
        until(0, 1);
        cr_assert_eq(job_submit(second), STATUS_OK);
        job_detach(second);
        job_detach(first);
        until(0, 0);
        cr_assert_neq(sem_trywait(&house.came_back), 0, "nobody is told");
}

Test(job, it_is_answered_by_the_clock_or_changes_its_session)
{
        Job *job;
        cr_assert_eq(job_new(house.workers, &job), STATUS_OK);
        cr_expect(job_never_late(job), "a job without a deadline");
        atomic_store(&job->deadline_ns, 1000);
        cr_expect(!job_answer_late(job, 900), "the deadline moved after it was read");
        cr_expect(job_answer_late(job, 1000));
        cr_expect(!job_never_late(job), "it was answered");
        atomic_store(&job->deadline_ns, 1000);
        cr_expect(job_never_late(job));
        cr_expect(!job_answer_late(job, 1000), "it changed its session");
        job_free(job);
}
