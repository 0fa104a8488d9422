// SPDX-License-Identifier: Apache-2.0
// draw.c: rows of numbers in the order of their addresses. A tile of a row is computed in double
// (integers: in 64 bits), then stored as the tensor's dtype.
#include "core/kernels/random/draw.h"

#include <float.h>
#include <math.h>
#include "core/kernels/random/normal.h"
#include "core/tensor/convert.h"

enum { TILE = 512, OPERANDS = 2 };

// ---- order ----
// Dimensions with the innermost first. Operand 0 is the result, operand 1 is what is read.
typedef struct Order {
        int rank, n_operands;
        int64_t size[MAX_RANK];
        int64_t stride[OPERANDS][MAX_RANK]; // bytes
} Order;

// Above 0: dimension `inner` belongs outside of `outer`.
static int compare_dims(const TensorMeta *const *metas, int n, int inner, int outer)
{
        for (int k = 0; k < n; k++) {
                int64_t a = metas[k]->stride[inner], b = metas[k]->stride[outer];
                if (a == 0 || b == 0)
                        continue;
                if (a != b)
                        return a < b ? -1 : 1;
                if (metas[k]->size[inner] > metas[k]->size[outer])
                        return 1;
        }
        return 0;
}

// As PyTorch's TensorIterator sorts them: an insertion sort in which some pairs have no order.
static void sort_dims(const TensorMeta *const *metas, int n, int *dims)
{
        int rank = metas[0]->rank;
        for (int i = 0; i < rank; i++)
                dims[i] = rank - 1 - i;
        for (int i = 1; i < rank; i++) {
                int at = i;
                for (int before = i - 1; before >= 0; before--) {
                        int order = compare_dims(metas, n, dims[before], dims[at]);
                        if (order < 0)
                                break;
                        if (order > 0) {
                                int dim = dims[before];
                                dims[before] = dims[at];
                                dims[at] = dim;
                                at = before;
                        }
                }
        }
}

// Joins a dimension with the next inner one where they follow each other without a gap.
static bool joins(const Order *order, int inner, const int64_t *strides)
{
        for (int k = 0; k < order->n_operands; k++)
                if (strides[k] != order->stride[k][inner] * order->size[inner])
                        return false;
        return true;
}

static void order_init(Order *order, const TensorMeta *const *metas, int n)
{
        int dims[MAX_RANK];
        order->rank = 0;
        order->n_operands = n;
        sort_dims(metas, n, dims);
        for (int i = 0; i < metas[0]->rank; i++) {
                int64_t size = metas[0]->size[dims[i]], strides[OPERANDS];
                if (size == 1)
                        continue;
                for (int k = 0; k < n; k++)
                        strides[k] = metas[k]->stride[dims[i]] * dtype_info[metas[k]->dtype].bytes;
                if (order->rank > 0 && joins(order, order->rank - 1, strides)) {
                        order->size[order->rank - 1] *= size;
                        continue;
                }
                for (int k = 0; k < n; k++)
                        order->stride[k][order->rank] = strides[k];
                order->size[order->rank++] = size;
        }
        if (order->rank == 0) {
                order->rank = 1;
                order->size[0] = 1;
                for (int k = 0; k < n; k++)
                        order->stride[k][0] = dtype_info[metas[k]->dtype].bytes;
        }
}

typedef struct Filler Filler;
// `n` elements (TILE at most) of the row from `out` on; `in` is operand 1's, if there is one.
typedef Status (*FillTile)(const Filler *filler, char *out, const char *in, int64_t n);
struct Filler {
        Generator *generator;
        const Draw *draw;
        FillTile fill;
        Dtype dtype, in_dtype;
        Order order;
        int cost; // steps of Work per element
};

static Status fill_row(const Filler *filler, Work *work, char *out, const char *in)
{
        const Order *order = &filler->order;
        for (int64_t at = 0; at < order->size[0]; at += TILE) {
                int64_t n = MIN(order->size[0] - at, TILE);
                if (work_stops(work, n * filler->cost))
                        return run_poll(work->ctx);
                TRY(filler->fill(filler, out + at * order->stride[0][0],
                                 in == NULL ? NULL : in + at * order->stride[1][0], n));
        }
        return STATUS_OK;
}

