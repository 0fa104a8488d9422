// SPDX-License-Identifier: Apache-2.0
// The choice of precisions for runs with a tolerance (core/ops/choice.h): found by a search
// over the version's samples, kept by content, tolerance and samples, and stored with the tune
// record.
#pragma once
#include "core/engine/plan.h"
#include "core/ops/choice.h"

// Which samples came with the version, as choices name them.
void version_samples(const GraphVersion *version, char out[CHOICE_SAMPLES + 1]);
// What the plan's request asks for, counted; NULL: it was not searched for yet.
Choice *engine_choice_of(Engine *engine, const PlannedRun *plan);
// Searches on this thread, and keeps what it finds. STATUS_CANCELLED, STATUS_DEADLINE (of `poll`).
Status engine_choose(Engine *engine, const PlannedRun *plan, const RunContext *poll, Choice **out_choice);
// The same as work. The ticket comes back as if nothing had been built: whoever plans again finds
// the choice.
Status engine_start_choosing(Engine *engine, const PlannedRun *plan, Ticket *ticket, Wait *out_wait);
// Keeps a choice, first on disk; one that cannot be written is kept in memory, and that is logged.
// The oldest of the content leave when there are too many. STATUS_NOT_FOUND: the graph has gone.
Status engine_chosen(Engine *engine, const Graph *graph, const Choice *choice);
