// SPDX-License-Identifier: Apache-2.0
// One layer of a recurrent network over all steps, in one direction. The products with the inputs
// are done before, for all steps at once.
#pragma once
#include "core/kernels/isa.h"
#include "core/kernels/pack_cache.h"
#include "core/kernels/product/narrow.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

enum { RECURRENT_MAX_DIRECTIONS = 64 }; // layers times directions of a network

typedef enum RecurrentKind {
        RECURRENT_LSTM,
        RECURRENT_GRU,
        RECURRENT_TANH,
        RECURRENT_RELU,
        RECURRENT_KINDS
} RecurrentKind;

// Arrays are contiguous, of dtype float32 or float64, and do not overlap. H: cells. P: size of the
// hidden state, H without a projection. G: gates per cell (LSTM 4: input, forget, cell, output; GRU
// 3: reset, update, new; else 1).
typedef struct Recurrent {
        RecurrentKind kind;
        Dtype dtype;
        bool reverse; // from the last step to the first
        int64_t steps, batch, cells, states;
        const void *gates;  // [steps][batch][G H]: products with the inputs, biases added
        const void *weight; // [G H][P]; not read with `packed`
        const void *packed; // the weight as recurrent_pack makes it; NULL: packed for each run
        const void *bias;   // [G H], added to the product with the state; or NULL
        // the product of the state with the weight, and the bias, in less precision; NULL: none
        const NarrowMatmul *narrow;
        void *narrow_scratch;   // of it
        const void *projection; // [P][H]; NULL: none
        const void *hidden;     // [batch][P], before the first step
        const void *cell;       // [batch][H]; LSTM only
        void *out;              // [steps][batch][P]
        void *last_hidden;      // [batch][P]
        void *last_cell;        // [batch][H]; LSTM only
} Recurrent;

extern const KernelFamily recurrent_family; // cells, after the products

int recurrent_gates(RecurrentKind kind); // G
// A weight [n][k] in panels, for Recurrent.packed. `share`: pack_cache.h. *out_panels is counted.
typedef struct RecurrentWeight {
        Dtype dtype;
        int64_t n, k;
        const void *data;
        PackShare share;
} RecurrentWeight;
Status recurrent_pack(const RecurrentWeight *weight, Storage **out_panels);
// For Recurrent.narrow: the same weight in bfloat16, for states [batch][k]; `bias` [n] or NULL.
// *out_narrow stays NULL (STATUS_OK) where the CPU does not multiply that, for small weights, and
// where narrow_matmul_new gives none.
typedef struct RecurrentRows {
        int64_t batch;
        int n_threads; // of the run
} RecurrentRows;
Status recurrent_narrow_new(const RecurrentWeight *weight, const float *bias, const RecurrentRows *rows,
                            NarrowMatmul **out_narrow);
Status recurrent_run(const RunContext *ctx, const Recurrent *task);
