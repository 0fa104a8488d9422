// SPDX-License-Identifier: Apache-2.0
// tensor_stats.c: the elements are loaded in tiles of doubles, or of int64 for integers, in the
// order of memory where the tensor is dense. First extremes, counts and sums, then what needs the
// mean and the range.
#include "core/kernels/reduce/tensor_stats.h"

#include <math.h>
#include <string.h>
#include "core/tensor/convert.h"

enum { TILE = 512 };

typedef union Tile {
        double f[TILE];
        int64_t i[TILE];
} Tile;

typedef struct Pass Pass;
struct Pass {
        Work work;
        TileLoad load;
        void (*tile)(Pass *pass, const Tile *tile, int64_t n);
        TensorStats *stats;
        double sum, squares;
        int64_t n_finite;
};

// ---- visiting ----

static void visit_run(Pass *pass, const char *data, int64_t stride, int64_t n)
{
        Tile tile;
        for (int64_t at = 0; at < n && !work_stops(&pass->work, TILE); at += TILE) {
                int64_t m = MIN(n - at, (int64_t)TILE);
                pass->load(data + at * stride, stride, (size_t)m, &tile);
                pass->tile(pass, &tile, m);
        }
}

// Rows along the last dimension. A dense tensor is one row.
static void visit(Pass *pass, const TensorMeta *meta, const char *data)
{
        int64_t n = meta_numel(meta), bytes = dtype_info[meta->dtype].bytes, at[MAX_RANK] = { 0 };
        if (n == 0)
                return;
        if (meta->rank == 0 || meta_is_non_overlapping_and_dense(meta)) {
                visit_run(pass, data, bytes, n);
                return;
        }
        int last = meta->rank - 1;
        for (int64_t row = 0; row < n / meta->size[last] && !pass->work.stops; row++) {
                int64_t offset = 0;
                for (int d = 0; d < last; d++)
                        offset += at[d] * meta->stride[d];
                visit_run(pass, data + offset * bytes, meta->stride[last] * bytes, meta->size[last]);
                for (int d = last - 1; d >= 0 && ++at[d] == meta->size[d]; d--)
                        at[d] = 0;
        }
}

// ---- extremes, counts, the sum ----

static void count_floats(Pass *pass, const Tile *tile, int64_t n)
{
        TensorStats *stats = pass->stats;
        double sum = 0, min = INFINITY, max = -INFINITY;
        int64_t n_nan = 0, n_inf = 0, n_zero = 0;
        for (int64_t i = 0; i < n; i++) {
                double x = tile->f[i];
                bool nan = x != x, inf = fabs(x) == INFINITY, finite = !nan && !inf;
                n_nan += nan;
                n_inf += inf;
                n_zero += x == 0;
                sum += finite ? x : 0;
                min = finite && x < min ? x : min;
                max = finite && x > max ? x : max;
        }
        stats->n_nan += n_nan;
        stats->n_inf += n_inf;
        stats->n_zero += n_zero;
        stats->min = MIN(stats->min, min);
        stats->max = MAX(stats->max, max);
        pass->sum += sum;
        pass->n_finite += n - n_nan - n_inf;
}

static void count_ints(Pass *pass, const Tile *tile, int64_t n)
{
        TensorStats *stats = pass->stats;
        for (int64_t i = 0; i < n; i++) {
                int64_t x = tile->i[i];
                stats->n_zero += x == 0;
                stats->min_int = MIN(stats->min_int, x);
                stats->max_int = MAX(stats->max_int, x);
                pass->sum += (double)x;
        }
        pass->n_finite += n;
}

// ---- what needs mean and range ----

static int bin_of(const TensorStats *stats, double x)
{
        const double bins = STATS_BINS;
        double range = stats->to - stats->from, at = (x - stats->from) * bins / range;
        if (!(range * bins < INFINITY)) // the difference of two doubles may be no double
                at = (x / 2 - stats->from / 2) / (stats->to / 2 - stats->from / 2) * bins;
        if (isnan(at)) // one value so large that one more or less is the same
                return STATS_BINS / 2;
        return at >= bins ? STATS_BINS - 1 : (int)at;
}

static void spread(Pass *pass, double x)
{
        TensorStats *stats = pass->stats;
        double off = x - stats->mean;
        pass->squares += off * off;
        stats->counts[bin_of(stats, x)]++;
}

static void spread_floats(Pass *pass, const Tile *tile, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                if (isfinite(tile->f[i]))
                        spread(pass, tile->f[i]);
}

static void spread_ints(Pass *pass, const Tile *tile, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                spread(pass, (double)tile->i[i]);
}

// ---- all together ----

// uint64 has no tile of its own that orders its values: as double.
static bool counts_as_float(Dtype dtype)
{
        return dtype_is_float(dtype) || dtype == DTYPE_U64;
}

static Pass pass_of(const RunContext *ctx, const TensorMeta *meta, TensorStats *stats)
{
        TileClass class = counts_as_float(meta->dtype) ? TILE_F64 : TILE_I64;
        return (Pass){ .work = { .ctx = ctx }, .load = tile_loader(class, meta->dtype), .stats = stats };
}

static void take_range(TensorStats *stats, const Pass *pass)
{
        if (!stats->is_float) {
                stats->min = (double)stats->min_int;
                stats->max = (double)stats->max_int;
        }
        stats->min += 0.0; // -0.0 is 0.0, wherever it stood
        stats->max += 0.0;
        stats->mean = pass->sum / (double)pass->n_finite;
        stats->from = stats->min;
        stats->to = stats->max;
        if (stats->from == stats->to) {
                stats->from -= 1;
                stats->to += 1;
        }
}

Status tensor_stats_run(const RunContext *ctx, const TensorMeta *meta, const void *data,
                        TensorStats *out_stats)
{
        TensorStats stats = { .is_float = counts_as_float(meta->dtype),
                              .n = meta_numel(meta),
                              .min = INFINITY,
                              .max = -INFINITY,
                              .min_int = INT64_MAX,
                              .max_int = INT64_MIN };
        Pass pass = pass_of(ctx, meta, &stats);
        pass.tile = stats.is_float ? count_floats : count_ints;
        visit(&pass, meta, data);
        if (pass.n_finite == 0) {
                stats.min = stats.max = stats.mean = stats.std = stats.from = stats.to = NAN;
                stats.min_int = stats.max_int = 0;
        } else {
                take_range(&stats, &pass);
                pass.tile = stats.is_float ? spread_floats : spread_ints;
                visit(&pass, meta, data);
                stats.std =
                        pass.n_finite == 1 ? (double)NAN : sqrt(pass.squares / (double)(pass.n_finite - 1));
        }
        *out_stats = stats;
        return run_poll(ctx);
}

static void find_non_finite(Pass *pass, const Tile *tile, int64_t n)
{
        int64_t n_nan = 0, n_inf = 0;
        for (int64_t i = 0; i < n; i++) {
                n_nan += tile->f[i] != tile->f[i];
                n_inf += fabs(tile->f[i]) == INFINITY;
        }
        pass->stats->n_nan += n_nan;
        pass->stats->n_inf += n_inf;
}

Status tensor_count_non_finite(const RunContext *ctx, const TensorMeta *meta, const void *data,
                               NonFinite *out_found)
{
        TensorStats stats = { .n = 0 };
        if (dtype_is_float(meta->dtype)) {
                Pass pass = pass_of(ctx, meta, &stats);
                pass.tile = find_non_finite;
                visit(&pass, meta, data);
        }
        *out_found = (NonFinite){ stats.n_nan, stats.n_inf };
        return run_poll(ctx);
}
