// SPDX-License-Identifier: Apache-2.0
// The generator of a run's random numbers: MT19937, drawn from as PyTorch's CPU generator is after
// torch.manual_seed(seed). One run owns it and draws in the order in which its nodes run. The state
// is made by the first draw, so a run that draws nothing pays nothing.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

enum { GENERATOR_WORDS = 624 };

typedef struct Generator {
        uint64_t seed;   // valid if `seeded`
        bool seeded;     // false: the first draw takes a seed from the system
        bool started;    // something was drawn since generator_rewind
        bool has_normal; // `normal` is the second number of a pair whose first one has been used
        uint32_t next;   // words of `state` that were used
        double normal;
        uint32_t state[GENERATOR_WORDS];
} Generator;

// Without a seed.
void generator_init(Generator *generator);
void generator_seed(Generator *generator, uint64_t seed);
// To the first number of its seed again; keeps the seed.
void generator_rewind(Generator *generator);
// All that counts: the words only after a first draw.
void generator_copy(Generator *to, const Generator *from);
// Before any draw of an operator. STATUS_INTERNAL when `generator` is NULL, or when the system
// gives no seed.
Status generator_start(Generator *generator);

// The words behind the current ones; for the functions below.
void generator_refill(Generator *generator);

// 32 and 64 random bits. After generator_start.
static inline uint32_t generator_next32(Generator *generator)
{
        if (__builtin_expect(generator->next == GENERATOR_WORDS, 0))
                generator_refill(generator);
        uint32_t y = generator->state[generator->next++];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        return y ^ y >> 18;
}

static inline uint64_t generator_next64(Generator *generator)
{
        uint64_t high = generator_next32(generator);
        return high << 32 | generator_next32(generator);
}

// Uniform on [0, 1): 24 bits of 32, 53 bits of 64.
static inline float generator_uniform_f32(Generator *generator)
{
        return (float)(generator_next32(generator) & 0xffffffu) * 0x1p-24f;
}

static inline double generator_uniform_f64(Generator *generator)
{
        return (double)(generator_next64(generator) & 0x1fffffffffffffu) * 0x1p-53;
}

// Mean 0, deviation 1. Numbers are made in pairs; the second one waits for the next call.
double generator_normal(Generator *generator);
