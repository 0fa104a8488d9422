// SPDX-License-Identifier: Apache-2.0
// Inside targets/: the parts of graph_resolve.
#pragma once
#include "core/base/text.h"
#include "core/targets/module_table.h"
#include "core/targets/refuse.h"

// ---- the report (report.c); texts are copied into its arena ----
// The current failure as a row, its message as the reason; OK and internal failures are handed on.
Status report_refusal(CheckReport *report, const Node *node, const char *what, Status status);
Status report_missing_state(CheckReport *report, const char *path);
Status report_unknown_config(CheckReport *report, const char *text);

// ---- modules (resolve_module.c) ----
// Class, configuration and state of a called module; sets
// module->resolved, or adds to the report. Shapes of the state that contradict the configuration
// fail with STATUS_SHAPE.
Status resolve_module(Graph *graph, Module *module, const Node *node, CheckReport *report);

// ---- writes (written.c) ----
// Marks the state of `graph` and its child graphs as written where
// some node may write it. After all nodes were resolved.
Status mark_written(Graph *graph);
