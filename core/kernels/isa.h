// SPDX-License-Identifier: Apache-2.0
// Kernels that are compiled for several instruction sets. A family is a table of its variants; the
// widest variant that the process may use is chosen at each use. families.c lists all of them, so
// that tests can run every variant.
#pragma once
#include "core/base/isa.h"
#include "core/kernels/target.h"
#include "core/tensor/dtype.h"

// Attributes of a function for an instruction set. AVX-512 functions use the whole width.
#define TARGET_AVX2   __attribute__((target(ISA_AVX2_FEATURES)))
#define TARGET_AVX512 TARGET_512(ISA_AVX512_FEATURES)

typedef struct KernelVariant {
        Dtype dtype; // computed in
        Isa isa;
        const void *kernel; // a constant of the family's own type
} KernelVariant;

typedef struct KernelFamily {
        const char *name;
        size_t n;
        const KernelVariant *variants;
} KernelFamily;

// The widest variant for `dtype` that isa_level() allows; NULL: there is none.
const void *kernel_variant(const KernelFamily *family, Dtype dtype);

// All families but the pointwise rows, which are tables of their own (pointwise.h).
extern const KernelFamily *const kernel_families[];
extern const size_t n_kernel_families;
