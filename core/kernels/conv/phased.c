// SPDX-License-Identifier: Apache-2.0
// phased.c: the taps of a phase are a part of the weight that is walked backwards. Where an axis
// has one input, every result is a phase of its own: as many taps are multiplied as meet an input.
#include "core/kernels/conv/phased.h"
#include <stdlib.h>
#include <string.h>
#include "core/kernels/copy.h"
#include "core/kernels/dense.h"

struct Phased {
        TensorMeta given_in, in, given_out, out; // images: as they are given, in channels_last
        size_t in_bytes, out_bytes;              // of copies in channels_last; 0: none is made
        int n;
        DirectPart *parts;
};

// ---- what is convolved ----
static DnnlConv conv_of_images(const DnnlConv *conv)
{
        DnnlConv images = *conv;
        images.input = meta_line_as_image(&conv->input);
        images.weight = meta_line_as_image(&conv->weight);
        images.out = meta_line_as_image(&conv->out);
        if (conv->input.rank != 3)
                return images;
        images.stride[1] = conv->stride[0];
        images.padding[1] = conv->padding[0];
        images.dilation[1] = conv->dilation[0];
        images.stride[0] = images.dilation[0] = 1;
        images.padding[0] = 0;
        return images;
}

// Sets the convolution's images to those in channels_last.
static void lay_out(DnnlConv *conv, Phased *phased)
{
        phased->given_in = phased->in = conv->input;
        phased->given_out = phased->out = conv->out;
        if (!meta_is_channels_last(&conv->input)) {
                meta_set_channels_last(&phased->in);
                phased->in_bytes = storage_padded((size_t)meta_numel(&phased->in) * sizeof(float));
        }
        if (conv->out.stride[1] != 1) {
                meta_set_channels_last(&phased->out);
                phased->out_bytes = storage_padded((size_t)meta_numel(&phased->out) * sizeof(float));
        }
        conv->input = phased->in;
        conv->out = phased->out;
}

// ---- phases ----
// Where there is one input, so far that no second one could be met.
static PhasedAxis spread(const PhasedAxis *given, int64_t in_size)
{
        PhasedAxis axis = *given;
        if (in_size == 1)
                axis.stride = axis.out_size + axis.pad + (axis.kernel - 1) * axis.dilation;
        return axis;
}

static PhasedAxis axis_of(const DnnlConv *conv, int d)
{
        PhasedAxis axis = { conv->stride[d], conv->dilation[d], conv->padding[d], conv->weight.size[2 + d],
                            conv->out.size[2 + d] };
        return spread(&axis, conv->input.size[2 + d]);
}

bool phased_axis_fits(const PhasedAxis *given, int64_t in_size, int64_t *out_phases)
{
        PhasedAxis axis = spread(given, in_size);
        *out_phases = MIN(axis.stride, axis.out_size);
        if (*out_phases > MOST_PHASES)
                return false;
        for (int64_t i = 0; i < *out_phases; i++) {
                PhaseAxis phase = phase_axis(&axis, i);
                if (phase.n == 0 || phase.pad < 0 || phase.pad > (phase.n - 1) * phase.dilation)
                        return false;
        }
        return true;
}

// Images of one pixel, one after another, as one image that is so wide: its pixels share tiles.
static void join_pixels(DnnlConv *part)
{
        bool one = part->input.size[2] * part->input.size[3] * part->out.size[2] * part->out.size[3] == 1 &&
                   part->padding[0] == 0 && part->padding[1] == 0;
        if (!one || part->weight.size[2] * part->weight.size[3] != 1)
                return;
        part->input.size[3] = part->out.size[3] = part->input.size[0];
        part->input.size[0] = part->out.size[0] = 1;
        meta_set_channels_last(&part->input);
        part->out.stride[3] = part->out.stride[0];
        part->out.stride[2] = part->out.stride[0] = part->out.size[3] * part->out.stride[3];
}

// The convolution of one phase. *out_offset: where its results begin.
static DnnlConv phase_of(const DnnlConv *conv, const PhaseAxis axis[2], const PhasedAxis of[2],
                         int64_t *out_offset)
{
        const TensorMeta *weight = &conv->weight;
        DnnlConv part = *conv;
        const float *data = conv->weight_data;
        *out_offset = 0;
        for (int i = 0; i < 2; i++) {
                int d = 2 + i;
                part.weight.size[d] = axis[i].n;
                part.weight.stride[d] = -axis[i].step * weight->stride[d];
                data += (axis[i].first + (axis[i].n - 1) * axis[i].step) * weight->stride[d];
                part.out.size[d] = axis[i].n_out;
                part.out.stride[d] = of[i].stride * conv->out.stride[d];
                *out_offset += axis[i].first_out * conv->out.stride[d];
                part.stride[i] = 1;
                part.padding[i] = axis[i].pad;
                part.dilation[i] = axis[i].dilation;
        }
        for (int i = 0; i < 2; i++) { // [out][in]
                part.weight.size[i] = weight->size[1 - i];
                part.weight.stride[i] = weight->stride[1 - i];
        }
        part.weight_data = data;
        join_pixels(&part);
        return part;
}

