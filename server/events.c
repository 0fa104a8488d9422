// SPDX-License-Identifier: Apache-2.0
// events.c: an inbox under a mutex that any thread adds to, and one buffer per stream on the loop
// thread. While its buffer is empty, a stream's connection is suspended. A comment goes to every
// stream now and then: it shows that clients have left.
#include "server/events.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/base/clock.h"

enum { TICK_MS = 250, TICKS_PER_BEAT = 60, MOST_BYTES = 1 << 18, MOST_INBOX = 4096, ID_MAX = 64 };

typedef struct Event Event;
struct Event {
        Event *next;
        char id[ID_MAX + 1];
        size_t n;
        char text[];
};

typedef struct Stream Stream;
struct Stream {
        Stream *next;
        Events *events;
        TransportConnection *connection;
        char id[ID_MAX + 1]; // "": all
        char *bytes;         // not sent yet: from `at` to `n`
        size_t at, n, capacity;
        uint64_t n_lost;
        int64_t until_ns; // 0: no end
        bool suspended, over;
};

struct Events {
        pthread_mutex_t mutex; // guards the inbox
        Event *first, **last;
        uint32_t n_waiting;
        bool deaf; // not started yet, or stopped
        _Atomic uint32_t n_streams;
        EventsOptions options;
        uv_async_t async;
        uv_timer_t timer;
        Stream *streams;
        uint32_t n_ticks;
        bool ended;
};

Status events_new(Events **out_events)
{
        Events *events = calloc(1, sizeof(*events));
        if (events == NULL)
                return fail_memory();
        pthread_mutex_init(&events->mutex, NULL);
        events->last = &events->first;
        events->deaf = true;
        *out_events = events;
        return STATUS_OK;
}

static void drop_inbox(Event *event)
{
        for (Event *next; event != NULL; event = next) {
                next = event->next;
                free(event);
        }
}

Events *events_free(Events *events)
{
        if (events == NULL)
                return NULL;
        drop_inbox(events->first);
        pthread_mutex_destroy(&events->mutex);
        free(events);
        return NULL;
}

// ---- any thread ----
bool events_wanted(Events *events)
{
        return events != NULL && atomic_load_explicit(&events->n_streams, memory_order_relaxed) > 0;
}

void events_post(Events *events, const char *kind, const char *id, const char *json)
{
        if (!events_wanted(events))
                return;
        size_t n = strlen("event: \ndata: \n\n") + strlen(kind) + strlen(json);
        Event *event = malloc(sizeof(*event) + n + 1);
        if (event == NULL)
                return;
        event->next = NULL;
        event->n = n;
        snprintf(event->id, sizeof(event->id), "%s", id);
        snprintf(event->text, n + 1, "event: %s\ndata: %s\n\n", kind, json);
        pthread_mutex_lock(&events->mutex);
        bool taken = !events->deaf && events->n_waiting < MOST_INBOX;
        if (taken) {
                *events->last = event;
                events->last = &event->next;
                if (events->n_waiting++ == 0)
                        uv_async_send(&events->async);
        }
        pthread_mutex_unlock(&events->mutex);
        if (!taken)
                free(event);
}

// ---- streams, on the loop thread ----
static bool add_bytes(Stream *stream, const char *bytes, size_t n)
{
        if (stream->at > 0) {
                memmove(stream->bytes, stream->bytes + stream->at, stream->n - stream->at);
                stream->n -= stream->at;
                stream->at = 0;
        }
        if (n > MOST_BYTES - stream->n)
                return false;
        if (stream->n + n > stream->capacity) {
                size_t capacity = MIN(MAX(2 * stream->capacity, stream->n + n), (size_t)MOST_BYTES);
                char *grown = realloc(stream->bytes, capacity);
                if (grown == NULL)
                        return false;
                stream->bytes = grown;
                stream->capacity = capacity;
        }
        memcpy(stream->bytes + stream->n, bytes, n);
        stream->n += n;
        return true;
}

static void wake(Stream *stream)
{
        if (stream->suspended)
                transport_resume(stream->connection);
        stream->suspended = false;
}

static void add_event(Stream *stream, const char *text, size_t n)
{
        char lost[96];
        if (stream->over)
                return;
        if (stream->n_lost > 0) {
                int length = snprintf(lost, sizeof(lost), "event: lost\ndata: {\"events\": %llu}\n\n",
                                      (unsigned long long)stream->n_lost);
                if (add_bytes(stream, lost, (size_t)length))
                        stream->n_lost = 0;
        }
        if (stream->n_lost > 0 || !add_bytes(stream, text, n))
                stream->n_lost++;
        wake(stream);
}

