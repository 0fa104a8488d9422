// SPDX-License-Identifier: Apache-2.0
// Constants from the build, and the instruction set in use.
#include "server/version.h"
#include <gnutls/gnutls.h>
#include <uv.h>
#include "api/routes/summary.h"
#include "core/base/isa.h"
#include "core/engine/describe.h"
#include "server/http.h"
#include "server/transport.h"
#include "revision.h"

ServerFacts version_facts(void)
{
        return (ServerFacts){ .version = FXSERVE_VERSION,
                              .revision = FXSERVE_REVISION,
                              .torch_level = FXSERVE_TORCH_LEVEL,
                              .cpu_level = isa_name(isa_level()),
                              .ready = true };
}

static bool has_openmp(void)
{
#ifdef _OPENMP
        return true;
#else
        return false;
#endif
}

// What depends on the libraries and the compiler. Rows with `is_there` false are printed by
// --version.
static const struct {
        bool (*is_there)(void);
        const char *without;
} features[] = {
        { has_openmp, "one run uses one thread (built without OpenMP)" },
        { http_pools_are_known, "memory of idle connections stays with them (their pools are known for "
                                "libmicrohttpd 0.9.75 and 1.0.1 only)" },
};

void version_libraries(Text *out)
{
        const Platform *platform = kernel_platform();
        text_addf(out, "oneDNN %s (%s), libmicrohttpd %s, libuv %s, jansson %s, GnuTLS %s\n", platform->dnnl,
                  platform->dnnl_isa, transport_version(), uv_version_string(), summary_json_version(),
                  gnutls_check_version(NULL));
        for (size_t i = 0; i < ARRAY_LENGTH(features); i++)
                if (!features[i].is_there())
                        text_addf(out, "without: %s\n", features[i].without);
}
