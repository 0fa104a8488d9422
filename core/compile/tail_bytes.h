// SPDX-License-Identifier: Apache-2.0
// Inside compile/: the bytes that nodes of an eager tail touch, and sets of them.
#pragma once
#include "core/program/recording.h"

enum { NEVER = UINT32_MAX };

typedef struct Bytes { // of one storage, or of all state that some node may write
        const Storage *storage;
        uint32_t touched, written; // index of the first node of the tail that touches or writes; NEVER
} Bytes;

typedef struct BytesSet {
        uint64_t *words; // bit by index in TailBytes.items
        uint32_t n_words;
} BytesSet;

typedef struct TailBytes {
        Bytes *items;
        uint32_t n, capacity;
        uint32_t *slots; // open addressing over items; 0 = free, else index + 1
        uint32_t n_slots;
        Arena arena; // of the sets
        size_t set_words;
} TailBytes;

void tail_bytes_init(TailBytes *bytes);
void tail_bytes_clear(TailBytes *bytes); // frees its sets, too
void tail_bytes_deinit(TailBytes *bytes);

// The key of the tensor's bytes: its storage. NULL stands for all state that some node may write:
// modules and child graphs read state by themselves, so all of it is one item.
const Storage *tail_bytes_key(const Tensor *tensor);
// The index of a key; a new key is added.
Status tail_bytes_index(TailBytes *bytes, const Storage *key, uint32_t *out_index);
const Bytes *tail_bytes_find(const TailBytes *bytes, const Storage *key); // NULL: no node touches it

// Sets begin zeroed. STATUS_DYNAMIC where all sets together become too large.
Status bytes_set_add(TailBytes *bytes, BytesSet *set, uint32_t index);
Status bytes_set_merge(TailBytes *bytes, BytesSet *set, const BytesSet *from);
