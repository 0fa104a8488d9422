// SPDX-License-Identifier: Apache-2.0
// dtype.c: the dtype table, PyTorch's promotion lattice, and single elements read and written as
// double or int64.
#include "core/tensor/dtype.h"

#include <string.h>
#include "core/base/memory.h"
#include "core/tensor/convert.h"
#include "core/tensor/half.h"

const DtypeInfo dtype_info[DTYPE_COUNT] = {
#define DTYPE_ROW(NAME, torch, shorter, n_bytes, KIND, safe, npy, open)                                      \
        [DTYPE_##NAME] = { .name = torch,                                                                    \
                           .torch_name = "torch." torch,                                                     \
                           .short_name = shorter,                                                            \
                           .safetensors = safe,                                                              \
                           .numpy = npy,                                                                     \
                           .oip = open,                                                                      \
                           .bytes = n_bytes,                                                                 \
                           .kind = DTYPE_KIND_##KIND },
        DTYPE_TABLE(DTYPE_ROW)
#undef DTYPE_ROW
};

static const struct {
        const char *name;
        Dtype dtype;
} aliases[] = {
        { "float", DTYPE_F32 }, { "double", DTYPE_F64 }, { "half", DTYPE_F16 },   { "long", DTYPE_I64 },
        { "int", DTYPE_I32 },   { "short", DTYPE_I16 },  { "cfloat", DTYPE_C64 }, { "cdouble", DTYPE_C128 },
};

Dtype dtype_from_name(const char *name)
{
        if (strncmp(name, "torch.", 6) == 0)
                name += 6;
        for (int i = 0; i < DTYPE_COUNT; i++) {
                if (strcmp(name, dtype_info[i].name) == 0)
                        return (Dtype)i;
        }
        for (size_t i = 0; i < ARRAY_LENGTH(aliases); i++) {
                if (strcmp(name, aliases[i].name) == 0)
                        return aliases[i].dtype;
        }
        return DTYPE_NONE;
}

Dtype dtype_from_oip(const char *name)
{
        for (int i = 0; i < DTYPE_COUNT; i++)
                if (dtype_info[i].oip != NULL && strcmp(name, dtype_info[i].oip) == 0)
                        return (Dtype)i;
        return DTYPE_NONE;
}

const char *dtype_words(Dtype dtype)
{
        static const char *const words[DTYPE_COUNT] = {
                [DTYPE_BOOL] = "Bool",
                [DTYPE_U8] = "Byte",
                [DTYPE_I8] = "Char",
                [DTYPE_I16] = "Short",
                [DTYPE_I32] = "Int",
                [DTYPE_I64] = "Long",
                [DTYPE_U16] = "UInt16",
                [DTYPE_U32] = "UInt32",
                [DTYPE_U64] = "UInt64",
                [DTYPE_F16] = "Half",
                [DTYPE_BF16] = "BFloat16",
                [DTYPE_F32] = "Float",
                [DTYPE_F64] = "Double",
                [DTYPE_C64] = "ComplexFloat",
                [DTYPE_C128] = "ComplexDouble",
                [DTYPE_F8E4M3FN] = "Float8_e4m3fn",
                [DTYPE_F8E5M2] = "Float8_e5m2",
                [DTYPE_F8E4M3FNUZ] = "Float8_e4m3fnuz",
                [DTYPE_F8E5M2FNUZ] = "Float8_e5m2fnuz",
                [DTYPE_F8E8M0FNU] = "Float8_e8m0fnu",
        };
        return dtype < DTYPE_COUNT ? words[dtype] : "Undefined";
}

static bool is_uint(Dtype dtype)
{
        return (DTYPES_UINTS >> dtype & 1) != 0;
}

static Dtype promote_floats(Dtype a, Dtype b)
{
        if (a == b)
                return a;
        if (a == DTYPE_F64 || b == DTYPE_F64)
                return DTYPE_F64;
        return DTYPE_F32; // f16 with bf16, or either with f32
}

static Dtype promote_ints(Dtype a, Dtype b)
{
        if (a == DTYPE_U8 && b == DTYPE_I8)
                return DTYPE_I16;
        // u8 fits every larger signed type; otherwise the wider one wins, and enum order is order
        // of width.
        return MAX(a, b);
}

Status dtype_promote(Dtype a, Dtype b, Dtype *out)
{
        if (a != b && (dtype_is_float8(a) || dtype_is_float8(b)))
                return fail(STATUS_DTYPE,
                            "Promotion for Float8 Types is not supported, attempted to promote %s and %s",
                            dtype_words(a), dtype_words(b));
        if (a > b) {
                Dtype swap = a;
                a = b;
                b = swap;
        }
        DtypeKind kind_a = dtype_info[a].kind, kind_b = dtype_info[b].kind;
        if (a == b) {
                *out = a;
        } else if ((is_uint(a) || is_uint(b)) && kind_a != DTYPE_KIND_FLOAT && kind_b != DTYPE_KIND_FLOAT) {
                return fail(STATUS_DTYPE,
                            "Promotion for uint16, uint32, uint64 types is not supported, attempted to "
                            "promote %s and %s",
                            dtype_words(a), dtype_words(b));
        } else if (kind_a == DTYPE_KIND_BOOL) {
                *out = b;
        } else if (kind_b == DTYPE_KIND_COMPLEX) {
                *out = a == DTYPE_F64 ? DTYPE_C128 : b;
        } else if (kind_a != kind_b) {
                *out = kind_a == DTYPE_KIND_FLOAT ? a : b;
        } else if (kind_a == DTYPE_KIND_FLOAT) {
                *out = promote_floats(a, b);
        } else {
                *out = promote_ints(a, b);
        }
        return STATUS_OK;
}

bool dtype_can_cast(Dtype from, Dtype to)
{
        return dtype_info[from].kind <= dtype_info[to].kind;
}

float f16_to_f32(uint16_t bits)
{
        return half_to_float(bits);
}

uint16_t f32_to_f16(float value)
{
        return float_to_half(value);
}

uint16_t f32_to_bf16(float value)
{
        return float_to_bfloat(value);
}

double element_as_f64(Dtype dtype, const void *element)
{
        double value;
        TileClass class = dtype == DTYPE_U64 ? TILE_U64 : TILE_F64;
        if (class == TILE_U64) {
                uint64_t bits;
                memcpy(&bits, element, sizeof(bits));
                return (double)bits;
        }
        tile_loader(class, dtype)(element, 0, 1, &value);
        return value;
}

int64_t element_as_i64(Dtype dtype, const void *element)
{
        int64_t value;
        tile_loader(TILE_I64, dtype)(element, 0, 1, &value);
        return value;
}

void element_from_f64(Dtype dtype, void *element, double value)
{
        tile_storer(TILE_F64, dtype)(&value, 1, element, 0);
}

void element_from_i64(Dtype dtype, void *element, int64_t value)
{
        tile_storer(TILE_I64, dtype)(&value, 1, element, 0);
}
