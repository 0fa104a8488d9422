// SPDX-License-Identifier: Apache-2.0
// Nested JSON lists of numbers -> one flat buffer and a shape. Private to tensor_json.c and
// tensor_lists.c.
#pragma once
#include "api/formats/tensor_json.h"

// The type of the numbers in the buffer, from which the tensor's dtype is made. GUESS: not known
// before the first number is seen.
typedef enum ListType { LIST_GUESS, LIST_BOOL, LIST_I64, LIST_U64, LIST_F32, LIST_F64 } ListType;

typedef struct Lists {
        ListType type;
        bool fixed; // the type is asked for: numbers of another kind are refused instead of changing it
        void *data; // n items of the type
        size_t n, capacity;
        size_t charged; // bytes taken from `budget`
        Budget *budget;
        int rank; // of the lists; -1 while reading, before any number or empty list was met
        int64_t size[MAX_RANK + 1];
} Lists;

// Reads the next value: a number (rank 0) or lists of equal lengths, at most `max_rank` deep.
Status lists_read(Lists *lists, JsonReader *reader, int max_rank);
void lists_deinit(Lists *lists);
// Index of item `i` in words, "[0][2]", for messages; empty for rank 0.
void lists_place(const Lists *lists, size_t i, char *out, size_t cap);
