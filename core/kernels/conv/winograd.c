// SPDX-License-Identifier: Apache-2.0
// winograd.c: F(4x4, 3x3) and F(2x2, 3x3) of Lavin and Gray (arXiv 1509.09308). Weights are
// transformed once, in double. A run goes through the image in blocks of tiles. It transforms a
// block to 36 (or 16) matrices [tiles, input channels], called planes. It multiplies each plane by
// the weights of that plane. Then it transforms the products back and adds the bias. A block fits
// the second-level cache.
//
// Two checks keep errors near those of plain sums:
//   weights   When a Winograd is made, random input is convolved. The weights are refused if the
//             error is more than four times that of a plain sum.
//   input     Rounding errors of a tile grow with its largest input and reach all its results. If
//             some result reads only inputs that are far smaller than the tile's largest one (a
//             marker among pixels), the image is convolved by the direct kernel. So it is when a
//             result is not finite. Other images of the batch are not.
#include "core/kernels/conv/winograd.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/kernels/conv/late_direct.h"

enum {
        MAX_STEP = 4,
        MAX_SIDE = 6,
        MAX_PLANES = MAX_SIDE * MAX_SIDE,
        MOST_LANES = 16,
        LINE_FLOATS = 16, // of a cache line
        BLOCK_BYTES = 768 << 10
};

typedef struct TileTask {
        int low[2], high[2];           // rows and columns low .. high - 1 lie inside the image
        int64_t row_step, column_step; // of the image, in floats
        int64_t channels, plane;       // floats from one plane to the next
        const float *bias, *residual;  // `give` only; NULL: none. The residual at the pixel of `to`
        DirectClamp clamp;
} TileTask;

typedef struct Kernels {
        // Transforms a tile of the image. `from`: its first pixel, which may lie outside of the
        // image. `to`: channel c of plane p is written at p * plane + c.
        void (*take)(const TileTask *task, const float *from, float *to);
        // Transforms products back to results. Writes rows and columns below `high`.
        bool (*give)(const TileTask *task, const float *from, float *to);
        int32_t (*largest)(const float *from, int64_t n);
} Kernels;

// The points of the interpolation for step 4 are 0, +-5/8, +-3/2 and infinity. A1 and B1 are the
// two magnitudes, A2 and B2 their squares. Errors are about half of those with 0, +-1, +-2.
#define A1 0.625f
#define A2 0.390625f
#define B1 1.5f
#define B2 2.25f

// No variant uses fused multiply-add, so all variants give the same bits.
#define WINOGRAD_TARGET
#define WINOGRAD_LANES 8
#define WINOGRAD(x)    plain4_##x
#define WINOGRAD_STEP  4
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#define WINOGRAD(x)   plain2_##x
#define WINOGRAD_STEP 2
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#undef WINOGRAD_LANES
#undef WINOGRAD_TARGET
#if defined(__x86_64__)
#define WINOGRAD_TARGET TARGET_AVX512
#define WINOGRAD_LANES  16
#define WINOGRAD(x)     avx512_4_##x
#define WINOGRAD_STEP   4
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#define WINOGRAD(x)   avx512_2_##x
#define WINOGRAD_STEP 2
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#undef WINOGRAD_LANES
#undef WINOGRAD_TARGET
#define WINOGRAD_TARGET TARGET_AVX2
#define WINOGRAD_LANES  8
#define WINOGRAD(x)     avx2_4_##x
#define WINOGRAD_STEP   4
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#define WINOGRAD(x)   avx2_2_##x
#define WINOGRAD_STEP 2
#include "core/kernels/conv/winograd_tile.inc"
#undef WINOGRAD
#undef WINOGRAD_STEP
#undef WINOGRAD_LANES
#undef WINOGRAD_TARGET
#endif

// The kernels of one instruction set.
typedef struct StepKernels {
        Kernels two, four;
} StepKernels;

static const StepKernels plain_steps = { { plain2_take, plain2_give, plain2_largest },
                                         { plain4_take, plain4_give, plain4_largest } };
#if defined(__x86_64__)
static const StepKernels avx2_steps = { { avx2_2_take, avx2_2_give, avx2_2_largest },
                                        { avx2_4_take, avx2_4_give, avx2_4_largest } },
                         avx512_steps = { { avx512_2_take, avx512_2_give, avx512_2_largest },
                                          { avx512_4_take, avx512_4_give, avx512_4_largest } };
