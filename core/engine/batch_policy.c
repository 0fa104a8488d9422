// SPDX-License-Identifier: Apache-2.0
// batch_policy.c: what PATCH says about a graph's batches, as the line that the store keeps,
//     max_size 8 max_delay_us 500 preferred 12 priority 3
// and as one word that runs read without a lock.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/base/limits.h"
#include "core/engine/batch.h"

enum { SIZE_BITS = 8, PREFERRED_BITS = 8, PRIORITY_BITS = 4 };

static uint64_t pack(const BatchPolicy *policy)
{
        uint64_t word = (uint64_t)policy->max_delay_us;
        word = word << PRIORITY_BITS | policy->priority;
        word = word << PREFERRED_BITS | policy->preferred;
        return word << SIZE_BITS | policy->max_size;
}

static uint32_t take_bits(uint64_t *word, int n)
{
        uint32_t bits = (uint32_t)(*word & ((1u << n) - 1));
        *word >>= n;
        return bits;
}

BatchPolicy batch_policy(const GraphVersion *version)
{
        uint64_t word = atomic_load_explicit(&version->batching, memory_order_relaxed);
        BatchPolicy policy = { .max_size = take_bits(&word, SIZE_BITS) };
        policy.preferred = take_bits(&word, PREFERRED_BITS);
        policy.priority = take_bits(&word, PRIORITY_BITS);
        policy.max_delay_us = (int64_t)word;
        return policy;
}

void batch_policy_write(const BatchPolicy *policy, Text *out)
{
        if (pack(policy) != 0)
                text_addf(out, "max_size %u max_delay_us %" PRId64 " preferred %u priority %u",
                          policy->max_size, policy->max_delay_us, policy->preferred, policy->priority);
}

// What it does not know, and what cannot be, counts as not said: a newer program may have written
// it.
void batch_policy_take(GraphVersion *version, const char *line)
{
        BatchPolicy policy = { .max_size = 0 };
        char key[32];
        long long value;
        int used;
        for (; sscanf(line, " %31s %lld%n", key, &value, &used) == 2; line += used) {
                if (strcmp(key, "max_size") == 0 && value >= 0 && value <= BATCH_LARGEST)
                        policy.max_size = (uint32_t)value;
                else if (strcmp(key, "max_delay_us") == 0 && value >= 0 && value <= BATCH_MAX_DELAY_US)
                        policy.max_delay_us = value;
                else if (strcmp(key, "preferred") == 0 && value >= 0 && value < 2 * BATCH_LARGEST)
                        policy.preferred = (uint32_t)value & ~1u;
                else if (strcmp(key, "priority") == 0 && value >= 0 && value <= BATCH_PRIORITIES)
                        policy.priority = (uint32_t)value;
        }
        atomic_store_explicit(&version->batching, pack(&policy), memory_order_relaxed);
}

uint32_t batch_policy_sizes(const BatchPolicy *policy)
{
        int64_t most = policy->max_size == 0 ? limits.max_batch : MIN(limits.max_batch, policy->max_size);
        uint32_t sizes = 0;
        for (uint32_t k = 1; k <= BATCH_SIZES && (1ll << k) <= most; k++)
                sizes |= 1u << k;
        return policy->preferred == 0 ? sizes : sizes & policy->preferred;
}

uint32_t batch_policy_enough(const BatchPolicy *policy)
{
        uint32_t sizes = batch_policy_sizes(policy), k = policy->preferred == 0 ? BATCH_SIZES : 1;
        while (k > 0 && k <= BATCH_SIZES && (sizes >> k & 1) == 0)
                k = policy->preferred == 0 ? k - 1 : k + 1;
        return sizes == 0 ? 1 : 1u << k;
}
