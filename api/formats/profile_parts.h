// SPDX-License-Identifier: Apache-2.0
// Shared by the files that print profiles.
#pragma once
#include "api/formats/profile_text.h"

// What a row stands for: one authored node, or all that an instruction of a program computes.
typedef struct RowNodes {
        const Node *first;
        const Node *const *nodes;
        uint32_t n;
} RowNodes;

RowNodes profile_row_nodes(const Node *const *node, const Node *const *nodes, uint32_t n_nodes);
// false for placeholders and the output, whose rows carry no information
bool profile_shows_node(const Node *node);
// An object's beginning: {"nodes": [...], "op", "target", "kernel", and "why" where nothing ran.
void profile_write_node(RowNodes row, const char *kernel, const char *why, Text *out);
void profile_write_meta(bool has_tensor, const TensorMeta *meta, Text *out); // , "shape", "dtype"
// For tables: "conv1 +2"; a bar of 20 marks at most; the width of a column.
const char *profile_row_label(const Node *node, uint32_t n_nodes, char out[64]);
void profile_bar(Text *out, double share);
int profile_name_width(const char *name, int width);