#endif
static const KernelVariant winograd_variants[] = {
        { DTYPE_F32, ISA_PORTABLE, &plain_steps },
#if defined(__x86_64__)
        { DTYPE_F32, ISA_AVX2, &avx2_steps },
        { DTYPE_F32, ISA_AVX512, &avx512_steps },
#endif
};
const KernelFamily winograd_family = { "winograd", ARRAY_LENGTH(winograd_variants), winograd_variants };

static Kernels kernels_of(const StepKernels *steps, int step)
{
        return step == 4 ? steps->four : steps->two;
}

struct Winograd {
        TensorMeta in, out;
        int step, side, planes;
        int64_t pad[2];
        int64_t rows, columns, n_tiles; // tiles: down and across one image, in all
        int64_t n_blocks, block;        // blocks; tiles of one at most
        int n_apart;                    // threads with blocks of their own; 1: all share each block
        DirectProducts *products;
        LateDirect *fallback;
        DirectClamp clamp;
        float *bias;
        float error; // measured by the guard, for inputs of magnitude up to 1
        Kernels kernels;
        char name[32];
};

// ---- weights ----
// The row of point p (neither 0 nor infinity): 1, p and p^2, divided by the product of the
// differences of p and the other finite points. q is the magnitude of the other pair of points.
#define POINT(p, p2, q2)                                                                                     \
        {                                                                                                    \
                1 / (2 * (p2) * ((p2) - (q2))), (p) / (2 * (p2) * ((p2) - (q2))), 1 / (2 * ((p2) - (q2)))    \
        }
static const double weight_lines_4[6][3] = { { 1 / (0.390625 * 2.25), 0, 0 }, POINT(0.625, 0.390625, 2.25),
                                             POINT(-0.625, 0.390625, 2.25),   POINT(1.5, 2.25, 0.390625),
                                             POINT(-1.5, 2.25, 0.390625),     { 0, 0, 1 } };
#undef POINT

static const double weight_lines_2[4][3] = {
        { 1, 0, 0 }, { 0.5, 0.5, 0.5 }, { 0.5, -0.5, 0.5 }, { 0, 0, 1 }
};

static void transform_weight(int step, const float *kernel, double out[MAX_PLANES])
{
        const double(*lines)[3] = step == 4 ? weight_lines_4 : weight_lines_2;
        int side = step + 2;
        double half[MAX_SIDE][3];
        for (int i = 0; i < side; i++)
                for (int j = 0; j < 3; j++)
                        half[i][j] = lines[i][0] * (double)kernel[j] + lines[i][1] * (double)kernel[3 + j] +
                                     lines[i][2] * (double)kernel[6 + j];
        for (int i = 0; i < side; i++)
                for (int j = 0; j < side; j++)
                        out[i * side + j] = half[i][0] * lines[j][0] + half[i][1] * lines[j][1] +
                                            half[i][2] * lines[j][2];
}

enum { WEIGHT_STEPS = 64 };

// [plane][in][out]. Incomplete when the build is stopped.
static float *transform_weights(const DnnlConv *conv, int step)
{
        int64_t n_planes = (step + 2) * (step + 2), n_out = conv->weight.size[0], n_in = conv->weight.size[1];
        float *planes = new_array((size_t)(n_planes * n_in * n_out), sizeof(float));
        const float *kernels = conv->weight_data;
        Work work = { .ctx = conv->share.poll };
        for (int64_t c = 0; c < n_in && planes != NULL && !work.stops; c++) {
                for (int64_t k = 0; k < n_out && !work_stops(&work, WEIGHT_STEPS); k++) {
                        double one[MAX_PLANES];
                        transform_weight(step, kernels + (k * n_in + c) * 9, one);
                        for (int64_t p = 0; p < n_planes; p++)
                                planes[(p * n_in + c) * n_out + k] = (float)one[p];
                }
        }
        return planes;
}

// ---- the guard ----
enum { SAMPLES = 16 };
// ABSOLUTE_TOLERANCE: the error that assert_close accepts in a result near 0. MOST_UNEVEN: the
// largest accepted ratio of a tile's largest input to the largest input that one result reads.
static const float ABSOLUTE_TOLERANCE = 1e-5f, MOST_UNEVEN = 16;

