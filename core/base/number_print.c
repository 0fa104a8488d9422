// SPDX-License-Identifier: Apache-2.0
// number_print.c: the shortest decimal text of a float, by the method of Giulietti, "The Schubfach
// way to render doubles" (2020). The value c * 2^q and the ends of its rounding interval are scaled
// by a power of ten so that the interval is between 1 and 10 units wide; then at most one multiple
// of ten lies inside (it is shorter, take it), else the unit nearest to the value. The scaled
// numbers are kept to two fractional bits, the last one sticky, which the paper proves enough with
// the power of ten rounded up. Digits are then spread eight at a time in one word and laid out
// around the point.
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/base/number_powers.h"
#include "core/base/number_scan.h"

// digits * 10^exponent
typedef struct Decimal {
        uint64_t digits;
        int exponent;
} Decimal;

// floor(log10(2^q)) and floor(log10(3/4 * 2^q)); tools/generate/powers_of_ten.py proves both.
static inline int log10_two(int q, bool three_quarters)
{
        return (q * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

// Chooses among the candidates around the scaled value. `low`, `value` and `high` are in quarters,
// the ends already moved inward where they are excluded. Which candidate wins is as good as random,
// so there are no branches.
static inline Decimal choose(uint64_t low, uint64_t value, uint64_t high, int k)
{
        uint64_t units = value / 4;
        uint64_t tens = units / 10 * 10;
        uint64_t tens_below = low <= 4 * tens, tens_above = 4 * tens + 40 <= high;
        uint64_t below = low <= 4 * units, above = 4 * units + 4 <= high;
        uint64_t nearest = value + (units & 1) > 4 * units + 2;
        uint64_t is_unit = 0 - (below ^ above), is_ten = 0 - (tens_below ^ tens_above);
        uint64_t unit = units + (nearest ^ ((nearest ^ above) & is_unit));
        return (Decimal){ unit ^ ((unit ^ (tens + 10 * tens_above)) & is_ten), k };
}

// c * power / 2^64 to whole quarters, sticky.
static inline uint64_t scale32(uint64_t power, uint64_t c)
{
        unsigned __int128 product = (unsigned __int128)power * c;
        return (uint64_t)(product >> 64) | ((uint64_t)product >> 32 > 1);
}

static inline uint64_t scale64(NumberPower power, uint64_t c)
{
        unsigned __int128 high =
                (unsigned __int128)power.high * c + (uint64_t)(((unsigned __int128)power.low * c) >> 64);
        return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static inline Decimal shortest32(uint32_t bits)
{
        // Readers use (float)strtod, which rounds twice. A run over all floats showed that this
        // changes the shortest text of just one of them.
        if (__builtin_expect((bits & 0x7fffffff) == 0x15ae43fd, 0))
                return (Decimal){ 70385307, -33 };
        uint32_t fraction = bits & 0x7fffff;
        int biased = (int)(bits >> 23 & 0xff);
        uint64_t c = biased == 0 ? fraction : fraction | 0x800000;
        int q = biased == 0 ? -149 : biased - 150;
        bool narrow = fraction == 0 && biased > 1; // the interval below a power of two is half as wide
        int k = log10_two(q, narrow);
        int shift = q + number_log2_power(-k) + 1;
        uint64_t power = number_powers[-k - NUMBER_POWER_MIN].high;
        if (-k < 0 || -k > 27)
                power++; // cut off in the table
        uint64_t odd = c & 1;
        uint64_t low = scale32(power, (4 * c - 2 + narrow) << shift) + odd;
        uint64_t value = scale32(power, (4 * c) << shift);
        uint64_t high = scale32(power, (4 * c + 2) << shift) - odd;
        return choose(low, value, high, k);
}

static inline Decimal shortest64(uint64_t bits)
{
        uint64_t fraction = bits & 0xfffffffffffffu;
        int biased = (int)(bits >> 52 & 0x7ff);
        uint64_t c = biased == 0 ? fraction : fraction | 1ull << 52;
        int q = biased == 0 ? -1074 : biased - 1075;
        bool narrow = fraction == 0 && biased > 1;
        int k = log10_two(q, narrow);
        int shift = q + number_log2_power(-k) + 1;
        NumberPower power = number_powers[-k - NUMBER_POWER_MIN];
        if (-k < 0 || -k > NUMBER_POWER_EXACT) {
                power.low++;
                power.high += power.low == 0;
        }
        uint64_t odd = c & 1;
        uint64_t low = scale64(power, (4 * c - 2 + narrow) << shift) + odd;
        uint64_t value = scale64(power, (4 * c) << shift);
        uint64_t high = scale64(power, (4 * c + 2) << shift) - odd;
        return choose(low, value, high, k);
}

// Eight decimal digits of high * 10000 + low, both < 10000, the first in the lowest byte. Each step
// splits all lanes at once: lane = lane / 100 + (lane % 100) << 16 is written lane << 16 - lane /
// 100 * ((100 << 16) - 1).
static inline uint64_t spread8(uint64_t high, uint64_t low)
{
        uint64_t fours = high | low << 32;
        uint64_t hundreds = (fours * 10486) >> 20 & 0x0000007f0000007fu;
        uint64_t twos = (fours << 16) - hundreds * ((100 << 16) - 1);
        uint64_t tens = (twos * 103) >> 10 & 0x000f000f000f000fu;
        return (twos << 8) - tens * ((10 << 8) - 1);
}

static inline void store8(char *out, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        memcpy(out, &word, sizeof(word));
}

// How many digits x != 0 has.
static inline int count_digits(uint64_t x)
{
        int guess = (64 - __builtin_clzll(x)) * 1233 >> 12;
        return guess + (x >= number_integer_powers[guess]);
}

// Digits of a number, left-aligned: 1 + 8 + 8, as values 0 to 9 in the bytes of words, the first in
// the lowest byte.
typedef struct Spread {
        uint64_t first, high, low;
        int n;     // digits that remain when zeros at the end are dropped
        int point; // exponent of the first digit
} Spread;

static const uint64_t zeros8 = 0x3030303030303030u;

// Widens to exactly 9 digits (floats) or 17 (doubles). What is not subnormal has at least 7 and 16
// by construction.
static inline uint64_t widen(Decimal *decimal, bool narrow)
{
        uint64_t digits = decimal->digits;
        const uint64_t least = narrow ? 1000000u : 1000000000000000u;
        while (__builtin_expect(digits < least, 0)) {
                digits *= 10;
                decimal->exponent--;
        }
        const uint64_t full = narrow ? 100000000u : 10000000000000000u;
        int n = (digits < full) + (digits < full / 10);
        decimal->exponent -= n;
        uint64_t ten = digits * 10, hundred = digits * 100;
        ten = digits < full ? ten : digits;
        return digits < full / 10 ? hundred : ten;
}

static inline Spread spread(Decimal decimal, bool narrow)
{
        uint64_t digits = widen(&decimal, narrow);
        Spread out = { 0 };
        out.point = decimal.exponent + (narrow ? 8 : 16);
        uint64_t upper = digits;
        if (!narrow) {
                upper = digits / 100000000;
                uint32_t lower = (uint32_t)(digits - upper * 100000000);
                out.low = spread8(lower / 10000, lower % 10000);
        }
        uint32_t nine = (uint32_t)upper, five = nine / 10000;
        out.first = nine / 100000000;
        out.high = spread8(five - (uint32_t)out.first * 10000, nine - five * 10000);
        if (out.low != 0)
                out.n = 17 - (__builtin_clzll(out.low) >> 3);
        else
                out.n = out.high != 0 ? 9 - (__builtin_clzll(out.high) >> 3) : 1;
        return out;
}

// The digits as text, zeros behind them up to 25 + 8.
static inline void store_digits(const Spread *number, char *out)
{
        out[0] = (char)('0' + number->first);
        store8(out + 1, number->high | zeros8);
        store8(out + 9, number->low | zeros8);
        store8(out + 17, zeros8);
        store8(out + 25, zeros8);
}

static size_t lay_out_exponent(const Spread *number, bool python, char *out)
{
        char *at = out;
        store_digits(number, out + 1);
        out[0] = out[1];
        out[1] = '.';
        at += number->n > 1 ? number->n + 1 : 1;
        *at++ = 'e';
        int point = number->point;
        if (point < 0)
                *at++ = '-';
        else if (python)
                *at++ = '+';
        unsigned size = (unsigned)(point < 0 ? -point : point);
        if (size >= 100)
                *at++ = (char)('0' + size / 100);
        if (size >= 10 || python)
                *at++ = (char)('0' + size / 10 % 10);
        *at++ = (char)('0' + size % 10);
        return (size_t)(at - out);
}

// Text with the point behind the eighth digit or later.
static size_t lay_out_large(const Spread *number, char *out)
{
        char digits[40];
        store_digits(number, digits);
        int whole = number->point + 1;
        memcpy(out, digits, 16);
        out[whole] = '.';
        memcpy(out + whole + 1, digits + whole, 16);
        return (size_t)whole + 1 + (size_t)MAX(number->n - whole, 1);
}

// Zeros in front, digits and point are put together in two words and stored at once. What is
// written behind the text stays within NUMBER_TEXT_MAX.
static inline size_t lay_out(const Spread *number, bool narrow, bool python, char *out)
{
        int point = number->point;
        if (__builtin_expect(point < -4 || point > 6, 0))
                return point < -4 || point > 15 ? lay_out_exponent(number, python, out)
                                                : lay_out_large(number, out);
        // zeros in front, without a branch: the sign of the exponent varies
        int lead = -point & (point >> 31);
        int whole = 1 + (point & ~(point >> 31));
        uint64_t left = number->first | number->high << 8;
        uint64_t right = (number->high >> 56) << 8 * lead | left >> 1 >> (63 - 8 * lead);
        left <<= 8 * lead;
        uint64_t mask = ~(uint64_t)0 << 8 * whole;
        right = right << 8 | (left & mask) >> 56;
        left = (left & ~mask) | (left & mask) << 8;
        store8(out, (left | zeros8) ^ (uint64_t)('0' ^ '.') << 8 * whole);
        store8(out + 8, right | zeros8);
        if (!narrow)
                store8(out + 10 + lead, number->low | zeros8);
        return (size_t)(MAX(lead + number->n, whole + 1) + 1);
}

static size_t print_special(double value, bool python, char *out)
{
        static const char *const names[2][3] = { { "NaN", "Infinity", "-Infinity" },
                                                 { "nan", "inf", "-inf" } };
        const char *name = names[python][isnan(value) ? 0 : value > 0 ? 1 : 2];
        size_t n = strlen(name);
        memcpy(out, name, n);
        return n;
}

static size_t print_zero(char *out)
{
        memcpy(out, "0.0", 3);
        return 3;
}

size_t number_print_f32(float value, char *out)
{
        uint32_t bits;
        memcpy(&bits, &value, sizeof(bits));
        if ((bits & 0x7f800000) == 0x7f800000)
                return print_special((double)value, false, out);
        size_t sign = bits >> 31;
        out[0] = '-';
        if ((bits & 0x7fffffff) == 0)
                return sign + print_zero(out + sign);
        Spread number = spread(shortest32(bits), true);
        return sign + lay_out(&number, true, false, out + sign);
}

static inline size_t print64(double value, bool python, char *out)
{
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        if ((bits >> 52 & 0x7ff) == 0x7ff)
                return print_special(value, python, out);
        size_t sign = bits >> 63;
        out[0] = '-';
        if (bits << 1 == 0)
                return sign + print_zero(out + sign);
        Spread number = spread(shortest64(bits), false);
        return sign + lay_out(&number, false, python, out + sign);
}

size_t number_print_f64(double value, char *out)
{
        return print64(value, false, out);
}

size_t number_print_python(double value, char *out)
{
        return print64(value, true, out);
}

size_t number_print_u64(uint64_t value, char *out)
{
        int n = value == 0 ? 1 : count_digits(value);
        for (int i = n - 1; i >= 0; i--) {
                out[i] = (char)('0' + value % 10);
                value /= 10;
        }
        return (size_t)n;
}

size_t number_print_i64(int64_t value, char *out)
{
        out[0] = '-';
        size_t sign = value < 0;
        return sign + number_print_u64(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, out + sign);
}
