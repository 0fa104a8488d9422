// SPDX-License-Identifier: Apache-2.0
// winograd.c: F(4x4, 3x3) of Lavin and Gray (arXiv 1509.09308). Weights are transformed once, in double. A run takes blocks of tiles:
// transforms them to 36 matrices [tiles, channels in], multiplies each by its weights (oneDNN, packed), and transforms the products back,
// adding the bias. A block is small enough for the second-level cache; the last one is padded with tiles nobody reads.
#include "core/kernels/dnnl/winograd.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { STEP = 4, SIDE = 6, PLANES = SIDE * SIDE, LANES = 16, BLOCK_BYTES = 768 << 10 };

typedef float Lane __attribute__((vector_size(4 * LANES), aligned(4)));

typedef struct Tile {
        int low[2], high[2]; // rows, columns that are there
} Tile;

typedef struct Kernels {
        void (*take)(const Tile *tile, int64_t row_step, int64_t column_step, int64_t channels, int64_t plane, const float *from,
                     float *to);
        bool (*give)(const Tile *tile, int64_t row_step, int64_t column_step, int64_t channels, int64_t plane, const float *from,
                     const float *bias, float *to);
} Kernels;

// Points of the interpolation: 0, +-5/8, +-3/2 and infinity, and their squares. Errors are about half of those with 0, +-1, +-2.
#define A1 0.625f
#define A2 0.390625f
#define B1 1.5f
#define B2 2.25f

// No fused multiply-add anywhere, so that all of them give the same bits.
#define WINOGRAD_TARGET
#define WINOGRAD(x) plain_##x
#include "core/kernels/dnnl/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_TARGET
#if defined(__x86_64__)
#define WINOGRAD_TARGET __attribute__((target("avx512f,avx512vl,prefer-vector-width=512")))
#define WINOGRAD(x)     avx512_##x
#include "core/kernels/dnnl/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_TARGET
#define WINOGRAD_TARGET __attribute__((target("avx2")))
#define WINOGRAD(x)     avx2_##x
#include "core/kernels/dnnl/winograd_tile.inc"
#endif

static Kernels choose_kernels(void)
{
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
                return (Kernels){ avx512_take, avx512_give };
        if (__builtin_cpu_supports("avx2"))
                return (Kernels){ avx2_take, avx2_give };
#endif
        return (Kernels){ plain_take, plain_give };
}

struct Winograd {
        TensorMeta in, out;
        int64_t pad[2], rows, columns, n_tiles, block; // tiles: per image down and across, in all, per block
        DnnlPrimitive *product, *direct;
        float *bias;
        Kernels kernels;
        char name[80];
};

// ---- weights ----
// Points p of the interpolation besides 0 and infinity: 1, p, p^2 over the product of p's distances to the other points.
#define POINT(p, p2, q2)                                                                                                                   \
        {                                                                                                                                  \
                1 / (2 * (p2) * ((p2) - (q2))), (p) / (2 * (p2) * ((p2) - (q2))), 1 / (2 * ((p2) - (q2)))                                  \
        }
static const double weight_lines[SIDE][3] = { { 1 / (0.390625 * 2.25), 0, 0 }, POINT(0.625, 0.390625, 2.25), POINT(-0.625, 0.390625, 2.25),
                                              POINT(1.5, 2.25, 0.390625),      POINT(-1.5, 2.25, 0.390625),  { 0, 0, 1 } };
#undef POINT

static void transform_weight(const float *kernel, double out[PLANES])
{
        double half[SIDE][3];
        for (int i = 0; i < SIDE; i++)
                for (int j = 0; j < 3; j++)
                        half[i][j] = weight_lines[i][0] * (double)kernel[j] + weight_lines[i][1] * (double)kernel[3 + j] +
                                     weight_lines[i][2] * (double)kernel[6 + j];
        for (int i = 0; i < SIDE; i++)
                for (int j = 0; j < SIDE; j++)
                        out[i * SIDE + j] =
                                half[i][0] * weight_lines[j][0] + half[i][1] * weight_lines[j][1] + half[i][2] * weight_lines[j][2];
}

