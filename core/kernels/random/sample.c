// SPDX-License-Identifier: Apache-2.0
// sample.c: a permutation is a Fisher-Yates shuffle from the front. A category is found by binary
// search in the running sums of its row, which float32 holds for half types.
#include "core/kernels/random/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/tensor/convert.h"

enum { TILE = 512 };

// ---- permutations ----
#define SHUFFLE(type)                                                                                        \
        static Status shuffle_##type(const RunContext *ctx, int64_t n, type *data)                           \
        {                                                                                                    \
                Work work = { .ctx = ctx };                                                                  \
                for (int64_t i = 0; i < n - 1; i++) {                                                        \
                        if (work_stops(&work, 16))                                                           \
                                return run_poll(ctx);                                                        \
                        int64_t at = i + (int64_t)(generator_next32(ctx->generator) % (uint64_t)(n - i));    \
                        type first = data[i];                                                                \
                        data[i] = data[at];                                                                  \
                        data[at] = first;                                                                    \
                }                                                                                            \
                return STATUS_OK;                                                                            \
        }
SHUFFLE(uint8_t)
SHUFFLE(uint16_t)
SHUFFLE(uint32_t)
SHUFFLE(uint64_t)

Status permutation_draw(const RunContext *ctx, Dtype dtype, int64_t n, void *out)
{
        int64_t tile[TILE], bytes = dtype_info[dtype].bytes;
        Work work = { .ctx = ctx };
        if (n > 1)
                TRY(generator_start(ctx->generator));
        for (int64_t at = 0; at < n; at += TILE) {
                int64_t end = MIN(at + TILE, n);
                if (work_stops(&work, TILE))
                        return run_poll(ctx);
                for (int64_t i = at; i < end; i++)
                        tile[i - at] = i;
                tile_storer(TILE_I64, dtype)(tile, (size_t)(end - at), (char *)out + at * bytes, bytes);
        }
        return bytes == 1   ? shuffle_uint8_t(ctx, n, out)
               : bytes == 2 ? shuffle_uint16_t(ctx, n, out)
               : bytes == 4 ? shuffle_uint32_t(ctx, n, out)
                            : shuffle_uint64_t(ctx, n, out);
}

// ---- categories ----
typedef struct Rows {
        Dtype dtype;
        int64_t n, length, row_stride, stride; // bytes
        const char *data;
} Rows;

static Rows rows_of(const TensorMeta *meta, const void *data)
{
        int64_t bytes = dtype_info[meta->dtype].bytes;
        int last = meta->rank - 1;
        return (Rows){ .dtype = meta->dtype,
                       .n = last == 0 ? 1 : meta->size[0],
                       .length = meta->size[last],
                       .row_stride = last == 0 ? 0 : meta->stride[0] * bytes,
                       .stride = meta->stride[last] * bytes,
                       .data = data };
}

static Status fail_sum(void)
{
        return fail(STATUS_VALUE, "invalid multinomial distribution (sum of probabilities <= 0)");
}

static Status check_row(const Rows *rows, Work *work, int64_t row, bool *out_some)
{
        double tile[TILE];
        for (int64_t at = 0; at < rows->length; at += TILE) {
                int64_t n = MIN(rows->length - at, TILE);
                if (work_stops(work, n))
                        return run_poll(work->ctx);
                tile_loader(TILE_F64, rows->dtype)(rows->data + row * rows->row_stride + at * rows->stride,
                                                   rows->stride, (size_t)n, tile);
                for (int64_t i = 0; i < n; i++) {
                        if (!(tile[i] >= 0 && tile[i] < INFINITY))
                                return fail(STATUS_VALUE,
                                            "probability tensor contains either `inf`, `nan` or element < 0");
                        *out_some |= tile[i] > 0;
                }
        }
        return STATUS_OK;
}

Status multinomial_check(const RunContext *ctx, const TensorMeta *meta, const void *weights)
{
        Rows rows = rows_of(meta, weights);
        Work work = { .ctx = ctx };
        bool none = false;
        // Wrong elements are reported before empty rows.
        for (int64_t row = 0; row < rows.n; row++) {
                bool some = false;
                TRY(check_row(&rows, &work, row, &some));
                none |= !some;
        }
        return none ? fail_sum() : STATUS_OK;
}

