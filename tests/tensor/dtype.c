// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/base/memory.h"
#include "core/tensor/half.h"
#include "core/tensor/halves.h"
#include "core/tensor/tensor.h"

typedef struct PromoteRow {
        Dtype a, b, result;
        bool can_cast;
} PromoteRow;
static const PromoteRow promote_rows[] = {
#define PROMOTE(a, b, result, can) { DTYPE_##a, DTYPE_##b, DTYPE_##result, can },
#include "promotion.def"
#undef PROMOTE
};

Test(dtype, promotion_of_every_pair_is_pytorchs)
{
        cr_assert_eq(ARRAY_LENGTH(promote_rows), DTYPE_COUNT * DTYPE_COUNT);
        for (size_t i = 0; i < ARRAY_LENGTH(promote_rows); i++) {
                const PromoteRow *row = &promote_rows[i];
                Dtype result = DTYPE_NONE;
                Status status = dtype_promote(row->a, row->b, &result);
                cr_expect_eq(status, row->result == DTYPE_NONE ? STATUS_DTYPE : STATUS_OK, "%s, %s",
                             dtype_info[row->a].name, dtype_info[row->b].name);
                cr_expect_eq(result, row->result, "%s with %s", dtype_info[row->a].name,
                             dtype_info[row->b].name);
                cr_expect_eq(dtype_can_cast(row->a, row->b), row->can_cast, "%s to %s",
                             dtype_info[row->a].name, dtype_info[row->b].name);
        }
}

Test(dtype, every_name_and_alias_is_found_with_and_without_torch)
{
        for (int i = 0; i < DTYPE_COUNT; i++) {
                cr_expect_eq(dtype_from_name(dtype_info[i].name), (Dtype)i);
                cr_expect_eq(dtype_from_name(dtype_info[i].torch_name), (Dtype)i);
        }
        cr_expect_eq(dtype_from_name("float"), DTYPE_F32);
        cr_expect_eq(dtype_from_name("torch.half"), DTYPE_F16);
        cr_expect_eq(dtype_from_name("long"), DTYPE_I64);
        cr_expect_eq(dtype_from_name("float31"), DTYPE_NONE);
        cr_expect_eq(dtype_from_name(""), DTYPE_NONE);
        cr_expect_eq(dtype_from_name("torch."), DTYPE_NONE);
}

typedef struct CastRow {
        Dtype from, to;
        int n;
        const char *in, *out;
} CastRow;
static const CastRow cast_rows[] = {
#define CAST(from, to, n, in, out) { DTYPE_##from, DTYPE_##to, n, in, out },
#include "casts.def"
#undef CAST
};

static void from_hex(const char *hex, uint8_t *out)
{
        for (size_t i = 0; hex[2 * i] != '\0'; i++) {
                unsigned byte;
                cr_assert_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
                out[i] = (uint8_t)byte;
        }
}

// Equal bits, or NaN on both sides in every float part.
static bool same_element(Dtype dtype, const uint8_t *got, const uint8_t *want)
{
        size_t bytes = dtype_info[dtype].bytes;
        bool complex = dtype_info[dtype].kind == DTYPE_KIND_COMPLEX;
        Dtype part = dtype == DTYPE_C64 ? DTYPE_F32 : dtype == DTYPE_C128 ? DTYPE_F64 : dtype;
        for (size_t at = 0; at < bytes; at += bytes / (complex ? 2 : 1)) {
                bool nan = dtype_is_float(part) && isnan(element_as_f64(part, got + at)) &&
                           isnan(element_as_f64(part, want + at));
                if (!nan && memcmp(got + at, want + at, dtype_info[part].bytes) != 0)
                        return false;
        }
        return true;
}

// `repeat` copies of the values, so that whole tiles and their ends are seen; `step` elements
// apart.
static void check_cast(const CastRow *row, int repeat, int step)
{
        static uint8_t in[1 << 16], want[1024], got[1 << 16], wide[1 << 16];
        size_t from_bytes = dtype_info[row->from].bytes, to_bytes = dtype_info[row->to].bytes;
        from_hex(row->in, in);
        from_hex(row->out, want);
        int64_t n = (int64_t)row->n * repeat;
        for (int64_t i = 0; i < n; i++)
                memcpy(wide + (size_t)(i * step) * from_bytes, in + (size_t)(i % row->n) * from_bytes,
                       from_bytes);
        Storage from_storage = { .data = wide, .n_bytes = sizeof(wide) },
                to_storage = { .data = got, .n_bytes = sizeof(got) };
        Tensor from = { .storage = &from_storage }, to = { .storage = &to_storage };
        meta_init(&from.meta, row->from, 1, &n);
        meta_init(&to.meta, row->to, 1, &n);
        from.meta.stride[0] = step;
        tensor_copy_data(&from, &to);
        for (int64_t i = 0; i < n; i++) {
                cr_expect(same_element(row->to, got + (size_t)i * to_bytes,
                                       want + (size_t)(i % row->n) * to_bytes),
                          "%s to %s, value %d", dtype_info[row->from].name, dtype_info[row->to].name,
                          (int)(i % row->n));
        }
}

