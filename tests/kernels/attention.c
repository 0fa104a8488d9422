// SPDX-License-Identifier: Apache-2.0
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

Test(attention, agrees_with_its_definition_with_and_without_masks)
{
        Sample sample = { 81 };
        for (int round = 0; round < 60; round++)
                check_attention(&sample);
}
