// SPDX-License-Identifier: Apache-2.0
// grouped.c: the groups share one frame, that of all channels. A group with fewer results than a
// vector has lanes leaves the others idle: no number of another group is multiplied, so that none
// can make a result NaN.
#include "core/kernels/conv/grouped.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST_GROUPS = 512 };

struct Grouped {
        int n;
        DirectPart *parts;
        char name[40];
};

DnnlConv grouped_part(const DnnlConv *conv, int64_t group)
{
        const int64_t n_out = conv->weight.size[0] / conv->groups;
        DnnlConv part = *conv;
        part.groups = 1;
        part.weight.size[0] = part.out.size[1] = n_out;
        part.weight_data = (const float *)conv->weight_data + group * n_out * conv->weight.stride[0];
        if (conv->bias_data != NULL)
                part.bias_data = (const float *)conv->bias_data + group * n_out;
        return part;
}

static Status add_group(const DnnlConv *conv, const DirectClamp *clamp, int64_t group, DirectPart *to)
{
        const int64_t n_in = conv->weight.size[1], n_out = conv->weight.size[0] / conv->groups;
        DnnlConv part = grouped_part(conv, group);
        TRY(direct_conv_new(&part, PRECISION_F32, clamp, &to->conv));
        to->in_offset = group * n_in;
        to->offset = group * n_out;
        return STATUS_OK;
}

static Status add_groups(const DnnlConv *conv, const DirectClamp *clamp, Grouped *grouped)
{
        for (int64_t i = 0; i < conv->groups; i++) {
                TRY(run_poll(conv->share.poll));
                TRY(add_group(conv, clamp, i, &grouped->parts[i]));
                if (grouped->parts[i].conv == NULL)
                        return STATUS_OK;
                grouped->n++;
        }
        snprintf(grouped->name, sizeof(grouped->name), "grouped:%s",
                 direct_conv_name(grouped->parts[0].conv));
        return STATUS_OK;
}

Status grouped_new(const DnnlConv *conv, const DirectClamp *clamp, Grouped **out_grouped)
{
        *out_grouped = NULL;
        if (conv->input.rank != 4 || conv->groups < 2 || conv->groups > MOST_GROUPS ||
            !meta_is_channels_last(&conv->input) || !meta_is_channels_last(&conv->out))
                return STATUS_OK;
        Grouped *grouped = calloc(1, sizeof(*grouped));
        if (grouped == NULL)
                return fail_memory();
        grouped->parts = calloc((size_t)conv->groups, sizeof(*grouped->parts));
        Status status = grouped->parts == NULL ? fail_memory() : add_groups(conv, clamp, grouped);
        if (status != STATUS_OK || grouped->n < conv->groups) {
                grouped_free(grouped);
                return status;
        }
        *out_grouped = grouped;
        return STATUS_OK;
}

void grouped_free(Grouped *grouped)
{
        if (grouped == NULL)
                return;
        for (int i = 0; i < grouped->n; i++)
                direct_conv_free(grouped->parts[i].conv);
        free(grouped->parts);
        free(grouped);
}

const char *grouped_name(const Grouped *grouped)
{
        return grouped->name;
}

size_t grouped_scratch(const Grouped *grouped)
{
        return direct_conv_scratch(grouped->parts[0].conv);
}

Status grouped_run(const Grouped *grouped, const RunContext *ctx, const DirectImages *images)
{
        return direct_convs_run(grouped->parts, grouped->n, ctx, images);
}
