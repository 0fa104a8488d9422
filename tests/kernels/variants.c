// SPDX-License-Identifier: Apache-2.0
// Every variant of every family of kernels (core/kernels/families.c) that this machine has, against
// what ISA_PORTABLE gives: random shapes, guard bytes, and equal bits where the family promises
// them. A family without a row here fails.
#include <stdio.h>
#include "core/kernels/attention/attention.h"
#include "core/kernels/attention/panel.h"
#include "core/kernels/conv/conv.h"
#include "core/kernels/conv/depthwise.h"
#include "core/kernels/conv/winograd.h"
#include "core/kernels/fft/fft.h"
#include "core/kernels/norm/norm.h"
#include "core/kernels/norm/softmax.h"
#include "core/kernels/pool/pool.h"
#include "core/kernels/product/int4.h"
#include "core/kernels/product/matmul.h"
#include "core/kernels/product/matmul_tile.h"
#include "core/kernels/product/levels.h"
#include "core/kernels/product/narrow.h"
#include "core/kernels/product/narrow_tile.h"
#include "core/kernels/product/recurrent.h"
#include "core/kernels/reduce/columns.h"
#include "core/kernels/reduce/distances.h"
#include "tests/kernels/sample.h"

enum { MAX_OUT = 1 << 17 };

static float *floats(Sample *sample, int64_t n)
{
        float *data = guarded_new((size_t)n * sizeof(float));
        sample_fill(sample, DTYPE_F32, data, n);
        return data;
}

static void let_go(float *data, int64_t n)
{
        guarded_check(data, (size_t)n * sizeof(float));
}

// ---- one random case of a family, all from the sample: the results and their number ----
static int64_t gemm_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t m = sample_int(sample, 1, 90), n = sample_int(sample, 1, 300), k = sample_int(sample, 0, 300);
        size_t bytes = dtype_info[dtype].bytes, a_bytes = (size_t)(m * k) * bytes,
               b_bytes = (size_t)(k * n) * bytes;
        bool turned = sample_int(sample, 0, 1) != 0;
        void *a = guarded_new(a_bytes), *b = guarded_new(b_bytes);
        sample_fill(sample, dtype, a, m * k);
        sample_fill(sample, dtype, b, k * n);
        Gemm task = { .dtype = dtype,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = { a, k, 1, { 0 } },
                      .b = { b, turned ? 1 : n, turned ? k : 1, { 0 } },
                      .c = { out, n, 1, { 0 } },
                      .alpha = 1 };
        cr_assert_eq(gemm(NULL, &task), STATUS_OK);
        guarded_check(a, a_bytes);
        guarded_check(b, b_bytes);
        return m * n;
}

static int64_t softmax_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t outer = sample_int(sample, 1, 4), n = sample_int(sample, 1, 2100),
                inner = sample_int(sample, 0, 1) == 0 ? 1 : sample_int(sample, 2, 12);
        float *in = floats(sample, outer * n * inner);
        SoftmaxKind kind = (SoftmaxKind)sample_int(sample, SOFTMAX, SOFTMAX_SAFE);
        cr_assert_eq(softmax_run(NULL, &(Softmax){ kind, dtype, outer, n, inner }, in, out), STATUS_OK);
        let_go(in, outer * n * inner);
        return outer * n * inner;
}

static int64_t column_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t n = sample_int(sample, 1, 1100), inner = sample_int(sample, 4, 300);
        size_t bytes = (size_t)(n * inner) * dtype_info[dtype].bytes;
        void *in = guarded_new(bytes);
        sample_fill(sample, dtype, in, n * inner);
        TensorMeta meta;
        RowPlan plan;
        meta_init(&meta, dtype, 2, (int64_t[]){ n, inner });
        row_plan(&plan, &meta, 1, false);
        ReduceKind kind = (ReduceKind)sample_int(sample, REDUCE_SUM, REDUCE_ANY);
        kind = kind == REDUCE_ANY ? (dtype == DTYPE_I64 ? REDUCE_SUM : REDUCE_NANSUM) : kind;
        Reduction reduction = { .dtype = dtype,
                                .stored = dtype,
                                .kind = kind == REDUCE_MEAN && dtype == DTYPE_I64 ? REDUCE_SUM : kind,
                                .rounding = DTYPE_NONE,
                                .data = in,
                                .out = out };
        cr_assert_eq(reduce_run(NULL, &plan, &reduction), STATUS_OK);
        guarded_check(in, bytes);
        return inner;
}

