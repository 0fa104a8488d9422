// SPDX-License-Identifier: Apache-2.0
// number_scan.c: decimal text to double, correctly rounded. Three steps; each gives the exact
// answer or leaves it undecided:
// 1. w <= 2^53 and |exponent| <= 22: one IEEE division or product of exact doubles (Clinger 1990).
// 2. w of 64 bits times 128 bits of the power of ten (the product of Eisel and Lemire 2020). The
//    table is truncated, so the true product lies in a known interval of two units. If both ends
//    round alike, that is the answer. A number of more than 19 digits lies between w and w + 1;
//    then both must agree.
// 3. Otherwise the number is within 2^-60 of the middle between two doubles. It is compared with
//    that middle in whole numbers (number_exact.c).
#include "core/base/number.h"

#include <math.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/base/number_exact.h"
#include "core/base/number_powers.h"
#include "core/base/number_scan.h"

typedef unsigned __int128 Wide;

const double number_exact_powers[23] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
const uint64_t number_integer_powers[20] = {
        1u,
        10u,
        100u,
        1000u,
        10000u,
        100000u,
        1000000u,
        10000000u,
        100000000u,
        1000000000u,
        10000000000u,
        100000000000u,
        1000000000000u,
        10000000000000u,
        100000000000000u,
        1000000000000000u,
        10000000000000000u,
        100000000000000000u,
        1000000000000000000u,
        10000000000000000000u,
};

const NumberPower number_powers[NUMBER_POWER_MAX - NUMBER_POWER_MIN + 1] = {
#define POWER(high, low) { high, low },
#include "core/base/number_powers.def"
#undef POWER
};

static double from_bits(uint64_t bits)
{
        double value;
        memcpy(&value, &bits, sizeof(value));
        return value;
}

// A double and its neighbourhood as whole numbers: the value lies in [half, half + 1) * 2^scale,
// where half >> 1 is the mantissa of the double below it.
typedef struct Neighbour {
        uint64_t half; // at most 54 bits
        int scale;     // of `half`
        int exponent;  // biased exponent of the double below; 0 for subnormal ones
        bool decided;  // `up` is known
        bool up;       // rounds to the double above
} Neighbour;

static double assemble(const Neighbour *at, bool up)
{
        uint64_t mantissa = (at->half >> 1) + up;
        // A mantissa that grew by a bit moves into the exponent field by itself; so does a
        // subnormal that became normal.
        uint64_t bits = at->exponent == 0 ? mantissa : ((uint64_t)(at->exponent - 1) << 52) + mantissa;
        return bits >= 0x7ffull << 52 ? __builtin_inf() : from_bits(bits);
}

// Places w * 10^e, w != 0. False: it is beyond the doubles, *out_beyond is 0 or inf.
static bool locate(uint64_t w, int64_t e, Neighbour *out, double *out_beyond)
{
        if (e < NUMBER_POWER_MIN || e > 308) {
                *out_beyond = e < 0 ? 0 : __builtin_inf();
                return false;
        }
        NumberPower power = number_powers[e - NUMBER_POWER_MIN];
        bool exact_power = e >= 0 && e <= NUMBER_POWER_EXACT;
        int zeros = __builtin_clzll(w);
        w <<= zeros;
        Wide low = (Wide)w * power.low;
        Wide product = (Wide)w * power.high + (uint64_t)(low >> 64);
        int top = (int)(product >> 127);
        int log2 = number_log2_power((int)e);
        int exponent = 63 + top + log2 - zeros; // of the value's leading bit
        int shift = 73 + top + (exponent < -1022 ? -1022 - exponent : 0);
        if (exponent > 1023 || shift >= 128) {
                *out_beyond = exponent > 1023 ? __builtin_inf() : 0;
                return false;
        }
        Wide rest_mask = ((Wide)1 << shift) - 1;
        Wide rest = product & rest_mask;
        out->half = (uint64_t)(product >> shift);
        out->scale = shift + log2 - 63 - zeros;
        out->exponent = exponent < -1022 ? 0 : exponent + 1023;
        if (exact_power) {
                bool tie = rest == 0 && (uint64_t)low == 0;
                out->decided = true;
                out->up = (out->half & 1) != 0 && (!tie || (out->half & 2) != 0);
        } else {
                // The true product is above `product` and below product + 2.
                out->decided = (out->half & 1) != 0 || rest < rest_mask - 1;
                out->up = (out->half & 1) != 0;
        }
        return true;
}

// The common case of locate(): an ordinary double decided by the upper half of the power alone,
// since no carry from the lower half can reach the bits that round. Nine bits lie between; they
// must be neither all ones nor all zeros (there a tie may hide).
static inline bool round_quick(uint64_t w, int64_t e, double *out_value)
{
        if (e < -290 || e > 285)
                return false;
        int zeros = __builtin_clzll(w);
        Wide product = (Wide)(w << zeros) * number_powers[e - NUMBER_POWER_MIN].high;
        uint64_t high = (uint64_t)(product >> 64);
        int top = (int)(high >> 63);
        if (((high + 1) & 0x1ff) <= 1)
                return false;
        uint64_t half = high >> (9 + top);
        uint64_t mantissa = (half + (half & 1)) >> 1;
        uint64_t biased = (uint64_t)(1023 + 63 + top + number_log2_power((int)e) - zeros);
        *out_value = from_bits(((biased - 1) << 52) + mantissa);
        return true;
}

