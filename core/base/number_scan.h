// SPDX-License-Identifier: Apache-2.0
// The hot path of number reading, inlined into the row readers of json_row.c. Digits are taken
// eight at a time from one 64-bit word (little-endian). Not for other rooms.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Bytes that must be readable from the start of a number for number_scan_quick.
enum { NUMBER_QUICK_ROOM = 48 };

extern const double number_exact_powers[23];     // 10^0 to 10^22: exact as doubles
extern const uint64_t number_integer_powers[20]; // 10^0 to 10^19

// w * 10^exponent rounded to the nearest double, ties to even; w != 0. False when 128 bits of the
// power do not decide.
bool number_from_decimal(uint64_t w, int64_t exponent, double *out_value);

static inline uint64_t number_load8(const char *at)
{
        uint64_t word;
        memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        return word;
}

// Nonzero bytes mark what is no digit. Above the first mark they mean nothing: the addition may
// carry.
static inline uint64_t number_other_bytes(uint64_t word)
{
        const uint64_t high = 0xf0f0f0f0f0f0f0f0u, zeros = 0x3030303030303030u;
        return ((word & high) ^ zeros) | (((word + 0x0606060606060606u) & high) ^ zeros);
}

// The value of eight digits, the first in the lowest byte; bytes 0 count as '0'.
static inline uint64_t number_value8(uint64_t word)
{
        word &= 0x0f0f0f0f0f0f0f0fu;
        word = word * 10 + (word >> 8); // pairs, in the even bytes
        const uint64_t mask = 0x000000ff000000ffu;
        return ((word & mask) * (100 + (1000000ull << 32)) + (word >> 16 & mask) * (1 + (10000ull << 32))) >>
               32;
}

// Appends the leading digits (at most 8) at `at` to *w. Returns how many there were.
static inline unsigned number_take8(const char *at, uint64_t *w)
{
        uint64_t word = number_load8(at);
        uint64_t other = number_other_bytes(word);
        if (other == 0) {
                *w = *w * 100000000 + number_value8(word);
                return 8;
        }
        unsigned n = (unsigned)__builtin_ctzll(other) >> 3;
        // Two shifts: for n = 0 one shift by 64 would not be defined.
        *w = *w * number_integer_powers[n] + number_value8(word << (56 - 8 * n) << 8);
        return n;
}

// w * 10^exponent, negated on request; false when undecided.
static inline bool number_finish(uint64_t w, int exponent, bool negative, double *out_value)
{
        double value;
        if (__builtin_expect(w <= 1ull << 53 && exponent >= -22 && exponent <= 22, 1)) {
                value = (double)w;
                value = exponent < 0 ? value / number_exact_powers[-exponent]
                                     : value * number_exact_powers[exponent];
        } else if (w == 0) {
                value = 0;
        } else if (!number_from_decimal(w, exponent, &value)) {
                return false;
        }
        *out_value = negative ? -value : value;
        return true;
}

// Reads a number of the common kind: up to 7 digits before the point, up to 19 in all, a short
// exponent. Returns the first byte after it, or NULL: then it is of another kind or malformed, and
// number_scan decides. NUMBER_QUICK_ROOM bytes must be readable at `at`.
static inline const char *number_scan_quick(const char *at, double *out_value)
{
        bool negative = *at == '-';
        at += negative;
        uint64_t w = 0;
        unsigned n_whole = 1, n_fraction = 0;
        if (at[1] == '.' && (unsigned char)(at[0] - '0') < 10) {
                w = (uint64_t)(at[0] - '0');
        } else {
                n_whole = number_take8(at, &w);
                if (n_whole == 0 || n_whole == 8 || (at[0] == '0' && n_whole > 1))
                        return NULL;
        }
        at += n_whole;
        if (*at == '.') {
                at++;
                n_fraction = number_take8(at, &w);
                if (n_fraction == 8) {
                        n_fraction += number_take8(at + 8, &w);
                        if (n_fraction == 16)
                                n_fraction += number_take8(at + 16, &w);
                        if (n_whole + n_fraction > 19)
                                return NULL;
                }
                if (n_fraction == 0)
                        return NULL;
                at += n_fraction;
        }
        int exponent = 0;
        if (__builtin_expect((*at | 0x20) == 'e', 0)) {
                at++;
                bool minus = *at == '-';
                at += minus || *at == '+';
                if ((unsigned char)(at[0] - '0') >= 10)
                        return NULL;
                for (int i = 0; (unsigned char)(*at - '0') < 10; i++, at++) {
                        if (i == 4)
                                return NULL;
                        exponent = exponent * 10 + (*at - '0');
                }
                exponent = minus ? -exponent : exponent;
        }
        return number_finish(w, exponent - (int)n_fraction, negative, out_value) ? at : NULL;
}
