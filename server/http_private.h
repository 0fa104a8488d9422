// SPDX-License-Identifier: Apache-2.0
// Shared by http*.c.
#pragma once
#include <microhttpd.h>
#include <pthread.h>
#include "server/http.h"

enum { HTTP_MAX_COUNTS = 256 };

// One HTTP exchange: made when the request line is read, freed when MHD says that the request is completed.
typedef struct Exchange {
        struct Exchange *next, *previous; // all under way
        Http *http;
        struct MHD_Connection *connection;
        Job *job;
        char *target; // raw request target
        char method[16];
        uint8_t *body;
        size_t n_body, capacity;
        bool checked, submitted, done;
        bool framed;   // where the body ends is beyond doubt
        bool refused;  // the connection closes after the reply; what is left of the body is not read
        bool dropping; // an error reply is ready; the rest of the body is read and dropped
        size_t n_dropped;
        char allow[64];
} Exchange;

struct Http {
        HttpOptions options;
        struct MHD_Daemon *daemon;
        uv_poll_t poll;
        uv_timer_t timer;
        uv_async_t async;
        pthread_mutex_t finished_mutex;
        Job *finished; // jobs to send, newest first
        Budget bodies;
        Exchange *exchanges;
        uint32_t n_exchanges;
        bool draining, stopped;
        int64_t started_ns;
        struct RequestCount counts[HTTP_MAX_COUNTS];
        uint32_t n_counts;
        uint64_t next_id, id_seed;
};

// http_guard.c: what must hold before anything else is looked at.
Status guard_request(Exchange *exchange);
size_t guard_body_limit(const Exchange *exchange);
Status guard_length(Exchange *exchange);
void take_request_id(Exchange *exchange);
