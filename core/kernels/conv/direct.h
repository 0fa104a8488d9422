// SPDX-License-Identifier: Apache-2.0
// Direct convolution of images without packing the input, with what follows it done while results
// are in registers: a residual is added, then results are clamped. And products of many small
// matrices, for Winograd's. float32, AVX2 with FMA or AVX-512. With less precision, and where the
// CPU multiplies bfloat16, input and weights are rounded to that; sums stay float32.
#pragma once
#include "core/kernels/dnnl/primitive.h"
#include "core/kernels/conv/panels.h"
#include "core/kernels/numeric_policy.h"

typedef struct DirectConv DirectConv;

// Two spatial dimensions, one group, no windows wholly outside; input channels_last or contiguous,
// of more channels than the weight where others read those (DirectPart.in_offset);
// an output whose channels lie together, its pixels and rows however far apart. Else, and where the
// CPU lacks the instructions, *out_conv stays NULL (STATUS_OK). conv->epilogue must be empty.
// PRECISION_BF16: bfloat16, for an input in channels_last with an even number of channels, or three
// and more than one tap, and finite weights; else *out_conv stays NULL. PRECISION_INT8: weights of
// 8 bits for each output channel, input of 8 bits for each image, for each pixel where the kernel
// is one; where that cannot be, bfloat16.
Status direct_conv_new(const DnnlConv *conv, Precision precision, const DirectClamp *clamp,
                       DirectConv **out_conv);
void direct_conv_free(DirectConv *conv); // NULL-safe
// The same in two steps: weights can be packed when the first run needs them, by one thread.
Status direct_conv_plan(const DnnlConv *conv, Precision precision, const DirectClamp *clamp,
                        DirectConv **out_conv);
Status direct_conv_pack(DirectConv *direct, const DnnlConv *conv);
// PRECISION_INT8 multiplies 8-bit integers on this CPU, where channels come in fours.
bool direct_conv_has_bytes(void);
const char *direct_conv_name(const DirectConv *conv);
size_t direct_conv_scratch(const DirectConv *conv);
// `residual`: laid out as the output, apart from it; NULL: none. `scratch`: direct_conv_scratch
// bytes, 64-byte aligned.
Status direct_conv_run(const DirectConv *conv, const RunContext *ctx, const float *in, const float *residual,
                       float *out, void *scratch);
// Convolutions of one input, each with a part of the output that begins `offset` floats in it. Of a
// part that reads some channels, the first one is `in_offset` (float32 in channels_last only).
typedef struct DirectPart {
        DirectConv *conv;
        int64_t in_offset, offset;
} DirectPart;
// residual NULL: none. `scratch`: the most that any part needs. Neighbours with the same frame
// share it.
typedef struct DirectImages {
        const float *in, *residual;
        float *out;
        void *scratch;
} DirectImages;
Status direct_convs_run(const DirectPart *parts, int n, const RunContext *ctx, const DirectImages *images);

// The groups of a convolution, side by side: columns of one read `n_in` numbers of a row.
typedef struct DirectGroups {
        int64_t n, n_in, n_out; // groups; of one: numbers of a row, columns
} DirectGroups;

// The groups that the columns of one panel belong to. Columns behind all groups are the last one's.
typedef struct DirectSpan {
        int64_t first, n;
} DirectSpan;

static inline DirectSpan direct_span(const DirectGroups *groups, int64_t column, int64_t width)
{
        int64_t first = MIN(column / groups->n_out, groups->n - 1),
                last = MIN((column + width - 1) / groups->n_out, groups->n - 1);
        return (DirectSpan){ first, last - first + 1 };
}

// Groups of a panel, at most: its matrix has rows for them all, zeros where a column is another's.
static inline int64_t direct_most_groups(const DirectGroups *groups, int64_t width)
{
        int64_t most = 1;
        for (int64_t column = 0; column < groups->n * groups->n_out; column += width)
                most = MAX(most, direct_span(groups, column, width).n);
        return most;
}

// out[p] = a[p] b[p] for each of n planes; b is packed once. A row of `a` holds the numbers of all
// groups. Or, where there is one group, `n_taps` pieces of such numbers, which lie
// DirectRows.tap_step apart; there are 16 or more of them then. b: [taps, numbers of
// direct_most_groups, columns], dense. Winograd's transforms make the error of a sum several times
// as large, so blocks (panels.h) are smaller than elsewhere. `source`: what b was made from, in the
// way that `format` names.
enum { PLANES_BLOCK = 256 };
typedef struct DirectProducts DirectProducts;
typedef struct DirectPlanes {
        int64_t n_planes, n_taps, n_columns;
        DirectGroups groups;
        const float *b;
        DirectSource source;
        const char *format;
} DirectPlanes;
Status direct_products_new(const DirectPlanes *planes, DirectProducts **out_products);
void direct_products_free(DirectProducts *products); // NULL-safe
const char *direct_products_name(const DirectProducts *products);
typedef struct DirectRows {
        int64_t n;
        const float *a;
        float *out;
        int64_t a_step, out_step; // floats between planes
        int64_t tap_step;         // and taps
} DirectRows;
Status direct_products_run(const DirectProducts *products, const RunContext *ctx, const DirectRows *rows);
