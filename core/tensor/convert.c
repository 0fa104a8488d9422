// SPDX-License-Identifier: Apache-2.0
// convert.c: which of the loops of convert_loops.c are used.
#include "core/tensor/convert.h"

#include "core/base/isa.h"
#include "core/tensor/convert_tables.h"

static const TileTables *tables(void)
{
#ifdef CONVERT_HAS_WIDE
        return isa_level() >= ISA_AVX2 ? &tile_tables_wide : &tile_tables_plain;
#else
        return &tile_tables_plain;
#endif
}

TileLoad tile_loader(TileClass class, Dtype dtype)
{
        return tables()->load[class][dtype];
}

TileStore tile_storer(TileClass class, Dtype dtype)
{
        return tables()->store[class][dtype];
}

const uint8_t tile_bytes[TILE_CLASS_COUNT] = {
        [TILE_F32] = 4, [TILE_F64] = 8, [TILE_U8] = 1,    [TILE_I32] = 4,  [TILE_I64] = 8,
        [TILE_U64] = 8, [TILE_C64] = 8, [TILE_C128] = 16, [TILE_MASK] = 1,
};
const Dtype tile_dtype[TILE_CLASS_COUNT] = {
        [TILE_F32] = DTYPE_F32, [TILE_F64] = DTYPE_F64,   [TILE_U8] = DTYPE_U8,
        [TILE_I32] = DTYPE_I32, [TILE_I64] = DTYPE_I64,   [TILE_U64] = DTYPE_U64,
        [TILE_C64] = DTYPE_C64, [TILE_C128] = DTYPE_C128, [TILE_MASK] = DTYPE_BOOL,
};
