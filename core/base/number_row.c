// SPDX-License-Identifier: Apache-2.0
// number_row.c: many floats as text. number_print.c takes one after the other; here eight go side
// by side, by the same method, where the processor has lanes of 64 bits enough (AVX-512, told at
// run time; with less, one by one is faster). The digits of a lane end up in two words, laid out
// around the point; putting them behind each other is all that is left to do one by one.
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "core/base/isa.h"
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/number_powers.h"

enum { ROW_LANES = 8 };
#define ZEROS8 0x3030303030303030u

static char *put_one(float value, char *at)
{
        bool finite = isfinite(value);
        *at = '"';
        at += !finite;
        at += number_print_f32(value, at);
        memcpy(at, "\"", 1);
        at += !finite;
        memcpy(at, ", ", 2);
        return at + 2;
}

static size_t portable_row(const float *values, size_t n, char *out)
{
        char *at = out;
        for (size_t i = 0; i < n; i++)
                at = put_one(values[i], at);
        return (size_t)(at - out);
}

#if defined(__x86_64__)
#include <immintrin.h>

typedef uint64_t Lanes __attribute__((vector_size(64)));
typedef int64_t Signed __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(64)));
typedef uint32_t Lanes32 __attribute__((vector_size(32)));

typedef struct Block {
        uint64_t text[2][ROW_LANES]; // 16 characters without the sign
        uint64_t rest[ROW_LANES];    // digits behind the first, one to a byte
        uint64_t lead[ROW_LANES];    // zeros in front
        uint64_t whole[ROW_LANES];   // characters before the point
        uint64_t special[ROW_LANES]; // not 0: none of this holds
} Block;

static inline char *put(const Block *block, int i, float value, char *at)
{
        uint32_t bits;
        if (__builtin_expect(block->special[i] != 0, 0))
                return put_one(value, at);
        memcpy(&bits, &value, sizeof(bits));
        *at = '-';
        at += bits >> 31;
        memcpy(at, &block->text[0][i], 8);
        memcpy(at + 8, &block->text[1][i], 8);
        // no branch: as good as random
        uint64_t rest = block->rest[i], n = 9 - ((uint64_t)__builtin_clzll(rest | 1) >> 3) - (rest == 0);
        at += MAX(block->lead[i] + n, block->whole[i] + 1) + 1;
        memcpy(at, ", ", 2);
        return at + 2;
}

#define TARGET __attribute__((target(ISA_AVX512_FEATURES)))