static float noise_at(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (float)((double)(*state >> 11) / 4503599627370496.0 - 1);
}

// The larger error; NaN counts as larger than all.
static double worse(double a, double b)
{
        return b > a || isnan(b) ? b : a;
}

typedef struct Guard {
        const DnnlConv *conv;
        int step;
        const float *planes;
        float *tile, *moved;     // a tile of noise; the same transformed
        double direct, winograd; // largest errors so far against sums in double: plain sum, Winograd
} Guard;

// Measures the errors of the tile's results in output channel `k`.
static void tile_errors(Guard *guard, int64_t k)
{
        int step = guard->step, side = step + 2, n_planes = side * side;
        int64_t n_out = guard->conv->weight.size[0], n_in = guard->conv->weight.size[1];
        const float *kernel = (const float *)guard->conv->weight_data + k * n_in * 9;
        float products[MAX_PLANES * MOST_LANES] = { 0 }, result[MAX_STEP * MAX_STEP * MOST_LANES];
        for (int64_t p = 0; p < n_planes; p++)
                for (int64_t c = 0; c < n_in; c++)
                        products[p * MOST_LANES] +=
                                guard->moved[p * n_in + c] * guard->planes[(p * n_in + c) * n_out + k];
        TileTask whole = { .high = { step, step },
                           .row_step = step * MOST_LANES,
                           .column_step = MOST_LANES,
                           .channels = MOST_LANES,
                           .plane = MOST_LANES };
        kernels_of(&plain_steps, step).give(&whole, products, result);
        for (int i = 0; i < step; i++) {
                for (int j = 0; j < step; j++) {
                        double exact = 0;
                        float plain = 0;
                        for (int64_t c = 0; c < n_in; c++) {
                                for (int t = 0; t < 9; t++) {
                                        float x = guard->tile[((i + t / 3) * side + j + t % 3) * n_in + c],
                                              w = kernel[c * 9 + t];
                                        exact += (double)x * (double)w;
                                        plain += x * w;
                                }
                        }
                        guard->direct = worse(guard->direct, fabs((double)plain - exact));
                        guard->winograd = worse(guard->winograd,
                                                fabs((double)result[(i * step + j) * MOST_LANES] - exact));
                }
        }
}

static Status is_accurate(const DnnlConv *conv, int step, const float *planes, bool *out_accurate,
                          float *out_error)
{
        int64_t n_out = conv->weight.size[0], n_in = conv->weight.size[1], side = step + 2,
                n = side * side * n_in;
        _cleanup_(freep) float *tile = new_array((size_t)(2 * n), sizeof(float));
        if (tile == NULL)
                return fail_memory();
        Guard guard = { .conv = conv, .step = step, .planes = planes, .tile = tile, .moved = tile + n };
        uint64_t state = 1;
        TileTask whole = { .high = { (int)side, (int)side },
                           .row_step = side * n_in,
                           .column_step = n_in,
                           .channels = n_in,
                           .plane = n_in };
        for (int64_t i = 0; i < n; i++)
                tile[i] = noise_at(&state);
        kernels_of(&plain_steps, step).take(&whole, tile, guard.moved);
        for (int64_t i = 0; i < SAMPLES; i++) {
                TRY(run_poll(conv->share.poll)); // ends here, too, if transform_weights was stopped
                tile_errors(&guard, i * n_out / SAMPLES);
        }
        *out_accurate = guard.winograd <= 4 * guard.direct; // false for NaN
        *out_error = (float)guard.winograd;
        return STATUS_OK;
}

// ---- making ----
static bool fits(const DnnlConv *conv)
{
        if (conv->input.rank != 4 || conv->groups != 1 || conv->epilogue.add_out ||
            conv->epilogue.activation != DNNL_NOTHING || conv->weight.size[1] % MOST_LANES != 0 ||
            conv->weight.size[0] % (2 * MOST_LANES) != 0 || !meta_is_channels_last(&conv->input) ||
            !meta_is_channels_last(&conv->out))
                return false;
        for (int i = 0; i < 2; i++) {
                int64_t out = conv->out.size[2 + i], in = conv->input.size[2 + i];
                if (conv->weight.size[2 + i] != 3 || conv->stride[i] != 1 || conv->dilation[i] != 1 ||
                    conv->padding[i] > 2 || out != in + 2 * conv->padding[i] - 2)
                        return false;
        }
        return true;
}

