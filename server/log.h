// SPDX-License-Identifier: Apache-2.0
// Log lines through bounded memory and a writer thread: no other thread waits for a slow terminal,
// pipe or disk. Lines that do not fit are counted, and the count is written once there is room. Any
// thread, unless said otherwise.
#pragma once

#include "core/base/status.h"

typedef struct LogOptions {
        const char *format; // "auto" (text on a terminal, else JSON), "text", "json"
        const char *file;   // "": standard error
} LogOptions;

// Starts the writer thread. STATUS_USAGE: an unknown format, or a file that cannot be opened.
// Strings are borrowed until log_stop.
Status log_start(const LogOptions *options);
// Writes the remaining lines, for a second at most, and ends the thread.
void log_stop(void);
// Closes the file and opens it again (log rotation renamed it); does nothing for standard error.
void log_reopen(void);
// Lines lost since the start, because the reader was too slow for the bounded memory or because
// writing failed.
uint64_t log_dropped(void);

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// An event with its fields. A field is an object of `members`, else `text`, else `number`.
typedef struct LogField LogField;
struct LogField {
        const char *key, *text;
        int64_t number;
        const LogField *members;
        size_t n_members;
};
void log_record(const char *message, const LogField *fields, size_t n_fields);

// One answered request. Never holds inputs, outputs, targets as sent, or credentials. The client
// chooses only the graph's name and the ids freely, and both were checked; the token's name is the
// operator's. "" or NULL: unknown, left out.
typedef struct LogRequest {
        const char *method, *route, *id, *graph, *code, *client;
        const char *token; // its name, never itself
        const char *trace_id, *parent_id, *span_id;
        int64_t version;
        int status;
        double total_ms, queue_ms, run_ms; // the last two: runs only
        bool is_run;
        uint64_t request_bytes, response_bytes;
} LogRequest;
void log_request(const LogRequest *request);
