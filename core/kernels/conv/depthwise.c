// SPDX-License-Identifier: Apache-2.0
// depthwise.c: rows of results in stretches of up to eight pixels. Of a window only the part inside
// the image is summed: pixels at the left and right border are stretches of their own. Some
// channels go down a band of rows before the next ones, so that the first cache has what their
// windows share. Sequences take each channel's row into a frame of zeros instead and go along it.
// Groups of four channels with as many results are computed likewise: a vector holds whole groups.
#include "core/kernels/conv/depthwise.h"

#include <stdio.h>
#include <string.h>

enum {
        DEPTHWISE_PIXELS = 8,
        DEPTHWISE_VECTORS = 8,
        DEPTHWISE_COLUMNS = 7,
        FOUR = 4,
        MAX_TAPS = 128,
        LEAST_CHANNELS = 32,
        BLOCK_FLOATS = 6 << 10,
        BAND_FLOATS = 48 << 10
};
// of sequences: results at once, what a window may span, floats that are read behind it
enum { LEAST_WORK = 100000 }; // multiplications of a thread
enum { ROW_VECTORS = 8, ROW_RESULTS = 1024, ROW_REACH = 1024, ROW_SLACK = 16 };

// Three, five or seven neighbouring columns, windows that begin one or two pixels apart; groups of
// four channels; anything else.
typedef enum Window {
        WINDOW_ANY,
        WINDOW_3,
        WINDOW_3_BY_2,
        WINDOW_5,
        WINDOW_5_BY_2,
        WINDOW_7,
        WINDOW_FOURS
} Window;

// Steps in floats; of channel 0, `in` and `weights` of the window's first tap inside the image.
typedef struct Stretch {
        const float *in, *weights, *bias;
        float *out;
        const float *residual;     // NULL: none
        int64_t channels, in_step; // from a pixel to the next: of results, of the input
        int64_t first, next;       // channels
        int64_t n_rows, n_columns; // taps
        int64_t in_row, in_column; // from a tap to the next
        int64_t weight_row, weight_column;
        int64_t width; // WINDOW_FOURS: from the weights of one channel of the groups to the next
        Window window; // of stretches of several pixels
        DirectClamp clamp;
} Stretch;

// Up to ROW_RESULTS results of one channel, with stride 1.
typedef struct Row {
        const float *in, *weights; // ROW_SLACK floats behind the last tap's are readable
        const float *residual;     // NULL: none
        float *out, bias;
        int64_t n, dilation;
        int n_taps;
        DirectClamp clamp;
} Row;

#if defined(__x86_64__)
#include "core/kernels/conv/direct_avx512.h"
#include "core/kernels/conv/depthwise.inc"
#include "core/kernels/conv/direct_off.h"

#include "core/kernels/conv/direct_avx2.h"
#include "core/kernels/conv/depthwise.inc"
#include "core/kernels/conv/direct_off.h"
#endif

typedef void Stretches(int n_pixels, const Stretch *stretch);
typedef struct DepthwiseIsa {
        Isa isa;
        Stretches *run;
        void (*row)(const Row *row);
} DepthwiseIsa;

#if defined(__x86_64__)
static const DepthwiseIsa avx2_depthwise = { ISA_AVX2, avx2_stretches, avx2_row },
                          avx512_depthwise = { ISA_AVX512, avx512_stretches, avx512_row };
static const KernelVariant depthwise_variants[] = {
        { DTYPE_F32, ISA_AVX2, &avx2_depthwise },
        { DTYPE_F32, ISA_AVX512, &avx512_depthwise },
};
const KernelFamily depthwise_family = { "depthwise", ARRAY_LENGTH(depthwise_variants), depthwise_variants };
#else
const KernelFamily depthwise_family = { .name = "depthwise" };
#endif

struct Depthwise {
        TensorMeta in, out;
        int64_t kernel[2], stride[2], pad[2], dilation[2];
        int64_t depth;        // channels of a group: 1 or FOUR
        Storage *packed;      // counted: of weights, maybe shared
        const float *weights; // [tap][of the group][result], padded to whole vectors; [channel][tap]
        float *bias;
        int64_t width; // ... that many
        DirectClamp clamp;
        Stretches *run;
        void (*row)(const Row *row); // of sequences; NULL: images
        char name[32];
};

