// SPDX-License-Identifier: Apache-2.0
// Spans of requests, sent to a collector of OpenTelemetry (OTLP over HTTP, JSON). A request that is
// traced is copied into bounded memory; a thread of its own sends what is there. No other thread
// ever waits for the collector: what finds no room is dropped and counted.
#pragma once
#include "core/base/text.h"
#include "core/engine/engine.h"

typedef struct Otlp Otlp;

// One answered request. Everything is borrowed; strings may be "" or NULL where nothing is known.
typedef struct OtlpRequest {
        const TraceIds *trace;
        const char *method, *graph, *request_id;
        const char *route, *code; // static
        int64_t version;
        int status;
        int64_t took_ns, queue_ns;
        const int64_t *step_ns; // by JobStep
} OtlpRequest;

enum { OTLP_STEPS = 16 }; // no fewer than a job has

// The same, as it waits.
typedef struct OtlpRecord {
        TraceIds trace;
        char method[8], graph[65], request_id[PROFILE_ID_MAX + 1];
        const char *route, *code;
        int64_t version;
        int status;
        int64_t end_ns; // since 1970
        int64_t took_ns, queue_ns, step_ns[OTLP_STEPS];
} OtlpRecord;

// endpoint "": *out_otlp is NULL, which all functions take. STATUS_USAGE: no such URL, or no ratio
// from 0 to 1.
Status otlp_start(const char *endpoint, const char *sample, Otlp **out_otlp);
// Sends what is left, for a second at most, and ends the thread.
void otlp_stop(Otlp *otlp);
// Whether a request begins a trace, by `random`, which is as likely as the ratio says. Any thread.
bool otlp_draws(const Otlp *otlp, uint64_t random);
// Any thread; never waits.
void otlp_add(Otlp *otlp, const OtlpRequest *request);
// Requests since the start. Any thread.
void otlp_counts(const Otlp *otlp, uint64_t *out_sent, uint64_t *out_dropped);

// otlp_json.c: an ExportTraceServiceRequest of these records.
void otlp_write_json(const OtlpRecord *records, uint32_t n, Text *out);
