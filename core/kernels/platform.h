// SPDX-License-Identifier: Apache-2.0
// What the bits of a result depend on besides the graph, its inputs and this program's own code:
// the libraries that compute, the instruction set they may use, and the CPU to whose caches they
// cut their blocks.
#pragma once
#include "core/base/hash.h"

typedef struct Platform {
        // "oneDNN 3.7.2 avx512_core_bf16; libm 2.41; avx512; AuthenticAMD a00f11; caches 32768
        // 524288 16777216"
        char text[160];
        char dnnl[24];   // "3.7.2"
        const char *isa; // isa_name(isa_level())
        const char *dnnl_isa;
        HashHex digest; // of the text
} Platform;

// Of this process, for good. Any thread.
const Platform *kernel_platform(void);
