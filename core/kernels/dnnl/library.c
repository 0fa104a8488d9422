// SPDX-License-Identifier: Apache-2.0
#include <dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include "core/base/isa.h"
#include "core/kernels/dnnl/primitive.h"

static const char *name_of(dnnl_cpu_isa_t isa)
{
        switch (isa) {
        case dnnl_cpu_isa_sse41:
                return "sse41";
        case dnnl_cpu_isa_avx:
                return "avx";
        case dnnl_cpu_isa_avx2:
                return "avx2";
        case dnnl_cpu_isa_avx2_vnni:
                return "avx2_vnni";
        case dnnl_cpu_isa_avx512_core:
                return "avx512_core";
        case dnnl_cpu_isa_avx512_core_vnni:
                return "avx512_core_vnni";
        case dnnl_cpu_isa_avx512_core_bf16:
                return "avx512_core_bf16";
        case dnnl_cpu_isa_avx512_core_amx:
                return "avx512_core_amx";
#if DNNL_VERSION_MAJOR >= 3
        case dnnl_cpu_isa_avx2_vnni_2:
                return "avx2_vnni_2";
        case dnnl_cpu_isa_avx512_core_fp16:
                return "avx512_core_fp16";
        case dnnl_cpu_isa_avx512_core_amx_fp16:
                return "avx512_core_amx_fp16";
#endif
        default:
                return "other";
        }
}

// Once: the library fixes its instruction set at first use. Without a limit it may use sets of the
// CPU that are beyond this process's level.
static void limit_isa(void)
{
        static const dnnl_cpu_isa_t most[ISA_COUNT] = { [ISA_AVX2] = dnnl_cpu_isa_avx2,
                                                        [ISA_AVX512] = dnnl_cpu_isa_avx512_core,
                                                        [ISA_AVX512_VNNI] = dnnl_cpu_isa_avx512_core_vnni,
                                                        [ISA_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16 };
        if (isa_is_limited())
                dnnl_set_max_cpu_isa(most[isa_level()]);
}

bool dnnl_is_used(void)
{
        static pthread_once_t limited = PTHREAD_ONCE_INIT;
        if (isa_level() == ISA_PORTABLE)
                return false;
        pthread_once(&limited, limit_isa);
        return true;
}

void dnnl_library(char *out_version, size_t n, const char **out_isa)
{
        const dnnl_version_t *version = dnnl_version();
        snprintf(out_version, n, "%d.%d.%d", version->major, version->minor, version->patch);
        *out_isa = !dnnl_is_used() ? "unused" : name_of(dnnl_get_effective_cpu_isa());
}