// Measured with AVX-512. With narrower instruction sets the direct kernel already runs near the
// CPU's peak rate.
int winograd_rule(const DnnlConv *conv)
{
        int64_t n_in = conv->weight.size[1], n_out = conv->weight.size[0], height = conv->out.size[2],
                width = conv->out.size[3];
        if (!fits(conv) || n_in < 32 || n_out < 32 || height < 7 || width < 7)
                return 0;
        int64_t n_tiles = (height + 3) / 4 * ((width + 3) / 4); // of one image: the batch has no say
        return n_tiles >= 12 ? 4 : 2;
}

// Threads take blocks of their own where images are larger than the weights, as panels_cut has it:
// a thread then finds in its cache what it wrote before, and waits for no other one.
static void divide(Winograd *winograd, int n_threads)
{
        enum { LEAST_TILES = 28 };
        int64_t n_in = winograd->in.size[1], n_out = winograd->out.size[1], n_tiles = winograd->n_tiles;
        int64_t most = MAX(BLOCK_BYTES / (int64_t)sizeof(float) / winograd->planes / (n_in + n_out),
                           (int64_t)LEAST_TILES);
        bool apart = n_threads > 1 && n_tiles >= LEAST_TILES * (int64_t)n_threads &&
                     meta_numel(&winograd->in) + meta_numel(&winograd->out) > winograd->planes * n_in * n_out;
        int64_t n_apart = apart ? n_threads : 1, n_blocks = (n_tiles + most - 1) / most;
        winograd->n_apart = (int)n_apart;
        winograd->n_blocks = (n_blocks + n_apart - 1) / n_apart * n_apart;
        winograd->block = (n_tiles + winograd->n_blocks - 1) / winograd->n_blocks;
}

static Status init(const DnnlConv *conv, const DirectClamp *clamp, int step, const float *planes,
                   Winograd *winograd)
{
        int64_t n_in = conv->weight.size[1], n_out = conv->weight.size[0];
        winograd->step = step;
        winograd->side = step + 2;
        winograd->planes = winograd->side * winograd->side;
        winograd->in = conv->input;
        winograd->out = conv->out;
        winograd->clamp = *clamp;
        memcpy(winograd->pad, conv->padding, sizeof(winograd->pad));
        winograd->rows = (conv->out.size[2] + step - 1) / step;
        winograd->columns = (conv->out.size[3] + step - 1) / step;
        winograd->n_tiles = conv->out.size[0] * winograd->rows * winograd->columns;
        divide(winograd, conv->n_threads);
        winograd->kernels = kernels_of(kernel_variant(&winograd_family, DTYPE_F32), step);
        if (conv->bias_data != NULL) {
                winograd->bias = new_array((size_t)n_out, sizeof(float));
                if (winograd->bias == NULL)
                        return fail_memory();
                memcpy(winograd->bias, conv->bias_data, (size_t)n_out * sizeof(float));
        }
        TRY(late_direct_new(conv, clamp, &winograd->fallback));
        DirectPlanes product = { .n_planes = winograd->planes,
                                 .n_k = n_in,
                                 .n_columns = n_out,
                                 .b = planes,
                                 .source = { .share = conv->share, .data = conv->weight_data },
                                 .format = step == 4 ? "winograd_4x4" : "winograd_2x2" };
        return direct_products_new(&product, &winograd->products);
}

Status winograd_new(const DnnlConv *conv, const DirectClamp *clamp, int step, Winograd **out_winograd)
{
        bool accurate = false;
        *out_winograd = NULL;
        if (direct_isa() == NULL || !fits(conv))
                return STATUS_OK;
        _cleanup_(freep) float *planes = transform_weights(conv, step);
        Winograd *winograd = calloc(1, sizeof(*winograd));
        Status status = planes == NULL || winograd == NULL
                                ? fail_memory()
                                : is_accurate(conv, step, planes, &accurate, &winograd->error);
        if (status == STATUS_OK && accurate)
                status = init(conv, clamp, step, planes, winograd);
        if (status != STATUS_OK || winograd->products == NULL || winograd->fallback == NULL) {
                winograd_free(winograd);
                return status;
        }
        snprintf(winograd->name, sizeof(winograd->name), "winograd_%dx%d:%s", step, step,
                 isa_name(direct_isa()->isa));
        *out_winograd = winograd;
        return STATUS_OK;
}