static int64_t distance_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t n = sample_int(sample, 2, 300), m = sample_int(sample, 1, 300);
        size_t bytes = (size_t)(n * m) * dtype_info[dtype].bytes;
        void *in = guarded_new(bytes);
        sample_fill(sample, dtype, in, n * m);
        Distances task = { .dtype = dtype,
                           .kind = (DistanceKind)sample_int(sample, 0, DISTANCE_KINDS - 1),
                           .n = n,
                           .m = m,
                           .data = in };
        cr_assert_eq(distances_run(NULL, &task, out), STATUS_OK);
        guarded_check(in, bytes);
        return n * (n - 1) / 2;
}

// Rows, then planes, then channels that stand last, in one array each behind the other.
static int64_t norm_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t rows = sample_int(sample, 1, 6), n = sample_int(sample, 1, 1100), all = rows * n;
        size_t bytes = dtype_info[dtype].bytes;
        char *in = guarded_new((size_t)all * bytes), *weight = guarded_new((size_t)n * bytes),
             *bias = guarded_new((size_t)n * bytes);
        sample_fill(sample, dtype, in, all);
        sample_fill(sample, dtype, weight, n);
        sample_fill(sample, dtype, bias, n);
        NormRows norm = { .dtype = dtype,
                          .n_rows = rows,
                          .n = n,
                          .eps = 0.1,
                          .rms = sample_int(sample, 0, 1) != 0,
                          .weight = sample_int(sample, 0, 1) != 0 ? weight : NULL,
                          .bias = sample_int(sample, 0, 1) != 0 ? bias : NULL };
        cr_assert_eq(norm_rows(NULL, &norm, in, out), STATUS_OK);
        NormScale by = { dtype, rows, n, 1, sample_int(sample, 0, 1) != 0 ? bias : NULL, weight, bias };
        cr_assert_eq(norm_scale_channels(NULL, &by, in, (char *)out + (size_t)all * bytes), STATUS_OK);
        by = (NormScale){ dtype, 1, 1, all, NULL, weight, bias };
        cr_assert_eq(norm_scale_channels(NULL, &by, in, (char *)out + 2 * (size_t)all * bytes), STATUS_OK);
        guarded_check(in, (size_t)all * bytes);
        guarded_check(weight, (size_t)n * bytes);
        guarded_check(bias, (size_t)n * bytes);
        return 3 * all;
}

// Keys and values lie side by side in rows. The mask is bool or added, and may be one row for all
// queries.
static int64_t attend_case(Sample *sample, Dtype dtype, bool bf16, void *out)
{
        int64_t items = sample_int(sample, 1, 3), l = sample_int(sample, 5, 150),
                s = sample_int(sample, 1, 300), e = sample_int(sample, 1, 70), ev = sample_int(sample, 1, 70),
                width = e + ev;
        float *q = floats(sample, items * l * e), *kv = floats(sample, items * s * width);
        float *added = floats(sample, l * s);
        added[sample_int(sample, 0, l * s - 1)] = -INFINITY;
        uint8_t *allowed = guarded_new((size_t)(l * s));
        for (int64_t i = 0; i < l * s; i++)
                allowed[i] = sample_int(sample, 0, 3) != 0;
        Attention task = { .dtype = dtype,
                           .l = l,
                           .s = s,
                           .e = e,
                           .ev = ev,
                           .batch_rank = 1,
                           .batch_size = { items },
                           .q = { q, e, 1, { l * e } },
                           .k = { kv, width, 1, { s * width } },
                           .v = { kv + e, width, 1, { s * width } },
                           .out = { out, ev, 1, { l * ev } },
                           .mask_kind = (MaskKind)sample_int(sample, MASK_NONE, MASK_ADD),
                           .causal = sample_int(sample, 0, 1) != 0,
                           .scale = 0.2,
                           .weights = DTYPE_NONE,
                           .bf16 = bf16 };
        bool is_row = sample_int(sample, 0, 1) != 0;
        task.mask = (GemmMatrix){
                task.mask_kind == MASK_BOOL ? (void *)allowed : added, is_row ? 0 : s, 1, { 0 }
        };
        cr_assert_eq(attention_run(NULL, &task), STATUS_OK);
        let_go(q, items * l * e);
        let_go(kv, items * s * width);
        let_go(added, l * s);
        guarded_check(allowed, (size_t)(l * s));
        return items * l * ev;
}

