// SPDX-License-Identifier: Apache-2.0
// Winograd convolution of channels_last images, 3x3 kernel, stride 1; and of volumes of one group
// whose planes of taps are such kernels. A tile of 4x4 results needs 36 multiplications per pair of
// channels instead of 144; a tile of 2x2 results needs 16 instead of 36. The multiplications are
// done as products of matrices. Bias, residual and clamp are applied before a result is stored, as
// in direct.h.
#pragma once
#include "core/kernels/conv/direct.h"

typedef struct Winograd Winograd;
// The transforms of tiles. The matrix products are those of direct_family.
extern const KernelFamily winograd_family;

// The step (results per side of a tile, 4 or 2) that pays for these sizes; 0: the direct kernel is
// faster. Decided by sizes alone.
int winograd_rule(const DnnlConv *conv);
// conv->epilogue must be empty. *out_winograd stays NULL with STATUS_OK for convolutions of another
// kind, where the CPU lacks the instructions, for more than 512 MB of transformed weights, and for
// weights that fail winograd_weights_new.
Status winograd_new(const DnnlConv *conv, const DirectClamp *clamp, int step, Winograd **out_winograd);
void winograd_free(Winograd *winograd);              // NULL-safe
const char *winograd_name(const Winograd *winograd); // "winograd_4x4:avx512"
size_t winograd_scratch(const Winograd *winograd);
// `residual`: has the output's layout and does not overlap it; NULL: none. `scratch`:
// winograd_scratch bytes, 64-byte aligned. Any number of threads may run one Winograd at once, each
// with its own scratch.
Status winograd_run(const Winograd *winograd, const RunContext *ctx, const float *in, const float *residual,
                    float *out, void *scratch);