void winograd_free(Winograd *winograd)
{
        if (winograd == NULL)
                return;
        direct_products_free(winograd->products);
        late_direct_free(winograd->fallback);
        free(winograd->bias);
        free(winograd);
}

const char *winograd_name(const Winograd *winograd)
{
        return winograd->name;
}

// Floats from one plane of a block to the next. An odd number of cache lines: where planes lie a
// multiple of 4 KB apart, one tile's values share a few lines of the first-level cache.
static int64_t plane_step(int64_t n_tiles, int64_t channels)
{
        return (n_tiles * channels / LINE_FLOATS | 1) * LINE_FLOATS;
}

// Bytes of one block's planes: transformed tiles (input channels) or products (output channels).
static size_t taken_bytes(const Winograd *winograd, int64_t channels)
{
        return storage_padded((size_t)(winograd->planes * plane_step(winograd->block, channels)) *
                              sizeof(float));
}

static int64_t n_pixels(const Winograd *winograd)
{
        return winograd->in.size[2] * winograd->in.size[3];
}

// Of one block.
static size_t block_bytes(const Winograd *winograd)
{
        return taken_bytes(winograd, winograd->in.size[1]) + taken_bytes(winograd, winograd->out.size[1]);
}

// What a run works in, without the marks of images.
static size_t work_bytes(const Winograd *winograd)
{
        size_t n = (size_t)winograd->n_apart * block_bytes(winograd);
        return MAX(MAX(n, late_direct_scratch(winograd->fallback)),
                   (size_t)n_pixels(winograd) * sizeof(float));
}

size_t winograd_scratch(const Winograd *winograd)
{
        return work_bytes(winograd) + (size_t)winograd->in.size[0] * sizeof(atomic_bool);
}

// ---- running ----
typedef struct Block {
        const RunContext *ctx;
        const Winograd *winograd;
        const float *in, *residual;
        float *out, *taken, *products;
        int64_t first, n;     // tiles
        atomic_bool *refused; // by image: some result is not finite
} Block;

static void locate(const Winograd *winograd, int64_t tile, int64_t *image, int64_t *row, int64_t *column)
{
        *column = tile % winograd->columns * winograd->step;
        *row = tile / winograd->columns % winograd->rows * winograd->step;
        *image = tile / winograd->columns / winograd->rows;
}

static int clip(int64_t value, int most)
{
        return value < 0 ? 0 : value > most ? most : (int)value;
}

// ---- the input's range ----
// The error of a tile is proportional to its largest input. All results of the tile get it, also
// those that do not read that input.
typedef struct Range { // of one image
        const RunContext *ctx;
        const Winograd *winograd;
        const float *in;
        int32_t *pixels; // the largest magnitude among a pixel's channels, as the float's bits
        atomic_bool uneven;
} Range;

static void look_at_pixels(void *argument, int64_t begin, int64_t end)
{
        const Range *range = argument;
        int64_t channels = range->winograd->in.size[1];
        Work work = { .ctx = range->ctx };
        for (int64_t i = begin; i < end && !work_stops(&work, channels / 4); i++)
                range->pixels[i] = range->winograd->kernels.largest(range->in + i * channels, channels);
}

// Whether a result whose inputs are at most `least` stays accurate in a tile with an input of
// `most` (magnitudes, as bits).
static bool is_even(const Winograd *winograd, int32_t most, int32_t least)
{
        float large, small;
        memcpy(&large, &most, sizeof(large));
        memcpy(&small, &least, sizeof(small));
        return large * winograd->error <= ABSOLUTE_TOLERANCE || large <= MOST_UNEVEN * small;
}

