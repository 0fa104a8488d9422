// SPDX-License-Identifier: Apache-2.0
// Convolution of images in groups: a direct convolution for each group, which reads its channels
// of the input and writes its channels of the output where they lie.
#pragma once
#include "core/kernels/conv/direct.h"

// Group `group` of the channels alone.
DnnlConv grouped_part(const DnnlConv *conv, int64_t group);

typedef struct Grouped Grouped;

// 2 to 512 groups, input and output channels_last. Else, and where direct_conv_new gives none,
// *out_grouped stays NULL (STATUS_OK).
Status grouped_new(const DnnlConv *conv, const DirectClamp *clamp, Grouped **out_grouped);
void grouped_free(Grouped *grouped); // NULL-safe
const char *grouped_name(const Grouped *grouped);
size_t grouped_scratch(const Grouped *grouped);
// As direct_conv_run, `scratch`: grouped_scratch bytes.
Status grouped_run(const Grouped *grouped, const RunContext *ctx, const DirectImages *images);
