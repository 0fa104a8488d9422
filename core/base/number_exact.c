// SPDX-License-Identifier: Apache-2.0
// number_exact.c: natural numbers of fixed size, just enough to compare. The middle between two
// doubles has at most 767 significant digits. So 770 digits of a longer number are taken; for the
// rest it only matters whether a digit other than 0 follows. Both sides are scaled to whole
// numbers: powers of five move to the side with the positive exponent, powers of two are shifts.
// The widest side has 10^770 or 2^54 * 5^1112: 2,640 bits.
#include "core/base/number_exact.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_DIGITS = 770, MAX_WORDS = 64 };

typedef struct Natural {
        int n; // words in use; the top one is not 0
        uint64_t words[MAX_WORDS];
} Natural;

static void multiply_add(Natural *number, uint64_t factor, uint64_t add)
{
        uint64_t carry = add;
        for (int i = 0; i < number->n; i++) {
                unsigned __int128 product = (unsigned __int128)number->words[i] * factor + carry;
                number->words[i] = (uint64_t)product;
                carry = (uint64_t)(product >> 64);
        }
        if (carry != 0 && number->n < MAX_WORDS)
                number->words[number->n++] = carry;
}

static void multiply_power_of_five(Natural *number, int64_t exponent)
{
        const uint64_t five27 = 7450580596923828125u; // the largest power within 64 bits
        for (; exponent >= 27; exponent -= 27)
                multiply_add(number, five27, 0);
        uint64_t rest = 1;
        for (; exponent > 0; exponent--)
                rest *= 5;
        multiply_add(number, rest, 0);
}

static void shift_left(Natural *number, int64_t bits)
{
        int words = (int)(bits / 64);
        if (words > 0 && number->n + words < MAX_WORDS) {
                memmove(number->words + words, number->words, (size_t)number->n * sizeof(uint64_t));
                memset(number->words, 0, (size_t)words * sizeof(uint64_t));
                number->n += words;
        }
        multiply_add(number, 1ull << (bits % 64), 0);
}

static int compare(const Natural *a, const Natural *b)
{
        if (a->n != b->n)
                return a->n < b->n ? -1 : 1;
        for (int i = a->n - 1; i >= 0; i--) {
                if (a->words[i] != b->words[i])
                        return a->words[i] < b->words[i] ? -1 : 1;
        }
        return 0;
}

// Takes up to MAX_DIGITS digits, 18 at a time. Returns whether a digit other than 0 follows them.
static bool take_digits(const char *first, const char *last, Natural *number)
{
        uint64_t chunk = 0, power = 1;
        int taken = 0;
        const char *at = first;
        for (; at < last && taken < MAX_DIGITS; at++) {
                if (*at == '.')
                        continue;
                chunk = chunk * 10 + (uint64_t)(*at - '0');
                power *= 10;
                taken++;
                if (power == 1000000000000000000u) {
                        multiply_add(number, power, chunk);
                        chunk = 0;
                        power = 1;
                }
        }
        multiply_add(number, power, chunk);
        for (; at < last; at++) {
                if (*at != '.' && *at != '0')
                        return true;
        }
        return false;
}

int number_compare_exact(const char *first, const char *last, int64_t n, int64_t exponent, uint64_t middle,
                         int scale)
{
        Natural left = { 0 }, right = { .n = 1, .words = { middle } };
        bool more = take_digits(first, last, &left);
        if (n > MAX_DIGITS)
                exponent += n - MAX_DIGITS;
        if (exponent >= 0)
                multiply_power_of_five(&left, exponent);
        else
                multiply_power_of_five(&right, -exponent);
        if (exponent >= scale)
                shift_left(&left, exponent - scale);
        else
                shift_left(&right, scale - exponent);
        int order = compare(&left, &right);
        return order == 0 && more ? 1 : order;
}
