// SPDX-License-Identifier: Apache-2.0
// Incoming bodies, on the loop thread: the limit of the route, the budget that all bodies share,
// and the memory that grows with the body. A large upload goes to a spool file instead; then the
// budget is charged with its buffers only.
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "server/http_private.h"
#include "server/options.h"

enum { SPOOL_FROM_BYTES = 1 << 20 }; // larger uploads go to disk as they arrive

uint64_t declared_length(const Exchange *exchange)
{
        if (exchange->conn != NULL && exchange->conn->long_number == exchange->number)
                return exchange->conn->long_length;
        const char *text = header_of(exchange, "Content-Length");
        return text == NULL ? 0 : strtoull(text, NULL, 10);
}

// The words that name a limit: its flag and variable, or where it is listed.
static void name_limit(const int64_t *limit, char out_words[160])
{
        const LimitRow *row = limit_row(limit);
        char variable[64];
        if (row->flag != NULL)
                snprintf(out_words, 160, "--%s, %s", row->flag, options_variable(row->flag, variable));
        else
                snprintf(out_words, 160, "%s in GET /v1", row->name);
}

// 71,303,168
static const char *with_commas(uint64_t value, char out[32])
{
        char digits[24];
        int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value), at = 0;
        for (int i = 0; i < n; i++) {
                if (i > 0 && (n - i) % 3 == 0)
                        out[at++] = ',';
                out[at++] = digits[i];
        }
        out[at] = '\0';
        return out;
}

// Without a data folder no upload is spooled.
static const int64_t *limit_of(const Exchange *exchange)
{
        const int64_t *limit = route_limit(exchange->job->call.route->body->limits);
        bool spools = engine_has_folder(exchange->http->options.engine);
        return spools || *limit <= limits.max_body_budget ? limit : &limits.max_body_budget;
}

// Every request asks, so the words are made for a refusal only.
Status body_limit(Exchange *exchange)
{
        const int64_t *limit = limit_of(exchange);
        char words[160], left[32], right[32];
        uint64_t declared = declared_length(exchange);
        uint64_t n = MAX(declared, (uint64_t)exchange->n_body);
        if (n <= (uint64_t)*limit)
                return STATUS_OK;
        name_limit(limit, words);
        return fail(STATUS_TOO_LARGE, "the body is %s%s bytes; the limit is %s (%s)",
                    declared == 0 ? "over " : "", with_commas(n, left), with_commas((uint64_t)*limit, right),
                    words);
}

static Status charge(Exchange *exchange, size_t n)
{
        if (!budget_take(&exchange->http->bodies, n))
                return fail(
                        STATUS_BUSY,
                        "the server holds as many request bodies as it may (--max-body-budget); try again");
        exchange->n_charged += n;
        return STATUS_OK;
}

static void drop_memory(Exchange *exchange)
{
        budget_give(&exchange->http->bodies, exchange->n_charged);
        free(exchange->body);
        exchange->body = NULL;
        exchange->n_charged = exchange->capacity = 0;
}