static Status fill_all(const RunContext *ctx, const Filler *filler, char *out, const char *in)
{
        const Order *order = &filler->order;
        int64_t index[MAX_RANK] = { 0 };
        Work work = { .ctx = ctx };
        for (int d = 0; d < order->rank; d++)
                if (order->size[d] == 0)
                        return STATUS_OK;
        for (;;) {
                TRY(fill_row(filler, &work, out, in));
                int d = 1;
                for (; d < order->rank; d++) {
                        out += order->stride[0][d];
                        in = in == NULL ? NULL : in + order->stride[1][d];
                        if (++index[d] < order->size[d])
                                break;
                        out -= order->stride[0][d] * order->size[d];
                        in = in == NULL ? NULL : in - order->stride[1][d] * order->size[d];
                        index[d] = 0;
                }
                if (d >= order->rank)
                        return STATUS_OK;
        }
}

// ---- distributions ----
static Status fill_uniform(const Filler *filler, char *out, const char *in, int64_t n)
{
        double tile[TILE];
        float from = (float)filler->draw->a, width = (float)filler->draw->b - from;
        (void)in;
        for (int64_t i = 0; i < n; i++)
                tile[i] = (double)fmaf(generator_uniform_f32(filler->generator), width, from);
        tile_storer(TILE_F64, filler->dtype)(tile, (size_t)n, out, filler->order.stride[0][0]);
        return STATUS_OK;
}

// From 0 to 1: no rounding.
static Status fill_uniform_unit(const Filler *filler, char *out, const char *in, int64_t n)
{
        float tile[TILE];
        (void)in;
        for (int64_t i = 0; i < n; i++)
                tile[i] = generator_uniform_f32(filler->generator);
        tile_storer(TILE_F32, filler->dtype)(tile, (size_t)n, out, filler->order.stride[0][0]);
        return STATUS_OK;
}

// Numbers that the dtype rounds up to the end, which is excluded, become the start.
static Status fill_uniform_half(const Filler *filler, char *out, const char *in, int64_t n)
{
        double tile[TILE], from, to;
        int64_t stride = filler->order.stride[0][0];
        uint64_t element;
        TRY(fill_uniform(filler, out, in, n));
        tile_storer(TILE_F64, filler->dtype)(&filler->draw->a, 1, &element, 0);
        tile_loader(TILE_F64, filler->dtype)(&element, 0, 1, &from);
        tile_storer(TILE_F64, filler->dtype)(&filler->draw->b, 1, &element, 0);
        tile_loader(TILE_F64, filler->dtype)(&element, 0, 1, &to);
        tile_loader(TILE_F64, filler->dtype)(out, stride, (size_t)n, tile);
        for (int64_t i = 0; i < n; i++)
                tile[i] = tile[i] == to ? from : tile[i];
        tile_storer(TILE_F64, filler->dtype)(tile, (size_t)n, out, stride);
        return STATUS_OK;
}

static double draw_f64(Generator *generator, const Draw *draw)
{
        switch (draw->kind) {
        case DRAW_UNIFORM: {
                double value = fma(generator_uniform_f64(generator), draw->b - draw->a, draw->a);
                return value == draw->b ? draw->a : value;
        }
        case DRAW_NORMAL:
                return fma(generator_normal(generator), draw->b, draw->a);
        case DRAW_LOG_NORMAL:
                return exp(fma(generator_normal(generator), draw->b, draw->a));
        case DRAW_EXPONENTIAL:
                return -1.0 / draw->a * log1p(-generator_uniform_f64(generator));
        case DRAW_CAUCHY:
                return fma(draw->b, tan(M_PI * (generator_uniform_f64(generator) - 0.5)), draw->a);
        case DRAW_GEOMETRIC:
                return ceil(log(generator_uniform_f64(generator)) / log1p(-draw->a));
        default:
                return generator_uniform_f64(generator) < draw->a ? 1 : 0;
        }
}

static Status fill_f64(const Filler *filler, char *out, const char *in, int64_t n)
{
        double tile[TILE];
        (void)in;
        for (int64_t i = 0; i < n; i++)
                tile[i] = draw_f64(filler->generator, filler->draw);
        tile_storer(TILE_F64, filler->dtype)(tile, (size_t)n, out, filler->order.stride[0][0]);
        return STATUS_OK;
}

