// SPDX-License-Identifier: Apache-2.0
// Built by tile.c and run by tile_run.c.
#pragma once
#include "core/kernels/pointwise/tile.h"
#include "core/tensor/convert.h"

enum {
        TILE_BYTES = 4096, // of a register
        TILE_REGISTERS = 24,
        TILE_LANES = 16, // the last tile is padded to a multiple where steps cannot fail
        NO_REGISTER = 255,
};

typedef enum TileKind { TILE_INPUT, TILE_NUMBER, TILE_MADE } TileKind;
typedef struct TileValue {
        TileKind kind;
        Dtype dtype;
        TileClass class; // of its elements
        bool uniform;    // one element for all: loaded once per range
        bool filled;     // ... and some step reads it repeated over a tile
        bool repeats; // INPUT that is the same in every row, and tiles are whole rows: loaded once per range
        uint8_t operand; // INPUT: which
        uint8_t reg;
        uint16_t last_use; // step
        Dtype round_to;    // INPUT of one element: DTYPE_NONE or the dtype that it is rounded to
        PointParam number; // NUMBER: an element of its class
} TileValue;

typedef enum TileStepKind {
        STEP_LOOP,
        STEP_LOAD,
        STEP_CONVERT,
        STEP_TO_MASK,
        STEP_ROUND,
        STEP_CAST,
        STEP_STORE
} TileStepKind;
typedef struct TileStep {
        TileStepKind kind;
        uint8_t n_in, uniform; // LOOP: bit k: operand k is one element
        TileValueId in[POINT_MAX_INPUTS], out;
        PointLoop *loop;
        PointParams params;
        Dtype round_to;  // CONVERT, ROUND: DTYPE_NONE or the dtype whose values are kept
        uint8_t operand; // LOAD, STORE
} TileStep;

typedef struct TileOperand {
        TensorMeta meta;
        TileValueId value;
        int64_t stride[MAX_RANK]; // bytes, in plan order
        bool dense;               // one run of elements in plan order, of the kind the tile holds
        bool direct;              // OUTPUT: the step that makes the value writes here
} TileOperand;

struct TileProgram {
        int rank; // dimension 0 is the innermost
        int64_t size[MAX_RANK], numel;
        uint32_t tile; // elements
        bool padded;
        TileOperand *inputs, *outputs;
        TileValue *values;
        TileStep *steps;
        uint32_t n_inputs, n_outputs, n_values, n_steps;
        uint32_t inputs_capacity, outputs_capacity, values_capacity, steps_capacity;
};

// `n` elements of a class rounded to the values of a dtype; `scratch` holds them in between.
static inline void tile_round(TileClass class, Dtype to, const void *from, size_t n, void *scratch, void *out)
{
        tile_storer(class, to)(from, n, scratch, dtype_info[to].bytes);
        tile_loader(class, to)(scratch, dtype_info[to].bytes, n, out);
}
