// SPDX-License-Identifier: Apache-2.0
// budget.c: lock-free counters; `used` never exceeds `limit`, `peak` is the highest `used` seen.
#include "core/base/budget.h"

bool budget_take(Budget *budget, size_t n_bytes)
{
        if (budget == NULL)
                return true;
        size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
        size_t next;
        do {
                if (__builtin_add_overflow(used, n_bytes, &next) || next > budget->limit)
                        return false;
        } while (!atomic_compare_exchange_weak_explicit(&budget->used, &used, next, memory_order_relaxed,
                                                        memory_order_relaxed));
        size_t peak = atomic_load_explicit(&budget->peak, memory_order_relaxed);
        while (peak < next && !atomic_compare_exchange_weak_explicit(
                                      &budget->peak, &peak, next, memory_order_relaxed, memory_order_relaxed))
                continue;
        return true;
}

void budget_give(Budget *budget, size_t n_bytes)
{
        if (budget != NULL)
                atomic_fetch_sub_explicit(&budget->used, n_bytes, memory_order_relaxed);
}
