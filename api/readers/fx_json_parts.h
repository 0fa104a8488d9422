// SPDX-License-Identifier: Apache-2.0
// One reading of an FX JSON document, shared by fx_json.c (document, nodes), fx_json_value.c
// (arguments) and fx_json_state.c (modules, tensors).
#pragma once
#include "api/readers/fx_json.h"
#include "core/base/json.h"

// Where a tensor lies in a storage that others may share. Of an entry of "state".
typedef struct FxPlace {
        const char *storage; // NULL: the tensor is its own storage
        int n_strides;       // -1: dense
        int64_t stride[MAX_RANK], offset;
} FxPlace;

// An entry of a graph's "state", or a tensor of the weights file that "state" does not name.
typedef struct FxEntry {
        Graph *graph;
        const char *path;
        Tensor *tensor; // counted; NULL: not there (yet)
        bool is_extra;  // only in the file
        const char *same_as;
        const char *sha256; // of its dense bytes, in hex; NULL: not said
        Dtype dtype;        // said, or DTYPE_NONE
        int rank;           // said, or -1
        int64_t shape[MAX_RANK];
        FxPlace place;
        bool says_parameter, is_parameter, is_transient, written;
} FxEntry;

// A storage that entries name.
typedef struct FxStorage {
        const char *name;
        Tensor *given;   // the weights file has it as it is; counted; NULL: it is made of its entries
        Storage *made;   // counted
        size_t n_bytes;  // that its entries reach, as far as they are there
        size_t width;    // bytes of its widest element
        bool is_adopted; // `made` was there with its numbers
} FxStorage;

// What a graph's "signature" and "hints" say until its nodes and state are known. Inputs and
// outputs are in the graph already.
typedef struct FxSignature FxSignature;
struct FxSignature {
        Graph *graph;
        StringMap hints; // expression -> size + 1
        bool has_signature;
        FxSignature *before;
};

typedef struct FxReader {
        const char *text; // the document
        size_t n;
        JsonReader *json;
        Arena scratch;          // decoded strings; dies with the reading
        const RunContext *poll; // may be NULL
        const FxStateSource *source;
        FxEntry *entries; // of all graphs, in the document's order
        uint32_t n_entries, entries_capacity;
        StringMap entry_by_path; // "<graph>:<path>" -> index in `entries`, plus one
        FxStorage *storages;
        uint32_t n_storages, storages_capacity;
        StringMap storage_by_name; // -> index in `storages`, plus one
        size_t dense_bytes;        // of entries that name a storage, as they were sent
        size_t made_bytes;         // of storages that were made of them
        FxSignature *signatures;   // in the scratch arena; the last one read first
        size_t data_bytes;         // of the document's text that are tensor data
        size_t guard_bytes;        // of all guards' text
        size_t range_bytes;        // of all sizes that have ranges, as text
        int depth;                 // graphs around the one being read
        // values are templates of a rule: "$0" and other texts that begin with $ stay as they are
        bool templates;
        char place[512];
        size_t n_place;
} FxReader;

// What a node's object says. Texts are in the reader's scratch memory.
typedef struct FxNode {
        bool has_op;
        Opcode op;
        const char *name, *target, *type, *origin;
        Value args, kwargs; // a tuple and a dict, or VALUE_NONE
        TensorSpec spec;
        bool has_spec;
        const char *symbol;       // of a symbolic number; NULL: none
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
// After the whole document: tensors of the source, entries that waited for others, storages that
// are shared. Then the graphs have their state.
Status fx_complete_state(FxReader *reader, Graph *root);
void fx_state_deinit(FxReader *reader);
// Notes that an entry names the storage (text in the scratch arena).
Status fx_note_storage(FxReader *reader, const char *name);
// Whether a tensor of the weights file is a storage; then it is kept as one.
Status fx_take_storage(FxReader *reader, const char *path, Tensor *tensor, bool *out_taken);
// Gives all entries that name a storage their tensors in it.
Status fx_place_state(FxReader *reader);
// Whether a tensor is what the entry says of it.
Status fx_check_described(const FxEntry *entry, const Tensor *tensor);

Status fx_read_signature(FxReader *reader, Graph *graph);
Status fx_read_hints(FxReader *reader, Graph *graph);
// When nodes and state of the graph are known: checks what was read, and closes it.
Status fx_complete_signature(FxReader *reader, Graph *graph);
void fx_signatures_deinit(FxReader *reader);

// A text value; STATUS_MALFORMED for anything else.
Status fx_read_word(FxReader *reader, const char **out_word);
// A size: a whole number, or the name (or expression) of a dimension that varies.
Status fx_read_dimension(FxReader *reader, const Graph *graph, SymDim *out_dim);
Status fx_keep_text(Graph *graph, const char *text, const char **out_copy); // NULL stays NULL
