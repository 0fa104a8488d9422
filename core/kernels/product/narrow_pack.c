// SPDX-License-Identifier: Apache-2.0
// narrow_pack.c: numbers are rounded to the nearest, ties to even.
#include "core/kernels/product/narrow_pack.h"

#include <string.h>

static float peak_of(const float *from, int64_t n)
{
        int32_t highest = 0, bits;
        float peak;
        for (int64_t k = 0; k < n; k++) {
                memcpy(&bits, from + k, sizeof(bits));
                highest = MAX(highest, bits & 0x7fffffff);
        }
        memcpy(&peak, &highest, sizeof(peak));
        return peak;
}

static int8_t whole_of(float x)
{
        int32_t bits;
        x += NARROW_WHOLE;
        memcpy(&bits, &x, sizeof(bits));
        return (int8_t)(bits - NARROW_WHOLE_BITS);
}

static uint16_t half_of(float finite)
{
        uint32_t bits;
        memcpy(&bits, &finite, sizeof(bits));
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static int64_t pack_bytes(const float *from, int n, float steps, uint8_t *to)
{
        int8_t cell[4];
        int64_t sum = 0;
        for (int t = 0; t < n; t++) {
                cell[t] = whole_of(from[t] * steps);
                sum += cell[t];
        }
        memcpy(to, cell, (size_t)n);
        return sum;
}

static int64_t pack_halves(const float *from, int n, float steps, uint8_t *to)
{
        (void)steps;
        uint16_t cell[2];
        for (int t = 0; t < n; t++)
                cell[t] = half_of(from[t]);
        memcpy(to, cell, (size_t)n * sizeof(cell[0]));
        return 0;
}

// Calls with constants, so that whole cells are single stores.
NarrowColumn narrow_pack_column(const NarrowKind *kind, const float *from, int64_t n, int64_t step,
                                uint8_t *to)
{
        bool bytes = kind->weight_bytes == 1;
        float scale = bytes ? peak_of(from, n) / (float)NARROW_WEIGHT_STEPS : 0.0f;
        float steps = scale < 1e-37f ? 0.0f : 1.0f / scale;
        int64_t sum = 0, k = 0, terms = kind->terms;
        for (; k + terms <= n; k += terms, to += step)
                sum += !bytes       ? (terms == 2 ? pack_halves(from + k, 2, steps, to)
                                                  : pack_halves(from + k, 1, steps, to))
                       : terms == 4 ? pack_bytes(from + k, 4, steps, to)
                                    : pack_bytes(from + k, 2, steps, to);
        if (k < n)
                sum += bytes ? pack_bytes(from + k, (int)(n - k), steps, to)
                             : pack_halves(from + k, (int)(n - k), steps, to);
        return (NarrowColumn){ scale, (float)sum * scale };
}
