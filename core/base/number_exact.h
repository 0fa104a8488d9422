// SPDX-License-Identifier: Apache-2.0
// Exact comparison of a long decimal number with a binary one. Not for other rooms.
#pragma once
#include <stdint.h>

// Sign of D * 10^exponent - middle * 2^scale, D being the `n` digits from `first` to `last` (a
// point among them is passed over), the first not 0. Both must lie within the doubles' range and,
// beyond 770 digits, `middle` must be the middle between two doubles.
int number_compare_exact(const char *first, const char *last, int64_t n, int64_t exponent, uint64_t middle,
                         int scale);
