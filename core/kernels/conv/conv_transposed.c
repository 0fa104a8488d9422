// SPDX-License-Identifier: Apache-2.0
// conv_transposed.c: the product of the weight and the input has a number for each tap of each
// input; those that meet at a result are added up. The product is made for some channels and some
// inputs at a time. Where it would be a sum of very few numbers it is not stored.
//
// Halves are rounded as in PyTorch's plain path: each number of the product, each sum of taps, and
// the sum with the bias. Taps are added in order, for sums that nearly cancel depend on it: the
// inputs are taken from the last one to the first.
#include "core/kernels/conv/conv_transposed.h"
#include <stdlib.h>
#include <string.h>
#include "core/tensor/half.h"

enum {
        STORED = 1 << 19, // numbers of the product at a time
        FEW_INPUTS = 4,   // channels of a group whose product is not stored
        AT_ONCE = 512,    // results of a phase that are added up together
        KEPT = 4096,      // phases of an axis that are kept; of more, each is found when it is needed
};

static int64_t greatest_divisor(int64_t a, int64_t b)
{
        while (b != 0) {
                int64_t rest = a % b;
                a = b;
                b = rest;
        }
        return a;
}

// Result o reads input (o + pad - tap * dilation) / stride through every tap that leaves no rest.
PhaseAxis phase_axis(const PhasedAxis *of, int64_t rest)
{
        int64_t stride = of->stride, dilation = of->dilation, at = rest + of->pad;
        int64_t common = greatest_divisor(stride, dilation);
        PhaseAxis axis = { .first_out = rest,
                           .n_out = (of->out_size - rest + stride - 1) / stride,
                           .step = stride / common,
                           .dilation = dilation / common };
        // taps that meet are `step` apart, so one of the first ones does, or none
        int64_t most = at % common == 0 ? MIN(of->kernel, axis.step) : 0;
        while (axis.first < most && (at - axis.first * dilation) % stride != 0)
                axis.first++;
        if (axis.first < most)
                axis.n = (of->kernel - 1 - axis.first) / axis.step + 1;
        int64_t last = axis.first + (axis.n - 1) * axis.step;
        axis.pad = axis.n == 0 ? 0 : -((at - last * dilation) / stride);
        return axis;
}

// ---- what is added up ----
typedef struct Adding {
        const RunContext *ctx;
        const Conv *conv;
        int64_t taps, rows, width; // of a kernel; rows of the input, and their length
        PhasedAxis axes[3];
        const PhaseAxis *phases[3];             // of each axis, by remainder; NULL: not kept
        const char *input, *weight, *bias;      // of this image and group; bias NULL: none
        const char *product;                    // [channel][tap][row][column]; NULL: it is not stored
        char *out;                              // of this image and group
        int64_t channel, n_channels;            // these are made
        int64_t row, n_rows, column, n_columns; // from these inputs
        bool begins, adds_bias;                 // nothing was added up yet; nothing is left to add
} Adding;

static PhaseAxis phase_of(const Adding *adding, int axis, int64_t rest)
{
        const PhaseAxis *kept = adding->phases[axis];
        return kept != NULL ? kept[rest] : phase_axis(&adding->axes[axis], rest);
}

// How result `o` of an axis is made.
typedef struct Place {
        PhaseAxis phase;
        int64_t j; // its place in the phase
} Place;

static Place place_of(const Adding *adding, int axis, int64_t o)
{
        int64_t stride = adding->conv->stride[axis];
        return (Place){ phase_of(adding, axis, o % stride), o / stride };
}

static int64_t tap_of(const PhaseAxis *phase, int64_t q)
{
        return phase->first + q * phase->step;
}

// What result j of a phase reads through tap q is j and this.
static int64_t shift_of(const PhaseAxis *phase, int64_t q)
{
        return (phase->n - 1 - q) * phase->dilation - phase->pad;
}