static int64_t attention_case(Sample *sample, Dtype dtype, void *out)
{
        return attend_case(sample, dtype, false, out);
}

static int64_t pairs_case(Sample *sample, Dtype dtype, void *out)
{
        return attend_case(sample, dtype, true, out);
}

static int64_t recurrent_case(Sample *sample, Dtype dtype, void *out)
{
        Recurrent task = { .kind = (RecurrentKind)sample_int(sample, 0, RECURRENT_KINDS - 1),
                           .dtype = dtype,
                           .reverse = sample_int(sample, 0, 1) != 0,
                           .steps = sample_int(sample, 1, 6),
                           .batch = sample_int(sample, 1, 15),
                           .cells = sample_int(sample, 1, 70) };
        task.states = task.cells;
        int64_t n = recurrent_gates(task.kind) * task.cells, state = task.batch * task.cells;
        int64_t counts[] = { task.steps * task.batch * n, n * task.cells, n, state, state };
        size_t bytes = dtype_info[dtype].bytes;
        void *in[ARRAY_LENGTH(counts)];
        for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
                in[i] = guarded_new((size_t)counts[i] * bytes);
                sample_fill(sample, dtype, in[i], counts[i]);
        }
        task.gates = in[0];
        task.weight = in[1];
        task.bias = in[2];
        task.hidden = in[3];
        task.cell = in[4];
        task.out = out;
        task.last_hidden = (char *)out + (size_t)(task.steps * state) * bytes;
        task.last_cell = (char *)task.last_hidden + (size_t)state * bytes;
        memset(task.last_cell, 0, (size_t)state * bytes);
        const RecurrentWeight weight = { .dtype = dtype, .n = n, .k = task.cells, .data = task.weight };
        _cleanup_(storage_unrefp) Storage *panels = NULL;
        cr_assert_eq(recurrent_pack(&weight, &panels), STATUS_OK);
        cr_assert_eq(recurrent_run(NULL, &task), STATUS_OK);
        // Weights that are packed before the run give the same bits as those that are packed in it,
        // with several threads, too.
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = 3;
        size_t n_out = (size_t)((task.steps + 2) * state) * bytes;
        _cleanup_(freep) char *again = new_array(n_out, 1);
        Recurrent packed = task;
        packed.weight = NULL;
        packed.packed = panels->data;
        packed.out = again;
        packed.last_hidden = again + (size_t)(task.steps * state) * bytes;
        packed.last_cell = (char *)packed.last_hidden + (size_t)state * bytes;
        cr_assert_eq(recurrent_run(&ctx, &packed), STATUS_OK);
        cr_assert(task.steps < 4 || memcmp(again, out, n_out) == 0, "kind %d, %ld steps", (int)task.kind,
                  (long)task.steps);
        for (size_t i = 0; i < ARRAY_LENGTH(counts); i++)
                guarded_check(in[i], (size_t)counts[i] * bytes);
        return (task.steps + 2) * state;
}

static int64_t pool_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t channels = sample_int(sample, 1, 40), height = sample_int(sample, 3, 12),
                width = sample_int(sample, 3, 12), bounds[3][40];
        Pool pool = { .dtype = dtype, .planes = 2 * channels };
        int64_t sizes[] = { 1, height, width }, n_out = 2 * channels;
        for (int d = 0; d < 3; d++) {
                int64_t kernel = d == 0 ? 1 : sample_int(sample, 1, 3), stride = d == 0 ? 1 : kernel;
                pool.axis[d] =
                        (PoolAxis){ .in_size = sizes[d],
                                    .out_size = pool_output_size(sizes[d], kernel, stride, 0, 1, false) };
                cr_assert_eq(pool_windows(NULL, &pool.axis[d], &(PoolWindow){ kernel, stride, 0, 1, false },
                                          bounds[d]),
                             STATUS_OK);
                n_out *= pool.axis[d].out_size;
        }
        float *in = floats(sample, 2 * channels * height * width);
        in[sample_int(sample, 0, 2 * channels * height * width - 1)] = NAN;
        cr_assert_eq(pool_channels_last(NULL, &pool, sample_int(sample, 0, 1) != 0, channels, in, out),
                     STATUS_OK);
        let_go(in, 2 * channels * height * width);
        return n_out;
}