static bool fits(const DnnlConv *conv)
{
        int64_t channels = conv->input.rank == 4 ? conv->input.size[1] : 0, depth = conv->weight.size[1];
        return channels > 1 && (depth == 1 || depth == FOUR) && conv->groups * depth == channels &&
               conv->out.size[1] == channels && !conv->epilogue.add_out &&
               conv->epilogue.activation == DNNL_NOTHING &&
               (meta_is_channels_last(&conv->input) || meta_lies_by_pixels(&conv->input)) &&
               meta_is_channels_last(&conv->out) && meta_numel(&conv->out) > 0 &&
               conv->weight.size[2] <= MAX_TAPS && conv->weight.size[3] <= MAX_TAPS &&
               conv->weight.size[2] * conv->weight.size[3] <= MAX_TAPS && dnnl_conv_frame(conv) <= INT32_MAX;
}

static bool fits_rows(const DnnlConv *conv)
{
        int64_t channels = conv->input.rank == 3 ? conv->input.size[1] : 0;
        return channels > 1 && conv->groups == channels && conv->out.size[1] == channels &&
               !conv->epilogue.add_out && conv->epilogue.activation == DNNL_NOTHING &&
               meta_is_contiguous(&conv->out) && meta_numel(&conv->out) > 0 && conv->stride[0] == 1 &&
               conv->weight.size[2] <= MAX_TAPS && conv->dilation[0] <= ROW_REACH &&
               (conv->weight.size[2] - 1) * conv->dilation[0] <= ROW_REACH &&
               dnnl_conv_frame(conv) <= INT32_MAX;
}

typedef struct WeightsMaker {
        const DnnlConv *conv;
        int64_t width, depth, n_taps;
        bool rows;
} WeightsMaker;

static Status make_weights(void *context, Storage **out_storage)
{
        const WeightsMaker *maker = context;
        const float *from = maker->conv->weight_data;
        const TensorMeta *weight = &maker->conv->weight;
        _cleanup_(storage_unrefp) Storage *storage = NULL;
        int64_t n_taps = maker->n_taps, depth = maker->depth;
        TRY(storage_new((size_t)(maker->width * depth * n_taps) * sizeof(float), true, NULL, &storage));
        float *to = (float *)storage->data;
        int64_t tap_step = maker->rows ? 1 : maker->width, step = maker->rows ? n_taps : 1;
        Work work = { .ctx = maker->conv->share.poll };
        for (int64_t k = 0; k < n_taps * depth; k++) // [tap][of the group]
                for (int64_t c = 0; c < maker->conv->input.size[1] && !work_stops(&work, 1); c++)
                        to[k * tap_step + c * step] =
                                from[c * weight->stride[0] + k % depth * weight->stride[1] + k / depth];
        if (work.stops)
                return run_poll(maker->conv->share.poll);
        *out_storage = take_ptr(storage);
        return STATUS_OK;
}

static Status pack(const DnnlConv *conv, Depthwise *depthwise)
{
        int64_t channels = conv->input.size[1], n_taps = depthwise->kernel[0] * depthwise->kernel[1];
        char format[128];
        depthwise->width = (channels + 15) / 16 * 16;
        depthwise->bias = new_array((size_t)depthwise->width, sizeof(float));
        if (depthwise->bias == NULL)
                return fail_memory();
        snprintf(format, sizeof(format), "depthwise%s %ldx%ldx%ld by %ld,%ld",
                 depthwise->row == NULL ? "" : " rows", (long)n_taps, (long)depthwise->depth, (long)channels,
                 (long)conv->weight.stride[0], (long)conv->weight.stride[1]);
        PackSource source = pack_source(&conv->share, conv->weight_data);
        WeightsMaker maker = { .conv = conv,
                               .width = depthwise->width,
                               .depth = depthwise->depth,
                               .n_taps = n_taps,
                               .rows = depthwise->row != NULL };
        TRY(pack_cache_get(conv->share.storage == NULL ? NULL : conv->share.cache, format, &source, 1,
                           (PackMaker){ make_weights, &maker, conv->share.poll }, &depthwise->packed));
        depthwise->weights = (const float *)depthwise->packed->data;
        if (conv->bias_data != NULL)
                memcpy(depthwise->bias, conv->bias_data, (size_t)channels * sizeof(float));
        return STATUS_OK;
}