#define ADD_ROUND(x) (x)
#define ADD(x)       x##_f32
#define ADD_T        float
#include "core/kernels/conv/conv_transposed.inc"
#undef ADD
#undef ADD_T
#define ADD(x) x##_f64
#define ADD_T  double
#include "core/kernels/conv/conv_transposed.inc"
#undef ADD
#undef ADD_T
#define ADD(x) x##_i64
#define ADD_T  uint64_t // wraps
#include "core/kernels/conv/conv_transposed.inc"
#undef ADD
#undef ADD_T
#undef ADD_ROUND
#define ADD_ROUND(x) half_to_float(float_to_half(x))
#define ADD(x)       x##_f16
#define ADD_T        float
#include "core/kernels/conv/conv_transposed.inc"
#undef ADD
#undef ADD_ROUND
#define ADD_ROUND(x) bfloat_to_float(float_to_bfloat(x))
#define ADD(x)       x##_bf16
#include "core/kernels/conv/conv_transposed.inc"
#undef ADD
#undef ADD_T
#undef ADD_ROUND

static bool in_halves(const Conv *conv)
{
        return (DTYPES_HALFS & DTYPE_BIT(conv->rounds_to)) != 0;
}

static ParallelBody row_adder(const Conv *conv)
{
        if (in_halves(conv))
                return conv->rounds_to == DTYPE_F16 ? add_rows_f16 : add_rows_bf16;
        return conv->dtype == DTYPE_F32   ? add_rows_f32
               : conv->dtype == DTYPE_F64 ? add_rows_f64
                                          : add_rows_i64;
}

// `ends`: these inputs are the last ones.
static Status add_up(const RunContext *ctx, Adding *adding, bool ends)
{
        const Conv *conv = adding->conv;
        int64_t n = adding->n_channels * conv->out_size[0] * conv->out_size[1],
                steps = conv->out_size[2] * (1 + conv->kernel[2] / MAX(conv->stride[2], (int64_t)1));
        adding->adds_bias = ends && adding->bias != NULL;
        TRY(parallel_for(ctx, n, MAX((int64_t)1, 65536 / MAX(steps, (int64_t)1)), row_adder(conv), adding));
        adding->begins = false;
        return run_poll(ctx);
}

// ---- the product ----
// Whether all inputs of a channel are evenly spaced.
static bool is_even(const Conv *conv)
{
        const int64_t *size = conv->in_size, *stride = conv->in_stride + 2;
        return (size[1] == 1 || stride[1] == size[2] * stride[2]) &&
               (size[0] == 1 || stride[0] == size[1] * size[2] * stride[2]);
}

static Status multiply(const RunContext *ctx, const Adding *adding, char *to)
{
        const Conv *conv = adding->conv;
        size_t bytes = dtype_info[conv->dtype].bytes;
        int64_t height = conv->in_size[1], n = adding->n_rows * adding->n_columns,
                all = conv->group_out * adding->taps;
        int64_t at = adding->row / height * conv->in_stride[2] + adding->row % height * conv->in_stride[3] +
                     adding->column * conv->in_stride[4];
        Gemm task = { .dtype = conv->dtype,
                      .m = adding->n_channels * adding->taps,
                      .n = n,
                      .k = conv->group_in,
                      .alpha = 1,
                      .a = { (char *)(uintptr_t)adding->weight +
                                     (size_t)(adding->channel * adding->taps) * bytes,
                             1,
                             all,
                             { 0 } },
                      .b = { (char *)(uintptr_t)adding->input + at * (int64_t)bytes,
                             conv->in_stride[1],
                             conv->in_stride[4],
                             { 0 } },
                      .c = { to, n, 1, { 0 } } };
        return gemm(ctx, &task);
}

// All inputs for some channels, as many as are stored at a time.
static Status run_channels(const RunContext *ctx, Adding *adding, char *product)
{
        int64_t room = MAX((int64_t)1, STORED / (adding->n_channels * adding->taps));
        int64_t columns = MIN(adding->width, room),
                rows = columns < adding->width || !is_even(adding->conv)
                               ? 1
                               : MIN(adding->rows, MAX((int64_t)1, room / MAX(columns, (int64_t)1)));
        adding->begins = true;
        adding->product = product;
        adding->n_rows = adding->n_columns = 0;
        for (int64_t row_end = adding->rows; row_end > 0; row_end -= rows)
                for (int64_t column_end = adding->width; column_end > 0; column_end -= columns) {
                        adding->row = MAX(row_end - rows, (int64_t)0);
                        adding->column = MAX(column_end - columns, (int64_t)0);
                        adding->n_rows = row_end - adding->row;
                        adding->n_columns = column_end - adding->column;
                        TRY(multiply(ctx, adding, product));
                        TRY(add_up(ctx, adding, adding->row == 0 && adding->column == 0));
                }
        return adding->begins ? add_up(ctx, adding, true) : STATUS_OK; // without inputs
}

