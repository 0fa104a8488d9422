// SPDX-License-Identifier: Apache-2.0
// dtypes: one table (DTYPE_TABLE) for names, sizes and kinds; promotion as torch.result_type has
// it; conversions of single elements.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

// DTYPE(NAME, torch name, short name of print_readable, bytes, kind, safetensors name, numpy descr,
//       datatype of the Open Inference Protocol)
#define DTYPE_TABLE(DTYPE)                                                                                   \
        DTYPE(BOOL, "bool", "b8", 1, BOOL, "BOOL", "|b1", "BOOL")                                            \
        DTYPE(U8, "uint8", "u8", 1, INT, "U8", "|u1", "UINT8")                                               \
        DTYPE(I8, "int8", "i8", 1, INT, "I8", "|i1", "INT8")                                                 \
        DTYPE(I16, "int16", "i16", 2, INT, "I16", "<i2", "INT16")                                            \
        DTYPE(I32, "int32", "i32", 4, INT, "I32", "<i4", "INT32")                                            \
        DTYPE(I64, "int64", "i64", 8, INT, "I64", "<i8", "INT64")                                            \
        DTYPE(U16, "uint16", "u16", 2, INT, "U16", "<u2", "UINT16")                                          \
        DTYPE(U32, "uint32", "u32", 4, INT, "U32", "<u4", "UINT32")                                          \
        DTYPE(U64, "uint64", "u64", 8, INT, "U64", "<u8", "UINT64")                                          \
        DTYPE(F16, "float16", "f16", 2, FLOAT, "F16", "<f2", "FP16")                                         \
        DTYPE(BF16, "bfloat16", "bf16", 2, FLOAT, "BF16", NULL, "BF16")                                      \
        DTYPE(F32, "float32", "f32", 4, FLOAT, "F32", "<f4", "FP32")                                         \
        DTYPE(F64, "float64", "f64", 8, FLOAT, "F64", "<f8", "FP64")                                         \
        DTYPE(C64, "complex64", "c64", 8, COMPLEX, "C64", "<c8", NULL)                                       \
        DTYPE(C128, "complex128", "c128", 16, COMPLEX, NULL, "<c16", NULL)                                   \
        DTYPE(F8E4M3FN, "float8_e4m3fn", "f8e4m3fn", 1, FLOAT, "F8_E4M3", NULL, NULL)                        \
        DTYPE(F8E5M2, "float8_e5m2", "f8e5m2", 1, FLOAT, "F8_E5M2", NULL, NULL)                              \
        DTYPE(F8E4M3FNUZ, "float8_e4m3fnuz", "f8e4m3fnuz", 1, FLOAT, "F8_E4M3FNUZ", NULL, NULL)              \
        DTYPE(F8E5M2FNUZ, "float8_e5m2fnuz", "f8e5m2fnuz", 1, FLOAT, "F8_E5M2FNUZ", NULL, NULL)              \
        DTYPE(F8E8M0FNU, "float8_e8m0fnu", "f8e8m0fnu", 1, FLOAT, "F8_E8M0", NULL, NULL)

typedef enum Dtype {
#define DTYPE_ENUM(NAME, ...) DTYPE_##NAME,
        DTYPE_TABLE(DTYPE_ENUM)
#undef DTYPE_ENUM
                DTYPE_COUNT,
        DTYPE_NONE = DTYPE_COUNT // "not given"
} Dtype;

typedef enum DtypeKind { DTYPE_KIND_BOOL, DTYPE_KIND_INT, DTYPE_KIND_FLOAT, DTYPE_KIND_COMPLEX } DtypeKind;

typedef struct DtypeInfo {
        const char *name;        // "float32"
        const char *torch_name;  // "torch.float32"
        const char *short_name;  // "f32"
        const char *safetensors; // NULL: not storable
        const char *numpy;       // NULL: not storable
        const char *oip;         // datatype of the Open Inference Protocol; NULL: none
        uint8_t bytes;
        DtypeKind kind;
} DtypeInfo;
extern const DtypeInfo dtype_info[DTYPE_COUNT];

typedef uint32_t DtypeSet; // bit per Dtype
#define DTYPE_BIT(dtype) ((DtypeSet)1 << (dtype))
enum {
        DTYPES_BOOL = 1u << DTYPE_BOOL,
        DTYPES_INTS = 1u << DTYPE_U8 | 1u << DTYPE_I8 | 1u << DTYPE_I16 | 1u << DTYPE_I32 | 1u << DTYPE_I64,
        DTYPES_UINTS = 1u << DTYPE_U16 | 1u << DTYPE_U32 | 1u << DTYPE_U64, // limited support, as in PyTorch
        DTYPES_HALFS = 1u << DTYPE_F16 | 1u << DTYPE_BF16,
        DTYPES_FLOATS = DTYPES_HALFS | 1u << DTYPE_F32 | 1u << DTYPE_F64,
        DTYPES_COMPLEX = 1u << DTYPE_C64 | 1u << DTYPE_C128,
        DTYPES_REAL = DTYPES_BOOL | DTYPES_INTS | DTYPES_FLOATS, // what most operators take
        // stored, moved and cast, hardly computed with
        DTYPES_FLOAT8 = 1u << DTYPE_F8E4M3FN | 1u << DTYPE_F8E5M2 | 1u << DTYPE_F8E4M3FNUZ |
                        1u << DTYPE_F8E5M2FNUZ | 1u << DTYPE_F8E8M0FNU,
        DTYPES_ANY = (1u << DTYPE_COUNT) - 1,
        DTYPES_ALL = DTYPES_ANY & ~DTYPES_FLOAT8,
};

static inline bool dtype_is_float(Dtype dtype) // one that is computed with: not float8
{
        return (DTYPES_FLOATS >> dtype & 1) != 0;
}
static inline bool dtype_is_float8(Dtype dtype)
{
        return (DTYPES_FLOAT8 >> dtype & 1) != 0;
}
static inline bool dtype_is_int(Dtype dtype) // bool excluded
{
        return ((DTYPES_INTS | DTYPES_UINTS) >> dtype & 1) != 0;
}

// "float32", "torch.float32", "float", "half", "double", "long" ...; DTYPE_NONE if unknown.
Dtype dtype_from_name(const char *name);
// By the Open Inference Protocol's name, "FP32"; DTYPE_NONE if unknown.
Dtype dtype_from_oip(const char *name);
// "Float", "Long", "Bool" ...: how PyTorch's messages spell dtypes; "Undefined" for DTYPE_NONE.
// Static.
const char *dtype_words(Dtype dtype);
// torch.promote_types(a, b); fails with STATUS_DTYPE for the pairs PyTorch refuses (uint16/32/64
// with anything but floats).
Status dtype_promote(Dtype a, Dtype b, Dtype *out);
// torch.can_cast(from, to): kinds may not go down.
bool dtype_can_cast(Dtype from, Dtype to);

// Half conversions, round to nearest even.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
static inline float bf16_to_f32(uint16_t bits)
{
        union {
                uint32_t u;
                float f;
        } pun = { .u = (uint32_t)bits << 16 };
        return pun.f;
}
uint16_t f32_to_bf16(float value);

// Reads one element of any real dtype as double or int64, or writes one, with PyTorch's cast rules:
// float to integer truncates towards zero, integers wrap, anything but 0 is true.
double element_as_f64(Dtype dtype, const void *element);
int64_t element_as_i64(Dtype dtype, const void *element);
void element_from_f64(Dtype dtype, void *element, double value);
void element_from_i64(Dtype dtype, void *element, int64_t value);
