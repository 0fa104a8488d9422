// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include "core/kernels/attention/attention.h"
#include "tests/kernels/sample.h"

typedef struct Heads {
        float *data;
        size_t n_bytes;
        GemmMatrix matrix;
} Heads;

// [items, heads, rows, columns], or [items, rows, heads, columns] in memory.
static Heads heads_new(Sample *sample, int64_t items, int64_t heads, int64_t rows, int64_t columns)
{
        Heads out = { .n_bytes = (size_t)(items * heads * rows * columns) * 4 };
        out.data = guarded_new(out.n_bytes);
        sample_fill(sample, DTYPE_F32, out.data, items * heads * rows * columns);
        bool interleaved = sample_int(sample, 0, 1) != 0;
        out.matrix = (GemmMatrix){ out.data,
                                   interleaved ? heads * columns : columns,
                                   1,
                                   { heads * rows * columns, interleaved ? columns : rows * columns } };
        return out;
}

static double at(const GemmMatrix *matrix, int64_t item, int64_t head, int64_t row, int64_t column)
{
        return (double)((const float *)matrix->data)[item * matrix->batch[0] + head * matrix->batch[1] +
                                                     row * matrix->row + column * matrix->col];
}

static void check_attention(Sample *sample)
{
        int64_t items = sample_int(sample, 1, 2), heads = sample_int(sample, 1, 3),
                l = sample_int(sample, 1, sample_int(sample, 0, 4) == 0 ? 150 : 9),
                s = sample_int(sample, 1, sample_int(sample, 0, 4) == 0 ? 300 : 70),
                e = sample_int(sample, 1, 40), ev = sample_int(sample, 1, 40);
        Heads q = heads_new(sample, items, heads, l, e), k = heads_new(sample, items, heads, s, e),
              v = heads_new(sample, items, heads, s, ev), out = heads_new(sample, items, heads, l, ev);
        size_t mask_bytes = (size_t)(l * s);
        uint8_t *mask = guarded_new(mask_bytes);
        for (int64_t i = 0; i < l * s; i++)
                mask[i] = sample_int(sample, 0, 2) != 0;
        Attention attention = { .dtype = DTYPE_F32,
                                .l = l,
                                .s = s,
                                .e = e,
                                .ev = ev,
                                .batch_rank = 2,
                                .batch_size = { items, heads },
                                .q = q.matrix,
                                .k = k.matrix,
                                .v = v.matrix,
                                .out = out.matrix,
                                .causal = sample_int(sample, 0, 1) != 0,
                                .scale = 0.5,
                                .weights = DTYPE_NONE };
        if (sample_int(sample, 0, 1) != 0) {
                attention.mask_kind = MASK_BOOL;
                attention.mask = (GemmMatrix){ mask, s, 1, { 0 } };
        }
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        cr_assert_eq(attention_run(&ctx, &attention), STATUS_OK);
        for (int64_t i = 0; i < items * heads * l; i++) {
                int64_t row = i % l, head = i / l % heads, item = i / l / heads;
                double scores[300], max = -INFINITY, sum = 0;
                for (int64_t j = 0; j < s; j++) {
                        scores[j] = 0;
                        for (int64_t d = 0; d < e; d++)
                                scores[j] += at(&q.matrix, item, head, row, d) *
                                             at(&k.matrix, item, head, j, d) * attention.scale;
                        if ((attention.mask_kind == MASK_BOOL && !mask[row * s + j]) ||
                            (attention.causal && j > row))
                                scores[j] = -INFINITY;
                        max = MAX(max, scores[j]);
                }
                for (int64_t j = 0; j < s; j++) {
                        scores[j] = max == -INFINITY ? 0 : exp(scores[j] - max);
                        sum += scores[j];
                }
                for (int64_t d = 0; d < ev; d++) {
                        double want = 0, got = at(&out.matrix, item, head, row, d);
                        for (int64_t j = 0; j < s; j++)
                                want += scores[j] / (sum == 0 ? 1 : sum) * at(&v.matrix, item, head, j, d);
                        cr_assert(close_enough(DTYPE_F32, got, want), "row %ld: %.9g instead of %.9g",
                                  (long)row, got, want);
                }
        }
        Heads *all[] = { &q, &k, &v, &out };
        for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
                guarded_check(all[i]->data, all[i]->n_bytes);
        guarded_check(mask, mask_bytes);
}

// ---- products of bfloat16 ----
enum { HEADS = 3, DEPTH = 19, VALUES = 33, MOST_QUERIES = 150, MOST_KEYS = 300 };

static float as_bf16(float x)
{
        uint32_t bits;
        memcpy(&bits, &x, sizeof(bits));
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U;
        memcpy(&x, &bits, sizeof(x));
        return x;
}

// [heads][rows][columns], rounded to bfloat16.
static float *rounded_new(Sample *sample, int64_t rows, int64_t columns)
{
        int64_t n = HEADS * rows * columns;
        float *data = guarded_new((size_t)n * 4);
        sample_fill(sample, DTYPE_F32, data, n);
        for (int64_t i = 0; i < n; i++)
                data[i] = as_bf16(data[i]);
        return data;
}