// ---- convolutions: where the family has no variant, conv_run is what the set runs instead ----
typedef enum Way { DIRECT, DEPTHWISE, WINOGRAD_2, WINOGRAD_4, N_WAYS } Way;
static int n_ran[N_WAYS];

static TensorMeta image(int64_t n, int64_t channels, int64_t height, int64_t width)
{
        TensorMeta meta;
        meta_init(&meta, DTYPE_F32, 4, (int64_t[]){ n, channels, height, width });
        meta_set_channels_last(&meta);
        return meta;
}

static void run_plain(const DnnlConv *conv, const float *in, float *out)
{
        const TensorMeta *from = &conv->input, *to = &conv->out;
        Conv plain = {
                .dtype = DTYPE_F32,
                .n = from->size[0],
                .groups = conv->groups,
                .group_in = conv->weight.size[1],
                .group_out = to->size[1] / conv->groups,
                .in_size = { 1, from->size[2], from->size[3] },
                .out_size = { 1, to->size[2], to->size[3] },
                .kernel = { 1, conv->weight.size[2], conv->weight.size[3] },
                .stride = { 1, conv->stride[0], conv->stride[1] },
                .pad = { 0, conv->padding[0], conv->padding[1] },
                .dilation = { 1, 1, 1 },
                .in_stride = { from->stride[0], from->stride[1], 0, from->stride[2], from->stride[3] },
                .out_stride = { to->stride[0], to->stride[1], 0, to->stride[2], to->stride[3] },
        };
        cr_assert_eq(conv_run(NULL, &plain, in, conv->weight_data, NULL, out), STATUS_OK);
}

static bool run_way(Way way, const DnnlConv *conv, const float *in, float *out)
{
        static _Alignas(64) char scratch[8 << 20];
        const DirectClamp none = { 0 };
        DirectConv *direct = NULL;
        Depthwise *depthwise = NULL;
        Winograd *winograd = NULL;
        switch (way) {
        case DIRECT:
                cr_assert_eq(direct_conv_new(conv, PRECISION_F32, &none, &direct), STATUS_OK);
                break;
        case DEPTHWISE:
                cr_assert_eq(depthwise_new(conv, &none, &depthwise), STATUS_OK);
                break;
        default:
                cr_assert_eq(winograd_new(conv, &none, way == WINOGRAD_4 ? 4 : 2, &winograd), STATUS_OK);
        }
        Status status = STATUS_OK;
        if (direct != NULL)
                status = direct_conv_run(direct, NULL, in, NULL, out, scratch);
        else if (depthwise != NULL)
                status = depthwise_run(depthwise, NULL, in, NULL, out);
        else if (winograd != NULL)
                status = winograd_run(winograd, NULL, in, NULL, out, scratch);
        cr_assert_eq(status, STATUS_OK);
        bool ran = direct != NULL || depthwise != NULL || winograd != NULL;
        direct_conv_free(direct);
        depthwise_free(depthwise);
        winograd_free(winograd);
        return ran;
}

