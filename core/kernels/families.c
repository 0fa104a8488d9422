// SPDX-License-Identifier: Apache-2.0
// families.c: the table of all kernel families, and the choice among their variants.
#include "core/base/memory.h"
#include "core/kernels/attention/panel.h"
#include "core/kernels/conv/depthwise.h"
#include "core/kernels/conv/direct.h"
#include "core/kernels/conv/winograd.h"
#include "core/kernels/fft/fft.h"
#include "core/kernels/isa.h"
#include "core/kernels/norm/norm.h"
#include "core/kernels/norm/softmax.h"
#include "core/kernels/pool/pool.h"
#include "core/kernels/product/int4.h"
#include "core/kernels/product/levels_tile.h"
#include "core/kernels/product/matmul_tile.h"
#include "core/kernels/product/narrow_tile.h"
#include "core/kernels/product/recurrent.h"
#include "core/kernels/reduce/columns.h"
#include "core/kernels/reduce/distances.h"

const KernelFamily *const kernel_families[] = {
        &gemm_family,     &norm_family,      &softmax_family,   &direct_family,          &depthwise_family,
        &winograd_family, &pool_last_family, &attention_family, &attention_pairs_family, &recurrent_family,
        &narrow_family,   &levels_family,    &int4_family,      &reduce_family,          &fft_family,
        &distance_family,
};
const size_t n_kernel_families = ARRAY_LENGTH(kernel_families);

const void *kernel_variant(const KernelFamily *family, Dtype dtype)
{
        const KernelVariant *best = NULL;
        Isa most = isa_level();
        for (size_t i = 0; i < family->n; i++) {
                const KernelVariant *variant = &family->variants[i];
                if (variant->dtype == dtype && variant->isa <= most &&
                    (best == NULL || variant->isa > best->isa))
                        best = variant;
        }
        return best == NULL ? NULL : best->kernel;
}