// Of head `head`, query `i`: only the rounding of weights, 1 / 256 at most, is left.
static void check_row(const Attention *attention, int64_t head, int64_t i)
{
        const float *q = (const float *)attention->q.data + (head * attention->l + i) * DEPTH,
                    *k = (const float *)attention->k.data + head * attention->s * DEPTH,
                    *v = (const float *)attention->v.data + head * attention->s * VALUES,
                    *out = (const float *)attention->out.data + (head * attention->l + i) * VALUES;
        double weights[MOST_KEYS], sum = 0;
        for (int64_t j = 0; j < attention->s; j++) {
                weights[j] = 0;
                for (int64_t d = 0; d < DEPTH; d++)
                        weights[j] += (double)q[d] * (double)k[j * DEPTH + d] * attention->scale;
                weights[j] = attention->causal && j > i ? 0 : exp(weights[j]);
                sum += weights[j];
        }
        for (int64_t c = 0; c < VALUES; c++) {
                double want = 0, size = 0;
                for (int64_t j = 0; j < attention->s; j++) {
                        want += weights[j] / sum * (double)v[j * VALUES + c];
                        size += weights[j] / sum * fabs((double)v[j * VALUES + c]);
                }
                cr_assert(fabs((double)out[c] - want) <= size / 256 + 1e-5, "row %ld: %.9g instead of %.9g",
                          (long)i, (double)out[c], want);
        }
}

// Sizes on both sides of what is kept as pairs at a time, odd ones among them.
static void check_bf16(Sample *sample)
{
        int64_t l = sample_int(sample, 5, MOST_QUERIES), s = sample_int(sample, 1, MOST_KEYS);
        float *q = rounded_new(sample, l, DEPTH), *k = rounded_new(sample, s, DEPTH),
              *v = rounded_new(sample, s, VALUES);
        size_t n_out = (size_t)(HEADS * l * VALUES) * 4;
        float *out = guarded_new(n_out), *alone = guarded_new(n_out);
        Attention attention = { .dtype = DTYPE_F32,
                                .l = l,
                                .s = s,
                                .e = DEPTH,
                                .ev = VALUES,
                                .batch_rank = 1,
                                .batch_size = { HEADS },
                                .q = { q, DEPTH, 1, { l * DEPTH } },
                                .k = { k, DEPTH, 1, { s * DEPTH } },
                                .v = { v, VALUES, 1, { s * VALUES } },
                                .out = { out, VALUES, 1, { l * VALUES } },
                                .causal = sample_int(sample, 0, 1) != 0,
                                .scale = 1,
                                .weights = DTYPE_NONE,
                                .bf16 = true };
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 2;
        cr_assert_eq(attention_run(&ctx, &attention), STATUS_OK);
        for (int64_t row = 0; row < HEADS * l; row++)
                check_row(&attention, row / l, row % l);
        // Each head alone, on one thread: equal bits.
        attention.batch_size[0] = 1;
        for (int64_t head = 0; head < HEADS; head++) {
                attention.q.data = q + head * l * DEPTH;
                attention.k.data = k + head * s * DEPTH;
                attention.v.data = v + head * s * VALUES;
                attention.out.data = alone + head * l * VALUES;
                cr_assert_eq(attention_run(NULL, &attention), STATUS_OK);
        }
        cr_assert(memcmp(alone, out, n_out) == 0, "a head has other bits beside others");
        guarded_check(q, (size_t)(HEADS * l * DEPTH) * 4);
        guarded_check(k, (size_t)(HEADS * s * DEPTH) * 4);
        guarded_check(v, (size_t)(HEADS * s * VALUES) * 4);
        guarded_check(out, n_out);
        guarded_check(alone, n_out);
}

// Where a mask holds the least float32 for all keys, as padding of exported transformers does, all
// weights are equal: the result is the mean of the values.
Test(attention, in_bfloat16_takes_the_mean_where_a_mask_is_the_least_float_for_all_keys)
{
        enum { QUERIES = 7, KEYS = 130 };
        Sample sample = { 83 };
        float *q = rounded_new(&sample, QUERIES, DEPTH), *k = rounded_new(&sample, KEYS, DEPTH),
              *v = rounded_new(&sample, KEYS, VALUES);
        float out[HEADS * QUERIES * VALUES], mask[KEYS];
        for (int j = 0; j < KEYS; j++)
                mask[j] = -FLT_MAX;
        Attention attention = { .dtype = DTYPE_F32,
                                .l = QUERIES,
                                .s = KEYS,
                                .e = DEPTH,
                                .ev = VALUES,
                                .batch_rank = 1,
                                .batch_size = { HEADS },
                                .q = { q, DEPTH, 1, { QUERIES * DEPTH } },
                                .k = { k, DEPTH, 1, { KEYS * DEPTH } },
                                .v = { v, VALUES, 1, { KEYS * VALUES } },
                                .out = { out, VALUES, 1, { QUERIES * VALUES } },
                                .mask_kind = MASK_ADD,
                                .mask = { mask, 0, 1, { 0 } },
                                .scale = 1,
                                .weights = DTYPE_NONE,
                                .bf16 = true };
        cr_assert_eq(attention_run(NULL, &attention), STATUS_OK);
        for (int i = 0; i < HEADS * QUERIES * VALUES; i++) {
                const float *values = v + (i / VALUES / QUERIES * KEYS) * VALUES + i % VALUES;
                double want = 0;
                for (int j = 0; j < KEYS; j++)
                        want += (double)values[j * VALUES] / (double)KEYS;
                cr_assert(fabs((double)out[i] - want) <= 1e-4, "%.9g instead of %.9g", (double)out[i], want);
        }
        guarded_check(q, (size_t)HEADS * QUERIES * DEPTH * 4);
        guarded_check(k, (size_t)HEADS * KEYS * DEPTH * 4);
        guarded_check(v, (size_t)HEADS * KEYS * VALUES * 4);
}

Test(attention, in_bfloat16_loses_no_more_than_rounding_and_heads_do_not_depend_on_others)
{
        Sample sample = { 82 };
        for (int round = 0; round < 20; round++)
                check_bf16(&sample);
}

Test(attention, agrees_with_its_definition_with_and_without_masks)
{
        Sample sample = { 81 };
        for (int round = 0; round < 60; round++)
                check_attention(&sample);
}
