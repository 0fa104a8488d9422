// SPDX-License-Identifier: Apache-2.0
// OTLP's JSON: ids are hex digits, 64-bit numbers are strings, enums are numbers.
//
// A request is a span of kind SERVER, and each of its steps a child. A job knows how long it was in
// each step, not when each began. Steps follow one another, so they are laid out back to back, the
// wait for a worker first, so that the last one ends with the request. What comes before them is
// the arrival of the body. Of a run in a batch, `run` is its share.
#include <stdio.h>
#include <stdlib.h>
#include "server/job.h"
#include "server/otlp.h"
#include "server/version.h"

_Static_assert(OTLP_STEPS >= (int)STEP_COUNT, "a job has more steps");

enum { KIND_INTERNAL = 1, KIND_SERVER = 2, CODE_ERROR = 2 };

static const char *const step_names[STEP_COUNT] = {
        [STEP_ENVELOPE] = "envelope", [STEP_GRAPH] = "graph", [STEP_INPUTS] = "decode",
        [STEP_DERIVE] = "derive",     [STEP_BIND] = "bind",   [STEP_PROGRAM] = "compile",
        [STEP_SESSION] = "session",   [STEP_RUN] = "run",     [STEP_ENCODE] = "encode",
        [STEP_ANSWER] = "answer",
};

static void add_text(Text *out, const char *key, const char *value)
{
        if (value == NULL || value[0] == '\0')
                return;
        text_addf(out, ",{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
        text_add_json(out, value);
        text_add(out, "}}");
}

static void add_number(Text *out, const char *key, int64_t value)
{
        text_addf(out, ",{\"key\":\"%s\",\"value\":{\"intValue\":\"%lld\"}}", key, (long long)value);
}

static void add_times(Text *out, const char *name, int kind, int64_t begin_ns, int64_t end_ns)
{
        text_add(out, ",\"name\":");
        text_add_json(out, name);
        text_addf(out, ",\"kind\":%d,\"startTimeUnixNano\":\"%lld\",\"endTimeUnixNano\":\"%lld\"", kind,
                  (long long)begin_ns, (long long)end_ns);
}

// Differs from the parent's and from its siblings'. Ids only have to be unlikely to meet.
static uint64_t child_id(const char *parent, uint64_t index)
{
        uint64_t id = strtoull(parent, NULL, 16) + (index + 1) * 0x9E3779B97F4A7C15u;
        id = (id ^ (id >> 30)) * 0xBF58476D1CE4E5B9u;
        id = (id ^ (id >> 27)) * 0x94D049BB133111EBu;
        id ^= id >> 31;
        return id == 0 ? 1 : id;
}

static void write_step(const OtlpRecord *record, uint64_t index, const char *name, int64_t begin_ns,
                       int64_t end_ns, Text *out)
{
        text_addf(out, ",\n{\"traceId\":\"%s\",\"spanId\":\"%016llx\",\"parentSpanId\":\"%s\"",
                  record->trace.trace_id, (unsigned long long)child_id(record->trace.span_id, index),
                  record->trace.span_id);
        add_times(out, name, KIND_INTERNAL, begin_ns, end_ns);
        text_add(out, "}");
}

static void write_steps(const OtlpRecord *record, Text *out)
{
        int64_t in_steps = record->queue_ns, at_ns;
        for (int i = 0; i < STEP_COUNT; i++)
                in_steps += step_names[i] == NULL ? 0 : record->step_ns[i];
        at_ns = record->end_ns - MIN(in_steps, record->took_ns);
        if (record->queue_ns > 0)
                write_step(record, STEP_COUNT, "queue", at_ns, MIN(at_ns + record->queue_ns, record->end_ns),
                           out);
        at_ns += record->queue_ns;
        for (int i = 0; i < STEP_COUNT; i++) {
                if (step_names[i] == NULL || record->step_ns[i] <= 0)
                        continue;
                write_step(record, (uint64_t)i, step_names[i], MIN(at_ns, record->end_ns),
                           MIN(at_ns + record->step_ns[i], record->end_ns), out);
                at_ns += record->step_ns[i];
        }
}

static void write_request(const OtlpRecord *record, Text *out)
{
        char name[256];
        snprintf(name, sizeof(name), "%s%s%.200s", record->method, record->route == NULL ? "" : " ",
                 record->route == NULL ? "" : record->route);
        text_addf(out, "{\"traceId\":\"%s\",\"spanId\":\"%s\"", record->trace.trace_id,
                  record->trace.span_id);
        if (record->trace.parent_id[0] != '\0')
                text_addf(out, ",\"parentSpanId\":\"%s\"", record->trace.parent_id);
        add_times(out, name, KIND_SERVER, record->end_ns - record->took_ns, record->end_ns);
        text_add(out, ",\"attributes\":[{\"key\":\"http.request.method\",\"value\":{\"stringValue\":");
        text_add_json(out, record->method);
        text_add(out, "}}");
        add_text(out, "http.route", record->route);
        add_number(out, "http.response.status_code", record->status);
        add_text(out, "error.type", record->code);
        add_text(out, "fxserve.request_id", record->request_id);
        add_text(out, "fxserve.graph", record->graph);
        if (record->version > 0)
                add_number(out, "fxserve.version", record->version);
        text_add(out, "]");
        if (record->status >= 500)
                text_addf(out, ",\"status\":{\"code\":%d}", CODE_ERROR);
        text_add(out, "}");
        write_steps(record, out);
}

void otlp_write_json(const OtlpRecord *records, uint32_t n, Text *out)
{
        text_add(out,
                 "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"
                 "{\"stringValue\":\"fxserve\"}}");
        add_text(out, "service.version", version_facts().version);
        text_add(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"fxserve\"},\"spans\":[\n");
        for (uint32_t i = 0; i < n; i++) {
                if (i > 0)
                        text_add(out, ",\n");
                write_request(&records[i], out);
        }
        text_add(out, "\n]}]}]}\n");
}
