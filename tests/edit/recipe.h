// SPDX-License-Identifier: Apache-2.0
// Graphs and recipes as JSON for tests.
#pragma once
#include <jansson.h>
#include "core/edit/edit.h"

// One step, by the reader of the wire. Its failure's message has no place in front.
Status recipe_step(Edit *edit, const json_t *step);
// A graph from FX JSON; aborts when it does not read.
Graph *recipe_graph(const json_t *document);
