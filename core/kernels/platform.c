// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/platform.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include "core/kernels/dnnl/primitive.h"
#include "core/kernels/pointwise/pointwise.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CPU_BYTES = 24 };

static Platform platform;

// Maker and model; "" where the instruction set has no word for it.
static void name_cpu(char out[CPU_BYTES])
{
        out[0] = '\0';
#if defined(__x86_64__)
        unsigned most, maker[3], signature, b, c, d;
        if (__get_cpuid(0, &most, &maker[0], &maker[2], &maker[1]) == 0 ||
            __get_cpuid(1, &signature, &b, &c, &d) == 0)
                return;
        snprintf(out, CPU_BYTES, "%.12s %x", (const char *)maker, signature);
#endif
}

static const char *libm_version(void)
{
#ifdef __GLIBC__
        return gnu_get_libc_version();
#else
        return "other";
#endif
}

static void look(void)
{
        static const char *const names[] = {
                [POINT_PORTABLE] = "portable", [POINT_AVX2] = "avx2", [POINT_AVX512] = "avx512"
        };
        char cpu[CPU_BYTES];
        name_cpu(cpu);
        dnnl_library(platform.dnnl, sizeof(platform.dnnl), &platform.dnnl_isa);
        platform.isa = names[point_isa()];
        snprintf(platform.text, sizeof(platform.text), "oneDNN %s %s; libm %s; %s; %s; caches %ld %ld %ld",
                 platform.dnnl, platform.dnnl_isa, libm_version(), platform.isa, cpu,
                 sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE),
                 sysconf(_SC_LEVEL3_CACHE_SIZE));
        platform.digest = sha256_of(platform.text, strlen(platform.text));
}

const Platform *kernel_platform(void)
{
        static pthread_once_t looked = PTHREAD_ONCE_INIT;
        pthread_once(&looked, look);
        return &platform;
}
