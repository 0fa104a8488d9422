// SPDX-License-Identifier: Apache-2.0
// Instruction sets: what the CPU has and what this process uses. isa.c is the only place that asks
// the CPU. Kernels are compiled once per set and chosen when the process runs
// (core/kernels/isa.h).
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "core/base/status.h"

// Each set holds all features of the sets before it.
typedef enum Isa {
        ISA_PORTABLE,    // what the compiler's target has anyway; also: no products by oneDNN
        ISA_AVX2,        // AVX2, FMA, F16C, BMI 1 and 2: x86-64-v3 as far as kernels care
        ISA_AVX512,      // AVX-512 F, BW, CD, DQ, VL: x86-64-v4
        ISA_AVX512_VNNI, // ... and VNNI: Ice Lake, Cascade Lake
        ISA_AVX512_BF16, // ... and BF16
        ISA_COUNT
} Isa;

// For __attribute__((target(...))): what functions of a set may use.
#define ISA_AVX2_FEATURES        "avx2,fma"
#define ISA_AVX512_FEATURES      "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
#define ISA_AVX512_BF16_FEATURES ISA_AVX512_FEATURES ",avx512bf16,avx512vnni"

enum { ISA_CPU_BYTES = 24 };

// The widest set whose features this CPU has, all of them.
Isa isa_machine(void);
// The set that this process uses: the machine's, or the one that the environment variable
// FXSERVE_ISA names. Any thread.
Isa isa_level(void);
// FXSERVE_ISA limits the set, or isa_use did. Libraries that compute are then limited too.
bool isa_is_limited(void);
// STATUS_USAGE: FXSERVE_ISA names no set, or one that this machine lacks. isa_level is the
// machine's then.
Status isa_check(void);
// From now on `isa`, which must not be wider than the machine's. What was made before keeps its
// kernels. Tests call this once per set; no other thread may compute meanwhile.
void isa_use(Isa isa);
// "portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16".
const char *isa_name(Isa isa);
// Maker and model, "AuthenticAMD a00f11"; "" where the instruction set has no word for it.
void isa_cpu(char out[ISA_CPU_BYTES]);
