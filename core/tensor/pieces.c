// SPDX-License-Identifier: Apache-2.0
// pieces.c: an array; given ones are sorted and found by bisection.
#include "core/tensor/pieces.h"

void pieces_deinit(Pieces *pieces)
{
        for (uint32_t i = 0; i < pieces->n; i++)
                storage_unref(pieces->items[i].storage);
        free(pieces->items);
        pieces->items = NULL;
        pieces->n = pieces->capacity = 0;
}

Storage *pieces_find(const Pieces *pieces, size_t offset, size_t n)
{
        if (pieces == NULL || pieces->collect)
                return NULL;
        uint32_t first = 0, end = pieces->n;
        while (first < end) {
                uint32_t middle = first + (end - first) / 2;
                const Piece *piece = &pieces->items[middle];
                if (piece->offset == offset)
                        return piece->n == n ? piece->storage : NULL;
                if (piece->offset < offset)
                        first = middle + 1;
                else
                        end = middle;
        }
        return NULL;
}

Status pieces_add(Pieces *pieces, size_t offset, size_t n, Storage *storage)
{
        TRY(array_reserve(&pieces->items, &pieces->capacity, pieces->n + 1, sizeof(*pieces->items)));
        pieces->items[pieces->n++] = (Piece){ offset, n, storage_ref(storage) };
        return STATUS_OK;
}

static int by_offset(const void *a, const void *b)
{
        const Piece *left = a, *right = b;
        return left->offset < right->offset ? -1 : left->offset > right->offset;
}

void pieces_sort(Pieces *pieces)
{
        if (pieces->n > 1)
                qsort(pieces->items, pieces->n, sizeof(*pieces->items), by_offset);
}