// [plane][in][out]
static float *transform_weights(const DnnlConv *conv)
{
        int64_t n_out = conv->weight.size[0], n_in = conv->weight.size[1];
        float *planes = new_array((size_t)(PLANES * n_in * n_out), sizeof(float));
        const float *kernels = conv->weight_data;
        for (int64_t c = 0; c < n_in && planes != NULL; c++) {
                for (int64_t k = 0; k < n_out; k++) {
                        double one[PLANES];
                        transform_weight(kernels + (k * n_in + c) * 9, one);
                        for (int64_t p = 0; p < PLANES; p++)
                                planes[(p * n_in + c) * n_out + k] = (float)one[p];
                }
        }
        return planes;
}

// ---- the guard ----
enum { SAMPLES = 16 };

static float noise_at(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (float)((double)(*state >> 11) / 4503599627370496.0 - 1);
}

// NaN is worst.
static double worse(double a, double b)
{
        return b > a || isnan(b) ? b : a;
}

// Largest errors of one tile's results in output channel `k`, against double, on noise.
static void tile_errors(const DnnlConv *conv, const float *planes, int64_t k, const float *tile, float *moved, double *inout_direct,
                        double *inout_winograd)
{
        int64_t n_out = conv->weight.size[0], n_in = conv->weight.size[1];
        const float *kernel = (const float *)conv->weight_data + k * n_in * 9;
        float products[PLANES * LANES] = { 0 }, result[STEP * STEP * LANES];
        for (int64_t p = 0; p < PLANES; p++)
                for (int64_t c = 0; c < n_in; c++)
                        products[p * LANES] += moved[p * n_in + c] * planes[(p * n_in + c) * n_out + k];
        Tile whole = { .high = { STEP, STEP } };
        plain_give(&whole, STEP * LANES, LANES, LANES, LANES, products, NULL, result);
        for (int i = 0; i < STEP; i++) {
                for (int j = 0; j < STEP; j++) {
                        double exact = 0;
                        float plain = 0;
                        for (int64_t c = 0; c < n_in; c++) {
                                for (int t = 0; t < 9; t++) {
                                        float x = tile[((i + t / 3) * SIDE + j + t % 3) * n_in + c], w = kernel[c * 9 + t];
                                        exact += (double)x * (double)w;
                                        plain += x * w;
                                }
                        }
                        *inout_direct = worse(*inout_direct, fabs((double)plain - exact));
                        *inout_winograd = worse(*inout_winograd, fabs((double)result[(i * STEP + j) * LANES] - exact));
                }
        }
}

static Status is_accurate(const DnnlConv *conv, const float *planes, bool *out_accurate)
{
        int64_t n_out = conv->weight.size[0], n_in = conv->weight.size[1];
        _cleanup_(freep) float *tile = new_array((size_t)(2 * PLANES * n_in), sizeof(float));
        if (tile == NULL)
                return fail_memory();
        float *moved = tile + PLANES * n_in;
        uint64_t state = 1;
        double direct = 0, winograd = 0;
        Tile whole = { .high = { SIDE, SIDE } };
        for (int64_t i = 0; i < PLANES * n_in; i++)
                tile[i] = noise_at(&state);
        plain_take(&whole, SIDE * n_in, n_in, n_in, n_in, tile, moved);
        for (int64_t i = 0; i < SAMPLES; i++)
                tile_errors(conv, planes, i * n_out / SAMPLES, tile, moved, &direct, &winograd);
        *out_accurate = winograd <= 4 * direct; // false for NaN
        return STATUS_OK;
}

// ---- making ----
// Where it wins over oneDNN's direct convolution, measured with AVX-512; elsewhere the direct one is at the roof already.
static bool is_worth_it(const DnnlConv *conv)
{
        int64_t n_in = conv->weight.size[1], n_out = conv->weight.size[0], height = conv->out.size[2], width = conv->out.size[3];
        int64_t n_tiles = conv->out.size[0] * ((height + STEP - 1) / STEP) * ((width + STEP - 1) / STEP);
        return n_in >= 32 && n_out >= 32 && n_in % LANES == 0 && n_out % LANES == 0 && height >= 7 && width >= 7 && n_tiles >= 12;
}

