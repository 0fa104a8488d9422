// SPDX-License-Identifier: Apache-2.0
// Dense views for kernels: a strided tensor of any dtype read as contiguous elements of a compute
// dtype (float32, float64 or int64), and results of a compute dtype stored into a strided tensor of
// any dtype, rounded once. Bytes are borrowed where nothing has to be converted; scratch is charged
// to the run's budget.
#pragma once
#include <math.h>
#include "core/base/memory.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

// Scratch of one kernel call, from the run's pool or the heap; STORAGE_ALIGN-aligned. Owned by the
// caller (scratch_deinit; safe on a zeroed one).
typedef struct Scratch {
        void *data;
        size_t n_bytes;
        Budget *budget;
        ScratchPool *pool; // may be NULL
        size_t pool_end;   // beyond the pool's n_bytes: `data` is from the heap
} Scratch;
// Uninitialised bytes: n * item_bytes, checked. STATUS_TOO_LARGE over the budget, STATUS_NO_MEMORY.
Status scratch_init(Scratch *scratch, const RunContext *ctx, int64_t n, size_t item_bytes);
void scratch_deinit(Scratch *scratch);

// The dtype a kernel computes in: float16, bfloat16 and float32 in float32; float64; bool and
// integers in int64 (modular, like the narrow types).
Dtype dtype_compute(Dtype dtype);

// An input as contiguous row-major elements. `data` points at the tensor itself or into scratch.
typedef struct Dense {
        const void *data;
        Scratch scratch;
} Dense;
// `meta` may be permuted by the caller: elements come in the order of its dimensions.
Status dense_init(Dense *dense, const RunContext *ctx, const void *data, const TensorMeta *meta, Dtype as);
// The elements as `as` in the order of memory where they lie there without gaps, otherwise
// row-major; *meta says how they lie in `data` then.
Status dense_init_as_it_lies(Dense *dense, const RunContext *ctx, const void *data, TensorMeta *meta,
                             Dtype as);
void dense_deinit(Dense *dense);

// An output to be written as contiguous row-major elements of dtype `as`; dense_out_store moves
// them into the tensor when `data` is scratch.
typedef struct DenseOut {
        void *data;
        Dtype as;
        void *target;
        const TensorMeta *meta; // borrowed
        const RunContext *ctx;
        Scratch scratch;
} DenseOut;
Status dense_out_init(DenseOut *out, const RunContext *ctx, void *target, const TensorMeta *meta, Dtype as);
Status dense_out_store(DenseOut *out);
void dense_out_deinit(DenseOut *out);

// One element of a compute dtype array as double, for rare paths.
static inline double compute_as_f64(Dtype as, const void *data, int64_t i)
{
        return as == DTYPE_F32   ? (double)((const float *)data)[i]
               : as == DTYPE_F64 ? ((const double *)data)[i]
                                 : (double)((const int64_t *)data)[i];
}

// Whether the size of every element of a float32 tensor is below `limit`; none is NaN then.
bool floats_are_below(const float *data, const TensorMeta *meta, float limit);
// Whether none is NaN or infinite, and whether that is so when they are rounded to bfloat16.
// Convolutions and products ask it of constants: zero, padding or rounding times such a weight is
// not what it was.
static inline bool floats_are_finite(const float *data, const TensorMeta *meta)
{
        return floats_are_below(data, meta, INFINITY);
}
static inline bool floats_are_finite_bf16(const float *data, const TensorMeta *meta)
{
        return floats_are_below(data, meta, 0x1.ffp+127f); // half a step beyond the greatest one
}

// Whether strides read as channels_last (rank 4 or 5), in PyTorch's way of telling sizes of 1: what
// conv, pool, batch_norm and resampling ask to choose the layout of their result.
bool meta_suggests_channels_last(const TensorMeta *meta);
// [N, C, L] as an image of one row [N, C, 1, L], with the strides of unsqueeze; others as they are.
TensorMeta meta_line_as_image(const TensorMeta *meta);

// Products of sizes for cost estimates: the largest int64 where they would overflow.
static inline int64_t saturating_product(int64_t a, int64_t b)
{
        int64_t out;
        return mul_i64(a, b, &out) ? out : INT64_MAX;
}
