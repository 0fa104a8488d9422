// SPDX-License-Identifier: Apache-2.0
// Shared by the files of run.h.
#pragma once
#include "api/run.h"
#include "core/base/json.h"

// Reads the members of a run body (`document`, the reader at its start) into `run`; "graph" is skipped when `graph_allowed`.
Status run_read_body(JsonReader *reader, const char *document, bool graph_allowed, RunCall *run);
// Text that is no JSON value is the reader's to report, before anything is said about what belongs there.
Status run_check_value(JsonReader *reader);
// Reads the value of "inputs" into run->inputs.
Status run_read_inputs(JsonReader *reader, RunCall *run);
// The i-th user input's entry of the signature (user inputs and literals, in order).
const Input *run_user_input(const RunCall *run, uint32_t index);
// The number of user inputs and literals.
uint32_t run_n_user_inputs(const Graph *graph);
Status run_take_encoding(const char *text, RunCall *run);
Status run_take_reply(const char *text, RunCall *run);
Status run_take_mode(const char *text, RunCall *run);
// Fetches from node names separated by commas.
Status run_take_outputs(const char *names, size_t n, RunCall *run);