Test(dtype, casts_of_hard_values_between_every_pair_are_pytorchs)
{
        cr_assert_eq(ARRAY_LENGTH(cast_rows), DTYPE_COUNT * DTYPE_COUNT);
        for (size_t i = 0; i < ARRAY_LENGTH(cast_rows); i++) {
                check_cast(&cast_rows[i], 1, 1);
                check_cast(&cast_rows[i], 20, 1);
                check_cast(&cast_rows[i], 20, 3);
        }
}

Test(dtype, halfs_survive_a_round_trip_through_float)
{
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
                float wide = f16_to_f32((uint16_t)bits), brain = bf16_to_f32((uint16_t)bits);
                cr_assert(isnan(wide) ? isnan(f16_to_f32(f32_to_f16(wide))) : f32_to_f16(wide) == bits, "%x",
                          bits);
                cr_assert(isnan(brain) ? isnan(bf16_to_f32(f32_to_bf16(brain))) : f32_to_bf16(brain) == bits,
                          "%x", bits);
        }
}

Test(dtype, floats_between_two_halfs_go_to_the_nearer_and_ties_to_the_even_one)
{
        for (uint32_t bits = 0; bits < 0x7bff; bits++) {
                float low = f16_to_f32((uint16_t)bits), high = f16_to_f32((uint16_t)(bits + 1)),
                      middle = (low + high) / 2;
                cr_assert_eq(f32_to_f16(middle), bits + (bits & 1));
                cr_assert_eq(f32_to_f16(nextafterf(middle, low)), bits);
                cr_assert_eq(f32_to_f16(nextafterf(middle, high)), bits + 1);
                cr_assert_eq(f32_to_f16(-middle), 0x8000 + bits + (bits & 1));
        }
}

// Around every boundary between two halves, and every NaN: runs of eight and a rest.
Test(dtype, runs_of_halfs_have_the_bits_of_single_ones)
{
        static const uint16_t low[] = { 0,      1,      0xfff,  0x1000, 0x1001, 0x2000, 0x3000, 0x7fff,
                                        0x8000, 0x8001, 0x9000, 0xb000, 0xd000, 0xf000, 0xffff };
        enum { N = ARRAY_LENGTH(low) };
        for (int type = 0; type < 2; type++) {
                Dtype half = type == 0 ? DTYPE_F16 : DTYPE_BF16;
                for (uint32_t high = 0; high <= UINT16_MAX; high++) {
                        uint16_t narrow[N], halves[N], want_narrow[N];
                        float floats[N], wide[N], want_wide[N];
                        for (uint32_t i = 0; i < N; i++) {
                                FloatBits bits = { .u = high << 16 | low[i] };
                                halves[i] = (uint16_t)(high ^ i);
                                memcpy(&floats[i], &bits.u, sizeof(bits.u));
                                want_narrow[i] = type == 0 ? float_to_half(bits.f) : float_to_bfloat(bits.f);
                                want_wide[i] =
                                        type == 0 ? half_to_float(halves[i]) : bfloat_to_float(halves[i]);
                        }
                        if (!halves_narrow(half, floats, N, narrow) || !halves_widen(half, halves, N, wide))
                                return; // this machine has no wide registers
                        cr_assert(memcmp(narrow, want_narrow, sizeof(narrow)) == 0, "%x", high);
                        cr_assert(memcmp(wide, want_wide, sizeof(wide)) == 0, "%x", high);
                }
        }
}

Test(dtype, single_elements_are_read_and_written_with_cast_rules)
{
        uint8_t element[16] = { 0 };
        element_from_f64(DTYPE_U8, element, 300.0);
        cr_expect_eq(element_as_i64(DTYPE_U8, element), 44);
        element_from_f64(DTYPE_I32, element, NAN);
        cr_expect_eq(element_as_i64(DTYPE_I32, element), INT32_MIN);
        element_from_f64(DTYPE_BOOL, element, NAN);
        cr_expect_eq(element_as_i64(DTYPE_BOOL, element), 1);
        element_from_i64(DTYPE_U64, element, -1);
        cr_expect_eq(element_as_f64(DTYPE_U64, element), 18446744073709551616.0);
        element_from_i64(DTYPE_F16, element, 65520);
        cr_expect(isinf(element_as_f64(DTYPE_F16, element)));
        element_from_f64(DTYPE_C64, element, 2.5);
        cr_expect_eq(element_as_f64(DTYPE_C64, element), 2.5);
}
