// SPDX-License-Identifier: Apache-2.0
// Inside compile/: the bytes that nodes of a dynamic rest touch, and sets of them.
#pragma once
#include "core/program/recording.h"

enum { NEVER = UINT32_MAX };

typedef struct Bytes { // of one storage; or all state that some node may write
        const Storage *storage;
        uint32_t touched, written; // index of the first node of the rest that does; NEVER
} Bytes;

typedef struct BytesSet {
        uint64_t *words; // bit by index in RestBytes.items
        uint32_t n_words;
} BytesSet;

typedef struct RestBytes {
        Bytes *items;
        uint32_t n, capacity;
        uint32_t *slots; // open addressing over items; 0 = free, else index + 1
        uint32_t n_slots;
        Arena arena; // of the sets
        size_t set_words;
} RestBytes;

void rest_bytes_init(RestBytes *bytes);
void rest_bytes_clear(RestBytes *bytes); // its sets are gone, too
void rest_bytes_deinit(RestBytes *bytes);

// The storage by which the bytes of `tensor` are known. NULL stands for all state that some node
// may write: modules and child graphs read it by themselves, so it is one item as a whole.
const Storage *rest_bytes_key(const Tensor *tensor);
// The index of a key; it is added when it is new.
Status rest_bytes_index(RestBytes *bytes, const Storage *key, uint32_t *out_index);
const Bytes *rest_bytes_find(const RestBytes *bytes, const Storage *key); // NULL: no node touches it

// Sets begin zeroed. STATUS_DYNAMIC where all sets together become too large.
Status bytes_set_add(RestBytes *bytes, BytesSet *set, uint32_t index);
Status bytes_set_merge(RestBytes *bytes, BytesSet *set, const BytesSet *from);
