// SPDX-License-Identifier: Apache-2.0
// Pooling over one to three spatial dimensions: windows are lists of bounds per axis, so that
// strided, dilated and adaptive pooling are one kernel.
#pragma once
#include "core/kernels/dense.h"
#include "core/kernels/isa.h"

// Windows along one axis: output position o covers low[o], low[o] + step, ... < high[o] (clipped to
// the input); count[o] is the divisor's share of this axis (with padding where that counts).
typedef struct PoolAxis {
        int64_t in_size, out_size, step;
        const int64_t *low, *high, *count;
} PoolAxis;

typedef struct Pool {
        Dtype dtype;    // compute dtype: F32, F64, I64
        int64_t planes; // batch * channels; planes are contiguous [depth][height][width]
        PoolAxis axis[3];
        int64_t divisor; // average: 0 = product of counts
} Pool;

// Sizes as PyTorch computes them; windows that start in the right padding are dropped with
// ceil_mode.
int64_t pool_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                         bool ceil_mode);
// Windows of one size along an axis.
typedef struct PoolWindow {
        int64_t kernel, stride, pad, dilation;
        bool count_padding; // padding is a part of the divisor
} PoolWindow;

// Bounds of all windows of an axis into bounds[3 * out_size] (low, high, count).
Status pool_windows(const RunContext *ctx, PoolAxis *axis, const PoolWindow *window, int64_t *bounds);
Status pool_adaptive_windows(const RunContext *ctx, PoolAxis *axis, int64_t *bounds);

// in, out: contiguous, of the compute dtype. NaN wins; windows without elements give the lowest
// value. indices (flat, in the input plane): may be NULL.
Status pool_max(const RunContext *ctx, const Pool *pool, const void *in, void *out, int64_t *indices);
// Windows without elements give 0.
Status pool_average(const RunContext *ctx, const Pool *pool, const void *in, void *out);
// Maximum of channels_last images or volumes of float32, or average of images, planes = images *
// channels, without indices: the same bits as the two above. For windows of up to POOL_LAST_WINDOW
// elements: larger ones are reduced by rows first, which takes fewer steps.
enum { POOL_LAST_WINDOW = 1 << 16 };
extern const KernelFamily pool_last_family;
Status pool_channels_last(const RunContext *ctx, const Pool *pool, bool average, int64_t channels,
                          const float *in, float *out);
// Maximum of channels_last images of bytes, int8 (`is_signed`) or uint8.
Status pool_bytes_channels_last(const RunContext *ctx, const Pool *pool, bool is_signed, int64_t channels,
                                const void *in, void *out);
// Averages of half values (held as float32), rounded to `half` after every addition and after each
// of the divisions by depth, height and width, as PyTorch's three-dimensional adaptive pooling
// does.
Status pool_average_stepwise(const RunContext *ctx, const Pool *pool, Dtype half, const float *in,
                             float *out);
