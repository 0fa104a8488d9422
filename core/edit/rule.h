// SPDX-License-Identifier: Apache-2.0
// Rules: which nodes of a graph, and what becomes of each. What a subclass of torch.fx.Interpreter
// or Transformer says in its handlers, as data.
//
// All rules are matched against the authored graph, before the first one changes anything, as an
// interpreter's handlers see the authored nodes. Actions are carried out in order. A second action
// on a node works on the call that the first one left there. On a placeholder, get_attr or output
// it works on a call that gives back the node's value (edit_identity).
#pragma once
#include "core/edit/actions.h"
#include "core/edit/match.h"
#include "core/edit/observe.h"

typedef enum EditAction {
        EDIT_NO_ACTION,
        EDIT_RETARGET,      // another target, the same arguments
        EDIT_RETARGET_CALL, // another call
        EDIT_PASSTHROUGH,   // an argument in place of the result
        EDIT_CALL,          // another graph in place of the call
        EDIT_WRAP,          // graphs before and after the call
        EDIT_CONSTANT,      // a value that comes with the request
        EDIT_PATCH,         // part of the result is changed by such a value
} EditAction;

// Texts, values and graphs are borrowed.
typedef struct EditRule {
        EditMatch match;
        EditAction action;
        bool optional;            // no hit is no failure
        uint8_t observe, halt_on; // of EditObserve, EditHalt
        bool as_text;
        const char *target; // RETARGET
        // RETARGET_CALL: VALUE_NODE in it is a node of the base or of the working graph; without
        // args and kwargs the node keeps its own
        EditNew call;
        uint32_t argument;           // PASSTHROUGH
        const Graph *before, *after; // WRAP (either may be NULL); CALL: `after`
        const char *before_name, *after_name;
        // CONSTANT, PATCH: the value. `state` NULL: it is the next hidden input, which `constant`
        // describes; else it becomes state of the new graph.
        TensorSpec constant;
        Tensor *state;
        EditPatchKind patch;
        Value index; // PATCH: a tuple
} EditRule;

// Carries the rules out. What they matched is in the `rules` of the finished graph. Failures name
// the rule ("overrides[1]") as their argument. Hidden inputs are made in the order of the rules.
Status edit_apply_rules(Edit *edit, const EditRule *rules, uint32_t n);
