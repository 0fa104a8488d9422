// SPDX-License-Identifier: Apache-2.0
// Recipes: lists of steps in JSON, read by the rows of steps.def and carried out on a working copy.
#pragma once
#include "core/base/text.h"
#include "core/edit/edit.h"

// Lists of steps that were saved by name.
typedef struct SavedSteps {
        // Adds the list's text to *out. STATUS_NOT_FOUND: there is none of that name.
        Status (*find)(void *context, const char *name, Text *out);
        void *context;
} SavedSteps;

typedef struct Steps {
        Edit *edit;              // the caller's; passes may close it and put another in its place
        const SavedSteps *saved; // NULL: none
        Text *report;            // NULL: none is written
        Text *done;              // NULL: not wanted; else the steps as carried out, saved lists written out
        uint32_t depth;          // of saved lists within saved lists; begin with 0
} Steps;

// Carries out all steps of `text`, a JSON list, and lints after each. `done` gets their JSON with
// commas between, without blanks. Adds to the report what each
// did, as JSON objects with commas between: {"changed": [names of nodes that are there], "erased":
// [names], "matches": [...]}. Failures begin with the step, `steps[2], node "a": ...`, and are
// STATUS_MALFORMED, UNKNOWN_MEMBER, TOO_LARGE (limits.max_edit_steps, max_edit_visits ...), LINT or
// what the step's function gives. After a failure the session is only good for edit_free.
Status steps_run(Steps *steps, const char *text, size_t n);
// Whether the text is a list of steps as far as that can be said without a graph: kinds, names and
// members. For lists that are to be saved.
Status steps_check(const char *text, size_t n);

// Whether there is a pass of that name in steps.def.
bool steps_has_pass(const char *name);
void steps_list_passes(Text *out); // JSON: ["lint", ...]

// The rows of steps.def, for documents.
typedef enum StepKind { STEP_EDIT, STEP_PASS, STEP_OBJECT, STEP_DIRECTLY, STEP_KIND_COUNT } StepKind;
// JSON schema of one step: {"oneOf": [...]}.
void steps_schema(Text *out);
