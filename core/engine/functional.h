// SPDX-License-Identifier: Apache-2.0
// Inside core/engine: recorded calls written into a working copy as calls without writes
// (functionalise.c). functional.c keeps which node holds which recorded value; functional_views.c
// has the inverses of views.
//
// Every recorded value lies on a buffer, as a view of the buffer's base. A write to any of them
// makes new nodes: the functional call, then for each view between it and the base the node that
// puts the part back (slice_scatter ...). The other values of the buffer are out of date then. One
// that is read again is made anew from the base by its chain of views.
#pragma once
#include "core/edit/edit.h"
#include "core/program/recording.h"

typedef struct HeldValue {
        Node *node;    // of the working copy; NULL: none yet
        uint32_t time; // Functional.n_writes when the node had the value
        uint32_t item; // 0: the node has it; k + 1: it is item k of the node's value
} HeldValue;

typedef struct Functional {
        Edit *edit;
        const Graph *graph; // that was recorded: the session's base
        const Recording *recording;
        const Value *values;    // by node of `graph`: tensors are Recorded; VALUE_DYNAMIC: unknown
        HeldValue *held;        // by value
        Node **now;             // by buffer: the node that has the base's content after a write
        Node **first;           // by buffer: the node that has the base before all writes, if one reads it
        uint32_t *last_write;   // by buffer: the last call that writes it; see `call`
        uint32_t *written;      // by buffer: n_writes after the last write; 0: never
        const Recorded **moved; // by value: what a tensor of that value is after `unsqueeze_` and the like
        uint32_t *made_at;      // by node of `graph`: n_writes when it was put there, if it stays
        bool *stays;            // by node of `graph`
        Node *at;               // new nodes come in front of it
        const Node *authored;   // of `graph`, whose calls are written
        Node **made;            // new nodes, in order
        uint32_t call;          // of the recording, from 1: the one that is written down
        uint32_t n_writes, n_made, made_capacity, n_constants;
        bool decomposes; // calls of core ATen operators are wanted
        // x.copy_(y) becomes y itself where that has the same geometry and is not written later.
        bool direct_copies;
} Functional;

// Caller's storage; nothing is owned but the arrays.
Status functional_init(Functional *f, Edit *edit, const Recording *recording, const Value *values);
void functional_deinit(Functional *f);

// The node holds the value from now on, unless another one does already.
void functional_hold(Functional *f, const Recorded *value, Node *node);
// The value is item k of what the node gives: a getitem is made when it is read.
void functional_hold_item(Functional *f, const Recorded *value, Node *node, uint32_t k);
// As functional_hold for placeholders and get_attr nodes: what they have is what was there before
// all writes.
void functional_hold_first(Functional *f, const Recorded *value, Node *node);
// The node that has what the value is now; views are made anew where they are out of date.
Status functional_node(Functional *f, const Recorded *value, Node **out_node);
// What a tensor that had this value is now: another view, if its geometry was changed in place.
const Recorded *functional_moved(const Functional *f, const Recorded *value);
// Whether a write has changed the value's bytes since `time`.
bool functional_is_stale(const Functional *f, const Recorded *value, uint32_t time);
// For value_map: Recorded tensors become nodes, wrapped ones numbers.
Status functional_leaf(void *functional, const Value *leaf, Value *out);
// The same for what a node's value is now.
Status functional_moved_leaf(void *functional, const Value *leaf, Value *out);
// Writes the call down; what it writes is what its first argument is from then on.
Status functional_call(Functional *f, const RecordedCall *call);
// A node in front of f->at. The values are taken, also on failure. meta: of its result, or NULL.
Status functional_add(Functional *f, const char *target, Value take_args, Value take_kwargs,
                      const TensorMeta *meta, Node **out_node);
// The same with up to four arguments.
Status functional_emit(Functional *f, const char *target, const Value *take_args, uint32_t n,
                       const TensorMeta *meta, Node **out_node);
// The view that made the value of another one on the same buffer; NULL: it is no view.
const Recorded *functional_viewed(const Recorded *value);

// ---- functional_views.c ----
// `part` in the place of the view `view` of `whole`, whose content `node` has: a node with the
// content of the whole. STATUS_UNSUPPORTED where no such operator is.
Status functional_put_back(Functional *f, const Recorded *view, const Recorded *whole, Node *node, Node *part,
                           Node **out_node);
