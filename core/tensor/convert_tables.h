// SPDX-License-Identifier: Apache-2.0
// The tables of convert_loops.c, one for each instruction set that it is compiled for.
#pragma once
#include "core/tensor/convert.h"

typedef struct TileTables {
        TileLoad load[TILE_CLASS_COUNT][DTYPE_COUNT];
        TileStore store[TILE_CLASS_COUNT][DTYPE_COUNT];
} TileTables;

extern const TileTables tile_tables_plain;
#ifdef CONVERT_HAS_WIDE
extern const TileTables tile_tables_wide; // for AVX2
#endif