static Status run_group(const RunContext *ctx, Adding *adding, char *product)
{
        const Conv *conv = adding->conv;
        adding->channel = 0;
        adding->n_channels = conv->group_out;
        adding->row = adding->column = 0;
        adding->n_rows = adding->rows;
        adding->n_columns = adding->width;
        adding->begins = true;
        if (product == NULL)
                return add_up(ctx, adding, true);
        int64_t n = STORED / MAX(saturating_product(adding->taps, adding->rows * adding->width), (int64_t)1);
        n = MAX(MIN(n, conv->group_out), (int64_t)1);
        for (; adding->channel < conv->group_out; adding->channel += n) {
                adding->n_channels = MIN(n, conv->group_out - adding->channel);
                TRY(run_channels(ctx, adding, product));
        }
        return STATUS_OK;
}

static Status run_groups(const RunContext *ctx, const Adding *all, char *product)
{
        const Conv *conv = all->conv;
        int64_t bytes = dtype_info[conv->dtype].bytes;
        for (int64_t i = 0; i < conv->n * conv->groups; i++) {
                int64_t image = i / conv->groups, group = i % conv->groups;
                Adding adding = *all;
                adding.input +=
                        (image * conv->in_stride[0] + group * conv->group_in * conv->in_stride[1]) * bytes;
                adding.out +=
                        (image * conv->out_stride[0] + group * conv->group_out * conv->out_stride[1]) * bytes;
                adding.weight += group * conv->group_in * conv->group_out * all->taps * bytes;
                adding.bias = all->bias == NULL ? NULL : all->bias + group * conv->group_out * bytes;
                TRY(run_group(ctx, &adding, product));
        }
        return STATUS_OK;
}

// Fills in axes and phases. *out_kept is the caller's.
static Status find_phases(Adding *adding, PhaseAxis **out_kept)
{
        const Conv *conv = adding->conv;
        int64_t n[3], n_kept = 0;
        for (int d = 0; d < 3; d++) {
                adding->axes[d] = (PhasedAxis){ conv->stride[d], conv->dilation[d], conv->pad[d],
                                                conv->kernel[d], conv->out_size[d] };
                n[d] = MIN(conv->stride[d], conv->out_size[d]);
                n[d] = n[d] > KEPT ? 0 : n[d];
                n_kept += n[d];
        }
        PhaseAxis *to = *out_kept = new_array((size_t)n_kept, sizeof(PhaseAxis));
        if (to == NULL)
                return fail_memory();
        for (int d = 0; d < 3; d++) {
                adding->phases[d] = n[d] == 0 ? NULL : to;
                for (int64_t i = 0; i < n[d]; i++)
                        *to++ = phase_axis(&adding->axes[d], i);
        }
        return STATUS_OK;
}

Status conv_run_transposed(const RunContext *ctx, const Conv *conv, const void *input, const void *weight,
                           const void *bias, void *out)
{
        _cleanup_(freep) PhaseAxis *kept = NULL;
        _cleanup_(scratch_deinit) Scratch product = { 0 };
        Adding adding = { .ctx = ctx,
                          .conv = conv,
                          .taps = conv->kernel[0] * conv->kernel[1] * conv->kernel[2],
                          .rows = conv->in_size[0] * conv->in_size[1],
                          .width = conv->in_size[2],
                          .input = input,
                          .weight = weight,
                          .bias = bias,
                          .out = out };
        TRY(find_phases(&adding, &kept));
        if (conv->group_in > (in_halves(conv) ? 0 : FEW_INPUTS) ||
            (conv->group_in > 0 && conv->in_stride[4] != 1)) {
                int64_t all = saturating_product(saturating_product(adding.taps, conv->group_out),
                                                 MAX(adding.rows * adding.width, (int64_t)1));
                TRY(scratch_init(&product, ctx, MIN(all, MAX(adding.taps, (int64_t)STORED)),
                                 dtype_info[conv->dtype].bytes));
        }
        return run_groups(ctx, &adding, product.data);
}
