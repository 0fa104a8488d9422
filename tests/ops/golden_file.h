// SPDX-License-Identifier: Apache-2.0
// Golden cases (tests/golden/README.md): reading a group's two files.
#pragma once
#include "core/base/json.h"
#include "core/base/map.h"
#include "core/tensor/value.h"

// What a result must be.
typedef enum WantKind { WANT_TENSOR, WANT_HASH, WANT_ARG, WANT_VALUE, WANT_LIST } WantKind;
typedef struct Want Want;
struct Want {
        WantKind kind;
        Tensor *tensor;   // WANT_TENSOR: values and geometry
        const char *hash; // WANT_HASH: SHA-256 of the contiguous elements
        int64_t offset;
        int alias;   // argument whose storage is shared; -1: none
        int arg;     // WANT_ARG
        Value value; // WANT_VALUE
        Want *items; // WANT_LIST
        uint32_t n;
        const char *name; // of a mutated argument
};

typedef struct GoldenCase {
        int line;
        const char *op, *opinfo;
        Value args, kwargs; // tuple, dict
        Want outs, mutated; // lists
        double rtol, atol;
        int64_t seed; // of random operators
} GoldenCase;

typedef struct GoldenFile {
        Arena arena;
        char *text; // the .jsonl
        size_t n_text;
        uint8_t *bytes; // the .safetensors
        size_t n_bytes;
        StringMap tensors; // key -> GoldenTensor
        const char *next;  // next line
        int line;
} GoldenFile;

// `path` without its suffix.
Status golden_open(const char *path, GoldenFile *out_file);
void golden_close(GoldenFile *file);
// *out_more = false at the end.
Status golden_next(GoldenFile *file, GoldenCase *out_case, bool *out_more);
void golden_case_deinit(GoldenCase *golden);
