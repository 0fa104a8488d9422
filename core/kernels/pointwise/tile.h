// SPDX-License-Identifier: Apache-2.0
// Tile programs: a group of pointwise rows run together, tile by tile, so that what one row gives
// the next never leaves the cache. A program is a list of steps over values; a value is a tile of
// one class. The loops are those that pointwise_run calls, and conversions and roundings stand
// where it has them, so results have the bits of the rows run one by one.
//
// Built by one thread (tile_add_*, then tile_finish), then immutable and shared.
#pragma once
#include "core/kernels/pointwise/pointwise.h"

enum { TILE_MAX_INPUTS = 16, TILE_MAX_OUTPUTS = 8, TILE_MAX_STEPS = 192, TILE_MAX_VALUES = 192 };

typedef struct TileProgram TileProgram;
typedef uint32_t TileValueId;

// One row, with everything decided as for pointwise_run.
typedef struct TileOp {
        const PointKernel *kernel;
        Dtype common, out; // computed in, and the result's
        const PointParams *params;
        TileValueId in[POINT_MAX_INPUTS];
        bool exact[POINT_MAX_INPUTS];
} TileOp;

Status tile_program_new(TileProgram **out_program);
TileProgram *tile_program_free(TileProgram *program); // NULL-safe, returns NULL
DEFINE_CLEANUP(TileProgram, tile_program_free)

// Over any of the limits above all of these fail with STATUS_TOO_LARGE: the group has to be run in
// parts. Inputs are numbered by calls of tile_add_input. Any real dtype and strides; broadcast to
// the shape of the outputs.
Status tile_add_input(TileProgram *program, const TensorMeta *meta, TileValueId *out_value);
// A Python number: dtype DTYPE_BOOL, DTYPE_I64 or DTYPE_F64; `number` holds an element of it.
Status tile_add_number(TileProgram *program, Dtype dtype, PointParam number, TileValueId *out_value);
Status tile_add_op(TileProgram *program, const TileOp *op, TileValueId *out_value);
// The value as `dtype`, cast as copies are; neither may be uint64.
Status tile_add_cast(TileProgram *program, TileValueId value, Dtype dtype, TileValueId *out_value);
// Outputs are numbered by calls. All have one shape; meta->dtype is the value's.
Status tile_add_output(TileProgram *program, TileValueId value, const TensorMeta *meta);
Status tile_finish(TileProgram *program);
// Whether an input that is the same in every row of `n` elements is loaded once for all rows, in
// programs of float32: a tile holds whole rows.
bool tile_keeps_rows(int64_t n);
// The name for profiles: "tile_avx512".
const char *tile_name(void);

// in[k], out[k]: data of input and output k. Outputs overlap neither inputs nor each other, but the
// output of a program that has no other may be the very same tensor as an input. Fails as
// pointwise_run does. Allocates nothing.
Status tile_run(const TileProgram *program, const void *const *in, void *const *out, const RunContext *ctx);
// Whether all outputs are contiguous and of a kind that tiles hold.
bool tile_has_dense_outputs(const TileProgram *program);
// For such programs, elements begin..end - 1 of the outputs' row-major order only, on this thread:
// out[k] holds that part.
Status tile_run_part(const TileProgram *program, const void *const *in, void *const *out, int64_t begin,
                     int64_t end);
