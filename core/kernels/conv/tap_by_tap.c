// SPDX-License-Identifier: Apache-2.0
// tap_by_tap.c: a tap that all results have inside begins the sums, the others add to them.
#include "core/kernels/conv/tap_by_tap.h"
#include <stdio.h>
#include <stdlib.h>

// With fewer channels a sum is too short for what stands there to be read and written again.
enum { LEAST_CHANNELS = 64, MOST_TAPS = 81 };

struct TapByTap {
        int n;
        DirectPart *parts; // the one that begins the sums comes first
        char name[40];
};

Inside tap_inside(const DnnlConv *conv, int axis, int64_t tap)
{
        int64_t stride = conv->stride[axis], from = conv->padding[axis] - tap * conv->dilation[axis],
                size = conv->input.size[2 + axis];
        int64_t first = from <= 0 ? 0 : (from + stride - 1) / stride,
                last = size + from <= 0 ? -1 : (size - 1 + from) / stride;
        last = MIN(last, conv->out.size[2 + axis] - 1);
        return (Inside){ first, MAX(last - first + 1, (int64_t)0), first * stride - from };
}

int64_t tap_in_turn(int64_t i, int64_t begins)
{
        if (i == 0 && begins >= 0)
                return begins;
        return i <= begins ? i - 1 : i;
}

static bool fits(const DnnlConv *conv)
{
        const TensorMeta *weight = &conv->weight;
        if (conv->input.rank != 4 || conv->groups != 1 || weight->size[1] < LEAST_CHANNELS ||
            weight->size[2] * weight->size[3] > MOST_TAPS || conv->epilogue.add_out ||
            conv->epilogue.activation != DNNL_NOTHING || !meta_is_channels_last(&conv->input) ||
            !meta_is_channels_last(&conv->out) || meta_numel(&conv->out) == 0)
                return false;
        int64_t inside[2] = { 0 };
        for (int i = 0; i < 2; i++)
                for (int64_t k = 0; k < weight->size[2 + i]; k++)
                        inside[i] += tap_inside(conv, i, k).n;
        int64_t all = weight->size[2] * conv->out.size[2] * weight->size[3] * conv->out.size[3];
        return inside[0] * inside[1] * 100 <= all * MOST_INSIDE;
}

// to->conv NULL: there is no direct convolution for it.
static Status make_part(const DnnlConv *conv, int64_t y, int64_t x, bool begins, DirectPart *to)
{
        const TensorMeta *weight = &conv->weight, *in = &conv->input, *out = &conv->out;
        Inside rows = tap_inside(conv, 0, y), columns = tap_inside(conv, 1, x);
        DnnlConv part = *conv;
        part.weight.size[2] = part.weight.size[3] = 1;
        part.weight_data = (const float *)conv->weight_data + y * weight->stride[2] + x * weight->stride[3];
        part.bias_data = begins ? conv->bias_data : NULL;
        part.out.size[2] = rows.n;
        part.out.size[3] = columns.n;
        for (int i = 0; i < 2; i++) {
                part.padding[i] = 0;
                part.dilation[i] = 1;
        }
        to->in_offset = rows.in * in->stride[2] + columns.in * in->stride[3];
        to->offset = rows.first * out->stride[2] + columns.first * out->stride[3];
        return direct_conv_new(&part, PRECISION_F32, &(DirectClamp){ 0 }, &to->conv);
}

static bool is_everywhere(const DnnlConv *conv, int64_t tap)
{
        int64_t width = conv->weight.size[3];
        return tap_inside(conv, 0, tap / width).n == conv->out.size[2] &&
               tap_inside(conv, 1, tap % width).n == conv->out.size[3];
}

static Status add_parts(const DnnlConv *conv, TapByTap *taps, bool *out_made)
{
        int64_t width = conv->weight.size[3], n = conv->weight.size[2] * width, begins = 0;
        *out_made = false;
        while (begins < n && !is_everywhere(conv, begins))
                begins++;
        for (int64_t i = 0; begins < n && i < n; i++) {
                int64_t tap = tap_in_turn(i, begins);
                if (tap_inside(conv, 0, tap / width).n == 0 || tap_inside(conv, 1, tap % width).n == 0)
                        continue;
                TRY(run_poll(conv->share.poll));
                TRY(make_part(conv, tap / width, tap % width, i == 0, &taps->parts[taps->n]));
                if (taps->parts[taps->n].conv == NULL)
                        return STATUS_OK;
                taps->n++;
        }
        *out_made = taps->n > 0;
        return STATUS_OK;
}

Status tap_by_tap_new(const DnnlConv *conv, TapByTap **out_taps)
{
        bool made = false;
        *out_taps = NULL;
        if (!fits(conv))
                return STATUS_OK;
        TapByTap *taps = calloc(1, sizeof(*taps));
        if (taps == NULL)
                return fail_memory();
        taps->parts = calloc((size_t)(conv->weight.size[2] * conv->weight.size[3]), sizeof(*taps->parts));
        Status status = taps->parts == NULL ? fail_memory() : add_parts(conv, taps, &made);
        if (status != STATUS_OK || !made) {
                tap_by_tap_free(taps);
                return status;
        }
        snprintf(taps->name, sizeof(taps->name), "taps:%s", direct_conv_name(taps->parts[0].conv));
        *out_taps = taps;
        return STATUS_OK;
}

void tap_by_tap_free(TapByTap *taps)
{
        if (taps == NULL)
                return;
        for (int i = 0; i < taps->n; i++)
                direct_conv_free(taps->parts[i].conv);
        free(taps->parts);
        free(taps);
}

const char *tap_by_tap_name(const TapByTap *taps)
{
        return taps->name;
}

Status tap_by_tap_run(const TapByTap *taps, const RunContext *ctx, const float *in, float *out)
{
        DirectImages images = { .in = in, .out = out };
        TRY(direct_convs_run(taps->parts, 1, ctx, &images));
        images.residual = out;
        return direct_convs_run(taps->parts + 1, taps->n - 1, ctx, &images);
}
