// SPDX-License-Identifier: Apache-2.0
// Byte budgets: take before allocating, give back when freeing. Any thread.
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Budget {
        _Atomic size_t used;
        _Atomic size_t peak;
        size_t limit;
} Budget;

static inline void budget_init(Budget *budget, size_t limit)
{
        atomic_init(&budget->used, 0);
        atomic_init(&budget->peak, 0);
        budget->limit = limit;
}
// False (nothing taken) when it would go over the limit. `budget` may be NULL: always true.
bool budget_take(Budget *budget, size_t n_bytes);
void budget_give(Budget *budget, size_t n_bytes);
