// SPDX-License-Identifier: Apache-2.0
// Bits of half floats, inline so that loops over them vectorise. Round to nearest even; NaN stays
// NaN and keeps its sign, as it does in a copy of its bits.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "core/tensor/dtype.h"

typedef union FloatBits {
        uint32_t u;
        float f;
} FloatBits;

static inline float half_to_float(uint16_t bits)
{
        uint32_t magnitude = ((uint32_t)bits & 0x7fff) << 13;
        uint32_t exponent = magnitude & 0x0f800000;
        FloatBits normal = { .u = magnitude + (112u << 23) };
        FloatBits special = { .u = magnitude + (224u << 23) };
        // Subnormals: let the float unit normalise (m + 2^-14) - 2^-14.
        FloatBits small = { .u = magnitude + (113u << 23) };
        FloatBits base = { .u = 113u << 23 };
        small.f -= base.f;
        uint32_t value = exponent == 0x0f800000 ? special.u : exponent == 0 ? small.u : normal.u;
        FloatBits out = { .u = value | ((uint32_t)bits & 0x8000) << 16 };
        return out.f;
}

static inline uint16_t float_to_half(float value)
{
        FloatBits in = { .f = value };
        uint32_t sign = in.u >> 16 & 0x8000;
        uint32_t x = in.u & 0x7fffffff;
        FloatBits magnitude = { .u = x };
        // Below 2^-14 the result is a multiple of 2^-24, which is the last place of numbers in
        // [0.5, 1).
        FloatBits small = { .f = magnitude.f + 0.5f };
        uint32_t subnormal = small.u - 0x3f000000;
        uint32_t normal = (x - (112u << 23) + 0xfff + (x >> 13 & 1)) >> 13;
        uint32_t special = x > 0x7f800000 ? 0x7e00 : 0x7c00;
        uint32_t out = x < 0x38800000 ? subnormal : x >= 0x47800000 ? special : normal;
        return (uint16_t)(out | sign);
}

static inline float bfloat_to_float(uint16_t bits)
{
        FloatBits out = { .u = (uint32_t)bits << 16 };
        return out.f;
}

static inline uint16_t float_to_bfloat(float value)
{
        FloatBits in = { .f = value };
        uint32_t rounded = (in.u + 0x7fff + (in.u >> 16 & 1)) >> 16;
        uint32_t nan = (in.u >> 16 & 0x8000) | 0x7fc0;
        return (uint16_t)((in.u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

// `value` rounded to DTYPE_F16 or DTYPE_BF16 and back; other types leave it as it is.
static inline float rounded_to_half(float value, Dtype half)
{
        return half == DTYPE_F16    ? half_to_float(float_to_half(value))
               : half == DTYPE_BF16 ? bfloat_to_float(float_to_bfloat(value))
                                    : value;
}

// ---- eight bits: what differs between the types of float8 with a sign ----
typedef struct Float8 {
        uint32_t mantissa, bias; // bits of the mantissa, exponent of 1.0
        uint32_t limit;          // magnitudes from these bits of a float on give the code `over`
        uint8_t over, nan;
        bool has_infinity;     // it is `over`
        bool no_negative_zero; // its code is NaN ("fnuz")
} Float8;
// PyTorch 2.13 gives the largest number for what is too large for e4m3fn, infinity included.
static const Float8 float8_e4m3fn = { 3, 7, 0x43e80000, 0x7e, 0x7f, false, false };
static const Float8 float8_e5m2 = { 2, 15, 143u << 23, 0x7c, 0x7f, true, false };
static const Float8 float8_e4m3fnuz = { 3, 8, 135u << 23, 0x80, 0x80, false, true };
static const Float8 float8_e5m2fnuz = { 2, 16, 143u << 23, 0x80, 0x80, false, true };

static inline float float8_to_float(const Float8 *type, uint8_t code)
{
        uint32_t magnitude = code & 0x7fu, exponent = magnitude >> type->mantissa;
        FloatBits nan = { .u = 0x7fc00000 };
        if (type->no_negative_zero && code == type->nan) // the only one
                return nan.f;
        nan.u |= (uint32_t)(code & 0x80) << 24;
        if (!type->no_negative_zero && magnitude > type->over)
                return nan.f;
        FloatBits out = { .u = (magnitude << (23 - type->mantissa)) + ((127 - type->bias) << 23) };
        if (exponent == 0) { // a multiple of the smallest number
                FloatBits unit = { .u = (128 - type->bias - type->mantissa) << 23 };
                out.f = (float)magnitude * unit.f;
        } else if (type->has_infinity && magnitude == type->over) {
                out.u = 0x7f800000;
        }
        out.u |= (uint32_t)(code & 0x80) << 24;
        return out.f;
}

static inline uint8_t float_to_float8(const Float8 *type, float value)
{
        FloatBits in = { .f = value };
        const uint32_t sign = in.u >> 24 & 0x80, x = in.u & 0x7fffffff, shift = 23 - type->mantissa;
        uint32_t code;
        if (x >= type->limit) {
                if (type->no_negative_zero)
                        return type->nan;
                code = x > 0x7f800000 ? type->nan : type->over;
        } else if (x < (128 - type->bias) << 23) {
                // The last place of numbers at `base` is the smallest number.
                FloatBits base = { .u = (128 - type->bias + shift) << 23 }, sum = { .u = x };
                sum.f += base.f;
                code = sum.u - base.u;
        } else {
                code = (x - ((127 - type->bias) << 23) + ((1u << (shift - 1)) - 1) + (x >> shift & 1)) >>
                       shift;
        }
        return (uint8_t)(type->no_negative_zero && code == 0 ? 0 : code | sign);
}

// Powers of two: the exponent of a float.
static inline float e8m0_to_float(uint8_t code)
{
        FloatBits out = { .u = code == 0 ? 0x00400000 : code == 255 ? 0x7fc00000 : (uint32_t)code << 23 };
        return out.f;
}

static inline uint8_t float_to_e8m0(float value)
{
        FloatBits in = { .f = value };
        const uint32_t exponent = in.u >> 23 & 0xff, rest = in.u & 0x7fffff;
        if (exponent == 255)
                return 255;
        return (uint8_t)(exponent + (rest > 0x400000 || (rest == 0x400000 && exponent > 0)));
}

// Casts of floats to integers as x86 has them and PyTorch shows them: towards zero; NaN and what
// does not fit give the smallest integer.
static inline int32_t double_to_i32(double value)
{
        return value > -2147483649.0 && value < 2147483648.0 ? (int32_t)value : INT32_MIN;
}
static inline int32_t float_to_i32(float value)
{
        return value >= -2147483648.0f && value < 2147483648.0f ? (int32_t)value : INT32_MIN;
}
static inline int64_t double_to_i64(double value)
{
        return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (int64_t)value : INT64_MIN;
}
static inline int64_t float_to_i64(float value)
{
        return value >= -9223372036854775808.0f && value < 9223372036854775808.0f ? (int64_t)value
                                                                                  : INT64_MIN;
}
static inline uint64_t double_to_u64(double value)
{
        uint64_t high = (uint64_t)1 << 63;
        return value >= 9223372036854775808.0 ? (uint64_t)double_to_i64(value - 9223372036854775808.0) ^ high
                                              : (uint64_t)double_to_i64(value);
}
