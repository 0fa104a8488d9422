// SPDX-License-Identifier: Apache-2.0
// regions.c: each cell of each region is computed for all its channels at once. Coordinates are
// computed in the type of the image, step by step as torchvision does, since a coordinate that is
// rounded otherwise may read other elements. Numbers that no int32 holds become its least value, as
// x86 converts them.
#include "core/kernels/pool/regions.h"

#include <float.h>
#include <math.h>

static int64_t whole(double x)
{
        return x > -2147483649.0 && x < 2147483648.0 ? (int64_t)x : INT32_MIN;
}

// Corners of one axis and the part of the region that one cell covers, in elements from `first` up
// to, but without, `end`.
typedef struct Span {
        int64_t first, end;
} Span;

#define T         float
#define REGION(x) x##_f32
#include "core/kernels/pool/regions.inc"
#undef T
#undef REGION
#define T         double
#define REGION(x) x##_f64
#include "core/kernels/pool/regions.inc"
#undef T
#undef REGION

Status regions_run(const RunContext *ctx, const Regions *task)
{
        Work work = { .ctx = ctx };
        for (int64_t n = 0; n < task->n && !work.stops; n++) {
                double image = task->dtype == DTYPE_F32 ? (double)((const float *)task->regions)[n * 5]
                                                        : ((const double *)task->regions)[n * 5];
                int64_t at = whole(image);
                if (at < 0 || at >= task->batch)
                        return fail(STATUS_INDEX, "region %ld names image %ld of a batch of %ld", (long)n,
                                    (long)at, (long)task->batch);
                if (task->dtype == DTYPE_F32)
                        region_f32(task, n, at, &work);
                else
                        region_f64(task, n, at, &work);
        }
        return run_poll(ctx);
}