// Lanes that leave the common path (subnormal, not finite, from 1e7, below 1e-4) are marked. On it,
// powers of ten are exact (10^0 to 10^12), and no end of a rounding interval is a candidate, which
// would take 2^q with q >= 1: whether ends belong to the interval does not matter.
TARGET static void block_avx512(const float *values, Block *out)
{
        Lanes32 bits32;
        memcpy(&bits32, values, sizeof(bits32));
        Lanes bits = __builtin_convertvector(bits32, Lanes) & 0x7fffffff;
        Lanes fraction = bits & 0x7fffff, biased = bits >> 23, c = fraction | 0x800000;
        Lanes zero = (Lanes)(bits == 0);
        Lanes narrow = (Lanes)(fraction == 0) & (Lanes)((Signed)biased > 1);
        // k = floor(log10(2^q)) and floor(log2(10^-k)), kept positive: kk = k + 64.
        Lanes kk = (biased * 1262611 + 79043806 - (narrow & 524031)) >> 22;
        Lanes shift = biased + ((178574272 - kk * 1741647) >> 19) - 277;
        Lanes power = (Lanes)_mm512_i64gather_epi64((__m512i)(2 * (64 - NUMBER_POWER_MIN - kk)),
                                                    (const void *)number_powers, 8);
        Lanes power_high = power >> 32, power_low = power & 0xffffffff, t;
        Lanes from = (4 * c - 2 - narrow) << shift, middle = (4 * c) << shift, to = (4 * c + 2) << shift;
        t = power_high * from + (power_low * from >> 32);
        Lanes low = (t >> 32 | ((Lanes)((Signed)(t & 0xffffffff) > 1) & 1));
        t = power_high * middle + (power_low * middle >> 32);
        Lanes value = t >> 32 | ((Lanes)((Signed)(t & 0xffffffff) > 1) & 1);
        t = power_high * to + (power_low * to >> 32);
        Lanes high = (t >> 32 | ((Lanes)((Signed)(t & 0xffffffff) > 1) & 1));
        // The candidates.
        Lanes units = value >> 2, tens = (units * 0xcccccccd >> 35) * 10;
        Lanes tens_below = (Lanes)((Signed)low <= (Signed)(4 * tens)),
              tens_above = (Lanes)((Signed)(4 * tens + 40) <= (Signed)high);
        Lanes below = (Lanes)((Signed)low <= (Signed)(4 * units)),
              above = (Lanes)((Signed)(4 * units + 4) <= (Signed)high);
        Lanes nearest = (Lanes)((Signed)(value + (units & 1)) > (Signed)(4 * units + 2));
        Lanes unit = units + ((nearest ^ ((nearest ^ above) & (below ^ above))) & 1);
        Lanes digits = unit ^ ((unit ^ (tens + (10 & tens_above))) & (tens_below ^ tens_above));
        // Nine digits, and where the point is.
        Lanes below8 = (Lanes)((Signed)digits < 100000000), below7 = (Lanes)((Signed)digits < 10000000);
        digits += digits * 9 & below8;
        digits += digits * 9 & below7;
        digits &= ~zero;
        Signed point = (Signed)((kk - 56 + below8 + below7) & ~zero);
        Lanes special = (Lanes)(point < -4) | (Lanes)(point > 6) | (Lanes)(biased == 255) |
                        ((Lanes)(biased == 0) & ~zero) | (Lanes)(bits == 0x15ae43fd);
        point &= (Signed)~special;
        // Spread, one digit to a byte.
        Lanes first = digits * 0x55e63b89 >> 57, five = digits * 0xd1b71759 >> 45;
        Lanes fours = (five - first * 10000) | (digits - five * 10000) << 32;
        Lanes hundreds = (Lanes)((Words)fours * 10486) >> 20 & 0x0000007f0000007f;
        Lanes twos = (fours << 16) - (Lanes)((Words)hundreds * ((100 << 16) - 1));
        Lanes ones = (Lanes)((Halves)twos * 103) >> 10 & 0x000f000f000f000f;
        Lanes rest = (twos << 8) - (Lanes)((Halves)ones * ((10 << 8) - 1));
        // Zeros in front, and the point put in.
        Lanes negative = (Lanes)(point < 0), lead = (Lanes)(-point) & negative,
              whole = 1 + ((Lanes)point & ~negative);
        Lanes left = first | rest << 8;
        Lanes right = (rest >> 56) << 8 * lead | left >> 1 >> (63 - 8 * lead);
        left <<= 8 * lead;
        Lanes mask = ~(Lanes){ 0 } << 8 * whole;
        right = right << 8 | (left & mask) >> 56;
        left = (left & ~mask) | (left & mask) << 8;
        Lanes dot = ((Lanes){ 0 } + ('0' ^ '.')) << 8 * whole, text0 = (left | ZEROS8) ^ dot,
              text1 = right | ZEROS8;
        memcpy(out->text[0], &text0, sizeof(text0));
        memcpy(out->text[1], &text1, sizeof(text1));
        memcpy(out->rest, &rest, sizeof(rest));
        memcpy(out->lead, &lead, sizeof(lead));
        memcpy(out->whole, &whole, sizeof(whole));
        memcpy(out->special, &special, sizeof(special));
}

TARGET static size_t row_avx512(const float *values, size_t n, char *out)
{
        char *at = out;
        size_t done = 0;
        for (Block block; n - done >= ROW_LANES; done += ROW_LANES) {
                block_avx512(values + done, &block);
                for (int i = 0; i < ROW_LANES; i++)
                        at = put(&block, i, values[done + (size_t)i], at);
        }
        for (; done < n; done++)
                at = put_one(values[done], at);
        return (size_t)(at - out);
}

size_t number_print_f32_row(const float *values, size_t n, char *out)
{
        return n < ROW_LANES || isa_level() < ISA_AVX512 ? portable_row(values, n, out)
                                                         : row_avx512(values, n, out);
}
#else
size_t number_print_f32_row(const float *values, size_t n, char *out)
{
        return portable_row(values, n, out);
}
#endif
