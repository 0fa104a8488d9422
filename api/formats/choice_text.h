// SPDX-License-Identifier: Apache-2.0
// What is said of a choice of precisions (core/ops/choice.h), in programs and profiles.
#pragma once
#include "core/base/text.h"
#include "core/ops/choice.h"

// The name of a node, by its index.
typedef const char *(*NodeNamer)(const void *nodes, uint32_t index);

// {"within": 0.01, "error": 0.003, "chose": 8, "verified": 8, "why": null,
//  "nodes": [{"node": "linear", "precision": "int8", "error": 0.001}]}
void choice_write_json(const Choice *choice, NodeNamer name, const void *nodes, Text *out);
// One line.
void choice_write_text(const Choice *choice, NodeNamer name, const void *nodes, Text *out);
