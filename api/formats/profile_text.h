// SPDX-License-Identifier: Apache-2.0
// Profiles as JSON, as text tables, and in the forms that other tools show: Chrome's trace events
// (Perfetto, chrome://tracing) and folded stacks (flame graphs).
#pragma once
#include "core/base/text.h"
#include "core/profile/profile.h"

typedef enum ProfileForm {
        PROFILE_JSON,
        PROFILE_TABLE,
        PROFILE_CHROME,
        PROFILE_FOLDED,
        PROFILE_HTML, // a report (report_html.h)
        PROFILE_FORM_COUNT
} ProfileForm;
extern const char *const profile_form_names[PROFILE_FORM_COUNT]; // "json", "text", ...

// One run as the JSON object of GET /v1/profiles/{id}.
void profile_write_json(const RunProfile *profile, Text *out);
// The same as a table for people, slowest node first.
Status profile_write_table(const RunProfile *profile, Text *out);
// Trace events: the request's steps on one track, what ran for the nodes on another. Times in
// microseconds from the request's arrival.
Status profile_write_chrome(const RunProfile *profile, Text *out);
// A line per row, "graph;module;node nanoseconds".
Status profile_write_folded(const RunProfile *profile, Text *out);

// Statistics.
typedef struct StatsView {
        ProfileBy by;
        uint32_t depth;   // of modules' paths; 0: whole
        uint32_t slowest; // so many lines of each signature, the slowest first; 0: all
} StatsView;
// {"signatures": [{"signature", "program", "run_us": {...}, "nodes": [...]}]}, or "groups" in the
// place of "nodes".
Status stats_write_json(const SignatureSummary *signatures, uint32_t n, const StatsView *view, Text *out);
Status stats_write_table(const SignatureSummary *signatures, uint32_t n, const StatsView *view, Text *out);
// Means, one process per signature, rows one after the other.
Status stats_write_chrome(const char *graph, const SignatureSummary *signatures, uint32_t n, Text *out);
Status stats_write_folded(const char *graph, const SignatureSummary *signatures, uint32_t n, Text *out);
