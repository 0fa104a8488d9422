// SPDX-License-Identifier: Apache-2.0
// Two buffers. Lines are added to one under a mutex, while the writer thread, without the mutex,
// writes the other; when it is done, the two change places. A full buffer drops the line and counts
// it. Writes may block: standard error may be shared with other processes, so it is not made
// non-blocking. A reader that stopped reading holds up the writer only, and the end of the process
// waits for the writer no longer than STOP_S.
#include "server/log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/base/text.h"

enum { BUFFER_BYTES = 256 << 10, MESSAGE_MAX_BYTES = 2048, LINE_MAX_BYTES = 1024, STOP_S = 1, GATHER_MS = 5 };

static struct {
        pthread_mutex_t mutex;
        pthread_cond_t filled;
        pthread_t thread;
        bool running, stopping, reopen;
        _Atomic bool json;
        _Atomic uint64_t dropped;
        int fd;
        const char *file;
        int which; // the buffer lines are added to
        size_t n;
        char buffers[2][BUFFER_BYTES];
} sink = { .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .fd = STDERR_FILENO };

// ---- writing ----
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
                ssize_t written = write(sink.fd, bytes, piece);
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

// If opening fails, lines still go to the old file.
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
                // The thread is woken only by the line that finds the buffer empty, so more lines
                // are collected at little cost.
                if (!sink.stopping) {
                        pthread_mutex_unlock(&sink.mutex);
                        nanosleep(&(struct timespec){ .tv_nsec = GATHER_MS * 1000000 }, NULL);
                        pthread_mutex_lock(&sink.mutex);
                }
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
                // otherwise the line that reports the loss would be lost as well, and so on without
                // end
                if (written && dropped > reported) {
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
        atomic_store(&sink.json, format == 2 || (format == 0 && isatty(fd) == 0));
        sink.running = pthread_create(&sink.thread, NULL, writer, NULL) == 0;
        return sink.running ? STATUS_OK
                            : fail(STATUS_INTERNAL, "the thread that writes the log could not be started");
}

void log_stop(void)
{
        if (!sink.running)
                return;
        pthread_mutex_lock(&sink.mutex);
        sink.stopping = true;
        pthread_cond_signal(&sink.filled);
        pthread_mutex_unlock(&sink.mutex);
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += STOP_S;
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
// A line under construction. Tens of thousands of requests come per second, on the loop thread: no
// heap and no printf for their lines. A line that is too long is cut.
typedef struct Line {
        size_t n;
        char bytes[LINE_MAX_BYTES];
} Line;

static void add_n(Line *line, const char *bytes, size_t n)
{
        n = MIN(n, sizeof(line->bytes) - line->n);
        memcpy(line->bytes + line->n, bytes, n);
        line->n += n;
}

static void add(Line *line, const char *text)
{
        add_n(line, text, strlen(text));
}

static void add_digits(Line *line, uint64_t value, int least)
{
        char digits[24];
        int n = 0;
        for (; value > 0 || n < least; value /= 10)
                digits[sizeof(digits) - 1 - (size_t)n++] = (char)('0' + value % 10);
        add_n(line, digits + sizeof(digits) - (size_t)n, (size_t)n);
}

static void add_number(Line *line, uint64_t value)
{
        add_digits(line, value, 1);
}

// Three decimals.
static void add_ms(Line *line, double ms)
{
        uint64_t us = ms > 0 ? (uint64_t)(ms * 1000 + 0.5) : 0;
        add_number(line, us / 1000);
        add(line, ".");
        add_digits(line, us % 1000, 3);
}

// Names and ids, all of them checked before. Characters that would need escaping cannot occur; if
// that changes, they become '?'.
static void add_name(Line *line, const char *text)
{
        for (; *text != '\0'; text++) {
                bool plain = (unsigned char)*text >= 0x20 && (unsigned char)*text < 0x7f && *text != '"' &&
                             *text != '\\';
                add_n(line, plain ? text : "?", 1);
        }
}

static void add_time(Line *line, bool json)
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
                strftime(last.text, sizeof(last.text), "%Y-%m-%dT%H:%M:%S.", &utc);
                last.second = now.tv_sec;
        }
        add(line, json ? "{\"time\": \"" : "");
        add(line, json ? last.text : last.text + strlen("2026-01-01T"));
        add_digits(line, (uint64_t)now.tv_nsec / 1000000, 3);
        add(line, json ? "Z\"" : " ");
}

static void push(const char *bytes, size_t n, bool whole)
{
        pthread_mutex_lock(&sink.mutex);
        if (!whole || n + 1 > BUFFER_BYTES - sink.n) {
                atomic_fetch_add(&sink.dropped, 1);
        } else {
                char *to = sink.buffers[sink.which] + sink.n;
                memcpy(to, bytes, n);
                to[n] = '\n';
                if (sink.n == 0)
                        pthread_cond_signal(&sink.filled);
                sink.n += n + 1;
        }
        pthread_mutex_unlock(&sink.mutex);
}

static void begin_line(Text *line, bool json)
{
        Line start = { .n = 0 };
        add_time(&start, json);
        text_add_n(line, start.bytes, start.n);
}

