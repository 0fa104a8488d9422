// SPDX-License-Identifier: Apache-2.0
// Tiles: runs of elements converted between a storage dtype and a compute class, with PyTorch's
// cast rules (x86's where C leaves them undefined). Kernels load a tile, compute in the class, and
// store it. Any dtype loads into and is stored from any class.
#pragma once
#include "core/tensor/dtype.h"

typedef struct ComplexF32 {
        float re, im;
} ComplexF32;
typedef struct ComplexF64 {
        double re, im;
} ComplexF64;

typedef enum TileClass {
        TILE_F32,
        TILE_F64,
        TILE_U8,
        TILE_I32, // for other integers of up to 32 bits, unsigned ones up to 16
        TILE_I64,
        TILE_U64,  // as TILE_I64, but read as unsigned when stored to floats
        TILE_C64,  // ComplexF32
        TILE_C128, // ComplexF64
        TILE_MASK, // uint8_t, 0 or 1: whether an element is not 0
        TILE_CLASS_COUNT
} TileClass;

// `n` elements, `stride` bytes apart (0 repeats one element), into the dense `tile`. Real classes
// take the real part of complex numbers.
typedef void (*TileLoad)(const void *from, int64_t stride, size_t n, void *tile);
// The inverse. `to` and `tile` must not overlap.
typedef void (*TileStore)(const void *tile, size_t n, void *to, int64_t stride);

// By isa_level(), which results do not depend on.
TileLoad tile_loader(TileClass class, Dtype dtype);
TileStore tile_storer(TileClass class, Dtype dtype);
// Bytes of one tile element.
extern const uint8_t tile_bytes[TILE_CLASS_COUNT];
// The dtype whose elements a tile holds as they are stored.
extern const Dtype tile_dtype[TILE_CLASS_COUNT];
