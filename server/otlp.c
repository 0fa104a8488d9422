// SPDX-License-Identifier: Apache-2.0
// A ring of records under a mutex that is held for one copy; the thread moves up to BATCH of them
// to memory of its own and posts them. A batch that the collector could take later (no connection,
// 429, 502, 503, 504, as OTLP has it) is tried again after 1, 2, 4 … seconds, TRIES times in all,
// while the ring fills; any other answer but 2xx drops it. The log has one line when sending begins
// to fail and one when it works again.
#include "server/otlp.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "server/client.h"
#include "server/job.h"
#include "server/log.h"

enum { BATCH = 256, TRIES = 5, GATHER_MS = 100, SEND_MS = 10000, LAST_SEND_MS = 900, MAX_REPLY = 65536 };

struct Otlp {
        ClientUrl url;
        uint64_t threshold; // of a random number
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        pthread_t thread;
        bool stopping;
        OtlpRecord *ring, *batch; // batch: the thread's own
        uint32_t capacity, first, n;
        _Atomic uint64_t n_sent, n_dropped;
        bool failing; // the thread's own
};

// ---- the thread ----
// Up to `ms`, or until the end is near. The mutex is held.
static void wait_ms(Otlp *otlp, int64_t ms)
{
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t ns = until.tv_nsec + ms * 1000000;
        until.tv_sec += ns / 1000000000;
        until.tv_nsec = ns % 1000000000;
        while (!otlp->stopping && pthread_cond_timedwait(&otlp->changed, &otlp->mutex, &until) == 0)
                ;
}

// The mutex is held.
static uint32_t take_batch(Otlp *otlp)
{
        uint32_t n = MIN(otlp->n, (uint32_t)BATCH);
        for (uint32_t i = 0; i < n; i++)
                otlp->batch[i] = otlp->ring[(otlp->first + i) % otlp->capacity];
        otlp->first = (otlp->first + n) % otlp->capacity;
        otlp->n -= n;
        return n;
}

static void report(Otlp *otlp, bool works, const char *why, int status)
{
        if (otlp->failing == !works)
                return;
        otlp->failing = !works;
        if (works)
                log_line("traces are sent to --otlp-endpoint again");
        else if (status > 0)
                log_error("traces are not taken by --otlp-endpoint: it answers %d", status);
        else
                log_error("traces cannot be sent to --otlp-endpoint: %s", why);
}

// *out_later: it may work later.
static bool post(Otlp *otlp, const Text *json, int64_t total_ms, bool *out_later)
{
        ClientRequest request = { .method = "POST",
                                  .target = otlp->url.path,
                                  .content_type = "application/json",
                                  .parts = { { (const uint8_t *)json->data, json->n } },
                                  .n_parts = 1,
                                  .idle_ms = total_ms,
                                  .total_ms = total_ms,
                                  .max_reply = MAX_REPLY };
        ClientReply reply = { 0 };
        int status = client_ask(&otlp->url, &request, &reply) == STATUS_OK ? reply.status : 0;
        client_reply_deinit(&reply);
        *out_later = status == 0 || status == 429 || (status >= 502 && status <= 504);
        bool taken = status >= 200 && status < 300;
        report(otlp, taken, taken ? "" : failure_current()->message, status);
        return taken;
}

// The mutex is held, but not while it sends.
static void send_batch(Otlp *otlp, uint32_t n)
{
        Text json = { 0 };
        bool taken = false, later = true;
        pthread_mutex_unlock(&otlp->mutex);
        otlp_write_json(otlp->batch, n, &json);
        later = text_status(&json) == STATUS_OK;
        pthread_mutex_lock(&otlp->mutex);
        for (int i = 0; i < TRIES && !taken && later && !(i > 0 && otlp->stopping); i++) {
                if (i > 0)
                        wait_ms(otlp, (int64_t)1000 << (i - 1));
                int64_t total_ms = otlp->stopping ? LAST_SEND_MS : SEND_MS;
                pthread_mutex_unlock(&otlp->mutex);
                taken = post(otlp, &json, total_ms, &later);
                pthread_mutex_lock(&otlp->mutex);
        }
        atomic_fetch_add(taken ? &otlp->n_sent : &otlp->n_dropped, n);
        text_deinit(&json);
}

static void *sender(void *context)
{
        Otlp *otlp = context;
        pthread_mutex_lock(&otlp->mutex);
        while (!otlp->stopping || otlp->n > 0) {
                if (otlp->n == 0) {
                        pthread_cond_wait(&otlp->changed, &otlp->mutex);
                        continue;
                }
                wait_ms(otlp, GATHER_MS); // for more of them
                send_batch(otlp, take_batch(otlp));
                if (otlp->stopping && otlp->failing)
                        break;
        }
        pthread_mutex_unlock(&otlp->mutex);
        return NULL;
}

