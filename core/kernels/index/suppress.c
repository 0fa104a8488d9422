// SPDX-License-Identifier: Apache-2.0
// suppress.c: every box that is kept removes those behind it. Areas are computed in the type of the
// boxes, since a threshold tells apart what is rounded otherwise.
#include "core/kernels/index/suppress.h"

#include <string.h>

#define SUPPRESS(T)                                                                                          \
        static T area_##T(const T *box)                                                                      \
        {                                                                                                    \
                return (box[2] - box[0]) * (box[3] - box[1]);                                                \
        }                                                                                                    \
        static bool overlaps_##T(const T *a, const T *b, double most)                                        \
        {                                                                                                    \
                T left = a[0] < b[0] ? b[0] : a[0], top = a[1] < b[1] ? b[1] : a[1];                         \
                T right = b[2] < a[2] ? b[2] : a[2], bottom = b[3] < a[3] ? b[3] : a[3];                     \
                T width = 0 < right - left ? right - left : 0, height = 0 < bottom - top ? bottom - top : 0; \
                T common = width * height;                                                                   \
                return (double)(common / (area_##T(a) + area_##T(b) - common)) > most;                       \
        }                                                                                                    \
        static void remove_behind_##T(const Suppression *task, int64_t i, Work *work)                        \
        {                                                                                                    \
                const T *boxes = task->boxes;                                                                \
                for (int64_t k = i + 1; k < task->n && !work_stops(work, 4); k++) {                          \
                        if (task->out[k])                                                                    \
                                task->out[k] = !overlaps_##T(boxes + task->order[i] * 4,                     \
                                                             boxes + task->order[k] * 4, task->most);        \
                }                                                                                            \
        }
SUPPRESS(float)
SUPPRESS(double)

Status suppress_run(const RunContext *ctx, const Suppression *task)
{
        Work work = { .ctx = ctx };
        for (int64_t i = 0; i < task->n && !work_stops(&work, 2); i++) {
                if (task->order[i] < 0 || task->order[i] >= task->n)
                        return fail(STATUS_INDEX, "nms: the order names box %ld of %ld", (long)task->order[i],
                                    (long)task->n);
                task->out[i] = 1;
        }
        for (int64_t i = 0; i < task->n && !work_stops(&work, 1); i++) {
                if (task->out[i] && task->dtype == DTYPE_F32)
                        remove_behind_float(task, i, &work);
                else if (task->out[i])
                        remove_behind_double(task, i, &work);
        }
        return run_poll(ctx);
}