static int64_t conv_case(Sample *sample, Way way, void *out)
{
        bool winograd = way == WINOGRAD_2 || way == WINOGRAD_4, depthwise = way == DEPTHWISE;
        int64_t n_in = winograd ? sample_int(sample, 16, 48) : sample_int(sample, 2, 40),
                n_out = depthwise  ? n_in
                        : winograd ? sample_int(sample, 16, 40)
                                   : sample_int(sample, 1, 40),
                kernel = winograd ? 3 : sample_int(sample, 1, 3), pad = kernel / 2,
                stride = winograd ? 1 : sample_int(sample, 1, 2), size = sample_int(sample, 7, 14),
                out_size = (size + 2 * pad - kernel) / stride + 1;
        DnnlConv conv = { .input = image(2, n_in, size, size),
                          .out = image(2, n_out, out_size, out_size),
                          .groups = depthwise ? n_in : 1,
                          .stride = { stride, stride },
                          .padding = { pad, pad },
                          .dilation = { 1, 1 },
                          .n_threads = 1 };
        meta_init(&conv.weight, DTYPE_F32, 4, (int64_t[]){ n_out, depthwise ? 1 : n_in, kernel, kernel });
        float *in = floats(sample, meta_numel(&conv.input)),
              *weight = floats(sample, meta_numel(&conv.weight));
        conv.weight_data = weight;
        bool ran = run_way(way, &conv, in, out);
        n_ran[way] += ran;
        // Winograd also refuses weights that make its errors large, in all sets alike.
        cr_assert(ran ? isa_level() >= ISA_AVX2 : isa_level() == ISA_PORTABLE || winograd);
        if (!ran)
                run_plain(&conv, in, out);
        let_go(in, meta_numel(&conv.input));
        let_go(weight, meta_numel(&conv.weight));
        return meta_numel(&conv.out);
}

static int64_t direct_case(Sample *sample, Dtype dtype, void *out)
{
        (void)dtype;
        return conv_case(sample, DIRECT, out);
}

static void run_plain_sequence(const DnnlConv *conv, const float *in, float *out)
{
        const TensorMeta *from = &conv->input, *to = &conv->out;
        Conv plain = {
                .dtype = DTYPE_F32,
                .n = from->size[0],
                .groups = conv->groups,
                .group_in = 1,
                .group_out = 1,
                .in_size = { 1, 1, from->size[2] },
                .out_size = { 1, 1, to->size[2] },
                .kernel = { 1, 1, conv->weight.size[2] },
                .stride = { 1, 1, 1 },
                .pad = { 0, 0, conv->padding[0] },
                .dilation = { 1, 1, conv->dilation[0] },
                .in_stride = { from->stride[0], from->stride[1], 0, 0, from->stride[2] },
                .out_stride = { to->stride[0], to->stride[1], 0, 0, to->stride[2] },
        };
        cr_assert_eq(conv_run(NULL, &plain, in, conv->weight_data, conv->bias_data, out), STATUS_OK);
}

// One to three chunks of a row, and padding that may be wider than the kernel.
static int64_t sequence_case(Sample *sample, float *out)
{
        int64_t n = sample_int(sample, 1, 2), channels = sample_int(sample, 2, 12),
                kernel = sample_int(sample, 1, 40), dilation = sample_int(sample, 1, 3),
                pad = sample_int(sample, 0, 50), reach = (kernel - 1) * dilation,
                size = sample_int(sample, 1, sample_int(sample, 0, 1) ? 300 : 2600);
        size = MAX(size, reach + 1 - 2 * pad);
        DnnlConv conv = { .groups = channels,
                          .stride = { 1 },
                          .padding = { pad },
                          .dilation = { dilation },
                          .n_threads = 1 };
        meta_init(&conv.input, DTYPE_F32, 3, (int64_t[]){ n, channels, size });
        meta_init(&conv.out, DTYPE_F32, 3, (int64_t[]){ n, channels, size + 2 * pad - reach });
        meta_init(&conv.weight, DTYPE_F32, 3, (int64_t[]){ channels, 1, kernel });
        if (sample_int(sample, 0, 1) == 0) {
                conv.input.stride[1] = 1;
                conv.input.stride[2] = channels;
        }
        float *in = floats(sample, n * channels * size), *weight = floats(sample, channels * kernel),
              *bias = floats(sample, channels);
        conv.weight_data = weight;
        conv.bias_data = sample_int(sample, 0, 1) == 0 ? NULL : bias;
        bool ran = run_way(DEPTHWISE, &conv, in, out);
        cr_assert_eq(ran, isa_level() >= ISA_AVX2);
        if (!ran)
                run_plain_sequence(&conv, in, out);
        let_go(in, n * channels * size);
        let_go(weight, channels * kernel);
        let_go(bias, channels);
        return meta_numel(&conv.out);
}