// The largest whole number + 1 that DRAW_ANY gives.
static uint64_t any_range(Dtype dtype)
{
        switch (dtype) {
        case DTYPE_BOOL:
                return 2;
        case DTYPE_F64:
                return (1ull << DBL_MANT_DIG) + 1;
        case DTYPE_F32:
                return (1ull << FLT_MANT_DIG) + 1;
        case DTYPE_F16:
                return (1 << 11) + 1;
        case DTYPE_BF16:
                return (1 << 8) + 1;
        case DTYPE_U8:
                return 1 << 8;
        default:
                return 1ull << (8 * dtype_info[dtype].bytes - 1);
        }
}

static Status fill_integers(const Filler *filler, char *out, const char *in, int64_t n)
{
        int64_t tile[TILE];
        const Draw *draw = filler->draw;
        bool whole = draw->kind == DRAW_ANY_INT64, any = draw->kind == DRAW_ANY;
        uint64_t range = any ? any_range(filler->dtype) : draw->range;
        // 28: below it, the remainder of 32 bits is even enough
        bool wide = whole ||
                    (any ? filler->dtype == DTYPE_F64 || filler->dtype == DTYPE_I64 : range >= 1ull << 28);
        uint64_t base = any || whole ? 0 : (uint64_t)draw->base;
        (void)in;
        for (int64_t i = 0; i < n; i++) {
                uint64_t bits =
                        wide ? generator_next64(filler->generator) : generator_next32(filler->generator);
                tile[i] = (int64_t)(whole ? bits : bits % range + base);
        }
        tile_storer(TILE_I64, filler->dtype)(tile, (size_t)n, out, filler->order.stride[0][0]);
        return STATUS_OK;
}

static Status fill_bernoulli(const Filler *filler, char *out, const char *in, int64_t n)
{
        double tile[TILE];
        bool wide = filler->in_dtype == DTYPE_F64;
        tile_loader(TILE_F64, filler->in_dtype)(in, filler->order.stride[1][0], (size_t)n, tile);
        for (int64_t i = 0; i < n; i++) {
                if (!(tile[i] >= 0 && tile[i] <= 1))
                        return fail(STATUS_VALUE,
                                    "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
                double drawn = wide ? generator_uniform_f64(filler->generator)
                                    : (double)generator_uniform_f32(filler->generator);
                tile[i] = drawn < tile[i] ? 1 : 0;
        }
        tile_storer(TILE_F64, filler->dtype)(tile, (size_t)n, out, filler->order.stride[0][0]);
        return STATUS_OK;
}

static FillTile filler_for(const Draw *draw, Dtype dtype)
{
        if (draw->kind >= DRAW_INTEGER)
                return fill_integers;
        if (draw->kind != DRAW_UNIFORM || dtype == DTYPE_F64)
                return fill_f64;
        if (dtype != DTYPE_F32)
                return fill_uniform_half;
        return draw->a == 0 && draw->b == 1 ? fill_uniform_unit : fill_uniform;
}

Status draw_fill(const RunContext *ctx, const Draw *draw, const TensorMeta *meta, void *data)
{
        if (meta_numel(meta) == 0)
                return STATUS_OK;
        TRY(generator_start(ctx->generator));
        if (draw->kind == DRAW_NORMAL && meta_numel(meta) >= NORMAL_BLOCK && meta_is_contiguous(meta))
                return normal_blocks(ctx, draw->a, draw->b, meta, data);
        Filler filler = { .generator = ctx->generator,
                          .draw = draw,
                          .fill = filler_for(draw, meta->dtype),
                          .dtype = meta->dtype,
                          .cost = draw_steps(draw->kind) };
        order_init(&filler.order, &meta, 1);
        return fill_all(ctx, &filler, data, NULL);
}

Status draw_bernoulli(const RunContext *ctx, const TensorMeta *p_meta, const void *p, const TensorMeta *meta,
                      void *data)
{
        const TensorMeta *metas[] = { meta, p_meta };
        TRY(generator_start(ctx->generator));
        Filler filler = { .generator = ctx->generator,
                          .fill = fill_bernoulli,
                          .dtype = meta->dtype,
                          .in_dtype = p_meta->dtype,
                          .cost = 8 };
        order_init(&filler.order, metas, 2);
        return fill_all(ctx, &filler, data, p);
}
