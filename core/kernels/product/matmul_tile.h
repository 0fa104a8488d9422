// SPDX-License-Identifier: Apache-2.0
// Inner loops of the blocked product for one element type and one instruction set. Private
// to matmul.c.
#pragma once
#include "core/kernels/isa.h"
#include "core/kernels/run_context.h"
#include "core/tensor/dtype.h"

// How a finished tile goes into c: c = (first ? 0 : c) + tile; after the last block of k, c = alpha
// * c + beta * add.
typedef struct GemmMerge {
        bool first, last;
        int64_t c_col, add_col;
        double alpha, beta;
} GemmMerge;

// Rows of a matrix, `step` elements apart.
typedef struct GemmRows {
        const void *data;
        int64_t step;
} GemmRows;

// n_a (1..dot_rows) rows of a and n_b (1..4) rows of b, all contiguous along k; rows of the result
// are `step` elements apart.
typedef struct GemmDots {
        int n_a, n_b;
        int64_t n_k, step;
        GemmRows a, b;
} GemmDots;

typedef struct GemmTile {
        int rows, columns; // of a tile; packed panels are this wide
        // tile[rows][columns] = a panel [n_k][rows] times b panel [n_k][columns]; rows from n_rows
        // on are not computed.
        void (*product)(int n_rows, int64_t n_k, const void *a_panel, const void *b_panel, void *tile);
        // row[n_panels][columns] = a_row[n_k] times panels of b; the bits of product.
        void (*row_product)(int n_panels, int64_t n_k, const void *a_row, const void *b_panels, void *row);
        void (*merge_row)(const GemmMerge *merge, int64_t n, const void *tile_row, void *c_row,
                          const void *add_row);
        int dot_rows; // rows of a that dot_block takes, 4 at most
        // dots[dot_rows][step], four columns of it. Not written when the work stops.
        void (*dot_block)(Work *work, const GemmDots *rows, void *dots);
        // y[n] += x[n_k] times b[n_k][n], rows of b contiguous; x's step is that of its elements.
        void (*add_rows)(int64_t n_k, int64_t n, GemmRows x, GemmRows b, void *y_row);
        void (*pack_a)(const void *from, int64_t row, int64_t col, int64_t n_rows, int64_t n_k, void *panels);
        void (*pack_b)(const void *from, int64_t row, int64_t col, int64_t n_k, int64_t n_columns,
                       void *panels);
} GemmTile;

enum { GEMM_MAX_TILE = 16 * 64 }; // elements of the largest tile

// Variants are GemmTiles; there is one for DTYPE_F32, F64, I32 and I64 in any set.
extern const KernelFamily gemm_family;