static void push_message(const char *level, const char *format, va_list arguments)
{
        char message[MESSAGE_MAX_BYTES];
        Text line = { .n = 0 };
        bool json = atomic_load(&sink.json);
        vsnprintf(message, sizeof(message), format, arguments);
        begin_line(&line, json);
        if (json) {
                text_addf(&line, ", \"level\": \"%s\", \"message\": ", level);
                text_add_json(&line, message);
                text_add_char(&line, '}');
        } else {
                for (char *at = message; *at != '\0'; at++)
                        // one line stays one line, whatever the client sent
                        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at;
                text_add(&line, message);
        }
        push(line.data, line.n, !line.failed);
        text_deinit(&line);
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

static void add_fields(Text *line, bool json, const LogField *fields, size_t n);

static void add_field(Text *line, bool json, const LogField *field)
{
        if (json) {
                text_add_json(line, field->key);
                text_add(line, ": ");
        } else {
                text_addf(line, "%s=", field->key);
        }
        if (field->members != NULL) {
                text_add_char(line, '{');
                add_fields(line, json, field->members, field->n_members);
                text_add_char(line, '}');
        } else if (field->text == NULL) {
                text_addf(line, "%lld", (long long)field->number);
        } else if (json) {
                text_add_json(line, field->text);
        } else {
                text_add(line, field->text);
        }
}

static void add_fields(Text *line, bool json, const LogField *fields, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                text_add(line, i == 0 ? "" : json ? ", " : " ");
                add_field(line, json, &fields[i]);
        }
}

void log_record(const char *message, const LogField *fields, size_t n_fields)
{
        Text line = { .n = 0 };
        bool json = atomic_load(&sink.json);
        begin_line(&line, json);
        text_addf(&line, json ? ", \"level\": \"info\", \"message\": \"%s\", " : "%s: ", message);
        add_fields(&line, json, fields, n_fields);
        text_add(&line, json ? "}" : "");
        push(line.data, line.n, !line.failed);
        text_deinit(&line);
}

static bool given(const char *text)
{
        return text != NULL && text[0] != '\0';
}

static void add_member(Line *line, const char *key, const char *value)
{
        if (!given(value))
                return;
        add(line, key);
        add(line, "\"");
        add_name(line, value);
        add(line, "\"");
}

// Overload (503) and deadlines (504) are warnings; other 5xx are errors.
static const char *level_of(int status)
{
        return status == 503 || status == 504 ? "warning" : status >= 500 ? "error" : "info";
}

static void add_json_request(Line *line, const LogRequest *request)
{
        add_member(line, ", \"level\": ", level_of(request->status));
        add_member(line, ", \"request_id\": ", request->id);
        add_member(line, ", \"method\": ", request->method);
        add_member(line, ", \"route\": ", request->route);
        add_member(line, ", \"graph\": ", request->graph);
        if (request->version > 0) {
                add(line, ", \"version\": ");
                add_number(line, (uint64_t)request->version);
        }
        add(line, ", \"status\": ");
        add_number(line, (uint64_t)request->status);
        add_member(line, ", \"code\": ", request->code);
        add(line, ", \"duration_ms\": ");
        add_ms(line, request->total_ms);
        if (request->is_run) {
                add(line, ", \"queue_ms\": ");
                add_ms(line, request->queue_ms);
                add(line, ", \"run_ms\": ");
                add_ms(line, request->run_ms);
        }
        add(line, ", \"request_bytes\": ");
        add_number(line, request->request_bytes);
        add(line, ", \"response_bytes\": ");
        add_number(line, request->response_bytes);
        add_member(line, ", \"client\": ", request->client);
        add_member(line, ", \"token\": ", request->token);
        add_member(line, ", \"trace_id\": ", request->trace_id);
        add_member(line, ", \"parent_id\": ", request->parent_id);
        add_member(line, ", \"span_id\": ", request->span_id);
        add(line, "}");
}

static void add_word(Line *line, const char *before, const char *word)
{
        if (!given(word))
                return;
        add(line, before);
        add_name(line, word);
}

static void add_text_request(Line *line, const LogRequest *request)
{
        add_name(line, request->method);
        add_word(line, " ", request->route);
        add_word(line, " ", request->graph);
        add(line, " ");
        add_number(line, (uint64_t)request->status);
        add_word(line, " ", request->code);
        add(line, " ");
        add_ms(line, request->total_ms);
        add(line, " ms");
        if (request->is_run) {
                add(line, " (queue ");
                add_ms(line, request->queue_ms);
                add(line, ", run ");
                add_ms(line, request->run_ms);
                add(line, ")");
        }
        add(line, " ");
        add_number(line, request->request_bytes);
        add(line, " bytes in, ");
        add_number(line, request->response_bytes);
        add_word(line, " out, ", request->id);
        add_word(line, " token ", request->token);
        add_word(line, " trace ", request->trace_id);
}

void log_request(const LogRequest *request)
{
        Line line;
        bool json = atomic_load(&sink.json);
        line.n = 0;
        add_time(&line, json);
        if (json)
                add_json_request(&line, request);
        else
                add_text_request(&line, request);
        push(line.bytes, line.n, true);
}