// Room for `n` more bytes, aligned so that weights in an archive can be used where they are;
// doubles.
static Status grow(Exchange *exchange, size_t n)
{
        size_t needed = exchange->n_body + n;
        if (needed <= exchange->capacity)
                return STATUS_OK;
        uint64_t declared = declared_length(exchange);
        size_t wish = declared == 0 ? MAX(exchange->capacity * 2, (size_t)65536) : (size_t)declared;
        size_t capacity = (MAX(wish, needed) + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN;
        uint8_t *body = aligned_alloc(STORAGE_ALIGN, capacity);
        if (body == NULL)
                return fail_memory();
        if (exchange->n_body > 0)
                memcpy(body, exchange->body, exchange->n_body);
        free(exchange->body);
        exchange->body = body;
        exchange->capacity = capacity;
        return STATUS_OK;
}

// ---- spooling ----
static void wake(void *owner)
{
        Exchange *exchange = owner;
        exchange->paused = false;
        transport_resume(exchange->connection);
}

// Before the loop can be told to go on; both happen on this thread.
static void pause_sender(Exchange *exchange)
{
        exchange->paused = true;
        transport_suspend(exchange->connection);
}

static void turned(void *context)
{
        http_turn(context);
}

static bool is_large_upload(const Exchange *exchange, size_t n)
{
        bool large = exchange->n_body + n > SPOOL_FROM_BYTES || declared_length(exchange) > SPOOL_FROM_BYTES;
        return large && route_is(exchange->job->call.route, KIND_UPLOAD) &&
               engine_has_folder(exchange->http->options.engine);
}

// The bytes collected in memory so far go first.
static Status start_spool(Exchange *exchange)
{
        Http *http = exchange->http;
        SpoolEvents events = { wake, turned, http };
        if (http->spools == NULL)
                TRY(spools_start(http->options.loop, http->options.engine, &events, &http->spools));
        TRY(charge(exchange, SPOOL_MEMORY));
        TRY(spool_new(http->spools, exchange, &exchange->spool));
        for (size_t done = 0; done < exchange->n_body;) {
                size_t n = MIN(exchange->n_body - done, (size_t)SPOOL_CHUNK_MAX);
                // at most one buffer's worth: no need to wait
                spool_take(exchange->spool, exchange->body + done, n);
                done += n;
        }
        free(exchange->body);
        exchange->body = NULL;
        exchange->capacity = 0;
        budget_give(&http->bodies, exchange->n_charged - SPOOL_MEMORY);
        exchange->n_charged = SPOOL_MEMORY;
        return STATUS_OK;
}

// Takes the bytes. *out_wait: the disk is behind.
static Status take(Exchange *exchange, const char *data, size_t n, bool *out_wait)
{
        *out_wait = false;
        exchange->n_body += n;
        TRY(body_limit(exchange));
        exchange->n_body -= n;
        if (exchange->spool == NULL && is_large_upload(exchange, n))
                TRY(start_spool(exchange));
        if (exchange->spool != NULL) {
                TRY(spool_status(exchange->spool));
                if (n > SPOOL_CHUNK_MAX)
                        return fail(STATUS_INTERNAL, "%zu bytes of a body at once", n);
                *out_wait = spool_take(exchange->spool, data, n);
        } else {
                TRY(charge(exchange, n));
                TRY(grow(exchange, n));
                memcpy(exchange->body + exchange->n_body, data, n);
        }
        exchange->n_body += n;
        return STATUS_OK;
}

static void refuse_body(Exchange *exchange)
{
        prepare_refusal(exchange);
        exchange->spool = spool_free(exchange->spool);
        drop_memory(exchange);
        exchange->dropping = true;
}

// Part of a body that is dropped. An endless one is cut off: there is no way to answer in the
// middle of it.
bool body_drop(Exchange *exchange, size_t n)
{
        exchange->n_dropped += n;
        return exchange->n_dropped <= (uint64_t)limits.max_body_budget;
}

bool body_take(Exchange *exchange, const char *data, size_t n)
{
        bool wait = false;
        if (exchange->dropping)
                return body_drop(exchange, n);
        if (take(exchange, data, n, &wait) != STATUS_OK) {
                refuse_body(exchange);
                return body_drop(exchange, n);
        }
        if (wait)
                pause_sender(exchange);
        return true;
}

// ---- long bodies ----
uint8_t *body_room(Exchange *exchange, uint64_t left, size_t *out_n)
{
        static uint8_t passing[SPOOL_CHUNK_MAX]; // on their way to the spool, or dropped
        if (!exchange->dropping && exchange->spool == NULL && !is_large_upload(exchange, 0) &&
            grow(exchange, 1) == STATUS_OK) {
                *out_n = (size_t)MIN(left, (uint64_t)(exchange->capacity - exchange->n_body));
                return exchange->body + exchange->n_body;
        }
        *out_n = (size_t)MIN(left, (uint64_t)sizeof(passing));
        return passing;
}

bool body_received(Exchange *exchange, const uint8_t *room, size_t n)
{
        if (exchange->body == NULL || room != exchange->body + exchange->n_body)
                return body_take(exchange, (const char *)room, n);
        if (charge(exchange, n) != STATUS_OK) {
                refuse_body(exchange);
                return body_drop(exchange, n);
        }
        exchange->n_body += n;
        return true;
}

bool body_wait(Exchange *exchange)
{
        if (exchange->paused)
                return true;
        if (exchange->spool == NULL || !spool_end(exchange->spool))
                return false;
        pause_sender(exchange);
        return true;
}

Status body_finish(Exchange *exchange)
{
        ApiCall *call = &exchange->job->call;
        if (exchange->spool != NULL) {
                TRY(spool_result(exchange->spool, &call->body, &call->body_digest));
                exchange->spool = spool_free(exchange->spool);
                drop_memory(exchange);
                return STATUS_OK;
        }
        if (exchange->n_body == 0)
                return STATUS_OK;
        TRY(storage_adopt(exchange->body, exchange->n_body, true, NULL, NULL, &call->body));
        exchange->body = NULL;
        return STATUS_OK;
}

void body_deinit(Exchange *exchange)
{
        exchange->spool = spool_free(exchange->spool);
        drop_memory(exchange);
}
