// SPDX-License-Identifier: Apache-2.0
// Figures of the portable kernels: kernels [threads]. Prints one line per case, best of several
// runs: the clock's time of several threads, the processor's time of one, so that the machine may
// be busy.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "core/kernels/attention/attention.h"
#include "core/kernels/conv/conv.h"
#include "core/kernels/norm/norm.h"
#include "core/kernels/norm/softmax.h"

typedef Status (*Task)(const RunContext *ctx, const void *task);

static int64_t now_ns(const RunContext *ctx)
{
        struct timespec now;
        if (ctx->n_threads > 1)
                return clock_ns();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Best of several runs, in seconds.
static double seconds_of(const RunContext *ctx, Task work, const void *task)
{
        double best = 1e9;
        for (int i = 0; i < 9; i++) {
                int64_t start = now_ns(ctx);
                if (work(ctx, task) != STATUS_OK)
                        exit(1);
                best = MIN(best, (double)(now_ns(ctx) - start) * 1e-9);
        }
        return best;
}

static float *floats_new(int64_t n)
{
        float *out = malloc((size_t)n * sizeof(float));
        if (out == NULL)
                exit(1);
        for (int64_t i = 0; i < n; i++)
                out[i] = (float)(i % 7) - 3;
        return out;
}

static Status run_gemm(const RunContext *ctx, const void *task)
{
        return gemm(ctx, task);
}

static void bench_product(const RunContext *ctx, const char *label, int64_t m, int64_t n, int64_t k,
                          bool b_transposed)
{
        float *a = floats_new(m * k), *b = floats_new(k * n), *c = floats_new(m * n);
        Gemm task = { .dtype = DTYPE_F32,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = { a, k, 1, { 0 } },
                      .c = { c, n, 1, { 0 } },
                      .alpha = 1 };
        task.b = b_transposed ? (GemmMatrix){ b, 1, k, { 0 } } : (GemmMatrix){ b, n, 1, { 0 } };
        double seconds = seconds_of(ctx, run_gemm, &task);
        printf("%-28s %5ld x %5ld x %5ld  %9.1f us  %7.1f GFLOP/s\n", label, (long)m, (long)n, (long)k,
               seconds * 1e6, 2.0 * (double)m * (double)n * (double)k / seconds * 1e-9);
        free(a);
        free(b);
        free(c);
}

typedef struct ConvTask {
        Conv conv;
        float *in, *weight, *bias, *out;
} ConvTask;

static Status run_conv(const RunContext *ctx, const void *task)
{
        const ConvTask *conv = task;
        return conv_run(ctx, &conv->conv, conv->in, conv->weight, conv->bias, conv->out);
}

// Square images and kernels, padding that keeps the size at stride 1.
typedef struct ConvShape {
        int64_t groups, in, out; // channels
        int64_t size, kernel, stride;
} ConvShape;

static void bench_conv(const RunContext *ctx, const char *label, ConvShape shape)
{
        int64_t groups = shape.groups, in = shape.in, out = shape.out, size = shape.size,
                kernel = shape.kernel, stride = shape.stride;
        int64_t pad = kernel / 2, out_size = (size + 2 * pad - kernel) / stride + 1;
        ConvTask task = { .conv = { .dtype = DTYPE_F32,
                                    .n = 1,
                                    .groups = groups,
                                    .group_in = in / groups,
                                    .group_out = out / groups,
                                    .in_size = { 1, size, size },
                                    .out_size = { 1, out_size, out_size },
                                    .kernel = { 1, kernel, kernel },
                                    .stride = { 1, stride, stride },
                                    .pad = { 0, pad, pad },
                                    .dilation = { 1, 1, 1 },
                                    .in_stride = { in * size * size, size * size, size * size, size, 1 },
                                    .out_stride = { out * out_size * out_size, out_size * out_size,
                                                    out_size * out_size, out_size, 1 } } };
        task.in = floats_new(in * size * size);
        task.weight = floats_new(out * in / groups * kernel * kernel);
        task.bias = floats_new(out);
        task.out = floats_new(out * out_size * out_size);
        double seconds = seconds_of(ctx, run_conv, &task),
               flops = 2.0 * (double)(out_size * out_size * out * in / groups * kernel * kernel);
        printf("%-28s %4ld -> %4ld @%3ld k%ld s%ld   %9.1f us  %7.1f GFLOP/s\n", label, (long)in, (long)out,
               (long)size, (long)kernel, (long)stride, seconds * 1e6, flops / seconds * 1e-9);
        free(task.in);
        free(task.weight);
        free(task.bias);
        free(task.out);
}

typedef struct RowsTask {
        int64_t rows, n;
        float *in, *out;
} RowsTask;

static Status run_softmax(const RunContext *ctx, const void *task)
{
        const RowsTask *rows = task;
        return softmax_run(ctx, &(Softmax){ SOFTMAX, DTYPE_F32, rows->rows, rows->n, 1 }, rows->in,
                           rows->out);
}

static Status run_layer_norm(const RunContext *ctx, const void *task)
{
        const RowsTask *rows = task;
        NormRows norm = { .dtype = DTYPE_F32, .n_rows = rows->rows, .n = rows->n, .eps = 1e-5 };
        return norm_rows(ctx, &norm, rows->in, rows->out);
}

static void bench_rows(const RunContext *ctx, const char *label, Task work, int64_t rows, int64_t n)
{
        RowsTask task = { rows, n, floats_new(rows * n), floats_new(rows * n) };
        double seconds = seconds_of(ctx, work, &task);
        printf("%-28s %5ld x %5ld          %9.1f us  %7.2f ns/element\n", label, (long)rows, (long)n,
               seconds * 1e6, seconds * 1e9 / (double)(rows * n));
        free(task.in);
        free(task.out);
}

typedef struct HeadsShape {
        int64_t heads, queries, keys, depth;
        MaskKind mask; // the same for all heads
        bool causal, bf16;
} HeadsShape;

static Status run_attention(const RunContext *ctx, const void *task)
{
        return attention_run(ctx, task);
}

// Heads lie side by side in rows, as a product for query, key and value leaves them.
static void bench_attention(const RunContext *ctx, const char *label, HeadsShape shape)
{
        int64_t width = shape.heads * shape.depth, n = shape.queries, s = shape.keys;
        float *q = floats_new(n * width), *k = floats_new(s * width), *v = floats_new(s * width),
              *out = floats_new(n * width), *mask = floats_new(n * s);
        Attention task = { .dtype = DTYPE_F32,
                           .l = n,
                           .s = s,
                           .e = shape.depth,
                           .ev = shape.depth,
                           .batch_rank = 1,
                           .batch_size = { shape.heads },
                           .q = { q, width, 1, { shape.depth } },
                           .k = { k, width, 1, { shape.depth } },
                           .v = { v, width, 1, { shape.depth } },
                           .mask = { mask, s, 1, { 0 } },
                           .out = { out, width, 1, { shape.depth } },
                           .mask_kind = shape.mask,
                           .causal = shape.causal,
                           .bf16 = shape.bf16,
                           .scale = 0.125,
                           .weights = DTYPE_NONE };
        double seconds = seconds_of(ctx, run_attention, &task);
        printf("%-28s %2ld x %4ld x %4ld x %3ld %9.1f us  %7.1f GFLOP/s\n", label, (long)shape.heads, (long)n,
               (long)s, (long)shape.depth, seconds * 1e6,
               4.0 * (double)width * (double)n * (double)s / seconds * 1e-9);
        float *all[] = { q, k, v, out, mask };
        for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
                free(all[i]);
}

static void bench_attentions(const RunContext *ctx)
{
        bench_attention(ctx, "attention, BERT", (HeadsShape){ 12, 128, 128, 64, MASK_NONE, false, false });
        bench_attention(ctx, "attention, BERT, mask",
                        (HeadsShape){ 12, 128, 128, 64, MASK_ADD, false, false });
        bench_attention(ctx, "attention, BERT, bool mask",
                        (HeadsShape){ 12, 128, 128, 64, MASK_BOOL, false, false });
        bench_attention(ctx, "attention, MiniLM", (HeadsShape){ 12, 128, 128, 32, MASK_NONE, false, false });
        bench_attention(ctx, "attention, ViT", (HeadsShape){ 12, 197, 197, 64, MASK_NONE, false, false });
        bench_attention(ctx, "attention, Swin", (HeadsShape){ 192, 49, 49, 32, MASK_NONE, false, false });
        bench_attention(ctx, "attention, GPT-2", (HeadsShape){ 12, 64, 64, 64, MASK_NONE, true, false });
        bench_attention(ctx, "attention, causal", (HeadsShape){ 12, 1024, 1024, 64, MASK_NONE, true, false });
        bench_attention(ctx, "attention, Whisper",
                        (HeadsShape){ 6, 1500, 1500, 64, MASK_NONE, false, false });
        bench_attention(ctx, "attention, SegFormer",
                        (HeadsShape){ 1, 16384, 256, 32, MASK_NONE, false, false });
        bench_attention(ctx, "attention, one query",
                        (HeadsShape){ 12, 1, 1024, 64, MASK_NONE, false, false });
        bench_attention(ctx, "attention bf16, BERT",
                        (HeadsShape){ 12, 128, 128, 64, MASK_NONE, false, true });
        bench_attention(ctx, "attention bf16, MiniLM",
                        (HeadsShape){ 12, 128, 128, 32, MASK_NONE, false, true });
        bench_attention(ctx, "attention bf16, ViT", (HeadsShape){ 12, 197, 197, 64, MASK_NONE, false, true });
        bench_attention(ctx, "attention bf16, Whisper",
                        (HeadsShape){ 6, 1500, 1500, 64, MASK_NONE, false, true });
        bench_attention(ctx, "attention, deep", (HeadsShape){ 12, 128, 128, 128, MASK_NONE, false, false });
}

int main(int argc, char **argv)
{
        RunContext ctx;
        run_context_init(&ctx);
        ctx.n_threads = argc > 1 ? atoi(argv[1]) : 1;
        bench_product(&ctx, "gemm", 1024, 1024, 1024, false);
        bench_product(&ctx, "gemm, b transposed", 1024, 1024, 1024, true);
        bench_product(&ctx, "linear, batch 1", 1, 3072, 768, true);
        bench_product(&ctx, "linear, batch 1, digits", 1, 512, 784, true);
        bench_product(&ctx, "linear, batch 8", 8, 3072, 768, true);
        bench_product(&ctx, "linear, batch 16", 16, 3072, 768, true);
        bench_product(&ctx, "linear, batch 64", 64, 3072, 768, true);
        bench_product(&ctx, "linear, batch 128", 128, 3072, 768, true);
        bench_product(&ctx, "linear, batch 128, deep", 128, 768, 3072, true);
        bench_product(&ctx, "linear, batch 512, narrow", 512, 384, 384, true);
        bench_product(&ctx, "row vector", 1, 3072, 768, false);
        bench_conv(&ctx, "conv, ResNet-18 layer 1", (ConvShape){ 1, 64, 64, 56, 3, 1 });
        bench_conv(&ctx, "conv, ResNet-18 layer 2", (ConvShape){ 1, 128, 128, 28, 3, 1 });
        bench_conv(&ctx, "conv, ResNet-18 layer 3", (ConvShape){ 1, 256, 256, 14, 3, 1 });
        bench_conv(&ctx, "conv, ResNet-18 layer 4", (ConvShape){ 1, 512, 512, 7, 3, 1 });
        bench_conv(&ctx, "conv, ResNet-18 stem", (ConvShape){ 1, 3, 64, 224, 7, 2 });
        bench_conv(&ctx, "conv, strided", (ConvShape){ 1, 64, 128, 56, 3, 2 });
        bench_conv(&ctx, "conv, one by one", (ConvShape){ 1, 256, 256, 14, 1, 1 });
        bench_conv(&ctx, "conv, depthwise", (ConvShape){ 96, 96, 96, 56, 3, 1 });
        bench_attentions(&ctx);
        bench_rows(&ctx, "softmax", run_softmax, 512, 128);
        bench_rows(&ctx, "softmax", run_softmax, 64, 1000);
        bench_rows(&ctx, "layer_norm", run_layer_norm, 128, 768);
        return 0;
}