static int64_t read_stream(void *context, char *out, size_t most)
{
        Stream *stream = context;
        size_t n = MIN(most, stream->n - stream->at);
        if (n == 0)
                stream->suspended = !stream->over;
        if (n == 0)
                return stream->over ? TRANSPORT_END : 0;
        memcpy(out, stream->bytes + stream->at, n);
        stream->at += n;
        return (int64_t)n;
}

static void free_stream(void *context)
{
        Stream *stream = context, **at = &stream->events->streams;
        while (*at != NULL && *at != stream)
                at = &(*at)->next;
        if (*at != NULL)
                *at = stream->next;
        if (atomic_fetch_sub(&stream->events->n_streams, 1) == 1 && !stream->events->ended)
                uv_timer_stop(&stream->events->timer);
        free(stream->bytes);
        free(stream);
}

static void on_posted(uv_async_t *async)
{
        Events *events = async->data;
        pthread_mutex_lock(&events->mutex);
        Event *event = events->first;
        events->first = NULL;
        events->last = &events->first;
        events->n_waiting = 0;
        pthread_mutex_unlock(&events->mutex);
        for (const Event *it = event; it != NULL; it = it->next)
                for (Stream *stream = events->streams; stream != NULL; stream = stream->next)
                        if (stream->id[0] == '\0' || strcmp(stream->id, it->id) == 0)
                                add_event(stream, it->text, it->n);
        drop_inbox(event);
        if (events->streams != NULL)
                events->options.turn(events->options.context);
}

static void on_tick(uv_timer_t *timer)
{
        Events *events = timer->data;
        int64_t now = clock_ns();
        bool beats = ++events->n_ticks % TICKS_PER_BEAT == 0;
        for (Stream *stream = events->streams; stream != NULL; stream = stream->next) {
                if (beats)
                        add_event(stream, ":\n\n", 3);
                stream->over = stream->over || (stream->until_ns != 0 && now >= stream->until_ns);
                if (stream->over)
                        wake(stream);
        }
        events->options.tick(events->options.context);
        events->options.turn(events->options.context);
}

Status events_open(Events *events, TransportConnection *connection, const char *id, int64_t seconds,
                   TransportReply **out_reply)
{
        if (events->ended)
                return fail(STATUS_BUSY, "the server is stopping");
        if (atomic_load(&events->n_streams) >= (uint32_t)limits.max_event_streams)
                return fail(STATUS_BUSY,
                            "%lld streams of events are open already (--max-event-streams); try again",
                            (long long)limits.max_event_streams);
        Stream *stream = calloc(1, sizeof(*stream));
        if (stream == NULL)
                return fail_memory();
        stream->events = events;
        stream->connection = connection;
        snprintf(stream->id, sizeof(stream->id), "%s", id == NULL ? "" : id);
        stream->until_ns = seconds == 0 ? 0 : clock_ns() + seconds * 1000000000;
        stream->next = events->streams;
        events->streams = stream;
        if (atomic_fetch_add(&events->n_streams, 1) == 0)
                uv_timer_start(&events->timer, on_tick, TICK_MS, TICK_MS);
        add_event(stream, ":\n\n", 3); // the head is sent with it
        *out_reply = transport_reply_stream(connection, read_stream, free_stream, stream);
        return *out_reply == NULL ? fail_memory() : STATUS_OK;
}

// ---- start and stop ----
void events_start(Events *events, const EventsOptions *options)
{
        events->options = *options;
        uv_async_init(options->loop, &events->async, on_posted);
        uv_timer_init(options->loop, &events->timer);
        events->async.data = events->timer.data = events;
        pthread_mutex_lock(&events->mutex);
        events->deaf = false;
        pthread_mutex_unlock(&events->mutex);
}

void events_end(Events *events)
{
        events->ended = true;
        uv_timer_stop(&events->timer);
        for (Stream *stream = events->streams; stream != NULL; stream = stream->next) {
                stream->over = true;
                wake(stream);
        }
}

void events_stop(Events *events)
{
        pthread_mutex_lock(&events->mutex);
        events->deaf = true;
        pthread_mutex_unlock(&events->mutex);
        uv_close((uv_handle_t *)&events->async, NULL);
        uv_close((uv_handle_t *)&events->timer, NULL);
}
