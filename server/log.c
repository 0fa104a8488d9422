// SPDX-License-Identifier: Apache-2.0
// Two buffers: lines are added to one under a mutex while the writer thread, without it, writes the other; when it has written all of it,
// the two change places. A full buffer drops the line and counts it. Before each piece of at most PIPE_BUF bytes the writer waits until the
// descriptor takes it, so that a reader that stopped reading can hold up this thread only, and not even its end. Standard error is not made
// non-blocking: it may be shared with other processes.
#include "server/log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "core/base/text.h"

enum { BUFFER_BYTES = 256 << 10, MESSAGE_MAX_BYTES = 2048, STOP_MS = 1000, TURN_MS = 50 };

static struct {
        pthread_mutex_t mutex;
        pthread_cond_t filled;
        pthread_t thread;
        bool running, stopping, reopen;
        _Atomic bool json;
        _Atomic int64_t give_up_ns; // 0: never
        _Atomic uint64_t dropped;
        int fd;
        const char *file;
        int which; // the buffer lines are added to
        size_t n;
        char buffers[2][BUFFER_BYTES];
} sink = { .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .fd = STDERR_FILENO };

// ---- writing ----
static bool wait_until_writable(void)
{
        struct pollfd entry = { .fd = sink.fd, .events = POLLOUT };
        for (;;) {
                int64_t give_up = atomic_load(&sink.give_up_ns);
                if (give_up != 0 && clock_ns() > give_up)
                        return false;
                if (poll(&entry, 1, TURN_MS) > 0)
                        return true; // an error is reported by write
        }
}

static uint64_t count_lines(const char *bytes, size_t n)
{
        uint64_t lines = 0;
        for (const char *at = bytes; (at = memchr(at, '\n', n - (size_t)(at - bytes))) != NULL; at++)
                lines++;
        return lines;
}

// As much as fits into one atomic write to a pipe, up to the end of a line.
static size_t piece_of(const char *bytes, size_t n)
{
        if (n <= PIPE_BUF)
                return n;
        const char *end = memrchr(bytes, '\n', PIPE_BUF);
        return end == NULL ? PIPE_BUF : (size_t)(end - bytes) + 1;
}

static bool write_out(const char *bytes, size_t n)
{
        while (n > 0) {
                size_t piece = piece_of(bytes, n);
                ssize_t written = wait_until_writable() ? write(sink.fd, bytes, piece) : -1;
                if (written < 0 && errno == EINTR)
                        continue;
                if (written < 0) {
                        atomic_fetch_add(&sink.dropped, count_lines(bytes, n));
                        return false;
                }
                bytes += written;
                n -= (size_t)written;
        }
        return true;
}

static int open_file(const char *file)
{
        return open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

// Should opening fail, lines keep going where they went.
static void open_again(void)
{
        int fd = open_file(sink.file);
        if (fd < 0) {
                log_error("the log file cannot be opened again: %s", strerror(errno));
                return;
        }
        close(sink.fd);
        sink.fd = fd;
}

static void *writer(void *unused)
{
        uint64_t reported = 0;
        (void)unused;
        pthread_mutex_lock(&sink.mutex);
        for (;;) {
                while (sink.n == 0 && !sink.stopping && !sink.reopen)
                        pthread_cond_wait(&sink.filled, &sink.mutex);
                if (sink.n == 0 && !sink.reopen)
                        break;
                const char *full = sink.buffers[sink.which];
                size_t n = sink.n;
                bool again = sink.reopen && sink.file[0] != '\0';
                sink.which ^= 1;
                sink.n = 0;
                sink.reopen = false;
                pthread_mutex_unlock(&sink.mutex);
                bool written = write_out(full, n);
                if (again)
                        open_again();
                uint64_t dropped = log_dropped();
                if (written && dropped > reported) { // or this line would be lost as well, and so on without end
                        log_error("%llu log lines were dropped", (unsigned long long)(dropped - reported));
                        reported = dropped;
                }
                pthread_mutex_lock(&sink.mutex);
        }
        pthread_mutex_unlock(&sink.mutex);
        return NULL;
}

// ---- starting and stopping ----
Status log_start(const LogOptions *options)
{
        static const char *const formats[] = { "auto", "text", "json" };
        size_t format = 0;
        while (format < ARRAY_LENGTH(formats) && strcmp(options->format, formats[format]) != 0)
                format++;
        if (format == ARRAY_LENGTH(formats))
                return fail(STATUS_USAGE, "--log-format is auto, text or json, not \"%s\"", options->format);
        int fd = options->file[0] == '\0' ? STDERR_FILENO : open_file(options->file);
        if (fd < 0)
                return fail(STATUS_USAGE, "--log-file %s: %s", options->file, strerror(errno));
        sink.fd = fd;
        sink.file = options->file;
        sink.stopping = false;
        atomic_store(&sink.give_up_ns, 0);
        atomic_store(&sink.json, format == 2 || (format == 0 && isatty(fd) == 0));
        sink.running = pthread_create(&sink.thread, NULL, writer, NULL) == 0;
        return sink.running ? STATUS_OK : fail(STATUS_INTERNAL, "the thread that writes the log could not be started");
}

void log_stop(void)
{
        if (!sink.running)
                return;
        pthread_mutex_lock(&sink.mutex);
        sink.stopping = true;
        atomic_store(&sink.give_up_ns, clock_ns() + (int64_t)STOP_MS * 1000000);
        pthread_cond_signal(&sink.filled);
        pthread_mutex_unlock(&sink.mutex);
        // Another process can fill a shared pipe between the writer's look and its write: the end of this one does not wait for that.
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 2 * STOP_MS / 1000;
        if (pthread_timedjoin_np(sink.thread, NULL, &end) != 0)
                return;
        if (sink.file[0] != '\0')
                close(sink.fd);
        sink.fd = STDERR_FILENO;
        sink.running = false;
}

void log_reopen(void)
{
        pthread_mutex_lock(&sink.mutex);
        sink.reopen = true;
        pthread_cond_signal(&sink.filled);
        pthread_mutex_unlock(&sink.mutex);
}

uint64_t log_dropped(void)
{
        return atomic_load(&sink.dropped);
}

// ---- lines ----
static void add_time(Text *line, bool json)
{
        static _Thread_local struct {
                time_t second;
                char text[32];
        } last;
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec != last.second || last.text[0] == '\0') {
                struct tm utc;
                gmtime_r(&now.tv_sec, &utc);
                strftime(last.text, sizeof(last.text), "%Y-%m-%dT%H:%M:%S", &utc);
                last.second = now.tv_sec;
        }
        text_addf(line, json ? "{\"time\": \"%s.%03ldZ\"" : "%s.%03ld ", json ? last.text : last.text + strlen("2026-01-01T"),
                  now.tv_nsec / 1000000);
}

