// SPDX-License-Identifier: Apache-2.0
// promote.c: torch.result_type. Operands fall into three classes: tensors with dimensions, 0-dim
// tensors, Python numbers. A lower class only matters when its kind (bool < integer < float) is
// above that of the classes over it. A float over a complex number of a lower class becomes complex
// with parts of its own width.
#include <inttypes.h>
#include <math.h>
#include "core/ops/pointwise.h"

static Status merge(Dtype *into, Dtype dtype)
{
        if (*into == DTYPE_NONE) {
                *into = dtype;
                return STATUS_OK;
        }
        return dtype_promote(*into, dtype, into);
}

// A Python number counts as the default dtype of its kind.
static Dtype number_dtype(Dtype dtype)
{
        return dtype_is_float(dtype)                          ? DTYPE_F32
               : dtype_info[dtype].kind == DTYPE_KIND_COMPLEX ? DTYPE_C64
                                                              : dtype;
}

Status promotion_add(Promotion *promotion, const TensorMeta *meta)
{
        if (meta->wrapped)
                return merge(&promotion->numbers, number_dtype(meta->dtype));
        return merge(meta->rank > 0 ? &promotion->tensors : &promotion->zero_dims, meta->dtype);
}

Status promotion_add_number(Promotion *promotion, Value number)
{
        Dtype dtype = number.kind == VALUE_BOOL    ? DTYPE_BOOL
                      : number.kind == VALUE_INT   ? DTYPE_I64
                      : number.kind == VALUE_FLOAT ? DTYPE_F32
                                                   : DTYPE_C64;
        return merge(&promotion->numbers, dtype);
}

static Status combine(Dtype higher, Dtype lower, Dtype *out)
{
        if (higher == DTYPE_NONE || lower == DTYPE_NONE) {
                *out = higher == DTYPE_NONE ? lower : higher;
                return STATUS_OK;
        }
        DtypeKind kind_higher = dtype_info[higher].kind, kind_lower = dtype_info[lower].kind;
        if (kind_higher == DTYPE_KIND_FLOAT && kind_lower == DTYPE_KIND_COMPLEX) {
                if (higher == DTYPE_F16)
                        return fail(STATUS_DTYPE,
                                    "float16 with a complex number would be complex32, which is "
                                    "not supported here");
                *out = higher == DTYPE_F64 ? DTYPE_C128 : DTYPE_C64;
                return STATUS_OK;
        }
        if (kind_higher >= kind_lower && !(kind_higher == DTYPE_KIND_BOOL)) {
                *out = higher;
                return STATUS_OK;
        }
        return dtype_promote(higher, lower, out);
}

Status promotion_result(const Promotion *promotion, Dtype *out_dtype)
{
        Dtype low, dtype;
        TRY(combine(promotion->zero_dims, promotion->numbers, &low));
        TRY(combine(promotion->tensors, low, &dtype));
        *out_dtype = dtype;
        return STATUS_OK;
}

const char *dtype_c_name(Dtype dtype)
{
        static const char *const names[DTYPE_COUNT] = {
                [DTYPE_BOOL] = "bool",
                [DTYPE_U8] = "unsigned char",
                [DTYPE_I8] = "signed char",
                [DTYPE_I16] = "short int",
                [DTYPE_I32] = "int",
                [DTYPE_I64] = "long int",
                [DTYPE_U16] = "unsigned short",
                [DTYPE_U32] = "unsigned int",
                [DTYPE_U64] = "unsigned long",
                [DTYPE_F16] = "c10::Half",
                [DTYPE_BF16] = "c10::BFloat16",
                [DTYPE_F32] = "float",
                [DTYPE_F64] = "double",
                [DTYPE_C64] = "c10::complex<float>",
                [DTYPE_C128] = "c10::complex<double>",
                [DTYPE_F8E4M3FN] = "c10::Float8_e4m3fn",
                [DTYPE_F8E5M2] = "c10::Float8_e5m2",
                [DTYPE_F8E4M3FNUZ] = "c10::Float8_e4m3fnuz",
                [DTYPE_F8E5M2FNUZ] = "c10::Float8_e5m2fnuz",
                [DTYPE_F8E8M0FNU] = "c10::Float8_e8m0fnu",
        };
        return names[dtype];
}