// The largest magnitude of each 3x3 window is found down the
// columns, then across the row.
static bool tile_is_even(const Winograd *winograd, const int32_t *pixels, int64_t row, int64_t column)
{
        const TensorMeta *in = &winograd->in, *out = &winograd->out;
        int32_t line[MAX_SIDE] = { 0 }, most = 0, least = INT32_MAX;
        int high[] = { clip(out->size[2] - row, winograd->step),
                       clip(out->size[3] - column, winograd->step) };
        for (int i = 0; i < high[0]; i++) {
                int64_t y = row + i - winograd->pad[0], first = MAX(y, (int64_t)0),
                        next = MIN(y + 3, in->size[2]);
                for (int j = 0; j < high[1] + 2; j++) {
                        int64_t x = column + j - winograd->pad[1];
                        line[j] = 0;
                        for (y = first; y < next && x >= 0 && x < in->size[3]; y++)
                                line[j] = MAX(line[j], pixels[y * in->size[3] + x]);
                }
                for (int j = 0; j < high[1]; j++) {
                        int32_t window = MAX(MAX(line[j], line[j + 1]), line[j + 2]);
                        most = MAX(most, window);
                        least = MIN(least, window);
                }
        }
        return is_even(winograd, most, least);
}

static void look_at_tiles(void *argument, int64_t begin, int64_t end)
{
        Range *range = argument;
        const Winograd *winograd = range->winograd;
        int64_t image, row, column;
        for (int64_t t = begin; t < end; t++) {
                locate(winograd, t, &image, &row, &column);
                if (!tile_is_even(winograd, range->pixels, row, column))
                        atomic_store_explicit(&range->uneven, true, memory_order_relaxed);
        }
}

static Status look_at_image(Range *range)
{
        const Winograd *winograd = range->winograd;
        int32_t most = 0, least = INT32_MAX;
        TRY(parallel_for(range->ctx, n_pixels(winograd), 512, look_at_pixels, range));
        Work work = { .ctx = range->ctx };
        for (int64_t i = 0, n = n_pixels(winograd); i < n && !work_stops(&work, 1); i++) {
                most = MAX(most, range->pixels[i]);
                least = MIN(least, range->pixels[i]);
        }
        if (!is_even(winograd, most, least)) // some pixel is far from another, perhaps not in one tile
                TRY(parallel_for(range->ctx, winograd->rows * winograd->columns, 32, look_at_tiles, range));
        return work.stops ? run_poll(range->ctx) : STATUS_OK;
}

// Marks the images that are uneven.
static Status find_uneven(const Block *block, void *scratch, int64_t *out_n)
{
        const Winograd *winograd = block->winograd;
        *out_n = 0;
        for (int64_t i = 0; i < winograd->in.size[0]; i++) {
                Range range = { .ctx = block->ctx,
                                .winograd = winograd,
                                .in = block->in + i * winograd->in.stride[0],
                                .pixels = scratch };
                TRY(look_at_image(&range));
                bool uneven = atomic_load_explicit(&range.uneven, memory_order_relaxed);
                atomic_init(&block->refused[i], uneven);
                *out_n += uneven;
        }
        return STATUS_OK;
}

// ---- tiles ----
enum { TILE_STEPS = 16 }; // of one channel

static void take_tiles(void *argument, int64_t begin, int64_t end)
{
        const Block *block = argument;
        const Winograd *winograd = block->winograd;
        const TensorMeta *in = &winograd->in;
        int64_t channels = in->size[1], image, row, column;
        int side = winograd->side;
        TileTask task = { .row_step = in->stride[2],
                          .column_step = in->stride[3],
                          .channels = channels,
                          .plane = plane_step(block->n, channels) };
        Work work = { .ctx = block->ctx };
        for (int64_t t = begin; t < end && !work_stops(&work, channels * TILE_STEPS); t++) {
                locate(winograd, block->first + t, &image, &row, &column);
                row -= winograd->pad[0];
                column -= winograd->pad[1];
                task.low[0] = clip(-row, side);
                task.low[1] = clip(-column, side);
                task.high[0] = clip(in->size[2] - row, side);
                task.high[1] = clip(in->size[3] - column, side);
                const float *from =
                        block->in + image * in->stride[0] + row * in->stride[2] + column * in->stride[3];
                winograd->kernels.take(&task, from, block->taken + t * channels);
        }
}