static int64_t depthwise_case(Sample *sample, Dtype dtype, void *out)
{
        (void)dtype;
        if (sample_int(sample, 0, 1) == 0)
                return sequence_case(sample, out);
        return conv_case(sample, DEPTHWISE, out);
}

static int64_t winograd_case(Sample *sample, Dtype dtype, void *out)
{
        (void)dtype;
        return conv_case(sample, sample_int(sample, 0, 1) == 0 ? WINOGRAD_2 : WINOGRAD_4, out);
}

// A product whose operands lose nothing as bfloat16, with sums that are exact in any order.
static int64_t narrow_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t m = sample_int(sample, 1, 20), n = sample_int(sample, 8, 100),
                k = sample_int(sample, 16, 200);
        float *a = floats(sample, m * k), *b = floats(sample, k * n);
        NarrowMatmul *narrow;
        for (int64_t i = 0; i < m * k; i++)
                a[i] = (float)sample_int(sample, -128, 128) / 64.0f;
        for (int64_t i = 0; i < k * n; i++)
                b[i] = (float)sample_int(sample, -128, 128) / 64.0f;
        DnnlMatmul matmul = { .b_data = b, .n_threads = 1 };
        meta_init(&matmul.a, dtype, 2, (int64_t[]){ m, k });
        meta_init(&matmul.b, dtype, 2, (int64_t[]){ k, n });
        meta_init(&matmul.out, dtype, 2, (int64_t[]){ m, n });
        cr_assert_eq(narrow_matmul_new(&matmul, PRECISION_BF16, &(DirectClamp){ 0 }, &narrow), STATUS_OK);
        if (narrow != NULL) {
                size_t n_scratch = narrow_matmul_scratch(narrow);
                void *scratch = guarded_new(n_scratch);
                cr_assert_eq(narrow_matmul_run(narrow, NULL, a, NULL, out, scratch), STATUS_OK);
                guarded_check(scratch, n_scratch);
        } else {
                Gemm task = { .dtype = dtype, .m = m, .n = n, .k = k, .alpha = 1 };
                task.a = (GemmMatrix){ a, k, 1, { 0 } };
                task.b = (GemmMatrix){ b, n, 1, { 0 } };
                task.c = (GemmMatrix){ out, n, 1, { 0 } };
                cr_assert_eq(gemm(NULL, &task), STATUS_OK);
        }
        narrow_matmul_free(narrow);
        let_go(a, m * k);
        let_go(b, k * n);
        return m * n;
}

// Levels from levels: where the family has no variant, the formula.
static int64_t levels_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t m = sample_int(sample, 1, 20), n = sample_int(sample, 1, 100), k = sample_int(sample, 1, 200);
        int8_t *in = guarded_new((size_t)(m * k)), *weights = guarded_new((size_t)(n * k));
        float *scales = floats(sample, n);
        LevelsMatmul *matmul;
        sample_fill(sample, dtype, in, m * k);
        sample_fill(sample, dtype, weights, n * k);
        LevelsProduct product = { .n_rows = m,
                                  .n_k = k,
                                  .n_columns = n,
                                  .is_signed = true,
                                  .in_step = k,
                                  .out_step = n,
                                  .weights = weights,
                                  .weight_step = { 1, k },
                                  .column_scale = scales,
                                  .out = { true, -INFINITY, INFINITY, { 0.01f, 5, -128, 127 } },
                                  .n_threads = 1 };
        cr_assert_eq(levels_matmul_new(&product, &matmul), STATUS_OK);
        size_t n_scratch = matmul == NULL ? 0 : levels_matmul_scratch(matmul);
        void *scratch = guarded_new(n_scratch);
        LevelsOperands operands = { (uint8_t *)in, 1, 7, NULL, out, scratch };
        if (matmul != NULL)
                cr_assert_eq(levels_matmul_run(matmul, NULL, &operands), STATUS_OK);
        for (int64_t i = 0; i < m * n && matmul == NULL; i++) {
                int32_t sum = 0;
                for (int64_t t = 0; t < k; t++)
                        sum += (in[i / n * k + t] - 7) * weights[i % n * k + t];
                float x = (float)sum * scales[i % n];
                levels_quantize(&x, 1, &product.out.steps, (uint8_t *)out + i);
        }
        levels_matmul_free(matmul);
        guarded_check(scratch, n_scratch);
        guarded_check(in, (size_t)(m * k));
        guarded_check(weights, (size_t)(n * k));
        let_go(scales, n);
        return m * n;
}

