// SPDX-License-Identifier: Apache-2.0
// A constant matrix packed for direct_tile.h: panels of two vectors of columns, each with its rows
// one after another, and a bias. Convolutions and products of matrices hold one.
#pragma once
#include "core/kernels/conv/direct_tile.h"
#include "core/kernels/pack_cache.h"
#include "core/kernels/pointwise/pointwise.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// Rows of the other factor that are used together: they stay in the second-level cache.
enum { PANELS_GROUP_BYTES = 256 << 10 };
// A sum of more products is cut into blocks. Each is one chain of fused multiply-adds, to
// the first the bias is added; `out` holds their sum so far. One long chain would round more.
enum { PANELS_BLOCK = 1024 }; // products at most

typedef struct DirectClamp { // x < low ? low : x > high ? high : x
        bool on;
        float low, high;
} DirectClamp;

// The constant that packed weights are made from, so that programs can share them.
typedef struct DirectSource {
        PackShare share;
        const void *data;
} DirectSource;

typedef struct Panels {
        const DirectIsa *isa;
        int64_t n_k, n_columns, n_panels;
        int64_t n_blocks; // of a sum
        int64_t n_behind; // floats behind the panels, which `fill` writes, too
        Storage *storage; // counted: of weights, maybe shared
        const float *weights;
        float *bias; // padded with zeros
} Panels;

// Writes panel `panel` of all weights by panels_set.
typedef struct PanelFill {
        const Panels *panels; // set by panels_fill
        void (*fill)(const void *context, const Panels *panels, int64_t panel, float *weights);
        const void *context;
        const RunContext *poll; // set by panels_fill
} PanelFill;

// `block`: products of a block at most. `panels` may be given to panels_deinit after a failure of
// either function.
Status panels_init(Panels *panels, const DirectIsa *isa, int64_t n_k, int64_t n_columns, int64_t block);
// `format`: how the panels come out of the source, beside their shape.
Status panels_fill(Panels *panels, const DirectSource *from, const char *format, PanelFill fill);
void panels_deinit(Panels *panels);
// Row `k` of one panel, from columns that lie `step` apart.
void panels_set(const Panels *panels, float *weights, int64_t panel, int64_t k, const float *from,
                int64_t step);

// A pointwise row that follows is run over the results of some rows and panels while they are near.
enum { PANELS_AFTER_ROWS = 128, PANELS_AFTER_BYTES = 256 << 10, PANELS_AFTER_LEAST = 16 };

// Panels of `width` columns whose results for `n_rows` rows it takes at once.
static inline int64_t panels_after(int64_t n_rows, int64_t width)
{
        int64_t bytes = n_rows * width * (int64_t)sizeof(float);
        return MAX(PANELS_AFTER_BYTES / bytes, (int64_t)PANELS_AFTER_LEAST);
}

// What follows the results of a group of rows, panel by panel.
typedef struct PanelsFollow {
        const PointAfter *after;
        float *out; // of the first row
        int64_t out_step, n_rows, n_columns;
        int64_t width; // columns of a panel
        int64_t done;  // results of the panels before this one need nothing more
} PanelsFollow;

// The panels before `end` are computed. It follows once they are enough, or the last ones.
static inline void panels_follow(PanelsFollow *results, int64_t end, bool is_last)
{
        int64_t column = results->done * results->width;
        if (results->after->loop == NULL ||
            (!is_last && end - results->done < panels_after(results->n_rows, results->width)))
                return;
        point_after(results->after, results->out + column, results->out_step, results->n_rows,
                    MIN(end * results->width, results->n_columns) - column);
        results->done = end;
}

// Rows of `row_bytes` each that form a group, in tiles of `most` rows.
static inline int64_t panels_group_tiles(int64_t group_bytes, int64_t row_bytes, int64_t most,
                                         const PointAfter *after)
{
        int64_t rows = group_bytes / row_bytes;
        if (after->loop != NULL)
                rows = MIN(rows, (int64_t)PANELS_AFTER_ROWS);
        return MAX(rows / most, (int64_t)1);
}

// A product is cut into groups of rows, for all panels, and each group into chunks of panels.
typedef struct PanelsCut {
        int64_t n_groups, n_chunks;
} PanelsCut;

// Pieces that the panels are cut into, so that all threads have work where the groups are few.
static inline int64_t panels_chunks(int64_t n_panels, int64_t n_groups, int n_threads)
{
        int64_t enough = 4 * (int64_t)n_threads;
        return n_threads > 1 && n_groups < enough ? MIN(n_panels, enough) : 1;
}

// Threads take groups where inputs and results are larger than the weights: a thread then finds in
// its cache what it wrote before. `n_units`: tiles of rows; `n_groups`: as many as the cache wants.
static inline PanelsCut panels_cut(int64_t n_units, int64_t n_groups, int64_t n_panels, int n_threads,
                                   bool few_weights)
{
        if (n_threads > 1 && few_weights && n_units >= 4 * (int64_t)n_threads)
                return (PanelsCut){ (n_groups + n_threads - 1) / n_threads * n_threads, 1 };
        return (PanelsCut){ n_groups, panels_chunks(n_panels, n_groups, n_threads) };
}

// Where panel `panel` of all weights begins.
float *panels_start(const Panels *panels, float *weights, int64_t panel);

// Columns of a full panel.
static inline int panels_width(const Panels *panels)
{
        return DIRECT_VECTORS * panels->isa->lanes;
}

// Vectors of a panel: the last one may have a single vector.
static inline int panels_vectors(const Panels *panels, int64_t panel)
{
        return panels->n_columns - panel * panels_width(panels) <= panels->isa->lanes ? 1 : DIRECT_VECTORS;
}

// Fills in the tile's weights, bias and n_valid for one block of panel `panel`.
void panels_use(const Panels *panels, int64_t panel, int64_t block, DirectTile *tile);

// The product with which a block begins.
static inline int64_t panels_block_at(const Panels *panels, int64_t block)
{
        return block == 0 ? 0 : block * panels->n_k / panels->n_blocks;
}

// The tile's results stand at out[at]. Blocks behind the first one add to what stands there.
static inline void panels_to(DirectTile *tile, int64_t block, float *out, const float *residual, int64_t at)
{
        tile->out = out + at;
        tile->residual = block > 0 ? tile->out : residual == NULL ? NULL : residual + at;
}
// How many rows of the other factor, `step` floats apart, a tile can take.
int64_t panels_most_pixels(const DirectIsa *isa, int64_t step);