static void give_tiles(void *argument, int64_t begin, int64_t end)
{
        const Block *block = argument;
        const Winograd *winograd = block->winograd;
        const TensorMeta *out = &winograd->out;
        int64_t channels = out->size[1], image, row, column;
        TileTask task = { .row_step = out->stride[2],
                          .column_step = out->stride[3],
                          .channels = channels,
                          .plane = plane_step(block->n, channels),
                          .bias = winograd->bias,
                          .clamp = winograd->clamp };
        Work work = { .ctx = block->ctx };
        for (int64_t t = begin; t < end && !work_stops(&work, channels * TILE_STEPS); t++) {
                locate(winograd, block->first + t, &image, &row, &column);
                task.high[0] = clip(out->size[2] - row, winograd->step);
                task.high[1] = clip(out->size[3] - column, winograd->step);
                int64_t at = image * out->stride[0] + row * out->stride[2] + column * out->stride[3];
                task.residual = block->residual == NULL ? NULL : block->residual + at;
                if (!winograd->kernels.give(&task, block->products + t * channels, block->out + at))
                        atomic_store_explicit(&block->refused[image], true, memory_order_relaxed);
        }
}

static Status run_block(Block *block, int64_t index)
{
        const Winograd *winograd = block->winograd;
        int64_t n_in = winograd->in.size[1], n_out = winograd->out.size[1];
        block->first = index * winograd->n_tiles / winograd->n_blocks;
        block->n = (index + 1) * winograd->n_tiles / winograd->n_blocks - block->first;
        TRY(parallel_for(block->ctx, block->n, 8, take_tiles, block));
        DirectRows rows = { block->n, block->taken, block->products, plane_step(block->n, n_in),
                            plane_step(block->n, n_out) };
        TRY(direct_products_run(winograd->products, block->ctx, &rows));
        return parallel_for(block->ctx, block->n, 8, give_tiles, block);
}

// The blocks of threads that have some of their own. Failures are those of run_poll.
static void run_apart(void *argument, int64_t begin, int64_t end)
{
        const Block *shared = argument;
        const Winograd *winograd = shared->winograd;
        int64_t n = winograd->n_blocks / winograd->n_apart;
        RunContext ctx;
        run_context_within(&ctx, shared->ctx);
        for (int64_t thread = begin; thread < end; thread++) {
                Block block = *shared;
                block.ctx = &ctx;
                block.taken += thread * (int64_t)(block_bytes(winograd) / sizeof(float));
                block.products += thread * (int64_t)(block_bytes(winograd) / sizeof(float));
                for (int64_t i = thread * n; i < (thread + 1) * n; i++)
                        if (run_block(&block, i) != STATUS_OK)
                                return;
        }
}

static Status run_tiles(Block *block)
{
        const Winograd *winograd = block->winograd;
        if (winograd->n_apart > 1)
                TRY(parallel_for(block->ctx, winograd->n_apart, 1, run_apart, block));
        for (int64_t i = 0; winograd->n_apart == 1 && i < winograd->n_blocks; i++)
                TRY(run_block(block, i));
        return run_poll(block->ctx); // parallel_for does not poll after a single piece of tiles
}

Status winograd_run(const Winograd *winograd, const RunContext *ctx, const float *in, const float *residual,
                    float *out, void *scratch)
{
        char *bytes = scratch;
        Block block = { .ctx = ctx,
                        .winograd = winograd,
                        .in = in,
                        .residual = residual,
                        .out = out,
                        .taken = scratch,
                        .products = (float *)(bytes + taken_bytes(winograd, winograd->in.size[1])),
                        .refused = (atomic_bool *)(bytes + work_bytes(winograd)) };
        int64_t n_images = winograd->in.size[0], n_uneven;
        TRY(find_uneven(&block, scratch, &n_uneven));
        if (n_uneven < n_images)
                TRY(run_tiles(&block));
        for (int64_t i = 0; i < n_images; i++) {
                int64_t at = i * winograd->out.stride[0];
                const DirectConv *direct;
                if (!atomic_load_explicit(&block.refused[i], memory_order_relaxed))
                        continue;
                TRY(late_direct_get(winograd->fallback, ctx, &direct));
                TRY(direct_conv_run(direct, ctx, in + i * winograd->in.stride[0],
                                    residual == NULL ? NULL : residual + at, out + at, scratch));
        }
        return STATUS_OK;
}
