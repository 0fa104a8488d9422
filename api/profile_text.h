// SPDX-License-Identifier: Apache-2.0
// Profiles as JSON and as text tables.
#pragma once
#include "core/base/text.h"
#include "core/profile/profile.h"

// One run: the object of API.md "Profile".
void profile_write_json(const RunProfile *profile, Text *out);
// The same as a table for people, slowest node first.
Status profile_write_table(const RunProfile *profile, Text *out);
// Statistics: {"signatures": [{"signature", "run_us": {...}, "nodes": [...]}]}.
void stats_write_json(const SignatureSummary *signatures, uint32_t n, Text *out);
Status stats_write_table(const SignatureSummary *signatures, uint32_t n, Text *out);
