// SPDX-License-Identifier: Apache-2.0
// isa.c: asks the CPU once. __builtin_cpu_supports also knows whether the system saves the wide
// registers.
#include "core/base/isa.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/memory.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const names[ISA_COUNT] = { "portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16" };

#if defined(__x86_64__)
// Compilers do not all know it by name. Where AVX2 may be used, it may.
static bool has_f16c(void)
{
        unsigned a, b, c, d;
        return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

Isa isa_machine(void)
{
        Isa isa = ISA_PORTABLE;
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c())
                isa = ISA_AVX2;
        if (isa == ISA_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
                isa = ISA_AVX512;
        if (isa == ISA_AVX512 && __builtin_cpu_supports("avx512vnni"))
                isa = ISA_AVX512_VNNI;
        if (isa == ISA_AVX512_VNNI && __builtin_cpu_supports("avx512bf16"))
                isa = ISA_AVX512_BF16;
#endif
        return isa;
}

void isa_cpu(char out[ISA_CPU_BYTES])
{
        out[0] = '\0';
#if defined(__x86_64__)
        unsigned most, maker[3], signature, b, c, d;
        if (__get_cpuid(0, &most, &maker[0], &maker[2], &maker[1]) == 0 ||
            __get_cpuid(1, &signature, &b, &c, &d) == 0)
                return;
        snprintf(out, ISA_CPU_BYTES, "%.12s %x", (const char *)maker, signature);
#endif
}

const char *isa_name(Isa isa)
{
        return names[isa];
}

// ---- the set in use ----
typedef enum Wish { WISH_NONE, WISH_UNKNOWN, WISH_LACKING, WISH_GRANTED } Wish;

static Wish read_wish(Isa *out_isa)
{
        const char *text = getenv("FXSERVE_ISA");
        if (text == NULL || text[0] == '\0')
                return WISH_NONE;
        for (int isa = 0; isa < ISA_COUNT; isa++) {
                if (strcmp(text, names[isa]) != 0)
                        continue;
                *out_isa = (Isa)isa;
                return (Isa)isa <= isa_machine() ? WISH_GRANTED : WISH_LACKING;
        }
        return WISH_UNKNOWN;
}

// The set and, above it, whether it is limited; -1: nobody has asked yet. Threads that ask first at
// the same time find the same.
enum { LIMITED = ISA_COUNT };
static _Atomic int in_use = -1;

static int look(void)
{
        int known = atomic_load_explicit(&in_use, memory_order_relaxed);
        if (known >= 0)
                return known;
        Isa isa;
        known = read_wish(&isa) == WISH_GRANTED ? (int)isa + LIMITED : (int)isa_machine();
        atomic_store_explicit(&in_use, known, memory_order_relaxed);
        return known;
}

Isa isa_level(void)
{
        return (Isa)(look() % LIMITED);
}

bool isa_is_limited(void)
{
        return look() >= LIMITED;
}

void isa_use(Isa isa)
{
        atomic_store_explicit(&in_use, (int)MIN(isa, isa_machine()) + LIMITED, memory_order_relaxed);
}

Status isa_check(void)
{
        Isa isa = ISA_PORTABLE;
        switch (read_wish(&isa)) {
        case WISH_UNKNOWN:
                return fail(STATUS_USAGE,
                            "FXSERVE_ISA=%s names no instruction set; there are portable, avx2, avx512, "
                            "avx512_vnni and avx512_bf16",
                            getenv("FXSERVE_ISA"));
        case WISH_LACKING:
                return fail(STATUS_USAGE, "FXSERVE_ISA=%s: this machine has no more than %s", names[isa],
                            names[isa_machine()]);
        default:
                return STATUS_OK;
        }
}
