// SPDX-License-Identifier: Apache-2.0
// The only interface to oneDNN: a primitive with its constants packed once, run from any thread.
// When oneDNN has no fast implementation for a shape (only its ref* and plain-layout ones), no
// primitive is made, and the operator's own kernel runs.
#pragma once
#include "core/kernels/pack_cache.h"
#include "core/kernels/run_context.h"
#include "core/tensor/tensor.h"

typedef struct DnnlPrimitive DnnlPrimitive;

// Work to be done after the product, in place of separate nodes.
typedef enum DnnlActivation {
        DNNL_NOTHING,
        DNNL_RELU,
        DNNL_CLIP,
        DNNL_SWISH,
        DNNL_GELU_ERF,
        DNNL_GELU_TANH,
        DNNL_HARDSWISH,
        DNNL_TANH,
        DNNL_SIGMOID
} DnnlActivation;
typedef struct DnnlEpilogue {
        bool add_out; // adds what the output holds before the run (a residual, computed in place)
        DnnlActivation activation;
        float alpha, beta;
} DnnlEpilogue;

typedef struct DnnlConv {
        TensorMeta input, weight, out; // float32; input and out with their real strides, rank 3 to 5
        const void *weight_data;       // constant; packed into the primitive. Contiguous, but for direct.h
        PackShare share;               // of the packed weight
        const void *bias_data;         // float32 [out channels], or NULL
        int64_t groups;
        int64_t stride[3], padding[3], dilation[3];
        DnnlEpilogue epilogue;
        int n_threads;
} DnnlConv;

typedef struct DnnlMatmul {
        TensorMeta a, b, out;  // float32 matrices or batches of equal rank, real strides; b as [.., K, N]
        const void *b_data;    // constant: packed; NULL: given at run time
        PackShare share;       // of the packed matrix
        const void *bias_data; // float32 [N], or NULL
        DnnlEpilogue epilogue;
        int n_threads;
} DnnlMatmul;

// Elements of an input image with the frame that its windows reach into; INT64_MAX when they cannot
// be counted.
int64_t dnnl_conv_frame(const DnnlConv *conv);
// *out_primitive stays NULL (STATUS_OK) when there is no fast implementation. Failures are out of
// memory only.
Status dnnl_conv_new(const DnnlConv *conv, DnnlPrimitive **out_primitive);
Status dnnl_matmul_new(const DnnlMatmul *matmul, DnnlPrimitive **out_primitive);
void dnnl_primitive_free(void *primitive);                       // NULL-safe
const char *dnnl_primitive_name(const DnnlPrimitive *primitive); // "brgconv:avx512_core"
size_t dnnl_primitive_scratch(const DnnlPrimitive *primitive);
// b NULL when it is packed. `scratch`: dnnl_primitive_scratch bytes, 64-byte aligned. Allocates
// nothing after the first run on a thread.
Status dnnl_primitive_run(DnnlPrimitive *primitive, const void *a, const void *b, void *out, void *scratch);
// Whether products may use the library at all: not with ISA_PORTABLE. Call this before any other
// function of the library: it limits the library to the process's instruction set.
bool dnnl_is_used(void);
// The version of the loaded library: "3.7.2". And the widest instruction set it may use here, a
// constant: "avx512_core"; "unused".
void dnnl_library(char *out_version, size_t n, const char **out_isa);
// STATUS_NO_MEMORY when the heap is nearly exhausted: oneDNN does not check all its allocations
// (reserve.c).
Status dnnl_check_heap(void);