Status depthwise_new(const DnnlConv *conv, const DirectClamp *clamp, Depthwise **out_depthwise)
{
        *out_depthwise = NULL;
        const DepthwiseIsa *kernel = kernel_variant(&depthwise_family, DTYPE_F32);
        bool rows = fits_rows(conv);
        if (kernel == NULL || (!rows && !fits(conv)))
                return STATUS_OK;
        Depthwise *depthwise = calloc(1, sizeof(*depthwise));
        if (depthwise == NULL)
                return fail_memory();
        depthwise->in = conv->input;
        depthwise->out = conv->out;
        if (!rows) { // strides of dimensions of size 1 are arbitrary
                if (meta_is_channels_last(&depthwise->in))
                        meta_set_channels_last(&depthwise->in);
                meta_set_channels_last(&depthwise->out);
        }
        depthwise->clamp = *clamp;
        depthwise->run = kernel->run;
        depthwise->row = rows ? kernel->row : NULL;
        depthwise->kernel[1] = 1;
        depthwise->depth = conv->weight.size[1];
        for (int i = 0; i < conv->input.rank - 2; i++) {
                depthwise->kernel[i] = conv->weight.size[2 + i];
                depthwise->stride[i] = conv->stride[i];
                depthwise->pad[i] = conv->padding[i];
                depthwise->dilation[i] = conv->dilation[i];
        }
        snprintf(depthwise->name, sizeof(depthwise->name), "%s:%s",
                 depthwise->depth == 1 ? "depthwise" : "grouped", isa_name(kernel->isa));
        Status status = pack(conv, depthwise);
        if (status == STATUS_OK)
                *out_depthwise = depthwise;
        else
                depthwise_free(depthwise);
        return status;
}

void depthwise_free(Depthwise *depthwise)
{
        if (depthwise == NULL)
                return;
        storage_unref(depthwise->packed);
        free(depthwise->bias);
        free(depthwise);
}

const char *depthwise_name(const Depthwise *depthwise)
{
        return depthwise->name;
}

// ---- running ----
typedef struct DepthwiseRun {
        const RunContext *ctx;
        const Depthwise *depthwise;
        const float *in, *residual;
        float *out;
        int64_t first, next; // results of a row that have all columns of their windows inside the image
} DepthwiseRun;

typedef struct Taps {
        int64_t first, n;
} Taps;

// Which of n taps are inside an image of `size` pixels: the first one is at pixel `start`.
static Taps taps_inside(int64_t start, int64_t dilation, int64_t n, int64_t size)
{
        int64_t before = start >= 0 ? 0 : dilation == 1 ? -start : (-start + dilation - 1) / dilation;
        int64_t until = start >= size ? 0 : dilation == 1 ? size - start : (size - 1 - start) / dilation + 1;
        before = MIN(before, n);
        return (Taps){ before, MAX(MIN(until, n) - before, 0) };
}

// Results first..next - 1 of a row have all columns of their windows inside the image.
static void inner_columns(const Depthwise *depthwise, int64_t *out_first, int64_t *out_next)
{
        int64_t width = depthwise->out.size[3], stride = depthwise->stride[1], pad = depthwise->pad[1];
        int64_t reach = (depthwise->kernel[1] - 1) * depthwise->dilation[1] + 1,
                room = depthwise->in.size[3] + pad - reach;
        *out_first = MIN((pad + stride - 1) / stride, width);
        *out_next = room < 0 ? *out_first : MAX(MIN(room / stride + 1, width), *out_first);
}

// One row of results of an image, for the channels of `stretch`.
typedef struct OutRow {
        const DepthwiseRun *run;
        int64_t image, y;
        Taps rows;
} OutRow;

