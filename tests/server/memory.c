// SPDX-License-Identifier: Apache-2.0
#include "server/memory.h"
#include <criterion/criterion.h>

Test(memory, each_rung_begins_at_its_share_of_the_limit_and_is_left_a_little_below)
{
        static const struct {
                int64_t used;
                MemoryRung rung;
        } up[] = { { 849, MEMORY_FREE },       { 850, MEMORY_NO_CACHES },  { 899, MEMORY_NO_CACHES },
                   { 900, MEMORY_NO_UPLOADS }, { 949, MEMORY_NO_UPLOADS }, { 950, MEMORY_NO_RUNS } },
          down[] = { { 930, MEMORY_NO_RUNS },   { 929, MEMORY_NO_UPLOADS }, { 880, MEMORY_NO_UPLOADS },
                     { 879, MEMORY_NO_CACHES }, { 830, MEMORY_NO_CACHES },  { 829, MEMORY_FREE } };
        MemoryRung rung = MEMORY_FREE;
        for (size_t i = 0; i < ARRAY_LENGTH(up); i++)
                cr_assert_eq(rung = memory_rung(up[i].used, 1000, rung), up[i].rung, "%zu", i);
        for (size_t i = 0; i < ARRAY_LENGTH(down); i++)
                cr_assert_eq(rung = memory_rung(down[i].used, 1000, rung), down[i].rung, "%zu", i);
        cr_assert_eq(memory_rung(1000, 1000, MEMORY_FREE), MEMORY_NO_RUNS, "in one step");
        cr_assert_eq(memory_rung(10, 1000, MEMORY_NO_RUNS), MEMORY_FREE);
}

Test(memory, nothing_is_given_up_without_a_limit)
{
        cr_assert_eq(memory_rung(INT64_MAX, 0, MEMORY_FREE), MEMORY_FREE);
        cr_assert_eq(memory_rung(INT64_MAX / 2, INT64_MAX, MEMORY_FREE), MEMORY_FREE);
}
