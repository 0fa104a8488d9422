// SPDX-License-Identifier: Apache-2.0
// distances.c: the matrix is transposed, so that one row meets a tile of others in vectors, one
// column after the other. Long sums are made of chunks, so that rounding errors stay small. The
// order does not depend on the instruction set.
#include "core/kernels/reduce/distances.h"
#include <math.h>
#include <string.h>
#include "core/kernels/dense.h"

enum { CHUNK = 128 };

#define DIST_TARGET
#define DIST_BYTES 16
#define DIST_T     float
#define DIST(x)    x##_distance_f32
#include "core/kernels/reduce/distances.inc"
#undef DIST
#undef DIST_T
#define DIST_T  double
#define DIST(x) x##_distance_f64
#include "core/kernels/reduce/distances.inc"
#if defined(__x86_64__)
#undef DIST
#undef DIST_TARGET
#undef DIST_BYTES
#define DIST_TARGET TARGET_AVX2
#define DIST_BYTES  32
#define DIST(x)     x##_distance_f64_avx2
#include "core/kernels/reduce/distances.inc"
#undef DIST
#undef DIST_T
#define DIST_T  float
#define DIST(x) x##_distance_f32_avx2
#include "core/kernels/reduce/distances.inc"
#undef DIST
#undef DIST_TARGET
#undef DIST_BYTES
#define DIST_TARGET TARGET_AVX512
#define DIST_BYTES  64
#define DIST(x)     x##_distance_f32_avx512
#include "core/kernels/reduce/distances.inc"
#undef DIST
#undef DIST_T
#define DIST_T  double
#define DIST(x) x##_distance_f64_avx512
#include "core/kernels/reduce/distances.inc"
#endif

static const KernelVariant distance_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &steps_distance_f32 },
        { DTYPE_F64, ISA_PORTABLE, &steps_distance_f64 },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &steps_distance_f32_avx2 },
        { DTYPE_F64, ISA_AVX2, &steps_distance_f64_avx2 },
        { DTYPE_F32, ISA_AVX512, &steps_distance_f32_avx512 },
        { DTYPE_F64, ISA_AVX512, &steps_distance_f64_avx512 },
#endif
};
const KernelFamily distance_family = { "distances", ARRAY_LENGTH(distance_variants), distance_variants };

typedef struct Pairs {
        const RunContext *ctx;
        const Distances *task;
        DistanceStep step;
        char *turned; // m rows of `pitch` numbers, with zeros at their ends
        int64_t pitch;
        char *out;
} Pairs;

static void turn(Work *work, const Pairs *pairs)
{
        const Distances *task = pairs->task;
        const size_t bytes = dtype_info[task->dtype].bytes;
        for (int64_t k = 0; k < task->m && !work_stops(work, pairs->pitch); k++) {
                char *to = pairs->turned + (size_t)(k * pairs->pitch) * bytes;
                const char *from = (const char *)task->data + (size_t)k * bytes;
                memset(to + (size_t)task->n * bytes, 0, (size_t)(pairs->pitch - task->n) * bytes);
                for (int64_t i = 0; i < task->n; i++)
                        memcpy(to + (size_t)i * bytes, from + (size_t)(i * task->m) * bytes, bytes);
        }
}

// The tile of distances of row i to rows from `first`.
static void meet(const Pairs *pairs, int64_t i, int64_t first, void *results)
{
        const Distances *task = pairs->task;
        const size_t bytes = dtype_info[task->dtype].bytes;
        const char *row = (const char *)task->data + (size_t)(i * task->m) * bytes;
        memset(results, 0, DISTANCE_TILE * bytes);
        for (int64_t k = 0; k < task->m; k += CHUNK) {
                int64_t n = MIN(task->m - k, (int64_t)CHUNK);
                const char *others = pairs->turned + (size_t)(k * pairs->pitch + first) * bytes;
                double part[DISTANCE_TILE] = { 0 };
                bool whole = k == 0 || task->kind == DISTANCE_LARGEST;
                pairs->step(whole ? results : part, row + (size_t)k * bytes, others, pairs->pitch, n);
                for (int j = 0; j < DISTANCE_TILE && !whole; j++) {
                        if (task->dtype == DTYPE_F32)
                                ((float *)results)[j] += ((const float *)(const void *)part)[j];
                        else
                                ((double *)results)[j] += part[j];
                }
        }
}

static void roots(Dtype dtype, void *results)
{
        for (int j = 0; j < DISTANCE_TILE; j++) {
                if (dtype == DTYPE_F32)
                        ((float *)results)[j] = sqrtf(((float *)results)[j]);
                else
                        ((double *)results)[j] = sqrt(((double *)results)[j]);
        }
}

static void meet_others(void *argument, int64_t begin, int64_t end)
{
        const Pairs *pairs = argument;
        const Distances *task = pairs->task;
        const int64_t n = task->n, cost = saturating_product(DISTANCE_TILE, task->m);
        const size_t bytes = dtype_info[task->dtype].bytes;
        _Alignas(64) double results[DISTANCE_TILE];
        Work work = { .ctx = pairs->ctx };
        for (int64_t i = begin; i < end; i++) {
                char *out = pairs->out + (size_t)(i * (2 * n - i - 1) / 2) * bytes;
                for (int64_t j = i + 1; j < n && !work_stops(&work, cost); j += DISTANCE_TILE) {
                        meet(pairs, i, j, results);
                        if (task->kind == DISTANCE_EUCLIDEAN)
                                roots(task->dtype, results);
                        size_t count = (size_t)MIN(n - j, (int64_t)DISTANCE_TILE);
                        memcpy(out + (size_t)(j - i - 1) * bytes, results, count * bytes);
                }
        }
}

Status distances_run(const RunContext *ctx, const Distances *task, void *out)
{
        const DistanceSteps *steps = kernel_variant(&distance_family, task->dtype);
        Pairs pairs = { .ctx = ctx,
                        .task = task,
                        .step = steps->step[task->kind],
                        .pitch = task->n + DISTANCE_TILE,
                        .out = out };
        Scratch scratch = { 0 };
        Work work = { .ctx = ctx };
        TRY(scratch_init(&scratch, ctx, saturating_product(pairs.pitch, task->m),
                         dtype_info[task->dtype].bytes));
        pairs.turned = scratch.data;
        turn(&work, &pairs);
        int64_t row_cost = saturating_product(task->n, task->m);
        Status status = parallel_for(ctx, task->n, MAX((int64_t)1, 65536 / row_cost), meet_others, &pairs);
        scratch_deinit(&scratch);
        return status == STATUS_OK ? run_poll(ctx) : status;
}
