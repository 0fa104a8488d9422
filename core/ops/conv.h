// SPDX-License-Identifier: Apache-2.0
// A convolution's arguments, decoded for the kernels and for pack.
#pragma once
#include "core/ops/op.h"

// OpDef.row: positions in the schema that differ among the rows; 0: absent.
typedef struct ConvRow {
        int spatial; // 0: taken from the weight (aten::convolution)
        int dilation_arg, groups_arg, output_padding_arg, transposed_arg;
        bool transposed;
        bool pads_each_side; // the padding may be a list of all that is before, then all that is after
        bool volumes_follow; // results of three dimensions lie as the input does
        bool mixes_dtypes;   // input, weight and bias have dtypes of their own, which the row checks
} ConvRow;

typedef struct ConvArgs {
        int spatial;
        bool transposed, batched;
        int64_t stride[3], dilation[3], output_padding[3], groups;
        int64_t padding[3], padding_after[3]; // before and after the input
        bool channels_last;
        int64_t out_size[5]; // batch, channels, spatial
} ConvArgs;

// Reads and checks the arguments of any row of conv.c, in PyTorch's words.
Status conv_args(const OpCall *call, ConvArgs *out_args);
// An unbatched meta with a batch of one in front; others as they are.
TensorMeta conv_batched(const TensorMeta *meta, int spatial);

// The functions of all rows, also used by rows that fuse operators behind a convolution.
Status conv_infer(OpCall *call);
Status conv_op_run(const OpRun *run);
Cost conv_cost(const OpCall *call);
// conv_op_run for large convolutions of an eager run. *out_done false: it is another one.
Status conv_packed_once(const OpRun *run, const ConvArgs *args, bool *out_done);
