// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: a small generator with fixed seeds, buffers with guard bytes on both
// sides, and assert_close's tolerances.
#pragma once
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/isa.h"
#include "core/tensor/tensor.h"

// The body once per instruction set that this machine has, forced. Criterion gives every test a
// process of its own.
#define FOR_EACH_ISA(isa) for (Isa isa = ISA_PORTABLE; isa <= isa_machine() && (isa_use(isa), true); isa++)

typedef struct Sample {
        uint64_t state;
} Sample;

static inline uint64_t sample_bits(Sample *sample)
{
        sample->state += 0x9e3779b97f4a7c15u;
        uint64_t x = sample->state;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}
static inline int64_t sample_int(Sample *sample, int64_t low, int64_t high) // both ends included
{
        return low + (int64_t)(sample_bits(sample) % (uint64_t)(high - low + 1));
}
static inline double sample_double(Sample *sample) // -1 .. 1
{
        return (double)(int64_t)(sample_bits(sample) >> 11) / 4503599627370496.0 - 1.0;
}

enum { GUARD_BYTES = 256, GUARD = 0xa7 };

// `n_bytes` between two guards. Free with guarded_check, which fails the test when a guard byte
// changed.
static inline void *guarded_new(size_t n_bytes)
{
        uint8_t *bytes = malloc(n_bytes + 2 * GUARD_BYTES);
        cr_assert_not_null(bytes);
        memset(bytes, GUARD, n_bytes + 2 * GUARD_BYTES);
        return bytes + GUARD_BYTES;
}
static inline void guarded_check(void *data, size_t n_bytes)
{
        uint8_t *bytes = (uint8_t *)data - GUARD_BYTES;
        for (size_t i = 0; i < GUARD_BYTES; i++) {
                cr_assert_eq(bytes[i], GUARD, "a byte before the buffer was written");
                cr_assert_eq(bytes[GUARD_BYTES + n_bytes + i], GUARD, "byte %zu after the buffer was written",
                             i);
        }
        free(bytes);
}

static inline void sample_fill(Sample *sample, Dtype dtype, void *data, int64_t n)
{
        for (int64_t i = 0; i < n; i++) {
                char *element = (char *)data + i * dtype_info[dtype].bytes;
                if (dtype_is_float(dtype))
                        element_from_f64(dtype, element, sample_double(sample));
                else
                        element_from_i64(dtype, element, sample_int(sample, -50, 50));
        }
}

// torch.testing.assert_close: relative and absolute tolerance of the dtype, wider for long sums.
static inline bool close_enough_sum(Dtype dtype, double got, double want, int64_t n_terms)
{
        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got);
        if (isinf(want) || isinf(got))
                return got == want;
        double rtol = dtype == DTYPE_F32    ? 1.3e-6
                      : dtype == DTYPE_F64  ? 1e-7
                      : dtype == DTYPE_F16  ? 1e-3
                      : dtype == DTYPE_BF16 ? 1.6e-2
                                            : 0;
        double atol = dtype == DTYPE_F64 ? 1e-7 : dtype_is_float(dtype) ? 1e-5 : 0;
        return fabs(got - want) <= (atol + rtol * fabs(want)) * (1 + (double)n_terms / 64);
}
static inline bool close_enough(Dtype dtype, double got, double want)
{
        return close_enough_sum(dtype, got, want, 0);
}
