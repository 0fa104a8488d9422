// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/platform.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include "core/base/isa.h"
#include "core/base/memory.h"
#include "core/kernels/dnnl/primitive.h"

// The widest set that has kernels of our own; oneDNN's set distinguishes wider ones. Keys of
// programs and tune records of earlier releases contain this name.
enum { WIDEST_KERNELS = ISA_AVX512 };

static Platform platform;

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
        char cpu[ISA_CPU_BYTES];
        isa_cpu(cpu);
        dnnl_library(platform.dnnl, sizeof(platform.dnnl), &platform.dnnl_isa);
        platform.isa = isa_name(isa_level());
        snprintf(platform.text, sizeof(platform.text), "oneDNN %s %s; libm %s; %s; %s; caches %ld %ld %ld",
                 platform.dnnl, platform.dnnl_isa, libm_version(),
                 isa_name(MIN(isa_level(), (Isa)WIDEST_KERNELS)), cpu, sysconf(_SC_LEVEL1_DCACHE_SIZE),
                 sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE));
        platform.digest = sha256_of(platform.text, strlen(platform.text));
}

const Platform *kernel_platform(void)
{
        static pthread_once_t looked = PTHREAD_ONCE_INIT;
        pthread_once(&looked, look);
        return &platform;
}
