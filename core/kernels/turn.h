// SPDX-License-Identifier: Apache-2.0
// Squares of lanes turned: after TURN_n(row), of n vectors of n lanes, lane j of row i is what lane
// i of row j was.
#pragma once

// One step of turning a square: rows that are `half` apart exchange lanes that are `half` apart.
// `low` takes the lanes whose number lacks the bit from both rows, `high` the others.
#define EXCHANGE(row, n, half, low, high)                                                                    \
        for (int turn = 0; turn < (n); turn++) {                                                             \
                if ((turn & (half)) == 0) {                                                                  \
                        __typeof__((row)[0]) first = (row)[turn], second = (row)[turn + (half)];             \
                        (row)[turn] = __builtin_shufflevector(first, second, low);                           \
                        (row)[turn + (half)] = __builtin_shufflevector(first, second, high);                 \
                }                                                                                            \
        }
#define LOW_4_1   0, 4, 2, 6
#define HIGH_4_1  1, 5, 3, 7
#define LOW_4_2   0, 1, 4, 5
#define HIGH_4_2  2, 3, 6, 7
#define LOW_8_1   0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_8_1  1, 9, 3, 11, 5, 13, 7, 15
#define LOW_8_2   0, 1, 8, 9, 4, 5, 12, 13
#define HIGH_8_2  2, 3, 10, 11, 6, 7, 14, 15
#define LOW_8_4   0, 1, 2, 3, 8, 9, 10, 11
#define HIGH_8_4  4, 5, 6, 7, 12, 13, 14, 15
#define LOW_16_1  0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH_16_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define LOW_16_2  0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_16_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW_16_4  0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH_16_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW_16_8  0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH_16_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define TURN_4(row)                                                                                          \
        do {                                                                                                 \
                EXCHANGE(row, 4, 1, LOW_4_1, HIGH_4_1)                                                       \
                EXCHANGE(row, 4, 2, LOW_4_2, HIGH_4_2)                                                       \
        } while (0)
#define TURN_8(row)                                                                                          \
        do {                                                                                                 \
                EXCHANGE(row, 8, 1, LOW_8_1, HIGH_8_1)                                                       \
                EXCHANGE(row, 8, 2, LOW_8_2, HIGH_8_2)                                                       \
                EXCHANGE(row, 8, 4, LOW_8_4, HIGH_8_4)                                                       \
        } while (0)
#define TURN_16(row)                                                                                         \
        do {                                                                                                 \
                EXCHANGE(row, 16, 1, LOW_16_1, HIGH_16_1)                                                    \
                EXCHANGE(row, 16, 2, LOW_16_2, HIGH_16_2)                                                    \
                EXCHANGE(row, 16, 4, LOW_16_4, HIGH_16_4)                                                    \
                EXCHANGE(row, 16, 8, LOW_16_8, HIGH_16_8)                                                    \
        } while (0)
