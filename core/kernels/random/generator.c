// SPDX-License-Identifier: Apache-2.0
// generator.c: MT19937 (M. Matsumoto and T. Nishimura, 1998, with the initialisation of 2002), and
// the Box-Muller transform in double.
#include "core/kernels/random/generator.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

enum { SHIFT = 397 }; // distance of the words that are combined

void generator_init(Generator *generator)
{
        generator->seeded = generator->started = generator->has_normal = false;
}

void generator_seed(Generator *generator, uint64_t seed)
{
        generator_init(generator);
        generator->seed = seed;
        generator->seeded = true;
}

void generator_rewind(Generator *generator)
{
        generator->started = generator->has_normal = false;
}

void generator_copy(Generator *to, const Generator *from)
{
        memcpy(to, from, from->started ? sizeof(*to) : offsetof(Generator, state));
}

Status generator_start(Generator *generator)
{
        if (generator == NULL)
                return fail(STATUS_INTERNAL, "a random operator in a run without a generator");
        if (generator->started)
                return STATUS_OK;
        if (!generator->seeded) {
                // Only 32 bits of a seed count; fewer digits are exact in every JSON parser.
                uint32_t bits;
                if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
                        return fail(STATUS_INTERNAL, "the system gives no random seed");
                generator_seed(generator, bits);
        }
        uint32_t *state = generator->state;
        state[0] = (uint32_t)generator->seed;
        for (uint32_t i = 1; i < GENERATOR_WORDS; i++)
                state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;
        generator->next = GENERATOR_WORDS;
        generator->started = true;
        return STATUS_OK;
}

static uint32_t mix(uint32_t high, uint32_t low)
{
        uint32_t both = (high & 0x80000000u) | (low & 0x7fffffffu);
        return both >> 1 ^ ((low & 1) != 0 ? 0x9908b0dfu : 0);
}

void generator_refill(Generator *generator)
{
        uint32_t *state = generator->state;
        for (int i = 0; i < GENERATOR_WORDS - SHIFT; i++)
                state[i] = state[i + SHIFT] ^ mix(state[i], state[i + 1]);
        for (int i = GENERATOR_WORDS - SHIFT; i < GENERATOR_WORDS - 1; i++)
                state[i] = state[i + SHIFT - GENERATOR_WORDS] ^ mix(state[i], state[i + 1]);
        state[GENERATOR_WORDS - 1] = state[SHIFT - 1] ^ mix(state[GENERATOR_WORDS - 1], state[0]);
        generator->next = 0;
}

double generator_normal(Generator *generator)
{
        if (generator->has_normal) {
                generator->has_normal = false;
                return generator->normal;
        }
        double angle = generator_uniform_f64(generator), length = generator_uniform_f64(generator);
        double radius = sqrt(-2.0 * log1p(-length));
        angle *= 2.0 * M_PI;
        generator->normal = radius * sin(angle);
        generator->has_normal = true;
        return radius * cos(angle);
}
