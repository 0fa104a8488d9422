// SPDX-License-Identifier: Apache-2.0
// What Python thinks of texts and values: identifiers, printable characters, repr() and str().
// Shared by the printers of this room.
#pragma once
#include "core/base/text.h"
#include "core/graph/graph.h"

// str.isidentifier() (Python 3.11): letters, digits and underscores of any script, no leading
// digit. Keywords are identifiers.
bool python_is_identifier(const char *text, size_t n);
// repr(str): quotes chosen and characters escaped as Python does.
void python_repr_text(const char *text, size_t n, Text *out);
// Characters (code points) of a UTF-8 text.
size_t python_length(const char *text, size_t n);

// How node names appear inside values: NULL = the node's own name. One name per node for as long as
// the caller prints.
typedef struct Naming {
        const char *(*name)(void *context, const Node *node);
        void *context;
} Naming;

// repr(value). Nesting is bounded by limits.max_nested_values, as for every Value.
void python_repr(Value value, const Naming *naming, Text *out);
// str(value): texts bare, devices by name; everything else as repr.
void python_str(Value value, Text *out);
