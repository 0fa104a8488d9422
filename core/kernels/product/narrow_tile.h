// SPDX-License-Identifier: Apache-2.0
// The inner loops of products whose constant factor is stored in fewer bits: 8-bit integers or
// bfloat16. A few rows times a panel of two vectors of columns, held in registers over the whole
// sum. A step of the sum reads four bytes of a row: one float, two bfloat16 or int16, four uint8.
// Sums of integers are exact, and no row depends on its neighbours.
//
//                 AVX2, AVX-512                       AVX-512 with VNNI; with BF16
//   int8          rows of int16, vpmaddwd             rows of uint8 with an offset, vpdpbusd
//   bfloat16      rows of float, fused multiply-add   rows of bfloat16, vdpbf16ps
#pragma once
#include "core/kernels/conv/direct_tile.h"

enum { NARROW_MAX_ROWS = 14, NARROW_WEIGHT_STEPS = 127 };
enum { NARROW_WIDE_PANELS = 4 }; // full ones, for the one row of a wide tile

typedef struct NarrowTile {
        DirectTile to;         // bias, out, residual, out_step, n_valid and the clamp; no more
        const char *in;        // of the first row
        int64_t in_step;       // bytes between rows
        const DirectRun *runs; // in steps of four bytes
        uint32_t n_runs;
        const uint8_t *weights;     // [step][column][term]; columns of the panel's vectors
        const uint8_t *ahead;       // weights that are needed soon ...
        int64_t ahead_step;         // ... and bytes of them in each step; 0: none
        int64_t panel_step;         // bytes to the weights of the next panel; of wide tiles
        const float *row_scale;     // integers only: what a step of each row is worth
        const float *row_offset;    // ... what its zero stands for; NULL: zero
        const float *column_scale;  // ... what a step of each column is worth
        const float *column_weight; // ... the sum of each column
} NarrowTile;

typedef void NarrowLoop(const NarrowTile *tile);

// The panels that tiles go through, again for each group of rows.
typedef struct NarrowPanels {
        int64_t n, bytes, n_steps; // bytes and steps of a panel
        bool again;                // there is more than one group
} NarrowPanels;

// Tile `part` of `n_parts` of a group, which has the weights of `panel`, brings its share of those
// of the panel that comes next.
static inline void narrow_look_ahead(const NarrowPanels *panels, int64_t panel, int64_t part, int64_t n_parts,
                                     NarrowTile *tile)
{
        bool is_last = panel + 1 == panels->n;
        const uint8_t *next = is_last ? tile->weights - panel * panels->bytes : tile->weights + panels->bytes;
        bool comes = n_parts > 1 && (!is_last || panels->again);
        tile->ahead = comes ? next + part * panels->bytes / n_parts : tile->weights;
        tile->ahead_step = comes ? panels->bytes / panels->n_steps / n_parts + 1 : 0;
}
typedef struct NarrowRow {
        float scale, offset;
} NarrowRow;
// from[k] = row.scale * to[k] + row.offset, rounded to `most` steps; NaN for a row that is not
// finite. `to` holds numbers of 4 / terms bytes.
typedef NarrowRow NarrowRounding(const float *from, int64_t n, int most, void *to);
// The same in two steps, for numbers that lie apart and share one scale: the first widens range[0]
// to range[1] by numbers, the second rounds them. A NaN makes the range one.
typedef void NarrowRanging(const float *from, int64_t n, float range[2]);
typedef void NarrowPlacing(const float *from, int64_t n, float steps, int zero, uint8_t *to);

typedef struct NarrowKind {
        const char *name;                            // of the instructions
        int terms;                                   // of a row in a step of four bytes
        int weight_bytes;                            // of a number of the factor
        int most_steps, least_steps;                 // that a row is rounded to; zero for bfloat16
        int most_rows;                               // of a tile
        NarrowRounding *round;                       // NULL: rows are read as they are
        NarrowRanging *range;                        // NULL: only rows are rounded
        NarrowPlacing *place;                        // to[k] = from[k] * steps + zero, from 0 to 255
        NarrowLoop *const (*loops)[NARROW_MAX_ROWS]; // [vectors of the panel - 1][rows - 1]
        NarrowLoop *wide;                            // NULL: there is none
} NarrowKind;

typedef struct NarrowIsa {
        int lanes;
        const NarrowKind *int8, *bf16;
} NarrowIsa;

extern const KernelFamily narrow_family;
extern const NarrowKind narrow_dot_int8, narrow_dot_bf16; // AVX-512 with VNNI; with BF16
// NULL without fused multiply-add (ISA_PORTABLE).
const NarrowIsa *narrow_isa(void);

// ---- for the tiles' sources ----
// Row i of seven that begin at `base`, `step` bytes apart; `three` and `five` are multiples of it.
#define NARROW_ROW(base, i)                                                                                  \
        ((base) + ((i) == 0   ? 0                                                                            \
                   : (i) == 1 ? step                                                                         \
                   : (i) == 2 ? step * 2                                                                     \
                   : (i) == 3 ? three                                                                        \
                   : (i) == 4 ? step * 4                                                                     \
                   : (i) == 5 ? five                                                                         \
                              : three * 2))
#define NARROW_INLINE DIRECT_TARGET static inline __attribute__((always_inline))
// 1.5 * 2^23: a number added to it has no bits left behind the point.
#define NARROW_WHOLE      12582912.0f
#define NARROW_WHOLE_BITS 0x4b400000
