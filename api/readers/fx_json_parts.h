// SPDX-License-Identifier: Apache-2.0
// One reading of an FX JSON document, shared by fx_json.c (document, nodes), fx_json_value.c
// (arguments) and fx_json_state.c (modules, tensors).
#pragma once
#include "api/readers/fx_json.h"
#include "core/base/json.h"

// An entry of a graph's "state" that needs others to be read first: {"same_as": path}, or a tensor
// given by dtype and shape only.
typedef struct FxLaterState {
        Graph *graph;
        const char *path;
        const char *same_as; // NULL: only described
        Dtype dtype;
        int rank;
        int64_t shape[MAX_RANK];
} FxLaterState;

typedef struct FxReader {
        const char *text; // the document
        size_t n;
        JsonReader *json;
        Arena scratch; // decoded strings; dies with the reading
        const FxStateSource *source;
        FxLaterState *later;
        uint32_t n_later, later_capacity;
        StringMap later_by_path; // "<graph>:<path>" -> index in `later`, plus one
        size_t data_bytes;       // of the document's text that are tensor data
        int depth;               // graphs around the one being read
        // values are templates of a rule: "$0" and other texts that begin with $ stay as they are
        bool templates;
        char place[512];
        size_t n_place;
} FxReader;

// What a node's object says. Texts are in the reader's scratch memory.
typedef struct FxNode {
        bool has_op;
        Opcode op;
        const char *name, *target, *type;
        Value args, kwargs; // a tuple and a dict, or VALUE_NONE
        TensorSpec spec;
        bool has_spec;
        const char *module_stack; // the object's text in the document; NULL: none
        size_t n_module_stack;
        const char *stack_trace;
        Text notes;
} FxNode;
void fx_node_deinit(FxNode *parts);
// Arguments name nodes of `graph`; messages call a node without a name `place`. *parts is zeroed by
// the caller, who frees it also on failure.
Status fx_read_node(FxReader *reader, const Graph *graph, const char *place, FxNode *parts);

// A document's object into a new graph that is not finished yet.
Status fx_read_graph(FxReader *reader, Graph **out_graph);
// The failure for an unknown member of an object: `"nodes" has no member "x"; it knows a, b`.
Status fx_unknown_member(const char *what, const char *key, const char *known);
// The place of the reading, for messages: `node "add", args` + `[1]`. Enter before a part is read,
// leave after it was read without failure; a failure leaves the place as it is. fx_enter returns
// the argument for fx_leave.
size_t fx_enter(FxReader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fx_leave(FxReader *reader, size_t outer);
// Puts the place of the failure in front of its message: `node "add", args[1]: `. Blanks and commas
// at its end are left out.
void fx_put_in_front(const char *place);
// Whether the graph's own part of the document is still within limits.max_graph_json.
Status fx_check_size(const FxReader *reader);

// "call_function" ...
Status fx_read_opcode(FxReader *reader, Opcode *out_op);
// One argument. Nodes are looked up in `graph`; NULL: none may be named.
Status fx_read_value(FxReader *reader, const Graph *graph, int depth, Value *out_value);

Status fx_read_modules(FxReader *reader, Graph *graph);
Status fx_read_state(FxReader *reader, Graph *graph);
// After the whole document: tensors of the source, then entries that waited for others.
Status fx_complete_state(FxReader *reader, Graph *root);
