// SPDX-License-Identifier: Apache-2.0
// conv.c: convolution as a matrix product whose right side is never stored: weight [out][in *
// kernel] times columns [in * kernel][pixels], where panels of columns are gathered from the input
// while they are packed. Transposed convolution is in conv_transposed.c. One by one kernels need no
// gathering. Groups with very few channels (depthwise) go row by row instead: a product would waste
// its tile on them.
#include "core/kernels/conv/conv.h"
#include <string.h>
#include "core/kernels/conv/conv_transposed.h"

typedef struct ConvColumns {
        const Conv *conv;
        const char *input;
        size_t item_bytes;
} ConvColumns;

// Position along one axis of the input that output position `o` reads through tap `tap`; -1:
// padding.
static inline int64_t source_position(const Conv *conv, int axis, int64_t o, int64_t tap)
{
        int64_t i = o * conv->stride[axis] - conv->pad[axis] + tap * conv->dilation[axis];
        return i >= 0 && i < conv->in_size[axis] ? i : -1;
}

// Neighbouring output positions.
typedef struct Span {
        int64_t first, n;
} Span;

// Columns of one output row, read through tap `tap`: zero where the input has none.
static inline __attribute__((always_inline)) void gather_row(const Conv *conv, const char *row, Span columns,
                                                             int64_t tap, char *out, const size_t size)
{
        int64_t o = columns.first, n = columns.n;
        int64_t step = conv->in_stride[4] * (int64_t)size;
        // Input column of output column o + x: first + x * stride; [low, high) are the x that hit
        // the input.
        int64_t stride = conv->stride[2], first = o * stride - conv->pad[2] + tap * conv->dilation[2];
        int64_t low = first >= 0 ? 0 : MIN(n, (-first + stride - 1) / stride);
        int64_t high = first >= conv->in_size[2]
                               ? low
                               : MAX(low, MIN(n, (conv->in_size[2] - 1 - first) / stride + 1));
        memset(out, 0, (size_t)low * size);
        const char *from = row + (first + low * stride) * step;
        if (high > low && stride == 1 && conv->in_stride[4] == 1) {
                memcpy(out + (size_t)low * size, from, (size_t)(high - low) * size);
        } else {
                for (int64_t x = low; x < high; x++, from += stride * step)
                        memcpy(out + (size_t)x * size, from, size);
        }
        memset(out + (size_t)high * size, 0, (size_t)(n - high) * size);
}

typedef struct Tap {
        int64_t channel, at[3];
} Tap;

static Tap tap_of(const Conv *conv, int64_t k)
{
        Tap tap;
        for (int axis = 2; axis >= 0; axis--) {
                tap.at[axis] = k % conv->kernel[axis];
                k /= conv->kernel[axis];
        }
        tap.channel = k;
        return tap;
}

static void tap_next(const Conv *conv, Tap *tap)
{
        for (int axis = 2; axis >= 0; axis--) {
                if (++tap->at[axis] < conv->kernel[axis])
                        return;
                tap->at[axis] = 0;
        }
        tap->channel++;
}

// One row of a panel: pixels, all through one tap.
static inline __attribute__((always_inline)) void gather_pixels(const Conv *conv, const char *input,
                                                                const Tap *tap, Span pixels, char *out,
                                                                const size_t size)
{
        int64_t j = pixels.first, n = pixels.n;
        int64_t width = conv->out_size[2], x = j % width, y = j / width % conv->out_size[1],
                z = j / width / conv->out_size[1];
        const char *plane = input + tap->channel * conv->in_stride[1] * (int64_t)size;
        while (n > 0) {
                int64_t run = MIN(n, width - x);
                int64_t in_z = source_position(conv, 0, z, tap->at[0]),
                        in_y = source_position(conv, 1, y, tap->at[1]);
                if (in_z < 0 || in_y < 0)
                        memset(out, 0, (size_t)run * size);
                else
                        gather_row(conv,
                                   plane + (in_z * conv->in_stride[2] + in_y * conv->in_stride[3]) *
                                                   (int64_t)size,
                                   (Span){ x, run }, tap->at[2], out, size);
                out += (size_t)run * size;
                n -= run;
                x = 0;
                if (++y == conv->out_size[1]) {
                        y = 0;
                        z++;
                }
        }
}

static void gather_columns(const void *context, const GemmBlock *block, int width, void *panels)
{
        const ConvColumns *columns = context;
        const Conv *conv = columns->conv;
        int64_t image = block->item / conv->groups, group = block->item % conv->groups;
        const char *input =
                columns->input + (image * conv->in_stride[0] + group * conv->group_in * conv->in_stride[1]) *
                                         (int64_t)columns->item_bytes;
        char *out = panels;
        size_t row_bytes = (size_t)width * columns->item_bytes;
        for (int64_t panel = 0; panel < block->n_j; panel += width) {
                Span pixels = { block->j + panel, MIN(block->n_j - panel, width) };
                int64_t n = pixels.n;
                Tap tap = tap_of(conv, block->k);
                for (int64_t i = 0; i < block->n_k; i++, out += row_bytes) {
                        if (columns->item_bytes == 4)
                                gather_pixels(conv, input, &tap, pixels, out, 4);
                        else
                                gather_pixels(conv, input, &tap, pixels, out, 8);
                        memset(out + (size_t)n * columns->item_bytes, 0,
                               row_bytes - (size_t)n * columns->item_bytes);
                        tap_next(conv, &tap);
                }
        }
}

// A part of one output row.
typedef struct RowPart {
        int64_t z, y, x, n; // n columns from x on
} RowPart;

typedef struct ConvRows {
        const Conv *conv;
        const void *input, *weight, *bias;
        void *out;
        const RunContext *ctx;
} ConvRows;

