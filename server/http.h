// SPDX-License-Identifier: Apache-2.0
// HTTP, driven from a libuv loop through transport.h.
// Everything here runs on the loop thread, except the hand-over of finished jobs.
#pragma once
#include <uv.h>
#include "server/door.h"
#include "server/events.h"
#include "server/otlp.h"
#include "server/usage.h"
#include "server/job.h"
#include "server/memory.h"
#include "server/workers.h"

typedef struct Http Http;

typedef struct HttpOptions {
        uv_loop_t *loop;
        int listen_fd;                        // taken
        bool is_loopback;                     // check Host and Origin
        const char *host_name, *allow_origin; // "" = none
        void *tls_callback;                   // of tls.h; NULL: plain HTTP
        Auth *auth;                           // NULL: no tokens are required
        const Door *door;                     // for /metrics, like the next member
        Usage *usage;
        Otlp *otlp; // NULL: no spans are sent
        bool quiet;
        RouteCodecs codecs;
        bool inline_runs; // short runs with small bodies are done on the loop thread
        Engine *engine;
        struct ReplyCache *replies; // NULL: none are kept
        const Memory *memory;
        Workers *workers;
        bool one_core; // the loop and the workers share it
        Events *events;
        ServerFacts facts; // the fixed part
        // called when the last connection has ended while draining; possibly more than once
        void (*idle)(void *context);
        void *idle_context;
} HttpOptions;

// Whether the memory of this libmicrohttpd's connections can be given back between requests
// (http_idle.c).
bool http_pools_are_known(void);

Status http_start(const HttpOptions *options, Http **out_http);
// From here on /readyz answers 503, and replies ask clients to come back on another connection.
// Everything else continues.
void http_leave(Http *http);
// After http_leave: accepts what has arrived and nothing new, then calls options->idle once
// everything is answered and closed.
void http_drain(Http *http);
// Cancels all runs; options->idle is called as soon as no request is left. False: none was under
// way.
bool http_cancel_all(Http *http);
// After drain: closes connections and the daemon, starts closing the loop's handles; call http_free
// when the loop has ended.
void http_stop(Http *http);
Http *http_free(Http *http);
