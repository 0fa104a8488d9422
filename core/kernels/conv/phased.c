// SPDX-License-Identifier: Apache-2.0
// phased.c: the taps of a phase are a part of the weight that is walked backwards.
#include "core/kernels/conv/phased.h"
#include <stdlib.h>
#include "core/kernels/conv/conv_transposed.h"
#include "core/kernels/dense.h"

struct Phased {
        int n;
        DirectPart parts[MOST_PHASES];
};

static PhasedAxis axis_of(const DnnlConv *conv, int d)
{
        return (PhasedAxis){ conv->stride[d], conv->dilation[d], conv->padding[d], conv->weight.size[2 + d],
                             conv->out.size[2 + d] };
}

// The convolution of one phase. *out_offset: where its results begin.
static DnnlConv phase_of(const DnnlConv *conv, const PhaseAxis axis[2], int64_t *out_offset)
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
                part.out.stride[d] = conv->stride[i] * conv->out.stride[d];
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
        return part;
}

// *out_made false: there is no direct convolution for it.
static Status add_phase(const DnnlConv *conv, const PhaseAxis axis[2], Precision precision, Phased *phased,
                        bool *out_made)
{
        DirectPart *to = &phased->parts[phased->n];
        *out_made = false;
        if (axis[0].n == 0 || axis[1].n == 0)
                return STATUS_OK;
        DnnlConv part = phase_of(conv, axis, &to->offset);
        TRY(direct_conv_new(&part, precision, &(DirectClamp){ 0 }, &to->conv));
        if (to->conv == NULL && precision != PRECISION_F32)
                TRY(direct_conv_new(&part, PRECISION_F32, &(DirectClamp){ 0 }, &to->conv));
        *out_made = to->conv != NULL;
        phased->n += *out_made;
        return STATUS_OK;
}

static Status add_phases(const DnnlConv *conv, Precision precision, Phased *phased, bool *out_made)
{
        PhasedAxis y = axis_of(conv, 0), x = axis_of(conv, 1);
        *out_made = true;
        for (int64_t i = 0; i < MIN(y.stride, y.out_size); i++) {
                for (int64_t j = 0; j < MIN(x.stride, x.out_size) && *out_made; j++) {
                        PhaseAxis axis[2] = { phase_axis(&y, i), phase_axis(&x, j) };
                        TRY(add_phase(conv, axis, precision, phased, out_made));
                }
        }
        return STATUS_OK;
}

Status phased_new(const DnnlConv *conv, Precision precision, Phased **out_phased)
{
        bool made = false;
        *out_phased = NULL;
        if (conv->input.rank != 4 || conv->groups != 1 || !has_few_phases(conv->stride, 2) ||
            !floats_are_finite(conv->weight_data, &conv->weight))
                return STATUS_OK;
        Phased *phased = calloc(1, sizeof(*phased));
        if (phased == NULL)
                return fail_memory();
        Status status = add_phases(conv, precision, phased, &made);
        if (status != STATUS_OK || !made) {
                phased_free(phased);
                return status;
        }
        *out_phased = phased;
        return STATUS_OK;
}

void phased_free(Phased *phased)
{
        for (int i = 0; phased != NULL && i < phased->n; i++)
                direct_conv_free(phased->parts[i].conv);
        free(phased);
}

const char *phased_name(const Phased *phased)
{
        return direct_conv_name(phased->parts[0].conv);
}

size_t phased_scratch(const Phased *phased)
{
        size_t most = 0;
        for (int i = 0; i < phased->n; i++)
                most = MAX(most, direct_conv_scratch(phased->parts[i].conv));
        return most;
}

Status phased_run(const Phased *phased, const RunContext *ctx, const float *in, float *out, void *scratch)
{
        return direct_convs_run(phased->parts, phased->n, ctx, in, out, scratch);
}
