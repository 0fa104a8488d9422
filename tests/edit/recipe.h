// SPDX-License-Identifier: Apache-2.0
// Recipes as JSON for tests: the steps of tools/generate/make_edit_cases.py, carried out on a
// session.
#pragma once
#include <jansson.h>
#include "core/edit/edit.h"

// Any JSON as a value; "%x" is node x of the session.
Value recipe_value(const Edit *edit, const json_t *json);
// One step. Text in `json` that names no node aborts.
Status recipe_step(Edit *edit, const json_t *json);
// A graph from FX JSON; aborts when it does not read.
Graph *recipe_graph(const json_t *document);
