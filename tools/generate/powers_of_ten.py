#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes core/base/number_powers.def: the 128 leading bits of every power of ten that a double can
# meet, cut off (never rounded up).
# Usage: python3 tools/generate/powers_of_ten.py > core/base/number_powers.def
FIRST, LAST = -342, 324


def leading_bits(exponent):
    """floor(10**exponent * 2**s) with s such that 2**127 <= result < 2**128."""
    if exponent >= 0:
        value = 10**exponent
        shift = 128 - value.bit_length()
        return value << shift if shift >= 0 else value >> -shift
    divisor = 10**-exponent
    quotient = (1 << (divisor.bit_length() + 127)) // divisor
    return quotient if quotient < 1 << 128 else quotient >> 1


def main():
    # The C sources take exponents of two from these products; prove them here for every exponent in use.
    for exponent in range(FIRST, LAST + 1):
        power = 10**exponent if exponent >= 0 else 10**-exponent
        log2 = power.bit_length() - 1 if exponent >= 0 else -power.bit_length()
        if exponent == 0:
            log2 = 0
        assert exponent * 1741647 >> 19 == log2, exponent
    for binary in range(-1100, 1100):
        two = 2**abs(binary)
        tens = binary * 1262611 >> 22
        holds = 10**tens <= two < 10**(tens + 1) if binary >= 0 else 10**-tens >= two > 10**-(tens + 1)
        assert holds, binary
        tens = binary * 1262611 - 524031 >> 22  # of 3/4 * 2**binary
        top, bottom = (3 * two, 4) if binary >= 0 else (3, 4 * two)
        low = (10**tens * bottom <= top) if tens >= 0 else (bottom <= top * 10**-tens)
        high = (top < 10**(tens + 1) * bottom) if tens + 1 >= 0 else (top * 10**-(tens + 1) < bottom)
        assert low and high, binary
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Made by tools/generate/powers_of_ten.py: POWER(high, low) for 10^%d to 10^%d, "
          "the 128 leading bits, cut off." % (FIRST, LAST))
    for exponent in range(FIRST, LAST + 1):
        bits = leading_bits(exponent)
        assert bits.bit_length() == 128
        print("POWER(0x%016x, 0x%016x)" % (bits >> 64, bits & (1 << 64) - 1))


if __name__ == "__main__":
    main()
