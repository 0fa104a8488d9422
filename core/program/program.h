// SPDX-License-Identifier: Apache-2.0
// Program: a recording that is ready to run. Kernels are chosen, their states prepared, constants
// packed, and every buffer has its place in memory. Immutable and refcounted. Any number of threads
// may run one program at once, each in its own Frame (interp/).
//
// An operand's address is the base of a slot plus an offset:
//   slot 0         no base: the offset is the address of a constant
//   slot 1         the arena of the frame
//   then           one slot per input tensor
//   then           one slot per output storage; each run allocates it, because it leaves with the
//                  reply
//   then           one slot per state that lives on
#pragma once
#include "core/base/text.h"
#include "core/ops/choice.h"
#include "core/program/recording.h"

enum { SLOT_CONSTANT, SLOT_ARENA, SLOT_FIRST_INPUT };

typedef struct Operand {
        uint32_t slot;
        uintptr_t offset; // bytes
} Operand;

// One call of a kernel. `run` is a template: each frame fills in operands, scratch and context.
typedef struct Instruction {
        Status (*kernel)(const OpRun *run);
        OpRun run;
        uint32_t first_operand;   // n_out outputs, then n_in inputs, then scratch
        const RecordedCall *call; // NULL: copies an input or state that the run writes
        const char *name;         // of the implementation
} Instruction;

// What an instruction may run instead, for a search that tries them (emit_program.h).
typedef struct InstructionForm {
        Status (*kernel)(const OpRun *run); // NULL: there is none
        void *state;
} InstructionForm;
typedef InstructionForm InstructionForms[PRECISION_COUNT];

// A row of the profile. Rows are in the order of authored nodes; rows of the eager tail come last,
// in the order in which they run.
enum { ROW_IDLE = -1, ROW_OF_TAIL = -2 };
typedef struct ProgramRow {
        const Node *const *nodes;
        uint32_t n_nodes;
        int32_t instruction;      // ROW_IDLE: no instruction; ROW_OF_TAIL
        const char *kernel, *why; // why the row is idle: "view", "folded"; or NULL
        const TensorMeta *meta;   // of the first result; may be NULL
        int64_t bytes, flops;
} ProgramRow;

typedef struct PlanFigures {
        size_t arena_bytes, naive_bytes, lower_bound_bytes, output_bytes, constant_bytes;
} PlanFigures;

typedef struct Place { // of a buffer
        uint32_t slot;
        size_t offset;
        size_t n_bytes;
} Place;

// Of the n-th state that lives on.
static inline uint32_t state_slot(const Recording *recording, uint32_t n_outputs, uint32_t n)
{
        return SLOT_FIRST_INPUT + recording->n_inputs + n_outputs + n;
}

typedef struct ProgramId {
        char hex[65];
} ProgramId;

typedef struct Program {
        RefCount ref;
        ProgramId id;
        int n_threads;
        Precision precision;
        Choice *choice; // counted; NULL: `precision` is every node's
        Arena arena;
        Recording *recording; // owned: calls, metas, constants, names
        Instruction *code;
        uint32_t n_code;
        InstructionForms *forms; // by instruction; NULL: it was not made for a search
        Operand *operands;
        uint32_t n_operands;
        Place *places;                          // by buffer index
        uint32_t n_inputs, n_outputs, n_states; // slots
        size_t *output_bytes;                   // per output slot
        Packed *packed;                         // owned by instructions, beside their state
        uint32_t n_packed;
        ProgramRow *rows;
        uint32_t n_rows;
        PlanFigures figures;
        size_t child_bytes; // of programs that its instructions hold
        // bit i: the program depends on the value of input i (program_key); it always depends on
        // the values of inputs from 64 on
        uint64_t by_value;
        Value *signature; // input values it was made for; tensors have metas only
        uint32_t n_signature;
        const Node **fetch;
        uint32_t n_fetch;
} Program;

Program *program_ref(const Program *program);
Program *program_unref(Program *program); // NULL-safe, returns NULL
DEFINE_CLEANUP(Program, program_unref)

// A copy of `value` whose tensors have a meta and no storage, so that it keeps nothing of the
// request alive.
Status signature_value(Value value, Value *out_value);

// The listing: one line per instruction with implementation, places of operands and authored nodes;
// then the memory figures.
void program_print(const Program *program, Text *out);
// Bytes the program holds beside the graph's weights.
size_t program_bytes(const Program *program);