#define ROWS(x) x##_f32
#define ROWS_T  float
#include "core/kernels/conv/conv_rows.inc"
#undef ROWS
#undef ROWS_T
#define ROWS(x) x##_f64
#define ROWS_T  double
#include "core/kernels/conv/conv_rows.inc"
#undef ROWS
#undef ROWS_T

static int64_t product3(const int64_t *sizes)
{
        return sizes[0] * sizes[1] * sizes[2];
}

// The distance between neighbouring pixels when all are evenly spaced in row-major order; false
// otherwise.
static bool even_step(const int64_t *size, const int64_t *stride, int64_t *out_step)
{
        int64_t count = 1, step = 1;
        for (int axis = 2; axis >= 0; axis--) {
                if (size[axis] == 1)
                        continue;
                if (count == 1)
                        step = stride[axis];
                else if (stride[axis] != step * count)
                        return false;
                count *= size[axis];
        }
        *out_step = step;
        return true;
}

// Pixels of the input can stand for columns as they are: one tap, no stride, no padding.
static bool is_pointwise(const Conv *conv)
{
        for (int axis = 0; axis < 3; axis++) {
                if (conv->kernel[axis] != 1 || conv->stride[axis] != 1 || conv->pad[axis] != 0 ||
                    conv->in_size[axis] != conv->out_size[axis])
                        return false;
        }
        return true;
}

// The kernel covers a contiguous input, so every sample has one pixel.
static bool covers_input(const Conv *conv)
{
        int64_t step = 1;
        for (int axis = 2; axis >= 0; axis--) {
                if (conv->kernel[axis] != conv->in_size[axis] || conv->pad[axis] != 0 ||
                    conv->out_size[axis] != 1 || (conv->kernel[axis] > 1 && conv->dilation[axis] != 1) ||
                    (conv->in_size[axis] > 1 && conv->in_stride[2 + axis] != step))
                        return false;
                step *= conv->in_size[axis];
        }
        return conv->groups == 1 && (conv->group_in == 1 || conv->in_stride[1] == step);
}

// A row for each sample by the rows of the weight. Samples are apart, so that one's result does not
// depend on how many there are.
static Status run_covering(const RunContext *ctx, const Conv *conv, const ConvRows *rows)
{
        int64_t depth = conv->group_in * product3(conv->kernel);
        Gemm task = { .dtype = conv->dtype,
                      .m = 1,
                      .n = conv->group_out,
                      .k = depth,
                      .alpha = 1,
                      .beta = 1,
                      .batch_rank = 1,
                      .batch_size = { conv->n },
                      .a = { (void *)(uintptr_t)rows->input, depth, 1, { conv->in_stride[0] } },
                      .b = { (void *)(uintptr_t)rows->weight, 1, depth, { 0 } },
                      .c = { rows->out, 0, conv->out_stride[1], { conv->out_stride[0] } } };
        if (rows->bias != NULL)
                task.add = (GemmMatrix){ (void *)(uintptr_t)rows->bias, 0, 1, { 0 } };
        return gemm(ctx, &task);
}

Status conv_run(const RunContext *ctx, const Conv *conv, const void *input, const void *weight,
                const void *bias, void *out)
{
        int64_t depth = conv->group_in * product3(conv->kernel), pixels = product3(conv->out_size);
        if (conv->n == 0 || pixels == 0 || conv->group_out == 0)
                return STATUS_OK;
        if (conv->transposed)
                return conv_run_transposed(ctx, conv, input, weight, bias, out);
        if (covers_input(conv))
                return run_covering(ctx, conv, &(ConvRows){ conv, input, weight, bias, out, ctx });
        bool thin = conv->groups > 1 && conv->group_out <= 2 && depth <= 128;
        if (thin && conv->dtype != DTYPE_I64) {
                ConvRows rows = { conv, input, weight, bias, out, ctx };
                int64_t grain = MAX((int64_t)1, 500000 / MAX((int64_t)1, pixels * depth));
                TRY(parallel_for(ctx, conv->n * conv->groups * conv->group_out, grain,
                                 conv->dtype == DTYPE_F32 ? conv_rows_f32 : conv_rows_f64, &rows));
                return run_poll(ctx);
        }
        ConvColumns columns = { conv, input, dtype_info[conv->dtype].bytes };
        Gemm task = { .dtype = conv->dtype,
                      .m = conv->group_out,
                      .n = pixels,
                      .k = depth,
                      .alpha = 1,
                      .beta = 1,
                      .batch_rank = 2,
                      .batch_size = { conv->n, conv->groups },
                      .pack_b = gather_columns,
                      .pack_context = &columns };
        task.a = (GemmMatrix){ (void *)(uintptr_t)weight, depth, 1, { 0, conv->group_out * depth } };
        int64_t step;
        if (!even_step(conv->out_size, conv->out_stride + 2, &step))
                return fail(STATUS_INTERNAL, "convolution into unevenly spaced pixels");
        task.c = (GemmMatrix){
                out, conv->out_stride[1], step, { conv->out_stride[0], conv->group_out * conv->out_stride[1] }
        };
        if (bias != NULL)
                task.add = (GemmMatrix){ (void *)(uintptr_t)bias, 1, 0, { 0, conv->group_out } };
        if (is_pointwise(conv) && even_step(conv->in_size, conv->in_stride + 2, &step)) {
                task.pack_b = NULL;
                task.b = (GemmMatrix){ (void *)(uintptr_t)input,
                                       conv->in_stride[1],
                                       step,
                                       { conv->in_stride[0], conv->group_in * conv->in_stride[1] } };
        }
        return gemm(ctx, &task);
}