// Running sums of a row in the precision of PyTorch, divided by the whole.
static Status sum_row(const Rows *rows, Work *work, int64_t row, double *sums)
{
        bool wide = rows->dtype == DTYPE_F64;
        double sum = 0;
        const char *data = rows->data + row * rows->row_stride;
        tile_loader(TILE_F64, rows->dtype)(data, rows->stride, (size_t)rows->length, sums);
        for (int64_t i = 0; i < rows->length; i++) {
                if (work_stops(work, 8))
                        return run_poll(work->ctx);
                if (!(sums[i] >= 0))
                        return fail(STATUS_VALUE, "invalid multinomial distribution (encountering "
                                                  "probability entry < 0)");
                if (!isfinite(sums[i]))
                        return fail(STATUS_VALUE, "invalid multinomial distribution (encountering "
                                                  "probability entry = infinity or NaN)");
                sum = wide ? sum + sums[i] : (double)((float)sum + (float)sums[i]);
                sums[i] = sum;
        }
        if (!(sum > 0))
                return fail_sum();
        for (int64_t i = 0; i < rows->length; i++)
                sums[i] = wide ? sums[i] / sum : (double)((float)sums[i] / (float)sum);
        sums[rows->length - 1] = 1;
        return STATUS_OK;
}

static int64_t find(const double *sums, int64_t n, double drawn)
{
        int64_t left = 0, right = n;
        while (left < right) {
                int64_t middle = left + (right - left) / 2;
                if (sums[middle] < drawn)
                        left = middle + 1;
                else
                        right = middle;
        }
        return left;
}

static Status draw_rows(const RunContext *ctx, const Rows *rows, double *sums, int64_t n_samples,
                        int64_t *out)
{
        Work work = { .ctx = ctx };
        for (int64_t row = 0; row < rows->n; row++) {
                TRY(sum_row(rows, &work, row, sums));
                for (int64_t i = 0; i < n_samples; i++) {
                        if (work_stops(&work, 32))
                                return run_poll(ctx);
                        *out++ = find(sums, rows->length, generator_uniform_f64(ctx->generator));
                }
        }
        return STATUS_OK;
}

Status multinomial_draw(const RunContext *ctx, const TensorMeta *meta, const void *weights, int64_t n_samples,
                        int64_t *out)
{
        Rows rows = rows_of(meta, weights);
        TRY(generator_start(ctx->generator));
        _cleanup_(freep) double *sums = new_array((size_t)rows.length, sizeof(*sums));
        if (sums == NULL)
                return fail_memory();
        return draw_rows(ctx, &rows, sums, n_samples, out);
}

// ---- slopes ----
static double slope_of(Generator *generator, const Slopes *slopes)
{
        bool wide = slopes->dtype == DTYPE_F64;
        double lower = wide ? slopes->lower : (double)(float)slopes->lower,
               upper = wide ? slopes->upper : (double)(float)slopes->upper;
        double slope = generator_uniform_f64(generator) * (upper - lower) + lower;
        return wide ? slope : (double)(float)slope;
}

Status slopes_draw(const RunContext *ctx, const Slopes *slopes)
{
        Dtype dtype = slopes->dtype;
        int64_t bytes = dtype_info[dtype].bytes;
        double tile[TILE], noise[TILE];
        Work work = { .ctx = ctx };
        bool started = false;
        for (int64_t at = 0; at < slopes->n; at += TILE) {
                int64_t n = MIN(slopes->n - at, TILE);
                if (work_stops(&work, n * 16))
                        return run_poll(ctx);
                tile_loader(TILE_F64, dtype)((const char *)slopes->in + at * bytes, bytes, (size_t)n, tile);
                for (int64_t i = 0; i < n && !started; i++)
                        started = tile[i] <= 0;
                if (started)
                        TRY(generator_start(ctx->generator));
                for (int64_t i = 0; i < n; i++) {
                        noise[i] = tile[i] <= 0 ? slope_of(ctx->generator, slopes) : 1;
                        // a product of two float32 is exact in double: one rounding, at the end
                        tile[i] *= noise[i];
                        tile[i] = dtype == DTYPE_F64 ? tile[i] : (double)(float)tile[i];
                }
                tile_storer(TILE_F64, dtype)(tile, (size_t)n, (char *)slopes->out + at * bytes, bytes);
                tile_storer(TILE_F64, dtype)(noise, (size_t)n, (char *)slopes->noise + at * bytes, bytes);
        }
        return STATUS_OK;
}
