// SPDX-License-Identifier: Apache-2.0
// Reports: one HTML file with a run's time, statistics or a comparison, which needs no server. The
// file is the same for all (web/report.js) but for its data, a block of JSON.
#pragma once
#include "core/base/text.h"

extern const char report_html_policy[]; // of the reply that carries one: nothing runs in place

// Adds the report that shows the JSON object `data`: {"profile", "folded"}, {"graph",
// "statistics", "folded"} or {"comparison"}. `<` is written as an escape of JSON, so no text ends
// the block.
Status report_write_html(const Text *data, Text *out);