static void run_stretch(const OutRow *row, int64_t x, int n_pixels, Taps columns, Stretch *stretch)
{
        const Depthwise *depthwise = row->run->depthwise;
        const TensorMeta *in = &depthwise->in, *out = &depthwise->out;
        int64_t to = row->image * out->stride[0] + row->y * out->stride[2] + x * out->stride[3],
                y = row->y * depthwise->stride[0] - depthwise->pad[0];
        stretch->n_columns = columns.n;
        stretch->in = row->run->in + row->image * in->stride[0] + y * in->stride[2] +
                      (x * depthwise->stride[1] - depthwise->pad[1]) * in->stride[3] +
                      row->rows.first * stretch->in_row + columns.first * stretch->in_column;
        stretch->weights = depthwise->weights + row->rows.first * stretch->weight_row +
                           columns.first * stretch->weight_column;
        stretch->out = row->run->out + to;
        stretch->residual = row->run->residual == NULL ? NULL : row->run->residual + to;
        depthwise->run(n_pixels, stretch);
}

static void run_row(const OutRow *row, Stretch *stretch, Work *work)
{
        const Depthwise *depthwise = row->run->depthwise;
        int64_t width = depthwise->out.size[3], first = row->run->first, next = row->run->next;
        int64_t steps = (stretch->next - stretch->first) * depthwise->kernel[0] * depthwise->kernel[1] *
                        depthwise->depth / 4;
        stretch->n_rows = row->rows.n;
        for (int64_t x = 0; x < width && !work_stops(work, steps); x++) { // the border
                x = x == first ? next : x;
                if (x == width)
                        break;
                Taps columns =
                        taps_inside(x * depthwise->stride[1] - depthwise->pad[1], depthwise->dilation[1],
                                    depthwise->kernel[1], depthwise->in.size[3]);
                run_stretch(row, x, 1, columns, stretch);
        }
        Taps whole = { 0, depthwise->kernel[1] };
        for (int64_t x = first, n; x < next && !work_stops(work, steps * DEPTHWISE_PIXELS); x += n) {
                int64_t n_parts = (next - x + DEPTHWISE_PIXELS - 1) / DEPTHWISE_PIXELS;
                n = (next - x) / n_parts;
                run_stretch(row, x, (int)n, whole, stretch);
        }
}

// Channels at once: as many as keep the rows that a row's windows read in the first cache. All,
// where so few would be left that reading across the pixels costs more.
static int64_t channels_at_once(const Depthwise *depthwise)
{
        int64_t floats = depthwise->kernel[0] * (depthwise->in.size[3] + depthwise->kernel[1]),
                n = BLOCK_FLOATS / floats / 16 * 16;
        return n < LEAST_CHANNELS || depthwise->stride[0] > 1 ? depthwise->in.size[1] : n;
}

// Rows of results whose input stays in the second cache while all channels go over them.
static int64_t rows_at_once(const Depthwise *depthwise)
{
        int64_t row_floats = MAX(depthwise->in.size[3] * depthwise->in.size[1], 1);
        int64_t rows = BAND_FLOATS / row_floats - depthwise->kernel[0] + 1;
        return MAX(rows / depthwise->stride[0], 1);
}

static Window window_of(const Depthwise *depthwise)
{
        int64_t columns = depthwise->kernel[1], stride = depthwise->stride[1];
        if (depthwise->depth == FOUR)
                return WINDOW_FOURS;
        if (depthwise->dilation[1] != 1 || stride > 2)
                return WINDOW_ANY;
        if (columns == 3)
                return stride == 1 ? WINDOW_3 : WINDOW_3_BY_2;
        if (columns == 7 && stride == 1)
                return WINDOW_7;
        return columns != 5 ? WINDOW_ANY : stride == 1 ? WINDOW_5 : WINDOW_5_BY_2;
}

static void run_rows(void *argument, int64_t begin, int64_t end)
{
        const DepthwiseRun *run = argument;
        const Depthwise *depthwise = run->depthwise;
        const TensorMeta *in = &depthwise->in;
        int64_t n_rows = depthwise->out.size[2], block = channels_at_once(depthwise),
                band = rows_at_once(depthwise);
        Stretch stretch = { .bias = depthwise->bias,
                            .channels = in->size[1],
                            .in_step = depthwise->stride[1] * in->stride[3],
                            .in_row = depthwise->dilation[0] * in->stride[2],
                            .in_column = depthwise->dilation[1] * in->stride[3],
                            .weight_row = depthwise->kernel[1] * depthwise->depth * depthwise->width,
                            .weight_column = depthwise->depth * depthwise->width,
                            .width = depthwise->width,
                            .window = window_of(depthwise),
                            .clamp = depthwise->clamp };
        Work work = { .ctx = run->ctx };
        for (int64_t r = begin, until; r < end && !work.stops; r = until) {
                until = MIN(MIN(r + band, end), (r / n_rows + 1) * n_rows);
                for (stretch.first = 0; stretch.first < in->size[1]; stretch.first = stretch.next) {
                        stretch.next = MIN(stretch.first + block, in->size[1]);
                        for (int64_t y = r % n_rows; y < r % n_rows + until - r && !work.stops; y++) {
                                Taps taps = taps_inside(y * depthwise->stride[0] - depthwise->pad[0],
                                                        depthwise->dilation[0], depthwise->kernel[0],
                                                        in->size[2]);
                                OutRow row = { run, r / n_rows, y, taps };
                                run_row(&row, &stretch, &work);
                        }
                }
        }
}

