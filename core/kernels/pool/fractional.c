// SPDX-License-Identifier: Apache-2.0
// fractional.c: windows start at floor((i + u) * step) - floor(u * step), each operation rounded to
// the tensor's dtype; the last window ends where the plane ends.
#include "core/kernels/pool/fractional.h"

#include <math.h>
#include "core/kernels/dense.h"
#include "core/tensor/convert.h"

static double rounded(Dtype dtype, double x)
{
        uint64_t element;
        if (dtype == DTYPE_F64)
                return x;
        element_from_f64(dtype, &element, x);
        return element_as_f64(dtype, &element);
}

// As C++ truncates to int; out of its range: the start of the plane.
static int64_t whole(double x)
{
        return fabs(x) < 0x1p31 ? (int64_t)x : 0;
}

// One plane's windows of one dimension begin at starts[0 .. out - 1].
static void place(const FractionalPool *pool, int dim, double sample, int64_t *starts)
{
        const int64_t out = pool->out_size[dim], room = pool->size[dim] - pool->kernel[dim];
        const Dtype as = pool->dtype;
        const double step =
                out > 1 ? rounded(as, rounded(as, (double)room) / rounded(as, (double)(out - 1))) : 0;
        for (int64_t i = 0; i < out - 1; i++) {
                const double far = rounded(as, rounded(as, rounded(as, (double)i) + sample) * step);
                starts[i] = whole(far) - whole(rounded(as, sample * step));
                starts[i] = MAX(MIN(starts[i], room), 0);
        }
        if (out > 0)
                starts[out - 1] = room;
}

// The index of the largest element of a window; of the last NaN, if there is one.
static int64_t largest_at(const FractionalPool *pool, const double *plane, const int64_t start[3])
{
        double most = -INFINITY;
        int64_t at = (start[0] * pool->size[1] + start[1]) * pool->size[2] + start[2];
        for (int64_t z = start[0]; z < start[0] + pool->kernel[0]; z++) {
                for (int64_t y = start[1]; y < start[1] + pool->kernel[1]; y++) {
                        const int64_t row = (z * pool->size[1] + y) * pool->size[2];
                        for (int64_t x = start[2]; x < start[2] + pool->kernel[2]; x++) {
                                if (!(plane[row + x] > most) && !isnan(plane[row + x]))
                                        continue;
                                most = plane[row + x];
                                at = row + x;
                        }
                }
        }
        return at;
}

static void pool_plane(const FractionalPool *pool, Work *work, int64_t index, int64_t *const starts[3])
{
        const int64_t *out_size = pool->out_size;
        const int64_t window =
                saturating_product(saturating_product(pool->kernel[0], pool->kernel[1]), pool->kernel[2]);
        const double *plane = pool->in + index * pool->size[0] * pool->size[1] * pool->size[2];
        int64_t at = index * out_size[0] * out_size[1] * out_size[2];
        for (int64_t z = 0; z < out_size[0]; z++) {
                for (int64_t y = 0; y < out_size[1]; y++) {
                        for (int64_t x = 0; x < out_size[2] && !work_stops(work, 2 * window); x++, at++) {
                                const int64_t start[] = { starts[0][z], starts[1][y], starts[2][x] };
                                pool->indices[at] = largest_at(pool, plane, start);
                                pool->out[at] = plane[pool->indices[at]];
                        }
                }
        }
}

Status fractional_pool_run(const RunContext *ctx, const FractionalPool *pool)
{
        const int64_t *out = pool->out_size;
        _cleanup_(scratch_deinit) Scratch scratch = { 0 };
        TRY(scratch_init(&scratch, ctx, out[0] + out[1] + out[2], sizeof(int64_t)));
        int64_t *const starts[3] = { scratch.data, (int64_t *)scratch.data + out[0],
                                     (int64_t *)scratch.data + out[0] + out[1] };
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < pool->planes && !work_stops(&work, 4 * (out[0] + out[1] + out[2])); i++) {
                for (int d = 3 - pool->n; d < 3; d++) {
                        // In two dimensions the first sample is that of the width.
                        const int sample = pool->n == 2 ? 2 - d : d;
                        place(pool, d, pool->samples[i * pool->n + sample], starts[d]);
                }
                if (pool->n == 2)
                        starts[0][0] = 0;
                pool_plane(pool, &work, i, starts);
        }
        return run_poll(ctx);
}
