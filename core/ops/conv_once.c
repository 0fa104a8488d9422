// SPDX-License-Identifier: Apache-2.0
// conv_once.c: convolutions of an eager run by the kernels of compiled programs. They want channels
// to lie together: inputs and outputs are turned, weights are packed, for this call alone. Next to
// what a convolution of many pixels computes that is little. Which kernel runs, and in which
// layout, is decided by one image, so that a result does not depend on how many there are, as long
// as the run's budget has room for the copies: else the plain kernel runs, whose last bits differ.
// Of volumes only depthwise ones: the plain kernel goes through their windows one by one.
#include "core/kernels/conv/depthwise.h"
#include "core/kernels/conv/volume.h"
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"
#include "core/ops/conv.h"

// A weight is packed once and used for each pixel. Kernels of one tap gather nothing without that.
// Packing polls between panels, not inside one (panels_fill). A panel has the weights of up to
// PANEL_COLUMNS output channels, for each of them as many as a sum has products. MOST_PRODUCTS
// bounds a panel to 2 million weights, 10 to 20 ms of packing, which a cancelled run still ends.
enum { FEWEST_PIXELS = 32, FEWEST_OF_ONE_TAP = 150, MOST_PRODUCTS = 1 << 16 };
// Columns of a packed weight come in this many, at most, and each of its rows has a note.
enum { PANEL_COLUMNS = 16 * DIRECT_VECTORS, ROW_NOTE_BYTES = sizeof(DirectRun) };

// What the call takes from the run's budget. Where that is too little the plain kernel runs, which
// takes less.
typedef struct Charge {
        Budget *budget;
        size_t n_bytes;
} Charge;

static bool afford(Charge *charge, int64_t n, size_t item_bytes)
{
        size_t n_bytes;
        if (!mul_size((size_t)n, item_bytes, &n_bytes) || !budget_take(charge->budget, n_bytes))
                return false;
        charge->n_bytes += n_bytes;
        return true;
}

static void charge_deinit(Charge *charge)
{
        budget_give(charge->budget, charge->n_bytes);
}

// Programs bring a scratch pool: they allocate nothing while they run.
static bool is_eager(const OpRun *run)
{
        return run->ctx != NULL && run->ctx->pool == NULL;
}

static bool fits(const OpRun *run, const ConvArgs *args)
{
        const TensorMeta *input = run->in_meta[0], *weight = run->in_meta[1], *bias = run->in_meta[2];
        if (args->transposed || args->spatial < 2 || input->dtype != DTYPE_F32 ||
            run->out_meta[0]->dtype != DTYPE_F32 || (bias != NULL && !meta_is_contiguous(bias)))
                return false;
        const int64_t *out = args->out_size;
        int64_t depth = meta_numel(weight) / MAX(weight->size[0], (int64_t)1), pixels = 1;
        bool one_tap = true;
        for (int d = 2; d < weight->rank; d++) {
                one_tap &= weight->size[d] == 1;
                pixels = saturating_product(pixels, out[d]);
        }
        if (out[0] < 1 || out[1] < 1 || depth < 1 || depth > MOST_PRODUCTS ||
            pixels < (one_tap ? FEWEST_OF_ONE_TAP : FEWEST_PIXELS))
                return false;
        return (args->groups == 1 && args->spatial == 2) ||
               (args->groups == out[1] && weight->size[1] == 1 && out[1] > 1 && meta_is_contiguous(weight));
}

// The layout in which the kernel reads the input.
static TensorMeta input_layout(const ConvArgs *args, const TensorMeta *given)
{
        TensorMeta image = *given, layout = *given;
        image.size[0] = 1;
        if (args->groups > 1 || meta_is_channels_last(&image))
                meta_set_channels_last(&layout);
        else
                meta_set_contiguous(&layout);
        return layout;
}

static DnnlConv describe(const OpRun *run, const ConvArgs *args)
{
        TensorMeta given = conv_batched(run->in_meta[0], args->spatial);
        bool image = args->spatial == 2;
        DnnlConv conv = { .input = image ? input_layout(args, &given) : given,
                          .weight = *run->in_meta[1],
                          .out = conv_batched(run->out_meta[0], args->spatial),
                          .weight_data = run->in[1],
                          .bias_data = run->in_meta[2] == NULL ? NULL : run->in[2],
                          .groups = args->groups,
                          .share = { .poll = run->ctx },
                          .n_threads = run->ctx->n_threads };
        if (image) // volumes turn themselves
                meta_set_channels_last(&conv.out);
        for (int i = 0; i < args->spatial; i++) {
                conv.stride[i] = args->stride[i];
                conv.padding[i] = args->padding[i];
                conv.dilation[i] = args->dilation[i];
        }
        return conv;
}

