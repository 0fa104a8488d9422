// SPDX-License-Identifier: Apache-2.0
// class_sum.c: partial sums on eight levels. A level takes up to 2^power sums of the level below it
// before it is added to the next one. Half types lose what is small beside the sum so far, so the
// order is part of the result.
#include "core/kernels/reduce/class_sum.h"
#include "core/tensor/convert.h"

enum { LEVELS = 8 };

static float rounded(Dtype dtype, float value)
{
        return dtype == DTYPE_F16 ? f16_to_f32(f32_to_f16(value)) : bf16_to_f32(f32_to_bf16(value));
}

static int ceil_log2(int64_t n)
{
        int bits = 1;
        while (bits < 62 && n > INT64_C(1) << bits)
                bits++;
        return bits;
}

// Behind element `at` the full levels move up.
static void carry(Dtype dtype, int64_t at, int power, float sums[LEVELS])
{
        const int64_t mask = (INT64_C(1) << power) - 1;
        for (int k = 0; k + 1 < LEVELS && (at & mask << (k * power)) == 0; k++) {
                sums[k + 1] = rounded(dtype, sums[k + 1] + sums[k]);
                sums[k] = 0;
        }
}

Status class_sum_run(const RunContext *ctx, Dtype dtype, int64_t n, const float *data, const bool *ignored,
                     float *out_sum)
{
        const int power = MAX(4, ceil_log2(n) / LEVELS);
        float sums[LEVELS] = { 0 }, total = 0;
        Work work = { .ctx = ctx };
        for (int64_t from = 0, end; (end = work_end(&work, from, n, 8)) > from; from = end) {
                for (int64_t at = from; at < end; at++) {
                        if (ignored[at]) // PyTorch's levels stay as they are then
                                continue;
                        sums[0] = rounded(dtype, sums[0] + data[at]);
                        carry(dtype, at, power, sums);
                }
        }
        for (int k = 0; k < LEVELS; k++)
                total = rounded(dtype, total + sums[k]);
        *out_sum = total;
        return run_poll(ctx);
}
