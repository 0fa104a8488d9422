// SPDX-License-Identifier: Apache-2.0
// What happens, as it happens: server-sent events for whoever asked (GET /v1/events). Anybody may
// post; the loop thread hands events to the streams, each of which holds a bounded number of bytes.
// A client that reads too slowly misses events, and is told how many.
#pragma once
#include <uv.h>
#include "core/base/text.h"
#include "server/transport.h"

typedef struct Events Events;

// Loop thread. `turn` is called after streams got something to send; `tick` four times a second
// while there are any.
typedef struct EventsOptions {
        uv_loop_t *loop;
        void (*turn)(void *context);
        void (*tick)(void *context);
        void *context;
} EventsOptions;

Status events_new(Events **out_events);
Events *events_free(Events *events); // after the loop ended; NULL-safe
void events_start(Events *events, const EventsOptions *options);
// Any thread; `events` may be NULL. Cheap while nobody listens: ask first, where `json` has to be
// made. `id`: of the request that it is about; "": of none. Without memory it is lost.
bool events_wanted(Events *events);
void events_post(Events *events, const char *kind, const char *id, const char *json);
// Loop thread: a reply that goes on until the client leaves, `seconds` have passed (0: no end) or
// events_end. `id`: only events about that request; NULL: all. STATUS_BUSY: --max-event-streams.
Status events_open(Events *events, TransportConnection *connection, const char *id, int64_t seconds,
                   TransportReply **out_reply);
// Loop thread: all streams end, and none begins.
void events_end(Events *events);
void events_stop(Events *events); // starts closing the loop's handles