static bool fits(const DnnlConv *conv)
{
        if (conv->input.rank != 4 || conv->groups != 1 || conv->epilogue.add_out || conv->epilogue.activation != DNNL_NOTHING ||
            !meta_is_channels_last(&conv->input) || !meta_is_channels_last(&conv->out))
                return false;
        for (int i = 0; i < 2; i++) {
                int64_t out = conv->out.size[2 + i], in = conv->input.size[2 + i];
                if (conv->weight.size[2 + i] != 3 || conv->stride[i] != 1 || conv->dilation[i] != 1 || conv->padding[i] > 2 ||
                    out != in + 2 * conv->padding[i] - 2)
                        return false;
        }
        return true;
}

static Status make_product(const DnnlConv *conv, const float *planes, Winograd *winograd)
{
        int64_t n_in = conv->weight.size[1], n_out = conv->weight.size[0];
        DnnlMatmul matmul = { .b_data = planes, .n_threads = conv->n_threads };
        meta_init(&matmul.a, DTYPE_F32, 3, (int64_t[]){ PLANES, winograd->block, n_in });
        meta_init(&matmul.b, DTYPE_F32, 3, (int64_t[]){ PLANES, n_in, n_out });
        meta_init(&matmul.out, DTYPE_F32, 3, (int64_t[]){ PLANES, winograd->block, n_out });
        return dnnl_matmul_new(&matmul, &winograd->product);
}

static Status init(const DnnlConv *conv, const float *planes, Winograd *winograd)
{
        int64_t n_out = conv->weight.size[0], most = BLOCK_BYTES / (int64_t)sizeof(float) / PLANES / (conv->weight.size[1] + n_out);
        winograd->in = conv->input;
        winograd->out = conv->out;
        memcpy(winograd->pad, conv->padding, sizeof(winograd->pad));
        winograd->rows = (conv->out.size[2] + STEP - 1) / STEP;
        winograd->columns = (conv->out.size[3] + STEP - 1) / STEP;
        winograd->n_tiles = conv->out.size[0] * winograd->rows * winograd->columns;
        int64_t n_blocks = (winograd->n_tiles + MAX(most, 16) - 1) / MAX(most, 16);
        winograd->block = (winograd->n_tiles + n_blocks - 1) / n_blocks;
        winograd->kernels = choose_kernels();
        if (conv->bias_data != NULL) {
                winograd->bias = new_array((size_t)n_out, sizeof(float));
                if (winograd->bias == NULL)
                        return fail_memory();
                memcpy(winograd->bias, conv->bias_data, (size_t)n_out * sizeof(float));
        }
        TRY(dnnl_conv_new(conv, &winograd->direct));
        return make_product(conv, planes, winograd);
}

Status winograd_new(const DnnlConv *conv, Winograd **out_winograd)
{
        bool accurate;
        *out_winograd = NULL;
        if (!fits(conv) || !is_worth_it(conv))
                return STATUS_OK;
        _cleanup_(freep) float *planes = transform_weights(conv);
        Winograd *winograd = calloc(1, sizeof(*winograd));
        Status status = planes == NULL || winograd == NULL ? fail_memory() : is_accurate(conv, planes, &accurate);
        if (status == STATUS_OK && accurate)
                status = init(conv, planes, winograd);
        if (status != STATUS_OK || winograd->product == NULL || winograd->direct == NULL) {
                winograd_free(winograd);
                return status;
        }
        snprintf(winograd->name, sizeof(winograd->name), "winograd_4x4:%s", dnnl_primitive_name(winograd->product));
        *out_winograd = winograd;
        return STATUS_OK;
}

void winograd_free(Winograd *winograd)
{
        if (winograd == NULL)
                return;
        dnnl_primitive_free(winograd->product);
        dnnl_primitive_free(winograd->direct);
        free(winograd->bias);
        free(winograd);
}

const char *winograd_name(const Winograd *winograd)
{
        return winograd->name;
}

