// SPDX-License-Identifier: Apache-2.0
// Inside the reader of recipes: rows of steps.def, and the values of one step's members.
#pragma once
#include "api/readers/fx_json_parts.h"
#include "api/readers/steps.h"

typedef enum StepMember {
        MEMBER_NONE, // ends a list
#define MEMBER(id, ...) MEMBER_##id,
#define STEP(...)
#include "api/readers/steps.def"
#undef MEMBER
#undef STEP
        MEMBER_COUNT
} StepMember;

typedef enum StepType {
        STEP_TYPE_NODE,
        STEP_TYPE_NODES,
        STEP_TYPE_VALUE,
        STEP_TYPE_ARGS,
        STEP_TYPE_KWARGS,
        STEP_TYPE_TEXT,
        STEP_TYPE_TEXTS,
        STEP_TYPE_OPCODE,
        STEP_TYPE_INDEX,
        STEP_TYPE_FLAG,
        STEP_TYPE_NEW,
        STEP_TYPE_GRAPH,
        STEP_TYPE_MODULE,
        STEP_TYPE_TENSOR,
        STEP_TYPE_SHAPES,
        STEP_TYPE_YES
} StepType;

typedef struct StepMemberRow {
        const char *name, *words;
        StepType type;
} StepMemberRow;
extern const StepMemberRow step_members[MEMBER_COUNT];

typedef struct StepValue {
        const char *raw; // its JSON; NULL: not given
        size_t n_raw;
        // by the row's type:
        Node *node;         // NODE
        Node **nodes;       // NODES; freed with the step
        uint32_t n;         // of nodes or texts
        const char *text;   // TEXT, in the step's scratch memory
        const char **texts; // TEXTS; freed with the step
        int64_t index;      // INDEX
        Opcode op;          // OPCODE
        bool flag;          // FLAG
        Value value;        // VALUE, ARGS, KWARGS; counted
        FxNode new;         // NEW
        Graph *graph;       // GRAPH; MODULE: the graph that holds it at "module". Counted.
        Tensor *tensor;     // TENSOR; counted
        EditShape *shapes;  // SHAPES, `n` of them; freed with the step
} StepValue;

typedef struct Step Step;
typedef struct StepRow {
        StepKind kind;
        const char *name, *words;
        Status (*run)(Step *step);
        uint8_t needs[5], takes[4]; // of StepMember; MEMBER_NONE ends
} StepRow;
extern const StepRow step_rows[];
extern const uint32_t n_step_rows;

struct Step {
        Steps *steps;
        Edit *edit; // of `steps`
        const StepRow *row;
        const char *text; // its JSON
        size_t n_text;
        StepValue values[MEMBER_COUNT];
        Text *matches; // JSON objects with commas between; NULL: no report is wanted
        Arena scratch;
};

// Reads the members that are given by their rows' types.
Status step_read_values(Step *step);
void step_deinit(Step *step);
static inline bool step_has(const Step *step, StepMember id)
{
        return step->values[id].raw != NULL;
}

// The functions that steps.def names.
#define MEMBER(...)
#define STEP(kind, name, function, ...) Status function(Step *step);
#include "api/readers/steps.def"
#undef MEMBER
#undef STEP
