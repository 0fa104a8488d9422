// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/random/draw.h"
#include <criterion/criterion.h>
#include <math.h>
#include "core/kernels/random/normal.h"

static Status start(RunContext *ctx, Generator *generator, uint64_t seed)
{
        run_context_init(ctx);
        generator_seed(generator, seed);
        ctx->generator = generator;
        return generator_start(generator);
}

Test(random, the_words_are_those_of_mt19937)
{
        Generator generator;
        RunContext ctx;
        uint32_t word = 0;
        cr_assert_eq(start(&ctx, &generator, 5489), STATUS_OK);
        for (int i = 0; i < 10000; i++)
                word = generator_next32(&generator);
        cr_assert_eq(word, 4123659995u);
}

Test(random, only_32_bits_of_a_seed_count)
{
        Generator a, b;
        RunContext ctx;
        cr_assert_eq(start(&ctx, &a, 7), STATUS_OK);
        cr_assert_eq(start(&ctx, &b, 7 + (5ull << 32)), STATUS_OK);
        cr_assert_eq(generator_next64(&a), generator_next64(&b));
}

Test(random, a_rewound_generator_starts_again)
{
        Generator generator;
        RunContext ctx;
        double first, again;
        cr_assert_eq(start(&ctx, &generator, 3), STATUS_OK);
        first = generator_normal(&generator);
        generator_rewind(&generator);
        cr_assert(!generator.started);
        cr_assert_eq(generator_start(&generator), STATUS_OK);
        again = generator_normal(&generator);
        cr_assert_eq(first, again);
        cr_assert_neq(generator_normal(&generator), first);
}

Test(random, a_generator_without_a_seed_draws_one)
{
        Generator a, b;
        generator_init(&a);
        generator_init(&b);
        cr_assert_eq(generator_start(&a), STATUS_OK);
        cr_assert_eq(generator_start(&b), STATUS_OK);
        cr_assert(a.seeded && a.started);
        cr_assert_leq(a.seed, UINT32_MAX);
        cr_assert_neq(a.seed, b.seed, "two seeds of 32 bits were equal; this may happen once in 4e9 runs");
}

Test(random, a_context_without_a_generator_draws_nothing)
{
        RunContext ctx;
        TensorMeta meta;
        float out;
        run_context_init(&ctx);
        meta_init(&meta, DTYPE_F32, 0, NULL);
        cr_assert_eq(draw_fill(&ctx, &(Draw){ .kind = DRAW_UNIFORM, .b = 1 }, &meta, &out), STATUS_INTERNAL);
}

// A transposed tensor is filled in the order of its addresses, a row with gaps leaves them alone.
Test(random, elements_are_drawn_in_the_order_of_their_addresses)
{
        Generator generator;
        RunContext ctx;
        TensorMeta meta;
        float plain[12], strided[12];
        const Draw draw = { .kind = DRAW_UNIFORM, .b = 1 };
        cr_assert_eq(start(&ctx, &generator, 1), STATUS_OK);
        meta_init(&meta, DTYPE_F32, 1, (int64_t[]){ 12 });
        cr_assert_eq(draw_fill(&ctx, &draw, &meta, plain), STATUS_OK);
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 3, 4 });
        meta.stride[0] = 1;
        meta.stride[1] = 3;
        generator_rewind(&generator);
        cr_assert_eq(draw_fill(&ctx, &draw, &meta, strided), STATUS_OK);
        cr_assert_arr_eq(plain, strided, sizeof(plain));
        meta_init(&meta, DTYPE_F32, 2, (int64_t[]){ 2, 3 });
        meta.stride[0] = 6;
        meta.stride[1] = 2;
        for (int i = 0; i < 12; i++)
                strided[i] = -1;
        generator_rewind(&generator);
        cr_assert_eq(draw_fill(&ctx, &draw, &meta, strided), STATUS_OK);
        for (int i = 0; i < 12; i++)
                cr_assert_eq(strided[i], i % 2 == 0 ? plain[i / 2] : -1);
}

Test(random, normal_numbers_have_mean_0_and_deviation_1)
{
        Generator generator;
        RunContext ctx;
        TensorMeta meta;
        static double out[100003];
        double sum = 0, squares = 0;
        const int64_t n = ARRAY_LENGTH(out);
        const Draw draw = { .kind = DRAW_NORMAL, .b = 1 };
        cr_assert_eq(start(&ctx, &generator, 0), STATUS_OK);
        meta_init(&meta, DTYPE_F64, 1, &n);
        cr_assert_eq(draw_fill(&ctx, &draw, &meta, out), STATUS_OK);
        for (int64_t i = 0; i < n; i++) {
                sum += out[i];
                squares += out[i] * out[i];
        }
        cr_assert_float_eq(sum / (double)n, 0, 0.02);
        cr_assert_float_eq(squares / (double)n, 1, 0.02);
}
