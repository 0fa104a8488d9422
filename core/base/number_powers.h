// SPDX-License-Identifier: Apache-2.0
// Powers of ten as 128-bit mantissas, for number_scan.c and number_print.c.
#pragma once
#include <stdint.h>

enum {
        NUMBER_POWER_MIN = -342,
        NUMBER_POWER_MAX = 324,
        NUMBER_POWER_EXACT = 55, // 10^0 to 10^55 fit without a loss
};

// 10^e lies in [m, m + 1) * 2^(number_log2_power(e) - 127) with m = high * 2^64 + low of entry e -
// NUMBER_POWER_MIN.
typedef struct NumberPower {
        uint64_t high, low;
} NumberPower;
extern const NumberPower number_powers[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1];

// floor(log2(10^e)) within the table (tools/generate/powers_of_ten.py proves it).
static inline int number_log2_power(int e)
{
        return (e * 1741647) >> 19;
}