// ---- one call ----
typedef struct Once {
        const OpRun *run;
        DnnlConv conv;
        DirectConv *direct; // one of them, or none
        Depthwise *depthwise;
        Volume *volume;
        Charge charge;
        Scratch in, out, work;
} Once;

static void once_deinit(Once *once)
{
        scratch_deinit(&once->work);
        scratch_deinit(&once->out);
        scratch_deinit(&once->in);
        direct_conv_free(once->direct);
        depthwise_free(once->depthwise);
        volume_free(once->volume);
        charge_deinit(&once->charge);
}

static bool charge_packed(Once *once)
{
        const TensorMeta *weight = &once->conv.weight;
        int64_t depth = meta_numel(weight) / weight->size[0],
                columns = (weight->size[0] + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS;
        return afford(&once->charge, columns, (size_t)(depth + 1) * sizeof(float)) &&
               afford(&once->charge, depth, ROW_NOTE_BYTES);
}

static Status make(Once *once)
{
        const DirectClamp none = { 0 };
        if (once->conv.input.rank == 5)
                return volume_new(&once->conv, false, &once->volume);
        return once->conv.groups == 1 ? direct_conv_new(&once->conv, PRECISION_F32, &none, &once->direct)
                                      : depthwise_new(&once->conv, &none, &once->depthwise);
}

// Bytes that are charged already. *out_has false: they are too many.
static Status take(Once *once, int64_t n, size_t item_bytes, Scratch *scratch, bool *out_has)
{
        *out_has = *out_has && afford(&once->charge, n, item_bytes);
        return *out_has ? scratch_init(scratch, NULL, n, item_bytes) : STATUS_OK;
}

static Status run_kernel(Once *once, const float *in, float *out)
{
        const RunContext *ctx = once->run->ctx;
        if (once->volume != NULL)
                return volume_run(once->volume, ctx, in, out, once->work.data);
        if (once->depthwise != NULL)
                return depthwise_run(once->depthwise, ctx, in, NULL, out);
        return direct_conv_run(once->direct, ctx, in, NULL, out, once->work.data);
}

// The kernel with copies before and after it where layouts differ.
static Status run_turned(Once *once, bool *out_done)
{
        const OpRun *run = once->run;
        const DnnlConv *conv = &once->conv;
        int spatial = conv->input.rank - 2;
        TensorMeta given = conv_batched(run->in_meta[0], spatial),
                   wanted = conv_batched(run->out_meta[0], spatial);
        const float *in = run->in[0];
        float *out = run->out[0];
        bool has = true;
        if (!meta_same_places(&given, &conv->input))
                TRY(take(once, meta_numel(&given), sizeof(float), &once->in, &has));
        if (!meta_same_places(&wanted, &conv->out))
                TRY(take(once, meta_numel(&wanted), sizeof(float), &once->out, &has));
        if (once->direct != NULL)
                TRY(take(once, (int64_t)direct_conv_scratch(once->direct), 1, &once->work, &has));
        if (once->volume != NULL)
                TRY(take(once, (int64_t)volume_scratch(once->volume), 1, &once->work, &has));
        if (!has)
                return STATUS_OK;
        if (once->in.data != NULL) {
                Region from = region_of(&given, in), to = region_of(&conv->input, once->in.data);
                TRY(copy_region(run->ctx, &from, &to));
                in = once->in.data;
        }
        TRY(run_kernel(once, in, once->out.data != NULL ? once->out.data : out));
        if (once->out.data != NULL) {
                Region from = region_of(&conv->out, once->out.data), to = region_of(&wanted, out);
                TRY(copy_region(run->ctx, &from, &to));
        }
        *out_done = true;
        return STATUS_OK;
}

Status conv_packed_once(const OpRun *run, const ConvArgs *args, bool *out_done)
{
        *out_done = false;
        if (!is_eager(run) || !fits(run, args))
                return STATUS_OK;
        _cleanup_(once_deinit) Once once = { .run = run,
                                             .conv = describe(run, args),
                                             .charge = { .budget = run->ctx->budget } };
        if (!charge_packed(&once))
                return STATUS_OK;
        TRY(make(&once));
        if (once.direct == NULL && once.depthwise == NULL && once.volume == NULL)
                return STATUS_OK;
        return run_turned(&once, out_done);
}