// ---- starting and stopping ----
static Status read_ratio(const char *text, uint64_t *out_threshold)
{
        char *end;
        double ratio = strtod(text, &end);
        if (end == text || *end != '\0' || !(ratio >= 0 && ratio <= 1))
                return fail(STATUS_USAGE, "--otlp-sample wants a number from 0 to 1, not \"%.100s\"", text);
        *out_threshold = ratio >= 1 ? UINT64_MAX : (uint64_t)(ratio * 0x1p64);
        return STATUS_OK;
}

static Otlp *otlp_free(Otlp *otlp)
{
        if (otlp == NULL)
                return NULL;
        free(otlp->ring);
        free(otlp->batch);
        pthread_cond_destroy(&otlp->changed);
        pthread_mutex_destroy(&otlp->mutex);
        free(otlp);
        return NULL;
}
DEFINE_CLEANUP(Otlp, otlp_free)

Status otlp_start(const char *endpoint, const char *sample, Otlp **out_otlp)
{
        *out_otlp = NULL;
        _cleanup_(otlp_freep) Otlp *otlp = NULL;
        uint64_t threshold;
        TRY(read_ratio(sample, &threshold));
        if (endpoint[0] == '\0')
                return STATUS_OK;
        otlp = new_array(1, sizeof(*otlp));
        if (otlp == NULL)
                return fail_memory();
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_mutex_init(&otlp->mutex, NULL);
        pthread_cond_init(&otlp->changed, &monotonic);
        otlp->threshold = threshold;
        TRY(client_url_parse("--otlp-endpoint", endpoint, &otlp->url));
        if (otlp->url.path[0] == '\0')
                snprintf(otlp->url.path, sizeof(otlp->url.path), "/v1/traces");
        otlp->capacity = (uint32_t)MIN(MAX(limits.max_traces, 1), 1 << 20);
        otlp->ring = new_array(otlp->capacity, sizeof(*otlp->ring));
        otlp->batch = new_array(BATCH, sizeof(*otlp->batch));
        if (otlp->ring == NULL || otlp->batch == NULL)
                return fail_memory();
        if (pthread_create(&otlp->thread, NULL, sender, otlp) != 0)
                return fail(STATUS_INTERNAL, "the thread that sends traces could not be started");
        *out_otlp = take_ptr(otlp);
        return STATUS_OK;
}

void otlp_stop(Otlp *otlp)
{
        if (otlp == NULL)
                return;
        pthread_mutex_lock(&otlp->mutex);
        otlp->stopping = true;
        pthread_cond_signal(&otlp->changed);
        pthread_mutex_unlock(&otlp->mutex);
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 1;
        if (pthread_timedjoin_np(otlp->thread, NULL, &end) == 0)
                otlp_free(otlp);
        // else it waits for the collector, and ends with the process
}

// ---- requests ----
bool otlp_draws(const Otlp *otlp, uint64_t random)
{
        return random < otlp->threshold || otlp->threshold == UINT64_MAX;
}

void otlp_add(Otlp *otlp, const OtlpRequest *request)
{
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        pthread_mutex_lock(&otlp->mutex);
        if (otlp->n == otlp->capacity) {
                pthread_mutex_unlock(&otlp->mutex);
                atomic_fetch_add(&otlp->n_dropped, 1);
                return;
        }
        OtlpRecord *record = &otlp->ring[(otlp->first + otlp->n) % otlp->capacity];
        *record = (OtlpRecord){ .trace = *request->trace,
                                .route = request->route,
                                .code = request->code,
                                .version = request->version,
                                .status = request->status,
                                .end_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
                                .took_ns = request->took_ns,
                                .queue_ns = request->queue_ns };
        snprintf(record->method, sizeof(record->method), "%s", request->method);
        snprintf(record->graph, sizeof(record->graph), "%s", request->graph);
        snprintf(record->request_id, sizeof(record->request_id), "%s", request->request_id);
        memcpy(record->step_ns, request->step_ns, STEP_COUNT * sizeof(record->step_ns[0]));
        if (otlp->n++ == 0)
                pthread_cond_signal(&otlp->changed);
        pthread_mutex_unlock(&otlp->mutex);
}

void otlp_counts(const Otlp *otlp, uint64_t *out_sent, uint64_t *out_dropped)
{
        *out_sent = otlp == NULL ? 0 : atomic_load(&otlp->n_sent);
        *out_dropped = otlp == NULL ? 0 : atomic_load(&otlp->n_dropped);
}
