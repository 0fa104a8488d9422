// SPDX-License-Identifier: Apache-2.0
// Products by oneDNN in parts. A call of the library cannot be stopped, so a long one is cut along
// batch, rows, columns or output channels into parts of a bounded number of operations, and the run
// polls between them. The cut depends on sizes only, never on threads or time: the same program has
// the same bits everywhere. Sums are not cut.
#pragma once
#include "core/kernels/dnnl/primitive.h"

// Operations of one part: 25 ms at 80 GFLOP/s. Products of up to so many stay whole.
#define PART_FLOPS ((int64_t)2000000000)

typedef struct Parts Parts;
// As dnnl_conv_new and dnnl_matmul_new: *out_parts stays NULL when there is no fast implementation,
// or none of parts that are short enough. A constant `b` of more than PART_WEIGHTS elements is
// packed by columns, whatever the rows are: programs for other batches share it.
enum { PART_WEIGHTS = 1 << 23 };
Status parts_conv_new(const DnnlConv *conv, Parts **out_parts);
Status parts_matmul_new(const DnnlMatmul *matmul, Parts **out_parts);
void parts_free(void *parts);               // NULL-safe
const char *parts_name(const Parts *parts); // of the first primitive
size_t parts_scratch(const Parts *parts);
int64_t parts_count(const Parts *parts);
// As dnnl_primitive_run. STATUS_CANCELLED or STATUS_DEADLINE between parts.
Status parts_run(const Parts *parts, const RunContext *ctx, const void *a, const void *b, void *out,
                 void *scratch);