// All weights unpacked, eight rows side by side.
static int64_t int4_case(Sample *sample, Dtype dtype, void *out)
{
        int64_t rows = 16 * sample_int(sample, 1, 9), columns = 32 * sample_int(sample, 1, 5),
                n_bytes = rows * columns / 2, n_scales = columns / 32 * rows;
        int8_t *bytes = guarded_new((size_t)n_bytes);
        float *affine = floats(sample, 2 * n_scales);
        sample_fill(sample, DTYPE_I8, bytes, n_bytes);
        Int4Weights weights = { .bytes = (const uint8_t *)bytes,
                                .rows = rows,
                                .columns = columns,
                                .group = 32,
                                .block = 16 << sample_int(sample, 0, 2),
                                .halves = sample_int(sample, 0, 1) != 0,
                                .affine = affine };
        const Int4Kernel *kernel = kernel_variant(&int4_family, dtype);
        for (int64_t row = 0, n_k = sample_int(sample, 1, columns); row < rows; row += 8) {
                kernel->unpack(&weights, row, 0, n_k, 8, (float *)out + row * columns);
                kernel->unpack(&weights, row, n_k, columns - n_k, 8, (float *)out + row * columns + n_k * 8);
        }
        guarded_check(bytes, (size_t)n_bytes);
        let_go(affine, 2 * n_scales);
        return rows * columns;
}

// Real or complex lines of float32 or float64, along the last dimension or the first.
static int64_t fft_case(Sample *sample, Dtype dtype, void *out)
{
        const bool turned = sample_int(sample, 0, 1) != 0, is_real = sample_int(sample, 0, 1) != 0,
                   single = sample_int(sample, 0, 1) != 0;
        int64_t n = sample_int(sample, 1, 300), lines = sample_int(sample, 1, 40),
                size[] = { turned ? n : lines, turned ? lines : n };
        const Dtype of_real = single ? DTYPE_F32 : dtype, of_complex = single ? DTYPE_C64 : DTYPE_C128;
        TensorMeta from, to;
        meta_init(&from, is_real ? of_real : of_complex, 2, size);
        meta_init(&to, of_complex, 2, size);
        size_t bytes = (size_t)(n * lines) * dtype_info[from.dtype].bytes;
        void *in = guarded_new(bytes);
        sample_fill(sample, of_real, in, (is_real ? 1 : 2) * n * lines);
        FftLines task = { &from, &to, turned ? 0 : 1, n, is_real || sample_int(sample, 0, 1) != 0, 0.3 };
        cr_assert_eq(fft_lines_run(NULL, &task, in, out), STATUS_OK);
        guarded_check(in, bytes);
        return (single ? 1 : 2) * n * lines;
}

// ---- all of them ----
typedef struct Check {
        const KernelFamily *family;
        int64_t (*run)(Sample *sample, Dtype dtype, void *out);
        Isa same_from; // sets from here on give the same bits
        int64_t terms; // of a result at most: wider tolerance
} Check;

// The portable GEMM rounds products before it adds them, and its vectors are shorter.
static const Check checks[] = {
        { &gemm_family, gemm_case, ISA_AVX512, 300 },
        { &softmax_family, softmax_case, ISA_PORTABLE, 0 },
        { &norm_family, norm_case, ISA_PORTABLE, 0 },
        { &reduce_family, column_case, ISA_PORTABLE, 0 },
        { &distance_family, distance_case, ISA_PORTABLE, 0 },
        { &pool_last_family, pool_case, ISA_PORTABLE, 0 },
        { &direct_family, direct_case, ISA_AVX2, 360 },
        { &depthwise_family, depthwise_case, ISA_AVX2, 40 },
        { &winograd_family, winograd_case, ISA_AVX2, 432 },
        { &attention_family, attention_case, ISA_AVX2, 300 },
        { &attention_pairs_family, pairs_case, ISA_AVX512_BF16, 64 * 600 }, // operands are rounded
        { &recurrent_family, recurrent_case, ISA_AVX512, 300 },
        { &narrow_family, narrow_case, ISA_AVX2, 200 },
        { &levels_family, levels_case, ISA_PORTABLE, 0 },
        { &int4_family, int4_case, ISA_PORTABLE, 0 },
        { &fft_family, fft_case, ISA_PORTABLE, 0 },
};

