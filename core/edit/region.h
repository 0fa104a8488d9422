// SPDX-License-Identifier: Apache-2.0
// Calls of modules in a graph that has none: an export keeps the nodes of a module's forward, each
// with the calls it was made in (nn_module_stack). The nodes of one call are a region, on which
// rules act as on a call_module node.
//
// A region has one exit: the node whose value is read outside; the last node if none is. Its
// arguments are the tensors that it reads from outside, in order of first use. Parameters, buffers,
// attributes and sizes are none.
#pragma once
#include "core/edit/actions.h"
#include "core/edit/match.h"

typedef struct EditRegion {
        const char *key;  // of the call in nn_module_stack
        const char *name; // "encoder.0", or "encoder.0@1" for the module's second call
        Node **nodes;     // of the session, in order
        uint32_t n;
        Node *exit;
} EditRegion;
typedef struct EditRegions {
        EditRegion *items;
        uint32_t n;
} EditRegions;
void edit_regions_deinit(EditRegions *regions);

// Whether the rule means regions: it names a module and nothing that only nodes have, and the graph
// has nn_module_stacks and no call_module node.
bool edit_match_is_of_regions(const Edit *edit, const EditMatch *match);
// The regions of a fresh session, in order; a call within a call that is matched is not matched
// again. STATUS_UNSUPPORTED, with the reason: one of them cannot be one call. Not more than
// limits.max_match_steps.
Status edit_match_regions(Edit *edit, const EditMatch *match, EditRegions *out_regions);

// What the region reads from outside, as a tuple of nodes (counted).
Status edit_region_arguments(Edit *edit, const EditRegion *region, Value *out_args);
// Puts a call with the region's arguments behind its exit, and gives it the exit's readers outside.
// The region's nodes go, but for those that somebody else reads. The call has no meaning of its
// own: it is to be replaced.
Status edit_region_call(Edit *edit, const EditRegion *region, Node **out_call);
// A graph that takes the arguments and gives as many in front of the region.
Status edit_region_before(Edit *edit, const EditRegion *region, const Graph *before, const char *name);
