// SPDX-License-Identifier: Apache-2.0
// deform.c: a place becomes four elements with weights, which are then applied to every channel of
// its group. Elements outside of the image are 0; an offset that is no number gives weights that
// are none.
#include "core/kernels/conv/deform.h"

#include <math.h>

// A result's position: image of the batch, group, position in the kernel, and in the plane.
typedef struct Place {
        int64_t n, group, kernel, out;
} Place;

#define DEFORM(T)                                                                                            \
        static void taps_##T(const DeformColumns *task, T y, T x, int64_t at[4], T weight[4])                \
        {                                                                                                    \
                const int64_t height = task->size[0], width = task->size[1];                                 \
                const bool inside = !(y <= -1 || y >= (T)height || x <= -1 || x >= (T)width);                \
                const int64_t top = inside && y == y ? (int64_t)floor((double)y) : 0;                        \
                const int64_t left = inside && x == x ? (int64_t)floor((double)x) : 0;                       \
                const T down = y - (T)top, right = x - (T)left;                                              \
                const T shares[4] = { (1 - down) * (1 - right), (1 - down) * right, down * (1 - right),      \
                                      down * right };                                                        \
                for (int k = 0; k < 4; k++) {                                                                \
                        const int64_t row = top + (k >> 1), column = left + (k & 1);                         \
                        const bool is = inside && row >= 0 && row < height && column >= 0 && column < width; \
                        at[k] = is ? row * width + column : -1;                                              \
                        weight[k] = inside ? shares[k] : 0;                                                  \
                }                                                                                            \
        }                                                                                                    \
        static void place_##T(const DeformColumns *task, const Place *place)                                 \
        {                                                                                                    \
                const int64_t n_kernel = task->kernel[0] * task->kernel[1];                                  \
                const int64_t n_out = task->out_size[0] * task->out_size[1];                                 \
                const int64_t plane = task->size[0] * task->size[1];                                         \
                const int64_t each = task->channels / task->groups;                                          \
                const int64_t from = (place->n * task->groups + place->group) * n_kernel + place->kernel;    \
                const T *offset = (const T *)task->offset + from * 2 * n_out + place->out;                   \
                const T mask = task->mask == NULL ? 1 : ((const T *)task->mask)[from * n_out + place->out];  \
                const int64_t row = place->out / task->out_size[1] * task->stride[0] - task->padding[0] +    \
                                    place->kernel / task->kernel[1] * task->dilation[0];                     \
                const int64_t column = place->out % task->out_size[1] * task->stride[1] - task->padding[1] + \
                                       place->kernel % task->kernel[1] * task->dilation[1];                  \
                int64_t at[4];                                                                               \
                T weight[4];                                                                                 \
                taps_##T(task, (T)row + offset[0], (T)column + offset[n_out], at, weight);                   \
                for (int64_t c = 0; c < each; c++) {                                                         \
                        const int64_t channel = place->n * task->channels + place->group * each + c;         \
                        const T *image = (const T *)task->image + channel * plane;                           \
                        T sum = 0;                                                                           \
                        for (int k = 0; k < 4; k++)                                                          \
                                sum += weight[k] * (at[k] < 0 ? 0 : image[at[k]]);                           \
                        ((T *)task->out)[(channel * n_kernel + place->kernel) * n_out + place->out] =        \
                                mask * sum;                                                                  \
                }                                                                                            \
        }
DEFORM(float)
DEFORM(double)

Status deform_columns_run(const RunContext *ctx, const DeformColumns *task)
{
        const int64_t n_kernel = task->kernel[0] * task->kernel[1];
        const int64_t n_out = task->out_size[0] * task->out_size[1];
        const int64_t each = task->channels / task->groups;
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < task->batch * task->groups * n_kernel * n_out; i++) {
                const int64_t outer = i / n_out, group = outer / n_kernel;
                const Place place = { group / task->groups, group % task->groups, outer % n_kernel,
                                      i % n_out };
                if (work_stops(&work, 32 + 8 * each))
                        break;
                if (task->dtype == DTYPE_F32)
                        place_float(task, &place);
                else
                        place_double(task, &place);
        }
        return run_poll(ctx);
}
