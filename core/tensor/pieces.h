// SPDX-License-Identifier: Apache-2.0
// Pieces: byte ranges of a file that are storages of their own. A reader of weight files looks here
// first: a range that has a storage is not in the file (the file has a hole there). While a file is
// being taken in (`collect`), the reader also adds the ranges of which it makes storages. Before
// anybody else sees these storages, the store gives them other bytes (storage_rebase): a blob for
// each large one, and for the small ones the same place in a copy of the file that is aligned as a
// whole. One thread.
#pragma once
#include "core/tensor/tensor.h"

enum { PIECE_MIN_BYTES = 65536 }; // smaller weights stay in the file

typedef struct Piece {
        size_t offset, n; // in the file
        Storage *storage; // counted
} Piece;

typedef struct Pieces {
        Piece *items; // given ones: ascending
        uint32_t n, capacity;
        bool collect;
        bool local; // the file is one of this machine, no upload
        // While collecting: writable bytes that cost no memory (for what must be inflated). NULL:
        // storage_new.
        Status (*new_bytes)(void *context, size_t n_bytes, Storage **out_storage);
        void *context;
} Pieces;

void pieces_deinit(Pieces *pieces); // not the items' users
// The storage of exactly this range (borrowed), NULL if it has none. `pieces` may be NULL.
Storage *pieces_find(const Pieces *pieces, size_t offset, size_t n);
static inline bool pieces_collect(const Pieces *pieces)
{
        return pieces != NULL && pieces->collect;
}
// Whether limits of uploads hold. They do not for files of this machine, nor for stored uploads,
// which were checked when they were taken in. No pieces (NULL): an upload that is not stored.
static inline bool pieces_of_upload(const Pieces *pieces)
{
        return pieces == NULL || (pieces->collect && !pieces->local);
}
// Whether `n` bytes at `data`, which are the file's at `offset`, can be used where they are (or
// will be).
static inline bool pieces_usable(const Pieces *pieces, const void *data, size_t offset, size_t n,
                                 size_t alignment)
{
        if (pieces_collect(pieces))
                return n >= PIECE_MIN_BYTES || offset % alignment == 0;
        return (uintptr_t)data % alignment == 0;
}
// While collecting: adds a storage of the file's bytes.
Status pieces_add(Pieces *pieces, size_t offset, size_t n, Storage *storage);
// Ascending by offset.
void pieces_sort(Pieces *pieces);