typedef struct Results {
        Dtype dtype;
        int64_t n;
        const void *got, *want;
} Results;

static void compare(const char *what, const Results *results, bool bits, int64_t terms)
{
        Dtype dtype = results->dtype;
        int64_t n = results->n;
        const void *got = results->got, *want = results->want;
        if (bits)
                cr_assert(memcmp(got, want, (size_t)n * dtype_info[dtype].bytes) == 0, "%s: other bits",
                          what);
        for (int64_t i = 0; i < n && !bits; i++) {
                double value = compute_as_f64(dtype, got, i), wanted = compute_as_f64(dtype, want, i);
                cr_assert(close_enough_sum(dtype, value, wanted, terms), "%s: %.9g instead of %.9g", what,
                          value, wanted);
        }
}

static void check_variant(const Check *check, const KernelVariant *variant, uint64_t seed)
{
        char what[80];
        size_t bytes = MAX_OUT * dtype_info[variant->dtype].bytes;
        void *got = guarded_new(bytes), *want = guarded_new(bytes), *before = guarded_new(bytes);
        Sample sample = { seed };
        isa_use(ISA_PORTABLE);
        int64_t n = check->run(&sample, variant->dtype, want);
        cr_assert_leq(n, MAX_OUT);
        sample.state = seed;
        isa_use(variant->isa);
        check->run(&sample, variant->dtype, got);
        snprintf(what, sizeof(what), "%s, %s, %s, seed %d", check->family->name,
                 dtype_info[variant->dtype].name, isa_name(variant->isa), (int)seed);
        compare(what, &(Results){ variant->dtype, n, got, want }, check->same_from == ISA_PORTABLE,
                check->terms);
        if (variant->isa > check->same_from) {
                sample.state = seed;
                isa_use(check->same_from);
                check->run(&sample, variant->dtype, before);
                compare(what, &(Results){ variant->dtype, n, got, before }, true, 0);
        }
        guarded_check(got, bytes);
        guarded_check(want, bytes);
        guarded_check(before, bytes);
}

static const Check *check_of(const KernelFamily *family)
{
        for (size_t i = 0; i < ARRAY_LENGTH(checks); i++)
                if (checks[i].family == family)
                        return &checks[i];
        cr_assert_fail("the kernels of %s are not compared with the portable ones", family->name);
        return NULL;
}

Test(variants, every_variant_of_every_family_agrees_with_the_portable_set)
{
        for (size_t i = 0; i < n_kernel_families; i++) {
                const KernelFamily *family = kernel_families[i];
                const Check *check = check_of(family);
                for (size_t k = 0; k < family->n; k++)
                        for (uint64_t seed = 1; seed <= 20 && family->variants[k].isa <= isa_machine();
                             seed++)
                                check_variant(check, &family->variants[k], seed);
        }
        for (int way = 0; way < N_WAYS; way++)
                cr_assert(isa_machine() == ISA_PORTABLE || n_ran[way] >= 8, "%d runs of way %d", n_ran[way],
                          way);
}

Test(variants, a_forced_set_takes_its_own_variant_or_the_next_narrower_one)
{
        FOR_EACH_ISA(isa)
        {
                for (size_t i = 0; i < n_kernel_families; i++) {
                        const KernelFamily *family = kernel_families[i];
                        for (size_t k = 0; k < family->n; k++) {
                                const KernelVariant *variant = &family->variants[k];
                                bool taken = kernel_variant(family, variant->dtype) == variant->kernel;
                                cr_assert(!taken || variant->isa <= isa, "%s in %s", family->name,
                                          isa_name(isa));
                                cr_assert(taken || variant->isa != isa, "%s in %s", family->name,
                                          isa_name(isa));
                        }
                }
        }
}