bool number_from_decimal(uint64_t w, int64_t exponent, double *out_value)
{
        if (__builtin_expect(round_quick(w, exponent, out_value), 1))
                return true;
        Neighbour at;
        if (!locate(w, exponent, &at, out_value))
                return true;
        if (!at.decided)
                return false;
        *out_value = assemble(&at, at.up);
        return true;
}

// The significant digits of a number: `first` to `last` may hold the point; value = 0.ddd... *
// 10^point.
typedef struct Digits {
        const char *first, *last; // first nonzero digit, and behind the last digit
        int64_t n;                // digits in between
        int64_t exponent;         // of the last one
} Digits;

static double exact_value(const Digits *digits, const Neighbour *at)
{
        int order = number_compare_exact(digits->first, digits->last, digits->n, digits->exponent,
                                         at->half | 1, at->scale);
        return assemble(at, order > 0 || (order == 0 && (at->half & 2) != 0));
}

// Rounds a number that has more than 19 digits or lies near a middle.
static double round_digits(const Digits *digits)
{
        uint64_t w = 0;
        int64_t n = 0;
        const char *at = digits->first;
        for (; at < digits->last && n < 19; at++) {
                if (*at != '.') {
                        w = w * 10 + (uint64_t)(*at - '0');
                        n++;
                }
        }
        int64_t exponent = digits->exponent + digits->n - n;
        Neighbour low, high;
        double beyond, beyond_high;
        if (!locate(w, exponent, &low, &beyond)) {
                // The middle between 0 and the smallest double may lie between w and w + 1.
                if (digits->n > n && locate(w + 1, exponent, &high, &beyond_high))
                        return exact_value(digits, &high);
                return beyond;
        }
        if (digits->n > n) {
                // Rounding is monotonic: where both ends agree, all between them do.
                if (low.decided && locate(w + 1, exponent, &high, &beyond_high) && high.decided) {
                        double value = assemble(&low, low.up);
                        if (value == assemble(&high, high.up))
                                return value;
                }
        } else if (low.decided) {
                return assemble(&low, low.up);
        }
        return exact_value(digits, &low);
}

static inline bool is_digit(const char *at, const char *end)
{
        return at < end && (unsigned char)(*at - '0') < 10;
}

// The exponent part at `at` (on the 'e'). NULL when it has no digits. Saturates: no text has 10^15
// digits to make up for it.
static const char *scan_exponent(const char *at, const char *end, int64_t *out_exponent)
{
        at++;
        bool minus = at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+'))
                at++;
        if (!is_digit(at, end))
                return NULL;
        int64_t exponent = 0;
        for (; is_digit(at, end); at++) {
                if (exponent < 1000000000000000)
                        exponent = exponent * 10 + (*at - '0');
        }
        *out_exponent = minus ? -exponent : exponent;
        return at;
}

static bool fits_int(uint64_t w, bool negative, int64_t *out_int)
{
        if (w > (uint64_t)INT64_MAX + negative)
                return false;
        *out_int = negative ? (int64_t)(0 - w) : (int64_t)w;
        return true;
}

// Counts the significant digits between `start` and `last`, and rounds.
static double value_of_long(const char *start, const char *last, int64_t exponent)
{
        Digits digits = { .first = start, .last = last, .exponent = exponent };
        while (digits.first < last && (*digits.first == '0' || *digits.first == '.'))
                digits.first++;
        if (digits.first >= last)
                return 0;
        const char *point = memchr(digits.first, '.', (size_t)(last - digits.first));
        digits.n = last - digits.first - (point != NULL);
        return round_digits(&digits);
}

const char *number_scan(const char *text, const char *end, NumberKind *out_kind, int64_t *out_int,
                        double *out_double)
{
        const char *at = text;
        bool negative = at < end && *at == '-';
        at += negative;
        const char *start = at;
        if (!is_digit(at, end) || (*at == '0' && is_digit(at + 1, end)))
                return NULL;
        uint64_t w = 0; // wraps beyond 19 digits, then unused
        for (; is_digit(at, end); at++)
                w = w * 10 + (uint64_t)(*at - '0');
        int64_t n_digits = at - start;
        bool whole = true;
        int64_t exponent = 0;
        if (at < end && *at == '.') {
                const char *fraction = ++at;
                for (; is_digit(at, end); at++)
                        w = w * 10 + (uint64_t)(*at - '0');
                if (at == fraction)
                        return NULL;
                exponent = fraction - at;
                n_digits += at - fraction;
                whole = false;
        }
        const char *last = at;
        if (at < end && (*at | 0x20) == 'e') {
                int64_t power;
                at = scan_exponent(at, end, &power);
                if (at == NULL)
                        return NULL;
                exponent += power;
                whole = false;
        }
        double value;
        if (n_digits > 19 || exponent < -400 || exponent > 400 ||
            !number_finish(w, (int)exponent, false, &value))
                value = value_of_long(start, last, exponent);
        *out_double = negative ? -value : value;
        *out_kind = whole && n_digits <= 19 && fits_int(w, negative, out_int) ? NUMBER_INT : NUMBER_FLOAT;
        return at;
}

bool number_word(const char *text, size_t n, double *out_double)
{
        static const struct {
                const char *text;
                double value;
        } words[] = { { "NaN", (double)NAN },
                      { "Infinity", (double)INFINITY },
                      { "-Infinity", -(double)INFINITY } };
        for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
                if (strlen(words[i].text) == n && memcmp(text, words[i].text, n) == 0) {
                        *out_double = words[i].value;
                        return true;
                }
        return false;
}
