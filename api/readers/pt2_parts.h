// SPDX-License-Identifier: Apache-2.0
// The parts of the .pt2 reader, shared by api/pt2*.c only:
//   pt2.c            archive -> root folder, model, documents; puts the parts together
//   pt2_json.c       objects and unions of the documents
//   pt2_graph.c      graph section -> placeholders, output, metas, child graphs
//   pt2_node.c       one node with its getitems
//   pt2_value.c      argument union -> Value
//   pt2_spec.c       TensorMeta, SymInt
//   pt2_tree.c       treespec strings -> Tree
//   pt2_signature.c  signature, module_call_graph, ranges, guards -> Signature
//   pt2_weights.c    weight and constant members -> State
//   pt2_writes.c     which state some node may write
#pragma once
#include "api/readers/pt2_json.h"
#include "api/formats/zip.h"
#include "core/graph/graph.h"
#include "core/tensor/pieces.h"

// A list of values under construction.
typedef struct ValueList {
        Value *items;
        uint32_t n, capacity;
} ValueList;
Status value_list_add(ValueList *list, Value take_value);                  // taken also on failure
Status value_list_take(ValueList *list, ValueKind kind, Value *out_value); // the items as a list or tuple
void value_list_deinit(ValueList *list);

// What a graph input of the document was.
typedef struct Pt2Input {
        Node *placeholder;
        // VALUE_TENSOR, VALUE_INT, VALUE_FLOAT, VALUE_BOOL for values; VALUE_ABSENT for a literal
        ValueKind kind;
        Value literal;
} Pt2Input;

// One graph being read: the model itself (depth 0) or a branch of a higher-order operator.
typedef struct Pt2Graph {
        Graph *graph;     // owned until taken
        Arena *scratch;   // decoded text; outlives the reading
        StringMap values; // name in the document -> Node
        StringMap infix;  // srepr of an expression -> its infix spelling in the graph's arena
        int depth;
        Pt2Input *inputs;
        uint32_t n_inputs, inputs_capacity;
} Pt2Graph;
void pt2_graph_deinit(Pt2Graph *graph);

// Reads the graph section. `literal_names[i]` names input i when it is a literal (NULL: "arg<i>");
// may be NULL altogether. Leaves graph->graph unfinished.
Status pt2_graph_read(JsonText text, const char *const *literal_names, uint32_t n_literal_names,
                      Pt2Graph *graph);
Node *pt2_value_node(const Pt2Graph *graph, const char *name);
// "the value "x" is read before any node makes it".
Status pt2_find_value(const Pt2Graph *graph, const char *name, Node **out_node);

// One node of the document.
Status pt2_read_node(Pt2Graph *graph, JsonReader *reader);
// As graph_add_node, for a node called exactly spec->name that makes the value of that name.
Status pt2_add_named(Pt2Graph *graph, const NodeSpec *take_spec, Node **out_node);

// One Argument.
Status pt2_read_argument(Pt2Graph *graph, JsonReader *reader, Value *out_value);
// One Argument whose tag was read already (json_union_enter): its value.
Status pt2_read_tagged(Pt2Graph *graph, JsonReader *reader, const char *tag, Value *out_value);
// {"name": "x"}
Status pt2_read_name(JsonReader *reader, const char **out_name);
// SymIntArgument and its siblings: {"as_name": "s"} gives *out_name, {"as_int": 3} and the like
// give *out_value.
Status pt2_read_symbol(JsonReader *reader, const char **out_name, Value *out_value);
// A child graph, attached to `graph` as module and get_attr node.
Status pt2_read_child(Pt2Graph *graph, JsonReader *reader, Value *out_value);

// TensorMeta. `dtype` is DTYPE_NONE for a code we have no dtype for; rank -1 when it is over
// MAX_RANK.
typedef struct Pt2TensorMeta {
        int64_t dtype_code;
        Dtype dtype;
        int rank;
        int n_strides;
        SymDim size[MAX_RANK], stride[MAX_RANK];
        int64_t storage_offset; // -1: symbolic
        int64_t layout;
} Pt2TensorMeta;
// `graph` gives infix spellings a home; NULL where expressions are not allowed.
Status pt2_read_tensor_meta(Pt2Graph *graph, Arena *scratch, JsonText text, Pt2TensorMeta *out_meta);
Status pt2_read_sym_int(Pt2Graph *graph, Arena *scratch, JsonReader *reader, SymDim *out_dim);
Dtype pt2_dtype(int64_t code);            // DTYPE_NONE: unknown or one we lack
const char *pt2_dtype_name(int64_t code); // "float8_e4m3fn"; "dtype 99" is for the caller to say when NULL
// The spec of a tensor, in the graph's arena; NULL when it says nothing we can hold.
Status pt2_spec_new(Pt2Graph *graph, const Pt2TensorMeta *meta, TensorSpec **out_spec);

// `namedtuple_fields`: {type: {"field_names": [...]}}, may be empty.
Status pt2_tree_read(const char *treespec, JsonText namedtuple_fields, Arena *scratch, Arena *arena,
                     Tree **out_tree);
// Runs give inputs as JSON objects, where the keys 3 and "3" are one.
Status pt2_tree_check_keys(const Tree *tree);

// Names of the literal inputs, before the graph is read: out_names[i] is NULL for other inputs.
// Arrays live in the scratch arena.
Status pt2_literal_names(JsonText signature, Arena *scratch, const char ***out_names, uint32_t *out_n);
typedef struct Pt2SignatureText {
        JsonText signature, module_call_graph, namedtuple_fields, range_constraints, guards, verifiers;
} Pt2SignatureText;
Status pt2_signature_read(const Pt2SignatureText *text, Pt2Graph *graph);

// Adds the state described by a weights or constants config. `folder` ends in "/".
typedef struct Pt2Weights {
        const Zip *zip;
        Storage *archive_storage; // borrowed; NULL: bytes are copied
        Pieces *pieces;           // borrowed; NULL: none
        size_t n_inflated;        // bytes of deflated members that were copied to memory
        StringMap storages;       // member name -> Storage
        StringMap checked_bools;  // members whose bytes are known to be 0 or 1
        Arena *scratch;
} Pt2Weights;
Status pt2_weights_read(Pt2Weights *weights, JsonText config, const char *folder, bool persistent,
                        Graph *graph);
void pt2_weights_deinit(Pt2Weights *weights);

// Of a graph with a signature: sets State.written and Input.written.
Status pt2_mark_writes(Graph *graph);