static void push(Text *line)
{
        text_add_char(line, '\n');
        pthread_mutex_lock(&sink.mutex);
        if (line->failed || line->n > BUFFER_BYTES - sink.n) {
                atomic_fetch_add(&sink.dropped, 1);
        } else {
                memcpy(sink.buffers[sink.which] + sink.n, line->data, line->n);
                if (sink.n == 0)
                        pthread_cond_signal(&sink.filled);
                sink.n += line->n;
        }
        pthread_mutex_unlock(&sink.mutex);
        text_deinit(line);
}

static void push_message(const char *level, const char *format, va_list arguments)
{
        char message[MESSAGE_MAX_BYTES];
        Text line = { .n = 0 };
        bool json = atomic_load(&sink.json);
        vsnprintf(message, sizeof(message), format, arguments);
        add_time(&line, json);
        if (json) {
                text_addf(&line, ", \"level\": \"%s\", \"message\": ", level);
                text_add_json(&line, message);
                text_add_char(&line, '}');
        } else {
                for (char *at = message; *at != '\0'; at++)
                        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at; // one line stays one line, whatever a client sent
                text_add(&line, message);
        }
        push(&line);
}

void log_line(const char *format, ...)
{
        va_list arguments;
        va_start(arguments, format);
        push_message("info", format, arguments);
        va_end(arguments);
}

void log_error(const char *format, ...)
{
        va_list arguments;
        va_start(arguments, format);
        push_message("error", format, arguments);
        va_end(arguments);
}

static bool given(const char *text)
{
        return text != NULL && text[0] != '\0';
}

static void add_member(Text *line, const char *name, const char *value)
{
        if (!given(value))
                return;
        text_addf(line, ", \"%s\": ", name);
        text_add_json(line, value);
}

static void add_json_request(Text *line, const LogRequest *request)
{
        text_addf(line, ", \"level\": \"%s\"", request->status >= 500 ? "error" : "info");
        add_member(line, "request_id", request->id);
        add_member(line, "method", request->method);
        add_member(line, "route", request->route);
        add_member(line, "graph", request->graph);
        if (request->version > 0)
                text_addf(line, ", \"version\": %lld", (long long)request->version);
        text_addf(line, ", \"status\": %d", request->status);
        add_member(line, "code", request->code);
        text_addf(line, ", \"duration_ms\": %.3f", request->total_ms);
        if (request->is_run)
                text_addf(line, ", \"queue_ms\": %.3f, \"run_ms\": %.3f", request->queue_ms, request->run_ms);
        text_addf(line, ", \"request_bytes\": %llu, \"response_bytes\": %llu", (unsigned long long)request->request_bytes,
                  (unsigned long long)request->response_bytes);
        add_member(line, "client", request->client);
        add_member(line, "trace_id", request->trace_id);
        add_member(line, "parent_id", request->parent_id);
        add_member(line, "span_id", request->span_id);
        text_add_char(line, '}');
}

static void add_text_request(Text *line, const LogRequest *request)
{
        text_addf(line, "%s %s", request->method, request->route);
        if (given(request->graph))
                text_addf(line, " %s", request->graph);
        text_addf(line, " %d%s%s %.3f ms", request->status, given(request->code) ? " " : "", given(request->code) ? request->code : "",
                  request->total_ms);
        if (request->is_run)
                text_addf(line, " (queue %.3f, run %.3f)", request->queue_ms, request->run_ms);
        text_addf(line, " %llu bytes in, %llu out, %s", (unsigned long long)request->request_bytes,
                  (unsigned long long)request->response_bytes, request->id);
        if (given(request->trace_id))
                text_addf(line, " trace %s", request->trace_id);
}

void log_request(const LogRequest *request)
{
        Text line = { .n = 0 };
        bool json = atomic_load(&sink.json);
        add_time(&line, json);
        if (json)
                add_json_request(&line, request);
        else
                add_text_request(&line, request);
        push(&line);
}
