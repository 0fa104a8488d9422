// SPDX-License-Identifier: Apache-2.0
// bags.c: rows are loaded in tiles and added to the bag's result in the order of the indices.
#include "core/kernels/index/bags.h"

#include <string.h>
#include "core/tensor/convert.h"

enum { TILE = 512 };

static void round_tile(const Bags *bags, TileClass class, void *tile, size_t n)
{
        uint16_t rounded[TILE];
        Dtype dtype = bags->matrix->dtype;
        if (dtype != DTYPE_F16 && dtype != DTYPE_BF16)
                return;
        tile_storer(class, dtype)(tile, n, rounded, sizeof(uint16_t));
        tile_loader(class, dtype)(rounded, sizeof(uint16_t), n, tile);
}

// One index: columns `at` to at + n of its row, in `tile`, go into the bag's result.
#define BAG_STEP(T, class)                                                                                   \
        static void bag_step_##T(const Bags *bags, int64_t i, bool first, T *tile, T *out, int64_t *argmax,  \
                                 size_t n)                                                                   \
        {                                                                                                    \
                if (bags->mode == BAG_MAX) {                                                                 \
                        for (size_t k = 0; k < n; k++) {                                                     \
                                if (!first && !(tile[k] > out[k]))                                           \
                                        continue;                                                            \
                                out[k] = tile[k];                                                            \
                                if (argmax != NULL)                                                          \
                                        argmax[k] = bags->indices[i];                                        \
                        }                                                                                    \
                        return;                                                                              \
                }                                                                                            \
                for (size_t k = 0; k < n && bags->scales != NULL; k++)                                       \
                        tile[k] *= ((const T *)bags->scales)[i];                                             \
                for (size_t k = 0; k < n; k++)                                                               \
                        out[k] += tile[k];                                                                   \
        }                                                                                                    \
        /* The sum is rounded to the result's type before it is divided. */                                  \
        static void bag_mean_##T(const Bags *bags, int64_t count, T *out, size_t n)                          \
        {                                                                                                    \
                T by = (T)MAX(count, 1);                                                                     \
                round_tile(bags, class, &by, 1);                                                             \
                round_tile(bags, class, out, n);                                                             \
                for (size_t k = 0; k < n; k++)                                                               \
                        out[k] /= by;                                                                        \
        }                                                                                                    \
        static void bag_columns_##T(const Bags *bags, Work *work, int64_t bag, int64_t at, size_t n)         \
        {                                                                                                    \
                const TensorMeta *matrix = bags->matrix;                                                     \
                int64_t width = matrix->size[1], bytes = dtype_info[matrix->dtype].bytes, count = 0;         \
                int64_t end = bag + 1 < bags->n_bags ? bags->offsets[bag + 1] : bags->n_indices;             \
                T tile[TILE], *out = (T *)bags->out + bag * width + at;                                      \
                int64_t *argmax = bags->argmax == NULL ? NULL : bags->argmax + bag * width + at;             \
                if (n > 0)                                                                                   \
                        memset(out, 0, n * sizeof(T));                                                       \
                if (argmax != NULL && n > 0)                                                                 \
                        memset(argmax, 0, n * sizeof(int64_t));                                              \
                for (int64_t i = bags->offsets[bag]; i < end && !work_stops(work, 2 * (int64_t)n + 8);       \
                     i++) {                                                                                  \
                        if (bags->indices[i] == bags->padding)                                               \
                                continue;                                                                    \
                        const char *row =                                                                    \
                                (const char *)bags->data + bags->indices[i] * matrix->stride[0] * bytes;     \
                        tile_loader(class, matrix->dtype)(row + at * matrix->stride[1] * bytes,              \
                                                          matrix->stride[1] * bytes, n, tile);               \
                        bag_step_##T(bags, i, count++ == 0, tile, out, argmax, n);                           \
                }                                                                                            \
                if (bags->mode == BAG_MEAN)                                                                  \
                        bag_mean_##T(bags, count, out, n);                                                   \
                if (bags->counts != NULL)                                                                    \
                        bags->counts[bag] = count;                                                           \
        }
BAG_STEP(float, TILE_F32)
BAG_STEP(double, TILE_F64)

static Status check_indices(const Bags *bags, Work *work)
{
        for (int64_t i = 0; i < bags->n_indices && !work_stops(work, 1); i++) {
                if (bags->indices[i] < 0 || bags->indices[i] >= bags->matrix->size[0])
                        return fail(
                                STATUS_INDEX,
                                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to "
                                "be %ld",
                                (long)bags->indices[i]);
        }
        return STATUS_OK;
}

// With counts, bags of no columns are counted, too.
Status bags_run(const RunContext *ctx, const Bags *bags)
{
        Work work = { .ctx = ctx };
        int64_t width = bags->matrix->size[1];
        TRY(check_indices(bags, &work));
        for (int64_t bag = 0; bag < bags->n_bags && !work_stops(&work, 1); bag++) {
                int64_t at = 0;
                do {
                        size_t n = (size_t)MIN(width - at, TILE);
                        if (bags->matrix->dtype == DTYPE_F64)
                                bag_columns_double(bags, &work, bag, at, n);
                        else
                                bag_columns_float(bags, &work, bag, at, n);
                        at += TILE;
                } while (at < width && !work.stops);
        }
        return run_poll(ctx);
}