static bool is_unsigned(Dtype dtype)
{
        return dtype == DTYPE_U8 || (DTYPES_UINTS >> dtype & 1) != 0;
}

double dtype_largest(Dtype dtype)
{
        switch (dtype) {
        case DTYPE_F16:
                return 65504.0;
        case DTYPE_BF16:
                return 0x1.fep127;
        case DTYPE_F32:
                return 0x1.fffffep127;
        case DTYPE_F64:
                return 0x1.fffffffffffffp1023;
        case DTYPE_F8E4M3FN:
                return 448;
        case DTYPE_F8E5M2:
        case DTYPE_F8E5M2FNUZ:
                return 57344;
        case DTYPE_F8E4M3FNUZ:
                return 240;
        case DTYPE_F8E8M0FNU:
                return 0x1p127;
        default:
                return ldexp(1.0, 8 * dtype_info[dtype].bytes - !is_unsigned(dtype)) -
                       (dtype_info[dtype].bytes < 8);
        }
}

Status number_check_fits(Value number, Dtype dtype)
{
        static const char *const names[DTYPE_COUNT] = {
                [DTYPE_U8] = "uint8_t",
                [DTYPE_U16] = "uint16_t",
                [DTYPE_U32] = "uint32_t",
                [DTYPE_U64] = "uint64_t",
                [DTYPE_I8] = "int8_t",
                [DTYPE_I16] = "int16_t",
                [DTYPE_I32] = "int",
                [DTYPE_I64] = "int64_t",
                [DTYPE_F16] = "c10::Half",
                [DTYPE_BF16] = "c10::BFloat16",
                [DTYPE_F32] = "float",
                [DTYPE_F64] = "double",
                [DTYPE_F8E4M3FN] = "c10::Float8_e4m3fn",
                [DTYPE_F8E5M2] = "c10::Float8_e5m2",
                [DTYPE_F8E4M3FNUZ] = "c10::Float8_e4m3fnuz",
                [DTYPE_F8E5M2FNUZ] = "c10::Float8_e5m2fnuz",
                [DTYPE_F8E8M0FNU] = "c10::Float8_e8m0fnu",
        };
        if (names[dtype] == NULL || number.kind == VALUE_BOOL)
                return STATUS_OK;
        if (number.kind == VALUE_COMPLEX) {
                if (number.c.im != 0)
                        return fail(STATUS_VALUE, "value cannot be converted to type %s without overflow",
                                    names[dtype]);
                number = value_float(number.c.re);
        }
        bool is_float = dtype_info[dtype].kind == DTYPE_KIND_FLOAT;
        double value = number.kind == VALUE_FLOAT ? number.f : (double)number.i, max = dtype_largest(dtype);
        // Negative integers may wrap into unsigned dtypes.
        double min = is_float || (is_unsigned(dtype) && number.kind == VALUE_INT) ? -max
                     : is_unsigned(dtype)                                         ? 0
                     : dtype == DTYPE_I64                                         ? -max
                                                                                  : -max - 1;
        // int64's largest value is 2.0**63 as a double, which PyTorch accepts
        bool fits = value >= min && value <= max;
        if (dtype == DTYPE_F8E8M0FNU) // powers of two: the smallest is 2^-127
                fits &= value >= 0x1p-127;
        if (is_float)
                fits |= isnan(value) || (isinf(value) && (!dtype_is_float8(dtype) || dtype == DTYPE_F8E5M2));
        if (!fits)
                return fail(STATUS_VALUE, "value cannot be converted to type %s without overflow",
                            names[dtype]);
        return STATUS_OK;
}
