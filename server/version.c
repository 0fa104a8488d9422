// SPDX-License-Identifier: Apache-2.0
// Constants from the build, and the vector level the kernels may use.
#include "server/version.h"
#include "revision.h"

static const char *cpu_level(void)
{
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
                return "avx512";
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "avx2" : "baseline";
}

ServerFacts version_facts(void)
{
        return (ServerFacts){ .version = FXSERVE_VERSION,
                              .revision = FXSERVE_REVISION,
                              .torch_level = FXSERVE_TORCH_LEVEL,
                              .cpu_level = cpu_level(),
                              .ready = true };
}