// Transformed tiles, products, the product's own scratch.
static size_t taken_bytes(const Winograd *winograd, int64_t channels)
{
        return ((size_t)(PLANES * winograd->block * channels) * sizeof(float) + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN;
}

size_t winograd_scratch(const Winograd *winograd)
{
        size_t n = taken_bytes(winograd, winograd->in.size[1]) + taken_bytes(winograd, winograd->out.size[1]);
        return MAX(n + dnnl_primitive_scratch(winograd->product), dnnl_primitive_scratch(winograd->direct));
}

// ---- running ----
typedef struct Block {
        const Winograd *winograd;
        const float *in;
        float *out, *taken, *products;
        int64_t first; // tile
        atomic_bool spoiled;
} Block;

static void locate(const Winograd *winograd, int64_t tile, int64_t *image, int64_t *row, int64_t *column)
{
        *column = tile % winograd->columns * STEP;
        *row = tile / winograd->columns % winograd->rows * STEP;
        *image = tile / winograd->columns / winograd->rows;
}

static int clip(int64_t value, int most)
{
        return value < 0 ? 0 : value > most ? most : (int)value;
}

static void take_tiles(void *argument, int64_t begin, int64_t end)
{
        const Block *block = argument;
        const Winograd *winograd = block->winograd;
        const TensorMeta *in = &winograd->in;
        int64_t channels = in->size[1], image, row, column;
        for (int64_t t = begin; t < end; t++) {
                locate(winograd, block->first + t, &image, &row, &column);
                row -= winograd->pad[0];
                column -= winograd->pad[1];
                Tile tile = { .low = { clip(-row, SIDE), clip(-column, SIDE) },
                              .high = { clip(in->size[2] - row, SIDE), clip(in->size[3] - column, SIDE) } };
                const float *from = block->in + image * in->stride[0] + row * in->stride[2] + column * in->stride[3];
                winograd->kernels.take(&tile, in->stride[2], in->stride[3], channels, winograd->block * channels, from,
                                       block->taken + t * channels);
        }
}

static void give_tiles(void *argument, int64_t begin, int64_t end)
{
        Block *block = argument;
        const Winograd *winograd = block->winograd;
        const TensorMeta *out = &winograd->out;
        int64_t channels = out->size[1], image, row, column;
        for (int64_t t = begin; t < end; t++) {
                locate(winograd, block->first + t, &image, &row, &column);
                Tile tile = { .high = { clip(out->size[2] - row, STEP), clip(out->size[3] - column, STEP) } };
                float *to = block->out + image * out->stride[0] + row * out->stride[2] + column * out->stride[3];
                if (!winograd->kernels.give(&tile, out->stride[2], out->stride[3], channels, winograd->block * channels,
                                            block->products + t * channels, winograd->bias, to))
                        atomic_store_explicit(&block->spoiled, true, memory_order_relaxed);
        }
}

Status winograd_run(const Winograd *winograd, const RunContext *ctx, const float *in, float *out, void *scratch)
{
        char *bytes = scratch;
        Block block = { .winograd = winograd, .in = in, .out = out, .taken = scratch };
        bytes += taken_bytes(winograd, winograd->in.size[1]);
        block.products = (float *)bytes;
        bytes += taken_bytes(winograd, winograd->out.size[1]);
        for (block.first = 0; block.first < winograd->n_tiles; block.first += winograd->block) {
                int64_t n = MIN(winograd->block, winograd->n_tiles - block.first);
                // Tiles past the last: whatever stands there, nobody reads their products. They must be numbers that cost no time.
                for (int64_t p = 0; n < winograd->block && p < PLANES; p++)
                        memset(block.taken + (p * winograd->block + n) * winograd->in.size[1], 0,
                               (size_t)((winograd->block - n) * winograd->in.size[1]) * sizeof(float));
                TRY(parallel_for(ctx, n, 8, take_tiles, &block));
                TRY(dnnl_primitive_run(winograd->product, block.taken, NULL, block.products, bytes));
                TRY(parallel_for(ctx, n, 8, give_tiles, &block));
                if (atomic_load_explicit(&block.spoiled, memory_order_relaxed))
                        return dnnl_primitive_run(winograd->direct, in, NULL, out, scratch);
        }
        return STATUS_OK;
}