// ---- sequences ----
// Positions start.. of a channel's row, zeros where it has none, and slack.
static void fill_frame(float *frame, const float *in, const TensorMeta *meta, int64_t start, int64_t n)
{
        int64_t size = meta->size[2], step = meta->stride[2];
        int64_t first = MIN(MAX(-start, 0), n), end = MIN(MAX(size - start, first), n);
        memset(frame, 0, (size_t)first * sizeof(float));
        if (step == 1 && end > first)
                memcpy(frame + first, in + start + first, (size_t)(end - first) * sizeof(float));
        for (int64_t i = first; step != 1 && i < end; i++)
                frame[i] = in[(start + i) * step];
        memset(frame + end, 0, (size_t)(n - end + ROW_SLACK) * sizeof(float));
}

static void run_sequences(void *argument, int64_t begin, int64_t end)
{
        const DepthwiseRun *run = argument;
        const Depthwise *depthwise = run->depthwise;
        const TensorMeta *in = &depthwise->in;
        int64_t channels = in->size[1], length = depthwise->out.size[2],
                n_taps = depthwise->kernel[0] * depthwise->kernel[1],
                reach = (n_taps - 1) * depthwise->dilation[0];
        float frame[ROW_RESULTS + ROW_REACH + ROW_SLACK];
        Row row = { .in = frame,
                    .dilation = depthwise->dilation[0],
                    .n_taps = (int)n_taps,
                    .clamp = depthwise->clamp };
        Work work = { .ctx = run->ctx };
        for (int64_t r = begin; r < end && !work.stops; r++) {
                const float *from = run->in + r / channels * in->stride[0] + r % channels * in->stride[1];
                row.weights = depthwise->weights + r % channels * n_taps;
                row.bias = depthwise->bias[r % channels];
                for (int64_t x = 0; x < length && !work.stops; x += row.n) {
                        row.n = MIN(length - x, (int64_t)ROW_RESULTS);
                        row.out = run->out + r * length + x;
                        row.residual = run->residual == NULL ? NULL : run->residual + r * length + x;
                        fill_frame(frame, from, in, x - depthwise->pad[0], row.n + reach);
                        depthwise->row(&row);
                        work_stops(&work, row.n * (1 + n_taps / 4));
                }
        }
}

static Status run_all_sequences(const DepthwiseRun *run)
{
        const TensorMeta *out = &run->depthwise->out;
        int64_t work = out->size[2] * run->depthwise->kernel[0];
        int64_t n = out->size[0] * out->size[1];
        TRY(parallel_for(run->ctx, n, run_share(run->ctx, n, LEAST_WORK / work), run_sequences,
                         (void *)(uintptr_t)run));
        return run_poll(run->ctx);
}

Status depthwise_run(const Depthwise *depthwise, const RunContext *ctx, const float *in,
                     const float *residual, float *out)
{
        DepthwiseRun run = { .ctx = ctx, .depthwise = depthwise, .in = in, .residual = residual, .out = out };
        if (depthwise->row != NULL)
                return run_all_sequences(&run);
        inner_columns(depthwise, &run.first, &run.next);
        int64_t work = depthwise->out.size[3] * depthwise->out.size[1] * depthwise->kernel[0] *
                       depthwise->kernel[1] * depthwise->depth;
        int64_t n = depthwise->out.size[0] * depthwise->out.size[2];
        TRY(parallel_for(ctx, n, run_share(ctx, n, LEAST_WORK / work), run_rows, &run));
        return run_poll(ctx);
}
