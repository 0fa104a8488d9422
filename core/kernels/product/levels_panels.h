// SPDX-License-Identifier: Apache-2.0
// The constant factor of products of levels, packed for the tiles: panels of columns, their sums,
// scales and bias. Products and convolutions share it.
#pragma once
#include "core/kernels/pack_cache.h"
#include "core/kernels/product/levels.h"

typedef struct LevelsPanels {
        const LevelsIsa *isa;
        int64_t n_columns, n_steps, n_panels, width; // of four bytes; columns of a panel
        Storage *storage;                            // counted: sums of columns, then panels; maybe shared
        float *scales, *bias;                        // of columns, padded with zeros
        bool is_finite;                              // all of them
} LevelsPanels;

typedef struct LevelsFactor {
        const float *column_scale; // [column]
        const float *bias;         // [column]; NULL: zeros
        const void *data;          // what the columns are made of, with how they come out of it:
        const char *format;        // the key of what is shared
        PackShare share;
        // Writes the terms of a column by levels_set_term; the others are zeros. The sum of them.
        int32_t (*pack)(const void *context, int64_t column, const LevelsPanels *panels, int64_t step,
                        uint8_t *to);
        const void *context;
} LevelsFactor;

// `panels` may be given to levels_panels_deinit after a failure.
Status levels_panels_init(LevelsPanels *panels, const LevelsIsa *isa, int64_t n_columns, int64_t n_steps);
Status levels_panels_fill(LevelsPanels *panels, const LevelsFactor *factor);
void levels_panels_deinit(LevelsPanels *panels);
// Columns that panel `panel` holds: a last panel that one vector holds has no more.
int64_t levels_panels_columns(const LevelsPanels *panels, int64_t panel);
// Fills in the tile's members for panel `panel`.
void levels_panels_use(const LevelsPanels *panels, int64_t panel, LevelsTile *tile);
// Fills in what becomes of results. `residual`: floats will be added to them.
void levels_panels_finish(const LevelsPanels *panels, const LevelsOut *out, bool residual, LevelsTile *tile);

// Weights that are needed soon.
typedef struct LevelsAhead {
        const uint8_t *from;
        int64_t part_bytes, step; // of a tile; of its steps
} LevelsAhead;
// The `n_parts` tiles of a group, which have the weights of `panel`, bring those of the panel that
// comes next. `again`: the panels are gone through once more. The tile has the panel.
LevelsAhead levels_look_ahead(const LevelsPanels *panels, int64_t panel, int64_t n_parts, bool again,
                              const LevelsTile *tile);
// The loop of `n_rows` rows with that panel.
static inline LevelsLoop *levels_loop(const LevelsPanels *panels, int64_t panel, int64_t n_rows)
{
        return panels->isa->loops[levels_panels_columns(panels, panel) / panels->isa->lanes - 1][n_rows - 1];
}

// Term k of a column; steps lie `step` bytes apart.
static inline void levels_set_term(const LevelsPanels *panels, int64_t k, int64_t step, int8_t level,
                                   uint8_t *to)
{
        int64_t terms = panels->isa->terms;
        to[k / terms * step + k % terms] = (uint8_t)level;
}