// *out_made false: there is no direct convolution for it.
static Status add_phase(const DnnlConv *part, Precision precision, Phased *phased, bool *out_made)
{
        DirectPart *to = &phased->parts[phased->n];
        TRY(direct_conv_new(part, precision, &(DirectClamp){ 0 }, &to->conv));
        if (to->conv == NULL && precision != PRECISION_F32)
                TRY(direct_conv_new(part, PRECISION_F32, &(DirectClamp){ 0 }, &to->conv));
        *out_made = to->conv != NULL;
        phased->n += *out_made;
        return STATUS_OK;
}

static Status add_phases(const DnnlConv *conv, Precision precision, Phased *phased, bool *out_made)
{
        const PhasedAxis of[2] = { axis_of(conv, 0), axis_of(conv, 1) };
        int64_t rows, columns;
        *out_made = phased_axis_fits(&of[0], conv->input.size[2], &rows) &&
                    phased_axis_fits(&of[1], conv->input.size[3], &columns) && rows * columns <= MOST_PHASES;
        if (!*out_made)
                return STATUS_OK;
        phased->parts = calloc((size_t)(rows * columns), sizeof(*phased->parts));
        if (phased->parts == NULL)
                return fail_memory();
        for (int64_t i = 0; *out_made && i < rows * columns; i++) {
                const PhaseAxis axis[2] = { phase_axis(&of[0], i / columns),
                                            phase_axis(&of[1], i % columns) };
                TRY(run_poll(conv->share.poll));
                DnnlConv part = phase_of(conv, axis, of, &phased->parts[i].offset);
                TRY(add_phase(&part, precision, phased, out_made));
        }
        return STATUS_OK;
}

Status phased_new(const DnnlConv *conv, Precision precision, Phased **out_phased)
{
        bool made = false;
        *out_phased = NULL;
        if ((conv->input.rank != 3 && conv->input.rank != 4) || conv->groups != 1 ||
            !floats_are_finite(conv->weight_data, &conv->weight))
                return STATUS_OK;
        Phased *phased = calloc(1, sizeof(*phased));
        if (phased == NULL)
                return fail_memory();
        DnnlConv images = conv_of_images(conv);
        lay_out(&images, phased);
        Status status = add_phases(&images, precision, phased, &made);
        if (status != STATUS_OK || !made) {
                phased_free(phased);
                return status;
        }
        *out_phased = phased;
        return STATUS_OK;
}

void phased_free(Phased *phased)
{
        if (phased == NULL)
                return;
        for (int i = 0; i < phased->n; i++)
                direct_conv_free(phased->parts[i].conv);
        free(phased->parts);
        free(phased);
}

const char *phased_name(const Phased *phased)
{
        for (int i = 0; i < phased->n; i++) {
                const char *name = direct_conv_name(phased->parts[i].conv);
                if (strncmp(name, "direct:", strlen("direct:")) != 0)
                        return name;
        }
        return direct_conv_name(phased->parts[0].conv);
}

size_t phased_scratch(const Phased *phased)
{
        size_t most = 0;
        for (int i = 0; i < phased->n; i++)
                most = MAX(most, direct_conv_scratch(phased->parts[i].conv));
        return phased->in_bytes + phased->out_bytes + most;
}

Status phased_run(const Phased *phased, const RunContext *ctx, const DirectImages *given)
{
        const float *in = given->in;
        float *out = given->out;
        char *laid_in = given->scratch, *laid_out = laid_in + phased->in_bytes,
             *rest = laid_out + phased->out_bytes;
        if (phased->in_bytes > 0) {
                Region from = region_of(&phased->given_in, in), to = region_of(&phased->in, laid_in);
                TRY(copy_region(ctx, &from, &to));
                in = (const float *)(const void *)laid_in;
        }
        float *results = phased->out_bytes > 0 ? (float *)(void *)laid_out : out;
        DirectImages images = { .in = in, .residual = given->residual, .out = results, .scratch = rest };
        TRY(direct_convs_run(phased->parts, phased->n, ctx, &images));
        if (phased->out_bytes == 0)
                return STATUS_OK;
        Region from = region_of(&phased->out, results), to = region_of(&phased->given_out, out);
        return copy_region(ctx, &from, &to);
}
