// SPDX-License-Identifier: Apache-2.0
// Inner loops of attention over a panel of queries, in float32, for one instruction set. Private to
// this room. A panel holds one query per lane: element [i][q] of a panel is number i of query q. So
// maxima and sums over keys need no work across lanes, and keys and values are read where they lie.
#pragma once
#include "core/kernels/isa.h"

enum { PANEL_LEAST_QUERIES = 8, PANEL_MAX_QUERIES = 64 };

// Rows of a matrix; `row` and `col` in elements.
typedef struct PanelRows {
        const void *data;
        int64_t row, col;
} PanelRows;

// Some keys for one panel of queries. Panels are [..][queries of the variant].
typedef struct PanelKeys {
        int n_queries; // used lanes, the first ones
        int64_t e, ev, n_keys;
        PanelRows k, v;
        float scale;
        const float *queries; // [e]
        const float *mask;    // NULL; else added: [n_keys] of panels, or numbers if `mask_is_row`
        bool mask_is_row;
        // Query lane q may attend key j if j + after <= q. INT64_MIN: no such rule.
        int64_t after;
        float *scores; // [n_keys], overwritten
        // Running results over all keys so far; before the first keys: -inf, 0 and zeros.
        float *max, *sum; // one row
        float *out;       // [ev], not divided by the sum yet
} PanelKeys;

typedef struct AttentionPanel {
        int queries; // lanes of a panel, PANEL_LEAST_QUERIES to PANEL_MAX_QUERIES
        // panel[n_cols] = rows [n_rows][n_cols] of float32, turned; unused lanes are 0.
        void (*pack)(const PanelRows *from, int n_rows, int64_t n_cols, float *panel);
        // The same of bool: true gives 0, false -inf.
        void (*pack_bool)(const PanelRows *from, int n_rows, int64_t n_cols, float *panel);
        void (*attend)(const PanelKeys *keys);
        // to[q][i] = panel[i][q] / sum[q], or 0 where the sum is 0.
        void (*unpack)(const float *panel, const float *sum, const PanelRows *to, int n_rows, int64_t n_cols);
} AttentionPanel;

// The same with operands of bfloat16. Two neighbours along a sum are a pair, one number of 32 bits
// whose low half is the first; a last one without a neighbour stands beside a zero.
typedef struct AttentionPairs {
        int queries; // as the panels of float32 of this instruction set
        // In place: n rows of a panel become (n + 1) / 2 rows of pairs.
        void (*pair_panel)(float *panel, int64_t n);
        // to[n][(e + 1) / 2] = pairs of each key; n keys of e numbers.
        void (*pack_keys)(const PanelRows *from, int64_t n, int64_t e, uint32_t *to);
        // to[(n + 1) / 2][ev] = pairs of two values; n values of ev numbers.
        void (*pack_values)(const PanelRows *from, int64_t n, int64_t ev, uint32_t *to);
        // As AttentionPanel.attend, with pairs in `queries`, k and v.
        void (*attend)(const PanelKeys *keys);
} AttentionPairs;

extern const KernelFamily attention_pairs_family; // variants are AttentionPairs
extern const KernelFamily attention_family;       // variants are AttentionPanels, of DTYPE_F32
